// heap_ops.h - any sequence of calls of the public interface, one thread.
#ifndef TEST_FUZZ_HEAP_OPS_H
#define TEST_FUZZ_HEAP_OPS_H

#include "test/fuzz/fuzz.h"

// heap_ops makes a heap, does what the input says, and ends the heap.  The
// thread has exact roots, so after each collection exactly those objects are
// there that the model reaches.  may_fail: the system may refuse (oscall_fail
// is armed); then a call may say that there is no memory, and nothing else
// changes.
void heap_ops(struct input *in, bool may_fail);

#endif
