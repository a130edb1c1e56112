// SPDX-License-Identifier: Apache-2.0
#include "object/object.h"

#include "base/mem.h"
#include "base/metrics.h"
#include "object/object_internal.h"

#include <stdio.h>
#include <string.h>

static struct metric_counter put_count = METRIC_COUNTER("mink_store_puts_total", "PUT requests to the object store");
static struct metric_counter get_count = METRIC_COUNTER("mink_store_gets_total", "GET requests to the object store");
static struct metric_counter head_count = METRIC_COUNTER("mink_store_heads_total", "HEAD requests to the object store");
static struct metric_counter list_count = METRIC_COUNTER("mink_store_lists_total", "LIST requests to the object store");
static struct metric_counter remove_count = METRIC_COUNTER("mink_store_deletes_total", "DELETE requests to the object store");
static struct metric_counter bytes_put = METRIC_COUNTER("mink_store_put_bytes_total", "bytes sent to the object store");
static struct metric_counter bytes_got = METRIC_COUNTER("mink_store_get_bytes_total", "bytes read from the object store");

void object_counts_now(struct object_counts *out) {
    *out = (struct object_counts){put_count.value, get_count.value, head_count.value, list_count.value, remove_count.value, bytes_put.value, bytes_got.value};
}

static void prepare(struct object_request *r, struct shard *shard, enum object_op op, const char *key, enum object_priority priority, void (*on_done)(struct object_request *)) {
    *r = (struct object_request){.shard = shard, .op = op, .priority = priority, .on_done = on_done};
    mink_assert(strlen(key) < sizeof r->key);
    snprintf(r->key, sizeof r->key, "%s", key);
}

void object_put(struct object_store *store, struct object_request *r, struct shard *shard, const char *key, const struct slices *body, uint32_t body_crc32c, bool if_absent, enum object_priority priority, void (*on_done)(struct object_request *)) {
    prepare(r, shard, OBJECT_PUT, key, priority, on_done);
    for (uint32_t i = 0; i < body->count; i++) slices_take(&r->body, slice_ref(body->items[i]));
    r->body_crc32c = body_crc32c;
    r->if_absent = if_absent;
    metric_add(&put_count, 1);
    metric_add(&bytes_put, body->bytes);
    store->ops->submit(store, r);
}

void object_get(struct object_store *store, struct object_request *r, struct shard *shard, const char *key, uint64_t offset, uint64_t size, enum object_priority priority, void (*on_done)(struct object_request *)) {
    prepare(r, shard, OBJECT_GET, key, priority, on_done);
    r->offset = offset;
    r->size = size;
    metric_add(&get_count, 1);
    store->ops->submit(store, r);
}

void object_get_tail(struct object_store *store, struct object_request *r, struct shard *shard, const char *key, uint64_t size, enum object_priority priority, void (*on_done)(struct object_request *)) {
    prepare(r, shard, OBJECT_GET, key, priority, on_done);
    r->size = size;
    r->from_end = true;
    metric_add(&get_count, 1);
    store->ops->submit(store, r);
}

void object_head(struct object_store *store, struct object_request *r, struct shard *shard, const char *key, enum object_priority priority, void (*on_done)(struct object_request *)) {
    prepare(r, shard, OBJECT_HEAD, key, priority, on_done);
    metric_add(&head_count, 1);
    store->ops->submit(store, r);
}

void object_list(struct object_store *store, struct object_request *r, struct shard *shard, const char *prefix, const char *start_after, uint32_t list_max, enum object_priority priority, void (*on_done)(struct object_request *)) {
    prepare(r, shard, OBJECT_LIST, prefix, priority, on_done);
    snprintf(r->start_after, sizeof r->start_after, "%s", start_after ? start_after : "");
    r->list_max = list_max;
    metric_add(&list_count, 1);
    store->ops->submit(store, r);
}

void object_remove(struct object_store *store, struct object_request *r, struct shard *shard, const char *const *keys, uint32_t key_count, void (*on_done)(struct object_request *)) {
    prepare(r, shard, OBJECT_REMOVE, "", OBJECT_DELETE, on_done);
    r->keys = keys;
    r->key_count = key_count;
    metric_add(&remove_count, 1);
    store->ops->submit(store, r);
}

void object_entries_free(struct object_entry *entries, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) mem_free(entries[i].key);
    mem_free(entries);
}

void object_store_close(struct object_store *store) { store->ops->close(store); }

static void deliver(struct task *task) {
    struct object_request *r = container_of(task, struct object_request, task);
    if (r->op == OBJECT_GET && r->code == MINK_OK) metric_add(&bytes_got, r->data.size);
    r->on_done(r);
}

void object_complete(struct object_request *r) {
    slices_deinit(&r->body);
    r->task.run = deliver;
    shard_post(r->shard, &r->task);
}

bool object_clip(struct object_request *r) {
    uint64_t offset = r->offset, size = r->size;
    if (r->from_end) {
        size = size < r->object_size ? size : r->object_size;
        offset = r->object_size - size;
    } else if (offset > r->object_size || (size != 0 && size > r->object_size - offset)) {
        r->code = error_set(&r->error, MINK_OUT_OF_RANGE, "RANGE", "get %s: bytes %llu to %llu of an object of %llu", r->key, (unsigned long long)offset, (unsigned long long)(offset + size), (unsigned long long)r->object_size);
        return false;
    } else if (size == 0) {
        size = r->object_size - offset;
    }
    r->offset = offset;
    r->size = size;
    return true;
}

bool object_key_valid(const char *key, bool prefix) {
    if (key[0] == '/' || (!prefix && key[0] == 0)) return false;
    for (const char *at = key; *at; at++) {
        if ((unsigned char)*at <= 0x20 || (unsigned char)*at >= 0x7f || *at == '\\') return false;
        bool part_begins = at == key || at[-1] == '/';
        if (part_begins && *at == '/') return false;
        if (part_begins && *at == '.') return false; // no ".", "..", nor hidden names: those are the directory's own
    }
    return prefix || key[strlen(key) - 1] != '/';
}
