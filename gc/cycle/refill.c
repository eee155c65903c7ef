// Takes what was freed by hand, a span of a set, or a new one, and counts it.
#include "gc/cycle/refill.h"

#include "runtime/os/throw.h"
#include "runtime/spans/mcentral.h"
#include "runtime/spans/spoil.h"
#include "gc/cycle/swept.h"

// is_sweeping is sweep_left, but faster if the sweep is over, as it is most of
// the time.
RT_INLINE bool is_sweeping(void)
{
	return RT_UNLIKELY(!swept_over()) && sweep_left();
}

// waits tells whether the heap would have to grow for npages pages while spans
// are left to sweep.  In a no-GC stretch it returns false: there the heap may
// grow, because stops wait for the thread.
static RT_NOINLINE bool waits(const struct rt_mcache *mc, uint64_t npages)
{
	return sweep_left() && mc->thread.nogc == 0 &&
	       !mheap_fits(&mc->heap, npages);
}

// pop_or_make sweeps a chunk and looks into a set again, and makes a span if
// there is still none.  A no-GC stretch keeps stops waiting, so there it sweeps
// only if no pages are free.  Returns NULL if the heap should not grow, or
// cannot.
static RT_NOINLINE struct mspan *pop_or_make(struct rt_mcache *mc,
					     struct rt_proc *p, spanclass sc)
{
	uint64_t npages = sizeclass_table[spanclass_size(sc)].npages;
	struct mspan *s = NULL;

	if (mc->thread.nogc == 0 || !mheap_fits(&mc->heap, npages)) {
		swept_slice(p);
		s = mcentral_pop(sc);
	}
	if (!s && !waits(mc, npages))
		s = mheap_alloc_small(p, &mc->heap, sc);
	return s;
}

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
		s = is_sweeping() ? pop_or_make(mc, p, sc)
				  : mheap_alloc_small(p, &mc->heap, sc);
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

	// The span's bytes are in in_heap by now, so no reader finds more bytes
	// in objects than in the heap.
	d = heapstats_acquire(p);
	heapstats_add(&d->large_alloc, s->elemsize);
	heapstats_add(&d->large_alloc_count, 1);
	heapstats_release(p);
	heapgauge_add(p, HEAPGAUGE_TOTAL_ALLOC, (int64_t)s->elemsize);
	atomic_u64_add_relaxed(&gauges.heap_live, s->elemsize);
}

// has_room returns true in a no-GC stretch.  It also returns true if npages
// pages are free and the sweep has freed as many.  Otherwise it sweeps a chunk,
// and returns false if more chunks are left: then the caller must not take
// pages yet.
static RT_NOINLINE bool has_room(const struct rt_mcache *mc, struct rt_proc *p,
				 uint64_t npages)
{
	if (mc->thread.nogc != 0 || (!waits(mc, npages) && swept_pay(npages)))
		return true;
	swept_slice(p);
	return !sweep_left();
}

RT_INLINE bool earned(const struct rt_mcache *mc, struct rt_proc *p,
		      uint64_t npages)
{
	return !is_sweeping() || has_room(mc, p, npages);
}

struct mspan *refill_large(struct rt_mcache *mc, struct rt_proc *p,
			   unsigned kind, size_t n)
{
	struct mspan *s = earned(mc, p, base_pages(n))
			      ? mheap_alloc_large(p, &mc->heap, kind, n)
			      : NULL;

	if (s)
		count_large(p, s);
	return s;
}

struct mspan *refill_guarded(struct rt_mcache *mc, struct rt_proc *p,
			     unsigned kind, size_t n)
{
	struct mspan *s = earned(mc, p, guard_pages(n))
			      ? mheap_alloc_guarded(p, &mc->heap, kind, n)
			      : NULL;

	if (s)
		count_large(p, s);
	return s;
}

struct mspan *refill_aligned(struct rt_mcache *mc, struct rt_proc *p,
			     unsigned kind, size_t n, size_t align)
{
	uint64_t npages = base_pages(n) + (align >> RT_PAGE_SHIFT) - 1;
	struct mspan *s =
	    earned(mc, p, npages)
		? mheap_alloc_aligned(p, &mc->heap, kind, n, align)
		: NULL;

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

// pay_growth counts the pages that a large object has gained as if they were
// those of a new object.  If the sweep has not freed as many, it sweeps one
// chunk, even in a no-GC stretch.  One is enough, because the pages behind the
// object were free.
static RT_NOINLINE void pay_growth(struct rt_proc *p, uint64_t npages)
{
	if (!swept_pay(npages))
		swept_slice(p);
}

// As for whole objects, in_heap is raised before the bytes of the object are,
// and lowered after them.
bool refill_resize(struct rt_proc *p, struct mspan *s, size_t n)
{
	uint64_t old = s->elemsize;
	uint64_t bytes = base_pages(n) << RT_PAGE_SHIFT;

	RT_ASSERT(p == proc_self());
	sweep_ensure(p, s);
	if (bytes < old) {
		count_lost(p, old - bytes);
		if (RT_UNLIKELY(spoil_on()))
			spoil_object((char *)s->base + bytes, old - bytes);
	}
	if (!mheap_resize_large(p, s, n))
		return false;
	if (bytes > old) {
		count_gained(p, bytes - old);
		if (is_sweeping())
			pay_growth(p, (bytes - old) >> RT_PAGE_SHIFT);
	}
	return true;
}
