// A word just past the end of an object keeps it alive if the word is on a
// stack or in a register.  An object that nothing leads to any more is freed.
#include "test/harness/kind.h"
#include "test/whole/gc.h"

#include <semaphore.h>

#include "gc/mark/work.h"
#include "runtime/world/proc.h"
#include "test/harness/thread.h"

// ---- past the end ----

// A thread in a blocking region.  Its stack holds the words that the test puts
// there, and nothing that was ever a pointer into the heap.
static struct holder {
	pthread_t thread;
	sem_t ready, leave;
	volatile uintptr_t *word; // on its stack
	struct rt_proc *p;
} holder;

enum { HELD = 16 };

static void *hold(void *arg)
{
	volatile uintptr_t word[HELD] = {0};

	(void)arg;
	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	holder.word = word;
	holder.p = proc_self();
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	sem_post(&holder.ready);
	while (sem_wait(&holder.leave) != 0)
		;
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	return NULL;
}

static void holder_start(void)
{
	sem_init(&holder.ready, 0, 0);
	sem_init(&holder.leave, 0, 0);
	holder.thread = start_thread(hold, NULL);
	while (sem_wait(&holder.ready) != 0)
		;
}

static void holder_stop(void)
{
	sem_post(&holder.leave);
	join_thread(holder.thread);
}

static void held_setup(void)
{
	setup();
	holder_start();
}

static void held_teardown(void)
{
	holder_stop();
	teardown();
}

static uint64_t past_end_count(void)
{
	return heap_metric("/gc/scan/past-end:objects");
}

// fill_span allocates objects of a class until they fill a span.  It sets
// slot[i] to the object in slot i of that span, and returns how many there are.
static unsigned fill_span(int kind, unsigned c, uintptr_t *slot)
{
	const struct mspan *s = NULL;
	unsigned n = 0;

	do {
		uintptr_t p = (uintptr_t)rt_alloc_kind(kind, class_request(c));
		uint64_t page = arena_offset(p) >> RT_PAGE_SHIFT;

		if (arena_span(page) != s) {
			s = arena_span(page);
			n = 0;
		}
		slot[mspan_slot(s, p - s->base)] = p;
	} while (++n < s->nelems);
	return n;
}

// ends_keep puts the end of the object in slot i on a stack.  It expects that
// the word keeps this object, and the next object of the span, if there is one.
static void ends_keep(unsigned c, const uintptr_t *slot, unsigned nelems,
		      unsigned i)
{
	uint64_t before = past_end_count();
	size_t size = sizeclass_table[c].size;
	uint64_t live;

	holder.word[3] = slot[i] + size;
	live = heap_live_after_gc();
	ck_assert_msg(rt_base((void *)slot[i]) == (void *)slot[i],
		      "class %u slot %u of %u", c, i, nelems);
	ck_assert_uint_eq(live, i + 1 < nelems ? 2 : 1);
	ck_assert_uint_eq(past_end_count(), before + 1);
	holder.word[3] = 0;
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	ck_assert_uint_eq(past_end_count(), before + 1);
}

GROUP(held, .setup = held_setup, .teardown = held_teardown, .timeout = 60);

TEST(end_on_a_stack_keeps_an_object)
{
	static uintptr_t slot[8192 / 8];

	for (unsigned c = 2; c < SIZECLASS_COUNT; c++) {
		int kind = c % 2 ? RT_WORDS : RT_NOSCAN;
		unsigned n;

		if (c == 3) // 24 bytes: align8 only
			continue;
		n = fill_span(kind, c, slot);
		ends_keep(c, slot, n, n - 1); // at the limit of the span
		n = fill_span(kind, c, slot);
		ends_keep(c, slot, n, 0);
		n = fill_span(kind, c, slot);
		ends_keep(c, slot, n, n / 2);
	}
}

// Every second object of 24 bytes ends in the middle of a granule.
TEST(end_on_a_stack_keeps_an_object_of_24_bytes)
{
	static const unsigned from_end[] = {1, 2, 3, 170, 171, 341};
	static uintptr_t slot[8192 / 8];

	ck_assert_int_eq(kind_make(.layout = RT_LAYOUT_WORDS,
				   .number = RT_KIND_ALIGN8_FIRST),
			 RT_KIND_ALIGN8_FIRST);
	for (unsigned i = 0; i < RT_ARRAY_LEN(from_end); i++) {
		unsigned n = fill_span(RT_KIND_ALIGN8_FIRST, 3, slot);

		ck_assert_uint_eq(n, 341);
		ends_keep(3, slot, n, n - from_end[i]);
	}
}

GROUP(own);

TEST(end_on_a_stack_keeps_an_object_align8)
{
	static uintptr_t slot[8192 / 8];
	rt_config config = heap_config(HEAP_QUIET);

	config.align8 = 1;
	start(config);
	holder_start();
	for (unsigned c = 1; c < SIZECLASS_COUNT; c++) {
		unsigned n = fill_span(RT_WORDS, c, slot);

		ends_keep(c, slot, n, n - 1);
		n = fill_span(RT_WORDS, c, slot);
		ends_keep(c, slot, n, n / 2);
	}
}

GROUP(held);

// A word that is one byte or one word past the end of an object keeps nothing.
TEST(only_the_exact_end_keeps)
{
	static uintptr_t slot[8192 / 8];
	unsigned n = fill_span(RT_WORDS, 9, slot);

	holder.word[0] = slot[n - 1] + sizeclass_table[9].size + 1;
	holder.word[1] = slot[n - 1] + sizeclass_table[9].size + 8;
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	ck_assert_uint_eq(past_end_count(), 0);
}

// A pointer to an object is the end of the object below it.  The object below
// is not the one that was allocated before, which may be the root of many dead
// objects.
TEST(an_object_keeps_no_older_one)
{
	make_list(1000);
	holder.word[0] = (uintptr_t)rt_alloc(sizeof(struct cell));
	ck_assert_uint_eq(heap_live_after_gc(), 1);
	ck_assert_uint_eq(past_end_count(), 0);
}

// span_above returns the base of a span of one class that is directly above a
// span of another class, or 0 if there is none.
static uintptr_t span_above(unsigned upper, unsigned lower)
{
	for (uint64_t page = 1; page < arena_used() >> RT_PAGE_SHIFT; page++) {
		const struct mspan *s = arena_span(page);
		const struct mspan *below = arena_span(page - 1);

		if (s && below && s->base == arena_page_address(page) &&
		    s->sizeclass == upper && below->sizeclass == lower)
			return s->base;
	}
	return 0;
}

// An object of the span below begins 48 bytes before the second granule of a
// span of 48-byte objects, but does not end there.
TEST(an_object_of_another_class_does_not_end_there)
{
	static uintptr_t slot[8192 / 8];
	uintptr_t base;

	for (int i = 0; (base = span_above(5, 2)) == 0; i++)
		fill_span(RT_NOSCAN, i % 2 ? 2 : 5, slot);
	holder.word[0] = base + 16;
	ck_assert_uint_eq(heap_live_after_gc(), 1);
	ck_assert_uint_eq(past_end_count(), 0);
}

static const size_t large_requests[] = {32768, 40008, 40960, 65536, 100008};

// The bytes from the end of a request to the end of its last page are in no
// object.
TEST(a_large_object_ends_where_its_request_does,
     .n = RT_ARRAY_LEN(large_requests))
{
	size_t n = large_requests[_i];
	char *p = rt_alloc(n);

	ck_assert_ptr_eq(rt_base(p + n - 1), p);
	ck_assert_ptr_ne(rt_base(p + n), p);
	if (rt_good_size(n) != n)
		ck_assert_ptr_null(rt_base(p + rt_good_size(n) - 1));
}

TEST(requested_end_keeps_a_large_object, .n = RT_ARRAY_LEN(large_requests))
{
	size_t n = large_requests[_i];
	uintptr_t p = (uintptr_t)rt_alloc(n);

	holder.word[0] = p + n;
	ck_assert_uint_eq(heap_live_after_gc(), 1);
	ck_assert_uint_eq(rt_size((void *)p), rt_good_size(n));
	ck_assert_uint_eq(past_end_count(), 1);
	holder.word[0] = p + n - 1; // interior: not counted
	ck_assert_uint_eq(heap_live_after_gc(), 1);
	ck_assert_uint_eq(past_end_count(), 1);
	holder.word[0] = p + n + 1;
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	ck_assert_uint_eq(past_end_count(), 1);
	p = (uintptr_t)rt_alloc(n);
	if (rt_good_size(n) != n) {
		holder.word[0] = p + rt_good_size(n);
		ck_assert_uint_eq(heap_live_after_gc(), 0);
	}
	ck_assert_uint_eq(past_end_count(), 1);
}

// The end of the last object is outside the heap.
TEST(end_of_the_heap_keeps_an_object)
{
	uintptr_t p;

	do
		p = (uintptr_t)rt_alloc(RT_CHUNK_SIZE);
	while (arena_offset(p) + RT_CHUNK_SIZE != arena_used());
	holder.word[0] = p + RT_CHUNK_SIZE;
	ck_assert_uint_eq(heap_live_after_gc(), 1);
	ck_assert_uint_eq(past_end_count(), 1);
	holder.word[0] = 0;
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

// An object of an odd size ends within a word.  Without its low bits, the end
// of the object points to that word.  So it keeps the object as a tagged word
// does.
TEST(odd_end_keeps_a_large_object)
{
	uintptr_t p = (uintptr_t)rt_alloc(40001);

	holder.word[0] = p + 40001;
	ck_assert_uint_eq(heap_live_after_gc(), 1);
	ck_assert_uint_eq(past_end_count(), 0);
	holder.word[0] = p + 40008;
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

TEST(end_in_a_register_keeps_an_object)
{
	static uintptr_t slot[8192 / 8];
	unsigned n = fill_span(RT_WORDS, 20, slot);

	holder.p->context.frame.regs[CONTEXT_REGS - 1] =
	    slot[n - 1] + sizeclass_table[20].size;
	ck_assert_uint_eq(heap_live_after_gc(), 1);
	ck_assert_uint_eq(past_end_count(), 1);
	holder.p->context.frame.regs[CONTEXT_REGS - 1] = slot[n - 1] + 1;
	ck_assert_uint_eq(heap_live_after_gc(), 1);
	ck_assert_uint_eq(past_end_count(), 1);
	holder.p->context.frame.regs[CONTEXT_REGS - 1] = 0;
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

// An object may be kept only by its end.  An object that it points to lives as
// well, and is not counted.  An object that is alive for another reason is not
// counted either.
TEST(past_end_counts_what_is_kept_only_so)
{
	static uintptr_t slot[8192 / 8];
	size_t size = sizeclass_table[20].size;
	unsigned n = fill_span(RT_WORDS, 20, slot);

	*(void **)slot[n - 1] = make_list(1000);
	holder.word[0] = slot[n - 1] + size;
	ck_assert_uint_eq(heap_live_after_gc(), 1001);
	ck_assert_uint_eq(past_end_count(), 1);
	root[0] = (void *)slot[n - 1];
	ck_assert_uint_eq(heap_live_after_gc(), 1001);
	ck_assert_uint_eq(past_end_count(), 1);
	holder.word[1] = slot[n - 1] + 5;
	root[0] = NULL;
	ck_assert_uint_eq(heap_live_after_gc(), 1001);
	ck_assert_uint_eq(past_end_count(), 1);
	holder.word[1] = 0;
	holder.word[2] = slot[n - 1] + size; // twice is once
	ck_assert_uint_eq(heap_live_after_gc(), 1001);
	ck_assert_uint_eq(past_end_count(), 2);
}

TEST(past_end_works_without_work_buffers)
{
	static uintptr_t slot[8192 / 8];
	unsigned n = fill_span(RT_WORDS, 20, slot);

	work_limit(0);
	*(void **)slot[n - 1] = make_wide(100, 3);
	holder.word[0] = slot[n - 1] + sizeclass_table[20].size;
	ck_assert_uint_eq(heap_live_after_gc(), 1 + 1 + 100 + 100 * 100);
}

// The rule is for stacks and registers.  A span of this class has a rest behind
// its last object, so no other object begins there.
TEST(end_in_the_heap_or_a_range_keeps_nothing)
{
	static uintptr_t slot[8192 / 8];
	uintptr_t *words = heap_table(2, RT_ROOT_WORDS);
	uintptr_t *exact = heap_table(2, RT_ROOT_EXACT);
	uintptr_t *object = rt_alloc(256);
	size_t size = sizeclass_table[9].size;
	unsigned n = fill_span(RT_WORDS, 9, slot);

	root[0] = object;
	for (unsigned i = 0; i < 2; i++) {
		uintptr_t end = i == 0 ? slot[n - 1] + size
				       : (uintptr_t)rt_alloc(40008) + 40008;

		words[i] = exact[i] = object[i] = end;
	}
	ck_assert_uint_eq(heap_live_after_gc(), 1);
	ck_assert_uint_eq(past_end_count(), 0);
	ck_assert_int_eq(rt_roots_remove(words, words + 2), RT_OK);
	ck_assert_int_eq(rt_roots_remove(exact, exact + 2), RT_OK);
	free(words);
	free(exact);
}

GROUP(own);

TEST(past_end_can_be_turned_off)
{
	static uintptr_t slot[8192 / 8];
	rt_config c = heap_config(HEAP_QUIET);
	unsigned n;

	c.past_end = 0;
	start(c);
	holder_start();
	n = fill_span(RT_WORDS, 9, slot);
	holder.word[0] = slot[n - 1] + sizeclass_table[9].size;
	holder.word[1] = (uintptr_t)rt_alloc(40008) + 40008;
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	ck_assert_uint_eq(past_end_count(), 0);
}

// ---- what is dead is gone ----

// litter allocates objects of every class and kind, tiny and large ones, with
// pointers between them.
static void litter(unsigned each)
{
	void **before = NULL;

	for (unsigned i = 0; i < each; i++) {
		for (unsigned c = 2; c < SIZECLASS_COUNT; c++) {
			void **p = rt_alloc(class_request(c));

			*p = before;
			before = p;
			rt_alloc_noscan(class_request(c));
		}
		for (size_t n = 1; n < SIZECLASS_TINY_SIZE; n++)
			rt_alloc_noscan(n);
		rt_alloc(100000);
		rt_alloc_noscan_uninit(300000);
	}
}

GROUP(exact);

TEST(nothing_dead_stays)
{
	rt_memstats m;

	litter(10);
	ck_assert_uint_gt(heap_live(), 1300);
	ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	m = heap_stats();
	ck_assert_uint_eq(m.heap_alloc, 0);
	ck_assert_uint_eq(m.heap_objects, 0);
	ck_assert_uint_eq(m.heap_inuse, 0);
	ck_assert_uint_eq(m.mallocs, m.frees);
}

static void *litter_thread(void *arg)
{
	(void)arg;
	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	litter(10);
	return NULL; // the exit detaches
}

GROUP(own);

// All objects of a thread that is gone die.  The collecting thread's stack is
// scanned, but it never held a pointer to any of them.
TEST(nothing_of_a_gone_thread_stays)
{
	rt_config c = heap_config(HEAP_QUIET);

	ck_assert_int_eq(rt_init(&c), RT_OK);
	run_thread(litter_thread, NULL);
	ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

GROUP(held);

// A word on a stack keeps one object and what that reaches, but not its
// neighbours.
TEST(a_stack_word_keeps_one_object)
{
	uintptr_t *p = calloc(1000, sizeof *p);
	uint64_t alive = 0;

	for (unsigned i = 0; i < 1000; i++)
		p[i] = (uintptr_t)rt_alloc(64);
	for (unsigned i = 0; i < HELD; i++)
		holder.word[i] = p[50 * i + 5] + 1 + i;
	ck_assert_uint_eq(heap_live_after_gc(), HELD);
	for (unsigned i = 0; i < HELD; i++)
		alive += rt_is_heap((void *)p[50 * i + 5]) == 1;
	ck_assert_uint_eq(alive, HELD);
	free(p);
}

static RT_NOINLINE void fill_own_stack(unsigned n)
{
	volatile uintptr_t word[64];

	for (unsigned i = 0; i < 64; i++)
		word[i] = (uintptr_t)rt_alloc(64);
	if (n != 0)
		fill_own_stack(n - 1);
	rt_keep_alive((void *)word[0]);
}

static RT_NOINLINE void clear_own_stack(void)
{
	volatile char bytes[64 << 10];

	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = 0;
}

GROUP(own);

// The part of a stack that is not in use is not scanned, and library frames add
// nothing.
TEST(returned_frames_keep_nothing)
{
	rt_config c = heap_config(HEAP_QUIET);

	ck_assert_int_eq(rt_init(&c), RT_OK);
	fill_own_stack(20);
	clear_own_stack();
	// There are 1344 objects, and each register that a call preserves may
	// hold one of them.  Frames of a sanitizer have gaps that nothing
	// clears.
	ck_assert_uint_le(heap_live_after_gc(), RT_ASAN ? 64 : CONTEXT_REGS);
}

// Registers and stack of the collecting thread itself are roots.
TEST(own_stack_and_registers_keep)
{
	rt_config c = heap_config(HEAP_QUIET);
	struct cell *list;
	void *volatile array[100];
	uint64_t alive = 0;

	ck_assert_int_eq(rt_init(&c), RT_OK);
	list = make_list(1000);
	for (unsigned i = 0; i < 100; i++)
		array[i] = rt_alloc(48);
	ck_assert_uint_ge(heap_live_after_gc(), 1100);
	ck_assert_uint_eq(list_length(list), 1000);
	for (unsigned i = 0; i < 100; i++)
		alive += rt_is_heap(array[i]) == 1;
	ck_assert_uint_eq(alive, 100);
}

GROUP(exact);

TEST(noscan_objects_keep_nothing)
{
	for (unsigned c = 2; c < SIZECLASS_COUNT; c++) {
		void **p = rt_alloc_noscan(class_request(c));

		p[0] = p[1] = make_list(2);
		((void **)p)[class_request(c) / sizeof *p - 1] = make_list(1);
		root[c % ROOTS] = p;
		if (c % ROOTS == ROOTS - 1)
			ck_assert_uint_eq(heap_live_after_gc(), ROOTS - 2);
	}
	root[0] = rt_alloc_noscan(100000);
	((void **)root[0])[7] = make_list(5);
	memset(root + 1, 0, sizeof root - sizeof *root);
	ck_assert_uint_eq(heap_live_after_gc(), 1);
}
