// SPDX-License-Identifier: Apache-2.0
// The clients of a simulated world: writers that retry (idempotent), writers that do not, readers of everything, followers, seekers.
#include "sim/sim_world.h"

#include "base/mem.h"
#include "node/node_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define IN_FLIGHT_MAX 3

struct send { // one attempt at an append
    struct node_append request;
    struct client *c;
    struct sim_host *host;
    uint32_t append;
    struct writer *writer; // NULL: plain
    bool live;             // an answer is still awaited
    char partition[8];
    struct send *next;
};

struct writer {
    uint32_t number, table;
    int32_t partition;
    uint32_t bucket;
    uint64_t writer_id;
    bool asking;               // for its id
    struct sim_host *asked;
    uint32_t sequence;         // of the next new append
    uint32_t open[IN_FLIGHT_MAX]; // appends not yet acknowledged, in order
    struct send *sends[IN_FLIGHT_MAX];
    uint32_t open_count;
    bool failing;              // one has failed: wait until all have ended, then again from the first
    uint64_t retry_ns;
};

enum reader_kind { READER_ALL, READER_FOLLOW };
struct pull { struct node_scan_next request; struct reader *reader; }; // of one scan: an answer may come after its host has gone
struct reader {
    struct pull *pull;
    struct client *c;
    struct sim_host *host;
    struct node_scan *scan;
    enum reader_kind kind;
    uint32_t table;
    int32_t partition, bucket; // of a follower
    bool meta, live, cancelled, final; // final: may not fail
    uint64_t position;         // of a follower
    uint64_t steps;
    uint64_t ends[PARTITIONS_MAX][BUCKETS_MAX];          // how far this read came
    uint64_t expected[PARTITIONS_MAX][BUCKETS_MAX];      // what was acknowledged before it began
    struct reader *next;
};

struct seeker { struct node_offsets request; struct client *c; struct sim_host *host; uint32_t table; int32_t partition; uint32_t bucket; };

struct client {
    struct world *w;
    struct writer *writers;
    uint32_t writer_count, writer_numbers;
    struct send *sends;
    struct reader *readers;
    bool calm;
};

static double unit(struct client *c) { return random_unit(sim_random(c->w->sim)); }
static uint64_t below(struct client *c, uint64_t n) { return random_below(sim_random(c->w->sim), n); }
static bool chance(struct client *c, double p) { return unit(c) < p; }
static const char *partition_name(int32_t partition, char out[8]) {
    if (partition < 0) return NULL;
    snprintf(out, 8, "p%d", partition);
    return out;
}
static int32_t partition_number(struct client *c, const char *name) {
    if (name == NULL || name[0] == 0) return -1;
    if (name[0] != 'p' || name[1] < '0' || name[1] >= '0' + PARTITIONS_MAX || name[2]) model_violation(&c->w->model, "there is no partition %s", name);
    return name[1] - '0';
}
static struct sim_host *some_host(struct client *c) {
    struct sim_host *h = c->w->host;
    if (c->w->zombie && c->w->zombie->ready && chance(c, 0.5)) h = c->w->zombie;
    return h && h->ready && !h->closing && sim_alive(h->process) ? h : NULL;
}

// ---- appends

static void make_batch(struct client *c, const struct model_append *a, const struct table_def *def, struct arrow_batch *out) {
    struct arrow_builder *b = arrow_builder_new(def->arrow);
    char pad[128], name[8];
    for (uint32_t i = 0; i < a->row_count; i++) {
        arrow_builder_int(b, 0, (int64_t)model_row_id(a->row_first + i));
        arrow_builder_bytes(b, 1, pad, model_row_pad(a->row_first + i, pad));
        if (a->partition >= 0) {
            partition_name(a->partition, name);
            arrow_builder_bytes(b, 2, name, strlen(name));
        }
        arrow_builder_row(b);
    }
    arrow_builder_finish(b, out);
    arrow_builder_free(b);
}

static bool is_definite(enum mink_code code) { return code != MINK_UNKNOWN_OUTCOME && code != MINK_DEADLINE && code != MINK_CANCELLED && code != MINK_INTERNAL; }

static void take_ack(struct client *c, struct send *s) {
    struct model *m = &c->w->model;
    uint64_t rows = 0;
    for (uint32_t i = 0; i < s->request.range_count; i++) {
        const struct node_range *r = &s->request.ranges[i];
        model_acked_range(m, s->append, partition_number(c, r->partition), r->bucket, r->first, r->last);
        rows += r->last - r->first + 1;
    }
    if (s->request.duplicate) c->w->counts.duplicates++;
    model_acked(m, s->append, rows);
}

static void writer_answer(struct writer *wr, struct send *s) {
    struct client *c = s->c;
    uint32_t at = 0;
    while (at < wr->open_count && wr->open[at] != s->append) at++;
    if (at == wr->open_count) return; // an answer to an attempt of what has been acknowledged since
    bool current = wr->sends[at] == s;
    if (s->request.code == MINK_OK) {
        // Acknowledgements of one writer come in its order: what lies before it has happened, too, and will be told at the next attempt.
        wr->open_count--;
        memmove(wr->open + at, wr->open + at + 1, (wr->open_count - at) * sizeof *wr->open);
        memmove(wr->sends + at, wr->sends + at + 1, (wr->open_count - at) * sizeof *wr->sends);
        return;
    }
    if (!current) return;
    if (strcmp(s->request.error.reason, "UNKNOWN_WRITER") == 0 && c->w->model.tables[wr->table].ttl_ms >= 0) {
        // All it ever wrote here is older than the log is kept: it begins anew, and leaves what it does not know.
        for (uint32_t i = 0; i < wr->open_count; i++) model_unknown(&c->w->model, wr->open[i]);
        wr->open_count = wr->sequence = 0;
        wr->writer_id = 0;
        wr->asked = NULL;
        wr->number = c->writer_numbers++;
        return;
    }
    wr->sends[at] = NULL;
    wr->failing = true;
    wr->retry_ns = sim_now_ns(c->w->sim) + 5 * NS_PER_MS + below(c, 50 * NS_PER_MS);
}

static void on_appended(struct node_append *request) {
    struct send *s = container_of(request, struct send, request);
    struct client *c = s->c;
    sim_trace(c->w->sim, "append %u by host %" PRIu64 " -> %s%s%s", s->append, s->host->number, mink_code_name(request->code), request->code == MINK_OK ? "" : " ", request->code == MINK_OK ? "" : request->error.message);
    c->w->counts.append_codes[request->code]++;
    s->live = false;
    if (request->code == MINK_OK) {
        take_ack(c, s);
    } else if (request->code == MINK_INVALID || request->code == MINK_UNSUPPORTED || request->code == MINK_NOT_FOUND || request->code == MINK_OUT_OF_RANGE) {
        model_violation(&c->w->model, "append %u is refused: %s", s->append, request->error.message);
    } else if (s->writer == NULL) {
        // Of an append that was split among buckets one part may have been written.
        const struct model_append *a = &c->w->model.appends[s->append];
        if (is_definite(request->code) && !c->w->model.tables[a->table].keyed) model_failed(&c->w->model, s->append);
        else model_unknown(&c->w->model, s->append);
    }
    if (s->writer) writer_answer(s->writer, s);
}

static struct send *send_append(struct client *c, struct sim_host *h, uint32_t append, struct writer *wr) {
    const struct model_append *a = &c->w->model.appends[append];
    struct node_table *table = world_table(h, a->table);
    if (table == NULL) return NULL;
    struct send *s = mem_new(struct send);
    s->c = c;
    s->host = h;
    s->append = append;
    s->writer = wr;
    s->live = true;
    s->next = c->sends;
    c->sends = s;
    s->request = (struct node_append){.shard = sim_world(c->w->sim), .on_done = on_appended, .table = table, .bucket = a->bucket, .create_partition = true};
    s->request.partition = a->partition >= 0 && (a->bucket >= 0 || chance(c, 0.5)) ? partition_name(a->partition, s->partition) : NULL;
    if (wr) {
        s->request.writer_id = wr->writer_id;
        s->request.sequence = a->sequence;
        s->request.has_sequence = true;
    }
    make_batch(c, a, c->w->defs[a->table], &s->request.batch);
    c->w->counts.appends++;
    sim_trace(c->w->sim, "append %u to host %" PRIu64 ": table %u partition %d bucket %d writer %d sequence %u, %u rows", append, h->number, a->table, a->partition, a->bucket, a->writer, a->sequence, a->row_count);
    node_append(h->node, &s->request);
    return s;
}

static uint32_t draw_rows(struct client *c) { return chance(c, 0.1) ? 1 + (uint32_t)below(c, 200) : 1 + (uint32_t)below(c, 8); }

static void plain_append(struct client *c) {
    struct sim_host *h = some_host(c);
    if (!h) return;
    uint32_t table = (uint32_t)below(c, c->w->options.table_count);
    const struct model_table *t = &c->w->model.tables[table];
    int32_t partition = t->partition_count ? (int32_t)below(c, t->partition_count) : -1;
    int32_t bucket = t->keyed || chance(c, 0.3) ? -1 : (int32_t)below(c, t->bucket_count);
    if (!world_table(h, table)) return;
    send_append(c, h, model_append(&c->w->model, table, partition, bucket, -1, 0, draw_rows(c)), NULL);
}

// ---- idempotent writers

struct asking { struct node_admin admin; struct writer *wr; struct client *c; struct sim_host *host; };

static void on_id(struct node_admin *a) {
    struct asking *asking = container_of(a, struct asking, admin);
    struct writer *wr = asking->wr;
    if (wr->asked != asking->host || wr->writer_id) return;
    wr->asking = false;
    if (a->code == MINK_OK) wr->writer_id = a->id;
}

static void ask_id(struct client *c, struct writer *wr, struct sim_host *h) {
    if (wr->asking && wr->asked == h) return;
    struct asking *asking = mem_new(struct asking);
    asking->wr = wr;
    asking->c = c;
    asking->host = wr->asked = h;
    wr->asking = true;
    asking->admin = (struct node_admin){.shard = sim_world(c->w->sim), .on_done = on_id, .op = NODE_INIT_WRITER, .database = "sim", .table = "t0"};
    node_admin(h->node, &asking->admin);
}

static void writer_work(struct client *c, struct writer *wr) {
    struct sim_host *h = some_host(c);
    if (!h || !world_table(h, wr->table)) return;
    if (!wr->writer_id) {
        ask_id(c, wr, h);
        return;
    }
    if (wr->failing) {
        for (uint32_t i = 0; i < wr->open_count; i++)
            if (wr->sends[i]) return;
        if (sim_now_ns(c->w->sim) < wr->retry_ns) return;
        wr->failing = false;
    }
    // A host that takes over has not seen what another was sent: all of it goes to one host.
    for (uint32_t i = 0; i < wr->open_count; i++)
        if (wr->sends[i] && wr->sends[i]->host != h) return;
    for (uint32_t i = 0; i < wr->open_count; i++)
        if (!wr->sends[i]) wr->sends[i] = send_append(c, h, wr->open[i], wr);
    if (wr->open_count && chance(c, 0.1)) { // impatient: the same again while it is under way
        uint32_t i = (uint32_t)below(c, wr->open_count);
        wr->sends[i] = send_append(c, h, wr->open[i], wr);
    }
    if (c->calm || wr->open_count == IN_FLIGHT_MAX) return;
    uint32_t append = model_append(&c->w->model, wr->table, wr->partition, (int32_t)wr->bucket, (int32_t)wr->number, wr->sequence++, draw_rows(c));
    wr->open[wr->open_count] = append;
    wr->sends[wr->open_count++] = send_append(c, h, append, wr);
}

// ---- readers

static void read_message(struct reader *r, const struct scan_message *message, int32_t partition, uint32_t bucket) {
    struct client *c = r->c;
    struct model *m = &c->w->model;
    struct arrow_schema *schema = node_scan_schema(r->scan);
    struct ipc_decoder *decoder = ipc_decoder_new(schema, 64 << 20);
    struct slice body = slices_join(&message->body);
    struct arrow_batch batch;
    struct error e;
    if (ipc_decoder_batch(decoder, message->message, body, &batch, NULL, &e) != MINK_OK) model_violation(m, "a message that was read does not decode: %s", e.message);
    if (batch.row_count != message->row_count) model_violation(m, "a message of %" PRId64 " rows says %" PRId64, batch.row_count, message->row_count);
    int32_t id_at = arrow_schema_find(schema, "id"), pad_at = arrow_schema_find(schema, "pad"), offset_at = r->meta ? arrow_schema_find(schema, "_log_offset") : -1;
    const int64_t *ids = (const int64_t *)batch.columns[id_at].buffers[0 + 1].data;
    const int32_t *ends = (const int32_t *)batch.columns[pad_at].buffers[1].data;
    const uint8_t *pads = batch.columns[pad_at].buffers[2].data;
    for (int64_t i = 0; i < batch.row_count; i++) {
        uint64_t offset = message->next - (uint64_t)batch.row_count + (uint64_t)i; // offsets are dense
        if (offset_at >= 0) {
            uint64_t told = (uint64_t)((const int64_t *)batch.columns[offset_at].buffers[1].data)[i];
            if (told != offset) model_violation(m, "_log_offset says %" PRIu64 " where %" PRIu64 " is", told, offset);
        }
        model_read_row(m, r->table, partition, bucket, offset, (uint64_t)ids[i], pads + ends[i], (size_t)(ends[i + 1] - ends[i]));
    }
    arrow_batch_deinit(&batch);
    slice_unref(&body);
    ipc_decoder_free(decoder);
}

static void read_on(struct reader *r);
static bool reader_open(struct reader *r, struct sim_host *h);

static void reader_end(struct reader *r) {
    r->live = false;
    if (sim_alive(r->host->process)) node_scan_close(r->scan);
    r->scan = NULL;
}

static void took_all(struct reader *r) {
    struct client *c = r->c;
    struct model *m = &c->w->model;
    const struct model_table *t = &m->tables[r->table];
    c->w->counts.scans++;
    struct node_scan_position *positions;
    uint32_t count;
    node_scan_positions(r->scan, &positions, &count);
    for (uint32_t i = 0; i < count; i++) {
        int32_t partition = partition_number(c, positions[i].partition);
        uint64_t *end = &r->ends[partition < 0 ? 0 : partition][positions[i].bucket];
        if (*end == 0 && positions[i].next > 0) model_start(m, r->table, partition, (uint32_t)positions[i].bucket, positions[i].next, shard_wall_ms(sim_world(c->w->sim))); // nothing is kept
        if (positions[i].next > *end) *end = positions[i].next;
    }
    mem_free(positions);
    // A stranger who thinks itself owner may not know what was acknowledged elsewhere; it may not tell it otherwise either.
    if (r->host != c->w->host || c->w->zombie) return;
    for (uint32_t p = 0; p < (t->partition_count ? t->partition_count : 1); p++)
        for (uint32_t b = 0; b < t->bucket_count; b++)
            if (r->ends[p][b] < r->expected[p][b]) model_violation(m, "a read of table %u partition %u bucket %u ended at %" PRIu64 ", acknowledged was up to %" PRIu64, r->table, p, b, r->ends[p][b], r->expected[p][b]);
}

static void on_next(struct node_scan_next *request) {
    struct pull *pull = container_of(request, struct pull, request);
    struct reader *r = pull->reader;
    struct client *c = r->c;
    if (r->pull != pull || !r->live) { // from one who is dead: nobody waits any more
        scan_messages_free(request->messages, request->message_count);
        return;
    }
    c->w->counts.scan_codes[request->code]++;
    if (request->code != MINK_OK) {
        sim_trace(c->w->sim, "read of table %u by host %" PRIu64 " -> %s %s", r->table, r->host->number, mink_code_name(request->code), request->error.message);
        bool trimmed = request->code == MINK_OUT_OF_RANGE && c->w->options.ttl;
        if (r->final && !trimmed) model_violation(&c->w->model, "reading everything: %s", request->error.message);
        if (request->code == MINK_OUT_OF_RANGE && r->kind == READER_FOLLOW) r->position = OFFSET_NONE; // trimmed: begins again at the start
        reader_end(r);
        if (r->final) reader_open(r, c->w->host);
        return;
    }
    if (request->end) {
        if (r->kind == READER_ALL) took_all(r);
        reader_end(r);
        return;
    }
    int32_t partition = partition_number(c, request->partition);
    uint32_t bucket = (uint32_t)request->bucket;
    sim_trace(c->w->sim, "read of table %u partition %d bucket %u by host %" PRIu64 ": %u messages, next %" PRIu64, r->table, partition, bucket, r->host->number, request->message_count, request->next);
    uint64_t *end = &r->ends[partition < 0 ? 0 : partition][bucket];
    for (uint32_t i = 0; i < request->message_count; i++) {
        const struct scan_message *message = &request->messages[i];
        uint64_t first = message->next - (uint64_t)message->row_count;
        // The first may begin anywhere that is still kept; what follows it follows.
        if (*end == 0 && (r->kind == READER_ALL || r->position == OFFSET_NONE)) model_start(&c->w->model, r->table, partition, bucket, first, shard_wall_ms(sim_world(c->w->sim)));
        else if (*end != first) model_violation(&c->w->model, "a read of table %u bucket %u goes from %" PRIu64 " to %" PRIu64, r->table, bucket, *end, first);
        read_message(r, message, partition, bucket);
        *end = message->next;
    }
    if (request->next > *end) {
        if (*end && request->message_count) model_violation(&c->w->model, "a read of table %u bucket %u ended at %" PRIu64 " and resumes at %" PRIu64, r->table, bucket, *end, request->next);
        *end = request->next;
    }
    model_read_end(&c->w->model, r->table, partition, bucket, *end);
    if (r->kind == READER_FOLLOW) r->position = *end;
    scan_messages_free(request->messages, request->message_count);
    if (r->kind == READER_FOLLOW && (r->cancelled || ++r->steps > 200)) {
        reader_end(r);
        return;
    }
    read_on(r);
}

static void read_on(struct reader *r) {
    r->pull->request = (struct node_scan_next){.on_done = on_next};
    node_scan_next(r->scan, &r->pull->request);
}

static bool reader_open(struct reader *r, struct sim_host *h) {
    struct client *c = r->c;
    struct node_table *table = world_table(h, r->table);
    char name[8];
    struct error e;
    if (!table) return false;
    r->host = h;
    r->cancelled = false;
    r->steps = 0;
    r->meta = chance(c, 0.5);
    struct scan_request request = {.all_columns = true};
    static const char *const two[] = {"pad", "id"};
    if (chance(c, 0.3)) {
        request.all_columns = false;
        request.columns = two;
        request.column_count = 2;
    }
    if (r->meta) request.meta[request.meta_count++] = SCAN_META_LOG_OFFSET;
    struct node_scan_config config = {.shard = sim_world(c->w->sim), .table = table, .request = &request, .partition = partition_name(r->partition, name), .bucket = r->bucket, .limit = -1, .read_bytes = chance(c, 0.5) ? 1 : 4096};
    config.until = r->kind == READER_ALL ? NODE_UNTIL_NOW : NODE_UNTIL_NEVER;
    config.from = r->kind == READER_ALL || r->position == OFFSET_NONE ? NODE_FROM_EARLIEST : NODE_FROM_OFFSET;
    if (config.from == NODE_FROM_OFFSET) config.from_value = (int64_t)r->position;
    memset(r->ends, 0, sizeof r->ends);
    for (uint32_t p = 0; p < PARTITIONS_MAX; p++)
        for (uint32_t b = 0; b < BUCKETS_MAX; b++) r->expected[p][b] = c->w->model.tables[r->table].buckets[p][b].high_watermark;
    if (r->kind == READER_FOLLOW && r->position != OFFSET_NONE) r->ends[r->partition < 0 ? 0 : r->partition][r->bucket] = r->position;
    enum mink_code code = node_scan_open(h->node, &config, &r->scan, &e);
    sim_trace(c->w->sim, "read of table %u partition %d bucket %d by host %" PRIu64 " %s opened: %s", r->table, r->partition, r->bucket, h->number, r->kind == READER_FOLLOW ? "follow" : "all", mink_code_name(code));
    if (code != MINK_OK) {
        if (code == MINK_INVALID || code == MINK_UNSUPPORTED) model_violation(&c->w->model, "a read is refused: %s", e.message);
        return false;
    }
    r->live = true;
    r->pull = mem_new(struct pull);
    r->pull->reader = r;
    read_on(r);
    return true;
}

static struct reader *reader_new(struct client *c, enum reader_kind kind, uint32_t table) {
    struct reader *r = mem_new(struct reader);
    const struct model_table *t = &c->w->model.tables[table];
    r->c = c;
    r->kind = kind;
    r->table = table;
    r->partition = -1;
    r->bucket = -1;
    r->position = OFFSET_NONE;
    if (kind == READER_FOLLOW) {
        r->partition = t->partition_count ? (int32_t)below(c, t->partition_count) : -1;
        r->bucket = (int32_t)below(c, t->bucket_count);
    }
    r->next = c->readers;
    c->readers = r;
    return r;
}

static void read_something(struct client *c) {
    struct sim_host *h = some_host(c);
    if (!h) return;
    uint32_t open = 0;
    for (struct reader *r = c->readers; r; r = r->next) {
        if (r->kind == READER_FOLLOW && !r->live && chance(c, 0.3)) { // goes on where it was
            reader_open(r, h);
            c->w->counts.follows++;
            return;
        }
        open += r->live;
    }
    if (open > 6) return;
    enum reader_kind kind = chance(c, 0.7) ? READER_ALL : READER_FOLLOW;
    reader_open(reader_new(c, kind, (uint32_t)below(c, c->w->options.table_count)), h);
}

static void cancel_a_follower(struct client *c) {
    for (struct reader *r = c->readers; r; r = r->next)
        if (r->kind == READER_FOLLOW && r->live && !r->cancelled && sim_alive(r->host->process) && chance(c, 0.5)) {
            r->cancelled = true;
            node_scan_cancel(r->scan);
            return;
        }
}

// ---- seeking by time

static void on_offset(struct node_offsets *o) {
    struct seeker *k = container_of(o, struct seeker, request);
    struct client *c = k->c;
    struct model *m = &c->w->model;
    sim_trace(c->w->sim, "seek table %u -> %s %" PRIu64, k->table, mink_code_name(o->code), o->offset);
    // A stranger who thinks itself owner knows less.
    if (k->host != c->w->host || c->w->zombie) {
        mem_free(k);
        return;
    }
    if (o->code == MINK_OK && o->at == NODE_FROM_TIME && !c->w->options.skew) {
        const struct model_bucket *b = &m->tables[k->table].buckets[k->partition < 0 ? 0 : k->partition][k->bucket];
        for (uint64_t offset = b->start; offset < b->capacity; offset++) {
            if (!b->rows[offset]) continue;
            const struct model_append *a = &m->appends[m->rows[b->rows[offset] - 1].append];
            int64_t ttl = m->tables[k->table].ttl_ms;
            bool kept = ttl < 0 || a->sent_wall_ms > shard_wall_ms(sim_world(c->w->sim)) - ttl;
            if (kept && offset < o->offset && a->sent_wall_ms > o->at_value) model_violation(m, "offset %" PRIu64 " is told for time %" PRId64 ", but %" PRIu64 " was sent at %" PRId64, o->offset, o->at_value, offset, a->sent_wall_ms);
            if (offset >= o->offset && a->state == APPEND_ACKED && a->ended_wall_ms < o->at_value) model_violation(m, "offset %" PRIu64 " is told for time %" PRId64 ", but %" PRIu64 " was acknowledged at %" PRId64, o->offset, o->at_value, offset, a->ended_wall_ms);
        }
    }
    mem_free(k);
}

static void seek(struct client *c) {
    struct sim_host *h = some_host(c);
    if (!h) return;
    struct seeker *k = mem_new(struct seeker);
    k->c = c;
    k->host = h;
    k->table = (uint32_t)below(c, c->w->options.table_count);
    const struct model_table *t = &c->w->model.tables[k->table];
    k->partition = t->partition_count ? (int32_t)below(c, t->partition_count) : -1;
    k->bucket = (uint32_t)below(c, t->bucket_count);
    struct node_table *table = world_table(h, k->table);
    static const char *const names[PARTITIONS_MAX] = {"p0", "p1", "p2"};
    if (!table) {
        mem_free(k);
        return;
    }
    c->w->counts.seeks++;
    k->request = (struct node_offsets){.shard = sim_world(c->w->sim), .on_done = on_offset, .table = table, .partition = k->partition < 0 ? NULL : names[k->partition], .bucket = (int32_t)k->bucket, .at = NODE_FROM_TIME};
    k->request.at_value = shard_wall_ms(sim_world(c->w->sim)) - (int64_t)below(c, 5000);
    sim_trace(c->w->sim, "seek table %u partition %d bucket %u time %" PRId64 " by host %" PRIu64, k->table, k->partition, k->bucket, k->request.at_value, h->number);
    node_offsets(h->node, &k->request);
}

// ---- other wishes

static void on_admin(struct node_admin *a) { mem_free(a); }

static void flush(struct client *c) {
    struct sim_host *h = some_host(c);
    if (!h) return;
    struct node_admin *a = mem_new(struct node_admin);
    static const char *const tables[TABLES_MAX] = {"t0", "t1", "t2"};
    *a = (struct node_admin){.shard = sim_world(c->w->sim), .on_done = on_admin, .database = "sim"};
    a->op = chance(c, 0.7) ? NODE_FLUSH : NODE_SYNC; // one draw a statement: compilers evaluate operands in different orders
    a->table = tables[below(c, c->w->options.table_count)];
    c->w->counts.flushes++;
    node_admin(h->node, a);
}

// Maintenance at times when the node would not choose to do it.
static void on_job(struct stream_job *j) { mem_free(j); }

static void sweep(struct client *c) {
    struct sim_host *h = some_host(c);
    if (!h || h->failed) return;
    struct stream_job *j = mem_new(struct stream_job);
    *j = (struct stream_job){.shard = sim_world(c->w->sim), .on_done = on_job};
    c->w->counts.sweeps++;
    if (chance(c, 0.7)) stream_sweep_orphans(h->node->streams, j);
    else stream_delete_marked(h->node->streams, j);
}

// ---- the client

struct client *client_new(struct world *w) {
    struct client *c = mem_new(struct client);
    c->w = w;
    c->writer_count = c->writer_numbers = w->options.writer_count;
    c->writers = mem_new_array(struct writer, c->writer_count);
    uint32_t table = 0;
    for (uint32_t i = 0; i < c->writer_count; i++) {
        struct writer *wr = &c->writers[i];
        wr->number = i;
        table = (uint32_t)below(c, w->options.table_count);
        const struct model_table *t = &w->model.tables[table];
        wr->table = table;
        wr->bucket = (uint32_t)below(c, t->bucket_count);
        wr->partition = t->partition_count ? (int32_t)below(c, t->partition_count) : -1;
    }
    return c;
}

static struct writer *some_writer(struct client *c) {
    // Rows of a table with a bucket key find their bucket themselves: a numbered batch names one.
    for (int i = 0; i < 4; i++) {
        struct writer *wr = &c->writers[below(c, c->writer_count)];
        if (!c->w->model.tables[wr->table].keyed) return wr;
    }
    return NULL;
}

void client_step(struct client *c) {
    double u = unit(c);
    struct writer *wr;
    if (u < 0.45) {
        if ((wr = some_writer(c))) writer_work(c, wr);
    } else if (u < 0.75) {
        plain_append(c);
    } else if (u < 0.88) {
        read_something(c);
    } else if (u < 0.92) {
        seek(c);
    } else if (u < 0.95) {
        cancel_a_follower(c);
    } else if (u < 0.98) {
        flush(c);
    } else {
        sweep(c);
    }
}

void client_calm(struct client *c) { c->calm = true; }

bool client_rests(struct client *c) {
    bool rests = true;
    for (uint32_t i = 0; i < c->writer_count; i++) {
        if (c->writers[i].open_count == 0) continue;
        rests = false;
        writer_work(c, &c->writers[i]);
    }
    for (struct send *s = c->sends; s; s = s->next) rests &= !s->live || !sim_alive(s->host->process);
    return rests;
}

void client_host_gone(struct client *c, struct sim_host *h) {
    for (struct send *s = c->sends; s; s = s->next) {
        if (s->host != h || !s->live) continue;
        s->live = false;
        model_unknown(&c->w->model, s->append);
        struct writer *wr = s->writer;
        for (uint32_t i = 0; wr && i < wr->open_count; i++) {
            if (wr->sends[i] != s) continue;
            wr->sends[i] = NULL;
            wr->failing = true;
            wr->retry_ns = 0;
        }
    }
    for (struct reader *r = c->readers; r; r = r->next) {
        if (r->host != h || !r->live) continue;
        r->live = false;
        r->scan = NULL;
    }
}

void client_read_all(struct client *c, struct sim_host *h) {
    for (uint32_t t = 0; t < c->w->options.table_count; t++) {
        struct reader *r = reader_new(c, READER_ALL, t);
        r->final = true;
        if (!reader_open(r, h)) model_violation(&c->w->model, "table %u cannot be read at the end", t);
    }
}

static bool arrived(const struct reader *r) {
    if (r->kind != READER_FOLLOW || !r->live || r->cancelled || r->host != r->c->w->host) return true;
    const struct model_bucket *b = &r->c->w->model.tables[r->table].buckets[r->partition < 0 ? 0 : r->partition][r->bucket];
    uint64_t end = b->high_watermark;
    return end <= b->start || (r->position != OFFSET_NONE && r->position >= end);
}

bool client_followers_arrive(struct client *c) {
    for (int i = 0; i < 1000; i++) { // a slow answer may be on its way still
        bool all = true;
        for (struct reader *r = c->readers; r; r = r->next) all &= arrived(r);
        if (all) return true;
        sim_run_for(c->w->sim, 5 * NS_PER_MS);
    }
    for (struct reader *r = c->readers; r; r = r->next)
        if (!arrived(r)) sim_trace(c->w->sim, "the follower of table %u partition %d bucket %d stands at %" PRIu64 " after %" PRIu64 " steps", r->table, r->partition, r->bucket, r->position, r->steps);
    return false;
}

bool client_reads_done(struct client *c) {
    for (struct reader *r = c->readers; r; r = r->next)
        if (r->final && r->live) return false;
    return true;
}
