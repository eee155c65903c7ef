// Forks: whatever the threads of the parent were doing, the child has a heap
// that is in order, its statistics, and the forking thread as it was.
#define _GNU_SOURCE 1

#include "test/harness/fault.h"
#include "test/harness/heap.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gc/host/handlers.h"
#include "gc/mark/stacks.h"
#include "runtime/spans/mcache.h"
#include "runtime/world/gcstats.h"
#include "runtime/os/oscall.h"
#include "runtime/world/stw.h"
#include "runtime/os/throw.h"
#include "test/harness/await.h"
#include "test/harness/death.h"

#include "test/whole/fork.h"

// ---- what the forking thread is doing ----

GROUP(states, .timeout = 60);

TEST(an_attached_thread_forks)
{
	begin();
	fork_and(works_and_ends);
	works_and_ends();
}

static const struct rt_run *runs; // that the forking thread had before

static void runs_are_as_before(void)
{
	expect(rt_thread_tls->run == runs);
}

// Inline allocation continues after a fork, but not in a region.
TEST(a_fork_leaves_the_runs_as_they_were)
{
	begin();
	runs = rt_thread_tls->run;
	fork_and(runs_are_as_before);
	runs_are_as_before();
	expect(rt_blocking_enter() == RT_OK);
	runs = rt_thread_tls->run;
	fork_and(runs_are_as_before);
	runs_are_as_before();
	expect(rt_blocking_leave() == RT_OK);
}

static void attach_works_and_ends(void)
{
	expect(!rt_thread_self());
	expect(rt_thread_attach(0) == RT_OK);
	works_and_ends();
}

static void *fork_unattached(void *arg)
{
	fork_and(attach_works_and_ends);
	return arg;
}

// The child does not have the thread that made the heap.
TEST(an_unattached_thread_forks)
{
	pthread_t thread;

	begin();
	thread = begin_thread(fork_unattached);
	rt_blocking_enter();
	end_thread(thread);
	rt_blocking_leave();
	works_and_ends();
}

static void leave_region_and_work(void)
{
	expect(rt_blocking_enter() == RT_ESTATE);
	expect(rt_blocking_leave() == RT_OK);
	works_and_ends();
}

TEST(a_thread_in_a_region_forks)
{
	begin();
	expect(rt_blocking_enter() == RT_OK);
	fork_and(leave_region_and_work);
	leave_region_and_work();
}

static void start_world_and_work(void)
{
	expect(rt_world_stopped() == 1);
	expect(!rt_alloc(16));
	verify();
	stats();
	expect(rt_start_the_world(NULL) == RT_OK);
	works_and_ends();
}

TEST(a_stopper_forks_in_its_stop)
{
	begin();
	expect(rt_stop_the_world(RT_STOP_HOST) == RT_OK);
	fork_and(start_world_and_work);
	start_world_and_work();
}

static pid_t walk_child = -1;

static int fork_in_walk(void *obj, size_t size, int kind, void *arg)
{
	(void)obj;
	(void)size;
	(void)kind;
	(void)arg;
	if (walk_child < 0)
		walk_child = fork();
	expect(rt_start_the_world(NULL) == RT_EPERM);
	return 0;
}

// Both processes continue the walk.
TEST(a_callback_of_a_walk_forks)
{
	begin();
	expect(rt_heap_walk(fork_in_walk, NULL) == RT_OK);
	expect(rt_world_stopped() == 0);
	if (walk_child > 0)
		expect_child(walk_child);
	works_and_ends();
	if (walk_child == 0)
		_exit(0);
}

static int fork_when_short(size_t n, void *arg)
{
	(void)n;
	(void)arg;
	fault_fail(OSCALL_COMMIT, 1, 0, 0);
	fork_and(works);
	return 0;
}

TEST(a_handler_for_out_of_memory_forks)
{
	begin();
	rt_set_oom_handler(fork_when_short, NULL);
	fault_fail(OSCALL_COMMIT, 1, UINT64_MAX, ENOMEM);
	expect(!rt_alloc((size_t)64 << 20));
	fault_fail(OSCALL_COMMIT, 1, 0, 0);
	works_and_ends();
}

static void warning_is_over(void)
{
	expect(atomic_u32_load_acquire(&stacks.warning) == STACKS_WARN_NONE);
	works();
}

TEST(a_warning_that_another_thread_was_taking_is_over)
{
	begin();
	atomic_u32_store_release(&stacks.warning, STACKS_WARN_TAKEN);
	fork_and(warning_is_over);
	atomic_u32_store_release(&stacks.warning, STACKS_WARN_NONE);
	works_and_ends();
}

// ---- the functions ----

GROUP(functions, .timeout = 60);

TEST(answers_without_a_question_are_refused)
{
	expect(rt_fork_parent() == RT_EPERM);
	expect(rt_fork_child() == RT_EPERM);
	begin();
	expect(rt_fork_parent() == RT_EPERM);
	expect(rt_fork_prepare() == RT_OK);
	expect(rt_fork_parent() == RT_OK);
	expect(rt_fork_parent() == RT_EPERM);
	works_and_ends();
}

// If a host prepares a fork itself, the world stays stopped until the host's
// own answer, rt_fork_parent or rt_fork_child.
TEST(preparations_nest)
{
	pid_t child;

	begin();
	expect(rt_fork_prepare() == RT_OK);
	child = fork();
	expect(rt_world_stopped() == 1);
	if (child == 0) {
		expect(rt_fork_child() == RT_OK);
		works_and_ends();
		_exit(0);
	}
	expect(rt_fork_parent() == RT_OK);
	expect(rt_world_stopped() == 0);
	expect_child(child);
	works_and_ends();
}

TEST(a_prepared_thread_cannot_allocate)
{
	begin();
	expect(rt_alloc(16));
	expect(rt_fork_prepare() == RT_OK);
	expect(!rt_alloc(16));
	expect(rt_fork_parent() == RT_OK);
	expect(rt_alloc(16));
	expect(rt_fini() == RT_OK);
}

static void begin_work_and_end(void)
{
	begin();
	works_and_ends();
}

TEST(forks_without_a_heap_change_nothing)
{
	fork_and(begin_work_and_end);
	expect(rt_fork_prepare() == RT_OK);
	expect(rt_fork_parent() == RT_OK);
	begin_work_and_end();
	fork_and(begin_work_and_end);
	begin_work_and_end();
}

// A fork does not look at what a refused rt_init had made.
TEST(a_fork_after_a_heap_was_refused)
{
	// The second call is for the block of the first thread.  The first call
	// is for its P.
	fault_fail(OSCALL_COMMIT, 2, 1, ENOMEM);
	expect(rt_init(NULL) == RT_ENOMEM);
	expect(fault_failed(OSCALL_COMMIT) == 1);
	fork_and(begin_work_and_end);
	begin_work_and_end();
}

static void fork_again(void)
{
	fork_and(works_and_ends);
	works_and_ends();
}

TEST(a_child_forks)
{
	begin();
	fork_and(fork_again);
	works_and_ends();
}

static void fatal(const char *text, void *arg)
{
	(void)text;
	(void)arg;
	expect(rt_fork_prepare() == RT_ESTATE);
	if (fork() == 0)
		_exit(0);
	_exit(42);
}

// The thread that found our bug holds a lock that a fork would take.
TEST(a_fatal_handler_forks, .exit = 42)
{
	begin();
	rt_set_fatal_handler(fatal, NULL);
	mutex_lock(&procs.lock);
	throw_fatal("on purpose");
}

static unsigned told; // reports

// on_abort ends the child of fork_and_throw.  It requires that the second throw
// called no handler and waited for no thread.
static void on_abort(int sig)
{
	(void)sig;
	_exit(told == 1 && fault_count(OSCALL_FUTEX_WAIT) == 0 ? 0 : 1);
}

static void fork_and_throw(const char *text, void *arg)
{
	pid_t child;

	(void)text;
	(void)arg;
	told++;
	child = fork();
	if (child == 0) {
		signal(SIGABRT, on_abort);
		fault_fail(OSCALL_FUTEX_WAIT, 1, 0, 0); // counts from now on
		throw_fatal("again");
	}
	expect_child(child);
	_exit(42);
}

// The child is in the handler, too: a throw there ends it without a report.
TEST(a_fatal_handler_s_child_throws, .exit = 42)
{
	begin();
	rt_set_fatal_handler(fork_and_throw, NULL);
	throw_fatal("on purpose");
}

// ---- what the other threads are doing ----

static RT_NORETURN void stay(void)
{
	atomic_u32_add_release(&run.ready, 1);
	for (;;)
		pause();
}

static void stay_in_handler(const char *text, void *arg)
{
	(void)text;
	(void)arg;
	stay();
}

// ---- a program that a fatal handler starts ----

static unsigned nforks; // that ran handlers of pthread_atfork

static void count_fork(void)
{
	nforks++;
}

extern char **environ;
static char *const reporter[] = {"/bin/sh", "-c", "exit 7", NULL};

static pid_t report_by_vfork(void)
{
	pid_t child = vfork();

	if (child == 0) {
		execve(reporter[0], reporter, environ);
		_exit(EXIT_FAILURE);
	}
	return child;
}

static pid_t report_by_spawn(void)
{
	pid_t child;

	expect(posix_spawn(&child, reporter[0], NULL, NULL, reporter,
			   environ) == 0);
	return child;
}

static const struct way {
	pid_t (*start)(void);
	bool forks; // the thread sanitizer turns a vfork into a fork
} ways[] = {{report_by_vfork, RT_TSAN}, {report_by_spawn, false}};

// start_reporter waits for a program that it starts, and then ends with 42.
static void start_reporter(const char *text, void *arg)
{
	const struct way *way = arg;
	pid_t child;
	int status;

	expect(strcmp(text, "rtheap: fatal: on purpose") == 0);
	child = way->start();
	expect(child > 0);
	expect(waitpid(child, &status, 0) == child);
	expect(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	expect(nforks == way->forks);
	_exit(42);
}

static void *hold_all_and_stay(void *arg)
{
	(void)arg;
	mutex_lock(&procs.lock);
	mutex_lock(&mheap.lock);
	heapstats_fork_lock();
	handlers_fork_lock();
	stay();
}

static void *stop_and_stay(void *arg)
{
	(void)arg;
	expect(rt_thread_attach(0) == RT_OK);
	expect(rt_stop_the_world(RT_STOP_HOST) == RT_OK);
	stay();
}

static void *(*const others[])(void *) = {hold_all_and_stay, stop_and_stay};

GROUP(threads, .timeout = 300);

// A fatal handler can start a program without a fork while another thread holds
// locks of the heap, or has stopped the world.
TEST(a_fatal_handler_starts_a_program,
     .n = RT_ARRAY_LEN(ways) * RT_ARRAY_LEN(others), .exit = 42)
{
	begin();
	expect(pthread_atfork(count_fork, NULL, NULL) == 0);
	rt_set_fatal_handler(start_reporter, (void *)(uintptr_t)&ways[_i / 2]);
	expect(rt_blocking_enter() == RT_OK);
	begin_thread(others[_i % 2]);
	await_at_least(&run.ready, 1);
	throw_fatal("on purpose");
}

static void *throw_and_stay(void *arg)
{
	(void)arg;
	throw_fatal("first");
}

// stay_throwing returns when another thread is in the host's fatal handler.
// That thread stays there for good.
static void stay_throwing(void)
{
	begin_thread(throw_and_stay);
	await_at_least(&run.ready, 1);
}

static void throw_second(void)
{
	rt_set_fatal_handler(NULL, NULL);
	throw_fatal("second");
}

// expect_second runs fn in a child.  The child must report its own throw, and
// nothing else.
static void expect_second(void (*fn)(void))
{
	expect(death_aborted(death_status(fn)));
	expect(strcmp(death_output, "rtheap: fatal: second\n") == 0);
}

// The thread that throws may be in the middle of a change of the heap, so no
// fork is prepared.
static void fork_and_throw_second(void)
{
	expect(rt_fork_prepare() == RT_ESTATE);
	expect_second(throw_second);
	throw_second();
}

TEST(a_child_throws_while_its_parent_does)
{
	begin();
	rt_set_fatal_handler(stay_in_handler, NULL);
	stay_throwing();
	expect_second(fork_and_throw_second);
}

static void answer_work_and_throw(void)
{
	expect(rt_world_stopped() == 1);
	expect(rt_fork_child() == RT_OK);
	fork_and(works);
	works();
	throw_second();
}

// The fork was prepared before the throw.  So the child may use the heap.  The
// world stays stopped until the host's own answer.
TEST(a_thread_throws_in_a_prepared_fork)
{
	begin();
	rt_set_fatal_handler(stay_in_handler, NULL);
	expect(rt_fork_prepare() == RT_OK);
	stay_throwing();
	expect_second(answer_work_and_throw);
	expect(rt_world_stopped() == 1);
	expect(rt_fork_parent() == RT_OK);
	works_and_ends();
}

// hold_everything leaves something of each kind in its caches, then sleeps.
static void *hold_everything(void *arg)
{
	void *stack;

	expect(rt_thread_attach(0) == RT_OK);
	for (size_t n = 1; n < 3000; n += 50) {
		expect(rt_alloc(n));
		expect(rt_alloc_noscan(n));
	}
	stack = rt_stack_alloc(4096);
	expect(rt_stack_free(stack, 4096) == RT_OK);
	rt_blocking_enter();
	atomic_u32_add_release(&run.ready, 1);
	while (!ended())
		sleep_ns(1000000);
	rt_blocking_leave();
	expect(rt_thread_detach() == RT_OK);
	return arg;
}

// A child writes here what it has found, for its parent.
static struct found {
	rt_memstats live;
	rt_memstats exact;
	uint64_t cpu;
	uint32_t waiters;
} * found;

static void find(void)
{
	expect(rt_read_memstats_live(&found->live) == RT_OK);
	found->exact = stats();
	found->cpu = gcstats_cpu();
	found->waiters = atomic_u32_load_relaxed(&procs.gate_waiters);
	expect(procs.count == 1);
	expect(rt_start_the_world(NULL) == RT_OK);
	works_and_ends();
}

// The child has flushed the caches of the lost threads.  In the parent these
// caches still hold memory.  Exact statistics are the same in both.
static void compare_with_child(void)
{
	uint64_t cpu = gcstats_cpu();
	rt_memstats m;

	expect(rt_read_memstats_live(&m) == RT_OK);
	expect(m.stack_inuse > 0);
	fork_and(find);
	expect(found->cpu >= cpu);
	expect(found->waiters == 0);
	expect(found->live.stack_inuse == 0);
	expect(found->live.mcache_inuse == sizeof(struct rt_mcache));
	m = stats();
	expect(found->exact.mallocs == m.mallocs);
	expect(found->exact.frees == m.frees);
	expect(found->exact.total_alloc == m.total_alloc);
	expect(found->exact.heap_alloc == m.heap_alloc);
	expect(found->exact.num_gc == m.num_gc);
}

TEST(what_lost_threads_held_is_freed)
{
	enum { THREADS = 8 };
	pthread_t threads[THREADS];

	found = mmap(NULL, sizeof *found, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	expect(found != MAP_FAILED);
	begin();
	expect(rt_set_gc_percent(HEAP_QUIET, NULL) == RT_OK);
	for (int i = 0; i < THREADS; i++)
		threads[i] = begin_thread(hold_everything);
	rt_blocking_enter();
	await_at_least(&run.ready, THREADS);
	rt_blocking_leave();
	expect(rt_stop_the_world(RT_STOP_HOST) == RT_OK);
	compare_with_child();
	expect(rt_start_the_world(NULL) == RT_OK);
	atomic_u32_store_release(&run.end, 1);
	rt_blocking_enter();
	for (int i = 0; i < THREADS; i++)
		end_thread(threads[i]);
	rt_blocking_leave();
	works_and_ends();
}

// ---- a stack from a collection ----

enum { LIMIT = 64 << 20, LONG_STACK = 16 << 20 };

static void *given; // a stack

// take_from_a_collection uses up what the heap has left, so the first
// collection has to grant its stack.  It frees the stack, and sleeps.
static void *take_from_a_collection(void *arg)
{
	expect(rt_thread_attach(RT_THREAD_EXACT) == RT_OK);
	while (stats().heap_alloc < LIMIT - (2 << 20))
		expect(rt_alloc_noscan(1 << 20));
	given = rt_stack_alloc(LONG_STACK);
	expect(given);
	expect(stats().num_gc == 1);
	expect(rt_stack_free(given, LONG_STACK) == RT_OK);
	expect(rt_blocking_enter() == RT_OK);
	atomic_u32_add_release(&run.ready, 1);
	while (!ended())
		sleep_ns(1000000);
	expect(rt_blocking_leave() == RT_OK);
	expect(rt_thread_detach() == RT_OK);
	return arg;
}

static void free_given(void)
{
	expect(rt_stack_free(given, LONG_STACK) == RT_OK);
	works_and_ends();
}

// The forking thread has allocated the stack that the other thread freed.  So
// the child must not free it as a grant to the lost thread.
TEST(a_child_takes_no_stack_back_that_was_freed)
{
	rt_config c = heap_config(HEAP_QUIET);
	pthread_t thread;

	c.max_heap = LIMIT;
	c.gc_threads = 0;
	expect(rt_init(&c) == RT_OK);
	list_make();
	thread = begin_thread(take_from_a_collection);
	expect(rt_blocking_enter() == RT_OK);
	await_at_least(&run.ready, 1);
	expect(rt_blocking_leave() == RT_OK);
	expect(rt_stack_alloc(LONG_STACK) == given);
	fork_and(free_given);
	atomic_u32_store_release(&run.end, 1);
	expect(rt_blocking_enter() == RT_OK);
	end_thread(thread);
	expect(rt_blocking_leave() == RT_OK);
	free_given();
}
