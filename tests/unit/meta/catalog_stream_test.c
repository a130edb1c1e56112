// SPDX-License-Identifier: Apache-2.0
// Incarnations, streams and objects: the preconditions and effects of each command.
#include "meta_testing.h"

#define RANGES(...) (struct command_range[]){__VA_ARGS__}, (sizeof((struct command_range[]){__VA_ARGS__}) / sizeof(struct command_range))

static uint64_t live_ranges(struct testing *t, struct catalog_object_id id) {
    struct catalog_object o;
    assert_true(catalog_find_object(t->catalog, id, &o));
    return o.live_ranges;
}

static uint64_t marked(struct testing *t, struct catalog_object_id id) {
    struct catalog_object o;
    assert_true(catalog_find_object(t->catalog, id, &o));
    return o.marked_position;
}

static bool known(struct testing *t, struct catalog_object_id id) {
    struct catalog_object o;
    return catalog_find_object(t->catalog, id, &o);
}

static struct catalog_incarnation incarnation_of(struct testing *t, uint64_t id) {
    struct catalog_incarnation i;
    assert_true(catalog_find_incarnation(t->catalog, id, &i));
    return i;
}

static void the_same_nonce_gets_the_same_incarnation(void **state) {
    struct testing t;
    testing_init(&t);
    assert_int_equal(register_one(&t, 7), 1);
    assert_false(t.result.existed);
    assert_int_equal(register_one(&t, 8), 2);
    assert_int_equal(register_one(&t, 7), 1);
    assert_true(t.result.existed);
    assert_string_equal(incarnation_of(&t, 1).address, "host:1");
    uint8_t nonce[16] = {9};
    char address[200];
    memset(address, 'a', sizeof address - 1);
    address[199] = 0;
    assert_refused(&t, command_register_incarnation(nonce, address, ""), MINK_INVALID, "BAD_ADDRESS");
    // Also a dead one's: the process finds out by its next command.
    assert_ok(&t, command_declare_dead(1));
    assert_int_equal(register_one(&t, 7), 1);
    assert_int_equal(incarnation_of(&t, 1).state, INCARNATION_DEAD);
    assert_replays(&t, 1);
    testing_deinit(&t);
}

static void death_is_for_ever(void **state) {
    struct testing t;
    testing_init(&t);
    uint64_t i = register_one(&t, 1);
    assert_ok(&t, command_declare_dead(i));
    assert_false(t.result.existed);
    assert_ok(&t, command_declare_dead(i));
    assert_true(t.result.existed);
    assert_refused(&t, command_declare_dead(99), MINK_NOT_FOUND, "NO_SUCH_INCARNATION");
    assert_text(&t, "incarnation 99 does not exist");
    testing_deinit(&t);
}

static void each_stream_of_an_open_is_decided_on_its_own(void **state) {
    struct testing t;
    testing_init(&t);
    with_streams(&t, 3);
    uint64_t a = register_one(&t, 1), b = register_one(&t, 2);
    assert_ok(&t, command_open_streams(a, (uint64_t[]){2}, 1));
    assert_int_equal(t.epochs[0], 1);
    assert_ok(&t, command_open_streams(b, (uint64_t[]){1, 2, 3, 99}, 4));
    assert_int_equal(t.result.epoch_count, 4);
    assert_int_equal(t.epochs[0], 1);
    assert_int_equal(t.epochs[1], 0); // another's
    assert_int_equal(t.epochs[2], 1);
    assert_int_equal(t.epochs[3], 0); // no such stream
    assert_int_equal(stream_of(&t, 2).owner, a);
    assert_int_equal(stream_of(&t, 1).owner, b);
    // Opening one's own again keeps the epoch: the reply of the first proposal may have been lost.
    assert_ok(&t, command_open_streams(b, (uint64_t[]){1}, 1));
    assert_int_equal(t.epochs[0], 1);
    // A dead owner keeps its streams until it is sealed.
    assert_ok(&t, command_declare_dead(a));
    assert_ok(&t, command_open_streams(b, (uint64_t[]){2}, 1));
    assert_int_equal(t.epochs[0], 0);
    assert_ok(&t, command_seal_incarnation(a, 0, 0, NULL, 0));
    assert_ok(&t, command_open_streams(b, (uint64_t[]){2}, 1));
    assert_int_equal(t.epochs[0], 2);
    assert_refused(&t, command_open_streams(a, (uint64_t[]){2}, 1), MINK_FENCED, "INCARNATION_DEAD");
    assert_text(&t, "incarnation 1 is not live");
    uint64_t *ids;
    uint32_t count;
    catalog_list_streams(t.catalog, b, &ids, &count);
    assert_int_equal(count, 3);
    mem_free(ids);
    catalog_list_streams(t.catalog, 0, &ids, &count);
    assert_int_equal(count, 0);
    mem_free(ids);
    assert_replays(&t, 1);
    testing_deinit(&t);
}

static void writer_ids_are_handed_out_once(void **state) {
    struct testing t;
    testing_init(&t);
    assert_ok(&t, command_allocate_writer_ids(100));
    assert_int_equal(t.result.id, 1);
    assert_ok(&t, command_allocate_writer_ids(1));
    assert_int_equal(t.result.id, 101);
    assert_refused(&t, command_allocate_writer_ids(0), MINK_INVALID, "BAD_COUNT");
    assert_refused(&t, command_allocate_writer_ids(1000001), MINK_INVALID, "BAD_COUNT");
    assert_replays(&t, 1);
    testing_deinit(&t);
}

// Two streams of incarnation 1, epoch 1.
static void with_owner(struct testing *t, uint32_t buckets) {
    testing_init(t);
    with_streams(t, buckets);
    register_one(t, 1);
    uint64_t ids[8];
    for (uint32_t i = 0; i < buckets; i++) ids[i] = i + 1;
    assert_ok(t, command_open_streams(1, ids, buckets));
}

static void a_commit_moves_ends_and_the_wal_position(void **state) {
    struct testing t;
    with_owner(&t, 2);
    struct command_object objects[] = {{set_id(1, 1), 5000, 200, RANGES({1, 1, 0, 10}, {2, 1, 0, 7})}, {{OBJECT_KIND_STREAM, 1, 2}, 9000, 64, RANGES({1, 1, 10, 30})}};
    struct command_attachment attachment = {1, slice_borrow("snapshot", 8)};
    assert_ok(&t, command_commit_objects(1, 0, 5, objects, 2, &attachment, 1));
    assert_int_equal(stream_of(&t, 1).end, 30);
    assert_int_equal(stream_of(&t, 2).end, 7);
    assert_int_equal(incarnation_of(&t, 1).wal_committed, 5);
    struct catalog_range ranges[4];
    assert_int_equal(catalog_ranges(t.catalog, 1, 9, ranges, 4), 2);
    assert_int_equal(ranges[0].from, 0);
    assert_int_equal(ranges[0].to, 10);
    assert_int_equal(ranges[0].object.number, 1);
    assert_int_equal(ranges[0].object_size, 5000);
    assert_int_equal(ranges[0].index_size, 200);
    assert_int_equal(ranges[0].epoch, 1);
    assert_int_equal(ranges[1].from, 10);
    assert_int_equal(ranges[1].to, 30);
    assert_int_equal(ranges[1].object.kind, OBJECT_KIND_STREAM);
    assert_int_equal(catalog_ranges(t.catalog, 1, 10, ranges, 4), 1);
    assert_int_equal(catalog_ranges(t.catalog, 1, 30, ranges, 4), 0);
    assert_int_equal(catalog_ranges(t.catalog, 1, 0, ranges, 1), 1);
    assert_int_equal(catalog_ranges(t.catalog, 99, 0, ranges, 4), 0);
    struct catalog_stream s;
    assert_true(catalog_find_stream(t.catalog, 1, &s));
    assert_int_equal(s.attachment.size, 8);
    assert_memory_equal(s.attachment.data, "snapshot", 8);
    assert_int_equal(s.attachment_end, 30);
    catalog_stream_deinit(&s);
    // The newest one stays.
    attachment.bytes = slice_borrow("newer", 5);
    assert_ok(&t, command_commit_objects(1, 5, 6, NULL, 0, &attachment, 1));
    assert_true(catalog_find_stream(t.catalog, 1, &s));
    assert_int_equal(s.attachment.size, 5);
    catalog_stream_deinit(&s);
    assert_replays(&t, 1);
    testing_deinit(&t);
}

static void a_commit_is_refused_as_a_whole(void **state) {
    struct testing t;
    with_owner(&t, 2);
    register_one(&t, 2);
    assert_ok(&t, commit1(1, 0, 3, set_id(1, 1), RANGES({1, 1, 0, 10})));
    struct slice before = catalog_save(t.catalog);
    assert_refused(&t, commit1(1, 2, 4, set_id(1, 2), RANGES({1, 1, 10, 11})), MINK_CONFLICT, "WAL_POSITION");
    assert_text(&t, "commit of WAL 2 to 4: 3 is committed");
    assert_refused(&t, commit1(1, 4, 5, set_id(1, 2), RANGES({1, 1, 10, 11})), MINK_CONFLICT, "WAL_POSITION");
    assert_refused(&t, commit1(1, 3, 2, set_id(1, 2), RANGES({1, 1, 10, 11})), MINK_CONFLICT, "WAL_POSITION");
    assert_refused(&t, commit1(1, 3, 4, set_id(1, 2), RANGES({2, 1, 0, 5}, {1, 1, 11, 12})), MINK_CONFLICT, "NOT_CONTIGUOUS");
    assert_text(&t, "stream 1: offsets 11 to 12 do not follow 10");
    assert_refused(&t, commit1(1, 3, 4, set_id(1, 2), RANGES({1, 1, 9, 12})), MINK_CONFLICT, "NOT_CONTIGUOUS");
    assert_refused(&t, commit1(1, 3, 4, set_id(1, 2), RANGES({1, 1, 10, 10})), MINK_CONFLICT, "NOT_CONTIGUOUS");
    assert_refused(&t, commit1(1, 3, 4, set_id(1, 2), RANGES({1, 1, 10, 12}, {1, 1, 13, 14})), MINK_CONFLICT, "NOT_CONTIGUOUS");
    assert_refused(&t, commit1(1, 3, 4, set_id(1, 2), RANGES({1, 2, 10, 12})), MINK_FENCED, "NOT_OWNER");
    assert_refused(&t, commit1(2, 0, 1, set_id(2, 1), RANGES({1, 1, 10, 12})), MINK_FENCED, "NOT_OWNER");
    assert_text(&t, "stream 1 epoch 1 is not incarnation 2's");
    assert_refused(&t, commit1(1, 3, 4, set_id(2, 2), RANGES({1, 1, 10, 12})), MINK_INVALID, "BAD_OBJECT");
    assert_refused(&t, commit1(1, 3, 4, set_id(1, 0), RANGES({1, 1, 10, 12})), MINK_INVALID, "BAD_OBJECT");
    assert_refused(&t, commit1(1, 3, 4, set_id(1, 1 << 24), RANGES({1, 1, 10, 12})), MINK_INVALID, "BAD_OBJECT");
    assert_refused(&t, commit1(1, 3, 4, (struct catalog_object_id){OBJECT_KIND_SEAL, 1, 3}, RANGES({1, 1, 10, 12})), MINK_INVALID, "BAD_OBJECT");
    assert_refused(&t, commit1(1, 3, 4, wal_id(1, 4), RANGES({1, 1, 10, 12})), MINK_INVALID, "BAD_OBJECT");
    assert_refused(&t, commit1(1, 3, 4, wal_id(1, 2), RANGES({1, 1, 10, 12})), MINK_INVALID, "BAD_OBJECT");
    assert_refused(&t, commit1(1, 3, 4, set_id(1, 1), RANGES({1, 1, 10, 12})), MINK_CONFLICT, "OBJECT_EXISTS");
    static uint8_t large[(256 << 10) + 1];
    struct command_attachment attachment = {1, slice_borrow(large, sizeof large)};
    assert_refused(&t, command_commit_objects(1, 3, 4, NULL, 0, &attachment, 1), MINK_INVALID, "ATTACHMENT_SIZE");
    assert_text(&t, "an attachment of 262145 bytes: at most 262144");
    assert_ok(&t, commit1(1, 0, 3, set_id(1, 1), RANGES({1, 1, 0, 10}))); // again
    assert_true(t.result.existed);
    // None of them has changed anything but the position (bytes 8 to 15) and the checksum.
    struct slice after = catalog_save(t.catalog);
    assert_int_equal(before.size, after.size);
    assert_memory_equal(before.data + 16, after.data + 16, before.size - 20);
    slice_unref(&before);
    slice_unref(&after);
    assert_ok(&t, command_declare_dead(1));
    assert_refused(&t, commit1(1, 3, 4, set_id(1, 2), RANGES({1, 1, 10, 12})), MINK_FENCED, "INCARNATION_DEAD");
    assert_replays(&t, 3);
    testing_deinit(&t);
}

static void only_the_owner_leaves_an_attachment(void **state) {
    struct testing t;
    with_owner(&t, 1);
    register_one(&t, 2);
    struct command_attachment theirs = {1, slice_borrow("x", 1)}, gone = {77, slice_borrow("x", 1)};
    assert_ok(&t, command_commit_objects(2, 0, 1, NULL, 0, &theirs, 1));
    assert_ok(&t, command_commit_objects(1, 0, 1, NULL, 0, &gone, 1));
    struct catalog_stream s;
    assert_true(catalog_find_stream(t.catalog, 1, &s));
    assert_int_equal(s.attachment.size, 0);
    catalog_stream_deinit(&s);
    testing_deinit(&t);
}

static void a_commit_may_refer_to_wal_objects(void **state) {
    struct testing t;
    with_owner(&t, 2);
    struct command_object refs[] = {{wal_id(1, 1), 700, 64, RANGES({1, 1, 0, 4})}, {wal_id(1, 3), 800, 128, RANGES({1, 1, 4, 6}, {2, 1, 0, 2})}};
    assert_ok(&t, command_commit_objects(1, 0, 4, refs, 2, NULL, 0));
    assert_int_equal(live_ranges(&t, wal_id(1, 3)), 2);
    assert_false(known(&t, wal_id(1, 0))); // released: no entry
    assert_false(known(&t, wal_id(1, 2)));
    assert_int_equal(marked(&t, wal_id(1, 1)), 0);
    assert_ok(&t, command_trim_streams((uint64_t[]){1}, (uint64_t[]){4}, 1));
    assert_int_equal(marked(&t, wal_id(1, 1)), t.seq);
    assert_replays(&t, 1);
    testing_deinit(&t);
}

static void a_close_hands_over_by_reference(void **state) {
    struct testing t;
    with_owner(&t, 2);
    register_one(&t, 2);
    assert_ok(&t, commit1(1, 0, 2, set_id(1, 1), RANGES({1, 1, 0, 10})));
    struct command_object refs[] = {{wal_id(1, 2), 700, 64, RANGES({1, 1, 10, 12})}, {wal_id(1, 4), 800, 64, RANGES({1, 1, 12, 15})}};
    assert_refused(&t, command_close_stream(2, 1, 1, 15, refs, 2), MINK_FENCED, "NOT_OWNER");
    assert_refused(&t, command_close_stream(1, 1, 2, 15, refs, 2), MINK_FENCED, "NOT_OWNER");
    assert_refused(&t, command_close_stream(1, 9, 1, 15, refs, 2), MINK_NOT_FOUND, "NO_SUCH_STREAM");
    assert_refused(&t, command_close_stream(1, 1, 1, 16, refs, 2), MINK_CONFLICT, "NOT_CONTIGUOUS");
    assert_text(&t, "stream 1: closed at 16 with references up to 15");
    assert_refused(&t, command_close_stream(1, 1, 1, 15, refs + 1, 1), MINK_CONFLICT, "NOT_CONTIGUOUS");
    struct command_object released = {wal_id(1, 1), 700, 64, RANGES({1, 1, 10, 15})}; // below the committed point: may be deleted already
    assert_refused(&t, command_close_stream(1, 1, 1, 15, &released, 1), MINK_INVALID, "BAD_OBJECT");
    struct command_object set = {set_id(1, 2), 700, 64, RANGES({1, 1, 10, 15})};
    assert_refused(&t, command_close_stream(1, 1, 1, 15, &set, 1), MINK_INVALID, "BAD_OBJECT");
    assert_ok(&t, command_close_stream(1, 1, 1, 15, refs, 2));
    assert_int_equal(stream_of(&t, 1).owner, 0);
    assert_int_equal(stream_of(&t, 1).end, 15);
    assert_ok(&t, command_close_stream(1, 1, 1, 15, refs, 2));
    assert_true(t.result.existed);
    assert_int_equal(live_ranges(&t, wal_id(1, 2)), 1);
    assert_ok(&t, command_open_streams(2, (uint64_t[]){1}, 1));
    assert_int_equal(t.epochs[0], 2);
    assert_refused(&t, command_close_stream(1, 1, 1, 15, refs, 2), MINK_FENCED, "NOT_OWNER");
    // The other stream goes on, and its commit passes over what the close published.
    assert_ok(&t, commit1(1, 2, 5, set_id(1, 2), RANGES({2, 1, 0, 3})));
    assert_int_equal(marked(&t, wal_id(1, 2)), 0);
    assert_replays(&t, 1);
    testing_deinit(&t);
}

// A WAL object that no range needs any more may hold other streams' rows that no command has published.
static void uncommitted_wal_is_never_marked(void **state) {
    struct testing t;
    with_owner(&t, 2);
    struct command_object ref = {wal_id(1, 0), 700, 128, RANGES({1, 1, 0, 5})};
    assert_ok(&t, command_close_stream(1, 1, 1, 5, &ref, 1));
    assert_ok(&t, command_trim_streams((uint64_t[]){1}, (uint64_t[]){5}, 1));
    assert_int_equal(marked(&t, wal_id(1, 0)), 0);
    assert_refused(&t, command_forget_objects(&ref.id, 1), MINK_CONFLICT, "OBJECT_NEEDED");
    assert_replays(&t, 1); // checkpoints hold such an entry
    // Stream 2 comes along by the seal.
    assert_ok(&t, command_declare_dead(1));
    struct command_sealed_object sealed = {0, 700, 128, (struct command_entry[]){{1, 1, 0, 5}, {2, 1, 0, 9}}, 2};
    assert_ok(&t, command_seal_incarnation(1, 0, 1, &sealed, 1));
    assert_int_equal(live_ranges(&t, wal_id(1, 0)), 1);
    assert_int_equal(marked(&t, wal_id(1, 0)), 0);
    assert_int_equal(stream_of(&t, 2).end, 9);
    assert_int_equal(stream_of(&t, 1).end, 5);
    assert_replays(&t, 1);
    testing_deinit(&t);
}

static void unreferenced_wal_is_marked_when_it_is_committed(void **state) {
    struct testing t;
    with_owner(&t, 2);
    struct command_object ref = {wal_id(1, 3), 700, 128, RANGES({1, 1, 0, 5})};
    assert_ok(&t, command_close_stream(1, 1, 1, 5, &ref, 1));
    assert_ok(&t, command_trim_streams((uint64_t[]){1}, (uint64_t[]){5}, 1));
    assert_ok(&t, command_commit_objects(1, 0, 3, NULL, 0, NULL, 0));
    assert_int_equal(marked(&t, ref.id), 0);
    assert_ok(&t, command_commit_objects(1, 3, 4, NULL, 0, NULL, 0));
    assert_int_equal(marked(&t, ref.id), t.seq);
    assert_ok(&t, command_forget_objects(&ref.id, 1));
    assert_false(known(&t, ref.id));
    assert_replays(&t, 1);
    testing_deinit(&t);
}

static void a_seal_publishes_what_was_walked(void **state) {
    struct testing t;
    with_owner(&t, 3);
    assert_ok(&t, commit1(1, 0, 2, set_id(1, 1), RANGES({1, 1, 0, 10})));
    struct command_sealed_object objects[] = {
        {2, 900, 128, (struct command_entry[]){{1, 1, 10, 15}, {2, 1, 0, 2}}, 2},
        {3, 192, 0, NULL, 0},
        {4, 950, 128, (struct command_entry[]){{1, 1, 15, 18}, {77, 1, 0, 5}}, 2}, // 77: dropped
    };
    assert_refused(&t, command_seal_incarnation(1, 2, 5, objects, 3), MINK_CONFLICT, "INCARNATION_LIVE");
    assert_refused(&t, command_seal_incarnation(9, 2, 5, objects, 3), MINK_NOT_FOUND, "NO_SUCH_INCARNATION");
    assert_ok(&t, command_declare_dead(1));
    assert_refused(&t, command_seal_incarnation(1, 1, 5, objects, 3), MINK_CONFLICT, "WAL_POSITION");
    assert_refused(&t, command_seal_incarnation(1, 3, 5, objects + 1, 2), MINK_CONFLICT, "WAL_POSITION");
    assert_refused(&t, command_seal_incarnation(1, 2, 6, objects, 3), MINK_CONFLICT, "WAL_POSITION");
    assert_refused(&t, command_seal_incarnation(1, 2, 1, NULL, 0), MINK_CONFLICT, "WAL_POSITION");
    struct command_sealed_object other = objects[1];
    other.seq = 4;
    assert_refused(&t, command_seal_incarnation(1, 2, 3, &other, 1), MINK_CORRUPT, "WAL_POSITION");
    struct command_sealed_object gap = {2, 900, 128, (struct command_entry[]){{1, 1, 11, 15}}, 1};
    assert_refused(&t, command_seal_incarnation(1, 2, 3, &gap, 1), MINK_CORRUPT, "NOT_CONTIGUOUS");
    assert_text(&t, "stream 1: WAL 1/2 holds offsets 11 to 15, expected 10");
    struct command_sealed_object overlap = {2, 900, 128, (struct command_entry[]){{1, 1, 9, 15}}, 1};
    assert_refused(&t, command_seal_incarnation(1, 2, 3, &overlap, 1), MINK_CORRUPT, "NOT_CONTIGUOUS");
    struct command_sealed_object foreign_epoch = {2, 900, 128, (struct command_entry[]){{1, 7, 10, 15}}, 1};
    assert_refused(&t, command_seal_incarnation(1, 2, 3, &foreign_epoch, 1), MINK_CORRUPT, "NOT_CONTIGUOUS");
    assert_int_equal(stream_of(&t, 1).end, 10);

    assert_ok(&t, command_seal_incarnation(1, 2, 5, objects, 3));
    assert_int_equal(stream_of(&t, 1).end, 18);
    assert_int_equal(stream_of(&t, 2).end, 2);
    assert_int_equal(stream_of(&t, 3).end, 0);
    for (uint64_t s = 1; s <= 3; s++) assert_int_equal(stream_of(&t, s).owner, 0);
    assert_int_equal(incarnation_of(&t, 1).state, INCARNATION_SEALED);
    assert_int_equal(incarnation_of(&t, 1).seal_seq, 5);
    assert_int_equal(incarnation_of(&t, 1).wal_committed, 5);
    assert_true(known(&t, wal_id(1, 2)));
    assert_false(known(&t, wal_id(1, 3)));
    assert_ok(&t, command_seal_incarnation(1, 2, 5, objects, 3));
    assert_true(t.result.existed);
    assert_refused(&t, command_seal_incarnation(1, 2, 4, objects, 2), MINK_CORRUPT, "TWO_SEALS");
    assert_text(&t, "incarnation 1 is sealed at 5, not 4");
    assert_refused(&t, commit1(1, 5, 6, set_id(1, 2), RANGES({1, 1, 18, 20})), MINK_FENCED, "INCARNATION_DEAD");
    assert_replays(&t, 1);
    testing_deinit(&t);
}

// A stream that was closed before its owner died: the seal meets its entries again, and they must lie below the end.
static void a_seal_skips_what_a_close_published(void **state) {
    struct testing t;
    with_owner(&t, 2);
    register_one(&t, 2);
    struct command_object ref = {wal_id(1, 0), 700, 128, RANGES({1, 1, 0, 5})};
    assert_ok(&t, command_close_stream(1, 1, 1, 5, &ref, 1));
    assert_ok(&t, command_open_streams(2, (uint64_t[]){1}, 1));
    assert_ok(&t, commit1(2, 0, 1, set_id(2, 1), RANGES({1, 2, 5, 8})));
    assert_ok(&t, command_declare_dead(1));
    struct command_sealed_object beyond = {0, 700, 128, (struct command_entry[]){{1, 1, 0, 9}, {2, 1, 0, 9}}, 2};
    assert_refused(&t, command_seal_incarnation(1, 0, 1, &beyond, 1), MINK_CORRUPT, "NOT_CONTIGUOUS");
    struct command_sealed_object sealed = {0, 700, 128, (struct command_entry[]){{1, 1, 0, 5}, {2, 1, 0, 9}}, 2};
    assert_ok(&t, command_seal_incarnation(1, 0, 1, &sealed, 1));
    assert_int_equal(stream_of(&t, 1).end, 8);
    assert_int_equal(stream_of(&t, 1).owner, 2);
    assert_int_equal(stream_of(&t, 2).end, 9);
    assert_int_equal(live_ranges(&t, wal_id(1, 0)), 2);
    assert_replays(&t, 1);
    testing_deinit(&t);
}

static void trimming_frees_ranges_and_marks_objects(void **state) {
    struct testing t;
    with_owner(&t, 2);
    assert_ok(&t, commit1(1, 0, 1, set_id(1, 1), RANGES({1, 1, 0, 10}, {2, 1, 0, 5})));
    assert_ok(&t, commit1(1, 1, 2, set_id(1, 2), RANGES({1, 1, 10, 20})));
    assert_refused(&t, command_trim_streams((uint64_t[]){2, 1}, (uint64_t[]){3, 21}, 2), MINK_OUT_OF_RANGE, "BAD_TRIM");
    assert_text(&t, "stream 1 ends at 20: it cannot start at 21");
    assert_int_equal(stream_of(&t, 2).start, 0);
    assert_ok(&t, command_trim_streams((uint64_t[]){1, 99}, (uint64_t[]){15, 3}, 2));
    assert_int_equal(stream_of(&t, 1).start, 15);
    assert_int_equal(live_ranges(&t, set_id(1, 1)), 1);
    assert_int_equal(marked(&t, set_id(1, 1)), 0);
    struct catalog_range r;
    assert_int_equal(catalog_ranges(t.catalog, 1, 14, &r, 1), 0);
    assert_int_equal(catalog_ranges(t.catalog, 1, 15, &r, 1), 1);
    assert_int_equal(r.from, 15);
    assert_int_equal(r.to, 20);
    assert_ok(&t, command_trim_streams((uint64_t[]){1}, (uint64_t[]){3}, 1)); // not back
    assert_int_equal(stream_of(&t, 1).start, 15);
    assert_ok(&t, command_trim_streams((uint64_t[]){1, 2}, (uint64_t[]){20, 5}, 2));
    assert_int_equal(marked(&t, set_id(1, 1)), t.seq);
    assert_int_equal(marked(&t, set_id(1, 2)), t.seq);
    struct catalog_object *list;
    uint32_t count;
    catalog_list_objects(t.catalog, true, &list, &count);
    assert_int_equal(count, 2);
    mem_free(list);
    struct catalog_object_id ids[] = {set_id(1, 1), set_id(1, 2), set_id(1, 99)};
    assert_ok(&t, command_forget_objects(ids, 3));
    assert_ok(&t, command_forget_objects(ids, 3));
    catalog_list_objects(t.catalog, false, &list, &count);
    assert_int_equal(count, 0);
    mem_free(list);
    // Appending goes on where it was.
    assert_ok(&t, commit1(1, 2, 3, set_id(1, 3), RANGES({1, 1, 20, 22})));
    assert_refused(&t, command_forget_objects((struct catalog_object_id[]){set_id(1, 3)}, 1), MINK_CONFLICT, "OBJECT_NEEDED");
    assert_text(&t, "object 1-3 is still needed");
    assert_replays(&t, 1);
    testing_deinit(&t);
}

// First with nothing but a stream that is gone, then with one that is there.
static void an_object_may_be_named_twice(void **state) {
    struct testing t;
    with_owner(&t, 1);
    struct command_object twice[] = {{set_id(1, 1), 100, 64, RANGES({77, 1, 0, 4})}, {set_id(1, 1), 100, 64, RANGES({1, 1, 0, 4})}};
    assert_ok(&t, command_commit_objects(1, 0, 1, twice, 2, NULL, 0));
    assert_int_equal(live_ranges(&t, set_id(1, 1)), 1);
    assert_int_equal(marked(&t, set_id(1, 1)), 0);
    assert_replays(&t, 1);
    testing_deinit(&t);
}

// ---- replace

static struct command *replace(struct catalog_object_id *old, uint32_t old_count, struct command_object *objects, uint32_t count) { return command_replace_objects(1, old, old_count, objects, count); }

// Stream 1: object 1 [0,10), object 2 [10,20), object 3 [20,30). Stream 2: object 1 [0,5), object 3 [5,6).
static void with_three_objects(struct testing *t) {
    with_owner(t, 2);
    assert_ok(t, commit1(1, 0, 1, set_id(1, 1), RANGES({1, 1, 0, 10}, {2, 1, 0, 5})));
    assert_ok(t, commit1(1, 1, 2, set_id(1, 2), RANGES({1, 1, 10, 20})));
    assert_ok(t, commit1(1, 2, 3, set_id(1, 3), RANGES({1, 1, 20, 30}, {2, 1, 5, 6})));
}

static void a_replacement_swaps_ranges(void **state) {
    struct testing t;
    with_three_objects(&t);
    struct catalog_object_id old[] = {set_id(1, 1), set_id(1, 2)};
    struct command_object objects[] = {{set_id(1, 4), 100, 10, RANGES({2, 1, 0, 5})}, {{OBJECT_KIND_STREAM, 1, 5}, 2000, 20, RANGES({1, 1, 0, 20})}};
    assert_ok(&t, replace(old, 2, objects, 2));
    struct catalog_range r[4];
    assert_int_equal(catalog_ranges(t.catalog, 1, 0, r, 4), 2);
    assert_int_equal(r[0].object.number, 5);
    assert_int_equal(r[0].to, 20);
    assert_int_equal(r[1].object.number, 3);
    assert_int_equal(catalog_ranges(t.catalog, 2, 0, r, 4), 2);
    assert_int_equal(r[0].object.number, 4);
    assert_int_equal(marked(&t, set_id(1, 1)), t.seq);
    assert_int_equal(marked(&t, set_id(1, 2)), t.seq);
    assert_int_equal(marked(&t, set_id(1, 3)), 0);
    struct catalog_stats stats;
    catalog_stats(t.catalog, &stats);
    assert_int_equal(stats.ranges, 4);
    assert_ok(&t, replace(old, 2, objects, 2));
    assert_true(t.result.existed);
    assert_replays(&t, 1);
    testing_deinit(&t);
}

static void a_replacement_may_cut_elsewhere(void **state) {
    struct testing t;
    with_three_objects(&t);
    struct catalog_object_id old[] = {set_id(1, 1), set_id(1, 2), set_id(1, 3)};
    struct command_object objects[] = {{set_id(1, 4), 100, 10, RANGES({1, 1, 0, 13}, {2, 1, 0, 6})}, {set_id(1, 5), 2000, 20, RANGES({1, 1, 13, 30})}};
    assert_ok(&t, replace(old, 3, objects, 2));
    struct catalog_range r[4];
    assert_int_equal(catalog_ranges(t.catalog, 1, 0, r, 4), 2);
    assert_int_equal(r[0].to, 13);
    assert_int_equal(r[1].from, 13);
    assert_int_equal(r[1].to, 30);
    assert_int_equal(catalog_ranges(t.catalog, 2, 0, r, 4), 1);
    assert_int_equal(r[0].to, 6);
    assert_replays(&t, 1);
    testing_deinit(&t);
}

static void a_replacement_is_clipped_at_the_start(void **state) {
    struct testing t;
    with_three_objects(&t);
    assert_ok(&t, command_trim_streams((uint64_t[]){1, 2}, (uint64_t[]){12, 5}, 2)); // object 1 is gone altogether
    assert_int_not_equal(marked(&t, set_id(1, 1)), 0);
    struct catalog_object_id old[] = {set_id(1, 1), set_id(1, 2)};
    struct command_object object = {set_id(1, 4), 100, 10, RANGES({1, 1, 0, 20}, {2, 1, 0, 5})};
    assert_ok(&t, replace(old, 2, &object, 1));
    struct catalog_range r[4];
    assert_int_equal(catalog_ranges(t.catalog, 1, 12, r, 4), 2);
    assert_int_equal(r[0].from, 12);
    assert_int_equal(r[0].object.number, 4);
    assert_int_equal(live_ranges(&t, set_id(1, 4)), 1);
    assert_replays(&t, 1);
    testing_deinit(&t);
}

static void a_replacement_of_nothing_left_is_marked_at_once(void **state) {
    struct testing t;
    with_three_objects(&t);
    assert_ok(&t, command_trim_streams((uint64_t[]){1, 2}, (uint64_t[]){20, 5}, 2));
    struct catalog_object_id old[] = {set_id(1, 1), set_id(1, 2)};
    struct command_object object = {set_id(1, 4), 100, 10, RANGES({1, 1, 0, 20}, {2, 1, 0, 5})};
    assert_ok(&t, replace(old, 2, &object, 1));
    assert_int_equal(marked(&t, set_id(1, 4)), t.seq);
    assert_replays(&t, 1);
    testing_deinit(&t);
}

static void a_replacement_that_does_not_fit_is_refused(void **state) {
    struct testing t;
    with_three_objects(&t);
    register_one(&t, 2);
    struct catalog_object_id old[] = {set_id(1, 1), set_id(1, 2)};
    struct command_object uncovered = {set_id(1, 4), 1, 1, RANGES({1, 1, 0, 20})};
    assert_refused(&t, replace(old, 2, &uncovered, 1), MINK_CONFLICT, "NOT_COVERED");
    assert_text(&t, "stream 2: offsets 0 to 5 are not in the replacing objects");
    struct command_object shorter = {set_id(1, 4), 1, 1, RANGES({1, 1, 0, 19}, {2, 1, 0, 5})};
    assert_refused(&t, replace(old, 2, &shorter, 1), MINK_CONFLICT, "NOT_COVERED");
    assert_text(&t, "stream 1: offsets 19 to 20 are not in the replacing objects");
    struct command_object later = {set_id(1, 4), 1, 1, RANGES({1, 1, 1, 20}, {2, 1, 0, 5})};
    assert_refused(&t, replace(old, 2, &later, 1), MINK_CONFLICT, "NOT_COVERED");
    assert_text(&t, "stream 1: no replaced range begins at 1");
    struct command_object longer = {set_id(1, 4), 1, 1, RANGES({1, 1, 0, 30}, {2, 1, 0, 5})};
    assert_refused(&t, replace(old, 2, &longer, 1), MINK_CONFLICT, "NOT_COVERED");
    assert_text(&t, "stream 1: offset 20 is in an object that is not replaced");
    struct command_object past = {set_id(1, 4), 1, 1, RANGES({1, 1, 0, 40}, {2, 1, 0, 5})};
    assert_refused(&t, replace(old, 2, &past, 1), MINK_CONFLICT, "NOT_COVERED");
    assert_text(&t, "stream 1: a replacing range reaches to 40, past the end 30");
    struct command_object twice[] = {{set_id(1, 4), 1, 1, RANGES({1, 1, 0, 20}, {2, 1, 0, 5})}, {set_id(1, 5), 1, 1, RANGES({1, 1, 10, 20})}};
    assert_refused(&t, replace(old, 2, twice, 2), MINK_CONFLICT, "NOT_COVERED");
    assert_text(&t, "stream 1: replacing ranges overlap at 10");
    struct command_object good = {set_id(1, 4), 1, 1, RANGES({1, 1, 0, 20}, {2, 1, 0, 5})};
    struct command_object reused = good, foreign = good, wal = good;
    reused.id = set_id(1, 3);
    assert_refused(&t, replace(old, 2, &reused, 1), MINK_CONFLICT, "OBJECT_EXISTS");
    foreign.id = set_id(2, 1);
    assert_refused(&t, replace(old, 2, &foreign, 1), MINK_INVALID, "BAD_OBJECT");
    wal.id = wal_id(1, 9);
    assert_refused(&t, replace(old, 2, &wal, 1), MINK_INVALID, "BAD_OBJECT");
    // Somebody else's compaction was faster: what it made may not be covered.
    struct command_object theirs = {set_id(2, 1), 1, 1, RANGES({1, 1, 10, 20})};
    assert_ok(&t, command_replace_objects(2, &old[1], 1, &theirs, 1));
    assert_refused(&t, replace(old, 2, &good, 1), MINK_CONFLICT, "NOT_COVERED");
    assert_ok(&t, command_declare_dead(1));
    assert_refused(&t, replace(old, 1, &good, 1), MINK_FENCED, "INCARNATION_DEAD");
    assert_replays(&t, 1);
    testing_deinit(&t);
}

static void dropping_a_table_frees_its_objects(void **state) {
    struct testing t;
    with_three_objects(&t);
    assert_ok(&t, create_table("d.other", 1, false, false)); // stream 3
    assert_ok(&t, command_open_streams(1, (uint64_t[]){3}, 1));
    assert_ok(&t, commit1(1, 3, 4, set_id(1, 4), RANGES({1, 1, 30, 31}, {3, 1, 0, 2})));
    assert_ok(&t, command_drop_table("d", "t", false));
    struct catalog_stream s;
    assert_false(catalog_find_stream(t.catalog, 1, &s));
    for (uint64_t n = 1; n <= 3; n++) assert_int_equal(marked(&t, set_id(1, n)), t.seq);
    assert_int_equal(live_ranges(&t, set_id(1, 4)), 1);
    // The owner does not know yet: what it commits of the stream is left out.
    assert_ok(&t, commit1(1, 4, 5, set_id(1, 5), RANGES({1, 1, 31, 32})));
    assert_int_equal(marked(&t, set_id(1, 5)), t.seq);
    assert_ok(&t, commit1(1, 5, 6, set_id(1, 6), RANGES({1, 1, 32, 33}, {3, 1, 2, 3})));
    assert_int_equal(stream_of(&t, 3).end, 3);
    // Stream ids are not used again.
    assert_ok(&t, create_table("d.t", 2, false, false));
    assert_false(catalog_find_stream(t.catalog, 1, &s));
    assert_int_equal(stream_of(&t, 4).bucket, 0);
    assert_int_equal(stream_of(&t, 5).bucket, 1);
    assert_replays(&t, 1);
    testing_deinit(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_nonce_gets_the_same_incarnation),
        cmocka_unit_test(death_is_for_ever),
        cmocka_unit_test(each_stream_of_an_open_is_decided_on_its_own),
        cmocka_unit_test(writer_ids_are_handed_out_once),
        cmocka_unit_test(a_commit_moves_ends_and_the_wal_position),
        cmocka_unit_test(a_commit_is_refused_as_a_whole),
        cmocka_unit_test(only_the_owner_leaves_an_attachment),
        cmocka_unit_test(a_commit_may_refer_to_wal_objects),
        cmocka_unit_test(a_close_hands_over_by_reference),
        cmocka_unit_test(uncommitted_wal_is_never_marked),
        cmocka_unit_test(unreferenced_wal_is_marked_when_it_is_committed),
        cmocka_unit_test(a_seal_publishes_what_was_walked),
        cmocka_unit_test(a_seal_skips_what_a_close_published),
        cmocka_unit_test(trimming_frees_ranges_and_marks_objects),
        cmocka_unit_test(an_object_may_be_named_twice),
        cmocka_unit_test(a_replacement_swaps_ranges),
        cmocka_unit_test(a_replacement_may_cut_elsewhere),
        cmocka_unit_test(a_replacement_is_clipped_at_the_start),
        cmocka_unit_test(a_replacement_of_nothing_left_is_marked_at_once),
        cmocka_unit_test(a_replacement_that_does_not_fit_is_refused),
        cmocka_unit_test(dropping_a_table_frees_its_objects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
