// drops.h - the dead objects that wait for their destructors.
//
// Go: the finalizer queue (mfinal.go).
//
// A marking begins with drops_hide: the dead that stay are marked, so that
// markers pass them by.  It ends with drops_find: the unmarked objects of kinds
// with destructors are dead from then on.  The marks that drops_hide has set
// are cleared, and what dead objects of RT_KIND_DROP_DEEP reach is marked.
// drops_keep gives the dead their marks again, so that sweeping leaves them,
// and queues their spans.
//
// A span in which rt_drop_now has dropped objects is condemned.  While it is
// not in the queue, all objects that were dropped in it are loose.  A loose
// object leads to nothing, and stays only while something refers to it.
// Markers must know which objects are loose.  So while there may be some, they
// look at each object of every kind with destructors.  A collection that finds
// a loose object clears it, so that it leads to nothing when its span is queued
// again.  A large object is not cleared, but noted in its span (DROPS_LOOSE).
//
// The queue has two parts.  The first is the batch, whose objects are dropped:
// all that had died when the batch was opened.  An object that dies meanwhile
// has the other turn (deadbits.h) and waits in the next part.  The objects of
// the batch are freed only after its last drop has returned.  So objects that
// died in one collection stay together.  A span with dead of both turns is in
// the batch, and moves on when the batch ends.
//
// A queued span belongs to the queue: no cache and no set has it, so its slots
// are freed without a stop.  Objects in it that are alive may be freed by hand
// meanwhile.
//
// One thread at a time runs destructors.  Only that thread and stoppers change
// the queue.  The thread can be stopped only where it runs a destructor or
// polls.
#ifndef GC_MARK_DROPS_H
#define GC_MARK_DROPS_H

#include "runtime/world/proc.h"
#include "runtime/spans/deadbits.h"
#include "gc/mark/layout.h"

// mspan.condemned of a large object that a collection has found loose.  Such an
// object is not cleared, but never leads on again, even while another
// rt_drop_now runs.
enum { DROPS_LOOSE = 2 };

struct drops {
	atomic_u64 ready;    // dead objects whose drop has not begun
	atomic_ptr runner;   // P of the thread that runs them; NULL: none
	uint64_t left;	     // drops to begin, of the batch or of rt_drop_now
	struct mspan *batch; // linked by next, like those below
	struct mspan *at;    // the first of the batch that may have drops left
	unsigned at_word;    // of that span
	struct mspan *next;
	struct mspan *next_last; // undefined if next is NULL
	unsigned turn;		 // of the batch; newly dead objects have the
				 // other
	atomic_u32 open;	 // 1: there is a batch
	bool now;		 // rt_drop_now has the turn of the batch
	bool mixed;		 // objects that wait belong to a batch that was
				 // put back after some of its drops
	bool loose;		 // some objects may be loose
	bool deep;		 // the dead lead on; only in a marking
	uint64_t died;		 // objects, in the last collection
	uint64_t waited;	 // bytes of the dead that waited when it began
};

RT_GLOBAL struct drops drops;

// drops_reset makes the queue empty, before a heap begins.
void drops_reset(void);

// drops_next_span returns the next span of a kind with destructors that begins
// at page *page or later, or NULL.  The world must be stopped.
struct mspan *drops_next_span(uint64_t *page);

// ---- marking ----

// drops_hide marks the dead that stay.  They are not counted.  The world must
// be stopped, and no marker may be marking.
void drops_hide(void);

// The dead objects that a marking has counted as marked, by mistake, and
// whether some of the dead must lead on.
struct drops_found {
	uint64_t objects;    // marked
	uint64_t bytes;	     // of these
	uint64_t scan_bytes; // of these, counted as scanned
	bool deep;	     // some must lead on
};

// drops_find finds what is dead now, and clears the marks that drops_hide has
// set.  drops_keep marks all dead objects that stay, queues spans, and sets
// heap_dead.  Both add to *f.  The world must be stopped, and no marker may be
// marking.
void drops_find(struct drops_found *f);
void drops_keep(struct drops_found *f);

// drops_stays tells whether the dropped objects of a span stay until the end of
// a batch or of rt_drop_now.  With RT_KIND_DROP_DEEP, what they reach stays as
// well.
RT_INLINE bool drops_stays(const struct mspan *s)
{
	return s->queued || (drops.now && s->condemned != DROPS_LOOSE);
}

// drops_leading returns, as bits, those dead objects in the deadwords *d whose
// references are followed when what the dead reach is marked.  s is their span.
RT_INLINE uint64_t drops_leading(const struct mspan *s,
				 const struct deadwords *d)
{
	return drops_stays(s) ? deadbits_dead(d) : deadbits_waiting(d);
}

// drops_leads_on tells whether the references of an object must be followed.
// They must if it is alive, or if it is dead and what the dead reach is being
// marked.  The object is given by a page of its span, its markword and its bit.
RT_INLINE bool drops_leads_on(uint64_t page, const atomic_u64 *mark,
			      uint64_t bit)
{
	const struct deadwords *d = deadbits_beside(mark);

	return !(deadbits_dead(d) & bit) ||
	       (drops.deep && drops_leading(arena_span(page), d) & bit);
}

// drops_begun tells whether the drop of the object of a slot has begun.
RT_INLINE bool drops_begun(const struct mspan *s, uint32_t slot)
{
	unsigned bit =
	    mspan_is_large(s) ? mspan_large_bit(s) : mspan_bit(s, slot);

	return deadbits_dropped(deadbits_word(s, bit / 64)) >> (bit % 64) & 1;
}

// drops_is_deep tells whether a slot of a span has a dead object whose
// references must be followed (RT_KIND_DROP_DEEP).
RT_INLINE bool drops_is_deep(const struct mspan *s, uint32_t slot)
{
	unsigned bit =
	    mspan_is_large(s) ? mspan_large_bit(s) : mspan_bit(s, slot);

	return layouts[spanclass_kind(s->spanclass)].flags &
		   RT_KIND_DROP_DEEP &&
	       drops_leading(s, deadbits_word(s, bit / 64)) >> (bit % 64) & 1;
}

// ---- running ----

// drops_ready returns how many drops have not begun.
RT_INLINE uint64_t drops_ready(void)
{
	return atomic_u64_load_relaxed(&drops.ready);
}

// drops_open tells whether there is a batch.
RT_INLINE bool drops_open(void)
{
	return atomic_u32_load_relaxed(&drops.open) != 0;
}

// drops_acquire makes p the P whose thread runs destructors.  Returns false if
// there is such a P already.  drops_release ends that, if p is that P.
bool drops_acquire(struct rt_proc *p);
void drops_release(const struct rt_proc *p);

// drops_runs tells whether the thread of a P runs destructors.
RT_INLINE bool drops_runs(const struct rt_proc *p)
{
	return atomic_ptr_load_relaxed(&drops.runner) == p;
}

// A dead object, and how to drop it.
struct drops_object {
	void *obj;
	size_t size;
	rt_drop_fn *fn; // NULL: it has no destructor
	void *arg;
};

// drops_take takes the next object of the batch, and with that begins the
// object's drop.  If there is no batch, it opens one first.  Returns false if
// nothing is left.  The caller of this function, of drops_end and of
// drops_requeue must be the thread that runs destructors.
bool drops_take(struct drops_object *o);

// drops_finished tells whether a batch is open and has nothing left.
RT_INLINE bool drops_finished(void)
{
	return drops_open() && drops.left == 0;
}

// drops_end takes up to n spans off a batch that is finished, and returns them
// linked by next.  Before it polls, the caller must free the dropped objects of
// those that are not condemned, and pass to drops_requeue those spans in which
// other objects have died meanwhile.  The batch ends when its last span is
// taken off.
struct mspan *drops_end(unsigned n);
void drops_requeue(struct mspan *s);

// ---- rt_drop_now ----

// drops_begin_now puts an open batch back into the queue.  Then drops_pick
// makes the object of a slot dead; its drop must not have begun.  The world
// must be stopped, and all mcaches flushed.  drops_take_now takes the picked
// objects one by one; *page is 0 at first.  Only the thread that runs
// destructors may call it.  When drops_take_now has returned false, the caller
// must call drops_end_now.
//
// drops_abandon ends the destructors of P p, if its thread runs some.  An
// object that was picked and not yet dropped becomes what it was before.  But
// some that had waited may become alive; the next collection finds them dead.
// The world must be stopped, or p must be the calling thread's and attached.
void drops_begin_now(void);
void drops_pick(struct mspan *s, uint32_t slot);
bool drops_take_now(unsigned kind, uint64_t *page, struct drops_object *o);
void drops_end_now(void);
void drops_abandon(const struct rt_proc *p);

// drops_fork_child makes the queue whole in the child of a fork, if the thread
// that ran destructors is not the one of P self.
void drops_fork_child(const struct rt_proc *self);

// drops_check returns NULL if all invariants hold, otherwise what does not.
// The world must be stopped, and every span swept: until then some objects that
// a collection has found dropped and unreferenced still look dead.
// rt_heap_verify calls it, and debug builds in drops_hide and drops_begin_now.
const char *drops_check(const struct drops *d);

#endif
