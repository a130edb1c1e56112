// SPDX-License-Identifier: Apache-2.0
// sim_executor.h: many shards and work pools in one thread, on simulated time, in an order drawn from a seed.
//
// What      A process is a group of shards and a pool that live and die together. Killing one drops its tasks, timers and works where
//           they stand, as kill -9 does: its memory is not freed, so whoever runs many seeds does so in short-lived children.
//           The world shard never dies: clients, stores and the database live on it.
// Holds     (1) tasks of one shard run in the order in which they were posted; which shard is next is drawn; (2) time moves a little with
//           every task, and to the next timer when nothing else is ready; (3) equal seeds and calls give equal traces.
// Owner     One thread.
#ifndef MINK_TESTS_SIM_EXECUTOR_H
#define MINK_TESTS_SIM_EXECUTOR_H

#include "base/executor.h"

struct sim;
struct sim_process;

struct sim *sim_new(uint64_t seed);
void sim_free(struct sim *sim);
struct random *sim_random(struct sim *sim); // of the world: what clients and faults draw from
uint64_t sim_now_ns(const struct sim *sim);
struct shard *sim_world(struct sim *sim);

// skew: the shards' clocks run up to 5 % fast or slow and their wall clocks are up to an hour off.
struct sim_process *sim_process_new(struct sim *sim, const char *name, uint32_t shard_count, bool skew);
struct shard *const *sim_process_shards(struct sim_process *p);
struct work_pool *sim_process_pool(struct sim_process *p);
void sim_kill(struct sim_process *p);               // also from within one of its own tasks, which then runs to its end without effect
void sim_pause(struct sim_process *p, uint64_t ns); // nothing of it runs for so long; then all that is overdue
bool sim_alive(const struct sim_process *p);
struct sim_process *sim_current(struct sim *sim);   // whose task runs; NULL outside of tasks and for the world's

bool sim_step(struct sim *sim); // false: nothing is left to do
// False: the time has passed, or nothing is left to do, or the limit on events was reached.
bool sim_run_until(struct sim *sim, bool (*holds)(void *ctx), void *ctx, uint64_t ns_max);
void sim_run_for(struct sim *sim, uint64_t ns);
uint64_t sim_events(const struct sim *sim);

// Every event is folded into the hash; with printing on, each line goes to stderr too.
void sim_trace(struct sim *sim, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sim_trace_print(struct sim *sim, bool print);
uint64_t sim_trace_hash(const struct sim *sim);

#endif
