// The memory limit: mapped memory stays below it while that is possible.  If it
// is not possible, the program goes on.
#include <stdio.h>

#include "test/harness/fault.h"
#include "test/harness/heap.h"
#include "test/harness/thread.h"

#include "gc/cycle/pacer.h"
#include "gc/cycle/release.h"

#define MIB (UINT64_C(1) << 20)
#define SECOND UINT64_C(1000000000)

static void *root[64];

static void start(int percent, int64_t limit)
{
	rt_config c = heap_config(percent);

	c.memory_limit = limit;
	c.gc_cpu_limit = 100; // collections do not depend on their time
	heap_start(c);
	ck_assert_int_eq(rt_roots_add(root, root + 64, RT_ROOT_EXACT), RT_OK);
}

static uint64_t mapped(void)
{
	return gauge_load(&gauges.mapped_ready);
}

static uint64_t collections(void)
{
	return heap_stats().num_gc;
}

// churn allocates n bytes of garbage in objects of a size, and returns the most
// that was mapped.
static uint64_t churn(uint64_t n, size_t size)
{
	uint64_t most = 0;

	for (uint64_t i = 0; i < n / size; i++) {
		rt_alloc_noscan(size);
		if (mapped() > most)
			most = mapped();
	}
	return most;
}

// passed returns by how much mapped memory may exceed the limit when objects of
// a size are allocated.  Tables grow, and the heap grows by an object for which
// a collection found no room.
static uint64_t passed(size_t size)
{
	return MIB + (size > MIB ? size : 0);
}

static const size_t sizes[] = {16, 1000, 9000, 40000, 300000, 3 << 20};

GROUP(kept, .timeout = 60);

// Go's TestMemoryLimit: without a percentage the limit alone collects.
TEST(limit_is_kept_without_a_percentage, .n = RT_ARRAY_LEN(sizes))
{
	start(-1, 48 * MIB);
	ck_assert_uint_le(churn(256 * MIB, sizes[_i]),
			  48 * MIB + passed(sizes[_i]));
	ck_assert_uint_ge(collections(), 3);
	heap_healthy();
}

TEST(limit_is_kept_beside_live_objects, .n = RT_ARRAY_LEN(sizes))
{
	start(400, 64 * MIB);
	for (unsigned i = 0; i < 32; i++)
		root[i] = rt_alloc_noscan(MIB);
	ck_assert_uint_le(churn(256 * MIB, sizes[_i]),
			  64 * MIB + passed(sizes[_i]));
	ck_assert_uint_ge(heap_stats().heap_alloc, 32 * MIB);
	heap_healthy();
}

// leave_holes leaves 32 holes of 1 MiB between as many objects.
static void leave_holes(void)
{
	start(-1, INT64_MAX);
	for (unsigned i = 0; i < 64; i++)
		root[i] = rt_alloc_noscan(MIB);
	for (unsigned i = 0; i < 64; i += 2)
		root[i] = NULL;
	rt_gc();
}

// Free pages are released before other pages are taken, because holes of one
// size may be of no use for objects of another.
TEST(pages_go_back_before_others_are_taken)
{
	leave_holes();
	ck_assert_uint_ge(mapped(), 64 * MIB);
	ck_assert_int_eq(rt_set_memory_limit(48 * MIB, NULL), RT_OK);
	rt_alloc(64);
	rt_alloc_noscan(100000);
	ck_assert_uint_le(mapped(), 48 * MIB + MIB);
	// 16 holes of 1 MiB were released.  An object of 8 MiB takes other
	// pages, for which as many must be released.
	ck_assert_ptr_nonnull(rt_alloc_noscan(8 * MIB));
	ck_assert_uint_le(mapped(), 48 * MIB + MIB);
	heap_healthy();
}

// begin_limited leaves holes of 1 MiB, 16 more than the limit allows, and sets
// the capacity of the limiter's bucket to one second.
static void begin_limited(void)
{
	leave_holes();
	pacer.limiter.percent = 50;
	pacer.limiter.capacity = SECOND;
	pacer.limiter.fill = 0;
	ck_assert_int_eq(rt_set_memory_limit(48 * MIB, NULL), RT_OK);
}

// While the limiter makes collections for the limit wait, an allocation
// releases nothing for it.
TEST(nothing_goes_back_while_the_limiter_waits)
{
	uint64_t before;

	begin_limited();
	pacer.limiter.fill = UINT64_MAX / 2; // years
	before = mapped();
	ck_assert_ptr_nonnull(rt_alloc(64));
	ck_assert(!release_due(0));
	ck_assert_ptr_nonnull(rt_alloc_noscan(8 * MIB));
	ck_assert_ptr_nonnull(rt_alloc(64000));
	ck_assert_uint_ge(mapped(), before + 8 * MIB);
	ck_assert_uint_eq(collections(), 1);
	pacer.limiter.fill = 0;
	ck_assert_ptr_nonnull(rt_alloc_noscan(2 * MIB));
	ck_assert_ptr_nonnull(rt_alloc_noscan(2 * MIB));
	ck_assert_uint_le(mapped(), 48 * MIB + MIB);
	heap_healthy();
}

// Each step of releasing takes a little more than half a second.  So the
// limiter ends it after two steps, without a collection.
TEST(releasing_ends_when_it_takes_too_long)
{
	uint64_t before;

	begin_limited();
	before = mapped();
	fault_fail(OSCALL_RELEASE, 1, 0, 0);
	fault_step_cpu(SECOND / 2 + SECOND / 100);
	ck_assert_ptr_nonnull(rt_alloc(64));
	fault_step_cpu(0);
	ck_assert_uint_eq(fault_count(OSCALL_RELEASE), 2);
	ck_assert_uint_lt(mapped(), before);
	ck_assert_uint_gt(mapped(), 49 * MIB);
	ck_assert(!release_due(0));
	ck_assert_uint_eq(collections(), 1);
	heap_healthy();
}

// Every second page is free, so no span of four pages fits between the used
// ones.  rt_alloc_many takes fresh pages, for which free ones must be released.
// A call ends early at that point.
TEST(many_end_where_pages_must_be_released)
{
	enum { OBJECTS = 4096, MANY = 480 };
	static void *page[OBJECTS], *many[MANY];
	uint64_t limit, got = 0, calls = 0;

	start(-1, INT64_MAX);
	must(rt_roots_add(page, page + OBJECTS, RT_ROOT_EXACT));
	must(rt_roots_add(many, many + MANY, RT_ROOT_EXACT));
	for (unsigned i = 0; i < OBJECTS; i++)
		page[i] = rt_alloc_noscan(RT_PAGE_SIZE);
	for (unsigned i = 0; i < OBJECTS; i += 2)
		page[i] = NULL;
	must(rt_gc());
	limit = mapped() + MIB;
	must(rt_set_memory_limit((int64_t)limit, NULL));
	for (; got < MANY && calls < MANY; calls++) {
		got += rt_alloc_many(RT_NOSCAN, 32760, MANY - got, many + got);
		ck_assert_uint_le(mapped(), limit + passed(32760));
	}
	ck_assert_uint_eq(got, MANY);
	ck_assert_uint_gt(calls, 1);
	ck_assert_uint_eq(collections(), 1);
	heap_healthy();
}

TEST(a_stack_counts_before_it_is_there)
{
	start(-1, INT64_MAX);
	root[0] = rt_alloc_noscan(16 * MIB);
	root[0] = NULL;
	rt_gc();
	root[1] = rt_alloc_noscan(15 * MIB + 1); // a hole of 1 MiB is left
	ck_assert_int_eq(rt_set_memory_limit((int64_t)mapped(), NULL), RT_OK);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_ptr_nonnull(rt_stack_alloc(MIB / 2));
	heap_healthy();
}

TEST(processor_time_for_the_limit_is_configured)
{
	rt_config c = heap_config(100);

	c.gc_cpu_limit = 7;
	heap_start(c);
	ck_assert_uint_eq(pacer.limiter.percent, 7);
}

// ---- a limit that cannot be kept ----

static unsigned told;
static unsigned long told_bytes, told_limit; // of the last warning

static void count_told(const char *text, void *arg)
{
	(void)arg;
	told += sscanf(text,
		       "rtheap: a collection left %lu bytes in use, more than "
		       "the memory limit of %lu",
		       &told_bytes, &told_limit) == 2;
}

GROUP(beyond, .timeout = 60);

// There is at most one collection a MiB, and the host is told once, whatever
// the limit.
TEST(what_cannot_be_kept_is_no_spiral, .n = 3)
{
	static const int64_t limits[] = {0, 4096, 20 << 20};
	uint64_t before;

	start(100, INT64_MAX);
	ck_assert_int_eq(rt_set_warn_handler(count_told, NULL), RT_OK);
	for (unsigned i = 0; i < 32; i++)
		root[i] = rt_alloc_noscan(MIB);
	rt_gc();
	ck_assert_int_eq(rt_set_memory_limit(limits[_i], NULL), RT_OK);
	before = collections();
	churn(64 * MIB, 1000);
	ck_assert_uint_le(collections() - before, 65);
	ck_assert_uint_ge(collections() - before, 2);
	ck_assert_uint_eq(told, 1);
	ck_assert_uint_ge(heap_stats().heap_alloc, 32 * MIB);
	heap_healthy();
}

// Garbage is no reason to warn, because the memory of freed objects is
// released.  The warning names the limit, and a larger number of bytes in use.
TEST(only_what_cannot_be_kept_is_told)
{
	rt_config c = heap_config(100);

	c.heap_min = 64 * MIB;
	c.gc_cpu_limit = 100;
	heap_start(c);
	ck_assert_int_eq(rt_roots_add(root, root + 64, RT_ROOT_EXACT), RT_OK);
	ck_assert_int_eq(rt_set_warn_handler(count_told, NULL), RT_OK);
	churn(30 * MIB, 1000);
	ck_assert_int_eq(rt_set_memory_limit(16 << 20, NULL), RT_OK);
	churn(64 * MIB, 4000);
	ck_assert_uint_eq(told, 0);
	for (unsigned i = 0; i < 20; i++)
		root[i] = rt_alloc_noscan(MIB);
	churn(64 * MIB, 4000);
	ck_assert_uint_eq(told, 1);
	ck_assert_uint_eq(told_limit, 16 << 20);
	ck_assert_uint_gt(told_bytes, told_limit);
	heap_healthy();
}

// With two percent more live memory, there is still at most one collection a
// MiB.
TEST(collections_rise_gently_near_the_limit)
{
	uint64_t before, n[2];

	start(100, 64 * MIB);
	for (unsigned i = 0; i < 58; i++)
		root[i] = rt_alloc_noscan(MIB);
	for (unsigned i = 0; i < 2; i++) {
		root[58 + i] = rt_alloc_noscan(MIB);
		rt_gc();
		before = collections();
		churn(64 * MIB, 1000);
		n[i] = collections() - before;
	}
	ck_assert_uint_le(n[0], 65);
	ck_assert_uint_le(n[1], 65);
	heap_healthy();
}

// ---- changes ----

GROUP(changes, .timeout = 60);

TEST(limit_counts_at_once_and_is_read_back)
{
	int64_t old = 7;

	start(-1, INT64_MAX);
	rt_gc();
	ck_assert_uint_eq(heap_stats().next_gc, PACER_NEVER);
	ck_assert_int_eq(rt_set_memory_limit(100 * MIB, &old), RT_OK);
	ck_assert_int_eq(old, INT64_MAX);
	ck_assert_uint_eq(heap_metric("/gc/gomemlimit:bytes"), 100 * MIB);
	ck_assert_uint_le(heap_stats().next_gc, 97 * MIB);
	ck_assert_uint_ge(heap_stats().next_gc, 90 * MIB);
	ck_assert_int_eq(rt_set_memory_limit(-1, &old), RT_EINVAL);
	ck_assert_int_eq(old, INT64_MAX);
	ck_assert_int_eq(rt_set_memory_limit(INT64_MAX, &old), RT_OK);
	ck_assert_int_eq(old, 100 * MIB);
	ck_assert_uint_eq(heap_stats().next_gc, PACER_NEVER);
	ck_assert_uint_le(churn(32 * MIB, 1000), 40 * MIB);
	ck_assert_uint_eq(collections(), 1);
}

enum { THREADS = 4, ROUNDS = 300 };

static void *change(void *arg)
{
	struct rng rng = {.state = (uintptr_t)arg};

	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t limit = rng_below(&rng, 64 * MIB);

		rt_set_memory_limit((int64_t)limit, NULL);
		rt_set_gc_percent((int)rng_below(&rng, 300) - 100, NULL);
		rt_set_heap_min(rng_below(&rng, 8 * MIB), NULL);
		rt_adjust_external((int64_t)rng_below(&rng, MIB) -
				   (int64_t)MIB / 2);
		for (unsigned j = 0; j < 50; j++)
			rt_alloc_noscan(1 << rng_below(&rng, 18));
	}
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	return NULL;
}

// Threads change all limits at any time, while other threads collect and
// release.
TEST(limits_change_beside_threads)
{
	pthread_t t[THREADS];

	start(100, 32 * MIB);
	for (unsigned i = 0; i < THREADS; i++)
		t[i] = start_thread(change, (void *)(uintptr_t)(i + 1));
	for (unsigned i = 0; i < THREADS; i++)
		ck_assert_ptr_null(join_beside(t[i]));
	heap_healthy();
}
