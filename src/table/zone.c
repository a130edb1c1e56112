// SPDX-License-Identifier: Apache-2.0
#include "table/zone.h"

#include "base/mem.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define ZONE_FOLDER "/usr/share/zoneinfo"
#define ZONE_BYTES_MAX (256u << 10)
#define TRANSITIONS_MAX 8192
#define OFFSET_MAX (26 * 3600) // more than any zone has had

// A day of the year on which a rule changes the clock.
struct rule_day { char kind; uint32_t month, week, day; int32_t seconds; }; // kind 'M', 'J' or '0'

struct zone {
    uint32_t transition_count;
    int64_t *times;        // ascending
    int32_t *offsets;      // from each transition on
    int32_t offset_first;  // before the first
    bool has_rule, has_dst;
    int32_t standard, daylight;
    struct rule_day dst_begin, dst_end; // seconds: by the clock that holds until then
};

int64_t days_from_civil(int64_t year, uint32_t month, uint32_t day) {
    // Years from March, so that the leap day is the last one.
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t of_era = year - era * 400, of_year = (153 * ((int64_t)month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

void civil_from_days(int64_t days, int64_t *year, uint32_t *month, uint32_t *day) {
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097, of_era = days - era * 146097;
    int64_t y = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365, of_year = of_era - (365 * y + y / 4 - y / 100), m = (5 * of_year + 2) / 153;
    *day = (uint32_t)(of_year - (153 * m + 2) / 5 + 1);
    *month = (uint32_t)(m < 10 ? m + 3 : m - 9);
    *year = y + era * 400 + (*month <= 2);
}

// ---- names

static enum mink_code bad_zone(const char *name, const char *why, struct error *e) {
    error_set(e, MINK_INVALID, "BAD_OPTION", "time zone \"%.60s\": %s", name, why);
    error_hint(e, "UTC, an offset like +02:00, or a name like Europe/Berlin");
    return MINK_INVALID;
}

// "+02:00", "-5", "+0530", also behind UTC and GMT; 0 for these alone and for Z.
static bool read_fixed(const char *name, int32_t *out) {
    *out = 0;
    if (strcmp(name, "Z") == 0) return true;
    bool prefix = strncmp(name, "UTC", 3) == 0 || strncmp(name, "GMT", 3) == 0;
    if (prefix) name += 3;
    if (prefix && !*name) return true;
    if (*name != '+' && *name != '-') return false;
    int32_t sign = *name++ == '-' ? -1 : 1, digits[4], count = 0, colon = -1;
    for (; *name; name++) {
        if (*name == ':' && colon < 0 && (count == 1 || count == 2)) {
            colon = count;
            continue;
        }
        if (*name < '0' || *name > '9' || count == 4) return false;
        digits[count++] = *name - '0';
    }
    if (colon >= 0 ? count - colon != 2 : count != 1 && count != 2 && count != 4) return false;
    int32_t hour_digits = colon >= 0 ? colon : count > 2 ? 2 : count;
    int32_t hours = hour_digits == 2 ? digits[0] * 10 + digits[1] : digits[0];
    int32_t minutes = count > hour_digits ? digits[hour_digits] * 10 + digits[hour_digits + 1] : 0;
    if (hours > 18 || minutes > 59) return false;
    *out = sign * (hours * 3600 + minutes * 60);
    return true;
}

enum mink_code zone_check(const char *name, struct error *e) {
    int32_t fixed;
    if (read_fixed(name, &fixed)) return MINK_OK;
    bool right = (name[0] >= 'A' && name[0] <= 'Z') || (name[0] >= 'a' && name[0] <= 'z');
    for (const char *p = name; *p && right; p++) right = (*p >= 'A' && *p <= 'Z') || (*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9') || (*p != 0 && strchr("_+-/", *p));
    return right ? MINK_OK : bad_zone(name, "is no name of a zone", e);
}

// ---- rules

static bool rule_number(const char **p, int32_t max, int32_t *out) {
    int32_t v = 0;
    if (**p < '0' || **p > '9') return false;
    for (; **p >= '0' && **p <= '9'; ++*p) {
        v = v * 10 + **p - '0';
        if (v > max) return false;
    }
    *out = v;
    return true;
}

// [+-]hh[:mm[:ss]]
static bool rule_time(const char **p, int32_t *out) {
    int32_t sign = 1, h, m = 0, s = 0;
    if (**p == '+' || **p == '-') sign = *(*p)++ == '-' ? -1 : 1;
    if (!rule_number(p, 167, &h)) return false;
    if (**p == ':' && (++*p, !rule_number(p, 59, &m))) return false;
    if (**p == ':' && (++*p, !rule_number(p, 59, &s))) return false;
    *out = sign * (h * 3600 + m * 60 + s);
    return true;
}

static bool rule_name(const char **p) {
    const char *begin = *p;
    if (**p == '<') {
        while (**p && **p != '>') ++*p;
        return *(*p)++ == '>';
    }
    while ((**p >= 'A' && **p <= 'Z') || (**p >= 'a' && **p <= 'z')) ++*p;
    return *p - begin >= 3;
}

static bool rule_day(const char **p, struct rule_day *out) {
    int32_t month = 0, week = 0, day = 0;
    *out = (struct rule_day){.kind = '0', .seconds = 7200};
    if (**p == 'M') {
        out->kind = *(*p)++;
        if (!rule_number(p, 12, &month) || *(*p)++ != '.' || !rule_number(p, 5, &week) || *(*p)++ != '.' || !rule_number(p, 6, &day) || month < 1 || week < 1) return false;
    } else {
        if (**p == 'J') out->kind = *(*p)++;
        if (!rule_number(p, 365, &day) || (out->kind == 'J' && day < 1)) return false;
    }
    out->month = (uint32_t)month;
    out->week = (uint32_t)week;
    out->day = (uint32_t)day;
    if (**p != '/') return true;
    ++*p;
    return rule_time(p, &out->seconds);
}

static bool read_rule(const char *p, struct zone *z) {
    int32_t west;
    if (!rule_name(&p) || !rule_time(&p, &west)) return false;
    z->standard = z->daylight = -west;
    z->has_rule = true;
    if (!*p) return true;
    z->has_dst = true;
    z->daylight = z->standard + 3600;
    if (!rule_name(&p)) return false;
    if (*p != ',') {
        if (!rule_time(&p, &west)) return false;
        z->daylight = -west;
    }
    return *p++ == ',' && rule_day(&p, &z->dst_begin) && *p++ == ',' && rule_day(&p, &z->dst_end) && *p == 0;
}

static bool is_leap(int64_t year) { return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0; }

// The day of a year, as days since 1970.
static int64_t rule_days(const struct rule_day *r, int64_t year) {
    if (r->kind == '0') return days_from_civil(year, 1, 1) + r->day;
    if (r->kind == 'J') return days_from_civil(year, 1, 1) + r->day - 1 + (is_leap(year) && r->day > 59);
    int64_t first = days_from_civil(year, r->month, 1), next = r->month == 12 ? days_from_civil(year + 1, 1, 1) : days_from_civil(year, r->month + 1, 1);
    int64_t weekday = ((first + 4) % 7 + 7) % 7; // 1970-01-01 was a Thursday
    int64_t day = first + ((int64_t)r->day - weekday + 7) % 7 + 7 * ((int64_t)r->week - 1);
    while (day >= next) day -= 7; // week 5 is the last
    return day;
}

static int32_t rule_offset(const struct zone *z, int64_t t) {
    if (!z->has_dst) return z->standard;
    int64_t year, local_days = (t + z->standard) / 86400 - ((t + z->standard) % 86400 < 0);
    uint32_t month, day;
    civil_from_days(local_days, &year, &month, &day);
    int64_t begin = rule_days(&z->dst_begin, year) * 86400 + z->dst_begin.seconds - z->standard;
    int64_t end = rule_days(&z->dst_end, year) * 86400 + z->dst_end.seconds - z->daylight;
    bool dst = begin < end ? t >= begin && t < end : t >= begin || t < end; // in the south the summer spans the new year
    return dst ? z->daylight : z->standard;
}

// ---- files

static uint32_t be32(const uint8_t *p) { return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]; }
static int64_t be64(const uint8_t *p) { return (int64_t)((uint64_t)be32(p) << 32 | be32(p + 4)); }

struct tz_header { uint32_t utc, standard, leap, time, type, chars; };

static bool read_header(const uint8_t **p, const uint8_t *end, struct tz_header *h, uint8_t *version) {
    if (end - *p < 44 || memcmp(*p, "TZif", 4) != 0) return false;
    *version = (*p)[4];
    *h = (struct tz_header){be32(*p + 20), be32(*p + 24), be32(*p + 28), be32(*p + 32), be32(*p + 36), be32(*p + 40)};
    *p += 44;
    return h->utc <= 256 && h->standard <= 256 && h->leap <= 256 && h->time <= TRANSITIONS_MAX && h->type >= 1 && h->type <= 256 && h->chars <= 4096;
}

static size_t body_size(const struct tz_header *h, size_t time_size) {
    return h->time * time_size + h->time + h->type * 6 + h->chars + h->leap * (time_size + 4) + h->standard + h->utc;
}

static bool parse(const uint8_t *p, size_t size, struct zone *z) {
    const uint8_t *end = p + size;
    struct tz_header h;
    uint8_t version;
    if (!read_header(&p, end, &h, &version) || (size_t)(end - p) < body_size(&h, 4)) return false;
    if (version < '2') return false; // nobody has written these for decades
    p += body_size(&h, 4);
    if (!read_header(&p, end, &h, &version) || (size_t)(end - p) < body_size(&h, 8)) return false;
    const uint8_t *times = p, *types = p + h.time * 8, *infos = types + h.time, *footer = p + body_size(&h, 8);
    z->times = mem_new_array(int64_t, h.time + 1);
    z->offsets = mem_new_array(int32_t, h.time + 1);
    z->transition_count = h.time;
    z->offset_first = (int32_t)be32(infos);
    for (uint32_t i = 0; i < h.type; i++) {
        int32_t offset = (int32_t)be32(infos + i * 6);
        if (offset > OFFSET_MAX || offset < -OFFSET_MAX) return false;
    }
    for (uint32_t i = 0; i < h.time; i++) {
        z->times[i] = be64(times + i * 8);
        if (types[i] >= h.type || (i && z->times[i] <= z->times[i - 1])) return false;
        z->offsets[i] = (int32_t)be32(infos + types[i] * 6);
    }
    if (footer >= end || *footer != '\n') return true;
    const uint8_t *close = memchr(footer + 1, '\n', (size_t)(end - footer - 1));
    char rule[128];
    if (close == NULL || close - footer - 1 >= (ptrdiff_t)sizeof rule) return false;
    memcpy(rule, footer + 1, (size_t)(close - footer - 1));
    rule[close - footer - 1] = 0;
    return !rule[0] || read_rule(rule, z);
}

enum mink_code zone_parse(const uint8_t *data, size_t size, const char *name, struct zone **out, struct error *e) {
    *out = mem_new(struct zone);
    if (parse(data, size, *out)) return MINK_OK;
    zone_free(*out);
    *out = NULL;
    return bad_zone(name, "its file is damaged or of an unknown kind", e);
}

enum mink_code zone_open(const char *name, struct zone **out, struct error *e) {
    int32_t fixed;
    char path[128];
    *out = NULL;
    MINK_TRY(zone_check(name, e));
    if (read_fixed(name, &fixed)) {
        *out = mem_new(struct zone);
        (*out)->offset_first = fixed;
        return MINK_OK;
    }
    snprintf(path, sizeof path, ZONE_FOLDER "/%.64s", name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return bad_zone(name, "is not in the system's " ZONE_FOLDER, e);
    uint8_t *data = mem_alloc(ZONE_BYTES_MAX);
    size_t size = 0;
    ssize_t n;
    while (size < ZONE_BYTES_MAX && (n = read(fd, data + size, ZONE_BYTES_MAX - size)) > 0) size += (size_t)n;
    close(fd);
    enum mink_code code = zone_parse(data, size, name, out, e);
    mem_free(data);
    return code;
}

void zone_free(struct zone *z) {
    if (z == NULL) return;
    mem_free(z->times);
    mem_free(z->offsets);
    mem_free(z);
}

int32_t zone_offset(const struct zone *z, int64_t t) {
    if (z->transition_count && t >= z->times[z->transition_count - 1]) return z->has_rule ? rule_offset(z, t) : z->offsets[z->transition_count - 1];
    if (z->transition_count == 0) return z->has_rule ? rule_offset(z, t) : z->offset_first;
    uint32_t low = 0, high = z->transition_count; // the first transition after t
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (z->times[middle] <= t) low = middle + 1;
        else high = middle;
    }
    return low ? z->offsets[low - 1] : z->offset_first;
}
