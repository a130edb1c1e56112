// SPDX-License-Identifier: Apache-2.0
#include "arrow/schema.h"

#include "arrow/arrow_internal.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

struct arrow_field arrow_field_make(const char *name, enum arrow_type type, bool nullable) {
    return (struct arrow_field){.name = mem_strdup(name), .type = type, .nullable = nullable};
}

void arrow_field_copy(struct arrow_field *target, const struct arrow_field *source) {
    *target = *source;
    target->name = mem_strdup(source->name);
    if (source->timezone) target->timezone = mem_strdup(source->timezone);
    target->children = source->child_count ? mem_new_array(struct arrow_field, source->child_count) : NULL;
    for (uint32_t i = 0; i < source->child_count; i++) arrow_field_copy(&target->children[i], &source->children[i]);
    target->metadata = source->metadata_count ? mem_new_array(struct arrow_metadata, source->metadata_count) : NULL;
    for (uint32_t i = 0; i < source->metadata_count; i++) {
        target->metadata[i].key = mem_strdup(source->metadata[i].key);
        target->metadata[i].value = mem_strdup(source->metadata[i].value);
    }
}

void arrow_field_deinit(struct arrow_field *f) {
    for (uint32_t i = 0; i < f->child_count; i++) arrow_field_deinit(&f->children[i]);
    for (uint32_t i = 0; i < f->metadata_count; i++) {
        mem_free(f->metadata[i].key);
        mem_free(f->metadata[i].value);
    }
    mem_free(f->children);
    mem_free(f->metadata);
    mem_free(f->name);
    mem_free(f->timezone);
    *f = (struct arrow_field){0};
}

struct arrow_schema *arrow_schema_new(struct arrow_field *take_fields, uint32_t field_count) {
    struct arrow_schema *s = mem_new(struct arrow_schema);
    atomic_init(&s->refs, 1);
    s->root = arrow_field_make("", ARROW_STRUCT, false);
    s->root.children = take_fields;
    s->root.child_count = field_count;
    return s;
}

struct arrow_schema *arrow_schema_ref(struct arrow_schema *s) {
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

void arrow_schema_unref(struct arrow_schema *s) {
    if (s == NULL || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1) return;
    arrow_field_deinit(&s->root);
    mem_free(s);
}

int32_t arrow_schema_find(const struct arrow_schema *s, const char *name) {
    for (uint32_t i = 0; i < s->root.child_count; i++) {
        if (strcmp(s->root.children[i].name, name) == 0) return (int32_t)i;
    }
    return -1;
}

struct arrow_schema *arrow_schema_project(const struct arrow_schema *s, const uint32_t *columns, uint32_t count) {
    struct arrow_field *fields = mem_new_array(struct arrow_field, count);
    for (uint32_t i = 0; i < count; i++) arrow_field_copy(&fields[i], &s->root.children[columns[i]]);
    return arrow_schema_new(fields, count);
}

static bool has_unit(enum arrow_type type) {
    return type == ARROW_TIME32 || type == ARROW_TIME64 || type == ARROW_TIMESTAMP || type == ARROW_DURATION;
}

bool arrow_field_type_equal(const struct arrow_field *a, const struct arrow_field *b) {
    if (a->type != b->type || a->child_count != b->child_count) return false;
    if (has_unit(a->type) && a->unit != b->unit) return false;
    if (a->type == ARROW_TIMESTAMP && strcmp(a->timezone ? a->timezone : "", b->timezone ? b->timezone : "") != 0) return false;
    if (a->type == ARROW_DECIMAL128 && (a->precision != b->precision || a->scale != b->scale)) return false;
    if ((a->type == ARROW_FIXED_BINARY || a->type == ARROW_FIXED_LIST) && a->width != b->width) return false;
    // Names of list items and map entries mean nothing; those of struct members do.
    for (uint32_t i = 0; i < a->child_count; i++) {
        if (a->type == ARROW_STRUCT && strcmp(a->children[i].name, b->children[i].name) != 0) return false;
        if (a->type == ARROW_MAP) { // key and value, by position
            const struct arrow_field *x = &a->children[0], *y = &b->children[0];
            return x->child_count == y->child_count && arrow_field_type_equal(&x->children[0], &y->children[0]) &&
                   arrow_field_type_equal(&x->children[1], &y->children[1]);
        }
        if (!arrow_field_type_equal(&a->children[i], &b->children[i])) return false;
    }
    return true;
}

static const char *const unit_names[] = {"s", "ms", "us", "ns"};

static void describe(const struct arrow_field *f, struct buffer *b) {
    static const char *const plain[ARROW_TYPE_COUNT] = {
        [ARROW_NULL] = "null", [ARROW_BOOL] = "bool", [ARROW_INT8] = "int8", [ARROW_INT16] = "int16", [ARROW_INT32] = "int32",
        [ARROW_INT64] = "int64", [ARROW_UINT8] = "uint8", [ARROW_UINT16] = "uint16", [ARROW_UINT32] = "uint32", [ARROW_UINT64] = "uint64",
        [ARROW_FLOAT16] = "halffloat", [ARROW_FLOAT32] = "float", [ARROW_FLOAT64] = "double", [ARROW_UTF8] = "string",
        [ARROW_LARGE_UTF8] = "large_string", [ARROW_BINARY] = "binary", [ARROW_LARGE_BINARY] = "large_binary",
        [ARROW_DATE32] = "date32[day]", [ARROW_DATE64] = "date64[ms]"};
    switch (f->type) {
    case ARROW_DECIMAL128: buffer_printf(b, "decimal128(%d, %d)", f->precision, f->scale); return;
    case ARROW_FIXED_BINARY: buffer_printf(b, "fixed_size_binary[%d]", f->width); return;
    case ARROW_TIME32: buffer_printf(b, "time32[%s]", unit_names[f->unit]); return;
    case ARROW_TIME64: buffer_printf(b, "time64[%s]", unit_names[f->unit]); return;
    case ARROW_DURATION: buffer_printf(b, "duration[%s]", unit_names[f->unit]); return;
    case ARROW_TIMESTAMP:
        if (f->timezone) buffer_printf(b, "timestamp[%s, tz=%s]", unit_names[f->unit], f->timezone);
        else buffer_printf(b, "timestamp[%s]", unit_names[f->unit]);
        return;
    case ARROW_MAP: {
        const struct arrow_field *entries = &f->children[0];
        buffer_put_string(b, "map<");
        describe(&entries->children[0], b);
        buffer_put_string(b, ", ");
        describe(&entries->children[1], b);
        buffer_put_string(b, ">");
        return;
    }
    case ARROW_LIST:
    case ARROW_LARGE_LIST:
    case ARROW_FIXED_LIST:
    case ARROW_STRUCT:
        buffer_put_string(b, f->type == ARROW_LIST ? "list<" : f->type == ARROW_LARGE_LIST ? "large_list<" : f->type == ARROW_STRUCT ? "struct<" : "fixed_size_list<");
        for (uint32_t i = 0; i < f->child_count; i++) {
            buffer_printf(b, "%s%s: ", i ? ", " : "", f->children[i].name);
            describe(&f->children[i], b);
            if (!f->children[i].nullable) buffer_put_string(b, " not null");
        }
        buffer_put_string(b, ">");
        if (f->type == ARROW_FIXED_LIST) buffer_printf(b, "[%d]", f->width);
        return;
    default: buffer_put_string(b, plain[f->type]);
    }
}

void arrow_field_describe(const struct arrow_field *f, char *out, size_t size) {
    struct buffer b;
    buffer_init(&b, 4096);
    describe(f, &b);
    snprintf(out, size, "%s", buffer_string(&b));
    buffer_deinit(&b);
}

uint32_t arrow_type_bit_width(const struct arrow_field *f) {
    switch (f->type) {
    case ARROW_BOOL: return 1;
    case ARROW_INT8:
    case ARROW_UINT8: return 8;
    case ARROW_INT16:
    case ARROW_UINT16:
    case ARROW_FLOAT16: return 16;
    case ARROW_INT32:
    case ARROW_UINT32:
    case ARROW_FLOAT32:
    case ARROW_DATE32:
    case ARROW_TIME32: return 32;
    case ARROW_INT64:
    case ARROW_UINT64:
    case ARROW_FLOAT64:
    case ARROW_DATE64:
    case ARROW_TIME64:
    case ARROW_TIMESTAMP:
    case ARROW_DURATION: return 64;
    case ARROW_DECIMAL128: return 128;
    case ARROW_FIXED_BINARY: return 8 * (uint32_t)f->width;
    default: return 0;
    }
}

uint32_t arrow_field_buffer_count(const struct arrow_field *f) {
    switch (f->type) {
    case ARROW_NULL: return 0;
    case ARROW_STRUCT:
    case ARROW_FIXED_LIST: return 1;
    case ARROW_UTF8:
    case ARROW_LARGE_UTF8:
    case ARROW_BINARY:
    case ARROW_LARGE_BINARY: return 3;
    default: return 2;
    }
}

const char *arrow_field_check(const struct arrow_field *f) {
    uint32_t children = 0;
    switch (f->type) {
    case ARROW_LIST:
    case ARROW_LARGE_LIST:
    case ARROW_FIXED_LIST:
    case ARROW_MAP: children = 1; break;
    case ARROW_STRUCT: children = f->child_count; break;
    default: break;
    }
    if (f->child_count != children) return children ? "a list or map needs one child" : "children where the type has none";
    if (f->type == ARROW_MAP) {
        const struct arrow_field *entries = &f->children[0];
        if (entries->type != ARROW_STRUCT || entries->dictionary || entries->child_count != 2) return "a map needs a struct of key and value";
    }
    if (f->type == ARROW_DECIMAL128 && (f->precision < 1 || f->precision > 38)) return "decimal precision outside 1 to 38";
    if (f->type == ARROW_DECIMAL128 && (f->scale < -38 || f->scale > 38)) return "decimal scale outside -38 to 38";
    if (f->type == ARROW_FIXED_BINARY && (f->width < 1 || f->width > (1 << 24))) return "width outside 1 to 16777216";
    if (f->type == ARROW_FIXED_LIST && (f->width < 1 || f->width > (1 << 24))) return "list size outside 1 to 16777216";
    if ((f->type == ARROW_TIME32 && f->unit > ARROW_MILLI) || (f->type == ARROW_TIME64 && f->unit < ARROW_MICRO)) return "time unit does not fit its width";
    if (f->dictionary && (f->index_type < ARROW_INT8 || f->index_type > ARROW_UINT64)) return "dictionary indices have to be integers";
    return NULL;
}
