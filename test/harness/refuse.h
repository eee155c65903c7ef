// refuse.h - each call of the system refused, one after the other.
#ifndef TEST_HARNESS_REFUSE_H
#define TEST_HARNESS_REFUSE_H

#include <errno.h>

#include "test/harness/fault.h"
#include "test/harness/heap.h"

// refuse_each calls fill in one new heap after the other.  In the nth heap, the
// nth call of a sort and the ncalls - 1 after it are refused.  It ends when
// fill makes fewer than n such calls.  fill returns how many of its own
// requests failed.  It is then called again in the same heap, with no call
// refused, and must return 0.  refuse_each returns the sum of what fill
// returned.
static inline size_t refuse_each(enum oscall call, uint64_t ncalls,
				 size_t (*fill)(void))
{
	size_t refused = 0;
	uint64_t failed = 1;

	for (uint64_t nth = 1; failed != 0; nth++) {
		ck_assert_uint_lt(nth, 200);
		heap_start_exact(heap_config(HEAP_QUIET));
		fault_fail(call, nth, ncalls, ENOMEM);
		refused += fill();
		failed = fault_failed(call);
		fault_fail(call, 0, 0, 0);
		ck_assert_uint_eq(fill(), 0);
		heap_healthy();
		must(rt_fini());
	}
	return refused;
}

#endif
