// trap.h - breakpoints at the probes of this program (USDT).
//
// A tracer finds each probe in a note of the program's file, which says where
// it is and where its arguments are.  So do these functions: they write a
// breakpoint over the nop, and read the arguments when a thread comes by.  Only
// one thread may come by at a time.
#ifndef TEST_WHOLE_TRAP_H
#define TEST_WHOLE_TRAP_H

#include <stdbool.h>
#include <stdint.h>

enum { TRAP_PLACES = 64, TRAP_ARGUMENTS = 5, TRAP_NAME = 24 };

// A place with a probe.  Several places may have one name.
struct trap {
	char name[TRAP_NAME];
	uintptr_t at;
	const char *arguments; // as the note has them

	// What the last thread had that came by.
	uint64_t passes; // how often one did
	uint64_t when;	 // how many traps there had been in all
	unsigned n;	 // arguments
	uint64_t argument[TRAP_ARGUMENTS];
};

// trap_works tells whether this build has probes that trap_set knows, and the
// system lets a program write to its code.
bool trap_works(void);

// trap_set sets breakpoints at all probes of this program, and returns how many
// places have one.  It fails the test if a note cannot be understood.
unsigned trap_set(void);

// trap_last returns the place with a probe of this name where a thread came by
// last, or NULL.  trap_passes returns how often threads came by such places.
const struct trap *trap_last(const char *name);
uint64_t trap_passes(const char *name);

#endif
