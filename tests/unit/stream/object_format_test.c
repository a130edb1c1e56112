// SPDX-License-Identifier: Apache-2.0
// The golden files are written by tests/golden/make_objects.py, which knows docs/formats.md and nothing of this code.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/crc32c.h"
#include "base/mem.h"
#include "stream/object_format.h"

#include <stdio.h>
#include <string.h>

static struct slice golden(const char *name) {
    char path[1024];
    const char *here = strstr(__FILE__, "unit/stream/");
    snprintf(path, sizeof path, "%.*sgolden/objects/%s", (int)(here - __FILE__), __FILE__, name);
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("%s is missing", path);
    uint8_t *data;
    struct slice s = slice_new(4096, &data);
    s.size = fread(data, 1, 4096, f);
    fclose(f);
    return s;
}

// The blocks of make_objects.py.
struct sample { struct object_block block; uint32_t seed; };
static const struct sample samples[] = {
    {{.stream = 3, .offset_first = 100, .offset_end = 105, .ts_min = 1700000000000, .ts_max = 1700000000010, .epoch = 2, .batches = 2, .payload_size = 192}, 1},
    {{.stream = 3, .offset_first = 105, .offset_end = 106, .ts_min = 1700000000011, .ts_max = 1700000000011, .epoch = 2, .batches = 1, .payload_size = 65}, 2},
    {{.stream = 1ull << 40, .offset_first = 0, .offset_end = 1 << 20, .ts_min = -5, .ts_max = 1ll << 42, .epoch = 1, .batches = 9, .payload_size = 128}, 3}};

struct golden_object { const char *name; enum object_kind kind; uint64_t creator, subject, seq, acked_end, wal_committed; uint32_t blocks; };
static const struct golden_object objects[] = {
    {"wal_v1.bin", OBJECT_KIND_WAL, 7, 7, 41, 40, 12, 3},
    {"seal_v1.bin", OBJECT_KIND_SEAL, 9, 7, 42, 0, 0, 0},
    {"set_v1.bin", OBJECT_KIND_SET, 7, 5, 0, 0, 0, 3},
    {"stream_v1.bin", OBJECT_KIND_STREAM, 7, 6, 0, 0, 0, 2}};
#define OBJECTS (sizeof objects / sizeof objects[0])

static void sample_payload(const struct sample *s, struct slices *out) { // in two slices, as batches come
    uint8_t bytes[256];
    for (uint32_t i = 0; i < s->block.payload_size; i++) bytes[i] = (uint8_t)(s->seed + 7 * i);
    *out = (struct slices){0};
    slices_take(out, slice_copy(bytes, 64));
    slices_take(out, slice_copy(bytes + 64, s->block.payload_size - 64));
}

static struct object_header header_of(const struct golden_object *g) {
    struct object_header h = {.kind = g->kind, .creator = g->creator, .subject = g->subject, .seq = g->seq, .created_ms = 1700000000123, .acked_end = g->acked_end, .wal_committed = g->wal_committed};
    for (int i = 0; i < 16; i++) {
        h.cluster_id[i] = (uint8_t)(0x10 + i);
        h.content_id[i] = (uint8_t)(0xa0 + i);
    }
    return h;
}

static void what_is_written_is_the_format(void **state) {
    for (size_t g = 0; g < OBJECTS; g++) {
        struct object_writer w;
        struct object_header h = header_of(&objects[g]);
        object_writer_begin(&w, &h);
        for (uint32_t i = 0; i < objects[g].blocks; i++) {
            struct slices payload;
            struct object_block block = samples[i].block;
            sample_payload(&samples[i], &payload);
            block.payload_crc32c = crc32c_slices(0, &payload);
            object_writer_add(&w, &block, &payload, 0, payload.count);
            slices_deinit(&payload); // the writer holds references
        }
        object_writer_finish(&w);
        struct slice expected = golden(objects[g].name), joined = slices_join(&w.body);
        assert_int_equal(joined.size, expected.size);
        assert_memory_equal(joined.data, expected.data, expected.size);
        assert_int_equal(w.crc32c, crc32c(expected.data, expected.size));
        assert_int_equal(w.index_size, 64 * objects[g].blocks);
        slice_unref(&joined);
        slice_unref(&expected);
        object_writer_deinit(&w);
    }
}

// What a reader does: the last bytes, the index, then each block; and the header.
static enum mink_code read_all(struct slice s, struct object_header *h, struct object_block **blocks, uint32_t *count, struct error *e) {
    struct object_footer f;
    *blocks = NULL;
    MINK_TRY(object_footer_decode(slice_view(s, s.size - OBJECT_FOOTER_SIZE, OBJECT_FOOTER_SIZE), &f, e));
    if (f.object_size != s.size) return error_set(e, MINK_CORRUPT, "SIZE", "another size");
    MINK_TRY(object_index_decode(slice_view(s, f.index_position, f.index_size), &f, blocks, e));
    *count = f.block_count;
    MINK_TRY(object_header_decode(slice_view(s, 0, OBJECT_HEADER_SIZE), h, e));
    if (memcmp(h->content_id, f.content_id, 16) != 0 || h->kind != f.kind) return error_set(e, MINK_CORRUPT, "CONTENT", "header and footer differ");
    for (uint32_t i = 0; i < f.block_count; i++) MINK_TRY(object_block_check(slice_view(s, (*blocks)[i].position, object_block_stored_size(&(*blocks)[i])), &(*blocks)[i], e));
    return MINK_OK;
}

static void what_was_written_once_stays_readable(void **state) {
    for (size_t g = 0; g < OBJECTS; g++) {
        struct slice s = golden(objects[g].name);
        struct object_header h, expected = header_of(&objects[g]);
        struct object_block *blocks;
        uint32_t count = 99;
        struct error e;
        if (read_all(s, &h, &blocks, &count, &e) != MINK_OK) fail_msg("%s: %s", objects[g].name, e.message);
        assert_int_equal(h.kind, expected.kind);
        assert_memory_equal(h.cluster_id, expected.cluster_id, 16);
        assert_memory_equal(h.content_id, expected.content_id, 16);
        assert_int_equal(h.creator, expected.creator);
        assert_int_equal(h.subject, expected.subject);
        assert_int_equal(h.seq, expected.seq);
        assert_int_equal(h.created_ms, expected.created_ms);
        assert_int_equal(h.acked_end, expected.acked_end);
        assert_int_equal(h.wal_committed, expected.wal_committed);
        assert_int_equal(count, objects[g].blocks);
        for (uint32_t i = 0; i < count; i++) {
            const struct object_block *b = &samples[i].block;
            assert_int_equal(blocks[i].stream, b->stream);
            assert_int_equal(blocks[i].offset_first, b->offset_first);
            assert_int_equal(blocks[i].offset_end, b->offset_end);
            assert_int_equal(blocks[i].ts_min, b->ts_min);
            assert_int_equal(blocks[i].ts_max, b->ts_max);
            assert_int_equal(blocks[i].epoch, b->epoch);
            assert_int_equal(blocks[i].batches, b->batches);
            assert_int_equal(blocks[i].payload_size, b->payload_size);
        }
        mem_free(blocks);
        slice_unref(&s);
    }
}

static bool is_padding(const struct object_block *blocks, uint32_t count, size_t at) {
    for (uint32_t i = 0; i < count; i++) {
        size_t end = blocks[i].position + object_block_stored_size(&blocks[i]);
        if (at >= end && at < ((end + 7) & ~(size_t)7)) return true;
    }
    return false;
}

static void every_flipped_bit_is_detected(void **state) {
    for (size_t g = 0; g < OBJECTS; g++) {
        struct slice s = golden(objects[g].name);
        struct object_header h;
        struct object_block *blocks, *again;
        uint32_t count = 0, n;
        assert_int_equal(read_all(s, &h, &blocks, &count, NULL), MINK_OK);
        for (size_t bit = 0; bit < s.size * 8; bit++) {
            uint8_t *copy;
            struct slice bad = slice_new(s.size, &copy);
            memcpy(copy, s.data, s.size);
            copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
            struct error e;
            enum mink_code code = read_all(bad, &h, &again, &n, &e);
            if (is_padding(blocks, count, bit / 8)) assert_int_equal(code, MINK_OK); // nobody reads it
            else if (code != MINK_CORRUPT) fail_msg("%s: bit %zu: %s", objects[g].name, bit, mink_code_name(code));
            mem_free(again);
            slice_unref(&bad);
        }
        mem_free(blocks);
        slice_unref(&s);
    }
}

static void a_newer_version_is_refused_by_name(void **state) {
    struct slice s = golden("wal_v1.bin");
    uint8_t *copy;
    struct slice newer = slice_new(s.size, &copy);
    memcpy(copy, s.data, s.size);
    copy[8] = 2;
    uint32_t crc = crc32c(copy, 124);
    memcpy(copy + 124, &crc, 4);
    uint8_t *footer = copy + s.size - OBJECT_FOOTER_SIZE;
    footer[48] = 3;
    crc = crc32c(footer, 56);
    memcpy(footer + 56, &crc, 4);
    struct object_header h;
    struct object_footer f;
    struct error e;
    assert_int_equal(object_header_decode(slice_view(newer, 0, OBJECT_HEADER_SIZE), &h, &e), MINK_UNSUPPORTED);
    assert_string_equal(e.message, "object header: format version 2; this version of Mink reads version 1");
    assert_int_equal(object_footer_decode(slice_view(newer, newer.size - OBJECT_FOOTER_SIZE, OBJECT_FOOTER_SIZE), &f, &e), MINK_UNSUPPORTED);
    assert_string_equal(e.message, "object footer: format version 3; this version of Mink reads version 1");
    slice_unref(&newer);
    slice_unref(&s);
}

// A footer and an index with right checksums whose fields cannot be. change() gets both; the checksums are made right again behind it.
static enum mink_code decode_changed(void (*change)(uint8_t *index, uint8_t *footer), struct error *e) {
    struct slice s = golden("wal_v1.bin");
    uint8_t *copy;
    struct slice bad = slice_new(s.size, &copy);
    memcpy(copy, s.data, s.size);
    uint8_t *footer = copy + s.size - OBJECT_FOOTER_SIZE, *index = footer - 3 * OBJECT_INDEX_ENTRY_SIZE;
    change(index, footer);
    uint32_t crc = crc32c(index, 3 * OBJECT_INDEX_ENTRY_SIZE);
    memcpy(footer + 20, &crc, 4);
    crc = crc32c(footer, 56);
    memcpy(footer + 56, &crc, 4);
    struct object_footer f;
    struct object_block *blocks = NULL;
    enum mink_code code = object_footer_decode(slice_view(bad, bad.size - OBJECT_FOOTER_SIZE, OBJECT_FOOTER_SIZE), &f, e);
    if (code == MINK_OK) code = object_index_decode(slice_view(bad, (size_t)(index - copy), 3 * OBJECT_INDEX_ENTRY_SIZE), &f, &blocks, e);
    mem_free(blocks);
    slice_unref(&bad);
    slice_unref(&s);
    return code;
}

static void set_u64(uint8_t *at, uint64_t v) { memcpy(at, &v, 8); }
static void set_u32(uint8_t *at, uint32_t v) { memcpy(at, &v, 4); }
static void empty_range(uint8_t *index, uint8_t *footer) { set_u64(index + 16, 100); }
static void gap(uint8_t *index, uint8_t *footer) { set_u64(index + 64 + 8, 104); }
static void epoch_falls(uint8_t *index, uint8_t *footer) { set_u32(index + 64 + 48, 1); }
static void streams_unsorted(uint8_t *index, uint8_t *footer) { set_u64(index + 128, 1); }
static void outside(uint8_t *index, uint8_t *footer) { set_u64(index + 128 + 40, 1ull << 40); }
static void before_the_blocks(uint8_t *index, uint8_t *footer) { set_u64(index + 40, 64); }
static void too_large(uint8_t *index, uint8_t *footer) { set_u32(index + 56, OBJECT_PAYLOAD_MAX + 1); }
static void overlapping_end(uint8_t *index, uint8_t *footer) { set_u32(index + 128 + 56, 1 << 20); }
static void positions_fall(uint8_t *index, uint8_t *footer) { memcpy(index + 64 + 40, index + 40, 8); }
static void count_differs(uint8_t *index, uint8_t *footer) { set_u32(footer + 16, 4); }
static void count_overflows(uint8_t *index, uint8_t *footer) { set_u32(footer + 16, UINT32_MAX); set_u64(footer + 8, 64ull * UINT32_MAX); }
static void size_differs(uint8_t *index, uint8_t *footer) { set_u64(footer + 40, 10); }
static void size_wraps(uint8_t *index, uint8_t *footer) { set_u64(footer, UINT64_MAX - 10); }
static void kind_unknown(uint8_t *index, uint8_t *footer) { footer[50] = 9; }
static void nothing(uint8_t *index, uint8_t *footer) {}

static void impossible_fields_are_refused(void **state) {
    static const struct { void (*change)(uint8_t *, uint8_t *); const char *message; } cases[] = {
        {empty_range, "object index: impossible block"},
        {too_large, "object index: impossible block"},
        {gap, "object index: blocks of a stream are not contiguous"},
        {epoch_falls, "object index: blocks of a stream are not contiguous"},
        {streams_unsorted, "object index: not sorted"},
        {positions_fall, "object index: not sorted"},
        {outside, "object index: a block outside the object"},
        {before_the_blocks, "object index: a block outside the object"},
        {overlapping_end, "object index: a block outside the object"},
        {count_differs, "object footer: sizes do not add up"},
        {count_overflows, "object footer: sizes do not add up"},
        {size_differs, "object footer: sizes do not add up"},
        {size_wraps, "object footer: sizes do not add up"},
        {kind_unknown, "object footer: impossible fields"}};
    struct error e;
    assert_int_equal(decode_changed(nothing, &e), MINK_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(decode_changed(cases[i].change, &e), MINK_CORRUPT);
        assert_string_equal(e.message, cases[i].message);
        assert_string_equal(e.reason, "BAD_OBJECT");
    }
}

// hh from python-xxhash: xxh3_64_intdigest(struct.pack("<Q", 7)) >> 56 and so on.
static void keys_are_spread_and_read_back(void **state) {
    static const struct { struct catalog_object_id id; const char *key; } cases[] = {
        {{OBJECT_KIND_WAL, 1, 0}, "wal/2f/0000000001/0000000000"},
        {{OBJECT_KIND_WAL, 7, 41}, "wal/81/0000000007/0000000029"},
        {{OBJECT_KIND_SEAL, (1ull << 40) - 1, (1ull << 40) - 1}, "wal/5a/ffffffffff/ffffffffff"},
        {{OBJECT_KIND_SET, 1, 1}, "obj/6c/0000000001-000001"},
        {{OBJECT_KIND_STREAM, 7, 300}, "obj/9a/0000000007-00012c"},
        {{OBJECT_KIND_SET, (1ull << 40) - 1, (1 << 24) - 1}, "obj/9b/ffffffffff-ffffff"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char key[OBJECT_KEY_TEXT];
        struct catalog_object_id id;
        object_key(cases[i].id, key, sizeof key);
        assert_string_equal(key, cases[i].key);
        assert_true(object_key_parse(key, &id));
        assert_int_equal(id.incarnation, cases[i].id.incarnation);
        assert_int_equal(id.number, cases[i].id.number);
    }
    char prefix[OBJECT_KEY_TEXT], key[OBJECT_KEY_TEXT];
    object_key_wal_prefix(7, prefix, sizeof prefix);
    object_key_wal(7, 1, key, sizeof key);
    assert_memory_equal(key, prefix, strlen(prefix));

    static const char *const foreign[] = {"", "cluster.json", "wal/", "wal/00/0000000007/0000000029", "wal/81/0000000007/000000002", "wal/81/0000000007/0000000029x",
                                          "wal/81/0000000007/000000002G", "obj/9a/0000000007-00012C", "obj/9a/0000000007/00012c", "other/key"};
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        struct catalog_object_id id;
        assert_false(object_key_parse(foreign[i], &id));
    }
}

static void short_pieces_are_refused(void **state) {
    struct slice s = golden("wal_v1.bin");
    struct object_header h;
    struct object_footer f;
    struct object_block *blocks;
    struct error e;
    assert_int_equal(object_header_decode(slice_view(s, 0, 127), &h, &e), MINK_CORRUPT);
    assert_string_equal(e.message, "object header: truncated");
    assert_int_equal(object_footer_decode(slice_view(s, s.size - 63, 63), &f, &e), MINK_CORRUPT);
    assert_int_equal(object_footer_decode(slice_view(s, s.size - 64, 64), &f, &e), MINK_OK);
    assert_int_equal(object_index_decode(slice_view(s, f.index_position, f.index_size - 1), &f, &blocks, &e), MINK_CORRUPT);
    assert_string_equal(e.message, "object index: truncated");
    assert_int_equal(object_index_decode(slice_view(s, f.index_position, f.index_size), &f, &blocks, &e), MINK_OK);
    assert_int_equal(object_block_check(slice_view(s, blocks[0].position, object_block_stored_size(&blocks[0]) - 1), &blocks[0], &e), MINK_CORRUPT);
    assert_string_equal(e.message, "object block: truncated");
    // A whole block, but not the one of the index.
    assert_int_equal(object_block_check(slice_view(s, blocks[0].position, object_block_stored_size(&blocks[0])), &(struct object_block){.stream = 4, .payload_size = 192}, &e), MINK_CORRUPT);
    assert_string_equal(e.message, "object block: another block than the index says");
    mem_free(blocks);
    slice_unref(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_the_format),
        cmocka_unit_test(what_was_written_once_stays_readable),
        cmocka_unit_test(every_flipped_bit_is_detected),
        cmocka_unit_test(a_newer_version_is_refused_by_name),
        cmocka_unit_test(impossible_fields_are_refused),
        cmocka_unit_test(keys_are_spread_and_read_back),
        cmocka_unit_test(short_pieces_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
