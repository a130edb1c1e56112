// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "net/flight_data.h"

#include <string.h>

// Written by hand from the protobuf encoding rules: field 1 "abc" (0a 03), field 2 five bytes (12 05), field 3 "{}" (1a 02), an unknown
// varint field 9 (48 96 01), an unknown fixed64 field 10 (51 …), an unknown fixed32 field 11 (5d …), field 1000 ten bytes (c2 3e 0a).
static const uint8_t whole[] = {0x0a, 0x03, 'a', 'b', 'c', 0x12, 0x05, 1, 2, 3, 4,    5,    0x1a, 0x02, '{', '}', 0x48, 0x96, 0x01, 0x51, 0,  0,  0,
                                0,    0,    0,   0,   0,   0x5d, 0,    0, 0, 0, 0xc2, 0x3e, 0x0a, 10,   11,  12,  13,   14,   15,   16,   17, 18, 19};

static size_t room_of_64_per_header_byte(size_t header_size) { return 64 * header_size; }

// The message cut into pieces of the given size; each piece is memory of its own, so that a read past its end is found.
static struct slices cut(const uint8_t *data, size_t size, size_t piece) {
    struct slices list = {0};
    for (size_t at = 0; at < size; at += piece) slices_take(&list, slice_copy(data + at, size - at < piece ? size - at : piece));
    return list;
}

static void every_way_of_cutting_gives_the_same_fields(void **state) {
    for (size_t piece = 1; piece <= sizeof whole; piece++) {
        struct slices message = cut(whole, sizeof whole, piece);
        struct flight_data d;
        struct error e;
        assert_int_equal(flight_data_parse(&message, room_of_64_per_header_byte, &d, &e), MINK_OK);
        assert_int_equal(d.descriptor.size, 3);
        assert_memory_equal(d.descriptor.data, "abc", 3);
        assert_int_equal(d.header.size, 5);
        assert_memory_equal(d.header.data, "\1\2\3\4\5", 5);
        assert_int_equal((uintptr_t)d.header.data % 64, 0);
        assert_memory_equal(d.app_metadata.data, "{}", 2);
        assert_int_equal(d.room, 320);
        assert_int_equal(d.slab.size, 320 + 16);
        assert_ptr_equal(d.body.data, d.slab_data + 320);
        assert_int_equal(d.body.size, 10);
        assert_int_equal((uintptr_t)d.body.data % 64, 0);
        assert_memory_equal(d.body.data, whole + sizeof whole - 10, 10);
        assert_memory_equal(d.body.data + 10, "\0\0\0\0\0\0", 6);
        flight_data_deinit(&d);
        slices_deinit(&message);
    }
}

static void every_truncation_is_refused_or_shorter(void **state) {
    for (size_t size = 0; size < sizeof whole; size++) {
        struct slices message = cut(whole, size, 7);
        struct flight_data d;
        struct error e;
        enum mink_code code = flight_data_parse(&message, NULL, &d, &e);
        // Only a cut between two fields leaves a well-formed message.
        bool between = size == 0 || size == 5 || size == 12 || size == 16 || size == 19 || size == 28 || size == 33;
        assert_int_equal(code, between ? MINK_OK : MINK_INVALID);
        if (code != MINK_OK) assert_string_equal(e.reason, "BAD_MESSAGE");
        flight_data_deinit(&d);
        slices_deinit(&message);
    }
}

static void expect_error(const uint8_t *data, size_t size, const char *text) {
    struct slices message = cut(data, size, 3);
    struct flight_data d;
    struct error e;
    assert_int_equal(flight_data_parse(&message, NULL, &d, &e), MINK_INVALID);
    assert_string_equal(e.message, text);
    flight_data_deinit(&d);
    slices_deinit(&message);
}

static void malformed_messages_say_what_and_where(void **state) {
    expect_error((const uint8_t *)"\xc2\x3e\x7f"
                                  "abc",
                 6, "FlightData is malformed: data_body is truncated at byte 3 of 6");
    expect_error((const uint8_t *)"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, "FlightData is malformed: truncated field at byte 11 of 11");
    expect_error((const uint8_t *)"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11, "FlightData is malformed: truncated length at byte 11 of 11");
    expect_error((const uint8_t *)"\x10\x05", 2, "FlightData is malformed: known field with a wrong wire type at byte 2 of 2");
    expect_error((const uint8_t *)"\x13", 1, "FlightData is malformed: unknown wire type at byte 1 of 1");
    expect_error((const uint8_t *)"\x02\x00", 2, "FlightData is malformed: bad field tag at byte 1 of 2");
}

static void the_last_of_a_repeated_field_wins(void **state) {
    struct slices message = cut((const uint8_t *)"\x12\x01"
                                                 "a"
                                                 "\x12\x02"
                                                 "bc"
                                                 "\xc2\x3e\x01"
                                                 "x"
                                                 "\xc2\x3e\x02"
                                                 "yz",
                                16, 100);
    struct flight_data d;
    struct error e;
    assert_int_equal(flight_data_parse(&message, NULL, &d, &e), MINK_OK);
    assert_int_equal(d.header.size, 2);
    assert_memory_equal(d.header.data, "bc", 2);
    assert_int_equal(d.body.size, 2);
    assert_memory_equal(d.body.data, "yz", 2);
    flight_data_deinit(&d);
    slices_deinit(&message);
}

static void a_framed_message_is_protobuf_and_shares_its_body(void **state) {
    uint8_t *data;
    struct slice big = slice_new(300, &data);
    memset(data, 7, 300);
    struct slices body = {0}, out = {0};
    slices_take(&body, slice_ref(big));
    flight_data_frame(&out, slice_borrow("D", 1), slice_borrow("hh", 2), "m", 1, &body);
    assert_int_equal(body.count, 0);
    assert_int_equal(out.count, 2);
    static const uint8_t prefix[] = {0x0a, 1, 'D', 0x12, 2, 'h', 'h', 0x1a, 1, 'm', 0xc2, 0x3e, 0xac, 0x02};
    assert_int_equal(out.items[0].size, sizeof prefix);
    assert_memory_equal(out.items[0].data, prefix, sizeof prefix);
    assert_ptr_equal(out.items[1].data, big.data);
    slices_deinit(&out);
    slice_unref(&big);
    // No body, no field 1000.
    flight_data_frame(&out, slice_empty(), slice_borrow("hh", 2), NULL, 0, NULL);
    assert_int_equal(out.bytes, 4);
    slices_deinit(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_way_of_cutting_gives_the_same_fields),
        cmocka_unit_test(every_truncation_is_refused_or_shorter),
        cmocka_unit_test(malformed_messages_say_what_and_where),
        cmocka_unit_test(the_last_of_a_repeated_field_wins),
        cmocka_unit_test(a_framed_message_is_protobuf_and_shares_its_body),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
