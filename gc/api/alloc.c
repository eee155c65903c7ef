// Allocation, and questions about objects.
#define RT_NO_INLINE_ALLOC
#include <rt/alloc.h>

#include <string.h>

#include "runtime/os/settings.h"
#include "runtime/world/safepoint.h"
#include "runtime/spans/kinds.h"
#include "runtime/spans/object.h"
#include "runtime/spans/stackalloc.h"
#include "gc/mark/typed.h"
#include "gc/cycle/scavenger.h"
#include "gc/host/door.h"
#include "gc/host/handlers.h"
#include "gc/host/supply.h"
#include "gc/host/registry.h"

// alloc_checked allocates an object for which the current run has no slot.  row
// is the number of a row of runs or of a registered kind; no number is both.
// dry has the meaning of want.dry (gc/host/supply.h).
static RT_NOINLINE void *alloc_checked(rt_thread *t, unsigned row, size_t n,
				       bool dry)
{
	struct want w = {.n = n,
			 .kind = row >= RT_ROWS ? row : row == RT_ROW_WORDS,
			 .uninit = row == RT_ROW_UNINIT,
			 .dry = dry};

	return supply_request(t, &w);
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

// alloc_dry allocates an object for which the thread's cache has no slot
// either.  It is not inline, because that would cost each next run an
// instruction.
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

// alloc_long serves a request that is small, but too long for the inline path.
// A slot that the cache has needs no more checks than on that path.  (In a
// collection the table is not empty, but the cache is: it was flushed.)
static RT_NOINLINE void *alloc_long(rt_thread *t, unsigned row, size_t n)
{
	unsigned kind = row == RT_ROW_WORDS ? KIND_WORDS : KIND_NOSCAN;
	bool uninit = row == RT_ROW_UNINIT;
	void *obj;

	if (t->run == proc_no_runs.row ||
	    __atomic_load_n(&t->pending, __ATOMIC_RELAXED))
		return alloc_checked(t, row, n, false);
	obj = mcache_take(t->mc,
			  &t->mc->slots[spanclass_make(sizeclass_of(n), kind)],
			  uninit);
	return obj ? obj : alloc_checked(t, row, n, true);
}

void *rt_alloc_slow_(rt_thread *t, unsigned i, size_t n)
{
	struct mcache_slot *slot;
	void *obj;

	__atomic_store_n(&t->nostop, 0, __ATOMIC_RELAXED);
	if (i >= RT_ROWS * RT_RUN_CLASSES)
		return NULL;
	if (n > RT_INLINE_MAX)
		return n > SIZECLASS_MAX_REQUEST
			   ? alloc_checked(t, i / RT_RUN_CLASSES, n, false)
			   : alloc_long(t, i / RT_RUN_CLASSES, n);
	slot = slot_for(t, i, n);
	if (slot) {
		obj = mcache_next(t->mc, slot, false);
		return obj ? obj : alloc_dry(t, i, n);
	}
	return n < RT_NOSCAN_MIN
		   ? alloc_tiny(t, i, n)
		   : alloc_checked(t, i / RT_RUN_CLASSES, n, false);
}

// kind_slot returns the slot from which t may take n bytes of a kind.  Its
// class is the one that n bytes have in the kind `like`.  Returns NULL if
// supply_request must decide.
RT_INLINE struct mcache_slot *kind_slot(const rt_thread *t, unsigned kind,
					int like, size_t n)
{
	struct mcache_slot *slot;
	struct mcache_kind *k;

	if (n - 1 > RT_INLINE_MAX - 1 || t->run == proc_no_runs.row)
		return NULL;
	k = mcache_kind_of(t->mc, kind);
	if (!k)
		return NULL;
	slot = &k->slots[rt_class_of_(like, n)];
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
	slot = kind_slot(t, (unsigned)kind, kind, n);
	if (slot)
		obj = mcache_next(t->mc, slot, false);
	return obj ? obj : alloc_checked(t, (unsigned)kind, n, slot != NULL);
}

// ---- types without a header ----
//
// The bits of an object are written before the host knows its address, and
// before the thread may be stopped again.  If a collection took the object for
// the thread, its leader has written them (supply_object).  Until then markers
// may read what the slot's bits were before.  That is harmless, because all
// words of the object are zero.

// typed_like returns a kind in which n bytes have the same class as in an
// object of a type.
RT_INLINE int typed_like(const rt_type *type)
{
	return type->align == 8 ? RT_KIND_ALIGN8_FIRST : RT_TYPED;
}

// typed_wanted is rt_alloc_typed for what the current run does not hold.
static RT_NOINLINE void *typed_wanted(rt_thread *t, const rt_type *type,
				      size_t count, size_t n, bool dry)
{
	struct want w = {.n = n,
			 .kind = KIND_TYPED,
			 .dry = dry,
			 .narrow = type->align == 8,
			 .type = type,
			 .count = count};
	void *obj;

	if (!door_supplying_to(t, "rt_alloc_typed") ||
	    (!kinds_exists(KIND_TYPED) && !registry_add_typed()))
		return NULL;
	obj = supply_request(t, &w);
	if (obj && n != 0 && w.type)
		typed_note_found(type, count, (uintptr_t)obj);
	return obj;
}

// typed_any allocates an object of any type.
static RT_NOINLINE void *typed_any(rt_thread *t, const rt_type *type,
				   size_t count)
{
	struct mcache_slot *slot;
	void *obj = NULL;
	size_t n;

	if (!type || !typed_size(type, count, &n))
		return NULL;
	slot = kind_slot(t, KIND_TYPED, typed_like(type), n);
	if (slot)
		obj = mcache_take(t->mc, slot, false);
	if (!obj)
		return typed_wanted(t, type, count, n, slot != NULL);
	typed_note(type, count, (uintptr_t)obj, slot->size);
	return obj;
}

// typed_simple takes the next slot of a run, as rt_alloc_of_ does.
RT_INLINE void *typed_simple(rt_thread *t, const rt_type *type)
{
	unsigned c = rt_class_of_(typed_like(type), type->size);
	size_t size = (size_t)rt_class_size_(c);
	struct rt_run *r = &((const struct rt_runs *)t->run)->kind[RT_TYPED][c];
	char *p = r->cur;

	if (RT_UNLIKELY((size_t)(p - r->start) < size))
		return typed_any(t, type, 1);
	p -= size;
	r->cur = p;
	typed_note_simple(type, (uintptr_t)p, size);
	return p;
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

// alloc_registered is not inline.  Otherwise the compiler would share its code
// with the two kinds that every heap has, which costs two instructions.
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

void *rt_alloc_typed(const rt_type *type, size_t count)
{
	rt_thread *t = rt_thread_tls;

	return type && typed_is_simple(type, count) ? typed_simple(t, type)
						    : typed_any(t, type, count);
}

void *rt_alloc_array(int kind, size_t head, size_t count, size_t size)
{
	size_t n;

	if (__builtin_mul_overflow(count, size, &n) ||
	    __builtin_add_overflow(n, head, &n))
		return NULL;
	return rt_alloc_kind(kind, n);
}

// Bytes of the largest alignment.
enum { ALIGN_MAX = 2 << 20 };

static bool kind_ok(int kind)
{
	return kind == RT_NOSCAN || kind == RT_WORDS ||
	       (kind >= RT_KIND_FIRST && kind <= RT_KIND_MAX);
}

void *rt_alloc_aligned(int kind, size_t align, size_t n)
{
	struct want w = {.kind = (unsigned)kind,
			 .align = align > RT_GRANULE ? align : 0};

	if (!kind_ok(kind) || !base_is_pow2(align) || align < 8 ||
	    align > ALIGN_MAX || n > PTRDIFF_MAX)
		return NULL;
	w.n = n == 0 ? 0 : supply_aligned(align, n);
	return supply_request(rt_thread_tls, &w);
}

size_t rt_alloc_many(int kind, size_t n, size_t count, void **out)
{
	struct want w = {.n = n, .kind = (unsigned)kind};

	return kind_ok(kind) && out ? supply_many(rt_thread_tls, &w, count, out)
				    : 0;
}

void *rt_memdup(const void *p, size_t n)
{
	void *copy = p || n == 0 ? rt_alloc_noscan_uninit(n) : NULL;

	if (copy && n != 0)
		memcpy(copy, p, n);
	rt_keep_alive(p);
	return copy;
}

char *rt_strdup(const char *s)
{
	return s ? rt_memdup(s, strlen(s) + 1) : NULL;
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
	if (kind >= RT_NOSCAN && kind <= RT_TYPED)
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
	    !door_supplying(t))
		return NULL;
	return supply_stack(t, n);
}

int rt_stack_free(void *p, size_t n)
{
	rt_thread *t = rt_thread_tls;

	if (!p)
		return RT_EINVAL;
	if (RT_UNLIKELY(!door_allocating(t)))
		return door_attached(false);
	if (!stackfree(t->mc, t->p, p, n))
		return RT_EINVAL;
	scavenger_freed();
	return RT_OK;
}
