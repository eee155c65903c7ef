// scavenge.h - give free pages back to the system.  Floor 5.
//
// Go: pageAlloc.scavenge, scavengeOne (mgcscavenge.go).
//
// One run of pages at a time: found and marked allocated under the heap lock,
// released without it, then free again and marked scavenged.  So nobody can
// get pages that are being released, and no lock is held over the system
// call.
#ifndef RUNTIME_SCAVENGE_H
#define RUNTIME_SCAVENGE_H

#include "runtime/mheap.h"

// scavenge_run releases one run of at most max bytes (rounded up to physical
// pages; a whole huge page rather than a part of one).  force takes it from
// any chunk, else only from those that are mostly free.  Returns the bytes
// released; 0: nothing is left, or the system refuses.
uint64_t scavenge_run(struct rt_proc *p, uint64_t max, bool force);

#endif
