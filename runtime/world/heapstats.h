// heapstats.h - heap statistics that are read whole or not at all.
//
// Go: consistentHeapStats, heapStatsDelta (mstats.go).
//
// There are three slots.  Every writer adds its changes to the current one,
// whose number is gen.  A reader moves gen on, so later changes go to the next
// slot.  It waits until each P was seen outside a change (its stats_seq even),
// and may then read the slot that was current.  It folds the older slot into
// the one that was current, and clears the older.
//
// Why three slots: one takes new changes the moment gen has moved, one is
// being read while late writers still finish in it, and one holds the history
// that is folded.  With two, a writer that came after the move would write
// into the slot that the reader is about to clear.
//
// Order (Dekker): a writer raises its stats_seq, then loads gen; the reader
// stores gen, then loads every stats_seq.  All four are seqcst.  A P enters the
// list before its first change, and the reader moves gen before it walks the
// list.  So a P that it misses because the P came later writes to the new slot.
// A P that it misses because the P has left has completed its last change
// (proc.h says what a walk meets).
//
// Writers without a P take a lock, which excludes other such writers and the
// moving of gen.  One thread at a time reads, under the reader lock.  Readers
// never wait for a collection, only for other readers and for writers, whose
// changes are short.
//
// The table says which pairs of operations need exclusion from outside (X), and
// which do not (-).  A change is all from heapstats_acquire to
// heapstats_release:
//
//                   change  read  unsafe_read  unsafe_clear
//   change            -      -         X            X
//   read              -      -         -            X
//   unsafe_read       X      -         -            X
//   unsafe_clear      X      X         X            X
//
// Two changes of one P exclude each other, because only its thread makes them.
// Between heapstats_fork_lock and heapstats_fork_unlock, both reads wait, and
// so do the changes of threads without a P.  The changes of Ps go on.
#ifndef RUNTIME_WORLD_HEAPSTATS_H
#define RUNTIME_WORLD_HEAPSTATS_H

#include "runtime/base/sizeclass.h"
#include "runtime/world/proc.h"

// The sum over the slots is the change since the heap began.  Byte counts may
// be negative in one slot.  The field names are Go's.
#define HEAPSTATS_FIELDS(T)                                                    \
	T committed;	      /* bytes of the heap's range in use or free */   \
	T released;	      /* bytes released, or never used */              \
	T in_heap;	      /* bytes in heap spans */                        \
	T in_stacks;	      /* bytes in stack spans */                       \
	T in_work_bufs;	      /* bytes in work buffer spans */                 \
	T in_ptr_scalar_bits; /* 0: no type bitmap is unrolled */              \
	T tiny_alloc_count;   /* combined tiny allocations */                  \
	T large_alloc;	      /* bytes */                                      \
	T large_alloc_count;                                                   \
	T small_alloc_count[SIZECLASS_COUNT];                                  \
	T large_free; /* bytes */                                              \
	T large_free_count;                                                    \
	T small_free_count[SIZECLASS_COUNT];

// One part of each sum.  There is no check function: a part alone may have any
// value, since what one thread adds another subtracts.  heapstats_totals_check
// checks the sums.
struct heapstats_delta {
	HEAPSTATS_FIELDS(atomic_u64)
};

struct heapstats_totals {
	HEAPSTATS_FIELDS(uint64_t)
};

static_assert(sizeof(struct heapstats_delta) == sizeof(struct heapstats_totals),
	      "summed word by word");

enum { HEAPSTATS_SLOTS = 3 }; // heapstats_unsafe_read names them one by one

struct heapstats {
	RT_CACHE_ALIGNED struct heapstats_delta slots[HEAPSTATS_SLOTS];
	RT_CACHE_ALIGNED atomic_u32 gen; // the slot that takes changes
	struct mutex no_p;		 // writers without a P; the move of gen
	struct mutex reader; // one reader folds, sums, or reads CPU time
};

RT_GLOBAL struct heapstats heapstats;

// heapstats_acquire begins a change and returns the delta to change;
// heapstats_release ends it.  p must be the calling thread's P, or NULL if it
// has none or is in a blocking region.  Between the two the caller must call
// only heapstats_add, and must not wait.  Changes do not nest.
struct heapstats_delta *heapstats_acquire(struct rt_proc *p);
void heapstats_release(struct rt_proc *p);

RT_INLINE void heapstats_add(atomic_u64 *field, uint64_t n)
{
	atomic_u64_add_relaxed(field, n);
}

// heapstats_read takes a snapshot as of one moment.  Any thread may call it,
// attached or not, even inside a blocking region.
void heapstats_read(struct heapstats_totals *out);

// heapstats_unsafe_read sums the slots.  The world must be stopped.
void heapstats_unsafe_read(struct heapstats_totals *out);

// heapstats_unsafe_clear sets everything to 0.  There must be no heap, or the
// world must be stopped.
void heapstats_unsafe_clear(void);

// heapstats_fork_lock takes the locks of readers and of writers without a P for
// a fork; heapstats_fork_unlock releases them.
void heapstats_fork_lock(void);
void heapstats_fork_unlock(void);

// heapstats_retained returns the bytes in heap spans and in free pages that are
// not released.
//
// Go: retained (readmemstats_m, mstats.go).
RT_INLINE uint64_t heapstats_retained(const struct heapstats_totals *t)
{
	return t->committed - t->in_stacks - t->in_work_bufs -
	       t->in_ptr_scalar_bits;
}

// heapstats_check returns NULL if all invariants hold, otherwise what does not.
// The caller must hold heapstats.reader.  Debug builds call it when a live read
// has folded.
const char *heapstats_check(const struct heapstats *h);

// heapstats_totals_check checks sums taken as of one moment: no use of memory
// is negative, and not more was freed than allocated.  Returns NULL or what
// does not hold.  Debug builds call it for each live snapshot.
const char *heapstats_totals_check(const struct heapstats_totals *t);

#endif
