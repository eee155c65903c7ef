// deadbits.h - which objects are dead, and which of these were dropped.
//
// Go: none; finalizers there are specials of a span (mfinal.go).
//
// An object of a kind with destructors stays allocated when it dies, at least
// until its drop has run.  A table of the arena has two bits for each granule.
// The two that belong to an object are those of the granule of its alloc bit.
// A dead object that waits for its drop has one of two turns.  The turns
// alternate: objects of one turn are dropped while newly dead ones get the
// other.
//
//   neither bit        alive, or the slot is free
//   the bit of a turn  dead, and its drop belongs to that turn
//   both bits          dead, and its drop has begun
//
// The bits change in a stop, by the one thread that runs destructors, and by a
// thread that sweeps.  The latter two never change bits of the same span: a
// batch begins when all is swept, and a sweep frees no object of a span in a
// batch.  Any thread may read the bits.  A slot becomes free before its bits
// are cleared, and a look-up reads them before the alloc bit.  So no look-up
// finds an object that is dead.
#ifndef RUNTIME_SPANS_DEADBITS_H
#define RUNTIME_SPANS_DEADBITS_H

#include "runtime/os/schedpoint.h"
#include "runtime/spans/kinds.h"
#include "runtime/spans/mspan.h"

static_assert(sizeof(struct deadwords) == sizeof(struct linewords),
	      "one index serves for both");

// The number of calls of deadbits_move, modulo 2^32.
RT_GLOBAL atomic_u32 deadbits_moves;

// deadbits_of returns the deadwords beside linewords of a page.
RT_INLINE struct deadwords *deadbits_of(const struct linewords *lines)
{
	return arena_deadbits() + (lines - arena.lines);
}

// deadbits_beside returns the deadwords beside a markword or an allocword of a
// page.
RT_INLINE struct deadwords *deadbits_beside(const atomic_u64 *word)
{
	uintptr_t offset = (uintptr_t)word - (uintptr_t)arena.lines;

	return arena_deadbits() + offset / sizeof(struct linewords);
}

RT_INLINE uint64_t deadbits_turn(const struct deadwords *d, unsigned turn)
{
	return atomic_u64_load_relaxed(&d->turn[turn]);
}

// deadbits_dead returns the bits of dead objects, deadbits_waiting of those
// whose drop has not begun, and deadbits_dropped of the others.
RT_INLINE uint64_t deadbits_dead(const struct deadwords *d)
{
	return deadbits_turn(d, 0) | deadbits_turn(d, 1);
}

RT_INLINE uint64_t deadbits_waiting(const struct deadwords *d)
{
	return deadbits_turn(d, 0) ^ deadbits_turn(d, 1);
}

RT_INLINE uint64_t deadbits_dropped(const struct deadwords *d)
{
	return deadbits_turn(d, 0) & deadbits_turn(d, 1);
}

// deadbits_only returns the bits of the dead objects that wait for their drop
// and have the given turn.
RT_INLINE uint64_t deadbits_only(const struct deadwords *d, unsigned turn)
{
	return deadbits_turn(d, turn) & ~deadbits_turn(d, turn ^ 1);
}

// deadbits_set writes the bits of a turn.  The release pairs with the acquires
// in deadbits_test.
RT_INLINE void deadbits_set(struct deadwords *d, unsigned turn, uint64_t bits)
{
	RT_ASSERT(turn < 2);
	atomic_u64_store_release(&d->turn[turn], bits);
}

// deadbits_clear clears the bits of objects that become alive again, or whose
// slots are free.
RT_INLINE void deadbits_clear(struct deadwords *d, uint64_t bits)
{
	deadbits_set(d, 0, deadbits_turn(d, 0) & ~bits);
	schedpoint(SCHED_DEADBITS_CLEAR);
	deadbits_set(d, 1, deadbits_turn(d, 1) & ~bits);
}

// deadbits_move gives the turn `to` to objects that are alive, or that are dead
// and wait for their drop.  The caller must be the stopper, or the attached
// thread that runs destructors: while that thread does not poll, no thread
// stops the world.  If an object is dead during a whole look-up that finds
// neither of its bits, the look-up also finds that deadbits_moves has changed.
RT_INLINE void deadbits_move(struct deadwords *d, unsigned to, uint64_t bits)
{
	RT_ASSERT((bits & deadbits_dropped(d)) == 0);
	deadbits_set(d, to, deadbits_turn(d, to) | bits);
	schedpoint(SCHED_DEADBITS_MOVE);
	// Pairs with the acquires of moves in deadbits_test.
	atomic_u32_store_release(&deadbits_moves,
				 atomic_u32_load_relaxed(&deadbits_moves) + 1);
	schedpoint(SCHED_DEADBITS_MOVE_COUNTED);
	deadbits_set(d, to ^ 1, deadbits_turn(d, to ^ 1) & ~bits);
}

// deadbits_test tells whether an object is dead, for a thread that looks it up.
// The acquires pair with the release in deadbits_set: a thread that finds a bit
// cleared also finds that the slot was freed before.
//
// An object may change its turn meanwhile, even several times.  Suppose a
// thread finds one bit not yet set, and then the other bit already cleared.  It
// has read moves before the first bit was set: a later value would have shown
// it that bit (release in deadbits_move).  It reads moves again after the other
// bit was cleared.  So it finds two values of moves.
RT_INLINE bool deadbits_test(const struct linewords *lines, unsigned bit)
{
	const struct deadwords *d = deadbits_of(lines);
	uint32_t moves;
	uint64_t dead;

	do {
		moves = atomic_u32_load_acquire(&deadbits_moves);
		schedpoint(SCHED_DEADBITS_TEST);
		dead = atomic_u64_load_acquire(&d->turn[0]);
		schedpoint(SCHED_DEADBITS_TEST_ONE);
		dead |= atomic_u64_load_acquire(&d->turn[1]);
		schedpoint(SCHED_DEADBITS_TEST_BOTH);
	} while (!(dead >> bit & 1) &&
		 atomic_u32_load_acquire(&deadbits_moves) != moves);
	return dead >> bit & 1;
}

// deadbits_span_has tells whether the kind of a span has destructors.
RT_INLINE bool deadbits_span_has(const struct mspan *s)
{
	return kinds_drops() >> spanclass_kind(s->spanclass) & 1;
}

// deadbits_word returns the deadwords beside word w of a span that has some.
RT_INLINE struct deadwords *deadbits_word(const struct mspan *s, unsigned w)
{
	return deadbits_of(mspan_lines(s)) + w;
}

// deadbits_slot tells whether a slot of any span has a dead object.
RT_INLINE bool deadbits_slot(const struct mspan *s, uint32_t slot)
{
	unsigned bit =
	    mspan_is_large(s) ? mspan_large_bit(s) : mspan_bit(s, slot);

	return deadbits_span_has(s) &&
	       deadbits_dead(deadbits_word(s, bit / 64)) >> (bit % 64) & 1;
}

// deadbits_object returns the slot of bit i of word w of a span.
RT_INLINE uint32_t deadbits_object(const struct mspan *s, unsigned w,
				   unsigned i)
{
	// The granule of a slot's bit is the first that is wholly in the slot.
	return mspan_slot(s, (w * UINT64_C(64) + i) * RT_GRANULE);
}

#endif
