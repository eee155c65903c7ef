// pastend.h - words that equal an object's end.
//
// Go: none, because its compiler makes no such pointer.
//
// C permits a pointer just past an object, and compilers make some.  With
// rt_config.past_end, such a word on a stack or in a register keeps the object.
// Every pointer to an object also equals the end of the one below it, so most
// words are tested in vain.  For most, the test reads a pageword and two bits
// beside each other.
//
// Stacks are scanned for such words when all else is marked.  So an object that
// is found then is kept by this rule alone, and is counted.
#ifndef GC_MARK_PASTEND_H
#define GC_MARK_PASTEND_H

#include "gc/mark/trace.h"

// pastend_scan marks the objects whose end a word of [lo, hi) equals, and
// pushes their words.  lo and hi must be 8-aligned.  It publishes its marks.
void pastend_scan(struct marker *m, uintptr_t lo, uintptr_t hi);

#endif
