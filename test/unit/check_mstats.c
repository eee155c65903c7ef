// Statistics add up after every history, and say what a script did.
#include "test/unit/mstats.h"

#include <pthread.h>

#include "runtime/world/gcstats.h"
#include "runtime/spans/mcache.h"
#include "test/harness/fault.h"
#include "test/harness/heap.h"
#include "test/harness/ledger.h"

static void (*const histories[])(void) = {
    history_none,      history_small,	history_tiny,	 history_large,
    history_collected, history_stacks,	history_threads, history_released,
    history_roots,     history_refused,
};

// ---- identities: each after every history ----

// moment runs a history, then reads all statistics in one stop.
static void moment(int history)
{
	histories[history]();
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	read_into(&after);
	heapstats_unsafe_read(&totals);
	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
}

GROUP(identities, .setup = begin, .timeout = 120);

// IDENTITY tests that two numbers of one moment are the same.
#define IDENTITY(name, a, b)                                                   \
	TEST(name, .n = RT_ARRAY_LEN(histories))                               \
	{                                                                      \
		moment(_i);                                                    \
		ck_assert_uint_eq(a, b);                                       \
	}

IDENTITY(heap_in_use_is_the_consistent_one, heapgauge_sum(HEAPGAUGE_IN_USE),
	 totals.in_heap)
IDENTITY(heap_released_is_the_consistent_one, heapgauge_sum(HEAPGAUGE_RELEASED),
	 totals.released)
IDENTITY(the_retained_heap_is_what_is_committed_to_it,
	 heapgauge_sum(HEAPGAUGE_IN_USE) + heapgauge_sum(HEAPGAUGE_FREE),
	 totals.committed - totals.in_stacks - totals.in_work_bufs -
	     totals.in_ptr_scalar_bits)
IDENTITY(what_is_mapped_is_sys_without_what_is_released,
	 gauge_load(&gauges.mapped_ready), after.sys - after.heap_released)

TEST(total_alloc_is_the_sum_over_classes, .n = RT_ARRAY_LEN(histories))
{
	moment(_i);
	ck_assert_uint_eq(heapgauge_sum(HEAPGAUGE_TOTAL_ALLOC),
			  bytes_allocated());
	ck_assert_uint_eq(after.total_alloc, bytes_allocated());
}

TEST(total_free_is_the_sum_over_classes, .n = RT_ARRAY_LEN(histories))
{
	moment(_i);
	ck_assert_uint_eq(heapgauge_sum(HEAPGAUGE_TOTAL_FREE), bytes_freed());
	ck_assert_uint_eq(after.total_alloc - after.alloc, bytes_freed());
}

static void check_sums(const rt_memstats *m)
{
	ck_assert_uint_eq(m->sys, m->heap_sys + m->stack_sys + m->mspan_sys +
				      m->mcache_sys + m->buckhash_sys +
				      m->gc_sys + m->other_sys);
	ck_assert_uint_eq(m->heap_sys, m->heap_inuse + m->heap_idle);
	ck_assert_uint_eq(m->heap_objects, m->mallocs - m->frees);
	ck_assert_uint_eq(m->alloc, m->heap_alloc);
	ck_assert_uint_le(m->heap_alloc, m->heap_inuse);
	ck_assert_uint_le(m->heap_released, m->heap_idle);
	ck_assert_uint_le(m->frees, m->mallocs);
	ck_assert_uint_le(m->alloc, m->total_alloc);
	ck_assert_uint_le(m->stack_inuse, m->stack_sys);
	ck_assert_uint_le(m->mspan_inuse, m->mspan_sys);
	ck_assert_uint_le(m->mcache_inuse, m->mcache_sys);
}

static void check_pauses(const rt_memstats *m)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < RT_PAUSES; i++) {
		sum += m->pause_ns[i];
		if (i >= m->num_gc)
			ck_assert(m->pause_ns[i] == 0 && m->pause_end[i] == 0);
	}
	if (m->num_gc <= RT_PAUSES)
		ck_assert_uint_eq(sum, m->pause_total_ns);
	else
		ck_assert_uint_lt(sum, m->pause_total_ns);
	ck_assert_uint_le(m->num_forced_gc, m->num_gc);
	ck_assert_uint_eq(
	    m->last_gc, m->pause_end[(m->num_gc + RT_PAUSES - 1) % RT_PAUSES]);
}

TEST(sums_of_parts_are_the_whole, .n = RT_ARRAY_LEN(histories))
{
	moment(_i);
	check_sums(&after);
	check_pauses(&after);
}

TEST(a_recount_finds_the_same, .n = RT_ARRAY_LEN(histories))
{
	struct comparison c = {0};

	histories[_i]();
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	read_into(&after);
	recount_compare(&after, &c);
	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
	compared(&c);
	ck_assert_uint_ge(c.compared, 250);
}

TEST(a_flushed_heap_reads_the_same_live, .n = RT_ARRAY_LEN(histories))
{
	struct comparison c = {0};

	histories[_i]();
	read_into(&before);
	live_into(&after);
	compare_memstats(&c, &after, &before);
	ck_assert_mem_eq(after.pause_ns, before.pause_ns,
			 sizeof after.pause_ns);
	ck_assert_mem_eq(after.pause_end, before.pause_end,
			 sizeof after.pause_end);
	ck_assert_uint_eq(after.pause_total_ns, before.pause_total_ns);
	ck_assert_uint_eq(after.last_gc, before.last_gc);
	ck_assert_uint_eq(after.num_gc, before.num_gc);
	ck_assert_uint_eq(after.num_forced_gc, before.num_forced_gc);
	ck_assert_double_eq(after.gc_cpu_fraction, before.gc_cpu_fraction);
	ck_assert_uint_eq(after.enable_gc, before.enable_gc);
	compared(&c);
}

TEST(reading_twice_changes_nothing, .n = RT_ARRAY_LEN(histories))
{
	struct comparison c = {0};

	histories[_i]();
	read_into(&before);
	read_into(&after);
	compare_memstats(&c, &after, &before);
	compared(&c);
}

// ---- fields ----

// read_stopped does not call rt_read_memstats, because that clears the struct
// first.
static void read_stopped(rt_memstats *m)
{
	struct text report;

	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	mstats_read(m, &report);
	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
}

static void read_live(rt_memstats *m)
{
	ck_assert_int_eq(rt_read_memstats_live(m), RT_OK);
}

static void (*const readers[])(rt_memstats *) = {read_stopped, read_live};

GROUP(fields, .setup = begin, .timeout = 120);

// Whatever was in the struct before is gone, even from its spare bytes.
TEST(every_byte_is_written, .n = RT_ARRAY_LEN(readers))
{
	many(100, 50, false);
	rt_gc();
	memset(&before, 0, sizeof before);
	memset(&after, 0xff, sizeof after);
	readers[_i](&before);
	readers[_i](&after);
	ck_assert_mem_eq(&before, &after, sizeof before);
	ck_assert_mem_eq(after.spare, "\0\0\0\0\0", sizeof after.spare);
	ck_assert_uint_eq(after.lookups, 0);
	ck_assert_uint_eq(after.debug_gc, 0);
}

TEST(a_new_heap_is_all_but_empty)
{
	read_into(&after);
	ck_assert_uint_eq(after.alloc, 0);
	ck_assert_uint_eq(after.total_alloc, 0);
	ck_assert_uint_eq(after.mallocs, 0);
	ck_assert_uint_eq(after.frees, 0);
	ck_assert_uint_eq(after.heap_sys, 0);
	ck_assert_uint_eq(after.stack_sys, 0);
	ck_assert_uint_eq(after.lookups, 0);
	ck_assert_uint_eq(after.buckhash_sys, 0);
	ck_assert_uint_eq(after.mcache_inuse, sizeof(struct rt_mcache));
	ck_assert_uint_eq(after.mcache_sys,
			  sysmem_round(sizeof(struct rt_mcache)));
	ck_assert_uint_gt(after.other_sys, 0);
	ck_assert_uint_lt(after.sys, 1 << 20);
	ck_assert_uint_eq(after.last_gc, 0);
	ck_assert_uint_eq(after.num_gc, 0);
	ck_assert_uint_eq(after.num_forced_gc, 0);
	ck_assert_double_eq(after.gc_cpu_fraction, 0);
	ck_assert_uint_eq(after.enable_gc, 1);
	ck_assert_uint_eq(after.debug_gc, 0);
	for (unsigned i = 0; i < RT_BY_SIZE; i++) {
		ck_assert_uint_eq(after.by_size[i].size,
				  sizeclass_table[i].size);
		ck_assert_uint_eq(after.by_size[i].pad, 0);
	}
}

TEST(a_collection_shows_in_its_fields)
{
	struct timespec t;
	uint64_t at;

	many(1000, 20000, true);
	clock_gettime(CLOCK_REALTIME, &t);
	at = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
	read_into(&before);
	ck_assert_int_eq(rt_gc(), RT_OK);
	read_into(&after);
	ck_assert_uint_eq(after.num_gc, before.num_gc + 1);
	ck_assert_uint_eq(after.num_forced_gc, before.num_forced_gc + 1);
	ck_assert_uint_ge(after.last_gc, at);
	ck_assert_uint_lt(after.last_gc, at + UINT64_C(60000000000));
	ck_assert_uint_eq(after.pause_end[before.num_gc % RT_PAUSES],
			  after.last_gc);
	ck_assert_uint_gt(after.pause_ns[before.num_gc % RT_PAUSES], 0);
	ck_assert_uint_eq(MORE(pause_total_ns),
			  after.pause_ns[before.num_gc % RT_PAUSES]);
	ck_assert_double_gt(after.gc_cpu_fraction, 0);
	ck_assert_double_le(after.gc_cpu_fraction, 1);
	ck_assert_uint_gt(after.frees, before.frees);
	ck_assert_uint_eq(after.mallocs, before.mallocs);
	ck_assert_uint_eq(after.total_alloc, before.total_alloc);
	ck_assert_uint_lt(after.alloc, before.alloc);
}

TEST(a_collection_by_the_pacer_is_not_forced)
{
	for (unsigned i = 0; i < 3000; i++)
		held[0] = rt_alloc_noscan(65536);
	read_into(&after);
	ck_assert_uint_gt(after.num_gc, 0);
	ck_assert_uint_eq(after.num_forced_gc, 0);
	ck_assert_uint_lt(after.heap_sys, UINT64_C(3000) * 65536);
}

TEST(next_gc_is_the_goal)
{
	int old;

	many(1000, 20000, true);
	ck_assert_int_eq(rt_gc(), RT_OK);
	read_into(&after);
	ck_assert_uint_eq(after.next_gc, atomic_u64_load_relaxed(&pacer.goal));
	ck_assert_uint_gt(after.next_gc, after.alloc);
	ck_assert_int_eq(rt_set_gc_percent(-1, &old), RT_OK);
	ck_assert_int_eq(old, 100);
	read_into(&after);
	ck_assert_uint_eq(after.next_gc, UINT64_MAX);
	ck_assert_uint_eq(after.enable_gc, 1);
}

TEST(stacks_show_and_vanish)
{
	void *small, *large;

	read_into(&before);
	small = rt_stack_alloc(2048);
	large = rt_stack_alloc(1 << 20);
	read_into(&after);
	ck_assert_uint_eq(after.stack_inuse, (32 << 10) + (1 << 20));
	ck_assert_uint_eq(after.stack_sys, after.stack_inuse);
	ck_assert_uint_eq(after.alloc, before.alloc);
	ck_assert_int_eq(rt_stack_free(small, 2048), RT_OK);
	ck_assert_int_eq(rt_stack_free(large, 1 << 20), RT_OK);
	read_into(&after);
	ck_assert_uint_eq(after.stack_inuse, 0);
	ck_assert_uint_eq(after.heap_inuse, before.heap_inuse);
}

static void *stay_attached(void *arg)
{
	pthread_barrier_t *b = arg;

	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	pthread_barrier_wait(b);
	pthread_barrier_wait(b);
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	return NULL;
}

static void *wait_at(void *arg)
{
	pthread_barrier_wait(arg);
	return NULL;
}

TEST(every_attached_thread_has_a_cache)
{
	uint64_t mc = sizeof(struct rt_mcache);
	pthread_barrier_t b;
	pthread_t t[6];

	pthread_barrier_init(&b, NULL, 7);
	for (unsigned i = 0; i < 6; i++)
		t[i] = start_thread(stay_attached, &b);
	rt_call_blocking(wait_at, &b);
	read_into(&after);
	ck_assert_uint_eq(after.mcache_inuse, 7 * mc);
	ck_assert_uint_eq(after.mcache_sys, 7 * sysmem_round(mc));
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	pthread_barrier_wait(&b);
	for (unsigned i = 0; i < 6; i++)
		join_thread(t[i]);
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	read_into(&after);
	ck_assert_uint_eq(after.mcache_inuse, mc);
	// Some caches are kept for the next threads, until memory is released.
	ck_assert_uint_eq(after.mcache_sys,
			  (1 + MCACHE_KEPT) * sysmem_round(mc));
	ck_assert_int_eq(rt_free_os_memory(), RT_OK);
	read_into(&after);
	ck_assert_uint_eq(after.mcache_sys, sysmem_round(mc));
}

TEST(released_memory_shows_as_released)
{
	held[0] = rt_alloc_noscan(20 << 20);
	memset(held[0], 1, 20 << 20);
	read_into(&before);
	held[0] = NULL;
	ck_assert_int_eq(rt_free_os_memory(), RT_OK);
	read_into(&after);
	ck_assert_uint_eq(after.heap_sys, before.heap_sys);
	ck_assert_uint_eq(after.heap_released, after.heap_idle);
	ck_assert_uint_ge(after.heap_released,
			  before.heap_released + (20 << 20));
}

// ---- scripts ----

static void script(size_t n, unsigned count)
{
	read_into(&before);
	for (unsigned i = 0; i < count; i++)
		held[0] = rt_alloc_noscan(n);
	read_into(&after);
}

GROUP(scripts, .setup = begin, .timeout = 120);

TEST(a_thousand_bytes_share_blocks)
{
	script(1, 1000);
	ck_assert_uint_eq(MORE(mallocs), 1000);
	ck_assert_uint_eq(MORE(frees), 937);
	ck_assert_uint_eq(MORE(total_alloc), 1008);
	ck_assert_uint_eq(MORE(by_size[2].mallocs), 63);
	ck_assert_uint_eq(MORE(heap_objects), 63);
}

TEST(a_read_ends_the_tiny_block)
{
	for (unsigned i = 0; i < 10; i++)
		script(1, 1);
	ck_assert_uint_eq(after.mallocs, 10);
	ck_assert_uint_eq(after.frees, 0);
	ck_assert_uint_eq(after.total_alloc, 160);
}

TEST(a_large_object_counts_in_pages)
{
	script(40000, 1);
	ck_assert_uint_eq(MORE(mallocs), 1);
	ck_assert_uint_eq(MORE(total_alloc), 40960);
	ck_assert_uint_eq(MORE(heap_inuse), 40960);
	ck_assert_uint_eq(MORE(alloc), 40960);
	ck_assert_mem_eq(after.by_size, before.by_size, sizeof after.by_size);
}

TEST(a_million_objects_are_a_million_mallocs)
{
	const unsigned million = 1048576;

	script(64, million);
	ck_assert_uint_eq(MORE(mallocs), million);
	ck_assert_uint_eq(MORE(by_size[6].mallocs), million);
	ck_assert_uint_eq(MORE(total_alloc), 64 << 20);
	ck_assert_uint_eq(after.by_size[6].size, 64);
	ck_assert_uint_eq(after.heap_objects * 64, after.alloc);
	ck_assert_uint_lt(after.alloc, 64 << 20); // most of them died
}

TEST(no_bytes_count_nothing)
{
	script(0, 100);
	ck_assert_uint_eq(after.mallocs, before.mallocs);
	ck_assert_uint_eq(after.total_alloc, before.total_alloc);
}

TEST(the_largest_class_is_for_requests_of_few_bytes_less)
{
	ck_assert_int_eq(rt_set_gc_percent(-1, NULL), RT_OK);
	script(32760, 3);
	ck_assert_uint_eq(MORE(total_alloc), 3 * 32768);
	moment(0);
	ck_assert_uint_eq(totals.small_alloc_count[67], 3);
	ck_assert_uint_eq(totals.large_alloc_count, 0);
	script(32761, 3);
	ck_assert_uint_eq(MORE(total_alloc), 3 * 32768);
	moment(0);
	ck_assert_uint_eq(totals.small_alloc_count[67], 3);
	ck_assert_uint_eq(totals.large_alloc_count, 3);
}

GROUP(predicted, .timeout = 120);

TEST(any_script_is_predicted, .n = 2)
{
	struct comparison c = {0};
	struct ledger l;
	struct rng r;

	begin_with(_i, RT_CHECK_FATAL);
	rng_init(&r, "any_script_is_predicted");
	ledger_init(&l, _i);
	ck_assert_int_eq(rt_set_gc_percent(-1, NULL), RT_OK);
	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 0; i < 3000; i++) {
			size_t n = rng_below(&r, 2) ? rng_below(&r, 40)
						    : rng_below(&r, 2000);
			bool noscan = rng_below(&r, 2);

			held[i % HELD] =
			    noscan ? rt_alloc_noscan(n) : rt_alloc(n);
			ledger_alloc(&l, n, noscan);
		}
		ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
		read_into(&after);
		ledger_compare(&l, &after, &c);
		recount_compare(&after, &c);
		ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
		ledger_flushed(&l);
		if (round % 3 == 0)
			rt_gc();
	}
	compared(&c);
}

// ---- which threads may ask ----

static void *read_here(void *arg)
{
	read_into(arg);
	return NULL;
}

GROUP(readers, .setup = begin, .timeout = 120);

// An unattached reader flushes what attached threads hold.
TEST(a_foreign_thread_reads_everything)
{
	many(64, 100, false);
	many(1, 10, true);
	run_beside(read_here, &after);
	ck_assert_uint_eq(after.mallocs, 110);
	ck_assert_uint_eq(after.total_alloc, 6416);
	check_sums(&after);
}

TEST(a_thread_in_a_region_reads_everything)
{
	many(64, 100, false);
	rt_call_blocking(read_here, &after);
	ck_assert_uint_eq(after.mallocs, 100);
	ck_assert_uint_eq(after.total_alloc, 6400);
	check_sums(&after);
}

// ---- the live read ----

TEST(live_lags_by_what_caches_hold)
{
	read_into(&before);
	many(64, 3, false);
	many(1, 5, true);
	live_into(&after);
	ck_assert_uint_eq(after.mallocs, before.mallocs);
	ck_assert_uint_eq(after.alloc, before.alloc);
	// Pages are never late.
	ck_assert_uint_eq(after.heap_inuse, 2 * PAGE);
	check_sums(&after);
	// Large objects are never late, either.
	held[0] = rt_alloc(40000);
	live_into(&after);
	ck_assert_uint_eq(after.mallocs, before.mallocs + 1);
	ck_assert_uint_eq(after.alloc, 40960);
	read_into(&after);
	ck_assert_uint_eq(after.mallocs, before.mallocs + 9);
	ck_assert_uint_eq(after.alloc, 40960 + 3 * 64 + 16);
}

// A mapping that ends between two loads of a live read leaves less mapped than
// the read found in use before.
TEST(live_in_use_is_never_more_than_mapped)
{
	const int64_t late = 1 << 30;

	gauge_add(&gauges.mspan_inuse, late);
	gauge_add(&gauges.mcache_inuse, late);
	live_into(&after);
	gauge_add(&gauges.mspan_inuse, -late);
	gauge_add(&gauges.mcache_inuse, -late);
	ck_assert_uint_eq(after.mspan_inuse, after.mspan_sys);
	ck_assert_uint_eq(after.mcache_inuse, after.mcache_sys);
	check_sums(&after);
}

static atomic_u32 stop_mutators;

static void *mutate(void *arg)
{
	struct rng r = {.state = (uint64_t)(uintptr_t)arg};
	void *mine[32] = {0};

	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	while (!atomic_u32_load_relaxed(&stop_mutators)) {
		size_t n = rng_below(&r, 100) ? 1 + rng_below(&r, 3000)
					      : 1 + rng_below(&r, 200000);

		mine[rng_below(&r, 32)] =
		    rng_below(&r, 2) ? rt_alloc(n) : rt_alloc_noscan(n);
		rt_keep_alive(mine[0]);
		if (rng_below(&r, 3000) == 0)
			rt_gc();
		if (rng_below(&r, 5000) == 0) {
			rt_thread_detach();
			rt_thread_attach(0);
		}
	}
	rt_thread_detach();
	return NULL;
}

// grows tells whether each value that can only grow is at least what it was.
static bool grows(const rt_memstats *old, const rt_memstats *new)
{
	bool ok = old->mallocs <= new->mallocs && old->frees <= new->frees &&
		  old->total_alloc <= new->total_alloc &&
		  old->heap_sys + old->stack_sys + old->gc_sys <=
		      new->heap_sys + new->stack_sys + new->gc_sys &&
		  old->num_gc <= new->num_gc;

	for (unsigned i = 0; i < RT_BY_SIZE; i++)
		ok &= old->by_size[i].mallocs <= new->by_size[i].mallocs &&
		      old->by_size[i].frees <=
			  new->by_size[i].frees &&new->by_size[i].frees <=
			  new->by_size[i].mallocs;
	return ok;
}

TEST(live_reads_are_consistent_beside_mutators)
{
	const unsigned reads = RT_TSAN || RT_ASAN ? 2000 : 20000;
	pthread_t t[3];
	unsigned collections;

	for (uintptr_t i = 0; i < 3; i++)
		t[i] = start_thread(mutate, (void *)(i + 1));
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	live_into(&before);
	collections = before.num_gc;
	for (unsigned i = 0; i < reads || after.num_gc < collections + 10;
	     i++) {
		live_into(&after);
		check_sums(&after);
		ck_assert(grows(&before, &after));
		before = after;
		if (i % 64 == 0) {
			read_into(&after);
			check_sums(&after);
			ck_assert(grows(&before, &after));
			before = after;
		}
	}
	atomic_u32_store_relaxed(&stop_mutators, 1);
	for (unsigned i = 0; i < 3; i++)
		join_thread(t[i]);
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
}

// ---- rt_read_gcstats ----

GROUP(fields);

TEST(gcstats_are_the_pauses_newest_first, .n = 6)
{
	static const unsigned collections[] = {0, 1, 255, 256, 257, 300};
	uint64_t buf[RT_GCSTATS_WORDS + 1];
	unsigned num_gc = collections[_i];
	unsigned n = num_gc < RT_PAUSES ? num_gc : RT_PAUSES;
	size_t used;

	for (unsigned i = 0; i < num_gc; i++)
		ck_assert_int_eq(rt_gc(), RT_OK);
	memset(buf, 0xaa, sizeof buf);
	ck_assert_int_eq(rt_read_gcstats(buf, RT_GCSTATS_WORDS, &used), RT_OK);
	read_into(&after);
	ck_assert_uint_eq(after.num_gc, num_gc);
	ck_assert_uint_eq(after.num_forced_gc, num_gc);
	ck_assert_uint_eq(used, 2 * n + 3);
	for (unsigned i = 0; i < n; i++) {
		unsigned slot = (num_gc - 1 - i) % RT_PAUSES;

		ck_assert_uint_gt(buf[i], 0);
		ck_assert_uint_eq(buf[i], after.pause_ns[slot]);
		ck_assert_uint_eq(buf[n + i], after.pause_end[slot]);
	}
	ck_assert_uint_eq(buf[2 * n], after.last_gc);
	ck_assert_uint_eq(buf[2 * n + 1], num_gc);
	ck_assert_uint_eq(buf[2 * n + 2], after.pause_total_ns);
	ck_assert_uint_eq(buf[2 * n + 3], UINT64_C(0xaaaaaaaaaaaaaaaa));
	check_pauses(&after);
}
