// SPDX-License-Identifier: Apache-2.0
// object_testing.h: requests that wait, and the promises every backend keeps.
#ifndef MINK_TESTS_OBJECT_TESTING_H
#define MINK_TESTS_OBJECT_TESTING_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/crc32c.h"
#include "base/executor.h"
#include "base/mem.h"
#include "object/object.h"

#include <semaphore.h>
#include <stdio.h>
#include <string.h>

struct waited {
    struct object_request request;
    sem_t done;
};

static inline void waited_done(struct object_request *r) {
    mink_assert(shard_is_current(r->shard));
    sem_post(&container_of(r, struct waited, request)->done);
}
static inline void waited_init(struct waited *w) { sem_init(&w->done, 0, 0); }
static inline enum mink_code waited_wait(struct waited *w) {
    while (sem_wait(&w->done)) {}
    return w->request.code;
}

static inline void put_start(struct object_store *store, struct shard *s, struct waited *w, const char *key, const void *bytes, size_t size, enum object_priority priority) {
    waited_init(w);
    struct slices body = {0};
    size_t half = size / 3; // several slices, one of them empty
    slices_take(&body, slice_copy(bytes, half));
    slices_take(&body, slice_empty());
    slices_take(&body, slice_copy((const char *)bytes + half, size - half));
    object_put(store, &w->request, s, key, &body, crc32c(bytes, size), true, priority, waited_done);
    slices_deinit(&body);
}

static inline enum mink_code put_text(struct object_store *store, struct shard *s, const char *key, const char *text) {
    struct waited w;
    put_start(store, s, &w, key, text, strlen(text), OBJECT_WAL_PUT);
    return waited_wait(&w);
}

static inline enum mink_code put_over(struct object_store *store, struct shard *s, const char *key, const char *text) {
    struct waited w;
    waited_init(&w);
    struct slices body = {0};
    slices_take(&body, slice_borrow(text, strlen(text)));
    object_put(store, &w.request, s, key, &body, crc32c(text, strlen(text)), false, OBJECT_COMMIT, waited_done);
    slices_deinit(&body);
    return waited_wait(&w);
}

static inline enum mink_code get_range(struct object_store *store, struct shard *s, struct waited *w, const char *key, uint64_t offset, uint64_t size) {
    waited_init(w);
    object_get(store, &w->request, s, key, offset, size, OBJECT_LIVE_READ, waited_done);
    return waited_wait(w);
}

static inline void assert_object(struct object_store *store, struct shard *s, const char *key, const char *text) {
    struct waited w;
    assert_int_equal(get_range(store, s, &w, key, 0, 0), MINK_OK);
    assert_int_equal(w.request.data.size, strlen(text));
    assert_memory_equal(w.request.data.data, text, strlen(text));
    assert_int_equal((uintptr_t)w.request.data.data % SLICE_ALIGN, 0);
    slice_unref(&w.request.data);
}

static inline enum mink_code list_keys(struct object_store *store, struct shard *s, struct waited *w, const char *prefix, const char *start_after, uint32_t max) {
    waited_init(w);
    object_list(store, &w->request, s, prefix, start_after, max, OBJECT_TAKEOVER, waited_done);
    return waited_wait(w);
}

static inline enum mink_code remove_keys(struct object_store *store, struct shard *s, const char *const *keys, uint32_t count) {
    struct waited w;
    waited_init(&w);
    object_remove(store, &w.request, s, keys, count, waited_done);
    return waited_wait(&w);
}

// ---- promises

static inline void check_create_once(struct object_store *store, struct shard *s) {
    assert_int_equal(put_text(store, s, "a/b/one", "first bytes"), MINK_OK);
    assert_int_equal(put_text(store, s, "a/b/one", "others"), MINK_EXISTS);
    assert_object(store, s, "a/b/one", "first bytes");
    assert_int_equal(put_over(store, s, "a/b/one", "replaced"), MINK_OK);
    assert_object(store, s, "a/b/one", "replaced");
    assert_int_equal(put_text(store, s, "empty", ""), MINK_OK);
    assert_object(store, s, "empty", "");
}

static inline void check_ranges(struct object_store *store, struct shard *s) {
    assert_int_equal(put_text(store, s, "range", "0123456789"), MINK_OK);
    struct { uint64_t offset, size; const char *text; } cases[] = {{0, 0, "0123456789"}, {3, 4, "3456"}, {3, 0, "3456789"}, {8, 100, "89"}, {10, 0, ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct waited w;
        assert_int_equal(get_range(store, s, &w, "range", cases[i].offset, cases[i].size), MINK_OK);
        assert_int_equal(w.request.data.size, strlen(cases[i].text));
        assert_memory_equal(w.request.data.data, cases[i].text, strlen(cases[i].text));
        assert_int_equal((uintptr_t)w.request.data.data % SLICE_ALIGN, 0);
        assert_int_equal(w.request.object_size, 10);
        slice_unref(&w.request.data);
    }
    struct waited w;
    assert_int_equal(get_range(store, s, &w, "range", 11, 0), MINK_INVALID);
    assert_string_equal(w.request.error.reason, "OBJECT_RANGE");
    assert_string_equal(w.request.error.message, "get range: offset 11 is outside the object of 10 bytes");
    assert_int_equal(get_range(store, s, &w, "range", 10, 1), MINK_INVALID);
    const uint64_t tails[] = {3, 10, 65536};
    for (int i = 0; i < 3; i++) {
        waited_init(&w);
        object_get_tail(store, &w.request, s, "range", tails[i], OBJECT_TAKEOVER, waited_done);
        assert_int_equal(waited_wait(&w), MINK_OK);
        assert_int_equal(w.request.data.size, tails[i] < 10 ? tails[i] : 10);
        assert_int_equal(w.request.data.data[w.request.data.size - 1], '9');
        assert_int_equal(w.request.object_size, 10);
        slice_unref(&w.request.data);
    }
    waited_init(&w);
    object_head(store, &w.request, s, "range", OBJECT_COMMIT, waited_done);
    assert_int_equal(waited_wait(&w), MINK_OK);
    assert_int_equal(w.request.object_size, 10);
    assert_int_equal(get_range(store, s, &w, "range/below", 0, 0), MINK_NOT_FOUND);
    assert_int_equal(get_range(store, s, &w, "nothing", 0, 0), MINK_NOT_FOUND);
    assert_string_equal(w.request.error.message, "get nothing: no such object");
    waited_init(&w);
    object_head(store, &w.request, s, "nothing", OBJECT_COMMIT, waited_done);
    assert_int_equal(waited_wait(&w), MINK_NOT_FOUND);
}

// Order is that of the bytes of whole keys: '-' before '/' before '0', which a walk folder by folder gets wrong.
static inline void check_lists(struct object_store *store, struct shard *s) {
    const char *const keys[] = {"l/a-x", "l/a/1", "l/a/2", "l/a/b/3", "l/a0", "l/b", "m/1"};
    for (int i = 6; i >= 0; i--) assert_int_equal(put_text(store, s, keys[i], "xyz"), MINK_OK);
    for (uint32_t page = 1; page <= 7; page++) {
        char after[OBJECT_KEY_SIZE_MAX] = "";
        uint32_t seen = 0;
        for (bool more = true; more;) {
            struct waited w;
            assert_int_equal(list_keys(store, s, &w, "l/", after, page), MINK_OK);
            for (uint32_t i = 0; i < w.request.entry_count; i++) {
                assert_string_equal(w.request.entries[i].key, keys[seen++]);
                assert_int_equal(w.request.entries[i].size, 3);
                snprintf(after, sizeof after, "%s", w.request.entries[i].key);
            }
            assert_true(w.request.entry_count == page || !w.request.list_more);
            more = w.request.list_more;
            object_entries_free(w.request.entries, w.request.entry_count);
        }
        assert_int_equal(seen, 6);
    }
    struct { const char *prefix, *after; uint32_t count; } cases[] = {{"l/a", "", 5}, {"l/a/", "", 3}, {"l/a/b", "", 1}, {"", "l/b", 1}, {"l/a", "l/a/2", 2}, {"l/a", "l/a/b", 2}, {"l/z", "", 0}, {"no/such/", "", 0}, {"m/", "z", 0}, {"l/", "a", 6}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct waited w;
        assert_int_equal(list_keys(store, s, &w, cases[i].prefix, cases[i].after, 0), MINK_OK);
        uint32_t count = 0; // keys that other checks made don't count
        for (uint32_t k = 0; k < w.request.entry_count; k++)
            if (w.request.entries[k].key[0] == 'l' || w.request.entries[k].key[0] == 'm') count++;
        assert_int_equal(count, cases[i].count);
        assert_false(w.request.list_more);
        object_entries_free(w.request.entries, w.request.entry_count);
    }
}

static inline void check_removes(struct object_store *store, struct shard *s) {
    assert_int_equal(put_text(store, s, "r/1", "x"), MINK_OK);
    assert_int_equal(put_text(store, s, "r/2", "x"), MINK_OK);
    const char *const keys[] = {"r/1", "r/none", "nowhere/at/all", "r/2"};
    assert_int_equal(remove_keys(store, s, keys, 4), MINK_OK);
    assert_int_equal(remove_keys(store, s, keys, 4), MINK_OK);
    assert_int_equal(remove_keys(store, s, NULL, 0), MINK_OK);
    struct waited w;
    assert_int_equal(get_range(store, s, &w, "r/2", 0, 0), MINK_NOT_FOUND);
    assert_int_equal(put_text(store, s, "r/1", "again"), MINK_OK);
    assert_object(store, s, "r/1", "again");
}

static inline void check_bad_keys(struct object_store *store, struct shard *s) {
    char big[OBJECT_KEY_SIZE_MAX + 1];
    memset(big, 'k', sizeof big - 1);
    big[sizeof big - 1] = 0;
    const char *const keys[] = {"", "/a", "a/", "a//b", "../a", "a/../b", "a/./b", ".tmp/x", "a b", "a\nb", "\xc3\xa9", big};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct waited w;
        put_start(store, s, &w, keys[i], "x", 1, OBJECT_WAL_PUT);
        assert_int_equal(waited_wait(&w), MINK_INVALID);
        assert_string_equal(w.request.error.reason, "OBJECT_KEY_INVALID");
        assert_int_equal(get_range(store, s, &w, keys[i], 0, 0), MINK_INVALID);
        const char *const two[] = {"r/1", keys[i]};
        assert_int_equal(remove_keys(store, s, two, 2), MINK_INVALID);
    }
    struct waited w;
    assert_int_equal(list_keys(store, s, &w, "../", NULL, 0), MINK_INVALID);
    assert_int_equal(get_range(store, s, &w, "a//b", 0, 0), MINK_INVALID);
    assert_string_equal(w.request.error.message, "get a//b: a key is up to 511 printable ASCII bytes of names separated by single slashes; no name begins with a dot");
}

static inline void check_body_checksum(struct object_store *store, struct shard *s) {
    struct waited w;
    waited_init(&w);
    struct slices body = {0};
    slices_take(&body, slice_borrow("bytes", 5));
    object_put(store, &w.request, s, "sum", &body, crc32c("bytes", 5) ^ 1, true, OBJECT_WAL_PUT, waited_done);
    slices_deinit(&body);
    assert_int_equal(waited_wait(&w), MINK_CORRUPT);
    assert_string_equal(w.request.error.message, "put sum: the body of 5 bytes does not have the CRC32C it was sent with");
    assert_int_equal(get_range(store, s, &w, "sum", 0, 0), MINK_NOT_FOUND);
}

static inline void check_store(struct object_store *store, struct shard *s) {
    check_create_once(store, s);
    check_ranges(store, s);
    check_lists(store, s);
    check_removes(store, s);
    check_bad_keys(store, s);
    check_body_checksum(store, s);
}
#endif
