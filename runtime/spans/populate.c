// populate.c - the steps of a pass.
#include "runtime/spans/populate.h"

#include "runtime/os/schedpoint.h"
#include "runtime/spans/pagecount.h"

struct populate_pass populate_begin(void)
{
	struct populate_pass pass = {.over = false};

	mutex_lock(&mheap.lock);
	pass.chunk = (uint32_t)(mheap.pages.search_page / RT_CHUNK_PAGES);
	mutex_unlock(&mheap.lock);
	return pass;
}

// find takes the next range of scavenged pages: it marks them allocated.
// Returns the first page and sets *n to the length, or returns PAGEALLOC_NONE.
// The caller must hold the heap lock.
static uint64_t find(struct populate_pass *pass, unsigned *n)
{
	struct pagealloc *pa = &mheap.pages;
	uint32_t end = (uint32_t)base_min((uint64_t)pass->chunk + POPULATE_LOOK,
					  pa->nchunks);

	RT_ASSERT(mutex_held(&mheap.lock));
	for (; pass->chunk < end; pass->chunk++) {
		unsigned i = pallocdata_find_scavenged(
		    pagealloc_chunk(pa, pass->chunk),
		    POPULATE_STEP >> RT_PAGE_SHIFT, n);
		uint64_t page = (uint64_t)pass->chunk * RT_CHUNK_PAGES + i;

		if (i != PALLOCBITS_NONE) {
			pagealloc_alloc_range(pa, page, *n);
			return page;
		}
	}
	pass->over = pass->chunk >= pa->nchunks;
	return PAGEALLOC_NONE;
}

// bring_in brings in the memory of the pages in hand, and ends the turn even if
// the system refuses that.  Returns false if the system refuses.
static bool bring_in(struct rt_proc *p, uint64_t page, unsigned n)
{
	bool ok = sysmem_populate((void *)arena_page_address(page),
				  (uint64_t)n << RT_PAGE_SHIFT);

	if (ok)
		pagecount_populated(p, n);
	else
		atomic_u32_store_relaxed(&mheap.populate, 0);
	mheap_end_turn(page, n, !ok);
	return ok;
}

uint64_t populate_range(struct rt_proc *p, struct populate_pass *pass)
{
	uint64_t page;
	unsigned n;

	mheap_begin_turn();
	page = find(pass, &n);
	mheap_set_in_hand(page != PAGEALLOC_NONE);
	schedpoint(SCHED_POPULATE_RANGE);
	if (page == PAGEALLOC_NONE) {
		mheap_end_turn(0, 0, false);
		return 0;
	}
	if (bring_in(p, page, n))
		return (uint64_t)n << RT_PAGE_SHIFT;
	pass->over = true;
	return 0;
}
