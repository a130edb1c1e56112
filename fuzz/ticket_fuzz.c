// SPDX-License-Identifier: Apache-2.0
// The JSON of tickets, commands and control messages. What is accepted is written again and must read back as the same.
#include "net/ticket.h"

#include "base/mem.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_ticket(const uint8_t *data, size_t size) {
    struct ticket t, again;
    struct error e;
    if (ticket_parse(data, size, &t, &e) != MINK_OK) {
        mink_assert(e.code != MINK_OK && e.message[0]);
        return;
    }
    struct buffer first, second;
    buffer_init(&first, 8u << 20);
    buffer_init(&second, 8u << 20);
    ticket_write(&t, &first);
    if (first.size <= TICKET_JSON_MAX) { // escapes may make it longer than what is taken
        mink_assert(ticket_parse(first.data, first.size, &again, &e) == MINK_OK);
        ticket_write(&again, &second);
        mink_assert(first.size == second.size && memcmp(first.data, second.data, first.size) == 0);
        ticket_deinit(&again);
    }
    buffer_deinit(&first);
    buffer_deinit(&second);
    ticket_deinit(&t);
}

static void check_put(const uint8_t *data, size_t size) {
    struct put_command p, again;
    struct error e;
    if (put_command_parse(data, size, &p, &e) != MINK_OK) return;
    struct buffer b;
    buffer_init(&b, 8u << 20);
    put_command_write(&p, &b);
    if (b.size <= TICKET_JSON_MAX) {
        mink_assert(put_command_parse(b.data, b.size, &again, &e) == MINK_OK);
        mink_assert(again.bucket == p.bucket && again.writer == p.writer && again.mode == p.mode && again.create_partition == p.create_partition);
        put_command_deinit(&again);
    }
    buffer_deinit(&b);
    put_command_deinit(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    check_ticket(data, size);
    check_put(data, size);
    struct exchange_command x;
    struct control c;
    bool has;
    uint32_t sequence;
    if (exchange_command_parse(data, size, &x, NULL) == MINK_OK) exchange_command_deinit(&x);
    if (control_parse(data, size, &c, NULL) == MINK_OK) control_deinit(&c);
    (void)!put_sequence_parse(data, size, &has, &sequence, NULL);
    return 0;
}
