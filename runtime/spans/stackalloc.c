// A pool of small stacks for all Ps, and the bits of those that the host has.
#include "runtime/spans/stackalloc.h"

#include "runtime/base/bits.h"
#include "runtime/os/throw.h"
#include "runtime/world/stw.h"

struct stackpool stackpool = {.lock = RT_MUTEX_INIT(LOCKRANK_STACKPOOL)};

// stack_used of a span says which of its stacks a P or the host has.  It
// changes under the pool lock.  The pagewords (pageword_stack) say which of
// these the host has; they change without a lock.  A free checks the pageword
// first: a thread that does not have a stack may read nothing else of it,
// because another thread may be freeing its span.
static_assert(STACKALLOC_SPAN / STACKALLOC_MIN <= 32, "bits of stack_used");
static_assert(RT_PAGE_SIZE / STACKALLOC_MIN <= PAGEWORD_KIND_BITS,
	      "bits of a pageword");

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
	return s->stack_used == (1u << stacks_per_span(s->stack_order)) - 1;
}

static void pool_unlink(struct mspan *s)
{
	struct mspan **link = &stackpool.partial[s->stack_order];

	while (*link != s)
		link = &(*link)->next;
	*link = s->next;
	s->next = NULL;
}

static struct mspan *span_of(const void *v)
{
	return arena_span(arena_offset((uintptr_t)v) >> RT_PAGE_SHIFT);
}

// held_pageword returns the pageword that says whether the host has the stack
// at v.  held_bit returns the stack's bit there.
static atomic_u32 *held_pageword(const void *v)
{
	return &arena.pagewords[arena_offset((uintptr_t)v) >> RT_PAGE_SHIFT];
}

static uint32_t held_bit(const void *v)
{
	uint64_t in_page = arena_offset((uintptr_t)v) % RT_PAGE_SIZE;

	return pageword_stack((unsigned)(in_page / STACKALLOC_MIN));
}

// held_set notes that the host has a stack.
static void *held_set(void *v)
{
	// Pairs with the acquire in held_clear, so the thread that frees the
	// stack sees the span's fields.
	atomic_u32_add_release(held_pageword(v), held_bit(v));
	return v;
}

// check_span checks a span that has stacks which the pool can allocate.
static const char *check_span(const struct mspan *s, unsigned order)
{
	if (s->use != MSPAN_STACK)
		return "span of stacks has another use";
	if (s->stack_order != order || s->elemsize != order_size(order))
		return "span of stacks is in the list of another order";
	if (s->stack_used == 0)
		return "span of stacks in the pool has no stack in use";
	if (s->stack_used >> (stacks_per_span(order) - 1) > 1)
		return "span of stacks has more stacks than fit";
	return span_full(s) ? "span of stacks in the pool is full" : NULL;
}

// pool_take returns one stack, which a P will keep, or NULL if there is no
// memory.  The caller must hold the pool lock.
static void *pool_take(struct rt_proc *p, unsigned order)
{
	struct mspan *s = stackpool.partial[order];
	unsigned i;

	RT_ASSERT(mutex_held(&stackpool.lock));
	RT_CHECK(s ? check_span(s, order) : NULL);
	if (!s) {
		s = mheap_alloc_manual(p, base_pages(STACKALLOC_SPAN),
				       MSPAN_STACK);
		if (!s)
			return NULL;
		s->stack_order = (uint8_t)order;
		s->elemsize = order_size(order);
		stackpool.partial[order] = s;
	}
	i = bits_ctz(~s->stack_used);
	s->stack_used |= 1u << i;
	if (span_full(s))
		pool_unlink(s);
	return (void *)(s->base + i * s->elemsize);
}

// pool_free frees a stack that a P kept, and with the last one its span.  The
// caller must hold the pool lock.
static void pool_free(struct rt_proc *p, void *v)
{
	struct mspan *s = span_of(v);
	uint64_t i = ((uintptr_t)v - s->base) / s->elemsize;

	RT_ASSERT(mutex_held(&stackpool.lock));
	RT_ASSERT(s->use == MSPAN_STACK && s->stack_used >> i & 1);
	if (span_full(s)) {
		s->next = stackpool.partial[s->stack_order];
		stackpool.partial[s->stack_order] = s;
	}
	s->stack_used &= ~(1u << i);
	if (s->stack_used == 0) {
		pool_unlink(s);
		mheap_free_manual(p, s);
	} else {
		RT_CHECK(check_span(s, s->stack_order));
	}
}

// kept_refill moves stacks from the pool to a P that has none of this order.
// It moves fewer, or none, if there is no memory.
static void kept_refill(struct mcache_stacks *c, struct rt_proc *p,
			unsigned order)
{
	mutex_lock(&stackpool.lock);
	while (c->n[order] * order_size(order) < STACKALLOC_REFILL) {
		void *v = pool_take(p, order);

		if (!v)
			break;
		c->stack[order][c->n[order]++] = v;
	}
	mutex_unlock(&stackpool.lock);
}

// kept_release moves stacks from a P to the pool until the P keeps at most
// limit bytes.
static void kept_release(struct mcache_stacks *c, struct rt_proc *p,
			 unsigned order, size_t limit)
{
	mutex_lock(&stackpool.lock);
	while (c->n[order] * order_size(order) > limit)
		pool_free(p, c->stack[order][--c->n[order]]);
	mutex_unlock(&stackpool.lock);
}

static void *large_alloc(struct rt_proc *p, size_t n)
{
	struct mspan *s = mheap_alloc_manual(p, base_pages(n), MSPAN_STACK);

	if (!s)
		return NULL;
	s->elemsize = n;
	return held_set((void *)s->base);
}

void *stackalloc(struct rt_mcache *mc, struct rt_proc *p, size_t n)
{
	struct mcache_stacks *c = &mc->stacks;
	unsigned order;

	if (n > STACKALLOC_POOL_MAX)
		return large_alloc(p, n);
	order = order_of(n);
	if (c->n[order] == 0)
		kept_refill(c, p, order);
	if (c->n[order] == 0)
		return NULL;
	return held_set(c->stack[order][--c->n[order]]);
}

bool stackalloc_has(const struct rt_mcache *mc, size_t n)
{
	unsigned order;
	bool has;

	if (n > STACKALLOC_POOL_MAX)
		return false;
	order = order_of(n);
	if (mc->stacks.n[order] != 0)
		return true;
	mutex_lock(&stackpool.lock);
	has = stackpool.partial[order] != NULL;
	mutex_unlock(&stackpool.lock);
	return has;
}

// held_clear notes that the host no longer has the stack at v.  Returns false
// if there is no stack at v that the host has.  If two threads free the same
// stack, one of them gets false.
static bool held_clear(const void *v)
{
	uint32_t bit, pageword;

	if ((uintptr_t)v % STACKALLOC_MIN != 0 ||
	    arena_offset((uintptr_t)v) >= arena_used())
		return false;
	bit = held_bit(v);
	// Pairs with the release in held_set.
	do {
		pageword = atomic_u32_load_relaxed(held_pageword(v));
		if (pageword_state(pageword) != PAGEWORD_MANUAL ||
		    !(pageword & bit))
			return false;
	} while (!atomic_u32_cas_acquire(held_pageword(v), pageword,
					 pageword & ~bit));
	return true;
}

bool stackfree(struct rt_mcache *mc, struct rt_proc *p, void *v, size_t n)
{
	struct mcache_stacks *c = &mc->stacks;
	unsigned order;

	if (!held_clear(v))
		return false;
	if (span_of(v)->elemsize != n) {
		held_set(v);
		return false;
	}
	if (n > STACKALLOC_POOL_MAX) {
		mheap_free_manual(p, span_of(v));
		return true;
	}
	order = order_of(n);
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
	RT_ASSERT(stw_stopped());
	for (struct rt_proc *q = proc_first(); q; q = proc_next(q))
		if (mcache_of(q))
			stackalloc_flush(mcache_of(q), p);
	RT_CHECK(stackpool_check(&stackpool));
}

void stackalloc_reset(void)
{
	for (unsigned order = 0; order < MCACHE_STACK_ORDERS; order++)
		stackpool.partial[order] = NULL;
}

const char *stackpool_check(const struct stackpool *pool)
{
	const char *wrong = mutex_check(&pool->lock);
	uint64_t left = gauge_load(&gauges.stack_inuse) / STACKALLOC_SPAN;

	for (unsigned order = 0; order < MCACHE_STACK_ORDERS; order++)
		for (const struct mspan *s = pool->partial[order]; s && !wrong;
		     s = s->next)
			wrong = left-- == 0 ? "stack pool has no end"
					    : check_span(s, order);
	return wrong;
}
