// overflow.c - sets and takes the bits of pages, and moves the flags.
#include "gc/mark/overflow.h"

#include "runtime/os/schedpoint.h"
#include "runtime/os/throw.h"

struct overflow overflow;

void overflow_set(uint64_t page)
{
	RT_ASSERT(page < arena_used() >> RT_PAGE_SHIFT);
	// Pairs with the acquire in overflow_take: a marker that takes the bit
	// sees the mark that was set before.
	atomic_u64_or_release(&arena.overflow[page / OVERFLOW_PAGES],
			      UINT64_C(1) << (page % OVERFLOW_PAGES));
	schedpoint(SCHED_OVERFLOW_SET);
	overflow_raise();
}

// The flag is set even if it is up.  It may be lowered at any time, and a
// marker that lowers it must see the bit.
void overflow_raise(void)
{
	// Pairs with the acquire in overflow_lower: a marker that lowers the
	// flag sees the bit that was set before.
	atomic_u64_or_release(&overflow.raised, 1);
}

bool overflow_lower(void)
{
	// Pairs with the release in overflow_raise.
	return atomic_u64_swap_acquire(&overflow.raised, 0) != 0;
}

uint64_t overflow_take(uint64_t i)
{
	uint64_t bits = atomic_u64_load_relaxed(&arena.overflow[i]);

	if (bits == 0)
		return 0;
	schedpoint(SCHED_OVERFLOW_TAKE);
	// Pairs with the releases in overflow_set and overflow_leave.
	return atomic_u64_swap_acquire(&arena.overflow[i], 0);
}

void overflow_leave(uint64_t i, uint64_t bits)
{
	RT_ASSERT(bits != 0);
	// Pairs with the acquire in overflow_take.
	atomic_u64_or_release(&arena.overflow[i], bits);
	// Pairs with the acquire in overflow_lower_left.
	atomic_u64_or_release(&overflow.left, 1);
}

bool overflow_lower_left(void)
{
	// Pairs with the release in overflow_leave.
	return atomic_u64_swap_acquire(&overflow.left, 0) != 0;
}

const char *overflow_check(uint64_t npages)
{
	if (atomic_u64_load_relaxed(&overflow.raised) != 0)
		return "mark overflow is announced outside of marking";
	if (atomic_u64_load_relaxed(&overflow.left) != 0)
		return "mark overflow is left outside of marking";
	for (uint64_t i = 0; i < npages / OVERFLOW_PAGES; i++)
		if (atomic_u64_load_relaxed(&arena.overflow[i]) != 0)
			return "mark overflow is set outside of marking";
	return NULL;
}
