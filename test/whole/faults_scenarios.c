// The scenarios of check_faults: what each does with a heap while the system
// refuses calls.
#define _GNU_SOURCE 1

#include "test/whole/faults.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "gc/mark/crew.h"
#include "gc/mark/sites.h"
#include "gc/mark/work.h"
#include "runtime/base/sizeclass.h"
#include "runtime/os/oscall.h"
#include "runtime/os/settings.h"
#include "runtime/spans/mcache.h"
#include "test/harness/await.h"
#include "test/harness/kind.h"

static unsigned act_init(void)
{
	unsigned failed;

	if (have_heap)
		end();
	processors = 0;
	failed = begin();
	processors = HELPERS + 1;
	return failed;
}

static unsigned act_classes(void)
{
	unsigned failed = 0;

	for (unsigned c = 1; c < SIZECLASS_COUNT; c++) {
		size_t n = sizeclass_table[c].size;

		n -= n > 16 ? 8 : 0;
		failed += !rt_alloc(n);
		failed += !rt_alloc_noscan(n);
		failed += !rt_alloc_noscan_uninit(n);
	}
	return failed;
}

unsigned act_large(void)
{
	unsigned failed = 0;

	failed += !rt_alloc(100000);
	failed += !rt_alloc_noscan(1 << 20);
	failed += !rt_alloc_noscan_uninit(5 << 20);
	return failed;
}

static unsigned act_growth(void)
{
	unsigned failed = 0;

	for (unsigned i = 0; i < 10; i++) {
		void *p = rt_alloc(1 << 20);

		failed += !p;
		if (p)
			kept[nkept++] = p;
	}
	drop();
	return failed;
}

// The heap maps memory, the first table for it is refused, and the memory is
// unmapped again.
static unsigned act_growth_undone(void)
{
	unsigned failed = !rt_alloc(16);

	if (trial.kind != OSCALL_COMMIT)
		fault_fail(OSCALL_COMMIT, 2, 1, ENOMEM);
	return failed + act_growth();
}

void make_wide(void)
{
	for (unsigned i = 0; i < NWIDE; i++) {
		void **wide = rt_alloc(WIDE * sizeof *wide);

		keep(wide);
		for (unsigned k = 0; k < WIDE; k++) {
			wide[k] = rt_alloc(16);
			require(wide[k] != NULL, "a leaf");
		}
	}
}

enum { WIDE_OBJECTS = NWIDE * (WIDE + 1) };

// No page of the heap is free, so the heap must grow for work buffers.
void prepare_mark(void)
{
	static rt_memstats m;

	make_wide();
	while (rt_read_memstats_live(&m) == RT_OK && m.heap_idle != 0)
		keep(rt_alloc_noscan(8192));
}

unsigned act_gc(void)
{
	require(rt_gc() == RT_OK, "gc");
	require(rt_gc() == RT_OK, "gc again");
	return 0;
}

void check_mark(void)
{
	require(live_after_gc() == WIDE_OBJECTS + nkept - NWIDE,
		"an object is lost");
}

void check_helpers(void)
{
	require(live_after_gc() == WIDE_OBJECTS, "an object is lost");
	require(live_after_gc() == WIDE_OBJECTS, "an object is lost");
	require(crew_size() == HELPERS, "a helper is missing");
}

static uint64_t root_words[400];

static unsigned act_roots(void)
{
	bool added[RT_ARRAY_LEN(root_words)];
	unsigned failed = 0;

	for (unsigned i = 0; i < RT_ARRAY_LEN(root_words); i++) {
		int error = rt_roots_add(root_words + i, root_words + i + 1, 0);

		require(error == RT_OK || error == RT_ENOMEM, "roots_add");
		added[i] = error == RT_OK;
		failed += !added[i];
	}
	for (unsigned i = 0; i < RT_ARRAY_LEN(root_words); i++)
		require(rt_roots_remove(root_words + i, root_words + i + 1) ==
			    (added[i] ? RT_OK : RT_ENOENT),
			"roots_remove");
	return failed;
}

// Registered stacks, some with a name, more than the first table has room for.
static unsigned act_registered(void)
{
	static uintptr_t words[200];
	rt_stack *stack[RT_ARRAY_LEN(words)];
	unsigned failed = 0;

	for (unsigned i = 0; i < RT_ARRAY_LEN(words); i++) {
		rt_stack_desc d;
		int error;

		rt_stack_desc_init(&d);
		d.lo = words + i;
		d.hi = words + i + 1;
		d.name = i % 2 ? "stack" : NULL;
		error = rt_stack_register(&d, &stack[i]);
		require(error == RT_OK || error == RT_ENOMEM, "register");
		if (error)
			stack[i] = NULL;
		failed += error != RT_OK;
	}
	require(rt_gc() == RT_OK, "gc");
	for (unsigned i = 0; i < RT_ARRAY_LEN(words); i++)
		require(!stack[i] || rt_stack_unregister(stack[i]) == RT_OK,
			"unregister");
	return failed;
}

// A thread that comes and goes.  If arg is set, it exits attached.
static void *visit(void *arg)
{
	int error = rt_thread_attach(0);
	uintptr_t failed = error != RT_OK;

	require(error == RT_OK || error == RT_ENOMEM ||
		    (error == RT_ENOTSUP && trial.kind == OSCALL_STACKBOUNDS),
		"answer of attach");
	require((rt_thread_self() != NULL) == (error == RT_OK), "self");
	if (error == RT_OK) {
		failed += !rt_alloc(16);
		failed += !rt_alloc(1000);
		if (!arg)
			require(rt_thread_detach() == RT_OK, "detach");
	}
	return (void *)failed;
}

static unsigned act_attach(void)
{
	uintptr_t failed = 0;

	mcache_release_kept(); // so that memory is needed
	require(rt_blocking_enter() == RT_OK, "enter");
	for (uintptr_t i = 0; i < 2; i++) {
		pthread_t thread;
		void *result;

		require(pthread_create(&thread, NULL, visit, (void *)i) == 0,
			"thread");
		pthread_join(thread, &result);
		failed += (uintptr_t)result;
	}
	require(rt_blocking_leave() == RT_OK, "leave");
	return (unsigned)failed;
}

// A thread that stops when asked, until the stopper needs it no more.
static atomic_u32 company; // 1: attached, 2: to detach, 3: refused
static atomic_u32 reading;

static void *accompany(void *arg)
{
	int error = rt_thread_attach(RT_THREAD_EXACT);

	(void)arg;
	atomic_u32_store_release(&company, error == RT_OK ? 1 : 3);
	if (error != RT_OK)
		return NULL;
	while (atomic_u32_load_acquire(&company) != 2)
		rt_safepoint();
	require(rt_thread_detach() == RT_OK, "detach");
	return NULL;
}

// read_outside waits for the end of a stop.
static void *read_outside(void *arg)
{
	static rt_memstats m;

	(void)arg;
	atomic_u32_store_release(&reading, 1);
	require(rt_read_memstats(&m) == RT_OK, "statistics from outside");
	return NULL;
}

// stop_for_a_while makes another thread wait for the right to stop the world.
static void stop_for_a_while(void)
{
	pthread_t thread;

	atomic_u32_store_relaxed(&reading, 0);
	require(rt_stop_the_world(RT_STOP_HOST) == RT_OK, "stop");
	require(pthread_create(&thread, NULL, read_outside, NULL) == 0,
		"thread");
	while (atomic_u32_load_acquire(&reading) == 0)
		sched_yield();
	for (unsigned i = 0; i < 20; i++)
		sched_yield(); // until it sleeps, most often
	require(rt_start_the_world(NULL) == RT_OK, "start");
	require(rt_blocking_enter() == RT_OK, "enter");
	pthread_join(thread, NULL);
	require(rt_blocking_leave() == RT_OK, "leave");
}

static unsigned act_world(void)
{
	pthread_t thread;
	bool alone;

	atomic_u32_store_relaxed(&company, 0);
	require(pthread_create(&thread, NULL, accompany, NULL) == 0, "thread");
	while (atomic_u32_load_acquire(&company) == 0)
		sched_yield();
	alone = atomic_u32_load_relaxed(&company) == 3;
	for (unsigned i = 0; i < 3; i++) {
		require(rt_gc() == RT_OK, "gc");
		live();
	}
	stop_for_a_while();
	atomic_u32_store_release(&company, 2);
	require(rt_blocking_enter() == RT_OK, "enter");
	pthread_join(thread, NULL);
	require(rt_blocking_leave() == RT_OK, "leave");
	return alone;
}

static void *wait_for_work(void *p)
{
	static struct work waits;

	require(work_join(&waits, p), "the marking is open");
	require(work_get(&waits) == WORK_OVER, "work, though there is none");
	return NULL;
}

// A marker finds nothing to do and sleeps until marking is over.
static unsigned act_waiting_marker(void)
{
	static struct work busy;
	uint64_t sleeps = fault_count(OSCALL_FUTEX_WAIT);
	pthread_t thread;

	require(rt_stop_the_world(RT_STOP_HOST) == RT_OK, "stop");
	work_open(&busy, proc_self(), 0);
	require(pthread_create(&thread, NULL, wait_for_work, proc_self()) == 0,
		"thread");
	while (work_waiting() == 0)
		sched_yield();
	// It sleeps soon, but that is only counted while some call is watched.
	for (unsigned i = 0; i < 500; i++)
		if (fault_count(OSCALL_FUTEX_WAIT) == sleeps)
			sleep_ns(100000);
	work_close(&busy);
	pthread_join(thread, NULL);
	require(rt_start_the_world(NULL) == RT_OK, "start");
	return 0;
}

static unsigned act_stats(void)
{
	static rt_memstats m;
	static uint64_t words[RT_GCSTATS_WORDS];
	rt_metric_sample s = {.name = "/gc/cycles/total:gc-cycles"};
	size_t used;

	require(rt_read_memstats(&m) == RT_OK, "exact statistics");
	require(rt_read_memstats_live(&m) == RT_OK, "live statistics");
	require(rt_read_gcstats(words, RT_GCSTATS_WORDS, &used) == RT_OK,
		"gcstats");
	require(rt_metrics_read(&s, 1) == RT_OK, "metrics");
	require(s.result == RT_METRIC_U64 && s.u64 == m.num_gc, "a metric");
	return 0;
}

static unsigned act_stacks(void)
{
	void *stack[10];
	unsigned failed = 0;

	for (unsigned i = 0; i < RT_ARRAY_LEN(stack); i++)
		stack[i] = rt_stack_alloc((size_t)2048 << i);
	for (unsigned i = 0; i < RT_ARRAY_LEN(stack); i++) {
		failed += !stack[i];
		require(rt_stack_free(stack[i], (size_t)2048 << i) ==
			    (stack[i] ? RT_OK : RT_EINVAL),
			"stack_free");
	}
	return failed;
}

static void check_stacks(void)
{
	rt_memstats m;

	require(rt_read_memstats(&m) == RT_OK, "exact statistics");
	require(m.stack_inuse == 0 || rt_free_os_memory() == RT_OK, "stacks");
	require(rt_read_memstats(&m) == RT_OK, "exact statistics");
	require(m.stack_inuse == 0, "a stack is left");
}

// A collection while the thread runs on another stack than its own.
static char away_stack[128 << 10];
static ucontext_t home, away;

static void collect_away(void)
{
	require(rt_gc() == RT_OK, "gc on another stack");
}

static void prepare_away(void)
{
	require(rt_thread_detach() == RT_OK, "detach");
	require(rt_thread_attach(0) == RT_OK, "attach with the stack");
}

static unsigned act_away(void)
{
	void *volatile object = rt_alloc_noscan(2000);

	require(getcontext(&away) == 0, "context");
	away.uc_stack.ss_sp = away_stack;
	away.uc_stack.ss_size = sizeof away_stack;
	away.uc_link = &home;
	makecontext(&away, collect_away, 0);
	swapcontext(&home, &away);
	require(!object || rt_is_heap(object), "an object is lost");
	return !object;
}

static void prepare_few(void)
{
	for (unsigned i = 0; i < 20; i++)
		keep(rt_alloc(1000));
}

// act_fork makes a child that continues to use the heap, where calls are
// refused as in its parent.
static unsigned act_fork(void)
{
	pid_t child = fork();
	int status;

	require(child >= 0, "fork");
	if (child == 0) {
		bool hit;

		require(rt_gc() == RT_OK, "gc in a child");
		hit = disarm() != 0;
		in_order();
		_exit(hit ? CHILD_HIT : EXIT_SUCCESS);
	}
	require(waitpid(child, &status, 0) == child, "wait");
	require(WIFEXITED(status), "a child died");
	trial.child_hit |= WEXITSTATUS(status) == CHILD_HIT;
	require(trial.child_hit || WEXITSTATUS(status) == 0, "a child failed");
	return 0;
}

static unsigned act_env(void)
{
	rt_config c;

	setenv("RTGC", "77", 1);
	rt_config_init(&c);
	require(rt_config_from_env(&c) == RT_OK, "environment");
	require(c.gc_percent == 77 || c.gc_percent == 100, "percent");
	return c.gc_percent != 77;
}

static unsigned act_fini(void)
{
	end();
	return begin();
}

// act_life grows the heap, uses stacks, collects, releases memory, and makes a
// new heap.
static unsigned act_life(void)
{
	unsigned failed = act_growth() + act_stacks();

	act_gc();
	act_release();
	return failed + act_fini();
}

// Pages that guarded objects left protected are used again.
static void prepare_guarded(void)
{
	for (unsigned i = 0; i < 100; i++)
		require(rt_alloc(i % 2 ? 100 * i : 40000) != NULL, "an object");
	require(rt_gc() == RT_OK, "gc");
	prepare_few();
}

static unsigned act_guarded(void)
{
	unsigned failed = act_classes() + act_large() + act_stacks();

	act_gc();
	act_release();
	return failed + act_classes() + act_large();
}

static unsigned act_static(void)
{
	unsigned failed = rt_roots_static(1) != RT_OK;

	act_gc();
	ck_assert_int_eq(rt_roots_static(0), RT_OK);
	return failed;
}

static void count_drop(void *obj, size_t size, void *arg)
{
	(void)obj;
	(void)size;
	++*(size_t *)arg;
}

// make_dropping allocates objects of a kind, returns how many, and counts the
// objects that there was no memory for.
static size_t make_dropping(int kind, unsigned *failed)
{
	size_t n = 0;

	for (size_t size = 32; size < 100000; size += size / 2) {
		bool ok = rt_alloc_kind(kind, size) != NULL;

		n += ok;
		*failed += !ok;
	}
	return n;
}

static unsigned act_drops(void)
{
	unsigned failed = 0;
	size_t dropped = 0, made;
	rt_kind_desc d;
	int kind;

	rt_kind_desc_init(&d);
	d.layout = RT_LAYOUT_WORDS;
	d.flags = RT_KIND_DROP;
	d.drop = count_drop;
	d.arg = &dropped;
	kind = rt_kind_register(&d);
	require(kind > 0 || kind == RT_ENOMEM, "rt_kind_register");
	if (kind < 0)
		return 1;
	made = make_dropping(kind, &failed);
	require(rt_gc() == RT_OK, "rt_gc");
	require(rt_run_finalizers(0) == made && dropped == made,
		"rt_run_finalizers");
	made += make_dropping(kind, &failed);
	require(rt_drop_now(kind, NULL, NULL) == RT_OK && dropped == made,
		"rt_drop_now");
	require(rt_gc() == RT_OK, "rt_gc");
	require(rt_kind_unregister(kind) == RT_OK, "rt_kind_unregister");
	return failed;
}

enum { FORGOTTEN = 300 };

// Tables of tracecheck that are refused make the report shorter.
static void prepare_forgotten(void)
{
	int kind = kind_make(.layout = RT_LAYOUT_TRACE, .trace = trace_nothing);
	void **p = rt_alloc_kind(kind, FORGOTTEN * sizeof *p);

	require(p != NULL, "an object");
	keep(p);
	for (unsigned i = 0; i < FORGOTTEN; i++)
		keep(p[i] = rt_alloc_noscan(16));
}

// collect_once makes, for the first object of a walk, a call that the callback
// of a walk must not make.
static int collect_once(void *obj, size_t size, int kind, void *arg)
{
	bool *done = arg;

	(void)obj;
	(void)size;
	(void)kind;
	if (!*done)
		require(rt_gc() == RT_EBUSY, "a walk collects");
	*done = true;
	return 0;
}

static unsigned act_forgotten(void)
{
	bool done = false;

	settings_present.tracecheck = 1;
	// Without a handler the report is written, and so is a trace line.  A
	// debug build writes which callback calls what it must not.
	if (trial.kind == OSCALL_WRITE) {
		rt_set_warn_handler(NULL, NULL);
		settings_present.gctrace = settings_present.scavtrace = 1;
		require(rt_heap_walk(collect_once, &done) == RT_OK,
			"rt_heap_walk");
	}
	act_gc();
	settings_present.tracecheck = settings_present.gctrace =
	    settings_present.scavtrace = 0;
	return 0;
}

static void check_forgotten(void)
{
	require(live_after_gc() == FORGOTTEN + 1, "an object is lost");
	settings_present.tracecheck = 1;
	act_gc();
	require(sites.n == FORGOTTEN, "a word is not noted");
}

const struct scenario scenarios[SCENARIOS] = {
    {"init", NULL, act_init, NULL, 0, false},
    {"first objects", NULL, act_classes, NULL, 0, false},
    {"large objects", NULL, act_large, NULL, 0, false},
    {"growth", NULL, act_growth, NULL, 0, false},
    {"growth undone", NULL, act_growth_undone, NULL, 0, false},
    {"marking", prepare_mark, act_gc, check_mark, 0, false},
    {"helpers", make_wide, act_gc, check_helpers, 0, false},
    {"tracecheck", prepare_forgotten, act_forgotten, check_forgotten, 0, false},
    {"roots", NULL, act_roots, NULL, 0, false},
    {"destructors", NULL, act_drops, NULL, 0, false},
    {"registered stacks", NULL, act_registered, NULL, 0, false},
    {"attach", NULL, act_attach, NULL, 0, false},
    {"world", NULL, act_world, NULL, 0, false},
    {"waiting marker", NULL, act_waiting_marker, NULL, 0, false},
    {"statistics", make_wide, act_stats, NULL, 0, false},
    {"release", prepare_release, act_release, check_release, 0, false},
    {"huge pages", prepare_huge_pages, act_huge_pages, check_release, 0, false},
    {"stacks", NULL, act_stacks, check_stacks, 0, false},
    {"environment", NULL, act_env, NULL, 0, false},
    {"fork", prepare_few, act_fork, NULL, 0, false},
    {"fini and init", prepare_few, act_fini, NULL, 0, false},
    {"a life", prepare_few, act_life, NULL, 0, false},
    {"guarded objects", prepare_guarded, act_guarded, NULL, 2, false},
    {"marking of guarded objects", prepare_mark, act_gc, check_mark, 20, false},
    {"a guarded life", prepare_few, act_life, NULL, 2, false},
    {"memory limit", NULL, act_limit, NULL, 0, false},
    {"scavenger", NULL, act_scavenger, check_scavenger, 0, true},
    {"memory ahead", NULL, act_ahead, check_ahead, 0, false},
    {"periodic collection", NULL, act_periodic, NULL, 0, false},
    {"sweeping beside the program", NULL, act_sweep, check_sweep, 0, false},
    {"handles", NULL, act_handles, NULL, 0, false},
    {"root callbacks", NULL, act_root_fns, NULL, 0, false},
    {"formats of ranges", NULL, act_formats, NULL, 0, false},
    {"names of ranges", NULL, act_names, NULL, 0, false},
    {"typed objects", NULL, act_typed, NULL, 0, false},
    {"kinds", NULL, act_kinds, NULL, 0, false},
    {"lists of objects", make_wide, act_lists, NULL, 0, false},
    {"resized objects", NULL, act_resize, NULL, 0, false},
    {"sorts of objects", NULL, act_sorts, NULL, 0, false},
    // Not under a sanitizer, whose data are too many to read in pieces.
    {"static data", NULL, act_static, NULL, 0, false},
    // Not under a sanitizer, which has to be told of every change of stacks.
    {"another stack", prepare_away, act_away, NULL, 0, false},
};
