// SPDX-License-Identifier: Apache-2.0
// murmur.h: the hash functions of bucketing.h as the compiler can inline them. By their public definitions: MurmurHash3_x86_32, Flink's variant of
// it, and MurmurHash2 as Kafka has it.
#ifndef MINK_TABLE_MURMUR_H
#define MINK_TABLE_MURMUR_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t murmur_load(const uint8_t *p) {
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}

static inline uint32_t murmur_rotate(uint32_t v, int by) { return v << by | v >> (32 - by); }
static inline uint32_t murmur_key(uint32_t k) { return murmur_rotate(k * 0xcc9e2d51u, 15) * 0x1b873593u; }
static inline uint32_t murmur_mix(uint32_t h, uint32_t k) { return murmur_rotate(h ^ murmur_key(k), 13) * 5 + 0xe6546b64u; }

static inline uint32_t murmur_spread(uint32_t h) {
    h ^= h >> 16;
    h *= 0x85ebca6bu;
    h ^= h >> 13;
    h *= 0xc2b2ae35u;
    return h ^ h >> 16;
}

static inline uint32_t murmur_flink(const uint8_t *p, size_t size, uint32_t seed) {
    uint32_t h = seed;
    size_t i = 0;
    for (; i + 4 <= size; i += 4) h = murmur_mix(h, murmur_load(p + i));
    for (; i < size; i++) h = murmur_mix(h, (uint32_t)(int32_t)(int8_t)p[i]); // a word per byte of the tail, with its sign
    return murmur_spread(h ^ (uint32_t)size);
}

static inline uint32_t murmur_standard(const uint8_t *p, size_t size, uint32_t seed) {
    uint32_t h = seed, tail = 0;
    size_t i = 0;
    for (; i + 4 <= size; i += 4) h = murmur_mix(h, murmur_load(p + i));
    for (size_t k = size; k > i; k--) tail = tail << 8 | p[k - 1];
    if (i < size) h ^= murmur_key(tail);
    return murmur_spread(h ^ (uint32_t)size);
}

static inline uint32_t murmur_kafka(const uint8_t *p, size_t size) {
    const uint32_t m = 0x5bd1e995u;
    uint32_t h = 0x9747b28cu ^ (uint32_t)size;
    size_t i = 0;
    for (; i + 4 <= size; i += 4) {
        uint32_t k = murmur_load(p + i) * m;
        k = (k ^ k >> 24) * m;
        h = h * m ^ k;
    }
    if (i < size) {
        for (size_t k = size; k > i; k--) h ^= (uint32_t)p[k - 1] << (8 * (k - 1 - i));
        h *= m;
    }
    h = (h ^ h >> 13) * m;
    return h ^ h >> 15;
}

#endif
