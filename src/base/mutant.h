// SPDX-License-Identifier: Apache-2.0
// mutant.h: deliberate bugs that the simulator must find. Without MINK_MUTANTS, MUTANT(x) is false at compile time.
#ifndef MINK_BASE_MUTANT_H
#define MINK_BASE_MUTANT_H
#include <stdbool.h>
#define MUTANTS(X)                                                                                                        \
    X(ACK_BEFORE_PUT) X(ACK_OUT_OF_ORDER) X(EXISTS_IS_CREATED) X(CONFLICT_IS_FENCED) X(NO_CONTENT_ID_CHECK) X(PUT_OVERWRITES) \
    X(NO_SEAL) X(SEAL_SWEPT) X(WALK_PAST_INVALID) X(SEAL_ONE_EARLY) X(CRC_SKIPPED) X(TRIM_TOO_FAR) X(OFFSET_OFF_BY_ONE)    \
    X(DEDUPE_LOST) X(DEDUPE_WRONG_OFFSETS) X(SEQUENCE_GAP_TAKEN) X(VISIBLE_BEFORE_ACK) X(COMMIT_FORGETS_ENTRY)            \
    X(COMMIT_UNACKED) X(DELETE_REFERENCED) X(SWEEP_LIVE) X(ACKED_END_OFF_BY_ONE) X(READ_SKIPS_BATCH) X(WATCH_LOST)         \
    X(APPEND_AFTER_END) X(TAIL_STALE) X(DUPLICATE_NOT_DURABLE) X(ATTACHMENT_AHEAD) X(COMMIT_WHEN_DEAD)
enum mutant {
    MUTANT_NONE,
#define MUTANT_ENUM(name) MUTANT_##name,
    MUTANTS(MUTANT_ENUM)
#undef MUTANT_ENUM
    MUTANT_COUNT
};
#ifdef MINK_MUTANTS
extern enum mutant mutant_active;
#define MUTANT(name) (mutant_active == MUTANT_##name)
#else
#define MUTANT(name) false
#endif
const char *mutant_name(enum mutant m);
#endif
