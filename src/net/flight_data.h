// SPDX-License-Identifier: Apache-2.0
// flight_data.h: FlightData messages, framed by hand so that bodies are not copied out and copied once in.
//
// What      Fields: 1 flight_descriptor, 2 data_header (bare flatbuffer), 3 app_metadata, 1000 data_body (written last, tag c2 3e).
// Holds     Every tag and length of a received message is checked against what is left. Unknown fields are skipped; the last of a
//           repeated field wins.
// Owner     Pure functions; any thread.
// Source    Flight.proto of Apache Arrow.
#ifndef MINK_NET_FLIGHT_DATA_H
#define MINK_NET_FLIGHT_DATA_H

#include "base/error.h"
#include "base/slice.h"

// Appends one message to *out. header and app_metadata are copied (small); the body's slices are moved, *take_body (may be NULL) is empty
// afterwards. descriptor: an encoded FlightDescriptor or empty.
void flight_data_frame(struct slices *out, struct slice descriptor, struct slice header, const void *app_metadata, size_t app_metadata_size,
                       struct slices *take_body);

struct flight_data {
    struct slice descriptor, header, app_metadata; // references; empty when absent. header is 64-byte aligned
    bool has_descriptor, has_metadata;
    struct slice body;  // part of slab, with a reference of its own; 64-byte aligned when the room is a multiple of 64; size as sent
    struct slice slab;  // one reference: `room` bytes, the body, zeros up to a multiple of 8. Empty when there is no body and no room asked
    uint8_t *slab_data; // writable view, until the slab is shared
    size_t room;
};
// message: views of one received message. room (may be NULL = 0): bytes to leave in front of the body, from the size of the header.
// A message without a body gets no slab. INVALID [BAD_MESSAGE] says which field and where; OVERLOADED [OUT_OF_MEMORY].
enum mink_code flight_data_parse(const struct slices *message, size_t (*room)(size_t header_size), struct flight_data *out, struct error *e) MINK_MUST_CHECK;
void flight_data_deinit(struct flight_data *d);

// The bytes of a small message, joined; a copy.
struct slice flight_message_join(const struct slices *message);

#endif
