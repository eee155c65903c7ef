// mcache.h - the cache from which one P allocates small objects.
//
// Go: mcache (mcache.go), tiny allocator (malloc.go).
//
// For every span class a P caches one span and takes runs of free slots from
// it.  A run's slots are marked allocated when the run is taken; the inline
// path only moves the run's cursor, downwards.  All of a run counts as live
// when it is taken.  So the first run of a slot after a flush is short, and
// each may be twice as long as the one before, up to a page.  This way many
// threads that allocate little do not make the heap look large.  Retiring frees
// the rest of a run, counts the used slots, and takes the span out of the slot.
// Only combined tiny allocations are counted one by one.
//
// Only the P's own thread touches its mcache, or the stopper while that thread
// is stopped.  There are two exceptions: a stopper sets thread.pending to ask
// the thread to stop, and a thread that has claimed the P may flush its pages
// and mspans.  The mcache is a block of memory that is cut from a slab.  The
// block includes the part that inline allocation uses (struct rt_thread and its
// table of runs).
#ifndef RUNTIME_SPANS_MCACHE_H
#define RUNTIME_SPANS_MCACHE_H

#include "runtime/os/slabpool.h"
#include "runtime/spans/mheap.h"
#include "runtime/spans/freelist.h"

// One class and kind of a P.  mcache_check checks it.
struct mcache_slot {
	struct mspan *span; // cached here, or NULL
	struct rt_run *run; // in the table of the inline path, or behind it
	struct mspan_cursor cursor; // in the cached span
	uint32_t size;		    // bytes an object of this class; fixed
	uint32_t taken;		    // bytes of slots taken since the last count
	uint8_t run_log2; // its next run lies within a block of 1 << run_log2
			  // bits (mspan_find_run)
	spanclass sc;	  // fixed
	bool uninit;	  // runs are not cleared; fixed
	uint8_t i;	  // its bit in nonempty; fixed
	bool needzero;	  // the span's
	// Slots of this class and kind, of any span, that the P's thread has
	// freed, or has taken from the shared list.  A slot for uninit has
	// none.
	uint32_t reused; // of them allocated again since the last count
	struct freelist freed;
};

enum {
	// heap_live is published when this much has gathered, and with a slot's
	// first run that is not near (mspan_is_near).  Near runs have less than
	// 1 KiB.
	MCACHE_LIVE_BATCH = 32 << 10,
	// Log2 of the block that mspan_find_run gets: of a slot's first run,
	// for 512 bytes (256 in the 8-byte class), and of its longest runs, for
	// a page or more.
	MCACHE_RUN_FIRST = 5,
	MCACHE_RUN_LAST = 10,
	MCACHE_STACK_ORDERS = 4,       // stacks of 2, 4, 8 and 16 KiB
	MCACHE_STACK_BYTES = 32 << 10, // at most, of each order
	MCACHE_STACKS = MCACHE_STACK_BYTES / 2048,
	// A slot for each span class of the two kinds that every heap has, and
	// then one for each class that has runs which are not cleared.
	MCACHE_SLOTS = SPANCLASS_BASE + RT_RUN_CLASSES,
	MCACHE_WORDS = (MCACHE_SLOTS + 63) / 64,
	MCACHE_KIND_WORDS = (SIZECLASS_COUNT + 63) / 64,
	// Classes too large for inline allocation.
	MCACHE_LONG = SIZECLASS_COUNT - RT_RUN_CLASSES,
	// Free blocks kept for the next threads: of mcaches, and of kinds.
	MCACHE_KEPT = 4,
	MCACHE_KINDS_KEPT = 64,
};

// What a P has of a registered kind, from the first allocation on.  Here all
// kinds are called registered except the two that every heap has.  Slots and
// runs of small objects come first, so a host whose objects are small touches
// half of it.  mcache_check checks it.
struct mcache_kind {
	uint64_t nonempty[MCACHE_KIND_WORDS]; // slots with a span
	struct rt_run runs[SIZECLASS_COUNT];  // rt_runs.kind leads here
	struct mcache_slot slots[SIZECLASS_COUNT];
};
static_assert(sizeof(struct mcache_kind) <= 35 << 8,
	      "a kind costs a thread that uses it at most 8.75 KiB");
static_assert(MCACHE_SLOTS <= 256, "mcache_slot.i has 8 bits");

// Free stacks that a P keeps (stackalloc.h).  mcache_check checks them.
struct mcache_stacks {
	uint8_t n[MCACHE_STACK_ORDERS]; // how many of each order
	void *stack[MCACHE_STACK_ORDERS][MCACHE_STACKS];
};

struct rt_mcache {
	struct rt_thread thread;
	// All that a flush of an empty cache has to look at is on one line.
	RT_CACHE_ALIGNED uint64_t nonempty[MCACHE_WORDS]; // slots with a span
	uintptr_t tiny;	      // current tiny block, or 0
	uint64_t tiny_allocs; // combined since the last count
	int64_t live;	      // bytes not yet in heap_live; may be below 0
	uint32_t tiny_offset; // first free byte of the tiny block
	uint32_t used_kinds;  // bit k: the registered kind k had a span since
			     // the last flush, or bit k of freed_kinds is set
	struct mcache_stacks stacks;
	uint32_t freed_kinds; // bit k: a slot of the registered kind k was
			      // listed since the last flush; bit 0: one of
			      // another kind
	struct rt_runs runs;
	struct rt_run long_runs[2 * MCACHE_LONG]; // of what is never inline
	struct mspan *setting_up; // of a large object that is not published
	void *granted; // object that a stopper took for the thread, which has
		       // not returned it yet
	void *granted_stack; // the same for a stack, of granted_bytes
	size_t granted_bytes;
	uintptr_t handles;	// free handles, linked (handles.h); 0: none
	uint32_t nhandles;	// how many
	uint64_t until_guarded; // small objects up to the next guarded one; 0:
				// not chosen yet
	struct mheap_cache heap;
	struct mcache_slot slots[MCACHE_SLOTS];
};
static_assert(offsetof(struct rt_mcache, stacks.n) + MCACHE_STACK_ORDERS <=
		  offsetof(struct rt_mcache, nonempty) + RT_CACHE_LINE,
	      "the line that a flush looks at");

// The blocks of mcaches and of their kinds.  All under the lock.
struct mcache_blocks {
	struct mutex lock;
	struct slabpool mcaches;
	struct slabpool kinds;
};

RT_GLOBAL struct mcache_blocks mcache_blocks;

// mcache_new returns a block for the calling thread, or NULL if the system
// refuses memory.  mcache_delete frees an empty one.  p must be the calling
// thread's P.
struct rt_mcache *mcache_new(struct rt_proc *p);
void mcache_delete(struct rt_mcache *mc);

// mcache_release_kept releases the memory of the kept blocks to the system.
void mcache_release_kept(void);

// mcache_fini unmaps all blocks at the end of the heap.  No thread may have
// one.
void mcache_fini(void);

// mcache_enable_runs turns the inline path on, unless this build or
// configuration wants every allocation to be a call.  mcache_disable_runs sends
// every allocation to the slow path, which finds out why.
void mcache_enable_runs(struct rt_mcache *mc);
void mcache_disable_runs(struct rt_mcache *mc);

// mcache_bytes returns the bytes of an mcache and of its blocks for registered
// kinds, as mcache_inuse counts them.
uint64_t mcache_bytes(const struct rt_mcache *mc);

// mcache_kind_of returns what a P has of a registered kind, or NULL.
RT_INLINE struct mcache_kind *mcache_kind_of(const struct rt_mcache *mc,
					     unsigned kind)
{
	struct rt_run *runs = mc->runs.kind[kind];

	return runs == proc_no_runs.row
		   ? NULL
		   : (struct mcache_kind *)((char *)runs -
					    offsetof(struct mcache_kind, runs));
}

// mcache_add_kind gives a P a block of slots and runs for a kind.  Returns NULL
// if the system refuses the memory.  mcache_drop_kind frees the block; its
// slots must have no span.
struct mcache_kind *mcache_add_kind(struct rt_mcache *mc, unsigned kind);
void mcache_drop_kind(struct rt_mcache *mc, unsigned kind);

// mcache_slot_present returns the slot that an object comes from, NULL if the P
// has no slots of that kind.
RT_INLINE struct mcache_slot *mcache_slot_present(struct rt_mcache *mc,
						  spanclass sc)
{
	struct mcache_kind *k;

	if (RT_LIKELY(sc < SPANCLASS_BASE))
		return &mc->slots[sc];
	k = mcache_kind_of(mc, spanclass_kind(sc));
	return k ? &k->slots[spanclass_size(sc)] : NULL;
}

// mcache_slot_of returns the slot that an object comes from.  Returns NULL if
// the P has no slots of that kind and the system refuses the memory for them.
// uninit has an effect only for RT_NOSCAN.
RT_INLINE struct mcache_slot *mcache_slot_of(struct rt_mcache *mc, spanclass sc,
					     bool uninit)
{
	struct mcache_kind *k;

	if (RT_LIKELY(sc < SPANCLASS_BASE))
		return &mc->slots[uninit && sc < RT_RUN_CLASSES
				      ? SPANCLASS_BASE + sc
				      : sc];
	k = mcache_kind_of(mc, spanclass_kind(sc));
	if (!k)
		k = mcache_add_kind(mc, spanclass_kind(sc));
	return k ? &k->slots[spanclass_size(sc)] : NULL;
}

// mcache_slot_uninit returns the slot for uninit that belongs to a slot, or the
// slot itself if there is none.
RT_INLINE struct mcache_slot *mcache_slot_uninit(struct rt_mcache *mc,
						 struct mcache_slot *slot)
{
	return slot->sc < RT_RUN_CLASSES ? &mc->slots[SPANCLASS_BASE + slot->sc]
					 : slot;
}

// An object comes from the first of five places that has room: the current run,
// the slots that the thread has freed, the next run of the cached span, the
// slots that other threads have freed, another span.  The cache serves the
// first three, and refill.h the others.

// mcache_next takes a slot that the thread has freed.  If there is none, it
// takes the next run of the cached span, and returns the run's last slot.
// Returns NULL if there is no span, or if the span has no free slot left.  The
// current run must be used up.  The new run's memory is cleared unless its
// contents do not matter.  They do not matter if slot is one for uninit, or if
// uninit is set and the run is a single object.
void *mcache_next(struct rt_mcache *mc, struct mcache_slot *slot, bool uninit);

// mcache_take takes an object from the current run or, if that is used up, from
// the next one.  uninit and a result of NULL are as for mcache_next.
RT_INLINE void *mcache_take(struct rt_mcache *mc, struct mcache_slot *slot,
			    bool uninit)
{
	struct rt_run *run = slot->run;

	if ((size_t)(run->cur - run->start) < slot->size)
		return mcache_next(mc, slot, uninit);
	return run->cur -= slot->size;
}

// mcache_take_tiny combines a pointer-free request of size bytes, 1 up to 15,
// with others in the current tiny block, or in a new one from mcache_take.
// Returns NULL if there is neither.
void *mcache_take_tiny(struct rt_mcache *mc, size_t size);

// mcache_set_tiny makes block the current tiny block, unless the present one
// has at least as much room left.  The first size bytes of block are taken.
void mcache_set_tiny(struct rt_mcache *mc, void *block, size_t size);

// mcache_note_freed notes that a freed slot of a kind is on a list of the P's.
RT_INLINE void mcache_note_freed(struct rt_mcache *mc, unsigned kind)
{
	kind = kind < KIND_TYPED ? 0 : kind;
	mc->freed_kinds |= UINT32_C(1) << kind;
	mc->used_kinds |= UINT32_C(1) << kind;
}

// mcache_listing returns the slot of mc whose list has the freed slots for
// `slot`.
RT_INLINE struct mcache_slot *mcache_listing(struct rt_mcache *mc,
					     struct mcache_slot *slot)
{
	return slot->uninit ? &mc->slots[slot->sc] : slot;
}

// mcache_has_freed tells whether mcache_take_freed may find an object.  Such an
// object is on the shared list or, if slot is one for uninit, perhaps on a list
// of this thread.
RT_INLINE bool mcache_has_freed(struct rt_mcache *mc, struct mcache_slot *slot)
{
	return freelist_waits(slot->sc) || mcache_listing(mc, slot)->freed.head;
}

// mcache_take_freed takes such an object.  Returns NULL if there is none.
void *mcache_take_freed(struct rt_mcache *mc, struct mcache_slot *slot,
			bool uninit);

// mcache_set_span puts a span into a slot of the mcache.  That slot must have
// no span, and the span must have a free slot.
void mcache_set_span(struct rt_mcache *mc, struct mcache_slot *slot,
		     struct mspan *s);

// mcache_retire_slot counts a slot whose span is exhausted, and retires the
// span.
void mcache_retire_slot(struct rt_mcache *mc, struct rt_proc *p,
			struct mcache_slot *slot);

// mcache_flush retires every slot and the tiny block, and shares the lists of
// freed slots.  p is the calling thread's P, or NULL if it has none.  The
// mcache must be the caller's own, or its owner must be stopped.
void mcache_flush(struct rt_mcache *mc, struct rt_proc *p);

// mcache_flush_all flushes the mcaches of all attached threads, in order of
// their Ps, with one heapstats_acquire for each.  Then it frees all slots on
// the lists of freed ones.  It does that last, because each allocation must be
// published before the free of the same object.  The world must be stopped.  p
// is the stopper's P, or NULL.
void mcache_flush_all(struct rt_proc *p);

// mcache_flush_pages_all frees the pages and span records that any P keeps for
// itself.  The world must be stopped.
void mcache_flush_pages_all(void);

// mcache_flush_pages_blocked frees those of one P, if its thread is blocked.
// The caller must be running, with a P of its own, and hold no lock.
void mcache_flush_pages_blocked(struct rt_proc *p);

// mcache_of returns the mcache of a P's thread, or NULL if it has none (yet).
// The acquire pairs with the release in proc_set_thread.
RT_INLINE struct rt_mcache *mcache_of(const struct rt_proc *p)
{
	struct rt_thread *t = atomic_ptr_load_acquire(&p->thread);

	return t ? t->mc : NULL;
}

// mcache_publish_live adds what has gathered to heap_live.  The sum may be
// below zero: one thread may publish that it freed an object before the thread
// that allocated the object publishes that.  It is exact, so not below zero,
// once all mcaches have been flushed.
void mcache_publish_live(struct rt_mcache *mc);

// mcache_check returns NULL if all invariants of an mcache hold, flushed or
// not; otherwise what does not.  The caller must be its owner, or the owner
// must be stopped.  Debug builds call it whenever a slot gets or loses its
// span, and a kind its slots.
const char *mcache_check(const struct rt_mcache *mc);

// mcache_blocks_check returns NULL if all invariants of the blocks hold,
// otherwise what does not.  The caller must hold their lock, or have the world
// stopped.  When a block is kept or taken, debug builds check only the
// beginning of the list of kept ones.
const char *mcache_blocks_check(const struct mcache_blocks *b);

#endif
