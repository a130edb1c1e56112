// SPDX-License-Identifier: Apache-2.0
// The loop of a protocol thread: tasks, timers, then grpc_completion_queue_next until the next timer is due.
//
// Posting pushes onto a lock-free stack that the loop takes whole and reverses, so tasks of one poster keep their order. A poster that
// finds the loop asleep puts one event on the queue, which ends `next`; `wake_pending` stays set until that event was seen.
//
// The C core has no function to put an event on a queue (its alarm is C++ only). A batch without operations is one: it completes at once.
// It needs a call, so each shard keeps one on a lame channel, which never touches the network.
#include "net/rpc_shard.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/rpc_internal.h"

#include <grpc/support/log.h>
#include <malloc.h>
#include <string.h>

struct rpc_shard {
    struct shard shard;
    grpc_completion_queue *queue;
    grpc_channel *wake_channel;
    grpc_call *wake_call;
    struct rpc_op wake;
    _Atomic(struct task *) posted; // newest first
    atomic_bool sleeping, wake_pending, stopping;
    struct thread *thread;
    _Atomic(const void *) self; // the address of a thread-local, which is a thread's identity
    // The shard's thread only:
    uint64_t now_ns;
    struct timer **heap; // binary heap by (due, order)
    size_t heap_count, heap_capacity;
    uint64_t timer_order;
};

static _Thread_local char thread_mark;

// What matters to an operator we say ourselves, with what we were doing.
static void forward_log(gpr_log_func_args *args) { log_debug("grpc", "message=\"%s\"", args->message); }

void net_process_init(void) {
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    gpr_set_log_function(forward_log);
    gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);
    grpc_init();
}

static struct rpc_shard *of(struct shard *s) { return container_of(s, struct rpc_shard, shard); }

grpc_completion_queue *rpc_shard_queue(struct shard *s) { return of(s)->queue; }

void rpc_start_batch(grpc_call *call, const grpc_op *ops, size_t count, struct rpc_op *op) {
    rpc_tsan_release(op);
    grpc_call_error failed = grpc_call_start_batch(call, ops, count, op, NULL);
    // Only a wrong use of the library fails here; what goes wrong on the wire comes as an event.
    if (failed != GRPC_CALL_OK) mink_panic(__FILE__, __LINE__, "grpc_call_start_batch: %s", grpc_call_error_to_string(failed));
}

// ---- timers

static bool timer_before(const struct timer *a, const struct timer *b) { return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->order < b->order; }

static void place(struct rpc_shard *s, size_t at, struct timer *t) {
    s->heap[at] = t;
    t->heap_index = at + 1;
}

static void settle(struct rpc_shard *s, size_t at, struct timer *t) {
    while (at > 0 && timer_before(t, s->heap[(at - 1) / 2])) {
        place(s, at, s->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    for (size_t child; (child = 2 * at + 1) < s->heap_count; at = child) {
        if (child + 1 < s->heap_count && timer_before(s->heap[child + 1], s->heap[child])) child++;
        if (!timer_before(s->heap[child], t)) break;
        place(s, at, s->heap[child]);
    }
    place(s, at, t);
}

static void rpc_timer_stop(struct shard *base, struct timer *t) {
    struct rpc_shard *s = of(base);
    if (!t->heap_index) return;
    size_t at = t->heap_index - 1;
    t->heap_index = 0;
    struct timer *last = s->heap[--s->heap_count];
    if (last != t) settle(s, at, last);
}

static void rpc_timer_start(struct shard *base, struct timer *t, uint64_t delay_ns) {
    struct rpc_shard *s = of(base);
    mink_assert(atomic_load(&s->self) == &thread_mark);
    rpc_timer_stop(base, t);
    t->due_ns = s->now_ns + delay_ns;
    t->order = s->timer_order++;
    if (s->heap_count == s->heap_capacity) {
        s->heap_capacity = s->heap_capacity ? s->heap_capacity * 2 : 16;
        s->heap = mem_realloc(s->heap, s->heap_capacity * sizeof *s->heap);
    }
    s->heap_count++;
    settle(s, s->heap_count - 1, t);
}

// ---- tasks

static void rpc_post(struct shard *base, struct task *task) {
    struct rpc_shard *s = of(base);
    task->next = atomic_load(&s->posted);
    while (!atomic_compare_exchange_weak(&s->posted, &task->next, task)) {}
    // The loop stores `sleeping` and then looks at `posted`; we stored `posted` and look at `sleeping`: one of us sees the other.
    if (!atomic_load(&s->sleeping) || atomic_exchange(&s->wake_pending, true)) return;
    rpc_start_batch(s->wake_call, NULL, 0, &s->wake);
}

static void on_wake(struct rpc_op *op, bool ok) { atomic_store(&container_of(op, struct rpc_shard, wake)->wake_pending, false); }

static void run_tasks(struct rpc_shard *s) {
    struct task *taken = atomic_exchange(&s->posted, NULL), *ordered = NULL;
    while (taken) {
        struct task *next = taken->next;
        taken->next = ordered;
        ordered = taken;
        taken = next;
    }
    while (ordered) {
        struct task *task = ordered;
        ordered = task->next; // the task may be gone after run
        task->run(task);
    }
}

static void run_timers(struct rpc_shard *s) {
    while (s->heap_count && s->heap[0]->due_ns <= s->now_ns) {
        struct timer *t = s->heap[0];
        rpc_timer_stop(&s->shard, t);
        t->fire(t);
    }
}

static void handle(grpc_event event) {
    struct rpc_op *op = event.tag;
    rpc_tsan_acquire(op);
    op->done(op, event.success != 0);
}

static void shard_main(void *ctx) {
    struct rpc_shard *s = ctx;
    atomic_store(&s->self, &thread_mark);
    for (;;) {
        s->now_ns = clock_monotonic_ns();
        run_tasks(s);
        run_timers(s);
        gpr_timespec until = gpr_inf_future(GPR_CLOCK_MONOTONIC);
        if (s->heap_count) {
            uint64_t due = s->heap[0]->due_ns;
            until = (gpr_timespec){.tv_sec = (int64_t)(due / NS_PER_S), .tv_nsec = (int32_t)(due % NS_PER_S), .clock_type = GPR_CLOCK_MONOTONIC};
        }
        atomic_store(&s->sleeping, true);
        if (atomic_load(&s->posted)) until = gpr_inf_past(GPR_CLOCK_MONOTONIC);
        else if (atomic_load(&s->stopping)) break;
        grpc_event event = grpc_completion_queue_next(s->queue, until, NULL);
        atomic_store(&s->sleeping, false);
        if (event.type != GRPC_OP_COMPLETE) continue;
        s->now_ns = clock_monotonic_ns();
        handle(event);
    }
    // Nobody posts any more, so nothing is started after the shutdown.
    grpc_call_unref(s->wake_call);
    grpc_channel_destroy(s->wake_channel);
    grpc_completion_queue_shutdown(s->queue);
    for (grpc_event event; (event = grpc_completion_queue_next(s->queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL)).type != GRPC_QUEUE_SHUTDOWN;)
        if (event.type == GRPC_OP_COMPLETE) handle(event);
}

static uint64_t rpc_now(struct shard *base) { return of(base)->now_ns; }
static int64_t rpc_wall(struct shard *base) { return clock_wall_ms(); }
static bool rpc_is_current(struct shard *base) { return atomic_load(&of(base)->self) == &thread_mark; }

static const struct shard_ops ops = {rpc_post, rpc_timer_start, rpc_timer_stop, rpc_now, rpc_wall, rpc_is_current};

struct shard *rpc_shard_start(const char *name) {
    struct rpc_shard *s = mem_new(struct rpc_shard);
    s->shard.ops = &ops;
    s->shard.name = mem_strdup(name);
    uint64_t seed;
    random_system_bytes(&seed, sizeof seed);
    random_seed(&s->shard.random, seed);
    s->queue = grpc_completion_queue_create_for_next(NULL);
    s->wake_channel = grpc_lame_client_channel_create("wake", GRPC_STATUS_UNAVAILABLE, "only for wake-ups");
    s->wake_call =
        grpc_channel_create_call(s->wake_channel, NULL, 0, s->queue, grpc_slice_from_static_string("/wake"), NULL, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
    s->wake.done = on_wake;
    s->thread = thread_start(name, shard_main, s);
    return &s->shard;
}

static void set_stopping(void *ctx) { atomic_store(&((struct rpc_shard *)ctx)->stopping, true); }

void rpc_shard_stop(struct shard *base) {
    struct rpc_shard *s = of(base);
    shard_post_call(base, set_stopping, s);
    thread_join(s->thread);
    grpc_completion_queue_destroy(s->queue);
    mem_free(s->heap);
    mem_free((char *)s->shard.name);
    mem_free(s);
}
