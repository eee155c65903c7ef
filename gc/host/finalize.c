// Runs destructors, batch by batch.
#include "gc/host/finalize.h"

#include "runtime/os/schedpoint.h"
#include "runtime/os/throw.h"
#include "runtime/os/settings.h"
#include "runtime/world/safepoint.h"
#include "runtime/spans/mheap.h"
#include "gc/cycle/sweep.h"
#include "gc/cycle/scavenger.h"
#include "gc/host/door.h"
#include "gc/host/handlers.h"
#include "gc/host/slices.h"
#include "gc/host/visit.h"

struct finalize finalize;

void finalize_reset(void)
{
	RT_ASSERT(!door_ready());
	drops_reset();
	dropnews_reset();
	finalize = (struct finalize){0};
	handlers_set_ready(NULL, NULL);
}

// may_go_on tells whether another destructor may run on t, the calling thread:
// a function of the host may have left a region open, a no-GC stretch or a
// stop.
static bool may_go_on(const struct rt_thread *t)
{
	return door_may_go_on(t) && !door_nogc();
}

// type_of returns the type whose destructor drops an object.  Debug builds name
// it.
static const rt_type *type_of(const struct drops_object *o)
{
	uintptr_t obj = (uintptr_t)o->obj;
	uint64_t page = arena_offset(obj) >> RT_PAGE_SHIFT;
	const rt_type *type =
	    layout_type(&layouts[pageword_kind(arena_pageword(page))], obj,
			base_align_down(o->size, sizeof(uintptr_t)));

	return type && type->drop ? type : NULL;
}

// run_drop runs a destructor.
static void run_drop(const struct drops_object *o)
{
	struct hostcall before = hostcall_begin_owned(
	    "destructor", RT_DEBUG_BUILD ? type_of(o) : NULL, (uintptr_t)o->fn,
	    (uintptr_t)o->obj);

	o->fn(o->obj, o->size, o->arg);
	hostcall_end(&before);
}

// call_drop returns false if the thread may not go on.
static bool call_drop(const struct rt_thread *t, const struct drops_object *o)
{
	schedpoint(SCHED_CALL_DROP);
	RT_ASSERT(arena_offset((uintptr_t)o->obj) < arena_used());
	if (o->fn)
		run_drop(o);
	return may_go_on(t);
}

// free_batch frees the objects of a batch that is finished.
static void free_batch(struct rt_thread *t)
{
	RT_ASSERT(drops_runs(t->p));
	while (drops_finished()) {
		sweep_free_dropped(t->p, drops_end(SWEEP_DROPPED));
		schedpoint(SCHED_FREE_BATCH);
		scavenger_freed();
		safepoint_poll(t);
	}
}

// begin_batch prepares for a batch, if none is open.  A batch begins only when
// all is swept.  A sweep clears the two bits of a dead object one after the
// other.  A thread that reads them in between would take an object that is
// being freed for one that waits.
static void begin_batch(struct rt_thread *t)
{
	if (!drops_open() && drops_ready() != 0)
		slices_rest(t);
}

size_t finalize_run(struct rt_thread *t, size_t max)
{
	const struct rt_proc *p = t->p;
	struct drops_object o;
	size_t ran = 0;
	bool go_on;

	RT_ASSERT(t == rt_thread_tls);
	if (handlers_telling_ready() || !drops_acquire(t->p))
		return 0;
	if (max == 0)
		max = drops_ready();
	do {
		free_batch(t);
		begin_batch(t);
		if (ran == max || !drops_take(&o))
			break;
		go_on = call_drop(t, &o);
		ran++;
	} while (go_on);
	drops_release(p);
	return ran;
}

// ---- what the host is told ----

static void warn(uint64_t waited)
{
	struct text t;

	text_init(&t);
	text_str(&t, "rtheap: ");
	text_u64(&t, waited);
	text_str(&t, " bytes of dead objects wait for their destructors"
		     " (rt_run_finalizers)");
	handlers_warn(t.buf);
}

void finalize_tell_news(void)
{
	uint64_t waited = atomic_u64_load_relaxed(&dropnews.waited);
	size_t ready;

	schedpoint(SCHED_FINALIZE_TELL_NEWS);
	if (door_attached_now(false) != RT_OK)
		return;
	atomic_u32_store_relaxed(&dropnews.news, 0);
	if (waited != 0 && atomic_u64_cas_relaxed(&dropnews.waited, waited, 0))
		warn(waited);
	// Another thread may begin with these destructors at any moment.  So
	// the number is read once: the host is never told of none.
	ready = drops_ready();
	if (ready == 0)
		return;
	schedpoint(SCHED_FINALIZE_TELL_NEWS_READY);
	if (door_attached_now(false) == RT_OK && !door_nogc())
		handlers_tell_ready(ready);
	else
		atomic_u32_store_relaxed(&dropnews.news, 1);
}

// ---- rt_drop_now ----

// What rt_drop_now asks.
struct picking {
	rt_pick_fn *pick; // NULL: all
	void *arg;
	bool granted; // has_granted is true of some object
};

// has_granted tells whether the n bytes at lo contain an object that a stopper
// took for a thread, and that the thread has not yet returned to its host.
static bool has_granted(uintptr_t lo, uint64_t n)
{
	for (const struct rt_proc *p = proc_first(); p; p = proc_next(p)) {
		const struct rt_mcache *mc = mcache_of(p);

		if (mc && mc->granted && (uintptr_t)mc->granted - lo < n)
			return true;
	}
	return false;
}

// pick_span asks about the objects of a span of the kind.
static void pick_span(struct mspan *s, const struct picking *k)
{
	unsigned line = epoch_alloc_line(epoch_sweepgen());
	bool granted =
	    k->granted && has_granted(s->base, s->npages * RT_PAGE_SIZE);

	for (uint32_t slot = 0; slot < s->nelems; slot++) {
		const void *obj = (const void *)mspan_object(s, slot);

		if (!mspan_test(s, line, slot) || drops_begun(s, slot) ||
		    (granted && has_granted((uintptr_t)obj, 1)))
			continue;
		if (!k->pick ||
		    hostcall_pick(k->pick, obj, mspan_usable(s), k->arg))
			drops_pick(s, slot);
	}
}

static void pick_all(unsigned kind, rt_pick_fn *pick, void *arg)
{
	const struct picking k = {pick, arg, has_granted(0, UINT64_MAX)};
	uint64_t page = 0;
	struct mspan *s;

	drops_begin_now();
	while ((s = mheap_next_span(&page)) != NULL)
		if (pageword_state(arena_pageword(mspan_page(s))) ==
			PAGEWORD_HEAP &&
		    spanclass_kind(s->spanclass) == kind)
			pick_span(s, &k);
}

// give_up ends rt_drop_now when a function of the host has left a region open,
// a no-GC stretch or a stop.
static int give_up(const struct rt_proc *p)
{
	struct visit v;

	if (door_nogc() && !p->stopper) {
		drops_abandon(p); // in a stretch the thread makes no stop
		return RT_ESTATE;
	}
	v = visit_enter(RT_STOP_HEAP_WALK);
	drops_abandon(p);
	visit_leave(&v);
	return p->stopper ? RT_EBUSY : RT_ESTATE;
}

int finalize_now(struct rt_thread *t, unsigned kind, rt_pick_fn *pick,
		 void *arg)
{
	const struct rt_proc *p = t->p;
	struct drops_object o;
	uint64_t page = 0;
	struct walk w;
	bool is_kind; // another thread may have ended it before the stop

	RT_ASSERT(t == rt_thread_tls);
	if (handlers_telling_ready() || !drops_acquire(t->p))
		return RT_EBUSY;
	schedpoint(SCHED_FINALIZE_NOW);
	visit_begin_walk(&w);
	is_kind = kinds_drops() >> kind & 1;
	if (is_kind)
		pick_all(kind, pick, arg);
	visit_end_walk(&w);
	if (!is_kind) {
		drops_release(p);
		return RT_EINVAL;
	}
	schedpoint(SCHED_FINALIZE_NOW_PICKED);
	// The warn handler may have run after the stop.
	if (!may_go_on(t))
		return give_up(p);
	while (drops_take_now(kind, &page, &o))
		if (!call_drop(t, &o))
			return give_up(p);
	drops_end_now();
	drops_release(p);
	return RT_OK;
}
