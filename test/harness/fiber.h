// fiber.h - fibers of a test: stacks that threads switch to.
//
// The switch is written by hand, so it is the same with every libc, and saves
// the registers on the stack.  The sanitizers are told of it.
#ifndef TEST_HARNESS_FIBER_H
#define TEST_HARNESS_FIBER_H

#include <stdbool.h>
#include <stddef.h>

#include <rt/stack.h>

struct fiber {
	void *sp; // saved, while it does not run
	char *lo;
	char *hi;
	void (*fn)(struct fiber *);
	void *arg;
	bool done;	// fn has returned
	void *resumer;	// saved stack pointer of the resumer
	void *track[2]; // ThreadSanitizer's handles of fiber and resumer
	void *fake[2];	// AddressSanitizer's fake stacks of the two
	const void *resumer_lo;
	size_t resumer_size;
};

// fiber_make maps a stack of bytes for a fiber that will run fn, and
// fiber_free unmaps it.  A fiber that is not done may be freed, too.
void fiber_make(struct fiber *f, size_t bytes, void (*fn)(struct fiber *),
		void *arg);
void fiber_free(struct fiber *f);

// fiber_resume runs a fiber, on any thread, until it yields or is done.
// fiber_yield is called by the fiber.
void fiber_resume(struct fiber *f);
void fiber_yield(struct fiber *f);

// fiber_desc describes the fiber's stack.
rt_stack_desc fiber_desc(struct fiber *f, unsigned flags);

#endif
