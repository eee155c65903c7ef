// stackalloc.h - stacks of interpreters, from the heap's pages.
//
// Go: stackalloc, stackfree, stackpool, stackcache (stack.go).
//
// Sizes are powers of two.  2, 4, 8 and 16 KiB are cut from spans of 32 KiB
// under the pool lock, and each P keeps up to 32 KiB of each; larger ones are
// spans of their own.  What a P keeps is allocated and freed without a lock.
// A span goes back to the heap with its last stack.  Which stacks are handed
// out is kept outside of them, so that a foreign, wrong or doubled free is
// found.
#ifndef RUNTIME_SPANS_STACKALLOC_H
#define RUNTIME_SPANS_STACKALLOC_H

#include "runtime/spans/mcache.h"

enum {
	STACKALLOC_MIN = 2048,
	STACKALLOC_POOL_MAX = STACKALLOC_MIN << (MCACHE_STACK_ORDERS - 1),
	STACKALLOC_SPAN = 32 << 10,
	STACKALLOC_REFILL = 16 << 10, // bytes moved at once
};

// stackalloc returns n bytes, a power of two of at least STACKALLOC_MIN, not
// zeroed; NULL: no memory.
void *stackalloc(struct rt_mcache *mc, struct rt_proc *p, size_t n);

// stackfree takes a stack back; false: [v, v+n) is not one that is handed out.
bool stackfree(struct rt_mcache *mc, struct rt_proc *p, void *v, size_t n);

// stackalloc_flush gives back what the P keeps.  The mcache's owner is the
// caller or stands; p: whose statistics count.
void stackalloc_flush(struct rt_mcache *mc, struct rt_proc *p);

// stackalloc_flush_all does so for every P; world stopped.
void stackalloc_flush_all(struct rt_proc *p);

// stackalloc_reset forgets all stacks, before the heap goes or comes.
void stackalloc_reset(void);

#endif
