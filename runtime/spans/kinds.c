// The set of kinds that exist.
#include "runtime/spans/kinds.h"

struct kinds kinds;

void kinds_init(void)
{
	atomic_u32_store_relaxed(&kinds.mask,
				 1u << KIND_NOSCAN | 1u << KIND_WORDS);
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
}
