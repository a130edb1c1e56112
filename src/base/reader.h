// SPDX-License-Identifier: Apache-2.0
// reader.h: bounds-checked decoding of foreign bytes.
//
// What      Reads fixed-width little-endian values, varints and sub-ranges. The first failure sticks: later reads give
//           zero, and one check at the end (reader_ok) tells. A nested part gets a reader of its own range, so it
//           cannot read its neighbour.
// Owner     One thread; borrows the bytes.
#ifndef MINK_BASE_READER_H
#define MINK_BASE_READER_H

#include "base/error.h"
#include "base/slice.h"

struct reader {
    const uint8_t *begin, *at, *end;
    bool failed;
    size_t failed_at; // offset of the first failure
    size_t wanted;    // bytes that it wanted
};

void reader_init(struct reader *r, const void *data, size_t size);
static inline bool reader_ok(const struct reader *r) { return !r->failed; }
static inline size_t reader_left(const struct reader *r) { return (size_t)(r->end - r->at); }
static inline size_t reader_position(const struct reader *r) { return (size_t)(r->at - r->begin); }
uint8_t reader_u8(struct reader *r);
uint16_t reader_u16le(struct reader *r);
uint32_t reader_u32le(struct reader *r);
uint64_t reader_u64le(struct reader *r);
static inline int64_t reader_i64le(struct reader *r) { return (int64_t)reader_u64le(r); }
static inline int32_t reader_i32le(struct reader *r) { return (int32_t)reader_u32le(r); }
uint64_t reader_varint(struct reader *r);                    // LEB128, at most 10 bytes
const uint8_t *reader_bytes(struct reader *r, size_t size);  // borrowed; NULL on failure
bool reader_zeros(struct reader *r, size_t size);            // reserved bytes: fails unless all zero
uint32_t reader_count(struct reader *r, uint32_t count_max); // a u32le that may not pass count_max
void reader_sub(struct reader *r, size_t size, struct reader *sub);
void reader_fail(struct reader *r, size_t wanted);
// CORRUPT with position, wanted and left in the text when failed, else OK.
enum mink_code reader_finish(const struct reader *r, const char *what, struct error *e) MINK_MUST_CHECK;

#endif
