// guard.h - pages that nobody may touch behind an object.
//
// Go: none; compare GWP-ASan, and the guarded pages of mimalloc.
//
// A guarded object has a span of its own.  It ends, as far as its alignment
// allows, where the span's last pages begin, the guard, which the system lets
// nobody touch: who writes on behind the object faults there.  What lies
// between object and guard, and a few bytes before the object, hold canaries,
// which are looked at when it is freed.
//
//   | pages before | canary | object | canary | guard |
//
// A guarded object that was freed leaves all of its pages forbidden, as long
// as they are free: their page words say PAGEWORD_PROTECTED.  Whoever takes
// such pages next has them permitted again.
//
// The guard is made of whole physical pages of one span.  So permitting the
// physical pages around any others never opens it.
#ifndef RUNTIME_SPANS_GUARD_H
#define RUNTIME_SPANS_GUARD_H

#include "runtime/pages/arena.h"

enum {
	// Guards that there may be at once; beyond, objects are not guarded.
	// Each may take two of the mappings that a process has, 65530 where
	// nobody changed that: half of them stay for all else.
	GUARD_MAX = 16384,
	// Bytes before an object that are looked at, at most.
	GUARD_BEFORE = 128,
};

RT_GLOBAL bool guard_on; // objects may be guarded; set before a thread attaches

// guard_init is for a heap without guards so far; the settings say whether
// there will be some.
void guard_init(void);

// guard_draw is a random number below n, which is not 0: the next of a sequence
// that every heap begins anew.
uint64_t guard_draw(uint64_t n);

// guard_count is the number of guards that are forbidden, those of freed
// objects whose first page was not used again included.
uint32_t guard_count(void);

// guard_pages is the number of pages of a span for an object of request bytes,
// at most the range, and its guard.
uint64_t guard_pages(size_t request);

// guard_begin is where the guard of a span begins.
uintptr_t guard_begin(uintptr_t base, uint64_t npages);

// guard_protect forbids the guard of a new span; false: the system refuses, or
// there are GUARD_MAX.
bool guard_protect(uintptr_t base, uint64_t npages);

// guard_leave forbids, as far as the system lets it, the other pages of a span
// whose guard is forbidden, and notes in the page words what is.  The span is
// withdrawn and its pages are not free yet.
void guard_leave(uintptr_t base, uint64_t npages);

// guard_unprotect permits what is forbidden of pages that were just taken;
// false: the system refuses, and some still are.
bool guard_unprotect(uint64_t page, uint64_t npages);

// guard_fill writes canaries into [lo, hi); guard_find is where the first one
// is that was overwritten, or 0.
void guard_fill(uintptr_t lo, uintptr_t hi);
uintptr_t guard_find(uintptr_t lo, uintptr_t hi);

#endif
