#include "test/fuzz/heap_ops.h"

#include "test/fuzz/heap_model.h"

enum {
	MAX_HEAP = 512 << 20, // many times what can be alive
	ROOTS = 32,	      // words that are always roots
	RANGES = 6,	      // memory that may be registered
	RANGE_WORDS = 8,      // each
	RANGE_TIMES = 4,      // the most that one is registered
	STACKS = 8,	      // of rt_stack_alloc, at once
	STACK_SHIFTS = 7,     // 2048 << 0 .. 6
	MAX_STEPS = 400,      // an input that goes on is cut here
};

struct stack {
	unsigned char *p;
	size_t n;
	unsigned char fill;
};

static struct {
	struct model m;
	uintptr_t root[ROOTS];
	uintptr_t range[RANGES][RANGE_WORDS];
	unsigned range_times[RANGES][2];
	struct stack stack[STACKS];
	uint64_t num_gc;
	bool may_fail;
} h;

// done requires success, or a refusal where one is possible.
static bool done(int error)
{
	REQUIRE(error == RT_OK || (h.may_fail && error == RT_ENOMEM));
	return error == RT_OK;
}

// ---- collections ----

// The live reader changes nothing, so that allocation goes on as without it.
static uint64_t collections(void)
{
	static rt_memstats m;

	REQUIRE(rt_read_memstats_live(&m) == RT_OK);
	return m.num_gc;
}

// follow does in the model what collections did in the heap, if any did.
static void follow(void)
{
	uint64_t n = collections();

	if (n == h.num_gc)
		return;
	h.num_gc = n;
	model_reach_references(&h.m, h.root, ROOTS);
	for (unsigned i = 0; i < RANGES; i++)
		if (h.range_times[i][RT_ROOT_WORDS] > 0)
			model_reach(&h.m, h.range[i], RANGE_WORDS);
		else if (h.range_times[i][RT_ROOT_EXACT] > 0)
			model_reach_references(&h.m, h.range[i], RANGE_WORDS);
	model_collect(&h.m);
}

// collected: after a collection that just ended, exactly what is reached is
// there.
static void collected(void)
{
	uint64_t before = h.num_gc;

	follow();
	REQUIRE(h.num_gc > before);
	REQUIRE(model_healthy() == h.m.n);
}

static void do_gc(struct input *in)
{
	(void)in;
	REQUIRE(rt_gc() == RT_OK);
	collected();
}

static void do_free_os_memory(struct input *in)
{
	(void)in;
	REQUIRE(rt_free_os_memory() == RT_OK);
	collected();
}

static void do_gc_percent(struct input *in)
{
	static const int percents[] = {-1, 0, 1, 20, 100, 1000};

	REQUIRE(rt_set_gc_percent(percents[input_below(in, 6)], NULL) == RT_OK);
}

// ---- objects ----

static void *allocate(unsigned how, size_t n)
{
	rt_thread *t = rt_thread_self();

	switch (how % 8) {
	case 0:
		return rt_alloc(n);
	case 1:
		return (rt_alloc)(n);
	case 2:
		return rt_alloc_in(t, n);
	case 3:
		return n <= 48 ? rt_alloc(48) : rt_alloc_kind(RT_WORDS, n);
	case 4:
		return rt_alloc_noscan(n);
	case 5:
		return rt_alloc_noscan_uninit(n);
	case 6:
		return rt_alloc_kind(RT_NOSCAN, n);
	default:
		return n <= 16 ? rt_alloc_noscan(16) : rt_alloc_noscan_in(t, n);
	}
}

static bool is_zero(const char *p, size_t n)
{
	return p[0] == 0 && memcmp(p, p + 1, n - 1) == 0;
}

static void check_new(const char *p, size_t n, unsigned how)
{
	REQUIRE(rt_is_heap(p) && rt_size(p) >= n);
	REQUIRE(n < 16 || (uintptr_t)p % 8 == 0);
	if (how % 8 != 5) // rt_alloc_noscan_uninit
		REQUIRE(is_zero(p, n));
}

// slot is a word that may hold a pointer: a root, registered memory, or a
// word of an object; *o becomes this object, else NULL.
static uintptr_t *slot(struct input *in, struct model_object **o)
{
	unsigned which = input_u8(in), i = input_u8(in);
	struct model_object *into = h.m.n > 0 ? &h.m.object[i % h.m.n] : NULL;

	*o = NULL;
	if (which % 4 == 0)
		return &h.range[i % RANGES][which / 4 % RANGE_WORDS];
	if (which % 4 == 1 || !into || into->nwords == 0)
		return &h.root[i % ROOTS];
	*o = into;
	return model_word(into, (which / 4 + i) % into->nwords);
}

static void store(struct input *in, uintptr_t value)
{
	struct model_object *o;
	uintptr_t *at = slot(in, &o);

	if (o)
		RT_STORE((void *)o->base, at, value);
	else
		*at = value;
	if (o)
		o->sum = model_sum(o);
}

static void do_alloc(struct input *in)
{
	unsigned how = input_u8(in);
	size_t n = input_size(in);
	char *p;

	if (h.m.n == MODEL_OBJECTS)
		return;
	p = allocate(how, n);
	follow();
	REQUIRE(p != NULL || h.may_fail);
	if (!p)
		return;
	check_new(p, n, how);
	model_add(&h.m, p, n, how % 8 < 4 ? RT_WORDS : RT_NOSCAN);
	store(in, (uintptr_t)p);
}

static void do_store(struct input *in)
{
	store(in, input_pointer(in, &h.m));
}

static void do_drop(struct input *in)
{
	store(in, 0);
}

static void do_drop_roots(struct input *in)
{
	unsigned from = input_below(in, ROOTS);

	memset(&h.root[from], 0, (ROOTS - from) * sizeof h.root[0]);
}

// Objects that there is no room for, or no bytes in.
static void do_alloc_wrong(struct input *in)
{
	uint64_t n = input_uint(in, 8);

	REQUIRE(rt_alloc(n < MAX_HEAP ? n + MAX_HEAP + 1 : n) == NULL);
	REQUIRE(rt_alloc_kind(2 + input_u8(in), 64) == NULL);
	REQUIRE(rt_alloc(0) != NULL && !rt_is_heap(rt_alloc(0)));
	follow();
}

// ---- roots and stacks ----

static void do_roots_add(struct input *in)
{
	unsigned i = input_below(in, RANGES), flags = input_u8(in) % 2;

	if (h.range_times[i][flags] == RANGE_TIMES)
		return;
	if (done(
		rt_roots_add(h.range[i], h.range[i] + RANGE_WORDS, (int)flags)))
		h.range_times[i][flags]++;
}

static void do_roots_remove(struct input *in)
{
	unsigned i = input_below(in, RANGES);
	unsigned flags =
	    h.range_times[i][RT_ROOT_EXACT] > 0 ? RT_ROOT_EXACT : RT_ROOT_WORDS;
	int want = h.range_times[i][flags] > 0 ? RT_OK : RT_ENOENT;

	REQUIRE(rt_roots_remove(h.range[i], h.range[i] + RANGE_WORDS) == want);
	if (want == RT_OK)
		h.range_times[i][flags]--;
}

static void stack_free(struct stack *s)
{
	for (size_t i = 0; i < s->n; i++)
		REQUIRE(s->p[i] == s->fill);
	REQUIRE(rt_stack_free(s->p + 8, s->n) == RT_EINVAL);
	REQUIRE(rt_stack_free(s->p, 2 * s->n) == RT_EINVAL);
	REQUIRE(rt_stack_free(s->p, s->n) == RT_OK);
	s->p = NULL;
}

static void do_stack(struct input *in)
{
	struct stack *s = &h.stack[input_below(in, STACKS)];

	if (s->p) {
		stack_free(s);
		return;
	}
	s->n = (size_t)2048 << input_below(in, STACK_SHIFTS);
	s->p = rt_stack_alloc(s->n);
	follow();
	REQUIRE(s->p != NULL || h.may_fail);
	if (!s->p)
		return;
	REQUIRE((uintptr_t)s->p % base_min(s->n, 8192) == 0);
	REQUIRE(!rt_is_heap(s->p));
	s->fill = input_u8(in);
	memset(s->p, s->fill, s->n);
}

// ---- the thread and the world ----

static void *ask_everything(void *arg)
{
	model_healthy();
	REQUIRE(rt_alloc(64) == NULL);
	return arg;
}

static void do_region(struct input *in)
{
	static rt_memstats m;

	(void)in;
	REQUIRE(rt_blocking_enter() == RT_OK);
	REQUIRE(rt_read_memstats(&m) == RT_OK);
	REQUIRE(rt_alloc(64) == NULL && rt_gc() == RT_ESTATE);
	REQUIRE(rt_blocking_leave() == RT_OK);
}

static int count_object(void *obj, size_t size, int kind, void *arg)
{
	REQUIRE(rt_base(obj) == obj && rt_size(obj) == size && kind <= 1);
	++*(uint64_t *)arg;
	return 0;
}

static void do_stop(struct input *in)
{
	uint64_t n = 0;

	REQUIRE(rt_stop_the_world(RT_STOP_HOST + input_u8(in)) == RT_OK);
	ask_everything(NULL);
	REQUIRE(rt_heap_walk(count_object, &n) == RT_OK);
	REQUIRE(n == model_healthy());
	REQUIRE(rt_start_the_world(NULL) == RT_OK);
}

// Nothing is alive by being on this thread, so it may go and come back.
static void do_detach(struct input *in)
{
	(void)in;
	REQUIRE(rt_thread_detach() == RT_OK);
	REQUIRE(rt_alloc(64) == NULL && rt_gc() == RT_EPERM);
	while (!done(rt_thread_attach(RT_THREAD_EXACT)))
		;
}

static void do_questions(struct input *in)
{
	uintptr_t w = input_pointer(in, &h.m);
	const struct model_object *o = model_find(&h.m, w);

	if (o) {
		REQUIRE(rt_base((void *)w) == (void *)o->base);
		REQUIRE(rt_size((void *)w) >= o->size);
	}
	REQUIRE(rt_is_heap((void *)w) == (rt_base((void *)w) != NULL));
	REQUIRE((rt_size((void *)w) != 0) == rt_is_heap((void *)w));
}

static void do_read(struct input *in)
{
	rt_metric_sample s = {.name = "/gc/heap/live:bytes"};

	REQUIRE(rt_metrics_read(&s, 1) == RT_OK && s.kind == RT_METRIC_U64);
	if (input_u8(in) % 2)
		model_healthy();
	rt_safepoint();
}

static void (*const steps[])(struct input *) = {
    do_alloc,	       do_alloc,	do_alloc,      do_alloc,
    do_alloc,	       do_alloc,	do_store,      do_store,
    do_store,	       do_drop,		do_drop,       do_gc,
    do_free_os_memory, do_gc_percent,	do_drop_roots, do_stack,
    do_stack,	       do_region,	do_stop,       do_roots_add,
    do_detach,	       do_roots_remove, do_questions,  do_alloc_wrong,
    do_read,
};

// ---- the heap ----

static rt_config config(struct input *in)
{
	unsigned bits = input_u8(in);
	rt_config c;

	rt_config_init(&c);
	c.max_heap = MAX_HEAP;
	c.heap_headroom = 0;
	c.heap_min = (size_t)4096 << (bits & 7);
	c.align8 = bits >> 3 & 1;
	c.huge_pages = bits >> 4 & 1;
	c.populate = bits >> 5 & 1;
	c.past_end = bits >> 6 & 1;
	c.gc_threads = 0;
	c.double_check = RT_CHECK_FATAL;
	c.no_attach = 1;
	return c;
}

// begin makes the heap; a refusal leaves nothing behind, so it is tried until
// the faults are used up.
static void begin(const rt_config *c)
{
	while (!done(rt_init(c)))
		REQUIRE(rt_gc() == RT_ESTATE);
	while (!done(rt_thread_attach(RT_THREAD_EXACT)))
		;
	while (!done(rt_roots_add(h.root, h.root + ROOTS, RT_ROOT_EXACT)))
		;
}

void heap_ops(struct input *in, bool may_fail)
{
	rt_config c = config(in);

	memset(&h, 0, sizeof h);
	h.may_fail = may_fail;
	begin(&c);
	for (unsigned i = 0; i < MAX_STEPS && in->left > 0; i++)
		steps[input_below(in, RT_ARRAY_LEN(steps))](in);
	do_gc(in);
	for (unsigned i = 0; i < STACKS; i++)
		if (h.stack[i].p)
			stack_free(&h.stack[i]);
	model_healthy();
	REQUIRE(rt_fini() == RT_OK);
}
