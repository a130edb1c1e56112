// SPDX-License-Identifier: Apache-2.0
#include "table/type.h"

#include "base/mem.h"
#include "table/table_internal.h"

#include <stdio.h>
#include <string.h>

static const char *const names[TYPE_KIND_COUNT] = {
    "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL", "CHAR", "STRING",
    "BINARY", "BYTES", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ", "ARRAY", "MAP", "ROW"};

const char *type_name(enum type_kind kind) { return names[kind]; }
bool type_is_nested(const struct type *t) { return t->kind >= TYPE_ARRAY; }

void type_deinit(struct type *t) {
    for (uint32_t i = 0; i < t->field_count; i++) {
        mem_free(t->fields[i].name);
        type_deinit(&t->fields[i].type);
    }
    mem_free(t->fields);
    *t = (struct type){0};
}

void type_copy(struct type *target, const struct type *source) {
    *target = *source;
    target->fields = source->field_count ? mem_new_array(struct type_field, source->field_count) : NULL;
    for (uint32_t i = 0; i < source->field_count; i++) {
        target->fields[i].name = mem_strdup(source->fields[i].name);
        target->fields[i].id = source->fields[i].id;
        type_copy(&target->fields[i].type, &source->fields[i].type);
    }
}

bool type_equal(const struct type *a, const struct type *b) {
    if (a->kind != b->kind || a->nullable != b->nullable || a->precision != b->precision || a->scale != b->scale || a->length != b->length ||
        a->field_count != b->field_count)
        return false;
    for (uint32_t i = 0; i < a->field_count; i++) {
        if (strcmp(a->fields[i].name, b->fields[i].name) != 0 || !type_equal(&a->fields[i].type, &b->fields[i].type)) return false;
    }
    return true;
}

uint32_t type_depth(const struct type *t) {
    uint32_t deepest = 0;
    for (uint32_t i = 0; i < t->field_count; i++) {
        uint32_t depth = type_depth(&t->fields[i].type) + (t->kind == TYPE_MAP ? 2 : 1);
        if (depth > deepest) deepest = depth;
    }
    return deepest;
}

static void print(const struct type *t, bool null_too, struct buffer *out) {
    buffer_put_string(out, names[t->kind]);
    switch (t->kind) {
    case TYPE_DECIMAL: buffer_printf(out, "(%u,%u)", t->precision, t->scale); break;
    case TYPE_CHAR:
    case TYPE_BINARY: buffer_printf(out, "(%u)", t->length); break;
    case TYPE_TIME:
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMP_LTZ: buffer_printf(out, "(%u)", t->precision); break;
    case TYPE_ARRAY:
    case TYPE_MAP:
    case TYPE_ROW:
        buffer_put_u8(out, '<');
        for (uint32_t i = 0; i < t->field_count; i++) {
            if (i) buffer_put_string(out, ", ");
            if (t->kind == TYPE_ROW) {
                ddl_put_name(out, t->fields[i].name);
                buffer_put_u8(out, ' ');
            }
            // Keys of maps are never null, which needs no saying.
            print(&t->fields[i].type, !(t->kind == TYPE_MAP && i == 0), out);
        }
        buffer_put_u8(out, '>');
        break;
    default: break;
    }
    if (null_too && !t->nullable) buffer_put_string(out, " NOT NULL");
}

void type_print(const struct type *t, struct buffer *out) { print(t, true, out); }

void type_describe(const struct type *t, char *out, size_t size) {
    struct buffer b;
    buffer_init(&b, 1u << 20);
    print(t, false, &b);
    snprintf(out, size, "%s", buffer_string(&b));
    buffer_deinit(&b);
}

// ---- to Arrow

static enum arrow_unit unit_of(uint8_t precision) {
    return precision == 0 ? ARROW_SECOND : precision <= 3 ? ARROW_MILLI : precision <= 6 ? ARROW_MICRO : ARROW_NANO;
}

void type_to_arrow(const struct type *t, const char *name, struct arrow_field *out) {
    static const enum arrow_type types[TYPE_KIND_COUNT] = {
        ARROW_BOOL, ARROW_INT8, ARROW_INT16, ARROW_INT32, ARROW_INT64, ARROW_FLOAT32, ARROW_FLOAT64, ARROW_DECIMAL128, ARROW_UTF8, ARROW_UTF8,
        ARROW_FIXED_BINARY, ARROW_BINARY, ARROW_DATE32, ARROW_TIME32, ARROW_TIMESTAMP, ARROW_TIMESTAMP, ARROW_LIST, ARROW_MAP, ARROW_STRUCT};
    *out = arrow_field_make(name, types[t->kind], t->nullable);
    struct arrow_field *parent = out;
    switch (t->kind) {
    case TYPE_DECIMAL:
        out->precision = t->precision;
        out->scale = t->scale;
        break;
    case TYPE_BINARY: out->width = (int32_t)t->length; break;
    case TYPE_TIME:
        out->unit = unit_of(t->precision);
        if (out->unit >= ARROW_MICRO) out->type = ARROW_TIME64;
        break;
    case TYPE_TIMESTAMP_LTZ: out->timezone = mem_strdup("UTC"); // fall through
    case TYPE_TIMESTAMP: out->unit = unit_of(t->precision); break;
    case TYPE_MAP:
        out->children = mem_new_array(struct arrow_field, 1);
        out->child_count = 1;
        out->children[0] = arrow_field_make("entries", ARROW_STRUCT, false);
        parent = &out->children[0];
        break;
    default: break;
    }
    if (t->field_count == 0) return;
    parent->children = mem_new_array(struct arrow_field, t->field_count);
    parent->child_count = t->field_count;
    for (uint32_t i = 0; i < t->field_count; i++) {
        const char *child = t->kind == TYPE_ARRAY ? "item" : t->fields[i].name;
        type_to_arrow(&t->fields[i].type, child, &parent->children[i]);
    }
}

// ---- from Arrow

static enum mink_code no_counterpart(const struct arrow_field *f, const char *hint, struct error *e) {
    char given[64];
    arrow_field_describe(f, given, sizeof given);
    error_set(e, MINK_INVALID, "TYPE_NOT_SUPPORTED", "column %.60s: no column type holds Arrow's %s", f->name, given);
    error_hint(e, "%s", hint);
    error_about(e, f->name, NULL, given);
    return MINK_INVALID;
}

static uint8_t precision_of(enum arrow_unit unit) { return (uint8_t)(3 * (int)unit); }

static enum mink_code from_children(const struct arrow_field *f, const struct arrow_field *children, uint32_t count, bool widen, struct type *t, struct error *e) {
    static const char *const map_names[] = {"key", "value"};
    t->fields = mem_new_array(struct type_field, count);
    t->field_count = count;
    for (uint32_t i = 0; i < count; i++) {
        t->fields[i].name = mem_strdup(t->kind == TYPE_ARRAY ? "element" : t->kind == TYPE_MAP ? map_names[i] : children[i].name);
        enum mink_code code = type_from_arrow(&children[i], widen, &t->fields[i].type, e);
        if (code != MINK_OK) {
            error_context(e, "column %.60s", f->name);
            return code;
        }
    }
    if (t->kind == TYPE_MAP) t->fields[0].type.nullable = false;
    return MINK_OK;
}

static enum mink_code from_arrow(const struct arrow_field *f, bool widen, struct type *t, struct error *e) {
    *t = (struct type){.nullable = f->nullable};
    switch (f->type) {
    case ARROW_BOOL: t->kind = TYPE_BOOLEAN; return MINK_OK;
    case ARROW_INT8: t->kind = TYPE_TINYINT; return MINK_OK;
    case ARROW_INT16: t->kind = TYPE_SMALLINT; return MINK_OK;
    case ARROW_INT32: t->kind = TYPE_INT; return MINK_OK;
    case ARROW_INT64: t->kind = TYPE_BIGINT; return MINK_OK;
    case ARROW_FLOAT32: t->kind = TYPE_FLOAT; return MINK_OK;
    case ARROW_FLOAT64: t->kind = TYPE_DOUBLE; return MINK_OK;
    case ARROW_UTF8:
    case ARROW_LARGE_UTF8: t->kind = TYPE_STRING; return MINK_OK;
    case ARROW_BINARY:
    case ARROW_LARGE_BINARY: t->kind = TYPE_BYTES; return MINK_OK;
    case ARROW_DATE32: t->kind = TYPE_DATE; return MINK_OK;
    case ARROW_FIXED_BINARY:
        if (f->width < 1) return no_counterpart(f, "BINARY(n) needs n of at least 1", e);
        t->kind = TYPE_BINARY;
        t->length = (uint32_t)f->width;
        return MINK_OK;
    case ARROW_DECIMAL128:
        if (f->scale < 0 || f->scale > f->precision) return no_counterpart(f, "the scale of DECIMAL(p,s) goes from 0 to p", e);
        t->kind = TYPE_DECIMAL;
        t->precision = (uint8_t)f->precision;
        t->scale = (uint8_t)f->scale;
        return MINK_OK;
    case ARROW_TIME32:
    case ARROW_TIME64:
        t->kind = TYPE_TIME;
        t->precision = precision_of(f->unit);
        return MINK_OK;
    case ARROW_TIMESTAMP:
        t->kind = f->timezone && f->timezone[0] ? TYPE_TIMESTAMP_LTZ : TYPE_TIMESTAMP;
        t->precision = precision_of(f->unit);
        return MINK_OK;
    case ARROW_LIST:
    case ARROW_LARGE_LIST:
    case ARROW_FIXED_LIST: t->kind = TYPE_ARRAY; return from_children(f, f->children, 1, widen, t, e);
    case ARROW_MAP: t->kind = TYPE_MAP; return from_children(f, f->children[0].children, 2, widen, t, e);
    case ARROW_STRUCT:
        if (f->child_count == 0) return no_counterpart(f, "a ROW needs at least one field", e);
        t->kind = TYPE_ROW;
        return from_children(f, f->children, f->child_count, widen, t, e);
    case ARROW_NULL: return no_counterpart(f, "cast the column to the type it is meant to have", e);
    case ARROW_DURATION: return no_counterpart(f, "store it as int64 (BIGINT) with its unit in the column's name", e);
    default: break;
    }
    if (!widen) return no_counterpart(f, "cast it to a signed integer, float32, date32 or decimal128 that holds it", e);
    switch (f->type) {
    case ARROW_UINT8: t->kind = TYPE_SMALLINT; return MINK_OK;
    case ARROW_UINT16: t->kind = TYPE_INT; return MINK_OK;
    case ARROW_UINT32: t->kind = TYPE_BIGINT; return MINK_OK;
    case ARROW_UINT64:
        t->kind = TYPE_DECIMAL;
        t->precision = 20;
        return MINK_OK;
    case ARROW_FLOAT16: t->kind = TYPE_FLOAT; return MINK_OK;
    case ARROW_DATE64: t->kind = TYPE_DATE; return MINK_OK;
    default: return no_counterpart(f, "cast it to a type of the table model", e);
    }
}

enum mink_code type_from_arrow(const struct arrow_field *f, bool widen, struct type *out, struct error *e) {
    enum mink_code code = from_arrow(f, widen, out, e);
    if (code != MINK_OK) type_deinit(out);
    return code;
}

// ---- promotion

static uint8_t int_digits(enum type_kind kind) {
    static const uint8_t digits[] = {3, 5, 10, 19};
    return digits[kind - TYPE_TINYINT];
}

static bool is_int(const struct type *t) { return t->kind >= TYPE_TINYINT && t->kind <= TYPE_BIGINT; }

bool type_can_promote(const struct type *from, const struct type *to) {
    if (from->nullable && !to->nullable) return false;
    if (from->kind == to->kind && from->kind != TYPE_DECIMAL) {
        if (from->precision != to->precision || from->length != to->length || from->field_count != to->field_count) return false;
        for (uint32_t i = 0; i < from->field_count; i++) {
            if (strcmp(from->fields[i].name, to->fields[i].name) != 0 || !type_equal(&from->fields[i].type, &to->fields[i].type)) return false;
        }
        return true;
    }
    if (is_int(from) && is_int(to)) return to->kind > from->kind;
    if (is_int(from) && to->kind == TYPE_DECIMAL) return to->precision - to->scale >= int_digits(from->kind);
    if (from->kind == TYPE_DECIMAL && to->kind == TYPE_DECIMAL) return to->scale == from->scale && to->precision >= from->precision;
    return (from->kind == TYPE_FLOAT && to->kind == TYPE_DOUBLE) || (from->kind == TYPE_CHAR && to->kind == TYPE_STRING) ||
           (from->kind == TYPE_BINARY && to->kind == TYPE_BYTES);
}
