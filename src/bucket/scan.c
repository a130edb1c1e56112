// SPDX-License-Identifier: Apache-2.0
// A stored batch takes the cheapest of these ways:
//
//     statistics say no row can pass          nothing
//     whole batch, stored codec wanted,       the stored message and body as references; with fewer columns, a new message over
//     no filter, limit or meta columns        sub-slices of the stored body (ipc_project)
//     anything else                           needed columns are decoded, brought to the reader's schema by column id, filtered, cut, encoded
//
// A batch of another schema version is read through that version's definition: a column that it lacks is null, a dropped one is passed over,
// a promoted one is cast.
#include "bucket/scan.h"

#include "base/mem.h"
#include "base/nearest.h"

#include <inttypes.h>
#include <string.h>

#define MESSAGE_BYTES_DEFAULT (3u << 20)
#define DECODED_BYTES_MAX (1u << 30) // of one stored batch once decompressed; what was accepted was far below
#define SEND_LEVEL 1                 // of ZSTD on the way out: time matters more than size

struct version {
    struct version *next;
    uint32_t schema_id;
    struct table_def *def;
    int32_t *source;    // per column of the plan's definition: its index in def, -1 = absent
    bool output_stored; // each output column is stored in the reader's type
};

struct scan_plan {
    atomic_uint refs;
    struct table_def *def;
    uint32_t *columns, column_count; // output, as indexes of def
    uint32_t *needed, needed_count;  // output and filter columns, ascending
    uint32_t *place;                 // of output column i among needed
    struct filter *filter;
    enum scan_meta meta[SCAN_META_COUNT];
    uint32_t meta_count;
    bool meta_first;
    struct arrow_schema *schema, *wide; // of what is sent; of the needed columns
    enum codec compression;
    size_t message_bytes_max;
    struct table_def *(*find_version)(void *ctx, uint32_t schema_id);
    void *version_ctx;
    struct version *versions;
    struct arrow_column_stats *stats_storage;
    const struct arrow_column_stats **stats;
};

static const char *const meta_names[SCAN_META_COUNT] = {"_log_offset", "_commit_timestamp", "_bucket", "_partition", "_change_type"};
const char *scan_meta_name(enum scan_meta meta) { return meta_names[meta]; }

// ---- plan

static enum mink_code unknown_column(const struct table_def *d, const char *name, struct error *e) {
    struct nearest near;
    nearest_init(&near, name);
    for (uint32_t i = 0; i < d->column_count; i++) nearest_offer(&near, d->columns[i].name);
    enum mink_code code = error_set(e, MINK_INVALID, "COLUMN_NOT_FOUND", "table %s.%s has no column %s", d->database, d->name, name);
    error_about(e, name, NULL, NULL);
    if (nearest_found(&near)) error_hint(e, "did you mean %s?", nearest_found(&near));
    return code;
}

static enum mink_code choose_columns(struct scan_plan *p, const struct scan_request *r, struct error *e) {
    p->column_count = r->all_columns ? p->def->column_count : r->column_count;
    p->columns = mem_new_array(uint32_t, p->column_count + 1);
    for (uint32_t i = 0; i < p->column_count; i++) {
        int32_t at = r->all_columns ? (int32_t)i : table_def_find(p->def, r->columns[i]);
        if (at < 0) return unknown_column(p->def, r->columns[i], e);
        p->columns[i] = (uint32_t)at;
    }
    return MINK_OK;
}

static void choose_needed(struct scan_plan *p) {
    bool *used = mem_new_array(bool, p->def->column_count + 1);
    if (p->filter) filter_columns(p->filter, used);
    for (uint32_t i = 0; i < p->column_count; i++) used[p->columns[i]] = true;
    uint32_t *at = mem_new_array(uint32_t, p->def->column_count + 1);
    p->needed = mem_new_array(uint32_t, p->def->column_count + 1);
    for (uint32_t i = 0; i < p->def->column_count; i++) {
        if (!used[i]) continue;
        at[i] = p->needed_count;
        p->needed[p->needed_count++] = i;
    }
    p->place = mem_new_array(uint32_t, p->column_count + 1);
    for (uint32_t i = 0; i < p->column_count; i++) p->place[i] = at[p->columns[i]];
    mem_free(used);
    mem_free(at);
}

static struct arrow_field meta_field(enum scan_meta meta) {
    static const enum arrow_type types[SCAN_META_COUNT] = {ARROW_INT64, ARROW_TIMESTAMP, ARROW_INT32, ARROW_UTF8, ARROW_UTF8};
    struct arrow_field f = arrow_field_make(meta_names[meta], types[meta], meta == SCAN_META_PARTITION);
    if (meta == SCAN_META_COMMIT_TIMESTAMP) {
        f.unit = ARROW_MILLI;
        f.timezone = mem_strdup("UTC");
    }
    return f;
}

static enum mink_code make_schema(struct scan_plan *p, struct error *e) {
    uint32_t count = p->column_count + p->meta_count, column_at = p->meta_first ? p->meta_count : 0, meta_at = p->meta_first ? 0 : p->column_count;
    for (uint32_t i = 0; i < p->meta_count; i++) {
        for (uint32_t c = 0; c < p->column_count; c++) {
            if (strcmp(p->def->columns[p->columns[c]].name, meta_names[p->meta[i]]) != 0) continue;
            enum mink_code code = error_set(e, MINK_INVALID, "DUPLICATE_COLUMN", "table %s.%s has a column %s of its own, so the meta column of that name cannot be added",
                                            p->def->database, p->def->name, meta_names[p->meta[i]]);
            error_about(e, meta_names[p->meta[i]], NULL, NULL);
            return code;
        }
    }
    struct arrow_field *fields = mem_new_array(struct arrow_field, count + 1);
    for (uint32_t i = 0; i < p->column_count; i++) arrow_field_copy(&fields[column_at + i], arrow_schema_at(p->def->arrow, p->columns[i]));
    for (uint32_t i = 0; i < p->meta_count; i++) fields[meta_at + i] = meta_field(p->meta[i]);
    p->schema = arrow_schema_new(fields, count);
    p->wide = arrow_schema_project(p->def->arrow, p->needed, p->needed_count);
    return MINK_OK;
}

enum mink_code scan_plan_make(struct table_def *def, const struct scan_request *r, struct scan_plan **out, struct error *e) {
    struct scan_plan *p = mem_new(struct scan_plan);
    atomic_init(&p->refs, 1);
    p->def = table_def_ref(def);
    p->meta_count = r->meta_count;
    memcpy(p->meta, r->meta, sizeof p->meta);
    p->meta_first = r->meta_first;
    p->compression = r->compression;
    p->message_bytes_max = r->message_bytes_max ? r->message_bytes_max : MESSAGE_BYTES_DEFAULT;
    p->find_version = r->version;
    p->version_ctx = r->version_ctx;
    p->stats_storage = mem_new_array(struct arrow_column_stats, def->column_count + 1);
    p->stats = mem_zalloc_array(def->column_count + 1, sizeof *p->stats);
    enum mink_code code = choose_columns(p, r, e);
    if (code == MINK_OK && r->filter) code = filter_parse(r->filter, def, &p->filter, e);
    if (code == MINK_OK) {
        choose_needed(p);
        code = make_schema(p, e);
    }
    if (code != MINK_OK) scan_plan_unref(p);
    else *out = p;
    return code;
}

struct scan_plan *scan_plan_ref(struct scan_plan *p) {
    atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
    return p;
}

void scan_plan_unref(struct scan_plan *p) {
    if (p == NULL || atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1) return;
    while (p->versions) {
        struct version *v = p->versions;
        p->versions = v->next;
        table_def_unref(v->def);
        mem_free(v->source);
        mem_free(v);
    }
    table_def_unref(p->def);
    if (p->filter) filter_free(p->filter);
    arrow_schema_unref(p->schema);
    arrow_schema_unref(p->wide);
    mem_free(p->columns);
    mem_free(p->needed);
    mem_free(p->place);
    mem_free(p->stats_storage);
    mem_free(p->stats);
    mem_free(p);
}

struct arrow_schema *scan_plan_schema(const struct scan_plan *p) { return p->schema; }

static enum mink_code find_version(struct scan_plan *p, uint32_t schema_id, const struct version **out, struct error *e) {
    for (struct version *v = p->versions; v; v = v->next) {
        if (v->schema_id == schema_id) {
            *out = v;
            return MINK_OK;
        }
    }
    struct table_def *d = NULL;
    if (schema_id == p->def->schema_id) d = table_def_ref(p->def);
    else if (p->find_version) d = p->find_version(p->version_ctx, schema_id);
    if (d == NULL)
        return error_set(e, MINK_CORRUPT, "UNKNOWN_SCHEMA", "table %s.%s has no schema version %" PRIu32 ", which a stored batch names", p->def->database, p->def->name, schema_id);
    struct version *v = mem_new(struct version);
    v->schema_id = schema_id;
    v->def = d;
    v->source = mem_new_array(int32_t, p->def->column_count + 1);
    v->output_stored = true;
    for (uint32_t i = 0; i < p->def->column_count; i++) {
        v->source[i] = -1;
        for (uint32_t c = 0; c < d->column_count; c++) {
            if (d->columns[c].id == p->def->columns[i].id) v->source[i] = (int32_t)c;
        }
    }
    for (uint32_t i = 0; i < p->column_count; i++) {
        int32_t at = v->source[p->columns[i]];
        v->output_stored = v->output_stored && at >= 0 && arrow_field_type_equal(arrow_schema_at(d->arrow, (uint32_t)at), arrow_schema_at(p->def->arrow, p->columns[i]));
    }
    v->next = p->versions;
    p->versions = v;
    *out = v;
    return MINK_OK;
}

// ---- one batch

struct output {
    struct scan_message *messages;
    uint32_t count, capacity;
};

static struct scan_message *add_message(struct output *o) {
    if (o->count == o->capacity) {
        o->capacity = o->capacity ? o->capacity * 2 : 2;
        o->messages = mem_realloc(o->messages, o->capacity * sizeof *o->messages);
    }
    o->messages[o->count] = (struct scan_message){0};
    return &o->messages[o->count++];
}

void scan_messages_free(struct scan_message *messages, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        slice_unref(&messages[i].message);
        slices_deinit(&messages[i].body);
    }
    mem_free(messages);
}

// References on the parts of the stored batch (a view has none).
static struct slice own(const struct batch_bytes *bytes, struct slice view) {
    if (view.size == 0) return slice_empty();
    bool in_head = view.data >= bytes->head.data && view.data < bytes->head.data + bytes->head.size;
    struct slice whole = in_head ? bytes->head : bytes->body;
    return slice_sub(whole, (size_t)(view.data - whole.data), view.size);
}

// The batch without decoding it. *done stays false when the result is over the size of a message.
static enum mink_code pass_on(struct scan_plan *p, const struct version *v, const struct batch_bytes *bytes, const struct batch_view *view, struct output *o, bool *done, struct error *e) {
    struct slice message = own(bytes, view->message), body = own(bytes, view->body), projected = slice_empty();
    struct slices parts = {0};
    bool all = p->column_count == v->def->column_count;
    for (uint32_t i = 0; i < p->column_count && all; i++) all = v->source[p->columns[i]] == (int32_t)i;
    enum mink_code code = MINK_OK;
    if (all) {
        projected = slice_ref(message);
        if (body.size) slices_take(&parts, slice_ref(body));
    } else {
        uint32_t *columns = mem_new_array(uint32_t, p->column_count + 1);
        for (uint32_t i = 0; i < p->column_count; i++) columns[i] = (uint32_t)v->source[p->columns[i]];
        code = ipc_project(v->def->arrow, message, body, columns, p->column_count, &projected, &parts, e);
        mem_free(columns);
    }
    *done = code == MINK_OK && (projected.size + parts.bytes <= p->message_bytes_max || view->header.row_count <= 1);
    if (*done) {
        struct scan_message *m = add_message(o);
        m->message = projected;
        m->body = parts;
        m->row_count = view->header.row_count;
    } else if (code == MINK_OK) {
        slice_unref(&projected);
        slices_deinit(&parts);
    }
    slice_unref(&message);
    slice_unref(&body);
    return code;
}

static enum mink_code decode_columns(const struct version *v, const uint32_t *columns, uint32_t count, const struct batch_bytes *bytes, const struct batch_view *view, struct arrow_batch *out, struct error *e) {
    struct slice message = own(bytes, view->message), body = own(bytes, view->body);
    enum mink_code code = MINK_OK;
    bool all = count == v->def->column_count;
    if (!all) {
        struct slice projected;
        struct slices parts = {0};
        code = ipc_project(v->def->arrow, message, body, columns, count, &projected, &parts, e);
        slice_unref(&message);
        slice_unref(&body);
        if (code != MINK_OK) return code;
        message = projected;
        body = slices_join(&parts);
        slices_deinit(&parts);
    }
    if ((uintptr_t)body.data % 8 != 0) {
        struct slice aligned = slice_copy(body.data, body.size);
        slice_unref(&body);
        body = aligned;
    }
    struct arrow_schema *schema = all ? arrow_schema_ref(v->def->arrow) : arrow_schema_project(v->def->arrow, columns, count);
    struct ipc_decoder *d = ipc_decoder_new(schema, DECODED_BYTES_MAX);
    code = ipc_decoder_batch(d, message, body, out, NULL, e);
    ipc_decoder_free(d);
    arrow_schema_unref(schema);
    slice_unref(&message);
    slice_unref(&body);
    return code;
}

// The needed columns in the reader's types.
static enum mink_code decode(struct scan_plan *p, const struct version *v, const struct batch_bytes *bytes, const struct batch_view *view, struct arrow_batch *wide, struct error *e) {
    // Ascending columns of the stored batch; at[i]: where needed column i is among them.
    uint32_t *columns = mem_new_array(uint32_t, v->def->column_count + 1), count = 0;
    int32_t *at = mem_new_array(int32_t, p->needed_count + 1);
    for (uint32_t c = 0; c < v->def->column_count; c++) {
        for (uint32_t i = 0; i < p->needed_count; i++) {
            if (v->source[p->needed[i]] != (int32_t)c) continue;
            at[i] = (int32_t)count + 1;
            columns[count++] = c;
        }
    }
    struct arrow_batch stored = {0};
    enum mink_code code = count ? decode_columns(v, columns, count, bytes, view, &stored, e) : MINK_OK;
    *wide = (struct arrow_batch){0};
    if (code == MINK_OK && count && stored.row_count != view->header.row_count)
        code = error_set(e, MINK_CORRUPT, "BAD_BATCH", "the Arrow message has %" PRId64 " rows, the batch's header says %" PRIu32, stored.row_count, view->header.row_count);
    if (code == MINK_OK) {
        wide->schema = arrow_schema_ref(p->wide);
        wide->row_count = view->header.row_count;
        wide->columns = mem_new_array(struct arrow_array, p->needed_count + 1);
    }
    for (uint32_t i = 0; i < p->needed_count && code == MINK_OK; i++) {
        const struct arrow_field *to = arrow_schema_at(p->wide, i);
        if (at[i] == 0) {
            arrow_nulls(to, wide->row_count, &wide->columns[i]);
            continue;
        }
        const struct arrow_field *from = arrow_schema_at(stored.schema, (uint32_t)at[i] - 1);
        const struct arrow_array *a = &stored.columns[at[i] - 1];
        if (arrow_field_type_equal(from, to)) arrow_array_ref(&wide->columns[i], a);
        else code = arrow_cast(from, a, to, &wide->columns[i], e);
    }
    if (code != MINK_OK) arrow_batch_deinit(wide);
    arrow_batch_deinit(&stored);
    mem_free(columns);
    mem_free(at);
    return code;
}

// ---- meta columns

static struct arrow_array fixed_column(int64_t rows, uint32_t width, uint8_t **data) {
    struct arrow_array a = {.length = rows};
    a.buffers[1] = slice_new((size_t)rows * width, data);
    return a;
}

static struct arrow_array text_column(int64_t rows, const char *(*text)(void *ctx, int64_t row), void *ctx) {
    struct arrow_array a = {.length = rows};
    size_t size = 0;
    uint8_t *data, *bytes;
    for (int64_t i = 0; i < rows; i++) size += strlen(text(ctx, i));
    a.buffers[1] = slice_new(((size_t)rows + 1) * 4, &data);
    a.buffers[2] = slice_new(size, &bytes);
    int32_t *offsets = (int32_t *)data;
    size = 0;
    for (int64_t i = 0; i < rows; i++) {
        const char *t = text(ctx, i);
        offsets[i] = (int32_t)size;
        memcpy(bytes + size, t, strlen(t));
        size += strlen(t);
    }
    offsets[rows] = (int32_t)size;
    return a;
}

struct meta_source {
    const struct batch_view *view;
    const struct scan_position *position;
    const uint32_t *rows; // of the stored batch; NULL = from `begin` on
    uint32_t begin;
};

static uint32_t source_row(const struct meta_source *s, int64_t i) { return s->rows ? s->rows[i] : s->begin + (uint32_t)i; }

static const char *partition_text(void *ctx, int64_t row) { return ((struct meta_source *)ctx)->position->partition; }
static const char *change_text(void *ctx, int64_t row) {
    static const char *const names[] = {"insert", "insert", "update_before", "update_after", "delete"}; // an append inserts
    struct meta_source *s = ctx;
    return s->view->row_kinds.size ? names[s->view->row_kinds.data[source_row(s, row)]] : names[ROW_APPEND];
}

static struct arrow_array meta_column(enum scan_meta meta, struct meta_source *s, int64_t rows) {
    struct arrow_array a = {0};
    uint8_t *data;
    switch (meta) {
    case SCAN_META_LOG_OFFSET:
        a = fixed_column(rows, 8, &data);
        for (int64_t i = 0; i < rows; i++) ((int64_t *)data)[i] = (int64_t)(s->view->header.offset_first + source_row(s, i));
        return a;
    case SCAN_META_COMMIT_TIMESTAMP:
        a = fixed_column(rows, 8, &data);
        for (int64_t i = 0; i < rows; i++) ((int64_t *)data)[i] = s->view->header.commit_ms;
        return a;
    case SCAN_META_BUCKET:
        a = fixed_column(rows, 4, &data);
        for (int64_t i = 0; i < rows; i++) ((int32_t *)data)[i] = s->position->bucket;
        return a;
    case SCAN_META_PARTITION: {
        struct arrow_field f = meta_field(meta);
        if (s->position->partition) a = text_column(rows, partition_text, s);
        else arrow_nulls(&f, rows, &a);
        arrow_field_deinit(&f);
        return a;
    }
    case SCAN_META_CHANGE_TYPE: return text_column(rows, change_text, s);
    default: mink_panic(__FILE__, __LINE__, "meta column %d", meta);
    }
}

// ---- cutting and encoding

struct cutter {
    struct scan_plan *plan;
    struct output *output;
    const struct meta_source *source;
};

// Pieces of at most message_bytes_max, or of one row.
static enum mink_code emit(const struct cutter *c, const struct arrow_batch *b, int64_t begin, int64_t count, struct error *e) {
    struct arrow_batch piece;
    size_t bytes_max = c->plan->message_bytes_max;
    if (begin == 0 && count == b->row_count) arrow_batch_ref(&piece, b);
    else arrow_slice(b, begin, count, &piece);
    size_t bytes = arrow_batch_bytes(&piece);
    if (bytes > bytes_max && count > 1) {
        arrow_batch_deinit(&piece);
        // Even shares with some room for padding; a share that is still too large is cut again.
        int64_t shares = (int64_t)((bytes + bytes / 16) / bytes_max) + 1, share = (count + shares - 1) / shares;
        if (share == count) share = count / 2;
        for (int64_t at = 0; at < count; at += share) MINK_TRY(emit(c, b, begin + at, count - at < share ? count - at : share, e));
        return MINK_OK;
    }
    struct scan_message *m = add_message(c->output);
    m->row_count = count;
    m->next = c->source->view->header.offset_first + source_row(c->source, begin + count - 1) + 1;
    enum mink_code code = ipc_encode_batch(&piece, c->plan->compression, SEND_LEVEL, &m->message, &m->body, e);
    arrow_batch_deinit(&piece);
    if (code == MINK_OK && c->plan->compression == CODEC_NONE && m->message.size + m->body.bytes > bytes_max && count > 1) {
        slice_unref(&m->message);
        slices_deinit(&m->body);
        c->output->count--;
        MINK_TRY(emit(c, b, begin, count / 2, e));
        return emit(c, b, begin + count / 2, count - count / 2, e);
    }
    return code;
}

// Rows [begin, end) of the batch that pass the filter, up to the limit. *cut: the limit ended it.
static enum mink_code select_rows(struct scan_plan *p, const struct version *v, const struct batch_bytes *bytes, const struct batch_view *view, uint32_t begin, uint32_t end, struct scan_position *position, struct output *o, bool *cut, struct error *e) {
    struct arrow_batch wide = {0}, narrow = {0}, chosen = {0}, final = {0};
    uint32_t *rows = NULL;
    MINK_TRY(decode(p, v, bytes, view, &wide, e));
    size_t count = end - begin, from = 0;
    if (p->filter) {
        rows = mem_new_array(uint32_t, (size_t)wide.row_count + 1);
        size_t passed = filter_rows(p->filter, &wide, p->needed, rows);
        while (from < passed && rows[from] < begin) from++;
        while (passed > from && rows[passed - 1] >= end) passed--;
        count = passed - from;
    }
    *cut = position->rows_left >= 0 && count >= (uint64_t)position->rows_left;
    if (*cut) count = (size_t)position->rows_left;
    enum mink_code code = MINK_OK;
    if (count) {
        arrow_project(&wide, p->place, p->column_count, &narrow);
        struct meta_source source = {view, position, rows ? rows + from : NULL, begin};
        if (rows && rows[from + count - 1] - rows[from] + 1 != count) arrow_take(&narrow, rows + from, count, &chosen);
        else arrow_slice(&narrow, rows ? rows[from] : begin, (int64_t)count, &chosen);
        uint32_t column_at = p->meta_first ? p->meta_count : 0, meta_at = p->meta_first ? 0 : p->column_count;
        final = (struct arrow_batch){arrow_schema_ref(p->schema), (int64_t)count, mem_new_array(struct arrow_array, p->column_count + p->meta_count + 1)};
        for (uint32_t i = 0; i < p->column_count; i++) arrow_array_ref(&final.columns[column_at + i], &chosen.columns[i]);
        for (uint32_t i = 0; i < p->meta_count; i++) final.columns[meta_at + i] = meta_column(p->meta[i], &source, (int64_t)count);
        code = emit(&(struct cutter){p, o, &source}, &final, 0, (int64_t)count, e);
        if (position->rows_left >= 0) position->rows_left -= (int64_t)count;
    }
    mem_free(rows);
    arrow_batch_deinit(&wide);
    arrow_batch_deinit(&narrow);
    arrow_batch_deinit(&chosen);
    arrow_batch_deinit(&final);
    return code;
}

static enum mink_code scan_rows(struct scan_plan *p, const struct batch_bytes *bytes, const struct batch_view *view, struct scan_position *position, uint64_t next, struct output *o, struct error *e) {
    const struct batch_header *h = &view->header;
    uint64_t first = h->offset_first;
    uint32_t begin = position->from > first ? (uint32_t)(position->from - first) : 0, end = (uint32_t)(next - first);
    const struct version *v = NULL;
    MINK_TRY(find_version(p, h->schema_id, &v, e));
    if (p->filter && view->statistics.size) {
        MINK_TRY(batch_statistics_read(view->statistics, p->def, p->stats_storage, p->stats, e));
        if (!filter_may_pass(p->filter, p->stats, h->row_count)) {
            position->from = next;
            return MINK_OK;
        }
    }
    struct ipc_message_info info;
    MINK_TRY(ipc_peek(view->message, &info, e));
    if (info.kind != IPC_BATCH || info.row_count != h->row_count || info.body_size > view->body.size)
        return error_set(e, MINK_CORRUPT, "BAD_BATCH", "the Arrow message is not of this batch: %" PRId64 " rows, the header says %" PRIu32, info.row_count, h->row_count);
    bool whole = begin == 0 && end == h->row_count && (position->rows_left < 0 || h->row_count <= position->rows_left), done = false, cut = false;
    if (whole && !p->filter && p->meta_count == 0 && v->output_stored && info.codec == p->compression) {
        MINK_TRY(pass_on(p, v, bytes, view, o, &done, e));
        if (done && position->rows_left >= 0) position->rows_left -= h->row_count;
    }
    if (!done) MINK_TRY(select_rows(p, v, bytes, view, begin, end, position, o, &cut, e));
    // What follows the last row was looked at too, unless the limit came first.
    position->from = cut ? o->messages[o->count - 1].next : next;
    if (o->count) o->messages[o->count - 1].next = position->from;
    return MINK_OK;
}

enum mink_code scan_batch(struct scan_plan *p, const struct batch_bytes *bytes, const struct batch_view *view, struct scan_position *position, struct scan_message **out, uint32_t *count, struct error *e) {
    const struct batch_header *h = &view->header;
    uint64_t end = h->offset_first + h->offset_count, next = end < position->until ? end : position->until;
    struct output o = {0};
    *out = NULL;
    *count = 0;
    if (position->from >= next || next <= h->offset_first || position->rows_left == 0) return MINK_OK;
    if (h->row_count) {
        struct scan_position before = *position;
        enum mink_code code = MINK_OK;
        if (h->payload != BATCH_PAYLOAD_ARROW || h->row_count != h->offset_count)
            code = error_set(e, MINK_UNSUPPORTED, "BATCH_KIND", "payload kind %d with %" PRIu32 " rows in %" PRIu32 " offsets is not read by this version", h->payload, h->row_count, h->offset_count);
        else code = scan_rows(p, bytes, view, position, next, &o, e);
        if (code != MINK_OK) {
            scan_messages_free(o.messages, o.count);
            *position = before;
            // What was stored had been checked before: bad Arrow here is damage, not a bad request.
            if (code == MINK_INVALID) code = MINK_CORRUPT;
            if (e) e->code = code;
            error_context(e, "read %s.%s batch at offset %" PRIu64, p->def->database, p->def->name, h->offset_first);
            return code;
        }
    } else {
        position->from = next;
    }
    *out = o.messages;
    *count = o.count;
    return MINK_OK;
}
