// SPDX-License-Identifier: Apache-2.0
// object_fault.h: a store in front of another that adds latency, errors, lost replies and corruption, from a seed.
//
// Profiles (named in benchmarks): fast; s3 = PUT lognormal(p50 28, p99 75 ms) + size / 80 MB/s, GET lognormal(25, 85) + size / 90 MB/s;
// s3-busy = ×2 with 0.5 % over 500 ms; express = PUT 6/15, GET 4/10; bad = s3 + 1 % 503 in bursts, 0.1 % lost replies after
// the write took effect, one 10 s stall a minute; flat20, flat50. Delays are timers of the asking shard, so the simulator's clock rules.
// HEAD, LIST and DELETE take a GET's time. The effect of a PUT or DELETE falls at a random point of its delay.
#ifndef MINK_OBJECT_OBJECT_FAULT_H
#define MINK_OBJECT_OBJECT_FAULT_H
#include "object/object.h"
struct object_fault_profile {
    const char *name;
    double put_p50_ms, put_p99_ms, put_mb_per_s; // 0 MB/s: size does not matter; p50 == p99: constant
    double get_p50_ms, get_p99_ms, get_mb_per_s;
    double slow_fraction, slow_ms;          // this fraction takes at least slow_ms
    double error_fraction;                  // UNAVAILABLE, nothing happened, in bursts
    double conflict_fraction;               // create-if-absent: CONFLICT (409), nothing happened, retry
    double lost_reply_fraction;             // took effect, but UNKNOWN_OUTCOME is told
    double late_fraction, late_ms_max;      // told UNKNOWN_OUTCOME at once, takes effect up to late_ms_max later
    double flip_fraction;                   // get: one bit is flipped in what is returned
    double torn_fraction;                   // get: truncated
    double stall_every_s, stall_s;          // all requests stand still
};
const struct object_fault_profile *object_fault_profile_find(const char *name); // NULL when unknown
// Takes inner: closed with it.
struct object_store *object_fault_new(struct object_store *take_inner, const struct object_fault_profile *profile, uint64_t seed);
void object_fault_set_profile(struct object_store *store, const struct object_fault_profile *profile); // copied
// Delays are timers of this shard from now on: it may outlive those that ask, so that what they left behind still takes effect.
void object_fault_set_shard(struct object_store *store, struct shard *shard);
struct object_fault_counts { uint64_t requests, slow, errors, conflicts, lost_replies, lates, flips, tears, stalled; };
void object_fault_counts_now(struct object_store *store, struct object_fault_counts *out);
#endif
