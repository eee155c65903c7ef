// Fills rt_memstats from a snapshot, and checks what must be equal in it.
#include "gc/stats/mstats.h"

#include <rt/config.h>
#include <string.h>

#include "gc/stats/snapshot.h"

static_assert((int)RT_PAUSES == (int)PAUSERING_LEN, "copied whole");
static_assert((int)RT_BY_SIZE <= (int)SIZECLASS_COUNT, "a prefix of classes");

// Sums over size classes.
struct sums {
	uint64_t total_alloc, total_free;
	uint64_t mallocs, frees;
};

// sum_classes adds up small and large objects, and fills by_size.
static struct sums sum_classes(const struct heapstats_totals *h,
			       struct rt_memstats_size *by_size)
{
	struct sums s = {
	    .total_alloc = h->large_alloc,
	    .total_free = h->large_free,
	    .mallocs = h->large_alloc_count,
	    .frees = h->large_free_count,
	};

	for (unsigned c = 0; c < SIZECLASS_COUNT; c++) {
		uint64_t size = sizeclass_table[c].size;
		uint64_t mallocs = h->small_alloc_count[c];
		uint64_t frees = h->small_free_count[c];

		s.total_alloc += mallocs * size;
		s.total_free += frees * size;
		s.mallocs += mallocs;
		s.frees += frees;
		if (c < RT_BY_SIZE)
			by_size[c] = (struct rt_memstats_size){
			    (uint32_t)size, 0, mallocs, frees};
	}
	// Like Go, this counts combined tiny allocations on both sides: they
	// appear and vanish with their block, and are not followed one by one.
	s.mallocs += h->tiny_alloc_count;
	s.frees += h->tiny_alloc_count;
	return s;
}

// ---- double check ----

static atomic_u32 check_mode; // enum rt_double_check

void mstats_set_double_check(int mode)
{
	atomic_u32_store_relaxed(&check_mode, (uint32_t)mode);
}

static void add_line(struct text *t, const char *name, uint64_t value)
{
	if (t->len != 0)
		text_str(t, "\n");
	text_str(t, "runtime: ");
	text_str(t, name);
	text_str(t, "=");
	text_u64(t, value);
}

// Two measures of one thing, and the message if they differ.
struct pair {
	const char *name;
	uint64_t value;
	const char *other_name;
	uint64_t other;
	const char *message;
};

// check_mapped makes the sixth comparison, which prints two more values.
static const char *check_mapped(const struct snapshot *s, uint64_t sys,
				struct text *t)
{
	if (s->mapped_ready == sys - s->heap.released)
		return NULL;
	add_line(t, "mappedReady", s->mapped_ready);
	add_line(t, "totalMapped", sys);
	add_line(t, "released", s->heap.released);
	add_line(t, "totalMapped-released", sys - s->heap.released);
	return "mappedReady and other memstats are not equal";
}

// double_check makes Go's six comparisons in Go's order.  Returns NULL if all
// hold.  Otherwise it returns the message of the first that does not, with its
// values in *t.
static const char *double_check(const struct snapshot *s,
				const struct sums *sums, uint64_t sys,
				struct text *t)
{
	const struct heapstats_totals *h = &s->heap;
	const uint64_t *g = s->heapgauges;
	const struct pair pairs[] = {
	    {"heapInUse", g[HEAPGAUGE_IN_USE], "consistent value", h->in_heap,
	     "heapInUse and consistent stats are not equal"},
	    {"heapReleased", g[HEAPGAUGE_RELEASED], "consistent value",
	     h->released, "heapReleased and consistent stats are not equal"},
	    {"global value", g[HEAPGAUGE_IN_USE] + g[HEAPGAUGE_FREE],
	     "consistent value", heapstats_retained(h),
	     "measures of the retained heap are not equal"},
	    {"totalAlloc", g[HEAPGAUGE_TOTAL_ALLOC], "consistent value",
	     sums->total_alloc,
	     "totalAlloc and consistent stats are not equal"},
	    {"totalFree", g[HEAPGAUGE_TOTAL_FREE], "consistent value",
	     sums->total_free, "totalFree and consistent stats are not equal"},
	};

	text_init(t);
	for (unsigned i = 0; i < RT_ARRAY_LEN(pairs); i++)
		if (pairs[i].value != pairs[i].other) {
			add_line(t, pairs[i].name, pairs[i].value);
			add_line(t, pairs[i].other_name, pairs[i].other);
			return pairs[i].message;
		}
	return check_mapped(s, sys, t);
}

static void check_or_report(const struct snapshot *s, const struct sums *sums,
			    uint64_t sys, struct text *report)
{
	uint32_t mode = atomic_u32_load_relaxed(&check_mode);
	const char *message;

	text_init(report);
	if (mode == RT_CHECK_OFF)
		return;
	message = double_check(s, sums, sys, report);
	if (!message)
		return;
	if (mode == RT_CHECK_FATAL)
		throw_text(report, message);
	text_str(report, "\n");
	text_str(report, message);
}

// ---- filling ----

static void fill_heap(rt_memstats *m, const struct snapshot *s,
		      const struct sums *sums, uint64_t sys)
{
	const uint64_t *g = s->heapgauges;

	m->alloc = m->heap_alloc = sums->total_alloc - sums->total_free;
	m->total_alloc = sums->total_alloc;
	m->sys = sys;
	m->lookups = 0;
	m->mallocs = sums->mallocs;
	m->frees = sums->frees;
	m->heap_objects = sums->mallocs - sums->frees;
	m->heap_idle = g[HEAPGAUGE_FREE] + g[HEAPGAUGE_RELEASED];
	m->heap_inuse = g[HEAPGAUGE_IN_USE];
	m->heap_sys = m->heap_idle + m->heap_inuse;
	m->heap_released = g[HEAPGAUGE_RELEASED];
	m->stack_inuse = s->heap.in_stacks;
	m->stack_sys = s->heap.in_stacks + s->stacks_sys;
	m->mspan_inuse = base_min(s->mspan_inuse, s->mspan_sys);
	m->mspan_sys = s->mspan_sys;
	m->mcache_inuse = base_min(s->mcache_inuse, s->mcache_sys);
	m->mcache_sys = s->mcache_sys;
	m->buckhash_sys = s->buckhash_sys;
	m->gc_sys =
	    s->gc_misc_sys + s->heap.in_work_bufs + s->heap.in_ptr_scalar_bits;
	m->other_sys = s->other_sys;
}

// pauses_of returns a pausering_copy whose arrays are those of *m, so that
// pauses are copied there.
static struct pausering_copy pauses_of(rt_memstats *m)
{
	return (struct pausering_copy){.ns = m->pause_ns, .end = m->pause_end};
}

// fill_gc fills in the rest of *m.
static void fill_gc(rt_memstats *m, const struct snapshot *s,
		    const struct pausering_copy *pauses)
{
	m->next_gc = s->heap_goal;
	m->last_gc = s->cycles.last_gc_unix;
	m->pause_total_ns = pauses->total_ns;
	m->num_gc = (uint32_t)s->cycles.num_gc;
	m->num_forced_gc = (uint32_t)s->cycles.num_forced_gc;
	memcpy(&m->gc_cpu_fraction, &s->cycles.gc_cpu_fraction,
	       sizeof m->gc_cpu_fraction);
	m->enable_gc = 1;
	m->debug_gc = 0;
	memset(m->spare, 0, sizeof m->spare);
}

void mstats_read(rt_memstats *m, struct text *report)
{
	struct pausering_copy pauses = pauses_of(m);
	struct snapshot s;
	struct sums sums;
	uint64_t sys;

	snapshot_stopped(&s, &pauses);
	sums = sum_classes(&s.heap, m->by_size);
	sys = snapshot_sys(&s);
	check_or_report(&s, &sums, sys, report);
	fill_heap(m, &s, &sums, sys);
	fill_gc(m, &s, &pauses);
}

void mstats_read_live(rt_memstats *m)
{
	struct pausering_copy pauses = pauses_of(m);
	struct snapshot s;
	struct sums sums;

	snapshot_live(&s, &pauses);
	sums = sum_classes(&s.heap, m->by_size);
	fill_heap(m, &s, &sums, snapshot_sys(&s));
	fill_gc(m, &s, &pauses);
}

size_t mstats_read_gc(uint64_t *buf)
{
	uint64_t ns[RT_PAUSES], end[RT_PAUSES];
	struct pausering_copy pauses = {.ns = ns, .end = end};
	struct gcstats_cycles cycles;
	uint64_t n;

	gcstats_read(&cycles, &pauses);
	n = base_min(cycles.num_gc, RT_PAUSES);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t slot = (cycles.num_gc - 1 - i) % RT_PAUSES;

		buf[i] = ns[slot];
		buf[n + i] = end[slot];
	}
	buf[2 * n] = cycles.last_gc_unix;
	buf[2 * n + 1] = (uint32_t)cycles.num_gc;
	buf[2 * n + 2] = pauses.total_ns;
	return 2 * n + 3;
}
