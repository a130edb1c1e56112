// SPDX-License-Identifier: Apache-2.0
// The three hash functions, by their public definitions: MurmurHash3_x86_32, its variant in Flink, and Kafka's MurmurHash2.
#include "table/bucketing.h"

#include <string.h>

static uint32_t load32(const uint8_t *p) {
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}

static uint32_t rotate(uint32_t v, int by) { return v << by | v >> (32 - by); }
static uint32_t mix_key(uint32_t k) { return rotate(k * 0xcc9e2d51u, 15) * 0x1b873593u; }
static uint32_t mix(uint32_t h, uint32_t k) { return rotate(h ^ mix_key(k), 13) * 5 + 0xe6546b64u; }

static uint32_t finish(uint32_t h, uint32_t size) {
    h ^= size;
    h ^= h >> 16;
    h *= 0x85ebca6bu;
    h ^= h >> 13;
    h *= 0xc2b2ae35u;
    return h ^ h >> 16;
}

uint32_t murmur3_flink(const void *data, size_t size, uint32_t seed) {
    const uint8_t *p = data;
    uint32_t h = seed;
    size_t i = 0;
    for (; i + 4 <= size; i += 4) h = mix(h, load32(p + i));
    for (; i < size; i++) h = mix(h, (uint32_t)(int32_t)(int8_t)p[i]); // a word per byte of the tail, with its sign
    return finish(h, (uint32_t)size);
}

uint32_t murmur3_x86_32(const void *data, size_t size, uint32_t seed) {
    const uint8_t *p = data;
    uint32_t h = seed, tail = 0;
    size_t i = 0;
    for (; i + 4 <= size; i += 4) h = mix(h, load32(p + i));
    for (size_t k = size; k > i; k--) tail = tail << 8 | p[k - 1];
    if (i < size) h ^= mix_key(tail);
    return finish(h, (uint32_t)size);
}

uint32_t murmur2_kafka(const void *data, size_t size) {
    const uint8_t *p = data;
    const uint32_t m = 0x5bd1e995u;
    uint32_t h = 0x9747b28cu ^ (uint32_t)size;
    size_t i = 0;
    for (; i + 4 <= size; i += 4) {
        uint32_t k = load32(p + i) * m;
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
