// SPDX-License-Identifier: Apache-2.0
// Helpers of the tests of meta: a catalog with what was applied to it, and short ways to make commands.
#ifndef MINK_TESTS_META_TESTING_H
#define MINK_TESTS_META_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/json.h"
#include "base/mem.h"
#include "meta/meta.h"

#include <stdio.h>
#include <string.h>

struct testing {
    struct catalog *catalog;
    uint64_t seq;
    struct slices log; // every command applied
    struct command_result result; // of the last; epochs freed, first ones kept here
    uint32_t epochs[16];
};

static inline void testing_init(struct testing *t) { *t = (struct testing){.catalog = catalog_new()}; }
static inline void testing_deinit(struct testing *t) {
    catalog_free(t->catalog);
    slices_deinit(&t->log);
}

// Applies and gives the command's own answer.
static inline enum mink_code run(struct testing *t, struct command *take_command) {
    struct error e = {0};
    struct slice encoded = command_encode(take_command);
    command_free(take_command);
    enum mink_code code = catalog_apply(t->catalog, t->seq + 1, encoded, &t->result, &e);
    if (code != MINK_OK) fail_msg("command %llu: %s", (unsigned long long)t->seq + 1, e.message);
    t->seq++;
    slices_take(&t->log, encoded);
    for (uint32_t i = 0; i < t->result.epoch_count && i < 16; i++) t->epochs[i] = t->result.epochs[i];
    mem_free(t->result.epochs);
    t->result.epochs = NULL;
    assert_int_equal(t->result.seq, t->seq);
    assert_int_equal(t->result.code, t->result.code == MINK_OK ? MINK_OK : t->result.error.code);
    return t->result.code;
}

#define assert_ok(t, command)                                                                  \
    do {                                                                                       \
        if (run((t), (command)) != MINK_OK) fail_msg("refused: %s", (t)->result.error.message); \
    } while (0)
#define assert_refused(t, command, code_, reason_)              \
    do {                                                        \
        assert_int_equal(run((t), (command)), (code_));         \
        assert_string_equal((t)->result.error.reason, (reason_)); \
    } while (0)
#define assert_text(t, text_) assert_string_equal((t)->result.error.message, (text_))

static inline struct table_def *make_def(const char *json) {
    struct json *j = NULL;
    struct table_def *def = NULL;
    struct error e = {0};
    struct table_defaults defaults = {.bucket_num = 3};
    if (json_parse(json, strlen(json), &j, &e) != MINK_OK || table_def_from_json(j, &defaults, &def, &e) != MINK_OK) fail_msg("%s: %s", json, e.message);
    json_free(j);
    return def;
}

// database.name with columns id BIGINT, day STRING.
static inline struct command *create_table(const char *qualified, uint32_t buckets, bool partitioned, bool if_not_exists) {
    char *json = mem_printf("{\"v\":1,\"table\":\"%s\",\"columns\":[{\"name\":\"id\",\"type\":\"BIGINT\"},{\"name\":\"day\",\"type\":\"STRING\"}]%s,\"options\":{\"bucket.num\":\"%u\"}}", qualified, partitioned ? ",\"partition_by\":[\"day\"]" : "", buckets);
    struct table_def *def = make_def(json);
    struct command *c = command_create_table(def, if_not_exists);
    table_def_unref(def);
    mem_free(json);
    return c;
}

// A database "d" and a table d.t of so many buckets: streams 1, 2, …
static inline void with_streams(struct testing *t, uint32_t buckets) {
    assert_ok(t, command_create_database("d", "", false));
    assert_ok(t, create_table("d.t", buckets, false, false));
}

static inline uint64_t register_one(struct testing *t, uint8_t tag) {
    uint8_t nonce[16] = {tag};
    assert_ok(t, command_register_incarnation(nonce, "host:1", "rack"));
    return t->result.id;
}

static inline struct catalog_object_id set_id(uint64_t incarnation, uint64_t number) { return (struct catalog_object_id){OBJECT_KIND_SET, incarnation, number}; }
static inline struct catalog_object_id wal_id(uint64_t incarnation, uint64_t seq) { return (struct catalog_object_id){OBJECT_KIND_WAL, incarnation, seq}; }

static inline struct command *commit1(uint64_t incarnation, uint64_t wal_from, uint64_t wal_upto, struct catalog_object_id id, struct command_range *ranges, uint32_t count) {
    struct command_object o = {id, 1000, 100, ranges, count};
    return command_commit_objects(incarnation, wal_from, wal_upto, &o, 1, NULL, 0);
}

static inline struct catalog_stream stream_of(struct testing *t, uint64_t id) {
    struct catalog_stream s;
    if (!catalog_find_stream(t->catalog, id, &s)) fail_msg("stream %llu is gone", (unsigned long long)id);
    catalog_stream_deinit(&s); // numbers stay
    return s;
}

static inline bool slices_equal(struct slice a, struct slice b) { return a.size == b.size && memcmp(a.data, b.data, a.size) == 0; }

// Replays the whole log, and from a checkpoint after every `every` commands: all states are the same bytes.
static inline void assert_replays(struct testing *t, uint32_t every) {
    struct slice want = catalog_save(t->catalog);
    struct catalog *whole = catalog_new(), *resumed = catalog_new();
    struct command_result result;
    struct error e = {0};
    for (uint32_t i = 0; i < t->log.count; i++) {
        if (catalog_apply(whole, i + 1, t->log.items[i], &result, &e) != MINK_OK) fail_msg("%s", e.message);
        mem_free(result.epochs);
        if (i % every == 0) {
            struct slice state = catalog_save(whole);
            if (catalog_load(resumed, state, &e) != MINK_OK) fail_msg("checkpoint %u: %s", i + 1, e.message);
            struct slice again = catalog_save(resumed);
            assert_true(slices_equal(state, again));
            slice_unref(&again);
            slice_unref(&state);
        } else {
            if (catalog_apply(resumed, i + 1, t->log.items[i], &result, &e) != MINK_OK) fail_msg("%s", e.message);
            mem_free(result.epochs);
        }
    }
    struct slice a = catalog_save(whole), b = catalog_save(resumed);
    assert_true(slices_equal(want, a));
    assert_true(slices_equal(want, b));
    slice_unref(&want);
    slice_unref(&a);
    slice_unref(&b);
    catalog_free(whole);
    catalog_free(resumed);
}

#endif
