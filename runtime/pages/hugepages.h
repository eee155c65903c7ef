// hugepages.h - which parts of the heap and of its tables have huge pages.
//
// Go: sysHugePage, sysNoHugePage, sysHugePageCollapse (mem_linux.go).
//
// Everything begins with small pages, whatever the system's own setting is
// (sysmem_reserve).  So no allocation waits for a huge page to be cleared, and
// what is given back does not come back as a part of one.
//
//   SMALL  -> WANTED  a collection found that live spans fill the chunk
//   WANTED -> HUGE    a helper advises the system, and has it put huge pages
//                     behind what has memory
//   any    -> SMALL   a part of the chunk is about to be released
//
// A table has units of a huge page.  One is wanted when all chunks that it
// describes are WANTED or HUGE, and SMALL again when a part is given back.
//
// Each run of units that are HUGE takes two mappings of the system more.  Runs
// are few: beyond HUGEPAGES_RUNS and one for each GiB of the heap, or when
// mappings run out, none begins, and a unit within a run takes the shorter
// side of the run with it when it becomes SMALL.
//
// The lock protects all.  It is held over advice, not while pages are copied.
#ifndef RUNTIME_PAGES_HUGEPAGES_H
#define RUNTIME_PAGES_HUGEPAGES_H

#include "runtime/pages/arena.h"
#include "runtime/pages/pagealloc.h"

enum { HUGEPAGES_RUNS = 8 };

// hugepages_init is for a range that arena_init reserved; on: huge pages may
// be used.  False: refused.
bool hugepages_init(bool on);
void hugepages_fini(void);

// hugepages_reserve makes room for the state of nchunks chunks, one thread at
// a time; false: refused.
bool hugepages_reserve(uint32_t nchunks);

// hugepages_choose looks for chunks that live spans fill, after a collection
// has swept, and tells whether any unit is wanted.  World stopped.
bool hugepages_choose(const struct pagealloc *pa);

// hugepages_provide makes the next wanted unit a huge one; false: there is
// none, or another thread is at it.  collapse: the caller has time to wait for
// huge pages, about a millisecond; else the system may bring them in later.
// Any thread, also while the world is stopped.
bool hugepages_provide(bool collapse);

// hugepages_withdraw comes before a part of a chunk is released,
// hugepages_withdraw_tables before its tables are.
void hugepages_withdraw(uint32_t chunk);
void hugepages_withdraw_tables(uint32_t chunk);

// hugepages_bytes is what the states take of gc_misc_sys.
size_t hugepages_bytes(void);

// hugepages_fork_lock takes the lock for a fork, hugepages_fork_unlock releases
// it. hugepages_fork_child is for the child, which has no helpers.
void hugepages_fork_lock(void);
void hugepages_fork_unlock(void);
void hugepages_fork_child(void);

#endif
