// limiter.h - how much of the processors collections may take for a limit.
//
// Go: gcCPULimiterState (mgclimit.go).
//
// The limiter is a bucket.  The CPU time of collections fills it, and that of
// the program drains it.  While it is full, a collection that is due only for
// the memory limit or the limit of the heap has to wait.  So a limit that
// cannot be kept does not stop the program.
//
// The bucket has room for one second of each processor that the process can
// really use.  A container or a mask may allow fewer than the host has
// configured.  If the bucket had room for all of those, collections could take
// all CPU time for much longer than a second before they have to wait.
//
// This is pure arithmetic.  limiter_init takes arguments and does not read the
// settings, so that tests can simulate any machine.
//
// Go's bucket never holds more than its capacity.  Here one collection is one
// stop and may be longer than that, so what it has beyond the capacity stays as
// a debt.  Several in a row make no larger debt than the longest of them, so a
// host may call for collections as often as it likes.
#ifndef GC_CYCLE_LIMITER_H
#define GC_CYCLE_LIMITER_H

#include "runtime/base/base.h"

// ns of each processor: with 50 percent, the window is about two seconds.
#define LIMITER_CAPACITY UINT64_C(1000000000)

// There is no check function, because any numbers are valid.  The owner of the
// struct protects it by a lock.
struct limiter {
	uint64_t fill;	   // ns
	uint64_t capacity; // ns
	uint64_t percent;  // of CPU time that collections may take, up to 100
	bool limiting;
};

// limiter_init makes an empty bucket.
void limiter_init(struct limiter *l, uint64_t percent, uint64_t nprocs);

// limiter_shrink makes the bucket at most that of nprocs processors.  Its
// content stays, even if that is more.
void limiter_shrink(struct limiter *l, uint64_t nprocs);

// limiter_add adds an interval: ns of CPU time of collections, and of the
// program beside them.  Returns whether the bucket is full.
bool limiter_add(struct limiter *l, uint64_t gc, uint64_t program);

#endif
