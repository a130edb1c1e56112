// SPDX-License-Identifier: Apache-2.0
// Rows of the command log and checkpoints as they come from the database. The first byte says which: even is a list of commands, each behind two
// bytes of size, applied to a catalog that holds something already; odd is a checkpoint, whose checksum is made right.
#include "base/crc32c.h"
#include "base/mem.h"
#include "meta/meta.h"

#include <string.h>

static uint64_t apply(struct catalog *c, uint64_t seq, struct slice command) {
    struct command_result result;
    struct error e;
    struct slice before = catalog_save(c);
    enum mink_code code = catalog_apply(c, seq, command, &result, &e);
    if (code == MINK_OK) {
        mink_assert((result.code == MINK_OK) == (result.error.code == MINK_OK));
        seq++;
    } else { // not understood, and without effect
        struct slice after = catalog_save(c);
        mink_assert(e.code == code && (code == MINK_CORRUPT || code == MINK_UNSUPPORTED));
        mink_assert(before.size == after.size && memcmp(before.data, after.data, before.size) == 0);
        slice_unref(&after);
    }
    mem_free(result.epochs);
    slice_unref(&before);
    return seq;
}

static uint64_t build(struct catalog *c, uint64_t seq, struct command *take_command) {
    struct slice encoded = command_encode(take_command);
    command_free(take_command);
    seq = apply(c, seq, encoded);
    slice_unref(&encoded);
    return seq;
}

// A table of three streams, two of them with rows; a live incarnation and a dead one.
static struct slice beginning(void) {
    static const char definition[] = "{\"v\":1,\"table\":\"d.t\",\"columns\":[{\"name\":\"id\",\"type\":\"BIGINT\"}],\"options\":{\"bucket.num\":\"3\"}}";
    struct catalog *c = catalog_new();
    struct json *j;
    struct table_def *def;
    struct error e;
    uint8_t nonce[16] = {1}, other[16] = {2};
    uint64_t seq = 1;
    mink_assert(json_parse(definition, strlen(definition), &j, &e) == MINK_OK && table_def_from_json(j, NULL, &def, &e) == MINK_OK);
    json_free(j);
    seq = build(c, seq, command_create_database("d", "", false));
    seq = build(c, seq, command_create_table(def, false));
    seq = build(c, seq, command_register_incarnation(nonce, "a:1", ""));
    seq = build(c, seq, command_register_incarnation(other, "b:1", ""));
    seq = build(c, seq, command_open_streams(1, (uint64_t[]){1, 2}, 2));
    struct command_range ranges[] = {{1, 1, 0, 10}, {2, 1, 0, 5}};
    struct command_object object = {{OBJECT_KIND_SET, 1, 1}, 100, 10, ranges, 2};
    seq = build(c, seq, command_commit_objects(1, 0, 1, &object, 1, NULL, 0));
    seq = build(c, seq, command_declare_dead(2));
    table_def_unref(def);
    struct slice state = catalog_save(c);
    catalog_free(c);
    return state;
}

static void commands(const uint8_t *data, size_t size) {
    static struct slice state;
    struct catalog *c = catalog_new(), *again = catalog_new();
    struct error e;
    if (!state.size) state = beginning();
    mink_assert(catalog_load(c, state, &e) == MINK_OK);
    uint64_t seq = catalog_position(c) + 1;
    while (size >= 2) {
        size_t one = (size_t)data[0] | (size_t)data[1] << 8;
        data += 2;
        size -= 2;
        if (one > size) one = size;
        seq = apply(c, seq, slice_borrow(data, one));
        data += one;
        size -= one;
    }
    // Whatever was applied, a checkpoint can carry the state.
    struct slice saved = catalog_save(c), second;
    mink_assert(catalog_load(again, saved, &e) == MINK_OK);
    second = catalog_save(again);
    mink_assert(saved.size == second.size && memcmp(saved.data, second.data, saved.size) == 0);
    slice_unref(&saved);
    slice_unref(&second);
    catalog_free(again);
    catalog_free(c);
}

static void checkpoint(const uint8_t *data, size_t size) {
    struct error e;
    struct catalog *c = catalog_new();
    (void)!catalog_load(c, slice_borrow(data, size), &e);
    uint8_t *copy = mem_alloc(size + 4);
    uint32_t crc = crc32c(data, size);
    if (size) memcpy(copy, data, size);
    for (int i = 0; i < 4; i++) copy[size + (size_t)i] = (uint8_t)(crc >> 8 * i);
    if (catalog_load(c, slice_borrow(copy, size + 4), &e) == MINK_OK) {
        struct slice saved = catalog_save(c);
        struct catalog_object *objects;
        uint64_t *streams;
        uint32_t count;
        struct catalog_range range[4];
        catalog_list_objects(c, false, &objects, &count);
        mem_free(objects);
        catalog_list_streams(c, UINT64_MAX, &streams, &count);
        for (uint32_t i = 0; i < count; i++) (void)catalog_ranges(c, streams[i], 0, range, 4);
        mem_free(streams);
        slice_unref(&saved);
    }
    mem_free(copy);
    catalog_free(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1) return 0;
    if (data[0] % 2) checkpoint(data + 1, size - 1);
    else commands(data + 1, size - 1);
    return 0;
}
