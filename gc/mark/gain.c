// gain.c - compares marking with helpers and without.
#include "gc/mark/gain.h"

#include "runtime/os/throw.h"

struct gain gain;

static uint64_t ps_a_word(uint64_t ns, uint64_t words)
{
	return base_max(ns * 1000 / words, 1);
}

// average halves, with every marking, the weight of what was known before.
static uint64_t average(uint64_t known, uint64_t now)
{
	return known == 0 ? now : (known + now) / 2;
}

static bool pays(const struct gain *g)
{
	const struct gain_cost *alone = &g->cost[false];
	const struct gain_cost *beside = &g->cost[true];

	if (alone->wall == 0 || beside->wall == 0)
		return true;
	return beside->wall < alone->wall / 4 * 3 ||
	       (beside->wall < alone->wall &&
		beside->cpu <= alone->cpu + alone->cpu / 10);
}

#ifdef RT_TEST
static bool always;

void gain_always(bool on)
{
	always = on;
}
#endif

// wanted tells whether a test wants helpers in any case.
RT_INLINE bool wanted(void)
{
#ifdef RT_TEST
	return always;
#else
	return false;
#endif
}

bool gain_call(struct gain *g)
{
	bool other = ++g->since > g->interval;

	if (wanted())
		return true;
	if (g->few)
		return false;
	return g->off == other;
}

void gain_note(struct gain *g, const struct gain_marking *marking)
{
	struct gain_cost *cost = &g->cost[marking->called];
	bool was_off = g->off;
	bool tried = marking->called == g->off;

	g->few = marking->words < GAIN_WORDS;
	if (g->few)
		return;
	cost->wall =
	    average(cost->wall, ps_a_word(marking->wall_ns, marking->words));
	cost->cpu =
	    average(cost->cpu, ps_a_word(marking->cpu_ns, marking->words));
	g->off = !pays(g);
	if (g->off != was_off)
		g->interval = GAIN_TRY_FIRST;
	else if (tried)
		g->interval = (uint32_t)base_min(
		    base_max(2 * g->interval, GAIN_TRY_FIRST), GAIN_TRY_MOST);
	if (tried || g->off != was_off)
		g->since = 0;
	RT_CHECK(gain_check(g));
}

const char *gain_check(const struct gain *g)
{
	for (unsigned i = 0; i < RT_ARRAY_LEN(g->cost); i++)
		if ((g->cost[i].wall == 0) != (g->cost[i].cpu == 0))
			return "cost of marking is known in part";
	if (g->off && (g->cost[false].wall == 0 || g->cost[true].wall == 0))
		return "helpers are off without a comparison";
	return NULL;
}
