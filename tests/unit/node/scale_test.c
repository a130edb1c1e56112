// SPDX-License-Identifier: Apache-2.0
#include "unit/node/node_testing.h"

#include "base/clock.h"

#define BUCKETS 10000
#define BYTES_EACH_MAX 25000 // of a bucket that is open and idle, with all layers below it
#define CREATE_MS_MAX 10000

static struct world w;

static size_t resident(void) {
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%*d %ld", &pages), 1);
    fclose(f);
    return (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void ten_thousand_open_buckets_stay_small(void **state) {
    world_init(&w);
    world_start(&w);
    size_t empty = resident();
    uint64_t begin_ns = clock_monotonic_ns();
    struct node_table *t = make_table(&w, "CREATE TABLE shop.wide (id BIGINT, city STRING) WITH ('bucket.num' = '10000')");
    uint64_t created_ns = clock_monotonic_ns();
    assert_true(created_ns - begin_ns < CREATE_MS_MAX * NS_PER_MS);
    struct append_call *calls = mem_new_array(struct append_call, BUCKETS);
    for (int i = 0; i < BUCKETS; i++) {
        calls[i] = (struct append_call){.append = {.table = t, .bucket = i}};
        make_rows(t, i, 1, &calls[i].append.batch);
        append_start(&w, &calls[i]);
    }
    for (int i = 0; i < BUCKETS; i++) {
        assert_fine(append_wait(&calls[i], &why));
        assert_int_equal(calls[i].ranges[0].first, 0);
    }
    uint64_t opened_ns = clock_monotonic_ns();
    mem_free(calls);
    struct node_admin flush = {.op = NODE_FLUSH};
    assert_fine(admin(&w, &flush, &why));
    size_t each = (resident() - empty) / BUCKETS;
    print_message("create %.0f ms, open all with an append each %.0f ms, %zu bytes a bucket\n", (double)(created_ns - begin_ns) / 1e6, (double)(opened_ns - created_ns) / 1e6, each);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // their shadow memory counts as resident
    assert_true(each < BYTES_EACH_MAX);
#endif
    static int64_t ids[BUCKETS];
    begin_ns = clock_monotonic_ns();
    assert_int_equal(scan_all(&w, whole(t), ids, BUCKETS), BUCKETS);
    for (int i = 0; i < BUCKETS; i++) assert_int_equal(ids[i], i);
    print_message("scan of all %.0f ms\n", (double)(clock_monotonic_ns() - begin_ns) / 1e6);
    // A follow of all of them waits without cost, and hears of any.
    struct node_scan *s;
    struct next_call call;
    struct append_call c;
    struct node_scan_config config = whole(t);
    config.from = NODE_FROM_LATEST;
    config.until = NODE_UNTIL_NEVER;
    assert_fine(scan_open(&w, config, &s, &why));
    scan_start(&w, s, &call);
    c = (struct append_call){.append = {.table = t, .bucket = 7777}};
    make_rows(t, 1, 1, &c.append.batch);
    append_start(&w, &c);
    assert_fine(append_wait(&c, &why));
    signal_await(&call.done, 1);
    assert_int_equal(call.next.bucket, 7777);
    uint32_t count = 0;
    collect(s, &call.next, ids, &count, BUCKETS);
    scan_close(&w, s);
    begin_ns = clock_monotonic_ns();
    node_table_unref(t);
    world_stop(&w, false);
    print_message("close %.0f ms\n", (double)(clock_monotonic_ns() - begin_ns) / 1e6);
    assert_true(clock_monotonic_ns() - begin_ns < 5 * NS_PER_S);
    world_deinit(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(ten_thousand_open_buckets_stay_small)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
