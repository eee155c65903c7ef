// Marking by several threads: the same objects live, whichever thread marks
// them.
#define RT_NO_INLINE_ALLOC
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <rt/rt.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/os/settings.h"
#include "gc/mark/gain.h"
#include "gc/mark/drain.h"
#include "gc/mark/mark.h"
#include "gc/cycle/sweep.h"
#include "gc/mark/work.h"
#include "gc/cycle/worker.h"
#include "runtime/os/oscall.h"
#include "runtime/os/persistent.h"
#include "runtime/os/sysmem.h"
#include "test/harness/await.h"
#include "test/harness/fault.h"
#include "test/harness/heap.h"
#include "test/harness/process.h"
#include "test/unit/mark_graph.h"

enum {
	ROUNDS = 3,
	SWEPT_BYTES =
	    256 << 20, // twice what CALL_FROM of gc/cycle/sweep.c asks for
};

// ---- processors and helpers ----

struct crew {
	int procs, threads;
	uint64_t helpers; // threads that these settings give
};

static const struct crew crews[] = {
    {2, 1, 1}, {4, 3, 3}, {8, 7, 7}, {2, -1, 1}, {4, 7, 3},
};

static void start(const struct crew *crew, uint8_t align8)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.max_procs = crew->procs;
	c.gc_threads = crew->threads;
	c.align8 = align8;
	c.sweep = 0; // no sweeper, because threads are counted
	heap_start_exact(c);
	// Helpers are called in every marking: none is tried without them.
	gain = (struct gain){.interval = UINT32_MAX};
}

// is_helper looks at the name of a thread of this process.
static bool is_helper(const char *tid)
{
	char path[64], name[32] = "";
	FILE *file;

	snprintf(path, sizeof path, "/proc/self/task/%.20s/comm", tid);
	file = fopen(path, "r");
	if (!file) // has ended, or is no thread
		return false;
	if (!fgets(name, sizeof name, file))
		name[0] = '\0';
	fclose(file);
	return strcmp(name, "rtheap helper\n") == 0;
}

static uint64_t helper_threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	uint64_t n = 0;

	ck_assert_ptr_nonnull(tasks);
	for (const struct dirent *e; (e = readdir(tasks)) != NULL;)
		n += is_helper(e->d_name);
	closedir(tasks);
	return n;
}

// await_helpers returns when there are n helpers.  The system lists a thread
// for a moment after it was joined.
static void await_helpers(uint64_t n)
{
	while (helper_threads() != n)
		sched_yield();
}

static uint64_t helped(void)
{
	return heap_metric("/gc/mark/helpers:objects");
}

enum { CREWS = RT_ARRAY_LEN(crews) };

// ---- collecting ----

static void expect_graph(const struct graph *g)
{
	ck_assert_uint_eq(heap_live(), g->nreached);
	ck_assert_uint_eq(graph_wrong(g), 0);
}

// collect_until_helped collects until helpers have marked more than before.
// They may come too late to any single collection.
static void collect_until_helped(const struct graph *g)
{
	uint64_t before = helped();

	do {
		ck_assert_int_eq(rt_gc(), RT_OK);
		expect_graph(g);
	} while (helped() == before);
}

// collect_shrinking collects while roots go one by one.
static void collect_shrinking(struct graph *g, bool helps)
{
	for (unsigned i = USED; i != 0; i--) {
		graph_reach(g);
		for (int round = 0; round < ROUNDS; round++) {
			ck_assert_int_eq(rt_gc(), RT_OK);
			expect_graph(g);
		}
		if (helps && i == USED)
			collect_until_helped(g);
		set_root(g, i - 1, UINT32_MAX);
	}
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

// mark_shape marks a shape.  helps tells whether helpers are sure to get
// something to mark.
static void mark_shape(const struct shape *shape, const struct crew *crew,
		       bool helps)
{
	struct graph g;

	shape_make(shape, &g);
	await_helpers(0);
	collect_shrinking(&g, helps);
	if (helps)
		await_helpers(crew->helpers);
	graph_end(&g);
	ck_assert_int_eq(rt_fini(), RT_OK);
	await_helpers(0);
}

GROUP(shapes, .timeout = 60);

TEST(helpers_mark_the_same, .n = SHAPES * CREWS)
{
	const struct shape *shape = &shapes[_i % SHAPES];
	const struct crew *crew = &crews[_i / SHAPES];

	start(crew, 0);
	mark_shape(shape, crew, shape->helps);
}

// With align8 two objects can share a granule, and every word must be divided
// by a size to find its object.
TEST(helpers_mark_the_same_align8, .n = SHAPES)
{
	start(&crews[2], 1);
	mark_shape(&shapes[_i], &crews[2], shapes[_i].helps);
}

// The same objects are marked, however little memory all markers together get
// for work buffers.  If they get none, markers cannot share words, and a job
// that a helper takes may lead to nothing new.
TEST(limited_work_buffers_mark_the_same, .n = 3 * SHAPES)
{
	static const uint32_t limits[] = {0, 1, 2};
	const struct shape *shape = &shapes[_i / 3];
	uint32_t limit = limits[_i % 3];

	work_limit(limit);
	start(&crews[1], 0);
	mark_shape(shape, &crews[1], shape->helps && limit != 0);
}

// ---- roots ----

GROUP(roots, .timeout = 60);

// Registered ranges are jobs that helpers take, however little each leads to.
TEST(many_root_ranges_are_marked)
{
	enum { RANGES = RT_TSAN ? 1000 : 2000, EACH = 40 };
	static uintptr_t ranges[RANGES][EACH + 1]; // a gap between two

	start(&crews[1], 0);
	for (unsigned i = 0; i < RANGES; i++) {
		for (unsigned k = 0; k < EACH; k++) {
			uint64_t *kept = rt_alloc_noscan(64 + k);

			kept[0] = i * EACH + k;
			ranges[i][k] = (uintptr_t)kept;
		}
		must(rt_roots_add(ranges[i], ranges[i] + EACH, RT_ROOT_EXACT));
	}
	do {
		ck_assert_uint_eq(heap_live_after_gc(), RANGES * EACH);
		for (unsigned i = 0; i < RANGES; i++)
			for (unsigned k = 0; k < EACH; k++)
				ck_assert_uint_eq(*(uint64_t *)ranges[i][k],
						  i * EACH + k);
	} while (helped() == 0);
	ck_assert_int_eq(rt_fini(), RT_OK);
}

enum { BLOCKED = RT_TSAN ? 80 : 150, LENGTH = 300 }; // threads, of a list

static sem_t blocked, may_leave;
static atomic_u32 too_short;

struct link {
	struct link *next;
	uint64_t n;
};

// keep_list makes a list that only this stack refers to, and waits.
static void *keep_list(void *arg)
{
	struct link *volatile list = NULL;
	uint32_t n = 0;

	(void)arg;
	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	for (uint64_t i = 0; i < LENGTH; i++) {
		struct link *l = rt_alloc(sizeof *l);

		l->next = list;
		l->n = i;
		list = l;
	}
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	sem_post(&blocked);
	while (sem_wait(&may_leave) != 0)
		;
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	for (struct link *l = list; l && l->n == LENGTH - 1 - n; l = l->next)
		n++;
	if (n != LENGTH)
		atomic_u32_add_relaxed(&too_short, 1);
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	return NULL;
}

// Stacks are jobs as well, 64 to a job.
TEST(many_stacks_are_marked)
{
	pthread_t threads[BLOCKED];

	start(&crews[1], 0);
	sem_init(&blocked, 0, 0);
	sem_init(&may_leave, 0, 0);
	for (int i = 0; i < BLOCKED; i++)
		threads[i] = start_thread(keep_list, NULL);
	for (int i = 0; i < BLOCKED; i++)
		while (sem_wait(&blocked) != 0)
			;
	do
		ck_assert_uint_eq(heap_live_after_gc(), BLOCKED * LENGTH);
	while (helped() == 0);
	for (int i = 0; i < BLOCKED; i++)
		sem_post(&may_leave);
	for (int i = 0; i < BLOCKED; i++)
		join_thread(threads[i]);
	ck_assert_uint_eq(atomic_u32_load_relaxed(&too_short), 0);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	ck_assert_int_eq(rt_fini(), RT_OK);
}

// Ps whose stack is one word that leads to an object, like Ps of threads in a
// blocking region.
static struct one_word {
	struct rt_proc *p;
	uintptr_t word;
} * one_words;

static void one_words_begin(uint32_t n)
{
	one_words = calloc(n, sizeof *one_words);
	ck_assert_ptr_nonnull(one_words);
	for (struct one_word *w = one_words; w < one_words + n; w++) {
		w->word = (uintptr_t)rt_alloc_noscan(16);
		w->p = proc_attach(0);
		ck_assert_ptr_nonnull(w->p);
		w->p->context.lo = w->p->context.frame.sp = (uintptr_t)&w->word;
		w->p->context.hi = (uintptr_t)(&w->word + 1);
		proc_block(w->p);
	}
}

static void one_words_end(uint32_t n)
{
	for (struct one_word *w = one_words; w < one_words + n; w++) {
		proc_unblock(w->p);
		proc_detach(w->p);
	}
	free(one_words);
}

// The main thread's P is one more.  The last numbers are more than 256 jobs of
// 64 stacks hold.
static const uint32_t many_ps[] = {
    62, 63, 64, 127, 128, 16382, 16383, 16384, 20000, 40000,
};

// However many Ps there are, each stack is marked, and only once.
TEST(every_stack_is_one_job_s, .n = 2 * RT_ARRAY_LEN(many_ps))
{
	static const struct crew alone = {1, 0, 0};
	uint32_t n = many_ps[_i / 2];

	start(_i % 2 ? &crews[1] : &alone, 0);
	worker_provide(proc_self(), true);
	one_words_begin(n);
	for (int round = 0; round < ROUNDS; round++) {
		ck_assert_uint_eq(heap_live_after_gc(), n);
		ck_assert_uint_eq(heap_metric("/gc/scan/stack:bytes"),
				  n * sizeof(uintptr_t));
	}
	one_words_end(n);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	ck_assert_int_eq(rt_fini(), RT_OK);
}

// ---- sweeping ----

// counted_by_helpers grows when a helper changes a statistic.
static uint64_t counted_by_helpers(void)
{
	uint64_t n = 0;

	for (struct rt_proc *p = proc_first(); p; p = proc_next(p))
		if (p->flags & PROC_HELPER)
			n += atomic_u32_load_relaxed(&p->stats_seq);
	return n;
}

// make_garbage fills a large heap with pages that nothing touches, and with
// small objects that die.
static void make_garbage(void)
{
	enum { SMALL = 64 };

	for (uint64_t bytes = 0; bytes < SWEPT_BYTES; bytes += RT_CHUNK_SIZE) {
		for (int i = 0; i < SMALL; i++)
			ck_assert_ptr_nonnull(rt_alloc_noscan(4096));
		ck_assert_ptr_nonnull(
		    rt_alloc_noscan_uninit(RT_CHUNK_SIZE - SMALL * 4096));
	}
}

// Sweeping is shared, too: in one of many collections a helper frees something.
TEST(helpers_sweep)
{
	uint64_t before;

	start(&crews[2], 0);
	worker_provide(proc_self(), true);
	await_helpers(crews[2].helpers);
	do {
		before = counted_by_helpers();
		make_garbage();
		ck_assert_int_eq(rt_gc(), RT_OK);
	} while (counted_by_helpers() == before);
	ck_assert_int_eq(rt_fini(), RT_OK);
}

// ---- when helpers are made, and when not ----

GROUP(helpers, .timeout = 180);

TEST(without_helpers_no_thread_is_made, .n = 3)
{
	static const struct crew none[] = {{8, 0, 0}, {1, -1, 0}, {1, 7, 0}};
	struct graph g;

	fault_fail(OSCALL_THREAD, 1, 0, 0); // counts from now on
	start(&none[_i], 0);
	shape_make(&shapes[0], &g);
	collect_shrinking(&g, false);
	ck_assert_uint_eq(fault_count(OSCALL_THREAD), 0);
	await_helpers(0);
	ck_assert_uint_eq(helped(), 0);
	graph_end(&g);
	ck_assert_int_eq(rt_fini(), RT_OK);
}

TEST(a_small_heap_makes_no_thread)
{
	start(&crews[2], 0);
	roots_begin();
	for (unsigned i = 0; i < ROOTS; i++)
		root[i].word = (uintptr_t)rt_alloc(64);
	for (int round = 0; round < 20; round++)
		ck_assert_uint_eq(heap_live_after_gc(), ROOTS);
	await_helpers(0);
	ck_assert_int_eq(rt_fini(), RT_OK);
}

// The cost of markings, measured with helpers and without, decides whether
// helpers are called.
TEST(helpers_are_called_as_long_as_they_pay)
{
	static const struct gain_cost dear = {UINT64_MAX / 4, UINT64_MAX / 4};
	struct graph g;

	start(&crews[0], 0);
	worker_provide(proc_self(), true);
	await_helpers(crews[0].helpers);
	shape_make(&shapes[0], &g);
	graph_reach(&g);
	gain = (struct gain){
	    .cost[true] = dear, .off = true, .interval = UINT32_MAX};
	for (int round = 0; round < ROUNDS; round++) {
		ck_assert_int_eq(rt_gc(), RT_OK);
		expect_graph(&g);
	}
	ck_assert_uint_eq(helped(), 0);
	ck_assert_uint_ne(gain.cost[false].wall, 0);
	ck_assert_uint_eq(gain.cost[true].wall, dear.wall);
	gain = (struct gain){.interval = UINT32_MAX};
	collect_until_helped(&g);
	ck_assert_uint_ne(gain.cost[true].wall, 0);
	ck_assert_uint_eq(gain.cost[false].wall, 0);
	graph_end(&g);
	ck_assert_int_eq(rt_fini(), RT_OK);
}

// hold_row makes a root lead to an array of n objects, until roots_end.
static void hold_row(unsigned n)
{
	void **all;

	roots_begin();
	all = rt_alloc(n * sizeof *all);
	ck_assert_ptr_nonnull(all);
	root[0].word = (uintptr_t)all;
	for (unsigned i = 0; i < n; i++)
		ck_assert_ptr_nonnull(all[i] = rt_alloc(16));
}

// The opener takes some words before it calls helpers.  Helpers could have
// shared only the later words, so a marking is judged by the later words alone.
TEST(a_marking_is_judged_by_what_could_be_shared, .n = 2)
{
	enum { TAKEN = 8192 }; // CALL_AFTER of gc/mark/drain.c
	bool few = _i == 0;
	unsigned n = TAKEN + GAIN_WORDS + (few ? -1000 : 1000);

	start(&crews[0], 0);
	worker_provide(proc_self(), true);
	gain = (struct gain){.off = true, .few = !few, .interval = UINT32_MAX};
	hold_row(n);
	ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert_int_eq(gain.few, few);
	roots_end();
	ck_assert_int_eq(rt_fini(), RT_OK);
}

// A clock that the system refuses reads 0.  Even so, no marking seems to have
// taken all the time since the machine or a thread began.
TEST(refused_clocks_teach_no_huge_cost)
{
	enum { OBJECTS = 4 * GAIN_WORDS };
	uint64_t begun = nanotime(), nth = 0, refused;

	start(&crews[0], 0);
	worker_provide(proc_self(), true);
	hold_row(OBJECTS);
	do {
		uint64_t most;

		gain = (struct gain){.off = true, .interval = UINT32_MAX};
		fault_fail(OSCALL_CLOCK, ++nth, 1, EINVAL);
		must(rt_gc());
		refused = fault_failed(OSCALL_CLOCK);
		fault_fail(OSCALL_CLOCK, 1, 0, 0);
		most = (nanotime() - begun) * 1000 / GAIN_WORDS;
		ck_assert_uint_ne(gain.cost[false].wall, 0);
		ck_assert_uint_le(gain.cost[false].wall, most);
		ck_assert_uint_le(gain.cost[false].cpu, most);
	} while (refused > 0);
	roots_end();
	must(rt_fini());
}

// A small heap wakes no helper, except under gcstress.
TEST(small_heaps_call_helpers_under_gcstress, .n = 2)
{
	enum { OBJECTS = 256 };
	bool stress = _i == 1;

	start(&crews[0], 0);
	settings_present.gcstress = stress ? UINT32_MAX : 0;
	worker_provide(proc_self(), true);
	hold_row(OBJECTS);
	must(rt_gc());
	ck_assert_int_eq(drain.called, stress);
	roots_end();
	must(rt_fini());
}

static atomic_u32 no_more_markings;

// join_at_any_time is a helper that no thread calls: it comes at any time.
static void *join_at_any_time(void *arg)
{
	struct marker *m = aligned_alloc(RT_CACHE_LINE, sizeof *m);
	struct rt_proc *p = proc_attach(PROC_HELPER);
	struct rng r = {*(uint64_t *)arg};

	if (!m || !p)
		abort();
	memset(m, 0, sizeof *m);
	p->context.hi = 0; // no stack to look at
	p->in_region = p->stopper = false;
	proc_block(p);
	while (atomic_u32_load_acquire(&no_more_markings) == 0) {
		for (uint64_t n = rng_below(&r, 1000); n != 0; n--)
			atomic_pause();
		mark_help(m, p);
	}
	proc_unblock(p);
	proc_detach(p);
	free(m);
	return NULL;
}

// Markers that join when all is marked, while the first one sums up, change no
// sum.
TEST(helpers_that_come_late_change_no_sum)
{
	enum {
		OBJECTS = 10000, // more than CALL_AFTER of gc/mark/drain.c
		MARKINGS = 500,
		LATE = 2,
	};
	uint64_t seed[LATE];
	pthread_t late[LATE];
	struct rng r;
	void **all;

	start(&crews[0], 0);
	roots_begin();
	rng_init(&r, "late");
	all = rt_alloc(OBJECTS * sizeof *all);
	ck_assert_ptr_nonnull(all);
	root[0].word = (uintptr_t)all;
	for (int i = 0; i < OBJECTS; i++) {
		all[i] = rt_alloc(16);
		ck_assert_ptr_nonnull(all[i]);
	}
	for (int i = 0; i < LATE; i++) {
		seed[i] = rng_next(&r);
		late[i] = start_thread(join_at_any_time, &seed[i]);
	}
	for (int i = 0; i < MARKINGS; i++)
		if (heap_live_after_gc() != OBJECTS + 1)
			ck_abort_msg("marking %d", i);
	atomic_u32_store_release(&no_more_markings, 1);
	for (int i = 0; i < LATE; i++)
		join_thread(late[i]);
	roots_end();
	ck_assert_int_eq(rt_fini(), RT_OK);
}

// What a helper needs, and the call at which it is refused.
static const struct refusal {
	enum oscall kind;
	uint64_t nth;
	uint64_t made; // helpers made nevertheless
} refusals[] = {
    {OSCALL_THREAD, 1, 0},
    {OSCALL_THREAD, 2, 1},
};

// A collection works without the refused helpers, and the next collection asks
// for them again.
TEST(refused_helpers_are_asked_for_again, .n = RT_ARRAY_LEN(refusals))
{
	const struct refusal *refused = &refusals[_i];
	struct graph g;

	start(&crews[1], 0);
	shape_make(&shapes[0], &g);
	graph_reach(&g);
	fault_fail(refused->kind, refused->nth, UINT64_MAX, EAGAIN);
	for (int round = 0; round < ROUNDS; round++) {
		ck_assert_int_eq(rt_gc(), RT_OK);
		expect_graph(&g);
		ck_assert_uint_ge(fault_failed(refused->kind),
				  (uint64_t)round + 1);
		await_helpers(refused->made);
	}
	fault_fail(refused->kind, 1, 0, 0);
	ck_assert_int_eq(rt_gc(), RT_OK);
	expect_graph(&g);
	await_helpers(crews[1].helpers);
	collect_until_helped(&g);
	graph_end(&g);
	ck_assert_int_eq(rt_fini(), RT_OK);
}

// There is no memory for the record of its P, so the thread ends again.
TEST(a_helper_that_cannot_attach_is_made_again)
{
	struct graph g;

	start(&crews[0], 0);
	shape_make(&shapes[0], &g);
	graph_reach(&g);
	// Records are cut from persistent memory; use up what is usable of it.
	fault_fail(OSCALL_COMMIT, 1, UINT64_MAX, ENOMEM);
	while (persistent_alloc(sizeof(struct rt_proc), RT_CACHE_LINE,
				&gauges.other_sys))
		;
	for (int round = 0; round < ROUNDS; round++) {
		ck_assert_int_eq(rt_gc(), RT_OK);
		await_helpers(0);
		ck_assert_uint_eq(graph_wrong(&g), 0);
	}
	ck_assert_uint_ge(fault_failed(OSCALL_COMMIT), ROUNDS);
	fault_fail(OSCALL_COMMIT, 1, 0, 0);
	collect_until_helped(&g);
	await_helpers(1);
	graph_end(&g);
	ck_assert_int_eq(rt_fini(), RT_OK);
}

// If the system refuses all sleeps, each sleep returns at once, and the same
// objects are marked.  Helpers mark again when they may sleep.
TEST(refused_sleeps_mark_the_same, .n = 3)
{
	struct graph g;

	start(&crews[_i], 0);
	shape_make(&shapes[0], &g);
	fault_fail(OSCALL_FUTEX_WAIT, 1, UINT64_MAX, ENOSYS);
	collect_shrinking(&g, false);
	ck_assert_uint_gt(fault_failed(OSCALL_FUTEX_WAIT), 0);
	fault_fail(OSCALL_FUTEX_WAIT, 1, 0, 0);
	graph_end(&g);
	shape_make(&shapes[0], &g);
	collect_shrinking(&g, true);
	graph_end(&g);
	ck_assert_int_eq(rt_fini(), RT_OK);
}

TEST(heaps_come_and_go_with_helpers)
{
	enum { HEAPS = RT_TSAN ? 10 : 50 };

	for (int i = 0; i < HEAPS; i++) {
		const struct crew *crew = &crews[i % 3];
		struct graph g;

		start(crew, 0);
		shape_make(&shapes[0], &g);
		graph_reach(&g);
		ck_assert_int_eq(rt_gc(), RT_OK); // makes the helpers
		await_helpers(crew->helpers);
		ck_assert_int_eq(rt_gc(), RT_OK);
		expect_graph(&g);
		graph_end(&g);
		roots_end();
		ck_assert_int_eq(rt_fini(), RT_OK);
		await_helpers(0);
	}
}

// ---- a host that brings in its roots when they are read ----

enum { LAZY_PAGES = 512, EACH_PAGE = 50 };

static char *lazy; // whole pages, each a range of roots
static size_t page;
static pthread_t host;
static atomic_u32 faults_of_helpers;

// provide_page makes the page that a thread has touched readable.
static void provide_page(int sig, siginfo_t *fault, void *context)
{
	uintptr_t at = (uintptr_t)fault->si_addr - (uintptr_t)lazy;

	(void)context;
	if (at >= LAZY_PAGES * page ||
	    mprotect(lazy + at / page * page, page, PROT_READ) != 0)
		signal(sig, SIG_DFL); // for the same fault again
	else if (!pthread_equal(pthread_self(), host))
		atomic_u32_add_relaxed(&faults_of_helpers, 1);
}

static void lazy_begin(void)
{
	struct sigaction action = {.sa_sigaction = provide_page,
				   .sa_flags = SA_SIGINFO};

	host = pthread_self();
	page = sysmem_page_size();
	lazy = mmap(NULL, LAZY_PAGES * page, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(lazy, MAP_FAILED);
	for (size_t i = 0; i < LAZY_PAGES; i++) {
		void **range = (void **)(void *)(lazy + i * page);

		for (size_t k = 0; k < EACH_PAGE; k++)
			range[k] = rt_alloc_noscan(64);
		must(rt_roots_add(range, range + EACH_PAGE, RT_ROOT_EXACT));
	}
	ck_assert_int_eq(sigaction(SIGSEGV, &action, NULL), 0);
}

// A helper may fault when it reads roots, and the handler of the host handles
// the fault.  Memcheck would report the read.
TEST(a_fault_in_a_helper_is_the_host_s, .unless = SUITE_VALGRIND)
{
	start(&crews[1], 0);
	gain = (struct gain){.interval = UINT32_MAX}; // helpers are called
	lazy_begin();
	do {
		ck_assert_int_eq(mprotect(lazy, LAZY_PAGES * page, PROT_NONE),
				 0);
		ck_assert_uint_eq(heap_live_after_gc(), LAZY_PAGES * EACH_PAGE);
	} while (atomic_u32_load_relaxed(&faults_of_helpers) == 0);
	ck_assert_int_eq(rt_fini(), RT_OK);
}

// ---- fork ----

// The child has no helper at first.  It makes new ones, and ends the heap.
static void child_collects(struct graph *g, const struct crew *crew)
{
	await_helpers(0);
	ck_assert_int_eq(rt_gc(), RT_OK);
	expect_graph(g);
	await_helpers(crew->helpers);
	collect_until_helped(g);
	ck_assert_int_eq(rt_fini(), RT_OK);
	await_helpers(0);
}

// Each fork follows a collection at once, so helpers that it has made may still
// be starting, and helpers that it has called may still be leaving.
//
// The thread sanitizer makes no thread in a child.
TEST(a_child_has_helpers_of_its_own, .n = 3, .unless = SUITE_TSAN)
{
	enum { FORKS = 40 };
	struct graph g;

	start(&crews[_i], 0);
	shape_make(&shapes[0], &g);
	graph_reach(&g);
	for (int i = 0; i < FORKS; i++) {
		ck_assert_int_eq(rt_gc(), RT_OK);
		if (process_forked()) {
			child_collects(&g, &crews[_i]);
			process_end(true);
		}
	}
	collect_until_helped(&g);
	graph_end(&g);
	ck_assert_int_eq(rt_fini(), RT_OK);
}

static atomic_u32 came_late;
static atomic_u32 no_more_calls;

// come_late does again and again what a helper does that is called too late.
static void *come_late(void *arg)
{
	static struct work late;

	(void)arg;
	while (atomic_u32_load_acquire(&no_more_calls) == 0) {
		if (work_join(&late, NULL) || sweep_chunk(NULL))
			abort(); // no thread collects
		atomic_u32_store_release(&came_late, 1);
	}
	return NULL;
}

// At the fork, a thread that the child lacks may hold the lock of the markers,
// or count as a sweeper.  The child collects all the same.
TEST(a_late_helper_does_not_stop_a_child, .unless = SUITE_TSAN)
{
	enum { FORKS = 100 };
	pthread_t late;
	struct graph g;

	start(&crews[0], 0);
	shape_make(&shapes[0], &g);
	graph_reach(&g);
	ck_assert_int_eq(rt_gc(), RT_OK);
	late = start_thread(come_late, NULL);
	// The address sanitizer's allocator, which each thread needs when it
	// begins, stays locked in a child if this one holds it at the fork.
	await_at_least(&came_late, 1);
	for (int i = 0; i < FORKS; i++) {
		if (process_forked()) {
			ck_assert_int_eq(rt_gc(), RT_OK);
			expect_graph(&g);
			process_end(true);
		}
	}
	atomic_u32_store_release(&no_more_calls, 1);
	join_thread(late);
	graph_end(&g);
	ck_assert_int_eq(rt_fini(), RT_OK);
}
