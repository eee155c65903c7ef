// lifetime.c - makes and ends a heap, module by module.
#include "gc/host/lifetime.h"

#include "runtime/os/oscall.h"
#include "runtime/os/schedpoint.h"
#include "runtime/os/throw.h"
#include "runtime/os/cgroup.h"
#include "runtime/os/settings.h"
#include "runtime/os/poison.h"
#include "runtime/os/persistent.h"
#include "runtime/world/cyclering.h"
#include "runtime/world/stoptable.h"
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
#include "gc/cycle/cyclerecord.h"
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

// state_reset resets the statistics and records, the lists of Ps, spans and
// stacks, the sweep and the settings.  lifetime_begin resets the rest.
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
	cyclerecord_reset();
	stoptable_reset(&stoptable);
	gauge_reset();
	heapgauge_reset();
	swept_reset();
	atomic_u32_store_relaxed(&epoch.sweepgen, 2);
	settings_end();
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

// processors returns the least of the limits on processors that rt_init knows:
// max_procs, the cgroup's and the affinity mask's.
static uint64_t processors(const struct cgroup *c)
{
	uint64_t mask = oscall_noted_nprocs();
	uint64_t n = base_min((uint64_t)settings()->max_procs, c->cpus);

	return mask != 0 ? base_min(n, mask) : n;
}

static void begin_pacing(void)
{
	struct cgroup c = {CGROUP_NO_LIMIT, CGROUP_NO_LIMIT};
	struct pacer_rule rule = {
	    .percent = settings()->gc_percent,
	    .heap_min = settings()->heap_min,
	    .headroom = settings()->heap_headroom,
	};
	struct pacer_found nothing = {.memory.mapped =
					  gauge_load(&gauges.mapped_ready)};
	struct limiter limiter;

	if (settings()->cgroup >= 2)
		cgroup_self(&c);
	rule.limit = base_min((uint64_t)settings()->memory_limit, c.memory);
	limiter_init(&limiter, settings()->gc_cpu_limit, processors(&c));
	pacer_init(&rule, &nothing, &limiter);
	release_again();
	scavgoal_reset();
}

int lifetime_begin(const rt_config *c)
{
	int error = RT_OK;

	state_reset();
	settings_begin(c);
	oscall_note_nprocs(c->gc_affinity, c->gc_affinity_size);
	roots_set_stack_format(c->stack_format);
	if (!atfork_init() || !attach_init() || !memory_init()) {
		state_reset();
		return RT_ENOMEM;
	}
	supply_reset();
	poison_init();
	freelist_init();
	registry_init();
	finalize_reset();
	mstats_set_double_check(settings()->double_check);
	begin_pacing();
	gcstats_init();
	proc_open();
	if (!settings()->no_attach)
		error = attach_thread(0, 0, 0);
	if (error) {
		proc_close();
		heap_fini();
	} else { // pairs with the acquire in door_ready
		atomic_u32_store_release(&door.ready, 1);
	}
	return error;
}

// ---- the end ----

// alone tells whether the calling thread is the only attached one.
static bool alone(void)
{
	return atomic_u32_load_relaxed(&procs.attached) == 1;
}

// claim_threads keeps other threads from making threads of the library.
// Returns false if one is doing that, which must have attached just now.
static bool claim_threads(void)
{
	if (!scavenger_claim())
		return false;
	if (worker_claim())
		return true;
	scavenger_release();
	return false;
}

// dismiss_threads tells the library's threads to end.  Returns false, and does
// nothing, if another thread is attached.
static bool dismiss_threads(struct rt_proc *p)
{
	bool may;

	if (!alone())
		return false;
	// worker_dismiss calls the helpers, as a collection does.
	stw_acquire(p);
	may = alone() && claim_threads();
	if (may) {
		scavenger_dismiss();
		worker_dismiss();
	}
	stw_release();
	return may;
}

// await_threads waits for the end of the library's threads.
static void await_threads(struct rt_proc *p)
{
	context_save(&p->context.frame);
	proc_block(p);
	schedpoint(SCHED_AWAIT_THREADS);
	scavenger_await();
	worker_await();
	schedpoint(SCHED_AWAIT_THREADS_ENDED);
	proc_unblock(p);
	context_keep();
}

// resume_threads undoes what dismiss_threads and await_threads did.  Helpers
// are made by the next collection that wants them.
static void resume_threads(struct rt_proc *p)
{
	context_save(&p->context.frame);
	proc_block(p);
	scavenger_resume();
	proc_unblock(p);
	context_keep();
	worker_release();
	scavenger_release();
}

// close_heap ends the heap, whose threads have ended, unless another thread has
// attached.  This test must come while the heap exists: a thread that exits
// meanwhile must still be able to detach.
static bool close_heap(struct rt_proc *p)
{
	bool closed;

	stw_acquire(p);
	closed = proc_close();
	if (closed) {
		// Pairs with the acquire in door_ready.
		atomic_u32_store_release(&door.ready, 0);
		attach_undo();
		scavenger_fini();
		worker_fini();
		heap_fini();
	}
	stw_release();
	return closed;
}

int lifetime_end(void)
{
	struct rt_proc *p = proc_self();

	RT_ASSERT(door_ready() && p);
	if (!dismiss_threads(p))
		return RT_EBUSY;
	await_threads(p);
	if (close_heap(p))
		return RT_OK;
	resume_threads(p);
	return RT_EBUSY;
}
