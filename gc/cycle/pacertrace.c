// pacertrace.c - writes the pacer's figures as lines of text.
#include "gc/cycle/pacertrace.h"

#include "gc/cycle/pacer.h"

static void text_name(struct text *t, const char *name, uint64_t n)
{
	text_str(t, name);
	text_u64(t, n);
}

// text_bound writes a name and bytes, or "none".
static void text_bound(struct text *t, const char *name, uint64_t bytes)
{
	text_str(t, name);
	if (bytes == PACER_NEVER) {
		text_str(t, "none");
		return;
	}
	text_u64(t, bytes);
	text_str(t, " B");
}

static void text_end(struct text *t, uint64_t number)
{
	text_name(t, ", gc ", number);
	text_str(t, "\n");
}

// text_difference writes a - b.
static void text_difference(struct text *t, uint64_t a, uint64_t b)
{
	if (a < b)
		text_str(t, "-");
	text_u64(t, a < b ? b - a : a - b);
}

static uint64_t percent(uint64_t part, uint64_t whole)
{
	if (whole == 0)
		return 0;
	return (uint64_t)((unsigned __int128)base_min(part, whole) * 100 /
			  whole);
}

static void text_work(struct text *t, const rt_cycle *c)
{
	text_name(t, "% CPU (", c->limiter_percent);
	text_name(t, " limit) for ", c->scan_heap);
	text_name(t, "+", c->scan_stack);
	text_name(t, "+", c->scan_globals);
	text_str(t, " B work ");
}

// text_reached writes the goal, the size that the heap has reached, and their
// difference.  The sign before "goal" is Go's.
static void text_reached(struct text *t, const rt_cycle *c)
{
	text_bound(t, "in ", c->goal);
	text_bound(t, " -> ", c->used);
	if (c->goal != PACER_NEVER) {
		text_str(t, " (\u2206goal ");
		text_difference(t, c->used, c->goal);
		text_str(t, ")");
	}
}

bool pacertrace_format_swept(struct text *t, const rt_cycle *c)
{
	enum { NS_PER_US = 1000 };

	if ((c->swept_ns | c->swept_assist_cpu_ns |
	     c->swept_background_cpu_ns) == 0)
		return false;
	text_init(t);
	text_name(t, "pacer: swept beside the threads in ",
		  c->swept_ns / NS_PER_US);
	text_name(t, " us, ", c->swept_assist_cpu_ns / NS_PER_US);
	text_name(t, "+", c->swept_background_cpu_ns / NS_PER_US);
	text_str(t, " us CPU");
	text_end(t, c->number - 1);
	return true;
}

void pacertrace_format_cpu(struct text *t, const rt_cycle *c)
{
	enum { NS_PER_MS = 1000 * 1000 };

	text_init(t);
	text_name(t, "pacer: ", percent(c->process_cpu_ns, c->interval_cpu_ns));
	text_work(t, c);
	text_reached(t, c);
	text_bound(t, "; allocated ", c->allocated);
	text_name(t, "; limiter ", c->limiter_fill_ns / NS_PER_MS);
	text_name(t, "/", c->limiter_capacity_ns / NS_PER_MS);
	text_str(t, c->limiter_limiting ? " ms, limiting" : " ms");
	text_end(t, c->number);
}

void pacertrace_format_sweep(struct text *t, const rt_cycle *c)
{
	uint64_t pages = c->sweep_inuse >> RT_PAGE_SHIFT;

	text_init(t);
	text_str(t,
		 c->sweep_beside ? "pacer: sweep begins" : "pacer: sweep done");
	text_name(t, " at heap size ", c->heap_live >> 20);
	if (c->sweep_beside) {
		text_name(t, "MB, beside the threads; ", pages);
		text_str(t, " pages to sweep");
	} else {
		// Nothing can be allocated: the world is stopped.
		text_name(t, "MB; allocated 0MB during sweep; swept ", pages);
		text_name(t, " pages, freed ", c->sweep_freed >> RT_PAGE_SHIFT);
	}
	text_end(t, c->number);
}

void pacertrace_format_goal(struct text *t, const rt_cycle *c)
{
	static const char *const names[] = {
	    [RT_BOUND_PERCENT] = "percent", [RT_BOUND_HEADROOM] = "headroom",
	    [RT_BOUND_MINIMUM] = "minimum", [RT_BOUND_BEFORE] = "before",
	    [RT_BOUND_LIMIT] = "limit",
	};

	text_init(t);
	text_bound(t, "pacer: goal ", c->next_goal);
	text_str(t, " by ");
	text_str(t, names[c->goal_bound]);
	text_bound(t, " (percent ", c->goal_percent);
	text_bound(t, ", headroom ", c->goal_headroom);
	text_bound(t, ", minimum ", c->goal_minimum);
	text_bound(t, ", before ",
		   c->goal_before == 0 ? PACER_NEVER : c->goal_before);
	text_bound(t, ", limit ", c->goal_limit);
	text_str(t, "), trigger=goal");
	text_end(t, c->number);
}
