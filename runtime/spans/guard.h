// guard.h - protected pages behind an object.
//
// Go: none; compare GWP-ASan, and the guarded pages of mimalloc.
//
// A guarded object has a span of its own.  The last pages of the span are the
// guard, which is protected: a write past the object faults there.  The object
// ends as close to the guard as its alignment allows.  The bytes between object
// and guard, and up to GUARD_BEFORE bytes before the object, hold canaries,
// which are checked when the object is freed.
//
//   | pages before | canary | object | canary | guard |
//
// The pages of a freed guarded object stay protected while they are free,
// except those that guard_leave cannot protect.  The pagewords of protected
// pages say PAGEWORD_PROTECTED.  The next allocation that takes such pages
// unprotects them.
//
// The guard consists of whole physical pages of one span.  Pages that are not a
// guard share no physical page with one.  So unprotecting the physical pages
// that they touch never unprotects a guard.
#ifndef RUNTIME_SPANS_GUARD_H
#define RUNTIME_SPANS_GUARD_H

#include "runtime/pages/arena.h"

enum {
	// The most protected guards at one time; those of further objects are
	// not protected.  Each may cost two of the process's mappings, 65530 by
	// default: half of them are left for all other uses.
	GUARD_MAX = 16384,
	// The most bytes before an object that hold canaries.
	GUARD_BEFORE = 128,
};

RT_GLOBAL bool guard_on; // objects may be guarded; set before a thread attaches

// guard_init sets guard_on from the settings, for a heap without guards.  It
// must be called before mheap_init.
void guard_init(void);

// guard_draw returns a random number below n, which must not be 0.  It is the
// next of a sequence that every heap begins anew.
uint64_t guard_draw(uint64_t n);

#ifdef RT_TEST
// guard_count returns the number of protected guards.  A freed object's guard
// counts until the guard's first page is used again.
uint32_t guard_count(void);
#endif

// guard_pages returns the number of pages of a span for an object of request
// bytes, which must not exceed the range, and its guard.
uint64_t guard_pages(size_t request);

// guard_begin returns the address at which the guard of a span begins.
uintptr_t guard_begin(uintptr_t base, uint64_t npages);

// guard_protect protects the guard of a new span.  Returns false if the system
// refuses, or if there are GUARD_MAX guards.
bool guard_protect(uintptr_t base, uint64_t npages);

// guard_leave protects the other pages of a span whose guard is protected,
// except those that do not fill a physical page (of more than 8 KiB).  If the
// system refuses, only the guard stays protected.  It notes in the pagewords
// which pages are protected.  The span must be withdrawn, and its pages not yet
// free.
void guard_leave(uintptr_t base, uint64_t npages);

// guard_unprotect takes pages that were just allocated, and unprotects those of
// them that are protected.  Returns false if the system refuses; some are still
// protected then.
bool guard_unprotect(uint64_t page, uint64_t npages);

// guard_fill writes canaries into [lo, hi).  guard_find returns the address of
// the first one there that was overwritten, or 0.
void guard_fill(uintptr_t lo, uintptr_t hi);
uintptr_t guard_find(uintptr_t lo, uintptr_t hi);

#endif
