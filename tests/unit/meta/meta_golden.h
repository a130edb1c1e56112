// SPDX-License-Identifier: Apache-2.0
// One command of each kind, for the golden files of the formats.
#ifndef MINK_TESTS_META_GOLDEN_H
#define MINK_TESTS_META_GOLDEN_H

#include "meta_testing.h"

#define GOLDEN_COMMANDS 23

static inline struct command *golden_command(uint32_t n) {
    static struct command_range first[] = {{1, 1, 0, 10}, {2, 1, 0, 300}}, second[] = {{1, 1, 10, 20}}, wal[] = {{2, 1, 300, 301}}, merged[] = {{1, 1, 0, 20}, {2, 1, 0, 300}}, closed[] = {{3, 1, 0, 7}};
    static struct command_entry entries[] = {{1, 1, 20, 25}, {4, 1, 0, 1}};
    struct command_object objects[] = {{{OBJECT_KIND_SET, 1, 1}, 5000, 192, first, 2}, {{OBJECT_KIND_STREAM, 1, 2}, 70000, 64, second, 1}, {{OBJECT_KIND_WAL, 1, 2}, 600, 64, wal, 1}};
    struct command_object close = {{OBJECT_KIND_WAL, 1, 3}, 700, 64, closed, 1}, replacing = {{OBJECT_KIND_SET, 1, 3}, 74000, 192, merged, 2};
    struct command_attachment attachment = {1, slice_borrow("attachment", 10)};
    struct command_sealed_object sealed[] = {{3, 700, 128, NULL, 0}, {4, 800, 128, entries, 2}};
    struct catalog_object_id old[] = {objects[0].id, objects[1].id};
    uint8_t nonce[16] = "sixteen bytes...", other[16] = "another nonce...";
    struct catalog_table base = {.table_id = 1, .altered_position = 2};
    switch (n) {
    case 0: return command_create_database("d", "a comment", false);
    case 1: return create_table("d.t", 4, false, false);
    case 2: {
        struct table_def *def = make_def("{\"v\":1,\"table\":\"d.t\",\"columns\":[{\"name\":\"id\",\"type\":\"BIGINT\"},{\"name\":\"day\",\"type\":\"STRING\"}],\"options\":{\"bucket.num\":\"4\",\"table.log.ttl\":\"3d\"}}");
        struct command *c = command_alter_table(&base, def);
        table_def_unref(def);
        return c;
    }
    case 3: return create_table("d.parts", 2, true, true);
    case 4: return command_create_partition(2, "monday", false);
    case 5: return command_create_partition(2, "tuesday", true);
    case 6: return command_drop_partition(2, "tuesday", false);
    case 7: return command_register_incarnation(nonce, "10.0.0.1:9123", "rack-a");
    case 8: return command_register_incarnation(other, "10.0.0.2:9123", "");
    case 9: return command_open_streams(1, (uint64_t[]){1, 2, 3, 4}, 4);
    case 10: return command_allocate_writer_ids(1000);
    case 11: return command_commit_objects(1, 0, 3, objects, 3, &attachment, 1);
    case 12: return command_close_stream(1, 3, 1, 7, &close, 1);
    case 13: return command_replace_objects(1, old, 2, &replacing, 1);
    case 14: return command_trim_streams((uint64_t[]){1, 2}, (uint64_t[]){15, 301}, 2);
    case 15: return command_forget_objects(old, 2);
    case 16: return command_declare_dead(1);
    case 17: return command_seal_incarnation(1, 3, 5, sealed, 2);
    case 18: return command_open_streams(2, (uint64_t[]){1, 3}, 2);
    case 19: return command_create_database("gone", "", true);
    case 20: return create_table("gone.t", 1, false, false);
    case 21: return command_drop_table("gone", "t", true);
    case 22: return command_drop_database("gone", true, true);
    default: return NULL;
    }
}

#endif
