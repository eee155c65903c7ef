// The page allocator against a naive one: random operations, first fit.
#include "test/harness/firstfit.h"
#include "test/unit/pagealloc.h"

GROUP(large);

enum { MAX_CHUNKS = FIRSTFIT_MAX / CP, MAX_LIVE = 4096 };

struct workload {
	unsigned rounds, ops; // heaps, and operations on each
	uint32_t min_chunks;  // at the beginning
	uint32_t max_chunks;
	unsigned size_bits; // requests are below 2^size_bits pages
	unsigned small;	    // per cent of requests below 8 pages
};

// The first makes a million operations on small heaps, half of the requests for
// few pages.  The others ask for whole chunks and more.
static const struct workload workloads[] = {
    {100, 10000, 1, 4, 10, 50},
    {10, 2000, 9, 24, 13, 10},
    {10, 1000, 20, MAX_CHUNKS, 15, 2},
};

static struct range live[MAX_LIVE]; // of used pages
static unsigned nlive;
static unsigned wrong;

static void grow_both(uint32_t nchunks)
{
	grow(nchunks);
	firstfit_grow(AT(nchunks, 0));
}

static void random_alloc(struct rng *r, const struct workload *w)
{
	uint64_t n =
	    1 + rng_below(r, UINT64_C(1) << rng_below(r, w->size_bits + 1));
	uint64_t nscav, page;

	if (rng_below(r, 100) < w->small)
		n = 1 + rng_below(r, 8);
	page = pagealloc_alloc(&pa, n, &nscav);
	wrong += page != firstfit_find(n);
	if (page == NONE) {
		wrong += nscav != 0;
		return;
	}
	wrong += nscav != firstfit_take(page, n);
	live[nlive++] = (struct range){page, n};
}

// random_aligned takes a range with a random alignment, if there is one.
static void random_aligned(struct rng *r, const struct workload *w)
{
	uint64_t align = UINT64_C(1) << rng_below(r, 9);
	uint64_t n =
	    1 + rng_below(r, UINT64_C(1) << rng_below(r, w->size_bits + 1));
	uint64_t nscav, any = 0;
	uint64_t page = pagealloc_alloc_aligned(&pa, n, align, &nscav);

	if (page != NONE) {
		wrong += page % align != 0 || !firstfit_is_free(page, n);
		wrong += nscav != firstfit_take(page, n);
		live[nlive++] = (struct range){page, n};
		return;
	}
	while (any < firstfit.npages && !firstfit_is_free(any, n))
		any += align;
	wrong += any < firstfit.npages || nscav != 0;
}

// random_free frees a live range or a part of it.
static void random_free(struct rng *r)
{
	struct range *l = &live[rng_below(r, nlive)];
	struct range part = *l;

	if (rng_below(r, 4) == 0) {
		part.npages = 1 + rng_below(r, l->npages);
		if (rng_below(r, 2))
			part.page += l->npages - part.npages;
	}
	pagealloc_free(&pa, part.page, part.npages);
	firstfit_set(part.page, part.npages, FIRSTFIT_FREE);
	if (part.page == l->page)
		l->page += part.npages;
	l->npages -= part.npages;
	if (l->npages == 0)
		*l = live[--nlive];
}

// random_scavenge does what a scavenger does with free pages: it takes them by
// address, frees them, and marks them.
static void random_scavenge(struct rng *r)
{
	uint64_t page = rng_below(r, firstfit.npages);
	uint64_t n = firstfit_length(page, 1 + rng_below(r, 1024));
	uint64_t nscav;

	if (firstfit_used(page))
		return;
	nscav = pagealloc_alloc_range(&pa, page, n);
	wrong += nscav != firstfit_take(page, n);
	pagealloc_free(&pa, page, n);
	pagealloc_set_scavenged(&pa, page, n);
	firstfit_set(page, n, FIRSTFIT_SCAVENGED);
}

// random_block takes a block with some free pages in a row, and frees it at
// once, or makes its pages live.
static void random_block(struct rng *r)
{
	unsigned n = rng_below(r, 2) ? 1 : 1 + (unsigned)rng_below(r, 64);
	uint64_t lowest = firstfit_find(n);
	bool inside = lowest != NONE && lowest % 64 + n <= 64;
	struct pagealloc_block b, want;

	wrong += pagealloc_take_block(&pa, n, &b) != inside;
	if (!inside) {
		wrong += (b.taken | b.scav) != 0;
		return;
	}
	want = firstfit_block(lowest / 64 * 64);
	wrong += memcmp(&b, &want, sizeof b) != 0;
	if (rng_below(r, 4) || nlive + 64 > MAX_LIVE) {
		pagealloc_free_block(&pa, b.base, b.taken, b.scav);
		return;
	}
	firstfit_take_block(&b);
	for (unsigned i = 0; i < 64; i++)
		if (b.taken >> i & 1)
			live[nlive++] = (struct range){b.base + i, 1};
}

static void random_op(struct rng *r, const struct workload *w, unsigned fill)
{
	uint64_t what = rng_below(r, 100);

	if (what == 0 && rng_below(r, 10) == 0 && pa.nchunks < w->max_chunks)
		grow_both(pa.nchunks + 1);
	else if (what < 4)
		random_block(r);
	else if (what < 10)
		random_scavenge(r);
	else if (what == 10)
		scavindex_next_cycle(&pa.scav);
	else if (nlive > 0 && (rng_below(r, 100) >= fill || nlive == MAX_LIVE))
		random_free(r);
	else if (rng_below(r, 8) == 0)
		random_aligned(r, w);
	else
		random_alloc(r, w);
}

static void expect_same(void)
{
	const char *difference = firstfit_differs(&pa);

	ck_assert_msg(!difference, "%s", difference);
	ck_assert_uint_eq(wrong, 0);
}

// Full and empty phases take turns.
TEST(random_operations_agree_with_first_fit, .n = RT_ARRAY_LEN(workloads))
{
	const struct workload *w = &workloads[_i];
	struct rng r;

	rng_init(&r, "random_operations_agree_with_first_fit");
	for (unsigned round = 0; round < w->rounds; round++) {
		firstfit.npages = nlive = 0;
		start(0, w->max_chunks);
		grow_both(
		    w->min_chunks +
		    (uint32_t)rng_below(&r, w->max_chunks - w->min_chunks + 1));
		for (unsigned op = 0; op < w->ops; op++) {
			random_op(&r, w, op * 5 / w->ops % 2 ? 35 : 70);
			if (op % 1000 == 0)
				expect_same();
		}
		expect_same();
		finish();
	}
}
