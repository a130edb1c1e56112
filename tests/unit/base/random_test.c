// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/hash.h"
#include "base/random.h"

#include <math.h>
#include <string.h>

// First outputs of the authors' xoshiro256starstar.c from the state {1, 2, 3, 4}, and of splitmix64.c from the seed 0.
static void the_generator_is_xoshiro256(void **state) {
    static const uint64_t expected[] = {11520, 0, 1509978240, 1215971899390074240ull, 1216172134540287360ull, 607988272756665600ull, 16172922978634559625ull, 8476171486693032832ull};
    struct random r = {.state = {1, 2, 3, 4}};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) assert_true(random_u64(&r) == expected[i]);
    random_seed(&r, 0);
    static const uint64_t seeded[] = {0xe220a8397b1dcdafull, 0x6e789e6aa1b965f4ull, 0x06c45d188009454full, 0xf88bb8a8724c81ecull};
    assert_memory_equal(r.state, seeded, sizeof seeded);
}

static void one_seed_gives_one_sequence(void **state) {
    struct random a, b, c;
    random_seed(&a, 42);
    random_seed(&b, 42);
    random_seed(&c, 43);
    int same = 0;
    for (int i = 0; i < 1000; i++) {
        uint64_t v = random_u64(&a);
        assert_true(v == random_u64(&b));
        same += v == random_u64(&c);
    }
    assert_int_equal(same, 0);
}

static void below_is_uniform_and_below(void **state) {
    struct random r;
    random_seed(&r, 7);
    unsigned counts[6] = {0};
    for (int i = 0; i < 60000; i++) {
        uint64_t v = random_below(&r, 6);
        assert_true(v < 6);
        counts[v]++;
    }
    double chi = 0; // five degrees of freedom: 20.5 is passed once in a thousand
    for (int i = 0; i < 6; i++) chi += (counts[i] - 10000.0) * (counts[i] - 10000.0) / 10000.0;
    assert_true(chi < 20.5);
    for (int i = 0; i < 100; i++) assert_int_equal(random_below(&r, 1), 0);
    // n is two thirds of 2^64: with a plain modulus two of three numbers would be in the lower half of [0, n).
    unsigned low = 0;
    uint64_t n = UINT64_MAX / 3 * 2;
    for (int i = 0; i < 30000; i++) low += random_below(&r, n) < n / 2;
    assert_true(low > 14500 && low < 15500);
}

static void unit_and_normal_have_their_moments(void **state) {
    struct random r;
    random_seed(&r, 9);
    double sum = 0, normal = 0, squares = 0;
    const int n = 100000;
    for (int i = 0; i < n; i++) {
        double u = random_unit(&r), x = random_normal(&r);
        assert_true(u >= 0 && u < 1);
        assert_true(isfinite(x));
        sum += u;
        normal += x;
        squares += x * x;
    }
    assert_true(fabs(sum / n - 0.5) < 0.005); // five deviations of the mean
    assert_true(fabs(normal / n) < 0.016);
    assert_true(fabs(squares / n - 1) < 0.025);
}

static void bytes_fill_exactly(void **state) {
    struct random r;
    for (size_t size = 0; size < 40; size++) {
        uint8_t bytes[48] = {0};
        random_seed(&r, size);
        random_bytes(&r, bytes + 4, size);
        for (size_t i = 0; i < 4; i++) assert_int_equal(bytes[i], 0);
        for (size_t i = 4 + size; i < sizeof bytes; i++) assert_int_equal(bytes[i], 0);
    }
    uint8_t a[32] = {0}, b[32] = {0};
    random_system_bytes(a, sizeof a);
    random_system_bytes(b, sizeof b);
    assert_memory_not_equal(a, b, sizeof a);
}

// XXH3_64bits of nothing and splitmix64's finish of the first step from 0, as their authors publish them.
static void hashes_are_the_published_ones(void **state) {
    assert_true(hash64("", 0) == 0x2d06800538d394c2ull);
    assert_true(hash_u64(0x9e3779b97f4a7c15ull) == 0xe220a8397b1dcdafull);
    assert_true(hash64("a", 1) != hash64("b", 1));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_generator_is_xoshiro256),
        cmocka_unit_test(one_seed_gives_one_sequence),
        cmocka_unit_test(below_is_uniform_and_below),
        cmocka_unit_test(unit_and_normal_have_their_moments),
        cmocka_unit_test(bytes_fill_exactly),
        cmocka_unit_test(hashes_are_the_published_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
