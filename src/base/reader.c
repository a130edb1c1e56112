// SPDX-License-Identifier: Apache-2.0
#include "base/reader.h"

void reader_init(struct reader *r, const void *data, size_t size) {
    *r = (struct reader){.begin = data, .at = data, .end = size ? (const uint8_t *)data + size : data}; // NULL + 0 is not allowed
}

void reader_fail(struct reader *r, size_t wanted) {
    if (r->failed) return;
    r->failed = true;
    r->failed_at = reader_position(r);
    r->wanted = wanted;
}

const uint8_t *reader_bytes(struct reader *r, size_t size) {
    if (r->failed || size > reader_left(r)) {
        reader_fail(r, size);
        return NULL;
    }
    const uint8_t *at = r->at;
    r->at += size;
    return at;
}

static uint64_t read_le(struct reader *r, size_t size) {
    const uint8_t *at = reader_bytes(r, size);
    uint64_t v = 0;
    for (size_t i = 0; at && i < size; i++) v |= (uint64_t)at[i] << (8 * i);
    return v;
}

uint8_t reader_u8(struct reader *r) { return (uint8_t)read_le(r, 1); }
uint16_t reader_u16le(struct reader *r) { return (uint16_t)read_le(r, 2); }
uint32_t reader_u32le(struct reader *r) { return (uint32_t)read_le(r, 4); }
uint64_t reader_u64le(struct reader *r) { return read_le(r, 8); }

uint64_t reader_varint(struct reader *r) {
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        uint8_t byte = reader_u8(r);
        if (r->failed) return 0;
        if (shift == 63 && byte > 1) break;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) return v;
    }
    reader_fail(r, 1);
    return 0;
}

bool reader_zeros(struct reader *r, size_t size) {
    const uint8_t *at = reader_bytes(r, size);
    for (size_t i = 0; at && i < size; i++)
        if (at[i] != 0) {
            r->at = at + i;
            reader_fail(r, 1);
            return false;
        }
    return at != NULL;
}

uint32_t reader_count(struct reader *r, uint32_t count_max) {
    uint32_t v = reader_u32le(r);
    if (v <= count_max) return v;
    reader_fail(r, v);
    return 0;
}

void reader_sub(struct reader *r, size_t size, struct reader *sub) {
    const uint8_t *at = reader_bytes(r, size);
    reader_init(sub, at, at ? size : 0);
    if (!at) reader_fail(sub, size);
}

enum mink_code reader_finish(const struct reader *r, const char *what, struct error *e) {
    if (!r->failed) return MINK_OK;
    return error_set(e, MINK_CORRUPT, "MALFORMED", "%s: malformed at byte %zu of %zu (wanted %zu, left %zu)", what,
                     r->failed_at, (size_t)(r->end - r->begin), r->wanted, (size_t)(r->end - r->begin) - r->failed_at);
}
