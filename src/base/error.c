// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const code_names[MINK_CODE_COUNT] = {
    "OK", "INVALID", "NOT_FOUND", "EXISTS", "CONFLICT", "OUT_OF_RANGE", "UNAVAILABLE", "OVERLOADED",
    "FENCED", "CORRUPT", "UNSUPPORTED", "UNKNOWN_OUTCOME", "CANCELLED", "DEADLINE", "DENIED", "INTERNAL"};

const char *mink_code_name(enum mink_code code) {
    return (unsigned)code < MINK_CODE_COUNT ? code_names[code] : "UNKNOWN";
}

bool mink_code_retriable(enum mink_code code) {
    return code == MINK_UNAVAILABLE || code == MINK_OVERLOADED || code == MINK_UNKNOWN_OUTCOME || code == MINK_FENCED;
}

void error_clear(struct error *e) {
    if (e == NULL) return;
    e->code = MINK_OK;
    e->reason[0] = e->message[0] = e->hint[0] = e->column[0] = e->expected[0] = e->actual[0] = 0;
}

enum mink_code error_set(struct error *e, enum mink_code code, const char *reason, const char *format, ...) {
    if (e == NULL) return code;
    // The arguments may point into the old error: format first.
    char message[sizeof e->message];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    error_clear(e);
    e->code = code;
    snprintf(e->reason, sizeof e->reason, "%s", reason);
    memcpy(e->message, message, sizeof message);
    return code;
}

enum mink_code error_context(struct error *e, const char *format, ...) {
    if (e == NULL) return MINK_INTERNAL;
    char message[sizeof e->message];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (n >= 0 && (size_t)n < sizeof message) snprintf(message + n, sizeof message - (size_t)n, ": %s", e->message);
    memcpy(e->message, message, sizeof message);
    return e->code;
}

void error_hint(struct error *e, const char *format, ...) {
    if (e == NULL) return;
    va_list args;
    va_start(args, format);
    vsnprintf(e->hint, sizeof e->hint, format, args);
    va_end(args);
}

void error_copy(struct error *target, const struct error *source) {
    if (target == NULL) return;
    if (source == NULL) error_clear(target);
    else if (target != source) *target = *source;
}

void error_about(struct error *e, const char *column, const char *expected, const char *actual) {
    if (e == NULL) return;
    if (column) snprintf(e->column, sizeof e->column, "%s", column);
    if (expected) snprintf(e->expected, sizeof e->expected, "%s", expected);
    if (actual) snprintf(e->actual, sizeof e->actual, "%s", actual);
}
