// shadow_random.c - random programs.
#include <stdlib.h>

#include "test/harness/shadow.h"
#include "test/harness/suite.h"

static unsigned random_size(struct rng *r, enum shadow_driver d)
{
	static const struct {
		unsigned permille[2];
		unsigned from, n;
	} size[] = {
	    {{300, 350}, 1, 15},       {{300, 0}, 1, 64},
	    {{320, 450}, 1, 1024},     {{70, 160}, 1, 32760},
	    {{10, 35}, 32000, 120000}, {{0, 5}, 200000, 800000},
	};
	uint64_t x = rng_below(r, 1000);
	unsigned i = 0;

	while (x >= size[i].permille[d])
		x -= size[i++].permille[d];
	return size[i].from + (unsigned)rng_below(r, size[i].n);
}

static struct shadow_op random_op(struct rng *r, enum shadow_driver d,
				  size_t sum)
{
	struct shadow_op op = {.kind = SHADOW_sync};

	shadow_weigh(d, rng_below(r, sum), &op.kind);
	op.actor = (unsigned)rng_below(r, SHADOW_THREADS);
	op.a = (unsigned)rng_below(r, 1000);
	op.b = (unsigned)rng_below(r, 1000);
	op.c = (unsigned)rng_below(r, 1000);
	op.n = random_size(r, d);
	return op;
}

struct shadow_program shadow_random(struct rng *r, enum shadow_driver driver,
				    size_t nops, size_t sync_every)
{
	struct shadow_program p = {.driver = driver, .actors = 1, .nops = nops};
	enum shadow_kind kind = SHADOW_KINDS;
	size_t sum = shadow_weigh(driver, SIZE_MAX, &kind);

	p.op = malloc((nops + 1) * sizeof *p.op);
	SHADOW_TRUE(p.op != NULL);
	for (size_t i = 0; i < nops; i++) {
		p.op[i] = random_op(r, driver, sum);
		if (i % sync_every == sync_every - 1)
			p.op[i].kind = SHADOW_sync;
	}
	return p;
}
