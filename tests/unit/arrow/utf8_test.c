// SPDX-License-Identifier: Apache-2.0
#include "arrow_testing.h"

#include "arrow/arrow_internal.h"

// The definition, written the long way: decode a code point, then ask whether it may be written like that.
static bool reference_valid(const uint8_t *p, size_t size) {
    for (size_t i = 0; i < size;) {
        uint32_t lead = p[i], code, count;
        if (lead < 0x80) count = 0, code = lead;
        else if ((lead & 0xe0) == 0xc0) count = 1, code = lead & 0x1f;
        else if ((lead & 0xf0) == 0xe0) count = 2, code = lead & 0x0f;
        else if ((lead & 0xf8) == 0xf0) count = 3, code = lead & 0x07;
        else return false;
        if (count > size - i - 1) return false;
        for (uint32_t k = 1; k <= count; k++) {
            if ((p[i + k] & 0xc0) != 0x80) return false;
            code = code << 6 | (p[i + k] & 0x3f);
        }
        static const uint32_t smallest[] = {0, 0x80, 0x800, 0x10000};
        if (code < smallest[count] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return false;
        i += count + 1;
    }
    return true;
}

// All fours of the bytes at which a rule changes, at the places where blocks of 16 meet and at the end, short and long.
static void every_rule_at_every_boundary(void **state) {
    static const uint8_t edges[] = {0x00, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff};
    static const struct { size_t size, at; } places[] = {{4, 0}, {40, 12}, {40, 13}, {40, 14}, {40, 15}, {40, 36}, {48, 44}, {33, 29}};
    enum { COUNT = sizeof edges };
    uint8_t text[64];
    uint32_t valid = 0;
    for (size_t k = 0; k < sizeof places / sizeof *places; k++) {
        for (uint32_t n = 0; n < COUNT * COUNT * COUNT * COUNT; n++) {
            memset(text, 'a', sizeof text);
            uint32_t rest = n;
            for (int i = 0; i < 4; i++, rest /= COUNT) text[places[k].at + (size_t)i] = edges[rest % COUNT];
            bool expected = reference_valid(text, places[k].size);
            valid += expected;
            if (utf8_valid(text, places[k].size) != expected)
                fail_msg("%02x %02x %02x %02x at %zu of %zu", text[places[k].at], text[places[k].at + 1], text[places[k].at + 2], text[places[k].at + 3], places[k].at, places[k].size);
        }
    }
    assert_in_range(valid, 1000, 100000);
}

static void ascii_of_every_length(void **state) {
    uint8_t text[200];
    for (size_t size = 0; size < sizeof text; size++) {
        memset(text, 'x', sizeof text);
        assert_true(utf8_is_ascii(text, size));
        for (size_t at = 0; at < sizeof text; at++) {
            text[at] = 0x80;
            assert_int_equal(utf8_is_ascii(text, size), at >= size);
            text[at] = 'x';
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_rule_at_every_boundary), cmocka_unit_test(ascii_of_every_length)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
