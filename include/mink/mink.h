// SPDX-License-Identifier: Apache-2.0
// mink.h: libmink, the C client of Mink. C17 and C++ clean; only Arrow's C data interface and our own opaque handles.
//
// What      Connect, administer, append, scan and follow over Arrow Flight. Anything the server offers beyond these calls is an action
//           with a JSON body (mink_action).
// Owner     A client may be shared by threads. A writer or a scan belongs to one thread at a time. Handles made from a client are closed
//           before it. All calls block; mink_scan_cancel may come from another thread.
// Errors    Every fallible call returns a mink_status and fills the caller's struct mink_error (may be NULL). Nothing is printed, nothing
//           exits. MINK_STATUS_UNAVAILABLE and _UNKNOWN are worth a retry (writers with a writer id are exactly-once across retries).
// Memory    Out strings and handles are freed with the function named beside them. ArrowSchema and ArrowArray given in are released by
//           libmink, also on error; those given out are released by the caller (array->release(array)).
#ifndef MINK_MINK_H
#define MINK_MINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ArrowSchema;
struct ArrowArray;

enum mink_status {
    MINK_STATUS_OK = 0,
    MINK_STATUS_INVALID, // fix the request
    MINK_STATUS_NOT_FOUND,
    MINK_STATUS_EXISTS,
    MINK_STATUS_CONFLICT,     // precondition failed: sequence gap, schema changed
    MINK_STATUS_OUT_OF_RANGE, // offset trimmed or not there yet
    MINK_STATUS_UNAVAILABLE,  // nothing happened; retry
    MINK_STATUS_OVERLOADED,   // a limit was reached; back off, then retry
    MINK_STATUS_UNKNOWN,      // may or may not have happened (connection lost after sending)
    MINK_STATUS_UNSUPPORTED,
    MINK_STATUS_DENIED,
    MINK_STATUS_CANCELLED,
    MINK_STATUS_DEADLINE,
    MINK_STATUS_INTERNAL
};

struct mink_error {
    enum mink_status status;
    char reason[40]; // stable: TABLE_NOT_FOUND
    char message[512];
    char hint[256];
    char column[64], expected[64], actual[64]; // each may be empty
};

struct mink_client;
struct mink_options {
    const char *server;  // "host:port" or "grpc://host:port"; NULL = 127.0.0.1:8815
    uint32_t timeout_ms; // of each call that is not a stream; 0 = 30,000
};
// Lazy: a server that is not there is told by the first call.
enum mink_status mink_connect(const struct mink_options *options, struct mink_client **out, struct mink_error *error);
void mink_disconnect(struct mink_client *client);

// Any action of the server: JSON in, one JSON text per result out. results: mink_results_free.
struct mink_results {
    char **items;
    size_t count;
};
enum mink_status mink_action(struct mink_client *client, const char *action, const char *json_body, struct mink_results *out,
                             struct mink_error *error);
void mink_results_free(struct mink_results *results);
enum mink_status mink_table_schema(struct mink_client *client, const char *table, struct ArrowSchema *out, struct mink_error *error);

// ---- append
struct mink_writer;
struct mink_writer_options {
    const char *table;            // "shop.orders"
    const char *partition;        // NULL = from the rows
    int32_t bucket;               // -1 = the server decides
    uint64_t writer_id;           // 0 = plain; else from action init-writer: batches carry sequence numbers, duplicates are recognised (bucket >= 0)
    uint32_t sequence;            // of the first batch
    const char *compression;      // "none", "lz4", "zstd" for what is sent; NULL = none
    uint64_t bytes_in_flight_max; // unacknowledged bytes; append blocks beyond; 0 = 32 MiB
};
// schema: of the batches that follow (columns by name; the server casts losslessly). Released.
enum mink_status mink_writer_open(struct mink_client *client, const struct mink_writer_options *options, struct ArrowSchema *schema,
                                  struct mink_writer **out, struct mink_error *error);
// Sends a batch; does not wait for its acknowledgement. The array is a struct array of the schema; released.
enum mink_status mink_writer_append(struct mink_writer *writer, struct ArrowArray *array, struct mink_error *error);
// Waits until everything sent is durable.
enum mink_status mink_writer_flush(struct mink_writer *writer, struct mink_error *error);
uint64_t mink_writer_rows_acked(const struct mink_writer *writer);
uint64_t mink_writer_batches_acked(const struct mink_writer *writer);
// Flushes and ends the stream. The handle is gone, also on error.
enum mink_status mink_writer_close(struct mink_writer *writer, struct mink_error *error);
void mink_writer_abort(struct mink_writer *writer); // what is unacknowledged may or may not be kept

// ---- scan and follow
struct mink_scan;
struct mink_scan_options {
    const char *table;
    const char *const *columns; // NULL = all
    size_t column_count;
    const char *filter;    // SQL subset; NULL = none
    const char *partition; // NULL = all
    int32_t bucket;        // -1 = all
    const char *from;      // "earliest" (NULL), "latest", "<offset>", "ts:<ms>"
    const char *until;     // "now" (NULL), "<offset>", "never" = follow
    int64_t limit;         // -1 = none
    const char *const *meta; // "_log_offset", "_commit_timestamp", "_bucket", "_partition", "_change_type"
    size_t meta_count;
    const char *compression; // of the transfer; NULL = none
};
enum mink_status mink_scan_open(struct mink_client *client, const struct mink_scan_options *options, struct mink_scan **out,
                                struct mink_error *error);
enum mink_status mink_scan_schema(struct mink_scan *scan, struct ArrowSchema *out, struct mink_error *error);
// The next batch: out->release is NULL at the end of a bounded scan. info (may be NULL): where the batch came from and where to resume.
struct mink_scan_info {
    int32_t bucket;
    char partition[512];
    uint64_t next;
};
enum mink_status mink_scan_next(struct mink_scan *scan, struct ArrowArray *out, struct mink_scan_info *info, struct mink_error *error);
void mink_scan_cancel(struct mink_scan *scan); // from any thread: a blocked next returns CANCELLED
void mink_scan_close(struct mink_scan *scan);

const char *mink_version(void);

#ifdef __cplusplus
}
#endif

#endif
