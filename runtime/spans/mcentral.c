// A stack of spans for each span class.
#include "runtime/spans/mcentral.h"

#include "runtime/base/bits.h"
#include "runtime/os/throw.h"
#include "runtime/world/stw.h"
#include "runtime/spans/kinds.h"

// mcentral_check checks one of them.
static struct {
	RT_CACHE_ALIGNED struct lfstack partial;
} centrals[SPANCLASS_COUNT];

static struct mspan *span_of(struct lfnode *node)
{
	return node ? (struct mspan *)((char *)node -
				       offsetof(struct mspan, partial))
		    : NULL;
}

const char *mcentral_check_span(const struct mspan *s)
{
	if (s->use != MSPAN_HEAP || s->spanclass >= SPANCLASS_COUNT)
		return "span in a set is not in use for objects";
	if (s->cached)
		return "span in a set is cached";
	if (s->queued)
		return "span in a set is in the queue of drops";
	if (atomic_u32_load_relaxed(&s->sweepgen) != epoch_sweepgen())
		return "span in a set is not swept";
	if (s->alloc_count >= s->nelems)
		return "span in a set has no free slot";
	return NULL;
}

void mcentral_push(struct mspan *s)
{
	RT_CHECK(mcentral_check_span(s));
	lfstack_push(&centrals[s->spanclass].partial, &s->partial);
}

struct mspan *mcentral_pop(spanclass sc)
{
	struct mspan *s = span_of(lfstack_pop(&centrals[sc].partial));

	RT_CHECK(s ? mcentral_check_span(s) : NULL);
	return s;
}

void mcentral_reset(void)
{
	RT_ASSERT(stw_stopped() || !proc_first()); // no P: no heap
	for (uint32_t x = kinds_used(); x; x &= x - 1)
		for (unsigned c = 0; c < SIZECLASS_COUNT; c++)
			lfstack_reset(
			    &centrals[spanclass_make(c, bits_ctz(x))].partial);
}

struct mspan *mcentral_top(spanclass sc)
{
	RT_ASSERT(stw_stopped());
	return span_of(lfstack_top(&centrals[sc].partial));
}

struct mspan *mcentral_below(const struct mspan *s)
{
	RT_ASSERT(stw_stopped());
	return span_of(lfstack_below(&s->partial));
}

const char *mcentral_check(spanclass sc)
{
	return lfstack_check(&centrals[sc].partial);
}
