// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/nearest.h"

#include <string.h>

static size_t distance(const char *a, const char *b) {
    struct nearest n;
    nearest_init(&n, a);
    nearest_offer(&n, b);
    return n.distance;
}

static void distances_are_those_of_optimal_string_alignment(void **state) {
    assert_int_equal(distance("kitten", "sitting"), 3);
    assert_int_equal(distance("sunday", "saturday"), 3);
    assert_int_equal(distance("ca", "abc"), 3); // Damerau's unrestricted distance would be 2
    assert_int_equal(distance("abcd", "acbd"), 1);
    assert_int_equal(distance("", "abc"), 3);
    assert_int_equal(distance("abc", ""), 3);
    assert_int_equal(distance("same", "same"), 0);
    assert_int_equal(distance("Shop.Orders", "shop.orders"), 0);
}

static const char *find(const char *wanted, const char *const *names) {
    static struct nearest n;
    nearest_init(&n, wanted);
    for (; *names; names++) nearest_offer(&n, *names);
    return nearest_found(&n);
}

static void the_nearest_name_is_offered_when_it_helps(void **state) {
    static const char *const names[] = {"columns", "column", "filter", "limit", "ts", NULL};
    assert_string_equal(find("colums", names), "columns");
    assert_string_equal(find("fitler", names), "filter");
    assert_string_equal(find("LIMITS", names), "limit");
    assert_null(find("partition", names));
    assert_null(find("xy", names)); // nothing in common with ts
    assert_null(find("", names));
    assert_null(find("a", (const char *const[]){NULL}));
}

static void the_first_of_equals_wins(void **state) {
    assert_string_equal(find("cat", (const char *const[]){"bat", "hat", NULL}), "bat");
}

static void long_names_are_no_danger(void **state) {
    char long_name[1000], other[256];
    memset(long_name, 'a', sizeof long_name);
    long_name[sizeof long_name - 1] = 0;
    memset(other, 'a', sizeof other);
    other[255] = 0;
    assert_null(find(long_name, (const char *const[]){"a", long_name, NULL}));
    assert_null(find("a", (const char *const[]){long_name, NULL}));
    assert_int_equal(distance(other, other), 0);
    other[0] = 'b';
    long_name[255] = 0;
    assert_string_equal(find(long_name, (const char *const[]){other, NULL}), other);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distances_are_those_of_optimal_string_alignment),
        cmocka_unit_test(the_nearest_name_is_offered_when_it_helps),
        cmocka_unit_test(the_first_of_equals_wins),
        cmocka_unit_test(long_names_are_no_danger),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
