// SPDX-License-Identifier: Apache-2.0
// ticket.h: the JSON of descriptors, tickets, DoPut and DoExchange commands, and acknowledgements; both ends of the wire.
//
// Holds     Unknown keys, wrong types and values out of range are INVALID errors that name the key and the nearest known one.
// Owner     A parsed struct owns the document its strings borrow from. Pure; any thread.
// Bounds    JSON <= 1 MiB; columns, meta and subscriptions are limited below.
#ifndef MINK_NET_TICKET_H
#define MINK_NET_TICKET_H

#include "base/compress.h"
#include "base/json.h"

#define TICKET_JSON_MAX (1u << 20)
#define TICKET_COLUMNS_MAX 4096
#define TICKET_META_MAX 5
#define TICKET_BATCH_BYTES_DEFAULT (3u << 20) // clients on arrow-go, tonic and grpcio refuse more than 4 MiB
#define TICKET_BATCH_BYTES_MAX (64u << 20)
#define TICKET_HEARTBEAT_MS_DEFAULT 15000
#define SUBSCRIPTIONS_MAX 64
#define TICKET_LIFE_MS (3600 * 1000)

enum ticket_from { FROM_EARLIEST, FROM_LATEST, FROM_OFFSET, FROM_TIME };
enum ticket_until { UNTIL_NOW, UNTIL_OFFSET, UNTIL_NEVER };
struct table_ref {
    char database[201], name[256], suffix[32];
}; // suffix: "", "changelog", "binlog"

struct ticket {
    struct json *document; // NULL when the struct was filled in by hand for ticket_write
    struct table_ref table;
    const char *partition; // NULL = all
    int32_t bucket;        // -1 = all
    const char **columns;  // the array is owned
    uint32_t column_count;
    bool all_columns;
    const char *filter; // NULL = none
    int64_t limit;      // -1 = none
    enum ticket_from from;
    int64_t from_value; // offset, or ms since 1970
    enum ticket_until until;
    uint64_t until_offset;
    const char *meta[TICKET_META_MAX];
    uint32_t meta_count;
    uint32_t batch_bytes;
    enum codec compression;
    uint32_t heartbeat_ms; // 0 = off
    bool snapshot;
    const char *lake; // "only", "none", "union"; NULL = not said
    bool as_of;       // was given
    bool evolve_keep;
    int64_t expires_ms; // "exp"; 0 = never
};
void ticket_init(struct ticket *t); // defaults
// Of a ticket, or of the command of a descriptor.
enum mink_code ticket_parse(const void *json, size_t size, struct ticket *out, struct error *e) MINK_MUST_CHECK;
void ticket_write(const struct ticket *t, struct buffer *out); // leaves defaults out
void ticket_deinit(struct ticket *t);

enum put_mode { PUT_DEFAULT, PUT_APPEND, PUT_UPSERT, PUT_DELETE, PUT_PARTIAL };
struct put_command {
    struct json *document;
    struct table_ref table;
    const char *partition;
    enum put_mode mode;
    int32_t bucket;  // -1 = by the table
    uint64_t writer; // 0 = none
    uint16_t writer_epoch;
    bool create_partition;
};
void put_command_init(struct put_command *p);
enum mink_code put_command_parse(const void *json, size_t size, struct put_command *out, struct error *e) MINK_MUST_CHECK;
void put_command_write(const struct put_command *p, struct buffer *out);
void put_command_deinit(struct put_command *p);

// path = [database, table] or [database, table, partition].
enum mink_code table_ref_from_path(char *const *path, uint32_t count, struct table_ref *out, const char **out_partition, struct error *e) MINK_MUST_CHECK;
enum mink_code table_ref_parse(const char *qualified, struct table_ref *out, struct error *e) MINK_MUST_CHECK;
void table_ref_print(const struct table_ref *r, char out[512]);

// {"seq":n} of a put batch.
enum mink_code put_sequence_parse(const void *json, size_t size, bool *has, uint32_t *sequence, struct error *e) MINK_MUST_CHECK;

// ---- DoExchange
struct subscription {
    const char *partition;
    int32_t bucket;
    enum ticket_from from;
    int64_t from_value;
};
struct exchange_command {
    struct ticket shape;                // table, columns, filter, meta, compression, batch_bytes, heartbeat_ms
    struct subscription *subscriptions; // owned
    uint32_t subscription_count;
};
enum mink_code exchange_command_parse(const void *json, size_t size, struct exchange_command *out, struct error *e) MINK_MUST_CHECK;
void exchange_command_deinit(struct exchange_command *x);

enum control_kind { CONTROL_SEEK, CONTROL_PAUSE, CONTROL_RESUME, CONTROL_CREDIT, CONTROL_ADD, CONTROL_REMOVE, CONTROL_KIND_COUNT };
const char *control_name(enum control_kind kind);
struct control {
    struct json *document;
    enum control_kind kind;
    const struct json *id;        // echoed; NULL = none
    struct subscription *targets; // owned; seek: from_value is the offset
    uint32_t target_count;
    uint64_t credit;
};
enum mink_code control_parse(const void *json, size_t size, struct control *out, struct error *e) MINK_MUST_CHECK;
void control_deinit(struct control *c);

#endif
