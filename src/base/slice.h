// SPDX-License-Identifier: Apache-2.0
// slice.h: counted references to immutable bytes.
//
// What      A slice is a view of bytes plus a reference on whoever owns them. Bytes never change once a slice of them
//           is shared. Bodies travel from socket to store and back as slices, without copies.
// Owner     Any thread: the count is atomic. A struct slice itself belongs to one thread at a time.
// Holds     owner == NULL: the bytes are static or somebody else keeps them alive (the comment there says until when).
#ifndef MINK_BASE_SLICE_H
#define MINK_BASE_SLICE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct slice_owner {
    atomic_uint refs;
    void (*release)(struct slice_owner *owner); // at zero, on any thread
};

struct slice {
    const uint8_t *data;
    size_t size;
    struct slice_owner *owner;
};

#define SLICE_ALIGN 64

static inline struct slice slice_empty(void) { return (struct slice){0}; }
// Not counted: the caller promises the bytes outlive every use.
static inline struct slice slice_borrow(const void *data, size_t size) {
    return (struct slice){(const uint8_t *)data, size, NULL};
}
struct slice slice_new(size_t size, uint8_t **out_data); // 64-byte aligned, contents undefined, one reference
struct slice slice_try_new(size_t size, uint8_t **out_data); // *out_data NULL on failure; for large sizes from outside
struct slice slice_copy(const void *data, size_t size);  // a copy
// Takes foreign memory: release(ctx) runs once, when the last reference goes, on any thread.
struct slice slice_foreign(const void *data, size_t size, void (*release)(void *ctx), void *ctx);
struct slice slice_ref(struct slice s);                  // another reference on the same bytes
void slice_unref(struct slice *s);                       // drops it and empties *s; an empty slice is fine
struct slice slice_sub(struct slice s, size_t offset, size_t size); // a new reference; asserts the bounds
struct slice slice_view(struct slice s, size_t offset, size_t size); // no reference; lives as long as s

// A growable list of slices (an iovec that owns its references).
struct slices {
    struct slice *items;
    uint32_t count, capacity;
    size_t bytes; // sum of sizes
};
void slices_take(struct slices *list, struct slice take_s); // the reference moves into the list
void slices_deinit(struct slices *list);                    // drops all references; the list is empty and usable
struct slice slices_join(const struct slices *list);        // one contiguous slice; copies unless count <= 1

#endif
