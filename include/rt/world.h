/*
 * world.h - stopping the world, and what can be done with a stopped heap.
 */
#ifndef RT_WORLD_H
#define RT_WORLD_H

#include <rt/version.h>
#include <rt/final.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Why the world is stopped.  The numbers below RT_STOP_HOST are the
 * library's; a host uses RT_STOP_HOST and above, with meanings of its own.
 */
enum rt_stop_reason {
	RT_STOP_UNKNOWN,       /* rt_free_os_memory flushes caches */
	RT_STOP_GC_MARK_TERM,  /* a collection, whatever its cause */
	RT_STOP_GC_SWEEP_TERM, /* no stop in this version */
	RT_STOP_READ_MEMSTATS, /* an exact read of statistics */
	RT_STOP_HEAP_WALK,     /* rt_heap_walk, rt_heap_list, rt_drop_now */
	RT_STOP_HEAP_VERIFY,
	RT_STOP_FORK,
	RT_STOP_KIND_UNREGISTER,
	RT_STOP_HOST = 16
};

/*
 * How long a stop took.  Frozen for this soname.  Times are nanoseconds of a
 * monotonic clock.
 */
typedef struct rt_stop_times {
	/* From the request until the last thread was stopped; the metrics
	 * /sched/pauses/stopping/... */
	uint64_t stopping_ns;
	/* From then until the threads were started. */
	uint64_t stopped_ns;
	/* stopping_ns + stopped_ns; the metrics /sched/pauses/total/... */
	uint64_t total_ns;
	/* How long the threads that ran at the request were stopped before the
	 * last of them was stopped, summed over all of them.  The stopper, if
	 * it is attached and outside a blocking region, counts with
	 * stopping_ns. */
	uint64_t stopping_cpu_ns;
	uint32_t nthreads; /* threads that were attached then */
	/* Number of the thread that was stopped last.  If no other thread had
	 * to be waited for, it is the number of the stopper, or 0 if the
	 * stopper is not attached or inside a blocking region; 0 is also the
	 * number of the first thread.  An attached thread keeps its number;
	 * after it has detached, another thread may get it.  So a host can
	 * compare slowest with that of other stops, with slowest of rt_cycle,
	 * and with what the probe rtheap:stop shows (doc/operating.md, Probes).
	 * No function returns the number of a thread.  But with gc_threads 0, a
	 * thread that stops the world while all others are in blocking regions
	 * reads its own here.  In gdb it is the id of the struct to which p of
	 * rt_thread points. */
	uint32_t slowest;
} rt_stop_times;

/*
 * rt_stop_the_world returns when no other attached thread runs: each is stopped
 * at a poll or is inside a blocking region, and none can attach or detach.  The
 * caller, which is now the stopper, may then read and write what the others
 * use, walk and verify the heap, and read statistics.  It must not allocate or
 * collect.
 *
 * Stops are made in order of request.  reason must be RT_STOP_HOST or above.
 *
 * Returns 0, or RT_EINVAL (reason below RT_STOP_HOST), RT_EPERM (caller not
 * attached), RT_EBUSY (own stop: stops do not nest), RT_ESTATE (inside a
 * blocking region or a no-GC stretch; no heap).
 *
 * Attached threads.  Blocks until earlier stops have ended and all threads are
 * stopped; the caller counts as stopped while it waits, so another thread may
 * collect meanwhile.  Does not collect.
 */
RT_API int rt_stop_the_world(int reason);

/*
 * rt_start_the_world ends the stop that the calling thread made and fills
 * *times, unless it is null.
 *
 * Returns 0, or RT_EPERM (the caller did not stop the world itself, or is
 * inside rt_heap_walk or a callback of a collection), RT_ESTATE (no heap); then
 * *times is untouched.
 *
 * Attached threads, in their own stop.  Does not block or collect.
 */
RT_API int rt_start_the_world(rt_stop_times *times);

/*
 * rt_world_stopped returns 1 while the world is stopped, by any thread, else
 * 0.  Only the stopper can rely on the answer for longer than the call.
 *
 * Any thread, at any time, even before rt_init (0), in its own stop and in a
 * signal handler.  Does not block.
 */
RT_API int rt_world_stopped(void);

/*
 * What all stops for one reason took since rt_init.  Times are nanoseconds.
 *
 * The struct may grow at its end.
 */
typedef struct rt_stops {
	/* Bytes that rt_read_stops has filled: those that both the library and
	 * the host know. */
	size_t struct_size;

	uint64_t count; /* stops that have ended */

	/* Sums over them; see rt_stop_times. */
	uint64_t stopping_ns;
	uint64_t total_ns;

	/* The one with the greatest total_ns, with its slowest thread; of equal
	 * ones the first.  All is 0 if there was none. */
	rt_stop_times longest;

	/* The reason of that one. */
	int32_t longest_reason;
	uint32_t spare; /* 0 */
} rt_stops;

/*
 * rt_read_stops fills *s with what the stops for a reason (enum rt_stop_reason)
 * took.  All stops of the host count together: every reason from RT_STOP_HOST
 * on reads the same figures, and longest_reason is the host's number.  As long
 * as there was no stop for a reason of the library, all its figures are 0.  In
 * this version there is never a stop for RT_STOP_GC_SWEEP_TERM.  The figures
 * begin at rt_init and are never reset.
 *
 * The figures are of one moment.  A stop counts before another thread can stop
 * the world.  The child of a fork begins with those of its parent, and both
 * count the stop of that fork.
 *
 * rt_read_stops_sized fills the first size bytes of *s.  Bytes that this
 * library does not know become 0.
 *
 * Returns 0, or RT_EINVAL (s is null, size is below 16 or above 4096, or the
 * reason is below 0, or below RT_STOP_HOST and not in enum rt_stop_reason),
 * RT_ESTATE (no heap); then *s is untouched.
 *
 * Any thread, even inside a blocking region and in its own stop, which counts
 * only when it has ended.  Does not block, collect or poll.
 */
RT_API int rt_read_stops_sized(int reason, rt_stops *s, size_t size);
#define rt_read_stops(reason, s) rt_read_stops_sized((reason), (s), sizeof *(s))

/*
 * A callback of rt_heap_walk returns 0 to continue, or this to end the walk.
 * Any other number counts as 0.
 */
enum { RT_WALK_STOP = 1 };

/*
 * A callback of rt_heap_walk gets one object that begins at obj, its size as
 * rt_size returns it, its kind (enum rt_kind), and the walk's arg.
 */
typedef int rt_walk_fn(void *obj, size_t size, int kind, void *arg);

/*
 * rt_heap_walk calls fn for every allocated object, in no particular order:
 * those that the last collection found alive and all that are newer, so some
 * may be unreachable.  Objects that were combined because they are smaller
 * than RT_NOSCAN_MIN bytes (with rt_config.align8 than 16) appear as one of 16.
 *
 * fn runs in the caller's own stop, even if the walk has made that stop.  So it
 * may call only what is allowed there (rt/rt.h), and it must not start the
 * world or leave by longjmp.  fn may be left by a C++ exception, or by the end
 * of the thread; the walk is over then.  obj is valid during the call.  A host
 * that stores it where the collector looks keeps the object alive.
 *
 * Returns 0, even if fn ended the walk, or RT_EINVAL (fn is null), RT_EPERM
 * (not attached), RT_EBUSY (inside a callback of a collection), RT_ESTATE
 * (inside a blocking region or a no-GC stretch; no heap).
 *
 * Attached threads.  Allowed in the caller's own stop; otherwise it makes a
 * stop, for which it blocks.  Does not collect.  Time grows with the heap.
 */
RT_API int rt_heap_walk(rt_walk_fn *fn, void *arg);

/*
 * rt_heap_list returns a new RT_WORDS array of the allocated objects of a kind
 * for which pick returns 1, in no particular order, and sets *n to their
 * number.  If kind is -1, objects of every kind are listed; if pick is null,
 * all objects.  The objects are those that rt_heap_walk would show, without the
 * array itself, so some may be unreachable; the array keeps them alive.  The
 * array is an ordinary object, which rt_free may free.  If there are no
 * objects, the result is still an array, not NULL, and *n is 0.  While it goes
 * through the array, the host may allocate, run code of its interpreter and
 * leave by longjmp, which it must not do in a walk.
 *
 * pick (rt/final.h) must return.  Any result but 1 means no.  It may be called
 * several times for an object: once to count, once to list, and again if other
 * threads have made more objects meanwhile.  The object may be one that its
 * thread has not filled yet: all zeros, or part of what it will hold.
 *
 * Returns NULL if n is null, if there is no such kind, or if there is no memory
 * even after a collection and a call of the out-of-memory handler; then *n is
 * untouched.  It does the same if there is no heap, or if the thread is not
 * attached, inside a blocking region or a no-GC stretch, or in its own stop.
 *
 * Attached threads, outside a blocking region and not in their own stop.
 * Collects, blocks and polls.  Time grows with the heap.
 */
RT_API void **rt_heap_list(int kind, rt_pick_fn *pick, void *arg, size_t *n);

/* The result of rt_heap_verify.  Frozen for this soname. */
struct rt_verify {
	uint64_t spans;	  /* spans (rt/rt.h) looked at */
	uint64_t objects; /* allocated objects in them */
	uint64_t bytes;	  /* their sizes added up */
	uint64_t errors;  /* contradictions found; 0 in a healthy heap */
	char first[160];  /* the first of them in words, else empty */
};

/*
 * rt_heap_verify checks every structure of the heap against every other, and
 * fills *out.  Before that it sweeps what is left to sweep (rt_config.sweep)
 * and flushes the caches of threads.  It changes nothing else in the heap.  It
 * continues after a contradiction, counts all of them, and describes the first
 * one.  A contradiction means that host code has written outside its objects,
 * or that the library has a bug.
 *
 * Returns 0, whether or not out->errors is 0, or RT_EINVAL (out is null),
 * RT_EPERM (not attached), RT_EBUSY (inside a callback of a collection),
 * RT_ESTATE (inside a blocking region or a no-GC stretch; no heap).
 *
 * Attached threads.  Allowed in the caller's own stop; otherwise it makes a
 * stop, for which it blocks.  Does not collect.  Time grows with the heap.
 */
RT_API int rt_heap_verify(struct rt_verify *out);

#ifdef __cplusplus
}
#endif

#endif
