// gctrace.h - lines on stderr for each collection.
//
// Go: gctrace=1 in gcMarkTermination (mgc.go), fmtNSAsMS, itoaDiv; gctrace=2 in
// dumpScanStats (mgcmark_greenteagc.go); scavtrace=1 in printScavTrace
// (mgcscavenge.go).
//
// Lines are written when the world runs, by the thread that collected.  It
// counts as blocked meanwhile, so no stop waits for the descriptor.  A line
// that the descriptor does not take at once is dropped and counted.  Nothing
// allocates.
// Figures of gctrace=2 that the record of a collection lacks are noted in the
// stop, and copied before another thread may collect.
#ifndef GC_CYCLE_GCTRACE_H
#define GC_CYCLE_GCTRACE_H

#include <rt/cycle.h>

#include "runtime/os/throw.h"
#include "runtime/os/settings.h"
#include "runtime/world/proc.h"
#include "gc/cycle/pacertrace.h"
#include "gc/cycle/scanstats.h"

// There is no check function: it is one count.
struct gctrace {
	atomic_u64 dropped; // lines ever
};

RT_GLOBAL struct gctrace gctrace;

// gctrace_on tells whether collections are traced.
RT_INLINE bool gctrace_on(void)
{
	return RT_UNLIKELY((settings()->gctrace | settings()->scavtrace |
			    settings()->gcpacertrace) != 0);
}

// What the lines of one collection say.  There is no check function: it is a
// copy.
struct gctrace_cycle {
	uint64_t number;
	struct scanstats scan; // only if settings()->gctrace is 2
};

// gctrace_reset makes an empty trace.
void gctrace_reset(void);

// gctrace_format writes the line of a record, with a newline.
// gctrace_format_scav writes the line of what was released since the previous
// record.
void gctrace_format(struct text *t, const rt_cycle *c);
void gctrace_format_scav(struct text *t, const rt_cycle *c);

// gctrace_format_total writes the line of all that was marked,
// gctrace_format_class that of a class.  It returns false if that class has no
// objects.
void gctrace_format_total(struct text *t, const struct gctrace_cycle *c);
bool gctrace_format_class(struct text *t, const struct gctrace_cycle *c,
			  unsigned class);

// gctrace_note notes what the trace of the collection of this stop needs.  It
// must come after the flip, before anything is allocated.  gctrace_take copies
// it.  The caller must still have the right to stop the world.
void gctrace_note(void);
void gctrace_take(struct gctrace_cycle *c, uint64_t number);

// gctrace_write writes those lines of a collection that the settings ask for.
// The caller must be attached, outside a blocking region, with the world
// running, and must hold no lock.
void gctrace_write(struct rt_proc *p, const struct gctrace_cycle *c);

// gctrace_forced writes the line of a release that the host asked for, if the
// settings ask for it.  The caller must be as for gctrace_write.
void gctrace_forced(struct rt_proc *p, uint64_t bytes);

#endif
