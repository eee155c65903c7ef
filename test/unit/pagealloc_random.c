// The page allocator against a naive one: random operations, first fit.
#include "test/unit/pagealloc.h"

#include <string.h>

GROUP(large);

enum { MAX_CHUNKS = 130, MAX_PAGES = MAX_CHUNKS * CP, MAX_LIVE = 4096 };

struct workload {
	unsigned rounds, ops; // heaps, and operations on each
	uint32_t min_chunks;  // at the beginning
	uint32_t max_chunks;
	unsigned size_bits; // requests are below 2^size_bits pages
	unsigned small;	    // per cent of requests below 8 pages
};

// A million operations on heaps of pages, then whole chunks and more.
static const struct workload workloads[] = {
    {100, 10000, 1, 4, 10, 50},
    {10, 2000, 9, 24, 13, 10},
    {10, 1000, 20, MAX_CHUNKS, 15, 2},
};

static struct {
	char state[MAX_PAGES]; // FREE, SCAV or USED
	uint64_t npages;
	struct range live[MAX_LIVE]; // of USED pages
	unsigned nlive;
	unsigned wrong;
} naive;

enum { FREE, SCAV, USED };

static uint64_t naive_find(uint64_t npages)
{
	uint64_t length = 0;

	for (uint64_t p = 0; p < naive.npages; p++) {
		length = naive.state[p] == USED ? 0 : length + 1;
		if (length == npages)
			return p + 1 - npages;
	}
	return NONE;
}

// naive_take marks pages used and counts those that were scavenged.
static uint64_t naive_take(uint64_t page, uint64_t npages)
{
	uint64_t nscav = 0;

	for (uint64_t p = page; p < page + npages; p++) {
		nscav += naive.state[p] == SCAV;
		naive.state[p] = USED;
	}
	return nscav;
}

static void naive_grow(uint32_t nchunks)
{
	grow(nchunks);
	while (naive.npages < AT(nchunks, 0))
		naive.state[naive.npages++] = SCAV;
}

static void random_alloc(struct rng *r, const struct workload *w)
{
	uint64_t n =
	    1 + rng_below(r, UINT64_C(1) << rng_below(r, w->size_bits + 1));
	uint64_t nscav, page;

	if (rng_below(r, 100) < w->small)
		n = 1 + rng_below(r, 8);
	page = pagealloc_alloc(&pa, n, &nscav);
	naive.wrong += page != naive_find(n);
	if (page == NONE) {
		naive.wrong += nscav != 0;
		return;
	}
	naive.wrong += nscav != naive_take(page, n);
	naive.live[naive.nlive++] = (struct range){page, n};
}

static bool naive_is_free(uint64_t page, uint64_t npages)
{
	for (uint64_t p = page; p < page + npages; p++)
		if (p >= naive.npages || naive.state[p] == USED)
			return false;
	return true;
}

// random_aligned takes any range that is so aligned, if there is one.
static void random_aligned(struct rng *r, const struct workload *w)
{
	uint64_t align = UINT64_C(1) << rng_below(r, 9);
	uint64_t n =
	    1 + rng_below(r, UINT64_C(1) << rng_below(r, w->size_bits + 1));
	uint64_t nscav, any = 0;
	uint64_t page = pagealloc_alloc_aligned(&pa, n, align, &nscav);

	if (page != NONE) {
		naive.wrong += page % align != 0 || !naive_is_free(page, n);
		naive.wrong += nscav != naive_take(page, n);
		naive.live[naive.nlive++] = (struct range){page, n};
		return;
	}
	while (any < naive.npages && !naive_is_free(any, n))
		any += align;
	naive.wrong += any < naive.npages || nscav != 0;
}

// random_free frees a live range or a part of it.
static void random_free(struct rng *r)
{
	struct range *l = &naive.live[rng_below(r, naive.nlive)];
	struct range part = *l;

	if (rng_below(r, 4) == 0) {
		part.npages = 1 + rng_below(r, l->npages);
		if (rng_below(r, 2))
			part.page += l->npages - part.npages;
	}
	pagealloc_free(&pa, part.page, part.npages);
	memset(naive.state + part.page, FREE, part.npages);
	if (part.page == l->page)
		l->page += part.npages;
	l->npages -= part.npages;
	if (l->npages == 0)
		*l = naive.live[--naive.nlive];
}

// random_scavenge does what a scavenger does with free pages: it takes them by
// address, frees them, and marks them.
static void random_scavenge(struct rng *r)
{
	uint64_t page = rng_below(r, naive.npages), n = 0;
	uint64_t most = 1 + rng_below(r, 1024);
	uint64_t nscav;

	while (page + n < naive.npages && n < most &&
	       naive.state[page + n] != USED)
		n++;
	if (n == 0)
		return;
	nscav = pagealloc_alloc_range(&pa, page, n);
	naive.wrong += nscav != naive_take(page, n);
	pagealloc_free(&pa, page, n);
	pagealloc_set_scavenged(&pa, page, n);
	memset(naive.state + page, SCAV, n);
}

// random_block takes a block with some free pages in a row, and frees it now or
// never.
static void random_block(struct rng *r)
{
	unsigned n = rng_below(r, 2) ? 1 : 1 + (unsigned)rng_below(r, 64);
	uint64_t lowest = naive_find(n);
	bool inside = lowest != NONE && lowest % 64 + n <= 64;
	struct pagealloc_block b;

	naive.wrong += pagealloc_take_block(&pa, n, &b) != inside;
	if (!inside) {
		naive.wrong += (b.taken | b.scav) != 0;
		return;
	}
	naive.wrong += b.base != lowest / 64 * 64;
	for (unsigned i = 0; i < 64; i++) {
		char was = naive.state[b.base + i];

		naive.wrong += (b.taken >> i & 1) != (was != USED);
		naive.wrong += (b.scav >> i & 1) != (was == SCAV);
	}
	if (rng_below(r, 4) || naive.nlive + 64 > MAX_LIVE) {
		pagealloc_put_block(&pa, b.base, b.taken, b.scav);
		return;
	}
	for (unsigned i = 0; i < 64; i++)
		if (b.taken >> i & 1) {
			naive_take(b.base + i, 1);
			naive.live[naive.nlive++] =
			    (struct range){b.base + i, 1};
		}
}

static void random_op(struct rng *r, const struct workload *w, unsigned fill)
{
	uint64_t what = rng_below(r, 100);

	if (what == 0 && rng_below(r, 10) == 0 && pa.nchunks < w->max_chunks)
		naive_grow(pa.nchunks + 1);
	else if (what < 4)
		random_block(r);
	else if (what < 10)
		random_scavenge(r);
	else if (what == 10)
		scavindex_next_cycle(&pa.scav);
	else if (naive.nlive > 0 &&
		 (rng_below(r, 100) >= fill || naive.nlive == MAX_LIVE))
		random_free(r);
	else if (rng_below(r, 8) == 0)
		random_aligned(r, w);
	else
		random_alloc(r, w);
}

static void compare_pages(void)
{
	for (uint64_t p = 0; p < naive.npages; p++) {
		naive.wrong += page_is_alloc(p) != (naive.state[p] == USED);
		naive.wrong += page_is_scav(p) != (naive.state[p] == SCAV);
	}
	naive.wrong += pagealloc_check(&pa) != NULL;
}

// Full and empty phases take turns.
TEST(random_operations_agree_with_first_fit, .n = RT_ARRAY_LEN(workloads))
{
	const struct workload *w = &workloads[_i];
	struct rng r;

	rng_init(&r, "random_operations_agree_with_first_fit");
	for (unsigned round = 0; round < w->rounds; round++) {
		memset(&naive, 0, sizeof(naive));
		start(0, w->max_chunks);
		naive_grow(
		    w->min_chunks +
		    (uint32_t)rng_below(&r, w->max_chunks - w->min_chunks + 1));
		for (unsigned op = 0; op < w->ops; op++) {
			random_op(&r, w, op * 5 / w->ops % 2 ? 35 : 70);
			if (op % 1000 == 0)
				compare_pages();
		}
		compare_pages();
		ck_assert_uint_eq(naive.wrong, 0);
		finish();
	}
}
