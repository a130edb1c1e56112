// SPDX-License-Identifier: Apache-2.0
#include "unit/node/node_testing.h"

#include <inttypes.h>

#define ORDERS "CREATE TABLE shop.orders (id BIGINT, city STRING) WITH ('bucket.num' = '1')"

static struct world w;

static int begin(void **state) {
    world_init(&w);
    world_start(&w);
    return 0;
}
static int end(void **state) {
    world_deinit(&w);
    return 0;
}

static void appended_rows_are_read_in_order(void **state) {
    struct node_table *t = make_table(&w, ORDERS);
    struct append_call c;
    static int64_t ids[1000];
    for (int i = 0; i < 10; i++) {
        assert_fine(append_rows(&w, t, i * 10, 10, &c, &why));
        assert_int_equal(c.range_count, 1);
        assert_int_equal(c.ranges[0].first, i * 10);
        assert_int_equal(c.ranges[0].last, i * 10 + 9);
        assert_false(c.append.duplicate);
    }
    assert_int_equal(scan_all(&w, whole(t), ids, 1000), 100);
    for (int i = 0; i < 100; i++) assert_int_equal(ids[i], i);
    // A batch without rows is acknowledged, and nothing is stored.
    assert_fine(append_rows(&w, t, 0, 0, &c, &why));
    assert_int_equal(c.range_count, 0);
    uint64_t offset;
    assert_fine(find_offset(&w, t, NULL, 0, NODE_FROM_LATEST, 0, &offset, &why));
    assert_int_equal(offset, 100);
    node_table_unref(t);
}

static void what_was_acknowledged_survives_kills_and_restarts(void **state) {
    struct node_table *t = make_table(&w, ORDERS);
    struct append_call c;
    static int64_t ids[1000];
    for (int round = 0; round < 6; round++) {
        assert_fine(append_rows(&w, t, round * 20, 10, &c, &why));
        assert_fine(append_rows(&w, t, round * 20 + 10, 10, &c, &why));
        assert_int_equal(c.ranges[0].first, round * 20 + 10);
        node_table_unref(t);
        world_restart(&w, round % 3 != 2); // two kills, one orderly end, and again
        t = find_table(&w, "orders");
        assert_int_equal(scan_all(&w, whole(t), ids, 1000), (round + 1) * 20); // also before the bucket is open here
        for (int i = 0; i < (round + 1) * 20; i++) assert_int_equal(ids[i], i);
    }
    node_table_unref(t);
}

static void filters_projection_limit_and_ranges_reach_the_scan(void **state) {
    struct node_table *t = make_table(&w, ORDERS);
    struct append_call c;
    static int64_t ids[1000];
    for (int i = 0; i < 5; i++) assert_fine(append_rows(&w, t, i * 10, 10, &c, &why));
    struct scan_request r = {.all_columns = true, .filter = "id >= 37 AND city = 'c1'"};
    struct node_scan_config config = whole(t);
    config.request = &r;
    assert_int_equal(scan_all(&w, config, ids, 1000), 5); // 37 40 43 46 49
    assert_int_equal(ids[0], 37);
    assert_int_equal(ids[4], 49);
    config = whole(t);
    config.limit = 13;
    assert_int_equal(scan_all(&w, config, ids, 1000), 13);
    config = whole(t);
    config.bucket = 0;
    config.from = NODE_FROM_OFFSET;
    config.from_value = 7;
    config.until = NODE_UNTIL_OFFSET;
    config.until_offset = 12;
    assert_int_equal(scan_all(&w, config, ids, 1000), 5);
    assert_int_equal(ids[0], 7);
    assert_int_equal(ids[4], 11);
    config = whole(t);
    config.from = NODE_FROM_LATEST;
    assert_int_equal(scan_all(&w, config, ids, 1000), 0);
    config.from = NODE_FROM_TIME;
    config.from_value = 0;
    assert_int_equal(scan_all(&w, config, ids, 1000), 50);
    config.from_value = INT64_C(1) << 50;
    assert_int_equal(scan_all(&w, config, ids, 1000), 0);
    node_table_unref(t);
}

static void a_follow_gives_what_comes_and_can_be_cancelled(void **state) {
    struct node_table *t = make_table(&w, "CREATE TABLE shop.live (id BIGINT, city STRING) WITH ('bucket.num' = '4')");
    struct append_call c;
    struct node_scan *s;
    struct next_call call;
    static int64_t ids[100];
    uint32_t count = 0;
    struct node_scan_config config = whole(t);
    config.until = NODE_UNTIL_NEVER;
    assert_fine(scan_open(&w, config, &s, &why));
    for (int i = 0; i < 12; i++) {
        scan_start(&w, s, &call); // waits: nothing there
        assert_fine(append_rows(&w, t, i, 1, &c, &why)); // sticky: another bucket each time
        assert_int_equal(c.ranges[0].bucket, i % 4);
        signal_await(&call.done, 1);
        assert_int_equal(call.next.code, MINK_OK);
        assert_false(call.next.end);
        assert_int_equal(call.next.bucket, i % 4);
        assert_int_equal(call.next.next, i / 4 + 1);
        collect(s, &call.next, ids, &count, 100);
        assert_int_equal(count, i + 1);
        assert_int_equal(ids[i], i);
    }
    struct node_scan_position *positions;
    node_scan_positions(s, &positions, &count);
    assert_int_equal(count, 4);
    for (uint32_t i = 0; i < 4; i++) assert_int_equal(positions[i].next, 3);
    mem_free(positions);
    scan_start(&w, s, &call);
    node_scan_cancel(s);
    signal_await(&call.done, 1);
    assert_int_equal(call.next.code, MINK_CANCELLED);
    scan_close(&w, s);
    node_table_unref(t);
}

struct control { struct node_scan *scan; int op; int32_t bucket; uint64_t offset; enum mink_code code; struct error error; };
static void run_control(void *ctx) {
    struct control *k = ctx;
    switch (k->op) {
    case 's': k->code = node_scan_seek(k->scan, NULL, k->bucket, k->offset, &k->error); return;
    case 'p': k->code = node_scan_pause(k->scan, NULL, k->bucket, true, &k->error); return;
    case 'u': k->code = node_scan_pause(k->scan, NULL, k->bucket, false, &k->error); return;
    case 'a': k->code = node_scan_add(k->scan, NULL, k->bucket, NODE_FROM_EARLIEST, 0, &k->error); return;
    case 'r': k->code = node_scan_remove(k->scan, NULL, k->bucket, &k->error); return;
    }
}
static enum mink_code control(struct node_scan *s, int op, int32_t bucket, uint64_t offset, struct error *e) {
    struct control k = {.scan = s, .op = op, .bucket = bucket, .offset = offset};
    shard_call_wait(w.front, run_control, &k);
    error_copy(e, &k.error);
    return k.code;
}

static void a_running_follow_can_be_changed(void **state) {
    struct node_table *t = make_table(&w, "CREATE TABLE shop.subs (id BIGINT, city STRING) WITH ('bucket.num' = '2')");
    struct append_call c;
    struct node_scan *s;
    struct next_call call;
    static int64_t ids[100];
    uint32_t count = 0;
    for (int i = 0; i < 4; i++) assert_fine(append_rows(&w, t, i, 1, &c, &why)); // 0 2 in bucket 0, 1 3 in bucket 1
    struct node_scan_config config = whole(t);
    config.bucket = 0;
    config.until = NODE_UNTIL_NEVER;
    assert_fine(scan_open(&w, config, &s, &why));
    assert_fine(scan_next(&w, s, &call, &why));
    collect(s, &call.next, ids, &count, 100);
    if (count == 1) {
        assert_fine(scan_next(&w, s, &call, &why));
        collect(s, &call.next, ids, &count, 100);
    }
    assert_int_equal(count, 2);
    assert_int_equal(ids[1], 2);
    // A waiting call is answered when the position goes back.
    scan_start(&w, s, &call);
    assert_fine(control(s, 's', 0, 1, &why));
    signal_await(&call.done, 1);
    count = 0;
    collect(s, &call.next, ids, &count, 100);
    assert_int_equal(count, 1);
    assert_int_equal(ids[0], 2);
    assert_code(MINK_OUT_OF_RANGE, control(s, 's', 0, 9, &why));
    assert_string_equal(why.message, "offset 9 of bucket 0 of shop.subs is not kept: the log starts at 0 and ends at 2");
    assert_code(MINK_NOT_FOUND, control(s, 's', 1, 0, &why));
    assert_string_equal(why.message, "bucket 1 of shop.subs is not in this scan");
    // A bucket is added while a call waits.
    scan_start(&w, s, &call);
    assert_fine(control(s, 'a', 1, 0, &why));
    signal_await(&call.done, 1);
    assert_int_equal(call.next.bucket, 1);
    count = 0;
    collect(s, &call.next, ids, &count, 100);
    assert_int_equal(ids[0], 1);
    assert_code(MINK_EXISTS, control(s, 'a', 1, 0, &why));
    if (count == 1) {
        assert_fine(scan_next(&w, s, &call, &why));
        collect(s, &call.next, ids, &count, 100);
    }
    // A paused bucket is silent, and goes on where it stood.
    assert_fine(control(s, 'p', 0, 0, &why));
    scan_start(&w, s, &call);
    assert_fine(append_rows(&w, t, 4, 1, &c, &why));
    assert_int_equal(c.ranges[0].bucket, 0);
    assert_false(signal_raised(&call.done));
    assert_fine(control(s, 'u', 0, 0, &why));
    signal_await(&call.done, 1);
    count = 0;
    collect(s, &call.next, ids, &count, 100);
    assert_int_equal(ids[0], 4);
    // A removed one stays silent.
    assert_fine(control(s, 'r', 1, 0, &why));
    scan_start(&w, s, &call);
    assert_fine(append_rows(&w, t, 5, 1, &c, &why));
    assert_int_equal(c.ranges[0].bucket, 1);
    assert_fine(append_rows(&w, t, 6, 1, &c, &why));
    signal_await(&call.done, 1);
    assert_int_equal(call.next.bucket, 0);
    count = 0;
    collect(s, &call.next, ids, &count, 100);
    assert_int_equal(ids[0], 6);
    scan_close(&w, s);
    node_table_unref(t);
}

static enum mink_code append_sequence(struct node_table *t, uint64_t writer, uint32_t sequence, int64_t first, struct append_call *c, struct error *e) {
    *c = (struct append_call){.append = {.table = t, .bucket = 0, .writer_id = writer, .sequence = sequence, .has_sequence = true}};
    make_rows(t, first, 10, &c->append.batch);
    append_start(&w, c);
    return append_wait(c, e);
}

static void a_batch_sent_twice_is_stored_once_also_after_a_kill(void **state) {
    struct node_table *t = make_table(&w, ORDERS);
    struct node_admin a = {.op = NODE_INIT_WRITER};
    struct append_call c;
    static int64_t ids[1000];
    assert_fine(admin(&w, &a, &why));
    uint64_t writer = a.id;
    assert_true(writer > 0);
    assert_code(MINK_CONFLICT, append_sequence(t, writer, 1, 0, &c, &why));
    assert_string_equal(why.reason, "UNKNOWN_WRITER");
    for (uint32_t i = 0; i < 7; i++) assert_fine(append_sequence(t, writer, i, i * 10, &c, &why));
    for (int round = 0; round < 4; round++) {
        for (uint32_t i = 2; i < 7; i++) {
            assert_fine(append_sequence(t, writer, i, i * 10, &c, &why));
            assert_true(c.append.duplicate);
            assert_int_equal(c.ranges[0].first, i * 10);
            assert_int_equal(c.ranges[0].last, i * 10 + 9);
        }
        assert_code(MINK_CONFLICT, append_sequence(t, writer, 8, 0, &c, &why));
        assert_string_equal(why.reason, "OUT_OF_ORDER_SEQUENCE");
        char text[128];
        snprintf(text, sizeof text, "append shop.orders/0: writer %" PRIu64 " sent sequence 8, expected 7", writer);
        assert_string_equal(why.message, text);
        node_table_unref(t);
        if (round == 1) { // committed: the state comes from the attachment
            struct node_admin flush = {.op = NODE_FLUSH};
            assert_fine(admin(&w, &flush, &why));
        }
        world_restart(&w, round != 2);
        t = find_table(&w, "orders");
    }
    assert_int_equal(scan_all(&w, whole(t), ids, 1000), 70);
    for (int i = 0; i < 70; i++) assert_int_equal(ids[i], i);
    node_table_unref(t);
}

static void a_duplicate_of_a_batch_in_flight_is_answered_with_it(void **state) {
    struct node_table *t = make_table(&w, ORDERS);
    static struct append_call calls[8];
    for (int i = 0; i < 8; i++) {
        calls[i] = (struct append_call){.append = {.table = t, .bucket = 0, .writer_id = 77, .sequence = (uint32_t)i / 2, .has_sequence = true}};
        make_rows(t, i / 2 * 10, 10, &calls[i].append.batch);
        append_start(&w, &calls[i]);
    }
    for (int i = 0; i < 8; i++) {
        assert_fine(append_wait(&calls[i], &why));
        assert_int_equal(calls[i].append.duplicate, i % 2);
        assert_int_equal(calls[i].ranges[0].first, i / 2 * 10);
    }
    node_table_unref(t);
}

// Commits run while batches of several writers are in flight; a kill; the newest batches of each are still known.
static void commits_under_load_keep_the_writers(void **state) {
    enum { WRITERS = 3, EACH = 120 };
    struct node_table *t = make_table(&w, ORDERS);
    static struct append_call calls[WRITERS * EACH];
    static struct admin_call flushes[WRITERS * EACH / 20];
    for (int i = 0; i < WRITERS * EACH; i++) {
        calls[i] = (struct append_call){.append = {.table = t, .bucket = 0, .writer_id = 100 + (uint64_t)(i % WRITERS), .sequence = (uint32_t)(i / WRITERS), .has_sequence = true}};
        make_rows(t, i, 1, &calls[i].append.batch);
        append_start(&w, &calls[i]);
        if (i % 20) continue;
        struct admin_call *f = &flushes[i / 20];
        *f = (struct admin_call){.admin = {.op = NODE_FLUSH, .shard = w.front, .on_done = admin_done}, .done = SIGNAL_INIT};
        node_admin(w.node, &f->admin);
        if (i >= 40) signal_await(&flushes[i / 20 - 2].done, 1);
    }
    for (int i = 0; i < WRITERS * EACH; i++) assert_fine(append_wait(&calls[i], &why));
    for (int i = 0; i < WRITERS * EACH / 20; i++) signal_await(&flushes[i].done, 1);
    node_table_unref(t);
    world_restart(&w, true);
    t = find_table(&w, "orders");
    for (int i = WRITERS * (EACH - 5); i < WRITERS * EACH; i++) {
        struct append_call c = {.append = {.table = t, .bucket = 0, .writer_id = 100 + (uint64_t)(i % WRITERS), .sequence = (uint32_t)(i / WRITERS), .has_sequence = true}};
        make_rows(t, i, 1, &c.append.batch);
        append_start(&w, &c);
        assert_fine(append_wait(&c, &why));
        assert_true(c.append.duplicate);
        assert_int_equal(c.ranges[0].first, calls[i].ranges[0].first);
    }
    static int64_t ids[1000];
    assert_int_equal(scan_all(&w, whole(t), ids, 1000), WRITERS * EACH);
    for (int i = 0; i < WRITERS * EACH; i++) assert_int_equal(ids[i], i);
    node_table_unref(t);
}

static void a_silent_writer_is_forgotten(void **state) {
    world_stop(&w, false);
    w.config.writer_expiry_ms = 20;
    world_start(&w);
    struct node_table *t = make_table(&w, ORDERS);
    struct append_call c;
    struct node_admin flush = {.op = NODE_FLUSH};
    assert_fine(append_sequence(t, 5, 0, 0, &c, &why));
    assert_code(MINK_CONFLICT, append_sequence(t, 5, 9, 0, &c, &why));
    assert_fine(admin(&w, &flush, &why)); // a command wakes the jobs
    while (strcmp(why.reason, "UNKNOWN_WRITER") != 0) assert_code(MINK_CONFLICT, append_sequence(t, 5, 9, 0, &c, &why));
    node_table_unref(t);
}

// A store that refuses everything: nothing is acknowledged, and the node says that it has stopped.
static struct signal fatal = SIGNAL_INIT;
static void on_fatal(void *ctx, const struct error *e) { signal_raise(&fatal); }
static atomic_bool refusing;
static void refuse_answer(struct task *task) {
    struct object_request *r = container_of(task, struct object_request, task);
    slices_deinit(&r->body);
    r->code = error_set(&r->error, MINK_UNAVAILABLE, "STORE_DOWN", "%s: the store is down", r->key);
    r->on_done(r);
}
static void refuse_submit(struct object_store *store, struct object_request *r) {
    if (!atomic_load(&refusing)) {
        w.objects->ops->submit(w.objects, r);
        return;
    }
    r->task.run = refuse_answer;
    shard_post(r->shard, &r->task);
}
static const struct object_store_ops refuse_ops = {refuse_submit, forward_close};

static void a_store_that_stays_down_stops_the_node(void **state) {
    world_stop(&w, false);
    w.config.on_fatal = on_fatal;
    w.config.stream.append_give_up_ms = 50;
    w.ops = &refuse_ops;
    world_start(&w);
    struct node_table *t = make_table(&w, ORDERS);
    struct append_call c;
    assert_fine(append_rows(&w, t, 0, 10, &c, &why));
    atomic_store(&refusing, true);
    enum mink_code code = append_rows(&w, t, 10, 10, &c, &why);
    assert_true(code == MINK_UNKNOWN_OUTCOME || code == MINK_UNAVAILABLE);
    assert_non_null(strstr(why.message, "append shop.orders/0: "));
    signal_await(&fatal, 1);
    assert_false(node_ready(w.node, &why));
    assert_non_null(strstr(why.message, "the node has stopped: "));
    assert_true(append_rows(&w, t, 10, 10, &c, &why) != MINK_OK);
    node_table_unref(t);
    atomic_store(&refusing, false);
    world_restart(&w, true);
    t = find_table(&w, "orders");
    static int64_t ids[100];
    uint32_t count = scan_all(&w, whole(t), ids, 100);
    assert_true(count == 10 || (code == MINK_UNKNOWN_OUTCOME && count == 20));
    node_table_unref(t);
}

static void wrong_writers_are_told(void **state) {
    struct node_table *t = make_table(&w, "CREATE TABLE shop.many (id BIGINT, city STRING) WITH ('bucket.num' = '3')");
    static const struct { int32_t bucket; uint64_t writer; bool has; const char *reason; } cases[] = {
        {-1, 5, true, "SINGLE_BUCKET"}, {0, 0, true, "WRITER_MISSING"}, {0, 5, false, "SEQUENCE_MISSING"}, {3, 0, false, "BUCKET_OUT_OF_RANGE"}};
    for (int i = 0; i < 4; i++) {
        struct append_call c = {.append = {.table = t, .bucket = cases[i].bucket, .writer_id = cases[i].writer, .has_sequence = cases[i].has}};
        make_rows(t, 0, 3, &c.append.batch);
        append_start(&w, &c);
        assert_code(MINK_INVALID, append_wait(&c, &why));
        assert_string_equal(why.reason, cases[i].reason);
    }
    assert_string_equal(why.message, "bucket 3: shop.many has buckets 0 to 2");
    node_table_unref(t);
}

static void rows_go_to_buckets_by_key_and_by_turn(void **state) {
    struct append_call c;
    static int64_t ids[1000], again[1000];
    struct node_table *t = make_table(&w, "CREATE TABLE shop.keyed (id BIGINT, city STRING) WITH ('bucket.num' = '5', 'bucket.key' = 'id')");
    assert_fine(append_rows(&w, t, 0, 200, &c, &why));
    assert_int_equal(c.range_count, 5);
    uint64_t rows = 0;
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(c.ranges[i].bucket, i);
        rows += c.ranges[i].last - c.ranges[i].first + 1;
    }
    assert_int_equal(rows, 200);
    // Equal keys, equal buckets; order within a bucket is the order of rows.
    assert_fine(append_rows(&w, t, 0, 200, &c, &why));
    for (int b = 0; b < 5; b++) {
        struct node_scan_config config = whole(t);
        config.bucket = b;
        uint32_t count = scan_all(&w, config, ids, 1000);
        assert_true(count > 0 && count % 2 == 0);
        for (uint32_t i = 0; i < count / 2; i++) assert_int_equal(ids[i], ids[count / 2 + i]);
        for (uint32_t i = 1; i < count / 2; i++) assert_true(ids[i] > ids[i - 1]);
    }
    assert_int_equal(scan_all(&w, whole(t), again, 1000), 400);
    qsort(again, 400, sizeof *again, compare_ids);
    for (int i = 0; i < 400; i++) assert_int_equal(again[i], i / 2);
    node_table_unref(t);
}

static void every_bucket_of_a_large_table_takes_rows(void **state) {
    struct append_call c;
    static int64_t ids[1000];
    struct node_table *t = make_table(&w, "CREATE TABLE shop.wide (id BIGINT, city STRING) WITH ('bucket.num' = '10000')");
    static struct append_call calls[500];
    for (int i = 0; i < 500; i++) { // many first appends at once
        calls[i] = (struct append_call){.append = {.table = t, .bucket = i * 20}};
        make_rows(t, i, 1, &calls[i].append.batch);
        append_start(&w, &calls[i]);
    }
    for (int i = 0; i < 500; i++) {
        assert_fine(append_wait(&calls[i], &why));
        assert_int_equal(calls[i].ranges[0].bucket, i * 20);
        assert_int_equal(calls[i].ranges[0].first, 0);
    }
    assert_int_equal(scan_all(&w, whole(t), ids, 1000), 500);
    for (int i = 0; i < 500; i++) assert_int_equal(ids[i], i); // bucket after bucket
    assert_fine(append_rows(&w, t, 500, 1, &c, &why));
    node_table_unref(t);
}

// More targets than are counted: 5 partitions of 16,384 buckets.
static void rows_find_their_way_among_many_targets(void **state) {
    struct node_table *t = make_table(&w, "CREATE TABLE shop.vast (id BIGINT, city STRING) PARTITIONED BY (city) WITH ('bucket.num' = '16384', 'bucket.key' = 'id')");
    struct append_call c = {.append = {.table = t, .bucket = -1, .create_partition = true}};
    struct arrow_builder *b = arrow_builder_new(node_table_def(t)->arrow);
    for (int i = 0; i < 40; i++) { // four rows of a key in each partition
        char city[2] = {(char)('a' + i % 5), 0};
        arrow_builder_int(b, 0, i / 20 * 7);
        arrow_builder_bytes(b, 1, city, 1);
        arrow_builder_row(b);
    }
    arrow_builder_finish(b, &c.append.batch);
    arrow_builder_free(b);
    append_start(&w, &c);
    assert_fine(append_wait(&c, &why));
    assert_int_equal(c.range_count, 10); // 5 partitions × 2 keys
    for (int i = 0; i < 10; i++) {
        assert_int_equal(c.ranges[i].last - c.ranges[i].first, 3);
        struct node_scan_config config = whole(t);
        int64_t ids[10];
        config.partition = c.ranges[i].partition;
        config.bucket = (int32_t)c.ranges[i].bucket;
        assert_int_equal(scan_all(&w, config, ids, 10), 4);
        for (int k = 0; k < 4; k++) assert_true(ids[k] == ids[0] && (ids[k] == 0 || ids[k] == 7));
    }
    node_table_unref(t);
}

#define EVENTS "CREATE TABLE shop.events (id BIGINT, city STRING) PARTITIONED BY (city) WITH ('bucket.num' = '2')"

static void partitions_are_created_by_what_is_written(void **state) {
    struct append_call c;
    static int64_t ids[1000];
    struct node_table *t = make_table(&w, EVENTS);
    struct node_scan *s;
    struct next_call call;
    uint32_t count = 0;
    struct node_scan_config config = whole(t);
    config.until = NODE_UNTIL_NEVER;
    assert_fine(scan_open(&w, config, &s, &why));
    scan_start(&w, s, &call); // waits: there is not even a partition
    assert_fine(append_rows(&w, t, 0, 9, &c, &why));
    assert_int_equal(c.range_count, 3);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(c.ranges[i].last - c.ranges[i].first, 2);
    while (count < 9) { // new partitions appear in a follow of all
        signal_await(&call.done, 1);
        assert_int_equal(call.next.code, MINK_OK);
        assert_non_null(call.next.partition);
        collect(s, &call.next, ids, &count, 1000);
        if (count < 9) scan_start(&w, s, &call);
    }
    qsort(ids, 9, sizeof *ids, compare_ids);
    for (int i = 0; i < 9; i++) assert_int_equal(ids[i], i);
    scan_close(&w, s);
    config = whole(t);
    config.partition = "c1";
    assert_int_equal(scan_all(&w, config, ids, 1000), 3);
    assert_int_equal(ids[0], 1);
    assert_int_equal(ids[2], 7);
    struct catalog_partition *partitions;
    node_list_partitions(w.node, t, &partitions, &count);
    assert_int_equal(count, 3);
    catalog_free_partitions(partitions, count);
    // Not when the writer forbids it, and not a row of another partition than named.
    c = (struct append_call){.append = {.table = t, .bucket = -1}};
    struct arrow_builder *b = arrow_builder_new(node_table_def(t)->arrow);
    arrow_builder_int(b, 0, 1);
    arrow_builder_bytes(b, 1, "new", 3);
    arrow_builder_row(b);
    arrow_builder_finish(b, &c.append.batch);
    append_start(&w, &c);
    assert_code(MINK_NOT_FOUND, append_wait(&c, &why));
    assert_string_equal(why.reason, "PARTITION_NOT_FOUND");
    c = (struct append_call){.append = {.table = t, .bucket = -1, .partition = "c0"}};
    arrow_builder_int(b, 0, 1);
    arrow_builder_bytes(b, 1, "c1", 2);
    arrow_builder_row(b);
    arrow_builder_finish(b, &c.append.batch);
    append_start(&w, &c);
    assert_code(MINK_INVALID, append_wait(&c, &why));
    assert_string_equal(why.message, "a row belongs to partition c1 of shop.events, but the batch was sent to partition c0");
    arrow_builder_free(b);
    node_table_unref(t);
}

// Batches of one connection keep their order in each partition, also those that meet partitions in the making.
static void order_is_kept_while_partitions_are_created(void **state) {
    struct node_table *t = make_table(&w, "CREATE TABLE shop.order_kept (id BIGINT, city STRING) PARTITIONED BY (city) WITH ('bucket.num' = '1')");
    enum { COUNT = 60 };
    static struct append_call calls[COUNT];
    static int64_t ids[1000];
    for (int i = 0; i < COUNT; i++) {
        calls[i] = (struct append_call){.append = {.table = t, .bucket = -1, .create_partition = true}};
        make_rows(t, i * 10 + i % 3, i % 7 == 0 ? 3 : 1, &calls[i].append.batch); // some hold three partitions
        append_start(&w, &calls[i]);
    }
    for (int i = 0; i < COUNT; i++) assert_fine(append_wait(&calls[i], &why));
    for (int p = 0; p < 3; p++) {
        struct node_scan_config config = whole(t);
        config.partition = p == 0 ? "c0" : p == 1 ? "c1" : "c2";
        uint32_t count = scan_all(&w, config, ids, 1000);
        assert_true(count > 10);
        for (uint32_t i = 1; i < count; i++) assert_true(ids[i] > ids[i - 1]);
    }
    node_table_unref(t);
}

static void dropped_tables_and_partitions_end_their_readers_and_writers(void **state) {
    struct append_call c;
    struct node_scan *s;
    struct next_call call;
    struct node_table *t = make_table(&w, ORDERS);
    assert_fine(append_rows(&w, t, 0, 5, &c, &why));
    struct node_scan_config config = whole(t);
    config.until = NODE_UNTIL_NEVER;
    config.from = NODE_FROM_LATEST;
    assert_fine(scan_open(&w, config, &s, &why));
    scan_start(&w, s, &call);
    assert_fine(run_ddl(&w, "DROP TABLE shop.orders", &why));
    signal_await(&call.done, 1);
    assert_int_equal(call.next.code, MINK_NOT_FOUND);
    assert_string_equal(call.next.error.message, "table shop.orders was dropped");
    scan_close(&w, s);
    assert_code(MINK_NOT_FOUND, append_rows(&w, t, 0, 5, &c, &why));
    assert_string_equal(why.reason, "TABLE_NOT_FOUND");
    node_table_unref(t);
    // The name may be used again, and begins empty.
    t = make_table(&w, ORDERS);
    int64_t ids[10];
    assert_int_equal(scan_all(&w, whole(t), ids, 10), 0);
    assert_fine(append_rows(&w, t, 50, 5, &c, &why));
    assert_int_equal(c.ranges[0].first, 0);
    node_table_unref(t);
}

static void retention_moves_the_start_of_the_log(void **state) {
    struct append_call c;
    struct node_table *t = make_table(&w, "CREATE TABLE shop.short (id BIGINT, city STRING) WITH ('bucket.num' = '1', 'table.log.ttl' = '100 ms')");
    uint64_t start = 0, at = 0;
    struct node_admin flush = {.op = NODE_FLUSH};
    assert_fine(append_rows(&w, t, 0, 100, &c, &why));
    assert_fine(admin(&w, &flush, &why));
    while (start < 100) assert_fine(find_offset(&w, t, NULL, 0, NODE_FROM_EARLIEST, 0, &start, &why));
    assert_int_equal(start, 100);
    assert_fine(find_offset(&w, t, NULL, 0, NODE_FROM_LATEST, 0, &at, &why));
    assert_int_equal(at, 100);
    struct node_scan *s;
    struct node_scan_config config = whole(t);
    config.from = NODE_FROM_OFFSET;
    config.from_value = 10;
    assert_code(MINK_OUT_OF_RANGE, scan_open(&w, config, &s, &why));
    assert_string_equal(why.message, "offset 10 of bucket 0 of shop.short is not kept: the log starts at 100 and ends at 100");
    assert_fine(append_rows(&w, t, 100, 1, &c, &why));
    assert_int_equal(c.ranges[0].first, 100); // offsets are never used again
    node_table_unref(t);
}

static void automatic_partitions_exist_and_expire(void **state) {
    struct node_table *t = make_table(&w, "CREATE TABLE shop.days (id BIGINT, day STRING) PARTITIONED BY (day) WITH ('bucket.num' = '1', 'table.auto-partition.enabled' = 'true', "
                                          "'table.auto-partition.key' = 'day', 'table.auto-partition.num-precreate' = '3', 'table.auto-partition.num-retention' = '2')");
    struct catalog_partition *partitions;
    uint32_t count;
    node_list_partitions(w.node, t, &partitions, &count); // when CREATE TABLE is answered they are there
    assert_int_equal(count, 3);
    assert_int_equal(strlen(partitions[0].name), 8);
    catalog_free_partitions(partitions, count);
    struct append_call c = {.append = {.table = t, .bucket = -1, .create_partition = true}};
    struct arrow_builder *b = arrow_builder_new(node_table_def(t)->arrow);
    arrow_builder_int(b, 0, 1);
    arrow_builder_bytes(b, 1, "20010203", 8);
    arrow_builder_row(b);
    arrow_builder_finish(b, &c.append.batch);
    arrow_builder_free(b);
    append_start(&w, &c);
    assert_code(MINK_INVALID, append_wait(&c, &why));
    assert_string_equal(why.reason, "PARTITION_EXPIRED");
    struct node_admin old = {.op = NODE_CREATE_PARTITION, .database = "shop", .table = "days", .partition = "20010203"};
    assert_fine(admin(&w, &old, &why));
    struct node_admin same = old;
    assert_code(MINK_EXISTS, admin(&w, &same, &why));
    struct node_admin wrong = {.op = NODE_CREATE_PARTITION, .database = "shop", .table = "days", .partition = "a$b"};
    assert_code(MINK_INVALID, admin(&w, &wrong, &why));
    assert_string_equal(why.message, "shop.days has 1 partition columns, \"a$b\" gives another number of values");
    // An ALTER wakes the job, which finds it too old.
    assert_fine(run_ddl(&w, "ALTER TABLE shop.days SET ('table.auto-partition.num-precreate' = '4')", &why));
    do {
        node_list_partitions(w.node, t, &partitions, &count);
        bool there = count > 0 && strcmp(partitions[0].name, "20010203") == 0;
        catalog_free_partitions(partitions, count);
        if (!there && count == 4) break;
    } while (true);
    node_table_unref(t);
}

static void tables_with_primary_keys_are_refused(void **state) {
    struct node_admin a = {.op = NODE_CREATE_DATABASE, .database = "shop", .if_not_exists = true};
    assert_fine(admin(&w, &a, &why));
    assert_code(MINK_UNSUPPORTED, run_ddl(&w, "CREATE TABLE shop.pk (id BIGINT, PRIMARY KEY (id))", &why));
    assert_string_equal(why.reason, "PRIMARY_KEY_TABLES");
    assert_string_equal(why.message, "primary-key tables are not served yet");
}

static void a_damaged_object_is_named_not_guessed(void **state) {
    struct node_table *t = make_table(&w, ORDERS);
    struct append_call c;
    struct node_admin flush = {.op = NODE_FLUSH};
    assert_fine(append_rows(&w, t, 0, 1000, &c, &why));
    assert_fine(admin(&w, &flush, &why));
    node_table_unref(t);
    world_stop(&w, false);
    world_start(&w); // caches are empty
    t = find_table(&w, "orders");
    struct { char key[512]; struct slice data; } found = {0};
    extern bool pick_object(void *ctx, const char *key, struct slice data);
    object_memory_visit(w.objects, pick_object, &found);
    assert_true(found.data.size > 1000);
    uint8_t *copy = mem_alloc(found.data.size);
    memcpy(copy, found.data.data, found.data.size);
    copy[500] ^= 4;
    object_memory_poke(w.objects, found.key, slice_borrow(copy, found.data.size));
    struct node_scan *s;
    struct next_call call;
    assert_fine(scan_open(&w, whole(t), &s, &why));
    assert_code(MINK_CORRUPT, scan_next(&w, s, &call, &why));
    assert_non_null(strstr(why.message, "read bucket 0 of shop.orders: "));
    scan_close(&w, s);
    mem_free(copy);
    slice_unref(&found.data);
    node_table_unref(t);
}

bool pick_object(void *ctx, const char *key, struct slice data);
bool pick_object(void *ctx, const char *key, struct slice data) {
    struct { char key[512]; struct slice data; } *found = ctx;
    if (strncmp(key, "obj/", 4) != 0) return true;
    snprintf(found->key, sizeof found->key, "%s", key);
    found->data = slice_copy(data.data, data.size);
    return false;
}

static void options_are_applied_to_what_is_written_next(void **state) {
    struct node_table *t = make_table(&w, ORDERS);
    struct append_call c;
    assert_fine(append_rows(&w, t, 0, 10, &c, &why));
    assert_fine(run_ddl(&w, "ALTER TABLE shop.orders SET ('table.statistics.columns' = 'id')", &why));
    assert_fine(append_rows(&w, t, 10, 10, &c, &why)); // the same view of the table
    int64_t ids[100];
    struct scan_request r = {.all_columns = true, .filter = "id >= 15"};
    struct node_scan_config config = whole(t);
    config.request = &r;
    assert_int_equal(scan_all(&w, config, ids, 100), 5);
    node_table_unref(t);
}

static void oversize_and_unknown_are_told(void **state) {
    struct node_table *t = make_table(&w, ORDERS), *none;
    assert_code(MINK_NOT_FOUND, node_table_find(w.node, "shop", "order", &none, &why));
    assert_string_equal(why.reason, "TABLE_NOT_FOUND");
    assert_string_equal(why.message, "table shop.order does not exist; did you mean shop.orders?");
    world_stop(&w, false);
    w.config.batch_bytes_max = 1000;
    world_start(&w);
    struct append_call c;
    assert_code(MINK_INVALID, append_rows(&w, t, 0, 1000, &c, &why));
    assert_string_equal(why.reason, "BATCH_TOO_LARGE");
    struct node_scan *s;
    struct node_scan_config config = whole(t);
    config.partition = "x";
    assert_code(MINK_INVALID, scan_open(&w, config, &s, &why));
    assert_string_equal(why.message, "table shop.orders has no partitions");
    config = whole(t);
    config.bucket = 1;
    assert_code(MINK_INVALID, scan_open(&w, config, &s, &why));
    assert_string_equal(why.message, "bucket 1: shop.orders has buckets 0 to 0");
    node_table_unref(t);
}

// A follow that waits when the node closes is told, and may be closed afterwards.
static void closing_ends_waiting_readers(void **state) {
    struct node_table *t = make_table(&w, ORDERS);
    for (int abrupt = 0; abrupt < 2; abrupt++) {
        struct node_scan *s;
        struct next_call call;
        struct node_scan_config config = whole(t);
        config.until = NODE_UNTIL_NEVER;
        assert_fine(scan_open(&w, config, &s, &why));
        scan_start(&w, s, &call);
        world_stop(&w, abrupt);
        signal_await(&call.done, 1);
        assert_int_equal(call.next.code, MINK_UNAVAILABLE);
        assert_string_equal(call.next.error.reason, "NODE_DRAINING");
        scan_close(&w, s);
        world_start(&w);
    }
    node_table_unref(t);
}

static void descriptions_are_json(void **state) {
    struct node_table *t = make_table(&w, "CREATE TABLE shop.stats (id BIGINT, city STRING) WITH ('bucket.num' = '2')");
    struct append_call c;
    struct buffer b;
    struct json_writer writer;
    struct json *j;
    assert_fine(append_rows(&w, t, 0, 10, &c, &why));
    buffer_init(&b, 1 << 20);
    json_begin(&writer, &b);
    node_describe_table(w.node, t, &writer);
    assert_fine(json_parse(b.data, b.size, &j, &why));
    assert_int_equal(json_int(json_get(j, "rows")), 10);
    assert_int_equal(json_count(json_get(j, "buckets")), 2);
    assert_int_equal(json_int(json_get(json_at(json_get(j, "buckets"), 0), "end")), 10);
    assert_int_equal(json_int(json_get(j, "objects")), 0); // in the WAL
    json_free(j);
    struct node_admin flush = {.op = NODE_FLUSH};
    assert_fine(admin(&w, &flush, &why));
    buffer_reset(&b);
    json_begin(&writer, &b);
    node_describe_table(w.node, t, &writer);
    assert_fine(json_parse(b.data, b.size, &j, &why));
    assert_int_equal(json_int(json_get(j, "objects")), 1);
    assert_true(json_int(json_get(j, "object_bytes")) > 10 * 8);
    json_free(j);
    buffer_reset(&b);
    json_begin(&writer, &b);
    node_describe_cluster(w.node, &writer);
    assert_fine(json_parse(b.data, b.size, &j, &why));
    assert_true(json_int(json_get(json_get(j, "node"), "incarnation")) > 0);
    assert_int_equal(json_int(json_get(json_get(j, "catalog"), "tables")), 1);
    json_free(j);
    buffer_deinit(&b);
    node_table_unref(t);
}

#define in_world(test) cmocka_unit_test_setup_teardown(test, begin, end)
int main(void) {
    const struct CMUnitTest tests[] = {
        in_world(appended_rows_are_read_in_order),
        in_world(what_was_acknowledged_survives_kills_and_restarts),
        in_world(filters_projection_limit_and_ranges_reach_the_scan),
        in_world(a_follow_gives_what_comes_and_can_be_cancelled),
        in_world(a_running_follow_can_be_changed),
        in_world(a_batch_sent_twice_is_stored_once_also_after_a_kill),
        in_world(a_duplicate_of_a_batch_in_flight_is_answered_with_it),
        in_world(commits_under_load_keep_the_writers),
        in_world(a_silent_writer_is_forgotten),
        in_world(a_store_that_stays_down_stops_the_node),
        in_world(wrong_writers_are_told),
        in_world(rows_go_to_buckets_by_key_and_by_turn),
        in_world(every_bucket_of_a_large_table_takes_rows),
        in_world(rows_find_their_way_among_many_targets),
        in_world(partitions_are_created_by_what_is_written),
        in_world(order_is_kept_while_partitions_are_created),
        in_world(dropped_tables_and_partitions_end_their_readers_and_writers),
        in_world(retention_moves_the_start_of_the_log),
        in_world(automatic_partitions_exist_and_expire),
        in_world(tables_with_primary_keys_are_refused),
        in_world(a_damaged_object_is_named_not_guessed),
        in_world(options_are_applied_to_what_is_written_next),
        in_world(oversize_and_unknown_are_told),
        in_world(closing_ends_waiting_readers),
        in_world(descriptions_are_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
