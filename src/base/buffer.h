// SPDX-License-Identifier: Apache-2.0
// buffer.h: growable bytes, born with a maximum.
//
// What      Append-only builder for messages and formats. Once `bytes_max` would be passed the buffer is `overflowed`,
//           keeps what it had, and refuses the rest: checked once at the end.
// Owner     One thread.
#ifndef MINK_BASE_BUFFER_H
#define MINK_BASE_BUFFER_H

#include "base/slice.h"

#include <stdbool.h>

struct buffer {
    uint8_t *data;
    size_t size, capacity, bytes_max;
    bool overflowed;
};

void buffer_init(struct buffer *b, size_t bytes_max);
void buffer_deinit(struct buffer *b);
void buffer_reset(struct buffer *b); // empty, keeps its memory
uint8_t *buffer_extend(struct buffer *b, size_t size); // room for size bytes counted in; NULL when it overflows
void buffer_put(struct buffer *b, const void *data, size_t size);
void buffer_put_u8(struct buffer *b, uint8_t v);
void buffer_put_u16le(struct buffer *b, uint16_t v);
void buffer_put_u32le(struct buffer *b, uint32_t v);
void buffer_put_u64le(struct buffer *b, uint64_t v);
void buffer_put_varint(struct buffer *b, uint64_t v); // unsigned LEB128
void buffer_put_zeros(struct buffer *b, size_t size);
void buffer_put_string(struct buffer *b, const char *s); // without the terminator
void buffer_printf(struct buffer *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
struct slice buffer_take_slice(struct buffer *b); // the bytes become a slice; the buffer is empty and usable
const char *buffer_string(struct buffer *b);      // terminated view, until the next change

#endif
