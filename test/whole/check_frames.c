// Named frames: local variables as exact roots.
#define RT_FRAME_CHECKS

#include <setjmp.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rt/stack.h>

#include "gc/mark/work.h"
#include "test/harness/await.h"
#include "test/harness/heap.h"
#include "test/harness/missed.h"
#include "test/harness/process.h"
#include "test/harness/thread.h"

static void begin(void)
{
	heap_start_exact(heap_config_checked());
}

GROUP(blocks, .setup = begin, .timeout = 60);

TEST(a_variable_is_a_root_until_the_block_ends)
{
	{
		void **a = rt_alloc(48), *b = NULL;
		RT_FRAME(&a, &b);

		a[0] = rt_alloc(32);
		ck_assert_uint_eq(heap_live_after_gc(), 2);
		b = rt_alloc(64);
		ck_assert_uint_eq(heap_live_after_gc(), 3);
		a = NULL;
		ck_assert_uint_eq(heap_live_after_gc(), 1);
	}
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	ck_assert_ptr_null(rt_frames_save());
}

TEST(blocks_nest_and_have_several)
{
	void *a = rt_alloc(16);
	RT_FRAME(&a);
	void *b = rt_alloc(16);
	RT_FRAME(&b);

	for (unsigned i = 0; i < 10; i++) {
		void *c = rt_alloc(16);
		RT_FRAME(&c);

		ck_assert_uint_eq(heap_live_after_gc(), 3);
		if (i == 5)
			break;
		if (i % 2)
			continue;
		{
			void *d = rt_alloc(16);
			RT_FRAME(&d, &a);

			ck_assert_uint_eq(heap_live_after_gc(), 4);
		}
	}
	ck_assert_uint_eq(heap_live_after_gc(), 2);
}

static void *returned(void)
{
	void *a = rt_alloc(16);
	RT_FRAME(&a);

	ck_assert_uint_eq(heap_live_after_gc(), 1);
	return a;
}

static void left_by_goto(void)
{
	void *a = rt_alloc(16);
	RT_FRAME(&a);

	if (heap_live_after_gc() == 1)
		goto out;
	ck_abort();
out:
	return;
}

TEST(every_way_out_ends_the_frame)
{
	ck_assert_ptr_nonnull(returned());
	ck_assert_ptr_null(rt_frames_save());
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	left_by_goto();
	ck_assert_ptr_null(rt_frames_save());
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

TEST(a_word_that_is_no_reference_keeps_nothing)
{
	char *p = rt_alloc(64);
	void *words[] = {p + 8, p + 1, p + 64, (void *)8, (void *)UINTPTR_MAX};
	RT_FRAME(&words[0], &words[1], &words[2], &words[3], &words[4]);

	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

// An unset variable has what an earlier call has left there, which may be
// anything.
TEST(a_variable_may_be_unset)
{
	void *a, *b;
	RT_FRAME(&a, &b);

	b = rt_alloc(16);
	ck_assert_uint_ge(heap_live_after_gc(), 1);
	a = NULL;
	ck_assert_uint_eq(heap_live_after_gc(), 1);
	rt_keep_alive(a);
}

static void *overwrite(void *arg)
{
	return arg;
}

TEST(frames_are_roots_beside_a_scanned_stack)
{
	static void *hidden; // no root
	static rt_frame f;
	static const volatile void *const slots[] = {&hidden};

	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	f = (rt_frame){rt_frames_save(), 1, slots, "&hidden"};
	rt_frames_restore(&f);
	hidden = rt_alloc(48);
	*(uintptr_t *)hidden = 42;
	for (unsigned i = 0; i < 3; i++) {
		run_beside(overwrite, NULL);
		ck_assert_int_eq(rt_gc(), RT_OK);
		ck_assert_int_eq(rt_is_heap(hidden), 1);
	}
	rt_frames_restore(f.prev);
}

TEST(a_frame_counts_as_stack)
{
	void *a = rt_alloc(48), *b = NULL;
	uint64_t before;

	ck_assert_int_eq(rt_gc(), RT_OK);
	before = heap_metric("/gc/scan/stack:bytes");
	RT_FRAME(&a, &b);
	ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert_uint_eq(heap_metric("/gc/scan/stack:bytes"), before + 16);
}

// ---- saving and restoring ----

static jmp_buf back;

static RT_NOINLINE void jump_out(void)
{
	void *a = rt_alloc(16);
	RT_FRAME(&a);

	ck_assert_uint_eq(heap_live_after_gc(), 2);
	longjmp(back, 1);
}

static RT_NOINLINE bool catch_jump(void)
{
	if (setjmp(back) == 0)
		jump_out();
	return true;
}

TEST(a_jump_leaves_frames_until_the_list_is_restored)
{
	void *volatile kept = rt_alloc(16);
	RT_FRAME(&kept);
	rt_frame *const saved = rt_frames_save();

	ck_assert(catch_jump());
	ck_assert_ptr_ne(rt_frames_save(), saved);
	rt_frames_restore(saved);
	ck_assert_uint_eq(heap_live_after_gc(), 1);
}

// Two lists take turns, as the lists of two fibers do.
TEST(lists_are_exchanged)
{
	void *mine = rt_alloc(16), *other = rt_alloc(16);
	rt_frame *main_list, *fiber_list = NULL;

	RT_FRAME(&mine);
	main_list = rt_frames_save();
	for (unsigned i = 0; i < 3; i++) {
		rt_frames_restore(fiber_list);
		ck_assert_ptr_null(rt_frames_save());
		mine = rt_alloc(16);
		{
			RT_FRAME(&other);
			other = rt_alloc(16);
			ck_assert_uint_eq(heap_live_after_gc(), 1);
			ck_assert_ptr_ne(rt_frames_save(), main_list);
		}
		fiber_list = rt_frames_save();
		rt_frames_restore(main_list);
		mine = rt_alloc(16);
		ck_assert_uint_eq(heap_live_after_gc(), 1);
	}
}

enum { DEEP = 1000000 / HEAP_CUT };
static void *deep[DEEP];

static const volatile void *deep_slot[DEEP];
static rt_frame deep_frame[DEEP];

// deep_frames makes a list of frames for all words of deep, each words in a
// frame.  No frame is on a stack.
static rt_frame *deep_frames(size_t each)
{
	for (size_t i = 0; i < DEEP; i++)
		deep_slot[i] = &deep[i];
	for (size_t i = 0; i < DEEP / each; i++)
		deep_frame[i] = (rt_frame){i ? &deep_frame[i - 1] : NULL, each,
					   &deep_slot[i * each], "&word"};
	return &deep_frame[DEEP / each - 1];
}

static void fill_deep(void)
{
	for (size_t i = 0; i < DEEP; i++)
		deep[i] = rt_alloc(16);
}

TEST(a_list_may_be_long)
{
	fill_deep();
	rt_frames_restore(deep_frames(1));
	ck_assert_uint_eq(heap_live_after_gc(), DEEP);
	rt_frames_restore(NULL);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

TEST(no_reference_is_lost_without_buffers, .n = 3)
{
	fill_deep();
	for (size_t i = 0; i < DEEP; i++)
		*(void **)deep[i] = rt_alloc(16);
	rt_frames_restore(deep_frames(10));
	work_limit((uint32_t)_i);
	ck_assert_uint_eq(heap_live_after_gc(), 2 * DEEP);
	work_limit(UINT32_MAX);
}

// ---- threads ----

GROUP(threads, .setup = begin, .timeout = 60);

TEST(without_a_thread_there_is_no_frame)
{
	void *a = rt_alloc(16);

	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	{
		RT_FRAME(&a);
		ck_assert_ptr_null(rt_frames_save());
		rt_frames_restore(NULL);
		ck_assert_int_eq(rt_thread_attach(RT_THREAD_EXACT), RT_OK);
		ck_assert_uint_eq(heap_live_after_gc(), 0);
		RT_FRAME(&a);
		a = rt_alloc(16);
		ck_assert_uint_eq(heap_live_after_gc(), 1);
	}
	ck_assert_ptr_null(rt_frames_save());
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

TEST(a_detach_takes_the_frames_off)
{
	void *a = rt_alloc(16);
	RT_FRAME(&a);

	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	ck_assert_ptr_null(rt_frames_save());
	ck_assert_int_eq(rt_thread_attach(RT_THREAD_EXACT), RT_OK);
	ck_assert_ptr_null(rt_frames_save());
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

enum { LOOPS = 20000 / HEAP_CUT };

static void *push_unattached(void *arg)
{
	size_t wrong = 0;

	for (unsigned i = 0; i < LOOPS; i++) {
		RT_FRAME(&arg);
		wrong += rt_frames_save() != NULL;
	}
	return (void *)wrong;
}

// The thread sanitizer would report threads that write to the same place.
TEST(unattached_threads_share_no_list)
{
	pthread_t a = start_thread(push_unattached, NULL);
	pthread_t b = start_thread(push_unattached, NULL);

	ck_assert_ptr_null(join_thread(a));
	ck_assert_ptr_null(join_thread(b));
}

// A new thread may get the block of an ended one, but not its list of frames.
static void *end_with_frames(void *arg)
{
	static const volatile void *const slots[] = {&deep[0]};
	static rt_frame f = {NULL, 1, slots, "&deep[0]"};

	ck_assert_int_eq(rt_thread_attach(RT_THREAD_EXACT), RT_OK);
	ck_assert_ptr_null(rt_frames_save());
	deep[0] = rt_alloc(16);
	rt_frames_restore(&f);
	ck_assert_uint_eq(heap_live_after_gc(), 1);
	return arg;
}

TEST(a_thread_may_end_with_frames)
{
	for (unsigned i = 0; i < 3; i++) {
		run_beside(end_with_frames, NULL);
		ck_assert_uint_eq(heap_live_after_gc(), 0);
	}
}

static void *exit_from_a_block(void *arg)
{
	ck_assert_int_eq(rt_thread_attach(RT_THREAD_EXACT), RT_OK);
	RT_FRAME(&arg);
	rt_frames_restore(NULL);
	pthread_exit(NULL);
}

TEST(a_thread_may_exit_inside_a_block)
{
	run_beside(exit_from_a_block, NULL);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

static atomic_u32 blocked, parked, over;

static void *wait_in_a_region(void *arg)
{
	void *a;
	RT_FRAME(&arg); // before the attach

	ck_assert_int_eq(rt_thread_attach(RT_THREAD_EXACT), RT_OK);
	RT_FRAME(&a);
	a = rt_alloc(16);
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	atomic_u32_store_release(&blocked, 1);
	await_at_least(&over, 1);
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	ck_assert_int_eq(rt_is_heap(a), 1);
	return NULL;
}

static void *poll(void *arg)
{
	void *a = NULL;

	(void)arg;
	ck_assert_int_eq(rt_thread_attach(RT_THREAD_EXACT), RT_OK);
	RT_FRAME(&a);
	a = rt_alloc(16);
	while (atomic_u32_load_acquire(&over) == 0) {
		atomic_u32_store_release(&parked, 1);
		rt_safepoint();
	}
	ck_assert_int_eq(rt_is_heap(a), 1);
	return NULL;
}

TEST(frames_of_every_stopped_thread_are_roots)
{
	pthread_t sleeper = start_thread(wait_in_a_region, NULL);
	pthread_t poller = start_thread(poll, NULL);
	void *own = rt_alloc(16);
	RT_FRAME(&own);

	await_at_least(&blocked, 1);
	await_at_least(&parked, 1);
	for (unsigned i = 0; i < 10; i++)
		ck_assert_uint_eq(heap_live_after_gc(), 3);
	atomic_u32_store_release(&over, 1);
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	join_thread(sleeper);
	join_thread(poller);
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	ck_assert_uint_eq(heap_live_after_gc(), 1);
}

TEST(in_the_own_stop)
{
	void *a = rt_alloc(16);

	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	RT_FRAME(&a);
	ck_assert_ptr_nonnull(rt_frames_save());
	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
	ck_assert_uint_eq(heap_live_after_gc(), 1);
}

// build makes a tree; its variables live in frames alone.
static void **build(unsigned depth)
{
	void **node = NULL, **child = NULL;
	RT_FRAME(&node, &child);

	node = rt_alloc(3 * sizeof *node);
	node[2] = (void *)(uintptr_t)depth;
	for (unsigned i = 0; i < 2 && depth != 0; i++) {
		child = build(depth - 1);
		node[i] = child;
	}
	return node;
}

static size_t count(void **node, unsigned depth)
{
	if (!node || node[2] != (void *)(uintptr_t)depth)
		return 0;
	return depth == 0
		   ? 1
		   : 1 + count(node[0], depth - 1) + count(node[1], depth - 1);
}

enum { DEPTH = HEAP_CUT == 1 ? 10 : 7, BUILDERS = 3 };

static void *build_trees(void *arg)
{
	void **tree = NULL;
	size_t wrong = 0;

	(void)arg;
	ck_assert_int_eq(rt_thread_attach(RT_THREAD_EXACT), RT_OK);
	RT_FRAME(&tree);
	for (unsigned i = 0; i < 5; i++) {
		tree = build(DEPTH);
		wrong += count(tree, DEPTH) != (2u << DEPTH) - 1;
	}
	return (void *)wrong;
}

GROUP(many, .timeout = 120);

TEST(trees_are_built_while_the_heap_collects, .n = 3)
{
	rt_config c = heap_config(HEAP_QUIET);
	pthread_t thread[BUILDERS];

	c.gcstress = _i == 0 ? 7 : _i == 1 ? 100 : 0;
	c.clobberfree = 1;
	c.gc_threads = _i;
	if (_i == 2) {
		c.gc_percent = 20;
		c.heap_min = 1 << 16;
	}
	heap_start_exact(c);
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	for (unsigned i = 0; i < BUILDERS; i++)
		thread[i] = start_thread(build_trees, NULL);
	for (unsigned i = 0; i < BUILDERS; i++)
		ck_assert_ptr_null(join_thread(thread[i]));
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	heap_healthy();
}

GROUP(checks, .timeout = 60);

TEST(a_child_has_the_frames)
{
	void *a;

	begin();
	a = rt_alloc(16);
	RT_FRAME(&a);
	if (process_forked())
		process_end(heap_live_after_gc() == 1);
}

static unsigned variable;

static size_t greater(size_t a, size_t b)
{
	return a > b ? a : b;
}

static void report(void)
{
	void *a = NULL, *several[2] = {NULL, NULL}, *c = NULL;
	void **const at[] = {&a, &several[1], &c};

	begin();
	RT_FRAME(&a, &several[greater(0, 1)], &(c));
	*at[variable] = rt_alloc(16);
	missed_look();
}

TEST(a_variable_that_was_not_followed_is_named, .n = 3)
{
	static const char *const name[] = {
	    "found in variable a at 0x",
	    "found in variable several[greater(0, 1)] at 0x",
	    "found in variable (c) at 0x",
	};

	variable = (unsigned)_i;
	missed_at(report, name[_i]);
}

// ---- suspended stacks ----

GROUP(suspended, .setup = begin, .timeout = 60);

// A host whose threads are exact says with frames what a suspended fiber holds.
// The stack pointer of the fiber is at the upper end of its stack, so no word
// of that stack is a root.
TEST(where_nothing_is_in_use_only_frames_count)
{
	static void *words[8];
	void *hi = words + 8, *a = rt_alloc(16);
	rt_frame *saved = NULL;
	rt_stack_desc d;
	rt_stack *s;
	RT_FRAME(&a);

	saved = rt_frames_save();
	rt_frames_restore(NULL);
	words[3] = rt_alloc(16);
	rt_stack_desc_init(&d);
	d.lo = words;
	d.hi = hi;
	d.sp = &hi;
	d.frames = &saved;
	s = heap_stack(&d);
	ck_assert_ptr_nonnull(s);
	ck_assert_uint_eq(heap_live_after_gc(), 1);
	ck_assert_int_eq(rt_is_heap(a), 1);
	saved = NULL;
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	ck_assert_int_eq(rt_stack_unregister(s), RT_OK);
}

// ---- misuse ----

static void begin_in_a_region(void)
{
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	{
		void *a = NULL;
		RT_FRAME(&a);
	}
}

static void end_in_a_region(void)
{
	{
		void *a = NULL;
		RT_FRAME(&a);

		ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	}
}

GROUP(misuse, .setup = begin, .timeout = 60);

// RT_FRAME_CHECKS makes such a frame trap.
TEST(a_frame_that_begins_or_ends_in_a_region_is_noticed, .n = 2)
{
	int status =
	    death_status(_i == 0 ? begin_in_a_region : end_in_a_region);

	ck_assert(WIFSIGNALED(status));
	ck_assert(WTERMSIG(status) == SIGILL || WTERMSIG(status) == SIGTRAP);
}
