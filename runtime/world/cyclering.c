// The ring of the records of the last collections.
#include "runtime/world/cyclering.h"

#include <string.h>

#include "runtime/os/throw.h"

struct cyclering cyclering;

// The slot of a record is its number modulo the length, even after the number
// has wrapped.
static_assert((RT_CYCLES & (RT_CYCLES - 1)) == 0, "power of two");
static_assert(sizeof(rt_cycle) % sizeof(uint64_t) == 0, "copied by words");

void cyclering_reset(struct cyclering *r)
{
	atomic_u64_store_relaxed(&r->begun, 0);
	atomic_u64_store_relaxed(&r->count, 0);
}

void cyclering_add(struct cyclering *r, const rt_cycle *c)
{
	atomic_u64 *slot = r->word[c->number % RT_CYCLES];
	uint64_t copy[CYCLERING_WORDS];

	RT_CHECK(cyclering_check(r));
	RT_ASSERT(c->number == atomic_u64_load_relaxed(&r->count) + 1);
	memcpy(copy, c, sizeof copy);
	// These releases pair with the acquires in copy_slot and
	// cyclering_read: a reader that sees any word below also sees that the
	// record was begun.
	atomic_u64_store_relaxed(&r->begun, c->number);
	for (unsigned i = 0; i < CYCLERING_WORDS; i++)
		atomic_u64_store_release(&slot[i], copy[i]);
	atomic_u64_store_release(&r->count, c->number);
}

// copy_slot copies a record.  The copy is of one record only if no other record
// for the same slot has begun.
static void copy_slot(const atomic_u64 *slot, rt_cycle *out)
{
	// The acquires pair with the releases in cyclering_add.
	for (unsigned i = 0; i < CYCLERING_WORDS; i++) {
		uint64_t word = atomic_u64_load_acquire(&slot[i]);

		memcpy((char *)out + i * sizeof word, &word, sizeof word);
	}
}

// within tells whether number is one of the last RT_CYCLES up to newest.
static bool within(uint64_t number, uint64_t newest)
{
	return newest - number < RT_CYCLES;
}

bool cyclering_read(const struct cyclering *r, uint64_t number, rt_cycle *out)
{
	// Pairs with the release in cyclering_add.
	uint64_t newest = atomic_u64_load_acquire(&r->count);
	uint64_t n = number == 0 ? newest : number;

	if (n == 0 || !within(n, newest))
		return false;
	copy_slot(r->word[n % RT_CYCLES], out);
	if (within(n, atomic_u64_load_relaxed(&r->begun)))
		return out->number == n;
	// The record is gone; but there is a newer one.
	return number != 0 ? false : cyclering_read(r, 0, out);
}

#ifdef RT_TEST
void cyclering_count_from(struct cyclering *r, uint64_t n)
{
	memset(r->word, 0, sizeof r->word);
	atomic_u64_store_relaxed(&r->begun, n);
	atomic_u64_store_relaxed(&r->count, n);
}
#endif

const char *cyclering_check(const struct cyclering *r)
{
	if (atomic_u64_load_relaxed(&r->begun) !=
	    atomic_u64_load_relaxed(&r->count))
		return "record of a collection is written in part";
	return NULL;
}
