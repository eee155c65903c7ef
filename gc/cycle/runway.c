// runway.c - computes the trigger, and what threads that allocate owe.
#include "gc/cycle/runway.h"

enum {
	WAY = 64,	// parts of the way from marked to the goal
	WAY_LEAST = 45, // about 0.7
	WAY_MOST = 61,	// about 0.95
	WORK_LEAST = 1000,
	PERCENT_OFF = 100000,
};

// In a large heap marking may begin as late as this many bytes below the goal.
#define NEAR_GOAL (UINT64_C(4) << 20)

static uint64_t add_sat(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

// whole returns x as an integer.  If x is negative or not a number, it returns
// 0.
static uint64_t whole(double x)
{
	if (!(x > 0))
		return 0;
	return x >= 0x1p64 ? UINT64_MAX : (uint64_t)x;
}

// part returns n x a / b without overflow in between.  b must not be 0.
static uint64_t part(uint64_t n, uint64_t a, uint64_t b)
{
	unsigned __int128 x = (unsigned __int128)n * a / b;

	return x > UINT64_MAX ? UINT64_MAX : (uint64_t)x;
}

void runway_init(struct runway *r)
{
	*r = (struct runway){.triggered = RUNWAY_IDLE};
}

uint64_t runway_goal(const struct runway *r, const struct runway_heap *h)
{
	uint64_t goal = h->goal;

	if (h->limited)
		return goal;
	goal = base_max(goal, h->least);
	if (r->triggered == RUNWAY_IDLE)
		return goal;
	return base_max(goal, add_sat(r->triggered, RUNWAY_LEAST));
}

// bytes_expected returns what threads allocate while the expected work is done,
// with the background alone at work.
static uint64_t bytes_expected(const struct runway *r, uint64_t work)
{
	double beside = (1 - RUNWAY_BACKGROUND) / RUNWAY_BACKGROUND;

	return whole(r->cons_mark * beside * (double)work);
}

uint64_t runway_trigger(const struct runway *r, const struct runway_heap *h)
{
	uint64_t goal = runway_goal(r, h);
	uint64_t least, most, trigger;

	if (h->marked >= goal)
		return h->marked;
	least = (goal - h->marked) / WAY * WAY_LEAST + h->marked;
	most = (goal - h->marked) / WAY * WAY_MOST + h->marked;
	if (!h->limited)
		least = base_max(least, h->least);
	most = base_max(most, base_sub_sat(goal, NEAR_GOAL));
	most = base_max(most, least);
	trigger = base_sub_sat(goal, bytes_expected(r, h->expected));
	return base_min(base_max(trigger, least), most);
}

void runway_begin(struct runway *r, const struct runway_heap *h)
{
	r->triggered = h->live;
	runway_revise(r, h);
}

// extended returns the goal that counts if more is alive than was expected.
static uint64_t extended(const struct runway *r, const struct runway_heap *h,
			 uint64_t goal)
{
	uint64_t percent =
	    h->percent < 0 ? PERCENT_OFF : (uint64_t)(unsigned)h->percent;
	uint64_t hard = part(goal, 100 + percent, 100);
	uint64_t room = part(base_sub_sat(goal, r->triggered), h->most,
			     base_max(h->expected, 1));

	return base_min(hard, add_sat(r->triggered, room));
}

void runway_revise(struct runway *r, const struct runway_heap *h)
{
	uint64_t goal = runway_goal(r, h);
	uint64_t expected = h->expected;
	uint64_t work, bytes;

	if (h->done > expected) {
		goal = extended(r, h, goal);
		expected = h->most;
	}
	if (h->live > goal) {
		// Marking is late, so the rest must be done within a tenth of
		// the goal.
		goal = part(goal, 11, 10);
		expected = h->most;
	}
	work = base_max(base_sub_sat(expected, h->done), WORK_LEAST);
	bytes = base_max(base_sub_sat(goal, h->live), 1);
	r->work_per_byte = (double)work / (double)bytes;
}

struct runway_debt runway_owe(const struct runway *r, uint64_t bytes,
			      int64_t credit)
{
	uint64_t owed = whole(r->work_per_byte * (double)bytes);
	struct runway_debt debt = {
	    .credit = credit <= 0 ? 0 : base_min(owed, (uint64_t)credit),
	};

	debt.work = owed - debt.credit;
	return debt;
}

// remember sets cons_mark to the largest number of this marking and the last
// ones.
static void remember(struct runway *r, double now)
{
	r->cons_mark = now;
	for (unsigned i = 0; i < RUNWAY_MEMORY; i++)
		if (r->last[i] > r->cons_mark)
			r->cons_mark = r->last[i];
	for (unsigned i = 1; i < RUNWAY_MEMORY; i++)
		r->last[i - 1] = r->last[i];
	r->last[RUNWAY_MEMORY - 1] = now;
}

void runway_end(struct runway *r, const struct runway_heap *h,
		const struct runway_times *t)
{
	double all = (double)base_max(t->capacity, 1);
	double marking = RUNWAY_BACKGROUND + (double)t->assist / all;
	double idle = (double)base_min(t->idle, t->capacity) / all;
	uint64_t begun = r->triggered;

	r->triggered = RUNWAY_IDLE;
	// If nothing was allocated, no work was done, or marking took all
	// processors, this marking tells nothing.
	if (h->live <= begun || h->done == 0 || marking >= 1)
		return;
	remember(r, (double)(h->live - begun) * (marking + idle) /
			((double)h->done * (1 - marking)));
}
