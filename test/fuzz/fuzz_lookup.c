// fuzz_lookup.c - any word as a pointer into a heap with known objects.
//
// The heap is made once for each of its two layouts (align8) and stays: every
// size class and some large objects of both kinds, with freed ones between
// them.  An input is words; each is asked about in all ways there are.
#include "test/fuzz/heap_model.h"

#include "runtime/pages/arena.h"
#include "runtime/spans/object.h"

enum {
	MAX_HEAP = 64 << 20,
	LARGE_STEPS = 6, // sizes of large objects: 32 KiB << 0 .. 5
};

static struct model m;
static uintptr_t roots[MODEL_OBJECTS];
static int layout = -1; // align8 of the heap that exists

// keep allocates three objects of n bytes; the one in the middle is garbage.
static void keep(size_t n, int kind)
{
	for (int i = 0; i < 3; i++) {
		void *p = rt_alloc_kind(kind, n);

		REQUIRE(p != NULL);
		if (i == 1)
			continue;
		roots[m.n] = (uintptr_t)p;
		model_add(&m, p, n, kind);
	}
}

static void fill(void)
{
	for (int kind = RT_NOSCAN; kind <= RT_WORDS; kind++) {
		// One size a class, in two halves, one for each kind.
		for (unsigned c = 1 + (unsigned)kind; c < SIZECLASS_COUNT;
		     c += 2)
			keep(base_min(sizeclass_table[c].size, MODEL_LARGE),
			     kind);
		for (unsigned i = 0; i < LARGE_STEPS; i++)
			keep(((size_t)MODEL_LARGE << i) + 1 + 4111 * i, kind);
	}
}

static void make_heap(int align8)
{
	rt_config c;

	if (layout >= 0)
		REQUIRE(rt_fini() == RT_OK);
	layout = align8;
	m.n = 0;
	memset(roots, 0, sizeof roots);
	rt_config_init(&c);
	c.max_heap = MAX_HEAP;
	c.gc_percent = -1;
	c.gc_threads = 0;
	c.align8 = (uint8_t)align8;
	c.no_attach = 1;
	REQUIRE(rt_init(&c) == RT_OK);
	REQUIRE(rt_thread_attach(RT_THREAD_EXACT) == RT_OK);
	REQUIRE(rt_roots_add(roots, roots + MODEL_OBJECTS, 0) == RT_OK);
	fill();
	REQUIRE(rt_gc() == RT_OK);
	REQUIRE(model_healthy() == m.n);
}

static void ask(uintptr_t w)
{
	const struct model_object *want = model_find(&m, w);
	const void *p = (const void *)w;
	struct object o;

	REQUIRE(object_find(w, &o) == (want != NULL));
	REQUIRE(rt_is_heap(p) == (want != NULL));
	REQUIRE(rt_base(p) == (want ? (void *)want->base : NULL));
	REQUIRE(rt_size(p) == (want ? o.size : 0));
	if (!want)
		return;
	REQUIRE(o.base == want->base && o.request == want->size);
	REQUIRE(o.kind == (unsigned)want->kind);
	REQUIRE(o.size == (want->size > MODEL_LARGE
			       ? base_pages(want->size) << RT_PAGE_SHIFT
			       : want->size));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	unsigned how = input_u8(&in);

	if (layout != (int)(how & 1))
		make_heap(how & 1);
	// The bitmaps change their roles with each collection.
	if (how & 2)
		REQUIRE(rt_gc() == RT_OK);
	while (in.left > 0) {
		uintptr_t w = input_pointer(&in, &m);

		ask(w);
		ask(w - 1);
		ask(w & ~(uintptr_t)(RT_PAGE_SIZE - 1));
	}
	return 0;
}
