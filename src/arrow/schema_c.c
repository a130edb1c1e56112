// SPDX-License-Identifier: Apache-2.0
// Schemas through the C data interface.
#include "arrow/schema.h"

#include "arrow/arrow_internal.h"
#include "base/mem.h"

#include <nanoarrow/nanoarrow.h>

#include <stdio.h>
#include <string.h>

struct importer {
    uint32_t fields_left;
    struct error *e;
};

static enum mink_code bad(struct error *e, const char *name, const char *what) {
    error_set(e, MINK_INVALID, "BAD_ARROW", "schema: field %.60s: %s", name ? name : "", what);
    return MINK_INVALID;
}

static enum mink_code import_metadata(const char *metadata, struct arrow_field *out, struct error *e) {
    struct ArrowMetadataReader reader;
    struct ArrowStringView key, value;
    if (metadata == NULL) return MINK_OK;
    if (ArrowMetadataReaderInit(&reader, metadata) != NANOARROW_OK || reader.remaining_keys < 0) return bad(e, out->name, "metadata is damaged");
    out->metadata = reader.remaining_keys ? mem_new_array(struct arrow_metadata, (size_t)reader.remaining_keys) : NULL;
    while (reader.remaining_keys > 0) {
        if (ArrowMetadataReaderRead(&reader, &key, &value) != NANOARROW_OK) return bad(e, out->name, "metadata is damaged");
        out->metadata[out->metadata_count].key = mem_strndup(key.data, (size_t)key.size_bytes);
        out->metadata[out->metadata_count++].value = mem_strndup(value.data, (size_t)value.size_bytes);
    }
    return MINK_OK;
}

static bool map_type(enum ArrowType t, enum arrow_type *out, bool *view) {
    static const struct { enum ArrowType theirs; enum arrow_type ours; } table[] = {
        {NANOARROW_TYPE_NA, ARROW_NULL}, {NANOARROW_TYPE_BOOL, ARROW_BOOL}, {NANOARROW_TYPE_INT8, ARROW_INT8}, {NANOARROW_TYPE_INT16, ARROW_INT16},
        {NANOARROW_TYPE_INT32, ARROW_INT32}, {NANOARROW_TYPE_INT64, ARROW_INT64}, {NANOARROW_TYPE_UINT8, ARROW_UINT8},
        {NANOARROW_TYPE_UINT16, ARROW_UINT16}, {NANOARROW_TYPE_UINT32, ARROW_UINT32}, {NANOARROW_TYPE_UINT64, ARROW_UINT64},
        {NANOARROW_TYPE_HALF_FLOAT, ARROW_FLOAT16}, {NANOARROW_TYPE_FLOAT, ARROW_FLOAT32}, {NANOARROW_TYPE_DOUBLE, ARROW_FLOAT64},
        {NANOARROW_TYPE_DECIMAL128, ARROW_DECIMAL128}, {NANOARROW_TYPE_STRING, ARROW_UTF8}, {NANOARROW_TYPE_LARGE_STRING, ARROW_LARGE_UTF8},
        {NANOARROW_TYPE_BINARY, ARROW_BINARY}, {NANOARROW_TYPE_LARGE_BINARY, ARROW_LARGE_BINARY},
        {NANOARROW_TYPE_FIXED_SIZE_BINARY, ARROW_FIXED_BINARY}, {NANOARROW_TYPE_DATE32, ARROW_DATE32}, {NANOARROW_TYPE_DATE64, ARROW_DATE64},
        {NANOARROW_TYPE_TIME32, ARROW_TIME32}, {NANOARROW_TYPE_TIME64, ARROW_TIME64}, {NANOARROW_TYPE_TIMESTAMP, ARROW_TIMESTAMP},
        {NANOARROW_TYPE_DURATION, ARROW_DURATION}, {NANOARROW_TYPE_LIST, ARROW_LIST}, {NANOARROW_TYPE_LARGE_LIST, ARROW_LARGE_LIST},
        {NANOARROW_TYPE_FIXED_SIZE_LIST, ARROW_FIXED_LIST}, {NANOARROW_TYPE_STRUCT, ARROW_STRUCT}, {NANOARROW_TYPE_MAP, ARROW_MAP},
        {NANOARROW_TYPE_STRING_VIEW, ARROW_UTF8}, {NANOARROW_TYPE_BINARY_VIEW, ARROW_BINARY}};
    *view = t == NANOARROW_TYPE_STRING_VIEW || t == NANOARROW_TYPE_BINARY_VIEW;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (table[i].theirs != t) continue;
        *out = table[i].ours;
        return true;
    }
    return false;
}

static enum mink_code import_field(struct importer *im, const struct ArrowSchema *source, uint32_t depth, struct arrow_field *out) {
    struct ArrowSchemaView view;
    struct ArrowError why;
    const struct ArrowSchema *value = source->dictionary ? source->dictionary : source;
    *out = arrow_field_make(source->name ? source->name : "", ARROW_NULL, (source->flags & ARROW_FLAG_NULLABLE) != 0);
    if (depth >= ARROW_DEPTH_MAX || im->fields_left == 0) return bad(im->e, source->name, "too many fields or too deep");
    im->fields_left--;
    ArrowErrorInit(&why);
    if (source->dictionary) {
        if (ArrowSchemaViewInit(&view, source, &why) != NANOARROW_OK) return bad(im->e, source->name, why.message);
        bool ignored;
        if (!map_type(view.storage_type, &out->index_type, &ignored)) return bad(im->e, source->name, "dictionary index type");
        out->dictionary = true;
        if (value->dictionary) return bad(im->e, source->name, "a dictionary of dictionaries");
    }
    if (ArrowSchemaViewInit(&view, value, &why) != NANOARROW_OK) return bad(im->e, source->name, why.message);
    if (!map_type(view.type, &out->type, &out->view)) {
        error_set(im->e, MINK_UNSUPPORTED, "UNSUPPORTED_TYPE", "column %.60s: type %s is not supported", out->name, ArrowTypeString(view.type));
        error_about(im->e, out->name, NULL, ArrowTypeString(view.type));
        return MINK_UNSUPPORTED;
    }
    if (out->type == ARROW_DECIMAL128) {
        out->precision = view.decimal_precision;
        out->scale = view.decimal_scale;
    }
    if (out->type == ARROW_FIXED_BINARY || out->type == ARROW_FIXED_LIST) out->width = view.fixed_size;
    if (out->type == ARROW_TIME32 || out->type == ARROW_TIME64 || out->type == ARROW_TIMESTAMP || out->type == ARROW_DURATION)
        out->unit = (enum arrow_unit)view.time_unit;
    if (out->type == ARROW_TIMESTAMP && view.timezone && view.timezone[0]) out->timezone = mem_strdup(view.timezone);
    MINK_TRY(import_metadata(source->metadata, out, im->e));
    if (value->n_children > 0) {
        if (value->n_children > ARROW_FIELDS_MAX) return bad(im->e, source->name, "too many fields");
        out->children = mem_new_array(struct arrow_field, (size_t)value->n_children);
        for (int64_t i = 0; i < value->n_children; i++) {
            out->child_count = (uint32_t)i + 1;
            MINK_TRY(import_field(im, value->children[i], depth + 1, &out->children[i]));
        }
    }
    const char *wrong = arrow_field_check(out);
    return wrong ? bad(im->e, source->name, wrong) : MINK_OK;
}

enum mink_code arrow_schema_import(struct ArrowSchema *source, struct arrow_schema **out, struct error *e) {
    struct importer im = {.fields_left = ARROW_FIELDS_MAX, .e = e};
    struct arrow_field root;
    enum mink_code code = import_field(&im, source, 0, &root);
    if (code == MINK_OK && (root.type != ARROW_STRUCT || root.dictionary)) code = bad(e, root.name, "a schema has to be a struct");
    ArrowSchemaRelease(source);
    if (code != MINK_OK) {
        arrow_field_deinit(&root);
        return code;
    }
    struct arrow_schema *s = mem_new(struct arrow_schema);
    atomic_init(&s->refs, 1);
    s->root = root;
    s->root.nullable = false;
    *out = s;
    return MINK_OK;
}

static ArrowErrorCode export_type(const struct arrow_field *f, struct ArrowSchema *out) {
    static const enum ArrowType plain[ARROW_TYPE_COUNT] = {
        [ARROW_NULL] = NANOARROW_TYPE_NA, [ARROW_BOOL] = NANOARROW_TYPE_BOOL, [ARROW_INT8] = NANOARROW_TYPE_INT8,
        [ARROW_INT16] = NANOARROW_TYPE_INT16, [ARROW_INT32] = NANOARROW_TYPE_INT32, [ARROW_INT64] = NANOARROW_TYPE_INT64,
        [ARROW_UINT8] = NANOARROW_TYPE_UINT8, [ARROW_UINT16] = NANOARROW_TYPE_UINT16, [ARROW_UINT32] = NANOARROW_TYPE_UINT32,
        [ARROW_UINT64] = NANOARROW_TYPE_UINT64, [ARROW_FLOAT16] = NANOARROW_TYPE_HALF_FLOAT, [ARROW_FLOAT32] = NANOARROW_TYPE_FLOAT,
        [ARROW_FLOAT64] = NANOARROW_TYPE_DOUBLE, [ARROW_UTF8] = NANOARROW_TYPE_STRING, [ARROW_LARGE_UTF8] = NANOARROW_TYPE_LARGE_STRING,
        [ARROW_BINARY] = NANOARROW_TYPE_BINARY, [ARROW_LARGE_BINARY] = NANOARROW_TYPE_LARGE_BINARY, [ARROW_DATE32] = NANOARROW_TYPE_DATE32,
        [ARROW_DATE64] = NANOARROW_TYPE_DATE64};
    char format[32];
    switch (f->type) {
    case ARROW_DECIMAL128: return ArrowSchemaSetTypeDecimal(out, NANOARROW_TYPE_DECIMAL128, f->precision, f->scale);
    case ARROW_FIXED_BINARY: return ArrowSchemaSetTypeFixedSize(out, NANOARROW_TYPE_FIXED_SIZE_BINARY, f->width);
    case ARROW_TIME32: return ArrowSchemaSetTypeDateTime(out, NANOARROW_TYPE_TIME32, (enum ArrowTimeUnit)f->unit, NULL);
    case ARROW_TIME64: return ArrowSchemaSetTypeDateTime(out, NANOARROW_TYPE_TIME64, (enum ArrowTimeUnit)f->unit, NULL);
    case ARROW_DURATION: return ArrowSchemaSetTypeDateTime(out, NANOARROW_TYPE_DURATION, (enum ArrowTimeUnit)f->unit, NULL);
    case ARROW_TIMESTAMP: return ArrowSchemaSetTypeDateTime(out, NANOARROW_TYPE_TIMESTAMP, (enum ArrowTimeUnit)f->unit, f->timezone);
    case ARROW_LIST: return ArrowSchemaSetFormat(out, "+l");
    case ARROW_LARGE_LIST: return ArrowSchemaSetFormat(out, "+L");
    case ARROW_STRUCT: return ArrowSchemaSetFormat(out, "+s");
    case ARROW_MAP: return ArrowSchemaSetFormat(out, "+m");
    case ARROW_FIXED_LIST:
        snprintf(format, sizeof format, "+w:%d", f->width);
        return ArrowSchemaSetFormat(out, format);
    default: return ArrowSchemaSetType(out, plain[f->type]);
    }
}

static ArrowErrorCode export_metadata(const struct arrow_field *f, struct ArrowSchema *out) {
    struct ArrowBuffer packed;
    if (f->metadata_count == 0) return NANOARROW_OK;
    NANOARROW_RETURN_NOT_OK(ArrowMetadataBuilderInit(&packed, NULL));
    ArrowErrorCode code = NANOARROW_OK;
    for (uint32_t i = 0; i < f->metadata_count && code == NANOARROW_OK; i++)
        code = ArrowMetadataBuilderAppend(&packed, ArrowCharView(f->metadata[i].key), ArrowCharView(f->metadata[i].value));
    if (code == NANOARROW_OK) code = ArrowSchemaSetMetadata(out, (const char *)packed.data);
    ArrowBufferReset(&packed);
    return code;
}

static ArrowErrorCode export_field(const struct arrow_field *f, struct ArrowSchema *out) {
    NANOARROW_RETURN_NOT_OK(export_type(f, out));
    NANOARROW_RETURN_NOT_OK(ArrowSchemaSetName(out, f->name));
    out->flags = f->nullable ? ARROW_FLAG_NULLABLE : 0;
    NANOARROW_RETURN_NOT_OK(export_metadata(f, out));
    if (f->child_count == 0) return NANOARROW_OK;
    NANOARROW_RETURN_NOT_OK(ArrowSchemaAllocateChildren(out, f->child_count));
    for (uint32_t i = 0; i < f->child_count; i++) ArrowSchemaInit(out->children[i]);
    for (uint32_t i = 0; i < f->child_count; i++) NANOARROW_RETURN_NOT_OK(export_field(&f->children[i], out->children[i]));
    // Entries and keys of a map are never null by definition, whatever a sender's schema said.
    if (f->type == ARROW_MAP) out->children[0]->flags = out->children[0]->children[0]->flags = 0;
    return NANOARROW_OK;
}

enum mink_code arrow_schema_export(const struct arrow_schema *s, struct ArrowSchema *out, struct error *e) {
    ArrowSchemaInit(out);
    if (export_field(&s->root, out) == NANOARROW_OK) return MINK_OK;
    ArrowSchemaRelease(out);
    return error_set(e, MINK_INTERNAL, "ARROW_EXPORT", "export schema: field types that Arrow does not have");
}
