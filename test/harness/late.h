// late.h - a thread that a stop has to wait for.
#ifndef TEST_HARNESS_LATE_H
#define TEST_HARNESS_LATE_H

#include "runtime/world/proc.h"
#include "test/harness/await.h"
#include "test/harness/heap.h"

static struct {
	atomic_u32 running, id, end;
} late;

// poll_seldom polls only when a stop is wanted, and is then the last to stop.
static inline void *poll_seldom(void *arg)
{
	must(rt_thread_attach(0));
	atomic_u32_store_relaxed(&late.id, proc_self()->id);
	atomic_u32_store_release(&late.running, 1);
	while (!atomic_u32_load_acquire(&late.end)) {
		if (!proc_wanted(proc_self()))
			continue;
		sleep_ns(2000000);
		rt_safepoint();
	}
	must(rt_thread_detach());
	return arg;
}

#endif
