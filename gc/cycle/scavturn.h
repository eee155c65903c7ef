// scavturn.h - one turn of the scavenger: look, decide, release.
//
// Go: the loop of bgscavenge (mgcscavenge.go).
//
// A turn looks at what the heap retains.  If that is more than the goal, or the
// program is idle, it releases a batch of free pages.  The caller sleeps
// between turns.  No turn keeps pages: each step of scavenge.h has freed its
// pages before the thread can be stopped.  So no stop, fork, exact read or
// verification finds a page that only looks allocated.
//
// Pages freed by hand during a pass may be above the place that the pass has
// reached, and the pass would miss them.  So a new pass begins when 4 MiB were
// freed by hand.  That is no activity by itself: an idle program stays idle,
// unless the bytes in its objects change by more than 1 percent of the goal
// (scavgoal_active).
//
// Pages in the cache of a P look allocated.  A collection flushes every cache,
// but a thread that has allocated since then, and now waits, would keep up to
// 512 KiB.  So when a program becomes idle, the turn first flushes the caches
// of all threads that are blocked (proc_claim).  A thread that runs keeps its
// own.
//
// A pass ends when the system refuses SCAVENGE_REFUSALS releases in a row.
// After such a pass, or one in which every release was refused, the thread does
// not look again when the program may be idle: the pass of an idle program
// would be refused as well.  After the next collection the thread tries again,
// and in the next new pass.
#ifndef GC_CYCLE_SCAVTURN_H
#define GC_CYCLE_SCAVTURN_H

#include "runtime/spans/scavenge.h"
#include "gc/cycle/scavpace.h"
#include "gc/cycle/scavgoal.h"

enum scavturn_sleep {
	SCAVTURN_PAUSE, // then there is more to do
	SCAVTURN_TIMER, // look again then, because the program may be idle; a
			// collection that leaves too much calls sooner
	SCAVTURN_CALL,	// until a collection or a new goal calls
};

struct scavturn_next {
	enum scavturn_sleep sleep;
	uint64_t ns; // UINT64_MAX: without limit
};

// There is no check function: one thread owns it, and any times and sums are
// possible.
struct scavturn {
	struct scavpace pace;
	struct scavenge_pass pass;
	struct scavgoal_seen seen; // when the program was last active
	uint64_t since;		   // nanotime of that
	uint32_t nprocs;	   // processors, of which the work is a share
	bool idle;		   // the pass is that of an idle program
	bool over;		   // the pass has found all that it can
	bool released;		   // it has released something
	bool refused;		   // the system refuses it
	uint32_t chunk;		   // it has released the tables of lower chunks
};

// scavturn_init begins with a program that is active now, in nanotime.
void scavturn_init(struct scavturn *s, uint32_t nprocs, uint64_t now);

// scavturn_run takes a turn at now, and returns how to sleep.  p is the
// caller's P, which may be stopped meanwhile.  It must be running, with no
// stack to be scanned, and the caller must hold no lock.
struct scavturn_next scavturn_run(struct scavturn *s, struct rt_proc *p,
				  uint64_t now);

// scavturn_collected must be called after the caller itself has collected since
// the last turn.  That is no activity of the program: an idle one stays idle,
// and another pass releases what the collection has freed.
void scavturn_collected(struct scavturn *s);

// scavturn_slept must be called after a pause, with nanotime before and after
// it.  If either was refused, the pause counts as long as it had to be.
void scavturn_slept(struct scavturn *s, uint64_t from, uint64_t to);

#endif
