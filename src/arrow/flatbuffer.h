// SPDX-License-Identifier: Apache-2.0
// flatbuffer.h: bounds-checked reading of foreign flatbuffers. Private to this folder.
//
// What      Every access checks its bounds, so nothing has to be verified beforehand and no alignment is needed. The first failure
//           sticks: later reads give zero or nothing, and one check at the end (fb->failed) tells.
// Bounds    A flatbuffer is a graph: shared parts make a small message a huge tree. Tables and string bytes handed out are counted.
// Owner     One thread; borrows the bytes.
// Source    The flatbuffers internals document; Arrow's format/*.fbs for the field numbers.
#ifndef MINK_ARROW_FLATBUFFER_H
#define MINK_ARROW_FLATBUFFER_H

#include "base/slice.h"

#include <stdbool.h>

#define FLATBUFFER_SIZE_MAX (16u << 20)

struct flatbuffer {
    const uint8_t *data;
    uint32_t size;
    uint32_t tables_left;
    size_t string_bytes_left;
    bool failed;
};

struct fb_table {
    struct flatbuffer *fb;
    uint32_t at, size;             // the table's first byte (its vtable offset) and length
    uint32_t vtable, vtable_size;
};

struct fb_vector {
    uint32_t at, count; // of the first element
};

void fb_init(struct flatbuffer *fb, struct slice bytes);
struct fb_table fb_root(struct flatbuffer *fb);
int64_t fb_int(const struct fb_table *t, uint32_t id, uint32_t width, int64_t absent); // width 1, 2, 4, 8; sign-extended
bool fb_sub(const struct fb_table *t, uint32_t id, struct fb_table *out);               // false when absent or failed
struct fb_vector fb_vector(const struct fb_table *t, uint32_t id, uint32_t element_size); // count 0 when absent
struct fb_table fb_vector_table(const struct fb_table *t, struct fb_vector v, uint32_t i);  // of a vector of tables
const char *fb_string(const struct fb_table *t, uint32_t id, uint32_t *out_size);           // NULL when absent or failed; not terminated
int64_t fb_i64_at(const struct flatbuffer *fb, uint32_t at); // inside a vector that was checked

#endif
