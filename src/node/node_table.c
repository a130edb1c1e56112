// SPDX-License-Identifier: Apache-2.0
// Tables as front ends see them: views, listings, descriptions. All from the catalog and the stream layer's extents, at once, on any thread.
#include "base/mem.h"
#include "node/node_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum mink_code node_refuse_primary_key(const struct table_def *d, struct error *e) {
    if (table_def_is_log(d)) return MINK_OK;
    return error_set(e, MINK_UNSUPPORTED, "PRIMARY_KEY_TABLES", "primary-key tables are not served yet");
}

struct table_state *node_table_state(struct node *n, uint64_t table_id) {
    pthread_mutex_lock(&n->lock);
    uint32_t low = 0, high = n->table_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (n->tables[middle]->table_id < table_id) low = middle + 1;
        else high = middle;
    }
    if (low == n->table_count || n->tables[low]->table_id != table_id) {
        if (n->table_count == n->table_capacity) {
            n->table_capacity = n->table_capacity ? n->table_capacity * 2 : 8;
            n->tables = mem_realloc(n->tables, n->table_capacity * sizeof *n->tables);
        }
        memmove(&n->tables[low + 1], &n->tables[low], (n->table_count - low) * sizeof *n->tables);
        n->tables[low] = mem_new(struct table_state);
        n->tables[low]->table_id = table_id;
        n->table_count++;
    }
    struct table_state *t = n->tables[low];
    pthread_mutex_unlock(&n->lock);
    return t;
}

enum mink_code node_table_find(struct node *n, const char *database, const char *name, struct node_table **out, struct error *e) {
    MINK_TRY(node_enter(n, e));
    struct node_table *t = mem_new(struct node_table);
    enum mink_code code = catalog_find_table(n->catalog, database, name, &t->table, e);
    if (code == MINK_OK) {
        atomic_init(&t->refs, 1);
        *out = t;
    } else {
        mem_free(t);
    }
    node_leave(n);
    return code;
}

void node_table_unref(struct node_table *t) {
    if (t == NULL || atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) != 1) return;
    catalog_table_deinit(&t->table);
    mem_free(t);
}

struct table_def *node_table_def(struct node_table *t) { return t->table.def; }
uint64_t node_table_id(struct node_table *t) { return t->table.table_id; }
struct table_defaults node_defaults(struct node *n) { return n->config.defaults; }

enum mink_code node_find_stream(struct node *n, const struct catalog_table *t, const char *partition, int32_t bucket, uint64_t *out_stream_id, struct error *e) {
    const struct table_def *d = t->def;
    uint64_t base = t->stream_base;
    if (bucket < 0 || (uint32_t)bucket >= d->bucket_num)
        return error_set(e, MINK_INVALID, "BUCKET_OUT_OF_RANGE", "bucket %" PRId32 ": %s.%s has buckets 0 to %" PRIu32, bucket, d->database, d->name, d->bucket_num - 1);
    if (d->partition_by_count == 0 && partition) return error_set(e, MINK_INVALID, "NOT_PARTITIONED", "table %s.%s has no partitions", d->database, d->name);
    if (d->partition_by_count) {
        struct catalog_partition p;
        if (partition == NULL) return error_set(e, MINK_INVALID, "PARTITION_MISSING", "table %s.%s is partitioned: name the partition", d->database, d->name);
        MINK_TRY(catalog_find_partition(n->catalog, t->table_id, partition, &p, e));
        base = p.stream_base;
        catalog_partition_deinit(&p);
    }
    *out_stream_id = base + (uint64_t)bucket;
    return MINK_OK;
}

void node_list_databases(struct node *n, char ***names, uint32_t *count) { catalog_list_databases(n->catalog, names, count); }
void node_list_tables(struct node *n, const char *database, struct catalog_table **out, uint32_t *count) { catalog_list_tables(n->catalog, database, out, count); }
void node_list_partitions(struct node *n, struct node_table *t, struct catalog_partition **out, uint32_t *count) { catalog_list_partitions(n->catalog, t->table.table_id, out, count); }

// ---- descriptions

static void put_uint(struct json_writer *w, const char *key, uint64_t v) {
    json_put_key(w, key);
    json_put_uint(w, v);
}

static void put_string(struct json_writer *w, const char *key, const char *v) {
    json_put_key(w, key);
    json_put_string(w, v);
}

// {"node":{"incarnation","ready","buckets_open"},"incarnations":[{"id","state","address","wal_committed"}],"catalog":{…}}
void node_describe_cluster(struct node *n, struct json_writer *w) {
    static const char *const states[] = {"live", "dead", "sealed"};
    struct error e;
    json_object_begin(w);
    if (node_enter(n, &e) == MINK_OK) {
        json_put_key(w, "node");
        json_object_begin(w);
        put_uint(w, "incarnation", stream_store_incarnation(n->streams));
        put_string(w, "address", n->config.stream.address);
        put_uint(w, "shards", n->config.shard_count);
        json_object_end(w);
        struct catalog_incarnation *list;
        uint32_t count;
        catalog_list_incarnations(n->catalog, &list, &count);
        json_put_key(w, "incarnations");
        json_array_begin(w);
        for (uint32_t i = 0; i < count; i++) {
            if (list[i].state == INCARNATION_SEALED) continue; // one per process start, for ever
            json_object_begin(w);
            put_uint(w, "id", list[i].id);
            put_string(w, "state", states[list[i].state]);
            put_string(w, "address", list[i].address);
            put_uint(w, "wal_committed", list[i].wal_committed);
            json_object_end(w);
        }
        json_array_end(w);
        mem_free(list);
        struct catalog_stats s;
        catalog_stats(n->catalog, &s);
        json_put_key(w, "catalog");
        json_object_begin(w);
        put_uint(w, "position", catalog_position(n->catalog));
        put_uint(w, "databases", s.databases);
        put_uint(w, "tables", s.tables);
        put_uint(w, "partitions", s.partitions);
        put_uint(w, "streams", s.streams);
        put_uint(w, "objects", s.objects);
        put_uint(w, "ranges", s.ranges);
        put_uint(w, "bytes", s.bytes);
        json_object_end(w);
        node_leave(n);
    } else {
        put_string(w, "error", e.message);
    }
    json_object_end(w);
}

struct description {
    struct node *node;
    struct json_writer *w;
    uint64_t rows;
    struct catalog_range *ranges; // of all buckets; an object may be in it many times
    uint32_t range_count, range_capacity;
};

#define RANGES_AT_ONCE 64

static void add_ranges(struct description *x, uint64_t stream_id, uint64_t start) {
    for (uint64_t at = start;;) {
        if (x->range_capacity - x->range_count < RANGES_AT_ONCE) {
            x->range_capacity = x->range_capacity * 2 + RANGES_AT_ONCE;
            x->ranges = mem_realloc(x->ranges, x->range_capacity * sizeof *x->ranges);
        }
        uint32_t count = catalog_ranges(x->node->catalog, stream_id, at, &x->ranges[x->range_count], RANGES_AT_ONCE);
        x->range_count += count;
        if (count < RANGES_AT_ONCE) return;
        at = x->ranges[x->range_count - 1].to;
    }
}

static void describe_buckets(struct description *x, uint64_t stream_base, uint32_t count, const char *partition) {
    for (uint32_t b = 0; b < count; b++) {
        struct stream_extent extent = stream_extent(x->node->streams, stream_base + b);
        if (!extent.found) continue;
        json_object_begin(x->w);
        if (partition) put_string(x->w, "partition", partition);
        put_uint(x->w, "bucket", b);
        put_uint(x->w, "start", extent.start);
        put_uint(x->w, "end", extent.high_watermark);
        json_object_end(x->w);
        x->rows += extent.high_watermark - extent.start;
        add_ranges(x, stream_base + b, extent.start);
    }
}

static int compare_objects(const void *a, const void *b) {
    const struct catalog_object_id *x = &((const struct catalog_range *)a)->object, *y = &((const struct catalog_range *)b)->object;
    if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
    if (x->incarnation != y->incarnation) return x->incarnation < y->incarnation ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

// {"table","id","schema_id","partitions","buckets":[{"partition","bucket","start","end"}],"rows","objects","object_bytes"}. Objects: those committed
// that hold rows of the table, perhaps beside rows of others; what is only in the WAL is not in them yet.
void node_describe_table(struct node *n, struct node_table *t, struct json_writer *w) {
    const struct table_def *d = t->table.def;
    struct description x = {.node = n, .w = w};
    struct catalog_partition *partitions = NULL;
    uint32_t count = 0;
    char *name = mem_printf("%s.%s", d->database, d->name);
    json_object_begin(w);
    put_string(w, "table", name);
    mem_free(name);
    put_uint(w, "id", t->table.table_id);
    put_uint(w, "schema_id", d->schema_id);
    if (d->partition_by_count) {
        catalog_list_partitions(n->catalog, t->table.table_id, &partitions, &count);
        put_uint(w, "partitions", count);
    }
    json_put_key(w, "buckets");
    json_array_begin(w);
    if (node_enter(n, NULL) == MINK_OK) {
        if (d->partition_by_count == 0) describe_buckets(&x, t->table.stream_base, d->bucket_num, NULL);
        for (uint32_t i = 0; i < count; i++) describe_buckets(&x, partitions[i].stream_base, partitions[i].bucket_count, partitions[i].name);
        node_leave(n);
    }
    json_array_end(w);
    if (d->partition_by_count) catalog_free_partitions(partitions, count);
    uint64_t objects = 0, bytes = 0;
    if (x.range_count) qsort(x.ranges, x.range_count, sizeof *x.ranges, compare_objects);
    for (uint32_t i = 0; i < x.range_count; i++) {
        if (i && compare_objects(&x.ranges[i - 1], &x.ranges[i]) == 0) continue;
        objects++;
        bytes += x.ranges[i].object_size;
    }
    mem_free(x.ranges);
    put_uint(w, "rows", x.rows);
    put_uint(w, "objects", objects);
    put_uint(w, "object_bytes", bytes);
    json_object_end(w);
}
