// poison.h - memory that nobody may touch.
//
// The address sanitizer, or valgrind, is told which cells hold no object, so
// that a read of one is reported where it happens.  In a build without the
// sanitizer, and not under valgrind, nothing happens.
//
// The collector reads objects that are open, and stacks by functions that are
// not instrumented.  valgrind's memcheck instruments everything and follows
// what was never written; who reads a word whatever it holds passes it through
// poison_word, so that memcheck does not follow it into bitmaps and counts.
#ifndef RUNTIME_OS_POISON_H
#define RUNTIME_OS_POISON_H

#include "runtime/base/base.h"

// Set before a thread attaches.
RT_GLOBAL bool poison_on;
RT_GLOBAL bool poison_memcheck; // it runs under valgrind's memcheck

void poison_init(void);

// poison_shut and poison_open forbid and allow to touch [p, p + n).  Calls
// while poison_on is false are no error, but cost what they cost.
void poison_shut(const void *p, size_t n);
void poison_open(const void *p, size_t n);

// poison_word is w, defined.
uintptr_t poison_defined(uintptr_t w);
RT_INLINE uintptr_t poison_word(uintptr_t w)
{
	return RT_UNLIKELY(poison_memcheck) ? poison_defined(w) : w;
}

#endif
