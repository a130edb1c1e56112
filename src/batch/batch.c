// SPDX-License-Identifier: Apache-2.0
#include "batch/batch.h"

#include "base/crc32c.h"
#include "base/mem.h"
#include "base/reader.h"

#include <inttypes.h>
#include <string.h>

#define MAGIC 0x5441424du // "MBAT"
#define VERSION 1
#define CRC_FROM 48
#define BODY_ALIGN 64

static size_t align_up(size_t n, size_t to) { return (n + to - 1) & ~(to - 1); }

size_t batch_head_size(size_t row_kinds_size, size_t statistics_size, size_t message_size) {
    return align_up(BATCH_HEADER_SIZE + align_up(row_kinds_size, 8) + align_up(statistics_size, 8) + align_up(message_size, 8), BODY_ALIGN);
}

static void put(uint8_t *p, uint32_t at, uint64_t v, uint32_t width) {
    for (uint32_t i = 0; i < width; i++) p[at + i] = (uint8_t)(v >> (8 * i));
}

static void write_header(uint8_t *p, const struct batch_header *h) {
    memset(p, 0, BATCH_HEADER_SIZE);
    put(p, 0, MAGIC, 4);
    put(p, 4, VERSION, 1);
    put(p, 5, h->payload, 1);
    put(p, 6, h->attributes, 2);
    put(p, 8, h->length, 4);
    put(p, 16, h->offset_first, 8);
    put(p, 24, h->leader_epoch, 4);
    put(p, 32, (uint64_t)h->commit_ms, 8);
    put(p, 48, h->offset_count, 4);
    put(p, 52, h->row_count, 4);
    put(p, 56, h->schema_id, 4);
    put(p, 60, h->writer_epoch, 2);
    put(p, 64, h->writer_id, 8);
    put(p, 72, h->sequence, 4);
    put(p, 76, h->row_kinds_size, 4);
    put(p, 80, h->statistics_size, 4);
    put(p, 84, h->message_size, 4);
    put(p, 88, h->body_size, 8);
}

static uint8_t *put_section(uint8_t *at, struct slice section) {
    if (section.size) memcpy(at, section.data, section.size);
    return at + align_up(section.size, 8);
}

static enum mink_code check_sizes(const struct batch_header *h, struct slice row_kinds, size_t statistics_size, size_t message_size, uint64_t body_size, struct error *e) {
    if (row_kinds.size != 0 && row_kinds.size != h->row_count)
        return error_set(e, MINK_INVALID, "BAD_BATCH", "%zu row kinds for %" PRIu32 " rows", row_kinds.size, h->row_count);
    if (h->row_count > h->offset_count) return error_set(e, MINK_INVALID, "BAD_BATCH", "%" PRIu32 " rows in %" PRIu32 " offsets", h->row_count, h->offset_count);
    if (body_size % 8 != 0) return error_set(e, MINK_INVALID, "BAD_BATCH", "body of %" PRIu64 " bytes is not padded to 8", body_size);
    if (statistics_size > BATCH_SIZE_MAX || message_size > BATCH_SIZE_MAX || body_size > BATCH_SIZE_MAX ||
        batch_head_size(row_kinds.size, statistics_size, message_size) + body_size > BATCH_SIZE_MAX)
        return error_set(e, MINK_INVALID, "BATCH_TOO_LARGE", "batch of %" PRIu64 " bytes is over the limit of %u", body_size + message_size + statistics_size, BATCH_SIZE_MAX);
    return MINK_OK;
}

static void finish(struct batch_draft *d) {
    d->tail_crc32c = crc32c(d->head_data + CRC_FROM, d->bytes.head.size - CRC_FROM);
    if (d->bytes.body.size) d->tail_crc32c = crc32c_extend(d->tail_crc32c, d->bytes.body.data, d->bytes.body.size);
    d->header.crc32c = d->tail_crc32c;
    put(d->head_data, 12, d->tail_crc32c, 4);
}

enum mink_code batch_draft_make(const struct batch_header *fields, struct slice row_kinds, struct slice statistics, struct slice message, struct slice body, struct batch_draft *out, struct error *e) {
    MINK_TRY(check_sizes(fields, row_kinds, statistics.size, message.size, body.size, e));
    size_t head_size = batch_head_size(row_kinds.size, statistics.size, message.size);
    *out = (struct batch_draft){.header = *fields};
    out->header.row_kinds_size = (uint32_t)row_kinds.size;
    out->header.statistics_size = (uint32_t)statistics.size;
    out->header.message_size = (uint32_t)message.size;
    out->header.body_size = body.size;
    out->header.length = (uint32_t)(head_size + body.size);
    out->bytes.head = slice_new(head_size, &out->head_data);
    memset(out->head_data, 0, head_size);
    write_header(out->head_data, &out->header);
    uint8_t *at = put_section(out->head_data + BATCH_HEADER_SIZE, row_kinds);
    at = put_section(at, statistics);
    put_section(at, message);
    if (body.size) out->bytes.body = slice_ref(body);
    finish(out);
    return MINK_OK;
}

enum mink_code batch_draft_in_place(const struct batch_header *fields, struct slice take_slab, uint8_t *slab_data, struct slice message, uint64_t body_size, struct batch_draft *out, struct error *e) {
    size_t head_size = batch_head_size(0, 0, message.size);
    enum mink_code code = check_sizes(fields, slice_empty(), 0, message.size, align_up(body_size, 8), e);
    if (code == MINK_OK && take_slab.size != head_size + align_up(body_size, 8))
        code = error_set(e, MINK_INTERNAL, "BAD_BATCH", "slab of %zu bytes for a head of %zu and a body of %" PRIu64, take_slab.size, head_size, body_size);
    if (code != MINK_OK) {
        slice_unref(&take_slab);
        return code;
    }
    *out = (struct batch_draft){.header = *fields, .head_data = slab_data};
    out->header.row_kinds_size = out->header.statistics_size = 0;
    out->header.message_size = (uint32_t)message.size;
    out->header.body_size = align_up(body_size, 8);
    out->header.length = (uint32_t)take_slab.size;
    out->bytes.head = take_slab;
    memset(slab_data, 0, head_size);
    memset(slab_data + head_size + body_size, 0, align_up(body_size, 8) - body_size);
    write_header(slab_data, &out->header);
    put_section(slab_data + BATCH_HEADER_SIZE, message);
    finish(out);
    return MINK_OK;
}

void batch_stamp(struct batch_draft *d, uint64_t offset_first, uint32_t leader_epoch, int64_t commit_ms, uint32_t *out_batch_crc32c) {
    d->header.offset_first = offset_first;
    d->header.leader_epoch = leader_epoch;
    d->header.commit_ms = commit_ms;
    put(d->head_data, 16, offset_first, 8);
    put(d->head_data, 24, leader_epoch, 4);
    put(d->head_data, 32, (uint64_t)commit_ms, 8);
    *out_batch_crc32c = crc32c_combine(crc32c(d->head_data, CRC_FROM), d->tail_crc32c, d->header.length - CRC_FROM);
}

void batch_draft_deinit(struct batch_draft *d) {
    slice_unref(&d->bytes.head);
    slice_unref(&d->bytes.body);
    *d = (struct batch_draft){0};
}

static enum mink_code corrupt(struct error *e, const char *what, uint64_t has, uint64_t wants) {
    return error_set(e, MINK_CORRUPT, "BAD_BATCH", "log batch: %s is %" PRIu64 ", wanted %" PRIu64, what, has, wants);
}

enum mink_code batch_peek(struct slice bytes, uint32_t *out_length, struct error *e) {
    struct reader r;
    reader_init(&r, bytes.data, bytes.size);
    uint32_t magic = reader_u32le(&r);
    uint8_t version = reader_u8(&r);
    reader_bytes(&r, 3);
    uint32_t length = reader_u32le(&r);
    if (reader_ok(&r) && bytes.size < BATCH_HEADER_SIZE) reader_fail(&r, BATCH_HEADER_SIZE);
    MINK_TRY(reader_finish(&r, "log batch header", e));
    if (magic != MAGIC) return error_set(e, MINK_CORRUPT, "BAD_BATCH", "log batch: magic is %08" PRIx32 ", wanted %08x", magic, MAGIC);
    if (version != VERSION) return error_set(e, MINK_UNSUPPORTED, "UNKNOWN_VERSION", "log batch: version %u; this server reads up to %d", version, VERSION);
    if (length < BATCH_HEADER_SIZE || length > BATCH_SIZE_MAX || length % 8 != 0) return corrupt(e, "length", length, BATCH_HEADER_SIZE);
    *out_length = length;
    return MINK_OK;
}

static void read_header(const uint8_t *p, struct batch_header *h, bool *reserved_zero) {
    struct reader r;
    reader_init(&r, p, BATCH_HEADER_SIZE);
    reader_u32le(&r);
    reader_u8(&r);
    h->payload = reader_u8(&r);
    h->attributes = reader_u16le(&r);
    h->length = reader_u32le(&r);
    h->crc32c = reader_u32le(&r);
    h->offset_first = reader_u64le(&r);
    h->leader_epoch = reader_u32le(&r);
    uint64_t reserved = reader_u32le(&r);
    h->commit_ms = reader_i64le(&r);
    reserved |= reader_u64le(&r);
    h->offset_count = reader_u32le(&r);
    h->row_count = reader_u32le(&r);
    h->schema_id = reader_u32le(&r);
    h->writer_epoch = reader_u16le(&r);
    reserved |= reader_u16le(&r);
    h->writer_id = reader_u64le(&r);
    h->sequence = reader_u32le(&r);
    h->row_kinds_size = reader_u32le(&r);
    h->statistics_size = reader_u32le(&r);
    h->message_size = reader_u32le(&r);
    h->body_size = reader_u64le(&r);
    *reserved_zero = reserved == 0;
}

static bool all_zero(struct slice s, size_t from, size_t to) {
    uint8_t seen = 0;
    for (size_t i = from; i < to; i++) seen |= s.data[i];
    return seen == 0;
}

enum mink_code batch_decode(const struct batch_bytes *bytes, bool verify_crc, struct batch_view *out, struct error *e) {
    uint32_t length;
    struct batch_header h;
    bool reserved_zero;
    struct slice head = bytes->head, body = bytes->body;
    MINK_TRY(batch_peek(head, &length, e));
    read_header(head.data, &h, &reserved_zero);
    if (head.size + body.size != length) return corrupt(e, "size", head.size + body.size, length);
    if (verify_crc) {
        uint32_t crc = crc32c(head.data + CRC_FROM, head.size - CRC_FROM);
        if (body.size) crc = crc32c_extend(crc, body.data, body.size);
        if (crc != h.crc32c)
            return error_set(e, MINK_CORRUPT, "BAD_CHECKSUM", "log batch at offset %" PRIu64 ": checksum is %08" PRIx32 ", its header says %08" PRIx32, h.offset_first, crc, h.crc32c);
    }
    if (!reserved_zero) return error_set(e, MINK_CORRUPT, "BAD_BATCH", "log batch: reserved bytes are not zero");
    if (h.payload > BATCH_PAYLOAD_KAFKA) return corrupt(e, "payload kind", h.payload, BATCH_PAYLOAD_ARROW);
    if (h.row_kinds_size > length || h.statistics_size > length || h.message_size > length || h.body_size > length) return corrupt(e, "a section's size", length, length);
    size_t head_size = batch_head_size(h.row_kinds_size, h.statistics_size, h.message_size);
    if (head_size + h.body_size != length || h.body_size % 8 != 0) return corrupt(e, "sum of sections", head_size + h.body_size, length);
    if (body.size != 0 && head.size != head_size) return corrupt(e, "head size", head.size, head_size);
    if (h.row_kinds_size != 0 && h.row_kinds_size != h.row_count) return corrupt(e, "row kinds", h.row_kinds_size, h.row_count);
    if (h.row_count > h.offset_count) return corrupt(e, "row count", h.row_count, h.offset_count);
    *out = (struct batch_view){.header = h};
    size_t at = BATCH_HEADER_SIZE;
    uint32_t sizes[3] = {h.row_kinds_size, h.statistics_size, h.message_size};
    struct slice *sections[3] = {&out->row_kinds, &out->statistics, &out->message};
    for (uint32_t i = 0; i < 3; i++) {
        *sections[i] = slice_view(head, at, sizes[i]);
        if (!all_zero(head, at + sizes[i], at + align_up(sizes[i], 8))) return error_set(e, MINK_CORRUPT, "BAD_BATCH", "log batch: padding is not zero");
        at += align_up(sizes[i], 8);
    }
    if (!all_zero(head, at, head_size)) return error_set(e, MINK_CORRUPT, "BAD_BATCH", "log batch: padding is not zero");
    for (uint32_t i = 0; i < h.row_kinds_size; i++) {
        if (out->row_kinds.data[i] > ROW_DELETE) return corrupt(e, "row kind", out->row_kinds.data[i], ROW_DELETE);
    }
    out->body = body.size ? slice_view(body, 0, body.size) : slice_view(head, head_size, h.body_size);
    return MINK_OK;
}

void batch_cursor_init(struct batch_cursor *c, const struct slices *payload) { *c = (struct batch_cursor){.payload = payload}; }

enum mink_code batch_cursor_next(struct batch_cursor *c, struct batch_bytes *out_views, bool *end, struct error *e) {
    *end = false;
    *out_views = (struct batch_bytes){0};
    while (c->slice < c->payload->count && c->position == c->payload->items[c->slice].size) {
        c->slice++;
        c->position = 0;
    }
    if (c->slice == c->payload->count) {
        *end = true;
        return MINK_OK;
    }
    struct slice here = c->payload->items[c->slice], rest = slice_view(here, c->position, here.size - c->position);
    uint32_t length;
    MINK_TRY(batch_peek(rest, &length, e));
    if (length <= rest.size) {
        out_views->head = slice_view(rest, 0, length);
        c->position += length;
        return MINK_OK;
    }
    // The head ends its slice, the body begins the next one.
    size_t body_size = length - rest.size;
    if (c->slice + 1 == c->payload->count || c->payload->items[c->slice + 1].size < body_size)
        return error_set(e, MINK_CORRUPT, "BAD_BATCH", "log batch: cut off, %zu of %" PRIu32 " bytes are there", rest.size, length);
    out_views->head = rest;
    out_views->body = slice_view(c->payload->items[c->slice + 1], 0, body_size);
    c->slice++;
    c->position = body_size;
    return MINK_OK;
}
