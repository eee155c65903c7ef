// fibers.c - what registered stacks cost.
//
// usage: fibers register|collect|values
//        fibers abandoned COUNT
//
// - register: nanoseconds of registering and unregistering one of 100 000
//   stacks, all of which are registered before the first is unregistered.
// - collect: nanoseconds that a collection takes for each of 100 000 suspended
//   fibers, beyond what it takes if their words are registered as ranges.  Each
//   fiber has 48 words in use, six of which refer to an object of its own.
// - values: milliseconds of a collection beside a value stack of 1 MiB, in a
//   format of two words, whose values all refer to one object.  The figures are
//   for a stack without references, and for one whose values refer to an object
//   each, which is then marked and swept.
// - abandoned: the peak in MiB of a program that makes COUNT fibers and forgets
//   each.  The stack of each belongs to its object, to which it refers.
//
// Times are of the processor, the least of all rounds.  The checksum is the
// number of fibers or values.
//
// Good: register and collect at most 100 ns, values at most 0.3 ms.  The peak
// for ten times as many fibers is at most 1.2 times as high.
#include "harness.h"

#ifndef RT_STACK_H
#error "only rtheap has stacks that a host registers"
#endif

enum {
	FIBERS = 100000 / PEER_DIVISOR,
	ROUNDS = PEER_DIVISOR > 1 ? 1 : 9,
	STACK = 128, // words of a fiber's stack
	USED = 48,
	VALUES = 65536, // of 16 bytes: 1 MiB
	TAG = 1,	// of values that refer to an object
	EVERY = 100,	// fibers between two looks at what is ready
};

// A context has a cache line of its own.
static struct fiber {
	void *sp;
	rt_stack *stack;
} __attribute__((aligned(64))) fibers[FIBERS];
static void **words;

static void **end_of(int i)
{
	return words + ((size_t)i + 1) * STACK;
}

static rt_stack *registered(const rt_stack_desc *d)
{
	rt_stack *s = NULL;

	rt_stack_register(d, &s);
	return peer_need(s);
}

static void register_all(void)
{
	for (int i = 0; i < FIBERS; i++) {
		rt_stack_desc d;

		rt_stack_desc_init(&d);
		d.lo = end_of(i) - STACK;
		d.hi = end_of(i);
		d.sp = &fibers[i].sp;
		fibers[i].stack = registered(&d);
	}
}

static void unregister_all(void)
{
	for (int i = 0; i < FIBERS; i++)
		heap_must(rt_stack_unregister(fibers[i].stack),
			  "rt_stack_unregister");
}

static void suspend_all(void)
{
	words = peer_need(calloc((size_t)FIBERS * STACK, sizeof(void *)));
	for (int i = 0; i < FIBERS; i++)
		fibers[i].sp = end_of(i) - USED;
}

static void both(void)
{
	register_all();
	unregister_all();
}

static void register_each(struct peer_time *t)
{
	suspend_all();
	peer_report(peer_least(both, ROUNDS, t) * 1e9 / FIBERS, "ns", t,
		    FIBERS);
}

static void hold_objects(void)
{
	for (int i = 0; i < FIBERS; i++) {
		void *object = peer_alloc(48);

		for (int w = 0; w < USED; w += 8)
			end_of(i)[w - USED] = object;
	}
}

static void collect(struct peer_time *t)
{
	double stacks, ranges;

	suspend_all();
	register_all();
	hold_objects();
	stacks = peer_least(heap_collect, ROUNDS, t) * 1e9 / FIBERS;
	for (int i = 0; i < FIBERS; i++)
		heap_must(
		    rt_roots_add(end_of(i) - USED, end_of(i), RT_ROOT_WORDS),
		    "rt_roots_add");
	unregister_all();
	ranges = peer_least(heap_collect, ROUNDS, t) * 1e9 / FIBERS;
	peer_figure("stack_ns", stacks);
	peer_figure("range_ns", ranges);
	peer_report(stacks - ranges, "ns", t, FIBERS);
}

static void values(struct peer_time *t)
{
	static const rt_value_format pair = RT_FORMAT_PAIR(TAG, TAG);
	static uintptr_t stack[2 * VALUES];
	static void *sp;
	rt_stack_desc d;
	double one;

	rt_stack_desc_init(&d);
	d.lo = stack;
	d.hi = sp = stack + 2 * VALUES;
	d.sp = &sp;
	d.flags = RT_STACK_UP;
	d.format = &pair;
	registered(&d);
	peer_figure("none_ms", peer_least(heap_collect, ROUNDS, t) * 1e3);
	stack[0] = (uintptr_t)peer_alloc(16);
	for (int i = 0; i < 2 * VALUES; i += 2) {
		stack[i] = stack[0];
		stack[i + 1] = TAG;
	}
	one = peer_least(heap_collect, ROUNDS, t) * 1e3;
	for (int i = 0; i < 2 * VALUES; i += 2)
		stack[i] = (uintptr_t)peer_alloc(16);
	peer_figure("each_ms", peer_least(heap_collect, ROUNDS, t) * 1e3);
	peer_report(one, "ms", t, VALUES);
}

// ---- Fibers that are objects, and own their stacks ----

struct owner {
	void *sp;
	rt_stack *stack; // NULL: not registered yet
	void **words;
	char registers[1000];
};

static void trace(rt_tracer *t, void *obj, size_t size, void *arg)
{
	(void)size, (void)arg;
	rt_trace_stack(t, ((struct owner *)obj)->stack);
}

static void drop(void *obj, size_t size, void *arg)
{
	struct owner *f = (struct owner *)obj;

	(void)size, (void)arg;
	if (!f->stack)
		return;
	heap_must(rt_stack_unregister(f->stack), "rt_stack_unregister");
	free(f->words);
}

static int register_owner(void)
{
	rt_kind_desc d;
	int kind;

	rt_kind_desc_init(&d);
	d.layout = RT_LAYOUT_TRACE;
	d.trace = trace;
	d.drop = drop;
	d.flags = RT_KIND_DROP;
	kind = rt_kind_register(&d);
	if (kind < 0)
		peer_die("no kind");
	return kind;
}

static void abandon_one(int kind)
{
	struct owner *f = peer_need(rt_alloc_of(kind, sizeof *f));
	rt_stack_desc d;

	f->words = peer_need(calloc(STACK, sizeof(void *)));
	for (int w = STACK - USED; w < STACK; w += 8)
		f->words[w] = f;
	f->sp = f->words + STACK - USED;
	rt_stack_desc_init(&d);
	d.lo = f->words;
	d.hi = f->words + STACK;
	d.sp = &f->sp;
	d.flags = RT_STACK_OWNED;
	f->stack = registered(&d);
}

static void abandoned(uint64_t count, struct peer_time *t)
{
	int kind = register_owner();

	count /= PEER_DIVISOR;
	peer_start(t);
	for (uint64_t i = 0; i < count; i++) {
		abandon_one(kind);
		if (i % EVERY == 0 && rt_finalizers_ready())
			rt_run_finalizers(0);
	}
	peer_stop(t);
	peer_figure("fiber_ns", t->cpu * 1e9 / (double)count);
	peer_report((double)peer_peak_kib() / 1024, "MiB", t, count);
}

int main(int argc, char **argv)
{
	static const uint64_t counts[2] = {PEER_DIVISOR, 100000000};
	const char *what = peer_word(argc, argv, 1);
	struct peer_time t = {0};

	heap_begin();
	if (!strcmp(what, "register"))
		register_each(&t);
	else if (!strcmp(what, "collect"))
		collect(&t);
	else if (!strcmp(what, "values"))
		values(&t);
	else if (!strcmp(what, "abandoned"))
		abandoned(peer_number(argc, argv, 2, counts), &t);
	else
		peer_die("no such measurement");
	return 0;
}
