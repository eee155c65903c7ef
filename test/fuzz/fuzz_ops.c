// fuzz_ops.c - any sequence of calls, on a system that refuses nothing.
#include "test/fuzz/fuzz.h"
#include "test/harness/shadow.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	shadow_fuzz(SHADOW_FUZZ, data, size);
	return 0;
}
