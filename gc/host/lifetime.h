// lifetime.h - the beginning and the end of the heap.
//
// Go: schedinit, mallocinit (proc.go, malloc.go).  A Go program has one heap
// from its beginning to its end.
#ifndef GC_HOST_LIFETIME_H
#define GC_HOST_LIFETIME_H

#include <rt/config.h>

// lifetime_begin makes a heap with resolved settings, attaches the calling
// thread if they say so, and opens the doors.  The caller must hold the right
// to stop the world, and there must be no heap.
//
// Returns RT_OK, RT_ENOMEM, or what attach_thread does.  After a failure no
// heap is left.
int lifetime_begin(const rt_config *c);

// lifetime_end ends the library's threads, closes the doors, detaches the
// calling thread and releases all memory.  Returns RT_OK, or RT_EBUSY if
// another thread is attached.  Then nothing was done, unless that thread has
// attached during the call: then the library's threads have ended and are made
// again, at once or by the next collection.
//
// The calling thread must be attached and running.  It waits as blocked, and
// without the right to stop the world, so no stop and no fork waits for it.
int lifetime_end(void);

#endif
