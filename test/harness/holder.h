// holder.h - a thread that keeps a word on its stack, in a blocking region.
//
// The test's thread may collect meanwhile.  struct holder, which may be on that
// thread's stack, has only the word's complement.
#ifndef TEST_HARNESS_HOLDER_H
#define TEST_HARNESS_HOLDER_H

#include "test/harness/await.h"
#include "test/harness/thread.h"

struct holder {
	pthread_t thread;
	uint64_t disguised; // the complement, which is no reference
	atomic_u32 holds, released;
};

static inline void *holder_main(void *arg)
{
	struct holder *h = arg;
	volatile uint64_t held;

	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	held = ~h->disguised;
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	atomic_u32_add_release(&h->holds, 1);
	await_at_least(&h->released, 1);
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	(void)held;
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	return NULL;
}

// holder_begin returns when the thread holds the word.
static inline void holder_begin(struct holder *h, uint64_t word)
{
	*h = (struct holder){.disguised = ~word};
	h->thread = start_thread(holder_main, h);
	await_at_least(&h->holds, 1);
}

static inline void holder_end(struct holder *h)
{
	atomic_u32_add_release(&h->released, 1);
	join_thread(h->thread);
}

#endif
