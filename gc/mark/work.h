// work.h - words that still have to be looked at, and who holds them.
//
// Go: workbuf, gcWork (mgcwork.go).
//
// A marker pushes words and pops the newest first.  Its stack is a chain of
// buffers and its own alone: nothing is shared until another marker has
// nothing to do.  Then a busy marker hands that one the oldest half of what it
// has, which leads to the most work.  Buffers are cut from spans of the heap
// (in_work_bufs), and all go back when marking is over.  A marker takes empty
// ones from the pool, and gives them back, a batch at a time: the stack of a
// random graph crosses a border every few dozen objects.  When the system
// refuses more, a push fails, and the marker remembers what to scan again; so
// nothing can fail here.
//
// Memory that is scanned word by word is shared before it becomes words: jobs,
// numbered from the beginning, and ranges, which a marker adds when it meets a
// large array or a deep stack, and which are taken a piece at a time.
//
// What the markers agree on is under one lock, taken only by a marker that has
// nothing left, and by one that gives:
//   - a marker is busy while it may hold words, else it waits in work_get;
//   - a marker that gives takes one off the list of those that wait, puts the
//     work into that marker's own record, and wakes it: no other marker wakes,
//     and the one that does needs no lock to find its work;
//   - a marker is alone when it was the only busy one.  Until it ends that
//     itself, by giving, no other marker can take anything, so plain stores do
//     for its marks;
//   - marking is over when no marker is busy and no job and no range is left.
#ifndef GC_MARK_WORK_H
#define GC_MARK_WORK_H

#include "runtime/os/lock.h"
#include "runtime/spans/mheap.h"

enum {
	WORK_BUF_BYTES = 2048,
	WORK_ENTRIES = (WORK_BUF_BYTES - 16) / 8,
	WORK_SPAN_PAGES = 4,
	WORK_BATCH = WORK_SPAN_PAGES * RT_PAGE_SIZE / WORK_BUF_BYTES,
	WORK_SPARES = 2 * WORK_BATCH, // most empty buffers of a marker
	WORK_SHARE = 16,	      // fewest entries of which half are given
	WORK_FEW = 12,		      // entries that fit where top <= high
	WORK_PIECE = 128 << 10,	      // bytes of a range taken at once; Go:
				      // maxObletBytes
};

// What the words of a range keep alive.
enum work_words {
	WORK_ANY,	 // the object that a word points to or into
	WORK_REFERENCES, // the object that a word is a reference to
	WORK_ENDS,	 // the object that ends where a word points
};

// Words to be scanned, [lo, hi), 8-aligned.
struct work_range {
	uintptr_t lo;
	uintptr_t hi;
	enum work_words words;
};

struct workbuf {
	RT_CACHE_ALIGNED struct workbuf *next;
	uint64_t n; // entries or ranges, while it is not a marker's current one
	union {
		uintptr_t entry[WORK_ENTRIES];
		struct work_range range[WORK_ENTRIES / 3];
	};
};
static_assert(sizeof(struct workbuf) == WORK_BUF_BYTES, "as in Go");

enum work_next {
	WORK_WAIT, // not returned by work_get
	WORK_JOB,
	WORK_RANGE,
	WORK_WORDS,
	WORK_OVER,
};

// One marker's end of the work.  The pointers have a type of their own, so
// that storing an entry does not make the compiler load them again.
struct work {
	uintptr_t *top;	       // behind the newest entry of the current buffer
	uintptr_t *bottom;     // its first entry
	uintptr_t *limit;      // behind its last place
	uintptr_t *high;       // WORK_FEW places before limit
	struct workbuf *full;  // under the current one, newest first
	struct workbuf *spare; // empty ones at hand
	uint32_t nfull;
	uint32_t nspare;
	uint32_t marking; // which marking it has joined
	bool alone;	  // see above; changed under the lock
	bool more;	  // a hint: there are jobs or ranges to take
	bool busy;
	bool opener;
	// What it was given, by itself or by the marker that wakes it.
	enum work_next got;
	uint32_t job;
	struct work_range range;
	struct note note;     // woken when it was given something
	struct work *waits;   // that waits longer
	struct work *next;    // that has joined before
	struct rt_proc *p;    // whose statistics count new spans
	struct workbuf first; // never runs out
};

// work_open begins marking with jobs 0 to njobs - 1 and the caller as its
// first marker.  One marking at a time; world stopped.
void work_open(struct work *w, struct rt_proc *p, uint32_t njobs);

// work_join makes w a marker that waits; false: no marking is open, or w has
// joined it before.
bool work_join(struct work *w, struct rt_proc *p);

// work_joined is the first of those that have joined this marking, linked by
// next, the opener last; for the opener when nothing is left.
struct work *work_joined(void);

// work_get waits until there is something for a marker whose stack is empty:
// WORK_JOB in w->job, WORK_RANGE in w->range, or words on its stack; or
// until marking is over.  For the marker that opened the marking, it is over
// when nothing is left; that marker is then busy and alone, and may continue.
// For all others it is over once work_close was called.
enum work_next work_get(struct work *w);

// work_add_jobs is for the opener when marking is over for it: there are jobs
// 0 to njobs - 1 again.
void work_add_jobs(struct work *w, uint32_t njobs);

// work_add_range lets any marker take pieces of a range; false: refused.
bool work_add_range(struct work *w, struct work_range range);

// work_close ends marking, which is over, by its opener; the buffers go back
// to the heap.
void work_close(struct work *w);

// work_share gives a marker that waits a job, a piece of a range, or half of
// the words; where w has nothing to give, it finds out whether it is alone.
void work_share(struct work *w);

// work_plenty tells whether w has something to give.
RT_INLINE bool work_plenty(const struct work *w)
{
	return w->full || w->top - w->bottom >= WORK_SHARE || w->more;
}

// work_wanted tells whether work_share would change anything; a hint.
bool work_wanted(const struct work *w);

// work_waiting is the number of markers that wait; a hint.
uint32_t work_waiting(void);

// work_spill makes an empty buffer the current one; false: refused.
bool work_spill(struct work *w);

// work_more makes the buffer under the current one, which is empty, the
// current one; false: there is none.
bool work_more(struct work *w);

// work_room sees to it that n entries fit into the current buffer, at most
// WORK_ENTRIES; false: refused.
RT_INLINE bool work_room(struct work *w, size_t n)
{
	return RT_LIKELY((size_t)(w->limit - w->top) >= n) || work_spill(w);
}

RT_INLINE bool work_push(struct work *w, uintptr_t entry)
{
	if (RT_UNLIKELY(w->top == w->limit) && !work_spill(w))
		return false;
	*w->top++ = entry;
	return true;
}

// work_any tells whether the current buffer has an entry; work_pop takes
// the newest.
RT_INLINE bool work_any(const struct work *w)
{
	return w->top != w->bottom;
}

RT_INLINE uintptr_t work_pop(struct work *w)
{
	return *--w->top;
}

// work_fork_lock takes the lock for a fork, while no marking runs: a helper
// that comes too late may hold it.  work_fork_unlock releases it.
void work_fork_lock(void);
void work_fork_unlock(void);

// work_limit lets at most nspans spans be used (tests); UINT32_MAX: all.
void work_limit(uint32_t nspans);

// work_count_from makes the numbers of markings continue from n, and returns
// the last one.  For tests, while nothing is marked.
uint32_t work_count_from(uint32_t n);

#endif
