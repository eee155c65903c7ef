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
//   - a marker is busy while it may hold words, else it waits in gcwork_get;
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
	GCWORK_BUF_BYTES = 2048,
	GCWORK_ENTRIES = (GCWORK_BUF_BYTES - 16) / 8,
	GCWORK_SPAN_PAGES = 4,
	GCWORK_BATCH = GCWORK_SPAN_PAGES * RT_PAGE_SIZE / GCWORK_BUF_BYTES,
	GCWORK_SPARES = 2 * GCWORK_BATCH, // most empty buffers of a marker
	GCWORK_SHARE = 16,	  // fewest entries of which half are given
	GCWORK_FEW = 12,	  // entries that fit where top <= high
	GCWORK_PIECE = 128 << 10, // bytes of a range taken at once; Go:
				  // maxObletBytes
};

// What the words of a range keep alive.
enum gcwork_words {
	GCWORK_ANY,	   // the object that a word points to or into
	GCWORK_REFERENCES, // the object that a word is a reference to
	GCWORK_ENDS,	   // the object that ends where a word points
};

// Words to be scanned, [lo, hi), 8-aligned.
struct gcwork_range {
	uintptr_t lo;
	uintptr_t hi;
	enum gcwork_words words;
};

struct gcworkbuf {
	RT_CACHE_ALIGNED struct gcworkbuf *next;
	uint64_t n; // entries or ranges, while it is not a marker's current one
	union {
		uintptr_t entry[GCWORK_ENTRIES];
		struct gcwork_range range[GCWORK_ENTRIES / 3];
	};
};
static_assert(sizeof(struct gcworkbuf) == GCWORK_BUF_BYTES, "as in Go");

enum gcwork_next {
	GCWORK_WAIT, // not returned by gcwork_get
	GCWORK_JOB,
	GCWORK_RANGE,
	GCWORK_WORDS,
	GCWORK_OVER,
};

// One marker's end of the work.  The pointers have a type of their own, so
// that storing an entry does not make the compiler load them again.
struct gcwork {
	uintptr_t *top;		// behind the newest entry of the current buffer
	uintptr_t *bottom;	// its first entry
	uintptr_t *limit;	// behind its last place
	uintptr_t *high;	// GCWORK_FEW places before limit
	struct gcworkbuf *full; // under the current one, newest first
	struct gcworkbuf *spare; // empty ones at hand
	uint32_t nfull;
	uint32_t nspare;
	uint32_t marking; // which marking it has joined
	bool alone;	  // see above; changed under the lock
	bool more;	  // a hint: there are jobs or ranges to take
	bool busy;
	bool opener;
	// What it was given, by itself or by the marker that wakes it.
	enum gcwork_next got;
	uint32_t job;
	struct gcwork_range range;
	struct note note;	// woken when it was given something
	struct gcwork *waits;	// that waits longer
	struct gcwork *next;	// that has joined before
	struct rt_proc *p;	// whose statistics count new spans
	struct gcworkbuf first; // never runs out
};

// gcwork_open begins marking with jobs 0 to njobs - 1 and the caller as its
// first marker.  One marking at a time; world stopped.
void gcwork_open(struct gcwork *w, struct rt_proc *p, uint32_t njobs);

// gcwork_join makes w a marker that waits; false: no marking is open, or w has
// joined it before.
bool gcwork_join(struct gcwork *w, struct rt_proc *p);

// gcwork_joined is the first of those that have joined this marking, linked by
// next, the opener last; for the opener when nothing is left.
struct gcwork *gcwork_joined(void);

// gcwork_get waits until there is something for a marker whose stack is empty:
// GCWORK_JOB in w->job, GCWORK_RANGE in w->range, or words on its stack; or
// until marking is over.  For the marker that opened the marking, it is over
// when nothing is left; that marker is then busy and alone, and may continue.
// For all others it is over once gcwork_close was called.
enum gcwork_next gcwork_get(struct gcwork *w);

// gcwork_add_jobs is for the opener when marking is over for it: there are jobs
// 0 to njobs - 1 again.
void gcwork_add_jobs(struct gcwork *w, uint32_t njobs);

// gcwork_add_range lets any marker take pieces of a range; false: refused.
bool gcwork_add_range(struct gcwork *w, struct gcwork_range range);

// gcwork_close ends marking, which is over, by its opener; the buffers go back
// to the heap.
void gcwork_close(struct gcwork *w);

// gcwork_share gives a marker that waits a job, a piece of a range, or half of
// the words; where w has nothing to give, it finds out whether it is alone.
void gcwork_share(struct gcwork *w);

// gcwork_plenty tells whether w has something to give.
RT_INLINE bool gcwork_plenty(const struct gcwork *w)
{
	return w->full || w->top - w->bottom >= GCWORK_SHARE || w->more;
}

// gcwork_wanted tells whether gcwork_share would change anything; a hint.
bool gcwork_wanted(const struct gcwork *w);

// gcwork_waiting is the number of markers that wait; a hint.
uint32_t gcwork_waiting(void);

// gcwork_spill makes an empty buffer the current one; false: refused.
bool gcwork_spill(struct gcwork *w);

// gcwork_more makes the buffer under the current one, which is empty, the
// current one; false: there is none.
bool gcwork_more(struct gcwork *w);

// gcwork_room sees to it that n entries fit into the current buffer, at most
// GCWORK_ENTRIES; false: refused.
RT_INLINE bool gcwork_room(struct gcwork *w, size_t n)
{
	return RT_LIKELY((size_t)(w->limit - w->top) >= n) || gcwork_spill(w);
}

RT_INLINE bool gcwork_push(struct gcwork *w, uintptr_t entry)
{
	if (RT_UNLIKELY(w->top == w->limit) && !gcwork_spill(w))
		return false;
	*w->top++ = entry;
	return true;
}

// gcwork_any tells whether the current buffer has an entry; gcwork_pop takes
// the newest.
RT_INLINE bool gcwork_any(const struct gcwork *w)
{
	return w->top != w->bottom;
}

RT_INLINE uintptr_t gcwork_pop(struct gcwork *w)
{
	return *--w->top;
}

// gcwork_hold takes the lock for a fork, while no marking runs: a helper that
// comes too late may hold it.  gcwork_let_go releases it.
void gcwork_hold(void);
void gcwork_let_go(void);

// gcwork_limit lets at most nspans spans be used (tests); UINT32_MAX: all.
void gcwork_limit(uint32_t nspans);

// gcwork_count_from makes the numbers of markings continue from n, and returns
// the last one.  For tests, while nothing is marked.
uint32_t gcwork_count_from(uint32_t n);

#endif
