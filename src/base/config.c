// SPDX-License-Identifier: Apache-2.0
#include "base/config.h"

#include "base/mem.h"
#include "base/nearest.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define FILE_BYTES_MAX (1u << 20)

static int32_t find(const struct config *c, const char *key) {
    for (uint32_t i = 0; i < c->count; i++)
        if (strcmp(c->options[i].key, key) == 0) return (int32_t)i;
    return -1;
}

static const struct config_value *value_of(const struct config *c, const char *key) {
    int32_t i = find(c, key);
    mink_assert(i >= 0);
    return &c->values[i];
}

const char *config_text(const struct config *c, const char *key) { return value_of(c, key)->text; }
double config_number(const struct config *c, const char *key) { return value_of(c, key)->number; }
bool config_bool(const struct config *c, const char *key) { return value_of(c, key)->on; }

struct unit { const char *name; double factor; };
static const struct unit byte_units[] = {{"", 1}, {"B", 1}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824}, {"TiB", 1099511627776.0}, {NULL, 0}};
static const struct unit time_units[] = {{"", 1}, {"ms", 1}, {"s", 1e3}, {"m", 6e4}, {"min", 6e4}, {"h", 3.6e6}, {"d", 8.64e7}, {NULL, 0}};

static bool with_unit(const char *text, const struct unit *units, double *out) {
    char *end;
    errno = 0;
    double v = strtod(text, &end);
    if (end == text || errno) return false;
    while (*end == ' ') end++;
    for (const struct unit *u = units; u->name; u++)
        if (strcasecmp(end, u->name) == 0) {
            *out = v * u->factor;
            return isfinite(*out);
        }
    return false;
}

static bool parse(enum config_type type, const char *text, struct config_value *v) {
    char *end;
    // strtod and its kin skip blanks and line breaks in front. Printed without quotes, such a number would not read back.
    if (type != CONFIG_STRING && isspace((unsigned char)text[0])) return false;
    errno = 0;
    switch (type) {
    case CONFIG_STRING: return true;
    case CONFIG_INT: v->number = (double)strtoll(text, &end, 10); return end != text && *end == 0 && errno == 0;
    case CONFIG_REAL: v->number = strtod(text, &end); return end != text && *end == 0 && errno == 0 && isfinite(v->number);
    case CONFIG_BOOL:
        v->on = strcmp(text, "true") == 0 || strcmp(text, "on") == 0 || strcmp(text, "1") == 0;
        return v->on || strcmp(text, "false") == 0 || strcmp(text, "off") == 0 || strcmp(text, "0") == 0;
    case CONFIG_BYTES: return with_unit(text, byte_units, &v->number);
    case CONFIG_DURATION: return with_unit(text, time_units, &v->number);
    }
    return false;
}

static const char *const wanted[] = {"text", "a whole number", "a number", "true or false", "a size (64MiB)", "a duration (250ms, 7d)"};

enum mink_code config_set(struct config *c, const char *key, const char *text, const char *origin, struct error *e) {
    int32_t i = find(c, key);
    if (i < 0) {
        struct nearest near;
        nearest_init(&near, key);
        for (uint32_t k = 0; k < c->count; k++) nearest_offer(&near, c->options[k].key);
        const char *best = nearest_found(&near);
        error_set(e, MINK_INVALID, "UNKNOWN_SETTING", "%s: unknown setting %s%s%s%s", origin, key, best ? "; did you mean " : "", best ? best : "", best ? "?" : "");
        error_about(e, key, best, NULL);
        return MINK_INVALID;
    }
    const struct config_option *o = &c->options[i];
    struct config_value v = {0};
    if (!parse(o->type, text, &v)) {
        error_set(e, MINK_INVALID, "BAD_SETTING", "%s: %s = \"%s\" is not %s", origin, key, text, wanted[o->type]);
        error_about(e, key, wanted[o->type], text);
        return MINK_INVALID;
    }
    if ((o->min != 0 || o->max != 0) && (v.number < o->min || v.number > o->max)) {
        error_set(e, MINK_INVALID, "BAD_SETTING", "%s: %s = %s is outside %g to %g", origin, key, text, o->min, o->max);
        error_about(e, key, "a value in range", text);
        return MINK_INVALID;
    }
    c->owned = mem_realloc(c->owned, (c->owned_count + 1) * sizeof *c->owned);
    v.text = c->owned[c->owned_count++] = mem_strdup(text);
    snprintf(v.origin, sizeof v.origin, "%s", origin);
    c->values[i] = v;
    return MINK_OK;
}

enum mink_code config_init(struct config *c, const struct config_option *options, struct error *e) {
    *c = (struct config){.options = options};
    while (options[c->count].key) c->count++;
    c->values = mem_new_array(struct config_value, c->count);
    for (uint32_t i = 0; i < c->count; i++)
        if (options[i].fallback) MINK_TRY(config_set(c, options[i].key, options[i].fallback, "default", e));
    return MINK_OK;
}

void config_deinit(struct config *c) {
    for (uint32_t i = 0; i < c->owned_count; i++) mem_free(c->owned[i]);
    mem_free(c->owned);
    mem_free(c->values);
    *c = (struct config){0};
}

// ---- the file

struct cursor { const char *at, *end; };

static void blank(struct cursor *l) {
    while (l->at < l->end && (*l->at == ' ' || *l->at == '\t' || *l->at == '\r')) l->at++;
}

static bool line_is_over(struct cursor *l) {
    blank(l);
    return l->at == l->end || *l->at == '#';
}

static bool word(struct cursor *l, const char *extra, char *out, size_t size) {
    size_t n = 0;
    blank(l);
    while (l->at < l->end && (isalnum((unsigned char)*l->at) || (*l->at && strchr(extra, *l->at))) && n + 1 < size) out[n++] = *l->at++;
    out[n] = 0;
    blank(l);
    return n > 0;
}

static bool value(struct cursor *l, char *out, size_t size) {
    size_t n = 0;
    blank(l);
    if (l->at < l->end && (*l->at == '"' || *l->at == '\'')) {
        char quote = *l->at++;
        while (l->at < l->end && *l->at != quote && n + 1 < size) {
            char c = *l->at++;
            if (c == '\\' && quote == '"' && l->at < l->end) {
                c = *l->at++;
                if (c != '"' && c != '\\' && c != 'n' && c != 't') return false;
                c = c == 'n' ? '\n' : c == 't' ? '\t' : c;
            }
            out[n++] = c;
        }
        out[n] = 0;
        if (l->at == l->end || *l->at != quote) return false;
        l->at++;
        return true;
    }
    while (l->at < l->end && *l->at != '#' && n + 1 < size) out[n++] = *l->at++;
    while (n > 0 && (out[n - 1] == ' ' || out[n - 1] == '\t' || out[n - 1] == '\r')) n--;
    out[n] = 0;
    return n > 0;
}

enum mink_code config_read_text(struct config *c, const char *name, const char *text, size_t size, struct error *e) {
    char section[64] = "", key[64], full[140], text_value[4096], origin[300];
    int line = 0;
    for (const char *at = text, *end = text + size; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        const char *begin = at;
        struct cursor l = {at, stop ? stop : end};
        line++;
        at = stop ? stop + 1 : end;
        if (memchr(l.at, 0, (size_t)(l.end - l.at))) return error_set(e, MINK_INVALID, "BAD_CONFIG", "%s, line %d: holds a zero character", name, line);
        if (line_is_over(&l)) continue;
        if (*l.at == '[') {
            l.at++;
            bool good = word(&l, "_-.", section, sizeof section) && l.at < l.end && *l.at == ']';
            l.at++;
            if (!good || !line_is_over(&l)) return error_set(e, MINK_INVALID, "BAD_CONFIG", "%s, line %d: a section is written [name]", name, line);
            continue;
        }
        if (!word(&l, "_-.", key, sizeof key) || l.at == l.end || *l.at != '=')
            return error_set(e, MINK_INVALID, "BAD_CONFIG", "%s, line %d, column %d: expected key = value", name, line, (int)(l.at - begin) + 1);
        l.at++;
        if (!value(&l, text_value, sizeof text_value) || !line_is_over(&l)) return error_set(e, MINK_INVALID, "BAD_CONFIG", "%s, line %d: the value of %s is not closed, something follows it, or it has an unknown escape", name, line, key);
        snprintf(full, sizeof full, "%s%s%s", section, section[0] ? "." : "", key);
        snprintf(origin, sizeof origin, "%s, line %d", name, line);
        MINK_TRY(config_set(c, full, text_value, origin, e));
    }
    return MINK_OK;
}

enum mink_code config_read_file(struct config *c, const char *path, struct error *e) {
    FILE *f = fopen(path, "rb");
    if (!f) return error_set(e, MINK_NOT_FOUND, "CONFIG_FILE", "%s: %s", path, strerror(errno));
    char *text = mem_alloc(FILE_BYTES_MAX + 1);
    size_t size = fread(text, 1, FILE_BYTES_MAX + 1, f);
    bool failed = ferror(f) != 0;
    fclose(f);
    enum mink_code code = failed                 ? error_set(e, MINK_UNAVAILABLE, "CONFIG_FILE", "%s cannot be read", path)
                          : size > FILE_BYTES_MAX ? error_set(e, MINK_INVALID, "CONFIG_FILE", "%s is larger than 1 MiB", path)
                                                  : config_read_text(c, path, text, size, e);
    mem_free(text);
    return code;
}

enum mink_code config_read_environment(struct config *c, const char *prefix, char *const *environment, struct error *e) {
    for (; *environment; environment++) {
        const char *equals = strchr(*environment, '=');
        if (!equals || strncmp(*environment, prefix, strlen(prefix)) != 0) continue;
        for (uint32_t i = 0; i < c->count; i++) {
            char name[160];
            int n = snprintf(name, sizeof name, "%s%s", prefix, c->options[i].key);
            for (char *at = name; *at; at++) *at = *at == '.' || *at == '-' ? '_' : (char)toupper((unsigned char)*at);
            if (n != equals - *environment || strncmp(name, *environment, (size_t)n) != 0) continue;
            MINK_TRY(config_set(c, c->options[i].key, equals + 1, name, e));
        }
    }
    return MINK_OK;
}

static bool is_secret(const char *name, size_t size) {
    static const char *const parts[] = {"secret", "password", "passwd", "token", "key"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        for (size_t at = 0, n = strlen(parts[i]); at + n <= size; at++)
            if (strncasecmp(name + at, parts[i], n) == 0) return true;
    return false;
}

static void put_escaped(struct buffer *out, const char *text, size_t size) {
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\n' || text[i] == '\t') {
            buffer_put_string(out, text[i] == '\n' ? "\\n" : "\\t");
            continue;
        }
        if (text[i] == '"' || text[i] == '\\') buffer_put_u8(out, '\\');
        buffer_put_u8(out, (uint8_t)text[i]);
    }
}

void config_put_masked(struct buffer *out, const char *text) {
    const char *scheme = strstr(text, "://");
    if (!scheme) {
        put_escaped(out, text, strlen(text));
        return;
    }
    const char *host = scheme + 3, *host_end = host + strcspn(host, "/?#"), *query = strchr(host, '?');
    const char *at = memrchr(host, '@', (size_t)(host_end - host));
    const char *colon = at ? memchr(host, ':', (size_t)(at - host)) : NULL;
    if (colon) {
        put_escaped(out, text, (size_t)(colon + 1 - text));
        buffer_put_string(out, "***");
        text = at;
    }
    while (query) {
        const char *name = query + 1, *name_end = name + strcspn(name, "=&"), *value_end = name + strcspn(name, "&");
        if (*name_end == '=' && is_secret(name, (size_t)(name_end - name))) {
            put_escaped(out, text, (size_t)(name_end + 1 - text));
            buffer_put_string(out, "***");
            text = value_end;
        }
        query = *value_end ? value_end : NULL;
    }
    put_escaped(out, text, strlen(text));
}

void config_print(const struct config *c, struct buffer *out) {
    const char *section = "";
    size_t section_size = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        const struct config_option *o = &c->options[i];
        const struct config_value *v = &c->values[i];
        const char *dot = strchr(o->key, '.'), *key = dot ? dot + 1 : o->key;
        size_t size = dot ? (size_t)(dot - o->key) : 0;
        if (size != section_size || strncmp(o->key, section, size) != 0) {
            section = o->key;
            section_size = size;
            buffer_printf(out, "\n[%.*s]\n", (int)size, section);
        }
        buffer_printf(out, "# %s\n", o->meaning);
        if (!v->text) {
            buffer_printf(out, "# %s is not set\n", key);
            continue;
        }
        buffer_printf(out, "%s = ", key);
        if (o->type == CONFIG_INT || o->type == CONFIG_REAL || o->type == CONFIG_BOOL) buffer_put_string(out, v->text);
        else {
            buffer_put_u8(out, '"');
            config_put_masked(out, v->text);
            buffer_put_u8(out, '"');
        }
        buffer_printf(out, "   # %s\n", v->origin);
    }
}
