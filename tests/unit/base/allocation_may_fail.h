// SPDX-License-Identifier: Apache-2.0
// Include it in a test that asks for more memory than there is: sanitizers then return NULL, as malloc does, instead of ending the test.
#ifndef MINK_TESTS_ALLOCATION_MAY_FAIL_H
#define MINK_TESTS_ALLOCATION_MAY_FAIL_H
const char *__asan_default_options(void);
const char *__tsan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }
const char *__tsan_default_options(void) { return "allocator_may_return_null=1"; }
#endif
