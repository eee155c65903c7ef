// probe.h - static probes (USDT) that a tracer of the system may attach to.
//
// Go: none; its tracers read runtime/trace.
//
// Each is a nop, and a note in the library that says where it is and where its
// arguments are.  Nothing runs unless a tracer, such as perf or bpftrace, puts
// a breakpoint there.  The provider is rtheap.  A library that is configured
// without sys/sdt.h has no probes, and does not evaluate their arguments.
//
// Sizes are bytes, times nanoseconds.  test/scripts/probes.sh compares this
// list with the notes of the shared library.
#ifndef RUNTIME_OS_PROBE_H
#define RUNTIME_OS_PROBE_H

#include "runtime/base/base.h"

#if RT_PROBES
#include <sys/sdt.h>
#define PROBE2(name, a, b) STAP_PROBE2(rtheap, name, a, b)
#define PROBE3(name, a, b, c) STAP_PROBE3(rtheap, name, a, b, c)
#define PROBE4(name, a, b, c, d) STAP_PROBE4(rtheap, name, a, b, c, d)
#define PROBE5(name, a, b, c, d, e) STAP_PROBE5(rtheap, name, a, b, c, d, e)
#else
#define PROBE2(name, a, b) ((void)sizeof(a), (void)sizeof(b))
#define PROBE3(name, a, b, c) (PROBE2(name, a, b), (void)sizeof(c))
#define PROBE4(name, a, b, c, d) (PROBE3(name, a, b, c), (void)sizeof(d))
#define PROBE5(name, a, b, c, d, e) (PROBE4(name, a, b, c, d), (void)sizeof(e))
#endif

// The probes of a collection, in order: its thread has the right to stop the
// world, all threads are stopped, marking has ended, sweeping has ended, and
// the threads run again.  There is no gc_swept if the sweep goes on beside the
// threads.  cause is an enum rt_cause, used is what counts for the goal.
#define probe_gc_begin(number, used) PROBE2(gc_begin, number, used)
#define probe_gc_stopped(number, cause) PROBE2(gc_stopped, number, cause)
#define probe_gc_marked(number, live) PROBE2(gc_marked, number, live)
#define probe_gc_swept(number, in_use) PROBE2(gc_swept, number, in_use)
#define probe_gc_end(number, cause, pause_ns, live, goal)                      \
	PROBE5(gc_end, number, cause, pause_ns, live, goal)

// A stop has ended, and the threads run again.  reason is an enum
// rt_stop_reason or the host's number, slowest the P that was stopped last.
#define probe_stop(reason, stopping_ns, total_ns, slowest)                     \
	PROBE4(stop, reason, stopping_ns, total_ns, slowest)

// A batch was released by a thread that allocated at the memory limit (0), or
// by the scavenger (1); ns is its CPU time.
#define probe_scavenge(who, bytes, ns) PROBE3(scavenge, who, bytes, ns)

// The heap has another goal; UINT64_MAX: none.
#define probe_goal(before, goal) PROBE2(goal, before, goal)

// An allocation finds no memory, even after a collection: the bytes that it
// needs, and those that are alive.
#define probe_out_of_memory(bytes, live) PROBE2(out_of_memory, bytes, live)

#endif
