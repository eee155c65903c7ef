// await.h - what tests with threads share: waits with a deadline.
#ifndef TEST_HARNESS_AWAIT_H
#define TEST_HARNESS_AWAIT_H

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/atomic.h"
#include "runtime/os/nanotime.h"
#include "runtime/os/oscall.h"
#include "test/harness/heap.h"
#include "test/harness/thread.h"

enum {
	AWAIT_SECONDS = 50, // then the test has failed
	// How long to watch a thread that must not make progress.
	AWAIT_STANDSTILL_NS = 15 * 1000 * 1000,
};

static inline void sleep_ns(uint64_t ns)
{
	const struct timespec t = {(time_t)(ns / 1000000000),
				   (long)(ns % 1000000000)};

	nanosleep(&t, NULL);
}

// await_that waits until holds() is true.  If it is not true in AWAIT_SECONDS,
// the test fails with text.  Only this failure calls Check, so the child of a
// fork may wait, too.
static inline void await_that(bool (*holds)(void), const char *text)
{
	uint64_t end = nanotime() + AWAIT_SECONDS * UINT64_C(1000000000);

	while (!holds()) {
		if (nanotime() > end)
			ck_abort_msg("deadline: %s", text);
		oscall_yield();
	}
}

// await_at_least waits until a shared number has reached at least n.
static inline void await_at_least(const atomic_u32 *a, uint32_t n)
{
	uint64_t end = nanotime() + AWAIT_SECONDS * UINT64_C(1000000000);

	while (atomic_u32_load_acquire(a) < n) {
		if (nanotime() > end)
			ck_abort_msg("deadline: %u instead of %u",
				     atomic_u32_load_acquire(a), n);
		oscall_yield();
	}
}

// stays tells whether a shared number keeps its value for a while.
static inline bool stays(const atomic_u32 *a, uint32_t n)
{
	uint64_t end = nanotime() + AWAIT_STANDSTILL_NS;

	while (nanotime() < end) {
		if (atomic_u32_load_acquire(a) != n)
			return false;
		oscall_yield();
	}
	return true;
}

// thread_number returns the calling thread's number in the system.
static inline uint32_t thread_number(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

// thread_sleeps asks the system whether a thread of this process sleeps.
static inline bool thread_sleeps(uint32_t tid)
{
	char path[64], text[128] = "";
	const char *name_end;
	FILE *file;

	snprintf(path, sizeof path, "/proc/self/task/%u/stat", tid);
	file = fopen(path, "r");
	if (!file)
		return false;
	if (!fgets(text, sizeof text, file))
		text[0] = '\0';
	fclose(file);
	name_end = strrchr(text, ')');
	return name_end && strncmp(name_end, ") S", 3) == 0;
}

// await_asleep waits until a thread is asleep.  The thread must be about to
// sleep for good, because a short sleep could be missed.
static inline void await_asleep(const atomic_u32 *tid)
{
	uint64_t end = nanotime() + AWAIT_SECONDS * UINT64_C(1000000000);

	while (!thread_sleeps(atomic_u32_load_acquire(tid))) {
		if (nanotime() > end)
			ck_abort_msg("deadline: a thread does not sleep");
		oscall_yield();
	}
}

#endif
