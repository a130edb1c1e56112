// SPDX-License-Identifier: Apache-2.0
// bucket_internal.h: the insides of a live bucket; shared by bucket_*.c.
#ifndef MINK_BUCKET_BUCKET_INTERNAL_H
#define MINK_BUCKET_BUCKET_INTERNAL_H
#include <pthread.h>

#include "bucket/bucket.h"
#include "bucket/writer_state.h"

struct bucket_list { struct bucket_append *first, **last; };

// An idle bucket is this struct and nothing else: keep it small.
struct bucket {
    struct bucket_config config;
    uint32_t epoch;
    uint64_t start;                // of the stream when it was opened
    uint64_t next_offset;          // the next batch gets it
    uint64_t bytes_in_flight;
    uint32_t requests;             // appends not yet answered
    struct bucket_list in_flight;  // with the stream layer, in offset order
    struct bucket_list duplicates; // of batches still in flight: answered with them
    struct error *failed;          // why no append is taken any more; NULL = healthy
    struct writer_state assigned;  // as of next_offset: decides what is a duplicate
    void (*on_closed)(void *ctx);
    void *closed_ctx;
    // The lock guards what follows against bucket_attachment, which runs on the stream layer's shard. Innermost.
    pthread_mutex_t lock;
    struct writer_state acknowledged; // offset_end is the high watermark
    struct slice prepared;         // a snapshot as of prepared_offset, for a commit that ends between it and the high watermark
    uint64_t prepared_offset;
};

void bucket_list_init(struct bucket_list *l);
void bucket_list_add(struct bucket_list *l, struct bucket_append *a);
void bucket_list_remove(struct bucket_list *l, struct bucket_append *a);
#endif
