// The library's threads, whichever thread makes them: their processors, their
// scheduling, and what they tell the host when they begin.
#define _GNU_SOURCE 1
#define RT_NO_INLINE_ALLOC

#include <rt/rt.h>

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "gc/mark/crew.h"
#include "gc/cycle/scavenger.h"
#include "gc/cycle/worker.h"
#include "runtime/os/settings.h"
#include "test/harness/await.h"
#include "test/harness/fault.h"
#include "test/harness/heap.h"
#include "test/harness/process.h"
#include "test/harness/schedpoint.h"
#include "test/harness/thread.h"

enum kind { HELPER, SCAVENGER, KINDS };

enum { MOST = 8 }; // threads of a kind

static const char *const names[KINDS] = {"rtheap helper", "rtheap scavenge"};

// with_helpers returns a configuration with n helpers and the scavenger.
static rt_config with_helpers(int n)
{
	rt_config c = heap_config(100);

	c.max_procs = n + 1;
	c.gc_period_s = UINT8_MAX; // so that growth makes the scavenger
	return c;
}

// start_heap makes a heap and attaches its caller.
static void start_heap(rt_config c)
{
	schedpoint_watch();
	heap_start_exact(c);
}

// make makes all threads of a kind.
static void make(enum kind kind)
{
	if (kind == HELPER)
		worker_provide(proc_self(), true);
	else
		scavenger_grew(proc_self(), 64 << 20);
}

static bool it_serves(void)
{
	return schedpoint_passed(SCHED_SERVE_BEGIN) != 0;
}

// await_serving waits until the scavenger begins to serve.  It does nothing for
// a helper.
static void await_serving(enum kind kind)
{
	if (kind == SCAVENGER)
		await_that(it_serves, "it does not serve");
}

// goes_on requires that the heap and its threads work.
static void goes_on(enum kind kind)
{
	heap_healthy();
	must(rt_gc());
	heap_healthy();
	if (kind == HELPER)
		ck_assert_uint_ge(crew_size(), 1);
	else
		ck_assert_uint_eq(atomic_u32_load_relaxed(&scavenger.runs), 1);
}

// list writes the numbers of the threads of a kind to tids, and returns how
// many there are.
static uint32_t list(enum kind kind, pid_t tids[MOST])
{
	DIR *dir = opendir("/proc/self/task");
	const struct dirent *entry;
	uint32_t n = 0;

	ck_assert_ptr_nonnull(dir);
	while ((entry = readdir(dir)) != NULL)
		if (thread_is_named(entry->d_name, names[kind])) {
			ck_assert_uint_lt(n, MOST);
			tids[n++] = (pid_t)strtol(entry->d_name, NULL, 10);
		}
	closedir(dir);
	return n;
}

// await_none waits for the system to forget threads that were joined.
static void await_none(enum kind kind)
{
	uint64_t end = nanotime() + AWAIT_SECONDS * UINT64_C(1000000000);
	pid_t tids[MOST];

	while (list(kind, tids) != 0) {
		ck_assert_msg(nanotime() < end, "a thread runs on");
		oscall_yield();
	}
}

// ---- processors and scheduling ----

// The one thread of a kind must have these.  A thread beside the test's makes
// it.
static struct {
	enum kind kind;
	cpu_set_t usable;
	bool inherits;	 // its maker's processors and class
	unsigned refuse; // calls that are refused when it begins
	bool by_use;
} expected;

static cpu_set_t one_of(const cpu_set_t *set, bool last)
{
	int cpu = last ? CPU_SETSIZE - 1 : 0;
	cpu_set_t one;

	while (!CPU_ISSET(cpu, set))
		cpu += last ? -1 : 1;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	return one;
}

static cpu_set_t own_processors(void)
{
	cpu_set_t set;

	ck_assert_int_eq(sched_getaffinity(0, sizeof set, &set), 0);
	return set;
}

static void run_on(cpu_set_t set)
{
	ck_assert_int_eq(sched_setaffinity(0, sizeof set, &set), 0);
}

// stand_apart gives the calling thread the last of its processors, and a
// priority and a class that other threads do not have.
static void stand_apart(void)
{
	const struct sched_param param = {0};
	int nice_now = getpriority(PRIO_PROCESS, 0);
	cpu_set_t all = own_processors();

	run_on(one_of(&all, true));
	ck_assert_int_eq(sched_setscheduler(0, SCHED_BATCH, &param), 0);
	ck_assert_int_eq(
	    setpriority(PRIO_PROCESS, 0, nice_now < 17 ? nice_now + 3 : 19), 0);
}

// check_scheduling checks a thread that the calling one has made.
static void check_scheduling(pid_t tid)
{
	cpu_set_t its, wanted = expected.usable;
	int scheduler = sched_getscheduler(0);

	if (expected.inherits)
		wanted = own_processors();
	else if (expected.kind == SCAVENGER)
		scheduler = SCHED_OTHER;
	ck_assert_int_eq(sched_getaffinity(tid, sizeof its, &its), 0);
	ck_assert(CPU_EQUAL(&wanted, &its));
	ck_assert_int_eq(sched_getscheduler(tid), scheduler);
	ck_assert_int_eq(getpriority(PRIO_PROCESS, (id_t)tid),
			 getpriority(PRIO_PROCESS, 0));
}

static void *make_apart(void *arg)
{
	pid_t tids[MOST];

	stand_apart();
	must(rt_thread_attach(RT_THREAD_EXACT));
	fault_fail(OSCALL_AFFINITY, 1, expected.refuse, EPERM);
	if (expected.by_use)
		ck_assert_ptr_nonnull(rt_alloc_noscan(5 << 20));
	else
		make(expected.kind);
	await_serving(expected.kind);
	ck_assert_uint_eq(fault_failed(OSCALL_AFFINITY), expected.refuse);
	fault_fail(OSCALL_AFFINITY, 1, 0, 0);
	ck_assert_uint_eq(list(expected.kind, tids), 1);
	check_scheduling(tids[0]);
	must(rt_thread_detach());
	return arg;
}

// check_as_expected makes a heap, makes and checks the expected thread in it,
// and uses the heap.
static void check_as_expected(rt_config c)
{
	start_heap(c);
	run_beside(make_apart, NULL);
	goes_on(expected.kind);
	must(rt_fini());
}

// init_with_mask makes a heap whose threads must have the processors of a mask.
// rt_init copies the mask.
static void init_with_mask(cpu_set_t mask, size_t bytes)
{
	rt_config c = with_helpers(1);

	c.gc_affinity = &mask;
	c.gc_affinity_size = bytes;
	start_heap(c);
	memset(&mask, 0, sizeof mask);
}

// has_two tells whether there are two processors to choose from.
static bool has_two(const cpu_set_t *all)
{
	if (CPU_COUNT(all) < 2)
		suite_skip("there is one processor", NULL);
	return CPU_COUNT(all) >= 2;
}

GROUP(scheduling, .timeout = 2 * AWAIT_SECONDS);

// A helper inherits the scheduling class of the thread that makes it.  Both
// kinds inherit that thread's nice value, but not its processors.
TEST(each_kind_has_the_processors_of_rt_init, .n = KINDS)
{
	expected.kind = (enum kind)_i;
	expected.usable = own_processors();
	check_as_expected(with_helpers(1));
}

// The scavenger has all processors of rt_init even if the first allocation of a
// pinned thread makes it.  The object is large enough to make the scavenger.
TEST(a_first_allocation_makes_a_thread_with_all_processors)
{
	expected.kind = SCAVENGER;
	expected.usable = own_processors();
	expected.by_use = true;
	check_as_expected(with_helpers(1));
}

// The caller of rt_init may use only one processor, and the library's threads
// may use another as well.  The next heap has the default again.
TEST(each_kind_has_the_processors_of_gc_affinity, .n = KINDS)
{
	cpu_set_t all = own_processors();

	if (!has_two(&all))
		return;
	expected.kind = (enum kind)_i;
	expected.usable = all;
	run_on(one_of(&all, false));
	init_with_mask(all, sizeof all);
	run_beside(make_apart, NULL);
	goes_on(expected.kind);
	must(rt_fini());
	expected.usable = one_of(&all, false);
	await_none(expected.kind);
	start_heap(with_helpers(1));
	run_beside(make_apart, NULL);
	must(rt_fini());
}

// If no processor of gc_affinity exists, each kind has the processors of
// rt_init.
TEST(processors_that_do_not_exist_leave_those_of_rt_init, .n = KINDS)
{
	cpu_set_t absent;

	expected.kind = (enum kind)_i;
	expected.usable = own_processors();
	CPU_ZERO(&absent);
	CPU_SET(CPU_SETSIZE - 1, &absent);
	if (CPU_ISSET(CPU_SETSIZE - 1, &expected.usable)) {
		suite_skip("there are too many processors", NULL);
		return;
	}
	init_with_mask(absent, sizeof absent);
	run_beside(make_apart, NULL);
	goes_on(expected.kind);
	must(rt_fini());
}

// A new thread sets its processors and its scheduling.  The system refuses the
// first of these calls, or all of them.
TEST(refused_calls_leave_a_thread_what_it_has, .n = 2 * KINDS)
{
	cpu_set_t all = own_processors();
	bool refuses_all = _i / KINDS != 0;

	if (!has_two(&all))
		return;
	expected.kind = (enum kind)(_i % KINDS);
	expected.usable = one_of(&all, false);
	expected.inherits = refuses_all;
	// The scavenger also asks for default scheduling.
	expected.refuse = !refuses_all ? 1 : 2 + (expected.kind == SCAVENGER);
	run_on(expected.usable);
	init_with_mask(all, sizeof all);
	run_on(all);
	run_beside(make_apart, NULL);
	goes_on(expected.kind);
	must(rt_fini());
}

// More helpers than processors would only take them from each other.
TEST(there_are_no_more_helpers_than_processors)
{
	rt_config c = with_helpers(2);
	unsigned char mask = 1 << 5;

	c.gc_affinity = &mask;
	c.gc_affinity_size = sizeof mask;
	start_heap(c);
	ck_assert_int_eq(settings()->gc_threads, 1);
	make(HELPER);
	ck_assert_uint_eq(crew_size(), 1);
	must(rt_fini());
}

// A mask that ends below its only processor names none.
TEST(a_mask_without_a_processor_is_refused)
{
	rt_config c = with_helpers(1);
	cpu_set_t set;

	CPU_ZERO(&set);
	c.gc_affinity = &set;
	c.gc_affinity_size = sizeof set;
	ck_assert_int_eq(rt_init(&c), RT_EINVAL);
	CPU_SET(16, &set);
	c.gc_affinity_size = 2;
	ck_assert_int_eq(rt_init(&c), RT_EINVAL);
	c.gc_affinity_size = 3;
	must(rt_init(&c));
	ck_assert_ptr_null(settings()->gc_affinity);
	must(rt_fini());
}

// ---- what the host is told ----

// The host sees these when a thread begins.
static struct start {
	pid_t tid;
	void *arg;
	bool attached;
	uint32_t nprocs; // Ps at that moment
	char name[16];
	cpu_set_t usable;
	int scheduler;
	bool blocks_term, blocks_fault;
} starts[MOST];

static atomic_u32 begun, ended;

static void note_start(void *arg)
{
	struct start *s = &starts[atomic_u32_add_relaxed(&begun, 1) - 1];
	sigset_t blocked;

	s->tid = (pid_t)thread_number();
	s->arg = arg;
	s->attached = rt_thread_self() != NULL;
	s->nprocs = procs.count;
	prctl(PR_GET_NAME, s->name);
	s->usable = own_processors();
	s->scheduler = sched_getscheduler(0);
	ck_assert_int_eq(pthread_sigmask(SIG_BLOCK, NULL, &blocked), 0);
	s->blocks_term = sigismember(&blocked, SIGTERM) == 1;
	s->blocks_fault = sigismember(&blocked, SIGSEGV) == 1;
	atomic_u32_add_release(&ended, 1);
}

static rt_config with_start(rt_gc_thread_fn *fn, int helpers)
{
	rt_config c = with_helpers(helpers);

	c.gc_thread_start = fn;
	c.gc_thread_arg = &starts;
	return c;
}

// check_start checks what the nth thread has recorded.  The threads are made
// one after the other, so each finds the P of the test and the Ps of the
// threads before it.
static void check_start(uint32_t n, enum kind kind)
{
	const struct start *s = &starts[n];
	cpu_set_t all = own_processors();

	ck_assert_ptr_eq(s->arg, &starts);
	ck_assert(!s->attached);
	ck_assert_uint_eq(s->nprocs, 1 + n);
	ck_assert_str_eq(s->name, names[kind]);
	ck_assert(CPU_EQUAL(&s->usable, &all));
	ck_assert_int_eq(s->scheduler, kind == SCAVENGER
					   ? SCHED_OTHER
					   : sched_getscheduler(0));
	ck_assert(s->blocks_term && !s->blocks_fault);
}

// check_told requires that n calls have been made, and have returned.
static void check_told(uint32_t n)
{
	ck_assert_uint_eq(atomic_u32_load_acquire(&ended), n);
	ck_assert_uint_eq(atomic_u32_load_relaxed(&begun), n);
}

static bool told_of(pid_t tid)
{
	for (uint32_t i = 0; i < atomic_u32_load_acquire(&ended); i++)
		if (starts[i].tid == tid)
			return true;
	return false;
}

static void check_all_told(enum kind kind, uint32_t wanted)
{
	pid_t tids[MOST];

	ck_assert_uint_eq(list(kind, tids), wanted);
	for (uint32_t i = 0; i < wanted; i++)
		ck_assert(told_of(tids[i]));
}

GROUP(start, .timeout = 2 * AWAIT_SECONDS);

TEST(the_host_is_told_of_each_thread_once)
{
	start_heap(with_start(note_start, 2));
	check_told(0);
	make(HELPER);
	check_told(2);
	make(SCAVENGER);
	check_told(3);
	check_start(0, HELPER);
	check_start(1, HELPER);
	check_start(2, SCAVENGER);
	check_all_told(HELPER, 2);
	check_all_told(SCAVENGER, 1);
	make(HELPER);
	make(SCAVENGER);
	must(rt_gc());
	heap_healthy();
	must(rt_fini());
	check_told(3);
	// The next heap has no function, so its threads call none.
	start_heap(with_helpers(2));
	make(HELPER);
	make(SCAVENGER);
	must(rt_fini());
	check_told(3);
}

static void *make_as_batch(void *kind)
{
	const struct sched_param param = {0};

	ck_assert_int_eq(sched_setscheduler(0, SCHED_BATCH, &param), 0);
	must(rt_thread_attach(RT_THREAD_EXACT));
	make(*(enum kind *)kind);
	must(rt_thread_detach());
	return NULL;
}

// The scavenger sets its scheduling before the host is told of it, so that the
// host can change it.
TEST(only_the_scavenger_begins_with_default_scheduling, .n = KINDS)
{
	enum kind kind = (enum kind)_i;

	start_heap(with_start(note_start, 1));
	run_beside(make_as_batch, &kind);
	check_told(1);
	ck_assert_int_eq(starts[0].scheduler,
			 kind == SCAVENGER ? SCHED_OTHER : SCHED_BATCH);
	must(rt_fini());
}

static int nice_apart;

static void change_all(void *arg)
{
	note_start(arg);
	prctl(PR_SET_NAME, "host's");
	stand_apart();
	nice_apart = getpriority(PRIO_PROCESS, 0);
}

TEST(what_the_host_sets_stays, .n = KINDS)
{
	cpu_set_t all = own_processors(), last = one_of(&all, true), its;
	char number[20];
	pid_t tid;

	start_heap(with_start(change_all, 1));
	make((enum kind)_i);
	await_serving((enum kind)_i);
	goes_on((enum kind)_i);
	tid = starts[0].tid;
	snprintf(number, sizeof number, "%d", (int)tid);
	ck_assert(thread_is_named(number, "host's"));
	ck_assert_int_eq(sched_getaffinity(tid, sizeof its, &its), 0);
	ck_assert(CPU_EQUAL(&last, &its));
	ck_assert_int_eq(sched_getscheduler(tid), SCHED_BATCH);
	ck_assert_int_eq(getpriority(PRIO_PROCESS, (id_t)tid), nice_apart);
	must(rt_fini());
}

// ---- what waits for the host ----

static atomic_u32 may_return;

static void wait_long(void *arg)
{
	note_start(arg);
	await_at_least(&may_return, 1);
}

static void *make_beside(void *kind)
{
	must(rt_thread_attach(RT_THREAD_EXACT));
	make(*(enum kind *)kind);
	must(rt_thread_detach());
	return NULL;
}

// works_in_child tells whether the heap works in the child of a fork, and
// whether the host is told of a thread that the child makes.
static bool works_in_child(enum kind kind)
{
	bool ok = rt_gc() == RT_OK && heap_is_whole();

	atomic_u32_store_relaxed(&may_return, 1);
	// The sanitizers can make no thread in a child.
	if (!RT_TSAN && !RT_ASAN) {
		make(kind);
		ok &= atomic_u32_load_acquire(&ended) == 2 &&
		      starts[1].arg == &starts &&
		      strcmp(starts[1].name, names[kind]) == 0 &&
		      told_of(starts[1].tid);
	}
	return ok && rt_fini() == RT_OK;
}

// While the host's function runs in a new thread, only the thread that makes
// that one waits for it.
TEST(no_stop_and_no_fork_waits_for_the_host, .n = KINDS)
{
	enum kind kind = (enum kind)_i;
	pthread_t maker;

	start_heap(with_start(wait_long, 1));
	maker = start_thread(make_beside, &kind);
	await_at_least(&ended, 1);
	must(rt_gc());
	heap_healthy();
	heap_stats();
	make(kind); // returns at once: the other thread makes it
	if (process_forked())
		process_end(works_in_child(kind));
	ck_assert_int_eq(rt_fini(), RT_EBUSY);
	check_told(1);
	must(rt_blocking_enter());
	atomic_u32_store_release(&may_return, 1);
	join_thread(maker);
	must(rt_blocking_leave());
	goes_on(kind);
	check_told(1);
	must(rt_fini());
}

// The child of a fork tells of the threads that it makes.
TEST(the_child_of_a_fork_tells_of_its_threads, .n = KINDS)
{
	enum kind kind = (enum kind)_i;

	start_heap(with_start(note_start, 1));
	make(kind);
	check_told(1);
	if (process_forked())
		process_end(works_in_child(kind));
	check_told(1);
	must(rt_fini());
}

// ---- what the host may do there ----

static pthread_key_t key;
static int attached[3];	   // what attaching returned
static unsigned destroyed; // calls of destroy

static int try_to_attach(void)
{
	int error = rt_thread_attach(0);

	if (error == RT_OK)
		rt_thread_detach();
	return error;
}

static int try_to_attach_stack(void)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	int error = rt_thread_attach_stack((void *)(here - 4096),
					   (void *)(here + 1), 0);

	if (error == RT_OK)
		rt_thread_detach();
	return error;
}

static void destroy(void *value)
{
	ck_assert_ptr_eq(value, &key);
	attached[2] = try_to_attach();
	destroyed++;
}

static void set_specific(void *arg)
{
	note_start(arg);
	attached[0] = try_to_attach();
	attached[1] = try_to_attach_stack();
	ck_assert_int_eq(pthread_setspecific(key, &key), 0);
}

TEST(a_thread_of_the_library_never_attaches, .n = KINDS)
{
	ck_assert_int_eq(pthread_key_create(&key, destroy), 0);
	start_heap(with_start(set_specific, 1));
	make((enum kind)_i);
	check_told(1);
	ck_assert_int_eq(attached[0], RT_EBUSY);
	ck_assert_int_eq(attached[1], RT_EBUSY);
	goes_on((enum kind)_i);
	must(rt_fini());
	ck_assert_uint_eq(destroyed, 1);
	ck_assert_int_eq(attached[2], RT_EBUSY);
	// The threads of the host are not affected.
	start_heap(with_helpers(1));
	must(rt_fini());
}
