// sysmem.h - address space and its accounting.
//
// Go: mem.go.  Memory is None, Reserved (may not be touched), Prepared
// (mapped, counted, but not meant to be in use) or Ready.
//
//   sysmem_alloc    None -> Ready         stat += n, mapped_ready += n
//   sysmem_free     Ready -> None         stat -= n, mapped_ready -= n
//   sysmem_reserve  None -> Reserved      nothing
//   sysmem_map      Reserved -> Prepared  stat += n
//   sysmem_prepare  likewise, not counted before the caller does
//   sysmem_unprepare  Prepared -> Reserved, of what is not counted
//   sysmem_used     Prepared -> Ready     mapped_ready += n
//   sysmem_release   Ready -> Prepared     mapped_ready -= n
//
// Every gauge moves after the call succeeded, and not at all when the system
// refuses.  Sizes are rounded up to physical pages by the functions that say
// so; the others want multiples.
//
// What sysmem_alloc and sysmem_reserve return stands between two guards: a
// physical page on either side that may not be touched, so that whoever writes
// on beyond an end faults instead of reaching other memory.  Guards are in no
// gauge.
#ifndef RUNTIME_OS_SYSMEM_H
#define RUNTIME_OS_SYSMEM_H

#include "runtime/os/gauge.h"

enum { SYSMEM_HUGE_PAGE = 2 << 20 };

// sysmem_init learns the physical page size: 4 KiB to 64 KiB, 4 KiB where the
// system does not tell.
void sysmem_init(void);
size_t sysmem_page_size(void);

// sysmem_locking tells whether the process had locked, at sysmem_init, all that
// it maps from then on (mlockall with MCL_FUTURE); then what becomes usable of
// a reservation is locked, and no more.  The child of a fork locks nothing:
// sysmem_fork_child.  sysmem_locked tells whether memory that becomes usable at
// p, the page behind what is usable of a reservation, will be locked: also
// where the host has locked the reservation later.
bool sysmem_locking(void);
bool sysmem_locked(void *p);
void sysmem_fork_child(void);

// sysmem_max_mappings is the number of mappings that the system allows the
// process; 65530, Linux's own choice, where it does not tell.
//
// gauges.mappings counts those of the heap: three for memory from
// sysmem_alloc, four for a reservation of which a part is usable, and what
// sysmem_count_mappings is told of, which are the pieces into which a caller
// divides such a mapping.  The system may have fewer: it joins neighbours that
// are alike.
uint64_t sysmem_max_mappings(void);
void sysmem_count_mappings(int64_t n);

// sysmem_many_mappings tells whether there are four fifths of them.
// sysmem_take_warning tells one caller in the life of the process that this has
// become true.
bool sysmem_many_mappings(void);
bool sysmem_take_warning(void);

// sysmem_round rounds n up to physical pages.
size_t sysmem_round(size_t n);

// sysmem_alloc returns n bytes of zeros (rounded up to physical pages), NULL
// when refused; name shows in /proc/self/maps.  sysmem_free wants the same n;
// what the system refuses to unmap stays counted.
void *sysmem_alloc(size_t n, atomic_u64 *stat, const char *name);
void sysmem_free(void *p, size_t n, atomic_u64 *stat);

// sysmem_reserve returns n bytes of address space (rounded up to physical
// pages) aligned to align (a power of two), excluded from core dumps, and
// with small pages whatever the system's setting is; NULL when refused.
// sysmem_unreserve takes back all of a reservation, or of memory from
// sysmem_alloc whose gauges somebody else sets right; false: refused.
void *sysmem_reserve(size_t n, size_t align, const char *name);
bool sysmem_unreserve(void *p, size_t n);

// sysmem_map makes a part of a reservation usable; false when refused.  It
// reads as zero.
bool sysmem_map(void *p, size_t n, atomic_u64 *stat);

// sysmem_prepare does so and counts nothing: the caller does, when the memory
// comes to be part of something.  sysmem_unprepare takes it back before that.
// What the system refuses to take back stays usable.
bool sysmem_prepare(void *p, size_t n);
void sysmem_unprepare(void *p, size_t n);

void sysmem_used(size_t n);

// sysmem_populate has the system put memory behind [p, p+n), and the rest of
// the physical pages there, at once: that costs less than a fault for each.
// What has memory keeps it; the rest reads as zero.  It counts nothing.
// False: refused, as by Linux before 5.14.
bool sysmem_populate(void *p, size_t n);

// sysmem_release gives the memory behind [p, p+n) back to the system, whole
// physical pages; false, and nothing counted, when refused.
bool sysmem_release(void *p, size_t n);

// sysmem_forget gives back the memory behind those physical pages that lie
// wholly in [p, p+n), all zero.  They stay Ready and read as zero; what the
// system refuses keeps its memory.
void sysmem_forget(void *p, size_t n);

// sysmem_protect lets nobody touch a part of what is mapped, whole physical
// pages; their contents stay.  sysmem_unprotect ends that for [p, p+n) and the
// rest of the physical pages there.  They count nothing.  False: refused, and
// all is as before.
bool sysmem_protect(void *p, size_t n);
bool sysmem_unprotect(void *p, size_t n);

// sysmem_huge_pages advises the system to use huge pages for a part of a
// reservation, sysmem_small_pages not to, whatever its own setting is.  False:
// refused, as for want of a mapping, or by a system without huge pages.
bool sysmem_huge_pages(void *p, size_t n);
bool sysmem_small_pages(void *p, size_t n);

// sysmem_collapse has the system put huge pages behind what is advised and has
// memory, by copying it.  False: refused, as by Linux before 6.1.
bool sysmem_collapse(void *p, size_t n);

// A table that grows in place: a reservation of which a prefix is Ready.
// Elements beyond the prefix may not be touched.  Growth is the owner's to
// serialise; readers know from elsewhere how far they may go.
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

// systable_init reserves room for n bytes, at a place for huge pages if one
// fits; false when refused.
bool systable_init(struct systable *t, size_t n, atomic_u64 *stat,
		   const char *name);

// systable_grow makes at least the first n bytes usable (zeros where new);
// false, with nothing changed, when refused or beyond the reservation.
bool systable_grow(struct systable *t, size_t n);

// systable_fini takes the whole table back, counted out of its gauge.
void systable_fini(struct systable *t);

#endif
