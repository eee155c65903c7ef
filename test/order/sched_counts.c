// Tests how often locks are taken, and how often helpers are made.  Both are
// counted at a schedule point, so the counts are the same on every machine.
// One thread works in a heap that does not collect by itself.
#define RT_NO_INLINE_ALLOC
#include <rt/rt.h>

#include "gc/cycle/worker.h"
#include "runtime/spans/stackalloc.h"
#include "test/harness/inside.h"
#include "test/order/sched.h"

enum { TIMES = 960 };

static void begin(void)
{
	inside_boot(false);
	schedpoint_watch();
}

// locks_of returns how often locks were taken during TIMES steps.  It first
// does as many steps that are not counted.
static uint64_t locks_of(void (*step)(int), int arg)
{
	uint64_t before = 0;

	for (int i = 0; i < 2 * TIMES; i++) {
		if (i == TIMES)
			before = schedpoint_passed(SCHED_MUTEX_LOCK);
		step(arg);
	}
	return schedpoint_passed(SCHED_MUTEX_LOCK) - before;
}

// ---- interpreter stacks ----

static void one_stack(int order)
{
	size_t n = (size_t)STACKALLOC_MIN << order;
	void *v = rt_stack_alloc(n);

	ck_assert_int_eq(rt_stack_free(v, n), RT_OK);
}

// some_stacks allocates as many stacks as a P keeps, and then frees them.
static void some_stacks(int order)
{
	size_t n = (size_t)STACKALLOC_MIN << order;
	void *v[MCACHE_STACKS];
	size_t some = STACKALLOC_REFILL / n;

	for (size_t i = 0; i < some; i++)
		v[i] = rt_stack_alloc(n);
	for (size_t i = 0; i < some; i++)
		ck_assert_int_eq(rt_stack_free(v[i], n), RT_OK);
}

GROUP(counts, .timeout = 2 * AWAIT_SECONDS);

TEST(stacks_that_a_p_keeps_take_no_lock, .n = MCACHE_STACK_ORDERS)
{
	begin();
	ck_assert_uint_eq(locks_of(one_stack, _i), 0);
	ck_assert_uint_eq(locks_of(some_stacks, _i), 0);
}

// ---- objects of some pages ----

static void one_object(int npages)
{
	ck_assert_ptr_nonnull(rt_alloc_noscan((size_t)npages * RT_PAGE_SIZE));
}

// The second object is small, but fills a span of one page.
static void one_object_and_one_page(int npages)
{
	one_object(npages);
	ck_assert_ptr_nonnull(rt_alloc_noscan(RT_PAGE_SIZE));
}

// A lock is taken once for 48 pages of objects, or for 21 pages if a span of
// one page follows each object.
TEST(objects_of_some_pages_share_a_lock, .base = 5, .limit = 9)
{
	begin();
	ck_assert_uint_le(locks_of(one_object, _i), TIMES * _i / 44);
	ck_assert_uint_le(locks_of(one_object_and_one_page, _i),
			  TIMES * _i / 20);
}

// take_half leaves a heap in which every second object of npages pages is gone,
// so that the free pages are in gaps.
static void take_half(int npages)
{
	static void *live[TIMES];

	must(rt_roots_add(live, live + TIMES, RT_ROOT_WORDS));
	for (int i = 0; i < TIMES; i++) {
		void *v = rt_alloc_noscan((size_t)npages * RT_PAGE_SIZE);

		live[i] = i % 2 ? v : NULL;
	}
	ck_assert_int_eq(rt_gc(), RT_OK);
}

// Here a lock is taken once for 31 pages of objects.
TEST(objects_in_gaps_share_a_lock, .base = 5, .limit = 9)
{
	uint64_t before;

	begin();
	take_half(_i);
	before = schedpoint_passed(SCHED_MUTEX_LOCK);
	for (int i = 0; i < TIMES / 2; i++)
		one_object(_i);
	ck_assert_uint_le(schedpoint_passed(SCHED_MUTEX_LOCK) - before,
			  TIMES / 2 * _i / 28);
}

// ---- helpers ----

// A thread that wants helpers enters a blocking region to make them, but only
// while some are missing.
TEST(helpers_that_are_there_are_not_made)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.max_procs = 2;
	c.gc_threads = 1;
	heap_start(c);
	schedpoint_watch();
	for (int i = 0; i < 3; i++) {
		worker_provide(proc_self(), true);
		ck_assert_uint_eq(schedpoint_passed(SCHED_MAKE_MISSING), 1);
	}
	ck_assert_int_eq(rt_fini(), RT_OK);
}
