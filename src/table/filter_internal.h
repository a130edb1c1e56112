// SPDX-License-Identifier: Apache-2.0
// filter_internal.h: the tree between filter.c (text to tree) and filter_eval.c (tree over rows, tree over statistics).
#ifndef MINK_TABLE_FILTER_INTERNAL_H
#define MINK_TABLE_FILTER_INTERNAL_H

#include "table/filter.h"

#include <string.h>

#define FILTER_DEPTH_MAX 64 // of parentheses and NOTs; AND and OR of many parts are one level

// Comparisons are gone after parsing: what is left are ranges, whose bounds belong to the column's own values.
//   a > 2.5 of an INT is [3, 2147483647];   d < 1 of a DECIMAL(5,2) is [-10^5, 99], in hundredths;   f < 1 of a FLOAT is [-inf, 0.99999994]
enum node_kind {
    NODE_AND, NODE_OR, NODE_NOT,
    NODE_CONSTANT,  // value; unknown when it is
    NODE_IS_NULL,
    NODE_BOOL,      // the column itself
    NODE_INT,       // low <= x <= high: integers, dates, times, timestamps; empty when low > high
    NODE_DECIMAL,   // the same
    NODE_REAL,      // low <= x <= high: never of a NaN
    NODE_TEXT,      // order of bytes: text, binary
    NODE_LIKE,
    NODE_IN         // of the set
};

struct bytes { uint8_t *data; size_t size; };

struct node {
    enum node_kind kind;
    bool value, unknown;         // CONSTANT
    bool negated;                // ranges: <>
    uint32_t column;
    struct node **children;      // AND, OR, NOT
    uint32_t child_count;
    __int128 low, high;          // INT, DECIMAL
    double real_low, real_high;  // REAL
    struct bytes text_low, text_high; // TEXT; LIKE: the pattern and its prefix without wildcards
    bool has_low, has_high, low_open, high_open, is_equal;
    enum { LIKE_ANY, LIKE_EXACT, LIKE_PREFIX } like;
    // IN: ascending, of the column's kind
    __int128 *ints;
    double *reals;
    struct bytes *texts;
    uint32_t set_count;
    bool set_null;               // a null in the list: what is not found is unknown
};

struct filter {
    struct table_def *def;
    struct node *root;
    uint32_t depth;              // levels of nodes
};

enum value_class { CLASS_NONE, CLASS_BOOL, CLASS_INT, CLASS_DECIMAL, CLASS_REAL, CLASS_TEXT };
enum value_class filter_class(const struct arrow_field *f);

static inline int bytes_order(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size) {
    size_t common = a_size < b_size ? a_size : b_size;
    int order = common ? memcmp(a, b, common) : 0;
    return order ? order : (a_size > b_size) - (a_size < b_size);
}

#endif
