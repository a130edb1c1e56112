// SPDX-License-Identifier: Apache-2.0
// value_internal.h: one value from text and back; between the builder and its parsers.
#ifndef MINK_ARROW_VALUE_INTERNAL_H
#define MINK_ARROW_VALUE_INTERNAL_H

#include "arrow/arrow_internal.h"

// What a leaf column takes: by its type one of these.
struct arrow_value {
    int64_t i; // bool, integers (uint64 as its bits), dates, times
    double d;
    __int128 decimal;
    const uint8_t *bytes;
    size_t size;
    uint8_t *owned; // mem_free: decoded hex
};

// INVALID [BAD_VALUE]; borrows text.
enum mink_code arrow_value_parse(const struct arrow_field *f, const char *text, size_t size, struct arrow_value *out, struct error *e) MINK_MUST_CHECK;
bool arrow_int_fits(enum arrow_type type, __int128 v);
bool arrow_decimal_fits(const struct arrow_field *f, __int128 v);
enum mink_code arrow_bad_value(const struct arrow_field *f, const char *text, size_t size, const char *why, struct error *e);

#endif
