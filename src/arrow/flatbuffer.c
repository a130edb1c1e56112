// SPDX-License-Identifier: Apache-2.0
#include "arrow/flatbuffer.h"

#include <string.h>

#define TABLES_MAX (256u << 10)

void fb_init(struct flatbuffer *fb, struct slice bytes) {
    *fb = (struct flatbuffer){bytes.data, (uint32_t)bytes.size, TABLES_MAX, FLATBUFFER_SIZE_MAX, false};
    if (bytes.size > FLATBUFFER_SIZE_MAX) {
        fb->size = 0;
        fb->failed = true;
    }
}

static uint64_t load(struct flatbuffer *fb, uint64_t at, uint32_t width) {
    uint64_t v = 0;
    if (fb->failed || at + width > fb->size) {
        fb->failed = true;
        return 0;
    }
    memcpy(&v, fb->data + at, width); // little-endian hosts only, as the whole store is
    return v;
}

static struct fb_table table_at(struct flatbuffer *fb, uint64_t at) {
    struct fb_table t = {.fb = fb};
    int64_t vtable = (int64_t)at - (int32_t)load(fb, at, 4);
    if (fb->failed || fb->tables_left == 0 || vtable < 0) goto bad;
    uint32_t vtable_size = (uint32_t)load(fb, (uint64_t)vtable, 2), size = (uint32_t)load(fb, (uint64_t)vtable + 2, 2);
    if (fb->failed || vtable_size < 4 || size < 4 || (uint64_t)vtable + vtable_size > fb->size || at + size > fb->size) goto bad;
    fb->tables_left--;
    t.at = (uint32_t)at;
    t.size = size;
    t.vtable = (uint32_t)vtable;
    t.vtable_size = vtable_size;
    return t;
bad:
    fb->failed = true;
    return t;
}

struct fb_table fb_root(struct flatbuffer *fb) { return table_at(fb, load(fb, 0, 4)); }

// Where the field's bytes are, 0 when it is absent.
static uint32_t field(const struct fb_table *t, uint32_t id, uint32_t width) {
    uint32_t slot = 4 + 2 * id;
    if (t->fb->failed || slot + 2 > t->vtable_size) return 0;
    uint32_t offset = (uint32_t)load(t->fb, t->vtable + slot, 2);
    if (offset == 0) return 0;
    if (offset < 4 || offset + width > t->size) {
        t->fb->failed = true;
        return 0;
    }
    return t->at + offset;
}

static uint64_t follow(const struct fb_table *t, uint32_t id) {
    uint32_t at = field(t, id, 4);
    return at ? at + load(t->fb, at, 4) : 0;
}

int64_t fb_int(const struct fb_table *t, uint32_t id, uint32_t width, int64_t absent) {
    uint32_t at = field(t, id, width);
    if (at == 0) return absent;
    uint64_t v = load(t->fb, at, width);
    uint32_t shift = 64 - 8 * width;
    return (int64_t)(v << shift) >> shift;
}

bool fb_sub(const struct fb_table *t, uint32_t id, struct fb_table *out) {
    uint64_t at = follow(t, id);
    if (at == 0 || t->fb->failed) return false;
    *out = table_at(t->fb, at);
    return !t->fb->failed;
}

struct fb_vector fb_vector(const struct fb_table *t, uint32_t id, uint32_t element_size) {
    uint64_t at = follow(t, id);
    if (at == 0 || t->fb->failed) return (struct fb_vector){0};
    uint64_t count = load(t->fb, at, 4);
    if (t->fb->failed || at + 4 + count * element_size > t->fb->size) {
        t->fb->failed = true;
        return (struct fb_vector){0};
    }
    return (struct fb_vector){(uint32_t)at + 4, (uint32_t)count};
}

struct fb_table fb_vector_table(const struct fb_table *t, struct fb_vector v, uint32_t i) {
    uint64_t at = (uint64_t)v.at + 4 * (uint64_t)i;
    return table_at(t->fb, at + load(t->fb, at, 4));
}

const char *fb_string(const struct fb_table *t, uint32_t id, uint32_t *out_size) {
    *out_size = 0;
    struct fb_vector v = fb_vector(t, id, 1);
    if (v.at == 0) return NULL;
    if (v.count > t->fb->string_bytes_left) {
        t->fb->failed = true;
        return NULL;
    }
    t->fb->string_bytes_left -= v.count;
    *out_size = v.count;
    return (const char *)t->fb->data + v.at;
}

int64_t fb_i64_at(const struct flatbuffer *fb, uint32_t at) {
    int64_t v;
    memcpy(&v, fb->data + at, sizeof v);
    return v;
}
