// SPDX-License-Identifier: Apache-2.0
#include "object_testing.h"

#include "object/object_memory.h"

static void keeps_the_promises_of_every_store(void **state) {
    struct shard *s = shard_start("test");
    struct object_store *store = object_memory_new();
    check_store(store, s);
    shard_stop(s);
    object_store_close(store);
}

static struct object_store *racing;
static void race_in_a_thread(void *ctx) {
    struct shard *s = shard_start("racer");
    int *won = ctx;
    for (int i = 0; i < 200; i++) {
        char key[32];
        snprintf(key, sizeof key, "race/%d", i);
        *won += put_text(racing, s, key, "x") == MINK_OK;
    }
    shard_stop(s);
}

static void one_of_many_threads_creates_a_key(void **state) {
    racing = object_memory_new();
    struct thread *threads[8];
    int won[8] = {0}, sum = 0;
    for (int i = 0; i < 8; i++) threads[i] = thread_start("racer", race_in_a_thread, &won[i]);
    for (int i = 0; i < 8; i++) {
        thread_join(threads[i]);
        sum += won[i];
    }
    assert_int_equal(sum, 200);
    object_store_close(racing);
}

static bool collect(void *ctx, const char *key, struct slice data) {
    char *text = ctx;
    snprintf(text + strlen(text), 100, "%s=%.*s;", key, (int)data.size, (const char *)data.data);
    return strcmp(key, "b") != 0;
}

static void checkers_see_and_change_what_is_stored(void **state) {
    struct shard *s = shard_start("test");
    struct object_store *store = object_memory_new();
    put_text(store, s, "c", "3");
    put_text(store, s, "a", "1");
    object_memory_poke(store, "b", slice_borrow("2", 1));
    object_memory_poke(store, "a", slice_borrow("one", 3));
    char text[400] = "";
    object_memory_visit(store, collect, text);
    assert_string_equal(text, "a=one;b=2;");
    object_memory_poke(store, "b", slice_empty());
    assert_null(object_memory_find(store, "b").data);
    struct slice found = object_memory_find(store, "a");
    assert_int_equal(found.size, 3);
    slice_unref(&found);
    shard_stop(s);
    object_store_close(store);
}

static void a_sink_counts_and_drops(void **state) {
    struct shard *s = shard_start("test");
    struct object_store *store = object_memory_new();
    object_memory_set_sink(store, true);
    struct object_counts before, after;
    object_counts_now(&before);
    assert_int_equal(put_text(store, s, "k", "12345"), MINK_OK);
    object_counts_now(&after);
    assert_int_equal(after.puts - before.puts, 1);
    assert_int_equal(after.bytes_put - before.bytes_put, 5);
    assert_null(object_memory_find(store, "k").data);
    shard_stop(s);
    object_store_close(store);
}

static void a_stored_object_does_not_follow_the_senders_buffer(void **state) {
    struct shard *s = shard_start("test");
    struct object_store *store = object_memory_new();
    char bytes[] = "before";
    struct slices body = {0};
    slices_take(&body, slice_borrow(bytes, 6));
    struct waited w;
    waited_init(&w);
    object_put(store, &w.request, s, "k", &body, crc32c(bytes, 6), true, OBJECT_WAL_PUT, waited_done);
    assert_int_equal(waited_wait(&w), MINK_OK);
    slices_deinit(&body);
    memcpy(bytes, "AFTER!", 6);
    assert_object(store, s, "k", "before");
    shard_stop(s);
    object_store_close(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_the_promises_of_every_store),
        cmocka_unit_test(one_of_many_threads_creates_a_key),
        cmocka_unit_test(checkers_see_and_change_what_is_stored),
        cmocka_unit_test(a_sink_counts_and_drops),
        cmocka_unit_test(a_stored_object_does_not_follow_the_senders_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
