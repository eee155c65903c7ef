// Memory that exists is found: at the limit of the heap, beside other threads,
// and with as few collections as one thread would need.
#include <pthread.h>

#include "runtime/spans/mcache.h"
#include "runtime/spans/mcentral.h"
#include "runtime/spans/stackalloc.h"
#include "runtime/world/stw.h"
#include "test/harness/await.h"
#include "test/harness/heap.h"

enum {
	LIMIT = 64 << 20,
	MOST_THREADS = 64,
	KEPT = LIMIT / 512, // roots
};

static void *kept[KEPT];
static pthread_t threads[MOST_THREADS];
static atomic_u32 failed; // wrong answers
static atomic_u32 ready, stop;

static void start(int percent)
{
	rt_config c = heap_config(percent);

	c.max_heap = LIMIT;
	heap_start_exact(c);
	ck_assert_int_eq(rt_roots_add(kept, kept + KEPT, RT_ROOT_EXACT), RT_OK);
}

static void keep(uint64_t bytes)
{
	for (unsigned i = 0; i < bytes / 4096; i++)
		ck_assert_ptr_nonnull(kept[i] = rt_alloc_noscan(4096));
}

static uint64_t collections(void)
{
	return heap_metric("/gc/cycles/total:gc-cycles");
}

static void expect(bool ok)
{
	if (!ok)
		atomic_u32_add_relaxed(&failed, 1);
}

static void run_threads(unsigned n, void *(*fn)(void *))
{
	for (uintptr_t i = 0; i < n; i++)
		threads[i] = start_thread(fn, (void *)i);
}

static void end_threads(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		join_beside(threads[i]);
	ck_assert_uint_eq(atomic_u32_load_acquire(&failed), 0);
}

static void attach(void)
{
	expect(rt_thread_attach(RT_THREAD_EXACT) == RT_OK);
}

static void detach(void)
{
	expect(rt_thread_detach() == RT_OK);
}

static void wait_a_moment(void)
{
	rt_safepoint();
	oscall_yield();
}

// ---- every NULL is true ----

static const unsigned nthreads[] = {2, 4, 8, 16};
static unsigned running;

static void *make_garbage(void *arg)
{
	uint64_t n = (UINT64_C(384) << 20) / HEAP_CUT / running;

	attach();
	for (; n > 512; n -= 512)
		expect(rt_alloc_noscan(512) != NULL);
	detach();
	return arg;
}

GROUP(supply, .timeout = 60);

// A third of the heap is garbage at any time, and no thread holds more than a
// few hundred KiB.  So no allocation may return NULL.
TEST(garbage_beside_others_is_never_refused, .n = RT_ARRAY_LEN(nthreads))
{
	running = nthreads[_i];
	start(100);
	keep(44 << 20);
	run_threads(running, make_garbage);
	end_threads(running);
	ck_assert_uint_ge(collections(), 300 / HEAP_CUT / 20);
	heap_live();
}

static void *make_large(void *arg)
{
	attach();
	for (unsigned i = 0; i < 40; i++)
		expect(rt_alloc_noscan(2 << 20) != NULL);
	atomic_u32_store_release(&stop, 1);
	detach();
	return arg;
}

static void *eat(void *arg)
{
	attach();
	while (!atomic_u32_load_acquire(&stop))
		expect(rt_alloc_noscan(512) != NULL);
	detach();
	return arg;
}

// One thread allocates objects that fit only after a collection, beside threads
// that use up what the collection has freed.  Each of the four threads may keep
// one object alive, in any place of the 14 MiB that do not live for good.  So
// some 2.8 MiB are free in a row after each collection, and no allocation may
// return NULL.
TEST(large_objects_are_not_outrun)
{
	start(-1);
	keep(50 << 20);
	running = 5;
	threads[0] = start_thread(make_large, NULL);
	for (unsigned i = 1; i < running; i++)
		threads[i] = start_thread(eat, NULL);
	end_threads(running);
	heap_live();
}

enum { PIECE = 2048, FILLERS = 4 }; // of a class whose spans have one page

// room tells whether there is memory for a piece, in caches or in the heap.
// The caller must have stopped the world.
static bool room(void)
{
	struct rt_proc *p = proc_self();
	spanclass sc = spanclass_make(sizeclass_of16(PIECE), RT_NOSCAN);
	struct mspan *s;

	mcache_flush_all(p);
	stackalloc_flush_all(p);
	mcache_flush_pages_all();
	s = mcentral_pop(sc);
	if (s)
		mcentral_push(s);
	return s || pagealloc_count_free(&mheap.pages) != 0;
}

static void *fill(void *arg)
{
	uintptr_t who = (uintptr_t)arg;
	void **own = kept + who * (KEPT / FILLERS);
	unsigned n = 0;

	attach();
	atomic_u32_add_relaxed(&ready, 1);
	while (atomic_u32_load_acquire(&ready) < FILLERS)
		wait_a_moment();
	// Nothing is freed: memory that is there now was there before.
	while ((own[n] = rt_alloc_noscan(PIECE)) != NULL)
		n++;
	expect(rt_stop_the_world(RT_STOP_HOST) == RT_OK);
	expect(!room());
	expect(rt_start_the_world(NULL) == RT_OK);
	detach();
	return arg;
}

TEST(threads_use_the_heap_up_together)
{
	for (unsigned round = 0; round < 20 / HEAP_CUT; round++) {
		if (round == 0)
			start(-1);
		memset(kept, 0, sizeof kept);
		atomic_u32_store_relaxed(&ready, 0);
		run_threads(FILLERS, fill);
		end_threads(FILLERS);
		ck_assert_uint_ge(heap_stats().heap_alloc, LIMIT / 100 * 95);
	}
	heap_live();
}

// ---- collections are shared ----

static void *fail_once(void *arg)
{
	attach();
	atomic_u32_add_relaxed(&ready, 1);
	while (!atomic_u32_load_acquire(&stop))
		wait_a_moment();
	expect(rt_alloc_noscan(256 << 10) != NULL);
	detach();
	return arg;
}

// await_no_runner waits until no attached thread runs.
static void await_no_runner(void)
{
	uint64_t end = nanotime() + AWAIT_SECONDS * UINT64_C(1000000000);

	for (struct rt_proc *p = proc_first(); p; p = proc_next(p))
		while ((atomic_u32_load_acquire(&p->state) & PROC_STATE) ==
		       PROC_RUNNING) {
			ck_assert_uint_lt(nanotime(), end);
			oscall_yield();
		}
}

// ask_together makes n threads ask for memory.  All of them have asked before a
// collection begins.  It returns when they have ended.
static void ask_together(unsigned n)
{
	must(rt_blocking_enter());
	stw_acquire(NULL); // the collection does not begin before stw_release
	atomic_u32_store_release(&stop, 1);
	await_no_runner();
	stw_release();
	must(rt_blocking_leave());
	end_threads(n);
}

// All of the heap is garbage, and each thread wants a part of it.  All threads
// that find no memory get theirs from the same collection.
TEST(threads_that_fail_together_share_a_collection)
{
	enum { N = RT_TSAN ? 16 : MOST_THREADS };

	start(-1);
	run_threads(N, fail_once);
	while (atomic_u32_load_acquire(&ready) < N)
		wait_a_moment();
	for (unsigned i = 0; i < LIMIT / (1 << 20) - 1; i++)
		ck_assert_ptr_nonnull(rt_alloc_noscan(1 << 20));
	ck_assert_uint_eq(collections(), 0);
	ask_together(N);
	ck_assert_uint_eq(collections(), 1);
}

static void *make_small_garbage(void *arg)
{
	attach();
	for (unsigned n = 0; n < (8 << 20) / HEAP_CUT; n += 512)
		expect(rt_alloc_noscan(512) != NULL);
	detach();
	return arg;
}

// A thread acquires the right to stop the world only to collect.
TEST(the_right_to_stop_is_taken_once_a_collection)
{
	uint32_t tickets;
	uint64_t before;

	start(100);
	before = collections();
	stw_count_from(0);
	run_threads(16, make_small_garbage);
	end_threads(16);
	tickets = stw_count_from(0);
	ck_assert_uint_ge(collections() - before, 20 / HEAP_CUT);
	ck_assert_uint_eq(tickets, collections() - before);
}

static void *collect_often(void *arg)
{
	attach();
	for (unsigned i = 0; i < 100 / HEAP_CUT; i++) {
		uint64_t before = collections();

		expect(rt_gc() == RT_OK);
		expect(collections() > before);
	}
	detach();
	return arg;
}

// Each rt_gc ends after a collection; calls that wait together may share one.
TEST(forced_collections_are_shared_or_made)
{
	enum { N = 8 };
	rt_memstats m;

	start(-1);
	run_threads(N, collect_often);
	end_threads(N);
	m = heap_stats();
	ck_assert_uint_eq(m.num_gc, m.num_forced_gc);
	ck_assert_uint_le(m.num_gc, N * 100);
	ck_assert_uint_ge(m.num_gc, 100 / HEAP_CUT);
}

static void *take_a_stack(void *arg)
{
	void *v;

	attach();
	atomic_u32_add_relaxed(&ready, 1);
	while (!atomic_u32_load_acquire(&stop))
		wait_a_moment();
	v = rt_stack_alloc(STACKALLOC_MIN);
	expect(v != NULL);
	expect(rt_stack_free(v, STACKALLOC_MIN) == RT_OK);
	detach();
	return arg;
}

// There is room for one span of stacks.  The first threads that a collection
// serves get more stacks than they asked for, and the other threads get the
// surplus.
TEST(threads_that_fail_together_share_stacks)
{
	enum { N = 6 };
	unsigned n = 0;

	start(-1);
	run_threads(N, take_a_stack);
	while (atomic_u32_load_acquire(&ready) < N)
		wait_a_moment();
	while ((kept[n] = rt_alloc_noscan(STACKALLOC_SPAN)) != NULL)
		n++;
	ck_assert_uint_eq(n, LIMIT / STACKALLOC_SPAN);
	kept[n / 2] = NULL;
	ask_together(N);
	heap_live();
}

// An object that a collection allocates for a waiting thread stays alive until
// that thread has it.  Then it dies as any object does.
TEST(what_a_collection_gave_dies_as_any_object)
{
	start(-1);
	for (unsigned i = 0; i < LIMIT / (1 << 20); i++)
		ck_assert_ptr_nonnull(rt_alloc_noscan(1 << 20));
	ck_assert_uint_eq(collections(), 0);
	ck_assert_ptr_nonnull(rt_alloc_noscan(512));
	ck_assert_uint_eq(collections(), 1);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

// ---- threads that wait hold nothing ----

static void *allocate_and_wait(void *arg)
{
	attach();
	// So much that part of a filling of the page cache is left.
	for (unsigned n = 0; n < 1180 << 10; n += 1024)
		expect(rt_alloc_noscan(1024) != NULL);
	expect(rt_blocking_enter() == RT_OK);
	atomic_u32_add_relaxed(&ready, 1);
	while (!atomic_u32_load_acquire(&stop))
		sleep_ns(1000000);
	expect(rt_blocking_leave() == RT_OK);
	detach();
	return arg;
}

TEST(threads_that_wait_hold_no_pages)
{
	enum { N = 48 };

	start(-1);
	for (unsigned i = 0; i < N; i++) {
		threads[i] = start_thread(allocate_and_wait, NULL);
		await_at_least(&ready, i + 1);
		if (i % 4 == 3)
			ck_assert_int_eq(rt_gc(), RT_OK);
	}
	for (struct rt_proc *p = proc_first(); p; p = proc_next(p)) {
		if (!mcache_of(p))
			continue; // of the library
		ck_assert(pagecache_empty(&mcache_of(p)->heap.pages));
		ck_assert_uint_eq(mcache_of(p)->heap.nspans, 0);
	}
	// The heap has the garbage of four threads, and the pages that these
	// kept.
	ck_assert_uint_le(heap_stats().heap_sys, 12 << 20);
	atomic_u32_store_release(&stop, 1);
	end_threads(N);
}

// ---- stacks of interpreters ----

TEST(a_stack_collects_before_it_is_refused)
{
	start(-1);
	for (unsigned round = 0; round < 3; round++) {
		void *small, *large;

		while (heap_stats().heap_alloc < LIMIT - (2 << 20))
			ck_assert_ptr_nonnull(rt_alloc_noscan(1 << 20));
		large = rt_stack_alloc(16 << 20);
		ck_assert_ptr_nonnull(large);
		small = rt_stack_alloc(2048);
		ck_assert_ptr_nonnull(small);
		ck_assert_uint_ge(collections(), round + 1);
		ck_assert_int_eq(rt_stack_free(large, 16 << 20), RT_OK);
		ck_assert_int_eq(rt_stack_free(small, 2048), RT_OK);
	}
	heap_live();
}
