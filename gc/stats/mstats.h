// mstats.h - reading all statistics.
//
// Go: readmemstats_m, doubleCheckReadMemStats, readGCStats (mstats.go).
#ifndef GC_STATS_MSTATS_H
#define GC_STATS_MSTATS_H

#include <rt/memstats.h>

#include "runtime/os/throw.h"
#include "runtime/spans/mcache.h"

// mstats_read flushes every mcache, adds everything up and fills *m.  The
// world must be stopped; p is the stopper's P, NULL if it has none.  If the
// double check is on and finds a contradiction, it throws with FATAL, and with
// REPORT writes it to *report, which stays empty otherwise.
void mstats_read(struct rt_proc *p, rt_memstats *m, struct text *report);

// mstats_set_double_check sets what mstats_read does about contradictions, an
// enum rt_double_check.  Any thread.
void mstats_set_double_check(int mode);

// mstats_read_live fills *m without a stop: all fields of the heap from one
// consistent snapshot, every other field loaded once.
void mstats_read_live(rt_memstats *m);

// mstats_read_gc writes the pauses as rt_read_gcstats says and returns how
// many words these are.
size_t mstats_read_gc(uint64_t *buf);

#endif
