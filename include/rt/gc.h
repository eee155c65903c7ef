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
 * rt_gc runs one full collection, which begins after the call.  It returns when
 * all memory that was found dead is free again, except what waits for a
 * destructor (rt/final.h).  If a collection is under way, it ends first.
 * Threads that wait for its end share the next collection, which counts once in
 * num_forced_gc of rt_memstats.
 *
 * Returns 0, or RT_EPERM (not attached), RT_EBUSY (own stop), RT_ESTATE
 * (inside a blocking region or a no-GC stretch; no heap).
 *
 * Attached threads.  Collects, blocks and polls.
 */
RT_API int rt_gc(void);

/*
 * rt_heap_live returns the bytes that the last collection found alive, plus
 * those allocated since, less those freed by hand.  It is one load, so a host
 * may read it in a loop.  The last allocations of each thread, at most 33 KiB,
 * may not count yet, and what it has freed last, at most 64 KiB, may still
 * count.  Free slots that a thread has taken for its inline allocation count
 * already: at most 8 KiB for each size class and kind that it allocates, where
 * rt_alloc_noscan_uninit is a kind of its own.  Typed objects (rt_alloc_typed)
 * that were freed count until the next collection or exact read of statistics.
 * After one of these the answer is exact until a thread allocates or frees.
 * The metric /gc/heap/live:bytes is only what the last collection found.  Dead
 * objects that wait for their destructor do not count.
 *
 * Any thread, at any time, even in its own stop; without a heap it returns 0.
 * Does not collect, block or poll.
 */
RT_API uint64_t rt_heap_live(void);

/*
 * rt_set_gc_percent sets how much may be allocated before the next collection,
 * and the heap's goal at once.  The number is in percent of what the last
 * collection found alive and of the roots that it scanned
 * (rt_config.gc_percent).  With any number below 0, only rt_gc,
 * rt_free_os_memory, gcstress, a limit and an allocation that finds no memory
 * collect.  If the new goal is passed already, the next allocation for which
 * its thread's cache (rt/rt.h) has no room collects.  rt_set_gc_percent sets
 * *old to the previous percentage, -1 if that was off; old may be NULL.
 *
 * Returns 0, or RT_EPERM (not attached), RT_EBUSY (own stop), RT_ESTATE
 * (inside a blocking region; no heap); then *old is untouched.
 *
 * Attached threads.  Does not collect, block or poll.
 */
RT_API int rt_set_gc_percent(int percent, int *old);

/*
 * rt_set_heap_min sets the least heap goal, in bytes (rt_config.heap_min), and
 * the heap's goal at once.  bytes is at most 2^40; 0 means 4 MiB.  If the new
 * goal is passed already, the next allocation for which its thread's cache has
 * no room collects.  rt_set_heap_min sets *old to the previous value, which is
 * never 0; old may be NULL.
 *
 * Returns 0, or RT_EINVAL (more than 2^40), RT_EPERM (not attached), RT_EBUSY
 * (own stop), RT_ESTATE (inside a blocking region; no heap); then nothing
 * changes, and *old is untouched.
 *
 * Attached threads.  Does not collect, block or poll.
 */
RT_API int rt_set_heap_min(size_t bytes, size_t *old);

/*
 * rt_set_memory_limit changes the memory limit while the heap exists.  It is a
 * soft limit, in bytes, of all memory that the library has mapped and not
 * released (sys - heap_released of rt_memstats).  The host's own memory does
 * not count, nor does the sum of rt_adjust_external, so a host in a container
 * must leave room for them.  INT64_MAX means no limit; 0 is a limit.  The
 * metric /gc/gomemlimit:bytes is the present limit.
 *
 * - The heap's goal is at most what the limit leaves for objects, less 3
 *   percent (at least 1 MiB), whatever gc_percent is, even below 0.  If it
 *   leaves too little, there is at most one collection for each MiB allocated.
 * - An allocation that would pass the limit first releases free pages.
 *
 * No allocation fails because of the limit: if it cannot be kept, it is passed.
 * While collections take more than rt_config.gc_cpu_limit percent of the CPU
 * time, the limit causes none, and allocations release nothing for it.  The
 * warn handler is told when a collection, once it has swept, leaves more than
 * the limit, where free pages do not count (sys - heap_idle of
 * rt_read_memstats).  It is told again only after a collection has left less,
 * or the limit was set.
 *
 * The goal changes at once: it is computed anew from what the last collection
 * found.  If the new limit is lower, the next allocations collect and release.
 * rt_set_memory_limit sets *old to the previous limit; old may be NULL.
 *
 * Returns 0, or RT_EINVAL (below 0), RT_EPERM (not attached), RT_EBUSY (own
 * stop), RT_ESTATE (inside a blocking region; no heap); then nothing changes,
 * and *old is untouched.
 *
 * Attached threads.  Does not collect, block or poll.
 */
RT_API int rt_set_memory_limit(int64_t bytes, int64_t *old);

/*
 * rt_set_heap_max sets the hard limit of the heap, in bytes, while the heap
 * exists.  Objects and interpreter stacks together (heap_inuse + stack_inuse of
 * rt_memstats) take whole pages of 8 KiB, and no page is taken beyond the
 * limit.  Free pages that threads have taken ahead count too, at most 64 pages
 * (512 KiB) for each thread; no statistic shows them, and a collection takes
 * them back.  Guards and dead objects that wait for their destructors count.
 * The library's tables and work buffers do not, nor does the sum of
 * rt_adjust_external.  The limit is rounded down to whole pages.
 *
 * To let a script take n bytes more than there are, call rt_gc and
 * rt_read_memstats, and set heap_inuse + stack_inuse + n.  Below some MiB a
 * limit leaves no room for pages that threads take ahead.  The limit is one for
 * all threads.
 *
 * 0 means no limit, unlike in rt_set_memory_limit, as does any number from the
 * heap's address space (rt_config.max_heap) on.  A new heap has none; the child
 * of a fork has that of its parent.  The metric /gc/heap/max:bytes is the
 * present limit, or the address space if there is none.
 *
 * - An allocation that needs a page beyond the limit does what it does when the
 *   address space is used up: it collects, then asks the out-of-memory handler,
 *   then returns NULL.  The handler may raise the limit and return 1.  In a
 *   no-GC stretch the allocation returns NULL at once.  Each allocation that is
 *   refused costs a whole collection, so a host should end a script at the
 *   first one.  It cannot tell whether the limit or the system refused.
 * - Free slots of pages in use still serve, so a small object may be allocated
 *   where another is refused.
 * - The heap's goal is at most what the limit leaves for objects, less 3
 *   percent (at least 1 MiB), whatever gc_percent is, even below 0.  If it
 *   leaves too little, there is at most one collection for each MiB allocated,
 *   and one for each allocation that needs a page beyond the limit.  While
 *   collections take more than rt_config.gc_cpu_limit percent of the CPU time,
 *   only the latter collect for the limit.
 * - rt_resize does not enlarge an object beyond the limit.  While rt_realloc
 *   moves an object, both copies count.
 * - A limit below what is in use frees and moves nothing.  Pages that a thread
 *   has taken ahead may still be used.  Every other page is refused until
 *   collections and rt_free have freed enough.
 *
 * The limit counts at once, for all threads.  The goal changes at once as well:
 * it is computed anew from what the last collection found
 * (rt_config.heap_headroom).  If it is passed already, the next allocation for
 * which its thread's cache has no room collects.  rt_set_heap_max sets *old to
 * the previous limit, or to the bytes of address space if there was none, so
 * *old can be set again; old may be NULL.
 *
 * Returns 0, or RT_EPERM (not attached), RT_EBUSY (own stop), RT_ESTATE (inside
 * a blocking region; no heap); then nothing changes, and *old is untouched.
 *
 * Attached threads.  Does not collect, block or poll.
 */
RT_API int rt_set_heap_max(size_t bytes, size_t *old);

/*
 * rt_adjust_external tells the heap that objects own delta bytes more outside
 * the heap, for example for the pixels of an image, or fewer if delta is
 * negative.  The heap keeps the sum, which begins at 0.  Added bytes count as
 * allocated, so they bring the next collection nearer.  A collection counts the
 * whole sum as alive, so a large sum raises the goal as live objects do.
 *
 * A collection does not change the sum.  When the host frees such memory, it
 * must subtract what it added.  If the last collection counted that memory, the
 * goal falls at once, as if the collection had found it dead.  While gc_percent
 * is below 0 and there is neither a memory limit nor a hard limit, the sum
 * causes no collection.
 *
 * next_gc of rt_memstats and the metric /gc/heap/goal:bytes include the sum;
 * the other fields of rt_memstats do not.  Nor do the memory limit and the hard
 * limit count it, but what is added brings a collection for them nearer.  The
 * metric /memory/external:bytes is the sum itself.  A sum that would be below 0
 * becomes 0, and one above INT64_MAX becomes INT64_MAX.  Neither is an error.
 *
 * Returns 0, or RT_EPERM (not attached), RT_EBUSY (own stop), RT_ESTATE (inside
 * a blocking region; no heap); then nothing changes.
 *
 * Attached threads.  Does not collect, block or poll.  So a destructor may call
 * it to subtract what it frees.  A collection that becomes due comes with the
 * next allocation of this thread, or with one of another thread for which that
 * thread's cache has no room.
 */
RT_API int rt_adjust_external(int64_t delta);

/*
 * rt_free_os_memory runs rt_gc and then releases all free pages to the system.
 * They count in heap_released of rt_memstats until they are used again.  Where
 * a whole part of 4 MiB is free, the memory behind its bitmaps is released as
 * well; gc_sys does not change, because it counts address space.  Other threads
 * can allocate meanwhile.  A thread that needs the pages that are just being
 * released, at most 2 MiB, waits for them.  If the system's pages are larger
 * than 8 KiB, one of them that is partly in use, or partly released already, is
 * not released.
 *
 * Returns 0, or RT_EPERM (not attached), RT_EBUSY (own stop), RT_ESTATE (inside
 * a blocking region or a no-GC stretch; no heap).  It is no error if the system
 * refuses to take memory, such as locked memory (mlock).  That memory, and up
 * to 4 MiB around it, then stays with the heap.
 *
 * Attached threads.  Collects, blocks and polls.
 */
RT_API int rt_free_os_memory(void);

/*
 * ---- Handlers ----
 *
 * Each handler is one function with its argument.  Setting it replaces the
 * previous one; NULL restores the default.  A thread that has already looked up
 * the old handler may still call it after the replacement.  Handlers belong to
 * the process: rt_fini leaves them set, and the next heap has them.
 *
 * If a handler, or a ready callback (rt/final.h), runs during an allocation and
 * detaches the thread, the allocation fails: it returns NULL, or 0 from
 * rt_alloc_many.  It does so even if the thread is attached again, because
 * while it is detached its stack keeps nothing alive.  So an object that
 * rt_realloc was to resize, and that nothing else kept alive, may be gone.
 * rt_heap_list returns NULL likewise.  The same functions also fail if the
 * handler returns inside a blocking region or in a stop of its thread.
 */

/*
 * An out-of-memory handler is called when n bytes were requested, by
 * rt_stack_alloc as well, and a collection did not find them.  The alignment of
 * rt_alloc_aligned may make n more than its argument.  If the handler returns
 * 1, the allocation collects and tries again, and calls the handler again each
 * time that fails.  If it returns anything else, or 1 inside a no-GC stretch
 * that it has begun, the allocation returns NULL.
 *
 * The handler runs on the thread that allocates, which is attached and outside
 * a blocking region, its own stop and a no-GC stretch.  The world runs and no
 * lock is held.  So the handler may free what it can, change the limits,
 * allocate, collect, poll, block, fork, and enter and leave a region.  It may
 * leave by longjmp or an exception, which ends its call as a return does.  It
 * is not called for allocations that it makes itself: they return NULL if a
 * collection does not find the memory.
 *
 * If dead objects wait for their destructors, the handler may call
 * rt_run_finalizers with max 0, and return 1 if that ran any.  Then destructors
 * run inside an allocation.  rt/final.h says what the handler may do if none
 * ran, because another thread may be running them.
 *
 * Several threads may run the handler at once, so a lock of the host's must
 * protect what it frees, and no thread may hold that lock while it polls.
 */
typedef int rt_oom_fn(size_t n, void *arg);

/*
 * A handler that gets a text: one or more lines, without a newline at the end,
 * valid during the call.
 */
typedef void rt_text_fn(const char *text, void *arg);

/*
 * rt_set_oom_handler sets the out-of-memory handler.  By default there is none,
 * and the allocation returns NULL.
 *
 * Returns 0, or RT_EBUSY (own stop).
 *
 * Any thread, even before rt_init.  Does not collect, block or poll.
 */
RT_API int rt_set_oom_handler(rt_oom_fn *fn, void *arg);

/*
 * rt_set_warn_handler sets the function that is told of problems that do not
 * end the process.  The texts are for people, and later versions may change
 * them.  So a host must not react to a text; it can read what is in brackets:
 *
 * - statistics that contradict each other under RT_CHECK_REPORT (there is only
 *   the text; rt_heap_verify makes another check);
 * - once in the life of the process, that the heap uses four fifths of the
 *   mappings that the system allows (the metrics /memory/mappings:count and
 *   /memory/mappings/limit:count);
 * - once for each thread, that the thread runs on a stack that is not known,
 *   see rt/stack.h (there is only the text);
 * - that the memory limit cannot be kept, see rt_set_memory_limit (after a
 *   collection sys - heap_idle of rt_read_memstats is above
 *   /gc/gomemlimit:bytes; rt_read_memstats_live may leave pages of the dead out
 *   of heap_idle until all is swept);
 * - once in the life of a heap, that many dead objects wait for their
 *   destructors (rt_finalizers_ready);
 * - what the system refused, when rt_init or a function that attaches a thread
 *   returns RT_ENOTSUP (that result; only the text says more);
 * - what rt_config.tracecheck finds, one line in each call (there is only the
 *   text).
 *
 * fn runs inside a function of the library that a thread of the host has
 * called, with the world running and no lock held.  The thread need not be the
 * one that caused the problem.  The function is one of these:
 *
 * - one that allocates, rt_gc or rt_free_os_memory;
 * - rt_init, or one that attaches a thread;
 * - one that adds ranges, values or a callback to the roots, or
 *   rt_stack_register;
 * - for statistics that contradict each other, rt_read_memstats.  If the caller
 *   has read them in its own stop, fn runs when that stop has ended: in
 *   rt_start_the_world or, if a callback of a walk has read them, in
 *   rt_heap_walk.  If the thread ends in its own stop, fn runs in the thread's
 *   end.
 *
 * Threads of the library never call fn, unless rt_config.gc_thread_start reads
 * statistics.  Several threads may be in fn at the same time, so fn must
 * protect what it writes.  A function that fn calls may call fn again.  fn is
 * not called in a no-GC stretch, with one exception: if a thread reads
 * statistics in its own stop, and is in a stretch when that stop ends.
 *
 * In most cases the thread is attached and outside a blocking region.  Then fn
 * may call every function that such a thread may call.  But the thread may be
 * unattached or inside a region when rt_init or a function that attaches has
 * failed, and when the thread reads statistics.  In rt_init with
 * rt_config.no_attach it is unattached.  fn must return, because only one
 * thread at a time tells what tracecheck found.  By default there is no
 * handler; then the lines of tracecheck are written to stderr.
 *
 * Returns 0, or RT_EBUSY (own stop).
 *
 * Any thread, even before rt_init.  Does not collect, block or poll.
 */
RT_API int rt_set_warn_handler(rt_text_fn *fn, void *arg);

/*
 * rt_set_fatal_handler sets the function that gets the report before the
 * process aborts (rt/rt.h says what is reported).  fn runs on the thread that
 * found the problem, perhaps with the world stopped and with locks held.  That
 * thread may be one of the library; rt_trace_fn says how large its stack is.
 * So fn must not call this library or wait for other threads.  When it returns,
 * abort() follows.  By default the text is written to stderr.
 *
 * fn may start a program, such as a crash reporter, and wait for it: by
 * posix_spawn, or by vfork and exec.  These run no handlers of pthread_atfork,
 * so locks that other threads hold do not matter.  This library permits a
 * fork() (see rt_fork_prepare), but fork runs the handlers of other code, which
 * may wait for a lock for ever.
 *
 * Returns 0, or RT_EBUSY (own stop).
 *
 * Any thread, even before rt_init.  Does not collect, block or poll.
 */
RT_API int rt_set_fatal_handler(rt_text_fn *fn, void *arg);

#ifdef __cplusplus
}
#endif

#endif
