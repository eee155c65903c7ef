// supply.h - memory for a thread, after a collection if need be.
//
// Go: mcache.nextFree, largeAlloc, and what mallocgc does around them
// (malloc.go).  Go has no limit at which an allocation fails.
//
// A thread that finds no memory asks for a collection (ask.h).  The leader
// takes memory for each thread that asked, in order, before it starts the
// world: no other thread can take it first.  So one collection decides each
// request.  It answers NULL if there was no room, even in what other threads
// keep for themselves.  A request is tried again only if the host's handler
// says so.  Then, too, no other thread can take what was freed for it.
#ifndef GC_HOST_SUPPLY_H
#define GC_HOST_SUPPLY_H

#include "runtime/os/settings.h"
#include "runtime/spans/kinds.h"
#include "runtime/spans/mcache.h"
#include "gc/cycle/ask.h"

// What is requested.
struct want {
	size_t n;
	size_t align; // above RT_GRANULE, or 0; supply_aligned has made n
	unsigned kind;
	bool uninit;
	bool stack;  // a stack is wanted, not an object
	bool dry;    // the cache has nothing, so it need not be asked
	bool narrow; // 24 bytes are a class, as for kinds from KIND_ALIGN8 on
	// Of a typed object, whose type bits the caller of supply_request must
	// write.  NULL: the object is not typed, or the leader of a collection
	// has written them.
	const struct rt_type *type;
	size_t count;
	// Whether the object gets a guard is decided once.
	enum { GUARD_UNDECIDED, GUARD_WANTED, GUARD_NONE } guard;
};

// supply_request allocates an object for which the current run has no room.  It
// is the place where arguments are checked, threads are stopped, and
// collections begin.  t must be the calling thread's.  Returns the address of
// supply_zerobase for 0 bytes.  Returns NULL if the thread may not allocate, if
// a handler of the host has not left it as it was, if there is no such kind, or
// as supply_object does.
void *supply_request(struct rt_thread *t, struct want *w);

// supply_aligned returns how many bytes to request, with w->align, for an
// object of n bytes whose address is a multiple of align, a power of two.
size_t supply_aligned(size_t align, size_t n);

// supply_many is supply_request for up to count objects, as long as no
// collection is due and memory is at hand.  Returns how many it has written to
// out.
size_t supply_many(struct rt_thread *t, struct want *w, size_t count,
		   void **out);

// The address of every object of no bytes.
RT_GLOBAL uint64_t supply_zerobase;

// supply_object returns an object of w->n bytes, 1 up to the heap's range, for
// the calling thread, which may allocate.  The kind must exist.  Returns NULL
// if there is no memory even after a collection and a call of the host's
// handler, or if the kind ends while the thread is stopped.  In a no-GC stretch
// it does not collect or call the handler.  It changes w->dry, w->guard
// and w->type.
void *supply_object(struct rt_mcache *mc, struct want *w);

// supply_stack allocates a stack of n bytes, which must be as for stackalloc. t
// must be the calling thread's, which may allocate.  Returns NULL as
// supply_object does, or if a handler of the host has detached the thread or
// has left it unable to allocate.
void *supply_stack(struct rt_thread *t, size_t n);

// supply_class returns the class of a small object of n bytes.  Unless classes
// are Go's, the class of 8 bytes is only for objects without pointers, which
// need no more alignment than their size.  An object that can be dead has a
// granule of its own (deadbits.h).
RT_INLINE unsigned supply_class(unsigned kind, size_t n)
{
	unsigned c = sizeclass_of(n);

	if (RT_LIKELY(sizeclass_is_aligned(c)))
		return c;
	// An uncollectable object must be able to be on a list when it is freed
	// (freelist.h).
	if (kind >= KIND_OWN)
		return sizeclass_of16(n);
	if (settings()->align8)
		return c == 1 && kinds_drops() >> kind & 1 ? sizeclass_of16(n)
							   : c;
	return (c == 1 ? kind == KIND_NOSCAN : kind >= KIND_ALIGN8)
		   ? c
		   : sizeclass_of16(n);
}

// supply_is_tiny tells whether a request is combined with others in a block of
// 16 bytes.  Go combines everything smaller than a block.  Here, without
// align8, only requests below 6 bytes are combined.  Requests of 6 to 8 bytes
// fit as densely into slots of 8 bytes, and no two larger ones fit into a
// block.
RT_INLINE bool supply_is_tiny(unsigned kind, size_t n)
{
	return kind == KIND_NOSCAN && n < SIZECLASS_TINY_SIZE &&
	       (n < RT_NOSCAN_MIN || settings()->align8);
}

// supply_collect returns when a collection that began after the call is over.
// p must be the calling thread's P.
void supply_collect(struct rt_proc *p, enum ask_cause cause);

// supply_adjust_external counts bytes that objects own outside the heap.  If an
// increase makes a collection due, the thread of mc, which must be the caller,
// loses its runs.  So its next allocation collects, inline or not.
void supply_adjust_external(struct rt_mcache *mc, int64_t delta);

// supply_reset begins to count allocations for gcstress anew.
void supply_reset(void);

#endif
