// boehm_common.h - what both ways of using Boehm's collector have in common.
//
// Threads made by pthread_create are the collector's (a macro of gc.h), and
// it stops them by a signal wherever they are: nothing to attach, poll or
// block for.
#include <stddef.h>
#include <stdint.h>

#define GC_THREADS
#include <gc/gc.h>

#define HEAP_FREES 0
#define HEAP_HAS_LIVE 1

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

// All that the collector counts, under its lock.
static inline uint64_t heap_stats_live(void)
{
	static struct GC_prof_stats_s s;

	GC_get_prof_stats(&s, sizeof s);
	return s.heapsize_full - s.free_bytes_full;
}
