// SPDX-License-Identifier: Apache-2.0
// arrow_internal.h: shared insides of this folder.
//
// Owner     As array.h. Functions that build arrays leave *out complete or, on error, empty.
#ifndef MINK_ARROW_ARROW_INTERNAL_H
#define MINK_ARROW_ARROW_INTERNAL_H

#include "arrow/array.h"
#include "arrow/ipc.h"

#include <limits.h>
#include <string.h>

// What is wrong with a field's parameters and children (counts, widths, precision), or NULL. Children were checked before.
const char *arrow_field_check(const struct arrow_field *f);

static inline size_t align_up(size_t n, size_t to) { return (n + to - 1) & ~(to - 1); }
static inline int32_t load_i32(const uint8_t *base, int64_t i) { int32_t v; memcpy(&v, base + 4 * i, 4); return v; }
static inline int64_t load_i64(const uint8_t *base, int64_t i) { int64_t v; memcpy(&v, base + 8 * i, 8); return v; }
static inline bool bit_get(const uint8_t *bits, int64_t i) { return bits[i >> 3] >> (i & 7) & 1; }
static inline void bit_set(uint8_t *bits, int64_t i) { bits[i >> 3] |= (uint8_t)(1u << (i & 7)); }
static inline bool type_is_large(enum arrow_type t) { return t == ARROW_LARGE_UTF8 || t == ARROW_LARGE_BINARY || t == ARROW_LARGE_LIST; }
static inline bool type_is_bytes(enum arrow_type t) { return t == ARROW_UTF8 || t == ARROW_BINARY || t == ARROW_LARGE_UTF8 || t == ARROW_LARGE_BINARY; }
static inline bool type_is_list(enum arrow_type t) { return t == ARROW_LIST || t == ARROW_LARGE_LIST || t == ARROW_MAP; }
// Entry i of an offsets buffer, 32 or 64 bits wide.
static inline int64_t offset_at(const struct arrow_field *f, const struct arrow_array *a, int64_t i) {
    return type_is_large(f->type) ? load_i64(a->buffers[1].data, i) : load_i32(a->buffers[1].data, i);
}

extern const uint8_t arrow_zeros[64]; // offsets of empty arrays, padding

// Buffer sizes for `length` rows.
static inline size_t bits_bytes(int64_t length) { return (size_t)(length + 7) / 8; }
static inline size_t fixed_bytes(const struct arrow_field *f, int64_t length) { return ((size_t)length * arrow_type_bit_width(f) + 7) / 8; }
static inline size_t offset_width(const struct arrow_field *f) { return type_is_large(f->type) ? 8 : 4; }

int64_t bits_count(const uint8_t *bits, int64_t begin, int64_t count); // ones among count bits from bit `begin`
bool utf8_is_ascii(const uint8_t *data, size_t size);
bool utf8_valid(const uint8_t *data, size_t size);
// bits [begin, begin + count) moved to bit 0; shares the bytes when begin is a multiple of 8.
struct slice bits_slice(struct slice bits, int64_t begin, int64_t count);

// Rows [begin, begin + count) of a; recomputes offsets and null counts, shares what it can.
void array_slice(const struct arrow_field *f, const struct arrow_array *a, int64_t begin, int64_t count, struct arrow_array *out);
// Rows by index; ARRAY_TAKE_NULL gives a null. budget: bytes that may still be made, reduced; false (and *out empty) when it is not enough
// or offsets would not fit.
#define ARRAY_TAKE_NULL UINT32_MAX
bool array_take(const struct arrow_field *f, const struct arrow_array *a, const uint32_t *rows, int64_t count, uint64_t *budget, struct arrow_array *out);
// A FLOAT16, FLOAT32 or FLOAT64 value.
double arrow_real_at(const struct arrow_field *f, const struct arrow_array *a, int64_t row);
void array_concat(const struct arrow_field *f, const struct arrow_array *const *parts, size_t count, struct arrow_array *out);
// Checks what the bytes of a well-formed array mean: offsets, UTF-8, null counts; then normalises it to what array.h promises.
// The buffers hold at least what `length` needs (an offsets buffer may be empty when length is 0); children are valid already.
enum mink_code array_validate(const struct arrow_field *f, struct arrow_array *a, int64_t claimed_nulls, struct error *e) MINK_MUST_CHECK;

// Dictionary values at the indices' places (integers of f->index_type); a null index, or one of a null value, gives null. values: NULL when
// none were sent, which is fine for nulls only. budget as in array_take.
enum mink_code array_hydrate(const struct arrow_field *f, const struct arrow_array *indices, const struct arrow_array *values, uint64_t *budget, struct arrow_array *out, struct error *e) MINK_MUST_CHECK;

// out has its length and validity; offsets and bytes are made from views (16 bytes a row) into data buffers. UTF-8 is not checked here.
enum mink_code array_from_views(const struct arrow_field *f, const uint8_t *views, const struct slice *data, int64_t data_count, uint64_t *budget, struct arrow_array *out, struct error *e) MINK_MUST_CHECK;

#endif
