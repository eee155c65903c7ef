// fork.h - what tests of forks share: a list that must survive, and children.
#ifndef TEST_WHOLE_FORK_H
#define TEST_WHOLE_FORK_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/os/oscall.h"
#include "runtime/world/proc.h"
#include "test/harness/await.h"
#include "test/harness/heap.h"
#include "test/harness/process.h"

enum { CELLS = 1000 };

// Check has locks of its own, which may be held at a fork.  So children, and
// threads that are busy at a fork, use expect, which aborts the process by
// itself.
static inline void expect_at(bool ok, const char *file, int line)
{
	char text[256];

	if (ok)
		return;
	oscall_write(
	    2, text,
	    (size_t)snprintf(text, sizeof text, "%s:%d: failed\n", file, line));
	abort();
}
#define expect(cond) expect_at((cond), __FILE__, __LINE__)

static inline pthread_t begin_thread(void *(*fn)(void *))
{
	pthread_t thread;

	expect(pthread_create(&thread, NULL, fn, NULL) == 0);
	return thread;
}

static inline void end_thread(pthread_t thread)
{
	expect(pthread_join(thread, NULL) == 0);
}

static inline void verify(void)
{
	struct rt_verify v;

	expect(rt_heap_verify(&v) == RT_OK);
	expect(v.errors == 0);
}

static inline void collect(void)
{
	expect(rt_gc() == RT_OK);
	verify();
}

static inline rt_memstats stats(void)
{
	rt_memstats m;

	expect(rt_read_memstats(&m) == RT_OK);
	return m;
}

struct cell {
	uint64_t n;
	struct cell *next;
};

static struct cell *list;

static inline void list_make(void)
{
	expect(rt_roots_add(&list, &list + 1, RT_ROOT_EXACT) == RT_OK);
	list = NULL;
	for (uint64_t n = 1; n <= CELLS; n++) {
		struct cell *c = rt_alloc(sizeof *c);

		expect(c);
		c->n = n;
		c->next = list;
		list = c;
	}
}

static inline void list_check(void)
{
	uint64_t n = CELLS;

	for (const struct cell *c = list; c; c = c->next)
		expect(c->n == n--);
	expect(n == 0);
}

static inline void begin(void)
{
	rt_config c = heap_config(100);

	c.heap_min = c.heap_headroom = 1 << 20;
	c.scavenge = 1;
	// The sanitizers can make no thread in a child.  gcc's thread sanitizer
	// says so, and the address sanitizer waits for its own allocator for
	// ever.
	c.gc_threads = RT_TSAN || RT_ASAN ? 0 : 1;
	expect(rt_init(&c) == RT_OK);
	list_make();
}

static inline void *attach_and_allocate(void *arg)
{
	expect(rt_thread_attach(0) == RT_OK);
	expect(rt_alloc(100));
	expect(rt_thread_detach() == RT_OK);
	return arg;
}

// works uses the heap of a process whose one attached thread is the caller.
static inline void works(void)
{
	rt_memstats live;

	list_check();
	verify();
	for (unsigned i = 0; i < 20000; i++)
		expect(rt_alloc(1 + i % 3000));
	collect();
	stats();
	expect(rt_read_memstats_live(&live) == RT_OK);
	expect(atomic_u32_load_relaxed(&procs.attached) == 1);
	list_check();
	if (!RT_TSAN && !RT_ASAN)
		end_thread(begin_thread(attach_and_allocate));
}

static inline void works_and_ends(void)
{
	works();
	expect(rt_fini() == RT_OK);
}

static inline void expect_child(pid_t child)
{
	int status;

	expect(child > 0);
	expect(waitpid(child, &status, 0) == child);
	expect(status == 0);
}

// fork_and runs fn in a child.
static inline void fork_and(void (*fn)(void))
{
	pid_t child = fork();

	if (child == 0) {
		process_expire();
		fn();
		_exit(0);
	}
	expect_child(child);
}

// How the other threads say that they are ready, and how the test ends them.
static struct {
	atomic_u32 ready; // threads
	atomic_u32 end;
} run;

static inline bool ended(void)
{
	return atomic_u32_load_acquire(&run.end) != 0;
}

#endif
