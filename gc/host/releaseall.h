// releaseall.h - releases all free pages, on request.
//
// Go: scavengeAll (mgcscavenge.go).
#ifndef GC_HOST_RELEASEALL_H
#define GC_HOST_RELEASEALL_H

struct rt_proc;

// releaseall releases all free pages, in steps.  Threads of the host keep none
// back for themselves.  The calling thread polls between two steps, so other
// threads may collect and allocate meanwhile.  It must be attached, outside a
// blocking region, a no-GC stretch and a stop of its own; p is its P.
void releaseall(struct rt_proc *p);

#endif
