// Reserves the range, grows the heap, and enters spans into the tables.
#include "runtime/pages/arena.h"

#include "runtime/os/oscall.h"
#include "runtime/os/throw.h"
#include "runtime/os/settings.h"
#include "runtime/os/poison.h"

struct arena arena;

enum {
	TABLE_LINES,
	TABLE_PAGEWORDS,
	TABLE_SPANS,
	TABLE_OVERFLOW,
	TABLE_TYPEBITS, // this and the next are reserved when first needed
	TABLE_DEADBITS,
	TABLES,
};
static_assert((int)TABLES == (int)ARENA_TABLES, "one place each");
static_assert((int)TABLE_OVERFLOW == (int)ARENA_MARKED_TABLES, "the others");

static const struct {
	const char *name;
	unsigned bits_per_page;
} tables[TABLES] = {
    [TABLE_LINES] = {"mark and alloc bits",
		     8 * RT_PAGE_WORDS * sizeof(struct linewords)},
    [TABLE_PAGEWORDS] = {"pagewords", 32},
    [TABLE_SPANS] = {"span table", 64},
    [TABLE_OVERFLOW] = {"mark overflow", 1},
    [TABLE_TYPEBITS] = {"type bits", RT_PAGE_SIZE / sizeof(uintptr_t)},
    [TABLE_DEADBITS] = {"bits of dead objects",
			8 * RT_PAGE_WORDS * sizeof(struct deadwords)},
};

#define SANITIZED_RANGE (UINT64_C(1) << 34)

size_t arena_table_bytes(unsigned i, uint64_t nchunks)
{
	return nchunks * RT_CHUNK_PAGES * tables[i].bits_per_page / 8;
}

static void tables_fini(unsigned n)
{
	while (n-- > 0)
		if (arena.table[n].base)
			systable_fini(&arena.table[n]);
}

// table_init reserves a table for a range of bytes.
static bool table_init(unsigned i, uint64_t bytes)
{
	return systable_init(&arena.table[i],
			     arena_table_bytes(i, bytes >> RT_CHUNK_SHIFT),
			     &gauges.gc_misc_sys, tables[i].name);
}

// range_init reserves bytes of address space and the tables for them.
static bool range_init(uint64_t bytes)
{
	char *base = sysmem_reserve(bytes, RT_ARENA_SIZE, "heap");
	unsigned i;

	if (!base)
		return false;
	for (i = 0; i < TABLE_TYPEBITS; i++)
		if (!table_init(i, bytes))
			goto fail;
	arena.base = (uintptr_t)base;
	arena.reserved = bytes;
	arena.lines = (struct linewords *)arena.table[TABLE_LINES].base;
	arena.pagewords = (atomic_u32 *)arena.table[TABLE_PAGEWORDS].base;
	arena.spans = (atomic_ptr *)arena.table[TABLE_SPANS].base;
	arena.overflow = (atomic_u64 *)arena.table[TABLE_OVERFLOW].base;
	RT_CHECK(arena_check(&arena));
	return true;
fail:
	tables_fini(i);
	sysmem_unreserve(base, bytes);
	return false;
}

bool arena_init(void)
{
	uint64_t bytes = settings()->max_heap;

	if (bytes == 0)
		bytes = RT_ASAN || RT_TSAN ? SANITIZED_RANGE : ARENA_MAX_RANGE;
	bytes = base_min(bytes, ARENA_MAX_RANGE);
	bytes = base_min(bytes, oscall_address_limit() / 2);
	bytes = base_align_down(bytes, RT_ARENA_SIZE);
	for (bytes = base_max(bytes, RT_ARENA_SIZE); bytes >= RT_ARENA_SIZE;
	     bytes = base_align_down(bytes / 2, RT_ARENA_SIZE))
		if (range_init(bytes))
			return true;
	return false;
}

void arena_fini(void)
{
	// The next mapping here may not be ours.
	if (poison_on)
		poison_unpoison((void *)arena.base, arena_used());
	tables_fini(TABLES);
	sysmem_unreserve((void *)arena.base, arena.reserved);
	arena = (struct arena){0};
}

static bool tables_grow(uint32_t nchunks)
{
	for (unsigned i = 0; i < TABLES; i++)
		if (arena.table[i].base &&
		    !systable_grow(&arena.table[i],
				   arena_table_bytes(i, nchunks)))
			return false;
	return true;
}

// add_table adds table i, whose field is base.
static bool add_table(unsigned i, atomic_ptr *base)
{
	struct systable *t = &arena.table[i];
	uint64_t nchunks = arena_prepared() >> RT_CHUNK_SHIFT;

	if (t->base)
		return true;
	if (!table_init(i, arena.reserved))
		return false;
	if (!systable_grow(t, arena_table_bytes(i, nchunks))) {
		systable_fini(t);
		return false;
	}
	// Pairs with the acquires in arena_release_tables.
	atomic_ptr_store_release(base, t->base);
	RT_CHECK(arena_check(&arena));
	return true;
}

bool arena_add_typebits(void)
{
	return add_table(TABLE_TYPEBITS, &arena.typebits);
}

bool arena_add_deadbits(void)
{
	return add_table(TABLE_DEADBITS, &arena.deadbits);
}

bool arena_prepare(uint32_t nchunks)
{
	uint64_t ready = arena_prepared();
	uint64_t bytes = (uint64_t)nchunks << RT_CHUNK_SHIFT;
	void *end = (void *)(arena.base + ready);

	if (bytes <= ready)
		return true;
	if (bytes > arena.reserved)
		return false;
	// Memory comes before tables, because it is at least twenty times as
	// large.  So a request that is too large is refused before the tables
	// grow.  Once grown, they would not shrink again.
	if (!sysmem_prepare(end, bytes - ready))
		return false;
	if (!tables_grow(nchunks)) {
		sysmem_unprepare(end, bytes - ready);
		return false;
	}
	// Pairs with the acquire in arena_prepared.
	atomic_u64_store_release(&arena.prepared, bytes);
	RT_CHECK(arena_check(&arena));
	return true;
}

// check_prefix checks what arena_grow changes and what it depends on.  It does
// not check the tables, because another thread may be adding one.
static const char *check_prefix(const struct arena *a)
{
	// used must be read first: it never passes prepared, but both may grow
	// meanwhile.  The loads pair with the releases in arena_grow and
	// arena_prepare.
	uint64_t used = atomic_u64_load_acquire(&a->used);
	uint64_t prepared = atomic_u64_load_acquire(&a->prepared);

	if (a->base == 0 || a->base % RT_ARENA_SIZE != 0)
		return "heap's range is not aligned";
	if (a->reserved == 0 || a->reserved % RT_ARENA_SIZE != 0)
		return "heap's range is not whole arenas";
	if (used % RT_CHUNK_SIZE != 0)
		return "heap is not whole chunks";
	if (used > prepared)
		return "heap is longer than its prepared part";
	if (prepared % RT_CHUNK_SIZE != 0 || prepared > a->reserved)
		return "heap is prepared beyond its range";
	return NULL;
}

void arena_grow(uint32_t nchunks)
{
	uint64_t used = atomic_u64_load_relaxed(&arena.used);
	uint64_t bytes = (uint64_t)nchunks << RT_CHUNK_SHIFT;

	if (bytes > arena_prepared())
		throw_value("arena_grow: not prepared", "nchunks", nchunks);
	gauge_add(&gauges.heap_mapped, (int64_t)(bytes - used));
	// Pairs with the acquire in arena_used.
	atomic_u64_store_release(&arena.used, bytes);
	RT_CHECK(check_prefix(&arena));
}

// check_pages checks that a range of pages is a part of the heap.
static const char *check_pages(uint64_t page, uint64_t npages)
{
	uint64_t end = arena_used() >> RT_PAGE_SHIFT;

	return npages == 0 || page >= end || npages > end - page
		   ? "span has pages outside of the heap"
		   : NULL;
}

// set_spans and set_pagewords enter the pages [from, to) of a span, counted
// from its first page, which is page.  first is the pageword of that page.
// Their releases pair with the acquires in arena_span and arena_pageword.
RT_INLINE void set_spans(uint64_t page, uint64_t from, uint64_t to,
			 struct mspan *s)
{
	atomic_ptr *of_page = arena.spans + page;

	for (uint64_t i = from; i < to; i++)
		atomic_ptr_store_release(&of_page[i], s);
}

RT_INLINE void set_pagewords(uint64_t page, uint64_t from, uint64_t to,
			     uint32_t first)
{
	atomic_u32 *of_page = arena.pagewords + page;

	for (uint64_t i = from; i < to; i++)
		atomic_u32_store_release(&of_page[i], pageword_at(first, i));
}

void arena_publish(uint64_t page, uint64_t npages, struct mspan *s,
		   unsigned sizeclass, unsigned kind, enum pageword_state state)
{
	RT_CHECK(check_pages(page, npages));
	set_spans(page, 0, npages, s);
	set_pagewords(page, 0, npages, pageword_make(sizeclass, kind, state));
}

void arena_extend(uint64_t page, uint64_t npages, uint64_t more,
		  struct mspan *s, uint32_t pageword)
{
	set_spans(page, npages, npages + more, s);
	set_pagewords(page, npages, npages + more, pageword);
}

void arena_set_state(uint64_t page, uint64_t npages, enum pageword_state state)
{
	uint32_t old = arena_pageword(page);

	RT_CHECK(check_pages(page, npages));
	set_pagewords(
	    page, 0, npages,
	    pageword_make(pageword_class(old), pageword_kind(old), state));
}

void arena_withdraw(uint64_t page, uint64_t npages)
{
	RT_CHECK(check_pages(page, npages));
	// These releases pair with the acquires in arena_pageword and
	// arena_span: a thread that finds no span finds no pageword either.
	for (uint64_t i = 0; i < npages; i++)
		atomic_u32_store_release(&arena.pagewords[page + i], 0);
	for (uint64_t i = 0; i < npages; i++)
		atomic_ptr_store_release(&arena.spans[page + i], NULL);
}

static bool release_table(unsigned i, uint32_t chunk)
{
	return sysmem_release_inside(arena.table[i].base +
					 arena_table_bytes(i, chunk),
				     arena_table_bytes(i, 1));
}

bool arena_release_tables(uint32_t chunk)
{
	// The pagewords keep their memory: those of protected pages are not 0.
	bool all = release_table(TABLE_LINES, chunk);

	all &= release_table(TABLE_SPANS, chunk);
	// Both acquires pair with the release in add_table, which another
	// thread may be running.
	if (atomic_ptr_load_acquire(&arena.typebits))
		all &= release_table(TABLE_TYPEBITS, chunk);
	if (atomic_ptr_load_acquire(&arena.deadbits))
		all &= release_table(TABLE_DEADBITS, chunk);
	return all;
}

// check_tables checks that the tables are those of the fields, and as long as
// the prepared prefix needs.
static const char *check_tables(const struct arena *a)
{
	uint64_t nchunks =
	    atomic_u64_load_relaxed(&a->prepared) >> RT_CHUNK_SHIFT;
	const void *base[] = {a->lines,
			      a->pagewords,
			      a->spans,
			      a->overflow,
			      atomic_ptr_load_relaxed(&a->typebits),
			      atomic_ptr_load_relaxed(&a->deadbits)};

	for (unsigned i = 0; i < TABLES; i++) {
		const char *wrong;

		if (i >= TABLE_TYPEBITS && !a->table[i].base) {
			if (base[i])
				return "bits beside the heap have no table";
			continue;
		}
		wrong = systable_check(&a->table[i]);
		if (wrong)
			return wrong;
		if (base[i] != a->table[i].base)
			return "table of the arena is not where its field says";
		if (systable_ready(&a->table[i]) <
		    arena_table_bytes(i, nchunks))
			return "table of the arena is too short";
	}
	return NULL;
}

const char *arena_check(const struct arena *a)
{
	const char *wrong = check_prefix(a);

	return wrong ? wrong : check_tables(a);
}
