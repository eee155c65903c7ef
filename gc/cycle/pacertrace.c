// pacertrace.c - notes the pacer's figures, and writes them as lines of text.
#include "gc/cycle/pacertrace.h"

#include "runtime/world/stw.h"
#include "runtime/world/heapgauge.h"

// Only the thread that collects uses this.  No check: any numbers are possible.
static struct {
	struct pacertrace now; // of the present collection
	uint64_t total_alloc;  // when the collection before ended
	uint64_t cpu;	       // of the process by then; 0: not known
} noted;

void pacertrace_reset(void)
{
	noted.total_alloc = noted.cpu = 0;
}

void pacertrace_begin(uint64_t used)
{
	RT_ASSERT(stw_stopped());
	noted.now.goal = atomic_u64_load_relaxed(&pacer.goal);
	noted.now.used = used;
}

void pacertrace_paced(const struct mark_result *found, uint64_t swept)
{
	uint64_t total = heapgauge_sum(HEAPGAUGE_TOTAL_ALLOC);
	uint64_t in_use = heapgauge_sum(HEAPGAUGE_IN_USE);
	struct pacertrace *now = &noted.now;

	RT_ASSERT(stw_stopped());
	now->allocated = total - noted.total_alloc;
	noted.total_alloc = total;
	now->scan_heap = found->scan_heap;
	now->scan_stack = found->scan_stack;
	now->scan_globals = found->scan_globals;
	now->live = found->marked_bytes;
	now->swept = swept >> RT_PAGE_SHIFT;
	now->freed = (swept - in_use) >> RT_PAGE_SHIFT;
	now->beside = pacer.found.unswept;
	now->terms = pacer_explain(&pacer.rule, &pacer.found, pacer.before);
	now->next = atomic_u64_load_relaxed(&pacer.goal);
}

void pacertrace_accounted(const struct pacer_cpu *cpu)
{
	RT_ASSERT(stw_stopped());
	noted.now.gc_cpu = base_elapsed(cpu->begin, cpu->end);
	noted.now.all_cpu = base_sub_sat(cpu->end, noted.cpu);
	noted.now.limiter = pacer.limiter;
	// A clock that is refused reads 0.
	noted.cpu = base_max(noted.cpu, cpu->end);
}

void pacertrace_take(struct pacertrace *t)
{
	*t = noted.now;
}

// ---- lines ----

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

static void text_work(struct text *t, const struct pacertrace *c)
{
	text_name(t, "% CPU (", c->limiter.percent);
	text_name(t, " limit) for ", c->scan_heap);
	text_name(t, "+", c->scan_stack);
	text_name(t, "+", c->scan_globals);
	text_str(t, " B work ");
}

// text_reached writes from what goal to what size the heap went.  The sign
// before "goal" is Go's.
static void text_reached(struct text *t, const struct pacertrace *c)
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

void pacertrace_format_cpu(struct text *t, const struct pacertrace *c,
			   uint64_t number)
{
	enum { NS_PER_MS = 1000 * 1000 };

	text_init(t);
	text_name(t, "pacer: ", percent(c->gc_cpu, c->all_cpu));
	text_work(t, c);
	text_reached(t, c);
	text_bound(t, "; allocated ", c->allocated);
	text_name(t, "; limiter ", c->limiter.fill / NS_PER_MS);
	text_name(t, "/", c->limiter.capacity / NS_PER_MS);
	text_str(t, c->limiter.limiting ? " ms, limiting" : " ms");
	text_end(t, number);
}

void pacertrace_format_sweep(struct text *t, const struct pacertrace *c,
			     uint64_t number)
{
	text_init(t);
	text_str(t, c->beside ? "pacer: sweep begins" : "pacer: sweep done");
	text_name(t, " at heap size ", c->live >> 20);
	if (c->beside) {
		text_name(t, "MB, beside the threads; ", c->swept);
		text_str(t, " pages to sweep");
	} else {
		// Nothing can be allocated: the world is stopped.
		text_name(t, "MB; allocated 0MB during sweep; swept ",
			  c->swept);
		text_name(t, " pages, freed ", c->freed);
	}
	text_end(t, number);
}

// bound returns the name of the term that the goal equals.  If it equals
// several, this is the one that comes first in the line.
static const char *bound(const struct pacer_terms *t)
{
	uint64_t goal = base_max(base_max(t->percent, t->headroom),
				 base_max(t->minimum, t->before));

	if (t->limit < goal)
		return "limit";
	if (t->percent == goal)
		return "percent";
	if (t->headroom == goal)
		return "headroom";
	return t->minimum == goal ? "minimum" : "before";
}

void pacertrace_format_goal(struct text *t, const struct pacertrace *c,
			    uint64_t number)
{
	const struct pacer_terms *terms = &c->terms;

	text_init(t);
	text_bound(t, "pacer: goal ", c->next);
	text_str(t, " by ");
	text_str(t, bound(terms));
	text_bound(t, " (percent ", terms->percent);
	text_bound(t, ", headroom ", terms->headroom);
	text_bound(t, ", minimum ", terms->minimum);
	text_bound(t, ", before ",
		   terms->before == 0 ? PACER_NEVER : terms->before);
	text_bound(t, ", limit ", terms->limit);
	text_str(t, "), trigger=goal");
	text_end(t, number);
}
