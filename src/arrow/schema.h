// SPDX-License-Identifier: Apache-2.0
// schema.h: Arrow schemas, in our own immutable form.
//
// What      A schema is a tree of fields, counted, never changed after it is built. Nanoarrow stays behind schema.c and ipc.c.
// Owner     Any thread (counted); building: one thread.
// Source    Arrow columnar format 1.5, Schema.fbs.
#ifndef MINK_ARROW_SCHEMA_H
#define MINK_ARROW_SCHEMA_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/slice.h"

enum arrow_type {
    ARROW_NULL, ARROW_BOOL, ARROW_INT8, ARROW_INT16, ARROW_INT32, ARROW_INT64, ARROW_UINT8, ARROW_UINT16, ARROW_UINT32, ARROW_UINT64,
    ARROW_FLOAT16, ARROW_FLOAT32, ARROW_FLOAT64, ARROW_DECIMAL128, ARROW_UTF8, ARROW_LARGE_UTF8, ARROW_BINARY, ARROW_LARGE_BINARY,
    ARROW_FIXED_BINARY, ARROW_DATE32, ARROW_DATE64, ARROW_TIME32, ARROW_TIME64, ARROW_TIMESTAMP, ARROW_DURATION,
    ARROW_LIST, ARROW_LARGE_LIST, ARROW_FIXED_LIST, ARROW_STRUCT, ARROW_MAP, ARROW_TYPE_COUNT
};
enum arrow_unit { ARROW_SECOND, ARROW_MILLI, ARROW_MICRO, ARROW_NANO };

struct arrow_field {
    char *name;
    enum arrow_type type;
    bool nullable;
    bool dictionary;          // comes dictionary-encoded on the wire (values of `type`); arrays are always hydrated to plain
    enum arrow_type index_type; // and the wire form of it: integer type of the indices, id of the dictionary
    int64_t dictionary_id;
    bool view;                // UTF8, BINARY: comes as views on the wire; arrays are plain, too
    enum arrow_unit unit;     // TIME*, TIMESTAMP, DURATION
    char *timezone;           // TIMESTAMP: NULL = none
    int32_t precision, scale; // DECIMAL128
    int32_t width;            // FIXED_BINARY bytes, FIXED_LIST length
    struct arrow_field *children;
    uint32_t child_count;
    struct arrow_metadata { char *key, *value; } *metadata;
    uint32_t metadata_count;
};

#define ARROW_DEPTH_MAX 24 // of nested fields; a JSON writer nests to 31
#define ARROW_FIELDS_MAX 65536

struct arrow_schema {
    atomic_uint refs;
    struct arrow_field root; // a STRUCT whose children are the columns
};

// Builder: fields are moved into the schema (the caller's array of fields is mem_free'd by it).
struct arrow_schema *arrow_schema_new(struct arrow_field *take_fields, uint32_t field_count);
struct arrow_schema *arrow_schema_ref(struct arrow_schema *s);
void arrow_schema_unref(struct arrow_schema *s); // NULL is fine
static inline uint32_t arrow_schema_count(const struct arrow_schema *s) { return s->root.child_count; }
static inline const struct arrow_field *arrow_schema_at(const struct arrow_schema *s, uint32_t i) { return &s->root.children[i]; }
int32_t arrow_schema_find(const struct arrow_schema *s, const char *name); // -1 when absent; exact case
struct arrow_schema *arrow_schema_project(const struct arrow_schema *s, const uint32_t *columns, uint32_t count);

struct arrow_field arrow_field_make(const char *name, enum arrow_type type, bool nullable); // leaves
void arrow_field_copy(struct arrow_field *target, const struct arrow_field *source);       // deep
void arrow_field_deinit(struct arrow_field *f);
bool arrow_field_type_equal(const struct arrow_field *a, const struct arrow_field *b);     // type, parameters, children; not names of the top
void arrow_field_describe(const struct arrow_field *f, char *out, size_t size);            // "timestamp[us, tz=UTC]", "list<item: int32>" as pyarrow prints
// Buffers an array of this type owns itself, in IPC order (validity first): 0 NULL, 1 STRUCT and FIXED_LIST, 2 fixed width, LIST and MAP, 3 variable.
uint32_t arrow_field_buffer_count(const struct arrow_field *f);
uint32_t arrow_type_bit_width(const struct arrow_field *f); // 0 for variable and nested

// The C data interface (ABI structs are the standard's): import copies, export allocates; release by the consumer.
struct ArrowSchema;
enum mink_code arrow_schema_import(struct ArrowSchema *source, struct arrow_schema **out, struct error *e) MINK_MUST_CHECK; // releases source
enum mink_code arrow_schema_export(const struct arrow_schema *s, struct ArrowSchema *out, struct error *e) MINK_MUST_CHECK;

#endif
