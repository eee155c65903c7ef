// checkmark.h - checks that every reachable object is marked.
//
// Go: debug.gccheckmark (mcheckmark.go), which marks a second time.
//
// Here nothing is marked again.  If every root, and every word of every marked
// object, leads to a marked object or to none, then everything reachable is
// marked, step by step from the roots.  So one look at each of them suffices:
// plain code, one thread, no memory.
#ifndef GC_MARK_CHECKMARK_H
#define GC_MARK_CHECKMARK_H

#include "runtime/base/base.h"

// checkmark_all throws if a word refers to an object that is not marked, and
// names both.  If the word is in an object, it also names that object's kind,
// what the host says of that object (rt_describe_fn), and the reference, by its
// label or its offset.  The world must be stopped, after mark_all.
void checkmark_all(void);

#endif
