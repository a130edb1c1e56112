// SPDX-License-Identifier: Apache-2.0
// kernel.h: take, filter, slice, concat, cast. Inputs are validated batches; outputs are new batches (buffers shared where that is possible).
// Owner     One thread. One allocation per output buffer, none per row.
#ifndef MINK_ARROW_KERNEL_H
#define MINK_ARROW_KERNEL_H
#include "arrow/array.h"
void arrow_take(const struct arrow_batch *b, const uint32_t *rows, size_t row_count, struct arrow_batch *out);
void arrow_slice(const struct arrow_batch *b, int64_t begin, int64_t count, struct arrow_batch *out); // offsets recomputed; buffers shared where aligned
void arrow_concat(const struct arrow_batch *const *batches, size_t count, struct arrow_batch *out);   // equal schemas; count > 0
void arrow_project(const struct arrow_batch *b, const uint32_t *columns, uint32_t count, struct arrow_batch *out);
// Lossless casts only: integers up, float up, large_* to plain, time unit up, null to anything nullable, integers to a decimal that holds them,
// decimal to one with more precision. INVALID [TYPE_MISMATCH] otherwise, or when a value does not fit (large offsets, overflow).
bool arrow_can_cast(const struct arrow_field *from, const struct arrow_field *to);
enum mink_code arrow_cast(const struct arrow_field *from, const struct arrow_array *a, const struct arrow_field *to, struct arrow_array *out, struct error *e) MINK_MUST_CHECK;
void arrow_nulls(const struct arrow_field *f, int64_t length, struct arrow_array *out); // an all-null column
struct arrow_column_stats { bool has_min_max; struct arrow_scalar { int64_t i; double d; __int128 dec; const uint8_t *bytes; size_t size; } min, max; int64_t null_count; };
// min/max of integer, date, time, timestamp, float (NaN: no min/max), decimal, utf8 columns; borrows from a.
void arrow_stats(const struct arrow_field *f, const struct arrow_array *a, struct arrow_column_stats *out);
#endif
