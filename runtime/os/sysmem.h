// sysmem.h - address space and its accounting.
//
// Go: mem.go.  Memory is None, Reserved (protected), Prepared (usable, but not
// meant to be in use) or Ready.
//
//   sysmem_alloc      None -> Ready         stat += n, mapped_ready += n
//   sysmem_free       Ready -> None         stat -= n, mapped_ready -= n
//   sysmem_reserve    None -> Reserved      nothing
//   sysmem_map        Reserved -> Prepared  stat += n
//   sysmem_prepare    Reserved -> Prepared  nothing; the caller counts it later
//   sysmem_unprepare  Prepared -> Reserved  nothing; it must not be counted yet
//   sysmem_used       Prepared -> Ready     mapped_ready += n
//   sysmem_release    Ready -> Prepared     mapped_ready -= n
//
// A gauge moves after the call has succeeded, and not at all if the system
// refuses.  Functions that say so round sizes up to physical pages; the others
// need multiples of them.
//
// The memory that sysmem_alloc and sysmem_reserve return lies between two
// guards, which are protected physical pages.  A write past an end faults
// instead of reaching other memory.  No gauge of bytes includes guards.
#ifndef RUNTIME_OS_SYSMEM_H
#define RUNTIME_OS_SYSMEM_H

#include "runtime/os/gauge.h"

enum { SYSMEM_HUGE_PAGE = 2 << 20 };

// sysmem_init asks the system for the physical page size, for how the process
// locks memory, and for the number of mappings it may have.  The page size is
// 4 KiB to 64 KiB, and 4 KiB if the system does not tell.
void sysmem_init(void);
size_t sysmem_page_size(void);

// sysmem_locking tells whether, at sysmem_init, the process locked all that it
// maps (mlockall with MCL_FUTURE).  Then the usable parts of reservations are
// locked, but not the rest of them.  The child of a fork inherits no locks of
// memory, so it calls sysmem_fork_child.
//
// sysmem_locked tells whether memory that becomes usable at p will be locked,
// even if the host locked the reservation later.  p must be the page behind the
// usable part of a reservation.
bool sysmem_locking(void);
bool sysmem_locked(void *p);
void sysmem_fork_child(void);

// sysmem_max_mappings returns the number of mappings that the system allows the
// process, or 65530, Linux's default, if it does not tell.
//
// gauges.mappings counts the mappings of the heap.  Memory from sysmem_alloc
// counts as three, a reservation as four, as if a part were usable.  A caller
// that divides one of these further reports the change of their number with
// sysmem_count_mappings.  The system may have fewer, because it joins
// neighbours that are alike.
uint64_t sysmem_max_mappings(void);
void sysmem_count_mappings(int64_t n);

// sysmem_many_mappings tells whether the heap has at least four fifths of the
// mappings that the system allows.  The first call of sysmem_take_warning after
// that has become true returns true, and no other call in the life of the
// process does.  sysmem_warning_due tells, in a few instructions, whether the
// next call of sysmem_take_warning would return true.
bool sysmem_many_mappings(void);
enum sysmem_warning {
	SYSMEM_WARNING_NONE,
	SYSMEM_WARNING_DUE,
	SYSMEM_WARNING_TAKEN, // for good
};
RT_GLOBAL atomic_u32 sysmem_warning;
RT_INLINE bool sysmem_warning_due(void)
{
	return atomic_u32_load_relaxed(&sysmem_warning) == SYSMEM_WARNING_DUE;
}
bool sysmem_take_warning(void);

// sysmem_round rounds n up to physical pages.
size_t sysmem_round(size_t n);

// sysmem_alloc returns n bytes of zeros (rounded up to physical pages), or NULL
// if the system refuses.  name shows in /proc/self/maps.  sysmem_free needs the
// same n.  Memory that the system refuses to unmap stays counted.
void *sysmem_alloc(size_t n, atomic_u64 *stat, const char *name);
void sysmem_free(void *p, size_t n, atomic_u64 *stat);

// sysmem_reserve returns n bytes of address space (rounded up to physical
// pages) aligned to align, which must be a power of two.  They are not in core
// dumps, and have small pages whatever the system's setting is.  Returns NULL
// if the system refuses.
//
// sysmem_unreserve unmaps a whole reservation.  The caller must subtract the
// bytes that were usable from their gauge.  Returns false if the system
// refuses.
void *sysmem_reserve(size_t n, size_t align, const char *name);
bool sysmem_unreserve(void *p, size_t n);

// sysmem_map makes a part of a reservation usable, which then reads as zero.
// Returns false if the system refuses.
bool sysmem_map(void *p, size_t n, atomic_u64 *stat);

// sysmem_prepare makes a part of a reservation usable and counts nothing.  The
// caller counts the memory when it puts it to use.  Until then it may call
// sysmem_unprepare, which protects the part again.  What the system refuses to
// protect stays usable.
bool sysmem_prepare(void *p, size_t n);
void sysmem_unprepare(void *p, size_t n);

void sysmem_used(size_t n);

// sysmem_populate brings in all physical pages that [p, p+n) touches, which
// costs less than a fault for each.  Pages that have memory keep it; the others
// read as zero.  It counts nothing.  Returns false if the system refuses, as
// Linux before 5.14 does.
bool sysmem_populate(void *p, size_t n);

// sysmem_release releases the memory of [p, p+n), which must be whole physical
// pages.  Returns false, with nothing counted, if the system refuses.
bool sysmem_release(void *p, size_t n);

// sysmem_release_inside releases the memory of the physical pages that lie
// wholly in [p, p+n), whose contents must be zero or meaningless.  They stay
// Ready and read as zero.  If the system refuses, they keep their memory, and
// it returns false.
bool sysmem_release_inside(void *p, size_t n);

// sysmem_protect protects a part of a mapping, whole physical pages; their
// contents stay.  sysmem_unprotect unprotects all physical pages that [p, p+n)
// touches.  Both count nothing.  Both return false, with nothing changed, if
// the system refuses.
bool sysmem_protect(void *p, size_t n);
bool sysmem_unprotect(void *p, size_t n);

// sysmem_huge_pages advises the system to use huge pages for a part of a
// reservation, and sysmem_small_pages advises it not to, whatever its own
// setting is.  Both return false if the system refuses, because the process has
// as many mappings as it may have, or because the system has no huge pages.
bool sysmem_huge_pages(void *p, size_t n);
bool sysmem_small_pages(void *p, size_t n);

// sysmem_collapse makes the system copy a part of a reservation into huge
// pages.  The part must have memory, and sysmem_huge_pages must have succeeded
// for it.  Returns false if the system refuses, as Linux before 6.1 does.
bool sysmem_collapse(void *p, size_t n);

// A table that grows in place: a reservation with a prefix that is Ready.
// Elements beyond the prefix are protected.  The owner serialises growth;
// readers know from elsewhere how far they may go.
struct systable {
	char *base;
	size_t reserved;  // bytes
	atomic_u64 ready; // bytes of the prefix
	atomic_u64 *stat;
};

RT_INLINE size_t systable_ready(const struct systable *t)
{
	return atomic_u64_load_relaxed(&t->ready);
}

// systable_init reserves room for n bytes, aligned for huge pages if n has room
// for one.  Returns false if the system refuses.
bool systable_init(struct systable *t, size_t n, atomic_u64 *stat,
		   const char *name);

// systable_grow makes at least the first n bytes usable; new ones are zero.
// Returns false, with nothing changed, if n is beyond the reservation or the
// system refuses.
bool systable_grow(struct systable *t, size_t n);

// systable_fini unmaps the whole table and subtracts it from its gauge.
void systable_fini(struct systable *t);

// systable_check returns NULL if all invariants hold, otherwise what does not.
// The table may grow meanwhile.  Debug builds call it whenever it has grown.
const char *systable_check(const struct systable *t);

#endif
