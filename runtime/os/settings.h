// settings.h - the configuration that a heap is made with.
//
// Go: readGOGC, readGOMEMLIMIT (mgcpacer.go), parsedebugvars (runtime1.go).
//
// One table (settings.c) has the place, the range and the name of each numeric
// field of rt_config after struct_size, and whether an item of RTDEBUG may set
// it.
#ifndef RUNTIME_OS_SETTINGS_H
#define RUNTIME_OS_SETTINGS_H

#include <rt/config.h>

#include "runtime/base/base.h"

enum {
	SETTINGS_MAX_PROCS = 4096, // of max_procs and of gc_threads
	// Bytes of the rt_config that a host may have been compiled with.
	SETTINGS_MIN_STRUCT = sizeof(((rt_config *)0)->struct_size),
	SETTINGS_MAX_STRUCT = 4096,
};
#define SETTINGS_MAX_HEAP (INT64_C(1) << 40)

// Only settings.c and tests write this.  It is not const, because each heap of
// a process has its own settings.
RT_GLOBAL rt_config settings_present;

// settings returns the settings of the present heap.  They are written before
// the heap is ready, and set to 0 when it ends.  A value that the host may
// change later, such as the percent and the double check, is in the module that
// uses it; only the first value is here.
RT_INLINE const rt_config *settings(void)
{
	return &settings_present;
}

// settings_begin makes *c, which settings_resolve has written, the settings of
// a heap that begins.  It leaves out what may not be valid later: the mask of
// processors, of which oscall has a copy, and the format of stacks, of which
// roots has one.  settings_end ends them.  The caller must be the thread that
// makes or ends the heap.
void settings_begin(const rt_config *c);
void settings_end(void);

// settings_heap_min returns the least heap goal, in bytes, for a value of
// rt_config.heap_min.
size_t settings_heap_min(size_t bytes);

// settings_default writes the defaults to the size bytes at c.  size must be at
// least SETTINGS_MIN_STRUCT.
void settings_default(rt_config *c, size_t size);

// settings_known tells whether the host's struct at s, of size bytes, can be
// read as one of known bytes.  Its size must not be below least, the size that
// every host's struct has.  The bytes that this version does not know must be
// 0.
bool settings_known(const void *s, size_t size, size_t least, size_t known);

// settings_initialised tells whether struct_size is possible, and the host set
// no field that this version does not know.
bool settings_initialised(const rt_config *c);

// settings_from_env sets the fields of *c that the environment names.  *c must
// be initialised.  Returns false if a part of the environment makes no sense;
// the rest has its effect all the same.
bool settings_from_env(rt_config *c);

// settings_resolve checks *in, or takes all defaults if in is NULL, and writes
// a whole struct of this version to *out.  Each value that asks for a default
// is replaced by that default, except that max_heap may still be 0 (see
// arena_init).  gc_percent is -1 if it is off, gc_threads is a number of
// threads, and stop_signal is a signal or -1.  stack_format is as in *in, and
// not checked; gc_affinity is as in *in.
//
// Returns RT_OK, or RT_EINVAL with *out undefined.
int settings_resolve(const rt_config *in, rt_config *out);

#endif
