// SPDX-License-Identifier: Apache-2.0
// Byte buffers of gRPC from our slices, and views of those that arrive.
#include "base/mem.h"
#include "net/rpc_internal.h"

#include <string.h>

// Below this a slice costs more as an own piece of the write than as a copy.
#define PIECE_MIN 512

static void release_owner(void *owner) {
    rpc_tsan_acquire(owner);
    struct slice s = {.owner = owner};
    slice_unref(&s);
}

static bool is_piece(const struct slice *s) { return s->size >= PIECE_MIN && s->owner != NULL; }

// Joins the run of small slices that begins at `at`; returns the index after it.
static uint32_t join_run(struct slices *list, uint32_t at, grpc_slice *out) {
    size_t size = 0;
    uint32_t end = at;
    for (; end < list->count && !is_piece(&list->items[end]); end++) size += list->items[end].size;
    *out = grpc_slice_malloc(size);
    uint8_t *p = GRPC_SLICE_START_PTR(*out);
    for (; at < end; at++) {
        if (list->items[at].size) memcpy(p, list->items[at].data, list->items[at].size);
        p += list->items[at].size;
        slice_unref(&list->items[at]);
    }
    return end;
}

grpc_byte_buffer *rpc_buffer_take(struct slices *list) {
    grpc_slice few[48], *pieces = list->count > 48 ? mem_alloc(list->count * sizeof *pieces) : few;
    size_t count = 0;
    for (uint32_t i = 0; i < list->count;) {
        struct slice *s = &list->items[i];
        if (is_piece(s)) {
            // The slice's reference moves: gRPC releases it on any thread, possibly after the call has ended.
            rpc_tsan_release(s->owner);
            pieces[count++] = grpc_slice_new_with_user_data((void *)s->data, s->size, release_owner, s->owner);
            *s = slice_empty();
            i++;
        } else {
            i = join_run(list, i, &pieces[count++]);
        }
    }
    grpc_byte_buffer *buffer = grpc_raw_byte_buffer_create(pieces, count);
    for (size_t i = 0; i < count; i++) grpc_slice_unref(pieces[i]); // the buffer has references of its own
    if (pieces != few) mem_free(pieces);
    slices_deinit(list);
    return buffer;
}

void rpc_buffer_view(const grpc_byte_buffer *buffer, struct slices *out) {
    const grpc_slice_buffer *from = &buffer->data.raw.slice_buffer;
    *out = (struct slices){.items = mem_new_array(struct slice, from->count ? from->count : 1)};
    for (size_t i = 0; i < from->count; i++) {
        const grpc_slice *s = &from->slices[i];
        out->items[i] = slice_borrow(GRPC_SLICE_START_PTR(*s), GRPC_SLICE_LENGTH(*s));
        out->bytes += out->items[i].size;
    }
    out->count = out->capacity = (uint32_t)from->count;
}

void rpc_view_deinit(struct slices *views) {
    mem_free(views->items);
    *views = (struct slices){0};
}
