// SPDX-License-Identifier: Apache-2.0
#include "object/object.h"

#include "base/crc32c.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "object/object_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static struct metric_counter count_puts = METRIC_COUNTER("mink_object_puts_total", "PUT requests to the object store");
static struct metric_counter count_gets = METRIC_COUNTER("mink_object_gets_total", "GET requests to the object store");
static struct metric_counter count_heads = METRIC_COUNTER("mink_object_heads_total", "HEAD requests to the object store");
static struct metric_counter count_lists = METRIC_COUNTER("mink_object_lists_total", "LIST requests to the object store");
static struct metric_counter count_removes = METRIC_COUNTER("mink_object_removes_total", "objects asked to be deleted");
static struct metric_counter count_bytes_put = METRIC_COUNTER("mink_object_put_bytes_total", "bytes sent in PUT requests");
static struct metric_counter count_bytes_got = METRIC_COUNTER("mink_object_get_bytes_total", "bytes received from GET requests");
static struct metric_counter failures = METRIC_COUNTER("mink_object_failures_total", "requests that ended in neither success, EXISTS nor NOT_FOUND");
static struct metric_histogram put_seconds = METRIC_HISTOGRAM("mink_object_put_seconds", "time of a PUT");
static struct metric_histogram get_seconds = METRIC_HISTOGRAM("mink_object_get_seconds", "time of a GET");

static const char *const op_names[] = {"put", "get", "head", "list", "remove"};
const char *object_op_name(enum object_op op) { return op_names[op]; }

// ---- keys

// Whole relative paths of visible names: no byte that a shell, a URL or a file system reads specially, no way out of the prefix,
// and nothing that begins with a dot, which backends keep for themselves.
static bool key_valid(const char *key, bool prefix) {
    size_t size = strnlen(key, OBJECT_KEY_SIZE_MAX);
    if (size == OBJECT_KEY_SIZE_MAX) return false;
    if (size == 0) return prefix;
    for (size_t i = 0; i < size; i++) {
        if (key[i] < 0x21 || key[i] > 0x7e) return false;
        bool begins = i == 0 || key[i - 1] == '/';
        if (begins && (key[i] == '/' || key[i] == '.')) return false;
    }
    return prefix || key[size - 1] != '/';
}

// ---- completion

static void run_done(struct task *task) {
    struct object_request *r = container_of(task, struct object_request, task);
    if (!r->nested) {
        if (r->started_ns && (r->op == OBJECT_PUT || r->op == OBJECT_GET))
            metric_observe_ns(r->op == OBJECT_PUT ? &put_seconds : &get_seconds, shard_now_ns(r->shard) - r->started_ns);
        if (r->code == MINK_OK) metric_add(&count_bytes_got, r->data.size);
        else if (r->code != MINK_EXISTS && r->code != MINK_NOT_FOUND) metric_add(&failures, 1);
    }
    r->on_done(r);
}

void object_finish(struct object_request *r) {
    slices_deinit(&r->body);
    r->task.run = run_done;
    shard_post(r->shard, &r->task);
}

void object_fail(struct object_request *r, enum mink_code code, const char *reason, const char *format, ...) {
    char text[sizeof r->error.message];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    r->code = error_set(&r->error, code, reason, "%s %s: %s", object_op_name(r->op), r->key, text);
    object_finish(r);
}

static void submit(struct object_store *store, struct object_request *r, const char *key) {
    if (shard_is_current(r->shard)) r->started_ns = shard_now_ns(r->shard);
    if (!key_valid(key, r->op == OBJECT_LIST)) {
        snprintf(r->key, sizeof r->key, "%.100s", key);
        object_fail(r, MINK_INVALID, "OBJECT_KEY_INVALID",
                    "a key is up to %d printable ASCII bytes of names separated by single slashes; no name begins with a dot", OBJECT_KEY_SIZE_MAX - 1);
        return;
    }
    strncpy(r->key, key, sizeof r->key - 1);
    store->ops->submit(store, r);
}

static void fill(struct object_request *r, struct shard *shard, enum object_op op, enum object_priority priority, void (*on_done)(struct object_request *)) {
    memset(r, 0, sizeof *r);
    r->shard = shard;
    r->op = op;
    r->priority = priority;
    r->on_done = on_done;
}

// ---- the requests

void object_put(struct object_store *store, struct object_request *r, struct shard *shard, const char *key, const struct slices *body, uint32_t body_crc32c, bool if_absent, enum object_priority priority, void (*on_done)(struct object_request *)) {
    fill(r, shard, OBJECT_PUT, priority, on_done);
    for (uint32_t i = 0; i < body->count; i++) slices_take(&r->body, slice_ref(body->items[i]));
    r->body_crc32c = body_crc32c;
    r->if_absent = if_absent;
    metric_add(&count_puts, 1);
    metric_add(&count_bytes_put, body->bytes);
    submit(store, r, key);
}

void object_get(struct object_store *store, struct object_request *r, struct shard *shard, const char *key, uint64_t offset, uint64_t size, enum object_priority priority, void (*on_done)(struct object_request *)) {
    fill(r, shard, OBJECT_GET, priority, on_done);
    r->offset = offset;
    r->size = size;
    metric_add(&count_gets, 1);
    submit(store, r, key);
}

void object_get_tail(struct object_store *store, struct object_request *r, struct shard *shard, const char *key, uint64_t size, enum object_priority priority, void (*on_done)(struct object_request *)) {
    fill(r, shard, OBJECT_GET, priority, on_done);
    r->size = size;
    r->from_end = true;
    metric_add(&count_gets, 1);
    submit(store, r, key);
}

void object_head(struct object_store *store, struct object_request *r, struct shard *shard, const char *key, enum object_priority priority, void (*on_done)(struct object_request *)) {
    fill(r, shard, OBJECT_HEAD, priority, on_done);
    metric_add(&count_heads, 1);
    submit(store, r, key);
}

void object_list(struct object_store *store, struct object_request *r, struct shard *shard, const char *prefix, const char *start_after, uint32_t list_max, enum object_priority priority, void (*on_done)(struct object_request *)) {
    fill(r, shard, OBJECT_LIST, priority, on_done);
    if (start_after) snprintf(r->start_after, sizeof r->start_after, "%s", start_after);
    r->list_max = list_max ? list_max : 1000;
    metric_add(&count_lists, 1);
    submit(store, r, prefix);
}

void object_remove(struct object_store *store, struct object_request *r, struct shard *shard, const char *const *keys, uint32_t key_count, void (*on_done)(struct object_request *)) {
    fill(r, shard, OBJECT_REMOVE, OBJECT_DELETE, on_done);
    r->keys = keys;
    r->key_count = key_count;
    metric_add(&count_removes, key_count);
    for (uint32_t i = 0; i < key_count; i++) {
        if (key_valid(keys[i], false)) continue;
        submit(store, r, keys[i]); // tells what is wrong with it
        return;
    }
    if (key_count == 0) {
        object_finish(r);
        return;
    }
    submit(store, r, keys[0]);
}

void object_entries_free(struct object_entry *entries, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) mem_free(entries[i].key);
    mem_free(entries);
}

void object_store_close(struct object_store *store) { store->ops->close(store); }

void object_counts_now(struct object_counts *out) {
    out->puts = atomic_load(&count_puts.value);
    out->gets = atomic_load(&count_gets.value);
    out->heads = atomic_load(&count_heads.value);
    out->lists = atomic_load(&count_lists.value);
    out->removes = atomic_load(&count_removes.value);
    out->bytes_put = atomic_load(&count_bytes_put.value);
    out->bytes_got = atomic_load(&count_bytes_got.value);
}

// ---- what the backends share

bool object_get_range(const struct object_request *r, uint64_t object_size, uint64_t *offset, uint64_t *size) {
    if (r->from_end) {
        *size = r->size < object_size ? r->size : object_size;
        *offset = object_size - *size;
        return true;
    }
    if (r->offset > object_size || (r->offset == object_size && r->size > 0)) return false;
    *offset = r->offset;
    *size = r->size == 0 || r->size > object_size - r->offset ? object_size - r->offset : r->size;
    return true;
}

bool object_list_wants(const struct object_request *r, const char *key) {
    return strncmp(key, r->key, strlen(r->key)) == 0 && strcmp(key, r->start_after) > 0;
}

bool object_list_add(struct object_request *r, const char *key, uint64_t size) {
    if (r->entry_count == r->list_max) {
        r->list_more = true;
        return false;
    }
    if ((r->entry_count & (r->entry_count - 1)) == 0) // grows at powers of two
        r->entries = mem_realloc(r->entries, (r->entry_count ? r->entry_count * 2 : 1) * sizeof *r->entries);
    r->entries[r->entry_count++] = (struct object_entry){mem_strdup(key), size};
    return true;
}
