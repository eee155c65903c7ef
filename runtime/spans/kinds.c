// The set of kinds that exist.
#include "runtime/spans/kinds.h"

#include "runtime/os/throw.h"
#include "runtime/world/stw.h"

struct kinds kinds;

void kinds_init(void)
{
	atomic_u32_store_relaxed(&kinds.mask,
				 1u << KIND_NOSCAN | 1u << KIND_WORDS);
	atomic_u32_store_relaxed(&kinds.used, kinds_mask());
	atomic_u32_store_relaxed(&kinds.drops, 0);
}

void kinds_add(unsigned kind, bool drops)
{
	if (drops)
		atomic_u32_store_relaxed(&kinds.drops,
					 kinds_drops() | UINT32_C(1) << kind);
	// Pairs with the acquire in kinds_mask.
	atomic_u32_store_release(&kinds.mask, kinds_mask() | UINT32_C(1)
								 << kind);
	RT_CHECK(kinds_check(&kinds));
}

void kinds_remove(unsigned kind)
{
	RT_ASSERT(stw_stopped());
	// Pairs with the acquire in kinds_mask: a thread that finds one of the
	// other kinds in this value also finds its layout.
	atomic_u32_store_release(&kinds.mask,
				 kinds_mask() & ~(UINT32_C(1) << kind));
	atomic_u32_and_seqcst(&kinds.used, ~(UINT32_C(1) << kind));
	atomic_u32_store_relaxed(&kinds.drops,
				 kinds_drops() & ~(UINT32_C(1) << kind));
	RT_CHECK(kinds_check(&kinds));
}

void kinds_note(unsigned kind)
{
	// The release half pairs with the acquire in kinds_check.
	atomic_u32_or_seqcst(&kinds.used, UINT32_C(1) << kind);
}

const char *kinds_check(const struct kinds *k)
{
	// used must be read before mask, because a thread notes a kind only
	// after it has found the kind in mask.  Pairs with the release half of
	// the step in kinds_note.
	uint32_t used = atomic_u32_load_acquire(&k->used);
	uint32_t mask = atomic_u32_load_acquire(&k->mask);
	uint32_t fixed = 1u << KIND_NOSCAN | 1u << KIND_WORDS;
	uint32_t host = (UINT32_C(1) << KIND_OWN) - (UINT32_C(1) << KIND_HOST);

	if ((mask & fixed) != fixed)
		return "one of the fixed kinds does not exist";
	if (mask >> KIND_COUNT != 0)
		return "kind beyond the last exists";
	if ((used & ~mask) != 0)
		return "kind may have spans but does not exist";
	if ((atomic_u32_load_relaxed(&k->drops) & ~host) != 0)
		return "kind of the library's has destructors";
	return NULL;
}
