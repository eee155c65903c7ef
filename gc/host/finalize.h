// finalize.h - runs destructors.
//
// Go: runfinq (mfinal.go), on a goroutine of its own.
#ifndef GC_HOST_FINALIZE_H
#define GC_HOST_FINALIZE_H

#include <rt/final.h>

#include "gc/mark/drops.h"
#include "gc/cycle/dropnews.h"

// There is no check function: it is one flag.
struct finalize {
	atomic_u32 poll; // 1: destructors run in rt_safepoint
};

RT_GLOBAL struct finalize finalize;

// finalize_reset empties the queue of dead objects, drops the news, and removes
// the ready callback, before a heap begins.  Destructors then do not run in
// rt_safepoint.
void finalize_reset(void);

// finalize_run runs up to max destructors on the calling thread t, which must
// be attached, outside a region and a no-GC stretch, and not in its own stop.
// With max 0 it runs as many as are ready.  Returns how many ran.
size_t finalize_run(struct rt_thread *t, size_t max);

// finalize_set_poll says whether finalize_poll does anything.
RT_INLINE void finalize_set_poll(bool on)
{
	atomic_u32_store_relaxed(&finalize.poll, on);
}

// finalize_poll runs what is ready, and frees a batch that is finished, if that
// is to happen where a thread polls.
RT_INLINE void finalize_poll(struct rt_thread *t)
{
	if (RT_UNLIKELY(atomic_u32_load_relaxed(&finalize.poll)) &&
	    (drops_ready() != 0 || drops_open()))
		finalize_run(t, 0);
}

// finalize_has_news tells whether collections have found something for the
// handlers of the host (dropnews.h).
RT_INLINE bool finalize_has_news(void)
{
	return RT_UNLIKELY(atomic_u32_load_relaxed(&dropnews.news) != 0);
}

void finalize_tell_news(void);

// finalize_tell passes the news to the handlers.  Returns true if there were
// any.  The caller must hold no lock, and no object.  In a no-GC stretch the
// news stays for a later call.  So does the rest of it if a handler has begun a
// stretch, or the thread may not go on after a handler (door_may_go_on).
RT_INLINE bool finalize_tell(void)
{
	if (!finalize_has_news() || proc_in_nogc(rt_thread_tls))
		return false;
	finalize_tell_news();
	return true;
}

// finalize_now is rt_drop_now for a thread that finalize_run would accept.
int finalize_now(struct rt_thread *t, unsigned kind, rt_pick_fn *pick,
		 void *arg);

#endif
