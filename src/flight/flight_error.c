// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"
#include "flight/flight_internal.h"

void flight_finish(struct rpc_call *c, const struct error *e, const char *extra) {
    if (rpc_call_finished(c)) return;
    if (e->code == MINK_INTERNAL || e->code == MINK_CORRUPT)
        log_limited(LOG_ERROR, "flight.failed", "peer=%s code=%s reason=%s message=\"%s\"", rpc_call_peer(c), mink_code_name(e->code), e->reason, e->message);
    struct rpc_status status;
    rpc_status_make(e, extra, &status);
    rpc_call_finish(c, &status);
}

void flight_finish_ok(struct rpc_call *c) {
    struct error fine = {0};
    flight_finish(c, &fine, NULL);
}

enum mink_code flight_sql_refused(struct error *e) {
    error_set(e, MINK_UNSUPPORTED, "NO_FLIGHT_SQL", "this port speaks Mink's native commands, not Flight SQL");
    error_hint(e, "send a JSON command or a path [database, table]");
    return MINK_UNSUPPORTED;
}
