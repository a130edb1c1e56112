// SPDX-License-Identifier: Apache-2.0
#include "table/conform.h"

#include "base/mem.h"
#include "base/nearest.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct column_plan {
    int32_t source; // column of the incoming batch; -1 = all null
    bool cast;
};

struct conform_plan {
    struct table_def *def;
    struct arrow_schema *incoming;
    struct column_plan *columns;
    bool identity;
};

static bool is_meta(const char *name, const char *const meta[]) {
    for (; meta && *meta; meta++)
        if (strcmp(*meta, name) == 0) return true;
    return false;
}

static enum mink_code unknown_column(const struct table_def *d, const char *name, struct error *e) {
    struct nearest near;
    nearest_init(&near, name);
    for (uint32_t i = 0; i < d->column_count; i++) nearest_offer(&near, d->columns[i].name);
    const char *best = nearest_found(&near);
    error_set(e, MINK_INVALID, "COLUMN_NOT_FOUND", "table %s.%s has no column %s%s%s%s", d->database, d->name, name, best ? "; did you mean " : "", best ? best : "", best ? "?" : "");
    error_about(e, name, best, NULL);
    return MINK_INVALID;
}

static enum mink_code plan_column(struct conform_plan *p, uint32_t i, struct error *e) {
    const struct table_def *d = p->def;
    const struct column *c = &d->columns[i];
    struct column_plan *plan = &p->columns[i];
    const struct arrow_field *to = arrow_schema_at(d->arrow, i);
    plan->source = arrow_schema_find(p->incoming, c->name);
    if (plan->source < 0) {
        p->identity = false;
        if (c->type.nullable) return MINK_OK;
        error_set(e, MINK_INVALID, "COLUMN_MISSING", "column %s of %s.%s is NOT NULL and missing", c->name, d->database, d->name);
        error_about(e, c->name, "a value in each row", "no such column");
        return MINK_INVALID;
    }
    const struct arrow_field *from = arrow_schema_at(p->incoming, (uint32_t)plan->source);
    plan->cast = from->dictionary || !arrow_field_type_equal(from, to);
    if (plan->cast || (uint32_t)plan->source != i) p->identity = false;
    if (!plan->cast || arrow_can_cast(from, to)) return MINK_OK;
    char expected[64], actual[64];
    struct buffer type;
    buffer_init(&type, 4096);
    type_print(&c->type, &type);
    arrow_field_describe(to, expected, sizeof expected);
    arrow_field_describe(from, actual, sizeof actual);
    error_set(e, MINK_INVALID, "TYPE_MISMATCH", "column %s of %s.%s is %s (%s), not %s", c->name, d->database, d->name, buffer_string(&type), expected, actual);
    error_about(e, c->name, expected, actual);
    error_hint(e, "cast it before sending; only lossless casts are done here");
    buffer_deinit(&type);
    return MINK_INVALID;
}

enum mink_code conform_plan_make(const struct table_def *d, const struct arrow_schema *incoming, const char *const meta_columns[], struct conform_plan **out, struct error *e) {
    struct conform_plan *p = mem_new(struct conform_plan);
    enum mink_code code = MINK_OK;
    p->def = table_def_ref((struct table_def *)d);
    p->incoming = arrow_schema_ref((struct arrow_schema *)incoming);
    p->columns = mem_new_array(struct column_plan, d->column_count + 1);
    p->identity = arrow_schema_count(incoming) == d->column_count;
    for (uint32_t i = 0; i < arrow_schema_count(incoming) && code == MINK_OK; i++) {
        const char *name = arrow_schema_at(incoming, i)->name;
        if (arrow_schema_find(incoming, name) != (int32_t)i) {
            code = error_set(e, MINK_INVALID, "DUPLICATE_COLUMN", "column %s comes twice", name);
            error_about(e, name, "one column of a name", "two");
        } else if (table_def_find(d, name) < 0 && !is_meta(name, meta_columns)) {
            code = unknown_column(d, name, e);
        }
    }
    for (uint32_t i = 0; i < d->column_count && code == MINK_OK; i++) code = plan_column(p, i, e);
    if (code != MINK_OK) conform_plan_free(p);
    else *out = p;
    return code;
}

bool conform_plan_identity(const struct conform_plan *p) { return p->identity; }

void conform_plan_free(struct conform_plan *p) {
    if (!p) return;
    table_def_unref(p->def);
    arrow_schema_unref(p->incoming);
    mem_free(p->columns);
    mem_free(p);
}

// ---- values

static int64_t first_null(const struct arrow_array *a) {
    for (int64_t row = 0; row < a->length; row++)
        if (arrow_is_null(a, row)) return row;
    return -1;
}

static int32_t offset_at(const struct arrow_array *a, int64_t i) {
    int32_t v;
    memcpy(&v, a->buffers[1].data + i * 4, sizeof v);
    return v;
}

static enum mink_code check_chars(const struct type *t, const struct arrow_array *a, const char *name, struct error *e) {
    for (int64_t row = 0; row < a->length; row++) {
        if (arrow_is_null(a, row)) continue;
        int32_t begin = offset_at(a, row), end = offset_at(a, row + 1);
        if ((uint32_t)(end - begin) <= t->length) continue; // no more bytes than characters are allowed
        uint32_t characters = 0;
        for (int32_t k = begin; k < end; k++) characters += (a->buffers[2].data[k] & 0xc0) != 0x80;
        if (characters <= t->length) continue;
        char expected[64], actual[64];
        snprintf(expected, sizeof expected, "at most %u characters", t->length);
        snprintf(actual, sizeof actual, "%u characters", characters);
        error_set(e, MINK_INVALID, "VALUE_TOO_LONG", "column %s, row %" PRId64 ": %s, CHAR(%u) holds %u", name, row, actual, t->length, t->length);
        error_about(e, name, expected, actual);
        return MINK_INVALID;
    }
    return MINK_OK;
}

static enum mink_code check_decimals(const struct type *t, const struct arrow_array *a, const char *name, struct error *e) {
    __int128 limit = 1;
    for (int i = 0; i < t->precision; i++) limit *= 10;
    for (int64_t row = 0; row < a->length; row++) {
        __int128 v;
        if (arrow_is_null(a, row)) continue;
        memcpy(&v, a->buffers[1].data + row * 16, sizeof v);
        if (v < limit && v > -limit) continue;
        char expected[64];
        snprintf(expected, sizeof expected, "at most %d digits", t->precision);
        error_set(e, MINK_INVALID, "OUT_OF_RANGE_VALUE", "column %s, row %" PRId64 ": the value does not fit DECIMAL(%d,%d)", name, row, t->precision, t->scale);
        error_about(e, name, expected, "more");
        return MINK_INVALID;
    }
    return MINK_OK;
}

// A value inside a null struct or list is nobody's: NOT NULL of nested fields counts only where the parent is there.
static enum mink_code check_values(const struct type *t, const struct arrow_array *a, const struct arrow_array *parent, const char *name, struct error *e) {
    if (!t->nullable && a->null_count > 0) {
        int64_t row = first_null(a);
        while (parent && row >= 0 && row < parent->length && arrow_is_null(parent, row)) {
            int64_t next = row + 1;
            while (next < a->length && !arrow_is_null(a, next)) next++;
            row = next < a->length ? next : -1;
        }
        if (row >= 0) {
            error_set(e, MINK_INVALID, "NOT_NULL", "column %s, row %" PRId64 ": null in a NOT NULL column", name, row);
            error_about(e, name, "a value", "null");
            return MINK_INVALID;
        }
    }
    switch (t->kind) {
    case TYPE_CHAR: return check_chars(t, a, name, e);
    case TYPE_DECIMAL: return check_decimals(t, a, name, e);
    case TYPE_ROW:
        for (uint32_t i = 0; i < t->field_count && i < a->child_count; i++) MINK_TRY(check_values(&t->fields[i].type, &a->children[i], a, name, e));
        return MINK_OK;
    case TYPE_ARRAY: return a->child_count == 1 ? check_values(&t->fields[0].type, &a->children[0], NULL, name, e) : MINK_OK;
    case TYPE_MAP:
        if (a->child_count == 1 && a->children[0].child_count == 2)
            for (uint32_t i = 0; i < 2; i++) MINK_TRY(check_values(&t->fields[i].type, &a->children[0].children[i], NULL, name, e));
        return MINK_OK;
    default: return MINK_OK;
    }
}

enum mink_code conform_apply(const struct conform_plan *p, const struct arrow_batch *in, struct arrow_batch *out, struct error *e) {
    const struct table_def *d = p->def;
    enum mink_code code = MINK_OK;
    *out = (struct arrow_batch){.schema = arrow_schema_ref(d->arrow), .row_count = in->row_count, .columns = mem_new_array(struct arrow_array, d->column_count + 1)};
    for (uint32_t i = 0; i < d->column_count && code == MINK_OK; i++) {
        const struct column_plan *plan = &p->columns[i];
        const struct arrow_field *to = arrow_schema_at(d->arrow, i);
        if (plan->source < 0) {
            arrow_nulls(to, in->row_count, &out->columns[i]);
            continue;
        }
        const struct arrow_array *a = &in->columns[plan->source];
        if (plan->cast) code = arrow_cast(arrow_schema_at(p->incoming, (uint32_t)plan->source), a, to, &out->columns[i], e);
        else arrow_array_ref(&out->columns[i], a);
        if (code == MINK_OK) code = check_values(&d->columns[i].type, &out->columns[i], NULL, d->columns[i].name, e);
        else if (e && !e->column[0]) error_about(e, d->columns[i].name, NULL, NULL);
    }
    if (code != MINK_OK) arrow_batch_deinit(out);
    return code;
}
