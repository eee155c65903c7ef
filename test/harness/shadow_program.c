// shadow_program.c - programs: made, tried, made shorter, written and read.
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/sizeclass.h"
#include "test/fuzz/fuzz.h"
#include "test/harness/shadow.h"

enum {
	HANG = 600,	     // s; a run that takes longer fails
	SHRINK_SECONDS = 60, // no more pieces are taken out after that
	FUZZ_OPS = 400,	     // a longer input is cut here
	FUZZ_FAULTS = 4,     // before the heap is made, at most
	LARGE_STEPS = 6,     // sizes of large objects: 32 KiB << 0 .. 5
};

static const char file_name[] = "stress_shadow.ops";

// clang-format off
const struct shadow_form shadow_forms[SHADOW_KINDS] = {
#define X(name, args, ...) {#name, args, {__VA_ARGS__}},
	SHADOW_OPS(X)
#undef X
};
// clang-format on

// The modes of each driver, as a mask, and their names.
static const unsigned driver_modes[SHADOW_DRIVERS] = {
    [SHADOW_RANDOM] = 1 << SHADOW_ASKED | 1 << SHADOW_STRESS |
		      1 << SHADOW_PACED | 1 << SHADOW_GUARDED |
		      1 << SHADOW_HELPED | 1 << SHADOW_CRAMPED,
    [SHADOW_ORACLE] = 1 << SHADOW_PLAIN,
    [SHADOW_FUZZ] = 1 << SHADOW_BITS,
    [SHADOW_FAULTS] = 1 << SHADOW_BITS,
    [SHADOW_ROOTS] = 1 << SHADOW_BITS,
    [SHADOW_LOOKUP] = 1 << SHADOW_BITS,
};
static const char *const mode_names[SHADOW_MODES] = {
    "collecting when asked",
    "collecting at every allocation",
    "collecting when due",
    "collecting when due, with guards",
    "collecting when due, with helpers",
    "collecting when due, without memory to mark",
    "with the default configuration",
    "with its own configuration",
};

// ---- operations ----

size_t shadow_weigh(enum shadow_driver d, size_t x, enum shadow_kind *kind)
{
	size_t sum = 0;

	for (unsigned k = 0; k < SHADOW_KINDS; k++) {
		unsigned weight = shadow_forms[k].weight[d];

		if (x >= sum && x - sum < weight)
			*kind = (enum shadow_kind)k;
		sum += weight;
	}
	return sum;
}

static bool grow(struct shadow_program *p, struct shadow_op op)
{
	struct shadow_op *grown = realloc(p->op, (p->nops + 1) * sizeof op);

	if (!grown)
		return false;
	p->op = grown;
	p->op[p->nops++] = op;
	return true;
}

void shadow_free(struct shadow_program *p)
{
	free(p->op);
	p->op = NULL;
}

// ---- from bytes ----

static struct shadow_op input_op(struct input *in, enum shadow_kind kind)
{
	const char *args = shadow_forms[kind].args;
	struct shadow_op op = {.kind = kind};

	for (; *args; args++)
		switch (*args) {
		case 'a':
			op.a = input_u8(in);
			break;
		case 'b':
			op.b = input_u8(in);
			break;
		case 'c':
			op.c = input_u8(in);
			break;
		case 'n':
			op.n = (unsigned)input_size(in);
			break;
		default:
			op.n = (unsigned)input_uint(in, 4);
		}
	return op;
}

// every_size makes three objects of each size class, by turns with pointers and
// without, and drops the second.  For some large sizes it does the same twice,
// with pointers and without.
static void every_size(struct shadow_program *p)
{
	struct shadow_op op = {.kind = SHADOW_alloc};

	for (unsigned c = 1; c < SIZECLASS_COUNT + 2 * LARGE_STEPS; c++)
		for (unsigned i = 0; i < 3; i++) {
			unsigned step = (c - SIZECLASS_COUNT) / 2;

			op.b = 6 + c % 2; // rt_alloc_kind
			op.n = c < SIZECLASS_COUNT
				   ? base_min(sizeclass_table[c].size,
					      SHADOW_SMALL)
				   : (SHADOW_SMALL << step) + 1 + 4111 * step;
			SHADOW_TRUE(grow(p, op));
			op.a += i != 1; // the next takes the slot of the second
		}
	op = (struct shadow_op){.kind = SHADOW_gc};
	SHADOW_TRUE(grow(p, op));
}

struct shadow_program shadow_spell(enum shadow_driver driver,
				   const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	struct shadow_program p = {.driver = driver, .actors = 1};
	enum shadow_kind kind = SHADOW_KINDS;
	uint32_t sum = (uint32_t)shadow_weigh(driver, SIZE_MAX, &kind);
	size_t first, nfaults = 0;

	p.config = input_u8(&in);
	p.config |= input_u8(&in) << 8;
	p.align8 = p.config >> 3 & 1;
	p.exact = driver != SHADOW_ROOTS || (p.config >> 7 & 1) == 0;
	if (driver == SHADOW_LOOKUP)
		every_size(&p);
	first = p.nops;
	if (driver == SHADOW_FAULTS)
		nfaults = input_below(&in, FUZZ_FAULTS + 1);
	while (p.nops < first + FUZZ_OPS && (p.nops < nfaults || in.left > 0)) {
		kind = SHADOW_fault;
		if (p.nops >= nfaults)
			shadow_weigh(driver, input_below(&in, sum), &kind);
		SHADOW_TRUE(grow(&p, input_op(&in, kind)));
	}
	return p;
}

void shadow_fuzz(enum shadow_driver driver, const uint8_t *data, size_t size)
{
	struct shadow_program p = shadow_spell(driver, data, size);
	struct shadow_result r = {0};

	shadow_run(&p, SHADOW_BITS, &r);
	shadow_free(&p);
}

// ---- as a text ----

bool shadow_write(FILE *file, const struct shadow_program *p)
{
	fprintf(file, "driver %u actors %u align8 %u exact %u config %u\n",
		p->driver, p->actors, p->align8, p->exact, p->config);
	for (size_t i = 0; i < p->nops; i++) {
		const struct shadow_op *op = &p->op[i];

		fprintf(file, "%s %u %u %u %u %u\n",
			shadow_forms[op->kind].name, op->actor, op->a, op->b,
			op->c, op->n);
	}
	return fflush(file) == 0 && !ferror(file);
}

// op_read reads one line.  It returns false at the end, or if it is no
// operation.
static bool op_read(FILE *file, struct shadow_op *op)
{
	unsigned kind = 0;
	char name[16];

	if (fscanf(file, "%15s %u %u %u %u %u", name, &op->actor, &op->a,
		   &op->b, &op->c, &op->n) != 6)
		return false;
	while (kind < SHADOW_KINDS &&
	       strcmp(name, shadow_forms[kind].name) != 0)
		kind++;
	op->kind = (enum shadow_kind)kind;
	return kind < SHADOW_KINDS;
}

bool shadow_read(FILE *file, struct shadow_program *p)
{
	struct shadow_op op;
	unsigned driver;

	*p = (struct shadow_program){0};
	if (fscanf(file, "driver %u actors %u align8 %u exact %u config %u",
		   &driver, &p->actors, &p->align8, &p->exact,
		   &p->config) != 5 ||
	    driver >= SHADOW_DRIVERS || p->actors == 0 ||
	    p->actors > (driver < SHADOW_FUZZ ? SHADOW_THREADS : 1))
		return false;
	p->driver = (enum shadow_driver)driver;
	while (op_read(file, &op))
		if (!grow(p, op))
			return false;
	return feof(file) != 0;
}

// ---- in a process of its own ----

// shared returns the result of the process that runs a program.
static struct shadow_result *shared(void)
{
	static struct shadow_result *r;

	if (!r)
		r = mmap(NULL, sizeof *r, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	SHADOW_TRUE(r != MAP_FAILED);
	return r;
}

static RT_NORETURN void run_child(const struct shadow_program *p,
				  enum shadow_mode mode)
{
	struct rlimit none = {0, 0};

	setrlimit(RLIMIT_CORE, &none);
	alarm(HANG);
	shadow_why = shared()->why;
	shadow_run(p, mode, shared());
	_exit(0);
}

static struct shadow_result run_one(const struct shadow_program *p,
				    enum shadow_mode mode)
{
	struct shadow_result *r = shared();
	int status = 0;
	pid_t child;

	memset(r, 0, sizeof *r);
	child = fork();
	if (child == 0)
		run_child(p, mode);
	if (child < 0 || waitpid(child, &status, 0) != child)
		snprintf(r->why, sizeof r->why, "no process");
	else if (r->why[0] == '\0' && WIFSIGNALED(status))
		snprintf(r->why, sizeof r->why, "signal %d", WTERMSIG(status));
	r->ok = r->ok && status == 0;
	return *r;
}

struct shadow_verdict shadow_try(const struct shadow_program *p, unsigned modes)
{
	struct shadow_verdict v = {0};
	uint64_t hash = 0;
	bool any = false;

	for (unsigned mode = 0; mode < SHADOW_MODES; mode++) {
		if (!(modes & driver_modes[p->driver] & 1U << mode))
			continue;
		v.last = run_one(p, (enum shadow_mode)mode);
		if (!v.last.ok) {
			v.modes = 1U << mode;
			return v;
		}
		if (any && v.last.hash != hash) {
			v.modes = SHADOW_ALL;
			snprintf(v.last.why, sizeof v.last.why,
				 "ends with %#llx, not %#llx",
				 (unsigned long long)v.last.hash,
				 (unsigned long long)hash);
			return v;
		}
		hash = v.last.hash;
		any = true;
	}
	return v;
}

void shadow_count_did(struct shadow_did *did, const struct shadow_result *r)
{
	for (unsigned k = 0; k < SHADOW_KINDS; k++)
		did->n[k] += r->did[k];
}

// A sync is no operation of an actor.
unsigned shadow_never_did(enum shadow_driver d, const struct shadow_did *did)
{
	unsigned missing = 0;

	for (unsigned k = 0; k < SHADOW_KINDS; k++)
		if (k != SHADOW_sync && shadow_forms[k].weight[d] != 0 &&
		    did->n[k] == 0) {
			fprintf(stderr, "shadow: no %s was done\n",
				shadow_forms[k].name);
			missing++;
		}
	return missing;
}

// ---- making a program shorter ----

static uint64_t now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec;
}

// without returns p without n operations, of which from is the first.
static struct shadow_program without(const struct shadow_program *p,
				     size_t from, size_t n)
{
	struct shadow_program q = *p;

	q.op = malloc((p->nops + 1) * sizeof *q.op);
	SHADOW_TRUE(q.op != NULL);
	q.nops = p->nops - n;
	memcpy(q.op, p->op, from * sizeof *q.op);
	memcpy(q.op + from, p->op + from + n, (q.nops - from) * sizeof *q.op);
	return q;
}

// take_out drops pieces of n operations as long as p still fails without them.
// It returns true if it dropped some.
static bool take_out(struct shadow_program *p, size_t n, unsigned modes,
		     uint64_t deadline)
{
	bool some = false;

	for (size_t from = 0; from + n <= p->nops && now_s() < deadline;) {
		struct shadow_program q = without(p, from, n);

		if (shadow_try(&q, modes).modes == 0) {
			shadow_free(&q);
			from += n;
			continue;
		}
		shadow_free(p);
		*p = q;
		some = true;
	}
	return some;
}

void shadow_shrink(struct shadow_program *p, unsigned modes)
{
	uint64_t deadline = now_s() + SHRINK_SECONDS;

	for (size_t n = p->nops / 2; n > 1; n /= 2)
		take_out(p, n, modes, deadline);
	while (take_out(p, 1, modes, deadline))
		;
}

static void tell(const struct shadow_program *p, const struct shadow_verdict *v)
{
	unsigned mode = 0;

	while (mode < SHADOW_MODES - 1 && v->modes != 1U << mode)
		mode++;
	fprintf(stderr,
		"shadow: %zu operations, driver %u, %u actors, align8 %u, "
		"exact %u, %s: %s\n",
		p->nops, p->driver, p->actors, p->align8, p->exact,
		v->modes == SHADOW_ALL ? "in all modes" : mode_names[mode],
		v->last.why);
}

void shadow_report(struct shadow_program *p, struct shadow_verdict v)
{
	FILE *file;

	tell(p, &v);
	shadow_shrink(p, v.modes);
	v = shadow_try(p, v.modes);
	tell(p, &v);
	file = fopen(file_name, "w");
	if (file && shadow_write(file, p))
		fprintf(stderr, "shadow: run again with: stress_shadow %s\n",
			file_name);
	if (file)
		fclose(file);
}
