// cycle.c - one collection, step by step.
#include "gc/cycle/cycle.h"

#include "runtime/os/schedpoint.h"
#include "runtime/os/probe.h"
#include "runtime/os/throw.h"
#include "runtime/os/nanotime.h"
#include "runtime/os/settings.h"
#include "runtime/world/cyclering.h"
#include "runtime/world/heapgauge.h"
#include "runtime/world/gcstats.h"
#include "runtime/spans/mcentral.h"
#include "runtime/spans/stackalloc.h"
#include "gc/mark/crew.h"
#include "gc/mark/drops.h"
#include "gc/mark/mark.h"
#include "gc/mark/checkmark.h"
#include "gc/mark/tracecheck.h"
#include "gc/cycle/pacer.h"
#include "gc/cycle/release.h"
#include "gc/cycle/scavgoal.h"
#include "gc/cycle/swept.h"
#include "gc/cycle/cyclerecord.h"
#include "gc/cycle/gctrace.h"
#include "gc/cycle/dropnews.h"

// How long sweeping may take in a stop, in ns, unless all must be swept there.
#define SWEEP_STOP_NS (UINT64_C(250) * 1000)

// The collection of the present stop.  Only the thread that has the right to
// stop the world uses it: stop sets number before the stop.  There is no check
// function: any times and sums are possible.
static struct {
	uint64_t cpu; // CPU time of the process when it began, ns
	struct mark_result found;
	uint64_t number;
} cycle;

// 1 from the stop of a collection until its sweep has begun, otherwise 0.
// There is no check function: readers take any number but 0 for 1.
static atomic_u32 marking;

// any_asks tells whether one of the asks, if there are any, has the cause.
static bool any_asks(const struct ask *asked, enum ask_cause cause)
{
	for (; asked; asked = asked->next)
		if (asked->cause == cause)
			return true;
	return false;
}

// check_sets checks the sets of all span classes.
static const char *check_sets(void)
{
	const char *wrong = NULL;

	for (unsigned sc = 0; sc < SPANCLASS_COUNT && !wrong; sc++)
		wrong = mcentral_check((spanclass)sc);
	return wrong;
}

// sweeps_beside tells whether the threads sweep, after the stop.  A thread that
// found no memory gets it in the stop, so all of it must be free by then.
// rt_drop_now works on spans that are swept.
static bool sweeps_beside(const struct ask *asked)
{
	if (settings()->sweep == 0 || drops.now || any_asks(asked, ASK_MEMORY))
		return false;
	return settings()->sweep == 2 || swept_takes_ns() > SWEEP_STOP_NS;
}

// flip turns mark bits into alloc bits.  After it every span is unswept.
static void flip(bool beside)
{
	RT_ASSERT(stw_stopped());
	RT_CHECK(check_sets());
	mcentral_reset();
	schedpoint(SCHED_CYCLE_FLIP);
	epoch_flip();
	swept_begin(beside);
	// Pairs with the acquire in cycle_phase, which then finds the sweep.
	atomic_u32_store_release(&marking, 0);
}

// pace passes what was found to the pacer.  If the cycle sweeps in the stop,
// the pages that count as held are free now; otherwise the pacer learns of them
// at the end of the sweep.  The pages of work buffers count as free, because
// they soon will be.
static struct pacer_terms pace(bool forced, bool beside)
{
	const struct mark_result *found = &cycle.found;
	uint64_t free = heapgauge_sum(HEAPGAUGE_FREE) + work_held();
	struct pacer_found f = {
	    .heap_marked = found->marked_bytes,
	    .stack_scan = found->scan_stack,
	    .globals_scan = found->scan_globals,
	    .stack_inuse = gauge_load(&gauges.stack_inuse),
	    .held = found->marked_bytes + free,
	    .external = gauge_load(&gauges.external),
	    .memory =
		{
		    .mapped = gauge_load(&gauges.mapped_ready),
		    .free = free,
		    .alloc = heapgauge_sum(HEAPGAUGE_TOTAL_ALLOC) -
			     heapgauge_sum(HEAPGAUGE_TOTAL_FREE),
		    .in_use = heapgauge_sum(HEAPGAUGE_IN_USE) +
			      gauge_load(&gauges.stack_inuse),
		},
	    .forced = forced,
	    .unswept = beside,
	};

	return pacer_collected(&f);
}

// used returns what counts for the goal.
static uint64_t used(void)
{
	return pacer_used(gauge_load(&gauges.heap_live),
			  gauge_load(&gauges.stack_inuse),
			  gauge_load(&gauges.external));
}

// cause_of returns why a collection that answers these asks, or none, runs.
static enum rt_cause cause_of(const struct ask *asked)
{
	if (!asked)
		return RT_CAUSE_PERIODIC;
	switch (asked->cause) {
	case ASK_FORCED:
		return RT_CAUSE_FORCED;
	case ASK_MEMORY:
		return RT_CAUSE_MEMORY;
	case ASK_STRESS:
		return RT_CAUSE_STRESS;
	default:
		return pacer_for_limit(used()) ? RT_CAUSE_LIMIT : RT_CAUSE_GOAL;
	}
}

// note_retained completes what the scavenger has to know when all is swept.  It
// must come after pace, which has summed the free pages.  A sweep makes free
// pages of heap spans, and so does not change what is retained.
static void note_retained(struct scavgoal_found *f)
{
	f->free = pacer.found.memory.free;
	f->retained = heapgauge_sum(HEAPGAUGE_IN_USE) + f->free;
	f->live = cycle.found.marked_bytes;
	f->ended = cyclerecord_last();
	swept.retained = *f;
}

static void record(bool forced)
{
	const struct mark_result *found = &cycle.found;
	struct stw_begin begin = stw_begun();
	struct pacer_cpu cpu = {cycle.cpu, gcstats_cpu()};
	struct gcstats_cycle c = {
	    .forced = forced,
	    .now = cyclerecord_last(),
	    .unix_now = nanotime_unix(),
	    .pause = cyclerecord_pause(),
	    .stopped = base_sub_sat(cyclerecord_last(), begin.finished),
	    .stopping_cpu = begin.stopping_cpu_ns,
	    .cpu_begin = cpu.begin,
	    .cpu_end = cpu.end,
	    .scan_heap = found->scan_heap,
	    .scan_stack = found->scan_stack,
	    .scan_globals = found->scan_globals,
	    .past_end_objects = found->past_end_objects,
	    .helped_objects = found->helped_objects,
	};

	pacer_account(&cpu);
	gcstats_end_cycle(&c);
	cyclerecord_counted(&c);
}

// collect_stopped is the collection itself.  The world must be stopped.  It
// must not be inline: what it writes to its frame is no root, and would differ
// between marking and the check of marks.
static RT_NOINLINE void collect_stopped(struct rt_proc *p, bool forced,
					bool beside)
{
	struct scavgoal_found f;
	struct pacer_terms terms;

	RT_ASSERT(stw_stopped());
	RT_CHECK(heapgauge_check(&heapgauges));
	if (!swept_over())
		throw_fatal("collection finds the last one unswept");
	mcache_flush_all(p);
	stackalloc_flush_all(p);
	mcache_flush_pages_all();
	RT_CHECK(gauges_check(&gauges));
	cyclerecord_step(CYCLERECORD_PREPARE);
	cycle.found = mark_all(p);
	if (RT_UNLIKELY(settings()->checkmark != 0))
		checkmark_all();
	if (RT_UNLIKELY(settings()->tracecheck != 0))
		tracecheck_all();
	cyclerecord_step(CYCLERECORD_MARK);
	probe_gc_marked(cycle.number, cycle.found.marked_bytes);
	cyclerecord_found(&cycle.found);
	atomic_u64_store_relaxed(&gauges.heap_live, cycle.found.marked_bytes);
	f.in_use = heapgauge_sum(HEAPGAUGE_IN_USE);
	f.goal = atomic_u64_load_relaxed(&pacer.goal);
	flip(beside);
	if (!beside)
		sweep_all(p);
	cyclerecord_step(CYCLERECORD_SWEEP);
	if (!beside)
		probe_gc_swept(cycle.number, heapgauge_sum(HEAPGAUGE_IN_USE));
	if (gctrace_on())
		gctrace_note();
	terms = pace(forced, beside);
	cyclerecord_paced(&terms, f.in_use);
	note_retained(&f);
	if (!beside)
		swept_end_stopped();
	dropnews_collected();
}

// stop stops the world for the next collection.
static void stop(struct rt_proc *p)
{
	cycle.number = atomic_u64_load_relaxed(&cyclering.count) + 1;
	probe_gc_begin(cycle.number, used());
	stw_stop(p, RT_STOP_GC_MARK_TERM);
}

static void note_begin(const struct ask *asked, bool forced)
{
	enum rt_cause cause = cause_of(asked);
	struct stw_begin begin = stw_begun();

	atomic_u32_store_relaxed(&marking, 1);
	cycle.cpu = gcstats_cpu();
	gcstats_begin_cycle(begin.finished, begin.stopping_cpu_ns, cycle.cpu);
	cyclerecord_begin(cause, forced, used());
	probe_gc_stopped(cycle.number, cause);
}

enum cycle_phase cycle_phase(void)
{
	// Pairs with the release in flip.
	if (atomic_u32_load_acquire(&marking) != 0)
		return CYCLE_MARK;
	return swept_over() ? CYCLE_OFF : CYCLE_SWEEP;
}

struct ask *cycle_begin(struct rt_proc *p)
{
	struct ask *asked;
	bool forced;

	RT_ASSERT(p == proc_self());
	stw_acquire(p);
	stop(p);
	asked = ask_take();
	forced = any_asks(asked, ASK_FORCED);
	note_begin(asked, forced);
	// This frame outlasts marking, and with it the registers that it or a
	// caller has spilled.  stw_acquire saved a frame of its own while it
	// waited, and that frame is gone.
	context_save(&p->context.frame);
	collect_stopped(p, forced, sweeps_beside(asked));
	context_keep();
	// The caller looks for memory in this stop.
	if (any_asks(asked, ASK_MEMORY))
		work_release(p);
	return asked;
}

// let_others ends the right to stop the world, and then the lead.
static void let_others(struct ask *asked)
{
	stw_release();
	if (asked)
		ask_done(asked);
	else
		ask_pass();
}

// let_others_traced also writes the trace.  It must not be inline: only a
// collection that is traced needs the room for what the lines say.
static RT_NOINLINE void let_others_traced(struct rt_proc *p, struct ask *asked,
					  uint64_t number)
{
	struct gctrace_cycle traced;

	gctrace_take(&traced, number);
	let_others(asked);
	gctrace_write(p, &traced);
}

void cycle_begin_unasked(struct rt_proc *p)
{
	RT_ASSERT(p == proc_self());
	stop(p);
	note_begin(NULL, false);
	collect_stopped(p, false, sweeps_beside(NULL));
}

bool cycle_end(struct rt_proc *p, struct ask *asked)
{
	bool want_helpers = cycle.found.want_helpers;
	struct rt_stop_times times;
	uint64_t number;

	RT_ASSERT(p == proc_self() && p->stopper);
	cyclerecord_step(CYCLERECORD_FINISH);
	record(any_asks(asked, ASK_FORCED));
	swept_started(cyclerecord_last());
	stw_start(p, &times);
	// The next stop, perhaps that of an exact read, must find all figures
	// of this collection and none of its buffers.
	gcstats_record_stop(RT_STOP_GC_MARK_TERM, &times);
	schedpoint(SCHED_CYCLE_END);
	work_release(p);
	release_again();
	swept_buffers_freed();
	cyclerecord_step(CYCLERECORD_RELEASE);
	number = cyclerecord_publish();
	if (gctrace_on())
		let_others_traced(p, asked, number);
	else
		let_others(asked);
	return want_helpers;
}
