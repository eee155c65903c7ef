// Resizes objects in place, or moves them.
#include "gc/host/resize.h"

#include <string.h>

#include "runtime/os/throw.h"
#include "gc/cycle/refill.h"
#include "gc/cycle/scavenger.h"
#include "gc/host/door.h"
#include "gc/host/supply.h"
#include "gc/host/reclaim.h"

static bool is_guarded(const struct object *o)
{
	return mspan_is_guarded(object_span(o));
}

static bool resize_large(struct rt_proc *p, const struct object *o, size_t n)
{
	if (is_guarded(o))
		return n <= o->size;
	if (n > arena.reserved || !refill_resize(p, object_span(o), n))
		return false;
	scavenger_freed();
	return true;
}

bool resize_in_place(struct rt_proc *p, const struct object *o, size_t n)
{
	RT_ASSERT(p == proc_self());
	// It is not known which part of a shared object was requested.
	if (reclaim_is_shared(o))
		return false;
	return object_class(o) == 0 ? resize_large(p, o, n) : n <= o->size;
}

// fits tells whether a new object of n bytes would have the same size class as
// this one, or would be large as well.
static bool fits(const struct object *o, size_t n)
{
	if (reclaim_is_shared(o))
		return false;
	if (object_class(o) == 0)
		return is_guarded(o) ? n == o->size : n > SIZECLASS_MAX_REQUEST;
	return n <= SIZECLASS_MAX_REQUEST && !supply_is_tiny(o->kind, n) &&
	       sizeclass_table[supply_class(o->kind, n)].size == o->size;
}

// copy_shared copies without a sanitizer's checks, because other threads may
// use other parts of a shared object.
RT_NO_SANITIZE
static void copy_shared(char *to, const char *from, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		to[i] = from[i];
		__asm__ volatile("" : : : "memory");
	}
}

// was_dropped tells whether the object at p, which was alive, is dead: while
// the thread allocated, rt_drop_now may have dropped it.
static bool was_dropped(const void *p, const struct object *o)
{
	struct object now;

	return kinds_drops() >> o->kind & 1 && !object_find((uintptr_t)p, &now);
}

static void discard(struct rt_thread *t, const void *p)
{
	struct object o;

	if (reclaim_find(p, &o))
		reclaim_object(t->mc, &o);
}

// move copies the object at p to the object at to, and frees the old one.
static void move(struct rt_thread *t, char *to, const char *p,
		 const struct object *o, size_t n)
{
	size_t old = base_min(o->base + o->size - (uintptr_t)p, n);

	RT_ASSERT((uintptr_t)p - o->base < o->size && to != p);
	if (reclaim_is_shared(o))
		copy_shared(to, p, old);
	else
		memcpy(to, p, old);
	reclaim_object(t->mc, o);
}

void *resize_object(struct rt_thread *t, void *p, const struct object *o,
		    size_t n)
{
	struct want w = {.n = n, .kind = o->kind};
	const uint64_t attachments = door_attachments;
	void *to;

	RT_ASSERT(t == rt_thread_tls);
	if (fits(o, n) && resize_in_place(t->p, o, n))
		return p;
	to = supply_request(t, &w);
	// If there is no new object, t and the old one may be gone: a handler
	// of the host may have detached the thread.
	if (!to && !door_stayed(t, attachments))
		return NULL;
	if (RT_UNLIKELY(was_dropped(p, o))) {
		if (to)
			discard(t, to);
		return NULL;
	}
	// A collection may have freed the pages behind the object, or made room
	// under the limit for the difference.
	if (to)
		move(t, to, p, o, n);
	else if (resize_in_place(t->p, o, n))
		to = p;
	// This keeps the old object alive until here.  On a thread with exact
	// roots the host must do that (rt/free.h).
	__asm__ volatile("" : : "r"(p) : "memory");
	return to;
}
