// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/reader.h"

#include <string.h>

static void numbers_are_little_endian(void **state) {
    static const uint8_t bytes[] = {0x01, 0x03, 0x02, 0x07, 0x06, 0x05, 0x04, 0x0f, 0x0e, 0x0d, 0x0c, 0x0b, 0x0a, 0x09, 0x08, 0xfe, 0xff, 0xff, 0xff, 0xfd, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    struct reader r;
    reader_init(&r, bytes, sizeof bytes);
    assert_int_equal(reader_u8(&r), 1);
    assert_int_equal(reader_u16le(&r), 0x0203);
    assert_int_equal(reader_u32le(&r), 0x04050607);
    assert_true(reader_u64le(&r) == 0x08090a0b0c0d0e0full);
    assert_int_equal(reader_i32le(&r), -2);
    assert_true(reader_i64le(&r) == -3);
    assert_int_equal(reader_left(&r), 0);
    assert_int_equal(reader_position(&r), sizeof bytes);
    assert_int_equal(reader_finish(&r, "numbers", NULL), MINK_OK);
}

static void the_first_failure_sticks(void **state) {
    struct reader r;
    struct error e;
    reader_init(&r, "\x01\x02\x03\x04\x05", 5);
    assert_int_equal(reader_u16le(&r), 0x0201);
    assert_int_equal(reader_u32le(&r), 0); // four wanted, three left
    assert_false(reader_ok(&r));
    assert_int_equal(reader_u8(&r), 0);    // one is left, but what it means is lost
    assert_null(reader_bytes(&r, 1));
    assert_false(reader_zeros(&r, 0));
    assert_int_equal(reader_finish(&r, "header", &e), MINK_CORRUPT);
    assert_string_equal(e.reason, "MALFORMED");
    assert_string_equal(e.message, "header: malformed at byte 2 of 5 (wanted 4, left 3)");
}

static void huge_sizes_are_only_refused(void **state) {
    struct reader r;
    reader_init(&r, "abc", 3);
    assert_null(reader_bytes(&r, SIZE_MAX));
    assert_false(reader_ok(&r));
    reader_init(&r, NULL, 0);
    assert_int_equal(reader_left(&r), 0);
    assert_int_equal(reader_u8(&r), 0);
    assert_false(reader_ok(&r));
}

static void varints_end_within_ten_bytes(void **state) {
    static const struct { const char *bytes; size_t size; bool good; uint64_t v; } cases[] = {
        {"\x00", 1, true, 0},
        {"\xe5\x8e\x26", 3, true, 624485},
        {"\x80\x00", 2, true, 0}, // longer than needed is allowed
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10, true, UINT64_MAX},
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10, false, 0}, // bit 64
        {"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 11, false, 0},
        {"\x80\x80", 2, false, 0}, // ends before it ends
        {"", 0, false, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct reader r;
        reader_init(&r, cases[i].bytes, cases[i].size);
        assert_true(reader_varint(&r) == cases[i].v);
        assert_int_equal(reader_ok(&r), cases[i].good);
        if (cases[i].good) assert_int_equal(reader_left(&r), 0);
    }
}

static void reserved_bytes_are_zero(void **state) {
    struct reader r;
    struct error e;
    reader_init(&r, "\0\0\0\0\1\0", 6);
    assert_true(reader_zeros(&r, 4));
    assert_false(reader_zeros(&r, 2));
    assert_int_equal(reader_finish(&r, "block", &e), MINK_CORRUPT);
    assert_string_equal(e.message, "block: malformed at byte 4 of 6 (wanted 1, left 2)");
}

static void a_count_has_a_maximum(void **state) {
    struct reader r;
    reader_init(&r, "\x05\0\0\0\x06\0\0\0", 8);
    assert_int_equal(reader_count(&r, 5), 5);
    assert_int_equal(reader_count(&r, 5), 0);
    assert_false(reader_ok(&r));
}

static void a_nested_part_cannot_read_its_neighbour(void **state) {
    struct reader r, sub;
    reader_init(&r, "\x01\x02\x03\x04", 4);
    reader_sub(&r, 2, &sub);
    assert_int_equal(reader_u8(&sub), 1);
    assert_int_equal(reader_u16le(&sub), 0);
    assert_false(reader_ok(&sub));
    assert_true(reader_ok(&r));
    assert_int_equal(reader_u8(&r), 3);
    reader_sub(&r, 2, &sub); // only one is left
    assert_false(reader_ok(&r));
    assert_false(reader_ok(&sub));
    assert_int_equal(reader_left(&sub), 0);
    assert_int_equal(reader_finish(&sub, "part", NULL), MINK_CORRUPT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_little_endian),
        cmocka_unit_test(the_first_failure_sticks),
        cmocka_unit_test(huge_sizes_are_only_refused),
        cmocka_unit_test(varints_end_within_ten_bytes),
        cmocka_unit_test(reserved_bytes_are_zero),
        cmocka_unit_test(a_count_has_a_maximum),
        cmocka_unit_test(a_nested_part_cannot_read_its_neighbour),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
