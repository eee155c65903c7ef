// periodic.h - the background thread collects if there was no collection for
// long.
//
// Go: forcegcperiod, forcegchelper (proc.go), gcTriggerTime (mgc.go).
//
// The background thread (scavenger.h) collects if no collection has taken place
// for rt_config.gc_period_s, unless gc_percent is below 0 or gc_threads is 0.
// Like Go's, it does so even if nothing was allocated since the last
// collection.  More may be dead all the same, and no count shows it: a root may
// have been overwritten, or a word on a stack.  An object that was kept for its
// destructor may be dead after the destructor has run.
//
// The collection answers no ask (ask.h): the thread leads without one.  So it
// serves no request for memory.  A thread that asks meanwhile leads next.
//
// The thread never waits for the right to lead or to stop the world.  If
// another thread has either of them, this one tries again later.
//
// The only functions of the host that a collection by this thread calls are the
// root, trace and describe callbacks.  They may call the same functions as on a
// thread of the host that collects, and the others refuse in the same way.
// One thing differs: rt_thread_self returns NULL, because no host may describe
// the stack of this thread.  The thread calls no handler but the fatal one.  It
// notes what the handlers must be told, and a thread of the host tells them.
// It makes no helpers either: they would have its scheduling and not that of
// the host.
#ifndef GC_CYCLE_PERIODIC_H
#define GC_CYCLE_PERIODIC_H

#include "runtime/world/proc.h"

// There is no check function: one thread owns it, and any times are possible.
struct periodic {
	uint64_t since;	 // nanotime of the last collection, or of the beginning
	uint64_t cycles; // collections by then
	uint64_t again;	 // nanotime before which it does not try
};

// periodic_wanted tells whether there are such collections.
bool periodic_wanted(void);

// periodic_left returns how many ns after now a collection is due, 0 if it is
// due now.  Returns UINT64_MAX if there are none.  If the clock was refused,
// none is due, and it returns the whole period.
uint64_t periodic_left(struct periodic *s, uint64_t now);

// periodic_collect collects if that is due, if all is swept, if no other thread
// leads or has the right to stop the world, and if *quit is 0.  Only a thread
// with the right to stop the world may change *quit to 1.  Returns whether it
// has collected.  p is the caller's P, which may be stopped after the
// collection.  It must be running, with no stack to be scanned.  The caller
// must hold no lock.
bool periodic_collect(struct periodic *s, struct rt_proc *p,
		      const atomic_u32 *quit);

#endif
