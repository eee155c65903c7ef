// tracecheck.h - finds references that no callback and no bitmap told, and
// pointers that a callback told for nothing.
//
// Go: none.
//
// After marking, every marked object that a callback or a type describes is
// asked once more for its references, and all its words are looked at.  Dead
// objects that wait for their destructors are left out.  A word that leads to
// another object is a site (sites.h) if no told reference leads to that object.
// The other object is marked all the same, or is about to be freed.
//
// A pointer that a callback tells, but that RT_KIND_BASE of its target ignores,
// is a site as well.
//
// Nothing is marked, so nothing is kept alive by this.  The lines of the report
// are added to the notices (notices.h).
#ifndef GC_MARK_TRACECHECK_H
#define GC_MARK_TRACECHECK_H

#include "runtime/base/base.h"

enum { TRACECHECK_LINES = 64 }; // the most sites that a collection reports

// tracecheck_all looks at these objects.  The world must be stopped, every run
// retired, and marking over.
void tracecheck_all(void);

#endif
