// proc.h - the P: what an attached thread allocates and counts with.
//
// Go: p, allp, entersyscall, gopark for a stop (proc.go, runtime2.go).
//
// Here one P belongs to one attached thread.  A detached P's record is kept for
// the next thread: records never move and are never freed.
//
// The list of attached Ps, the newest first, changes under procs.lock while the
// gate is open.  So a stopper may walk it freely, and visits only threads that
// are attached.  Live readers walk it at any time without a lock.  A walk meets
// every P that stays attached from its beginning to its end.  The reason is
// that a P enters only at the front, and that a P which leaves keeps its link
// to an older one.  So from every record that came after an attached P, the
// links lead to that P.  Records on the way may have left, or have come again.
//
// Stops.  A P's state word holds what its thread does and, while a stop is
// wanted, the bit PROC_STOP, which the stopper sets.  A thread can leave
// RUNNING at any time, but becomes RUNNING again only by a compare and swap
// that finds the bit clear.  So once the stopper has seen that a P does not
// run, that P will not run until the bit is cleared.
//
//                 by its thread                      by the stopper
//   RUNNING  -> BLOCKED    proc_block
//   BLOCKED  -> RUNNING    proc_unblock, no STOP, no CLAIMED
//   x        -> x|STOP                               proc_stop_all
//   x|STOP   -> x                                    proc_start_all
//   FREE     -> RUNNING    proc_attach, under procs.lock, gate open
//   BLOCKED  -> FREE       proc_detach, under procs.lock, gate open
//
// and, by a thread that has another P, under procs.lock:
//   BLOCKED  -> BLOCKED|CLAIMED  proc_claim
//   x|CLAIMED -> x               proc_release
//
// Claims.  A thread that runs may claim the P of one that is blocked, and then
// owns what that P's thread owns.  PROC_CLAIMED says so, and the claimer holds
// procs.lock.  The blocked thread becomes RUNNING only without that bit, and
// waits for the lock.  A stop may have asked the P before the claim.  That stop
// is not complete before the claimer has stopped, and the claimer does not stop
// while it has a claim.
//
// The gate: attach and detach wait while a stop lasts.  A thread that attaches
// waits without a P, one that detaches waits as blocked.  Threads that wait for
// the end of a stop sleep on the gate's word.  The starter wakes one, and each
// woken thread wakes others (gate_pass_on in proc.c).  A thread parks only in
// proc_unblock.
//
// The table says which pairs of operations by different threads need exclusion
// from outside (X), and which do not (-).  "thread" is proc_set_thread, "block"
// all of proc_block, proc_unblock and proc_park, "walk" proc_first and
// proc_next, "claim" all from proc_claim to proc_release, "stop" all from
// proc_stop_all to proc_start_all, "reset" proc_reset and proc_fork_child:
//
//            attach  detach  thread  block  walk  claim  stop  reset
//   attach     -       -       -       -     -      -     -      X
//   detach     -       -       -       -     -      -     -      X
//   thread     -       -       -       -     -      -     -      X
//   block      -       -       -       -     -      -     -      X
//   walk       -       -       -       -     -      -     -      X
//   claim      -       -       -       -     -      -     -      X
//   stop       -       -       -       -     -      -     X      X
//   reset      X       X       X       X     X      X     X      X
//
// For one P only its own thread detaches, sets the thread block, blocks and
// unblocks.  The right to stop the world (stw.h) excludes two stops.  During a
// reset no other thread uses Ps: there is no heap, or this is the child of a
// fork.
#ifndef RUNTIME_WORLD_PROC_H
#define RUNTIME_WORLD_PROC_H

#include <rt/alloc.h>

#include "runtime/os/lock.h"
#include "runtime/world/context.h"

enum {
	PROC_FREE = 0,	  // no thread
	PROC_RUNNING = 1, // its thread may touch the heap
	PROC_BLOCKED = 2, // its thread has promised not to
	PROC_STATE = 3,	  // mask
	PROC_STOP = 4,	  // a stopper waits for it, or has stopped it
	PROC_CLAIMED = 8, // another thread has it; procs.lock

	PROC_HELPER = 1 << 30, // flag: P of a thread of the library

	PROC_GAUGES = 6, // as many as heapgauge.h declares
};

struct rt_proc {
	// Written by its thread at every statistic.
	RT_CACHE_ALIGNED atomic_u32 stats_seq; // odd during a change
	atomic_u64 gauges[PROC_GAUGES];	       // its parts (heapgauge.h)
	// Written by its thread and by stoppers.
	RT_CACHE_ALIGNED atomic_u32 state;
	uint32_t id;	   // 0, 1, ...; for good
	uint32_t flags;	   // as passed to proc_attach
	atomic_ptr thread; // struct rt_thread; NULL in attach and detach
	// nanotime when it stopped for this stop; 0: it did not run when the
	// stop was requested
	atomic_u64 stopped_at;
	bool stopper;	      // its thread has the world stopped; own thread
	bool in_region;	      // inside a blocking region; own thread
	atomic_ptr next;      // attached before it; procs.lock, live readers
	struct rt_proc *prev; // attached after it; procs.lock
	struct rt_proc *next_free; // procs.lock
	bool counted;		   // listed (heapgauge); own thread, or stopped
	struct rt_proc *next_counted;
	struct context context; // valid while it is stopped
};

struct procs {
	struct mutex lock; // attach, detach, threads, claims, closing of gate
	atomic_ptr first;     // newest attached P; lock, live readers
	struct rt_proc *free; // records without a thread; lock
	uint32_t count;	      // Ps in the list; lock
	uint32_t made;	      // records ever made; lock
	atomic_u32 attached;  // records with a thread of the host; lock
	atomic_u32 closed;    // 1: no thread may attach; lock
	RT_CACHE_ALIGNED atomic_u32 gate; // odd while a stop lasts
	atomic_u32 gate_waiters;	  // threads asleep on gate
	atomic_u32 gate_spinner; // value of the closed gate at which a thread
				 // promised to wake others; 0: none did
	atomic_u32 crowded;	 // 1: more threads ran than there are
				 // processors, when a stop was last requested
	RT_CACHE_ALIGNED atomic_u32 stop_wait; // Ps that still have to stop
	struct note stopnote;		       // woken when stop_wait reaches 0
};

RT_GLOBAL struct procs procs;

// The table of a thread that may not allocate inline: every run is empty, and
// every kind uses the table's first row.
RT_GLOBAL struct rt_runs proc_no_runs;

// proc_self returns the calling thread's P, NULL if it is not attached.
RT_INLINE struct rt_proc *proc_self(void)
{
	return rt_thread_tls->p;
}

// proc_in_nogc tells whether a thread is in a no-GC stretch (rt_nogc_enter).
// It must be the calling thread, or stopped.
RT_INLINE bool proc_in_nogc(const struct rt_thread *t)
{
	const uint8_t nogc = __atomic_load_n(&t->nogc, __ATOMIC_RELAXED);

	return nogc != 0 && nogc != RT_NOGC_NONE;
}

// proc_first and proc_next walk the list.  The load is seqcst: heapstats_read
// relies on seeing every P that came in before it moved the generation.
RT_INLINE struct rt_proc *proc_first(void)
{
	return atomic_ptr_load_seqcst(&procs.first);
}

RT_INLINE struct rt_proc *proc_next(const struct rt_proc *p)
{
	// Pairs with the releases in proc_enlist and proc_delist.
	return atomic_ptr_load_acquire(&p->next);
}

// proc_is_free tells whether a record has no thread.  The acquire pairs with
// the stores in proc_attach and proc_detach.
RT_INLINE bool proc_is_free(const struct rt_proc *p)
{
	return (atomic_u32_load_acquire(&p->state) & PROC_STATE) == PROC_FREE;
}

// proc_is_running tells whether the thread of a P may touch the heap.  It is
// for assertions.
RT_INLINE bool proc_is_running(const struct rt_proc *p)
{
	return (atomic_u32_load_relaxed(&p->state) & PROC_STATE) ==
	       PROC_RUNNING;
}

// proc_attach gives the calling thread a P, which is RUNNING.  It waits while a
// stop lasts.  Returns NULL if there is no memory for a record, or if Ps are
// closed.
struct rt_proc *proc_attach(uint32_t flags);

// proc_close makes proc_attach refuse all threads until proc_open.  The thread
// that ends the heap calls it.  Returns false, and does nothing, if more than
// one thread of the host is attached.  So a thread that attaches meanwhile
// either makes it return false or is refused.
bool proc_close(void);
void proc_open(void);
RT_INLINE bool proc_closed(void)
{
	return atomic_u32_load_relaxed(&procs.closed) != 0;
}

// proc_reset drops all records.  It is called before a heap begins, and when
// their memory is unmapped.
void proc_reset(void);

// The child of a fork calls proc_fork_child, in the stop of the fork.  It frees
// every P but self, the forking thread's P or NULL.
void proc_fork_child(struct rt_proc *self);

// proc_set_thread publishes the thread block of an attached P.  After a call
// with NULL no stopper writes to the old block.
void proc_set_thread(struct rt_proc *p, struct rt_thread *t);

// proc_detach takes p from the calling thread.  p must hold nothing any more.
// It waits, as blocked, while a stop lasts.
void proc_detach(struct rt_proc *p);

// proc_block promises that the calling thread leaves the heap alone until
// proc_unblock.  The thread's context must have been saved.  The thread must
// hold no lock, and must not be in a no-GC stretch.
void proc_block(struct rt_proc *p);

// proc_unblock returns when the thread may run: at once, or after the stop or
// the claim.
void proc_unblock(struct rt_proc *p);

// proc_wanted tells whether a stopper waits for p.  The acquire pairs with the
// step in proc_stop_all.
RT_INLINE bool proc_wanted(const struct rt_proc *p)
{
	return atomic_u32_load_acquire(&p->state) & PROC_STOP;
}

// proc_park saves the context and parks while a stop is wanted.
void proc_park(struct rt_proc *p);

// proc_claim claims the P of a thread that is blocked.  Returns false if it is
// not.  Until proc_release the caller owns what that thread owns, and holds
// procs.lock: it must not block, and should be quick.  p may be any record of
// a walk.  The caller must be running, with a P of its own, and the world must
// run.
bool proc_claim(struct rt_proc *p);
void proc_release(struct rt_proc *p);

// ---- for the stopper (stw) ----

// proc_stop_all closes the gate, asks every P but self to stop, and returns how
// many ran.  proc_wait_all waits until all of them are stopped.
uint32_t proc_stop_all(struct rt_proc *self);
void proc_wait_all(void);

// proc_start_all allows every P to run and opens the gate.
void proc_start_all(struct rt_proc *self);

// proc_check returns NULL if all invariants of one attached P hold, otherwise
// what does not.  The world must be stopped.  Debug builds call it for each P
// when the world has stopped (stw_stop).
const char *proc_check(const struct rt_proc *p);

// procs_check returns NULL if the lists and numbers of all Ps are in order,
// otherwise what is not.  The caller must hold procs.lock, or have the world
// stopped.  Debug builds call it in the child of a fork.  Each stop checks the
// list of attached Ps, which it walks anyway.  attach and detach check one P
// and its neighbours.
const char *procs_check(const struct procs *all);

#endif
