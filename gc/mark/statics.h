// statics.h - the writable data of the program and of its libraries, as roots.
//
// Go: data and bss segments (moduledata, symtab.go).
//
// The list of libraries is read from the dynamic linker's link map, in the
// stop.  No lock of the dynamic linker is taken: a stopped thread may hold it.
// Threads that are not attached go on running, and may load and unload
// libraries meanwhile.  So all of this memory is read through a system call,
// which returns an error for what is not mapped any more.
//
// While a library is scanned, its entry may be taken out, and the entry's
// memory may be used for another.  So a walk goes on from an entry only if that
// entry and the one before it still lead to each other, even at the end of the
// list.  Otherwise the walk begins again, and passes over the libraries that it
// has met.  A thread may be preempted in the middle of taking an entry out.
// Then the next entry does not lead back yet.  After some restarts the walk no
// longer asks for the link back.
//
// Left out are pages that are read-only after relocation, thread-local
// variables, and the data of this library, where markers leave stale words.
#ifndef GC_MARK_STATICS_H
#define GC_MARK_STATICS_H

#include "runtime/base/base.h"

enum {
	STATICS_SEGMENTS = 8,  // writable segments of an object
	STATICS_HOLES = 3,     // ranges to leave out
	STATICS_RESTARTS = 64, // of one walk, until it is lenient
	STATICS_MET = 128,     // after a restart, more are scanned again
};

// There is no check function: the dynamic linker owns what is at these
// addresses.
struct statics {
	bool on;
	// Of the program itself, which is never unloaded.
	uintptr_t bias; // what is added to addresses in the file
	uintptr_t phdr;
	uint32_t phnum;
	uintptr_t linker; // its struct r_debug; 0: the program has none
};

// Changed under roots.lock by attached threads, read with the world stopped.
RT_GLOBAL struct statics statics;

struct statics_range {
	uintptr_t lo;
	uintptr_t hi;
};

// A walk through all ranges.
struct statics_walk {
	uint32_t tid; // of the calling thread
	unsigned restarts;
	uintptr_t entry;  // of the link map; 0: before its first
	uintptr_t before; // the entry before it; 0: it is the first
	uintptr_t bias;	  // of its object
	unsigned nmet;
	uintptr_t met[STATICS_MET]; // biases of objects
	unsigned n;		    // segments that are left of the object
	struct statics_range segment[STATICS_SEGMENTS];
	struct statics_range hole[STATICS_HOLES]; // in any order; may be empty
};

// statics_set makes static data roots, or not.  Returns RT_OK, or RT_ENOTSUP if
// the system refuses to copy memory, or if the program does not say where the
// dynamic linker keeps its link map.  The caller must be attached.  It may
// sleep.
int statics_set(bool on);

// statics_begin begins a walk, and statics_next finds the next range, of whole
// words.  It returns false at the end.  The world must be stopped.
void statics_begin(struct statics_walk *walk, uint32_t tid);
bool statics_next(struct statics_walk *walk, struct statics_range *r);

// statics_copy copies up to room words from the beginning of [*lo, hi) to the
// words at to, and moves *lo to the end of what it has copied.  Returns the
// number of words; 0 if *lo was moved past what cannot be read.
size_t statics_copy(uint32_t tid, uintptr_t *to, size_t room, uintptr_t *lo,
		    uintptr_t hi);

void statics_fini(void);

#endif
