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

// lifetime_end closes the doors, detaches the calling thread, which must be the
// only attached one, and releases all memory.  The caller must hold the right
// to stop the world.
void lifetime_end(void);

#endif
