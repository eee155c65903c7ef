// mheap.h - the pages of a heap by use, as statistics count them.
#ifndef TEST_UNIT_MHEAP_H
#define TEST_UNIT_MHEAP_H

#include "runtime/spans/mheap.h"
#include "runtime/spans/scavenge.h"
#include "test/harness/heap.h"

enum {
	CHUNK = RT_CHUNK_SIZE,
	PAGE = RT_PAGE_SIZE,
	RANGE = RT_ARENA_SIZE, // the smallest heap range
	RANGE_PAGES = RANGE / PAGE,
	PAGE_CLASS = 51, // one object of a page
};

static struct rt_proc *self;

// The statistics that change when pages do.
struct row {
	uint64_t released, committed;
	uint64_t in_heap, in_stacks, in_work;
	uint64_t heap_released, heap_free, heap_in_use;
	uint64_t mapped, sys; // beyond what metadata took
};

// scavenge_once releases the first range of a pass.
static inline uint64_t scavenge_once(struct rt_proc *p, uint64_t max,
				     bool force)
{
	struct scavenge_pass pass = scavenge_begin(force);

	return scavenge_range(p, &pass, max);
}

static inline uint64_t metadata(void)
{
	return gauge_load(&gauges.stacks_sys) + gauge_load(&gauges.mspan_sys) +
	       gauge_load(&gauges.mcache_sys) +
	       gauge_load(&gauges.buckhash_sys) +
	       gauge_load(&gauges.gc_misc_sys) + gauge_load(&gauges.other_sys);
}

static inline struct row now(void)
{
	struct heapstats_totals h;
	struct row r;

	heapstats_read(&h);
	r = (struct row){
	    .released = h.released,
	    .committed = h.committed,
	    .in_heap = h.in_heap,
	    .in_stacks = h.in_stacks,
	    .in_work = h.in_work_bufs,
	    .heap_released = heapgauge_sum(HEAPGAUGE_RELEASED),
	    .heap_free = heapgauge_sum(HEAPGAUGE_FREE),
	    .heap_in_use = heapgauge_sum(HEAPGAUGE_IN_USE),
	    .mapped = gauge_load(&gauges.mapped_ready) - metadata(),
	};
	r.sys = r.heap_in_use + r.heap_free + r.heap_released + r.in_stacks +
		r.in_work;
	ck_assert_uint_eq(r.heap_in_use, r.in_heap);
	ck_assert_uint_eq(r.heap_released, r.released);
	ck_assert_uint_eq(r.heap_in_use + r.heap_free,
			  r.committed - r.in_stacks - r.in_work);
	ck_assert_uint_eq(r.mapped, r.sys - r.released);
	ck_assert_uint_eq(heapgauge_sum(HEAPGAUGE_PAGES_IN_USE) * PAGE,
			  r.heap_in_use);
	ck_assert_uint_eq(r.sys, arena_used());
	return r;
}

static inline bool same_row(struct row a, struct row b)
{
	return memcmp(&a, &b, sizeof a) == 0;
}

// Bytes of the heap by what they are used for; the rest is released.
struct use {
	uint64_t heap, stacks, work, free;
	uint64_t sys;
};

// expect compares figures that now returns with those wanted.  now itself
// compares its figures with each other.
static inline void expect(struct use want)
{
	struct row got = now();

	ck_assert_uint_eq(got.in_heap, want.heap);
	ck_assert_uint_eq(got.in_stacks, want.stacks);
	ck_assert_uint_eq(got.in_work, want.work);
	ck_assert_uint_eq(got.heap_free, want.free);
	ck_assert_uint_eq(got.sys, want.sys);
	ck_assert_uint_eq(got.released, want.sys - want.heap - want.stacks -
					    want.work - want.free);
}

static inline void begin_with(bool populate)
{
	rt_config c = heap_config(100);

	c.max_heap = RANGE;
	c.align8 = 1; // the class of 8 bytes is in use
	c.populate = populate;
	heap_start(c);
	self = proc_self();
}

// begin makes a heap in which only used memory is resident.
static inline void begin(void)
{
	begin_with(false);
}

static inline void begin_populating(void)
{
	begin_with(true);
}

static inline void end(void)
{
	ck_assert_int_eq(rt_fini(), RT_OK);
}

// check_heap checks the identities of a heap at rest: everything that is
// counted adds up, and the page allocator finds no fault in itself.
static inline void check_heap(void)
{
	rt_memstats m;

	now();
	ck_assert_ptr_null(pagealloc_check(&mheap.pages));
	ck_assert_int_eq(rt_read_memstats(&m), RT_OK);
}

static inline void nothing_in_use(void)
{
	ck_assert_uint_eq(now().heap_in_use, 0);
	ck_assert_uint_eq(gauge_load(&gauges.mspan_inuse), 0);
	ck_assert_uint_eq(mheap.bitmap8s.inuse, 0);
}

static inline void end_cache(struct mheap_cache *cache)
{
	mheap_cache_flush(cache);
	check_heap();
}

static inline struct mspan *alloc_page(struct mheap_cache *cache)
{
	return mheap_alloc_small(self, cache,
				 spanclass_make(PAGE_CLASS, KIND_NOSCAN));
}

static inline struct mspan *alloc_large(struct mheap_cache *cache, size_t n)
{
	return mheap_alloc_large(self, cache, KIND_NOSCAN, n);
}

static inline struct mspan *alloc_work(uint64_t npages)
{
	return mheap_alloc_manual(self, npages, MSPAN_WORK);
}

static inline struct mspan *alloc_class(unsigned c, unsigned kind)
{
	return mheap_alloc_small(self, NULL, spanclass_make(c, kind));
}

// free_span frees a span that holds no object.  If the span is large, its
// object dies here.
static inline void free_span(struct mspan *s)
{
	if (mspan_is_large(s)) {
		s->alloc_count = 0;
		atomic_u64_store_relaxed(
		    mspan_lineword(s, epoch_alloc_line(epoch_sweepgen()), 0),
		    0);
	}
	s->next = NULL;
	mheap_free(self, s);
}

#endif
