// cyclerecord.c - the record of the collection under way.
#include "gc/cycle/cyclerecord.h"

#include "runtime/os/schedpoint.h"
#include "runtime/os/probe.h"
#include "runtime/os/nanotime.h"
#include "runtime/os/settings.h"
#include "runtime/os/gauge.h"
#include "runtime/world/cyclering.h"
#include "runtime/world/heapgauge.h"

// Below this, marking takes about as long as reading the clocks of CPU time.
enum { CLOCKED_HEAP = 1 << 20 };

// Only the thread that collects uses this.  There is no check function: clocks
// may show any time, and the rest is copied from figures that have checks.
static struct {
	rt_cycle c;
	bool clocked;	   // CPU clocks are read
	uint64_t last;	   // nanotime when the last step ended
	uint64_t last_cpu; // CPU time of this thread by then; 0: not known
	uint64_t wall[CYCLERECORD_STEPS];
	uint64_t cpu[CYCLERECORD_STEPS];
	uint64_t total_alloc; // when the previous collection ended
	uint64_t process_cpu; // of the process by then, ns; 0: not known
} noted;

void cyclerecord_reset(void)
{
	noted.total_alloc = noted.process_cpu = 0;
}

// live returns the bytes that count as allocated.  The gauge may be below zero
// for a while, which counts as 0.
static uint64_t live(void)
{
	int64_t n = (int64_t)gauge_load(&gauges.heap_live);

	return n > 0 ? (uint64_t)n : 0;
}

void cyclerecord_begin(enum rt_cause cause, bool forced, uint64_t used)
{
	const struct stw_begin begin = stw_begun();

	RT_ASSERT(stw_stopped());
	noted.last = begin.finished;
	noted.c = (rt_cycle){
	    .struct_size = sizeof noted.c,
	    .cause = cause,
	    .forced = forced,
	    .start_ns = gcstats_age(begin.asked),
	    .stopping_ns = begin.finished - begin.asked,
	    .stopping_cpu_ns = begin.stopping_cpu_ns,
	    .heap_start = live(),
	    .used = used,
	    .goal = atomic_u64_load_relaxed(&pacer.goal),
	    .max_procs = (uint32_t)settings()->max_procs,
	    .reason = (uint32_t)stw_reason(),
	    .nthreads = world.nthreads,
	    .slowest = world.slowest,
	};
	noted.clocked = noted.c.heap_start >= CLOCKED_HEAP;
}

// note_cpu notes the CPU time of marking or sweeping.
static void note_cpu(enum cyclerecord_step step)
{
	uint64_t now;

	if (!noted.clocked) {
		noted.cpu[step] = noted.wall[step];
		return;
	}
	now = oscall_thread_cpu(0);
	noted.cpu[step] = base_elapsed(noted.last_cpu, now);
	noted.last_cpu = now;
}

void cyclerecord_step(enum cyclerecord_step step)
{
	uint64_t now = base_max(nanotime(), noted.last);

	noted.wall[step] = base_elapsed(noted.last, now);
	noted.last = now;
	if (step == CYCLERECORD_PREPARE) {
		noted.c.heap_flushed = live();
		noted.last_cpu = noted.clocked ? oscall_thread_cpu(0) : 0;
	} else if (step <= CYCLERECORD_SWEEP) {
		note_cpu(step);
	}
}

uint64_t cyclerecord_pause(void)
{
	return noted.c.stopping_ns + noted.wall[CYCLERECORD_PREPARE] +
	       noted.wall[CYCLERECORD_MARK] + noted.wall[CYCLERECORD_SWEEP] +
	       noted.wall[CYCLERECORD_FINISH];
}

uint64_t cyclerecord_last(void)
{
	return noted.last;
}

void cyclerecord_found(const struct mark_result *found)
{
	RT_ASSERT(stw_stopped());
	noted.c.heap_live = found->marked_bytes;
	noted.c.scan_heap = found->scan_heap;
	noted.c.scan_stack = found->scan_stack;
	noted.c.scan_globals = found->scan_globals;
	noted.c.marked_objects = found->marked_objects;
	noted.c.helped_objects = found->helped_objects;
	noted.c.markers = found->markers;
	noted.c.mark_cpu_ns = found->helped_cpu_ns;
}

void cyclerecord_paced(const struct pacer_terms *t, uint64_t in_use)
{
	uint64_t total = heapgauge_sum(HEAPGAUGE_TOTAL_ALLOC);

	RT_ASSERT(stw_stopped());
	noted.c.allocated = total - noted.total_alloc;
	noted.total_alloc = total;
	noted.c.sweep_inuse = in_use;
	noted.c.sweep_freed = in_use - heapgauge_sum(HEAPGAUGE_IN_USE);
	noted.c.sweep_beside = pacer.found.unswept;
	noted.c.goal_percent = t->percent;
	noted.c.goal_headroom = t->headroom;
	noted.c.goal_minimum = t->minimum;
	noted.c.goal_before = t->before;
	noted.c.goal_limit = t->limit;
	noted.c.goal_bound = pacer_bound(t);
}

// note_accounts adds the CPU time that the process has used since the previous
// record, and the state of the limiter.  cpu is the CPU time of the process at
// the end of the stop.
static void note_accounts(uint64_t cpu)
{
	const struct limiter *l = &pacer.limiter;

	noted.c.interval_cpu_ns = base_sub_sat(cpu, noted.process_cpu);
	// A clock that is refused reads 0.
	noted.process_cpu = base_max(noted.process_cpu, cpu);
	noted.c.limiter_fill_ns = l->fill;
	noted.c.limiter_capacity_ns = l->capacity;
	noted.c.limiter_percent = (uint32_t)l->percent;
	noted.c.limiter_limiting = l->limiting;
}

void cyclerecord_counted(const struct gcstats_cycle *c)
{
	struct gcstats_cycles all;
	uint64_t sums[HEAPGAUGE_COUNT];
	struct gcstats_sweep sweep = gcstats_take_swept();

	RT_ASSERT(stw_stopped());
	gcstats_read_cycles(&all);
	noted.c.number = all.num_gc;
	noted.c.gc_cpu_fraction = gcstats_fraction(&all);
	noted.c.end = c->unix_now;
	noted.c.pause_ns = c->pause;
	noted.c.process_cpu_ns = base_elapsed(c->cpu_begin, c->cpu_end);
	note_accounts(c->cpu_end);
	noted.c.next_goal = atomic_u64_load_relaxed(&pacer.goal);
	heapgauge_read(sums);
	noted.c.heap_inuse = sums[HEAPGAUGE_IN_USE];
	noted.c.heap_released = sums[HEAPGAUGE_RELEASED];
	noted.c.heap_idle = sums[HEAPGAUGE_RELEASED] + sums[HEAPGAUGE_FREE];
	noted.c.scavenged_background =
	    gcstats_take_released(GCSTATS_BACKGROUND);
	noted.c.scavenged_assist = gcstats_take_released(GCSTATS_ASSIST);
	noted.c.scavenged_forced = gcstats_take_forced();
	noted.c.swept_ns = sweep.wall;
	noted.c.swept_background_cpu_ns = sweep.cpu[GCSTATS_BACKGROUND];
	noted.c.swept_assist_cpu_ns = sweep.cpu[GCSTATS_ASSIST];
}

uint64_t cyclerecord_publish(void)
{
	rt_cycle *c = &noted.c;

	c->prepare_ns = noted.wall[CYCLERECORD_PREPARE];
	c->mark_ns = noted.wall[CYCLERECORD_MARK];
	c->sweep_ns = noted.wall[CYCLERECORD_SWEEP];
	c->finish_ns = noted.wall[CYCLERECORD_FINISH];
	c->release_ns = noted.wall[CYCLERECORD_RELEASE];
	c->mark_cpu_ns += noted.cpu[CYCLERECORD_MARK];
	c->sweep_cpu_ns = noted.cpu[CYCLERECORD_SWEEP];
	schedpoint(SCHED_CYCLERECORD_PUBLISH);
	cyclering_add(&cyclering, c);
	probe_gc_end(c->number, c->cause, c->pause_ns, c->heap_live,
		     c->next_goal);
	return c->number;
}
