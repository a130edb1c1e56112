// SPDX-License-Identifier: Apache-2.0
// Reading needs nothing of a live bucket: blocks of a stream are cut into batches, on the asker's shard.
#include "base/mem.h"
#include "bucket/bucket_internal.h"

#include <inttypes.h>

#define SEEK_BYTES (1u << 20)

void bucket_batches_free(struct bucket_batch *batches, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        slice_unref(&batches[i].bytes.head);
        slice_unref(&batches[i].bytes.body);
    }
    mem_free(batches);
}

static struct slice own(struct slice whole, struct slice view) { return slice_sub(whole, (size_t)(view.data - whole.data), view.size); }

static void add_batch(struct bucket_read *r, uint32_t *capacity, const struct batch_bytes *views, const struct batch_cursor *c) {
    if (r->batch_count == *capacity) {
        *capacity = *capacity ? *capacity * 2 : 4;
        r->batches = mem_realloc(r->batches, *capacity * sizeof *r->batches);
    }
    struct bucket_batch *batch = &r->batches[r->batch_count++];
    const struct slice *items = c->payload->items;
    *batch = (struct bucket_batch){0};
    // The cursor stands in the slice where the batch ended; a batch in two parts began in the one before.
    batch->bytes.head = own(items[views->body.size ? c->slice - 1 : c->slice], views->head);
    if (views->body.size) batch->bytes.body = own(items[c->slice], views->body);
}

// Batches from r->offset on. Offsets must tile the block: a reader that skipped over damage would lose rows silently.
static enum mink_code cut(struct bucket_read *r, const struct stream_block *block, uint32_t *capacity, struct error *e) {
    struct batch_cursor c;
    struct batch_bytes views;
    bool end = false;
    uint64_t at = block->offset_first;
    batch_cursor_init(&c, &block->payload);
    for (;;) {
        MINK_TRY(batch_cursor_next(&c, &views, &end, e));
        if (end) break;
        struct batch_view view;
        MINK_TRY(batch_decode(&views, false, &view, e));
        if (view.header.offset_first != at || view.header.offset_count == 0)
            return error_set(e, MINK_CORRUPT, "BAD_BATCH", "a batch of %" PRIu32 " offsets from %" PRIu64 " follows offset %" PRIu64, view.header.offset_count, view.header.offset_first, at);
        at += view.header.offset_count;
        if (at <= r->offset) continue;
        add_batch(r, capacity, &views, &c);
        r->batches[r->batch_count - 1].view = view;
        r->next = at;
    }
    if (at != block->offset_end) return error_set(e, MINK_CORRUPT, "BAD_BATCH", "the batches of a block end at offset %" PRIu64 ", its header says %" PRIu64, at, block->offset_end);
    return MINK_OK;
}

static void on_stream_read(struct stream_read *read) {
    struct bucket_read *r = container_of(read, struct bucket_read, read);
    uint32_t capacity = 0;
    r->code = read->code;
    r->start = read->start;
    r->high_watermark = read->high_watermark;
    if (read->code == MINK_OUT_OF_RANGE) {
        error_set(&r->error, MINK_OUT_OF_RANGE, "OFFSET_OUT_OF_RANGE", "offset %" PRIu64 " is not kept: the log starts at %" PRIu64 " and ends at %" PRIu64, r->offset, r->start, r->high_watermark);
    } else {
        error_copy(&r->error, &read->error);
    }
    for (uint32_t i = 0; i < read->block_count && r->code == MINK_OK; i++) {
        r->code = cut(r, &read->blocks[i], &capacity, &r->error);
        if (r->code != MINK_OK) error_context(&r->error, "stream %" PRIu64 " block at offset %" PRIu64, read->stream_id, read->blocks[i].offset_first);
    }
    stream_blocks_free(read->blocks, read->block_count);
    read->blocks = NULL;
    read->block_count = 0;
    if (r->code != MINK_OK) {
        bucket_batches_free(r->batches, r->batch_count);
        r->batches = NULL;
        r->batch_count = 0;
    }
    r->on_done(r);
}

void bucket_read_stream(struct stream_store *streams, uint64_t stream_id, struct shard *shard, struct bucket_read *r) {
    r->code = MINK_OK;
    r->error = (struct error){0};
    r->batches = NULL;
    r->batch_count = 0;
    r->next = r->offset;
    r->read = (struct stream_read){.shard = shard, .on_done = on_stream_read, .stream_id = stream_id, .offset = r->offset, .bytes_max = r->bytes_max, .sequential = r->sequential};
    stream_read(streams, &r->read);
}

void bucket_read(struct bucket *b, struct bucket_read *r) { bucket_read_stream(b->config.streams, b->config.stream_id, b->config.shard, r); }

// ---- time: the stream layer finds the block, the batches' headers the offset

static void seek_done(struct bucket_seek *k, uint64_t offset) {
    k->offset = offset;
    k->on_done(k);
}

static void on_seek_read(struct bucket_read *r) {
    struct bucket_seek *k = container_of(r, struct bucket_seek, read);
    k->code = r->code;
    error_copy(&k->error, &r->error);
    if (r->code == MINK_OUT_OF_RANGE && r->start > r->offset) {
        // Trimmed since the block was found.
        k->error = (struct error){0};
        r->offset = r->start;
        bucket_read_stream(k->streams, k->seek.stream_id, k->seek.shard, r);
        return;
    }
    if (r->code != MINK_OK) {
        k->on_done(k);
        return;
    }
    uint64_t found = UINT64_MAX;
    for (uint32_t i = 0; i < r->batch_count && found == UINT64_MAX; i++) {
        if (r->batches[i].view.header.commit_ms >= k->ts_ms) found = r->batches[i].view.header.offset_first;
    }
    bool more = r->batch_count != 0;
    bucket_batches_free(r->batches, r->batch_count);
    if (found != UINT64_MAX) {
        seek_done(k, found);
    } else if (!more) {
        seek_done(k, r->high_watermark);
    } else {
        r->offset = r->next;
        bucket_read_stream(k->streams, k->seek.stream_id, k->seek.shard, r);
    }
}

static void on_stream_seek(struct stream_seek *seek) {
    struct bucket_seek *k = container_of(seek, struct bucket_seek, seek);
    if (seek->code != MINK_OK) {
        k->code = seek->code;
        error_copy(&k->error, &seek->error);
        k->on_done(k);
        return;
    }
    k->read = (struct bucket_read){.offset = seek->offset, .bytes_max = SEEK_BYTES, .on_done = on_seek_read};
    bucket_read_stream(k->streams, seek->stream_id, seek->shard, &k->read);
}

void bucket_seek_stream(struct stream_store *streams, uint64_t stream_id, struct shard *shard, struct bucket_seek *k) {
    k->streams = streams;
    k->code = MINK_OK;
    k->error = (struct error){0};
    k->seek = (struct stream_seek){.shard = shard, .on_done = on_stream_seek, .stream_id = stream_id, .ts_ms = k->ts_ms};
    stream_seek_time(streams, &k->seek);
}

void bucket_seek_time(struct bucket *b, struct bucket_seek *k) { bucket_seek_stream(b->config.streams, b->config.stream_id, b->config.shard, k); }
