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
#include "gc/cycle/sweep.h"

// The collection of the present stop.  Only the stopper uses it.  No check: any
// times and sums are possible.
static struct {
	uint64_t cpu; // CPU time of the process when it began, ns
	struct mark_result found;
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
	RT_CHECK(check_sets());
	mcentral_reset();
	schedpoint(SCHED_CYCLE_FLIP);
	epoch_flip();
	sweep_begin();
}

static bool any_asks(const struct ask *asked, enum ask_cause cause)
{
	while (asked && asked->cause != cause)
		asked = asked->next;
	return asked != NULL;
}

// pace passes what was found to the pacer.  It must come after sweeping, which
// frees the pages that count as held.  Those of work buffers are soon free.
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
	struct pacer_cpu cpu = {cycle.cpu, gcstats_cpu()};

	pacer_collected(&f, &cpu);
}

static void record(bool forced)
{
	const struct mark_result *found = &cycle.found;
	struct stw_begin begin = stw_begun();
	uint64_t now = nanotime();
	struct gcstats_cycle c = {
	    .forced = forced,
	    .now = now,
	    .unix_now = nanotime_unix(),
	    .pause = base_sub_sat(now, begin.asked),
	    .stopped = base_sub_sat(now, begin.finished),
	    .stopping_cpu = begin.stopping_cpu_ns,
	    .cpu_begin = cycle.cpu,
	    .scan_heap = found->scan_heap,
	    .scan_stack = found->scan_stack,
	    .scan_globals = found->scan_globals,
	    .past_end_objects = found->past_end_objects,
	    .helped_objects = found->helped_objects,
	};

	gcstats_end_cycle(&c);
}

// collect_stopped is the collection itself.  The world must be stopped.  It
// must not be inline: what it writes to its frame is no root, and would differ
// between marking and the check of marks.
static RT_NOINLINE void collect_stopped(struct rt_proc *p, bool forced)
{
	RT_ASSERT(stw_stopped());
	RT_CHECK(heapgauge_check(&heapgauges));
	cycle.cpu = gcstats_cpu();
	sweep_all(p);
	mcache_flush_all(p);
	stackalloc_flush_all(p);
	mcache_flush_pages_all();
	RT_CHECK(gauges_check(&gauges));
	cycle.found = mark_all(p, settings.past_end != 0);
	if (RT_UNLIKELY(settings.checkmark != 0))
		checkmark_all(settings.past_end != 0);
	if (RT_UNLIKELY(settings.tracecheck != 0))
		tracecheck_all();
	atomic_u64_store_relaxed(&gauges.heap_live, cycle.found.marked_bytes);
	flip();
	sweep_all(p);
	pace(forced);
	mutex_lock(&mheap.lock);
	scavindex_next_cycle(&mheap.pages.scav);
	mutex_unlock(&mheap.lock);
}

// choose_huge_pages calls helpers if huge pages are wanted.  It must come after
// the work buffers were freed, whose pages would count as full of live objects.
static void choose_huge_pages(void)
{
	if (mheap_choose_huge_pages() && crew_size() != 0)
		crew_call(CREW_ADVISE);
}

struct ask *cycle_begin(struct rt_proc *p)
{
	struct ask *asked;

	stw_acquire(p);
	stw_stop(p, RT_STOP_GC_MARK_TERM);
	asked = ask_take();
	// This frame outlasts marking, and with it the registers that it or a
	// caller has spilled.  stw_acquire saved a frame of its own while it
	// waited, and that frame is gone.
	context_save(&p->context.frame);
	collect_stopped(p, any_asks(asked, ASK_FORCED));
	context_keep();
	// The caller looks for memory in this stop.
	if (any_asks(asked, ASK_MEMORY))
		work_release(p);
	return asked;
}

bool cycle_end(struct rt_proc *p, struct ask *asked)
{
	bool want_helpers = cycle.found.want_helpers;
	struct rt_stop_times times;

	record(any_asks(asked, ASK_FORCED));
	stw_start(p, &times);
	// The next stop, perhaps that of an exact read, must find all figures
	// of this collection and none of its buffers.
	gcstats_record_stop(RT_STOP_GC_MARK_TERM, &times);
	schedpoint(SCHED_CYCLE_END);
	work_release(p);
	release_again();
	choose_huge_pages();
	stw_release();
	ask_done(asked);
	return want_helpers;
}
