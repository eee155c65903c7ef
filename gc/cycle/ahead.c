// ahead.c - brings in memory while threads take much of it.
#include "gc/cycle/ahead.h"

#include "runtime/os/throw.h"
#include "runtime/os/settings.h"
#include "runtime/spans/populate.h"
#include "gc/cycle/pacer.h"
#include "gc/cycle/scavgoal.h"
#include "gc/cycle/swept.h"
#include "gc/cycle/libthread.h"

#define QUICK_NS UINT64_C(100000000)

enum {
	USED_PART = 32, // 1/32 of what is used
	WORTH = 1 << 20,
};

bool ahead_wanted(void)
{
	return settings()->populate >= 2 && settings()->gc_threads != 0 &&
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

// What the heap needs, and what it has.
struct need {
	uint64_t bytes; // of free pages that are to have memory, or 0
	uint64_t free;	// of free pages that have memory
};

// look returns what the heap needs, and no more than may be retained.
static struct need look(void)
{
	uint64_t used = pacer_used(gauge_load(&gauges.heap_live),
				   gauge_load(&gauges.stack_inuse),
				   gauge_load(&gauges.external));
	struct heapstats_totals t;
	uint64_t retained, most;
	struct need n;

	heapstats_read(&t);
	retained = heapstats_retained(&t);
	n.free = retained - t.in_heap;
	most = n.free + scavgoal_room(retained);
	n.bytes = if_worth(base_min(
	    ahead_bytes(used, atomic_u64_load_relaxed(&pacer.goal)), most));
	return n;
}

// await makes a call due when a chunk of scavenged pages was taken, if memory
// ahead of need is wanted at all.
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

// bring_in brings in memory until there is enough, or until the system refuses
// that or a longer heap.  It ends early in two other cases.  The heap ends
// (*quit).  Or another thread has collected meanwhile, and left something to
// sweep.  That is swept first, and the next call of ahead_run says what is
// needed.  Returns whether it brought in any.
static bool bring_in(struct rt_proc *p, struct need n, const atomic_u32 *quit)
{
	struct populate_pass pass = populate_begin();
	bool any = false, longer = false;

	while (n.free < n.bytes && ahead_wanted() && swept_over() &&
	       atomic_u32_load_relaxed(quit) == 0) {
		uint64_t more = populate_range(p, &pass);

		n.free += more;
		any |= more != 0;
		if (pass.over && n.free < n.bytes) {
			// All that is free has memory.
			if (longer ||
			    !mheap_extend(p, base_pages(n.bytes - n.free)))
				break;
			longer = true;
			pass.over = false;
		}
		libthread_poll(p);
	}
	return any;
}

void ahead_run(struct ahead *a, struct rt_proc *p, uint64_t now,
	       const atomic_u32 *quit)
{
	uint64_t before = a->called;
	struct need n = {0, 0};

	RT_ASSERT(proc_is_running(p));
	lockrank_none();
	if (!ahead_called(a))
		return;
	atomic_u32_store_relaxed(&a->due, 0);
	a->called = now;
	// Without a clock no two calls are known to be close.
	if (before != 0 && now != 0 && base_sub_sat(now, before) <= QUICK_NS)
		n = look();
	// The next call may come while this one is served.
	if (n.bytes != 0)
		mheap_await_taken(n.bytes / 2 >> RT_PAGE_SHIFT, true);
	if (n.bytes == 0 || !bring_in(p, n, quit))
		await();
}
