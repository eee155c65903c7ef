// rescan.h - scans the marked objects of a page again.
//
// Go: none.
//
// Some objects to which a marked object refers may be unmarked, for example
// because there was no room to push them.  Then a marker scans that object
// again, and marks them.  Any marker may scan any page again at any time, while
// others mark.  It needs no more room than its own buffer.
//
// Objects of kinds with RT_KIND_SERIAL or RT_KIND_ONCE are for the opener.  For
// RT_KIND_ONCE, no other marker may be busy, because the callback may change
// the object.
#ifndef GC_MARK_RESCAN_H
#define GC_MARK_RESCAN_H

#include "gc/mark/grey.h"

// A walk over the objects that begin in a page.
struct rescan {
	const struct mspan *s;
	uintptr_t lo;  // of the page
	uint32_t slot; // the next
};

// rescan_is_openers tells whether the objects of a page are for the opener.
bool rescan_is_openers(uint64_t page);

// rescan_begin begins a walk.
void rescan_begin(struct rescan *r, uint64_t page);

// rescan_next scans the next object with a mark, and leaves some of what it
// leads to on m's stack.  Returns false if there is none.
bool rescan_next(struct rescan *r, struct marker *m);

// rescan_page scans all objects of a page.
void rescan_page(struct marker *m, uint64_t page);

#endif
