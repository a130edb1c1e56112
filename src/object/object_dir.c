// SPDX-License-Identifier: Apache-2.0
// The directory store's queues: blocking I/O on a few threads, one queue a priority class.
//
// A thread takes the first request of the most urgent class that is below its share. Shares are such that at least a quarter of the
// threads is left to WAL puts, whatever else is asked for.
#include "object/object_dir_internal.h"

#include "base/mem.h"

#include <unistd.h>

static struct dir_store *dir_of(struct object_store *store) { return container_of(store, struct dir_store, store); }

static bool may_run(const struct dir_store *d, int priority) {
    const struct dir_queue *q = &d->queues[priority];
    return q->running < q->running_max && (priority == OBJECT_WAL_PUT || d->others_running < d->others_max);
}

static struct object_request *take(struct dir_store *d) {
    for (int i = 0; i < OBJECT_PRIORITY_COUNT; i++) {
        struct dir_queue *q = &d->queues[i];
        if (q->first == NULL || !may_run(d, i)) continue;
        struct object_request *r = q->first;
        q->first = r->next;
        if (q->first == NULL) q->last = &q->first;
        q->running++;
        if (i != OBJECT_WAL_PUT) d->others_running++;
        return r;
    }
    return NULL;
}

static void thread_run(void *ctx) {
    struct dir_store *d = ctx;
    pthread_mutex_lock(&d->lock);
    for (;;) {
        struct object_request *r = take(d);
        if (r) {
            enum object_priority priority = r->priority;
            pthread_mutex_unlock(&d->lock);
            dir_perform(d, r); // r is gone
            pthread_mutex_lock(&d->lock);
            d->queues[priority].running--;
            if (priority != OBJECT_WAL_PUT) d->others_running--;
            continue;
        }
        if (d->stopping) break;
        d->idle++;
        while (d->wakes == 0 && !d->stopping) pthread_cond_wait(&d->wake, &d->lock);
        if (d->wakes) d->wakes--; // whoever woke us has counted us out of idle
        else d->idle--;
    }
    pthread_mutex_unlock(&d->lock);
}

static void dir_submit(struct object_store *store, struct object_request *r) {
    struct dir_store *d = dir_of(store);
    r->next = NULL;
    pthread_mutex_lock(&d->lock);
    struct dir_queue *q = &d->queues[r->priority];
    *q->last = r;
    q->last = &r->next;
    bool signal = false;
    if (may_run(d, (int)r->priority)) { // otherwise a thread that comes back takes it
        if (d->idle > 0) {
            d->idle--;
            d->wakes++;
            signal = true;
        } else if (d->thread_count < d->threads_max) {
            d->threads[d->thread_count++] = thread_start("mink-store", thread_run, d);
        }
    }
    pthread_mutex_unlock(&d->lock);
    if (signal) pthread_cond_signal(&d->wake);
}

static void dir_close(struct object_store *store) {
    struct dir_store *d = dir_of(store);
    pthread_mutex_lock(&d->lock);
    d->stopping = true;
    pthread_mutex_unlock(&d->lock);
    pthread_cond_broadcast(&d->wake);
    for (unsigned i = 0; i < d->thread_count; i++) thread_join(d->threads[i]);
    dir_store_free(d);
}

static const struct object_store_ops dir_ops = {dir_submit, dir_close};

void dir_queues_init(struct dir_store *d, unsigned threads) {
    d->store.ops = &dir_ops;
    if (threads == 0) threads = 16;
    if (threads < 2) threads = 2; // one of them for WAL puts
    d->threads_max = threads;
    d->threads = mem_new_array(struct thread *, threads);
    unsigned others = d->others_max = threads - (threads + 3) / 4;
    const unsigned share[OBJECT_PRIORITY_COUNT] = {
        [OBJECT_WAL_PUT] = threads,       [OBJECT_TAKEOVER] = others / 2,   [OBJECT_LIVE_READ] = others / 2, [OBJECT_COMMIT] = others / 3,
        [OBJECT_COLD_READ] = others / 3, [OBJECT_COMPACTION] = others / 6, [OBJECT_DELETE] = others / 12,
    };
    for (int i = 0; i < OBJECT_PRIORITY_COUNT; i++) {
        d->queues[i].last = &d->queues[i].first;
        d->queues[i].running_max = share[i] ? share[i] : 1;
    }
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->wake, NULL);
}
