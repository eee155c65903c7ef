// scavpace.h - how long the scavenger works and sleeps.
//
// Go: scavengerState.run, sleep (mgcscavenge.go).
//
// This is pure arithmetic: no clock, no thread.  The scavenger works for about
// a millisecond (a batch) and then sleeps, so that its work is a set share of
// the time of all processors.  A controller adjusts the ratio of work to sleep,
// because a sleep takes longer than requested, and work waits for locks.
#ifndef GC_CYCLE_SCAVPACE_H
#define GC_CYCLE_SCAVPACE_H

#include "gc/cycle/picontroller.h"

// The least work before a sleep, the ratio to begin with, and the time for
// which that ratio is used again after the controller has failed.
enum { SCAVPACE_BATCH_NS = 1000000 };
#define SCAVPACE_FIRST_RATIO 0.001
#define SCAVPACE_COOLDOWN_NS UINT64_C(5000000000)

// There is no check function, for the reason in picontroller.h.
struct scavpace {
	struct picontroller controller;
	double ratio;	   // of work to sleep
	uint64_t worked;   // ns in this batch
	uint64_t cooldown; // ns until the controller is asked again
};

// The share of processor time that the work should take.
struct scavpace_target {
	double share;
	uint32_t nprocs;
};

void scavpace_init(struct scavpace *s);

// scavpace_add adds a step to the batch: the bytes that it released, and what
// it took.  If the clock showed nothing, each physical page counts as 10 us.
void scavpace_add(struct scavpace *s, uint64_t bytes, uint64_t ns,
		  size_t page_size);

// scavpace_full tells whether the batch is long enough.
RT_INLINE bool scavpace_full(const struct scavpace *s)
{
	return s->worked >= SCAVPACE_BATCH_NS;
}

// scavpace_sleep returns how long to sleep after the batch, in ns.
uint64_t scavpace_sleep(const struct scavpace *s);

// scavpace_slept ends the batch, after which the scavenger slept for ns.
void scavpace_slept(struct scavpace *s, uint64_t ns,
		    const struct scavpace_target *target);

#endif
