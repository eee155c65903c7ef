// release.h - releases free pages before the memory limit is exceeded.
//
// Go: the scavenging for the memory limit in mheap.allocSpan (mheap.go).
//
// A thread that is about to allocate adds what it may map to what is mapped.
// If the sum is beyond the limit, free pages are released first, in steps
// between which the thread may poll.  When no free pages are left, no thread
// tries again until more is mapped, or a collection has freed pages.  While the
// limiter makes collections for the limit wait (limiter.h), releasing waits as
// well.
#ifndef GC_CYCLE_RELEASE_H
#define GC_CYCLE_RELEASE_H

#include "runtime/os/gauge.h"
#include "runtime/world/proc.h"
#include "gc/cycle/pacer.h"

// There is no check function: any number is possible.
struct release {
	// No release is tried while at most this many bytes are mapped, because
	// no page was left to release, or releasing was put off.
	atomic_u64 dry;
};

RT_GLOBAL struct release release;

// release_again makes the next test look for pages again.
RT_INLINE void release_again(void)
{
	atomic_u64_store_relaxed(&release.dry, 0);
}

// release_due tells whether pages are to be released before more bytes are
// mapped.
RT_INLINE bool release_due(uint64_t more)
{
	uint64_t mapped = gauge_load(&gauges.mapped_ready);

	return RT_UNLIKELY(mapped + more >
			   atomic_u64_load_relaxed(&pacer.limit)) &&
	       mapped > atomic_u64_load_relaxed(&release.dry);
}

// release_step releases some free pages.  The caller must be attached, outside
// a blocking region, with the world running, and must hold no lock.
void release_step(struct rt_proc *p);

// release_put_off makes release_due false until 1 MiB more is mapped, or
// release_again is called.  Any thread may call it.
void release_put_off(void);

#endif
