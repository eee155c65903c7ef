// persistent.h - memory that is never freed.  Floor 1.
//
// Go: persistentalloc (malloc.go), with one chunk under one lock.  A chunk of
// 256 KiB is counted in other_sys when it is mapped; what is carved from it
// moves to the gauge of its user.  64 KiB and more are mapped directly.
#ifndef RUNTIME_PERSISTENT_H
#define RUNTIME_PERSISTENT_H

#include "runtime/sysmem.h"

enum {
	PERSISTENT_CHUNK = 256 << 10,
	PERSISTENT_DIRECT = 64 << 10, // from here on mapped directly
	PERSISTENT_MAX_ALIGN = 4096,
};

// persistent_alloc returns n bytes of zeros aligned to align (a power of two
// up to 4096), counted in stat; NULL when the system refuses.  n is not 0.
void *persistent_alloc(size_t n, size_t align, atomic_u64 *stat);

// persistent_fini unmaps everything, at the end of the heap's life.  The
// gauges are the caller's to reset.
void persistent_fini(void);

#endif
