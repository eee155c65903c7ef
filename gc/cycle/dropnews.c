// dropnews.c - notes when the dead that wait for destructors are news.
#include "gc/cycle/dropnews.h"

#include "runtime/os/settings.h"
#include "runtime/os/gauge.h"
#include "runtime/world/stw.h"
#include "gc/mark/drops.h"

struct dropnews dropnews;

void dropnews_reset(void)
{
	dropnews = (struct dropnews){.warned = false};
}

void dropnews_collected(void)
{
	uint64_t live = gauge_load(&gauges.heap_live);
	bool warns = !dropnews.warned &&
		     drops.waited > base_max(live, settings()->heap_min) / 2;

	RT_ASSERT(stw_stopped());
	if (warns) {
		dropnews.warned = true;
		atomic_u64_store_relaxed(&dropnews.waited, drops.waited);
	}
	if (warns || drops.died != 0)
		atomic_u32_store_relaxed(&dropnews.news, 1);
}
