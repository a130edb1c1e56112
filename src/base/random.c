// SPDX-License-Identifier: Apache-2.0
#include "base/random.h"

#include "base/mem.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/random.h>

static uint64_t rotl(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

void random_seed(struct random *r, uint64_t seed) {
    for (int i = 0; i < 4; i++) { // splitmix64
        uint64_t z = (seed += 0x9e3779b97f4a7c15ull);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        r->state[i] = z ^ (z >> 31);
    }
}

uint64_t random_u64(struct random *r) {
    uint64_t *s = r->state;
    uint64_t result = rotl(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

uint64_t random_below(struct random *r, uint64_t n) {
    mink_assert(n > 0);
    uint64_t limit = UINT64_MAX - UINT64_MAX % n; // the part above would favour small values
    uint64_t v;
    do v = random_u64(r);
    while (v >= limit);
    return v % n;
}

double random_unit(struct random *r) { return (double)(random_u64(r) >> 11) * 0x1.0p-53; }

double random_normal(struct random *r) { // Box-Muller
    double u = 1.0 - random_unit(r), v = random_unit(r);
    return sqrt(-2.0 * log(u)) * cos(2.0 * M_PI * v);
}

void random_bytes(struct random *r, void *out, size_t size) {
    uint8_t *at = out;
    while (size > 0) {
        uint64_t v = random_u64(r);
        size_t n = size < sizeof v ? size : sizeof v;
        memcpy(at, &v, n);
        at += n;
        size -= n;
    }
}

void random_system_bytes(void *out, size_t size) {
    uint8_t *at = out;
    while (size > 0) {
        ssize_t n = getrandom(at, size, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) mink_panic(__FILE__, __LINE__, "getrandom: %s", strerror(errno));
        at += n;
        size -= (size_t)n;
    }
}
