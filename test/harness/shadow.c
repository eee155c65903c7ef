#include "test/harness/shadow.h"

#include <pthread.h>
#include <rt/rt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/base.h"
#include "runtime/os/oscall.h"
#include "test/harness/constant.h"

enum {
	SLOTS = 24,
	REFS = 6, // of an object, at most
	STACKS = 4,
	EDGE = 256, // bytes that are looked at, from both ends
	TINY = 16,  // smaller ones without pointers may share a slot
	STOP_REASON = RT_STOP_HOST + 5,
	CHILD_SECONDS = 60, // a child that takes longer hangs
};

// Where a word points.
struct ref {
	struct node *to; // NULL: nowhere
	size_t offset;
};

// What an object should be.
struct node {
	uint64_t id; // which thread made it, and when
	uintptr_t at;
	size_t n;
	bool noscan;
	bool reached;
	unsigned owner; // the only one to change it
	unsigned nrefs;
	struct ref ref[REFS];
	struct node *next; // of its owner
	struct node *todo; // in a list to be looked at
};

struct actor {
	uintptr_t *slot; // registered: one half exact, one half as words
	uintptr_t *leak; // registered: what it never lets go
	struct ref root[SLOTS];
	void *stack[STACKS];
	struct node *nodes;
	uint64_t made;
	unsigned id;
};

static struct actor actors[SHADOW_THREADS];
static const struct shadow_program *program;
static bool guarded; // some objects are
static struct shadow_result *result;
static pthread_barrier_t meeting;

// ---- failing ----

static pthread_mutex_t failing = PTHREAD_MUTEX_INITIALIZER;

// fail ends the run; the first one says why.
static RT_NORETURN void fail(const char *format, ...)
{
	va_list args;

	pthread_mutex_lock(&failing);
	va_start(args, format);
	vsnprintf(result->why, sizeof result->why, format, args);
	va_end(args);
	_exit(1);
}

static void on_fatal(const char *text, void *arg)
{
	(void)arg;
	snprintf(result->why, sizeof result->why, "%s", text);
}

static void want(int error, const char *what)
{
	if (error != RT_OK)
		fail("%s: %s", what, rt_strerror(error));
}

// ---- contents ----

// The word of reference k: the last one first, then those behind the tag.
static size_t ref_word(const struct node *o, unsigned k)
{
	return k == 0 ? o->n / 8 - 1 : k;
}

static uint64_t tag_of(const struct node *o)
{
	return o->id << 1 | 1; // no address
}

// filler is byte i of an object where it has no tag and no reference; eight of
// them are no address.
static unsigned char filler(const struct node *o, size_t i)
{
	return (unsigned char)(0x41 + (o->id * 7 + i) % 31);
}

// is_filler tells whether byte i is one.
static bool is_filler(const struct node *o, size_t i)
{
	if (o->noscan || o->n < 8)
		return true;
	return i / 8 > o->nrefs - (o->nrefs != 0) &&
	       (o->nrefs == 0 || i / 8 != ref_word(o, 0));
}

// next_byte skips the middle of long objects.
static size_t next_byte(const struct node *o, size_t i)
{
	return i + 1 == EDGE && o->n > 2 * EDGE ? o->n - EDGE : i + 1;
}

static void fill(const struct node *o)
{
	unsigned char *p = (unsigned char *)o->at;

	for (size_t i = 0; i < o->n; i = next_byte(o, i))
		if (is_filler(o, i))
			p[i] = filler(o, i);
	if (!o->noscan && o->n >= 8)
		*(uint64_t *)o->at = tag_of(o);
}

static uintptr_t word_of(const struct ref *r)
{
	return r->to ? r->to->at + r->offset : 0;
}

// shares tells whether an object may lie in a slot with others.
static bool shares(const struct node *o)
{
	return o->noscan && o->n < (program->align8 ? TINY : RT_NOSCAN_MIN);
}

static void check_questions(const struct node *o)
{
	const void *last = (const void *)(o->at + o->n - 1);
	size_t size = rt_size((void *)o->at);
	uintptr_t base = (uintptr_t)rt_base(last);

	if (!rt_is_heap((void *)o->at) || !rt_is_heap(last))
		fail("object %#lx of %zu bytes is gone", (long)o->id, o->n);
	if (size < o->n || base > o->at || base + size < o->at + o->n ||
	    (base != o->at && !shares(o)))
		fail("object %#lx of %zu bytes at %#lx has size %zu, base %#lx",
		     (long)o->id, o->n, (long)o->at, size, (long)base);
}

static void check_bytes(const struct node *o)
{
	const unsigned char *p = (const unsigned char *)o->at;

	for (size_t i = 0; i < o->n; i = next_byte(o, i))
		if (is_filler(o, i) && p[i] != filler(o, i))
			fail("object %#lx of %zu bytes: byte %zu is %#x",
			     (long)o->id, o->n, i, p[i]);
	if (!o->noscan && o->n >= 8 && *(uint64_t *)o->at != tag_of(o))
		fail("object %#lx of %zu bytes has tag %#lx", (long)o->id, o->n,
		     *(long *)o->at);
}

// check_refs is for the owner, or when all have met.
static void check_refs(const struct node *o)
{
	const uintptr_t *word = (const uintptr_t *)o->at;

	for (unsigned k = 0; k < o->nrefs; k++)
		if (word[ref_word(o, k)] != word_of(&o->ref[k]))
			fail("object %#lx of %zu bytes: reference %u is %#lx",
			     (long)o->id, o->n, k, (long)word[ref_word(o, k)]);
}

// ---- making objects ----

static void *make(unsigned way, unsigned which, bool noscan, size_t *n)
{
	switch (way) {
	case 0:
	case 1:
		return constant_alloc(which, noscan, n);
	case 2:
		return rt_alloc(*n);
	case 3:
		return rt_alloc_noscan(*n);
	case 4:
		return rt_alloc_in(rt_thread_self(), *n);
	case 5:
		return rt_alloc_noscan_in(rt_thread_self(), *n);
	case 6:
		return rt_alloc_kind(RT_WORDS, *n);
	default:
		return rt_alloc_noscan_uninit(*n);
	}
}

static size_t alignment(const struct node *o)
{
	if (o->noscan && o->n < TINY)
		return o->n % 8 == 0   ? 8
		       : o->n % 4 == 0 ? 4
		       : o->n % 2 == 0 ? 2
				       : 1;
	if (program->align8 && (o->n <= 8 || (o->n > 16 && o->n <= 24)))
		return 8;
	return 16;
}

// check_new looks at an object that nothing was written to.
static void check_new(const struct node *o, bool uninit)
{
	const unsigned char *p = (const unsigned char *)o->at;
	size_t size = rt_size(p);
	size_t n = shares(o) ? o->n : size;

	if (o->at % alignment(o) != 0)
		fail("object of %zu bytes at %#lx", o->n, (long)o->at);
	if (!o->noscan && size != rt_good_size(o->n) &&
	    !(guarded && size == o->n))
		fail("object of %zu bytes has %zu, not %zu", o->n, size,
		     rt_good_size(o->n));
	for (size_t i = 0; !uninit && i < n; i++)
		if (p[i] != 0)
			fail("new object of %zu bytes: byte %zu is %#x", o->n,
			     i, p[i]);
}

static void set_root(struct actor *a, unsigned i, struct ref to)
{
	a->root[i] = to;
	a->slot[i] = word_of(&to);
}

static void do_alloc(struct actor *a, const struct shadow_op *op)
{
	unsigned way = op->b % 8;
	struct node *o = calloc(1, sizeof *o);
	size_t words;

	if (!o)
		fail("malloc");
	o->noscan = way % 2 == 1;
	o->n = op->n == 0 ? 1 : op->n;
	o->at = (uintptr_t)make(way, op->c, o->noscan, &o->n);
	if (!o->at)
		fail("no memory for %zu bytes", o->n);
	words = o->n / 8;
	o->owner = a->id;
	o->id = (uint64_t)(a->id + 1) << 32 | ++a->made;
	if (!o->noscan && words > 1)
		o->nrefs = (unsigned)base_min(REFS, words - 1);
	o->next = a->nodes;
	a->nodes = o;
	check_new(o, way == 7);
	fill(o);
	set_root(a, op->a % SLOTS, (struct ref){o, 0});
}

// ---- references ----

// own is the object in a slot if the thread may look at its references.
static struct node *own(const struct actor *a, unsigned slot)
{
	struct node *o = a->root[slot % SLOTS].to;

	return o && o->owner == a->id && o->nrefs != 0 ? o : NULL;
}

static void do_store(struct actor *a, const struct shadow_op *op)
{
	struct node *o = own(a, op->a);
	const struct ref *to = &a->root[op->c % SLOTS];
	unsigned k;

	if (!o)
		return;
	k = op->b % o->nrefs;
	o->ref[k] = *to;
	RT_STORE((void *)o->at, (uintptr_t *)o->at + ref_word(o, k),
		 word_of(to));
}

static void do_load(struct actor *a, const struct shadow_op *op)
{
	const struct node *o = own(a, op->c);
	unsigned k;

	if (!o)
		return;
	k = op->b % o->nrefs;
	if (((uintptr_t *)o->at)[ref_word(o, k)] != word_of(&o->ref[k]))
		fail("object %#lx: loaded another reference", (long)o->id);
	set_root(a, op->a % SLOTS, o->ref[k]);
}

static void do_copy(struct actor *a, const struct shadow_op *op)
{
	struct ref to = a->root[op->c % SLOTS];

	if (to.to)
		to.offset = op->n % to.to->n;
	set_root(a, op->a % SLOTS, to);
}

static void do_clear(struct actor *a)
{
	for (unsigned i = 0; i < SLOTS; i++)
		set_root(a, i, (struct ref){0});
}

static void check_slot(const struct actor *a, unsigned slot)
{
	const struct ref *r = &a->root[slot];

	if (a->slot[slot] != word_of(r))
		fail("a root has changed");
	if (!r->to)
		return;
	check_questions(r->to);
	check_bytes(r->to);
	if (r->to->owner == a->id)
		check_refs(r->to);
}

// ---- the rest of the interface ----

static void check_memstats(const rt_memstats *m)
{
	if (m->heap_sys != m->heap_inuse + m->heap_idle ||
	    m->heap_objects != m->mallocs - m->frees ||
	    m->heap_alloc > m->heap_inuse || m->heap_released > m->heap_idle)
		fail("statistics contradict each other");
}

static void do_stats(const struct shadow_op *op)
{
	uint64_t history[RT_GCSTATS_WORDS];
	rt_metric_sample sample = {0};
	rt_metric_desc desc;
	rt_memstats m;
	size_t used;

	want(rt_read_memstats(&m), "rt_read_memstats");
	check_memstats(&m);
	want(rt_read_memstats_live(&m), "rt_read_memstats_live");
	check_memstats(&m);
	want(rt_read_gcstats(history, RT_GCSTATS_WORDS, &used),
	     "rt_read_gcstats");
	want(rt_metrics_describe(op->n % rt_metrics_count(), &desc),
	     "rt_metrics_describe");
	sample.name = desc.name;
	want(rt_metrics_read(&sample, 1), "rt_metrics_read");
}

static void do_verify(void)
{
	struct rt_verify v;

	want(rt_heap_verify(&v), "rt_heap_verify");
	if (v.errors != 0)
		fail("rt_heap_verify: %s", v.first);
}

static int walk_one(void *obj, size_t size, int kind, void *arg)
{
	unsigned *left = arg;

	if (rt_size(obj) != size || rt_base(obj) != obj ||
	    (kind != RT_NOSCAN && kind != RT_WORDS))
		fail("walk: %p of %zu bytes", obj, size);
	return --*left == 0 ? RT_WALK_STOP : 0;
}

static void do_walk(const struct shadow_op *op)
{
	unsigned left = 1 + op->n;

	want(rt_heap_walk(walk_one, &left), "rt_heap_walk");
}

static void do_stop(void)
{
	rt_memstats m;

	want(rt_stop_the_world(STOP_REASON), "rt_stop_the_world");
	if (!rt_world_stopped() || rt_alloc(32) || rt_gc() != RT_EBUSY)
		fail("something goes on in the own stop");
	want(rt_read_memstats(&m), "rt_read_memstats");
	check_memstats(&m);
	want(rt_start_the_world(NULL), "rt_start_the_world");
}

static void do_stack(struct actor *a, const struct shadow_op *op)
{
	unsigned i = op->a % STACKS;
	size_t n = (size_t)2048 << i * 2;

	if (a->stack[i]) {
		want(rt_stack_free(a->stack[i], n), "rt_stack_free");
		a->stack[i] = NULL;
		return;
	}
	a->stack[i] = rt_stack_alloc(n);
	if (!a->stack[i])
		fail("no memory for a stack");
	memset(a->stack[i], 0x77, n);
}

static unsigned attach_flags(void)
{
	return program->exact ? RT_THREAD_EXACT : 0;
}

static void attach(void)
{
	want(rt_thread_attach(attach_flags()), "rt_thread_attach");
}

static void do_detach(const struct shadow_op *op)
{
	uintptr_t lo, hi;

	want(rt_thread_detach(), "rt_thread_detach");
	if (op->a % 2 == 0)
		return attach();
	if (oscall_stack_bounds(&lo, &hi) != 0)
		fail("a stack without bounds");
	want(rt_thread_attach_stack((void *)lo, (void *)hi, attach_flags()),
	     "rt_thread_attach_stack");
}

static void *in_region(void *arg)
{
	if (rt_alloc(16))
		fail("allocation in a blocking region");
	return arg;
}

static void do_region(struct actor *a)
{
	if (rt_call_blocking(in_region, a) != a)
		fail("rt_call_blocking");
	want(rt_blocking_enter(), "rt_blocking_enter");
	want(rt_blocking_leave(), "rt_blocking_leave");
}

static void add_roots(const struct actor *a)
{
	uintptr_t *half = a->slot + SLOTS / 2;

	// Slots hold addresses inside objects as well.
	want(rt_roots_add(a->slot, half, RT_ROOT_WORDS), "rt_roots_add");
	want(rt_roots_add(half, half + SLOTS / 2, RT_ROOT_WORDS),
	     "rt_roots_add");
}

static void remove_roots(const struct actor *a)
{
	uintptr_t *half = a->slot + SLOTS / 2;

	want(rt_roots_remove(a->slot, half), "rt_roots_remove");
	want(rt_roots_remove(half, half + SLOTS / 2), "rt_roots_remove");
}

static void do_roots(const struct actor *a)
{
	add_roots(a);
	remove_roots(a);
	if (rt_roots_remove(a->slot, a->slot + 1) != RT_ENOENT)
		fail("roots that were never added");
}

static void do_refused(void)
{
	const void *none = rt_alloc(0);

	if (rt_alloc(SIZE_MAX) || rt_alloc_noscan((size_t)1 << 50) ||
	    rt_alloc_kind(RT_TYPED, 32) || rt_stack_alloc(3000))
		fail("a request that nobody can fulfil was fulfilled");
	if (!none || rt_is_heap(none) || rt_alloc_noscan(0) != none)
		fail("an object of no bytes");
}

static void do_percent(const struct shadow_op *op)
{
	int old;

	want(rt_set_gc_percent((int)(op->n % 400), &old), "rt_set_gc_percent");
	want(rt_set_gc_percent(old, NULL), "rt_set_gc_percent");
}

static int no_memory(size_t n, void *arg)
{
	(void)n;
	(void)arg;
	return 0;
}

static void on_warning(const char *text, void *arg)
{
	(void)arg;
	fail("warning: %s", text);
}

static void do_handlers(void)
{
	want(rt_set_oom_handler(no_memory, NULL), "rt_set_oom_handler");
	want(rt_set_warn_handler(on_warning, NULL), "rt_set_warn_handler");
	want(rt_set_fatal_handler(on_fatal, NULL), "rt_set_fatal_handler");
	want(rt_set_memstats_double_check(RT_CHECK_REPORT),
	     "rt_set_memstats_double_check");
	do_refused();
	want(rt_set_memstats_double_check(RT_CHECK_FATAL),
	     "rt_set_memstats_double_check");
}

// ---- forks ----

// in_child: the others are gone in the middle of what they did, so only what
// the thread holds is compared.
static RT_NORETURN void in_child(const struct actor *a)
{
	alarm(CHILD_SECONDS);
	want(rt_blocking_leave(), "rt_blocking_leave");
	want(rt_gc(), "rt_gc in a child");
	do_verify();
	for (unsigned slot = 0; slot < SLOTS; slot++)
		check_slot(a, slot);
	_exit(0);
}

// Some C libraries let one attached thread at a time fork, unless the others
// are in regions (rt/fork.h).
static void *fork_in_region(void *arg)
{
	pid_t child = fork();
	int status;

	if (child == 0)
		in_child(arg);
	if (child < 0 || waitpid(child, &status, 0) != child)
		fail("no child");
	if (status != 0 && result->why[0] != '\0')
		_exit(1); // it has said why
	if (status != 0)
		fail("a child ended with %#x", status);
	return arg;
}

// A sanitizer can make no thread in a child, and keeps locks of its own there.
static void do_fork(struct actor *a)
{
	if (!RT_ASAN && !RT_TSAN)
		rt_call_blocking(fork_in_region, a);
}

// ---- faults ----

static void do_lose(const struct actor *a)
{
	remove_roots(a);
	want(rt_gc(), "rt_gc");
	add_roots(a);
}

static void do_scribble(const struct actor *a, const struct shadow_op *op)
{
	const struct node *o = a->root[op->a % SLOTS].to;

	if (o)
		((unsigned char *)o->at)[0] ^= 0x80;
}

// ---- when all have met ----

struct list {
	size_t n;
	size_t room;
	uintptr_t *word; // addresses of objects or nodes
};

static void list_add(struct list *l, uintptr_t word)
{
	if (l->n == l->room) {
		l->room = 2 * l->room + 64;
		l->word = realloc(l->word, l->room * sizeof *l->word);
		if (!l->word)
			fail("malloc");
	}
	l->word[l->n++] = word;
}

static int by_value(const void *a, const void *b)
{
	uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;

	return (x > y) - (x < y);
}

static int by_address(const void *a, const void *b)
{
	const struct node *x = *(struct node *const *)a;
	const struct node *y = *(struct node *const *)b;

	return (x->at > y->at) - (x->at < y->at);
}

static int by_id(const void *a, const void *b)
{
	const struct node *x = *(struct node *const *)a;
	const struct node *y = *(struct node *const *)b;

	return (x->id > y->id) - (x->id < y->id);
}

static void sort(struct list *l, int (*order)(const void *, const void *))
{
	if (l->n != 0)
		qsort(l->word, l->n, sizeof *l->word, order);
}

static struct node *node_in(const struct list *l, size_t i)
{
	return (struct node *)l->word[i];
}

// reach puts a node on the list of those to be looked at, once.
static void reach(struct node **todo, struct node *o)
{
	if (!o || o->reached)
		return;
	o->reached = true;
	o->todo = *todo;
	*todo = o;
}

// reach_all finds what the roots reach, by the shadow.
static struct list reach_all(void)
{
	struct list live = {0};
	struct node *todo = NULL;

	for (unsigned t = 0; t < program->threads; t++)
		for (unsigned i = 0; i < SLOTS; i++)
			reach(&todo, actors[t].root[i].to);
	while (todo) {
		struct node *o = todo;

		todo = o->todo;
		list_add(&live, (uintptr_t)o);
		for (unsigned k = 0; k < o->nrefs; k++)
			reach(&todo, o->ref[k].to);
	}
	return live;
}

// forget_dead frees the nodes that were not reached.
static void forget_dead(struct actor *a)
{
	struct node **link = &a->nodes;

	while (*link) {
		struct node *o = *link;

		if (o->reached) {
			o->reached = false;
			link = &o->next;
		} else {
			*link = o->next;
			free(o);
		}
	}
}

static int walk_all(void *obj, size_t size, int kind, void *arg)
{
	(void)size;
	(void)kind;
	list_add(arg, (uintptr_t)obj);
	return 0;
}

// check_apart looks that live objects, sorted by address, do not overlap.
static void check_apart(const struct list *live)
{
	for (size_t i = 1; i < live->n; i++) {
		const struct node *o = node_in(live, i - 1);
		const struct node *next = node_in(live, i);

		if (o->at + o->n > next->at)
			fail("objects %#lx and %#lx overlap", (long)o->id,
			     (long)next->id);
	}
}

// check_gone compares what the heap holds with the live objects, both sorted.
static void check_gone(const struct list *live, const struct list *held)
{
	size_t i = 0;

	for (size_t h = 0; h < held->n; h++) {
		size_t first = i;

		while (i < live->n &&
		       (uintptr_t)rt_base((void *)node_in(live, i)->at) ==
			   held->word[h])
			i++;
		if (i == first && program->exact)
			fail("%#lx is dead and not gone", (long)held->word[h]);
	}
	if (i != live->n)
		fail("object %#lx is not found by a walk",
		     (long)node_in(live, i)->id);
}

static void add_hash(uint64_t x)
{
	result->hash = (result->hash ^ x) * UINT64_C(0x100000001b3);
	result->hash ^= result->hash >> 29;
}

// hash_object adds what the heap holds of an object.
static void hash_object(const struct node *o)
{
	const unsigned char *p = (const unsigned char *)o->at;

	add_hash(o->id);
	add_hash(o->n);
	for (size_t i = 0; i < o->n; i = next_byte(o, i))
		if (is_filler(o, i))
			add_hash(p[i]);
	for (unsigned k = 0; k < o->nrefs; k++) {
		uintptr_t w = ((uintptr_t *)p)[ref_word(o, k)];

		add_hash(o->ref[k].to ? o->ref[k].to->id : 0);
		add_hash(w ? w - o->ref[k].to->at : 0);
	}
}

static void check_everything(void)
{
	struct list live = reach_all();
	struct list held = {0};

	for (unsigned t = 0; t < program->threads; t++)
		forget_dead(&actors[t]);
	// The second one finds what the first has let go of.
	want(rt_gc(), "rt_gc");
	want(rt_gc(), "rt_gc");
	for (size_t i = 0; i < live.n; i++) {
		check_questions(node_in(&live, i));
		check_bytes(node_in(&live, i));
		check_refs(node_in(&live, i));
	}
	do_verify();
	want(rt_heap_walk(walk_all, &held), "rt_heap_walk");
	sort(&held, by_value);
	sort(&live, by_address);
	check_apart(&live);
	check_gone(&live, &held);
	sort(&live, by_id);
	for (size_t i = 0; i < live.n; i++)
		hash_object(node_in(&live, i));
	free(live.word);
	free(held.word);
}

static void give(const struct shadow_op *op)
{
	struct actor *from = &actors[op->thread % program->threads];
	struct actor *to = &actors[op->b % program->threads];

	set_root(to, op->c % SLOTS, from->root[op->a % SLOTS]);
}

// meet lets the first thread hand over the gifts of a part of the program, and
// check, while the others wait.
static void meet(const struct actor *a, size_t begin, size_t end)
{
	want(rt_blocking_enter(), "rt_blocking_enter");
	pthread_barrier_wait(&meeting);
	if (a->id == 0) {
		want(rt_blocking_leave(), "rt_blocking_leave");
		for (size_t i = begin; i < end; i++)
			if (program->op[i].kind == SHADOW_GIVE)
				give(&program->op[i]);
		check_everything();
		want(rt_blocking_enter(), "rt_blocking_enter");
	}
	pthread_barrier_wait(&meeting);
	want(rt_blocking_leave(), "rt_blocking_leave");
}

// ---- running ----

static void do_op(struct actor *a, const struct shadow_op *op)
{
	switch (op->kind) {
	case SHADOW_ALLOC:
		return do_alloc(a, op);
	case SHADOW_STORE:
		return do_store(a, op);
	case SHADOW_LOAD:
		return do_load(a, op);
	case SHADOW_COPY:
		return do_copy(a, op);
	case SHADOW_DROP:
		return set_root(a, op->a % SLOTS, (struct ref){0});
	case SHADOW_CLEAR:
		return do_clear(a);
	case SHADOW_CHECK:
		return check_slot(a, op->a % SLOTS);
	case SHADOW_GC:
		return want(rt_gc(), "rt_gc");
	case SHADOW_RELEASE:
		return want(rt_free_os_memory(), "rt_free_os_memory");
	case SHADOW_PERCENT:
		return do_percent(op);
	case SHADOW_STATS:
		return do_stats(op);
	case SHADOW_VERIFY:
		return do_verify();
	case SHADOW_WALK:
		return do_walk(op);
	case SHADOW_STOP:
		return do_stop();
	case SHADOW_STACK:
		return do_stack(a, op);
	case SHADOW_DETACH:
		return do_detach(op);
	case SHADOW_FORK:
		return do_fork(a);
	case SHADOW_REGION:
		return do_region(a);
	case SHADOW_SAFEPOINT:
		return rt_safepoint();
	case SHADOW_ROOTS:
		return do_roots(a);
	case SHADOW_REFUSED:
		return do_refused();
	case SHADOW_HANDLERS:
		return do_handlers();
	case SHADOW_LOSE:
		return do_lose(a);
	case SHADOW_SCRIBBLE:
		return do_scribble(a, op);
	case SHADOW_LEAK:
		*a->leak = a->slot[op->a % SLOTS];
		return;
	case SHADOW_GIVE: // when all meet
	case SHADOW_SYNC:
	case SHADOW_KINDS:
		return;
	}
}

static void *act(void *arg)
{
	struct actor *a = arg;
	size_t begin = 0;

	attach();
	for (size_t i = 0; i < program->nops; i++) {
		const struct shadow_op *op = &program->op[i];

		if (op->kind == SHADOW_SYNC) {
			meet(a, begin, i);
			begin = i;
		} else if (op->thread % program->threads == a->id) {
			do_op(a, op);
		}
	}
	meet(a, begin, program->nops);
	if (a->id != 0)
		want(rt_thread_detach(), "rt_thread_detach");
	return NULL;
}

static void actor_init(struct actor *a, unsigned id)
{
	a->id = id;
	a->slot = calloc(SLOTS + 1, sizeof *a->slot);
	if (!a->slot)
		fail("malloc");
	a->leak = a->slot + SLOTS;
	add_roots(a);
	want(rt_roots_add(a->leak, a->leak + 1, RT_ROOT_EXACT), "rt_roots_add");
}

void shadow_run(const struct shadow_program *p, rt_config config,
		struct shadow_result *r)
{
	pthread_t thread[SHADOW_THREADS];

	program = p;
	result = r;
	config.align8 = p->align8 != 0;
	guarded = config.guard_large != 0;
	rt_set_fatal_handler(on_fatal, NULL);
	want(rt_init(&config), "rt_init");
	for (unsigned t = 0; t < p->threads; t++)
		actor_init(&actors[t], t);
	want(rt_thread_detach(), "rt_thread_detach");
	pthread_barrier_init(&meeting, NULL, p->threads);
	for (unsigned t = 1; t < p->threads; t++)
		if (pthread_create(&thread[t], NULL, act, &actors[t]) != 0)
			fail("no thread");
	act(&actors[0]);
	// The others detach on their own, so only exiting is left for them.
	want(rt_blocking_enter(), "rt_blocking_enter");
	for (unsigned t = 1; t < p->threads; t++)
		pthread_join(thread[t], NULL);
	want(rt_blocking_leave(), "rt_blocking_leave");
	want(rt_fini(), "rt_fini");
	r->ok = true;
	_exit(0);
}

// ---- as a text ----

static const char *const names[SHADOW_KINDS] = {
    "alloc", "store",	 "load",      "copy",  "drop",	  "clear",
    "check", "give",	 "sync",      "gc",    "release", "percent",
    "stats", "verify",	 "walk",      "stop",  "stack",	  "detach",
    "fork",  "region",	 "safepoint", "roots", "refused", "handlers",
    "lose",  "scribble", "leak",
};

bool shadow_write(FILE *file, const struct shadow_program *p)
{
	fprintf(file, "threads %u align8 %u exact %u\n", p->threads, p->align8,
		p->exact);
	for (size_t i = 0; i < p->nops; i++) {
		const struct shadow_op *op = &p->op[i];

		fprintf(file, "%s %u %u %u %u %u\n", names[op->kind],
			op->thread, op->a, op->b, op->c, op->n);
	}
	return fflush(file) == 0 && !ferror(file);
}

// op_read reads one line; false: the end, or no operation.
static bool op_read(FILE *file, struct shadow_op *op)
{
	char name[16];

	if (fscanf(file, "%15s %u %u %u %u %u", name, &op->thread, &op->a,
		   &op->b, &op->c, &op->n) != 6)
		return false;
	op->kind = SHADOW_ALLOC;
	while (op->kind < SHADOW_KINDS && strcmp(name, names[op->kind]) != 0)
		op->kind++;
	return op->kind < SHADOW_KINDS;
}

bool shadow_read(FILE *file, struct shadow_program *p)
{
	struct shadow_op op;

	*p = (struct shadow_program){0};
	if (fscanf(file, "threads %u align8 %u exact %u", &p->threads,
		   &p->align8, &p->exact) != 3 ||
	    p->threads == 0 || p->threads > SHADOW_THREADS)
		return false;
	while (op_read(file, &op)) {
		struct shadow_op *grown =
		    realloc(p->op, (p->nops + 1) * sizeof op);

		if (!grown)
			return false;
		p->op = grown;
		p->op[p->nops++] = op;
	}
	return feof(file) != 0;
}
