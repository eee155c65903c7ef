// mcentral.h - swept spans with free slots, by span class.
//
// Go: mcentral (mcentral.go).
//
// Each class has one lock-free stack.  A span is in it if it is in use, swept,
// not cached, and has a free slot.  A span that is full, waits to be swept, or
// is in the queue of drops is in no stack.  The callers decide when spans are
// pushed, popped and swept.
//
// The table says which pairs of operations on one class need exclusion from
// outside (X), and which do not (-):
//
//            push  pop  reset  walk
//   push      -     -     X     -
//   pop       -     -     X     X
//   reset     X     X     X     X
//   walk      -     X     X     -
//
// It is the table of lfstack.h: mcentral_top and mcentral_below walk.  A thread
// must own the span that it pushes, so no two threads push one span.  A reset
// and a walk need a stopped world.  That excludes the other operations: a
// stopped thread is in none of these functions, and helpers push only while the
// stopper sweeps.
#ifndef RUNTIME_SPANS_MCENTRAL_H
#define RUNTIME_SPANS_MCENTRAL_H

#include "runtime/spans/mspan.h"

// mcentral_push adds a span, which the caller must own, and no longer owns
// afterwards.
void mcentral_push(struct mspan *s);

// mcentral_pop removes and returns the span that was pushed last.  Returns NULL
// if there is none.
struct mspan *mcentral_pop(spanclass sc);

// mcentral_reset empties the stacks of all kinds that may have spans: a flip
// makes all spans unswept.  There must be no heap, or the world must be
// stopped.
void mcentral_reset(void);

// mcentral_top and mcentral_below walk a stack, from the span pushed last.  The
// world must be stopped.
struct mspan *mcentral_top(spanclass sc);
struct mspan *mcentral_below(const struct mspan *s);

// mcentral_check returns NULL if the stack of a class has an end, otherwise
// what is wrong.  The world must be stopped.  Debug builds call it for all
// classes in each collection, before the stacks are emptied.
const char *mcentral_check(spanclass sc);

// mcentral_check_span returns NULL if a span may be in a stack, otherwise what
// is wrong.  The caller must own the span, or the world must be stopped.  Debug
// builds call it in mcentral_push and mcentral_pop.
const char *mcentral_check_span(const struct mspan *s);

#endif
