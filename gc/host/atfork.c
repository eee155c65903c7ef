// atfork.c - stops the world for a fork, and mends the heap of the child.
#include "gc/host/atfork.h"

#include "runtime/os/oscall.h"
#include "runtime/os/schedpoint.h"
#include "runtime/os/throw.h"
#include "runtime/world/gcstats.h"
#include "runtime/pages/hugepages.h"
#include "runtime/spans/stackalloc.h"
#include "gc/mark/work.h"
#include "gc/mark/drops.h"
#include "gc/mark/handles.h"
#include "gc/mark/stacks.h"
#include "gc/cycle/ask.h"
#include "gc/cycle/swept.h"
#include "gc/cycle/worker.h"
#include "gc/cycle/scavenger.h"
#include "gc/host/door.h"
#include "gc/host/handlers.h"
#include "gc/host/visit.h"
#include "gc/host/reclaim.h"

// Written by the thread that prepared a fork, in its stop.  There is no check
// function: no thread but that one reads it.
static struct {
	struct visit visit;
	uint64_t cpu; // ns
} forking;

// This thread's calls of atfork_prepare that no atfork_resume has undone yet:
// the host may prepare a fork itself, which fork() then prepares again.
static __thread unsigned depth __attribute__((tls_model("initial-exec")));

// This process comes from a fork that was not prepared, because a thread was
// throwing or the fork was made in a callback of a collection.  The heap may be
// in the middle of any change.
static bool unprepared;

// ---- locks ----

// locks_take takes, in their order, the locks that a thread may hold while the
// world is stopped: a thread that is not attached, or one that is blocked, such
// as a helper.
static void locks_take(void)
{
	RT_ASSERT(stw_stopped());
	mutex_lock(&procs.lock);
	work_fork_lock();
	hugepages_fork_lock();
	heapstats_fork_lock();
	handlers_fork_lock();
}

static void locks_release(void)
{
	handlers_fork_unlock();
	heapstats_fork_unlock();
	hugepages_fork_unlock();
	work_fork_unlock();
	mutex_unlock(&procs.lock);
}

// ---- the child ----

// free_granted frees what a stopper took for a thread that only the parent has,
// and that the thread has not yet returned to its host.  It leaves alone the
// objects that a collection will free.
static void free_granted(struct rt_mcache *mc, struct rt_proc *counts)
{
	struct object o;

	if (mc->granted_stack)
		stackfree(mc, counts, mc->granted_stack, mc->granted_bytes);
	// A large object would be in setting_up instead.
	if (mc->granted && object_find((uintptr_t)mc->granted, &o) &&
	    o.kind >= KIND_OWN)
		reclaim_object(mc, &o);
}

// delete_caches flushes and deletes the caches of threads that only the parent
// has.  An object that one of them was clearing is garbage, whatever its kind.
static void delete_caches(struct rt_proc *self, struct rt_proc *counts)
{
	for (struct rt_proc *p = proc_first(); p; p = proc_next(p)) {
		struct rt_mcache *mc = mcache_of(p);

		if (!mc || p == self)
			continue;
		free_granted(mc, counts);
		mcache_flush(mc, counts);
		stackalloc_flush(mc, counts);
		handles_flush(mc);
		mheap_cache_flush(&mc->heap);
		proc_set_thread(p, NULL);
		mcache_delete(mc);
	}
}

// end_registrations ends what lost threads have registered as their own: their
// stacks may be unmapped at any time.
static void end_registrations(const struct rt_proc *self)
{
	for (struct rt_proc *p = proc_first(); p; p = proc_next(p))
		if (p != self)
			stacks_detach(p);
}

static void drop_threads(void)
{
	struct rt_proc *self = proc_self();

	RT_ASSERT(stw_stopped());
	throw_fork_child();
	oscall_fork_child();
	sysmem_fork_child();
	ask_fork_child();
	swept_fork_child();
	hugepages_fork_child();
	worker_fork_child();
	scavenger_fork_child();
	drops_fork_child(self);
	notices_fork_child();
	stacks_fork_child();
	delete_caches(self, forking.visit.p);
	end_registrations(self);
	proc_fork_child(self);
	gcstats_fork_child(forking.cpu);
	stw_fork_child();
}

// ---- at a fork ----

// set_runs turns inline allocation of the forking thread on or off.  In a
// region or in its own stop it is off already and stays off.
static void set_runs(bool on)
{
	if (forking.visit.own || !forking.visit.p)
		return;
	if (on)
		mcache_enable_runs(rt_thread_tls->mc);
	else
		mcache_disable_runs(rt_thread_tls->mc);
}

// stop stops the world.  A no-GC stretch of the caller is interrupted: if two
// threads waited for each other's stop, neither would begin.
static struct visit stop(void)
{
	struct rt_thread *t = rt_thread_tls;
	const uint8_t nogc = t->nogc;
	struct visit v;

	if (!door_nogc())
		return visit_enter(RT_STOP_FORK);
	t->nogc = 0;
	v = visit_enter(RT_STOP_FORK);
	t->nogc = nogc;
	return v;
}

static void prepare(void)
{
	// The stopper alone may write to forking.
	struct visit v = stop();

	forking.visit = v;
	set_runs(false);
	forking.cpu = gcstats_cpu();
	schedpoint(SCHED_FORK_PREPARE);
	locks_take();
}

static void resume(bool child)
{
	struct visit v = forking.visit;

	locks_release();
	if (child)
		drop_threads();
	set_runs(true);
	schedpoint(SCHED_FORK_RESUME);
	visit_leave(&v);
}

int atfork_resume(bool child)
{
	if (depth == 0)
		return RT_EPERM;
	if (--depth == 0)
		resume(child);
	return RT_OK;
}

int atfork_prepare(void)
{
	oscall_fork_prepare();
	// A thread that reports a bug of ours may hold any lock, or the right
	// to stop the world.  By contract, its handler starts programs by
	// vfork, which does not call this function.  But a handler that forks,
	// or calls a library that forks, must not wait here for ever.
	if (depth == 0 && (unprepared || throw_begun()))
		return RT_ESTATE;
	// In a callback of a collection: the child would lack the other
	// markers.
	if (depth == 0 && door_in_callback())
		return RT_EBUSY;
	if (depth++ == 0)
		prepare();
	return RT_OK;
}

static void at_prepare(void)
{
	atfork_prepare();
}

static void at_parent(void)
{
	atfork_resume(false);
}

static void at_child(void)
{
	if (atfork_resume(true) == RT_OK)
		return;
	unprepared = true;
	throw_fork_child();
	oscall_fork_child();
}

bool atfork_init(void)
{
	static bool done;

	if (!done)
		done = oscall_at_fork(at_prepare, at_parent, at_child) == 0;
	return done;
}
