// readers.h - readers beside a writer.
#ifndef TEST_HARNESS_READERS_H
#define TEST_HARNESS_READERS_H

#include <pthread.h>
#include <stdint.h>

#include "runtime/base/atomic.h"

enum { READERS = 3 };

// What belongs to one reader.  A test's read changes last and count only.
struct reader {
	RT_CACHE_ALIGNED uint64_t last; // a number of the last reading, or 0
	uint64_t count;			// readings that the test counts
	const char *(*read)(struct reader *r);
	const char *wrong; // what a reading found first; NULL: nothing
	atomic_u64 nreads; // only this reader changes it
	pthread_t thread;
};

extern struct reader readers[READERS];

// readers_run runs write beside the readers.  They call read again and again,
// and once more after write has returned.  read returns NULL, or what is wrong,
// which fails the test.  Returns the sum of the counts.
uint64_t readers_run(const char *(*read)(struct reader *r),
		     void (*write)(void));

// readers_sum, which write may call, returns the number of readings so far.
// Some readings may not be counted yet.
uint64_t readers_sum(void);

// readers_await, which write may call, waits until each reader has read n
// times.
void readers_await(uint64_t n);

#endif
