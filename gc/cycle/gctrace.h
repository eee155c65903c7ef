// gctrace.h - lines on stderr for each collection.
//
// Go: gctrace=1 in gcMarkTermination (mgc.go), fmtNSAsMS, itoaDiv; scavtrace=1
// in printScavTrace (mgcscavenge.go).
//
// Lines are written when the world runs, by the thread that collected, as
// blocked: no stop waits for the descriptor.  A line that the descriptor does
// not take at once is dropped and counted.  Nothing allocates.
#ifndef GC_CYCLE_GCTRACE_H
#define GC_CYCLE_GCTRACE_H

#include <rt/cycle.h>

#include "runtime/os/throw.h"
#include "runtime/os/settings.h"
#include "runtime/world/proc.h"

// No check: it is one count.
struct gctrace {
	atomic_u64 dropped; // lines ever
};

RT_GLOBAL struct gctrace gctrace;

// gctrace_on tells whether collections are traced.
RT_INLINE bool gctrace_on(void)
{
	return RT_UNLIKELY((settings.gctrace | settings.scavtrace) != 0);
}

// gctrace_format writes the line of a record, with a newline.
// gctrace_format_scav writes the line of what was released since the record
// before.
void gctrace_format(struct text *t, const rt_cycle *c);
void gctrace_format_scav(struct text *t, const rt_cycle *c);

// gctrace_cycle writes the lines of the collection with a number, as far as the
// settings ask for them.  The caller must be attached, outside a blocking
// region, with the world running, and must hold no lock.
void gctrace_cycle(struct rt_proc *p, uint64_t number);

// gctrace_forced writes the line of a release that the host asked for, if the
// settings ask for it.  The caller must be as for gctrace_cycle.
void gctrace_forced(struct rt_proc *p, uint64_t bytes);

#endif
