// More ways to allocate: arrays, copies, alignments, many at once.
#include <rt/rt.h>

#include <string.h>

#include "runtime/base/base.h"
#include "test/harness/kind.h"

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

// Each copy is made from the previous copy, to which only the argument refers.
// A collection runs at each allocation.
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

GROUP(aligned, .timeout = 120);

TEST(every_alignment_of_every_size, .n = 3)
{
	rt_config c = heap_config(HEAP_QUIET);
	int kind[3] = {RT_NOSCAN, RT_WORDS, 0};

	c.align8 = _i == 1;
	c.guard_small = c.guard_large = _i == 2;
	heap_start(c);
	kind[2] =
	    kind_make(.layout = RT_LAYOUT_WORDS, .number = RT_KIND_ANY_ALIGN8);
	for (size_t align = 8; align <= 2 << 20; align *= 2)
		for (size_t n = 1; n < 3 << 20; n = n * 5 / 2 + 3)
			for (int k = 0; k < 3; k++) {
				char *p = rt_alloc_aligned(kind[k], align, n);

				ck_assert_ptr_nonnull(p);
				ck_assert_uint_eq((uintptr_t)p % align, 0);
				ck_assert_uint_ge(rt_size(p), n);
				ck_assert(heap_is_zero(p, n));
				ck_assert_int_eq(rt_kind_of(p), kind[k]);
				memset(p, 0xff, n);
				if (n > 16)
					ck_assert_int_eq(rt_free(p), RT_OK);
			}
	heap_healthy();
}

TEST(other_alignments_are_refused)
{
	static const size_t bad[] = {0,
				     1,
				     2,
				     4,
				     7,
				     12,
				     24,
				     100,
				     4u << 20,
				     SIZE_MAX,
				     3,
				     (2 << 20) + 8,
				     SIZE_MAX / 2 + 1};

	heap_begin();
	for (size_t i = 0; i < RT_ARRAY_LEN(bad); i++)
		ck_assert_ptr_null(rt_alloc_aligned(RT_WORDS, bad[i], 64));
	ck_assert_ptr_null(rt_alloc_aligned(RT_TYPED, 64, 64));
	ck_assert_ptr_null(rt_alloc_aligned(RT_KIND_MAX + 1, 64, 64));
	ck_assert_ptr_eq(rt_alloc_aligned(RT_WORDS, 64, 0), rt_alloc(0));
}

// An alignment takes no pages beside those of the object.
TEST(pages_are_not_wasted_for_an_alignment)
{
	rt_config c = heap_config(HEAP_QUIET);
	rt_memstats before, after;
	static void *root[60];

	c.max_heap = 64 << 20;
	heap_start(c);
	ck_assert_int_eq(rt_roots_add(root, root + 60, 0), RT_OK);
	// The first page is taken for as long as the heap lives.
	ck_assert_ptr_nonnull(rt_alloc_uncollectable(RT_WORDS, 8000));
	before = heap_healthy();
	ck_assert_ptr_nonnull(rt_alloc_aligned(RT_NOSCAN, 65536, 100));
	after = heap_healthy();
	ck_assert_uint_eq(after.heap_inuse - before.heap_inuse, 8192);
	ck_assert_uint_eq(after.total_alloc - before.total_alloc, 8192);
	// There are 32 places with this alignment, one of them taken.
	for (int i = 0; i < 31; i++) {
		root[i] = rt_alloc_aligned(RT_NOSCAN, 2 << 20, 1 << 20);
		ck_assert_ptr_nonnull(root[i]);
	}
	ck_assert_ptr_null(rt_alloc_aligned(RT_NOSCAN, 2 << 20, 1 << 20));
	// Between these objects there is room for others.
	for (int i = 31; i < 60; i++) {
		root[i] = rt_alloc_aligned(RT_NOSCAN, 1 << 20, 1 << 20);
		ck_assert_ptr_nonnull(root[i]);
	}
	heap_healthy();
}

GROUP(many, .timeout = 60);

TEST(many_objects_at_once)
{
	static const size_t all[] = {1, 3, 8, 16, 24, 48, 1024, 5000, 32760};
	static void *out[3000];
	rt_memstats before, after;

	heap_begin();
	ck_assert_int_eq(rt_roots_add(out, out + 3000, 0), RT_OK);
	for (size_t i = 0; i < RT_ARRAY_LEN(all); i++)
		for (int kind = RT_NOSCAN; kind <= RT_WORDS; kind++) {
			before = heap_healthy();
			ck_assert_uint_eq(
			    rt_alloc_many(kind, all[i], 3000, out), 3000);
			after = heap_healthy();
			ck_assert_uint_eq(after.mallocs - before.mallocs, 3000);
			for (int j = 0; j < 3000; j++)
				ck_assert(heap_is_zero(out[j], all[i]));
			for (int j = 0; j < 3000; j++)
				memset(out[j], j, all[i]);
			for (int j = 0; j < 3000; j++)
				ck_assert_int_eq(*(unsigned char *)out[j],
						 j & 255);
			memset(out, 0, sizeof out);
		}
	ck_assert_uint_eq(rt_alloc_many(RT_WORDS, 64, 0, out), 0);
	ck_assert_uint_eq(rt_alloc_many(RT_WORDS, 0, 5, out), 5);
	ck_assert_ptr_eq(out[4], rt_alloc(0));
	ck_assert_uint_eq(rt_alloc_many(RT_WORDS, 40000, 5, out), 1);
}

// No collection runs between the objects of one call, because no root refers to
// them yet.  If a collection is due, the call returns fewer objects.
TEST(a_collection_that_is_due_ends_the_row)
{
	enum { N = 100000 };
	static void *out[N];
	rt_config c = heap_config(100);
	size_t got = 0;
	uint64_t calls = 0;

	c.clobberfree = 1;
	heap_start_exact(c);
	while (got < N) {
		void *some[1000];
		size_t want = base_min(1000, N - got);
		size_t n = rt_alloc_many(RT_NOSCAN, 200, want, some);

		ck_assert_uint_gt(n, 0);
		for (size_t i = 0; i < n; i++)
			ck_assert(heap_is_zero(some[i], 200));
		memcpy(out + got, some, n * sizeof *some);
		got += n;
		calls++;
	}
	ck_assert_uint_ge(heap_stats().num_gc, 2);
	ck_assert_uint_gt(calls, N / 1000);
}

TEST(many_without_memory)
{
	static void *out[5000];
	rt_config c = heap_config(HEAP_QUIET);
	size_t n;

	c.max_heap = 64 << 20;
	heap_start(c);
	ck_assert_int_eq(rt_roots_add(out, out + 5000, 0), RT_OK);
	n = rt_alloc_many(RT_WORDS, 30000, 5000, out);
	ck_assert_uint_gt(n, 1000);
	ck_assert_uint_lt(n, 5000);
	ck_assert_uint_eq(rt_alloc_many(RT_WORDS, 30000, 5, out + n), 0);
	heap_healthy();
}
