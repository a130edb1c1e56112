// SPDX-License-Identifier: Apache-2.0
// The command log in SQLite. SQLite blocks, so it has a thread of its own; requests come through a queue and complete on the asking shard.
//
// Journal WAL with synchronous=FULL: a commit is on disk when it returns. Several processes may share the file: an append checks inside its
// transaction that the position is still the next one. Others' rows are found by meta's looks at the head (meta_sync, polling); a process that
// holds the lock file (meta_process_lock) has no others, so nothing is polled.
#include "meta/meta.h"

#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define SCHEMA_VERSION 1
#define BUSY_MS 5000
#define KEPT_BEHIND_CHECKPOINT 1000

struct sqlite_log {
    struct meta_log log;
    char *path;
    sqlite3 *db; // the thread's, after open
    sqlite3_stmt *insert, *head, *read;
    struct thread *thread;
    pthread_mutex_t lock; // guards first, last, stopping
    pthread_cond_t wake;
    struct task *first, **last;
    bool stopping;
};

static enum mink_code sqlite_error(struct sqlite_log *l, const char *doing, struct error *e) {
    int result = sqlite3_extended_errcode(l->db);
    const char *message = sqlite3_errmsg(l->db);
    switch (result & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        error_set(e, MINK_UNAVAILABLE, "DATABASE_LOCKED", "%s %s: the database is locked by another process", doing, l->path);
        error_hint(e, "close what holds it open in a transaction (another tool?); this is tried again");
        return MINK_UNAVAILABLE;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        error_set(e, MINK_CORRUPT, "DATABASE_CORRUPT", "%s %s: %s", doing, l->path, message);
        error_hint(e, "restore the file from a backup");
        return MINK_CORRUPT;
    case SQLITE_FULL: return error_set(e, MINK_UNAVAILABLE, "DATABASE_FULL", "%s %s: no space left", doing, l->path);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN: return error_set(e, MINK_DENIED, "DATABASE_NOT_WRITABLE", "%s %s: %s", doing, l->path, message);
    case SQLITE_IOERR: return error_set(e, MINK_UNAVAILABLE, "DATABASE_IO", "%s %s: %s", doing, l->path, message);
    case SQLITE_TOOBIG: return error_set(e, MINK_INVALID, "DATABASE_TOO_BIG", "%s %s: %s", doing, l->path, message);
    default: return error_set(e, MINK_UNAVAILABLE, "DATABASE", "%s %s: %s", doing, l->path, message);
    }
}

static bool execute(struct sqlite_log *l, const char *sql) { return sqlite3_exec(l->db, sql, NULL, NULL, NULL) == SQLITE_OK; }

static enum mink_code head_of(struct sqlite_log *l, uint64_t *out, struct error *e) {
    int step = sqlite3_step(l->head);
    *out = step == SQLITE_ROW ? (uint64_t)sqlite3_column_int64(l->head, 0) : 0;
    enum mink_code code = step == SQLITE_ROW ? MINK_OK : sqlite_error(l, "read", e);
    sqlite3_reset(l->head);
    return code;
}

static enum mink_code insert_all(struct sqlite_log *l, struct meta_log_request *r) {
    uint64_t head;
    MINK_TRY(head_of(l, &head, &r->error));
    r->head = head;
    if (head + 1 != r->seq) return error_set(&r->error, MINK_CONFLICT, "LOG_MOVED", "command %llu: the log ends at %llu", (unsigned long long)r->seq, (unsigned long long)head);
    for (uint32_t i = 0; i < r->command_count; i++) {
        sqlite3_bind_int64(l->insert, 1, (sqlite3_int64)(r->seq + i));
        sqlite3_bind_blob64(l->insert, 2, r->commands[i].data, r->commands[i].size, SQLITE_STATIC);
        int step = sqlite3_step(l->insert);
        sqlite3_reset(l->insert);
        if (step != SQLITE_DONE) return sqlite_error(l, "append to", &r->error);
    }
    return MINK_OK;
}

static enum mink_code append(struct sqlite_log *l, struct meta_log_request *r) {
    if (!execute(l, "BEGIN IMMEDIATE")) return sqlite_error(l, "append to", &r->error);
    enum mink_code code = insert_all(l, r);
    if (code == MINK_OK && !execute(l, "COMMIT")) {
        code = sqlite_error(l, "commit to", &r->error);
        // Pages that were written before the failure may survive a crash; reading the log tells.
        if (r->error.code == MINK_UNAVAILABLE && (sqlite3_extended_errcode(l->db) & 0xff) == SQLITE_IOERR) code = r->error.code = MINK_UNKNOWN_OUTCOME;
    }
    if (code != MINK_OK) execute(l, "ROLLBACK");
    else r->head = r->seq + r->command_count - 1;
    return code;
}

static enum mink_code read_rows(struct sqlite_log *l, struct meta_log_request *r) {
    r->rows = mem_new_array(struct meta_row, r->rows_max);
    sqlite3_bind_int64(l->read, 1, (sqlite3_int64)r->seq);
    sqlite3_bind_int64(l->read, 2, r->rows_max);
    int step;
    while ((step = sqlite3_step(l->read)) == SQLITE_ROW && r->row_count < r->rows_max) {
        struct meta_row *row = &r->rows[r->row_count++];
        row->seq = (uint64_t)sqlite3_column_int64(l->read, 0);
        row->command = slice_copy(sqlite3_column_blob(l->read, 1), (size_t)sqlite3_column_bytes(l->read, 1));
    }
    enum mink_code code = step == SQLITE_DONE ? MINK_OK : sqlite_error(l, "read", &r->error);
    sqlite3_reset(l->read);
    if (code == MINK_OK) return MINK_OK;
    meta_rows_free(r->rows, r->row_count);
    r->rows = NULL;
    r->row_count = 0;
    return code;
}

static enum mink_code save_checkpoint(struct sqlite_log *l, struct meta_log_request *r) {
    sqlite3_stmt *s = NULL;
    char drop[256];
    uint64_t keep_from = r->seq > KEPT_BEHIND_CHECKPOINT ? r->seq - KEPT_BEHIND_CHECKPOINT : 0;
    if (!execute(l, "BEGIN IMMEDIATE")) return sqlite_error(l, "checkpoint", &r->error);
    bool good = sqlite3_prepare_v2(l->db, "INSERT OR REPLACE INTO mink_checkpoint(seq, state) VALUES (?, ?)", -1, &s, NULL) == SQLITE_OK;
    if (good) {
        sqlite3_bind_int64(s, 1, (sqlite3_int64)r->seq);
        sqlite3_bind_blob64(s, 2, r->state.data, r->state.size, SQLITE_STATIC);
        good = sqlite3_step(s) == SQLITE_DONE;
    }
    sqlite3_finalize(s);
    snprintf(drop, sizeof drop, "DELETE FROM mink_checkpoint WHERE seq < %llu; DELETE FROM mink_log WHERE seq <= %llu", (unsigned long long)r->seq, (unsigned long long)keep_from);
    good = good && execute(l, drop) && execute(l, "COMMIT");
    if (good) return MINK_OK;
    enum mink_code code = sqlite_error(l, "checkpoint", &r->error);
    execute(l, "ROLLBACK");
    return code;
}

static enum mink_code load_checkpoint(struct sqlite_log *l, struct meta_log_request *r) {
    sqlite3_stmt *s = NULL;
    enum mink_code code = MINK_OK;
    if (sqlite3_prepare_v2(l->db, "SELECT seq, state FROM mink_checkpoint ORDER BY seq DESC LIMIT 1", -1, &s, NULL) != SQLITE_OK) return sqlite_error(l, "read", &r->error);
    int step = sqlite3_step(s);
    if (step == SQLITE_ROW) {
        r->seq = (uint64_t)sqlite3_column_int64(s, 0);
        r->state = slice_copy(sqlite3_column_blob(s, 1), (size_t)sqlite3_column_bytes(s, 1));
    } else if (step != SQLITE_DONE) {
        code = sqlite_error(l, "read", &r->error);
    }
    sqlite3_finalize(s);
    return code;
}

static void deliver(struct task *task) {
    struct meta_log_request *r = container_of(task, struct meta_log_request, task);
    r->on_done(r);
}

static void perform(struct sqlite_log *l, struct meta_log_request *r) {
    switch (r->op) {
    case META_LOG_APPEND: r->code = append(l, r); break;
    case META_LOG_READ: r->code = read_rows(l, r); break;
    case META_LOG_HEAD: r->code = head_of(l, &r->head, &r->error); break;
    case META_LOG_SAVE_CHECKPOINT: r->code = save_checkpoint(l, r); break;
    case META_LOG_LOAD_CHECKPOINT: r->code = load_checkpoint(l, r); break;
    }
    r->task.run = deliver;
    shard_post(r->shard, &r->task);
}

static void thread_main(void *ctx) {
    struct sqlite_log *l = ctx;
    pthread_mutex_lock(&l->lock);
    for (;;) {
        while (!l->first && !l->stopping) pthread_cond_wait(&l->wake, &l->lock);
        struct task *task = l->first;
        if (!task) break;
        l->first = task->next;
        if (!l->first) l->last = &l->first;
        pthread_mutex_unlock(&l->lock);
        perform(l, container_of(task, struct meta_log_request, task));
        pthread_mutex_lock(&l->lock);
    }
    pthread_mutex_unlock(&l->lock);
}

static void sqlite_submit(struct meta_log *base, struct meta_log_request *r) {
    struct sqlite_log *l = container_of(base, struct sqlite_log, log);
    r->task.next = NULL;
    pthread_mutex_lock(&l->lock);
    *l->last = &r->task;
    l->last = &r->task.next;
    pthread_mutex_unlock(&l->lock);
    pthread_cond_signal(&l->wake);
}

static void destroy(struct sqlite_log *l) {
    sqlite3_finalize(l->insert);
    sqlite3_finalize(l->head);
    sqlite3_finalize(l->read);
    sqlite3_close(l->db);
    mem_free(l->path);
    mem_free(l);
}

static void sqlite_close(struct meta_log *base) {
    struct sqlite_log *l = container_of(base, struct sqlite_log, log);
    pthread_mutex_lock(&l->lock);
    l->stopping = true;
    pthread_mutex_unlock(&l->lock);
    pthread_cond_signal(&l->wake);
    thread_join(l->thread);
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->wake);
    destroy(l);
}

static const struct meta_log_ops sqlite_ops = {sqlite_submit, sqlite_close};

// The one number that a query gives; false when the query fails.
static bool number_of(struct sqlite_log *l, const char *sql, int *out) {
    sqlite3_stmt *s = NULL;
    bool good = sqlite3_prepare_v2(l->db, sql, -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW;
    if (good) *out = sqlite3_column_int(s, 0);
    sqlite3_finalize(s);
    return good;
}

static enum mink_code check_version(struct sqlite_log *l, struct error *e) {
    int version = 0;
    if (!number_of(l, "SELECT value FROM mink_meta WHERE key = 'schema_version'", &version)) {
        if (sqlite3_errcode(l->db) != SQLITE_DONE && sqlite3_errcode(l->db) != SQLITE_OK) return sqlite_error(l, "read", e);
        return error_set(e, MINK_CORRUPT, "DATABASE_CORRUPT", "%s: mink_meta has no schema_version", l->path);
    }
    if (version == SCHEMA_VERSION) return MINK_OK;
    error_set(e, MINK_UNSUPPORTED, "NEWER_DATABASE", "%s has schema version %d; this version of Mink knows %d", l->path, version, SCHEMA_VERSION);
    error_hint(e, "upgrade Mink");
    return MINK_UNSUPPORTED;
}

// Mink's, of a version that is known: *out_exists. Empty: not. Nothing is written to a database that is another program's, or a newer Mink's.
static enum mink_code check_database(struct sqlite_log *l, bool *out_exists, struct error *e) {
    int found = 0; // one query, so that both numbers are of one moment: 0 empty, 1 another program's, 2 Mink's
    if (!number_of(l, "SELECT (count(*) > 0) + (count(*) FILTER (WHERE name = 'mink_meta') > 0) FROM sqlite_schema", &found)) return sqlite_error(l, "read", e);
    *out_exists = found == 2;
    if (found == 2) return check_version(l, e);
    if (found == 0) return MINK_OK;
    error_set(e, MINK_INVALID, "FOREIGN_DATABASE", "%s is a database of another program", l->path);
    error_hint(e, "give Mink a file of its own");
    return MINK_INVALID;
}

// Changing the journal's mode needs the file for oneself, and SQLite does not wait for it by its busy handler: when several processes create the
// file at once they get it one after the other.
static bool use_wal(struct sqlite_log *l) {
    for (int waited_ms = 0; !execute(l, "PRAGMA journal_mode=WAL"); waited_ms += 10) {
        if ((sqlite3_errcode(l->db) & 0xff) != SQLITE_BUSY || waited_ms >= BUSY_MS) return false;
        sqlite3_sleep(10);
    }
    return true;
}

static enum mink_code set_up(struct sqlite_log *l, struct error *e) {
    bool exists;
    if (!execute(l, "BEGIN IMMEDIATE")) return sqlite_error(l, "set up", e);
    enum mink_code code = check_database(l, &exists, e); // another process may have been faster
    if (code == MINK_OK && !exists &&
        !execute(l, "CREATE TABLE mink_meta(key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;"
                    "CREATE TABLE mink_log(seq INTEGER PRIMARY KEY, command BLOB NOT NULL);"
                    "CREATE TABLE mink_checkpoint(seq INTEGER PRIMARY KEY, state BLOB NOT NULL);"
                    "INSERT INTO mink_meta(key, value) VALUES ('schema_version', '1');"))
        code = sqlite_error(l, "set up", e);
    if (code == MINK_OK && !execute(l, "COMMIT")) code = sqlite_error(l, "set up", e);
    if (code != MINK_OK) execute(l, "ROLLBACK");
    return code;
}

static bool prepare(struct sqlite_log *l, const char *sql, sqlite3_stmt **out) { return sqlite3_prepare_v3(l->db, sql, -1, SQLITE_PREPARE_PERSISTENT, out, NULL) == SQLITE_OK; }

static enum mink_code open_database(struct sqlite_log *l, struct error *e) {
    bool exists;
    if (sqlite3_open_v2(l->path, &l->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK) return sqlite_error(l, "open", e);
    sqlite3_extended_result_codes(l->db, 1);
    sqlite3_busy_timeout(l->db, BUSY_MS);
    MINK_TRY(check_database(l, &exists, e));
    if (!use_wal(l) || !execute(l, "PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=1000;")) return sqlite_error(l, "open", e);
    if (!exists) MINK_TRY(set_up(l, e));
    // The log may be empty behind a checkpoint: its position then counts.
    if (!prepare(l, "INSERT INTO mink_log(seq, command) VALUES (?, ?)", &l->insert) ||
        !prepare(l, "SELECT max(coalesce((SELECT max(seq) FROM mink_log), 0), coalesce((SELECT max(seq) FROM mink_checkpoint), 0))", &l->head) ||
        !prepare(l, "SELECT seq, command FROM mink_log WHERE seq > ? ORDER BY seq LIMIT ?", &l->read))
        return sqlite_error(l, "open", e);
    return MINK_OK;
}

enum mink_code meta_log_sqlite_open(const char *path, struct meta_log **out, struct error *e) {
    struct sqlite_log *l = mem_new(struct sqlite_log);
    l->log.ops = &sqlite_ops;
    l->path = mem_strdup(path);
    l->last = &l->first;
    enum mink_code code = open_database(l, e);
    if (code != MINK_OK) {
        destroy(l);
        return code;
    }
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->wake, NULL);
    l->thread = thread_start("sqlite", thread_main, l);
    *out = &l->log;
    return MINK_OK;
}

// ---- the process lock

struct meta_process_lock { int fd; };

enum mink_code meta_process_lock_take(const char *path, struct meta_process_lock **out, struct error *e) {
    char text[32], *name = mem_printf("%s.lock", path);
    int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0644), failed = errno;
    if (fd < 0) error_set(e, MINK_DENIED, "DATABASE_NOT_WRITABLE", "%s: %s", name, strerror(failed));
    mem_free(name);
    if (fd < 0) return MINK_DENIED;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        ssize_t n = pread(fd, text, sizeof text - 1, 0);
        text[n > 0 ? n : 0] = 0;
        text[strcspn(text, "\n")] = 0;
        error_set(e, MINK_CONFLICT, "IN_USE", "%s is in use by process %s", path, text[0] ? text : "(unknown)");
        error_hint(e, "stop that process, or give this one another folder");
        close(fd);
        return MINK_CONFLICT;
    }
    int size = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)size, 0) != size) log_warn("lock.write", "path=\"%s.lock\" message=\"%s\"", path, strerror(errno));
    *out = mem_new(struct meta_process_lock);
    (*out)->fd = fd;
    return MINK_OK;
}

void meta_process_lock_release(struct meta_process_lock *lock) {
    close(lock->fd);
    mem_free(lock);
}
