// scanstats.c - counts the living objects of each size class.
#include "gc/cycle/scanstats.h"

#include "runtime/os/throw.h"
#include "runtime/world/stw.h"
#include "runtime/spans/deadbits.h"
#include "runtime/spans/mheap.h"
#include "gc/mark/layout.h"

// count_live counts the living objects of a span, which may be unswept.  The
// dead that wait for their drop do not count.
static uint32_t count_live(const struct mspan *s)
{
	unsigned line = epoch_alloc_line(epoch_sweepgen());
	bool drops = deadbits_span_has(s);
	uint32_t n = 0;

	for (unsigned w = 0; w < s->nwords; w++) {
		uint64_t dead = drops ? deadbits_dead(deadbits_word(s, w)) : 0;

		n += bits_count(
		    atomic_u64_load_relaxed(mspan_lineword(s, line, w)) &
		    ~dead);
	}
	return n;
}

static void count_span(struct scanstats *all, const struct mspan *s)
{
	enum scanstats_sort sort = layout_scanned(spanclass_kind(s->spanclass))
				       ? SCANSTATS_SCANNED
				       : SCANSTATS_NOSCAN;
	uint32_t live = count_live(s);

	RT_ASSERT(!s->cached);
	if (live == 0)
		return;
	all->objects[sort][s->sizeclass] += live;
	all->spans[sort][s->sizeclass]++;
	if (mspan_is_large(s))
		all->large_bytes[sort] += s->elemsize;
}

void scanstats_count(struct scanstats *all)
{
	uint64_t page = 0;
	const struct mspan *s;

	RT_ASSERT(stw_stopped());
	*all = (struct scanstats){0};
	// A span that is not for objects has none.
	while ((s = mheap_next_span(&page)) != NULL)
		count_span(all, s);
}

void scanstats_class(const struct scanstats *s, unsigned class,
		     struct scanstats_sums *sums)
{
	for (unsigned sort = 0; sort < SCANSTATS_SORTS; sort++) {
		uint64_t n = s->objects[sort][class];

		sums->objects[sort] += n;
		sums->spans[sort] += s->spans[sort][class];
		sums->bytes[sort] += class == 0
					 ? s->large_bytes[sort]
					 : n * sizeclass_table[class].size;
	}
}
