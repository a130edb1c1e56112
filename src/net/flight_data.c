// SPDX-License-Identifier: Apache-2.0
// Walks the top-level fields of a FlightData that arrives in pieces: first only positions and sizes, then each wanted field is copied
// once to where it belongs. A varint or a length may lie across two pieces.
#include "net/flight_data.h"

#include "base/mem.h"

#include <inttypes.h>
#include <string.h>

enum { FIELD_DESCRIPTOR = 1, FIELD_HEADER = 2, FIELD_METADATA = 3, FIELD_BODY = 1000 };
enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

// ---- out

static size_t varint_size(uint64_t v) {
    size_t size = 1;
    for (; v >= 0x80; v >>= 7) size++;
    return size;
}

static uint8_t *put_varint(uint8_t *p, uint64_t v) {
    for (; v >= 0x80; v >>= 7) *p++ = (uint8_t)(v | 0x80);
    *p++ = (uint8_t)v;
    return p;
}

static size_t field_size(size_t size) { return size ? 1 + varint_size(size) + size : 0; }

static uint8_t *put_field(uint8_t *p, unsigned field, const void *data, size_t size) {
    if (size == 0) return p;
    *p++ = (uint8_t)(field << 3 | WIRE_BYTES);
    p = put_varint(p, size);
    memcpy(p, data, size);
    return p + size;
}

void flight_data_frame(struct slices *out, struct slice descriptor, struct slice header, const void *app_metadata, size_t app_metadata_size,
                       struct slices *take_body) {
    size_t body_size = take_body ? take_body->bytes : 0;
    size_t size = field_size(descriptor.size) + field_size(header.size) + field_size(app_metadata_size);
    if (body_size) size += 2 + varint_size(body_size);
    uint8_t *data;
    struct slice prefix = slice_new(size, &data);
    uint8_t *p = put_field(data, FIELD_DESCRIPTOR, descriptor.data, descriptor.size);
    p = put_field(p, FIELD_HEADER, header.data, header.size);
    p = put_field(p, FIELD_METADATA, app_metadata, app_metadata_size);
    if (body_size) {
        p = put_varint(p, FIELD_BODY << 3 | WIRE_BYTES);
        p = put_varint(p, body_size);
    }
    mink_assert((size_t)(p - data) == size);
    slices_take(out, prefix);
    if (take_body == NULL) return;
    for (uint32_t i = 0; i < take_body->count; i++) {
        slices_take(out, take_body->items[i]);
        take_body->items[i] = slice_empty();
    }
    slices_deinit(take_body);
}

// ---- in

struct walker {
    const struct slices *message;
    uint32_t piece;  // current slice
    size_t at;       // inside it
    size_t position; // in the message
};

static size_t left(const struct walker *w) { return w->message->bytes - w->position; }

// Moves on by size bytes, which are there; copies them to `to` unless NULL.
static void advance(struct walker *w, uint8_t *to, size_t size) {
    w->position += size;
    while (size) {
        const struct slice *s = &w->message->items[w->piece];
        size_t n = s->size - w->at < size ? s->size - w->at : size;
        if (to && n) {
            memcpy(to, s->data + w->at, n);
            to += n;
        }
        w->at += n;
        size -= n;
        if (w->at == s->size && size) {
            w->piece++;
            w->at = 0;
        }
    }
}

static bool read_varint(struct walker *w, uint64_t *out) {
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte;
        if (left(w) == 0) return false;
        advance(w, &byte, 1);
        if (shift == 63 && byte > 1) return false;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = v;
            return true;
        }
    }
    return false;
}

struct found {
    struct walker from;
    size_t size;
    bool present;
};

static enum mink_code bad(struct error *e, const struct walker *w, const char *what) {
    return error_set(e, MINK_INVALID, "BAD_MESSAGE", "FlightData is malformed: %s at byte %zu of %zu", what, w->position, w->message->bytes);
}

static enum mink_code find_fields(const struct slices *message, struct found found[4], struct error *e) {
    struct walker w = {.message = message};
    while (left(&w)) {
        uint64_t tag, size = 0;
        if (!read_varint(&w, &tag) || tag > UINT32_MAX || tag >> 3 == 0) return bad(e, &w, "bad field tag");
        uint64_t field = tag >> 3;
        switch (tag & 7) {
        case WIRE_VARINT:
            if (!read_varint(&w, &size)) return bad(e, &w, "truncated varint");
            size = 0;
            break;
        case WIRE_64: size = 8; break;
        case WIRE_32: size = 4; break;
        case WIRE_BYTES:
            if (!read_varint(&w, &size)) return bad(e, &w, "truncated length");
            break;
        default: return bad(e, &w, "unknown wire type");
        }
        if (size > left(&w)) return bad(e, &w, field == FIELD_BODY ? "data_body is truncated" : "truncated field");
        int known = field == FIELD_DESCRIPTOR ? 0 : field == FIELD_HEADER ? 1 : field == FIELD_METADATA ? 2 : field == FIELD_BODY ? 3 : -1;
        if (known >= 0) {
            if ((tag & 7) != WIRE_BYTES) return bad(e, &w, "known field with a wrong wire type");
            found[known] = (struct found){w, size, true};
        }
        advance(&w, NULL, size);
    }
    return MINK_OK;
}

static struct slice copy_found(struct found *f) {
    if (f->size == 0) return slice_empty();
    uint8_t *data;
    struct slice s = slice_new(f->size, &data);
    advance(&f->from, data, f->size);
    return s;
}

enum mink_code flight_data_parse(const struct slices *message, size_t (*room)(size_t header_size), struct flight_data *out, struct error *e) {
    *out = (struct flight_data){0};
    struct found found[4] = {0};
    MINK_TRY(find_fields(message, found, e));
    struct found *body = &found[3];
    if (body->size) {
        size_t before = room ? room(found[1].size) : 0, padded = (body->size + 7) & ~(size_t)7;
        out->slab = slice_try_new(before + padded, &out->slab_data);
        if (out->slab_data == NULL) return error_set(e, MINK_OVERLOADED, "OUT_OF_MEMORY", "no memory for a message of %zu bytes", body->size);
        out->room = before;
        advance(&body->from, out->slab_data + before, body->size);
        memset(out->slab_data + before + body->size, 0, padded - body->size);
        out->body = slice_sub(out->slab, before, body->size);
    }
    out->descriptor = copy_found(&found[0]);
    out->header = copy_found(&found[1]);
    out->app_metadata = copy_found(&found[2]);
    out->has_descriptor = found[0].present;
    out->has_metadata = found[2].present;
    return MINK_OK;
}

void flight_data_deinit(struct flight_data *d) {
    slice_unref(&d->descriptor);
    slice_unref(&d->header);
    slice_unref(&d->app_metadata);
    slice_unref(&d->body);
    slice_unref(&d->slab);
    d->slab_data = NULL;
}

struct slice flight_message_join(const struct slices *message) {
    if (message->bytes == 0) return slice_empty();
    uint8_t *data;
    struct slice s = slice_new(message->bytes, &data);
    for (uint32_t i = 0; i < message->count; i++) {
        if (message->items[i].size) memcpy(data, message->items[i].data, message->items[i].size);
        data += message->items[i].size;
    }
    return s;
}
