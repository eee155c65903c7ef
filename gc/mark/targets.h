// targets.h - the objects that the words of one object lead to.
//
// Go: none.
//
// tracecheck puts them into this table before it asks for the references of the
// object.  The target of each reference that is told is in the table already,
// so nothing is added, and no memory is needed, while a callback runs.  Objects
// with up to TARGETS_FEW such words need no memory at all.
//
// Only the thread that collects uses a table.
#ifndef GC_MARK_TARGETS_H
#define GC_MARK_TARGETS_H

#include "runtime/base/base.h"

enum { TARGETS_FEW = 64 };

struct target {
	uintptr_t base; // of an object; 0: the slot is free
	uint64_t at;	// offset of the first word that leads to it
	bool told;
};

// The slots in use are a power of two, at most half of them taken.
struct targets {
	struct target few[2 * TARGETS_FEW];
	struct target *many; // NULL: none
	size_t room;	     // of many
	struct target *slot; // few or many
	size_t mask;	     // slots in use - 1
	size_t n;	     // targets
};

// targets_begin empties the table and makes room for n targets.  Returns false
// if the system refuses memory.  *t must be zeros before its first use.
bool targets_begin(struct targets *t, size_t n);

// targets_end frees the memory of the table.
void targets_end(struct targets *t);

// targets_add adds the object at base, to which the word at offset at leads,
// unless the table has that object already.  There must be room.
void targets_add(struct targets *t, uintptr_t base, uint64_t at);

// targets_find returns the target with a base, or NULL.
struct target *targets_find(const struct targets *t, uintptr_t base);

// targets_check returns NULL if all invariants hold, otherwise what does not.
const char *targets_check(const struct targets *t);

#endif
