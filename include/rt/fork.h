/*
 * fork.h - a process that forks.
 *
 * fork() works from any thread, at any time except those named below.  rt_init
 * makes pthread_atfork call the three functions below, in every fork from then
 * on.  They stop the world, so that no work of the library is half done in the
 * child, and start it again on both sides.  fork() blocks for that as
 * rt_stop_the_world does, so the caller must hold no lock that another attached
 * thread awaits outside a blocking region.  Three sorts of such locks are
 * easily overlooked.
 *
 *  - Some C libraries (glibc 2.28 to 2.35, musl) hold a lock of their own while
 *    handlers run.  fork, pthread_atfork and dlclose take that lock.  With
 *    these libraries, attached threads that may call these functions at the
 *    same time must do it in a blocking region, by rt_call_blocking.
 *  - A lock that a handler of pthread_atfork takes counts as held if the
 *    handler was registered after the first rt_init, because it then runs
 *    before ours.
 *  - A handler that was registered before the first rt_init runs while the
 *    world is stopped.  Such a handler must not wait for a lock that an
 *    attached thread may hold where it polls, and must not call the library.
 *
 * The library does nothing for the locks and the data of the host.  A fork
 * finds an attached thread where it polls or in a blocking region, and a thread
 * that is not attached anywhere.  A lock of the host that such a thread holds
 * is held for ever in the child, and what it protects may be half changed.
 *
 * Until the fork is done, other threads may wait in every function of the
 * library, even in those that do not block otherwise.
 *
 * In the child only the forking thread exists.  It is in the same state as
 * before: attached or not, inside its blocking region, its own stop, or a
 * callback of rt_heap_walk.  All other threads are detached, and objects that
 * only their stacks, registers and frames (RT_FRAME) referred to are garbage.
 * All else continues: the configuration, kinds, handlers, limits, handles, and
 * what was registered as a root, whichever thread made it.  The interpreter
 * stacks (rt_stack_alloc) that the lost threads used stay allocated.  Only a
 * registration with RT_STACK_THREAD ends with its thread.  Statistics continue
 * from their old values, and so do the records of collections (rt_read_cycle),
 * rt_read_stops and rt_read_gcstats.  In the child the library makes new
 * threads of its own when it needs them.
 *
 * The stacks of the lost threads, where their thread-local variables may lie as
 * well, are still readable when fork returns.  But the C library may use them
 * again, or unmap them, when the child makes a thread.  The library itself may
 * make one when the child allocates, collects or runs destructors.  So the
 * child must do this in order:
 *
 *  1. It leaves its blocking region or its own stop, if it is in one.  In
 *     rt_call_blocking that is the return of fn.  If its thread is not attached
 *     but has stacks to unregister, it attaches.  (Inside a region, or without
 *     attachment, only the first two calls below work.)
 *  2. It removes all that leads to the stack of a lost thread:
 *      - ranges on it (rt_roots_remove), among them thread-local variables of
 *        the lost threads;
 *      - root callbacks that read it, for example because arg points to it
 *        (rt_roots_remove_fn);
 *      - rt_stack registrations that lie on it, or whose sp, frames or
 *        registers are there (rt_stack_unregister).
 *  3. It does what rt/stack.h says of the registered stack of a fiber that a
 *     lost thread ran, and what rt/alloc.h says of a table of addresses.
 *  4. From then on it may make threads, allocate, collect, poll and run
 *     destructors.
 *
 * A stack that the host has allocated itself stays as it is.
 *
 * With glibc on x86-64, thread-local variables may be roots on threads that the
 * child makes.  This happens if the parent had several threads and only the
 * main one had attached, or if modules were loaded after the last thread had
 * attached.  It only keeps more objects alive: a host must register its
 * thread-local variables in any case.
 *
 * A fork in a signal handler that interrupted the library is not supported.
 * The child of a fork that another thread makes during the first rt_init must
 * not use the heap.  The child of a call that runs no handlers, such as vfork,
 * _Fork and clone, may only exec or _exit, unless the host calls the three
 * functions below itself.  It must not call them for a child that shares its
 * parent's memory (vfork, CLONE_VM), because there rt_fork_child would detach
 * the parent's threads.
 */
#ifndef RT_FORK_H
#define RT_FORK_H

#include <rt/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Call rt_fork_prepare before a fork that is made without fork(), or that must
 * be prepared before the host's own handlers run.  The same thread must then
 * call rt_fork_parent or rt_fork_child, and no other function of the library in
 * between.  Calls nest, so fork() may be called in between.  Then only the last
 * rt_fork_parent or rt_fork_child of the thread has an effect.
 *
 * Returns 0, or RT_ESTATE if the library is reporting a bug of its own, or
 * RT_EBUSY in a callback of a collection; then nothing was done.  Since it does
 * not wait in the first case, a fatal handler may fork.  The child of such a
 * fork must not use the heap, and neither must its own children; there
 * rt_fork_prepare returns RT_ESTATE.
 *
 * Any thread, even in a blocking region, in its own stop and before rt_init.  A
 * no-GC stretch of the caller may be interrupted by stops that were requested
 * earlier.  Blocks until these have ended and all threads are stopped.  Does
 * not collect.
 */
RT_API int rt_fork_prepare(void);

/*
 * Call rt_fork_parent in the process that forked, even if the fork failed, and
 * rt_fork_child in the new one.
 *
 * They return 0, or RT_EPERM if the calling thread has prepared no fork.
 *
 * Only the thread that called rt_fork_prepare.  They do not block or collect.
 */
RT_API int rt_fork_parent(void);
RT_API int rt_fork_child(void);

#ifdef __cplusplus
}
#endif

#endif
