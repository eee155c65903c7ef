// More ways to allocate: arrays, copies.
#include <rt/rt.h>

#include <string.h>

#include "runtime/base/base.h"
#include "test/harness/heap.h"

GROUP(arrays, .timeout = 60);

TEST(an_array_has_its_head_and_all_elements)
{
	heap_begin();
	for (size_t head = 0; head < 40; head += 8)
		for (size_t count = 0; count < 2000; count += 199) {
			char *p = rt_alloc_array(RT_WORDS, head, count, 24);
			size_t n = head + count * 24;

			ck_assert_ptr_nonnull(p);
			ck_assert(heap_is_zero(p, n));
			ck_assert_uint_eq(rt_size(p), rt_good_size(n));
			ck_assert_int_eq(rt_kind_of(p),
					 n ? RT_WORDS : RT_ENOENT);
		}
	heap_healthy();
}

TEST(an_array_that_no_size_describes_is_refused)
{
	static const struct {
		size_t head, count, size;
	} rows[] = {
	    {0, (size_t)1 << 32, (size_t)1 << 32},
	    {0, SIZE_MAX / 8 + 1, 8},
	    {0, 8, SIZE_MAX / 8 + 1},
	    {SIZE_MAX, 1, 1},
	    {17, SIZE_MAX / 16, 16},
	    {SIZE_MAX - 7, 1, 8},
	    {0, SIZE_MAX, 1},
	};
	rt_memstats before, after;

	heap_begin();
	before = heap_stats();
	for (size_t i = 0; i < RT_ARRAY_LEN(rows); i++)
		ck_assert_ptr_null(rt_alloc_array(RT_NOSCAN, rows[i].head,
						  rows[i].count, rows[i].size));
	ck_assert_ptr_null(rt_alloc_array(RT_TYPED, 0, 1, 8));
	ck_assert_ptr_null(rt_alloc_array(-1, 0, 1, 8));
	after = heap_stats();
	ck_assert_uint_eq(after.mallocs, before.mallocs);
	ck_assert_uint_eq(after.num_gc, before.num_gc);
	// Nothing overflows here, although one factor is the largest.
	ck_assert_ptr_nonnull(rt_alloc_array(RT_NOSCAN, 16, SIZE_MAX, 0));
	ck_assert_ptr_nonnull(rt_alloc_array(RT_NOSCAN, 16, 0, SIZE_MAX));
}

TEST(a_copy_has_no_references)
{
	char bytes[5000];

	heap_begin();
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (char)i;
	for (size_t n = 0; n <= sizeof bytes; n = n * 2 + 1) {
		char *p = rt_memdup(bytes, n);

		ck_assert_ptr_nonnull(p);
		ck_assert(memcmp(p, bytes, n) == 0);
		ck_assert_int_eq(rt_kind_of(p), n ? RT_NOSCAN : RT_ENOENT);
	}
	ck_assert_ptr_null(rt_memdup(NULL, 1));
	ck_assert_ptr_nonnull(rt_memdup(NULL, 0));
	ck_assert_ptr_null(rt_memdup(bytes, SIZE_MAX));
	heap_healthy();
}

// Each copy is made from the one before, which a collection may free next.
TEST(a_copy_of_an_object_that_has_no_other_reference)
{
	rt_config c = heap_config(HEAP_QUIET);
	char *s;

	c.gcstress = 1;
	c.clobberfree = 1;
	heap_start(c);
	s = rt_strdup("a string of this host's");
	for (int i = 0; i < 100 / HEAP_CUT; i++)
		s = rt_strdup(s);
	ck_assert_str_eq(s, "a string of this host's");
	ck_assert_str_eq(rt_strdup(""), "");
	ck_assert_ptr_null(rt_strdup(NULL));
}
