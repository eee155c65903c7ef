#include "runtime/heapgauge.h"

#include <string.h>

#include "runtime/throw.h"

static void add_parts(uint64_t *sums, const atomic_u64 *parts)
{
	for (unsigned i = 0; i < HEAPGAUGE_COUNT; i++)
		sums[i] += atomic_u64_load_relaxed(&parts[i]);
}

void heapgauge_read(uint64_t sums[HEAPGAUGE_COUNT])
{
	uint64_t any = 0;

	memset(sums, 0, HEAPGAUGE_COUNT * sizeof *sums);
	add_parts(sums, gauges.no_p);
	// What growth maps is released from the beginning.
	sums[HEAPGAUGE_RELEASED] += gauge_load(&gauges.heap_mapped);
	for (struct rt_proc *p = proc_first(); p; p = p->next)
		add_parts(sums, p->gauges);
	for (unsigned i = 0; i < HEAPGAUGE_COUNT; i++)
		any |= sums[i];
	// One test for all: a negative number has the highest bit set.
	if (RT_UNLIKELY(any >> 63))
		rt_throw("sysMemStat overflow");
}

uint64_t heapgauge_sum(enum heapgauge which)
{
	uint64_t sums[HEAPGAUGE_COUNT];

	heapgauge_read(sums);
	return sums[which];
}
