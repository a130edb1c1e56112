// SPDX-License-Identifier: Apache-2.0
// sim_meta_log.h: the command log of a simulated world: memory that outlives processes, with delays and faults from the world's seed.
//
// Faults    UNAVAILABLE in spells; an append whose reply is lost (committed, not committed, or committed later: all tell UNKNOWN_OUTCOME);
//           CONFLICT because another node was first; wake notices, also spurious ones; a checkpoint that is not saved.
#ifndef MINK_TESTS_SIM_META_LOG_H
#define MINK_TESTS_SIM_META_LOG_H

#include "meta/meta.h"
#include "sim/sim_executor.h"

struct sim_meta_faults {
    double delay_ms_max;
    double unavailable_fraction; // of requests, in spells of a few
    double unknown_fraction;     // of appends
    double foreign_fraction;     // of appends: somebody else's command comes first
    double spurious_wake_fraction;
};
struct sim_meta_counts { uint64_t requests, unavailable, unknown_done, unknown_not_done, unknown_late, foreign, checkpoints; };

struct sim_meta_db;
struct sim_meta_db *sim_meta_db_new(struct sim *sim);
void sim_meta_db_free(struct sim_meta_db *db);
void sim_meta_db_set_faults(struct sim_meta_db *db, const struct sim_meta_faults *faults); // copied
struct meta_log *sim_meta_log_new(struct sim_meta_db *db, struct sim_process *p); // one process's connection
void sim_meta_db_append(struct sim_meta_db *db, struct slice command); // as another node would, and tells all

// For checkers: every command ever, also those that a checkpoint has replaced for readers; and each checkpoint saved.
uint64_t sim_meta_db_head(const struct sim_meta_db *db);
struct slice sim_meta_db_command(const struct sim_meta_db *db, uint64_t seq); // a view
uint32_t sim_meta_db_checkpoint_count(const struct sim_meta_db *db);
struct slice sim_meta_db_checkpoint(const struct sim_meta_db *db, uint32_t index, uint64_t *seq); // a view
struct sim_meta_counts sim_meta_db_counts(const struct sim_meta_db *db);

#endif
