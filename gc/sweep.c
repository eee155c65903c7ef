#include "gc/sweep.h"

#include "gc/crew.h"
#include "runtime/bits.h"
#include "runtime/mcentral.h"
#include "runtime/oscall.h"
#include "runtime/throw.h"

// Chunks from which on helpers are called: some hundred microseconds of
// sweeping, against the tens that it takes to wake a thread.
enum { CALL_FROM = 32 };

static struct {
	RT_CACHE_ALIGNED atomic_u32 left;   // chunks not yet handed out
	RT_CACHE_ALIGNED atomic_u32 active; // sweepers under way
} sweep;

// What was found in some spans, published at once.
struct found {
	uint32_t small_freed[SIZECLASS_COUNT];
	uint64_t large_freed_bytes;
	uint64_t large_freed;
	struct mspan *dead;    // linked by next, as the others
	struct mspan *partial; // in the order in which they are pushed
	struct mspan **partial_end;
};

void gcsweep_begin(void)
{
	atomic_u32_store_release(&sweep.left,
				 (uint32_t)(arena_used() >> RT_CHUNK_SHIFT));
}

bool gcsweep_done(void)
{
	return atomic_u32_load_acquire(&sweep.left) == 0 &&
	       atomic_u32_load_acquire(&sweep.active) == 0;
}

// sweep_lines makes the mark line of a span its only line; returns how many
// slots lived before and sets *live to how many do now.
static uint32_t sweep_lines(struct mspan *s, uint32_t gen, uint32_t *live)
{
	unsigned now = epoch_alloc_line(gen);
	unsigned words = s->nwords;
	uint32_t before = 0;

	*live = 0;
	for (unsigned w = 0; w < words; w++) {
		atomic_u64 *old_word = mspan_word(s, now ^ 1, w);
		uint64_t old = atomic_u64_load_relaxed(old_word);
		uint64_t new = atomic_u64_load_relaxed(mspan_word(s, now, w));

		if (RT_UNLIKELY(new & ~old))
			rt_throw_value("found pointer to free object", "span",
				       s->base);
		if (old == 0)
			continue;
		before += bits_count(old);
		*live += new == 0 ? 0 : bits_count(new);
		// Release: see object_find.
		atomic_u64_store_release(old_word, 0);
	}
	return before;
}

// sweep_span sweeps a span that the caller has claimed.
static void sweep_span(struct mspan *s, uint32_t gen, struct found *f)
{
	uint32_t live;
	uint32_t before = sweep_lines(s, gen, &live);
	uint32_t freed = before - live;

	if (before != s->alloc_count || s->cached)
		rt_throw_value("mspan.sweep: bad span state", "span", s->base);
	s->alloc_count = live;
	if (freed != 0)
		s->needzero = 1;
	atomic_u32_store_release(&s->sweepgen, gen);
	if (mspan_is_large(s)) {
		f->large_freed += freed;
		f->large_freed_bytes += freed * s->elemsize;
	} else {
		f->small_freed[s->sizeclass] += freed;
	}
	if (live == 0) {
		s->next = f->dead;
		f->dead = s;
	} else if (live < s->nelems) {
		s->next = NULL;
		*f->partial_end = s;
		f->partial_end = &s->next;
	}
}

// push_partial lets other Ps have the spans with free slots.
static void push_partial(struct mspan *list)
{
	for (struct mspan *s = list, *next; s; s = next) {
		next = s->next; // s is anybody's once it is pushed
		mcentral_push(s);
	}
}

// publish counts the frees; only then may slots and pages be used again, so
// that no reader finds more objects than fit.
static void publish(struct rt_proc *p, const struct found *f)
{
	struct heapstats_delta *d = heapstats_acquire(p);
	uint64_t bytes = f->large_freed_bytes;

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
	push_partial(f->partial);
	mheap_free(p, f->dead);
}

static bool claim(struct mspan *s, uint32_t gen)
{
	return atomic_u32_cas_acquire(&s->sweepgen, gen - 2, gen - 1);
}

// sweep_range sweeps the heap spans whose first page lies in [page, end), the
// highest first.
static void sweep_pages(uint64_t page, uint64_t end, struct found *f)
{
	uint32_t gen = epoch_sweepgen();

	while (end-- > page) {
		uint32_t w = arena_word(end);
		struct mspan *s;

		if (pageword_place(w) != 0 ||
		    (pageword_state(w) != PAGEWORD_HEAP &&
		     pageword_state(w) != PAGEWORD_SETTING_UP))
			continue;
		s = arena_span(end);
		if (s && claim(s, gen))
			sweep_span(s, gen, f);
	}
}

static void chunk_sweep(struct rt_proc *p, uint32_t chunk)
{
	uint64_t page = (uint64_t)chunk * RT_CHUNK_PAGES;
	struct found f = {.partial_end = &f.partial};

	sweep_pages(page, page + RT_CHUNK_PAGES, &f);
	publish(p, &f);
}

bool gcsweep_chunk(struct rt_proc *p)
{
	uint32_t left;

	// Active before it is taken: nobody sees all taken and none active
	// while this chunk is not swept.
	atomic_u32_add_seqcst(&sweep.active, 1);
	do
		left = atomic_u32_load_relaxed(&sweep.left);
	while (left != 0 &&
	       !atomic_u32_cas_seqcst(&sweep.left, left, left - 1));
	if (left != 0)
		chunk_sweep(p, left - 1);
	atomic_u32_add_seqcst(&sweep.active, (uint32_t)-1);
	return left != 0;
}

void gcsweep_help(struct rt_proc *p)
{
	while (atomic_u32_load_acquire(&sweep.left) != 0)
		gcsweep_chunk(p);
}

void gcsweep_ensure(struct rt_proc *p, struct mspan *s)
{
	uint32_t gen = epoch_sweepgen();
	struct found f = {.partial_end = &f.partial};

	if (atomic_u32_load_acquire(&s->sweepgen) == gen)
		return;
	// Active before it is claimed: who finds the span claimed and passes
	// it by must not find the sweep done.
	atomic_u32_add_seqcst(&sweep.active, 1);
	if (claim(s, gen)) {
		sweep_span(s, gen, &f);
		publish(p, &f);
	}
	atomic_u32_add_seqcst(&sweep.active, (uint32_t)-1);
	while (atomic_u32_load_acquire(&s->sweepgen) != gen)
		oscall_yield();
}

void gcsweep_all(struct rt_proc *p)
{
	if (atomic_u32_load_relaxed(&sweep.left) >= CALL_FROM &&
	    crew_size() != 0)
		crew_call(CREW_SWEEP);
	while (gcsweep_chunk(p))
		;
	while (!gcsweep_done())
		oscall_yield();
}

void gcsweep_forked(void)
{
	atomic_u32_store_relaxed(&sweep.active, 0);
}
