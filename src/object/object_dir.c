// SPDX-License-Identifier: Apache-2.0
// Objects as files. A put writes an unnamed file (O_TMPFILE), makes it durable, and gives it its name with linkat(): the name appears with all
// its bytes or not at all, exactly one creator wins, and a crash leaves nothing behind. Where unnamed files are not supported the bytes go to
// a file in .tmp/, under flock: what a dead process left there can be locked by the next one, and is removed at open.
//
// Threads are started as they are needed, up to the limit. Each takes the most urgent request; requests other than WAL puts may hold all
// threads but RESERVED, so that cold reads or deletes never stand in front of an append.
#include "object/object_dir.h"

#include "base/crc32c.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "object/object_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define THREADS_DEFAULT 16
#define THREADS_MAX 256
#define RESERVED 4
#define IOV_COUNT 512
#define PATH_SIZE (PATH_MAX + OBJECT_KEY_SIZE_MAX)

static struct metric_gauge queued = METRIC_GAUGE("mink_store_dir_queued", "requests waiting for a thread of the directory store");

struct dir_store {
    struct object_store store;
    char *root;
    enum object_dir_durability durability;
    bool unnamed_files;
    atomic_bool failed; // an fsync or write failed: what is on disk is unknown from then on
    atomic_ullong temp_counter;
    pthread_mutex_t lock; // guards the queues, the counts, stopping
    pthread_cond_t wake;
    struct { struct task *first, **last; } queues[OBJECT_PRIORITY_COUNT];
    unsigned thread_max, thread_count, idle, running_other;
    bool stopping;
    struct thread *threads[THREADS_MAX];
};

static void path_of(const struct dir_store *d, const char *key, char out[PATH_SIZE]) { snprintf(out, PATH_SIZE, "%s/%s", d->root, key); }

static enum mink_code io_error(struct dir_store *d, struct object_request *r, const char *doing) {
    int number = errno;
    switch (number) {
    case ENOSPC:
    case EDQUOT:
        r->code = error_set(&r->error, MINK_UNAVAILABLE, "STORE_FULL", "%s %s: no space left below %s", doing, r->key, d->root);
        error_hint(&r->error, "free space there, or move the store to a larger disk; nothing that was acknowledged is lost");
        break;
    case EIO:
        atomic_store(&d->failed, true);
        r->code = error_set(&r->error, MINK_UNAVAILABLE, "STORE_FAILED", "%s %s: input/output error below %s", doing, r->key, d->root);
        break;
    case EACCES:
    case EPERM:
    case EROFS: r->code = error_set(&r->error, MINK_DENIED, "STORE_NOT_WRITABLE", "%s %s below %s: %s", doing, r->key, d->root, strerror(number)); break;
    default: r->code = error_set(&r->error, MINK_UNAVAILABLE, "STORE_IO", "%s %s below %s: %s", doing, r->key, d->root, strerror(number));
    }
    return r->code;
}

static int sync_folder(const char *path) {
    char folder[PATH_SIZE];
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash) *slash = 0;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return -1;
    int result = fsync(fd);
    close(fd);
    return result;
}

// All folders of `path` below the root, each durable in its parent.
static int make_folders(const struct dir_store *d, const char *path) {
    char part[PATH_SIZE];
    snprintf(part, sizeof part, "%s", path);
    for (char *at = part + strlen(d->root) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = 0;
        int made = mkdir(part, 0755);
        if (made != 0 && errno != EEXIST) return -1;
        if (made == 0 && d->durability == OBJECT_DIR_FSYNC && sync_folder(part) != 0) return -1;
        *at = '/';
    }
    return 0;
}

static int write_body(int fd, const struct slices *body) {
    struct iovec iov[IOV_COUNT];
    uint32_t slice = 0;
    size_t skip = 0;
    while (slice < body->count) {
        int count = 0;
        for (uint32_t i = slice; i < body->count && count < IOV_COUNT; i++) {
            size_t from = i == slice ? skip : 0;
            iov[count].iov_base = (void *)(body->items[i].data + from);
            iov[count++].iov_len = body->items[i].size - from;
        }
        ssize_t written = writev(fd, iov, count);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return -1;
        for (size_t left = (size_t)written; slice < body->count;) {
            size_t rest = body->items[slice].size - skip;
            if (left < rest) {
                skip += left;
                break;
            }
            left -= rest;
            skip = 0;
            slice++;
        }
    }
    return 0;
}

static int open_temp(struct dir_store *d, const char *path, char temp[PATH_SIZE]) {
    temp[0] = 0;
    if (d->unnamed_files) {
        char folder[PATH_SIZE];
        snprintf(folder, sizeof folder, "%s", path);
        *strrchr(folder, '/') = 0;
        int fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0644);
        if (fd < 0 && errno == ENOENT) {
            if (make_folders(d, path) != 0) return -1;
            fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0644);
        }
        return fd;
    }
    snprintf(temp, PATH_SIZE, "%s/.tmp/%ld-%llu", d->root, (long)getpid(), (unsigned long long)atomic_fetch_add(&d->temp_counter, 1));
    int fd = open(temp, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
    if (fd >= 0 && flock(fd, LOCK_EX) != 0) {
        close(fd);
        unlink(temp);
        return -1;
    }
    return fd;
}

static int give_name(struct dir_store *d, int fd, const char *temp, const char *path) {
    if (temp[0] == 0) {
        char self[64];
        snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
        return linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
    }
    int result = link(temp, path);
    if (result != 0 && errno == ENOENT && make_folders(d, path) == 0) result = link(temp, path);
    return result;
}

static void put(struct dir_store *d, struct object_request *r) {
    char path[PATH_SIZE], temp[PATH_SIZE];
    struct stat st;
    path_of(d, r->key, path);
    if (stat(path, &st) == 0) { // the usual loser pays no write; the race is decided by the link
        r->code = error_set(&r->error, MINK_EXISTS, "EXISTS", "put %s: exists", r->key);
        return;
    }
    int fd = open_temp(d, path, temp);
    if (fd < 0) {
        io_error(d, r, "put");
        return;
    }
    bool sync = d->durability == OBJECT_DIR_FSYNC;
    if (write_body(fd, &r->body) != 0) {
        io_error(d, r, "put");
    } else if (sync && fdatasync(fd) != 0) {
        // After a failed fsync the kernel may have dropped the dirty pages: nothing later can be trusted either.
        if (errno != ENOSPC && errno != EDQUOT) atomic_store(&d->failed, true);
        io_error(d, r, "fsync");
    } else if (give_name(d, fd, temp, path) != 0) {
        if (errno == EEXIST) r->code = error_set(&r->error, MINK_EXISTS, "EXISTS", "put %s: exists", r->key);
        else io_error(d, r, "link");
    } else if (sync && sync_folder(path) != 0) {
        atomic_store(&d->failed, true);
        io_error(d, r, "fsync the folder of");
        r->code = r->error.code = MINK_UNKNOWN_OUTCOME; // the name is there, but may not survive
    }
    if (temp[0]) unlink(temp);
    close(fd);
}

static void get(struct dir_store *d, struct object_request *r, bool with_data) {
    char path[PATH_SIZE];
    path_of(d, r->key, path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        if (fd < 0 && errno != ENOENT && errno != ENOTDIR) io_error(d, r, "get");
        else r->code = error_set(&r->error, MINK_NOT_FOUND, "NO_SUCH_OBJECT", "get %s: no such object", r->key);
        if (fd >= 0) close(fd);
        return;
    }
    r->object_size = (uint64_t)st.st_size;
    if (with_data && object_clip(r)) {
        uint8_t *data;
        struct slice bytes = slice_try_new(r->size, &data);
        size_t got = 0;
        if (!data) r->code = error_set(&r->error, MINK_OVERLOADED, "OUT_OF_MEMORY", "get %s: no memory for %llu bytes", r->key, (unsigned long long)r->size);
        while (data && got < r->size) {
            ssize_t n = pread(fd, data + got, r->size - got, (off_t)(r->offset + got));
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) io_error(d, r, "get");
            else if (n == 0) r->code = error_set(&r->error, MINK_CORRUPT, "TRUNCATED_OBJECT", "get %s: ends at byte %llu of %llu", r->key, (unsigned long long)(r->offset + got), (unsigned long long)r->object_size);
            if (n <= 0) break;
            got += (size_t)n;
        }
        if (r->code == MINK_OK) r->data = bytes;
        else slice_unref(&bytes);
    }
    close(fd);
}

// ---- list: a walk in the order of whole keys ("a.b" sorts before "a/b": folders compare with their slash)

struct name { char *text; bool folder; };

static int name_order(const void *a, const void *b) { return strcmp(((const struct name *)a)->text, ((const struct name *)b)->text); }

static bool walk(struct dir_store *d, struct object_request *r, const char *folder_key, uint32_t *capacity) {
    char path[PATH_SIZE];
    struct name *names = NULL;
    size_t count = 0, room = 0;
    path_of(d, folder_key, path);
    DIR *dir = opendir(path);
    if (!dir) {
        if (errno == ENOENT || errno == ENOTDIR) return true;
        io_error(d, r, "list");
        return false;
    }
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] == '.') continue;
        struct stat st;
        bool folder = entry->d_type == DT_DIR;
        if (entry->d_type == DT_UNKNOWN) folder = fstatat(dirfd(dir), entry->d_name, &st, 0) == 0 && S_ISDIR(st.st_mode);
        if (count == room) {
            room = room ? room * 2 : 64;
            names = mem_realloc(names, room * sizeof *names);
        }
        names[count].text = mem_printf("%s%s%s", folder_key, entry->d_name, folder ? "/" : "");
        names[count++].folder = folder;
    }
    qsort(names, count, sizeof *names, name_order);
    bool more = true;
    size_t prefix = strlen(r->key);
    for (size_t i = 0; i < count && more; i++) {
        const char *key = names[i].text;
        size_t size = strlen(key), common = size < prefix ? size : prefix;
        if (strncmp(key, r->key, common) != 0) continue;
        if (names[i].folder) {
            // Skipped when all its keys come before start_after.
            if (strncmp(r->start_after, key, size) > 0) continue;
            more = walk(d, r, key, capacity);
            continue;
        }
        if (size < prefix || strcmp(key, r->start_after) <= 0) continue;
        if (r->entry_count == r->list_max) {
            r->list_more = true;
            more = false;
            break;
        }
        struct stat st;
        if (fstatat(dirfd(dir), strrchr(key, '/') ? strrchr(key, '/') + 1 : key, &st, 0) != 0) continue; // deleted meanwhile
        if (r->entry_count == *capacity) {
            *capacity = *capacity ? *capacity * 2 : 16;
            r->entries = mem_realloc(r->entries, *capacity * sizeof *r->entries);
        }
        r->entries[r->entry_count++] = (struct object_entry){mem_strdup(key), (uint64_t)st.st_size};
    }
    closedir(dir);
    for (size_t i = 0; i < count; i++) mem_free(names[i].text);
    mem_free(names);
    return more && r->code == MINK_OK;
}

static void list(struct dir_store *d, struct object_request *r) {
    char folder[OBJECT_KEY_SIZE_MAX];
    uint32_t capacity = 0;
    const char *slash = strrchr(r->key, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash + 1 - r->key) : 0, r->key);
    walk(d, r, folder, &capacity);
    if (r->code == MINK_OK) return;
    object_entries_free(r->entries, r->entry_count);
    r->entries = NULL;
    r->entry_count = 0;
}

static void remove_keys(struct dir_store *d, struct object_request *r) {
    char path[PATH_SIZE];
    for (uint32_t i = 0; i < r->key_count; i++) {
        if (!object_key_valid(r->keys[i], false)) {
            r->code = error_set(&r->error, MINK_INVALID, "BAD_KEY", "\"%s\" is not an object key", r->keys[i]);
            return;
        }
        path_of(d, r->keys[i], path);
        snprintf(r->key, sizeof r->key, "%s", r->keys[i]);
        if (unlink(path) != 0 && errno != ENOENT && errno != ENOTDIR) {
            io_error(d, r, "delete");
            return;
        }
        // Empty folders stay: a put may be about to use them, and there are few.
    }
}

static void perform(struct dir_store *d, struct object_request *r) {
    r->code = MINK_OK;
    if (r->op != OBJECT_REMOVE && !object_key_valid(r->key, r->op == OBJECT_LIST)) {
        r->code = error_set(&r->error, MINK_INVALID, "BAD_KEY", "\"%s\" is not an object key", r->key);
        return;
    }
    if (atomic_load(&d->failed) && (r->op == OBJECT_PUT || r->op == OBJECT_REMOVE)) {
        r->code = error_set(&r->error, MINK_UNAVAILABLE, "STORE_FAILED", "%s refuses writes: an earlier write or fsync below it failed", d->root);
        error_hint(&r->error, "check the disk, then start again");
        return;
    }
    switch (r->op) {
    case OBJECT_PUT: put(d, r); break;
    case OBJECT_GET: get(d, r, true); break;
    case OBJECT_HEAD: get(d, r, false); break;
    case OBJECT_LIST: list(d, r); break;
    case OBJECT_REMOVE: remove_keys(d, r); break;
    }
}

// ---- threads

static struct object_request *next_request(struct dir_store *d) {
    for (int p = 0; p < OBJECT_PRIORITY_COUNT; p++) {
        struct task *task = d->queues[p].first;
        if (!task) continue;
        if (p != OBJECT_WAL_PUT && d->thread_max > RESERVED && d->running_other + RESERVED >= d->thread_max) return NULL;
        d->queues[p].first = task->next;
        if (!task->next) d->queues[p].last = &d->queues[p].first;
        return container_of(task, struct object_request, task);
    }
    return NULL;
}

static void thread_main(void *ctx) {
    struct dir_store *d = ctx;
    pthread_mutex_lock(&d->lock);
    for (;;) {
        struct object_request *r = next_request(d);
        if (!r) {
            if (d->stopping) break;
            d->idle++;
            pthread_cond_wait(&d->wake, &d->lock);
            d->idle--;
            continue;
        }
        bool other = r->priority != OBJECT_WAL_PUT;
        d->running_other += other;
        pthread_mutex_unlock(&d->lock);
        metric_move(&queued, -1);
        perform(d, r);
        object_complete(r);
        pthread_mutex_lock(&d->lock);
        d->running_other -= other;
        if (other && d->idle) pthread_cond_signal(&d->wake); // one that the bound held back may go
    }
    pthread_mutex_unlock(&d->lock);
}

static void dir_submit(struct object_store *base, struct object_request *r) {
    struct dir_store *d = container_of(base, struct dir_store, store);
    r->task.next = NULL;
    metric_move(&queued, 1);
    pthread_mutex_lock(&d->lock);
    mink_assert(!d->stopping);
    *d->queues[r->priority].last = &r->task;
    d->queues[r->priority].last = &r->task.next;
    if (d->idle == 0 && d->thread_count < d->thread_max) {
        d->threads[d->thread_count] = thread_start("store", thread_main, d);
        d->thread_count++;
    }
    pthread_mutex_unlock(&d->lock);
    pthread_cond_signal(&d->wake);
}

static void dir_close(struct object_store *base) {
    struct dir_store *d = container_of(base, struct dir_store, store);
    pthread_mutex_lock(&d->lock);
    d->stopping = true;
    pthread_mutex_unlock(&d->lock);
    pthread_cond_broadcast(&d->wake);
    for (unsigned i = 0; i < d->thread_count; i++) thread_join(d->threads[i]);
    pthread_mutex_destroy(&d->lock);
    pthread_cond_destroy(&d->wake);
    mem_free(d->root);
    mem_free(d);
}

static const struct object_store_ops dir_ops = {dir_submit, dir_close};

// ---- open

static void remove_leftovers(struct dir_store *d) {
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/.tmp", d->root);
    DIR *dir = opendir(path);
    if (!dir) return;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] == '.') continue;
        int fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_CLOEXEC);
        if (fd < 0) continue;
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) unlinkat(dirfd(dir), entry->d_name, 0); // its writer is gone
        close(fd);
    }
    closedir(dir);
}

static enum mink_code open_folder(struct dir_store *d, const char *path, struct error *e) {
    char temp[PATH_SIZE];
    if (mkdir(path, 0755) != 0 && errno != EEXIST) return error_set(e, MINK_DENIED, "STORE_NOT_WRITABLE", "store %s cannot be made: %s", path, strerror(errno));
    char *absolute = realpath(path, NULL);
    if (!absolute) return error_set(e, MINK_NOT_FOUND, "STORE_NOT_FOUND", "store %s: %s", path, strerror(errno));
    d->root = mem_strdup(absolute);
    free(absolute); // banned-ok: realpath's own memory
    if (strlen(d->root) + OBJECT_KEY_SIZE_MAX >= PATH_MAX) return error_set(e, MINK_INVALID, "BAD_STORE", "store %s: the path is too long", path);
    snprintf(d->store.name, sizeof d->store.name, "file://%s", d->root);
    int fd = open(d->root, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0644);
    d->unnamed_files = fd >= 0;
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT)) {
        snprintf(temp, sizeof temp, "%s/.tmp", d->root);
        if (mkdir(temp, 0755) != 0 && errno != EEXIST) return error_set(e, MINK_DENIED, "STORE_NOT_WRITABLE", "store %s is not writable: %s", d->root, strerror(errno));
        fd = open_temp(d, temp, temp);
    }
    if (fd < 0) {
        error_set(e, MINK_DENIED, "STORE_NOT_WRITABLE", "store %s is not writable: %s", d->root, strerror(errno));
        error_hint(e, "give the process write permission on the folder, or choose another one");
        return MINK_DENIED;
    }
    close(fd);
    remove_leftovers(d);
    return MINK_OK;
}

enum mink_code object_dir_open(const char *path, enum object_dir_durability durability, unsigned threads, struct object_store **out, struct error *e) {
    struct dir_store *d = mem_new(struct dir_store);
    d->store.ops = &dir_ops;
    d->durability = durability;
    d->thread_max = threads == 0 ? THREADS_DEFAULT : threads > THREADS_MAX ? THREADS_MAX : threads;
    for (int p = 0; p < OBJECT_PRIORITY_COUNT; p++) d->queues[p].last = &d->queues[p].first;
    enum mink_code code = open_folder(d, path, e);
    if (code != MINK_OK) {
        mem_free(d->root);
        mem_free(d);
        return code;
    }
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->wake, NULL);
    *out = &d->store;
    return MINK_OK;
}
