// Begins and ends runs, caches and retires spans, and counts objects.
#include "runtime/spans/mcache.h"

#include <string.h>

#include "runtime/base/bits.h"
#include "runtime/os/schedpoint.h"
#include "runtime/os/throw.h"
#include "runtime/os/settings.h"
#include "runtime/os/poison.h"
#include "runtime/world/stw.h"
#include "runtime/spans/kinds.h"
#include "runtime/spans/mcentral.h"

struct mcache_blocks mcache_blocks = {
    .lock = RT_MUTEX_INIT(LOCKRANK_MCACHE),
    .mcaches =
	{
	    .lock = &mcache_blocks.lock,
	    .slab = {.size = sizeof(struct rt_mcache),
		     .name = "mcache",
		     .stat = &gauges.mcache_sys},
	    .inuse = &gauges.mcache_inuse,
	    .most = MCACHE_KEPT,
	},
    .kinds =
	{
	    .lock = &mcache_blocks.lock,
	    .slab = {.size = sizeof(struct mcache_kind),
		     .name = "mcache kinds",
		     .stat = &gauges.mcache_sys},
	    .inuse = &gauges.mcache_inuse,
	    .most = MCACHE_KINDS_KEPT,
	},
};

static_assert((int)RT_RUN_CLASSES < (int)SIZECLASS_COUNT,
	      "a prefix of classes");
static_assert(RT_INLINE_MAX == 1024, "class 32");
static_assert((int)RT_KIND_MAX + 1 == (int)KIND_OWN, "one numbering");
static_assert(RT_ARRAY_LEN(((struct rt_runs *)0)->kind) >= KIND_COUNT,
	      "a row for each kind");
static_assert((int)RT_KIND_ALIGN8_FIRST == (int)KIND_ALIGN8, "one numbering");

// inline_allowed returns false if Go's classes are used for every size, because
// the table of the inline path would be wrong.  It also returns false if a
// sanitizer, a debug build or a setting must see every allocation.
static bool inline_allowed(void)
{
	return !settings()->align8 && settings()->gcstress == 0 &&
	       !settings()->poison && settings()->guard_small == 0 &&
	       !RT_ASAN && !RT_DEBUG_BUILD;
}

// run_of returns the run of a slot of RT_NOSCAN or RT_WORDS.  If inline code
// knows the class, that is where it looks for the run.
static struct rt_run *run_of(struct rt_mcache *mc, struct mcache_slot *slot)
{
	unsigned c = spanclass_size(slot->sc);
	unsigned kind = spanclass_kind(slot->sc);
	unsigned row = slot->uninit ? RT_ROW_UNINIT : RT_ROW_NOSCAN + kind;

	return c < RT_RUN_CLASSES
		   ? &mc->runs.row[row * RT_RUN_CLASSES + c]
		   : &mc->long_runs[kind * MCACHE_LONG + c - RT_RUN_CLASSES];
}

static void slot_init(struct mcache_slot *slot, spanclass sc, unsigned i)
{
	slot->sc = sc;
	slot->i = (uint8_t)i;
	slot->size = sizeclass_table[spanclass_size(sc)].size;
	slot->run_log2 = MCACHE_RUN_FIRST;
}

static void slots_init(struct rt_mcache *mc)
{
	for (unsigned i = 0; i < MCACHE_SLOTS; i++) {
		struct mcache_slot *slot = &mc->slots[i];

		slot->uninit = i >= SPANCLASS_BASE;
		slot_init(slot,
			  (spanclass)(slot->uninit ? i - SPANCLASS_BASE : i),
			  i);
		slot->run = run_of(mc, slot);
	}
}

// runs_init makes the rows of registered kinds empty.
static void runs_init(struct rt_mcache *mc)
{
	for (unsigned k = 0; k < KIND_COUNT; k++)
		mc->runs.kind[k] = proc_no_runs.row;
}

struct mcache_kind *mcache_add_kind(struct rt_mcache *mc, unsigned kind)
{
	struct mcache_kind *k = slabpool_take(&mcache_blocks.kinds);

	if (!k)
		return NULL;
	kinds_use(kind);
	for (unsigned c = 0; c < SIZECLASS_COUNT; c++) {
		slot_init(&k->slots[c], spanclass_make(c, kind), c);
		k->slots[c].run = &k->runs[c];
	}
	mc->runs.kind[kind] = k->runs;
	RT_CHECK(mcache_check(mc));
	return k;
}

void mcache_drop_kind(struct rt_mcache *mc, unsigned kind)
{
	struct mcache_kind *k = mcache_kind_of(mc, kind);

	if (!k)
		return;
	mc->runs.kind[kind] = proc_no_runs.row;
	RT_CHECK(mcache_check(mc));
	slabpool_free(&mcache_blocks.kinds, k);
}

void mcache_enable_runs(struct rt_mcache *mc)
{
	if (inline_allowed())
		mc->thread.run = mc->runs.row;
}

void mcache_disable_runs(struct rt_mcache *mc)
{
	mc->thread.run = proc_no_runs.row;
}

struct rt_mcache *mcache_new(struct rt_proc *p)
{
	struct rt_mcache *mc = slabpool_take(&mcache_blocks.mcaches);

	if (!mc)
		return NULL;
	mc->thread.mc = mc;
	mc->thread.p = p;
	mc->thread.run = proc_no_runs.row;
	runs_init(mc);
	slots_init(mc);
	RT_CHECK(mcache_check(mc));
	return mc;
}

void mcache_delete(struct rt_mcache *mc)
{
	for (unsigned k = KIND_TYPED; k < KIND_COUNT; k++)
		mcache_drop_kind(mc, k);
	slabpool_free(&mcache_blocks.mcaches, mc);
}

void mcache_release_kept(void)
{
	slabpool_release_kept(&mcache_blocks.kinds);
	slabpool_release_kept(&mcache_blocks.mcaches);
}

void mcache_fini(void)
{
	slabpool_fini(&mcache_blocks.kinds);
	slabpool_fini(&mcache_blocks.mcaches);
}

uint64_t mcache_bytes(const struct rt_mcache *mc)
{
	uint64_t bytes = sizeof *mc;

	for (unsigned k = KIND_TYPED; k < KIND_COUNT; k++)
		if (mcache_kind_of(mc, k))
			bytes += sizeof(struct mcache_kind);
	return bytes;
}

static void live_add(struct rt_mcache *mc, uint64_t bytes)
{
	mc->live += (int64_t)bytes;
	if (mc->live >= MCACHE_LIVE_BATCH)
		mcache_publish_live(mc);
}

void mcache_publish_live(struct rt_mcache *mc)
{
	if (mc->live != 0)
		atomic_u64_add_relaxed(&gauges.heap_live, (uint64_t)mc->live);
	mc->live = 0;
}

// clear_near zeroes a near run.  Most near runs are so short that a call would
// cost more than the stores.
RT_INLINE void clear_near(const struct mspan_run *run)
{
	for (char *p = run->start; p < run->end; p += RT_GRANULE) {
		memset(p, 0, RT_GRANULE);
		// Without this the compiler turns the loop into a call.
		__asm__ volatile("" : "+r"(p));
	}
}

// begin_run makes run, which the P has just taken, the slot's current run.  It
// returns the run's last slot, as allocated.
RT_INLINE void *begin_run(struct rt_mcache *mc, struct mcache_slot *slot,
			  const struct mspan_run *run)
{
	uint32_t bytes = (uint32_t)(run->end - run->start);
	char *obj = run->end - slot->size;

	slot->taken += bytes;
	slot->run->start = run->start;
	slot->run->cur = obj;
	live_add(mc, bytes);
	return obj;
}

static RT_NOINLINE void *next_run(struct rt_mcache *mc,
				  struct mcache_slot *slot, bool uninit)
{
	struct mspan *s = slot->span;
	bool brief = slot->run_log2 == MCACHE_RUN_FIRST;
	struct mspan_run run;
	size_t bytes;
	void *obj;

	mspan_find_run(s, &slot->cursor, 1u << slot->run_log2, &run);
	bytes = (size_t)(run.end - run.start);
	uninit = slot->uninit || (uninit && bytes == slot->size);
	if (RT_UNLIKELY(poison_on))
		poison_unpoison(run.start, bytes);
	if (slot->needzero && !uninit)
		memset(run.start, 0, bytes);
	// Each object is unpoisoned when it is allocated.
	if (RT_UNLIKELY(poison_on))
		poison_poison(run.start, bytes);
	schedpoint(SCHED_MCACHE_NEXT_RUN);
	mspan_take_run(s, &slot->cursor, &run);
	if (slot->run_log2 < MCACHE_RUN_LAST)
		slot->run_log2++;
	obj = begin_run(mc, slot, &run);
	// There may be many threads, each with many slots that it hardly uses,
	// so the first run of a slot is published at once.
	if (brief)
		mcache_publish_live(mc);
	return obj;
}

// ---- slots that were freed by hand ----

enum { REUSED_BATCH = 1 << 16 }; // reused slots that are counted at once

// count_reused counts what was allocated from a list.  Each such slot was
// allocated, freed, and allocated again.  The free and the second allocation
// are counted here, together.  They may be published before the first
// allocation, because even then mallocs are never fewer than frees.
static uint64_t count_reused(struct mcache_slot *slot,
			     struct heapstats_delta *d)
{
	unsigned c = spanclass_size(slot->sc);
	uint32_t n = slot->reused;

	slot->reused = 0;
	heapstats_add(&d->small_alloc_count[c], n);
	heapstats_add(&d->small_free_count[c], n);
	return (uint64_t)n * slot->size;
}

// publish_reused publishes what count_reused has counted in bytes.
static void publish_reused(struct rt_proc *p, uint64_t bytes)
{
	heapgauge_add(p, HEAPGAUGE_TOTAL_ALLOC, (int64_t)bytes);
	heapgauge_add(p, HEAPGAUGE_TOTAL_FREE, (int64_t)bytes);
}

static RT_NOINLINE void reused_many(struct rt_mcache *mc,
				    struct mcache_slot *slot)
{
	struct rt_proc *p = mc->thread.p;
	uint64_t bytes = count_reused(slot, heapstats_acquire(p));

	heapstats_release(p);
	publish_reused(p, bytes);
}

static RT_NOINLINE void *reuse_any(struct rt_mcache *mc,
				   struct mcache_slot *slot, bool uninit)
{
	void *obj = freelist_pop(&slot->freed, slot->size, uninit);

	live_add(mc, slot->size);
	if (++slot->reused >= REUSED_BATCH)
		reused_many(mc, slot);
	return obj;
}

// reuse allocates a slot of a list, which must not be empty.  Only reuse_any
// makes calls, so most often no register is saved.
static void *reuse(struct rt_mcache *mc, struct mcache_slot *slot, bool uninit)
{
	if (RT_UNLIKELY(freelist_careful) || uninit ||
	    slot->size > FREELIST_SHORT || slot->reused >= REUSED_BATCH ||
	    mc->live >= MCACHE_LIVE_BATCH)
		return reuse_any(mc, slot, uninit);
	mc->live += slot->size;
	slot->reused++;
	return freelist_take(&slot->freed, slot->size);
}

// share_first shares a list that no allocation uses, and takes from the cached
// span.
static RT_NOINLINE void *share_first(struct rt_mcache *mc,
				     struct mcache_slot *slot, bool uninit)
{
	freelist_share(&slot->freed, slot->sc);
	return mcache_next(mc, slot, uninit);
}

void *mcache_take_freed(struct rt_mcache *mc, struct mcache_slot *slot,
			bool uninit)
{
	if (!freelist_is_used(slot->sc))
		return NULL;
	uninit |= slot->uninit;
	slot = mcache_listing(mc, slot);
	if (!slot->freed.head) {
		if (!freelist_gather(&slot->freed, slot->sc))
			return NULL;
		mcache_note_freed(mc, spanclass_kind(slot->sc));
	}
	return reuse(mc, slot, uninit);
}

// A run is cleared before its bits are set, so no thread sees an allocated
// object with old contents.  Most runs of a fragmented span are near, and are
// taken here.  Two objects of such a span begin in one allocword, so they have
// less than 1024 bytes.  For objects of that size there is a slot for uninit,
// so the parameter uninit has no effect on a near run.
void *mcache_next(struct rt_mcache *mc, struct mcache_slot *slot, bool uninit)
{
	struct mspan_run run;

	if (RT_UNLIKELY(slot->freed.head != NULL))
		return freelist_is_used(slot->sc)
			   ? reuse(mc, slot, uninit)
			   : share_first(mc, slot, uninit);
	if (!slot->span || !mspan_seek(&slot->cursor))
		return NULL;
	if (!mspan_is_near(&slot->cursor, slot->size) || RT_UNLIKELY(poison_on))
		return next_run(mc, slot, uninit);
	mspan_find_near(&slot->cursor, slot->size, &run);
	if (slot->needzero && !slot->uninit)
		clear_near(&run);
	schedpoint(SCHED_MCACHE_NEXT_NEAR);
	mspan_take_near(&slot->cursor, &run);
	return begin_run(mc, slot, &run);
}

// The slots of one kind, or of the two kinds that every heap has.
struct slots {
	uint64_t *nonempty;
	struct mcache_slot *slot;
	unsigned nwords;
	unsigned n; // slots
};

// slots_of returns the slots of a kind.  For both kinds that every heap has,
// kind is 0.
static struct slots slots_of(struct rt_mcache *mc, unsigned kind)
{
	struct mcache_kind *k;

	if (kind < KIND_TYPED)
		return (struct slots){mc->nonempty, mc->slots, MCACHE_WORDS,
				      MCACHE_SLOTS};
	k = mcache_kind_of(mc, kind);
	return (struct slots){k->nonempty, k->slots, MCACHE_KIND_WORDS,
			      SIZECLASS_COUNT};
}

// words_of_kind returns the bitmap that has the bit of a slot of a registered
// kind.  It notes that the P uses the kind.
static RT_NOINLINE uint64_t *words_of_kind(struct rt_mcache *mc,
					   const struct mcache_slot *slot)
{
	unsigned kind = spanclass_kind(slot->sc);

	mc->used_kinds |= UINT32_C(1) << kind;
	return mcache_kind_of(mc, kind)->nonempty;
}

// nonempty_word returns the word that has a slot's bit.  slot_bit returns the
// bit.
RT_INLINE uint64_t *nonempty_word(struct rt_mcache *mc,
				  const struct mcache_slot *slot)
{
	uint64_t *words = RT_LIKELY(slot->sc < SPANCLASS_BASE)
			      ? mc->nonempty
			      : words_of_kind(mc, slot);

	return &words[slot->i / 64];
}

RT_INLINE uint64_t slot_bit(const struct mcache_slot *slot)
{
	return UINT64_C(1) << (slot->i % 64);
}

void mcache_set_span(struct rt_mcache *mc, struct mcache_slot *slot,
		     struct mspan *s)
{
	RT_ASSERT(!s->cached && s->spanclass == slot->sc);
	if (slot->span)
		throw_fatal("refill of span with free space remaining");
	if (s->alloc_count >= s->nelems)
		throw_fatal("span has no free space");
	s->cached = 1;
	slot->span = s;
	slot->needzero = s->needzero;
	slot->taken = 0;
	mspan_cursor_start(&slot->cursor, s);
	*nonempty_word(mc, slot) |= slot_bit(slot);
	RT_CHECK(mcache_check(mc));
}

// ---- tiny ----

// combine takes size bytes of the current tiny block.  Returns NULL if that has
// no room.
static void *combine(struct rt_mcache *mc, size_t size)
{
	uint32_t offset = mc->tiny_offset;

	// The alignment that a type of this size may want.
	if (size % 8 == 0)
		offset = (uint32_t)base_align_up(offset, 8);
	else if (size % 4 == 0)
		offset = (uint32_t)base_align_up(offset, 4);
	else if (size % 2 == 0)
		offset = (uint32_t)base_align_up(offset, 2);
	if (mc->tiny == 0 || offset + size > SIZECLASS_TINY_SIZE)
		return NULL;
	mc->tiny_offset = offset + (uint32_t)size;
	mc->tiny_allocs++;
	return (void *)(mc->tiny + offset);
}

void mcache_set_tiny(struct rt_mcache *mc, void *block, size_t size)
{
	if (size < mc->tiny_offset || mc->tiny == 0) {
		mc->tiny = (uintptr_t)block;
		mc->tiny_offset = (uint32_t)size;
	}
}

void *mcache_take_tiny(struct rt_mcache *mc, size_t size)
{
	void *obj = combine(mc, size);

	if (obj)
		return obj;
	obj = mcache_take(mc, &mc->slots[SPANCLASS_TINY], false);
	if (obj)
		mcache_set_tiny(mc, obj, size);
	return obj;
}

// ---- retiring ----

// free_rest ends a slot's run, and frees its unused slots.
static void free_rest(struct rt_mcache *mc, struct mcache_slot *slot)
{
	struct rt_run *run = slot->run;
	uint32_t bytes = (uint32_t)(run->cur - run->start);

	mspan_free_slots(slot->span, run->start, run->cur);
	slot->taken -= bytes;
	mc->live -= bytes;
	run->cur = run->start = NULL;
}

// retire takes a counted span out of its slot.  A span with free slots goes to
// mcentral, where the next P finds it.
static void retire(struct rt_mcache *mc, struct mcache_slot *slot)
{
	struct mspan *s = slot->span;

	slot->span = NULL;
	*nonempty_word(mc, slot) &= ~slot_bit(slot);
	s->cached = 0;
	// An empty span is pushed like any other; the next sweep frees it.
	if (s->alloc_count < s->nelems)
		mcentral_push(s);
}

// count_slot moves a slot's allocations to its span and the statistics.
static uint64_t count_slot(struct mcache_slot *slot, struct heapstats_delta *d)
{
	uint32_t bytes = slot->taken;
	uint32_t n = mspan_slot(slot->span, bytes);
	spanclass sc = slot->sc;

	slot->taken = 0;
	slot->span->alloc_count += n;
	if (n != 0)
		heapstats_add(&d->small_alloc_count[spanclass_size(sc)], n);
	return bytes;
}

void mcache_retire_slot(struct rt_mcache *mc, struct rt_proc *p,
			struct mcache_slot *slot)
{
	struct heapstats_delta *d;
	uint64_t bytes;

	if (!slot->span)
		return;
	free_rest(mc, slot);
	schedpoint(SCHED_MCACHE_RETIRE_SLOT_REST);
	d = heapstats_acquire(p);
	bytes = count_slot(slot, d);
	if (slot == &mc->slots[SPANCLASS_TINY] && mc->tiny_allocs != 0) {
		heapstats_add(&d->tiny_alloc_count, mc->tiny_allocs);
		mc->tiny_allocs = 0;
	}
	heapstats_release(p);
	heapgauge_add(p, HEAPGAUGE_TOTAL_ALLOC, (int64_t)bytes);
	schedpoint(SCHED_MCACHE_RETIRE_SLOT);
	// The span is retired only now, so that the frees of a sweep of it are
	// published after these mallocs.
	retire(mc, slot);
	RT_CHECK(mcache_check(mc));
}

// is_empty tells whether there is nothing to count and no span to retire.
static bool is_empty(const struct rt_mcache *mc)
{
	uint64_t any = mc->tiny_allocs | (uint64_t)mc->live | mc->used_kinds;

	for (unsigned w = 0; w < MCACHE_WORDS; w++)
		any |= mc->nonempty[w];
	return any == 0;
}

// ---- all slots with a span, in three steps ----

static void free_rests(struct rt_mcache *mc, struct slots all)
{
	for (unsigned w = 0; w < all.nwords; w++)
		for (uint64_t x = all.nonempty[w]; x; x &= x - 1)
			free_rest(mc, &all.slot[w * 64 + bits_ctz(x)]);
}

static uint64_t count_slots(struct slots all, struct heapstats_delta *d)
{
	uint64_t bytes = 0;

	for (unsigned w = 0; w < all.nwords; w++)
		for (uint64_t x = all.nonempty[w]; x; x &= x - 1)
			bytes += count_slot(&all.slot[w * 64 + bits_ctz(x)], d);
	return bytes;
}

static void retire_slots(struct rt_mcache *mc, struct slots all)
{
	for (unsigned w = 0; w < all.nwords; w++)
		for (uint64_t x = all.nonempty[w]; x; x &= x - 1) {
			struct mcache_slot *slot =
			    &all.slot[w * 64 + bits_ctz(x)];

			slot->run_log2 = MCACHE_RUN_FIRST;
			retire(mc, slot);
		}
}

// count_all_reused counts what was allocated from lists, and returns its bytes.
static uint64_t count_all_reused(struct rt_mcache *mc,
				 struct heapstats_delta *d)
{
	uint64_t bytes = 0;

	for (uint32_t x = mc->freed_kinds; x; x &= x - 1) {
		struct slots all = slots_of(mc, bits_ctz(x));

		for (unsigned i = 0; i < all.n; i++)
			if (all.slot[i].reused != 0)
				bytes += count_reused(&all.slot[i], d);
	}
	return bytes;
}

static void share_freed(struct rt_mcache *mc)
{
	for (uint32_t x = mc->freed_kinds; x; x &= x - 1) {
		struct slots all = slots_of(mc, bits_ctz(x));

		for (unsigned i = 0; i < all.n; i++)
			freelist_share(&all.slot[i].freed, all.slot[i].sc);
	}
	mc->freed_kinds = 0;
}

void mcache_flush(struct rt_mcache *mc, struct rt_proc *p)
{
	// Bit 0: the two kinds that every heap has.
	uint32_t used = mc->used_kinds | 1;
	uint64_t bytes = 0, reused;
	struct heapstats_delta *d;

	mc->tiny = 0;
	mc->tiny_offset = 0;
	if (is_empty(mc))
		return;
	for (uint32_t x = used; x; x &= x - 1)
		free_rests(mc, slots_of(mc, bits_ctz(x)));
	d = heapstats_acquire(p);
	for (uint32_t x = used; x; x &= x - 1)
		bytes += count_slots(slots_of(mc, bits_ctz(x)), d);
	if (mc->tiny_allocs != 0)
		heapstats_add(&d->tiny_alloc_count, mc->tiny_allocs);
	reused = count_all_reused(mc, d);
	heapstats_release(p);
	mc->tiny_allocs = 0;
	heapgauge_add(p, HEAPGAUGE_TOTAL_ALLOC, (int64_t)bytes);
	if (reused != 0)
		publish_reused(p, reused);
	mcache_publish_live(mc);
	for (uint32_t x = used; x; x &= x - 1)
		retire_slots(mc, slots_of(mc, bits_ctz(x)));
	mc->used_kinds = 0;
	share_freed(mc);
	RT_CHECK(mcache_check(mc));
}

// free_listed frees the slots on the shared lists.  All caches must be flushed.
static void free_listed(struct rt_proc *p)
{
	struct freelist_freed freed = {.live = 0};
	struct heapstats_delta *d;
	uint64_t bytes = 0;

	if (!freelist_free_shared(&freed))
		return;
	d = heapstats_acquire(p);
	for (unsigned c = 1; c < SIZECLASS_COUNT; c++) {
		heapstats_add(&d->small_free_count[c], freed.small[c]);
		bytes += (uint64_t)freed.small[c] * sizeclass_table[c].size;
	}
	heapstats_release(p);
	heapgauge_add(p, HEAPGAUGE_TOTAL_FREE, (int64_t)bytes);
	atomic_u64_add_relaxed(&gauges.heap_live, -freed.live);
}

void mcache_flush_all(struct rt_proc *p)
{
	RT_ASSERT(stw_stopped());
	for (struct rt_proc *q = proc_first(); q; q = proc_next(q)) {
		struct rt_mcache *mc = mcache_of(q);

		if (mc)
			mcache_flush(mc, p);
	}
	free_listed(p);
}

void mcache_flush_pages_all(void)
{
	RT_ASSERT(stw_stopped());
	for (struct rt_proc *p = proc_first(); p; p = proc_next(p)) {
		struct rt_mcache *mc = mcache_of(p);

		if (mc)
			mheap_cache_flush(&mc->heap);
	}
}

void mcache_flush_pages_blocked(struct rt_proc *p)
{
	struct rt_mcache *mc;

	if (!proc_claim(p))
		return;
	mc = mcache_of(p);
	if (mc)
		mheap_cache_flush(&mc->heap);
	proc_release(p);
}

// ---- invariants ----

// check_run checks that the run of a slot is inside the cached span, or empty.
static const char *check_run(const struct mcache_slot *slot)
{
	const struct mspan *s = slot->span;
	uintptr_t start = (uintptr_t)slot->run->start;
	uintptr_t cur = (uintptr_t)slot->run->cur;

	if (!s)
		return start != 0 || cur != 0 ? "slot has a run but no span"
					      : NULL;
	if (start > cur)
		return "run ends before it begins";
	if (cur != 0 && (start < s->base || cur > mspan_limit(s)))
		return "run is outside of its span";
	return NULL;
}

static bool has_bit(const uint64_t *words, unsigned i)
{
	return words[i / 64] >> (i % 64) & 1;
}

static const char *check_slot(const struct mcache_slot *slot,
			      const uint64_t *nonempty, unsigned i,
			      spanclass sc, bool uninit)
{
	const struct mspan *s = slot->span;

	if (slot->i != i)
		return "slot has the bit of another";
	if (has_bit(nonempty, i) != (s != NULL))
		return "nonempty differs from the slots that have a span";
	if (slot->uninit != uninit || slot->sc != sc ||
	    slot->size != sizeclass_table[spanclass_size(sc)].size)
		return "slot has the wrong class or size";
	if (slot->run_log2 < MCACHE_RUN_FIRST ||
	    slot->run_log2 > MCACHE_RUN_LAST)
		return "slot has an impossible length of runs";
	if (s && !s->cached)
		return "slot has a span that is not cached";
	if (s && s->spanclass != slot->sc)
		return "slot has a span of the wrong class";
	if (s && slot->taken > s->npages << RT_PAGE_SHIFT)
		return "slot took more bytes than its span has";
	if (slot->uninit && slot->freed.head)
		return "slot for uninit has freed slots";
	if (freelist_check(&slot->freed))
		return freelist_check(&slot->freed);
	return check_run(slot);
}

static const char *check_slots(const struct rt_mcache *mc)
{
	const char *wrong = NULL;

	for (unsigned i = 0; i < MCACHE_SLOTS && !wrong; i++) {
		bool uninit = i >= SPANCLASS_BASE;

		wrong = check_slot(&mc->slots[i], mc->nonempty, i,
				   (spanclass)(uninit ? i - SPANCLASS_BASE : i),
				   uninit);
	}
	return wrong;
}

// check_kind checks what a P has of a registered kind.
static const char *check_kind(const struct rt_mcache *mc, unsigned kind)
{
	const struct mcache_kind *k = mcache_kind_of(mc, kind);
	const char *wrong = NULL;

	if (!k)
		return mc->used_kinds >> kind & 1
			   ? "kind is in use but has no slots"
			   : NULL;
	if ((k->nonempty[0] | k->nonempty[1]) != 0 &&
	    !(mc->used_kinds >> kind & 1))
		return "kind is in use but not in used_kinds";
	for (unsigned c = 0; c < SIZECLASS_COUNT && !wrong; c++)
		wrong = check_slot(&k->slots[c], k->nonempty, c,
				   spanclass_make(c, kind), false);
	return wrong;
}

static const char *check_stacks(const struct mcache_stacks *c)
{
	for (unsigned order = 0; order < MCACHE_STACK_ORDERS; order++) {
		if (c->n[order] > MCACHE_STACKS >> order)
			return "mcache has more stacks than it may keep";
		for (unsigned i = 0; i < c->n[order]; i++)
			if (!c->stack[order][i])
				return "mcache counts a stack that it does not "
				       "have";
	}
	return NULL;
}

const char *mcache_check(const struct rt_mcache *mc)
{
	const char *wrong = NULL;

	if (mc->thread.mc != mc)
		return "thread block belongs to another mcache";
	if (!mc->thread.p)
		return "mcache has no P";
	if (mc->thread.run != mc->runs.row &&
	    mc->thread.run != proc_no_runs.row)
		return "thread block has runs of another mcache";
	if (mc->tiny % SIZECLASS_TINY_SIZE != 0 ||
	    mc->tiny_offset > SIZECLASS_TINY_SIZE)
		return "tiny block has an impossible place or size";
	if ((mc->nhandles == 0) != (mc->handles == 0))
		return "free handles differ from their number";
	wrong = check_stacks(&mc->stacks);
	if (!wrong)
		wrong = mheap_cache_check(&mc->heap);
	if (!wrong)
		wrong = check_slots(mc);
	for (unsigned k = KIND_TYPED; k < KIND_COUNT && !wrong; k++)
		wrong = check_kind(mc, k);
	return wrong;
}

const char *mcache_blocks_check(const struct mcache_blocks *b)
{
	const char *wrong = mutex_check(&b->lock);

	if (!wrong)
		wrong = slabpool_check(&b->mcaches);
	if (!wrong)
		wrong = slabpool_check(&b->kinds);
	return wrong;
}
