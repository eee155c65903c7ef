// gcstats.h - what collections cost.
//
// Go: memstats.numgc, last_gc_unix, gc_cpu_fraction, cpuStats (mstats.go),
// the pause histograms of sched (proc.go).
//
// Only the thread that has the right to stop the world writes, except for what
// scavenging and sweeping count.  Readers of the cycle record need no lock:
// they copy it until the copy is of one moment.  pausering.h and histogram.h
// say how the rest is read.
//
// CPU time passes between collections, too.  A live reader adds to the record
// the time since the last collection.  What it adds is provisional: time in
// which threads wait for a stop looks idle, and a scavenger's step looks like
// the host's work until it has ended.  So readers keep, under a lock, what the
// last of them was told, and no class falls (cpustats_follow).
#ifndef RUNTIME_WORLD_GCSTATS_H
#define RUNTIME_WORLD_GCSTATS_H

#include "runtime/base/histogram.h"
#include "runtime/world/pausering.h"
#include "runtime/world/stw.h"

// CPU time in ns since the heap began.  Identities, exact: gc_total = assist +
// dedicated + idle + pause; scavenge_total = its two parts; total = gc_total +
// scavenge_total + idle + user.
struct cpustats {
	uint64_t gc_assist;    // 0: allocating threads do not mark
	uint64_t gc_dedicated; // 0: no concurrent marking
	uint64_t gc_idle;      // 0: no marking on idle processors
	uint64_t gc_pause;     // stopped time x processors, plus stopping waits
	uint64_t gc_total;
	uint64_t scavenge_assist;
	uint64_t scavenge_background;
	uint64_t scavenge_total;
	uint64_t idle;	// processor time that the process did not use
	uint64_t user;	// the rest, including sweeping beside the threads
	uint64_t total; // processors x wall time
};

// One interval, from the end of one collection to the end of the next, or to
// the moment of a live read.
struct cpustats_interval {
	uint64_t nprocs;       // processors that may be used
	uint64_t wall;	       // ns, all of it
	uint64_t stopped;      // ns of wall that the collection's stop took
	uint64_t stopping_cpu; // ns that threads waited for others to stop
	uint64_t cpu;	       // ns CPU of the process before that stop
	uint64_t scavenge[2];  // ns of cpu, by gcstats_worker
};

// cpustats_add adds one interval to *c.  It is pure arithmetic, and nothing in
// it becomes negative.
void cpustats_add(struct cpustats *c, const struct cpustats_interval *i);

// cpustats_follow advances *c, the sums that were told last, to the newer
// *exact.  No class falls, and total rises to that of *exact if that is more.
// A class that is ahead of *exact stays as it is until *exact has caught up;
// classes that are behind share the new time.  So the identities hold, and *c
// becomes *exact as soon as no class is ahead.  It is pure arithmetic.
void cpustats_follow(struct cpustats *c, const struct cpustats *exact);

// cpustats_check returns NULL if the identities hold and what this version does
// not have is 0, otherwise what does not.
const char *cpustats_check(const struct cpustats *c);

// The record of finished collections.  It has words only, because it is copied
// word by word.
struct gcstats_cycles {
	uint64_t num_gc; // 64 bits, where Go has 32
	uint64_t num_forced_gc;
	uint64_t last_gc_unix;	   // ns since 1970; 0: none yet
	uint64_t gc_cpu_fraction;  // bits of a double
	uint64_t scan_heap;	   // bytes of scanned objects
	uint64_t scan_stack;	   // bytes of scanned stacks
	uint64_t scan_globals;	   // bytes of scanned root ranges
	uint64_t past_end_objects; // kept only by a word equal to their end
	uint64_t helped_objects;   // marked by helper threads
	struct cpustats cpu;
};

enum { GCSTATS_GC = 0, GCSTATS_OTHER = 1 }; // reasons of a stop

// The threads that release pages or sweep beside the others.  ASSIST are
// threads of the host, which in most cases are about to allocate; BACKGROUND is
// the background thread.
enum gcstats_worker { GCSTATS_ASSIST, GCSTATS_BACKGROUND };

// What sweeping beside the threads took, in ns.  It is all words.
struct gcstats_sweep {
	uint64_t cpu[2]; // by gcstats_worker
	uint64_t wall;	 // from the end of a stop until all was swept
};

struct gcstats {
	struct pausering pauses;
	struct histogram stopping[2]; // from the request until all are stopped
	struct histogram total[2];    // from the request to the start
	atomic_u64 scavenge[2];	      // ns of CPU time, by gcstats_worker
	atomic_u64 released[2];	      // bytes released, by gcstats_worker
	atomic_u64 released_forced;   // bytes that rt_free_os_memory released
	atomic_u64 sweep_cpu[2];      // ns of CPU time, by gcstats_worker
	atomic_u64 sweep_wall;	      // ns, of sweeps that have ended
};

RT_GLOBAL struct gcstats gcstats;

// gcstats_init begins the accounting of CPU time.
void gcstats_init(void);

// gcstats_age returns the time from gcstats_init until now, a nanotime.
uint64_t gcstats_age(uint64_t now);

// gcstats_reset sets everything to 0.  It must be called before gcstats_init.
void gcstats_reset(void);

// gcstats_cpu returns the CPU time of the process in ns, including threads that
// were never attached.  In the child of a fork it includes the parent's time
// before the fork.  Any thread may call it.
uint64_t gcstats_cpu(void);

// The child of a fork calls gcstats_fork_child.  cpu is what gcstats_cpu
// returned before the fork.
void gcstats_fork_child(uint64_t cpu);

// gcstats_begin_cycle notes for live readers that a collection has stopped the
// world: the nanotime when all were stopped, the CPU time in ns for which
// threads waited until then, and gcstats_cpu then.  The world must be stopped.
void gcstats_begin_cycle(uint64_t stopped, uint64_t stopping_cpu, uint64_t cpu);

// What a collection passes to gcstats_end_cycle.
struct gcstats_cycle {
	bool forced;
	uint64_t now;	       // nanotime
	uint64_t unix_now;     // ns since 1970
	uint64_t pause;	       // ns since the stop was requested
	uint64_t stopped;      // ns since the last thread stopped
	uint64_t stopping_cpu; // ns
	uint64_t cpu_begin;    // gcstats_cpu when all were stopped
	uint64_t cpu_end;      // gcstats_cpu at the end
	uint64_t scan_heap, scan_stack, scan_globals, past_end_objects;
	uint64_t helped_objects;
};

// gcstats_scavenged counts bytes that were released, and the CPU time that the
// release took.  Returns that time in nanoseconds.  before must be the result
// of oscall_thread_cpu(0) at the beginning of the release.  If the clock was
// refused then or is refused now, the time is 0.  Any thread may call it.  The
// time is in the record from the end of the next collection on.
uint64_t gcstats_scavenged(enum gcstats_worker who, uint64_t bytes,
			   uint64_t before);

// gcstats_forced counts bytes that rt_free_os_memory released.  Any thread may
// call it.
void gcstats_forced(uint64_t bytes);

// gcstats_take_released returns the bytes that were released since its last
// call for the same scavenger.  gcstats_take_forced returns those that
// rt_free_os_memory has released since its last call.  Only a thread that has
// the right to stop the world may call them.
uint64_t gcstats_take_released(enum gcstats_worker who);
uint64_t gcstats_take_forced(void);

// gcstats_swept counts the CPU time of a slice of a sweep beside the threads.
// before must be the result of oscall_thread_cpu(0) when the slice began; a
// refused clock is treated as in gcstats_scavenged.  The thread must not have
// polled since.  So a collection that begins later finds all of the time.
void gcstats_swept(enum gcstats_worker who, uint64_t before);

// gcstats_sweep_ended counts the wall time of a sweep beside the threads, ns.
// It must come before another thread can find that the sweep is over.
void gcstats_sweep_ended(uint64_t ns);

// gcstats_read_swept returns what sweeping has taken so far.  A slice that is
// under way is not in cpu, and a sweep that is under way is not in wall.  Any
// thread may call it.  gcstats_take_swept returns by how much that has grown
// since its last call.  Only a thread that has the right to stop the world may
// call it.
struct gcstats_sweep gcstats_read_swept(void);
struct gcstats_sweep gcstats_take_swept(void);

// gcstats_end_cycle records a collection.  The world must be stopped.
void gcstats_end_cycle(const struct gcstats_cycle *c);

// gcstats_record_stop counts a stop in the histograms and in the table of
// stops.  The caller must still have the right to stop the world.
void gcstats_record_stop(int reason, const struct rt_stop_times *times);

// gcstats_read copies the record and the pauses as of one moment.
// gcstats_read_stopped copies them with the world stopped, and never retries.
void gcstats_read(struct gcstats_cycles *cycles, struct pausering_copy *pauses);
void gcstats_read_stopped(struct gcstats_cycles *cycles,
			  struct pausering_copy *pauses);

// gcstats_read_cycles copies the record alone.
void gcstats_read_cycles(struct gcstats_cycles *cycles);

// gcstats_read_cpu returns the CPU time as of now, even in the stop of a
// collection.  No class is ever less than in the result of an earlier call.
// Any thread may call it.  It waits for no collection, only for another live
// reader, for the copying of the record, and for a fork.
void gcstats_read_cpu(struct cpustats *cpu);

// gcstats_fraction returns gc_cpu_fraction as a number from 0 to 1.
double gcstats_fraction(const struct gcstats_cycles *cycles);

#ifdef RT_TEST
// gcstats_count_from sets the number of collections to n.  No collection may be
// running.
void gcstats_count_from(uint64_t n);
#endif

// gcstats_cycles_check and gcstats_check return NULL if all invariants hold,
// otherwise what does not.  gcstats_check needs a stopped world.  Debug builds
// call both when a collection was recorded.  Histograms need no check: any
// number may be in any bucket.
const char *gcstats_cycles_check(const struct gcstats_cycles *c);
const char *gcstats_check(const struct gcstats *g);

#endif
