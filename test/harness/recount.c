// Counts a stopped heap object by object, and compares the statistics.
#include "test/harness/recount.h"

#include <stdio.h>
#include <string.h>

#include "gc/cycle/worker.h"
#include "runtime/base/bits.h"
#include "runtime/pages/hugepages.h"
#include "runtime/spans/mcache.h"
#include "runtime/world/stw.h"
#include "runtime/os/throw.h"

void compare_u64(struct comparison *c, const char *name, uint64_t got,
		 uint64_t want)
{
	c->compared++;
	if (got == want)
		return;
	if (c->differing++ == 0)
		snprintf(c->first, sizeof c->first, "%s is %llu, not %llu",
			 name, (unsigned long long)got,
			 (unsigned long long)want);
}

void compare_class(struct comparison *c, const char *name, unsigned sizeclass,
		   uint64_t got, uint64_t want)
{
	char text[40];

	c->compared++;
	if (got == want)
		return;
	c->compared--;
	snprintf(text, sizeof text, "%s of class %u", name, sizeclass);
	compare_u64(c, text, got, want);
}

// ---- counting ----

// large_bytes returns how many bytes a large object counts as: the pages that
// it needs, without the pages of a guard.
static uint64_t large_bytes(const struct mspan *s)
{
	return base_align_up(mspan_limit(s) - mspan_object(s, 0), RT_PAGE_SIZE);
}

static void count_span(struct recount *r, const struct mspan *s)
{
	uint32_t counted;

	r->spans++;
	if (s->use == MSPAN_STACK) {
		r->stack_pages += s->npages;
		return;
	}
	if (s->use == MSPAN_WORK) {
		r->work_pages += s->npages;
		return;
	}
	counted = mspan_counted(s);
	r->heap_pages += s->npages;
	r->stale_spans += counted != s->alloc_count;
	r->objects[spanclass_size(s->spanclass)] += counted;
	if (mspan_is_large(s))
		r->large_bytes += counted * large_bytes(s);
}

static void count_spans(struct recount *r)
{
	uint64_t page = 0;
	const struct mspan *s;

	while ((s = mheap_next_span(&page)) != NULL)
		count_span(r, s);
}

static void count_chunk(struct recount *r, const struct pallocdata *chunk)
{
	for (unsigned w = 0; w < PALLOCBITS_WORDS; w++) {
		uint64_t alloc = chunk->alloc.word[w];
		uint64_t scav = chunk->scavenged.word[w];

		r->free_pages += bits_count(~alloc);
		r->scavenged_pages += bits_count(scav);
		r->both_pages += bits_count(alloc & scav);
	}
}

static void count_caches(struct recount *r)
{
	for (struct rt_proc *p = proc_first(); p; p = proc_next(p)) {
		const struct rt_mcache *mc = mcache_of(p);

		if (!mc)
			continue;
		r->mcache_bytes += mcache_bytes(mc);
		r->cached_spans += mc->heap.nspans;
		r->free_pages += bits_count(mc->heap.pages.cache);
		r->scavenged_pages +=
		    bits_count(mc->heap.pages.cache & mc->heap.pages.scav);
	}
}

// fixalloc_bytes returns all that a fixalloc ever got: in use, freed, or not
// yet cut.
static uint64_t fixalloc_bytes(const struct fixalloc *f)
{
	uint64_t bytes = f->inuse + f->nchunk;

	for (const struct fixalloc_free *p = f->list; p;
	     p = atomic_ptr_load_relaxed(&p->next))
		bytes += f->size;
	return bytes;
}

static uint64_t table_bytes(void)
{
	const struct pagealloc *pa = &mheap.pages;
	uint64_t bytes = systable_ready(&hugepages.states) +
			 systable_ready(&pa->chunks) +
			 systable_ready(&pa->scav.table);

	for (unsigned i = 0; i < PAGEALLOC_LEVELS; i++)
		bytes += systable_ready(&pa->sums[i]);
	for (unsigned i = 0; i < RT_ARRAY_LEN(arena.table); i++)
		bytes += systable_ready(&arena.table[i]);
	return bytes;
}

void recount_heap(struct recount *r)
{
	if (!stw_stopped())
		throw_fatal("recount: world not stopped");
	memset(r, 0, sizeof *r);
	count_spans(r);
	for (uint32_t i = 0; i < mheap.pages.nchunks; i++)
		count_chunk(r, pagealloc_chunk(&mheap.pages, i));
	count_caches(r);
	r->mspan_bytes = fixalloc_bytes(&mheap.spans);
	r->misc_bytes = table_bytes() + fixalloc_bytes(&mheap.bitmap8s) +
			workers.records * sizeof(struct worker);
}

// ---- comparing ----

// Sums of the objects that exist now and of all frees so far.
struct slow {
	uint64_t alloc, freed; // bytes
	uint64_t objects, frees;
};

static struct slow slow_of(const struct recount *r,
			   const struct heapstats_totals *h)
{
	struct slow s = {
	    .alloc = r->large_bytes,
	    .freed = h->large_free,
	    .objects = r->objects[0],
	    .frees = h->large_free_count + h->tiny_alloc_count,
	};

	for (unsigned c = 1; c < SIZECLASS_COUNT; c++) {
		s.objects += r->objects[c];
		s.alloc += r->objects[c] * sizeclass_table[c].size;
		s.frees += h->small_free_count[c];
		s.freed += h->small_free_count[c] * sizeclass_table[c].size;
	}
	return s;
}

static void compare_objects(const rt_memstats *m, const struct recount *r,
			    const struct heapstats_totals *h,
			    struct comparison *c)
{
	struct slow s = slow_of(r, h);

	compare_u64(c, "alloc", m->alloc, s.alloc);
	compare_u64(c, "heap_alloc", m->heap_alloc, s.alloc);
	compare_u64(c, "total_alloc", m->total_alloc, s.alloc + s.freed);
	compare_u64(c, "mallocs", m->mallocs, s.objects + s.frees);
	compare_u64(c, "frees", m->frees, s.frees);
	compare_u64(c, "heap_objects", m->heap_objects, s.objects);
	compare_u64(c, "totalAlloc", heapgauge_sum(HEAPGAUGE_TOTAL_ALLOC),
		    s.alloc + s.freed);
	compare_u64(c, "totalFree", heapgauge_sum(HEAPGAUGE_TOTAL_FREE),
		    s.freed);
	// The collection that finds an object dead frees it, too.  Only an
	// object that waits for its drop is freed later.  Until then it counts
	// in heap_dead.
	compare_u64(c, "heapLive",
		    gauge_load(&gauges.heap_live) +
			gauge_load(&gauges.heap_dead),
		    s.alloc);
	compare_u64(c, "stackInuse", gauge_load(&gauges.stack_inuse),
		    h->in_stacks);
	compare_u64(c, "large_alloc_count", h->large_alloc_count,
		    r->objects[0] + h->large_free_count);
	compare_u64(c, "large_alloc", h->large_alloc,
		    r->large_bytes + h->large_free);
	compare_u64(c, "spans with a stale alloc_count", r->stale_spans, 0);
}

static void compare_classes(const rt_memstats *m, const struct recount *r,
			    const struct heapstats_totals *h,
			    struct comparison *c)
{
	compare_class(c, "mallocs", 0, m->by_size[0].mallocs, 0);
	compare_class(c, "frees", 0, m->by_size[0].frees, 0);
	for (unsigned i = 1; i < SIZECLASS_COUNT; i++) {
		uint64_t frees = h->small_free_count[i];

		compare_class(c, "small_alloc_count", i,
			      h->small_alloc_count[i], r->objects[i] + frees);
		if (i >= RT_BY_SIZE)
			continue;
		compare_class(c, "size", i, m->by_size[i].size,
			      sizeclass_table[i].size);
		compare_class(c, "mallocs", i, m->by_size[i].mallocs,
			      r->objects[i] + frees);
		compare_class(c, "frees", i, m->by_size[i].frees, frees);
	}
}

static void compare_pages(const rt_memstats *m, const struct recount *r,
			  struct comparison *c)
{
	uint64_t inuse = r->heap_pages * RT_PAGE_SIZE;
	uint64_t idle = r->free_pages * RT_PAGE_SIZE;
	uint64_t stacks = r->stack_pages * RT_PAGE_SIZE;
	uint64_t work = r->work_pages * RT_PAGE_SIZE;

	compare_u64(c, "heap_inuse", m->heap_inuse, inuse);
	compare_u64(c, "heap_idle", m->heap_idle, idle);
	compare_u64(c, "heap_sys", m->heap_sys, arena_used() - stacks - work);
	compare_u64(c, "heap_released", m->heap_released,
		    r->scavenged_pages * RT_PAGE_SIZE);
	compare_u64(c, "pages of spans and free pages",
		    inuse + idle + stacks + work, arena_used());
	compare_u64(c, "stack_inuse", m->stack_inuse, stacks);
	compare_u64(c, "stack_sys", m->stack_sys, stacks);
	compare_u64(c, "pages_in_use", heapgauge_sum(HEAPGAUGE_PAGES_IN_USE),
		    r->heap_pages);
	compare_u64(c, "pages allocated and scavenged", r->both_pages, 0);
}

static void compare_metadata(const rt_memstats *m, const struct recount *r,
			     struct comparison *c)
{
	compare_u64(c, "mspan_inuse", m->mspan_inuse,
		    (r->spans + r->cached_spans) * sizeof(struct mspan));
	compare_u64(c, "mspan_sys", m->mspan_sys, r->mspan_bytes);
	compare_u64(c, "mcache_inuse", m->mcache_inuse, r->mcache_bytes);
	compare_u64(c, "gc_sys", m->gc_sys,
		    r->misc_bytes + r->work_pages * RT_PAGE_SIZE);
	compare_u64(c, "sys", m->sys,
		    m->heap_sys + m->stack_sys + m->mspan_sys + m->mcache_sys +
			m->buckhash_sys + m->gc_sys + m->other_sys);
	compare_u64(c, "mappedReady", gauge_load(&gauges.mapped_ready),
		    m->sys - m->heap_released);
	compare_u64(c, "lookups", m->lookups, 0);
	compare_u64(c, "buckhash_sys", m->buckhash_sys, 0);
}

void recount_compare(const rt_memstats *m, struct comparison *c)
{
	struct heapstats_totals h;
	struct recount r;

	recount_heap(&r);
	heapstats_unsafe_read(&h);
	compare_objects(m, &r, &h, c);
	compare_classes(m, &r, &h, c);
	compare_pages(m, &r, c);
	compare_metadata(m, &r, c);
}

// ---- two results ----

void compare_memstats(struct comparison *c, const rt_memstats *got,
		      const rt_memstats *want)
{
	static const struct {
		const char *name;
		size_t offset;
	} field[] = {
#define FIELD(name) {#name, offsetof(rt_memstats, name)}
	    FIELD(alloc),	 FIELD(total_alloc),   FIELD(sys),
	    FIELD(lookups),	 FIELD(mallocs),       FIELD(frees),
	    FIELD(heap_alloc),	 FIELD(heap_sys),      FIELD(heap_idle),
	    FIELD(heap_inuse),	 FIELD(heap_released), FIELD(heap_objects),
	    FIELD(stack_inuse),	 FIELD(stack_sys),     FIELD(mspan_inuse),
	    FIELD(mspan_sys),	 FIELD(mcache_inuse),  FIELD(mcache_sys),
	    FIELD(buckhash_sys), FIELD(gc_sys),	       FIELD(other_sys),
	    FIELD(next_gc),
#undef FIELD
	};

	for (size_t i = 0; i < RT_ARRAY_LEN(field); i++) {
		uint64_t a, b;

		memcpy(&a, (const char *)got + field[i].offset, sizeof a);
		memcpy(&b, (const char *)want + field[i].offset, sizeof b);
		compare_u64(c, field[i].name, a, b);
	}
	for (unsigned i = 0; i < RT_BY_SIZE; i++) {
		compare_class(c, "size", i, got->by_size[i].size,
			      want->by_size[i].size);
		compare_class(c, "mallocs", i, got->by_size[i].mallocs,
			      want->by_size[i].mallocs);
		compare_class(c, "frees", i, got->by_size[i].frees,
			      want->by_size[i].frees);
	}
}
