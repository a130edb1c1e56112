// SPDX-License-Identifier: Apache-2.0
// Row by row into columns, for small results. A column keeps a byte a row for validity and booleans; finishing packs them into bits.
#include "arrow/array.h"

#include "arrow/value_internal.h"
#include "base/json.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>

#define COLUMN_BYTES_MAX ((size_t)INT32_MAX)

struct column_builder {
    const struct arrow_field *f;
    int64_t length, null_count;
    struct buffer valid; // a byte a row
    struct buffer data;  // fixed values; or offsets, one more than rows
    struct buffer bytes;
    struct column_builder *children;
};

struct arrow_builder {
    struct arrow_schema *schema;
    struct column_builder *columns;
    int64_t rows;
};

static bool has_offsets(const struct arrow_field *f) { return type_is_bytes(f->type) || type_is_list(f->type); }

// Bytes a row takes in `data`.
static size_t data_width(const struct arrow_field *f) {
    if (f->type == ARROW_BOOL) return 1;
    return has_offsets(f) ? offset_width(f) : arrow_type_bit_width(f) / 8;
}

static void column_init(struct column_builder *c, const struct arrow_field *f) {
    *c = (struct column_builder){.f = f};
    buffer_init(&c->valid, COLUMN_BYTES_MAX);
    buffer_init(&c->data, COLUMN_BYTES_MAX);
    buffer_init(&c->bytes, COLUMN_BYTES_MAX);
    if (has_offsets(f)) buffer_put_zeros(&c->data, offset_width(f));
    c->children = f->child_count ? mem_new_array(struct column_builder, f->child_count) : NULL;
    for (uint32_t i = 0; i < f->child_count; i++) column_init(&c->children[i], &f->children[i]);
}

static void column_deinit(struct column_builder *c) {
    buffer_deinit(&c->valid);
    buffer_deinit(&c->data);
    buffer_deinit(&c->bytes);
    for (uint32_t i = 0; i < c->f->child_count; i++) column_deinit(&c->children[i]);
    mem_free(c->children);
}

struct arrow_builder *arrow_builder_new(struct arrow_schema *schema) {
    struct arrow_builder *b = mem_new(struct arrow_builder);
    b->schema = arrow_schema_ref(schema);
    b->columns = mem_new_array(struct column_builder, arrow_schema_count(schema));
    for (uint32_t i = 0; i < arrow_schema_count(schema); i++) column_init(&b->columns[i], arrow_schema_at(schema, i));
    return b;
}

void arrow_builder_free(struct arrow_builder *b) {
    if (b == NULL) return;
    for (uint32_t i = 0; i < arrow_schema_count(b->schema); i++) column_deinit(&b->columns[i]);
    mem_free(b->columns);
    arrow_schema_unref(b->schema);
    mem_free(b);
}

static void end_value(struct column_builder *c, bool valid) {
    c->length++;
    c->null_count += !valid;
    buffer_put_u8(&c->valid, valid);
    mink_assert(!c->valid.overflowed && !c->data.overflowed && !c->bytes.overflowed);
}

static void put_offset(struct column_builder *c, uint64_t end) { buffer_put(&c->data, &end, offset_width(c->f)); }

static void append_null(struct column_builder *c) {
    const struct arrow_field *f = c->f;
    if (type_is_bytes(f->type)) put_offset(c, c->bytes.size);
    else if (type_is_list(f->type)) put_offset(c, (uint64_t)c->children[0].length);
    else buffer_put_zeros(&c->data, data_width(f));
    for (uint32_t i = 0; i < f->child_count && !type_is_list(f->type); i++) {
        for (int32_t k = 0; k < (f->type == ARROW_FIXED_LIST ? f->width : 1); k++) append_null(&c->children[i]);
    }
    end_value(c, false);
}

static void append_int(struct column_builder *c, int64_t v) {
    buffer_put(&c->data, &v, data_width(c->f));
    end_value(c, true);
}

static void append_real(struct column_builder *c, double v) {
    float single = (float)v;
    if (c->f->type == ARROW_FLOAT64) buffer_put(&c->data, &v, 8);
    else if (c->f->type == ARROW_FLOAT32) buffer_put(&c->data, &single, 4);
    else mink_assert(!"a float16 column cannot be built");
    end_value(c, true);
}

static void append_bytes(struct column_builder *c, const void *data, size_t size) {
    if (c->f->type == ARROW_FIXED_BINARY) {
        mink_assert(size == (size_t)c->f->width);
        buffer_put(&c->data, data, size);
    } else {
        mink_assert(type_is_bytes(c->f->type));
        buffer_put(&c->bytes, data, size);
        put_offset(c, c->bytes.size);
    }
    end_value(c, true);
}

static void append_decimal(struct column_builder *c, __int128 v) {
    mink_assert(c->f->type == ARROW_DECIMAL128);
    buffer_put(&c->data, &v, 16);
    end_value(c, true);
}

static struct column_builder *next(struct arrow_builder *b, uint32_t column) {
    mink_assert(column < arrow_schema_count(b->schema) && b->columns[column].length == b->rows);
    return &b->columns[column];
}

void arrow_builder_null(struct arrow_builder *b, uint32_t column) { append_null(next(b, column)); }
void arrow_builder_real(struct arrow_builder *b, uint32_t column, double v) { append_real(next(b, column), v); }
void arrow_builder_bytes(struct arrow_builder *b, uint32_t column, const void *data, size_t size) { append_bytes(next(b, column), data, size); }
void arrow_builder_decimal(struct arrow_builder *b, uint32_t column, __int128 v) { append_decimal(next(b, column), v); }

void arrow_builder_bool(struct arrow_builder *b, uint32_t column, bool v) {
    struct column_builder *c = next(b, column);
    mink_assert(c->f->type == ARROW_BOOL);
    append_int(c, v);
}

void arrow_builder_int(struct arrow_builder *b, uint32_t column, int64_t v) {
    struct column_builder *c = next(b, column);
    mink_assert((c->f->type >= ARROW_INT8 && c->f->type <= ARROW_UINT64) || (c->f->type >= ARROW_DATE32 && c->f->type <= ARROW_DURATION));
    append_int(c, v);
}

static void append_value(struct column_builder *c, struct arrow_value *v) {
    switch (c->f->type) {
    case ARROW_FLOAT32:
    case ARROW_FLOAT64: append_real(c, v->d); break;
    case ARROW_DECIMAL128: append_decimal(c, v->decimal); break;
    case ARROW_UTF8:
    case ARROW_LARGE_UTF8:
    case ARROW_BINARY:
    case ARROW_LARGE_BINARY:
    case ARROW_FIXED_BINARY: append_bytes(c, v->bytes, v->size); break;
    default: append_int(c, v->i);
    }
    mem_free(v->owned);
}

static enum mink_code append_text(struct column_builder *c, const char *text, size_t size, struct error *e) {
    struct arrow_value v;
    if (c->f->type == ARROW_FLOAT16) return arrow_bad_value(c->f, text, size, "such columns are not built from text", e);
    MINK_TRY(arrow_value_parse(c->f, text, size, &v, e));
    append_value(c, &v);
    return MINK_OK;
}

// Back to `length` rows, after an error in the middle of a nested value.
static void truncate_to(struct column_builder *c, int64_t length) {
    const struct arrow_field *f = c->f;
    if (c->length < length) return;
    for (int64_t i = length; i < c->length; i++) c->null_count -= !c->valid.data[i];
    c->length = length;
    c->valid.size = (size_t)length;
    c->data.size = ((size_t)length + has_offsets(f)) * data_width(f);
    uint64_t end = 0;
    if (has_offsets(f)) memcpy(&end, c->data.data + c->data.size - offset_width(f), offset_width(f));
    if (type_is_bytes(f->type)) c->bytes.size = end;
    for (uint32_t i = 0; i < f->child_count; i++) truncate_to(&c->children[i], type_is_list(f->type) ? (int64_t)end : f->type == ARROW_FIXED_LIST ? length * f->width : length);
}

static enum mink_code append_json(struct column_builder *c, const struct json *v, struct error *e);

static enum mink_code wrong_json(const struct column_builder *c, const struct json *v, const char *wanted, struct error *e) {
    static const char *const names[] = {"null", "true or false", "an integer", "a number", "a string", "an array", "an object"};
    char type[64];
    arrow_field_describe(c->f, type, sizeof type);
    error_set(e, MINK_INVALID, "BAD_VALUE", "column %.60s is %s: %s is wanted, %s was given", c->f->name, type, wanted, names[json_type(v)]);
    error_about(e, c->f->name, type, names[json_type(v)]);
    return MINK_INVALID;
}

static enum mink_code append_json_map(struct column_builder *c, const struct json *v, struct error *e) {
    struct column_builder *entries = &c->children[0], *keys = &entries->children[0], *values = &entries->children[1];
    bool object = json_type(v) == JSON_OBJECT;
    if (!object && json_type(v) != JSON_ARRAY) return wrong_json(c, v, "an object, or an array of {\"key\", \"value\"}", e);
    for (size_t i = 0; i < json_count(v); i++) {
        const struct json *value;
        if (object) {
            const char *key = json_key_at(v, i, &value);
            if (keys->f->child_count) return wrong_json(c, v, "an array of {\"key\", \"value\"}", e);
            MINK_TRY(append_text(keys, key, strlen(key), e));
        } else {
            const struct json *entry = json_at(v, i), *key = json_get(entry, "key");
            static const char *const known[] = {"key", "value", NULL};
            if (json_type(entry) != JSON_OBJECT || key == NULL) return wrong_json(c, entry, "{\"key\", \"value\"}", e);
            MINK_TRY(json_check_keys(entry, "map entry", known, e));
            MINK_TRY(append_json(keys, key, e));
            value = json_get(entry, "value");
        }
        if (value) MINK_TRY(append_json(values, value, e));
        else append_null(values);
        end_value(entries, true);
    }
    put_offset(c, (uint64_t)entries->length);
    end_value(c, true);
    return MINK_OK;
}

static enum mink_code append_json_list(struct column_builder *c, const struct json *v, struct error *e) {
    if (json_type(v) != JSON_ARRAY) return wrong_json(c, v, "an array", e);
    if (c->f->type == ARROW_FIXED_LIST && json_count(v) != (size_t)c->f->width) return wrong_json(c, v, "an array of exactly that length", e);
    for (size_t i = 0; i < json_count(v); i++) MINK_TRY(append_json(&c->children[0], json_at(v, i), e));
    if (c->f->type != ARROW_FIXED_LIST) put_offset(c, (uint64_t)c->children[0].length);
    end_value(c, true);
    return MINK_OK;
}

static enum mink_code append_json_struct(struct column_builder *c, const struct json *v, struct error *e) {
    if (json_type(v) != JSON_OBJECT) return wrong_json(c, v, "an object", e);
    const char **known = mem_new_array(const char *, c->f->child_count + 1);
    for (uint32_t i = 0; i < c->f->child_count; i++) known[i] = c->f->children[i].name;
    enum mink_code code = json_check_keys(v, c->f->name, known, e);
    mem_free(known);
    MINK_TRY(code);
    for (uint32_t i = 0; i < c->f->child_count; i++) {
        const struct json *member = json_get(v, c->f->children[i].name);
        if (member) MINK_TRY(append_json(&c->children[i], member, e));
        else append_null(&c->children[i]);
    }
    end_value(c, true);
    return MINK_OK;
}

static enum mink_code append_json_number(struct column_builder *c, const struct json *v, struct error *e) {
    const struct arrow_field *f = c->f;
    char text[64];
    bool whole = json_type(v) == JSON_INT;
    if (f->type == ARROW_FLOAT32 || f->type == ARROW_FLOAT64) {
        append_real(c, json_number(v));
        return MINK_OK;
    }
    if (f->type == ARROW_DECIMAL128) {
        // The shortest digits that mean this number are what was written.
        if (whole) snprintf(text, sizeof text, "%lld", (long long)json_int(v));
        for (int digits = 15; !whole && digits <= 17; digits++) {
            snprintf(text, sizeof text, "%.*g", digits, json_number(v));
            if (strtod(text, NULL) == json_number(v)) break;
        }
        return append_text(c, text, strlen(text), e);
    }
    bool integral = (f->type >= ARROW_INT8 && f->type <= ARROW_UINT64) || (f->type >= ARROW_DATE32 && f->type <= ARROW_DURATION);
    if (!integral) return wrong_json(c, v, f->type == ARROW_BOOL ? "true or false" : "a string", e);
    if (!whole) return wrong_json(c, v, "an integer", e);
    snprintf(text, sizeof text, "%lld", (long long)json_int(v));
    if (!arrow_int_fits(f->type, json_int(v))) return arrow_bad_value(f, text, strlen(text), "out of range", e);
    append_int(c, json_int(v));
    return MINK_OK;
}

static enum mink_code append_json(struct column_builder *c, const struct json *v, struct error *e) {
    if (json_type(v) == JSON_NULL) {
        append_null(c);
        return MINK_OK;
    }
    switch (c->f->type) {
    case ARROW_NULL: return wrong_json(c, v, "null", e);
    case ARROW_MAP: return append_json_map(c, v, e);
    case ARROW_STRUCT: return append_json_struct(c, v, e);
    case ARROW_LIST:
    case ARROW_LARGE_LIST:
    case ARROW_FIXED_LIST: return append_json_list(c, v, e);
    default: break;
    }
    switch (json_type(v)) {
    case JSON_STRING: return append_text(c, json_text(v), strlen(json_text(v)), e);
    case JSON_INT:
    case JSON_REAL: return append_json_number(c, v, e);
    case JSON_BOOL:
        if (c->f->type != ARROW_BOOL) return wrong_json(c, v, type_is_bytes(c->f->type) ? "a string" : "a number or a string", e);
        append_int(c, json_bool(v));
        return MINK_OK;
    default: return wrong_json(c, v, type_is_bytes(c->f->type) ? "a string" : "one value", e);
    }
}

enum mink_code arrow_builder_json(struct arrow_builder *b, uint32_t column, const struct json *value, struct error *e) {
    struct column_builder *c = next(b, column);
    enum mink_code code = append_json(c, value, e);
    if (code != MINK_OK) truncate_to(c, b->rows);
    return code;
}

enum mink_code arrow_builder_text(struct arrow_builder *b, uint32_t column, const char *text, size_t size, struct error *e) {
    struct column_builder *c = next(b, column);
    struct json *document;
    if (c->f->type < ARROW_LIST) return c->f->type == ARROW_NULL ? arrow_bad_value(c->f, text, size, NULL, e) : append_text(c, text, size, e);
    enum mink_code code = json_parse(text, size, &document, e);
    if (code != MINK_OK) {
        error_context(e, "column %.60s", c->f->name);
        return code;
    }
    code = arrow_builder_json(b, column, document, e);
    json_free(document);
    return code;
}

void arrow_builder_row(struct arrow_builder *b) {
    b->rows++;
    for (uint32_t i = 0; i < arrow_schema_count(b->schema); i++) {
        if (b->columns[i].length < b->rows) append_null(&b->columns[i]);
    }
}

int64_t arrow_builder_rows(const struct arrow_builder *b) { return b->rows; }

static size_t column_size(const struct column_builder *c) {
    size_t size = c->data.size + c->bytes.size + c->valid.size / 8;
    for (uint32_t i = 0; i < c->f->child_count; i++) size += column_size(&c->children[i]);
    return size;
}

size_t arrow_builder_size(const struct arrow_builder *b) {
    size_t size = 0;
    for (uint32_t i = 0; i < arrow_schema_count(b->schema); i++) size += column_size(&b->columns[i]);
    return size;
}

static struct slice pack_bits(const struct buffer *bytes) {
    uint8_t *bits;
    struct slice s = slice_new(bits_bytes((int64_t)bytes->size), &bits);
    memset(bits, 0, s.size);
    for (size_t i = 0; i < bytes->size; i++) {
        if (bytes->data[i]) bit_set(bits, (int64_t)i);
    }
    return s;
}

static void column_finish(struct column_builder *c, struct arrow_array *out) {
    const struct arrow_field *f = c->f;
    *out = (struct arrow_array){.length = c->length, .null_count = c->null_count};
    if (c->null_count && f->type != ARROW_NULL) out->buffers[0] = pack_bits(&c->valid);
    if (f->type == ARROW_BOOL) out->buffers[1] = pack_bits(&c->data);
    else if (arrow_field_buffer_count(f) >= 2) out->buffers[1] = buffer_take_slice(&c->data);
    if (type_is_bytes(f->type)) out->buffers[2] = buffer_take_slice(&c->bytes);
    out->children = f->child_count ? mem_new_array(struct arrow_array, f->child_count) : NULL;
    out->child_count = f->child_count;
    for (uint32_t i = 0; i < f->child_count; i++) column_finish(&c->children[i], &out->children[i]);
    c->length = c->null_count = 0;
    buffer_reset(&c->valid);
    buffer_reset(&c->data);
    if (has_offsets(f)) buffer_put_zeros(&c->data, offset_width(f));
}

void arrow_builder_finish(struct arrow_builder *b, struct arrow_batch *out) {
    uint32_t count = arrow_schema_count(b->schema);
    for (uint32_t i = 0; i < count; i++) mink_assert(b->columns[i].length == b->rows);
    *out = (struct arrow_batch){arrow_schema_ref(b->schema), b->rows, mem_new_array(struct arrow_array, count)};
    for (uint32_t i = 0; i < count; i++) column_finish(&b->columns[i], &out->columns[i]);
    b->rows = 0;
}
