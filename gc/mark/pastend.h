// pastend.h - words that equal an object's end.
//
// C permits a pointer just behind an object, and compilers make some.  With
// rt_config.past_end, such a word on a stack or in a register keeps the object.
// Every pointer to an object is such a word for the one below it, so most words
// are looked at in vain: the test of a word is two bits beside each other.
//
// Stacks are looked at when all else is marked: then an object that is found is
// kept by this rule alone, and is counted.
#ifndef GC_MARK_PASTEND_H
#define GC_MARK_PASTEND_H

#include "gc/mark/scan.h"

// pastend_scan marks the objects that end where words of [lo, hi), both
// 8-aligned, point, and pushes their words.  It publishes its marks.
void pastend_scan(struct marker *m, uintptr_t lo, uintptr_t hi);

#endif
