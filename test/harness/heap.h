// heap.h - what tests of a whole heap share.
//
// A heap here releases pages only when told to.  With HEAP_QUIET it collects
// only when told to.  With heap_start_exact the stack of the test's thread is
// not a root.  Then exactly the objects that the registered roots reach survive
// a collection, and a test can count them.
#ifndef TEST_HARNESS_HEAP_H
#define TEST_HARNESS_HEAP_H

#include <rt/rt.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/base.h"
#include "test/harness/recount.h"
#include "test/harness/suite.h"

enum {
	HEAP_QUIET = -1, // gc_percent
	// How much smaller a test is under a sanitizer, or with coverage.
	HEAP_CUT = RT_ASAN || RT_TSAN || COVERAGE_BUILD ? 10 : 1,
};

// heap_config returns the configuration of a heap for tests.  It sweeps in the
// stop, unless RTDEBUG says otherwise: sweep=2 runs any suite with sweeping
// beside the threads.
static inline rt_config heap_config(int gc_percent)
{
	rt_config c;

	rt_config_init(&c);
	c.sweep = 0;
	rt_config_from_env(&c);
	c.gc_percent = gc_percent;
	c.double_check = RT_CHECK_FATAL;
	c.cgroup = 0;	// the same in each container
	c.scavenge = 0; // pages stay where a test has left them
	c.populate = 1; // no other thread brings pages in
	c.gc_period_s = 0; // a slow test is no idle program
	return c;
}

// heap_config_checked makes every collection check its marks.
static inline rt_config heap_config_checked(void)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.checkmark = 1;
	return c;
}

// must requires that a call succeeds.
#define must(call) ck_assert_int_eq((call), RT_OK)

static inline void heap_start(rt_config c)
{
	must(rt_init(&c));
}

// heap_begin makes a heap that collects only when told to.
static inline void heap_begin(void)
{
	heap_start(heap_config(HEAP_QUIET));
}

// heap_start_exact makes a heap and attaches the caller with exact roots.
static inline void heap_start_exact(rt_config c)
{
	c.no_attach = 1;
	heap_start(c);
	ck_assert_int_eq(rt_thread_attach(RT_THREAD_EXACT), RT_OK);
}

// heap_stack registers a stack.  Returns NULL if that is refused.
static inline rt_stack *heap_stack(const rt_stack_desc *d)
{
	rt_stack *s = NULL;

	return rt_stack_register(d, &s) == RT_OK ? s : NULL;
}

// heap_live verifies the heap, and returns the number of objects.
static inline uint64_t heap_live(void)
{
	struct rt_verify v;

	ck_assert_int_eq(rt_heap_verify(&v), RT_OK);
	ck_assert_msg(v.errors == 0, "%s", v.first);
	return v.objects;
}

// heap_is_whole verifies the heap without Check, in the child of a fork.
static inline bool heap_is_whole(void)
{
	struct rt_verify v;

	return rt_heap_verify(&v) == RT_OK && v.errors == 0;
}

// heap_live_after_gc collects, and then does what heap_live does.
static inline uint64_t heap_live_after_gc(void)
{
	ck_assert_int_eq(rt_gc(), RT_OK);
	return heap_live();
}

static inline rt_memstats heap_stats(void)
{
	rt_memstats m;

	ck_assert_int_eq(rt_read_memstats(&m), RT_OK);
	return m;
}

static inline uint64_t heap_metric(const char *name)
{
	rt_metric_sample s = {.name = name};

	ck_assert_int_eq(rt_metrics_read(&s, 1), RT_OK);
	ck_assert_uint_eq(s.result, RT_METRIC_U64);
	return s.u64;
}

static inline double heap_seconds(const char *name)
{
	rt_metric_sample s = {.name = name};

	must(rt_metrics_read(&s, 1));
	ck_assert_uint_eq(s.result, RT_METRIC_F64);
	return s.f64;
}

static inline bool heap_is_zero(const void *p, size_t n)
{
	const char *c = p;

	return n == 0 || (c[0] == 0 && memcmp(c, c + 1, n - 1) == 0);
}

// heap_table makes a table of n words outside the heap, and registers it as a
// root.
static inline uintptr_t *heap_table(size_t n, int flags)
{
	uintptr_t *table = calloc(n, sizeof *table);

	ck_assert_ptr_nonnull(table);
	ck_assert_int_eq(rt_roots_add(table, table + n, flags), RT_OK);
	return table;
}

// heap_check_list is for a heap that collects in every allocation.  It builds a
// list whose first node only set stores and get returns, and requires that the
// whole list survives.
static inline void heap_check_list(void *(*get)(void), void (*set)(void *))
{
	uintptr_t *node;

	for (uintptr_t i = 0; i < 300; i++) {
		node = rt_alloc(32);
		node[0] = (uintptr_t)get();
		node[1] = i;
		set(node);
	}
	node = get();
	for (uintptr_t i = 300; i-- > 0; node = (uintptr_t *)node[0])
		ck_assert_uint_eq(node[1], i);
	ck_assert_ptr_null(node);
}

// heap_recount compares the statistics with the heap counted again.
static inline void heap_recount(void)
{
	static rt_memstats m;
	struct comparison c = {0};

	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	ck_assert_int_eq(rt_read_memstats(&m), RT_OK);
	recount_compare(&m, &c);
	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
	ck_assert_msg(c.compared != 0 && c.differing == 0, "%s", c.first);
}

// heap_healthy requires that every structure agrees with every other, and that
// the statistics agree with each other and with the heap.  The world must not
// be stopped.
static inline rt_memstats heap_healthy(void)
{
	uint64_t live = heap_live();
	rt_memstats m = heap_stats();

	ck_assert_uint_eq(m.heap_objects, live);
	heap_recount();
	return m;
}

#endif
