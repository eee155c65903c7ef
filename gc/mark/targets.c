// A hash table of objects, by their bases.
#include "gc/mark/targets.h"

#include <string.h>

#include "runtime/base/bits.h"
#include "runtime/os/throw.h"
#include "runtime/os/sysmem.h"

static size_t slots_bytes(size_t slots)
{
	return slots * sizeof(struct target);
}

// make_room gives t->many at least a number of slots.  Returns false if there
// is no memory.
static bool make_room(struct targets *t, size_t slots)
{
	struct target *many;

	if (slots <= t->room)
		return true;
	many =
	    sysmem_alloc(slots_bytes(slots), &gauges.other_sys, "tracecheck");
	if (!many)
		return false;
	targets_end(t);
	t->many = many;
	t->room = slots;
	return true;
}

bool targets_begin(struct targets *t, size_t n)
{
	// At least twice n.  If n is at most TARGETS_FEW, at most the slots of
	// few.
	size_t slots = UINT64_C(2) << bits_len(n == 0 ? 0 : n - 1);

	if (n <= TARGETS_FEW) {
		t->slot = t->few;
	} else {
		if (!make_room(t, slots))
			return false;
		t->slot = t->many;
	}
	memset(t->slot, 0, slots_bytes(slots));
	t->mask = slots - 1;
	t->n = 0;
	return true;
}

void targets_end(struct targets *t)
{
	if (t->many)
		sysmem_free(t->many, slots_bytes(t->room), &gauges.other_sys);
	t->many = NULL;
	t->room = 0;
}

// find returns the slot of a base, or the free one where it would be.
static struct target *find(const struct targets *t, uintptr_t base)
{
	size_t i = (base * UINT64_C(0x9e3779b97f4a7c15)) >> 32;

	for (;; i++) {
		struct target *slot = &t->slot[i & t->mask];

		if (slot->base == base || slot->base == 0)
			return slot;
	}
}

void targets_add(struct targets *t, uintptr_t base, uint64_t at)
{
	struct target *slot;

	RT_ASSERT(base != 0);
	slot = find(t, base);
	if (slot->base != 0)
		return;
	RT_ASSERT(2 * (t->n + 1) <= t->mask + 1);
	*slot = (struct target){.base = base, .at = at};
	t->n++;
}

struct target *targets_find(const struct targets *t, uintptr_t base)
{
	struct target *slot = find(t, base);

	return slot->base != 0 ? slot : NULL;
}

const char *targets_check(const struct targets *t)
{
	size_t n = 0;

	if ((t->room == 0) != (t->many == NULL))
		return "table of targets is not where its fields say";
	if (t->slot != t->few && t->slot != t->many)
		return "table of targets is neither of the two";
	if (!base_is_pow2(t->mask + 1) || 2 * t->n > t->mask + 1)
		return "table of targets is too full";
	if (t->mask >= (t->slot == t->few ? 2 * (size_t)TARGETS_FEW : t->room))
		return "table of targets is larger than its memory";
	for (size_t i = 0; i <= t->mask; i++) {
		n += t->slot[i].base != 0;
		if (t->slot[i].base != 0 &&
		    find(t, t->slot[i].base) != &t->slot[i])
			return "target is not where a search finds it";
	}
	return n == t->n ? NULL : "table of targets has another number of them";
}
