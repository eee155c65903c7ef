// The beginning and the end of the heap.
#include "gc/host/attach.h"
#include "runtime/os/settings.h"
#include "gc/cycle/cycle.h"
#include "gc/host/door.h"
#include "gc/host/atfork.h"
#include "gc/cycle/pacer.h"
#include "gc/mark/roots.h"
#include "gc/cycle/sweep.h"
#include "gc/cycle/worker.h"
#include "runtime/world/gcstats.h"
#include "runtime/spans/mcentral.h"
#include "runtime/os/persistent.h"
#include "runtime/os/poison.h"
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

// start is rt_init with a resolved configuration, by one thread at a time.
static int start(const rt_config *c)
{
	int error = RT_OK;

	state_reset();
	if (!fork_init() || !attach_init() || !memory_init(c))
		return RT_ENOMEM;
	door.config = *c;
	atomic_u64_store_relaxed(&door.stress_count, 0);
	atomic_u64_store_relaxed(&door.guard_draws, 0);
	mcache_set_calls_only(c->gcstress != 0 || c->poison != 0 ||
			      c->guard_small != 0);
	poison_init(c->poison != 0);
	sweep_set_clobber(c->clobberfree != 0);
	atomic_u32_store_relaxed(&door.double_check, (uint32_t)c->double_check);
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

// answer_locked is for a heap that was refused memory in a process that locks
// what it maps: mostly there is memory, and none may be locked.
static int answer_locked(void)
{
	door_warn("rtheap: the process locks the memory that it maps "
		  "(mlockall), and the system refused to lock what a heap "
		  "needs (RLIMIT_MEMLOCK)");
	return RT_ENOTSUP;
}

int rt_init(const rt_config *c)
{
	rt_config config;
	int error = config_resolve(c, &config);

	if (error)
		return error;
	// Who has the world stopped must not wait for its start.
	if (door_ready())
		return RT_ESTATE;
	stw_acquire(NULL);
	error = door_ready() ? RT_ESTATE : start(&config);
	stw_release();
	if (error == RT_ENOMEM && sysmem_locking())
		return answer_locked();
	return attach_answer(error);
}

// end is rt_fini for the last attached thread.
static void end(void)
{
	atomic_u32_store_release(&door.ready, 0);
	attach_undo();
	worker_fini();
	heap_fini();
}

int rt_fini(void)
{
	int error = door_attached(false);

	if (error)
		return error;
	stw_acquire(proc_self());
	// Before the heap is gone: a thread that exits meanwhile must still be
	// able to detach.
	if (atomic_u32_load_acquire(&procs.attached) == 1)
		end();
	else
		error = RT_EBUSY;
	stw_release();
	return error;
}
