// config.h - the configuration a heap is made with.
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
	CONFIG_MAX_PROCS = 4096,  // also the most helper threads
	CONFIG_MAX_STRUCT = 4096, // a longer rt_config was not initialised
};
#define CONFIG_MAX_HEAP (INT64_C(1) << 40)

// config_resolve checks *in (NULL: all defaults) and writes what it means to
// *out: a whole struct of this version, in which no number stands for a
// default but max_heap == 0, which arena_init knows.  gc_percent is -1 when
// off, gc_threads is a number of threads, stop_signal a signal or -1.
//
// Returns RT_OK, or RT_EINVAL with *out undefined.
int config_resolve(const rt_config *in, rt_config *out);

#endif
