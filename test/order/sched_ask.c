// Collections that threads share: threads that ask, lead, sleep and wake, at
// every step of a collection.
#include <unistd.h>

#include "gc/cycle/ask.h"
#include "runtime/world/stw.h"
#include "test/harness/heap.h"
#include "test/order/sched.h"
#include "test/harness/process.h"

static struct hand first, second, third, fourth, stopper;
static atomic_u32 collected; // calls of rt_gc that have returned

static void begin(void)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.max_heap = 64 << 20;
	ck_assert_int_eq(rt_init(&c), RT_OK);
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
}

static void collect(void)
{
	ck_assert_int_eq(rt_thread_attach(RT_THREAD_EXACT), RT_OK);
	ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
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
	hold_at(SCHED_SEMA_ACQUIRE, &first, collect);
	schedpoint_release(SCHED_SEMA_ACQUIRE);
}

// asks starts a hand and returns when it has asked, and sleeps or soon will.
static void asks(struct hand *h, void (*fn)(void))
{
	hold_at(SCHED_ASK_WAIT, h, fn);
	schedpoint_release(SCHED_ASK_WAIT);
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

GROUP(ask, .setup = begin, .timeout = 2 * AWAIT_SECONDS);

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

// ---- what a thread was given ----

static size_t size;

// make uses up what the heap has left; a collection provides its last object.
static void make(void)
{
	char *made = NULL;

	ck_assert_int_eq(rt_thread_attach(RT_THREAD_EXACT), RT_OK);
	while (collections() == 0)
		made = rt_alloc_noscan(size);
	ck_assert(rt_is_heap(made));
	ck_assert(heap_is_zero(made, size));
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
}

// The stacks that take_stacks took.
static struct {
	size_t size;
	atomic_u32 n;
	void *stack[64];
} stacks;

// take_stacks uses up what the heap has left; a collection provides its last
// stack.
static void take_stacks(void)
{
	ck_assert_int_eq(rt_thread_attach(RT_THREAD_EXACT), RT_OK);
	while (collections() == 0) {
		uint32_t n = atomic_u32_load_relaxed(&stacks.n);

		ck_assert_uint_lt(n, RT_ARRAY_LEN(stacks.stack));
		stacks.stack[n] = rt_stack_alloc(stacks.size);
		ck_assert_ptr_nonnull(stacks.stack[n]);
		atomic_u32_store_release(&stacks.n, n + 1);
	}
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
}

// no_stack_is_left frees the known stacks.  It returns true if there are no
// others.
static bool no_stack_is_left(void)
{
	uint32_t n = atomic_u32_load_acquire(&stacks.n);
	rt_memstats m;

	for (uint32_t i = 0; i < n; i++)
		if (rt_stack_free(stacks.stack[i], stacks.size) != RT_OK)
			return false;
	return rt_free_os_memory() == RT_OK &&
	       rt_read_memstats_live(&m) == RT_OK && m.stack_inuse == 0;
}

static void fill_but_sixteen_pages(void)
{
	for (unsigned i = 0; i < 63; i++)
		ck_assert_ptr_nonnull(rt_alloc_noscan(1 << 20));
	for (unsigned i = 0; i < 128 - 16; i++)
		ck_assert_ptr_nonnull(rt_alloc_noscan(8192));
	ck_assert_uint_eq(collections(), 0);
}

static const size_t stack_sizes[] = {8192, 64 << 10};

// A stack that the leader took for a thread that does not run again before a
// fork: the child does not have the thread, and the stack is free there.
TEST(a_stack_that_was_given_is_free_in_a_child, .n = RT_ARRAY_LEN(stack_sizes))
{
	pid_t child;

	stacks.size = stack_sizes[_i];
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	fill_but_sixteen_pages();
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	lead_waits();
	schedpoint_hold(SCHED_ASK_WAIT_WOKEN);
	asks(&second, take_stacks);
	stw_release();
	await_held(SCHED_ASK_WAIT_WOKEN);
	hand_end(&first);
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	child = fork();
	if (child == 0)
		_exit(no_stack_is_left() ? EXIT_SUCCESS : EXIT_FAILURE);
	process_join(child);
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	let_end(SCHED_ASK_WAIT_WOKEN, &second);
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	ck_assert(no_stack_is_left());
}

// The uncollectable objects that take_kept took.
static struct {
	size_t size; // of each, as rt_size says
	uint32_t n;
	void *object[4096];
} kept;

// take_kept uses up what the heap has left; a collection provides its last
// object.
static void take_kept(void)
{
	ck_assert_int_eq(rt_thread_attach(RT_THREAD_EXACT), RT_OK);
	while (collections() == 0) {
		void *p = rt_alloc_uncollectable(RT_NOSCAN, kept.size);

		ck_assert_uint_lt(kept.n, RT_ARRAY_LEN(kept.object));
		ck_assert_ptr_nonnull(p);
		kept.object[kept.n++] = p;
	}
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
}

static int find_kept(void *obj, size_t n, int kind, void *found)
{
	(void)obj, (void)kind;
	*(bool *)found |= n == kept.size;
	return 0;
}

// nothing_is_kept frees the known objects.  It returns true if there are no
// others after a collection.
static bool nothing_is_kept(void)
{
	bool found = false;

	for (uint32_t i = 0; i < kept.n; i++)
		if (rt_free(kept.object[i]) != RT_OK)
			return false;
	return rt_gc() == RT_OK && rt_heap_walk(find_kept, &found) == RT_OK &&
	       !found;
}

static const size_t kept_sizes[] = {48, 6144, 40960};

// The same for an object that is not collected.
TEST(a_kept_object_that_was_given_is_freed_in_a_child,
     .n = RT_ARRAY_LEN(kept_sizes))
{
	pid_t child;

	kept.size = kept_sizes[_i];
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	fill_but_sixteen_pages();
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	lead_waits();
	schedpoint_hold(SCHED_ASK_WAIT_WOKEN);
	asks(&second, take_kept);
	stw_release();
	await_held(SCHED_ASK_WAIT_WOKEN);
	hand_end(&first);
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	child = fork();
	if (child == 0)
		_exit(nothing_is_kept() ? EXIT_SUCCESS : EXIT_FAILURE);
	process_join(child);
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	let_end(SCHED_ASK_WAIT_WOKEN, &second);
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	ck_assert(nothing_is_kept());
}

static const size_t sizes[] = {48, 5, 6000, 40000, 1 << 20};

// Memory that the leader took for a thread outlasts collections that come
// before the thread runs again, and no other thread gets it.
TEST(what_was_given_outlasts_the_next_collection, .n = RT_ARRAY_LEN(sizes))
{
	size = sizes[_i];
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	fill_but_sixteen_pages();
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	lead_waits();
	schedpoint_hold(SCHED_ASK_WAIT_WOKEN);
	asks(&second, make);
	stw_release();
	await_held(SCHED_ASK_WAIT_WOKEN);
	hand_end(&first);
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_int_eq(rt_gc(), RT_OK);
		for (size_t n = 0; n < (4 << 20) / size; n++)
			memset(rt_alloc_noscan(size), 0xff, size);
	}
	heap_live();
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	let_end(SCHED_ASK_WAIT_WOKEN, &second);
}

static int dropping;

static void drop_nothing(void *obj, size_t n, void *arg)
{
	(void)obj, (void)n, (void)arg;
}

// make_dropping uses up what the heap has left.  What a collection provides is
// an object when the allocation returns.
static void make_dropping(void)
{
	void *made = NULL;

	ck_assert_int_eq(rt_thread_attach(RT_THREAD_EXACT), RT_OK);
	while (collections() == 0)
		made = rt_alloc_kind(dropping, size);
	ck_assert(rt_is_heap(made));
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
}

// The same while rt_drop_now drops all objects of the kind.
TEST(what_was_given_is_not_dropped, .n = RT_ARRAY_LEN(sizes))
{
	rt_kind_desc d;

	size = sizes[_i];
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	rt_kind_desc_init(&d);
	d.layout = RT_LAYOUT_WORDS;
	d.flags = RT_KIND_DROP;
	d.drop = drop_nothing;
	dropping = rt_kind_register(&d);
	ck_assert_int_gt(dropping, 0);
	fill_but_sixteen_pages();
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	lead_waits();
	schedpoint_hold(SCHED_ASK_WAIT_WOKEN);
	asks(&second, make_dropping);
	stw_release();
	await_held(SCHED_ASK_WAIT_WOKEN);
	hand_end(&first);
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	ck_assert_int_eq(rt_drop_now(dropping, NULL, NULL), RT_OK);
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	let_end(SCHED_ASK_WAIT_WOKEN, &second);
}
