// SPDX-License-Identifier: Apache-2.0
// From rows to buckets. Per function a way to write the key's bytes, a hash, and a way to fold the hash (docs/formats.md#bucket-keys):
//
//             key                                             hash                     bucket
//   native    compacted encoding of the columns               Flink's murmur3, 42      positive(scramble(h)) mod n
//   paimon    BinaryRow of the columns, row kind INSERT       Flink's murmur3, 42      abs(h rem n)
//   iceberg   single-value bytes of the column                standard murmur3, 0      (h & 0x7fffffff) mod n
//   kafka     bytes of the column                             murmur2                  (h & 0x7fffffff) mod n
//
// Whole numbers of one column, the usual key, have loops of their own; all else goes row by row through one buffer.
#include "table/bucketing.h"

#include "base/mem.h"
#include "table/murmur.h"

#include <inttypes.h>

#define SEED_FLINK 42

uint32_t murmur3_flink(const void *data, size_t size, uint32_t seed) { return murmur_flink(data, size, seed); }
uint32_t murmur3_x86_32(const void *data, size_t size, uint32_t seed) { return murmur_standard(data, size, seed); }
uint32_t murmur2_kafka(const void *data, size_t size) { return murmur_kafka(data, size); }

// ---- from hash to bucket

// n is the same for all rows: a multiplication instead of a division (Lemire, Kaser, Kurz: Faster remainder by direct computation).
struct divisor { uint32_t n; uint64_t inverse; };

static struct divisor divisor_of(uint32_t n) { return (struct divisor){n, n == 1 ? 0 : UINT64_MAX / n + 1}; }
static inline uint32_t modulo(uint32_t v, struct divisor d) { return (uint32_t)((unsigned __int128)(d.inverse * v) * d.n >> 64); }

// Flink's scramble of a hash, which is murmur3 of it as one word.
static inline uint32_t fold_native(uint32_t h, struct divisor d) {
    int32_t v = (int32_t)murmur_spread((murmur_rotate(murmur_key(h), 13) * 5 + 0xe6546b64u) ^ 4);
    return modulo(v >= 0 ? (uint32_t)v : v == INT32_MIN ? 0 : (uint32_t)-v, d);
}

static inline uint32_t fold_paimon(uint32_t h, struct divisor d) {
    int32_t v = (int32_t)h; // the remainder of a negative number is negative: its absolute value is that of the number's
    return modulo(v < 0 ? (uint32_t)-(int64_t)v : (uint32_t)v, d);
}

static inline uint32_t fold_positive(uint32_t h, struct divisor d) { return modulo(h & 0x7fffffff, d); }

// ---- values of a column

struct key_column {
    enum type_kind kind;
    enum arrow_unit unit;
    uint32_t width; // bytes, of fixed ones
    bool compact;   // DECIMAL up to 18 digits, TIMESTAMP up to milliseconds: one 64-bit number
    const struct arrow_array *array;
    const char *name;
};

static struct key_column key_column_of(const struct table_def *d, const struct arrow_batch *b, uint32_t index) {
    const struct type *t = &d->columns[index].type;
    const struct arrow_field *f = arrow_schema_at(d->arrow, index);
    bool compact = t->kind == TYPE_DECIMAL ? t->precision <= 18 : t->precision <= 3;
    return (struct key_column){t->kind, f->unit, arrow_type_bit_width(f) / 8, compact, &b->columns[index], d->columns[index].name};
}

static inline const uint8_t *fixed_at(const struct key_column *c, int64_t row) { return c->array->buffers[1].data + (size_t)row * c->width; }

static inline int64_t int_at(const struct key_column *c, int64_t row) {
    uint64_t v = 0;
    uint32_t shift = 64 - 8 * c->width;
    memcpy(&v, fixed_at(c, row), c->width);
    return (int64_t)(v << shift) >> shift;
}

static __int128 decimal_at(const struct key_column *c, int64_t row) {
    __int128 v;
    memcpy(&v, fixed_at(c, row), 16);
    return v;
}

static struct slice bytes_at(const struct key_column *c, int64_t row) {
    if (c->kind == TYPE_BINARY) return slice_borrow(fixed_at(c, row), c->width);
    int32_t offsets[2];
    memcpy(offsets, c->array->buffers[1].data + 4 * row, 8);
    const uint8_t *bytes = c->array->buffers[2].data; // none when all are empty
    return slice_borrow(bytes ? bytes + offsets[0] : NULL, (size_t)(offsets[1] - offsets[0]));
}

static int64_t units_a_second(enum arrow_unit unit) {
    static const int64_t units[] = {1, 1000, 1000000, 1000000000};
    return units[unit];
}

// v in another unit; towards the past when it gets coarser. Instants beyond 64 bits wrap, as they do where this comes from.
static int64_t convert(int64_t v, enum arrow_unit from, enum arrow_unit to) {
    int64_t a = units_a_second(from), b = units_a_second(to);
    if (b >= a) return (int64_t)((uint64_t)v * (uint64_t)(b / a));
    return v / (a / b) - (v % (a / b) < 0);
}

// Milliseconds, and the nanoseconds in them.
static int64_t instant_at(const struct key_column *c, int64_t row, int32_t *nanos) {
    int64_t v = int_at(c, row), ms = convert(v, c->unit, ARROW_MILLI);
    int64_t per_ms = units_a_second(c->unit) / 1000; // 0 when seconds
    *nanos = per_ms > 1 ? (int32_t)((v - ms * per_ms) * (1000000 / per_ms)) : 0;
    return ms;
}

// Big-endian two's complement without bytes that only repeat the sign.
static uint32_t decimal_bytes(__int128 v, uint8_t out[16]) {
    uint32_t size = 16;
    unsigned __int128 u = (unsigned __int128)v;
    while (size > 1) {
        // the topmost byte and the next bit are all sign
        int64_t top = (int64_t)(v >> (8 * size - 9));
        if (top != 0 && top != -1) break;
        size--;
    }
    for (uint32_t i = 0; i < size; i++) out[i] = (uint8_t)(u >> (8 * (size - 1 - i)));
    return size;
}

// ---- the buffer of a key

struct key { uint8_t *data; size_t size, capacity; };

static uint8_t *key_room(struct key *k, size_t size) {
    if (k->capacity - k->size < size) {
        k->capacity = 2 * (k->size + size);
        k->data = mem_realloc(k->data, k->capacity);
    }
    return k->data + k->size;
}

static void key_put(struct key *k, const void *data, size_t size) {
    uint8_t *p = key_room(k, size);
    if (size) memcpy(p, data, size);
    k->size += size;
}

static inline uint32_t put_varint(uint8_t *p, uint64_t v) {
    uint32_t n = 0;
    for (; v >= 0x80; v >>= 7) p[n++] = (uint8_t)(v | 0x80);
    p[n++] = (uint8_t)v;
    return n;
}

static void key_put_varint(struct key *k, uint64_t v) { k->size += put_varint(key_room(k, 10), v); }

// ---- native

static void native_value(struct key *k, const struct key_column *c, int64_t row) {
    int32_t nanos;
    struct slice bytes;
    uint8_t unscaled[16];
    switch (c->kind) {
    case TYPE_BOOLEAN: {
        uint8_t v = c->array->buffers[1].data[row >> 3] >> (row & 7) & 1;
        key_put(k, &v, 1);
        return;
    }
    case TYPE_TINYINT:
    case TYPE_SMALLINT:
    case TYPE_FLOAT:
    case TYPE_DOUBLE: key_put(k, fixed_at(c, row), c->width); return;
    case TYPE_INT:
    case TYPE_DATE: key_put_varint(k, (uint32_t)int_at(c, row)); return;
    case TYPE_TIME: key_put_varint(k, (uint32_t)convert(int_at(c, row), c->unit, ARROW_MILLI)); return;
    case TYPE_BIGINT: key_put_varint(k, (uint64_t)int_at(c, row)); return;
    case TYPE_DECIMAL:
        if (c->compact) {
            key_put_varint(k, (uint64_t)decimal_at(c, row));
        } else {
            uint32_t size = decimal_bytes(decimal_at(c, row), unscaled);
            key_put_varint(k, size);
            key_put(k, unscaled, size);
        }
        return;
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMP_LTZ:
        key_put_varint(k, (uint64_t)instant_at(c, row, &nanos));
        if (!c->compact) key_put_varint(k, (uint32_t)nanos);
        return;
    default:
        bytes = bytes_at(c, row);
        key_put_varint(k, bytes.size);
        key_put(k, bytes.data, bytes.size);
    }
}

static inline uint32_t native_short_text(const uint8_t *p, uint32_t size, struct divisor d);

static uint32_t native_row(struct key *k, const struct key_column *columns, uint32_t count, int64_t row, struct divisor d) {
    if (count == 1 && columns->kind >= TYPE_CHAR && columns->kind <= TYPE_BYTES) {
        struct slice bytes = bytes_at(columns, row);
        if (bytes.size < 0x80) return native_short_text(bytes.data, (uint32_t)bytes.size, d);
    }
    for (uint32_t i = 0; i < count; i++) native_value(k, &columns[i], row);
    return fold_native(murmur_flink(k->data, k->size, SEED_FLINK), d);
}

// ---- paimon: a byte of row kind (0: INSERT) and the null bits, 8 bytes a column, then what does not fit into 8

// Into the part behind the columns; the column says where and how much.
static void paimon_variable(struct key *k, size_t slot, const void *data, size_t size, uint64_t told) {
    uint64_t place = (uint64_t)k->size << 32 | told;
    size_t padded = (size + 7) & ~(size_t)7;
    uint8_t *p = key_room(k, padded);
    if (size) memcpy(p, data, size);
    memset(p + size, 0, padded - size);
    k->size += padded;
    memcpy(k->data + slot, &place, 8);
}

static void paimon_value(struct key *k, size_t slot, const struct key_column *c, int64_t row) {
    uint64_t v = 0;
    uint8_t unscaled[16] = {0};
    int32_t nanos;
    struct slice bytes;
    switch (c->kind) {
    case TYPE_BOOLEAN: v = c->array->buffers[1].data[row >> 3] >> (row & 7) & 1; break;
    case TYPE_TINYINT:
    case TYPE_SMALLINT:
    case TYPE_INT:
    case TYPE_DATE:
    case TYPE_BIGINT:
    case TYPE_FLOAT:
    case TYPE_DOUBLE: memcpy(&v, fixed_at(c, row), c->width); break;
    case TYPE_TIME: v = (uint32_t)convert(int_at(c, row), c->unit, ARROW_MILLI); break;
    case TYPE_DECIMAL:
        if (!c->compact) {
            uint32_t size = decimal_bytes(decimal_at(c, row), unscaled);
            paimon_variable(k, slot, unscaled, 16, size);
            return;
        }
        v = (uint64_t)decimal_at(c, row);
        break;
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMP_LTZ:
        v = (uint64_t)instant_at(c, row, &nanos);
        if (c->compact) break;
        paimon_variable(k, slot, &v, 8, (uint32_t)nanos);
        return;
    default:
        bytes = bytes_at(c, row);
        if (bytes.size > 7) {
            paimon_variable(k, slot, bytes.data, bytes.size, bytes.size);
            return;
        }
        if (bytes.size) memcpy(&v, bytes.data, bytes.size);
        v |= (0x80 | (uint64_t)bytes.size) << 56;
    }
    memcpy(k->data + slot, &v, 8);
}

static uint32_t paimon_row(struct key *k, const struct key_column *columns, uint32_t count, int64_t row, struct divisor d) {
    size_t header = ((size_t)count + 63 + 8) / 64 * 8;
    memset(key_room(k, header + 8 * count), 0, header + 8 * count);
    k->size = header + 8 * count;
    for (uint32_t i = 0; i < count; i++) {
        if (arrow_is_null(columns[i].array, row)) k->data[(i + 8) / 8] |= (uint8_t)(1u << (i + 8) % 8);
        else paimon_value(k, header + 8 * i, &columns[i], row);
    }
    return fold_paimon(murmur_flink(k->data, k->size, SEED_FLINK), d);
}

// ---- iceberg, kafka: one column

static uint32_t iceberg_row(const struct key_column *c, int64_t row, struct divisor d) {
    int64_t v;
    struct slice bytes;
    uint8_t unscaled[16];
    switch (c->kind) {
    case TYPE_DECIMAL: bytes = slice_borrow(unscaled, decimal_bytes(decimal_at(c, row), unscaled)); break;
    case TYPE_CHAR:
    case TYPE_STRING:
    case TYPE_BINARY:
    case TYPE_BYTES: bytes = bytes_at(c, row); break;
    case TYPE_TIME:
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMP_LTZ:
        v = convert(int_at(c, row), c->unit, ARROW_MICRO);
        bytes = slice_borrow(&v, 8);
        break;
    default:
        v = int_at(c, row);
        bytes = slice_borrow(&v, 8);
    }
    return fold_positive(murmur_standard(bytes.data, bytes.size, 0), d);
}

static uint32_t kafka_row(const struct key_column *c, int64_t row, struct divisor d) {
    struct slice bytes = bytes_at(c, row);
    return fold_positive(murmur_kafka(bytes.data, bytes.size), d);
}

// ---- one column of whole numbers

// The varint without going through memory: groups of seven bits spread over bytes, all but the last with the bit that says "more".
static inline uint32_t native_int(uint64_t v, struct divisor d) {
    uint32_t size = (uint32_t)(63 - __builtin_clzll(v | 1)) / 7 + 1, left = size & 3, h = SEED_FLINK;
    uint64_t x = v & 0x00ffffffffffffff, tail;
    x = (x & 0x00fffffff0000000) << 4 | (x & 0x000000000fffffff);
    x = (x & 0x0fffc0000fffc000) << 2 | (x & 0x00003fff00003fff);
    x = (x & 0x3f803f803f803f80) << 1 | (x & 0x007f007f007f007f);
    x |= 0x8080808080808080 & (size > 8 ? UINT64_MAX : ((uint64_t)1 << 8 * (size - 1)) - 1);
    if (size < 4) {
        tail = x;
    } else {
        h = murmur_mix(h, (uint32_t)x);
        tail = x >> 32;
        if (size >= 8) {
            h = murmur_mix(h, (uint32_t)tail);
            tail = (v >> 56 & 0x7f) | (size > 9 ? 0x80 | v >> 63 << 8 : 0);
        }
    }
    for (; left; left--, tail >>= 8) h = murmur_mix(h, (uint32_t)(int32_t)(int8_t)tail);
    return fold_native(murmur_spread(h ^ size), d);
}

// A text behind its length of one byte, also in place: every word but the first is a byte before its place in the text.
static inline uint32_t native_short_text(const uint8_t *p, uint32_t size, struct divisor d) {
    uint32_t h = SEED_FLINK, total = size + 1, i = 0;
    if (total >= 4) {
        h = murmur_mix(h, size | (uint32_t)p[0] << 8 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 24);
        for (i = 4; i + 4 <= total; i += 4) h = murmur_mix(h, murmur_load(p + i - 1));
    } else {
        h = murmur_mix(h, size);
        i = 1;
    }
    for (; i < total; i++) h = murmur_mix(h, (uint32_t)(int32_t)(int8_t)p[i - 1]);
    return fold_native(murmur_spread(h ^ total), d);
}

static inline uint32_t paimon_int(uint64_t v, struct divisor d) {
    uint32_t h = murmur_mix(murmur_mix(SEED_FLINK, 0), 0); // the header
    h = murmur_mix(murmur_mix(h, (uint32_t)v), (uint32_t)(v >> 32));
    return fold_paimon(murmur_spread(h ^ 16), d);
}

static inline uint32_t iceberg_int(int64_t v, struct divisor d) {
    uint32_t h = murmur_mix(murmur_mix(0, (uint32_t)v), (uint32_t)((uint64_t)v >> 32));
    return fold_positive(murmur_spread(h ^ 8), d);
}

#define EACH(type, call)                                                             \
    for (int64_t row = 0; row < rows; row++) {                                       \
        type v;                                                                      \
        memcpy(&v, data + (size_t)row * sizeof v, sizeof v);                         \
        out[row] = call;                                                             \
    }

static bool whole_numbers(enum bucketing how, const struct key_column *c, int64_t rows, struct divisor d, uint32_t *out) {
    const uint8_t *data = c->array->buffers[1].data;
    if (c->kind == TYPE_BIGINT) {
        if (how == BUCKETING_NATIVE) EACH(int64_t, native_int((uint64_t)v, d))
        else if (how == BUCKETING_PAIMON) EACH(int64_t, paimon_int((uint64_t)v, d))
        else EACH(int64_t, iceberg_int(v, d))
        return true;
    }
    if (c->kind == TYPE_INT || c->kind == TYPE_DATE) {
        if (how == BUCKETING_NATIVE) EACH(int32_t, native_int((uint32_t)v, d))
        else if (how == BUCKETING_PAIMON) EACH(int32_t, paimon_int((uint32_t)v, d))
        else EACH(int32_t, iceberg_int(v, d))
        return true;
    }
    return false;
}

// ---- rows

static enum mink_code no_nulls(const struct key_column *c, int64_t rows, struct error *e) {
    for (int64_t row = 0; c->array->null_count && row < rows; row++) {
        if (!arrow_is_null(c->array, row)) continue;
        error_set(e, MINK_INVALID, "NULL_BUCKET_KEY", "row %" PRId64 ": column %.60s of the bucket key is null", row, c->name);
        error_about(e, c->name, NULL, NULL);
        return MINK_INVALID;
    }
    return MINK_OK;
}

enum mink_code bucketing_assign(const struct table_def *d, const struct arrow_batch *b, uint32_t *out_buckets, struct error *e) {
    mink_assert(d->bucket_key_count > 0);
    struct divisor n = divisor_of(d->bucket_num);
    struct key_column columns[64];
    bool nulls = false;
    mink_assert(d->bucket_key_count <= sizeof columns / sizeof columns[0]);
    for (uint32_t i = 0; i < d->bucket_key_count; i++) {
        columns[i] = key_column_of(d, b, d->bucket_key[i]);
        nulls |= columns[i].array->null_count != 0;
        // Only Paimon's rows have a way to write them.
        if (d->bucketing != BUCKETING_PAIMON) MINK_TRY(no_nulls(&columns[i], b->row_count, e));
    }
    if (d->bucket_num == 1) {
        memset(out_buckets, 0, (size_t)b->row_count * sizeof *out_buckets);
        return MINK_OK;
    }
    if (d->bucket_key_count == 1 && !nulls && whole_numbers(d->bucketing, columns, b->row_count, n, out_buckets)) return MINK_OK;
    struct key k = {0};
    key_room(&k, 64);
    for (int64_t row = 0; row < b->row_count; row++) {
        k.size = 0;
        switch (d->bucketing) {
        case BUCKETING_NATIVE: out_buckets[row] = native_row(&k, columns, d->bucket_key_count, row, n); break;
        case BUCKETING_PAIMON: out_buckets[row] = paimon_row(&k, columns, d->bucket_key_count, row, n); break;
        case BUCKETING_ICEBERG: out_buckets[row] = iceberg_row(columns, row, n); break;
        case BUCKETING_KAFKA: out_buckets[row] = kafka_row(columns, row, n); break;
        }
    }
    mem_free(k.data);
    return MINK_OK;
}
