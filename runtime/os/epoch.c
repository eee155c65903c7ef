// The heap's sweepgen and its invariant.
#include "runtime/os/epoch.h"

struct epoch epoch;

const char *epoch_check(const struct epoch *e)
{
	// The sweepgen wraps, so 0 is possible.
	if (atomic_u32_load_relaxed(&e->sweepgen) % 2 != 0)
		return "sweepgen is odd";
	return NULL;
}
