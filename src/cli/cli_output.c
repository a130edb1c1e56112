// SPDX-License-Identifier: Apache-2.0
// What commands print: errors, aligned tables, progress.
#include "cli/cli.h"

#include "base/clock.h"
#include "base/executor.h"
#include "base/json.h"
#include "base/mem.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

volatile int cli_interrupted;

static void on_signal(int number) {
    if (cli_interrupted) _exit(128 + number); // the second one does not wait
    cli_interrupted = number;
}

void cli_catch_signals(void) {
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static int fail(const struct cli *cli, const char *reason, const char *message, const char *hint, const char *column, const char *expected, const char *actual) {
    if (cli->json) {
        struct buffer b;
        struct json_writer w;
        buffer_init(&b, 1 << 16);
        json_begin(&w, &b);
        json_object_begin(&w);
        json_put_key(&w, "error");
        json_object_begin(&w);
        const struct { const char *key, *value; } fields[] = {{"code", reason}, {"message", message}, {"hint", hint}, {"column", column}, {"expected", expected}, {"actual", actual}};
        for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
            if (!fields[i].value[0]) continue;
            json_put_key(&w, fields[i].key);
            json_put_string(&w, fields[i].value);
        }
        json_object_end(&w);
        json_object_end(&w);
        printf("%s\n", buffer_string(&b));
        buffer_deinit(&b);
    } else {
        fprintf(stderr, "mink: [%s] %s\n", reason, message);
        // A hint of several lines is a text with a caret below it: they stay aligned.
        for (const char *at = hint; *at;) {
            size_t size = strcspn(at, "\n");
            fprintf(stderr, "%s%.*s\n", at == hint ? "hint: " : "      ", (int)size, at);
            at += size + (at[size] != 0);
        }
    }
    return CLI_FAILED;
}

int cli_fail(const struct cli *cli, const struct mink_error *e) { return fail(cli, e->reason, e->message, e->hint, e->column, e->expected, e->actual); }
int cli_fail_local(const struct cli *cli, const struct error *e) { return fail(cli, e->reason, e->message, e->hint, e->column, e->expected, e->actual); }

int cli_fail_text(const struct cli *cli, const char *reason, const char *format, ...) {
    char message[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return fail(cli, reason, message, "", "", "", "");
}

struct mink_client *cli_client(struct cli *cli) {
    if (cli->client) return cli->client;
    int64_t timeout;
    struct mink_error e;
    if (cli_option_int(cli, "timeout", 30000, 1, 86400000, &timeout)) return NULL;
    struct mink_options options = {.server = cli_option(cli, "server"), .timeout_ms = (uint32_t)timeout};
    if (!options.server) options.server = getenv("MINK_SERVER");
    if (mink_connect(&options, &cli->client, &e) == MINK_STATUS_OK) return cli->client;
    cli_fail(cli, &e);
    return NULL;
}

int cli_action(struct cli *cli, const char *action, const char *body, void (*print)(const char *json), const char *done) {
    struct mink_client *client = cli_client(cli);
    if (!client) return CLI_FAILED;
    struct mink_results results = {0};
    struct mink_error e;
    if (mink_action(client, action, body, &results, &e) != MINK_STATUS_OK) return cli_fail(cli, &e);
    bool list = strncmp(action, "list-", 5) == 0;
    if (cli->json) { // one document, whatever the number of results
        if (list) printf("[");
        for (size_t i = 0; i < results.count; i++) printf("%s%s", i ? "," : "", results.items[i]);
        if (list) printf("]");
        else if (results.count == 0) printf("{}");
        printf("\n");
    } else if (print) {
        for (size_t i = 0; i < results.count; i++) print(results.items[i]);
    } else if (done) {
        printf("%s\n", done);
    }
    mink_results_free(&results);
    return CLI_DONE;
}

// ---- tables of text

struct cli_table {
    int columns;
    char **cells;
    size_t count, capacity;
};

struct cli_table *cli_table_new(int columns, const char *const *headers) {
    struct cli_table *t = mem_new(struct cli_table);
    t->columns = columns;
    for (int i = 0; i < columns; i++) cli_table_cell(t, headers[i]);
    return t;
}

void cli_table_cell(struct cli_table *t, const char *text) {
    if (t->count == t->capacity) {
        t->capacity = t->capacity ? t->capacity * 2 : 64;
        t->cells = mem_realloc(t->cells, t->capacity * sizeof *t->cells);
    }
    t->cells[t->count++] = mem_strdup(text);
}

// Characters of UTF-8 text, near enough to columns of a terminal.
static int width_of(const char *s) {
    int n = 0;
    for (; *s; s++) n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

void cli_table_print(struct cli_table *t) {
    int *widths = mem_new_array(int, (size_t)t->columns);
    for (size_t i = 0; i < t->count; i++) {
        int width = width_of(t->cells[i]);
        if (width > widths[i % (size_t)t->columns]) widths[i % (size_t)t->columns] = width;
    }
    for (size_t i = 0; i < t->count; i++) {
        int column = (int)(i % (size_t)t->columns);
        bool last = column == t->columns - 1;
        printf("%s%*s%s", t->cells[i], last ? 0 : widths[column] - width_of(t->cells[i]), "", last ? "\n" : "  ");
        mem_free(t->cells[i]);
    }
    mem_free(widths);
    mem_free(t->cells);
    mem_free(t);
}

// ---- progress

static void human(double bytes, char *out, size_t size) {
    const char *units[] = {"B", "KB", "MB", "GB", "TB"};
    int unit = 0;
    while (bytes >= 1000 && unit < 4) bytes /= 1000, unit++;
    snprintf(out, size, unit ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
}

void cli_progress_start(struct cli_progress *p, const struct cli *cli, const char *what, uint64_t bytes_total) {
    *p = (struct cli_progress){.what = what, .bytes_total = bytes_total, .started_ns = clock_monotonic_ns(), .quiet = cli->json || !isatty(STDERR_FILENO)};
}

void cli_progress_show(struct cli_progress *p, uint64_t rows, uint64_t bytes) {
    uint64_t now = clock_monotonic_ns();
    if (p->quiet || now - p->started_ns < NS_PER_S / 2 || (p->shown && now - p->shown_ns < NS_PER_S / 10)) return;
    double seconds = (double)(now - p->started_ns) / 1e9;
    char amount[32], rate[32], left[64] = "";
    human((double)bytes, amount, sizeof amount);
    human((double)bytes / seconds, rate, sizeof rate);
    if (p->bytes_total && bytes) {
        double done = (double)bytes / (double)p->bytes_total;
        snprintf(left, sizeof left, "  %3.0f %%  %.0f s left", done * 100, seconds / done - seconds);
    }
    fprintf(stderr, "\r\x1b[K%s: %llu rows  %s  %s/s%s", p->what, (unsigned long long)rows, amount, rate, left);
    fflush(stderr);
    p->shown = true;
    p->shown_ns = now;
}

void cli_progress_end(struct cli_progress *p, uint64_t rows, uint64_t bytes) {
    if (p->shown) fprintf(stderr, "\r\x1b[K");
    p->shown = false;
}
