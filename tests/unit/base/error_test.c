// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/error.h"

#include <string.h>

static void an_error_is_complete(void **state) {
    struct error e;
    memset(&e, 0xaa, sizeof e); // the caller need not clear it
    assert_int_equal(error_set(&e, MINK_NOT_FOUND, "TABLE_NOT_FOUND", "table %s does not exist", "shop.x"), MINK_NOT_FOUND);
    assert_int_equal(e.code, MINK_NOT_FOUND);
    assert_string_equal(e.reason, "TABLE_NOT_FOUND");
    assert_string_equal(e.message, "table shop.x does not exist");
    assert_string_equal(e.hint, "");
    assert_string_equal(e.column, "");
    assert_string_equal(e.expected, "");
    assert_string_equal(e.actual, "");
}

static void each_layer_adds_what_it_was_doing(void **state) {
    struct error e;
    error_set(&e, MINK_UNAVAILABLE, "STORE", "503 after %d tries", 6);
    error_hint(&e, "try again");
    assert_int_equal(error_context(&e, "put %s", "wal/2/17"), MINK_UNAVAILABLE);
    assert_int_equal(error_context(&e, "append %s/%d", "shop.orders", 3), MINK_UNAVAILABLE);
    assert_string_equal(e.message, "append shop.orders/3: put wal/2/17: 503 after 6 tries");
    assert_string_equal(e.reason, "STORE");
    assert_string_equal(e.hint, "try again");
}

static void a_new_error_may_quote_the_old_one(void **state) {
    struct error e;
    error_set(&e, MINK_INVALID, "INNER", "inner");
    error_set(&e, MINK_CORRUPT, "OUTER", "outer of %s [%s]", e.message, e.reason);
    assert_string_equal(e.message, "outer of inner [INNER]");
    assert_string_equal(e.reason, "OUTER");
}

static void long_texts_are_cut_and_terminated(void **state) {
    struct error e;
    char text[2000];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = 0;
    error_set(&e, MINK_INVALID, text, "%s", text);
    error_hint(&e, "%s", text);
    error_about(&e, text, text, text);
    assert_int_equal(strlen(e.reason), sizeof e.reason - 1);
    assert_int_equal(strlen(e.message), sizeof e.message - 1);
    assert_int_equal(strlen(e.hint), sizeof e.hint - 1);
    assert_int_equal(strlen(e.column), sizeof e.column - 1);
    assert_int_equal(strlen(e.expected), sizeof e.expected - 1);
    assert_int_equal(strlen(e.actual), sizeof e.actual - 1);
    error_context(&e, "%s", text); // leaves no room for what was there
    assert_int_equal(strlen(e.message), sizeof e.message - 1);
    error_set(&e, MINK_INVALID, "R", "%s", text);
    error_context(&e, "front");
    assert_int_equal(strlen(e.message), sizeof e.message - 1);
    assert_memory_equal(e.message, "front: xxx", 10);
}

static void nobody_need_listen(void **state) {
    assert_int_equal(error_set(NULL, MINK_FENCED, "X", "%s", "y"), MINK_FENCED);
    error_hint(NULL, "x");
    error_about(NULL, "a", "b", "c");
    error_clear(NULL);
    error_copy(NULL, NULL);
}

static void a_copy_is_the_whole_error(void **state) {
    struct error a, b;
    error_set(&a, MINK_CONFLICT, "C", "m");
    error_about(&a, "col", "BIGINT", "string");
    error_copy(&b, &a);
    assert_memory_equal(&a.column, &b.column, sizeof a.column);
    assert_int_equal(b.code, MINK_CONFLICT);
    assert_string_equal(b.actual, "string");
    error_copy(&b, &b);
    assert_string_equal(b.message, "m");
    error_copy(&b, NULL);
    assert_int_equal(b.code, MINK_OK);
    assert_string_equal(b.message, "");
}

static void every_code_has_a_name_of_its_own(void **state) {
    for (int i = 0; i < MINK_CODE_COUNT; i++)
        for (int j = 0; j < i; j++) assert_string_not_equal(mink_code_name((enum mink_code)i), mink_code_name((enum mink_code)j));
    assert_string_equal(mink_code_name(MINK_OK), "OK");
    assert_string_equal(mink_code_name(MINK_INTERNAL), "INTERNAL");
    assert_string_equal(mink_code_name((enum mink_code)99), "UNKNOWN");
}

static void only_what_may_succeed_later_is_retriable(void **state) {
    for (int i = 0; i < MINK_CODE_COUNT; i++) {
        bool expected = i == MINK_UNAVAILABLE || i == MINK_OVERLOADED || i == MINK_UNKNOWN_OUTCOME || i == MINK_FENCED;
        assert_int_equal(mink_code_retriable((enum mink_code)i), expected);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_is_complete),
        cmocka_unit_test(each_layer_adds_what_it_was_doing),
        cmocka_unit_test(a_new_error_may_quote_the_old_one),
        cmocka_unit_test(long_texts_are_cut_and_terminated),
        cmocka_unit_test(nobody_need_listen),
        cmocka_unit_test(a_copy_is_the_whole_error),
        cmocka_unit_test(every_code_has_a_name_of_its_own),
        cmocka_unit_test(only_what_may_succeed_later_is_retriable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
