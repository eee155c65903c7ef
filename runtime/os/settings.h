// settings.h - what a heap is made with.
//
// Go: readGOGC, readGOMEMLIMIT (mgcpacer.go), parsedebugvars (runtime1.go).
//
// One table knows the fields of rt_config: place, range, and the name under
// which the environment may set them.
#ifndef RUNTIME_OS_SETTINGS_H
#define RUNTIME_OS_SETTINGS_H

#include <rt/config.h>

#include "runtime/base/base.h"

enum {
	SETTINGS_MAX_PROCS = 4096, // also the most helper threads
	// Bytes of an rt_config that a host may have been compiled with.
	SETTINGS_MIN_STRUCT = sizeof(((rt_config *)0)->struct_size),
	SETTINGS_MAX_STRUCT = 4096,
};
#define SETTINGS_MAX_HEAP (INT64_C(1) << 40)

// The settings of the heap that there is, as settings_resolve made them; all 0
// without one.  Written before the heap is ready and after it has ended.  What
// a function of the host may change later is with its module, which begins with
// what is here: the percent, the double check.
RT_GLOBAL rt_config settings;

// settings_default writes the defaults to the size bytes at c, at least
// SETTINGS_MIN_STRUCT.
void settings_default(rt_config *c, size_t size);

// settings_initialised tells whether struct_size can be true, and whether the
// host set nothing that this version does not know.
bool settings_initialised(const rt_config *c);

// settings_from_env sets the fields of an initialised *c that the environment
// names.  Returns false if it was told something that makes no sense; the rest
// is set all the same.
bool settings_from_env(rt_config *c);

// settings_resolve checks *in (NULL: all defaults) and writes what it means to
// *out: a whole struct of this version, in which no number stands for a
// default but max_heap == 0, for which see arena_init.  gc_percent is -1 when
// off, gc_threads is a number of threads, stop_signal a signal or -1.
//
// Returns RT_OK, or RT_EINVAL with *out undefined.
int settings_resolve(const rt_config *in, rt_config *out);

#endif
