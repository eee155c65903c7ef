// host.h - what hands, and the test's own thread, do as threads of a host.
//
// A test that is attached waits in a blocking region while its hands stop the
// world.
#ifndef TEST_ORDER_HOST_H
#define TEST_ORDER_HOST_H

#include "test/harness/heap.h"
#include "test/order/sched.h"

// The thread's registers and stack are no roots.
static inline void host_attach(void)
{
	ck_assert_int_eq(rt_thread_attach(RT_THREAD_EXACT), RT_OK);
}

static inline void host_detach(void)
{
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
}

static inline void host_block(void)
{
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
}

static inline void host_unblock(void)
{
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
}

// host_collect is for a hand.
static inline void host_collect(void)
{
	host_attach();
	ck_assert_int_eq(rt_gc(), RT_OK);
	host_detach();
}

#endif
