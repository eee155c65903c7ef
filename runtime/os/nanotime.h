// nanotime.h - clocks in nanoseconds.
//
// Go: nanotime, unixnano (time_nofake.go).
//
// A clock that the system refuses reads 0.  So code must check a time before it
// divides by it or uses it as an index.
#ifndef RUNTIME_OS_NANOTIME_H
#define RUNTIME_OS_NANOTIME_H

#include "runtime/os/oscall.h"

// nanotime returns monotonic time.
RT_INLINE uint64_t nanotime(void)
{
	return oscall_monotonic();
}

// nanotime_unix returns the time since 1970.
RT_INLINE uint64_t nanotime_unix(void)
{
	return oscall_realtime();
}

#endif
