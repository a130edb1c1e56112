// SPDX-License-Identifier: Apache-2.0
// node.h: one process of Mink: hosts buckets, routes requests, runs jobs. The one API of all front ends.
//
// Flow      front end (its own shard) → node_append / node_scan_next / node_admin → bucket's shard → back to the request's shard.
// Owner     Any thread may call; completions on request->shard, exactly once, never before the call returns.
#ifndef MINK_NODE_NODE_H
#define MINK_NODE_NODE_H
#include "base/executor.h"
#include "batch/batch.h"
#include "bucket/scan.h"
#include "stream/stream.h"

struct node_config {
    struct object_store *objects;  // closed by the node
    struct meta_log *meta_log;     // closed by the node
    struct shard *const *shards; uint32_t shard_count; // [0] also hosts the stream layer and metadata; owned by the caller
    struct work_pool *work;
    bool sole_process;             // the process lock is held: earlier incarnations are dead, take over at once
    struct stream_config stream;   // limits; shard, objects, meta, callbacks are filled in by the node
    struct table_defaults defaults;
    uint32_t batch_bytes_max;      // [64 MiB]
    uint64_t writer_expiry_ms;     // [7 days]
    uint64_t checkpoint_every;     // commands between checkpoints of the metadata [10,000]
    void (*on_fatal)(void *ctx, const struct error *e); void *ctx;
};
struct node;
// Any thread; on_ready on shards[0]. *out is set at once; when it could not be opened, node_close is still due.
void node_open(const struct node_config *config, struct node **out, void (*on_ready)(void *ctx, enum mink_code code, const struct error *e), void *ctx);
// After on_ready. Requests in flight end first (abrupt: with UNKNOWN_OUTCOME); scans end with UNAVAILABLE and may be closed before or after. on_closed on shards[0].
void node_close(struct node *n, bool abrupt, void (*on_closed)(void *ctx), void *ctx);
bool node_ready(struct node *n, struct error *why_not);

// ---- tables
struct node_table; // a counted view of one table at one schema version
enum mink_code node_table_find(struct node *n, const char *database, const char *name, struct node_table **out, struct error *e) MINK_MUST_CHECK;
void node_table_unref(struct node_table *t);
struct table_def *node_table_def(struct node_table *t); // borrowed
uint64_t node_table_id(struct node_table *t);

enum node_admin_op { NODE_CREATE_DATABASE, NODE_DROP_DATABASE, NODE_CREATE_TABLE, NODE_ALTER_TABLE_OPTIONS, NODE_DROP_TABLE, NODE_CREATE_PARTITION, NODE_DROP_PARTITION, NODE_INIT_WRITER, NODE_FLUSH, NODE_SYNC };
struct node_admin {
    struct task task; struct shard *shard; void (*on_done)(struct node_admin *a);
    enum node_admin_op op;
    const char *database, *table, *partition, *comment; // the caller's until on_done
    struct table_def *def;      // create: a reference is taken
    const struct table_option *set; uint32_t set_count; const char *const *reset; uint32_t reset_count;
    bool if_exists, if_not_exists, cascade;
    enum mink_code code; struct error error;
    uint64_t id; bool existed;
    void *private_state;
};
void node_admin(struct node *n, struct node_admin *a);
// Listings, from the catalog: any thread, at once. JSON onto the writer: what the actions answer.
void node_list_databases(struct node *n, char ***names, uint32_t *count);
void node_list_tables(struct node *n, const char *database, struct catalog_table **out, uint32_t *count);
void node_list_partitions(struct node *n, struct node_table *t, struct catalog_partition **out, uint32_t *count);
void node_describe_cluster(struct node *n, struct json_writer *w);
void node_describe_table(struct node *n, struct node_table *t, struct json_writer *w); // rows, bytes, offsets per bucket
struct table_defaults node_defaults(struct node *n);

// ---- append
struct node_range { const char *partition; uint32_t bucket; uint64_t first, last; }; // inclusive; partition NULL when unpartitioned
struct node_append {
    struct task task; struct shard *shard; void (*on_done)(struct node_append *a);
    struct node_table *table;       // borrowed until on_done
    const char *partition;          // NULL = from the rows (or unpartitioned)
    int32_t bucket;                 // -1 = by the table's assignment
    bool create_partition;
    uint64_t writer_id; uint16_t writer_epoch; uint32_t sequence; bool has_sequence; // single-bucket appends only
    struct arrow_batch batch;       // in table order and types (conform_apply); taken
    // When the batch arrived in stored form (conform identity, nothing to split), its bytes: used instead of encoding `batch` again.
    struct slice slab; uint8_t *slab_data; struct slice message; uint64_t body_size; // slab empty = none; taken
    // results
    enum mink_code code; struct error error;
    struct node_range *ranges; uint32_t range_count; // freed by the node after on_done returned; the request itself may be gone by then
    bool duplicate;
    void *private_state;
};
void node_append(struct node *n, struct node_append *a);

// ---- scan: a pull cursor over one or all buckets
struct node_scan_bucket { const char *partition; int32_t bucket; };
enum node_from { NODE_FROM_EARLIEST, NODE_FROM_LATEST, NODE_FROM_OFFSET, NODE_FROM_TIME };
enum node_until { NODE_UNTIL_NOW, NODE_UNTIL_OFFSET, NODE_UNTIL_NEVER };
struct node_scan_config {
    struct shard *shard;
    struct node_table *table;      // a reference is taken
    const struct scan_request *request;
    const char *partition;         // NULL = all
    int32_t bucket;                // -1 = all
    enum node_from from; int64_t from_value; // offset or ms
    enum node_until until; uint64_t until_offset;
    int64_t limit;                 // rows; -1 = none
    uint32_t read_bytes;           // [1 MiB] asked per step and bucket
};
struct node_scan; // all calls on its shard but node_scan_cancel
enum mink_code node_scan_open(struct node *n, const struct node_scan_config *config, struct node_scan **out, struct error *e) MINK_MUST_CHECK;
struct arrow_schema *node_scan_schema(struct node_scan *s); // borrowed
// One step: messages of one bucket, or end, or (following) waits until there is something. One call at a time.
struct node_scan_next {
    struct task task; void (*on_done)(struct node_scan_next *x);
    enum mink_code code; struct error error; // CANCELLED after node_scan_cancel
    bool end;
    const char *partition; int32_t bucket;
    struct scan_message *messages; uint32_t message_count; // the caller frees: scan_messages_free
    uint64_t first, next;          // of that bucket: where it stood before these messages, and the resume offset after them
};
void node_scan_next(struct node_scan *s, struct node_scan_next *x);
// Where each bucket of the scan stands, behind what the last next gave: for resume tokens. On the scan's shard, also while one waits.
struct node_scan_position { const char *partition; int32_t bucket; uint64_t next; };
void node_scan_positions(struct node_scan *s, struct node_scan_position **out, uint32_t *count); // mem_free
// Changes a running scan, on its shard: between calls of next, or while one waits. What was being read of that bucket is not given out any more.
// OUT_OF_RANGE for a seek outside of what is kept; NOT_FOUND [NOT_SUBSCRIBED]; EXISTS [ALREADY_SUBSCRIBED].
enum mink_code node_scan_seek(struct node_scan *s, const char *partition, int32_t bucket, uint64_t offset, struct error *e) MINK_MUST_CHECK;
enum mink_code node_scan_pause(struct node_scan *s, const char *partition, int32_t bucket, bool paused, struct error *e) MINK_MUST_CHECK;
enum mink_code node_scan_add(struct node_scan *s, const char *partition, int32_t bucket, enum node_from from, int64_t from_value, struct error *e) MINK_MUST_CHECK;
enum mink_code node_scan_remove(struct node_scan *s, const char *partition, int32_t bucket, struct error *e) MINK_MUST_CHECK;
void node_scan_cancel(struct node_scan *s); // a waiting next ends with CANCELLED; any thread
void node_scan_close(struct node_scan *s);  // on its shard, after the last on_done; frees

struct node_offsets { struct task task; struct shard *shard; void (*on_done)(struct node_offsets *o); struct node_table *table; const char *partition; int32_t bucket; enum node_from at; int64_t at_value; enum mink_code code; struct error error; uint64_t offset; void *private_state; };
void node_offsets(struct node *n, struct node_offsets *o);
#endif
