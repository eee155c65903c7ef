// swept.h - a heap that is swept beside its threads.
#ifndef TEST_WHOLE_SWEPT_H
#define TEST_WHOLE_SWEPT_H

#define RT_NO_INLINE_ALLOC
#include "gc/cycle/swept.h"
#include "gc/host/supply.h"
#include "test/harness/await.h"
#include "test/harness/mib.h"

static inline rt_config config(int mode, int threads)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.sweep = (uint8_t)mode;
	c.gcstress = 0; // only collections that a test asks for
	c.gc_threads = threads;
	return c;
}

static inline void collect_only(void)
{
	supply_collect(proc_self(), ASK_FORCED);
}

#endif
