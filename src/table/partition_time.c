// SPDX-License-Identifier: Apache-2.0
// Automatic partitions: values that are spans of time. Inside, a span is a number: hours since 1970, days since 1970, months, quarters or years
// since year 0; values are its text by the table's format.
#include "base/mem.h"
#include "table/partition.h"
#include "table/table_internal.h"
#include "table/zone.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *partition_format_default(enum time_unit unit) {
    static const char *const formats[] = {"yyyyMMddHH", "yyyyMMdd", "yyyyMM", "yyyyQ", "yyyy"};
    return formats[unit];
}

// What a unit needs, from the largest down.
static const char *unit_fields(enum time_unit unit) {
    static const char *const fields[] = {"yMdH", "yMd", "yM", "yQ", "y"};
    return fields[unit];
}

static uint32_t field_width(char field) { return field == 'y' ? 4 : field == 'Q' ? 1 : 2; }

// The next piece of a format: a field (its letter, width digits) or a separator (itself).
static bool next_piece(const char **format, char *piece, bool *is_field) {
    char c = **format;
    if (c == '-' || c == '_') {
        *piece = *(*format)++;
        *is_field = false;
        return true;
    }
    if (c == 0 || strchr("yQMdH", c) == NULL) return false;
    uint32_t width = field_width(c);
    for (uint32_t i = 0; i < width; i++)
        if ((*format)[i] != c) return false;
    if ((*format)[width] == c) return false;
    *format += width;
    *piece = c;
    *is_field = true;
    return true;
}

enum mink_code partition_format_check(const char *format, enum time_unit unit, struct error *e) {
    const char *p = format, *wanted = unit_fields(unit);
    bool right = *format != '_' || format[1] != '_'; // names that begin with __ are the system's
    while (*p && right) {
        char piece;
        bool field;
        right = next_piece(&p, &piece, &field);
        if (right && field) right = piece == *wanted++;
    }
    if (right && *wanted == 0) return MINK_OK;
    error_set(e, MINK_INVALID, "BAD_OPTION", "time format \"%.40s\" does not fit the time unit", format);
    error_hint(e, "fields from the largest to the unit, like %s, with - or _ between them", partition_format_default(unit));
    return MINK_INVALID;
}

enum mink_code partition_zone_check(const char *zone, struct error *e) { return zone_check(zone, e); }

enum mink_code partition_zone_find(const char *zone, struct error *e) {
    struct zone *z;
    MINK_TRY(zone_open(zone, &z, e));
    zone_free(z);
    return MINK_OK;
}

// ---- spans

struct parts { int64_t year; uint32_t month, day, hour; };

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }

static int64_t span_of(const struct parts *t, enum time_unit unit) {
    switch (unit) {
    case UNIT_HOUR: return days_from_civil(t->year, t->month, t->day) * 24 + t->hour;
    case UNIT_DAY: return days_from_civil(t->year, t->month, t->day);
    case UNIT_MONTH: return t->year * 12 + t->month - 1;
    case UNIT_QUARTER: return t->year * 4 + (t->month - 1) / 3;
    default: return t->year;
    }
}

static struct parts parts_of(int64_t span, enum time_unit unit) {
    struct parts t = {.month = 1, .day = 1};
    switch (unit) {
    case UNIT_HOUR: t.hour = (uint32_t)(span - floor_div(span, 24) * 24); span = floor_div(span, 24); // fall through
    case UNIT_DAY: civil_from_days(span, &t.year, &t.month, &t.day); break;
    case UNIT_MONTH:
        t.year = floor_div(span, 12);
        t.month = (uint32_t)(span - t.year * 12) + 1;
        break;
    case UNIT_QUARTER:
        t.year = floor_div(span, 4);
        t.month = (uint32_t)(span - t.year * 4) * 3 + 1;
        break;
    default: t.year = span;
    }
    return t;
}

// False when the year does not fit its four digits.
static bool print_span(const struct table_def *d, int64_t span, char out[64]) {
    struct parts t = parts_of(span, d->auto_partition.unit);
    const char *p = d->auto_partition.format;
    char piece;
    bool field;
    size_t n = 0;
    if (t.year < 0 || t.year > 9999) return false;
    while (next_piece(&p, &piece, &field)) {
        if (!field) out[n++] = piece;
        else if (piece == 'y') n += (size_t)snprintf(out + n, 64 - n, "%04" PRId64, t.year);
        else if (piece == 'Q') n += (size_t)snprintf(out + n, 64 - n, "%u", (t.month - 1) / 3 + 1);
        else n += (size_t)snprintf(out + n, 64 - n, "%02u", piece == 'M' ? t.month : piece == 'd' ? t.day : t.hour);
    }
    out[n] = 0;
    return true;
}

bool partition_span_read(const struct table_def *d, const char *text, size_t size, int64_t *out) {
    struct parts t = {.month = 1, .day = 1};
    const char *p = d->auto_partition.format, *end = text + size;
    char piece;
    bool field;
    while (next_piece(&p, &piece, &field)) {
        uint32_t width = field ? field_width(piece) : 1, v = 0;
        if ((size_t)(end - text) < width) return false;
        if (!field && *text != piece) return false;
        for (uint32_t i = 0; i < width && field; i++) {
            if (text[i] < '0' || text[i] > '9') return false;
            v = v * 10 + (uint32_t)(text[i] - '0');
        }
        text += width;
        if (!field) continue;
        if (piece == 'y') t.year = v;
        else if (piece == 'H') t.hour = v;
        else if (v < 1) return false;
        else if (piece == 'Q') t.month = v <= 4 ? v * 3 - 2 : 13;
        else if (piece == 'M') t.month = v;
        else t.day = v;
    }
    if (text != end || t.month > 12 || t.day > 31 || t.hour > 23) return false;
    struct parts back = parts_of(span_of(&t, d->auto_partition.unit), d->auto_partition.unit); // no February 30th
    *out = span_of(&t, d->auto_partition.unit);
    return back.month == t.month && back.day == t.day;
}

// The span an instant is in, by the clocks of the zone.
static int64_t span_at(const struct table_def *d, const struct zone *z, int64_t utc_seconds) {
    int64_t local = utc_seconds + zone_offset(z, utc_seconds), days = floor_div(local, 86400);
    struct parts t = {.hour = (uint32_t)(floor_div(local, 3600) - days * 24)};
    civil_from_days(days, &t.year, &t.month, &t.day);
    return span_of(&t, d->auto_partition.unit);
}

// `steps` spans away from now. Hours are counted by the sun, the others by the calendar: an hour that clocks leave out is never wanted.
static int64_t span_away(const struct table_def *d, const struct zone *z, int64_t now_ms, int64_t steps) {
    int64_t now = floor_div(now_ms, 1000);
    if (d->auto_partition.unit == UNIT_HOUR) return span_at(d, z, now + steps * 3600);
    return span_at(d, z, now) + steps;
}

uint32_t partition_auto_wanted(const struct table_def *d, int64_t now_ms, char names[][PARTITION_NAME_MAX], uint32_t names_max) {
    struct zone *z;
    // With more columns than the time one, only writes know the other values.
    if (!d->auto_partition.enabled || d->partition_by_count != 1 || zone_open(d->auto_partition.zone, &z, NULL) != MINK_OK) return 0;
    uint32_t count = 0;
    for (int32_t i = 0; i < d->auto_partition.precreate && count < names_max; i++) {
        char value[64];
        if (!print_span(d, span_away(d, z, now_ms, i), value)) break;
        if (count && strcmp(names[count - 1], value) == 0) continue; // an hour that clocks show twice
        snprintf(names[count++], PARTITION_NAME_MAX, "%s", value);
    }
    zone_free(z);
    return count;
}

bool partition_auto_expired(const struct table_def *d, const char *name, int64_t now_ms) {
    int64_t span;
    struct zone *z;
    if (!d->auto_partition.enabled || d->auto_partition.retention < 0) return false;
    for (uint32_t i = 0; i < d->partition_by_count && d->partition_by[i] != d->auto_partition.key; i++) {
        name = strchr(name, '$');
        if (name == NULL) return false;
        name++;
    }
    // What is no time by the format was not made by us and does not age.
    if (!partition_span_read(d, name, strcspn(name, "$"), &span) || zone_open(d->auto_partition.zone, &z, NULL) != MINK_OK) return false;
    bool expired = span < span_away(d, z, now_ms, -(int64_t)d->auto_partition.retention);
    zone_free(z);
    return expired;
}
