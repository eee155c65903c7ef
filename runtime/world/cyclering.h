// cyclering.h - the records of the last 256 collections.
//
// Go: none, but its trace line has such figures (gctrace in mgc.go).
//
// The thread that collects writes, while it has the right to stop the world, so
// there is one writer.  Readers need neither a stop nor a lock: the writer
// raises begun before it changes a slot, and count afterwards.  A reader whose
// slot may have changed meanwhile has come too late for that record.
#ifndef RUNTIME_WORLD_CYCLERING_H
#define RUNTIME_WORLD_CYCLERING_H

#include <rt/cycle.h>

#include "runtime/base/atomic.h"

enum { CYCLERING_WORDS = sizeof(rt_cycle) / sizeof(uint64_t) };

struct cyclering {
	// Record number n is in slot n % RT_CYCLES.
	atomic_u64 word[RT_CYCLES][CYCLERING_WORDS];
	atomic_u64 begun; // number of the record whose writing has begun
	atomic_u64 count; // number of the newest record; 0: none
};

RT_GLOBAL struct cyclering cyclering;

// cyclering_reset drops all records.  It touches no slot, so that a heap that
// never collects needs no memory for them.
void cyclering_reset(struct cyclering *r);

// cyclering_add adds a record.  Its number must be one more than that of the
// newest.
void cyclering_add(struct cyclering *r, const rt_cycle *c);

// cyclering_read copies the record of a number, or the newest if number is 0.
// Returns false if there is none.  Any thread may call it at any time.
bool cyclering_read(const struct cyclering *r, uint64_t number, rt_cycle *out);

#ifdef RT_TEST
// cyclering_count_from makes n the number of the newest record, which does not
// exist, nor does any before it.
void cyclering_count_from(struct cyclering *r, uint64_t n);
#endif

// cyclering_check returns NULL if all invariants hold, otherwise what does not.
// No record may be written meanwhile.  Debug builds call it in cyclering_add.
const char *cyclering_check(const struct cyclering *r);

#endif
