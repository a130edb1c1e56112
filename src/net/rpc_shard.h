// SPDX-License-Identifier: Apache-2.0
// rpc_shard.h: a shard whose event loop is a gRPC completion queue.
//
// What      A protocol thread: calls of rpc_server live on it, tasks posted by others (answers of the node) run on it, timers fire on
//           it. So the state of a call belongs to one thread and needs no lock.
// Flow      other thread → shard_post → [lock-free list] → one event wakes grpc_completion_queue_next → task.run.
// Holds     At most one wake-up is under way; a poster causes one only when the loop sleeps.
// Owner     As every shard: post from any thread, the rest on its own.
#ifndef MINK_NET_RPC_SHARD_H
#define MINK_NET_RPC_SHARD_H

#include "base/executor.h"

// First thing in main: glibc's allocator is told to keep memory (its defaults trim and fault again for each received message, at a
// sixth of the throughput), gRPC is started and its log goes through ours. Once a process.
void net_process_init(void);

struct shard *rpc_shard_start(const char *name); // a new thread; name is copied
// Runs what is queued, drains the completion queue, joins, frees; from another thread, after every server on it has closed.
void rpc_shard_stop(struct shard *s);

#endif
