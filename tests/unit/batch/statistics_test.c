// SPDX-License-Identifier: Apache-2.0
#include "unit/arrow/arrow_testing.h"

#include "batch/batch.h"

static struct error why;

// A table of an integer, a text and a float column, ids 4, 9 and 2, made by hand: statistics need no more of it.
static struct column columns[] = {{.id = 4}, {.id = 9}, {.id = 2}};
static uint32_t statistics_columns[] = {0, 1, 2};

static struct table_def def_make(void) {
    struct arrow_field *fields = mem_new_array(struct arrow_field, 3);
    fields[0] = arrow_field_make("n", ARROW_INT32, true);
    fields[1] = arrow_field_make("s", ARROW_UTF8, true);
    fields[2] = arrow_field_make("x", ARROW_FLOAT64, true);
    return (struct table_def){.columns = columns, .column_count = 3, .statistics_columns = statistics_columns, .statistics_column_count = 3, .arrow = arrow_schema_new(fields, 3)};
}

static struct arrow_batch rows(const struct table_def *d, const char *const texts[][3], uint32_t count) {
    struct arrow_builder *b = arrow_builder_new(d->arrow);
    struct arrow_batch out;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t c = 0; c < 3; c++) {
            if (texts[i][c]) assert_fine(arrow_builder_text(b, c, texts[i][c], strlen(texts[i][c]), &why));
        }
        arrow_builder_row(b);
    }
    arrow_builder_finish(b, &out);
    arrow_builder_free(b);
    return out;
}

static void bounds_come_back(void **state) {
    struct table_def d = def_make();
    struct arrow_batch b = rows(&d, (const char *const[][3]){{"-5", "m", "1.5"}, {NULL, "a", "NaN"}, {"7", "zz", "0"}}, 3);
    struct slice section = batch_statistics_make(&d, &b);
    struct arrow_column_stats storage[3];
    const struct arrow_column_stats *stats[3];
    // count, then 16 bytes a column and its bounds
    assert_int_equal(section.size, 4 + (16 + 16) + (16 + 4 + 1 + 4 + 2) + 16);
    assert_fine(batch_statistics_read(section, &d, storage, stats, &why));
    assert_true(stats[0]->has_min_max && stats[0]->min.i == -5 && stats[0]->max.i == 7 && stats[0]->null_count == 1);
    assert_true(stats[1]->has_min_max && stats[1]->min.size == 1 && stats[1]->min.bytes[0] == 'a' && stats[1]->max.size == 2);
    assert_false(stats[2]->has_min_max); // NaN
    // Read through another version of the table: one column gone, one of another kind.
    struct column later[] = {{.id = 4}, {.id = 17}, {.id = 9}};
    struct table_def changed = d;
    changed.columns = later;
    assert_fine(batch_statistics_read(section, &changed, storage, stats, &why));
    assert_true(stats[0]->has_min_max && stats[1] == NULL && !stats[2]->has_min_max);
    for (size_t size = 1; size < section.size; size++) {
        struct slice part = slice_copy(section.data, size);
        assert_code(MINK_CORRUPT, batch_statistics_read(part, &d, storage, stats, &why));
        slice_unref(&part);
    }
    assert_fine(batch_statistics_read(slice_empty(), &d, storage, stats, &why));
    assert_true(stats[0] == NULL && stats[1] == NULL);
    slice_unref(&section);
    arrow_batch_deinit(&b);
    arrow_schema_unref(d.arrow);
}

// A cut bound still bounds, whatever byte it is cut at: here in the middle of characters of two, three and four bytes.
static void long_text_is_cut_to_bounds(void **state) {
    static const char *const repeated[] = {"é", "✓", "😀", "x", "\x7f"};
    struct table_def d = def_make();
    for (size_t k = 0; k < sizeof repeated / sizeof *repeated; k++) {
        char text[256] = "y";
        while (strlen(text) + strlen(repeated[k]) < 120) memcpy(text + strlen(text), repeated[k], strlen(repeated[k]) + 1);
        struct arrow_batch b = rows(&d, (const char *const[][3]){{NULL, text, NULL}}, 1);
        struct slice section = batch_statistics_make(&d, &b);
        struct arrow_column_stats storage[3];
        const struct arrow_column_stats *stats[3];
        assert_fine(batch_statistics_read(section, &d, storage, stats, &why));
        const struct arrow_scalar *min = &stats[1]->min, *max = &stats[1]->max;
        assert_true(min->size <= 64 && max->size <= 64 && max->size > 0);
        assert_true(memcmp(min->bytes, text, min->size) <= 0);
        assert_true(memcmp(max->bytes, text, max->size) > 0);
        assert_false(stats[0]->has_min_max);
        assert_int_equal(stats[0]->null_count, 1);
        slice_unref(&section);
        arrow_batch_deinit(&b);
    }
    struct arrow_batch none = rows(&d, NULL, 0);
    assert_int_equal(batch_statistics_make(&d, &none).size, 0);
    arrow_batch_deinit(&none);
    arrow_schema_unref(d.arrow);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(bounds_come_back), cmocka_unit_test(long_text_is_cut_to_bounds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
