// SPDX-License-Identifier: Apache-2.0
#include "net/flight_message.h"

#include "base/mem.h"
#include "net/flight.pb-c.h"

#include <string.h>

static enum mink_code malformed(struct error *e, const char *what) {
    return error_set(e, MINK_INVALID, "BAD_MESSAGE", "%s is not a well-formed protobuf message", what);
}

static struct slice pack(const ProtobufCMessage *m) {
    uint8_t *data;
    struct slice s = slice_new(protobuf_c_message_get_packed_size(m), &data);
    protobuf_c_message_pack(m, data);
    return s;
}

static ProtobufCMessage *unpack(const ProtobufCMessageDescriptor *d, struct slice bytes) {
    // The library takes a size of 0 with any pointer, but not a NULL one.
    return protobuf_c_message_unpack(d, NULL, bytes.size, bytes.size ? bytes.data : (const uint8_t *)"");
}

static struct slice copy_bytes(ProtobufCBinaryData b) { return b.len ? slice_copy(b.data, b.len) : slice_empty(); }
static ProtobufCBinaryData view_bytes(const void *data, size_t size) { return (ProtobufCBinaryData){size, (uint8_t *)data}; }

// ---- descriptor

enum mink_code flight_descriptor_decode(struct slice bytes, struct flight_descriptor *out, struct error *e) {
    *out = (struct flight_descriptor){0};
    Flight__FlightDescriptor *m = (Flight__FlightDescriptor *)unpack(&flight__flight_descriptor__descriptor, bytes);
    if (m == NULL) return malformed(e, "FlightDescriptor");
    enum mink_code code = MINK_OK;
    if (m->type == FLIGHT__FLIGHT_DESCRIPTOR__DESCRIPTOR_TYPE__PATH) out->type = FLIGHT_DESCRIPTOR_PATH;
    else if (m->type == FLIGHT__FLIGHT_DESCRIPTOR__DESCRIPTOR_TYPE__CMD) out->type = FLIGHT_DESCRIPTOR_CMD;
    if (m->n_path > 16) {
        code = error_set(e, MINK_INVALID, "BAD_DESCRIPTOR", "a descriptor's path has at most 3 parts, this one has %zu", m->n_path);
    } else {
        out->cmd = copy_bytes(m->cmd);
        out->path_count = (uint32_t)m->n_path;
        out->path = mem_new_array(char *, m->n_path + 1);
        for (size_t i = 0; i < m->n_path; i++) out->path[i] = mem_strdup(m->path[i]);
    }
    flight__flight_descriptor__free_unpacked(m, NULL);
    return code;
}

static void fill_descriptor(Flight__FlightDescriptor *m, const struct flight_descriptor *d) {
    m->type = d->type == FLIGHT_DESCRIPTOR_PATH  ? FLIGHT__FLIGHT_DESCRIPTOR__DESCRIPTOR_TYPE__PATH
              : d->type == FLIGHT_DESCRIPTOR_CMD ? FLIGHT__FLIGHT_DESCRIPTOR__DESCRIPTOR_TYPE__CMD
                                                 : FLIGHT__FLIGHT_DESCRIPTOR__DESCRIPTOR_TYPE__UNKNOWN;
    m->cmd = view_bytes(d->cmd.data, d->cmd.size);
    m->n_path = d->path_count;
    m->path = d->path;
}

struct slice flight_descriptor_encode(const struct flight_descriptor *d) {
    Flight__FlightDescriptor m = FLIGHT__FLIGHT_DESCRIPTOR__INIT;
    fill_descriptor(&m, d);
    return pack(&m.base);
}

void flight_descriptor_deinit(struct flight_descriptor *d) {
    slice_unref(&d->cmd);
    for (uint32_t i = 0; i < d->path_count; i++) mem_free(d->path[i]);
    mem_free(d->path);
    *d = (struct flight_descriptor){0};
}

// ---- one bytes field

struct slice flight_bytes_encode(const void *data, size_t size) {
    Flight__Result m = FLIGHT__RESULT__INIT;
    m.body = view_bytes(data, size);
    return pack(&m.base);
}

enum mink_code flight_bytes_decode(struct slice bytes, const char *what, struct slice *out, struct error *e) {
    *out = slice_empty();
    Flight__Result *m = (Flight__Result *)unpack(&flight__result__descriptor, bytes);
    if (m == NULL) return malformed(e, what);
    *out = copy_bytes(m->body);
    flight__result__free_unpacked(m, NULL);
    return MINK_OK;
}

// ---- actions

enum mink_code flight_action_decode(struct slice bytes, struct flight_action *out, struct error *e) {
    *out = (struct flight_action){0};
    Flight__Action *m = (Flight__Action *)unpack(&flight__action__descriptor, bytes);
    if (m == NULL) return malformed(e, "Action");
    out->type = mem_strdup(m->type);
    out->body = copy_bytes(m->body);
    flight__action__free_unpacked(m, NULL);
    return MINK_OK;
}

struct slice flight_action_encode(const char *type, const void *body, size_t body_size) {
    Flight__Action m = FLIGHT__ACTION__INIT;
    m.type = (char *)type;
    m.body = view_bytes(body, body_size);
    return pack(&m.base);
}

void flight_action_deinit(struct flight_action *a) {
    mem_free(a->type);
    slice_unref(&a->body);
    *a = (struct flight_action){0};
}

struct slice flight_action_type_encode(const char *type, const char *description) {
    Flight__ActionType m = FLIGHT__ACTION_TYPE__INIT;
    m.type = (char *)type;
    m.description = (char *)description;
    return pack(&m.base);
}

// ---- info

// The nested messages of one endpoint; they point into it.
struct packed_endpoint {
    Flight__FlightEndpoint endpoint;
    Flight__Ticket ticket;
    Flight__Timestamp expires;
    Flight__Location *locations;
    Flight__Location **location_list;
};

static void fill_endpoint(struct packed_endpoint *p, const struct flight_endpoint *from) {
    flight__flight_endpoint__init(&p->endpoint);
    flight__ticket__init(&p->ticket);
    p->ticket.ticket = view_bytes(from->ticket.data, from->ticket.size);
    p->endpoint.ticket = &p->ticket;
    if (from->expires_ms) {
        flight__timestamp__init(&p->expires);
        p->expires.seconds = from->expires_ms / 1000;
        p->expires.nanos = (int32_t)(from->expires_ms % 1000 * 1000000);
        p->endpoint.expiration_time = &p->expires;
    }
    p->locations = mem_new_array(Flight__Location, from->location_count + 1);
    p->location_list = mem_new_array(Flight__Location *, from->location_count + 1);
    for (uint32_t i = 0; i < from->location_count; i++) {
        flight__location__init(&p->locations[i]);
        p->locations[i].uri = (char *)from->locations[i];
        p->location_list[i] = &p->locations[i];
    }
    p->endpoint.n_location = from->location_count;
    p->endpoint.location = p->location_list;
}

static void endpoint_clear(struct packed_endpoint *p) {
    mem_free(p->locations);
    mem_free(p->location_list);
}

struct slice flight_endpoint_encode(const struct flight_endpoint *endpoint) {
    struct packed_endpoint p = {0};
    fill_endpoint(&p, endpoint);
    struct slice s = pack(&p.endpoint.base);
    endpoint_clear(&p);
    return s;
}

static struct slice info_encode(const struct flight_info *info, bool poll) {
    Flight__FlightInfo m = FLIGHT__FLIGHT_INFO__INIT;
    Flight__FlightDescriptor descriptor = FLIGHT__FLIGHT_DESCRIPTOR__INIT;
    m.schema = view_bytes(info->schema.data, info->schema.size);
    m.app_metadata = view_bytes(info->app_metadata.data, info->app_metadata.size);
    if (info->descriptor) {
        fill_descriptor(&descriptor, info->descriptor);
        m.flight_descriptor = &descriptor;
    }
    struct packed_endpoint *endpoints = mem_new_array(struct packed_endpoint, info->endpoint_count + 1);
    Flight__FlightEndpoint **list = mem_new_array(Flight__FlightEndpoint *, info->endpoint_count + 1);
    for (uint32_t i = 0; i < info->endpoint_count; i++) {
        fill_endpoint(&endpoints[i], &info->endpoints[i]);
        list[i] = &endpoints[i].endpoint;
    }
    m.n_endpoint = info->endpoint_count;
    m.endpoint = list;
    m.total_records = info->total_records;
    m.total_bytes = info->total_bytes;
    struct slice s;
    if (poll) {
        Flight__PollInfo outer = FLIGHT__POLL_INFO__INIT;
        outer.info = &m;
        outer.progress = 1;
        s = pack(&outer.base);
    } else {
        s = pack(&m.base);
    }
    for (uint32_t i = 0; i < info->endpoint_count; i++) endpoint_clear(&endpoints[i]);
    mem_free(endpoints);
    mem_free(list);
    return s;
}

struct slice flight_info_encode(const struct flight_info *info) {
    return info_encode(info, false);
}
struct slice flight_poll_info_encode(const struct flight_info *info) {
    return info_encode(info, true);
}

enum mink_code flight_info_decode(struct slice bytes, struct flight_info_view *out, struct error *e) {
    *out = (struct flight_info_view){0};
    Flight__FlightInfo *m = (Flight__FlightInfo *)unpack(&flight__flight_info__descriptor, bytes);
    if (m == NULL) return malformed(e, "FlightInfo");
    out->schema = copy_bytes(m->schema);
    out->app_metadata = copy_bytes(m->app_metadata);
    out->total_records = m->total_records;
    out->ticket_count = (uint32_t)m->n_endpoint;
    out->tickets = mem_new_array(struct slice, m->n_endpoint + 1);
    for (size_t i = 0; i < m->n_endpoint; i++)
        if (m->endpoint[i]->ticket) out->tickets[i] = copy_bytes(m->endpoint[i]->ticket->ticket);
    flight__flight_info__free_unpacked(m, NULL);
    return MINK_OK;
}

void flight_info_view_deinit(struct flight_info_view *v) {
    slice_unref(&v->schema);
    slice_unref(&v->app_metadata);
    for (uint32_t i = 0; i < v->ticket_count; i++) slice_unref(&v->tickets[i]);
    mem_free(v->tickets);
    *v = (struct flight_info_view){0};
}

// ---- handshake

enum mink_code flight_handshake_decode(struct slice bytes, struct flight_handshake *out, struct error *e) {
    *out = (struct flight_handshake){0};
    Flight__HandshakeRequest *m = (Flight__HandshakeRequest *)unpack(&flight__handshake_request__descriptor, bytes);
    if (m == NULL) return malformed(e, "HandshakeRequest");
    out->payload = copy_bytes(m->payload);
    // Any payload is taken; only a BasicAuth has a user inside.
    Flight__BasicAuth *basic = out->payload.size ? (Flight__BasicAuth *)unpack(&flight__basic_auth__descriptor, out->payload) : NULL;
    if (basic && basic->username[0]) {
        out->user = mem_strdup(basic->username);
        out->password = mem_strdup(basic->password);
    }
    if (basic) flight__basic_auth__free_unpacked(basic, NULL);
    flight__handshake_request__free_unpacked(m, NULL);
    return MINK_OK;
}

struct slice flight_handshake_encode(const void *payload, size_t size) {
    Flight__HandshakeResponse m = FLIGHT__HANDSHAKE_RESPONSE__INIT;
    m.payload = view_bytes(payload, size);
    return pack(&m.base);
}

void flight_handshake_deinit(struct flight_handshake *h) {
    slice_unref(&h->payload);
    mem_free(h->user);
    mem_free(h->password);
    *h = (struct flight_handshake){0};
}

// ---- cancel and renew

enum mink_code flight_cancel_request_check(struct slice bytes, struct error *e) {
    Flight__CancelFlightInfoRequest *m = (Flight__CancelFlightInfoRequest *)unpack(&flight__cancel_flight_info_request__descriptor, bytes);
    bool whole = m && m->info;
    if (m) flight__cancel_flight_info_request__free_unpacked(m, NULL);
    return whole ? MINK_OK : malformed(e, "CancelFlightInfoRequest");
}

struct slice flight_cancel_result_encode(enum flight_cancel_status status) {
    Flight__CancelFlightInfoResult m = FLIGHT__CANCEL_FLIGHT_INFO_RESULT__INIT;
    m.status = (Flight__CancelFlightInfoResult__CancelStatus)status;
    return pack(&m.base);
}

enum mink_code flight_renew_request_decode(struct slice bytes, struct slice *out_ticket, struct error *e) {
    *out_ticket = slice_empty();
    Flight__RenewFlightEndpointRequest *m = (Flight__RenewFlightEndpointRequest *)unpack(&flight__renew_flight_endpoint_request__descriptor, bytes);
    bool whole = m && m->endpoint && m->endpoint->ticket;
    if (whole) *out_ticket = copy_bytes(m->endpoint->ticket->ticket);
    if (m) flight__renew_flight_endpoint_request__free_unpacked(m, NULL);
    return whole ? MINK_OK : malformed(e, "RenewFlightEndpointRequest");
}
