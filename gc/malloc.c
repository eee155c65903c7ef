// The front door of allocation.
#define RT_NO_INLINE_ALLOC
#include <rt/alloc.h>

#include "gc/config.h"
#include "gc/door.h"
#include "gc/kind.h"
#include "gc/safepoint.h"
#include "gc/supply.h"
#include "runtime/object.h"
#include "runtime/poison.h"
#include "runtime/stackalloc.h"
#include "runtime/throw.h"

// The address of every object of no bytes.
static uint64_t zerobase;

enum {
	// Up to here rt_alloc_noscan_uninit clears like rt_alloc_noscan.
	UNINIT_ABOVE = 1024,
};

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

// warn_mappings tells the host that mappings are running out.
static RT_NOINLINE void warn_mappings(void)
{
	struct text t;

	text_init(&t);
	text_str(&t, "rtheap: ");
	text_u64(&t, gauge_load(&gauges.mappings));
	text_str(&t, " mappings in use; the system allows ");
	text_u64(&t, sysmem_max_mappings());
	text_str(&t, " (vm.max_map_count)");
	door_warn(t.buf);
}

// alloc_checked is for whatever the current run does not hold: the place where
// arguments are looked at, threads stand, and collections begin.
static RT_NOINLINE void *alloc_checked(rt_thread *t, int kind, size_t n,
				       bool uninit)
{
	void *obj;

	// What the range can never hold is refused before anything is tried.
	if (!door_allocating(t) || !gckind_valid(kind) || n > arena.reserved)
		return NULL;
	if (n == 0)
		return &zerobase;
	safepoint_poll(t);
	if (sysmem_mappings_crossed()) {
		warn_mappings();
		if (!may_go_on(t))
			return NULL;
	}
	if (stress_due())
		supply_collect(t->p, GCASK_DUE);
	else
		supply_collect_due(t->p);
	obj = supply_object(t->mc, (unsigned)kind, n, uninit);
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
	return sizeclass_table[supply_class(n)].size;
}

// ---- stacks ----

void *rt_stack_alloc(size_t n)
{
	rt_thread *t = rt_thread_tls;

	if (!base_is_pow2(n) || n < STACKALLOC_MIN || n > arena.reserved ||
	    !door_allocating(t))
		return NULL;
	safepoint_poll(t);
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
