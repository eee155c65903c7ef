// Stopping the world: the right to do it, and the times of a stop.
#include "runtime/world/stw.h"

#include "runtime/os/throw.h"
#include "runtime/os/nanotime.h"

struct world world;

bool stw_stopped(void)
{
	// Pairs with the stores in stw_stop and stw_start.
	return atomic_u32_load_acquire(&world.stopped) != 0;
}

int stw_reason(void)
{
	RT_ASSERT(stw_stopped());
	return world.reason;
}

struct stw_begin stw_begun(void)
{
	RT_ASSERT(stw_stopped());
	return world.begin;
}

// While the calling thread waits, a collection by another thread may read its
// stack.  So its context is saved first.
void stw_acquire(struct rt_proc *self)
{
	if (sema_try_acquire(&world.sema))
		return;
	if (self) {
		context_save(&self->context.frame);
		proc_block(self);
	}
	sema_acquire(&world.sema);
	if (self)
		proc_unblock(self); // only self may stop the world now
	context_keep();
}

bool stw_try_acquire(void)
{
	return sema_try_acquire(&world.sema);
}

void stw_release(void)
{
	sema_release(&world.sema);
}

void stw_fork_child(void)
{
	sema_fork_child(&world.sema);
}

// measure_waits sums how long each P that ran when the stop was requested
// waited until the last P had stopped, and records which P was the last.  A
// stopper with a P waited all the time, and is the slowest if no other P ran.
static void measure_waits(const struct rt_proc *self)
{
	uint64_t latest = 0;

	world.begin.stopping_cpu_ns = 0;
	world.slowest = self ? self->id : 0;
	for (struct rt_proc *p = proc_first(); p; p = proc_next(p)) {
		uint64_t since = p == self
				     ? world.begin.asked
				     : atomic_u64_load_relaxed(&p->stopped_at);

		if (since == 0)
			continue;
		world.begin.stopping_cpu_ns +=
		    base_sub_sat(world.begin.finished, since);
		if (p != self && since > latest) {
			latest = since;
			world.slowest = p->id;
		}
	}
}

// check_ps checks every attached P.  The world must be stopped.
static const char *check_ps(void)
{
	const char *wrong = NULL;

	for (const struct rt_proc *p = proc_first(); p && !wrong;
	     p = proc_next(p))
		wrong = proc_check(p);
	return wrong;
}

// A clock that the system refuses reads 0, but the times of a stop are always
// in order.  If the time of the request is not known, the stop counts from the
// moment when all threads were stopped.
void stw_stop(struct rt_proc *self, int reason)
{
	RT_ASSERT(!stw_stopped());
	world.reason = reason;
	world.begin.asked = nanotime();
	proc_stop_all(self);
	world.nthreads = atomic_u32_load_relaxed(&procs.attached);
	proc_wait_all();
	world.begin.finished = base_max(nanotime(), world.begin.asked);
	if (world.begin.asked == 0)
		world.begin.asked = world.begin.finished;
	measure_waits(self);
	if (self)
		self->stopper = true;
	// Pairs with the acquire in stw_stopped.
	atomic_u32_store_release(&world.stopped, 1);
	RT_CHECK(stw_check(&world));
	RT_CHECK(check_ps());
}

void stw_start(struct rt_proc *self, struct rt_stop_times *times)
{
	struct rt_stop_times t = {
	    .stopping_cpu_ns = world.begin.stopping_cpu_ns,
	    .nthreads = world.nthreads,
	    .slowest = world.slowest,
	};
	uint64_t now;

	if (!stw_stopped())
		throw_fatal("startTheWorld: world not stopped");
	// Pairs with the acquire in stw_stopped.
	atomic_u32_store_release(&world.stopped, 0);
	if (self)
		self->stopper = false;
	now = base_max(nanotime(), world.begin.finished);
	t.stopping_ns = world.begin.finished - world.begin.asked;
	t.stopped_ns = now - world.begin.finished;
	t.total_ns = now - world.begin.asked;
	proc_start_all(self);
	if (times)
		*times = t;
}

#ifdef RT_TEST
uint32_t stw_count_from(uint32_t n)
{
	uint32_t next = atomic_u32_load_relaxed(&world.sema.next);

	atomic_u32_store_relaxed(&world.sema.next, n);
	atomic_u32_store_relaxed(&world.sema.serving, n);
	return next;
}
#endif

const char *stw_check(const struct world *w)
{
	const char *wrong = sema_check(&w->sema);

	if (wrong)
		return wrong;
	if (atomic_u32_load_relaxed(&w->sema.next) ==
	    atomic_u32_load_relaxed(&w->sema.serving))
		return "world is stopped without the right to stop it";
	if (atomic_u32_load_relaxed(&w->stopped) != 1)
		return "world is not marked as stopped";
	// Not procs.count, because in the child of a fork that is lower.
	if (w->nthreads > procs.made)
		return "more threads were stopped than Ps made";
	if (w->slowest != 0 && w->slowest >= procs.made)
		return "slowest thread has a P that was never made";
	if (w->begin.finished < w->begin.asked)
		return "stop was complete before it was requested";
	return NULL;
}
