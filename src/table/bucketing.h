// SPDX-License-Identifier: Apache-2.0
// bucketing.h: which bucket a row belongs to, by the table's bucketing function. Equal to Fluss, Paimon, Iceberg and Kafka respectively.
#ifndef MINK_TABLE_BUCKETING_H
#define MINK_TABLE_BUCKETING_H
#include "arrow/array.h"
#include "table/table_def.h"
// For each row of a normalised batch (columns in table order): out_buckets[row] in [0, bucket_num).
enum mink_code bucketing_assign(const struct table_def *d, const struct arrow_batch *b, uint32_t *out_buckets, struct error *e) MINK_MUST_CHECK;
// The parts, for vectors from the reference implementations.
uint32_t murmur3_flink(const void *data, size_t size, uint32_t seed);    // Flink's and Fluss's variant (tail bytes one at a time)
uint32_t murmur3_x86_32(const void *data, size_t size, uint32_t seed);   // the standard
uint32_t murmur2_kafka(const void *data, size_t size);
#endif
