#include "gc/cycle/pacer.h"

struct gcpacer gcpacer;

// Of rule, against other attached threads; a cycle needs no lock, since nobody
// stands while holding one.
static struct mutex rule_lock = RT_MUTEX_INIT(LOCKRANK_PACER);

enum { HEADROOM_BASE = 4 << 20, HEADROOM_FACTOR = 8 };

static uint64_t add_sat(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? GCPACER_NEVER : sum;
}

// percent_of is n x percent / 100 without overflow in between.
static uint64_t percent_of(uint64_t n, int percent)
{
	unsigned __int128 x = (unsigned __int128)n * (unsigned)percent / 100;

	return x > GCPACER_NEVER ? GCPACER_NEVER : (uint64_t)x;
}

static uint64_t headroom(uint64_t most, uint64_t marked)
{
	uint64_t room;

	if (__builtin_mul_overflow(marked, (uint64_t)HEADROOM_FACTOR, &room))
		return most;
	return base_min(most, add_sat(room, HEADROOM_BASE));
}

uint64_t gcpacer_goal(const struct gcpacer_rule *rule,
		      const struct gcpacer_found *found)
{
	uint64_t roots = add_sat(found->stack_scan, found->globals_scan);
	uint64_t growth;

	if (rule->percent < 0)
		return GCPACER_NEVER;
	growth = base_max(
	    percent_of(add_sat(found->heap_marked, roots), rule->percent),
	    headroom(rule->headroom, found->heap_marked));
	return base_max(add_sat(found->heap_marked, growth),
			percent_of(rule->heap_min, rule->percent));
}

uint64_t gcpacer_next(const struct gcpacer_rule *rule,
		      const struct gcpacer_found *found, uint64_t before)
{
	uint64_t goal = gcpacer_goal(rule, found);

	if (found->forced || rule->headroom == 0 || before <= goal)
		return goal;
	// Divided first: below 8 nothing is left, so the goal arrives.
	before = goal + (before - goal) / 8 * 7;
	return base_max(goal, base_min(before, found->held));
}

static void publish(uint64_t goal)
{
	atomic_u64_store_relaxed(&gcpacer.heap_marked,
				 gcpacer.found.heap_marked);
	atomic_u64_store_relaxed(&gcpacer.stack_inuse,
				 gcpacer.found.stack_inuse);
	atomic_u64_store_relaxed(&gcpacer.percent,
				 (uint64_t)(int64_t)gcpacer.rule.percent);
	atomic_u64_store_relaxed(&gcpacer.goal, goal);
}

void gcpacer_commit(void)
{
	publish(gcpacer_goal(&gcpacer.rule, &gcpacer.found));
}

void gcpacer_collected(const struct gcpacer_found *found)
{
	uint64_t before = atomic_u64_load_relaxed(&gcpacer.goal);

	gcpacer.found = *found;
	publish(gcpacer_next(&gcpacer.rule, found, before));
}

int gcpacer_set_percent(int percent)
{
	int old;

	mutex_lock(&rule_lock);
	old = gcpacer.rule.percent;
	gcpacer.rule.percent = percent;
	gcpacer_commit();
	mutex_unlock(&rule_lock);
	return old;
}
