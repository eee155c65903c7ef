// visit.c - makes stops, records them, and reports after them.
#include "gc/host/visit.h"

#include "runtime/world/gcstats.h"
#include "gc/host/door.h"
#include "gc/host/handlers.h"
#include "gc/host/slices.h"

// The text that the warn handler gets after the present stop.
static struct text held_report;

// Whether the stopper is inside a walk.  Only the stopper uses it.
static bool walking;

void visit_report(const struct text *t)
{
	RT_ASSERT(stw_stopped());
	if (held_report.len == 0)
		held_report = *t;
}

// start ends the stop and records it.  The host's handler runs after that; by
// then another thread may have stopped the world.
static void start(struct rt_proc *p, int reason, struct rt_stop_times *times)
{
	struct text report = held_report;

	text_init(&held_report);
	stw_start(p, times);
	// The record must come first: if p is NULL, only the right to stop the
	// world keeps the heap from ending.
	gcstats_record_stop(reason, times);
	stw_release();
	if (report.len != 0)
		handlers_warn(report.buf);
}

struct visit visit_enter(int reason)
{
	struct rt_proc *p = proc_self();
	struct visit v = {
	    .p = p && !p->in_region ? p : NULL,
	    .reason = reason,
	    .own = p && p->stopper,
	};

	if (!v.own) {
		stw_acquire(v.p);
		stw_stop(v.p, reason);
	}
	return v;
}

struct visit visit_enter_swept(int reason)
{
	struct rt_thread *t = rt_thread_tls;
	struct visit v;

	if (door_allocating(t) && !door_nogc())
		slices_rest(t);
	v = visit_enter(reason);
	swept_all(v.p);
	return v;
}

void visit_leave(const struct visit *v)
{
	struct rt_stop_times times;

	if (v->own)
		return;
	start(v->p, v->reason, &times);
}

void visit_begin(int reason)
{
	struct rt_proc *p = proc_self();

	stw_acquire(p);
	stw_stop(p, reason);
	mcache_disable_runs(rt_thread_tls->mc);
}

void visit_end(struct rt_stop_times *times)
{
	walking = false;
	mcache_enable_runs(rt_thread_tls->mc);
	start(proc_self(), stw_reason(), times);
}

// ---- walks ----

bool visit_walking(void)
{
	return walking;
}

void visit_begin_walk(struct walk *w)
{
	w->v = visit_enter_swept(RT_STOP_HEAP_WALK);
	RT_ASSERT(w->v.p);
	mcache_flush_all(w->v.p);
	mcache_disable_runs(rt_thread_tls->mc);
	w->inside = walking;
	w->began = walking = true;
}

void visit_end_walk(const struct walk *w)
{
	if (!w->began)
		return;
	walking = w->inside;
	if (!w->v.own)
		mcache_enable_runs(rt_thread_tls->mc);
	visit_leave(&w->v);
}
