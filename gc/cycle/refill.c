#include "gc/cycle/refill.h"

#include "runtime/os/throw.h"
#include "runtime/spans/mcentral.h"

void *refill_small(struct rt_mcache *mc, struct rt_proc *p,
		   struct mcache_slot *slot, bool uninit)
{
	spanclass sc = slot->sc;
	struct mspan *s;
	void *obj;

	obj = mcache_take_freed(mc, slot, uninit);
	if (obj)
		return obj;
	mcache_retire_slot(mc, p, slot);
	s = mcentral_pop(sc);
	if (!s)
		s = mheap_alloc_small(p, &mc->heap, sc);
	if (!s) {
		// A flush will not come by a slot without a span.
		slot->run_log2 = MCACHE_RUN_FIRST;
		return NULL;
	}
	RT_CHECK(mspan_check(s));
	mcache_set_span(mc, slot, s);
	return mcache_next(mc, slot, uninit);
}

RT_INLINE void count_large(struct rt_proc *p, const struct mspan *s)
{
	struct heapstats_delta *d;

	// This is after in_heap, so a reader never finds more objects than
	// heap.
	d = heapstats_acquire(p);
	heapstats_add(&d->large_alloc, s->elemsize);
	heapstats_add(&d->large_alloc_count, 1);
	heapstats_release(p);
	heapgauge_add(p, HEAPGAUGE_TOTAL_ALLOC, (int64_t)s->elemsize);
	atomic_u64_add_relaxed(&gauges.heap_live, s->elemsize);
}

struct mspan *refill_large(struct rt_mcache *mc, struct rt_proc *p,
			   unsigned kind, size_t n)
{
	struct mspan *s = mheap_alloc_large(p, &mc->heap, kind, n);

	if (s)
		count_large(p, s);
	return s;
}

struct mspan *refill_guarded(struct rt_mcache *mc, struct rt_proc *p,
			     unsigned kind, size_t n)
{
	struct mspan *s = mheap_alloc_guarded(p, &mc->heap, kind, n);

	if (s)
		count_large(p, s);
	return s;
}
