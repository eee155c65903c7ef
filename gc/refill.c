#include "gc/refill.h"

#include "runtime/mcentral.h"
#include "runtime/throw.h"

bool gcrefill_small(struct rt_mcache *mc, struct rt_proc *p, spanclass sc,
		    bool uninit)
{
	struct mspan *s;

	if (mcache_next_run(mc, sc, uninit))
		return true;
	mcache_retire_slot(mc, p, sc);
	s = mcentral_pop(sc);
	if (!s)
		s = mheap_alloc_small(p, &mc->heap, sc);
	if (!s)
		return false;
	RT_ASSERT(mspan_check(s) == NULL);
	mcache_set_span(mc, sc, s);
	return mcache_next_run(mc, sc, uninit);
}

RT_INLINE void count_large(struct rt_proc *p, const struct mspan *s)
{
	struct heapstats_delta *d;

	// After in_heap: a reader never finds more objects than heap.
	d = heapstats_acquire(p);
	heapstats_add(&d->large_alloc, s->elemsize);
	heapstats_add(&d->large_alloc_count, 1);
	heapstats_release(p);
	heapgauge_add(p, HEAPGAUGE_TOTAL_ALLOC, (int64_t)s->elemsize);
	atomic_u64_add_relaxed(&gauges.heap_live, s->elemsize);
}

struct mspan *gcrefill_large(struct rt_mcache *mc, struct rt_proc *p,
			     unsigned kind, size_t n)
{
	struct mspan *s = mheap_alloc_large(p, &mc->heap, kind, n);

	if (s)
		count_large(p, s);
	return s;
}

struct mspan *gcrefill_guarded(struct rt_mcache *mc, struct rt_proc *p,
			       unsigned kind, size_t n)
{
	struct mspan *s = mheap_alloc_guarded(p, &mc->heap, kind, n);

	if (s)
		count_large(p, s);
	return s;
}
