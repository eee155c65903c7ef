// Summing the parts of gauges that Ps move.
#include "runtime/world/heapgauge.h"

#include <string.h>

#include "runtime/os/throw.h"
#include "runtime/os/gauge.h"

struct heapgauges heapgauges;

void heapgauge_reset(void)
{
	memset(&heapgauges, 0, sizeof heapgauges);
}

void heapgauge_enter(struct rt_proc *p)
{
	atomic_ptr *list = &heapgauges.counted;

	RT_ASSERT(!p->counted);
	p->counted = true;
	do
		p->next_counted = atomic_ptr_load_relaxed(list);
	// The list is read only in a stop, which orders the writes to it.
	while (!atomic_ptr_cas_relaxed(list, p->next_counted, p));
}

// collect moves the parts of p, whose thread must not move them meanwhile, to
// the shared ones.
static void collect(struct rt_proc *p)
{
	RT_ASSERT(p == proc_self() || p->stopper || !proc_is_running(p));
	for (unsigned i = 0; i < HEAPGAUGE_COUNT; i++) {
		atomic_u64_add_relaxed(&heapgauges.no_p[i],
				       atomic_u64_load_relaxed(&p->gauges[i]));
		atomic_u64_store_relaxed(&p->gauges[i], 0);
	}
	p->counted = false;
}

void heapgauge_read(uint64_t sums[HEAPGAUGE_COUNT])
{
	struct rt_proc *p = atomic_ptr_load_relaxed(&heapgauges.counted);
	uint64_t any = 0;

	atomic_ptr_store_relaxed(&heapgauges.counted, NULL);
	for (; p; p = p->next_counted)
		collect(p);
	for (unsigned i = 0; i < HEAPGAUGE_COUNT; i++)
		sums[i] = gauge_load(&heapgauges.no_p[i]);
	// Memory that growth maps counts as released from the beginning.
	sums[HEAPGAUGE_RELEASED] += gauge_load(&gauges.heap_mapped);
	for (unsigned i = 0; i < HEAPGAUGE_COUNT; i++)
		any |= sums[i];
	// One test for all: a negative number has the highest bit set.
	if (RT_UNLIKELY(any >> 63))
		throw_fatal("sysMemStat overflow");
}

uint64_t heapgauge_sum(enum heapgauge which)
{
	uint64_t sums[HEAPGAUGE_COUNT];

	heapgauge_read(sums);
	return sums[which];
}

const char *heapgauge_check(const struct heapgauges *h)
{
	uint64_t parts = 0;
	uint32_t n = 0;

	for (const struct rt_proc *p = atomic_ptr_load_relaxed(&h->counted); p;
	     p = p->next_counted) {
		if (!p->counted)
			return "P is in the list of gauges but not counted";
		if (n++ == procs.made)
			return "list of gauges has no end";
	}
	for (const struct rt_proc *p = proc_first(); p; p = proc_next(p))
		for (unsigned i = 0; i < HEAPGAUGE_COUNT && !p->counted; i++)
			parts |= atomic_u64_load_relaxed(&p->gauges[i]);
	if (parts != 0)
		return "P has a part of a gauge but is not in the list";
	return NULL;
}
