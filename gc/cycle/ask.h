// ask.h - threads that ask for a collection, and share one.
//
// Go: gcStart, where a thread that waited for worldsema tests the trigger again
// (mgc.go).  Here no thread waits for worldsema only to see that nothing is
// due.
//
// A thread that needs a collection puts its ask, which lies on its stack, into
// a queue.  A thread that finds no leader becomes the leader: it stops the
// world, takes the queue, collects, and starts the world.  The others sleep, as
// blocked, until then.
//
// Only a running thread asks, and the leader takes the queue when the world is
// stopped.  So the collection begins after every ask that it answers.  Until
// then the reason for an ask holds, because heap_live only grows, and there is
// no more memory than the thread found.  That changes only if much is freed by
// hand, or if the goal is raised.  So no other collection is run for nothing.
// A thread waits at most for the rest of the collection under way and for one
// more, whatever other threads do.
//
// An ask that comes after the queue was taken finds a leader at work.  When
// that leader is done, it passes the lead to the thread that asked first.
//
// A thread of the library leads without an ask of its own (periodic.h).  It
// leaves the queue alone, and then passes the lead on.
//
// The leader wakes two threads, and each of them two more before it does
// anything else.  So the leader continues at once, however many slept.
#ifndef GC_CYCLE_ASK_H
#define GC_CYCLE_ASK_H

#include "runtime/world/proc.h"

enum ask_cause {
	ASK_DUE,    // heap_live has reached the goal
	ASK_STRESS, // gcstress wants it
	ASK_FORCED, // the host asked, and the collection counts as forced
	ASK_MEMORY, // the thread found no memory; the leader takes some
};

// The caller sets cause; the rest belongs to this module.  ask_queue_check
// checks those in the queue.
struct ask {
	enum ask_cause cause;
	bool leads;	      // written before note is woken
	struct ask *next;     // asked later; ASK lock, then the leader's
	struct ask *wakes[2]; // those that its thread wakes, or NULL
	struct note note;
};

// The threads that ask, in the order in which they came.
struct ask_queue {
	struct mutex lock;
	bool led; // a thread leads
	struct ask *first;
	struct ask *last; // valid while there is a first
};

RT_GLOBAL struct ask_queue ask_queue;

// ask_wait asks for a collection.  The caller must be attached and hold no
// lock.  Returns true if the caller leads: it must then stop the world, call
// ask_take, collect, start the world, and call ask_done.  Returns false if
// another thread has done all that since the call.  Sleeps as blocked.
bool ask_wait(struct rt_proc *p, struct ask *a);

// ask_take returns all asks in the queue.  The earliest, which is the leader's
// own, comes first.  The leader calls it with the world stopped.
struct ask *ask_take(void);

// ask_done ends the lead and wakes the threads of all asks that were taken.
// After the call only the leader's ask may be used.  The world must run.
void ask_done(struct ask *leader);

// ask_lead makes the caller the leader, without an ask, if no thread leads.
// Returns false otherwise, at once.  ask_pass ends that lead, or passes it to
// the thread that was first to ask meanwhile.  The caller must hold no lock,
// and at ask_pass the world must run.
bool ask_lead(void);
void ask_pass(void);

// ask_fork_child empties the queue in the child of a fork, which has no thread
// that asked.
void ask_fork_child(void);

// ask_queue_check returns NULL if all invariants of the queue hold, otherwise
// what does not.  The caller must hold ask_queue.lock, or have the world
// stopped.  Debug builds call it when the queue is taken and when the lead
// ends.  A thread that asks checks both ends of the queue only.
const char *ask_queue_check(const struct ask_queue *all);

#endif
