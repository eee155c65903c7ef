// Taking a snapshot.
#include "gc/stats/snapshot.h"

#include "runtime/os/throw.h"
#include "runtime/os/settings.h"
#include "runtime/os/gauge.h"
#include "runtime/os/sysmem.h"
#include "runtime/pages/arena.h"
#include "gc/cycle/pacer.h"
#include "gc/cycle/gctrace.h"
#include "gc/cycle/cycle.h"

static void load_gauges(struct snapshot *s)
{
	// The bytes in use are loaded before the bytes mapped for them.
	// Otherwise a mapping that is made and used in between would make the
	// former larger.
	s->mspan_inuse = gauge_load(&gauges.mspan_inuse);
	s->mcache_inuse = gauge_load(&gauges.mcache_inuse);
	s->mspan_sys = gauge_load(&gauges.mspan_sys);
	s->mcache_sys = gauge_load(&gauges.mcache_sys);
	s->stacks_sys = gauge_load(&gauges.stacks_sys);
	s->buckhash_sys = gauge_load(&gauges.buckhash_sys);
	s->gc_misc_sys = gauge_load(&gauges.gc_misc_sys);
	s->other_sys = gauge_load(&gauges.other_sys);
	s->heap_live = gauge_load(&gauges.heap_live);
	s->heap_dead = gauge_load(&gauges.heap_dead);
	s->mapped_ready = gauge_load(&gauges.mapped_ready);
	s->mappings = gauge_load(&gauges.mappings);
	s->external = gauge_load(&gauges.external);
}

// load_common fills in what is loaded in the same way with the world stopped
// and live.
static void load_common(struct snapshot *s)
{
	uint64_t stacks = gauge_load(&gauges.stack_inuse);

	load_gauges(s);
	s->heap_used = pacer_used(s->heap_live, stacks, s->external);
	s->phase = cycle_phase();
	s->max_mappings = sysmem_max_mappings();
	s->heap_goal = atomic_u64_load_relaxed(&pacer.goal);
	s->heap_marked = atomic_u64_load_relaxed(&pacer.heap_marked);
	s->gc_percent = (int)(int64_t)atomic_u64_load_relaxed(&pacer.percent);
	s->max_procs = (uint64_t)settings()->max_procs;
	s->memory_limit = atomic_u64_load_relaxed(&pacer.limit);
	s->heap_max = atomic_u64_load_relaxed(&pacer.heap_max);
	if (s->heap_max == 0)
		s->heap_max = arena.reserved;
	s->nthreads = atomic_u32_load_relaxed(&procs.attached);
	s->trace_dropped = atomic_u64_load_relaxed(&gctrace.dropped);
	s->stopping = gcstats.stopping;
	s->total = gcstats.total;
}

void snapshot_stopped(struct snapshot *s, struct pausering_copy *pauses)
{
	if (!stw_stopped())
		throw_fatal("world not stopped");
	heapstats_unsafe_read(&s->heap);
	heapgauge_read(s->heapgauges);
	load_common(s);
	if (pauses)
		gcstats_read_stopped(&s->cycles, pauses);
	else
		gcstats_read_cycles(&s->cycles);
}

void snapshot_live(struct snapshot *s, struct pausering_copy *pauses)
{
	const struct heapstats_totals *h = &s->heap;

	heapstats_read(&s->heap);
	RT_CHECK(heapstats_totals_check(h));
	s->heapgauges[HEAPGAUGE_IN_USE] = h->in_heap;
	s->heapgauges[HEAPGAUGE_FREE] = heapstats_retained(h) - h->in_heap;
	s->heapgauges[HEAPGAUGE_RELEASED] = h->released;
	load_common(s);
	if (pauses)
		gcstats_read(&s->cycles, pauses);
	else
		gcstats_read_cycles(&s->cycles);
}

void snapshot_metrics(struct snapshot *s)
{
	snapshot_live(s, NULL);
	s->sweep = gcstats_read_swept();
	gcstats_read_cpu(&s->cpu);
}

uint64_t snapshot_beside_heap(const struct snapshot *s)
{
	return s->stacks_sys + s->mspan_sys + s->mcache_sys + s->buckhash_sys +
	       s->gc_misc_sys + s->other_sys;
}

uint64_t snapshot_sys(const struct snapshot *s)
{
	return s->heapgauges[HEAPGAUGE_IN_USE] + s->heapgauges[HEAPGAUGE_FREE] +
	       s->heapgauges[HEAPGAUGE_RELEASED] + s->heap.in_stacks +
	       s->heap.in_work_bufs + s->heap.in_ptr_scalar_bits +
	       snapshot_beside_heap(s);
}
