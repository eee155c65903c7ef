// poison.h - tells the sanitizers which memory no code may touch.
//
// Go: asanpoison (asan.go).
//
// The address sanitizer or valgrind is told which memory holds no object, so it
// reports an access where it happens.  These functions have no effect in a
// build without the sanitizer that does not run under valgrind.
//
// The collector reads only objects that are unpoisoned, and reads stacks by
// functions that are not instrumented.  Valgrind's memcheck instruments all
// code and tracks words that were never written.  Code that reads a word
// whatever it holds must pass it through poison_word, so that memcheck does not
// track it into bitmaps and counts.
//
// A host may change a word while it is read.  So a word is loaded once, whole,
// into a local variable.  Otherwise what is tested and what is pushed may be
// two values.
#ifndef RUNTIME_OS_POISON_H
#define RUNTIME_OS_POISON_H

#include "runtime/base/base.h"

// poison_init sets these two before any thread attaches.
RT_GLOBAL bool poison_on;
RT_GLOBAL bool poison_memcheck; // the process runs under memcheck

void poison_init(void);

// poison_poison poisons [p, p + n), poison_unpoison unpoisons it.  Callers test
// poison_on first to save the call; without the test a call does no harm.
void poison_poison(const void *p, size_t n);
void poison_unpoison(const void *p, size_t n);

// poison_word returns w, which memcheck then takes as defined.
uintptr_t poison_defined(uintptr_t w);
RT_INLINE uintptr_t poison_word(uintptr_t w)
{
	return RT_UNLIKELY(poison_memcheck) ? poison_defined(w) : w;
}

// poison_load loads a word that a host may write, without a sanitizer's checks.
// The compiler makes a volatile load of an aligned word one access, which the
// processor does not divide.  An atomic load would cost more: after it the
// compiler assumes that other memory may have changed, and loads that again.
RT_NO_SANITIZE
static inline uintptr_t poison_load(uintptr_t at)
{
	return *(const volatile uintptr_t *)at;
}

// poison_read is poison_load, after which memcheck takes the word as defined.
RT_NO_SANITIZE
static inline uintptr_t poison_read(uintptr_t at)
{
	return poison_word(poison_load(at));
}

#endif
