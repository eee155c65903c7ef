/*
 * fork.h - a process that forks.
 *
 * fork() works from any thread, at any time but those named below: rt_init has
 * pthread_atfork call the three functions below, in every fork from then on.
 * They stop the world, so that nothing is half done in the child, and start it
 * again on both sides. fork() blocks for that as rt_stop_the_world does, and
 * the caller holds no lock that another attached thread awaits outside a
 * blocking region.  Three kinds of such locks are easily overlooked:
 *
 *  - Some C libraries (glibc 2.28 to 2.35, musl) hold one of their own while
 *    handlers run, and fork, pthread_atfork and dlclose take it.  There,
 *    attached threads that may do this at the same time do it in a blocking
 *    region, by rt_call_blocking.
 *  - What handlers of pthread_atfork lock that were registered after the first
 *    rt_init counts as held: they run before.
 *  - A handler that was registered before the first rt_init runs while the
 *    world is stopped.  It awaits no lock that an attached thread may hold
 *    where it polls, and does not call the library.
 *
 * Until the fork is done, other threads may wait in every function of the
 * library, also in those that do not block otherwise.
 *
 * In the child only the forking thread exists.  It is what it was: attached or
 * not, inside its blocking region, its own stop, or a callback of
 * rt_heap_walk.  All other threads are detached; what only their stacks
 * referred to is garbage, their interpreter stacks stay allocated, and ranges
 * of theirs stay registered: remove those that lie on their stacks.
 * Statistics go on from what they were.  With glibc on x86-64, thread-local
 * variables may be roots on threads that the child makes, if the parent had
 * several threads and none but the first had attached, or if modules were
 * loaded since one had.
 *
 * Not handled: a fork in a signal handler that interrupted the library; the
 * child of a fork that another thread makes during the first rt_init, which
 * must leave the heap alone; and what runs no handlers, such as vfork, _Fork
 * and clone, whose child may only exec or _exit.  A host that calls these
 * functions itself may use the heap in such a child, but never in one that
 * shares its parent's memory (vfork, CLONE_VM): what that answered would
 * detach the parent's threads.
 */
#ifndef RT_FORK_H
#define RT_FORK_H

#include <rt/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * rt_fork_prepare comes before a fork that is made without fork(), or that the
 * host wants to have prepared before its own handlers run.  Until the answer,
 * rt_fork_parent or rt_fork_child by the same thread, that thread calls
 * nothing else of the library.  Calls nest: fork() may be called between them,
 * and the last answer counts.
 *
 * Returns 0, or RT_ESTATE: the library is reporting a bug of its own; then
 * nothing was done.  A fatal handler may therefore fork.  The child of such a
 * fork leaves the heap alone, and so do its own children.
 *
 * Any thread, also in a blocking region, in the own stop and before rt_init.
 * Blocks, until earlier stops have ended and all threads are stopped.  Does not
 * collect.
 */
RT_API int rt_fork_prepare(void);

/*
 * rt_fork_parent answers in the process that forked, also when the fork
 * failed; rt_fork_child in the new one.
 *
 * Return 0, or RT_EPERM: the calling thread has prepared no fork.
 *
 * The thread that called rt_fork_prepare.  They do not block or collect.
 */
RT_API int rt_fork_parent(void);
RT_API int rt_fork_child(void);

#ifdef __cplusplus
}
#endif

#endif
