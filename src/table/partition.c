// SPDX-License-Identifier: Apache-2.0
#include "table/partition.h"

#include "base/mem.h"
#include "table/bucketing.h"
#include "table/table_internal.h"
#include "table/zone.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define GROUPS_MAX 4096 // partitions that one batch may touch

// ---- names

static enum mink_code bad_value(const struct column *c, const char *text, const char *wanted, struct error *e) {
    error_set(e, MINK_INVALID, "BAD_PARTITION", "partition column %.60s: \"%.60s\" is not %s", c->name, text, wanted);
    error_about(e, c->name, wanted, text);
    return MINK_INVALID;
}

static enum mink_code integer_value(const struct column *c, const char *text, char out[256], struct error *e) {
    int64_t v = 0, max = INT64_MAX >> (64 - (8 << (c->type.kind - TYPE_TINYINT)));
    bool minus = *text == '-', fits = true;
    const char *p = text + minus;
    if (!*p) fits = false;
    for (; *p && fits; p++) fits = *p >= '0' && *p <= '9' && !__builtin_mul_overflow(v, 10, &v) && !__builtin_sub_overflow(v, *p - '0', &v); // negative: there are more of these
    if (fits && !minus && v == INT64_MIN) fits = false;
    if (fits && (minus ? v < -max - 1 : -v > max)) fits = false;
    if (!fits) return bad_value(c, text, type_name(c->type.kind), e);
    snprintf(out, 256, "%" PRId64, minus ? v : -v);
    return MINK_OK;
}

static enum mink_code date_value(const struct column *c, const char *text, char out[256], struct error *e) {
    uint32_t v[3] = {0}, n = 0;
    bool right = strlen(text) == 10 && text[4] == '-' && text[7] == '-';
    for (uint32_t i = 0; i < 10 && right; i++) {
        if (i == 4 || i == 7) {
            n++;
        } else {
            right = text[i] >= '0' && text[i] <= '9';
            v[n] = v[n] * 10 + (uint32_t)(text[i] - '0');
        }
    }
    if (right && v[1] >= 1 && v[1] <= 12 && v[2] >= 1) {
        int64_t year;
        uint32_t month, day;
        civil_from_days(days_from_civil(v[0], v[1], v[2]), &year, &month, &day);
        right = month == v[1] && day == v[2];
    } else {
        right = false;
    }
    if (!right) return bad_value(c, text, "a date like 2026-12-01", e);
    snprintf(out, 256, "%s", text);
    return MINK_OK;
}

// One value, in the one way it is written.
static enum mink_code value_text(const struct table_def *d, uint32_t column, const char *text, char out[256], struct error *e) {
    const struct column *c = &d->columns[column];
    switch (c->type.kind) {
    case TYPE_TINYINT:
    case TYPE_SMALLINT:
    case TYPE_INT:
    case TYPE_BIGINT: MINK_TRY(integer_value(c, text, out, e)); break;
    case TYPE_DATE: MINK_TRY(date_value(c, text, out, e)); break;
    case TYPE_BOOLEAN:
        if (strcasecmp(text, "true") != 0 && strcasecmp(text, "false") != 0) return bad_value(c, text, "true or false", e);
        snprintf(out, 256, "%s", strcasecmp(text, "true") == 0 ? "true" : "false");
        break;
    default:
        if (table_name_check(text, "partition", e) != MINK_OK) {
            error_context(e, "partition column %.60s", c->name);
            if (e) snprintf(e->reason, sizeof e->reason, "BAD_PARTITION");
            return MINK_INVALID;
        }
        if (c->type.kind == TYPE_CHAR && strlen(text) > c->type.length) return bad_value(c, text, "short enough for the column", e);
        snprintf(out, 256, "%s", text);
    }
    int64_t span;
    if (d->auto_partition.enabled && d->auto_partition.key == column && !partition_span_read(d, out, strlen(out), &span)) {
        char wanted[64];
        snprintf(wanted, sizeof wanted, "a time of the format %s", d->auto_partition.format);
        return bad_value(c, text, wanted, e);
    }
    return MINK_OK;
}

enum mink_code partition_name(const struct table_def *d, const char *const *values, uint32_t count, char out[PARTITION_NAME_MAX], struct error *e) {
    if (count != d->partition_by_count || count == 0)
        return error_set(e, MINK_INVALID, "BAD_PARTITION", "%s.%s has %u partition columns, %u values were given", d->database, d->name, d->partition_by_count, count);
    size_t size = 0;
    for (uint32_t i = 0; i < count; i++) {
        char value[256];
        MINK_TRY(value_text(d, d->partition_by[i], values[i], value, e));
        size_t one = strlen(value);
        if (size + one + 2 > PARTITION_NAME_MAX) return error_set(e, MINK_INVALID, "BAD_PARTITION", "the values of the partition columns are longer than %d bytes together", PARTITION_NAME_MAX - 1);
        if (i) out[size++] = '$';
        memcpy(out + size, value, one + 1);
        size += one;
    }
    return MINK_OK;
}

// ---- groups

struct values { // of a column: fixed width, or offsets into bytes
    const uint8_t *data, *bytes;
    uint32_t width; // 0: offsets
    bool bits;
};

static struct slice value_at(const struct values *v, int64_t row) {
    static const uint8_t booleans[2] = {0, 1};
    if (v->bits) return slice_borrow(&booleans[v->data[row >> 3] >> (row & 7) & 1], 1);
    if (v->width) return slice_borrow(v->data + (size_t)row * v->width, v->width);
    int32_t offsets[2];
    memcpy(offsets, v->data + 4 * row, 8);
    return slice_borrow(v->bytes ? v->bytes + offsets[0] : NULL, (size_t)(offsets[1] - offsets[0]));
}

static bool same(struct slice a, struct slice b) { return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0); }

// A group is a pair: the group by the columns before, and the value of this column, at the row where it was first seen.
struct group { uint32_t before; int64_t row; };

// Open addressing over group numbers (+ 1), so that the numbers are in order of first appearance.
struct groups {
    struct group *items;
    uint32_t count, *slots, slot_mask;
};

static bool group_find(struct groups *g, const struct values *v, uint32_t before, int64_t row, uint32_t *out) {
    struct slice value = value_at(v, row);
    uint32_t slot = murmur3_x86_32(value.data, value.size, before) & g->slot_mask;
    for (; g->slots[slot]; slot = (slot + 1) & g->slot_mask) {
        const struct group *one = &g->items[g->slots[slot] - 1];
        if (one->before == before && same(value_at(v, one->row), value)) {
            *out = g->slots[slot] - 1;
            return true;
        }
    }
    if (g->count == GROUPS_MAX) return false;
    g->items[g->count] = (struct group){before, row};
    *out = g->count++;
    g->slots[slot] = g->count;
    return true;
}

static enum mink_code too_many(const struct table_def *d, struct error *e) {
    error_set(e, MINK_INVALID, "TOO_MANY_PARTITIONS", "a batch for more than %d partitions of %s.%s", GROUPS_MAX, d->database, d->name);
    error_hint(e, "send rows of fewer partitions at a time");
    return MINK_INVALID;
}

// Groups by one more column: out_group in and out.
static enum mink_code group_column(const struct table_def *d, const struct arrow_batch *b, uint32_t column, struct groups *g, uint32_t *out_group, struct error *e) {
    const struct arrow_array *a = &b->columns[column];
    const struct arrow_field *f = arrow_schema_at(b->schema, column);
    struct values v = {a->buffers[1].data, a->buffers[2].data, arrow_type_bit_width(f) / 8, f->type == ARROW_BOOL};
    for (int64_t row = 0; a->null_count && row < b->row_count; row++)
        if (arrow_is_null(a, row)) return error_set(e, MINK_INVALID, "BAD_PARTITION", "row %" PRId64 ": partition column %.60s is null", row, d->columns[column].name);
    g->count = 0;
    memset(g->slots, 0, (g->slot_mask + 1) * sizeof *g->slots);
    uint32_t before = UINT32_MAX, group = 0;
    int64_t last = 0;
    for (int64_t row = 0; row < b->row_count; row++) {
        // Neighbours are mostly of the same partition.
        if (out_group[row] != before || !same(value_at(&v, row), value_at(&v, last))) {
            before = out_group[row];
            if (!group_find(g, &v, before, row, &group)) return too_many(d, e);
        }
        last = row;
        out_group[row] = group;
    }
    return MINK_OK;
}

static enum mink_code row_name(const struct table_def *d, const struct arrow_batch *b, int64_t row, char out[PARTITION_NAME_MAX], struct error *e) {
    char *texts[TABLE_KEY_COLUMNS_MAX];
    for (uint32_t i = 0; i < d->partition_by_count; i++) {
        struct buffer text;
        buffer_init(&text, 64u << 20);
        arrow_value_text(arrow_schema_at(b->schema, d->partition_by[i]), &b->columns[d->partition_by[i]], row, &text);
        // A zero byte is a character like any other to Arrow; here it would cut the name short.
        for (size_t k = 0; k < text.size; k++)
            if (text.data[k] == 0) text.data[k] = '?';
        texts[i] = mem_strndup(buffer_string(&text), text.size > 4096 ? 4096 : text.size);
        buffer_deinit(&text);
    }
    enum mink_code code = partition_name(d, (const char *const *)texts, d->partition_by_count, out, e);
    if (code != MINK_OK) error_context(e, "row %" PRId64, row);
    for (uint32_t i = 0; i < d->partition_by_count; i++) mem_free(texts[i]);
    return code;
}

enum mink_code partition_group(const struct table_def *d, const struct arrow_batch *b, uint32_t *out_group, char ***out_names, uint32_t *out_count, struct error *e) {
    struct groups g = {.items = mem_new_array(struct group, GROUPS_MAX), .slots = mem_new_array(uint32_t, 4 * GROUPS_MAX), .slot_mask = 4 * GROUPS_MAX - 1};
    enum mink_code code = MINK_OK;
    *out_names = NULL;
    *out_count = 0;
    memset(out_group, 0, (size_t)b->row_count * sizeof *out_group);
    for (uint32_t i = 0; i < d->partition_by_count && code == MINK_OK; i++) code = group_column(d, b, d->partition_by[i], &g, out_group, e);
    char **names = mem_new_array(char *, g.count + 1);
    uint32_t count = 0;
    for (; code == MINK_OK && count < g.count; count++) {
        char name[PARTITION_NAME_MAX];
        code = row_name(d, b, g.items[count].row, name, e);
        if (code != MINK_OK) break;
        names[count] = mem_strdup(name);
    }
    mem_free(g.items);
    mem_free(g.slots);
    if (code == MINK_OK) {
        *out_names = names;
        *out_count = count;
        return MINK_OK;
    }
    for (uint32_t i = 0; i < count; i++) mem_free(names[i]);
    mem_free(names);
    return code;
}
