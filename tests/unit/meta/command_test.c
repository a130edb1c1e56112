// SPDX-License-Identifier: Apache-2.0
// Commands and checkpoints as bytes: what is not understood is refused by name and changes nothing.
#include "meta_golden.h"

#include "base/crc32c.h"

static struct testing t;

static int setup(void **state) {
    testing_init(&t);
    with_streams(&t, 2);
    register_one(&t, 1);
    return 0;
}

static int teardown(void **state) {
    testing_deinit(&t);
    return 0;
}

static void assert_stops(const void *bytes, size_t size, enum mink_code code, const char *reason, const char *message) {
    struct command_result result;
    struct error e = {0};
    struct slice before = catalog_save(t.catalog);
    assert_int_equal(catalog_apply(t.catalog, t.seq + 1, slice_borrow(bytes, size), &result, &e), code);
    assert_int_equal(e.code, code);
    assert_string_equal(e.reason, reason);
    assert_string_equal(e.message, message);
    struct slice after = catalog_save(t.catalog);
    assert_true(slices_equal(before, after));
    slice_unref(&before);
    slice_unref(&after);
}

// Encoded by hand after the protobuf specification: key = field << 3 | wire type.
static void what_is_not_understood_stops_the_node(void **state) {
    static const uint8_t newer[] = {0x08, 0x02, 0xaa, 0x01, 0x02, 0x08, 0x01};              // version 2, declare_dead {1}
    static const uint8_t none[] = {0x08, 0x01};                                             // no body
    static const uint8_t other[] = {0x08, 0x01, 0x82, 0x7d, 0x00};                          // field 2000
    static const uint8_t field[] = {0x08, 0x01, 0xaa, 0x01, 0x04, 0x08, 0x01, 0x78, 0x01};  // declare_dead {1, field 15 = 1}
    // commit_objects {objects {id {kind 3, field 9 = 1}}}: an unknown field two levels down
    static const uint8_t deep[] = {0x08, 0x01, 0xc2, 0x01, 0x08, 0x22, 0x06, 0x0a, 0x04, 0x08, 0x03, 0x48, 0x01};
    static const uint8_t cut[] = {0x08, 0x01, 0xaa, 0x01, 0x09, 0x08};
    const char *unknown = "command 4 of the log is of a kind, or has a field, that this version of Mink does not know";
    assert_stops(newer, sizeof newer, MINK_UNSUPPORTED, "UNKNOWN_COMMAND", "command 4 of the log has version 2; this version of Mink knows version 1");
    assert_stops(none, sizeof none, MINK_UNSUPPORTED, "UNKNOWN_COMMAND", unknown);
    assert_stops(other, sizeof other, MINK_UNSUPPORTED, "UNKNOWN_COMMAND", unknown);
    assert_stops(field, sizeof field, MINK_UNSUPPORTED, "UNKNOWN_COMMAND", unknown);
    assert_stops(deep, sizeof deep, MINK_UNSUPPORTED, "UNKNOWN_COMMAND", unknown);
    assert_stops(cut, sizeof cut, MINK_CORRUPT, "BAD_COMMAND", "command 4 of the log is malformed (6 bytes)");
    assert_stops("", 0, MINK_UNSUPPORTED, "UNKNOWN_COMMAND", "command 4 of the log has version 0; this version of Mink knows version 1");
}

static void malformed_ranges_stop_the_node(void **state) {
    // commit_objects {objects {id {kind 3}, ranges {…}}}
    static const uint8_t no_id[] = {0x08, 0x01, 0xc2, 0x01, 0x02, 0x22, 0x00};
    static const uint8_t uneven[] = {0x08, 0x01, 0xc2, 0x01, 0x0b, 0x22, 0x09, 0x0a, 0x02, 0x08, 0x03, 0x22, 0x03, 0x0a, 0x01, 0x01}; // a stream without the rest
    static const uint8_t over[] = {0x08, 0x01, 0xc2, 0x01, 0x1d, 0x22, 0x1b, 0x0a, 0x02, 0x08, 0x03, 0x22, 0x15, 0x0a, 0x01, 0x01, 0x12, 0x01, 0x01, 0x1a, 0x0a,
                                   0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x22, 0x01, 0x01}; // from 2^64 - 1, length 1
    const char *text = "command 4 of the log: an object's id or ranges are malformed";
    assert_stops(no_id, sizeof no_id, MINK_CORRUPT, "BAD_COMMAND", text);
    assert_stops(uneven, sizeof uneven, MINK_CORRUPT, "BAD_COMMAND", text);
    assert_stops(over, sizeof over, MINK_CORRUPT, "BAD_COMMAND", text);
}

static void a_definition_that_does_not_parse_stops_the_node(void **state) {
    // create_table {definition "{\"v\":2}"}
    static const uint8_t definition[] = {0x08, 0x01, 0x62, 0x09, 0x0a, 0x07, '{', '"', 'v', '"', ':', '2', '}'};
    struct command_result result;
    struct error e = {0};
    assert_int_equal(catalog_apply(t.catalog, t.seq + 1, slice_borrow(definition, sizeof definition), &result, &e), MINK_UNSUPPORTED);
    assert_int_equal(e.code, MINK_UNSUPPORTED);
    assert_true(strncmp(e.message, "command 4 of the log: ", 22) == 0);
    assert_string_equal(e.hint, "a newer node wrote it: upgrade this one");
    assert_int_equal(catalog_position(t.catalog), 3);
}

static void commands_apply_in_order_alone(void **state) {
    struct command *c = command_declare_dead(1);
    struct slice bytes = command_encode(c);
    struct command_result result;
    struct error e;
    assert_int_equal(catalog_apply(t.catalog, t.seq + 2, bytes, &result, &e), MINK_CORRUPT);
    assert_string_equal(e.message, "command 5 of the log follows 3");
    assert_int_equal(catalog_apply(t.catalog, t.seq, bytes, &result, &e), MINK_CORRUPT);
    assert_string_equal(e.reason, "LOG_GAP");
    assert_int_equal(catalog_apply(t.catalog, t.seq + 1, bytes, &result, &e), MINK_OK);
    slice_unref(&bytes);
    command_free(c);
}

static uint8_t *copy_of(struct slice s) {
    uint8_t *copy = mem_alloc(s.size);
    memcpy(copy, s.data, s.size);
    return copy;
}

static void reseal(uint8_t *state, size_t size) {
    uint32_t crc = crc32c(state, size - 4);
    for (int i = 0; i < 4; i++) state[size - 4 + (size_t)i] = (uint8_t)(crc >> 8 * i);
}

static void each_flipped_bit_of_a_checkpoint_is_found(void **state) {
    struct slice saved = catalog_save(t.catalog);
    uint8_t *copy = copy_of(saved);
    struct catalog *c = catalog_new();
    struct error e;
    for (size_t bit = 0; bit < saved.size * 8; bit++) {
        copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(catalog_load(c, slice_borrow(copy, saved.size), &e), MINK_CORRUPT);
        copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (size_t size = 0; size < saved.size; size++) assert_int_equal(catalog_load(c, slice_borrow(copy, size), &e), MINK_CORRUPT);
    assert_int_equal(catalog_load(c, saved, &e), MINK_OK);
    mem_free(copy);
    slice_unref(&saved);
    catalog_free(c);
}

// With a right checksum, too, nothing but errors or a catalog that saves and loads.
static void a_checkpoint_with_nonsense_is_an_error(void **state) {
    assert_ok(&t, command_open_streams(1, (uint64_t[]){1}, 1));
    struct command_range r = {1, 1, 0, 10};
    assert_ok(&t, commit1(1, 0, 1, set_id(1, 1), &r, 1));
    struct slice saved = catalog_save(t.catalog);
    uint8_t *copy = copy_of(saved);
    struct catalog *c = catalog_new();
    struct error e;
    uint32_t refused = 0;
    for (size_t bit = 0; bit < (saved.size - 4) * 8; bit++) {
        copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
        reseal(copy, saved.size);
        enum mink_code code = catalog_load(c, slice_borrow(copy, saved.size), &e);
        refused += code != MINK_OK;
        if (code == MINK_OK) {
            struct slice again = catalog_save(c);
            assert_true(again.size > 0);
            slice_unref(&again);
        } else {
            assert_int_equal(catalog_position(c), 0);
        }
        copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    assert_true(refused > saved.size);
    copy[4] = 2;
    reseal(copy, saved.size);
    assert_int_equal(catalog_load(c, slice_borrow(copy, saved.size), &e), MINK_UNSUPPORTED);
    assert_string_equal(e.reason, "NEWER_CHECKPOINT");
    assert_string_equal(e.message, "checkpoint version 2: this version of Mink reads version 1");
    mem_free(copy);
    slice_unref(&saved);
    catalog_free(c);
}

// ---- golden files: what was written once stays readable, and is written the same

static struct slice golden(const char *name) {
    char full[4096];
    const char *at = strstr(__FILE__, "tests/unit/");
    snprintf(full, sizeof full, "%.*stests/golden/meta/%s", (int)(at - __FILE__), __FILE__, name);
    FILE *f = fopen(full, "rb");
    if (!f) fail_msg("%s is missing", full);
    static uint8_t bytes[1 << 16];
    size_t size = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    return slice_copy(bytes, size);
}

static void golden_commands_give_the_golden_checkpoint(void **state) {
    struct slice commands = golden("commands_v1.bin"), checkpoint = golden("checkpoint_v1.bin");
    struct catalog *c = catalog_new();
    struct command_result result;
    struct error e;
    size_t at = 0;
    uint32_t n = 0;
    for (; at < commands.size; n++) { // a size of two bytes, then the command
        size_t size = (size_t)commands.data[at] | (size_t)commands.data[at + 1] << 8;
        struct slice row = slice_view(commands, at + 2, size);
        struct command *built = golden_command(n);
        struct slice encoded = command_encode(built);
        assert_true(slices_equal(encoded, row));
        slice_unref(&encoded);
        command_free(built);
        assert_int_equal(catalog_apply(c, n + 1, row, &result, &e), MINK_OK);
        assert_int_equal(result.code, MINK_OK);
        mem_free(result.epochs);
        at += 2 + size;
    }
    assert_int_equal(n, GOLDEN_COMMANDS);
    struct slice saved = catalog_save(c);
    assert_true(slices_equal(saved, checkpoint));
    slice_unref(&saved);
    assert_int_equal(catalog_load(c, checkpoint, &e), MINK_OK);
    saved = catalog_save(c);
    assert_true(slices_equal(saved, checkpoint));
    slice_unref(&saved);
    slice_unref(&commands);
    slice_unref(&checkpoint);
    catalog_free(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_not_understood_stops_the_node, setup, teardown),
        cmocka_unit_test_setup_teardown(malformed_ranges_stop_the_node, setup, teardown),
        cmocka_unit_test_setup_teardown(a_definition_that_does_not_parse_stops_the_node, setup, teardown),
        cmocka_unit_test_setup_teardown(commands_apply_in_order_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(each_flipped_bit_of_a_checkpoint_is_found, setup, teardown),
        cmocka_unit_test_setup_teardown(a_checkpoint_with_nonsense_is_an_error, setup, teardown),
        cmocka_unit_test(golden_commands_give_the_golden_checkpoint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
