// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/executor.h"
#include "base/slice.h"
#include "unit/base/allocation_may_fail.h"

#include <string.h>

static void count_release(void *ctx) { atomic_fetch_add((atomic_int *)ctx, 1); }

static void new_bytes_are_aligned(void **state) {
    for (size_t size = 0; size < 300; size++) {
        uint8_t *data;
        struct slice s = slice_new(size, &data);
        assert_ptr_equal(s.data, data);
        assert_int_equal(s.size, size);
        assert_int_equal((uintptr_t)data % SLICE_ALIGN, 0);
        memset(data, 0x5a, size); // the whole of it is ours
        slice_unref(&s);
        assert_null(s.data);
        assert_null(s.owner);
        assert_int_equal(s.size, 0);
    }
}

static void a_size_nobody_has_fails(void **state) {
    uint8_t *data = (uint8_t *)1;
    struct slice s = slice_try_new(SIZE_MAX - 10, &data);
    assert_null(data);
    assert_int_equal(s.size, 0);
    s = slice_try_new(SIZE_MAX / 4, &data);
    assert_null(data);
    slice_unref(&s);
}

static void the_last_reference_releases_once(void **state) {
    static const char bytes[] = "abcdef";
    atomic_int released = 0;
    struct slice s = slice_foreign(bytes, 6, count_release, &released), other = slice_ref(s), part = slice_sub(s, 2, 3);
    assert_memory_equal(part.data, "cde", 3);
    slice_unref(&s);
    slice_unref(&other);
    assert_int_equal(released, 0);
    assert_memory_equal(part.data, "cde", 3);
    slice_unref(&part);
    assert_int_equal(released, 1);
    slice_unref(&part); // empty by now
    assert_int_equal(released, 1);
}

static void a_view_holds_no_reference(void **state) {
    atomic_int released = 0;
    struct slice s = slice_foreign("abcdef", 6, count_release, &released), v = slice_view(s, 1, 2);
    assert_memory_equal(v.data, "bc", 2);
    assert_null(v.owner);
    slice_unref(&v);
    slice_unref(&s);
    assert_int_equal(released, 1);
}

static void borrowed_and_empty_slices_have_no_owner(void **state) {
    struct slice s = slice_borrow("xy", 2), t = slice_ref(s), e = slice_empty(), f = slice_sub(e, 0, 0);
    assert_ptr_equal(s.data, t.data);
    slice_unref(&s);
    slice_unref(&t);
    slice_unref(&e);
    slice_unref(&f);
    assert_null(f.data);
}

static void a_copy_is_its_own(void **state) {
    char bytes[] = "abc";
    struct slice s = slice_copy(bytes, 3);
    bytes[0] = 'z';
    assert_memory_equal(s.data, "abc", 3);
    slice_unref(&s);
}

static void a_list_owns_its_slices_and_joins_them(void **state) {
    atomic_int released = 0;
    struct slices list = {0};
    struct slice joined = slices_join(&list);
    assert_int_equal(joined.size, 0);
    slices_take(&list, slice_foreign("abc", 3, count_release, &released));
    joined = slices_join(&list);
    assert_ptr_equal(joined.data, list.items[0].data); // one slice: no copy
    slice_unref(&joined);
    for (int i = 0; i < 9; i++) slices_take(&list, slice_foreign("de", 2, count_release, &released));
    slices_take(&list, slice_empty());
    assert_int_equal(list.count, 11);
    assert_int_equal(list.bytes, 21);
    joined = slices_join(&list);
    assert_int_equal(joined.size, 21);
    assert_memory_equal(joined.data, "abcdededededededede", 19);
    slices_deinit(&list);
    assert_int_equal(released, 10);
    assert_int_equal(list.count, 0);
    assert_memory_equal(joined.data, "abcde", 5);
    slice_unref(&joined);
    slices_take(&list, slice_borrow("x", 1)); // usable again
    assert_int_equal(list.bytes, 1);
    slices_deinit(&list);
}

struct sharing { struct slice s; int rounds; };

static void share(void *ctx) {
    struct sharing *x = ctx;
    for (int i = 0; i < x->rounds; i++) {
        struct slice mine = slice_ref(x->s);
        slice_unref(&mine);
    }
    slice_unref(&x->s);
}

static void references_are_counted_across_threads(void **state) {
    atomic_int released = 0;
    struct slice s = slice_foreign("abc", 3, count_release, &released);
    struct sharing x[4];
    struct thread *threads[4];
    for (int i = 0; i < 4; i++) {
        x[i] = (struct sharing){slice_ref(s), 20000};
        threads[i] = thread_start("share", share, &x[i]);
    }
    slice_unref(&s);
    for (int i = 0; i < 4; i++) thread_join(threads[i]);
    assert_int_equal(released, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_bytes_are_aligned),
        cmocka_unit_test(a_size_nobody_has_fails),
        cmocka_unit_test(the_last_reference_releases_once),
        cmocka_unit_test(a_view_holds_no_reference),
        cmocka_unit_test(borrowed_and_empty_slices_have_no_owner),
        cmocka_unit_test(a_copy_is_its_own),
        cmocka_unit_test(a_list_owns_its_slices_and_joins_them),
        cmocka_unit_test(references_are_counted_across_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
