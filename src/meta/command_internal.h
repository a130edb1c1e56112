// SPDX-License-Identifier: Apache-2.0
// command_internal.h: the command as protobuf-c has it.
#ifndef MINK_META_COMMAND_INTERNAL_H
#define MINK_META_COMMAND_INTERNAL_H
#include "meta/command.pb-c.h"
#include "meta/meta.h"

#define COMMAND_VERSION 1
#define COMMAND_ID_SIZE 16
#define COMMAND_BYTES_MAX (64u << 20)

struct command { Mink__Command message; };
void command_set_id(struct command *c, const uint8_t id[COMMAND_ID_SIZE]);
// The id of an encoded command; false when it cannot be read.
bool command_peek_id(struct slice encoded, uint8_t id[COMMAND_ID_SIZE]);
// What would stop every node once it is in the log must not get there: INVALID when the command is too large or its definition does not parse.
enum mink_code command_check(const struct command *c, struct error *e) MINK_MUST_CHECK;
bool command_is_ddl(const struct command *c); // of databases, tables, partitions: somebody waits for the answer
enum mink_code command_parse_definition(const char *json, struct table_def **out, struct error *e) MINK_MUST_CHECK;
#endif
