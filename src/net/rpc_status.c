// SPDX-License-Identifier: Apache-2.0
// Codes and their counterparts.
//
// Trap: the trailer x-arrow-status would make Arrow C++ fill extra_info from our details, but also makes pyarrow raise FlightInternalError for
// every code. The right class of exception is worth more, so it is not sent.
#include "net/rpc_status.h"

#include "base/json.h"
#include "base/mem.h"
#include "net/flight.pb-c.h"
#include "net/rpc_internal.h"

#include <stdio.h>
#include <string.h>

static const grpc_status_code codes[MINK_CODE_COUNT] = {
    [MINK_OK] = GRPC_STATUS_OK,
    [MINK_INVALID] = GRPC_STATUS_INVALID_ARGUMENT,
    [MINK_NOT_FOUND] = GRPC_STATUS_NOT_FOUND,
    [MINK_EXISTS] = GRPC_STATUS_ALREADY_EXISTS,
    [MINK_CONFLICT] = GRPC_STATUS_FAILED_PRECONDITION,
    [MINK_OUT_OF_RANGE] = GRPC_STATUS_OUT_OF_RANGE,
    [MINK_UNAVAILABLE] = GRPC_STATUS_UNAVAILABLE,
    [MINK_OVERLOADED] = GRPC_STATUS_RESOURCE_EXHAUSTED,
    [MINK_FENCED] = GRPC_STATUS_ABORTED,
    [MINK_CORRUPT] = GRPC_STATUS_DATA_LOSS,
    [MINK_UNSUPPORTED] = GRPC_STATUS_UNIMPLEMENTED,
    [MINK_UNKNOWN_OUTCOME] = GRPC_STATUS_UNKNOWN,
    [MINK_CANCELLED] = GRPC_STATUS_CANCELLED,
    [MINK_DEADLINE] = GRPC_STATUS_DEADLINE_EXCEEDED,
    [MINK_DENIED] = GRPC_STATUS_PERMISSION_DENIED,
    [MINK_INTERNAL] = GRPC_STATUS_INTERNAL,
};

grpc_status_code rpc_status_to_grpc(enum mink_code code) { return codes[code]; }

enum mink_code rpc_status_from_grpc(grpc_status_code status) {
    if (status == GRPC_STATUS_UNAUTHENTICATED) return MINK_DENIED;
    for (unsigned i = 0; i < MINK_CODE_COUNT; i++)
        if (codes[i] == status) return (enum mink_code)i;
    return MINK_INTERNAL;
}

// Length of the UTF-8 sequence at s, 0 when it is not one. *point gets the code point.
static unsigned utf8_sequence(const unsigned char *s, uint32_t *point) {
    unsigned size = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : s[0] >= 0xe0 && s[0] < 0xf0 ? 3 : s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0;
    if (size == 0) return 0;
    *point = size == 1 ? s[0] : s[0] & (0xffu >> (size + 1));
    for (unsigned i = 1; i < size; i++) {
        if ((s[i] & 0xc0) != 0x80) return 0;
        *point = *point << 6 | (s[i] & 0x3f);
    }
    if ((size == 3 && *point < 0x800) || (size == 4 && *point < 0x10000) || *point > 0x10ffff || (*point >= 0xd800 && *point < 0xe000)) return 0;
    return size;
}

// Texts quote what clients sent and are cut at fixed sizes, so they may end inside a character; clients refuse such a status.
static void repair_text(char *s) {
    uint32_t point;
    for (unsigned size; *s; s += size) {
        size = utf8_sequence((unsigned char *)s, &point);
        if (size == 0 || (size == 1 && (point < 0x20 || point == 0x7f))) {
            *s = point == '\n' && size ? ' ' : '?';
            size = 1;
        }
    }
}

// Header values are printable ASCII: everything else becomes \u escapes, which only JSON strings can hold here.
static struct slice ascii_json(struct buffer *json) {
    struct buffer out;
    buffer_init(&out, 4 * json->size + 1);
    const char *s = buffer_string(json);
    uint32_t point;
    for (unsigned size; *s; s += size) {
        size = utf8_sequence((const unsigned char *)s, &point);
        if (size <= 1) {
            if (*s == 0x7f) buffer_put_string(&out, "\\u007f");
            else buffer_put_u8(&out, size ? (uint8_t)*s : '?');
            size = 1;
        } else if (point < 0x10000) {
            buffer_printf(&out, "\\u%04x", point);
        } else {
            buffer_printf(&out, "\\u%04x\\u%04x", 0xd7c0 + (point >> 10), 0xdc00 + (point & 0x3ff));
        }
    }
    struct slice s_out = buffer_take_slice(&out);
    buffer_deinit(&out);
    return s_out;
}

static void put_text(struct json_writer *w, const char *key, const char *text) {
    if (text[0] == 0) return;
    json_put_key(w, key);
    json_put_string(w, text);
}

static struct slice error_json(const struct error *e, const char *extra) {
    struct buffer b;
    buffer_init(&b, 4096);
    struct json_writer w;
    json_begin(&w, &b);
    json_object_begin(&w);
    json_put_key(&w, "code");
    json_put_string(&w, e->reason);
    put_text(&w, "message", e->message);
    put_text(&w, "hint", e->hint);
    put_text(&w, "column", e->column);
    put_text(&w, "expected", e->expected);
    put_text(&w, "actual", e->actual);
    json_put_key(&w, "retry");
    json_put_bool(&w, mink_code_retriable(e->code));
    json_object_end(&w);
    if (extra && !b.overflowed) {
        b.size--; // reopen the object
        buffer_printf(&b, ",%s}", extra);
    }
    struct slice s = ascii_json(&b);
    buffer_deinit(&b);
    return s;
}

static struct slice details(const struct error *e, const char *message) {
    Flight__ErrorInfo info = FLIGHT__ERROR_INFO__INIT;
    info.reason = (char *)e->reason;
    info.domain = (char *)"mink";
    uint8_t packed[128];
    Flight__Any any = FLIGHT__ANY__INIT;
    any.type_url = (char *)"type.googleapis.com/google.rpc.ErrorInfo";
    any.value = (ProtobufCBinaryData){flight__error_info__pack(&info, packed), packed};
    Flight__Any *list[] = {&any};
    Flight__Status status = FLIGHT__STATUS__INIT;
    status.code = (int32_t)codes[e->code];
    status.message = (char *)message;
    status.n_details = 1;
    status.details = list;
    uint8_t *data;
    struct slice s = slice_new(flight__status__get_packed_size(&status), &data);
    flight__status__pack(&status, data);
    return s;
}

void rpc_status_add(struct rpc_status *s, const char *key, struct slice take_value) {
    mink_assert(s->trailer_count < RPC_TRAILERS_MAX);
    s->trailers[s->trailer_count++] = (struct rpc_metadata){key, take_value};
}

void rpc_status_make(const struct error *e_given, const char *extra, struct rpc_status *out) {
    *out = (struct rpc_status){.code = e_given ? e_given->code : MINK_OK};
    if (out->code == MINK_OK) return;
    struct error e = *e_given;
    repair_text(e.message);
    repair_text(e.hint);
    repair_text(e.column);
    repair_text(e.expected);
    repair_text(e.actual);
    snprintf(out->message, sizeof out->message, e.hint[0] ? "[%s] %s; %s" : "[%s] %s", e.reason[0] ? e.reason : mink_code_name(e.code), e.message, e.hint);
    struct slice json = error_json(e_given, extra); // as it is: JSON escapes what a header may not hold
    if (json.size <= 2048) rpc_status_add(out, "mink-error", json);
    else slice_unref(&json);
    rpc_status_add(out, "grpc-status-details-bin", details(&e, out->message));
    if (e.code == MINK_UNAVAILABLE || e.code == MINK_OVERLOADED) rpc_status_add(out, "retry-after-ms", slice_copy("100", 3));
}

void rpc_status_deinit(struct rpc_status *s) {
    for (uint32_t i = 0; i < s->trailer_count; i++) slice_unref(&s->trailers[i].value);
    s->trailer_count = 0;
}

// ---- at the client

static void copy_field(const struct json *o, const char *key, char *out, size_t size) {
    const char *text = json_text(json_get(o, key));
    if (text) snprintf(out, size, "%s", text);
}

enum mink_code rpc_status_read(enum mink_code code, const char *message, struct slice mink_error, struct error *out) {
    struct error e;
    error_set(&e, code, mink_code_name(code), "%s", message);
    struct json *j = NULL;
    if (mink_error.size && json_parse(mink_error.data, mink_error.size, &j, NULL) == MINK_OK) {
        copy_field(j, "code", e.reason, sizeof e.reason);
        copy_field(j, "message", e.message, sizeof e.message);
        copy_field(j, "hint", e.hint, sizeof e.hint);
        copy_field(j, "column", e.column, sizeof e.column);
        copy_field(j, "expected", e.expected, sizeof e.expected);
        copy_field(j, "actual", e.actual, sizeof e.actual);
    } else if (message[0] == '[') {
        // The status overtook its trailers: the code still leads the message.
        const char *end = strchr(message, ']');
        if (end && (size_t)(end - message) < sizeof e.reason) {
            snprintf(e.reason, sizeof e.reason, "%.*s", (int)(end - message - 1), message + 1);
            snprintf(e.message, sizeof e.message, "%s", end[1] == ' ' ? end + 2 : end + 1);
        }
    }
    json_free(j);
    error_copy(out, &e);
    return code;
}
