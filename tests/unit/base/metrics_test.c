// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/executor.h"
#include "base/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct metric_counter counter = METRIC_COUNTER("test_events_total", "events");
static struct metric_counter untouched = METRIC_COUNTER("test_untouched_total", "never counted");
static struct metric_gauge gauge = METRIC_GAUGE("test_level", "a level");
static struct metric_histogram histogram = METRIC_HISTOGRAM("test_wait_seconds", "waits");

static char *text_now(void) {
    static struct buffer b;
    if (b.bytes_max == 0) buffer_init(&b, 1 << 20);
    buffer_reset(&b);
    metrics_write(&b);
    assert_false(b.overflowed);
    return (char *)buffer_string(&b);
}

// The value of the line that begins so.
static double value_of(const char *text, const char *series) {
    char begin[200];
    snprintf(begin, sizeof begin, "\n%s ", series);
    const char *at = strstr(text, begin);
    if (!at) fail_msg("%s is not in: %s", series, text);
    return at ? strtod(at + strlen(begin), NULL) : 0;
}

static void counters_add_and_gauges_move(void **state) {
    metric_add(&counter, 3);
    metric_add(&counter, 4);
    metric_set(&gauge, 10);
    metric_move(&gauge, -15);
    const char *text = text_now();
    assert_true(value_of(text, "test_events_total") == 7);
    assert_true(value_of(text, "test_level") == -5);
    assert_non_null(strstr(text, "# HELP test_events_total events\n# TYPE test_events_total counter\ntest_events_total 7\n"));
    assert_non_null(strstr(text, "# HELP test_level a level\n# TYPE test_level gauge\ntest_level -5\n"));
    assert_null(strstr(text, "test_untouched_total"));
    metric_add(&untouched, 0); // the first use registers, and one is enough
    metric_add(&untouched, 0);
    text = text_now();
    const char *first = strstr(text, "# TYPE test_untouched_total");
    assert_non_null(first);
    assert_null(strstr(first + 1, "# TYPE test_untouched_total"));
}

static void a_histogram_counts_what_is_at_most_le(void **state) {
    assert_int_equal(metric_quantile_ns(&histogram, 0.5), 0); // empty
    // 1 µs, 3 × 2 µs, 5 ms, 1 h
    metric_observe_ns(&histogram, 1000);
    for (int i = 0; i < 3; i++) metric_observe_ns(&histogram, 2000);
    metric_observe_ns(&histogram, 5000000);
    metric_observe_ns(&histogram, 3600ull * 1000000000);
    const char *text = text_now();
    assert_non_null(strstr(text, "# TYPE test_wait_seconds histogram\n"));
    assert_true(value_of(text, "test_wait_seconds_bucket{le=\"1e-06\"}") == 1);
    assert_true(value_of(text, "test_wait_seconds_bucket{le=\"2e-06\"}") == 4);
    assert_true(value_of(text, "test_wait_seconds_bucket{le=\"0.004096\"}") == 4);
    assert_true(value_of(text, "test_wait_seconds_bucket{le=\"0.008192\"}") == 5);
    assert_true(value_of(text, "test_wait_seconds_bucket{le=\"+Inf\"}") == 6);
    assert_true(value_of(text, "test_wait_seconds_count") == 6);
    double sum = value_of(text, "test_wait_seconds_sum");
    assert_true(sum > 3600.005006 && sum < 3600.005008);
}

static void each_value_falls_into_the_bucket_that_holds_it(void **state) {
    // A quantile is the upper bound of a bucket: at least the value, and at most a quarter more.
    for (unsigned long long ns = 1; ns < 100ull * 1000000000; ns = ns * 9 / 8 + 1) {
        struct metric_histogram *one = calloc(1, sizeof *one);
        one->registered = true; // kept out of the list, for it goes away
        metric_observe_ns(one, ns);
        unsigned long long upper = metric_quantile_ns(one, 1);
        if (upper < ns || (ns > 1000 && upper > ns + ns / 4)) fail_msg("%llu ns is told as %llu", ns, upper);
        assert_true(metric_quantile_ns(one, 0) == upper);
        free(one);
    }
}

static void a_quantile_is_where_it_should_be(void **state) {
    static struct metric_histogram h = METRIC_HISTOGRAM("test_quantile_seconds", "quantiles");
    for (unsigned i = 1; i <= 1000; i++) metric_observe_ns(&h, i * 1000000ull); // 1 to 1000 ms
    unsigned long long half = metric_quantile_ns(&h, 0.5), late = metric_quantile_ns(&h, 0.99);
    assert_true(half >= 500000000 && half <= 625000000);
    assert_true(late >= 990000000 && late <= 1237500000);
}

static void count_often(void *ctx) {
    for (int i = 0; i < 50000; i++) {
        metric_add(&counter, 1);
        metric_observe_ns(&histogram, 1500);
    }
}

static void threads_lose_no_count(void **state) {
    double before = value_of(text_now(), "test_events_total"), count_before = value_of(text_now(), "test_wait_seconds_count");
    struct thread *threads[4];
    for (int i = 0; i < 4; i++) threads[i] = thread_start("count", count_often, NULL);
    for (int i = 0; i < 4; i++) thread_join(threads[i]);
    assert_true(value_of(text_now(), "test_events_total") == before + 200000);
    assert_true(value_of(text_now(), "test_wait_seconds_count") == count_before + 200000);
}

static void the_process_is_told(void **state) {
    const char *text = text_now();
    assert_true(value_of(text, "process_resident_memory_bytes") > 100000);
    assert_true(value_of(text, "process_cpu_seconds_total") > 0);
    double fds = value_of(text, "process_open_fds");
    FILE *one = fopen("/dev/null", "r");
    assert_true(value_of(text_now(), "process_open_fds") == fds + 1);
    fclose(one);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_add_and_gauges_move),
        cmocka_unit_test(a_histogram_counts_what_is_at_most_le),
        cmocka_unit_test(each_value_falls_into_the_bucket_that_holds_it),
        cmocka_unit_test(a_quantile_is_where_it_should_be),
        cmocka_unit_test(threads_lose_no_count),
        cmocka_unit_test(the_process_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
