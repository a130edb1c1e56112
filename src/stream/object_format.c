// SPDX-License-Identifier: Apache-2.0
#include "stream/object_format.h"

#include "base/crc32c.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define HEADER_MAGIC 0x314a424f4b4e494dull // "MINKOBJ1"
#define FOOTER_MAGIC 0x4d494e4bu           // "KNIM"
#define FORMAT_VERSION 1

static void put(uint8_t *at, uint64_t v, int size) {
    for (int i = 0; i < size; i++) at[i] = (uint8_t)(v >> (8 * i));
}

static const uint8_t zeros[8];

static void append(struct object_writer *w, struct slice take, uint32_t crc) {
    w->crc32c = crc32c_combine(w->crc32c, crc, take.size);
    slices_take(&w->body, take);
}

void object_writer_begin(struct object_writer *w, const struct object_header *h) {
    *w = (struct object_writer){.header = *h};
    uint8_t *at;
    struct slice s = slice_new(OBJECT_HEADER_SIZE, &at);
    memset(at, 0, OBJECT_HEADER_SIZE);
    put(at, HEADER_MAGIC, 8);
    put(at + 8, FORMAT_VERSION, 2);
    put(at + 10, h->kind, 2);
    put(at + 12, OBJECT_HEADER_SIZE, 4);
    memcpy(at + 16, h->cluster_id, 16);
    put(at + 32, h->creator, 8);
    put(at + 40, h->subject, 8);
    put(at + 48, h->seq, 8);
    memcpy(at + 56, h->content_id, 16);
    put(at + 72, (uint64_t)h->created_ms, 8);
    put(at + 80, h->acked_end, 8);
    put(at + 88, h->wal_committed, 8);
    put(at + 124, crc32c(at, 124), 4);
    append(w, s, crc32c(at, OBJECT_HEADER_SIZE));
}

static void put_block_fields(uint8_t *at, const struct object_block *b) {
    put(at, b->stream, 8);
    put(at + 8, b->offset_first, 8);
    put(at + 16, b->offset_end, 8);
    put(at + 24, (uint64_t)b->ts_min, 8);
    put(at + 32, (uint64_t)b->ts_max, 8);
}

void object_writer_add(struct object_writer *w, const struct object_block *block, const struct slices *payload, uint32_t from, uint32_t count) {
    if (w->block_count == w->block_capacity) {
        w->block_capacity = w->block_capacity ? w->block_capacity * 2 : 16;
        w->blocks = mem_realloc(w->blocks, w->block_capacity * sizeof *w->blocks);
    }
    struct object_block *b = &w->blocks[w->block_count++];
    *b = *block;
    b->position = w->body.bytes;
    uint8_t *at;
    struct slice head = slice_new(OBJECT_BLOCK_HEADER_SIZE, &at);
    put_block_fields(at, b);
    put(at + 40, b->epoch, 4);
    put(at + 44, b->batches, 4);
    put(at + 48, b->payload_size, 4);
    put(at + 52, b->payload_crc32c, 4);
    put(at + 56, 0, 4);
    put(at + 60, crc32c(at, 60), 4);
    append(w, head, crc32c(at, OBJECT_BLOCK_HEADER_SIZE));
    size_t before = w->body.bytes;
    for (uint32_t i = from; i < from + count; i++) slices_take(&w->body, slice_ref(payload->items[i]));
    mink_assert(w->body.bytes - before == b->payload_size);
    w->crc32c = crc32c_combine(w->crc32c, b->payload_crc32c, b->payload_size);
    size_t padding = (8 - b->payload_size % 8) % 8;
    if (padding) append(w, slice_borrow(zeros, padding), crc32c(zeros, padding));
}

void object_writer_finish(struct object_writer *w) {
    uint8_t *at;
    uint64_t index_position = w->body.bytes;
    w->index_size = (uint64_t)w->block_count * OBJECT_INDEX_ENTRY_SIZE;
    uint64_t object_size = index_position + w->index_size + OBJECT_FOOTER_SIZE;
    struct slice tail = slice_new(w->index_size + OBJECT_FOOTER_SIZE, &at);
    for (uint32_t i = 0; i < w->block_count; i++) {
        const struct object_block *b = &w->blocks[i];
        uint8_t *entry = at + (size_t)i * OBJECT_INDEX_ENTRY_SIZE;
        mink_assert(i == 0 || b[-1].stream < b->stream || (b[-1].stream == b->stream && b[-1].offset_end <= b->offset_first));
        put_block_fields(entry, b);
        put(entry + 40, b->position, 8);
        put(entry + 48, b->epoch, 4);
        put(entry + 52, b->batches, 4);
        put(entry + 56, b->payload_size, 4);
        put(entry + 60, b->payload_crc32c, 4);
    }
    uint8_t *footer = at + w->index_size;
    put(footer, index_position, 8);
    put(footer + 8, w->index_size, 8);
    put(footer + 16, w->block_count, 4);
    put(footer + 20, crc32c(at, w->index_size), 4);
    memcpy(footer + 24, w->header.content_id, 16);
    put(footer + 40, object_size, 8);
    put(footer + 48, FORMAT_VERSION, 2);
    put(footer + 50, w->header.kind, 2);
    put(footer + 52, 0, 4);
    put(footer + 56, crc32c(footer, 56), 4);
    put(footer + 60, FOOTER_MAGIC, 4);
    append(w, tail, crc32c(at, tail.size));
}

void object_writer_deinit(struct object_writer *w) {
    slices_deinit(&w->body);
    mem_free(w->blocks);
    w->blocks = NULL;
}

// ---- decoding

static bool known_kind(uint16_t kind) { return kind >= OBJECT_KIND_WAL && kind <= OBJECT_KIND_STREAM; }

static enum mink_code bad(struct error *e, const char *part, const char *what) { return error_set(e, MINK_CORRUPT, "BAD_OBJECT", "object %s: %s", part, what); }

static enum mink_code check_version(uint16_t version, const char *part, struct error *e) {
    if (version == FORMAT_VERSION) return MINK_OK;
    return error_set(e, MINK_UNSUPPORTED, "NEWER_FORMAT", "object %s: format version %u; this version of Mink reads version %d", part, version, FORMAT_VERSION);
}

enum mink_code object_header_decode(struct slice bytes, struct object_header *out, struct error *e) {
    struct reader r;
    if (bytes.size < OBJECT_HEADER_SIZE) return bad(e, "header", "truncated");
    reader_init(&r, bytes.data, OBJECT_HEADER_SIZE);
    uint64_t magic = reader_u64le(&r);
    uint16_t version = reader_u16le(&r), kind = reader_u16le(&r);
    uint32_t header_size = reader_u32le(&r);
    memcpy(out->cluster_id, reader_bytes(&r, 16), 16);
    out->creator = reader_u64le(&r);
    out->subject = reader_u64le(&r);
    out->seq = reader_u64le(&r);
    memcpy(out->content_id, reader_bytes(&r, 16), 16);
    out->created_ms = reader_i64le(&r);
    out->acked_end = reader_u64le(&r);
    out->wal_committed = reader_u64le(&r);
    bool reserved = reader_zeros(&r, 28);
    if (magic != HEADER_MAGIC) return bad(e, "header", "wrong magic");
    struct reader crc;
    reader_init(&crc, bytes.data + 124, 4);
    if (reader_u32le(&crc) != crc32c(bytes.data, 124)) return bad(e, "header", "wrong checksum");
    MINK_TRY(check_version(version, "header", e));
    if (!known_kind(kind) || header_size != OBJECT_HEADER_SIZE || !reserved) return bad(e, "header", "impossible fields");
    out->kind = (enum object_kind)kind;
    return MINK_OK;
}

enum mink_code object_footer_decode(struct slice bytes, struct object_footer *out, struct error *e) {
    struct reader r;
    if (bytes.size != OBJECT_FOOTER_SIZE) return bad(e, "footer", "truncated");
    reader_init(&r, bytes.data, bytes.size);
    out->index_position = reader_u64le(&r);
    out->index_size = reader_u64le(&r);
    out->block_count = reader_u32le(&r);
    out->index_crc32c = reader_u32le(&r);
    memcpy(out->content_id, reader_bytes(&r, 16), 16);
    out->object_size = reader_u64le(&r);
    uint16_t version = reader_u16le(&r), kind = reader_u16le(&r);
    uint32_t reserved = reader_u32le(&r), crc = reader_u32le(&r), magic = reader_u32le(&r);
    if (magic != FOOTER_MAGIC) return bad(e, "footer", "wrong magic");
    if (crc != crc32c(bytes.data, 56)) return bad(e, "footer", "wrong checksum");
    MINK_TRY(check_version(version, "footer", e));
    if (!known_kind(kind) || reserved) return bad(e, "footer", "impossible fields");
    out->kind = (enum object_kind)kind;
    if (out->index_size != (uint64_t)out->block_count * OBJECT_INDEX_ENTRY_SIZE || out->index_size > OBJECT_INDEX_MAX || out->index_position < OBJECT_HEADER_SIZE ||
        out->object_size < OBJECT_FOOTER_SIZE + out->index_size || out->index_position != out->object_size - OBJECT_FOOTER_SIZE - out->index_size)
        return bad(e, "footer", "sizes do not add up");
    return MINK_OK;
}

enum mink_code object_index_decode(struct slice index, const struct object_footer *footer, struct object_block **blocks, struct error *e) {
    *blocks = NULL;
    if (index.size != footer->index_size) return bad(e, "index", "truncated");
    if (crc32c(index.data, index.size) != footer->index_crc32c) return bad(e, "index", "wrong checksum");
    struct object_block *list = mem_new_array(struct object_block, footer->block_count + 1);
    struct reader r;
    reader_init(&r, index.data, index.size);
    enum mink_code code = MINK_OK;
    for (uint32_t i = 0; i < footer->block_count && code == MINK_OK; i++) {
        struct object_block *b = &list[i];
        b->stream = reader_u64le(&r);
        b->offset_first = reader_u64le(&r);
        b->offset_end = reader_u64le(&r);
        b->ts_min = reader_i64le(&r);
        b->ts_max = reader_i64le(&r);
        b->position = reader_u64le(&r);
        b->epoch = reader_u32le(&r);
        b->batches = reader_u32le(&r);
        b->payload_size = reader_u32le(&r);
        b->payload_crc32c = reader_u32le(&r);
        if (b->offset_first >= b->offset_end || b->payload_size > OBJECT_PAYLOAD_MAX) code = bad(e, "index", "impossible block");
        else if (b->position < OBJECT_HEADER_SIZE || b->position > footer->index_position || object_block_stored_size(b) > footer->index_position - b->position) code = bad(e, "index", "a block outside the object");
        else if (i && (b[-1].stream > b->stream || b[-1].position >= b->position)) code = bad(e, "index", "not sorted");
        else if (i && b[-1].stream == b->stream && (b[-1].offset_end != b->offset_first || b[-1].epoch > b->epoch)) code = bad(e, "index", "blocks of a stream are not contiguous");
    }
    if (code != MINK_OK) mem_free(list);
    else *blocks = list;
    return code;
}

enum mink_code object_block_check(struct slice bytes, const struct object_block *expected, struct error *e) {
    struct reader r;
    if (bytes.size != object_block_stored_size(expected)) return bad(e, "block", "truncated");
    reader_init(&r, bytes.data, bytes.size);
    bool equal = reader_u64le(&r) == expected->stream;
    equal &= reader_u64le(&r) == expected->offset_first;
    equal &= reader_u64le(&r) == expected->offset_end;
    equal &= reader_i64le(&r) == expected->ts_min;
    equal &= reader_i64le(&r) == expected->ts_max;
    equal &= reader_u32le(&r) == expected->epoch;
    equal &= reader_u32le(&r) == expected->batches;
    equal &= reader_u32le(&r) == expected->payload_size;
    equal &= reader_u32le(&r) == expected->payload_crc32c;
    equal &= reader_u32le(&r) == 0;
    if (reader_u32le(&r) != crc32c(bytes.data, 60)) return bad(e, "block", "wrong header checksum");
    if (!equal) return bad(e, "block", "another block than the index says");
    if (crc32c(bytes.data + OBJECT_BLOCK_HEADER_SIZE, expected->payload_size) != expected->payload_crc32c) return bad(e, "block", "wrong payload checksum");
    return MINK_OK;
}

// ---- keys

static uint8_t spread(const void *data, size_t size) { return (uint8_t)(hash64(data, size) >> 56); }

static uint8_t wal_spread(uint64_t incarnation) {
    uint8_t bytes[8];
    put(bytes, incarnation, 8);
    return spread(bytes, sizeof bytes);
}

void object_key_wal_prefix(uint64_t incarnation, char *out, size_t size) { snprintf(out, size, "wal/%02x/%010" PRIx64 "/", wal_spread(incarnation), incarnation); }

void object_key_wal(uint64_t incarnation, uint64_t seq, char *out, size_t size) { snprintf(out, size, "wal/%02x/%010" PRIx64 "/%010" PRIx64, wal_spread(incarnation), incarnation, seq); }

void object_key(struct catalog_object_id id, char *out, size_t size) {
    if (id.kind == OBJECT_KIND_WAL || id.kind == OBJECT_KIND_SEAL) {
        object_key_wal(id.incarnation, id.number, out, size);
        return;
    }
    uint8_t bytes[16];
    put(bytes, id.incarnation, 8);
    put(bytes + 8, id.number, 8);
    snprintf(out, size, "obj/%02x/%010" PRIx64 "-%06" PRIx64, spread(bytes, sizeof bytes), id.incarnation, id.number);
}

bool object_key_parse(const char *key, struct catalog_object_id *out) {
    char again[OBJECT_KEY_TEXT];
    unsigned hh;
    int end = 0;
    if (sscanf(key, "wal/%2x/%10" SCNx64 "/%10" SCNx64 "%n", &hh, &out->incarnation, &out->number, &end) == 3 && key[end] == 0) out->kind = OBJECT_KIND_WAL;
    else if (sscanf(key, "obj/%2x/%10" SCNx64 "-%6" SCNx64 "%n", &hh, &out->incarnation, &out->number, &end) == 3 && key[end] == 0) out->kind = OBJECT_KIND_SET;
    else return false;
    object_key(*out, again, sizeof again);
    return strcmp(again, key) == 0;
}
