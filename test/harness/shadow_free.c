// shadow_free.c - operations that end objects before a collection does.
#include <stdlib.h>
#include <string.h>

#include "test/harness/shadow_actor.h"

// sole returns the object in a slot if nothing else has ever referred to it, so
// that the actor may free it.
static struct shadow_node *sole(const struct actor *a, unsigned slot)
{
	struct shadow_node *o = a->root[slot].to;

	return o && o->owner == a->id && !o->shared ? o : NULL;
}

// ---- by hand ----

SHADOW_OP(free)
{
	unsigned slot = op->a % run.nslots;
	struct shadow_node *o = sole(a, slot);
	void *p;

	if (!o)
		return;
	p = (void *)o->at;
	shadow_check(o);
	shadow_check_words(o);
	if (o->size > 16) // or it may be left to the collector
		SHADOW_TRUE(rt_free((char *)p + 1) == RT_EINVAL);
	shadow_set_root(a, slot, SHADOW_NOTHING);
	if (run.alone && o->size > 16) {
		SHADOW_OK(rt_free(p));
		SHADOW_TRUE(rt_free(p) == RT_EINVAL);
	} else {
		SHADOW_OK(rt_free(p));
	}
	shadow_forget(o);
}

SHADOW_OP(keep)
{
	bool noscan = op->b % 2;
	size_t n = base_max(op->n, 1);
	struct shadow_node *o;
	void *p;

	a->asked = n;
	p = rt_alloc_uncollectable(noscan ? RT_NOSCAN : RT_WORDS, n);
	SHADOW_TRUE(p != NULL);
	shadow_follow_flushes(a);
	ledger_alloc(&a->ledger, shadow_kept_as(n), noscan);
	o = shadow_add((struct shadow_made){
	    .owner = a->id,
	    .p = p,
	    .n = n,
	    .kind = noscan ? RT_NOSCAN : RT_WORDS,
	    .layout = &shadow_layouts[noscan ? 0 : SHADOW_PLAIN_WORDS],
	    .kept = true,
	});
	shadow_set_root(a, op->a % run.nslots, (struct shadow_word){o, 0});
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

// count_resized counts what a request for n bytes counts as.  An object that
// stays counts what it has gained.
static void count_resized(struct actor *a, const struct before *b,
			  const void *p, size_t n, const struct shadow_node *o)
{
	size_t size = rt_size(p);

	shadow_follow_flushes(a);
	if (p == b->p) {
		if (size > b->usable && n > SHADOW_SMALL)
			a->ledger.large_bytes += size - b->usable;
	} else if (o->kept) {
		ledger_alloc(&a->ledger, shadow_kept_as(n), false);
	} else if (o->kind >= RT_KIND_FIRST) {
		ledger_alloc_kind(&a->ledger, shadow_counted_as(o->layout, n),
				  o->kind);
	} else {
		ledger_alloc(&a->ledger, n, o->kind == RT_NOSCAN);
	}
}

SHADOW_OP(realloc)
{
	unsigned slot = op->a % run.nslots;
	struct shadow_node *o = sole(a, slot), *now;
	size_t n = base_max(op->n, 1);
	struct before b;
	void *p;

	if (!o || o->stack)
		return;
	b = before(o);
	a->asked = n;
	p = rt_realloc(o->kind, b.p, n);
	SHADOW_TRUE(p != NULL);
	check_grown(&b, p, n);
	count_resized(a, &b, p, n, o);
	if (o->kind != RT_NOSCAN)
		memset(p, 0, rt_size(p)); // references where none are expected
	now = shadow_add((struct shadow_made){
	    .owner = a->id,
	    .p = p,
	    .n = n,
	    .kind = o->kind,
	    .layout = o->layout,
	    .uninit = true,
	    .kept = o->kept,
	});
	shadow_set_root(a, slot, (struct shadow_word){now, 0});
	shadow_forget(o);
	free(b.bytes);
}

// ---- destructors ----

// Some collections leave what they found, and some calls leave a part of it.
SHADOW_OP(finish)
{
	if (op->b % 4 == 0)
		SHADOW_OK(rt_gc());
	rt_run_finalizers(op->b / 4 % 8);
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
	shadow_clear_picked_values(a);
	shadow_clear_picked_held(a);
}

void shadow_drop_now(struct actor *a, const struct shadow_op *op)
{
	struct actor_kind k = a->kind[op->a % KINDS];
	bool all = op->b % 4 == 0;

	if (op->b % 4 == 1)
		k = (struct actor_kind){SHADOW_OWNERS_KIND,
					&shadow_layouts[SHADOW_OWNERS]};
	if (!shadow_drops(k.layout)) {
		SHADOW_TRUE(rt_drop_now(k.number, NULL, NULL) == RT_EINVAL);
		return;
	}
	shadow_pick(k.number, all);
	for (unsigned t = 0; t < run.program->actors; t++)
		clear_picked(&run.actor[t]);
	SHADOW_OK(rt_drop_now(k.number, all ? NULL : is_picked, NULL));
	shadow_forget_picked();
	shadow_check_all();
}

// Done when all meet.
SHADOW_OP(dropnow)
{
}
