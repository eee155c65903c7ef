/*
 * rt.h - rtheap: a garbage-collected heap for language runtimes.
 *
 * There is one heap in a process.  rt_init makes it, threads attach to it,
 * rt_alloc gives memory that is freed when nothing refers to it any more.
 *
 * A shared object that holds the static library, such as a plugin, exports the
 * library's names unless it is linked with the options that rtheap.pc has as
 * plugin_libs.  If it exports them, program and plugin use one heap, and the
 * second rt_init returns RT_ESTATE.  With plugin_libs the plugin has a heap of
 * its own.  The two heaps know nothing of each other, so no thread may be
 * attached to both: a collection of one would wait for a thread that waits for
 * a collection of the other, for ever.  The library cannot see such a thread.
 *
 * How the comments of the functions read:
 *
 *  - "Attached threads" means that a caller that is not attached gets
 *    RT_EPERM, or NULL or 0 where the result is a pointer or a size.  "Any
 *    thread" needs no attachment.
 *  - "Collects": may run a collection.  A pointer that the caller holds in a
 *    place the collector does not look at may then be gone.
 *  - "Blocks": may wait for another thread, or for the end of a stop of the
 *    world.  The caller holds no lock that another attached thread awaits
 *    outside a blocking region.
 *  - "Polls": a stop that is wanted takes place here; the thread stands until
 *    the world starts again.
 *  - "Own stop" is between rt_stop_the_world and rt_start_the_world, for the
 *    thread that called them.  What is not said to be allowed there is
 *    refused with RT_EBUSY, NULL or 0.
 *  - Before rt_init and after rt_fini functions return RT_ESTATE, NULL or 0
 *    unless they say otherwise.
 *  - In a signal handler only rt_thread_self, rt_world_stopped and rt_version
 *    may be called.
 *  - errno is the caller's: no function changes it, whatever it returns, but a
 *    handler or callback of the host may.
 *
 * An int result is 0 or a negative enum rt_error, or a truth value where the
 * name asks a question.  The library prints nothing but the report of a bug
 * of its own, before it aborts.
 */
#ifndef RT_RT_H
#define RT_RT_H

#include <rt/version.h>
#include <rt/config.h>
#include <rt/alloc.h>
#include <rt/kind.h>
#include <rt/thread.h>
#include <rt/world.h>
#include <rt/fork.h>
#include <rt/roots.h>
#include <rt/barrier.h>
#include <rt/gc.h>
#include <rt/memstats.h>
#include <rt/metrics.h>

#endif
