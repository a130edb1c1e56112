// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "net/ticket.h"

#include <string.h>

#define parse(function, text, out, e) function((text), strlen(text), (out), (e))

static void a_ticket_alone_has_the_defaults(void **state) {
    struct ticket t;
    struct error e;
    assert_int_equal(parse(ticket_parse, "{\"table\":\"shop.orders\"}", &t, &e), MINK_OK);
    assert_string_equal(t.table.database, "shop");
    assert_string_equal(t.table.name, "orders");
    assert_string_equal(t.table.suffix, "");
    assert_true(t.all_columns);
    assert_int_equal(t.bucket, -1);
    assert_int_equal(t.limit, -1);
    assert_int_equal(t.from, FROM_EARLIEST);
    assert_int_equal(t.until, UNTIL_NOW);
    assert_int_equal(t.batch_bytes, 3 << 20);
    assert_int_equal(t.heartbeat_ms, 15000);
    assert_int_equal(t.compression, CODEC_NONE);
    ticket_deinit(&t);
}

static void every_field_is_read_and_written_back(void **state) {
    static const char text[] =
        "{\"table\":\"shop.orders$changelog\",\"partition\":\"2026\",\"bucket\":3,\"columns\":[\"id\",\"amount\"],\"filter\":\"amount > 10\",\"limit\":5,"
        "\"from\":\"ts:17\",\"until\":\"never\",\"meta\":[\"_log_offset\"],\"batch_bytes\":65536,\"compression\":\"zstd\",\"heartbeat_ms\":0,"
        "\"snapshot\":true,\"lake\":\"none\",\"evolve\":\"keep\",\"exp\":99}";
    struct ticket t;
    struct error e;
    assert_int_equal(parse(ticket_parse, text, &t, &e), MINK_OK);
    assert_string_equal(t.table.suffix, "changelog");
    assert_string_equal(t.partition, "2026");
    assert_int_equal(t.bucket, 3);
    assert_int_equal(t.column_count, 2);
    assert_string_equal(t.columns[1], "amount");
    assert_string_equal(t.filter, "amount > 10");
    assert_int_equal(t.limit, 5);
    assert_int_equal(t.from, FROM_TIME);
    assert_int_equal(t.from_value, 17);
    assert_int_equal(t.until, UNTIL_NEVER);
    assert_int_equal(t.meta_count, 1);
    assert_int_equal(t.batch_bytes, 65536);
    assert_int_equal(t.compression, CODEC_ZSTD);
    assert_int_equal(t.heartbeat_ms, 0);
    assert_true(t.snapshot && t.evolve_keep);
    assert_int_equal(t.expires_ms, 99);
    struct buffer b;
    buffer_init(&b, 4096);
    ticket_write(&t, &b);
    assert_string_equal(buffer_string(&b), text);
    buffer_deinit(&b);
    ticket_deinit(&t);
}

static void offsets_are_numbers_or_text(void **state) {
    struct ticket t;
    assert_int_equal(parse(ticket_parse, "{\"table\":\"a.b\",\"from\":7,\"until\":\"19\"}", &t, NULL), MINK_OK);
    assert_int_equal(t.from, FROM_OFFSET);
    assert_int_equal(t.from_value, 7);
    assert_int_equal(t.until, UNTIL_OFFSET);
    assert_int_equal(t.until_offset, 19);
    ticket_deinit(&t);
}

static void bad_tickets_say_what_would_be_right(void **state) {
    static const struct {
        const char *text, *reason, *message, *hint;
    } bad[] = {
        {"{\"tabel\":\"a.b\"}", "UNKNOWN_KEY", NULL, "table"},
        {"{}", NULL, NULL, NULL},
        {"[]", "BAD_JSON", "ticket must be a JSON object", NULL},
        {"{\"table\":\"a.b$changelogs\"}", "BAD_NAME", "table a.b has no view $changelogs", "known are $changelog and $binlog"},
        {"{\"table\":\"a.b\",\"compression\":\"zst\"}", "BAD_VALUE", "ticket: compression is \"zst\"", "did you mean \"zstd\"?"},
        {"{\"table\":\"a.b\",\"from\":-1}", "BAD_VALUE", "ticket: from is not an offset", NULL},
        {"{\"table\":\"a.b\",\"from\":\"99999999999999999999\"}", "BAD_VALUE", NULL, NULL},
        {"{\"table\":\"a.b\",\"columns\":[1]}", "BAD_VALUE", "ticket: columns[0] is not a string", NULL},
        {"{\"table\":\"a.b\",\"columns\":\"x\"}", "BAD_VALUE", "ticket: columns must be an array of strings", NULL},
        {"{\"table\":\"a.b\",\"meta\":[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\"]}", "BAD_VALUE", "ticket: meta has 6 entries, at most 5 are taken", NULL},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct ticket t;
        struct error e;
        assert_int_equal(parse(ticket_parse, bad[i].text, &t, &e), MINK_INVALID);
        if (bad[i].reason) assert_string_equal(e.reason, bad[i].reason);
        if (bad[i].message) assert_string_equal(e.message, bad[i].message);
        if (bad[i].hint && strstr(e.hint, bad[i].hint) == NULL && strstr(e.message, bad[i].hint) == NULL)
            fail_msg("%s: %s; %s", bad[i].text, e.message, e.hint);
    }
}

static void put_commands_round_trip(void **state) {
    static const char text[] =
        "{\"table\":\"shop.orders\",\"partition\":\"p\",\"mode\":\"append\",\"bucket\":1,\"writer\":7,\"writer_epoch\":2,\"create_partition\":false}";
    struct put_command p;
    assert_int_equal(parse(put_command_parse, text, &p, NULL), MINK_OK);
    assert_int_equal(p.mode, PUT_APPEND);
    assert_int_equal(p.bucket, 1);
    assert_int_equal(p.writer, 7);
    assert_int_equal(p.writer_epoch, 2);
    assert_false(p.create_partition);
    struct buffer b;
    buffer_init(&b, 4096);
    put_command_write(&p, &b);
    assert_string_equal(buffer_string(&b), text);
    buffer_deinit(&b);
    put_command_deinit(&p);
    assert_int_equal(parse(put_command_parse, "{\"table\":\"a.b\",\"writer\":\"9007199254740993\",\"bucket\":null}", &p, NULL), MINK_OK);
    assert_true(p.writer == 9007199254740993ull && p.bucket == -1 && p.create_partition);
    put_command_deinit(&p);
}

static void sequences_are_whole_numbers(void **state) {
    bool has;
    uint32_t n;
    struct error e;
    static const char most[] = "{\"seq\":4294967295}", over[] = "{\"seq\":4294967296}", none[] = "{}";
    assert_int_equal(put_sequence_parse(most, strlen(most), &has, &n, &e), MINK_OK);
    assert_true(has && n == UINT32_MAX);
    assert_int_equal(put_sequence_parse(none, strlen(none), &has, &n, &e), MINK_OK);
    assert_false(has);
    assert_int_equal(put_sequence_parse(over, strlen(over), &has, &n, &e), MINK_INVALID);
}

static void subscriptions_are_of_one_table(void **state) {
    struct exchange_command x;
    struct error e;
    assert_int_equal(
        parse(exchange_command_parse,
              "{\"subscribe\":[{\"table\":\"a.b\",\"bucket\":0,\"from\":\"latest\"},{\"table\":\"a.b\",\"bucket\":1,\"from\":9}],\"columns\":[\"x\"]}", &x, &e),
        MINK_OK);
    assert_int_equal(x.subscription_count, 2);
    assert_int_equal(x.subscriptions[0].from, FROM_LATEST);
    assert_int_equal(x.subscriptions[1].from_value, 9);
    assert_int_equal(x.shape.column_count, 1);
    exchange_command_deinit(&x);
    assert_int_equal(parse(exchange_command_parse, "{\"subscribe\":[{\"table\":\"a.b\"},{\"table\":\"a.c\"}]}", &x, &e), MINK_INVALID);
    assert_string_equal(e.reason, "SEVERAL_TABLES");
    assert_int_equal(parse(exchange_command_parse, "{\"lookup\":\"a.b\"}", &x, &e), MINK_UNSUPPORTED);
}

static void control_messages_say_one_thing(void **state) {
    struct control c;
    struct error e;
    assert_int_equal(parse(control_parse, "{\"seek\":[{\"bucket\":2,\"offset\":9}],\"id\":4}", &c, &e), MINK_OK);
    assert_int_equal(c.kind, CONTROL_SEEK);
    assert_int_equal(c.targets[0].bucket, 2);
    assert_int_equal(c.targets[0].from_value, 9);
    assert_int_equal(json_int(c.id), 4);
    control_deinit(&c);
    assert_int_equal(parse(control_parse, "{\"pause\":[0,5]}", &c, &e), MINK_OK);
    assert_int_equal(c.target_count, 2);
    assert_int_equal(c.targets[1].bucket, 5);
    control_deinit(&c);
    assert_int_equal(parse(control_parse, "{\"add\":{\"bucket\":1,\"from\":\"earliest\"}}", &c, &e), MINK_OK);
    control_deinit(&c);
    assert_int_equal(parse(control_parse, "{\"credit\":1000}", &c, &e), MINK_OK);
    assert_int_equal(c.credit, 1000);
    control_deinit(&c);
    assert_int_equal(parse(control_parse, "{\"seek\":[3]}", &c, &e), MINK_INVALID);
    assert_int_equal(parse(control_parse, "{\"pause\":[0],\"resume\":[1]}", &c, &e), MINK_INVALID);
    assert_string_equal(e.message, "control message: pause and resume at once; send two messages");
    assert_int_equal(parse(control_parse, "{\"id\":1}", &c, &e), MINK_INVALID);
    assert_string_equal(e.message, "control message without a command");
}

static void paths_have_two_or_three_parts(void **state) {
    struct table_ref ref;
    const char *partition;
    struct error e;
    char *path[] = {(char *)"shop", (char *)"orders", (char *)"2026", (char *)"x"};
    assert_int_equal(table_ref_from_path(path, 2, &ref, &partition, &e), MINK_OK);
    assert_null(partition);
    assert_int_equal(table_ref_from_path(path, 3, &ref, &partition, &e), MINK_OK);
    assert_string_equal(partition, "2026");
    assert_int_equal(table_ref_from_path(path, 1, &ref, &partition, &e), MINK_INVALID);
    assert_string_equal(e.message, "a descriptor's path has 1 parts");
    assert_int_equal(table_ref_from_path(path, 4, &ref, &partition, &e), MINK_INVALID);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ticket_alone_has_the_defaults), cmocka_unit_test(every_field_is_read_and_written_back),
        cmocka_unit_test(offsets_are_numbers_or_text),     cmocka_unit_test(bad_tickets_say_what_would_be_right),
        cmocka_unit_test(put_commands_round_trip),         cmocka_unit_test(sequences_are_whole_numbers),
        cmocka_unit_test(subscriptions_are_of_one_table),  cmocka_unit_test(control_messages_say_one_thing),
        cmocka_unit_test(paths_have_two_or_three_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
