// Sweeps chunk by chunk, and polls in between.
#include "gc/host/slices.h"

#include "runtime/os/schedpoint.h"
#include "runtime/world/safepoint.h"
#include "gc/cycle/scavenger.h"
#include "gc/host/door.h"

// check_caller checks, in debug builds, that t is the calling thread's, and may
// sweep.
static void check_caller(const struct rt_thread *t)
{
	RT_ASSERT(t == rt_thread_tls && door_allocating(t));
	lockrank_none();
}

void slices_await(struct rt_thread *t)
{
	struct rt_proc *p = t->p;

	check_caller(t);
	if (t->nogc != 0) {
		swept_await();
		return;
	}
	context_save(&p->context.frame);
	proc_block(p);
	swept_await();
	proc_unblock(p);
	context_keep();
}

void slices_help(struct rt_thread *t)
{
	check_caller(t);
	if (atomic_u32_load_relaxed(&scavenger.runs) == 0)
		swept_slice(t->p);
}

// sweep_slice sweeps a chunk, or waits for the threads that are in the last
// ones.  Returns false if all is swept.
static bool sweep_slice(struct rt_thread *t)
{
	bool swept_one = swept_slice(t->p);

	if (swept_over())
		return false; // a poll may bring another sweep
	if (!swept_one)
		slices_await(t);
	return true;
}

void slices_rest(struct rt_thread *t)
{
	check_caller(t);
	RT_ASSERT(!proc_in_nogc(t));
	while (RT_UNLIKELY(!swept_over())) {
		while (!swept_over() && sweep_slice(t)) {
			schedpoint(SCHED_SLICES_REST);
			safepoint_poll(t);
		}
		// While it advises, another collection may come.
		scavenger_advise(t->p);
	}
}
