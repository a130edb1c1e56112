// SPDX-License-Identifier: Apache-2.0
// output.h: batches to a file or the terminal: aligned text, CSV (RFC 4180), JSON lines, or an Arrow IPC stream.
#ifndef MINK_CLI_OUTPUT_H
#define MINK_CLI_OUTPUT_H

#include "arrow/array.h"

#include <stdio.h>

enum output_format { OUTPUT_TABLE, OUTPUT_CSV, OUTPUT_JSON, OUTPUT_ARROW };

struct output {
    FILE *file;
    enum output_format format;
    struct arrow_schema *schema;
    struct buffer buffer;
    bool started;
    int *widths; // OUTPUT_TABLE: fixed by the first batch, so that a follow stays aligned
};
void output_init(struct output *o, FILE *file, enum output_format format, struct arrow_schema *schema); // refs the schema
enum mink_code output_batch(struct output *o, const struct arrow_batch *b, struct error *e) MINK_MUST_CHECK; // UNAVAILABLE when writing fails
enum mink_code output_end(struct output *o, struct error *e) MINK_MUST_CHECK; // headers of an empty result, end of stream, flush
void output_deinit(struct output *o);

#endif
