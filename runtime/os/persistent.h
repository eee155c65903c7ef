// persistent.h - memory that is never freed.
//
// Go: persistentalloc (malloc.go), but under one lock.
//
// A region is address space between two guards, with a usable prefix.  The
// prefix grows by an eighth of all usable prefixes, so the number of mappings
// and of system calls is not proportional to the size of the heap.  What a
// prefix gains is counted in other_sys.  An allocation moves its bytes from
// there to the gauge of its user.
#ifndef RUNTIME_OS_PERSISTENT_H
#define RUNTIME_OS_PERSISTENT_H

#include "runtime/os/sysmem.h"

enum {
	PERSISTENT_STEP_MIN = 256 << 10, // bytes that become usable at once
	PERSISTENT_STEP_MAX = 16 << 20,
	PERSISTENT_REGION = 64 << 20, // bytes of a region by default
	PERSISTENT_MAX_ALIGN = 4096,
};

// persistent_init sets how many bytes of address space the first region should
// have.  It must be called before the first persistent_alloc.
void persistent_init(size_t region);

// persistent_alloc returns n bytes of zeros, counted in stat.  n must not be 0;
// align must be a power of two up to 4096.  Returns NULL if the system refuses.
void *persistent_alloc(size_t n, size_t align, atomic_u64 *stat);

// persistent_fini unmaps everything, at the end of the heap's life.  The caller
// must reset the gauges.
void persistent_fini(void);

#endif
