/*
 * config.h - configuration, beginning and end of the heap.
 */
#ifndef RT_CONFIG_H
#define RT_CONFIG_H

#include <rt/version.h>
#include <rt/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * What happens when statistics contradict each other while rt_read_memstats has
 * the world stopped.  FATAL prints both values and aborts.  REPORT passes the
 * text to the warn handler after the world has been started, and
 * rt_read_memstats succeeds.  See also rt_set_memstats_double_check.
 */
enum rt_double_check {
	RT_CHECK_OFF = 0,
	RT_CHECK_FATAL = 1,
	RT_CHECK_REPORT = 2
};

/*
 * The library makes two sorts of threads:
 *
 *  - helper threads mark and sweep beside the thread that collects
 *    (rt_config.gc_threads);
 *  - one background thread releases free pages (scavenge, idle_s), brings in
 *    fresh ones (populate), sweeps (sweep), and collects if there was no
 *    collection for long (gc_period_s).  It has default scheduling, and the
 *    nice value of the thread that made it.  Otherwise it is like a helper
 *    thread.
 *
 * "A thread of the library" is any of these.
 */

/*
 * A function of the host that each thread of the library calls when it begins;
 * see gc_thread_start below.
 */
typedef void rt_gc_thread_fn(void *arg);

/*
 * The configuration of a heap.  The struct may grow, as rt_type and
 * rt_kind_desc may: fields are added at the end only.  rt_config_init writes
 * struct_size and all defaults; a host then changes the fields that it wants to
 * change.
 *
 * A library that is newer than the host's headers uses its defaults for the
 * fields that the host does not know.  An older library accepts a longer struct
 * if all fields that it does not know are zero.
 *
 * Each comment gives the range of its field and the default; where it lists
 * values, only these are allowed.  rt_init refuses any other value with
 * RT_EINVAL and changes nothing.  rt_config_from_env ignores one, and returns
 * RT_EINVAL.  Sizes are bytes.
 */
typedef struct rt_config {
	/* Bytes of the struct that the host was compiled with, 8 to 4096. */
	size_t struct_size;

	/*
	 * Address space for objects and interpreter stacks (rt_stack_alloc),
	 * which the heap can never exceed; 0 to 2^40.  It is rounded down to a
	 * multiple of 64 MiB, reduced to half of the limit on address space
	 * (RLIMIT_AS), and halved until the system grants it.  It is never
	 * below 64 MiB; a smaller value counts as that.  The hard limit
	 * (rt_set_heap_max) is another, lower one, which a host may change.
	 * Default 0: 2^40, or 2^34 in a library built with a sanitizer.
	 */
	size_t max_heap;

	/*
	 * The least heap goal at 100 percent; at other percentages it is in
	 * proportion.  0 to 2^40.  Default 0: 4 MiB.
	 */
	size_t heap_min;

	/*
	 * Room that a small heap gets beyond gc_percent.  The goal is live +
	 * max((live + roots) * gc_percent / 100, min(heap_headroom, 8 * live +
	 * 4 MiB)), and at least heap_min * gc_percent / 100.  live is what the
	 * last collection found alive, plus the sum of rt_adjust_external.
	 * roots are scan_stack + scan_globals of rt_cycle: the bytes of stacks
	 * of threads, registered stacks, variables of RT_FRAME, registered
	 * ranges, handles and static data that it scanned.  Other references
	 * that root callbacks tell do not count.  The memory limit and the hard
	 * limit (rt_set_heap_max) may lower the goal.  The room makes small
	 * programs collect several times less often.
	 *
	 * When less is alive than before, the goal falls in steps, because the
	 * heap still has the memory.  Each collection that the host did not
	 * request lowers it by at least an eighth of its distance to the
	 * formula.  The goal is then at most live + the free pages that are not
	 * released, but never below the formula.  rt_gc, rt_free_os_memory,
	 * rt_set_gc_percent, rt_set_heap_min, rt_set_memory_limit and
	 * rt_set_heap_max set it to the formula at once.
	 *
	 * 0 to 2^40; 0 gives the rule of Go's runtime, which is the formula
	 * without steps and room.  Default 20 MiB.
	 */
	size_t heap_headroom;

	/*
	 * Soft limit of all memory that the library has mapped and not released
	 * (sys - heap_released of rt_memstats).  0 to INT64_MAX; 0 is a limit,
	 * too.  Default INT64_MAX: none.  rt_set_memory_limit says what it
	 * does.
	 */
	int64_t memory_limit;

	/*
	 * How much may be allocated before the next collection, in percent of
	 * what the last one found alive and of the roots that it scanned
	 * (heap_headroom has the formula).  Below 0, only rt_gc,
	 * rt_free_os_memory, gcstress, a limit (memory_limit, rt_set_heap_max)
	 * and an allocation that finds no memory collect.  Any number is
	 * allowed; all below 0 are the same.  Default 100.
	 */
	int gc_percent;

	/*
	 * Processors that the host means to use, 0 to 4096.  It bounds the
	 * helper threads, and multiplies wall time in CPU statistics.  Default
	 * 0: the number in the affinity mask at rt_init, which does not show a
	 * limit on processor time, such as a container's; see cgroup.
	 */
	int max_procs;

	/*
	 * The most helper threads that the library may make, -1 to 4096.  It
	 * never makes more than max_procs - 1, nor more than cgroup allows.
	 * They mark and sweep beside the thread that collects, provide huge
	 * pages (huge_pages), and sleep otherwise.  The first thread of the
	 * host that runs a collection with use for them makes them after that
	 * collection.  (The background thread makes none.)  They have the
	 * scheduling and priority of that thread of the host, even when another
	 * thread collects later, but the processors that the caller of rt_init
	 * had, or those of gc_affinity.  They tell the host that they begin
	 * (gc_thread_start).  They block all signals except those that report a
	 * fault of the thread itself (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP,
	 * SIGSYS), which the host's handler gets.  They end in rt_fini; the
	 * child of a fork makes its own.  0: the library makes no thread, not
	 * even the background thread.  Default -1: max_procs - 1.  If max_procs
	 * or cgroup leaves no helper, the background thread is made all the
	 * same.
	 */
	int gc_threads;

	/* A number of enum rt_double_check; default RT_CHECK_OFF. */
	int double_check;

	/*
	 * The signal that stops a thread which does not poll in time.  It must
	 * be one that a process may catch, that neither a fault nor abort
	 * raises, and that the C library does not keep for itself.  0: SIGURG.
	 * -1: none.  Default 0.  In this version every stop is cooperative: the
	 * value is checked and no signal is sent.
	 */
	int stop_signal;

	/* Microseconds between the request and the signal; any number.  Default
	 * 100.  It has no effect in this version. */
	uint32_t stop_grace_us;

	/*
	 * 1: a word on a stack or in a register that equals the end of an
	 * object keeps that object.  In a loop through an array, a compiler may
	 * keep only such an address of the array.  0: it does not, for hosts
	 * that hold the beginning of each object as well.  With 1 the object
	 * below another one may be kept for no reason.  Default 1.
	 */
	uint8_t past_end;

	/*
	 * 1: every request gets the size class that Go's runtime gives it, with
	 * two exceptions: an object of at most 8 bytes of a kind with
	 * RT_KIND_DROP takes 16, and an uncollectable object gets the class
	 * that it has with align8 0.  So all other requests of up to 8 bytes,
	 * and of 17 to 24, are aligned to 8 only, and those of RT_NOSCAN below
	 * 16 bytes are combined.  No allocation is inline.  0: every object is
	 * aligned to 16, except those that are smaller than 16 bytes and have
	 * no pointers, and those of 17 to 24 bytes of kinds from
	 * RT_KIND_ALIGN8_FIRST on or of types with align 8.  Default 0.
	 */
	uint8_t align8;

	/* Marking beside the host's threads; only 0 in this version. */
	uint8_t concurrent;

	/* 1: rt_init does not attach its caller.  The caller may then attach
	 * with RT_THREAD_EXACT.  Default 0. */
	uint8_t no_attach;

	/*
	 * 1: parts of the heap that are full of live objects after a collection
	 * get huge pages (usually of 2 MiB).  A helper thread provides them,
	 * or, without helpers, the system in its own time.  No allocation waits
	 * for a huge page, and a part that was released gets none before it is
	 * full again.  0: all pages are small.  Both values hold whatever the
	 * system's own setting is.
	 *
	 * Large heaps may be faster with huge pages.  But there are virtual
	 * machines that make a process with pages of both sizes several times
	 * slower, so measure it where your program runs.  Default 0.
	 */
	uint8_t huge_pages;

	/*
	 * 0: every page is brought in by its first use, which waits for the
	 * system to clear it.
	 * 1: when a thread begins to use fresh memory, one system call brings
	 * in up to 128 KiB of it.  A thread that allocates little gets nothing
	 * ahead of use.
	 * 2: as 1, and the background thread brings in more while threads use
	 * much fresh memory, more than 4 MiB in a tenth of a second.  So an
	 * allocation rarely waits for the system to clear pages.  The memory
	 * ahead is a thirty-second of what counts for the heap goal, at most 8
	 * MiB.  It is no more than may be allocated before the next collection,
	 * and no more than the memory limit leaves.  The background thread is
	 * made for this, if not before, when 32 MiB count for the goal, even if
	 * scavenge is 0.  With gc_threads 0 it is as 1.
	 *
	 * Memory that is brought in ahead of use counts in heap_idle and not in
	 * heap_released.  The system takes it from the memory next to the
	 * processor that brings it in; so choose 1 if gc_affinity names
	 * processors of another node.  Before Linux 5.14 each value is as 0.
	 * Default 2.
	 */
	uint8_t populate;

	/*
	 * The fields from checkmark to guard_small, and tracecheck, help to
	 * find errors.  Each costs nothing while it is 0, the default.
	 *
	 * checkmark 1: after each marking one thread looks at every root and
	 * every marked object.  If a word there leads to an unmarked object,
	 * the process ends with a report that names both.  The check finds bugs
	 * of the collector, and callbacks of the host that do not tell the same
	 * references each time.  tracecheck finds a callback that always
	 * forgets a reference.  The check takes about as long as marking.
	 */
	uint8_t checkmark;

	/*
	 * 1: an object that is freed is overwritten with words of
	 * 0xdeadbeefdeadbeef, which is no address.  So a pointer that no root
	 * knew of leads to these words, until the memory is used again.
	 */
	uint8_t clobberfree;

	/*
	 * n, any number: every nth allocation of the process collects first,
	 * even if gc_percent is below 0.  1: each allocation does.  No
	 * allocation is inline.  Helper threads mark even in small heaps.
	 */
	uint32_t gcstress;

	/*
	 * 1: an access to memory that holds no object, because it was freed or
	 * never allocated, is reported where it happens.  This needs a library
	 * built with the address sanitizer, or valgrind and a library built
	 * where valgrind/memcheck.h is installed.  Otherwise nothing is
	 * reported.  No allocation is inline.
	 */
	uint8_t poison;

	/*
	 * 1: after every object of more than 32760 bytes there is a guard:
	 * protected pages.  The object ends at most 15 bytes before the guard.
	 * A write or read that goes further faults (SIGSEGV) where it happens.
	 * The bytes between object and guard, and up to 128 before the object,
	 * are checked when the object is freed.  If one of them was written,
	 * the process ends with a report that names the object.  rt_heap_verify
	 * counts such a byte as an error.  A freed object is protected until
	 * its pages are used again.  rt_size of a guarded object is the size
	 * requested.
	 *
	 * A guard counts in heap_inuse and heap_sys, not in heap_alloc.  An
	 * object gets no guard if its align is above 16 (rt_alloc_aligned),
	 * while there are 16384 guards, or while the system refuses memory or
	 * mappings for one.  No pages are brought in ahead of use (populate).
	 */
	uint8_t guard_large;

	/*
	 * n, up to 65535: the same for one in n of the smaller objects, chosen
	 * at random.
	 * 1: for all of them.  Such an object has pages of its own, at least 16
	 * KiB, and counts as a large one of at least 8 KiB.  No other object is
	 * combined with it.  No allocation is inline.  0: none.
	 */
	uint16_t guard_small;

	/*
	 * The format of the host's values (rt/trace.h), or NULL, the default.
	 * With a format, a word on a stack or in a register of an attached
	 * thread keeps an object in two cases: it is an address in the object,
	 * or a value word that leads to the object in this format.  rt_init
	 * copies the format, and refuses one that is not in order
	 * (rt_value_format).
	 *
	 * A compiler keeps the two words of a value wherever it likes.  So with
	 * test_at 1 or -1 the tag is not tested: every word counts as a value
	 * word.
	 *
	 * A compiler may also keep a value in a form that is neither the value
	 * nor the address.  It may be shifted or masked, as a step between the
	 * two.  It may be in two halves, or only in a vector register that a
	 * call does not save.  The collector does not see such an object.  A
	 * host that decodes a value and goes on to use the object must
	 * therefore call rt_keep_alive with its address after the last use, as
	 * for a plain pointer.
	 */
	const rt_value_format *stack_format;

	/*
	 * 1: finds references that a trace callback or a bitmap forgets.  After
	 * each marking one thread looks at all aligned words of every marked
	 * object whose references a callback or a type tells.  A word is
	 * reported if it leads to another object, and the object told no
	 * reference to that one.  The word may lead there as an address, as a
	 * header (RT_LAYOUT_HEADER), in the format of the type, or in
	 * stack_format.
	 *
	 * A report is one line.  It names the object by its kind, type and
	 * description (rt_describe_fn), and the offset of the word.  It names
	 * the last reference before the word that has a name (rt_trace_name).
	 * Then it names, in the same way, the object that the word leads to,
	 * and says whether something else reaches that object.  If nothing
	 * does, the same collection frees the object or makes its destructor
	 * ready.  These lines come first.
	 *
	 * A type and an offset are reported once, and once more when they are
	 * first seen to lead to an object that nothing else reaches.  A word in
	 * any element of a type's tail counts as the same word of the first
	 * element.  If objects have no type, their kind takes its place; a kind
	 * that is registered anew is another one.  A collection reports at most
	 * 64 words, and adds a line with the number of the others.  Later
	 * collections may report these.
	 *
	 * The warn handler (rt_set_warn_handler) gets each line after the world
	 * has been started.  Without a handler the lines are written to stderr.
	 *
	 * A number that looks like an address is reported as well, and so is an
	 * old pointer in an unused part of an object.  But the value word of a
	 * pair that a bitmap describes is not reported if the tag says that it
	 * is no reference.  A reference of an object to itself need not be
	 * told.
	 *
	 * The first pointer that the callback of an object tells, but that
	 * RT_KIND_BASE ignores, is reported as well, unless a word of the
	 * object leads to the same target.  Its line has the name of this
	 * reference, and the offset if a word holds the pointer as it is.
	 *
	 * The search does not look at kinds without references, at kinds of
	 * words, or at memory outside the heap.  It keeps nothing alive.
	 */
	uint8_t tracecheck;

	/*
	 * The most CPU time that collections for the memory limit and for the
	 * hard limit (rt_set_heap_max) may take, in percent of the process's,
	 * over a few seconds: 1 to 100.  Beyond that the heap may pass the
	 * memory limit, and for the hard limit only an allocation that needs a
	 * page beyond it collects.  The time in which threads of the host
	 * release pages for the memory limit counts as well, and beyond the
	 * bound they release none.  100: no bound.  Default 50.
	 *
	 * The bound is a bucket.  The CPU time of all collections fills it, and
	 * that of the program drains it.  It holds a second for each processor.
	 * While it is full, collections for a limit wait, as above.  The
	 * processors are max_procs, those that the caller of rt_init may use,
	 * or the limit of the control groups once that was read (cgroup),
	 * whichever are fewest.
	 */
	uint8_t gc_cpu_limit;

	/*
	 * Which limits of the process's control groups (cgroups), such as those
	 * of a container, the heap obeys.  If groups are nested, the lowest
	 * limit counts.
	 *
	 * 0: none; no file of them is read.
	 * 1: the limit of processor time, in processors and rounded up, bounds
	 * the helper threads as max_procs does.  It is read when the library
	 * makes its first thread, or before the first collection or release of
	 * pages that may be for a limit (outside a no-GC stretch), so even with
	 * gc_threads 0.  rt_config.max_procs does not change.  From then on
	 * gc_cpu_limit counts no more processors than this limit allows.
	 * 2: as 1, but rt_init reads both limits.  The heap's memory limit is
	 * memory_limit, or 90 percent of the group's if that is less; the rest
	 * is for what the host has outside of the heap.  Later changes of the
	 * group's limit have no effect, and rt_set_memory_limit replaces it.
	 * Default 1.  A limit that cannot be read counts as none.
	 *
	 * The library reads cpu.max, memory.max and memory.high of version 2,
	 * and cpu.cfs_quota_us, cpu.cfs_period_us and memory.limit_in_bytes of
	 * version 1, in /sys/fs/cgroup.
	 */
	uint8_t cgroup;

	/*
	 * 1: each collection writes a line to stderr when the threads run
	 * again; doc/operating.md explains it.  A line that stderr does not
	 * take at once is dropped; the metric /gc/trace/dropped:lines counts
	 * them.  2: it also writes what it has found alive: a line with the
	 * sums, and one for each size class with living objects.  Counting that
	 * makes the stop longer.  0: none.  Default 0.
	 */
	uint8_t gctrace;

	/*
	 * 1: after a collection the background thread releases free pages to
	 * the system, beside the host's threads and with 1 percent of processor
	 * time.  While the host allocates, the heap keeps what it will need
	 * until the next collection, and a tenth more.  The thread is made for
	 * this, if not before, when a collection first leaves 4 MiB of free
	 * pages or more.  Until it is made, what is freed by hand stays.  The
	 * thread sleeps while there is nothing to release.  After a collection,
	 * a new memory limit or heap goal, or 4 MiB freed by rt_free,
	 * destructors and the like, it looks again.  If the system refuses
	 * eight releases in a row, as for locked memory, it stops, and tries
	 * again after any of these.  A thread that needs pages may have to wait
	 * for it as in rt_free_os_memory, and a stop may have to wait for one
	 * step of at most 2 MiB.  0: pages are released only for the memory
	 * limit, and in rt_free_os_memory; idle_s has no effect.  Default 1.
	 */
	uint8_t scavenge;

	/*
	 * Seconds after which the host counts as idle, 0 to 255.  It is idle if
	 * in that time it has neither collected nor set the percentage, the
	 * least goal or a limit (rt/gc.h), and its objects have grown or shrunk
	 * by at most 1 percent of the heap goal.  Objects that it allocates and
	 * frees by hand in that time do not count.  Then the background thread
	 * releases all free pages, with 5 percent of processor time, including
	 * those that threads in blocking regions have set aside.  A thread that
	 * leaves its region meanwhile may wait for some microseconds.
	 * Allocations without a collection may be noticed only when that time
	 * is over; then the time begins again.  0: the host never counts as
	 * idle.  idle_s has no effect while scavenge or gc_threads is 0.
	 * Default 5.
	 */
	uint8_t idle_s;

	/*
	 * 1: each collection writes a line about what was released since the
	 * previous one, and rt_free_os_memory a line about what it released.
	 * Both are written as those of gctrace.  0: none.  Default 0.
	 */
	uint8_t scavtrace;

	/*
	 * Where a collection frees the memory of dead objects (sweeping).
	 *
	 * 0: in its stop.
	 * 1: in its stop, if one thread would take at most 250 us for that, as
	 * the last sweep was measured; otherwise as 2.
	 * 2: after it, beside the host's threads.  The background thread
	 * sweeps.  A thread that needs more memory first sweeps as well: 4 MiB
	 * of the heap at a time, which takes 10 to 50 microseconds, with a poll
	 * in between.  With gc_threads 0 only threads that allocate, or call
	 * rt_safepoint, sweep.  The rest is swept before the next collection,
	 * before rt_gc returns, before a batch of destructors begins
	 * (rt/final.h), and by the functions that look at the whole heap or
	 * read exact statistics.  These see no difference from 0, and the heap
	 * goal is the same once all is swept.  Sweeping beside the threads
	 * counts as the program's CPU time, not as that of the collector.  A
	 * collection for an allocation that found no memory, or during
	 * rt_drop_now, sweeps in its stop.  The background thread is made for
	 * the first such sweep, if not before, even if scavenge is 0.  Default
	 * 1.
	 */
	uint8_t sweep;

	/*
	 * 1: each collection writes three lines about the pacer: what the
	 * collection took, its sweep, and the next goal with what bounds it.
	 * Before these is one about the last sweep, if that was beside the
	 * threads.  They are written as those of gctrace.  0: none.  Default 0.
	 */
	uint8_t gcpacertrace;

	/*
	 * Seconds without a collection after which the background thread
	 * collects, 0 to 255.  So a program that allocates nothing for long
	 * frees what it has dropped.  Its destructors become ready as well.
	 * The ready callback (rt_ready_fn) waits for the next rt_gc of the
	 * host, or for an allocation for which the cache of its thread has no
	 * room.  So a host that allocates little should look at
	 * rt_finalizers_ready.  The background thread collects again after as
	 * long a time, even if nothing was allocated, because a program can
	 * drop objects without an allocation.  It does not collect while
	 * gc_percent is below 0, nor while the system refuses the clock, and
	 * time in which the machine was suspended does not count.  The thread
	 * is made, if not before, when 4 MiB first count for the goal, even if
	 * scavenge is 0.  A heap that was never so large has such collections
	 * only if the thread was made for something else.  With gc_threads 0
	 * there are none.
	 *
	 * The stop waits until each attached thread polls or is in a blocking
	 * region, and the other threads wait for it, as in any collection.
	 * Marking reads all that is alive, even memory that was swapped out.
	 * Root, trace and describe callbacks, including those of
	 * RT_KIND_SERIAL, run on the background thread then; rt_trace_fn says
	 * how large its stack is.  So even a host with a single thread must
	 * expect them inside its blocking regions (rt_blocking_enter).
	 * Destructors, the ready callback and the out-of-memory and warn
	 * handlers never run there.  A text for the warn handler waits until a
	 * thread of the host makes a call that tells it (rt_set_warn_handler).
	 * The fatal handler may run there.
	 *
	 * The collection counts as one that the host did not request, in
	 * num_forced_gc as in heap_headroom.  It does not end the idle time of
	 * idle_s.  If another thread collects or has the world stopped, the
	 * background thread tries again after a tenth of gc_period_s.  Default
	 * 120, as in Go.  0: never.
	 */
	uint8_t gc_period_s;

	uint8_t spare[6]; /* 0 */

	/*
	 * The processors that the library's threads may use: a mask of
	 * gc_affinity_size bytes as sched_setaffinity takes it, such as a
	 * cpu_set_t, at most 1024 bytes.  rt_init copies it.  It need not
	 * include a processor that the caller of rt_init may use.  There are no
	 * more helper threads than processors in the mask.  max_procs bounds
	 * them as well, and its default counts only the caller's processors:
	 * a host that pins that thread must set max_procs, too.  A thread of
	 * the host that collects keeps its own processors.
	 *
	 * rt_init refuses a mask that names no processor, and a size without a
	 * mask, with RT_EINVAL.  If the system allows none of those that it
	 * names, the threads use the processors that the caller of rt_init had.
	 * They do so by default, which is NULL and 0.
	 */
	const void *gc_affinity;
	size_t gc_affinity_size;

	/*
	 * Each thread that the library makes calls this function with
	 * gc_thread_arg once, when it begins.  So a host can make the thread
	 * known to its profiler, or change its name, priority or processors.
	 * The thread has all of these already: the name is "rtheap helper", or
	 * "rtheap scavenge" for the background thread, and the processors are
	 * those of gc_affinity.  The library does not change them afterwards.
	 * Default NULL: nothing is called.
	 *
	 * The thread that makes another one waits until the function has
	 * returned.  It is a thread of the host that allocates, collects or is
	 * in rt_fini.  So the function must not wait for a lock that any thread
	 * of the host may hold in such a call.  Nor should it take long: if the
	 * waiting thread has a real-time priority, the background thread still
	 * has default scheduling in the function.  The thread that waits counts
	 * as in a blocking region, so no stop and no fork waits for it.
	 *
	 * The function must return: it must not end the thread, nor be left by
	 * longjmp or an exception.  A child that it forks must not return from
	 * it.  Two threads may be in it at the same time.  The child of a fork
	 * makes threads of its own, and rt_fini makes one again when it returns
	 * RT_EBUSY.  A thread to which the system refuses memory ends, and
	 * another one is made later.  Each of these calls the function, too.
	 *
	 * The thread is not attached meanwhile, and rt_thread_attach returns
	 * RT_EBUSY.  Functions that any thread may call work as usual, even
	 * those that block, and even when rt_fini makes the thread.  The stack
	 * is that of rt_trace_fn: 256 KiB, of which the function may use 128
	 * KiB.  Unlike a trace callback it may use thread-local variables.
	 * Signals are blocked as gc_threads says, and must remain so: a
	 * profiler that samples by signals does not see these threads.
	 *
	 * Thread-specific data that the function sets is destroyed when the
	 * thread ends.  rt_fini waits for that, so a destructor of such data
	 * must not call the library, nor wait for a lock that the caller of
	 * rt_fini holds.  The function and its data must stay until rt_fini has
	 * returned 0.  exit does not end the threads; rt_fini says what
	 * this means for the host.
	 */
	rt_gc_thread_fn *gc_thread_start;
	void *gc_thread_arg;
} rt_config;

/*
 * rt_config_init_sized writes the defaults into the first size bytes of *c,
 * sets struct_size to size, and writes zeros into what this library does not
 * know.  If c is null, or if size has no room for struct_size, it writes
 * nothing.  Call it through rt_config_init, which passes the size that the host
 * knows.
 *
 * Any thread, at any time, even before rt_init and in its own stop.  Does not
 * block.
 */
RT_API void rt_config_init_sized(rt_config *c, size_t size);
#define rt_config_init(c) rt_config_init_sized((c), sizeof *(c))

/*
 * rt_config_from_env overrides fields of *c, which rt_config_init has filled,
 * from the environment:
 *
 *   RTGC        percent, a number from 0, or "off"      gc_percent
 *   RTMEMLIMIT  a size, or "off"                        memory_limit
 *   RTDEBUG     name=value,name=value...                the field of the name
 *
 * The names are align8 past_end huge_pages populate double_check gc_threads
 * max_procs heap_min heap_headroom max_heap gc_cpu_limit cgroup scavenge idle_s
 * sweep gc_period_s stop_grace_us stop_signal gctrace scavtrace gcpacertrace,
 * and for finding errors checkmark clobberfree gcstress poison guard_large
 * guard_small tracecheck.  Values have the ranges of rt_config.  heap_min,
 * heap_headroom and max_heap are sizes.  A size is a decimal number of bytes,
 * or one followed by B, KiB, MiB, GiB or TiB; other values are decimal numbers,
 * which may be negative in RTDEBUG.  An empty variable counts as unset.  Of
 * several items of one name, the last counts.
 *
 * An item with an unknown name, or with a value that is no number or out of
 * range, changes nothing.  Neither does a variable of more than 4095
 * characters.  All other items take effect.  A process that runs setuid
 * or setgid reads nothing.
 *
 * Returns 0, or RT_EINVAL if something was ignored.  Also returns RT_EINVAL,
 * and reads nothing, if c is null or was not initialised, or if a field is set
 * that this library does not know.
 *
 * Any thread, at any time, even before rt_init and in its own stop, but not
 * while another thread changes the environment.  Does not block.
 */
RT_API int rt_config_from_env(rt_config *c);

/*
 * rt_init makes the heap as *c says, with the defaults if c is NULL.  It
 * attaches the calling thread, unless no_attach is set.  *c is copied.  The
 * environment is not read.  Less than 1 MB of memory is touched; address space
 * is reserved.
 *
 * Returns 0, or an error, after which everything is as before:
 *   RT_EINVAL   a value is out of range, *c was not initialised, or a field is
 *               set that this library does not know; or the caller runs on a
 *               stack that the system does not know for its thread: set
 *               no_attach and call rt_thread_attach_stack
 *   RT_ENOMEM   the system grants not even 64 MiB of address space, no memory
 *               for the caller's cache, no key for thread-specific data or no
 *               handlers of pthread_atfork
 *   RT_ENOTSUP  the system refuses to report the bounds of the caller's stack
 *               (set no_attach, as above); or the process locks what it maps,
 *               as by mlockall, and the system refuses to lock what a heap
 *               needs.  The warn handler is told which of the two it is
 *   RT_ESTATE   there is a heap already
 *
 * On the main thread neither /proc nor a free file descriptor is needed, and
 * the process may be refused sched_getaffinity and prlimit.  Without /proc or a
 * free descriptor, cgroup 2 finds no limit.  After rt_fini a new heap may be
 * made.
 *
 * Any thread.  It must return before any other thread uses the library.  It
 * waits at most for a fork that another thread is making.  Does not collect.
 * Neither rt_init nor rt_fini is a cancellation point.
 */
RT_API int rt_init(const rt_config *c);

/*
 * rt_fini ends the heap: it detaches the caller and unmaps all memory of the
 * heap.  From then on every pointer that was obtained from the heap is invalid.
 * All roots, handles, stacks, kinds and callbacks that were registered end as
 * well; only the handlers stay (rt/gc.h).
 *
 * Returns 0, or RT_EPERM (caller not attached), RT_EBUSY (another thread is
 * attached, own stop, or inside a destructor), RT_ESTATE (no heap, or inside a
 * blocking region or a no-GC stretch).  After an error the heap goes on, and
 * the caller is attached as before.
 *
 * If another thread is attached, rt_fini returns RT_EBUSY at once.  Otherwise
 * it first ends the threads of the library, and waits for them as in a blocking
 * region.  That takes some milliseconds, or as long as a collection that the
 * background thread has begun (gc_period_s).  So callbacks may run until
 * rt_fini has returned, and what they read must exist until then.
 *
 * The caller must not run on a stack from rt_stack_alloc, because rt_fini
 * unmaps that as well.  This is not checked.
 *
 * A process may end without rt_fini.  Then the threads of the library go on
 * while exit runs handlers (atexit) and destructors of static objects.  A
 * collection may run meanwhile and call callbacks.  So what they read must
 * exist until the process has ended, or the host must call rt_fini before exit.
 *
 * While rt_fini runs, a thread that is not attached may do two things with the
 * library:
 *
 *  - It may fork.
 *  - It may attach.  If it is in time, rt_fini returns RT_EBUSY, and the
 *    library makes threads again.  If not, rt_thread_attach returns RT_ESTATE.
 *    No thread may call rt_init before that call has returned.
 *
 * It must call no other function of the library.  So before it calls rt_fini, a
 * host must end its monitors, and the threads whose destructors of
 * thread-specific data remove roots or handles.
 *
 * Attached threads.  If no other thread is attached, blocks until a fork has
 * ended.  Does not collect by itself.
 */
RT_API int rt_fini(void);

#ifdef __cplusplus
}
#endif

#endif
