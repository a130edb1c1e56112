// SPDX-License-Identifier: Apache-2.0
// Filters from anybody over a batch of every type. What statistics say must agree with the rows, and NOT must be its opposite.
#include "base/mem.h"
#include "table/ddl.h"
#include "table/filter.h"

#include <stdio.h>
#include <string.h>

#define ROWS 70

static struct table_def *d;
static struct arrow_batch batch;
static struct arrow_column_stats stats_storage[16];
static const struct arrow_column_stats *stats[16];
static uint32_t columns[16];

static void set_up(void) {
    static const char text[] = "i INT, l BIGINT, t TINYINT, s STRING, d DECIMAL(5,2), f DOUBLE, g FLOAT, b BOOLEAN, day DATE, at TIMESTAMP(3), k TIME(0), y "
                               "BYTES, x BINARY(2), a ARRAY<INT>";
    struct error e;
    mink_assert(ddl_parse_columns(text, sizeof text - 1, "d", "t", NULL, 0, NULL, &d, &e) == MINK_OK);
    struct arrow_builder *builder = arrow_builder_new(d->arrow);
    for (int i = 0; i < ROWS; i++) {
        char name[16];
        snprintf(name, sizeof name, "%c%d", 'a' + i % 5, i % 7);
        if (i % 6) arrow_builder_int(builder, 0, i % 9 - 3);
        if (i % 5) arrow_builder_int(builder, 1, i % 3 ? i : INT64_MIN + i);
        arrow_builder_int(builder, 2, i % 2 ? 127 - i : i - 128);
        if (i % 4) arrow_builder_bytes(builder, 3, name, strlen(name));
        arrow_builder_decimal(builder, 4, i * 100 - 3000);
        arrow_builder_real(builder, 5, i / 10.0);
        if (i % 3) arrow_builder_real(builder, 6, -i / 10.0);
        if (i % 3) arrow_builder_bool(builder, 7, i % 2);
        arrow_builder_int(builder, 8, 20000 + i);
        arrow_builder_int(builder, 9, 1700000000000 + i);
        arrow_builder_int(builder, 10, i * 1000);
        arrow_builder_bytes(builder, 11, name, (size_t)i % 3);
        arrow_builder_bytes(builder, 12, name, 2);
        arrow_builder_row(builder);
    }
    arrow_builder_finish(builder, &batch);
    arrow_builder_free(builder);
    for (uint32_t c = 0; c < d->column_count; c++) {
        columns[c] = c;
        arrow_stats(arrow_schema_at(d->arrow, c), &batch.columns[c], &stats_storage[c]);
        if (d->columns[c].type.kind < TYPE_BINARY) stats[c] = &stats_storage[c];
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct error e = {0};
    struct filter *f, *not ;
    uint32_t rows[ROWS], others[ROWS];
    bool used[16] = {0};
    if (d == NULL) set_up();
    if (size > 4096) return 0;
    char *text = mem_strndup((const char *)data, size), *negation = mem_printf("NOT (%s\n)", text);
    if (filter_parse(text, d, &f, &e) == MINK_OK) {
        size_t count = filter_rows(f, &batch, columns, rows), other_count = 0;
        for (size_t i = 0; i < count; i++) mink_assert(rows[i] < ROWS && (i == 0 || rows[i - 1] < rows[i]));
        mink_assert(count == 0 || filter_may_pass(f, stats, ROWS));
        filter_columns(f, used);
        if (filter_parse(negation, d, &not, &e) == MINK_OK) { // unless that is nested too deeply
            other_count = filter_rows(not, &batch, columns, others);
            mink_assert(other_count == 0 || filter_may_pass(not, stats, ROWS));
            for (size_t i = 0, k = 0; i < count && k < other_count; rows[i] < others[k] ? i++ : k++) mink_assert(rows[i] != others[k]);
            filter_free(not );
        }
        filter_free(f);
    } else {
        mink_assert(e.code != MINK_OK && e.message[0]);
    }
    mem_free(text);
    mem_free(negation);
    return 0;
}
