// stress_oracle - are the statistics right at every moment?
//
// The actors of random programs (shadow.h) allocate, collect, detach and
// attach, and drop what they hold.  Now and then one of them stops the world
// and compares the fast statistics with two others.  One is a recount of the
// stopped heap.  The other is the sum of the ledgers in which each actor counts
// its requests.
//
// RT_SEED replays the random numbers, RT_STRESS_SECONDS=n makes the run longer.
#include <time.h>

#include "test/harness/shadow.h"
#include "test/harness/suite.h"

enum {
	SANITIZED = RT_ASAN || RT_TSAN,
	PROGRAM_OPS = SANITIZED ? 13000 : 210000,
	LONG_OPS = 10 * PROGRAM_OPS, // after the first rounds: older heaps
	SYNC_EVERY = 10000,
	LEAST_COMPARED = 10000, // values, of a whole run
	// Programs of this many operations together do all that
	// shadow_never_did looks for.  A sanitized run has fewer by default.
	COVERING_OPS = 500000,
};

int main(void)
{
	static const unsigned actors[] = {1, 2, 3, 5, 8};
	unsigned rounds = 2 * RT_ARRAY_LEN(actors), failed = 0;
	time_t deadline = time(NULL) + (time_t)env_u64("RT_STRESS_SECONDS", 0);
	uint64_t done = 0, compared = 0, reads = 0;
	struct shadow_did did = {0};
	struct rng r;

	rng_init(&r, "stress_oracle");
	for (unsigned i = 0;
	     i < rounds || (failed == 0 && time(NULL) < deadline); i++) {
		struct shadow_program p = shadow_random(
		    &r, SHADOW_ORACLE, i < rounds ? PROGRAM_OPS : LONG_OPS,
		    SYNC_EVERY);
		struct shadow_verdict v;

		p.actors = actors[i / 2 % RT_ARRAY_LEN(actors)];
		p.align8 = i % 2;
		p.config = i; // which layouts the kinds have
		v = shadow_try(&p, SHADOW_ALL);
		if (v.modes != 0 && failed++ == 0)
			shadow_report(&p, v);
		rounds += i >= rounds;
		done += p.nops;
		compared += v.last.compared.compared;
		reads += v.last.reads;
		shadow_count_did(&did, &v.last);
		shadow_free(&p);
	}
	printf("stress_oracle: %llu values of %llu reads compared\n",
	       (unsigned long long)compared, (unsigned long long)reads);
	if (failed == 0 && (compared < LEAST_COMPARED ||
			    (done >= COVERING_OPS &&
			     shadow_never_did(SHADOW_ORACLE, &did) != 0)))
		failed = 1;
	printf("stress_oracle: %u passed, %u failed\n", rounds - failed,
	       failed);
	return failed != 0;
}
