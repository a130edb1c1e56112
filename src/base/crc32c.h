// SPDX-License-Identifier: Apache-2.0
// crc32c.h: CRC-32C (Castagnoli, reflected polynomial 0x82f63b78, init and final xor 0xffffffff, as in RFC 3720).
//
// SSE4.2 with three interleaved streams where the processor has it, slicing-by-8 tables elsewhere. Any thread.
#ifndef MINK_BASE_CRC32C_H
#define MINK_BASE_CRC32C_H

#include "base/slice.h"

uint32_t crc32c(const void *data, size_t size);                      // of "123456789": 0xe3069283
uint32_t crc32c_extend(uint32_t crc, const void *data, size_t size); // crc of (what crc covers) + data
uint32_t crc32c_combine(uint32_t crc_a, uint32_t crc_b, size_t size_b); // crc of A + B from the two; O(log size_b)
uint32_t crc32c_slices(uint32_t crc, const struct slices *list);

#endif
