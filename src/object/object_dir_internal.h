// SPDX-License-Identifier: Apache-2.0
// object_dir_internal.h: the directory store in three files: the queues (object_dir.c), what a request does to the files
// (object_dir_file.c), and opening (object_dir_open.c).
#ifndef MINK_OBJECT_OBJECT_DIR_INTERNAL_H
#define MINK_OBJECT_OBJECT_DIR_INTERNAL_H

#include "object/object_dir.h"
#include "object/object_internal.h"

#include <pthread.h>
#include <stdatomic.h>

#define DIR_TMP ".tmp"
#define DIR_STORE_ID_SIZE 16 // hex digits

// A folder that is known to exist durably. Syncs of it are shared: one fsync covers every name linked before it began.
struct dir_folder {
    struct dir_folder *next;
    uint64_t synced, wanted; // counts of requests for a sync: a sync that began when `wanted` was n serves all up to n
    bool syncing;
    char path[]; // relative to the root, no trailing slash; "" is the root
};

struct dir_queue {
    struct object_request *first, **last;
    unsigned running, running_max;
};

struct dir_store {
    struct object_store store;
    char *root;
    int root_fd, tmp_fd, lock_fd;
    char id[DIR_STORE_ID_SIZE + 1];
    enum object_dir_durability durability;
    atomic_uint_fast64_t temp_number;

    pthread_mutex_t lock; // guards what follows
    pthread_cond_t wake;
    struct dir_queue queues[OBJECT_PRIORITY_COUNT];
    struct thread **threads;
    unsigned thread_count, threads_max, idle, wakes; // wakes: signals given and not yet taken
    unsigned others_running, others_max; // all but WAL puts
    bool stopping;

    pthread_mutex_t folder_lock; // guards folders and what is in them; never held together with `lock`
    pthread_cond_t folder_synced;
    struct dir_folder *folders[256];

    atomic_bool failed;
    struct error failure; // written once, before `failed` is set
};

void dir_perform(struct dir_store *d, struct object_request *r); // blocks; ends with object_finish
// Tells errno in the store's words. EIO marks the store as failed.
enum mink_code dir_errno(struct dir_store *d, int number, const char *what, struct error *e);
void dir_queues_init(struct dir_store *d, unsigned threads);
void dir_folders_free(struct dir_store *d);
void dir_store_free(struct dir_store *d);

#endif
