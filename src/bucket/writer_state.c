// SPDX-License-Identifier: Apache-2.0
// Snapshot, little-endian:
//
//     u32 magic "MWRS"   u16 version = 1   u16 reserved   u64 offset_end   i64 commit_ms   u32 writer count   u32 reserved
//     per writer, ids ascending: varint id − previous id   varint epoch   i64 last_ms   u8 batch count 1…5
//         per batch, oldest first: u64 offset_first   u32 sequence   u32 offset_count
//     u32 crc32c of everything before
#include "bucket/writer_state.h"

#include "base/crc32c.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "base/reader.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAGIC 0x5352574du
#define VERSION 1
#define SNAPSHOT_SIZE_MAX (256u << 10)

// 10 id, 3 epoch, 8 + 1, 5 × 16 a writer; 36 around them.
static_assert(WRITERS_MAX * (10 + 3 + 9 + 16 * WRITER_BATCHES) + 36 <= SNAPSHOT_SIZE_MAX, "a snapshot must fit an attachment");

void writer_state_init(struct writer_state *s, uint32_t writers_max) {
    *s = (struct writer_state){.writers_max = writers_max && writers_max < WRITERS_MAX ? writers_max : WRITERS_MAX, .commit_ms = INT64_MIN};
}

void writer_state_deinit(struct writer_state *s) {
    mem_free(s->writers);
    *s = (struct writer_state){0};
}

void writer_state_copy(struct writer_state *target, const struct writer_state *source) {
    mem_free(target->writers);
    *target = *source;
    target->capacity = source->count;
    target->writers = source->count ? mem_new_array(struct writer, source->count) : NULL;
    if (source->count) memcpy(target->writers, source->writers, source->count * sizeof *source->writers);
}

// Index of id, or where it belongs.
static uint32_t find(const struct writer_state *s, uint64_t id, bool *found) {
    uint32_t low = 0, high = s->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (s->writers[middle].id < id) low = middle + 1;
        else high = middle;
    }
    *found = low < s->count && s->writers[low].id == id;
    return low;
}

// | writer  | epoch  | sequence            | answer                              |
// | unknown | any    | 0                   | append                              |
// | unknown | any    | other               | UNKNOWN_WRITER (never seen, expired)|
// | known   | lower  | any                 | WRITER_FENCED                       |
// | known   | higher | 0                   | append                              |
// | known   | higher | other               | OUT_OF_ORDER_SEQUENCE, expected 0   |
// | known   | same   | one of the last 5   | duplicate                           |
// | known   | same   | last + 1            | append                              |
// | known   | same   | other               | OUT_OF_ORDER_SEQUENCE               |
enum mink_code writer_state_check(const struct writer_state *s, const struct batch_header *h, bool *duplicate, struct writer_batch *original, struct error *e) {
    bool found;
    uint32_t at = find(s, h->writer_id, &found);
    *duplicate = false;
    if (!found) {
        if (h->sequence == 0) return MINK_OK;
        enum mink_code code = error_set(e, MINK_CONFLICT, "UNKNOWN_WRITER", "writer %" PRIu64 " is not known here, or was silent for too long; its batch has sequence %" PRIu32, h->writer_id, h->sequence);
        error_hint(e, "a new writer starts with sequence 0; get a writer id with init-writer");
        return code;
    }
    const struct writer *w = &s->writers[at];
    if (h->writer_epoch < w->epoch)
        return error_set(e, MINK_FENCED, "WRITER_FENCED", "writer %" PRIu64 " has epoch %u here, the batch came with epoch %u", h->writer_id, w->epoch, h->writer_epoch);
    uint32_t expected = h->writer_epoch > w->epoch ? 0 : w->batches[w->batch_count - 1].sequence + 1;
    for (uint32_t i = 0; h->writer_epoch == w->epoch && i < w->batch_count; i++) {
        if (w->batches[i].sequence != h->sequence) continue;
        *duplicate = true;
        *original = w->batches[i];
        return MINK_OK;
    }
    if (h->sequence == expected || (MUTANT(SEQUENCE_GAP_TAKEN) && h->sequence > expected)) return MINK_OK;
    enum mink_code code = error_set(e, MINK_CONFLICT, "OUT_OF_ORDER_SEQUENCE", "writer %" PRIu64 " sent sequence %" PRIu32 ", expected %" PRIu32, h->writer_id, h->sequence, expected);
    char wanted[16], given[16];
    snprintf(wanted, sizeof wanted, "%" PRIu32, expected);
    snprintf(given, sizeof given, "%" PRIu32, h->sequence);
    error_about(e, "seq", wanted, given);
    return code;
}

static uint64_t newest_offset(const struct writer *w) { return w->batches[w->batch_count - 1].offset_first; }

static void drop(struct writer_state *s, uint32_t at) {
    memmove(&s->writers[at], &s->writers[at + 1], (s->count - at - 1) * sizeof *s->writers);
    s->count--;
}

static struct writer *insert(struct writer_state *s, uint64_t id) {
    if (s->count == s->writers_max) {
        uint32_t oldest = 0;
        for (uint32_t i = 1; i < s->count; i++) {
            if (newest_offset(&s->writers[i]) < newest_offset(&s->writers[oldest])) oldest = i;
        }
        drop(s, oldest);
    }
    if (s->count == s->capacity) {
        s->capacity = s->capacity ? s->capacity * 2 : 2;
        s->writers = mem_realloc(s->writers, s->capacity * sizeof *s->writers);
    }
    bool found;
    uint32_t at = find(s, id, &found);
    memmove(&s->writers[at + 1], &s->writers[at], (s->count - at) * sizeof *s->writers);
    s->count++;
    s->writers[at] = (struct writer){.id = id};
    return &s->writers[at];
}

void writer_state_fold(struct writer_state *s, const struct batch_header *h) {
    mink_assert(h->offset_first >= s->offset_end);
    s->offset_end = h->offset_first + h->offset_count;
    if (h->commit_ms > s->commit_ms) s->commit_ms = h->commit_ms;
    if (h->writer_id == 0) return;
    bool found;
    uint32_t at = find(s, h->writer_id, &found);
    struct writer *w = found ? &s->writers[at] : insert(s, h->writer_id);
    if (h->writer_epoch != w->epoch) w->batch_count = 0;
    w->epoch = h->writer_epoch;
    w->last_ms = h->commit_ms;
    if (w->batch_count == WRITER_BATCHES) memmove(&w->batches[0], &w->batches[1], --w->batch_count * sizeof w->batches[0]);
    w->batches[w->batch_count++] = (struct writer_batch){h->offset_first, h->sequence, h->offset_count};
}

uint32_t writer_state_expire(struct writer_state *s, int64_t before_ms) {
    uint32_t kept = 0, count = s->count;
    for (uint32_t i = 0; i < count; i++) {
        if (s->writers[i].last_ms >= before_ms) s->writers[kept++] = s->writers[i];
    }
    s->count = kept;
    return count - kept;
}

struct slice writer_state_encode(const struct writer_state *s) {
    struct buffer b;
    buffer_init(&b, SNAPSHOT_SIZE_MAX);
    buffer_put_u32le(&b, MAGIC);
    buffer_put_u16le(&b, VERSION);
    buffer_put_u16le(&b, 0);
    buffer_put_u64le(&b, s->offset_end);
    buffer_put_u64le(&b, (uint64_t)s->commit_ms);
    buffer_put_u32le(&b, s->count);
    buffer_put_u32le(&b, 0);
    uint64_t previous = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        const struct writer *w = &s->writers[i];
        buffer_put_varint(&b, w->id - previous);
        previous = w->id;
        buffer_put_varint(&b, w->epoch);
        buffer_put_u64le(&b, (uint64_t)w->last_ms);
        buffer_put_u8(&b, w->batch_count);
        for (uint32_t k = 0; k < w->batch_count; k++) {
            buffer_put_u64le(&b, w->batches[k].offset_first);
            buffer_put_u32le(&b, w->batches[k].sequence);
            buffer_put_u32le(&b, w->batches[k].offset_count);
        }
    }
    buffer_put_u32le(&b, crc32c(b.data, b.size));
    mink_assert(!b.overflowed);
    return buffer_take_slice(&b);
}

static void read_writer(struct reader *r, struct writer_state *s, uint64_t *previous) {
    uint64_t delta = reader_varint(r), epoch;
    // Ids ascend: only the first may be as small as its delta says.
    if (reader_ok(r) && (delta == 0 || delta > UINT64_MAX - *previous)) reader_fail(r, 0);
    *previous += delta;
    struct writer w = {.id = *previous};
    epoch = reader_varint(r);
    if (reader_ok(r) && epoch > UINT16_MAX) reader_fail(r, 0);
    w.epoch = (uint16_t)epoch;
    w.last_ms = reader_i64le(r);
    w.batch_count = reader_u8(r);
    if (reader_ok(r) && (w.batch_count == 0 || w.batch_count > WRITER_BATCHES)) reader_fail(r, 0);
    for (uint32_t k = 0; k < w.batch_count && reader_ok(r); k++) {
        w.batches[k].offset_first = reader_u64le(r);
        w.batches[k].sequence = reader_u32le(r);
        w.batches[k].offset_count = reader_u32le(r);
    }
    if (reader_ok(r)) s->writers[s->count++] = w;
}

enum mink_code writer_state_decode(struct writer_state *s, struct slice bytes, struct error *e) {
    struct reader r;
    reader_init(&r, bytes.data, bytes.size);
    uint32_t magic = reader_u32le(&r);
    uint16_t version = reader_u16le(&r);
    if (reader_ok(&r) && magic != MAGIC) return error_set(e, MINK_CORRUPT, "BAD_WRITER_SNAPSHOT", "writer snapshot: magic is %08" PRIx32 ", wanted %08x", magic, MAGIC);
    if (reader_ok(&r) && version != VERSION) return error_set(e, MINK_UNSUPPORTED, "UNKNOWN_VERSION", "writer snapshot: version %u; this server reads up to %d", version, VERSION);
    if (bytes.size >= 4) {
        struct reader tail;
        reader_init(&tail, bytes.data + bytes.size - 4, 4);
        uint32_t wanted = reader_u32le(&tail), crc = crc32c(bytes.data, bytes.size - 4);
        if (crc != wanted) return error_set(e, MINK_CORRUPT, "BAD_CHECKSUM", "writer snapshot: checksum is %08" PRIx32 ", it says %08" PRIx32, crc, wanted);
    }
    reader_zeros(&r, 2);
    s->offset_end = reader_u64le(&r);
    s->commit_ms = reader_i64le(&r);
    uint32_t count = reader_count(&r, WRITERS_MAX);
    reader_zeros(&r, 4);
    mem_free(s->writers);
    s->count = 0;
    s->capacity = reader_ok(&r) ? count : 0;
    s->writers = s->capacity ? mem_new_array(struct writer, s->capacity) : NULL;
    uint64_t previous = 0;
    for (uint32_t i = 0; i < count && reader_ok(&r); i++) read_writer(&r, s, &previous);
    reader_u32le(&r);
    if (reader_ok(&r) && reader_left(&r) != 0) reader_fail(&r, 0);
    return reader_finish(&r, "writer snapshot", e);
}
