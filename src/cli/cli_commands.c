// SPDX-License-Identifier: Apache-2.0
// The table of commands: help, checks and completion all come from here.
#include "cli/cli.h"

#include <stddef.h>

const struct cli_option cli_global_options[] = {
    {"server", 's', "HOST:PORT", "the server to talk to (default 127.0.0.1:8815, or MINK_SERVER)"},
    {"timeout", 0, "MS", "give up on an answer after this long (default 30000)"},
    {"json", 0, NULL, "print one JSON document instead of text"},
    {"verbose", 'v', NULL, "say more on stderr"},
    {"help", 'h', NULL, "show this help"},
    {0}};

static const struct cli_option dev_options[] = {
    {"dir", 'd', "DIR", "where everything is kept (default ./mink-data)"},
    {"flight-port", 0, "PORT", "Arrow Flight (default 8815; 0 takes a free one)"},
    {"http-port", 0, "PORT", "metrics and health (default 8080; 0 takes a free one)"},
    {"fresh", 0, NULL, "delete what DIR holds and start empty"},
    {0}};
static const struct cli_option serve_options[] = {
    {"config", 'c', "FILE", "a TOML file; any key can also be given as MINK_SECTION_KEY or --section.key VALUE"},
    {"print-config", 0, NULL, "print every key, its value, where it came from and what it means, and end"},
    {0}};
static const struct cli_option create_db_options[] = {
    {"comment", 0, "TEXT", "what it is for"}, {"if-not-exists", 0, NULL, "fine when it exists already"}, {0}};
static const struct cli_option drop_db_options[] = {
    {"cascade", 0, NULL, "with all its tables"}, {"if-exists", 0, NULL, "fine when there is none"}, {0}};
static const struct cli_option create_table_options[] = {
    {"buckets", 'b', "N", "buckets (per partition)"},
    {"partition-by", 0, "COLUMNS", "partition columns, separated by commas"},
    {"with", 'o', "KEY=VALUE", "a table option; may be repeated"},
    {"file", 'f', "FILE", "read the whole CREATE TABLE statement from a file (- for stdin)"},
    {"if-not-exists", 0, NULL, "fine when it exists already"},
    {0}};
static const struct cli_option if_exists_options[] = {{"if-exists", 0, NULL, "fine when there is none"}, {0}};
static const struct cli_option if_not_exists_options[] = {{"if-not-exists", 0, NULL, "fine when it exists already"}, {0}};
static const struct cli_option alter_table_options[] = {
    {"set", 0, "KEY=VALUE", "set a table option; may be repeated"}, {"reset", 0, "KEY", "back to the default; may be repeated"}, {0}};
static const struct cli_option offsets_options[] = {
    {"bucket", 'b', "N", "one bucket only"}, {"partition", 'p', "NAME", "one partition only"},
    {"at", 0, "WHEN", "earliest, latest (default) or ts:<ms>"}, {0}};
static const struct cli_option put_options[] = {
    {"format", 0, "FORMAT", "csv, json (a line an object) or arrow; default by the file's ending"},
    {"partition", 'p', "NAME", "put all rows there"},
    {"bucket", 'b', "N", "put all rows there"},
    {"batch-rows", 0, "N", "rows a batch (default 10000)"},
    {"delimiter", 0, "C", "CSV delimiter (default ,)"},
    {"null", 0, "TEXT", "CSV text that means null (default: an empty field)"},
    {"header", 0, "NAMES", "CSV without a header line: its column names, separated by commas"},
    {"compression", 0, "CODEC", "of what is sent: none (default), lz4, zstd"},
    {"writer", 0, "ID", "go on with an interrupted load of the same input: nothing is doubled (one-bucket tables, or with --bucket)"},
    {0}};
#define SCAN_OPTIONS                                                                           \
    {"columns", 'c', "NAMES", "only these, separated by commas"},                              \
    {"where", 'w', "FILTER", "rows for which this is true: amount > 10 AND city LIKE 'S%'"},   \
    {"partition", 'p', "NAME", "one partition only"}, {"bucket", 'b', "N", "one bucket only"}, \
    {"limit", 'n', "N", "at most so many rows"},                                               \
    {"meta", 0, "NAMES", "extra columns: _log_offset,_commit_timestamp,_bucket,_partition,_change_type"}, \
    {"format", 0, "FORMAT", "table, csv, json (a line a row) or arrow (an IPC stream)"}
static const struct cli_option get_options[] = {
    SCAN_OPTIONS,
    {"from", 0, "WHERE", "earliest (default), latest, <offset> or ts:<ms>"},
    {"until", 0, "WHERE", "now (default) or <offset>"},
    {"output", 'o', "FILE", "write there instead of stdout"},
    {0}};
static const struct cli_option tail_options[] = {
    SCAN_OPTIONS,
    {"follow", 'f', NULL, "go on with new rows as they are acknowledged"},
    {"from", 0, "WHERE", "earliest, latest (default with -f: only what comes), <offset> or ts:<ms>"},
    {"rows", 0, "N", "without -f: the last N rows (default 10)"},
    {0}};

const struct cli_command cli_commands[] = {
    {.path = "dev", .summary = "run everything in this process, on this machine, with nothing to set up", .options = dev_options, .run = cli_run_dev,
     .details = "SQLite and a local directory below DIR; ports on 127.0.0.1. When it is ready it prints one JSON line to stdout.\n"
                "Logs go to stderr. Ctrl-C or SIGTERM ends it; kill -9 loses nothing that was acknowledged.",
     .examples = "mink dev\nmink dev --dir /tmp/try --flight-port 0 --http-port 0"},
    {.path = "serve", .summary = "run a node", .options = serve_options, .run = cli_run_serve, .free_options = true,
     .details = "Configuration comes from, in rising order: defaults, the file, MINK_SECTION_KEY in the environment, --section.key here.",
     .examples = "mink serve --config mink.toml\nmink serve --metadata sqlite:///var/lib/mink/meta.db --store file:///var/lib/mink/objects\n"
                 "mink serve --config mink.toml --print-config"},
    {.path = "db create", .arguments = "NAME", .argument_min = 1, .argument_max = 1, .summary = "create a database", .options = create_db_options, .run = cli_run_db_create, .examples = "mink db create shop"},
    {.path = "db drop", .arguments = "NAME", .argument_min = 1, .argument_max = 1, .summary = "drop a database", .options = drop_db_options, .run = cli_run_db_drop, .examples = "mink db drop shop --cascade"},
    {.path = "db list", .summary = "list databases", .run = cli_run_db_list, .examples = "mink db list --json"},
    {.path = "table create", .arguments = "TABLE ['COLUMNS']", .argument_min = 0, .argument_max = 2, .summary = "create a table", .options = create_table_options, .run = cli_run_table_create,
     .details = "COLUMNS is what stands between the parentheses of CREATE TABLE.",
     .examples = "mink table create shop.events 'id BIGINT, city STRING, amount DECIMAL(12,2), ts TIMESTAMP(6)' --buckets 4\n"
                 "mink table create shop.hits 'day STRING, n INT' --partition-by day -o table.log.ttl=30d\nmink table create -f create.sql"},
    {.path = "table alter", .arguments = "TABLE", .argument_min = 1, .argument_max = 1, .summary = "change options of a table", .options = alter_table_options, .run = cli_run_table_alter,
     .examples = "mink table alter shop.events --set table.log.ttl=14d"},
    {.path = "table drop", .arguments = "TABLE", .argument_min = 1, .argument_max = 1, .summary = "drop a table and its data", .options = if_exists_options, .run = cli_run_table_drop, .examples = "mink table drop shop.events"},
    {.path = "table list", .arguments = "[DATABASE]", .argument_min = 0, .argument_max = 1, .summary = "list tables", .run = cli_run_table_list, .examples = "mink table list\nmink table list shop --json"},
    {.path = "table show", .arguments = "TABLE", .argument_min = 1, .argument_max = 1, .summary = "show a table: columns, options, DDL", .run = cli_run_table_show, .examples = "mink table show shop.events"},
    {.path = "partition create", .arguments = "TABLE VALUE…", .argument_min = 2, .argument_max = -1, .summary = "create a partition", .options = if_not_exists_options, .run = cli_run_partition_create, .examples = "mink partition create shop.hits 2026-12-01"},
    {.path = "partition drop", .arguments = "TABLE VALUE…", .argument_min = 2, .argument_max = -1, .summary = "drop a partition and its data", .options = if_exists_options, .run = cli_run_partition_drop, .examples = "mink partition drop shop.hits 2026-12-01"},
    {.path = "partition list", .arguments = "TABLE", .argument_min = 1, .argument_max = 1, .summary = "list partitions", .run = cli_run_partition_list, .examples = "mink partition list shop.hits"},
    {.path = "put", .arguments = "TABLE [FILE]", .argument_min = 1, .argument_max = 2, .summary = "append rows from a file or stdin", .options = put_options, .run = cli_run_put,
     .details = "CSV needs a header line that names columns of the table (or --header). Done means durable.",
     .examples = "mink put shop.events events.csv\nzcat events.json.gz | mink put shop.events --format json\nmink put shop.events part.arrow --writer 17"},
    {.path = "get", .arguments = "TABLE", .argument_min = 1, .argument_max = 1, .summary = "read rows", .options = get_options, .run = cli_run_get,
     .examples = "mink get shop.events --limit 10\nmink get shop.events -c id,amount -w \"amount > 100 AND city = 'Oslo'\" --format csv\nmink get shop.events --format arrow -o events.arrow"},
    {.path = "tail", .arguments = "TABLE", .argument_min = 1, .argument_max = 1, .summary = "show the last rows, or follow new ones", .options = tail_options, .run = cli_run_tail,
     .examples = "mink tail shop.events\nmink tail -f shop.events --where \"city = 'Oslo'\""},
    {.path = "offsets", .arguments = "TABLE", .argument_min = 1, .argument_max = 1, .summary = "show offsets of a table's buckets", .options = offsets_options, .run = cli_run_offsets, .examples = "mink offsets shop.events\nmink offsets shop.events --at ts:1764547200000"},
    {.path = "stats", .arguments = "[TABLE]", .argument_min = 0, .argument_max = 1, .summary = "show rows, bytes and offsets of a table, or rows and bytes of all", .run = cli_run_stats, .examples = "mink stats shop.events"},
    {.path = "cluster", .summary = "show nodes and the stream layer", .run = cli_run_cluster, .examples = "mink cluster --json"},
    {.path = "flush", .summary = "commit what is acknowledged into stream objects now", .run = cli_run_flush, .examples = "mink flush"},
    {.path = "completion", .arguments = "bash|zsh|fish", .argument_min = 1, .argument_max = 1, .summary = "print a shell completion script", .run = cli_run_completion,
     .examples = "source <(mink completion bash)\nmink completion fish > ~/.config/fish/completions/mink.fish"},
    {.path = "version", .summary = "show the version", .run = cli_run_version, .examples = "mink version"},
    {.path = "__complete", .arguments = "WORD…", .argument_min = 0, .argument_max = -1, .run = cli_run_complete}, // for the completion scripts
    {0}};
