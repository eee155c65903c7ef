// scavenge.h - what tests of the scavenger share: page sizes, and one range.
#ifndef TEST_UNIT_SCAVENGE_H
#define TEST_UNIT_SCAVENGE_H

#include "runtime/spans/scavenge.h"
#include "test/harness/fault.h"

// Most tests run with every physical page size: the loop number chooses.
static const size_t page_sizes[] = {4 << 10, 16 << 10, 64 << 10};

// scavenge_once releases the first range of a pass.
static inline uint64_t scavenge_once(struct rt_proc *p, uint64_t max,
				     bool force)
{
	struct scavenge_pass pass = scavenge_begin(force);

	return scavenge_range(p, &pass, max);
}

#endif
