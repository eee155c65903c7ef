// ahead.c - brings in memory while threads take much of it.
#include "gc/cycle/ahead.h"

#include "runtime/os/settings.h"
#include "runtime/spans/populate.h"
#include "gc/cycle/pacer.h"
#include "gc/cycle/scavgoal.h"
#include "gc/cycle/libthread.h"

#define QUICK_NS UINT64_C(100000000)

enum {
	USED_PART = 32, // 1/32 of what is used
	WORTH = 1 << 20,
};

bool ahead_wanted(void)
{
	return settings.populate >= 2 && settings.gc_threads != 0 &&
	       atomic_u32_load_relaxed(&mheap.populate) != 0;
}

static uint64_t if_worth(uint64_t bytes)
{
	return bytes < WORTH ? 0 : base_min(bytes, AHEAD_MOST);
}

uint64_t ahead_bytes(uint64_t used, uint64_t goal)
{
	return if_worth(base_min(used / USED_PART, base_sub_sat(goal, used)));
}

// bytes_now returns ahead_bytes of the heap, and no more than may be retained.
static uint64_t bytes_now(void)
{
	uint64_t used = pacer_used(gauge_load(&gauges.heap_live),
				   gauge_load(&gauges.stack_inuse),
				   gauge_load(&gauges.external));
	struct heapstats_totals t;
	uint64_t retained, most;

	heapstats_read(&t);
	retained = heapstats_retained(&t);
	most = retained - t.in_heap + scavgoal_room(retained);
	return if_worth(base_min(
	    ahead_bytes(used, atomic_u64_load_relaxed(&pacer.goal)), most));
}

// await makes a call due after a chunk of scavenged pages, if any is wanted.
static void await(void)
{
	mheap_await_taken(ahead_wanted() ? RT_CHUNK_PAGES : 0, false);
}

void ahead_init(struct ahead *a)
{
	atomic_u32_store_relaxed(&a->due, 0);
	a->called = 0;
	await();
}

bool ahead_call(struct ahead *a)
{
	if (!mheap_take_taken())
		return false;
	atomic_u32_store_relaxed(&a->due, 1);
	return true;
}

bool ahead_called(const struct ahead *a)
{
	return atomic_u32_load_relaxed(&a->due) != 0;
}

// bring_in brings in memory until bytes of free pages have some.  Returns
// whether it brought in any.
static bool bring_in(struct rt_proc *p, uint64_t bytes)
{
	struct populate_pass pass = populate_begin();
	uint64_t free = heapgauge_sum(HEAPGAUGE_FREE);
	bool any = false, longer = false;

	while (free < bytes && ahead_wanted()) {
		uint64_t more = populate_range(p, &pass);

		libthread_poll(p);
		free += more;
		any |= more != 0;
		if (!pass.over || free >= bytes)
			continue;
		// All that is free has memory.
		if (longer || !mheap_extend(p, base_pages(bytes - free)))
			break;
		longer = true;
		pass.over = false;
	}
	return any;
}

void ahead_run(struct ahead *a, struct rt_proc *p, uint64_t now)
{
	uint64_t before = a->called;
	uint64_t bytes = 0;

	if (!ahead_called(a))
		return;
	atomic_u32_store_relaxed(&a->due, 0);
	a->called = now;
	// Without a clock no two calls are known to be close.
	if (before != 0 && now != 0 && base_sub_sat(now, before) <= QUICK_NS)
		bytes = bytes_now();
	// The next call may come while this one is served.
	if (bytes != 0)
		mheap_await_taken(bytes / 2 >> RT_PAGE_SHIFT, true);
	if (bytes == 0 || !bring_in(p, bytes))
		await();
}
