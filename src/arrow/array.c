// SPDX-License-Identifier: Apache-2.0
#include "arrow/array.h"

#include "arrow/arrow_internal.h"
#include "base/mem.h"

const uint8_t arrow_zeros[64];

void arrow_array_deinit(struct arrow_array *a) {
    for (uint32_t i = 0; i < 3; i++) slice_unref(&a->buffers[i]);
    for (uint32_t i = 0; i < a->child_count; i++) arrow_array_deinit(&a->children[i]);
    mem_free(a->children);
    *a = (struct arrow_array){0};
}

void arrow_array_ref(struct arrow_array *target, const struct arrow_array *source) {
    *target = *source;
    for (uint32_t i = 0; i < 3; i++) target->buffers[i] = slice_ref(source->buffers[i]);
    target->children = source->child_count ? mem_new_array(struct arrow_array, source->child_count) : NULL;
    for (uint32_t i = 0; i < source->child_count; i++) arrow_array_ref(&target->children[i], &source->children[i]);
}

void arrow_batch_deinit(struct arrow_batch *b) {
    for (uint32_t i = 0; b->columns && i < arrow_schema_count(b->schema); i++) arrow_array_deinit(&b->columns[i]);
    mem_free(b->columns);
    arrow_schema_unref(b->schema);
    *b = (struct arrow_batch){0};
}

void arrow_batch_ref(struct arrow_batch *target, const struct arrow_batch *source) {
    uint32_t count = arrow_schema_count(source->schema);
    *target = (struct arrow_batch){arrow_schema_ref(source->schema), source->row_count, mem_new_array(struct arrow_array, count)};
    for (uint32_t i = 0; i < count; i++) arrow_array_ref(&target->columns[i], &source->columns[i]);
}

static size_t array_bytes(const struct arrow_array *a) {
    size_t bytes = a->buffers[0].size + a->buffers[1].size + a->buffers[2].size;
    for (uint32_t i = 0; i < a->child_count; i++) bytes += array_bytes(&a->children[i]);
    return bytes;
}

size_t arrow_batch_bytes(const struct arrow_batch *b) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < arrow_schema_count(b->schema); i++) bytes += array_bytes(&b->columns[i]);
    return bytes;
}

int64_t bits_count(const uint8_t *bits, int64_t begin, int64_t count) {
    int64_t ones = 0, at = begin, end = begin + count;
    for (; at < end && (at & 7); at++) ones += bit_get(bits, at);
    for (; at + 64 <= end; at += 64) {
        uint64_t word;
        memcpy(&word, bits + (at >> 3), 8);
        ones += __builtin_popcountll(word);
    }
    for (; at + 8 <= end; at += 8) ones += __builtin_popcount(bits[at >> 3]);
    for (; at < end; at++) ones += bit_get(bits, at);
    return ones;
}

struct slice bits_slice(struct slice bits, int64_t begin, int64_t count) {
    if ((begin & 7) == 0) return slice_sub(bits, (size_t)begin >> 3, bits_bytes(count));
    uint8_t *out;
    size_t size = bits_bytes(count), from = (size_t)begin >> 3;
    uint32_t shift = begin & 7;
    struct slice moved = slice_new(size, &out);
    for (size_t i = 0; i < size; i++) {
        uint8_t high = from + i + 1 < bits.size ? (uint8_t)(bits.data[from + i + 1] << (8 - shift)) : 0;
        out[i] = (uint8_t)(bits.data[from + i] >> shift) | high;
    }
    return moved;
}

// Offsets [begin, begin + count] moved so that they start at 0.
static struct slice offsets_rebase(const struct arrow_field *f, const struct arrow_array *a, int64_t begin, int64_t count) {
    size_t width = offset_width(f);
    int64_t first = offset_at(f, a, begin);
    if (first == 0) return slice_sub(a->buffers[1], (size_t)begin * width, ((size_t)count + 1) * width);
    uint8_t *out;
    struct slice moved = slice_new(((size_t)count + 1) * width, &out);
    for (int64_t i = 0; i <= count; i++) {
        int64_t v = offset_at(f, a, begin + i) - first;
        memcpy(out + (size_t)i * width, &v, width);
    }
    return moved;
}

void array_slice(const struct arrow_field *f, const struct arrow_array *a, int64_t begin, int64_t count, struct arrow_array *out) {
    if (begin == 0 && count == a->length) {
        arrow_array_ref(out, a);
        return;
    }
    *out = (struct arrow_array){.length = count};
    if (a->buffers[0].size) {
        out->null_count = count - bits_count(a->buffers[0].data, begin, count);
        if (out->null_count) out->buffers[0] = bits_slice(a->buffers[0], begin, count);
    }
    if (a->child_count) {
        out->child_count = a->child_count;
        out->children = mem_new_array(struct arrow_array, a->child_count);
    }
    if (f->type == ARROW_NULL) {
        out->null_count = count;
    } else if (f->type == ARROW_BOOL) {
        out->buffers[1] = bits_slice(a->buffers[1], begin, count);
    } else if (type_is_bytes(f->type)) {
        int64_t first = offset_at(f, a, begin), last = offset_at(f, a, begin + count);
        out->buffers[1] = offsets_rebase(f, a, begin, count);
        out->buffers[2] = slice_sub(a->buffers[2], (size_t)first, (size_t)(last - first));
    } else if (type_is_list(f->type)) {
        int64_t first = offset_at(f, a, begin), last = offset_at(f, a, begin + count);
        out->buffers[1] = offsets_rebase(f, a, begin, count);
        array_slice(&f->children[0], &a->children[0], first, last - first, &out->children[0]);
    } else if (f->type == ARROW_FIXED_LIST) {
        array_slice(&f->children[0], &a->children[0], begin * f->width, count * f->width, &out->children[0]);
    } else if (f->type == ARROW_STRUCT) {
        for (uint32_t i = 0; i < a->child_count; i++) array_slice(&f->children[i], &a->children[i], begin, count, &out->children[i]);
    } else {
        size_t width = arrow_type_bit_width(f) / 8;
        out->buffers[1] = slice_sub(a->buffers[1], (size_t)begin * width, (size_t)count * width);
    }
}
