// shadow_ask.c - operations that ask the heap what it has.
#include <stdlib.h>

#include "runtime/os/epoch.h"
#include "runtime/spans/mcache.h"
#include "runtime/spans/object.h"
#include "test/harness/shadow_actor.h"

// Unless the actor's heap is settled, an object may be found that the copy does
// not have: a slot in a cache that is allocated and not yet handed out.
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
	SHADOW_TRUE(rt_kind_of(p) == want->kind);
	SHADOW_TRUE(o.size == (want->paged
				   ? base_pages(want->size) << RT_PAGE_SHIFT
				   : want->size));
}

SHADOW_OP(ask)
{
	uintptr_t w = shadow_wild_word(op);

	ask(a, w);
	ask(a, w - 1);
	ask(a, w & ~(uintptr_t)(RT_PAGE_SIZE - 1));
}

SHADOW_OP(stats)
{
	uint64_t history[RT_GCSTATS_WORDS];
	rt_metric_sample sample = {.name = "/gc/heap/live:bytes"};
	rt_metric_desc desc;
	rt_memstats m;
	size_t used;

	SHADOW_OK(rt_metrics_read(&sample, 1));
	SHADOW_TRUE(sample.result == RT_METRIC_U64);
	SHADOW_OK(rt_read_memstats_live(&m));
	shadow_sums(&m);
	SHADOW_OK(rt_read_gcstats(history, RT_GCSTATS_WORDS, &used));
	SHADOW_OK(rt_metrics_describe(op->n % rt_metrics_count(), &desc));
	sample.name = desc.name;
	SHADOW_OK(rt_metrics_read(&sample, 1));
	if (run.wild && op->n / 256 % 2)
		return; // an exact read would flush the caches
	SHADOW_OK(rt_read_memstats(&m));
	shadow_sums(&m);
	shadow_flushed();
}

SHADOW_OP(verify)
{
	struct rt_verify v;

	SHADOW_OK(rt_heap_verify(&v));
	if (v.errors != 0)
		shadow_fail("rt_heap_verify: %s", v.first);
	if (run.alone)
		shadow_healthy();
	shadow_flushed();
}

static int walk_one(void *obj, size_t size, int kind, void *arg)
{
	uint64_t *left = arg;

	if (rt_size(obj) != size || rt_base(obj) != obj ||
	    rt_kind_of(obj) != kind || rt_good_size_of(kind, 1) == 0)
		shadow_fail("walk: %p of %zu bytes", obj, size);
	return --*left == 0 ? RT_WALK_STOP : 0;
}

SHADOW_OP(walk)
{
	uint64_t left = 1 + op->n % 4096;

	SHADOW_OK(rt_heap_walk(walk_one, &left));
	shadow_flushed();
}

SHADOW_OP(stop)
{
	uint64_t left = UINT64_MAX, walked, all;

	SHADOW_OK(rt_stop_the_world(RT_STOP_HOST + (int)(op->b % 256)));
	if (!rt_world_stopped() || rt_alloc(32) || rt_gc() != RT_EBUSY)
		shadow_fail("something goes on in the own stop");
	SHADOW_OK(rt_heap_walk(walk_one, &left));
	// A walk does not show dead objects; shadow_healthy counts them.
	walked = UINT64_MAX - left;
	all = shadow_healthy();
	SHADOW_TRUE(walked == all ||
		    (walked < all && gauge_load(&gauges.heap_dead) != 0));
	shadow_flushed();
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
			ledger_alloc_pages(sum, a->asked);
	}
}

// The ledgers are compared only if they saw every flush.  In a heap with guards
// they would have to know which objects got a guard.
void shadow_compare(void)
{
	struct comparison *c = &run.result->compared;
	struct ledger sum;
	rt_memstats m;

	SHADOW_OK(rt_stop_the_world(RT_STOP_HOST + 3));
	shadow_flushed();
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

SHADOW_OP(compare)
{
	shadow_compare();
}

static int by_address(const void *x, const void *y)
{
	const uintptr_t *p = x, *q = y;

	return (*p > *q) - (*p < *q);
}

SHADOW_OP(list)
{
	void **l;
	size_t n;

	// The ledgers of other actors would miss the flush.
	a->idle = !run.alone || !run.program->exact;
	if (a->idle)
		return;
	shadow_check_all();
	a->settled = false;
	l = rt_heap_list(RT_WORDS, NULL, NULL, &n);
	SHADOW_TRUE(l);
	shadow_follow_flushes(a);
	ledger_alloc(&a->ledger, rt_size(l), false);
	SHADOW_TRUE(n == shadow_count_kind(RT_WORDS));
	qsort(l, n, sizeof *l, by_address);
	for (size_t i = 0; i < n; i++) {
		struct shadow_node *o = shadow_find((uintptr_t)l[i]);

		SHADOW_TRUE(o && o->at == (uintptr_t)l[i]);
		SHADOW_TRUE(i == 0 || l[i - 1] < l[i]); // no object twice
	}
	shadow_flushed();
}
