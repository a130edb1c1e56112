// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/compress.h"
#include "base/mem.h"
#include "base/random.h"

#include <string.h>

#define TEXT "Mink keeps tables. "
#define REPEATS 40
#define TEXT_SIZE ((sizeof TEXT - 1) * REPEATS)

// What pyarrow 26 makes of TEXT × 40: pyarrow.compress(text, codec="lz4"), codec="zstd".
static const char lz4_of_pyarrow[] = "\x04\x22\x4d\x18\x60\x40\x82\x20\x00\x00\x00\xff\x04\x4d\x69\x6e\x6b\x20\x6b\x65\x65\x70\x73\x20\x74\x61\x62\x6c\x65\x73\x2e\x20\x13\x00\xff"
                                     "\xff\xcf\x50\x6c\x65\x73\x2e\x20\x00\x00\x00\x00";
static const char zstd_of_pyarrow[] = "\x28\xb5\x2f\xfd\x60\xf8\x01\xd5\x00\x00\x98\x4d\x69\x6e\x6b\x20\x6b\x65\x65\x70\x73\x20\x74\x61\x62\x6c\x65\x73\x2e\x20\x01\x00\xc5\x59\x35\xc3";
static const struct { enum codec codec; const char *bytes; size_t size; const char *name; } foreign[] = {
    {CODEC_LZ4_FRAME, lz4_of_pyarrow, sizeof lz4_of_pyarrow - 1, "lz4"}, {CODEC_ZSTD, zstd_of_pyarrow, sizeof zstd_of_pyarrow - 1, "zstd"}};

static void frames_of_pyarrow_are_read(void **state) {
    for (int i = 0; i < 2; i++) {
        char out[TEXT_SIZE + 1];
        struct error e;
        out[TEXT_SIZE] = 77;
        if (decompress_into(foreign[i].codec, foreign[i].bytes, foreign[i].size, out, TEXT_SIZE, &e) != MINK_OK) fail_msg("%s", e.message);
        for (int k = 0; k < REPEATS; k++) assert_memory_equal(out + k * (sizeof TEXT - 1), TEXT, sizeof TEXT - 1);
        assert_int_equal(out[TEXT_SIZE], 77); // not one byte beyond
    }
}

static void what_is_compressed_comes_back(void **state) {
    static const size_t sizes[] = {0, 1, 63, 4096, 100000, 3000000};
    struct random r;
    random_seed(&r, 3);
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (int kind = 0; kind < 2; kind++)
            for (enum codec codec = CODEC_LZ4_FRAME; codec <= CODEC_ZSTD; codec++) {
                size_t size = sizes[s], packed = 0, bound = compress_bound(codec, size);
                uint8_t *in = mem_alloc(size), *out = mem_alloc(bound), *back = mem_alloc(size);
                if (kind == 0) memset(in, 'a', size);
                else random_bytes(&r, in, size); // incompressible: the bound must hold
                struct error e;
                if (compress_into(codec, 0, in, size, out, bound, &packed, &e) != MINK_OK) fail_msg("%s", e.message);
                assert_true(packed <= bound);
                if (kind == 0 && size > 4096) assert_true(packed < size / 50);
                if (decompress_into(codec, out, packed, back, size, &e) != MINK_OK) fail_msg("%s", e.message);
                assert_memory_equal(in, back, size);
                mem_free(in);
                mem_free(out);
                mem_free(back);
            }
}

static void another_size_than_claimed_is_refused(void **state) {
    char out[TEXT_SIZE + 100];
    struct error e;
    for (int i = 0; i < 2; i++) {
        static const int wrong[] = {-(int)TEXT_SIZE, -100, -1, 1, 100};
        for (size_t k = 0; k < sizeof wrong / sizeof wrong[0]; k++) {
            size_t claimed = (size_t)((int)TEXT_SIZE + wrong[k]);
            memset(out, 77, sizeof out);
            assert_int_equal(decompress_into(foreign[i].codec, foreign[i].bytes, foreign[i].size, out, claimed, &e), MINK_INVALID);
            assert_string_equal(e.reason, "BAD_COMPRESSION");
            assert_memory_equal(e.message, foreign[i].name, strlen(foreign[i].name));
            for (size_t at = claimed; at < sizeof out; at++) assert_int_equal(out[at], 77);
        }
    }
}

static void cut_and_trailing_bytes_are_refused(void **state) {
    char out[TEXT_SIZE], in[200];
    for (int i = 0; i < 2; i++) {
        for (size_t size = 0; size < foreign[i].size; size++) {
            char *exact = mem_alloc(size); // so that reading beyond is seen
            memcpy(exact, foreign[i].bytes, size);
            assert_int_equal(decompress_into(foreign[i].codec, exact, size, out, sizeof out, NULL), MINK_INVALID);
            mem_free(exact);
        }
        memcpy(in, foreign[i].bytes, foreign[i].size);
        in[foreign[i].size] = 0;
        assert_int_equal(decompress_into(foreign[i].codec, in, foreign[i].size + 1, out, sizeof out, NULL), MINK_INVALID);
    }
}

static void flipped_bits_do_no_harm(void **state) {
    // Neither frame has a checksum of its content, so some flips give other text; none may crash or write beyond.
    for (int i = 0; i < 2; i++)
        for (size_t bit = 0; bit < foreign[i].size * 8; bit++) {
            char in[100];
            char *out = mem_alloc(TEXT_SIZE);
            memcpy(in, foreign[i].bytes, foreign[i].size);
            in[bit / 8] = (char)(in[bit / 8] ^ 1 << bit % 8);
            enum mink_code code = decompress_into(foreign[i].codec, in, foreign[i].size, out, TEXT_SIZE, NULL);
            assert_true(code == MINK_OK || code == MINK_INVALID);
            if (bit < 32) assert_int_equal(code, MINK_INVALID); // the magic number
            mem_free(out);
        }
}

static void too_little_room_is_an_error(void **state) {
    char out[8];
    size_t size = 0;
    for (enum codec codec = CODEC_LZ4_FRAME; codec <= CODEC_ZSTD; codec++) assert_int_equal(compress_into(codec, 0, TEXT, sizeof TEXT, out, sizeof out, &size, NULL), MINK_INTERNAL);
    assert_int_equal(compress_bound(CODEC_NONE, 5), 5);
    assert_int_equal(compress_into(CODEC_NONE, 0, TEXT, 5, out, sizeof out, &size, NULL), MINK_INTERNAL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_of_pyarrow_are_read),
        cmocka_unit_test(what_is_compressed_comes_back),
        cmocka_unit_test(another_size_than_claimed_is_refused),
        cmocka_unit_test(cut_and_trailing_bytes_are_refused),
        cmocka_unit_test(flipped_bits_do_no_harm),
        cmocka_unit_test(too_little_room_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
