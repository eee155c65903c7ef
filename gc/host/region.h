// region.h - blocking regions.
//
// Go: entersyscall, exitsyscall (proc.go).
#ifndef GC_HOST_REGION_H
#define GC_HOST_REGION_H

#include "runtime/world/context.h"

// region_enter begins a blocking region: no stop waits for the calling thread
// from now on.  The thread must be attached, outside a region and a no-GC
// stretch, and not the stopper.  *frame holds the registers and the stack
// pointer that a collection scans meanwhile.
void region_enter(const struct context_frame *frame);

// region_leave ends the region that the calling thread is in.  It waits while
// the world is stopped.
void region_leave(void);

#endif
