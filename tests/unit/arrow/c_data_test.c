// SPDX-License-Identifier: Apache-2.0
// The C data interface, against structures laid out by hand as the standard says.
#include "arrow_testing.h"

#include "arrow/array.h"

#include <nanoarrow/nanoarrow.h>

static struct error why;

static void export_then_import_gives_the_same(void **state) {
    static const char *const files[] = {"types.arrows", "types_sliced.arrows", "dictionary_nested.arrows", "strings_lz4.arrows"};
    for (size_t k = 0; k < 4; k++) {
        struct test_stream s = test_read_golden(files[k]);
        for (uint32_t i = 0; i < s.count; i++) {
            struct ArrowSchema schema;
            struct ArrowArray array;
            struct arrow_schema *back_schema;
            struct arrow_batch back;
            assert_fine(arrow_schema_export(s.schema, &schema, &why));
            assert_fine(arrow_batch_export(&s.batches[i], &array, &why));
            assert_fine(arrow_schema_import(&schema, &back_schema, &why));
            assert_null(schema.release);
            assert_fine(arrow_batch_import(&array, back_schema, &back, &why));
            assert_null(array.release);
            assert_true(test_batch_equal(&s.batches[i], &back));
            if (k == 0) assert_string_equal(back_schema->root.metadata[0].value, "make_golden");
            arrow_batch_deinit(&back);
            arrow_schema_unref(back_schema);
        }
        test_stream_deinit(&s);
    }
}

static int released;
static void count_release(struct ArrowArray *a) {
    released++;
    a->release = NULL;
}
static void release_nothing(struct ArrowArray *a) { a->release = NULL; }

static struct arrow_schema *one_column(struct arrow_field take_field) {
    struct arrow_field *fields = mem_new_array(struct arrow_field, 1);
    fields[0] = take_field;
    return arrow_schema_new(fields, 1);
}

// The producer's memory is used in place, with offsets of the batch and of the column, and released with the last buffer.
static void an_import_with_offsets_shares_memory(void **state) {
    _Alignas(8) static const int64_t values[] = {10, 11, 12, 13, 14, 15};
    static const uint8_t valid[] = {0x2f}; // row 4 null
    const void *buffers[] = {valid, values}, *none[] = {NULL};
    struct ArrowArray child = {.length = 5, .offset = 1, .n_buffers = 2, .buffers = buffers, .null_count = -1, .release = release_nothing}, *children[] = {&child};
    struct ArrowArray root = {.length = 3, .offset = 1, .n_buffers = 1, .buffers = none, .n_children = 1, .children = children, .release = count_release};
    struct arrow_schema *s = one_column(arrow_field_make("v", ARROW_INT64, true));
    struct arrow_batch b;
    released = 0;
    assert_fine(arrow_batch_import(&root, s, &b, &why));
    assert_null(root.release);
    assert_int_equal(b.row_count, 3);
    assert_ptr_equal(b.columns[0].buffers[1].data, &values[2]);
    assert_true(!arrow_is_null(&b.columns[0], 0) && !arrow_is_null(&b.columns[0], 1) && arrow_is_null(&b.columns[0], 2));
    assert_int_equal(released, 0);
    arrow_batch_deinit(&b);
    assert_int_equal(released, 1);
    arrow_schema_unref(s);
}

static void views_and_dictionaries_become_plain(void **state) {
    _Alignas(8) uint8_t views[3 * 16] = {0};
    static const char heap[] = "..a text of more than twelve bytes";
    int32_t size = 5, long_size = 32, at = 2;
    memcpy(views, &size, 4);
    memcpy(views + 4, "short", 5);
    memcpy(views + 16, &long_size, 4);
    memcpy(views + 20, "a te", 4);
    memcpy(views + 28, &at, 4);
    _Alignas(8) static const int64_t sizes[] = {sizeof heap - 1};
    static const uint8_t valid[] = {0x3};
    const void *buffers[] = {valid, views, heap, sizes}, *none[] = {NULL};
    struct ArrowArray child = {.length = 3, .n_buffers = 4, .buffers = buffers, .null_count = 1, .release = release_nothing}, *children[] = {&child};
    struct ArrowArray root = {.length = 3, .n_buffers = 1, .buffers = none, .n_children = 1, .children = children, .release = count_release};
    struct ArrowSchema schema;
    ArrowSchemaInit(&schema);
    assert_int_equal(ArrowSchemaSetTypeStruct(&schema, 1), NANOARROW_OK);
    assert_int_equal(ArrowSchemaSetType(schema.children[0], NANOARROW_TYPE_STRING_VIEW), NANOARROW_OK);
    assert_int_equal(ArrowSchemaSetName(schema.children[0], "v"), NANOARROW_OK);
    struct arrow_schema *s;
    struct arrow_batch b;
    assert_fine(arrow_schema_import(&schema, &s, &why));
    assert_int_equal(arrow_schema_at(s, 0)->type, ARROW_UTF8);
    struct ArrowArray copy = root;
    assert_fine(arrow_batch_import(&copy, s, &b, &why));
    static const int32_t expected[] = {0, 5, 37, 37};
    assert_memory_equal(b.columns[0].buffers[1].data, expected, sizeof expected);
    assert_memory_equal(b.columns[0].buffers[2].data, "shorta text of more than twelve bytes", 37);
    assert_true(arrow_is_null(&b.columns[0], 2));
    arrow_batch_deinit(&b);
    at = 3; // one byte too far
    memcpy(views + 28, &at, 4);
    assert_code(MINK_INVALID, arrow_batch_import(&root, s, &b, &why));
    assert_string_equal(why.message, "field v: a view reaches behind its buffer at row 1");
    arrow_schema_unref(s);

    ArrowSchemaInit(&schema);
    assert_int_equal(ArrowSchemaSetTypeStruct(&schema, 1), NANOARROW_OK);
    assert_int_equal(ArrowSchemaSetType(schema.children[0], NANOARROW_TYPE_INT8), NANOARROW_OK);
    assert_int_equal(ArrowSchemaSetName(schema.children[0], "d"), NANOARROW_OK);
    assert_int_equal(ArrowSchemaAllocateDictionary(schema.children[0]), NANOARROW_OK);
    ArrowSchemaInit(schema.children[0]->dictionary);
    assert_int_equal(ArrowSchemaSetType(schema.children[0]->dictionary, NANOARROW_TYPE_STRING), NANOARROW_OK);
    assert_fine(arrow_schema_import(&schema, &s, &why));
    _Alignas(8) static const int8_t indices[] = {1, 0, 1};
    _Alignas(8) static const int32_t offsets[] = {0, 1, 3};
    const void *index_buffers[] = {NULL, indices}, *value_buffers[] = {NULL, offsets, "xyz"};
    struct ArrowArray values = {.length = 2, .n_buffers = 3, .buffers = value_buffers, .release = release_nothing};
    child = (struct ArrowArray){.length = 3, .n_buffers = 2, .buffers = index_buffers, .dictionary = &values, .release = release_nothing};
    root = (struct ArrowArray){.length = 3, .n_buffers = 1, .buffers = none, .n_children = 1, .children = children, .release = count_release};
    assert_fine(arrow_batch_import(&root, s, &b, &why));
    assert_memory_equal(b.columns[0].buffers[2].data, "yzxyz", 5);
    arrow_batch_deinit(&b);
    arrow_schema_unref(s);
}

static void what_does_not_fit_is_refused_and_released(void **state) {
    const void *none[] = {NULL};
    struct ArrowArray root = {.length = 3, .n_buffers = 1, .buffers = none, .release = count_release};
    struct arrow_schema *s = one_column(arrow_field_make("v", ARROW_INT64, true));
    struct arrow_batch b;
    released = 0;
    assert_code(MINK_INVALID, arrow_batch_import(&root, s, &b, &why));
    assert_string_equal(why.message, "field : length 3, offset 0, 1 buffers and 0 children do not fit its type");
    assert_int_equal(released, 1);
    arrow_schema_unref(s);
    s = one_column(arrow_field_make("v", ARROW_UTF8, true));
    _Alignas(8) static const int32_t offsets[] = {0, 4, 2};
    const void *buffers[] = {NULL, offsets, "abcd"};
    struct ArrowArray child = {.length = 2, .n_buffers = 3, .buffers = buffers, .release = release_nothing}, *children[] = {&child};
    root = (struct ArrowArray){.length = 2, .n_buffers = 1, .buffers = none, .n_children = 1, .children = children, .release = count_release};
    assert_code(MINK_INVALID, arrow_batch_import(&root, s, &b, &why));
    assert_string_equal(why.message, "field v: offsets do not ascend");
    assert_int_equal(released, 2);
    arrow_schema_unref(s);
}

// A consumer may take a child out and release the rest first.
static void children_of_an_export_live_on_their_own(void **state) {
    struct test_stream s = test_read_golden("strings_lz4.arrows");
    struct ArrowArray array, child;
    assert_fine(arrow_batch_export(&s.batches[0], &array, &why));
    child = *array.children[1];
    array.children[1]->release = NULL;
    array.release(&array);
    test_stream_deinit(&s);
    assert_int_equal(((const int64_t *)child.buffers[1])[199], 199);
    child.release(&child);
    assert_null(child.release);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(export_then_import_gives_the_same), cmocka_unit_test(an_import_with_offsets_shares_memory),
        cmocka_unit_test(views_and_dictionaries_become_plain), cmocka_unit_test(what_does_not_fit_is_refused_and_released),
        cmocka_unit_test(children_of_an_export_live_on_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
