// SPDX-License-Identifier: Apache-2.0
// flight_message.h: the small messages of Flight as plain structs, both directions. protobuf-c stays behind it.
// Owner     Pure; any thread. Decoded structs own what they hold until their deinit. Decoders give INVALID [BAD_MESSAGE] with the message's name.
#ifndef MINK_NET_FLIGHT_MESSAGE_H
#define MINK_NET_FLIGHT_MESSAGE_H

#include "base/error.h"
#include "base/slice.h"

#define FLIGHT_SERVICE "/arrow.flight.protocol.FlightService/"

enum flight_descriptor_type { FLIGHT_DESCRIPTOR_UNKNOWN, FLIGHT_DESCRIPTOR_PATH, FLIGHT_DESCRIPTOR_CMD };
struct flight_descriptor {
    enum flight_descriptor_type type;
    struct slice cmd;
    char **path;
    uint32_t path_count;
};
enum mink_code flight_descriptor_decode(struct slice bytes, struct flight_descriptor *out, struct error *e) MINK_MUST_CHECK;
struct slice flight_descriptor_encode(const struct flight_descriptor *d);
void flight_descriptor_deinit(struct flight_descriptor *d);

// Messages that are one bytes field: Ticket, Criteria, Result, PutResult, SchemaResult (all field 1).
struct slice flight_bytes_encode(const void *data, size_t size);
enum mink_code flight_bytes_decode(struct slice bytes, const char *what, struct slice *out, struct error *e) MINK_MUST_CHECK; // a reference

struct flight_action {
    char *type;
    struct slice body;
};
enum mink_code flight_action_decode(struct slice bytes, struct flight_action *out, struct error *e) MINK_MUST_CHECK;
struct slice flight_action_encode(const char *type, const void *body, size_t body_size);
void flight_action_deinit(struct flight_action *a);
struct slice flight_action_type_encode(const char *type, const char *description);

struct flight_endpoint {
    struct slice ticket;
    int64_t expires_ms; /* 0 = never */
    const char *const *locations;
    uint32_t location_count;
};
struct flight_info {
    struct slice schema, app_metadata;
    const struct flight_descriptor *descriptor; // may be NULL
    const struct flight_endpoint *endpoints;
    uint32_t endpoint_count;
    int64_t total_records, total_bytes; // -1 unknown
};
struct slice flight_info_encode(const struct flight_info *info);
struct slice flight_poll_info_encode(const struct flight_info *info); // finished: no descriptor, progress 1
// At the client: the schema bytes and the tickets. Freed with flight_info_view_deinit.
struct flight_info_view {
    struct slice schema, app_metadata;
    struct slice *tickets;
    uint32_t ticket_count;
    int64_t total_records;
};
enum mink_code flight_info_decode(struct slice bytes, struct flight_info_view *out, struct error *e) MINK_MUST_CHECK;
void flight_info_view_deinit(struct flight_info_view *v);

// Handshake: what the client brought; user and password are set when the payload is a BasicAuth.
struct flight_handshake {
    struct slice payload;
    char *user, *password;
};
enum mink_code flight_handshake_decode(struct slice bytes, struct flight_handshake *out, struct error *e) MINK_MUST_CHECK;
struct slice flight_handshake_encode(const void *payload, size_t size);
void flight_handshake_deinit(struct flight_handshake *h);

enum flight_cancel_status { FLIGHT_CANCEL_UNSPECIFIED, FLIGHT_CANCELLED, FLIGHT_CANCELLING, FLIGHT_NOT_CANCELLABLE };
enum mink_code flight_cancel_request_check(struct slice bytes, struct error *e) MINK_MUST_CHECK; // CancelFlightInfoRequest with an info
struct slice flight_cancel_result_encode(enum flight_cancel_status status);
// RenewFlightEndpointRequest → its endpoint's ticket; and the renewed endpoint.
enum mink_code flight_renew_request_decode(struct slice bytes, struct slice *out_ticket, struct error *e) MINK_MUST_CHECK;
struct slice flight_endpoint_encode(const struct flight_endpoint *endpoint);

#endif
