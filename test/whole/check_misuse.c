// Every public function, called wrongly, gives the answer that its header
// documents, and changes nothing, not even errno.
#include "test/harness/suite.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rt/rt.h>

#include "runtime/pages/arena.h"
#include "runtime/base/base.h"
#include "runtime/os/gauge.h"
#include "runtime/spans/mcache.h"

// Where a call is made.
enum place {
	NO_HEAP,    // before rt_init, after rt_fini
	UNATTACHED, // there is a heap
	ATTACHED,
	IN_REGION,
	OWN_STOP,
	PLACES,
};

static const char *const place_names[PLACES] = {
    "without a heap",	    "unattached",      "attached",
    "in a blocking region", "in the own stop",
};

// An answer is the int result; for a pointer or a size SOME or NOTHING.
enum { NOTHING = 0, SOME = 1, NOT_HERE = 1000 };

static unsigned cases, failures;

static void judge(const char *name, const char *where, long got, long want)
{
	cases++;
	if (got == want)
		return;
	failures++;
	fprintf(stderr, "%s, %s: %ld, not %ld\n", name, where, got, want);
}

// finish ends a test: every case is counted and none failed.
static void finish(unsigned at_least)
{
	fprintf(stderr, "check_misuse: %u cases, %u failed\n", cases, failures);
	ck_assert_uint_eq(failures, 0);
	ck_assert_uint_ge(cases, at_least);
}

// ---- the heap and what calls are made with ----

enum { OBJECT = 64, STACK = 4096 };

static void *object;	  // an object of OBJECT bytes, kept by its root
static void *stack;	  // a stack of STACK bytes
static uint64_t words[8]; // of the host
static rt_memstats stats;
static struct rt_verify verified;

static rt_config config_of_test(void)
{
	rt_config c;

	rt_config_init(&c);
	c.max_heap = 256 << 20;
	c.double_check = RT_CHECK_FATAL;
	return c;
}

static void heap_begin(void)
{
	rt_config c = config_of_test();

	ck_assert_int_eq(rt_init(&c), RT_OK);
	object = rt_alloc(OBJECT);
	stack = rt_stack_alloc(STACK);
	ck_assert(object && stack);
	ck_assert_int_eq(rt_roots_add(&object, &object + 1, RT_ROOT_EXACT),
			 RT_OK);
}

static void heap_healthy(void)
{
	ck_assert_int_eq(rt_heap_verify(&verified), RT_OK);
	ck_assert_msg(verified.errors == 0, "%s", verified.first);
}

static void *same(void *arg)
{
	return arg;
}

static void nothing_text(const char *text, void *arg)
{
	(void)text;
	(void)arg;
}

static int nothing_oom(size_t n, void *arg)
{
	(void)n;
	(void)arg;
	return 0;
}

static int nothing_walk(void *obj, size_t size, int kind, void *arg)
{
	(void)obj;
	(void)size;
	(void)kind;
	(void)arg;
	return 0;
}

// ---- every function in every place ----

static long some(const void *p)
{
	return p ? SOME : NOTHING;
}

static long call_strerror(void)
{
	return some(rt_strerror(RT_EPERM));
}

static long call_strerror_unknown(void)
{
	return some(rt_strerror(INT_MIN)) & some(rt_strerror(1)) &
	       some(rt_strerror(RT_ENOENT - 1));
}

static long call_version(void)
{
	return rt_version() == RT_VERSION_NUMBER;
}

static long call_config_init(void)
{
	rt_config c;

	rt_config_init(&c);
	return c.struct_size == sizeof c;
}

static long call_config_from_env(void)
{
	rt_config c;

	rt_config_init(&c);
	return rt_config_from_env(&c);
}

static long call_config_from_env_null(void)
{
	return rt_config_from_env(NULL);
}

static long call_init(void)
{
	return rt_init(NULL);
}

static long call_init_bad(void)
{
	rt_config c = config_of_test();

	c.concurrent = 1;
	return rt_init(&c);
}

static long call_fini(void)
{
	return rt_fini();
}

static long call_alloc(void)
{
	return some((rt_alloc)(64));
}

static long call_alloc_zero(void)
{
	return some((rt_alloc)(0));
}

static long call_alloc_inline(void)
{
	return some(rt_alloc(64));
}

static long call_alloc_inline_least(void)
{
	return some(rt_alloc(16));
}

static long call_alloc_inline_most(void)
{
	return some(rt_alloc(1024));
}

static long call_alloc_large(void)
{
	return some(rt_alloc(100000));
}

static long call_noscan(void)
{
	return some((rt_alloc_noscan)(64));
}

static long call_noscan_inline(void)
{
	return some(rt_alloc_noscan(64));
}

static long call_noscan_tiny(void)
{
	return some(rt_alloc_noscan(3));
}

static long call_noscan_uninit(void)
{
	return some(rt_alloc_noscan_uninit(5000));
}

static long call_kind(void)
{
	return some(rt_alloc_kind(RT_WORDS, 200));
}

static long call_kind_unknown(void)
{
	return some(rt_alloc_kind(RT_TYPED, 200));
}

static long call_alloc_in(void)
{
	return some((rt_alloc_in)(rt_thread_tls, 64));
}

static long call_alloc_in_inline(void)
{
	return some(rt_alloc_in(rt_thread_tls, 64));
}

static long call_noscan_in(void)
{
	return some((rt_alloc_noscan_in)(rt_thread_tls, 64));
}

static long call_noscan_in_inline(void)
{
	return some(rt_alloc_noscan_in(rt_thread_tls, 64));
}

static long call_alloc_slow(void)
{
	return some(rt_alloc_slow_(rt_thread_tls, RT_RUN_CLASSES + 6, 64));
}

static long call_size(void)
{
	return rt_size(object) == OBJECT;
}

static long call_base(void)
{
	return rt_base((char *)object + 1) == object && object;
}

static long call_is_heap(void)
{
	return rt_is_heap(object);
}

static long call_good_size(void)
{
	return rt_good_size(100) == 112;
}

static long call_stack_alloc(void)
{
	void *s = rt_stack_alloc(STACK);

	if (s && rt_stack_free(s, STACK) != RT_OK)
		return -1;
	return some(s);
}

static long call_stack_alloc_odd(void)
{
	return some(rt_stack_alloc(STACK + 1));
}

static long call_stack_free(void)
{
	return rt_stack_free(stack ? stack : words, STACK);
}

static long call_stack_free_null(void)
{
	return rt_stack_free(NULL, STACK);
}

static long call_attach(void)
{
	return rt_thread_attach(0);
}

static long call_attach_bad(void)
{
	return rt_thread_attach(4);
}

static long call_attach_stack(void)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	return rt_thread_attach_stack((void *)(here - 65536),
				      (void *)(here + 4096), 0);
}

static long call_attach_stack_null(void)
{
	return rt_thread_attach_stack(NULL, NULL, 0);
}

static long call_detach(void)
{
	return rt_thread_detach();
}

static long call_self(void)
{
	return some(rt_thread_self());
}

static long call_enter(void)
{
	int error = rt_blocking_enter();

	if (error == RT_OK && rt_blocking_leave() != RT_OK)
		return -1000;
	return error;
}

static long call_leave(void)
{
	return rt_blocking_leave();
}

static long call_blocking(void)
{
	return rt_call_blocking(same, words) == words;
}

static long call_blocking_null(void)
{
	return some(rt_call_blocking(NULL, words));
}

static long call_safepoint(void)
{
	rt_safepoint();
	return SOME;
}

static long call_stop(void)
{
	int error = rt_stop_the_world(RT_STOP_HOST);

	if (error == RT_OK && rt_start_the_world(NULL) != RT_OK)
		return -1000;
	return error;
}

static long call_stop_reason(void)
{
	return rt_stop_the_world(RT_STOP_HOST - 1);
}

static long call_start(void)
{
	rt_stop_times t;
	int error;

	memset(&t, 0x5a, sizeof t);
	error = rt_start_the_world(&t);
	for (size_t i = 0; error && i < sizeof t; i++)
		if (((unsigned char *)&t)[i] != 0x5a)
			return -1000; // must be untouched
	return error;
}

static long call_stopped(void)
{
	return rt_world_stopped();
}

static long call_walk(void)
{
	return rt_heap_walk(nothing_walk, NULL);
}

static long call_walk_null(void)
{
	return rt_heap_walk(NULL, NULL);
}

static long call_verify(void)
{
	int error;

	verified.errors = 77;
	error = rt_heap_verify(&verified);
	return verified.errors == (error ? 77 : 0) ? error : -1000;
}

static long call_verify_null(void)
{
	return rt_heap_verify(NULL);
}

static long call_roots_add(void)
{
	int error = rt_roots_add(words, words + 8, RT_ROOT_WORDS);

	if (error == RT_OK && rt_roots_remove(words, words + 8) != RT_OK)
		return -1000;
	return error;
}

static long call_roots_add_null(void)
{
	return rt_roots_add(NULL, words, 0);
}

static long call_roots_remove(void)
{
	return rt_roots_remove(words + 1, words + 2);
}

static long call_store(void)
{
	RT_STORE(words, &words[1], 42);
	return words[1] == 42;
}

static long call_store_slow(void)
{
	rt_store_slow_(rt_thread_tls, words, (rt_word *)&words[2], words);
	return words[2] == (uintptr_t)words;
}

static long call_gc(void)
{
	return rt_gc();
}

static long call_percent(void)
{
	int old = 4711, back;
	int error = rt_set_gc_percent(100, &old);

	if (error)
		return old == 4711 ? error : -1000;
	return rt_set_gc_percent(old, &back);
}

static long call_percent_null(void)
{
	return rt_set_gc_percent(100, NULL);
}

static long call_free_os_memory(void)
{
	return rt_free_os_memory();
}

static long call_oom_handler(void)
{
	int error = rt_set_oom_handler(nothing_oom, NULL);

	return error ? error : rt_set_oom_handler(NULL, NULL);
}

static long call_warn_handler(void)
{
	int error = rt_set_warn_handler(nothing_text, NULL);

	return error ? error : rt_set_warn_handler(NULL, NULL);
}

static long call_fatal_handler(void)
{
	int error = rt_set_fatal_handler(nothing_text, NULL);

	return error ? error : rt_set_fatal_handler(NULL, NULL);
}

static long call_memstats(void)
{
	stats.sys = 4711;
	return rt_read_memstats(&stats) + (stats.sys == 0);
}

static long call_memstats_null(void)
{
	return rt_read_memstats(NULL);
}

static long call_live(void)
{
	return rt_read_memstats_live(&stats);
}

static long call_live_null(void)
{
	return rt_read_memstats_live(NULL);
}

static uint64_t pauses[RT_GCSTATS_WORDS];

static long call_gcstats(void)
{
	size_t used = 4711;
	int error = rt_read_gcstats(pauses, RT_GCSTATS_WORDS, &used);

	if (error)
		return used == 4711 ? error : -1000;
	return used >= 3 && used <= RT_GCSTATS_WORDS ? RT_OK : -1000;
}

static long call_gcstats_null(void)
{
	size_t used;

	return rt_read_gcstats(NULL, RT_GCSTATS_WORDS, &used);
}

static long call_gcstats_no_used(void)
{
	return rt_read_gcstats(pauses, RT_GCSTATS_WORDS, NULL);
}

static long call_gcstats_short(void)
{
	size_t used;

	return rt_read_gcstats(pauses, RT_GCSTATS_WORDS - 1, &used);
}

static long call_double_check(void)
{
	return rt_set_memstats_double_check(RT_CHECK_FATAL);
}

static long call_double_check_bad(void)
{
	return rt_set_memstats_double_check(RT_CHECK_REPORT + 1);
}

static long call_metrics_count(void)
{
	return rt_metrics_count() > 0;
}

static long call_metrics_describe(void)
{
	rt_metric_desc d;

	return rt_metrics_describe(0, &d);
}

static long call_metrics_describe_null(void)
{
	return rt_metrics_describe(0, NULL);
}

static long call_metrics_describe_beyond(void)
{
	rt_metric_desc d;

	return rt_metrics_describe(rt_metrics_count(), &d);
}

static long call_metrics_read(void)
{
	rt_metric_sample s = {.name = "/gc/heap/live:bytes"};
	int error = rt_metrics_read(&s, 1);

	return error == RT_OK && s.kind != RT_METRIC_U64 ? -1000 : error;
}

static long call_metrics_read_none(void)
{
	return rt_metrics_read(NULL, 0);
}

static long call_metrics_read_null(void)
{
	return rt_metrics_read(NULL, 1);
}

static long call_fork_prepare(void)
{
	int error = rt_fork_prepare();

	if (error == RT_OK && rt_fork_parent() != RT_OK)
		return -1000;
	return error;
}

static long call_fork_parent(void)
{
	return rt_fork_parent();
}

static long call_fork_child(void)
{
	return rt_fork_child();
}

struct door_case {
	const char *name;
	long (*call)(void);
	long want[PLACES];
};

#define ANYWHERE(x)                                                            \
	{                                                                      \
		x, x, x, x, x                                                  \
	}
#define ALLOCATES                                                              \
	{                                                                      \
		NOTHING, NOTHING, SOME, NOTHING, NOTHING                       \
	}
#define ATTACHED_ONLY(x)                                                       \
	{                                                                      \
		RT_ESTATE, RT_EPERM, x, RT_ESTATE, RT_EBUSY                    \
	}
#define STOPPED_TOO                                                            \
	{                                                                      \
		RT_ESTATE, RT_EPERM, RT_OK, RT_ESTATE, RT_OK                   \
	}
#define ANY_WITH_HEAP                                                          \
	{                                                                      \
		RT_ESTATE, RT_OK, RT_OK, RT_OK, RT_OK                          \
	}
#define NOT_IN_STOP                                                            \
	{                                                                      \
		RT_OK, RT_OK, RT_OK, RT_OK, RT_EBUSY                           \
	}
#define FINDS                                                                  \
	{                                                                      \
		NOTHING, SOME, SOME, SOME, SOME                                \
	}

static const struct door_case door_cases[] = {
    {"rt_strerror", call_strerror, ANYWHERE(SOME)},
    {"rt_strerror(unknown)", call_strerror_unknown, ANYWHERE(SOME)},
    {"rt_version", call_version, ANYWHERE(SOME)},
    {"rt_config_init", call_config_init, ANYWHERE(SOME)},
    {"rt_config_from_env", call_config_from_env, ANYWHERE(RT_OK)},
    {"rt_config_from_env(NULL)", call_config_from_env_null,
     ANYWHERE(RT_EINVAL)},
    {"rt_init",
     call_init,
     {NOT_HERE, RT_ESTATE, RT_ESTATE, RT_ESTATE, RT_ESTATE}},
    {"rt_init(bad)", call_init_bad, ANYWHERE(RT_EINVAL)},
    {"rt_fini", call_fini, ATTACHED_ONLY(NOT_HERE)},
    {"rt_alloc", call_alloc, ALLOCATES},
    {"rt_alloc(0)", call_alloc_zero, ALLOCATES},
    {"rt_alloc inline", call_alloc_inline, ALLOCATES},
    {"rt_alloc inline 16", call_alloc_inline_least, ALLOCATES},
    {"rt_alloc inline 1024", call_alloc_inline_most, ALLOCATES},
    {"rt_alloc large", call_alloc_large, ALLOCATES},
    {"rt_alloc_noscan", call_noscan, ALLOCATES},
    {"rt_alloc_noscan inline", call_noscan_inline, ALLOCATES},
    {"rt_alloc_noscan tiny", call_noscan_tiny, ALLOCATES},
    {"rt_alloc_noscan_uninit", call_noscan_uninit, ALLOCATES},
    {"rt_alloc_kind", call_kind, ALLOCATES},
    {"rt_alloc_kind(unknown)", call_kind_unknown, ANYWHERE(NOTHING)},
    {"rt_alloc_in", call_alloc_in, ALLOCATES},
    {"rt_alloc_in inline", call_alloc_in_inline, ALLOCATES},
    {"rt_alloc_noscan_in", call_noscan_in, ALLOCATES},
    {"rt_alloc_noscan_in inline", call_noscan_in_inline, ALLOCATES},
    {"rt_alloc_slow_", call_alloc_slow, ALLOCATES},
    {"rt_size", call_size, FINDS},
    {"rt_base", call_base, FINDS},
    {"rt_is_heap", call_is_heap, FINDS},
    {"rt_good_size", call_good_size, ANYWHERE(SOME)},
    {"rt_stack_alloc", call_stack_alloc, ALLOCATES},
    {"rt_stack_alloc(odd)", call_stack_alloc_odd, ANYWHERE(NOTHING)},
    {"rt_stack_free", call_stack_free, ATTACHED_ONLY(NOT_HERE)},
    {"rt_stack_free(NULL)", call_stack_free_null, ANYWHERE(RT_EINVAL)},
    {"rt_thread_attach",
     call_attach,
     {RT_ESTATE, NOT_HERE, RT_ESTATE, RT_ESTATE, RT_ESTATE}},
    {"rt_thread_attach(bad)", call_attach_bad, ANYWHERE(RT_EINVAL)},
    {"rt_thread_attach_stack",
     call_attach_stack,
     {RT_ESTATE, NOT_HERE, RT_ESTATE, RT_ESTATE, RT_ESTATE}},
    {"rt_thread_attach_stack(NULL)", call_attach_stack_null,
     ANYWHERE(RT_EINVAL)},
    {"rt_thread_detach", call_detach, ATTACHED_ONLY(NOT_HERE)},
    {"rt_thread_self", call_self, {NOTHING, NOTHING, SOME, SOME, SOME}},
    {"rt_blocking_enter", call_enter, ATTACHED_ONLY(RT_OK)},
    {"rt_blocking_leave",
     call_leave,
     {RT_ESTATE, RT_EPERM, RT_ESTATE, NOT_HERE, RT_ESTATE}},
    {"rt_call_blocking", call_blocking, ANYWHERE(SOME)},
    {"rt_call_blocking(NULL)", call_blocking_null, ANYWHERE(NOTHING)},
    {"rt_safepoint", call_safepoint, ANYWHERE(SOME)},
    {"rt_stop_the_world", call_stop, ATTACHED_ONLY(RT_OK)},
    {"rt_stop_the_world(reason)", call_stop_reason, ANYWHERE(RT_EINVAL)},
    {"rt_start_the_world",
     call_start,
     {RT_ESTATE, RT_EPERM, RT_EPERM, RT_EPERM, NOT_HERE}},
    {"rt_world_stopped", call_stopped, {0, 0, 0, 0, 1}},
    {"rt_heap_walk", call_walk, STOPPED_TOO},
    {"rt_heap_walk(NULL)", call_walk_null, ANYWHERE(RT_EINVAL)},
    {"rt_heap_verify", call_verify, STOPPED_TOO},
    {"rt_heap_verify(NULL)", call_verify_null, ANYWHERE(RT_EINVAL)},
    {"rt_roots_add", call_roots_add, ATTACHED_ONLY(RT_OK)},
    {"rt_roots_add(NULL)", call_roots_add_null, ANYWHERE(RT_EINVAL)},
    {"rt_roots_remove(unknown)",
     call_roots_remove,
     {RT_ESTATE, RT_ENOENT, RT_ENOENT, RT_ENOENT, RT_EBUSY}},
    {"RT_STORE", call_store, ANYWHERE(SOME)},
    {"rt_store_slow_", call_store_slow, ANYWHERE(SOME)},
    {"rt_gc", call_gc, ATTACHED_ONLY(RT_OK)},
    {"rt_set_gc_percent", call_percent, ATTACHED_ONLY(RT_OK)},
    {"rt_set_gc_percent(NULL)", call_percent_null, ATTACHED_ONLY(RT_OK)},
    {"rt_free_os_memory", call_free_os_memory, ATTACHED_ONLY(RT_OK)},
    {"rt_set_oom_handler", call_oom_handler, NOT_IN_STOP},
    {"rt_set_warn_handler", call_warn_handler, NOT_IN_STOP},
    {"rt_set_fatal_handler", call_fatal_handler, NOT_IN_STOP},
    {"rt_read_memstats", call_memstats, ANY_WITH_HEAP},
    {"rt_read_memstats(NULL)", call_memstats_null, ANYWHERE(RT_EINVAL)},
    {"rt_read_memstats_live", call_live, ANY_WITH_HEAP},
    {"rt_read_memstats_live(NULL)", call_live_null, ANYWHERE(RT_EINVAL)},
    {"rt_read_gcstats", call_gcstats, ANY_WITH_HEAP},
    {"rt_read_gcstats(NULL)", call_gcstats_null, ANYWHERE(RT_EINVAL)},
    {"rt_read_gcstats(used NULL)", call_gcstats_no_used, ANYWHERE(RT_EINVAL)},
    {"rt_read_gcstats(short)", call_gcstats_short, ANYWHERE(RT_EINVAL)},
    {"rt_set_memstats_double_check",
     call_double_check,
     {RT_ESTATE, RT_OK, RT_OK, RT_OK, RT_EBUSY}},
    {"rt_set_memstats_double_check(bad)", call_double_check_bad,
     ANYWHERE(RT_EINVAL)},
    {"rt_metrics_count", call_metrics_count, ANYWHERE(SOME)},
    {"rt_metrics_describe", call_metrics_describe, ANYWHERE(RT_OK)},
    {"rt_metrics_describe(NULL)", call_metrics_describe_null,
     ANYWHERE(RT_EINVAL)},
    {"rt_metrics_describe(beyond)", call_metrics_describe_beyond,
     ANYWHERE(RT_ENOENT)},
    {"rt_metrics_read", call_metrics_read, ANY_WITH_HEAP},
    {"rt_metrics_read(none)", call_metrics_read_none, ANY_WITH_HEAP},
    {"rt_metrics_read(NULL)", call_metrics_read_null, ANYWHERE(RT_EINVAL)},
    {"rt_fork_prepare", call_fork_prepare, ANYWHERE(RT_OK)},
    {"rt_fork_parent", call_fork_parent, ANYWHERE(RT_EPERM)},
    {"rt_fork_child", call_fork_child, ANYWHERE(RT_EPERM)},
};

// refused: an answer after which nothing may have changed.
static bool refused(const struct door_case *c, enum place place)
{
	return c->want[place] != c->want[ATTACHED] || c->want[place] < 0;
}

// judge_call makes a call; errno is the host's.
static void judge_call(const struct door_case *c, enum place place)
{
	long got;

	errno = EXDEV;
	got = c->call();
	judge(c->name, "errno", errno, EXDEV);
	judge(c->name, place_names[place], got, c->want[place]);
}

// run_doors makes every call in one place; statistics can be read there
// unless there is no heap.
static void run_doors(enum place place)
{
	static rt_memstats before, after;

	for (size_t i = 0; i < RT_ARRAY_LEN(door_cases); i++) {
		const struct door_case *c = &door_cases[i];

		if (c->want[place] == NOT_HERE)
			continue;
		if (place != NO_HEAP)
			rt_read_memstats(&before);
		judge_call(c, place);
		if (place == NO_HEAP || !refused(c, place))
			continue;
		rt_read_memstats(&after);
		judge(c->name, "statistics unchanged",
		      memcmp(&before, &after, sizeof before), 0);
	}
}

enum { DOORS = RT_ARRAY_LEN(door_cases) };

GROUP(doors);

TEST(before_the_heap)
{
	run_doors(NO_HEAP);
	heap_begin();
	heap_healthy();
	finish(2 * (DOORS - 1));
}

TEST(after_the_heap)
{
	heap_begin();
	ck_assert_int_eq(rt_fini(), RT_OK);
	run_doors(NO_HEAP);
	finish(2 * (DOORS - 1));
}

static void *unattached_thread(void *arg)
{
	(void)arg;
	run_doors(UNATTACHED);
	return NULL;
}

TEST(unattached)
{
	pthread_t thread;

	heap_begin();
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	ck_assert_int_eq(pthread_create(&thread, NULL, unattached_thread, NULL),
			 0);
	pthread_join(thread, NULL);
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	heap_healthy();
	finish(2 * (DOORS - 3));
}

TEST(unattached_after_detach)
{
	heap_begin();
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	run_doors(UNATTACHED);
	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	heap_healthy();
	finish(2 * (DOORS - 3));
}

TEST(attached)
{
	heap_begin();
	run_doors(ATTACHED);
	heap_healthy();
	finish(2 * (DOORS - 5));
}

TEST(in_a_region)
{
	heap_begin();
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	run_doors(IN_REGION);
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	heap_healthy();
	finish(2 * (DOORS - 1));
}

static void *region_doors(void *arg)
{
	run_doors(IN_REGION);
	return arg;
}

TEST(in_rt_call_blocking)
{
	heap_begin();
	ck_assert_ptr_eq(rt_call_blocking(region_doors, words), words);
	heap_healthy();
	finish(2 * (DOORS - 1));
}

TEST(in_the_own_stop)
{
	heap_begin();
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	run_doors(OWN_STOP);
	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
	heap_healthy();
	finish(2 * (DOORS - 1));
}

static int walk_doors(void *obj, size_t size, int kind, void *arg)
{
	(void)obj;
	(void)size;
	(void)kind;
	(void)arg;
	run_doors(OWN_STOP);
	judge("rt_start_the_world", "in a walk", call_start(), RT_EPERM);
	judge("the walk", "inside another", call_walk(), RT_OK);
	judge("rt_start_the_world", "after a walk in a walk", call_start(),
	      RT_EPERM);
	return RT_WALK_STOP;
}

TEST(in_a_walk)
{
	heap_begin();
	ck_assert_int_eq(rt_heap_walk(walk_doors, NULL), RT_OK);
	ck_assert_int_eq(rt_world_stopped(), 0);
	heap_healthy();
	finish(2 * (DOORS - 1));
}

TEST(in_a_walk_of_the_own_stop)
{
	heap_begin();
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	ck_assert_int_eq(rt_heap_walk(walk_doors, NULL), RT_OK);
	ck_assert_int_eq(rt_world_stopped(), 1);
	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
	ck_assert_int_eq(rt_start_the_world(NULL), RT_EPERM);
	heap_healthy();
	finish(2 * (DOORS - 1));
}

// ---- wrong sizes and kinds ----

static void *by_alloc(size_t n)
{
	return (rt_alloc)(n);
}

static void *by_alloc_inline(size_t n)
{
	return rt_alloc(n);
}

static void *by_noscan(size_t n)
{
	return (rt_alloc_noscan)(n);
}

static void *by_noscan_inline(size_t n)
{
	return rt_alloc_noscan(n);
}

static void *by_alloc_in(size_t n)
{
	return (rt_alloc_in)(rt_thread_self(), n);
}

static void *by_noscan_in(size_t n)
{
	return (rt_alloc_noscan_in)(rt_thread_self(), n);
}

static void *by_kind_in(size_t n)
{
	return rt_alloc_kind_in(rt_thread_self(), RT_WORDS, n);
}

static void *by_uninit(size_t n)
{
	return rt_alloc_noscan_uninit(n);
}

static void *by_kind_words(size_t n)
{
	return rt_alloc_kind(RT_WORDS, n);
}

static void *by_kind_noscan(size_t n)
{
	return rt_alloc_kind(RT_NOSCAN, n);
}

static void *by_slow(size_t n)
{
	return rt_alloc_slow_(rt_thread_self(), RT_ROW_WORDS * RT_RUN_CLASSES,
			      n);
}

static void *by_stack(size_t n)
{
	return rt_stack_alloc(n);
}

static const struct {
	const char *name;
	void *(*call)(size_t n);
} allocators[] = {
    {"rt_alloc", by_alloc},
    {"rt_alloc inline", by_alloc_inline},
    {"rt_alloc_noscan", by_noscan},
    {"rt_alloc_noscan inline", by_noscan_inline},
    {"rt_alloc_in", by_alloc_in},
    {"rt_alloc_noscan_in", by_noscan_in},
    {"rt_alloc_kind_in", by_kind_in},
    {"rt_alloc_noscan_uninit", by_uninit},
    {"rt_alloc_kind(RT_WORDS)", by_kind_words},
    {"rt_alloc_kind(RT_NOSCAN)", by_kind_noscan},
    {"rt_alloc_slow_", by_slow},
    {"rt_stack_alloc", by_stack},
};

static const struct {
	const char *name;
	size_t n;
} huge_sizes[] = {
    {"2^63", (size_t)1 << 63}, {"2^63 + 1", ((size_t)1 << 63) + 1},
    {"-1", (size_t)-1},	       {"-7", (size_t)-7},
    {"-8", (size_t)-8},	       {"-15", (size_t)-15},
    {"-16", (size_t)-16},      {"-32760", (size_t)-32760},
    {"-8191", (size_t)-8191},  {"-8192", (size_t)-8192},
    {"-8193", (size_t)-8193},  {"3 * 2^62", (size_t)3 << 62},
};

static const struct {
	const char *name;
	size_t n;
} too_large[] = {
    {"PTRDIFF_MAX", PTRDIFF_MAX},
    {"PTRDIFF_MAX - 8191", PTRDIFF_MAX - 8191},
    {"2^62", (size_t)1 << 62},
    {"2^48", (size_t)1 << 48},
    {"2^47 - 1", ((size_t)1 << 47) - 1},
    {"2^44 + 1", ((size_t)1 << 44) + 1},
    {"2^40", (size_t)1 << 40},
    {"2^32", (size_t)1 << 32},
    {"max_heap + 1", (256 << 20) + 1},
};

GROUP(sizes, .timeout = 60);

TEST(sizes_beyond_ptrdiff_max_do_nothing)
{
	static rt_memstats before, after;

	heap_begin();
	for (size_t i = 0; i < RT_ARRAY_LEN(allocators); i++)
		for (size_t j = 0; j < RT_ARRAY_LEN(huge_sizes); j++) {
			rt_read_memstats(&before);
			judge(allocators[i].name, huge_sizes[j].name,
			      some(allocators[i].call(huge_sizes[j].n)),
			      NOTHING);
			rt_read_memstats(&after);
			judge(allocators[i].name, "statistics unchanged",
			      memcmp(&before, &after, sizeof before), 0);
		}
	heap_healthy();
	finish(2 * RT_ARRAY_LEN(allocators) * RT_ARRAY_LEN(huge_sizes));
}

// A size that might exist somewhere is looked for: a collection passes.
TEST(sizes_beyond_the_heap_get_nothing)
{
	static rt_memstats before, after;

	heap_begin();
	for (size_t i = 0; i < RT_ARRAY_LEN(allocators); i++)
		for (size_t j = 0; j < RT_ARRAY_LEN(too_large); j++) {
			rt_read_memstats(&before);
			judge(allocators[i].name, too_large[j].name,
			      some(allocators[i].call(too_large[j].n)),
			      NOTHING);
			rt_read_memstats(&after);
			judge(allocators[i].name, "mallocs unchanged",
			      (long)(after.mallocs - before.mallocs), 0);
			judge(allocators[i].name, "heap_sys unchanged",
			      (long)(after.heap_sys - before.heap_sys), 0);
		}
	heap_healthy();
	finish(3 * RT_ARRAY_LEN(allocators) * RT_ARRAY_LEN(too_large));
}

TEST(no_bytes_are_one_address_outside_of_the_heap)
{
	void *zero;

	heap_begin();
	zero = rt_alloc(0);
	ck_assert_ptr_nonnull(zero);
	*(volatile char *)zero = 0;
	for (size_t i = 0; i < RT_ARRAY_LEN(allocators) - 1; i++)
		judge(allocators[i].name, "0 bytes",
		      allocators[i].call(0) == zero, 1);
	judge("rt_stack_alloc", "0 bytes", some(rt_stack_alloc(0)), NOTHING);
	judge("rt_size", "of no bytes", (long)rt_size(zero), 0);
	judge("rt_base", "of no bytes", some(rt_base(zero)), NOTHING);
	judge("rt_is_heap", "of no bytes", rt_is_heap(zero), 0);
	finish(RT_ARRAY_LEN(allocators));
}

static const int bad_kinds[] = {
    -1,	 RT_TYPED, RT_KIND_FIRST, RT_KIND_MAX, RT_KIND_MAX + 1, 64,
    128, 256,	   INT_MAX,	  INT_MIN,     1 << 16,		0x10000001};

TEST(unknown_kinds_get_nothing)
{
	static const size_t sizes[] = {0, 1, 16, 64, 1024, 40000};
	static rt_memstats before, after;

	heap_begin();
	rt_read_memstats(&before);
	for (size_t i = 0; i < RT_ARRAY_LEN(bad_kinds); i++)
		for (size_t j = 0; j < RT_ARRAY_LEN(sizes); j++) {
			char name[64];

			snprintf(name, sizeof name, "kind %d", bad_kinds[i]);
			judge("rt_alloc_kind", name,
			      some(rt_alloc_kind(bad_kinds[i], sizes[j])),
			      NOTHING);
		}
	for (size_t j = 0; j < RT_ARRAY_LEN(sizes); j++) {
		judge("rt_alloc_slow_", "run beyond the table",
		      some(rt_alloc_slow_(rt_thread_self(),
					  RT_ROWS * RT_RUN_CLASSES, sizes[j])),
		      NOTHING);
		judge("rt_alloc_slow_", "run -1",
		      some(rt_alloc_slow_(rt_thread_self(), -1U, sizes[j])),
		      NOTHING);
	}
	judge("rt_alloc_kind_in", "constant kind 2",
	      some(rt_alloc_kind_in(rt_thread_self(), 2, 64)), NOTHING);
	judge("rt_alloc_kind_in", "constant kind -1",
	      some(rt_alloc_kind_in(rt_thread_self(), -1, 64)), NOTHING);
	rt_read_memstats(&after);
	judge("statistics", "unchanged", memcmp(&before, &after, sizeof before),
	      0);
	heap_healthy();
	finish((RT_ARRAY_LEN(bad_kinds) + 2) * RT_ARRAY_LEN(sizes));
}

TEST(good_sizes_of_a_heap_with_go_s_classes)
{
	static const size_t n[] = {0, 1, 8, 9, 16, 17, 24, 25, 32761, SIZE_MAX};
	static const long want[] = {0, 8, 8, 16, 16, 24, 24, 32, 32768, 0};
	rt_config c = config_of_test();

	c.align8 = 1;
	ck_assert_int_eq(rt_init(&c), RT_OK);
	for (size_t i = 0; i < RT_ARRAY_LEN(n); i++)
		judge("rt_good_size", "align8", (long)rt_good_size(n[i]),
		      want[i]);
	finish(RT_ARRAY_LEN(n));
}

TEST(good_sizes_at_the_edges)
{
	static const struct {
		const char *name;
		size_t n, want;
	} c[] = {
	    {"0", 0, 0},
	    {"1", 1, 16},
	    {"15", 15, 16},
	    {"16", 16, 16},
	    {"17", 17, 32},
	    {"1024", 1024, 1024},
	    {"1025", 1025, 1152},
	    {"32752", 32752, 32768},
	    {"32760", 32760, 32768},
	    {"32761", 32761, 32768},
	    {"32769", 32769, 40960},
	    {"32768", 32768, 32768},
	    {"40960", 40960, 40960},
	    {"40961", 40961, 49152},
	    {"2^40", (size_t)1 << 40, (size_t)1 << 40},
	    {"2^40 + 1", ((size_t)1 << 40) + 1, 0},
	    {"2^47", (size_t)1 << 47, 0},
	    {"PTRDIFF_MAX - 8191", PTRDIFF_MAX - 8191, 0},
	    {"PTRDIFF_MAX", PTRDIFF_MAX, 0},
	    {"2^63", (size_t)1 << 63, 0},
	    {"-8192", (size_t)-8192, 0},
	    {"-1", (size_t)-1, 0},
	};

	heap_begin();
	for (size_t i = 0; i < RT_ARRAY_LEN(c); i++)
		judge("rt_good_size", c[i].name, (long)rt_good_size(c[i].n),
		      (long)c[i].want);
	finish(RT_ARRAY_LEN(c));
}

// ---- pointers to anywhere ----

enum { FOREIGN = 40 };

static struct {
	const char *name;
	const void *p;
} foreign[FOREIGN];
static unsigned nforeign;

static void add_foreign(const char *name, const void *p)
{
	ck_assert_uint_lt(nforeign, FOREIGN);
	foreign[nforeign].name = name;
	foreign[nforeign++].p = p;
}

static void add_foreign_word(const char *name, uintptr_t p)
{
	add_foreign(name, (const void *)p);
}

// free_object is the address of an object that a collection has freed.
static RT_NOINLINE uintptr_t make_garbage(void)
{
	return ~(uintptr_t)rt_alloc_noscan(3000);
}

static void add_free_objects(void)
{
	uintptr_t garbage = make_garbage();

	// A span of this class is kept by its other object.
	words[0] = (uintptr_t)rt_alloc_noscan(3000);
	ck_assert_int_eq(rt_roots_add(words, words + 1, RT_ROOT_EXACT), RT_OK);
	rt_gc();
	rt_gc();
	add_foreign_word("slot behind the last object", words[0] + 3 * 3072);
	(void)garbage;
}

static void collect_foreign(const void *here)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *map =
	    mmap(NULL, 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t used = arena_used();

	ck_assert_ptr_ne(map, MAP_FAILED);
	munmap(map + page, page);
	add_foreign("null", NULL);
	add_foreign_word("1", 1);
	add_foreign_word("15", 15);
	add_foreign_word("page 1", 4096);
	add_foreign_word("page 2", 8192);
	add_foreign("the stack", here);
	add_foreign("static memory", words);
	add_foreign("malloc", malloc(100));
	add_foreign("large malloc", malloc(1 << 20));
	add_foreign("a function", (const void *)(uintptr_t)rt_gc);
	add_foreign("unreadable memory", map);
	add_foreign("unmapped memory", map + page);
	add_foreign_word("below the heap", arena.base - 1);
	add_foreign_word("a page below the heap", arena.base - RT_PAGE_SIZE);
	add_foreign_word("end of the heap", arena.base + used);
	add_foreign_word("gap above the heap", arena.base + used + 4711);
	add_foreign_word("last reserved byte", arena.base + arena.reserved - 1);
	add_foreign_word("end of reservation", arena.base + arena.reserved);
	add_foreign_word("free page", arena.base + used - 1);
	add_foreign("a stack of rt_stack_alloc", stack);
	add_foreign("inside that", (char *)stack + 100);
	add_foreign("own thread", rt_thread_self());
	add_foreign("bit lines", arena.lines);
	add_foreign("page words", (const void *)arena.words);
	add_foreign("a span", arena_span(arena_offset((uintptr_t)object) >>
					 RT_PAGE_SHIFT));
	add_foreign_word("2^47 - 1", (UINT64_C(1) << 47) - 1);
	add_foreign_word("2^47", UINT64_C(1) << 47);
	add_foreign_word("not canonical", UINT64_C(1) << 62);
	add_foreign_word("2^63", UINT64_C(1) << 63);
	add_foreign_word("-8192", (uintptr_t)-8192);
	add_foreign_word("-16", (uintptr_t)-16);
	add_foreign_word("-1", (uintptr_t)-1);
	add_foreign_word("tagged object", (uintptr_t)object | UINT64_C(1)
								  << 63);
}

GROUP(pointers);

TEST(foreign_pointers_are_in_no_object)
{
	static rt_memstats before, after;
	char here = 0;

	heap_begin();
	add_free_objects();
	collect_foreign(&here);
	rt_read_memstats(&before);
	for (unsigned i = 0; i < nforeign; i++) {
		const void *p = foreign[i].p;

		judge("rt_size", foreign[i].name, (long)rt_size(p), 0);
		judge("rt_base", foreign[i].name, some(rt_base(p)), NOTHING);
		judge("rt_is_heap", foreign[i].name, rt_is_heap(p), 0);
	}
	rt_read_memstats(&after);
	judge("statistics", "unchanged", memcmp(&before, &after, sizeof before),
	      0);
	heap_healthy();
	finish(3 * nforeign);
}

TEST(any_word_may_be_asked_about)
{
	struct rng r;
	unsigned wrong = 0;

	heap_begin();
	rng_init(&r, "any_word_may_be_asked_about");
	for (unsigned i = 0; i < 1000000; i++) {
		uintptr_t w = rng_next(&r);
		void *base;

		if (i % 4 == 0) // near the heap, most of it not used
			w = arena.base - (1 << 20) +
			    w % (arena.reserved + (2 << 20));
		base = rt_base((void *)w);
		wrong += rt_is_heap((void *)w) != (base != NULL);
		if (base)
			wrong += (uintptr_t)base > w ||
				 w - (uintptr_t)base >= rt_size((void *)w);
		else
			wrong += rt_size((void *)w) != 0;
	}
	ck_assert_uint_eq(wrong, 0);
}

// ---- stacks ----

TEST(stack_sizes_are_powers_of_two_from_2048)
{
	static const size_t bad[] = {
	    1,	  2,	8,    1024,  2047,  2049,	   3000,
	    4095, 4097, 6144, 24576, 32769, (1 << 20) - 1, (1 << 20) + 1};
	static rt_memstats before, after;

	heap_begin();
	rt_read_memstats(&before);
	for (size_t i = 0; i < RT_ARRAY_LEN(bad); i++) {
		char name[64];

		snprintf(name, sizeof name, "%zu bytes", bad[i]);
		judge("rt_stack_alloc", name, some(rt_stack_alloc(bad[i])),
		      NOTHING);
	}
	rt_read_memstats(&after);
	judge("statistics", "unchanged", memcmp(&before, &after, sizeof before),
	      0);
	finish(RT_ARRAY_LEN(bad));
}

TEST(only_stacks_are_freed)
{
	static const size_t sizes[] = {
	    0, 1, 100, 2048, 8192, 16384, 32768, (size_t)1 << 63, (size_t)-1};
	static rt_memstats before, after;
	char here = 0;

	heap_begin();
	collect_foreign(&here);
	rt_read_memstats(&before);
	for (unsigned i = 0; i < nforeign; i++) {
		if (foreign[i].p == stack)
			continue;
		judge("rt_stack_free", foreign[i].name,
		      rt_stack_free((void *)foreign[i].p, STACK), RT_EINVAL);
	}
	judge("rt_stack_free", "an object", rt_stack_free(object, OBJECT),
	      RT_EINVAL);
	judge("rt_stack_free", "an object as a stack",
	      rt_stack_free(object, STACK), RT_EINVAL);
	for (size_t i = 0; i < RT_ARRAY_LEN(sizes); i++) {
		char name[64];

		snprintf(name, sizeof name, "a stack with %zu bytes", sizes[i]);
		judge("rt_stack_free", name, rt_stack_free(stack, sizes[i]),
		      RT_EINVAL);
	}
	rt_read_memstats(&after);
	judge("statistics", "unchanged", memcmp(&before, &after, sizeof before),
	      0);
	judge("rt_stack_free", "at last", rt_stack_free(stack, STACK), RT_OK);
	heap_healthy();
	finish(nforeign + RT_ARRAY_LEN(sizes));
}

TEST(a_stack_is_freed_once)
{
	static const size_t sizes[] = {2048, 4096, 8192, 16384, 32768, 1 << 20};

	heap_begin();
	for (size_t i = 0; i < RT_ARRAY_LEN(sizes); i++) {
		void *a = rt_stack_alloc(sizes[i]);
		void *b = rt_stack_alloc(sizes[i]);

		judge("rt_stack_alloc", "two", some(a) & some(b), SOME);
		judge("rt_stack_free", "inside",
		      rt_stack_free((char *)a + 1024, sizes[i]), RT_EINVAL);
		judge("rt_stack_free", "half", rt_stack_free(a, sizes[i] / 2),
		      RT_EINVAL);
		judge("rt_stack_free", "double size",
		      rt_stack_free(a, sizes[i] * 2), RT_EINVAL);
		judge("rt_stack_free", "once", rt_stack_free(a, sizes[i]),
		      RT_OK);
		judge("rt_stack_free", "twice", rt_stack_free(a, sizes[i]),
		      RT_EINVAL);
		rt_read_memstats(&stats); // takes what the thread keeps
		judge("rt_stack_free", "twice, later",
		      rt_stack_free(a, sizes[i]), RT_EINVAL);
		judge("rt_stack_free", "the other", rt_stack_free(b, sizes[i]),
		      RT_OK);
		heap_healthy();
	}
	finish(8 * RT_ARRAY_LEN(sizes));
}

// What is not freed when the heap ends does not show in the next one.
TEST(stacks_die_with_the_heap)
{
	static const size_t sizes[] = {2048, 4096, 8192, 16384, 32768};

	for (int round = 0; round < 3; round++) {
		heap_begin();
		rt_read_memstats(&stats);
		judge("stack_inuse", "one stack in a span",
		      (long)stats.stack_inuse, 32 << 10);
		for (size_t i = 0; i < RT_ARRAY_LEN(sizes); i++) {
			char *s = rt_stack_alloc(sizes[i]);

			judge("rt_stack_alloc", "in another heap", some(s),
			      SOME);
			memset(s, 0xff, sizes[i]);
		}
		heap_healthy();
		ck_assert_int_eq(rt_fini(), RT_OK);
	}
	finish(15);
}

// ---- roots ----

TEST(bad_ranges_are_no_roots)
{
	static uint64_t w[16];
	char *lo = (char *)w, *hi = (char *)(w + 8);
	const struct {
		const char *name;
		void *lo, *hi;
		int flags;
	} c[] = {
	    {"both null", NULL, NULL, 0},
	    {"lo null", NULL, hi, 0},
	    {"hi null", lo, NULL, 0},
	    {"empty", lo, lo, 0},
	    {"reversed", hi, lo, 0},
	    {"lo misaligned by 1", lo + 1, hi, 0},
	    {"lo misaligned by 4", lo + 4, hi, 0},
	    {"lo misaligned by 7", lo + 7, hi, 0},
	    {"hi misaligned by 1", lo, hi + 1, 0},
	    {"hi misaligned by 4", lo, hi + 4, 0},
	    {"both misaligned", lo + 4, hi + 4, 0},
	    {"less than a word", lo, lo + 4, 0},
	    {"flags 2", lo, hi, 2},
	    {"flags 3", lo, hi, 3},
	    {"flags -1", lo, hi, -1},
	    {"flags INT_MIN", lo, hi, INT_MIN},
	    {"flags INT_MAX", lo, hi, INT_MAX},
	};
	static rt_memstats before, after;

	heap_begin();
	rt_read_memstats(&before);
	for (size_t i = 0; i < RT_ARRAY_LEN(c); i++) {
		judge("rt_roots_add", c[i].name,
		      rt_roots_add(c[i].lo, c[i].hi, c[i].flags), RT_EINVAL);
		judge("rt_roots_remove", c[i].name,
		      rt_roots_remove(c[i].lo, c[i].hi), RT_ENOENT);
	}
	rt_read_memstats(&after);
	judge("statistics", "unchanged", memcmp(&before, &after, sizeof before),
	      0);
	finish(2 * RT_ARRAY_LEN(c));
}

TEST(roots_are_removed_as_often_as_added)
{
	static uint64_t w[16];

	heap_begin();
	judge("add", "first", rt_roots_add(w, w + 8, 0), RT_OK);
	judge("add", "again", rt_roots_add(w, w + 8, 1), RT_OK);
	judge("add", "overlapping", rt_roots_add(w + 4, w + 16, 1), RT_OK);
	judge("remove", "other end", rt_roots_remove(w, w + 9), RT_ENOENT);
	judge("remove", "other start", rt_roots_remove(w + 1, w + 8),
	      RT_ENOENT);
	judge("remove", "union", rt_roots_remove(w, w + 16), RT_ENOENT);
	judge("remove", "first", rt_roots_remove(w, w + 8), RT_OK);
	judge("remove", "again", rt_roots_remove(w, w + 8), RT_OK);
	judge("remove", "thrice", rt_roots_remove(w, w + 8), RT_ENOENT);
	judge("remove", "overlapping", rt_roots_remove(w + 4, w + 16), RT_OK);
	judge("remove", "swapped", rt_roots_remove(w + 16, w + 4), RT_ENOENT);
	heap_healthy();
	finish(11);
}

// A host's mistake of another kind: what a root says is no pointer at all.
TEST(roots_may_hold_anything)
{
	static uint64_t w[4096];
	struct rng r;

	heap_begin();
	rng_init(&r, "roots_may_hold_anything");
	ck_assert_int_eq(rt_roots_add(w, w + 4096, RT_ROOT_EXACT), RT_OK);
	ck_assert_int_eq(rt_roots_add(w + 2048, w + 4096, RT_ROOT_WORDS),
			 RT_OK);
	for (int round = 0; round < 20; round++) {
		for (unsigned i = 0; i < 4096; i++) {
			w[i] = rng_next(&r);
			if (i % 2 == 0)
				w[i] =
				    arena.base + w[i] % (arena_used() + 8192);
		}
		judge("rt_gc", "with garbage in roots", rt_gc(), RT_OK);
		heap_healthy();
		judge("rt_size", "of what is kept", (long)rt_size(object),
		      OBJECT);
	}
	finish(40);
}

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
		judge("rt_thread_attach", bad_flags[i].name,
		      rt_thread_attach(bad_flags[i].flags), RT_EINVAL);
	for (size_t i = 0; i < RT_ARRAY_LEN(c); i++)
		judge("rt_thread_attach_stack", c[i].name,
		      rt_thread_attach_stack(c[i].lo, c[i].hi, c[i].flags),
		      RT_EINVAL);
	judge("rt_thread_self", "still unattached", some(rt_thread_self()),
	      NOTHING);
	judge("rt_thread_attach_stack", "good",
	      rt_thread_attach_stack(lo, hi, RT_THREAD_COOPERATIVE), RT_OK);
	judge("rt_thread_attach_stack", "twice",
	      rt_thread_attach_stack(lo, hi, 0), RT_ESTATE);
	judge("rt_thread_attach", "after it", rt_thread_attach(0), RT_ESTATE);
	judge("rt_fini", "two attached", rt_fini(), RT_EBUSY);
	judge("rt_thread_detach", "once", rt_thread_detach(), RT_OK);
	judge("rt_thread_detach", "twice", rt_thread_detach(), RT_EPERM);
	judge("rt_thread_attach_stack", "odd bounds",
	      rt_thread_attach_stack(lo + 1, hi - 3, 0), RT_OK);
	judge("rt_gc", "odd bounds", rt_gc(), RT_OK);
	judge("rt_thread_detach", "odd bounds", rt_thread_detach(), RT_OK);
	free(malloced);
	return arg;
}

GROUP(threads);

TEST(attaching_wrongly)
{
	pthread_t thread;

	heap_begin();
	rt_blocking_enter();
	ck_assert_int_eq(pthread_create(&thread, NULL, attach_wrongly, NULL),
			 0);
	pthread_join(thread, NULL);
	rt_blocking_leave();
	heap_healthy();
	judge("rt_fini", "one attached", rt_fini(), RT_OK);
	judge("rt_fini", "twice", rt_fini(), RT_ESTATE);
	finish(20);
}

TEST(every_valid_flag_attaches)
{
	heap_begin();
	for (unsigned flags = 0; flags < 4; flags++) {
		judge("rt_thread_detach", "valid flags", rt_thread_detach(),
		      RT_OK);
		judge("rt_thread_attach", "valid flags",
		      rt_thread_attach(flags), RT_OK);
	}
	heap_healthy();
	finish(8);
}

static void *exit_in_region(void *arg)
{
	judge("rt_thread_attach", "thread that exits", rt_thread_attach(0),
	      RT_OK);
	if (arg)
		judge("rt_blocking_enter", "thread that exits",
		      rt_blocking_enter(), RT_OK);
	return NULL;
}

static void *exit_in_stop(void *arg)
{
	judge("rt_thread_attach", "thread that exits", rt_thread_attach(0),
	      RT_OK);
	judge("rt_stop_the_world", "thread that exits",
	      rt_stop_the_world(RT_STOP_HOST), RT_OK);
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
	judge("rt_thread_attach", "thread that exits", rt_thread_attach(0),
	      RT_OK);
	rt_heap_walk(exit_in_walk_callback, NULL);
	return arg;
}

// A thread that exits attached is detached, wherever it was.
TEST(threads_may_exit_anywhere)
{
	void *(*const fn[])(void *) = {exit_in_region, exit_in_stop,
				       exit_in_walk};

	heap_begin();
	for (int i = 0; i < 6; i++) {
		pthread_t thread;

		rt_blocking_enter();
		ck_assert_int_eq(pthread_create(&thread, NULL, fn[i / 2],
						i % 2 ? words : NULL),
				 0);
		pthread_join(thread, NULL);
		judge("rt_blocking_leave", "after a thread",
		      rt_blocking_leave(), RT_OK);
		judge("rt_world_stopped", "after a thread", rt_world_stopped(),
		      0);
		heap_healthy();
	}
	judge("rt_gc", "after threads", rt_gc(), RT_OK);
	judge("rt_fini", "after threads", rt_fini(), RT_OK);
	finish(20);
}

static void *start_of_another(void *arg)
{
	judge("rt_start_the_world", "unattached", rt_start_the_world(NULL),
	      RT_EPERM);
	judge("rt_world_stopped", "by another", rt_world_stopped(), 1);
	return arg;
}

TEST(only_the_stopper_starts_the_world)
{
	pthread_t thread;

	heap_begin();
	ck_assert_int_eq(rt_stop_the_world(INT_MAX), RT_OK);
	ck_assert_int_eq(pthread_create(&thread, NULL, start_of_another, NULL),
			 0);
	pthread_join(thread, NULL);
	judge("rt_world_stopped", "still", rt_world_stopped(), 1);
	judge("rt_start_the_world", "stopper", rt_start_the_world(NULL), RT_OK);
	judge("rt_start_the_world", "twice", rt_start_the_world(NULL),
	      RT_EPERM);
	finish(5);
}

TEST(reasons_below_host_are_the_library_s)
{
	heap_begin();
	for (int reason = -2; reason < RT_STOP_HOST; reason++) {
		char name[64];

		snprintf(name, sizeof name, "reason %d", reason);
		judge("rt_stop_the_world", name, rt_stop_the_world(reason),
		      RT_EINVAL);
	}
	judge("rt_stop_the_world", "INT_MIN", rt_stop_the_world(INT_MIN),
	      RT_EINVAL);
	judge("rt_world_stopped", "after all that", rt_world_stopped(), 0);
	finish(RT_STOP_HOST);
}

// ---- functions of the host that do what they should not ----

static void *leave_region(void *arg)
{
	judge("rt_blocking_leave", "in the call", rt_blocking_leave(), RT_OK);
	return arg;
}

static void *leave_and_detach(void *arg)
{
	leave_region(arg);
	judge("rt_thread_detach", "in the call", rt_thread_detach(), RT_OK);
	return arg;
}

static void *leave_and_stop(void *arg)
{
	leave_region(arg);
	judge("rt_stop_the_world", "in the call",
	      rt_stop_the_world(RT_STOP_HOST), RT_OK);
	return arg;
}

static void *leave_and_enter(void *arg)
{
	leave_region(arg);
	judge("rt_blocking_enter", "in the call", rt_blocking_enter(), RT_OK);
	return arg;
}

static void *leave_and_end_the_heap(void *arg)
{
	leave_region(arg);
	judge("rt_fini", "in the call", rt_fini(), RT_OK);
	return arg;
}

GROUP(callbacks);

// What rt_call_blocking calls may end the region: it stays ended, and what
// the function did else stays done.
TEST(calls_that_end_their_region)
{
	heap_begin();
	judge("rt_call_blocking", "leaves",
	      rt_call_blocking(leave_region, words) == words, 1);
	judge("rt_blocking_leave", "again", rt_blocking_leave(), RT_ESTATE);
	judge("rt_call_blocking", "enters again",
	      rt_call_blocking(leave_and_enter, words) == words, 1);
	judge("rt_blocking_leave", "entered again", rt_blocking_leave(),
	      RT_ESTATE);
	judge("rt_call_blocking", "stops",
	      rt_call_blocking(leave_and_stop, words) == words, 1);
	judge("rt_world_stopped", "by the call", rt_world_stopped(), 1);
	judge("rt_start_the_world", "after the call", rt_start_the_world(NULL),
	      RT_OK);
	judge("rt_call_blocking", "detaches",
	      rt_call_blocking(leave_and_detach, words) == words, 1);
	judge("rt_thread_self", "detached", some(rt_thread_self()), NOTHING);
	judge("rt_thread_attach", "again", rt_thread_attach(0), RT_OK);
	heap_healthy();
	judge("rt_call_blocking", "ends the heap",
	      rt_call_blocking(leave_and_end_the_heap, words) == words, 1);
	judge("rt_gc", "without a heap", rt_gc(), RT_ESTATE);
	heap_begin();
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
	judge("rt_thread_attach", "a thread", rt_thread_attach(0), RT_OK);
	rt_call_blocking(exit_in_call, NULL);
	judge("the thread", "goes on", 1, 0);
	return arg;
}

TEST(calls_that_end_their_thread)
{
	pthread_t thread;

	heap_begin();
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	ck_assert_int_eq(
	    pthread_create(&thread, NULL, thread_that_exits_in_call, NULL), 0);
	pthread_join(thread, NULL);
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	heap_healthy();
	judge("rt_fini", "alone", rt_fini(), RT_OK);
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

	heap_begin();
	for (unsigned i = 1; i < RT_ARRAY_LEN(words); i++)
		words[i] = (uintptr_t)rt_alloc(OBJECT);
	judge("rt_heap_walk", "odd answers", rt_heap_walk(walk_answer, &n),
	      RT_OK);
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
	judge("rt_fini", "in the handler", rt_fini(), RT_OK);
	return 1;
}

// It asks for another try once, which may find the new heap.
static int oom_makes_another_heap(size_t n, void *arg)
{
	if (oom_calls > 0)
		return 0;
	oom_ends_the_heap(n, arg);
	heap_begin();
	return 1;
}

// too_much is an allocation that the heap has address space for, and no more.
static long too_much(void)
{
	return some(rt_alloc_noscan_uninit(256 << 20));
}

TEST(handlers_that_answer_wrongly)
{
	static const int answers[] = {2, -1, INT_MAX, INT_MIN, 256};

	heap_begin();
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
	heap_begin();
	oom_calls = 0;
	rt_set_oom_handler(oom_ends_the_heap, NULL);
	judge("rt_alloc", "heap ended", too_much(), NOTHING);
	judge("the handler", "asked once", oom_calls, 1);
	judge("rt_gc", "heap ended", rt_gc(), RT_ESTATE);
	heap_begin();
	oom_calls = 0;
	rt_set_oom_handler(oom_makes_another_heap, NULL);
	judge("rt_alloc", "another heap", too_much(), NOTHING);
	heap_healthy();
	finish(6);
}

static jmp_buf away;

static void warn_detaches(const char *text, void *arg)
{
	nothing_text(text, arg);
	judge("rt_thread_detach", "in the handler", rt_thread_detach(), RT_OK);
}

static void warn_stops(const char *text, void *arg)
{
	nothing_text(text, arg);
	judge("rt_stop_the_world", "in the handler",
	      rt_stop_the_world(RT_STOP_HOST), RT_OK);
}

static void warn_jumps(const char *text, void *arg)
{
	nothing_text(text, arg);
	longjmp(away, 1);
}

// A statistic is made wrong, so that each exact read has something to tell.
TEST(warnings_that_are_answered_wrongly)
{
	heap_begin();
	rt_set_memstats_double_check(RT_CHECK_REPORT);
	gauge_add(&gauges.other_sys, 4096);
	rt_set_warn_handler(warn_detaches, NULL);
	judge("rt_read_memstats", "detaches", rt_read_memstats(&stats), RT_OK);
	judge("rt_thread_attach", "again", rt_thread_attach(0), RT_OK);
	rt_set_warn_handler(warn_stops, NULL);
	judge("rt_read_memstats", "stops", rt_read_memstats(&stats), RT_OK);
	judge("rt_start_the_world", "stopped", rt_start_the_world(NULL), RT_OK);
	rt_set_warn_handler(warn_jumps, NULL);
	if (setjmp(away) == 0) {
		rt_read_memstats(&stats);
		judge("the handler", "jumps", 0, 1);
	}
	gauge_add(&gauges.other_sys, -4096);
	rt_set_memstats_double_check(RT_CHECK_FATAL);
	judge("rt_read_memstats", "after it", rt_read_memstats(&stats), RT_OK);
	heap_healthy();
	finish(7);
}

// ---- numbers and enumerations ----

GROUP(numbers);

TEST(percentages_of_any_size)
{
	static const int percent[] = {0,  1,  100,     INT_MAX,
				      -1, -2, INT_MIN, 1000000};
	int expected = 100;

	heap_begin();
	for (size_t i = 0; i < RT_ARRAY_LEN(percent); i++) {
		int old = 4711;
		char name[64];

		snprintf(name, sizeof name, "%d", percent[i]);
		judge("rt_set_gc_percent", name,
		      rt_set_gc_percent(percent[i], &old), RT_OK);
		judge("the percentage before", name, old, expected);
		expected = percent[i] < 0 ? -1 : percent[i];
		rt_read_memstats(&stats);
		judge("next_gc is off", name, stats.next_gc == UINT64_MAX,
		      percent[i] < 0);
		judge("rt_alloc", name, some(rt_alloc(64)), SOME);
	}
	heap_healthy();
	finish(4 * RT_ARRAY_LEN(percent));
}

TEST(unknown_modes_of_double_check)
{
	static const int modes[] = {-1, 3, 4, 256, INT_MAX, INT_MIN};

	heap_begin();
	for (size_t i = 0; i < RT_ARRAY_LEN(modes); i++)
		judge("rt_set_memstats_double_check", "unknown mode",
		      rt_set_memstats_double_check(modes[i]), RT_EINVAL);
	for (int mode = RT_CHECK_OFF; mode <= RT_CHECK_REPORT; mode++)
		judge("rt_set_memstats_double_check", "known mode",
		      rt_set_memstats_double_check(mode), RT_OK);
	finish(9);
}

TEST(rooms_for_gcstats)
{
	static const size_t short_rooms[] = {0, 1, 3, RT_GCSTATS_WORDS - 1};
	size_t used = 4711;

	heap_begin();
	memset(pauses, 0x5a, sizeof pauses);
	for (size_t i = 0; i < RT_ARRAY_LEN(short_rooms); i++)
		judge("rt_read_gcstats", "short",
		      rt_read_gcstats(pauses, short_rooms[i], &used),
		      RT_EINVAL);
	judge("used", "untouched", (long)used, 4711);
	judge("buf", "untouched", pauses[0] == UINT64_C(0x5a5a5a5a5a5a5a5a), 1);
	judge("rt_read_gcstats", "much room",
	      rt_read_gcstats(pauses, SIZE_MAX, &used), RT_OK);
	judge("used", "no collection yet", (long)used, 3);
	finish(8);
}

TEST(metrics_asked_wrongly)
{
	static const char *const names[] = {
	    NULL,
	    "",
	    "/",
	    "/gc/heap/live",
	    "/gc/heap/live:byte",
	    "/gc/heap/live:bytess",
	    "gc/heap/live:bytes",
	    "/GC/heap/live:bytes",
	    "/zzz",
	    "\xff\xff",
	};
	static const size_t beyond[] = {0, 1, SIZE_MAX / 2, SIZE_MAX - 1000};
	rt_metric_sample s;
	rt_metric_desc d;
	uint64_t one;

	heap_begin();
	for (size_t i = 0; i < RT_ARRAY_LEN(names); i++) {
		const char *name = names[i] ? names[i] : "(null)";

		s = (rt_metric_sample){.name = names[i],
				       .kind = RT_METRIC_U64,
				       .counts = &one,
				       .ncounts = 1};
		judge("rt_metrics_read", name, rt_metrics_read(&s, 1), RT_OK);
		judge("kind", name, (long)s.kind, RT_METRIC_BAD);
		judge("ncounts", name, (long)s.ncounts, 0);
	}
	for (size_t i = 0; i < RT_ARRAY_LEN(beyond); i++)
		judge("rt_metrics_describe", "beyond",
		      rt_metrics_describe(rt_metrics_count() + beyond[i], &d),
		      RT_ENOENT);
	judge("rt_metrics_describe", "SIZE_MAX",
	      rt_metrics_describe(SIZE_MAX, &d), RT_ENOENT);
	for (size_t i = 0; i < rt_metrics_count(); i++) {
		rt_metrics_describe(i, &d);
		if (d.kind != RT_METRIC_HISTOGRAM)
			continue;
		s = (rt_metric_sample){.name = d.name, .ncounts = 100000};
		judge(d.name, "counts null", rt_metrics_read(&s, 1), RT_OK);
		judge(d.name, "kind", (long)s.kind, RT_METRIC_BAD);
		judge(d.name, "needed", (long)s.ncounts, (long)d.ncounts);
		s = (rt_metric_sample){
		    .name = d.name, .counts = &one, .ncounts = 1};
		one = 4711;
		judge(d.name, "counts short", rt_metrics_read(&s, 1), RT_OK);
		judge(d.name, "kind", (long)s.kind, RT_METRIC_BAD);
		judge(d.name, "needed", (long)s.ncounts, (long)d.ncounts);
		judge(d.name, "room untouched", (long)one, 4711);
	}
	finish(40);
}

// ---- configurations ----

enum field {
	STRUCT_SIZE,
	MAX_HEAP,
	HEAP_MIN,
	HEADROOM,
	MEMORY_LIMIT,
	MAX_PROCS,
	GC_THREADS,
	DOUBLE_CHECK,
	STOP_SIGNAL,
	PAST_END,
	ALIGN8,
	CONCURRENT,
	NO_ATTACH,
	HUGE_PAGES,
	POPULATE,
	GC_PERCENT,
	STOP_GRACE,
};

static void set_field(rt_config *c, enum field f, int64_t v)
{
	switch (f) {
	case STRUCT_SIZE:
		c->struct_size = (size_t)v;
		return;
	case MAX_HEAP:
		c->max_heap = (size_t)v;
		return;
	case HEAP_MIN:
		c->heap_min = (size_t)v;
		return;
	case HEADROOM:
		c->heap_headroom = (size_t)v;
		return;
	case MEMORY_LIMIT:
		c->memory_limit = v;
		return;
	case MAX_PROCS:
		c->max_procs = (int)v;
		return;
	case GC_THREADS:
		c->gc_threads = (int)v;
		return;
	case DOUBLE_CHECK:
		c->double_check = (int)v;
		return;
	case STOP_SIGNAL:
		c->stop_signal = (int)v;
		return;
	case PAST_END:
		c->past_end = (uint8_t)v;
		return;
	case ALIGN8:
		c->align8 = (uint8_t)v;
		return;
	case CONCURRENT:
		c->concurrent = (uint8_t)v;
		return;
	case NO_ATTACH:
		c->no_attach = (uint8_t)v;
		return;
	case HUGE_PAGES:
		c->huge_pages = (uint8_t)v;
		return;
	case POPULATE:
		c->populate = (uint8_t)v;
		return;
	case GC_PERCENT:
		c->gc_percent = (int)v;
		return;
	case STOP_GRACE:
		c->stop_grace_us = (uint32_t)v;
	}
}

#define TIB (INT64_C(1) << 40)

static const struct config_case {
	const char *name;
	enum field field;
	int64_t value;
	int want;
} config_cases[] = {
    {"struct_size 0", STRUCT_SIZE, 0, RT_EINVAL},
    {"struct_size 1", STRUCT_SIZE, 1, RT_EINVAL},
    {"struct_size 7", STRUCT_SIZE, 7, RT_EINVAL},
    {"struct_size 8", STRUCT_SIZE, 8, RT_OK},
    {"struct_size 16", STRUCT_SIZE, 16, RT_OK},
    {"struct_size 71", STRUCT_SIZE, 71, RT_OK},
    {"struct_size 4097", STRUCT_SIZE, 4097, RT_EINVAL},
    {"struct_size 2^31", STRUCT_SIZE, INT64_C(1) << 31, RT_EINVAL},
    {"struct_size 2^63", STRUCT_SIZE, INT64_MIN, RT_EINVAL},
    {"struct_size -1", STRUCT_SIZE, -1, RT_EINVAL},
    {"struct_size 0xaaaa...", STRUCT_SIZE,
     (int64_t)UINT64_C(0xaaaaaaaaaaaaaaaa), RT_EINVAL},
    {"max_heap 1", MAX_HEAP, 1, RT_OK},
    {"max_heap 64 MiB - 1", MAX_HEAP, (64 << 20) - 1, RT_OK},
    {"max_heap 2^40", MAX_HEAP, TIB, RT_OK},
    {"max_heap 2^40 + 1", MAX_HEAP, TIB + 1, RT_EINVAL},
    {"max_heap 2^63", MAX_HEAP, INT64_MIN, RT_EINVAL},
    {"max_heap -1", MAX_HEAP, -1, RT_EINVAL},
    {"heap_min 1", HEAP_MIN, 1, RT_OK},
    {"heap_min 2^40", HEAP_MIN, TIB, RT_OK},
    {"heap_min 2^40 + 1", HEAP_MIN, TIB + 1, RT_EINVAL},
    {"heap_min -1", HEAP_MIN, -1, RT_EINVAL},
    {"heap_headroom 0", HEADROOM, 0, RT_OK},
    {"heap_headroom 2^40", HEADROOM, TIB, RT_OK},
    {"heap_headroom 2^40 + 1", HEADROOM, TIB + 1, RT_EINVAL},
    {"heap_headroom -1", HEADROOM, -1, RT_EINVAL},
    {"memory_limit 0", MEMORY_LIMIT, 0, RT_OK},
    {"memory_limit INT64_MAX", MEMORY_LIMIT, INT64_MAX, RT_OK},
    {"memory_limit -1", MEMORY_LIMIT, -1, RT_EINVAL},
    {"memory_limit INT64_MIN", MEMORY_LIMIT, INT64_MIN, RT_EINVAL},
    {"max_procs -1", MAX_PROCS, -1, RT_EINVAL},
    {"max_procs 1", MAX_PROCS, 1, RT_OK},
    {"max_procs 4096", MAX_PROCS, 4096, RT_OK},
    {"max_procs 4097", MAX_PROCS, 4097, RT_EINVAL},
    {"max_procs INT_MAX", MAX_PROCS, INT_MAX, RT_EINVAL},
    {"max_procs INT_MIN", MAX_PROCS, INT_MIN, RT_EINVAL},
    {"gc_threads -2", GC_THREADS, -2, RT_EINVAL},
    {"gc_threads 0", GC_THREADS, 0, RT_OK},
    {"gc_threads 4096", GC_THREADS, 4096, RT_OK},
    {"gc_threads 4097", GC_THREADS, 4097, RT_EINVAL},
    {"gc_threads INT_MIN", GC_THREADS, INT_MIN, RT_EINVAL},
    {"double_check -1", DOUBLE_CHECK, -1, RT_EINVAL},
    {"double_check 2", DOUBLE_CHECK, 2, RT_OK},
    {"double_check 3", DOUBLE_CHECK, 3, RT_EINVAL},
    {"double_check INT_MIN", DOUBLE_CHECK, INT_MIN, RT_EINVAL},
    {"stop_signal -1", STOP_SIGNAL, -1, RT_OK},
    {"stop_signal -2", STOP_SIGNAL, -2, RT_EINVAL},
    {"stop_signal SIGUSR1", STOP_SIGNAL, SIGUSR1, RT_OK},
    {"stop_signal SIGKILL", STOP_SIGNAL, SIGKILL, RT_EINVAL},
    {"stop_signal SIGSTOP", STOP_SIGNAL, SIGSTOP, RT_EINVAL},
    {"stop_signal SIGSEGV", STOP_SIGNAL, SIGSEGV, RT_EINVAL},
    {"stop_signal SIGBUS", STOP_SIGNAL, SIGBUS, RT_EINVAL},
    {"stop_signal SIGABRT", STOP_SIGNAL, SIGABRT, RT_EINVAL},
    {"stop_signal SIGFPE", STOP_SIGNAL, SIGFPE, RT_EINVAL},
    {"stop_signal SIGILL", STOP_SIGNAL, SIGILL, RT_EINVAL},
    {"stop_signal SIGTRAP", STOP_SIGNAL, SIGTRAP, RT_EINVAL},
    {"stop_signal SIGSYS", STOP_SIGNAL, SIGSYS, RT_EINVAL},
    {"stop_signal 32", STOP_SIGNAL, 32, RT_EINVAL},
    {"stop_signal 33", STOP_SIGNAL, 33, RT_EINVAL},
    {"stop_signal 64", STOP_SIGNAL, 64, RT_OK},
    {"stop_signal 65", STOP_SIGNAL, 65, RT_EINVAL},
    {"stop_signal INT_MAX", STOP_SIGNAL, INT_MAX, RT_EINVAL},
    {"stop_signal INT_MIN", STOP_SIGNAL, INT_MIN, RT_EINVAL},
    {"past_end 2", PAST_END, 2, RT_EINVAL},
    {"past_end 255", PAST_END, 255, RT_EINVAL},
    {"align8 2", ALIGN8, 2, RT_EINVAL},
    {"align8 1", ALIGN8, 1, RT_OK},
    {"concurrent 1", CONCURRENT, 1, RT_EINVAL},
    {"concurrent 255", CONCURRENT, 255, RT_EINVAL},
    {"no_attach 2", NO_ATTACH, 2, RT_EINVAL},
    {"no_attach 255", NO_ATTACH, 255, RT_EINVAL},
    {"huge_pages 0", HUGE_PAGES, 0, RT_OK},
    {"huge_pages 2", HUGE_PAGES, 2, RT_EINVAL},
    {"huge_pages 255", HUGE_PAGES, 255, RT_EINVAL},
    {"populate 0", POPULATE, 0, RT_OK},
    {"populate 2", POPULATE, 2, RT_EINVAL},
    {"populate 255", POPULATE, 255, RT_EINVAL},
    {"gc_percent 0", GC_PERCENT, 0, RT_OK},
    {"gc_percent INT_MAX", GC_PERCENT, INT_MAX, RT_OK},
    {"gc_percent INT_MIN", GC_PERCENT, INT_MIN, RT_OK},
    {"stop_grace_us 2^32 - 1", STOP_GRACE, UINT32_MAX, RT_OK},
};

GROUP(configurations);

TEST(bad_configurations_make_no_heap, .n = RT_ARRAY_LEN(config_cases))
{
	const struct config_case *c = &config_cases[_i];
	// Longer than any struct_size that is believed, zero at the end.
	static union {
		rt_config c;
		char room[8192];
	} u;

	rt_config_init(&u.c);
	set_field(&u.c, c->field, c->value);
	judge("rt_init", c->name, rt_init(&u.c), c->want);
	if (c->want == RT_OK) {
		judge("rt_alloc", c->name, some(rt_alloc(100)), SOME);
		heap_healthy();
		judge("rt_fini", c->name, rt_fini(), RT_OK);
	}
	judge("rt_thread_self", c->name, some(rt_thread_self()), NOTHING);
	judge("rt_gc", c->name, rt_gc(), RT_ESTATE);
	heap_begin();
	heap_healthy();
	finish(3);
}

TEST(sizes_of_config_init)
{
	union {
		rt_config c;
		unsigned char byte[256];
	} u;

	rt_config_init_sized(NULL, sizeof u.c);
	memset(&u, 0x5a, sizeof u);
	for (size_t n = 0; n < sizeof(size_t); n++)
		rt_config_init_sized(&u.c, n);
	for (unsigned i = 0; i < sizeof u; i++)
		judge("rt_config_init_sized", "too small", u.byte[i], 0x5a);
	rt_config_init_sized(&u.c, sizeof(size_t));
	judge("rt_config_init_sized", "8 bytes", (long)u.c.struct_size, 8);
	judge("rt_config_init_sized", "no more than 8", u.byte[8], 0x5a);
	rt_config_init_sized(&u.c, sizeof u);
	judge("rt_config_init_sized", "256 bytes", (long)u.c.struct_size, 256);
	judge("rt_config_init_sized", "zero at the end", u.byte[255], 0);
	judge("rt_init", "longer, zero", rt_init(&u.c), RT_OK);
	judge("rt_fini", "longer, zero", rt_fini(), RT_OK);
	u.byte[255] = 1;
	judge("rt_init", "longer, unknown field", rt_init(&u.c), RT_EINVAL);
	judge("rt_config_from_env", "longer, unknown field",
	      rt_config_from_env(&u.c), RT_EINVAL);
	memset(&u, 0, sizeof u);
	judge("rt_config_from_env", "not initialised", rt_config_from_env(&u.c),
	      RT_EINVAL);
	judge("rt_init", "not initialised", rt_init(&u.c), RT_EINVAL);
	finish(266);
}

// no_attach leaves the caller outside; the heap ends only from inside.
TEST(a_heap_without_its_maker)
{
	rt_config c = config_of_test();

	c.no_attach = 1;
	judge("rt_init", "no_attach", rt_init(&c), RT_OK);
	judge("rt_thread_self", "no_attach", some(rt_thread_self()), NOTHING);
	judge("rt_alloc", "no_attach", some(rt_alloc(64)), NOTHING);
	judge("rt_fini", "no_attach", rt_fini(), RT_EPERM);
	judge("rt_read_memstats", "no_attach", rt_read_memstats(&stats), RT_OK);
	judge("rt_thread_attach", "no_attach", rt_thread_attach(0), RT_OK);
	judge("rt_fini", "attached", rt_fini(), RT_OK);
	finish(7);
}
