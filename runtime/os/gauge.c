// Byte counters that must not become negative.
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
}

void gauge_add_locked(atomic_u64 *gauge, int64_t n)
{
	uint64_t old = gauge_load(gauge);
	uint64_t sum = old + (uint64_t)n;

	atomic_u64_store_relaxed(gauge, sum);
	check(old, sum);
}

void gauge_reset(void)
{
	memset(&gauges, 0, sizeof gauges);
}
