// mstats.h - reading all statistics.
//
// Go: readmemstats_m, doubleCheckReadMemStats, readGCStats (mstats.go).
#ifndef GC_STATS_MSTATS_H
#define GC_STATS_MSTATS_H

#include <rt/memstats.h>

#include "runtime/spans/mcache.h"
#include "runtime/os/throw.h"

// mstats_read flushes every mcache, adds everything up and fills *m.  World
// stopped; p: the stopper's P, NULL if it has none.  check is an enum
// rt_double_check: with FATAL a contradiction throws, with REPORT it is
// written to *report (else that stays empty).
void mstats_read(struct rt_proc *p, rt_memstats *m, int check,
		 struct text *report);

// mstats_read_live fills *m without a stop: all fields of the heap from one
// consistent snapshot, every other field loaded once.
void mstats_read_live(rt_memstats *m);

// mstats_read_gc writes the pauses as rt_read_gcstats says and returns how
// many words these are.
size_t mstats_read_gc(uint64_t *buf);

#endif
