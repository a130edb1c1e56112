// SPDX-License-Identifier: Apache-2.0
#include "base/mutant.h"

#ifdef MINK_MUTANTS
enum mutant mutant_active;
#endif

static const char *const names[] = {
    "NONE",
#define MUTANT_NAME(name) #name,
    MUTANTS(MUTANT_NAME)
#undef MUTANT_NAME
};

const char *mutant_name(enum mutant m) { return m < MUTANT_COUNT ? names[m] : "?"; }
