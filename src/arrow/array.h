// SPDX-License-Identifier: Apache-2.0
// array.h: Arrow arrays and record batches whose buffers are slices.
//
// What      An array is a node of a tree parallel to its field: length, null count, buffers, children. Buffers are counted slices,
//           so a decoded batch refers to the bytes that came from the socket or the store. Offset is always zero (imports are normalised).
// Owner     One thread at a time; the buffers are shared and immutable.
// Holds     A batch that came out of ipc_decode_batch or array import has been validated: buffers are long enough, offsets ascend inside
//           the data, UTF-8 is valid, null counts are right. Kernels rely on it.
#ifndef MINK_ARROW_ARRAY_H
#define MINK_ARROW_ARRAY_H

#include "arrow/schema.h"

struct arrow_array {
    int64_t length, null_count;
    struct slice buffers[3]; // [0] validity bitmap: empty = all valid; [1] data or offsets; [2] bytes of variable types
    struct arrow_array *children;
    uint32_t child_count;
};

struct arrow_batch {
    struct arrow_schema *schema; // one reference
    int64_t row_count;
    struct arrow_array *columns; // schema's column count
};

void arrow_batch_deinit(struct arrow_batch *b); // drops references; zeroed and usable
void arrow_array_deinit(struct arrow_array *a);
void arrow_array_ref(struct arrow_array *target, const struct arrow_array *source); // shares buffers
void arrow_batch_ref(struct arrow_batch *target, const struct arrow_batch *source);
size_t arrow_batch_bytes(const struct arrow_batch *b); // sum of buffer sizes

static inline bool arrow_is_null(const struct arrow_array *a, int64_t row) {
    // Nulls without a bitmap: the NULL type, where every row is one.
    return a->null_count != 0 && (a->buffers[0].size == 0 || !(a->buffers[0].data[row >> 3] >> (row & 7) & 1));
}

struct ArrowArray;
struct ArrowSchema;
// Takes the array (released when the last buffer reference goes, or at once on error). Dictionaries and views become plain arrays, offsets
// are taken out; large types stay what they are (arrow_cast makes them plain). schema: of arrow_schema_import.
enum mink_code arrow_batch_import(struct ArrowArray *take_array, struct arrow_schema *schema, struct arrow_batch *out, struct error *e) MINK_MUST_CHECK;
enum mink_code arrow_batch_export(const struct arrow_batch *b, struct ArrowArray *out, struct error *e) MINK_MUST_CHECK;

// Row builder for small results (catalog listings, CSV, JSON lines): append a value per column, then the row.
struct arrow_builder;
struct arrow_builder *arrow_builder_new(struct arrow_schema *schema); // refs the schema
void arrow_builder_free(struct arrow_builder *b);
void arrow_builder_null(struct arrow_builder *b, uint32_t column);
void arrow_builder_bool(struct arrow_builder *b, uint32_t column, bool v);
void arrow_builder_int(struct arrow_builder *b, uint32_t column, int64_t v);   // any integer, date, time, timestamp column
void arrow_builder_real(struct arrow_builder *b, uint32_t column, double v);
void arrow_builder_bytes(struct arrow_builder *b, uint32_t column, const void *data, size_t size); // utf8, binary, fixed binary
void arrow_builder_decimal(struct arrow_builder *b, uint32_t column, __int128 v);
// A value from text, by the column's type ("2013-01-01 05:00:00", "12.50", "true", hex for binary); INVALID [BAD_VALUE] names column and text.
enum mink_code arrow_builder_text(struct arrow_builder *b, uint32_t column, const char *text, size_t size, struct error *e) MINK_MUST_CHECK;
// A value of any type, nested too, from JSON.
struct json;
enum mink_code arrow_builder_json(struct arrow_builder *b, uint32_t column, const struct json *value, struct error *e) MINK_MUST_CHECK;
void arrow_builder_row(struct arrow_builder *b); // ends the row: columns without a value get null
int64_t arrow_builder_rows(const struct arrow_builder *b);
size_t arrow_builder_size(const struct arrow_builder *b);
void arrow_builder_finish(struct arrow_builder *b, struct arrow_batch *out); // the builder is empty and usable again
// One value as text, the inverse of arrow_builder_text (nested values as JSON).
void arrow_value_text(const struct arrow_field *f, const struct arrow_array *a, int64_t row, struct buffer *out);
struct json_writer;
void arrow_value_json(const struct arrow_field *f, const struct arrow_array *a, int64_t row, struct json_writer *out);

#endif
