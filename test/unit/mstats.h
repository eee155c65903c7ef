// mstats.h - heaps with a past, and what is read of them.
#ifndef TEST_UNIT_MSTATS_H
#define TEST_UNIT_MSTATS_H

#include "gc/cycle/pacer.h"
#include "gc/stats/mstats.h"
#include "runtime/os/oscall.h"
#include "test/harness/fault.h"
#include "test/harness/heap.h"
#include "test/harness/thread.h"

enum { PAGE = RT_PAGE_SIZE, HELD = 64 };

static void *held[HELD]; // a root
static rt_memstats before, after;
#define MORE(field) (after.field - before.field)

// The test's own thread has exact roots, so that what dies is certain.
static inline void begin_with(bool align8, int check)
{
	rt_config c = heap_config(100);

	c.align8 = align8;
	c.double_check = check;
	heap_start_exact(c);
	ck_assert_int_eq(rt_roots_add(held, held + HELD, RT_ROOT_EXACT), RT_OK);
}

static inline void begin(void)
{
	begin_with(true, RT_CHECK_FATAL);
}

static inline void read_into(rt_memstats *m)
{
	memset(m, 0xaa, sizeof *m);
	ck_assert_int_eq(rt_read_memstats(m), RT_OK);
}

static inline void live_into(rt_memstats *m)
{
	memset(m, 0xaa, sizeof *m);
	ck_assert_int_eq(rt_read_memstats_live(m), RT_OK);
}

static inline void compared(const struct comparison *c)
{
	ck_assert_msg(c->differing == 0, "%s", c->first);
	ck_assert_uint_gt(c->compared, 0);
}

// ---- histories ----

static inline void many(size_t n, unsigned count, bool noscan)
{
	for (unsigned i = 0; i < count; i++)
		held[i % HELD] = noscan ? rt_alloc_noscan(n) : rt_alloc(n);
}

static inline void *attach_and_allocate(void *arg)
{
	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	many(100, 3000, arg != NULL);
	many(7, 100, true);
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	return NULL;
}

static inline void *attach_and_exit(void *arg)
{
	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	many(5000, 200, arg != NULL);
	return NULL;
}

static inline void history_none(void)
{
}

static inline void history_small(void)
{
	for (size_t n = 1; n <= 32760; n += n / 7 + 1) {
		many(n, 150, n % 2);
		many(n, 20, n % 3);
	}
}

static inline void history_tiny(void)
{
	for (unsigned i = 0; i < 5000; i++)
		held[i % HELD] = rt_alloc_noscan(1 + i * i % 15);
}

static inline void history_large(void)
{
	for (unsigned i = 0; i < 60; i++)
		held[i % 8] = rt_alloc_noscan_uninit(32761 + i * 40000);
}

static inline void history_collected(void)
{
	history_small();
	memset(held, 0, sizeof held);
	rt_gc();
	history_small();
	history_large();
	rt_gc();
}

static inline void history_stacks(void)
{
	void *v[12];

	for (unsigned i = 0; i < 12; i++)
		v[i] = rt_stack_alloc((size_t)2048 << (i % 6));
	for (unsigned i = 0; i < 6; i++)
		ck_assert_int_eq(rt_stack_free(v[i], (size_t)2048 << i), RT_OK);
}

static inline void history_threads(void)
{
	for (unsigned i = 0; i < 6; i++)
		run_beside(i % 2 ? attach_and_exit : attach_and_allocate, NULL);
}

static inline void history_released(void)
{
	history_collected();
	memset(held, 0, sizeof held);
	ck_assert_int_eq(rt_free_os_memory(), RT_OK);
	many(300, 5000, false);
}

static inline void history_roots(void)
{
	static void *more[4096];

	for (unsigned i = 0; i < 4096; i++)
		must(rt_roots_add(more + i, more + i + 1, RT_ROOT_WORDS));
	history_tiny();
}

// history_refused makes requests for which there is no memory.
static inline void history_refused(void)
{
	fault_fail(OSCALL_COMMIT, 1, UINT64_MAX, 12);
	ck_assert_ptr_null(rt_alloc_noscan(256 << 20));
	fault_fail(OSCALL_COMMIT, 1, 0, 12);
	ck_assert_ptr_null(rt_alloc(PTRDIFF_MAX));
	history_small();
}

static struct heapstats_totals totals;

static inline uint64_t class_bytes(const uint64_t *count, uint64_t large)
{
	for (unsigned c = 0; c < SIZECLASS_COUNT; c++)
		large += count[c] * sizeclass_table[c].size;
	return large;
}

static inline uint64_t bytes_allocated(void)
{
	return class_bytes(totals.small_alloc_count, totals.large_alloc);
}

static inline uint64_t bytes_freed(void)
{
	return class_bytes(totals.small_free_count, totals.large_free);
}

#endif
