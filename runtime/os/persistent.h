// persistent.h - memory that is never freed.
//
// Go: persistentalloc (malloc.go), but under one lock.
//
// A region is address space between two guards, with a usable prefix.  The
// prefix grows in place, so it needs no further mapping.  It grows by an eighth
// of all usable prefixes, but by 256 KiB to 16 MiB, so there are few system
// calls.  What a prefix gains is counted in other_sys.  An allocation moves its
// bytes from there to the gauge of its user.
#ifndef RUNTIME_OS_PERSISTENT_H
#define RUNTIME_OS_PERSISTENT_H

#include "runtime/os/lock.h"
#include "runtime/os/sysmem.h"

enum {
	PERSISTENT_STEP_MIN = 256 << 10, // bytes that become usable at once
	PERSISTENT_STEP_MAX = 16 << 20,
	PERSISTENT_REGION = 64 << 20, // bytes of a region by default
	PERSISTENT_MAX_ALIGN = 4096,
};

// A region's record is its first words.
struct persistent_region {
	struct persistent_region *next;
	size_t size; // bytes of address space
};

struct persistent {
	struct mutex lock;		   // protects the rest
	struct persistent_region *regions; // newest first; only that is carved
	size_t wish;	 // bytes of the next region; 0: the default
	size_t usable;	 // bytes of all prefixes
	uintptr_t next;	 // first free byte
	uintptr_t ready; // end of the usable prefix
	uintptr_t limit; // end of the region
};

RT_GLOBAL struct persistent persistent;

// persistent_init sets how many bytes of address space the first region should
// have.  It must be called before the first persistent_alloc.
void persistent_init(size_t region);

// persistent_alloc returns n bytes of zeros, counted in stat.  n must not be 0;
// align must be a power of two up to 4096.  Returns NULL if the system refuses.
void *persistent_alloc(size_t n, size_t align, atomic_u64 *stat);

// persistent_fini unmaps everything, at the end of the heap's life.  The caller
// must reset the gauges.
void persistent_fini(void);

// persistent_check returns NULL if all invariants hold, otherwise what does
// not.  The caller must hold persistent.lock, or no other thread may allocate.
// Debug builds call it at each new region.  At each allocation they call only
// the part of it that does not go through the regions.
const char *persistent_check(const struct persistent *p);

#endif
