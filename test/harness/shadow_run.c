// shadow_run.c - a heap, its actors, and their way through a program.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/harness/shadow_actor.h"

struct run run;

static struct actor actors[SHADOW_THREADS];
static pthread_barrier_t meeting;

void shadow_on_fatal(const char *text, void *arg)
{
	(void)arg;
	if (shadow_why)
		snprintf(shadow_why, SHADOW_WHY, "%s", text);
}

// ---- configurations ----

static void config_bits(rt_config *c, unsigned bits)
{
	c->max_heap = MAX_HEAP;
	c->heap_headroom = 0;
	c->heap_min = (size_t)4096 << (bits & 7);
	c->align8 = bits >> 3 & 1;
	c->huge_pages = bits >> 4 & 1;
	c->populate = bits >> 5 & 1;
	c->past_end = bits >> 6 & 1;
	c->sweep = bits >> 7 & 1 ? 2 : 0;
	c->gc_threads = 0;
	c->no_attach = 1;
}

// sweeps returns where a mode sweeps.
static uint8_t sweeps(enum shadow_mode mode)
{
	switch (mode) {
	case SHADOW_PLAIN:
		return 1;
	case SHADOW_STRESS:
	case SHADOW_GUARDED:
	case SHADOW_HELPED:
		return 2;
	default:
		return 0;
	}
}

static const struct shadow_layout *stack_layout(const struct shadow_program *p)
{
	return shadow_on_stacks((p->config >> 8 & 7) % SHADOW_ON_STACKS);
}

static rt_config config_of(const struct shadow_program *p,
			   enum shadow_mode mode)
{
	rt_config c;

	rt_config_init(&c);
	c.sweep = sweeps(mode);
	rt_config_from_env(&c);
	c.double_check = RT_CHECK_FATAL;
	c.scavenge = 0; // a program makes the same calls each time
	c.gc_period_s = 0;
	c.align8 = p->align8 != 0;
	if (stack_layout(p))
		c.stack_format = stack_layout(p)->format;
	if (p->exact)
		c.past_end = 0; // an address on a stack keeps one object
	if (mode == SHADOW_PLAIN)
		return c;
	if (mode == SHADOW_BITS) {
		config_bits(&c, p->config);
		if (p->driver >= SHADOW_ROOTS)
			c.gc_percent = -1; // what is dead can be pointed to
		return c;
	}
	c.gc_percent = mode >= SHADOW_PACED ? 30 : -1;
	c.heap_min = 256 << 10;
	c.heap_headroom = 0;
	c.gcstress = mode == SHADOW_STRESS;
	if (mode == SHADOW_HELPED) {
		c.gcstress = 100; // helpers are called for little work
		c.huge_pages = 1; // and they provide these
	}
	c.poison = mode == SHADOW_STRESS;
	c.guard_large = mode == SHADOW_GUARDED;
	c.guard_small = mode == SHADOW_GUARDED ? 2 : 0;
	c.checkmark = c.clobberfree = mode != SHADOW_ASKED;
	c.gc_threads = mode == SHADOW_HELPED ? 3 : 0;
	return c;
}

// ---- where all meet ----

static void give(const struct shadow_op *op)
{
	const struct actor *from = &actors[op->actor % run.program->actors];

	shadow_set_root(&actors[op->b % run.program->actors],
			op->c % run.nslots,
			shadow_share(from->root[op->a % run.nslots]));
}

// do_met does an operation for which all other actors must wait.
static void do_met(const struct shadow_op *op)
{
	struct actor *a = &actors[op->actor % run.program->actors];

	if (op->kind == SHADOW_kind && !run.wild)
		shadow_change_kind(a, op);
	else if (op->kind == SHADOW_dropnow)
		shadow_drop_now(a, op);
}

// meet ends a part of the program.  While the other actors wait, the first
// actor hands over the gifts of this part, checks everything, and then does the
// operations that drop objects or end and begin kinds.
static void meet(const struct actor *a, size_t begin, size_t end)
{
	SHADOW_OK(rt_blocking_enter());
	pthread_barrier_wait(&meeting);
	if (a->id == 0) {
		SHADOW_OK(rt_blocking_leave());
		for (size_t i = begin; i < end; i++)
			if (run.program->op[i].kind == SHADOW_give)
				give(&run.program->op[i]);
		shadow_check_all();
		for (size_t i = begin; i < end; i++)
			do_met(&run.program->op[i]);
		SHADOW_OK(rt_blocking_enter());
	}
	pthread_barrier_wait(&meeting);
	SHADOW_OK(rt_blocking_leave());
}

// ---- actors ----

static void come(struct actor *a)
{
	shadow_attach(a, false);
	shadow_add_roots(a);
	shadow_add_range(&a->leak, 1, RT_ROOT_EXACT);
	shadow_add_range(a->range[0], RANGE_WORDS, RT_ROOT_EXACT);
	a->times[0][RT_ROOT_EXACT] = 1;
}

static void *act(void *arg)
{
	const struct shadow_program *p = run.program;
	struct actor *a = arg;
	size_t begin = 0;

	shadow_self = a->id;
	shadow_collects = true;
	come(a);
	for (size_t i = 0; i < p->nops; i++) {
		const struct shadow_op *op = &p->op[i];

		if (op->kind == SHADOW_sync) {
			meet(a, begin, i);
			begin = i;
		} else if (op->actor % p->actors == a->id) {
			shadow_do(a, op);
		}
	}
	meet(a, begin, p->nops);
	if (a->id != 0)
		shadow_detach(a);
	return NULL;
}

// act_all runs the first actor on the calling thread.
static void act_all(unsigned n)
{
	pthread_t thread[SHADOW_THREADS];

	pthread_barrier_init(&meeting, NULL, n);
	for (unsigned t = 1; t < n; t++)
		if (pthread_create(&thread[t], NULL, act, &actors[t]) != 0)
			shadow_fail("no thread");
	act(&actors[0]);
	// The others detach on their own, so only exiting is left for them.
	SHADOW_OK(rt_blocking_enter());
	for (unsigned t = 1; t < n; t++)
		pthread_join(thread[t], NULL);
	SHADOW_OK(rt_blocking_leave());
	pthread_barrier_destroy(&meeting);
}

// ---- the heap ----

// NULL in a program that links what ships; see gc/mark/gain.h.
void gain_always(bool on) __attribute__((weak));

// help makes markings call helpers even if these do not pay, or ends that.
static void help(bool on)
{
	if (gain_always)
		gain_always(on);
	else if (on)
		shadow_fail("this program cannot make markings call helpers");
}

// NULL in a program that links what ships; see gc/mark/work.h.
void work_limit(uint32_t nspans) __attribute__((weak));

// cramp refuses markers the memory of work buffers, or permits it again.
static void cramp(bool on)
{
	if (work_limit)
		work_limit(on ? 0 : UINT32_MAX);
	else if (on)
		shadow_fail("this program cannot refuse memory to mark");
}

// begin makes the heap.  An rt_init that fails leaves nothing behind, so begin
// repeats it until the faults are used up.  Before that it does the operations
// called fault at the head of the program.
static void begin(const rt_config *c)
{
	const struct shadow_program *p = run.program;

	for (size_t i = 0; i < p->nops && p->op[i].kind == SHADOW_fault; i++)
		shadow_fault(&p->op[i]);
	rt_set_fatal_handler(shadow_on_fatal, NULL);
	while (!shadow_done(rt_init(c), "rt_init"))
		SHADOW_TRUE(rt_gc() == RT_ESTATE);
	shadow_layouts_begin(p->driver == SHADOW_RANDOM);
	if (c->no_attach)
		shadow_attach(&actors[0], false);
	for (unsigned t = 0; t < p->actors; t++)
		shadow_begin_kinds(&actors[t]);
	if (!run.wild) {
		shadow_begin_owners();
		SHADOW_OK(rt_set_warn_handler(shadow_on_warning, NULL));
	}
	shadow_detach(&actors[0]);
}

static void end(void)
{
	shadow_compare();
	if (run.wild)
		shadow_free_stacks(&actors[0]);
	shadow_healthy();
	SHADOW_OK(rt_fini());
	if (run.may_fail)
		shadow_no_faults();
	shadow_reset((struct shadow_copy_of){0});
}

static bool has_fault(const struct shadow_program *p)
{
	for (size_t i = 0; i < p->nops; i++)
		if (p->op[i].kind == SHADOW_fault)
			return true;
	return false;
}

void shadow_run(const struct shadow_program *p, enum shadow_mode mode,
		struct shadow_result *r)
{
	rt_config c = config_of(p, mode);

	run = (struct run){
	    .program = p,
	    .result = r,
	    .actor = actors,
	    .nslots = p->driver == SHADOW_ORACLE || p->driver == SHADOW_LOOKUP
			  ? SLOTS
			  : FEW_SLOTS,
	    .alone = p->actors == 1,
	    .wild = mode == SHADOW_BITS,
	    .may_fail = has_fault(p),
	    .guarded = c.guard_large != 0,
	    .past_end = c.past_end != 0,
	    .on_stacks = stack_layout(p),
	};
	memset(actors, 0, sizeof actors);
	for (unsigned t = 0; t < p->actors; t++) {
		actors[t].id = t;
		ledger_init(&actors[t].ledger, c.align8);
	}
	shadow_reset((struct shadow_copy_of){
	    .align8 = c.align8 != 0,
	    .guarded = run.guarded,
	    .keeps = p->driver != SHADOW_ORACLE,
	});
	shadow_collects = true;
	cramp(mode == SHADOW_CRAMPED);
	help(mode == SHADOW_HELPED);
	begin(&c);
	act_all(p->actors);
	end();
	for (unsigned t = 0; t < p->actors; t++)
		for (unsigned k = 0; k < SHADOW_KINDS; k++)
			r->did[k] += actors[t].did[k];
	r->ok = true;
}
