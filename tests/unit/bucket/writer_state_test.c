// SPDX-License-Identifier: Apache-2.0
#include "unit/arrow/arrow_testing.h"

#include "base/random.h"
#include "bucket/writer_state.h"

static struct error why;

static struct batch_header header(uint64_t writer, uint16_t epoch, uint32_t sequence, uint64_t offset, uint32_t count, int64_t ms) {
    return (struct batch_header){.writer_id = writer, .writer_epoch = epoch, .sequence = sequence, .offset_first = offset, .offset_count = count, .commit_ms = ms};
}

static void fold(struct writer_state *s, uint64_t writer, uint16_t epoch, uint32_t sequence, uint32_t count) {
    struct batch_header h = header(writer, epoch, sequence, s->offset_end, count, 1000 + (int64_t)s->offset_end);
    writer_state_fold(s, &h);
}

static enum mink_code check(struct writer_state *s, uint64_t writer, uint16_t epoch, uint32_t sequence, bool *duplicate, struct writer_batch *original) {
    struct batch_header h = header(writer, epoch, sequence, 0, 1, 0);
    return writer_state_check(s, &h, duplicate, original, &why);
}

static void the_last_five_batches_are_duplicates_and_gaps_are_refused(void **state) {
    struct writer_state s;
    struct writer_batch original;
    bool duplicate;
    writer_state_init(&s, 0);
    assert_code(MINK_CONFLICT, check(&s, 7, 0, 3, &duplicate, &original));
    assert_string_equal(why.reason, "UNKNOWN_WRITER");
    assert_string_equal(why.message, "writer 7 is not known here, or was silent for too long; its batch has sequence 3");
    assert_fine(check(&s, 7, 0, 0, &duplicate, &original));
    assert_false(duplicate);
    for (uint32_t i = 0; i < 8; i++) fold(&s, 7, 0, i, 10); // offsets 0, 10, … 70
    for (uint32_t i = 3; i < 8; i++) {
        assert_fine(check(&s, 7, 0, i, &duplicate, &original));
        assert_true(duplicate);
        assert_int_equal(original.offset_first, i * 10);
        assert_int_equal(original.offset_count, 10);
    }
    assert_code(MINK_CONFLICT, check(&s, 7, 0, 2, &duplicate, &original)); // the sixth last is forgotten
    assert_string_equal(why.reason, "OUT_OF_ORDER_SEQUENCE");
    assert_fine(check(&s, 7, 0, 8, &duplicate, &original));
    assert_false(duplicate);
    assert_code(MINK_CONFLICT, check(&s, 7, 0, 9, &duplicate, &original));
    assert_string_equal(why.message, "writer 7 sent sequence 9, expected 8");
    assert_string_equal(why.expected, "8");
    writer_state_deinit(&s);
}

static void a_newer_epoch_starts_again_and_fences_the_older(void **state) {
    struct writer_state s;
    struct writer_batch original;
    bool duplicate;
    writer_state_init(&s, 0);
    fold(&s, 7, 1, 0, 1);
    fold(&s, 7, 1, 1, 1);
    assert_code(MINK_CONFLICT, check(&s, 7, 2, 2, &duplicate, &original));
    assert_string_equal(why.message, "writer 7 sent sequence 2, expected 0");
    assert_fine(check(&s, 7, 2, 0, &duplicate, &original));
    assert_false(duplicate);
    fold(&s, 7, 2, 0, 1);
    assert_code(MINK_FENCED, check(&s, 7, 1, 2, &duplicate, &original));
    assert_string_equal(why.reason, "WRITER_FENCED");
    assert_string_equal(why.message, "writer 7 has epoch 2 here, the batch came with epoch 1");
    writer_state_deinit(&s);
}

static void sequences_wrap_around(void **state) {
    struct writer_state s;
    struct writer_batch original;
    bool duplicate;
    writer_state_init(&s, 0);
    fold(&s, 7, 0, UINT32_MAX, 1);
    assert_fine(check(&s, 7, 0, 0, &duplicate, &original));
    assert_false(duplicate);
    writer_state_deinit(&s);
}

static bool same(const struct writer_state *a, const struct writer_state *b) {
    struct slice x = writer_state_encode(a), y = writer_state_encode(b);
    bool equal = x.size == y.size && memcmp(x.data, y.data, x.size) == 0;
    slice_unref(&x);
    slice_unref(&y);
    return equal;
}

// Invariant 5: from any snapshot plus the headers behind it comes the same state, bit by bit.
static void a_snapshot_and_replay_give_the_same_state(void **state) {
    enum { COUNT = 400 };
    static struct batch_header log[COUNT];
    uint64_t offset = 0;
    uint32_t next[9] = {0};
    struct random random;
    random_seed(&random, 20261201);
    for (int i = 0; i < COUNT; i++) {
        uint64_t writer = random_below(&random, 9);
        uint32_t count = 1 + (uint32_t)random_below(&random, 5);
        log[i] = header(writer, 0, writer ? next[writer]++ : 0, offset, count, 1000 + i);
        offset += count;
    }
    for (int at = 0; at <= COUNT; at += 23) {
        struct writer_state whole, resumed;
        writer_state_init(&whole, 5); // fewer than there are writers: some are forgotten on the way
        writer_state_init(&resumed, 5);
        for (int i = 0; i < at; i++) writer_state_fold(&whole, &log[i]);
        struct slice snapshot = writer_state_encode(&whole);
        assert_fine(writer_state_decode(&resumed, snapshot, &why));
        assert_true(same(&whole, &resumed));
        for (int i = at; i < COUNT; i++) {
            writer_state_fold(&whole, &log[i]);
            writer_state_fold(&resumed, &log[i]);
        }
        assert_true(same(&whole, &resumed));
        assert_int_equal(whole.count, 5);
        assert_int_equal(whole.offset_end, offset);
        slice_unref(&snapshot);
        writer_state_deinit(&whole);
        writer_state_deinit(&resumed);
    }
}

static void the_least_recently_used_writer_goes(void **state) {
    struct writer_state s;
    struct writer_batch original;
    bool duplicate;
    writer_state_init(&s, 2);
    fold(&s, 30, 0, 0, 1);
    fold(&s, 10, 0, 0, 1);
    fold(&s, 30, 0, 1, 1);
    fold(&s, 20, 0, 0, 1); // 10 was silent longest
    assert_int_equal(s.count, 2);
    assert_code(MINK_CONFLICT, check(&s, 10, 0, 1, &duplicate, &original));
    assert_string_equal(why.reason, "UNKNOWN_WRITER");
    assert_fine(check(&s, 30, 0, 2, &duplicate, &original));
    assert_fine(check(&s, 20, 0, 1, &duplicate, &original));
    writer_state_deinit(&s);
}

static void silent_writers_expire(void **state) {
    struct writer_state s;
    writer_state_init(&s, 0);
    struct batch_header a = header(1, 0, 0, 0, 1, 5000), b = header(2, 0, 0, 1, 1, 6000);
    writer_state_fold(&s, &a);
    writer_state_fold(&s, &b);
    assert_int_equal(writer_state_expire(&s, 6000), 1);
    assert_int_equal(s.count, 1);
    assert_int_equal(s.writers[0].id, 2);
    assert_int_equal(s.offset_end, 2);
    writer_state_deinit(&s);
}

// The layout in writer_state.c, byte by byte.
static void snapshot_bytes_are_as_documented(void **state) {
    struct writer_state s;
    writer_state_init(&s, 0);
    struct batch_header a = header(300, 2, 9, 16, 3, 0x0102030405), b = header(301, 0, 0, 19, 1, 0x0102030406);
    writer_state_fold(&s, &a);
    writer_state_fold(&s, &b);
    struct slice got = writer_state_encode(&s);
    static const uint8_t expected[] = {
        'M', 'W', 'R', 'S', 1, 0, 0, 0, 20, 0, 0, 0, 0, 0, 0, 0, 6, 4, 3, 2, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0,
        0xac, 2, 2, 5, 4, 3, 2, 1, 0, 0, 0, 1, 16, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 3, 0, 0, 0,
        1, 0, 6, 4, 3, 2, 1, 0, 0, 0, 1, 19, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0};
    assert_int_equal(got.size, sizeof expected + 4);
    assert_memory_equal(got.data, expected, sizeof expected);
    slice_unref(&got);
    writer_state_deinit(&s);
}

static void every_flipped_bit_and_every_cut_is_found(void **state) {
    struct writer_state s, out;
    writer_state_init(&s, 0);
    for (uint32_t i = 0; i < 3; i++) fold(&s, i + 1, 0, 0, 1);
    struct slice bytes = writer_state_encode(&s);
    uint8_t *data = (uint8_t *)bytes.data;
    writer_state_init(&out, 0);
    for (size_t bit = 0; bit < bytes.size * 8; bit++) {
        data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_true(writer_state_decode(&out, bytes, &why) != MINK_OK);
        data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (size_t size = 0; size < bytes.size; size++) assert_code(MINK_CORRUPT, writer_state_decode(&out, slice_view(bytes, 0, size), &why));
    data[4] = 2;
    assert_code(MINK_UNSUPPORTED, writer_state_decode(&out, bytes, &why));
    assert_string_equal(why.message, "writer snapshot: version 2; this server reads up to 1");
    writer_state_deinit(&s);
    writer_state_deinit(&out);
    slice_unref(&bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_five_batches_are_duplicates_and_gaps_are_refused),
        cmocka_unit_test(a_newer_epoch_starts_again_and_fences_the_older),
        cmocka_unit_test(sequences_wrap_around),
        cmocka_unit_test(a_snapshot_and_replay_give_the_same_state),
        cmocka_unit_test(the_least_recently_used_writer_goes),
        cmocka_unit_test(silent_writers_expire),
        cmocka_unit_test(snapshot_bytes_are_as_documented),
        cmocka_unit_test(every_flipped_bit_and_every_cut_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
