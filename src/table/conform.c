// SPDX-License-Identifier: Apache-2.0
#include "table/conform.h"

#include "base/mem.h"
#include "base/nearest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct conform_column {
    int32_t source;      // index of the incoming column, -1: all null
    bool cast;
    bool look;           // values may break a rule of the type, so they are looked at
};

struct conform_plan {
    struct table_def *def;
    struct arrow_schema *incoming;
    bool identity;
    struct conform_column *columns;
};

// ---- plan

struct incoming { const char *name; uint32_t index; };

static int compare_incoming(const void *a, const void *b) {
    const struct incoming *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->index > y->index) - (x->index < y->index);
}

static bool is_meta(const char *const meta_columns[], const char *name) {
    for (size_t i = 0; meta_columns && meta_columns[i]; i++)
        if (strcmp(meta_columns[i], name) == 0) return true;
    return false;
}

static bool encoded(const struct arrow_field *f) {
    bool any = f->dictionary || f->view;
    for (uint32_t i = 0; i < f->child_count && !any; i++) any = encoded(&f->children[i]);
    return any;
}

// Rules that validated Arrow does not know: lengths of CHAR, digits of DECIMAL, NOT NULL inside of nested values.
static bool has_rules(const struct type *t, bool nested) {
    if (t->kind == TYPE_CHAR || t->kind == TYPE_DECIMAL || (nested && !t->nullable)) return true;
    bool any = false;
    for (uint32_t i = 0; i < t->field_count && !any; i++) any = has_rules(&t->fields[i].type, true);
    return any;
}

static enum mink_code unknown_column(const struct table_def *d, const char *name, struct error *e) {
    struct nearest near;
    nearest_init(&near, name);
    for (uint32_t i = 0; i < d->column_count; i++) nearest_offer(&near, d->columns[i].name);
    const char *best = nearest_found(&near);
    error_set(e, MINK_INVALID, "COLUMN_NOT_FOUND", "table %s.%s has no column \"%.60s\"%s%.60s%s", d->database, d->name, name, best ? "; did you mean " : "", best ? best : "", best ? "?" : "");
    error_about(e, name, best, NULL);
    return MINK_INVALID;
}

static enum mink_code check_incoming(const struct table_def *d, const struct arrow_schema *s, const char *const meta_columns[], struct incoming *sorted, struct error *e) {
    uint32_t count = arrow_schema_count(s);
    for (uint32_t i = 0; i < count; i++) sorted[i] = (struct incoming){arrow_schema_at(s, i)->name, i};
    if (count) qsort(sorted, count, sizeof *sorted, compare_incoming);
    struct incoming *known = mem_new_array(struct incoming, d->column_count);
    for (uint32_t i = 0; i < d->column_count; i++) known[i] = (struct incoming){d->columns[i].name, i};
    qsort(known, d->column_count, sizeof *known, compare_incoming);
    enum mink_code code = MINK_OK;
    for (uint32_t i = 0, k = 0; i < count && code == MINK_OK; i++) {
        while (k < d->column_count && strcmp(known[k].name, sorted[i].name) < 0) k++;
        bool there = k < d->column_count && strcmp(known[k].name, sorted[i].name) == 0;
        if (!there && !is_meta(meta_columns, sorted[i].name)) code = unknown_column(d, sorted[i].name, e);
        else if (there && i && strcmp(sorted[i - 1].name, sorted[i].name) == 0) code = error_set(e, MINK_INVALID, "DUPLICATE_COLUMN", "column \"%.60s\" is there twice", sorted[i].name);
    }
    mem_free(known);
    return code;
}

static enum mink_code plan_column(struct conform_plan *p, uint32_t index, const struct incoming *sorted, struct error *e) {
    const struct table_def *d = p->def;
    const struct column *c = &d->columns[index];
    struct conform_column *plan = &p->columns[index];
    struct incoming wanted = {c->name, 0}, *found = NULL;
    uint32_t low = 0, high = arrow_schema_count(p->incoming);
    while (low < high) { // the first of this name
        uint32_t middle = (low + high) / 2;
        if (compare_incoming(&sorted[middle], &wanted) < 0) low = middle + 1;
        else high = middle;
    }
    if (low < arrow_schema_count(p->incoming) && strcmp(sorted[low].name, c->name) == 0) found = (struct incoming *)&sorted[low];
    if (found == NULL) {
        plan->source = -1;
        if (c->type.nullable) return MINK_OK;
        error_set(e, MINK_INVALID, "COLUMN_MISSING", "column %.60s of %s.%s is NOT NULL and was not sent", c->name, d->database, d->name);
        error_about(e, c->name, type_name(c->type.kind), NULL);
        return MINK_INVALID;
    }
    const struct arrow_field *from = arrow_schema_at(p->incoming, found->index), *to = arrow_schema_at(d->arrow, index);
    plan->source = (int32_t)found->index;
    plan->cast = !arrow_field_type_equal(from, to);
    plan->look = has_rules(&c->type, false);
    if (!plan->cast || arrow_can_cast(from, to)) return MINK_OK;
    char given[64], wants[64], type[64];
    arrow_field_describe(from, given, sizeof given);
    arrow_field_describe(to, wants, sizeof wants);
    type_describe(&c->type, type, sizeof type);
    error_set(e, MINK_INVALID, "TYPE_MISMATCH", "column %.60s is %s (Arrow %s); %s was given", c->name, type, wants, given);
    error_hint(e, "cast the column to %s before sending", wants);
    error_about(e, c->name, wants, given);
    return MINK_INVALID;
}

enum mink_code conform_plan_make(const struct table_def *d, const struct arrow_schema *incoming, const char *const meta_columns[], struct conform_plan **out, struct error *e) {
    struct conform_plan *p = mem_new(struct conform_plan);
    p->def = table_def_ref((struct table_def *)d);
    p->incoming = arrow_schema_ref((struct arrow_schema *)incoming);
    p->columns = mem_new_array(struct conform_column, d->column_count);
    struct incoming *sorted = mem_new_array(struct incoming, arrow_schema_count(incoming) + 1);
    enum mink_code code = check_incoming(d, incoming, meta_columns, sorted, e);
    for (uint32_t i = 0; i < d->column_count && code == MINK_OK; i++) code = plan_column(p, i, sorted, e);
    mem_free(sorted);
    if (code != MINK_OK) {
        conform_plan_free(p);
        *out = NULL;
        return code;
    }
    p->identity = arrow_schema_count(incoming) == d->column_count;
    for (uint32_t i = 0; i < d->column_count; i++) {
        const struct conform_column *c = &p->columns[i];
        p->identity &= c->source == (int32_t)i && !c->cast && !encoded(arrow_schema_at(incoming, i));
    }
    *out = p;
    return MINK_OK;
}

bool conform_plan_identity(const struct conform_plan *p) { return p->identity; }

void conform_plan_free(struct conform_plan *p) {
    if (p == NULL) return;
    table_def_unref(p->def);
    arrow_schema_unref(p->incoming);
    mem_free(p->columns);
    mem_free(p);
}

// ---- values

static enum mink_code is_null(const struct column *c, int64_t row, const char *inside, struct error *e) {
    error_set(e, MINK_INVALID, "NOT_NULL", "row %" PRId64 ": column %.60s is NOT NULL%s", row, c->name, inside);
    error_about(e, c->name, "NOT NULL", "null");
    return MINK_INVALID;
}

static uint32_t characters(const uint8_t *p, uint32_t size) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < size; i++) n += (p[i] & 0xc0) != 0x80;
    return n;
}

static enum mink_code check_char(const struct column *c, const struct type *t, const struct arrow_array *a, const int64_t *top, struct error *e) {
    int32_t begin, end;
    for (int64_t i = 0; i < a->length; i++, begin = end) {
        memcpy(&begin, a->buffers[1].data + 4 * i, 4);
        memcpy(&end, a->buffers[1].data + 4 * i + 4, 4);
        if ((uint32_t)(end - begin) <= t->length || (top && top[i] < 0) || arrow_is_null(a, i)) continue;
        uint32_t count = characters(a->buffers[2].data + begin, (uint32_t)(end - begin));
        if (count <= t->length) continue;
        char type[32], given[32];
        type_describe(t, type, sizeof type);
        snprintf(given, sizeof given, "%u characters", count);
        error_set(e, MINK_INVALID, "VALUE_TOO_LONG", "row %" PRId64 ": column %.60s: %s do not fit into %s", top ? top[i] : i, c->name, given, type);
        error_about(e, c->name, type, given);
        return MINK_INVALID;
    }
    return MINK_OK;
}

static enum mink_code check_decimal(const struct column *c, const struct type *t, const struct arrow_array *a, const int64_t *top, struct error *e) {
    __int128 limit = 1;
    for (uint32_t i = 0; i < t->precision; i++) limit *= 10;
    bool outside = false;
    for (int64_t i = 0; i < a->length; i++) { // without branches; rows are looked at only when there is one
        __int128 v;
        memcpy(&v, a->buffers[1].data + 16 * i, 16);
        outside |= (v >= limit) | (v <= -limit);
    }
    for (int64_t i = 0; i < a->length && outside; i++) {
        __int128 v;
        memcpy(&v, a->buffers[1].data + 16 * i, 16);
        if ((v < limit && v > -limit) || (top && top[i] < 0) || arrow_is_null(a, i)) continue;
        char type[32];
        type_describe(t, type, sizeof type);
        error_set(e, MINK_INVALID, "OUT_OF_RANGE_VALUE", "row %" PRId64 ": column %.60s: the value has more digits than %s holds", top ? top[i] : i, c->name, type);
        error_about(e, c->name, type, NULL);
        return MINK_INVALID;
    }
    return MINK_OK;
}

static enum mink_code check_values(const struct column *c, const struct type *t, const struct arrow_array *a, const int64_t *top, struct error *e);

// top: of each row of a the row of the batch it belongs to, -1 when it is behind a null; NULL at the top itself.
static int64_t top_of(const struct arrow_array *a, const int64_t *top, int64_t row) {
    return arrow_is_null(a, row) ? -1 : top ? top[row] : row;
}

static enum mink_code check_nested(const struct column *c, const struct type *t, const struct arrow_array *a, const int64_t *top, struct error *e) {
    bool list = t->kind != TYPE_ROW;
    const struct arrow_array *parent = t->kind == TYPE_MAP ? &a->children[0] : a; // fields are children of a map's entries
    int64_t count = list ? a->children[0].length : a->length;
    int64_t *below = mem_alloc((size_t)(count + 1) * sizeof *below);
    if (list) {
        for (int64_t i = 0; i < count; i++) below[i] = -1; // outside of every list
        for (int64_t row = 0; row < a->length; row++) {
            int32_t range[2];
            memcpy(range, a->buffers[1].data + 4 * row, 8);
            int64_t belongs = top_of(a, top, row);
            for (int32_t i = range[0]; i < range[1]; i++) below[i] = belongs;
        }
    } else {
        for (int64_t row = 0; row < count; row++) below[row] = top_of(a, top, row);
    }
    enum mink_code code = MINK_OK;
    for (uint32_t f = 0; f < t->field_count && code == MINK_OK; f++) {
        const struct type_field *field = &t->fields[f];
        const struct arrow_array *child = &parent->children[f];
        for (int64_t i = 0; i < child->length && child->null_count && !field->type.nullable && code == MINK_OK; i++) {
            if (below[i] >= 0 && arrow_is_null(child, i)) {
                char inside[100];
                snprintf(inside, sizeof inside, " in its %.60s", t->kind == TYPE_ARRAY ? "elements" : t->kind == TYPE_MAP ? f ? "values" : "keys" : field->name);
                code = is_null(c, below[i], inside, e);
            }
        }
        if (code == MINK_OK && has_rules(&field->type, false)) code = check_values(c, &field->type, child, below, e);
    }
    mem_free(below);
    return code;
}

static enum mink_code check_values(const struct column *c, const struct type *t, const struct arrow_array *a, const int64_t *top, struct error *e) {
    if (a->length == a->null_count) return MINK_OK; // buffers may not be there
    switch (t->kind) {
    case TYPE_CHAR: return check_char(c, t, a, top, e);
    case TYPE_DECIMAL: return check_decimal(c, t, a, top, e);
    case TYPE_ARRAY:
    case TYPE_MAP:
    case TYPE_ROW: return check_nested(c, t, a, top, e);
    default: return MINK_OK;
    }
}

static enum mink_code apply_column(const struct conform_plan *p, uint32_t index, const struct arrow_batch *in, struct arrow_array *out, struct error *e) {
    const struct column *c = &p->def->columns[index];
    const struct conform_column *plan = &p->columns[index];
    const struct arrow_field *to = arrow_schema_at(p->def->arrow, index);
    if (plan->source < 0) {
        arrow_nulls(to, in->row_count, out);
        return MINK_OK;
    }
    const struct arrow_array *a = &in->columns[plan->source];
    if (!c->type.nullable && a->null_count) {
        int64_t row = 0;
        while (row < a->length - 1 && !arrow_is_null(a, row)) row++;
        return is_null(c, row, "", e);
    }
    if (plan->cast) MINK_TRY(arrow_cast(arrow_schema_at(p->incoming, (uint32_t)plan->source), a, to, out, e));
    else arrow_array_ref(out, a);
    return plan->look ? check_values(c, &c->type, out, NULL, e) : MINK_OK;
}

enum mink_code conform_apply(const struct conform_plan *p, const struct arrow_batch *in, struct arrow_batch *out, struct error *e) {
    *out = (struct arrow_batch){arrow_schema_ref(p->def->arrow), in->row_count, mem_new_array(struct arrow_array, p->def->column_count)};
    enum mink_code code = MINK_OK;
    for (uint32_t i = 0; i < p->def->column_count && code == MINK_OK; i++) code = apply_column(p, i, in, &out->columns[i], e);
    if (code != MINK_OK) arrow_batch_deinit(out);
    return code;
}
