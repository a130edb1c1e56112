// SPDX-License-Identifier: Apache-2.0
// bucket.h: a live bucket of a log table.
//
// What      Batches become offsets; reads become batches. Remembers writers (idempotence) and follows the high watermark.
// Flow      node → bucket_append (dedupe, offset, stamp) → stream_append → on_done;  bucket_read ← stream_read, cut into batches.
// Holds     (1) offsets are dense and assigned once; (2) a duplicate of one of a writer's last 5 batches gets the original offsets; a gap is refused;
//           (3) writer state is a fold of batch headers: the attachment of a commit plus replay gives the same state.
// Owner     One shard; all calls on it; callbacks on it. Requests embedded by the caller.
// Bounds    Admission is the stream layer's, and append_bytes_max of one bucket; writers remembered <= writers_max (least recently used go after writer_expiry).
#ifndef MINK_BUCKET_BUCKET_H
#define MINK_BUCKET_BUCKET_H
#include "batch/batch.h"
#include "stream/stream.h"

struct bucket;
struct bucket_config {
    struct shard *shard;
    struct stream_store *streams;
    uint64_t stream_id;
    struct table_def *def;     // a reference is taken
    uint32_t index;            // of the bucket in its table or partition: for messages
    uint32_t writers_max;      // [2048]
    uint64_t append_bytes_max; // unacknowledged bytes of this bucket; [64 MiB]
};
// Replays headers from the attachment's offset to the end when the attachment is older than it. `opened` comes from stream_open.
void bucket_open(const struct bucket_config *config, const struct stream_opened *opened, struct bucket **out, void (*on_ready)(void *ctx, enum mink_code code, const struct error *e), void *ctx);
// Waits for appends in flight, frees. Touches the stream store only for those, so it may come after stream_store_close.
void bucket_close(struct bucket *b, void (*on_closed)(void *ctx), void *ctx);
void bucket_set_def(struct bucket *b, struct table_def *def);

struct bucket_append {
    struct batch_draft draft;  // taken; writer_id, writer_epoch, sequence in its header (writer_id 0 = none)
    void (*on_done)(struct bucket_append *a);
    enum mink_code code; struct error error; // + CONFLICT [OUT_OF_ORDER_SEQUENCE], [UNKNOWN_WRITER], FENCED [WRITER_FENCED]
    uint64_t offset_first, offset_last; bool duplicate; // offset_last inclusive
    struct stream_append append; // private
    struct bucket *bucket; struct bucket_append *next; uint64_t bytes; // private
};
void bucket_append(struct bucket *b, struct bucket_append *a);

struct bucket_batch { struct batch_bytes bytes; struct batch_view view; }; // references on bytes
struct bucket_read {
    uint64_t offset, bytes_max; bool sequential;
    void (*on_done)(struct bucket_read *r);
    enum mink_code code; struct error error; // OUT_OF_RANGE [OFFSET_OUT_OF_RANGE] names start and end
    struct bucket_batch *batches; uint32_t batch_count; // bucket_batches_free; the first may begin before `offset`
    uint64_t next, start, high_watermark;
    struct stream_read read; // private
};
void bucket_read(struct bucket *b, struct bucket_read *r);
void bucket_batches_free(struct bucket_batch *batches, uint32_t count);

// The same for any stream, open here or not: reading needs nothing of a live bucket. Completes on `shard`.
void bucket_read_stream(struct stream_store *streams, uint64_t stream_id, struct shard *shard, struct bucket_read *r);

// First offset whose commit time >= ts_ms; high watermark when none.
struct bucket_seek { int64_t ts_ms; void (*on_done)(struct bucket_seek *k); enum mink_code code; struct error error; uint64_t offset; struct stream_seek seek; struct bucket_read read; /* private */ struct stream_store *streams; };
void bucket_seek_time(struct bucket *b, struct bucket_seek *k);
void bucket_seek_stream(struct stream_store *streams, uint64_t stream_id, struct shard *shard, struct bucket_seek *k);
uint64_t bucket_high_watermark(const struct bucket *b);
uint64_t bucket_start(const struct bucket *b);
uint32_t bucket_expire_writers(struct bucket *b, int64_t before_ms); // returns how many were forgotten
uint32_t bucket_writer_count(const struct bucket *b);
// For the stream layer's attachment callback, any thread while the bucket lives: a writer snapshot as of an offset <= committed_end, which it
// carries; empty when there is none yet (the next commit asks again).
struct slice bucket_attachment(struct bucket *b, uint64_t committed_end);
// The offset a snapshot is as of: headers from there on are needed to open the bucket. false = not a snapshot.
bool bucket_attachment_offset(struct slice attachment, uint64_t *offset);
#endif
