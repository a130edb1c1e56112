// SPDX-License-Identifier: Apache-2.0
// The system calls that the store makes are interposed here, so that each can fail or end the process in its turn.
#include "object_testing.h"

#include "base/buffer.h"
#include "object/object_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

// ---- interposed calls: `armed` counts down over the calls of the kinds in `kinds`; at 0 the call fails, or the process ends
enum { CALL_PWRITEV = 1, CALL_FDATASYNC = 2, CALL_FSYNC = 4, CALL_LINK = 8, CALL_UNLINK = 16, CALL_OPEN = 32, CALL_PREAD = 64, CALL_READDIR = 128 };
static atomic_int armed = 0, kinds = 0, failing_errno = 0, short_writes = 0;
static atomic_bool reads_wait = false;
static sem_t gate;

static bool strike(int kind) {
    if (!(atomic_load(&kinds) & kind) || atomic_load(&armed) == 0) return false;
    if (atomic_fetch_sub(&armed, 1) != 1) return false;
    if (failing_errno == 0) _exit(77); // the process dies here
    errno = failing_errno;
    return true;
}
ssize_t pwritev(int fd, const struct iovec *v, int count, off_t offset) {
    if (strike(CALL_PWRITEV)) return -1;
    if (short_writes) { // one byte of the first
        return (ssize_t)syscall(SYS_pwrite64, fd, v[0].iov_base, v[0].iov_len ? 1 : 0, offset);
    }
    return (ssize_t)syscall(SYS_pwritev, fd, v, count, offset, 0);
}
int fdatasync(int fd) { return strike(CALL_FDATASYNC) ? -1 : (int)syscall(SYS_fdatasync, fd); }
int fsync(int fd) { return strike(CALL_FSYNC) ? -1 : (int)syscall(SYS_fsync, fd); }
int linkat(int from_fd, const char *from, int to_fd, const char *to, int flags) {
    return strike(CALL_LINK) ? -1 : (int)syscall(SYS_linkat, from_fd, from, to_fd, to, flags);
}
int unlinkat(int fd, const char *path, int flags) { return strike(CALL_UNLINK) ? -1 : (int)syscall(SYS_unlinkat, fd, path, flags); }
int openat(int fd, const char *path, int flags, ...) {
    va_list args;
    va_start(args, flags);
    int mode = flags & O_CREAT ? va_arg(args, int) : 0;
    va_end(args);
    return strike(CALL_OPEN) ? -1 : (int)syscall(SYS_openat, fd, path, flags, mode);
}
ssize_t pread(int fd, void *to, size_t size, off_t offset) {
    if (reads_wait) sem_wait(&gate);
    return strike(CALL_PREAD) ? -1 : (ssize_t)syscall(SYS_pread64, fd, to, size, offset);
}

static void arm(int of_kinds, int nth, int number) {
    failing_errno = number;
    kinds = of_kinds;
    armed = nth;
}

// ---- folders
static char root[64];
static int make_root(void **state) {
    snprintf(root, sizeof root, "/tmp/mink-object-XXXXXX");
    assert_non_null(mkdtemp(root));
    arm(0, 0, 0);
    return 0;
}
static void remove_tree(const char *path) {
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        char below[512];
        snprintf(below, sizeof below, "%s/%s", path, entry->d_name);
        if (unlink(below)) remove_tree(below);
    }
    if (dir) closedir(dir);
    rmdir(path);
}
static int drop_root(void **state) {
    remove_tree(root);
    return 0;
}
static unsigned temp_files(void) {
    char path[128];
    snprintf(path, sizeof path, "%s/.tmp", root);
    DIR *dir = opendir(path);
    assert_non_null(dir);
    unsigned count = 0;
    for (struct dirent *entry; (entry = readdir(dir));) count += entry->d_name[0] != '.';
    closedir(dir);
    return count;
}
static struct object_store *open_store(void) {
    struct object_store *store;
    struct error e;
    enum mink_code code = object_dir_open(root, OBJECT_DIR_FSYNC, 0, &store, &e);
    if (code != MINK_OK) fail_msg("%s", e.message);
    return store;
}

// ---- tests

static void keeps_the_promises_of_every_store(void **state) {
    struct shard *s = shard_start("test");
    struct object_store *store = open_store();
    check_store(store, s);
    object_store_close(store);
    assert_int_equal(temp_files(), 0); // also the lock is gone
    store = open_store();
    assert_object(store, s, "a/b/one", "replaced");
    object_store_close(store);
    shard_stop(s);
}

static void two_threads_are_enough_for_every_priority(void **state) {
    struct shard *s = shard_start("test");
    struct object_store *store;
    assert_int_equal(object_dir_open(root, OBJECT_DIR_PAGE_CACHE, 1, &store, NULL), MINK_OK);
    check_store(store, s);
    static struct waited w[200];
    for (int i = 0; i < 200; i++) {
        char key[32];
        snprintf(key, sizeof key, "p/%d", i);
        put_start(store, s, &w[i], key, "x", 1, (enum object_priority)(i % OBJECT_PRIORITY_COUNT));
    }
    for (int i = 0; i < 200; i++) assert_int_equal(waited_wait(&w[i]), MINK_OK);
    object_store_close(store);
    shard_stop(s);
}

static void wal_puts_do_not_wait_behind_reads(void **state) {
    struct shard *s = shard_start("test");
    struct object_store *store = open_store();
    char bytes[4096] = {1};
    struct waited w;
    put_start(store, s, &w, "big", bytes, sizeof bytes, OBJECT_WAL_PUT);
    assert_int_equal(waited_wait(&w), MINK_OK);
    sem_init(&gate, 0, 0);
    reads_wait = true; // every thread that reads stands at the gate
    static struct waited reads[500];
    for (int i = 0; i < 500; i++) {
        waited_init(&reads[i]);
        enum object_priority priority = i % 2 ? OBJECT_COLD_READ : OBJECT_LIVE_READ;
        object_get(store, &reads[i].request, s, "big", 0, 0, priority, waited_done);
    }
    for (int i = 0; i < 20; i++) {
        char key[32];
        snprintf(key, sizeof key, "wal/%d", i);
        assert_int_equal(put_text(store, s, key, "x"), MINK_OK);
    }
    for (int i = 0; i < 500; i++) sem_post(&gate);
    for (int i = 0; i < 500; i++) {
        assert_int_equal(waited_wait(&reads[i]), MINK_OK);
        slice_unref(&reads[i].request.data);
    }
    reads_wait = false;
    object_store_close(store);
    shard_stop(s);
}

static void one_of_64_creators_in_8_processes_wins(void **state) {
    enum { PROCESSES = 8, EACH = 8, ROUNDS = 20 };
    atomic_int *won = mmap(NULL, sizeof *won * ROUNDS, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    atomic_int *losers_read = mmap(NULL, sizeof *losers_read, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pids[PROCESSES];
    for (int p = 0; p < PROCESSES; p++) {
        pids[p] = fork();
        if (pids[p]) continue;
        struct shard *s = shard_start("racer");
        struct object_store *store = NULL;
        if (object_dir_open(root, OBJECT_DIR_FSYNC, 0, &store, NULL) != MINK_OK) _exit(1);
        static struct waited w[EACH];
        for (int round = 0; round < ROUNDS; round++) {
            char key[32], text[32];
            snprintf(key, sizeof key, "race/%d", round);
            for (int i = 0; i < EACH; i++) {
                snprintf(text, sizeof text, "racer %d.%d", p, i);
                put_start(store, s, &w[i], key, text, strlen(text), OBJECT_WAL_PUT);
            }
            for (int i = 0; i < EACH; i++) {
                enum mink_code code = waited_wait(&w[i]);
                if (code == MINK_OK) {
                    atomic_fetch_add(&won[round], 1);
                    continue;
                }
                if (code != MINK_EXISTS) _exit(2);
                struct waited r;
                if (get_range(store, s, &r, key, 0, 0) != MINK_OK || memcmp(r.request.data.data, "racer ", 6) != 0) _exit(3);
                slice_unref(&r.request.data);
                atomic_fetch_add(losers_read, 1);
            }
        }
        object_store_close(store);
        shard_stop(s);
        _exit(0);
    }
    for (int p = 0; p < PROCESSES; p++) {
        int status;
        waitpid(pids[p], &status, 0);
        assert_int_equal(status, 0);
    }
    for (int round = 0; round < ROUNDS; round++) assert_int_equal(won[round], 1);
    assert_int_equal(*losers_read, (PROCESSES * EACH - 1) * ROUNDS);
    assert_int_equal(temp_files(), 0);
}

// Ends a child at the nth call of `kind` while it puts k1; the status says whether it died there.
static bool child_dies_at(int kind, int nth) {
    pid_t pid = fork();
    if (pid == 0) {
        struct shard *s = shard_start("child");
        struct object_store *store = NULL;
        if (object_dir_open(root, OBJECT_DIR_FSYNC, 0, &store, NULL) != MINK_OK) _exit(1);
        arm(kind, nth, 0);
        _exit(put_text(store, s, "d/k1", "bytes of the dead") == MINK_OK ? 0 : 2);
    }
    int status;
    waitpid(pid, &status, 0);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 1 && WEXITSTATUS(status) != 2);
    return WEXITSTATUS(status) == 77;
}

static void dying_between_link_and_unlink_leaves_a_whole_object(void **state) {
    assert_true(child_dies_at(CALL_UNLINK, 1));
    assert_int_equal(temp_files(), 2); // the temp file and the lock of the dead
    struct shard *s = shard_start("test");
    struct object_store *store = open_store();
    assert_int_equal(temp_files(), 1); // our lock
    assert_object(store, s, "d/k1", "bytes of the dead");
    assert_int_equal(put_text(store, s, "d/k1", "other"), MINK_EXISTS);
    object_store_close(store);
    shard_stop(s);
}

static void dying_at_any_call_leaves_nothing_or_everything(void **state) {
    int deaths = 0, before = 0, after = 0;
    for (int nth = 1;; nth++) {
        bool died = child_dies_at(CALL_PWRITEV | CALL_FDATASYNC | CALL_FSYNC | CALL_LINK | CALL_UNLINK | CALL_OPEN, nth);
        struct shard *s = shard_start("test"); // no thread of ours lives while a child is made
        struct object_store *store = open_store();
        struct waited w;
        enum mink_code code = get_range(store, s, &w, "d/k1", 0, 0);
        if (code == MINK_OK) {
            assert_int_equal(w.request.data.size, 17);
            slice_unref(&w.request.data);
            after++;
            const char *const key = "d/k1";
            assert_int_equal(remove_keys(store, s, &key, 1), MINK_OK);
        } else {
            assert_int_equal(code, MINK_NOT_FOUND);
            before++;
        }
        assert_int_equal(temp_files(), 1);
        object_store_close(store);
        shard_stop(s);
        if (!died) break;
        deaths++;
    }
    assert_true(deaths >= 6); // open, write, sync, link, unlink, sync of the folder
    assert_true(before >= 4);
    assert_true(after >= 2);
}

static void temp_files_of_live_processes_stay(void **state) {
    int ready[2], finish[2];
    assert_int_equal(pipe(ready) | pipe(finish), 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(finish[1]);
        struct object_store *store = open_store();
        char path[128];
        DIR *dir = NULL;
        snprintf(path, sizeof path, "%s/.tmp", root);
        dir = opendir(path);
        for (struct dirent *entry; (entry = readdir(dir));) { // a temp file as a put in flight would have it
            char *dot = strstr(entry->d_name, ".lock");
            if (dot == NULL) continue;
            snprintf(path, sizeof path, "%s/.tmp/%.*s-9", root, (int)(dot - entry->d_name), entry->d_name);
            if (creat(path, 0600) < 0) _exit(1);
        }
        if (write(ready[1], "r", 1) != 1) _exit(1);
        char byte;
        ssize_t n = read(finish[0], &byte, 1);
        (void)n;
        (void)store;
        _exit(0); // without closing
    }
    close(ready[1]);
    close(finish[0]);
    char byte;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    object_store_close(open_store());
    assert_int_equal(temp_files(), 2); // its lock and its temp file
    close(finish[1]);
    waitpid(pid, NULL, 0);
    object_store_close(open_store());
    assert_int_equal(temp_files(), 0);
    close(ready[0]);
}

static void a_failed_sync_stops_the_store(void **state) {
    struct { int kind; enum mink_code code; bool may_exist; } cases[] = {{CALL_FDATASYNC, MINK_UNAVAILABLE, false}, {CALL_FSYNC, MINK_UNKNOWN_OUTCOME, true}, {CALL_PWRITEV, MINK_UNAVAILABLE, false}};
    struct shard *s = shard_start("test");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct object_store *store = open_store();
        assert_int_equal(put_text(store, s, "f/before", "x"), i == 0 ? MINK_OK : MINK_EXISTS);
        arm(cases[i].kind, 1, EIO);
        struct waited w;
        put_start(store, s, &w, "f/k", "bytes", 5, OBJECT_WAL_PUT);
        assert_int_equal(waited_wait(&w), cases[i].code);
        assert_int_equal(w.request.error.code, cases[i].code);
        assert_string_equal(w.request.error.reason, "STORE_FAILED");
        assert_non_null(strstr(w.request.error.message, "Input/output error"));
        put_start(store, s, &w, "f/other", "bytes", 5, OBJECT_WAL_PUT);
        assert_int_equal(waited_wait(&w), MINK_UNAVAILABLE);
        assert_string_equal(w.request.error.reason, "STORE_FAILED");
        assert_non_null(strstr(w.request.error.message, "put f/other: the store file:///tmp/mink-object-"));
        assert_int_equal(get_range(store, s, &w, "f/before", 0, 0), MINK_UNAVAILABLE);
        object_store_close(store);
        store = open_store();
        assert_int_equal(get_range(store, s, &w, "f/k", 0, 0), cases[i].may_exist ? MINK_OK : MINK_NOT_FOUND);
        slice_unref(&w.request.data);
        const char *const key = "f/k";
        assert_int_equal(remove_keys(store, s, &key, 1), MINK_OK);
        assert_int_equal(temp_files(), 1);
        object_store_close(store);
    }
    shard_stop(s);
}

// "fail the Nth I/O": whatever fails, the put tells something true.
static void any_failing_call_is_told(void **state) {
    struct shard *s = shard_start("test");
    const int numbers[] = {EIO, ENOSPC, EACCES, EMFILE};
    int told = 0;
    for (int i = 0; i < 4; i++) {
        for (int nth = 1;; nth++) {
            struct object_store *store = open_store();
            arm(CALL_PWRITEV | CALL_FDATASYNC | CALL_FSYNC | CALL_LINK | CALL_OPEN, nth, numbers[i]);
            enum mink_code code = put_text(store, s, "n/k", "bytes");
            bool struck = armed == 0;
            arm(0, 0, 0);
            object_store_close(store);
            store = open_store();
            struct waited w;
            enum mink_code there = get_range(store, s, &w, "n/k", 0, 0);
            if (there == MINK_OK) slice_unref(&w.request.data);
            if (code == MINK_OK) assert_int_equal(there, MINK_OK);
            else if (code != MINK_UNKNOWN_OUTCOME) assert_int_equal(there, MINK_NOT_FOUND);
            if (struck) {
                assert_int_not_equal(code, MINK_OK);
                told++;
            }
            object_store_close(store);
            char path[128];
            snprintf(path, sizeof path, "%s/n", root);
            remove_tree(path);
            if (!struck) break;
        }
    }
    assert_true(told >= 4 * 6);
    shard_stop(s);
}

static void short_writes_are_continued(void **state) {
    struct shard *s = shard_start("test");
    struct object_store *store = open_store();
    short_writes = 1;
    assert_int_equal(put_text(store, s, "short", "every byte of it"), MINK_OK);
    short_writes = 0;
    assert_object(store, s, "short", "every byte of it");
    object_store_close(store);
    shard_stop(s);
}

static void many_slices_become_one_object(void **state) {
    struct shard *s = shard_start("test");
    struct object_store *store = open_store();
    struct slices body = {0};
    static uint8_t expected[3000 * 7];
    for (uint32_t i = 0; i < 3000; i++) {
        for (int k = 0; k < 7; k++) expected[i * 7 + (unsigned)k] = (uint8_t)(i * 31 + (unsigned)k);
        slices_take(&body, slice_borrow(expected + i * 7, 7));
    }
    struct waited w;
    waited_init(&w);
    object_put(store, &w.request, s, "many", &body, crc32c(expected, sizeof expected), true, OBJECT_COMMIT, waited_done);
    slices_deinit(&body);
    assert_int_equal(waited_wait(&w), MINK_OK);
    assert_int_equal(get_range(store, s, &w, "many", 0, 0), MINK_OK);
    assert_int_equal(w.request.data.size, sizeof expected);
    assert_memory_equal(w.request.data.data, expected, sizeof expected);
    slice_unref(&w.request.data);
    object_store_close(store);
    shard_stop(s);
}

static void a_full_disk_is_told_and_healed(void **state) {
    char path[96];
    snprintf(path, sizeof path, "%s/small", root);
    assert_int_equal(mkdir(path, 0755), 0);
    if (mount("tmpfs", path, "tmpfs", 0, "size=256k")) {
        skip(); // needs the right to mount
        return;
    }
    struct shard *s = shard_start("test");
    struct object_store *store;
    assert_int_equal(object_dir_open(path, OBJECT_DIR_FSYNC, 0, &store, NULL), MINK_OK);
    static uint8_t bytes[100000];
    struct waited w;
    int written = 0;
    enum mink_code code;
    do {
        char key[32];
        snprintf(key, sizeof key, "k/%d", written);
        put_start(store, s, &w, key, bytes, sizeof bytes, OBJECT_WAL_PUT);
        code = waited_wait(&w);
        written += code == MINK_OK;
    } while (code == MINK_OK && written < 10);
    assert_int_equal(written, 2);
    assert_int_equal(code, MINK_UNAVAILABLE);
    assert_string_equal(w.request.error.reason, "STORE_FULL");
    assert_non_null(strstr(w.request.error.message, "put k/2: writing: no space left for the store in /tmp/mink-object-"));
    assert_int_equal(get_range(store, s, &w, "k/2", 0, 0), MINK_NOT_FOUND);
    const char *const key = "k/0";
    assert_int_equal(remove_keys(store, s, &key, 1), MINK_OK);
    put_start(store, s, &w, "k/2", bytes, sizeof bytes, OBJECT_WAL_PUT);
    assert_int_equal(waited_wait(&w), MINK_OK);
    object_store_close(store);
    shard_stop(s);
    umount(path);
}

static void a_file_size_limit_is_told_like_a_full_disk(void **state) {
    struct shard *s = shard_start("test");
    struct object_store *store = open_store();
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit old, small;
    getrlimit(RLIMIT_FSIZE, &old);
    small = old;
    small.rlim_cur = 1000;
    setrlimit(RLIMIT_FSIZE, &small);
    static uint8_t bytes[2000];
    struct waited w;
    put_start(store, s, &w, "large", bytes, sizeof bytes, OBJECT_WAL_PUT);
    enum mink_code code = waited_wait(&w);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(code, MINK_UNAVAILABLE);
    assert_string_equal(w.request.error.reason, "STORE_FULL");
    assert_int_equal(temp_files(), 1);
    put_start(store, s, &w, "large", bytes, sizeof bytes, OBJECT_WAL_PUT);
    assert_int_equal(waited_wait(&w), MINK_OK);
    object_store_close(store);
    shard_stop(s);
}

static void a_store_that_cannot_be_written_is_refused_by_name(void **state) {
    struct object_store *store;
    struct error e;
    const int numbers[] = {EROFS, EACCES};
    for (int i = 0; i < 2; i++) {
        arm(CALL_OPEN, 2, numbers[i]); // the lock file
        assert_int_equal(object_dir_open(root, OBJECT_DIR_FSYNC, 0, &store, &e), MINK_DENIED);
        arm(0, 0, 0);
        assert_string_equal(e.reason, "STORE_NOT_WRITABLE");
        assert_non_null(strstr(e.message, root));
    }
    arm(CALL_LINK, 1, EPERM);
    assert_int_equal(object_dir_open(root, OBJECT_DIR_FSYNC, 0, &store, &e), MINK_UNSUPPORTED);
    arm(0, 0, 0);
    assert_string_equal(e.reason, "STORE_NO_LINKS");
    arm(CALL_FDATASYNC, 1, ENOSPC);
    assert_int_equal(object_dir_open(root, OBJECT_DIR_FSYNC, 0, &store, &e), MINK_UNAVAILABLE);
    arm(0, 0, 0);
    assert_string_equal(e.reason, "STORE_FULL");
    char path[128];
    snprintf(path, sizeof path, "%s/file", root);
    close(creat(path, 0600));
    assert_int_equal(object_dir_open(path, OBJECT_DIR_FSYNC, 0, &store, &e), MINK_INVALID);
    assert_string_equal(e.reason, "STORE_PATH");
    assert_non_null(strstr(e.message, "Not a directory"));
    assert_int_equal(temp_files(), 0);
    snprintf(path, sizeof path, "%s/deep/er/store", root); // made when absent
    assert_int_equal(object_dir_open(path, OBJECT_DIR_FSYNC, 0, &store, &e), MINK_OK);
    object_store_close(store);
}

static void a_key_below_an_object_is_refused(void **state) {
    struct shard *s = shard_start("test");
    struct object_store *store = open_store();
    assert_int_equal(put_text(store, s, "x/y", "object"), MINK_OK);
    struct waited w;
    put_start(store, s, &w, "x/y/z", "object", 6, OBJECT_WAL_PUT);
    assert_int_equal(waited_wait(&w), MINK_INVALID);
    assert_string_equal(w.request.error.reason, "OBJECT_KEY_INVALID");
    assert_int_equal(put_text(store, s, "x", "object"), MINK_EXISTS); // the folder's name is taken
    assert_int_equal(get_range(store, s, &w, "x", 0, 0), MINK_NOT_FOUND);
    assert_int_equal(put_text(store, s, "x/z", "object"), MINK_OK); // the store goes on
    object_store_close(store);
    shard_stop(s);
}

#define WITH_ROOT(test) cmocka_unit_test_setup_teardown(test, make_root, drop_root)
int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_ROOT(keeps_the_promises_of_every_store),
        WITH_ROOT(two_threads_are_enough_for_every_priority),
        WITH_ROOT(wal_puts_do_not_wait_behind_reads),
        WITH_ROOT(one_of_64_creators_in_8_processes_wins),
        WITH_ROOT(dying_between_link_and_unlink_leaves_a_whole_object),
        WITH_ROOT(dying_at_any_call_leaves_nothing_or_everything),
        WITH_ROOT(temp_files_of_live_processes_stay),
        WITH_ROOT(a_failed_sync_stops_the_store),
        WITH_ROOT(any_failing_call_is_told),
        WITH_ROOT(short_writes_are_continued),
        WITH_ROOT(many_slices_become_one_object),
        WITH_ROOT(a_full_disk_is_told_and_healed),
        WITH_ROOT(a_file_size_limit_is_told_like_a_full_disk),
        WITH_ROOT(a_store_that_cannot_be_written_is_refused_by_name),
        WITH_ROOT(a_key_below_an_object_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
