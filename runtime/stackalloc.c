#include "runtime/stackalloc.h"

#include "runtime/bits.h"
#include "runtime/throw.h"

// Spans with a stack to hand out, by order, linked by next.
static struct {
	struct rt_mutex lock;
	struct mspan *partial[MCACHE_STACK_ORDERS];
} pool = {.lock = RT_MUTEX_INIT(LOCKRANK_STACKPOOL)};

// The lower half of stack_used is what the pool has handed out to Ps and hosts;
// it changes under the pool lock.  The upper half is which of these stacks a P
// keeps: a bit there changes without a lock, by the P that hands the stack to
// the host or takes it back.  So every change is one atomic operation.
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

	return (atomic_u32_load_relaxed(&s->stack_used) & 0xffff) == all;
}

static void pool_unlink(struct mspan *s)
{
	struct mspan **link = &pool.partial[s->stack_order];

	while (*link != s)
		link = &(*link)->next;
	*link = s->next;
	s->next = NULL;
}

static struct mspan *span_of(const void *v)
{
	return arena_span(arena_offset((uintptr_t)v) >> RT_PAGE_SHIFT);
}

// stack_bit is the lower of the two bits of a stack: of the only one of a large
// span, the first.
static uint32_t stack_bit(const struct mspan *s, const void *v)
{
	return 1u << (((uintptr_t)v - s->base) >> s->stack_order >> 11);
}

// pool_take hands out one stack, which a P will keep; pool lock held.
static void *pool_take(struct rt_proc *p, unsigned order)
{
	struct mspan *s = pool.partial[order];
	uint32_t used;
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
	used = atomic_u32_load_relaxed(&s->stack_used);
	i = bits_ctz(~used & 0xffff);
	atomic_u32_add_relaxed(&s->stack_used, 1u << i | 1u << i << KEPT_SHIFT);
	if (span_full(s))
		pool_unlink(s);
	return (void *)(s->base + i * s->elemsize);
}

// pool_give takes a stack that a P kept, and its span with the last one; pool
// lock held.
static void pool_give(struct rt_proc *p, void *v)
{
	struct mspan *s = span_of(v);
	uint32_t bit = stack_bit(s, v);

	if (span_full(s)) {
		s->next = pool.partial[s->stack_order];
		pool.partial[s->stack_order] = s;
	}
	if (atomic_u32_add_relaxed(&s->stack_used,
				   -(bit | bit << KEPT_SHIFT)) == 0) {
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

		if (!v)
			break;
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

static void *large_alloc(struct rt_proc *p, size_t n)
{
	struct mspan *s = mheap_alloc_manual(p, base_pages(n), MSPAN_STACK);

	if (!s)
		return NULL;
	s->elemsize = n;
	atomic_u32_store_relaxed(&s->stack_used, 1);
	return (void *)s->base;
}

void *stackalloc(struct rt_mcache *mc, struct rt_proc *p, size_t n)
{
	struct mcache_stacks *c = &mc->stacks;
	struct mspan *s;
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
	s = span_of(v);
	atomic_u32_add_relaxed(&s->stack_used,
			       -(stack_bit(s, v) << KEPT_SHIFT));
	return v;
}

// stack_span is the span whose stacks have n bytes and of which one begins at
// v; NULL: there is none.  The page word comes first: a span of objects, which
// other threads may be changing, is not looked into.
static struct mspan *stack_span(const void *v, size_t n)
{
	uint64_t offset = arena_offset((uintptr_t)v);
	uint64_t page = offset >> RT_PAGE_SHIFT;
	struct mspan *s;

	if (offset >= arena_used() ||
	    pageword_state(arena_word(page)) != PAGEWORD_MANUAL)
		return NULL;
	s = arena_span(page);
	return s && s->use == MSPAN_STACK && s->elemsize == n &&
		       (((uintptr_t)v - s->base) & (n - 1)) == 0
		   ? s
		   : NULL;
}

// take_back notes that the host no longer has a stack; false: it has not.  Of
// two threads that free one stack, one is told so.
static bool take_back(struct mspan *s, const void *v)
{
	uint32_t bit = stack_bit(s, v);
	uint32_t used;

	do {
		used = atomic_u32_load_relaxed(&s->stack_used);
		if (!(used & bit) || used & bit << KEPT_SHIFT)
			return false;
	} while (!atomic_u32_cas_relaxed(&s->stack_used, used,
					 used | bit << KEPT_SHIFT));
	return true;
}

bool stackfree(struct rt_mcache *mc, struct rt_proc *p, void *v, size_t n)
{
	struct mcache_stacks *c = &mc->stacks;
	struct mspan *s = stack_span(v, n);
	unsigned order;

	if (!s || !take_back(s, v))
		return false;
	if (n > STACKALLOC_POOL_MAX) {
		mheap_free_manual(p, s);
		return true;
	}
	order = s->stack_order;
	if (c->n[order] * order_size(order) >= MCACHE_STACK_BYTES)
		kept_release(c, p, order, STACKALLOC_REFILL);
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
	for (struct rt_proc *q = proc_first(); q; q = proc_next(q))
		if (mcache_of(q))
			stackalloc_flush(mcache_of(q), p);
}

void stackalloc_reset(void)
{
	for (unsigned order = 0; order < MCACHE_STACK_ORDERS; order++)
		pool.partial[order] = NULL;
}
