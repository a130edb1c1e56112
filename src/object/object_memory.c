// SPDX-License-Identifier: Apache-2.0
// Objects in a sorted array of (key, bytes). Operations take effect inside submit, under the lock; completion is a task of the asking
// shard, so a caller never sees it before its call has returned.
#include "object/object_memory.h"

#include "base/crc32c.h"
#include "base/mem.h"
#include "object/object_internal.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

struct entry { char *key; struct slice data; };

struct memory_store {
    struct object_store store;
    pthread_mutex_t lock; // guards all below
    struct entry *entries;
    size_t count, capacity;
    bool sink;
};

// The first entry with key >= `key`.
static size_t lower_bound(const struct memory_store *m, const char *key) {
    size_t low = 0, high = m->count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (strcmp(m->entries[mid].key, key) < 0) low = mid + 1;
        else high = mid;
    }
    return low;
}

static struct entry *find(const struct memory_store *m, const char *key) {
    size_t at = lower_bound(m, key);
    return at < m->count && strcmp(m->entries[at].key, key) == 0 ? &m->entries[at] : NULL;
}

static void set(struct memory_store *m, const char *key, struct slice take_data) {
    struct entry *existing = find(m, key);
    if (existing) {
        slice_unref(&existing->data);
        existing->data = take_data;
        return;
    }
    if (m->count == m->capacity) {
        m->capacity = m->capacity ? m->capacity * 2 : 64;
        m->entries = mem_realloc(m->entries, m->capacity * sizeof *m->entries);
    }
    size_t at = lower_bound(m, key);
    memmove(m->entries + at + 1, m->entries + at, (m->count - at) * sizeof *m->entries);
    m->entries[at] = (struct entry){mem_strdup(key), take_data};
    m->count++;
}

static void unset(struct memory_store *m, const char *key) {
    struct entry *e = find(m, key);
    if (!e) return;
    mem_free(e->key);
    slice_unref(&e->data);
    m->count--;
    memmove(e, e + 1, (size_t)(m->entries + m->count - e) * sizeof *e);
}

static void put(struct memory_store *m, struct object_request *r) {
    if (r->if_absent && find(m, r->key)) {
        r->code = error_set(&r->error, MINK_EXISTS, "EXISTS", "put %s: exists", r->key);
        return;
    }
    if (crc32c_slices(0, &r->body) != r->body_crc32c) { // as a store that checks the checksum header would
        r->code = error_set(&r->error, MINK_INVALID, "BAD_DIGEST", "put %s: the body does not match its checksum", r->key);
        return;
    }
    uint8_t *data;
    struct slice copy = slice_new(r->body.bytes, &data);
    for (uint32_t i = 0; i < r->body.count; i++) {
        if (r->body.items[i].size) memcpy(data, r->body.items[i].data, r->body.items[i].size);
        data += r->body.items[i].size;
    }
    set(m, r->key, copy);
}

static void get(struct memory_store *m, struct object_request *r, bool with_data) {
    struct entry *e = find(m, r->key);
    if (!e) {
        r->code = error_set(&r->error, MINK_NOT_FOUND, "NO_SUCH_OBJECT", "get %s: no such object", r->key);
        return;
    }
    r->object_size = e->data.size;
    if (!with_data || !object_clip(r)) return;
    // A copy: readers want alignment, and the stored bytes must not be reachable by a reader's mistake.
    r->data = slice_copy(e->data.data ? e->data.data + r->offset : NULL, r->size);
}

static void list(struct memory_store *m, struct object_request *r) {
    size_t prefix = strlen(r->key), at = lower_bound(m, strcmp(r->start_after, r->key) > 0 ? r->start_after : r->key);
    uint32_t capacity = 0;
    for (; at < m->count && strncmp(m->entries[at].key, r->key, prefix) == 0; at++) {
        if (strcmp(m->entries[at].key, r->start_after) <= 0) continue;
        if (r->entry_count == r->list_max) {
            r->list_more = true;
            break;
        }
        if (r->entry_count == capacity) {
            capacity = capacity ? capacity * 2 : 16;
            r->entries = mem_realloc(r->entries, capacity * sizeof *r->entries);
        }
        r->entries[r->entry_count++] = (struct object_entry){mem_strdup(m->entries[at].key), m->entries[at].data.size};
    }
}

static void memory_submit(struct object_store *base, struct object_request *r) {
    struct memory_store *m = container_of(base, struct memory_store, store);
    r->code = MINK_OK;
    if (r->op != OBJECT_REMOVE && !object_key_valid(r->key, r->op == OBJECT_LIST)) {
        r->code = error_set(&r->error, MINK_INVALID, "BAD_KEY", "\"%s\" is not an object key", r->key);
        object_complete(r);
        return;
    }
    pthread_mutex_lock(&m->lock);
    switch (r->op) {
    case OBJECT_PUT:
        if (!m->sink || r->body.bytes < 4096) put(m, r);
        break;
    case OBJECT_GET: get(m, r, true); break;
    case OBJECT_HEAD: get(m, r, false); break;
    case OBJECT_LIST: list(m, r); break;
    case OBJECT_REMOVE:
        for (uint32_t i = 0; i < r->key_count; i++) unset(m, r->keys[i]);
        break;
    }
    pthread_mutex_unlock(&m->lock);
    object_complete(r);
}

static void memory_close(struct object_store *base) {
    struct memory_store *m = container_of(base, struct memory_store, store);
    while (m->count) unset(m, m->entries[m->count - 1].key);
    mem_free(m->entries);
    pthread_mutex_destroy(&m->lock);
    mem_free(m);
}

static const struct object_store_ops memory_ops = {memory_submit, memory_close};

struct object_store *object_memory_new(void) {
    struct memory_store *m = mem_new(struct memory_store);
    m->store.ops = &memory_ops;
    snprintf(m->store.name, sizeof m->store.name, "memory");
    pthread_mutex_init(&m->lock, NULL);
    return &m->store;
}

void object_memory_visit(struct object_store *base, bool (*visit)(void *ctx, const char *key, struct slice data), void *ctx) {
    struct memory_store *m = container_of(base, struct memory_store, store);
    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < m->count && visit(ctx, m->entries[i].key, m->entries[i].data); i++) continue;
    pthread_mutex_unlock(&m->lock);
}

void object_memory_poke(struct object_store *base, const char *key, struct slice data) {
    struct memory_store *m = container_of(base, struct memory_store, store);
    pthread_mutex_lock(&m->lock);
    if (data.data) set(m, key, slice_copy(data.data, data.size));
    else unset(m, key);
    pthread_mutex_unlock(&m->lock);
}

void object_memory_set_sink(struct object_store *base, bool sink) { container_of(base, struct memory_store, store)->sink = sink; }
