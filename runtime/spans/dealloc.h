// dealloc.h - a small object that a thread frees by hand.
//
// Go: none.
//
// The slot goes to a list of freed slots, usually in the thread's cache, from
// which later allocations take it (freelist.h).  No bit changes.
#ifndef RUNTIME_SPANS_DEALLOC_H
#define RUNTIME_SPANS_DEALLOC_H

#include "runtime/spans/mcache.h"

// dealloc_object lists a small object, of at least FREELIST_MIN bytes, as free.
// It must be allocated, and no tiny block.  Returns false if it was freed
// before.
bool dealloc_object(struct rt_mcache *mc, spanclass sc, void *p);

// dealloc_was_freed tells whether dealloc_object would find that p was freed
// before.  p must be as for dealloc_object.  If another thread allocates the
// slot meanwhile, the answer may be wrong.
bool dealloc_was_freed(struct rt_mcache *mc, spanclass sc, const void *p);

// dealloc_plain lists p if it can find out, quickly and by itself, that p is
// such an object.  Returns false if it has not listed p.
bool dealloc_plain(struct rt_mcache *mc, void *p);

#endif
