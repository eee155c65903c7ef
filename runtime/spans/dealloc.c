// Checks that an object begins at an address, and lists its slot as free.
#include "runtime/spans/dealloc.h"

#include "runtime/os/throw.h"
#include "runtime/spans/kinds.h"

// in_run tells whether p lies in the part of the slot's run from which no
// object was allocated yet.
static bool in_run(const struct mcache_slot *slot, const void *p)
{
	const struct rt_run *run = slot->run;

	return (const char *)p >= run->start && (const char *)p < run->cur;
}

// in_own_run tells whether p lies in that part of the slot's run, or of the run
// of the slot for uninit if there is one.
static bool in_own_run(struct rt_mcache *mc, struct mcache_slot *slot,
		       const void *p)
{
	return in_run(slot, p) || in_run(mcache_slot_uninit(mc, slot), p);
}

static bool list_own(struct rt_mcache *mc, struct mcache_slot *slot, void *p)
{
	if (in_own_run(mc, slot, p) ||
	    !freelist_push(&slot->freed, slot->sc, p, slot->size))
		return false;
	mcache_note_freed(mc, spanclass_kind(slot->sc));
	return true;
}

// list_shared lists p for a thread that has no memory for slots of the kind.
static RT_NOINLINE bool list_shared(spanclass sc, void *p)
{
	struct freelist l = {0};

	if (!freelist_push(&l, sc, p, sizeclass_table[spanclass_size(sc)].size))
		return false;
	freelist_share(&l, sc);
	return true;
}

bool dealloc_object(struct rt_mcache *mc, spanclass sc, void *p)
{
	struct mcache_slot *slot = mcache_slot_of(mc, sc, false);

	RT_ASSERT(arena_offset((uintptr_t)p) < arena_used() &&
		  (!slot || slot->sc == sc));
	if (RT_LIKELY(slot != NULL) ? !list_own(mc, slot, p)
				    : !list_shared(sc, p))
		return false;
	// If no allocation takes slots of this class from a list, the bytes are
	// subtracted when free_listed frees the slots.  Until then they count
	// towards the next collection.
	if (!freelist_is_used(sc))
		return true;
	mc->live -= sizeclass_table[spanclass_size(sc)].size;
	if (mc->live <= -MCACHE_LIVE_BATCH)
		mcache_publish_live(mc);
	return true;
}

bool dealloc_was_freed(struct rt_mcache *mc, spanclass sc, const void *p)
{
	// A thread without slots of the kind has no run of it either.
	struct mcache_slot *slot = mcache_slot_present(mc, sc);

	return (slot && in_own_run(mc, slot, p)) || freelist_holds(p);
}

// is_object tells whether an object of a class, neither 0 nor 1, begins at p,
// in the page with this pageword.  If the caller owns the object, nothing on
// which the answer depends changes meanwhile.  Otherwise the answer may be
// wrong.
RT_INLINE bool is_object(uintptr_t p, uint32_t pageword, unsigned class)
{
	const struct sizeclass *c = &sizeclass_table[class];
	uint64_t first =
	    arena_first_page(arena_offset(p) >> RT_PAGE_SHIFT, pageword);
	uint64_t offset = p - arena_page_address(first);
	uint64_t slot = offset * c->divmagic >> 32;
	unsigned bit = sizeclass_bit(class, offset);
	unsigned line = epoch_alloc_line(epoch_sweepgen());

	return slot * c->size == offset && slot < c->nelems &&
	       atomic_u64_load_relaxed(
		   &arena_lines(first)[bit / 64].line[line]) >>
		       (bit % 64) &
		   1;
}

// own_slot returns the P's slot of a class and kind.  Allocations take from the
// list of freed slots of that slot.  Returns NULL if they do not, if there is
// no slot yet, or if objects of the kind need a closer look.
RT_INLINE struct mcache_slot *own_slot(struct rt_mcache *mc, unsigned class,
				       unsigned kind)
{
	struct mcache_kind *k;

	if (kind < KIND_TYPED)
		return &mc->slots[spanclass_make(class, kind)];
	// An object of a kind with destructors may be dead.
	k = kind != KIND_TYPED && !(kinds_drops() >> kind & 1)
		? mcache_kind_of(mc, kind)
		: NULL;
	return k ? &k->slots[class] : NULL;
}

// may_list tells whether p can be listed without a call.  A function without
// calls need not save registers.
RT_INLINE bool may_list(const struct rt_mcache *mc,
			const struct mcache_slot *slot, const void *p)
{
	return slot->freed.n != FREELIST_MOST &&
	       mc->live > -MCACHE_LIVE_BATCH && !in_run(slot, p);
}

bool dealloc_plain(struct rt_mcache *mc, void *p)
{
	uint64_t offset = arena_offset((uintptr_t)p);
	struct mcache_slot *slot;
	unsigned class, kind;
	uint32_t pageword;

	if (offset >= arena_used() || RT_UNLIKELY(freelist_careful))
		return false;
	pageword = arena_pageword(offset >> RT_PAGE_SHIFT);
	class = pageword_class(pageword);
	kind = pageword_kind(pageword);
	// The second condition excludes large objects, objects that are too
	// small for a list, and tiny blocks.
	if (pageword_state(pageword) != PAGEWORD_HEAP ||
	    class < SIZECLASS_TINY + (kind == KIND_NOSCAN) ||
	    !is_object((uintptr_t)p, pageword, class))
		return false;
	// The slot for uninit is slot + SPANCLASS_BASE.  mcache_slot_uninit
	// would take one load more to find it.
	slot = own_slot(mc, class, kind);
	if (!slot || !may_list(mc, slot, p) ||
	    (kind == KIND_NOSCAN && class < RT_RUN_CLASSES &&
	     in_run(slot + SPANCLASS_BASE, p)) ||
	    !freelist_add(&slot->freed, p))
		return false;
	mcache_note_freed(mc, kind);
	mc->live -= slot->size;
	return true;
}
