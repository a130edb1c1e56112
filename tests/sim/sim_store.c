// SPDX-License-Identifier: Apache-2.0
#include "sim/sim_store.h"

#include "base/mem.h"
#include "object/object_internal.h"

#include <stdio.h>
#include <string.h>

// ---- the watch: between faults and memory

static void watch_submit(struct object_store *base, struct object_request *r) {
    struct sim_disk *d = container_of(base, struct sim_disk, watch);
    enum object_op op = r->op;
    char key[OBJECT_KEY_SIZE_MAX];
    memcpy(key, r->key, sizeof key);
    struct slices body = {0};
    bool existed = false;
    if (op == OBJECT_PUT) {
        struct slice old = object_memory_find(d->memory, key);
        existed = old.data != NULL;
        slice_unref(&old);
        for (uint32_t i = 0; i < r->body.count; i++) slices_take(&body, slice_ref(r->body.items[i]));
    }
    if (op == OBJECT_REMOVE)
        for (uint32_t i = 0; i < r->key_count; i++) {
            struct slice old = object_memory_find(d->memory, r->keys[i]);
            if (old.data && d->on_removed) d->on_removed(d->ctx, r->keys[i]);
            slice_unref(&old);
        }
    d->memory->ops->submit(d->memory, r); // takes effect inside
    if (op == OBJECT_PUT) {
        struct slice now = object_memory_find(d->memory, key);
        if (!existed && now.data) {
            sim_trace(d->sim, "disk created %s, %zu bytes", key, now.size);
            if (d->on_created) d->on_created(d->ctx, key, &body);
        }
        slice_unref(&now);
        slices_deinit(&body);
    }
}
static void watch_close(struct object_store *base) {}
static const struct object_store_ops watch_ops = {watch_submit, watch_close};

void sim_disk_init(struct sim_disk *d, struct sim *sim, const struct object_fault_profile *profile, uint64_t seed) {
    *d = (struct sim_disk){.sim = sim, .memory = object_memory_new(), .watch = {.ops = &watch_ops, .name = "sim"}};
    d->faults = object_fault_new(&d->watch, profile, seed);
    object_fault_set_shard(d->faults, sim_world(sim));
}

void sim_disk_deinit(struct sim_disk *d) {
    object_store_close(d->faults);
    object_store_close(d->memory);
}

// ---- the front

struct sim_front {
    struct object_store store;
    struct sim_disk *disk;
    struct sim_process *process;
    uint64_t calls, crash_at;
    bool crash_after;
};
uint64_t sim_front_crashes[5][2];

struct front_call {
    struct object_request inner, *outer;
    struct sim_front *f;
    uint64_t number;
};

static void front_done(struct object_request *inner) {
    struct front_call *c = container_of(inner, struct front_call, inner);
    struct object_request *outer = c->outer;
    struct sim_front *f = c->f;
    sim_trace(f->disk->sim, "store %s %s -> %s %zu", object_op_name(inner->op), inner->key, mink_code_name(inner->code), inner->data.size);
    if (c->number == f->crash_at && f->crash_after && sim_alive(f->process)) {
        sim_front_crashes[inner->op][1]++;
        sim_kill(f->process);
    }
    outer->code = inner->code;
    outer->error = inner->error;
    outer->data = inner->data;
    outer->object_size = inner->object_size;
    outer->entries = inner->entries;
    outer->entry_count = inner->entry_count;
    outer->list_more = inner->list_more;
    if (sim_alive(f->process)) object_finish(outer);
    mem_free(c);
}

static void front_submit(struct object_store *base, struct object_request *outer) {
    struct sim_front *f = container_of(base, struct sim_front, store);
    if (!sim_alive(f->process)) return; // what the rest of a killed task does has no effect
    uint64_t number = f->calls++;
    if (number == f->crash_at && !f->crash_after) {
        sim_trace(f->disk->sim, "store %s %s: crash before", object_op_name(outer->op), outer->key);
        sim_front_crashes[outer->op][0]++;
        sim_kill(f->process);
        return;
    }
    struct front_call *c = mem_new(struct front_call);
    c->f = f;
    c->outer = outer;
    c->number = number;
    c->inner = *outer;
    c->inner.shard = sim_world(f->disk->sim);
    c->inner.on_done = front_done;
    c->inner.nested = true;
    outer->body = (struct slices){0};
    f->disk->faults->ops->submit(f->disk->faults, &c->inner);
}

static void front_close(struct object_store *base) {} // late replies may still come through it: it goes with the world

static const struct object_store_ops front_ops = {front_submit, front_close};

struct sim_front *sim_front_new(struct sim_disk *d, struct sim_process *p) {
    struct sim_front *f = mem_new(struct sim_front);
    f->store = (struct object_store){.ops = &front_ops, .name = "sim"};
    f->disk = d;
    f->process = p;
    f->crash_at = UINT64_MAX;
    return f;
}

struct object_store *sim_front_store(struct sim_front *f) { return &f->store; }
void sim_front_crash_at(struct sim_front *f, uint64_t call, bool after) {
    f->crash_at = call;
    f->crash_after = after;
}
uint64_t sim_front_calls(const struct sim_front *f) { return f->calls; }
