#include "gc/host/lifetime.h"

#include "gc/host/attach.h"
#include "gc/cycle/cycle.h"
#include "gc/host/door.h"
#include "gc/host/atfork.h"
#include "gc/host/supply.h"
#include "gc/stats/mstats.h"
#include "gc/cycle/pacer.h"
#include "gc/mark/roots.h"
#include "gc/cycle/sweep.h"
#include "gc/cycle/worker.h"
#include "runtime/world/gcstats.h"
#include "runtime/spans/mcentral.h"
#include "runtime/os/persistent.h"
#include "runtime/os/poison.h"
#include "runtime/os/settings.h"
#include "runtime/spans/stackalloc.h"
#include "runtime/world/stw.h"

// state_reset makes everything that is not memory as it was at the beginning
// of the process.
static void state_reset(void)
{
	proc_reset();
	mcentral_reset();
	stackalloc_reset();
	heapstats_unsafe_clear();
	gcstats_reset();
	gauge_reset();
	atomic_u32_store_relaxed(&epoch.sweepgen, 2);
}

// memory_init makes an empty heap; false: refused, and nothing is left.
static bool memory_init(const rt_config *c)
{
	sysmem_init();
	if (!arena_init(c->max_heap))
		return false;
	// Spans of a page each and bitmaps for objects of 8 bytes everywhere
	// would need a twentieth.
	persistent_init(arena.reserved / 16);
	arena.align8 = c->align8 != 0;
	arena.huge_pages = c->huge_pages != 0;
	guard_init(c->guard_large != 0 || c->guard_small != 0);
	// What is populated ahead must not be forbidden.
	if (!mheap_init(c->populate != 0 && !guard_on)) {
		arena_fini();
		return false;
	}
	return true;
}

// heap_fini leaves nothing that leads to memory that is gone: a fork walks the
// list of Ps also when there is no heap.
static void heap_fini(void)
{
	roots_fini();
	mcache_fini();
	mheap_fini();
	arena_fini();
	persistent_fini();
	state_reset();
}

static void pacer_init(const rt_config *c)
{
	pacer = (struct pacer){
	    .rule =
		{
		    .percent = c->gc_percent,
		    .heap_min = c->heap_min,
		    .headroom = c->heap_headroom,
		},
	};
	pacer_commit();
}

int lifetime_begin(const rt_config *c)
{
	int error = RT_OK;

	state_reset();
	if (!atfork_init() || !attach_init() || !memory_init(c))
		return RT_ENOMEM;
	settings = *c;
	supply_reset();
	mcache_set_calls_only(c->gcstress != 0 || c->poison != 0 ||
			      c->guard_small != 0);
	poison_init(c->poison != 0);
	sweep_set_clobber(c->clobberfree != 0);
	mstats_set_double_check(c->double_check);
	cycle_set_past_end(c->past_end != 0);
	cycle_set_checkmark(c->checkmark != 0);
	worker_init((uint32_t)base_min((size_t)c->gc_threads,
				       (size_t)c->max_procs - 1));
	pacer_init(c);
	proc_init((uint32_t)c->max_procs);
	gcstats_init((uint32_t)c->max_procs);
	if (!c->no_attach)
		error = attach_thread(0, 0, 0);
	if (error)
		heap_fini();
	else
		atomic_u32_store_release(&door.ready, 1);
	return error;
}

void lifetime_end(void)
{
	atomic_u32_store_release(&door.ready, 0);
	attach_undo();
	worker_fini();
	heap_fini();
}
