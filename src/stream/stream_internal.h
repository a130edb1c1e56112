// SPDX-License-Identifier: Apache-2.0
// stream_internal.h: the stream layer's state. Everything here belongs to the store's shard unless it says otherwise.
//
//   append → entry in its stream and in the open window → window closes (seq, bytes fixed) → upload → created → acknowledged in seq order
//   (visible) → committed into objects → payload kept as cache until evicted.
#ifndef MINK_STREAM_STREAM_INTERNAL_H
#define MINK_STREAM_STREAM_INTERNAL_H

#include "stream/object_format.h"
#include "stream/stream.h"

#include <pthread.h>

#define BLOCK_SIZE (1u << 20)
#define STREAM_OBJECT_MIN (8u << 20) // a stream with so much pending gets an object of its own
#define TAIL_GET_SIZE 65536

// ---- upload: one object under one key, attempted until it is there or cannot be (stream_upload.c)

enum upload_result { UPLOAD_CREATED, UPLOAD_FENCED, UPLOAD_FAILED };
struct upload;
struct upload_attempt {
    struct object_request request;
    struct upload *upload;
    uint64_t began_ns;
    bool busy;
};
#define ATTEMPTS_MAX 4
struct upload {
    struct stream_store *store;
    char key[OBJECT_KEY_TEXT];
    struct slices body;
    uint32_t crc32c;
    uint8_t content_id[16];
    enum object_priority priority;
    struct upload_attempt attempts[ATTEMPTS_MAX];
    struct object_request look; // at who has the key
    struct timer timer;         // hedge, retry, give up
    uint64_t began_ns, retry_ns;
    uint32_t tries, running;
    bool looking, settled, hedged;
    enum upload_result result;
    struct error error;         // why it failed, or who fenced
    void (*on_settled)(struct upload *u); // once; attempts may still run
    void (*on_idle)(struct upload *u);    // after on_settled, when no attempt runs any more: the memory may go
};
void upload_start(struct upload *u);

// ---- windows, entries

struct window_info { // of a closed window, as long as an uncommitted entry points to it
    uint64_t seq, size, index_size;
    uint32_t entries;        // uncommitted ones
    uint32_t block_count;
    struct object_block *blocks;
    bool dropped;            // an entry's payload was let go: commit by reference
};

struct entry {
    struct live *live;
    uint64_t offset_first, offset_end;
    int64_t ts_min, ts_max;
    uint32_t batches, crc32c, epoch;
    struct slices payload;   // emptied when dropped from the cache
    size_t bytes;
    struct window_info *window; // NULL once committed
    struct entry *cache_next;   // committed entries, oldest first
};

struct live { // a stream this process has touched
    uint64_t id;
    uint32_t epoch;          // 0 = not open for appending here
    uint64_t next;           // offset of the next append
    uint64_t committed_end;
    atomic_ullong high_watermark; // read by stream_extent from any thread
    struct entry **ring;     // entries in offset order; power of two
    uint32_t ring_first, ring_count, ring_capacity, visible_count;
    uint64_t pending_bytes;  // visible and uncommitted
    struct window *window;   // the open window that has blocks of this stream
    struct stream_watch *watches;
};
static inline struct entry *live_entry(const struct live *l, uint32_t i) { return l->ring[(l->ring_first + i) & (l->ring_capacity - 1)]; }

struct window {
    uint64_t seq;
    struct entry **entries;
    uint32_t entry_count, entry_capacity;
    struct stream_append *first, **last; // waiters, in order
    uint64_t bytes, began_ns;
    bool closed, created;
    struct upload upload;
    struct window_info *info;
    struct window *next;
};

#define DURATIONS 64
struct durations { uint64_t recent[DURATIONS]; uint32_t count; uint64_t p95_ns, p99_ns; };
#define SIZE_CLASSES 8

struct released { uint64_t from, upto, at_ns; bool *kept; struct released *next; }; // WAL objects to delete once the grace has passed

struct stream_store {
    struct stream_config config;
    struct shard *shard;
    struct object_store *objects;
    struct meta *meta;
    struct catalog *catalog;
    uint64_t incarnation;
    uint8_t cluster_id[16];
    bool open, ended, closing, abrupt;
    struct error end_reason;
    // opening (stream_store.c)
    void (*on_ready)(void *ctx, enum mink_code code, const struct error *e);
    void *ready_ctx;
    struct birth *birth;
    void (*on_closed)(void *ctx);
    void *closed_ctx;
    struct meta_proposal proposal; // of birth and close
    uint32_t busy;                 // things whose callbacks are still to come; close waits for none
    // streams
    pthread_rwlock_t map_lock;     // guards map against stream_extent; the shard writes
    struct live **map;
    uint32_t map_count, map_capacity;
    // windows
    struct window *current, *queue_first, **queue_last; // closed, not acknowledged, seq order
    uint32_t queue_count, puts_running;
    uint64_t next_seq, acked_end, wal_committed;
    struct timer linger;
    double tokens, puts_allowed, hedge_credit;
    uint64_t tokens_at_ns;
    uint32_t successes;
    struct durations durations[SIZE_CLASSES];
    _Atomic(uint64_t) admitted;    // unacknowledged bytes
    // acknowledged, uncommitted
    uint64_t pending_bytes, pending_since_ns, last_ack_ns;
    struct entry **pending; // visible and uncommitted, in order of acknowledgement; a running commit has taken its own
    uint32_t pending_entries, pending_capacity, pending_windows;
    struct commit *commit;
    bool commit_wanted;
    struct stream_job *commit_jobs; // linked through task.next
    struct timer commit_timer;
    uint64_t next_object_number;
    struct released *released_first, **released_last;
    struct timer delete_timer;
    // caches
    struct entry *cached_first, **cached_last; // committed entries with payload
    uint64_t tail_bytes;
    struct block_cache *blocks;
    struct marked { struct catalog_object_id id; uint64_t since_ns; } *marked; // first seen as marked
    uint32_t marked_count;
    uint64_t next_nonce;
};

// stream_store.c
void store_end(struct stream_store *s, const struct error *why); // fatal: refuse everything, answer waiters
void store_busy(struct stream_store *s, int delta);
struct live *store_live(struct stream_store *s, uint64_t stream_id); // makes it from the catalog; NULL when there is no such stream
struct live *store_find(struct stream_store *s, uint64_t stream_id); // NULL when not touched yet
uint64_t store_now(struct stream_store *s);
void store_content_id(struct stream_store *s, uint8_t out[16]);
void store_header(struct stream_store *s, struct object_header *h, enum object_kind kind, uint64_t subject, uint64_t seq, const uint8_t content_id[16]);
struct call { struct task task; struct stream_store *store; void *what; };
void store_enter(struct stream_store *s, void (*run)(struct task *task), void *what); // a call from any thread, on the shard
static inline void *store_entered(struct task *task, struct stream_store **out) {
    struct call *c = container_of(task, struct call, task);
    *out = c->store;
    return c->what;
}

// stream_append.c
void windows_try_close(struct stream_store *s);
void windows_on_timer(struct timer *t);
void windows_first(struct stream_store *s); // creates window 0
void windows_write_blocks(struct object_writer *out, struct entry **entries, uint32_t count); // sorted by (stream, offset)
void windows_end(struct stream_store *s); // answers all waiters: nothing more will be acknowledged
void entry_free(struct stream_store *s, struct entry *entry);
void live_push(struct live *l, struct entry *entry);
void live_wake(struct stream_store *s, struct live *l);
void window_info_unref(struct window_info *info);

// stream_commit.c
void commit_consider(struct stream_store *s);
void commit_on_timer(struct timer *t);
void commit_end(struct stream_store *s, const struct error *why);
void commit_request(struct stream_store *s); // as soon as the one under way is done
void cache_trim(struct stream_store *s);
void delete_on_timer(struct timer *t);

// stream_read.c
struct block_cache *block_cache_new(uint64_t bytes_max, uint64_t index_bytes_max);
void block_cache_free(struct block_cache *c);
// The index entries of one stream in an object, from the cache or the store; on_done on the shard, never before the call returns.
struct index_look {
    struct stream_store *store;
    struct catalog_object_id id;
    uint64_t stream_id, object_size, index_size;
    void (*on_done)(struct index_look *l);
    enum mink_code code;
    struct error error;
    const struct object_block *blocks; // valid during on_done
    uint32_t block_count;
    struct index_look *next;
    struct task task;
};
void index_look(struct stream_store *s, struct index_look *l);

#endif
