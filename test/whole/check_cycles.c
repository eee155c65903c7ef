// Records of collections: each agrees with the statistics, and is there when an
// exact read counts its collection.
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/os/settings.h"
#include "runtime/spans/mcache.h"
#include "gc/mark/gain.h"
#include "gc/cycle/pacer.h"
#include "gc/cycle/worker.h"
#include "test/harness/await.h"
#include "test/harness/fault.h"
#include "test/harness/heap.h"
#include "test/harness/late.h"
#include "test/harness/kind.h"
#include "test/harness/thread.h"

#define MIB (UINT64_C(1) << 20)

static rt_cycle newest(void)
{
	rt_cycle c;

	must(rt_read_cycle(0, &c));
	return c;
}

// greatest returns the goal that the terms give without the limit.
static uint64_t greatest(const rt_cycle *c)
{
	return base_max(base_max(c->goal_percent, c->goal_headroom),
			base_max(c->goal_minimum, c->goal_before));
}

// check_sums requires what holds in every record.
static void check_sums(const rt_cycle *c)
{
	ck_assert_uint_eq(c->struct_size, sizeof *c);
	ck_assert_uint_eq(c->pause_ns, c->stopping_ns + c->prepare_ns +
					   c->mark_ns + c->sweep_ns +
					   c->finish_ns);
	ck_assert_uint_ge(c->markers, 1);
	ck_assert_uint_le(c->helped_objects, c->marked_objects);
	ck_assert_uint_le(c->heap_live, c->heap_flushed);
	ck_assert_uint_eq(c->reason, RT_STOP_GC_MARK_TERM);
	ck_assert_uint_le(c->slowest, c->nthreads + 64);
	ck_assert_uint_eq(c->spare, 0);
	ck_assert_uint_ge(c->used, c->heap_start);
	ck_assert_uint_eq(c->next_goal, base_min(greatest(c), c->goal_limit));
	ck_assert_uint_le(c->sweep_freed, c->sweep_inuse);
	ck_assert_uint_le(c->limiter_limiting, 1);
	ck_assert_uint_eq(c->sweep_beside, settings()->sweep == 2 &&
					       c->cause != RT_CAUSE_MEMORY);
}

// check_with requires that an exact read after a collection has the same
// figures as the record.
static void check_with(const rt_memstats *m, const rt_cycle *c)
{
	uint32_t slot = (m->num_gc + RT_PAUSES - 1) % RT_PAUSES;

	ck_assert_uint_eq((uint32_t)c->number, m->num_gc);
	ck_assert_uint_eq(c->pause_ns, m->pause_ns[slot]);
	ck_assert_uint_eq(c->end, m->pause_end[slot]);
	ck_assert_uint_eq(c->end, m->last_gc);
	ck_assert_uint_eq(c->next_goal, m->next_gc);
	ck_assert(c->gc_cpu_fraction == m->gc_cpu_fraction);
	// Pages that a sweep beside the threads frees after the stop still
	// count as in use in the record.
	if (settings()->sweep == 0)
		ck_assert_uint_eq(c->heap_inuse, m->heap_inuse);
	else
		ck_assert_uint_ge(c->heap_inuse, m->heap_inuse);
	ck_assert_uint_le(c->heap_idle, m->heap_idle);
	ck_assert_uint_le(c->heap_released, c->heap_idle);
}

GROUP(figures, .timeout = 60);

TEST(a_record_has_the_figures_of_the_statistics)
{
	uint64_t last = 0, before = nanotime(), freed = 0;

	heap_begin();
	rt_roots_add(&last, &last + 1, RT_ROOT_EXACT);
	for (uint32_t n = 1; n <= 5; n++) {
		void *kept = rt_alloc(MIB + n * 8192);
		rt_memstats m;
		rt_cycle c;

		last = (uint64_t)(uintptr_t)kept;
		rt_alloc(3 * MIB);
		must(rt_gc());
		m = heap_stats();
		c = newest();
		ck_assert_uint_eq(c.number, n);
		check_sums(&c);
		check_with(&m, &c);
		ck_assert_uint_eq(c.cause, RT_CAUSE_FORCED);
		ck_assert_uint_eq(c.forced, 1);
		ck_assert_uint_eq(c.heap_live, m.heap_alloc);
		ck_assert_uint_ge(c.heap_start, 4 * MIB);
		// All that was allocated, less what was freed before.
		ck_assert_uint_eq(c.heap_flushed, m.total_alloc - freed);
		freed = m.total_alloc - m.heap_alloc;
		ck_assert_uint_eq(c.marked_objects, m.heap_objects);
		ck_assert_uint_ge(c.scan_heap, MIB);
		ck_assert_uint_eq(c.scan_heap,
				  heap_metric("/gc/scan/heap:bytes"));
		ck_assert_uint_eq(c.scan_stack,
				  heap_metric("/gc/scan/stack:bytes"));
		ck_assert_uint_eq(c.scan_globals,
				  heap_metric("/gc/scan/globals:bytes"));
		ck_assert_uint_gt(c.scan_stack, 0);
		ck_assert_uint_ge(c.scan_globals, 8);
		ck_assert_uint_eq(c.max_procs, (uint32_t)settings()->max_procs);
		ck_assert_uint_eq(c.nthreads, 1);
		ck_assert_uint_gt(c.mark_cpu_ns, 0);
		ck_assert_uint_le(c.start_ns + c.pause_ns + c.release_ns,
				  nanotime() - before);
	}
}

// Each record has the figures that a trace of the pacer would show, even though
// there is no trace.
TEST(the_figures_of_the_pacer)
{
	enum { STACK = 64 << 10, OUTSIDE = 1000 };
	uint64_t total = 0;
	void **root;

	heap_begin();
	root = (void **)heap_table(10, RT_ROOT_EXACT);
	for (unsigned i = 0; i < 10; i++) {
		rt_memstats before, after;
		rt_cycle c;

		root[i] = rt_alloc(10000U << i % 8);
		rt_alloc_noscan(100000);
		ck_assert_ptr_nonnull(rt_stack_alloc(STACK));
		must(rt_adjust_external(OUTSIDE));
		must(rt_set_gc_percent((int)i * 10, NULL));
		before = heap_stats();
		must(rt_gc());
		after = heap_stats();
		c = newest();
		check_sums(&c);
		ck_assert_uint_eq(c.used, before.heap_alloc + STACK +
					      (i + 1) * OUTSIDE);
		ck_assert_uint_eq(c.allocated, before.total_alloc - total);
		total = before.total_alloc;
		ck_assert_uint_eq(c.sweep_inuse, before.heap_inuse);
		ck_assert_uint_eq(c.sweep_inuse - after.heap_inuse,
				  settings()->sweep == 0
				      ? c.sweep_freed
				      : before.heap_inuse - after.heap_inuse);
		ck_assert_uint_eq(c.limiter_fill_ns, pacer.limiter.fill);
		ck_assert_uint_eq(c.limiter_capacity_ns,
				  pacer.limiter.capacity);
		ck_assert_uint_eq(c.limiter_percent, 50);
		ck_assert_uint_eq(c.limiter_limiting, pacer.limiter.limiting);
		ck_assert_uint_le(c.process_cpu_ns, c.interval_cpu_ns);
		ck_assert_uint_eq(
		    c.goal_percent,
		    pacer_explain(&pacer.rule, &pacer.found, 0).percent);
		ck_assert_uint_eq(c.goal_limit, UINT64_MAX);
	}
}

// Memory that rt_free_os_memory released is in the record of the next
// collection, and in no other.
TEST(what_the_host_released)
{
	rt_config config = heap_config(HEAP_QUIET);
	uint64_t before;
	rt_cycle c;

	config.scavenge = 0;
	heap_start(config);
	for (int i = 0; i < 3; i++) {
		rt_alloc_noscan(8 * MIB);
		must(rt_gc());
		must(rt_gc()); // all is swept
		before = heap_stats().heap_released;
		must(rt_free_os_memory());
		ck_assert_uint_eq(newest().scavenged_forced, 0);
		before = heap_stats().heap_released - before;
		ck_assert_uint_ge(before, 8 * MIB);
		must(rt_gc());
		c = newest();
		ck_assert_uint_eq(c.scavenged_forced, before);
		ck_assert_uint_eq(c.scavenged_assist, 0);
		ck_assert_uint_eq(c.scavenged_background, 0);
		must(rt_gc());
		ck_assert_uint_eq(newest().scavenged_forced, 0);
	}
}

// A record never changes, and each collection starts after the end of the
// previous one.
TEST(records_follow_each_other)
{
	static rt_cycle was[RT_CYCLES + 20];
	rt_cycle c;

	heap_begin();
	ck_assert_int_eq(rt_read_cycle(0, &c), RT_ENOENT);
	ck_assert_int_eq(rt_read_cycle(1, &c), RT_ENOENT);
	for (unsigned n = 1; n < RT_ARRAY_LEN(was); n++) {
		must(rt_gc());
		was[n] = newest();
		ck_assert_uint_eq(was[n].number, n);
		ck_assert_uint_eq(was[n].goal,
				  n == 1 ? was[n].goal : was[n - 1].next_goal);
		if (n > 1)
			ck_assert_uint_ge(was[n].start_ns,
					  was[n - 1].start_ns +
					      was[n - 1].pause_ns);
	}
	for (unsigned n = 1; n < RT_ARRAY_LEN(was); n++) {
		bool exists = RT_ARRAY_LEN(was) - 1 - n < RT_CYCLES;

		ck_assert_int_eq(rt_read_cycle(n, &c),
				 exists ? RT_OK : RT_ENOENT);
		ck_assert(!exists || memcmp(&c, &was[n], sizeof c) == 0);
	}
	ck_assert_int_eq(rt_read_cycle(RT_ARRAY_LEN(was), &c), RT_ENOENT);
	ck_assert_int_eq(rt_read_cycle(UINT64_MAX, &c), RT_ENOENT);
}

TEST(a_new_heap_has_no_record)
{
	rt_cycle c;

	for (int i = 0; i < 2; i++) {
		heap_begin();
		ck_assert_int_eq(rt_read_cycle(0, &c), RT_ENOENT);
		must(rt_gc());
		ck_assert_uint_eq(newest().number, 1);
		must(rt_fini());
		ck_assert_int_eq(rt_read_cycle(0, &c), RT_ESTATE);
	}
}

// A host may be compiled with a shorter or a longer struct.  The library fills
// what it knows, and zeroes the rest.
TEST(other_sizes_of_the_struct)
{
	static const size_t sizes[] = {16,
				       20,
				       24,
				       offsetof(rt_cycle, scavenged_forced),
				       offsetof(rt_cycle, limiter_percent),
				       sizeof(rt_cycle) - 8,
				       sizeof(rt_cycle),
				       sizeof(rt_cycle) + 8,
				       4096};
	static union {
		rt_cycle c;
		unsigned char byte[4096 + 8];
	} host;
	rt_cycle c;

	heap_begin();
	must(rt_gc());
	c = newest();
	for (unsigned i = 0; i < RT_ARRAY_LEN(sizes); i++) {
		size_t n = sizes[i], both = base_min(n, sizeof c);

		memset(&host, 0xa5, sizeof host);
		must(rt_read_cycle_sized(0, &host.c, n));
		ck_assert_uint_eq(host.c.struct_size, both);
		c.struct_size = both;
		ck_assert_mem_eq(&host.c, &c, both);
		ck_assert(heap_is_zero(host.byte + both, n - both));
		ck_assert_uint_eq(host.byte[n], 0xa5);
	}
}

// ---- causes ----

static void allocate(void)
{
	while (rt_read_cycle(0, &(rt_cycle){0}) == RT_ENOENT)
		rt_alloc_noscan(60000);
}

static void find_no_memory(void)
{
	ck_assert_ptr_nonnull(rt_alloc_noscan(80 * MIB));
	rt_alloc_noscan(80 * MIB); // NULL, if a word leads to the first
}

static void ask(void)
{
	must(rt_gc());
}

static void ask_release(void)
{
	must(rt_free_os_memory());
}

static const struct {
	enum rt_cause cause;
	uint32_t forced;
	int percent;
	int64_t limit;
	uint32_t gcstress;
	void (*run)(void);
} causes[] = {
    {RT_CAUSE_GOAL, 0, 100, INT64_MAX, 0, allocate},
    {RT_CAUSE_GOAL, 0, 100, 400 * MIB, 0, allocate},
    {RT_CAUSE_LIMIT, 0, -1, 20 * MIB, 0, allocate},
    {RT_CAUSE_LIMIT, 0, 10000, 20 * MIB, 0, allocate},
    {RT_CAUSE_FORCED, 1, 100, INT64_MAX, 0, ask},
    {RT_CAUSE_FORCED, 1, -1, 20 * MIB, 0, ask_release},
    {RT_CAUSE_MEMORY, 0, -1, INT64_MAX, 0, find_no_memory},
    {RT_CAUSE_STRESS, 0, -1, INT64_MAX, 1, allocate},
};

TEST(the_cause_is_told, .n = RT_ARRAY_LEN(causes))
{
	rt_config config = heap_config(causes[_i].percent);
	rt_cycle c;

	config.memory_limit = causes[_i].limit;
	config.gcstress = causes[_i].gcstress;
	config.max_heap = 128 * MIB;
	heap_start(config);
	causes[_i].run();
	must(rt_read_cycle(1, &c));
	ck_assert_uint_eq(c.cause, causes[_i].cause);
	ck_assert_uint_eq(c.forced, causes[_i].forced);
	check_sums(&c);
}

// ---- how far the goal is passed ----

enum { SIZES = 8, KEPT = 3000 };

static size_t size_of(unsigned i)
{
	return (size_t)16 << i;
}

// most_between returns the most bytes that one thread can publish between two
// tests of the goal, if it allocates objects of these sizes.  It tests the goal
// when a cached span is used up.  So it uses up at most a span of each class,
// and publishes at most one batch that it had gathered before.
static uint64_t most_between(void)
{
	uint64_t most = MCACHE_LIVE_BATCH;

	for (unsigned i = 0; i < SIZES; i++) {
		unsigned c = sizeclass_of(size_of(i));

		most += (uint64_t)sizeclass_table[c].npages << RT_PAGE_SHIFT;
	}
	return most;
}

// churn keeps some objects of each size, chosen at random.
static void churn(void)
{
	uintptr_t *kept = heap_table(KEPT, RT_ROOT_EXACT);
	struct rng rng;

	rng_init(&rng, "churn");
	for (unsigned i = 0; i < 400000 / HEAP_CUT; i++) {
		size_t n = size_of((unsigned)rng_below(&rng, SIZES));

		kept[rng_below(&rng, KEPT)] = (uintptr_t)rt_alloc_noscan(n);
	}
}

// The trigger is the goal.  If all objects are small, a collection begins when
// the goal is reached, and before the heap has passed the goal by most_between.
TEST(the_goal_is_not_overshot, .n = 2)
{
	rt_config config = heap_config(100);
	uint64_t most = most_between(), last;
	rt_cycle c;

	config.sweep = _i == 0 ? 0 : 2;
	config.gc_threads = 0;
	config.heap_min = config.heap_headroom = MIB;
	heap_start_exact(config);
	churn();
	last = newest().number;
	ck_assert_uint_gt(last, 100 / HEAP_CUT);
	for (uint64_t n = last > 200 ? last - 200 : 1; n <= last; n++) {
		must(rt_read_cycle(n, &c));
		ck_assert_int_eq(c.cause, RT_CAUSE_GOAL);
		ck_assert_uint_ge(c.heap_start, c.goal);
		ck_assert_uint_lt(c.heap_start, c.goal + most);
	}
	heap_healthy();
	must(rt_fini());
}

// ---- threads ----

static struct {
	atomic_u32 end, reads, wrong;
} readers;

// was_overtaken tells whether so many collections followed the n-th that its
// record may be gone.
static bool was_overtaken(uint32_t n)
{
	rt_memstats m;

	must(rt_read_memstats(&m));
	return m.num_gc - n >= RT_CYCLES;
}

static void *read_exactly(void *arg)
{
	while (!atomic_u32_load_acquire(&readers.end)) {
		rt_memstats m;
		rt_cycle c;

		must(rt_read_memstats(&m));
		if (m.num_gc > 0 && rt_read_cycle(m.num_gc, &c) != RT_OK)
			atomic_u32_add_relaxed(&readers.wrong,
					       !was_overtaken(m.num_gc));
		else if (m.num_gc > 0 &&
			 (c.end != m.last_gc ||
			  c.pause_ns != m.pause_ns[(m.num_gc - 1) % RT_PAUSES]))
			atomic_u32_add_relaxed(&readers.wrong, 1);
		atomic_u32_add_relaxed(&readers.reads, 1);
	}
	return arg;
}

// An exact read never counts a collection whose record is not there.
TEST(an_exact_read_and_the_record_agree)
{
	pthread_t thread[2];

	heap_begin();
	for (int i = 0; i < 2; i++)
		thread[i] = start_thread(read_exactly, NULL);
	for (uint32_t n = 0; n < 300; n++) {
		must(rt_gc());
		if (n % 10 == 0) {
			must(rt_blocking_enter());
			await_at_least(&readers.reads, n / 10);
			must(rt_blocking_leave());
		}
	}
	atomic_u32_store_release(&readers.end, 1);
	for (int i = 0; i < 2; i++)
		join_beside(thread[i]);
	ck_assert_uint_eq(atomic_u32_load_relaxed(&readers.wrong), 0);
}

TEST(the_slowest_thread_is_named)
{
	pthread_t thread;
	rt_cycle c;

	heap_begin();
	thread = start_thread(poll_seldom, NULL);
	await_at_least(&late.running, 1);
	must(rt_gc());
	c = newest();
	check_sums(&c);
	ck_assert_uint_eq(c.nthreads, 2);
	ck_assert_uint_eq(c.slowest, atomic_u32_load_relaxed(&late.id));
	ck_assert_uint_ge(c.stopping_ns, 1000000);
	ck_assert_uint_ge(c.stopping_cpu_ns, c.stopping_ns);
	atomic_u32_store_release(&late.end, 1);
	join_beside(thread);
}

// ---- helpers ----

// Helpers are called after 8192 objects (gc/mark/drain.c).
enum { MARKED = 30000, CALLED = 10000 };

static atomic_u32 helped; // calls on a helper
static uint32_t own;	  // calls on the thread that collects

// trace_in_turn makes the thread that collects slow when it has called helpers,
// until a helper has marked something.  So the marking is not over before a
// helper comes.
static void trace_in_turn(rt_tracer *t, void *obj, size_t size, void *arg)
{
	(void)size, (void)arg;
	if (!rt_thread_self())
		atomic_u32_add_relaxed(&helped, 1);
	else if (own++ > MARKED + CALLED && // in the second collection
		 atomic_u32_load_relaxed(&helped) == 0)
		sleep_ns(1000 * 1000);
	rt_trace_ptr(t, *(void **)obj);
}

// Helpers count among the markers, with their own objects and time.
TEST(helpers_are_counted)
{
	rt_config config = heap_config(HEAP_QUIET);
	uintptr_t *table;
	uint32_t twice;
	int kind;
	rt_cycle c;

	config.max_procs = 3;
	heap_start(config);
	gain = (struct gain){.interval = UINT32_MAX}; // helpers are called
	kind = kind_make(.layout = RT_LAYOUT_TRACE, .trace = trace_in_turn);
	table = heap_table(MARKED, RT_ROOT_EXACT);
	for (unsigned i = 0; i < MARKED; i++)
		table[i] = (uintptr_t)rt_alloc_kind(kind, 32);
	must(rt_gc()); // makes the helpers
	ck_assert_uint_ne(atomic_u32_load_relaxed(&workers.running), 0);
	ck_assert_uint_eq(own, MARKED);
	must(rt_gc());
	ck_assert_uint_ne(atomic_u32_load_relaxed(&helped), 0);
	c = newest();
	check_sums(&c);
	ck_assert_uint_ge(c.marked_objects, MARKED);
	// If two markers reach an object at once, both follow it, and only one
	// of them counts it.
	twice = own - MARKED + atomic_u32_load_relaxed(&helped) - MARKED;
	ck_assert_uint_ge(c.helped_objects + twice,
			  atomic_u32_load_relaxed(&helped));
	ck_assert_uint_ge(c.markers, 2);
	ck_assert_uint_le(c.markers, 3);
}

// The child of a fork has the parent's records, and adds its own.
TEST(a_child_has_the_records_of_its_parent)
{
	rt_cycle before, c;
	int status;
	pid_t pid;

	heap_begin();
	for (int i = 0; i < 3; i++)
		must(rt_gc());
	before = newest();
	pid = fork();
	if (pid == 0) {
		c = newest();
		if (memcmp(&c, &before, sizeof c) != 0 || rt_gc() != RT_OK)
			_exit(1);
		c = newest();
		_exit(c.number == 4 && c.start_ns > before.start_ns ? 0 : 2);
	}
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

// ---- clocks ----

// A time is 0 if its beginning or its end is not known.  One reading is both
// the end of marking and the beginning of sweeping, so if that one is refused,
// both times are 0.  The sweep is in the stop, because the time of a later
// sweep may be 0 in any case.
TEST(a_refused_clock_moves_no_time_to_another_step)
{
	rt_config config = heap_config(HEAP_QUIET);
	unsigned no_mark = 0, no_sweep = 0, neither = 0;
	uint64_t nth = 0, refused;

	config.sweep = 0;
	heap_start(config);
	do {
		rt_cycle c;

		rt_alloc_noscan(2 * MIB);
		fault_fail(OSCALL_CLOCK, ++nth, 1, EINVAL);
		must(rt_gc());
		refused = fault_failed(OSCALL_CLOCK);
		fault_fail(OSCALL_CLOCK, 1, 0, 0);
		c = newest();
		no_mark += c.mark_cpu_ns == 0;
		no_sweep += c.sweep_cpu_ns == 0;
		neither += c.mark_cpu_ns == 0 && c.sweep_cpu_ns == 0;
	} while (refused > 0);
	ck_assert_uint_eq(no_mark, 2);
	ck_assert_uint_eq(no_sweep, 2);
	ck_assert_uint_eq(neither, 1);
}

// A clock that the system refuses reads 0.  Each reading of a collection is
// refused in turn, alone or with all later ones.  Even so no time is negative,
// which would make it huge.
TEST(refused_clocks_make_no_huge_time, .n = 2)
{
	uint64_t begun = nanotime(), nth = 0, refused;

	heap_begin();
	do {
		uint64_t all;
		rt_cycle c;

		rt_alloc_noscan(2 * MIB);
		fault_fail(OSCALL_CLOCK, ++nth, _i ? UINT64_MAX : 1, EINVAL);
		must(rt_gc());
		refused = fault_failed(OSCALL_CLOCK);
		fault_fail(OSCALL_CLOCK, 1, 0, 0);
		c = newest();
		check_sums(&c);
		all = nanotime() - begun;
		ck_assert_uint_le(c.pause_ns, all);
		ck_assert_uint_le(c.release_ns, all);
		ck_assert_uint_le(c.start_ns, all);
		ck_assert_uint_le(c.mark_cpu_ns, all);
		ck_assert_uint_le(c.sweep_cpu_ns, all);
	} while (refused > 0);
	ck_assert_uint_gt(nth, 10);
}
