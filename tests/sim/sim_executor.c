// SPDX-License-Identifier: Apache-2.0
#include "sim/sim_executor.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SHARDS_MAX 64 // that are ready at once
#define WALL_START_MS 1767225600000 // 2026-01-01 UTC

struct sim_shard {
    struct shard shard;
    struct sim_process *process; // NULL: the world
    struct sim *sim;
    struct task *first, **last;
    double rate;           // of its clock against the world's
    uint64_t now_ns;       // its own clock, read once per turn
    int64_t wall_offset_ms;
    unsigned number;
    struct sim_shard *all_next;
};

struct sim_process {
    struct sim *sim;
    char *name;
    struct shard **shards;
    uint32_t shard_count;
    struct work_pool pool;
    struct task *work_first, **work_last;
    bool dead;
    uint64_t resume_ns;
    struct sim_process *next;
};

struct sim {
    struct random order, world_random;
    uint64_t now_ns, events, hash;
    bool print;
    struct sim_shard *world, *current, *all;
    bool in_work;
    struct sim_process *current_process; // also while a work runs
    struct sim_shard **shards;
    uint32_t shard_count, shard_capacity;
    struct sim_process *processes;
    struct timer **heap; // due_ns in the world's time
    size_t heap_count, heap_capacity;
    uint64_t timer_order;
    unsigned shard_numbers;
};

static struct sim_shard *shard_of(struct shard *s) { return container_of(s, struct sim_shard, shard); }
static bool gone(const struct sim_shard *s) { return s->process && s->process->dead; }
static bool paused(const struct sim_process *p) { return p && p->resume_ns > p->sim->now_ns; }
// The running task belongs to a process that was killed meanwhile: nothing it does has an effect.
static bool ghost(const struct sim *sim) { return sim->current_process && sim->current_process->dead; }

// ---- trace

static void fold(struct sim *sim, const void *bytes, size_t size) {
    const uint8_t *at = bytes;
    for (size_t i = 0; i < size; i++) sim->hash = (sim->hash ^ at[i]) * 1099511628211u; // FNV-1a
}

void sim_trace(struct sim *sim, const char *format, ...) {
    char line[1024];
    va_list args;
    va_start(args, format);
    int size = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    fold(sim, &sim->now_ns, sizeof sim->now_ns);
    fold(sim, line, (size_t)size < sizeof line ? (size_t)size : sizeof line - 1);
    if (sim->print) fprintf(stderr, "%12.6f %s\n", (double)sim->now_ns / 1e9, line);
}

void sim_trace_print(struct sim *sim, bool print) { sim->print = print; }
uint64_t sim_trace_hash(const struct sim *sim) { return sim->hash; }
uint64_t sim_events(const struct sim *sim) { return sim->events; }

// ---- timers: a binary heap by (due, order) over all shards

static bool before(const struct timer *a, const struct timer *b) { return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->order < b->order; }

static void place(struct sim *sim, size_t at, struct timer *t) {
    sim->heap[at] = t;
    t->heap_index = at + 1;
}
static void up(struct sim *sim, size_t at, struct timer *t) {
    for (; at > 0 && before(t, sim->heap[(at - 1) / 2]); at = (at - 1) / 2) place(sim, at, sim->heap[(at - 1) / 2]);
    place(sim, at, t);
}
static void down(struct sim *sim, size_t at, struct timer *t) {
    for (size_t child; (child = 2 * at + 1) < sim->heap_count; at = child) {
        if (child + 1 < sim->heap_count && before(sim->heap[child + 1], sim->heap[child])) child++;
        if (!before(sim->heap[child], t)) break;
        place(sim, at, sim->heap[child]);
    }
    place(sim, at, t);
}
static void push(struct sim *sim, struct timer *t, uint64_t due_ns) {
    t->due_ns = due_ns;
    t->order = sim->timer_order++;
    if (sim->heap_count == sim->heap_capacity) {
        sim->heap_capacity = sim->heap_capacity ? sim->heap_capacity * 2 : 64;
        sim->heap = mem_realloc(sim->heap, sim->heap_capacity * sizeof *sim->heap);
    }
    up(sim, sim->heap_count++, t);
}
static void pull(struct sim *sim, struct timer *t) {
    size_t at = t->heap_index - 1;
    t->heap_index = 0;
    struct timer *moved = sim->heap[--sim->heap_count];
    if (moved == t) return;
    if (at > 0 && before(moved, sim->heap[(at - 1) / 2])) up(sim, at, moved);
    else down(sim, at, moved);
}

// ---- shards

static void sim_post(struct shard *base, struct task *task) {
    struct sim_shard *s = shard_of(base);
    if (gone(s) || ghost(s->sim)) return;
    task->next = NULL;
    *s->last = task;
    s->last = &task->next;
}

static void sim_timer_stop(struct shard *base, struct timer *t) {
    struct sim_shard *s = shard_of(base);
    if (!gone(s) && t->heap_index) pull(s->sim, t);
}

static void sim_timer_start(struct shard *base, struct timer *t, uint64_t delay_ns) {
    struct sim_shard *s = shard_of(base);
    if (gone(s) || ghost(s->sim)) return;
    mink_assert(s->sim->current == s && !s->sim->in_work); // the shard's own thread
    sim_timer_stop(base, t);
    // Rounded up: on the shard's clock, too, the time has come when it fires.
    push(s->sim, t, s->sim->now_ns + (uint64_t)((double)delay_ns / s->rate) + (s->rate != 1 ? 2 : 0));
}

static uint64_t own_clock(const struct sim_shard *s) { return (uint64_t)((double)s->sim->now_ns * s->rate) + NS_PER_S; }
static uint64_t sim_shard_now(struct shard *base) { return shard_of(base)->now_ns; }
static int64_t sim_wall(struct shard *base) {
    struct sim_shard *s = shard_of(base);
    return WALL_START_MS + s->wall_offset_ms + (int64_t)(s->sim->now_ns / NS_PER_MS);
}
static bool sim_is_current(struct shard *base) { return shard_of(base)->sim->current == shard_of(base) && !shard_of(base)->sim->in_work; }

static const struct shard_ops shard_ops = {sim_post, sim_timer_start, sim_timer_stop, sim_shard_now, sim_wall, sim_is_current};

static struct sim_shard *shard_new(struct sim *sim, struct sim_process *p, const char *name) {
    struct sim_shard *s = mem_new(struct sim_shard);
    s->shard.ops = &shard_ops;
    s->shard.name = name;
    random_seed(&s->shard.random, random_u64(&sim->order));
    s->sim = sim;
    s->process = p;
    s->last = &s->first;
    s->rate = 1;
    s->number = sim->shard_numbers++;
    s->now_ns = own_clock(s);
    s->all_next = sim->all;
    sim->all = s;
    if (sim->shard_count == sim->shard_capacity) {
        sim->shard_capacity = sim->shard_capacity ? sim->shard_capacity * 2 : 16;
        sim->shards = mem_realloc(sim->shards, sim->shard_capacity * sizeof *sim->shards);
    }
    sim->shards[sim->shard_count++] = s;
    return s;
}

// ---- processes

static void pool_submit(struct work_pool *pool, struct work *w) {
    struct sim_process *p = container_of(pool, struct sim_process, pool);
    if (p->dead || ghost(p->sim)) return;
    w->task.next = NULL;
    *p->work_last = &w->task;
    p->work_last = &w->task.next;
}
static const struct work_pool_ops pool_ops = {pool_submit};

struct sim_process *sim_process_new(struct sim *sim, const char *name, uint32_t shard_count, bool skew) {
    struct sim_process *p = mem_new(struct sim_process);
    p->sim = sim;
    p->name = mem_strdup(name);
    p->pool.ops = &pool_ops;
    p->work_last = &p->work_first;
    p->shards = mem_new_array(struct shard *, shard_count);
    p->shard_count = shard_count;
    double rate = skew ? 0.95 + 0.1 * random_unit(&sim->order) : 1;
    int64_t wall = skew ? (int64_t)random_below(&sim->order, 7200001) - 3600000 : 0;
    for (uint32_t i = 0; i < shard_count; i++) {
        struct sim_shard *s = shard_new(sim, p, p->name);
        s->rate = rate;
        s->wall_offset_ms = wall;
        s->now_ns = own_clock(s);
        p->shards[i] = &s->shard;
    }
    p->next = sim->processes;
    sim->processes = p;
    return p;
}

struct shard *const *sim_process_shards(struct sim_process *p) { return p->shards; }
struct work_pool *sim_process_pool(struct sim_process *p) { return &p->pool; }
bool sim_alive(const struct sim_process *p) { return !p->dead; }
struct sim_process *sim_current(struct sim *sim) { return sim->current_process; }

void sim_kill(struct sim_process *p) {
    struct sim *sim = p->sim;
    if (p->dead) return;
    sim_trace(sim, "kill %s", p->name);
    p->dead = true;
    p->work_first = NULL;
    p->work_last = &p->work_first;
    size_t kept = 0;
    for (size_t i = 0; i < sim->heap_count; i++)
        if (!gone(shard_of(sim->heap[i]->shard))) sim->heap[kept++] = sim->heap[i];
    sim->heap_count = 0;
    for (size_t i = 0; i < kept; i++) up(sim, sim->heap_count++, sim->heap[i]);
    uint32_t shards = 0;
    for (uint32_t i = 0; i < sim->shard_count; i++) {
        struct sim_shard *s = sim->shards[i];
        if (s->process != p) {
            sim->shards[shards++] = s;
            continue;
        }
        s->first = NULL;
        s->last = &s->first;
    }
    sim->shard_count = shards;
}

void sim_pause(struct sim_process *p, uint64_t ns) {
    sim_trace(p->sim, "pause %s for %.3f s", p->name, (double)ns / 1e9);
    p->resume_ns = p->sim->now_ns + ns;
}

// ---- the world

struct sim *sim_new(uint64_t seed) {
    struct sim *sim = mem_new(struct sim);
    random_seed(&sim->order, seed);
    random_seed(&sim->world_random, seed ^ 0x5851f42d4c957f2dull);
    sim->hash = 14695981039346656037u;
    sim->world = shard_new(sim, NULL, "world");
    return sim;
}

void sim_free(struct sim *sim) {
    while (sim->all) {
        struct sim_shard *s = sim->all;
        sim->all = s->all_next;
        mem_free(s);
    }
    while (sim->processes) {
        struct sim_process *p = sim->processes;
        sim->processes = p->next;
        mem_free(p->name);
        mem_free(p->shards);
        mem_free(p);
    }
    mem_free(sim->heap);
    mem_free(sim->shards);
    mem_free(sim);
}

struct random *sim_random(struct sim *sim) { return &sim->world_random; }
uint64_t sim_now_ns(const struct sim *sim) { return sim->now_ns; }
struct shard *sim_world(struct sim *sim) { return &sim->world->shard; }

static void work_done(struct task *task) {
    struct work *w = container_of(task, struct work, task);
    w->done(w);
}

static void run_work(struct sim *sim, struct sim_process *p) {
    struct task *task = p->work_first;
    p->work_first = task->next;
    if (p->work_first == NULL) p->work_last = &p->work_first;
    struct work *w = container_of(task, struct work, task);
    sim->current_process = p;
    sim->in_work = true;
    w->run(w);
    w->task.run = work_done;
    if (!p->dead) shard_post(w->home, &w->task);
    sim->in_work = false;
    sim->current_process = NULL;
}

static void enter(struct sim *sim, struct sim_shard *s) {
    sim->current = s;
    sim->current_process = s->process;
    s->now_ns = own_clock(s);
}
static void leave(struct sim *sim) {
    sim->current = NULL;
    sim->current_process = NULL;
}

// One of the shards and pools that have something to do, drawn; false when there is none.
static bool run_ready(struct sim *sim) {
    struct sim_shard *shards[SHARDS_MAX];
    struct sim_process *pools[SHARDS_MAX];
    uint32_t shard_count = 0, pool_count = 0;
    for (uint32_t i = 0; i < sim->shard_count && shard_count < SHARDS_MAX; i++)
        if (sim->shards[i]->first && !paused(sim->shards[i]->process)) shards[shard_count++] = sim->shards[i];
    for (struct sim_process *p = sim->processes; p && pool_count < SHARDS_MAX; p = p->next)
        if (p->work_first && !paused(p)) pools[pool_count++] = p;
    if (shard_count + pool_count == 0) return false;
    uint64_t chosen = random_below(&sim->order, shard_count + pool_count);
    sim->now_ns += 200 + random_below(&sim->order, 800);
    uint64_t event[2] = {sim->now_ns, chosen < shard_count ? shards[chosen]->number : 1000 + chosen};
    fold(sim, event, sizeof event);
    if (chosen >= shard_count) {
        run_work(sim, pools[chosen - shard_count]);
        return true;
    }
    struct sim_shard *s = shards[chosen];
    struct task *task = s->first;
    s->first = task->next;
    if (s->first == NULL) s->last = &s->first;
    enter(sim, s);
    task->run(task);
    leave(sim);
    return true;
}

// A timer that is due, or, when nothing is ready, the next one: time moves to it, up to `until`.
static bool fire_timer(struct sim *sim, uint64_t until_ns) {
    while (sim->heap_count && sim->heap[0]->due_ns <= until_ns) {
        struct timer *t = sim->heap[0];
        struct sim_shard *s = shard_of(t->shard);
        pull(sim, t);
        if (t->due_ns > sim->now_ns) sim->now_ns = t->due_ns;
        if (paused(s->process)) {
            push(sim, t, s->process->resume_ns);
            continue;
        }
        sim->now_ns += 100; // what spins passes time
        uint64_t event[2] = {sim->now_ns, 10000 + s->number};
        fold(sim, event, sizeof event);
        enter(sim, s);
        t->fire(t);
        leave(sim);
        return true;
    }
    return false;
}

// Queued tasks of a paused process hold back nothing: its resumption is an event too.
static uint64_t next_resumption(const struct sim *sim) {
    uint64_t next = UINT64_MAX;
    for (const struct sim_process *p = sim->processes; p; p = p->next)
        if (!p->dead && paused(p) && p->resume_ns < next) next = p->resume_ns;
    return next;
}

static bool step_until(struct sim *sim, uint64_t until_ns) {
    sim->events++;
    if (fire_timer(sim, sim->now_ns) || run_ready(sim)) return true;
    uint64_t resumption = next_resumption(sim), limit = resumption < until_ns ? resumption : until_ns;
    if (fire_timer(sim, limit)) return true;
    if (resumption > until_ns) return false;
    sim->now_ns = resumption;
    return true;
}

bool sim_step(struct sim *sim) { return step_until(sim, UINT64_MAX - 1); }

bool sim_run_until(struct sim *sim, bool (*holds)(void *ctx), void *ctx, uint64_t ns_max) {
    uint64_t until_ns = sim->now_ns + ns_max;
    for (uint64_t events = 0;; events++) {
        if (holds(ctx)) return true;
        if (sim->now_ns > until_ns || events > 20000000 || !step_until(sim, until_ns)) return false;
    }
}

static bool never(void *ctx) { return false; }
void sim_run_for(struct sim *sim, uint64_t ns) {
    uint64_t until_ns = sim->now_ns + ns;
    sim_run_until(sim, never, NULL, ns);
    if (sim->now_ns < until_ns) sim->now_ns = until_ns;
}
