// SPDX-License-Identifier: Apache-2.0
// input.h: rows from CSV, JSON lines or Arrow IPC, as batches of a table's columns.
//
// Batches depend on the input and batch_rows alone, so a load that is started again sends the same ones: that is what makes it resumable.
#ifndef MINK_CLI_INPUT_H
#define MINK_CLI_INPUT_H

#include "arrow/array.h"

enum input_format { INPUT_CSV, INPUT_JSON, INPUT_ARROW };

struct input_options {
    const char *path; // NULL or "-" = stdin
    enum input_format format;
    struct arrow_schema *table; // the table's columns
    int64_t batch_rows;
    char delimiter;
    const char *null_text;   // CSV; NULL = an empty unquoted field
    const char *header;      // CSV without a header line: column names
};
struct input;
enum mink_code input_open(const struct input_options *options, struct input **out, struct error *e) MINK_MUST_CHECK;
struct arrow_schema *input_schema(const struct input *in); // borrowed: the columns that the input has, in its order
// The next batch; *end and no rows after the last. Errors name the line and the column.
enum mink_code input_next(struct input *in, struct arrow_batch *out, bool *end, struct error *e) MINK_MUST_CHECK;
uint64_t input_bytes_total(const struct input *in); // 0 when unknown (a pipe)
uint64_t input_bytes_read(const struct input *in);
void input_close(struct input *in);

#endif
