// Sweeping: every span once, every free counted, the sets in order.
#define RT_NO_INLINE_ALLOC
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/world/stw.h"
#include "test/harness/await.h"
#include "test/harness/death.h"
#include "test/harness/inside.h"

static char *take(unsigned c)
{
	char *obj = inside_take(spanclass_make(c, KIND_NOSCAN));

	if (!obj)
		ck_abort_msg("no memory");
	return obj;
}

static struct mspan *take_large(size_t n)
{
	struct mspan *s = refill_large(mc, self, KIND_NOSCAN, n);

	if (!s)
		ck_abort_msg("no memory");
	mheap_publish_large(s);
	return s;
}

static uint32_t chunk_of(const struct mspan *s)
{
	return (uint32_t)(arena_offset(s->base) >> RT_CHUNK_SHIFT);
}

static bool is_swept(const struct mspan *s)
{
	return atomic_u32_load_acquire(&s->sweepgen) == epoch_sweepgen();
}

// mark sets a slot's mark bit by hand.
static void mark(const struct mspan *s, uint32_t slot)
{
	unsigned bit = mspan_bit(s, slot);
	atomic_u64 *word =
	    mspan_lineword(s, epoch_mark_line(epoch_sweepgen()), bit / 64);

	atomic_u64_store_relaxed(word, atomic_u64_load_relaxed(word) |
					   UINT64_C(1) << (bit % 64));
}

static void mark_object(const void *p)
{
	const struct mspan *s = inside_span(p);

	mark(s, mspan_slot(s, (uintptr_t)p - s->base));
}

// flip_heap does what the cycle does before sweeping.
static void flip_heap(void)
{
	mcache_flush(mc, self);
	inside_flip();
}

static void expect_verified(void)
{
	heap_live();
	heap_stats(); // the double check
}

// ---- one span ----

GROUP(sweep, .timeout = 120);

TEST(a_span_with_survivors_keeps_them_alone)
{
	struct heapstats_totals t;
	struct mspan *s = NULL;
	char *p;

	inside_boot(true);
	for (int i = 0; i < 8; i++)
		s = inside_span(take(32)); // 8 of 1024 bytes
	memset((void *)s->base, 0x11, RT_PAGE_SIZE);
	mark(s, 3);
	mark(s, 7);
	flip_heap();
	ck_assert(!is_swept(s));
	sweep_ensure(self, s);
	ck_assert(is_swept(s));
	ck_assert_uint_eq(s->alloc_count, 2);
	ck_assert_uint_eq(s->needzero, 1);
	ck_assert_ptr_eq(inside_partial(s->spanclass), s);
	t = stopped_totals();
	ck_assert_uint_eq(t.small_free_count[32], 6);
	ck_assert_uint_eq(heapgauge_sum(HEAPGAUGE_TOTAL_FREE), 6 * 1024);
	sweep_ensure(self, s); // does nothing now
	t = stopped_totals();
	ck_assert_uint_eq(t.small_free_count[32], 6);
	inside_sweep_all();
	p = (char *)s->base;
	ck_assert_ptr_eq(take(32), p + 6 * 1024); // a brief run
	ck_assert_int_eq(p[6 * 1024 - 1], 0x11);
	ck_assert_ptr_eq(take(32), p + 5 * 1024); // zeroed again
	ck_assert_ptr_eq(take(32), p + 4 * 1024);
	for (int i = 4 * 1024; i < 7 * 1024; i++)
		if (p[i] != 0)
			ck_abort_msg("byte %d", i);
	ck_assert_int_eq(p[4 * 1024 - 1], 0x11);
	ck_assert_int_eq(p[7 * 1024], 0x11);
	expect_verified();
}

TEST(a_full_span_is_in_no_set)
{
	struct mspan *s = NULL;

	inside_boot(true);
	for (uint32_t i = 0; i < 8; i++) {
		s = inside_span(take(32));
		mark(s, i);
	}
	flip_heap();
	inside_sweep_all();
	ck_assert(is_swept(s));
	ck_assert_uint_eq(s->alloc_count, 8);
	ck_assert_uint_eq(s->needzero, 0); // nothing of it was freed
	ck_assert_ptr_null(inside_partial(s->spanclass));
	expect_verified();
}

// The pages of the span are free again, for every class and for a large object.
TEST(a_span_without_survivors_is_freed, .n = SIZECLASS_COUNT)
{
	unsigned c = (unsigned)_i;
	struct heapstats_totals t;
	struct mspan *s;
	uint64_t page, npages, size;

	inside_boot(true);
	s = c ? inside_span(take(c)) : take_large(100000);
	page = mspan_page(s);
	npages = s->npages;
	size = s->elemsize;
	ck_assert_uint_eq(heapgauge_sum(HEAPGAUGE_PAGES_IN_USE), npages);
	flip_heap();
	sweep_ensure(c % 2 ? self : NULL, s); // even without a P
	for (uint64_t i = page; i < page + npages; i++) {
		ck_assert_uint_eq(arena_pageword(i), 0);
		ck_assert_ptr_null(arena_span(i));
	}
	ck_assert_uint_eq(heapgauge_sum(HEAPGAUGE_PAGES_IN_USE), 0);
	ck_assert_uint_eq(heapgauge_sum(HEAPGAUGE_IN_USE), 0);
	ck_assert_uint_eq(heapgauge_sum(HEAPGAUGE_TOTAL_FREE), size);
	t = stopped_totals();
	ck_assert_uint_eq(t.in_heap, 0);
	ck_assert_uint_eq(t.small_free_count[c], c != 0);
	ck_assert_uint_eq(t.large_free_count, c == 0);
	ck_assert_uint_eq(t.large_free, c == 0 ? size : 0);
	ck_assert_ptr_null(inside_partial(spanclass_make(c, KIND_NOSCAN)));
	inside_sweep_all();
	expect_verified();
}

// ---- chunks ----

// a is a small span, b and c are large ones.  c begins in a higher chunk than
// b.
TEST(chunks_are_swept_from_the_highest_down)
{
	struct mspan *a, *b, *c;

	inside_boot(true);
	a = inside_span(take(67));
	b = take_large(6 << 20);
	c = take_large(3 << 20);
	if (chunk_of(b) > chunk_of(c)) {
		struct mspan *swap = b;

		b = c;
		c = swap;
	}
	mark_object((void *)a->base);
	mark_object((void *)b->base);
	mark_object((void *)c->base);
	ck_assert_uint_eq(chunk_of(a), 0);
	ck_assert_uint_lt(chunk_of(b), chunk_of(c));
	flip_heap();
	ck_assert(!sweep_done());
	while (!is_swept(c))
		ck_assert(sweep_chunk(self));
	ck_assert_int_eq(is_swept(b), chunk_of(b) == chunk_of(c));
	ck_assert(!is_swept(a) || chunk_of(c) == 0);
	inside_sweep_all();
	ck_assert(is_swept(a) && is_swept(b));
	ck_assert(sweep_done());
	ck_assert(!sweep_chunk(self));
	expect_verified();
}

TEST(a_span_belongs_to_the_chunk_of_its_first_page)
{
	struct mspan *s[3];
	uint32_t nchunks;

	inside_boot(true);
	take_large(RT_CHUNK_SIZE - 2 * RT_PAGE_SIZE);
	s[0] = take_large(3 * RT_CHUNK_SIZE); // begins near a chunk's end
	s[1] = take_large(RT_CHUNK_SIZE);
	nchunks = (uint32_t)(arena_used() >> RT_CHUNK_SHIFT);
	for (int i = 0; i < 2; i++)
		mark_object((void *)s[i]->base);
	flip_heap();
	for (uint32_t chunk = nchunks; chunk-- > 0;) {
		ck_assert(sweep_chunk(self));
		for (int i = 0; i < 2; i++)
			ck_assert_int_eq(is_swept(s[i]),
					 chunk_of(s[i]) >= chunk);
	}
	ck_assert(!sweep_chunk(self));
	ck_assert(sweep_done());
	expect_verified();
}

TEST(chunks_made_after_the_flip_are_not_swept)
{
	uint32_t before, calls = 0;
	struct mspan *s;

	inside_boot(true);
	take(20);
	flip_heap();
	before = (uint32_t)(arena_used() >> RT_CHUNK_SHIFT);
	rt_nogc_enter(); // the heap grows at once
	s = take_large(5 * RT_CHUNK_SIZE);
	must(rt_nogc_leave());
	ck_assert(is_swept(s));
	ck_assert_uint_gt(arena_used() >> RT_CHUNK_SHIFT, before);
	while (sweep_chunk(self))
		calls++;
	ck_assert_uint_eq(calls, before);
	ck_assert_uint_eq(heapgauge_sum(HEAPGAUGE_TOTAL_FREE),
			  sizeclass_table[20].size);
	expect_verified();
}

// ---- a heap of many spans ----

enum { MOST_SPANS = 32768, CLASSES = 6 };
static const unsigned classes[CLASSES] = {1, 5, 32, 38, 50, 67};

// What a sweep must free, and what it must leave.
static struct plan {
	uint64_t nfreed[SIZECLASS_COUNT]; // [0]: large
	uint64_t bytes_freed;
	uint64_t bytes_left;
	struct mspan *survivors[MOST_SPANS]; // spans that stay
	size_t nsurvivors;
} plan;

// plan_span marks all, none, or some of a span's objects, and notes what will
// be freed.
static void plan_span(struct rng *r, struct mspan *s)
{
	unsigned line = epoch_alloc_line(epoch_sweepgen());
	unsigned how = (unsigned)rng_below(r, 4);
	bool lives = false;

	for (uint32_t slot = 0; slot < s->nelems; slot++) {
		if (!mspan_test(s, line, slot))
			continue;
		if (how == 0 || (how > 1 && rng_next(r) % 2)) {
			plan.nfreed[spanclass_size(s->spanclass)]++;
			plan.bytes_freed += s->elemsize;
		} else {
			mark(s, slot);
			plan.bytes_left += s->elemsize;
			lives = true;
		}
	}
	if (lives && plan.nsurvivors < MOST_SPANS)
		plan.survivors[plan.nsurvivors++] = s;
}

static void shuffle_survivors(struct rng *r)
{
	for (size_t i = plan.nsurvivors; i > 1; i--) {
		size_t k = rng_below(r, i);
		struct mspan *s = plan.survivors[k];

		plan.survivors[k] = plan.survivors[i - 1];
		plan.survivors[i - 1] = s;
	}
}

static void plan_all(struct rng *r)
{
	uint64_t page = 0;
	struct mspan *s;
	bool begun;

	memset(&plan, 0, sizeof plan);
	mcache_flush(mc, self);
	begun = stopped_begin();
	while ((s = mheap_next_span(&page)) != NULL)
		if (s->use == MSPAN_HEAP)
			plan_span(r, s);
	stopped_end(begun);
	shuffle_survivors(r);
}

// populate fills about so many chunks; most memory is never touched.
static void populate(struct rng *r, uint64_t chunks)
{
	uint64_t goal =
	    heapgauge_sum(HEAPGAUGE_IN_USE) + (chunks << RT_CHUNK_SHIFT);

	while (heapgauge_sum(HEAPGAUGE_IN_USE) < goal) {
		unsigned c = classes[rng_below(r, CLASSES)];

		for (uint64_t i = rng_below(r, 400); i > 0; i--)
			take(c);
		if (rng_below(r, 4) == 0)
			take_large(32761 + rng_below(r, 1 << 20));
	}
}

// counts as they were, to be compared after a sweep.
struct counts {
	struct heapstats_totals t;
	uint64_t total_free;
};

static struct counts counts_now(void)
{
	return (struct counts){
	    .t = stopped_totals(),
	    .total_free = heapgauge_sum(HEAPGAUGE_TOTAL_FREE),
	};
}

static void expect_plan(const struct counts *before)
{
	struct counts now = counts_now();
	uint64_t page = 0;
	const struct mspan *s;
	bool begun;

	for (unsigned c = 1; c < SIZECLASS_COUNT; c++)
		ck_assert_uint_eq(now.t.small_free_count[c] -
				      before->t.small_free_count[c],
				  plan.nfreed[c]);
	ck_assert_uint_eq(now.t.large_free_count - before->t.large_free_count,
			  plan.nfreed[0]);
	ck_assert_uint_eq(now.total_free - before->total_free,
			  plan.bytes_freed);
	ck_assert_uint_eq(heapgauge_sum(HEAPGAUGE_TOTAL_ALLOC) - now.total_free,
			  plan.bytes_left);
	begun = stopped_begin();
	while ((s = mheap_next_span(&page)) != NULL)
		if (!is_swept(s) ||
		    (s->use == MSPAN_HEAP && s->alloc_count == 0))
			ck_abort_msg("span at %#lx", (unsigned long)s->base);
	stopped_end(begun);
	for (size_t i = 0; i < plan.nsurvivors; i++)
		if (inside_span((void *)plan.survivors[i]->base) !=
		    plan.survivors[i])
			ck_abort_msg("survivor %zu is gone", i);
	expect_verified();
}

// ascending_sets checks the order of all sets and counts their spans.
static size_t ascending_sets(void)
{
	size_t n = 0;
	bool begun = stopped_begin();

	for (unsigned sc = 0; sc < SPANCLASS_BASE; sc++) {
		const struct mspan *last = NULL;

		for (const struct mspan *s = mcentral_top((spanclass)sc); s;
		     s = mcentral_below(s)) {
			if (last && last->base >= s->base)
				ck_abort_msg("class %u", sc);
			last = s;
			n++;
		}
	}
	stopped_end(begun);
	return n;
}

TEST(sets_are_in_order_of_address_after_a_full_sweep)
{
	struct counts before;
	struct rng r;
	size_t n = 0;

	inside_boot(true);
	rng_init(&r, __func__);
	for (int round = 0; round < 8; round++) {
		populate(&r, 4);
		plan_all(&r);
		flip_heap();
		before = counts_now();
		inside_sweep_all();
		expect_plan(&before);
		n += ascending_sets();
	}
	ck_assert_uint_gt(n, 30);
}

// ---- several sweepers ----

enum { SWEEPERS = 2, ROUNDS = RT_TSAN ? 6 : 12 };

static struct {
	pthread_barrier_t begin;
	pthread_barrier_t end;
	atomic_u64 chunks; // swept by sweep_chunk, this round
	atomic_u32 ensure; // next survivor to be ensured
} race;

// meet waits at a barrier in a blocking region, so that stops can pass.
static void meet(pthread_barrier_t *b)
{
	rt_blocking_enter();
	pthread_barrier_wait(b);
	rt_blocking_leave();
}

static void sweep_chunks(void)
{
	while (sweep_chunk(proc_self()))
		atomic_u64_add_relaxed(&race.chunks, 1);
}

// ensure_all goes through the survivors from one end or the other.
static void ensure_all(bool backwards)
{
	for (size_t i = 0; i < plan.nsurvivors; i++) {
		struct mspan *s =
		    plan.survivors[backwards ? plan.nsurvivors - 1 - i : i];

		sweep_ensure(proc_self(), s);
		if (!is_swept(s))
			abort();
	}
}

static void *sweeper(void *arg)
{
	if (rt_thread_attach(0) != RT_OK)
		abort();
	for (int round = 0; round < ROUNDS; round++) {
		meet(&race.begin);
		if ((round + *(int *)arg) % 3 == 0)
			ensure_all(round % 2);
		sweep_chunks();
		meet(&race.end);
	}
	if (rt_thread_detach() != RT_OK)
		abort();
	return NULL;
}

static void race_round(struct rng *r, int round)
{
	struct counts before;
	uint64_t nchunks;

	populate(r, 3);
	plan_all(r);
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	flip_heap();
	before = counts_now();
	nchunks = arena_used() >> RT_CHUNK_SHIFT;
	atomic_u64_store_relaxed(&race.chunks, 0);
	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
	meet(&race.begin);
	if (round % 2)
		ensure_all(round % 4 == 1);
	sweep_chunks();
	inside_sweep_all();
	meet(&race.end);
	ck_assert(sweep_done()); // no thread asks for a chunk any more
	ck_assert_uint_eq(atomic_u64_load_relaxed(&race.chunks), nchunks);
	// The sweepers may already be on their way to the next round.
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	expect_plan(&before);
	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
}

TEST(two_sweepers_and_a_third_sweep_everything_once)
{
	static int ids[SWEEPERS] = {0, 1};
	pthread_t t[SWEEPERS];
	struct rng r;

	inside_boot(true);
	rng_init(&r, __func__);
	pthread_barrier_init(&race.begin, NULL, SWEEPERS + 1);
	pthread_barrier_init(&race.end, NULL, SWEEPERS + 1);
	for (int i = 0; i < SWEEPERS; i++)
		pthread_create(&t[i], NULL, sweeper, &ids[i]);
	for (int round = 0; round < ROUNDS; round++)
		race_round(&r, round);
	rt_blocking_enter();
	for (int i = 0; i < SWEEPERS; i++)
		pthread_join(t[i], NULL);
	rt_blocking_leave();
	ck_assert_int_eq(rt_fini(), RT_OK);
}

// ---- frees are counted before anything is used again ----

// late_sweeper sweeps without a P.  It sweeps a span, or a chunk if span is
// NULL.
static void *late_sweeper(void *span)
{
	if (span)
		sweep_ensure(NULL, span);
	else if (!sweep_chunk(NULL))
		abort();
	return NULL;
}

static atomic_u32 counting; // 1: count_long counts; 2: it may end

static void *count_long(void *arg)
{
	heapstats_acquire(NULL);
	atomic_u32_store_release(&counting, 1);
	await_at_least(&counting, 2);
	heapstats_release(NULL);
	return arg;
}

// A sweeper that cannot count what it has freed, because another thread without
// a P is counting, keeps the span to itself and is not done.
TEST(a_swept_span_is_not_used_before_its_frees_are_counted, .n = 2)
{
	bool ensure = _i == 1;
	struct mspan *s;
	pthread_t t, counts;
	char *p;

	inside_boot(true);
	p = take(32);
	s = inside_span(p);
	take(32);
	mark_object(p);
	flip_heap();
	pthread_create(&counts, NULL, count_long, NULL);
	await_at_least(&counting, 1);
	pthread_create(&t, NULL, late_sweeper, ensure ? s : NULL);
	await_at_least(&s->sweepgen, epoch_sweepgen());
	sleep_ns(AWAIT_STANDSTILL_NS);
	while (sweep_chunk(self)) // the chunks that are left
		;
	ck_assert(!sweep_done());
	ck_assert_ptr_null(inside_partial(s->spanclass));
	atomic_u32_store_release(&counting, 2);
	pthread_join(counts, NULL);
	pthread_join(t, NULL);
	ck_assert(sweep_done());
	ck_assert_ptr_eq(inside_partial(s->spanclass), s);
	expect_verified();
}

// ---- a whole cycle before the last sweep is over ----

TEST(a_collection_finishes_the_sweep_before)
{
	struct counts before;
	struct rng r;

	inside_boot(true);
	rng_init(&r, __func__);
	populate(&r, 4);
	plan_all(&r);
	flip_heap();
	before = counts_now();
	sweep_chunk(self);
	ck_assert(!sweep_done());
	ck_assert_int_eq(rt_gc(), RT_OK); // nothing is a root
	ck_assert(sweep_done());
	ck_assert_uint_ge(counts_now().total_free - before.total_free,
			  plan.bytes_freed);
	expect_verified();
}

// ---- our own bugs ----

TEST(a_marked_free_slot_throws, .n = 2, .exit = DEATH_EXPECTED)
{
	struct mspan *s;

	inside_boot(true);
	s = inside_span(take(32));
	mark(s, 0);
	mcache_flush(mc, self);
	mark(s, _i == 0 ? 1 : s->nelems - 1);
	flip_heap();
	death_expect(
	    "rtheap: span=#\nrtheap: fatal: found pointer to free object");
	inside_sweep_all();
}

TEST(a_cached_span_throws, .exit = DEATH_EXPECTED)
{
	struct mspan *s;

	inside_boot(true);
	s = inside_span(take(32));
	mark(s, 7);
	inside_flip_bits();
	death_expect(
	    "rtheap: span=#\nrtheap: fatal: mspan.sweep: bad span state");
	inside_sweep_all();
}

TEST(a_wrong_count_throws, .exit = DEATH_EXPECTED)
{
	struct mspan *s;
	char *p;

	inside_boot(true);
	p = take(32);
	s = inside_span(p);
	mark_object(p);
	flip_heap();
	s->alloc_count++;
	death_expect(
	    "rtheap: span=#\nrtheap: fatal: mspan.sweep: bad span state");
	sweep_ensure(self, s);
}
