// Permanent memory, cut from regions of address space.
#include "runtime/os/persistent.h"

#include "runtime/os/throw.h"

// More than one mapping can have.  Sums with it do not wrap.
#define SIZE_LIMIT (UINT64_C(1) << 48)

struct persistent persistent = {.lock = RT_MUTEX_INIT(LOCKRANK_PERSISTENT)};

void persistent_init(size_t region)
{
	persistent.wish = sysmem_round(region);
}

// ---- regions ----

// make_usable extends the prefix by n bytes, whole physical pages.
static bool make_usable(size_t n)
{
	if (!sysmem_map((void *)persistent.ready, n, &gauges.other_sys))
		return false;
	sysmem_used(n);
	persistent.ready += n;
	persistent.usable += n;
	return true;
}

// extend makes memory up to end usable, and some beyond it if the system grants
// that.  end must be in the region.
static bool extend(uintptr_t end)
{
	size_t need = sysmem_round(end - persistent.ready);
	size_t step = base_max(persistent.usable / 8, PERSISTENT_STEP_MIN);

	step = sysmem_round(base_min(step, PERSISTENT_STEP_MAX));
	step = base_min(step, persistent.limit - persistent.ready);
	return (step > need && make_usable(step)) || make_usable(need);
}

// reserve reserves as much address space as wished, or less if the system
// refuses, down to n bytes.  It sets *size to the bytes reserved.
static char *reserve(size_t n, size_t *size)
{
	size_t wish =
	    persistent.wish != 0 ? persistent.wish : PERSISTENT_REGION;

	for (*size = base_max(wish, n);; *size = base_max(*size / 2, n)) {
		char *p;

		*size = sysmem_round(*size);
		p = sysmem_reserve(*size, 1, "persistent");
		if (p || *size <= sysmem_round(n))
			return p;
	}
}

// new_region replaces the current region by one that holds n bytes.  The rest
// of the old one stays unused, and its usable part stays counted in other_sys,
// as the record of each region does.
static bool new_region(size_t n)
{
	uintptr_t next = persistent.next, ready = persistent.ready,
		  limit = persistent.limit;
	size_t size;
	struct persistent_region *r;
	char *p = reserve(n, &size);

	if (!p)
		return false;
	persistent.ready = (uintptr_t)p;
	persistent.limit = (uintptr_t)p + size;
	if (!extend((uintptr_t)p + n)) {
		sysmem_unreserve(p, size);
		persistent.next = next;
		persistent.ready = ready;
		persistent.limit = limit;
		return false;
	}
	r = (struct persistent_region *)p;
	*r = (struct persistent_region){persistent.regions, size};
	persistent.regions = r;
	persistent.next = (uintptr_t)(r + 1);
	persistent.wish = 0; // later ones have the default size
	RT_CHECK(persistent_check(&persistent));
	return true;
}

// carve returns n bytes that are still counted in other_sys.  Returns NULL if
// the system refuses memory for them.
static void *carve(size_t n, size_t align)
{
	uintptr_t p = base_align_up(persistent.next, align);

	if (p + n > persistent.limit) {
		if (!new_region(n + sizeof(struct persistent_region) + align))
			return NULL;
		p = base_align_up(persistent.next, align);
	}
	if (p + n > persistent.ready && !extend(p + n))
		return NULL;
	persistent.next = p + n;
	return (void *)p;
}

// check_carved checks the region that is carved.
static const char *check_carved(const struct persistent *p)
{
	if (p->regions && p->limit != (uintptr_t)p->regions + p->regions->size)
		return "permanent memory is not carved from the newest region";
	if (p->next > p->ready)
		return "permanent memory was handed out before it was usable";
	if (p->ready > p->limit)
		return "permanent memory is usable beyond its region";
	return NULL;
}

// ---- the public functions ----

// The lock is held during system calls, so no other thread extends the prefix
// in the meantime.  The calls are rare, and no other lock is taken inside it.
void *persistent_alloc(size_t n, size_t align, atomic_u64 *stat)
{
	void *p;

	if (n == 0)
		throw_fatal("persistent_alloc: no size");
	if (!base_is_pow2(align) || align > PERSISTENT_MAX_ALIGN)
		throw_value("persistent_alloc: bad alignment", "align", align);
	if (n > SIZE_LIMIT)
		return NULL;
	mutex_lock(&persistent.lock);
	p = carve(n, align);
	RT_CHECK(check_carved(&persistent));
	mutex_unlock(&persistent.lock);
	if (p) { // the two cancel out if stat is other_sys
		gauge_add(stat, (int64_t)n);
		gauge_add(&gauges.other_sys, -(int64_t)n);
	}
	return p;
}

void persistent_fini(void)
{
	mutex_lock(&persistent.lock);
	for (struct persistent_region *r = persistent.regions, *next; r;
	     r = next) {
		next = r->next;
		sysmem_unreserve(r, r->size);
	}
	persistent.regions = NULL;
	persistent.wish = 0;
	persistent.usable = 0;
	persistent.next = persistent.ready = persistent.limit = 0;
	mutex_unlock(&persistent.lock);
}

// ---- invariants ----

const char *persistent_check(const struct persistent *p)
{
	const char *wrong = mutex_check(&p->lock);
	size_t reserved = 0;

	if (wrong)
		return wrong;
	for (const struct persistent_region *r = p->regions; r; r = r->next)
		reserved += r->size;
	if (p->usable > reserved)
		return "permanent memory is larger than its regions";
	return check_carved(p);
}
