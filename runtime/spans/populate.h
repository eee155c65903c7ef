// populate.h - brings in the memory of free pages before it is needed.
//
// Go: none.
//
// A step is the reverse of a step of scavenge.h.  It finds one range of free
// pages that are scavenged and marks it allocated under the heap lock.  It has
// the system bring in the memory without the lock, and then frees the range,
// which is not scavenged any more.  So no thread can take pages whose memory is
// being brought in.  A thread that finds no room waits for the turn
// (mheap.turn) and looks again.
//
// First fit takes the lowest pages that fit.  So a pass begins at the lowest
// free page and goes up.
#ifndef RUNTIME_SPANS_POPULATE_H
#define RUNTIME_SPANS_POPULATE_H

#include "runtime/spans/mheap.h"

// The most bytes that a step brings in.  A stop waits for a step, and so may a
// thread that needs pages.  A larger step would not make a page cheaper
// (measured).
enum { POPULATE_STEP = 128 << 10 };

// The most chunks at which a call of populate_range looks.
enum { POPULATE_LOOK = 256 };

// A pass over the heap, from its lowest free page up.
struct populate_pass {
	uint32_t chunk; // those below are done
	bool over;	// no range is left, or the system refuses
};

// populate_begin begins a pass.
struct populate_pass populate_begin(void);

// populate_range brings in the next range of a pass, and returns its bytes.
// Returns 0 if there is no range in the chunks at which it looked.  Returns 0
// as well if the system refuses, and sets mheap.populate to 0.
//
// mheap.populate must be 1.  The function waits for the steps of other threads.
// The world must not be stopped, and an attached caller must not be in a
// blocking region.
uint64_t populate_range(struct rt_proc *p, struct populate_pass *pass);

#endif
