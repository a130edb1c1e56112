// SPDX-License-Identifier: Apache-2.0
#include "base/buffer.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void buffer_init(struct buffer *b, size_t bytes_max) { *b = (struct buffer){.bytes_max = bytes_max}; }

void buffer_deinit(struct buffer *b) {
    mem_free(b->data);
    buffer_init(b, b->bytes_max);
}

void buffer_reset(struct buffer *b) {
    b->size = 0;
    b->overflowed = false;
}

uint8_t *buffer_extend(struct buffer *b, size_t size) {
    if (b->overflowed || size > b->bytes_max - b->size) {
        b->overflowed = true;
        return NULL;
    }
    // One byte more than asked, for the terminator of buffer_string.
    if (b->size + size + 1 > b->capacity) {
        size_t capacity = b->capacity ? b->capacity * 2 : 256;
        while (capacity < b->size + size + 1) capacity *= 2;
        b->data = mem_realloc(b->data, capacity);
        b->capacity = capacity;
    }
    uint8_t *at = b->data + b->size;
    b->size += size;
    return at;
}

void buffer_put(struct buffer *b, const void *data, size_t size) {
    uint8_t *at = buffer_extend(b, size);
    if (at && size) memcpy(at, data, size);
}

static void put_le(struct buffer *b, uint64_t v, size_t size) {
    uint8_t *at = buffer_extend(b, size);
    for (size_t i = 0; at && i < size; i++) at[i] = (uint8_t)(v >> (8 * i));
}

void buffer_put_u8(struct buffer *b, uint8_t v) { put_le(b, v, 1); }
void buffer_put_u16le(struct buffer *b, uint16_t v) { put_le(b, v, 2); }
void buffer_put_u32le(struct buffer *b, uint32_t v) { put_le(b, v, 4); }
void buffer_put_u64le(struct buffer *b, uint64_t v) { put_le(b, v, 8); }

void buffer_put_varint(struct buffer *b, uint64_t v) {
    for (; v >= 0x80; v >>= 7) buffer_put_u8(b, (uint8_t)(v | 0x80));
    buffer_put_u8(b, (uint8_t)v);
}

void buffer_put_zeros(struct buffer *b, size_t size) {
    uint8_t *at = buffer_extend(b, size);
    if (at && size) memset(at, 0, size);
}

void buffer_put_string(struct buffer *b, const char *s) { buffer_put(b, s, strlen(s)); }

void buffer_printf(struct buffer *b, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    uint8_t *at = n < 0 ? NULL : buffer_extend(b, (size_t)n);
    if (at) vsnprintf((char *)at, (size_t)n + 1, format, again);
    va_end(again);
}

struct slice buffer_take_slice(struct buffer *b) {
    struct slice s = b->size ? slice_foreign(b->data, b->size, mem_free, b->data) : slice_empty();
    if (b->size == 0) mem_free(b->data);
    buffer_init(b, b->bytes_max);
    return s;
}

const char *buffer_string(struct buffer *b) {
    if (b->data == NULL) return "";
    b->data[b->size] = 0;
    return (const char *)b->data;
}
