// hugepages.h - which parts of the heap and of its tables have huge pages.
//
// Go: sysHugePage, sysNoHugePage, sysHugePageCollapse (mem_linux.go).
//
// The heap and its tables begin with small pages, whatever the system's own
// setting is (sysmem_reserve).  So no allocation waits for a huge page to be
// cleared, and released memory does not come back as a part of one.
//
//   SMALL  -> WANTED  a collection found that live spans fill the chunk
//   WANTED -> HUGE    a thread advises the system; a helper thread also makes
//                     the system copy the unit into huge pages
//   WANTED -> SMALL   it would be one stretch too many, or the system refuses
//   any    -> SMALL   a part of the chunk is about to be released
//
// A unit of the heap is a chunk.  A unit of a table has the size of a huge
// page.  A table's unit becomes WANTED when a collection finds all chunks that
// it describes WANTED or HUGE.  It becomes SMALL again before a part of it is
// released.
//
// A stretch is a row of HUGE units.  Each stretch costs the process two more
// mappings, so there are few.  The heap may have HUGEPAGES_STRETCHES of them,
// and one more for each GiB of the heap.  Each table may have as many.  No
// stretch begins when mappings run out.  A unit inside a stretch that becomes
// SMALL splits the stretch.  Where there may be no more stretches, the shorter
// side becomes SMALL as well.
//
// The lock protects the states.  It is held while the system is advised, but
// not while the system copies pages.
#ifndef RUNTIME_PAGES_HUGEPAGES_H
#define RUNTIME_PAGES_HUGEPAGES_H

#include "runtime/os/lock.h"
#include "runtime/pages/pagealloc.h"
#include "runtime/pages/arena.h"

enum {
	HUGEPAGES_STRETCHES = 8,
	// The heap, and the tables that marking touches at random.
	HUGEPAGES_RANGES = 1 + ARENA_MARKED_TABLES,
};

struct hugepages_range {
	char *base;
	uint32_t chunks;     // chunks that a unit is or describes
	size_t unit;	     // bytes
	uint32_t nwanted;    // WANTED units
	uint32_t nstretches; // stretches of HUGE units
};

struct hugepages {
	struct mutex lock;
	// A byte for each chunk.  The state of a unit is in the byte of its
	// first chunk, where each range has two bits.
	struct systable states;
	uint32_t nchunks; // length of the heap at the last choice
	uint32_t cursor;  // chunk; hugepages_provide starts here
	struct hugepages_range range[HUGEPAGES_RANGES];
	atomic_u32 busy; // 1: a thread is in hugepages_provide
};

RT_GLOBAL struct hugepages hugepages;

// hugepages_init sets the whole range of arena_init to SMALL.  It stays SMALL
// if settings()->huge_pages is 0.  Returns false if the system refuses memory
// for the states.
bool hugepages_init(void);
void hugepages_fini(void);

// hugepages_reserve makes room for the states of nchunks chunks.  One thread at
// a time may call it.  Returns false if the system refuses.
bool hugepages_reserve(uint32_t nchunks);

// hugepages_choose changes SMALL units to WANTED after a collection has swept:
// chunks that live spans fill, and units of tables that describe only WANTED or
// HUGE chunks.  It tells whether any unit is WANTED.  The caller must hold the
// heap lock, which protects *pa.
bool hugepages_choose(const struct pagealloc *pa);

// hugepages_provide makes the next WANTED unit HUGE.  With collapse it waits
// for the huge pages, about a millisecond; otherwise the system may bring them
// in later.  Returns false if there is no such unit, if the system refuses, or
// if another thread is inside this function.  Any thread may call it, even
// while the world is stopped.
bool hugepages_provide(bool collapse);

// hugepages_withdraw makes a chunk SMALL, hugepages_withdraw_tables the units
// of tables that describe it.  They must be called before a part of the chunk,
// or of its tables, is released.  A unit stays HUGE if the system refuses.
void hugepages_withdraw(uint32_t chunk);
void hugepages_withdraw_tables(uint32_t chunk);

// hugepages_fork_lock takes the lock for a fork, hugepages_fork_unlock releases
// it.  hugepages_fork_child must be called in the child, where the thread that
// was inside hugepages_provide does not exist.
void hugepages_fork_lock(void);
void hugepages_fork_unlock(void);
void hugepages_fork_child(void);

// hugepages_check returns NULL if all invariants hold, otherwise what does not.
// The caller must hold hugepages.lock.  Debug builds call it in
// hugepages_choose, which goes through all units anyway.  When a unit is
// provided or withdrawn, they check that unit and the numbers of its range.
const char *hugepages_check(const struct hugepages *h);

#endif
