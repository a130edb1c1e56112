// SPDX-License-Identifier: Apache-2.0
// Opening: the snapshot in the stream's attachment, then the headers from its offset to the end of the stream. Closing: the appends in flight end first.
#include "base/log.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "bucket/bucket_internal.h"

#include <inttypes.h>

#define REPLAY_BYTES (4u << 20)
#define APPEND_BYTES_DEFAULT (64ull << 20)

struct opening {
    struct bucket *bucket;
    uint64_t end, batches, begin_ns;
    enum mink_code code;
    struct error error;
    void (*on_ready)(void *ctx, enum mink_code code, const struct error *e);
    void *ctx;
    struct bucket_read read;
};

static void release(struct bucket *b) {
    writer_state_deinit(&b->assigned);
    writer_state_deinit(&b->acknowledged);
    slice_unref(&b->prepared);
    pthread_mutex_destroy(&b->lock);
    table_def_unref(b->config.def);
    mem_free(b->failed);
    mem_free(b);
}

static void finish(void *ctx) {
    struct opening *o = ctx;
    struct bucket *b = o->bucket;
    if (o->code == MINK_OK) {
        writer_state_copy(&b->assigned, &b->acknowledged);
        if (o->batches)
            log_debug("bucket.replayed", "stream=%" PRIu64 " batches=%" PRIu64 " ms=%llu", b->config.stream_id, o->batches, (shard_now_ns(b->config.shard) - o->begin_ns) / NS_PER_MS);
        o->on_ready(o->ctx, MINK_OK, NULL);
    } else {
        error_context(&o->error, "open bucket %" PRIu32 " of %s.%s", b->config.index, b->config.def->database, b->config.def->name);
        release(b);
        o->on_ready(o->ctx, o->code, &o->error);
    }
    mem_free(o);
}

static enum mink_code fold_all(struct opening *o, struct error *e) {
    struct writer_state *s = &o->bucket->acknowledged;
    for (uint32_t i = 0; i < o->read.batch_count; i++) {
        const struct batch_header *h = &o->read.batches[i].view.header;
        if (h->offset_first < s->offset_end) continue; // its block began before the snapshot
        if (h->offset_first != s->offset_end || h->offset_count == 0 || h->offset_count > o->end - h->offset_first)
            return error_set(e, MINK_CORRUPT, "BAD_BATCH", "a batch of %" PRIu32 " offsets from %" PRIu64 " follows offset %" PRIu64 " of a stream that ends at %" PRIu64, h->offset_count, h->offset_first, s->offset_end, o->end);
        if (MUTANT(DEDUPE_LOST)) s->offset_end = h->offset_first + h->offset_count;
        else writer_state_fold(s, h);
        o->batches++;
    }
    return MINK_OK;
}

static void on_read(struct bucket_read *r) {
    struct opening *o = container_of(r, struct opening, read);
    struct bucket *b = o->bucket;
    o->code = r->code;
    error_copy(&o->error, &r->error);
    if (o->code == MINK_OUT_OF_RANGE && r->start > b->acknowledged.offset_end && r->start <= o->end) {
        // Trimmed since the stream was opened: these batches are of no concern to anybody any more.
        b->acknowledged.offset_end = r->start;
        o->code = MINK_OK;
    } else if (o->code == MINK_OK) {
        uint64_t before = b->acknowledged.offset_end;
        o->code = fold_all(o, &o->error);
        if (o->code == MINK_OK && b->acknowledged.offset_end == before)
            o->code = error_set(&o->error, MINK_CORRUPT, "BAD_BATCH", "nothing is readable at offset %" PRIu64 " of a stream that ends at %" PRIu64, before, o->end);
        bucket_batches_free(r->batches, r->batch_count);
    }
    if (o->code != MINK_OK || b->acknowledged.offset_end == o->end) {
        finish(o);
        return;
    }
    r->offset = b->acknowledged.offset_end;
    bucket_read(b, r);
}

static enum mink_code read_snapshot(struct bucket *b, const struct stream_opened *opened, struct error *e) {
    struct writer_state *s = &b->acknowledged;
    if (opened->epoch == 0) return error_set(e, MINK_UNAVAILABLE, "NOT_LEADER", "another node has it, or it was dropped");
    if (opened->attachment.size) MINK_TRY(writer_state_decode(s, opened->attachment, e));
    if (s->offset_end > opened->end)
        return error_set(e, MINK_CORRUPT, "BAD_WRITER_SNAPSHOT", "writer snapshot as of offset %" PRIu64 ", but the stream ends at %" PRIu64, s->offset_end, opened->end);
    if (s->offset_end < opened->start) s->offset_end = opened->start;
    return MINK_OK;
}

void bucket_open(const struct bucket_config *config, const struct stream_opened *opened, struct bucket **out, void (*on_ready)(void *ctx, enum mink_code code, const struct error *e), void *ctx) {
    struct bucket *b = mem_new(struct bucket);
    b->config = *config;
    table_def_ref(config->def);
    if (b->config.append_bytes_max == 0) b->config.append_bytes_max = APPEND_BYTES_DEFAULT;
    b->epoch = opened->epoch;
    b->start = opened->start;
    b->next_offset = opened->end;
    bucket_list_init(&b->in_flight);
    bucket_list_init(&b->duplicates);
    writer_state_init(&b->assigned, config->writers_max);
    writer_state_init(&b->acknowledged, config->writers_max);
    pthread_mutex_init(&b->lock, NULL);
    *out = b;
    struct opening *o = mem_new(struct opening);
    *o = (struct opening){.bucket = b, .end = opened->end, .begin_ns = shard_now_ns(config->shard), .on_ready = on_ready, .ctx = ctx};
    o->code = read_snapshot(b, opened, &o->error);
    if (o->code != MINK_OK || b->acknowledged.offset_end == o->end) {
        shard_post_call(config->shard, finish, o);
        return;
    }
    o->read = (struct bucket_read){.offset = b->acknowledged.offset_end, .bytes_max = REPLAY_BYTES, .sequential = true, .on_done = on_read};
    bucket_read(b, &o->read);
}

static void closed(void *ctx) {
    struct bucket *b = ctx;
    void (*on_closed)(void *) = b->on_closed;
    void *closed_ctx = b->closed_ctx;
    release(b);
    on_closed(closed_ctx);
}

void bucket_close(struct bucket *b, void (*on_closed)(void *ctx), void *ctx) {
    b->on_closed = on_closed;
    b->closed_ctx = ctx;
    if (b->requests == 0) shard_post_call(b->config.shard, closed, b);
}

void bucket_set_def(struct bucket *b, struct table_def *def) {
    table_def_ref(def);
    table_def_unref(b->config.def);
    b->config.def = def;
}

uint64_t bucket_high_watermark(const struct bucket *b) { return b->acknowledged.offset_end; }
uint64_t bucket_start(const struct bucket *b) {
    struct stream_extent x = stream_extent(b->config.streams, b->config.stream_id);
    return x.found ? x.start : b->start;
}
