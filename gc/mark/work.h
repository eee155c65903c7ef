// work.h - words still to be marked from, and the markers that have them.
//
// Go: workbuf, gcWork (mgcwork.go).
//
// A marker pushes words and pops the newest first.  Its stack is a chain of
// buffers, which it shares with no other marker until one has nothing to do.
// Then a busy marker gives that one the oldest half of its words, which lead to
// the most work.  A marker's first buffer is its own.  All others are cut from
// spans of the heap (in_work_bufs), which are freed after the marking
// (work_release).  A marker takes empty buffers from the pool, and frees them
// to it, a batch at a time: the stack of a random graph crosses from one buffer
// to the next every few dozen objects.  If the system refuses more, a push
// fails and the marker notes what to scan again, so marking cannot fail.
//
// Memory that is scanned word by word is shared before it becomes words: as
// jobs, numbered from the beginning, and as ranges.  A marker adds a range when
// it meets a large array or a deep stack; ranges are taken a piece at a time.
//
// What the markers agree on is under one lock.  A marker takes it when it has
// nothing left, to give work, and to add a range.  The opener is the marker
// that has begun the marking (work_open).  The markers agree on this:
//   - a marker is busy while it may hold words; a marker that is not busy waits
//     in work_get, has only joined, or was told that marking is over;
//   - a marker that gives work takes a waiting marker off the list, puts the
//     work into the record of that marker, and wakes it.  No other marker
//     wakes, and the woken one needs no lock to find its work;
//   - a marker that is the only busy one may be made alone.  Until it ends that
//     itself, by giving, by an offer or in work_get, no other marker can take
//     anything, so plain stores suffice for its marks;
//   - marking is over when no marker is busy and no job and no range is left;
//   - a marker that has something that only the opener may take offers it, and
//     sleeps until the opener has taken it.  It is busy meanwhile, so marking
//     is not over.  An opener that waits is made busy by the offer, as by any
//     other gift.
//
// The table says which pairs of operations by different threads need exclusion
// from outside (X), and which do not (-).  "stack" is what changes a marker's
// own words (work_push, work_pop, work_room, work_spill, work_more), "give" is
// work_share and work_add_range, "offer" work_offer, work_offers and
// work_taken, "hint" work_wanted, work_waiting and work_offered:
//
//            open  jobs  close  join  get  give  offer  stack  hint
//   open      X     X      X     -     -    X      X      X     -
//   jobs      X     X      X     -     -    X      X      X     -
//   close     X     X      X     -     -    X      X      X     -
//   join      -     -      -     -     -    -      -      -     -
//   get       -     -      -     -     -    -      -      -     -
//   give      X     X      X     -     -    -      -      -     -
//   offer     X     X      X     -     -    -      -      -     -
//   stack     X     X      X     -     -    -      -      -     -
//   hint      -     -      -     -     -    -      -      -     -
//
// Each operation on a record is called by the record's own marker, except
// work_taken, which the opener calls.  open, jobs (work_add_jobs), close and
// work_joined are the opener's, and since the world is stopped, only one thread
// can be the opener.  It calls them when no other marker is busy, and only a
// busy marker gives or has words.
#ifndef GC_MARK_WORK_H
#define GC_MARK_WORK_H

#include <rt/trace.h>

#include "runtime/os/lock.h"
#include "runtime/spans/mheap.h"

enum {
	WORK_BUF_BYTES = 2048,
	WORK_ENTRIES = (WORK_BUF_BYTES - 16) / 8,
	WORK_SPAN_PAGES = 4,
	WORK_BATCH = WORK_SPAN_PAGES * RT_PAGE_SIZE / WORK_BUF_BYTES,
	WORK_SPARES = 2 * WORK_BATCH, // most empty buffers of a marker
	WORK_SHARE = 16,	      // fewest entries that are halved
	WORK_FEW = 12,		      // entries that fit where top <= high
	WORK_PIECE = 128 << 10,	      // bytes of a range taken at once; Go:
				      // maxObletBytes
};

// What the words of a range keep alive.
enum work_words {
	WORK_ANY,	 // the object that a word points to or into
	WORK_REFERENCES, // the object that a word is a reference to
	WORK_INSIDE, // WORK_ANY of a stack, and some kinds have RT_KIND_BASE
	WORK_ENDS,   // the object that ends where a word points
	WORK_COPIED, // WORK_ANY of memory that may be unmapped (statics.h)
	WORK_VALUES, // what a value refers to; how is its rt_value_format
	WORK_STACK_VALUES, // WORK_VALUES of a stack, as WORK_INSIDE
	WORK_TAIL, // what an element of a tail refers to; how is the rt_type
};

// Words to be scanned, [lo, hi), 8-aligned.  Values and elements have stride
// bytes, all others 8.  There is no check function: work_add_range asserts
// bounds and stride.
struct work_range {
	uintptr_t lo;
	uintptr_t hi;
	const void *how;
	size_t stride;
	enum work_words words;
};

// work_piece returns the bytes of a piece of a range: whole strides.
RT_INLINE size_t work_piece(size_t stride)
{
	return stride > WORK_PIECE ? stride : WORK_PIECE - WORK_PIECE % stride;
}

// A buffer of entries or ranges.  work_check checks a marker's chains of them.
struct workbuf {
	RT_CACHE_ALIGNED struct workbuf *next;
	uint64_t n; // entries or ranges, while it is not a marker's current one
	union {
		struct rt_trace_entry entry[WORK_ENTRIES];
		struct work_range range[WORK_ENTRIES / 5];
	};
};
static_assert(sizeof(struct workbuf) == WORK_BUF_BYTES, "as in Go");

enum work_next {
	WORK_WAIT, // not returned by work_get
	WORK_JOB,
	WORK_RANGE,
	WORK_WORDS,
	WORK_OFFERS, // the opener only
	WORK_OVER,
};

// One marker's part of the work.  The host's callbacks push through its
// beginning.
struct work {
	struct rt_tracer t; // top: past the newest entry of the current buffer;
			    // limit: past its last place
	struct rt_trace_entry *bottom; // its first entry
	struct rt_trace_entry *high;   // WORK_FEW places before its end
	struct workbuf *full;	       // full buffers below it, newest first
	struct workbuf *spare;	       // empty buffers at hand
	uint32_t nfull;
	uint32_t nspare;
	uint32_t marking; // number of the marking it has joined
	bool alone;	  // see above; changed under the lock
	bool more;	  // a hint: there are jobs or ranges to take
	bool busy;
	bool opener;
	// What it has taken itself, or was given by the marker that wakes it.
	enum work_next got;
	uint32_t job;
	struct work_range range;
	struct note note;     // woken when got was set by another marker, or
			      // when its offer was taken
	struct work *waits;   // next in the list waiters, or in offers
	struct work *next;    // the marker that joined before it
	struct rt_proc *p;    // whose statistics count new spans
	struct workbuf first; // a marker always has one buffer
};

// What the markers agree on.  Busy markers read the atomics, as hints, all the
// time.
struct work_agreed {
	struct mutex lock;	// protects what follows
	struct work *waiters;	// newest first
	struct work *offers;	// markers that have one, newest first
	struct work *joined;	// this marking, newest first
	struct workbuf *ranges; // buffers of ranges that are left
	uint32_t next_job;
	uint32_t njobs;
	uint32_t marking; // its number, so that no marker joins it twice
	bool open;	  // a marking is under way
	bool alone;	  // the one busy marker is alone
	RT_CACHE_ALIGNED atomic_u32 waiting; // length of waiters and offers
	atomic_u32 offered;		     // length of offers
	atomic_u32 busy;		     // number of busy markers
};

struct work_pool {
	struct mutex lock;     // protects what follows
	struct workbuf *empty; // buffers without an owner
	struct mspan *spans;   // all that are in use
	uint32_t nspans;
};

RT_GLOBAL struct work_agreed work_agreed;
RT_GLOBAL struct work_pool work_pool;

// work_open begins marking with jobs 0 to njobs - 1 and the caller as its first
// marker.  The world must be stopped, and no other marking open.
void work_open(struct work *w, struct rt_proc *p, uint32_t njobs);

// work_join makes w a marker that has nothing yet.  Returns false if no marking
// is open, or if w has joined it before.
bool work_join(struct work *w, struct rt_proc *p);

// work_joined returns the newest of the markers that have joined this marking,
// linked by next, the opener last.  Only the opener may call it, when nothing
// is left.
struct work *work_joined(void);

// work_get waits until there is something for a marker whose stack is empty, or
// until marking is over.  It returns WORK_JOB with w->job, WORK_RANGE with
// w->range, WORK_WORDS with words on the stack, WORK_OFFERS for the opener if
// there are offers, or WORK_OVER.  For the marker that opened the marking, it
// is over when nothing is left; that marker is then busy and alone, and may
// continue.  For all others it is over once work_close was called.
enum work_next work_get(struct work *w);

// work_add_jobs adds jobs 0 to njobs - 1 anew.  Only the opener may call it,
// when marking is over for it, or before there was any job.
void work_add_jobs(struct work *w, uint32_t njobs);

// work_add_range adds a range, of which any marker may take pieces.  Returns
// false if a buffer for it is refused.
bool work_add_range(struct work *w, struct work_range range);

// work_close ends the marking.  The opener must call it, when marking is over
// for it.
void work_close(struct work *w);

// work_held returns the bytes of all spans of buffers.  work_release frees
// these spans.  p is the caller's P.  No marking may be open, and none may
// begin meanwhile; the world may run.
uint64_t work_held(void);
void work_release(struct rt_proc *p);

// work_share gives a marker that waits a job, a piece of a range, or half of
// w's words.  If none was given anything and w is the only busy marker, w is
// alone from then on.
void work_share(struct work *w);

// work_plenty tells whether w has something to give.
RT_INLINE bool work_plenty(const struct work *w)
{
	return w->full || w->t.top - w->bottom >= WORK_SHARE || w->more;
}

// work_offer tells the opener that w has something for it, and sleeps until the
// opener has taken it.  w must be busy, and not the opener.
void work_offer(struct work *w);

// work_offers returns the markers that have offered something, linked by waits,
// and takes them off the list.  Only the opener may call it.  It must read the
// link of each before it calls work_taken for that marker.
struct work *work_offers(struct work *opener);
void work_taken(struct work *w);

// work_offered tells whether there are offers.  It is only a hint.
RT_INLINE bool work_offered(void)
{
	return atomic_u32_load_relaxed(&work_agreed.offered) != 0;
}

// work_wanted tells whether work_share would change anything.  It is only a
// hint.
bool work_wanted(const struct work *w);

// work_waiting returns the number of markers that wait, for work or for the
// opener.  It is only a hint.
uint32_t work_waiting(void);

// work_spill makes an empty buffer the current one.  Returns false if it is
// refused.
bool work_spill(struct work *w);

// work_more replaces the current buffer, which must be empty, by the one below
// it.  Returns false if there is none.
bool work_more(struct work *w);

// work_room makes room for n entries, at most WORK_ENTRIES, in the current
// buffer.  Returns false if a buffer is refused.
RT_INLINE bool work_room(struct work *w, size_t n)
{
	return RT_LIKELY((size_t)(w->t.limit - w->t.top) >= n) || work_spill(w);
}

RT_INLINE bool work_push(struct work *w, uintptr_t entry)
{
	if (RT_UNLIKELY(w->t.top == w->t.limit) && !work_spill(w))
		return false;
	(w->t.top++)->word = entry;
	return true;
}

// work_any tells whether the current buffer has an entry.  work_pop takes the
// newest; there must be one.
RT_INLINE bool work_any(const struct work *w)
{
	return w->t.top != w->bottom;
}

RT_INLINE uintptr_t work_pop(struct work *w)
{
	return (--w->t.top)->word;
}

// work_fork_lock takes the lock for a fork, since a helper that comes too late
// for a marking may hold it.  No marking may be open.  work_fork_unlock
// releases it.
void work_fork_lock(void);
void work_fork_unlock(void);

#ifdef RT_TEST
// work_limit limits the pool to nspans spans.  UINT32_MAX means no limit.
void work_limit(uint32_t nspans);

// work_count_from makes the numbers of markings continue from n, and returns
// the last one.  No marking may be open.
uint32_t work_count_from(uint32_t n);
#endif

// work_check returns NULL if all invariants of a marker hold, otherwise what
// does not.  The marker's own thread must call it.  work_agreed_check and
// work_pool_check need the lock of what they check, or a stopped world in which
// no marking is open.
//
// Debug builds call work_check when a marker joins, and in work_get, where it
// has no full buffer.  At each change of buffer they check the first buffers
// only.  They call work_agreed_check at each change except in work_join and
// work_offers; it goes through the markers that wait.  They call
// work_pool_check in work_release.  Whenever buffers are taken or freed they
// check the newest span.
const char *work_check(const struct work *w);
const char *work_agreed_check(const struct work_agreed *a);
const char *work_pool_check(const struct work_pool *pool);

#endif
