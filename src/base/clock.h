// SPDX-License-Identifier: Apache-2.0
// clock.h: the time of the machine. Only base and main() call these; everything else asks its shard (executor.h), so
// that the simulator decides what time it is.
#ifndef MINK_BASE_CLOCK_H
#define MINK_BASE_CLOCK_H
#include <stdint.h>
uint64_t clock_monotonic_ns(void);
int64_t clock_wall_ms(void); // since 1970-01-01 UTC
uint64_t clock_process_cpu_ns(void); // user + system time of this process
#endif
