// SPDX-License-Identifier: Apache-2.0
// stream.h: durable, ordered bytes on object storage.
//
// What      A stream is a dense sequence of batches addressed by offset. Appends of many streams share a WAL object;
//           later they live in stream or set objects. Formats: docs/formats.md#objects. Protocol and its argument: docs/architecture.md#streams.
// Flow      bucket → stream_append → [window] → object put → acknowledgement in seq order → on_done.
// Holds     (1) acknowledged implies durable; (2) acknowledgement order is seq order; (3) offsets are dense;
//           (4) after a seal, no append of that incarnation is acknowledged; (5) reads never pass the high watermark.
// Owner     The store's shard does the work; every function here may be called from any thread, completions come on request->shard.
//           Requests are embedded by the caller and stay put until on_done, which runs exactly once, never before the call returns.
// Bounds    append_bytes_max, puts_in_flight, wal_uncommitted_max, caches: each a config field, a counter and a clear error.
#ifndef MINK_STREAM_STREAM_H
#define MINK_STREAM_STREAM_H

#include "meta/meta.h"
#include "object/object.h"

struct stream_config {
    struct shard *shard;
    struct object_store *objects;
    struct meta *meta;
    struct work_pool *work;         // checksums and encoding of large objects
    const char *address, *rack;     // told to others
    // 0 = the default in brackets
    uint32_t wal_object_size;       // [4 MiB] a window closes at this size
    uint32_t linger_floor_us;       // [2000]
    double put_rate;                // [30] WAL PUTs per second that spread small traffic; < 0 = no budget
    uint32_t puts_in_flight;        // [32]
    bool hedge_off;
    uint64_t append_bytes_max;      // [256 MiB] unacknowledged; per stream a quarter
    uint64_t tail_cache_bytes;      // [512 MiB]
    uint64_t block_cache_bytes;     // [1 GiB, allocated as used]
    uint64_t index_cache_bytes;     // [128 MiB]
    uint64_t wal_uncommitted_bytes_max; uint32_t wal_uncommitted_windows_max; // [16 GiB, 20,000]
    uint64_t commit_bytes; uint32_t commit_windows, commit_entries_max; uint64_t commit_age_ms; // [256 MiB, 500, 100,000, 5 min; 30 s when idle]
    uint64_t append_give_up_ms;     // [60,000]
    uint64_t delete_grace_ms;       // [600,000]
    uint32_t mutant;                // deliberate bug for the simulator's mutation check (builds with MINK_MUTANTS only)
    // The incarnation has ended (fenced, store or metadata inconsistent): everything is refused from now on. On the shard, at most once.
    void (*on_fatal)(void *ctx, const struct error *e);
    // Asked at each commit, on the shard: a small attachment for the stream as of its committed end (size <= 256 KiB), or an empty slice.
    struct slice (*attachment)(void *ctx, uint64_t stream_id, uint64_t committed_end);
    void *ctx;
};

struct stream_store;
// Reads or creates cluster.json, probes the store's create-if-absent, registers an incarnation, writes window 0. on_ready on config->shard.
void stream_store_open(const struct stream_config *config, struct stream_store **out, void (*on_ready)(void *ctx, enum mink_code code, const struct error *e), void *ctx);
uint64_t stream_store_incarnation(struct stream_store *s);
// Graceful end: acknowledge what is in flight, commit, own seal, DeclareDead, SealIncarnation; then on_closed (on the shard) and the memory is gone.
// abrupt: nothing is written; waiters get UNKNOWN_OUTCOME (the simulator's crash and the way out after on_fatal).
void stream_store_close(struct stream_store *s, bool abrupt, void (*on_closed)(void *ctx), void *ctx);

// Takes over from an incarnation that is dead in the catalog (5.2): walk, seal, SealIncarnation. OK when it is sealed, also by somebody else.
struct stream_takeover { struct task task; struct shard *shard; void (*on_done)(struct stream_takeover *t); uint64_t incarnation; enum mink_code code; struct error error; uint64_t seal_seq; uint32_t objects; };
void stream_takeover(struct stream_store *s, struct stream_takeover *t);

// Opens streams for appending by this incarnation: one command for all.
struct stream_opened { uint64_t stream_id; uint32_t epoch; uint64_t start, end; struct slice attachment; uint64_t attachment_end; }; // epoch 0: refused
struct stream_open { struct task task; struct shard *shard; void (*on_done)(struct stream_open *o); struct stream_opened *streams; uint32_t count; enum mink_code code; struct error error; };
void stream_open(struct stream_store *s, struct stream_open *o); // streams[].stream_id in, the rest out; attachments are references for the caller

// Room for `bytes` more unacknowledged bytes? OK counts them in (the append that follows carries exactly them); OVERLOADED names the bound.
enum mink_code stream_admit(struct stream_store *s, uint64_t bytes, struct error *e) MINK_MUST_CHECK;
// Appends admitted batches. Per stream: calls come in offset order from one shard. Ends OK (durable, acknowledged, visible), FENCED or UNAVAILABLE
// (definitely not written: the store had ended before), or UNKNOWN_OUTCOME. After anything but OK the stream accepts no more from this incarnation.
struct stream_append {
    struct task task; struct shard *shard; void (*on_done)(struct stream_append *a);
    uint64_t stream_id; uint32_t epoch;
    uint64_t offset_first, offset_end; uint32_t batches;
    int64_t ts_min_ms, ts_max_ms;
    struct slices payload; // references are taken (the list is emptied)
    uint32_t crc32c;       // of the payload
    enum mink_code code; struct error error;
    struct stream_append *next; // private
};
void stream_append(struct stream_store *s, struct stream_append *a);

struct stream_block { uint64_t offset_first, offset_end; int64_t ts_min_ms, ts_max_ms; struct slices payload; }; // offset_first may lie before what was asked
struct stream_read {
    struct task task; struct shard *shard; void (*on_done)(struct stream_read *r);
    uint64_t stream_id, offset; uint64_t bytes_max; // at least one block is given when there is one
    bool sequential;       // more will follow: read ahead
    // results: OK (block_count 0 when offset == high watermark), OUT_OF_RANGE (start and high_watermark are set), CORRUPT, UNAVAILABLE …
    enum mink_code code; struct error error;
    struct stream_block *blocks; uint32_t block_count; // stream_blocks_free
    uint64_t start, high_watermark;
    void *private_state;
};
void stream_read(struct stream_store *s, struct stream_read *r);
void stream_blocks_free(struct stream_block *blocks, uint32_t count);

// Tells once when the stream's high watermark has passed `offset` (at once when it has already). Cancel: on_done with CANCELLED.
struct stream_watch { struct task task; struct shard *shard; void (*on_done)(struct stream_watch *w); uint64_t stream_id, offset; enum mink_code code; uint64_t high_watermark; struct stream_watch *next, *prev; };
void stream_watch(struct stream_store *s, struct stream_watch *w);
void stream_watch_cancel(struct stream_store *s, struct stream_watch *w);

// The block that may hold the first batch with ts_max >= ts_ms (block granularity; the caller looks inside). offset = end when none.
struct stream_seek { struct task task; struct shard *shard; void (*on_done)(struct stream_seek *k); uint64_t stream_id; int64_t ts_ms; enum mink_code code; struct error error; uint64_t offset; };
void stream_seek_time(struct stream_store *s, struct stream_seek *k);

struct stream_extent { bool found; uint64_t start, high_watermark; uint64_t bytes; };
struct stream_extent stream_extent(struct stream_store *s, uint64_t stream_id); // any thread; a snapshot

// Maintenance, each a request with code and error: commit what is acknowledged now; trim by command; delete what may go; sweep orphans.
struct stream_job { struct task task; struct shard *shard; void (*on_done)(struct stream_job *j); enum mink_code code; struct error error; uint64_t count; };
void stream_commit_now(struct stream_store *s, struct stream_job *j);
void stream_delete_marked(struct stream_store *s, struct stream_job *j);
void stream_sweep_orphans(struct stream_store *s, struct stream_job *j);
// Trim point by time and size: the largest offset such that everything before it is older than before_ms or beyond bytes_keep. Whole blocks only.
struct stream_trim { struct task task; struct shard *shard; void (*on_done)(struct stream_trim *t); uint64_t stream_id; int64_t before_ms; int64_t bytes_keep; /* -1 = no bound */ uint64_t offset_max; enum mink_code code; struct error error; uint64_t start; };
void stream_trim(struct stream_store *s, struct stream_trim *t);

#endif
