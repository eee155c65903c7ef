// The steps of a pass, and the release of tables.
#include "runtime/spans/scavenge.h"

#include "runtime/base/bits.h"
#include "runtime/os/schedpoint.h"
#include "runtime/os/throw.h"
#include "runtime/pages/hugepages.h"

enum { HUGE_PAGES = (2 << 20) >> RT_PAGE_SHIFT };

// phys_pages returns the number of pages in a physical page, at least 1.
static unsigned phys_pages(void)
{
	return (unsigned)base_max(sysmem_page_size() >> RT_PAGE_SHIFT, 1);
}

// find takes the next range of free pages that are not scavenged: it marks them
// allocated.  Returns the first page and sets *n to the length, or returns
// PAGEALLOC_NONE if there is none.  The caller must hold the heap lock.
static uint64_t find(struct scavenge_pass *pass, uint64_t max_pages,
		     unsigned *n)
{
	struct pagealloc *pa = &mheap.pages;
	uint32_t chunk;

	RT_ASSERT(mutex_held(&mheap.lock));
	while ((chunk = scavindex_find(&pa->scav, pass->below, pass->force)) !=
	       SCAVINDEX_NONE) {
		unsigned i = pallocdata_find_scavenge(
		    pagealloc_chunk(pa, chunk), RT_CHUNK_PAGES - 1,
		    phys_pages(), (unsigned)base_min(max_pages, RT_CHUNK_PAGES),
		    HUGE_PAGES, n);
		uint64_t page = (uint64_t)chunk * RT_CHUNK_PAGES + i;

		pass->below = chunk + 1;
		if (i != PALLOCBITS_NONE) {
			pagealloc_alloc_range(pa, page, *n);
			return page;
		}
		scavindex_empty(&pa->scav, chunk);
	}
	return PAGEALLOC_NONE;
}

static void count(struct rt_proc *p, uint64_t bytes)
{
	struct heapstats_delta *d;

	heapgauge_add(p, HEAPGAUGE_RELEASED, (int64_t)bytes);
	heapgauge_add(p, HEAPGAUGE_FREE, -(int64_t)bytes);
	d = heapstats_acquire(p);
	heapstats_add(&d->committed, -bytes);
	heapstats_add(&d->released, bytes);
	heapstats_release(p);
}

// release releases the memory behind the pages in hand, and ends the turn even
// if the system refuses that.  Returns false if the system refuses.
static bool release(struct rt_proc *p, uint64_t page, unsigned n)
{
	uint64_t bytes = (uint64_t)n << RT_PAGE_SHIFT;
	bool released;

	hugepages_withdraw((uint32_t)(page / RT_CHUNK_PAGES));
	released = sysmem_release((void *)arena_page_address(page), bytes);

	if (released)
		count(p, bytes);
	mheap_end_turn(page, n, released);
	return released;
}

// step finds and releases the next range of a pass in a turn.  It sets
// *released to the bytes released, 0 if the system refuses.  Returns false if
// there is no range.
static bool step(struct rt_proc *p, struct scavenge_pass *pass,
		 uint64_t max_pages, uint64_t *released)
{
	uint64_t page;
	unsigned n;

	*released = 0;
	mheap_begin_turn();
	page = find(pass, max_pages, &n);
	pass->over = page == PAGEALLOC_NONE;
	mheap_set_in_hand(!pass->over);
	schedpoint(SCHED_SCAVENGE_STEP);
	if (pass->over)
		mheap_end_turn(0, 0, false);
	else if (release(p, page, n))
		*released = (uint64_t)n << RT_PAGE_SHIFT;
	else // skips the rest of the chunk
		pass->below = (uint32_t)(page / RT_CHUNK_PAGES);
	return !pass->over;
}

uint64_t scavenge_range(struct rt_proc *p, struct scavenge_pass *pass,
			uint64_t max)
{
	uint64_t max_pages = base_max(base_pages(max), 1);
	uint64_t released = 0;
	unsigned refused = 0;

	while (released == 0 && refused < SCAVENGE_REFUSALS &&
	       step(p, pass, max_pages, &released))
		refused++;
	pass->refused |= released == 0 && refused != 0;
	return released;
}

// ---- tables ----

// worth tells whether a chunk is free as a whole and has no memory, while its
// tables may still have some.
static bool worth(uint32_t chunk)
{
	const struct pallocdata *d = pagealloc_chunk(&mheap.pages, chunk);

	return !scavindex_tables_gone(&mheap.pages.scav, chunk) &&
	       pallocbits_count_range(&d->scavenged, 0, RT_CHUNK_PAGES) ==
		   RT_CHUNK_PAGES;
}

// The heap lock is held during the system call, which takes microseconds.  So
// no thread takes the chunk's pages meanwhile, and no thread that looks for
// free pages overlooks them.
bool scavenge_tables(uint32_t *chunk)
{
	struct pagealloc *pa = &mheap.pages;
	uint32_t end;
	bool more;

	mutex_lock(&mheap.lock);
	end = (uint32_t)base_min((uint64_t)*chunk + SCAVENGE_LOOK, pa->nchunks);
	while (*chunk < end && !worth(*chunk))
		++*chunk;
	if (*chunk < end) {
		hugepages_withdraw_tables(*chunk);
		if (arena_release_tables(*chunk))
			scavindex_release_tables(&pa->scav, *chunk);
		++*chunk;
	}
	more = *chunk < pa->nchunks;
	mutex_unlock(&mheap.lock);
	return more;
}
