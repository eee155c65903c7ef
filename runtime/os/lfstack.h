// lfstack.h - a lock-free stack.
//
// Go: lfstack.go.  The head packs the top node's address with a counter that
// every change raises, so that a pop whose node was popped and pushed again
// meanwhile fails (ABA).  Nodes are 64-byte aligned and stay mapped for
// good: a late popper may read the link of a node that is long gone.
#ifndef RUNTIME_OS_LFSTACK_H
#define RUNTIME_OS_LFSTACK_H

#include "runtime/base/atomic.h"

enum {
	LFSTACK_ALIGN = 64,
	LFSTACK_ADDR_BITS = 48, // user addresses on x86-64 and aarch64
	LFSTACK_TAG_BITS = 64 - (LFSTACK_ADDR_BITS - 6),
};

struct lfnode {
	atomic_u64 next; // packed as the head is
};

struct lfstack {
	atomic_u64 head;
};

void lfstack_push(struct lfstack *s, struct lfnode *node);
struct lfnode *lfstack_pop(struct lfstack *s); // NULL: empty
bool lfstack_empty(const struct lfstack *s);

// lfstack_reset forgets all nodes; the counter goes on.  No pusher or popper
// may be under way (the world is stopped), but poppers of before may wake up
// later and fail.
void lfstack_reset(struct lfstack *s);

// lfstack_top and lfstack_below walk a stack that nobody changes.
struct lfnode *lfstack_top(const struct lfstack *s);
struct lfnode *lfstack_below(const struct lfnode *node);

#endif
