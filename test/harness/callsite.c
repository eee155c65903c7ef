// The places from which the system was called, and which calls were refused.
#include "test/harness/callsite.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "test/harness/fault.h"

// The linker's names for the section.
extern const struct callsite *__start_callsites[], *__stop_callsites[];

static atomic_u64 *counts; // one for each entry; NULL before callsite_init

static size_t entries(void)
{
	return (size_t)(__stop_callsites - __start_callsites);
}

bool callsite_init(void)
{
	void *p = mmap(NULL, entries() * sizeof *counts, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return false;
	counts = p;
	return true;
}

void callsite_enter(const struct callsite **listed)
{
	if (counts)
		fault_from(&counts[listed - __start_callsites]);
}

bool callsite_next(unsigned n, struct callsite *site, uint64_t *refused)
{
	if (n >= entries())
		return false;
	*site = *__start_callsites[n];
	*refused = atomic_u64_load_relaxed(&counts[n]);
	return true;
}
