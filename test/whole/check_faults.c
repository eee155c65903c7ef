// Any call to the system may be refused, at any moment.  The result is then a
// documented one, the heap is in order, and calls succeed as soon as the system
// grants again.
//
// A scenario does something with a heap.  For each kind of call its 1st, 2nd,
// 3rd ... call is refused, once or from then on, until a run meets no refusal.
// So every call that a scenario makes has been refused.  The last test wants
// every place in the library that calls the system to be among them.
// RT_STRESS_SECONDS=1 tries each errno at each call; otherwise they take turns.
#define _GNU_SOURCE 1

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "gc/mark/crew.h"
#include "gc/mark/work.h"
#include "runtime/pages/hugepages.h"
#include "runtime/spans/mcache.h"
#include "runtime/os/oscall.h"
#include "runtime/os/persistent.h"
#include "runtime/base/sizeclass.h"
#include "runtime/os/sysmem.h"
#include "runtime/os/throw.h"
#include "test/harness/await.h"
#include "test/harness/callsite.h"
#include "test/harness/death.h"
#include "test/harness/fault.h"
#include "test/harness/heap.h"
#include "test/harness/recount.h"

enum {
	SANITIZED = RT_ASAN || RT_TSAN,
	HEAP = 64 << 20, // bytes, the least range
	HELPERS = 2,
	NROOTS = 1024,
	WIDE = 4096,	// words of a wide object
	NWIDE = 4,	// enough to call helpers for
	MAX_NTH = 5000, // more calls than a scenario makes of a kind
	CHILD_HIT = 42, // exit status
};

// How a run is refused.
enum mode {
	ONCE,	     // the nth call
	FROM_THEN,   // and all after it
	NO_WAY_BACK, // and all calls that undo something
	MODES,
};
static const char *const mode_names[] = {"once", "from then on",
					 "from then on, undoing too"};

struct scenario {
	const char *name;
	void (*prepare)(void); // calls are granted; NULL: nothing
	// act meets the refusals; it returns how many it was told of.
	unsigned (*act)(void);
	void (*check)(void); // calls are granted again; NULL: nothing
	uint32_t guarded;    // one in so many small objects, and all large
			  // ones; 0: none
};

// The present run.
static struct {
	const struct scenario *scenario;
	enum oscall kind;
	enum mode mode;
	uint64_t nth;
	int error;
	bool child_hit; // a call was refused in a child of the process
} run;

// How many calls of each kind were refused in all processes of this suite.
static uint64_t *refused;

static bool have_heap, have_roots;
static int processors = HELPERS + 1; // 0: those that there are
static unsigned warnings;
static void *roots[NROOTS];
static unsigned nroots;

// require costs nothing while it holds, unlike the macros of Check.
static void require(bool ok, const char *what)
{
	if (RT_LIKELY(ok))
		return;
	for (unsigned kind = 0; kind < OSCALL_COUNT; kind++)
		fault_fail((enum oscall)kind, 1, 0, 0);
	ck_abort_msg("%s, %s refused at call %llu %s, errno %d: %s",
		     run.scenario->name, fault_name(run.kind),
		     (unsigned long long)run.nth, mode_names[run.mode],
		     run.error, what);
}

// ---- refusing ----

// What a system says when it refuses; the library looks for none of them.
static const int errnos[] = {ENOMEM, EAGAIN, EINVAL, EPERM, EINTR, ENOSYS};

// undoes tells whether the call undoes something: if it is refused, something
// unneeded stays mapped.
static bool undoes(enum oscall kind)
{
	return kind == OSCALL_UNMAP || kind == OSCALL_UNCOMMIT ||
	       kind == OSCALL_RELEASE;
}

// spared: a sleeper whose wake is refused sleeps on, and a thread that waits
// for it waits for ever.  No system refuses that call for a word that exists.
static bool spared(enum oscall kind)
{
	return kind == OSCALL_FUTEX_WAKE;
}

static void arm(void)
{
	run.child_hit = false;
	if (run.mode == NO_WAY_BACK)
		for (unsigned kind = 0; kind < OSCALL_COUNT; kind++)
			if (undoes((enum oscall)kind))
				fault_fail((enum oscall)kind, 1, UINT64_MAX,
					   run.error);
	fault_fail(run.kind, run.nth, run.mode == ONCE ? 1 : UINT64_MAX,
		   run.error);
}

// disarm returns how many calls of the run's kind were refused.
static uint64_t disarm(void)
{
	uint64_t failed = fault_failed(run.kind);

	for (unsigned kind = 0; kind < OSCALL_COUNT; kind++) {
		refused[kind] += fault_failed((enum oscall)kind);
		fault_fail((enum oscall)kind, 1, 0, 0);
	}
	return failed;
}

// ---- what is left behind ----

// mapped returns the size of all mappings, in pages of the system.
static uint64_t mapped(void)
{
	char buf[128] = "";
	int fd = open("/proc/self/statm", O_RDONLY);

	require(fd >= 0 && read(fd, buf, sizeof buf - 1) > 0, "statm");
	close(fd);
	return strtoull(buf, NULL, 10);
}

// await_alone waits until no other thread is left, because a joined thread
// still exists for a moment.  A sanitizer has a thread of its own.
static void await_alone(void)
{
	uint64_t end = nanotime() + AWAIT_SECONDS * UINT64_C(1000000000);
	struct stat task;

	do {
		require(stat("/proc/self/task", &task) == 0, "task");
		require(nanotime() < end, "a thread is left");
	} while (task.st_nlink != 3 && !SANITIZED);
}

// ---- the heap ----

static void on_warning(const char *text, void *arg)
{
	(void)arg;
	fprintf(stderr, "%s\n", text);
	warnings += !strstr(text, "refused");
}

// granted tells whether the answer is success; otherwise there is no memory.
static bool granted(int error)
{
	require(error == RT_OK || error == RT_ENOMEM, "an undocumented answer");
	return error == RT_OK;
}

// begin makes what is missing of a heap that holds only what is in roots.  It
// returns 1 if something was refused.
static unsigned begin(void)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.max_heap = HEAP;
	c.double_check = RT_CHECK_REPORT;
	c.max_procs = processors;
	c.no_attach = 1;
	c.guard_large = run.scenario->guarded != 0;
	c.guard_small = run.scenario->guarded;
	if (!have_heap)
		have_heap = granted(rt_init(&c));
	if (have_heap && !rt_thread_self())
		granted(rt_thread_attach(RT_THREAD_EXACT));
	if (rt_thread_self() && !have_roots)
		have_roots =
		    granted(rt_roots_add(roots, roots + NROOTS, RT_ROOT_EXACT));
	return !have_roots;
}

static void drop(void)
{
	memset(roots, 0, sizeof roots);
	nroots = 0;
}

static void end(void)
{
	require(rt_fini() == RT_OK, "fini");
	have_heap = have_roots = false;
	drop();
}

static void keep(void *p)
{
	require(p != NULL && nroots < NROOTS, "an object");
	roots[nroots++] = p;
}

static void recount(void)
{
	static rt_memstats m;
	struct comparison c = {0};

	require(rt_stop_the_world(RT_STOP_HOST) == RT_OK, "stop");
	require(rt_read_memstats(&m) == RT_OK, "exact statistics");
	recount_compare(&m, &c);
	require(rt_start_the_world(NULL) == RT_OK, "start");
	require(c.compared != 0 && c.differing == 0, c.first);
	require(warnings == 0, "statistics contradict each other");
}

static uint64_t live(void)
{
	static struct rt_verify v;

	require(rt_heap_verify(&v) == RT_OK, "verify");
	require(v.errors == 0, v.first);
	return v.objects;
}

static uint64_t live_after_gc(void)
{
	require(rt_gc() == RT_OK, "gc");
	return live();
}

static void in_order(void)
{
	live();
	recount();
}

// ---- scenarios ----

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

static unsigned act_large(void)
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
			roots[nroots++] = p;
	}
	drop();
	return failed;
}

// The first table for what was just mapped is refused: it is unmapped again.
static unsigned act_growth_undone(void)
{
	unsigned failed = !rt_alloc(16);

	if (run.kind != OSCALL_COMMIT)
		fault_fail(OSCALL_COMMIT, 2, 1, ENOMEM);
	return failed + act_growth();
}

// make_wide makes objects that lead to so many others that marking needs more
// than one buffer.
static void make_wide(void)
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

// The heap's last page is taken, so a longer heap is needed for buffers.
static void prepare_mark(void)
{
	static rt_memstats m;

	make_wide();
	while (rt_read_memstats_live(&m) == RT_OK && m.heap_idle != 0)
		keep(rt_alloc_noscan(8192));
}

static unsigned act_gc(void)
{
	require(rt_gc() == RT_OK, "gc");
	require(rt_gc() == RT_OK, "gc again");
	return 0;
}

static void check_mark(void)
{
	require(live_after_gc() == WIDE_OBJECTS + nroots - NWIDE,
		"an object is lost");
}

static void check_helpers(void)
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

// A thread that comes and goes.  arg: it exits attached.
static void *visit(void *arg)
{
	int error = rt_thread_attach(0);
	uintptr_t failed = error != RT_OK;

	require(error == RT_OK || error == RT_ENOMEM ||
		    (error == RT_ENOTSUP && run.kind == OSCALL_STACKBOUNDS),
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
	require(s.kind == RT_METRIC_U64 && s.u64 == m.num_gc, "a metric");
	return 0;
}

static void prepare_release(void)
{
	for (unsigned i = 0; i < 20; i++)
		keep(rt_alloc_noscan(1 << 20));
	for (unsigned i = 0; i < 20; i += 2)
		roots[i] = NULL;
}

static unsigned act_release(void)
{
	require(rt_free_os_memory() == RT_OK, "free_os_memory");
	return 0;
}

static void check_release(void)
{
	rt_memstats m;

	require(rt_free_os_memory() == RT_OK, "free_os_memory");
	require(rt_read_memstats(&m) == RT_OK, "exact statistics");
	require(m.heap_released == m.heap_idle, "memory is not released");
	require(m.heap_objects == 10, "an object is lost");
}

// Chunks are full of live objects, and then a part of them is released.
static void prepare_huge_pages(void)
{
	for (unsigned i = 0; i < 20; i++)
		keep(rt_alloc_noscan(1 << 20));
	require(rt_gc() == RT_OK, "gc");
}

static unsigned act_huge_pages(void)
{
	while (hugepages_provide(true))
		;
	for (unsigned i = 0; i < 20; i += 2)
		roots[i] = NULL;
	return act_release();
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

// A collection while the thread's own stack is left.
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
	void *volatile kept = rt_alloc_noscan(2000);

	require(getcontext(&away) == 0, "context");
	away.uc_stack.ss_sp = away_stack;
	away.uc_stack.ss_size = sizeof away_stack;
	away.uc_link = &home;
	makecontext(&away, collect_away, 0);
	swapcontext(&home, &away);
	require(!kept || rt_is_heap(kept), "an object is lost");
	return !kept;
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
	run.child_hit |= WEXITSTATUS(status) == CHILD_HIT;
	require(run.child_hit || WEXITSTATUS(status) == 0, "a child failed");
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

// act_life does all of it in a row.
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

static const struct scenario scenarios[] = {
    {"init", NULL, act_init, NULL, 0},
    {"first objects", NULL, act_classes, NULL, 0},
    {"large objects", NULL, act_large, NULL, 0},
    {"growth", NULL, act_growth, NULL, 0},
    {"growth undone", NULL, act_growth_undone, NULL, 0},
    {"marking", prepare_mark, act_gc, check_mark, 0},
    {"helpers", make_wide, act_gc, check_helpers, 0},
    {"roots", NULL, act_roots, NULL, 0},
    {"attach", NULL, act_attach, NULL, 0},
    {"world", NULL, act_world, NULL, 0},
    {"waiting marker", NULL, act_waiting_marker, NULL, 0},
    {"statistics", make_wide, act_stats, NULL, 0},
    {"release", prepare_release, act_release, check_release, 0},
    {"huge pages", prepare_huge_pages, act_huge_pages, check_release, 0},
    {"stacks", NULL, act_stacks, check_stacks, 0},
    {"environment", NULL, act_env, NULL, 0},
    {"fork", prepare_few, act_fork, NULL, 0},
    {"fini and init", prepare_few, act_fini, NULL, 0},
    {"a life", prepare_few, act_life, NULL, 0},
    {"guarded objects", prepare_guarded, act_guarded, NULL, 2},
    {"marking of guarded objects", prepare_mark, act_gc, check_mark, 20},
    {"a guarded life", prepare_few, act_life, NULL, 2},
    // Not under a sanitizer, which has to be told of every change of stacks.
    {"another stack", prepare_away, act_away, NULL, 0},
};

// ---- runs ----

// attempt makes one run.  It returns true if a call was refused.
static bool attempt(uint64_t *pages)
{
	const struct scenario *sc = run.scenario;
	unsigned failed;
	bool hit;

	require(begin() == 0, "no heap");
	if (sc->prepare)
		sc->prepare();
	arm();
	failed = sc->act();
	hit = disarm() != 0 || run.child_hit;
	require(failed == 0 || hit || run.mode == NO_WAY_BACK,
		"refused for no reason");
	require(begin() == 0, "refused though granted again");
	if (sc->check)
		sc->check();
	in_order();
	require(sc->act() == 0, "refused the second time");
	disarm();
	in_order();
	end();
	await_alone();
	// Mappings that the system refuses to take back are still there, and a
	// stack that was read to its end is as long as it may be.
	if (run.kind == OSCALL_UNMAP || run.kind == OSCALL_MAPPED ||
	    run.mode == NO_WAY_BACK)
		*pages = mapped();
	require(SANITIZED || mapped() == *pages, "memory is left");
	return hit;
}

// The process is as it is with libc's caches full.
static uint64_t warm_up(void)
{
	uint64_t pages = 0;

	run.kind = OSCALL_UNMAP; // so that pages may differ
	run.nth = UINT64_MAX;
	for (unsigned i = 0; i < 3; i++)
		attempt(&pages);
	return pages;
}

static void setup(void)
{
	// One area for all threads, that does not grow and shrink.
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_TOP_PAD, 4 << 20);
	mallopt(M_TRIM_THRESHOLD, INT32_MAX);
	rt_set_warn_handler(on_warning, NULL);
}

// each_call refuses one call after the other.
static uint64_t each_call(unsigned variant, uint64_t *pages)
{
	uint64_t runs = 0;

	for (run.nth = 1;; run.nth += HEAP_CUT) {
		run.error = errnos[(run.nth + variant) % RT_ARRAY_LEN(errnos)];
		runs++;
		if (!attempt(pages))
			return runs;
		require(run.nth < MAX_NTH, "no end");
	}
}

GROUP(faults, .setup = setup, .timeout = 600);

TEST(each_call_may_be_refused, .n = RT_ARRAY_LEN(scenarios) - SANITIZED)
{
	unsigned variants =
	    env_u64("RT_STRESS_SECONDS", 0) == 0 ? 1 : RT_ARRAY_LEN(errnos);
	uint64_t runs = 0, pages;

	run.scenario = &scenarios[_i];
	pages = warm_up();
	for (unsigned kind = 0; kind < OSCALL_COUNT; kind++) {
		run.kind = (enum oscall)kind;
		if (spared(run.kind))
			continue;
		for (unsigned i = 0; i < MODES * variants; i++) {
			run.mode = (enum mode)(i % MODES);
			runs += each_call(i / MODES, &pages);
		}
	}
	fprintf(stderr, "%s: %llu runs\n", run.scenario->name,
		(unsigned long long)runs);
}

// Calls that a process makes only once, and so no scenario after the first
// heap.
static const enum oscall first_calls[] = {OSCALL_ATFORK, OSCALL_TLSKEY};

TEST(the_first_heap_may_be_refused, .n = RT_ARRAY_LEN(first_calls))
{
	run.scenario = &scenarios[0];
	run.kind = first_calls[_i];
	run.mode = ONCE;
	run.nth = 1;
	run.error = ENOMEM;
	arm();
	ck_assert_uint_eq(begin(), 1);
	ck_assert_uint_eq(disarm(), 1);
	ck_assert_uint_eq(begin(), 0);
	in_order();
	end();
}

// A mapping where an aligned range should begin makes sysmem_reserve ask a
// second time, unless chance has put the free addresses on a border.  One more
// page moves them off it.
TEST(a_second_reservation_may_be_refused)
{
	enum { TRIES = 4 };
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned tries = 0;

	sysmem_init();
	run.scenario = &scenarios[0];
	run.kind = OSCALL_RESERVE;
	do {
		void *p;

		ck_assert_uint_lt(tries++, TRIES);
		ck_assert(mmap(NULL, page, PROT_NONE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1,
			       0) != MAP_FAILED);
		fault_fail(run.kind, 2, 1, ENOMEM);
		p = sysmem_reserve(HEAP, HEAP, "test");
		ck_assert((p == NULL) == (fault_failed(run.kind) == 1));
		if (p)
			sysmem_unreserve(p, HEAP);
	} while (disarm() == 0);
}

// ---- sleeping ----

static struct mutex mutex = RT_MUTEX_INIT(LOCKRANK_ROOTS);

static void *lock_and_unlock(void *arg)
{
	mutex_lock(&mutex);
	mutex_unlock(&mutex);
	return arg;
}

// A thread that may not sleep tries again until it has the lock.
TEST(a_sleep_on_a_lock_may_be_refused)
{
	pthread_t thread;

	run.scenario = &scenarios[0];
	run.kind = OSCALL_FUTEX_WAIT;
	mutex_lock(&mutex);
	fault_fail(run.kind, 1, UINT64_MAX, EINTR);
	thread = start_thread(lock_and_unlock, NULL);
	while (fault_failed(run.kind) < 3)
		sched_yield();
	mutex_unlock(&mutex);
	join_thread(thread);
	disarm();
}

// The clock of a sleep with an end is read when it begins, and when it may be
// over.
TEST(a_clock_of_a_sleep_may_be_refused)
{
	struct note note = {0};

	run.scenario = &scenarios[0];
	run.kind = OSCALL_CLOCK;
	for (uint64_t nth = 1; nth <= 2; nth++) {
		fault_fail(run.kind, nth, UINT64_MAX, EINVAL);
		ck_assert(!note_sleep(&note, 1000));
		ck_assert_uint_ge(disarm(), 1);
	}
}

// The main thread's stack is looked for where the C library does not find it.
TEST(what_finds_the_main_stack_may_be_refused)
{
	run.scenario = &scenarios[0];
	run.kind = OSCALL_MAPPED;
	ck_assert_uint_eq(begin(), 0);
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	fault_fail(OSCALL_STACKBOUNDS, 1, UINT64_MAX, EACCES);
	fault_fail(OSCALL_MAPPED, 1, 1, EPERM);
	ck_assert_int_eq(rt_thread_attach(0), RT_ENOTSUP);
	ck_assert_uint_eq(fault_failed(OSCALL_MAPPED), 1);
	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	disarm();
	in_order();
	end();
}

// ---- everything at once ----

// Nothing in a collection needs the system: all calls are refused, and no
// object is lost.
TEST(a_collection_needs_no_system)
{
	run.scenario = &scenarios[_i];
	for (unsigned round = 0; round < 5; round++) {
		ck_assert_uint_eq(begin(), 0);
		prepare_mark();
		for (unsigned i = 0; i < round; i++)
			live_after_gc(); // with helpers from the second on
		for (unsigned kind = 0; kind < OSCALL_COUNT; kind++)
			if (!spared((enum oscall)kind))
				fault_fail((enum oscall)kind, 1, UINT64_MAX,
					   ENOMEM);
		act_gc();
		disarm();
		check_mark();
		in_order();
		end();
	}
}

// leave_bytes leaves that many bytes of permanent memory, and no more.
static void leave_bytes(size_t n)
{
	enum { PIECE = 64 };
	atomic_u64 *stat = &gauges.other_sys;
	uint64_t before = gauge_load(stat);
	size_t used = PIECE;

	// Pieces of other_sys do not change it; only the prefix grows.
	while (gauge_load(stat) == before)
		require(persistent_alloc(PIECE, PIECE, stat) != NULL, "piece");
	for (; used + n < gauge_load(stat) - before; used += PIECE)
		require(persistent_alloc(PIECE, PIECE, stat) != NULL, "piece");
}

// Somewhere in between there is room for what a helper's maker needs, but not
// for what the helper needs.  Then the helper ends, and a later collection
// makes it.
TEST(a_helper_may_find_no_memory)
{
	run.scenario = &scenarios[_i];
	run.kind = OSCALL_COMMIT;
	for (size_t n = 0; n < 24 << 10; n += 1 << 10) {
		ck_assert_uint_eq(begin(), 0);
		make_wide();
		leave_bytes(n);
		fault_fail(OSCALL_COMMIT, 1, UINT64_MAX, ENOMEM);
		act_gc();
		disarm();
		check_helpers();
		in_order();
		end();
		await_alone();
	}
}

// ---- the end of the process ----

static void on_abort(int sig)
{
	(void)sig;
	disarm();
}

static void throw_refused(void)
{
	run.kind = OSCALL_WRITE;
	for (unsigned kind = 0; kind < OSCALL_COUNT; kind++)
		fault_fail((enum oscall)kind, 1, UINT64_MAX, EIO);
	throw_fatal("as ordered");
}

static void *throw_too(void *arg)
{
	(void)arg;
	throw_fatal("second");
}

// hold_report delays the end of the first report.  The second thread that
// throws may not sleep meanwhile, and ends the process.
static void hold_report(const char *text, void *arg)
{
	(void)text;
	(void)arg;
	fault_fail(OSCALL_FUTEX_WAIT, 1, UINT64_MAX, EINTR);
	join_thread(start_thread(throw_too, NULL));
}

static void throw_twice(void)
{
	run.kind = OSCALL_FUTEX_WAIT;
	throw_set_handler(hold_report, NULL);
	throw_fatal("first");
}

static const struct {
	void (*fn)(void);
	enum oscall kind;
} reports[] = {
    {throw_refused, OSCALL_WRITE},
    {throw_twice, OSCALL_FUTEX_WAIT},
};

static unsigned report; // which one

static void die(void)
{
	signal(SIGABRT, on_abort);
	reports[report].fn();
}

// A fatal report that cannot be written ends the process all the same.
TEST(a_report_may_be_refused, .n = RT_ARRAY_LEN(reports))
{
	uint64_t before = refused[reports[_i].kind];

	report = (unsigned)_i;
	ck_assert(death_aborted(death_status(die)));
	ck_assert_uint_gt(refused[reports[_i].kind], before);
}

// ---- all of it ----

// Two calls are left out: a wake (see spared), and the yield, which has no
// result.  Only a thread that waits for another one makes that call.
static bool left_out(enum oscall kind)
{
	return spared(kind) || kind == OSCALL_YIELD ||
	       (SANITIZED && kind == OSCALL_MAPPED); // by another stack only
}

// This test and the next one come last: they count what the others refused.
TEST(each_kind_was_refused)
{
	for (unsigned kind = 0; kind < OSCALL_COUNT; kind++)
		ck_assert_msg(refused[kind] != 0 || left_out((enum oscall)kind),
			      "%s was never refused",
			      fault_name((enum oscall)kind));
}

// Calls that no refusal can reach, or where it means nothing.
static const struct {
	const char *call;
	bool always; // otherwise under a sanitizer only
	const char *reason;
} exempt[] = {
    {"oscall_futex_wake", true, "see spared"},
    {"oscall_yield", true, "no result; made by who waits for another"},
    {"oscall_gettid", true, "cannot fail"},
    {"oscall_main_thread", true, "cannot fail"},
    {"oscall_lock", true, "see check_locked"},
    {"oscall_unlock", true, "see check_locked"},
    {"oscall_reserve_unlocked", true, "see check_locked"},
    {"oscall_main_stack_end", true, "asks no system"},
    {"oscall_fork_prepare", true, "asks no system"},
    {"oscall_fork_child", true, "asks no system"},
    {"oscall_thread_join", true, "cannot fail"},
    {"oscall_mapped", false, "made on another stack only"},
    {"oscall_collapse", true, "made by helpers, in their own time"},
    {"oscall_readable", true, "cannot fail"},
};

static bool is_exempt(const struct callsite *site)
{
	for (unsigned i = 0; i < RT_ARRAY_LEN(exempt); i++)
		if (strcmp(site->call, exempt[i].call) == 0 &&
		    (exempt[i].always || SANITIZED))
			return true;
	return false;
}

TEST(each_call_site_was_refused)
{
	struct callsite site;
	unsigned n, missed = 0;
	uint64_t times;

	for (n = 0; callsite_next(n, &site, &times); n++)
		if (times == 0 && !is_exempt(&site)) {
			fprintf(stderr, "%s:%u: %s was never refused\n",
				site.file, site.line, site.call);
			missed++;
		}
	ck_assert_uint_gt(n, 40);
	ck_assert_uint_eq(missed, 0);
}

int main(void)
{
	refused =
	    mmap(NULL, OSCALL_COUNT * sizeof *refused, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (refused == MAP_FAILED || !callsite_init())
		return 1;
	return suite_run();
}
