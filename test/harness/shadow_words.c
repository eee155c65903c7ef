// shadow_words.c - operations that read and write words, of objects and roots.
#include "test/harness/shadow_actor.h"

enum { JUNK = 48 }; // words on a stack

static uintptr_t *range_word(struct actor *a, unsigned i, unsigned k)
{
	return &a->range[i % RANGES][k % RANGE_WORDS];
}

// own returns the object in a slot if the actor may look at its words.
static struct shadow_node *own(struct actor *a, unsigned slot)
{
	struct shadow_node *o = a->root[slot % run.nslots].to;

	a->idle = !o || o->owner != a->id || o->nwords == 0;
	return a->idle ? NULL : o;
}

SHADOW_OP(store)
{
	struct shadow_node *o = own(a, op->a);

	if (o)
		shadow_set(o, op->b % o->nwords,
			   shadow_share(a->root[op->c % run.nslots]));
}

SHADOW_OP(load)
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

SHADOW_OP(copy)
{
	struct shadow_word w = shadow_share(a->root[op->c % run.nslots]);

	if (w.to)
		w.value = op->n % w.to->n;
	// With RT_KIND_BASE, a word of a slot that points beyond SHADOW_BASE
	// bytes is no reference.
	if (w.to && w.to->based && w.value >= SHADOW_BASE)
		w = run.wild
			? (struct shadow_word){NULL, shadow_value(w)}
			: (struct shadow_word){w.to, w.value % SHADOW_BASE};
	shadow_set_root(a, op->a % run.nslots, w);
}

SHADOW_OP(drop)
{
	shadow_set_root(a, op->a % run.nslots, SHADOW_NOTHING);
}

SHADOW_OP(clear)
{
	unsigned from = op->a % run.nslots, end = run.nslots;

	if (op->b % 2 == 0)
		end = from + op->b % (end - from);
	for (unsigned i = from; i < end; i++)
		shadow_set_root(a, i, SHADOW_NOTHING);
}

void shadow_check_slot(const struct actor *a, unsigned slot)
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

SHADOW_OP(check)
{
	shadow_check_slot(a, op->a % run.nslots);
}

SHADOW_OP(put)
{
	*range_word(a, op->a, op->b) = a->slot[op->c % run.nslots];
}

uintptr_t shadow_wild_word(const struct shadow_op *op)
{
	unsigned count = shadow_count();
	const struct shadow_node *o =
	    count > 0 ? shadow_nth(op->c / 8 % count) : NULL;
	uint64_t n = op->n;

	if (op->c % 8 == 0)
		n <<= op->b % 4 * 8;
	return shadow_wild(op->c % 8, o, n);
}

SHADOW_OP(wild)
{
	struct shadow_word w = {NULL, shadow_wild_word(op)};
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

// A word of a stack in the format of stacks counts whatever is beside it.  With
// rt_config.past_end, a plain word that equals the end of an object keeps that
// object as well.
static void reach_junk(uintptr_t p)
{
	struct shadow_node *o = shadow_find(p - 1);
	uintptr_t address;

	if (run.on_stacks &&
	    shadow_decode(run.on_stacks, p, shadow_tag(run.on_stacks, true),
			  &address))
		shadow_reach((struct shadow_word){NULL, address}, SHADOW_STACK);
	shadow_reach((struct shadow_word){NULL, p}, SHADOW_STACK);
	if (run.past_end && o && o->base + o->size == p)
		shadow_reach((struct shadow_word){o, 0}, SHADOW_STACK);
}

SHADOW_OP(junk)
{
	uintptr_t junk[JUNK];

	for (unsigned i = 0; i < JUNK; i++) {
		struct shadow_op next = *op;

		next.c += 5 * i;
		next.n += op->n / 256 * i;
		junk[i] = shadow_wild_word(&next);
		if (run.on_stacks && i % 2)
			junk[i] = shadow_encode(run.on_stacks, junk[i]);
	}
	__asm__ volatile("" : : "r"(junk) : "memory");
	shadow_gc();
	__asm__ volatile("" : : "r"(junk) : "memory");
	for (unsigned i = 0; !run.program->exact && i < JUNK; i++)
		reach_junk(junk[i]);
	shadow_collected(a);
}

// ---- roots ----

void shadow_add_range(uintptr_t *w, size_t n, int flags)
{
	while (!SHADOW_DONE(rt_roots_add(w, w + n, flags)))
		;
}

// Slots hold addresses inside objects as well.
void shadow_add_roots(struct actor *a)
{
	shadow_add_range(a->slot, SLOTS / 2, RT_ROOT_WORDS);
	shadow_add_range(a->slot + SLOTS / 2, SLOTS / 2, RT_ROOT_WORDS);
}

void shadow_remove_roots(struct actor *a)
{
	uintptr_t *half = a->slot + SLOTS / 2;

	SHADOW_OK(rt_roots_remove(a->slot, half));
	SHADOW_OK(rt_roots_remove(half, half + SLOTS / 2));
}

SHADOW_OP(roots)
{
	shadow_add_roots(a);
	shadow_remove_roots(a);
	SHADOW_TRUE(rt_roots_remove(a->slot, a->slot + 1) == RT_ENOENT);
}

SHADOW_OP(add)
{
	unsigned i = op->a % RANGES, flags = op->b % 2;
	uintptr_t *w = a->range[i];

	if (a->times[i][flags] < RANGE_TIMES &&
	    SHADOW_DONE(rt_roots_add(w, w + RANGE_WORDS, (int)flags)))
		a->times[i][flags]++;
}

SHADOW_OP(remove)
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

// ---- handles, and root callbacks ----

static void tell_roots(rt_tracer *t, void *arg)
{
	const struct actor *a = arg;

	for (unsigned i = 0; i < HANDLES; i++)
		rt_trace_ptr(t, (void *)a->told[i]);
}

// hold makes a handle, or a word that is told, hold a word.
static void hold(struct actor *a, unsigned i, struct shadow_word w)
{
	uintptr_t value = shadow_value(w);

	a->held[i] = w;
	if (i >= HANDLES)
		a->told[i - HANDLES] = value;
	else
		SHADOW_OK(rt_handle_set(a->handle[i], (void *)value));
}

SHADOW_OP(handle)
{
	struct shadow_word w = shadow_share(a->root[op->a % run.nslots]);
	unsigned i = op->b % HANDLES;
	rt_handle *h = a->handle[i];

	w.value = w.to ? 0 : w.value; // a handle is an exact root
	if (!h) {
		a->handle[i] = rt_handle_new(NULL);
		SHADOW_TRUE(a->handle[i] != NULL);
		hold(a, i, w);
		return;
	}
	if (rt_handle_get(h) != (void *)shadow_value(a->held[i]))
		shadow_fail("a handle has changed");
	if (op->c % 4 != 0) {
		hold(a, i, w);
		return;
	}
	SHADOW_OK(rt_handle_free(h));
	a->handle[i] = NULL;
	a->held[i] = SHADOW_NOTHING;
}

SHADOW_OP(tell)
{
	if (!a->tells) {
		SHADOW_OK(rt_roots_add_fn(tell_roots, a, "told"));
		SHADOW_TRUE(rt_roots_add_fn(tell_roots, a, NULL) == RT_EEXIST);
		a->tells = true;
	}
	hold(a, HANDLES + op->b % HANDLES,
	     shadow_share(a->root[op->a % run.nslots]));
	if (op->c % 8 != 0)
		return;
	SHADOW_OK(rt_roots_remove_fn(tell_roots, a));
	SHADOW_TRUE(rt_roots_remove_fn(tell_roots, a) == RT_ENOENT);
	a->tells = false;
	for (unsigned i = HANDLES; i < 2 * HANDLES; i++)
		hold(a, i, SHADOW_NOTHING);
}

void shadow_reach_held(const struct actor *a)
{
	for (unsigned i = 0; i < 2 * HANDLES; i++)
		shadow_reach(a->held[i], SHADOW_ANY);
}

void shadow_clear_picked_held(struct actor *a)
{
	for (unsigned i = 0; i < 2 * HANDLES; i++)
		if (a->held[i].to && a->held[i].to->picked)
			hold(a, i, SHADOW_NOTHING);
}
