// pacer.h - when to collect.
//
// Go: gcControllerState.commit, heapGoal (mgcpacer.go); the headroom is ours.
// The functions that compute a goal are pure arithmetic: the callers pass in
// all that they need, even what the settings say, so that tests can simulate
// any heap.  Marking runs with the world stopped, so there is no runway: the
// trigger is the goal.
#ifndef GC_CYCLE_PACER_H
#define GC_CYCLE_PACER_H

#include <rt/cycle.h>

#include "runtime/os/lock.h"
#include "gc/cycle/limiter.h"

#define PACER_NEVER (~UINT64_C(0))
#define PACER_NO_LIMIT ((uint64_t)INT64_MAX)

// What the host has asked for.  There is no check function: any values are
// possible.
struct pacer_rule {
	int64_t percent;   // below 0: never
	uint64_t heap_min; // bytes: least goal at 100 percent
	uint64_t headroom; // bytes; 0: Go's rule
	uint64_t limit;	   // bytes mapped, or PACER_NO_LIMIT
	uint64_t heap_max; // bytes of pages in use; 0: no limit
};

// What the limits count, at one moment.
struct pacer_memory {
	uint64_t mapped; // bytes mapped and not released
	uint64_t free;	 // of them, bytes of free pages
	uint64_t alloc;	 // of them, bytes of objects
	uint64_t in_use; // of them, bytes of pages of objects and stacks
};

// What the last collection found.
struct pacer_found {
	uint64_t heap_marked;  // bytes
	uint64_t stack_scan;   // bytes of threads' stacks
	uint64_t globals_scan; // bytes of root ranges
	uint64_t stack_inuse;  // bytes of interpreter stacks
	uint64_t held;	       // bytes marked, and of free pages not released
	uint64_t external;     // bytes that objects own outside the heap
	struct pacer_memory memory;
	bool forced; // the host asked for the collection
	// What died is not freed yet: until pacer_swept, held and memory do not
	// count it as free.
	bool unswept;
};

// pacer_goal returns the heap size at which the next collection begins:
//   live + max((live + stacks + globals) x percent / 100,
//              min(headroom, 8 x live + 4 MiB))
// and at least heap_min x percent / 100, as rt_config.heap_headroom says.  live
// is what was marked and what is external.  Sums saturate.
uint64_t pacer_goal(const struct pacer_rule *rule,
		    const struct pacer_found *found);

// pacer_limit_goal returns a goal for a memory limit: the heap size at which
// the mapped memory reaches the limit, less 3 percent of that size, or less
// 1 MiB if that is more.  This leaves room for growth between two measurements.
// The goal is at least marked, even if that is beyond the limit.
uint64_t pacer_limit_goal(uint64_t limit, const struct pacer_memory *m,
			  uint64_t marked);

// pacer_next returns the goal after a collection; before is the goal that led
// to this collection.  If before is more than pacer_goal is now, less is alive
// than after the last collection, but the heap still has the pages of what
// died.  The goal then keeps 7/8 of the difference, but is at most what is held
// or external, and at least pacer_goal.
//
// So held memory never raises the goal.  Nor can a goal that follows held
// memory raise that memory, however free pages are scattered.  The goal falls
// at each collection, which leaves pages unused for rt_free_os_memory or a
// scavenger.  After a forced collection, and with headroom 0, the goal is
// pacer_goal.
uint64_t pacer_next(const struct pacer_rule *rule,
		    const struct pacer_found *found, uint64_t before);

// pacer_limited returns the goal, lowered for the memory limit and for the
// limit of the heap.  It leaves at least 1 MiB after what was marked, so a
// limit that cannot be kept costs at most one collection for each MiB.  The
// limit of the heap lowers the goal by the rule of the memory limit, applied to
// the pages in use.  So its 3 percent are there for allocations that cannot
// collect first.
uint64_t pacer_limited(const struct pacer_rule *rule,
		       const struct pacer_found *found, uint64_t goal);

// The goals among which the goal of the heap was chosen: it is the lesser of
// limit and the greatest of the others.  There is no check function: any values
// are possible.
struct pacer_terms {
	uint64_t percent;  // by rule.percent; PACER_NEVER: off, as the next two
	uint64_t headroom; // by rule.headroom
	uint64_t minimum;  // by rule.heap_min
	uint64_t before;   // what pacer_next keeps of the previous goal, or 0
	uint64_t limit;	   // by rule.limit and heap_max, or PACER_NEVER
};

// pacer_explain returns the terms of pacer_limited(pacer_next(before)).
struct pacer_terms pacer_explain(const struct pacer_rule *rule,
				 const struct pacer_found *found,
				 uint64_t before);

// pacer_bound returns the term that the goal equals, as enum rt_bound says.
enum rt_bound pacer_bound(const struct pacer_terms *t);

// The pacer of the heap.  A collection writes it with the world stopped.  Other
// functions write it under a lock that no thread holds while it is stopped;
// warn, processors and released may be written without it.  Any thread may read
// the atomics.
struct pacer {
	struct pacer_rule rule;
	struct pacer_found found;
	atomic_u64 goal;
	atomic_u64 stack_inuse; // of the last collection
	atomic_u64 heap_marked; // of the last collection, for readers
	atomic_u64 percent;	// of the rule, for readers; as int64_t
	atomic_u64 limit;	// of the rule, for readers
	atomic_u64 heap_max;	// of the rule, for readers
	uint64_t unlimited;	// the goal, if there were no limit
	uint64_t before;	// the goal before the last collection; 0: none
	atomic_u64 external;	// found.external, to be read without the lock
	struct limiter limiter;
	// Processors of which the limiter is to learn; 0: none.
	atomic_u32 processors;
	atomic_u64 released; // ns that releasing for the memory limit has taken
	uint64_t counted;    // ns of these that the limiter has counted
	uint64_t cpu;	 // ns of the process that the limiter has counted
	bool beyond;	 // the last collection could not keep the limit
	atomic_u32 warn; // 1: the host must be told that, with the next two
	atomic_u64 told_limit;
	atomic_u64 told_least; // bytes in use when beyond became true
};

RT_GLOBAL struct pacer pacer;

// pacer_init makes the pacer of a heap that is empty.
void pacer_init(const struct pacer_rule *rule, const struct pacer_found *found,
		const struct limiter *limiter);

// pacer_commit computes the goal anew after the rule has changed.
void pacer_commit(void);

// CPU time of the process, in ns.
struct pacer_cpu {
	uint64_t begin, end; // of the collection
};

// pacer_collected computes the goal after a collection, and returns its terms.
// If found->unswept, pacer_swept must follow.  pacer_account passes the CPU
// time of the collection to the limiter.  The world must be stopped.
struct pacer_terms pacer_collected(const struct pacer_found *found);
void pacer_account(const struct pacer_cpu *cpu);

// pacer_for_limit tells whether a collection that is due at used (pacer_used)
// is due only for a limit.  The caller must have the world stopped, or the lock
// of the rule.
RT_INLINE bool pacer_for_limit(uint64_t used)
{
	return used < pacer.unlimited;
}

// pacer_has_limit tells whether there is a memory limit or a hard limit.  Any
// thread may call it.
RT_INLINE bool pacer_has_limit(void)
{
	return atomic_u64_load_relaxed(&pacer.limit) != PACER_NO_LIMIT ||
	       atomic_u64_load_relaxed(&pacer.heap_max) != 0;
}

// pacer_swept computes the goal anew after a sweep beside the threads.  pages
// and objects are the bytes of pages and of objects that it freed.  The
// previous goal was at most this one, because less counted as held, and what
// had died counted against the memory limit.  No thread may begin a collection
// meanwhile.
void pacer_swept(uint64_t pages, uint64_t objects);

// pacer_put_off tells whether a collection that is due is only for a limit and
// has to wait, because collections take too much CPU time.  Then the goal rises
// to 1 MiB more than used, or to the goal without limits if that is less.  used
// is pacer_used.  cpu is the CPU time of the process.  The caller must be
// attached, and the world must run.
bool pacer_put_off(uint64_t used, uint64_t cpu);

// pacer_note_release notes that releasing pages for the memory limit took ns of
// CPU time.  The limiter counts it as time of a collection.  Any thread may
// call it.
void pacer_note_release(uint64_t ns);

// pacer_limits tells whether other work that only a limit requires has to wait,
// for the same reason as in pacer_put_off.  It does not change the goal.  cpu
// is the CPU time of the process; if that is 0, nothing has to wait.
bool pacer_limits(uint64_t cpu);

// pacer_set_percent changes the percentage and returns the previous one.  The
// caller must be attached, and the world must run.
int pacer_set_percent(int percent);

// pacer_set_heap_min changes the least goal at 100 percent in the same way.
uint64_t pacer_set_heap_min(uint64_t bytes);

// pacer_set_limit changes the memory limit in the same way.
uint64_t pacer_set_limit(uint64_t bytes);

// pacer_set_heap_max changes the limit of the heap in the same way, and passes
// it to mheap.  0 is no limit.
uint64_t pacer_set_heap_max(uint64_t bytes);

// pacer_external_fell computes the goal anew after bytes outside the heap were
// freed.  Most of these bytes belonged to objects that were dead in the last
// collection and waited for their destructors, so they must not count as found
// alive.  Otherwise the goal would double from one collection to the next.  The
// caller must be attached, and the world must run.
void pacer_external_fell(uint64_t external);

// pacer_note_processors notes that the process cannot use more than n
// processors.  The limiter counts n processors when it next decides about a
// collection or about releasing pages.  Any thread may call it.
void pacer_note_processors(uint32_t n);

// pacer_take_warning returns true once after collections have begun to leave
// more in use than the memory limit.  pacer_warning_due tells whether the next
// call would return true.
bool pacer_take_warning(void);
RT_INLINE bool pacer_warning_due(void)
{
	return atomic_u32_load_relaxed(&pacer.warn) != 0;
}

// pacer_used returns the bytes that count for the goal: live memory,
// interpreter stacks, and what is external.  Of stacks, only the growth since
// the last collection counts.  The collection does not free the stacks that
// existed then.
//
// heap_live may be below zero for a while (mcache_publish_live), which counts
// as 0.
RT_INLINE uint64_t pacer_used(uint64_t heap_live, uint64_t stack_inuse,
			      uint64_t external)
{
	uint64_t before = atomic_u64_load_relaxed(&pacer.stack_inuse);
	uint64_t live = (int64_t)heap_live < 0 ? 0 : heap_live;

	return live + base_sub_sat(stack_inuse, before) + external;
}

// pacer_due tells whether used (pacer_used) has reached the goal.
RT_INLINE bool pacer_due(uint64_t used)
{
	return used >= atomic_u64_load_relaxed(&pacer.goal);
}

// pacer_check returns NULL if all invariants hold, otherwise what does not.
// The world must be stopped, or the caller must be the one that may write.
// Debug builds call it whenever the goal was computed from the rule.
const char *pacer_check(const struct pacer *p);

#endif
