// The limit of the heap: no page is taken beyond it, no allocation fails below
// it, and it may change at any time.
#include "test/harness/kind.h"
#include "test/whole/oom.h"

#include "gc/cycle/pacer.h"
#include "runtime/pages/pagecache.h"
#include "runtime/spans/mheap.h"

enum {
	MIB = 1 << 20,
	LIMIT = 24 * MIB + 5000, // no whole pages
	PAGE = RT_PAGE_SIZE,
};

static size_t limit_before(void)
{
	return heap_metric("/gc/heap/max:bytes");
}

// limited makes a heap of the default range, and sets its limit.
static void limited(int percent, size_t bytes)
{
	size_t range, old;

	begin_with(0, percent);
	range = limit_before();
	must(rt_set_heap_max(bytes, &old));
	ck_assert_uint_eq(old, range);
	ck_assert_uint_eq(limit_before(), bytes);
}

static void limit(size_t bytes)
{
	must(rt_set_heap_max(bytes, NULL));
}

static uint64_t in_use(void)
{
	rt_memstats m = heap_healthy();

	return m.heap_inuse + m.stack_inuse;
}

static uint64_t collections(void)
{
	return heap_stats().num_gc;
}

// caused returns how many of the last 256 collections had this cause.
static unsigned caused(enum rt_cause cause)
{
	unsigned n = 0;
	uint64_t last = collections();
	rt_cycle c;

	for (uint64_t i = last > RT_CYCLES ? last - RT_CYCLES + 1 : 1;
	     i <= last; i++) {
		must(rt_read_cycle(i, &c));
		n += c.cause == cause;
	}
	return n;
}

// span_of returns the bytes of the span of an RT_WORDS object.
static uint64_t span_of(size_t size)
{
	if (size > SIZECLASS_MAX_REQUEST)
		return base_pages(size) * PAGE;
	return (uint64_t)sizeclass_table[sizeclass_of16(size)].npages * PAGE;
}

// ---- the true moment ----

static const size_t sizes[] = {
    16,	 48,	  1024,	    8192,     32760,	    40000,
    MIB, 5 * MIB, 17 * MIB, 23 * MIB, LIMIT - PAGE,
};

GROUP(moment, .timeout = 60);

// An allocation is refused if and only if its span does not fit.  At that
// moment there is no garbage, although for each object that was kept another
// one was dropped.
TEST(refused_when_no_span_fits_and_nothing_is_dead, .base = RT_TSAN ? 2 : 0,
     .limit = RT_ARRAY_LEN(sizes))
{
	size_t size = sizes[_i];

	limited(size < 1024 ? -1 : 100, LIMIT);
	for (int round = 0; round < 3; round++) {
		struct node *n;
		rt_memstats m;

		while ((n = rt_alloc(size)) != NULL) {
			n->next = list;
			n->id = list_len++;
			list = n;
			// Garbage must not take the place of the last object.
			rt_alloc(size / 2 + 1);
		}
		m = heap_healthy();
		ck_assert_uint_eq(m.heap_objects, list_len);
		ck_assert_uint_le(m.heap_inuse + m.stack_inuse, LIMIT);
		ck_assert_uint_gt(m.heap_inuse + m.stack_inuse + span_of(size),
				  LIMIT / PAGE * PAGE);
		for (int i = 0; i < 3; i++)
			ck_assert_ptr_null(rt_alloc(size));
		nothing_taken(&m);
		ck_assert(list_whole());
		drop_all();
		ck_assert_ptr_nonnull(rt_alloc(size));
	}
	end();
}

// Pages are counted exactly: objects of whole pages fill the limit to the last.
TEST(the_last_page_is_used)
{
	limited(-1, 16 * MIB);
	fill_roots(3 * PAGE);
	ck_assert_uint_eq(nroots, 16 * MIB / (3 * PAGE));
	fill_roots(PAGE);
	ck_assert_uint_eq(in_use(), 16 * MIB);
	limit(16 * MIB + PAGE - 1);
	ck_assert_ptr_null(rt_alloc_noscan(PAGE));
	limit(16 * MIB + PAGE);
	roots[nroots++] = rt_alloc_noscan(PAGE);
	ck_assert_ptr_nonnull(roots[nroots - 1]);
	ck_assert_uint_eq(in_use(), 16 * MIB + PAGE);
	end();
}

// Pages that a thread frees by hand are there at once, without a collection.
TEST(freed_pages_serve_at_once)
{
	uint64_t before;

	limited(-1, 16 * MIB);
	fill_roots(MIB);
	ck_assert_uint_eq(nroots, 16);
	before = collections();
	for (int i = 0; i < 100; i++) {
		must(rt_free(roots[3]));
		roots[3] = rt_alloc_noscan(MIB);
		ck_assert_ptr_nonnull(roots[3]);
	}
	ck_assert_uint_eq(collections(), before);
	end();
}

TEST(stacks_and_objects_share_the_limit)
{
	static void *stacks[8 * MIB / 2048 + 1]; // NULL ends them
	static const size_t stack_sizes[] = {2048, 16384, 32768, MIB};

	limited(-1, 12 * MIB);
	for (size_t i = 0; i < RT_ARRAY_LEN(stack_sizes); i++) {
		size_t size = stack_sizes[i];
		unsigned n = 0;

		roots[0] = rt_alloc_noscan(4 * MIB);
		ck_assert_ptr_nonnull(roots[0]);
		while ((stacks[n] = rt_stack_alloc(size)) != NULL)
			n++;
		ck_assert_uint_eq(n, 8 * MIB / size);
		ck_assert_uint_eq(in_use(), 12 * MIB);
		ck_assert_ptr_null(rt_alloc(PAGE));
		roots[0] = NULL; // so a collection finds room for a stack
		stacks[n] = rt_stack_alloc(size);
		ck_assert_ptr_nonnull(stacks[n]);
		must(rt_stack_free(stacks[n], size));
		while (n > 0)
			must(rt_stack_free(stacks[--n], size));
		ck_assert_uint_eq(heap_healthy().stack_inuse, 0);
	}
	end();
}

// ---- every way to allocate ----

static int kind;
static const rt_type pair = {.struct_size = sizeof(rt_type), .size = 16};

#define MAKE(name, expr)                                                       \
	static void *make_##name(void)                                         \
	{                                                                      \
		return (void *)(expr);                                         \
	}

MAKE(small, rt_alloc(100))
MAKE(eight, rt_alloc_noscan(8))
MAKE(tiny, rt_alloc_noscan(3))
MAKE(uninit, rt_alloc_noscan_uninit(64))
MAKE(medium, rt_alloc(20000))
MAKE(large, rt_alloc(40000))
MAKE(cleared, rt_alloc(MIB))
MAKE(aligned_small, rt_alloc_aligned(RT_WORDS, 4096, 4096))
MAKE(aligned, rt_alloc_aligned(RT_WORDS, 1 << 16, 100))
MAKE(typed, rt_alloc_typed(&pair, 1))
MAKE(typed_large, rt_alloc_typed(&pair, 5000))
MAKE(of_kind, rt_alloc_of(kind, 48))
MAKE(array, rt_alloc_array(RT_WORDS, 16, 10, 24))
MAKE(uncollectable, rt_alloc_uncollectable(RT_WORDS, 64))
MAKE(copy, rt_memdup("0123456789", 10))
MAKE(string, rt_strdup("0123456789"))
MAKE(realloc_null, rt_realloc(RT_WORDS, NULL, 200))
MAKE(stack, rt_stack_alloc(2048))
MAKE(large_stack, rt_stack_alloc(MIB))

static void *make_many(void)
{
	void *out[4] = {0};
	size_t n = rt_alloc_many(RT_WORDS, 32, 4, out);

	return n == 0 ? NULL : out[n - 1];
}

static const struct {
	void *(*make)(void);
	size_t stack; // bytes, if it makes a stack
} makers[] = {
    {make_small, 0},	{make_eight, 0},	 {make_tiny, 0},
    {make_uninit, 0},	{make_medium, 0},	 {make_large, 0},
    {make_cleared, 0},	{make_aligned_small, 0}, {make_aligned, 0},
    {make_typed, 0},	{make_typed_large, 0},	 {make_of_kind, 0},
    {make_array, 0},	{make_uncollectable, 0}, {make_copy, 0},
    {make_string, 0},	{make_realloc_null, 0},	 {make_many, 0},
    {make_stack, 2048}, {make_large_stack, MIB},
};

static unsigned asked_for;

static int count_asked(size_t n, void *arg)
{
	(void)n, (void)arg;
	asked_for++;
	return 0;
}

// each_maker requires that every way to allocate is refused under a limit of
// less than a page, and granted without a limit.
static void each_maker(rt_config c)
{
	heap_start_exact(c);
	kind = kind_make(.layout = RT_LAYOUT_WORDS);
	must(rt_set_oom_handler(count_asked, NULL));
	for (unsigned i = 0; i < RT_ARRAY_LEN(makers); i++) {
		uint64_t before = collections();
		void *p;

		must(rt_gc());
		limit(1);
		asked_for = 0;
		ck_assert_msg(!makers[i].make(), "maker %u", i);
		ck_assert_uint_eq(asked_for, 1);
		ck_assert_uint_eq(collections(), before + 2);
		ck_assert_uint_eq(in_use(), 0);
		must(rt_nogc_enter());
		ck_assert_msg(!makers[i].make(), "maker %u", i);
		must(rt_nogc_leave());
		ck_assert_uint_eq(asked_for, 1);
		limit(SIZE_MAX);
		p = makers[i].make();
		ck_assert_msg(p, "maker %u", i);
		ck_assert_uint_gt(in_use(), 0);
		if (makers[i].stack)
			must(rt_stack_free(p, makers[i].stack));
		else
			rt_free(p); // the uncollectable one
		must(rt_gc());
	}
	ck_assert_uint_eq(in_use(), 0);
	must(rt_fini());
}

GROUP(kinds, .timeout = 60);

TEST(every_kind_of_allocation_obeys)
{
	each_maker(heap_config(HEAP_QUIET));
}

TEST(guarded_objects_obey)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.guard_large = c.guard_small = 1;
	each_maker(c);
}

// ---- objects of another size ----

GROUP(resized, .timeout = 60);

TEST(an_object_grows_in_place_up_to_the_limit)
{
	limited(-1, 24 * MIB);
	roots[0] = rt_alloc_noscan(24 * MIB); // so that pages are free behind
	must(rt_resize(roots[0], 10 * MIB));
	limit(16 * MIB);
	must(rt_resize(roots[0], 12 * MIB));
	ck_assert_int_eq(rt_resize(roots[0], 16 * MIB + 1), RT_ENOMEM);
	ck_assert_uint_eq(rt_size(roots[0]), 12 * MIB);
	ck_assert_uint_eq(in_use(), 12 * MIB);
	must(rt_resize(roots[0], 16 * MIB));
	ck_assert_uint_eq(in_use(), 16 * MIB);
	ck_assert_ptr_null(rt_alloc_noscan(1));
	must(rt_resize(roots[0], 15 * MIB));
	ck_assert_ptr_nonnull(rt_alloc_noscan(1));
	end();
}

// An object that cannot move, because two copies are too much, grows in place
// if a collection makes room for the difference.
TEST(garbage_does_not_keep_an_object_from_growing)
{
	char *p;

	limited(-1, 16 * MIB);
	p = roots[0] = rt_alloc_noscan(10 * MIB);
	p[0] = 'a', p[10 * MIB - 1] = 'z';
	rt_alloc_noscan(5 * MIB);
	// The dead object is behind p, and counts towards the limit.
	p = rt_realloc(RT_NOSCAN, p, 14 * MIB);
	ck_assert_ptr_eq(p, roots[0]);
	ck_assert(p[0] == 'a' && p[10 * MIB - 1] == 'z');
	ck_assert(heap_is_zero(p + 10 * MIB, 4 * MIB));
	ck_assert_ptr_null(rt_realloc(RT_NOSCAN, p, 16 * MIB + 1));
	ck_assert(p[0] == 'a' && p[10 * MIB - 1] == 'z');
	ck_assert_uint_eq(rt_size(p), 14 * MIB);
	ck_assert_ptr_eq(rt_realloc(RT_NOSCAN, p, 2 * MIB), p);
	ck_assert_uint_eq(in_use(), 2 * MIB);
	end();
}

// ---- changes ----

GROUP(changes, .timeout = 60);

TEST(the_limit_is_read_back_and_forgotten_with_the_heap)
{
	size_t old, range;

	for (int round = 0; round < 2; round++) {
		begin_with(MAX_HEAP, 100);
		// Neither the limit nor the pages of the previous heap count.
		roots[0] = rt_alloc(MIB);
		ck_assert_ptr_nonnull(roots[0]);
		heap_healthy();
		range = limit_before();
		ck_assert_uint_eq(range, MAX_HEAP);
		must(rt_set_heap_max(12345, &old));
		ck_assert_uint_eq(old, range);
		must(rt_set_heap_max(range - 1, &old));
		ck_assert_uint_eq(old, 12345);
		must(rt_set_heap_max(range, &old));
		ck_assert_uint_eq(old, range - 1);
		ck_assert_uint_eq(limit_before(), range);
		ck_assert_uint_eq(pacer.rule.heap_max, 0);
		must(rt_set_heap_max(0, &old));
		ck_assert_uint_eq(old, range);
		must(rt_set_heap_max(PAGE, NULL));
		ck_assert_ptr_null(rt_alloc(MIB));
		must(rt_fini());
	}
}

TEST(lowered_below_what_is_in_use_nothing_is_lost)
{
	uint64_t before;

	limited(-1, 24 * MIB);
	fill_list(MIB);
	ck_assert_uint_eq(list_len, 24);
	limit(25 * MIB);
	for (unsigned i = 0; i < 4096; i++)
		roots[i] = rt_alloc(64);
	for (unsigned i = 0; i < 4096; i += 2)
		roots[i] = NULL;
	before = in_use();
	ck_assert_uint_gt(before, 24 * MIB);
	limit(8 * MIB);
	ck_assert_ptr_null(rt_alloc(MIB));
	ck_assert_ptr_null(rt_alloc(5000));
	ck_assert_uint_eq(in_use(), before);
	for (unsigned i = 0; i < 4096; i += 2) {
		roots[i] = rt_alloc(64); // free slots serve
		ck_assert_ptr_nonnull(roots[i]);
	}
	ck_assert_uint_eq(in_use(), before);
	ck_assert(list_whole());
	// Until enough is freed, no page is taken.
	while (list_len > 6) {
		ck_assert_ptr_null(rt_alloc(MIB));
		list = list->next;
		list_len--;
	}
	ck_assert_ptr_nonnull(rt_alloc(MIB));
	ck_assert_uint_le(in_use(), 8 * MIB);
	ck_assert(list_whole());
	limit(24 * MIB);
	fill_list(MIB);
	ck_assert_uint_eq(list_len, 23);
	end();
}

// Pages that a thread has taken ahead may be used, but no others.
TEST(pages_taken_ahead_are_all_that_is_left_below_use)
{
	uint64_t before, taken;

	limited(-1, 32 * MIB);
	for (unsigned i = 0; i < 300; i++) // so that whole blocks are taken
		roots[nroots++] = rt_alloc(PAGE);
	before = in_use();
	taken = mheap.taken * PAGE;
	ck_assert_uint_gt(taken, before);
	limit(MIB);
	must(rt_nogc_enter()); // a collection would take them back
	fill_roots(PAGE);
	must(rt_nogc_leave());
	ck_assert_uint_eq(in_use(), taken);
	ck_assert_uint_le(taken, before + PAGECACHE_PAGES * PAGE);
	ck_assert_ptr_null(rt_alloc(PAGE));
	end();
}

// ---- the handler ----

static int raise_limit(size_t n, void *arg)
{
	(void)arg;
	asked_for++;
	limit(limit_before() + n);
	return 1;
}

TEST(the_handler_may_raise_the_limit)
{
	limited(-1, 8 * MIB);
	must(rt_set_oom_handler(raise_limit, NULL));
	asked_for = 0;
	for (unsigned i = 0; i < 20; i++) {
		roots[i] = rt_alloc_noscan(MIB);
		ck_assert_ptr_nonnull(roots[i]);
	}
	ck_assert_uint_eq(asked_for, 12);
	ck_assert_uint_eq(limit_before(), 20 * MIB);
	ck_assert_ptr_nonnull(rt_stack_alloc(4 * MIB));
	ck_assert_uint_eq(limit_before(), 24 * MIB);
	must(rt_set_oom_handler(NULL, NULL));
	end();
}

// ---- the goal ----

// churn allocates n bytes of garbage.
static void churn(uint64_t n, size_t size)
{
	uint64_t refused = 0;

	for (uint64_t i = 0; i < n / size; i++)
		refused += rt_alloc_noscan(size) == NULL;
	ck_assert_uint_eq(refused, 0);
}

static const size_t garbage[] = {16, 1000, 9000, 40000, 300000};

static void begin_near(int percent, unsigned live)
{
	rt_config c = heap_config(percent);

	c.gc_cpu_limit = 100; // collections do not depend on their time
	heap_start_exact(c);
	must(rt_roots_add(roots, roots + NROOTS, RT_ROOT_EXACT));
	limit(32 * MIB);
	for (unsigned i = 0; i < live; i++)
		roots[i] = rt_alloc_noscan(MIB);
}

GROUP(goal, .timeout = 60);

// Near the limit the heap collects before an allocation fails, but at most once
// for each 6 MiB.
TEST(collections_come_before_failures, .n = 2 * RT_ARRAY_LEN(garbage))
{
	begin_near(_i % 2 ? -1 : 400, 24);
	must(rt_gc());
	churn(192 * MIB, garbage[_i / 2]);
	ck_assert_uint_eq(caused(RT_CAUSE_MEMORY), 0);
	ck_assert_uint_ge(caused(RT_CAUSE_LIMIT), 192 / 8);
	ck_assert_uint_le(collections(), 192 / 6);
	end();
}

// Collections come before failures even if half of each page in use is free,
// but only for objects of another size.  The same is true if stacks take half
// of the limit.
TEST(what_is_beside_objects_counts, .n = 2)
{
	begin_near(400, 0);
	if (_i == 0) {
		for (unsigned i = 0; i < NROOTS; i++)
			roots[i] = rt_alloc_noscan(1024);
		for (unsigned i = 0; i < NROOTS; i += 2)
			roots[i] = NULL;
	} else {
		ck_assert_ptr_nonnull(rt_stack_alloc(16 * MIB));
	}
	must(rt_gc());
	churn(192 * MIB, 9000);
	ck_assert_uint_eq(caused(RT_CAUSE_MEMORY), 0);
	ck_assert_uint_le(collections(), 192 / 6);
	end();
}

// A no-GC stretch cannot collect.  It finds some room at any time, because
// collections come before the limit is reached.
TEST(a_stretch_without_collections_finds_room)
{
	begin_near(-1, 20);
	for (unsigned i = 0; i < 60000; i++) {
		ck_assert_ptr_nonnull(rt_alloc_noscan(1000));
		if (i % 100 != 0)
			continue;
		must(rt_nogc_enter());
		for (unsigned j = 0; j < 200; j++)
			ck_assert_ptr_nonnull(rt_alloc_noscan(1000));
		must(rt_nogc_leave());
	}
	ck_assert_uint_eq(caused(RT_CAUSE_MEMORY), 0);
	end();
}

// The room that is left bounds the number of collections, whether the goal or a
// failure causes them.
TEST(a_heap_full_of_live_objects_is_no_spiral)
{
	begin_near(100, 31);
	roots[31] = rt_alloc_noscan(MIB / 2);
	must(rt_gc());
	churn(64 * MIB, 1000);
	ck_assert_uint_le(collections(), 64 * 2 * 5 / 4);
	ck_assert_uint_gt(caused(RT_CAUSE_MEMORY), 0);
	end();
}

// If the limit is below what is in use, only free slots are left, and they
// bound the number of collections.
TEST(free_slots_below_use_are_no_spiral)
{
	uint64_t before;

	begin_near(100, 8);
	for (unsigned i = 8; i < 4096 + 8; i++)
		roots[i] = rt_alloc_noscan(1000);
	for (unsigned i = 8; i < 4096 + 8; i++)
		if (i % 16 != 0)
			roots[i] = NULL;
	must(rt_gc());
	limit(4 * MIB);
	before = collections();
	churn(64 * MIB, 1000);
	ck_assert_uint_ge(collections() - before, 64 / 4);
	ck_assert_uint_le(collections() - before, 65);
	end();
}

// The goal obeys the limit that leaves less room.  Only the limit of the heap
// refuses allocations, not the memory limit.
TEST(the_memory_limit_counts_beside_it)
{
	begin_near(-1, 0);
	must(rt_gc());
	ck_assert_uint_le(heap_stats().next_gc, 32 * MIB - MIB);
	ck_assert_uint_ge(heap_stats().next_gc, 30 * MIB);
	must(rt_set_memory_limit(16 * MIB, NULL));
	ck_assert_uint_le(heap_stats().next_gc, 16 * MIB);
	churn(64 * MIB, 1000);
	ck_assert_uint_le(heap_stats().heap_sys - heap_stats().heap_released,
			  16 * MIB);
	fill_roots(MIB);
	ck_assert_uint_eq(nroots, 32);
	ck_assert_uint_eq(in_use(), 32 * MIB);
	drop_all();
	must(rt_set_memory_limit(64 * MIB, NULL));
	must(rt_gc());
	ck_assert_uint_ge(heap_stats().next_gc, 30 * MIB);
	limit(8 * MIB);
	ck_assert_uint_le(heap_stats().next_gc, 7 * MIB);
	fill_roots(MIB);
	ck_assert_uint_eq(nroots, 8);
	limit(0);
	must(rt_set_memory_limit(INT64_MAX, NULL));
	ck_assert_uint_eq(heap_stats().next_gc, UINT64_MAX);
	end();
}

// ---- threads ----

enum {
	NTHREADS = 4,
	THREAD_ROOTS = 2048,
	ROUNDS = SANITIZED ? 6 : 40,
};

static atomic_u32 over;	  // live reads that found more than the limit
static atomic_u32 failed; // objects that were overwritten
static uint64_t seeds[NTHREADS];

static void look(uint64_t most)
{
	rt_memstats m;

	must(rt_read_memstats_live(&m));
	if (m.heap_inuse + m.stack_inuse > most)
		atomic_u32_add_relaxed(&over, 1);
}

static void fill_and_check(void **own, struct rng *r, uint64_t id)
{
	unsigned n = 0;
	uint64_t *p;

	while (n < THREAD_ROOTS &&
	       (p = rt_alloc_noscan(256 + rng_below(r, 40000)))) {
		own[n++] = p;
		p[0] = p[31] = id << 32 | n;
		if (n % 64 == 0)
			look(LIMIT);
	}
	for (unsigned i = 0; i < n; i++) {
		p = own[i];
		if (p[0] != (id << 32 | (i + 1)) || p[31] != p[0])
			atomic_u32_add_relaxed(&failed, 1);
		own[i] = NULL;
		if (rng_below(r, 3) == 0)
			must(rt_free(p));
	}
}

static void *fill_and_drop(void *arg)
{
	uint64_t id = (uintptr_t)arg;
	struct rng r = {.state = seeds[id]};

	must(rt_thread_attach(RT_THREAD_EXACT));
	for (int round = 0; round < ROUNDS; round++) {
		size_t n = (size_t)2048 << rng_below(&r, 8);
		void *stack = rt_stack_alloc(n);

		fill_and_check(roots + id * THREAD_ROOTS, &r, id);
		if (stack)
			must(rt_stack_free(stack, n));
	}
	must(rt_thread_detach());
	return NULL;
}

static void *fill_and_change(void *arg)
{
	uint64_t id = (uintptr_t)arg;
	struct rng r = {.state = seeds[id]};

	must(rt_thread_attach(RT_THREAD_EXACT));
	for (int round = 0; round < ROUNDS; round++) {
		limit(1 + rng_below(&r, LIMIT));
		fill_and_check(roots + id * THREAD_ROOTS, &r, id);
	}
	must(rt_thread_detach());
	return NULL;
}

static void run_threads(void *(*fn)(void *))
{
	pthread_t threads[NTHREADS];

	must(rt_blocking_enter());
	for (uintptr_t i = 0; i < NTHREADS; i++)
		threads[i] = start_thread(fn, (void *)i);
	for (int i = 0; i < NTHREADS; i++)
		join_thread(threads[i]);
	must(rt_blocking_leave());
	ck_assert_uint_eq(atomic_u32_load_relaxed(&over), 0);
	ck_assert_uint_eq(atomic_u32_load_relaxed(&failed), 0);
	heap_healthy();
}

static void begin_threads(const char *name)
{
	struct rng r;

	rng_init(&r, name);
	for (unsigned i = 0; i < NTHREADS; i++)
		seeds[i] = rng_below(&r, UINT64_MAX);
	limited(100, LIMIT);
}

GROUP(threads, .timeout = 120);

// No live read finds more than the limit, and at the end all of it can be used.
TEST(threads_together_stay_below_the_limit)
{
	begin_threads("threads_together_stay_below_the_limit");
	run_threads(fill_and_drop);
	must(rt_gc());
	ck_assert_uint_eq(in_use(), 0);
	fill_roots(MIB);
	ck_assert_uint_eq(nroots, LIMIT / MIB);
	end();
}

TEST(the_limit_changes_beside_threads)
{
	begin_threads("the_limit_changes_beside_threads");
	run_threads(fill_and_change);
	limit(LIMIT);
	must(rt_gc());
	ck_assert_uint_eq(in_use(), 0);
	fill_roots(MIB);
	ck_assert_uint_eq(nroots, LIMIT / MIB);
	end();
}
