// Lists of slots that were freed by hand.
#include "runtime/spans/freelist.h"

#include "runtime/os/oscall.h"
#include "runtime/os/schedpoint.h"
#include "runtime/os/throw.h"
#include "runtime/os/nanotime.h"
#include "runtime/os/lock.h"
#include "runtime/world/stw.h"
#include "runtime/spans/kinds.h"
#include "runtime/spans/mcentral.h"
#include "runtime/spans/spoil.h"

// The state of the shared lists, beside their heads.
static struct {
	struct mutex lock;
	bool any;		     // some list was not empty since the last
				     // freelist_free_shared
	uint32_t n[SPANCLASS_COUNT]; // slots on each list
} shared = {.lock = RT_MUTEX_INIT(LOCKRANK_FREELIST)};

atomic_ptr freelist_shared[SPANCLASS_COUNT];
uintptr_t freelist_secret;
bool freelist_careful;

// new_secret makes a secret of random bytes that the kernel gave the process,
// and of the time.  They are mixed, because the C library may make its own
// secrets of the same bytes.  Bit 63 of the secret is set, so the seal of an
// address is no address.
static uintptr_t new_secret(void)
{
	const char *bytes = (const char *)oscall_main_stack_end();
	uint64_t x[2] = {0, 0};

	if (bytes)
		memcpy(x, bytes, sizeof x);
	x[0] = (x[0] ^ nanotime()) * UINT64_C(0x9e3779b97f4a7c15);
	x[0] = (x[0] ^ x[0] >> 32 ^ x[1]) * UINT64_C(0xd6e8feb86659fd93);
	return (x[0] ^ x[0] >> 32) | UINT64_C(1) << 63;
}

void freelist_init(void)
{
	memset(freelist_shared, 0, sizeof freelist_shared);
	memset(shared.n, 0, sizeof shared.n);
	shared.any = false;
	freelist_secret = new_secret();
	freelist_careful = spoil_on() || poison_memcheck;
}

// ---- one slot ----
//
// With poison, a listed slot is poisoned as a whole.

// look_up unpoisons the two words of what may be a listed slot.
RT_INLINE struct freelist_slot *look_up(void *p)
{
	if (RT_UNLIKELY(poison_on))
		poison_unpoison(p, FREELIST_MIN);
	return p;
}

// A host may have left word 1 of a live object undefined (poison.h).
RT_INLINE bool is_listed(const struct freelist_slot *slot)
{
	return poison_word(slot->seal) == freelist_seal(slot);
}

// leave poisons a listed slot again.
RT_INLINE void leave(struct freelist_slot *slot)
{
	if (RT_UNLIKELY(poison_on))
		poison_poison(slot, FREELIST_MIN);
}

RT_NOINLINE void freelist_overwritten(const void *slot)
{
	throw_value("list of freed objects was overwritten", "slot",
		    (uintptr_t)slot);
}

// take_off takes the first slot off a chain, and returns it with the two words
// zero and unpoisoned.
static struct freelist_slot *take_off(struct freelist_slot **chain)
{
	struct freelist_slot *slot = look_up(*chain);

	if (RT_UNLIKELY(!is_listed(slot)))
		freelist_overwritten(slot);
	*chain = slot->next;
	slot->next = NULL;
	slot->seal = 0;
	return slot;
}

// Unlike look_up, this leaves what the host has told a tool of p.
bool freelist_holds(const void *p)
{
	uintptr_t seal = (uintptr_t)p + offsetof(struct freelist_slot, seal);

	return poison_read(seal) == freelist_seal(p);
}

// ---- lists of a thread ----

bool freelist_push(struct freelist *l, spanclass sc, void *p, uint32_t size)
{
	struct freelist_slot *slot = look_up(p);

	if (RT_UNLIKELY(is_listed(slot))) {
		leave(slot);
		return false;
	}
	if (RT_UNLIKELY(spoil_on())) {
		spoil_object(p, size);
		look_up(p);
	}
	// From here on, word 1 is defined, and it is not the seal.
	slot->seal = 0;
	if (l->n == FREELIST_MOST)
		freelist_share(l, sc);
	freelist_add(l, p);
	leave(slot);
	return true;
}

void *freelist_pop(struct freelist *l, uint32_t size, bool uninit)
{
	struct freelist_slot *slot = take_off(&l->head);

	l->n--;
	if (RT_UNLIKELY(poison_on))
		poison_unpoison(slot, size);
	if (!uninit)
		memset(slot + 1, 0, size - sizeof *slot);
	return slot;
}

// ---- shared lists ----

static struct freelist_slot *shared_head(spanclass sc)
{
	return atomic_ptr_load_relaxed(&freelist_shared[sc]);
}

// check_end ends the process if a list ends before its last slot.  Which slot
// was overwritten is not known any more, so the report names the tail, which
// may even be allocated again.
static void check_end(const struct freelist *l)
{
	if (RT_UNLIKELY(!l->head && l->n != 0))
		freelist_overwritten(l->tail);
}

void freelist_share(struct freelist *l, spanclass sc)
{
	struct freelist_slot *tail = l->tail;

	check_end(l);
	if (!l->head)
		return;
	look_up(tail);
	mutex_lock(&shared.lock);
	tail->next = shared_head(sc);
	schedpoint(SCHED_FREELIST_SHARE);
	atomic_ptr_store_relaxed(&freelist_shared[sc], l->head);
	shared.n[sc] += l->n;
	shared.any = true;
	mutex_unlock(&shared.lock);
	schedpoint(SCHED_FREELIST_SHARE_SPLICED);
	leave(tail);
	l->head = NULL;
	l->n = 0;
}

// cut moves up to FREELIST_MOST slots from the beginning of a chain to a list.
// Returns the rest of the chain.
static struct freelist_slot *cut(struct freelist *l,
				 struct freelist_slot *chain)
{
	struct freelist_slot *last = chain, *rest;

	l->head = chain;
	for (l->n = 1; l->n < FREELIST_MOST; l->n++) {
		struct freelist_slot *next = look_up(last)->next;

		leave(last);
		if (!next)
			break;
		last = next;
	}
	l->tail = last;
	rest = look_up(last)->next;
	last->next = NULL;
	leave(last);
	return rest;
}

bool freelist_gather(struct freelist *l, spanclass sc)
{
	struct freelist_slot *chain, *rest = NULL;
	uint32_t n = 0;

	RT_ASSERT(!l->head);
	check_end(l);
	mutex_lock(&shared.lock);
	chain = shared_head(sc);
	schedpoint(SCHED_FREELIST_GATHER);
	if (chain) {
		rest = cut(l, chain);
		atomic_ptr_store_relaxed(&freelist_shared[sc], rest);
		n = shared.n[sc] -= l->n;
	}
	mutex_unlock(&shared.lock);
	if (RT_UNLIKELY(!rest && n != 0))
		freelist_overwritten(l->tail);
	return chain != NULL;
}

// ---- in a stop ----

// free_slot frees a listed slot.  A span that was full was not in mcentral, so
// it is pushed, unless it is in the queue of drops.
static void free_slot(struct freelist_slot *slot)
{
	struct mspan *s =
	    arena_span(arena_offset((uintptr_t)slot) >> RT_PAGE_SHIFT);

	RT_ASSERT(!s->cached);
	if (RT_UNLIKELY(spoil_on()))
		spoil_object(slot, FREELIST_MIN);
	mspan_free_slots(s, (char *)slot, (char *)slot + s->elemsize);
	s->needzero = 1;
	if (s->alloc_count-- == s->nelems && !s->queued)
		mcentral_push(s);
}

// free_shared frees the slots of a shared list, and returns how many.  If it
// frees fewer slots than the list counts, a link was overwritten with 0: that
// of the last slot in the list, or that of a slot that was allocated since.
static uint32_t free_shared(spanclass sc)
{
	struct freelist_slot *chain = shared_head(sc), *last = chain;
	uint32_t n = 0;

	while (chain) {
		last = chain;
		free_slot(take_off(&chain));
		n++;
	}
	if (RT_UNLIKELY(n != shared.n[sc]))
		freelist_overwritten(last);
	atomic_ptr_store_relaxed(&freelist_shared[sc], NULL);
	shared.n[sc] = 0;
	return n;
}

bool freelist_free_shared(struct freelist_freed *freed)
{
	bool any = shared.any;

	RT_ASSERT(stw_stopped());
	shared.any = false;
	for (uint32_t x = any ? kinds_mask() : 0; x; x &= x - 1)
		for (unsigned c = 1; c < SIZECLASS_COUNT; c++) {
			spanclass sc = spanclass_make(c, bits_ctz(x));
			uint32_t n = free_shared(sc);

			freed->small[c] += n;
			if (!freelist_is_used(sc))
				freed->live +=
				    (uint64_t)n * sizeclass_table[c].size;
		}
	return any;
}

// ---- invariants ----

const char *freelist_check(const struct freelist *l)
{
	if ((l->head == NULL) != (l->n == 0))
		return "list of freed slots has the wrong length";
	if (l->n > FREELIST_MOST)
		return "list of freed slots is too long";
	return NULL;
}

const char *freelist_check_shared(void)
{
	for (unsigned sc = 0; sc < SPANCLASS_COUNT; sc++)
		if (shared_head((spanclass)sc))
			return "freed slot is on a shared list";
		else if (shared.n[sc] != 0)
			return "empty shared list counts slots";
	return NULL;
}
