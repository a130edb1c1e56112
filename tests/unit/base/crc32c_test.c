// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/crc32c.h"
#include "base/random.h"

#include <string.h>

// Known answers: RFC 3720 appendix B.4, and the check value of the CRC catalogue.
static void known_answers(void **state) {
    uint8_t data[32];
    assert_int_equal(crc32c("123456789", 9), 0xe3069283);
    memset(data, 0, sizeof data);
    assert_int_equal(crc32c(data, sizeof data), 0x8a9136aa);
    memset(data, 0xff, sizeof data);
    assert_int_equal(crc32c(data, sizeof data), 0x62a8ab43);
    for (int i = 0; i < 32; i++) data[i] = (uint8_t)i;
    assert_int_equal(crc32c(data, sizeof data), 0x46dd794e);
    for (int i = 0; i < 32; i++) data[i] = (uint8_t)(31 - i);
    assert_int_equal(crc32c(data, sizeof data), 0x113fdb5c);
    assert_int_equal(crc32c("", 0), 0);
}

static uint32_t bitwise(const uint8_t *data, size_t size) {
    uint32_t raw = ~0u;
    for (size_t i = 0; i < size; i++) {
        raw ^= data[i];
        for (int bit = 0; bit < 8; bit++) raw = (raw & 1) ? (raw >> 1) ^ 0x82f63b78u : raw >> 1;
    }
    return ~raw;
}

static void every_length_and_alignment_agrees_with_the_definition(void **state) {
    static uint8_t data[70000];
    struct random r;
    random_seed(&r, 1);
    random_bytes(&r, data, sizeof data);
    for (size_t size = 0; size < 1000; size++) assert_int_equal(crc32c(data + size % 17, size), bitwise(data + size % 17, size));
    for (int i = 0; i < 30; i++) {
        size_t size = 700 + random_below(&r, 60000), at = random_below(&r, 9);
        assert_int_equal(crc32c(data + at, size), bitwise(data + at, size));
    }
}

static void extend_and_combine_equal_the_whole(void **state) {
    static uint8_t data[50000];
    struct random r;
    random_seed(&r, 2);
    random_bytes(&r, data, sizeof data);
    for (int i = 0; i < 300; i++) {
        size_t size = random_below(&r, sizeof data), cut = size ? random_below(&r, size + 1) : 0;
        uint32_t whole = crc32c(data, size);
        assert_int_equal(crc32c_extend(crc32c(data, cut), data + cut, size - cut), whole);
        assert_int_equal(crc32c_combine(crc32c(data, cut), crc32c(data + cut, size - cut), size - cut), whole);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(every_length_and_alignment_agrees_with_the_definition),
        cmocka_unit_test(extend_and_combine_equal_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
