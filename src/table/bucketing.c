// SPDX-License-Identifier: Apache-2.0
// Key bytes and hashes of the four bucketing functions. docs/formats.md#bucketing has the encodings.
#include "table/bucketing.h"

#include "base/buffer.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

static uint32_t rotl(uint32_t v, int n) { return v << n | v >> (32 - n); }

static uint32_t finish(uint32_t h) {
    h ^= h >> 16;
    h *= 0x85ebca6bu;
    h ^= h >> 13;
    h *= 0xc2b2ae35u;
    return h ^ h >> 16;
}

// Flink's scramble of a hash into [0, 2^31).
static uint32_t flink_scramble(uint32_t v) {
    v = rotl(rotl(v * 0xcc9e2d51u, 15) * 0x1b873593u, 13) * 5 + 0xe6546b64u;
    v = finish(v ^ 4);
    int32_t s = (int32_t)v;
    return s >= 0 ? (uint32_t)s : s != INT32_MIN ? (uint32_t)-s : 0;
}

// ---- a value of a key column

struct value { bool null; int64_t i; __int128 decimal; const uint8_t *bytes; size_t size; };

static struct value value_at(const struct type *t, const struct arrow_field *f, const struct arrow_array *a, int64_t row) {
    struct value v = {.null = arrow_is_null(a, row)};
    if (v.null) return v;
    const uint8_t *data = a->buffers[1].data;
    switch (f->type) {
    case ARROW_BOOL: v.i = data[row >> 3] >> (row & 7) & 1; break;
    case ARROW_INT8: v.i = (int8_t)data[row]; break;
    case ARROW_INT16: {
        int16_t x;
        memcpy(&x, data + 2 * row, 2);
        v.i = x;
        break;
    }
    case ARROW_INT32:
    case ARROW_DATE32:
    case ARROW_TIME32:
    case ARROW_FLOAT32: {
        int32_t x;
        memcpy(&x, data + 4 * row, 4);
        v.i = x;
        break;
    }
    case ARROW_DECIMAL128: memcpy(&v.decimal, data + 16 * row, 16); break;
    case ARROW_FIXED_BINARY:
        v.bytes = data + (size_t)f->width * (size_t)row;
        v.size = (size_t)f->width;
        break;
    case ARROW_UTF8:
    case ARROW_BINARY: {
        int32_t begin, end;
        memcpy(&begin, data + 4 * row, 4);
        memcpy(&end, data + 4 * (row + 1), 4);
        v.bytes = a->buffers[2].data + begin;
        v.size = (size_t)(end - begin);
        break;
    }
    default: memcpy(&v.i, data + 8 * row, 8); // int64, float64, time64, timestamp
    }
    (void)t;
    return v;
}

static int64_t unit_per_second(enum arrow_unit unit) { return unit == ARROW_SECOND ? 1 : unit == ARROW_MILLI ? 1000 : unit == ARROW_MICRO ? 1000000 : 1000000000; }

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }

// Milliseconds and the nanoseconds within, as Flink's timestamps are kept.
static void split_timestamp(int64_t v, enum arrow_unit unit, int64_t *ms, int32_t *nanos) {
    int64_t per = unit_per_second(unit);
    if (per <= 1000) {
        *ms = v * (1000 / per);
        *nanos = 0;
        return;
    }
    int64_t per_ms = per / 1000;
    *ms = floor_div(v, per_ms);
    *nanos = (int32_t)((v - *ms * per_ms) * (1000000 / per_ms));
}

static int32_t time_ms(int64_t v, enum arrow_unit unit) {
    int64_t per = unit_per_second(unit);
    return (int32_t)(per >= 1000 ? v / (per / 1000) : v * 1000);
}

// Two's complement, big-endian, as short as possible: java.math.BigInteger.toByteArray.
static size_t big_endian_minimal(__int128 v, uint8_t out[16]) {
    uint8_t all[16];
    for (int i = 0; i < 16; i++) all[15 - i] = (uint8_t)(v >> (8 * i));
    size_t skip = 0;
    while (skip < 15 && ((all[skip] == 0 && !(all[skip + 1] & 0x80)) || (all[skip] == 0xff && (all[skip + 1] & 0x80)))) skip++;
    memcpy(out, all + skip, 16 - skip);
    return 16 - skip;
}

// ---- native: the compacted encoding, without null bits

static void put_varint32(struct buffer *b, uint32_t v) { buffer_put_varint(b, v); }

static void native_value(struct buffer *b, const struct type *t, const struct arrow_field *f, const struct value *v) {
    uint8_t decimal[16];
    int64_t ms;
    int32_t nanos;
    switch (t->kind) {
    case TYPE_BOOLEAN:
    case TYPE_TINYINT: buffer_put_u8(b, (uint8_t)v->i); break;
    case TYPE_SMALLINT: buffer_put_u16le(b, (uint16_t)v->i); break;
    case TYPE_INT:
    case TYPE_DATE: put_varint32(b, (uint32_t)v->i); break;
    case TYPE_TIME: put_varint32(b, (uint32_t)time_ms(v->i, f->unit)); break;
    case TYPE_BIGINT: buffer_put_varint(b, (uint64_t)v->i); break;
    case TYPE_FLOAT: buffer_put_u32le(b, (uint32_t)v->i); break;
    case TYPE_DOUBLE: buffer_put_u64le(b, (uint64_t)v->i); break;
    case TYPE_DECIMAL:
        if (t->precision <= 18) {
            buffer_put_varint(b, (uint64_t)(int64_t)v->decimal);
        } else {
            size_t size = big_endian_minimal(v->decimal, decimal);
            put_varint32(b, (uint32_t)size);
            buffer_put(b, decimal, size);
        }
        break;
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMP_LTZ:
        split_timestamp(v->i, f->unit, &ms, &nanos);
        buffer_put_varint(b, (uint64_t)ms);
        if (t->precision > 3) put_varint32(b, (uint32_t)nanos);
        break;
    default: // CHAR, STRING, BINARY, BYTES
        put_varint32(b, (uint32_t)v->size);
        buffer_put(b, v->bytes, v->size);
    }
}

// ---- Paimon: a BinaryRow of the key: 8 bytes of row kind and null bits (for up to 56 fields), 8 bytes a field, then what does not fit

static void put_at(struct buffer *b, size_t at, uint64_t v) {
    for (int i = 0; i < 8; i++) b->data[at + (size_t)i] = (uint8_t)(v >> (8 * i));
}

static void paimon_bytes(struct buffer *b, size_t slot, const uint8_t *data, size_t size) {
    if (size <= 7) { // in the slot itself: mark and length in the highest byte
        uint64_t v = (uint64_t)(0x80 | size) << 56;
        for (size_t i = 0; i < size; i++) v |= (uint64_t)data[i] << (8 * i);
        put_at(b, slot, v);
        return;
    }
    put_at(b, slot, (uint64_t)b->size << 32 | size);
    buffer_put(b, data, size);
    buffer_put_zeros(b, (8 - size % 8) % 8);
}

static void paimon_value(struct buffer *b, size_t slot, const struct type *t, const struct arrow_field *f, const struct value *v) {
    uint8_t decimal[16] = {0};
    int64_t ms;
    int32_t nanos;
    switch (t->kind) {
    case TYPE_BOOLEAN:
    case TYPE_TINYINT: put_at(b, slot, (uint8_t)v->i); break;
    case TYPE_SMALLINT: put_at(b, slot, (uint16_t)v->i); break;
    case TYPE_INT:
    case TYPE_DATE:
    case TYPE_FLOAT: put_at(b, slot, (uint32_t)v->i); break;
    case TYPE_TIME: put_at(b, slot, (uint32_t)time_ms(v->i, f->unit)); break;
    case TYPE_BIGINT:
    case TYPE_DOUBLE: put_at(b, slot, (uint64_t)v->i); break;
    case TYPE_DECIMAL:
        if (t->precision <= 18) {
            put_at(b, slot, (uint64_t)(int64_t)v->decimal);
        } else { // always 16 bytes behind
            size_t size = big_endian_minimal(v->decimal, decimal);
            put_at(b, slot, (uint64_t)b->size << 32 | size);
            buffer_put(b, decimal, size);
            buffer_put_zeros(b, 16 - size);
        }
        break;
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMP_LTZ:
        split_timestamp(v->i, f->unit, &ms, &nanos);
        if (t->precision <= 3) {
            put_at(b, slot, (uint64_t)ms);
        } else {
            put_at(b, slot, (uint64_t)b->size << 32 | (uint32_t)nanos);
            buffer_put_u64le(b, (uint64_t)ms);
        }
        break;
    default: paimon_bytes(b, slot, v->bytes, v->size);
    }
}

// ---- Iceberg: single-value bytes, as its bucket transform hashes them

static uint32_t iceberg_hash(const struct type *t, const struct arrow_field *f, const struct value *v) {
    uint8_t bytes[16];
    int64_t i = v->i, ms;
    int32_t nanos;
    switch (t->kind) {
    case TYPE_DECIMAL: return murmur3_x86_32(bytes, big_endian_minimal(v->decimal, bytes), 0);
    case TYPE_CHAR:
    case TYPE_STRING:
    case TYPE_BINARY:
    case TYPE_BYTES: return murmur3_x86_32(v->bytes, v->size, 0);
    case TYPE_TIME: // microseconds
        i = f->unit == ARROW_SECOND ? i * 1000000 : f->unit == ARROW_MILLI ? i * 1000 : f->unit == ARROW_NANO ? i / 1000 : i;
        break;
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMP_LTZ:
        split_timestamp(i, f->unit, &ms, &nanos);
        i = ms * 1000 + nanos / 1000;
        break;
    default: break;
    }
    for (int k = 0; k < 8; k++) bytes[k] = (uint8_t)((uint64_t)i >> (8 * k));
    return murmur3_x86_32(bytes, 8, 0);
}

static enum mink_code null_key(const struct table_def *d, uint32_t column, int64_t row, struct error *e) {
    error_set(e, MINK_INVALID, "NULL_BUCKET_KEY", "column %s, row %lld: null in a column of the bucket key", d->columns[column].name, (long long)row);
    error_about(e, d->columns[column].name, "a value", "null");
    return MINK_INVALID;
}

enum mink_code bucketing_assign(const struct table_def *d, const struct arrow_batch *b, uint32_t *out, struct error *e) {
    struct buffer key;
    uint32_t n = d->bucket_num;
    if (d->bucket_key_count == 0) return error_set(e, MINK_INTERNAL, "NO_BUCKET_KEY", "table %s.%s has no bucket key", d->database, d->name);
    buffer_init(&key, 64u << 20);
    enum mink_code code = MINK_OK;
    for (int64_t row = 0; row < b->row_count && code == MINK_OK; row++) {
        uint32_t hash = 0;
        buffer_reset(&key);
        size_t nulls = ((size_t)d->bucket_key_count + 63 + 8) / 64 * 8;
        if (d->bucketing == BUCKETING_PAIMON) buffer_put_zeros(&key, nulls + 8 * (size_t)d->bucket_key_count);
        for (uint32_t k = 0; k < d->bucket_key_count && code == MINK_OK; k++) {
            uint32_t column = d->bucket_key[k];
            const struct type *t = &d->columns[column].type;
            const struct arrow_field *f = arrow_schema_at(d->arrow, column);
            struct value v = value_at(t, f, &b->columns[column], row);
            if (d->bucketing == BUCKETING_PAIMON && v.null) key.data[(k + 8) / 8] |= (uint8_t)(1u << ((k + 8) % 8));
            else if (v.null) code = null_key(d, column, row, e);
            else if (d->bucketing == BUCKETING_PAIMON) paimon_value(&key, nulls + 8 * (size_t)k, t, f, &v);
            else if (d->bucketing == BUCKETING_ICEBERG) hash = iceberg_hash(t, f, &v);
            else if (d->bucketing == BUCKETING_KAFKA && v.bytes) hash = murmur2_kafka(v.bytes, v.size);
            else native_value(&key, t, f, &v);
        }
        if (code != MINK_OK) break;
        switch (d->bucketing) {
        case BUCKETING_NATIVE: out[row] = flink_scramble(murmur3_flink(key.data, key.size, 42)) % n; break;
        case BUCKETING_PAIMON: out[row] = (uint32_t)llabs((int64_t)(int32_t)murmur3_flink(key.data, key.size, 42) % (int64_t)n); break;
        case BUCKETING_ICEBERG: out[row] = (hash & 0x7fffffffu) % n; break;
        case BUCKETING_KAFKA: out[row] = ((key.size ? murmur2_kafka(key.data, key.size) : hash) & 0x7fffffffu) % n; break;
        }
    }
    if (code == MINK_OK && key.overflowed) code = error_set(e, MINK_INVALID, "KEY_TOO_LARGE", "a bucket key is larger than 64 MiB");
    buffer_deinit(&key);
    return code;
}
