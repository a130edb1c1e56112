// SPDX-License-Identifier: Apache-2.0
// The command log on SQLite: real files, real processes.
#include "meta_testing.h"

#include "base/clock.h"

#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64], path[128];

static int setup(void **state) {
    snprintf(folder, sizeof folder, "/tmp/mink-meta-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/mink.db", folder);
    return 0;
}

static int teardown(void **state) {
    static const char *const names[] = {"mink.db", "mink.db-wal", "mink.db-shm", "mink.db-journal", "mink.db.lock"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char name[256];
        snprintf(name, sizeof name, "%s/%s", folder, names[i]);
        unlink(name);
    }
    return rmdir(folder);
}

// ---- requests, waited for

struct asking { struct meta_log_request request; sem_t done; };

static void on_answer(struct meta_log_request *r) { sem_post(&container_of(r, struct asking, request)->done); }

static struct meta_log_request ask(struct shard *s, struct meta_log *log, struct meta_log_request r) {
    struct asking a = {.request = r};
    sem_init(&a.done, 0, 0);
    a.request.shard = s;
    a.request.on_done = on_answer;
    log->ops->submit(log, &a.request);
    sem_wait(&a.done);
    sem_destroy(&a.done);
    return a.request;
}

static struct meta_log_request append(struct shard *s, struct meta_log *log, uint64_t seq, const char *const *texts, uint32_t count) {
    struct slice commands[8];
    for (uint32_t i = 0; i < count; i++) commands[i] = slice_borrow(texts[i], strlen(texts[i]));
    return ask(s, log, (struct meta_log_request){.op = META_LOG_APPEND, .seq = seq, .commands = commands, .command_count = count});
}

static struct meta_log *open_log(void) {
    struct meta_log *log;
    struct error e;
    if (meta_log_sqlite_open(path, &log, &e) != MINK_OK) fail_msg("%s", e.message);
    return log;
}

static void refuse_open(enum mink_code code, const char *reason) {
    struct meta_log *log;
    struct error e = {0};
    assert_int_equal(meta_log_sqlite_open(path, &log, &e), code);
    assert_string_equal(e.reason, reason);
    assert_non_null(strstr(e.message, path));
}

static sqlite3 *raw(void) {
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    return db;
}

static void raw_execute(sqlite3 *db, const char *sql) {
    char *message = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK) fail_msg("%s: %s", sql, message);
}

static void rows_come_back_in_order_after_a_restart(void **state) {
    struct shard *s = shard_start("test");
    struct meta_log *log = open_log();
    struct meta_log_request r = append(s, log, 1, (const char *const[]){"one", "two", "three"}, 3);
    assert_int_equal(r.code, MINK_OK);
    assert_int_equal(r.head, 3);
    r = append(s, log, 3, (const char *const[]){"x"}, 1);
    assert_int_equal(r.code, MINK_CONFLICT);
    assert_int_equal(r.head, 3);
    r = append(s, log, 5, (const char *const[]){"x"}, 1);
    assert_int_equal(r.code, MINK_CONFLICT);
    assert_string_equal(r.error.message, "command 5: the log ends at 3");
    log->ops->close(log);
    log = open_log();
    r = ask(s, log, (struct meta_log_request){.op = META_LOG_HEAD});
    assert_int_equal(r.head, 3);
    r = ask(s, log, (struct meta_log_request){.op = META_LOG_READ, .seq = 1, .rows_max = 10});
    assert_int_equal(r.row_count, 2);
    assert_int_equal(r.rows[0].seq, 2);
    assert_memory_equal(r.rows[0].command.data, "two", 3);
    assert_int_equal(r.rows[1].seq, 3);
    meta_rows_free(r.rows, r.row_count);
    r = ask(s, log, (struct meta_log_request){.op = META_LOG_READ, .seq = 0, .rows_max = 2});
    assert_int_equal(r.row_count, 2);
    meta_rows_free(r.rows, r.row_count);
    r = ask(s, log, (struct meta_log_request){.op = META_LOG_LOAD_CHECKPOINT});
    assert_int_equal(r.code, MINK_OK);
    assert_int_equal(r.state.size, 0);
    log->ops->close(log);
    shard_stop(s);
}

static void a_checkpoint_cuts_the_log_and_keeps_a_margin(void **state) {
    struct shard *s = shard_start("test");
    struct meta_log *log = open_log();
    for (uint64_t seq = 1; seq <= 1500; seq += 5) assert_int_equal(append(s, log, seq, (const char *const[]){"a", "b", "c", "d", "e"}, 5).code, MINK_OK);
    struct meta_log_request r = ask(s, log, (struct meta_log_request){.op = META_LOG_SAVE_CHECKPOINT, .seq = 1400, .state = slice_borrow("state", 5)});
    assert_int_equal(r.code, MINK_OK);
    r = ask(s, log, (struct meta_log_request){.op = META_LOG_READ, .seq = 0, .rows_max = 1});
    assert_int_equal(r.rows[0].seq, 401);
    meta_rows_free(r.rows, r.row_count);
    assert_int_equal(ask(s, log, (struct meta_log_request){.op = META_LOG_SAVE_CHECKPOINT, .seq = 1500, .state = slice_borrow("newer", 5)}).code, MINK_OK);
    // An older one that comes late does not hide it.
    assert_int_equal(ask(s, log, (struct meta_log_request){.op = META_LOG_SAVE_CHECKPOINT, .seq = 1450, .state = slice_borrow("older", 5)}).code, MINK_OK);
    log->ops->close(log);
    log = open_log();
    r = ask(s, log, (struct meta_log_request){.op = META_LOG_LOAD_CHECKPOINT});
    assert_int_equal(r.seq, 1500);
    assert_int_equal(r.state.size, 5);
    assert_memory_equal(r.state.data, "newer", 5);
    slice_unref(&r.state);
    log->ops->close(log);
    // A log that is empty behind its checkpoint goes on from there.
    sqlite3 *db = raw();
    raw_execute(db, "DELETE FROM mink_log");
    sqlite3_close(db);
    log = open_log();
    assert_int_equal(ask(s, log, (struct meta_log_request){.op = META_LOG_HEAD}).head, 1500);
    assert_int_equal(append(s, log, 1501, (const char *const[]){"a"}, 1).code, MINK_OK);
    log->ops->close(log);
    shard_stop(s);
}

static void databases_that_are_not_ours_are_refused_untouched(void **state) {
    sqlite3 *db = raw();
    raw_execute(db, "CREATE TABLE music(title TEXT)");
    sqlite3_close(db);
    refuse_open(MINK_INVALID, "FOREIGN_DATABASE");
    db = raw();
    sqlite3_stmt *stmt;
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT count(*) FROM sqlite_schema", -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int(stmt, 0), 1);
    sqlite3_finalize(stmt);
    assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA journal_mode", -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(stmt, 0), "delete");
    sqlite3_finalize(stmt);
    sqlite3_close(db);
}

static void a_newer_schema_is_refused_by_name(void **state) {
    struct meta_log *log = open_log(), *again;
    struct error e;
    log->ops->close(log);
    sqlite3 *db = raw();
    raw_execute(db, "UPDATE mink_meta SET value = '2' WHERE key = 'schema_version'");
    sqlite3_close(db);
    assert_int_equal(meta_log_sqlite_open(path, &again, &e), MINK_UNSUPPORTED);
    char text[256];
    snprintf(text, sizeof text, "%s has schema version 2; this version of Mink knows 1", path);
    assert_string_equal(e.message, text);
    assert_string_equal(e.hint, "upgrade Mink");
    db = raw();
    raw_execute(db, "DELETE FROM mink_meta");
    sqlite3_close(db);
    refuse_open(MINK_CORRUPT, "DATABASE_CORRUPT");
}

static void a_corrupt_file_is_named(void **state) {
    int fd = open(path, O_RDWR | O_CREAT, 0644);
    for (int i = 0; i < 100; i++) assert_int_equal(write(fd, "this is no database at all, but text of some length.....", 56), 56);
    refuse_open(MINK_CORRUPT, "DATABASE_CORRUPT");
    close(fd);
    unlink(path);
    // Damage in the middle comes out when it is read.
    struct shard *s = shard_start("test");
    struct meta_log *log = open_log();
    for (uint64_t seq = 1; seq <= 2000; seq += 5) assert_int_equal(append(s, log, seq, (const char *const[]){"aaaaaaaaaaaaaaaaaaaa", "b", "c", "d", "e"}, 5).code, MINK_OK);
    log->ops->close(log); // the last connection writes everything into the file itself
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    fd = open(path, O_RDWR);
    uint8_t garbage[4096];
    memset(garbage, 0x5a, sizeof garbage);
    for (off_t at = 4 * 4096; at < st.st_size; at += 4096) assert_int_equal(pwrite(fd, garbage, sizeof garbage, at), sizeof garbage);
    close(fd);
    log = open_log();
    struct meta_log_request r = ask(s, log, (struct meta_log_request){.op = META_LOG_READ, .seq = 0, .rows_max = 2000});
    assert_int_equal(r.code, MINK_CORRUPT);
    assert_null(r.rows);
    assert_non_null(strstr(r.error.message, path));
    assert_string_equal(r.error.hint, "restore the file from a backup");
    log->ops->close(log);
    shard_stop(s);
}

static void a_path_that_cannot_be_opened_is_named(void **state) {
    char saved[128];
    memcpy(saved, path, sizeof saved);
    snprintf(path, sizeof path, "%s/none/mink.db", folder);
    refuse_open(MINK_DENIED, "DATABASE_NOT_WRITABLE");
    struct meta_process_lock *lock;
    struct error e;
    assert_int_equal(meta_process_lock_take(path, &lock, &e), MINK_DENIED);
    memcpy(path, saved, sizeof saved);
}

static void a_locked_database_is_unavailable_after_a_while(void **state) {
    struct shard *s = shard_start("test");
    struct meta_log *log = open_log();
    sqlite3 *db = raw();
    raw_execute(db, "BEGIN IMMEDIATE");
    uint64_t began = clock_monotonic_ns();
    struct meta_log_request r = append(s, log, 1, (const char *const[]){"x"}, 1);
    assert_int_equal(r.code, MINK_UNAVAILABLE);
    char text[256];
    snprintf(text, sizeof text, "append to %s: the database is locked by another process", path);
    assert_string_equal(r.error.message, text);
    assert_true(clock_monotonic_ns() - began < 30 * NS_PER_S);
    // Reading goes on meanwhile, and afterwards everything.
    assert_int_equal(ask(s, log, (struct meta_log_request){.op = META_LOG_HEAD}).code, MINK_OK);
    raw_execute(db, "ROLLBACK");
    sqlite3_close(db);
    assert_int_equal(append(s, log, 1, (const char *const[]){"x"}, 1).code, MINK_OK);
    log->ops->close(log);
    shard_stop(s);
}

static void one_process_at_a_time_has_the_lock(void **state) {
    int pipe_fds[2];
    char byte;
    assert_int_equal(pipe(pipe_fds), 0);
    pid_t child = fork();
    if (child == 0) {
        struct meta_process_lock *lock;
        struct error e;
        if (meta_process_lock_take(path, &lock, &e) != MINK_OK) _exit(1);
        if (write(pipe_fds[1], "x", 1) != 1) _exit(2);
        for (;;) pause();
    }
    assert_int_equal(read(pipe_fds[0], &byte, 1), 1);
    struct meta_process_lock *lock;
    struct error e;
    assert_int_equal(meta_process_lock_take(path, &lock, &e), MINK_CONFLICT);
    assert_string_equal(e.reason, "IN_USE");
    char text[256];
    snprintf(text, sizeof text, "%s is in use by process %ld", path, (long)child);
    assert_string_equal(e.message, text);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_int_equal(meta_process_lock_take(path, &lock, &e), MINK_OK);
    meta_process_lock_release(lock);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
}

// ---- whole processes with meta on the log

struct node { struct shard *shard; struct meta *meta; sem_t done; enum mink_code code; struct error error; };

static void on_ready(void *ctx, enum mink_code code, const struct error *e) {
    struct node *n = ctx;
    n->code = code;
    if (e) n->error = *e;
    sem_post(&n->done);
}
static void on_closed(void *ctx) { sem_post(&((struct node *)ctx)->done); }

static bool node_open(struct node *n) {
    struct meta_log *log;
    if (meta_log_sqlite_open(path, &log, &n->error) != MINK_OK) return false;
    n->shard = shard_start("meta");
    sem_init(&n->done, 0, 0);
    meta_open(&(struct meta_config){.shard = n->shard, .log = log, .checkpoint_every = 500}, &n->meta, on_ready, n);
    sem_wait(&n->done);
    return n->code == MINK_OK;
}

static void node_close(struct node *n) {
    meta_close(n->meta, on_closed, n);
    sem_wait(&n->done);
    shard_stop(n->shard);
    sem_destroy(&n->done);
}

struct proposed { struct meta_proposal proposal; sem_t *done; enum mink_code code; uint64_t id; };

static void on_proposed(struct meta_proposal *m) {
    struct proposed *p = container_of(m, struct proposed, proposal);
    p->code = m->result.code;
    p->id = m->result.id;
    sem_post(p->done);
}

static enum mink_code propose(struct node *n, struct command *take_command, uint64_t *out_id) {
    struct proposed p = {.done = &n->done};
    meta_propose(n->meta, &p.proposal, n->shard, take_command, on_proposed);
    sem_wait(&n->done);
    if (out_id) *out_id = p.id;
    return p.code;
}

// The child creates databases 0, 1, 2, … and reports each that was acknowledged.
static void create_and_report(int fd) {
    struct node n;
    if (!node_open(&n)) _exit(1);
    for (uint32_t i = 0;; i++) {
        char name[16];
        snprintf(name, sizeof name, "db%05u", i);
        enum mink_code code = propose(&n, command_create_database(name, "", false), NULL);
        if (code == MINK_EXISTS) continue; // of an earlier round
        if (code != MINK_OK || write(fd, &i, sizeof i) != sizeof i) _exit(2);
    }
}

static void what_was_acknowledged_survives_kill_9(void **state) {
    uint32_t acknowledged = 0, expected = 0;
    for (int round = 0; round < 6; round++) {
        int pipe_fds[2];
        assert_int_equal(pipe(pipe_fds), 0);
        pid_t child = fork();
        if (child == 0) create_and_report(pipe_fds[1]);
        close(pipe_fds[1]);
        uint32_t i;
        for (int k = 0; k < 40 + round * 17; k++) {
            assert_int_equal(read(pipe_fds[0], &i, sizeof i), sizeof i);
            assert_int_equal(i, expected);
            expected++;
        }
        kill(child, SIGKILL);
        while (read(pipe_fds[0], &i, sizeof i) == sizeof i) expected++;
        waitpid(child, NULL, 0);
        close(pipe_fds[0]);
        acknowledged = expected;
        struct node n;
        if (!node_open(&n)) fail_msg("%s", n.error.message);
        char **names;
        uint32_t count;
        catalog_list_databases(meta_catalog(n.meta), &names, &count);
        assert_in_range(count, acknowledged, acknowledged + 1); // one more may have been on its way
        for (uint32_t k = 0; k < count; k++) {
            char name[16];
            snprintf(name, sizeof name, "db%05u", k);
            assert_string_equal(names[k], name);
        }
        catalog_free_names(names, count);
        expected = count;
        node_close(&n);
    }
}

#define CONTESTED 300
static void contend(int fd, uint32_t who) {
    struct node n;
    uint8_t won[CONTESTED];
    if (!node_open(&n)) {
        fprintf(stderr, "%s\n", n.error.message);
        _exit(1);
    }
    uint64_t ids[CONTESTED];
    for (uint32_t i = 0; i < CONTESTED; i++) {
        char name[16];
        snprintf(name, sizeof name, "db%05u", i);
        enum mink_code code = propose(&n, command_create_database(name, "", false), NULL);
        if (code != MINK_OK && code != MINK_EXISTS) _exit(2);
        won[i] = code == MINK_OK;
        if (propose(&n, command_allocate_writer_ids(1), &ids[i]) != MINK_OK) _exit(3);
    }
    node_close(&n);
    if (write(fd, won, sizeof won) != sizeof won || write(fd, ids, sizeof ids) != sizeof ids) _exit(4);
    _exit(0);
}

static void two_processes_append_to_one_file(void **state) {
    int fds[2][2];
    pid_t children[2];
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(pipe(fds[i]), 0);
        children[i] = fork();
        if (children[i] == 0) contend(fds[i][1], i);
        close(fds[i][1]);
    }
    uint8_t won[2][CONTESTED], seen[2 * CONTESTED + 1] = {0};
    uint64_t ids[2][CONTESTED];
    for (int i = 0; i < 2; i++) {
        int status;
        assert_int_equal(read(fds[i][0], won[i], sizeof won[i]), sizeof won[i]);
        assert_int_equal(read(fds[i][0], ids[i], sizeof ids[i]), sizeof ids[i]);
        close(fds[i][0]);
        waitpid(children[i], &status, 0);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    for (int i = 0; i < CONTESTED; i++) {
        assert_int_equal(won[0][i] + won[1][i], 1);
        for (int k = 0; k < 2; k++) {
            assert_in_range(ids[k][i], 1, 2 * CONTESTED);
            assert_int_equal(seen[ids[k][i]]++, 0);
        }
    }
    struct node n;
    if (!node_open(&n)) fail_msg("%s", n.error.message);
    assert_int_equal(catalog_position(meta_catalog(n.meta)), 4 * CONTESTED);
    node_close(&n);
}

static void several_processes_create_the_file_at_once(void **state) {
    for (int round = 0; round < 20; round++) {
        pid_t children[6];
        int start[2];
        char byte;
        assert_int_equal(pipe(start), 0);
        for (int i = 0; i < 6; i++) {
            children[i] = fork();
            if (children[i] != 0) continue;
            struct meta_log *log;
            struct error e;
            close(start[1]);
            if (read(start[0], &byte, 1) != 0) _exit(2); // all begin when the parent lets go
            if (meta_log_sqlite_open(path, &log, &e) == MINK_OK) _exit(0);
            fprintf(stderr, "%s\n", e.message);
            _exit(1);
        }
        close(start[0]);
        close(start[1]);
        int failed = 0;
        for (int i = 0; i < 6; i++) {
            int status;
            waitpid(children[i], &status, 0);
            failed += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
        }
        assert_int_equal(failed, 0);
        assert_int_equal(unlink(path), 0);
        char name[256];
        snprintf(name, sizeof name, "%s-wal", path);
        unlink(name);
        snprintf(name, sizeof name, "%s-shm", path);
        unlink(name);
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(rows_come_back_in_order_after_a_restart),
        TEST(a_checkpoint_cuts_the_log_and_keeps_a_margin),
        TEST(databases_that_are_not_ours_are_refused_untouched),
        TEST(a_newer_schema_is_refused_by_name),
        TEST(a_corrupt_file_is_named),
        TEST(a_path_that_cannot_be_opened_is_named),
        TEST(a_locked_database_is_unavailable_after_a_while),
        TEST(one_process_at_a_time_has_the_lock),
        TEST(several_processes_create_the_file_at_once),
        TEST(what_was_acknowledged_survives_kill_9),
        TEST(two_processes_append_to_one_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
