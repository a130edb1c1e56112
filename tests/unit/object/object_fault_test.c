// SPDX-License-Identifier: Apache-2.0
// On simulated time: a profile's figures are checked against their definition over tens of thousands of requests.
#include "object_testing.h"

#include "object/object_fault.h"
#include "object/object_memory.h"
#include "sim/sim_executor.h"

#include <math.h>
#include <stdlib.h>

#define MANY 40000

struct call {
    struct object_request request;
    uint64_t begin_ns, end_ns;
    bool done;
};
static struct sim *sim;
static struct object_store *memory, *store;
static struct call *calls;
static unsigned done_count;

static void on_done(struct object_request *r) {
    struct call *c = container_of(r, struct call, request);
    assert_false(c->done);
    c->done = true;
    c->end_ns = sim_now_ns(sim);
    done_count++;
}

static void set_up(const struct object_fault_profile *profile, uint64_t seed) {
    sim = sim_new(seed);
    memory = object_memory_new();
    store = object_fault_new(memory, profile, seed);
    calls = mem_new_array(struct call, MANY);
    done_count = 0;
}
static void tear_down(void) {
    for (int i = 0; i < MANY; i++) slice_unref(&calls[i].request.data);
    mem_free(calls);
    object_store_close(store);
    sim_free(sim);
}

// One put or get after the other; keys k/00000, k/00001, …
static void one(unsigned i, enum object_op op, size_t size) {
    char key[32];
    snprintf(key, sizeof key, "k/%05u", i);
    struct call *c = &calls[i];
    slice_unref(&c->request.data);
    c->done = false;
    c->begin_ns = sim_now_ns(sim);
    if (op == OBJECT_PUT) {
        static uint8_t bytes[1 << 20];
        struct slices body = {0};
        slices_take(&body, slice_borrow(bytes, size));
        object_put(store, &c->request, sim_world(sim), key, &body, crc32c(bytes, size), true, OBJECT_WAL_PUT, on_done);
        slices_deinit(&body);
    } else {
        object_get(store, &c->request, sim_world(sim), key, 0, 0, OBJECT_LIVE_READ, on_done);
    }
    assert_false(c->done); // never before the call returns
    while (!c->done) assert_true(sim_step(sim));
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
static double *latencies_ms(void) {
    static double ms[MANY];
    for (unsigned i = 0; i < MANY; i++) ms[i] = (double)(calls[i].end_ns - calls[i].begin_ns) / 1e6;
    qsort(ms, MANY, sizeof *ms, by_value);
    return ms;
}
#define assert_near(got, want, part) assert_true(fabs((got) - (want)) <= (part) * (want))

static void latencies_have_the_quantiles_of_their_profile(void **state) {
    struct { const char *name; double put50, put99, get50, get99; } cases[] = {{"s3", 28, 75, 25, 85}, {"express", 6, 15, 4, 10}, {"flat20", 20, 20, 20, 20}, {"flat50", 50, 50, 50, 50}, {"s3-busy", 56, 150, 50, 170}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        set_up(object_fault_profile_find(cases[k].name), 7 + k);
        for (unsigned i = 0; i < MANY; i++) one(i, OBJECT_PUT, 0);
        double *ms = latencies_ms();
        assert_near(ms[MANY / 2], cases[k].put50, 0.03);
        // s3-busy: half a per cent over 500 ms moves the 99 % point of the rest to its 99.5 % point
        double p99 = k == 4 ? ms[(int)(MANY * 0.985)] : ms[MANY * 99 / 100];
        if (k == 4) assert_true(p99 > 120 && p99 < 165 && ms[(int)(MANY * 0.997)] >= 500 && ms[(int)(MANY * 0.99)] < 500);
        else assert_near(p99, cases[k].put99, 0.06);
        for (unsigned i = 0; i < MANY; i++) one(i, OBJECT_GET, 0);
        ms = latencies_ms();
        assert_near(ms[MANY / 2], cases[k].get50, 0.03);
        if (k != 4) assert_near(ms[MANY * 99 / 100], cases[k].get99, 0.06);
        tear_down();
    }
}

static void size_costs_time_at_the_profiles_rate(void **state) {
    struct object_fault_profile p = {.name = "rate", .put_mb_per_s = 80, .get_mb_per_s = 90};
    set_up(&p, 3);
    one(0, OBJECT_PUT, 1000000);
    assert_near((double)(calls[0].end_ns - calls[0].begin_ns) / 1e6, 12.5, 0.01);
    one(0, OBJECT_GET, 0);
    assert_near((double)(calls[0].end_ns - calls[0].begin_ns) / 1e6, 11.111, 0.01);
    tear_down();
}

static void errors_come_in_bursts_and_nothing_happens(void **state) {
    struct object_fault_profile p = {.name = "errors", .error_fraction = 0.05};
    set_up(&p, 11);
    unsigned errors = 0, bursts = 0;
    bool before = false;
    for (unsigned i = 0; i < MANY; i++) {
        one(i, OBJECT_PUT, 10);
        bool failed = calls[i].request.code == MINK_UNAVAILABLE;
        assert_true(failed || calls[i].request.code == MINK_OK);
        errors += failed;
        bursts += failed && !before;
        before = failed;
        struct slice stored = object_memory_find(memory, calls[i].request.key);
        assert_int_equal(stored.data != NULL, !failed);
        slice_unref(&stored);
    }
    assert_near(errors / (double)MANY, 0.05, 0.2);
    assert_near(errors / (double)bursts, 8, 0.2);
    assert_string_equal(object_fault_profile_find("bad")->name, "bad");
    tear_down();
}

static void a_lost_reply_took_effect(void **state) {
    struct object_fault_profile p = {.name = "lost", .lost_reply_fraction = 0.02};
    set_up(&p, 5);
    unsigned lost = 0;
    for (unsigned i = 0; i < MANY; i++) {
        one(i, OBJECT_PUT, 10);
        lost += calls[i].request.code == MINK_UNKNOWN_OUTCOME;
        struct slice stored = object_memory_find(memory, calls[i].request.key);
        assert_int_equal(stored.size, 10);
        slice_unref(&stored);
    }
    assert_near(lost / (double)MANY, 0.02, 0.15);
    struct object_fault_counts counts;
    object_fault_counts_now(store, &counts);
    assert_int_equal(counts.lost_replies, lost);
    for (unsigned i = 0; i < 1000; i++) { // a read has no outcome to be unsure of
        one(i, OBJECT_GET, 0);
        assert_true(calls[i].request.code == MINK_OK || calls[i].request.code == MINK_UNAVAILABLE);
        assert_true(calls[i].request.code == MINK_OK || calls[i].request.data.size == 0);
    }
    tear_down();
}

static void a_conflict_changes_nothing(void **state) {
    struct object_fault_profile p = {.name = "conflict", .conflict_fraction = 0.1};
    set_up(&p, 19);
    unsigned conflicts = 0;
    for (unsigned i = 0; i < MANY; i++) {
        one(i, OBJECT_PUT, 10);
        bool conflict = calls[i].request.code == MINK_CONFLICT;
        conflicts += conflict;
        struct slice stored = object_memory_find(memory, calls[i].request.key);
        assert_int_equal(stored.data != NULL, !conflict);
        slice_unref(&stored);
    }
    assert_near(conflicts / (double)MANY, 0.1, 0.1);
    tear_down();
}

static void a_late_put_takes_effect_after_its_caller_gave_up(void **state) {
    struct object_fault_profile p = {.name = "late", .late_fraction = 1, .late_ms_max = 5000};
    set_up(&p, 9);
    struct sim_process *process = sim_process_new(sim, "asker", 1, false);
    object_fault_set_shard(store, sim_world(sim));
    struct slices body = {0};
    slices_take(&body, slice_borrow("late", 4));
    object_put(store, &calls[0].request, sim_process_shards(process)[0], "late", &body, crc32c("late", 4), true, OBJECT_WAL_PUT, on_done);
    slices_deinit(&body);
    while (!calls[0].done) assert_true(sim_step(sim));
    assert_int_equal(calls[0].request.code, MINK_UNKNOWN_OUTCOME);
    assert_null(object_memory_find(memory, "late").data);
    sim_kill(process); // the bytes are on their way all the same
    uint64_t begin = sim_now_ns(sim);
    while (sim_step(sim)) {}
    assert_true(sim_now_ns(sim) - begin <= 5000 * NS_PER_MS);
    struct slice stored = object_memory_find(memory, "late");
    assert_int_equal(stored.size, 4);
    slice_unref(&stored);
    tear_down();
}

static void one_bit_is_flipped_or_the_end_is_torn_off(void **state) {
    struct object_fault_profile p = {.name = "fast"};
    set_up(&p, 13);
    one(0, OBJECT_PUT, 4096);
    p.flip_fraction = 0.1;
    p.torn_fraction = 0.1;
    object_fault_set_profile(store, &p);
    unsigned flips = 0, tears = 0;
    static const uint8_t zeros[4096];
    for (unsigned i = 0; i < MANY; i++) {
        one(0, OBJECT_GET, 0);
        const struct slice *data = &calls[0].request.data;
        assert_int_equal(calls[0].request.object_size, 4096);
        if (data->size < 4096) {
            tears++;
            assert_memory_equal(data->data, zeros, data->size);
            continue;
        }
        unsigned bits = 0;
        for (size_t k = 0; k < data->size; k++) bits += (unsigned)__builtin_popcount(data->data[k]);
        assert_true(bits <= 1);
        flips += bits;
    }
    assert_near(flips / (double)MANY, 0.1, 0.05);
    assert_near(tears / (double)MANY, 0.1, 0.05);
    struct slice stored = object_memory_find(memory, "k/00000");
    assert_memory_equal(stored.data, zeros, 4096); // what is stored is whole
    slice_unref(&stored);
    tear_down();
}

static void all_requests_stand_still_once_a_stretch(void **state) {
    struct object_fault_profile p = {.name = "stall", .put_p50_ms = 10, .put_p99_ms = 10, .stall_every_s = 60, .stall_s = 10};
    set_up(&p, 17);
    unsigned stalled = 0;
    for (unsigned i = 0; sim_now_ns(sim) < 1800 * NS_PER_S; i++) {
        mink_assert(i < MANY * 10);
        one(i % MANY, OBJECT_PUT, 0);
        double ms = (double)(calls[i % MANY].end_ns - calls[i % MANY].begin_ns) / 1e6;
        assert_true(ms <= 20020);
        stalled += ms > 9000;
        if (ms <= 9000) assert_near(ms, 10, 0.01);
        sim_run_for(sim, 50 * NS_PER_MS);
    }
    assert_true(stalled >= 28 && stalled <= 31); // one a minute in half an hour
    tear_down();
}

static uint64_t run_hash(uint64_t seed) {
    struct object_fault_profile p = {.name = "all", .put_p50_ms = 20, .put_p99_ms = 90, .get_p50_ms = 10, .get_p99_ms = 40, .slow_fraction = 0.1, .slow_ms = 300, .error_fraction = 0.1, .lost_reply_fraction = 0.1, .late_fraction = 0.1, .late_ms_max = 500, .flip_fraction = 0.1, .torn_fraction = 0.1};
    set_up(&p, seed);
    for (unsigned i = 0; i < 2000; i++) {
        one(i % 500, i % 3 ? OBJECT_GET : OBJECT_PUT, 100);
        sim_trace(sim, "%d %zu", calls[i % 500].request.code, calls[i % 500].request.data.size);
    }
    while (sim_step(sim)) {}
    uint64_t hash = sim_trace_hash(sim);
    tear_down();
    return hash;
}

static void equal_seeds_give_equal_faults(void **state) {
    assert_true(run_hash(1) == run_hash(1));
    assert_true(run_hash(1) != run_hash(2));
}

static void a_store_behind_faults_keeps_its_promises(void **state) {
    struct shard *s = shard_start("real");
    struct object_fault_profile p = {.name = "tiny", .put_p50_ms = 0.01, .put_p99_ms = 0.05, .get_p50_ms = 0.01, .get_p99_ms = 0.05};
    struct object_store *slow = object_fault_new(object_memory_new(), &p, 1);
    struct object_counts first, last;
    object_counts_now(&first);
    check_store(slow, s);
    struct waited w;
    assert_int_equal(get_range(slow, s, &w, "range", 0, 0), MINK_OK);
    object_counts_now(&last);
    assert_int_equal(w.request.data.size, 10);
    slice_unref(&w.request.data);
    assert_true(last.puts - first.puts < 60); // each request is counted once
    shard_stop(s);
    object_store_close(slow);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(latencies_have_the_quantiles_of_their_profile),
        cmocka_unit_test(size_costs_time_at_the_profiles_rate),
        cmocka_unit_test(errors_come_in_bursts_and_nothing_happens),
        cmocka_unit_test(a_lost_reply_took_effect),
        cmocka_unit_test(a_conflict_changes_nothing),
        cmocka_unit_test(a_late_put_takes_effect_after_its_caller_gave_up),
        cmocka_unit_test(one_bit_is_flipped_or_the_end_is_torn_off),
        cmocka_unit_test(all_requests_stand_still_once_a_stretch),
        cmocka_unit_test(equal_seeds_give_equal_faults),
        cmocka_unit_test(a_store_behind_faults_keeps_its_promises),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
