// fault.h - system calls that fail, and how often each sort was made.
//
// For programs that link test/libhooked.a.  A test can make the Nth call of a
// sort fail.  Nothing is counted before the first fault_fail of the process.
#ifndef TEST_HARNESS_FAULT_H
#define TEST_HARNESS_FAULT_H

#include "runtime/os/oscall.h"

// fault_name returns the name of a sort of call, for messages.
const char *fault_name(enum oscall call);

// fault_fail makes calls of one sort fail with the errno given: the nth from
// now (1 is the next) and the ncalls - 1 after it (UINT64_MAX: all).  A call
// that fails so is not made.  ncalls 0 disarms.  A call of that sort that
// another thread makes meanwhile may be counted before the change or after it.
void fault_fail(enum oscall call, uint64_t nth, uint64_t ncalls, int error);

// fault_count returns the number of calls of a sort since the last fault_fail
// of that sort (armed or not).  fault_failed returns how many of them failed.
uint64_t fault_count(enum oscall call);
uint64_t fault_failed(enum oscall call);

// fault_from registers the counter of the place where the calling thread makes
// its next call.  If that call fails, *failed is raised as well.
void fault_from(atomic_u64 *failed);

// fault_set_page_size makes oscall_page_size return bytes, which must be a
// multiple of the true size; 0 restores the true size.  There must be no heap.
void fault_set_page_size(size_t bytes);

// fault_advance_clock makes the monotonic clock show ns more from now on, as if
// that time had passed.  A thread that sleeps does not wake.  A wait of await.h
// that has begun may come to its deadline.
void fault_advance_clock(uint64_t ns);

// fault_step_cpu makes the clocks of threads' CPU time show ns more with each
// reading from now on, as if a thread had used that time since the previous
// reading.  0 ends the steps; the clocks stay ahead.
void fault_step_cpu(uint64_t ns);

// The library calls these four (runtime/os/oscall.c).  fault_refused counts a
// call that is about to be made.  It returns 0, or the errno with which the
// call must fail without being made.
int fault_refused(enum oscall call);
long fault_page_size(void);
uint64_t fault_clock_ahead(void);
uint64_t fault_cpu_ahead(void);

#endif
