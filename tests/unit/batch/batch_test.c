// SPDX-License-Identifier: Apache-2.0
#include "unit/arrow/arrow_testing.h"

#include "base/crc32c.h"
#include "batch/batch.h"

static struct error why;

#define MESSAGE_SIZE 136
#define BODY_SIZE 192

static struct slice pattern(size_t size, uint8_t seed) {
    uint8_t *data;
    struct slice s = slice_new(size, &data);
    for (size_t i = 0; i < size; i++) data[i] = (uint8_t)(seed + i * 7);
    return s;
}

static struct batch_header fields(void) {
    return (struct batch_header){.offset_count = 3, .row_count = 3, .schema_id = 7, .payload = BATCH_PAYLOAD_ARROW, .writer_id = 0x1122334455667788,
                                 .writer_epoch = 9, .sequence = 41};
}

static struct batch_draft draft(bool with_sections) {
    struct batch_header h = fields();
    struct slice message = pattern(MESSAGE_SIZE, 1), body = pattern(BODY_SIZE, 2), statistics = pattern(13, 3);
    struct batch_draft d;
    struct slice kinds = slice_borrow("\x01\x02\x03", with_sections ? 3 : 0);
    assert_fine(batch_draft_make(&h, kinds, with_sections ? statistics : slice_empty(), message, body, &d, &why));
    slice_unref(&message);
    slice_unref(&body);
    slice_unref(&statistics);
    return d;
}

static struct slice joined(const struct batch_bytes *b) {
    uint8_t *data;
    struct slice s = slice_new(b->head.size + b->body.size, &data);
    memcpy(data, b->head.data, b->head.size);
    if (b->body.size) memcpy(data + b->head.size, b->body.data, b->body.size);
    return s;
}

// The table in batch.h, byte by byte.
static void header_bytes_are_as_documented(void **state) {
    struct batch_draft d = draft(true);
    uint32_t crc;
    batch_stamp(&d, 0x0102030405060708, 0x0a0b0c0d, 1700000000123, &crc);
    struct slice all = joined(&d.bytes);
    static const uint8_t expected_0_12[] = {'M', 'B', 'A', 'T', 1, 1, 0, 0, 0xc0, 1, 0, 0};
    static const uint8_t expected_16_96[] = {8, 7, 6, 5, 4, 3, 2, 1, 0x0d, 0x0c, 0x0b, 0x0a, 0, 0, 0, 0, 0x7b, 0x68, 0xe5, 0xcf, 0x8b, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        3, 0, 0, 0, 3, 0, 0, 0, 7, 0, 0, 0, 9, 0, 0, 0, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 41, 0, 0, 0, 3, 0, 0, 0, 13, 0, 0, 0, MESSAGE_SIZE, 0, 0, 0, BODY_SIZE, 0, 0, 0, 0, 0, 0, 0};
    assert_memory_equal(all.data, expected_0_12, sizeof expected_0_12);
    assert_memory_equal(all.data + 16, expected_16_96, sizeof expected_16_96);
    // 96 + 8 + 16 + 136 = 256, already a multiple of 64.
    assert_int_equal(d.bytes.head.size, 256);
    assert_int_equal(all.size, 448);
    assert_memory_equal(all.data + 96, "\x01\x02\x03\0\0\0\0\0", 8);
    uint32_t stored;
    memcpy(&stored, all.data + 12, 4);
    assert_int_equal(stored, crc32c(all.data + 48, all.size - 48));
    assert_int_equal(crc, crc32c(all.data, all.size));
    slice_unref(&all);
    batch_draft_deinit(&d);
}

static void stamping_changes_only_the_leaders_bytes(void **state) {
    struct batch_draft d = draft(false);
    uint32_t crc;
    struct slice before = joined(&d.bytes);
    batch_stamp(&d, UINT64_MAX, UINT32_MAX, -1, &crc);
    struct slice after = joined(&d.bytes);
    assert_memory_equal(before.data, after.data, 16);
    assert_memory_equal(before.data + 40, after.data + 40, before.size - 40);
    struct batch_view v;
    assert_fine(batch_decode(&(struct batch_bytes){after, slice_empty()}, true, &v, &why));
    assert_true(v.header.offset_first == UINT64_MAX && v.header.leader_epoch == UINT32_MAX && v.header.commit_ms == -1);
    slice_unref(&before);
    slice_unref(&after);
    batch_draft_deinit(&d);
}

static void decode_gives_the_sections_back(void **state) {
    struct batch_draft d = draft(true);
    struct batch_view v;
    struct slice all = joined(&d.bytes), message = pattern(MESSAGE_SIZE, 1), body = pattern(BODY_SIZE, 2);
    struct batch_bytes forms[2] = {d.bytes, {all, slice_empty()}};
    for (int i = 0; i < 2; i++) {
        assert_fine(batch_decode(&forms[i], true, &v, &why));
        assert_int_equal(v.header.writer_id, 0x1122334455667788);
        assert_int_equal(v.header.sequence, 41);
        assert_int_equal(v.header.length, all.size);
        assert_memory_equal(v.row_kinds.data, "\x01\x02\x03", 3);
        assert_int_equal(v.statistics.size, 13);
        assert_memory_equal(v.message.data, message.data, MESSAGE_SIZE);
        assert_memory_equal(v.body.data, body.data, BODY_SIZE);
        assert_int_equal((uintptr_t)v.body.data % 64, 0);
    }
    slice_unref(&message);
    slice_unref(&body);
    slice_unref(&all);
    batch_draft_deinit(&d);
}

static void a_slab_is_the_same_bytes_as_parts(void **state) {
    struct batch_header h = fields();
    struct slice message = pattern(MESSAGE_SIZE, 1), body = pattern(BODY_SIZE - 3, 2), padded = pattern(BODY_SIZE, 2);
    uint8_t *data;
    size_t head_size = batch_head_size(0, 0, MESSAGE_SIZE);
    assert_int_equal(head_size, 256);
    struct slice slab = slice_new(head_size + BODY_SIZE, &data);
    memset(data, 0xee, slab.size);
    memcpy(data + head_size, body.data, body.size);
    struct batch_draft in_place, made;
    assert_fine(batch_draft_in_place(&h, slab, data, message, body.size, &in_place, &why));
    uint8_t *padded_data;
    slice_unref(&padded);
    padded = slice_new(BODY_SIZE, &padded_data);
    memset(padded_data, 0, BODY_SIZE);
    memcpy(padded_data, body.data, body.size);
    assert_fine(batch_draft_make(&h, slice_empty(), slice_empty(), message, padded, &made, &why));
    struct slice a = joined(&in_place.bytes), b = joined(&made.bytes);
    assert_int_equal(a.size, b.size);
    assert_memory_equal(a.data, b.data, a.size);
    assert_ptr_equal(in_place.bytes.head.data, data); // no copy of the body
    assert_ptr_equal(made.bytes.body.data, padded.data);
    slice_unref(&a);
    slice_unref(&b);
    slice_unref(&message);
    slice_unref(&body);
    slice_unref(&padded);
    batch_draft_deinit(&in_place);
    batch_draft_deinit(&made);
}

static void every_flipped_bit_of_the_covered_part_is_found(void **state) {
    struct batch_draft d = draft(true);
    struct slice all = joined(&d.bytes);
    uint8_t *data = (uint8_t *)all.data;
    struct batch_view v;
    for (size_t bit = 12 * 8; bit < all.size * 8; bit++) {
        if (bit >= 16 * 8 && bit < 28 * 8) continue; // the leader's: any value is right
        if (bit >= 32 * 8 && bit < 40 * 8) continue;
        data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_code(MINK_CORRUPT, batch_decode(&(struct batch_bytes){all, slice_empty()}, true, &v, &why));
        data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    data[100] ^= 1;
    assert_code(MINK_CORRUPT, batch_decode(&(struct batch_bytes){all, slice_empty()}, true, &v, &why));
    assert_string_equal(why.reason, "BAD_CHECKSUM");
    data[100] ^= 1;
    data[4] = 2;
    assert_code(MINK_UNSUPPORTED, batch_decode(&(struct batch_bytes){all, slice_empty()}, true, &v, &why));
    assert_string_equal(why.message, "log batch: version 2; this server reads up to 1");
    data[4] = 1;
    for (size_t size = 0; size < all.size; size++)
        assert_code(MINK_CORRUPT, batch_decode(&(struct batch_bytes){slice_view(all, 0, size), slice_empty()}, false, &v, &why));
    slice_unref(&all);
    batch_draft_deinit(&d);
}

static void zero_rows_and_fewer_rows_than_offsets(void **state) {
    struct batch_header h = {.offset_count = 0, .writer_id = 5, .sequence = 1};
    struct batch_draft d;
    struct batch_view v;
    assert_fine(batch_draft_make(&h, slice_empty(), slice_empty(), slice_empty(), slice_empty(), &d, &why));
    assert_int_equal(d.header.length, 128);
    assert_fine(batch_decode(&d.bytes, true, &v, &why));
    assert_true(v.message.size == 0 && v.body.size == 0 && v.header.row_count == 0);
    batch_draft_deinit(&d);
    h.offset_count = 10;
    h.row_count = 11;
    assert_code(MINK_INVALID, batch_draft_make(&h, slice_empty(), slice_empty(), slice_empty(), slice_empty(), &d, &why));
    h.row_count = 2;
    assert_code(MINK_INVALID, batch_draft_make(&h, slice_borrow("\0", 1), slice_empty(), slice_empty(), slice_empty(), &d, &why));
    assert_string_equal(why.message, "1 row kinds for 2 rows");
    struct slice huge = slice_borrow(&h, (size_t)BATCH_SIZE_MAX);
    assert_code(MINK_INVALID, batch_draft_make(&h, slice_empty(), slice_empty(), slice_empty(), huge, &d, &why));
    assert_string_equal(why.reason, "BATCH_TOO_LARGE");
}

static void cursor_cuts_whole_and_split_batches(void **state) {
    struct batch_draft a = draft(true), b = draft(false), c = draft(false);
    struct slice whole_a = joined(&a.bytes), whole_b = joined(&b.bytes);
    uint8_t *data;
    struct slice both = slice_new(whole_a.size + whole_b.size, &data);
    memcpy(data, whole_a.data, whole_a.size);
    memcpy(data + whole_a.size, whole_b.data, whole_b.size);
    struct slices payload = {0};
    slices_take(&payload, both);
    slices_take(&payload, slice_ref(c.bytes.head));
    slices_take(&payload, slice_ref(c.bytes.body));
    slices_take(&payload, slice_ref(whole_a));
    struct batch_cursor cursor;
    struct batch_bytes got;
    struct batch_view v;
    bool end;
    batch_cursor_init(&cursor, &payload);
    static const size_t sizes[] = {448, 448, 448, 448};
    for (int i = 0; i < 4; i++) {
        assert_fine(batch_cursor_next(&cursor, &got, &end, &why));
        assert_false(end);
        assert_int_equal(got.head.size + got.body.size, sizes[i]);
        assert_int_equal(got.body.size != 0, i == 2);
        assert_fine(batch_decode(&got, true, &v, &why));
    }
    assert_fine(batch_cursor_next(&cursor, &got, &end, &why));
    assert_true(end);
    // Cut off inside the last batch.
    payload.items[3].size -= 8;
    batch_cursor_init(&cursor, &payload);
    enum mink_code code = MINK_OK;
    for (int i = 0; i < 4 && code == MINK_OK; i++) code = batch_cursor_next(&cursor, &got, &end, &why);
    assert_int_equal(code, MINK_CORRUPT);
    assert_string_equal(why.message, "log batch: cut off, 440 of 448 bytes are there");
    slices_deinit(&payload);
    slice_unref(&whole_a);
    slice_unref(&whole_b);
    batch_draft_deinit(&a);
    batch_draft_deinit(&b);
    batch_draft_deinit(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(header_bytes_are_as_documented),
        cmocka_unit_test(stamping_changes_only_the_leaders_bytes),
        cmocka_unit_test(decode_gives_the_sections_back),
        cmocka_unit_test(a_slab_is_the_same_bytes_as_parts),
        cmocka_unit_test(every_flipped_bit_of_the_covered_part_is_found),
        cmocka_unit_test(zero_rows_and_fewer_rows_than_offsets),
        cmocka_unit_test(cursor_cuts_whole_and_split_batches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
