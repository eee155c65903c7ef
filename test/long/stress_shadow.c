// stress_shadow - does the heap hold exactly what a copy of it holds?
//
// Random programs (shadow.h) of one to eight threads, each run four times:
// collecting only where the program says so, at every allocation, as the pacer
// says, and so again with guards behind objects.  Every run must pass its
// checks, and all must end alike.
//
// A program that fails is made as short as it goes, written to a file, and the
// command that runs it again is printed.  That this works is tested first, on
// programs with a fault in them.
//
// stress_shadow FILE runs a written program.  RT_SEED replays the random
// numbers, RT_STRESS_OPS=n changes how many operations are run in all,
// RT_STRESS_SECONDS=n goes on for that long.
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/base.h"
#include "test/harness/shadow.h"
#include "test/harness/suite.h"

enum {
	SANITIZED = RT_ASAN || RT_TSAN,
	ALL_OPS = SANITIZED ? 27000 : 1000000,
	PROGRAM_OPS = SANITIZED ? 1000 : 8000,
	SYNC_EVERY = 500,
	SHORT_OPS = 400, // of a program with a fault
	SHORTEST = 4,	 // of those it is made of, at most
	HANG = 600,	 // s; a run that takes longer fails
};

enum mode { MODE_ASKED, MODE_STRESS, MODE_PACED, MODE_GUARDED, MODES };

static const char *const mode_names[MODES] = {
    "collecting when asked",
    "collecting at every allocation",
    "collecting when due",
    "collecting when due, with guards",
};

// What became of a program.
struct verdict {
	unsigned modes; // bit i: mode i failed; all: they end differently
	char why[400];
};
enum { ALL_MODES = (1 << MODES) - 1 };

static const char *self;
static struct shadow_result *shared; // with the process that runs a program
static const char file_name[] = "stress_shadow.ops";

// ---- running a program ----

static rt_config config_of(enum mode mode)
{
	rt_config c;

	rt_config_init(&c);
	c.double_check = RT_CHECK_FATAL;
	c.gc_percent = mode >= MODE_PACED ? 30 : -1;
	c.heap_min = 256 << 10;
	c.heap_headroom = 0;
	c.gcstress = mode == MODE_STRESS;
	c.poison = mode == MODE_STRESS;
	c.guard_large = mode == MODE_GUARDED;
	c.guard_small = mode == MODE_GUARDED ? 2 : 0;
	c.checkmark = c.clobberfree = mode != MODE_ASKED;
	return c;
}

static RT_NORETURN void run_child(const struct shadow_program *p,
				  enum mode mode)
{
	struct rlimit none = {0, 0};

	setrlimit(RLIMIT_CORE, &none);
	alarm(HANG);
	shadow_run(p, config_of(mode), shared);
}

static struct shadow_result run(const struct shadow_program *p, enum mode mode)
{
	int status = 0;
	pid_t child;

	memset(shared, 0, sizeof *shared);
	child = fork();
	if (child == 0)
		run_child(p, mode);
	if (child < 0 || waitpid(child, &status, 0) != child)
		snprintf(shared->why, sizeof shared->why, "no process");
	else if (shared->why[0] == '\0' && WIFSIGNALED(status))
		snprintf(shared->why, sizeof shared->why, "signal %d",
			 WTERMSIG(status));
	shared->ok = shared->ok && status == 0;
	return *shared;
}

// judge runs a program in the modes of a mask until it fails.
static struct verdict judge(const struct shadow_program *p, unsigned mask)
{
	struct verdict v = {0};
	uint64_t hash = 0;
	bool any = false;

	for (unsigned mode = 0; mode < MODES; mode++) {
		struct shadow_result r;

		if (!(mask >> mode & 1))
			continue;
		r = run(p, (enum mode)mode);
		if (!r.ok) {
			v.modes = 1U << mode;
			snprintf(v.why, sizeof v.why, "%s: %s",
				 mode_names[mode], r.why);
			return v;
		}
		if (any && r.hash != hash) {
			v.modes = ALL_MODES;
			snprintf(v.why, sizeof v.why,
				 "%s: ends with %#llx, not %#llx",
				 mode_names[mode], (unsigned long long)r.hash,
				 (unsigned long long)hash);
			return v;
		}
		hash = r.hash;
		any = true;
	}
	return v;
}

// ---- making a program shorter ----

// without is p less n operations from one on.
static struct shadow_program without(const struct shadow_program *p,
				     size_t from, size_t n)
{
	struct shadow_program q = *p;

	q.op = malloc((p->nops + 1) * sizeof *q.op);
	if (!q.op)
		abort();
	q.nops = p->nops - n;
	memcpy(q.op, p->op, from * sizeof *q.op);
	memcpy(q.op + from, p->op + from + n, (q.nops - from) * sizeof *q.op);
	return q;
}

// take_out drops pieces of n operations that p fails without, too; true: some.
static bool take_out(struct shadow_program *p, size_t n, unsigned modes)
{
	bool some = false;

	for (size_t from = 0; from + n <= p->nops;) {
		struct shadow_program q = without(p, from, n);

		if (judge(&q, modes).modes == 0) {
			free(q.op);
			from += n;
			continue;
		}
		free(p->op);
		*p = q;
		some = true;
	}
	return some;
}

// shrink leaves a program that fails in the modes given and would not if any
// one operation were missing.
static void shrink(struct shadow_program *p, unsigned modes)
{
	for (size_t n = p->nops / 2; n > 1; n /= 2)
		take_out(p, n, modes);
	while (take_out(p, 1, modes))
		;
}

// ---- files ----

static bool save(const char *name, const struct shadow_program *p)
{
	FILE *file = fopen(name, "w");
	bool ok = file && shadow_write(file, p);

	return file && fclose(file) == 0 && ok;
}

static bool load(const char *name, struct shadow_program *p)
{
	FILE *file = fopen(name, "r");
	bool ok = file && shadow_read(file, p);

	if (file)
		fclose(file);
	return ok;
}

// report makes a failing program short and says how to run it again.
static void report(struct shadow_program *p, const struct verdict *v)
{
	struct verdict last;

	fprintf(stderr, "stress_shadow: %u threads, align8 %u, exact %u, %s\n",
		p->threads, p->align8, p->exact, v->why);
	shrink(p, v->modes);
	last = judge(p, v->modes);
	fprintf(stderr, "stress_shadow: %zu operations are left, %s\n", p->nops,
		last.why);
	if (save(file_name, p))
		fprintf(stderr, "stress_shadow: run again with: %s %s\n", self,
			file_name);
}

// ---- random programs ----

static unsigned random_size(struct rng *r)
{
	uint64_t x = rng_below(r, 1000);

	if (x < 600)
		return 1 + (unsigned)rng_below(r, 64);
	if (x < 920)
		return 1 + (unsigned)rng_below(r, 1024);
	if (x < 990)
		return 1 + (unsigned)rng_below(r, 32760);
	return 32000 + (unsigned)rng_below(r, 120000);
}

// Of a thousand operations.
static const unsigned weights[SHADOW_KINDS] = {
    [SHADOW_ALLOC] = 400,   [SHADOW_STORE] = 220,  [SHADOW_LOAD] = 90,
    [SHADOW_COPY] = 60,	    [SHADOW_DROP] = 50,	   [SHADOW_CLEAR] = 4,
    [SHADOW_CHECK] = 124,   [SHADOW_GIVE] = 10,	   [SHADOW_GC] = 2,
    [SHADOW_RELEASE] = 1,   [SHADOW_PERCENT] = 2,  [SHADOW_STATS] = 3,
    [SHADOW_VERIFY] = 1,    [SHADOW_WALK] = 2,	   [SHADOW_STOP] = 2,
    [SHADOW_STACK] = 8,	    [SHADOW_DETACH] = 3,   [SHADOW_REGION] = 4,
    [SHADOW_SAFEPOINT] = 5, [SHADOW_ROOTS] = 4,	   [SHADOW_REFUSED] = 3,
    [SHADOW_FORK] = 1,	    [SHADOW_HANDLERS] = 1,
};

static enum shadow_kind random_kind(struct rng *r)
{
	uint64_t x = rng_below(r, 1000);
	unsigned kind = 0;

	while (x >= weights[kind])
		x -= weights[kind++];
	return (enum shadow_kind)kind;
}

static struct shadow_op random_op(struct rng *r)
{
	struct shadow_op op = {.kind = random_kind(r)};

	op.thread = (unsigned)rng_below(r, SHADOW_THREADS);
	op.a = (unsigned)rng_below(r, 1000);
	op.b = (unsigned)rng_below(r, 1000);
	op.c = (unsigned)rng_below(r, 1000);
	op.n = random_size(r);
	return op;
}

static struct shadow_program random_program(struct rng *r, unsigned i,
					    size_t nops)
{
	struct shadow_program p = {
	    .threads = 1 + i % SHADOW_THREADS,
	    .align8 = i / SHADOW_THREADS % 2,
	    .exact = i % 3 != 2,
	    .nops = nops,
	    .op = malloc((nops + 1) * sizeof(struct shadow_op)),
	};

	if (!p.op)
		abort();
	for (size_t k = 0; k < nops; k++) {
		p.op[k] = random_op(r);
		if (k % SYNC_EVERY == SYNC_EVERY - 1)
			p.op[k].kind = SHADOW_SYNC;
	}
	return p;
}

// ---- the oracle itself ----

static size_t count(const struct shadow_program *p, enum shadow_kind kind)
{
	size_t n = 0;

	for (size_t i = 0; i < p->nops; i++)
		n += p->op[i].kind == kind;
	return n;
}

// short_enough: what is left of a program is a fault and what it needs.
static bool short_enough(const struct shadow_program *p, enum shadow_kind fault)
{
	return p->nops <= SHORTEST && count(p, fault) >= 1;
}

// plant puts a fault in the middle of a program.  Before it the same thread
// makes an object in its slot, after it the object is looked at; one that
// leaks is let go instead.
static void plant(struct shadow_program *p, enum shadow_kind fault)
{
	struct shadow_op *op = &p->op[p->nops / 2];

	p->exact = 1;
	op[0].kind = SHADOW_ALLOC;
	op[0].b = 2; // rt_alloc
	op[0].n = 100;
	op[1] = op[2] = op[0];
	op[1].kind = fault;
	op[2].kind = fault == SHADOW_LEAK ? SHADOW_DROP : SHADOW_CHECK;
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

// finds_fault tells whether a fault in the middle of a program is found, made
// short, and found again in what was written.
static bool finds_fault(struct rng *r, unsigned i, enum shadow_kind fault)
{
	struct shadow_program p = random_program(r, i, SHORT_OPS);
	struct shadow_program again = {0};
	struct verdict v;
	bool ok;

	plant(&p, fault);
	v = judge(&p, ALL_MODES);
	ok = v.modes != 0;
	if (ok)
		shrink(&p, v.modes);
	ok = ok && short_enough(&p, fault) && reads_back(&p, &again) &&
	     judge(&again, v.modes).modes == v.modes;
	if (!ok)
		fprintf(stderr,
			"stress_shadow: fault %u, modes %u, %zu operations "
			"left, %s\n",
			fault, v.modes, p.nops, v.why);
	free(p.op);
	free(again.op);
	return ok;
}

static unsigned test_oracle(struct rng *r, unsigned *tests)
{
	static const enum shadow_kind faults[] = {SHADOW_LOSE, SHADOW_SCRIBBLE,
						  SHADOW_LEAK};
	static const unsigned programs[] = {0, 2};
	unsigned failed = 0;

	for (size_t f = 0; f < RT_ARRAY_LEN(faults); f++)
		for (size_t i = 0; i < RT_ARRAY_LEN(programs); i++) {
			failed += !finds_fault(r, programs[i], faults[f]);
			++*tests;
		}
	return failed;
}

// ---- main ----

static int replay(const char *name)
{
	struct shadow_program p;
	struct verdict v;

	if (!load(name, &p)) {
		fprintf(stderr, "stress_shadow: %s is no program\n", name);
		return 2;
	}
	v = judge(&p, ALL_MODES);
	printf("stress_shadow: %s\n", v.modes ? v.why : "passes");
	return v.modes != 0;
}

static uint64_t now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec;
}

int main(int argc, char **argv)
{
	uint64_t seconds = env_u64("RT_STRESS_SECONDS", 0);
	uint64_t ops = env_u64("RT_STRESS_OPS", ALL_OPS);
	uint64_t deadline = now_s() + seconds, done = 0;
	unsigned tests = 0, failed = 0;
	bool found = false;
	struct rng r;

	self = argv[0];
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 2;
	if (argc == 2)
		return replay(argv[1]);
	rng_init(&r, "stress_shadow");
	failed = test_oracle(&r, &tests);
	for (unsigned i = 0;
	     !found && (done < ops || (seconds != 0 && now_s() < deadline));
	     i++, tests++) {
		struct shadow_program p = random_program(&r, i, PROGRAM_OPS);
		struct verdict v = judge(&p, ALL_MODES);

		done += MODES * p.nops;
		found = v.modes != 0;
		if (found)
			report(&p, &v);
		failed += found;
		free(p.op);
	}
	printf("stress_shadow: %llu operations\n", (unsigned long long)done);
	printf("stress_shadow: %u passed, %u failed\n", tests - failed, failed);
	return failed != 0;
}
