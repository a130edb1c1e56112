// SPDX-License-Identifier: Apache-2.0
// hash.h: XXH3, for spreading and tables; not for secrets, not for integrity.
#ifndef MINK_BASE_HASH_H
#define MINK_BASE_HASH_H
#include <stddef.h>
#include <stdint.h>
uint64_t hash64(const void *data, size_t size);
static inline uint64_t hash_u64(uint64_t v) { // splitmix64's finish: a bijection
    v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9ull;
    v = (v ^ (v >> 27)) * 0x94d049bb133111ebull;
    return v ^ (v >> 31);
}
#endif
