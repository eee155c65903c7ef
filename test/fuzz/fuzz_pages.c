// fuzz_pages.c - the page allocator against a naive one.
//
// Each step is one call with any arguments that its contract allows.
#include "test/fuzz/fuzz.h"

#include "test/harness/firstfit.h"

enum {
	MAX_CHUNKS = 12, // more than the 8 of a summary, and no multiple of 8
	BLOCK = PAGEALLOC_BLOCK_PAGES,
	MAX_RANGES = 8,
	MAX_HELD = 4, // blocks that are taken and not yet flushed
};

static struct pagealloc pa;
static struct pagealloc_block held[MAX_HELD];
static unsigned nheld;

static void grow(uint32_t nchunks)
{
	REQUIRE(pagealloc_reserve(&pa, nchunks));
	pagealloc_grow(&pa, nchunks);
	firstfit_grow(nchunks * RT_CHUNK_PAGES);
}

// use takes pages in the model, where they must be free, and returns how many
// of them were scavenged.
static uint64_t use(uint64_t page, uint64_t n)
{
	REQUIRE(firstfit_is_free(page, n));
	return firstfit_take(page, n);
}

static void do_alloc(struct input *in)
{
	uint64_t n = 1 + input_below(in, input_u8(in) % 2 ? 16 : 1200);
	uint64_t nscav = 0, want = firstfit_find(n);

	REQUIRE(pagealloc_alloc(&pa, n, &nscav) == want);
	if (want != PAGEALLOC_NONE)
		REQUIRE(nscav == use(want, n));
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
	uint64_t page = input_below(in, firstfit.npages);
	uint64_t n = firstfit_length(page, 1 + input_below(in, 700));

	if (firstfit_used(page) != in_use)
		return false;
	for (uint64_t i = 0; in_use && i < n; i++)
		if (in_block(page + i))
			n = i;
	*range = (struct pagealloc_range){page, n};
	return n > 0;
}

static void release(const struct pagealloc_range *range)
{
	firstfit_set(range->page, range->npages, FIRSTFIT_FREE);
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
	firstfit_set(range.page, range.npages, FIRSTFIT_SCAVENGED);
}

// ---- blocks ----

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
	firstfit_take_block(b);
	held[nheld++] = *b;
}

static void do_take_block(struct input *in)
{
	unsigned n = 1 + input_below(in, 2) * input_below(in, BLOCK);
	uint64_t first = firstfit_find(n);
	struct pagealloc_block want, got = {1, 1, 1};

	if (nheld == MAX_HELD)
		return;
	if (first == PAGEALLOC_NONE || first % BLOCK + n > BLOCK) {
		REQUIRE(!pagealloc_take_block(&pa, n, &got));
		REQUIRE(got.taken == 0 && got.scav == 0);
		return;
	}
	want = firstfit_block(base_align_down(first, BLOCK));
	REQUIRE(pagealloc_take_block(&pa, n, &got));
	REQUIRE(memcmp(&got, &want, sizeof got) == 0);
	hold(&want);
}

static void do_retake_block(struct input *in)
{
	uint64_t base =
	    base_align_down(input_below(in, firstfit.npages), BLOCK);
	unsigned n = 1 + input_below(in, 2) * input_below(in, BLOCK);
	struct pagealloc_block want, got = {1, 1, 1};

	if (nheld == MAX_HELD)
		return;
	want = firstfit_block(base);
	if (want.taken == want.scav || !fits(&want, n)) {
		REQUIRE(!pagealloc_retake_block(&pa, base, n, &got));
		REQUIRE(got.taken == 0 && got.scav == 0);
		return;
	}
	REQUIRE(pagealloc_retake_block(&pa, base, n, &got));
	REQUIRE(memcmp(&got, &want, sizeof got) == 0);
	hold(&want);
}

// Some pages of the block are freed, the others stay in use.
static void do_free_block(struct input *in)
{
	struct pagealloc_block b;

	if (nheld == 0)
		return;
	b = held[--nheld];
	b.taken &= input_uint(in, 8);
	b.scav &= b.taken;
	if (b.taken == 0)
		return;
	pagealloc_free_block(&pa, b.base, b.taken, b.scav);
	for (unsigned i = 0; i < BLOCK; i++)
		if (b.taken >> i & 1)
			firstfit_set(b.base + i, 1,
				     b.scav >> i & 1 ? FIRSTFIT_SCAVENGED
						     : FIRSTFIT_FREE);
}

static void do_grow(struct input *in)
{
	uint32_t nchunks =
	    firstfit.npages / RT_CHUNK_PAGES + input_below(in, 3);

	grow((uint32_t)base_min(nchunks, MAX_CHUNKS));
}

static void compare(struct input *in)
{
	(void)in;
	REQUIRE(firstfit_differs(&pa) == NULL);
}

static void (*const steps[])(struct input *) = {
    do_alloc,	   do_alloc,	    do_alloc_range, do_free,
    do_free,	   do_free_ranges,  do_grow,	    do_set_scavenged,
    do_take_block, do_retake_block, do_free_block,  compare,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};

	sysmem_init();
	firstfit.npages = nheld = 0;
	REQUIRE(pagealloc_init(&pa, MAX_CHUNKS));
	grow(1);
	while (in.left > 0)
		steps[input_below(&in, RT_ARRAY_LEN(steps))](&in);
	compare(&in);
	pagealloc_fini(&pa);
	return 0;
}
