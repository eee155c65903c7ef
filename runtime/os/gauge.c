// Changes and checks of the global byte counters.
#include "runtime/os/gauge.h"

#include <string.h>

#include "runtime/os/throw.h"

struct gauges gauges;

static_assert(offsetof(struct gauges, mapped_ready) == RT_CACHE_LINE,
	      "the trigger's gauges have a line of their own");

RT_NORETURN RT_NOINLINE static void throw_overflow(uint64_t old, uint64_t sum)
{
	struct text t;

	text_init(&t);
	text_str(&t, "rtheap: gauge was ");
	text_hex(&t, old);
	text_str(&t, ", is ");
	text_hex(&t, sum);
	text_str(&t, "\n");
	throw_text(&t, "sysMemStat overflow");
}

// check throws if a gauge was or is negative.
RT_INLINE void check(uint64_t old, uint64_t sum)
{
	// One test for both: a negative number has the highest bit set.
	if (RT_UNLIKELY((old | sum) >> 63))
		throw_overflow(old, sum);
}

void gauge_add(atomic_u64 *gauge, int64_t n)
{
	uint64_t sum = atomic_u64_add_relaxed(gauge, (uint64_t)n);

	check(sum - (uint64_t)n, sum);
	RT_CHECK(gauge_check(&gauges, gauge));
}

void gauge_add_locked(atomic_u64 *gauge, int64_t n)
{
	uint64_t old = gauge_load(gauge);
	uint64_t sum = old + (uint64_t)n;

	atomic_u64_store_relaxed(gauge, sum);
	check(old, sum);
	RT_CHECK(gauge_check(&gauges, gauge));
}

void gauge_adjust(atomic_u64 *gauge, int64_t n)
{
	uint64_t old;
	int64_t sum;

	do {
		old = gauge_load(gauge);
		if (__builtin_add_overflow((int64_t)old, n, &sum))
			sum = INT64_MAX; // old is not negative
	} while (
	    !atomic_u64_cas_relaxed(gauge, old, sum < 0 ? 0 : (uint64_t)sum));
	RT_CHECK(gauge_check(&gauges, gauge));
}

void gauge_reset(void)
{
	memset(&gauges, 0, sizeof gauges);
}

const char *gauge_check(const struct gauges *g, const atomic_u64 *gauge)
{
	uint64_t n = gauge_load(gauge);

	if (n >> 63 != 0)
		return "gauge is negative";
	if (gauge == &g->stack_inuse && n % RT_PAGE_SIZE != 0)
		return "stack_inuse is not whole pages";
	if (gauge == &g->heap_mapped && n % RT_CHUNK_SIZE != 0)
		return "heap_mapped is not whole chunks";
	if (gauge == &g->stacks_sys && n != 0)
		return "stacks_sys is not 0";
	if (gauge == &g->buckhash_sys && n != 0)
		return "buckhash_sys is not 0";
	return NULL;
}

const char *gauges_check(const struct gauges *g)
{
	const atomic_u64 *all[] = {
	    &g->heap_live,    &g->heap_dead,   &g->stack_inuse,
	    &g->mapped_ready, &g->heap_mapped, &g->stacks_sys,
	    &g->mspan_sys,    &g->mcache_sys,  &g->buckhash_sys,
	    &g->gc_misc_sys,  &g->other_sys,   &g->mspan_inuse,
	    &g->mcache_inuse, &g->mappings,    &g->external,
	};
	const char *wrong = NULL;

	for (unsigned i = 0; i < RT_ARRAY_LEN(all) && !wrong; i++)
		wrong = gauge_check(g, all[i]);
	if (wrong)
		return wrong;
	if (gauge_load(&g->mspan_inuse) > gauge_load(&g->mspan_sys))
		return "mspan_inuse is more than mspan_sys";
	if (gauge_load(&g->mcache_inuse) > gauge_load(&g->mcache_sys))
		return "mcache_inuse is more than mcache_sys";
	return NULL;
}
