// Allocation, and questions about objects.
#define RT_NO_INLINE_ALLOC
#include <rt/alloc.h>

#include "runtime/os/settings.h"
#include "runtime/world/safepoint.h"
#include "runtime/spans/kinds.h"
#include "runtime/spans/object.h"
#include "runtime/spans/stackalloc.h"
#include "gc/host/door.h"
#include "gc/host/handlers.h"
#include "gc/host/supply.h"

// The address of every object of no bytes.
static uint64_t zerobase;

// alloc_checked is for what the current run does not hold: the place where
// arguments are checked, threads are stopped, and collections begin.  row is a
// row of runs, or a registered kind, whose number is no row's; dry is for
// struct want.
static RT_NOINLINE void *alloc_checked(rt_thread *t, unsigned row, size_t n,
				       bool dry)
{
	struct want w = {.n = n,
			 .kind = row >= RT_ROWS ? row : row == RT_ROW_WORDS,
			 .uninit = row == RT_ROW_UNINIT,
			 .dry = dry};

	// What the range can never hold is refused before anything is tried.
	if (!door_allocating(t) || n > arena.reserved ||
	    (row >= RT_ROWS && !kinds_exists(row)))
		return NULL;
	if (n == 0)
		return &zerobase;
	safepoint_poll(t);
	if (handlers_warn_mappings()) {
		if (!door_may_go_on(t))
			return NULL;
		w.dry = false; // the handler may have allocated
	}
	supply_collect_before_object(t->p);
	// The kind may have ended while the thread was stopped.
	if (row >= RT_ROWS && !kinds_exists(row))
		return NULL;
	return supply_object(t->mc, &w);
}

static_assert((int)RT_ROWS == (int)RT_KIND_FIRST, "a row or a kind");

// ---- by the table of runs ----
//
// The table of a thread is empty if it is not attached, is in a region, has the
// world stopped, or uses Go's classes.  So a run that has a start is t's own.

enum { TINY_RUN = RT_ROW_NOSCAN * RT_RUN_CLASSES + SIZECLASS_TINY };

static_assert(RT_ROW_UNINIT == 0 && RT_ROW_NOSCAN == 1 && RT_ROW_WORDS == 2,
	      "slot_of knows the rows");

// slot_of returns the slot that run i is taken from.
RT_INLINE struct mcache_slot *slot_of(struct rt_mcache *mc, unsigned i)
{
	if (i >= RT_ROW_WORDS * RT_RUN_CLASSES)
		i += SIZECLASS_COUNT - RT_ROW_WORDS * RT_RUN_CLASSES;
	else if (i >= RT_ROW_NOSCAN * RT_RUN_CLASSES)
		i -= RT_ROW_NOSCAN * RT_RUN_CLASSES;
	else
		i += SPANCLASS_BASE;
	return &mc->slots[i];
}

// may_take tells whether t may take from run i, and from its cache for that
// run, without further checks: the run is its own, and no stop waits for it.
RT_INLINE bool may_take(const rt_thread *t, unsigned i)
{
	return t->run[i].start &&
	       !__atomic_load_n(&t->pending, __ATOMIC_RELAXED);
}

// slot_for returns the slot from which t may take n bytes for run i.  Returns
// NULL if alloc_checked must decide.
RT_INLINE struct mcache_slot *slot_for(const rt_thread *t, unsigned i, size_t n)
{
	struct mcache_slot *slot;

	if (!may_take(t, i))
		return NULL;
	slot = slot_of(t->mc, i);
	return n <= slot->size ? slot : NULL;
}

// alloc_dry allocates what the cache does not have either.  It is not inline,
// because it would cost each next run an instruction.
static RT_NOINLINE void *alloc_dry(rt_thread *t, unsigned i, size_t n)
{
	return alloc_checked(t, i / RT_RUN_CLASSES, n, true);
}

// alloc_tiny serves a request that may be tiny, or of no bytes.
static RT_NOINLINE void *alloc_tiny(rt_thread *t, unsigned i, size_t n)
{
	void *obj;

	if (n == 0 || i >= RT_ROW_WORDS * RT_RUN_CLASSES ||
	    !may_take(t, TINY_RUN))
		return alloc_checked(t, i / RT_RUN_CLASSES, n, false);
	obj = mcache_take_tiny(t->mc, n);
	return obj ? obj : alloc_dry(t, i, n);
}

void *rt_alloc_slow_(rt_thread *t, unsigned i, size_t n)
{
	struct mcache_slot *slot;
	void *obj;

	__atomic_store_n(&t->nostop, 0, __ATOMIC_RELAXED);
	if (i >= RT_ROWS * RT_RUN_CLASSES)
		return NULL;
	if (n > RT_INLINE_MAX)
		return alloc_checked(t, i / RT_RUN_CLASSES, n, false);
	slot = slot_for(t, i, n);
	if (slot) {
		obj = mcache_next(t->mc, slot, false);
		return obj ? obj : alloc_dry(t, i, n);
	}
	return n < RT_NOSCAN_MIN
		   ? alloc_tiny(t, i, n)
		   : alloc_checked(t, i / RT_RUN_CLASSES, n, false);
}

// kind_slot returns the slot that t may take n bytes of a registered kind from.
// Returns NULL if alloc_checked knows more.
static struct mcache_slot *kind_slot(const rt_thread *t, unsigned kind,
				     size_t n)
{
	struct mcache_slot *slot;
	struct mcache_kind *k;

	if (n - 1 > RT_INLINE_MAX - 1 || t->run == proc_no_runs.row)
		return NULL;
	k = mcache_kind_of(t->mc, kind);
	if (!k)
		return NULL;
	slot = &k->slots[rt_class_of_((int)kind, n)];
	return slot->run->start &&
		       !__atomic_load_n(&t->pending, __ATOMIC_RELAXED)
		   ? slot
		   : NULL;
}

void *rt_alloc_of_slow_(rt_thread *t, int kind, size_t n)
{
	struct mcache_slot *slot;
	void *obj = NULL;

	if (kind == RT_NOSCAN || kind == RT_WORDS)
		return rt_alloc_row_(t, RT_ROW_NOSCAN + (unsigned)kind, n);
	__atomic_store_n(&t->nostop, 0, __ATOMIC_RELAXED);
	if (kind < RT_KIND_FIRST || kind > RT_KIND_MAX)
		return NULL;
	slot = kind_slot(t, (unsigned)kind, n);
	if (slot)
		obj = mcache_next(t->mc, slot, false);
	return obj ? obj : alloc_checked(t, (unsigned)kind, n, slot != NULL);
}

// ---- the public functions ----

void *rt_alloc(size_t n)
{
	return rt_alloc_row_(rt_thread_tls, RT_ROW_WORDS, n);
}

void *rt_alloc_noscan(size_t n)
{
	return rt_alloc_row_(rt_thread_tls, RT_ROW_NOSCAN, n);
}

void *rt_alloc_in(rt_thread *t, size_t n)
{
	return rt_alloc_row_(t, RT_ROW_WORDS, n);
}

void *rt_alloc_noscan_in(rt_thread *t, size_t n)
{
	return rt_alloc_row_(t, RT_ROW_NOSCAN, n);
}

void *rt_alloc_noscan_uninit(size_t n)
{
	return rt_alloc_row_(rt_thread_tls, RT_ROW_UNINIT, n);
}

// alloc_registered is not inline, because the compiler would then share code with
// the two kinds of every heap, for two instructions more.
static RT_NOINLINE void *alloc_registered(int kind, size_t n)
{
	return rt_alloc_of_(rt_thread_tls, kind, n);
}

void *rt_alloc_kind(int kind, size_t n)
{
	switch (kind) {
	case RT_NOSCAN:
		return rt_alloc_row_(rt_thread_tls, RT_ROW_NOSCAN, n);
	case RT_WORDS:
		return rt_alloc_row_(rt_thread_tls, RT_ROW_WORDS, n);
	default:
		return alloc_registered(kind, n);
	}
}

void *rt_alloc_of(int kind, size_t n)
{
	return rt_alloc_kind(kind, n);
}

void *rt_alloc_kind_in(rt_thread *t, int kind, size_t n)
{
	return rt_alloc_of_(t, kind, n);
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

static size_t good_size(unsigned kind, size_t n)
{
	if (n == 0 || n > SETTINGS_MAX_HEAP)
		return 0;
	if (n > SIZECLASS_MAX_REQUEST)
		return base_pages(n) << RT_PAGE_SHIFT;
	if (supply_is_tiny(kind, n))
		return SIZECLASS_TINY_SIZE;
	return sizeclass_table[supply_class(kind, n)].size;
}

size_t rt_good_size(size_t n)
{
	return good_size(KIND_WORDS, n);
}

size_t rt_good_size_of(int kind, size_t n)
{
	if (kind == RT_NOSCAN || kind == RT_WORDS)
		return good_size((unsigned)kind, n);
	if (!door_ready() || kind < RT_KIND_FIRST || kind > RT_KIND_MAX ||
	    !kinds_exists((unsigned)kind))
		return 0;
	return good_size((unsigned)kind, n);
}

// ---- stacks ----

void *rt_stack_alloc(size_t n)
{
	rt_thread *t = rt_thread_tls;

	if (!base_is_pow2(n) || n < STACKALLOC_MIN || n > arena.reserved ||
	    !door_allocating(t))
		return NULL;
	safepoint_poll(t);
	if (handlers_warn_mappings() && !door_may_go_on(t))
		return NULL;
	supply_collect_due(t->p);
	return supply_stack(t->mc, n);
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
