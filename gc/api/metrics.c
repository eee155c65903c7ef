// Statistics by name.
#include <rt/metrics.h>

#include "runtime/os/settings.h"
#include "runtime/os/sysmem.h"
#include "runtime/world/proc.h"
#include "gc/cycle/pacer.h"
#include "gc/stats/metrics.h"
#include "gc/host/door.h"

size_t rt_metrics_count(void)
{
	return metrics_count();
}

int rt_metrics_describe(size_t i, rt_metric_desc *d)
{
	if (!d)
		return RT_EINVAL;
	return metrics_describe(i, d) ? RT_OK : RT_ENOENT;
}

static void take_snapshot(struct metrics_snapshot *s)
{
	heapstats_read(&s->heap);
	gcstats_read_cycles(&s->cycles);
	s->stacks_sys = gauge_load(&gauges.stacks_sys);
	s->mspan_sys = gauge_load(&gauges.mspan_sys);
	s->mspan_inuse = gauge_load(&gauges.mspan_inuse);
	s->mcache_sys = gauge_load(&gauges.mcache_sys);
	s->mcache_inuse = gauge_load(&gauges.mcache_inuse);
	s->buckhash_sys = gauge_load(&gauges.buckhash_sys);
	s->gc_misc_sys = gauge_load(&gauges.gc_misc_sys);
	s->other_sys = gauge_load(&gauges.other_sys);
	s->mappings = gauge_load(&gauges.mappings);
	s->max_mappings = sysmem_max_mappings();
	s->heap_goal = atomic_u64_load_relaxed(&pacer.goal);
	s->heap_marked = atomic_u64_load_relaxed(&pacer.heap_marked);
	s->gc_percent = (int)(int64_t)atomic_u64_load_relaxed(&pacer.percent);
	s->memory_limit = (uint64_t)settings.memory_limit;
	s->max_procs = (uint64_t)settings.max_procs;
	s->nthreads = atomic_u32_load_relaxed(&procs.attached);
	for (unsigned i = 0; i < 2; i++) {
		s->stopping[i] = &gcstats.stopping[i];
		s->total[i] = &gcstats.total[i];
	}
}

int rt_metrics_read(rt_metric_sample *samples, size_t n)
{
	struct metrics_snapshot s;
	int error;

	if (!samples && n != 0)
		return RT_EINVAL;
	error = door_any();
	if (error)
		return error;
	take_snapshot(&s);
	metrics_fill(&s, samples, n);
	return RT_OK;
}
