// stress_shadow - does the heap hold exactly what a copy of it holds?
//
// Random programs (shadow.h) of one to eight actors are run, each six times.
// One run collects only where the program says so, one at every allocation, and
// one as the pacer says.  Three more collect as the pacer says: one with guards
// behind objects, one with helpers, and one without memory to mark.  Every run
// must pass its checks, and all six must end with the same hash.
//
// A program that fails is made as short as possible and written to a file, and
// the command that runs it again is printed.  That this works is tested first,
// on programs with an error in them.
//
// stress_shadow FILE runs a written program.  stress_shadow ops FILE runs an
// input of the fuzz target ops; faults, roots and lookup are other targets.  A
// program that fails is made short, too.  RT_SEED replays the random numbers,
// RT_STRESS_OPS=n changes how many operations the programs have, and
// RT_STRESS_SECONDS=n makes the program run for that long.
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "test/harness/shadow.h"
#include "test/harness/suite.h"

enum {
	SANITIZED = RT_ASAN || RT_TSAN,
	ALL_OPS = SANITIZED ? 4500 : 168000, // each is run MODES times
	PROGRAM_OPS = SANITIZED ? 1000 : 8000,
	SYNC_EVERY = 500,
	SHORT_OPS = 400, // of a program with an error
	SHORTEST = 4,	 // at most so many of them are left
	MODES = 6,	 // that each program is run in
	// So many operations contain every sort of operation.  The rarest sort
	// is one operation in 8000, and only single actors do it.
	COVERING_OPS = 168000,
};

static struct shadow_program random_program(struct rng *r, unsigned i,
					    size_t nops)
{
	struct shadow_program p =
	    shadow_random(r, SHADOW_RANDOM, nops, SYNC_EVERY);

	p.actors = 1 + i % SHADOW_THREADS;
	p.align8 = i / SHADOW_THREADS % 2;
	p.exact = i % 3 != 2;
	// Which layouts and flags the kinds have, and the format on stacks.
	p.config = i % 256 | i % SHADOW_ON_STACKS << 8;
	if (i % 5 != 4)
		p.config |= SHADOW_WITH_FLAGS;
	return p;
}

// ---- the oracle itself ----

// short_enough tells whether nothing is left of a program but an error and what
// the error needs.
static bool short_enough(const struct shadow_program *p, enum shadow_kind error)
{
	for (size_t i = 0; i < p->nops; i++)
		if (p->op[i].kind == error)
			return p->nops <= SHORTEST;
	return false;
}

// plant puts an error in the middle of a program.  Before it the same actor
// makes an object in its slot.  After it the actor checks the object, or drops
// it if the error is a leak.
static void plant(struct shadow_program *p, enum shadow_kind error)
{
	struct shadow_op *op = &p->op[p->nops / 2];

	p->exact = 1;
	op[0].kind = SHADOW_alloc;
	op[0].b = 2; // rt_alloc
	op[0].n = 100;
	op[1] = op[2] = op[0];
	op[1].kind = error;
	op[2].kind = error == SHADOW_leak ? SHADOW_drop : SHADOW_check;
}

// reads_back writes a program and reads it again.
static bool reads_back(const struct shadow_program *p,
		       struct shadow_program *again)
{
	FILE *file = tmpfile();
	bool ok = file && shadow_write(file, p);

	if (ok) {
		rewind(file);
		ok = shadow_read(file, again) && again->nops == p->nops;
	}
	if (file)
		fclose(file);
	return ok;
}

// finds_error tells whether an error in the middle of a program is found, made
// short, and found again in what was written.
static bool finds_error(struct rng *r, unsigned i, enum shadow_kind error)
{
	struct shadow_program p = random_program(r, i, SHORT_OPS), again = {0};
	struct shadow_verdict v;
	bool ok;

	plant(&p, error);
	v = shadow_try(&p, SHADOW_ALL);
	ok = v.modes != 0;
	if (ok)
		shadow_shrink(&p, v.modes);
	ok = ok && short_enough(&p, error) && reads_back(&p, &again) &&
	     shadow_try(&again, v.modes).modes == v.modes;
	if (!ok)
		fprintf(stderr,
			"stress_shadow: %s, modes %#x, %zu operations left, "
			"%s\n",
			shadow_forms[error].name, v.modes, p.nops, v.last.why);
	shadow_free(&p);
	shadow_free(&again);
	return ok;
}

static unsigned test_oracle(struct rng *r, unsigned *tests)
{
	static const enum shadow_kind errors[] = {SHADOW_lose, SHADOW_scribble,
						  SHADOW_leak};
	static const unsigned programs[] = {0, 2};
	unsigned failed = 0;

	for (size_t e = 0; e < RT_ARRAY_LEN(errors); e++)
		for (size_t i = 0; i < RT_ARRAY_LEN(programs); i++) {
			failed += !finds_error(r, programs[i], errors[e]);
			++*tests;
		}
	return failed;
}

// ---- main ----

// load reads a program: a text, or an input of a fuzz target.
static bool load(struct shadow_program *p, const char *target, FILE *file)
{
	static const char *const targets[SHADOW_DRIVERS] = {
	    [SHADOW_FUZZ] = "ops",
	    [SHADOW_FAULTS] = "faults",
	    [SHADOW_ROOTS] = "roots",
	    [SHADOW_LOOKUP] = "lookup",
	};
	static uint8_t data[1 << 20];
	unsigned d = SHADOW_FUZZ;

	if (!target)
		return shadow_read(file, p);
	while (d < SHADOW_DRIVERS && strcmp(target, targets[d]) != 0)
		d++;
	if (d == SHADOW_DRIVERS)
		return false;
	*p = shadow_spell((enum shadow_driver)d, data,
			  fread(data, 1, sizeof data, file));
	return true;
}

static int replay(const char *target, const char *name)
{
	struct shadow_program p = {0};
	struct shadow_verdict v;
	FILE *file = fopen(name, "r");
	bool ok = file && load(&p, target, file);

	if (file)
		fclose(file);
	if (!ok) {
		fprintf(stderr, "stress_shadow: %s is no program\n", name);
		return 2;
	}
	v = shadow_try(&p, SHADOW_ALL);
	if (v.modes != 0)
		shadow_report(&p, v);
	printf("stress_shadow: %s\n", v.modes ? v.last.why : "passes");
	shadow_free(&p);
	return v.modes != 0;
}

int main(int argc, char **argv)
{
	time_t deadline = time(NULL);
	uint64_t ops = env_u64("RT_STRESS_OPS", ALL_OPS), done = 0;
	unsigned tests = 0, failed = 0;
	struct shadow_did did = {0};
	bool found = false;
	struct rng r;

	if (argc == 2 || argc == 3)
		return replay(argc == 3 ? argv[1] : NULL, argv[argc - 1]);
	deadline += (time_t)env_u64("RT_STRESS_SECONDS", 0);
	rng_init(&r, "stress_shadow");
	failed = test_oracle(&r, &tests);
	for (unsigned i = 0; !found && (done < ops || time(NULL) < deadline);
	     i++, tests++) {
		struct shadow_program p = random_program(&r, i, PROGRAM_OPS);
		struct shadow_verdict v = shadow_try(&p, SHADOW_ALL);

		shadow_count_did(&did, &v.last);
		done += p.nops;
		found = v.modes != 0;
		if (found)
			shadow_report(&p, v);
		failed += found;
		shadow_free(&p);
	}
	if (!found && done >= COVERING_OPS) {
		failed += shadow_never_did(SHADOW_RANDOM, &did) != 0;
		tests++;
	}
	printf("stress_shadow: %llu operations, each in %d modes\n",
	       (unsigned long long)done, MODES);
	printf("stress_shadow: %u passed, %u failed\n", tests - failed, failed);
	return failed != 0;
}
