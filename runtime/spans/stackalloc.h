// stackalloc.h - stacks of interpreters, from the heap's pages.
//
// Go: stackalloc, stackfree, stackpool, stackcache (stack.go).
//
// Sizes are powers of two.  Stacks of 2, 4, 8 and 16 KiB are cut from spans of
// 32 KiB under the pool lock; larger ones are spans of their own.  Each P keeps
// up to 32 KiB of stacks of each of the four sizes, and allocates and frees
// them without a lock.  A span is freed with its last stack.  The stacks
// themselves do not say which of them the host has; tables beside the heap do.
// So stackfree notices an address that is no stack, a wrong size, and a stack
// that is freed for the second time.
#ifndef RUNTIME_SPANS_STACKALLOC_H
#define RUNTIME_SPANS_STACKALLOC_H

#include "runtime/spans/mcache.h"

enum {
	STACKALLOC_MIN = 2048,
	STACKALLOC_POOL_MAX = STACKALLOC_MIN << (MCACHE_STACK_ORDERS - 1),
	STACKALLOC_SPAN = 32 << 10,
	STACKALLOC_REFILL = 16 << 10, // bytes moved at once
};

// Spans with a free stack, by order, linked by next.
struct stackpool {
	struct mutex lock;
	struct mspan *partial[MCACHE_STACK_ORDERS];
};

RT_GLOBAL struct stackpool stackpool;

// stackalloc returns a stack of n bytes, not zeroed.  n must be a power of two
// and at least STACKALLOC_MIN.  Returns NULL if there is no memory.  Here and
// below, p is the calling thread's P, or NULL if it has none.
void *stackalloc(struct rt_mcache *mc, struct rt_proc *p, size_t n);

// stackalloc_has tells whether a stack of n bytes is free, so that stackalloc
// takes no pages for it.  Another thread may take it meanwhile.
bool stackalloc_has(const struct rt_mcache *mc, size_t n);

// stackfree frees a stack.  Returns false if [v, v+n) is no stack that the host
// has.
bool stackfree(struct rt_mcache *mc, struct rt_proc *p, void *v, size_t n);

// stackalloc_flush frees the stacks that mc keeps.  mc must be the caller's
// own, or its owner must be stopped.
void stackalloc_flush(struct rt_mcache *mc, struct rt_proc *p);

// stackalloc_flush_all flushes the stacks of every P.  The world must be
// stopped.
void stackalloc_flush_all(struct rt_proc *p);

// stackalloc_reset empties the pool of spans of stacks, before a heap begins
// and after it has ended.
void stackalloc_reset(void);

// stackpool_check returns NULL if all invariants hold, otherwise what does not.
// The caller must hold stackpool.lock, or have the world stopped.  Debug builds
// call it in stackalloc_flush_all.  When a stack is taken or freed, they check
// its span.
const char *stackpool_check(const struct stackpool *pool);

#endif
