#include "runtime/stackalloc.h"

#include "runtime/bits.h"
#include "runtime/throw.h"

// Spans with a stack to hand out, by order, linked by next.
static struct {
	struct rt_mutex lock;
	struct mspan *partial[MCACHE_STACK_ORDERS];
} pool = {.lock = RT_MUTEX_INIT(LOCKRANK_STACKPOOL)};

// A stack that a P keeps is handed out as far as the pool knows, but not as
// far as the host knows: the bit in the upper half of stack_used says so.
enum { KEPT_SHIFT = 16 };
static_assert(STACKALLOC_SPAN / STACKALLOC_MIN <= KEPT_SHIFT, "two halves");

static unsigned order_of(size_t n)
{
	return bits_ctz(n / STACKALLOC_MIN);
}

static size_t order_size(unsigned order)
{
	return (size_t)STACKALLOC_MIN << order;
}

static uint32_t stacks_per_span(unsigned order)
{
	return STACKALLOC_SPAN >> order >> 11;
}
static_assert(STACKALLOC_MIN == 1 << 11, "as stacks_per_span says");

static bool span_full(const struct mspan *s)
{
	uint32_t all = (1u << stacks_per_span(s->stack_order)) - 1;

	return (s->stack_used & 0xffff) == all;
}

static void pool_unlink(struct mspan *s)
{
	struct mspan **link = &pool.partial[s->stack_order];

	while (*link != s)
		link = &(*link)->next;
	*link = s->next;
	s->next = NULL;
}

static uint32_t stack_index(const struct mspan *s, const void *v)
{
	return (uint32_t)(((uintptr_t)v - s->base) /
			  order_size(s->stack_order));
}

// pool_take hands out one stack; pool lock held.
static void *pool_take(struct rt_proc *p, unsigned order)
{
	struct mspan *s = pool.partial[order];
	unsigned i;

	RT_ASSERT(rt_lock_held(&pool.lock));
	if (!s) {
		s = mheap_alloc_manual(p, base_pages(STACKALLOC_SPAN),
				       MSPAN_STACK);
		if (!s)
			return NULL;
		s->stack_order = (uint8_t)order;
		s->elemsize = order_size(order);
		pool.partial[order] = s;
	}
	i = bits_ctz(~s->stack_used & 0xffff);
	s->stack_used |= 1u << i;
	if (span_full(s))
		pool_unlink(s);
	return (void *)(s->base + i * s->elemsize);
}

// pool_give takes a stack back, and its span with the last one; lock held.
static void pool_give(struct rt_proc *p, void *v)
{
	struct mspan *s =
	    arena_span(arena_offset((uintptr_t)v) >> RT_PAGE_SHIFT);
	uint32_t bit = 1u << stack_index(s, v);

	if (span_full(s)) {
		s->next = pool.partial[s->stack_order];
		pool.partial[s->stack_order] = s;
	}
	s->stack_used &= ~(bit | bit << KEPT_SHIFT);
	if (s->stack_used == 0) {
		pool_unlink(s);
		mheap_free_manual(p, s);
	}
}

// kept_refill moves stacks from the pool to a P that has none of this order.
static void kept_refill(struct mcache_stacks *c, struct rt_proc *p,
			unsigned order)
{
	rt_lock(&pool.lock);
	while (c->n[order] * order_size(order) < STACKALLOC_REFILL) {
		void *v = pool_take(p, order);
		struct mspan *s;

		if (!v)
			break;
		s = arena_span(arena_offset((uintptr_t)v) >> RT_PAGE_SHIFT);
		s->stack_used |= 1u << (stack_index(s, v) + KEPT_SHIFT);
		c->stack[order][c->n[order]++] = v;
	}
	rt_unlock(&pool.lock);
}

// kept_release moves stacks back until at most limit bytes are kept.
static void kept_release(struct mcache_stacks *c, struct rt_proc *p,
			 unsigned order, size_t limit)
{
	rt_lock(&pool.lock);
	while (c->n[order] * order_size(order) > limit)
		pool_give(p, c->stack[order][--c->n[order]]);
	rt_unlock(&pool.lock);
}

// set_kept notes whether a P keeps a stack that the pool handed out.
static void set_kept(struct mspan *s, const void *v, bool kept)
{
	uint32_t bit = 1u << (stack_index(s, v) + KEPT_SHIFT);

	rt_lock(&pool.lock);
	s->stack_used = kept ? s->stack_used | bit : s->stack_used & ~bit;
	rt_unlock(&pool.lock);
}

static void *large_alloc(struct rt_proc *p, size_t n)
{
	struct mspan *s = mheap_alloc_manual(p, base_pages(n), MSPAN_STACK);

	if (!s)
		return NULL;
	s->elemsize = n;
	s->stack_used = 1;
	return (void *)s->base;
}

void *stackalloc(struct rt_mcache *mc, struct rt_proc *p, size_t n)
{
	struct mcache_stacks *c = &mc->stacks;
	unsigned order;
	void *v;

	if (n > STACKALLOC_POOL_MAX)
		return large_alloc(p, n);
	order = order_of(n);
	if (c->n[order] == 0)
		kept_refill(c, p, order);
	if (c->n[order] == 0)
		return NULL;
	v = c->stack[order][--c->n[order]];
	set_kept(arena_span(arena_offset((uintptr_t)v) >> RT_PAGE_SHIFT), v,
		 false);
	return v;
}

// stack_span is the span of a stack that is handed out; NULL: v and n do not
// name one.
static struct mspan *stack_span(const void *v, size_t n)
{
	uint64_t offset = arena_offset((uintptr_t)v);
	struct mspan *s;
	uint32_t used;

	if (offset >= arena_used())
		return NULL;
	s = arena_span(offset >> RT_PAGE_SHIFT);
	if (!s)
		return NULL;
	rt_lock(&pool.lock);
	used = s->use == MSPAN_STACK && s->elemsize == n &&
		       ((uintptr_t)v - s->base) % n == 0
		   ? s->stack_used >> (((uintptr_t)v - s->base) / n)
		   : 0;
	rt_unlock(&pool.lock);
	return (used & 1) && !(used >> KEPT_SHIFT & 1) ? s : NULL;
}

bool stackfree(struct rt_mcache *mc, struct rt_proc *p, void *v, size_t n)
{
	struct mcache_stacks *c = &mc->stacks;
	struct mspan *s = n == 0 ? NULL : stack_span(v, n);
	unsigned order;

	if (!s)
		return false;
	if (n > STACKALLOC_POOL_MAX) {
		mheap_free_manual(p, s);
		return true;
	}
	order = s->stack_order;
	if (c->n[order] * order_size(order) >= MCACHE_STACK_BYTES)
		kept_release(c, p, order, STACKALLOC_REFILL);
	set_kept(s, v, true);
	c->stack[order][c->n[order]++] = v;
	return true;
}

void stackalloc_flush(struct rt_mcache *mc, struct rt_proc *p)
{
	for (unsigned order = 0; order < MCACHE_STACK_ORDERS; order++)
		if (mc->stacks.n[order] != 0)
			kept_release(&mc->stacks, p, order, 0);
}

void stackalloc_flush_all(struct rt_proc *p)
{
	for (struct rt_proc *q = proc_first(); q; q = q->next)
		if (mcache_of(q))
			stackalloc_flush(mcache_of(q), p);
}

void stackalloc_reset(void)
{
	for (unsigned order = 0; order < MCACHE_STACK_ORDERS; order++)
		pool.partial[order] = NULL;
}
