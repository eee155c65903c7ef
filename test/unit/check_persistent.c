// Permanent memory: what it counts, maps and refuses; and fixalloc.
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/os/fixalloc.h"
#include "runtime/os/oscall.h"
#include "test/harness/death.h"
#include "test/harness/fault.h"
#include "test/harness/suite.h"
#include "test/harness/thread.h"

enum { THREADS = 4, ALLOCS = 2000, LARGE = 64 << 10 };

static atomic_u64 *const stat = &gauges.mspan_sys;

static uint64_t in_stat(void)
{
	return gauge_load(stat);
}

static uint64_t in_other(void)
{
	return gauge_load(&gauges.other_sys);
}

static uint64_t in_ready(void)
{
	return gauge_load(&gauges.mapped_ready);
}

// refuse makes the next n calls for memory fail.
static void refuse(uint64_t n)
{
	fault_fail(OSCALL_COMMIT, 1, n, ENOMEM);
}

static bool is_zero(const char *p, size_t n)
{
	size_t i = 0;

	while (i < n && p[i] == 0)
		i++;
	return i == n;
}

static bool is_mapped(void *p)
{
	void *first = (void *)base_align_down((uintptr_t)p, 4096);

	return oscall_dump(first, 4096, true) == 0;
}

// ---- persistent ----

GROUP(persistent, .timeout = 60);

TEST(memory_is_other_until_it_is_carved)
{
	char *a = persistent_alloc(1000, 8, stat);
	ck_assert_ptr_nonnull(a);
	ck_assert_uint_eq(in_ready(), PERSISTENT_STEP_MIN);
	ck_assert_uint_eq(in_stat(), 1000);
	ck_assert_uint_eq(in_other(), PERSISTENT_STEP_MIN - 1000);

	char *b = persistent_alloc(24, 8, &gauges.other_sys);
	ck_assert_ptr_eq(b, a + 1000);
	ck_assert_uint_eq(in_stat(), 1000);
	ck_assert_uint_eq(in_other(), PERSISTENT_STEP_MIN - 1000);
	ck_assert_uint_eq(in_ready(), PERSISTENT_STEP_MIN);
}

TEST(memory_is_zero_aligned_and_apart)
{
	enum { NBLOCKS = 3000 };
	static struct {
		unsigned char *p;
		size_t n;
	} blocks[NBLOCKS];
	uint64_t wrong = 0;
	struct rng r;

	rng_init(&r, "memory_is_zero_aligned_and_apart");
	for (size_t i = 0; i < NBLOCKS; i++) {
		size_t align = (size_t)1 << rng_below(&r, 13);
		size_t n = 1 + rng_below(&r, rng_below(&r, 100) ? 300 : 80000);
		unsigned char *p = persistent_alloc(n, align, stat);

		ck_assert_ptr_nonnull(p);
		wrong += (uintptr_t)p % align != 0;
		wrong += !is_zero((char *)p, n);
		memset(p, (int)(i % 255 + 1), n);
		blocks[i].p = p;
		blocks[i].n = n;
	}
	for (size_t i = 0; i < NBLOCKS; i++)
		for (size_t k = 0; k < blocks[i].n; k++)
			wrong += blocks[i].p[k] != i % 255 + 1;
	ck_assert_uint_eq(wrong, 0);
	ck_assert_uint_eq(in_stat() + in_other(), in_ready());
	persistent_fini();
	for (size_t i = 0; i < NBLOCKS; i++)
		wrong += is_mapped(blocks[i].p);
	ck_assert_uint_eq(wrong, 0);
}

// A size that is more than a step, and one that is more than a region.
TEST(large_sizes_are_carved_too)
{
	enum { MUCH = PERSISTENT_STEP_MIN + 1 };
	uint64_t mappings;

	sysmem_init();
	ck_assert_ptr_nonnull(persistent_alloc(8, 8, stat));
	mappings = gauge_load(&gauges.mappings);
	char *p = persistent_alloc(MUCH, 4096, stat);
	ck_assert_ptr_nonnull(p);
	ck_assert_uint_eq((uintptr_t)p % 4096, 0);
	ck_assert_uint_eq(in_stat(), 8 + MUCH);
	ck_assert_uint_eq(gauge_load(&gauges.mappings), mappings);

	p = persistent_alloc(PERSISTENT_REGION, 4096, stat);
	ck_assert_ptr_nonnull(p);
	memset(p, 1, PERSISTENT_REGION);
	ck_assert_uint_eq(gauge_load(&gauges.mappings), 2 * mappings);
	ck_assert_uint_eq(in_stat() + in_other(), in_ready());
	persistent_fini();
	ck_assert_uint_eq(gauge_load(&gauges.mappings), 0);
}

TEST(a_refused_step_changes_nothing)
{
	static const struct gauges zero;

	refuse(UINT64_MAX);
	ck_assert_ptr_null(persistent_alloc(8, 8, stat));
	ck_assert_mem_eq(&gauges, &zero, sizeof(gauges));
	refuse(0);
	ck_assert_ptr_nonnull(persistent_alloc(8, 8, stat));

	// When the system refuses more, memory that is usable already is still
	// allocated.
	while (in_ready() - in_other() < PERSISTENT_STEP_MIN - 8192)
		ck_assert_ptr_nonnull(persistent_alloc(4096, 8, stat));
	struct gauges before = gauges;
	refuse(UINT64_MAX);
	ck_assert_ptr_null(persistent_alloc(32 << 10, 8, stat));
	ck_assert_mem_eq(&gauges, &before, sizeof(gauges));
	ck_assert_ptr_nonnull(persistent_alloc(8, 8, stat));
	ck_assert_uint_eq(in_ready(), PERSISTENT_STEP_MIN);
	refuse(0);
	ck_assert_ptr_nonnull(persistent_alloc(32 << 10, 8, stat));
	ck_assert_uint_eq(in_ready(), 2 * PERSISTENT_STEP_MIN);
}

// If the system refuses a whole step, it may still grant what is needed.
TEST(less_than_a_step_will_do)
{
	sysmem_init();
	refuse(1);
	ck_assert_ptr_nonnull(persistent_alloc(1000, 8, stat));
	ck_assert_uint_eq(fault_failed(OSCALL_COMMIT), 1);
	ck_assert_uint_eq(in_ready(), sysmem_page_size());
	ck_assert_ptr_nonnull(persistent_alloc(8000, 8, stat));
	ck_assert_uint_eq(in_stat() + in_other(), in_ready());
}

// The system grants less address space than is wished, and then none.
TEST(a_region_may_be_smaller_than_wished)
{
	persistent_init(1 << 20);
	fault_fail(OSCALL_RESERVE, 1, 2, ENOMEM);
	ck_assert_ptr_nonnull(persistent_alloc(8, 8, stat));
	ck_assert_uint_eq(fault_count(OSCALL_RESERVE), 3);
	ck_assert_uint_eq(gauge_load(&gauges.mappings), 4);
	while (in_ready() < 256 << 10 || gauge_load(&gauges.mappings) == 4)
		ck_assert_ptr_nonnull(persistent_alloc(4096, 8, stat));
	ck_assert_uint_lt(in_stat(), 512 << 10);
	persistent_fini();
	fault_fail(OSCALL_RESERVE, 1, UINT64_MAX, ENOMEM);
	ck_assert_ptr_null(persistent_alloc(8, 8, stat));
	ck_assert_ptr_null(persistent_alloc(SIZE_MAX, 8, stat));
	ck_assert_uint_eq(gauge_load(&gauges.mappings), 0);
}

// There is one region.  Steps become longer, so there are few calls.
TEST(neither_mappings_nor_calls_follow_what_is_taken)
{
	enum { TOTAL = 48 << 20 };

	fault_fail(OSCALL_COMMIT, 1, 0, 0); // counts
	while (in_stat() < TOTAL)
		ck_assert_ptr_nonnull(persistent_alloc(16 << 10, 8, stat));
	ck_assert_uint_eq(gauge_load(&gauges.mappings), 4);
	ck_assert_uint_le(fault_count(OSCALL_COMMIT), 48);
	ck_assert_uint_le(in_other(), TOTAL / 8 + PERSISTENT_STEP_MIN);
}

TEST(fini_unmaps_all_and_begins_anew)
{
	for (int i = 0; i < 3; i++) {
		char *small = persistent_alloc(60000, 8, stat);
		char *large = persistent_alloc(PERSISTENT_REGION, 8, stat);

		ck_assert(small && large);
		for (int k = 0; k < 10; k++)
			ck_assert_ptr_nonnull(persistent_alloc(60000, 8, stat));
		ck_assert(is_mapped(small) && is_mapped(large));
		fault_fail(OSCALL_UNMAP, 1, 0, 0); // counts
		persistent_fini();
		ck_assert_uint_eq(fault_count(OSCALL_UNMAP), 3);
		ck_assert(!is_mapped(small) && !is_mapped(large));
	}
	persistent_fini();
	ck_assert_uint_eq(fault_count(OSCALL_UNMAP), 3);
}

// Memory that was usable before persistent_fini makes no later step longer.
TEST(after_fini_steps_begin_anew)
{
	while (in_stat() < 16 * PERSISTENT_STEP_MIN)
		ck_assert_ptr_nonnull(persistent_alloc(16 << 10, 8, stat));
	persistent_fini();
	uint64_t before = in_ready();
	ck_assert_ptr_nonnull(persistent_alloc(8, 8, stat));
	ck_assert_uint_eq(in_ready(), before + PERSISTENT_STEP_MIN);
}

// fill takes memory of all sizes and writes the number of its thread into it.
static void *fill(void *arg)
{
	static unsigned char *blocks[THREADS][ALLOCS];
	uintptr_t self = (uintptr_t)arg;

	for (size_t i = 0; i < ALLOCS; i++) {
		size_t n = 1 + i % 1000;

		if (i % 200 == 199)
			n = LARGE;
		blocks[self][i] = persistent_alloc(n, 8, stat);
		if (!blocks[self][i])
			return "refused";
		memset(blocks[self][i], (int)self + 1, 1 + i % 1000);
	}
	for (size_t i = 0; i < ALLOCS; i++)
		for (size_t k = 0; k < 1 + i % 1000; k++)
			if (blocks[self][i][k] != self + 1)
				return "shared";
	return NULL;
}

TEST(threads_share_a_region_and_no_byte)
{
	pthread_t threads[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		threads[i] = start_thread(fill, (void *)i);
	for (int i = 0; i < THREADS; i++) {
		void *result;

		result = join_thread(threads[i]);
		ck_assert_ptr_null(result);
	}
	uint64_t sum = 0;
	for (size_t i = 0; i < ALLOCS; i++)
		sum += i % 200 == 199 ? LARGE : 1 + i % 1000;
	ck_assert_uint_eq(in_stat(), THREADS * sum);
	ck_assert_uint_eq(in_stat() + in_other(), in_ready());
	persistent_fini();
}

static const struct {
	size_t n;
	size_t align;
	const char *what;
} bad_requests[] = {
    {0, 8, "persistent_alloc: no size"},
    {8, 0, "rtheap: align=0\nrtheap: fatal: persistent_alloc: bad alignment"},
    {8, 24, "align=24\nrtheap: fatal: persistent_alloc: bad alignment"},
    {8, 8192, "align=8192\nrtheap: fatal: persistent_alloc: bad alignment"},
};

TEST(a_senseless_request_throws, .n = RT_ARRAY_LEN(bad_requests),
     .exit = DEATH_EXPECTED)
{
	death_expect(bad_requests[_i].what);
	persistent_alloc(bad_requests[_i].n, bad_requests[_i].align, stat);
}

// ---- fixalloc ----

enum { OBJECT = 96, PER_CHUNK = FIXALLOC_CHUNK / OBJECT };
static struct fixalloc pool;

GROUP(fixalloc);

TEST(objects_come_in_chunks)
{
	uint64_t wrong = 0;
	char *last = NULL;

	fixalloc_init(&pool, OBJECT, 32, false, stat);
	ck_assert_uint_eq(in_ready(), 0);
	for (int i = 0; i < PER_CHUNK; i++) {
		char *p = fixalloc_alloc(&pool);

		ck_assert_ptr_nonnull(p);
		wrong += (uintptr_t)p % 32 != 0 || !is_zero(p, OBJECT);
		wrong += last && p != last + OBJECT;
		wrong += in_stat() != PER_CHUNK * OBJECT;
		memset(p, 1, OBJECT);
		last = p;
	}
	ck_assert_uint_eq(wrong, 0);
	ck_assert_uint_eq(pool.inuse, PER_CHUNK * OBJECT);
	ck_assert_ptr_nonnull(fixalloc_alloc(&pool));
	ck_assert_uint_eq(in_stat(), 2 * PER_CHUNK * OBJECT);
	ck_assert_uint_eq(pool.inuse, (PER_CHUNK + 1) * OBJECT);
}

TEST(the_last_freed_comes_first)
{
	fixalloc_init(&pool, OBJECT, 8, false, stat);
	char *a = fixalloc_alloc(&pool);
	char *b = fixalloc_alloc(&pool);
	ck_assert(a && b);
	memset(a, 1, OBJECT);
	fixalloc_free(&pool, a);
	fixalloc_free(&pool, b);
	ck_assert_uint_eq(pool.inuse, 0);
	ck_assert_ptr_eq(fixalloc_alloc(&pool), b);
	ck_assert_ptr_eq(fixalloc_alloc(&pool), a);
	ck_assert_uint_eq(pool.inuse, 2 * OBJECT);
	// Not zeroed: all but the link is as it was.
	ck_assert_int_eq(a[sizeof(struct fixalloc_free)], 1);
	ck_assert_int_eq(a[OBJECT - 1], 1);
}

TEST(a_freed_list_comes_back_in_its_order)
{
	struct fixalloc_list list = {0}, none = {0};
	char *object[4];

	fixalloc_init(&pool, OBJECT, 8, false, stat);
	for (int i = 0; i < 4; i++)
		object[i] = fixalloc_alloc(&pool);
	fixalloc_free(&pool, object[3]);
	for (int i = 0; i < 3; i++)
		fixalloc_list_add(&list, object[i]);
	ck_assert_uint_eq(pool.inuse, 3 * OBJECT);
	fixalloc_free_list(&pool, &list);
	fixalloc_free_list(&pool, &none);
	ck_assert_uint_eq(pool.inuse, 0);
	for (int i = 0; i < 4; i++)
		ck_assert_ptr_eq(fixalloc_alloc(&pool), object[i]);
	ck_assert_ptr_eq(fixalloc_alloc(&pool), object[3] + OBJECT);
}

TEST(a_zeroing_pool_zeroes_every_use)
{
	fixalloc_init(&pool, OBJECT, 8, true, stat);
	char *a = fixalloc_alloc(&pool);
	char *b = fixalloc_alloc(&pool);
	ck_assert(a && b && is_zero(a, OBJECT));
	memset(a, 1, OBJECT);
	memset(b, 1, OBJECT);
	fixalloc_free(&pool, b);
	fixalloc_free(&pool, a);
	ck_assert_ptr_eq(fixalloc_alloc(&pool), a);
	ck_assert(is_zero(a, OBJECT));
	ck_assert_ptr_eq(fixalloc_alloc(&pool), b);
	ck_assert(is_zero(b, OBJECT));
}

TEST(objects_may_be_as_large_as_a_chunk)
{
	fixalloc_init(&pool, FIXALLOC_CHUNK, 4096, false, stat);
	char *a = fixalloc_alloc(&pool);
	char *b = fixalloc_alloc(&pool);
	ck_assert(a && b && a != b);
	ck_assert_uint_eq((uintptr_t)a % 4096, 0);
	ck_assert_uint_eq((uintptr_t)b % 4096, 0);
	ck_assert_uint_eq(in_stat(), 2 * FIXALLOC_CHUNK);
}

TEST(a_refused_object_changes_nothing)
{
	static const struct gauges zero;

	fixalloc_init(&pool, OBJECT, 8, false, stat);
	refuse(UINT64_MAX);
	ck_assert_ptr_null(fixalloc_alloc(&pool));
	ck_assert_uint_eq(pool.inuse, 0);
	ck_assert_mem_eq(&gauges, &zero, sizeof(gauges));
	refuse(0);
	void *p = fixalloc_alloc(&pool);
	ck_assert_ptr_nonnull(p);
	ck_assert_uint_eq(pool.inuse, OBJECT);
	ck_assert_uint_eq(in_stat(), PER_CHUNK * OBJECT);
}

static const struct {
	size_t size;
	size_t align;
	const char *what;
} bad_pools[] = {
    {4, 4, "rtheap: size=4\nrtheap: fatal: fixalloc_init: bad size"},
    {FIXALLOC_CHUNK + 8, 8, "fixalloc_init: bad size"},
    {24, 4, "align=4\nrtheap: fatal: fixalloc_init: bad alignment"},
    {24, 24, "align=24\nrtheap: fatal: fixalloc_init: bad alignment"},
    {24, 16, "align=16\nrtheap: fatal: fixalloc_init: bad alignment"},
};

TEST(a_senseless_pool_throws, .n = RT_ARRAY_LEN(bad_pools),
     .exit = DEATH_EXPECTED)
{
	death_expect(bad_pools[_i].what);
	fixalloc_init(&pool, bad_pools[_i].size, bad_pools[_i].align, false,
		      stat);
}

TEST(freeing_more_than_was_taken_throws, .exit = DEATH_EXPECTED)
{
	static uint64_t object[OBJECT / 8];
	static char what[] =
	    "size=96\nrtheap: fatal: fixalloc_free: more than is in use";

	fixalloc_init(&pool, OBJECT, 8, false, stat);
	death_expect(what);
	fixalloc_free(&pool, object);
}

TEST(freeing_a_list_of_more_than_was_taken_throws, .exit = DEATH_EXPECTED)
{
	static uint64_t object[OBJECT / 8];
	static char what[] =
	    "size=192\nrtheap: fatal: fixalloc_free: more than is in use";
	struct fixalloc_list list = {0};

	fixalloc_init(&pool, OBJECT, 8, false, stat);
	fixalloc_list_add(&list, fixalloc_alloc(&pool));
	fixalloc_list_add(&list, object);
	death_expect(what);
	fixalloc_free_list(&pool, &list);
}
