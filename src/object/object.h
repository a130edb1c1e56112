// SPDX-License-Identifier: Apache-2.0
// object.h: the object store, as the rest of Mink sees it.
//
// What      Whole immutable objects under keys ("wal/3f/000000000a/0000000001"). put_if_absent is atomic across processes: at most one
//           creator of a key succeeds while the key exists, and success is immediately visible to every reader.
//           Backends: directory (object_dir.h), memory (object_memory.h), a decorator that adds latency, errors and lost replies
//           from a seed (object_fault.h); S3 later.
// Flow      caller's shard → object_put/get/… → I/O → (caller's shard) on_done, exactly once, never before the call returns.
// Holds     (1) no partial object is ever visible; (2) put completes with OK only when the object is durable;
//           (3) a put whose reply was lost (MINK_UNKNOWN_OUTCOME) may take effect at any later time.
// Owner     Any thread may call; callbacks run on request->shard. Slices given to put are referenced until the attempt has
//           ended; the caller's list may be dropped when the call returns.
// Bounds    Each priority class has its own queue and limit; callers bound what they send.
#ifndef MINK_OBJECT_OBJECT_H
#define MINK_OBJECT_OBJECT_H

#include "base/error.h"
#include "base/executor.h"
#include "base/slice.h"

#define OBJECT_KEY_SIZE_MAX 512

// In this order when they compete.
enum object_priority { OBJECT_WAL_PUT, OBJECT_TAKEOVER, OBJECT_LIVE_READ, OBJECT_COMMIT, OBJECT_COLD_READ, OBJECT_COMPACTION, OBJECT_DELETE, OBJECT_PRIORITY_COUNT };

enum object_op { OBJECT_PUT, OBJECT_GET, OBJECT_HEAD, OBJECT_LIST, OBJECT_REMOVE };

struct object_entry {
    char *key;
    uint64_t size;
};

// One request = one attempt. Embedded in the caller's state; stays put until on_done. Fill with the functions below.
struct object_request {
    struct task task; // private while in flight; backends post it to `shard` when done
    struct shard *shard;
    void (*on_done)(struct object_request *request); // code, error and the results below are set
    enum object_op op;
    enum object_priority priority;
    char key[OBJECT_KEY_SIZE_MAX];
    // put
    struct slices body;  // references held by the backend until the attempt has ended
    uint32_t body_crc32c; // of the whole body; the backend refuses or reports a body that differs when it can check
    bool if_absent;      // OK, or EXISTS when the key exists
    // get: [offset, offset + size), clipped to the object; outside it INVALID; size 0 = to the end. from_end: the last `size` bytes (whole object when shorter).
    uint64_t offset, size;
    bool from_end;
    // list: keys with prefix `key`, after `start_after`, ascending, at most list_max
    char start_after[OBJECT_KEY_SIZE_MAX];
    uint32_t list_max;
    // remove: keys[0..key_count); missing ones are fine. The array and strings are the caller's until on_done.
    const char *const *keys;
    uint32_t key_count;
    // results
    enum mink_code code;     // OK EXISTS NOT_FOUND UNAVAILABLE (nothing happened, retry) UNKNOWN_OUTCOME CORRUPT INVALID DENIED …
    struct error error;
    struct slice data;       // get: the bytes; the caller unrefs. Aligned to 64.
    uint64_t object_size;    // get, head: size of the whole object
    struct object_entry *entries; // list: freed by object_entries_free
    uint32_t entry_count;
    bool list_more;          // list: there are more
    // private
    uint64_t started_ns;     // on the shard's clock; 0 when submitted from another thread
    bool nested;             // made by a store in front of another: counted there
    struct object_request *next;
};

struct object_store;
struct object_store_ops {
    void (*submit)(struct object_store *store, struct object_request *request);
    void (*close)(struct object_store *store); // all requests have completed; frees
};
struct object_store {
    const struct object_store_ops *ops;
    char name[256]; // for messages: "file:///data", "memory"
};

// Each sets the fields of *request and submits it.
void object_put(struct object_store *store, struct object_request *request, struct shard *shard, const char *key, const struct slices *body, uint32_t body_crc32c, bool if_absent, enum object_priority priority, void (*on_done)(struct object_request *));
void object_get(struct object_store *store, struct object_request *request, struct shard *shard, const char *key, uint64_t offset, uint64_t size, enum object_priority priority, void (*on_done)(struct object_request *));
void object_get_tail(struct object_store *store, struct object_request *request, struct shard *shard, const char *key, uint64_t size, enum object_priority priority, void (*on_done)(struct object_request *));
void object_head(struct object_store *store, struct object_request *request, struct shard *shard, const char *key, enum object_priority priority, void (*on_done)(struct object_request *));
void object_list(struct object_store *store, struct object_request *request, struct shard *shard, const char *prefix, const char *start_after, uint32_t list_max, enum object_priority priority, void (*on_done)(struct object_request *));
void object_remove(struct object_store *store, struct object_request *request, struct shard *shard, const char *const *keys, uint32_t key_count, void (*on_done)(struct object_request *));
void object_entries_free(struct object_entry *entries, uint32_t count);
void object_store_close(struct object_store *store);

// Counts by operation and bytes, process-wide, for metrics and cost: PUT and LIST 5 µ$, GET and HEAD 0.4 µ$.
struct object_counts { uint64_t puts, gets, heads, lists, removes, bytes_put, bytes_got; };
void object_counts_now(struct object_counts *out);

#endif
