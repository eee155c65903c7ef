// trap.h - breakpoints at the probes of this program (USDT).
//
// A note in the program's file says where each probe is and where its arguments
// are.  These functions read the notes, as a tracer does.  They write a
// breakpoint over the nop of each probe, and read the arguments when a thread
// passes it.  Only one thread at a time may pass probes.
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

	// Counts of passes, and the arguments of the last one.
	uint64_t passes; // how often it was passed
	uint64_t when;	 // number of this pass among all
	unsigned n;	 // arguments
	uint64_t argument[TRAP_ARGUMENTS];
};

// trap_works tells whether this build has probes that trap_set knows, and the
// system lets a program write to its code.
bool trap_works(void);

// trap_set sets breakpoints at all probes of this program, and returns how many
// places have one.  It fails the test if a note cannot be understood.
unsigned trap_set(void);

// trap_last returns the place with a probe of this name that a thread passed
// last, or NULL.  trap_passes returns how often threads passed such places.
const struct trap *trap_last(const char *name);
uint64_t trap_passes(const char *name);

#endif
