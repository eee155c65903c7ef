// Objects that become larger or smaller.
#include <rt/rt.h>

#include <errno.h>
#include <string.h>

#include "runtime/base/base.h"
#include "runtime/os/gauge.h"
#include "runtime/spans/guard.h"
#include "test/harness/fault.h"
#include "test/harness/heap.h"
#include "test/harness/thread.h"

// Around the borders of classes, of small and large objects, and of pages.
static const size_t sizes[] = {
    1,	  8,	15,    16,    17,    24,    32,	   33,	  48,	  100,	  1024,
    1025, 8192, 20000, 32760, 32761, 40960, 40961, 70000, 200000, 1 << 20};

// fill writes a pattern in which no word refers to an object.
static void fill(unsigned char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (unsigned char)(i * 7 + 1);
}

static bool is_filled(const unsigned char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != (unsigned char)(i * 7 + 1))
			return false;
	return true;
}

GROUP(moves, .timeout = 120);

// Every size becomes every other one.
static void check_all(int kind)
{
	for (size_t i = 0; i < RT_ARRAY_LEN(sizes); i++)
		for (size_t j = 0; j < RT_ARRAY_LEN(sizes); j++) {
			size_t common = base_min(sizes[i], sizes[j]);
			unsigned char *p = rt_alloc_kind(kind, sizes[i]), *q;
			size_t old = rt_size(p);

			fill(p, sizes[i]);
			q = rt_realloc(kind, p, sizes[j]);
			ck_assert_ptr_nonnull(q);
			ck_assert(is_filled(q, common));
			ck_assert_uint_ge(rt_size(q), sizes[j]);
			if (rt_size(q) > old && old > 16)
				ck_assert(
				    heap_is_zero(q + old, rt_size(q) - old));
			ck_assert_int_eq(rt_kind_of(q), kind);
			if (q != p && old > 16)
				ck_assert_int_eq(rt_free(p), RT_EINVAL);
			if (sizes[j] > 16)
				ck_assert_int_eq(rt_free(q), RT_OK);
		}
}

TEST(every_size_becomes_every_other, .n = 4)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.align8 = _i == 1;
	c.guard_small = c.guard_large = _i == 2;
	c.gcstress = _i == 3 ? 5 : 0;
	c.checkmark = _i == 3;
	heap_start(c);
	check_all(RT_NOSCAN);
	check_all(RT_WORDS);
	heap_healthy();
}

TEST(the_size_class_decides_which_objects_move)
{
	char *p, *q;

	heap_begin();
	p = rt_alloc(100);
	ck_assert_ptr_eq(rt_realloc(RT_WORDS, p, 112), p);
	ck_assert_ptr_eq(rt_realloc(RT_WORDS, p, 97), p);
	q = rt_realloc(RT_WORDS, p, 96);
	ck_assert_ptr_ne(p, q);
	ck_assert_uint_eq(rt_size(q), 96);
	p = rt_realloc(RT_WORDS, q, 113);
	ck_assert_ptr_ne(p, q);
	ck_assert_uint_eq(rt_size(p), 128);
}

// The place of the guard depends on the bytes requested, not on a size class.
TEST(a_guarded_object_moves_unless_it_keeps_its_size, .n = 2)
{
	rt_config c = heap_config(HEAP_QUIET);
	char *p, *q;
	size_t n;

	c.guard_small = c.guard_large = 1;
	heap_start(c);
	p = rt_alloc(_i == 0 ? 400 : 100000);
	n = rt_size(p);
	ck_assert_ptr_eq(rt_realloc(RT_WORDS, p, n), p);
	q = rt_realloc(RT_WORDS, p, n - 16);
	ck_assert_ptr_ne(q, p);
	ck_assert_uint_eq(rt_size(q), n - 16);
	p = rt_realloc(RT_WORDS, q, n);
	ck_assert_ptr_ne(p, q);
	ck_assert_uint_eq(rt_size(p), n);
	heap_healthy();
}

TEST(nothing_and_no_bytes)
{
	void *p;

	heap_begin();
	p = rt_realloc(RT_WORDS, NULL, 50);
	ck_assert_int_eq(rt_kind_of(p), RT_WORDS);
	ck_assert_ptr_null(rt_realloc(RT_WORDS, p, 0));
	ck_assert_int_eq(rt_free(p), RT_EINVAL);
	ck_assert_ptr_nonnull(rt_realloc(RT_NOSCAN, rt_alloc(0), 50));
	ck_assert_ptr_eq(rt_realloc(RT_NOSCAN, NULL, 0), rt_alloc(0));
	ck_assert_ptr_null(rt_realloc(RT_TYPED, NULL, 50));
	p = rt_alloc(50);
	ck_assert_ptr_null(rt_realloc(RT_NOSCAN, p, 100));
	ck_assert_ptr_null(rt_realloc(RT_NOSCAN, p, 0));
	ck_assert_ptr_null(rt_realloc(RT_WORDS, (char *)p + 8, 100));
	ck_assert_int_eq(rt_free(p), RT_OK);
	heap_healthy();
}

TEST(an_uncollectable_object_stays_so)
{
	void **p;

	heap_start_exact(heap_config(HEAP_QUIET));
	p = rt_alloc_uncollectable(RT_WORDS, 8);
	for (size_t n = 8; n < 300000; n = n * 3 / 2) {
		p = rt_realloc(RT_WORDS, p, n);
		p[0] = rt_alloc(32);
		ck_assert_uint_eq(heap_live_after_gc(), 2);
	}
	ck_assert_int_eq(rt_free(p), RT_OK);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

// Small requests share a slot, which other threads may be writing to.
TEST(shared_objects_always_move)
{
	static unsigned char *p[500];

	heap_begin();
	ck_assert_int_eq(rt_roots_add(p, p + RT_ARRAY_LEN(p), 0), RT_OK);
	for (int i = 0; i < 500; i++) {
		p[i] = rt_alloc_noscan((size_t)(1 + i % 5));
		fill(p[i], (size_t)(1 + i % 5));
		ck_assert_int_eq(rt_resize(p[i], 1), RT_ENOMEM);
	}
	for (int i = 0; i < 500; i += 2)
		p[i] = rt_realloc(RT_NOSCAN, p[i], (size_t)(6 + i % 60));
	for (int i = 0; i < 500; i++)
		ck_assert(is_filled(p[i], (size_t)(1 + i % 5)));
	heap_healthy();
}

TEST(a_move_without_memory_changes_nothing)
{
	rt_config c = heap_config(HEAP_QUIET);
	unsigned char *p;

	c.max_heap = 64 << 20;
	heap_start(c);
	p = rt_alloc(40 << 20);
	fill(p, 5000);
	ck_assert_ptr_nonnull(rt_alloc(16)); // perhaps behind p
	ck_assert_ptr_null(rt_realloc(RT_WORDS, p, 70 << 20));
	ck_assert_ptr_null(rt_realloc(RT_WORDS, p, SIZE_MAX));
	ck_assert_int_eq(rt_resize(p, 65 << 20), RT_ENOMEM);
	ck_assert_int_eq(rt_resize(p, SIZE_MAX), RT_ENOMEM);
	ck_assert(is_filled(p, 5000));
	ck_assert_uint_eq(rt_size(p), 40 << 20);
	// An object that shrinks needs no memory.
	ck_assert_ptr_eq(rt_realloc(RT_WORDS, p, 33 << 20), p);
	heap_healthy();
}

TEST(shrinking_needs_no_memory, .n = 2)
{
	unsigned char *p;

	heap_begin();
	p = rt_alloc(_i ? 50000 : 1000);
	fill(p, 1000);
	for (int kind = 0; kind < 3; kind++) {
		static const enum oscall refused[] = {OSCALL_MAP, OSCALL_COMMIT,
						      OSCALL_RESERVE};

		fault_fail(refused[kind], 1, UINT64_MAX, ENOMEM);
	}
	for (size_t n = 999; n > 20; n = n * 7 / 8) {
		p = rt_realloc(RT_WORDS, p, n);
		ck_assert_ptr_nonnull(p);
		ck_assert(is_filled(p, n));
	}
	fault_fail(OSCALL_MAP, 1, 0, 0);
	fault_fail(OSCALL_COMMIT, 1, 0, 0);
	fault_fail(OSCALL_RESERVE, 1, 0, 0);
	heap_healthy();
}

// An object that becomes smaller stays where it is if there is no room for
// another one.
TEST(shrinking_needs_no_room)
{
	rt_config c = heap_config(HEAP_QUIET);
	void **list = NULL, **next;
	unsigned char *p;

	c.max_heap = 64 << 20;
	heap_start(c);
	p = rt_alloc(1000);
	fill(p, 1000);
	for (size_t n = 1 << 20; n >= 8192; n /= 2)
		while ((next = rt_alloc(n)) != NULL) {
			*next = list;
			list = next;
		}
	ck_assert_ptr_eq(rt_realloc(RT_WORDS, p, 100), p);
	ck_assert(is_filled(p, 100));
	ck_assert_uint_eq(rt_size(p), 1024);
	ck_assert_ptr_null(rt_realloc(RT_WORDS, p, 2000));
	ck_assert(is_filled(p, 100));
	ck_assert_ptr_nonnull(list);
	heap_healthy();
}

GROUP(in_place, .timeout = 60);

TEST(a_large_object_grows_into_free_pages)
{
	rt_memstats before, after;
	char *p, *q;

	heap_begin();
	p = rt_alloc(100000);
	q = rt_alloc(100000);
	if (q < p) {
		char *t = p;

		p = q;
		q = t;
	}
	ck_assert_int_eq(rt_resize(p, 1 << 20), RT_ENOMEM);
	memset(q, 0xff, 100000);
	ck_assert_int_eq(rt_free(q), RT_OK);
	before = heap_healthy();
	ck_assert_int_eq(rt_resize(p, 200000), RT_OK);
	ck_assert_uint_eq(rt_size(p), 25 * 8192);
	ck_assert(heap_is_zero(p, 25 * 8192));
	after = heap_healthy();
	ck_assert_uint_eq(after.mallocs, before.mallocs);
	ck_assert_uint_eq(after.frees, before.frees);
	ck_assert_uint_eq(after.total_alloc - before.total_alloc, 12 * 8192);
	ck_assert_uint_eq(after.heap_inuse - before.heap_inuse, 12 * 8192);
	ck_assert_uint_eq(rt_size(p + 24 * 8192), rt_size(p));
}

TEST(a_large_object_shrinks_by_pages)
{
	rt_memstats before, after;
	char *p;

	heap_begin();
	p = rt_alloc(200000);
	memset(p, 1, 200000);
	before = heap_healthy();
	for (size_t n = 200000; n > 1; n = n * 5 / 6) {
		ck_assert_int_eq(rt_resize(p, n), RT_OK);
		ck_assert_uint_eq(rt_size(p), base_pages(n) * 8192);
		ck_assert_int_eq(p[n - 1], 1);
	}
	after = heap_healthy();
	ck_assert_uint_eq(after.mallocs, before.mallocs);
	ck_assert_uint_eq(after.frees, before.frees);
	ck_assert_uint_eq(after.total_alloc, before.total_alloc);
	ck_assert_uint_eq(before.heap_alloc - after.heap_alloc, 24 * 8192);
	ck_assert_uint_eq(before.heap_inuse - after.heap_inuse, 24 * 8192);
	ck_assert_int_eq(rt_is_heap(p + 8192), 0);
	ck_assert_int_eq(rt_resize(p, 8192), RT_OK);
	ck_assert_int_eq(rt_free(p), RT_OK);
	heap_healthy();
}

// Pages that the system refuses to unprotect stay free and protected, and the
// next thread that takes them unprotects them.
TEST(pages_that_stay_protected_are_not_taken)
{
	rt_config c = heap_config(HEAP_QUIET);
	char *p, *guarded[20];
	uint64_t mappings;
	uint32_t guards;

	c.guard_small = 1;
	heap_start(c);
	p = rt_alloc_noscan(40000);
	for (unsigned i = 0; i < RT_ARRAY_LEN(guarded); i++)
		guarded[i] = rt_alloc_noscan(8000);
	for (unsigned i = 0; i < RT_ARRAY_LEN(guarded); i++)
		ck_assert_int_eq(rt_free(guarded[i]), RT_OK);
	guards = guard_count();
	mappings = gauge_load(&gauges.mappings);
	fault_fail(OSCALL_COMMIT, 1, 1, ENOMEM);
	ck_assert_int_eq(rt_resize(p, 60000), RT_ENOMEM);
	ck_assert_uint_eq(fault_failed(OSCALL_COMMIT), 1);
	ck_assert_uint_eq(guard_count(), guards);
	ck_assert_uint_eq(gauge_load(&gauges.mappings), mappings);
	heap_healthy();
	for (unsigned i = 0; i < 10; i++)
		memset(rt_alloc_noscan(40000), 1, 40000);
	ck_assert_uint_lt(guard_count(), guards);
	heap_healthy();
}

// The collector scans as many bytes of a large object as were requested last.
TEST(what_is_scanned_follows_the_size)
{
	static void **root[1];

	heap_start_exact(heap_config(HEAP_QUIET));
	ck_assert_int_eq(rt_roots_add(root, root + 1, 0), RT_OK);
	root[0] = rt_alloc(40000);
	ck_assert_int_eq(rt_resize(root[0], 40960), RT_OK);
	root[0][5119] = rt_alloc(32);
	ck_assert_uint_eq(heap_live_after_gc(), 2);
	ck_assert_int_eq(rt_resize(root[0], 40000), RT_OK);
	ck_assert_uint_eq(heap_live_after_gc(), 1);
}

TEST(small_objects_have_the_room_of_their_class)
{
	char *p;

	heap_begin();
	p = rt_alloc(100);
	ck_assert_int_eq(rt_resize(p, 112), RT_OK);
	ck_assert_int_eq(rt_resize(p, 1), RT_OK);
	ck_assert_int_eq(rt_resize(p, 113), RT_ENOMEM);
	ck_assert_int_eq(rt_resize(p, 0), RT_EINVAL);
	ck_assert_int_eq(rt_resize(p + 8, 8), RT_EINVAL);
	ck_assert_int_eq(rt_resize(NULL, 8), RT_EINVAL);
	ck_assert_uint_eq(rt_size(p), 112);
}

// A typed object cannot be resized, because only its type says which words of a
// larger object would be references.
TEST(typed_objects_keep_their_size)
{
	static const rt_type bytes = {.struct_size = sizeof(rt_type),
				      .size = 64};

	heap_begin();
	for (size_t count = 1; count < 2000; count += 1500) {
		void *p = rt_alloc_typed(&bytes, count);

		ck_assert_ptr_nonnull(p);
		ck_assert_ptr_null(rt_realloc(RT_TYPED, p, 100));
		ck_assert_ptr_null(rt_realloc(RT_WORDS, p, 100));
		ck_assert_int_eq(rt_resize(p, 64), RT_EINVAL);
		ck_assert_int_eq(rt_kind_of(p), RT_TYPED);
	}
	ck_assert_ptr_null(rt_realloc(RT_TYPED, NULL, 64));
	heap_healthy();
}

// Vectors that grow and shrink beside each other keep their contents.
TEST(random_vectors)
{
	enum { N = 40 };
	static unsigned char *p[N];
	static size_t n[N];
	rt_config c = heap_config(50);
	struct rng r;

	rng_init(&r, "random_vectors");
	c.clobberfree = rng_below(&r, 2) == 0;
	heap_start(c);
	ck_assert_int_eq(rt_roots_add(p, p + N, 0), RT_OK);
	for (int i = 0; i < 20000 / HEAP_CUT; i++) {
		size_t at = rng_below(&r, N);
		size_t to =
		    17 + (rng_next(&r) & 0x3ffff) / (1 + rng_below(&r, 1000));

		if (rng_below(&r, 2) == 0 || !p[at]) {
			p[at] = rt_realloc(RT_NOSCAN, p[at], to);
			ck_assert_ptr_nonnull(p[at]);
		} else if (rt_resize(p[at], to) != RT_OK) {
			ck_assert_uint_gt(to, n[at]);
			continue;
		}
		ck_assert(is_filled(p[at], base_min(to, n[at])));
		fill(p[at], to);
		n[at] = to;
		if (i % 1000 == 0)
			heap_healthy();
	}
	heap_healthy();
}

static struct {
	char *p;
	atomic_u32 asking; // 1: the other thread is asking
} resized;

// ask_much asks about an object that is there all the time.
static void *ask_much(void *arg)
{
	(void)arg;
	for (int i = 0; i < 300000 / HEAP_CUT; i++) {
		ck_assert_int_eq(rt_is_heap(resized.p), 1);
		ck_assert_uint_eq(rt_size(resized.p), 13 * 8192);
		ck_assert_ptr_eq(rt_base(resized.p + 99999), resized.p);
		ck_assert_int_eq(rt_kind_of(resized.p), RT_NOSCAN);
	}
	atomic_u32_store_release(&resized.asking, 0);
	return NULL;
}

TEST(a_large_object_is_found_while_its_owner_resizes_it)
{
	pthread_t t;

	heap_begin();
	resized.p = rt_alloc_noscan(100000);
	ck_assert_ptr_nonnull(resized.p);
	atomic_u32_store_relaxed(&resized.asking, 1);
	t = start_thread(ask_much, NULL);
	for (size_t i = 0; atomic_u32_load_acquire(&resized.asking); i++) {
		size_t n = i % 2 ? 100000 : 100064;

		ck_assert_int_eq(rt_resize(resized.p, n), RT_OK);
	}
	join_thread(t);
	heap_healthy();
}
