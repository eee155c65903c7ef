// scan.h - pushes the words of one object.
//
// Go: scanobject (mgcmark.go).
//
// Every aligned word that lies in the heap's range is pushed; whether it is a
// pointer is found out when it is popped.  Only the first piece of a large
// object is scanned at once.  The rest is a range from which any marker takes
// pieces, so the stack stays small.  Scanning never drains.
#ifndef GC_MARK_SCAN_H
#define GC_MARK_SCAN_H

#include "gc/mark/grey.h"

enum {
	SCAN_BLOCK = 512, // bytes for which room is made at once
};

// scan_block pushes the words of [lo, hi) that lie in the heap's range.  lo and
// hi must be 8-aligned, and there must be room for every word.
//
// Words are read without a sanitizer's checks, because the host may have
// poisoned part of the object.
RT_NO_SANITIZE
static inline void scan_block(struct marker *m, uintptr_t lo, uintptr_t hi)
{
	uintptr_t base = m->base;
	uint64_t used = m->used;
	uintptr_t *top = &m->work.t.top->word;

	for (; lo < hi; lo += sizeof(uintptr_t)) {
		uintptr_t w = poison_load(lo);

		if ((uint64_t)(w - base) < used)
			*top++ = w;
	}
	m->work.t.top = (struct rt_trace_entry *)top;
}

// scan_words pushes the words of [lo, hi), both 8-aligned.  Returns hi, or the
// address from which on room was refused.
uintptr_t scan_words(struct marker *m, uintptr_t lo, uintptr_t hi);

// scan_is_reference tells whether a word is a reference: the address of an
// object, without a tag, and not an address inside the object.  The word must
// lie in the heap's range.
bool scan_is_reference(const struct marker *m, uintptr_t w);

// scan_references is scan_words for references only.
uintptr_t scan_references(struct marker *m, uintptr_t lo, uintptr_t hi);

// scan_from_stack is scan_words for words of a stack.  It pushes what
// grey_from_stack returns for each.
uintptr_t scan_from_stack(struct marker *m, uintptr_t lo, uintptr_t hi);

// scan_overflow shows the mark of the object at base, and notes that the object
// must be scanned again.
void scan_overflow(struct marker *m, uintptr_t base);

// scan_wide pushes the words of an object of size bytes that was just marked.
// If the object is large, it pushes only those of the first piece.  If they do
// not fit, it notes the overflow.
void scan_wide(struct marker *m, uintptr_t base, uint64_t size);

static_assert(GREY_SMALL_BYTES <= WORK_FEW * sizeof(uintptr_t),
	      "a small object fits");

// scan_small is scan_wide for an object of a few whole granules.
RT_NO_SANITIZE
static inline void scan_small(struct marker *m, const struct grey *o)
{
	uintptr_t at = o->base, end = o->base + o->size;
	uintptr_t base = m->base;
	uint64_t used = m->used;
	uintptr_t *top = &m->work.t.top->word;

	if (RT_UNLIKELY(m->work.t.top > m->work.high)) {
		scan_wide(m, o->base, o->size);
		return;
	}
	do {
		uintptr_t w = poison_load(at);
		uintptr_t next = poison_load(at + sizeof w);

		if ((uint64_t)(w - base) < used)
			*top++ = w;
		if ((uint64_t)(next - base) < used)
			*top++ = next;
		at += 2 * sizeof w;
	} while (at != end);
	m->work.t.top = (struct rt_trace_entry *)top;
}

#endif
