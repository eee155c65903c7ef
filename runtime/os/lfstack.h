// lfstack.h - a lock-free stack.
//
// Go: lfstack.go.
//
// The head packs the top node's address with a counter that every change
// raises.  So a pop fails if its node was popped and pushed again meanwhile
// (ABA).  Nodes must be 64-byte aligned and stay mapped, because a late popper
// may read the link of a node that is no longer on the stack.
//
// The table says which pairs of operations on one stack need exclusion from
// outside (X), and which do not (-):
//
//            push  pop  reset  walk
//   push      -     -     X     -
//   pop       -     -     X     X
//   reset     X     X     X     X
//   walk      -     X     X     -
//
// A reset loads the head and stores it, so it loses a change in between.  A
// walk (lfstack_top, lfstack_below, lfstack_check) follows links.  The link of
// a node changes only when the node is pushed, so no node may leave the stack
// meanwhile.  A node must be on no stack when it is pushed.
#ifndef RUNTIME_OS_LFSTACK_H
#define RUNTIME_OS_LFSTACK_H

#include "runtime/base/atomic.h"

enum {
	LFSTACK_ALIGN = 64,
	LFSTACK_ADDR_BITS = 48, // user addresses on x86-64 and aarch64
	LFSTACK_TAG_BITS = 64 - (LFSTACK_ADDR_BITS - 6),
};

// lfstack_check follows the links of a stack.
struct lfnode {
	atomic_u64 next; // packed like the head
};

struct lfstack {
	atomic_u64 head;
};

void lfstack_push(struct lfstack *s, struct lfnode *node);
struct lfnode *lfstack_pop(struct lfstack *s); // NULL if it is empty

// lfstack_reset empties the stack and keeps the counter, so a popper that read
// the head before fails at its exchange.  No other thread may change the stack
// meanwhile: the world must be stopped, or there must be no heap.
void lfstack_reset(struct lfstack *s);

// lfstack_top and lfstack_below walk a stack, which no node may leave
// meanwhile.  Both return NULL at its end.
struct lfnode *lfstack_top(const struct lfstack *s);
struct lfnode *lfstack_below(const struct lfnode *node);

// lfstack_check returns NULL if the stack has an end, otherwise what is wrong.
// No node may leave the stack meanwhile.
const char *lfstack_check(const struct lfstack *s);

#endif
