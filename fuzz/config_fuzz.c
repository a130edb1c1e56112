// SPDX-License-Identifier: Apache-2.0
// Configuration files from anybody: what was taken is in range, knows its origin, and is printed so that it reads back the same.
#include "base/config.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>

static const struct config_option options[] = {{"store", CONFIG_STRING, NULL, "where objects are"},
                                               {"threads", CONFIG_INT, "2", "how many", 1, 64},
                                               {"offset", CONFIG_INT, "0", "any whole number"},
                                               {"wal.put_rate", CONFIG_REAL, "30", "uploads a second", -1, 1000},
                                               {"wal.factor", CONFIG_REAL, "1", "any number"},
                                               {"wal.size_max", CONFIG_BYTES, "4MiB", "closes at this size", 1024, 1e9},
                                               {"wal.total", CONFIG_BYTES, "1TiB", "any size"},
                                               {"gc.grace", CONFIG_DURATION, "10min", "any duration"},
                                               {"log.json", CONFIG_BOOL, "false", "as JSON"},
                                               {"log.level", CONFIG_STRING, "info", "debug, info, warn or error"},
                                               {0}};

static void check_value(const struct config_option *o, const struct config_value *v) {
    if (!v->text) {
        mink_assert(!o->fallback);
        return;
    }
    mink_assert(strcmp(v->origin, "default") == 0 || strncmp(v->origin, "fuzz, line ", 11) == 0);
    mink_assert(isfinite(v->number));
    if (o->min != 0 || o->max != 0) mink_assert(v->number >= o->min && v->number <= o->max);
}

// As shown: a password is *** on both sides, everything else must be equal.
static void check_same_text(const char *a, const char *b) {
    struct buffer shown_a, shown_b;
    buffer_init(&shown_a, 1u << 20);
    buffer_init(&shown_b, 1u << 20);
    config_put_masked(&shown_a, a);
    config_put_masked(&shown_b, b);
    mink_assert(strcmp(buffer_string(&shown_a), buffer_string(&shown_b)) == 0);
    if (!strstr(a, "://")) mink_assert(strcmp(a, b) == 0);
    buffer_deinit(&shown_a);
    buffer_deinit(&shown_b);
}

static void check_reads_back(const struct config *c) {
    struct config again;
    struct buffer text;
    struct error e;
    mink_assert(config_init(&again, options, &e) == MINK_OK);
    buffer_init(&text, 1u << 20);
    config_print(c, &text);
    mink_assert(!text.overflowed);
    if (config_read_text(&again, "printed", (const char *)text.data, text.size, &e) != MINK_OK) mink_panic(__FILE__, __LINE__, "%s", e.message);
    for (uint32_t i = 0; i < c->count; i++) {
        const struct config_value *a = &c->values[i], *b = &again.values[i];
        mink_assert((a->text == NULL) == (b->text == NULL));
        if (!a->text) continue;
        mink_assert(a->number == b->number && a->on == b->on);
        check_same_text(a->text, b->text);
    }
    buffer_deinit(&text);
    config_deinit(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct config c;
    struct error e = {0};
    if (size > 16384) return 0;
    mink_assert(config_init(&c, options, &e) == MINK_OK);
    enum mink_code code = config_read_text(&c, "fuzz", (const char *)data, size, &e);
    mink_assert(code == MINK_OK || (code == MINK_INVALID && e.code == code && e.reason[0] && strncmp(e.message, "fuzz, line ", 11) == 0));
    for (uint32_t i = 0; i < c.count; i++) check_value(&c.options[i], &c.values[i]);
    check_reads_back(&c); // also after an error: what came before it was taken
    config_deinit(&c);
    return 0;
}
