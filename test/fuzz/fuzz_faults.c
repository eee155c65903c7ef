// fuzz_faults.c - any sequence of calls, on a system that refuses some.
//
// The input begins with up to four faults: which sort of call fails, from which
// call on, and how often.  These faults are set before the heap is made.
// Others are set while it is used.
#include "test/fuzz/fuzz.h"
#include "test/harness/shadow.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	shadow_fuzz(SHADOW_FAULTS, data, size);
	return 0;
}
