// shadow_make.c - operations that make objects, and kinds for them.
#include "runtime/os/oscall.h"
#include "test/harness/constant.h"
#include "test/harness/shadow_actor.h"

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

// An object with a destructor has at least 16 bytes.
size_t shadow_counted_as(const struct shadow_layout *l, size_t n)
{
	return shadow_drops(l) && n != 0 && n <= 8 ? 16 : n;
}

void shadow_count_made(struct ledger *l, const struct shadow_made *made)
{
	size_t n = made->request != 0 ? made->request : made->n;

	if (made->kept)
		n = shadow_kept_as(n);
	if (made->paged)
		ledger_alloc_pages(l, n);
	else if (made->kind == RT_TYPED)
		ledger_alloc_kind(l, n,
				  shadow_is_narrow(made->kind, made->layout)
				      ? RT_KIND_ALIGN8_FIRST
				      : RT_KIND_FIRST);
	else if (made->kind >= RT_KIND_FIRST)
		ledger_alloc_kind(l, shadow_counted_as(made->layout, n),
				  made->kind);
	else
		ledger_alloc(l, n, made->kind == RT_NOSCAN);
}

struct shadow_node *shadow_enter(struct actor *a, unsigned slot,
				 struct shadow_made made)
{
	struct shadow_node *o;

	shadow_count_made(&a->ledger, &made);
	o = shadow_add(made);
	shadow_set_root(a, slot % run.nslots, (struct shadow_word){o, 0});
	return o;
}

struct shadow_node *shadow_take(struct actor *a, unsigned slot,
				struct shadow_made made)
{
	a->settled = false;
	if (!made.p) {
		SHADOW_TRUE(run.may_fail);
		shadow_follow(a);
		return NULL;
	}
	shadow_follow_flushes(a);
	shadow_follow(a);
	return shadow_enter(a, slot, made);
}

SHADOW_OP(alloc)
{
	unsigned way = op->b % WAYS;
	bool noscan = way % 2;
	size_t n = op->n == 0 ? 1 : op->n;
	void *p;

	a->asked = n;
	p = make(way, op->c, &n);
	shadow_take(
	    a, op->a,
	    (struct shadow_made){
		.owner = a->id,
		.p = p,
		.n = p ? all_of(p, n, noscan, op->c) : n,
		.kind = noscan ? RT_NOSCAN : RT_WORDS,
		.layout = &shadow_layouts[noscan ? 0 : SHADOW_PLAIN_WORDS],
		.uninit = way == UNINIT,
		.request = n,
	    });
}

// ---- kinds ----

static const size_t constant_sizes[] = {24, 17, 16, 64};

// make_constant allocates an object of one of two kinds, with constants as kind
// and size.
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

struct shadow_node *shadow_make_of(struct actor *a, const struct actor_kind *k,
				   const struct shadow_op *op)
{
	size_t n = op->n == 0 ? 1 : op->n;
	void *p;

	// Use the whole slot: elements end where the object does.
	if (op->b / 8 % 2 && n <= SHADOW_SMALL / 2)
		n = rt_good_size_of(k->number, n);
	a->asked = n;
	p = make_of(k->number, op->b, &n);
	return shadow_take(a, op->a,
			   (struct shadow_made){
			       .owner = a->id,
			       .p = p,
			       .n = n,
			       .kind = k->number,
			       .layout = k->layout,
			   });
}

SHADOW_OP(make)
{
	shadow_make_of(
	    a,
	    &run.actor[op->c / KINDS % run.program->actors].kind[op->c % KINDS],
	    op);
}

// flags_of returns flags number i for a kind, or only RT_KIND_BASE of them if
// the layout does not permit the others.  It returns 0 in a program without
// flags.
static uint32_t flags_of(const struct shadow_layout *l, unsigned i)
{
	uint32_t flags = shadow_flags(i % SHADOW_FLAGS);

	if (!(run.program->config & SHADOW_WITH_FLAGS))
		return 0;
	return shadow_flags_ok(l, flags) ? flags
					 : flags & (uint32_t)RT_KIND_BASE;
}

// refuse_flags requires that flags without an effect are refused.
static void refuse_flags(const struct actor_kind *k)
{
	for (unsigned i = 0; i < SHADOW_FLAGS; i++) {
		rt_kind_desc d =
		    shadow_describe(k->layout, k->number, shadow_flags(i));

		if (!shadow_flags_ok(k->layout, shadow_flags(i)))
			SHADOW_TRUE(rt_kind_register(&d) == RT_EINVAL);
	}
}

static void begin_kind(const struct actor_kind *k)
{
	rt_kind_desc d = shadow_describe(k->layout, k->number, k->flags);
	int number;

	refuse_flags(k);
	shadow_set_kind(k->number, k->layout, k->flags);

	// If the system refuses memory for the bits of dead objects, nothing
	// is registered.
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
		k->layout = &shadow_layouts[(run.program->config % 256 +
					     7 * a->id + 11 * i) %
					    SHADOW_LAYOUTS];
		k->flags = flags_of(k->layout, run.program->config % 256 +
						   5 * a->id + 3 * i);
		begin_kind(k);
	}
}

void shadow_begin_owners(void)
{
	const struct actor_kind k = {SHADOW_OWNERS_KIND,
				     &shadow_layouts[SHADOW_OWNERS], 0};

	begin_kind(&k);
}

// A kind ends if the copy has no object of it.  If stacks are roots, the heap
// may still have one.  So whether the kind can end must not change what the
// program does.
void shadow_change_kind(struct actor *a, const struct shadow_op *op)
{
	struct actor_kind *k = &a->kind[op->a % KINDS];
	bool any;
	int error;

	shadow_end_dead();
	shadow_follow(a);
	any = shadow_count_kind(k->number) != 0;
	error = rt_kind_unregister(k->number);
	shadow_flushed();
	if (any)
		SHADOW_TRUE(error == RT_EBUSY);
	if (error == RT_EBUSY && (any || !run.program->exact))
		return;
	SHADOW_OK(error);
	if (rt_alloc_of(k->number, 24) || rt_alloc_kind(k->number, 40000) ||
	    rt_kind_unregister(k->number) != RT_ENOENT)
		shadow_fail("a kind that has ended is used");
	if (run.program->exact) {
		k->layout = &shadow_layouts[op->b % SHADOW_LAYOUTS];
		k->flags = flags_of(k->layout, op->b / SHADOW_LAYOUTS);
	}
	begin_kind(k);
}

SHADOW_OP(kind)
{
	if (run.wild)
		shadow_change_kind(a, op);
}

// end_brief ends the kind that the actor made for a moment.  Its object is
// garbage, but a stack may hold it.
static void end_brief(struct actor *a)
{
	int error;

	shadow_gc();
	// Another actor may be running destructors, including the destructor of
	// this object.
	while ((error = rt_kind_unregister(a->brief)) == RT_EBUSY &&
	       run.program->exact && !run.alone) {
		oscall_yield();
		shadow_gc();
	}
	shadow_flushed();
	if (error == RT_EBUSY && !run.program->exact)
		return;
	SHADOW_OK(error);
	a->brief = 0;
}

SHADOW_OP(brief)
{
	static const int numbers[] = {RT_KIND_ANY, RT_KIND_ANY_ALIGN8};
	const struct shadow_layout *l = &shadow_layouts[op->b % SHADOW_LAYOUTS];
	rt_kind_desc d = shadow_describe(l, numbers[op->a % 2],
					 flags_of(l, op->b / SHADOW_LAYOUTS));
	size_t n = op->n == 0 ? 1 : op->n;

	// The ledgers of other actors would miss the flush.
	if (run.program->driver == SHADOW_ORACLE && !run.alone)
		return;
	if (a->brief == 0) {
		int kind = rt_kind_register(&d);

		if (kind == RT_ENOMEM)
			return; // other actors have all numbers
		SHADOW_TRUE(kind >= RT_KIND_FIRST && kind <= RT_KIND_MAX);
		a->brief = kind;
		a->asked = n;
		SHADOW_TRUE(rt_alloc_kind(kind, n));
		shadow_follow_flushes(a);
		ledger_alloc_kind(&a->ledger, shadow_counted_as(l, n), kind);
	}
	end_brief(a);
}
