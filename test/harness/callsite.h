// callsite.h - which places of the library call the system, and which of their
// calls were refused.
//
// test/libhooked.a is the library compiled with this file and
// test/harness/callsite_calls.h before each source.  Each call through the
// table of system calls, and each call of a clock, then reports its place
// before it is made.  Macros do this; tools/callsites.awk makes them from the
// headers that declare those calls.  Each place enters itself in a section, so
// the list holds all places and not only those that a run has seen.
#ifndef TEST_HARNESS_CALLSITE_H
#define TEST_HARNESS_CALLSITE_H

#include "runtime/os/nanotime.h"
#include "runtime/os/oscall.h"

struct callsite {
	const char *call, *file;
	unsigned line;
};

// callsite_init makes the counts, which children of the process share.
bool callsite_init(void);

// callsite_enter reports the place of the calling thread's next call; listed is
// the place's entry in the section.
void callsite_enter(const struct callsite **listed);

// callsite_next visits the places one by one, n from 0.  It returns false when
// there is none left.  Sets *refused to the number of calls of that place that
// failed.
bool callsite_next(unsigned n, struct callsite *site, uint64_t *refused);

#define CALLSITE(function, ...)                                                \
	__extension__({                                                        \
		static const struct callsite callsite_here = {                 \
		    #function, __FILE__, __LINE__};                            \
		static const struct callsite *callsite_listed                  \
		    __attribute__((used, section("callsites"))) =              \
			&callsite_here;                                        \
		callsite_enter(&callsite_listed);                              \
		function(__VA_ARGS__);                                         \
	})

#endif
