// SPDX-License-Identifier: Apache-2.0
#include "arrow/kernel.h"

#include "arrow/arrow_internal.h"
#include "base/mem.h"

void arrow_nulls(const struct arrow_field *f, int64_t length, struct arrow_array *out) {
    *out = (struct arrow_array){.length = length, .null_count = length};
    if (f->type == ARROW_NULL) return;
    uint8_t *p;
    if (length) {
        out->buffers[0] = slice_new(bits_bytes(length), &p);
        memset(p, 0, out->buffers[0].size);
    }
    if (type_is_bytes(f->type) || type_is_list(f->type)) {
        out->buffers[1] = slice_new(((size_t)length + 1) * offset_width(f), &p);
        memset(p, 0, out->buffers[1].size);
    } else if (arrow_field_buffer_count(f) == 2) {
        out->buffers[1] = slice_new(fixed_bytes(f, length), &p);
        memset(p, 0, out->buffers[1].size);
    }
    if (f->child_count == 0) return;
    out->children = mem_new_array(struct arrow_array, f->child_count);
    out->child_count = f->child_count;
    int64_t child_length = f->type == ARROW_STRUCT ? length : f->type == ARROW_FIXED_LIST ? length * f->width : 0;
    for (uint32_t i = 0; i < f->child_count; i++) arrow_nulls(&f->children[i], child_length, &out->children[i]);
}

void arrow_slice(const struct arrow_batch *b, int64_t begin, int64_t count, struct arrow_batch *out) {
    mink_assert(begin >= 0 && count >= 0 && begin <= b->row_count && count <= b->row_count - begin);
    uint32_t columns = arrow_schema_count(b->schema);
    *out = (struct arrow_batch){arrow_schema_ref(b->schema), count, mem_new_array(struct arrow_array, columns)};
    for (uint32_t i = 0; i < columns; i++) array_slice(arrow_schema_at(b->schema, i), &b->columns[i], begin, count, &out->columns[i]);
}

void arrow_project(const struct arrow_batch *b, const uint32_t *columns, uint32_t count, struct arrow_batch *out) {
    *out = (struct arrow_batch){arrow_schema_project(b->schema, columns, count), b->row_count, mem_new_array(struct arrow_array, count)};
    for (uint32_t i = 0; i < count; i++) arrow_array_ref(&out->columns[i], &b->columns[columns[i]]);
}

// ---- take

static bool charge(uint64_t *budget, uint64_t bytes) {
    if (bytes > *budget) return false;
    *budget -= bytes;
    return true;
}

static bool take_validity(const struct arrow_array *a, const uint32_t *rows, int64_t count, uint64_t *budget, struct arrow_array *out) {
    int64_t nulls = 0;
    for (int64_t i = 0; i < count; i++) nulls += rows[i] == ARRAY_TAKE_NULL || arrow_is_null(a, rows[i]);
    out->null_count = nulls;
    if (nulls == 0) return true;
    uint8_t *bits;
    if (!charge(budget, bits_bytes(count))) return false;
    out->buffers[0] = slice_new(bits_bytes(count), &bits);
    memset(bits, 0, out->buffers[0].size);
    for (int64_t i = 0; i < count; i++) {
        if (rows[i] != ARRAY_TAKE_NULL && !arrow_is_null(a, rows[i])) bit_set(bits, i);
    }
    return true;
}

#define TAKE_WIDTH(type)                                                     \
    for (int64_t i = 0; i < count; i++) {                                    \
        type v = 0;                                                          \
        if (rows[i] != ARRAY_TAKE_NULL) memcpy(&v, in + rows[i] * sizeof v, sizeof v); \
        memcpy(to + (size_t)i * sizeof v, &v, sizeof v);                     \
    }

static bool take_fixed(const struct arrow_field *f, const struct arrow_array *a, const uint32_t *rows, int64_t count, uint64_t *budget, struct arrow_array *out) {
    size_t size = fixed_bytes(f, count), width = arrow_type_bit_width(f) / 8;
    const uint8_t *in = a->buffers[1].data;
    uint8_t *to;
    if (!charge(budget, size)) return false;
    out->buffers[1] = slice_new(size, &to);
    if (f->type == ARROW_BOOL) {
        memset(to, 0, size);
        for (int64_t i = 0; i < count; i++) {
            if (rows[i] != ARRAY_TAKE_NULL && bit_get(in, rows[i])) bit_set(to, i);
        }
    } else if (width == 8) {
        TAKE_WIDTH(uint64_t)
    } else if (width == 4) {
        TAKE_WIDTH(uint32_t)
    } else {
        for (int64_t i = 0; i < count; i++) {
            if (rows[i] == ARRAY_TAKE_NULL) memset(to + (size_t)i * width, 0, width);
            else memcpy(to + (size_t)i * width, in + rows[i] * width, width);
        }
    }
    return true;
}

// New offsets; the bytes or items they cover.
static bool take_offsets(const struct arrow_field *f, const struct arrow_array *a, const uint32_t *rows, int64_t count, uint64_t *budget, struct arrow_array *out, uint64_t *out_total) {
    size_t width = offset_width(f);
    uint8_t *to;
    uint64_t total = 0, limit = width == 4 ? INT32_MAX : INT64_MAX;
    if (!charge(budget, ((size_t)count + 1) * width)) return false;
    out->buffers[1] = slice_new(((size_t)count + 1) * width, &to);
    memset(to, 0, width);
    for (int64_t i = 0; i < count; i++) {
        if (rows[i] != ARRAY_TAKE_NULL && !arrow_is_null(a, rows[i])) total += (uint64_t)(offset_at(f, a, (int64_t)rows[i] + 1) - offset_at(f, a, rows[i]));
        if (total > limit) return false;
        memcpy(to + ((size_t)i + 1) * width, &total, width);
    }
    *out_total = total;
    return true;
}

static bool take_bytes(const struct arrow_field *f, const struct arrow_array *a, const uint32_t *rows, int64_t count, uint64_t *budget, struct arrow_array *out) {
    uint64_t total;
    uint8_t *to;
    if (!take_offsets(f, a, rows, count, budget, out, &total) || !charge(budget, total)) return false;
    out->buffers[2] = slice_new(total, &to);
    for (int64_t i = 0; i < count; i++) {
        if (rows[i] == ARRAY_TAKE_NULL || arrow_is_null(a, rows[i])) continue;
        size_t at = (size_t)offset_at(f, a, rows[i]), size = (size_t)offset_at(f, a, (int64_t)rows[i] + 1) - at;
        memcpy(to, a->buffers[2].data + at, size);
        to += size;
    }
    return true;
}

static bool take_list(const struct arrow_field *f, const struct arrow_array *a, const uint32_t *rows, int64_t count, uint64_t *budget, struct arrow_array *out) {
    uint64_t total, at = 0;
    if (!take_offsets(f, a, rows, count, budget, out, &total) || total > INT32_MAX || total * 4 > *budget) return false;
    uint32_t *items = mem_new_array(uint32_t, total);
    for (int64_t i = 0; i < count; i++) {
        if (rows[i] == ARRAY_TAKE_NULL || arrow_is_null(a, rows[i])) continue;
        for (int64_t k = offset_at(f, a, rows[i]); k < offset_at(f, a, (int64_t)rows[i] + 1); k++) items[at++] = (uint32_t)k;
    }
    bool fits = array_take(&f->children[0], &a->children[0], items, (int64_t)total, budget, &out->children[0]);
    mem_free(items);
    return fits;
}

static bool take_fixed_list(const struct arrow_field *f, const struct arrow_array *a, const uint32_t *rows, int64_t count, uint64_t *budget, struct arrow_array *out) {
    uint64_t width = (uint64_t)f->width, total = width * (uint64_t)count;
    if (total > INT32_MAX || total * 4 > *budget) return false;
    uint32_t *items = mem_new_array(uint32_t, total);
    for (uint64_t i = 0; i < total; i++) {
        uint32_t row = rows[i / width];
        items[i] = row == ARRAY_TAKE_NULL ? ARRAY_TAKE_NULL : (uint32_t)(row * width + i % width);
    }
    bool fits = array_take(&f->children[0], &a->children[0], items, (int64_t)total, budget, &out->children[0]);
    mem_free(items);
    return fits;
}

bool array_take(const struct arrow_field *f, const struct arrow_array *a, const uint32_t *rows, int64_t count, uint64_t *budget, struct arrow_array *out) {
    *out = (struct arrow_array){.length = count};
    bool fits = true;
    if (f->type == ARROW_NULL) {
        out->null_count = count;
        return true;
    }
    if (a->child_count) {
        fits = charge(budget, a->child_count * sizeof *a);
        if (!fits) return false;
        out->children = mem_new_array(struct arrow_array, a->child_count);
        out->child_count = a->child_count;
    }
    fits = take_validity(a, rows, count, budget, out);
    if (!fits) {
    } else if (type_is_bytes(f->type)) {
        fits = take_bytes(f, a, rows, count, budget, out);
    } else if (type_is_list(f->type)) {
        fits = take_list(f, a, rows, count, budget, out);
    } else if (f->type == ARROW_FIXED_LIST) {
        fits = take_fixed_list(f, a, rows, count, budget, out);
    } else if (f->type == ARROW_STRUCT) {
        for (uint32_t i = 0; i < a->child_count && fits; i++) fits = array_take(&f->children[i], &a->children[i], rows, count, budget, &out->children[i]);
    } else {
        fits = take_fixed(f, a, rows, count, budget, out);
    }
    if (!fits) arrow_array_deinit(out);
    return fits;
}

void arrow_take(const struct arrow_batch *b, const uint32_t *rows, size_t row_count, struct arrow_batch *out) {
    uint32_t columns = arrow_schema_count(b->schema);
    uint64_t budget = UINT64_MAX;
    *out = (struct arrow_batch){arrow_schema_ref(b->schema), (int64_t)row_count, mem_new_array(struct arrow_array, columns)};
    for (uint32_t i = 0; i < columns; i++) mink_assert(array_take(arrow_schema_at(b->schema, i), &b->columns[i], rows, (int64_t)row_count, &budget, &out->columns[i]));
}

// ---- concat

// Bits behind count in the last byte of `from` do not count; `to` is zero from bit `at` on.
static void append_bits(uint8_t *to, int64_t at, const uint8_t *from, int64_t count) {
    uint32_t shift = at & 7;
    size_t bytes = bits_bytes(count);
    to += at >> 3;
    for (size_t i = 0; i < bytes; i++) {
        uint32_t v = from ? from[i] : 0xff; // no bitmap: all ones
        if (i + 1 == bytes && count % 8) v &= (1u << (count % 8)) - 1;
        v <<= shift;
        to[i] |= (uint8_t)v;
        if (v >> 8) to[i + 1] |= (uint8_t)(v >> 8);
    }
}

static struct slice concat_bits(const struct arrow_array *const *parts, size_t count, uint32_t buffer, int64_t length) {
    uint8_t *to;
    struct slice bits = slice_new(bits_bytes(length), &to);
    memset(to, 0, bits.size);
    int64_t at = 0;
    for (size_t p = 0; p < count; p++) {
        struct slice from = parts[p]->buffers[buffer];
        append_bits(to, at, from.size ? from.data : NULL, parts[p]->length);
        at += parts[p]->length;
    }
    return bits;
}

static struct slice concat_buffer(const struct arrow_array *const *parts, size_t count, uint32_t buffer) {
    size_t size = 0;
    for (size_t p = 0; p < count; p++) size += parts[p]->buffers[buffer].size;
    uint8_t *to;
    struct slice joined = slice_new(size, &to);
    for (size_t p = 0; p < count; p++) {
        struct slice s = parts[p]->buffers[buffer];
        if (s.size) memcpy(to, s.data, s.size);
        to += s.size;
    }
    return joined;
}

static struct slice concat_offsets(const struct arrow_field *f, const struct arrow_array *const *parts, size_t count, int64_t length) {
    size_t width = offset_width(f);
    uint8_t *to;
    struct slice joined = slice_new(((size_t)length + 1) * width, &to);
    memset(to, 0, width);
    int64_t base = 0;
    to += width;
    for (size_t p = 0; p < count; p++) {
        for (int64_t i = 1; i <= parts[p]->length; i++, to += width) {
            int64_t v = base + offset_at(f, parts[p], i);
            memcpy(to, &v, width);
        }
        base += offset_at(f, parts[p], parts[p]->length);
    }
    mink_assert(width == 8 || base <= INT32_MAX);
    return joined;
}

void array_concat(const struct arrow_field *f, const struct arrow_array *const *parts, size_t count, struct arrow_array *out) {
    *out = (struct arrow_array){0};
    for (size_t p = 0; p < count; p++) {
        out->length += parts[p]->length;
        out->null_count += parts[p]->null_count;
    }
    if (f->type == ARROW_NULL) return;
    if (out->null_count) out->buffers[0] = concat_bits(parts, count, 0, out->length);
    if (f->type == ARROW_BOOL) out->buffers[1] = concat_bits(parts, count, 1, out->length);
    else if (type_is_bytes(f->type) || type_is_list(f->type)) out->buffers[1] = concat_offsets(f, parts, count, out->length);
    else if (arrow_field_buffer_count(f) == 2) out->buffers[1] = concat_buffer(parts, count, 1);
    if (type_is_bytes(f->type)) out->buffers[2] = concat_buffer(parts, count, 2);
    if (f->child_count == 0) return;
    out->children = mem_new_array(struct arrow_array, f->child_count);
    out->child_count = f->child_count;
    const struct arrow_array **children = mem_new_array(const struct arrow_array *, count);
    for (uint32_t i = 0; i < f->child_count; i++) {
        for (size_t p = 0; p < count; p++) children[p] = &parts[p]->children[i];
        array_concat(&f->children[i], children, count, &out->children[i]);
    }
    mem_free(children);
}

void arrow_concat(const struct arrow_batch *const *batches, size_t count, struct arrow_batch *out) {
    mink_assert(count > 0);
    uint32_t columns = arrow_schema_count(batches[0]->schema);
    *out = (struct arrow_batch){arrow_schema_ref(batches[0]->schema), 0, mem_new_array(struct arrow_array, columns)};
    const struct arrow_array **parts = mem_new_array(const struct arrow_array *, count);
    for (size_t p = 0; p < count; p++) out->row_count += batches[p]->row_count;
    for (uint32_t i = 0; i < columns; i++) {
        for (size_t p = 0; p < count; p++) parts[p] = &batches[p]->columns[i];
        array_concat(arrow_schema_at(batches[0]->schema, i), parts, count, &out->columns[i]);
    }
    mem_free(parts);
}
