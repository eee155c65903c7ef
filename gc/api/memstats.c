// The doors to all statistics.
#include <rt/memstats.h>
#include <rt/metrics.h>
#include <string.h>

#include "gc/host/door.h"
#include "gc/stats/metrics.h"
#include "gc/stats/mstats.h"
#include "gc/cycle/pacer.h"
#include "gc/host/visit.h"

int rt_read_memstats(rt_memstats *m)
{
	struct world_visit v;
	struct text report;
	int error;

	if (!m)
		return RT_EINVAL;
	error = door_any();
	if (error)
		return error;
	// Before the stop: a fault inside it could not be survived.  A result
	// of our own would not fit on the smallest stacks.
	memset(m, 0, sizeof *m);
	v = world_enter(RT_STOP_READ_MEMSTATS);
	mstats_read(v.p, m, (int)atomic_u32_load_relaxed(&door.double_check),
		    &report);
	world_report(&report);
	world_leave(&v);
	return RT_OK;
}

int rt_read_memstats_live(rt_memstats *m)
{
	int error;

	if (!m)
		return RT_EINVAL;
	error = door_any();
	if (error)
		return error;
	mstats_read_live(m);
	return RT_OK;
}

int rt_read_gcstats(uint64_t *buf, size_t nwords, size_t *used)
{
	int error;

	if (!buf || !used || nwords < RT_GCSTATS_WORDS)
		return RT_EINVAL;
	error = door_any();
	if (error)
		return error;
	*used = mstats_read_gc(buf);
	return RT_OK;
}

int rt_set_memstats_double_check(int mode)
{
	int error;

	if (mode < RT_CHECK_OFF || mode > RT_CHECK_REPORT)
		return RT_EINVAL;
	error = door_any();
	if (error)
		return error;
	if (door_stopper())
		return RT_EBUSY;
	atomic_u32_store_relaxed(&door.double_check, (uint32_t)mode);
	return RT_OK;
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
	s->memory_limit = (uint64_t)door.config.memory_limit;
	s->max_procs = (uint64_t)door.config.max_procs;
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
