// shadow_ops.c - what each operation of a program does.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/os/epoch.h"
#include "runtime/os/oscall.h"
#include "runtime/spans/mcache.h"
#include "runtime/spans/object.h"
#include "test/harness/constant.h"
#include "test/harness/fault.h"
#include "test/harness/shadow_actor.h"

enum {
	CHILD_SECONDS = 60, // a child that takes longer hangs
	JUNK = 48,	    // words on a stack
};

#define NOTHING ((struct shadow_word){0})

#define OP(name)                                                               \
	static void do_##name(struct actor *a __attribute__((unused)),         \
			      const struct shadow_op *op                       \
			      __attribute__((unused)))

bool shadow_done(int error, const char *what)
{
	if (error == RT_ENOMEM && run.may_fail)
		return false;
	shadow_want(error, what);
	return true;
}
#define DONE(call) shadow_done(call, #call)

// ---- collections and flushes ----

// A flush of all caches ends the tiny block of each.  With more than one actor
// it may be done only in the caller's own stop, or the ledgers would miss it.
static void flushed(void)
{
	atomic_u64_add_relaxed(&run.flushes, 1);
}

// look forgets the tiny block if caches were flushed since the last look.
static void look(struct actor *a)
{
	uint64_t now = atomic_u64_load_relaxed(&run.flushes) + epoch_sweepgen();

	if (now != a->epoch)
		ledger_flushed(&a->ledger);
	a->epoch = now;
}

static uintptr_t *range_word(struct actor *a, unsigned i, unsigned k)
{
	return &a->range[i % RANGES][k % RANGE_WORDS];
}

static void reach_range(struct actor *a, unsigned i)
{
	bool exact = a->times[i][RT_ROOT_WORDS] == 0;

	if (exact && a->times[i][RT_ROOT_EXACT] == 0)
		return;
	for (unsigned k = 0; k < RANGE_WORDS; k++)
		shadow_reach((struct shadow_word){NULL, a->range[i][k]}, exact);
}

// reach_all does in the copy what a collection does.
static void reach_all(void)
{
	for (unsigned t = 0; t < run.program->actors; t++) {
		struct actor *a = &run.actor[t];

		for (unsigned i = 0; i < run.nslots; i++)
			shadow_reach(a->root[i], false);
		for (unsigned i = 0; run.wild && i < RANGES; i++)
			reach_range(a, i);
	}
	shadow_collect();
}

// follow makes the copy forget what collections have freed, if there were any.
// What a word keeps that is not a reference depends on what was there.  The
// live reader changes nothing, so allocation continues as without it.
static void follow(struct actor *a)
{
	rt_memstats m;

	if (!run.wild)
		return;
	SHADOW_OK(rt_read_memstats_live(&m));
	if (m.num_gc != a->num_gc)
		reach_all();
	a->num_gc = m.num_gc;
}

static void judge(void)
{
	flushed();
	run.result->hash =
	    run.result->hash * 31 + shadow_judge(run.program->exact);
}

// counted_as returns a size that counts like n bytes of a layout: an object
// with a destructor has at least 16.
static size_t counted_as(const struct shadow_layout *l, size_t n)
{
	return shadow_drops(l) && n != 0 && n <= 8 ? 16 : n;
}

// end_dead leaves nothing that is dead, nor what only that has kept.  The actor
// must be alone, or all others must wait: they would make more.
static void end_dead(void)
{
	while (rt_run_finalizers(0) != 0)
		SHADOW_OK(rt_gc());
}

// drop_dead does so as far as the actor can.  Another may be running
// destructors just now.
static void drop_dead(void)
{
	if (run.alone)
		end_dead();
	else
		rt_run_finalizers(0);
}

static void collect(void)
{
	SHADOW_OK(rt_gc());
	drop_dead();
}

void shadow_check_all(void)
{
	reach_all();
	// The second one finds what the first has released.
	for (unsigned i = 0; i < 2; i++) {
		SHADOW_OK(rt_gc());
		end_dead();
	}
	judge();
}

// collected: a collection just ended, so exactly what is reached is there.
static void collected(struct actor *a)
{
	uint64_t before = a->num_gc;

	if (!run.wild)
		return;
	follow(a);
	SHADOW_TRUE(a->num_gc > before);
	judge();
	a->settled = true;
}

OP(gc)
{
	collect();
	collected(a);
}

OP(release)
{
	SHADOW_OK(rt_free_os_memory());
	drop_dead();
	collected(a);
}

OP(percent)
{
	static const int percents[] = {-1, 0, 1, 20, 100, 1000};
	unsigned i = op->b % (RT_ARRAY_LEN(percents) + 2);
	int old;

	SHADOW_OK(rt_set_gc_percent(
	    i < RT_ARRAY_LEN(percents) ? percents[i] : (int)(op->n % 400),
	    &old));
	if (!run.wild)
		SHADOW_OK(rt_set_gc_percent(old, NULL));
}

// ---- making objects ----

enum { WAYS = 10, UNINIT = 9 }; // odd ones have no pointers

static void *make(unsigned way, unsigned which, size_t *n)
{
	bool noscan = way % 2;

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
	case 7:
		return rt_alloc_kind(noscan ? RT_NOSCAN : RT_WORDS, *n);
	case 8:
		return (rt_alloc)(*n);
	default:
		return rt_alloc_noscan_uninit(*n);
	}
}

void shadow_set_root(struct actor *a, unsigned i, struct shadow_word w)
{
	a->root[i] = w;
	a->slot[i] = shadow_value(w);
}

// all_of returns how many bytes of a new object the program uses, which are n
// in most cases.  For an odd c a fuzzer's program uses all of them, if the
// object is neither large nor perhaps combined.
static size_t all_of(const void *p, size_t n, bool noscan, unsigned c)
{
	if (!run.wild || c % 2 == 0 || n > SHADOW_SMALL || (noscan && n <= 16))
		return n;
	return rt_size(p);
}

OP(alloc)
{
	unsigned way = op->b % WAYS;
	bool noscan = way % 2;
	size_t n = op->n == 0 ? 1 : op->n;
	struct shadow_node *o;
	void *p;

	a->asked = n;
	a->settled = false;
	p = make(way, op->c, &n);
	if (!p) {
		SHADOW_TRUE(run.may_fail);
		follow(a);
		return;
	}
	look(a);
	ledger_alloc(&a->ledger, n, noscan);
	follow(a);
	o = shadow_add((struct shadow_made){
	    .owner = a->id,
	    .p = p,
	    .n = all_of(p, n, noscan, op->c),
	    .kind = noscan ? RT_NOSCAN : RT_WORDS,
	    .layout = &shadow_layouts[noscan ? 0 : SHADOW_PLAIN_WORDS],
	    .uninit = way == UNINIT,
	});
	shadow_set_root(a, op->a % run.nslots, (struct shadow_word){o, 0});
}

// ---- kinds ----

static const size_t constant_sizes[] = {24, 17, 16, 64};

// make_constant allocates of one of two kinds, by constant numbers.
static void *make_constant(int kind, unsigned which, size_t *n)
{
	*n = constant_sizes[which % RT_ARRAY_LEN(constant_sizes)];
	switch (which % RT_ARRAY_LEN(constant_sizes)) {
	case 0:
		return kind == RT_KIND_FIRST ? rt_alloc_of(RT_KIND_FIRST, 24)
					     : rt_alloc_of(16, 24);
	case 1:
		return kind == RT_KIND_FIRST ? rt_alloc_of(RT_KIND_FIRST, 17)
					     : rt_alloc_of(16, 17);
	case 2:
		return kind == RT_KIND_FIRST ? rt_alloc_of(RT_KIND_FIRST, 16)
					     : rt_alloc_of(16, 16);
	default:
		return kind == RT_KIND_FIRST ? rt_alloc_of(RT_KIND_FIRST, 64)
					     : rt_alloc_of(16, 64);
	}
}

static void *make_of(int kind, unsigned way, size_t *n)
{
	switch (way % 8) {
	case 0:
		return rt_alloc_kind(kind, *n);
	case 1:
		return (rt_alloc_of)(kind, *n);
	case 2:
		return rt_alloc_kind_in(rt_thread_self(), kind, *n);
	case 3:
		return (rt_alloc_kind_in)(rt_thread_self(), kind, *n);
	case 4:
		if (kind == RT_KIND_FIRST || kind == RT_KIND_ALIGN8_FIRST)
			return make_constant(kind, way / 8, n);
		return rt_alloc_of(kind, *n);
	default:
		return rt_alloc_of(kind, *n);
	}
}

OP(make)
{
	const struct actor_kind *k =
	    &run.actor[op->c / KINDS % run.program->actors].kind[op->c % KINDS];
	size_t n = op->n == 0 ? 1 : op->n;
	struct shadow_node *o;
	void *p;

	// All of a slot: elements end where the object does.
	if (op->b / 8 % 2 && n <= SHADOW_SMALL / 2)
		n = rt_good_size_of(k->number, n);
	a->asked = n;
	a->settled = false;
	p = make_of(k->number, op->b, &n);
	if (!p) {
		SHADOW_TRUE(run.may_fail);
		follow(a);
		return;
	}
	look(a);
	ledger_alloc_kind(&a->ledger, counted_as(k->layout, n), k->number);
	follow(a);
	o = shadow_add((struct shadow_made){
	    .owner = a->id,
	    .p = p,
	    .n = n,
	    .kind = k->number,
	    .layout = k->layout,
	});
	shadow_set_root(a, op->a % run.nslots, (struct shadow_word){o, 0});
}

static void begin_kind(const struct actor_kind *k)
{
	rt_kind_desc d = shadow_describe(k->layout, k->number);
	int number;

	// A refusal of the bits of dead objects leaves nothing behind.
	do
		number = rt_kind_register(&d);
	while (number == RT_ENOMEM && run.may_fail);
	SHADOW_TRUE(number == k->number);
	SHADOW_TRUE(rt_kind_register(&d) == RT_EEXIST);
}

void shadow_begin_kinds(struct actor *a)
{
	static const int first[KINDS] = {RT_KIND_FIRST, RT_KIND_ALIGN8_FIRST};

	for (unsigned i = 0; i < KINDS; i++) {
		struct actor_kind *k = &a->kind[i];

		k->number = first[i] + (int)a->id;
		k->layout =
		    &shadow_layouts[(run.program->config + 7 * a->id + 11 * i) %
				    SHADOW_LAYOUTS];
		begin_kind(k);
	}
}

// A kind ends if the copy has no object of it.  If stacks are roots, the heap
// may still have one, but no answer may change what the program does.
void shadow_change_kind(struct actor *a, const struct shadow_op *op)
{
	struct actor_kind *k = &a->kind[op->a % KINDS];
	bool any;
	int error;

	end_dead();
	follow(a);
	any = shadow_count_kind(k->number) != 0;
	error = rt_kind_unregister(k->number);
	flushed();
	if (any)
		SHADOW_TRUE(error == RT_EBUSY);
	if (error == RT_EBUSY && (any || !run.program->exact))
		return;
	SHADOW_OK(error);
	if (rt_alloc_of(k->number, 24) || rt_alloc_kind(k->number, 40000) ||
	    rt_kind_unregister(k->number) != RT_ENOENT)
		shadow_fail("a kind that has ended is used");
	if (run.program->exact)
		k->layout = &shadow_layouts[op->b % SHADOW_LAYOUTS];
	begin_kind(k);
}

OP(kind)
{
	if (run.wild)
		shadow_change_kind(a, op);
}

// end_brief ends the kind that the actor made for a moment.  Its object is
// garbage, but a stack may hold it.
static void end_brief(struct actor *a)
{
	int error;

	collect();
	// Another actor may be running destructors, and this object's too.
	while ((error = rt_kind_unregister(a->brief)) == RT_EBUSY &&
	       run.program->exact && !run.alone) {
		oscall_yield();
		collect();
	}
	flushed();
	if (error == RT_EBUSY && !run.program->exact)
		return;
	SHADOW_OK(error);
	a->brief = 0;
}

OP(brief)
{
	static const int numbers[] = {RT_KIND_ANY, RT_KIND_ANY_ALIGN8};
	rt_kind_desc d = shadow_describe(
	    &shadow_layouts[op->b % SHADOW_LAYOUTS], numbers[op->a % 2]);
	size_t n = op->n == 0 ? 1 : op->n;

	// The ledgers of others would miss the flush.
	if (run.program->driver == SHADOW_ORACLE && !run.alone)
		return;
	if (a->brief == 0) {
		int kind = rt_kind_register(&d);

		if (kind == RT_ENOMEM)
			return; // others have them all
		SHADOW_TRUE(kind >= RT_KIND_FIRST && kind <= RT_KIND_MAX);
		a->brief = kind;
		a->asked = n;
		SHADOW_TRUE(rt_alloc_kind(kind, n));
		look(a);
		ledger_alloc_kind(
		    &a->ledger,
		    counted_as(&shadow_layouts[op->b % SHADOW_LAYOUTS], n),
		    kind);
	}
	end_brief(a);
}

// ---- references ----

// own returns the object in a slot if the actor may look at its words.
static struct shadow_node *own(const struct actor *a, unsigned slot)
{
	struct shadow_node *o = a->root[slot % run.nslots].to;

	return o && o->owner == a->id && o->nwords != 0 ? o : NULL;
}

OP(store)
{
	struct shadow_node *o = own(a, op->a);

	if (o)
		shadow_set(o, op->b % o->nwords, a->root[op->c % run.nslots]);
}

OP(load)
{
	const struct shadow_node *o = own(a, op->c);
	unsigned k;

	if (!o)
		return;
	k = op->b % o->nwords;
	// A number that is not scanned may be any address.
	if (!shadow_refers(o, k) && !run.wild)
		return;
	if (*shadow_at(o, k) != shadow_held(o, k))
		shadow_fail("object %#lx: loaded another word", (long)o->id);
	shadow_set_root(a, op->a % run.nslots, o->word[k]);
}

OP(copy)
{
	struct shadow_word w = a->root[op->c % run.nslots];

	if (w.to)
		w.value = op->n % w.to->n;
	shadow_set_root(a, op->a % run.nslots, w);
}

OP(drop)
{
	shadow_set_root(a, op->a % run.nslots, NOTHING);
}

OP(clear)
{
	unsigned from = op->a % run.nslots, end = run.nslots;

	if (op->b % 2 == 0)
		end = from + op->b % (end - from);
	for (unsigned i = from; i < end; i++)
		shadow_set_root(a, i, NOTHING);
}

static void check_slot(const struct actor *a, unsigned slot)
{
	struct shadow_word w = a->root[slot];

	if (a->slot[slot] != shadow_value(w))
		shadow_fail("a root has changed");
	if (!w.to)
		return;
	shadow_check(w.to);
	if (w.to->owner == a->id)
		shadow_check_words(w.to);
}

OP(check)
{
	check_slot(a, op->a % run.nslots);
}

OP(put)
{
	*range_word(a, op->a, op->b) = a->slot[op->c % run.nslots];
}

// wild_word returns a word that may be a pointer to any object, dead or alive.
static uintptr_t wild_word(const struct shadow_op *op)
{
	unsigned count = shadow_count();
	const struct shadow_node *o =
	    count > 0 ? shadow_nth(op->c / 8 % count) : NULL;
	uint64_t n = op->n;

	if (op->c % 8 == 0)
		n <<= op->b % 4 * 8;
	return shadow_wild(op->c % 8, o, n);
}

OP(wild)
{
	struct shadow_word w = {NULL, wild_word(op)};
	unsigned count = shadow_count();
	struct shadow_node *o =
	    count > 0 ? shadow_nth((op->a / 4 + op->b) % count) : NULL;

	if (op->a % 4 == 0)
		*range_word(a, op->a / 4, op->b) = w.value;
	else if (op->a % 4 == 1)
		shadow_set_root(a, op->a / 4 % run.nslots, w);
	else if (o && o->nwords != 0)
		shadow_set(o, op->b % o->nwords, w);
}

// A word of a stack that equals the end of an object keeps it.
static void reach_junk(uintptr_t p)
{
	struct shadow_node *o = shadow_find(p - 1);

	shadow_reach((struct shadow_word){NULL, p}, false);
	if (run.past_end && o && o->base + o->size == p)
		shadow_reach((struct shadow_word){o, 0}, false);
}

OP(junk)
{
	uintptr_t junk[JUNK];

	for (unsigned i = 0; i < JUNK; i++) {
		struct shadow_op next = *op;

		next.c += 5 * i;
		next.n += op->n / 256 * i;
		junk[i] = wild_word(&next);
	}
	__asm__ volatile("" : : "r"(junk) : "memory");
	collect();
	__asm__ volatile("" : : "r"(junk) : "memory");
	for (unsigned i = 0; !run.program->exact && i < JUNK; i++)
		reach_junk(junk[i]);
	collected(a);
}

// A cache may have slots that are allocated and not yet handed out.
static void ask(const struct actor *a, uintptr_t w)
{
	const struct shadow_node *want = shadow_find(w);
	const void *p = (const void *)w;
	struct object o = {0};
	bool found = object_find(w, &o);

	if (a->settled && run.program->exact)
		SHADOW_TRUE(found == (want != NULL));
	SHADOW_TRUE(rt_is_heap(p) == found && rt_size(p) == o.size &&
		    (uintptr_t)rt_base(p) == o.base);
	if (!want)
		return;
	SHADOW_TRUE(o.base == want->base && o.request == want->size);
	SHADOW_TRUE((int)o.kind == want->kind);
	SHADOW_TRUE(o.size == (want->size > SHADOW_SMALL
				   ? base_pages(want->size) << RT_PAGE_SHIFT
				   : want->size));
}

OP(ask)
{
	uintptr_t w = wild_word(op);

	ask(a, w);
	ask(a, w - 1);
	ask(a, w & ~(uintptr_t)(RT_PAGE_SIZE - 1));
}

// ---- asking ----

OP(stats)
{
	uint64_t history[RT_GCSTATS_WORDS];
	rt_metric_sample sample = {.name = "/gc/heap/live:bytes"};
	rt_metric_desc desc;
	rt_memstats m;
	size_t used;

	SHADOW_OK(rt_metrics_read(&sample, 1));
	SHADOW_TRUE(sample.kind == RT_METRIC_U64);
	SHADOW_OK(rt_read_memstats_live(&m));
	shadow_sums(&m);
	SHADOW_OK(rt_read_gcstats(history, RT_GCSTATS_WORDS, &used));
	SHADOW_OK(rt_metrics_describe(op->n % rt_metrics_count(), &desc));
	sample.name = desc.name;
	SHADOW_OK(rt_metrics_read(&sample, 1));
	if (run.wild && op->n / 256 % 2)
		return; // allocation continues as without it
	SHADOW_OK(rt_read_memstats(&m));
	shadow_sums(&m);
	flushed();
}

OP(verify)
{
	struct rt_verify v;

	SHADOW_OK(rt_heap_verify(&v));
	if (v.errors != 0)
		shadow_fail("rt_heap_verify: %s", v.first);
	if (run.alone)
		shadow_healthy();
	flushed();
}

static int walk_one(void *obj, size_t size, int kind, void *arg)
{
	uint64_t *left = arg;

	if (rt_size(obj) != size || rt_base(obj) != obj ||
	    rt_kind_of(obj) != kind || rt_good_size_of(kind, 1) == 0)
		shadow_fail("walk: %p of %zu bytes", obj, size);
	return --*left == 0 ? RT_WALK_STOP : 0;
}

OP(walk)
{
	uint64_t left = 1 + op->n % 4096;

	SHADOW_OK(rt_heap_walk(walk_one, &left));
	flushed();
}

OP(stop)
{
	uint64_t left = UINT64_MAX, walked, all;

	SHADOW_OK(rt_stop_the_world(RT_STOP_HOST + (int)(op->b % 256)));
	if (!rt_world_stopped() || rt_alloc(32) || rt_gc() != RT_EBUSY)
		shadow_fail("something goes on in the own stop");
	SHADOW_OK(rt_heap_walk(walk_one, &left));
	// Dead objects are counted, but not shown.
	walked = UINT64_MAX - left;
	all = shadow_healthy();
	SHADOW_TRUE(walked == all ||
		    (walked < all && gauge_load(&gauges.heap_dead) != 0));
	flushed();
	SHADOW_OK(rt_start_the_world(NULL));
}

// sum_ledgers adds up what all actors asked for.  Between an allocation and its
// count an actor does not poll, so whenever it is stopped its ledger is right.
// The exception is a large object that the actor is still clearing, which is
// counted already.
static void sum_ledgers(struct ledger *sum)
{
	ledger_init(sum, run.program->align8);
	for (unsigned t = 0; t < run.program->actors; t++) {
		const struct actor *a = &run.actor[t];

		ledger_add(sum, &a->ledger);
		if (a->self && a->self->mc->setting_up)
			ledger_alloc(sum, a->asked, false);
	}
}

// The ledgers count if they saw every flush.  For a heap with guards they would
// have to know which objects got one.
void shadow_compare(void)
{
	struct comparison *c = &run.result->compared;
	struct ledger sum;
	rt_memstats m;

	SHADOW_OK(rt_stop_the_world(RT_STOP_HOST + 3));
	flushed();
	SHADOW_OK(rt_read_memstats(&m));
	recount_compare(&m, c);
	sum_ledgers(&sum);
	if (!run.guarded && (run.alone || run.program->driver == SHADOW_ORACLE))
		ledger_compare(&sum, &m, c);
	run.result->reads++;
	if (c->differing != 0)
		shadow_fail("%s", c->first);
	SHADOW_OK(rt_start_the_world(NULL));
}

OP(compare)
{
	shadow_compare();
}

// ---- stacks ----

static void stack_free(struct actor *a, unsigned i)
{
	unsigned char *p = a->stack[i];
	size_t n = a->stack_size[i];

	for (size_t k = 0; k < n; k++)
		if (p[k] != (unsigned char)(i + 0x71))
			shadow_fail("stack %u: byte %zu is %#x", i, k, p[k]);
	SHADOW_TRUE(rt_stack_free(p + 8, n) == RT_EINVAL);
	SHADOW_TRUE(rt_stack_free(p, 2 * n) == RT_EINVAL);
	SHADOW_OK(rt_stack_free(p, n));
	a->stack[i] = NULL;
}

void shadow_free_stacks(struct actor *a)
{
	for (unsigned i = 0; i < STACKS; i++)
		if (a->stack[i])
			stack_free(a, i);
}

OP(stack)
{
	unsigned i = op->a % STACKS;
	size_t n = (size_t)2048 << op->c % STACK_SIZES;
	unsigned char *p;

	if (a->stack[i]) {
		stack_free(a, i);
		return;
	}
	p = rt_stack_alloc(n);
	a->stack[i] = p;
	a->stack_size[i] = n;
	SHADOW_TRUE(p || run.may_fail);
	if (!p)
		return;
	SHADOW_TRUE((uintptr_t)p % base_min(n, RT_PAGE_SIZE) == 0);
	SHADOW_TRUE(!rt_is_heap(p));
	memset(p, (int)(i + 0x71), n);
}

// ---- frames ----

// take_base returns the object that a slot leads to, or NULL, and empties the
// slot, though not for the copy.
static void *take_base(struct actor *a, unsigned i)
{
	const struct shadow_node *o = a->root[i].to;

	a->slot[i] = 0;
	return o ? (void *)o->at : NULL;
}

static void put_back(struct actor *a, unsigned i, const void *base)
{
	SHADOW_TRUE(!base || rt_is_heap(base));
	a->slot[i] = shadow_value(a->root[i]);
}

OP(frame)
{
	unsigned i = op->a % run.nslots, k = (i + 1) % run.nslots;
	void *first = take_base(a, i), *second = NULL;
	RT_FRAME(&first, &second);

	second = take_base(a, k);
	collect();
	put_back(a, i, first);
	put_back(a, k, second);
}

// ---- stretches without collection, and lists ----

OP(nogc)
{
	unsigned i = (op->a + 1) % run.nslots;
	uintptr_t hidden;

	SHADOW_OK(rt_nogc_enter());
	hidden = ~(uintptr_t)take_base(a, i);
	SHADOW_TRUE(rt_gc() == RT_ESTATE);
	do_alloc(a, op);
	rt_safepoint();
	SHADOW_TRUE(rt_blocking_enter() == RT_ESTATE);
	put_back(a, i, (void *)~hidden);
	SHADOW_OK(rt_nogc_leave());
}

OP(list)
{
	void **l;
	size_t n;

	// The ledgers of others would miss the flush.
	if (!run.alone || !run.program->exact)
		return;
	shadow_check_all();
	a->settled = false;
	l = rt_heap_list(RT_WORDS, NULL, NULL, &n);
	SHADOW_TRUE(l);
	look(a);
	ledger_alloc(&a->ledger, rt_size(l), false);
	SHADOW_TRUE(n == shadow_count_kind(RT_WORDS));
	for (size_t i = 0; i < n; i++)
		SHADOW_TRUE(shadow_find((uintptr_t)l[i]) != NULL);
	flushed();
}

// ---- the thread ----

void shadow_attach(struct actor *a, bool bounds)
{
	int flags = run.program->exact ? RT_THREAD_EXACT : 0;
	uintptr_t lo, hi;

	if (bounds && oscall_stack_bounds(&lo, &hi) != 0)
		shadow_fail("a stack without bounds");
	while (!(
	    bounds ? DONE(rt_thread_attach_stack((void *)lo, (void *)hi, flags))
		   : DONE(rt_thread_attach(flags))))
		;
	a->self = rt_thread_self();
	ledger_flushed(&a->ledger);
}

void shadow_detach(struct actor *a)
{
	a->self = NULL;
	SHADOW_OK(rt_thread_detach());
}

OP(detach)
{
	shadow_detach(a);
	SHADOW_TRUE(!rt_alloc(64) && rt_gc() == RT_EPERM);
	shadow_attach(a, op->a % 2);
}

static void *in_region(void *arg)
{
	rt_memstats m;

	SHADOW_TRUE(!rt_alloc(16) && rt_gc() == RT_ESTATE);
	SHADOW_OK(rt_read_memstats_live(&m));
	shadow_sums(&m);
	if (run.alone) {
		SHADOW_OK(rt_read_memstats(&m));
		shadow_sums(&m);
		flushed();
	}
	return arg;
}

OP(region)
{
	SHADOW_TRUE(rt_call_blocking(in_region, a) == a);
	SHADOW_OK(rt_blocking_enter());
	in_region(a);
	SHADOW_OK(rt_blocking_leave());
}

OP(safepoint)
{
	rt_safepoint();
}

// ---- roots ----

void shadow_add_range(uintptr_t *w, size_t n, int flags)
{
	while (!DONE(rt_roots_add(w, w + n, flags)))
		;
}

// Slots hold addresses inside objects as well.
void shadow_add_roots(struct actor *a)
{
	shadow_add_range(a->slot, SLOTS / 2, RT_ROOT_WORDS);
	shadow_add_range(a->slot + SLOTS / 2, SLOTS / 2, RT_ROOT_WORDS);
}

static void remove_roots(struct actor *a)
{
	uintptr_t *half = a->slot + SLOTS / 2;

	SHADOW_OK(rt_roots_remove(a->slot, half));
	SHADOW_OK(rt_roots_remove(half, half + SLOTS / 2));
}

OP(roots)
{
	shadow_add_roots(a);
	remove_roots(a);
	SHADOW_TRUE(rt_roots_remove(a->slot, a->slot + 1) == RT_ENOENT);
}

OP(add)
{
	unsigned i = op->a % RANGES, flags = op->b % 2;
	uintptr_t *w = a->range[i];

	if (a->times[i][flags] < RANGE_TIMES &&
	    DONE(rt_roots_add(w, w + RANGE_WORDS, (int)flags)))
		a->times[i][flags]++;
}

OP(remove)
{
	unsigned i = op->a % RANGES;
	unsigned flags =
	    a->times[i][RT_ROOT_EXACT] > 0 ? RT_ROOT_EXACT : RT_ROOT_WORDS;
	int want = a->times[i][flags] > 0 ? RT_OK : RT_ENOENT;
	uintptr_t *w = a->range[i];

	SHADOW_TRUE(rt_roots_remove(w, w + RANGE_WORDS) == want);
	if (want == RT_OK)
		a->times[i][flags]--;
}

// ---- refusals ----

OP(refused)
{
	const void *none = rt_alloc(0);
	size_t n = (size_t)op->n << (op->b % 4 * 8);

	if (rt_alloc(SIZE_MAX) || rt_alloc_noscan((size_t)1 << 50) ||
	    rt_alloc_kind((int)(24 + op->c % 256), 32) ||
	    rt_alloc_kind(2, 32) || rt_stack_alloc(3000))
		shadow_fail("a request that cannot be met was met");
	if (run.wild)
		SHADOW_TRUE(!rt_alloc(n < MAX_HEAP ? n + MAX_HEAP + 1 : n));
	if (!none || rt_is_heap(none) || rt_alloc_noscan(0) != none)
		shadow_fail("an object of no bytes");
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
	if (!run.may_fail && !strstr(text, "wait for their destructors"))
		shadow_fail("warning: %s", text);
}

OP(handlers)
{
	SHADOW_OK(rt_set_oom_handler(no_memory, NULL));
	SHADOW_OK(rt_set_warn_handler(on_warning, NULL));
	SHADOW_OK(rt_set_fatal_handler(shadow_on_fatal, NULL));
	SHADOW_OK(rt_set_memstats_double_check(RT_CHECK_REPORT));
	do_refused(a, op);
	SHADOW_OK(rt_set_memstats_double_check(RT_CHECK_FATAL));
}

// Three sorts are left out: those about threads and waiting, for which one actor
// has no use; those made once in a process; and munmap, whose failure is a leak.
static const enum oscall calls[] = {
    OSCALL_RESERVE,  OSCALL_COMMIT, OSCALL_UNCOMMIT, OSCALL_MAP,
    OSCALL_RELEASE,  OSCALL_ADVISE, OSCALL_NAME,     OSCALL_CLOCK,
    OSCALL_AFFINITY, OSCALL_RLIMIT, OSCALL_PAGESIZE, OSCALL_MAPPED,
};

// NULL in a program that links what ships; see test/harness/fault.h.
void fault_fail(enum oscall call, uint64_t nth, uint64_t ncalls, int error)
    __attribute__((weak));

void shadow_fault(const struct shadow_op *op)
{
	if (!fault_fail)
		shadow_fail("this program cannot make the system refuse calls");
	fault_fail(calls[op->a % RT_ARRAY_LEN(calls)], 1 + op->b % 256,
		   1 + op->c % 64, ENOMEM);
}

void shadow_no_faults(void)
{
	if (!fault_fail)
		return;
	for (unsigned i = 0; i < RT_ARRAY_LEN(calls); i++)
		fault_fail(calls[i], 1, 0, 0);
}

OP(fault)
{
	shadow_fault(op);
}

// ---- forks ----

// in_child: the others are gone in the middle of what they did, so only what
// the actor holds is compared.
static RT_NORETURN void in_child(struct actor *a)
{
	alarm(CHILD_SECONDS);
	SHADOW_OK(rt_blocking_leave());
	SHADOW_OK(rt_gc());
	run.alone = false;
	do_verify(a, NULL);
	for (unsigned slot = 0; slot < run.nslots; slot++)
		check_slot(a, slot);
	_exit(0);
}

// Some C libraries permit only one attached thread at a time to fork, unless
// the others are in regions (rt/fork.h).
static void *fork_in_region(void *arg)
{
	pid_t child = fork();
	int status;

	if (child == 0)
		in_child(arg);
	if (child < 0 || waitpid(child, &status, 0) != child)
		shadow_fail("no child");
	if (status != 0 && shadow_why && shadow_why[0] != '\0')
		_exit(1); // it has said why
	if (status != 0)
		shadow_fail("a child ended with %#x", (unsigned)status);
	return arg;
}

// A sanitizer can make no thread in a child, and keeps locks of its own there.
OP(fork)
{
	if (!RT_ASAN && !RT_TSAN)
		rt_call_blocking(fork_in_region, a);
}

// ---- errors that must be found ----

OP(lose)
{
	remove_roots(a);
	SHADOW_OK(rt_gc());
	shadow_add_roots(a);
}

OP(scribble)
{
	const struct shadow_node *o = a->root[op->a % run.nslots].to;

	if (o)
		((unsigned char *)o->at)[0] ^= 0x80;
}

OP(leak)
{
	a->leak = a->slot[op->a % run.nslots];
}

// Done when all meet.
OP(give)
{
}

OP(sync)
{
}

void shadow_do(struct actor *a, const struct shadow_op *op)
{
	static void (*const does[SHADOW_KINDS])(struct actor *,
						const struct shadow_op *) = {
#define X(name, ...) do_##name,
	    SHADOW_OPS(X)
#undef X
	};

	does[op->kind](a, op);
	follow(a);
}
