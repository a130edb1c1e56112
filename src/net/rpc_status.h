// SPDX-License-Identifier: Apache-2.0
// rpc_status.h: struct error to gRPC status, message and trailers, and back.
//
// What      Message "[REASON] text; hint". Trailers: mink-error (one line of JSON), grpc-status-details-bin (google.rpc.Status with
//           ErrorInfo), retry-after-ms.
// Bounds    Message and details <= 2 KiB each: clients keep an 8 KiB limit on headers.
#ifndef MINK_NET_RPC_STATUS_H
#define MINK_NET_RPC_STATUS_H

#include "base/buffer.h"
#include "base/error.h"

struct rpc_metadata { // key is static; the value is one reference
    const char *key;
    struct slice value;
};

#define RPC_TRAILERS_MAX 8
struct rpc_status {
    enum mink_code code;
    char message[900];
    struct rpc_metadata trailers[RPC_TRAILERS_MAX];
    uint32_t trailer_count;
};

// extra: more members of the mink-error object ("\"batch\":7,\"acked\":6"), or NULL. e NULL or OK = success.
void rpc_status_make(const struct error *e, const char *extra, struct rpc_status *out);
void rpc_status_add(struct rpc_status *s, const char *key, struct slice take_value);
void rpc_status_deinit(struct rpc_status *s);
// At the client: message and the value of mink-error (may be empty) → error with the server's reason, text and details. Returns out->code.
enum mink_code rpc_status_read(enum mink_code code, const char *message, struct slice mink_error, struct error *out);

#endif
