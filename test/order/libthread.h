// libthread.h - what the tests of the background thread (gc/cycle/scavenger.h)
// share: how they make the thread begin, and see what it does.
#ifndef TEST_ORDER_LIBTHREAD_H
#define TEST_ORDER_LIBTHREAD_H

#include "gc/cycle/scavenger.h"
#include "test/harness/process.h"
#include "test/order/host.h"

enum { OBJECT = 8192, OBJECTS = 2048 }; // 16 MiB

static void *objects[OBJECTS]; // roots

static inline void begin_as(rt_config c)
{
	heap_start_exact(c);
	must(rt_roots_add(objects, objects + OBJECTS, RT_ROOT_EXACT));
}

static inline bool runs(void)
{
	return atomic_u32_load_acquire(&scavenger.runs) != 0;
}

static inline bool make_objects(void)
{
	for (size_t i = 0; i < OBJECTS; i++)
		if (!(objects[i] = rt_alloc_noscan(OBJECT)))
			return false;
	return true;
}

// make_garbage drops the objects, and collects.
static inline bool make_garbage(void)
{
	bool ok = make_objects();

	memset(objects, 0, sizeof objects);
	return ok && rt_gc() == RT_OK;
}

// all_released tells whether all free pages but less than a MiB are released.
static inline bool all_released(void)
{
	rt_memstats m;

	return rt_read_memstats_live(&m) == RT_OK &&
	       m.heap_idle - m.heap_released < 1 << 20;
}

// await_released is for a caller that is blocked.
static inline void await_released(void)
{
	await_that(all_released, "nothing was released");
}

// it_sleeps tells whether the background thread sleeps until it is called, or
// until a time that it has set.
static inline bool it_sleeps(void)
{
	const uint32_t slept = 2; // NOTE_SLEPT of runtime/os/lock.c

	return atomic_u32_load_acquire(&scavenger.call.woken) == slept;
}

// In the child of a fork, works_alone tells whether the heap works without the
// background thread, and then with a new one, which use makes.  It does not
// call use under a sanitizer, which can make no thread in a child.
static inline bool works_alone(bool (*use)(void))
{
	return !runs() && rt_thread_attach(RT_THREAD_EXACT) == RT_OK &&
	       heap_is_whole() && (RT_TSAN || RT_ASAN || use()) &&
	       heap_is_whole() && rt_fini() == RT_OK;
}

#endif
