// frames.h - objects that only frames of a stack keep alive.
#ifndef TEST_HARNESS_FRAMES_H
#define TEST_HARNESS_FRAMES_H

#include "test/harness/heap.h"

enum { FRAMES_OBJECT = 1736 }; // bytes, a size that no other object has

static uint64_t frames_lost; // objects that were collected, though held

// go_down holds an object in each of n + 1 frames of 64 KiB, and collects in
// the deepest.
static RT_NOINLINE void go_down(unsigned n)
{
	volatile char bytes[64 << 10];
	void *volatile held = rt_alloc_noscan(FRAMES_OBJECT);

	bytes[1] = 0;
	if (n != 0)
		go_down(n - 1);
	else
		ck_assert_int_eq(rt_gc(), RT_OK);
	frames_lost += !rt_is_heap(held) + bytes[1];
}

#endif
