// SPDX-License-Identifier: Apache-2.0
// CRC-32C. The hardware instruction has a latency of 3 cycles and a throughput of 1: three independent streams keep it
// busy, and their registers are joined by "append n zero bytes" operators, which are linear maps over GF(2) and so four
// table look-ups for the fixed lane sizes. combine() composes the same operators for any length by its binary digits.
// Values are held in the reflected representation without the final xor ("raw"); crc = ~raw.
#include "base/crc32c.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <pthread.h>
#include <string.h>

#define POLYNOMIAL 0x82f63b78u
#define LONG_LANE 8192
#define SHORT_LANE 256

static uint32_t bytes_table[8][256];
static uint32_t long_zeros[4][256], short_zeros[4][256];
static uint32_t power_of_x[64]; // x^(8 * 2^i) mod P, reflected: appends 2^i zero bytes
static bool have_sse42;
static pthread_once_t once = PTHREAD_ONCE_INIT;

// a * b mod P, both reflected polynomials (bit 31 = x^0).
static uint32_t multiply(uint32_t a, uint32_t b) {
    uint32_t product = 0;
    for (uint32_t bit = 1u << 31; bit; bit >>= 1) {
        if (a & bit) product ^= b;
        b = (b & 1) ? (b >> 1) ^ POLYNOMIAL : b >> 1;
    }
    return product;
}

static uint32_t zeros_operator(uint64_t bytes) {
    uint32_t op = 1u << 31; // x^0
    for (int i = 0; bytes; bytes >>= 1, i++)
        if (bytes & 1) op = multiply(op, power_of_x[i]);
    return op;
}

static void zeros_tables(uint32_t table[4][256], uint64_t bytes) {
    uint32_t op = zeros_operator(bytes);
    for (int k = 0; k < 4; k++)
        for (uint32_t v = 0; v < 256; v++) table[k][v] = multiply(op, v << (8 * k));
}

static void initialise(void) {
    for (uint32_t v = 0; v < 256; v++) {
        uint32_t crc = v;
        for (int bit = 0; bit < 8; bit++) crc = (crc & 1) ? (crc >> 1) ^ POLYNOMIAL : crc >> 1;
        bytes_table[0][v] = crc;
    }
    for (int k = 1; k < 8; k++)
        for (uint32_t v = 0; v < 256; v++)
            bytes_table[k][v] = (bytes_table[k - 1][v] >> 8) ^ bytes_table[0][bytes_table[k - 1][v] & 0xff];
    power_of_x[0] = 1u << 23; // x^8
    for (int i = 1; i < 64; i++) power_of_x[i] = multiply(power_of_x[i - 1], power_of_x[i - 1]);
    zeros_tables(long_zeros, LONG_LANE);
    zeros_tables(short_zeros, SHORT_LANE);
#if defined(__x86_64__)
    have_sse42 = __builtin_cpu_supports("sse4.2");
#endif
}

static uint32_t software(uint32_t raw, const uint8_t *at, size_t size) {
    for (; size >= 8; at += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        word ^= raw;
        raw = bytes_table[7][word & 0xff] ^ bytes_table[6][word >> 8 & 0xff] ^ bytes_table[5][word >> 16 & 0xff] ^
              bytes_table[4][word >> 24 & 0xff] ^ bytes_table[3][word >> 32 & 0xff] ^ bytes_table[2][word >> 40 & 0xff] ^
              bytes_table[1][word >> 48 & 0xff] ^ bytes_table[0][word >> 56];
    }
    while (size--) raw = (raw >> 8) ^ bytes_table[0][(raw ^ *at++) & 0xff];
    return raw;
}

#if defined(__x86_64__)
static uint32_t shift(uint32_t table[4][256], uint32_t raw) {
    return table[0][raw & 0xff] ^ table[1][raw >> 8 & 0xff] ^ table[2][raw >> 16 & 0xff] ^ table[3][raw >> 24];
}

static uint64_t load(const uint8_t *at) {
    uint64_t word;
    memcpy(&word, at, 8);
    return word;
}

__attribute__((target("sse4.2"))) static uint32_t hardware(uint32_t start, const uint8_t *at, size_t size) {
    uint64_t raw = start;
    for (; size && ((uintptr_t)at & 7); size--) raw = __builtin_ia32_crc32qi((uint32_t)raw, *at++);
    for (int round = 0; round < 2; round++) {
        size_t lane = round == 0 ? LONG_LANE : SHORT_LANE;
        uint32_t(*zeros)[256] = round == 0 ? long_zeros : short_zeros;
        while (size >= 3 * lane) {
            uint64_t b = 0, c = 0;
            for (const uint8_t *end = at + lane; at < end; at += 8) {
                raw = __builtin_ia32_crc32di(raw, load(at));
                b = __builtin_ia32_crc32di(b, load(at + lane));
                c = __builtin_ia32_crc32di(c, load(at + 2 * lane));
            }
            raw = shift(zeros, (uint32_t)raw) ^ b;
            raw = shift(zeros, (uint32_t)raw) ^ c;
            at += 2 * lane;
            size -= 3 * lane;
        }
    }
    for (; size >= 8; at += 8, size -= 8) raw = __builtin_ia32_crc32di(raw, load(at));
    while (size--) raw = __builtin_ia32_crc32qi((uint32_t)raw, *at++);
    return (uint32_t)raw;
}
#endif

uint32_t crc32c_extend(uint32_t crc, const void *data, size_t size) {
    pthread_once(&once, initialise);
#if defined(__x86_64__)
    if (have_sse42) return ~hardware(~crc, data, size);
#endif
    return ~software(~crc, data, size);
}

uint32_t crc32c(const void *data, size_t size) { return crc32c_extend(0, data, size); }

uint32_t crc32c_combine(uint32_t crc_a, uint32_t crc_b, size_t size_b) {
    pthread_once(&once, initialise);
    // crc(A + B) = crc(A) * x^(8 |B|) + crc(B): the init and final xors cancel.
    return size_b ? multiply(zeros_operator(size_b), crc_a) ^ crc_b : crc_a;
}

uint32_t crc32c_slices(uint32_t crc, const struct slices *list) {
    for (uint32_t i = 0; i < list->count; i++) crc = crc32c_extend(crc, list->items[i].data, list->items[i].size);
    return crc;
}
