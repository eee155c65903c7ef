// fork.h - a process that forks.
//
// A fork is made in a stop of the world, with every lock held that a thread
// may hold which no stop concerns.  So the child, which has one thread, finds
// nothing half done: it takes back what the threads that it lacks had, and
// starts its world.
#ifndef GC_HOST_ATFORK_H
#define GC_HOST_ATFORK_H

#include <rt/fork.h>
#include <stdbool.h>

// fork_init has every fork from now on prepared, once a process; false: the
// system refuses.  One caller at a time.
bool fork_init(void);

#endif
