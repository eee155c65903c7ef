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
	uint64_t n;
	uintptr_t entry[GCWORK_ENTRIES];
};
static_assert(sizeof(struct gcworkbuf) == GCWORK_BUF_BYTES, "as in Go");

// One marker's end of the work.
struct gcwork {
	struct gcworkbuf *buf; // current
	struct rt_proc *p;     // whose statistics count new spans
	struct gcworkbuf first; // never runs out
};

void gcwork_init(struct gcwork *w, struct rt_proc *p);

// gcwork_spill makes room in a full current buffer; false: refused.
bool gcwork_spill(struct gcwork *w);

// gcwork_more makes a shared full buffer the current one; false: none.
bool gcwork_more(struct gcwork *w);

RT_INLINE bool gcwork_push(struct gcwork *w, uintptr_t entry)
{
	if (RT_UNLIKELY(w->buf->n == GCWORK_ENTRIES) && !gcwork_spill(w))
		return false;
	w->buf->entry[w->buf->n++] = entry;
	return true;
}

// gcwork_pop returns 0 when nothing is left here or shared.
RT_INLINE uintptr_t gcwork_pop(struct gcwork *w)
{
	if (RT_UNLIKELY(w->buf->n == 0) && !gcwork_more(w))
		return 0;
	return w->buf->entry[--w->buf->n];
}

// gcwork_release gives all buffers back to the heap; nothing is left in them.
void gcwork_release(struct rt_proc *p);

// gcwork_limit lets at most nspans spans be used (tests); UINT32_MAX: all.
void gcwork_limit(uint32_t nspans);

#endif
