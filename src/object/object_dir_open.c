// SPDX-License-Identifier: Apache-2.0
// Opening the directory store: the folder, our lock, what dead processes left, and the proof that creating works here.
#include "object/object_dir_internal.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK_NAME_SIZE (DIR_STORE_ID_SIZE + 8)

static void lock_name(char out[LOCK_NAME_SIZE], const char *id) { snprintf(out, LOCK_NAME_SIZE, "%.*s.lock", DIR_STORE_ID_SIZE, id); }

// mkdir -p. What already is there need not be ours.
static int make_path(const char *path) {
    char part[4096];
    if (snprintf(part, sizeof part, "%s", path) >= (int)sizeof part) return ENAMETOOLONG;
    for (char *at = part + 1; *at; at++) {
        if (*at != '/') continue;
        *at = 0;
        if (mkdir(part, 0755) && errno != EEXIST) return errno;
        *at = '/';
    }
    return mkdir(part, 0755) && errno != EEXIST ? errno : 0;
}

// A sweeper may meet our lock file between its creation and its lock, take it for a dead process's and remove it: then anew.
static int lock_take(struct dir_store *d) {
    for (;;) {
        uint8_t bytes[DIR_STORE_ID_SIZE / 2];
        random_system_bytes(bytes, sizeof bytes);
        for (size_t i = 0; i < sizeof bytes; i++) snprintf(d->id + 2 * i, 3, "%02x", bytes[i]);
        char name[LOCK_NAME_SIZE];
        lock_name(name, d->id);
        int fd = openat(d->tmp_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (fd < 0) return errno;
        struct stat st;
        if (flock(fd, LOCK_EX) || fstat(fd, &st)) {
            int number = errno;
            close(fd);
            return number;
        }
        if (st.st_nlink > 0) {
            d->lock_fd = fd;
            return 0;
        }
        close(fd);
    }
}

// The lock of the store `id` when nobody holds it (-1: somebody does), or -2 when there is no such lock.
static int lock_of_dead(struct dir_store *d, const char *id) {
    char name[LOCK_NAME_SIZE];
    lock_name(name, id);
    int fd = openat(d->tmp_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return errno == ENOENT ? -2 : -1;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
    close(fd);
    return -1;
}

static bool id_of_name(const char *name, char id[DIR_STORE_ID_SIZE + 1]) {
    if (strspn(name, "0123456789abcdef") != DIR_STORE_ID_SIZE) return false;
    snprintf(id, DIR_STORE_ID_SIZE + 1, "%s", name);
    return name[DIR_STORE_ID_SIZE] == '-' || strcmp(name + DIR_STORE_ID_SIZE, ".lock") == 0;
}

// Two passes, temp files before locks: while a temp file is there, so is the lock that tells whose it is.
static void sweep(struct dir_store *d, bool locks) {
    int fd = openat(d->tmp_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL) {
        if (fd >= 0) close(fd);
        return; // left for the next time
    }
    unsigned removed = 0;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char id[DIR_STORE_ID_SIZE + 1];
        if (!id_of_name(entry->d_name, id) || strcmp(id, d->id) == 0) continue;
        bool is_lock = entry->d_name[DIR_STORE_ID_SIZE] == '.';
        if (is_lock != locks) continue;
        int dead = lock_of_dead(d, id);
        if (dead == -1 || (dead == -2 && is_lock)) continue;
        if (unlinkat(d->tmp_fd, entry->d_name, 0) == 0 && !is_lock) removed++;
        if (dead >= 0) close(dead);
    }
    closedir(dir);
    if (removed) log_info("store.temp_files_removed", "store=\"%s\" count=%u", d->store.name, removed);
}

// Creates and links, as a put does, and sees a second link refused.
static enum mink_code prove(struct dir_store *d, struct error *e) {
    char temp[64], name[64];
    snprintf(temp, sizeof temp, "%s-probe", d->id);
    snprintf(name, sizeof name, ".probe-%s", d->id);
    int fd = openat(d->tmp_fd, temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0) return dir_errno(d, errno, "making a file", e);
    int number = 0;
    if (write(fd, "mink", 4) != 4) number = errno;
    else if (d->durability == OBJECT_DIR_FSYNC && fdatasync(fd)) number = errno;
    close(fd);
    enum mink_code code = number ? dir_errno(d, number, "writing a file", e) : MINK_OK;
    if (code == MINK_OK && linkat(d->tmp_fd, temp, d->root_fd, name, 0)) {
        number = errno;
        if (number == EPERM || number == EOPNOTSUPP || number == ENOSYS || number == EXDEV || number == EMLINK) {
            code = error_set(e, MINK_UNSUPPORTED, "STORE_NO_LINKS", "the file system of %s has no hard links, which creating objects needs: %s", d->root, strerror(number));
            error_hint(e, "put the store on a local file system such as ext4 or XFS");
        } else {
            code = dir_errno(d, number, "linking a file", e);
        }
    } else if (code == MINK_OK) {
        if (linkat(d->tmp_fd, temp, d->root_fd, name, 0) == 0 || errno != EEXIST)
            code = error_set(e, MINK_UNSUPPORTED, "STORE_NOT_ATOMIC", "the file system of %s does not refuse to create an existing name", d->root);
        unlinkat(d->root_fd, name, 0);
    }
    unlinkat(d->tmp_fd, temp, 0);
    return code;
}

void dir_store_free(struct dir_store *d) {
    if (d->lock_fd >= 0) {
        char name[LOCK_NAME_SIZE];
        lock_name(name, d->id);
        unlinkat(d->tmp_fd, name, 0);
        close(d->lock_fd);
    }
    if (d->tmp_fd >= 0) close(d->tmp_fd);
    if (d->root_fd >= 0) close(d->root_fd);
    dir_folders_free(d);
    pthread_mutex_destroy(&d->lock);
    pthread_cond_destroy(&d->wake);
    pthread_mutex_destroy(&d->folder_lock);
    pthread_cond_destroy(&d->folder_synced);
    mem_free(d->threads);
    mem_free(d->root);
    mem_free(d);
}

static enum mink_code open_folders(struct dir_store *d, const char *path, struct error *e) {
    int number = *path ? make_path(path) : ENOENT;
    if (number == EROFS || number == EACCES || number == EPERM || number == ENOSPC) return dir_errno(d, number, "making the folder", e);
    if (number == 0) {
        d->root_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (d->root_fd < 0) number = errno;
    }
    if (number == EACCES) return dir_errno(d, number, "opening the folder", e);
    if (number) {
        error_set(e, MINK_INVALID, "STORE_PATH", "the store's folder %s: %s", path, strerror(number));
        error_hint(e, "name a folder; it is made when absent");
        return MINK_INVALID;
    }
    char absolute[PATH_MAX];
    if (realpath(path, absolute)) {
        mem_free(d->root);
        d->root = mem_strdup(absolute);
    }
    snprintf(d->store.name, sizeof d->store.name, "file://%s", d->root);
    if (mkdirat(d->root_fd, DIR_TMP, 0755) && errno != EEXIST) return dir_errno(d, errno, "making a folder", e);
    d->tmp_fd = openat(d->root_fd, DIR_TMP, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (d->tmp_fd < 0) return dir_errno(d, errno, "opening " DIR_TMP, e);
    if ((number = lock_take(d)) != 0) return dir_errno(d, number, "making a lock file", e);
    return MINK_OK;
}

enum mink_code object_dir_open(const char *path, enum object_dir_durability durability, unsigned threads, struct object_store **out, struct error *e) {
    struct dir_store *d = mem_new(struct dir_store);
    d->root = mem_strdup(path);
    d->root_fd = d->tmp_fd = d->lock_fd = -1;
    d->durability = durability;
    pthread_mutex_init(&d->folder_lock, NULL);
    pthread_cond_init(&d->folder_synced, NULL);
    dir_queues_init(d, threads);
    enum mink_code code = open_folders(d, path, e);
    if (code == MINK_OK) code = prove(d, e);
    if (code != MINK_OK) {
        dir_store_free(d);
        return code;
    }
    sweep(d, false);
    sweep(d, true);
    *out = &d->store;
    return MINK_OK;
}
