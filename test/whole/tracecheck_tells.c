// Where the report of rt_config.tracecheck goes, and what it says without
// memory.
#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gc/mark/notices.h"
#include "gc/mark/sites.h"
#include "gc/mark/targets.h"
#include "gc/mark/work.h"
#include "test/harness/death.h"
#include "test/harness/fault.h"
#include "test/whole/tracecheck.h"
#include "test/harness/thread.h"

GROUP(telling, .setup = start, .timeout = 60);

// ---- the handler ----

static void report_to_stderr(void)
{
	ck_assert_int_eq(rt_set_warn_handler(NULL, NULL), RT_OK);
	errno = 5;
	ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert_int_eq(errno, 5);
	_exit(0);
}

TEST(without_a_handler_it_is_on_stderr)
{
	unsigned lines = 0;

	root[0] = make(add_kind(traced("k", trace_nothing)), 32);
	root[0][1] = leaf();
	root[0][2] = leaf();
	ck_assert_int_eq(death_status(report_to_stderr), 0);
	for (const char *s = death_output;
	     (s = strstr(s, "rtheap: tracecheck: k at ")) != NULL; s++)
		lines++;
	ck_assert_msg(lines == 2, "%s", death_output);
	ck_assert_ptr_nonnull(strstr(death_output, "reaches\nrtheap: "));
	ck_assert_int_eq(death_output[strlen(death_output) - 1], '\n');
}

// The handler runs with the world started, so it may do anything.
static unsigned nested;

static void collect_inside(const char *text, void *arg)
{
	keep_line(text, arg);
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
	ck_assert_ptr_nonnull(rt_alloc(100000));
	if (nested++ == 0) {
		root[0][3] = leaf();
		ck_assert_int_eq(rt_gc(), RT_OK);
	}
}

TEST(a_handler_may_collect)
{
	root[0] = make(add_kind(traced("k", trace_nothing)), 64);
	root[0][1] = leaf();
	root[0][2] = leaf();
	ck_assert_int_eq(rt_set_warn_handler(collect_inside, said), RT_OK);
	ck_assert_int_eq(rt_gc(), RT_OK);
	// The lines of both collections, in order.
	ck_assert_uint_eq(nsaid, 3);
	for (unsigned i = 0; i < 3; i++) {
		char offset[20];

		snprintf(offset, sizeof offset, ", offset %u: ", 8 * (i + 1));
		expect_in(said[i], offset);
	}
	ck_assert_uint_eq(notices_left(), 0);
}

static void detach_inside(const char *text, void *arg)
{
	keep_line(text, arg);
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
}

// If the handler detaches its thread, the other lines wait for a thread that is
// attached.
TEST(a_handler_may_detach, .n = 2)
{
	rt_kind_desc d = traced("k", trace_nothing);

	ck_assert_int_eq(rt_fini(), RT_OK);
	{
		rt_config c = config_of(0);

		c.gcstress = 1000;
		start_as(c);
	}
	root[0] = make(add_kind(d), 64);
	root[0][1] = leaf();
	root[0][2] = leaf();
	ck_assert_int_eq(rt_set_warn_handler(detach_inside, said), RT_OK);
	if (_i == 0) {
		ck_assert_int_eq(rt_gc(), RT_OK);
	} else {
		for (unsigned i = 0; i < 1000 && rt_thread_self(); i++)
			rt_alloc(2000);
		ck_assert_ptr_null(rt_alloc(2000));
		ck_assert_ptr_null(rt_stack_alloc(4096));
	}
	ck_assert_uint_eq(nsaid, 1);
	ck_assert_int_eq(rt_thread_attach(RT_THREAD_EXACT), RT_OK);
	ck_assert_int_eq(rt_set_warn_handler(keep_line, said), RT_OK);
	ck_assert_ptr_nonnull(rt_alloc(100000));
	ck_assert_uint_eq(nsaid, 2);
	expect_in(said[1], ", offset 16: ");
}

static void exit_inside(const char *text, void *arg)
{
	keep_line(text, arg);
	ck_assert_int_eq(rt_set_warn_handler(keep_line, said), RT_OK);
	pthread_exit(NULL);
}

static void *collect_and_exit(void *arg)
{
	ck_assert_int_eq(rt_thread_attach(RT_THREAD_EXACT), RT_OK);
	rt_gc();
	return arg;
}

TEST(a_handler_may_end_its_thread)
{
	root[0] = make(add_kind(traced("k", trace_nothing)), 64);
	root[0][1] = leaf();
	root[0][2] = leaf();
	ck_assert_int_eq(rt_set_warn_handler(exit_inside, said), RT_OK);
	run_beside(collect_and_exit, root);
	ck_assert_uint_eq(nsaid, 1);
	ck_assert_ptr_nonnull(rt_alloc(100000));
	ck_assert_uint_eq(nsaid, 2);
	expect_in(said[1], ", offset 16: ");
}

// The allocation of a stack reports what its collection found.
TEST(a_stack_may_tell)
{
	ck_assert_int_eq(rt_fini(), RT_OK);
	{
		rt_config c = config_of(0);

		c.gc_percent = 100;
		c.heap_headroom = 0;
		start_as(c);
	}
	root[0] = make(add_kind(traced("k", trace_nothing)), 64);
	root[0][1] = leaf();
	for (unsigned i = 0; i < 1000 && nsaid == 0; i++)
		ck_assert_ptr_nonnull(rt_stack_alloc(64 << 10));
	ck_assert_uint_eq(nsaid, 1);
}

static int child_status;

static void fork_inside(const char *text, void *arg)
{
	pid_t child;

	keep_line(text, arg);
	if (nsaid != 1)
		return;
	child = fork();
	if (child == 0) {
		// The parent reports the other lines.  The child's heap still
		// works.
		bool ok = notices_left() == 0;

		nsaid = 1;
		root[0][5] = (uintptr_t)rt_alloc_noscan(16);
		ok &= rt_gc() == RT_OK && nsaid == 2;
		_exit(ok ? 42 : 1);
	}
	waitpid(child, &child_status, 0);
}

TEST(a_handler_may_fork)
{
	root[0] = make(add_kind(traced("k", trace_nothing)), 64);
	root[0][1] = leaf();
	root[0][2] = leaf();
	ck_assert_int_eq(rt_set_warn_handler(fork_inside, said), RT_OK);
	ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert_uint_eq(nsaid, 2);
	ck_assert(WIFEXITED(child_status));
	ck_assert_int_eq(WEXITSTATUS(child_status), 42);
}

// Several threads collect; each line is reported once, and only one thread at a
// time runs the handler.
static unsigned inside;
static pthread_mutex_t telling = PTHREAD_MUTEX_INITIALIZER;

static void count_line(const char *text, void *arg)
{
	ck_assert_int_eq(pthread_mutex_trylock(&telling), 0);
	inside++;
	keep_line(text, arg);
	rt_safepoint();
	pthread_mutex_unlock(&telling);
}

static void *collect_often(void *arg)
{
	(void)arg;
	ck_assert_int_eq(rt_thread_attach(RT_THREAD_EXACT), RT_OK);
	for (unsigned i = 0; i < 50; i++)
		ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	return NULL;
}

TEST(threads_tell_each_line_once)
{
	pthread_t thread[3];

	ck_assert_int_eq(rt_set_warn_handler(count_line, said), RT_OK);
	root[0] = make(add_kind(traced("k", trace_nothing)), 100 * 8);
	for (unsigned i = 0; i < 100; i++) {
		root[1 + i] = (uintptr_t *)leaf();
		root[0][i] = (uintptr_t)root[1 + i];
	}
	for (unsigned i = 0; i < 3; i++)
		thread[i] = start_thread(collect_often, NULL);
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	for (unsigned i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert_uint_ge(nsaid, 100);
	ck_assert_uint_eq(inside, nsaid);
	for (unsigned i = 0; i < 100; i++) {
		char offset[20];
		unsigned n = 0;

		snprintf(offset, sizeof offset, ", offset %u: ", 8 * i);
		for (unsigned k = 0; k < nsaid; k++)
			n += strstr(said[k], offset) != NULL;
		ck_assert_uint_eq(n, 1);
	}
}

// ---- memory ----

// build makes many objects, some of which forget one word.
static void build(void)
{
	int kind = add_kind(traced("k", tell_first));
	uintptr_t *list = NULL;

	for (unsigned i = 0; i < 20000 / HEAP_CUT; i++) {
		uintptr_t *o = make(kind, 32);

		o[0] = (uintptr_t)list;
		root[0] = list = o;
		if (i % 1000 == 0)
			o[2] = leaf();
	}
}

// How much memory marking has, and how many threads mark, makes no difference.
TEST(overflow_and_helpers_change_nothing, .n = 4)
{
	rt_config c = config_of(_i & 1 ? 3 : 0);

	ck_assert_int_eq(rt_fini(), RT_OK);
	if (_i & 2)
		work_limit(0);
	c.max_procs = 4;
	start_as(c);
	build();
	ck_assert_uint_eq(report(), 1);
	expect_in(said[0], ", offset 16: ");
	ck_assert_uint_eq(heap_stats().heap_objects, 20000 / HEAP_CUT);
	expect_no_lines();
	work_limit(UINT32_MAX);
}

// The numbers are around TARGETS_FEW: up to so many words the library needs no
// memory.
TEST(each_number_of_words_has_room, .n = 4)
{
	unsigned n = TARGETS_FEW - 1 + (unsigned)_i;
	uintptr_t *p =
	    make(add_kind(traced("row", trace_nothing)), n * sizeof *p);

	root[0] = p;
	for (unsigned i = 0; i < n; i++)
		p[i] = leaf();
	ck_assert_uint_eq(report(), n <= 64 ? n : 65);
}

// An object with many references needs a table.
TEST(a_large_object_is_looked_at)
{
	enum { N = 5000 };

	root[0] = make(add_kind(traced("k", tell_first)), N * 8);
	for (unsigned i = 0; i < N; i++)
		root[0][i] = leaf();
	ck_assert_uint_eq(report(), 65);
	ck_assert_str_eq(said[64], "rtheap: tracecheck: 4935 others");
	ck_assert_uint_eq(sites.n, N - 1);
	ck_assert_ptr_null(sites_check(&sites));
	heap_healthy();
}

// If memory is refused, the report says so, and says nothing else.
TEST(without_memory_it_says_so)
{
	rt_trace_fn *trace[2] = {trace_nothing, tell_first};
	uintptr_t large;

	for (unsigned i = 0; i < 2; i++)
		root[i] = make(add_kind(traced("k", trace[i])), 8000);
	for (unsigned i = 0; i < 1000; i++)
		root[0][i] = leaf();
	large = root[0][999];
	root[2] = make(add_kind(traced("small", trace_nothing)), 32);
	root[2][1] = leaf();
	fault_fail(OSCALL_MAP, 1, UINT64_MAX, ENOMEM);
	ck_assert_uint_eq(report(), 2);
	fault_fail(OSCALL_MAP, 1, 0, 0);
	ck_assert_str_eq(
	    said[0],
	    "rtheap: tracecheck: 1 words that there is no memory to note");
	ck_assert_str_eq(
	    said[1],
	    "rtheap: tracecheck: 1 objects that there is no memory to look at");
	ck_assert(!rt_is_heap((void *)large));
	root[0][3] = leaf();
	root[2][1] = leaf();
	ck_assert_uint_eq(report(), 2);
}
