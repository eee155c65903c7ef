// pagecount.h - every byte of pages counted, when they change their use.
//
// Go: the statistics of allocSpan, freeSpanLocked (mheap.go).
//
// The three functions change all numbers that a page is part of: the gauges of
// the heap (heapgauge.h), those of stacks and of mapped memory (gauge.h,
// sysmem.h), and the consistent statistics (heapstats.h).  No thread can be
// stopped between the change of a page bit and the call, so the numbers are
// exact in every stop.
//
// p is the calling thread's P, or NULL if it has none.
#ifndef RUNTIME_SPANS_PAGECOUNT_H
#define RUNTIME_SPANS_PAGECOUNT_H

#include "runtime/world/proc.h"
#include "runtime/spans/mspan.h"

// pagecount_alloc counts npages free pages that a use has taken.  Of these,
// nscav were scavenged.
void pagecount_alloc(struct rt_proc *p, enum mspan_use use, uint64_t npages,
		     uint64_t nscav);

// pagecount_free counts npages pages of a use that are about to be free.
void pagecount_free(struct rt_proc *p, enum mspan_use use, uint64_t npages);

// pagecount_populated counts npages free pages whose memory was just brought
// in.  They must look allocated.
void pagecount_populated(struct rt_proc *p, uint64_t npages);

#endif
