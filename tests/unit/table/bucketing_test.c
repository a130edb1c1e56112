// SPDX-License-Identifier: Apache-2.0
#include "table_testing.h"

#include "table/bucketing.h"

#include <stdlib.h>

static void buckets_of(const char *columns, const char *options, const char *rows, uint32_t *out, size_t count) {
    struct error why = {0};
    char *text = mem_printf("CREATE TABLE d.t (%s) WITH (%s)", columns, options);
    struct table_def *d = test_table(text);
    struct arrow_batch b;
    test_batch(d->arrow, rows, &b);
    assert_int_equal(b.row_count, count);
    assert_fine(bucketing_assign(d, &b, out, &why));
    arrow_batch_deinit(&b);
    table_def_unref(d);
    mem_free(text);
}

static void expect(const char *columns, const char *options, const char *rows, uint32_t wanted) {
    uint32_t got;
    buckets_of(columns, options, rows, &got, 1);
    if (got != wanted) fail_msg("%s %s %s: bucket %u, wanted %u", columns, options, rows, got, wanted);
}

static uint32_t standard(const char *text) { return murmur3_x86_32(text, strlen(text), 0); }
static uint32_t kafka(const char *text) { return murmur2_kafka(text, strlen(text)); }

// Kafka's UtilsTest.
static void test_murmur2_is_that_of_kafka(void **state) {
    assert_int_equal((int32_t)kafka("21"), -973932308);
    assert_int_equal((int32_t)kafka("foobar"), -790332482);
    assert_int_equal((int32_t)kafka("a-little-bit-long-string"), -985981536);
    assert_int_equal((int32_t)kafka("a-little-bit-longer-string"), -1486304829);
    assert_int_equal((int32_t)kafka("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8"), -58897971);
    assert_int_equal((int32_t)kafka("abc"), 479470107);
    assert_int_equal((int32_t)kafka("123"), -267702483);
    expect("k STRING", "'table.bucketing' = 'kafka', 'bucket.key' = 'k', 'bucket.num' = '6'", "[[\"foobar\"]]", (uint32_t)(-790332482 & 0x7fffffff) % 6);
    expect("k BYTES", "'table.bucketing' = 'kafka', 'bucket.key' = 'k', 'bucket.num' = '6'", "[[\"3231\"]]", (uint32_t)(-973932308 & 0x7fffffff) % 6);
}

// Iceberg's specification, appendix B.
static void test_murmur3_is_that_of_iceberg(void **state) {
    int64_t v = 34;
    assert_int_equal((int32_t)murmur3_x86_32(&v, 8, 0), 2017239379);
    v = 17486; // 2017-11-16
    assert_int_equal((int32_t)murmur3_x86_32(&v, 8, 0), -653330422);
    assert_int_equal((int32_t)standard("iceberg"), 1210000089);
    assert_int_equal((int32_t)murmur3_x86_32("\0\1\2\3", 4, 0), -188683207);
    assert_int_equal((int32_t)murmur3_x86_32("\x05\x8c", 2, 0), -500754589); // 14.20
}

#define ICEBERG(type, value, hash) expect("k " type, "'table.bucketing' = 'iceberg', 'bucket.key' = 'k', 'bucket.num' = '1000'", "[[" value "]]", (uint32_t)((hash) & 0x7fffffff) % 1000)

static void test_buckets_of_iceberg(void **state) {
    ICEBERG("INT", "34", 2017239379);
    ICEBERG("BIGINT", "34", 2017239379);
    ICEBERG("DECIMAL(9,2)", "\"14.20\"", -500754589);
    ICEBERG("DECIMAL(38,2)", "\"14.20\"", -500754589);
    ICEBERG("DATE", "\"2017-11-16\"", -653330422);
    ICEBERG("TIME(0)", "\"22:31:08\"", -662762989);
    ICEBERG("TIME(9)", "\"22:31:08\"", -662762989);
    ICEBERG("TIMESTAMP(6)", "\"2017-11-16 22:31:08\"", -2047944441);
    ICEBERG("TIMESTAMP(6)", "\"2017-11-16 22:31:08.000001\"", -1207196810);
    ICEBERG("TIMESTAMP(9)", "\"2017-11-16 22:31:08.000001001\"", -1207196810);
    ICEBERG("TIMESTAMP_LTZ(3)", "\"2017-11-16 22:31:08Z\"", -2047944441);
    ICEBERG("STRING", "\"iceberg\"", 1210000089);
    ICEBERG("BINARY(4)", "\"00010203\"", -188683207);
    ICEBERG("BYTES", "\"00010203\"", -188683207);
    // Velox documents bucket(100, 34) = 79.
    expect("k BIGINT", "'table.bucketing' = 'iceberg', 'bucket.key' = 'k', 'bucket.num' = '100'", "[[34]]", 79);
    // Fluss's BucketingFunctionTest.
    expect("k BYTES", "'table.bucketing' = 'iceberg', 'bucket.key' = 'k', 'bucket.num' = '7'", "[[\"000a\"]]", 3);
    expect("k BYTES", "'table.bucketing' = 'iceberg', 'bucket.key' = 'k', 'bucket.num' = '12'", "[[\"000a0a0a\"]]", 4);
    expect("k STRING", "'table.bucketing' = 'iceberg', 'bucket.key' = 'k', 'bucket.num' = '16'", "[[\"2bb87d68-baf9-4e64-90f9-f80910419fa6\"]]", 12);
    expect("k STRING", "'table.bucketing' = 'iceberg', 'bucket.key' = 'k', 'bucket.num' = '8'", "[[\"The quick brown fox jumps over the lazy dog\"]]", 3);
}

// Fluss's BucketingFunctionTest: bytes and buckets. The bytes of keys are what these column types are encoded as: bytes 0 10 are two TINYINTs.
static void test_buckets_of_fluss(void **state) {
#define KEY4 "'bucket.key' = 'a,b,c,d', 'bucket.num' = '12'"
    expect("a TINYINT, b TINYINT", "'bucket.key' = 'a,b', 'bucket.num' = '7'", "[[0,10]]", 1);
    expect("a TINYINT, b TINYINT, c TINYINT, d TINYINT", KEY4, "[[0,10,10,10]]", 0);
    // Varints below 128 are a byte, too, and so are booleans; 2570 is 0a 0a.
    expect("a BOOLEAN, b INT", "'bucket.key' = 'a,b', 'bucket.num' = '7'", "[[false,10]]", 1);
    expect("a BIGINT, b DATE, c SMALLINT", "'bucket.key' = 'a,b,c', 'bucket.num' = '12'", "[[0,\"1970-01-11\",2570]]", 0);
    expect("a INT, b DECIMAL(18,0), c TIMESTAMP(3), d TIME(3)", KEY4, "[[0,\"10\",\"1970-01-01 00:00:00.010\",\"00:00:00.010\"]]", 0);
    expect("a TIMESTAMP_LTZ(9), b SMALLINT", "'bucket.key' = 'a,b', 'bucket.num' = '12'", "[[\"1970-01-01 00:00:00.000000010Z\",2570]]", 0); // 0 ms, 10 ns
}

// What Fluss 0.7.0 itself answers (CompactedKeyEncoder and PaimonKeyEncoder, with the bucketing function of each), 997 buckets.
static void test_buckets_are_those_of_fluss_for_every_type(void **state) {
    static const struct { const char *columns, *row; uint32_t native, paimon; } cases[] = {
        {"a BOOLEAN", "[[true]]", 471, 170},
        {"a TINYINT", "[[-5]]", 819, 263},
        {"a SMALLINT", "[[-300]]", 909, 303},
        {"a INT", "[[1]]", 471, 170},
        {"a INT", "[[300]]", 813, 332},
        {"a INT", "[[-1]]", 375, 561},
        {"a INT", "[[2147483647]]", 587, 453},
        {"a BIGINT", "[[0]]", 555, 897},
        {"a BIGINT", "[[1234567890123]]", 678, 607},
        {"a BIGINT", "[[72057594037927935]]", 410, 44},
        {"a BIGINT", "[[72057594037927936]]", 329, 678},
        {"a BIGINT", "[[9223372036854775807]]", 913, 941},
        {"a BIGINT", "[[-9223372036854775808]]", 632, 212},
        {"a FLOAT", "[[13.25]]", 449, 599},
        {"a DOUBLE", "[[-15.21]]", 638, 110},
        {"a DECIMAL(5,2)", "[[\"-9.09\"]]", 259, 662},
        {"a DECIMAL(20,3)", "[[\"1234567890123.456\"]]", 305, 771},
        {"a DECIMAL(38,0)", "[[\"-170141183460469231731687303715884105\"]]", 815, 780},
        {"a DECIMAL(38,0)", "[[\"128\"]]", 263, 691},
        {"a CHAR(5)", "[[\"abc\"]]", 162, 106},
        {"a STRING", "[[\"\"]]", 555, 212},
        {"a STRING", "[[\"abcdefg\"]]", 401, 968},
        {"a STRING", "[[\"customer größe 17\"]]", 615, 127},
        {"a BYTES", "[[\"80ff00\"]]", 643, 84},
        {"a BINARY(9)", "[[\"0102030405060708ff\"]]", 178, 486},
        {"a DATE", "[[\"2023-10-25\"]]", 71, 597},
        {"a DATE", "[[\"1969-12-31\"]]", 375, 561},
        {"a TIME(3)", "[[\"09:30:00.123\"]]", 927, 45},
        {"a TIMESTAMP(3)", "[[\"2023-10-25 12:01:13.182\"]]", 783, 337},
        {"a TIMESTAMP(6)", "[[\"2023-10-25 12:01:13.182045\"]]", 35, 952},
        {"a TIMESTAMP(9)", "[[\"1969-12-31 23:59:59.999999999\"]]", 874, 124},
        {"a TIMESTAMP_LTZ(0)", "[[\"2023-10-25 12:01:13Z\"]]", 503, 967},
        {"a TIMESTAMP_LTZ(6)", "[[\"2023-10-25 12:01:13.182123Z\"]]", 162, 761}, // paimon: its answer for TIMESTAMP(6); for this type it leaves the milliseconds out, as Paimon does not
        {"a INT, b STRING, c BIGINT", "[[7,\"seven and more\",-7]]", 13, 879},
        {"a STRING, b DECIMAL(30,2), c STRING, d TIMESTAMP(6)", "[[\"a longer text\",\"12345678901234567890.12\",\"x\",\"2023-10-25 12:01:13.182045\"]]", 554, 967}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char key[32] = "a", options[120];
        for (char c = 'b'; c < 'e'; c++) {
            char column[4] = {' ', c, ' '};
            if (strstr(cases[i].columns, column)) snprintf(key + strlen(key), sizeof key - strlen(key), ",%c", c);
        }
        snprintf(options, sizeof options, "'bucket.num' = '997', 'bucket.key' = '%s'", key);
        expect(cases[i].columns, options, cases[i].row, cases[i].native);
        snprintf(options, sizeof options, "'bucket.num' = '997', 'bucket.key' = '%s', 'table.bucketing' = 'paimon'", key);
        expect(cases[i].columns, options, cases[i].row, cases[i].paimon);
    }
}

// Rows with nulls, which Fluss's keys do not have, and each way that a value is kept in a row.
static void test_buckets_of_paimon(void **state) {
    // PaimonBucketingFunction hashes what the row encodes; these hashes are of BinaryRows written out by hand as the format says.
    struct { const char *columns, *key, *row; uint8_t bytes[64]; size_t size; } cases[] = {
        {"k INT", "k", "[[5]]", {0, 0, 0, 0, 0, 0, 0, 0, 5}, 16},
        {"k BIGINT", "k", "[[-2]]", {0, 0, 0, 0, 0, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 16},
        {"k TINYINT", "k", "[[-2]]", {0, 0, 0, 0, 0, 0, 0, 0, 0xfe}, 16},
        {"k STRING", "k", "[[\"abc\"]]", {0, 0, 0, 0, 0, 0, 0, 0, 'a', 'b', 'c', 0, 0, 0, 0, 0x83}, 16},
        {"k STRING", "k", "[[null]]", {0, 1, 0, 0, 0, 0, 0, 0}, 16},
        {"k STRING", "k", "[[\"abcdefgh1\"]]", {0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 16, 0, 0, 0, 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', '1'}, 32},
        {"a BOOLEAN, k DECIMAL(20,0)", "a,k", "[[true,\"-256\"]]", {0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 24, 0, 0, 0, 0xff, 0}, 40},
        {"k DECIMAL(5,2)", "k", "[[\"0.09\"]]", {0, 0, 0, 0, 0, 0, 0, 0, 9}, 16},
        {"k TIMESTAMP(6)", "k", "[[\"1970-01-01 00:00:00.001002\"]]", {0, 0, 0, 0, 0, 0, 0, 0, 0xd0, 7, 0, 0, 16, 0, 0, 0, 1}, 24},
        {"k TIMESTAMP(3)", "k", "[[\"1970-01-01 00:00:00.001\"]]", {0, 0, 0, 0, 0, 0, 0, 0, 1}, 16},
        {"k TIME(6)", "k", "[[\"00:00:01.5\"]]", {0, 0, 0, 0, 0, 0, 0, 0, 0xdc, 5}, 16},
        {"k FLOAT", "k", "[[1.0]]", {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x3f}, 16}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *options = mem_printf("'table.bucketing' = 'paimon', 'bucket.key' = '%s', 'bucket.num' = '97'", cases[i].key);
        int32_t h = (int32_t)murmur3_flink(cases[i].bytes, cases[i].size, 42), remainder = h % 97;
        expect(cases[i].columns, options, cases[i].row, (uint32_t)(remainder < 0 ? -remainder : remainder));
        mem_free(options);
    }
    // And the hash is Paimon's: Fluss's BucketingFunctionTest again.
    static const struct { const char *bytes; size_t size; int32_t buckets, bucket; } hashes[] = {
        {"\0\x0a", 2, 7, 1}, {"\0\x0a\x0a\x0a", 4, 12, 11}, {"2bb87d68-baf9-4e64-90f9-f80910419fa6", 36, 16, 12}, {"The quick brown fox jumps over the lazy dog", 43, 8, 0}};
    for (size_t i = 0; i < 4; i++) assert_int_equal(abs((int32_t)murmur3_flink(hashes[i].bytes, hashes[i].size, 42) % hashes[i].buckets), hashes[i].bucket);
}

// The loops for one column of whole numbers and the way through the buffer are the same function.
static void test_one_column_and_many_agree(void **state) {
    static const char *const how[] = {"native", "paimon", "iceberg"};
    struct error why = {0};
    for (size_t i = 0; i < 3; i++) {
        char *text = mem_printf("CREATE TABLE d.t (a BIGINT, b INT, c DECIMAL(18,0), e TIMESTAMP(6)) WITH ('bucket.key' = 'a', 'table.bucketing' = '%s', 'bucket.num' = '1021')", how[i]);
        struct table_def *d = test_table(text);
        mem_free(text);
        struct arrow_batch b;
        struct arrow_builder *builder = arrow_builder_new(d->arrow);
        uint64_t v = 1;
        for (int row = 0; row < 1000; row++) {
            v = v * 6364136223846793005u + 1442695040888963407u;
            int64_t one = (int64_t)v >> (row % 64);
            if (i == 0) arrow_builder_decimal(builder, 2, one);
            arrow_builder_int(builder, 0, one);
            arrow_builder_int(builder, 1, (int32_t)one);
            arrow_builder_int(builder, 3, one);
            arrow_builder_row(builder);
        }
        arrow_builder_finish(builder, &b);
        uint32_t fast[1000], slow[1000];
        assert_fine(bucketing_assign(d, &b, fast, &why));
        if (i != 2) { // DECIMAL(18,0) and BIGINT are the same bytes to both
            if (i == 1) {
                for (int row = 0; row < 1000; row++) assert_in_range(fast[row], 0, 1020);
            } else {
                d->bucket_key[0] = 2;
                assert_fine(bucketing_assign(d, &b, slow, &why));
                assert_memory_equal(fast, slow, sizeof fast);
            }
        } else { // as are TIMESTAMP(6) and BIGINT to Iceberg
            d->bucket_key[0] = 3;
            assert_fine(bucketing_assign(d, &b, slow, &why));
            assert_memory_equal(fast, slow, sizeof fast);
        }
        arrow_batch_deinit(&b);
        arrow_builder_free(builder);
        table_def_unref(d);
    }
}

// A text is its length and its bytes, which many TINYINTs are, too; these go through the buffer.
static void test_texts_of_any_length(void **state) {
    for (uint32_t size = 0; size < 24; size++) {
        char names[600] = "", key[200] = "", row[400] = "", text[64] = "", options[300];
        uint32_t one, many;
        for (uint32_t i = 0; i <= size; i++) {
            int v = i ? (int)(97 + i * 31 % 26) : (int)size;
            snprintf(names + strlen(names), sizeof names - strlen(names), "%sc%u TINYINT", i ? ", " : "", i);
            snprintf(key + strlen(key), sizeof key - strlen(key), "%sc%u", i ? "," : "", i);
            snprintf(row + strlen(row), sizeof row - strlen(row), "%s%d", i ? "," : "[[", v);
            if (i) text[i - 1] = (char)v;
        }
        snprintf(row + strlen(row), sizeof row - strlen(row), "]]");
        snprintf(options, sizeof options, "'bucket.num' = '997', 'bucket.key' = '%s'", key);
        buckets_of(names, options, row, &many, 1);
        snprintf(row, sizeof row, "[[\"%s\"]]", text);
        buckets_of("s STRING", "'bucket.num' = '997', 'bucket.key' = 's'", row, &one, 1);
        assert_int_equal(one, many);
    }
    // Two bytes of length, and the same text next to nothing.
    char row[300];
    uint32_t one, many;
    memset(row, 'x', sizeof row);
    memcpy(row, "[[\"", 3);
    memcpy(row + 203, "\"]]", 4);
    buckets_of("s STRING", "'bucket.num' = '997', 'bucket.key' = 's'", row, &one, 1);
    buckets_of("s BYTES", "'bucket.num' = '997', 'bucket.key' = 's'", "[[\"" /* 200 times 78 */
               "78787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878"
               "78787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878"
               "\"]]", &many, 1);
    assert_int_equal(one, many);
}

static void test_nulls_have_no_bucket(void **state) {
    struct error why = {0};
    uint32_t out[2];
    struct table_def *d = test_table("CREATE TABLE d.t (k STRING) WITH ('bucket.key' = 'k')");
    struct arrow_batch b;
    test_batch(d->arrow, "[[\"a\"],[null]]", &b);
    assert_refused("NULL_BUCKET_KEY", "row 1: column k of the bucket key is null", bucketing_assign(d, &b, out, &why));
    arrow_batch_deinit(&b);
    table_def_unref(d);
}

static void test_one_bucket_is_bucket_zero(void **state) {
    uint32_t out[3] = {9, 9, 9};
    buckets_of("k STRING", "'bucket.key' = 'k', 'bucket.num' = '1'", "[[\"a\"],[\"\"],[\"c\"]]", out, 3);
    assert_int_equal(out[0] | out[1] | out[2], 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_murmur2_is_that_of_kafka), cmocka_unit_test(test_murmur3_is_that_of_iceberg), cmocka_unit_test(test_buckets_of_iceberg),
                                       cmocka_unit_test(test_buckets_of_fluss), cmocka_unit_test(test_buckets_are_those_of_fluss_for_every_type), cmocka_unit_test(test_buckets_of_paimon), cmocka_unit_test(test_one_column_and_many_agree),
                                       cmocka_unit_test(test_texts_of_any_length), cmocka_unit_test(test_nulls_have_no_bucket), cmocka_unit_test(test_one_bucket_is_bucket_zero)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
