// Readers beside a writer: threads of a test.
#include "test/harness/readers.h"

#include <check.h>

#include "runtime/os/oscall.h"
#include "test/harness/thread.h"

struct reader readers[READERS];

static atomic_u32 written; // 1: write has returned

// The count of readings does not synchronise: a fence here would hide one that
// is missing in the tested code.
static void *read_all(void *arg)
{
	struct reader *r = arg;
	bool last;

	do {
		const char *wrong;

		last = atomic_u32_load_acquire(&written);
		wrong = r->read(r);
		if (!r->wrong)
			r->wrong = wrong;
		atomic_u64_store_relaxed(
		    &r->nreads, atomic_u64_load_relaxed(&r->nreads) + 1);
	} while (!last);
	return NULL;
}

uint64_t readers_run(const char *(*read)(struct reader *r), void (*write)(void))
{
	uint64_t count = 0;

	atomic_u32_store_relaxed(&written, 0);
	for (unsigned i = 0; i < READERS; i++) {
		readers[i] = (struct reader){.read = read};
		readers[i].thread = start_thread(read_all, &readers[i]);
	}
	write();
	atomic_u32_store_release(&written, 1);
	for (unsigned i = 0; i < READERS; i++) {
		join_thread(readers[i].thread);
		ck_assert_msg(!readers[i].wrong, "%s", readers[i].wrong);
		count += readers[i].count;
	}
	return count;
}

uint64_t readers_sum(void)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < READERS; i++)
		sum += atomic_u64_load_relaxed(&readers[i].nreads);
	return sum;
}

void readers_await(uint64_t n)
{
	for (unsigned i = 0; i < READERS; i++)
		while (atomic_u64_load_relaxed(&readers[i].nreads) < n)
			oscall_yield();
}
