// SPDX-License-Identifier: Apache-2.0
// The directory store's file work: what one request does, on a thread that may block.
#include "object/object_dir_internal.h"

#include "base/crc32c.h"
#include "base/log.h"
#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

// ---- errors

static void store_failed(struct dir_store *d, const struct error *why) {
    pthread_mutex_lock(&d->lock);
    if (!atomic_load(&d->failed)) {
        error_set(&d->failure, MINK_UNAVAILABLE, "STORE_FAILED", "the store %s has stopped: %s", d->store.name, why->message);
        error_hint(&d->failure, "check the disk, then start again: what was acknowledged is kept");
        atomic_store(&d->failed, true);
        log_error("store.failed", "store=\"%s\" message=\"%s\"", d->store.name, why->message);
    }
    pthread_mutex_unlock(&d->lock);
}

enum mink_code dir_errno(struct dir_store *d, int number, const char *what, struct error *e) {
    switch (number) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        error_set(e, MINK_UNAVAILABLE, "STORE_FULL", "%s: no space left for the store in %s (%s)", what, d->root, strerror(number));
        error_hint(e, "free space there; appends go on by themselves");
        return MINK_UNAVAILABLE;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
        error_set(e, MINK_UNAVAILABLE, "STORE_LIMIT", "%s in %s: %s", what, d->root, strerror(number));
        error_hint(e, "raise the limit on open files (ulimit -n)");
        return MINK_UNAVAILABLE;
    case EROFS:
    case EACCES:
    case EPERM: return error_set(e, MINK_DENIED, "STORE_NOT_WRITABLE", "%s in %s: %s", what, d->root, strerror(number));
    case ENAMETOOLONG:
    case ENOTDIR:
    case EISDIR:
    case ELOOP: return error_set(e, MINK_INVALID, "OBJECT_KEY_INVALID", "%s in %s: %s", what, d->root, strerror(number));
    default: {
        struct error why;
        error_set(&why, MINK_UNAVAILABLE, "STORE_FAILED", "%s in %s: %s", what, d->root, strerror(number));
        store_failed(d, &why);
        error_copy(e, &why);
        return MINK_UNAVAILABLE;
    }
    }
}

static void finish_with(struct object_request *r, enum mink_code code) {
    r->code = code;
    if (code != MINK_OK) error_context(&r->error, "%s %s", object_op_name(r->op), r->key);
    object_finish(r);
}

// ---- folders

static unsigned folder_slot(const char *path, size_t size) {
    uint32_t h = 2166136261u; // FNV-1a
    for (size_t i = 0; i < size; i++) h = (h ^ (uint8_t)path[i]) * 16777619u;
    return h % 256;
}

static struct dir_folder *folder_find(struct dir_store *d, const char *path, size_t size) {
    struct dir_folder *f = d->folders[folder_slot(path, size)];
    while (f && (strncmp(f->path, path, size) != 0 || f->path[size] != 0)) f = f->next;
    return f;
}

void dir_folders_free(struct dir_store *d) {
    for (unsigned i = 0; i < 256; i++) {
        while (d->folders[i]) {
            struct dir_folder *f = d->folders[i];
            d->folders[i] = f->next;
            mem_free(f);
        }
    }
}

static int sync_path(struct dir_store *d, const char *path) {
    if (d->durability == OBJECT_DIR_PAGE_CACHE) return 0;
    int fd = openat(d->root_fd, *path ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return errno;
    int number = fsync(fd) ? errno : 0;
    close(fd);
    return number;
}

// Waits for a sync of the folder that began after this call; makes it when nobody else does. After a failed one the kernel may have
// forgotten what was not written, so no later sync proves anything: the store has failed for all who wait.
static enum mink_code folder_sync(struct dir_store *d, struct dir_folder *f, struct error *e) {
    pthread_mutex_lock(&d->folder_lock);
    uint64_t mine = ++f->wanted;
    while (f->synced < mine && !atomic_load(&d->failed)) {
        if (f->syncing) {
            pthread_cond_wait(&d->folder_synced, &d->folder_lock);
            continue;
        }
        f->syncing = true;
        uint64_t upto = f->wanted;
        pthread_mutex_unlock(&d->folder_lock);
        int number = sync_path(d, f->path);
        if (number) {
            struct error why;
            error_set(&why, MINK_UNAVAILABLE, "STORE_FAILED", "sync of the folder %s/%s: %s", d->root, f->path, strerror(number));
            store_failed(d, &why);
        }
        pthread_mutex_lock(&d->folder_lock);
        f->syncing = false;
        if (number == 0) f->synced = upto;
        pthread_cond_broadcast(&d->folder_synced);
    }
    bool synced = f->synced >= mine;
    pthread_mutex_unlock(&d->folder_lock);
    if (synced) return MINK_OK;
    error_copy(e, &d->failure);
    return MINK_UNAVAILABLE;
}

// The folder `path` (size bytes of it) exists durably afterwards, and so do all above it. Also when somebody else has just made it:
// whether he has synced the name of it is not known.
static enum mink_code folder_make(struct dir_store *d, const char *path, size_t size, struct dir_folder **out, struct error *e) {
    pthread_mutex_lock(&d->folder_lock);
    *out = folder_find(d, path, size);
    pthread_mutex_unlock(&d->folder_lock);
    if (*out) return MINK_OK;
    if (size > 0) {
        char name[OBJECT_KEY_SIZE_MAX];
        memcpy(name, path, size);
        name[size] = 0;
        const char *slash = memrchr(path, '/', size);
        struct dir_folder *above;
        MINK_TRY(folder_make(d, path, slash ? (size_t)(slash - path) : 0, &above, e));
        if (mkdirat(d->root_fd, name, 0755) && errno != EEXIST) return dir_errno(d, errno, "making a folder", e);
        MINK_TRY(folder_sync(d, above, e));
    }
    pthread_mutex_lock(&d->folder_lock);
    *out = folder_find(d, path, size);
    if (*out == NULL) {
        struct dir_folder *f = mem_zalloc(sizeof *f + size + 1);
        memcpy(f->path, path, size);
        unsigned slot = folder_slot(path, size);
        f->next = d->folders[slot];
        d->folders[slot] = *out = f;
    }
    pthread_mutex_unlock(&d->folder_lock);
    return MINK_OK;
}

// ---- put

static int write_slices(int fd, const struct slices *body) {
    struct iovec vectors[256];
    uint32_t next = 0; // first slice not in vectors
    unsigned count = 0, at = 0;
    off_t position = 0;
    for (;;) {
        if (at == count) {
            for (count = at = 0; count < 256 && next < body->count; next++)
                if (body->items[next].size) vectors[count++] = (struct iovec){(void *)(uintptr_t)body->items[next].data, body->items[next].size};
            if (count == 0) return 0;
        }
        ssize_t n = pwritev(fd, vectors + at, (int)(count - at), position);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno;
        if (n == 0) return EIO;
        position += n;
        for (size_t left = (size_t)n; left > 0;) {
            size_t part = left < vectors[at].iov_len ? left : vectors[at].iov_len;
            vectors[at].iov_base = (char *)vectors[at].iov_base + part;
            vectors[at].iov_len -= part;
            left -= part;
            if (vectors[at].iov_len == 0) at++;
        }
    }
}

// The temp file's bytes, durable. On failure there is no temp file.
static enum mink_code write_temp(struct dir_store *d, struct object_request *r, const char *temp) {
    int fd = openat(d->tmp_fd, temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0) return dir_errno(d, errno, "making a temporary file", &r->error);
    const char *what = "writing";
    int number = write_slices(fd, &r->body);
    if (number == 0 && d->durability == OBJECT_DIR_FSYNC) {
        what = "sync";
        if (fdatasync(fd)) number = errno;
    }
    if (close(fd) && number == 0) number = errno;
    if (number == 0) return MINK_OK;
    unlinkat(d->tmp_fd, temp, 0);
    return dir_errno(d, number, what, &r->error);
}

static void perform_put(struct dir_store *d, struct object_request *r) {
    if (crc32c_slices(0, &r->body) != r->body_crc32c) {
        object_fail(r, MINK_CORRUPT, "BODY_CHECKSUM", "the body of %zu bytes does not have the CRC32C it was sent with", r->body.bytes);
        return;
    }
    const char *slash = strrchr(r->key, '/');
    struct dir_folder *folder;
    enum mink_code code = folder_make(d, r->key, slash ? (size_t)(slash - r->key) : 0, &folder, &r->error);
    if (code != MINK_OK) {
        finish_with(r, code);
        return;
    }
    bool exists = r->if_absent && faccessat(d->root_fd, r->key, F_OK, AT_SYMLINK_NOFOLLOW) == 0; // spares a loser the writing
    if (!exists) {
        char temp[64];
        snprintf(temp, sizeof temp, "%s-%" PRIu64, d->id, (uint64_t)atomic_fetch_add(&d->temp_number, 1));
        code = write_temp(d, r, temp);
        if (code != MINK_OK) {
            finish_with(r, code);
            return;
        }
        int number = 0;
        if (r->if_absent) {
            if (linkat(d->tmp_fd, temp, d->root_fd, r->key, 0)) number = errno;
        } else if (renameat(d->tmp_fd, temp, d->root_fd, r->key)) {
            number = errno;
        }
        if (r->if_absent || number) unlinkat(d->tmp_fd, temp, 0); // what stays after a failure goes at the next open
        exists = number == EEXIST && r->if_absent;
        if (number && !exists) {
            finish_with(r, dir_errno(d, number, "linking", &r->error));
            return;
        }
    }
    code = folder_sync(d, folder, &r->error);
    if (code != MINK_OK) { // the name is there, but may not survive
        r->error.code = MINK_UNKNOWN_OUTCOME;
        finish_with(r, MINK_UNKNOWN_OUTCOME);
    } else if (exists) {
        object_fail(r, MINK_EXISTS, "OBJECT_EXISTS", "the key exists");
    } else {
        object_finish(r);
    }
}

// ---- get, head

static bool number_is_absent(int number) { return number == ENOENT || number == ENOTDIR; }

static void perform_get(struct dir_store *d, struct object_request *r) {
    int fd = openat(d->root_fd, r->key, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        if (number_is_absent(errno)) object_fail(r, MINK_NOT_FOUND, "OBJECT_NOT_FOUND", "no such object");
        else finish_with(r, dir_errno(d, errno, "opening", &r->error));
        return;
    }
    struct stat st;
    if (fstat(fd, &st)) {
        finish_with(r, dir_errno(d, errno, "opening", &r->error));
        close(fd);
        return;
    }
    if (!S_ISREG(st.st_mode)) {
        object_fail(r, MINK_NOT_FOUND, "OBJECT_NOT_FOUND", "no such object");
        close(fd);
        return;
    }
    r->object_size = (uint64_t)st.st_size;
    uint64_t offset, size;
    if (!object_get_range(r, r->object_size, &offset, &size)) {
        object_fail(r, MINK_INVALID, "OBJECT_RANGE", "offset %" PRIu64 " is outside the object of %" PRIu64 " bytes", r->offset, r->object_size);
        close(fd);
        return;
    }
    uint8_t *at;
    struct slice data = slice_try_new(size, &at);
    if (at == NULL) {
        object_fail(r, MINK_UNAVAILABLE, "OUT_OF_MEMORY", "no memory for %" PRIu64 " bytes", size);
        close(fd);
        return;
    }
    for (uint64_t got = 0; got < size;) {
        ssize_t n = pread(fd, at + got, size - got, (off_t)(offset + got));
        if (n < 0 && errno == EINTR) continue;
        if (n > 0) {
            got += (uint64_t)n;
            continue;
        }
        slice_unref(&data);
        if (n < 0) finish_with(r, dir_errno(d, errno, "reading", &r->error));
        else object_fail(r, MINK_CORRUPT, "OBJECT_TRUNCATED", "the file ended at %" PRIu64 " of %" PRIu64 " bytes while it was read", offset + got, r->object_size);
        close(fd);
        return;
    }
    close(fd);
    r->data = data;
    object_finish(r);
}

static void perform_head(struct dir_store *d, struct object_request *r) {
    struct stat st;
    int number = fstatat(d->root_fd, r->key, &st, AT_SYMLINK_NOFOLLOW) ? errno : 0;
    if (number && !number_is_absent(number)) {
        finish_with(r, dir_errno(d, number, "looking", &r->error));
    } else if (number || !S_ISREG(st.st_mode)) {
        object_fail(r, MINK_NOT_FOUND, "OBJECT_NOT_FOUND", "no such object");
    } else {
        r->object_size = (uint64_t)st.st_size;
        object_finish(r);
    }
}

// ---- list

static int compare_names(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

struct names {
    char **items;
    size_t count, capacity;
};

// The visible names in the folder, those of folders with a slash behind, so that sorting them sorts the keys below them.
static int read_names(struct dir_store *d, const char *path, struct names *out) {
    int fd = openat(d->root_fd, *path ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return number_is_absent(errno) ? 0 : errno;
    DIR *dir = fdopendir(fd);
    if (dir == NULL) {
        int number = errno;
        close(fd);
        return number;
    }
    int number = 0;
    for (;;) {
        errno = 0;
        struct dirent *entry = readdir(dir);
        if (entry == NULL) {
            number = errno;
            break;
        }
        if (entry->d_name[0] == '.') continue;
        bool folder = entry->d_type == DT_DIR, file = entry->d_type == DT_REG;
        if (entry->d_type == DT_UNKNOWN) {
            struct stat st;
            if (fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
                folder = S_ISDIR(st.st_mode);
                file = S_ISREG(st.st_mode);
            }
        }
        if (!folder && !file) continue;
        if (out->count == out->capacity) {
            out->capacity = out->capacity ? out->capacity * 2 : 64;
            out->items = mem_realloc(out->items, out->capacity * sizeof *out->items);
        }
        out->items[out->count++] = mem_printf("%s%s", entry->d_name, folder ? "/" : "");
    }
    closedir(dir);
    qsort(out->items, out->count, sizeof *out->items, compare_names);
    return number;
}

// Can a key that begins with `path` (which ends in a slash) be wanted?
static bool folder_may_have(const struct object_request *r, const char *path) {
    size_t size = strlen(path), prefix_size = strlen(r->key);
    if (strncmp(path, r->key, size < prefix_size ? size : prefix_size) != 0) return false;
    return strncmp(path, r->start_after, size) >= 0; // all keys below it come before start_after otherwise
}

// Adds what is below `path` ("" or ending in a slash). *more turns false when the page is full.
static int list_folder(struct dir_store *d, struct object_request *r, const char *path, bool *more) {
    struct names names = {0};
    int number = read_names(d, path, &names);
    for (size_t i = 0; i < names.count && number == 0 && *more; i++) {
        char key[OBJECT_KEY_SIZE_MAX];
        if (snprintf(key, sizeof key, "%s%s", path, names.items[i]) >= (int)sizeof key) continue; // not made by us
        if (key[strlen(key) - 1] == '/') {
            if (folder_may_have(r, key)) number = list_folder(d, r, key, more);
        } else if (object_list_wants(r, key)) {
            struct stat st;
            if (fstatat(d->root_fd, key, &st, AT_SYMLINK_NOFOLLOW) == 0) *more = object_list_add(r, key, (uint64_t)st.st_size);
            else if (errno != ENOENT) number = errno; // removed meanwhile: not there
        }
    }
    for (size_t i = 0; i < names.count; i++) mem_free(names.items[i]);
    mem_free(names.items);
    return number;
}

static void perform_list(struct dir_store *d, struct object_request *r) {
    char path[OBJECT_KEY_SIZE_MAX]; // the deepest folder that the prefix names whole
    const char *slash = strrchr(r->key, '/');
    size_t size = slash ? (size_t)(slash - r->key) + 1 : 0;
    memcpy(path, r->key, size);
    path[size] = 0;
    bool more = true;
    int number = list_folder(d, r, path, &more);
    if (number == 0) {
        object_finish(r);
        return;
    }
    object_entries_free(r->entries, r->entry_count);
    r->entries = NULL;
    r->entry_count = 0;
    r->list_more = false;
    finish_with(r, dir_errno(d, number, "listing", &r->error));
}

// ---- remove

static void perform_remove(struct dir_store *d, struct object_request *r) {
    for (uint32_t i = 0; i < r->key_count; i++) {
        if (unlinkat(d->root_fd, r->keys[i], 0) == 0 || number_is_absent(errno)) continue;
        snprintf(r->key, sizeof r->key, "%s", r->keys[i]);
        finish_with(r, dir_errno(d, errno, "removing", &r->error));
        return;
    }
    object_finish(r);
}

void dir_perform(struct dir_store *d, struct object_request *r) {
    if (atomic_load(&d->failed)) {
        error_copy(&r->error, &d->failure);
        finish_with(r, MINK_UNAVAILABLE);
        return;
    }
    switch (r->op) {
    case OBJECT_PUT: perform_put(d, r); break;
    case OBJECT_GET: perform_get(d, r); break;
    case OBJECT_HEAD: perform_head(d, r); break;
    case OBJECT_LIST: perform_list(d, r); break;
    case OBJECT_REMOVE: perform_remove(d, r); break;
    }
}
