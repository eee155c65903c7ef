// inside.h - a heap seen from inside: tests of spans, marking and the cycle
// call their functions as the public functions would, on the P of the only
// thread.
#ifndef TEST_HARNESS_INSIDE_H
#define TEST_HARNESS_INSIDE_H

#include <rt/rt.h>

#include "gc/cycle/refill.h"
#include "gc/cycle/swept.h"
#include "runtime/spans/mcentral.h"
#include "test/harness/heap.h"
#include "test/harness/stopped.h"

// The calling thread's, after inside_boot.
static struct rt_proc *self;
static struct rt_mcache *mc;

// inside_boot makes a heap that collects only when told to.
static inline void inside_boot(bool align8)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.align8 = align8;
	c.sweep = 0; // the test sweeps
	heap_start(c);
	self = proc_self();
	mc = rt_thread_tls->mc;
}

// inside_take allocates one object as rt_alloc_kind does.  It returns NULL if
// there is no memory.
static inline char *inside_take(spanclass sc)
{
	char *obj = mcache_take(mc, &mc->slots[sc], false);

	return obj ? obj : refill_small(mc, self, &mc->slots[sc], false);
}

static inline struct mspan *inside_span(const void *p)
{
	return arena_span(arena_offset((uintptr_t)p) >> RT_PAGE_SHIFT);
}

// inside_marked_bytes returns the bytes of the slots that survive a flip.
static inline uint64_t inside_marked_bytes(void)
{
	unsigned line = epoch_mark_line(epoch_sweepgen());
	uint64_t page = 0, bytes = 0;
	bool begun = stopped_begin();
	const struct mspan *s;

	while ((s = mheap_next_span(&page)) != NULL)
		if (s->use == MSPAN_HEAP)
			bytes += mspan_count(s, line) * s->elemsize;
	stopped_end(begun);
	return bytes;
}

// inside_flip_bits turns mark bits into alloc bits, in a stop.
static inline void inside_flip_bits(void)
{
	bool begun = stopped_begin();

	mcentral_reset();
	epoch_flip();
	swept_begin(false);
	stopped_end(begun);
}

// inside_flip does what the cycle does between marking and sweeping.
static inline void inside_flip(void)
{
	atomic_u64_store_relaxed(&gauges.heap_live, inside_marked_bytes());
	inside_flip_bits();
}

// inside_sweep_all sweeps to the end.
static inline void inside_sweep_all(void)
{
	bool begun = stopped_begin();

	sweep_all(self);
	stopped_end(begun);
}

// inside_partial returns the first span in the set of a class.
static inline struct mspan *inside_partial(spanclass sc)
{
	bool begun = stopped_begin();
	struct mspan *s = mcentral_top(sc);

	stopped_end(begun);
	return s;
}

#endif
