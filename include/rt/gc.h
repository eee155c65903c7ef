/*
 * gc.h - collections, their goal, and the host's handlers.
 */
#ifndef RT_GC_H
#define RT_GC_H

#include <rt/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * rt_gc runs one full collection, which begins after the call, and returns
 * when all memory that it found dead is free again.  A collection that is under
 * way is finished first.  Threads that wait for that together share the next
 * one, which counts once in num_forced_gc of rt_memstats.
 *
 * Returns 0, or RT_EPERM (not attached), RT_EBUSY (own stop), RT_ESTATE
 * (inside a blocking region; no heap).
 *
 * Attached threads.  Collects, blocks and polls.
 */
RT_API int rt_gc(void);

/*
 * rt_set_gc_percent sets how much may be allocated before the next
 * collection, in percent of what the last one found alive and of the roots
 * that it scanned (rt_config.gc_percent), and the heap's goal at once.  With
 * any number below 0, only rt_gc, rt_free_os_memory, gcstress and an allocation
 * that finds no memory collect.  *old becomes the percentage before, -1 if it
 * was off; old may be NULL.
 *
 * Returns 0, or RT_EPERM (not attached), RT_EBUSY (own stop), RT_ESTATE
 * (inside a blocking region; no heap); then *old is untouched.
 *
 * Attached threads.  Does not collect, block or poll.
 */
RT_API int rt_set_gc_percent(int percent, int *old);

/*
 * rt_free_os_memory runs rt_gc and then gives all free pages back to the
 * system.  They count in heap_released of rt_memstats until used again.  With
 * each 4 MiB that are free as a whole goes the memory behind their bitmaps;
 * gc_sys, which is about addresses, stays.  Other threads allocate meanwhile;
 * one that needs the pages that are just being given back, at most 2 MiB, waits
 * for them.
 * Where a page of the system is larger than 8 KiB, one that is partly in use,
 * or partly given back already, stays.
 *
 * Returns 0, or RT_EPERM (not attached), RT_EBUSY (own stop), RT_ESTATE
 * (inside a blocking region; no heap).  What the system refuses to take, such
 * as memory that was locked (mlock), stays with the heap, and with it up to 4
 * MiB around it; that is no error.
 *
 * Attached threads.  Collects, blocks and polls.
 */
RT_API int rt_free_os_memory(void);

/*
 * ---- Handlers ----
 *
 * Each is one function with its argument; setting it replaces the one before,
 * NULL restores the default.  A handler that is being replaced may still be
 * called until the call that found it returns.  Handlers belong to the process:
 * rt_fini leaves them set, and the next heap has them.
 */

/*
 * An out-of-memory handler: n bytes were asked for, by rt_stack_alloc as well,
 * and a collection did not find them.  It runs on the thread that allocates,
 * with the world running and no lock held, and may free what it can, allocate,
 * or leave by longjmp or an exception.  It is not called for its own
 * allocations: they return NULL when a collection does not find the memory.
 * Several threads may run it at once, so what it frees has a lock of the
 * host's, which no thread holds while it polls.  If the handler returns 1, the
 * allocation collects and tries again, and calls the handler again each time
 * that fails.  If it returns anything else, the allocation returns NULL.
 */
typedef int rt_oom_fn(size_t n, void *arg);

/*
 * A handler that is told something: text is one or more lines, without a
 * newline at the end, valid during the call.
 */
typedef void rt_text_fn(const char *text, void *arg);

/*
 * rt_set_oom_handler sets the out-of-memory handler.  Default: none, the
 * allocation returns NULL.
 *
 * Returns 0, or RT_EBUSY (own stop).
 *
 * Any thread, also before rt_init.  Does not collect, block or poll.
 */
RT_API int rt_set_oom_handler(rt_oom_fn *fn, void *arg);

/*
 * rt_set_warn_handler sets the function that is told of what does not end the
 * process: contradictions of statistics under RT_CHECK_REPORT; once, that the
 * heap has come to use four fifths of the mappings that the system allows
 * (/memory/mappings/limit:count); and what an RT_ENOTSUP means.  fn runs on the
 * thread that found it, with the world started and no lock held.  Default:
 * none.
 *
 * Returns 0, or RT_EBUSY (own stop).
 *
 * Any thread, also before rt_init.  Does not collect, block or poll.
 */
RT_API int rt_set_warn_handler(rt_text_fn *fn, void *arg);

/*
 * rt_set_fatal_handler sets who is told of a bug of the library or of memory
 * that was overwritten, before the process aborts.  fn runs on the thread that
 * found it, perhaps with the world stopped and with locks held: it calls
 * nothing of this library, and does not wait for other threads.  When it
 * returns, abort() follows.  Default: the text is written to stderr.
 *
 * fn may start a program, such as a crash reporter, and wait for it: by
 * posix_spawn, or by vfork and exec.  These run no handlers of pthread_atfork,
 * so locks that other threads hold do not matter.  A fork() works as far as
 * this library goes (see rt_fork_prepare), but runs the handlers of others,
 * which may wait for a lock for ever.
 *
 * Returns 0, or RT_EBUSY (own stop).
 *
 * Any thread, also before rt_init.  Does not collect, block or poll.
 */
RT_API int rt_set_fatal_handler(rt_text_fn *fn, void *arg);

#ifdef __cplusplus
}
#endif

#endif
