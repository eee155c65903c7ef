// cycle.c - one collection, step by step.
#include "gc/cycle/cycle.h"

#include "runtime/os/schedpoint.h"
#include "runtime/os/throw.h"
#include "runtime/os/nanotime.h"
#include "runtime/os/settings.h"
#include "runtime/world/heapgauge.h"
#include "runtime/world/gcstats.h"
#include "runtime/spans/mcentral.h"
#include "runtime/spans/stackalloc.h"
#include "gc/mark/crew.h"
#include "gc/mark/mark.h"
#include "gc/mark/checkmark.h"
#include "gc/mark/tracecheck.h"
#include "gc/cycle/pacer.h"
#include "gc/cycle/release.h"
#include "gc/cycle/scavgoal.h"
#include "gc/cycle/sweep.h"
#include "gc/cycle/cyclerecord.h"
#include "gc/cycle/gctrace.h"
#include "gc/cycle/dropnews.h"

// The collection of the present stop.  Only the stopper uses it.  No check: any
// times and sums are possible.
static struct {
	uint64_t cpu; // CPU time of the process when it began, ns
	struct mark_result found;
	uint64_t in_use; // bytes in heap spans when marking ended
} cycle;

// check_sets checks the sets of all span classes.
static const char *check_sets(void)
{
	const char *wrong = NULL;

	for (unsigned sc = 0; sc < SPANCLASS_COUNT && !wrong; sc++)
		wrong = mcentral_check((spanclass)sc);
	return wrong;
}

// flip turns mark bits into alloc bits.  After it every span is unswept.
static void flip(void)
{
	RT_ASSERT(stw_stopped());
	RT_CHECK(check_sets());
	mcentral_reset();
	schedpoint(SCHED_CYCLE_FLIP);
	epoch_flip();
	sweep_begin();
}

// any_asks tells whether one of the asks, if there are any, has the cause.
static bool any_asks(const struct ask *asked, enum ask_cause cause)
{
	for (; asked; asked = asked->next)
		if (asked->cause == cause)
			return true;
	return false;
}

// pace passes what was found to the pacer.  It must come after sweeping, which
// frees the pages that count as held.  The pages of work buffers count as free,
// because they soon will be.
static void pace(bool forced)
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
		},
	    .forced = forced,
	};

	pacer_collected(&f);
}

// cause_of returns why a collection that answers these asks, or none, runs.
static enum rt_cause cause_of(const struct ask *asked)
{
	uint64_t used = pacer_used(gauge_load(&gauges.heap_live),
				   gauge_load(&gauges.stack_inuse),
				   gauge_load(&gauges.external));

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
		return pacer_for_limit(used) ? RT_CAUSE_LIMIT : RT_CAUSE_GOAL;
	}
}

// note_retained passes to the scavenger what it has to know.  It must come
// after pace, which has summed the free pages.
static void note_retained(uint64_t goal)
{
	uint64_t free = pacer.found.memory.free;
	struct scavgoal_found f = {
	    .in_use = cycle.in_use,
	    .goal = goal,
	    .retained = heapgauge_sum(HEAPGAUGE_IN_USE) + free,
	    .free = free,
	    .live = cycle.found.marked_bytes,
	    .ended = cyclerecord_last(),
	};

	scavgoal_note(&f);
	// What the sweep has freed was not freed by hand.
	mheap_await_freed(SCAVGOAL_LEAST);
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
static RT_NOINLINE void collect_stopped(struct rt_proc *p, bool forced)
{
	uint64_t goal;

	RT_ASSERT(stw_stopped());
	RT_CHECK(heapgauge_check(&heapgauges));
	sweep_all(p);
	mcache_flush_all(p);
	stackalloc_flush_all(p);
	mcache_flush_pages_all();
	RT_CHECK(gauges_check(&gauges));
	cyclerecord_step(CYCLERECORD_PREPARE);
	cycle.found = mark_all(p);
	if (RT_UNLIKELY(settings.checkmark != 0))
		checkmark_all();
	if (RT_UNLIKELY(settings.tracecheck != 0))
		tracecheck_all();
	cyclerecord_step(CYCLERECORD_MARK);
	cyclerecord_found(&cycle.found);
	atomic_u64_store_relaxed(&gauges.heap_live, cycle.found.marked_bytes);
	cycle.in_use = heapgauge_sum(HEAPGAUGE_IN_USE);
	goal = atomic_u64_load_relaxed(&pacer.goal);
	flip();
	sweep_all(p);
	cyclerecord_step(CYCLERECORD_SWEEP);
	pace(forced);
	note_retained(goal);
	mutex_lock(&mheap.lock);
	scavindex_next_cycle(&mheap.pages.scav);
	mutex_unlock(&mheap.lock);
	dropnews_collected();
}

// choose_huge_pages calls helpers if huge pages are wanted.  It must come after
// the work buffers were freed, because their pages would count as full of live
// objects.
static void choose_huge_pages(void)
{
	if (mheap_choose_huge_pages() && crew_size() != 0)
		crew_call(CREW_ADVISE);
}

static void note_begin(const struct ask *asked, bool forced)
{
	cycle.cpu = gcstats_cpu();
	cyclerecord_begin(cause_of(asked), forced);
}

struct ask *cycle_begin(struct rt_proc *p)
{
	struct ask *asked;
	bool forced;

	RT_ASSERT(p == proc_self());
	stw_acquire(p);
	stw_stop(p, RT_STOP_GC_MARK_TERM);
	asked = ask_take();
	forced = any_asks(asked, ASK_FORCED);
	note_begin(asked, forced);
	// This frame outlasts marking, and with it the registers that it or a
	// caller has spilled.  stw_acquire saved a frame of its own while it
	// waited, and that frame is gone.
	context_save(&p->context.frame);
	collect_stopped(p, forced);
	context_keep();
	// The caller looks for memory in this stop.
	if (any_asks(asked, ASK_MEMORY))
		work_release(p);
	return asked;
}

void cycle_begin_unasked(struct rt_proc *p)
{
	RT_ASSERT(p == proc_self());
	stw_stop(p, RT_STOP_GC_MARK_TERM);
	note_begin(NULL, false);
	collect_stopped(p, false);
}

bool cycle_end(struct rt_proc *p, struct ask *asked)
{
	bool want_helpers = cycle.found.want_helpers;
	struct rt_stop_times times;
	uint64_t number;

	RT_ASSERT(p == proc_self() && p->stopper);
	cyclerecord_step(CYCLERECORD_FINISH);
	record(any_asks(asked, ASK_FORCED));
	stw_start(p, &times);
	// The next stop, perhaps that of an exact read, must find all figures
	// of this collection and none of its buffers.
	gcstats_record_stop(RT_STOP_GC_MARK_TERM, &times);
	schedpoint(SCHED_CYCLE_END);
	work_release(p);
	release_again();
	choose_huge_pages();
	cyclerecord_step(CYCLERECORD_RELEASE);
	number = cyclerecord_publish();
	stw_release();
	if (asked)
		ask_done(asked);
	else
		ask_pass();
	if (gctrace_on())
		gctrace_cycle(p, number);
	return want_helpers;
}
