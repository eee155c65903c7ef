// watch.h - counts the loads of each word of some pages.
//
// The pages are protected while they are watched.  Each access faults: a
// handler counts it, unprotects the pages and makes the processor trap after
// the instruction, where another handler protects them again.  So what counts
// is what the processor executes, however the library was compiled.  An access
// by the system, for a system call, does not count, and makes the call fail.
//
// Only one thread may access the pages while they are watched.
#ifndef TEST_WHOLE_WATCH_H
#define TEST_WHOLE_WATCH_H

#include <stdint.h>

enum {
	WATCH_PAGE = 4096,	     // bytes of a page of x86-64
	WATCH_MOST = 2 * WATCH_PAGE, // bytes that can be watched
};

// watch_cannot returns why words cannot be watched here, or NULL.
const char *watch_cannot(void);

// watch_begin watches [lo, hi), whole pages, until watch_end.  It clears the
// counts.
void watch_begin(uintptr_t lo, uintptr_t hi);
void watch_end(void);

// watch_loads returns how often the word at an address was loaded.
unsigned watch_loads(uintptr_t at);

// watch_other returns the address of an access that was no load of a whole
// word, or 0 if there was none.
uintptr_t watch_other(void);

#endif
