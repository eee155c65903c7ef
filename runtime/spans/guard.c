// Protects guards, counts them, and writes and checks canaries.
#include "runtime/spans/guard.h"

#include <string.h>

#include "runtime/os/throw.h"
#include "runtime/os/settings.h"

// A word of these bytes is no heap address and no small number.
enum { CANARY = 0xcb };

// The guard's own mapping, and the one that begins behind it.
enum { GUARD_MAPPINGS = 2 };

bool guard_on;

// There is no check function: each moves by itself, and any number is possible.
static atomic_u32 count;
static atomic_u64 draws; // random numbers drawn

void guard_init(void)
{
	guard_on = settings()->guard_large != 0 || settings()->guard_small != 0;
	atomic_u32_store_relaxed(&count, 0);
	atomic_u64_store_relaxed(&draws, 0);
}

uint64_t guard_draw(uint64_t n)
{
	uint64_t x = atomic_u64_add_relaxed(&draws, 1);

	x *= UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
	return (x >> 32) % n;
}

#ifdef RT_TEST
uint32_t guard_count(void)
{
	return atomic_u32_load_relaxed(&count);
}
#endif

// ---- layout ----

// guard_size returns the larger of a page and a physical page.
static uint64_t guard_size(void)
{
	return base_max(sysmem_page_size(), RT_PAGE_SIZE);
}

// The guard is guard pages long, and begins at a multiple of its size.  The
// span may end at any page, so up to guard - 1 pages more are lost behind it.
uint64_t guard_pages(size_t request)
{
	uint64_t guard = guard_size() >> RT_PAGE_SHIFT;

	return base_pages(request) + 2 * guard - 1;
}

uintptr_t guard_begin(uintptr_t base, uint64_t npages)
{
	uintptr_t end = base + (npages << RT_PAGE_SHIFT);

	return base_align_down(end - guard_size(), guard_size());
}

// ---- protected pages ----

bool guard_protect(uintptr_t base, uint64_t npages)
{
	uintptr_t guard = guard_begin(base, npages);

	if (atomic_u32_add_relaxed(&count, 1) <= GUARD_MAX &&
	    sysmem_protect((void *)guard, guard_size())) {
		sysmem_count_mappings(GUARD_MAPPINGS);
		return true;
	}
	atomic_u32_add_relaxed(&count, (uint32_t)-1);
	return false;
}

// note_protected notes that the pages of [lo, hi) are protected.  The first
// page of the guard gets place 1, so that note_unprotected can count guards.
static void note_protected(uintptr_t lo, uintptr_t hi, uintptr_t guard)
{
	const uint32_t first = pageword_make(0, 0, PAGEWORD_PROTECTED);
	uint64_t page = arena_offset(lo) >> RT_PAGE_SHIFT;

	// Pairs with the acquire in arena_pageword.
	for (uintptr_t at = lo; at < hi; at += RT_PAGE_SIZE)
		atomic_u32_store_release(&arena.pagewords[page++],
					 pageword_at(first, at == guard));
}

void guard_leave(uintptr_t base, uint64_t npages)
{
	uintptr_t lo = base_align_up(base, guard_size());
	uintptr_t guard = guard_begin(base, npages);

	RT_ASSERT(!arena_span(arena_offset(base) >> RT_PAGE_SHIFT));
	if (lo < guard && !sysmem_protect((void *)lo, guard - lo))
		lo = guard;
	note_protected(lo, guard + guard_size(), guard);
}

static bool is_protected(uint64_t page)
{
	return pageword_state(arena_pageword(page)) == PAGEWORD_PROTECTED;
}

// note_unprotected notes that pages are unprotected, and that guards which
// begin among them are gone.
static void note_unprotected(uint64_t page, uint64_t npages)
{
	for (uint64_t i = 0; i < npages; i++) {
		if (pageword_place(arena_pageword(page + i)) != 0) {
			atomic_u32_add_relaxed(&count, (uint32_t)-1);
			sysmem_count_mappings(-GUARD_MAPPINGS);
		}
		// Pairs with the acquire in arena_pageword.
		atomic_u32_store_release(&arena.pagewords[page + i], 0);
	}
}

bool guard_unprotect(uint64_t page, uint64_t npages)
{
	uint64_t limit = page + npages;

	while (page < limit) {
		uint64_t n = 0;

		while (page + n < limit && is_protected(page + n))
			n++;
		if (n != 0) {
			void *p = (void *)arena_page_address(page);

			if (!sysmem_unprotect(p, n << RT_PAGE_SHIFT))
				return false;
			note_unprotected(page, n);
		}
		page += base_max(n, 1);
	}
	return true;
}

// ---- canaries ----

void guard_fill(uintptr_t lo, uintptr_t hi)
{
	memset((void *)lo, CANARY, hi - lo);
}

uintptr_t guard_find(uintptr_t lo, uintptr_t hi)
{
	for (uintptr_t at = lo; at < hi; at++)
		if (*(const unsigned char *)at != CANARY)
			return at;
	return 0;
}
