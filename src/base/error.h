// SPDX-License-Identifier: Apache-2.0
// error.h: how a failure is told.
//
// What      A function that can fail returns enum mink_code; its text goes into a struct error that the caller
//           owns, of fixed size, so failing never allocates. Each layer adds what it was doing, outside in.
// Holds     code == MINK_OK if and only if the call succeeded; a struct error is complete whenever code is not OK.
#ifndef MINK_BASE_ERROR_H
#define MINK_BASE_ERROR_H

#include <stdbool.h>
#include <stdint.h>

// The class tells the caller what to do.
enum mink_code {
    MINK_OK = 0,
    MINK_INVALID,         // fix the request
    MINK_NOT_FOUND,       // the named thing does not exist
    MINK_EXISTS,          // the named thing exists already
    MINK_CONFLICT,        // precondition failed: read again, then decide
    MINK_OUT_OF_RANGE,    // offset or time outside what is kept
    MINK_UNAVAILABLE,     // nothing was done; retry
    MINK_OVERLOADED,      // a bound was reached; back off, then retry
    MINK_FENCED,          // somebody else owns this now; stop serving
    MINK_CORRUPT,         // stored bytes are wrong; tell, never guess
    MINK_UNSUPPORTED,     // valid, but not something we do
    MINK_UNKNOWN_OUTCOME, // may or may not have happened
    MINK_CANCELLED,       // the caller went away or asked to stop
    MINK_DEADLINE,        // the caller's deadline passed
    MINK_DENIED,          // not allowed
    MINK_INTERNAL,        // our mistake
    MINK_CODE_COUNT
};

struct error {
    enum mink_code code;
    char reason[40];   // stable, upper case: TABLE_NOT_FOUND; what programs match
    char message[512]; // what, where
    char hint[256];    // what would be right, or empty
    char column[64];   // column, option or field at fault, or empty
    char expected[64]; // for type and range errors, or empty
    char actual[64];
};

#define MINK_MUST_CHECK __attribute__((warn_unused_result))

// Sets everything and returns code. e may be NULL (then only the code is told).
enum mink_code error_set(struct error *e, enum mink_code code, const char *reason, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
// Adds context in front: "append shop.orders/3: <old message>". Returns e->code.
enum mink_code error_context(struct error *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
void error_hint(struct error *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
void error_clear(struct error *e);
void error_copy(struct error *target, const struct error *source); // either may be NULL
// Which column or option, what was wanted, what came; each may be NULL.
void error_about(struct error *e, const char *column, const char *expected, const char *actual);

const char *mink_code_name(enum mink_code code); // "INVALID"
bool mink_code_retriable(enum mink_code code);   // a later retry of the same request may succeed

// if ((code = f(…, e)) != MINK_OK) return code;
#define MINK_TRY(expression)                            \
    do {                                                \
        enum mink_code mink_try_code_ = (expression);   \
        if (mink_try_code_ != MINK_OK) return mink_try_code_; \
    } while (0)

#endif
