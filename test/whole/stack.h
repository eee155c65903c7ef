// stack.h - what tests of stacks that threads run on share.
#ifndef TEST_WHOLE_STACK_H
#define TEST_WHOLE_STACK_H

#include "test/harness/await.h"
#include "test/harness/fiber.h"
#include "test/harness/heap.h"
#include "test/harness/thread.h"
#include "test/harness/warned.h"

enum { STACK = 64 << 10 };

static inline rt_config checked(void)
{
	rt_config c = warned_config();

	c.checkmark = 1;
	c.past_end = 0;
	return c;
}

static inline void begin_exact(void)
{
	heap_start_exact(checked());
}

static inline rt_stack *fiber_register(struct fiber *f, unsigned flags)
{
	rt_stack_desc d = fiber_desc(f, flags);
	rt_stack *s = heap_stack(&d);

	ck_assert_ptr_nonnull(s);
	return s;
}

#endif
