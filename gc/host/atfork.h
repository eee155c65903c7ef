// atfork.h - a process that forks.
//
// Go: none, because its programs fork only to execute another.
//
// A fork is made with the world stopped, and with every lock held that a thread
// may hold in a stop.  So the child, which has one thread, finds nothing half
// done.  It flushes and frees the caches of the threads that it lacks, and
// starts its world.
#ifndef GC_HOST_ATFORK_H
#define GC_HOST_ATFORK_H

#include <stdbool.h>

// atfork_init registers the handlers that prepare every later fork, once in a
// process.  Returns false if the system refuses.  Only one thread may call it
// at a time.
bool atfork_init(void);

// atfork_prepare prepares a fork: it stops the world and acquires the locks
// that a thread may hold in a stop.  Calls nest.  Returns RT_OK, or RT_EBUSY
// inside a root, trace or describe callback.  Returns RT_ESTATE while a thread
// reports a fatal error, and in the child of a fork that was not prepared for
// one of these reasons.
int atfork_prepare(void);

// atfork_resume undoes one atfork_prepare.  The last one starts the world, in
// the child with the calling thread alone.  But if the caller had stopped the
// world before the fork, it stays stopped.  Returns RT_OK, or RT_EPERM if this
// thread has prepared no fork.
int atfork_resume(bool child);

#endif
