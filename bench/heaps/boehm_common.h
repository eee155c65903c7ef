// boehm_common.h - what both ways of using Boehm's collector have in common.
//
// The collector knows every thread, because a macro of gc.h replaces
// pthread_create.  It stops threads by a signal wherever they are, so a thread
// need neither attach nor poll, and may wait anywhere.
//
// The collector starts the threads that mark in parallel when the program makes
// a thread, or announces that it may.  In a program of one thread that
// announces nothing, only one processor marks.
#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define GC_THREADS
#include <gc/gc.h>

#define HEAP_FREES 0
#define HEAP_HAS_LIVE 1
#define HEAP_HAS_HELD 1

// boehm_threads returns how many threads this process has.
static inline int boehm_threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	int n = 0;

	while (tasks && readdir(tasks))
		n++;
	if (tasks)
		closedir(tasks);
	return n - 2; // . and ..
}

// boehm_markers starts the markers, and ends the program if they do not start:
// a comparison with a collector that marks on one processor would be unfair.
static inline void boehm_markers(void)
{
	GC_allow_register_threads();
	GC_start_mark_threads();
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2 || getenv("GC_MARKERS"))
		return;
	if (GC_get_parallel() && boehm_threads() > 1)
		return;
	fprintf(stderr, "Boehm's collector does not mark in parallel\n");
	exit(1);
}

static inline void heap_free(void *p)
{
	(void)p;
}

static inline void heap_hold(void *lo, void *hi)
{
	GC_add_roots(lo, hi);
}

static inline void heap_drop(void *lo, void *hi)
{
	GC_remove_roots(lo, hi);
}

static inline void heap_collect(void)
{
	GC_gcollect();
}

static inline void heap_release(void)
{
	GC_gcollect_and_unmap();
}

static inline void heap_poll(void)
{
}

static inline void heap_block(void)
{
}

static inline void heap_unblock(void)
{
}

static inline uint64_t heap_collections(void)
{
	return GC_get_gc_no();
}

// heap_stats_live reads all that the collector counts, under its lock.
static inline uint64_t heap_stats_live(void)
{
	static struct GC_prof_stats_s s;

	GC_get_prof_stats(&s, sizeof s);
	return s.heapsize_full - s.free_bytes_full;
}

static inline uint64_t heap_held(void)
{
	return GC_get_heap_size();
}
