// fuzz_ops.c - any sequence of calls, on a system that refuses nothing.
#include "test/fuzz/heap_ops.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};

	heap_ops(&in, false);
	return 0;
}
