// SPDX-License-Identifier: Apache-2.0
// Databases, tables and partitions; queries by name; how much of them a catalog bears.
#include "meta_testing.h"

#include <malloc.h>

static void databases_are_created_and_dropped(void **state) {
    struct testing t;
    testing_init(&t);
    assert_ok(&t, command_create_database("shop", "things", false));
    assert_refused(&t, command_create_database("shop", "", false), MINK_EXISTS, "DATABASE_EXISTS");
    assert_text(&t, "database shop exists already");
    assert_ok(&t, command_create_database("shop", "", true));
    assert_true(t.result.existed);
    assert_refused(&t, command_create_database("", "", false), MINK_INVALID, "BAD_NAME");
    assert_refused(&t, command_drop_database("shopp", false, false), MINK_NOT_FOUND, "DATABASE_NOT_FOUND");
    assert_ok(&t, command_drop_database("shopp", true, false));
    assert_true(t.result.existed);
    assert_ok(&t, create_table("shop.orders", 2, false, false));
    assert_refused(&t, command_drop_database("shop", false, false), MINK_CONFLICT, "DATABASE_NOT_EMPTY");
    assert_text(&t, "database shop holds 1 tables");
    assert_ok(&t, command_create_database("a", "", false));
    char **names;
    uint32_t count;
    catalog_list_databases(t.catalog, &names, &count);
    assert_int_equal(count, 2);
    assert_string_equal(names[0], "a");
    assert_string_equal(names[1], "shop");
    catalog_free_names(names, count);
    assert_ok(&t, command_drop_database("shop", false, true));
    struct catalog_stats stats;
    catalog_stats(t.catalog, &stats);
    assert_int_equal(stats.databases, 1);
    assert_int_equal(stats.tables, 0);
    assert_int_equal(stats.streams, 0);
    assert_replays(&t, 1);
    testing_deinit(&t);
}

static void a_table_gets_a_stream_per_bucket(void **state) {
    struct testing t;
    struct error e;
    struct catalog_table found;
    testing_init(&t);
    assert_refused(&t, create_table("shop.orders", 4, false, false), MINK_NOT_FOUND, "DATABASE_NOT_FOUND");
    assert_string_equal(t.result.error.hint, "create it first: mink db create shop");
    assert_ok(&t, command_create_database("shop", "", false));
    assert_ok(&t, create_table("shop.orders", 4, false, false));
    assert_int_equal(t.result.id, 1);
    uint64_t created = t.seq;
    assert_refused(&t, create_table("shop.orders", 4, false, false), MINK_EXISTS, "TABLE_EXISTS");
    assert_text(&t, "table shop.orders exists already");
    assert_ok(&t, create_table("shop.orders", 9, false, true));
    assert_true(t.result.existed);
    assert_int_equal(t.result.id, 1);
    assert_ok(&t, create_table("shop.items", 2, false, false));
    assert_int_equal(catalog_find_table(t.catalog, "shop", "items", &found, &e), MINK_OK);
    assert_int_equal(found.table_id, 2);
    assert_int_equal(found.stream_base, 5);
    catalog_table_deinit(&found);
    assert_int_equal(catalog_table_by_id(t.catalog, 1, &found, &e), MINK_OK);
    assert_int_equal(found.created_position, created);
    assert_int_equal(found.def->bucket_num, 4);
    assert_string_equal(found.def->columns[1].name, "day");
    for (uint32_t b = 0; b < 4; b++) {
        struct catalog_stream s = stream_of(&t, found.stream_base + b);
        assert_int_equal(s.table_id, 1);
        assert_int_equal(s.bucket, b);
        assert_int_equal(s.partition_id, 0);
        assert_int_equal(s.epoch, 0);
        assert_int_equal(s.owner, 0);
    }
    catalog_table_deinit(&found);
    assert_int_equal(catalog_find_table(t.catalog, "shop", "order", &found, &e), MINK_NOT_FOUND);
    assert_string_equal(e.message, "table shop.order does not exist; did you mean shop.orders?");
    assert_int_equal(catalog_find_table(t.catalog, "shob", "orders", &found, &e), MINK_NOT_FOUND);
    assert_string_equal(e.reason, "DATABASE_NOT_FOUND");
    assert_string_equal(e.message, "database shob does not exist; did you mean shop?");
    assert_int_equal(catalog_table_by_id(t.catalog, 99, &found, &e), MINK_NOT_FOUND);
    assert_string_equal(e.message, "table 99 does not exist any more");
    assert_refused(&t, command_drop_table("shop", "none", false), MINK_NOT_FOUND, "TABLE_NOT_FOUND");
    assert_ok(&t, command_drop_table("shop", "none", true));
    assert_true(t.result.existed);
    assert_ok(&t, command_drop_table("shop", "orders", false));
    assert_int_equal(t.result.id, 1);
    struct catalog_table *list;
    uint32_t count;
    catalog_list_tables(t.catalog, NULL, &list, &count);
    assert_int_equal(count, 1);
    assert_string_equal(list[0].def->name, "items");
    catalog_free_tables(list, count);
    catalog_list_tables(t.catalog, "nowhere", &list, &count);
    assert_int_equal(count, 0);
    catalog_free_tables(list, count);
    // Ids are not used again.
    assert_ok(&t, create_table("shop.orders", 1, false, false));
    assert_int_equal(t.result.id, 3);
    assert_replays(&t, 1);
    testing_deinit(&t);
}

// The server's default is in the definition: another server's does not matter when the log is replayed.
static void the_bucket_default_of_the_proposer_counts(void **state) {
    struct testing t;
    struct error e;
    struct catalog_table found;
    testing_init(&t);
    assert_ok(&t, command_create_database("d", "", false));
    struct table_def *def = make_def("{\"v\":1,\"table\":\"d.t\",\"columns\":[{\"name\":\"id\",\"type\":\"BIGINT\"}]}");
    assert_int_equal(def->bucket_num, 3);
    assert_ok(&t, command_create_table(def, false));
    table_def_unref(def);
    assert_int_equal(catalog_find_table(t.catalog, "d", "t", &found, &e), MINK_OK);
    assert_int_equal(found.def->bucket_num, 3);
    catalog_table_deinit(&found);
    struct catalog_stats stats;
    catalog_stats(t.catalog, &stats);
    assert_int_equal(stats.streams, 3);
    testing_deinit(&t);
}

static void an_alter_is_refused_when_the_table_has_changed(void **state) {
    struct testing t;
    struct error e;
    struct catalog_table base, now;
    struct table_def *first, *second, *wrong;
    testing_init(&t);
    with_streams(&t, 2);
    assert_int_equal(catalog_find_table(t.catalog, "d", "t", &base, &e), MINK_OK);
    struct table_option ttl = {(char *)"table.log.ttl", (char *)"1d"};
    assert_int_equal(table_def_with_options(base.def, &ttl, 1, NULL, 0, &first, &e), MINK_OK);
    assert_int_equal(table_def_with_options(base.def, &ttl, 1, NULL, 0, &second, &e), MINK_OK);
    assert_ok(&t, command_alter_table(&base, first));
    assert_refused(&t, command_alter_table(&base, second), MINK_CONFLICT, "TABLE_CHANGED");
    assert_text(&t, "table d.t has been altered meanwhile");
    assert_int_equal(catalog_find_table(t.catalog, "d", "t", &now, &e), MINK_OK);
    assert_int_equal(now.altered_position, t.seq - 1);
    assert_int_equal(now.created_position, base.created_position);
    assert_int_equal(now.def->log_ttl_ms, 86400000);
    assert_int_equal(now.stream_base, base.stream_base);
    // What rows are laid out by cannot change.
    wrong = make_def("{\"v\":1,\"table\":\"d.t\",\"columns\":[{\"name\":\"id\",\"type\":\"BIGINT\"},{\"name\":\"day\",\"type\":\"STRING\"}],\"options\":{\"bucket.num\":\"5\"}}");
    assert_refused(&t, command_alter_table(&now, wrong), MINK_INVALID, "NOT_CHANGEABLE");
    table_def_unref(wrong);
    wrong = make_def("{\"v\":1,\"table\":\"d.u\",\"columns\":[{\"name\":\"id\",\"type\":\"BIGINT\"},{\"name\":\"day\",\"type\":\"STRING\"}],\"options\":{\"bucket.num\":\"2\"}}");
    assert_refused(&t, command_alter_table(&now, wrong), MINK_INVALID, "NOT_CHANGEABLE");
    table_def_unref(wrong);
    // A new version of the columns follows the last one; old versions stay.
    struct table_def *next = make_def("{\"v\":1,\"table\":\"d.t\",\"schema_id\":2,\"next_column_id\":4,\"columns\":[{\"name\":\"id\",\"type\":\"BIGINT\",\"id\":1},{\"name\":\"day\",\"type\":\"STRING\",\"id\":2},{\"name\":\"more\",\"type\":\"INT\",\"id\":3}],\"options\":{\"bucket.num\":\"2\"}}");
    struct table_def *skipped = make_def("{\"v\":1,\"table\":\"d.t\",\"schema_id\":3,\"next_column_id\":4,\"columns\":[{\"name\":\"id\",\"type\":\"BIGINT\",\"id\":1},{\"name\":\"day\",\"type\":\"STRING\",\"id\":2},{\"name\":\"more\",\"type\":\"INT\",\"id\":3}],\"options\":{\"bucket.num\":\"2\"}}");
    assert_refused(&t, command_alter_table(&now, skipped), MINK_INVALID, "BAD_SCHEMA_ID");
    assert_ok(&t, command_alter_table(&now, next));
    struct table_def *v1 = catalog_table_version(t.catalog, 1, 1), *v2 = catalog_table_version(t.catalog, 1, 2);
    assert_int_equal(v1->column_count, 2);
    assert_int_equal(v2->column_count, 3);
    assert_null(catalog_table_version(t.catalog, 1, 3));
    assert_null(catalog_table_version(t.catalog, 9, 1));
    assert_ok(&t, command_drop_table("d", "t", false));
    assert_refused(&t, command_alter_table(&now, first), MINK_NOT_FOUND, "TABLE_NOT_FOUND");
    table_def_unref(v1);
    table_def_unref(v2);
    table_def_unref(next);
    table_def_unref(skipped);
    table_def_unref(first);
    table_def_unref(second);
    catalog_table_deinit(&base);
    catalog_table_deinit(&now);
    assert_replays(&t, 1);
    testing_deinit(&t);
}

static void partitions_have_streams_of_their_own(void **state) {
    struct testing t;
    struct error e;
    struct catalog_partition p;
    testing_init(&t);
    assert_ok(&t, command_create_database("d", "", false));
    assert_ok(&t, create_table("d.plain", 1, false, false));
    assert_ok(&t, create_table("d.parts", 2, true, false));
    struct catalog_stats stats;
    catalog_stats(t.catalog, &stats);
    assert_int_equal(stats.streams, 1);
    assert_refused(&t, command_create_partition(1, "x", false), MINK_INVALID, "NOT_PARTITIONED");
    assert_text(&t, "table d.plain is not partitioned");
    assert_refused(&t, command_create_partition(9, "x", false), MINK_NOT_FOUND, "TABLE_NOT_FOUND");
    assert_refused(&t, command_create_partition(2, "", false), MINK_INVALID, "BAD_NAME");
    assert_ok(&t, command_create_partition(2, "tuesday", false));
    assert_int_equal(t.result.id, 1);
    assert_ok(&t, command_create_partition(2, "monday", false));
    assert_refused(&t, command_create_partition(2, "monday", false), MINK_EXISTS, "PARTITION_EXISTS");
    assert_text(&t, "partition monday of d.parts exists already");
    assert_ok(&t, command_create_partition(2, "monday", true));
    assert_true(t.result.existed);
    assert_int_equal(t.result.id, 2);
    assert_int_equal(catalog_find_partition(t.catalog, 2, "monday", &p, &e), MINK_OK);
    assert_int_equal(p.stream_base, 4);
    assert_int_equal(p.bucket_count, 2);
    assert_int_equal(stream_of(&t, 5).partition_id, 2);
    assert_int_equal(stream_of(&t, 5).bucket, 1);
    catalog_partition_deinit(&p);
    assert_int_equal(catalog_find_partition(t.catalog, 2, "mondax", &p, &e), MINK_NOT_FOUND);
    assert_string_equal(e.message, "partition mondax of d.parts does not exist; did you mean monday?");
    struct catalog_partition *list;
    uint32_t count;
    catalog_list_partitions(t.catalog, 2, &list, &count);
    assert_int_equal(count, 2);
    assert_string_equal(list[0].name, "monday");
    assert_string_equal(list[1].name, "tuesday");
    catalog_free_partitions(list, count);
    assert_refused(&t, command_drop_partition(2, "friday", false), MINK_NOT_FOUND, "PARTITION_NOT_FOUND");
    assert_ok(&t, command_drop_partition(2, "friday", true));
    assert_ok(&t, command_drop_partition(2, "tuesday", false));
    struct catalog_stream s;
    assert_false(catalog_find_stream(t.catalog, 2, &s));
    assert_false(catalog_find_stream(t.catalog, 3, &s));
    assert_true(catalog_find_stream(t.catalog, 4, &s));
    catalog_stream_deinit(&s);
    assert_ok(&t, command_drop_table("d", "parts", false));
    catalog_stats(t.catalog, &stats);
    assert_int_equal(stats.streams, 1);
    assert_int_equal(stats.partitions, 0);
    assert_replays(&t, 1);
    testing_deinit(&t);
}

// ---- size

static size_t heap_bytes(void) {
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MEASURES_MEMORY false // mallinfo is not that of the allocator in use
#else
#define MEASURES_MEMORY true
#endif

static void ten_thousand_tables_take_less_than_20_kb_each(void **state) {
    struct testing t;
    struct error e;
    struct catalog_table found;
    testing_init(&t);
    assert_ok(&t, command_create_database("d", "", false));
    size_t before = heap_bytes();
    for (uint32_t i = 0; i < 10000; i++) {
        char name[32];
        snprintf(name, sizeof name, "d.t%05u", (i * 7919) % 10000);
        assert_ok(&t, create_table(name, 1, false, false));
    }
    size_t log = 0;
    for (uint32_t i = 0; i < t.log.count; i++) log += t.log.items[i].size;
    if (MEASURES_MEMORY) assert_true((heap_bytes() - before - log) / 10000 < 20000);
    assert_int_equal(catalog_find_table(t.catalog, "d", "t09999", &found, &e), MINK_OK);
    catalog_table_deinit(&found);
    struct catalog_table *list;
    uint32_t count;
    catalog_list_tables(t.catalog, "d", &list, &count);
    assert_int_equal(count, 10000);
    for (uint32_t i = 1; i < count; i++) assert_true(strcmp(list[i - 1].def->name, list[i].def->name) < 0);
    catalog_free_tables(list, count);
    struct slice state_bytes = catalog_save(t.catalog);
    struct catalog *again = catalog_new();
    assert_int_equal(catalog_load(again, state_bytes, &e), MINK_OK);
    struct slice saved = catalog_save(again);
    assert_true(slices_equal(state_bytes, saved));
    slice_unref(&saved);
    slice_unref(&state_bytes);
    catalog_free(again);
    testing_deinit(&t);
}

static void ten_thousand_buckets_take_less_than_1_kb_each(void **state) {
    struct testing t;
    testing_init(&t);
    assert_ok(&t, command_create_database("d", "", false));
    size_t before = heap_bytes();
    assert_ok(&t, create_table("d.t", 10000, false, false));
    if (MEASURES_MEMORY) assert_true((heap_bytes() - before) / 10000 < 300);
    register_one(&t, 1);
    uint64_t ids[10000];
    struct command_range *ranges = mem_new_array(struct command_range, 10000);
    for (uint32_t i = 0; i < 10000; i++) ids[i] = i + 1;
    assert_ok(&t, command_open_streams(1, ids, 10000));
    for (uint32_t k = 0; k < 10; k++) {
        for (uint32_t i = 0; i < 10000; i++) ranges[i] = (struct command_range){i + 1, 1, k * 5, k * 5 + 5};
        assert_ok(&t, commit1(1, k, k + 1, set_id(1, k + 1), ranges, 10000));
    }
    // 4 to 8 bytes an entry, as a takeover of 100,000 of them must stay below 1 MB.
    assert_true(t.log.items[t.log.count - 1].size < 80000);
    // All of it compacts into one object.
    struct catalog_object_id old[10];
    for (uint32_t k = 0; k < 10; k++) old[k] = set_id(1, k + 1);
    for (uint32_t i = 0; i < 10000; i++) ranges[i] = (struct command_range){i + 1, 1, 0, 50};
    struct command_object object = {set_id(1, 11), 1, 1, ranges, 10000};
    assert_ok(&t, command_replace_objects(1, old, 10, &object, 1));
    struct catalog_stats stats;
    catalog_stats(t.catalog, &stats);
    assert_int_equal(stats.ranges, 10000);
    assert_int_equal(stats.streams, 10000);
    assert_ok(&t, command_drop_table("d", "t", false));
    catalog_stats(t.catalog, &stats);
    assert_int_equal(stats.ranges, 0);
    assert_int_equal(stats.streams, 0);
    mem_free(ranges);
    assert_replays(&t, 5);
    testing_deinit(&t);
}

static void twenty_thousand_ranges_of_a_stream_are_found_each(void **state) {
    struct testing t;
    testing_init(&t);
    with_streams(&t, 1);
    register_one(&t, 1);
    assert_ok(&t, command_open_streams(1, (uint64_t[]){1}, 1));
    for (uint64_t i = 0; i < 20000; i++) {
        struct command_range r = {1, 1, i * 10, i * 10 + 10};
        assert_ok(&t, commit1(1, i, i + 1, set_id(1, i + 1), &r, 1));
    }
    struct catalog_range r[2];
    for (uint64_t i = 0; i < 20000; i++) {
        assert_int_equal(catalog_ranges(t.catalog, 1, i * 10 + 9, r, 2), i == 19999 ? 1 : 2);
        assert_int_equal(r[0].from, i * 10);
        assert_int_equal(r[0].object.number, i + 1);
    }
    for (uint64_t i = 1; i <= 200; i++) assert_ok(&t, command_trim_streams((uint64_t[]){1}, (uint64_t[]){i * 999}, 1));
    assert_int_equal(stream_of(&t, 1).start, 199800);
    struct catalog_stats stats;
    catalog_stats(t.catalog, &stats);
    assert_int_equal(stats.ranges, 20);
    assert_replays(&t, 1009);
    testing_deinit(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(databases_are_created_and_dropped),
        cmocka_unit_test(a_table_gets_a_stream_per_bucket),
        cmocka_unit_test(the_bucket_default_of_the_proposer_counts),
        cmocka_unit_test(an_alter_is_refused_when_the_table_has_changed),
        cmocka_unit_test(partitions_have_streams_of_their_own),
        cmocka_unit_test(ten_thousand_tables_take_less_than_20_kb_each),
        cmocka_unit_test(ten_thousand_buckets_take_less_than_1_kb_each),
        cmocka_unit_test(twenty_thousand_ranges_of_a_stream_are_found_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
