// pausering.h - the last 256 collection pauses.
//
// Go: memstats.pause_ns, pause_end, pause_total_ns, numgc (mstats.go).
//
// The collector writes with the world stopped, so there is one writer.
// Readers need neither a stop nor a lock: the writer raises begun before it
// changes a slot and count afterwards.  A reader that finds the two apart, or
// finds that they moved, reads again.
#ifndef RUNTIME_WORLD_PAUSERING_H
#define RUNTIME_WORLD_PAUSERING_H

#include "runtime/base/atomic.h"

enum { PAUSERING_LEN = 256 };

struct pausering {
	atomic_u64 ns[PAUSERING_LEN];  // ns; pause number n is in slot n % 256
	atomic_u64 end[PAUSERING_LEN]; // ns since 1970, same slots
	atomic_u64 total_ns; // sum over all pauses, including overwritten ones
	atomic_u64 begun;    // pauses whose recording has begun
	atomic_u64 count;    // pauses recorded
};

// A copy of the ring, for which the reader provides the arrays.
struct pausering_copy {
	uint64_t *ns; // PAUSERING_LEN of each
	uint64_t *end;
	uint64_t total_ns;
	uint64_t count;
};

// pausering_add records a pause of ns nanoseconds that ended at end
// (nanoseconds since 1970).  The world must be stopped.
void pausering_add(struct pausering *r, uint64_t ns, uint64_t end);

// pausering_read copies all slots, the total and the count as of one moment.
// Any thread may call it at any time; it retries while a pause is recorded.
void pausering_read(const struct pausering *r, struct pausering_copy *out);

// pausering_read_stopped copies them with the world stopped, and never retries.
void pausering_read_stopped(const struct pausering *r,
			    struct pausering_copy *out);

// pausering_check returns NULL if all invariants hold, otherwise what does not.
// No pause may be recorded meanwhile.  Debug builds call it in pausering_add.
const char *pausering_check(const struct pausering *r);

#endif
