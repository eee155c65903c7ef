// Blocks of one size, cut from regions of address space.
#include "runtime/os/slab.h"

#include "runtime/base/bits.h"
#include "runtime/os/throw.h"

static size_t block_size(const struct slab *s)
{
	return sysmem_round(s->size);
}

static bool is_free(const struct slab_region *r, size_t i)
{
	return r->free[i / 64] >> (i % 64) & 1;
}

// check_fields checks all of a region but its blocks.
static const char *check_fields(const struct slab_region *r)
{
	if (!r->base)
		return "region of a slab has no memory";
	if (r->nblocks == 0 || r->nblocks % 64 != 0)
		return "region of a slab has a number of blocks that 64 does "
		       "not divide";
	if (r->ready > r->nblocks)
		return "region of a slab has more blocks ready than blocks";
	return NULL;
}

// check_block checks that a block that was never taken is free.
static const char *check_block(const struct slab_region *r, size_t i)
{
	return i >= r->ready && !is_free(r, i)
		   ? "block of a slab is taken but not ready"
		   : NULL;
}

// check_taken checks a block that is about to be freed.
static const char *check_taken(const struct slab_region *r, size_t i)
{
	if (is_free(r, i))
		return "block of a slab is freed twice";
	return check_block(r, i);
}

// region_new makes a region in which every block is free.
static struct slab_region *region_new(struct slab *s)
{
	size_t n = base_max(s->nblocks, SLAB_FIRST);
	size_t record = sizeof(struct slab_region) + n / 8;
	char *base = sysmem_reserve(n * block_size(s), 1, s->name);
	struct slab_region *r;

	if (!base)
		return NULL;
	r = persistent_alloc(record, 8, &gauges.other_sys);
	if (!r) {
		sysmem_unreserve(base, n * block_size(s));
		return NULL;
	}
	*r = (struct slab_region){
	    .next = s->regions, .base = base, .nblocks = n};
	for (size_t w = 0; w < n / 64; w++)
		r->free[w] = ~UINT64_C(0);
	s->regions = r;
	s->nblocks += n;
	RT_CHECK(slab_check(s));
	return r;
}

// first_free returns the index of the first free block, nblocks if there is
// none.
static size_t first_free(const struct slab_region *r)
{
	for (size_t w = 0; w < r->nblocks / 64; w++)
		if (r->free[w] != 0)
			return w * 64 + bits_ctz(r->free[w]);
	return r->nblocks;
}

// make_usable makes block i usable and counts it.  A block that was taken
// before is still mapped.  slab_alloc takes the first free block.  So a block
// that was never taken follows directly after those that were.
static bool make_usable(struct slab *s, struct slab_region *r, size_t i)
{
	size_t size = block_size(s);

	if (i < r->ready) {
		gauge_add(s->stat, (int64_t)size);
	} else {
		if (!sysmem_map(r->base + i * size, size, s->stat))
			return false;
		r->ready = i + 1;
	}
	sysmem_used(size);
	return true;
}

void *slab_alloc(struct slab *s)
{
	struct slab_region *r = s->regions;
	size_t i;

	while (r && first_free(r) == r->nblocks)
		r = r->next;
	if (!r)
		r = region_new(s);
	if (!r)
		return NULL;
	i = first_free(r);
	if (!make_usable(s, r, i))
		return NULL;
	r->free[i / 64] &= ~(UINT64_C(1) << (i % 64));
	RT_CHECK(check_fields(r));
	RT_CHECK(check_block(r, i));
	return r->base + i * block_size(s);
}

static struct slab_region *region_of(const struct slab *s, const char *block)
{
	struct slab_region *r = s->regions;

	while (r && (size_t)(block - r->base) >= r->nblocks * block_size(s))
		r = r->next;
	if (!r)
		throw_value("slab_free: no block", "p", (uintptr_t)block);
	return r;
}

bool slab_free(struct slab *s, void *block)
{
	struct slab_region *r = region_of(s, block);
	size_t i = (size_t)((char *)block - r->base) / block_size(s);

	RT_CHECK(check_taken(r, i));
	if (!sysmem_release(block, block_size(s)))
		return false;
	gauge_add(s->stat, -(int64_t)block_size(s));
	r->free[i / 64] |= UINT64_C(1) << (i % 64);
	return true;
}

void slab_fini(struct slab *s)
{
	for (struct slab_region *r = s->regions; r; r = r->next)
		sysmem_unreserve(r->base, r->nblocks * block_size(s));
	s->regions = NULL;
	s->nblocks = 0;
}

// check_region checks one region and its blocks.
static const char *check_region(const struct slab_region *r)
{
	const char *wrong = check_fields(r);

	for (size_t i = r->ready; i < r->nblocks && !wrong; i++)
		wrong = check_block(r, i);
	return wrong;
}

const char *slab_check(const struct slab *s)
{
	size_t left = s->nblocks;

	if (s->size == 0)
		return "slab has the size 0";
	if (!s->stat)
		return "slab has no gauge";
	for (const struct slab_region *r = s->regions; r; r = r->next) {
		const char *wrong = check_region(r);

		if (wrong)
			return wrong;
		if (r->nblocks > left)
			return "slab counts fewer blocks than its regions have";
		left -= r->nblocks;
	}
	return left != 0 ? "slab counts more blocks than its regions have"
			 : NULL;
}
