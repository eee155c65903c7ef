// Uncollectable objects.
#include <rt/rt.h>

#include "test/harness/kind.h"

GROUP(uncollectable, .timeout = 60);

TEST(an_uncollectable_object_lives_until_it_is_freed, .n = 2)
{
	static const size_t all[] = {
	    1, 8, 15, 16, 17, 24, 48, 1024, 5000, 8192, 32760, 100000, 5 << 20};
	rt_config c = heap_config(HEAP_QUIET);

	c.align8 = (uint32_t)_i;
	c.checkmark = 1;
	heap_start_exact(c);
	for (size_t i = 0; i < RT_ARRAY_LEN(all); i++)
		for (int kind = RT_NOSCAN; kind <= RT_WORDS; kind++) {
			void **p = rt_alloc_uncollectable(kind, all[i]);
			void *target;
			bool keeps = kind == RT_WORDS && all[i] >= 8;

			ck_assert_uint_eq((uintptr_t)p % 16, 0);
			ck_assert(heap_is_zero(p, all[i]));
			ck_assert_int_eq(rt_kind_of(p), kind);
			target = rt_alloc(32);
			if (all[i] >= 8)
				p[0] = target;
			ck_assert_uint_eq(heap_live_after_gc(), 1 + keeps);
			ck_assert_uint_eq(heap_live_after_gc(), 1 + keeps);
			ck_assert_int_eq(rt_is_heap(target), keeps);
			ck_assert_int_eq(rt_free(p), RT_OK);
			ck_assert_int_eq(rt_free(p), RT_EINVAL);
			ck_assert_uint_eq(heap_live_after_gc(), 0);
		}
	heap_healthy();
}

TEST(other_kinds_cannot_be_uncollectable)
{
	heap_begin();
	ck_assert_int_eq(kind_make(.layout = RT_LAYOUT_WORDS), RT_KIND_FIRST);
	for (int kind = -30; kind < 300; kind++)
		if (kind != RT_NOSCAN && kind != RT_WORDS)
			ck_assert_ptr_null(rt_alloc_uncollectable(kind, 64));
	ck_assert_ptr_eq(rt_alloc_uncollectable(RT_WORDS, 0), rt_alloc(0));
	ck_assert_ptr_null(rt_alloc_uncollectable(RT_WORDS, SIZE_MAX));
	// Nor can a host allocate objects of the library's own kinds.
	ck_assert_ptr_nonnull(rt_alloc_uncollectable(RT_WORDS, 64));
	for (int kind = RT_KIND_MAX + 1; kind < 40; kind++) {
		ck_assert_ptr_null(rt_alloc_kind(kind, 64));
		ck_assert_ptr_null(rt_alloc_kind(kind, 64000));
		ck_assert_uint_eq(rt_good_size_of(kind, 64), 0);
		ck_assert_int_eq(rt_kind_unregister(kind), RT_EINVAL);
	}
}

static int walked(void *obj, size_t size, int kind, void *arg)
{
	int *n = arg;

	(void)obj, (void)size;
	ck_assert(kind == RT_NOSCAN || kind == RT_WORDS);
	n[kind]++;
	return RT_OK;
}

// There are enough objects for several jobs of marking, and for helpers.
TEST(many_uncollectable_objects)
{
	enum { N = 20000 };
	static void **p[N];
	int n[2] = {0, 0};
	heap_start_exact(heap_config_checked());
	for (int i = 0; i < N; i++) {
		p[i] = rt_alloc_uncollectable(RT_WORDS, 8192);
		ck_assert_ptr_nonnull(p[i]);
		p[i][300] = rt_alloc(48);
	}
	for (int round = 0; round < 2; round++)
		ck_assert_uint_eq(heap_live_after_gc(), 2 * N);
	for (int i = 0; i < N; i += 2)
		ck_assert_int_eq(rt_free(p[i]), RT_OK);
	ck_assert_uint_eq(heap_live_after_gc(), N);
	for (int i = 1; i < N; i += 2)
		ck_assert_int_eq(rt_is_heap(p[i][300]), 1);
	rt_heap_walk(walked, n);
	ck_assert_int_eq(n[RT_WORDS], N);
	ck_assert_int_eq(n[RT_NOSCAN], 0);
	heap_healthy();
}

// A heap has no uncollectable object of the heap before it.
TEST(uncollectable_objects_end_with_the_heap)
{
	for (int i = 0; i < 3; i++) {
		heap_start_exact(heap_config(HEAP_QUIET));
		ck_assert_ptr_nonnull(rt_alloc_uncollectable(i % 2, 100));
		ck_assert_uint_eq(heap_live_after_gc(), 1);
		ck_assert_int_eq(rt_fini(), RT_OK);
	}
}

TEST(an_uncollectable_object_without_memory)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.max_heap = 64 << 20;
	heap_start(c);
	ck_assert_ptr_null(rt_alloc_uncollectable(RT_WORDS, 65 << 20));
	for (int i = 0; i < 100; i++)
		if (!rt_alloc_uncollectable(RT_NOSCAN, 1 << 20))
			break;
	ck_assert_ptr_null(rt_alloc_uncollectable(RT_NOSCAN, 1 << 20));
	heap_healthy();
}
