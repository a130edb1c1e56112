// SPDX-License-Identifier: Apache-2.0
// random.h: seeded pseudo-random numbers (xoshiro256**, seeded by splitmix64). Not for secrets.
// Owner     One thread per generator. A shard has one: shard_random().
#ifndef MINK_BASE_RANDOM_H
#define MINK_BASE_RANDOM_H
#include <stddef.h>
#include <stdint.h>
struct random { uint64_t state[4]; };
void random_seed(struct random *r, uint64_t seed);
uint64_t random_u64(struct random *r);
uint64_t random_below(struct random *r, uint64_t n); // uniform in [0, n); n > 0
double random_unit(struct random *r);                // [0, 1)
double random_normal(struct random *r);              // mean 0, deviation 1
void random_bytes(struct random *r, void *out, size_t size);
void random_system_bytes(void *out, size_t size);    // from the operating system; ends the process if it cannot
#endif
