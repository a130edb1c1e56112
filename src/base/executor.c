// SPDX-License-Identifier: Apache-2.0
// The real executor: a shard is a thread with a locked task list and a heap of timers; a work pool is threads on one list.
//
// The list's lock is held for a few instructions; a poster signals only when the shard sleeps, and the shard takes the whole
// list at once, so under load both locks and wake-ups are amortised over a turn.
#include "base/executor.h"

#include "base/clock.h"
#include "base/mem.h"

#include <pthread.h>
#include <string.h>

struct thread {
    pthread_t id;
    void (*run)(void *ctx);
    void *ctx;
    char name[16];
};

static void *thread_main(void *arg) {
    struct thread *t = arg;
    pthread_setname_np(pthread_self(), t->name);
    t->run(t->ctx);
    return NULL;
}

struct thread *thread_start(const char *name, void (*run)(void *ctx), void *ctx) {
    struct thread *t = mem_new(struct thread);
    t->run = run;
    t->ctx = ctx;
    strncpy(t->name, name, sizeof t->name - 1);
    int failed = pthread_create(&t->id, NULL, thread_main, t);
    if (failed) mink_panic(__FILE__, __LINE__, "thread %s: %s", name, strerror(failed));
    return t;
}

void thread_join(struct thread *t) {
    pthread_join(t->id, NULL);
    mem_free(t);
}

struct real_shard {
    struct shard shard;
    pthread_mutex_t lock; // guards first, last, sleeping, stopping
    pthread_cond_t wake;
    struct task *first, **last;
    bool sleeping, stopping;
    struct thread *thread;
    // The shard's thread only:
    pthread_t self;
    uint64_t now_ns;
    struct timer **heap;
    size_t heap_count, heap_capacity;
    uint64_t timer_order;
};

// ---- timers: a binary heap by (due, order)

static bool timer_before(const struct timer *a, const struct timer *b) {
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->order < b->order;
}

static void heap_put(struct real_shard *s, size_t at, struct timer *t) {
    s->heap[at] = t;
    t->heap_index = at + 1;
}

static void heap_up(struct real_shard *s, size_t at, struct timer *t) {
    for (; at > 0 && timer_before(t, s->heap[(at - 1) / 2]); at = (at - 1) / 2) heap_put(s, at, s->heap[(at - 1) / 2]);
    heap_put(s, at, t);
}

static void heap_down(struct real_shard *s, size_t at, struct timer *t) {
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= s->heap_count) break;
        if (child + 1 < s->heap_count && timer_before(s->heap[child + 1], s->heap[child])) child++;
        if (!timer_before(s->heap[child], t)) break;
        heap_put(s, at, s->heap[child]);
        at = child;
    }
    heap_put(s, at, t);
}

static void heap_remove(struct real_shard *s, struct timer *t) {
    size_t at = t->heap_index - 1;
    t->heap_index = 0;
    struct timer *moved = s->heap[--s->heap_count];
    if (moved == t) return;
    if (at > 0 && timer_before(moved, s->heap[(at - 1) / 2])) heap_up(s, at, moved);
    else heap_down(s, at, moved);
}

void timer_init(struct timer *t, struct shard *s, void (*fire)(struct timer *t)) {
    *t = (struct timer){.shard = s, .fire = fire};
}

static void real_timer_stop(struct shard *base, struct timer *t) {
    struct real_shard *s = container_of(base, struct real_shard, shard);
    if (t->heap_index) heap_remove(s, t);
}

static void real_timer_start(struct shard *base, struct timer *t, uint64_t delay_ns) {
    struct real_shard *s = container_of(base, struct real_shard, shard);
    mink_assert(pthread_equal(pthread_self(), s->self));
    real_timer_stop(base, t);
    t->due_ns = s->now_ns + delay_ns;
    t->order = s->timer_order++;
    if (s->heap_count == s->heap_capacity) {
        s->heap_capacity = s->heap_capacity ? s->heap_capacity * 2 : 16;
        s->heap = mem_realloc(s->heap, s->heap_capacity * sizeof *s->heap);
    }
    heap_up(s, s->heap_count++, t);
}

// ---- the loop

static void real_post(struct shard *base, struct task *task) {
    struct real_shard *s = container_of(base, struct real_shard, shard);
    task->next = NULL;
    pthread_mutex_lock(&s->lock);
    mink_assert(!s->stopping);
    *s->last = task;
    s->last = &task->next;
    // Under the lock: the task may lead to shard_stop, and the shard is gone before a signal sent later.
    if (s->sleeping) pthread_cond_signal(&s->wake);
    s->sleeping = false;
    pthread_mutex_unlock(&s->lock);
}

static uint64_t real_now(struct shard *base) { return container_of(base, struct real_shard, shard)->now_ns; }
static int64_t real_wall(struct shard *base) { return clock_wall_ms(); }
static bool real_is_current(struct shard *base) {
    return pthread_equal(pthread_self(), container_of(base, struct real_shard, shard)->self);
}

// Waits for tasks or the next timer; gives the whole list. NULL with *end set when stopping and empty.
static struct task *take_tasks(struct real_shard *s, bool *end) {
    pthread_mutex_lock(&s->lock);
    while (s->first == NULL && !s->stopping) {
        s->sleeping = true;
        if (s->heap_count == 0) {
            pthread_cond_wait(&s->wake, &s->lock);
        } else {
            uint64_t due = s->heap[0]->due_ns;
            struct timespec until = {.tv_sec = (time_t)(due / NS_PER_S), .tv_nsec = (long)(due % NS_PER_S)};
            if (clock_monotonic_ns() >= due || pthread_cond_timedwait(&s->wake, &s->lock, &until) != 0) break;
        }
    }
    s->sleeping = false;
    struct task *tasks = s->first;
    s->first = NULL;
    s->last = &s->first;
    *end = tasks == NULL && s->stopping;
    pthread_mutex_unlock(&s->lock);
    return tasks;
}

static void shard_main(void *ctx) {
    struct real_shard *s = ctx;
    for (bool end = false; !end;) {
        struct task *tasks = take_tasks(s, &end);
        s->now_ns = clock_monotonic_ns();
        while (tasks) {
            struct task *task = tasks;
            tasks = task->next; // the task may be gone after run
            task->run(task);
        }
        while (!end && s->heap_count && s->heap[0]->due_ns <= s->now_ns) {
            struct timer *t = s->heap[0];
            heap_remove(s, t);
            t->fire(t);
        }
    }
}

struct start {
    struct real_shard *shard;
    pthread_mutex_t lock;
    pthread_cond_t started;
    bool done;
};

static void shard_entry(void *ctx) {
    struct start *start = ctx;
    struct real_shard *s = start->shard;
    s->self = pthread_self();
    s->now_ns = clock_monotonic_ns();
    pthread_mutex_lock(&start->lock);
    start->done = true;
    pthread_cond_signal(&start->started);
    pthread_mutex_unlock(&start->lock);
    shard_main(s);
}

static const struct shard_ops real_ops = {real_post, real_timer_start, real_timer_stop, real_now, real_wall, real_is_current};

struct shard *shard_start(const char *name) {
    struct real_shard *s = mem_new(struct real_shard);
    s->shard.ops = &real_ops;
    s->shard.name = mem_strdup(name);
    s->last = &s->first;
    uint64_t seed;
    random_system_bytes(&seed, sizeof seed);
    random_seed(&s->shard.random, seed);
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&s->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    // The thread's own id must be known before anybody may ask shard_is_current.
    struct start start = {.shard = s, .lock = PTHREAD_MUTEX_INITIALIZER, .started = PTHREAD_COND_INITIALIZER};
    pthread_mutex_lock(&start.lock);
    s->thread = thread_start(name, shard_entry, &start);
    while (!start.done) pthread_cond_wait(&start.started, &start.lock);
    pthread_mutex_unlock(&start.lock);
    return &s->shard;
}

void shard_stop(struct shard *base) {
    struct real_shard *s = container_of(base, struct real_shard, shard);
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    pthread_mutex_unlock(&s->lock);
    pthread_cond_signal(&s->wake);
    thread_join(s->thread);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->wake);
    mem_free(s->heap);
    mem_free((char *)s->shard.name);
    mem_free(s);
}

struct call {
    struct task task;
    void (*fn)(void *ctx);
    void *ctx;
    pthread_mutex_t lock;
    pthread_cond_t ran;
    bool done;
};

static void run_call(struct task *task) {
    struct call *call = container_of(task, struct call, task);
    call->fn(call->ctx);
    mem_free(call);
}

void shard_post_call(struct shard *s, void (*fn)(void *ctx), void *ctx) {
    struct call *call = mem_new(struct call);
    call->task.run = run_call;
    call->fn = fn;
    call->ctx = ctx;
    shard_post(s, &call->task);
}

static void run_waited(struct task *task) {
    struct call *call = container_of(task, struct call, task);
    call->fn(call->ctx);
    pthread_mutex_lock(&call->lock);
    call->done = true;
    pthread_cond_signal(&call->ran); // under the lock: the waiter's frame is gone right after
    pthread_mutex_unlock(&call->lock);
}

void shard_call_wait(struct shard *s, void (*fn)(void *ctx), void *ctx) {
    struct call call = {.task.run = run_waited, .fn = fn, .ctx = ctx, .lock = PTHREAD_MUTEX_INITIALIZER, .ran = PTHREAD_COND_INITIALIZER};
    shard_post(s, &call.task);
    pthread_mutex_lock(&call.lock);
    while (!call.done) pthread_cond_wait(&call.ran, &call.lock);
    pthread_mutex_unlock(&call.lock);
}

// ---- work pool

struct real_pool {
    struct work_pool pool;
    pthread_mutex_t lock; // guards first, last, stopping
    pthread_cond_t wake;
    struct task *first, **last;
    bool stopping;
    unsigned thread_count;
    struct thread **threads;
};

static void work_done(struct task *task) {
    struct work *w = container_of(task, struct work, task);
    w->done(w);
}

static void pool_main(void *ctx) {
    struct real_pool *p = ctx;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (p->first == NULL && !p->stopping) pthread_cond_wait(&p->wake, &p->lock);
        struct task *task = p->first;
        if (task == NULL) break;
        p->first = task->next;
        if (p->first == NULL) p->last = &p->first;
        pthread_mutex_unlock(&p->lock);
        struct work *w = container_of(task, struct work, task);
        w->run(w);
        w->task.run = work_done;
        shard_post(w->home, &w->task);
        pthread_mutex_lock(&p->lock);
    }
    pthread_mutex_unlock(&p->lock);
}

static void real_submit(struct work_pool *base, struct work *w) {
    struct real_pool *p = container_of(base, struct real_pool, pool);
    w->task.next = NULL;
    pthread_mutex_lock(&p->lock);
    mink_assert(!p->stopping);
    *p->last = &w->task;
    p->last = &w->task.next;
    pthread_cond_signal(&p->wake); // under the lock, as in real_post
    pthread_mutex_unlock(&p->lock);
}

static const struct work_pool_ops real_pool_ops = {real_submit};

struct work_pool *work_pool_start(const char *name, unsigned threads) {
    struct real_pool *p = mem_new(struct real_pool);
    p->pool.ops = &real_pool_ops;
    p->last = &p->first;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    p->thread_count = threads;
    p->threads = mem_new_array(struct thread *, threads);
    for (unsigned i = 0; i < threads; i++) p->threads[i] = thread_start(name, pool_main, p);
    return &p->pool;
}

void work_pool_stop(struct work_pool *base) {
    struct real_pool *p = container_of(base, struct real_pool, pool);
    pthread_mutex_lock(&p->lock);
    p->stopping = true;
    pthread_mutex_unlock(&p->lock);
    pthread_cond_broadcast(&p->wake);
    for (unsigned i = 0; i < p->thread_count; i++) thread_join(p->threads[i]);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->wake);
    mem_free(p->threads);
    mem_free(p);
}
