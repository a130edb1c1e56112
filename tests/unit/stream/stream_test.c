// SPDX-License-Identifier: Apache-2.0
// The stream layer over a memory store and SQLite, on real shards.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/crc32c.h"
#include "base/log.h"
#include "base/mem.h"
#include "object/object_fault.h"
#include "object/object_memory.h"
#include "stream/object_format.h"
#include "stream/stream.h"

#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// ---- a world: a shard, a store that survives, a metadata file that survives

struct world {
    char dir[64];
    struct shard *shard;
    struct object_store *objects;
    struct meta *meta;
    struct stream_store *store;
    sem_t sem;
    enum mink_code code;
    struct error error;
    bool fatal;
    struct stream_config config;
    uint64_t incarnation;
};
static struct world w;

static void ready(void *ctx, enum mink_code code, const struct error *e) {
    w.code = code;
    if (e) w.error = *e;
    sem_post(&w.sem);
}
static void closed(void *ctx) { sem_post(&w.sem); }
static void on_fatal(void *ctx, const struct error *e) {
    w.fatal = true;
    w.error = *e;
}

static void proposed(struct meta_proposal *p) {
    w.code = p->result.code;
    w.error = p->result.error;
    sem_post(&w.sem);
}
static enum mink_code propose(struct command *c) {
    struct meta_proposal p;
    meta_propose(w.meta, &p, w.shard, c, proposed);
    sem_wait(&w.sem);
    return w.code;
}

static void start_meta(void) {
    struct meta_log *log;
    struct error e;
    char path[128];
    snprintf(path, sizeof path, "%s/meta.db", w.dir);
    assert_int_equal(meta_log_sqlite_open(path, &log, &e), MINK_OK);
    meta_open(&(struct meta_config){.shard = w.shard, .log = log}, &w.meta, ready, NULL);
    sem_wait(&w.sem);
    assert_int_equal(w.code, MINK_OK);
}

static enum mink_code start_store(void) {
    struct stream_config config = w.config;
    config.shard = w.shard;
    config.objects = w.objects;
    config.meta = w.meta;
    config.address = "127.0.0.1:1";
    config.on_fatal = on_fatal;
    w.fatal = false;
    stream_store_open(&config, &w.store, ready, NULL);
    sem_wait(&w.sem);
    w.incarnation = w.code == MINK_OK ? stream_store_incarnation(w.store) : 0;
    return w.code;
}

static void stop_store(bool abrupt) {
    stream_store_close(w.store, abrupt, closed, NULL);
    sem_wait(&w.sem);
}

static int setup(void **state) {
    memset(&w, 0, sizeof w);
    log_configure(LOG_ERROR + 1, false);
    sem_init(&w.sem, 0, 0);
    snprintf(w.dir, sizeof w.dir, "/tmp/mink-stream-XXXXXX");
    assert_non_null(mkdtemp(w.dir));
    w.shard = shard_start("stream");
    w.objects = object_memory_new();
    w.config = (struct stream_config){.linger_floor_us = 100, .put_rate = -1, .delete_grace_ms = 1};
    start_meta();
    assert_int_equal(start_store(), MINK_OK);
    assert_int_equal(propose(command_create_database("d", "", false)), MINK_OK);
    // Streams come with tables; four buckets are streams 1 to 4.
    struct table_def *def;
    struct json *j;
    struct error e;
    const char *text = "{\"table\":\"d.t\",\"columns\":[{\"name\":\"a\",\"type\":\"BIGINT\"}],\"options\":{\"bucket.num\":\"4\"}}";
    assert_int_equal(json_parse(text, strlen(text), &j, &e), MINK_OK);
    assert_int_equal(table_def_from_json(j, &(struct table_defaults){1}, &def, &e), MINK_OK);
    json_free(j);
    assert_int_equal(propose(command_create_table(def, false)), MINK_OK);
    table_def_unref(def);
    return 0;
}

static int teardown(void **state) {
    if (w.store) stop_store(false);
    meta_close(w.meta, closed, NULL);
    sem_wait(&w.sem);
    shard_stop(w.shard);
    object_store_close(w.objects);
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", w.dir);
    return system(command);
}

// ---- steps

static void opened(struct stream_open *o) { sem_post(&w.sem); }
static struct stream_opened open_one(uint64_t id) {
    struct stream_opened streams[1] = {{.stream_id = id}};
    struct stream_open o = {.shard = w.shard, .on_done = opened, .streams = streams, .count = 1};
    stream_open(w.store, &o);
    sem_wait(&w.sem);
    assert_int_equal(o.code, MINK_OK);
    return streams[0];
}

struct append { struct stream_append a; sem_t done; };
static void appended(struct stream_append *a) { sem_post(&container_of(a, struct append, a)->done); }
static void begin_append(struct append *x, uint64_t stream, uint32_t epoch, uint64_t first, const char *text, int64_t ts) {
    struct error e;
    *x = (struct append){.a = {.shard = w.shard, .on_done = appended, .stream_id = stream, .epoch = epoch, .offset_first = first, .offset_end = first + 1, .batches = 1, .ts_min_ms = ts, .ts_max_ms = ts}};
    sem_init(&x->done, 0, 0);
    slices_take(&x->a.payload, slice_copy(text, strlen(text)));
    x->a.crc32c = crc32c(text, strlen(text));
    assert_int_equal(stream_admit(w.store, strlen(text), &e), MINK_OK);
    stream_append(w.store, &x->a);
}
static enum mink_code append(uint64_t stream, uint32_t epoch, uint64_t first, const char *text) {
    struct append x;
    begin_append(&x, stream, epoch, first, text, (int64_t)first);
    sem_wait(&x.done);
    if (x.a.code != MINK_OK) w.error = x.a.error;
    return x.a.code;
}

static void read_done(struct stream_read *r) { sem_post(&w.sem); }
// Everything from an offset on, as one text.
static enum mink_code read_text(uint64_t stream, uint64_t offset, char *out, size_t size) {
    out[0] = 0;
    for (;;) {
        struct stream_read r = {.shard = w.shard, .on_done = read_done, .stream_id = stream, .offset = offset, .bytes_max = 10};
        stream_read(w.store, &r);
        sem_wait(&w.sem);
        if (r.code != MINK_OK) w.error = r.error;
        if (r.code != MINK_OK || r.block_count == 0) return r.code;
        for (uint32_t i = 0; i < r.block_count; i++) {
            assert_true(r.blocks[i].offset_first <= offset && r.blocks[i].offset_end > offset);
            offset = r.blocks[i].offset_end;
            for (uint32_t k = 0; k < r.blocks[i].payload.count; k++) snprintf(out + strlen(out), size - strlen(out), "%.*s", (int)r.blocks[i].payload.items[k].size, r.blocks[i].payload.items[k].data);
        }
        stream_blocks_free(r.blocks, r.block_count);
    }
}

static void job_done(struct stream_job *j) { sem_post(&w.sem); }
static enum mink_code job(void (*run)(struct stream_store *, struct stream_job *), uint64_t *count) {
    struct stream_job j = {.shard = w.shard, .on_done = job_done};
    run(w.store, &j);
    sem_wait(&w.sem);
    if (count) *count = j.count;
    return j.code;
}

static void taken_over(struct stream_takeover *t) { sem_post(&w.sem); }
static enum mink_code take_over(uint64_t incarnation, struct stream_takeover *out) {
    assert_int_equal(propose(command_declare_dead(incarnation)), MINK_OK);
    struct stream_takeover t = {.shard = w.shard, .on_done = taken_over, .incarnation = incarnation};
    stream_takeover(w.store, &t);
    sem_wait(&w.sem);
    if (out) *out = t;
    w.error = t.error;
    return t.code;
}

struct count { const char *prefix; int n; char last[128]; };
static bool count_key(void *ctx, const char *key, struct slice data) {
    struct count *c = ctx;
    if (strncmp(key, c->prefix, strlen(c->prefix)) == 0) {
        c->n++;
        snprintf(c->last, sizeof c->last, "%s", key);
    }
    return true;
}
static struct count count_objects(const char *prefix) {
    struct count c = {.prefix = prefix};
    object_memory_visit(w.objects, count_key, &c);
    return c;
}

// ---- tests

static void appends_are_read_back_from_memory_and_then_from_objects(void **state) {
    char text[256];
    struct stream_opened s1 = open_one(1), s2 = open_one(2);
    assert_int_equal(s1.epoch, 1);
    assert_int_equal(append(1, s1.epoch, 0, "a"), MINK_OK);
    assert_int_equal(append(2, s2.epoch, 0, "X"), MINK_OK);
    assert_int_equal(append(1, s1.epoch, 1, "b"), MINK_OK);
    assert_int_equal(read_text(1, 0, text, sizeof text), MINK_OK);
    assert_string_equal(text, "ab");
    assert_int_equal(read_text(1, 1, text, sizeof text), MINK_OK);
    assert_string_equal(text, "b");
    assert_int_equal(job(stream_commit_now, NULL), MINK_OK);
    assert_int_equal(count_objects("obj/").n, 1); // a set object for both
    stop_store(false);
    assert_int_equal(start_store(), MINK_OK); // a new process: nothing in memory
    assert_int_equal(read_text(1, 0, text, sizeof text), MINK_OK);
    assert_string_equal(text, "ab");
    assert_int_equal(read_text(2, 0, text, sizeof text), MINK_OK);
    assert_string_equal(text, "X");
    assert_int_equal(read_text(1, 3, text, sizeof text), MINK_OUT_OF_RANGE);
    assert_string_equal(w.error.message, "offset 3 is outside 0 to 2");
}

static void what_was_acknowledged_before_a_crash_is_there_after_the_takeover(void **state) {
    char text[4096], want[4096] = "";
    struct stream_opened s = open_one(1);
    for (int i = 0; i < 100; i++) {
        char one[8];
        snprintf(one, sizeof one, "%d,", i);
        assert_int_equal(append(1, s.epoch, (uint64_t)i, one), MINK_OK);
        strcat(want, one); // banned-ok: bounded by the loop
        if (i == 40) assert_int_equal(job(stream_commit_now, NULL), MINK_OK);
    }
    uint64_t old = w.incarnation;
    stop_store(true);
    assert_int_equal(start_store(), MINK_OK);
    assert_true(w.incarnation > old);
    struct stream_takeover t;
    assert_int_equal(take_over(old, &t), MINK_OK);
    assert_true(t.objects > 0);
    assert_int_equal(read_text(1, 0, text, sizeof text), MINK_OK);
    assert_string_equal(text, want);
    struct stream_opened again = open_one(1);
    assert_int_equal(again.epoch, s.epoch + 1);
    assert_int_equal(again.end, 100);
    assert_int_equal(append(1, again.epoch, 100, "new"), MINK_OK);
    assert_int_equal(take_over(old, &t), MINK_OK); // again: the same answer
    assert_int_equal(t.objects, 0);
}

static void a_sealed_owner_is_fenced_by_its_next_append(void **state) {
    struct stream_opened s = open_one(1);
    assert_int_equal(append(1, s.epoch, 0, "a"), MINK_OK);
    struct stream_store *zombie = w.store;
    uint64_t old = w.incarnation;
    assert_int_equal(start_store(), MINK_OK);
    struct stream_store *taker = w.store;
    assert_int_equal(take_over(old, NULL), MINK_OK);
    w.store = zombie;
    assert_int_equal(append(1, s.epoch, 1, "late"), MINK_UNKNOWN_OUTCOME);
    assert_string_equal(w.error.reason, "FENCED");
    assert_int_equal(append(1, s.epoch, 2, "later"), MINK_FENCED);
    stop_store(true);
    w.store = taker;
    char text[64];
    assert_int_equal(read_text(1, 0, text, sizeof text), MINK_OK);
    assert_string_equal(text, "a");
}

static void a_live_incarnation_is_not_walked(void **state) {
    struct stream_takeover t = {.shard = w.shard, .on_done = taken_over, .incarnation = w.incarnation};
    stream_takeover(w.store, &t);
    sem_wait(&w.sem);
    assert_int_equal(t.code, MINK_CONFLICT);
    assert_string_equal(t.error.reason, "INCARNATION_LIVE");
}

static void a_lost_reply_and_a_late_duplicate_do_no_harm(void **state) {
    stop_store(false);
    struct object_fault_profile profile = {.name = "lossy", .lost_reply_fraction = 0.3, .error_fraction = 0.1};
    struct object_store *plain = w.objects;
    w.objects = object_fault_new(plain, &profile, 7);
    assert_int_equal(start_store(), MINK_OK);
    struct stream_opened s = open_one(1);
    char text[4096], want[4096] = "";
    for (int i = 0; i < 40; i++) {
        char one[8];
        snprintf(one, sizeof one, "%d,", i);
        assert_int_equal(append(1, s.epoch, s.end + (uint64_t)i, one), MINK_OK);
        strcat(want, one); // banned-ok: bounded by the loop
    }
    assert_int_equal(job(stream_commit_now, NULL), MINK_OK);
    assert_int_equal(read_text(1, 0, text, sizeof text), MINK_OK);
    assert_string_equal(text, want);
}

struct flip { const char *key; size_t byte; struct slice copy; };
static bool take_copy(void *ctx, const char *key, struct slice data) {
    struct flip *f = ctx;
    if (strcmp(key, f->key) != 0) return true;
    f->copy = slice_copy(data.data, data.size);
    return false;
}
static void flip_bit(struct object_store *objects, const char *key, size_t byte) {
    struct flip f = {key, byte, {0}};
    object_memory_visit(objects, take_copy, &f);
    assert_true(byte < f.copy.size);
    ((uint8_t *)f.copy.data)[byte] ^= 0x10;
    object_memory_poke(objects, key, f.copy);
    slice_unref(&f.copy);
}

static void a_damaged_object_is_named_and_not_served(void **state) {
    struct stream_opened s = open_one(1);
    assert_int_equal(append(1, s.epoch, 0, "precious"), MINK_OK);
    assert_int_equal(job(stream_commit_now, NULL), MINK_OK);
    stop_store(false);
    struct count c = count_objects("obj/");
    assert_int_equal(c.n, 1);
    // One bit of the payload, behind the object's header and the block's.
    flip_bit(w.objects, c.last, 128 + 64 + 3);
    assert_int_equal(start_store(), MINK_OK);
    char text[64];
    assert_int_equal(read_text(1, 0, text, sizeof text), MINK_CORRUPT);
    assert_non_null(strstr(w.error.message, c.last));
    assert_non_null(strstr(w.error.message, "stream 1, offsets 0 to 1"));
}

static void a_vanished_acknowledged_object_stops_the_takeover(void **state) {
    struct stream_opened s = open_one(1);
    for (int i = 0; i < 4; i++) assert_int_equal(append(1, s.epoch, (uint64_t)i, "x"), MINK_OK);
    uint64_t old = w.incarnation;
    stop_store(true);
    char key[OBJECT_KEY_TEXT];
    object_key_wal(old, 2, key, sizeof key);
    object_memory_poke(w.objects, key, slice_empty());
    assert_int_equal(start_store(), MINK_OK);
    assert_int_equal(take_over(old, NULL), MINK_CORRUPT);
    assert_string_equal(w.error.reason, "ACKNOWLEDGED_OBJECT_LOST");
    assert_non_null(strstr(w.error.message, key));
}

static void trim_frees_objects_which_are_deleted_and_forgotten(void **state) {
    struct stream_opened s = open_one(1);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(append(1, s.epoch, (uint64_t)i, "x"), MINK_OK); // ts = offset
        assert_int_equal(job(stream_commit_now, NULL), MINK_OK);
    }
    assert_int_equal(count_objects("obj/").n, 6);
    struct stream_trim t = {.shard = w.shard, .on_done = (void (*)(struct stream_trim *))job_done, .stream_id = 1, .before_ms = 3, .bytes_keep = -1, .offset_max = UINT64_MAX};
    stream_trim(w.store, &t);
    sem_wait(&w.sem);
    assert_int_equal(t.code, MINK_OK);
    assert_int_equal(t.start, 3);
    uint64_t deleted = 0, total = 0;
    while (total < 3) {
        assert_int_equal(job(stream_delete_marked, &deleted), MINK_OK);
        total += deleted;
    }
    assert_int_equal(total, 3);
    assert_int_equal(count_objects("obj/").n, 3);
    char text[64];
    assert_int_equal(read_text(1, 0, text, sizeof text), MINK_OUT_OF_RANGE);
    assert_int_equal(read_text(1, 3, text, sizeof text), MINK_OK);
    assert_string_equal(text, "xxx");
    // By size: keep two bytes.
    t = (struct stream_trim){.shard = w.shard, .on_done = (void (*)(struct stream_trim *))job_done, .stream_id = 1, .before_ms = INT64_MIN, .bytes_keep = 2, .offset_max = UINT64_MAX};
    stream_trim(w.store, &t);
    sem_wait(&w.sem);
    assert_int_equal(t.start, 4);
}

static void sought(struct stream_seek *k) { sem_post(&w.sem); }
static uint64_t seek(uint64_t stream, int64_t ts) {
    struct stream_seek k = {.shard = w.shard, .on_done = sought, .stream_id = stream, .ts_ms = ts};
    stream_seek_time(w.store, &k);
    sem_wait(&w.sem);
    assert_int_equal(k.code, MINK_OK);
    return k.offset;
}

static void a_time_finds_its_offset_in_objects_and_in_memory(void **state) {
    struct stream_opened s = open_one(1);
    for (int i = 0; i < 20; i++) {
        struct append x;
        begin_append(&x, 1, s.epoch, (uint64_t)i, "x", 1000 + 10 * i);
        sem_wait(&x.done);
        if (i % 3 == 2 && i < 15) assert_int_equal(job(stream_commit_now, NULL), MINK_OK);
    }
    for (int i = 15; i < 20; i++) assert_int_equal(seek(1, 1000 + 10 * i), i);
    for (int i = 0; i < 15; i++) { // block granularity: at or before, never after
        uint64_t at = seek(1, 1000 + 10 * i);
        assert_true(at <= (uint64_t)i && at + 3 > (uint64_t)i);
    }
    assert_int_equal(seek(1, 0), 0);
    assert_int_equal(seek(1, 99999), 20);
}

static void the_sweep_removes_orphans_and_never_a_seal(void **state) {
    struct stream_opened s = open_one(1);
    for (int i = 0; i < 3; i++) assert_int_equal(append(1, s.epoch, (uint64_t)i, "x"), MINK_OK);
    uint64_t old = w.incarnation, count;
    stop_store(true);
    char orphan[OBJECT_KEY_TEXT], seal[OBJECT_KEY_TEXT];
    object_key((struct catalog_object_id){OBJECT_KIND_SET, old, 77}, orphan, sizeof orphan);
    object_memory_poke(w.objects, orphan, slice_borrow("junk", 4)); // an upload whose commit never came
    assert_int_equal(start_store(), MINK_OK);
    struct stream_takeover t;
    assert_int_equal(take_over(old, &t), MINK_OK);
    object_key_wal(old, t.seal_seq, seal, sizeof seal);
    assert_int_equal(job(stream_sweep_orphans, &count), MINK_OK);
    assert_int_equal(count_objects(orphan).n, 0);
    assert_int_equal(count_objects(seal).n, 1);
    char text[64];
    assert_int_equal(read_text(1, 0, text, sizeof text), MINK_OK);
    assert_string_equal(text, "xxx");
}

static void watched(struct stream_watch *x) { sem_post(&w.sem); }
static void a_watch_fires_when_the_high_watermark_passes_and_can_be_cancelled(void **state) {
    struct stream_opened s = open_one(1);
    struct stream_watch x = {.shard = w.shard, .on_done = watched, .stream_id = 1, .offset = 0};
    stream_watch(w.store, &x);
    assert_int_equal(append(1, s.epoch, 0, "x"), MINK_OK);
    sem_wait(&w.sem);
    assert_int_equal(x.code, MINK_OK);
    assert_int_equal(x.high_watermark, 1);
    x = (struct stream_watch){.shard = w.shard, .on_done = watched, .stream_id = 1, .offset = 1};
    stream_watch(w.store, &x);
    stream_watch_cancel(w.store, &x);
    sem_wait(&w.sem);
    assert_int_equal(x.code, MINK_CANCELLED);
    x = (struct stream_watch){.shard = w.shard, .on_done = watched, .stream_id = 999, .offset = 0};
    stream_watch(w.store, &x);
    sem_wait(&w.sem);
    assert_int_equal(x.code, MINK_NOT_FOUND);
}

static void unacknowledged_bytes_are_bounded(void **state) {
    stop_store(false);
    w.config.append_bytes_max = 100;
    assert_int_equal(start_store(), MINK_OK);
    struct error e;
    assert_int_equal(stream_admit(w.store, 60, &e), MINK_OK);
    assert_int_equal(stream_admit(w.store, 60, &e), MINK_OVERLOADED);
    assert_string_equal(e.reason, "APPEND_BYTES");
}

static void a_small_cache_commits_by_reference_and_still_reads_everything(void **state) {
    stop_store(false);
    w.config.tail_cache_bytes = 50;
    assert_int_equal(start_store(), MINK_OK);
    struct stream_opened s = open_one(1);
    char text[4096], want[4096] = "";
    for (int i = 0; i < 60; i++) {
        char one[16];
        snprintf(one, sizeof one, "%05d-----,", i);
        assert_int_equal(append(1, s.epoch, (uint64_t)i, one), MINK_OK);
        strcat(want, one); // banned-ok: bounded by the loop
    }
    assert_int_equal(read_text(1, 0, text, sizeof text), MINK_OK); // from WAL objects
    assert_string_equal(text, want);
    assert_int_equal(job(stream_commit_now, NULL), MINK_OK);
    assert_int_equal(count_objects("obj/").n, 0);
    assert_int_equal(read_text(1, 0, text, sizeof text), MINK_OK);
    assert_string_equal(text, want);
    stop_store(false);
    assert_int_equal(start_store(), MINK_OK);
    assert_int_equal(read_text(1, 0, text, sizeof text), MINK_OK);
    assert_string_equal(text, want);
}

// ---- the format

static struct slice sample_object(void) {
    struct object_writer out;
    struct object_header h = {.kind = OBJECT_KIND_SET, .creator = 5, .subject = 9, .created_ms = 1234567890123};
    memset(h.cluster_id, 0xc1, 16);
    memset(h.content_id, 0x1d, 16);
    object_writer_begin(&out, &h);
    for (uint64_t i = 0; i < 3; i++) {
        struct slices payload = {0};
        char text[16];
        int n = snprintf(text, sizeof text, "payload-%d%s", (int)i, i == 1 ? "!" : "");
        slices_take(&payload, slice_copy(text, (size_t)n));
        object_writer_add(&out, &(struct object_block){.stream = 10 + i, .offset_first = 5, .offset_end = 7, .ts_min = 1, .ts_max = 2, .epoch = 3, .batches = 2, .payload_size = (uint32_t)n, .payload_crc32c = crc32c(text, (size_t)n)}, &payload, 0, 1);
        slices_deinit(&payload);
    }
    object_writer_finish(&out);
    struct slice s = slices_join(&out.body);
    assert_int_equal(crc32c(s.data, s.size), out.crc32c);
    object_writer_deinit(&out);
    return s;
}

static enum mink_code whole_object(struct slice s) {
    struct object_header h;
    struct object_footer f;
    struct object_block *blocks;
    struct error e;
    if (s.size < OBJECT_HEADER_SIZE + OBJECT_FOOTER_SIZE) return MINK_CORRUPT;
    MINK_TRY(object_header_decode(s, &h, &e));
    MINK_TRY(object_footer_decode(slice_view(s, s.size - OBJECT_FOOTER_SIZE, OBJECT_FOOTER_SIZE), &f, &e));
    if (f.object_size != s.size || memcmp(f.content_id, h.content_id, 16) != 0 || f.kind != h.kind) return MINK_CORRUPT;
    MINK_TRY(object_index_decode(slice_view(s, f.index_position, f.index_size), &f, &blocks, &e));
    enum mink_code code = MINK_OK;
    for (uint32_t i = 0; i < f.block_count && code == MINK_OK; i++) code = object_block_check(slice_view(s, blocks[i].position, object_block_stored_size(&blocks[i])), &blocks[i], &e);
    mem_free(blocks);
    return code;
}

static void every_bit_of_an_object_is_guarded(void **state) {
    struct slice s = sample_object();
    assert_int_equal(whole_object(s), MINK_OK);
    int missed = 0;
    for (size_t bit = 0; bit < s.size * 8; bit++) {
        ((uint8_t *)s.data)[bit / 8] ^= (uint8_t)(1 << bit % 8);
        missed += whole_object(s) == MINK_OK;
        ((uint8_t *)s.data)[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    // Only the zeros between blocks are nobody's: 7 + 6 + 7 bytes.
    assert_int_equal(missed, (7 + 6 + 7) * 8);
    slice_unref(&s);
}

static void truncated_objects_are_refused(void **state) {
    struct slice s = sample_object();
    for (size_t size = 0; size < s.size; size++) assert_int_not_equal(whole_object(slice_view(s, 0, size)), MINK_OK);
    slice_unref(&s);
}

static void keys_are_the_documented_ones(void **state) {
    char key[OBJECT_KEY_TEXT];
    struct catalog_object_id id;
    object_key_wal(0x2a, 0x1f, key, sizeof key);
    assert_int_equal(strlen(key), strlen("wal/hh/000000002a/000000001f"));
    assert_string_equal(key + 6, "/000000002a/000000001f");
    assert_true(object_key_parse(key, &id));
    assert_int_equal(id.incarnation, 0x2a);
    assert_int_equal(id.number, 0x1f);
    object_key((struct catalog_object_id){OBJECT_KIND_STREAM, 7, 3}, key, sizeof key);
    assert_string_equal(key + 6, "/0000000007-000003");
    assert_true(object_key_parse(key, &id));
    assert_false(object_key_parse("obj/00/zz", &id));
    assert_false(object_key_parse("cluster.json", &id));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bit_of_an_object_is_guarded),
        cmocka_unit_test(truncated_objects_are_refused),
        cmocka_unit_test(keys_are_the_documented_ones),
        TEST(appends_are_read_back_from_memory_and_then_from_objects),
        TEST(what_was_acknowledged_before_a_crash_is_there_after_the_takeover),
        TEST(a_sealed_owner_is_fenced_by_its_next_append),
        TEST(a_live_incarnation_is_not_walked),
        TEST(a_lost_reply_and_a_late_duplicate_do_no_harm),
        TEST(a_damaged_object_is_named_and_not_served),
        TEST(a_vanished_acknowledged_object_stops_the_takeover),
        TEST(trim_frees_objects_which_are_deleted_and_forgotten),
        TEST(a_time_finds_its_offset_in_objects_and_in_memory),
        TEST(the_sweep_removes_orphans_and_never_a_seal),
        TEST(a_watch_fires_when_the_high_watermark_passes_and_can_be_cancelled),
        TEST(unacknowledged_bytes_are_bounded),
        TEST(a_small_cache_commits_by_reference_and_still_reads_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
