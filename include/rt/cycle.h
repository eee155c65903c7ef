/*
 * cycle.h - records of the last collections: what each did, and how long it
 * took.
 */
#ifndef RT_CYCLE_H
#define RT_CYCLE_H

#include <rt/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Collections of which there are records: the newest ones. */
enum { RT_CYCLES = 256 };

/*
 * Why a collection ran.  Threads that need one at the same time share it; it
 * then has the cause of the thread that asked first.
 */
enum rt_cause {
	RT_CAUSE_GOAL,	 /* the heap had reached its goal */
	RT_CAUSE_LIMIT,	 /* the same, and a limit (rt/gc.h) had lowered it */
	RT_CAUSE_FORCED, /* rt_gc or rt_free_os_memory */
	RT_CAUSE_MEMORY, /* an allocation found no memory */
	RT_CAUSE_STRESS, /* rt_config.gcstress */
	/* There was no collection for rt_config.gc_period_s.  The background
	 * thread ran it. */
	RT_CAUSE_PERIODIC
};

/* The term that a goal equals (goal_percent and the fields behind it).  It is
 * the limit if that is below the greatest of the other four, otherwise the
 * first of the terms that equal the goal. */
enum rt_bound {
	RT_BOUND_PERCENT,
	RT_BOUND_HEADROOM,
	RT_BOUND_MINIMUM,
	RT_BOUND_BEFORE,
	RT_BOUND_LIMIT
};

/*
 * The record of one collection.  Sizes are bytes, times nanoseconds.  A clock
 * that the system refuses makes a time 0.
 *
 * The struct may grow at its end.
 */
typedef struct rt_cycle {
	/* Bytes that rt_read_cycle has filled: those that both the library and
	 * the host know. */
	size_t struct_size;

	/* 1 for the first collection of the heap.  The newest has the number
	 * that num_gc of rt_memstats shows modulo 2^32. */
	uint64_t number;

	uint32_t cause;	 /* enum rt_cause */
	uint32_t forced; /* 1: counts in num_forced_gc of rt_memstats */

	/* From rt_init until the stop was requested. */
	uint64_t start_ns;

	/* When the pause ended, in ns since 1970; pause_end of rt_memstats. */
	uint64_t end;

	/* Wall time of the steps.  Those up to finish_ns are one stop. */
	uint64_t stopping_ns; /* from the request until all were stopped */
	uint64_t prepare_ns;  /* until caches of all threads were flushed */
	uint64_t mark_ns;
	uint64_t sweep_ns; /* about 0 if the sweep came after the stop */
	uint64_t finish_ns; /* next goal; memory for threads that had none */

	/* The sum of these five; pause_ns of rt_memstats. */
	uint64_t pause_ns;

	/* What followed while the threads ran: the collector released its
	 * memory, and chose what gets huge pages
	 * (rt_config.huge_pages). */
	uint64_t release_ns;

	/* CPU time.  mark_cpu_ns is that of the thread that collected and of
	 * helpers.  sweep_cpu_ns is only that of the thread that collected, in
	 * the stop (rt_config.sweep).  If heap_start is below 1 MiB, no clock
	 * is read for these two, and that thread counts with its wall time.
	 * CPU time of sweeping after the stop is in the record of the next
	 * collection (swept_background_cpu_ns, swept_assist_cpu_ns).
	 * process_cpu_ns is that of the whole process during the stop,
	 * including helpers and threads inside blocking regions. */
	uint64_t stopping_cpu_ns; /* as in rt_stop_times */
	uint64_t mark_cpu_ns;
	uint64_t sweep_cpu_ns;
	uint64_t process_cpu_ns;

	/* Bytes: what counted as allocated when all were stopped
	 * (rt_heap_live), the same after caches were flushed, and what marking
	 * found alive. */
	uint64_t heap_start;
	uint64_t heap_flushed;
	uint64_t heap_live;

	/* The heap's goal (rt/rt.h) when all were stopped, and the one that
	 * this collection set; UINT64_MAX: none.  If the sweep came after the
	 * stop, the second is the one until all was swept; the final goal may
	 * be higher. */
	uint64_t goal;
	uint64_t next_goal;

	/* Bytes that were scanned.
	 *   scan_heap     of objects, including uncollectable ones
	 *   scan_stack    of stacks of threads, of registered stacks (the part
	 *                 in use; of an owned stack only if rt_trace_stack told
	 *                 it), and of variables that RT_FRAME names
	 *   scan_globals  of registered ranges, handles, and static data
	 *                 (rt_roots_static)
	 * The goal counts scan_stack + scan_globals as roots.  All other
	 * references that root callbacks tell count nowhere. */
	uint64_t scan_heap;
	uint64_t scan_stack;
	uint64_t scan_globals;

	/* Objects that were marked, and those of them that helpers marked. */
	uint64_t marked_objects;
	uint64_t helped_objects;

	/* gc_cpu_fraction of rt_memstats as of the end of this collection. */
	double gc_cpu_fraction;

	uint32_t markers;   /* threads that marked, including helpers */
	uint32_t max_procs; /* rt_config.max_procs */

	/* The stop: its reason (enum rt_stop_reason), the number of attached
	 * threads, and the number of the one that was stopped last (slowest of
	 * rt_stop_times says what it can be compared with). */
	uint32_t reason;
	uint32_t nthreads;
	uint32_t slowest;
	uint32_t spare; /* 0 */

	/* heap_inuse, heap_idle and heap_released of rt_memstats at the end of
	 * the stop.  Memory of the collector that is freed later (release_ns)
	 * is in none of them.  If the sweep came after the stop, the pages of
	 * the dead count in heap_inuse, and not yet in heap_idle. */
	uint64_t heap_inuse;
	uint64_t heap_idle;
	uint64_t heap_released;

	/* Bytes that were released since the previous collection: by the
	 * background thread (rt_config.scavenge), and by threads that allocated
	 * at the memory limit.  Neither includes what rt_free_os_memory
	 * released (scavenged_forced). */
	uint64_t scavenged_background;
	uint64_t scavenged_assist;

	/* These three are about the sweep of collection number - 1, if that
	 * left it for after its stop (rt_config.sweep).  The record of that
	 * collection cannot have them: it is complete soon after that stop, and
	 * the sweep may end later.  The sweep ends before this collection
	 * begins.
	 *
	 * swept_ns is wall time, from the end of that stop until all was swept.
	 * It is 0 only if that collection swept in its stop, if there was none,
	 * or if the system refuses the clock.  If there is no thread of the
	 * library (rt_config.gc_threads), and no thread needs memory or calls
	 * rt_safepoint, a sweep may last until just before this collection.  So
	 * it is no measure of work.
	 *
	 * The other two are CPU time of sweeping after the stop: that of the
	 * background thread, and that of the host's threads.  Either is 0 as
	 * well if that side swept nothing.  Time of helpers is in neither.
	 *
	 * The metrics /gc/sweep/duration:seconds,
	 * /gc/sweep/background:cpu-seconds and /gc/sweep/assist:cpu-seconds
	 * have the sums since rt_init, and with them the newest sweep. */
	uint64_t swept_ns;
	uint64_t swept_background_cpu_ns;
	uint64_t swept_assist_cpu_ns;

	/* Bytes that rt_free_os_memory released since the previous
	 * collection. */
	uint64_t scavenged_forced;

	/* Bytes that counted for the goal when all were stopped: heap_start, by
	 * how much interpreter stacks had grown since the previous collection,
	 * and what objects own outside the heap (rt_adjust_external). */
	uint64_t used;

	/* Bytes of objects that were allocated since the previous collection,
	 * freed or not: growth of total_alloc of rt_memstats. */
	uint64_t allocated;

	/* CPU time of the process from the end of the previous collection's
	 * stop until the end of this stop.  process_cpu_ns is part of it.  For
	 * the first collection of a heap the time begins with the process, even
	 * if the heap is not the first one.  In the child of a fork, if the
	 * heap is older than the fork, CPU time of the parent until the fork
	 * counts as time of the child. */
	uint64_t interval_cpu_ns;

	/* The bucket of rt_config.gc_cpu_limit at the end of the stop: CPU time
	 * in it, and its size. */
	uint64_t limiter_fill_ns;
	uint64_t limiter_capacity_ns;

	/* Bytes of pages of objects (heap_inuse) when marking had ended, which
	 * are to be swept, and those that the sweep in the stop freed. */
	uint64_t sweep_inuse;
	uint64_t sweep_freed;

	/* The terms of next_goal, in bytes: it is the greatest of the first
	 * four, but at most the last.
	 *   percent   what lives, and the percentage of that, of stacks and of
	 *             roots (rt_set_gc_percent)
	 *   headroom  what lives, and rt_config.heap_headroom, or less for a
	 *             small heap
	 *   minimum   rt_config.heap_min at the percentage
	 *   before    what is kept of the previous goal while the heap still
	 *             has the pages of what died; 0: nothing
	 *   limit     what the memory limit and the hard limit leave
	 * UINT64_MAX: there is no such term.  The first three are so while
	 * gc_percent is below 0, the last if there is no limit. */
	uint64_t goal_percent;
	uint64_t goal_headroom;
	uint64_t goal_minimum;
	uint64_t goal_before;
	uint64_t goal_limit;

	uint32_t goal_bound;	  /* enum rt_bound: the term of next_goal */
	uint32_t sweep_beside;	  /* 1: the sweep came after the stop */
	uint32_t limiter_percent; /* rt_config.gc_cpu_limit */
	/* 1: the bucket is full.  Then the memory limit causes no collection
	 * and no release by an allocation, and the hard limit only a collection
	 * for an allocation that needs a page beyond it. */
	uint32_t limiter_limiting;
} rt_cycle;

/*
 * rt_read_cycle fills *c with the record of a collection by its number, or of
 * the newest one if number is 0.  A record never changes.  It can be read
 * before the world is stopped again.  So if an exact read (rt_read_memstats)
 * counts n collections, the record of number n can be read after it.  Live
 * statistics may show a collection some microseconds before its record can be
 * read.
 *
 * rt_read_cycle_sized fills the first size bytes of *c.  Bytes that this
 * library does not know become 0.
 *
 * Returns 0, or RT_EINVAL (c is null, or size is below 16 or above 4096),
 * RT_ENOENT (no such collection has ended, or RT_CYCLES others have since),
 * RT_ESTATE (no heap); then *c is untouched.
 *
 * Any thread, even inside a blocking region and in its own stop.  Does not
 * block, collect or poll.
 */
RT_API int rt_read_cycle_sized(uint64_t number, rt_cycle *c, size_t size);
#define rt_read_cycle(number, c) rt_read_cycle_sized((number), (c), sizeof *(c))

#ifdef __cplusplus
}
#endif

#endif
