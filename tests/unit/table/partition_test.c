// SPDX-License-Identifier: Apache-2.0
#include "table_testing.h"

#include "table/partition.h"
#include "table/zone.h"

static int64_t ms(int64_t year, uint32_t month, uint32_t day, int64_t hour) { return (days_from_civil(year, month, day) * 24 + hour) * 3600000; }

// ---- days and zones

static void test_days_of_the_calendar(void **state) {
    assert_int_equal(days_from_civil(1970, 1, 1), 0);
    assert_int_equal(days_from_civil(2000, 3, 1), 11017);
    assert_int_equal(days_from_civil(1600, 2, 29), -135081);
    assert_int_equal(days_from_civil(2026, 12, 1), 20788);
    for (int64_t day = -800000; day < 800000; day += 13) {
        int64_t year;
        uint32_t month, d;
        civil_from_days(day, &year, &month, &d);
        assert_int_equal(days_from_civil(year, month, d), day);
    }
}

static void offset(const char *zone, int64_t at_ms, int32_t hours, int32_t minutes) {
    struct error why = {0};
    struct zone *z;
    assert_fine(zone_open(zone, &z, &why));
    int32_t got = zone_offset(z, at_ms / 1000);
    if (got != hours * 3600 + minutes * 60) fail_msg("%s: %d seconds", zone, got);
    zone_free(z);
}

static void test_zones_have_their_offsets(void **state) {
    offset("UTC", ms(2026, 7, 1, 0), 0, 0);
    offset("Z", ms(2026, 7, 1, 0), 0, 0);
    offset("+02:00", 0, 2, 0);
    offset("-0530", 0, -5, -30);
    offset("UTC+8", 0, 8, 0);
    offset("GMT-03:30", 0, -3, -30);
    // Clocks change in Berlin on the last Sundays of March and October at 01:00 UTC.
    offset("Europe/Berlin", ms(2026, 3, 29, 0), 1, 0);
    offset("Europe/Berlin", ms(2026, 3, 29, 1), 2, 0);
    offset("Europe/Berlin", ms(2026, 10, 25, 0), 2, 0);
    offset("Europe/Berlin", ms(2026, 10, 25, 1), 1, 0);
    offset("Europe/Berlin", ms(2090, 7, 1, 0), 2, 0); // by the rule behind the last transition
    offset("Europe/Berlin", ms(1945, 7, 1, 0), 3, 0);
    offset("America/New_York", ms(2026, 1, 1, 0), -5, 0);
    offset("America/New_York", ms(2050, 7, 1, 0), -4, 0);
    offset("Australia/Sydney", ms(2060, 1, 1, 0), 11, 0); // the summer of the south
    offset("Australia/Sydney", ms(2060, 7, 1, 0), 10, 0);
    offset("Asia/Kolkata", ms(2026, 7, 1, 0), 5, 30);
    offset("Asia/Kathmandu", ms(2026, 7, 1, 0), 5, 45);
}

static void test_wrong_zones_are_refused(void **state) {
    static const char *const names[] = {"", "Mars", "+25:00", "+1:5", "++1", "UTC+", "+02:", "../../../etc/passwd", "/etc/passwd", "Europe", "Europe/Berlin/x"};
    struct error why;
    struct zone *z;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) assert_refused("BAD_OPTION", "time zone \"", zone_open(names[i], &z, &why));
    static const uint8_t damaged[60] = "TZif2";
    assert_refused("BAD_OPTION", "its file is damaged or of an unknown kind", zone_parse(damaged, sizeof damaged, "x", &z, &why));
}

// ---- names

static enum mink_code name(const struct table_def *d, const char *a, const char *b, char out[PARTITION_NAME_MAX], struct error *e) {
    const char *values[] = {a, b};
    return partition_name(d, values, b ? 2 : 1, out, e);
}

static void test_names_of_partitions(void **state) {
    struct error why = {0};
    char got[PARTITION_NAME_MAX];
    struct table_def *d = test_table("CREATE TABLE d.t (x INT, region STRING, n INT) PARTITIONED BY (region, n)");
    assert_fine(name(d, "EU", "-7", got, &why));
    assert_string_equal(got, "EU$-7");
    assert_fine(name(d, "EU", "007", got, &why));
    assert_string_equal(got, "EU$7"); // as rows say it
    assert_fine(name(d, "EU", "-2147483648", got, &why));
    assert_refused("BAD_PARTITION", "partition column n: \"2147483648\" is not INT", name(d, "EU", "2147483648", got, &why));
    assert_refused("BAD_PARTITION", "\"-\" is not INT", name(d, "EU", "-", got, &why));
    assert_refused("BAD_PARTITION", "partition column region: partition name \"E U\" may not hold spaces", name(d, "E U", "1", got, &why));
    assert_refused("BAD_PARTITION", "partition name \"a$b\" may not hold $", name(d, "a$b", "1", got, &why));
    assert_refused("BAD_PARTITION", "is empty", name(d, "", "1", got, &why));
    assert_refused("BAD_PARTITION", "d.t has 2 partition columns, 1 values were given", name(d, "EU", NULL, got, &why));
    table_def_unref(d);
    d = test_table("CREATE TABLE d.t (x INT, day DATE, live BOOLEAN) PARTITIONED BY (day, live)");
    assert_fine(name(d, "2024-02-29", "TRUE", got, &why));
    assert_string_equal(got, "2024-02-29$true");
    assert_refused("BAD_PARTITION", "\"2023-02-29\" is not a date like 2026-12-01", name(d, "2023-02-29", "true", got, &why));
    assert_refused("BAD_PARTITION", "\"yes\" is not true or false", name(d, "2024-02-29", "yes", got, &why));
    table_def_unref(d);
    d = test_table("CREATE TABLE d.t (x INT, dt STRING) PARTITIONED BY (dt) WITH ('table.auto-partition.enabled' = 'true', 'table.auto-partition.time-unit' = 'QUARTER')");
    assert_fine(name(d, "20264", NULL, got, &why));
    assert_refused("BAD_PARTITION", "\"20265\" is not a time of the format yyyyQ", name(d, "20265", NULL, got, &why));
    assert_refused("BAD_PARTITION", "\"2026-4\" is not a time of the format yyyyQ", name(d, "2026-4", NULL, got, &why));
    table_def_unref(d);
    d = test_table("CREATE TABLE d.t (x INT, n BIGINT) PARTITIONED BY (n)");
    assert_fine(name(d, "-9223372036854775808", NULL, got, &why));
    assert_string_equal(got, "-9223372036854775808");
    assert_refused("BAD_PARTITION", "is not BIGINT", name(d, "9223372036854775808", NULL, got, &why));
    table_def_unref(d);
}

// ---- groups

static void test_rows_are_grouped_in_order_of_appearance(void **state) {
    struct error why = {0};
    struct table_def *d = test_table("CREATE TABLE d.t (x INT, region STRING, n TINYINT, live BOOLEAN) PARTITIONED BY (region, n, live)");
    struct arrow_batch b;
    uint32_t group[7], count;
    char **names;
    test_batch(d->arrow, "[[1,\"EU\",1,true],[2,\"EU\",1,true],[3,\"US\",1,true],[4,\"EU\",2,true],[5,\"EU\",1,false],[6,\"US\",1,true],[7,\"EU\",1,true]]", &b);
    assert_fine(partition_group(d, &b, group, &names, &count, &why));
    static const uint32_t wanted[] = {0, 0, 1, 2, 3, 1, 0};
    static const char *const wanted_names[] = {"EU$1$true", "US$1$true", "EU$2$true", "EU$1$false"};
    assert_memory_equal(group, wanted, sizeof wanted);
    assert_int_equal(count, 4);
    for (uint32_t i = 0; i < count; i++) {
        assert_string_equal(names[i], wanted_names[i]);
        mem_free(names[i]);
    }
    mem_free(names);
    arrow_batch_deinit(&b);
    test_batch(d->arrow, "[[1,\"EU\",1,true],[2,null,1,true]]", &b);
    assert_refused("BAD_PARTITION", "row 1: partition column region is null", partition_group(d, &b, group, &names, &count, &why));
    arrow_batch_deinit(&b);
    test_batch(d->arrow, "[[1,\"EU\",1,true],[2,\"a b\",1,true]]", &b);
    assert_refused("BAD_PARTITION", "row 1: partition column region: partition name \"a b\" may not hold spaces", partition_group(d, &b, group, &names, &count, &why));
    arrow_batch_deinit(&b);
    test_batch(d->arrow, "[]", &b);
    assert_fine(partition_group(d, &b, group, &names, &count, &why));
    assert_int_equal(count, 0);
    mem_free(names);
    arrow_batch_deinit(&b);
    table_def_unref(d);
}

static void test_dates_are_partitions(void **state) {
    struct error why = {0};
    struct table_def *d = test_table("CREATE TABLE d.t (day DATE) PARTITIONED BY (day)");
    struct arrow_batch b;
    uint32_t group[3], count;
    char **names;
    test_batch(d->arrow, "[[\"2026-12-01\"],[\"1969-12-31\"],[\"2026-12-01\"]]", &b);
    assert_fine(partition_group(d, &b, group, &names, &count, &why));
    assert_int_equal(count, 2);
    assert_string_equal(names[0], "2026-12-01");
    assert_string_equal(names[1], "1969-12-31");
    for (uint32_t i = 0; i < count; i++) mem_free(names[i]);
    mem_free(names);
    arrow_batch_deinit(&b);
    table_def_unref(d);
}

static void test_too_many_partitions_in_a_batch(void **state) {
    struct error why = {0};
    struct table_def *d = test_table("CREATE TABLE d.t (n INT) PARTITIONED BY (n)");
    struct arrow_batch b;
    uint32_t *group = mem_new_array(uint32_t, 5000), count;
    char **names;
    struct arrow_builder *builder = arrow_builder_new(d->arrow);
    for (int i = 0; i < 4096; i++) {
        arrow_builder_int(builder, 0, i);
        arrow_builder_row(builder);
    }
    arrow_builder_finish(builder, &b);
    assert_fine(partition_group(d, &b, group, &names, &count, &why));
    assert_int_equal(count, 4096);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(group[i], i);
        mem_free(names[i]);
    }
    mem_free(names);
    arrow_batch_deinit(&b);
    for (int i = 0; i < 4097; i++) {
        arrow_builder_int(builder, 0, i);
        arrow_builder_row(builder);
    }
    arrow_builder_finish(builder, &b);
    assert_refused("TOO_MANY_PARTITIONS", "a batch for more than 4096 partitions of d.t", partition_group(d, &b, group, &names, &count, &why));
    arrow_batch_deinit(&b);
    arrow_builder_free(builder);
    mem_free(group);
    table_def_unref(d);
}

// ---- automatic partitions

static struct table_def *automatic(const char *unit, const char *more) {
    char *text = mem_printf("CREATE TABLE d.t (x INT, dt STRING) PARTITIONED BY (dt) WITH ('table.auto-partition.enabled' = 'true', 'table.auto-partition.time-unit' = '%s'%s%s)", unit, *more ? ", " : "", more);
    struct table_def *d = test_table(text);
    mem_free(text);
    return d;
}

static void wanted(const char *unit, const char *more, int64_t now, const char *names) {
    struct table_def *d = automatic(unit, more);
    char got[8][PARTITION_NAME_MAX], all[8 * 20] = "";
    uint32_t count = partition_auto_wanted(d, now, got, 8);
    for (uint32_t i = 0; i < count; i++) snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? " " : "", got[i]);
    assert_string_equal(all, names);
    table_def_unref(d);
}

// As Fluss names them, by the examples of its documentation and the formats of the units.
static void test_partitions_are_wanted_from_now_on(void **state) {
    wanted("DAY", "'table.auto-partition.num-precreate' = '3'", ms(2024, 11, 11, 5), "20241111 20241112 20241113");
    wanted("DAY", "", ms(2024, 12, 31, 23), "20241231 20250101");
    wanted("DAY", "'table.auto-partition.time-zone' = 'Asia/Tokyo'", ms(2024, 12, 31, 23), "20250101 20250102");
    wanted("DAY", "'table.auto-partition.time-format' = 'yyyy-MM-dd'", ms(2024, 2, 28, 0), "2024-02-28 2024-02-29");
    wanted("HOUR", "", ms(2024, 12, 31, 23), "2024123123 2025010100");
    wanted("MONTH", "", ms(2024, 12, 31, 23), "202412 202501");
    wanted("QUARTER", "", ms(2024, 12, 31, 23), "20244 20251");
    wanted("YEAR", "", ms(2024, 12, 31, 23), "2024 2025");
    wanted("YEAR", "'table.auto-partition.num-precreate' = '0'", ms(2024, 12, 31, 23), "");
    // In Berlin, 02:00 is left out in March and comes twice in October.
    wanted("HOUR", "'table.auto-partition.time-zone' = 'Europe/Berlin', 'table.auto-partition.num-precreate' = '3'", ms(2026, 3, 29, 0), "2026032901 2026032903 2026032904");
    wanted("HOUR", "'table.auto-partition.time-zone' = 'Europe/Berlin', 'table.auto-partition.num-precreate' = '3'", ms(2026, 10, 25, 0), "2026102502 2026102503");
    struct table_def *d = test_table("CREATE TABLE d.t (x INT, dt STRING, r STRING) PARTITIONED BY (r, dt) WITH ('table.auto-partition.enabled' = 'true', 'table.auto-partition.key' = 'dt')");
    char names[2][PARTITION_NAME_MAX];
    assert_int_equal(partition_auto_wanted(d, ms(2024, 1, 1, 0), names, 2), 0);
    table_def_unref(d);
    d = automatic("DAY", "'table.auto-partition.num-precreate' = '5'");
    assert_int_equal(partition_auto_wanted(d, ms(2024, 1, 1, 0), names, 2), 2); // as many as there is room for
    table_def_unref(d);
}

// The example of Fluss's documentation: at 2024-11-11 with 3 to keep, 20241108 to 20241110 stay.
static void test_old_partitions_expire(void **state) {
    struct table_def *d = automatic("DAY", "'table.auto-partition.num-retention' = '3'");
    int64_t now = ms(2024, 11, 11, 12);
    assert_true(partition_auto_expired(d, "20241107", now));
    assert_false(partition_auto_expired(d, "20241108", now));
    assert_false(partition_auto_expired(d, "20241111", now));
    assert_false(partition_auto_expired(d, "20991231", now));
    assert_false(partition_auto_expired(d, "20240230", now)); // no day, so not ours
    assert_false(partition_auto_expired(d, "other", now));
    assert_false(partition_auto_expired(d, "2024110", now));
    table_def_unref(d);
    d = automatic("DAY", "'table.auto-partition.num-retention' = '-1'");
    assert_false(partition_auto_expired(d, "19700101", now));
    table_def_unref(d);
    d = automatic("MONTH", "'table.auto-partition.num-retention' = '1'");
    assert_true(partition_auto_expired(d, "202409", now));
    assert_false(partition_auto_expired(d, "202410", now));
    table_def_unref(d);
    d = automatic("QUARTER", "'table.auto-partition.num-retention' = '1'");
    assert_true(partition_auto_expired(d, "20242", now));
    assert_false(partition_auto_expired(d, "20243", now));
    table_def_unref(d);
    d = test_table("CREATE TABLE d.t (x INT, dt STRING, r STRING) PARTITIONED BY (r, dt) WITH ('table.auto-partition.enabled' = 'true', 'table.auto-partition.key' = 'dt', 'table.auto-partition.num-retention' = '3')");
    assert_true(partition_auto_expired(d, "EU$20241107", now));
    assert_false(partition_auto_expired(d, "EU$20241108", now));
    assert_false(partition_auto_expired(d, "20241107", now));
    table_def_unref(d);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_days_of_the_calendar), cmocka_unit_test(test_zones_have_their_offsets), cmocka_unit_test(test_wrong_zones_are_refused),
                                       cmocka_unit_test(test_names_of_partitions), cmocka_unit_test(test_rows_are_grouped_in_order_of_appearance), cmocka_unit_test(test_dates_are_partitions),
                                       cmocka_unit_test(test_too_many_partitions_in_a_batch), cmocka_unit_test(test_partitions_are_wanted_from_now_on), cmocka_unit_test(test_old_partitions_expire)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
