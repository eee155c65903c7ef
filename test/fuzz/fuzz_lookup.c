// fuzz_lookup.c - any word as a pointer into a heap with known objects.
//
// The heap has every size class and some large objects, with and without
// pointers, and freed ones between them.  The input is words.  The library is
// asked about each word in all possible ways.
#include "test/fuzz/fuzz.h"
#include "test/harness/shadow.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	shadow_fuzz(SHADOW_LOOKUP, data, size);
	return 0;
}
