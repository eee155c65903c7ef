// scavpace.c - adds up work, and computes sleeps.
#include "gc/cycle/scavpace.h"

enum { PAGE_NS = 10000 }; // to release a physical page, if there is no clock

void scavpace_init(struct scavpace *s)
{
	*s = (struct scavpace){
	    // Go's numbers, found by its authors (Ziegler and Nichols).
	    .controller = {.gain = 0.3375,
			   .integral_ns = 3.2e6,
			   .reset_ns = 1e9,
			   .least = 0.001,
			   .most = 1000},
	    .ratio = SCAVPACE_FIRST_RATIO,
	};
}

void scavpace_add(struct scavpace *s, uint64_t bytes, uint64_t ns,
		  size_t page_size)
{
	s->worked += ns != 0 ? ns : bytes / page_size * PAGE_NS;
}

uint64_t scavpace_sleep(const struct scavpace *s)
{
	double ns = (double)s->worked / s->ratio;

	return ns < 0x1p63 ? (uint64_t)ns : UINT64_C(1) << 63;
}

// adjust asks the controller for the next ratio.
static void adjust(struct scavpace *s, uint64_t slept,
		   const struct scavpace_target *target)
{
	double all = (double)slept + (double)s->worked;
	double share = (double)s->worked / (all * target->nprocs);

	if (picontroller_next(&s->controller, target->share - share, all,
			      &s->ratio))
		return;
	// This may be a passing state.  Until it is over, work little.
	s->ratio = SCAVPACE_FIRST_RATIO;
	s->cooldown = SCAVPACE_COOLDOWN_NS;
}

void scavpace_slept(struct scavpace *s, uint64_t ns,
		    const struct scavpace_target *target)
{
	if (s->cooldown == 0)
		adjust(s, ns, target);
	else
		s->cooldown =
		    base_sub_sat(base_sub_sat(s->cooldown, ns), s->worked);
	s->worked = 0;
}
