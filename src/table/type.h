// SPDX-License-Identifier: Apache-2.0
// type.h: Mink's column types and their Arrow form (docs/tables.md#types).
// Owner     Plain values; any thread.
#ifndef MINK_TABLE_TYPE_H
#define MINK_TABLE_TYPE_H
#include "arrow/schema.h"
enum type_kind {
    TYPE_BOOLEAN, TYPE_TINYINT, TYPE_SMALLINT, TYPE_INT, TYPE_BIGINT, TYPE_FLOAT, TYPE_DOUBLE, TYPE_DECIMAL, TYPE_CHAR, TYPE_STRING,
    TYPE_BINARY, TYPE_BYTES, TYPE_DATE, TYPE_TIME, TYPE_TIMESTAMP, TYPE_TIMESTAMP_LTZ, TYPE_ARRAY, TYPE_MAP, TYPE_ROW, TYPE_KIND_COUNT
};
#define TYPE_BINARY_LENGTH_MAX (1u << 24)
#define TYPE_CHAR_LENGTH_MAX 2147483647u
// Levels as Arrow counts them below a column: a map's key is two below the map. Leaves room below ARROW_DEPTH_MAX.
#define TYPE_DEPTH_MAX 20
struct type_field;
struct type {
    enum type_kind kind;
    bool nullable;
    uint8_t precision, scale;     // DECIMAL; precision also TIME, TIMESTAMP*
    uint32_t length;              // CHAR, BINARY
    struct type_field *fields;    // ARRAY 1 (element), MAP 2 (key, value), ROW n
    uint32_t field_count;
};
struct type_field { char *name; uint32_t id; struct type type; }; // ids are unique in a table, nested fields too
void type_deinit(struct type *t);
void type_copy(struct type *target, const struct type *source);
bool type_equal(const struct type *a, const struct type *b); // ids apart
const char *type_name(enum type_kind kind); // "DECIMAL"
bool type_is_nested(const struct type *t);
uint32_t type_depth(const struct type *t);  // 0 for leaves
void type_print(const struct type *t, struct buffer *out);   // "DECIMAL(12,2) NOT NULL", parses back
void type_describe(const struct type *t, char *out, size_t size); // the same without NOT NULL at the top, cut to size
void type_to_arrow(const struct type *t, const char *name, struct arrow_field *out);
// For tables created from an Arrow schema; refuses with a hint what has no counterpart. widen: uint8-32, uint64, float16, date64 as the ingest mapping says.
enum mink_code type_from_arrow(const struct arrow_field *f, bool widen, struct type *out, struct error *e) MINK_MUST_CHECK;
bool type_can_promote(const struct type *from, const struct type *to);
#endif
