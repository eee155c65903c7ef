// A stack of spans for each span class.
#include "runtime/spans/mcentral.h"

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

void mcentral_push(struct mspan *s)
{
	lfstack_push(&centrals[s->spanclass].partial, &s->partial);
}

struct mspan *mcentral_pop(spanclass sc)
{
	return span_of(lfstack_pop(&centrals[sc].partial));
}

void mcentral_reset(void)
{
	for (unsigned sc = 0; sc < SPANCLASS_COUNT; sc++)
		lfstack_reset(&centrals[sc].partial);
}

struct mspan *mcentral_top(spanclass sc)
{
	return span_of(lfstack_top(&centrals[sc].partial));
}

struct mspan *mcentral_below(const struct mspan *s)
{
	return span_of(lfstack_below(&s->partial));
}

const char *mcentral_check(spanclass sc)
{
	return lfstack_check(&centrals[sc].partial);
}
