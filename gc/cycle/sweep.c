// sweep.c - sweeps spans, a chunk at a time.
#include "gc/cycle/sweep.h"

#include "runtime/base/bits.h"
#include "runtime/os/oscall.h"
#include "runtime/os/schedpoint.h"
#include "runtime/os/throw.h"
#include "runtime/os/nanotime.h"
#include "runtime/world/stw.h"
#include "runtime/world/gcstats.h"
#include "runtime/spans/mcentral.h"
#include "runtime/spans/spoil.h"
#include "gc/mark/crew.h"
#include "gc/mark/drops.h"

// The fewest chunks that helpers are called for: some hundred microseconds of
// sweeping, against the tens that it takes to wake a thread.
enum { CALL_FROM = 32 };

// How long a thread sleeps before it looks again at a span that another one
// sweeps.  Sweeping a span takes less than a microsecond.
enum { SPAN_NS = 20000 };

struct sweep sweep;

// What was found in some spans, published at once.
struct found {
	uint32_t small_freed[SIZECLASS_COUNT];
	uint64_t large_freed_bytes;
	uint64_t large_freed;
	uint64_t dead_pages;   // of the dead spans
	bool freed;	       // some slot
	struct mspan *dead;    // linked by next, like partial
	struct mspan *partial; // in the order in which they are pushed
	struct mspan **partial_end;
};

void sweep_begin(bool beside)
{
	uint64_t n = arena_used() >> RT_CHUNK_SHIFT;

	RT_ASSERT(stw_stopped());
	atomic_u64_store_relaxed(&sweep.freed_pages, 0);
	atomic_u64_store_relaxed(&sweep.freed_objects, 0);
	atomic_u64_store_relaxed(&sweep.timed_chunks, 0);
	atomic_u64_store_relaxed(&sweep.timed_ns, 0);
	// Pairs with the acquires in sweep_done, sweep_help and sweep_check,
	// and with the compare and swap in take.
	atomic_u64_store_release(&sweep.left,
				 n << 32 | (beside ? SWEEP_BESIDE : 0));
	RT_CHECK(sweep_check(&sweep));
}

void sweep_reset(void)
{
	atomic_u64_store_relaxed(&sweep.left, 0);
}

bool sweep_done(void)
{
	// The acquires pair with the release in sweep_begin, and with the
	// additions in sweep_one and sweep_ensure.
	uint64_t left = atomic_u64_load_acquire(&sweep.left);

	schedpoint(SCHED_SWEEP_DONE);
	return sweep_none(left) && atomic_u32_load_acquire(&sweep.active) == 0;
}

struct counts {
	uint32_t before;  // slots that were allocated
	uint32_t live;	  // slots that still are
	uint64_t invalid; // not 0: a free slot was marked
};

RT_INLINE unsigned count(uint64_t x, bool counter)
{
	return counter ? (unsigned)__builtin_popcountll(x) : bits_count(x);
}

// sweep_words clears the old linewords of one page, and counts the bits of the
// old and the new ones.  counter says that the processor counts bits in one
// instruction.
RT_INLINE void sweep_words(struct linewords *lines, unsigned now,
			   unsigned words, bool counter, struct counts *c)
{
	for (unsigned w = 0; w < words; w++) {
		atomic_u64 *old_word = &lines[w].line[now ^ 1];
		uint64_t old = atomic_u64_load_relaxed(old_word);
		uint64_t new = atomic_u64_load_relaxed(&lines[w].line[now]);

		c->invalid |= new & ~old;
		c->before += count(old, counter);
		c->live += count(new, counter);
		// Pairs with the acquire in object_test: see object_find.
		atomic_u64_store_release(old_word, 0);
	}
}

RT_INLINE struct counts sweep_pages(const struct mspan *s, uint32_t gen,
				    bool counter)
{
	struct linewords *lines = mspan_lines(s);
	unsigned now = epoch_alloc_line(gen);
	struct counts c = {0};

	unsigned left = s->nwords;

	// The most frequent number of words is passed as a constant.
	for (; left >= RT_PAGE_WORDS; left -= RT_PAGE_WORDS) {
		sweep_words(lines, now, RT_PAGE_WORDS, counter, &c);
		lines += RT_PAGE_WORDS;
	}
	sweep_words(lines, now, left, counter, &c);
	return c;
}

#if defined(__x86_64__) && !defined(__POPCNT__)
__attribute__((target("popcnt"))) static struct counts
sweep_lines_counter(const struct mspan *s, uint32_t gen)
{
	return sweep_pages(s, gen, true);
}

// sweep_lines clears the old alloc line of a span, and counts both lines.
static struct counts sweep_lines(const struct mspan *s, uint32_t gen)
{
	return __builtin_cpu_supports("popcnt") ? sweep_lines_counter(s, gen)
						: sweep_pages(s, gen, false);
}
#else
static struct counts sweep_lines(const struct mspan *s, uint32_t gen)
{
	return sweep_pages(s, gen, true);
}
#endif

// check_guarded throws if the memory beside a dead guarded object was
// overwritten.
static void check_guarded(const struct mspan *s)
{
	uintptr_t object = mspan_object(s, 0);
	uintptr_t at = mspan_overwritten(s);
	struct text t;

	if (RT_LIKELY(at == 0))
		return;
	text_init(&t);
	text_str(&t, "rtheap: object=");
	text_hex(&t, object);
	text_str(&t, " size=");
	text_u64(&t, mspan_usable(s));
	text_str(&t, at < object ? ", written before it by " : ", offset=");
	text_u64(&t, at < object ? object - at : at - object);
	throw_text(&t, "guarded object was written outside");
}

// spoil_freed calls spoil_object for the slots that sweep_lines will free.
static RT_NOINLINE void spoil_freed(const struct mspan *s, uint32_t gen)
{
	unsigned now = epoch_alloc_line(gen);

	for (uint32_t slot = 0; slot < s->nelems; slot++) {
		void *p = (void *)mspan_object(s, slot);

		if (!mspan_test(s, now ^ 1, slot) || mspan_test(s, now, slot))
			continue;
		spoil_object(p, mspan_usable(s));
	}
}

// forget_dead clears the bits of dead objects in the slots that sweep_lines has
// freed.  A slot is free before its object ceases to be dead (deadbits.h).
static RT_NOINLINE void forget_dead(const struct mspan *s, uint32_t gen)
{
	unsigned now = epoch_alloc_line(gen);

	for (unsigned w = 0; w < s->nwords; w++) {
		struct deadwords *d = deadbits_word(s, w);
		uint64_t live =
		    atomic_u64_load_relaxed(mspan_lineword(s, now, w));
		uint64_t freed = deadbits_dead(d) & ~live;

		if (freed != 0) {
			schedpoint(SCHED_FORGET_DEAD);
			deadbits_clear(d, freed);
		}
	}
}

static void add_dead(struct found *f, struct mspan *s)
{
	f->dead_pages += s->npages;
	s->next = f->dead;
	f->dead = s;
}

static void add_partial(struct found *f, struct mspan *s)
{
	s->next = NULL;
	*f->partial_end = s;
	f->partial_end = &s->next;
}

static void count_freed(struct found *f, const struct mspan *s, uint32_t freed)
{
	f->freed |= freed != 0;
	if (mspan_is_large(s)) {
		if (RT_UNLIKELY(guard_on) && freed != 0)
			check_guarded(s);
		f->large_freed += freed;
		f->large_freed_bytes += freed * s->elemsize;
	} else {
		f->small_freed[s->sizeclass] += freed;
	}
}

// sweep_span sweeps a span that the caller has claimed, and adds to *f what it
// found.
static void sweep_span(struct mspan *s, uint32_t gen, struct found *f)
{
	RT_ASSERT(atomic_u32_load_relaxed(&s->sweepgen) == gen - 1);
	if (RT_UNLIKELY(spoil_on()))
		spoil_freed(s, gen);
	struct counts c = sweep_lines(s, gen);
	uint32_t freed = c.before - c.live;
	bool partial;

	if (RT_UNLIKELY(c.invalid))
		throw_value("found pointer to free object", "span", s->base);
	if (c.before != s->alloc_count || s->cached)
		throw_value("mspan.sweep: bad span state", "span", s->base);
	s->alloc_count = c.live;
	if (freed != 0)
		s->needzero = 1;
	if (RT_UNLIKELY(deadbits_span_has(s)) && freed != 0)
		forget_dead(s, gen);
	count_freed(f, s, freed);
	partial = c.live < s->nelems && !s->queued;
	schedpoint(SCHED_SWEEP_SPAN);
	// Pairs with the acquires in claim and sweep_ensure.  From now on a
	// thread that waits in sweep_ensure may free a large object, or take a
	// span out of the queue of drops.
	atomic_u32_store_release(&s->sweepgen, gen);
	schedpoint(SCHED_SWEEP_SPAN_SWEPT);
	if (c.live == 0) {
		add_dead(f, s);
	} else if (partial) {
		add_partial(f, s);
	}
}

// push_partial makes the spans with free slots available to all Ps.
static void push_partial(struct mspan *list)
{
	for (struct mspan *s = list, *next; s; s = next) {
		next = s->next; // a pushed span may be another P's
		mcentral_push(s);
	}
}

// publish counts the frees, and only then makes slots and pages usable again,
// so that no reader finds more objects than fit.  It returns the bytes freed.
static uint64_t publish(struct rt_proc *p, const struct found *f)
{
	uint64_t bytes = f->large_freed_bytes;
	struct heapstats_delta *d;

	schedpoint(SCHED_SWEEP_PUBLISH);
	d = heapstats_acquire(p);
	for (unsigned c = 0; c < SIZECLASS_COUNT; c++)
		if (f->small_freed[c] != 0) {
			heapstats_add(&d->small_free_count[c],
				      f->small_freed[c]);
			bytes += (uint64_t)f->small_freed[c] *
				 sizeclass_table[c].size;
		}
	if (f->large_freed != 0) {
		heapstats_add(&d->large_free_count, f->large_freed);
		heapstats_add(&d->large_free, f->large_freed_bytes);
	}
	heapstats_release(p);
	heapgauge_add(p, HEAPGAUGE_TOTAL_FREE, (int64_t)bytes);
	schedpoint(SCHED_SWEEP_PUBLISH_COUNTED);
	push_partial(f->partial);
	mheap_free(p, f->dead);
	return bytes;
}

static bool claim(struct mspan *s, uint32_t gen)
{
	schedpoint(SCHED_SWEEP_CLAIM);
	// Pairs with the release in sweep_span, in the previous sweep.
	return atomic_u32_cas_acquire(&s->sweepgen, gen - 2, gen - 1);
}

// sweep_page sweeps the span that begins at a page, if one does.
static void sweep_page(uint64_t page, uint32_t gen, struct found *f)
{
	uint32_t pageword = arena_pageword(page);
	struct mspan *s;

	if (pageword_place(pageword) != 0 ||
	    (pageword_state(pageword) != PAGEWORD_HEAP &&
	     pageword_state(pageword) != PAGEWORD_SETTING_UP))
		return;
	s = arena_span(page);
	if (s && claim(s, gen))
		sweep_span(s, gen, f);
}

// finish publishes what a sweeper has found, and adds it to this sweep's sums.
static void finish(struct rt_proc *p, const struct found *f)
{
	uint64_t bytes;

	if (!f->freed && !f->dead && !f->partial)
		return;
	bytes = publish(p, f);
	atomic_u64_add_relaxed(&sweep.freed_pages,
			       f->dead_pages << RT_PAGE_SHIFT);
	atomic_u64_add_relaxed(&sweep.freed_objects, bytes);
}

// Spans are prefetched this many pages ahead of the page that is swept.
enum { AHEAD_PAGES = 8 };

// prefetch_span prefetches both cache lines of an mspan, for a sweep that goes
// down and is at place i of a chunk.  The mspan is that of a page which is
// swept later, or NULL.  Mspans lie anywhere in memory, and the program has not
// touched most of them for long.
RT_INLINE void prefetch_span(uint64_t chunk_page, unsigned i)
{
	uintptr_t s = (uintptr_t)arena_span_hint(chunk_page +
						 base_sub_sat(i, AHEAD_PAGES));

	__builtin_prefetch((const void *)s);
	__builtin_prefetch((const void *)(s + RT_CACHE_LINE));
}

// sweep_taken sweeps the spans that begin in the pages of a chunk that are
// taken, the highest first.  It clears the bits in *taken.
static void sweep_taken(struct rt_proc *p, uint32_t chunk,
			struct pallocbits *taken)
{
	uint64_t page = (uint64_t)chunk * RT_CHUNK_PAGES;
	struct found f = {.partial_end = &f.partial};
	uint32_t gen = epoch_sweepgen();

	for (unsigned w = PALLOCBITS_WORDS; w-- > 0;)
		while (taken->word[w] != 0) {
			unsigned bit = 63 - bits_clz(taken->word[w]);

			taken->word[w] ^= UINT64_C(1) << bit;
			prefetch_span(page, w * 64 + bit);
			sweep_page(page + w * 64 + bit, gen, &f);
		}
	finish(p, &f);
}

// sweep_clocked does the same for a thread of the host that is not stopped, and
// counts its CPU time.
static void sweep_clocked(struct rt_proc *p, uint32_t chunk,
			  struct pallocbits *taken)
{
	uint64_t before = oscall_thread_cpu(0);

	sweep_taken(p, chunk, taken);
	gcstats_swept(GCSTATS_ASSIST, before);
}

static bool any_taken(const struct pallocbits *taken)
{
	uint64_t any = 0;

	for (unsigned w = 0; w < PALLOCBITS_WORDS; w++)
		any |= taken->word[w];
	return any != 0;
}

// How a thread takes chunks: as sweep_chunk, as sweep_chunks_down, as
// sweep_all, or as sweep_help.
enum taker { TAKER_CHUNK, TAKER_DOWN, TAKER_STOPPER, TAKER_HELPER };

// chunk_sweep sweeps the spans that begin in a chunk.  Free pages cost nothing,
// not even a reading of the clock of CPU time.
static void chunk_sweep(struct rt_proc *p, uint32_t chunk, enum taker taker)
{
	struct pallocbits taken;

	mheap_chunk_pages(chunk, &taken);
	if (!any_taken(&taken))
		return;
	if (taker == TAKER_CHUNK)
		sweep_clocked(p, chunk, &taken);
	else
		sweep_taken(p, chunk, &taken);
}

static_assert(ARENA_MAX_RANGE >> RT_CHUNK_SHIFT < SWEEP_BESIDE,
	      "the numbers of chunks leave a bit of left");

static bool is_for_helpers(uint64_t left)
{
	return !sweep_none(left) && (left & SWEEP_BESIDE) == 0;
}

// take hands out a chunk.  Returns false if there is none, or, for a helper,
// if threads sweep beside each other.
static bool take(uint32_t *chunk, enum taker taker)
{
	uint64_t left;
	bool upward;

	do {
		left = atomic_u64_load_relaxed(&sweep.left);
		if (sweep_none(left) ||
		    (taker == TAKER_HELPER && !is_for_helpers(left)))
			return false;
		upward = taker == TAKER_CHUNK && (left & SWEEP_BESIDE) != 0;
	} while (!atomic_u64_cas_seqcst(
	    &sweep.left, left,
	    upward ? left + 1 : left - (UINT64_C(1) << 32)));
	*chunk = upward ? sweep_lowest(left) : sweep_highest(left) - 1;
	return true;
}

// sweep_one sweeps a chunk.  Returns false if the caller gets none.
static bool sweep_one(struct rt_proc *p, enum taker taker)
{
	uint32_t chunk;
	bool taken;

	// Raise active before a chunk is taken: no thread may see all chunks
	// taken and no sweeper active while this chunk is not swept.
	atomic_u32_add_seqcst(&sweep.active, 1);
	schedpoint(SCHED_SWEEP_ONE);
	taken = take(&chunk, taker);
	schedpoint(SCHED_SWEEP_ONE_TAKEN);
	if (taken)
		chunk_sweep(p, chunk, taker);
	atomic_u32_add_seqcst(&sweep.active, (uint32_t)-1);
	RT_CHECK(sweep_check(&sweep));
	return taken;
}

// timed adds n chunks, swept since begin, to what was measured.
static void timed(uint64_t begin, uint64_t n)
{
	atomic_u64_add_relaxed(&sweep.timed_ns,
			       base_sub_sat(nanotime(), begin));
	atomic_u64_add_relaxed(&sweep.timed_chunks, n);
}

static bool sweep_timed(struct rt_proc *p, enum taker taker)
{
	uint64_t begin = nanotime();

	if (!sweep_one(p, taker))
		return false;
	timed(begin, 1);
	return true;
}

bool sweep_chunk(struct rt_proc *p)
{
	return sweep_timed(p, TAKER_CHUNK);
}

bool sweep_chunks_down(struct rt_proc *p)
{
	uint64_t before = oscall_thread_cpu(0);
	unsigned n = 0;

	do {
		if (!sweep_timed(p, TAKER_DOWN))
			break;
	} while (++n < SWEEP_SLICE && !proc_wanted(p));
	gcstats_swept(GCSTATS_BACKGROUND, before);
	return n != 0;
}

void sweep_help(struct rt_proc *p)
{
	// A helper that finds nothing writes nothing.  Pairs with the release
	// in sweep_begin.
	while (is_for_helpers(atomic_u64_load_acquire(&sweep.left))) {
		schedpoint(SCHED_SWEEP_HELP);
		if (!sweep_one(p, TAKER_HELPER))
			break;
	}
}

// await_span sleeps for a moment, because another thread sweeps a span.  No
// thread wakes the sleeper.  It must sleep: sched_yield would not let a thread
// of a lower priority run.
static void await_span(const struct mspan *s, uint32_t claimed)
{
	oscall_futex_wait(&s->sweepgen, claimed, SPAN_NS);
}

void sweep_ensure(struct rt_proc *p, struct mspan *s)
{
	uint32_t gen = epoch_sweepgen();
	struct found f = {.partial_end = &f.partial};

	// Pairs with the release in sweep_span, as below.
	if (atomic_u32_load_acquire(&s->sweepgen) == gen)
		return;
	// Raise active before the span is claimed: a thread that finds the span
	// claimed and skips it must not find the sweep done.
	atomic_u32_add_seqcst(&sweep.active, 1);
	schedpoint(SCHED_SWEEP_ENSURE);
	if (claim(s, gen)) {
		schedpoint(SCHED_SWEEP_ENSURE_CLAIMED);
		sweep_span(s, gen, &f);
		finish(p, &f);
	}
	atomic_u32_add_seqcst(&sweep.active, (uint32_t)-1);
	RT_CHECK(sweep_check(&sweep));
	while (atomic_u32_load_acquire(&s->sweepgen) != gen) {
		schedpoint(SCHED_SWEEP_ENSURE_WAIT);
		await_span(s, gen - 1);
	}
}

bool sweep_free_large(struct rt_proc *p, struct mspan *s)
{
	struct found f = {.large_freed = 1,
			  .large_freed_bytes = s->elemsize,
			  .partial_end = &f.partial};
	atomic_u64 *word =
	    mspan_lineword(s, epoch_alloc_line(epoch_sweepgen()), 0);

	RT_ASSERT(p == proc_self());
	sweep_ensure(p, s);
	// The allocword has no other bit.  If several threads try, one clears
	// it.  Pairs with the acquire in object_test.
	if (!atomic_u64_cas_release(word, *mspan_masks(s), 0))
		return false;
	if (RT_UNLIKELY(spoil_on()))
		spoil_object((void *)mspan_object(s, 0), mspan_usable(s));
	if (RT_UNLIKELY(guard_on))
		check_guarded(s);
	s->alloc_count = 0;
	s->next = NULL;
	f.dead = s;
	atomic_u64_add_relaxed(&gauges.heap_live, -s->elemsize);
	publish(p, &f);
	return true;
}

// ---- dropped objects ----

// spoil_bits spoils the objects that have the given bits of word w of a span.
static RT_NOINLINE void spoil_bits(const struct mspan *s, unsigned w,
				   uint64_t bits)
{
	for (; bits; bits &= bits - 1)
		spoil_object((void *)mspan_object(
				 s, deadbits_object(s, w, bits_ctz(bits))),
			     mspan_usable(s));
}

// free_dropped frees the dropped objects of word w, and returns their number.
// A slot is free before its object ceases to be dead (deadbits.h).
static uint32_t free_dropped(const struct mspan *s, unsigned w)
{
	struct deadwords *d = deadbits_word(s, w);
	unsigned line = epoch_alloc_line(epoch_sweepgen());
	atomic_u64 *word = mspan_lineword(s, line, w);
	uint64_t bits = deadbits_dropped(d);

	if (bits == 0)
		return 0;
	if (RT_UNLIKELY(spoil_on()))
		spoil_bits(s, w, bits);
	// Pairs with the acquire in object_test.
	atomic_u64_store_release(word, atomic_u64_load_relaxed(word) & ~bits);
	schedpoint(SCHED_FREE_DROPPED);
	deadbits_clear(d, bits);
	return (uint32_t)bits_count(bits);
}

// end_span takes a span out of its batch, and frees the objects that were
// dropped in it.  It leaves those of a condemned span to a collection, which
// finds out whether anything refers to them.
static void end_span(struct mspan *s, struct found *f)
{
	uint64_t waiting = 0;
	uint32_t freed = 0;

	for (unsigned w = 0; w < s->nwords; w++) {
		if (!s->condemned)
			freed += free_dropped(s, w);
		waiting |= deadbits_waiting(deadbits_word(s, w));
	}
	s->alloc_count -= freed;
	if (freed != 0)
		s->needzero = 1;
	count_freed(f, s, freed);
	if (waiting != 0) {
		drops_requeue(s);
		return;
	}
	s->queued = 0;
	if (s->alloc_count == 0)
		add_dead(f, s);
	else if (s->alloc_count < s->nelems)
		add_partial(f, s);
}

void sweep_free_dropped(struct rt_proc *p, struct mspan *list)
{
	struct found f = {.partial_end = &f.partial};
	uint64_t bytes;

	RT_ASSERT(p == proc_self() && drops_runs(p));
	for (struct mspan *s = list, *next; s; s = next) {
		next = s->next;
		sweep_ensure(p, s);
		end_span(s, &f);
	}
	bytes = publish(p, &f);
	atomic_u64_add_relaxed(&gauges.heap_dead, -bytes);
}

void sweep_all(struct rt_proc *p)
{
	uint64_t begin = nanotime(), n = 0;
	uint64_t left = atomic_u64_load_relaxed(&sweep.left);

	RT_ASSERT(stw_stopped());
	// No other thread changes it: the threads are stopped, and helpers
	// leave it alone.
	if (left & SWEEP_BESIDE)
		atomic_u64_store_release(&sweep.left, left & ~SWEEP_BESIDE);
	if (sweep_highest(left) - sweep_lowest(left) >= CALL_FROM &&
	    crew_size() != 0)
		crew_call(CREW_SWEEP);
	while (sweep_left() && sweep_one(p, TAKER_STOPPER))
		n++;
	if (n != 0)
		timed(begin, n);
	while (!sweep_done()) {
		schedpoint(SCHED_SWEEP_ALL_WAIT);
		oscall_yield();
	}
}

void sweep_fork_child(void)
{
	RT_ASSERT(stw_stopped());
	atomic_u32_store_relaxed(&sweep.active, 0);
}

const char *sweep_check(const struct sweep *s)
{
	// This is read before the length of the heap, which only grows.  Pairs
	// with the release in sweep_begin.
	uint64_t left = atomic_u64_load_acquire(&s->left);

	if (sweep_lowest(left) > sweep_highest(left))
		return "lowest chunk to sweep is above the highest";
	if (sweep_highest(left) > arena_used() >> RT_CHUNK_SHIFT)
		return "more chunks to sweep than the heap has";
	// Helpers that come late may be active for a moment even in a stop.
	if (atomic_u32_load_relaxed(&s->active) >> 31 != 0)
		return "number of active sweepers is negative";
	return NULL;
}
