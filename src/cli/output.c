// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include "arrow/ipc.h"
#include "base/json.h"
#include "base/mem.h"

#include <errno.h>
#include <string.h>

#define TABLE_WIDTH_MAX 60

void output_init(struct output *o, FILE *file, enum output_format format, struct arrow_schema *schema) {
    *o = (struct output){.file = file, .format = format, .schema = arrow_schema_ref(schema)};
    buffer_init(&o->buffer, SIZE_MAX / 4);
}

static enum mink_code flush(struct output *o, struct error *e) {
    if (o->buffer.size && fwrite(o->buffer.data, 1, o->buffer.size, o->file) != o->buffer.size)
        return error_set(e, MINK_UNAVAILABLE, "OUTPUT", "output cannot be written: %s", strerror(errno));
    buffer_reset(&o->buffer);
    return MINK_OK;
}

static int text_width(const uint8_t *s, size_t size) {
    int n = 0;
    for (size_t i = 0; i < size; i++) n += (s[i] & 0xc0) != 0x80;
    return n;
}

static void pad(struct buffer *b, int count) {
    for (int i = 0; i < count; i++) buffer_put_u8(b, ' ');
}

// One cell of text; line breaks would destroy the table.
static void table_cell(struct buffer *out, const struct arrow_field *f, const struct arrow_array *a, int64_t row) {
    size_t at = out->size;
    if (arrow_is_null(a, row)) buffer_put_string(out, "NULL");
    else arrow_value_text(f, a, row, out);
    for (; at < out->size; at++)
        if (out->data[at] < 0x20) out->data[at] = ' ';
}

static bool is_number(const struct arrow_field *f) { return (f->type >= ARROW_INT8 && f->type <= ARROW_DECIMAL128); }

static void table_header(struct output *o, const struct arrow_batch *b) {
    uint32_t columns = arrow_schema_count(o->schema);
    o->widths = mem_new_array(int, columns ? columns : 1);
    struct buffer cell;
    buffer_init(&cell, SIZE_MAX / 4);
    for (uint32_t c = 0; c < columns; c++) {
        const char *name = arrow_schema_at(o->schema, c)->name;
        o->widths[c] = text_width((const uint8_t *)name, strlen(name));
        for (int64_t row = 0; b && row < b->row_count && row < 1000; row++) {
            buffer_reset(&cell);
            table_cell(&cell, arrow_schema_at(o->schema, c), &b->columns[c], row);
            int width = text_width(cell.data, cell.size);
            if (width > o->widths[c]) o->widths[c] = width;
        }
        if (o->widths[c] > TABLE_WIDTH_MAX) o->widths[c] = TABLE_WIDTH_MAX;
    }
    buffer_deinit(&cell);
    for (uint32_t c = 0; c < columns; c++) {
        const char *name = arrow_schema_at(o->schema, c)->name;
        int width = text_width((const uint8_t *)name, strlen(name));
        bool right = is_number(arrow_schema_at(o->schema, c));
        if (c) buffer_put_string(&o->buffer, "  ");
        if (right) pad(&o->buffer, o->widths[c] - width);
        buffer_put_string(&o->buffer, name);
        if (!right && c + 1 < columns) pad(&o->buffer, o->widths[c] - width);
    }
    buffer_put_u8(&o->buffer, '\n');
}

static void csv_text(struct buffer *out, const uint8_t *text, size_t size, bool quote) {
    for (size_t i = 0; i < size && !quote; i++) quote = text[i] == ',' || text[i] == '"' || text[i] == '\n' || text[i] == '\r';
    if (quote) buffer_put_u8(out, '"');
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '"') buffer_put_u8(out, '"');
        buffer_put_u8(out, text[i]);
    }
    if (quote) buffer_put_u8(out, '"');
}

static enum mink_code arrow_message(struct output *o, struct slice message, const struct slices *body, struct error *e) {
    size_t padded = (message.size + 7) & ~(size_t)7;
    buffer_put_u32le(&o->buffer, 0xffffffffu);
    buffer_put_u32le(&o->buffer, (uint32_t)padded);
    buffer_put(&o->buffer, message.data, message.size);
    buffer_put_zeros(&o->buffer, padded - message.size);
    MINK_TRY(flush(o, e));
    for (uint32_t i = 0; i < body->count; i++)
        if (body->items[i].size && fwrite(body->items[i].data, 1, body->items[i].size, o->file) != body->items[i].size)
            return error_set(e, MINK_UNAVAILABLE, "OUTPUT", "output cannot be written: %s", strerror(errno));
    return MINK_OK;
}

static void start(struct output *o, const struct arrow_batch *b) {
    if (o->started) return;
    o->started = true;
    uint32_t columns = arrow_schema_count(o->schema);
    if (o->format == OUTPUT_TABLE) table_header(o, b);
    if (o->format == OUTPUT_CSV) {
        for (uint32_t c = 0; c < columns; c++) {
            const char *name = arrow_schema_at(o->schema, c)->name;
            if (c) buffer_put_u8(&o->buffer, ',');
            csv_text(&o->buffer, (const uint8_t *)name, strlen(name), false);
        }
        buffer_put_u8(&o->buffer, '\n');
    }
    if (o->format == OUTPUT_ARROW) {
        struct slice schema = ipc_encode_schema(o->schema, true);
        buffer_put(&o->buffer, schema.data, schema.size);
        slice_unref(&schema);
    }
}

static void table_row(struct output *o, const struct arrow_batch *b, int64_t row, struct buffer *cell) {
    uint32_t columns = arrow_schema_count(o->schema);
    for (uint32_t c = 0; c < columns; c++) {
        buffer_reset(cell);
        table_cell(cell, arrow_schema_at(o->schema, c), &b->columns[c], row);
        int space = o->widths[c] - text_width(cell->data, cell->size);
        bool right = is_number(arrow_schema_at(o->schema, c));
        if (c) buffer_put_string(&o->buffer, "  ");
        if (right) pad(&o->buffer, space);
        buffer_put(&o->buffer, cell->data, cell->size);
        if (!right && c + 1 < columns) pad(&o->buffer, space);
    }
    buffer_put_u8(&o->buffer, '\n');
}

static void csv_row(struct output *o, const struct arrow_batch *b, int64_t row, struct buffer *cell) {
    for (uint32_t c = 0; c < arrow_schema_count(o->schema); c++) {
        if (c) buffer_put_u8(&o->buffer, ',');
        if (arrow_is_null(&b->columns[c], row)) continue;
        buffer_reset(cell);
        arrow_value_text(arrow_schema_at(o->schema, c), &b->columns[c], row, cell);
        csv_text(&o->buffer, cell->data, cell->size, cell->size == 0); // an empty text is "", null is nothing
    }
    buffer_put_u8(&o->buffer, '\n');
}

static void json_row(struct output *o, const struct arrow_batch *b, int64_t row) {
    struct json_writer w;
    json_begin(&w, &o->buffer);
    json_object_begin(&w);
    for (uint32_t c = 0; c < arrow_schema_count(o->schema); c++) {
        json_put_key(&w, arrow_schema_at(o->schema, c)->name);
        arrow_value_json(arrow_schema_at(o->schema, c), &b->columns[c], row, &w);
    }
    json_object_end(&w);
    buffer_put_u8(&o->buffer, '\n');
}

enum mink_code output_batch(struct output *o, const struct arrow_batch *b, struct error *e) {
    start(o, b);
    if (o->format == OUTPUT_ARROW) {
        struct slice message;
        struct slices body = {0};
        MINK_TRY(ipc_encode_batch(b, CODEC_NONE, 0, &message, &body, e));
        enum mink_code code = arrow_message(o, message, &body, e);
        slice_unref(&message);
        slices_deinit(&body);
        return code;
    }
    struct buffer cell;
    buffer_init(&cell, SIZE_MAX / 4);
    enum mink_code code = MINK_OK;
    for (int64_t row = 0; row < b->row_count && code == MINK_OK; row++) {
        if (o->format == OUTPUT_TABLE) table_row(o, b, row, &cell);
        else if (o->format == OUTPUT_CSV) csv_row(o, b, row, &cell);
        else json_row(o, b, row);
        if (o->buffer.size > 256 * 1024) code = flush(o, e);
    }
    buffer_deinit(&cell);
    return code == MINK_OK ? flush(o, e) : code;
}

enum mink_code output_end(struct output *o, struct error *e) {
    start(o, NULL);
    if (o->format == OUTPUT_ARROW) {
        buffer_put_u32le(&o->buffer, 0xffffffffu);
        buffer_put_u32le(&o->buffer, 0);
    }
    MINK_TRY(flush(o, e));
    if (fflush(o->file) != 0) return error_set(e, MINK_UNAVAILABLE, "OUTPUT", "output cannot be written: %s", strerror(errno));
    return MINK_OK;
}

void output_deinit(struct output *o) {
    buffer_deinit(&o->buffer);
    arrow_schema_unref(o->schema);
    mem_free(o->widths);
}
