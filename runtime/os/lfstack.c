// A lock-free stack.
#include "runtime/os/lfstack.h"

#include "runtime/os/schedpoint.h"
#include "runtime/os/throw.h"

// A packed word has the node's address without its low 6 bits, which are zero,
// and the tag above it.
enum { ADDR_WIDTH = 64 - LFSTACK_TAG_BITS, ALIGN_SHIFT = 6 };
#define ADDR_MASK ((UINT64_C(1) << ADDR_WIDTH) - 1)

static_assert(1 << ALIGN_SHIFT == LFSTACK_ALIGN, "");
static_assert(ADDR_WIDTH + ALIGN_SHIFT == LFSTACK_ADDR_BITS, "");

// next_head packs the head that follows old.  The tag wraps, so a popper errs
// if this stack changes exactly a multiple of 2^22 times while the popper
// sleeps, and the same node is on top again.
static uint64_t next_head(uint64_t old, const struct lfnode *node)
{
	uint64_t tag = (old >> ADDR_WIDTH) + 1;

	return tag << ADDR_WIDTH | (uintptr_t)node >> ALIGN_SHIFT;
}

static struct lfnode *unpack(uint64_t word)
{
	return (struct lfnode *)((word & ADDR_MASK) << ALIGN_SHIFT);
}

void lfstack_push(struct lfstack *s, struct lfnode *node)
{
	uint64_t old;

	RT_ASSERT(node);
	if ((uintptr_t)node % LFSTACK_ALIGN != 0 ||
	    (uintptr_t)node >> LFSTACK_ADDR_BITS != 0)
		throw_value("lfstack_push: address does not pack", "node",
			    (uintptr_t)node);
	do {
		old = atomic_u64_load_relaxed(&s->head);
		atomic_u64_store_relaxed(&node->next, old);
		schedpoint(SCHED_LFSTACK_PUSH);
		// Publishes the node's contents; pairs with the acquires in
		// lfstack_pop and lfstack_top.
	} while (!atomic_u64_cas_release(&s->head, old, next_head(old, node)));
}

struct lfnode *lfstack_pop(struct lfstack *s)
{
	for (;;) {
		// Pairs with the release in lfstack_push, even of a node that
		// was below others: every change in between is a compare and
		// swap, and so carries that release on.
		uint64_t old = atomic_u64_load_acquire(&s->head);
		struct lfnode *node = unpack(old);

		if (!node)
			return NULL;
		// If the node is no longer on top, this link is garbage.  Then
		// the tag has changed, and the exchange fails.
		struct lfnode *below = lfstack_below(node);
		schedpoint(SCHED_LFSTACK_POP);
		if (atomic_u64_cas_relaxed(&s->head, old,
					   next_head(old, below)))
			return node;
	}
}

void lfstack_reset(struct lfstack *s)
{
	uint64_t old = atomic_u64_load_relaxed(&s->head);

	// This publishes nothing: the stop of the world orders the store.
	atomic_u64_store_relaxed(&s->head, next_head(old, NULL));
}

struct lfnode *lfstack_top(const struct lfstack *s)
{
	// Pairs with the release in lfstack_push.
	return unpack(atomic_u64_load_acquire(&s->head));
}

struct lfnode *lfstack_below(const struct lfnode *node)
{
	return unpack(atomic_u64_load_relaxed(&node->next));
}

const char *lfstack_check(const struct lfstack *s)
{
	const struct lfnode *mark = NULL;
	uint64_t n = 0;

	// The mark moves to each node whose number is a power of two, so a loop
	// comes back to it (Brent).
	for (const struct lfnode *node = lfstack_top(s); node;
	     node = lfstack_below(node)) {
		if (node == mark)
			return "lock-free stack has no end";
		if (base_is_pow2(++n))
			mark = node;
	}
	return NULL;
}
