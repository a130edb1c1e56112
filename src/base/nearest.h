// SPDX-License-Identifier: Apache-2.0
// nearest.h: "did you mean": the known name closest to a wrong one (edit distance with transpositions, case folded).
#ifndef MINK_BASE_NEAREST_H
#define MINK_BASE_NEAREST_H
#include <stddef.h>
struct nearest { const char *wanted; char best[256]; size_t distance; };
void nearest_init(struct nearest *n, const char *wanted);
void nearest_offer(struct nearest *n, const char *candidate);
// The best candidate when it is near enough to be worth saying (distance <= 2, or a third of the length), else NULL.
const char *nearest_found(const struct nearest *n);
#endif
