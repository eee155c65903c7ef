/*
 * memstats.h - statistics of the heap: Go's MemStats.
 */
#ifndef RT_MEMSTATS_H
#define RT_MEMSTATS_H

#include <rt/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Lengths of the pause ring and of by_size. */
enum { RT_PAUSES = 256, RT_BY_SIZE = 61 };

/* One size class; frozen for this soname. */
struct rt_memstats_size {
	uint32_t size; /* bytes per slot */
	uint32_t pad;
	uint64_t mallocs; /* slots ever allocated */
	uint64_t frees;	  /* slots ever freed */
};

/*
 * The statistics.  The fields are Go's, in Go's order, and frozen for this
 * soname; rt/metrics.h has the numbers that Go's struct lacks.  Sizes are
 * bytes, counts are of objects.  "Ever" counts since rt_init and never falls.
 *
 * A span is a row of pages with slots of one size class, or with one large
 * object (above 32760 bytes).  An object counts with the bytes of its slot:
 * those of its size class, or whole pages of 8192 if it is large.  A free page
 * is "retained" until it is "released" to the system.  Fresh address space of
 * the heap begins as released.
 *
 * In the result of one call, of either reader, these hold exactly:
 *
 *   alloc == heap_alloc == total_alloc - bytes ever freed
 *   heap_objects == mallocs - frees
 *   heap_sys == heap_inuse + heap_idle
 *   sys == heap_sys + stack_sys + mspan_sys + mcache_sys + buckhash_sys +
 *          gc_sys + other_sys
 *   heap_alloc <= heap_inuse, heap_released <= heap_idle
 */
typedef struct rt_memstats {
	/* Bytes of allocated objects; the same as heap_alloc. */
	uint64_t alloc;

	/* Bytes of objects ever allocated: large ones, plus for each size
	 * class its slots ever allocated times its size. */
	uint64_t total_alloc;

	/* Bytes of address space obtained from the system: the sum of the
	 * fields named ..._sys below.  Reserved, untouched space is not
	 * counted. */
	uint64_t sys;

	/* 0; Go keeps the field for old programs, and so do we. */
	uint64_t lookups;

	/* Objects ever allocated: large ones, slots of every size class, and
	 * those that were combined into a slot of 16 bytes with others. */
	uint64_t mallocs;

	/* Objects ever freed: large ones and slots of every size class, plus
	 * all combined ones ever allocated.  Combined objects are never freed
	 * one by one.  They count both here and in mallocs, so they cancel in
	 * heap_objects. */
	uint64_t frees;

	/* Bytes of allocated objects: reachable ones and those that the
	 * collector has not freed yet.  Ever allocated minus ever freed. */
	uint64_t heap_alloc;

	/* Bytes of the heap's address space: heap_inuse + heap_idle. */
	uint64_t heap_sys;

	/* Bytes of free pages, retained or released.  heap_idle -
	 * heap_released is how much the heap could release. */
	uint64_t heap_idle;

	/* Bytes of spans that hold objects.  No more than heap_inuse -
	 * heap_alloc of them is free. */
	uint64_t heap_inuse;

	/* Bytes of free pages that were released; part of heap_idle. */
	uint64_t heap_released;

	/* Allocated objects: mallocs - frees.  Combined ones do not count,
	 * but the slot that they share does. */
	uint64_t heap_objects;

	/* Bytes of spans for stacks of interpreters (rt_stack_alloc). */
	uint64_t stack_inuse;

	/* stack_inuse, plus bytes that the library maps for stacks of threads:
	 * none, since those of its helpers come from libc. */
	uint64_t stack_sys;

	/* Bytes of span records in use, and bytes mapped for such records. */
	uint64_t mspan_inuse, mspan_sys;

	/* Bytes of the caches of attached threads, and bytes mapped for
	 * caches. */
	uint64_t mcache_inuse, mcache_sys;

	/* Bytes mapped for profiles; 0 while there are none. */
	uint64_t buckhash_sys;

	/* Bytes mapped for the collector: its tables about pages, spans and
	 * objects, such as bitmaps, and the buffers that marking needs. */
	uint64_t gc_sys;

	/* Bytes mapped for everything else. */
	uint64_t other_sys;

	/* The heap's goal: heap_alloc plus the sum of rt_adjust_external when
	 * the next collection is meant to end.  UINT64_MAX if gc_percent is
	 * off and there is neither a memory limit nor a hard limit
	 * (rt_set_heap_max).  It may exceed rt_config.max_heap. */
	uint64_t next_gc;

	/* When the last collection ended, in ns since 1970; 0 if none has. */
	uint64_t last_gc;

	/* How long collections have stopped the world in all, in ns. */
	uint64_t pause_total_ns;

	/* The last 256 pauses, in ns, and when each ended, in ns since
	 * 1970.  Each collection has one entry, the sum of its stops.  The
	 * newest is at [(num_gc + 255) % 256]; unused entries are 0. */
	uint64_t pause_ns[RT_PAUSES];
	uint64_t pause_end[RT_PAUSES];

	/* Collections that have ended, and those of them that rt_gc or
	 * rt_free_os_memory requested; both modulo 2^32. */
	uint32_t num_gc, num_forced_gc;

	/* The fraction of the available CPU time, 0 to 1, that collections
	 * have taken since rt_init: (total of gc - gc idle) / total of the
	 * metrics /cpu/classes/..., as of the end of the last one. */
	double gc_cpu_fraction;

	/* 1: there is a collector, even if gc_percent is off. */
	uint8_t enable_gc;

	/* 0; Go keeps the field for old programs, and so do we. */
	uint8_t debug_gc;

	uint8_t spare[6];

	/* Size classes 0 to 60.  Class 0 is not used, and all zero.  Classes
	 * 61 to 67 (19072 to 32768 bytes) and large objects are not here. */
	struct rt_memstats_size by_size[RT_BY_SIZE];
} rt_memstats;

RT_ABI_ASSERT_(sizeof(struct rt_memstats_size) == 24, "rt_memstats is ABI");
RT_ABI_ASSERT_(offsetof(rt_memstats, other_sys) == 160, "rt_memstats is ABI");
RT_ABI_ASSERT_(offsetof(rt_memstats, pause_ns) == 192, "rt_memstats is ABI");
RT_ABI_ASSERT_(offsetof(rt_memstats, pause_end) == 2240, "rt_memstats is ABI");
RT_ABI_ASSERT_(offsetof(rt_memstats, num_gc) == 4288, "rt_memstats is ABI");
RT_ABI_ASSERT_(offsetof(rt_memstats, gc_cpu_fraction) == 4296,
	       "rt_memstats is ABI");
RT_ABI_ASSERT_(offsetof(rt_memstats, enable_gc) == 4304, "rt_memstats is ABI");
RT_ABI_ASSERT_(offsetof(rt_memstats, by_size) == 4312, "rt_memstats is ABI");
RT_ABI_ASSERT_(sizeof(rt_memstats) == 5776, "rt_memstats is ABI");

/*
 * rt_read_memstats fills *m with the statistics as of this call.  All are of
 * one moment, and include what is in the caches of threads.  The call stops the
 * world for a time that grows with the number of threads, not with the size of
 * the heap.  There are two exceptions:
 *
 *  - With rt_config.sweep above 0 it first frees what the last collection found
 *    dead.  A caller that is attached and in no region frees as much of it as
 *    it can before the stop.
 *  - In the stop it returns to the heap the slots that rt_free has freed, if
 *    they were not allocated again (rt/free.h).
 *
 * The call also frees the unused rest of the threads' runs (rt/alloc.h).  In
 * double-check mode it compares six pairs of independent counters as well.
 *
 * Returns 0, or RT_EINVAL (m is null: nothing was stopped), RT_EBUSY (inside a
 * callback of a collection), RT_ESTATE (inside a no-GC stretch; no heap).
 *
 * Any thread, even inside a blocking region.  An attached thread outside a
 * region counts as stopped while it waits for another thread's stop, so a
 * collection may run meanwhile.  In its own stop it makes no second one.
 * Blocks.  Does not collect.
 */
RT_API int rt_read_memstats(rt_memstats *m);

/*
 * rt_read_memstats_live fills *m without stopping any thread, in a time that
 * grows with the number of threads.  It is meant for monitoring.  All fields of
 * the heap are of one moment, and the relations above hold.  Its result differs
 * from that of rt_read_memstats in these ways:
 *
 * - Objects that a thread has allocated from the spans that it caches now, at
 *   most one span for each size class and kind, do not count yet.
 * - Small objects that were combined meanwhile do not count yet either.
 * - Small objects that rt_free has freed may still count (rt/free.h).
 * - Stacks that threads keep for the next rt_stack_alloc count in stack_inuse.
 * - With rt_config.sweep above 0, objects that the last collection found dead
 *   may still count, their pages in heap_inuse, and next_gc may be less than it
 *   will be once they are freed.
 *
 * Returns 0, or RT_EINVAL (m is null), RT_ESTATE (no heap).
 *
 * Any thread, even inside a blocking region and in its own stop.  Waits at most
 * for another live reader.  Does not collect or poll.
 */
RT_API int rt_read_memstats_live(rt_memstats *m);

/* Words that hold any result of rt_read_gcstats. */
enum { RT_GCSTATS_WORDS = 2 * RT_PAUSES + 3 };

/*
 * rt_read_gcstats writes the history of pauses to buf, which must have room for
 * nwords words.  It sets *used to the number of words that it has written, 2 *
 * n + 3, where n is the number of collections, at most 256:
 *
 *   n pauses in ns, newest first; n times in ns since 1970 at which they
 *   ended, newest first; the end of the last collection (0: none); the number
 *   of collections, modulo 2^32; the sum of all pauses ever, in ns
 *
 * All words are of one moment.
 *
 * Returns 0, or RT_EINVAL (buf or used is null, nwords is below
 * RT_GCSTATS_WORDS), RT_ESTATE (no heap).
 *
 * Any thread, even inside a blocking region and in its own stop.  Does not
 * block, collect or poll.
 */
RT_API int rt_read_gcstats(uint64_t *buf, size_t nwords, size_t *used);

/*
 * rt_set_memstats_double_check sets what rt_read_memstats does about
 * statistics that contradict each other: an enum rt_double_check, as
 * rt_config.double_check.
 *
 * Returns 0, or RT_EINVAL (unknown mode), RT_EBUSY (own stop), RT_ESTATE (no
 * heap).
 *
 * Any thread.  Does not block, collect or poll.
 */
RT_API int rt_set_memstats_double_check(int mode);

#ifdef __cplusplus
}
#endif

#endif
