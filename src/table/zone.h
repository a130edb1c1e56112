// SPDX-License-Identifier: Apache-2.0
// zone.h: how far a time zone is from UTC at an instant.
//
// What      UTC, fixed offsets, and names of the IANA database, whose compiled files are read from the system.
// Holds     Nothing of a file is believed before its bounds are checked. What a zone says depends on the files of this machine:
//           only decisions that become commands may rest on it, never the application of commands.
// Source    RFC 8536 (TZif), POSIX.1 environment variable TZ for the rule behind the last transition.
#ifndef MINK_TABLE_ZONE_H
#define MINK_TABLE_ZONE_H

#include "base/error.h"

#include <stddef.h>

struct zone;
// The form of the name alone: INVALID [BAD_OPTION].
enum mink_code zone_check(const char *name, struct error *e) MINK_MUST_CHECK;
// INVALID [BAD_OPTION] when there is no such zone, or its file is damaged.
enum mink_code zone_open(const char *name, struct zone **out, struct error *e) MINK_MUST_CHECK;
void zone_free(struct zone *z);
int32_t zone_offset(const struct zone *z, int64_t utc_seconds); // seconds east of UTC
// The bytes of a compiled zone; for zone_open and the tests.
enum mink_code zone_parse(const uint8_t *data, size_t size, const char *name, struct zone **out, struct error *e) MINK_MUST_CHECK;

// Days since 1970-01-01 of a day in the proleptic Gregorian calendar, and back.
int64_t days_from_civil(int64_t year, uint32_t month, uint32_t day);
void civil_from_days(int64_t days, int64_t *year, uint32_t *month, uint32_t *day);

#endif
