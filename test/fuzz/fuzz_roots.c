// fuzz_roots.c - any words on a stack, in roots and in objects.
//
// Objects are made and filled with words of any kind, and so are two ranges
// of roots and an array on the stack of a thread that is scanned.  Every
// object that a root or the array leads to is whole afterwards; of those on a
// thread with exact roots exactly the reached ones are left.
#include "test/fuzz/heap_model.h"

enum {
	MAX_HEAP = 64 << 20,
	WORDS = 48, // of each range and of the array on the stack
	OBJECTS = 100,
};

static struct model m;
static uintptr_t exact[WORDS], words[WORDS];

static void fill_words(struct input *in, uintptr_t *w, size_t n)
{
	for (size_t i = 0; i < n; i++)
		w[i] = input_u8(in) % 4 ? input_pointer(in, &m) : 0;
}

static void make_objects(struct input *in)
{
	unsigned n = input_below(in, OBJECTS);

	for (unsigned i = 0; i < n; i++) {
		int kind = input_u8(in) % 2 ? RT_WORDS : RT_NOSCAN;
		size_t size = input_size(in);
		void *p = rt_alloc_kind(kind, size);

		REQUIRE(p != NULL);
		model_add(&m, p, size, kind);
	}
}

static void fill_objects(struct input *in)
{
	for (unsigned i = 0; i < m.n; i++) {
		struct model_object *o = &m.object[i];
		size_t few = base_min(o->nwords, input_below(in, 5));

		for (size_t w = 0; w < few; w++)
			fill_words(in, model_word(o, o->nwords - 1 - w), 1);
		o->sum = model_sum(o);
	}
}

// reach_past_end: a word of the stack that equals the end of an object keeps
// it.
static void reach_past_end(const uintptr_t *w, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct model_object *o = model_find(&m, w[i] - 1);

		if (o && o->base + o->size == w[i])
			model_reach_object(&m, o);
	}
}

// collect_here collects while the array of arbitrary words is on the stack.
static RT_NOINLINE void collect_here(struct input *in, bool past_end)
{
	uintptr_t junk[WORDS];

	fill_words(in, junk, WORDS);
	__asm__ volatile("" : : "r"(junk) : "memory");
	REQUIRE(rt_gc() == RT_OK);
	__asm__ volatile("" : : "r"(junk) : "memory");
	model_reach(&m, junk, WORDS);
	if (past_end)
		reach_past_end(junk, WORDS);
}

static void begin(unsigned how, unsigned thread_flags)
{
	rt_config c;

	m.n = 0;
	memset(exact, 0, sizeof exact);
	memset(words, 0, sizeof words);
	rt_config_init(&c);
	c.max_heap = MAX_HEAP;
	c.gc_percent = -1;
	c.gc_threads = 0;
	c.align8 = how >> 1 & 1;
	c.past_end = how >> 2 & 1;
	c.double_check = RT_CHECK_FATAL;
	c.no_attach = 1;
	REQUIRE(rt_init(&c) == RT_OK);
	REQUIRE(rt_thread_attach(thread_flags) == RT_OK);
	REQUIRE(rt_roots_add(exact, exact + WORDS, RT_ROOT_EXACT) == RT_OK);
	REQUIRE(rt_roots_add(words, words + WORDS, RT_ROOT_WORDS) == RT_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	unsigned how = input_u8(&in);
	bool scanned = how & 1, past_end = how >> 2 & 1;

	begin(how, scanned ? 0 : RT_THREAD_EXACT);
	make_objects(&in);
	fill_objects(&in);
	fill_words(&in, exact, WORDS);
	fill_words(&in, words, WORDS);
	if (scanned)
		collect_here(&in, past_end);
	else
		REQUIRE(rt_gc() == RT_OK);
	model_reach_references(&m, exact, WORDS);
	model_reach(&m, words, WORDS);
	model_collect(&m);
	if (scanned)
		REQUIRE(model_healthy() >= m.n);
	else
		REQUIRE(model_healthy() == m.n);
	REQUIRE(rt_fini() == RT_OK);
	return 0;
}
