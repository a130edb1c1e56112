// SPDX-License-Identifier: Apache-2.0
// GetFlightInfo, GetSchema, PollFlightInfo, ListFlights; and what a ticket asks for, checked against its table.
//
// GetFlightInfo pins a cut: each bucket's endpoint reads up to the high watermark of now ("until"), so the union of the endpoints is one
// consistent answer however late each of them is redeemed.
#include "base/mem.h"
#include "base/nearest.h"
#include "flight/flight_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// Beyond this a table gets one endpoint for all buckets, and no cut.
#define ENDPOINTS_MAX 4096

// ---- descriptors, tickets, tables

enum mink_code flight_descriptor_ticket(const struct flight_descriptor *d, struct ticket *out, struct error *e) {
    if (d->type == FLIGHT_DESCRIPTOR_PATH) {
        ticket_init(out);
        return table_ref_from_path(d->path, d->path_count, &out->table, &out->partition, e);
    }
    if (d->type == FLIGHT_DESCRIPTOR_CMD) {
        if (d->cmd.size && d->cmd.data[0] == 0x0a) return flight_sql_refused(e);
        return ticket_parse(d->cmd.data, d->cmd.size, out, e);
    }
    error_set(e, MINK_INVALID, "BAD_DESCRIPTOR", "the descriptor is neither a path nor a command");
    error_hint(e, "use a path [database, table] or a command {\"table\":\"database.table\"}");
    return MINK_INVALID;
}

enum mink_code flight_find_table(struct flight_server *s, const struct table_ref *ref, struct node_table **out, struct error *e) {
    MINK_TRY(node_table_find(s->node, ref->database, ref->name, out, e));
    if (ref->suffix[0] == 0) return MINK_OK;
    node_table_unref(*out);
    *out = NULL;
    error_set(e, MINK_UNSUPPORTED, "NO_CHANGELOG", "%s.%s is a log table and has no $%s", ref->database, ref->name, ref->suffix);
    error_hint(e, "its rows are its changes: read %s.%s with \"meta\":[\"_change_type\",\"_log_offset\",\"_commit_timestamp\"]", ref->database, ref->name);
    return MINK_UNSUPPORTED;
}

static const char *const meta_names[SCAN_META_COUNT] = {[SCAN_META_LOG_OFFSET] = "_log_offset",
                                                        [SCAN_META_COMMIT_TIMESTAMP] = "_commit_timestamp",
                                                        [SCAN_META_BUCKET] = "_bucket",
                                                        [SCAN_META_PARTITION] = "_partition",
                                                        [SCAN_META_CHANGE_TYPE] = "_change_type"};

enum mink_code flight_scan_request(const struct ticket *t, struct scan_request *out, struct error *e) {
    *out = (struct scan_request){.columns = t->columns,
                                 .column_count = t->column_count,
                                 .all_columns = t->all_columns,
                                 .filter = t->filter,
                                 .compression = t->compression,
                                 .message_bytes_max = t->batch_bytes};
    for (uint32_t i = 0; i < t->meta_count; i++) {
        struct nearest n;
        nearest_init(&n, t->meta[i]);
        int found = -1;
        for (int k = 0; k < SCAN_META_COUNT; k++) {
            nearest_offer(&n, meta_names[k]);
            if (strcmp(meta_names[k], t->meta[i]) == 0) found = k;
        }
        if (found < 0) {
            error_set(e, MINK_INVALID, "UNKNOWN_META", "there is no meta column %.64s", t->meta[i]);
            error_about(e, t->meta[i], NULL, NULL);
            if (nearest_found(&n)) error_hint(e, "did you mean %s?", nearest_found(&n));
            else error_hint(e, "known are _log_offset, _commit_timestamp, _bucket, _partition, _change_type");
            return MINK_INVALID;
        }
        for (uint32_t k = 0; k < out->meta_count; k++)
            if (out->meta[k] == (enum scan_meta)found) return error_set(e, MINK_INVALID, "DUPLICATE_COLUMN", "meta column %s is named twice", t->meta[i]);
        out->meta[out->meta_count++] = (enum scan_meta)found;
    }
    return MINK_OK;
}

enum mink_code flight_check_ticket(const struct ticket *t, struct table_def *def, int64_t now_ms, struct error *e) {
    if (t->expires_ms && now_ms > t->expires_ms) {
        error_set(e, MINK_INVALID, "TICKET_EXPIRED", "the ticket expired %" PRId64 " s ago", (now_ms - t->expires_ms) / 1000);
        error_hint(e, "ask GetFlightInfo for a new one");
        return MINK_INVALID;
    }
    if (t->snapshot)
        return error_set(e, MINK_UNSUPPORTED, "NO_SNAPSHOT", "%s.%s is a log table and has no snapshot; read it from \"earliest\"", def->database, def->name);
    if (t->lake && strcmp(t->lake, "only") == 0) return error_set(e, MINK_UNSUPPORTED, "NO_LAKE", "%s.%s has no lake history", def->database, def->name);
    if (t->as_of) return error_set(e, MINK_UNSUPPORTED, "NO_LAKE", "%s.%s has no lake history to travel in with as_of", def->database, def->name);
    if (t->bucket >= 0 && (uint32_t)t->bucket >= def->bucket_num)
        return error_set(e, MINK_INVALID, "BUCKET_OUT_OF_RANGE", "bucket %" PRId32 ": %s.%s has buckets 0 to %" PRIu32, t->bucket, def->database, def->name,
                         def->bucket_num - 1);
    bool one_bucket = (t->bucket >= 0 || def->bucket_num == 1) && (def->partition_by_count == 0 || t->partition);
    if (!one_bucket && (t->from == FROM_OFFSET || t->until == UNTIL_OFFSET)) {
        error_set(e, MINK_INVALID, "BUCKET_NEEDED", "an offset in \"%s\" belongs to one bucket", t->from == FROM_OFFSET ? "from" : "until");
        error_hint(e, def->partition_by_count ? "add \"bucket\" and \"partition\"" : "add \"bucket\"");
        return MINK_INVALID;
    }
    return MINK_OK;
}

// ---- the info of one table

struct bucket_end {
    struct node_offsets first, last;
    struct info *info;
};

struct info {
    struct flight_request *request;
    struct flight_descriptor descriptor;
    struct ticket ticket;
    struct node_table *table;
    struct catalog_partition *partitions;
    uint32_t partition_count;
    struct bucket_end *ends; // one an endpoint
    uint32_t end_count, waiting;
    bool poll;
};

static void info_free(struct flight_request *r) {
    struct info *i = r->state;
    flight_descriptor_deinit(&i->descriptor);
    ticket_deinit(&i->ticket);
    if (i->table) node_table_unref(i->table);
    if (i->partitions) catalog_free_partitions(i->partitions, i->partition_count);
    mem_free(i->ends);
    mem_free(i);
}

static enum mink_code shape_schema(struct table_def *def, const struct ticket *t, struct slice *out, struct error *e) {
    struct scan_request request;
    MINK_TRY(flight_scan_request(t, &request, e));
    struct scan_plan *plan;
    MINK_TRY(scan_plan_make(def, &request, &plan, e));
    *out = ipc_encode_schema(scan_plan_schema(plan), true);
    scan_plan_unref(plan);
    return MINK_OK;
}

static struct slice table_json(const struct table_def *def) {
    struct buffer b;
    buffer_init(&b, 16u << 20);
    struct json_writer w;
    json_begin(&w, &b);
    table_def_to_json(def, &w);
    struct slice s = buffer_take_slice(&b);
    buffer_deinit(&b);
    return s;
}

static struct slice ticket_text(const struct ticket *t) {
    struct buffer b;
    buffer_init(&b, TICKET_JSON_MAX);
    ticket_write(t, &b);
    struct slice s = buffer_take_slice(&b);
    buffer_deinit(&b);
    return s;
}

static void info_answer(struct info *i) {
    struct flight_request *r = i->request;
    struct table_def *def = node_table_def(i->table);
    struct slice schema = slice_empty();
    if (shape_schema(def, &i->ticket, &schema, &r->error) == MINK_OK) {
        int64_t now_ms = shard_wall_ms(rpc_call_shard(r->call));
        uint32_t count = i->end_count ? i->end_count : 1;
        struct flight_endpoint *endpoints = mem_new_array(struct flight_endpoint, count);
        struct flight_info info = {.schema = schema,
                                   .app_metadata = table_json(def),
                                   .descriptor = &i->descriptor,
                                   .endpoints = endpoints,
                                   .endpoint_count = count,
                                   .total_records = i->end_count ? 0 : -1,
                                   .total_bytes = -1};
        for (uint32_t k = 0; k < count; k++) {
            struct ticket t = i->ticket;
            t.expires_ms = now_ms + TICKET_LIFE_MS;
            if (i->end_count) {
                t.bucket = i->ends[k].last.bucket;
                t.partition = i->ends[k].last.partition;
                if (t.until == UNTIL_NOW) {
                    t.until = UNTIL_OFFSET;
                    t.until_offset = i->ends[k].last.offset;
                }
                info.total_records += (int64_t)(i->ends[k].last.offset - i->ends[k].first.offset);
            }
            endpoints[k].ticket = ticket_text(&t);
            endpoints[k].expires_ms = t.expires_ms;
        }
        flight_request_answer(r, i->poll ? flight_poll_info_encode(&info) : flight_info_encode(&info));
        for (uint32_t k = 0; k < count; k++) slice_unref(&endpoints[k].ticket);
        mem_free(endpoints);
        slice_unref(&info.app_metadata);
    }
    slice_unref(&schema);
    flight_request_done(r);
}

static void on_offset(struct node_offsets *o) {
    struct bucket_end *end = o->private_state;
    struct info *i = end->info;
    struct flight_request *r = i->request;
    if (o->code != MINK_OK && r->error.code == MINK_OK) r->error = o->error;
    bool last = --i->waiting == 0;
    if (!flight_request_returned(r) || !last) return;
    if (r->error.code != MINK_OK) flight_request_done(r);
    else info_answer(i);
}

static void ask_offset(struct info *i, struct bucket_end *end, struct node_offsets *o, const char *partition, int32_t bucket, enum node_from at,
                       int64_t value) {
    *o = (struct node_offsets){.shard = rpc_call_shard(i->request->call),
                               .on_done = on_offset,
                               .table = i->table,
                               .partition = partition,
                               .bucket = bucket,
                               .at = at,
                               .at_value = value,
                               .private_state = end};
    end->info = i;
    i->waiting++;
    flight_request_sent(i->request);
}

// One endpoint a bucket, of each partition that the ticket covers.
static enum mink_code list_buckets(struct info *i, struct error *e) {
    struct table_def *def = node_table_def(i->table);
    uint32_t partitions = 1;
    if (def->partition_by_count) {
        node_list_partitions(i->request->server->node, i->table, &i->partitions, &i->partition_count);
        partitions = i->partition_count;
        if (i->ticket.partition) {
            uint32_t found = UINT32_MAX;
            for (uint32_t p = 0; p < i->partition_count; p++)
                if (strcmp(i->partitions[p].name, i->ticket.partition) == 0) found = p;
            if (found == UINT32_MAX)
                return error_set(e, MINK_NOT_FOUND, "PARTITION_NOT_FOUND", "%s.%s has no partition %.200s", def->database, def->name, i->ticket.partition);
            partitions = 1;
            struct catalog_partition only = i->partitions[found];
            i->partitions[found] = i->partitions[0];
            i->partitions[0] = only;
        }
    } else if (i->ticket.partition) {
        return error_set(e, MINK_NOT_FOUND, "PARTITION_NOT_FOUND", "%s.%s is not partitioned", def->database, def->name);
    }
    uint64_t buckets = i->ticket.bucket >= 0 ? 1 : def->bucket_num;
    if (partitions * buckets > ENDPOINTS_MAX) return MINK_OK;
    i->ends = mem_new_array(struct bucket_end, partitions * buckets + 1);
    for (uint32_t p = 0; p < partitions; p++) {
        for (uint64_t b = 0; b < buckets; b++) {
            struct bucket_end *end = &i->ends[i->end_count++];
            const char *partition = def->partition_by_count ? i->partitions[p].name : NULL;
            int32_t bucket = i->ticket.bucket >= 0 ? i->ticket.bucket : (int32_t)b;
            ask_offset(i, end, &end->first, partition, bucket, flight_node_from(i->ticket.from), i->ticket.from_value);
            ask_offset(i, end, &end->last, partition, bucket, NODE_FROM_LATEST, 0);
        }
    }
    return MINK_OK;
}

static enum mink_code resolve(struct flight_request *r, struct slice body, struct info *i, struct error *e) {
    MINK_TRY(flight_descriptor_decode(body, &i->descriptor, e));
    MINK_TRY(flight_descriptor_ticket(&i->descriptor, &i->ticket, e));
    MINK_TRY(flight_find_table(r->server, &i->ticket.table, &i->table, e));
    return flight_check_ticket(&i->ticket, node_table_def(i->table), shard_wall_ms(rpc_call_shard(r->call)), e);
}

static struct info *info_new(struct flight_request *r) {
    struct info *i = mem_new(struct info);
    i->request = r;
    r->state = i;
    r->free_state = info_free;
    ticket_init(&i->ticket);
    return i;
}

static void answer_info(struct flight_request *r, struct slice body, bool poll) {
    struct info *i = info_new(r);
    i->poll = poll;
    if (resolve(r, body, i, &r->error) != MINK_OK || list_buckets(i, &r->error) != MINK_OK) {
        flight_request_done(r);
        return;
    }
    if (i->end_count == 0) {
        info_answer(i);
        return;
    }
    // All are prepared before the first is sent: an answer may not find a half-made list.
    for (uint32_t k = 0; k < i->end_count; k++) {
        node_offsets(r->server->node, &i->ends[k].first);
        node_offsets(r->server->node, &i->ends[k].last);
    }
}

static void handle_info(struct flight_request *r, struct slice body) { answer_info(r, body, false); }
static void handle_poll(struct flight_request *r, struct slice body) { answer_info(r, body, true); }

static void handle_schema(struct flight_request *r, struct slice body) {
    struct info *i = info_new(r);
    struct slice schema = slice_empty();
    if (resolve(r, body, i, &r->error) == MINK_OK && shape_schema(node_table_def(i->table), &i->ticket, &schema, &r->error) == MINK_OK)
        flight_request_answer(r, flight_bytes_encode(schema.data, schema.size));
    slice_unref(&schema);
    flight_request_done(r);
}

// ---- all tables

static void list_one(struct flight_request *r, const struct catalog_table *t) {
    struct ticket ticket;
    ticket_init(&ticket);
    snprintf(ticket.table.database, sizeof ticket.table.database, "%s", t->def->database);
    snprintf(ticket.table.name, sizeof ticket.table.name, "%s", t->def->name);
    char *path[] = {t->def->database, t->def->name};
    struct flight_descriptor descriptor = {.type = FLIGHT_DESCRIPTOR_PATH, .path = path, .path_count = 2};
    struct flight_endpoint endpoint = {.ticket = ticket_text(&ticket)};
    struct flight_info info = {.schema = ipc_encode_schema(t->def->arrow, true),
                               .app_metadata = table_json(t->def),
                               .descriptor = &descriptor,
                               .endpoints = &endpoint,
                               .endpoint_count = 1,
                               .total_records = -1,
                               .total_bytes = -1};
    flight_request_answer(r, flight_info_encode(&info));
    slice_unref(&endpoint.ticket);
    slice_unref(&info.schema);
    slice_unref(&info.app_metadata);
}

// Criteria: nothing = all, a database, or a beginning of "database.table" followed by *.
static bool listed(const struct table_def *def, const char *criteria, size_t size) {
    if (size == 0) return true;
    char name[512];
    snprintf(name, sizeof name, "%s.%s", def->database, def->name);
    if (criteria[size - 1] == '*') return strncmp(name, criteria, size - 1) == 0;
    return strlen(def->database) == size && strncmp(def->database, criteria, size) == 0;
}

static void handle_list(struct flight_request *r, struct slice body) {
    struct slice criteria;
    if (flight_bytes_decode(body, "Criteria", &criteria, &r->error) == MINK_OK) {
        struct catalog_table *tables;
        uint32_t count;
        node_list_tables(r->server->node, NULL, &tables, &count);
        for (uint32_t i = 0; i < count; i++)
            if (listed(tables[i].def, (const char *)criteria.data, criteria.size)) list_one(r, &tables[i]);
        catalog_free_tables(tables, count);
        slice_unref(&criteria);
    }
    flight_request_done(r);
}

void flight_get_info(void *server, struct rpc_call *c) { flight_request_start(server, c, handle_info); }
void flight_poll_info(void *server, struct rpc_call *c) { flight_request_start(server, c, handle_poll); }
void flight_get_schema(void *server, struct rpc_call *c) { flight_request_start(server, c, handle_schema); }
void flight_list(void *server, struct rpc_call *c) { flight_request_start(server, c, handle_list); }
