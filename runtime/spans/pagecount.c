// Counts pages that become used, free or populated.
#include "runtime/spans/pagecount.h"

#include "runtime/os/gauge.h"
#include "runtime/os/sysmem.h"
#include "runtime/world/heapgauge.h"
#include "runtime/world/heapstats.h"

static atomic_u64 *use_field(struct heapstats_delta *d, unsigned use)
{
	return use == MSPAN_HEAP    ? &d->in_heap
	       : use == MSPAN_STACK ? &d->in_stacks
				    : &d->in_work_bufs;
}

void pagecount_alloc(struct rt_proc *p, enum mspan_use use, uint64_t npages,
		     uint64_t nscav)
{
	uint64_t bytes = npages << RT_PAGE_SHIFT;
	uint64_t scav = nscav << RT_PAGE_SHIFT;
	struct heapstats_delta *d;

	if (scav != 0) {
		sysmem_used(scav);
		heapgauge_add(p, HEAPGAUGE_RELEASED, -(int64_t)scav);
	}
	heapgauge_add(p, HEAPGAUGE_FREE, -(int64_t)(bytes - scav));
	if (use == MSPAN_HEAP) {
		heapgauge_add(p, HEAPGAUGE_IN_USE, (int64_t)bytes);
		heapgauge_add(p, HEAPGAUGE_PAGES_IN_USE, (int64_t)npages);
	} else if (use == MSPAN_STACK) {
		gauge_add(&gauges.stack_inuse, (int64_t)bytes);
	}
	d = heapstats_acquire(p);
	if (scav != 0) {
		heapstats_add(&d->committed, scav);
		heapstats_add(&d->released, -scav);
	}
	heapstats_add(use_field(d, use), bytes);
	heapstats_release(p);
}

void pagecount_free(struct rt_proc *p, enum mspan_use use, uint64_t npages)
{
	uint64_t bytes = npages << RT_PAGE_SHIFT;
	struct heapstats_delta *d;

	heapgauge_add(p, HEAPGAUGE_FREE, (int64_t)bytes);
	if (use == MSPAN_HEAP) {
		heapgauge_add(p, HEAPGAUGE_IN_USE, -(int64_t)bytes);
		heapgauge_add(p, HEAPGAUGE_PAGES_IN_USE, -(int64_t)npages);
	} else if (use == MSPAN_STACK) {
		gauge_add(&gauges.stack_inuse, -(int64_t)bytes);
	}
	d = heapstats_acquire(p);
	heapstats_add(use_field(d, use), -bytes);
	heapstats_release(p);
}

void pagecount_populated(struct rt_proc *p, uint64_t npages)
{
	uint64_t bytes = npages << RT_PAGE_SHIFT;
	struct heapstats_delta *d;

	sysmem_used(bytes);
	heapgauge_add(p, HEAPGAUGE_RELEASED, -(int64_t)bytes);
	heapgauge_add(p, HEAPGAUGE_FREE, (int64_t)bytes);
	d = heapstats_acquire(p);
	heapstats_add(&d->committed, bytes);
	heapstats_add(&d->released, -bytes);
	heapstats_release(p);
}
