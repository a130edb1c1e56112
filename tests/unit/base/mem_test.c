// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "unit/base/allocation_may_fail.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void zeroed_memory_is_zero(void **state) {
    struct { uint64_t a[33]; } *one = mem_zalloc(sizeof *one);
    for (int i = 0; i < 33; i++) assert_int_equal(one->a[i], 0);
    mem_free(one);
    uint32_t *many = mem_new_array(uint32_t, 1000);
    for (int i = 0; i < 1000; i++) assert_int_equal(many[i], 0);
    mem_free(many);
}

static void realloc_keeps_what_was_there(void **state) {
    uint8_t *p = mem_realloc(NULL, 10);
    memset(p, 7, 10);
    p = mem_realloc(p, 100000);
    for (int i = 0; i < 10; i++) assert_int_equal(p[i], 7);
    mem_free(p);
    mem_free(NULL);
}

static void nothing_is_memory_too(void **state) {
    void *p = mem_alloc(0), *q = mem_zalloc(0), *r = mem_realloc(mem_alloc(5), 0);
    assert_non_null(p);
    assert_non_null(q);
    assert_non_null(r);
    mem_free(p);
    mem_free(q);
    mem_free(r);
}

static void an_aligned_allocation_is_aligned_and_may_fail(void **state) {
    for (size_t align = 8; align <= 4096; align *= 2) {
        void *p = mem_try_alloc(100, align);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % align, 0);
        mem_free(p);
    }
    assert_null(mem_try_alloc(SIZE_MAX / 4, 64));
}

static void texts_are_copied_and_terminated(void **state) {
    char *a = mem_strdup("whole"), *b = mem_strndup("whole", 3), *c = mem_strndup("ab", 9), *d = mem_printf("%d of %s", 7, "nine"), *e = mem_strdup("");
    assert_string_equal(a, "whole");
    assert_string_equal(b, "who");
    assert_string_equal(c, "ab");
    assert_string_equal(d, "7 of nine");
    assert_string_equal(e, "");
    mem_free(a);
    mem_free(b);
    mem_free(c);
    mem_free(d);
    mem_free(e);
}

static void fail_assertion(void) {
    int apples = 3;
    mink_assert(apples == 4);
}

static void overflow_an_array(void) { mem_free(mem_zalloc_array(SIZE_MAX / 2, 3)); }

// Runs fn in a child; what it wrote to stderr, and the signal that ended it.
static int run_to_the_end(void (*fn)(void), char *text, size_t size) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGABRT, SIG_DFL); // cmocka catches it
        dup2(ends[1], STDERR_FILENO);
        fn();
        _exit(0);
    }
    close(ends[1]);
    size_t at = 0;
    for (ssize_t n; (n = read(ends[0], text + at, size - at - 1)) > 0;) at += (size_t)n;
    text[at] = 0;
    close(ends[0]);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void a_broken_assertion_ends_the_process_and_says_where(void **state) {
    char text[20000];
    assert_int_equal(run_to_the_end(fail_assertion, text, sizeof text), SIGABRT);
    assert_non_null(strstr(text, "mink: fatal: assertion failed: apples == 4 ("));
    assert_non_null(strstr(text, "mem_test.c:"));
    assert_int_equal(run_to_the_end(overflow_an_array, text, sizeof text), SIGABRT);
    assert_non_null(strstr(text, "mink: fatal: array of 9223372036854775807 × 3 bytes"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zeroed_memory_is_zero),
        cmocka_unit_test(realloc_keeps_what_was_there),
        cmocka_unit_test(nothing_is_memory_too),
        cmocka_unit_test(an_aligned_allocation_is_aligned_and_may_fail),
        cmocka_unit_test(texts_are_copied_and_terminated),
        cmocka_unit_test(a_broken_assertion_ends_the_process_and_says_where),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
