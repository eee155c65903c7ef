// shadow_free.c - operations that end objects before a collection does.
#include <stdlib.h>
#include <string.h>

#include "test/harness/shadow_actor.h"

// sole returns the object in a slot if nothing else has ever referred to it, so
// that the actor may free it.
static struct shadow_node *sole(struct actor *a, unsigned slot)
{
	struct shadow_node *o = a->root[slot].to;

	a->idle = !o || o->owner != a->id || o->shared;
	return a->idle ? NULL : o;
}

// ---- by hand ----

// forget_freed forgets an object that was freed.  But rt_free leaves the
// smallest objects to the collector, and a word that is no reference may keep
// one of them.  So in a program with such words the copy does not forget such
// an object.
static void forget_freed(struct shadow_node *o)
{
	o->moved = false;
	if (!run.wild || o->kept || o->paged ||
	    o->size > (o->kind == RT_NOSCAN ? 16 : 8))
		shadow_forget(o);
}

SHADOW_OP(free)
{
	unsigned slot = op->a % run.nslots;
	struct shadow_node *o = sole(a, slot);
	void *p;

	if (!o)
		return;
	p = (void *)o->at;
	a->settled = false;
	shadow_check(o);
	shadow_check_words(o);
	if (o->size > 16) // a smaller one may be left to the collector
		SHADOW_TRUE(rt_free((char *)p + 1) == RT_EINVAL);
	shadow_set_root(a, slot, SHADOW_NOTHING);
	if (run.alone && o->size > 16) {
		SHADOW_OK(rt_free(p));
		SHADOW_TRUE(rt_free(p) == RT_EINVAL);
	} else {
		SHADOW_OK(rt_free(p));
	}
	forget_freed(o);
}

// Slots may hold inner pointers.  But an inner pointer beyond SHADOW_BASE bytes
// does not keep an object of a kind with RT_KIND_BASE.
SHADOW_OP(inner)
{
	unsigned slot = op->a % run.nslots;
	const struct shadow_node *o = sole(a, slot);
	uintptr_t at;

	a->idle = !o || !o->based || o->n <= SHADOW_BASE;
	if (a->idle)
		return;
	at = o->at;
	shadow_set_root(a, slot, SHADOW_NOTHING);
	a->slot[slot] = at + SHADOW_BASE + op->b % (o->n - SHADOW_BASE);
	shadow_gc();
	if (run.alone && run.program->exact && rt_is_heap((void *)at))
		shadow_fail("an inner pointer keeps its object");
	a->slot[slot] = 0;
}

SHADOW_OP(keep)
{
	bool noscan = op->b % 2;
	size_t n = base_max(op->n, 1);

	a->asked = n;
	shadow_take(
	    a, op->a,
	    (struct shadow_made){
		.owner = a->id,
		.p = rt_alloc_uncollectable(noscan ? RT_NOSCAN : RT_WORDS, n),
		.n = n,
		.kind = noscan ? RT_NOSCAN : RT_WORDS,
		.layout = &shadow_layouts[noscan ? 0 : SHADOW_PLAIN_WORDS],
		.kept = true,
	    });
}

// ---- another size ----

// What an object was before it got another size.
struct before {
	void *p;
	size_t n, usable;
	unsigned char *bytes; // n of them
};

static struct before before(const struct shadow_node *o)
{
	struct before b = {(void *)o->at, o->n, rt_size((void *)o->at),
			   malloc(o->n)};

	SHADOW_TRUE(b.bytes != NULL);
	shadow_check(o);
	shadow_check_words(o);
	memcpy(b.bytes, b.p, o->n);
	return b;
}

static void check_grown(const struct before *b, const unsigned char *p,
			size_t n)
{
	SHADOW_TRUE(memcmp(p, b->bytes, base_min(n, b->n)) == 0);
	for (size_t i = b->usable; i < n; i++)
		if (p[i] != 0)
			shadow_fail("byte %zu of an object that has grown is "
				    "%#x",
				    i, p[i]);
}

// request_of returns a request that takes as much memory as the object at p,
// which has n bytes now.  A small object that has shrunk in place takes as much
// as before.
static size_t request_of(const void *p, const struct shadow_node *o, size_t n)
{
	size_t size = rt_size(p);

	if (o->paged)
		return size == base_pages(n) << RT_PAGE_SHIFT ? n : o->request;
	return size == rt_good_size_of(o->kind, o->kept ? shadow_kept_as(n) : n)
		   ? n
		   : o->request;
}

// replace enters the object in a slot again, which now has n bytes at p.  It
// clears the object, because old references where the copy has none would keep
// other objects alive.
static void replace(struct actor *a, unsigned slot, const struct before *b,
		    void *p, size_t n)
{
	struct shadow_node *o = a->root[slot].to;
	struct shadow_made made = {
	    .owner = a->id,
	    .p = p,
	    .n = n,
	    .kind = o->kind,
	    .layout = o->layout,
	    .uninit = true,
	    .kept = o->kept,
	    .request = p == b->p ? request_of(p, o, n) : n,
	    .paged = p == b->p && o->paged,
	};
	size_t size = rt_size(p);

	if (p != b->p)
		shadow_count_made(&a->ledger, &made);
	else if (size > b->usable)
		a->ledger.large_bytes += size - b->usable;
	if (o->kind != RT_NOSCAN)
		memset(p, 0, size);
	shadow_set_root(a, slot, (struct shadow_word){shadow_add(made), 0});
	if (p == b->p)
		shadow_forget(o);
	else
		forget_freed(o);
}

// sole_resized returns what sole does, if the size of the object may change.
static struct shadow_node *sole_resized(struct actor *a, unsigned slot)
{
	struct shadow_node *o = sole(a, slot);

	a->idle = !o || o->stack;
	return a->idle ? NULL : o;
}

SHADOW_OP(realloc)
{
	unsigned slot = op->a % run.nslots;
	struct shadow_node *o = sole_resized(a, slot);
	size_t n = base_max(op->n, 1);
	struct before b;
	void *p;

	if (!o)
		return;
	b = before(o);
	a->asked = n;
	a->settled = false;
	p = rt_realloc(o->kind, b.p, n);
	shadow_follow_flushes(a);
	if (!p) {
		SHADOW_TRUE(run.may_fail || o->kind == RT_TYPED);
		shadow_follow(a);
		shadow_check(o);
		shadow_check_words(o);
	} else {
		check_grown(&b, p, n);
		// rt_realloc may have collected before it moved the object.
		// That collection found what the object held.
		o->moved = true;
		shadow_follow(a);
		replace(a, slot, &b, p, n);
	}
	free(b.bytes);
}

// may_share tells whether an object of the given usable size may share its
// memory.  An object that shares it cannot be resized.
static bool may_share(const struct shadow_node *o, size_t usable)
{
	return o->kind == RT_NOSCAN && !o->kept && usable == 16;
}

// is_same_anywhere tells whether an object can have n bytes where it is, no
// matter how the heap is configured.  Whether it can grow depends on what is
// behind it.  A small object without pointers may share its memory unless it is
// guarded.  An object that has whole pages never shares them.  If it shrinks it
// may lose pages, unless it is guarded; request_of sees which.
static bool is_same_anywhere(const struct shadow_node *o, size_t n)
{
	return n <= o->n &&
	       (o->kind != RT_NOSCAN || o->paged || o->request > 16);
}

// check_answer checks what rt_resize has returned.  A large object can grow if
// there is room behind it.
static void check_answer(int error, const struct shadow_node *o, size_t usable,
			 size_t n)
{
	if (o->kind == RT_TYPED)
		SHADOW_TRUE(error == RT_EINVAL);
	else if (n <= usable && !may_share(o, usable))
		SHADOW_TRUE(error == RT_OK);
	else
		SHADOW_TRUE(error == RT_ENOMEM || (error == RT_OK && o->paged));
}

// undo makes an object as large as it was.
static void undo(struct actor *a, const struct shadow_node *o,
		 const struct before *b)
{
	size_t size = rt_size(b->p);

	a->ledger.large_bytes += base_max(size, b->usable) - b->usable;
	SHADOW_OK(rt_resize(b->p, o->request));
	shadow_check(o);
	shadow_check_words(o);
}

// A resize that not every configuration permits is undone, except in programs
// of a fuzzer, which run in one configuration only.
SHADOW_OP(resize)
{
	unsigned slot = op->a % run.nslots;
	struct shadow_node *o = sole_resized(a, slot);
	size_t n = base_max(op->n, 1);
	struct before b;
	int error;

	if (!o)
		return;
	b = before(o);
	a->settled = false;
	SHADOW_TRUE(rt_resize(b.p, 0) == RT_EINVAL);
	error = rt_resize(b.p, n);
	check_answer(error, o, b.usable, n);
	if (error == RT_OK) {
		SHADOW_TRUE(rt_size(b.p) >= n);
		check_grown(&b, b.p, n);
		if (run.wild || is_same_anywhere(o, n))
			replace(a, slot, &b, b.p, n);
		else
			undo(a, o, &b);
	}
	free(b.bytes);
}

// ---- destructors ----

// Unlike shadow_gc, this may leave dead objects whose destructors have not run.
SHADOW_OP(finish)
{
	if (op->b % 4 == 0)
		SHADOW_OK(rt_gc());
	shadow_run_dead(op->b / 4 % 8);
}

// on_ready is the ready callback, in which no destructor may run.
static void on_ready(size_t n, void *arg)
{
	bool before = shadow_drops_here;

	(void)arg;
	shadow_drops_here = false;
	SHADOW_TRUE(n != 0 && !rt_world_stopped());
	SHADOW_TRUE(rt_run_finalizers(0) == 0);
	rt_safepoint();
	shadow_drops_here = before;
	atomic_u64_add_relaxed(&run.told, 1);
}

// run_polled requires that safepoints run all destructors or, if polls is
// false, none.
static void run_polled(bool polls)
{
	size_t ready = rt_finalizers_ready();

	if (!polls) {
		rt_safepoint();
		SHADOW_TRUE(rt_finalizers_ready() == ready);
		return;
	}
	for (size_t i = 0; i <= ready && rt_finalizers_ready() != 0; i++)
		shadow_poll();
	SHADOW_TRUE(rt_finalizers_ready() == 0);
}

// When the second collection is over, the callback must have been told of new
// destructors.
SHADOW_OP(poll)
{
	bool polls = op->b % 2, tells = op->b / 2 % 2;
	uint64_t told = atomic_u64_load_relaxed(&run.told);
	size_t ready = rt_finalizers_ready();

	SHADOW_TRUE(rt_set_finalize_mode(2, NULL, NULL) == RT_EINVAL);
	SHADOW_OK(
	    rt_set_finalize_mode(polls ? RT_FINALIZE_POLL : RT_FINALIZE_MANUAL,
				 tells ? on_ready : NULL, NULL));
	if (!run.alone)
		return;
	SHADOW_OK(rt_gc());
	SHADOW_OK(rt_gc());
	if (tells && rt_finalizers_ready() > ready &&
	    atomic_u64_load_relaxed(&run.told) == told)
		shadow_fail("no callback was told of destructors");
	run_polled(polls);
}

static int is_picked(const void *obj, size_t size, void *arg)
{
	const struct shadow_node *o = shadow_find((uintptr_t)obj);

	(void)size;
	(void)arg;
	return o && o->picked;
}

// clear_picked leaves no reference to an object that was picked.
static void clear_picked(struct actor *a)
{
	for (unsigned i = 0; i < run.nslots; i++)
		if (a->root[i].to && a->root[i].to->picked)
			shadow_set_root(a, i, SHADOW_NOTHING);
	shadow_clear_picked_stacks(a);
	shadow_clear_picked_values(a);
	shadow_clear_picked_held(a);
}

void shadow_drop_now(struct actor *a, const struct shadow_op *op)
{
	struct actor_kind k = a->kind[op->a % KINDS];
	bool all = op->b % 4 == 0;

	if (op->b % 4 == 1)
		k = (struct actor_kind){SHADOW_OWNERS_KIND,
					&shadow_layouts[SHADOW_OWNERS], 0};
	if (!shadow_drops(k.layout)) {
		SHADOW_TRUE(rt_drop_now(k.number, NULL, NULL) == RT_EINVAL);
		return;
	}
	shadow_pick(k.number, all);
	for (unsigned t = 0; t < run.program->actors; t++)
		clear_picked(&run.actor[t]);
	shadow_drops_here = true;
	SHADOW_OK(rt_drop_now(k.number, all ? NULL : is_picked, NULL));
	shadow_drops_here = false;
	shadow_forget_picked();
	shadow_check_all();
}

// shadow_drop_now does this operation when all actors meet.
SHADOW_OP(dropnow)
{
}
