// SPDX-License-Identifier: Apache-2.0
// sim_store.h: the object store of a simulated world: memory that outlives processes, faults from a seed, a door for each process.
//
// What      disk = memory behind faults. Every object that comes into being is shown to `on_created` at that instant, so that a checker
//           knows what is durable, and when. A front is what one process talks to: it counts calls and can end the process at the Nth,
//           before the call or right after its effect.
#ifndef MINK_TESTS_SIM_STORE_H
#define MINK_TESTS_SIM_STORE_H

#include "object/object_fault.h"
#include "object/object_memory.h"
#include "sim/sim_executor.h"

struct sim_disk {
    struct object_store *memory; // for checkers
    struct object_store *faults; // faults → watch → memory
    struct sim *sim;
    void (*on_created)(void *ctx, const char *key, const struct slices *body);
    void (*on_removed)(void *ctx, const char *key);
    void *ctx;
    struct object_store watch; // private
};
void sim_disk_init(struct sim_disk *d, struct sim *sim, const struct object_fault_profile *profile, uint64_t seed);
void sim_disk_deinit(struct sim_disk *d);

struct sim_front;
// Closed by the node that uses it; the disk stays.
struct sim_front *sim_front_new(struct sim_disk *d, struct sim_process *p);
struct object_store *sim_front_store(struct sim_front *f);
// The call numbered `call` (from 0 at creation) ends the process: before its effect, or after it and before the reply.
void sim_front_crash_at(struct sim_front *f, uint64_t call, bool after);
uint64_t sim_front_calls(const struct sim_front *f);
extern uint64_t sim_front_crashes[5][2]; // by operation, before and after

#endif
