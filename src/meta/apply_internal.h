// SPDX-License-Identifier: Apache-2.0
// apply_internal.h: one command being applied. The checks of a command all come before its first change, so that a refused one changes nothing.
#ifndef MINK_META_APPLY_INTERNAL_H
#define MINK_META_APPLY_INTERNAL_H

#include "meta/catalog_internal.h"
#include "meta/command_internal.h"

struct apply {
    struct catalog *c;
    uint64_t seq;
    struct command_result *result; // the command's own answer: the same on all nodes
    enum mink_code fatal;          // not OK: this version cannot apply what others have applied; nothing was changed, the node must stop
    struct error *fatal_error;
};

#define REFUSE(a, code_, reason, ...)                                         \
    do {                                                                      \
        (a)->result->code = error_set(&(a)->result->error, code_, reason, __VA_ARGS__); \
        return;                                                               \
    } while (0)

// The objects of a command with their ranges as rows; freed by apply_objects_free.
struct apply_objects { struct command_object *items; uint32_t count; };

void apply_create_database(struct apply *a, const Mink__CreateDatabase *m);
void apply_drop_database(struct apply *a, const Mink__DropDatabase *m);
void apply_create_table(struct apply *a, const Mink__CreateTable *m);
void apply_alter_table(struct apply *a, const Mink__AlterTable *m);
void apply_drop_table(struct apply *a, const Mink__DropTable *m);
void apply_create_partition(struct apply *a, const Mink__CreatePartition *m);
void apply_drop_partition(struct apply *a, const Mink__DropPartition *m);
enum mink_code apply_parse_definition(const char *json, struct table_def **out, struct error *e) MINK_MUST_CHECK;

void apply_register_incarnation(struct apply *a, const Mink__RegisterIncarnation *m);
void apply_declare_dead(struct apply *a, const Mink__DeclareDead *m);
void apply_open_streams(struct apply *a, const Mink__OpenStreams *m);
void apply_allocate_writer_ids(struct apply *a, const Mink__AllocateWriterIds *m);
void apply_commit_objects(struct apply *a, const Mink__CommitObjects *m, const struct apply_objects *objects);
void apply_close_stream(struct apply *a, const Mink__CloseStream *m, const struct apply_objects *refs);
void apply_seal_incarnation(struct apply *a, const Mink__SealIncarnation *m, const struct apply_objects *objects);
void apply_replace_objects(struct apply *a, const Mink__ReplaceObjects *m, const struct apply_objects *objects);
void apply_trim_streams(struct apply *a, const Mink__TrimStreams *m);
void apply_forget_objects(struct apply *a, const Mink__ForgetObjects *m);

struct incarnation *apply_live(struct apply *a, uint64_t id); // NULL, and the answer is FENCED, unless it is live
enum mink_code apply_check_created(const struct command_object *o, uint64_t incarnation, struct error *e) MINK_MUST_CHECK; // a set or stream object that it may create
static inline struct catalog_object_id apply_object_id(const Mink__ObjectId *m) { return (struct catalog_object_id){(enum object_kind)m->kind, m->incarnation, m->number}; }

#endif
