// Forks among threads that use the heap, fork, or make heaps and end them.
#define _GNU_SOURCE 1

#include "test/whole/fork.h"

#include <link.h>

GROUP(threads);

static void *come_and_go(void *arg)
{
	while (!ended()) {
		expect(rt_thread_attach(0) == RT_OK);
		for (unsigned i = 0; i < 2000 && !ended(); i++)
			expect(rt_alloc(1 + i % 500));
		expect(rt_thread_detach() == RT_OK);
	}
	return arg;
}

static void *collect_and_stop(void *arg)
{
	expect(rt_thread_attach(0) == RT_OK);
	while (!ended()) {
		expect(rt_gc() == RT_OK);
		expect(rt_stop_the_world(RT_STOP_HOST) == RT_OK);
		expect(rt_start_the_world(NULL) == RT_OK);
		verify();
	}
	expect(rt_thread_detach() == RT_OK);
	return arg;
}

static void on_warning(const char *text, void *arg)
{
	(void)text;
	(void)arg;
}

static int no_memory(size_t n, void *arg)
{
	(void)n;
	(void)arg;
	return 0;
}

// read_and_set runs on a thread that is not attached, so it takes locks even
// while the world is stopped.
static void *read_and_set(void *arg)
{
	rt_memstats m;

	while (!ended()) {
		expect(rt_read_memstats_live(&m) == RT_OK);
		expect(rt_set_warn_handler(on_warning, NULL) == RT_OK);
		expect(rt_set_oom_handler(no_memory, NULL) == RT_OK);
		expect(rt_set_fatal_handler(on_warning, NULL) == RT_OK);
		expect(rt_set_fatal_handler(NULL, NULL) == RT_OK);
	}
	return arg;
}

static void *read_exactly(void *arg)
{
	rt_memstats m;

	while (!ended())
		expect(rt_read_memstats(&m) == RT_OK);
	return arg;
}

static void *read_in_region(void *arg)
{
	rt_memstats m;

	expect(rt_thread_attach(0) == RT_OK);
	while (!ended()) {
		expect(rt_alloc((size_t)400 << 10));
		expect(rt_blocking_enter() == RT_OK);
		expect(rt_read_memstats_live(&m) == RT_OK);
		expect(rt_blocking_leave() == RT_OK);
	}
	expect(rt_thread_detach() == RT_OK);
	return arg;
}

static void *(*const busy[])(void *) = {
    come_and_go,  come_and_go,	  collect_and_stop,
    read_and_set, read_in_region, read_exactly,
};

// A lock that another thread of the parent held at the fork must be free in the
// child.
static void everything_works(void)
{
	expect(rt_set_warn_handler(NULL, NULL) == RT_OK);
	expect(rt_set_oom_handler(NULL, NULL) == RT_OK);
	expect(rt_set_fatal_handler(NULL, NULL) == RT_OK);
	works_and_ends();
}

static void attach_everything_works(void)
{
	expect(rt_thread_attach(0) == RT_OK);
	everything_works();
}

static void *fork_unattached_busy(void *arg)
{
	fork_and(attach_everything_works);
	return arg;
}

static void leave_everything_works(void)
{
	expect(rt_blocking_leave() == RT_OK);
	everything_works();
}

static void fork_once(unsigned how)
{
	pthread_t thread;

	if (how % 3 == 0) {
		fork_and(everything_works);
		return;
	}
	rt_blocking_enter();
	if (how % 3 == 1) {
		fork_and(leave_everything_works);
	} else {
		thread = begin_thread(fork_unattached_busy);
		end_thread(thread);
	}
	rt_blocking_leave();
}

TEST(forks_among_busy_threads)
{
	enum { FORKS = RT_TSAN || RT_ASAN ? 60 : 300 };
	pthread_t threads[RT_ARRAY_LEN(busy)];

	begin();
	for (unsigned i = 0; i < RT_ARRAY_LEN(busy); i++)
		threads[i] = begin_thread(busy[i]);
	for (unsigned i = 0; i < FORKS; i++)
		fork_once(i);
	atomic_u32_store_release(&run.end, 1);
	rt_blocking_enter();
	for (unsigned i = 0; i < RT_ARRAY_LEN(busy); i++)
		end_thread(threads[i]);
	rt_blocking_leave();
	works_and_ends();
}

enum { FORKS_EACH = RT_TSAN || RT_ASAN ? 10 : 40 };

static void *fork_in_region(void *arg)
{
	expect(rt_thread_attach(0) == RT_OK);
	for (unsigned i = 0; i < FORKS_EACH; i++) {
		expect(rt_alloc(100 + i));
		rt_blocking_enter();
		fork_and(leave_everything_works);
		rt_blocking_leave();
	}
	expect(rt_thread_detach() == RT_OK);
	return arg;
}

static void *fork_outside(void *arg)
{
	for (unsigned i = 0; i < FORKS_EACH; i++)
		fork_and(attach_everything_works);
	return arg;
}

// Several threads may fork at once, even if the C library runs the handlers of
// only one of them at a time.
TEST(several_threads_fork_at_once)
{
	static void *(*const forks[])(void *) = {fork_in_region, fork_in_region,
						 fork_outside, fork_outside};
	pthread_t threads[RT_ARRAY_LEN(forks)];

	begin();
	for (unsigned i = 0; i < RT_ARRAY_LEN(forks); i++)
		threads[i] = begin_thread(forks[i]);
	rt_blocking_enter();
	for (unsigned i = 0; i < RT_ARRAY_LEN(forks); i++)
		end_thread(threads[i]);
	rt_blocking_leave();
	works_and_ends();
}

static void *begin_and_end(void *arg)
{
	while (!ended()) {
		expect(rt_init(NULL) == RT_OK);
		atomic_u32_add_release(&run.ready, 1);
		expect(rt_fini() == RT_OK);
	}
	return arg;
}

static int hold_modules(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)info, (void)size, (void)arg;
	atomic_u32_add_release(&run.ready, 1);
	while (!ended())
		oscall_yield();
	return 1;
}

static void *walk_modules(void *arg)
{
	expect(dl_iterate_phdr(hold_modules, NULL) == 1);
	return arg;
}

static void attach_allocate_and_end(void)
{
	expect(rt_thread_attach(0) == RT_OK);
	expect(rt_alloc(100));
	collect();
	expect(rt_fini() == RT_OK);
}

static void *fork_and_attach(void *arg)
{
	atomic_u32_add_release(&run.ready, 1);
	await_at_least(&run.ready, 2);
	fork_and(attach_allocate_and_end);
	return arg;
}

// At the fork the walker holds the C library's lock of its list of modules.  No
// thread of the child can release that lock.  Sanitizers take it when a thread
// begins, so the thread that forks begins before the walker.
TEST(a_fork_while_another_thread_walks_the_modules)
{
	pthread_t forks, walker;

	begin();
	end_thread(begin_thread(attach_and_allocate));
	forks = begin_thread(fork_and_attach);
	await_at_least(&run.ready, 1);
	walker = begin_thread(walk_modules);
	rt_blocking_enter();
	end_thread(forks);
	rt_blocking_leave();
	atomic_u32_store_release(&run.end, 1);
	end_thread(walker);
	works_and_ends();
}

// The child finds a whole heap without threads, or no heap.
static void a_heap_or_none(void)
{
	int error = rt_thread_attach(0);

	if (error == RT_ESTATE)
		expect(rt_init(NULL) == RT_OK);
	else
		expect(error == RT_OK);
	expect(rt_alloc(100));
	collect();
	expect(rt_fini() == RT_OK);
}

TEST(forks_while_heaps_begin_and_end)
{
	enum { FORKS = RT_TSAN || RT_ASAN ? 40 : 200 };
	pthread_t thread = begin_thread(begin_and_end);

	await_at_least(&run.ready, 1); // not during the first rt_init
	for (int i = 0; i < FORKS; i++)
		fork_and(a_heap_or_none);
	atomic_u32_store_release(&run.end, 1);
	end_thread(thread);
}
