// Collections that threads share: threads that ask, lead, sleep and wake, at
// every step of a collection.

#include "gc/cycle/ask.h"
#include "gc/cycle/release.h"
#include "runtime/world/heapstats.h"
#include "runtime/world/stw.h"
#include "test/harness/kind.h"
#include "test/order/host.h"
#include "test/harness/process.h"

static struct hand first, second, third, fourth, stopper;
static atomic_u32 collected; // calls of rt_gc that have returned

static void begin(void)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.max_heap = 64 << 20;
	heap_start(c);
}

static void begin_blocked(void)
{
	begin();
	host_block();
}

static void collect(void)
{
	host_collect();
	atomic_u32_add_release(&collected, 1);
}

static uint64_t collections(void)
{
	return heap_metric("/gc/cycles/total:gc-cycles");
}

// lead_waits makes the first hand lead, and wait until stw_release.
static void lead_waits(void)
{
	stw_acquire(NULL);
	pass_at(SCHED_SEMA_ACQUIRE, &first, collect);
}

// asks starts a hand and returns when it has asked, and sleeps or soon will.
static void asks(struct hand *h, void (*fn)(void))
{
	pass_at(SCHED_ASK_WAIT, h, fn);
}

static void await_passed(enum schedpoint at, uint64_t n)
{
	uint64_t end = nanotime() + AWAIT_SECONDS * UINT64_C(1000000000);

	while (schedpoint_passed(at) < n) {
		if (nanotime() > end)
			ck_abort_msg("too few came to %s", schedpoint_name(at));
		oscall_yield();
	}
}

GROUP(ask, .setup = begin_blocked, .timeout = 2 * AWAIT_SECONDS);

// ask TWO_LEAD, NOT_QUEUED: threads that ask before the stop share its
// collection, and the leader alone takes the right to stop.
TEST(threads_that_ask_before_the_stop_share_it)
{
	stw_count_from(0);
	lead_waits();
	asks(&second, collect);
	asks(&third, collect);
	stw_release();
	hand_end(&first);
	hand_end(&second);
	hand_end(&third);
	ck_assert_uint_eq(collections(), 1);
	ck_assert_uint_eq(stw_count_from(0), 2); // lead_waits, and the leader
}

// ask LEAD_DROPPED, NOT_PASSED, TAKEN_LATE, CLEARED_LATE: a thread that asks
// when the world has started, but before the lead is over, is not answered by
// that collection.  It is woken before it sleeps, and leads the next one.
TEST(a_thread_that_asks_late_leads_next)
{
	hold_at(SCHED_ASK_DONE, &first, collect);
	ck_assert_uint_eq(collections(), 1);
	hold_at(SCHED_ASK_WAIT, &second, collect);
	let_end(SCHED_ASK_DONE, &first);
	ck_assert_uint_eq(collections(), 1);
	let_end(SCHED_ASK_WAIT, &second);
	ck_assert_uint_eq(collections(), 2);
}

// ask CHAIN_LATE, CHAIN_CUT: threads that were woken wake others even if the
// next stop has begun and they must not run themselves.
TEST(a_woken_thread_wakes_others_in_a_stop)
{
	lead_waits();
	asks(&second, collect);
	asks(&third, collect);
	asks(&fourth, collect);
	schedpoint_hold(SCHED_ASK_DONE);
	stw_release();
	await_held(SCHED_ASK_DONE);
	hand_start(&stopper, stop);
	await_passed(SCHED_PROC_STOP_ALL_ASKED, 2);
	schedpoint_release(SCHED_ASK_DONE);
	hand_end(&stopper);
	await_passed(SCHED_ASK_WAIT_WOKEN, 3);
	ck_assert_uint_eq(atomic_u32_load_acquire(&collected), 0);
	start();
	hand_end(&first);
	hand_end(&second);
	hand_end(&third);
	hand_end(&fourth);
	ck_assert_uint_eq(collections(), 1);
}

static struct heapstats_totals read_totals(void)
{
	struct heapstats_totals t;

	heapstats_read(&t);
	return t;
}

// What an exact read finds.
static rt_memstats exact;

static void read_exact(void)
{
	ck_assert_int_eq(rt_thread_attach(RT_THREAD_EXACT), RT_OK);
	ck_assert_int_eq(rt_read_memstats(&exact), RT_OK);
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
}

enum { LISTED = 100000 };

// make_wide makes an array that marking needs work buffers for.
static void **make_wide(void)
{
	void **all = rt_alloc(LISTED * sizeof *all);

	ck_assert_ptr_nonnull(all);
	for (unsigned i = 0; i < LISTED; i++)
		all[i] = rt_alloc(16);
	return all;
}

// The work buffers of a collection are freed when the world runs again.  A
// thread that reads exactly meanwhile waits, and finds the figures of that
// collection and no buffer.
TEST(an_exact_read_finds_the_figures_of_one_collection)
{
	static void *root;

	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	ck_assert_int_eq(rt_roots_add(&root, &root + 1, RT_ROOT_EXACT), RT_OK);
	root = make_wide();
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	hold_at(SCHED_CYCLE_END, &first, collect);
	ck_assert(!stw_stopped());
	ck_assert_uint_gt(read_totals().in_work_bufs, 0);
	ck_assert_uint_eq(collections(), 1);
	// A thread has found no page to release for the memory limit.
	atomic_u64_store_relaxed(&release.dry, 1);
	hold_at(SCHED_SEMA_ACQUIRE, &second, read_exact);
	let_end(SCHED_CYCLE_END, &first);
	let_end(SCHED_SEMA_ACQUIRE, &second);
	ck_assert_uint_eq(atomic_u64_load_relaxed(&release.dry), 0);
	ck_assert_uint_eq(exact.num_gc, 1);
	ck_assert_uint_gt(exact.pause_total_ns, 0);
	ck_assert_uint_eq(read_totals().in_work_bufs, 0);
}

static atomic_u32 has_read;
static rt_cycle record;

static void read_record(void)
{
	read_exact();
	ck_assert_int_eq(rt_read_cycle(exact.num_gc, &record), RT_OK);
	atomic_u32_store_release(&has_read, 1);
}

// The record of a collection is published last.  An exact read waits for that
// as well, so every collection that it counts has a record.
TEST(an_exact_read_finds_the_record_of_each_collection)
{
	hold_at(SCHED_CYCLERECORD_PUBLISH, &first, collect);
	ck_assert(!stw_stopped());
	ck_assert_int_eq(rt_read_cycle(1, &record), RT_ENOENT);
	pass_at(SCHED_SEMA_ACQUIRE, &second, read_record);
	ck_assert(stays(&has_read, 0));
	let_end(SCHED_CYCLERECORD_PUBLISH, &first);
	hand_end(&second);
	ck_assert_uint_eq(exact.num_gc, 1);
	ck_assert_uint_eq(record.number, 1);
}

// ---- what a thread was given ----

static size_t size;
static int dropping;

static void fill_but_sixteen_pages(void)
{
	for (unsigned i = 0; i < 63; i++)
		ck_assert_ptr_nonnull(rt_alloc_noscan(1 << 20));
	for (unsigned i = 0; i < 128 - 16; i++)
		ck_assert_ptr_nonnull(rt_alloc_noscan(8192));
	ck_assert_uint_eq(collections(), 0);
}

// give starts a hand that calls fn, which uses up the memory that the heap has
// left.  give returns when a collection has provided memory, and the leader has
// taken some of it for the hand.  The hand is held before it runs again.
static void give(void (*fn)(void))
{
	fill_but_sixteen_pages();
	host_block();
	lead_waits();
	schedpoint_hold(SCHED_ASK_WAIT_WOKEN);
	asks(&second, fn);
	stw_release();
	await_held(SCHED_ASK_WAIT_WOKEN);
	hand_end(&first);
	host_unblock();
}

static void end_given(void)
{
	host_block();
	let_end(SCHED_ASK_WAIT_WOKEN, &second);
	host_unblock();
}

// The functions below are for that hand.  They allocate until a collection has
// provided the memory for the last allocation.

static void make(void)
{
	char *made = NULL;

	host_attach();
	while (collections() == 0)
		made = rt_alloc_noscan(size);
	ck_assert(rt_is_heap(made));
	ck_assert(heap_is_zero(made, size));
	host_detach();
}

// rt_drop_now may come before the allocation returns.  The slot that a
// collection has provided is an object all the same.
static void make_dropping(void)
{
	void *made = NULL;

	host_attach();
	while (collections() == 0)
		made = rt_alloc_kind(dropping, size);
	ck_assert(rt_is_heap(made));
	host_detach();
}

// The stacks or objects of one size that take_stacks or take_kept has taken.
static struct {
	size_t size;
	atomic_u32 n;
	void *at[4096];
} taken;

static void take_all(void *(*fn)(size_t))
{
	host_attach();
	while (collections() == 0) {
		uint32_t n = atomic_u32_load_relaxed(&taken.n);

		ck_assert_uint_lt(n, RT_ARRAY_LEN(taken.at));
		taken.at[n] = fn(taken.size);
		ck_assert_ptr_nonnull(taken.at[n]);
		atomic_u32_store_release(&taken.n, n + 1);
	}
	host_detach();
}

static void take_stacks(void)
{
	take_all(rt_stack_alloc);
}

static void *keep(size_t n)
{
	return rt_alloc_uncollectable(RT_NOSCAN, n);
}

static void take_kept(void)
{
	take_all(keep);
}

GROUP(given, .setup = begin, .timeout = 2 * AWAIT_SECONDS);

// no_stack_is_left frees the known stacks.  It returns true if there are no
// others.
static bool no_stack_is_left(void)
{
	uint32_t n = atomic_u32_load_acquire(&taken.n);
	rt_memstats m;

	for (uint32_t i = 0; i < n; i++)
		if (rt_stack_free(taken.at[i], taken.size) != RT_OK)
			return false;
	return rt_free_os_memory() == RT_OK &&
	       rt_read_memstats_live(&m) == RT_OK && m.stack_inuse == 0;
}

static int find_kept(void *obj, size_t n, int kind, void *found)
{
	(void)obj, (void)kind;
	*(bool *)found |= n == taken.size;
	return 0;
}

// nothing_is_kept frees the known objects.  It returns true if there are no
// others after a collection.
static bool nothing_is_kept(void)
{
	uint32_t n = atomic_u32_load_acquire(&taken.n);
	bool found = false;

	for (uint32_t i = 0; i < n; i++)
		if (rt_free(taken.at[i]) != RT_OK)
			return false;
	return rt_gc() == RT_OK && rt_heap_walk(find_kept, &found) == RT_OK &&
	       !found;
}

static const struct {
	void (*take)(void);
	bool (*nothing_is_left)(void);
	size_t size; // of an object, as rt_size says
} takings[] = {
    {take_stacks, no_stack_is_left, 8192},
    {take_stacks, no_stack_is_left, 64 << 10},
    {take_kept, nothing_is_kept, 48},
    {take_kept, nothing_is_kept, 6144},
    {take_kept, nothing_is_kept, 40960},
};

// The leader took a stack, or an uncollectable object, for a thread that does
// not run again before a fork.  The child does not have that thread, and the
// stack or object is free there.
TEST(what_was_given_is_free_in_a_child, .n = RT_ARRAY_LEN(takings))
{
	taken.size = takings[_i].size;
	give(takings[_i].take);
	if (process_forked())
		process_end(takings[_i].nothing_is_left());
	end_given();
	ck_assert(takings[_i].nothing_is_left());
}

static const size_t sizes[] = {48, 5, 6000, 40000, 1 << 20};

// Memory that the leader took for a thread outlasts collections that come
// before the thread runs again, and no other thread gets it.
TEST(what_was_given_outlasts_the_next_collection, .n = RT_ARRAY_LEN(sizes))
{
	size = sizes[_i];
	give(make);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_int_eq(rt_gc(), RT_OK);
		for (size_t n = 0; n < (4 << 20) / size; n++)
			memset(rt_alloc_noscan(size), 0xff, size);
	}
	heap_live();
	end_given();
}

// Such memory also outlasts an rt_drop_now that drops all objects of the kind.
TEST(what_was_given_is_not_dropped, .n = RT_ARRAY_LEN(sizes))
{
	size = sizes[_i];
	dropping = kind_make(.layout = RT_LAYOUT_WORDS, .flags = RT_KIND_DROP,
			     .drop = drop_nothing);
	give(make_dropping);
	ck_assert_int_eq(rt_drop_now(dropping, NULL, NULL), RT_OK);
	end_given();
}
