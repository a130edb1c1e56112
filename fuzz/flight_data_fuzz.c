// SPDX-License-Identifier: Apache-2.0
// The FlightData walker: the first byte says how the rest is cut into pieces. Whatever it accepts, the parts lie inside the message.
#include "net/flight_data.h"
#include "net/flight_message.h"

#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t room(size_t header_size) { return (header_size + 96 + 63) & ~(size_t)63; }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    size_t piece = (size_t)data[0] + 1;
    data++;
    size--;
    struct slices message = {0};
    for (size_t at = 0; at < size; at += piece) slices_take(&message, slice_copy(data + at, size - at < piece ? size - at : piece));
    struct flight_data d;
    struct error e;
    if (flight_data_parse(&message, room, &d, &e) == MINK_OK) {
        mink_assert(d.header.size + d.body.size + d.app_metadata.size + d.descriptor.size <= size);
        mink_assert(d.body.size == 0 || (d.body.data >= d.slab.data && d.body.data + d.body.size <= d.slab.data + d.slab.size));
        struct flight_descriptor descriptor;
        if (flight_descriptor_decode(d.descriptor, &descriptor, &e) == MINK_OK) flight_descriptor_deinit(&descriptor);
    } else {
        mink_assert(e.code == MINK_INVALID && e.message[0]);
    }
    flight_data_deinit(&d);
    // The small messages take the same bytes.
    struct slice joined = flight_message_join(&message), field;
    struct flight_action action;
    struct flight_handshake handshake;
    struct flight_info_view info;
    if (flight_action_decode(joined, &action, &e) == MINK_OK) flight_action_deinit(&action);
    if (flight_handshake_decode(joined, &handshake, &e) == MINK_OK) flight_handshake_deinit(&handshake);
    if (flight_info_decode(joined, &info, &e) == MINK_OK) flight_info_view_deinit(&info);
    if (flight_bytes_decode(joined, "Ticket", &field, &e) == MINK_OK) slice_unref(&field);
    if (flight_renew_request_decode(joined, &field, &e) == MINK_OK) slice_unref(&field);
    slice_unref(&joined);
    slices_deinit(&message);
    return 0;
}
