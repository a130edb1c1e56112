// SPDX-License-Identifier: Apache-2.0
// log.h: structured log lines for an operator: time, level, event, fields. To stderr, one line each.
//
// log_info("seal.done", "incarnation=%" PRIu64 " seal_seq=%" PRIu64 " ms=%d", i, seq, ms);
// Format "text" (default) or "json". No secrets, nothing per row. Any thread. log_limited drops repeats of one call
// site within a second and says how many were dropped.
#ifndef MINK_BASE_LOG_H
#define MINK_BASE_LOG_H
#include <stdbool.h>
enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };
void log_configure(enum log_level level, bool json);
bool log_level_parse(const char *text, enum log_level *out);
// Text fields that may hold spaces go as %s inside quotes: message="%s".
void log_write(enum log_level level, const char *event, const char *fields_format, ...) __attribute__((format(printf, 3, 4)));
extern enum log_level log_level_now;
#define log_at(level, ...) ((level) >= log_level_now ? log_write((level), __VA_ARGS__) : (void)0)
#define log_debug(...) log_at(LOG_DEBUG, __VA_ARGS__)
#define log_info(...) log_at(LOG_INFO, __VA_ARGS__)
#define log_warn(...) log_at(LOG_WARN, __VA_ARGS__)
#define log_error(...) log_at(LOG_ERROR, __VA_ARGS__)
struct log_limit { long long second; unsigned dropped; };
bool log_limit_pass(struct log_limit *limit); // racy by design: a lost count does no harm
#define log_limited(level, ...)                                                                  \
    do {                                                                                         \
        static struct log_limit log_limit_;                                                      \
        if ((level) >= log_level_now && log_limit_pass(&log_limit_)) log_write((level), __VA_ARGS__); \
    } while (0)
#endif
