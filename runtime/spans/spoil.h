// spoil.h - overwrites and poisons freed memory, so that its use is noticed.
//
// Go: clobberfree (mgcsweep.go).
#ifndef RUNTIME_SPANS_SPOIL_H
#define RUNTIME_SPANS_SPOIL_H

#include "runtime/os/settings.h"
#include "runtime/os/poison.h"

// clobberfree overwrites freed objects with this word, which is no address.
#define SPOIL_CLOBBER UINT64_C(0xdeadbeefdeadbeef)

// spoil_on tells whether the settings want freed objects to be spoiled.
RT_INLINE bool spoil_on(void)
{
	return settings()->clobberfree != 0 || poison_on;
}

// spoil_object overwrites a freed object if clobberfree is set, and poisons it
// if poison_on is true.
void spoil_object(void *p, uint64_t bytes);

#endif
