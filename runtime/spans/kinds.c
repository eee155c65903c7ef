// The set of kinds that exist.
#include "runtime/spans/kinds.h"

struct kinds kinds;

void kinds_init(void)
{
	atomic_u32_store_relaxed(&kinds.mask,
				 1u << KIND_NOSCAN | 1u << KIND_WORDS);
	atomic_u32_store_relaxed(&kinds.used, kinds_mask());
}

void kinds_add(unsigned kind)
{
	atomic_u32_store_release(&kinds.mask, kinds_mask() | UINT32_C(1)
								 << kind);
}

void kinds_remove(unsigned kind)
{
	atomic_u32_store_release(&kinds.mask,
				 kinds_mask() & ~(UINT32_C(1) << kind));
	atomic_u32_and_seqcst(&kinds.used, ~(UINT32_C(1) << kind));
}

void kinds_note(unsigned kind)
{
	atomic_u32_or_seqcst(&kinds.used, UINT32_C(1) << kind);
}
