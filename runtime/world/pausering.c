// The ring of the last collection pauses.
#include "runtime/world/pausering.h"

#include <string.h>

#include "runtime/os/oscall.h"
#include "runtime/os/throw.h"

// The slot of a pause is its number modulo the length, even after the number
// has wrapped.
static_assert((PAUSERING_LEN & (PAUSERING_LEN - 1)) == 0, "power of two");

void pausering_add(struct pausering *r, uint64_t ns, uint64_t end)
{
	uint64_t n = atomic_u64_load_relaxed(&r->count);
	uint64_t total_ns = atomic_u64_load_relaxed(&r->total_ns);
	uint64_t slot = n % PAUSERING_LEN;

	RT_CHECK(pausering_check(r));
	// These releases pair with the acquires in read_once: a reader that
	// sees one of the stores below also sees that the pause has begun.
	atomic_u64_store_relaxed(&r->begun, n + 1);
	atomic_u64_store_release(&r->ns[slot], ns);
	atomic_u64_store_release(&r->end[slot], end);
	atomic_u64_store_release(&r->total_ns, total_ns + ns);
	atomic_u64_store_release(&r->count, n + 1);
}

// copy_slots copies four slots a round, because a round costs as much as a
// slot.  The acquires pair with the releases in pausering_add (see read_once).
static void copy_slots(uint64_t *to, const atomic_u64 *from)
{
	for (unsigned i = 0; i < PAUSERING_LEN; i += 4) {
		to[i] = atomic_u64_load_acquire(&from[i]);
		to[i + 1] = atomic_u64_load_acquire(&from[i + 1]);
		to[i + 2] = atomic_u64_load_acquire(&from[i + 2]);
		to[i + 3] = atomic_u64_load_acquire(&from[i + 3]);
	}
}

// read_once copies the ring and tells whether the copy is of one moment.  The
// acquires pair with the releases in pausering_add.  The acquire of count shows
// every store of the pauses that it counts.  If any load after it saw a store
// of a later pause, begun, which is read last, would count that pause too.
static bool read_once(const struct pausering *r, struct pausering_copy *out)
{
	out->count = atomic_u64_load_acquire(&r->count);
	copy_slots(out->ns, r->ns);
	copy_slots(out->end, r->end);
	out->total_ns = atomic_u64_load_acquire(&r->total_ns);
	return atomic_u64_load_relaxed(&r->begun) == out->count;
}

void pausering_read(const struct pausering *r, struct pausering_copy *out)
{
	// The writer may have lost its processor to this very loop.
	while (!read_once(r, out))
		oscall_yield();
}

void pausering_read_stopped(const struct pausering *r,
			    struct pausering_copy *out)
{
	RT_CHECK(pausering_check(r));
	memcpy(out->ns, r->ns, sizeof r->ns);
	memcpy(out->end, r->end, sizeof r->end);
	out->total_ns = atomic_u64_load_relaxed(&r->total_ns);
	out->count = atomic_u64_load_relaxed(&r->count);
}

const char *pausering_check(const struct pausering *r)
{
	// The other fields may hold anything: sums and numbers wrap.
	if (atomic_u64_load_relaxed(&r->begun) !=
	    atomic_u64_load_relaxed(&r->count))
		return "pause is recorded in part";
	return NULL;
}
