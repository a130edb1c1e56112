// SPDX-License-Identifier: Apache-2.0
// A sorted array of keys under one lock. A request takes effect inside submit and completes on the next turn of its shard.
#include "object/object_memory.h"

#include "base/crc32c.h"
#include "base/mem.h"
#include "object/object_internal.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>

struct entry {
    char *key;
    struct slice data;
};

struct memory_store {
    struct object_store store;
    pthread_mutex_t lock; // guards the rest; nothing is called while it is held
    struct entry *entries; // keys ascend
    size_t count, capacity;
    bool sink;
};

static struct memory_store *memory_of(struct object_store *store) { return container_of(store, struct memory_store, store); }

// Where key is, or where it would be.
static size_t find(struct memory_store *m, const char *key, bool *found) {
    size_t begin = 0, end = m->count;
    *found = false;
    while (begin < end) {
        size_t middle = begin + (end - begin) / 2;
        int order = strcmp(m->entries[middle].key, key);
        if (order == 0) {
            *found = true;
            return middle;
        }
        if (order < 0) begin = middle + 1;
        else end = middle;
    }
    return begin;
}

static void insert(struct memory_store *m, size_t at, const char *key, struct slice take_data) {
    if (m->count == m->capacity) {
        m->capacity = m->capacity ? m->capacity * 2 : 64;
        m->entries = mem_realloc(m->entries, m->capacity * sizeof *m->entries);
    }
    memmove(m->entries + at + 1, m->entries + at, (m->count - at) * sizeof *m->entries);
    m->entries[at] = (struct entry){mem_strdup(key), take_data};
    m->count++;
}

static void erase(struct memory_store *m, size_t at) {
    mem_free(m->entries[at].key);
    slice_unref(&m->entries[at].data);
    m->count--;
    memmove(m->entries + at, m->entries + at + 1, (m->count - at) * sizeof *m->entries);
}

// Always a copy: what is stored must not depend on what its sender does with its buffers afterwards.
static struct slice join_copy(const struct slices *body) {
    uint8_t *at;
    struct slice data = slice_new(body->bytes, &at);
    for (uint32_t i = 0; i < body->count; i++) {
        if (body->items[i].size == 0) continue;
        memcpy(at, body->items[i].data, body->items[i].size);
        at += body->items[i].size;
    }
    return data;
}

static void put(struct memory_store *m, struct object_request *r) {
    if (m->sink) {
        object_finish(r);
        return;
    }
    if (crc32c_slices(0, &r->body) != r->body_crc32c) {
        object_fail(r, MINK_CORRUPT, "BODY_CHECKSUM", "the body of %zu bytes does not have the CRC32C it was sent with", r->body.bytes);
        return;
    }
    struct slice data = join_copy(&r->body);
    pthread_mutex_lock(&m->lock);
    bool found;
    size_t at = find(m, r->key, &found);
    if (!found) {
        insert(m, at, r->key, data);
    } else if (!r->if_absent) {
        struct slice old = m->entries[at].data;
        m->entries[at].data = data;
        slice_unref(&old);
    }
    pthread_mutex_unlock(&m->lock);
    if (found && r->if_absent) {
        slice_unref(&data);
        object_fail(r, MINK_EXISTS, "OBJECT_EXISTS", "the key exists");
        return;
    }
    object_finish(r);
}

static void get(struct memory_store *m, struct object_request *r) {
    pthread_mutex_lock(&m->lock);
    bool found;
    size_t at = find(m, r->key, &found);
    struct slice data = found ? slice_ref(m->entries[at].data) : slice_empty();
    pthread_mutex_unlock(&m->lock);
    if (!found) {
        object_fail(r, MINK_NOT_FOUND, "OBJECT_NOT_FOUND", "no such object");
        return;
    }
    r->object_size = data.size;
    uint64_t offset = 0, size = 0;
    bool inside = r->op == OBJECT_HEAD || object_get_range(r, data.size, &offset, &size);
    if (r->op == OBJECT_GET && inside) {
        if (offset % SLICE_ALIGN == 0) r->data = slice_sub(data, offset, size);
        else r->data = slice_copy(data.data + offset, size); // results are aligned
    }
    slice_unref(&data);
    if (inside) object_finish(r);
    else object_fail(r, MINK_INVALID, "OBJECT_RANGE", "offset %" PRIu64 " is outside the object of %" PRIu64 " bytes", r->offset, r->object_size);
}

static void list(struct memory_store *m, struct object_request *r) {
    pthread_mutex_lock(&m->lock);
    bool found;
    size_t at = find(m, strcmp(r->start_after, r->key) > 0 ? r->start_after : r->key, &found);
    size_t prefix_size = strlen(r->key);
    for (; at < m->count && strncmp(m->entries[at].key, r->key, prefix_size) == 0; at++)
        if (object_list_wants(r, m->entries[at].key) && !object_list_add(r, m->entries[at].key, m->entries[at].data.size)) break;
    pthread_mutex_unlock(&m->lock);
    object_finish(r);
}

static void remove_keys(struct memory_store *m, struct object_request *r) {
    pthread_mutex_lock(&m->lock);
    for (uint32_t i = 0; i < r->key_count; i++) {
        bool found;
        size_t at = find(m, r->keys[i], &found);
        if (found) erase(m, at);
    }
    pthread_mutex_unlock(&m->lock);
    object_finish(r);
}

static void memory_submit(struct object_store *store, struct object_request *r) {
    struct memory_store *m = memory_of(store);
    switch (r->op) {
    case OBJECT_PUT: put(m, r); break;
    case OBJECT_GET:
    case OBJECT_HEAD: get(m, r); break;
    case OBJECT_LIST: list(m, r); break;
    case OBJECT_REMOVE: remove_keys(m, r); break;
    }
}

static void memory_close(struct object_store *store) {
    struct memory_store *m = memory_of(store);
    for (size_t i = 0; i < m->count; i++) {
        mem_free(m->entries[i].key);
        slice_unref(&m->entries[i].data);
    }
    mem_free(m->entries);
    pthread_mutex_destroy(&m->lock);
    mem_free(m);
}

static const struct object_store_ops memory_ops = {memory_submit, memory_close};

struct object_store *object_memory_new(void) {
    struct memory_store *m = mem_new(struct memory_store);
    m->store = (struct object_store){.ops = &memory_ops, .name = "memory"};
    pthread_mutex_init(&m->lock, NULL);
    return &m->store;
}

void object_memory_visit(struct object_store *store, bool (*visit)(void *ctx, const char *key, struct slice data), void *ctx) {
    struct memory_store *m = memory_of(store);
    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < m->count; i++)
        if (!visit(ctx, m->entries[i].key, m->entries[i].data)) break;
    pthread_mutex_unlock(&m->lock);
}

struct slice object_memory_find(struct object_store *store, const char *key) {
    struct memory_store *m = memory_of(store);
    pthread_mutex_lock(&m->lock);
    bool found;
    size_t at = find(m, key, &found);
    struct slice data = found ? slice_ref(m->entries[at].data) : slice_empty();
    pthread_mutex_unlock(&m->lock);
    return data;
}

void object_memory_poke(struct object_store *store, const char *key, struct slice data) {
    struct memory_store *m = memory_of(store);
    pthread_mutex_lock(&m->lock);
    bool found;
    size_t at = find(m, key, &found);
    if (found) erase(m, at);
    if (data.data) insert(m, at, key, slice_copy(data.data, data.size));
    pthread_mutex_unlock(&m->lock);
}

void object_memory_set_sink(struct object_store *store, bool sink) { memory_of(store)->sink = sink; }
