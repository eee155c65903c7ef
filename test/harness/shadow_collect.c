// shadow_collect.c - collections, in the heap and in its copy.
#include "runtime/os/epoch.h"
#include "test/harness/shadow_actor.h"

void shadow_flushed(void)
{
	atomic_u64_add_relaxed(&run.flushes, 1);
}

void shadow_follow_flushes(struct actor *a)
{
	uint64_t now = atomic_u64_load_relaxed(&run.flushes) + epoch_sweepgen();

	if (now != a->epoch)
		ledger_flushed(&a->ledger);
	a->epoch = now;
}

static void reach_range(struct actor *a, unsigned i)
{
	bool exact = a->times[i][RT_ROOT_WORDS] == 0;
	enum shadow_place place = exact ? SHADOW_EXACT : SHADOW_ANY;

	if (exact && a->times[i][RT_ROOT_EXACT] == 0)
		return;
	for (unsigned k = 0; k < RANGE_WORDS; k++)
		shadow_reach((struct shadow_word){NULL, a->range[i][k]}, place);
}

// reach_all does in the copy what a collection does.
static void reach_all(void)
{
	for (unsigned t = 0; t < run.program->actors; t++) {
		struct actor *a = &run.actor[t];

		for (unsigned i = 0; i < run.nslots; i++)
			shadow_reach(a->root[i], SHADOW_ANY);
		for (unsigned i = 0; run.wild && i < RANGES; i++)
			reach_range(a, i);
		shadow_reach_stacks(a);
		shadow_reach_values(a);
		shadow_reach_held(a);
	}
	shadow_reach_kept();
	for (unsigned t = 0; t < run.program->actors; t++) {
		shadow_forget_stacks(&run.actor[t]);
		shadow_forget_values(&run.actor[t]);
	}
	shadow_collect();
}

// A word that is no reference may keep an object alive, which depends on the
// objects of that time.  So where there are such words, the copy follows each
// collection.  A live read changes nothing, so allocation continues as it would
// without.
void shadow_follow(struct actor *a)
{
	rt_memstats m;

	if (!run.wild)
		return;
	SHADOW_OK(rt_read_memstats_live(&m));
	if (m.num_gc != a->num_gc)
		reach_all();
	a->num_gc = m.num_gc;
}

static void judge(void)
{
	shadow_flushed();
	run.result->hash =
	    run.result->hash * 31 + shadow_judge(run.program->exact);
}

size_t shadow_run_dead(size_t max)
{
	size_t n;

	shadow_drops_here = true;
	n = rt_run_finalizers(max);
	shadow_drops_here = false;
	return n;
}

void shadow_poll(void)
{
	shadow_drops_here = true;
	rt_safepoint();
	shadow_drops_here = false;
}

void shadow_end_dead(void)
{
	while (shadow_run_dead(0) != 0)
		SHADOW_OK(rt_gc());
}

// drop_dead leaves as few dead objects as the actor can.  With other actors,
// one of them may be running destructors just now.
static void drop_dead(void)
{
	if (run.alone)
		shadow_end_dead();
	else
		shadow_run_dead(0);
}

void shadow_gc(void)
{
	SHADOW_OK(rt_gc());
	drop_dead();
}

void shadow_check_all(void)
{
	reach_all();
	// The second collection finds what the first has released.
	for (unsigned i = 0; i < 2; i++) {
		SHADOW_OK(rt_gc());
		shadow_end_dead();
	}
	judge();
}

void shadow_collected(struct actor *a)
{
	uint64_t before = a->num_gc;

	if (!run.wild)
		return;
	shadow_follow(a);
	SHADOW_TRUE(a->num_gc > before);
	judge();
	a->settled = true;
}

SHADOW_OP(gc)
{
	shadow_gc();
	shadow_collected(a);
}

SHADOW_OP(release)
{
	SHADOW_OK(rt_free_os_memory());
	drop_dead();
	shadow_collected(a);
}

SHADOW_OP(percent)
{
	static const int percents[] = {-1, 0, 1, 20, 100, 1000};
	unsigned i = op->b % (RT_ARRAY_LEN(percents) + 2);
	int old;

	SHADOW_OK(rt_set_gc_percent(
	    i < RT_ARRAY_LEN(percents) ? percents[i] : (int)(op->n % 400),
	    &old));
	if (!run.wild) {
		SHADOW_OK(rt_set_gc_percent(old, NULL));
		return;
	}
	SHADOW_OK(rt_set_heap_min(op->n % (8 << 20), NULL));
	SHADOW_OK(rt_adjust_external((int64_t)(op->n % 4096) - 2048));
	SHADOW_OK(rt_set_memory_limit(
	    op->n % 3 == 0 ? INT64_MAX : (int64_t)(op->n % (64 << 20)), NULL));
	// An allocation must not fail, so the limit only lowers the goal.
	SHADOW_OK(rt_set_heap_max(
	    op->n % 5 == 0 ? 0 : MAX_HEAP - 1 - op->n % (64 << 20), NULL));
}
