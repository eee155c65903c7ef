// work.h - words that still have to be looked at.  Floor 6.
//
// Go: workbuf, gcWork (mgcwork.go).
//
// A marker pushes words and pops the newest first.  Its own buffer is at hand
// always; full ones go to a shared stack, where any marker may take them.
// Buffers are cut from spans of the heap (in_work_bufs) and all go back when
// marking is over.  When the system refuses more, a push fails, and the
// marker remembers what to scan again; so nothing can fail here.
//
// An entry is a word cleared of its low three bits, or, with bit 0 set, the
// address at which the scan of a large object goes on.
#ifndef GC_WORK_H
#define GC_WORK_H

#include "runtime/lfstack.h"
#include "runtime/mheap.h"

enum {
	GCWORK_BUF_BYTES = 2048,
	GCWORK_ENTRIES = (GCWORK_BUF_BYTES - 16) / 8,
	GCWORK_SPAN_PAGES = 4,
	GCWORK_MORE = 1, // entry: go on scanning here
};

struct gcworkbuf {
	RT_CACHE_ALIGNED struct lfnode node;
	uint64_t n; // entries, while no marker has it
	uintptr_t entry[GCWORK_ENTRIES];
};
static_assert(sizeof(struct gcworkbuf) == GCWORK_BUF_BYTES, "as in Go");

// One marker's end of the work.  The pointers have a type of their own, so
// that storing an entry does not make the compiler load them again.
struct gcwork {
	uintptr_t *top;		// behind the newest entry of the current buffer
	uintptr_t *bottom;	// its first entry
	uintptr_t *limit;	// behind its last place
	struct rt_proc *p;	// whose statistics count new spans
	struct gcworkbuf first; // never runs out
};

void gcwork_init(struct gcwork *w, struct rt_proc *p);

// gcwork_spill makes room in a full current buffer; false: refused.
bool gcwork_spill(struct gcwork *w);

// gcwork_more makes a shared full buffer the current one, which is empty;
// false: none.
bool gcwork_more(struct gcwork *w);

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

// gcwork_release gives all buffers back to the heap; nothing is left in them.
void gcwork_release(struct rt_proc *p);

// gcwork_limit lets at most nspans spans be used (tests); UINT32_MAX: all.
void gcwork_limit(uint32_t nspans);

#endif
