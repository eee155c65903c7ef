// periodic.c - runs a collection when none has taken place for long.
#include "gc/cycle/periodic.h"

#include <rt/thread.h>

#include "runtime/os/schedpoint.h"
#include "runtime/os/nanotime.h"
#include "runtime/os/settings.h"
#include "runtime/world/stw.h"
#include "gc/cycle/scavgoal.h"
#include "gc/cycle/swept.h"
#include "gc/cycle/cycle.h"
#include "gc/cycle/worker.h"

#define SECOND_NS UINT64_C(1000000000)

enum { AGAIN_PART = 10 }; // 1/10 of the period passes before another try

static uint64_t period_ns(void)
{
	return settings()->gc_period_s * SECOND_NS;
}

bool periodic_wanted(void)
{
	return settings()->gc_period_s != 0 && settings()->gc_threads != 0 &&
	       (int64_t)atomic_u64_load_relaxed(&pacer.percent) >= 0;
}

// look notes when the last collection was.
static void look(struct periodic *s, uint64_t now)
{
	// Pairs with the release in scavgoal_note.
	uint64_t cycles = atomic_u64_load_acquire(&scavgoal.cycles);
	uint64_t ended = atomic_u64_load_relaxed(&scavgoal.ended);

	if (s->since != 0 && s->cycles == cycles)
		return;
	// Without a collection, or if its clock was refused, time counts from
	// now.
	s->since = ended != 0 ? base_min(ended, now) : now;
	s->cycles = cycles;
}

uint64_t periodic_left(struct periodic *s, uint64_t now)
{
	if (!periodic_wanted())
		return UINT64_MAX;
	if (now == 0)
		return period_ns();
	look(s, now);
	return base_sub_sat(base_max(s->since + period_ns(), s->again), now);
}

// begin acquires the right to lead and to stop the world, without waiting.
// Returns false if another thread has either, if the last collection has left
// something to sweep, or if *quit is set.
static bool begin(const atomic_u32 *quit)
{
	if (!swept_over() || !ask_lead())
		return false;
	schedpoint(SCHED_PERIODIC_BEGIN);
	if (stw_try_acquire()) {
		if (atomic_u32_load_relaxed(quit) == 0)
			return true;
		stw_release();
	}
	ask_pass();
	return false;
}

// collect collects with p.  Callbacks of the host find the thread attached and
// in its own stop, as on a thread of the host that collects.  It has no mcache,
// and nothing that would need one is allowed in its stop.
static void collect(struct rt_proc *p)
{
	struct rt_thread *unattached = rt_thread_tls;
	struct rt_thread attached = *unattached; // its runs are empty

	attached.p = p;
	attached.nogc = 0;
	rt_thread_tls = &attached;
	cycle_begin_unasked(p);
	cycle_end(p, NULL);
	rt_thread_tls = unattached;
}

bool periodic_collect(struct periodic *s, struct rt_proc *p,
		      const atomic_u32 *quit)
{
	uint64_t now = nanotime();

	RT_ASSERT(!proc_self() || p == proc_self());
	if (periodic_left(s, now) != 0)
		return false;
	// It stays due: this thread runs, so no other can collect first.
	s->again = now + period_ns() / AGAIN_PART;
	schedpoint(SCHED_PERIODIC_COLLECT);
	if (!begin(quit))
		return false;
	collect(p);
	if (swept_take_advice())
		worker_advise(p);
	return true;
}
