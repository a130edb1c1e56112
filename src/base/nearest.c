// SPDX-License-Identifier: Apache-2.0
#include "base/nearest.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define SIZE_MAX_NAME 255

void nearest_init(struct nearest *n, const char *wanted) { *n = (struct nearest){.wanted = wanted, .distance = SIZE_MAX}; }

static int fold(char c) { return c >= 'A' && c <= 'Z' ? c + 32 : (unsigned char)c; }

static size_t min(size_t a, size_t b) { return a < b ? a : b; }

// Optimal string alignment: insertions, deletions, substitutions, and swaps of neighbours.
static size_t distance(const char *a, const char *b) {
    size_t a_size = strlen(a), b_size = strlen(b);
    if (a_size > SIZE_MAX_NAME || b_size > SIZE_MAX_NAME) return SIZE_MAX;
    uint16_t rows[3][SIZE_MAX_NAME + 1];
    uint16_t *before = rows[0], *last = rows[1], *row = rows[2];
    for (size_t j = 0; j <= b_size; j++) last[j] = (uint16_t)j;
    for (size_t i = 1; i <= a_size; i++) {
        row[0] = (uint16_t)i;
        for (size_t j = 1; j <= b_size; j++) {
            size_t same = fold(a[i - 1]) == fold(b[j - 1]);
            size_t best = min(min((size_t)last[j] + 1, (size_t)row[j - 1] + 1), (size_t)last[j - 1] + !same);
            if (i > 1 && j > 1 && fold(a[i - 1]) == fold(b[j - 2]) && fold(a[i - 2]) == fold(b[j - 1])) best = min(best, (size_t)before[j - 2] + 1);
            row[j] = (uint16_t)best;
        }
        uint16_t *spare = before;
        before = last;
        last = row;
        row = spare;
    }
    return last[b_size];
}

void nearest_offer(struct nearest *n, const char *candidate) {
    size_t d = distance(n->wanted, candidate);
    if (d >= n->distance) return;
    n->distance = d;
    snprintf(n->best, sizeof n->best, "%s", candidate);
}

const char *nearest_found(const struct nearest *n) {
    if (n->distance == SIZE_MAX) return NULL;
    size_t size = strlen(n->wanted), allowed = size / 3 > 2 ? size / 3 : 2;
    // A short name that shares nothing is no help.
    return n->distance <= allowed && n->distance < min(size, strlen(n->best)) ? n->best : NULL;
}
