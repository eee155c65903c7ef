#include "gc/cycle.h"

#include "gc/checkmark.h"
#include "gc/mark.h"
#include "gc/pacer.h"
#include "gc/sweep.h"
#include "runtime/gcstats.h"
#include "runtime/mcentral.h"
#include "runtime/nanotime.h"
#include "runtime/schedpoint.h"
#include "runtime/stackalloc.h"
#include "runtime/throw.h"

enum cycle_kind {
	CYCLE_DUE,    // if heap_live says so
	CYCLE_NEEDED, // memory ran out
	CYCLE_FORCED, // the host asked
};

static bool past_end_rule;
static bool checkmark;

void gccycle_set_past_end(bool on)
{
	past_end_rule = on;
}

void gccycle_set_checkmark(bool on)
{
	checkmark = on;
}

// flip makes what is marked the allocated; every span is unswept after it.
static void flip(void)
{
	mcentral_reset();
	schedpoint(SCHED_CYCLE_FLIP);
	epoch_flip();
	gcsweep_begin();
}

// reset_live hands the pacer what was found.
static void reset_live(const struct gcmark_result *found)
{
	atomic_u64_store_relaxed(&gauges.heap_live, found->marked_bytes);
	gcpacer.found = (struct gcpacer_found){
	    .heap_marked = found->marked_bytes,
	    .stack_scan = found->scan_stack,
	    .globals_scan = found->scan_globals,
	};
	gcpacer_commit();
}

static void record(const struct gcmark_result *found, bool forced,
		   uint64_t cpu_begin)
{
	struct stw_begin begin = stw_begun();
	uint64_t now = nanotime();
	struct gcstats_cycle c = {
	    .forced = forced,
	    .now = now,
	    .unix_now = nanotime_unix(),
	    .pause = base_sub_sat(now, begin.asked),
	    .stopped = base_sub_sat(now, begin.finished),
	    .stopping_cpu = begin.stopping_cpu_ns,
	    .cpu_begin = cpu_begin,
	    .scan_heap = found->scan_heap,
	    .scan_stack = found->scan_stack,
	    .scan_globals = found->scan_globals,
	    .past_end_objects = found->past_end_objects,
	    .helped_objects = found->helped_objects,
	};

	gcstats_end_cycle(&c);
}

// give_back_pages ends the page caches of all Ps: who needs memory may need
// it in one piece.
static void give_back_pages(void)
{
	for (struct rt_proc *p = proc_first(); p; p = proc_next(p))
		if (mcache_of(p))
			mheap_cache_flush(&mcache_of(p)->heap);
}

// collect_stopped is the collection itself; world stopped.  True: helpers are
// wanted.
static bool collect_stopped(struct rt_proc *p, enum cycle_kind kind)
{
	uint64_t cpu = gcstats_cpu();
	struct gcmark_result found;

	if (kind == CYCLE_NEEDED)
		give_back_pages();
	gcsweep_all(p);
	mcache_flush_all(p);
	stackalloc_flush_all(p);
	found = gcmark_all(p, past_end_rule);
	if (RT_UNLIKELY(checkmark))
		gccheckmark_all(past_end_rule);
	reset_live(&found);
	flip();
	gcsweep_all(p);
	rt_lock(&mheap.lock);
	scavindex_next_cycle(&mheap.pages.scav);
	rt_unlock(&mheap.lock);
	record(&found, kind == CYCLE_FORCED, cpu);
	return found.want_helpers;
}

// stop_and_collect: all others are kept from stopping the world.
static bool stop_and_collect(struct rt_proc *p, enum cycle_kind kind)
{
	struct rt_stop_times times;
	bool want_helpers;

	stw_halt(p, RT_STOP_GC_MARK_TERM);
	// The frame that stw_exclude recorded is gone; this one outlasts
	// marking, and with it the registers that it or a caller has spilled.
	context_save(&p->context.frame);
	want_helpers = collect_stopped(p, kind);
	stw_run(p, &times);
	gcstats_record_stop(RT_STOP_GC_MARK_TERM, &times);
	return want_helpers;
}

static bool run(struct rt_proc *p, enum cycle_kind kind)
{
	bool want_helpers = false;

	stw_exclude(p);
	// Somebody else may have collected while we waited for our turn: then
	// the world need not stand.
	if (kind != CYCLE_DUE || gcpacer_due(gauge_load(&gauges.heap_live)))
		want_helpers = stop_and_collect(p, kind);
	stw_admit();
	return want_helpers;
}

bool gccycle_collect(struct rt_proc *p, bool forced)
{
	return run(p, forced ? CYCLE_FORCED : CYCLE_DUE);
}

bool gccycle_force(struct rt_proc *p)
{
	return run(p, CYCLE_NEEDED);
}
