// SPDX-License-Identifier: Apache-2.0
#include "base/slice.h"

#include "base/mem.h"

#include <string.h>

// The owner sits behind the bytes, so that they start aligned.
static void release_block(struct slice_owner *owner) {
    uint8_t *base;
    memcpy(&base, owner + 1, sizeof base);
    mem_free(base);
}

struct slice slice_try_new(size_t size, uint8_t **out_data) {
    *out_data = NULL;
    if (size > SIZE_MAX / 2) return slice_empty();
    size_t owner_at = (size + 15) & ~(size_t)15;
    uint8_t *base = mem_try_alloc(owner_at + sizeof(struct slice_owner) + sizeof base, SLICE_ALIGN);
    if (base == NULL) return slice_empty();
    struct slice_owner *owner = (struct slice_owner *)(base + owner_at);
    atomic_init(&owner->refs, 1);
    owner->release = release_block;
    memcpy(owner + 1, &base, sizeof base);
    *out_data = base;
    return (struct slice){base, size, owner};
}

struct slice slice_new(size_t size, uint8_t **out_data) {
    struct slice s = slice_try_new(size, out_data);
    if (*out_data == NULL) mink_panic(__FILE__, __LINE__, "out of memory: %zu bytes", size);
    return s;
}

struct slice slice_copy(const void *data, size_t size) {
    uint8_t *copy;
    struct slice s = slice_new(size, &copy);
    if (size) memcpy(copy, data, size);
    return s;
}

struct foreign {
    struct slice_owner owner;
    void (*release)(void *ctx);
    void *ctx;
};

static void release_foreign(struct slice_owner *owner) {
    struct foreign *f = (struct foreign *)owner;
    f->release(f->ctx);
    mem_free(f);
}

struct slice slice_foreign(const void *data, size_t size, void (*release)(void *ctx), void *ctx) {
    struct foreign *f = mem_new(struct foreign);
    atomic_init(&f->owner.refs, 1);
    f->owner.release = release_foreign;
    f->release = release;
    f->ctx = ctx;
    return (struct slice){data, size, &f->owner};
}

struct slice slice_ref(struct slice s) {
    if (s.owner) atomic_fetch_add_explicit(&s.owner->refs, 1, memory_order_relaxed);
    return s;
}

void slice_unref(struct slice *s) {
    struct slice_owner *owner = s->owner;
    *s = slice_empty();
    if (owner && atomic_fetch_sub_explicit(&owner->refs, 1, memory_order_acq_rel) == 1) owner->release(owner);
}

struct slice slice_view(struct slice s, size_t offset, size_t size) {
    mink_assert(offset <= s.size && size <= s.size - offset);
    return (struct slice){s.data ? s.data + offset : NULL, size, NULL};
}

struct slice slice_sub(struct slice s, size_t offset, size_t size) {
    struct slice sub = slice_view(s, offset, size);
    sub.owner = s.owner;
    return slice_ref(sub);
}

void slices_take(struct slices *list, struct slice take_s) {
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? list->capacity * 2 : 4;
        list->items = mem_realloc(list->items, list->capacity * sizeof *list->items);
    }
    list->items[list->count++] = take_s;
    list->bytes += take_s.size;
}

void slices_deinit(struct slices *list) {
    for (uint32_t i = 0; i < list->count; i++) slice_unref(&list->items[i]);
    mem_free(list->items);
    *list = (struct slices){0};
}

struct slice slices_join(const struct slices *list) {
    if (list->count == 0) return slice_empty();
    if (list->count == 1) return slice_ref(list->items[0]);
    uint8_t *data;
    struct slice joined = slice_new(list->bytes, &data);
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->items[i].size) memcpy(data, list->items[i].data, list->items[i].size);
        data += list->items[i].size;
    }
    return joined;
}
