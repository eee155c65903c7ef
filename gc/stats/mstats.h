// mstats.h - reading all statistics.
//
// Go: readmemstats_m, doubleCheckReadMemStats, readGCStats (mstats.go).
#ifndef GC_STATS_MSTATS_H
#define GC_STATS_MSTATS_H

#include <rt/memstats.h>

#include "runtime/os/throw.h"
#include "runtime/spans/mcache.h"

// mstats_read fills *m, every byte, from a snapshot_stopped.  The world must be
// stopped and every cache flushed.  If the double check is on and finds a
// contradiction, it throws with FATAL, and with REPORT writes it to *report,
// which stays empty otherwise.
void mstats_read(rt_memstats *m, struct text *report);

// mstats_set_double_check sets what mstats_read does about contradictions, an
// enum rt_double_check.  Any thread may call it.
void mstats_set_double_check(int mode);

// mstats_read_live fills *m, every byte, from a snapshot_live.  Any thread may
// call it.
void mstats_read_live(rt_memstats *m);

// mstats_read_gc writes the pauses, and three more words, as rt_read_gcstats
// says.  Returns the number of words that it has written.
size_t mstats_read_gc(uint64_t *buf);

#endif
