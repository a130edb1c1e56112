// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/buffer.h"

#include <string.h>

static void numbers_are_little_endian(void **state) {
    static const uint8_t expected[] = {0x01, 0x03, 0x02, 0x07, 0x06, 0x05, 0x04, 0x0f, 0x0e, 0x0d, 0x0c, 0x0b, 0x0a, 0x09, 0x08, 0, 0, 0, 'h', 'i'};
    struct buffer b;
    buffer_init(&b, 1000);
    buffer_put_u8(&b, 1);
    buffer_put_u16le(&b, 0x0203);
    buffer_put_u32le(&b, 0x04050607);
    buffer_put_u64le(&b, 0x08090a0b0c0d0e0full);
    buffer_put_zeros(&b, 3);
    buffer_put_string(&b, "hi");
    assert_int_equal(b.size, sizeof expected);
    assert_memory_equal(b.data, expected, sizeof expected);
    buffer_deinit(&b);
}

// The examples of the DWARF standard (figure "Examples of unsigned LEB128 encodings"), and the ends of the range.
static void varints_are_leb128(void **state) {
    static const struct { uint64_t v; const char *bytes; size_t size; } cases[] = {
        {0, "\x00", 1},        {2, "\x02", 1},         {127, "\x7f", 1}, {128, "\x80\x01", 2}, {129, "\x81\x01", 2}, {12857, "\xb9\x64", 2},
        {624485, "\xe5\x8e\x26", 3}, {UINT64_MAX, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct buffer b;
        buffer_init(&b, 100);
        buffer_put_varint(&b, cases[i].v);
        assert_int_equal(b.size, cases[i].size);
        assert_memory_equal(b.data, cases[i].bytes, cases[i].size);
        buffer_deinit(&b);
    }
}

static void beyond_the_maximum_everything_is_refused(void **state) {
    struct buffer b;
    buffer_init(&b, 10);
    buffer_put(&b, "12345678", 8);
    buffer_put(&b, "abc", 3); // one too many
    assert_true(b.overflowed);
    assert_int_equal(b.size, 8);
    buffer_put_u8(&b, 'x'); // would fit, but something is missing before it
    assert_int_equal(b.size, 8);
    assert_null(buffer_extend(&b, 0));
    assert_string_equal(buffer_string(&b), "12345678");
    buffer_reset(&b);
    buffer_put(&b, "0123456789", 10);
    assert_false(b.overflowed);
    buffer_printf(&b, "%d", 1);
    assert_true(b.overflowed);
    buffer_deinit(&b);
    assert_null(buffer_extend(&(struct buffer){.bytes_max = 5}, SIZE_MAX));
}

static void it_grows_to_what_is_put(void **state) {
    struct buffer b;
    buffer_init(&b, 1 << 20);
    for (int i = 0; i < 5000; i++) buffer_printf(&b, "%04d,", i);
    assert_int_equal(b.size, 25000);
    assert_memory_equal(b.data + 4999 * 5, "4999,", 5);
    assert_int_equal(strlen(buffer_string(&b)), 25000);
    char *large = (char *)buffer_extend(&b, 500000);
    memset(large, 'z', 500000);
    assert_memory_equal(b.data, "0000,0001,", 10);
    buffer_deinit(&b);
    assert_int_equal(b.size, 0);
    assert_string_equal(buffer_string(&b), "");
}

static void the_bytes_become_a_slice(void **state) {
    struct buffer b;
    buffer_init(&b, 100);
    buffer_put_string(&b, "first");
    struct slice s = buffer_take_slice(&b);
    buffer_put_string(&b, "second");
    assert_int_equal(s.size, 5);
    assert_memory_equal(s.data, "first", 5);
    assert_string_equal(buffer_string(&b), "second");
    slice_unref(&s);
    buffer_reset(&b);
    s = buffer_take_slice(&b);
    assert_int_equal(s.size, 0);
    slice_unref(&s);
    buffer_deinit(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_little_endian),
        cmocka_unit_test(varints_are_leb128),
        cmocka_unit_test(beyond_the_maximum_everything_is_refused),
        cmocka_unit_test(it_grows_to_what_is_put),
        cmocka_unit_test(the_bytes_become_a_slice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
