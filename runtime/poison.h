// poison.h - memory that nobody may touch.  Floor 1.
//
// The address sanitizer, or valgrind, is told which cells hold no object, so
// that a read of one is reported where it happens.  In a build without the
// sanitizer, and not under valgrind, nothing happens.
//
// The collector reads objects that are open, and stacks by functions that are
// not instrumented.
#ifndef RUNTIME_POISON_H
#define RUNTIME_POISON_H

#include "runtime/base.h"

RT_GLOBAL bool poison_on; // set before a thread attaches

// poison_shut and poison_open forbid and allow to touch [p, p + n).  Calls
// while poison_on is false are no error, but cost what they cost.
void poison_shut(const void *p, size_t n);
void poison_open(const void *p, size_t n);

#endif
