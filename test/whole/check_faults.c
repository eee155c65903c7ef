// Any call to the system may be refused, at any moment.  The result is then a
// documented one, the heap is in order, and calls succeed as soon as the system
// grants again.
//
// A scenario does something with a heap.  The 1st, 2nd, 3rd ... call of each
// sort is refused, once or from then on, until a run meets no refusal.  After
// the 16th some are passed over, because most calls are alike then.  The last
// test requires that a call was refused at every place in the library that
// calls the system.  With RT_STRESS_SECONDS=1 no call is passed over, and each
// errno is tried at each call; otherwise errnos take turns.
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
#include <unistd.h>

#include "gc/host/slices.h"
#include "runtime/os/oscall.h"
#include "runtime/os/persistent.h"
#include "runtime/os/settings.h"
#include "runtime/os/sysmem.h"
#include "runtime/os/throw.h"
#include "test/harness/await.h"
#include "test/harness/callsite.h"
#include "test/harness/death.h"
#include "test/harness/fault.h"
#include "test/harness/heap.h"
#include "test/harness/recount.h"
#include "test/harness/schedpoint.h"
#include "test/whole/faults.h"

static const char *const mode_names[] = {"once", "from then on",
					 "from then on, undoing too"};

struct trial trial;

// How many calls of each sort were refused in all processes of this suite.
static uint64_t *refused;

bool have_heap;
static bool have_roots;
int processors = HELPERS + 1;
static unsigned warnings;
void *kept[NKEPT];
unsigned nkept;

void require(bool ok, const char *what)
{
	if (RT_LIKELY(ok))
		return;
	for (unsigned kind = 0; kind < OSCALL_COUNT; kind++)
		fault_fail((enum oscall)kind, 1, 0, 0);
	ck_abort_msg("%s, %s refused at call %llu %s, errno %d: %s",
		     trial.scenario->name, fault_name(trial.kind),
		     (unsigned long long)trial.nth, mode_names[trial.mode],
		     trial.error, what);
}

// ---- refusing ----

// The errnos of refused calls.  Only oscall.c tells some of them apart.
static const int errnos[] = {ENOMEM, EAGAIN, EINVAL, EPERM, EINTR, ENOSYS};

// undoes tells whether the call undoes something: if it is refused, something
// unneeded stays mapped.
static bool undoes(enum oscall kind)
{
	return kind == OSCALL_UNMAP || kind == OSCALL_UNCOMMIT ||
	       kind == OSCALL_RELEASE;
}

// spared tells whether a call is never refused, which is so for a wake.  A
// sleeper whose wake is refused sleeps on, and a thread that waits for it waits
// for ever.  No system refuses a wake for a word that exists.
static bool spared(enum oscall kind)
{
	return kind == OSCALL_FUTEX_WAKE;
}

static void arm(void)
{
	trial.child_hit = false;
	if (trial.mode == NO_WAY_BACK)
		for (unsigned kind = 0; kind < OSCALL_COUNT; kind++)
			if (undoes((enum oscall)kind))
				fault_fail((enum oscall)kind, 1, UINT64_MAX,
					   trial.error);
	fault_fail(trial.kind, trial.nth, trial.mode == ONCE ? 1 : UINT64_MAX,
		   trial.error);
}

uint64_t disarm(void)
{
	uint64_t failed = fault_failed(trial.kind);

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
	// The references that tracecheck finds are forgotten on purpose.
	if (strstr(text, "tracecheck"))
		return;
	fprintf(stderr, "%s\n", text);
	warnings += !strstr(text, "refused") && !strstr(text, "rt_stack");
}

// granted tells whether the answer is success.  Any other answer must be that
// there is no memory.
static bool granted(int error)
{
	require(error == RT_OK || error == RT_ENOMEM, "an undocumented answer");
	return error == RT_OK;
}

// on_thread runs on each thread of the library as it begins, whatever was
// refused.
static void on_thread(void *arg)
{
	require(arg == kept && !rt_thread_self(), "a thread begins");
}

unsigned begin(void)
{
	static unsigned char any[128]; // a mask of processors
	rt_config c = heap_config(HEAP_QUIET);

	memset(any, 0xff, sizeof any);
	c.gc_affinity = any;
	c.gc_affinity_size = sizeof any;
	c.max_heap = HEAP;
	c.double_check = RT_CHECK_REPORT;
	c.max_procs = processors;
	c.no_attach = 1;
	c.cgroup = 2; // rt_init reads both limits
	c.huge_pages = 1;
	c.guard_large = trial.scenario->guarded != 0;
	c.guard_small = trial.scenario->guarded;
	c.scavenge = trial.scenario->scavenges;
	// If gc_thread_start is NULL, a thread begins in another way, which the
	// scenario of the scavenger meets.
	c.gc_thread_start = c.scavenge ? NULL : on_thread;
	c.gc_thread_arg = kept;
	if (!have_heap)
		have_heap = granted(rt_init(&c));
	if (have_heap && !rt_thread_self())
		granted(rt_thread_attach(RT_THREAD_EXACT));
	if (rt_thread_self() && !have_roots)
		have_roots =
		    granted(rt_roots_add(kept, kept + NKEPT, RT_ROOT_EXACT));
	return !have_roots;
}

void drop(void)
{
	memset(kept, 0, sizeof kept);
	nkept = 0;
}

void end(void)
{
	require(rt_fini() == RT_OK, "fini");
	have_heap = have_roots = false;
	drop();
}

void keep(void *p)
{
	require(p != NULL && nkept < NKEPT, "an object");
	kept[nkept++] = p;
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

uint64_t live(void)
{
	static struct rt_verify v;

	require(rt_heap_verify(&v) == RT_OK, "verify");
	require(v.errors == 0, v.first);
	return v.objects;
}

uint64_t live_after_gc(void)
{
	require(rt_gc() == RT_OK, "gc");
	return live();
}

void in_order(void)
{
	live();
	recount();
}

// collect_normally requires that rt_gc makes one collection, which is forced
// and has a record.
static void collect_normally(void)
{
	rt_cycle c;
	uint64_t before = rt_read_cycle(0, &c) == RT_OK ? c.number : 0;

	require(rt_gc() == RT_OK, "gc");
	require(rt_read_cycle(0, &c) == RT_OK, "no record");
	require(c.number == before + 1 && c.cause == RT_CAUSE_FORCED,
		"another collection");
}

// ---- runs ----

// attempt makes one run.  It returns true if a call was refused.
static bool attempt(uint64_t *pages)
{
	const struct scenario *sc = trial.scenario;
	unsigned failed;
	bool hit;

	require(begin() == 0, "no heap");
	if (sc->prepare)
		sc->prepare();
	arm();
	failed = sc->act();
	hit = disarm() != 0 || trial.child_hit;
	require(failed == 0 || hit || trial.mode == NO_WAY_BACK,
		"refused for no reason");
	require(begin() == 0, "refused though granted again");
	if (sc->check)
		sc->check();
	in_order();
	require(sc->act() == 0, "refused the second time");
	disarm();
	collect_normally();
	in_order();
	end();
	await_alone();
	// Mappings that the system refuses to unmap are still there.  If
	// OSCALL_MAPPED is refused, the main stack is read to its end, and so
	// grows to its full length.
	if (trial.kind == OSCALL_UNMAP || trial.kind == OSCALL_MAPPED ||
	    trial.mode == NO_WAY_BACK)
		*pages = mapped();
	require(SANITIZED || mapped() == *pages, "memory is left");
	return hit;
}

// warm_up makes some runs, so that libc's caches are full, and returns the
// pages that are mapped then.
static uint64_t warm_up(void)
{
	uint64_t pages = 0;

	trial.kind = OSCALL_UNMAP; // so that pages may differ
	trial.nth = UINT64_MAX;
	for (unsigned i = 0; i < 3; i++)
		attempt(&pages);
	return pages;
}

static void setup(void)
{
	// malloc has one arena for all threads, which neither grows nor
	// shrinks.
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_TOP_PAD, 4 << 20);
	mallopt(M_TRIM_THRESHOLD, INT32_MAX);
	rt_set_warn_handler(on_warning, NULL);
}

static bool is_thorough(void)
{
	return env_u64("RT_STRESS_SECONDS", 0) != 0;
}

// step returns how many calls further the next refusal is.
static uint64_t step(uint64_t nth)
{
	return HEAP_CUT + (is_thorough() ? 0 : nth / 16);
}

// each_call refuses one call after the other.
static uint64_t each_call(unsigned variant, uint64_t *pages)
{
	uint64_t runs = 0;

	for (trial.nth = 1;; trial.nth += step(trial.nth)) {
		trial.error =
		    errnos[(trial.nth + variant) % RT_ARRAY_LEN(errnos)];
		runs++;
		if (!attempt(pages))
			return runs;
		require(trial.nth < MAX_NTH, "no end");
	}
}

GROUP(faults, .setup = setup, .timeout = 600);

TEST(each_call_may_be_refused, .n = SCENARIOS - 2 * SANITIZED)
{
	unsigned variants = is_thorough() ? RT_ARRAY_LEN(errnos) : 1;
	uint64_t runs = 0, pages;

	trial.scenario = &scenarios[_i];
	pages = warm_up();
	for (unsigned kind = 0; kind < OSCALL_COUNT; kind++) {
		trial.kind = (enum oscall)kind;
		if (spared(trial.kind))
			continue;
		for (unsigned i = 0; i < MODES * variants; i++) {
			trial.mode = (enum mode)(i % MODES);
			runs += each_call(i / MODES, &pages);
		}
	}
	fprintf(stderr, "%s: %llu runs\n", trial.scenario->name,
		(unsigned long long)runs);
}

// Calls that a process makes only for its first heap.  Scenarios cannot refuse
// them, because warm_up makes heaps before.
static const enum oscall first_calls[] = {OSCALL_ATFORK, OSCALL_TLSKEY};

TEST(the_first_heap_may_be_refused, .n = RT_ARRAY_LEN(first_calls))
{
	trial.scenario = &scenarios[0];
	trial.kind = first_calls[_i];
	trial.mode = ONCE;
	trial.nth = 1;
	trial.error = ENOMEM;
	arm();
	ck_assert_uint_eq(begin(), 1);
	ck_assert_uint_eq(disarm(), 1);
	ck_assert_uint_eq(begin(), 0);
	in_order();
	end();
}

// sysmem_reserve asks for a second range, unless the first one happens to be
// aligned.  Before each try the test maps one more page, so that the free
// addresses do not stay aligned.
TEST(a_second_reservation_may_be_refused)
{
	enum { TRIES = 4 };
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned tries = 0;

	sysmem_init();
	trial.scenario = &scenarios[0];
	trial.kind = OSCALL_RESERVE;
	do {
		void *p;

		ck_assert_uint_lt(tries++, TRIES);
		ck_assert(mmap(NULL, page, PROT_NONE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1,
			       0) != MAP_FAILED);
		fault_fail(trial.kind, 2, 1, ENOMEM);
		p = sysmem_reserve(HEAP, HEAP, "test");
		ck_assert((p == NULL) == (fault_failed(trial.kind) == 1));
		if (p)
			sysmem_unreserve(p, HEAP);
	} while (disarm() == 0);
}

// ---- sleeping ----

static struct mutex mutex = RT_MUTEX_INIT(LOCKRANK_ROOTS);
static struct sema sema;

static void lock(void)
{
	mutex_lock(&mutex);
}

static void unlock(void)
{
	mutex_unlock(&mutex);
}

static void acquire(void)
{
	sema_acquire(&sema);
}

static void release(void)
{
	sema_release(&sema);
}

static void stop(void)
{
	ck_assert_uint_eq(begin(), 0);
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
}

static void start(void)
{
	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
}

static void attach(void)
{
	ck_assert_int_eq(rt_thread_attach(RT_THREAD_EXACT), RT_OK);
}

static void detach(void)
{
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
}

// The test's thread takes something that another thread waits for.
static const struct wait_case {
	void (*take)(void), (*give)(void);  // the test's thread
	void (*wait)(void), (*leave)(void); // the other thread
} wait_cases[] = {
    {lock, unlock, lock, unlock},
    {acquire, release, acquire, release},
    {stop, start, attach, detach},
};

static atomic_u32 given;

static void *wait_and_leave(void *arg)
{
	const struct wait_case *c = arg;

	c->wait();
	ck_assert_uint_eq(atomic_u32_load_acquire(&given), 1);
	c->leave();
	return arg;
}

// A thread that may not sleep tries again until it need not wait.
TEST(a_sleep_without_limit_may_be_refused, .n = RT_ARRAY_LEN(wait_cases))
{
	const struct wait_case *c = &wait_cases[_i];
	pthread_t thread;

	trial.scenario = &scenarios[0];
	trial.kind = OSCALL_FUTEX_WAIT;
	c->take();
	fault_fail(trial.kind, 1, UINT64_MAX, EINTR);
	thread = start_thread(wait_and_leave, (void *)(uintptr_t)c);
	while (fault_failed(trial.kind) < 3)
		sched_yield();
	atomic_u32_store_release(&given, 1);
	c->give();
	join_thread(thread);
	disarm();
}

// A sleep with a timeout reads the clock when it begins, and when it may be
// over.
TEST(a_clock_of_a_sleep_may_be_refused)
{
	struct note note = {0};

	trial.scenario = &scenarios[0];
	trial.kind = OSCALL_CLOCK;
	for (uint64_t nth = 1; nth <= 2; nth++) {
		fault_fail(trial.kind, nth, UINT64_MAX, EINVAL);
		ck_assert(!note_sleep(&note, 1000));
		ck_assert_uint_ge(disarm(), 1);
	}
}

// If the C library does not find the main thread's stack, the library looks for
// it.  If that is refused as well, the thread cannot attach.
TEST(what_finds_the_main_stack_may_be_refused)
{
	trial.scenario = &scenarios[0];
	trial.kind = OSCALL_MAPPED;
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

// ---- sweeping ----

GROUP(sweeping, .setup = setup, .timeout = 2 * AWAIT_SECONDS);

static void *unswept; // an object

static void *free_unswept(void *arg)
{
	ck_assert_int_eq(rt_thread_attach(RT_THREAD_EXACT), RT_OK);
	ck_assert_int_eq(rt_free(unswept), RT_OK);
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	return arg;
}

static void *sweep_rest(void *arg)
{
	ck_assert_int_eq(rt_thread_attach(RT_THREAD_EXACT), RT_OK);
	slices_rest(rt_thread_tls);
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	return arg;
}

// Where the thread that sweeps is held, what a second thread does meanwhile,
// and where the second thread waits for the first.
static const struct meeting {
	enum schedpoint held, waits;
	void *(*fn)(void *);
} meetings[] = {
    {SCHED_SWEEP_SPAN, SCHED_SWEEP_ENSURE_WAIT, free_unswept},
    {SCHED_SWEPT_FOLLOW, SCHED_SWEPT_AWAIT, sweep_rest},
};

static void await_passed(enum schedpoint at, uint64_t times)
{
	uint64_t end = nanotime() + AWAIT_SECONDS * UINT64_C(1000000000);

	while (schedpoint_passed(at) < times) {
		ck_assert_msg(nanotime() < end, "no thread came to %s",
			      schedpoint_name(at));
		sched_yield();
	}
}

static void await_held(enum schedpoint at)
{
	uint64_t end = nanotime() + AWAIT_SECONDS * UINT64_C(1000000000);

	while (!schedpoint_held(at)) {
		ck_assert_msg(nanotime() < end, "no thread came to %s",
			      schedpoint_name(at));
		sched_yield();
	}
}

// meet makes two threads meet.  Until the first one goes on, the sleeps of the
// second are refused.
static void meet(const struct meeting *m)
{
	uint64_t before = schedpoint_passed(m->waits);
	pthread_t sweeper, other;

	schedpoint_hold(m->held);
	sweeper = start_thread(sweep_rest, NULL);
	await_held(m->held);
	fault_fail(trial.kind, 1, UINT64_MAX, EINTR);
	other = start_thread(m->fn, NULL);
	await_passed(m->waits, before + 3);
	ck_assert_uint_ge(disarm(), 2);
	schedpoint_release(m->held);
	join_thread(sweeper);
	join_thread(other);
}

// One thread sweeps a span or ends the sweep.  Another thread that needs the
// span, or the end of the sweep, waits for that even if its sleeps are refused.
TEST(a_sleep_in_a_sweep_may_be_refused, .n = RT_ARRAY_LEN(meetings))
{
	trial.scenario = &scenarios[0];
	trial.kind = OSCALL_FUTEX_WAIT;
	ck_assert_uint_eq(begin(), 0);
	settings_present.gc_threads = 0;
	unswept = rt_alloc_uncollectable(RT_NOSCAN, 1 << 20);
	ck_assert_ptr_nonnull(unswept);
	leave_unswept(); // only the object is unswept
	schedpoint_watch();
	must(rt_blocking_enter());
	meet(&meetings[_i]);
	must(rt_blocking_leave());
	in_order();
	end();
}

// ---- everything at once ----

GROUP(everything, .setup = setup, .timeout = 600);

// Nothing in a collection needs the system: all calls are refused, and no
// object is lost.
TEST(a_collection_needs_no_system)
{
	trial.scenario = &scenarios[_i];
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

// leave_bytes leaves n free bytes of permanent memory, and no more.
static void leave_bytes(size_t n)
{
	enum { PIECE = 64 };
	atomic_u64 *stat = &gauges.other_sys;
	uint64_t before = gauge_load(stat);
	size_t used = PIECE;

	// A piece that counts in other_sys does not change that gauge.  Only
	// growth of the usable prefix does.
	while (gauge_load(stat) == before)
		require(persistent_alloc(PIECE, PIECE, stat) != NULL, "piece");
	for (; used + n < gauge_load(stat) - before; used += PIECE)
		require(persistent_alloc(PIECE, PIECE, stat) != NULL, "piece");
}

// For some n, the memory is enough for a helper's maker, but not for the
// helper.  Then the helper ends, and a later collection makes it again.
TEST(a_helper_may_find_no_memory)
{
	trial.scenario = &scenarios[_i];
	trial.kind = OSCALL_COMMIT;
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

// scavenging returns the scenario of the scavenger.
static const struct scenario *scavenging(void)
{
	const struct scenario *sc = scenarios;

	while (!sc->scavenges)
		sc++;
	return sc;
}

// For some n the background thread finds no memory when it begins.  Then a
// later collection makes it again.
TEST(the_scavenger_may_find_no_memory)
{
	enum { STEP = 1 << 10, MOST = 24 << 10 };
	unsigned missing = 0;

	trial.scenario = scavenging();
	trial.kind = OSCALL_COMMIT;
	for (size_t n = 0; n < MOST; n += STEP) {
		ck_assert_uint_eq(begin(), 0);
		for (unsigned i = 0; i < 6; i++)
			require(rt_alloc_noscan_uninit(1 << 20) != NULL,
				"room");
		leave_bytes(n);
		fault_fail(OSCALL_COMMIT, 1, UINT64_MAX, ENOMEM);
		act_gc();
		disarm();
		missing += !scavenger_runs();
		in_order();
		ck_assert_uint_eq(act_scavenger(), 0);
		ck_assert(scavenger_runs());
		in_order();
		end();
		await_alone();
	}
	ck_assert_uint_gt(missing, 0);
	ck_assert_uint_lt(missing, MOST / STEP);
}

// ---- the end of the process ----

static void on_abort(int sig)
{
	(void)sig;
	disarm();
}

static void throw_refused(void)
{
	trial.kind = OSCALL_WRITE;
	for (unsigned kind = 0; kind < OSCALL_COUNT; kind++)
		fault_fail((enum oscall)kind, 1, UINT64_MAX, EIO);
	throw_fatal("as ordered");
}

static void *throw_too(void *arg)
{
	(void)arg;
	throw_fatal("second");
}

// hold_report makes a second thread throw before the first report ends.  That
// thread would sleep, but its sleeps are refused, so it ends the process.
static void hold_report(const char *text, void *arg)
{
	(void)text;
	(void)arg;
	fault_fail(OSCALL_FUTEX_WAIT, 1, UINT64_MAX, EINTR);
	join_thread(start_thread(throw_too, NULL));
}

static void throw_twice(void)
{
	trial.kind = OSCALL_FUTEX_WAIT;
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

// A fatal error ends the process even if its report cannot be written, or if a
// second thread cannot sleep until the first report ends.
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
	       // made for another stack, and for static data
	       (SANITIZED && (kind == OSCALL_MAPPED || kind == OSCALL_PEEK));
}

// This test and the next one come last: they count what the others refused.
TEST(each_call_was_refused)
{
	for (unsigned kind = 0; kind < OSCALL_COUNT; kind++)
		ck_assert_msg(refused[kind] != 0 || left_out((enum oscall)kind),
			      "%s was never refused",
			      fault_name((enum oscall)kind));
}

// Calls that no refusal can reach, or where a refusal means nothing.
static const struct {
	const char *call;
	bool always; // otherwise under a sanitizer only
	const char *reason;
} exempt[] = {
    {"oscall_futex_wake", true, "see spared"},
    {"oscall_futex_wake_as", true, "see spared"},
    {"oscall_yield", true, "no result; its caller waits for a thread"},
    {"oscall_gettid", true, "cannot fail"},
    {"oscall_main_thread", true, "cannot fail"},
    {"oscall_lock", true, "see check_locked"},
    {"oscall_unlock", true, "see check_locked"},
    {"oscall_reserve_unlocked", true, "see check_locked"},
    {"oscall_noted_nprocs", true, "asks no system"},
    {"oscall_main_stack_end", true, "asks no system"},
    {"oscall_program", true, "asks no system"},
    {"oscall_fork_prepare", true, "asks no system"},
    {"oscall_fork_child", true, "asks no system"},
    {"oscall_thread_join", true, "cannot fail"},
    {"oscall_mapped", false, "made on another stack only"},
    {"oscall_mapping_end", false, "made on another stack only"},
    {"oscall_peek", false, "made for static data only"},
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
