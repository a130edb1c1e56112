// SPDX-License-Identifier: Apache-2.0
// mink get and mink tail: rows of a table, once or as they come.
#include "cli/cli.h"
#include "cli/output.h"

#include "arrow/cdata.h"
#include "base/json.h"
#include "base/mem.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// "a, b,c" → names; frees with the array. Pointers go into *copy.
static size_t split_names(const char *text, char **copy, const char ***out) {
    *out = NULL;
    *copy = NULL;
    if (!text) return 0;
    *copy = mem_strdup(text);
    size_t count = 0;
    for (char *at = *copy; *at;) {
        at += strspn(at, " ");
        char *end = at + strcspn(at, ",");
        bool last = *end == 0;
        *end = 0;
        for (char *tail = end; tail > at && tail[-1] == ' ';) *--tail = 0;
        *out = mem_realloc(*out, (count + 1) * sizeof **out);
        (*out)[count++] = at;
        at = last ? end : end + 1;
    }
    return count;
}

static int choose_format(struct cli *cli, FILE *file, enum output_format *out) {
    const char *format = cli_option(cli, "format");
    if (!format) format = cli->json ? "json" : isatty(fileno(file)) || !cli_option(cli, "output") ? "table" : "csv";
    if (strcmp(format, "table") == 0) *out = OUTPUT_TABLE;
    else if (strcmp(format, "csv") == 0) *out = OUTPUT_CSV;
    else if (strcmp(format, "json") == 0) *out = OUTPUT_JSON;
    else if (strcmp(format, "arrow") == 0) *out = OUTPUT_ARROW;
    else return cli_usage(cli, "unknown format: %s (known: table, csv, json, arrow)", format);
    if (*out == OUTPUT_ARROW && isatty(fileno(file))) return cli_usage(cli, "--format arrow is binary: give --output FILE or a pipe");
    return CLI_DONE;
}

struct reading {
    struct cli *cli;
    struct mink_scan_options options;
    char *columns, *meta;
    const char **column_names, **meta_names;
    FILE *file;
    enum output_format format;
    bool progress;
};

static int prepare(struct reading *r, struct cli *cli) {
    int64_t bucket, limit;
    *r = (struct reading){.cli = cli, .file = stdout};
    int status = cli_option_int(cli, "bucket", -1, 0, INT32_MAX, &bucket);
    if (!status) status = cli_option_int(cli, "limit", -1, 0, INT64_MAX, &limit);
    if (status) return status;
    r->options = (struct mink_scan_options){.table = cli->arguments[0], .filter = cli_option(cli, "where"), .partition = cli_option(cli, "partition"), .bucket = (int32_t)bucket, .from = cli_option(cli, "from"), .until = cli_option(cli, "until"), .limit = limit};
    r->options.column_count = split_names(cli_option(cli, "columns"), &r->columns, &r->column_names);
    r->options.meta_count = split_names(cli_option(cli, "meta"), &r->meta, &r->meta_names);
    r->options.columns = r->column_names;
    r->options.meta = r->meta_names;
    const char *path = cli_option(cli, "output");
    if (path && strcmp(path, "-") != 0 && !(r->file = fopen(path, "wb"))) return cli_fail_text(cli, "OUTPUT", "%s: %s", path, strerror(errno));
    r->progress = r->file != stdout;
    return choose_format(cli, r->file, &r->format);
}

static void clean_up(struct reading *r) {
    mem_free(r->columns);
    mem_free(r->meta);
    mem_free(r->column_names);
    mem_free(r->meta_names);
    if (r->file && r->file != stdout) fclose(r->file);
}

// Scans into the output; *rows counts what was written.
static int run_scan(struct reading *r, uint64_t *rows) {
    struct mink_client *client = cli_client(r->cli);
    struct mink_scan *scan;
    struct mink_error e;
    struct error local;
    if (!client) return CLI_FAILED;
    if (mink_scan_open(client, &r->options, &scan, &e) != MINK_STATUS_OK) return cli_fail(r->cli, &e);
    struct ArrowSchema exported;
    struct arrow_schema *schema = NULL;
    int status = CLI_DONE;
    if (mink_scan_schema(scan, &exported, &e) != MINK_STATUS_OK) status = cli_fail(r->cli, &e);
    else if (arrow_schema_import(&exported, &schema, &local) != MINK_OK) status = cli_fail_local(r->cli, &local);
    if (status) {
        mink_scan_close(scan);
        return status;
    }
    struct output output;
    struct cli_progress progress;
    output_init(&output, r->file, r->format, schema);
    cli_progress_start(&progress, r->cli, r->options.table, 0);
    progress.quiet |= !r->progress;
    uint64_t bytes = 0;
    for (;;) {
        struct ArrowArray array;
        struct arrow_batch batch;
        enum mink_status code = mink_scan_next(scan, &array, NULL, &e);
        if (code == MINK_STATUS_CANCELLED && cli_interrupted) break;
        if (code != MINK_STATUS_OK) {
            status = cli_fail(r->cli, &e);
            break;
        }
        if (!array.release) break;
        if (arrow_batch_import(&array, schema, &batch, &local) != MINK_OK || output_batch(&output, &batch, &local) != MINK_OK) {
            status = cli_fail_local(r->cli, &local);
            break;
        }
        *rows += (uint64_t)batch.row_count;
        bytes += arrow_batch_bytes(&batch);
        arrow_batch_deinit(&batch);
        if (r->options.until && strcmp(r->options.until, "never") == 0) fflush(r->file);
        cli_progress_show(&progress, *rows, bytes);
        if (cli_interrupted) break;
    }
    cli_progress_end(&progress, *rows, bytes);
    if (status == CLI_DONE && output_end(&output, &local) != MINK_OK) status = cli_fail_local(r->cli, &local);
    output_deinit(&output);
    arrow_schema_unref(schema);
    mink_scan_close(scan);
    return status;
}

int cli_run_get(struct cli *cli) {
    struct reading r;
    uint64_t rows = 0;
    cli_catch_signals();
    int status = prepare(&r, cli);
    if (status == CLI_DONE) status = run_scan(&r, &rows);
    if (status == CLI_DONE && r.file != stdout && !cli->json) printf("%llu rows\n", (unsigned long long)rows);
    clean_up(&r);
    return status;
}

// The last `wanted` rows a bucket: where to start.
static int start_of_tail(struct cli *cli, int64_t wanted, char *from, size_t size) {
    struct buffer body;
    struct json_writer w;
    buffer_init(&body, 4096);
    json_begin(&w, &body);
    json_object_begin(&w);
    json_put_key(&w, "table");
    json_put_string(&w, cli->arguments[0]);
    if (cli_option(cli, "partition")) {
        json_put_key(&w, "partition");
        json_put_string(&w, cli_option(cli, "partition"));
    }
    json_put_key(&w, "bucket");
    json_put_int(&w, strtol(cli_option(cli, "bucket") ? cli_option(cli, "bucket") : "0", NULL, 10));
    json_put_key(&w, "at");
    json_put_string(&w, "latest");
    json_object_end(&w);
    struct mink_results results;
    struct mink_error e;
    struct mink_client *client = cli_client(cli);
    if (!client) return CLI_FAILED;
    enum mink_status status = mink_action(client, "list-offsets", buffer_string(&body), &results, &e);
    buffer_deinit(&body);
    if (status != MINK_STATUS_OK) return cli_fail(cli, &e);
    int64_t end = 0;
    struct json *answer;
    if (results.count && json_parse(results.items[0], strlen(results.items[0]), &answer, NULL) == MINK_OK) {
        end = json_int(json_get(answer, "offset"));
        json_free(answer);
    }
    mink_results_free(&results);
    snprintf(from, size, "%lld", (long long)(end > wanted ? end - wanted : 0));
    return CLI_DONE;
}

int cli_run_tail(struct cli *cli) {
    struct reading r;
    uint64_t rows = 0;
    int64_t wanted;
    char from[32];
    int status = cli_option_int(cli, "rows", 10, 1, 1000000, &wanted);
    if (status) return status;
    status = prepare(&r, cli);
    bool follow = cli_flag(cli, "follow");
    if (follow) {
        r.options.until = "never";
        if (!r.options.from) r.options.from = "latest";
        // A follow waits in the client: the default action of SIGINT ends it, and nothing is lost by that.
    } else if (!r.options.from && status == CLI_DONE) {
        // Of one bucket (the only one, or the one named): a table's buckets have no common order.
        status = start_of_tail(cli, wanted, from, sizeof from);
        r.options.from = from;
        if (r.options.bucket < 0) r.options.bucket = 0;
    }
    if (status == CLI_DONE) status = run_scan(&r, &rows);
    clean_up(&r);
    return status;
}
