// fuzz_pages.c - the page allocator against a plain array of pages.
//
// Each step is one call with any arguments that its contract allows.  The
// model finds free pages by looking at all of them from the first.
#include "test/fuzz/fuzz.h"

#include "runtime/pages/pagealloc.h"

enum {
	MAX_CHUNKS = 12, // more than one block of 8, not a multiple of it
	MAX_PAGES = MAX_CHUNKS * RT_CHUNK_PAGES,
	BLOCK = PAGEALLOC_BLOCK_PAGES,
	MAX_RANGES = 8,
	MAX_HELD = 4, // blocks that are taken and not yet flushed
};

struct page {
	bool used;
	bool scavenged;
};

static struct pagealloc pa;
static struct page pages[MAX_PAGES];
static uint32_t npages; // that exist
static struct pagealloc_block held[MAX_HELD];
static unsigned nheld;

static void grow(uint32_t nchunks)
{
	REQUIRE(pagealloc_reserve(&pa, nchunks));
	pagealloc_grow(&pa, nchunks);
	for (; npages < nchunks * RT_CHUNK_PAGES; npages++)
		pages[npages] = (struct page){.scavenged = true};
}

// first_fit returns the first of the lowest n free pages in a row.
static uint64_t first_fit(uint64_t n)
{
	uint64_t length = 0;

	for (uint32_t i = 0; i < npages; i++) {
		length = pages[i].used ? 0 : length + 1;
		if (length == n)
			return i + 1 - n;
	}
	return PAGEALLOC_NONE;
}

// use takes pages in the model and returns how many were scavenged.
static uint64_t use(uint64_t page, uint64_t n)
{
	uint64_t nscav = 0;

	for (uint64_t i = page; i < page + n; i++) {
		REQUIRE(!pages[i].used);
		nscav += pages[i].scavenged;
		pages[i] = (struct page){.used = true};
	}
	return nscav;
}

static void do_alloc(struct input *in)
{
	uint64_t n = 1 + input_below(in, input_u8(in) % 2 ? 16 : 1200);
	uint64_t nscav = 0, want = first_fit(n);

	REQUIRE(pagealloc_alloc(&pa, n, &nscav) == want);
	if (want != PAGEALLOC_NONE)
		REQUIRE(nscav == use(want, n));
}

// range_from returns how many pages from page on have its state, at most max.
static uint64_t range_from(uint64_t page, uint64_t max)
{
	uint64_t n = 1;

	while (n < max && page + n < npages &&
	       pages[page + n].used == pages[page].used)
		n++;
	return n;
}

// in_block tells whether a held block has taken a page, which then is not the
// host's to free.
static bool in_block(uint64_t page)
{
	for (unsigned i = 0; i < nheld; i++)
		if (page - held[i].base < BLOCK &&
		    (held[i].taken >> (page - held[i].base) & 1))
			return true;
	return false;
}

// choose finds a range of pages in use (or of free ones) that starts at a
// random page.
static bool choose(struct input *in, bool in_use, struct pagealloc_range *range)
{
	uint64_t page = input_below(in, npages);
	uint64_t n = range_from(page, 1 + input_below(in, 700));

	if (pages[page].used != in_use)
		return false;
	for (uint64_t i = 0; in_use && i < n; i++)
		if (in_block(page + i))
			n = i;
	*range = (struct pagealloc_range){page, n};
	return n > 0;
}

static void release(const struct pagealloc_range *range)
{
	for (uint64_t i = 0; i < range->npages; i++)
		pages[range->page + i] = (struct page){0};
}

static void do_alloc_range(struct input *in)
{
	struct pagealloc_range range;

	if (choose(in, false, &range))
		REQUIRE(pagealloc_alloc_range(&pa, range.page, range.npages) ==
			use(range.page, range.npages));
}

static void do_free(struct input *in)
{
	struct pagealloc_range range;

	if (!choose(in, true, &range))
		return;
	pagealloc_free(&pa, range.page, range.npages);
	release(&range);
}

static void do_free_ranges(struct input *in)
{
	struct pagealloc_range ranges[MAX_RANGES];
	unsigned tries = input_below(in, MAX_RANGES + 1), n = 0;

	for (unsigned i = 0; i < tries; i++)
		if (choose(in, true, &ranges[n]))
			release(&ranges[n++]);
	pagealloc_free_ranges(&pa, ranges, n);
}

static void do_set_scavenged(struct input *in)
{
	struct pagealloc_range range;

	if (!choose(in, false, &range))
		return;
	pagealloc_set_scavenged(&pa, range.page, range.npages);
	for (uint64_t i = 0; i < range.npages; i++)
		pages[range.page + i].scavenged = true;
}

// ---- blocks ----

// take sets *b to what a block at base holds, and returns which of its pages
// have memory.
static uint64_t take(uint64_t base, struct pagealloc_block *b)
{
	uint64_t some = 0;

	*b = (struct pagealloc_block){.base = base};
	for (unsigned i = 0; i < BLOCK; i++) {
		const struct page *p = &pages[base + i];

		b->taken |= (uint64_t)!p->used << i;
		b->scav |= (uint64_t)(!p->used && p->scavenged) << i;
		some |= (uint64_t)(!p->used && !p->scavenged) << i;
	}
	return some;
}

// fits tells whether the block has n free pages in a row.
static bool fits(const struct pagealloc_block *b, unsigned n)
{
	unsigned length = 0;

	for (unsigned i = 0; i < BLOCK && length < n; i++)
		length = b->taken >> i & 1 ? length + 1 : 0;
	return length == n;
}

static void hold(const struct pagealloc_block *b)
{
	for (unsigned i = 0; i < BLOCK; i++)
		if (b->taken >> i & 1)
			use(b->base + i, 1);
	held[nheld++] = *b;
}

static void do_take_block(struct input *in)
{
	unsigned n = 1 + input_below(in, 2) * input_below(in, BLOCK);
	uint64_t first = first_fit(n);
	struct pagealloc_block want, got = {1, 1, 1};

	if (nheld == MAX_HELD)
		return;
	if (first == PAGEALLOC_NONE || first % BLOCK + n > BLOCK) {
		REQUIRE(!pagealloc_take_block(&pa, n, &got));
		REQUIRE(got.taken == 0 && got.scav == 0);
		return;
	}
	take(base_align_down(first, BLOCK), &want);
	REQUIRE(pagealloc_take_block(&pa, n, &got));
	REQUIRE(memcmp(&got, &want, sizeof got) == 0);
	hold(&want);
}

static void do_retake_block(struct input *in)
{
	uint64_t base = base_align_down(input_below(in, npages), BLOCK);
	unsigned n = 1 + input_below(in, 2) * input_below(in, BLOCK);
	struct pagealloc_block want, got = {1, 1, 1};

	if (nheld == MAX_HELD)
		return;
	if (take(base, &want) == 0 || !fits(&want, n)) {
		REQUIRE(!pagealloc_retake_block(&pa, base, n, &got));
		REQUIRE(got.taken == 0 && got.scav == 0);
		return;
	}
	REQUIRE(pagealloc_retake_block(&pa, base, n, &got));
	REQUIRE(memcmp(&got, &want, sizeof got) == 0);
	hold(&want);
}

// Some pages of the block are freed, the others stay in use.
static void do_put_block(struct input *in)
{
	struct pagealloc_block b;

	if (nheld == 0)
		return;
	b = held[--nheld];
	b.taken &= input_uint(in, 8);
	b.scav &= b.taken;
	if (b.taken == 0)
		return;
	pagealloc_put_block(&pa, b.base, b.taken, b.scav);
	for (unsigned i = 0; i < BLOCK; i++)
		if (b.taken >> i & 1)
			pages[b.base + i] =
			    (struct page){.scavenged = b.scav >> i & 1};
}

static void do_grow(struct input *in)
{
	uint32_t nchunks = npages / RT_CHUNK_PAGES + input_below(in, 3);

	grow((uint32_t)base_min(nchunks, MAX_CHUNKS));
}

// compare looks at every page.
static void compare(struct input *in)
{
	uint64_t nfree = 0, nscav = 0;

	(void)in;
	for (uint32_t i = 0; i < npages; i++) {
		const struct pallocdata *d =
		    pagealloc_chunk(&pa, i / RT_CHUNK_PAGES);

		REQUIRE(pallocbits_get(&d->alloc, i % RT_CHUNK_PAGES) ==
			pages[i].used);
		REQUIRE(pallocbits_get(&d->scavenged, i % RT_CHUNK_PAGES) ==
			pages[i].scavenged);
		nfree += !pages[i].used;
		nscav += pages[i].scavenged;
	}
	REQUIRE(pagealloc_count_free(&pa) == nfree);
	REQUIRE(pagealloc_count_scavenged(&pa) == nscav);
	REQUIRE(pagealloc_check(&pa) == NULL);
}

static void (*const steps[])(struct input *) = {
    do_alloc,	   do_alloc,	    do_alloc_range, do_free,
    do_free,	   do_free_ranges,  do_grow,	    do_set_scavenged,
    do_take_block, do_retake_block, do_put_block,   compare,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};

	sysmem_init();
	npages = nheld = 0;
	REQUIRE(pagealloc_init(&pa, MAX_CHUNKS));
	grow(1);
	while (in.left > 0)
		steps[input_below(&in, RT_ARRAY_LEN(steps))](&in);
	compare(&in);
	pagealloc_fini(&pa);
	return 0;
}
