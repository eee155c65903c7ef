// fuzz_lookup.c - any word as a pointer into a heap with known objects.
//
// The heap has every size class and some large objects of both kinds, with
// freed ones between them.  The input is words; the library is asked about each
// in all possible ways.
#include "test/fuzz/fuzz.h"
#include "test/harness/shadow.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	shadow_fuzz(SHADOW_LOOKUP, data, size);
	return 0;
}
