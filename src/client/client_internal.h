// SPDX-License-Identifier: Apache-2.0
// client_internal.h: what the parts of libmink share.
#ifndef MINK_CLIENT_CLIENT_INTERNAL_H
#define MINK_CLIENT_CLIENT_INTERNAL_H

#include "arrow/cdata.h"
#include "base/error.h"
#include "mink/mink.h"
#include "net/rpc_client.h"

struct mink_client {
    struct rpc_client *rpc;
    uint32_t timeout_ms;
};

// The error of a call, told to the user. Returns its status.
enum mink_status client_tell(const struct error *from, struct mink_error *to);

// Sends the only message of a call and closes our side. A server that has answered and ended meanwhile is no failure: what it sent decides.
enum mink_code client_send_only(struct rpc_stream *stream, struct slice take_message, struct error *e) MINK_MUST_CHECK;

#endif
