// fuzz_roots.c - any words on a stack, in roots and in objects.
//
// The input makes objects.  It fills them, registered ranges and an array on
// the stack with words of any kind.  Every object that a root or the array
// leads to is whole afterwards.  If the stack is no root, no other object is
// left.
#include "test/fuzz/fuzz.h"
#include "test/harness/shadow.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	shadow_fuzz(SHADOW_ROOTS, data, size);
	return 0;
}
