// SPDX-License-Identifier: Apache-2.0
// A scan of the node on its way to the client.
//
//   node_scan_next → step (messages of one bucket) → send → on_sent → send … → last one sent: the next step is asked for while it travels
//
// So at most the message in flow control and one step are in memory, and a reader that stops costs just that. Between two messages of
// rows, in this order of urgency: an answer to a control message, rows (while there is credit), the end, a heartbeat.
#include "base/mem.h"
#include "flight/flight_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum node_from flight_node_from(enum ticket_from from) {
    static const enum node_from map[] = {NODE_FROM_EARLIEST, NODE_FROM_LATEST, NODE_FROM_OFFSET, NODE_FROM_TIME};
    return map[from];
}

// ---- where each bucket stands

static bool same_partition(const char *a, const char *b) { return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0; }

static struct flight_position *find_position(struct flight_scan *x, const char *partition, int32_t bucket) {
    for (uint32_t i = 0; i < x->position_count; i++)
        if (x->positions[i].bucket == bucket && same_partition(x->positions[i].partition, partition)) return &x->positions[i];
    return NULL;
}

static void set_position(struct flight_scan *x, const char *partition, int32_t bucket, uint64_t next) {
    struct flight_position *p = find_position(x, partition, bucket);
    if (p == NULL) {
        // Beside its partition's other buckets: put_positions writes a partition's buckets as one object.
        uint32_t at = x->position_count;
        while (at > 0 && !same_partition(x->positions[at - 1].partition, partition)) at--;
        if (at == 0) at = x->position_count;
        x->positions = mem_realloc(x->positions, (x->position_count + 1) * sizeof *x->positions);
        memmove(&x->positions[at + 1], &x->positions[at], (x->position_count - at) * sizeof *x->positions);
        x->position_count++;
        p = &x->positions[at];
        *p = (struct flight_position){partition ? mem_strdup(partition) : NULL, bucket, 0};
    }
    p->next = next;
}

static void clear_positions(struct flight_scan *x) {
    for (uint32_t i = 0; i < x->position_count; i++) mem_free(x->positions[i].partition);
    mem_free(x->positions);
    x->positions = NULL;
    x->position_count = 0;
}

// The scan's own view: buckets that gave no rows yet and rows that the filter dropped are in it, too. It is ahead of the client while messages
// of a step wait to be sent.
static void refresh_positions(struct flight_scan *x) {
    struct node_scan_position *found;
    uint32_t count;
    node_scan_positions(x->scan, &found, &count);
    clear_positions(x);
    x->positions = mem_new_array(struct flight_position, count + 1);
    for (uint32_t i = 0; i < count; i++)
        x->positions[i] = (struct flight_position){found[i].partition ? mem_strdup(found[i].partition) : NULL, found[i].bucket, found[i].next};
    x->position_count = count;
    mem_free(found);
}

// {"0":131,"1":7}, or {"2026":{"0":131}} when the table is partitioned.
static void put_positions(struct flight_scan *x, struct json_writer *w) {
    json_put_key(w, "next");
    json_object_begin(w);
    for (uint32_t i = 0; i < x->position_count; i++) {
        struct flight_position *p = &x->positions[i];
        bool first = i == 0 || !same_partition(x->positions[i - 1].partition, p->partition);
        bool last = i + 1 == x->position_count || !same_partition(x->positions[i + 1].partition, p->partition);
        if (p->partition && first) {
            json_put_key(w, p->partition);
            json_object_begin(w);
        }
        char key[16];
        snprintf(key, sizeof key, "%" PRId32, p->bucket);
        json_put_key(w, key);
        json_put_uint(w, p->next);
        if (p->partition && last) json_object_end(w);
    }
    json_object_end(w);
}

// ---- sending

static void send_message(struct flight_scan *x, struct slice header, const void *metadata, size_t metadata_size, struct slices *body) {
    struct slices out = {0};
    flight_data_frame(&out, slice_empty(), header, metadata, metadata_size, body);
    x->last_sent_ns = shard_now_ns(rpc_call_shard(x->call));
    x->heartbeat_due = false;
    rpc_call_send(x->call, &out);
}

static void send_schema(struct flight_scan *x) {
    struct slice header = ipc_encode_schema(node_scan_schema(x->scan), false);
    x->schema_sent = true;
    send_message(x, header, NULL, 0, NULL);
    slice_unref(&header);
}

// A batch without rows carries what there is to say: nothing may go to a client without a data header.
static void send_empty_batch(struct flight_scan *x, const void *metadata, size_t size) {
    struct slices body = {0};
    if (x->empty_body.size) slices_take(&body, slice_ref(x->empty_body));
    send_message(x, x->empty_batch, metadata, size, &body);
}

static void send_empty(struct flight_scan *x, const char *flag) {
    struct buffer b;
    buffer_init(&b, 16u << 20);
    struct json_writer w;
    json_begin(&w, &b);
    json_object_begin(&w);
    json_put_key(&w, flag);
    json_put_bool(&w, true);
    if (x->message_count == 0) refresh_positions(x);
    put_positions(x, &w);
    json_object_end(&w);
    send_empty_batch(x, b.data, b.size);
    buffer_deinit(&b);
}

static void send_reply(struct flight_scan *x) {
    struct flight_reply *reply = x->replies;
    x->replies = reply->next;
    if (x->replies == NULL) x->replies_end = &x->replies;
    send_empty_batch(x, reply->metadata, strlen(reply->metadata));
    mem_free(reply->metadata);
    mem_free(reply);
    if (x->on_replied) x->on_replied(x);
}

static void free_step(struct flight_scan *x) {
    if (x->messages) scan_messages_free(x->messages, x->message_count);
    x->messages = NULL;
    x->message_count = x->message_at = 0;
}

static void send_rows(struct flight_scan *x) {
    struct scan_message *m = &x->messages[x->message_at++];
    struct buffer b;
    buffer_init(&b, 4096);
    struct json_writer w;
    json_begin(&w, &b);
    json_object_begin(&w);
    if (x->partition) {
        json_put_key(&w, "partition");
        json_put_string(&w, x->partition);
    }
    json_put_key(&w, "bucket");
    json_put_int(&w, x->bucket);
    json_put_key(&w, "next");
    json_put_uint(&w, m->next);
    json_object_end(&w);
    set_position(x, x->partition, x->bucket, m->next);
    x->unsent = m->next;
    if (x->credit_used) x->credit -= (int64_t)(m->message.size + m->body.bytes);
    send_message(x, m->message, b.data, b.size, &m->body);
    buffer_deinit(&b);
    if (x->message_at == x->message_count) free_step(x);
}

// ---- stepping

static void on_next(struct node_scan_next *n) {
    struct flight_scan *x = container_of(n, struct flight_scan, next);
    x->next_running = false;
    if (n->code != MINK_OK) {
        if (x->error.code == MINK_OK && !x->draining) x->error = n->error;
    } else if (n->end) {
        x->end = true;
    } else {
        mem_free(x->partition);
        x->partition = n->partition ? mem_strdup(n->partition) : NULL;
        x->bucket = n->bucket;
        x->messages = n->messages;
        x->message_count = n->message_count;
        x->message_at = 0;
        x->unsent = n->first;
        // Rows that the filter dropped move the position on, too.
        if (x->message_count == 0) {
            set_position(x, x->partition, x->bucket, n->next);
            free_step(x);
        }
    }
    flight_scan_pump(x);
}

static void ask_next(struct flight_scan *x) {
    x->next = (struct node_scan_next){.on_done = on_next};
    x->next_running = true;
    node_scan_next(x->scan, &x->next);
}

static void finish(struct flight_scan *x) {
    timer_stop(&x->heartbeat);
    free_step(x);
    if (x->error.code == MINK_OK) flight_finish_ok(x->call);
    else flight_finish(x->call, &x->error, NULL);
}

static void end_draining(struct flight_scan *x) {
    if (!x->done_sent) {
        x->done_sent = true;
        if (x->schema_sent) {
            send_empty(x, "draining");
            return;
        }
    }
    error_set(&x->error, MINK_UNAVAILABLE, "NODE_DRAINING", "the node is going away; continue from next on another one");
    finish(x);
}

void flight_scan_pump(struct flight_scan *x) {
    if (rpc_call_finished(x->call)) return;
    if (x->cancelled || x->error.code != MINK_OK || x->draining) {
        // The scan is still being stepped: its on_done comes first (it was cancelled), then the call ends.
        if (x->next_running || (rpc_call_sending(x->call) && !x->cancelled && x->draining)) return;
        if (x->draining && x->error.code == MINK_OK && !x->cancelled) end_draining(x);
        else finish(x);
        return;
    }
    bool credit = !x->credit_used || x->credit > 0;
    if (!rpc_call_sending(x->call)) {
        if (!x->schema_sent) send_schema(x);
        else if (x->replies) send_reply(x);
        else if (x->message_at < x->message_count && credit) send_rows(x);
        else if (x->end && x->message_count == 0) {
            if (x->done_sent) {
                finish(x);
                return;
            }
            x->done_sent = true;
            send_empty(x, "done");
        } else if (x->heartbeat_due) {
            send_empty(x, "heartbeat");
        }
    }
    if (!x->next_running && x->message_count == 0 && !x->end) ask_next(x);
}

void flight_scan_sent(struct flight_scan *x) { flight_scan_pump(x); }

static void on_heartbeat(struct timer *t) {
    struct flight_scan *x = container_of(t, struct flight_scan, heartbeat);
    uint64_t now = shard_now_ns(t->shard), silent = now - x->last_sent_ns;
    if (silent >= x->heartbeat_ns) {
        x->heartbeat_due = !rpc_call_sending(x->call); // a stuck message is nothing to follow with another
        silent = 0;
        flight_scan_pump(x);
    }
    if (!rpc_call_finished(x->call)) timer_start(t, x->heartbeat_ns - silent);
}

// ---- beginning and ending

enum mink_code flight_scan_begin(struct flight_scan *x, struct flight_server *s, struct rpc_call *c, struct node_table *take_table, const struct ticket *t,
                                 struct error *e) {
    x->server = s;
    x->call = c;
    x->table = take_table;
    x->replies_end = &x->replies;
    x->follow = t->until == UNTIL_NEVER;
    timer_init(&x->heartbeat, rpc_call_shard(c), on_heartbeat);
    struct scan_request request;
    MINK_TRY(flight_scan_request(t, &request, e));
    static const enum node_until untils[] = {NODE_UNTIL_NOW, NODE_UNTIL_OFFSET, NODE_UNTIL_NEVER};
    struct node_scan_config config = {.shard = rpc_call_shard(c),
                                      .table = x->table,
                                      .request = &request,
                                      .partition = t->partition,
                                      .bucket = t->bucket,
                                      .from = flight_node_from(t->from),
                                      .from_value = t->from_value,
                                      .until = untils[t->until],
                                      .until_offset = t->until_offset,
                                      .limit = t->limit,
                                      .read_bytes = 1u << 20};
    MINK_TRY(node_scan_open(s->node, &config, &x->scan, e));
    struct arrow_builder *builder = arrow_builder_new(node_scan_schema(x->scan));
    struct arrow_batch none;
    arrow_builder_finish(builder, &none);
    arrow_builder_free(builder);
    struct slices body = {0};
    enum mink_code code = ipc_encode_batch(&none, CODEC_NONE, 0, &x->empty_batch, &body, e);
    arrow_batch_deinit(&none);
    x->empty_body = slices_join(&body);
    slices_deinit(&body);
    if (code != MINK_OK) return code;
    refresh_positions(x);
    x->last_sent_ns = shard_now_ns(rpc_call_shard(c));
    x->heartbeat_ns = t->heartbeat_ms * NS_PER_MS;
    if (x->heartbeat_ns) timer_start(&x->heartbeat, x->heartbeat_ns);
    flight_scan_pump(x);
    return MINK_OK;
}

void flight_scan_cancel(struct flight_scan *x) {
    x->cancelled = true;
    error_set(&x->error, MINK_CANCELLED, "CANCELLED", "the client cancelled the call");
    if (x->next_running) node_scan_cancel(x->scan);
    flight_scan_pump(x);
}

void flight_scan_fail(struct flight_scan *x, const struct error *e) {
    if (x->error.code == MINK_OK) x->error = *e;
    if (x->next_running) node_scan_cancel(x->scan);
    flight_scan_pump(x);
}

void flight_scan_drain(struct flight_scan *x) {
    if (!x->follow || x->scan == NULL) return;
    x->draining = true;
    if (x->next_running) node_scan_cancel(x->scan);
    flight_scan_pump(x);
}

void flight_scan_reply(struct flight_scan *x, char *take_metadata) {
    struct flight_reply *reply = mem_new(struct flight_reply);
    reply->metadata = take_metadata;
    *x->replies_end = reply;
    x->replies_end = &reply->next;
    flight_scan_pump(x);
}

void flight_scan_drop_pending(struct flight_scan *x, const char *partition, int32_t bucket) {
    if (x->message_count && x->bucket == bucket && same_partition(x->partition, partition)) free_step(x);
}

static void drop_control(struct flight_scan *x) {
    while (x->replies) {
        struct flight_reply *reply = x->replies;
        x->replies = reply->next;
        mem_free(reply->metadata);
        mem_free(reply);
    }
}

enum mink_code flight_scan_rewind(struct flight_scan *x, const char *partition, int32_t bucket, struct error *e) {
    if (x->message_count == 0 || x->bucket != bucket || !same_partition(x->partition, partition)) return MINK_OK;
    MINK_TRY(node_scan_seek(x->scan, partition, bucket, x->unsent, e));
    free_step(x);
    return MINK_OK;
}

void flight_scan_deinit(struct flight_scan *x) {
    if (x->heartbeat.shard) timer_stop(&x->heartbeat);
    free_step(x);
    drop_control(x);
    clear_positions(x);
    mem_free(x->partition);
    slice_unref(&x->empty_batch);
    slice_unref(&x->empty_body);
    if (x->scan) node_scan_close(x->scan);
    if (x->table) node_table_unref(x->table);
}
