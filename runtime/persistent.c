#include "runtime/persistent.h"

#include "runtime/lock.h"
#include "runtime/throw.h"

// One mapping, remembered for persistent_fini.  A chunk's record is its first
// words, that of a direct mapping is carved from a chunk.
struct mapping {
	struct mapping *next;
	void *base;
	size_t size; // bytes mapped
};

static struct {
	struct rt_mutex lock;	  // protects the rest
	struct mapping *mappings; // newest first
	uintptr_t next;		  // first free byte of the current chunk
	uintptr_t limit;	  // its end
} persistent = {.lock = RT_MUTEX_INIT(LOCKRANK_PERSISTENT)};

static_assert(PERSISTENT_DIRECT + PERSISTENT_MAX_ALIGN +
		      sizeof(struct mapping) <=
		  PERSISTENT_CHUNK,
	      "a new chunk has room for what is not mapped directly");

static void remember(struct mapping *m, void *base, size_t size)
{
	*m = (struct mapping){persistent.mappings, base, size};
	persistent.mappings = m;
}

// new_chunk replaces the current chunk; what was left of it stays unused and
// in other_sys, as the records do.
static bool new_chunk(void)
{
	struct mapping *m =
	    sysmem_alloc(PERSISTENT_CHUNK, &gauges.other_sys, "persistent");
	if (!m)
		return false;
	remember(m, m, PERSISTENT_CHUNK);
	persistent.next = (uintptr_t)(m + 1);
	persistent.limit = (uintptr_t)m + PERSISTENT_CHUNK;
	return true;
}

// carve returns n bytes, less than PERSISTENT_DIRECT, that are still counted
// in other_sys; NULL when a chunk is needed and refused.
static void *carve(size_t n, size_t align)
{
	uintptr_t p = base_align_up(persistent.next, align);

	if (p + n > persistent.limit) {
		if (!new_chunk())
			return NULL;
		p = base_align_up(persistent.next, align);
	}
	persistent.next = p + n;
	return (void *)p;
}

static void *alloc_small(size_t n, size_t align, atomic_u64 *stat)
{
	void *p = carve(n, align);

	if (p) { // the two cancel where the user is other_sys itself
		gauge_add(stat, (int64_t)n);
		gauge_add(&gauges.other_sys, -(int64_t)n);
	}
	return p;
}

// alloc_direct maps before it carves the record, so that a refusal of either
// leaves everything as it was.  What a mapping is aligned to is enough.
static void *alloc_direct(size_t n, atomic_u64 *stat)
{
	void *p = sysmem_alloc(n, stat, "persistent");
	if (!p)
		return NULL;

	struct mapping *m = carve(sizeof(*m), _Alignof(struct mapping));
	if (!m) {
		sysmem_free(p, n, stat);
		return NULL;
	}
	remember(m, p, sysmem_round(n));
	return p;
}

// The system is called with the lock held: it is a leaf, calls are rare, and
// no thread can find that another mapped a chunk in the meantime.
void *persistent_alloc(size_t n, size_t align, atomic_u64 *stat)
{
	void *p;

	if (n == 0)
		rt_throw("persistent_alloc: no size");
	if (!base_is_pow2(align) || align > PERSISTENT_MAX_ALIGN)
		rt_throw_value("persistent_alloc: bad alignment", "align",
			       align);
	rt_lock(&persistent.lock);
	if (n >= PERSISTENT_DIRECT)
		p = alloc_direct(n, stat);
	else
		p = alloc_small(n, align, stat);
	rt_unlock(&persistent.lock);
	return p;
}

void persistent_fini(void)
{
	rt_lock(&persistent.lock);
	// A record is remembered after the chunk that holds it, so from the
	// newest on none is read after its chunk is gone.
	for (struct mapping *m = persistent.mappings, *next; m; m = next) {
		next = m->next;
		sysmem_unreserve(m->base, m->size);
	}
	persistent.mappings = NULL;
	persistent.next = 0;
	persistent.limit = 0;
	rt_unlock(&persistent.lock);
}
