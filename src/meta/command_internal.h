// SPDX-License-Identifier: Apache-2.0
// command_internal.h: the command as protobuf-c has it.
#ifndef MINK_META_COMMAND_INTERNAL_H
#define MINK_META_COMMAND_INTERNAL_H
#include "meta/command.pb-c.h"
#include "meta/meta.h"

#define COMMAND_VERSION 1
#define COMMAND_ID_SIZE 16

struct command { Mink__Command message; };
void command_set_id(struct command *c, const uint8_t id[COMMAND_ID_SIZE]);
// The id of an encoded command; false when it cannot be read.
bool command_peek_id(struct slice encoded, uint8_t id[COMMAND_ID_SIZE]);
#endif
