// persistent.h - memory that is never freed.
//
// Go: persistentalloc (malloc.go), under one lock.  A region is address space
// between two guards, of which a prefix is usable.  The prefix grows by an
// eighth of all that is usable, so that neither the number of mappings nor
// that of system calls follows the size of the heap.  What it gains is counted
// in other_sys; what is carved from it moves to the gauge of its user.
#ifndef RUNTIME_OS_PERSISTENT_H
#define RUNTIME_OS_PERSISTENT_H

#include "runtime/os/sysmem.h"

enum {
	PERSISTENT_STEP_MIN = 256 << 10, // bytes that become usable at once
	PERSISTENT_STEP_MAX = 16 << 20,
	PERSISTENT_REGION = 64 << 20, // bytes of address space, if nothing
				      // else is wished
	PERSISTENT_MAX_ALIGN = 4096,
};

// persistent_init says how much address space the first region should have.
// No memory has been allocated yet.
void persistent_init(size_t region);

// persistent_alloc returns n bytes of zeros aligned to align (a power of two
// up to 4096), counted in stat; NULL when the system refuses.  n is not 0.
void *persistent_alloc(size_t n, size_t align, atomic_u64 *stat);

// persistent_fini unmaps everything, at the end of the heap's life.  The
// gauges are the caller's to reset.
void persistent_fini(void);

#endif
