// SPDX-License-Identifier: Apache-2.0
// Databases, tables, partitions, offsets, statistics: each an action of the server.
#include "cli/cli.h"

#include "base/json.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

// ---- building bodies

struct body { struct buffer buffer; struct json_writer json; };

static void body_begin(struct body *b) {
    buffer_init(&b->buffer, 16 << 20);
    json_begin(&b->json, &b->buffer);
    json_object_begin(&b->json);
}

static void body_string(struct body *b, const char *key, const char *value) {
    if (!value) return;
    json_put_key(&b->json, key);
    json_put_string(&b->json, value);
}

static void body_flag(struct body *b, const char *key, bool value) {
    if (!value) return;
    json_put_key(&b->json, key);
    json_put_bool(&b->json, true);
}

static int body_send(struct body *b, struct cli *cli, const char *action, void (*print)(const char *json), const char *done) {
    json_object_end(&b->json);
    int status = cli_action(cli, action, buffer_string(&b->buffer), print, done);
    buffer_deinit(&b->buffer);
    return status;
}

static int name_action(struct cli *cli, const char *action, const char *key, const char *done) {
    struct body b;
    body_begin(&b);
    body_string(&b, key, cli->arguments[0]);
    body_string(&b, "comment", cli_option(cli, "comment"));
    body_flag(&b, "if_not_exists", cli_flag(cli, "if-not-exists"));
    body_flag(&b, "if_exists", cli_flag(cli, "if-exists"));
    body_flag(&b, "cascade", cli_flag(cli, "cascade"));
    char text[600];
    snprintf(text, sizeof text, "%s %s", done, cli->arguments[0]);
    return body_send(&b, cli, action, NULL, text);
}

// ---- printing answers

static void print_field(const char *json, const char *key) {
    struct json *document;
    if (json_parse(json, strlen(json), &document, NULL) != MINK_OK) return;
    const char *text = json_text(json_get(document, key));
    printf("%s\n", text ? text : json);
    json_free(document);
}

static void print_database(const char *json) { print_field(json, "database"); }
static void print_table_name(const char *json) { print_field(json, "table"); }
static void print_partition(const char *json) { print_field(json, "partition"); }
static void print_ddl(const char *json) { print_field(json, "ddl"); }

static void print_value(const struct json *v, int indent);

static void print_pairs(const struct json *object, int indent) {
    for (size_t i = 0; i < json_count(object); i++) {
        const struct json *value;
        const char *key = json_key_at(object, i, &value);
        bool nested = json_type(value) == JSON_OBJECT || json_type(value) == JSON_ARRAY;
        printf("%*s%s:%s", indent, "", key, nested ? "\n" : " ");
        print_value(value, indent + 2);
    }
}

static void print_scalar(const struct json *v) {
    switch (json_type(v)) {
    case JSON_NULL: printf("-"); break;
    case JSON_BOOL: printf("%s", json_bool(v) ? "yes" : "no"); break;
    case JSON_INT: printf("%lld", (long long)json_int(v)); break;
    case JSON_REAL: printf("%g", json_number(v)); break;
    case JSON_STRING: printf("%s", json_text(v)); break;
    default: break;
    }
}

static void print_value(const struct json *v, int indent) {
    if (json_type(v) == JSON_OBJECT) {
        print_pairs(v, indent);
    } else if (json_type(v) == JSON_ARRAY) {
        for (size_t i = 0; i < json_count(v); i++) {
            const struct json *item = json_at(v, i);
            if (json_type(item) != JSON_OBJECT) {
                printf("%*s", indent, "");
                print_value(item, indent);
                continue;
            }
            printf("%*s", indent, "");
            for (size_t k = 0; k < json_count(item); k++) { // one line a row
                const struct json *value;
                const char *key = json_key_at(item, k, &value);
                printf("%s%s=", k ? "  " : "", key);
                print_scalar(value);
            }
            printf("\n");
        }
    } else {
        print_scalar(v);
        printf("\n");
    }
}

static void print_document(const char *json) {
    struct json *document;
    struct error e;
    if (json_parse(json, strlen(json), &document, &e) != MINK_OK) {
        printf("%s\n", json);
        return;
    }
    print_value(document, 0);
    json_free(document);
}

// ---- commands

int cli_run_db_create(struct cli *cli) { return name_action(cli, "create-database", "database", "created"); }
int cli_run_db_drop(struct cli *cli) { return name_action(cli, "drop-database", "database", "dropped"); }
int cli_run_db_list(struct cli *cli) { return cli_action(cli, "list-databases", "{}", print_database, NULL); }
int cli_run_table_drop(struct cli *cli) { return name_action(cli, "drop-table", "table", "dropped"); }

static int read_all(struct cli *cli, const char *path, struct buffer *out) {
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (!file) return cli_fail_text(cli, "FILE", "%s: cannot be read: %m", path);
    buffer_init(out, 16 << 20);
    char chunk[65536];
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, file)) > 0;) buffer_put(out, chunk, n);
    bool failed = ferror(file) != 0;
    if (file != stdin) fclose(file);
    if (failed || out->overflowed) return cli_fail_text(cli, "FILE", "%s: %s", path, failed ? "reading failed" : "larger than 16 MiB");
    return CLI_DONE;
}

static void quote_text(struct buffer *ddl, const char *s, size_t size) {
    buffer_put_u8(ddl, '\'');
    for (size_t i = 0; i < size; i++) {
        if (s[i] == '\'') buffer_put_u8(ddl, '\'');
        buffer_put_u8(ddl, (uint8_t)s[i]);
    }
    buffer_put_u8(ddl, '\'');
}

int cli_run_table_create(struct cli *cli) {
    struct buffer ddl;
    const char *file = cli_option(cli, "file");
    char done[600];
    if (file) {
        if (cli->argument_count) return cli_usage(cli, "mink table create: a statement from --file needs no arguments");
        if (read_all(cli, file, &ddl)) return CLI_FAILED;
        snprintf(done, sizeof done, "created");
    } else {
        if (cli->argument_count < 2) return cli_usage(cli, "mink table create: missing argument: TABLE 'COLUMNS' (or --file)");
        snprintf(done, sizeof done, "created %s", cli->arguments[0]);
        buffer_init(&ddl, 16 << 20);
        // Columns stand on the first line as they were given, so that positions in error messages fit.
        buffer_printf(&ddl, "CREATE TABLE %s%s (%s)", cli_flag(cli, "if-not-exists") ? "IF NOT EXISTS " : "", cli->arguments[0], cli->arguments[1]);
        const char *partition_by = cli_option(cli, "partition-by");
        if (partition_by) buffer_printf(&ddl, " PARTITIONED BY (%s)", partition_by);
        const char *separator = " WITH (";
        const char *buckets = cli_option(cli, "buckets");
        if (buckets) {
            buffer_printf(&ddl, "%s'bucket.num'=", separator);
            quote_text(&ddl, buckets, strlen(buckets));
            separator = ", ";
        }
        for (int i = 0; i < cli->given_count; i++) {
            if (strcmp(cli->given[i].option->name, "with") != 0) continue;
            const char *pair = cli->given[i].value, *equals = strchr(pair, '=');
            if (!equals) {
                buffer_deinit(&ddl);
                return cli_usage(cli, "--with %s: wants KEY=VALUE", pair);
            }
            buffer_put_string(&ddl, separator);
            quote_text(&ddl, pair, (size_t)(equals - pair));
            buffer_put_u8(&ddl, '=');
            quote_text(&ddl, equals + 1, strlen(equals + 1));
            separator = ", ";
        }
        if (separator[0] == ',') buffer_put_string(&ddl, ")");
    }
    struct body b;
    body_begin(&b);
    json_put_key(&b.json, "ddl");
    json_put_text(&b.json, (const char *)ddl.data, ddl.size);
    body_flag(&b, "if_not_exists", cli_flag(cli, "if-not-exists"));
    buffer_deinit(&ddl);
    return body_send(&b, cli, "create-table", NULL, done);
}

int cli_run_table_alter(struct cli *cli) {
    struct buffer set, reset;
    buffer_init(&set, 1 << 20);
    buffer_init(&reset, 1 << 20);
    for (int i = 0; i < cli->given_count; i++) {
        const char *name = cli->given[i].option->name, *value = cli->given[i].value;
        if (strcmp(name, "set") == 0) {
            const char *equals = strchr(value, '=');
            if (!equals) return cli_usage(cli, "--set %s: wants KEY=VALUE", value);
            if (set.size) buffer_put_string(&set, ", ");
            quote_text(&set, value, (size_t)(equals - value));
            buffer_put_u8(&set, '=');
            quote_text(&set, equals + 1, strlen(equals + 1));
        } else if (strcmp(name, "reset") == 0) {
            if (reset.size) buffer_put_string(&reset, ", ");
            quote_text(&reset, value, strlen(value));
        }
    }
    int status = CLI_DONE;
    if (!set.size && !reset.size) status = cli_usage(cli, "mink table alter: say what to change with --set or --reset");
    for (int part = 0; part < 2 && status == CLI_DONE; part++) {
        struct buffer *list = part == 0 ? &set : &reset;
        if (!list->size) continue;
        char *ddl = mem_printf("ALTER TABLE %s %s (%s)", cli->arguments[0], part == 0 ? "SET" : "RESET", buffer_string(list));
        struct body b;
        body_begin(&b);
        body_string(&b, "ddl", ddl);
        mem_free(ddl);
        status = body_send(&b, cli, "alter-table", NULL, "altered");
    }
    buffer_deinit(&set);
    buffer_deinit(&reset);
    return status;
}

int cli_run_table_list(struct cli *cli) {
    struct body b;
    body_begin(&b);
    body_string(&b, "database", cli->argument_count ? cli->arguments[0] : NULL);
    return body_send(&b, cli, "list-tables", print_table_name, NULL);
}

int cli_run_table_show(struct cli *cli) {
    struct body b;
    body_begin(&b);
    body_string(&b, "table", cli->arguments[0]);
    return body_send(&b, cli, "get-table", print_ddl, NULL);
}

static int partition_action(struct cli *cli, const char *action, const char *done) {
    struct body b;
    body_begin(&b);
    body_string(&b, "table", cli->arguments[0]);
    struct buffer name; // the values, in the order of the partition columns: EU$2026
    buffer_init(&name, 1 << 16);
    for (int i = 1; i < cli->argument_count; i++) buffer_printf(&name, "%s%s", i > 1 ? "$" : "", cli->arguments[i]);
    body_string(&b, "partition", buffer_string(&name));
    buffer_deinit(&name);
    body_flag(&b, "if_not_exists", cli_flag(cli, "if-not-exists"));
    body_flag(&b, "if_exists", cli_flag(cli, "if-exists"));
    return body_send(&b, cli, action, NULL, done);
}

int cli_run_partition_create(struct cli *cli) { return partition_action(cli, "create-partition", "created"); }
int cli_run_partition_drop(struct cli *cli) { return partition_action(cli, "drop-partition", "dropped"); }

int cli_run_partition_list(struct cli *cli) {
    struct body b;
    body_begin(&b);
    body_string(&b, "table", cli->arguments[0]);
    return body_send(&b, cli, "list-partitions", print_partition, NULL);
}

static struct cli_table *offsets_table;

static void print_offset(const char *json) {
    struct json *o;
    if (json_parse(json, strlen(json), &o, NULL) != MINK_OK) return;
    const char *partition = json_text(json_get(o, "partition"));
    char number[32];
    cli_table_cell(offsets_table, partition ? partition : "-");
    snprintf(number, sizeof number, "%lld", (long long)json_int(json_get(o, "bucket")));
    cli_table_cell(offsets_table, number);
    snprintf(number, sizeof number, "%lld", (long long)json_int(json_get(o, "offset")));
    cli_table_cell(offsets_table, number);
    json_free(o);
}

int cli_run_offsets(struct cli *cli) {
    int64_t bucket;
    int usage = cli_option_int(cli, "bucket", -1, 0, INT32_MAX, &bucket);
    if (usage) return usage;
    struct body b;
    body_begin(&b);
    body_string(&b, "table", cli->arguments[0]);
    body_string(&b, "partition", cli_option(cli, "partition"));
    if (bucket >= 0) {
        json_put_key(&b.json, "bucket");
        json_put_int(&b.json, bucket);
    }
    body_string(&b, "at", cli_option(cli, "at") ? cli_option(cli, "at") : "latest");
    static const char *const headers[] = {"partition", "bucket", "offset"};
    offsets_table = cli_table_new(3, headers);
    int status = body_send(&b, cli, "list-offsets", print_offset, NULL);
    if (status == CLI_DONE && !cli->json) cli_table_print(offsets_table);
    return status;
}

// {"table":…,"rows":…,"bytes":…} of each table.
static int table_stats(struct cli *cli, struct mink_client *client, const char *listed, struct cli_table *rows, struct buffer *list) {
    struct json *table, *stats;
    struct mink_results results;
    struct mink_error e;
    struct body b;
    char number[32];
    if (json_parse(listed, strlen(listed), &table, NULL) != MINK_OK) return CLI_DONE;
    body_begin(&b);
    body_string(&b, "table", json_text(json_get(table, "table")));
    json_object_end(&b.json);
    enum mink_status status = mink_action(client, "stats", buffer_string(&b.buffer), &results, &e);
    buffer_deinit(&b.buffer);
    json_free(table);
    if (status == MINK_STATUS_NOT_FOUND) return CLI_DONE; // dropped since it was listed
    if (status != MINK_STATUS_OK) return cli_fail(cli, &e);
    if (cli->json) {
        buffer_printf(list, "%s%s", list->size ? "," : "", results.items[0]);
    } else if (json_parse(results.items[0], strlen(results.items[0]), &stats, NULL) == MINK_OK) {
        cli_table_cell(rows, json_text(json_get(stats, "table")));
        snprintf(number, sizeof number, "%lld", (long long)json_int(json_get(stats, "rows")));
        cli_table_cell(rows, number);
        snprintf(number, sizeof number, "%lld", (long long)json_int(json_get(stats, "bytes")));
        cli_table_cell(rows, number);
        json_free(stats);
    }
    mink_results_free(&results);
    return CLI_DONE;
}

static int all_stats(struct cli *cli) {
    struct mink_client *client = cli_client(cli);
    struct mink_results tables;
    struct mink_error e;
    if (!client) return CLI_FAILED;
    if (mink_action(client, "list-tables", "{}", &tables, &e) != MINK_STATUS_OK) return cli_fail(cli, &e);
    static const char *const headers[] = {"table", "rows", "bytes"};
    struct cli_table *rows = cli_table_new(3, headers);
    struct buffer list;
    buffer_init(&list, 64 << 20);
    int status = CLI_DONE;
    for (size_t i = 0; i < tables.count && status == CLI_DONE; i++) status = table_stats(cli, client, tables.items[i], rows, &list);
    if (status == CLI_DONE && cli->json) printf("[%s]\n", buffer_string(&list));
    else if (status == CLI_DONE) cli_table_print(rows);
    buffer_deinit(&list);
    mink_results_free(&tables);
    return status;
}

int cli_run_stats(struct cli *cli) {
    if (cli->argument_count == 0) return all_stats(cli);
    struct body b;
    body_begin(&b);
    body_string(&b, "table", cli->arguments[0]);
    return body_send(&b, cli, "stats", print_document, NULL);
}

int cli_run_cluster(struct cli *cli) { return cli_action(cli, "cluster", "{}", print_document, NULL); }
int cli_run_flush(struct cli *cli) { return cli_action(cli, "flush", "{}", NULL, "flushed"); }

int cli_run_version(struct cli *cli) {
    if (cli->json) printf("{\"version\":\"%s\"}\n", mink_version());
    else printf("mink %s\n", mink_version());
    return CLI_DONE;
}
