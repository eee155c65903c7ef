// mcentral.h - swept spans with free slots, by span class.
//
// Go: mcentral (mcentral.go).  One lock-free stack a class.  A span is in it
// if it is in use, swept, not cached, and has a free slot; full spans and
// spans that wait to be swept are in no set.  Passive: who fills it and who
// sweeps is decided above.
#ifndef RUNTIME_SPANS_MCENTRAL_H
#define RUNTIME_SPANS_MCENTRAL_H

#include "runtime/spans/mspan.h"

// mcentral_push adds a span that its caller owns.
void mcentral_push(struct mspan *s);

// mcentral_pop hands out the span pushed last; NULL: none.
struct mspan *mcentral_pop(spanclass sc);

// mcentral_reset empties every set: at the flip, when all spans become
// unswept.  World stopped.
void mcentral_reset(void);

// mcentral_top and mcentral_below walk a set with the world stopped.
struct mspan *mcentral_top(spanclass sc);
struct mspan *mcentral_below(const struct mspan *s);

#endif
