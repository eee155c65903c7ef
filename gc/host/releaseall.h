// releaseall.h - releases all free pages, on request.
//
// Go: scavengeAll (mgcscavenge.go).
#ifndef GC_HOST_RELEASEALL_H
#define GC_HOST_RELEASEALL_H

struct rt_proc;

// releaseall releases the pages that no object uses, in steps.  Threads of the
// host keep none back for themselves.  The calling thread polls between two
// steps, so other threads may collect and allocate meanwhile.  It must be
// attached, outside a blocking region and a stop of its own; p is its P.
void releaseall(struct rt_proc *p);

#endif
