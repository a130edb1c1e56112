// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <xxhash.h>

uint64_t hash64(const void *data, size_t size) { return XXH3_64bits(data, size); }
