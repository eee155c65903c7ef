// host.h - what hands, and the test's own thread, do as threads of a host.
//
// A test that is attached waits in a blocking region while its hands stop the
// world.
#ifndef TEST_ORDER_HOST_H
#define TEST_ORDER_HOST_H

#include "gc/host/slices.h"
#include "test/harness/heap.h"
#include "test/order/sched.h"

// The thread's registers and stack are no roots.
static inline void host_attach(void)
{
	must(rt_thread_attach(RT_THREAD_EXACT));
}

static inline void host_detach(void)
{
	must(rt_thread_detach());
}

static inline void host_block(void)
{
	must(rt_blocking_enter());
}

static inline void host_unblock(void)
{
	must(rt_blocking_leave());
}

// host_end ends the heap, for a caller that is blocked.
static inline void host_end(void)
{
	host_unblock();
	heap_healthy();
	must(rt_fini());
}

// The following are for hands.
static inline void host_collect(void)
{
	host_attach();
	must(rt_gc());
	host_detach();
}

static inline void host_verify(void)
{
	host_attach();
	heap_healthy();
	host_detach();
}

// host_sweep sweeps all that is left.
static inline void host_sweep(void)
{
	host_attach();
	slices_rest(rt_thread_tls);
	host_detach();
}

#endif
