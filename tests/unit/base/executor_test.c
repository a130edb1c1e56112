// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/executor.h"
#include "base/mem.h"

#include <semaphore.h>

struct counted { struct task task; int number; };
static int seen[3000], seen_count;
static sem_t done;

static void record(struct task *task) {
    seen[seen_count++] = container_of(task, struct counted, task)->number;
    if (seen_count == 3000) sem_post(&done);
}

static void tasks_of_one_sender_run_in_order(void **state) {
    struct shard *s = shard_start("test");
    static struct counted tasks[3000];
    sem_init(&done, 0, 0);
    for (int i = 0; i < 3000; i++) {
        tasks[i] = (struct counted){.task.run = record, .number = i};
        shard_post(s, &tasks[i].task);
    }
    sem_wait(&done);
    for (int i = 0; i < 3000; i++) assert_int_equal(seen[i], i);
    shard_stop(s);
}

struct timers { struct shard *s; struct timer a, b, c; char order[8]; int count; uint64_t started_ns, a_ns; sem_t done; };
static struct timers t;

static void fire_a(struct timer *timer) { t.order[t.count++] = 'a'; t.a_ns = clock_monotonic_ns(); sem_post(&t.done); }
static void fire_b(struct timer *timer) { t.order[t.count++] = 'b'; }
static void fire_c(struct timer *timer) { t.order[t.count++] = 'c'; }

static void start_timers(void *ctx) {
    timer_init(&t.a, t.s, fire_a);
    timer_init(&t.b, t.s, fire_b);
    timer_init(&t.c, t.s, fire_c);
    t.started_ns = shard_now_ns(t.s);
    timer_start(&t.a, 30 * NS_PER_MS);
    timer_start(&t.b, 10 * NS_PER_MS);
    timer_start(&t.c, 20 * NS_PER_MS);
    timer_stop(&t.c);
    assert_false(timer_armed(&t.c));
    assert_true(timer_armed(&t.b));
}

static void timers_fire_by_due_time_and_stopped_ones_do_not(void **state) {
    sem_init(&t.done, 0, 0);
    t.s = shard_start("timers");
    shard_call_wait(t.s, start_timers, NULL);
    sem_wait(&t.done);
    assert_int_equal(t.count, 2);
    assert_memory_equal(t.order, "ba", 2);
    assert_true(t.a_ns - t.started_ns >= 30 * NS_PER_MS);
    shard_stop(t.s);
}

struct job { struct work work; bool ran_on_shard, done_on_shard; sem_t sem; };
static void job_run(struct work *w) { container_of(w, struct job, work)->ran_on_shard = shard_is_current(w->home); }
static void job_done(struct work *w) {
    struct job *j = container_of(w, struct job, work);
    j->done_on_shard = shard_is_current(w->home);
    sem_post(&j->sem);
}

static void work_runs_in_the_pool_and_completes_on_its_shard(void **state) {
    struct shard *s = shard_start("home");
    struct work_pool *p = work_pool_start("pool", 2);
    struct job jobs[20];
    for (int i = 0; i < 20; i++) {
        jobs[i] = (struct job){.work = {.run = job_run, .done = job_done, .home = s}};
        sem_init(&jobs[i].sem, 0, 0);
        work_submit(p, &jobs[i].work);
    }
    for (int i = 0; i < 20; i++) {
        sem_wait(&jobs[i].sem);
        assert_false(jobs[i].ran_on_shard);
        assert_true(jobs[i].done_on_shard);
    }
    work_pool_stop(p);
    shard_stop(s);
}

static struct timer many[500];
static uint64_t last_due;
static int fired;
static sem_t all;
static void fire_many(struct timer *timer) {
    assert_true(timer->due_ns >= last_due);
    last_due = timer->due_ns;
    if (++fired == 250) sem_post(&all);
}
static void start_many(void *ctx) {
    struct shard *s = ctx;
    for (int i = 0; i < 500; i++) {
        timer_init(&many[i], s, fire_many);
        timer_start(&many[i], random_below(shard_random(s), 20) * NS_PER_MS);
    }
    for (int i = 0; i < 500; i += 2) timer_stop(&many[i]);
}

static void the_timer_heap_keeps_order_under_random_stops(void **state) {
    struct shard *s = shard_start("heap");
    sem_init(&all, 0, 0);
    shard_call_wait(s, start_many, s);
    sem_wait(&all);
    shard_stop(s);
    assert_int_equal(fired, 250);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_of_one_sender_run_in_order),
        cmocka_unit_test(timers_fire_by_due_time_and_stopped_ones_do_not),
        cmocka_unit_test(work_runs_in_the_pool_and_completes_on_its_shard),
        cmocka_unit_test(the_timer_heap_keeps_order_under_random_stops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
