// Takes what was freed by hand, a span of a set, or a new one, and counts it.
#include "gc/cycle/refill.h"

#include "runtime/os/throw.h"
#include "runtime/spans/mcentral.h"
#include "runtime/spans/spoil.h"

void *refill_small(struct rt_mcache *mc, struct rt_proc *p,
		   struct mcache_slot *slot, bool uninit)
{
	spanclass sc = slot->sc;
	struct mspan *s;

	if (RT_UNLIKELY(mcache_has_freed(mc, slot))) {
		void *obj = mcache_take_freed(mc, slot, uninit);

		if (obj)
			return obj;
	}
	mcache_retire_slot(mc, p, slot);
	s = mcentral_pop(sc);
	if (!s)
		s = mheap_alloc_small(p, &mc->heap, sc);
	if (!s) {
		// A flush does nothing for a slot without a span.
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

struct mspan *refill_aligned(struct rt_mcache *mc, struct rt_proc *p,
			     unsigned kind, size_t n, size_t align)
{
	struct mspan *s = mheap_alloc_aligned(p, &mc->heap, kind, n, align);

	if (s)
		count_large(p, s);
	return s;
}

// count_gained counts bytes that a large object has gained.
static void count_gained(struct rt_proc *p, uint64_t bytes)
{
	struct heapstats_delta *d = heapstats_acquire(p);

	heapstats_add(&d->large_alloc, bytes);
	heapstats_release(p);
	heapgauge_add(p, HEAPGAUGE_TOTAL_ALLOC, (int64_t)bytes);
	atomic_u64_add_relaxed(&gauges.heap_live, bytes);
}

static void count_lost(struct rt_proc *p, uint64_t bytes)
{
	struct heapstats_delta *d = heapstats_acquire(p);

	heapstats_add(&d->large_free, bytes);
	heapstats_release(p);
	heapgauge_add(p, HEAPGAUGE_TOTAL_FREE, (int64_t)bytes);
	atomic_u64_add_relaxed(&gauges.heap_live, -bytes);
}

// As for whole objects, in_heap is raised before, and lowered after.
bool refill_resize(struct rt_proc *p, struct mspan *s, size_t n)
{
	uint64_t old = s->elemsize;
	uint64_t bytes = base_pages(n) << RT_PAGE_SHIFT;

	RT_ASSERT(p == proc_self());
	if (bytes < old) {
		count_lost(p, old - bytes);
		if (RT_UNLIKELY(spoil_on()))
			spoil_object((char *)s->base + bytes, old - bytes);
	}
	if (!mheap_resize_large(p, s, n))
		return false;
	if (bytes > old)
		count_gained(p, bytes - old);
	return true;
}
