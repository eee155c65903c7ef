// fuzz_faults.c - any sequence of calls, on a system that refuses some.
//
// The input begins with up to four faults: which kind of call fails, from
// which time on, how often.
#include "test/fuzz/heap_ops.h"

#include <errno.h>

#include "runtime/os/oscall.h"

// Not here: threads and waiting, which one thread has no use for, what is
// asked once in a process, and munmap, whose failure is a leak.
static const enum oscall kinds[] = {
    OSCALL_RESERVE,  OSCALL_COMMIT, OSCALL_UNCOMMIT, OSCALL_MAP,
    OSCALL_RELEASE,  OSCALL_ADVISE, OSCALL_NAME,     OSCALL_CLOCK,
    OSCALL_AFFINITY, OSCALL_RLIMIT, OSCALL_PAGESIZE, OSCALL_MAPPED,
};

enum { MAX_FAULTS = 4 };

static void arm(struct input *in)
{
	unsigned n = input_below(in, MAX_FAULTS + 1);

	for (unsigned i = 0; i < n; i++) {
		enum oscall kind = kinds[input_below(in, RT_ARRAY_LEN(kinds))];
		uint64_t nth = 1 + input_u8(in);

		oscall_fail(kind, nth, 1 + input_below(in, 64), ENOMEM);
	}
}

static void disarm(void)
{
	for (unsigned i = 0; i < RT_ARRAY_LEN(kinds); i++)
		oscall_fail(kinds[i], 1, 0, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};

	arm(&in);
	heap_ops(&in, true);
	disarm();
	return 0;
}
