// SPDX-License-Identifier: Apache-2.0
// A request's way: [delay before] → inner store → [delay after] → reply. What happens to it is drawn when it is submitted, under one
// lock, so that a single-threaded caller sees the same faults from the same seed. The effect falls at a random point of the delay: a
// caller that dies or gives up meanwhile leaves requests behind that have taken effect and others that still will.
#include "object/object_fault.h"

#include "base/mem.h"
#include "object/object_internal.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

static const struct object_fault_profile profiles[] = {
    {.name = "fast"},
    {.name = "s3", .put_p50_ms = 28, .put_p99_ms = 75, .put_mb_per_s = 80, .get_p50_ms = 25, .get_p99_ms = 85, .get_mb_per_s = 90},
    {.name = "s3-busy", .put_p50_ms = 56, .put_p99_ms = 150, .put_mb_per_s = 40, .get_p50_ms = 50, .get_p99_ms = 170, .get_mb_per_s = 45,
     .slow_fraction = 0.005, .slow_ms = 500},
    {.name = "express", .put_p50_ms = 6, .put_p99_ms = 15, .put_mb_per_s = 200, .get_p50_ms = 4, .get_p99_ms = 10, .get_mb_per_s = 200},
    {.name = "bad", .put_p50_ms = 28, .put_p99_ms = 75, .put_mb_per_s = 80, .get_p50_ms = 25, .get_p99_ms = 85, .get_mb_per_s = 90,
     .error_fraction = 0.01, .lost_reply_fraction = 0.001, .stall_every_s = 60, .stall_s = 10},
    {.name = "flat5", .put_p50_ms = 5, .put_p99_ms = 5, .get_p50_ms = 5, .get_p99_ms = 5},
    {.name = "flat20", .put_p50_ms = 20, .put_p99_ms = 20, .get_p50_ms = 20, .get_p99_ms = 20},
    {.name = "flat50", .put_p50_ms = 50, .put_p99_ms = 50, .get_p50_ms = 50, .get_p99_ms = 50},
    {.name = "flat200", .put_p50_ms = 200, .put_p99_ms = 200, .get_p50_ms = 200, .get_p99_ms = 200},
};

const struct object_fault_profile *object_fault_profile_find(const char *name) {
    for (size_t i = 0; i < sizeof profiles / sizeof *profiles; i++)
        if (strcmp(profiles[i].name, name) == 0) return &profiles[i];
    return NULL;
}

struct fault_store {
    struct object_store store;
    struct object_store *inner;
    struct shard *shard; // NULL: the asking one
    uint64_t seed;
    pthread_mutex_t lock; // guards what follows; nothing is called while it is held
    struct object_fault_profile profile;
    struct random random;
    bool in_burst;
    struct object_fault_counts counts;
};

enum fate { FATE_NORMAL, FATE_ERROR, FATE_CONFLICT, FATE_LOST_REPLY, FATE_LATE, FATE_FLIP, FATE_TORN };

struct fault_call {
    struct object_request inner;
    struct object_request *outer; // NULL once it has been answered
    struct fault_store *f;
    struct task task;
    struct timer timer;
    enum fate fate;
    uint64_t before_ns, after_ns, late_ns;
    double where; // of a flip or tear, [0, 1)
    char **keys;  // a late remove's own copies
};

static struct fault_store *fault_of(struct object_store *store) { return container_of(store, struct fault_store, store); }

// ---- draws

static double lognormal_ms(struct random *r, double p50, double p99) {
    if (p50 <= 0 || p99 <= p50) return p50;
    return p50 * exp(log(p99 / p50) / 2.3263478740408408 * random_normal(r)); // the 99 % point of the normal distribution
}

// Errors come in bursts of BURST requests on average. Bursts begin so often that their share of all requests is error_fraction.
#define BURST 8.0
static bool draw_error(struct fault_store *f) {
    double fraction = f->profile.error_fraction;
    if (fraction <= 0) return f->in_burst = false;
    if (fraction >= 1) return true;
    double begins = fraction / (BURST * (1 - fraction));
    f->in_burst = f->in_burst ? random_unit(&f->random) >= 1 / BURST : random_unit(&f->random) < begins;
    return f->in_burst;
}

static void draw(struct fault_store *f, struct fault_call *c) {
    const struct object_fault_profile *p = &f->profile;
    struct random *r = &f->random;
    const struct object_request *inner = &c->inner;
    bool put = inner->op == OBJECT_PUT, changes = put || inner->op == OBJECT_REMOVE;
    double ms = put ? lognormal_ms(r, p->put_p50_ms, p->put_p99_ms) : lognormal_ms(r, p->get_p50_ms, p->get_p99_ms);
    if (p->slow_fraction > 0 && random_unit(r) < p->slow_fraction && ms < p->slow_ms) {
        ms = p->slow_ms;
        f->counts.slow++;
    }
    if (put && p->put_mb_per_s > 0) ms += (double)inner->body.bytes / (p->put_mb_per_s * 1e3);
    c->where = random_unit(r);
    double split = changes ? random_unit(r) : 1;
    c->before_ns = (uint64_t)(ms * split * 1e6);
    c->after_ns = (uint64_t)(ms * 1e6) - c->before_ns;
    f->counts.requests++;
    double u = random_unit(r);
    if (draw_error(f)) {
        c->fate = FATE_ERROR;
        f->counts.errors++;
    } else if (put && inner->if_absent && p->conflict_fraction > 0 && random_unit(r) < p->conflict_fraction) {
        c->fate = FATE_CONFLICT;
        f->counts.conflicts++;
    } else if (u < p->lost_reply_fraction) {
        c->fate = FATE_LOST_REPLY;
        f->counts.lost_replies++;
    } else if (changes && u < p->lost_reply_fraction + p->late_fraction) {
        c->fate = FATE_LATE;
        c->late_ns = (uint64_t)(random_unit(r) * p->late_ms_max * 1e6);
        f->counts.lates++;
    } else if (inner->op == OBJECT_GET && u < p->lost_reply_fraction + p->flip_fraction) {
        c->fate = FATE_FLIP;
        f->counts.flips++;
    } else if (inner->op == OBJECT_GET && u < p->lost_reply_fraction + p->flip_fraction + p->torn_fraction) {
        c->fate = FATE_TORN;
        f->counts.tears++;
    }
}

// In every stretch of stall_every_s there is one stall, at a place that follows from the seed alone.
static uint64_t stall_begin(const struct fault_store *f, uint64_t stretch, uint64_t every_ns, uint64_t stall_ns) {
    struct random r;
    random_seed(&r, f->seed ^ (stretch * 0x9e3779b97f4a7c15ull));
    return stretch * every_ns + (uint64_t)(random_unit(&r) * (double)(every_ns - stall_ns));
}

// delay_ns of service from `now` on, during which stalls do not count.
static uint64_t with_stalls(struct fault_store *f, uint64_t now, uint64_t delay_ns) {
    uint64_t every_ns = (uint64_t)(f->profile.stall_every_s * 1e9), stall_ns = (uint64_t)(f->profile.stall_s * 1e9);
    if (every_ns == 0 || stall_ns == 0 || stall_ns > every_ns) return delay_ns;
    uint64_t at = now;
    for (uint64_t stretch = now / every_ns;; stretch++) {
        uint64_t begin = stall_begin(f, stretch, every_ns, stall_ns), end = begin + stall_ns;
        if (at >= end) continue;
        if (at + delay_ns < begin) return at + delay_ns - now;
        if (begin > at) {
            delay_ns -= begin - at;
            at = begin;
        }
        at = end;
        f->counts.stalled++;
    }
}

// ---- a call

static void call_free(struct fault_call *c) {
    slices_deinit(&c->inner.body);
    slice_unref(&c->inner.data);
    object_entries_free(c->inner.entries, c->inner.entry_count);
    for (uint32_t i = 0; c->keys && i < c->inner.key_count; i++) mem_free(c->keys[i]);
    mem_free(c->keys);
    mem_free(c);
}

static void answer_failure(struct fault_call *c, enum mink_code code, const char *reason, const char *text) {
    struct object_request *outer = c->outer;
    c->outer = NULL;
    object_fail(outer, code, reason, "%s", text);
}

static void damage(struct fault_call *c) {
    struct slice *data = &c->inner.data;
    if (data->size == 0) return;
    if (c->fate == FATE_TORN) {
        struct slice part = slice_copy(data->data, (size_t)(c->where * (double)data->size));
        slice_unref(data);
        *data = part;
        return;
    }
    uint8_t *bytes;
    struct slice copy = slice_new(data->size, &bytes);
    memcpy(bytes, data->data, data->size);
    uint64_t bit = (uint64_t)(c->where * (double)data->size * 8);
    bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    slice_unref(data);
    *data = copy;
}

static void reply(struct fault_call *c) {
    struct object_request *outer = c->outer, *inner = &c->inner;
    bool changes = outer->op == OBJECT_PUT || outer->op == OBJECT_REMOVE;
    if (c->fate == FATE_LOST_REPLY) {
        if (changes) answer_failure(c, MINK_UNKNOWN_OUTCOME, "REPLY_LOST", "the connection was closed before the reply came");
        else answer_failure(c, MINK_UNAVAILABLE, "REPLY_LOST", "the connection was closed before the reply came");
    } else {
        if (inner->code == MINK_OK && (c->fate == FATE_FLIP || c->fate == FATE_TORN)) damage(c);
        outer->code = inner->code;
        outer->error = inner->error;
        outer->data = inner->data;
        outer->object_size = inner->object_size;
        outer->entries = inner->entries;
        outer->entry_count = inner->entry_count;
        outer->list_more = inner->list_more;
        inner->data = slice_empty();
        inner->entries = NULL;
        inner->entry_count = 0;
        object_finish(outer);
    }
    call_free(c);
}

static void fire_reply(struct timer *timer) { reply(container_of(timer, struct fault_call, timer)); }

static void inner_done(struct object_request *inner) {
    struct fault_call *c = container_of(inner, struct fault_call, inner);
    if (c->outer == NULL) {
        call_free(c);
        return;
    }
    uint64_t delay = c->after_ns;
    if (inner->op == OBJECT_GET && inner->code == MINK_OK && c->f->profile.get_mb_per_s > 0)
        delay += (uint64_t)((double)inner->data.size / (c->f->profile.get_mb_per_s * 1e3) * 1e6);
    if (delay == 0) {
        reply(c);
        return;
    }
    timer_init(&c->timer, inner->shard, fire_reply);
    timer_start(&c->timer, delay);
}

static void take_effect(struct fault_call *c) { c->f->inner->ops->submit(c->f->inner, &c->inner); }
static void fire_late(struct timer *timer) { take_effect(container_of(timer, struct fault_call, timer)); }

static void keep_keys(struct fault_call *c) {
    if (c->inner.op != OBJECT_REMOVE) return;
    c->keys = mem_new_array(char *, c->inner.key_count);
    for (uint32_t i = 0; i < c->inner.key_count; i++) c->keys[i] = mem_strdup(c->inner.keys[i]);
    c->inner.keys = (const char *const *)c->keys;
}

static void strike(struct fault_call *c) {
    switch (c->fate) {
    case FATE_ERROR:
        answer_failure(c, MINK_UNAVAILABLE, "SLOW_DOWN", "503 SlowDown");
        call_free(c);
        return;
    case FATE_CONFLICT:
        answer_failure(c, MINK_CONFLICT, "CONFLICT", "409 ConditionalRequestConflict");
        call_free(c);
        return;
    case FATE_LATE:
        keep_keys(c);
        answer_failure(c, MINK_UNKNOWN_OUTCOME, "REPLY_LOST", "timed out");
        timer_init(&c->timer, c->inner.shard, fire_late);
        timer_start(&c->timer, c->late_ns);
        return;
    default: take_effect(c);
    }
}

static void fire_strike(struct timer *timer) { strike(container_of(timer, struct fault_call, timer)); }

// On the shard whose timers rule.
static void begin(struct fault_call *c) {
    pthread_mutex_lock(&c->f->lock);
    uint64_t delay = with_stalls(c->f, shard_now_ns(c->inner.shard), c->before_ns);
    pthread_mutex_unlock(&c->f->lock);
    if (delay == 0) {
        strike(c);
        return;
    }
    timer_init(&c->timer, c->inner.shard, fire_strike);
    timer_start(&c->timer, delay);
}

static void run_begin(struct task *task) { begin(container_of(task, struct fault_call, task)); }

static void fault_submit(struct object_store *store, struct object_request *outer) {
    struct fault_store *f = fault_of(store);
    struct fault_call *c = mem_new(struct fault_call);
    c->f = f;
    c->outer = outer;
    c->inner = *outer;
    c->inner.shard = f->shard ? f->shard : outer->shard;
    c->inner.on_done = inner_done;
    c->inner.nested = true;
    outer->body = (struct slices){0}; // the references are ours until the attempt has ended
    pthread_mutex_lock(&f->lock);
    draw(f, c);
    pthread_mutex_unlock(&f->lock);
    if (shard_is_current(c->inner.shard)) {
        begin(c);
        return;
    }
    c->task.run = run_begin;
    shard_post(c->inner.shard, &c->task);
}

static void fault_close(struct object_store *store) {
    struct fault_store *f = fault_of(store);
    object_store_close(f->inner);
    pthread_mutex_destroy(&f->lock);
    mem_free(f);
}

static const struct object_store_ops fault_ops = {fault_submit, fault_close};

struct object_store *object_fault_new(struct object_store *take_inner, const struct object_fault_profile *profile, uint64_t seed) {
    struct fault_store *f = mem_new(struct fault_store);
    f->store.ops = &fault_ops;
    memcpy(f->store.name, take_inner->name, sizeof f->store.name);
    f->inner = take_inner;
    f->profile = *profile;
    f->seed = seed;
    random_seed(&f->random, seed);
    pthread_mutex_init(&f->lock, NULL);
    return &f->store;
}

void object_fault_set_profile(struct object_store *store, const struct object_fault_profile *profile) {
    struct fault_store *f = fault_of(store);
    pthread_mutex_lock(&f->lock);
    f->profile = *profile;
    f->in_burst = false;
    pthread_mutex_unlock(&f->lock);
}

void object_fault_set_shard(struct object_store *store, struct shard *shard) { fault_of(store)->shard = shard; }

void object_fault_counts_now(struct object_store *store, struct object_fault_counts *out) {
    struct fault_store *f = fault_of(store);
    pthread_mutex_lock(&f->lock);
    *out = f->counts;
    pthread_mutex_unlock(&f->lock);
}
