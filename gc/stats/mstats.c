#include "gc/stats/mstats.h"

#include <rt/config.h>
#include <string.h>

#include "runtime/world/gcstats.h"
#include "runtime/spans/stackalloc.h"
#include "gc/cycle/pacer.h"

static_assert((int)RT_PAUSES == (int)PAUSERING_LEN, "copied whole");
static_assert((int)RT_BY_SIZE <= (int)SIZECLASS_COUNT, "a prefix of classes");

// Every input of one reading, each loaded once: Sys and its parts come from
// the same loads.
struct loads {
	struct heapstats_totals heap;
	uint64_t heap_in_use, heap_free, heap_released;
	uint64_t total_alloc, total_free;
	uint64_t mapped_ready;
	uint64_t stacks_sys, mspan_sys, mcache_sys;
	uint64_t buckhash_sys, gc_misc_sys, other_sys;
	uint64_t mspan_inuse, mcache_inuse;
};

// Sums over size classes.
struct sums {
	uint64_t total_alloc, total_free;
	uint64_t mallocs, frees;
};

static void load_sys(struct loads *l)
{
	// What is in use before what is mapped, as it comes to be; a mapping
	// that goes in between must not make the first the larger.
	l->mspan_inuse = gauge_load(&gauges.mspan_inuse);
	l->mcache_inuse = gauge_load(&gauges.mcache_inuse);
	l->stacks_sys = gauge_load(&gauges.stacks_sys);
	l->mspan_sys = gauge_load(&gauges.mspan_sys);
	l->mcache_sys = gauge_load(&gauges.mcache_sys);
	l->buckhash_sys = gauge_load(&gauges.buckhash_sys);
	l->gc_misc_sys = gauge_load(&gauges.gc_misc_sys);
	l->other_sys = gauge_load(&gauges.other_sys);
	l->mspan_inuse = base_min(l->mspan_inuse, l->mspan_sys);
	l->mcache_inuse = base_min(l->mcache_inuse, l->mcache_sys);
}

static void load_gauges(struct loads *l)
{
	uint64_t sums[HEAPGAUGE_COUNT];

	heapgauge_read(sums);
	l->heap_in_use = sums[HEAPGAUGE_IN_USE];
	l->heap_free = sums[HEAPGAUGE_FREE];
	l->heap_released = sums[HEAPGAUGE_RELEASED];
	l->total_alloc = sums[HEAPGAUGE_TOTAL_ALLOC];
	l->total_free = sums[HEAPGAUGE_TOTAL_FREE];
	l->mapped_ready = gauge_load(&gauges.mapped_ready);
	load_sys(l);
}

// loads_from_snapshot takes the heap's gauges from the consistent snapshot,
// where all of them are of one moment.
static void loads_from_snapshot(struct loads *l)
{
	const struct heapstats_totals *h = &l->heap;

	l->heap_in_use = h->in_heap;
	l->heap_released = h->released;
	l->heap_free = h->committed - h->in_heap - h->in_stacks -
		       h->in_work_bufs - h->in_ptr_scalar_bits;
	load_sys(l);
}

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
	// Go counts combined tiny allocations on both sides: they appear and
	// vanish with their block, one by one nobody follows them.
	s.mallocs += h->tiny_alloc_count;
	s.frees += h->tiny_alloc_count;
	return s;
}

static uint64_t sum_sys(const struct loads *l)
{
	return l->heap_in_use + l->heap_free + l->heap_released +
	       l->stacks_sys + l->mspan_sys + l->mcache_sys + l->buckhash_sys +
	       l->gc_misc_sys + l->other_sys + l->heap.in_stacks +
	       l->heap.in_work_bufs + l->heap.in_ptr_scalar_bits;
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

// Two measures of one thing, and what to say when they differ.
struct pair {
	const char *name;
	uint64_t value;
	const char *other_name;
	uint64_t other;
	const char *message;
};

// check_mapped is the sixth comparison, which prints two more values.
static const char *check_mapped(const struct loads *l, uint64_t sys,
				struct text *t)
{
	if (l->mapped_ready == sys - l->heap.released)
		return NULL;
	add_line(t, "mappedReady", l->mapped_ready);
	add_line(t, "totalMapped", sys);
	add_line(t, "released", l->heap.released);
	add_line(t, "totalMapped-released", sys - l->heap.released);
	return "mappedReady and other memstats are not equal";
}

// double_check makes Go's six comparisons in Go's order; NULL: all hold, else
// the message of the first that does not, with its values in *t.
static const char *double_check(const struct loads *l, const struct sums *s,
				uint64_t sys, struct text *t)
{
	const struct heapstats_totals *h = &l->heap;
	const struct pair pairs[] = {
	    {"heapInUse", l->heap_in_use, "consistent value", h->in_heap,
	     "heapInUse and consistent stats are not equal"},
	    {"heapReleased", l->heap_released, "consistent value", h->released,
	     "heapReleased and consistent stats are not equal"},
	    {"global value", l->heap_in_use + l->heap_free, "consistent value",
	     h->committed - h->in_stacks - h->in_work_bufs -
		 h->in_ptr_scalar_bits,
	     "measures of the retained heap are not equal"},
	    {"totalAlloc", l->total_alloc, "consistent value", s->total_alloc,
	     "totalAlloc and consistent stats are not equal"},
	    {"totalFree", l->total_free, "consistent value", s->total_free,
	     "totalFree and consistent stats are not equal"},
	};

	text_init(t);
	for (unsigned i = 0; i < RT_ARRAY_LEN(pairs); i++)
		if (pairs[i].value != pairs[i].other) {
			add_line(t, pairs[i].name, pairs[i].value);
			add_line(t, pairs[i].other_name, pairs[i].other);
			return pairs[i].message;
		}
	return check_mapped(l, sys, t);
}

static void check_or_report(const struct loads *l, const struct sums *s,
			    uint64_t sys, struct text *report)
{
	uint32_t mode = atomic_u32_load_relaxed(&check_mode);
	const char *message;

	text_init(report);
	if (mode == RT_CHECK_OFF)
		return;
	message = double_check(l, s, sys, report);
	if (!message)
		return;
	if (mode == RT_CHECK_FATAL)
		throw_text(report, message);
	text_str(report, "\n");
	text_str(report, message);
}

// ---- filling ----

static void fill_gc(rt_memstats *m)
{
	struct gcstats_cycles cycles;
	struct pausering_copy pauses;

	gcstats_read(&cycles, &pauses);
	m->next_gc = atomic_u64_load_relaxed(&pacer.goal);
	m->last_gc = cycles.last_gc_unix;
	m->pause_total_ns = pauses.total_ns;
	memcpy(m->pause_ns, pauses.ns, sizeof m->pause_ns);
	memcpy(m->pause_end, pauses.end, sizeof m->pause_end);
	m->num_gc = (uint32_t)cycles.num_gc;
	m->num_forced_gc = (uint32_t)cycles.num_forced_gc;
	memcpy(&m->gc_cpu_fraction, &cycles.gc_cpu_fraction,
	       sizeof m->gc_cpu_fraction);
	m->enable_gc = 1;
}

static void fill_heap(rt_memstats *m, const struct loads *l,
		      const struct sums *s, uint64_t sys)
{
	m->alloc = m->heap_alloc = s->total_alloc - s->total_free;
	m->total_alloc = s->total_alloc;
	m->sys = sys;
	m->mallocs = s->mallocs;
	m->frees = s->frees;
	m->heap_objects = s->mallocs - s->frees;
	m->heap_sys = l->heap_in_use + l->heap_free + l->heap_released;
	m->heap_idle = l->heap_free + l->heap_released;
	m->heap_inuse = l->heap_in_use;
	m->heap_released = l->heap_released;
	m->stack_inuse = l->heap.in_stacks;
	m->stack_sys = l->heap.in_stacks + l->stacks_sys;
	m->mspan_inuse = l->mspan_inuse;
	m->mspan_sys = l->mspan_sys;
	m->mcache_inuse = l->mcache_inuse;
	m->mcache_sys = l->mcache_sys;
	m->buckhash_sys = l->buckhash_sys;
	m->gc_sys =
	    l->gc_misc_sys + l->heap.in_work_bufs + l->heap.in_ptr_scalar_bits;
	m->other_sys = l->other_sys;
}

void mstats_read(struct rt_proc *p, rt_memstats *m, struct text *report)
{
	struct loads l;
	struct sums s;
	uint64_t sys;

	if (!stw_stopped())
		throw_fatal("world not stopped");
	mcache_flush_all(p);
	stackalloc_flush_all(p);
	heapstats_unsafe_read(&l.heap);
	load_gauges(&l);
	memset(m, 0, sizeof *m);
	s = sum_classes(&l.heap, m->by_size);
	sys = sum_sys(&l);
	check_or_report(&l, &s, sys, report);
	fill_heap(m, &l, &s, sys);
	fill_gc(m);
}

void mstats_read_live(rt_memstats *m)
{
	struct loads l;
	struct sums s;

	heapstats_read(&l.heap);
	loads_from_snapshot(&l);
	memset(m, 0, sizeof *m);
	s = sum_classes(&l.heap, m->by_size);
	fill_heap(m, &l, &s, sum_sys(&l));
	fill_gc(m);
}

size_t mstats_read_gc(uint64_t *buf)
{
	struct gcstats_cycles cycles;
	struct pausering_copy pauses;
	uint64_t n;

	gcstats_read(&cycles, &pauses);
	n = base_min(cycles.num_gc, RT_PAUSES);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t slot = (cycles.num_gc - 1 - i) % RT_PAUSES;

		buf[i] = pauses.ns[slot];
		buf[n + i] = pauses.end[slot];
	}
	buf[2 * n] = cycles.last_gc_unix;
	buf[2 * n + 1] = (uint32_t)cycles.num_gc;
	buf[2 * n + 2] = pauses.total_ns;
	return 2 * n + 3;
}
