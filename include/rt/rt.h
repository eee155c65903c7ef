/*
 * rt.h - rtheap: a garbage-collected heap for language runtimes.
 *
 * There is one heap in a process.  rt_init makes it, threads attach to it, and
 * rt_alloc allocates memory that is freed when nothing refers to it any more.
 *
 * A plugin that uses the heap of its program contains no copy of the library.
 * The program exports the library's names: it is linked with the shared
 * library, or with the static one and -rdynamic.  In the plugin rt_init then
 * returns RT_ESTATE.  A plugin that is linked with the shared library has a
 * heap of its own if the program contains the static library and does not
 * export its names.  Then the plugin's rt_init returns 0.  Before it is
 * unloaded, a plugin must remove all that leads to its code and data: ranges,
 * root callbacks, stacks, kinds, the ready callback and the handlers.
 * rt/final.h says how to end kinds.
 *
 * A shared object that contains the static library, such as a plugin, must be
 * linked with the options that rtheap.pc has as plugin_libs.  It then has a
 * heap of its own.  Without them it exports the library's names.  If the
 * program exports them as well, the shared object uses the program's heap, and
 * its rt_init returns RT_ESTATE.  Otherwise it has its own heap, and must not
 * be unloaded: a thread that it attached runs the library's code when it ends.
 *
 * Two heaps know nothing of each other:
 *
 *  - No thread may be attached to both.  A collection of one would wait for
 *    ever for a thread that waits for a collection of the other.  The library
 *    does not detect such a thread.  rt_init attaches its caller, so a plugin
 *    must call it with no_attach, or on a thread of its own.
 *  - A thread that is attached to either of them must fork inside a blocking
 *    region (rt_call_blocking), because at a fork each heap waits for its own
 *    threads.
 *
 * Words that the comments use:
 *
 *  - A "poll", or safepoint, is a place where an attached thread may be
 *    stopped.
 *  - A "callback of a collection" is a root callback (rt_roots_fn), a trace
 *    callback (rt_trace_fn) or a describe callback (rt_describe_fn).  It runs
 *    with the world stopped.  The only functions of this library that it may
 *    call are rt_handle_get and those that any thread may call "at any time":
 *    rt_size, rt_base, rt_is_heap, rt_kind_of, rt_heap_live,
 *    rt_finalizers_ready, rt_thread_self, rt_strerror and so on.  Root and
 *    trace callbacks may call those of rt/trace.h and rt_trace_stack as well,
 *    and root callbacks rt_thread_stack and rt_thread_set_stack_of.
 *  - A "span" is a row of the heap's pages, of 8 KiB each, with slots of one
 *    size class, or with one large object.
 *  - A thread's "cache" is what it allocates from without a lock: one span for
 *    each size class and kind that it allocates, slots that it has freed, and
 *    some free pages.  A "run" is free slots in a row of such a span
 *    (rt/alloc.h).
 *  - The heap's "goal" is the size at which the next collection is meant to
 *    end.  In this version a collection begins there.  rt_config.heap_headroom
 *    has the formula.
 *  - The "hard limit" is that of rt_set_heap_max, the "memory limit" that of
 *    rt_set_memory_limit.
 *  - "Go" is the runtime of the Go language.  The library follows its design,
 *    and says where something is as in Go.
 *  - A name such as /gc/heap/live:bytes is that of a metric (rt/metrics.h).
 *
 * How the comments of the functions read:
 *
 *  - "Attached threads" means that a caller that is not attached gets
 *    RT_EPERM, or NULL or 0 where the result is a pointer or a size.  "Any
 *    thread" needs no attachment.
 *  - "Collects": the function may run a collection.  Then an object may be gone
 *    if the caller refers to it only from a place where the collector does not
 *    look.
 *  - "Blocks": the function may wait for another thread, or for the end of a
 *    stop of the world.  Another thread may collect meanwhile, even one of the
 *    library (rt_config.gc_period_s).  The caller must hold no lock for which
 *    another attached thread waits outside a blocking region.
 *  - "Polls": if a stop is requested, the thread is stopped here until the
 *    world starts again.  Most allocations are inline and do not poll:
 *    rt/alloc.h says which ones do.
 *  - A function does none of these three unless its comment says so.  But it
 *    may call a handler of the host, such as the warn handler, and that may do
 *    them.  A function that "waits at most" for something does not block.
 *  - A thread is in its "own stop" between its calls of rt_stop_the_world and
 *    rt_start_the_world, and in a walk callback (rt_heap_walk) or a pick
 *    callback (rt_heap_list, rt_drop_now).  There a function returns RT_EBUSY,
 *    NULL or 0, unless its comment allows the call or names another error.
 *  - In a "no-GC stretch", between rt_nogc_enter and rt_nogc_leave, a function
 *    that blocks or polls returns RT_ESTATE, NULL or 0.  So does
 *    rt_blocking_enter.  The exceptions are allocation and a fork
 *    (rt/thread.h), and rt_nogc_leave itself.
 *  - Before rt_init and after rt_fini functions return RT_ESTATE, NULL or 0,
 *    unless their comments say otherwise.
 *  - In a signal handler only rt_thread_self, rt_world_stopped and rt_version
 *    may be called.
 *  - An inline function or a macro checks only what its own comment says.
 *    rt_handle_get, RT_STORE, RT_FRAME and the inline functions of rt/trace.h
 *    check nothing: a call that their comments do not allow may have any
 *    effect.
 *  - No function changes errno, whatever it returns, but a handler or callback
 *    of the host may.
 *
 * An int result is 0 or a negative enum rt_error.  If several errors apply, it
 * may be any of them.  Where the name asks a question, the result is 1 or 0.  A
 * function that returns a number of its own, such as a kind, returns a negative
 * enum rt_error instead if it fails.  A function that allocates returns a
 * pointer.  NULL means that there is no memory, or one of the cases that its
 * comment names.
 *
 * The library prints a report before it aborts.  It aborts for a bug of its
 * own, for memory that was overwritten, for a reference that a callback of the
 * host told only sometimes (rt_config.checkmark), and for statistics that
 * contradict each other under RT_CHECK_FATAL.  Otherwise it prints only the
 * lines of rt_config.gctrace, scavtrace and gcpacertrace and, if there is no
 * warn handler, those of rt_config.tracecheck.  A library built with
 * --enable-debug also prints which function a callback called that it must not
 * call.
 */
#ifndef RT_RT_H
#define RT_RT_H

#include <rt/version.h>
#include <rt/config.h>
#include <rt/trace.h>
#include <rt/kind.h>
#include <rt/alloc.h>
#include <rt/free.h>
#include <rt/thread.h>
#include <rt/world.h>
#include <rt/fork.h>
#include <rt/roots.h>
#include <rt/frame.h>
#include <rt/stack.h>
#include <rt/barrier.h>
#include <rt/gc.h>
#include <rt/final.h>
#include <rt/memstats.h>
#include <rt/cycle.h>
#include <rt/metrics.h>

#endif
