// SPDX-License-Identifier: Apache-2.0
// Golden files are pyarrow's (tests/golden/make_golden.py). Run with "--recode IN OUT [zstd|lz4]" this program reads a stream and writes it
// again, for tests/clients/test_arrow_ipc.py, where pyarrow judges what we write.
#include "arrow_testing.h"

static struct error why;

static const char *const golden_files[] = {"types.arrows", "types_sliced.arrows", "types_zstd.arrows", "types_lz4.arrows", "strings_zstd.arrows",
    "strings_lz4.arrows", "empty.arrows", "no_columns.arrows", "types_file.arrow", "dictionary.arrows", "dictionary_replaced.arrows",
    "dictionary_delta.arrows", "dictionary_nested.arrows", "views.arrows", "views_zstd.arrows"};

static const struct arrow_array *column(const struct arrow_batch *b, const char *name) {
    int32_t i = arrow_schema_find(b->schema, name);
    assert_true(i >= 0);
    return &b->columns[i];
}

static void string_is(const struct arrow_array *a, int64_t row, const char *expected) {
    const int32_t *offsets = (const int32_t *)a->buffers[1].data;
    assert_false(arrow_is_null(a, row));
    assert_int_equal(offsets[row + 1] - offsets[row], strlen(expected));
    assert_memory_equal(a->buffers[2].data + offsets[row], expected, strlen(expected));
}

static void schema_as_pyarrow_prints(void **state) {
    static const char *const expected[] = {"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float", "double",
        "decimal128(12, 2)", "decimal128(38, 10)", "string", "binary", "fixed_size_binary[4]", "date32[day]", "time32[s]", "time32[ms]",
        "time64[us]", "time64[ns]", "timestamp[s]", "timestamp[ms]", "timestamp[us]", "timestamp[ns]", "timestamp[us, tz=UTC]", "duration[ms]",
        "list<item: int32>", "fixed_size_list<item: int16>[2]", "map<string, int64>", "struct<x: int64, y: list<item: string>>",
        "list<item: struct<m: map<string, list<item: double>>>>", "large_string", "large_binary", "large_list<item: int32>", "null", "halffloat"};
    struct test_stream s = test_read_golden("types.arrows");
    assert_int_equal(arrow_schema_count(s.schema), sizeof expected / sizeof *expected);
    for (uint32_t i = 0; i < arrow_schema_count(s.schema); i++) {
        char text[256];
        arrow_field_describe(arrow_schema_at(s.schema, i), text, sizeof text);
        assert_string_equal(text, expected[i]);
    }
    assert_string_equal(s.schema->root.metadata[0].key, "origin");
    assert_string_equal(s.schema->root.metadata[1].value, "é");
    test_stream_deinit(&s);
}

static void values_of_every_type(void **state) {
    struct test_stream s = test_read_golden("types.arrows");
    assert_int_equal(s.count, 1);
    struct arrow_batch *b = &s.batches[0];
    assert_int_equal(b->row_count, 5);
    for (uint32_t i = 0; i + 2 < arrow_schema_count(s.schema); i++) {
        assert_int_equal(b->columns[i].null_count, 1);
        assert_true(arrow_is_null(&b->columns[i], 2));
    }
    assert_int_equal(column(b, "null")->null_count, 5);
    assert_true(arrow_is_null(column(b, "null"), 4));
    assert_int_equal(((const int64_t *)column(b, "i64")->buffers[1].data)[0], INT64_MIN);
    assert_int_equal(((const uint32_t *)column(b, "u32")->buffers[1].data)[1], UINT32_MAX);
    assert_int_equal(((const int64_t *)column(b, "tsns")->buffers[1].data)[3], 1709251198123456789);
    string_is(column(b, "s"), 1, "héllo wörld ✓ 😀");
    string_is(column(b, "s"), 0, "");
    assert_int_equal(((const int64_t *)column(b, "dec")->buffers[1].data)[0], 1250);
    const struct arrow_array *list = column(b, "list");
    assert_int_equal(list->children[0].length, 8);
    assert_true(arrow_is_null(&list->children[0], 1));
    test_stream_deinit(&s);
}

// Compression and slicing change bytes, not values.
static void compressed_sliced_and_plain_agree(void **state) {
    struct test_stream plain = test_read_golden("types.arrows"), zstd = test_read_golden("types_zstd.arrows"), lz4 = test_read_golden("types_lz4.arrows"),
                       sliced = test_read_golden("types_sliced.arrows"), file = test_read_golden("types_file.arrow");
    assert_true(test_batch_equal(&plain.batches[0], &zstd.batches[0]));
    assert_true(test_batch_equal(&plain.batches[0], &lz4.batches[1]));
    assert_true(test_batch_equal(&plain.batches[0], &file.batches[0]));
    assert_int_equal(sliced.count, 4);
    struct arrow_batch part;
    static const int64_t ranges[4][2] = {{1, 3}, {3, 2}, {0, 0}, {0, 5}};
    for (uint32_t i = 0; i < 4; i++) {
        arrow_slice(&plain.batches[0], ranges[i][0], ranges[i][1], &part);
        assert_true(test_batch_equal(&part, &sliced.batches[i]));
        arrow_batch_deinit(&part);
    }
    test_stream_deinit(&plain);
    test_stream_deinit(&zstd);
    test_stream_deinit(&lz4);
    test_stream_deinit(&sliced);
    test_stream_deinit(&file);
}

static void dictionaries_come_out_plain(void **state) {
    struct test_stream s = test_read_golden("dictionary.arrows");
    const struct arrow_array *d = column(&s.batches[0], "d");
    string_is(d, 0, "a");
    string_is(d, 1, "b");
    assert_true(arrow_is_null(d, 2) && arrow_is_null(d, 3)); // a null index, and an index of a null
    assert_int_equal(d->null_count, 2);
    test_stream_deinit(&s);
    s = test_read_golden("dictionary_replaced.arrows");
    string_is(column(&s.batches[0], "d"), 0, "a");
    string_is(column(&s.batches[1], "d"), 0, "z");
    string_is(column(&s.batches[1], "d"), 1, "x");
    test_stream_deinit(&s);
    s = test_read_golden("dictionary_delta.arrows");
    string_is(column(&s.batches[1], "d"), 0, "c");
    string_is(column(&s.batches[2], "d"), 0, "d");
    string_is(column(&s.batches[2], "d"), 1, "c");
    test_stream_deinit(&s);
    s = test_read_golden("dictionary_nested.arrows");
    const struct arrow_array *items = &column(&s.batches[0], "list")->children[0], *lists = &column(&s.batches[0], "struct")->children[1];
    string_is(items, 0, "p");
    string_is(items, 2, "qq");
    assert_true(arrow_is_null(items, 3));
    static const int32_t expected_offsets[] = {0, 1, 3, 4};
    static const int64_t expected[] = {3, 1, 2, 3};
    assert_memory_equal(lists->buffers[1].data, expected_offsets, sizeof expected_offsets);
    assert_memory_equal(lists->children[0].buffers[1].data, expected, sizeof expected);
    test_stream_deinit(&s);
}

static void views_come_out_plain(void **state) {
    struct test_stream s = test_read_golden("views.arrows"), zstd = test_read_golden("views_zstd.arrows");
    struct arrow_batch *b = &s.batches[0];
    assert_int_equal(b->row_count, 21);
    string_is(column(b, "s"), 0, "");
    string_is(column(b, "s"), 2, "twelve bytes");
    assert_true(arrow_is_null(column(b, "s"), 3));
    string_is(column(b, "s"), 5, "a long text that lies in a buffer ✓");
    string_is(column(b, "b"), 20, "ünïcödé");
    string_is(&column(b, "l")->children[0], 9, "another long text in a list");
    assert_int_equal(s.batches[1].row_count, 0);
    string_is(column(&s.batches[2], "s"), 3, "a long text that lies in a buffer ✓");
    assert_true(test_batch_equal(b, &zstd.batches[0]));
    test_stream_deinit(&s);
    test_stream_deinit(&zstd);
}

struct encoded { struct slice message, body; };

static struct encoded encode(const struct arrow_batch *b, enum codec codec) {
    struct encoded out;
    struct slices body;
    assert_fine(ipc_encode_batch(b, codec, 1, &out.message, &body, &why));
    assert_int_equal(body.bytes % 64, 0);
    out.body = slices_join(&body);
    slices_deinit(&body);
    return out;
}

static void encoded_deinit(struct encoded *p) {
    slice_unref(&p->message);
    slice_unref(&p->body);
}

static void encode_then_decode_gives_the_same(void **state) {
    for (size_t i = 0; i < sizeof golden_files / sizeof *golden_files; i++) {
        struct test_stream s = test_read_golden(golden_files[i]);
        struct slice schema_message = ipc_encode_schema(s.schema, i % 2);
        struct arrow_schema *schema;
        assert_fine(ipc_decode_schema(schema_message, &schema, &why));
        slice_unref(&schema_message);
        struct ipc_decoder *d = ipc_decoder_new(schema, 1 << 20);
        for (uint32_t k = 0; k < s.count * 3; k++) {
            struct encoded bytes = encode(&s.batches[k / 3], (enum codec)(k % 3));
            struct arrow_batch back;
            struct ipc_batch_info info;
            assert_fine(ipc_decoder_batch(d, bytes.message, bytes.body, &back, &info, &why));
            assert_true(test_batch_equal(&s.batches[k / 3], &back));
            assert_true(info.plain);
            assert_int_equal(info.codec, k % 3);
            arrow_batch_deinit(&back);
            encoded_deinit(&bytes);
        }
        ipc_decoder_free(d);
        arrow_schema_unref(schema);
        test_stream_deinit(&s);
    }
}

static void projection_equals_decode_and_project(void **state) {
    static const char *const files[] = {"types.arrows", "types_zstd.arrows"};
    for (int k = 0; k < 2; k++) {
        struct test_stream s = test_read_golden(files[k]);
        uint32_t count = arrow_schema_count(s.schema);
        struct encoded bytes = encode(&s.batches[0], k ? CODEC_ZSTD : CODEC_NONE);
        for (uint32_t i = 0; i < count; i++) {
            uint32_t columns[3] = {i, (i + 1) % count, (i * 5 + 7) % count}, n = 1 + i % 3;
            struct slice message;
            struct slices body;
            struct arrow_batch expected, got;
            assert_fine(ipc_project(s.schema, bytes.message, bytes.body, columns, n, &message, &body, &why));
            arrow_project(&s.batches[0], columns, n, &expected);
            struct slice joined = slices_join(&body);
            struct ipc_decoder *d = ipc_decoder_new(expected.schema, 1 << 20);
            assert_fine(ipc_decoder_batch(d, message, joined, &got, NULL, &why));
            assert_true(test_batch_equal(&expected, &got));
            ipc_decoder_free(d);
            slice_unref(&joined);
            slice_unref(&message);
            slices_deinit(&body);
            arrow_batch_deinit(&expected);
            arrow_batch_deinit(&got);
        }
        encoded_deinit(&bytes);
        test_stream_deinit(&s);
    }
}

// Columns that lie together are passed on in one piece.
static void projection_of_neighbours_is_one_slice(void **state) {
    struct test_stream s = test_read_golden("strings_lz4.arrows");
    struct encoded bytes = encode(&s.batches[0], CODEC_NONE);
    uint32_t columns[2] = {0, 1};
    struct slice message;
    struct slices body;
    assert_fine(ipc_project(s.schema, bytes.message, bytes.body, columns, 2, &message, &body, &why));
    assert_ptr_equal(body.items[0].data, bytes.body.data);
    assert_in_range(body.count, 1, 2); // and perhaps padding
    slice_unref(&message);
    slices_deinit(&body);
    encoded_deinit(&bytes);
    test_stream_deinit(&s);
}

static void unsupported_types_are_named(void **state) {
    struct slice bytes = test_golden("list_view.arrows");
    struct ipc_stream_reader *r;
    struct arrow_schema *schema;
    assert_code(MINK_UNSUPPORTED, ipc_stream_reader_open(bytes, &r, &schema, &why));
    assert_string_equal(why.message, "column v: type list_view is not supported");
    assert_string_equal(why.hint, "cast it to list");
    assert_string_equal(why.reason, "UNSUPPORTED_TYPE");
    slice_unref(&bytes);
    bytes = test_golden("union.arrows");
    assert_code(MINK_UNSUPPORTED, ipc_stream_reader_open(bytes, &r, &schema, &why));
    assert_string_equal(why.message, "column u: type union is not supported");
    slice_unref(&bytes);
}

// One string column of two rows, to be damaged.
struct victim {
    struct arrow_schema *schema;
    struct ipc_decoder *decoder;
    struct ipc_node_ { int64_t length, null_count; } *node;
    uint8_t *body;
    struct slice message, body_slice;
    uint8_t *message_data;
};

static struct victim victim_make(void) {
    struct victim v;
    struct arrow_field *fields = mem_new_array(struct arrow_field, 1);
    fields[0] = arrow_field_make("name", ARROW_UTF8, true);
    v.schema = arrow_schema_new(fields, 1);
    v.decoder = ipc_decoder_new(v.schema, 1024);
    struct arrow_array a = {.length = 2};
    static const int32_t offsets[] = {0, 2, 4};
    a.buffers[1] = slice_borrow(offsets, sizeof offsets);
    a.buffers[2] = slice_borrow("\xc3\xa9yz", 4);
    struct arrow_batch b = {v.schema, 2, &a};
    struct encoded bytes = encode(&b, CODEC_NONE);
    v.message = slice_new(bytes.message.size, &v.message_data);
    memcpy(v.message_data, bytes.message.data, bytes.message.size);
    v.body_slice = slice_new(bytes.body.size, &v.body);
    memcpy(v.body, bytes.body.data, bytes.body.size);
    encoded_deinit(&bytes);
    return v;
}

static void victim_deinit(struct victim *v) {
    slice_unref(&v->message);
    slice_unref(&v->body_slice);
    ipc_decoder_free(v->decoder);
    arrow_schema_unref(v->schema);
}

static void victim_fails(struct victim *v, const char *message) {
    struct arrow_batch out;
    assert_code(MINK_INVALID, ipc_decoder_batch(v->decoder, v->message, v->body_slice, &out, NULL, &why));
    assert_string_equal(why.reason, "BAD_ARROW");
    assert_string_equal(why.message, message);
}

static void set_i32(uint8_t *at, int32_t v) { memcpy(at, &v, 4); }
static void set_i64(uint8_t *at, int64_t v) { memcpy(at, &v, 8); }

static void damage_is_told_with_column_and_place(void **state) {
    // Positions in the message: nodes at 80, buffers at 104 (the layout in ipc_encode.c); in the body: offsets at 0, bytes at 64.
    struct victim v = victim_make();
    struct arrow_batch out;
    assert_fine(ipc_decoder_batch(v.decoder, v.message, v.body_slice, &out, NULL, &why));
    arrow_batch_deinit(&out);
    set_i32(v.body + 4, 5);
    victim_fails(&v, "column name: field name: offsets do not ascend");
    assert_string_equal(why.column, "name");
    set_i32(v.body + 4, 1);
    victim_fails(&v, "column name: field name: invalid UTF-8 at row 0");
    set_i32(v.body + 4, 2);
    v.body[65] = 'x';
    victim_fails(&v, "column name: field name: invalid UTF-8 at row 0");
    v.body[65] = 0xa9;
    set_i32(v.body, -1);
    victim_fails(&v, "column name: field name: offsets do not ascend");
    set_i32(v.body, 0);
    set_i32(v.body + 8, 65);
    victim_fails(&v, "column name: field name: offsets reach behind the data");
    set_i32(v.body + 8, 4);
    set_i64(v.message_data + 88, 1);
    victim_fails(&v, "column name: null count 1 without a validity bitmap");
    set_i64(v.message_data + 88, 0);
    set_i64(v.message_data + 80, 3);
    victim_fails(&v, "column name: buffer 1 has 12 bytes, its column needs 16");
    set_i64(v.message_data + 80, -1);
    victim_fails(&v, "column name: field name: length -1, null count 0");
    set_i64(v.message_data + 80, 2);
    set_i64(v.message_data + 136, 200);
    victim_fails(&v, "column name: buffer 2 (offset 200, 4 bytes) reaches behind the body of 128 bytes");
    set_i64(v.message_data + 136, 64);
    set_i64(v.message_data + 56, 4);
    victim_fails(&v, "column name: 2 rows in a batch of 4");
    set_i64(v.message_data + 56, 1 << 30);
    victim_fails(&v, "record batch of 1073741824 rows, at most 16777216 are read");
    set_i64(v.message_data + 56, 2);
    set_i64(v.message_data + 24, 64);
    victim_fails(&v, "body has 128 bytes, its message says 64");
    set_i64(v.message_data + 24, 128);
    v.message_data[32] = 2;
    victim_fails(&v, "metadata version V3; V4 and V5 are read");
    v.message_data[32] = 4;
    set_i32(v.message_data + 100, 1000);
    victim_fails(&v, "record batch metadata is not a valid flatbuffer");
    set_i32(v.message_data + 100, 3);
    struct slice right = v.body_slice;
    uint8_t *shifted;
    v.body_slice = slice_new(right.size + 1, &shifted);
    struct slice whole = v.body_slice;
    v.body_slice = slice_borrow(shifted + 1, right.size);
    memcpy(shifted + 1, right.data, right.size);
    victim_fails(&v, "body is not aligned to 8 bytes in memory");
    slice_unref(&whole);
    v.body_slice = right;
    victim_deinit(&v);
}

// A claim of 4 GiB in a body of 64 bytes, and one that is too small for its column.
static void claimed_sizes_are_checked_before_memory_is_taken(void **state) {
    struct test_stream s = test_read_golden("strings_lz4.arrows");
    struct encoded bytes = encode(&s.batches[0], CODEC_ZSTD);
    uint8_t *body;
    struct slice damaged = slice_new(bytes.body.size, &body);
    struct ipc_decoder *d = ipc_decoder_new(s.schema, 1 << 20);
    struct arrow_batch out;
    memcpy(body, bytes.body.data, bytes.body.size);
    set_i64(body, 1ll << 32);
    assert_code(MINK_INVALID, ipc_decoder_batch(d, bytes.message, damaged, &out, NULL, &why));
    assert_string_equal(why.message, "column s: compressed buffer claims 4294967296 bytes, over the limit of 1048576 a batch");
    set_i64(body, 1);
    assert_code(MINK_INVALID, ipc_decoder_batch(d, bytes.message, damaged, &out, NULL, &why));
    slice_unref(&damaged);
    ipc_decoder_free(d);
    encoded_deinit(&bytes);
    test_stream_deinit(&s);
}

static void a_dictionary_never_sent_is_an_error(void **state) {
    struct slice bytes = test_golden("dictionary.arrows");
    struct ipc_message_info info;
    struct arrow_schema *schema;
    size_t at = 0;
    struct { struct slice message, body; } parts[3];
    for (int i = 0; i < 3; i++) {
        uint32_t size;
        memcpy(&size, bytes.data + at + 4, 4);
        parts[i].message = slice_view(bytes, at, 8 + size);
        assert_fine(ipc_peek(parts[i].message, &info, &why));
        assert_int_equal(info.kind, IPC_SCHEMA + i);
        parts[i].body = slice_view(bytes, at + 8 + size, info.body_size);
        at += 8 + size + info.body_size;
    }
    assert_fine(ipc_decode_schema(parts[0].message, &schema, &why));
    struct ipc_decoder *d = ipc_decoder_new(schema, 1 << 20);
    struct arrow_batch out;
    assert_code(MINK_INVALID, ipc_decoder_batch(d, parts[2].message, parts[2].body, &out, NULL, &why));
    assert_string_equal(why.message, "column d: dictionary 0 was never sent");
    assert_fine(ipc_decoder_dictionary(d, parts[1].message, parts[1].body, &why));
    struct ipc_batch_info batch_info;
    assert_fine(ipc_decoder_batch(d, parts[2].message, parts[2].body, &out, &batch_info, &why));
    assert_false(batch_info.plain);
    arrow_batch_deinit(&out);
    ipc_decoder_free(d);
    arrow_schema_unref(schema);
    slice_unref(&bytes);
}

// Messages of pyarrow, laid out again: other bytes, the same values, the same size.
static void a_rewritten_message_is_ours(void **state) {
    static const char *const files[] = {"types.arrows", "types_zstd.arrows", "strings_lz4.arrows"};
    for (size_t k = 0; k < 3; k++) {
        struct slice bytes = test_golden(files[k]);
        struct test_stream s = test_read_stream(bytes);
        struct ipc_message_info info;
        uint32_t size;
        memcpy(&size, bytes.data + 4, 4);
        size_t at = 8 + size; // behind the schema
        memcpy(&size, bytes.data + at + 4, 4);
        struct slice message = slice_view(bytes, at + 8, size);
        assert_fine(ipc_peek(message, &info, &why));
        struct slice body = slice_copy(bytes.data + at + 8 + size, info.body_size);
        struct ipc_decoder *d = ipc_decoder_new(s.schema, 1 << 20);
        struct arrow_batch out;
        struct ipc_batch_info batch_info;
        assert_fine(ipc_decoder_batch(d, message, body, &out, &batch_info, &why));
        arrow_batch_deinit(&out);
        assert_true(batch_info.plain); // what pyarrow sends has room for ours
        struct slice ours = ipc_rewrite(message);
        assert_int_equal(ours.size, message.size);
        assert_fine(ipc_decoder_batch(d, ours, body, &out, &batch_info, &why));
        assert_true(test_batch_equal(&s.batches[0], &out));
        arrow_batch_deinit(&out);
        struct slice again = ipc_rewrite(ours);
        assert_memory_equal(again.data, ours.data, ours.size);
        // Encapsulated: read, but not to be stored.
        struct slice with_prefix = slice_view(bytes, at, 8 + size);
        assert_fine(ipc_decoder_batch(d, with_prefix, body, &out, &batch_info, &why));
        assert_false(batch_info.plain);
        arrow_batch_deinit(&out);
        slice_unref(&again);
        slice_unref(&ours);
        slice_unref(&body);
        ipc_decoder_free(d);
        test_stream_deinit(&s);
        slice_unref(&bytes);
    }
}

// Deltas add up; replacing does not.
static void dictionaries_are_bounded(void **state) {
    static const char *const files[] = {"dictionary_replaced.arrows", "dictionary_delta.arrows"};
    for (int k = 0; k < 2; k++) {
        struct slice bytes = test_golden(files[k]);
        struct test_stream s = test_read_stream(bytes);
        struct ipc_decoder *d = ipc_decoder_new(s.schema, 2000);
        size_t at = 0;
        enum mink_code code = MINK_OK;
        int sent = 0;
        while (code == MINK_OK && at < bytes.size && sent < 500) {
            uint32_t size;
            struct ipc_message_info info;
            memcpy(&size, bytes.data + at + 4, 4);
            if (size == 0) break;
            struct slice message = slice_view(bytes, at, 8 + size);
            assert_fine(ipc_peek(message, &info, &why));
            struct slice body = slice_copy(bytes.data + at + 8 + size, info.body_size);
            // The second dictionary of the file, again and again.
            bool again = info.kind == IPC_DICTIONARY && at > 600 && sent++ < 400;
            if (info.kind == IPC_DICTIONARY) code = ipc_decoder_dictionary(d, message, body, &why);
            slice_unref(&body);
            if (!again) at += 8 + size + info.body_size;
        }
        if (k == 0) {
            assert_int_equal(code, MINK_OK);
            assert_true(sent > 400);
        } else {
            assert_int_equal(code, MINK_INVALID);
            assert_string_equal(why.message, "dictionary 0: dictionaries are over the limit of 2000 bytes");
        }
        ipc_decoder_free(d);
        test_stream_deinit(&s);
        slice_unref(&bytes);
    }
}

static void a_stream_cut_anywhere_is_an_error_or_ends_at_a_message(void **state) {
    struct slice bytes = test_golden("dictionary_delta.arrows");
    uint32_t ends = 0;
    for (size_t size = 0; size < bytes.size; size++) {
        struct slice part = slice_copy(bytes.data, size);
        struct ipc_stream_reader *r;
        struct arrow_schema *schema;
        bool end = false;
        enum mink_code code = ipc_stream_reader_open(part, &r, &schema, &why);
        if (code == MINK_OK) {
            while (code == MINK_OK && !end) {
                struct arrow_batch b;
                code = ipc_stream_reader_next(r, &b, &end, &why);
                if (code == MINK_OK && !end) arrow_batch_deinit(&b);
            }
            ipc_stream_reader_free(r);
            arrow_schema_unref(schema);
        }
        if (code == MINK_OK) ends++;
        else assert_int_equal(code, MINK_INVALID);
        slice_unref(&part);
    }
    assert_int_equal(ends, 7); // schema, three dictionaries, three batches; then the end marker
    slice_unref(&bytes);
}

static int recode(const char *in, const char *out_path, const char *codec_name) {
    struct slice bytes = test_read_file(in);
    struct test_stream s = test_read_stream(bytes);
    enum codec codec = codec_name == NULL ? CODEC_NONE : strcmp(codec_name, "zstd") == 0 ? CODEC_ZSTD : CODEC_LZ4_FRAME;
    FILE *f = fopen(out_path, "wb");
    if (f == NULL) return 1;
    struct slice message = ipc_encode_schema(s.schema, true);
    fwrite(message.data, 1, message.size, f);
    slice_unref(&message);
    for (uint32_t i = 0; i < s.count; i++) {
        struct encoded part = encode(&s.batches[i], codec);
        uint32_t prefix[2] = {UINT32_MAX, (uint32_t)part.message.size};
        fwrite(prefix, 1, 8, f);
        fwrite(part.message.data, 1, part.message.size, f);
        fwrite(part.body.data, 1, part.body.size, f);
        encoded_deinit(&part);
    }
    test_stream_deinit(&s);
    slice_unref(&bytes);
    return fclose(f);
}

int main(int argc, char **argv) {
    if (argc >= 4 && strcmp(argv[1], "--recode") == 0) return recode(argv[2], argv[3], argc > 4 ? argv[4] : NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schema_as_pyarrow_prints),
        cmocka_unit_test(values_of_every_type),
        cmocka_unit_test(compressed_sliced_and_plain_agree),
        cmocka_unit_test(dictionaries_come_out_plain),
        cmocka_unit_test(views_come_out_plain),
        cmocka_unit_test(encode_then_decode_gives_the_same),
        cmocka_unit_test(projection_equals_decode_and_project),
        cmocka_unit_test(projection_of_neighbours_is_one_slice),
        cmocka_unit_test(unsupported_types_are_named),
        cmocka_unit_test(damage_is_told_with_column_and_place),
        cmocka_unit_test(claimed_sizes_are_checked_before_memory_is_taken),
        cmocka_unit_test(a_dictionary_never_sent_is_an_error),
        cmocka_unit_test(dictionaries_are_bounded),
        cmocka_unit_test(a_rewritten_message_is_ours),
        cmocka_unit_test(a_stream_cut_anywhere_is_an_error_or_ends_at_a_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
