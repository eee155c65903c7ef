// scavgoal.c - computes what may stay, and whether a program is idle.
#include "gc/cycle/scavgoal.h"

#include "runtime/os/throw.h"
#include "runtime/os/gauge.h"
#include "runtime/os/sysmem.h"

enum {
	RETAIN_PART = 10,  // 1/10 of the goal may be kept beyond it
	REDUCE_PART = 20,  // 1/20 of the memory limit is left free
	ACTIVE_PART = 100, // a change by 1/100 of the goal is activity
};

struct scavgoal scavgoal;

uint64_t scavgoal_percent(uint64_t in_use, uint64_t goal, uint64_t last,
			  size_t page_size)
{
	unsigned __int128 x;

	if (last == 0)
		return SCAVGOAL_NONE;
	x = (unsigned __int128)in_use * goal / last;
	if (x > SCAVGOAL_NONE)
		return SCAVGOAL_NONE;
	x += x / RETAIN_PART;
	x = (x + page_size - 1) / page_size * page_size;
	return x > SCAVGOAL_NONE ? SCAVGOAL_NONE : (uint64_t)x;
}

uint64_t scavgoal_limit(uint64_t limit, uint64_t mapped)
{
	uint64_t goal = limit - limit / REDUCE_PART;

	return mapped <= goal ? SCAVGOAL_NONE : goal;
}

uint64_t scavgoal_excess(uint64_t n, uint64_t goal, size_t page_size)
{
	uint64_t excess = base_sub_sat(n, goal);

	return excess < page_size ? 0 : excess;
}

bool scavgoal_active(const struct scavgoal_seen *before,
		     const struct scavgoal_seen *now)
{
	uint64_t change = now->live > before->live ? now->live - before->live
						   : before->live - now->live;
	uint64_t goal = now->goal;

	if (goal == PACER_NEVER)
		goal = base_max(now->live, SCAVGOAL_LEAST);
	return now->cycles != before->cycles ||
	       now->changes != before->changes || change > goal / ACTIVE_PART;
}

uint64_t scavgoal_since(const struct scavgoal_seen *before,
			const struct scavgoal_seen *seen, uint64_t now)
{
	struct scavgoal_seen after = *seen; // when the collection had ended
	uint64_t ended = atomic_u64_load_relaxed(&scavgoal.ended);

	after.changes = before->changes;
	after.live = atomic_u64_load_relaxed(&scavgoal.live);
	if (ended == 0 || seen->cycles == before->cycles ||
	    scavgoal_active(&after, seen))
		return now;
	return base_min(ended, now);
}

// percent_now returns scavgoal_percent of the last collection and the goal.
static uint64_t percent_now(void)
{
	return scavgoal_percent(atomic_u64_load_relaxed(&scavgoal.in_use),
				atomic_u64_load_relaxed(&pacer.goal),
				atomic_u64_load_relaxed(&scavgoal.last_goal),
				sysmem_page_size());
}

uint64_t scavgoal_too_much(uint64_t retained)
{
	size_t page = sysmem_page_size();
	uint64_t mapped = gauge_load(&gauges.mapped_ready);
	uint64_t limit =
	    scavgoal_limit(atomic_u64_load_relaxed(&pacer.limit), mapped);

	return base_max(scavgoal_excess(retained, percent_now(), page),
			scavgoal_excess(mapped, limit, page));
}

uint64_t scavgoal_room(uint64_t retained)
{
	uint64_t limit = atomic_u64_load_relaxed(&pacer.limit);
	uint64_t mapped = gauge_load(&gauges.mapped_ready);

	return base_min(base_sub_sat(percent_now(), retained),
			base_sub_sat(limit - limit / REDUCE_PART, mapped));
}

void scavgoal_reset(void)
{
	scavgoal_note(&(struct scavgoal_found){.goal = 0});
	atomic_u64_store_relaxed(&scavgoal.cycles, 0);
	atomic_u64_store_relaxed(&scavgoal.changes, 0);
	atomic_u64_store_relaxed(&scavgoal.frees, 0);
}

void scavgoal_note(const struct scavgoal_found *found)
{
	RT_ASSERT(found->free <= found->retained);
	atomic_u64_store_relaxed(&scavgoal.in_use, found->in_use);
	atomic_u64_store_relaxed(&scavgoal.last_goal, found->goal);
	atomic_u64_store_relaxed(&scavgoal.retained, found->retained);
	atomic_u64_store_relaxed(&scavgoal.free, found->free);
	atomic_u64_store_relaxed(&scavgoal.live, found->live);
	atomic_u64_store_relaxed(&scavgoal.ended, found->ended);
	// Pairs with the acquire in look of periodic.c.  One thread at a time
	// writes.
	atomic_u64_store_release(&scavgoal.cycles,
				 atomic_u64_load_relaxed(&scavgoal.cycles) + 1);
}
