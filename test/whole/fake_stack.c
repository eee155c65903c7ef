// fake_stack.c - an object stays alive if only a local variable points to it,
// even where the address sanitizer has moved the variable off the stack.
//
// The run-time reads its options when the process begins.  So the program runs
// itself again with detect_stack_use_after_return.
#include <pthread.h>
#include <rt/rt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/base.h"

enum { OBJECT = 1736, SLOTS = 4, SKIPPED = 77 };

static int passed, failed;

static void check(bool holds, const char *what)
{
	if (holds) {
		passed++;
	} else {
		failed++;
		printf("fake_stack: broken: %s\n", what);
	}
}

// escape makes the compiler assume that unknown code reads and writes what p
// points to.
static void escape(void *p)
{
	__asm__ volatile("" : : "r"(p) : "memory");
}

static bool far_from_here(const void *p)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	uintptr_t distance = (uintptr_t)p - here;

	return distance + (1 << 20) > 2 << 20;
}

static RT_NOINLINE void collect(void)
{
	check(rt_gc() == RT_OK, "a collection");
}

// hold keeps objects by its local variable alone while wait runs.  If past_end
// is set, the variable has the ends of the objects.
static RT_NOINLINE void hold(bool past_end, void (*wait)(void))
{
	char *slot[SLOTS];
	int alive = 0;

	escape(slot);
	check(far_from_here(slot), "the variable is off the stack");
	for (int i = 0; i < SLOTS; i++)
		slot[i] = (char *)rt_alloc_noscan(OBJECT) +
			  (past_end ? rt_good_size(OBJECT) : 0);
	escape(slot);
	wait();
	escape(slot);
	for (int i = 0; i < SLOTS; i++)
		alive += rt_is_heap(slot[i] - past_end);
	check(alive == SLOTS, past_end ? "what ends at a word of it lives"
				       : "what it holds lives");
}

// deeper calls hold below n more frames.
static RT_NOINLINE void deeper(int n, void (*wait)(void))
{
	char bytes[200];

	escape(bytes);
	if (n == 0) {
		hold(false, wait);
		hold(true, wait);
	} else {
		deeper(n - 1, wait);
	}
	escape(bytes);
}

static pthread_barrier_t begun, ended;

static void wait_in_region(void)
{
	rt_blocking_enter();
	pthread_barrier_wait(&begun);
	pthread_barrier_wait(&ended);
	rt_blocking_leave();
}

static void *other(void *arg)
{
	check(rt_thread_attach(0) == RT_OK, "attaching");
	deeper(5, wait_in_region);
	return arg;
}

static void collect_beside_another(void)
{
	pthread_t thread;

	pthread_barrier_init(&begun, NULL, 2);
	pthread_barrier_init(&ended, NULL, 2);
	rt_blocking_enter();
	pthread_create(&thread, NULL, other, NULL);
	for (int i = 0; i < 2; i++) { // as often as hold waits
		pthread_barrier_wait(&begun);
		rt_blocking_leave();
		collect();
		rt_blocking_enter();
		pthread_barrier_wait(&ended);
	}
	pthread_join(thread, NULL);
	rt_blocking_leave();
}

int main(int argc, char **argv)
{
	static const char option[] = "detect_stack_use_after_return=1";
	const char *given = getenv("ASAN_OPTIONS");
	char options[4096];
	rt_config c;

	if (!RT_ASAN) {
		printf("skipped: 6 of fake stacks: no address sanitizer is "
		       "built in\n");
		return SKIPPED;
	}
	if (argc == 1) {
		snprintf(options, sizeof options, "%s:%s", given ? given : "",
			 option);
		setenv("ASAN_OPTIONS", options, 1);
		execl("/proc/self/exe", argv[0], "again", (char *)NULL);
		return 1;
	}
	rt_config_init(&c);
	c.gc_percent = -1;
	c.clobberfree = 1;
	if (rt_init(&c) != RT_OK)
		return 1;
	deeper(0, collect);
	deeper(10, collect);
	collect_beside_another();
	check(rt_fini() == RT_OK, "the heap ends");
	printf("fake_stack: %d passed, %d failed\n", passed, failed);
	return failed != 0;
}
