// SPDX-License-Identifier: Apache-2.0
// DoPut: batches in, appended in pipeline, acknowledged in order when durable.
//
//   message → parse (one copy, into a slab with room for the head of a stored batch) → decode and validate → conform → node_append
//   node_append done → the done beginning of the queue → pending acknowledgement → PutResult
//
// Reading never waits for acknowledgements to be read: while one cannot leave, later ones merge into it. Reading waits only for bytes and
// batches that are not yet durable. When a batch fails, nothing more is read; what was sent before it gets a short time to become
// durable, so that "acked" in the error is as true as it can be, then the status goes out.
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "flight/flight_internal.h"
#include "table/conform.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define ERROR_GRACE_NS (50 * NS_PER_MS)
#define ACK_RANGES_MAX 1024

static struct metric_counter batches_in = METRIC_COUNTER("mink_flight_put_batches_total", "batches received by DoPut");
static struct metric_counter rows_in = METRIC_COUNTER("mink_flight_put_rows_total", "rows received by DoPut");
static struct metric_histogram ack_latency = METRIC_HISTOGRAM("mink_flight_put_ack_seconds", "from a DoPut batch's arrival to its durability");

struct range {
    char *partition;
    uint32_t bucket;
    uint64_t first, last;
};

struct put_batch {
    struct node_append append;
    struct put *put;
    struct put_batch *next;
    uint64_t number, arrived_ns;
    int64_t rows;
    size_t bytes;
    bool done, duplicate;
    struct range *ranges;
    uint32_t range_count;
};

// What can be told but was not: batches from..to.
struct ack {
    bool any, duplicate, more; // more: ranges were left out
    uint64_t from, to;
    int64_t rows;
    struct range *ranges;
    uint32_t range_count;
};

struct put {
    struct rpc_call *call;
    struct flight_server *server;
    struct put_command command;
    struct flight_descriptor descriptor; // the command borrows its path
    bool has_command;
    struct node_table *table;
    struct arrow_schema *schema; // of the stream
    struct ipc_decoder *decoder;
    struct conform_plan *plan;
    bool identity;
    struct put_batch *first, **last; // not yet acknowledged, by number
    uint64_t number;                 // of the next batch
    uint64_t acked;                  // batches told or about to be told
    uint64_t bytes;                  // not yet durable
    uint32_t batches;
    struct ack ack;
    bool half_closed, draining, failed, closed;
    struct error error;
    uint64_t error_batch;
    bool error_has_batch;
    struct timer grace;
};

static void pump(struct put *p);

// ---- memory

static void ranges_free(struct range *ranges, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) mem_free(ranges[i].partition);
    mem_free(ranges);
}

static void settle(struct put *p) {
    if (!p->closed || p->batches) return;
    struct flight_server *s = p->server;
    while (p->first) { // done, but the call went away first
        struct put_batch *b = p->first;
        p->first = b->next;
        ranges_free(b->ranges, b->range_count);
        mem_free(b);
    }
    ranges_free(p->ack.ranges, p->ack.range_count);
    if (p->plan) conform_plan_free(p->plan);
    if (p->decoder) ipc_decoder_free(p->decoder);
    if (p->schema) arrow_schema_unref(p->schema);
    if (p->table) node_table_unref(p->table);
    if (p->has_command) put_command_deinit(&p->command);
    flight_descriptor_deinit(&p->descriptor);
    mem_free(p);
    flight_server_release(s);
}

// ---- acknowledgements

static bool same_partition(const char *a, const char *b) { return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0; }

static void ack_range(struct ack *a, struct range *r) {
    for (uint32_t i = a->range_count; i > 0; i--) {
        struct range *known = &a->ranges[i - 1];
        if (known->bucket != r->bucket || !same_partition(known->partition, r->partition)) continue;
        if (known->last + 1 == r->first) { // goes on where that one ended
            known->last = r->last;
            mem_free(r->partition);
            return;
        }
        break;
    }
    if (a->range_count == ACK_RANGES_MAX) {
        a->more = true;
        mem_free(r->partition);
        return;
    }
    if ((a->range_count & (a->range_count - 1)) == 0) a->ranges = mem_realloc(a->ranges, (a->range_count ? 2 * a->range_count : 1) * sizeof *a->ranges);
    a->ranges[a->range_count++] = *r;
}

// The done beginning of the queue joins the pending acknowledgement.
static void collect(struct put *p) {
    while (p->first && p->first->done) {
        struct put_batch *b = p->first;
        p->first = b->next;
        if (p->first == NULL) p->last = &p->first;
        struct ack *a = &p->ack;
        if (!a->any) a->from = b->number;
        a->any = true;
        a->to = b->number;
        a->rows += b->rows;
        a->duplicate |= b->duplicate;
        p->acked = b->number + 1;
        for (uint32_t i = 0; i < b->range_count; i++) ack_range(a, &b->ranges[i]);
        mem_free(b->ranges);
        mem_free(b);
    }
}

static void send_ack(struct put *p) {
    struct ack *a = &p->ack;
    struct buffer b;
    buffer_init(&b, 4u << 20);
    struct json_writer w;
    json_begin(&w, &b);
    json_object_begin(&w);
    if (a->from != a->to) {
        json_put_key(&w, "from");
        json_put_uint(&w, a->from);
    }
    json_put_key(&w, "batch");
    json_put_uint(&w, a->to);
    json_put_key(&w, "rows");
    json_put_int(&w, a->rows);
    json_put_key(&w, "written");
    json_array_begin(&w);
    for (uint32_t i = 0; i < a->range_count; i++) {
        json_object_begin(&w);
        json_put_key(&w, "partition");
        json_put_string(&w, a->ranges[i].partition);
        json_put_key(&w, "bucket");
        json_put_uint(&w, a->ranges[i].bucket);
        json_put_key(&w, "first");
        json_put_uint(&w, a->ranges[i].first);
        json_put_key(&w, "last");
        json_put_uint(&w, a->ranges[i].last);
        json_object_end(&w);
    }
    json_array_end(&w);
    if (a->more) {
        json_put_key(&w, "more");
        json_put_bool(&w, true);
    }
    json_put_key(&w, "duplicate");
    json_put_bool(&w, a->duplicate);
    json_object_end(&w);
    struct slices message = {0};
    slices_take(&message, flight_bytes_encode(b.data, b.size));
    buffer_deinit(&b);
    ranges_free(a->ranges, a->range_count);
    *a = (struct ack){0};
    rpc_call_send(p->call, &message);
}

// ---- ending

static void finish_failed(struct put *p) {
    if (rpc_call_finished(p->call)) return;
    timer_stop(&p->grace);
    collect(p);
    if (p->ack.any && !rpc_call_sending(p->call)) {
        send_ack(p); // the status follows when it was sent, or overtakes it
    }
    char extra[96] = "";
    if (p->error_has_batch) {
        if (p->acked) snprintf(extra, sizeof extra, "\"batch\":%" PRIu64 ",\"acked\":%" PRIu64, p->error_batch, p->acked - 1);
        else snprintf(extra, sizeof extra, "\"batch\":%" PRIu64 ",\"acked\":-1", p->error_batch);
    }
    flight_finish(p->call, &p->error, extra[0] ? extra : NULL);
}

static void on_grace(struct timer *t) { finish_failed(container_of(t, struct put, grace)); }

static void fail(struct put *p, const struct error *e, bool has_batch, uint64_t batch) {
    if (p->failed) return;
    p->failed = true;
    p->error = *e;
    p->error_has_batch = has_batch;
    p->error_batch = batch;
    if (has_batch) error_context(&p->error, "batch %" PRIu64, batch);
    if (p->batches) timer_start(&p->grace, ERROR_GRACE_NS);
    else finish_failed(p);
}

static void pump(struct put *p) {
    if (p->closed || rpc_call_finished(p->call)) return;
    if (p->failed) {
        if (p->batches == 0) finish_failed(p);
        return;
    }
    collect(p);
    if (p->ack.any && !rpc_call_sending(p->call)) send_ack(p);
    if (p->half_closed || p->draining) {
        if (p->batches || p->ack.any || rpc_call_sending(p->call)) return;
        struct error e = {0};
        if (!p->half_closed) error_set(&e, MINK_UNAVAILABLE, "NODE_DRAINING", "the node is going away; send what was not acknowledged to another one");
        flight_finish(p->call, &e, NULL);
    } else if (!rpc_call_receiving(p->call) && p->bytes < p->server->config.put_bytes_max && p->batches < p->server->config.put_batches_max) {
        rpc_call_receive(p->call);
    }
}

static void on_appended(struct node_append *a) {
    struct put_batch *b = container_of(a, struct put_batch, append);
    struct put *p = b->put;
    p->bytes -= b->bytes;
    p->batches--;
    b->done = true;
    b->duplicate = a->duplicate;
    if (a->code == MINK_OK) {
        metric_observe_ns(&ack_latency, shard_now_ns(a->shard) - b->arrived_ns); // the call may be gone
        b->ranges = mem_new_array(struct range, a->range_count + 1);
        b->range_count = a->range_count;
        for (uint32_t i = 0; i < a->range_count; i++) {
            const struct node_range *r = &a->ranges[i];
            b->ranges[i] = (struct range){r->partition ? mem_strdup(r->partition) : NULL, r->bucket, r->first, r->last};
        }
    } else {
        // It and what came after it is not acknowledged: the queue is cut here.
        b->done = false;
        if (!p->closed) fail(p, &a->error, true, b->number);
    }
    if (p->closed) settle(p);
    else pump(p);
}

// ---- batches

static size_t room(size_t header_size) { return batch_head_size(0, 0, header_size); }

static enum mink_code append(struct put *p, struct flight_data *d, struct error *e) {
    bool has_sequence = false;
    uint32_t sequence = 0;
    if (d->app_metadata.size) MINK_TRY(put_sequence_parse(d->app_metadata.data, d->app_metadata.size, &has_sequence, &sequence, e));
    if (p->command.writer && !has_sequence) {
        error_set(e, MINK_INVALID, "SEQUENCE_MISSING", "a batch of writer %" PRIu64 " has no sequence number", p->command.writer);
        error_hint(e, "send {\"seq\":n} as the batch's app_metadata, from 0");
        return MINK_INVALID;
    }
    if (has_sequence && p->command.writer == 0) {
        error_set(e, MINK_INVALID, "WRITER_MISSING", "a batch has a sequence number but the put command names no writer");
        error_hint(e, "get a writer id from action init-writer and put \"writer\":id into the command");
        return MINK_INVALID;
    }
    struct arrow_batch decoded, conformed;
    struct ipc_batch_info info;
    MINK_TRY(ipc_decoder_batch(p->decoder, d->header, d->body, &decoded, &info, e));
    enum mink_code code = conform_apply(p->plan, &decoded, &conformed, e);
    arrow_batch_deinit(&decoded);
    if (code != MINK_OK) return code;
    struct put_batch *b = mem_new(struct put_batch);
    b->put = p;
    b->number = p->number;
    b->rows = conformed.row_count;
    b->bytes = d->slab.size + d->header.size;
    b->arrived_ns = shard_now_ns(rpc_call_shard(p->call));
    b->append = (struct node_append){.shard = rpc_call_shard(p->call),
                                     .on_done = on_appended,
                                     .table = p->table,
                                     .partition = p->command.partition,
                                     .bucket = p->command.bucket,
                                     .create_partition = p->command.create_partition,
                                     .writer_id = p->command.writer,
                                     .writer_epoch = p->command.writer_epoch,
                                     .sequence = sequence,
                                     .has_sequence = has_sequence,
                                     .batch = conformed};
    if (p->identity && info.plain && d->slab.size) {
        b->append.slab = d->slab;
        b->append.slab_data = d->slab_data;
        b->append.message = ipc_rewrite(d->header);
        b->append.body_size = d->body.size;
        d->slab = slice_empty();
    }
    *p->last = b;
    p->last = &b->next;
    p->batches++;
    p->bytes += b->bytes;
    metric_add(&batches_in, 1);
    metric_add(&rows_in, (unsigned long long)b->rows);
    node_append(p->server->node, &b->append);
    return MINK_OK;
}

static const char *const meta_columns[] = {"_log_offset", "_commit_timestamp", "_bucket", "_partition", "_change_type", NULL};

static enum mink_code take_schema(struct put *p, struct slice header, struct error *e) {
    if (p->schema) return error_set(e, MINK_INVALID, "SECOND_SCHEMA", "the stream has a schema already");
    MINK_TRY(ipc_decode_schema(header, &p->schema, e));
    MINK_TRY(conform_plan_make(node_table_def(p->table), p->schema, meta_columns, &p->plan, e));
    p->identity = conform_plan_identity(p->plan);
    p->decoder = ipc_decoder_new(p->schema, p->server->config.batch_bytes_max);
    return MINK_OK;
}

static enum mink_code check_command(struct put *p, struct error *e) {
    struct put_command *c = &p->command;
    if (c->table.suffix[0]) return error_set(e, MINK_INVALID, "READ_ONLY", "%s.%s$%s can only be read", c->table.database, c->table.name, c->table.suffix);
    MINK_TRY(node_table_find(p->server->node, c->table.database, c->table.name, &p->table, e));
    struct table_def *def = node_table_def(p->table);
    if (c->mode != PUT_DEFAULT && c->mode != PUT_APPEND) {
        static const char *const names[] = {"", "append", "upsert", "delete", "partial"};
        error_set(e, MINK_INVALID, "APPEND_ONLY", "%s.%s is a log table: rows are appended, mode %s needs a primary key", def->database, def->name,
                  names[c->mode]);
        error_about(e, "mode", "append", names[c->mode]);
        return MINK_INVALID;
    }
    if (c->bucket >= 0 && (uint32_t)c->bucket >= def->bucket_num)
        return error_set(e, MINK_INVALID, "BUCKET_OUT_OF_RANGE", "bucket %" PRId32 ": %s.%s has buckets 0 to %" PRIu32, c->bucket, def->database, def->name,
                         def->bucket_num - 1);
    if (c->writer && c->bucket < 0 && def->bucket_num > 1) {
        error_set(e, MINK_INVALID, "BUCKET_NEEDED", "an idempotent writer writes to one bucket");
        error_hint(e, "add \"bucket\" to the put command");
        return MINK_INVALID;
    }
    return MINK_OK;
}

static enum mink_code take_command(struct put *p, struct slice descriptor, struct error *e) {
    MINK_TRY(flight_descriptor_decode(descriptor, &p->descriptor, e));
    const struct flight_descriptor *d = &p->descriptor;
    if (d->type == FLIGHT_DESCRIPTOR_PATH) {
        put_command_init(&p->command);
        p->has_command = true;
        MINK_TRY(table_ref_from_path(d->path, d->path_count, &p->command.table, &p->command.partition, e));
    } else if (d->type == FLIGHT_DESCRIPTOR_CMD) {
        if (d->cmd.size && d->cmd.data[0] == 0x0a) return flight_sql_refused(e);
        MINK_TRY(put_command_parse(d->cmd.data, d->cmd.size, &p->command, e));
        p->has_command = true;
    } else {
        error_set(e, MINK_INVALID, "BAD_DESCRIPTOR", "the descriptor is neither a path nor a command");
        error_hint(e, "use a path [database, table] or a command {\"table\":\"database.table\"}");
        return MINK_INVALID;
    }
    return check_command(p, e);
}

static enum mink_code take_message(struct put *p, struct flight_data *d, bool *is_batch, struct error *e) {
    *is_batch = false;
    if (!p->has_command) {
        if (!d->has_descriptor) {
            error_set(e, MINK_INVALID, "NO_DESCRIPTOR", "the first message of a DoPut must carry a descriptor");
            return MINK_INVALID;
        }
        MINK_TRY(take_command(p, d->descriptor, e));
    }
    if (d->header.size == 0) {
        if (d->body.size) return error_set(e, MINK_INVALID, "BAD_MESSAGE", "a message has a body but no data_header");
        return MINK_OK; // a descriptor or metadata alone
    }
    struct ipc_message_info info;
    *is_batch = p->schema != NULL;
    MINK_TRY(ipc_peek(d->header, &info, e));
    *is_batch = info.kind == IPC_BATCH;
    if (info.kind == IPC_SCHEMA) return take_schema(p, d->header, e);
    if (info.kind == IPC_NONE) return error_set(e, MINK_INVALID, "BAD_ARROW", "a message is neither schema, dictionary nor record batch");
    if (p->schema == NULL)
        return error_set(e, MINK_INVALID, "NO_SCHEMA", "a %s came before the schema", info.kind == IPC_BATCH ? "record batch" : "dictionary");
    if (info.body_size > d->body.size)
        return error_set(e, MINK_INVALID, "TRUNCATED_BODY", "the message announces a body of %" PRIu64 " bytes and brings %zu", info.body_size, d->body.size);
    if (d->body.size > p->server->config.batch_bytes_max) {
        error_set(e, MINK_INVALID, "BATCH_TOO_LARGE", "a batch of %zu bytes: at most %" PRIu32 " are taken", d->body.size, p->server->config.batch_bytes_max);
        error_hint(e, "send it in several batches");
        return MINK_INVALID;
    }
    if (info.kind == IPC_DICTIONARY) return ipc_decoder_dictionary(p->decoder, d->header, d->body, e);
    return append(p, d, e);
}

static void on_message(struct rpc_call *c, const struct slices *message) {
    struct put *p = rpc_call_state(c);
    struct error e;
    if (message == NULL) {
        p->half_closed = true;
        if (!p->has_command) {
            error_set(&e, MINK_INVALID, "NO_DESCRIPTOR", "the stream ended before its first message");
            fail(p, &e, false, 0);
        }
        pump(p);
        return;
    }
    if (p->failed || p->draining) return;
    struct flight_data d;
    bool is_batch = p->schema != NULL;
    enum mink_code code = flight_data_parse(message, room, &d, &e);
    if (code == MINK_OK) code = take_message(p, &d, &is_batch, &e);
    flight_data_deinit(&d);
    if (code != MINK_OK) {
        fail(p, &e, is_batch, p->number);
    } else {
        if (is_batch) p->number++;
        pump(p);
    }
}

static void on_sent(struct rpc_call *c) { pump(rpc_call_state(c)); }

static void on_cancelled(struct rpc_call *c) {
    struct put *p = rpc_call_state(c);
    struct error e;
    error_set(&e, MINK_CANCELLED, "CANCELLED", "the client cancelled the call");
    timer_stop(&p->grace);
    flight_finish(c, &e, NULL);
}

// What was taken in is acknowledged first.
static void on_drain(struct rpc_call *c) {
    struct put *p = rpc_call_state(c);
    p->draining = true;
    pump(p);
}

static void on_closed(struct rpc_call *c) {
    struct put *p = rpc_call_state(c);
    timer_stop(&p->grace);
    p->closed = true;
    settle(p);
}

static const struct rpc_call_ops ops = {on_message, on_sent, on_cancelled, on_drain, on_closed};

void flight_do_put(void *server, struct rpc_call *c) {
    struct put *p = mem_new(struct put);
    p->server = server;
    p->call = c;
    p->last = &p->first;
    timer_init(&p->grace, rpc_call_shard(c), on_grace);
    flight_server_hold(p->server);
    rpc_call_accept(c, &ops, p, NULL, 0);
    rpc_call_receive(c);
}
