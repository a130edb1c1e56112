// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum log_level log_level_now = LOG_INFO;
static bool as_json;
static const char *const names[] = {"debug", "info", "warn", "error"};

void log_configure(enum log_level level, bool json) {
    log_level_now = level;
    as_json = json;
}

bool log_level_parse(const char *text, enum log_level *out) {
    for (int i = 0; i < 4; i++)
        if (strcmp(text, names[i]) == 0) {
            *out = (enum log_level)i;
            return true;
        }
    return false;
}

static void put_time(struct buffer *b) {
    int64_t ms = clock_wall_ms();
    time_t seconds = ms / 1000;
    struct tm t;
    gmtime_r(&seconds, &t);
    buffer_printf(b, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", t.tm_year + 1900, t.tm_mon + 1, t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec, (int)(ms % 1000));
}

// A quote ends a text when the line ends behind it or the next field begins: texts may hold quotes themselves.
static bool is_last_quote(const char *at) {
    if (*at != '"') return false;
    if (at[1] == 0) return true;
    size_t name = strspn(at + 2, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return at[1] == ' ' && name > 0 && at[2 + name] == '=';
}

// key=value key="text with spaces" … → members of the JSON object.
static void put_members(struct json_writer *w, const char *at) {
    while (*at) {
        at += strspn(at, " ");
        size_t key = strcspn(at, "= ");
        if (at[key] != '=') {
            at += key;
            continue;
        }
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)key, at);
        at += key + 1;
        bool quoted = *at == '"';
        at += quoted;
        const char *end = at;
        if (quoted)
            while (*end && !is_last_quote(end)) end++;
        else
            end += strcspn(at, " ");
        json_put_key(w, name);
        json_put_text(w, at, (size_t)(end - at));
        at = end + (quoted && *end == '"');
    }
}

void log_write(enum log_level level, const char *event, const char *format, ...) {
    char fields[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(fields, sizeof fields, format, args);
    va_end(args);
    for (char *at = fields; *at; at++)
        if ((unsigned char)*at < 0x20) *at = ' '; // one line each, whatever came from outside
    struct buffer line;
    buffer_init(&line, 16384);
    if (as_json) {
        struct buffer stamp;
        struct json_writer w;
        buffer_init(&stamp, 64);
        put_time(&stamp);
        json_begin(&w, &line);
        json_object_begin(&w);
        json_put_key(&w, "time");
        json_put_text(&w, (const char *)stamp.data, stamp.size);
        json_put_key(&w, "level");
        json_put_string(&w, names[level]);
        json_put_key(&w, "event");
        json_put_string(&w, event);
        put_members(&w, fields);
        json_object_end(&w);
        buffer_deinit(&stamp);
    } else {
        put_time(&line);
        buffer_printf(&line, " %-5s %s %s", names[level], event, fields);
    }
    buffer_put_u8(&line, '\n');
    for (size_t at = 0; at < line.size;) { // one write, so that lines of threads do not mix
        ssize_t n = write(STDERR_FILENO, line.data + at, line.size - at);
        if (n <= 0) break;
        at += (size_t)n;
    }
    buffer_deinit(&line);
}

bool log_limit_pass(struct log_limit *limit) {
    long long second = (long long)(clock_monotonic_ns() / 1000000000ull) + 1;
    if (__atomic_load_n(&limit->second, __ATOMIC_RELAXED) == second) {
        __atomic_add_fetch(&limit->dropped, 1, __ATOMIC_RELAXED);
        return false;
    }
    __atomic_store_n(&limit->second, second, __ATOMIC_RELAXED);
    unsigned dropped = __atomic_exchange_n(&limit->dropped, 0, __ATOMIC_RELAXED);
    if (dropped) log_write(LOG_WARN, "log.dropped", "lines=%u reason=\"more than one a second of the next line\"", dropped);
    return true;
}
