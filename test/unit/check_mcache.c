// What one P allocates from: runs, the tiny block, and the sets behind them.
#define RT_NO_INLINE_ALLOC
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/harness/death.h"
#include "test/harness/inside.h"

static struct heapstats_totals totals(void)
{
	return stopped_totals();
}

// ---- tiny ----

// The rules of Go's tiny allocator once more, in plain code.
struct model {
	uintptr_t block; // current, or 0
	size_t used;	 // bytes of it
	uint64_t combined;
	uint64_t blocks;
};

static size_t aligned(size_t used, size_t n)
{
	size_t align = n % 8 == 0 ? 8 : n % 4 == 0 ? 4 : n % 2 == 0 ? 2 : 1;

	return (used + align - 1) / align * align;
}

// model_follows tells whether p is where n bytes belong, and records it.
static bool model_follows(struct model *m, uintptr_t p, size_t n)
{
	size_t at = aligned(m->used, n);

	if (m->block != 0 && at + n <= 16) {
		m->combined++;
		m->used = at + n;
		return p == m->block + at;
	}
	m->blocks++;
	if (p % 16 != 0 || p == m->block)
		return false;
	// The old block stays if it has more room left.
	if (m->block == 0 || n < m->used) {
		m->block = p;
		m->used = n;
	}
	return true;
}

static bool model_agrees(const struct model *m)
{
	struct heapstats_totals t;

	mcache_flush(mc, self);
	t = totals();
	return t.tiny_alloc_count == m->combined &&
	       t.small_alloc_count[SIZECLASS_TINY] == m->blocks &&
	       heapgauge_sum(HEAPGAUGE_TOTAL_ALLOC) == m->blocks * 16;
}

GROUP(tiny, .timeout = 60);

TEST(tiny_requests_follow_the_rules, .n = 2)
{
	struct model m = {0};
	struct rng r;

	inside_boot(_i);
	rng_init(&r, __func__);
	for (int i = 0; i < 200000; i++) {
		size_t n = 1 + rng_below(&r, _i ? 15 : 5);
		char *p = rt_alloc_noscan(n);

		if (!p || !model_follows(&m, (uintptr_t)p, n))
			ck_abort_msg("request %d of %zu bytes", i, n);
		for (size_t k = 0; k < n; k++)
			if (p[k] != 0)
				ck_abort_msg("request %d is not zero", i);
		memset(p, 0x5a, n);
		if (rng_below(&r, 1000) == 0) {
			if (!model_agrees(&m))
				ck_abort_msg("counts after %d", i);
			m.block = m.used = 0; // forgotten by the flush
		}
	}
	ck_assert(model_agrees(&m));
	ck_assert_uint_gt(m.combined, 50000);
	heap_live();
}

// Each row has requests, and the offset of each in one fresh block.  An offset
// of 16 means a new block.  The classes are Go's, with which all objects below
// 16 bytes are combined.
TEST(tiny_requests_are_aligned_by_their_size)
{
	static const struct {
		size_t n[5];
		size_t at[5];
	} t[] = {
	    {{1, 1, 1, 1, 1}, {0, 1, 2, 3, 4}},
	    {{1, 2, 4, 8}, {0, 2, 4, 8}},
	    {{1, 8, 1}, {0, 8, 16}},
	    {{3, 6, 3}, {0, 4, 10}},
	    {{1, 12}, {0, 4}},
	    {{5, 12}, {0, 16}},
	    {{7, 9}, {0, 7}},
	    {{1, 15}, {0, 1}},
	    {{2, 14}, {0, 2}},
	    {{2, 15}, {0, 16}},
	    {{8, 8}, {0, 8}},
	};

	inside_boot(true);
	for (unsigned i = 0; i < RT_ARRAY_LEN(t); i++) {
		char *block = NULL;

		mcache_flush(mc, self);
		for (unsigned k = 0; k < 5 && t[i].n[k] != 0; k++) {
			char *p = rt_alloc_noscan(t[i].n[k]);

			if (k == 0)
				block = p;
			if (t[i].at[k] < 16)
				ck_assert_ptr_eq(p, block + t[i].at[k]);
			else
				ck_assert_uint_eq((uintptr_t)p % 16, 0);
			ck_assert_int_eq(p >= block && p < block + 16,
					 t[i].at[k] < 16);
		}
	}
}

TEST(the_tiny_block_with_more_room_stays)
{
	char *a, *b, *c;

	inside_boot(true);
	a = rt_alloc_noscan(4);
	b = rt_alloc_noscan(15); // a's block has 12 left, b's 1
	ck_assert_ptr_ne((void *)((uintptr_t)b & ~(uintptr_t)15), a);
	ck_assert_ptr_eq(rt_alloc_noscan(4), a + 4);
	c = rt_alloc_noscan(9); // a's block has 8 left, c's 7
	ck_assert_uint_eq((uintptr_t)c % 16, 0);
	ck_assert_ptr_eq(rt_alloc_noscan(2), a + 8);
	c = rt_alloc_noscan(7); // a's has 6 left, c's 9: c's replaces it
	ck_assert_ptr_eq(rt_alloc_noscan(1), c + 7);
}

TEST(what_is_not_tiny_has_a_slot_of_its_own)
{
	char *p;

	inside_boot(false);
	p = rt_alloc_noscan(1);
	ck_assert_ptr_ne(rt_alloc_noscan(16), p);
	ck_assert_uint_eq(rt_size(rt_alloc(1)), 16); // pointers: not tiny
	ck_assert_uint_eq(rt_size(rt_alloc(15)), 16);
	ck_assert_uint_eq(rt_size(rt_alloc_noscan(6)), 8);
	ck_assert_uint_eq(rt_size(rt_alloc_noscan(8)), 8);
	mcache_flush(mc, self);
	ck_assert_uint_eq(totals().tiny_alloc_count, 0);
	ck_assert_uint_eq(totals().small_alloc_count[1], 2);
	ck_assert_uint_eq(totals().small_alloc_count[SIZECLASS_TINY], 4);
}

// ---- accounting ----

GROUP(mcache, .timeout = 60);

// Statistics show nothing of a cached span before its slot is retired.  Then
// they show exactly what was used.
TEST(retiring_counts_what_was_used, .base = 1, .limit = SIZECLASS_COUNT)
{
	unsigned c = (unsigned)_i;
	spanclass sc = spanclass_make(c, KIND_WORDS);
	const struct sizeclass *class = &sizeclass_table[c];
	uint32_t n = class->nelems / 2 + 1;
	uint64_t bytes = (uint64_t)n * class->size;
	struct mspan *s = NULL;

	inside_boot(true);
	for (uint32_t i = 0; i < n; i++)
		s = inside_span(inside_take(sc));
	ck_assert_uint_eq(totals().small_alloc_count[c], 0);
	ck_assert_uint_eq(heapgauge_sum(HEAPGAUGE_TOTAL_ALLOC), 0);
	ck_assert_uint_eq(s->cached, 1);
	ck_assert_ptr_null(mspan_check(s)); // lags, but is not wrong
	mcache_retire_slot(mc, self, &mc->slots[sc]);
	ck_assert_uint_eq(totals().small_alloc_count[c], n);
	ck_assert_uint_eq(heapgauge_sum(HEAPGAUGE_TOTAL_ALLOC), bytes);
	ck_assert_uint_eq(gauge_load(&gauges.heap_live) + (uint64_t)mc->live,
			  bytes);
	ck_assert_uint_eq(s->alloc_count, n);
	ck_assert_uint_eq(s->cached, 0);
	ck_assert_ptr_null(mspan_check(s));
	ck_assert_ptr_null(mc->slots[sc].span);
	ck_assert_ptr_eq(inside_partial(sc), n < class->nelems ? s : NULL);
	mcache_retire_slot(mc, self,
			   &mc->slots[sc]); // nothing there: nothing happens
	ck_assert_uint_eq(totals().small_alloc_count[c], n);
	heap_live();
}

// A span that is cached again is counted on from where it was, and is used up
// before new pages are taken.
TEST(a_span_is_filled_over_many_flushes)
{
	spanclass sc = spanclass_make(4, KIND_NOSCAN); // 256 of 32 bytes
	struct mspan *s = NULL;

	inside_boot(false);
	for (uint32_t i = 0; i < 256; i++) {
		char *p = inside_take(sc);

		if (i == 0)
			s = inside_span(p);
		if (p != (char *)s->base + 32 * (255 - i))
			ck_abort_msg("object %u", i);
		mcache_flush(mc, self);
		if (s->alloc_count != i + 1 ||
		    totals().small_alloc_count[4] != i + 1)
			ck_abort_msg("count of %u", i);
	}
	ck_assert_ptr_null(inside_partial(sc));
	ck_assert_ptr_ne(inside_span(inside_take(sc)), s);
	heap_live();
}

TEST(a_flush_retires_every_class_and_the_tiny_block)
{
	uint64_t bytes = 0;
	struct heapstats_totals t;

	inside_boot(true);
	for (unsigned sc = 0; sc < SPANCLASS_BASE; sc++) {
		unsigned c = spanclass_size((spanclass)sc);

		if (c == 0)
			continue;
		for (unsigned i = 0; i <= sc % 3; i++)
			ck_assert_ptr_nonnull(inside_take((spanclass)sc));
		bytes += (sc % 3 + 1) * sizeclass_table[c].size;
	}
	rt_alloc_noscan(3);
	rt_alloc_noscan(3);
	bytes += 16;
	mcache_flush(mc, self);
	t = totals();
	for (unsigned c = 1; c < SIZECLASS_COUNT; c++) {
		unsigned words = spanclass_make(c, KIND_WORDS) % 3 + 1;

		if (t.small_alloc_count[c] !=
		    c % 3 + 1 + words + (c == SIZECLASS_TINY))
			ck_abort_msg("class %u", c);
	}
	ck_assert_uint_eq(t.tiny_alloc_count, 1);
	ck_assert_uint_eq(heapgauge_sum(HEAPGAUGE_TOTAL_ALLOC), bytes);
	ck_assert_uint_eq(gauge_load(&gauges.heap_live), bytes);
	ck_assert_uint_eq(mc->tiny, 0);
	for (unsigned w = 0; w < MCACHE_WORDS; w++)
		ck_assert_uint_eq(mc->nonempty[w], 0);
	heap_live();
}

// heap_live, together with the bytes that wait in the mcache, is every byte of
// every run.  Less than one batch waits.
TEST(live_bytes_are_published_in_batches)
{
	uint64_t runs = 0, published, moves = 0, last = 0;
	struct rng r;

	inside_boot(false);
	rng_init(&r, __func__);
	for (int i = 0; i < 20000; i++) {
		unsigned c = 1 + (unsigned)rng_below(&r, 40);
		spanclass sc = spanclass_make(c, KIND_NOSCAN);
		const struct rt_run *run = mc->slots[sc].run;
		bool empty = run->cur == run->start;

		if (!inside_take(sc))
			ck_abort_msg("no memory");
		if (empty)
			runs += (uint64_t)(run->cur - run->start) +
				sizeclass_table[c].size;
		published = gauge_load(&gauges.heap_live);
		if (published + (uint64_t)mc->live != runs)
			ck_abort_msg("live after %d", i);
		if (mc->live >= MCACHE_LIVE_BATCH)
			ck_abort_msg("a batch waits after %d", i);
		moves += published != last;
		last = published;
	}
	ck_assert_uint_gt(moves, 10);
	mcache_flush(mc, self);
	ck_assert_uint_eq(gauge_load(&gauges.heap_live),
			  heapgauge_sum(HEAPGAUGE_TOTAL_ALLOC));
	ck_assert_int_eq(mc->live, 0);
}

// A call looks into the cache before it takes another span, and the cached span
// counts only when another takes its place.  Classes without an inline path are
// always allocated by calls, and with Go's classes all of them are.
TEST(a_call_takes_what_is_cached, .base = 1, .limit = SIZECLASS_COUNT)
{
	size_t size = sizeclass_table[_i].size;
	size_t n = base_min(size, SIZECLASS_MAX_REQUEST);
	uint32_t held = sizeclass_table[_i].nelems;
	struct mspan *s;

	inside_boot(true);
	s = inside_span(rt_alloc(n));
	for (uint32_t i = 1; i < held; i++)
		ck_assert_ptr_eq(inside_span(rt_alloc(n)), s);
	ck_assert_uint_eq(totals().small_alloc_count[_i], 0);
	ck_assert_ptr_ne(inside_span(rt_alloc(n)), s);
	ck_assert_uint_eq(totals().small_alloc_count[_i], held);
	heap_live();
}

// use_run uses up a whole run of a class and returns its bytes.
static size_t use_run(spanclass sc)
{
	const struct mcache_slot *slot = &mc->slots[sc];
	size_t bytes;

	ck_assert_ptr_nonnull(inside_take(sc));
	bytes = (size_t)(slot->run->cur - slot->run->start) + slot->size;
	while (slot->run->cur != slot->run->start)
		ck_assert_ptr_nonnull(inside_take(sc));
	return bytes;
}

// The second run is what the first one left of its lineword.  A thread is never
// charged for much more fresh memory than it has used.
TEST(runs_double_from_a_flush_on)
{
	static const size_t bytes[] = {512, 512, 1024, 2048, 4096, 8192, 8192};
	spanclass sc = spanclass_make(6, KIND_WORDS); // of 64 bytes

	inside_boot(true);
	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < RT_ARRAY_LEN(bytes); i++)
			ck_assert_uint_eq(use_run(sc), bytes[i]);
		mcache_flush(mc, self);
	}
}

// A slot that gets no span begins with short runs again, as after a flush.
TEST(a_refused_span_is_the_end_of_long_runs)
{
	const spanclass sc = spanclass_make(sizeclass_of(1024), KIND_NOSCAN);
	rt_config c = heap_config(HEAP_QUIET);

	c.max_heap = RT_ARENA_SIZE;
	heap_start(c);
	self = proc_self();
	mc = rt_thread_tls->mc;
	for (unsigned i = 0; i < 100; i++)
		ck_assert_ptr_nonnull(inside_take(sc));
	ck_assert_uint_eq(mc->slots[sc].run_log2, MCACHE_RUN_LAST);
	while (inside_take(sc))
		;
	ck_assert_uint_eq(mc->slots[sc].run_log2, MCACHE_RUN_FIRST);
}

TEST(a_large_object_is_counted_at_once)
{
	inside_boot(false);
	ck_assert_ptr_nonnull(rt_alloc(40000));
	ck_assert_uint_eq(totals().large_alloc, 40960);
	ck_assert_uint_eq(totals().large_alloc_count, 1);
	ck_assert_uint_eq(heapgauge_sum(HEAPGAUGE_TOTAL_ALLOC), 40960);
	ck_assert_uint_eq(gauge_load(&gauges.heap_live), 40960);
	ck_assert_ptr_nonnull(rt_alloc_noscan(32761));
	ck_assert_uint_eq(totals().large_alloc, 40960 + 32768);
	ck_assert_ptr_nonnull(rt_alloc_noscan(32760)); // small
	ck_assert_uint_eq(totals().large_alloc_count, 2);
	heap_live();
}

// ---- runs and clearing ----

// A run of several objects above RT_INLINE_MAX is cleared as a whole.  A run of
// a single object, and all runs of smaller ones, are cleared only if the caller
// wants it.
TEST(uninit_skips_clearing, .n = 8)
{
	static const unsigned classes[] = {1, 2, 32, 38, 44, 51, 59, 67};
	spanclass sc = spanclass_make(classes[_i], KIND_NOSCAN);
	size_t size = sizeclass_table[classes[_i]].size;
	struct mspan *s;
	char *p;

	inside_boot(false);
	p = inside_take(sc);
	memset(p, 0x77, size);
	s = inside_span(p);
	mcache_retire_slot(mc, self, &mc->slots[sc]);
	// Leave the span as sweep leaves one in which it frees an object.
	mspan_free_slots(s, p, p + size);
	s->alloc_count = 0;
	s->needzero = 1;
	if (!inside_partial(sc))
		mcentral_push(s);
	mc->slots[sc].run_log2 = MCACHE_RUN_LAST;
	ck_assert_ptr_eq(
	    refill_small(mc, self, mcache_slot_of(mc, sc, true), true), p);
	ck_assert_int_eq(
	    p[0], size > RT_INLINE_MAX && 2 * size <= RT_PAGE_SIZE ? 0 : 0x77);
	ck_assert_int_eq(p[size - 1], p[0]);
}

TEST(runs_can_be_taken_away_from_inline_code)
{
	const struct rt_run *runs;

	inside_boot(false);
	runs = rt_thread_tls->run;
	ck_assert_int_eq(runs == mc->runs.row, !RT_ASAN && !RT_DEBUG_BUILD);
	mcache_disable_runs(mc);
	ck_assert_ptr_eq(rt_thread_tls->run, proc_no_runs.row);
	for (unsigned i = 0; i < RT_ARRAY_LEN(proc_no_runs.row); i++)
		ck_assert_ptr_eq(proc_no_runs.row[i].cur,
				 proc_no_runs.row[i].start);
	ck_assert_ptr_nonnull(rt_alloc(16));
	mcache_enable_runs(mc);
	ck_assert_ptr_eq(rt_thread_tls->run, runs);
}

static int end_walk(void *obj, size_t size, int kind, void *arg)
{
	(void)obj, (void)size, (void)kind, (void)arg;
	return RT_WALK_STOP;
}

// A walk disables the runs while it lasts.  After a walk in the thread's own
// stop, they stay disabled until the world is started.
TEST(a_walk_leaves_the_runs_as_they_were)
{
	const struct rt_run *runs;

	inside_boot(false);
	ck_assert_ptr_nonnull(rt_alloc(16));
	runs = rt_thread_tls->run;
	ck_assert_int_eq(rt_heap_walk(end_walk, NULL), RT_OK);
	ck_assert_ptr_eq(rt_thread_tls->run, runs);
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	ck_assert_int_eq(rt_heap_walk(end_walk, NULL), RT_OK);
	ck_assert_ptr_eq(rt_thread_tls->run, proc_no_runs.row);
	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
	ck_assert_ptr_eq(rt_thread_tls->run, runs);
}

TEST(align8_has_no_inline_runs)
{
	inside_boot(true);
	ck_assert_ptr_eq(rt_thread_tls->run, proc_no_runs.row);
	ck_assert_uint_eq(rt_size(rt_alloc(8)), 8);
	ck_assert_uint_eq(rt_size(rt_alloc(17)), 24);
	ck_assert_uint_eq(rt_size(rt_alloc_noscan(20)), 24);
}

// ---- misuse from above is our own bug ----

TEST(a_second_span_in_a_slot_throws, .exit = DEATH_EXPECTED)
{
	spanclass sc = spanclass_make(10, KIND_WORDS);

	inside_boot(false);
	inside_take(sc);
	death_expect("refill of span with free space remaining");
	mcache_set_span(mc, &mc->slots[sc], mheap_alloc_small(self, NULL, sc));
}

TEST(a_full_span_in_a_slot_throws, .exit = DEATH_EXPECTED)
{
	spanclass sc = spanclass_make(10, KIND_WORDS);
	struct mspan *s;

	inside_boot(false);
	s = mheap_alloc_small(self, NULL, sc);
	s->alloc_count = s->nelems;
	death_expect("span has no free space");
	mcache_set_span(mc, &mc->slots[sc], s);
}

// A debug build looks at more.
TEST(a_span_of_another_slot_throws, .n = 2, .exit = DEATH_EXPECTED,
     .unless = SUITE_UNLESS(!RT_DEBUG_BUILD, "only in a debug build"))
{
	spanclass sc = spanclass_make(10, KIND_WORDS);
	struct mcache_slot *slot;

	inside_boot(false);
	inside_take(sc);
	slot = &mc->slots[_i == 0 ? sc : spanclass_make(60, KIND_WORDS)];
	death_expect("!s->cached && s->spanclass == slot->sc");
	mcache_set_span(mc, slot, mc->slots[sc].span);
}

// ---- the sets ----

TEST(the_span_pushed_last_comes_first)
{
	spanclass a = spanclass_make(7, KIND_NOSCAN);
	spanclass b = spanclass_make(7, KIND_WORDS);
	struct mspan *s[3], *other;

	inside_boot(false);
	for (unsigned i = 0; i < 3; i++) {
		s[i] = mheap_alloc_small(self, NULL, a);
		mcentral_push(s[i]);
	}
	other = mheap_alloc_small(self, NULL, b);
	mcentral_push(other);
	must(rt_stop_the_world(RT_STOP_HOST));
	ck_assert_ptr_eq(mcentral_top(a), s[2]);
	ck_assert_ptr_eq(mcentral_below(s[2]), s[1]);
	ck_assert_ptr_eq(mcentral_below(s[1]), s[0]);
	ck_assert_ptr_null(mcentral_below(s[0]));
	must(rt_start_the_world(NULL));
	ck_assert_ptr_eq(mcentral_pop(a), s[2]);
	ck_assert_ptr_eq(mcentral_pop(a), s[1]);
	ck_assert_ptr_eq(mcentral_pop(b), other);
	ck_assert_ptr_null(mcentral_pop(b));
	mcentral_push(s[2]);
	must(rt_stop_the_world(RT_STOP_HOST));
	mcentral_reset();
	ck_assert_ptr_null(mcentral_top(a));
	must(rt_start_the_world(NULL));
	ck_assert_ptr_null(mcentral_pop(a));
	mcentral_push(s[1]);
	ck_assert_ptr_eq(mcentral_pop(a), s[1]);
	ck_assert_ptr_null(mcentral_pop(a));
}

TEST(refill_takes_a_partial_span_before_new_pages)
{
	spanclass sc = spanclass_make(20, KIND_WORDS);
	uint64_t in_use;
	struct mspan *s;

	inside_boot(false);
	s = inside_span(inside_take(sc));
	mcache_flush(mc, self);
	in_use = heapgauge_sum(HEAPGAUGE_IN_USE);
	for (uint32_t i = 1; i < s->nelems; i++)
		ck_assert_ptr_eq(inside_span(inside_take(sc)), s);
	ck_assert_uint_eq(heapgauge_sum(HEAPGAUGE_IN_USE), in_use);
	ck_assert_ptr_ne(inside_span(inside_take(sc)), s);
	ck_assert_uint_eq(heapgauge_sum(HEAPGAUGE_IN_USE),
			  in_use + RT_PAGE_SIZE);
}

// ---- blocks ----

enum { THREADS = 7 };

static struct {
	pthread_barrier_t all_in;
	pthread_barrier_t may_go;
} gate;

static void *attached_thread(void *arg)
{
	(void)arg;
	if (rt_thread_attach(0) != RT_OK)
		abort();
	for (int i = 0; i < 100; i++)
		if (!rt_alloc(48) || !rt_alloc_noscan(3))
			abort();
	rt_blocking_enter();
	pthread_barrier_wait(&gate.all_in);
	pthread_barrier_wait(&gate.may_go);
	rt_blocking_leave();
	if (rt_thread_detach() != RT_OK)
		abort();
	return NULL;
}

static void expect_blocks(uint64_t mapped, uint64_t used)
{
	ck_assert_uint_eq(gauge_load(&gauges.mcache_sys),
			  mapped * sysmem_round(sizeof(struct rt_mcache)));
	ck_assert_uint_eq(gauge_load(&gauges.mcache_inuse),
			  used * sizeof(struct rt_mcache));
}

// Seven threads come and go.  Their blocks are mapped, four of them are kept,
// and the next threads take them again.
TEST(blocks_of_gone_threads_are_kept_for_four)
{
	pthread_t t[THREADS];
	rt_memstats m;

	inside_boot(false);
	expect_blocks(1, 1);
	for (uint64_t round = 1; round <= 3; round++) {
		pthread_barrier_init(&gate.all_in, NULL, THREADS + 1);
		pthread_barrier_init(&gate.may_go, NULL, THREADS + 1);
		for (int i = 0; i < THREADS; i++)
			pthread_create(&t[i], NULL, attached_thread, NULL);
		rt_blocking_enter();
		pthread_barrier_wait(&gate.all_in);
		rt_blocking_leave();
		expect_blocks(1 + THREADS, 1 + THREADS);
		ck_assert_int_eq(rt_read_memstats(&m), RT_OK);
		ck_assert_uint_eq(m.mcache_inuse,
				  (1 + THREADS) * sizeof(struct rt_mcache));
		rt_blocking_enter();
		pthread_barrier_wait(&gate.may_go);
		for (int i = 0; i < THREADS; i++)
			pthread_join(t[i], NULL);
		rt_blocking_leave();
		expect_blocks(1 + MCACHE_KEPT, 1);
		ck_assert_int_eq(rt_read_memstats(&m), RT_OK);
		// A tiny block holds 5 requests of 3 bytes; all are mallocs.
		ck_assert_uint_eq(m.mallocs, round * THREADS * 200);
		ck_assert_uint_eq(m.by_size[5].mallocs, round * THREADS * 100);
		ck_assert_uint_eq(m.by_size[2].mallocs, round * THREADS * 20);
	}
	mcache_release_kept();
	expect_blocks(1, 1);
	heap_live();
}
