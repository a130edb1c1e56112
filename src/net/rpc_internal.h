// SPDX-License-Identifier: Apache-2.0
// What the files of net share about gRPC's C core; not for other folders.
#ifndef MINK_NET_RPC_INTERNAL_H
#define MINK_NET_RPC_INTERNAL_H

#include "base/executor.h"
#include "base/slice.h"
#include "net/rpc_status.h"

#include <grpc/grpc.h>

// The tag of everything started on a completion queue.
struct rpc_op {
    void (*done)(struct rpc_op *op, bool ok);
};

grpc_completion_queue *rpc_shard_queue(struct shard *s);

// gRPC is not built for ThreadSanitizer, so it cannot see that starting an operation happens before its event.
#if defined(__SANITIZE_THREAD__)
void __tsan_acquire(void *address);
void __tsan_release(void *address);
#define rpc_tsan_release(p) __tsan_release(p)
#define rpc_tsan_acquire(p) __tsan_acquire(p)
#else
#define rpc_tsan_release(p) ((void)(p))
#define rpc_tsan_acquire(p) ((void)(p))
#endif

void rpc_start_batch(grpc_call *call, const grpc_op *ops, size_t count, struct rpc_op *op);

// Moves the slices into a byte buffer without copying what is large; pieces below a threshold are joined. *list is empty afterwards.
grpc_byte_buffer *rpc_buffer_take(struct slices *list);
// Views of a received buffer, valid while it lives; only the item array is allocated.
void rpc_buffer_view(const grpc_byte_buffer *buffer, struct slices *out);
void rpc_view_deinit(struct slices *views);

grpc_status_code rpc_status_to_grpc(enum mink_code code);
enum mink_code rpc_status_from_grpc(grpc_status_code status);

#endif
