// SPDX-License-Identifier: Apache-2.0
// writer_state.h: what a bucket remembers of its writers, so that a batch sent twice is stored once.
//
// What      Per writer: epoch, the last WRITER_BATCHES batches with their offsets. A fold of batch headers in offset order; the encoded form
//           (docs/formats.md#writer-snapshot) is what a stream commit carries as the bucket's attachment.
// Holds     Folding headers [0, b) equals decoding a snapshot as of a and folding [a, b).
// Owner     Plain data; one thread.
// Bounds    writers_max: beyond it the least recently used goes.
#ifndef MINK_BUCKET_WRITER_STATE_H
#define MINK_BUCKET_WRITER_STATE_H
#include "batch/batch.h"

#define WRITER_BATCHES 5
#define WRITERS_MAX 2048 // so that a snapshot stays below 256 KiB

struct writer_batch { uint64_t offset_first; uint32_t sequence, offset_count; };
struct writer {
    uint64_t id;
    int64_t last_ms; // commit time of its newest batch
    uint16_t epoch;
    uint8_t batch_count;
    struct writer_batch batches[WRITER_BATCHES]; // oldest first
};
struct writer_state {
    struct writer *writers; // sorted by id
    uint32_t count, capacity, writers_max;
    uint64_t offset_end;    // as of: every header below is folded in
    int64_t commit_ms;      // the newest commit time folded in
};
void writer_state_init(struct writer_state *s, uint32_t writers_max);
void writer_state_deinit(struct writer_state *s);
void writer_state_copy(struct writer_state *target, const struct writer_state *source); // target: initialised or deinitialised
// What to do with a batch of header h (its writer, epoch, sequence): OK with *duplicate false: append it; OK with *duplicate true: it is there, as told.
// CONFLICT [OUT_OF_ORDER_SEQUENCE], [UNKNOWN_WRITER]; FENCED [WRITER_FENCED].
enum mink_code writer_state_check(const struct writer_state *s, const struct batch_header *h, bool *duplicate, struct writer_batch *original, struct error *e) MINK_MUST_CHECK;
void writer_state_fold(struct writer_state *s, const struct batch_header *h); // the header as stamped; offsets ascend
uint32_t writer_state_expire(struct writer_state *s, int64_t before_ms);      // forgets writers silent since before; returns how many
struct slice writer_state_encode(const struct writer_state *s);
enum mink_code writer_state_decode(struct writer_state *s, struct slice bytes, struct error *e) MINK_MUST_CHECK; // into an initialised one
#endif
