// Takes one object or stack from caches, from spans, or after a collection.
#include "gc/host/supply.h"

#include <string.h>

#include "runtime/os/oscall.h"
#include "runtime/os/schedpoint.h"
#include "runtime/os/probe.h"
#include "runtime/os/throw.h"
#include "runtime/os/settings.h"
#include "runtime/os/poison.h"
#include "runtime/world/safepoint.h"
#include "runtime/world/stw.h"
#include "runtime/world/gcstats.h"
#include "runtime/spans/object.h"
#include "runtime/spans/stackalloc.h"
#include "gc/mark/typed.h"
#include "gc/cycle/pacer.h"
#include "gc/cycle/release.h"
#include "gc/cycle/refill.h"
#include "gc/cycle/cycle.h"
#include "gc/cycle/worker.h"
#include "gc/cycle/scavenger.h"
#include "gc/host/door.h"
#include "gc/host/handlers.h"
#include "gc/host/slices.h"
#include "gc/host/finalize.h"

enum {
	// A large object from this size on is cleared as in a blocking region,
	// so that a stop does not wait for it (about 10 us of clearing).
	CLEAR_BLOCKED = 256 << 10,
	// An object from this size on counts for the memory limit before it is
	// allocated.  Smaller ones count when the next object is allocated.
	LARGE = 256 << 10,
};

uint64_t supply_zerobase;

static atomic_u64 stress_count; // allocations under gcstress

void supply_reset(void)
{
	atomic_u64_store_relaxed(&stress_count, 0);
}

// ---- large objects ----

// clear_large zeroes an object that no other thread can reach.  A collection
// that runs meanwhile finds it in setting_up, and keeps it without scanning it.
static void clear_large(struct rt_mcache *mc, struct mspan *s)
{
	struct rt_proc *p = mc->thread.p;
	void *obj = (void *)mspan_object(s, 0);
	size_t n = mspan_usable(s);

	if (n < CLEAR_BLOCKED || door_nogc()) {
		memset(obj, 0, n);
		return;
	}
	context_save(&p->context.frame);
	proc_block(p);
	memset(obj, 0, n);
	proc_unblock(p);
	context_keep();
}

// finish_large clears the large object that is being set up, and publishes it.
// Its thread must call it, with the world running.
static void finish_large(struct rt_mcache *mc, const struct want *w)
{
	struct mspan *s = mc->setting_up;

	RT_ASSERT(mc == rt_thread_tls->mc && !stw_stopped());
	if (s->needzero && !w->uninit)
		clear_large(mc, s);
	mheap_publish_large(s);
	mc->setting_up = NULL;
}

// set_up notes a span of one object, which finish_large finishes.  s is NULL if
// there is none.
RT_INLINE void *set_up(struct rt_mcache *mc, struct mspan *s)
{
	RT_ASSERT(!mc->setting_up);
	mc->setting_up = s;
	return s ? (void *)mspan_object(s, 0) : NULL;
}

// ---- guarded objects ----

// sampled tells whether a small object is to be guarded.  On average one of n
// is.  The distances are random, so that no loop of the host keeps step with
// them.
static bool sampled(struct rt_mcache *mc)
{
	uint64_t n = settings()->guard_small;

	if (n == 0)
		return false;
	if (mc->until_guarded == 0)
		mc->until_guarded = 1 + guard_draw(2 * n - 1);
	return --mc->until_guarded == 0;
}

static bool is_guarded(struct rt_mcache *mc, struct want *w)
{
	if (w->guard == GUARD_UNDECIDED) {
		bool wanted = w->n > SIZECLASS_MAX_REQUEST
				  ? settings()->guard_large != 0
				  : sampled(mc);

		w->guard = wanted ? GUARD_WANTED : GUARD_NONE;
	}
	return w->guard == GUARD_WANTED;
}

// take_guarded returns NULL for an object that should not or cannot be guarded,
// or not before more is swept.
static RT_NOINLINE void *take_guarded(struct rt_mcache *mc, struct rt_proc *p,
				      struct want *w)
{
	if (!is_guarded(mc, w))
		return NULL;
	return set_up(mc, refill_guarded(mc, p, w->kind, w->n));
}

// may_do_without tells whether an object that could not get a guard may come
// without one: not as long as sweeping may find room for it.
static bool may_do_without(const struct want *w)
{
	return w->guard != GUARD_WANTED || !sweep_left();
}

// ---- small objects ----

RT_INLINE unsigned class_of(const struct want *w)
{
	unsigned kind = w->kind;

	if (RT_UNLIKELY(kind > KIND_WORDS))
		return supply_class(w->narrow ? KIND_ALIGN8 : kind, w->n);
	return supply_class(kind, w->n);
}

// take_small takes an object from the cache or, if that has none, from another
// span.
static void *take_small(struct rt_mcache *mc, struct rt_proc *p,
			const struct want *w)
{
	spanclass sc = spanclass_make(class_of(w), w->kind);
	struct mcache_slot *slot = mcache_slot_of(mc, sc, w->uninit);
	void *obj;

	if (RT_UNLIKELY(!slot))
		return NULL;
	obj = w->dry ? NULL : mcache_take(mc, slot, w->uninit);

	return obj ? obj : refill_small(mc, p, slot, w->uninit);
}

// take_tiny takes a part of a tiny block, from the cache or from another span.
static void *take_tiny(struct rt_mcache *mc, struct rt_proc *p,
		       const struct want *w)
{
	void *obj = w->dry ? NULL : mcache_take_tiny(mc, w->n);

	if (obj)
		return obj;
	obj = refill_small(mc, p, &mc->slots[SPANCLASS_TINY], false);
	if (obj)
		mcache_set_tiny(mc, obj, w->n);
	return obj;
}

// ---- anything ----

// take takes memory for the thread of mc, counted by p.  p is that thread's P,
// or the stopper's P while that thread is stopped.  A large object is left in
// setting_up.
static void *take(struct rt_mcache *mc, struct rt_proc *p, struct want *w)
{
	RT_ASSERT(mc == rt_thread_tls->mc ? p == proc_self() : stw_stopped());
	if (w->stack)
		return stackalloc(mc, p, w->n);
	// The guard of an object decides where the object is, so an object with
	// an alignment has none.
	if (RT_UNLIKELY(guard_on) && w->align == 0) {
		void *obj = take_guarded(mc, p, w);

		if (obj || !may_do_without(w))
			return obj;
	}
	if (w->align > RT_PAGE_SIZE)
		return set_up(mc,
			      refill_aligned(mc, p, w->kind, w->n, w->align));
	if (w->n > SIZECLASS_MAX_REQUEST)
		return set_up(mc, refill_large(mc, p, w->kind, w->n));
	return supply_is_tiny(w->kind, w->n) ? take_tiny(mc, p, w)
					     : take_small(mc, p, w);
}

// unpoison_object unpoisons all bytes of a new object that rt_size counts.
static RT_NOINLINE void unpoison_object(const void *obj)
{
	struct object o;

	if (object_find((uintptr_t)obj, &o))
		poison_unpoison((const void *)o.base, o.size);
}

// ---- collections ----

// A thread without memory, and what it gets.
struct request {
	struct ask ask; // first: the leader gets a list of these
	struct rt_mcache *mc;
	struct want *want;
	void *result;
};

// flush_all flushes what threads were given in this stop, so that the next
// request finds all the room.
static void flush_all(struct rt_proc *p)
{
	mcache_flush_all(p);
	stackalloc_flush_all(p);
	mcache_flush_pages_all();
}

// note_type writes the type bits of an object that was taken in a stop.  The
// thread that gets it must not write them: before that thread runs, another
// collection may give its span to a third thread, which writes bits in the same
// word.
static void note_type(struct want *w, void *obj)
{
	RT_ASSERT(stw_stopped());
	typed_note_found(w->type, w->count, (uintptr_t)obj);
	w->type = NULL;
}

// serve answers one request.  The world must be stopped.  *taken says whether
// earlier requests have taken memory since the last flush.  Memory that they
// took and did not need is in caches.
static void serve(struct rt_proc *p, struct request *r, bool *taken)
{
	// The kind may have ended while the thread was stopped.
	bool exists = r->want->stack || kinds_exists(r->want->kind);
	void *v;

	RT_ASSERT(stw_stopped() && !r->mc->granted && !r->mc->granted_stack);
	v = exists ? take(r->mc, p, r->want) : NULL;
	if (!v && exists && *taken) {
		flush_all(p);
		v = take(r->mc, p, r->want);
		*taken = false;
	}
	*taken |= v != NULL;
	r->result = v;
	// Until its thread runs, nothing else keeps the object alive, or knows
	// of the stack.
	if (r->want->stack) {
		r->mc->granted_stack = v;
		r->mc->granted_bytes = r->want->n;
	} else if (!r->mc->setting_up) {
		r->mc->granted = v;
		// It is an object from now on: before its thread runs, another
		// collection may trace it, and a host's walk may find it.
		if (RT_UNLIKELY(poison_on))
			unpoison_object(v);
		if (v && r->want->type)
			note_type(r->want, v);
	}
}

static void serve_all(struct rt_proc *p, struct ask *asked)
{
	bool taken = false;

	for (struct ask *a = asked; a; a = a->next)
		if (a->cause == ASK_MEMORY)
			serve(p, (struct request *)a, &taken);
}

// collect returns when an ask was answered, by this thread or by another.  If
// this thread collects, it ends the previous sweep before the stop.
static void collect(struct rt_proc *p, struct ask *a)
{
	struct ask *asked;

	if (!ask_wait(p, a))
		return;
	slices_rest(rt_thread_tls);
	asked = cycle_begin(p);
	serve_all(p, asked);
	worker_provide(p, cycle_end(p, asked));
	scavenger_advise(p);
	schedpoint(SCHED_COLLECT_PROVIDED);
	scavenger_provide(p);
}

// supply_collect is not inline: its callers below are on the path of each
// allocation that needs a span, and seldom call it.
RT_NOINLINE void supply_collect(struct rt_proc *p, enum ask_cause cause)
{
	struct ask a = {.cause = cause};

	collect(p, &a);
}

// used returns the bytes that count for the goal.
RT_INLINE uint64_t used(void)
{
	return pacer_used(gauge_load(&gauges.heap_live),
			  gauge_load(&gauges.stack_inuse),
			  gauge_load(&gauges.external));
}

// learn_processors reads the limit of processor time before the limiter first
// decides about a collection, or about releasing pages, for a limit.  A stop
// must not wait for this thread while it reads files.
static void learn_processors(struct rt_proc *p)
{
	if (!pacer_has_limit() || worker_knows_processors())
		return;
	context_save(&p->context.frame);
	proc_block(p);
	worker_processors();
	proc_unblock(p);
	context_keep();
}

// collect_due sweeps the rest, and collects if that is still due.  The goal is
// right only after the sweep, which may raise it.
static RT_NOINLINE void collect_due(struct rt_proc *p)
{
	if (door_nogc())
		return;
	learn_processors(p);
	slices_rest(rt_thread_tls);
	if (pacer_due(used()) && !pacer_put_off(used(), gcstats_cpu()))
		supply_collect(p, ASK_DUE);
}

// keep_limit releases pages until more bytes can be mapped without exceeding
// the memory limit, no pages are left, or the limiter puts that off.  It sweeps
// first, so that pages of the dead are free.  In a no-GC stretch it does not
// sweep, and releases one step.
static RT_NOINLINE void keep_limit(struct rt_proc *p, size_t more)
{
	if (!door_nogc())
		learn_processors(p);
	do {
		if (pacer_limits(gcstats_cpu())) {
			release_put_off();
			return;
		}
		if (door_nogc()) {
			release_step(p); // the rest would keep stops waiting
			return;
		}
		if (!swept_slice(p)) {
			// Another thread may be about to free pages.
			if (swept_over())
				release_step(p);
			else
				slices_await(rt_thread_tls);
		}
		safepoint_poll(rt_thread_tls);
	} while (release_due(more));
}

// end_sweep does what the thread that swept last could not do.
static RT_NOINLINE void end_sweep(struct rt_proc *p)
{
	swept_end();
	if (!door_nogc())
		scavenger_advise(p);
}

// do_due does what is due: it ends a sweep, collects, and calls the background
// thread.  Then it releases pages if mapping more bytes would exceed the memory
// limit.
static RT_NOINLINE void do_due(struct rt_proc *p, size_t more)
{
	uint64_t now;

	if (swept_unfinished())
		end_sweep(p);
	now = used();
	if (pacer_due(now))
		collect_due(p);
	else if (scavenger_grown(now + more) && !door_nogc())
		scavenger_grew(p, now + more);
	if (ahead_due())
		scavenger_call_ahead();
	if (release_due(more))
		keep_limit(p, more);
}

// is_due tells whether do_due may have something to do.  Each allocation that
// needs a span asks.
RT_INLINE bool is_due(size_t more)
{
	uint64_t now = used();

	return RT_UNLIKELY(swept_unfinished() || pacer_due(now) ||
			   scavenger_grown(now + more) || ahead_due() ||
			   release_due(more));
}

void supply_adjust_external(struct rt_mcache *mc, int64_t delta)
{
	RT_ASSERT(mc == rt_thread_tls->mc);
	gauge_adjust(&gauges.external, delta);
	if (delta < 0)
		pacer_external_fell(gauge_load(&gauges.external));
	else if (pacer_due(used()) && !door_nogc())
		mcache_flush(mc, mc->thread.p);
}

// stress_due tells whether this allocation is one of those that collect.
static bool stress_due(void)
{
	uint32_t n = settings()->gcstress;

	return RT_UNLIKELY(n != 0) && !door_nogc() &&
	       atomic_u64_add_relaxed(&stress_count, 1) % n == 0;
}

// before_object does what is due before an object of n bytes is allocated.  If
// gcstress says that this allocation collects, it only collects.
RT_INLINE void before_object(struct rt_proc *p, size_t n)
{
	size_t more = n < LARGE ? 0 : n;

	if (stress_due())
		supply_collect(p, ASK_STRESS);
	else if (is_due(more))
		do_due(p, more);
}

// ---- when memory runs out ----

// take_collected takes memory from a collection.
static void *take_collected(struct rt_mcache *mc, struct want *w)
{
	struct request r = {.ask.cause = ASK_MEMORY, .mc = mc, .want = w};

	RT_ASSERT(mc == rt_thread_tls->mc);
	collect(mc->thread.p, &r.ask);
	mc->granted = mc->granted_stack = NULL;
	return r.result;
}

// take_short takes memory from a collection.  As long as the host's handler
// says so, it collects once more, because what the handler dropped is free only
// after that.  In a no-GC stretch it neither collects nor calls the handler.
static RT_NOINLINE void *take_short(struct rt_mcache *mc, struct want *w)
{
	const uint64_t attachments = door_attachments;
	void *v;

	if (door_nogc())
		return NULL;
	do {
		v = take_collected(mc, w);
		if (!v)
			probe_out_of_memory(w->n,
					    gauge_load(&gauges.heap_live));
	} while (!v && (w->stack || kinds_exists(w->kind)) &&
		 handlers_ask_oom(w->n, __builtin_frame_address(0)) &&
		 door_stayed(&mc->thread, attachments) && !door_nogc());
	return v;
}

// has_kind tells whether the kind of what is wanted, if any, exists: it may
// have ended while the thread was stopped.
static bool has_kind(const struct want *w)
{
	return w->stack || w->kind < KIND_TYPED || kinds_exists(w->kind);
}

// sweep_some sweeps a chunk, if that was not done since left was read.  If
// other threads are in the last ones, it waits for them.
static void sweep_some(struct rt_mcache *mc, uint64_t left)
{
	schedpoint(SCHED_SWEEP_SOME);
	if (left == atomic_u64_load_relaxed(&sweep.left) &&
	    !swept_slice(mc->thread.p))
		slices_await(&mc->thread);
}

// take_swept tries again, in slices, until all is swept (refill.h), and then
// once more.  In a no-GC stretch it does not poll.
static RT_NOINLINE void *take_swept(struct rt_mcache *mc, struct want *w)
{
	void *obj = NULL;
	bool over;

	do {
		uint64_t left;

		schedpoint(SCHED_TAKE_SWEPT);
		if (!door_nogc())
			safepoint_poll(&mc->thread);
		if (!has_kind(w))
			return NULL;
		// No sweep can begin from here on until the next poll.
		left = atomic_u64_load_relaxed(&sweep.left);
		over = swept_over();
		obj = take(mc, mc->thread.p, w);
		if (!obj && !over)
			sweep_some(mc, left);
	} while (!obj && !over);
	return obj;
}

void *supply_object(struct rt_mcache *mc, struct want *w)
{
	bool over = swept_over();
	void *obj = take(mc, mc->thread.p, w);

	// A refill that fails leaves nothing in the cache, nor does a
	// collection.
	if (!obj)
		w->dry = true;
	if (!obj && !over)
		obj = take_swept(mc, w);
	if (!obj && has_kind(w))
		obj = take_short(mc, w);
	// Without an object mc may be gone: the handler may have detached the
	// thread.
	if (obj && mc->setting_up)
		finish_large(mc, w);
	if (RT_UNLIKELY(poison_on))
		unpoison_object(obj);
	return obj;
}

// ---- what the host is told before ----
//
// These call handlers of the host, if need be.  They return false if a handler
// has not left the thread as it was (door_stayed).  They are seldom called, and
// not inline: a request should save few registers.

static RT_NOINLINE bool tell_warnings(struct rt_thread *t)
{
	const uint64_t attachments = door_attachments;

	return !handlers_warn_pending() || door_stayed(t, attachments);
}

static RT_NOINLINE bool tell_news(struct rt_thread *t)
{
	const uint64_t attachments = door_attachments;

	return !finalize_tell() || door_stayed(t, attachments);
}

static RT_NOINLINE bool tell_notices(struct rt_thread *t)
{
	const uint64_t attachments = door_attachments;

	return !handlers_tell_notices() || door_stayed(t, attachments);
}

// ---- requests ----

void *supply_request(struct rt_thread *t, struct want *w)
{
	RT_ASSERT(t == rt_thread_tls);
	// A request that the range can never hold is refused before anything is
	// tried.
	if (!door_supplying_to(t, "an allocation") || w->n > arena.reserved ||
	    (w->kind >= KIND_TYPED && !kinds_exists(w->kind)))
		return NULL;
	if (w->n == 0)
		return &supply_zerobase;
	safepoint_poll(t);
	if (handlers_warning_due() || finalize_has_news()) {
		if (!tell_warnings(t) || !tell_news(t))
			return NULL;
		w->dry = false; // a handler may have allocated
	}
	before_object(t->p, w->n);
	if (RT_UNLIKELY(notices_left() != 0)) {
		if (!tell_notices(t))
			return NULL;
		w->dry = false;
	}
	// The kind may have ended while the thread was stopped.
	if (w->kind >= KIND_TYPED && !kinds_exists(w->kind))
		return NULL;
	return supply_object(t->mc, w);
}

size_t supply_aligned(size_t align, size_t n)
{
	// A tiny block aligns a part to the greatest power of two, up to 8,
	// that divides the part's size.
	n = base_align_up(n, base_min(align, RT_GRANULE));
	if (align <= RT_GRANULE || align > RT_PAGE_SIZE ||
	    n > SIZECLASS_MAX_REQUEST)
		return n;
	for (unsigned c = sizeclass_of(n); c < SIZECLASS_COUNT; c++)
		if (sizeclass_table[c].size % align == 0)
			return sizeclass_table[c].size;
	return n;
}

size_t supply_many(struct rt_thread *t, struct want *w, size_t count,
		   void **out)
{
	struct rt_mcache *mc;
	uint64_t left;
	size_t n = 0;
	void *obj = count != 0 ? supply_request(t, w) : NULL;

	if (!obj)
		return 0;
	out[n++] = obj;
	mc = t->mc;
	w->dry = false;
	w->guard = GUARD_UNDECIDED;
	// Between two chunks that it sweeps, the thread has to poll.
	left = atomic_u64_load_relaxed(&sweep.left);
	// A large object may be cleared while the thread counts as blocked, so
	// it is allocated alone.
	while (n < count && w->n <= SIZECLASS_MAX_REQUEST &&
	       left == atomic_u64_load_relaxed(&sweep.left) &&
	       !pacer_due(used()) && !release_due(0)) {
		obj = w->n == 0 ? &supply_zerobase : take(mc, t->p, w);
		if (!obj)
			break;
		if (mc->setting_up)
			finish_large(mc, w);
		if (RT_UNLIKELY(poison_on))
			unpoison_object(obj);
		w->guard = GUARD_UNDECIDED;
		out[n++] = obj;
	}
	return n;
}

// sweep_for_stack sweeps until a stack, or the pages for one, are free, or no
// chunk is left to take.  In a no-GC stretch it does not sweep.  A stack of
// less than STACKALLOC_SPAN bytes comes from a span of that size.
static RT_NOINLINE void sweep_for_stack(struct rt_mcache *mc, size_t n)
{
	uint64_t npages = base_pages(base_max(n, STACKALLOC_SPAN));

	while (sweep_left() && !door_nogc() && !stackalloc_has(mc, n) &&
	       !mheap_fits(NULL, npages)) {
		swept_slice(mc->thread.p);
		safepoint_poll(&mc->thread);
	}
}

// find_stack takes a stack after a sweep, or from a collection.  over says
// whether the sweep was over: then there was no stack to take.
static RT_NOINLINE void *find_stack(struct rt_mcache *mc, size_t n, bool over)
{
	struct want w = {.n = n, .stack = true};
	void *v = NULL;

	if (!over) {
		sweep_for_stack(mc, n);
		v = stackalloc(mc, mc->thread.p, n);
		if (!v)
			v = take_swept(mc, &w);
	}
	return v ? v : take_short(mc, &w);
}

void *supply_stack(struct rt_thread *t, size_t n)
{
	bool over;
	void *v;

	RT_ASSERT(t == rt_thread_tls);
	safepoint_poll(t);
	if (handlers_warning_due() && !tell_warnings(t))
		return NULL;
	if (is_due(n))
		do_due(t->p, n);
	if (RT_UNLIKELY(notices_left() != 0) && !tell_notices(t))
		return NULL;
	over = swept_over();
	v = RT_LIKELY(over) ? stackalloc(t->mc, t->p, n) : NULL;
	return v ? v : find_stack(t->mc, n, over);
}
