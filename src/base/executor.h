// SPDX-License-Identifier: Apache-2.0
// executor.h: where work happens.
//
// What      A shard is one thread with a queue and timers; state belongs to one shard and is touched by it alone. Other
//           threads post tasks. A work pool runs long CPU or blocking work and completes back on the asking shard.
//           Both are tables of functions, so that the simulator can run many shards in one thread on simulated time.
// Flow      any thread → shard_post → (shard) task.run;  shard → work_submit → (pool) run → (shard) done.
// Holds     Tasks posted by one thread to one shard run in order. A task or callback never runs before the call that
//           caused it has returned. A stopped timer does not fire.
// Owner     shard_post and work_submit: any thread. Timers and now: the shard's own thread.
// Bounds    The queue of tasks is bounded by the senders (each carries its own memory and has at most one in flight).
#ifndef MINK_BASE_EXECUTOR_H
#define MINK_BASE_EXECUTOR_H

#include "base/random.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Intrusive: embed one in what the message owns. It may be reused or freed once run has been entered.
struct task {
    struct task *next;
    void (*run)(struct task *task);
};
#define container_of(ptr, type, member) ((type *)((char *)(ptr) - offsetof(type, member)))

struct shard;

struct timer {
    struct shard *shard;
    void (*fire)(struct timer *timer); // once per start, on the shard
    uint64_t due_ns;
    size_t heap_index; // private: position + 1 while armed, 0 while not
    uint64_t order;    // private: ties fire in order of starting
};

struct work {
    struct task task;              // private
    void (*run)(struct work *w);   // on a pool thread
    void (*done)(struct work *w);  // on `home`, after run
    struct shard *home;
};

struct shard_ops {
    void (*post)(struct shard *s, struct task *task);
    void (*timer_start)(struct shard *s, struct timer *t, uint64_t delay_ns);
    void (*timer_stop)(struct shard *s, struct timer *t);
    uint64_t (*now_ns)(struct shard *s);
    int64_t (*wall_ms)(struct shard *s);
    bool (*is_current)(struct shard *s);
};
struct shard {
    const struct shard_ops *ops;
    struct random random;
    const char *name;
};

struct work_pool;
struct work_pool_ops {
    void (*submit)(struct work_pool *p, struct work *w);
};
struct work_pool {
    const struct work_pool_ops *ops;
};

// Real ones.
struct shard *shard_start(const char *name);  // a new thread; name is copied
void shard_stop(struct shard *s);             // runs what is queued, joins, frees; from another thread; no timer fires after
struct work_pool *work_pool_start(const char *name, unsigned threads);
void work_pool_stop(struct work_pool *p);     // finishes what was submitted, joins, frees

static inline void shard_post(struct shard *s, struct task *task) { s->ops->post(s, task); }
// Allocates a task; for rare events.
void shard_post_call(struct shard *s, void (*fn)(void *ctx), void *ctx);
// Posts and waits until fn has run. Never from a shard; for start-up, shut-down and tests.
void shard_call_wait(struct shard *s, void (*fn)(void *ctx), void *ctx);
// Monotonic time, read once per turn of the shard.
static inline uint64_t shard_now_ns(struct shard *s) { return s->ops->now_ns(s); }
static inline int64_t shard_wall_ms(struct shard *s) { return s->ops->wall_ms(s); }
static inline struct random *shard_random(struct shard *s) { return &s->random; }
static inline bool shard_is_current(struct shard *s) { return s->ops->is_current(s); }

void timer_init(struct timer *t, struct shard *s, void (*fire)(struct timer *t));
static inline void timer_start(struct timer *t, uint64_t delay_ns) { t->shard->ops->timer_start(t->shard, t, delay_ns); } // restarts when armed
static inline void timer_stop(struct timer *t) { t->shard->ops->timer_stop(t->shard, t); }
static inline bool timer_armed(const struct timer *t) { return t->heap_index != 0; }

static inline void work_submit(struct work_pool *p, struct work *w) { p->ops->submit(p, w); }

// Threads for adapters (gRPC queues, SQLite): named, joined by the owner.
struct thread;
struct thread *thread_start(const char *name, void (*run)(void *ctx), void *ctx);
void thread_join(struct thread *t); // frees

#define NS_PER_MS 1000000ull
#define NS_PER_S 1000000000ull

#endif
