// Threads and functions of a host that do what they should not.
#include "test/whole/misuse.h"

#include <limits.h>
#include <setjmp.h>

#include "runtime/os/gauge.h"

// ---- threads ----

static const struct {
	const char *name;
	unsigned flags;
} bad_flags[] = {
    {"4", 4}, {"5", 5}, {"8", 8}, {"2^31", 1u << 31}, {"-1", ~0u}, {"256", 256},
};

static void *attach_wrongly(void *arg)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	char *lo = (char *)(here - 65536), *hi = (char *)(here + 4096);
	char *malloced = malloc(65536);
	const struct {
		const char *name;
		void *lo, *hi;
		unsigned flags;
	} c[] = {
	    {"both null", NULL, NULL, 0},
	    {"lo null", NULL, hi, 0},
	    {"hi null", lo, NULL, 0},
	    {"empty", lo, lo, 0},
	    {"reversed", hi, lo, 0},
	    {"below the caller", lo, (void *)(here - 32768), 0},
	    {"above the caller", hi, hi + 4096, 0},
	    {"another stack", malloced, malloced + 65536, 0},
	    {"bad flags", lo, hi, 4},
	};

	for (size_t i = 0; i < RT_ARRAY_LEN(bad_flags); i++)
		JUDGE(bad_flags[i].name, rt_thread_attach(bad_flags[i].flags),
		      RT_EINVAL);
	for (size_t i = 0; i < RT_ARRAY_LEN(c); i++)
		JUDGE(c[i].name,
		      rt_thread_attach_stack(c[i].lo, c[i].hi, c[i].flags),
		      RT_EINVAL);
	JUDGE("still unattached", some(rt_thread_self()), NOTHING);
	JUDGE("good", rt_thread_attach_stack(lo, hi, RT_THREAD_COOPERATIVE),
	      RT_OK);
	JUDGE("twice", rt_thread_attach_stack(lo, hi, 0), RT_ESTATE);
	JUDGE("after it", rt_thread_attach(0), RT_ESTATE);
	JUDGE("two attached", rt_fini(), RT_EBUSY);
	JUDGE("once", rt_thread_detach(), RT_OK);
	JUDGE("twice", rt_thread_detach(), RT_EPERM);
	JUDGE("odd bounds", rt_thread_attach_stack(lo + 1, hi - 3, 0), RT_OK);
	JUDGE("odd bounds", rt_gc(), RT_OK);
	JUDGE("odd bounds", rt_thread_detach(), RT_OK);
	free(malloced);
	return arg;
}

GROUP(threads);

TEST(attaching_wrongly)
{
	begin();
	run_beside(attach_wrongly, NULL);
	heap_healthy();
	JUDGE("one attached", rt_fini(), RT_OK);
	JUDGE("twice", rt_fini(), RT_ESTATE);
	finish(20);
}

TEST(every_valid_flag_attaches)
{
	begin();
	for (unsigned flags = 0; flags < 4; flags++) {
		JUDGE("valid flags", rt_thread_detach(), RT_OK);
		JUDGE("valid flags", rt_thread_attach(flags), RT_OK);
	}
	heap_healthy();
	finish(8);
}

static void *exit_in_region(void *arg)
{
	JUDGE("thread that exits", rt_thread_attach(0), RT_OK);
	if (arg)
		JUDGE("thread that exits", rt_blocking_enter(), RT_OK);
	return NULL;
}

static void *exit_in_stop(void *arg)
{
	JUDGE("thread that exits", rt_thread_attach(0), RT_OK);
	JUDGE("thread that exits", rt_stop_the_world(RT_STOP_HOST), RT_OK);
	return arg;
}

static int exit_in_walk_callback(void *obj, size_t size, int kind, void *arg)
{
	(void)obj;
	(void)size;
	(void)kind;
	(void)arg;
	pthread_exit(NULL);
}

static void *exit_in_walk(void *arg)
{
	JUDGE("thread that exits", rt_thread_attach(0), RT_OK);
	rt_heap_walk(exit_in_walk_callback, NULL);
	return arg;
}

// A thread that exits attached is detached, wherever it exits.
TEST(threads_may_exit_anywhere)
{
	void *(*const fn[])(void *) = {exit_in_region, exit_in_stop,
				       exit_in_walk};

	begin();
	for (int i = 0; i < 6; i++) {
		rt_blocking_enter();
		run_thread(fn[i / 2], i % 2 ? words : NULL);
		JUDGE("after a thread", rt_blocking_leave(), RT_OK);
		JUDGE("after a thread", rt_world_stopped(), 0);
		heap_healthy();
	}
	JUDGE("after threads", rt_gc(), RT_OK);
	JUDGE("after threads", rt_fini(), RT_OK);
	finish(20);
}

static void *start_of_another(void *arg)
{
	JUDGE("unattached", rt_start_the_world(NULL), RT_EPERM);
	JUDGE("by another", rt_world_stopped(), 1);
	return arg;
}

TEST(only_the_stopper_starts_the_world)
{
	begin();
	ck_assert_int_eq(rt_stop_the_world(INT_MAX), RT_OK);
	run_thread(start_of_another, NULL);
	JUDGE("still", rt_world_stopped(), 1);
	JUDGE("stopper", rt_start_the_world(NULL), RT_OK);
	JUDGE("twice", rt_start_the_world(NULL), RT_EPERM);
	finish(5);
}

TEST(reasons_below_host_are_the_library_s)
{
	begin();
	for (int reason = -2; reason < RT_STOP_HOST; reason++) {
		const char *name = with_number("reason", reason);

		JUDGE(name, rt_stop_the_world(reason), RT_EINVAL);
	}
	JUDGE("INT_MIN", rt_stop_the_world(INT_MIN), RT_EINVAL);
	JUDGE("after all that", rt_world_stopped(), 0);
	finish(RT_STOP_HOST);
}

// ---- functions of the host that do what they should not ----

static void *leave_region(void *arg)
{
	JUDGE("in the call", rt_blocking_leave(), RT_OK);
	return arg;
}

static void *leave_and_detach(void *arg)
{
	leave_region(arg);
	JUDGE("in the call", rt_thread_detach(), RT_OK);
	return arg;
}

static void *leave_and_stop(void *arg)
{
	leave_region(arg);
	JUDGE("in the call", rt_stop_the_world(RT_STOP_HOST), RT_OK);
	return arg;
}

static void *leave_and_enter(void *arg)
{
	leave_region(arg);
	JUDGE("in the call", rt_blocking_enter(), RT_OK);
	return arg;
}

static void *leave_and_end_the_heap(void *arg)
{
	leave_region(arg);
	JUDGE("in the call", rt_fini(), RT_OK);
	return arg;
}

GROUP(callbacks);

// A function that rt_call_blocking calls may end the region.  Then the region
// stays ended, and everything that the function did stays done.
TEST(calls_that_end_their_region)
{
	begin();
	JUDGE("leaves", rt_call_blocking(leave_region, words) == words, 1);
	JUDGE("again", rt_blocking_leave(), RT_ESTATE);
	JUDGE("enters again", rt_call_blocking(leave_and_enter, words) == words,
	      1);
	JUDGE("entered again", rt_blocking_leave(), RT_ESTATE);
	JUDGE("stops", rt_call_blocking(leave_and_stop, words) == words, 1);
	JUDGE("by the call", rt_world_stopped(), 1);
	JUDGE("after the call", rt_start_the_world(NULL), RT_OK);
	JUDGE("detaches", rt_call_blocking(leave_and_detach, words) == words,
	      1);
	JUDGE("detached", some(rt_thread_self()), NOTHING);
	JUDGE("again", rt_thread_attach(0), RT_OK);
	heap_healthy();
	JUDGE("ends the heap",
	      rt_call_blocking(leave_and_end_the_heap, words) == words, 1);
	JUDGE("without a heap", rt_gc(), RT_ESTATE);
	begin();
	heap_healthy();
	finish(17);
}

static void *exit_in_call(void *arg)
{
	(void)arg;
	pthread_exit(NULL);
}

static void *thread_that_exits_in_call(void *arg)
{
	JUDGE("a thread", rt_thread_attach(0), RT_OK);
	rt_call_blocking(exit_in_call, NULL);
	judge("the thread", "goes on", 1, 0);
	return arg;
}

TEST(calls_that_end_their_thread)
{
	begin();
	run_beside(thread_that_exits_in_call, NULL);
	heap_healthy();
	JUDGE("alone", rt_fini(), RT_OK);
	finish(2);
}

static int walk_answer(void *obj, size_t size, int kind, void *arg)
{
	static const int answers[] = {2, -1, INT_MAX, INT_MIN};
	unsigned *n = arg;

	(void)obj;
	(void)size;
	(void)kind;
	return answers[(*n)++ % RT_ARRAY_LEN(answers)];
}

// Only RT_WALK_STOP ends a walk.
TEST(walks_that_are_answered_wrongly)
{
	unsigned n = 0;

	begin();
	for (unsigned i = 1; i < RT_ARRAY_LEN(words); i++)
		words[i] = (uintptr_t)rt_alloc(OBJECT);
	JUDGE("odd answers", rt_heap_walk(walk_answer, &n), RT_OK);
	judge("the objects", "all", n >= RT_ARRAY_LEN(words), 1);
	heap_healthy();
	finish(2);
}

static unsigned oom_calls;

static int oom_answer(size_t n, void *arg)
{
	(void)n;
	oom_calls++;
	return *(int *)arg;
}

static int oom_removes_itself(size_t n, void *arg)
{
	(void)n;
	(void)arg;
	oom_calls++;
	rt_set_oom_handler(NULL, NULL);
	return 1;
}

static int oom_ends_the_heap(size_t n, void *arg)
{
	(void)n;
	(void)arg;
	oom_calls++;
	JUDGE("in the handler", rt_fini(), RT_OK);
	return 1;
}

// oom_makes_another_heap asks for one more try, which may find the new heap.
static int oom_makes_another_heap(size_t n, void *arg)
{
	if (oom_calls > 0)
		return 0;
	oom_ends_the_heap(n, arg);
	begin();
	return 1;
}

// too_much requests all bytes of the heap's range, of which some are in use.
static long too_much(void)
{
	return some(rt_alloc_noscan_uninit(256 << 20));
}

TEST(handlers_that_answer_wrongly)
{
	static const int answers[] = {2, -1, INT_MAX, INT_MIN, 256};

	begin();
	for (size_t i = 0; i < RT_ARRAY_LEN(answers); i++) {
		int answer = answers[i];

		oom_calls = 0;
		rt_set_oom_handler(oom_answer, &answer);
		judge("rt_alloc", "odd answer", too_much(), NOTHING);
		judge("the handler", "asked once", oom_calls, 1);
	}
	oom_calls = 0;
	rt_set_oom_handler(oom_removes_itself, NULL);
	judge("rt_alloc", "handler removes itself", too_much(), NOTHING);
	judge("the handler", "asked once", oom_calls, 1);
	heap_healthy();
	finish(2 * RT_ARRAY_LEN(answers) + 2);
}

TEST(handlers_that_end_the_heap)
{
	begin();
	oom_calls = 0;
	rt_set_oom_handler(oom_ends_the_heap, NULL);
	judge("rt_alloc", "heap ended", too_much(), NOTHING);
	judge("the handler", "asked once", oom_calls, 1);
	JUDGE("heap ended", rt_gc(), RT_ESTATE);
	begin();
	oom_calls = 0;
	rt_set_oom_handler(oom_makes_another_heap, NULL);
	judge("rt_alloc", "another heap", too_much(), NOTHING);
	heap_healthy();
	finish(6);
}

static jmp_buf away;

static void warn_detaches(const char *text, void *arg)
{
	(void)text;
	(void)arg;
	JUDGE("in the handler", rt_thread_detach(), RT_OK);
}

static void warn_stops(const char *text, void *arg)
{
	(void)text;
	(void)arg;
	JUDGE("in the handler", rt_stop_the_world(RT_STOP_HOST), RT_OK);
}

static void warn_jumps(const char *text, void *arg)
{
	(void)text;
	(void)arg;
	longjmp(away, 1);
}

// A statistic is made wrong, so that each exact read has something to report.
TEST(warnings_that_are_answered_wrongly)
{
	begin();
	rt_set_memstats_double_check(RT_CHECK_REPORT);
	gauge_add(&gauges.other_sys, 4096);
	rt_set_warn_handler(warn_detaches, NULL);
	JUDGE("detaches", rt_read_memstats(&stats), RT_OK);
	JUDGE("again", rt_thread_attach(0), RT_OK);
	rt_set_warn_handler(warn_stops, NULL);
	JUDGE("stops", rt_read_memstats(&stats), RT_OK);
	JUDGE("stopped", rt_start_the_world(NULL), RT_OK);
	rt_set_warn_handler(warn_jumps, NULL);
	if (setjmp(away) == 0) {
		rt_read_memstats(&stats);
		judge("the handler", "jumps", 0, 1);
	}
	gauge_add(&gauges.other_sys, -4096);
	rt_set_memstats_double_check(RT_CHECK_FATAL);
	JUDGE("after it", rt_read_memstats(&stats), RT_OK);
	heap_healthy();
	finish(7);
}
