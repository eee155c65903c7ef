// freelist.h - small objects that the host has freed by hand.
//
// Go: none; it has no explicit free.
//
// Another thread may cache the span of such an object, and change its
// allocwords without locked instructions.  So the slot stays allocated: it goes
// to a list of the thread that freed it, from which that thread allocates
// before it takes another run.  A list that becomes long is spliced to a shared
// one, where a thread without free slots looks before it takes another span.
// So memory circulates between a thread that allocates and one that frees.
//
// A flush of all caches happens in a stop, and frees the slots on the lists.
// So all lists are empty at marking, and an exact read of statistics is exact.
//
// In a listed slot, word 0 is the link, and word 1 is the seal: the address of
// the slot xor a secret.  The seal shows that the object was freed before.  A
// thread that takes a slot from a list clears both words.  If it finds no seal,
// the program has written to the object after rt_free, or to the one before it
// on the list, and the process ends.  A write of 0 to word 0 cuts the list.  No
// allocation from a list looks for that.  But each list counts its slots.  So
// the process ends when the thread has used up its list and looks at the shared
// one, at the latest in the next flush.  An object below FREELIST_MIN bytes has
// no room for the two words.
#ifndef RUNTIME_SPANS_FREELIST_H
#define RUNTIME_SPANS_FREELIST_H

#include <string.h>

#include "runtime/os/poison.h"
#include "runtime/spans/mspan.h"

enum {
	FREELIST_MIN = 16,   // bytes of the smallest slot that can be listed
	FREELIST_MOST = 256, // slots of a thread's list
	FREELIST_SHORT = 256 // bytes that are cleared without a call
};

// A slot on a list.
struct freelist_slot {
	struct freelist_slot *next;
	uintptr_t seal; // freelist_seal
};
static_assert(sizeof(struct freelist_slot) == FREELIST_MIN, "two words");

// A list of one thread, of one class and kind.
struct freelist {
	struct freelist_slot *head;
	struct freelist_slot *tail; // of no meaning if the list is empty
	uint32_t n; // slots; the program may have cut the chain shorter
};

// These two do not change while a heap lives.
RT_GLOBAL uintptr_t freelist_secret;
RT_GLOBAL bool freelist_careful; // freed slots are spoiled, or memcheck runs

// The shared lists.  A head changes under a lock of freelist.c, or in a stop,
// and is also read without the lock, as a hint.  freelist_check_shared checks
// them.
RT_GLOBAL atomic_ptr freelist_shared[SPANCLASS_COUNT];

// freelist_is_used tells whether slots of a class are allocated from lists.
// Slots of typed objects wait for the next flush: another P may cache the span,
// and only that P may write the type bits of the span's pages (typebits.h).
RT_INLINE bool freelist_is_used(spanclass sc)
{
	return spanclass_kind(sc) != KIND_TYPED;
}

// freelist_seal returns the seal of a listed slot at p.
RT_INLINE uintptr_t freelist_seal(const void *p)
{
	return (uintptr_t)p ^ freelist_secret;
}

// freelist_init makes all shared lists empty, and chooses another secret.  It
// must come after poison_init, and no thread may be attached.
void freelist_init(void);

// freelist_push adds the slot at p, of size bytes, in a span of class sc.
// Returns false if it is on a list already.
bool freelist_push(struct freelist *l, spanclass sc, void *p, uint32_t size);

// freelist_holds tells whether the slot at p, of at least FREELIST_MIN bytes,
// is on a list.  The slot must not be part of a tiny block.  If another thread
// allocates it meanwhile, the answer may be wrong.
bool freelist_holds(const void *p);

// freelist_add is freelist_push without a call.  The list must not be full, and
// freelist_careful must not be set.
RT_INLINE bool freelist_add(struct freelist *l, void *p);

// freelist_pop takes a slot of size bytes off a list, which must not be empty.
// All of the slot is zero; with uninit, only its first two words are.
void *freelist_pop(struct freelist *l, uint32_t size, bool uninit);

// freelist_share splices a list to the shared one of its span class, and leaves
// it empty.
void freelist_share(struct freelist *l, spanclass sc);

// freelist_gather moves up to FREELIST_MOST slots of the shared list of a class
// to a list, which must be empty.  Returns false if there are none.
bool freelist_gather(struct freelist *l, spanclass sc);

// freelist_waits tells whether there may be slots on the shared list of a
// class.
RT_INLINE bool freelist_waits(spanclass sc)
{
	return atomic_ptr_load_relaxed(&freelist_shared[sc]) != NULL;
}

// freelist_overwritten ends the process because a listed slot has no seal, or a
// list ends before its last slot.
RT_NORETURN void freelist_overwritten(const void *slot);

RT_INLINE bool freelist_add(struct freelist *l, void *p)
{
	struct freelist_slot *slot = p;
	uintptr_t seal = freelist_seal(slot);

	if (RT_UNLIKELY(slot->seal == seal))
		return false;
	if (!l->head)
		l->tail = slot;
	slot->next = l->head;
	slot->seal = seal;
	l->head = slot;
	l->n++;
	return true;
}

// freelist_take is freelist_pop for a slot of at most FREELIST_SHORT bytes,
// unless freelist_careful is set.  Its only call is the one that ends the
// process.
RT_INLINE void *freelist_take(struct freelist *l, uint32_t size)
{
	struct freelist_slot *slot = l->head;
	char *end = (char *)slot + size;

	if (RT_UNLIKELY(slot->seal != freelist_seal(slot)))
		freelist_overwritten(slot);
	l->head = slot->next;
	l->n--;
	for (char *p = (char *)slot; p <= end - 16; p += 16) {
		memset(p, 0, 16);
		// Without this the compiler turns the loop into a call.
		__asm__ volatile("" : "+r"(p));
	}
	if (size % 16 != 0)
		memset(end - 8, 0, 8);
	return slot;
}

// What freelist_free_shared has freed.
struct freelist_freed {
	uint32_t small[SIZECLASS_COUNT]; // slots
	uint64_t live; // bytes of slots that no allocation could use
};

// freelist_free_shared frees the slots of all shared lists, and adds them to
// *freed.  The world must be stopped, no span cached, and every span swept.
// Returns false if no list was shared since the last call.
bool freelist_free_shared(struct freelist_freed *freed);

// freelist_check returns NULL if all invariants of a thread's list hold,
// otherwise what does not.  They do not hold after the program has cut the
// list.  freelist_check_shared returns NULL if no slot is on a shared list.
// The world must be stopped for the latter.
const char *freelist_check(const struct freelist *l);
const char *freelist_check_shared(void);

#endif
