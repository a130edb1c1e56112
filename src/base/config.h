// SPDX-License-Identifier: Apache-2.0
// config.h: settings from defaults, a file, the environment and the command line, in rising order; each remembers where it came from.
//
// What      The program gives a table of options; everything else (checks, near names, --print-config, docs) comes from it. The file is
//           the part of TOML that settings need: [section], key = value with strings, numbers, true and false, comments.
// Owner     One thread; read-only after start-up.
#ifndef MINK_BASE_CONFIG_H
#define MINK_BASE_CONFIG_H

#include "base/buffer.h"
#include "base/error.h"

enum config_type { CONFIG_STRING, CONFIG_INT, CONFIG_REAL, CONFIG_BOOL, CONFIG_BYTES /* 64MiB */, CONFIG_DURATION /* 250ms, 7d; value in ms */ };
struct config_option {
    const char *key; // "wal.linger_ms", "store"
    enum config_type type;
    const char *fallback; // as text; NULL = required by whoever reads it
    const char *meaning;
    double min, max;      // numbers, bytes, ms; both 0 = unbounded
};
struct config_value { const char *text; double number; bool on; char origin[300]; };
struct config {
    const struct config_option *options; // ends with a row without a key
    struct config_value *values;         // one per option
    uint32_t count;
    char **owned; uint32_t owned_count;
};
enum mink_code config_init(struct config *c, const struct config_option *options, struct error *e) MINK_MUST_CHECK;
void config_deinit(struct config *c);
enum mink_code config_set(struct config *c, const char *key, const char *text, const char *origin, struct error *e) MINK_MUST_CHECK; // INVALID [UNKNOWN_SETTING] near name, [BAD_SETTING]
enum mink_code config_read_file(struct config *c, const char *path, struct error *e) MINK_MUST_CHECK; // errors name the line
enum mink_code config_read_text(struct config *c, const char *name, const char *text, size_t size, struct error *e) MINK_MUST_CHECK;
enum mink_code config_read_environment(struct config *c, const char *prefix, char *const *environment, struct error *e) MINK_MUST_CHECK; // MINK_WAL_LINGER_MS; unknown ones are ignored

const char *config_text(const struct config *c, const char *key);  // NULL when it has no value
double config_number(const struct config *c, const char *key);     // bytes; ms
bool config_bool(const struct config *c, const char *key);
// The text with the password of a URL, and the secrets of its query, as ***: for everything that is shown or logged.
void config_put_masked(struct buffer *out, const char *text);
void config_print(const struct config *c, struct buffer *out);     // a file that reads back, with meanings and origins; passwords in URLs masked
#endif
