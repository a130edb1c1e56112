// SPDX-License-Identifier: Apache-2.0
// cli.h: what every command of the `mink` executable shares: its arguments, its output, its errors.
//
// What      Commands are rows of a table (cli_commands.c): path, arguments, options, help and examples come from the row, and so do the
//           checks, the near names and the shell completion.
// Flow      main → cli_parse → command->run(cli) → exit status: 0 done, 1 the operation failed, 2 wrong usage.
// Owner     The main thread.
#ifndef MINK_CLI_CLI_H
#define MINK_CLI_CLI_H

#include "base/buffer.h"
#include "base/error.h"
#include "mink/mink.h"

enum { CLI_DONE = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

struct cli_option {
    const char *name;  // without the dashes
    char letter;       // 0 = none
    const char *value; // its placeholder in the help; NULL = a flag
    const char *help;
};

struct cli;
struct cli_command {
    const char *path; // "table create"
    const char *arguments;
    int argument_min, argument_max; // max -1 = any number
    const char *summary, *details, *examples;
    const struct cli_option *options; // ends with a row without a name
    int (*run)(struct cli *cli);
    bool free_options; // --section.key VALUE are passed on untouched (serve)
};
extern const struct cli_command cli_commands[]; // ends with a row without a path
extern const struct cli_option cli_global_options[];

#define CLI_OPTIONS_MAX 64
struct cli {
    const struct cli_command *command;
    const char *arguments[256];
    int argument_count;
    struct { const struct cli_option *option; const char *value; } given[CLI_OPTIONS_MAX];
    int given_count;
    const char *free_keys[CLI_OPTIONS_MAX], *free_values[CLI_OPTIONS_MAX];
    int free_count;
    bool json, verbose;
    struct mink_client *client; // made by cli_client
};

// Fills *cli; on wrong usage prints what is wrong (and the nearest name) and returns CLI_USAGE; help asked for: prints it, returns -1.
int cli_parse(struct cli *cli, int argc, char **argv);
const char *cli_option(const struct cli *cli, const char *name); // the value ("" for a flag that is given), or NULL
bool cli_flag(const struct cli *cli, const char *name);
// A whole number; CLI_USAGE (and a message) when it is none or outside the range.
int cli_option_int(const struct cli *cli, const char *name, int64_t fallback, int64_t min, int64_t max, int64_t *out);
int cli_usage(const struct cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));

// The connection to --server; on failure prints and returns NULL.
struct mink_client *cli_client(struct cli *cli);
int cli_fail(const struct cli *cli, const struct mink_error *error); // prints it, returns CLI_FAILED
int cli_fail_local(const struct cli *cli, const struct error *error);
int cli_fail_text(const struct cli *cli, const char *reason, const char *format, ...) __attribute__((format(printf, 3, 4)));
// Runs an action and prints its answer: JSON as it is with --json, else through `print` (one call a result; NULL = say `done`).
int cli_action(struct cli *cli, const char *action, const char *body, void (*print)(const char *json), const char *done);

// A table of text on stdout, columns aligned.
struct cli_table;
struct cli_table *cli_table_new(int columns, const char *const *headers);
void cli_table_cell(struct cli_table *t, const char *text);
void cli_table_print(struct cli_table *t); // and frees

// Progress on a terminal: rows, bytes, rate and, when the total is known, time left. Silent when stderr is not a terminal.
struct cli_progress { const char *what; uint64_t bytes_total; uint64_t started_ns, shown_ns; bool shown, quiet; };
void cli_progress_start(struct cli_progress *p, const struct cli *cli, const char *what, uint64_t bytes_total);
void cli_progress_show(struct cli_progress *p, uint64_t rows, uint64_t bytes);
void cli_progress_end(struct cli_progress *p, uint64_t rows, uint64_t bytes); // erases the line

// Set by SIGINT and SIGTERM: long work stops at the next step.
extern volatile int cli_interrupted;
void cli_catch_signals(void);

int cli_run_dev(struct cli *cli);
int cli_run_serve(struct cli *cli);
int cli_run_db_create(struct cli *cli);
int cli_run_db_drop(struct cli *cli);
int cli_run_db_list(struct cli *cli);
int cli_run_table_create(struct cli *cli);
int cli_run_table_alter(struct cli *cli);
int cli_run_table_drop(struct cli *cli);
int cli_run_table_list(struct cli *cli);
int cli_run_table_show(struct cli *cli);
int cli_run_partition_create(struct cli *cli);
int cli_run_partition_drop(struct cli *cli);
int cli_run_partition_list(struct cli *cli);
int cli_run_offsets(struct cli *cli);
int cli_run_stats(struct cli *cli);
int cli_run_cluster(struct cli *cli);
int cli_run_flush(struct cli *cli);
int cli_run_put(struct cli *cli);
int cli_run_get(struct cli *cli);
int cli_run_tail(struct cli *cli);
int cli_run_completion(struct cli *cli);
int cli_run_complete(struct cli *cli);
int cli_run_version(struct cli *cli);

#endif
