// SPDX-License-Identifier: Apache-2.0
// mink put: rows from a file or stdin into a table.
//
// Into one bucket, batches carry a writer id and sequence numbers. A load that was interrupted is started again with --writer: the server knows
// which batches it has; it answers a batch that is too old with the number it expects, and the load goes on from there.
#include "cli/cli.h"
#include "cli/input.h"

#include "arrow/cdata.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>


struct put {
    struct cli *cli;
    const char *table;
    struct input *input;
    struct mink_writer *writer;
    struct mink_writer_options options;
    int64_t bucket_count;
    uint64_t skip; // batches that the server has already
    uint64_t rows, batches, duplicates_skipped;
};

static int choose_format(struct cli *cli, const char *path, enum input_format *out) {
    const char *format = cli_option(cli, "format");
    if (!format) {
        const char *dot = path ? strrchr(path, '.') : NULL;
        if (!dot) return cli_usage(cli, "mink put: --format csv, json or arrow (stdin and files without an ending do not tell)");
        format = dot + 1;
    }
    if (strcmp(format, "csv") == 0 || strcmp(format, "tsv") == 0) *out = INPUT_CSV;
    else if (strcmp(format, "json") == 0 || strcmp(format, "jsonl") == 0 || strcmp(format, "ndjson") == 0) *out = INPUT_JSON;
    else if (strcmp(format, "arrow") == 0 || strcmp(format, "arrows") == 0 || strcmp(format, "ipc") == 0 || strcmp(format, "feather") == 0) *out = INPUT_ARROW;
    else return cli_usage(cli, "unknown format: %s (known: csv, json, arrow)", format);
    return CLI_DONE;
}

// What get-table says: whether one bucket takes everything.
static int look_up_table(struct put *p, struct arrow_schema **schema) {
    struct mink_error e;
    struct mink_client *client = cli_client(p->cli);
    if (!client) return CLI_FAILED;
    struct ArrowSchema exported;
    if (mink_table_schema(client, p->table, &exported, &e) != MINK_STATUS_OK) return cli_fail(p->cli, &e);
    struct error local;
    if (arrow_schema_import(&exported, schema, &local) != MINK_OK) return cli_fail_local(p->cli, &local);
    struct buffer body;
    struct json_writer w;
    buffer_init(&body, 4096);
    json_begin(&w, &body);
    json_object_begin(&w);
    json_put_key(&w, "table");
    json_put_string(&w, p->table);
    json_object_end(&w);
    struct mink_results results;
    enum mink_status status = mink_action(client, "get-table", buffer_string(&body), &results, &e);
    buffer_deinit(&body);
    if (status != MINK_STATUS_OK) return cli_fail(p->cli, &e);
    struct json *description = NULL;
    if (results.count && json_parse(results.items[0], strlen(results.items[0]), &description, &local) == MINK_OK) {
        const struct json *definition = json_get(description, "definition");
        const char *buckets = json_text(json_get(json_get(definition, "options"), "bucket.num"));
        p->bucket_count = json_count(json_get(definition, "partition_by")) || !buckets ? 0 : strtol(buckets, NULL, 10);
        json_free(description);
    }
    mink_results_free(&results);
    return CLI_DONE;
}

static int init_writer(struct put *p) {
    const char *given = cli_option(p->cli, "writer");
    if (given) {
        char *end;
        p->options.writer_id = strtoull(given, &end, 10);
        if (*end || p->options.writer_id == 0) return cli_usage(p->cli, "--writer: \"%s\" is not a writer id", given);
    }
    bool single = p->options.bucket >= 0 || p->bucket_count == 1;
    if (given && !single) return cli_usage(p->cli, "--writer: rows of %s go to several buckets; name one with --bucket", p->table);
    if (!single) return CLI_DONE;
    if (p->options.bucket < 0) p->options.bucket = 0;
    if (given) return CLI_DONE;
    struct mink_results results;
    struct mink_error e;
    if (mink_action(cli_client(p->cli), "init-writer", "{}", &results, &e) != MINK_STATUS_OK) return cli_fail(p->cli, &e);
    struct json *answer = NULL;
    struct error local;
    if (results.count && json_parse(results.items[0], strlen(results.items[0]), &answer, &local) == MINK_OK) p->options.writer_id = (uint64_t)json_int(json_get(answer, "writer"));
    json_free(answer);
    mink_results_free(&results);
    return CLI_DONE;
}

static enum mink_status open_writer(struct put *p, struct mink_error *e) {
    struct ArrowSchema exported;
    struct error local;
    if (arrow_schema_export(input_schema(p->input), &exported, &local) != MINK_OK) {
        memset(e, 0, sizeof *e);
        e->status = MINK_STATUS_INTERNAL;
        snprintf(e->reason, sizeof e->reason, "%s", local.reason);
        snprintf(e->message, sizeof e->message, "%s", local.message);
        return e->status;
    }
    p->options.sequence = (uint32_t)p->batches;
    return mink_writer_open(cli_client(p->cli), &p->options, &exported, &p->writer, e);
}

static int report(struct put *p, const char *problem, const struct mink_error *e) {
    uint64_t rows = p->writer ? mink_writer_rows_acked(p->writer) : 0;
    if (e) cli_fail(p->cli, e);
    if (!p->cli->json) {
        fprintf(stderr, "mink: %s; %llu rows are durable\n", problem, (unsigned long long)rows);
        if (p->options.writer_id)
            fprintf(stderr, "hint: go on without doubling a row: mink put %s%s%s --writer %llu%s\n", p->table, p->cli->argument_count > 1 ? " " : "",
                    p->cli->argument_count > 1 ? p->cli->arguments[1] : " (the same input)", (unsigned long long)p->options.writer_id, p->bucket_count == 1 ? "" : " --bucket …");
    }
    return CLI_FAILED;
}

// The server has batches up to `expected` of a resumed writer: skip them in the input.
static bool resumes_at(const struct mink_error *e, uint64_t *expected) {
    if (strcmp(e->reason, "OUT_OF_ORDER_SEQUENCE") != 0 || !e->expected[0]) return false;
    char *end;
    *expected = strtoull(e->expected, &end, 10);
    return *end == 0;
}

static int load(struct put *p) {
    struct cli_progress progress;
    struct mink_error e;
    struct error local;
    cli_progress_start(&progress, p->cli, p->table, input_bytes_total(p->input));
    bool resumed = cli_option(p->cli, "writer") != NULL, probing = resumed;
    for (bool end = false; !end;) {
        struct arrow_batch batch;
        if (input_next(p->input, &batch, &end, &local) != MINK_OK) {
            struct mink_error ignored;
            if (p->writer && mink_writer_flush(p->writer, &ignored) != MINK_STATUS_OK) cli_fail(p->cli, &ignored);
            cli_fail_local(p->cli, &local);
            return report(p, "stopped at the input's error", NULL);
        }
        if (end) {
            arrow_batch_deinit(&batch);
            break;
        }
        uint64_t rows = (uint64_t)batch.row_count;
        if (p->batches < p->skip) { // the server has it
            arrow_batch_deinit(&batch);
            p->batches++;
            p->duplicates_skipped++;
            continue;
        }
        if (!p->writer && open_writer(p, &e) != MINK_STATUS_OK) {
            arrow_batch_deinit(&batch);
            return report(p, "the server refused", &e);
        }
        struct ArrowArray array;
        enum mink_status status;
        if (arrow_batch_export(&batch, &array, &local) != MINK_OK) return cli_fail_local(p->cli, &local);
        status = mink_writer_append(p->writer, &array, &e);
        if (status == MINK_STATUS_OK && probing) { // the first batch of a resumed load tells where the server stands
            status = mink_writer_flush(p->writer, &e);
            probing = false;
            uint64_t expected;
            if (status != MINK_STATUS_OK && resumes_at(&e, &expected) && expected > p->batches) {
                mink_writer_abort(p->writer);
                p->writer = NULL;
                p->skip = expected;
                arrow_batch_deinit(&batch);
                p->batches++;
                p->duplicates_skipped++;
                continue;
            }
        }
        arrow_batch_deinit(&batch);
        if (status != MINK_STATUS_OK) return report(p, "the load stopped", &e);
        p->batches++;
        p->rows += rows;
        cli_progress_show(&progress, p->rows, input_bytes_total(p->input) ? input_bytes_read(p->input) : p->rows);
        if (cli_interrupted) {
            if (mink_writer_flush(p->writer, &e) != MINK_STATUS_OK) return report(p, "interrupted", &e);
            cli_progress_end(&progress, p->rows, 0);
            return report(p, "interrupted", NULL);
        }
    }
    uint64_t acked = 0;
    if (p->writer) {
        if (mink_writer_flush(p->writer, &e) != MINK_STATUS_OK) return report(p, "the load stopped", &e);
        acked = mink_writer_rows_acked(p->writer);
        enum mink_status status = mink_writer_close(p->writer, &e);
        p->writer = NULL;
        if (status != MINK_STATUS_OK) return cli_fail(p->cli, &e);
    }
    cli_progress_end(&progress, p->rows, 0);
    double seconds = (double)(clock_monotonic_ns() - progress.started_ns) / 1e9;
    if (p->cli->json) printf("{\"table\":\"%s\",\"rows\":%llu,\"batches\":%llu,\"skipped_batches\":%llu,\"writer\":%llu,\"seconds\":%.3f}\n", p->table, (unsigned long long)acked,
                             (unsigned long long)(p->batches - p->duplicates_skipped), (unsigned long long)p->duplicates_skipped, (unsigned long long)p->options.writer_id, seconds);
    else if (p->duplicates_skipped) printf("%llu rows in %.2f s (%llu batches were there already)\n", (unsigned long long)acked, seconds, (unsigned long long)p->duplicates_skipped);
    else printf("%llu rows in %.2f s\n", (unsigned long long)acked, seconds);
    return CLI_DONE;
}

int cli_run_put(struct cli *cli) {
    struct put p = {.cli = cli, .table = cli->arguments[0], .options = {.bucket = -1}};
    const char *path = cli->argument_count > 1 ? cli->arguments[1] : NULL;
    enum input_format format = INPUT_CSV;
    int64_t batch_rows, bucket;
    int status = choose_format(cli, path, &format);
    if (!status) status = cli_option_int(cli, "batch-rows", 10000, 1, 10000000, &batch_rows);
    if (!status) status = cli_option_int(cli, "bucket", -1, 0, INT32_MAX, &bucket);
    if (status) return status;
    const char *delimiter = cli_option(cli, "delimiter");
    if (delimiter && strcmp(delimiter, "\\t") == 0) delimiter = "\t";
    if (delimiter && strlen(delimiter) != 1) return cli_usage(cli, "--delimiter: \"%s\" is not one character", delimiter);
    cli_catch_signals();
    p.options.table = p.table;
    p.options.partition = cli_option(cli, "partition");
    p.options.bucket = (int32_t)bucket;
    p.options.compression = cli_option(cli, "compression");
    struct arrow_schema *schema = NULL;
    if ((status = look_up_table(&p, &schema)) != CLI_DONE) return status;
    struct input_options options = {.path = path, .format = format, .table = schema, .batch_rows = batch_rows, .delimiter = delimiter ? delimiter[0] : ',', .null_text = cli_option(cli, "null"), .header = cli_option(cli, "header")};
    const char *dot = path ? strrchr(path, '.') : NULL;
    if (!delimiter && dot && strcmp(dot, ".tsv") == 0) options.delimiter = '\t';
    struct error e;
    if (input_open(&options, &p.input, &e) != MINK_OK) {
        arrow_schema_unref(schema);
        return cli_fail_local(cli, &e);
    }
    status = init_writer(&p);
    if (status == CLI_DONE) status = load(&p);
    if (p.writer) mink_writer_abort(p.writer);
    input_close(p.input);
    arrow_schema_unref(schema);
    return status;
}
