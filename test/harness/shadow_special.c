// shadow_special.c - operations that allocate in other ways than one by one.
#include <string.h>

#include "test/harness/shadow_actor.h"

struct actor_kind shadow_any_kind(const struct actor *a, unsigned c)
{
	switch (c % (2 + KINDS)) {
	case 0:
		return (struct actor_kind){RT_NOSCAN, &shadow_layouts[0], 0};
	case 1:
		return (struct actor_kind){
		    RT_WORDS, &shadow_layouts[SHADOW_PLAIN_WORDS], 0};
	default:
		return a->kind[c % (2 + KINDS) - 2];
	}
}

// ---- several at once ----

enum { MANY = 12 }; // at most, and fewer than slots

// If a collection is due, rt_alloc_many returns fewer objects than asked for,
// and the operation calls it again.  The objects are in slots before the next
// call, which may collect.
SHADOW_OP(many)
{
	struct actor_kind k = shadow_any_kind(a, op->c);
	size_t n = base_max(op->n, 1);
	unsigned wanted = 1 + op->b % MANY, made = 0;
	void *out[MANY + 1];

	SHADOW_TRUE(rt_alloc_many(k.number, n, 0, out) == 0);
	while (made < wanted) {
		size_t got;

		a->asked = n;
		a->settled = false;
		out[wanted - made] = a;
		got = rt_alloc_many(k.number, n, wanted - made, out);
		SHADOW_TRUE(got <= wanted - made && out[wanted - made] == a &&
			    (got <= 1 || n <= SHADOW_SMALL));
		shadow_follow_flushes(a);
		shadow_follow(a);
		if (got == 0) {
			SHADOW_TRUE(run.may_fail);
			return;
		}
		for (size_t i = 0; i < got; i++)
			shadow_enter(a, op->a + made++,
				     (struct shadow_made){
					 .owner = a->id,
					 .p = out[i],
					 .n = n,
					 .kind = k.number,
					 .layout = k.layout,
				     });
	}
}

// More references than a marker keeps to itself, so others take some, or there
// is no room for them.
enum { STAR = 600, POINT_BYTES = 48 };

static struct shadow_node *take_of(struct actor *a, unsigned slot,
				   const struct actor_kind *k, size_t n,
				   bool wide)
{
	a->asked = n;
	return shadow_take(a, slot,
			   (struct shadow_made){
			       .owner = a->id,
			       .p = rt_alloc_kind(k->number, n),
			       .n = n,
			       .kind = k->number,
			       .layout = k->layout,
			       .wide = wide,
			   });
}

SHADOW_OP(star)
{
	const struct actor_kind *k = &a->kind[op->b % KINDS];
	unsigned slot = op->a % run.nslots, next = (slot + 1) % run.nslots;
	struct shadow_node *o = take_of(a, slot, k, 8 * (STAR + 1), true);

	for (unsigned i = 0; o && i < o->nwords; i++) {
		if (!shadow_refers(o, i))
			continue;
		take_of(a, next, k, 1 + op->n % POINT_BYTES, false);
		shadow_set(o, i, shadow_share(a->root[next]));
	}
}

// ---- types ----

SHADOW_OP(typed)
{
	const struct shadow_layout *l =
	    &shadow_layouts[SHADOW_TYPED_FIRST + op->b % SHADOW_TYPED];
	size_t n = op->n, elements = shadow_typed_count(l, &n);

	a->asked = n;
	shadow_take(a, op->a,
		    (struct shadow_made){
			.owner = a->id,
			.p = rt_alloc_typed(l->type, elements),
			.n = n,
			.kind = RT_TYPED,
			.layout = l,
		    });
}

// ---- addresses and sizes ----

// aligned_as returns a size that counts like n bytes at a multiple of align.
// The object takes a size that is a multiple of align, or whole pages if
// *whole_pages is set.
static size_t aligned_as(size_t n, size_t align, bool *whole_pages)
{
	size_t size = base_align_up(n, base_min(align, 16));

	*whole_pages = align > RT_PAGE_SIZE || size > SHADOW_SMALL;
	if (align <= 16 || *whole_pages)
		return size;
	while (ledger_size(size, false, true) % align != 0)
		size = ledger_size(size, false, true) + 1;
	return ledger_size(size, false, true);
}

SHADOW_OP(aligned)
{
	struct actor_kind k = shadow_any_kind(a, op->c);
	size_t align = (size_t)8 << op->b % 19; // to 2 MiB
	size_t n = base_max(op->n, 1), request;
	bool paged;
	void *p;

	request = aligned_as(n, align, &paged);
	a->asked = request;
	p = rt_alloc_aligned(k.number, align, n);
	SHADOW_TRUE((uintptr_t)p % align == 0);
	shadow_take(a, op->a,
		    (struct shadow_made){
			.owner = a->id,
			.p = p,
			.n = n,
			.kind = k.number,
			.layout = k.layout,
			.request = request,
			.paged = paged,
		    });
}

SHADOW_OP(array)
{
	struct actor_kind k = shadow_any_kind(a, op->c);
	size_t head = op->b % 32, size = 2 + op->b / 32;
	size_t elements = op->n / size, n = head + elements * size;
	void *p;

	SHADOW_TRUE(!rt_alloc_array(k.number, head, SIZE_MAX / size + 1, size));
	SHADOW_TRUE(!rt_alloc_array(k.number, SIZE_MAX - size + 1, 1, size));
	a->asked = n;
	p = rt_alloc_array(k.number, head, elements, size);
	if (n == 0) {
		SHADOW_TRUE(!rt_is_heap(p));
		return;
	}
	shadow_take(a, op->a,
		    (struct shadow_made){
			.owner = a->id,
			.p = p,
			.n = n,
			.kind = k.number,
			.layout = k.layout,
		    });
}

// ---- copies ----

// take_copy is shadow_take for a copy of n bytes, which it verifies.
static void take_copy(struct actor *a, unsigned slot, void *p, const void *from,
		      size_t n)
{
	if (p && memcmp(p, from, n) != 0)
		shadow_fail("a copy of %zu bytes differs", n);
	shadow_take(a, slot,
		    (struct shadow_made){
			.owner = a->id,
			.p = p,
			.n = n,
			.kind = RT_NOSCAN,
			.layout = &shadow_layouts[0],
			.uninit = true,
		    });
}

// dup_string copies a string, which is outside the heap.
static void dup_string(struct actor *a, const struct shadow_op *op)
{
	static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
	const char *s = &digits[op->n % sizeof digits];

	SHADOW_TRUE(!rt_strdup(NULL));
	a->asked = strlen(s) + 1;
	take_copy(a, op->a, rt_strdup(s), s, strlen(s) + 1);
}

SHADOW_OP(dup)
{
	const struct shadow_node *o = a->root[op->c % run.nslots].to;
	const void *p;
	size_t n;

	if (op->b % 2) {
		dup_string(a, op);
		return;
	}
	SHADOW_TRUE(!rt_memdup(NULL, 1) && !rt_is_heap(rt_memdup(NULL, 0)));
	a->idle = !o || o->owner != a->id;
	if (a->idle)
		return;
	p = (const void *)o->at;
	n = base_min(base_max(op->n, 1), o->n);
	a->asked = n;
	take_copy(a, op->a, rt_memdup(p, n), p, n);
}
