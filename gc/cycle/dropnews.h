// dropnews.h - what the host must be told of the dead that collections found.
//
// Go: none.  Its finalizers run on a goroutine of their own, which a collection
// makes ready.
//
// The thread that collects writes news in its stop.  It may be a thread of the
// library, which calls no handler.  So a thread of the host passes the news to
// the handlers and clears them (finalize_tell).
#ifndef GC_CYCLE_DROPNEWS_H
#define GC_CYCLE_DROPNEWS_H

#include "runtime/base/atomic.h"

// There is no check function: these are two flags and a number that may be any.
struct dropnews {
	atomic_u32 news;   // 1: a collection found dead objects
	atomic_u64 waited; // bytes of the dead to warn of; 0: none
	bool warned;	   // written by stoppers
};

RT_GLOBAL struct dropnews dropnews;

// dropnews_reset forgets all, before a heap begins.
void dropnews_reset(void);

// dropnews_collected notes what a collection has just found, in its stop.
void dropnews_collected(void);

#endif
