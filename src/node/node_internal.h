// SPDX-License-Identifier: Apache-2.0
// node_internal.h: the insides of a node; shared by node_*.c, host.c.
//
//   node_append.c   split by partition and bucket → one part a bucket → host_append
//   host.c          a shard and the buckets that live on it: opened on their first append, many by one command
//   node_scan.c     cursors over buckets; reads go to the stream layer directly, on the cursor's shard
//   node_admin.c    DDL, writer ids, flush → meta, stream
//   node_jobs.c     what happens by itself, on timers of shards[0]
//
// Lock order: node.lock → scan.lock → host.lock; all are held for a few instructions, none across a call that waits.
#ifndef MINK_NODE_NODE_INTERNAL_H
#define MINK_NODE_NODE_INTERNAL_H
#include <pthread.h>

#include "bucket/bucket.h"
#include "node/node.h"

struct hosted;
struct part;

// ---- a shard and its buckets
struct host {
    struct node *node;
    struct shard *shard;
    // Guards the map against node_attachment on shards[0]; changed by the shard alone, which reads it without.
    pthread_mutex_t lock;
    struct hosted **slots; // open addressing by stream id; capacity a power of two
    uint32_t count, capacity;
    struct hosted *first, *last; // in order of opening: what iterates goes along it
    struct hosted *to_open, **to_open_last;
    bool opening;             // a stream_open is on its way
    struct task pump;         // collects what arrives in a turn into one stream_open
    bool pump_posted, stopped;
};
void host_init(struct host *h, struct node *n, struct shard *shard);
void host_append(struct host *h, struct part *p);           // on its shard
void host_each(struct host *h, void (*visit)(struct hosted *b, void *ctx), void *ctx); // on its shard
void host_close_dropped(struct host *h);                    // buckets whose streams are gone from the catalog; on its shard
void host_close_all(struct host *h, void (*on_closed)(void *ctx), void *ctx); // on its shard; after the last append was answered
void host_deinit(struct host *h);
struct slice host_attachment(struct host *h, uint64_t stream_id, uint64_t committed_end); // any thread
void host_refresh(struct host *h, uint64_t table_id, struct table_def *def); // on its shard: a new definition of a table
uint32_t host_expire_writers(struct host *h, int64_t before_ms);             // on its shard; returns writers left

// One bucket's share of a node_append.
struct append_state;
struct part {
    struct bucket_append append;
    struct task task;
    struct append_state *state;
    struct part *next;     // waits for its bucket to open
    uint64_t stream_id;
    uint32_t bucket, group; // group: index of the partition's name
};
void part_done(struct part *p); // answered: code, error and offsets are in p->append; any thread
struct table_def *part_def(struct part *p);
uint64_t part_table_id(struct part *p);

// ---- per table, as long as the node lives
struct table_state { uint64_t table_id; atomic_uint next_bucket; uint64_t trim_due_ns; };

struct node_table {
    atomic_uint refs;
    struct catalog_table table;
};

// Appends that wait for a partition to be created. While there are any, later appends to the table queue up behind them, so that a
// connection's batches keep their order.
struct pending_table {
    struct pending_table *next;
    struct node *node;
    uint64_t table_id;
    struct append_state *first, **last;
    uint32_t proposals; // not yet answered
    struct task task;
};

struct jobs;
struct death;
enum node_stage { NODE_OPENING, NODE_READY, NODE_CLOSING, NODE_FAILED };

struct node {
    struct node_config config;
    struct meta *meta;
    struct catalog *catalog;
    struct stream_store *streams;
    bool streams_open;
    struct host *hosts;
    uint32_t host_count;
    atomic_int stage;
    atomic_ulong refs; // requests in flight, and one that node_close drops
    atomic_bool writers_seen;
    struct jobs *jobs;
    pthread_mutex_t lock; // guards what follows
    struct error failure; // stage FAILED
    struct death *death;  // node_close was called
    struct node_scan *scans;
    struct pending_table *pending;
    struct table_state **tables; // sorted by id
    uint32_t table_count, table_capacity;
};

// A request is let in, or told why not: UNAVAILABLE [NODE_STARTING], [NODE_DRAINING], FENCED after a fatal error.
enum mink_code node_enter(struct node *n, struct error *e) MINK_MUST_CHECK;
void node_leave(struct node *n); // any thread
void node_close_dropped(struct node *n); // live buckets of streams that are gone from the catalog close
struct host *node_host(struct node *n, uint64_t stream_id);
struct table_state *node_table_state(struct node *n, uint64_t table_id);
static inline struct shard *node_shard(struct node *n) { return n->config.shards[0]; }
// The stream of a bucket. partition: NULL when the table has none. INVALID [BUCKET_OUT_OF_RANGE] …; NOT_FOUND [PARTITION_NOT_FOUND].
enum mink_code node_find_stream(struct node *n, const struct catalog_table *t, const char *partition, int32_t bucket, uint64_t *out_stream_id, struct error *e) MINK_MUST_CHECK;
enum mink_code node_refuse_primary_key(const struct table_def *d, struct error *e) MINK_MUST_CHECK; // UNSUPPORTED [PRIMARY_KEY_TABLES]
void node_post_hosts(struct node *n, void (*fn)(struct host *h, void *ctx), void *ctx, void (*done)(void *ctx)); // each on its shard; done on shards[0]

// ---- scans
void node_scans_poke(struct node *n);                        // the catalog changed: followers look again
void node_scans_stop(struct node *n, const struct error *why);

// ---- jobs
struct jobs *jobs_new(struct node *n);
void jobs_start(struct jobs *j);   // the node is ready
void jobs_applied(struct jobs *j); // commands were applied: there may be something to do; on shards[0]
void jobs_kick(struct jobs *j); // a table was created or altered: look at all of them soon; on shards[0]
void jobs_stop(struct jobs *j); // on shards[0]; what runs holds the node until it has ended
void jobs_free(struct jobs *j);
#endif
