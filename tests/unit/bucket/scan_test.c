// SPDX-License-Identifier: Apache-2.0
#include "unit/arrow/arrow_testing.h"

#include "bucket/scan.h"
#include "table/ddl.h"

static struct error why;

static struct table_def *make_table(const char *ddl_text) {
    struct ddl ddl;
    struct table_defaults defaults = {.bucket_num = 1};
    assert_fine(ddl_parse(ddl_text, strlen(ddl_text), NULL, &defaults, &ddl, &why));
    struct table_def *d = table_def_ref(ddl.def);
    ddl_deinit(&ddl);
    return d;
}

#define ORDERS "CREATE TABLE shop.orders (id BIGINT, city STRING, amount DOUBLE) WITH ('bucket.num' = '1', 'table.statistics.columns' = 'id')"

// Row i: id = first + i, city "c<id mod 3>" (null when id is a multiple of 5), amount = id / 2.
static void make_rows(struct table_def *d, int64_t first, int64_t count, struct arrow_batch *out) {
    struct arrow_builder *b = arrow_builder_new(d->arrow);
    for (int64_t i = first; i < first + count; i++) {
        char city[16];
        arrow_builder_int(b, 0, i);
        snprintf(city, sizeof city, "c%d", (int)(i % 3));
        if (i % 5) arrow_builder_bytes(b, 1, city, strlen(city));
        arrow_builder_real(b, 2, (double)i / 2);
        arrow_builder_row(b);
    }
    arrow_builder_finish(b, out);
    arrow_builder_free(b);
}

static struct batch_bytes store(struct table_def *d, int64_t first, int64_t count, enum codec codec, uint64_t offset, struct batch_view *view) {
    struct arrow_batch rows;
    struct slice message, body;
    struct slices parts;
    struct batch_draft draft;
    uint32_t crc;
    make_rows(d, first, count, &rows);
    assert_fine(ipc_encode_batch(&rows, codec, 3, &message, &parts, &why));
    body = slices_join(&parts);
    slices_deinit(&parts);
    struct slice statistics = batch_statistics_make(d, &rows);
    struct batch_header h = {.offset_count = (uint32_t)count, .row_count = (uint32_t)count, .schema_id = d->schema_id, .payload = BATCH_PAYLOAD_ARROW};
    assert_fine(batch_draft_make(&h, slice_empty(), statistics, message, body, &draft, &why));
    batch_stamp(&draft, offset, 1, 1700000000000, &crc);
    slice_unref(&message);
    slice_unref(&body);
    slice_unref(&statistics);
    arrow_batch_deinit(&rows);
    struct batch_bytes bytes = draft.bytes;
    assert_fine(batch_decode(&bytes, true, view, &why));
    return bytes;
}

static void release(struct batch_bytes *b) {
    slice_unref(&b->head);
    slice_unref(&b->body);
}

static void read_message(struct scan_plan *p, struct scan_message *m, struct arrow_batch *out) {
    struct ipc_decoder *d = ipc_decoder_new(scan_plan_schema(p), 1 << 30);
    struct slice body = slices_join(&m->body);
    assert_fine(ipc_decoder_batch(d, m->message, body, out, NULL, &why));
    assert_int_equal(out->row_count, m->row_count);
    slice_unref(&body);
    ipc_decoder_free(d);
}

static int64_t int_at(const struct arrow_batch *b, uint32_t column, int64_t row) { return ((const int64_t *)b->columns[column].buffers[1].data)[row]; }

static void expect_text(const struct arrow_batch *b, uint32_t column, int64_t row, const char *expected) {
    struct buffer out;
    buffer_init(&out, 4096);
    arrow_value_text(arrow_schema_at(b->schema, column), &b->columns[column], row, &out);
    assert_string_equal(buffer_string(&out), expected);
    buffer_deinit(&out);
}

static struct scan_position everything(void) { return (struct scan_position){.from = 0, .until = UINT64_MAX, .rows_left = -1, .bucket = 4}; }

static struct scan_plan *plan_of(struct table_def *d, struct scan_request r) {
    struct scan_plan *p;
    assert_fine(scan_plan_make(d, &r, &p, &why));
    return p;
}

static void a_whole_batch_is_passed_on_without_a_copy(void **state) {
    struct table_def *d = make_table(ORDERS);
    struct batch_view view;
    struct batch_bytes bytes = store(d, 0, 10, CODEC_NONE, 100, &view);
    struct scan_plan *p = plan_of(d, (struct scan_request){.all_columns = true});
    struct scan_position at = everything();
    struct scan_message *m;
    uint32_t count;
    assert_fine(scan_batch(p, &bytes, &view, &at, &m, &count, &why));
    assert_int_equal(count, 1);
    assert_int_equal(m->next, 110);
    assert_int_equal(at.from, 110);
    assert_int_equal(m->body.count, 1);
    assert_ptr_equal(m->body.items[0].data, view.body.data);
    release(&bytes); // the message keeps what it needs
    struct arrow_batch got;
    read_message(p, m, &got);
    assert_int_equal(int_at(&got, 0, 9), 9);
    expect_text(&got, 1, 4, "c1");
    expect_text(&got, 1, 5, "");
    arrow_batch_deinit(&got);
    scan_messages_free(m, count);
    scan_plan_unref(p);
    table_def_unref(d);
}

static void projection_sends_only_the_chosen_columns_in_their_order(void **state) {
    struct table_def *d = make_table(ORDERS);
    struct batch_view view;
    for (int compressed = 0; compressed < 2; compressed++) {
        enum codec codec = compressed ? CODEC_ZSTD : CODEC_NONE;
        struct batch_bytes bytes = store(d, 0, 1000, codec, 0, &view);
        const char *columns[] = {"amount", "id"};
        struct scan_plan *p = plan_of(d, (struct scan_request){.columns = columns, .column_count = 2, .compression = codec});
        struct scan_position at = everything();
        struct scan_message *m;
        uint32_t count;
        assert_fine(scan_batch(p, &bytes, &view, &at, &m, &count, &why));
        assert_int_equal(count, 1);
        for (uint32_t i = 0; i < m->body.count; i++) { // sub-slices of what is stored, or padding
            const uint8_t *data = m->body.items[i].data;
            assert_true((data >= view.body.data && data < view.body.data + view.body.size) || m->body.items[i].size < 64);
        }
        if (!compressed) assert_int_equal(m->body.bytes, 16000);
        struct arrow_batch got;
        read_message(p, m, &got);
        assert_string_equal(arrow_schema_at(got.schema, 0)->name, "amount");
        assert_true(((const double *)got.columns[0].buffers[1].data)[999] == 499.5);
        assert_int_equal(int_at(&got, 1, 999), 999);
        arrow_batch_deinit(&got);
        scan_messages_free(m, count);
        scan_plan_unref(p);
        release(&bytes);
    }
    table_def_unref(d);
}

static void what_is_stored_compressed_is_sent_as_the_reader_wants_it(void **state) {
    struct table_def *d = make_table(ORDERS);
    struct batch_view view;
    static const enum codec codecs[] = {CODEC_NONE, CODEC_LZ4_FRAME, CODEC_ZSTD};
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 3; k++) {
            struct batch_bytes bytes = store(d, 0, 500, codecs[i], 0, &view);
            struct scan_plan *p = plan_of(d, (struct scan_request){.all_columns = true, .compression = codecs[k]});
            struct scan_position at = everything();
            struct scan_message *m;
            uint32_t count;
            struct ipc_message_info info;
            assert_fine(scan_batch(p, &bytes, &view, &at, &m, &count, &why));
            assert_int_equal(count, 1);
            assert_fine(ipc_peek(m->message, &info, &why));
            assert_int_equal(info.codec, codecs[k]);
            struct arrow_batch got, wanted;
            read_message(p, m, &got);
            make_rows(d, 0, 500, &wanted);
            assert_true(test_batch_equal(&got, &wanted));
            arrow_batch_deinit(&got);
            arrow_batch_deinit(&wanted);
            scan_messages_free(m, count);
            scan_plan_unref(p);
            release(&bytes);
        }
    }
    table_def_unref(d);
}

static void a_filter_gives_exactly_the_rows_that_pass(void **state) {
    struct table_def *d = make_table(ORDERS);
    struct batch_view view;
    struct batch_bytes bytes = store(d, 0, 20, CODEC_NONE, 1000, &view);
    const char *columns[] = {"id"};
    struct scan_plan *p = plan_of(d, (struct scan_request){.columns = columns, .column_count = 1, .filter = "city = 'c1' AND amount < 8"});
    struct scan_position at = everything();
    struct scan_message *m;
    uint32_t count;
    assert_fine(scan_batch(p, &bytes, &view, &at, &m, &count, &why));
    assert_int_equal(count, 1);
    struct arrow_batch got;
    read_message(p, m, &got);
    // ids with id mod 3 = 1, not a multiple of 5, below 16: 1 4 7 13 (10 is null)
    static const int64_t expected[] = {1, 4, 7, 13};
    assert_int_equal(got.row_count, 4);
    for (int i = 0; i < 4; i++) assert_int_equal(int_at(&got, 0, i), expected[i]);
    assert_int_equal(m->next, 1020); // rows left out count as read
    arrow_batch_deinit(&got);
    scan_messages_free(m, count);
    // Nothing passes: by statistics, and by rows.
    static const char *const none[] = {"id > 100", "amount > 100", "id IS NULL"};
    for (int i = 0; i < 3; i++) {
        scan_plan_unref(p);
        p = plan_of(d, (struct scan_request){.all_columns = true, .filter = none[i]});
        at = everything();
        assert_fine(scan_batch(p, &bytes, &view, &at, &m, &count, &why));
        assert_int_equal(count, 0);
        assert_int_equal(at.from, 1020);
    }
    scan_plan_unref(p);
    release(&bytes);
    table_def_unref(d);
}

static void statistics_spare_decoding(void **state) {
    struct table_def *d = make_table(ORDERS);
    struct batch_view view;
    struct batch_bytes bytes = store(d, 0, 20, CODEC_NONE, 0, &view);
    struct scan_plan *p = plan_of(d, (struct scan_request){.all_columns = true, .filter = "id >= 20"});
    struct scan_position at = everything();
    struct scan_message *m;
    uint32_t count;
    view.message.size = 0; // decoding it would be an error
    assert_fine(scan_batch(p, &bytes, &view, &at, &m, &count, &why));
    assert_int_equal(count, 0);
    scan_plan_unref(p);
    p = plan_of(d, (struct scan_request){.all_columns = true, .filter = "id >= 19"});
    at = everything();
    assert_code(MINK_CORRUPT, scan_batch(p, &bytes, &view, &at, &m, &count, &why));
    assert_non_null(strstr(why.message, "read shop.orders batch at offset 0: "));
    assert_int_equal(at.from, 0);
    scan_plan_unref(p);
    release(&bytes);
    table_def_unref(d);
}

static void ranges_and_limits_cut_rows(void **state) {
    struct table_def *d = make_table(ORDERS);
    struct batch_view view;
    struct batch_bytes bytes = store(d, 0, 10, CODEC_NONE, 100, &view);
    struct scan_plan *p = plan_of(d, (struct scan_request){.all_columns = true});
    static const struct { uint64_t from, until; int64_t limit; int64_t first, rows; uint64_t next; int64_t left; } cases[] = {
        {103, UINT64_MAX, -1, 3, 7, 110, -1}, {0, 104, -1, 0, 4, 104, -1}, {105, 107, -1, 5, 2, 107, -1}, {0, UINT64_MAX, 4, 0, 4, 104, 0},
        {0, UINT64_MAX, 10, 0, 10, 110, 0},   {0, UINT64_MAX, 25, 0, 10, 110, 15}, {108, UINT64_MAX, 1, 8, 1, 109, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct scan_position at = {.from = cases[i].from, .until = cases[i].until, .rows_left = cases[i].limit};
        struct scan_message *m;
        uint32_t count;
        assert_fine(scan_batch(p, &bytes, &view, &at, &m, &count, &why));
        assert_int_equal(count, 1);
        struct arrow_batch got;
        read_message(p, m, &got);
        assert_int_equal(got.row_count, cases[i].rows);
        assert_int_equal(int_at(&got, 0, 0), cases[i].first);
        assert_int_equal(m->next, cases[i].next);
        assert_int_equal(at.from, cases[i].next);
        assert_int_equal(at.rows_left, cases[i].left);
        arrow_batch_deinit(&got);
        scan_messages_free(m, count);
    }
    // Outside of the batch altogether.
    static const struct { uint64_t from, until; } outside[] = {{110, UINT64_MAX}, {0, 100}, {5, 50}, {200, 300}};
    for (size_t i = 0; i < 4; i++) {
        struct scan_position at = {.from = outside[i].from, .until = outside[i].until, .rows_left = -1};
        struct scan_message *m;
        uint32_t count;
        assert_fine(scan_batch(p, &bytes, &view, &at, &m, &count, &why));
        assert_int_equal(count, 0);
    }
    scan_plan_unref(p);
    release(&bytes);
    table_def_unref(d);
}

static void meta_columns_come_last_or_first(void **state) {
    struct table_def *d = make_table(ORDERS);
    struct batch_view view;
    struct batch_bytes bytes = store(d, 0, 6, CODEC_NONE, 40, &view);
    const char *columns[] = {"id"};
    for (int first = 0; first < 2; first++) {
        struct scan_request r = {.columns = columns, .column_count = 1, .meta_count = 5, .meta_first = first, .filter = "id IN (2, 5)",
                                 .meta = {SCAN_META_LOG_OFFSET, SCAN_META_COMMIT_TIMESTAMP, SCAN_META_BUCKET, SCAN_META_PARTITION, SCAN_META_CHANGE_TYPE}};
        struct scan_plan *p = plan_of(d, r);
        struct scan_position at = everything();
        at.partition = "EU";
        struct scan_message *m;
        uint32_t count, base = first ? 0 : 1;
        assert_fine(scan_batch(p, &bytes, &view, &at, &m, &count, &why));
        struct arrow_batch got;
        read_message(p, m, &got);
        assert_int_equal(got.row_count, 2);
        static const char *const names[] = {"_log_offset", "_commit_timestamp", "_bucket", "_partition", "_change_type"};
        static const char *const values[] = {"45", "2023-11-14 22:13:20Z", "4", "EU", "insert"};
        char described[64];
        arrow_field_describe(arrow_schema_at(got.schema, base + 1), described, sizeof described);
        assert_string_equal(described, "timestamp[ms, tz=UTC]");
        for (uint32_t i = 0; i < 5; i++) {
            assert_string_equal(arrow_schema_at(got.schema, base + i)->name, names[i]);
            expect_text(&got, base + i, 1, values[i]);
        }
        assert_int_equal(int_at(&got, first ? 5 : 0, 1), 5);
        arrow_batch_deinit(&got);
        scan_messages_free(m, count);
        scan_plan_unref(p);
    }
    release(&bytes);
    table_def_unref(d);
}

static void messages_stay_below_their_size(void **state) {
    struct table_def *d = make_table(ORDERS);
    struct batch_view view;
    struct batch_bytes bytes = store(d, 0, 10000, CODEC_NONE, 0, &view);
    struct scan_plan *p = plan_of(d, (struct scan_request){.all_columns = true, .message_bytes_max = 20000});
    struct scan_position at = everything();
    struct scan_message *m;
    uint32_t count;
    assert_fine(scan_batch(p, &bytes, &view, &at, &m, &count, &why));
    assert_in_range(count, 11, 24); // 220 KB and more of buffers
    int64_t seen = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct arrow_batch got;
        assert_true(m[i].message.size + m[i].body.bytes <= 20000);
        read_message(p, &m[i], &got);
        assert_int_equal(int_at(&got, 0, 0), seen);
        seen += got.row_count;
        assert_int_equal(int_at(&got, 0, got.row_count - 1), seen - 1);
        assert_int_equal(m[i].next, seen);
        arrow_batch_deinit(&got);
    }
    assert_int_equal(seen, 10000);
    scan_messages_free(m, count);
    scan_plan_unref(p);
    // A row larger than a message goes out alone.
    p = plan_of(d, (struct scan_request){.all_columns = true, .message_bytes_max = 8});
    at = (struct scan_position){.from = 0, .until = 3, .rows_left = -1};
    assert_fine(scan_batch(p, &bytes, &view, &at, &m, &count, &why));
    assert_int_equal(count, 3);
    scan_messages_free(m, count);
    scan_plan_unref(p);
    release(&bytes);
    table_def_unref(d);
}

// ---- versions: the same table after ALTER: city dropped, id promoted from INT, note added; ids tell

static struct table_def *json_table(const char *text) {
    struct json *j;
    struct table_def *d;
    struct table_defaults defaults = {.bucket_num = 1};
    assert_fine(json_parse(text, strlen(text), &j, &why));
    assert_fine(table_def_from_json(j, &defaults, &d, &why));
    json_free(j);
    return d;
}

static struct table_def *version_one, *version_two;
static struct table_def *find_version(void *ctx, uint32_t schema_id) {
    assert_ptr_equal(ctx, &version_one);
    return schema_id == 1 ? table_def_ref(version_one) : schema_id == 2 ? table_def_ref(version_two) : NULL;
}

static void old_batches_are_read_through_the_readers_schema(void **state) {
    version_one = json_table("{\"v\":1,\"table\":\"a.b\",\"schema_id\":1,\"columns\":[{\"name\":\"id\",\"type\":\"INT\",\"id\":1},{\"name\":\"city\",\"type\":\"STRING\",\"id\":2},{\"name\":\"x\",\"type\":\"DOUBLE\",\"id\":3}]}");
    version_two = json_table("{\"v\":1,\"table\":\"a.b\",\"schema_id\":2,\"next_column_id\":5,\"columns\":[{\"name\":\"note\",\"type\":\"STRING\",\"id\":4},{\"name\":\"y\",\"type\":\"DOUBLE\",\"id\":3},{\"name\":\"id\",\"type\":\"BIGINT\",\"id\":1}]}");
    struct arrow_builder *b = arrow_builder_new(version_one->arrow);
    for (int i = 0; i < 4; i++) {
        arrow_builder_int(b, 0, i + 10);
        arrow_builder_bytes(b, 1, "Oslo", 4);
        arrow_builder_real(b, 2, i * 1.5);
        arrow_builder_row(b);
    }
    struct arrow_batch rows;
    arrow_builder_finish(b, &rows);
    arrow_builder_free(b);
    struct slice message;
    struct slices parts;
    assert_fine(ipc_encode_batch(&rows, CODEC_NONE, 0, &message, &parts, &why));
    struct slice body = slices_join(&parts);
    slices_deinit(&parts);
    struct batch_header h = {.offset_count = 4, .row_count = 4, .schema_id = 1, .payload = BATCH_PAYLOAD_ARROW};
    struct batch_draft draft;
    struct batch_view view;
    assert_fine(batch_draft_make(&h, slice_empty(), slice_empty(), message, body, &draft, &why));
    assert_fine(batch_decode(&draft.bytes, true, &view, &why));
    struct scan_plan *p = plan_of(version_two, (struct scan_request){.all_columns = true, .filter = "id >= 12", .version = find_version, .version_ctx = &version_one});
    struct scan_position at = everything();
    struct scan_message *m;
    uint32_t count;
    assert_fine(scan_batch(p, &draft.bytes, &view, &at, &m, &count, &why));
    struct arrow_batch got;
    read_message(p, m, &got);
    assert_int_equal(got.row_count, 2);
    assert_int_equal(got.columns[0].null_count, 2); // added
    assert_true(((const double *)got.columns[1].buffers[1].data)[1] == 4.5); // renamed
    assert_int_equal(int_at(&got, 2, 1), 13); // promoted
    arrow_batch_deinit(&got);
    scan_messages_free(m, count);
    view.header.schema_id = 9;
    at = everything();
    assert_code(MINK_CORRUPT, scan_batch(p, &draft.bytes, &view, &at, &m, &count, &why));
    assert_non_null(strstr(why.message, "table a.b has no schema version 9"));
    scan_plan_unref(p);
    batch_draft_deinit(&draft);
    slice_unref(&message);
    slice_unref(&body);
    arrow_batch_deinit(&rows);
    table_def_unref(version_one);
    table_def_unref(version_two);
}

static void wrong_requests_are_refused(void **state) {
    struct table_def *d = make_table("CREATE TABLE a.b (id BIGINT, _bucket INT)");
    struct scan_plan *p;
    const char *columns[] = {"ids"};
    assert_code(MINK_INVALID, scan_plan_make(d, &(struct scan_request){.columns = columns, .column_count = 1}, &p, &why));
    assert_string_equal(why.reason, "COLUMN_NOT_FOUND");
    assert_string_equal(why.message, "table a.b has no column ids");
    assert_string_equal(why.hint, "did you mean id?");
    assert_code(MINK_INVALID, scan_plan_make(d, &(struct scan_request){.all_columns = true, .filter = "id >"}, &p, &why));
    assert_string_equal(why.reason, "BAD_FILTER");
    assert_code(MINK_INVALID, scan_plan_make(d, &(struct scan_request){.all_columns = true, .meta = {SCAN_META_BUCKET}, .meta_count = 1}, &p, &why));
    assert_string_equal(why.message, "table a.b has a column _bucket of its own, so the meta column of that name cannot be added");
    table_def_unref(d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_batch_is_passed_on_without_a_copy),
        cmocka_unit_test(projection_sends_only_the_chosen_columns_in_their_order),
        cmocka_unit_test(what_is_stored_compressed_is_sent_as_the_reader_wants_it),
        cmocka_unit_test(a_filter_gives_exactly_the_rows_that_pass),
        cmocka_unit_test(statistics_spare_decoding),
        cmocka_unit_test(ranges_and_limits_cut_rows),
        cmocka_unit_test(meta_columns_come_last_or_first),
        cmocka_unit_test(messages_stay_below_their_size),
        cmocka_unit_test(old_batches_are_read_through_the_readers_schema),
        cmocka_unit_test(wrong_requests_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
