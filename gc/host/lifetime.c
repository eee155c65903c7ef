// lifetime.c - makes and ends a heap, module by module.
#include "gc/host/lifetime.h"

#include "runtime/os/oscall.h"
#include "runtime/os/throw.h"
#include "runtime/os/cgroup.h"
#include "runtime/os/settings.h"
#include "runtime/os/poison.h"
#include "runtime/os/persistent.h"
#include "runtime/world/cyclering.h"
#include "runtime/world/stw.h"
#include "runtime/world/gcstats.h"
#include "runtime/spans/mcentral.h"
#include "runtime/spans/stackalloc.h"
#include "gc/mark/rootfns.h"
#include "gc/mark/handles.h"
#include "gc/mark/stacks.h"
#include "gc/mark/statics.h"
#include "gc/mark/sites.h"
#include "gc/mark/notices.h"
#include "gc/cycle/pacer.h"
#include "gc/cycle/release.h"
#include "gc/cycle/scavgoal.h"
#include "gc/cycle/swept.h"
#include "gc/cycle/gctrace.h"
#include "gc/cycle/cycle.h"
#include "gc/cycle/worker.h"
#include "gc/cycle/scavenger.h"
#include "gc/stats/mstats.h"
#include "gc/host/door.h"
#include "gc/host/finalize.h"
#include "gc/host/attach.h"
#include "gc/host/supply.h"
#include "gc/host/registry.h"
#include "gc/host/atfork.h"

// state_reset makes all state but memory what it was when the process began.
static void state_reset(void)
{
	RT_ASSERT(!door_ready());
	proc_reset();
	mcentral_reset();
	stackalloc_reset();
	heapstats_unsafe_clear();
	gctrace_reset();
	gcstats_reset();
	cyclering_reset(&cyclering);
	gauge_reset();
	heapgauge_reset();
	swept_reset();
	atomic_u32_store_relaxed(&epoch.sweepgen, 2);
	settings = (rt_config){0};
}

// memory_init makes an empty heap.  Returns false if the system refuses; then
// nothing is left mapped.
static bool memory_init(void)
{
	sysmem_init();
	if (!arena_init())
		return false;
	// A twentieth would be enough for spans of one page each and a bitmap8
	// for every page.
	persistent_init(arena.reserved / 16);
	guard_init();
	if (!mheap_init()) {
		arena_fini();
		return false;
	}
	return true;
}

// heap_fini ends the heap and leaves no pointer to memory that is gone: a fork
// walks the list of Ps even when there is no heap.
static void heap_fini(void)
{
	roots_fini();
	rootfns_fini();
	handles_fini();
	stacks_fini();
	statics_fini();
	sites_fini();
	notices_fini();
	mcache_fini();
	mheap_fini();
	arena_fini();
	persistent_fini();
	state_reset();
}

// processors returns how many processors the process can really use, as far as
// rt_init reads that.
static uint64_t processors(const struct cgroup *c)
{
	uint64_t mask = oscall_noted_nprocs();
	uint64_t n = base_min((uint64_t)settings.max_procs, c->cpus);

	return mask != 0 ? base_min(n, mask) : n;
}

static void begin_pacing(void)
{
	struct cgroup c = {CGROUP_NO_LIMIT, CGROUP_NO_LIMIT};
	struct pacer_rule rule = {
	    .percent = settings.gc_percent,
	    .heap_min = settings.heap_min,
	    .headroom = settings.heap_headroom,
	};
	struct pacer_found nothing = {.memory.mapped =
					  gauge_load(&gauges.mapped_ready)};
	struct limiter limiter;

	if (settings.cgroup >= 2)
		cgroup_self(&c);
	rule.limit = base_min((uint64_t)settings.memory_limit, c.memory);
	limiter_init(&limiter, settings.gc_cpu_limit, processors(&c));
	pacer_init(&rule, &nothing, &limiter);
	release_again();
	scavgoal_reset();
}

int lifetime_begin(const rt_config *c)
{
	int error = RT_OK;

	state_reset();
	settings = *c;
	oscall_note_nprocs();
	roots_set_stack_format(c->stack_format);
	settings.stack_format = NULL; // the host's; roots has a copy
	if (!atfork_init() || !attach_init() || !memory_init()) {
		state_reset();
		return RT_ENOMEM;
	}
	supply_reset();
	poison_init();
	freelist_init();
	registry_init();
	finalize_reset();
	mstats_set_double_check(settings.double_check);
	begin_pacing();
	gcstats_init();
	if (!settings.no_attach)
		error = attach_thread(0, 0, 0);
	if (error)
		heap_fini();
	else // pairs with the acquire in door_ready
		atomic_u32_store_release(&door.ready, 1);
	return error;
}

void lifetime_end(void)
{
	RT_ASSERT(door_ready() && proc_self());
	// Pairs with the acquire in door_ready.
	atomic_u32_store_release(&door.ready, 0);
	attach_undo();
	scavenger_fini();
	worker_fini();
	heap_fini();
}
