// SPDX-License-Identifier: Apache-2.0
#include "cli/input.h"

#include "arrow/ipc.h"
#include "arrow/kernel.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/nearest.h"

#include <csv.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define CHUNK (256 * 1024)
#define LINE_MAX_BYTES (16u << 20)

struct input {
    struct input_options options;
    FILE *file;
    const char *name;
    uint64_t bytes_total, bytes_read;
    struct arrow_schema *schema;
    struct arrow_builder *builder;
    bool ended;
    // CSV: libcsv calls back per field and row while a chunk is parsed; a batch is cut at the end of its last row.
    struct csv_parser csv;
    uint32_t *columns; // of field i; UINT32_MAX = the field is skipped
    uint32_t column_count, field;
    bool in_header;
    uint64_t row;
    char **header;
    uint32_t header_count;
    enum mink_code failed;
    struct error *error; // during a parse
    char chunk[CHUNK];
    // JSON lines
    struct buffer line;
    size_t chunk_at, chunk_size;
    // Arrow
    struct ipc_stream_reader *arrow;
    struct slice bytes;
    struct arrow_batch pending; // a batch of the file that is larger than batch_rows
    int64_t pending_at;
    struct arrow_batch *ready;  // CSV: a chunk may hold several batches
    uint32_t ready_count, ready_at;
};

static enum mink_code column_of(struct input *in, const char *name, uint32_t *out, struct error *e) {
    int32_t found = arrow_schema_find(in->options.table, name);
    if (found >= 0) {
        *out = (uint32_t)found;
        return MINK_OK;
    }
    struct nearest near;
    nearest_init(&near, name);
    for (uint32_t i = 0; i < arrow_schema_count(in->options.table); i++) nearest_offer(&near, arrow_schema_at(in->options.table, i)->name);
    const char *best = nearest_found(&near);
    error_set(e, MINK_INVALID, "COLUMN_NOT_FOUND", "the table has no column %s%s%s%s", name, best ? "; did you mean " : "", best ? best : "", best ? "?" : "");
    error_about(e, name, NULL, NULL);
    return MINK_INVALID;
}

// The input's columns become its schema; the builder is made for it.
static enum mink_code settle_header(struct input *in, struct error *e) {
    struct arrow_field *fields = mem_new_array(struct arrow_field, in->header_count ? in->header_count : 1);
    enum mink_code code = MINK_OK;
    uint32_t made = 0;
    if (in->header_count == 0) code = error_set(e, MINK_INVALID, "BAD_CSV", "%s: no header line: the first line must name columns of the table (or use --header)", in->name);
    for (uint32_t i = 0; i < in->header_count && code == MINK_OK; i++) {
        uint32_t column = 0;
        if ((code = column_of(in, in->header[i], &column, e)) != MINK_OK) error_context(e, "%s", in->name);
        for (uint32_t k = 0; k < i && code == MINK_OK; k++)
            if (strcmp(in->header[k], in->header[i]) == 0) code = error_set(e, MINK_INVALID, "BAD_CSV", "%s: the header names column %s twice", in->name, in->header[i]);
        if (code == MINK_OK) arrow_field_copy(&fields[made++], arrow_schema_at(in->options.table, column));
    }
    if (code != MINK_OK) {
        for (uint32_t i = 0; i < made; i++) arrow_field_deinit(&fields[i]);
        mem_free(fields);
        return code;
    }
    in->schema = arrow_schema_new(fields, made);
    in->builder = arrow_builder_new(in->schema);
    return MINK_OK;
}

static void header_add(struct input *in, const char *name, size_t size) {
    in->header = mem_realloc(in->header, (in->header_count + 1) * sizeof *in->header);
    in->header[in->header_count++] = mem_strndup(name, size);
}

// ---- CSV

static void csv_field(void *data, size_t size, void *ctx) {
    struct input *in = ctx;
    if (in->failed) return;
    if (in->in_header) {
        const char *text = data ? data : "";
        if (in->header_count == 0 && size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) text += 3, size -= 3; // a byte order mark
        header_add(in, text, size);
        return;
    }
    uint32_t field = in->field++;
    if (field >= in->header_count) return; // told at the end of the row
    // libcsv gives NULL for an empty field without quotes (CSV_EMPTY_IS_NULL).
    bool null = in->options.null_text ? data && strlen(in->options.null_text) == size && memcmp(data, in->options.null_text, size) == 0 : data == NULL;
    if (null) {
        arrow_builder_null(in->builder, field);
    } else {
        in->failed = arrow_builder_text(in->builder, field, data ? data : "", data ? size : 0, in->error);
        if (in->failed) error_context(in->error, "%s: row %llu", in->name, (unsigned long long)(in->row + 1));
    }
}

static void cut_batch(struct input *in) {
    in->ready = mem_realloc(in->ready, (in->ready_count + 1) * sizeof *in->ready);
    arrow_builder_finish(in->builder, &in->ready[in->ready_count++]);
}

static void csv_row(int terminator, void *ctx) {
    struct input *in = ctx;
    if (in->failed) return;
    if (in->in_header) {
        in->in_header = false;
        in->failed = settle_header(in, in->error);
        return;
    }
    if (in->field != in->header_count) {
        in->failed = error_set(in->error, MINK_INVALID, "BAD_CSV", "%s: row %llu has %u fields, the header has %u", in->name, (unsigned long long)(in->row + 1), in->field, in->header_count);
        return;
    }
    arrow_builder_row(in->builder);
    in->field = 0;
    in->row++;
    if (arrow_builder_rows(in->builder) == in->options.batch_rows) cut_batch(in);
}

static enum mink_code csv_feed(struct input *in, struct error *e) {
    in->error = e;
    size_t n = fread(in->chunk, 1, sizeof in->chunk, in->file);
    in->bytes_read += n;
    if (n == 0) {
        if (ferror(in->file)) return error_set(e, MINK_UNAVAILABLE, "FILE", "%s: %s", in->name, strerror(errno));
        if (csv_fini(&in->csv, csv_field, csv_row, in) != 0) return error_set(e, MINK_INVALID, "BAD_CSV", "%s: row %llu: %s", in->name, (unsigned long long)(in->row + 1), csv_strerror(csv_error(&in->csv)));
        in->ended = true;
    } else if (csv_parse(&in->csv, in->chunk, n, csv_field, csv_row, in) != n) {
        return error_set(e, MINK_INVALID, "BAD_CSV", "%s: row %llu: %s", in->name, (unsigned long long)(in->row + 1), csv_strerror(csv_error(&in->csv)));
    }
    return in->failed;
}

static enum mink_code csv_open(struct input *in, struct error *e) {
    if (csv_init(&in->csv, CSV_APPEND_NULL | CSV_EMPTY_IS_NULL | CSV_STRICT | CSV_STRICT_FINI) != 0) return error_set(e, MINK_INTERNAL, "BAD_CSV", "CSV reader");
    csv_set_delim(&in->csv, (unsigned char)in->options.delimiter);
    in->in_header = true;
    if (in->options.header) {
        for (const char *at = in->options.header; *at;) {
            size_t size = strcspn(at, ",");
            header_add(in, at, size);
            at += size + (at[size] == ',');
        }
        in->in_header = false;
        return settle_header(in, e);
    }
    while (in->schema == NULL && !in->ended) MINK_TRY(csv_feed(in, e));
    return in->schema ? MINK_OK : error_set(e, MINK_INVALID, "BAD_CSV", "%s: empty: there is no header line", in->name);
}

// ---- JSON lines

// A line without its end; false at the end of the input.
static enum mink_code next_line(struct input *in, bool *have, struct error *e) {
    buffer_reset(&in->line);
    *have = false;
    for (;;) {
        if (in->chunk_at == in->chunk_size) {
            in->chunk_size = fread(in->chunk, 1, sizeof in->chunk, in->file);
            in->chunk_at = 0;
            in->bytes_read += in->chunk_size;
            if (in->chunk_size == 0) {
                if (ferror(in->file)) return error_set(e, MINK_UNAVAILABLE, "FILE", "%s: %s", in->name, strerror(errno));
                in->ended = true;
                *have = in->line.size > 0;
                return MINK_OK;
            }
        }
        char *begin = in->chunk + in->chunk_at, *end = memchr(begin, '\n', in->chunk_size - in->chunk_at);
        size_t size = end ? (size_t)(end - begin) : in->chunk_size - in->chunk_at;
        buffer_put(&in->line, begin, size);
        if (in->line.overflowed) return error_set(e, MINK_INVALID, "BAD_JSON", "%s: line %llu is longer than 16 MiB", in->name, (unsigned long long)(in->row + 1));
        in->chunk_at += size + (end != NULL);
        if (end) {
            *have = true;
            return MINK_OK;
        }
    }
}

static enum mink_code json_row(struct input *in, struct error *e) {
    struct json *object;
    enum mink_code code = json_parse(in->line.data, in->line.size, &object, e);
    if (code == MINK_OK && json_type(object) != JSON_OBJECT) code = error_set(e, MINK_INVALID, "BAD_JSON", "a line must hold one JSON object");
    for (size_t i = 0; code == MINK_OK && i < json_count(object); i++) {
        const struct json *value;
        const char *key = json_key_at(object, i, &value);
        uint32_t column = 0;
        code = column_of(in, key, &column, e);
        if (code == MINK_OK) code = arrow_builder_json(in->builder, column, value, e);
    }
    if (code == MINK_OK) arrow_builder_row(in->builder);
    else error_context(e, "%s: line %llu", in->name, (unsigned long long)(in->row + 1));
    json_free(object);
    return code;
}

static enum mink_code json_feed(struct input *in, struct error *e) {
    while (!in->ended && arrow_builder_rows(in->builder) < in->options.batch_rows) {
        bool have;
        MINK_TRY(next_line(in, &have, e));
        if (!have) break;
        size_t blank = strspn(buffer_string(&in->line), " \t\r");
        if (blank < in->line.size) MINK_TRY(json_row(in, e));
        in->row++;
    }
    return MINK_OK;
}

// ---- Arrow

static void unmap(void *ctx) {
    struct slice *mapping = ctx;
    munmap((void *)mapping->data, mapping->size);
    mem_free(mapping);
}

static enum mink_code arrow_open(struct input *in, struct error *e) {
    if (in->bytes_total) {
        void *data = mmap(NULL, in->bytes_total, PROT_READ, MAP_PRIVATE, fileno(in->file), 0);
        if (data == MAP_FAILED) return error_set(e, MINK_UNAVAILABLE, "FILE", "%s: %s", in->name, strerror(errno));
        struct slice *mapping = mem_new(struct slice);
        *mapping = slice_borrow(data, in->bytes_total);
        in->bytes = slice_foreign(data, in->bytes_total, unmap, mapping);
    } else {
        struct buffer all;
        buffer_init(&all, 4ull << 30);
        for (size_t n; (n = fread(in->chunk, 1, sizeof in->chunk, in->file)) > 0;) buffer_put(&all, in->chunk, n);
        if (ferror(in->file) || all.overflowed) {
            buffer_deinit(&all);
            return error_set(e, MINK_UNAVAILABLE, "FILE", "%s: %s", in->name, all.overflowed ? "more than 4 GiB on a pipe: give a file" : strerror(errno));
        }
        in->bytes = slice_copy(all.data, all.size);
        buffer_deinit(&all);
    }
    enum mink_code code = ipc_stream_reader_open(in->bytes, &in->arrow, &in->schema, e);
    if (code != MINK_OK) error_context(e, "%s", in->name);
    return code;
}

// ---- all

enum mink_code input_open(const struct input_options *options, struct input **out, struct error *e) {
    struct input *in = mem_new(struct input);
    in->options = *options;
    bool standard = !options->path || strcmp(options->path, "-") == 0;
    in->name = standard ? "stdin" : options->path;
    in->file = standard ? stdin : fopen(options->path, "rb");
    buffer_init(&in->line, LINE_MAX_BYTES);
    enum mink_code code = MINK_OK;
    struct stat st;
    if (!in->file) code = error_set(e, MINK_NOT_FOUND, "FILE", "%s: %s", options->path, strerror(errno));
    else if (fstat(fileno(in->file), &st) == 0 && S_ISREG(st.st_mode)) in->bytes_total = (uint64_t)st.st_size;
    else if (fstat(fileno(in->file), &st) == 0 && S_ISDIR(st.st_mode)) code = error_set(e, MINK_INVALID, "FILE", "%s is a folder", options->path);
    if (code == MINK_OK && options->format == INPUT_CSV) code = csv_open(in, e);
    if (code == MINK_OK && options->format == INPUT_ARROW) code = arrow_open(in, e);
    if (code == MINK_OK && options->format == INPUT_JSON) {
        in->schema = arrow_schema_ref(options->table);
        in->builder = arrow_builder_new(in->schema);
    }
    if (code != MINK_OK) {
        input_close(in);
        return code;
    }
    *out = in;
    return MINK_OK;
}

// At most batch_rows of what is pending; the rest waits.
static void take_pending(struct input *in, struct arrow_batch *out) {
    int64_t left = in->pending.row_count - in->pending_at, count = left < in->options.batch_rows ? left : in->options.batch_rows;
    if (in->pending_at == 0 && count == in->pending.row_count) {
        *out = in->pending;
        in->pending = (struct arrow_batch){0};
        return;
    }
    arrow_slice(&in->pending, in->pending_at, count, out);
    in->pending_at += count;
    if (in->pending_at == in->pending.row_count) {
        arrow_batch_deinit(&in->pending);
        in->pending_at = 0;
    }
}

enum mink_code input_next(struct input *in, struct arrow_batch *out, bool *end, struct error *e) {
    *end = false;
    *out = (struct arrow_batch){0};
    if (in->options.format == INPUT_ARROW && in->pending.row_count == 0) {
        enum mink_code code = ipc_stream_reader_next(in->arrow, &in->pending, end, e);
        if (code != MINK_OK) return error_context(e, "%s: after row %llu", in->name, (unsigned long long)in->row);
        in->row += (uint64_t)in->pending.row_count;
        in->pending_at = 0;
        if (*end || in->pending.row_count == 0) {
            *out = in->pending;
            in->pending = (struct arrow_batch){0};
            return MINK_OK;
        }
    }
    if (in->options.format == INPUT_CSV) {
        if (in->ready_at == in->ready_count) in->ready_at = in->ready_count = 0;
        while (!in->ended && in->ready_count == 0) MINK_TRY(csv_feed(in, e));
        if (in->ended && arrow_builder_rows(in->builder) > 0) cut_batch(in);
        *end = in->ready_at == in->ready_count;
        if (!*end) *out = in->ready[in->ready_at++];
        return MINK_OK;
    }
    if (in->options.format == INPUT_JSON) {
        MINK_TRY(json_feed(in, e));
        if (arrow_builder_rows(in->builder) > 0) arrow_builder_finish(in->builder, &in->pending);
    }
    if (in->pending.row_count == 0) {
        *end = true;
        return MINK_OK;
    }
    take_pending(in, out);
    return MINK_OK;
}

struct arrow_schema *input_schema(const struct input *in) { return in->schema; }
uint64_t input_bytes_total(const struct input *in) { return in->bytes_total; }
uint64_t input_bytes_read(const struct input *in) { return in->bytes_read; }

void input_close(struct input *in) {
    if (!in) return;
    if (in->options.format == INPUT_CSV && in->csv.entry_buf) csv_free(&in->csv);
    for (uint32_t i = 0; i < in->header_count; i++) mem_free(in->header[i]);
    mem_free(in->header);
    buffer_deinit(&in->line);
    arrow_batch_deinit(&in->pending);
    while (in->ready_at < in->ready_count) arrow_batch_deinit(&in->ready[in->ready_at++]);
    mem_free(in->ready);
    if (in->builder) arrow_builder_free(in->builder);
    if (in->arrow) ipc_stream_reader_free(in->arrow);
    arrow_schema_unref(in->schema);
    slice_unref(&in->bytes);
    if (in->file && in->file != stdin) fclose(in->file);
    mem_free(in);
}
