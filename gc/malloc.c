// The front door of allocation.
#define RT_NO_INLINE_ALLOC
#include <rt/alloc.h>
#include <string.h>

#include "gc/config.h"
#include "gc/cycle.h"
#include "gc/door.h"
#include "gc/kind.h"
#include "gc/pacer.h"
#include "gc/refill.h"
#include "gc/safepoint.h"
#include "gc/worker.h"
#include "runtime/object.h"
#include "runtime/poison.h"
#include "runtime/stackalloc.h"

// The address of every object of no bytes.
static uint64_t zerobase;

enum {
	// From here on a large object is cleared as in a blocking region, so
	// that a stop does not wait for it (about 10 us of clearing).
	CLEAR_BLOCKED = 256 << 10,
	// Up to here rt_alloc_noscan_uninit clears like rt_alloc_noscan.
	UNINIT_ABOVE = 1024,
};

// What is asked for.
struct request {
	size_t n;
	unsigned kind;
	bool uninit;
};

// ---- large objects ----

// clear_large zeroes an object that nobody else can reach.  A collection that
// passes meanwhile finds it in setting_up, and keeps it without scanning it.
static void clear_large(struct rt_mcache *mc, struct mspan *s)
{
	struct rt_proc *p = mc->thread.p;
	void *obj = (void *)mspan_object(s, 0);
	size_t n = mspan_usable(s);

	if (n < CLEAR_BLOCKED) {
		memset(obj, 0, n);
		return;
	}
	mc->setting_up = s;
	context_save(&p->context.frame);
	proc_block(p);
	memset(obj, 0, n);
	proc_unblock(p);
	mc->setting_up = NULL;
}

// finish_large makes an object of a span of its own; NULL: there is none.
RT_INLINE void *finish_large(struct rt_mcache *mc, const struct request *r,
			     struct mspan *s)
{
	if (!s)
		return NULL;
	if (s->needzero && !r->uninit)
		clear_large(mc, s);
	mheap_publish_large(s);
	return (void *)mspan_object(s, 0);
}

static void *alloc_large(struct rt_mcache *mc, const struct request *r)
{
	return finish_large(mc, r,
			    gcrefill_large(mc, mc->thread.p, r->kind, r->n));
}

// ---- guarded objects ----

// random_below is a number below n, the next of a sequence that every heap
// begins anew.  n is not 0.
static uint64_t random_below(uint64_t n)
{
	uint64_t x = atomic_u64_add_relaxed(&door.guard_draws, 1);

	x *= UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
	return (x >> 32) % n;
}

// sampled tells whether a small object is one of those that are guarded: in
// the mean one of n, at distances that no loop of the host keeps step with.
static bool sampled(struct rt_mcache *mc)
{
	uint64_t n = door.config.guard_small;

	if (n == 0)
		return false;
	if (mc->until_guarded == 0)
		mc->until_guarded = 1 + random_below(2 * n - 1);
	return --mc->until_guarded == 0;
}

// alloc_guarded returns NULL for an object that is not to be guarded, or
// cannot.
static RT_NOINLINE void *alloc_guarded(struct rt_mcache *mc,
				       const struct request *r)
{
	bool wanted = r->n > SIZECLASS_MAX_REQUEST
			  ? door.config.guard_large != 0
			  : sampled(mc);

	if (!wanted)
		return NULL;
	return finish_large(mc, r,
			    gcrefill_guarded(mc, mc->thread.p, r->kind, r->n));
}

// ---- small objects ----

static void *alloc_slot(struct rt_mcache *mc, spanclass sc, bool uninit)
{
	void *obj = mcache_bump(mc, sc);

	if (obj)
		return obj;
	if (!gcrefill_small(mc, mc->thread.p, sc, uninit))
		return NULL;
	return mcache_bump(mc, sc);
}

static void *alloc_tiny(struct rt_mcache *mc, size_t n)
{
	void *obj = mcache_tiny(mc, n);

	if (obj)
		return obj;
	obj = alloc_slot(mc, SPANCLASS_TINY, false);
	if (obj)
		mcache_set_tiny(mc, obj, n);
	return obj;
}

static unsigned class_of(size_t n)
{
	return arena.align8 ? sizeclass_of(n) : sizeclass_of16(n);
}

static void *alloc_once(struct rt_mcache *mc, const struct request *r)
{
	if (RT_UNLIKELY(guard_on)) {
		void *obj = alloc_guarded(mc, r);

		if (obj)
			return obj;
	}
	if (r->n > SIZECLASS_MAX_REQUEST)
		return alloc_large(mc, r);
	if (r->n < SIZECLASS_TINY_SIZE && r->kind == KIND_NOSCAN)
		return alloc_tiny(mc, r->n);
	return alloc_slot(mc, spanclass_make(class_of(r->n), r->kind),
			  r->uninit);
}

// ---- when memory runs out ----

// may_go_on tells whether t, whose handler has just run, may still allocate:
// the handler may have detached the thread, or worse.
static bool may_go_on(const struct rt_thread *t)
{
	return rt_thread_tls == t && door_allocating(t);
}

// alloc_short asks again after a collection, as long as the host's handler
// says so: what the handler let go of is free only after another one.  The
// handler runs with nothing held and may longjmp.
static void *alloc_short(struct rt_mcache *mc, const struct request *r)
{
	struct door_oom oom;
	void *obj;

	do {
		worker_provide(mc->thread.p, gccycle_force(mc->thread.p));
		obj = alloc_once(mc, r);
		if (obj)
			return obj;
		oom = door_oom();
	} while (oom.fn && oom.fn(r->n, oom.arg) == 1 &&
		 may_go_on(&mc->thread));
	return NULL;
}

// open_object lets the host touch all of a new object, of which rt_size tells.
static void open_object(const void *obj)
{
	struct object o;

	if (object_find((uintptr_t)obj, &o))
		poison_open((const void *)o.base, o.size);
}

// stress_due tells whether this allocation is one of those that collect.
static bool stress_due(void)
{
	uint32_t n = door.config.gcstress;

	return RT_UNLIKELY(n != 0) &&
	       atomic_u64_add_relaxed(&door.stress_count, 1) % n == 0;
}

// alloc_checked is for whatever the current run does not hold: the place where
// arguments are looked at, threads stand, and collections begin.
static RT_NOINLINE void *alloc_checked(rt_thread *t, int kind, size_t n,
				       bool uninit)
{
	struct request r = {.n = n, .kind = (unsigned)kind, .uninit = uninit};
	void *obj;

	// What the range can never hold is refused before anything is tried.
	if (!door_allocating(t) || !gckind_valid(kind) || n > arena.reserved)
		return NULL;
	if (n == 0)
		return &zerobase;
	safepoint_poll(t);
	if (stress_due())
		worker_provide(t->p, gccycle_force(t->p));
	else if (gcpacer_due(gauge_load(&gauges.heap_live)))
		worker_provide(t->p, gccycle_collect(t->p, false));
	obj = alloc_once(t->mc, &r);
	if (!obj)
		obj = alloc_short(t->mc, &r);
	if (RT_UNLIKELY(poison_on))
		open_object(obj);
	return obj;
}

// take_slot takes the next slot of the current run, or of the one after it in
// the same span, by the table that t may use: it is empty for a thread that is
// not attached, is in a region, has the world stopped, or uses Go's classes.
// NULL: alloc_checked knows more.
static inline void *take_slot(const rt_thread *t, unsigned kind, size_t n)
{
	unsigned c = sizeclass_of16(n);
	struct rt_run *run = &t->run[kind * RT_RUN_CLASSES + c];
	size_t size = sizeclass_table[c].size;

	// A run that has a start is, or was, one of t's own.
	if ((uintptr_t)run->cur - (uintptr_t)run->start < size &&
	    (!run->start ||
	     !mcache_next_run(t->mc, spanclass_make(c, kind), false)))
		return NULL;
	return run->cur -= size;
}

// take_tiny does the same for a request that is combined with others.
static RT_NOINLINE void *take_tiny(const rt_thread *t, size_t n)
{
	void *obj;

	if (!t->run[KIND_NOSCAN * RT_RUN_CLASSES + SIZECLASS_TINY].start)
		return NULL;
	obj = mcache_tiny(t->mc, n);
	if (obj)
		return obj;
	obj = take_slot(t, KIND_NOSCAN, SIZECLASS_TINY_SIZE);
	if (obj)
		mcache_set_tiny(t->mc, obj, n);
	return obj;
}

static inline void *allocate(rt_thread *t, int kind, size_t n, bool uninit)
{
	__atomic_store_n(&t->nostop, 0, __ATOMIC_RELAXED);
	if (n - 1 < RT_INLINE_MAX && gckind_valid(kind) &&
	    !__atomic_load_n(&t->pending, __ATOMIC_RELAXED)) {
		bool tiny = n < SIZECLASS_TINY_SIZE && kind == KIND_NOSCAN;
		void *obj =
		    tiny ? take_tiny(t, n) : take_slot(t, (unsigned)kind, n);

		if (obj)
			return obj;
	}
	return alloc_checked(t, kind, n, uninit);
}

// ---- the public functions ----

void *rt_alloc_slow_(rt_thread *t, int kind, size_t n)
{
	return allocate(t, kind, n, false);
}

void *rt_alloc(size_t n)
{
	return allocate(rt_thread_tls, RT_WORDS, n, false);
}

void *rt_alloc_noscan(size_t n)
{
	return allocate(rt_thread_tls, RT_NOSCAN, n, false);
}

void *rt_alloc_in(rt_thread *t, size_t n)
{
	return allocate(t, RT_WORDS, n, false);
}

void *rt_alloc_noscan_in(rt_thread *t, size_t n)
{
	return allocate(t, RT_NOSCAN, n, false);
}

void *rt_alloc_noscan_uninit(size_t n)
{
	return allocate(rt_thread_tls, RT_NOSCAN, n, n > UNINIT_ABOVE);
}

void *rt_alloc_kind(int kind, size_t n)
{
	return allocate(rt_thread_tls, kind, n, false);
}

// ---- questions ----

size_t rt_size(const void *obj)
{
	struct object o;

	return door_ready() && object_find((uintptr_t)obj, &o) ? o.size : 0;
}

void *rt_base(const void *p)
{
	struct object o;

	return door_ready() && object_find((uintptr_t)p, &o) ? (void *)o.base
							     : NULL;
}

int rt_is_heap(const void *p)
{
	return rt_base(p) != NULL;
}

size_t rt_good_size(size_t n)
{
	if (n == 0 || n > CONFIG_MAX_HEAP)
		return 0;
	if (n > SIZECLASS_MAX_REQUEST)
		return base_pages(n) << RT_PAGE_SHIFT;
	return sizeclass_table[class_of(n)].size;
}

// ---- stacks ----

void *rt_stack_alloc(size_t n)
{
	rt_thread *t = rt_thread_tls;

	if (!base_is_pow2(n) || n < STACKALLOC_MIN || !door_allocating(t))
		return NULL;
	return stackalloc(t->mc, t->p, n);
}

int rt_stack_free(void *p, size_t n)
{
	int error;

	if (!p)
		return RT_EINVAL;
	error = door_attached(false);
	if (error)
		return error;
	return stackfree(rt_thread_tls->mc, proc_self(), p, n) ? RT_OK
							       : RT_EINVAL;
}
