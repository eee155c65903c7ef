#include "gc/host/visit.h"

#include "gc/host/door.h"
#include "gc/stats/verify.h"
#include "runtime/world/gcstats.h"

// What the warn handler is told when the stop that lasts has ended.
static struct text held_report;

void world_report(const struct text *t)
{
	if (held_report.len == 0)
		held_report = *t;
}

// start ends the stop and records it.  The host's handler runs with the world
// started, and the stop may be another thread's by then.
static void start(struct rt_proc *p, int reason, struct rt_stop_times *times)
{
	struct text report = held_report;

	text_init(&held_report);
	stw_start(p, times);
	// p may be NULL: then only this keeps the heap from ending.
	gcstats_record_stop(reason, times);
	stw_release();
	if (report.len != 0)
		door_warn(report.buf);
}

struct world_visit world_enter(int reason)
{
	struct rt_proc *p = proc_self();
	struct world_visit v = {
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

void world_leave(const struct world_visit *v)
{
	struct rt_stop_times times;

	if (v->own)
		return;
	start(v->p, v->reason, &times);
}

void world_end(struct rt_stop_times *times)
{
	door.walking = false;
	start(proc_self(), stw_reason(), times);
}

int rt_stop_the_world(int reason)
{
	int error;

	if (reason < RT_STOP_HOST)
		return RT_EINVAL;
	error = door_attached(false);
	if (error)
		return error;
	stw_acquire(proc_self());
	stw_stop(proc_self(), reason);
	mcache_disable_runs(rt_thread_tls->mc);
	return RT_OK;
}

int rt_start_the_world(rt_stop_times *times)
{
	struct rt_stop_times t;

	if (!door_ready())
		return RT_ESTATE;
	if (!door_stopper() || door.walking)
		return RT_EPERM;
	mcache_enable_runs(rt_thread_tls->mc);
	world_end(&t);
	if (times)
		*times = t;
	return RT_OK;
}

int rt_world_stopped(void)
{
	return stw_stopped();
}

// A walk that lasts.
struct walk {
	struct world_visit v;
	bool inside; // another walk, in its callback
	bool began;
};

static void walk_begin(struct walk *w)
{
	w->v = world_enter(RT_STOP_HEAP_WALK);
	mcache_flush_all(w->v.p);
	mcache_disable_runs(rt_thread_tls->mc);
	w->inside = door.walking;
	w->began = door.walking = true;
}

// walk_end also runs when the host's function is left by unwinding.
static void walk_end(const struct walk *w)
{
	if (!w->began)
		return;
	door.walking = w->inside;
	if (!w->v.own)
		mcache_enable_runs(rt_thread_tls->mc);
	world_leave(&w->v);
}

int rt_heap_walk(rt_walk_fn *fn, void *arg)
{
	__attribute__((cleanup(walk_end))) struct walk w = {.began = false};
	int error;

	if (!fn)
		return RT_EINVAL;
	error = door_attached(true);
	if (error)
		return error;
	walk_begin(&w);
	verify_walk(fn, arg);
	return RT_OK;
}

int rt_heap_verify(struct rt_verify *out)
{
	struct rt_verify result;
	struct world_visit v;
	int error;

	if (!out)
		return RT_EINVAL;
	error = door_attached(true);
	if (error)
		return error;
	v = world_enter(RT_STOP_HEAP_VERIFY);
	mcache_flush_all(v.p);
	verify_heap(&result);
	world_leave(&v);
	*out = result;
	return RT_OK;
}
