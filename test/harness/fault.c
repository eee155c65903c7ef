// Counts system calls, and says which of them fail.
#include "test/harness/fault.h"

#include <errno.h>
#include <unistd.h>

static const char *const names[] = {
    [OSCALL_RESERVE] = "reserve",
    [OSCALL_COMMIT] = "commit",
    [OSCALL_UNCOMMIT] = "uncommit",
    [OSCALL_MAP] = "map",
    [OSCALL_UNMAP] = "unmap",
    [OSCALL_RELEASE] = "release",
    [OSCALL_ADVISE] = "advise",
    [OSCALL_LOCK] = "lock",
    [OSCALL_NAME] = "name",
    [OSCALL_FUTEX_WAIT] = "futex wait",
    [OSCALL_FUTEX_WAKE] = "futex wake",
    [OSCALL_CLOCK] = "clock",
    [OSCALL_AFFINITY] = "affinity",
    [OSCALL_RLIMIT] = "rlimit",
    [OSCALL_PAGESIZE] = "page size",
    [OSCALL_MAPPED] = "mapped",
    [OSCALL_STACKBOUNDS] = "stack bounds",
    [OSCALL_TLSKEY] = "TLS key",
    [OSCALL_GETENV] = "getenv",
    [OSCALL_THREAD] = "thread",
    [OSCALL_ATFORK] = "atfork",
    [OSCALL_FILE] = "file",
    [OSCALL_WRITE] = "write",
    [OSCALL_YIELD] = "yield",
    [OSCALL_PEEK] = "peek",
};
static_assert(RT_ARRAY_LEN(names) == OSCALL_COUNT, "a name a sort");

const char *fault_name(enum oscall call)
{
	return names[call];
}

// fault_fail writes these, and stores ncalls last: that arms the rest.
struct fault {
	atomic_u64 calls;  // since fault_fail
	atomic_u64 failed; // of those
	atomic_u64 first;  // number of the first call that fails, from 1
	atomic_u64 ncalls; // how many calls fail from there
	atomic_u32 error;
};

static struct fault faults[OSCALL_COUNT];

// 1 after the first fault_fail.
static atomic_u32 watched;

// The counter of the place of the thread's next call, or NULL if it is not
// registered.
static __thread atomic_u64 *place __attribute__((tls_model("initial-exec")));

void fault_fail(enum oscall call, uint64_t nth, uint64_t ncalls, int error)
{
	struct fault *f = &faults[call];

	atomic_u64_store_relaxed(&f->ncalls, 0);
	atomic_u64_store_relaxed(&f->calls, 0);
	atomic_u64_store_relaxed(&f->failed, 0);
	atomic_u64_store_relaxed(&f->first, nth);
	atomic_u32_store_relaxed(&f->error, (uint32_t)error);
	// Pairs with the acquire in fault_refused.
	atomic_u64_store_release(&f->ncalls, ncalls);
	atomic_u32_store_relaxed(&watched, 1);
}

uint64_t fault_count(enum oscall call)
{
	return atomic_u64_load_relaxed(&faults[call].calls);
}

uint64_t fault_failed(enum oscall call)
{
	return atomic_u64_load_relaxed(&faults[call].failed);
}

void fault_from(atomic_u64 *failed)
{
	place = failed;
}

int fault_refused(enum oscall call)
{
	struct fault *f = &faults[call];
	atomic_u64 *from = place;
	uint64_t ncalls, first, n;

	if (atomic_u32_load_relaxed(&watched) == 0)
		return 0;
	// Pairs with the release in fault_fail.
	ncalls = atomic_u64_load_acquire(&f->ncalls);
	first = atomic_u64_load_relaxed(&f->first);
	n = atomic_u64_add_relaxed(&f->calls, 1);
	place = NULL;
	if (n < first || n - first >= ncalls)
		return 0;
	atomic_u64_add_relaxed(&f->failed, 1);
	if (from)
		atomic_u64_add_relaxed(from, 1);
	errno = (int)atomic_u32_load_relaxed(&f->error);
	return errno;
}

static atomic_u64 clock_ahead; // ns

void fault_advance_clock(uint64_t ns)
{
	atomic_u64_add_relaxed(&clock_ahead, ns);
}

uint64_t fault_clock_ahead(void)
{
	return atomic_u64_load_relaxed(&clock_ahead);
}

static atomic_u64 cpu_ahead, cpu_step; // ns

void fault_step_cpu(uint64_t ns)
{
	atomic_u64_store_relaxed(&cpu_step, ns);
}

uint64_t fault_cpu_ahead(void)
{
	uint64_t step = atomic_u64_load_relaxed(&cpu_step);

	return atomic_u64_add_relaxed(&cpu_ahead, step) + step;
}

// What fault_page_size returns, or 0 for the system's.
static size_t page_size;

void fault_set_page_size(size_t bytes)
{
	page_size = bytes;
}

long fault_page_size(void)
{
	return page_size != 0 ? (long)page_size : sysconf(_SC_PAGESIZE);
}
