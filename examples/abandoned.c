// abandoned.c - fibers that nothing refers to are collected.
// Each fiber's frames refer to its object, but the object owns their stack.
#include <rt/rt.h>

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

enum { FIBERS = 10000, ROUND = 500, STACK = 32 << 10, FIBER = RT_KIND_FIRST };

struct fiber {
	ucontext_t context;
	rt_stack *stack; // NULL: not registered yet
};

static ucontext_t scheduler;
static struct fiber *starting; // a root only while the fiber begins
static int alive, peak;

static void trace(rt_tracer *t, void *obj, size_t size, void *arg)
{
	(void)size, (void)arg;
	rt_trace_stack(t, ((struct fiber *)obj)->stack);
}

static void drop(void *obj, size_t size, void *arg)
{
	struct fiber *f = (struct fiber *)obj;

	(void)size, (void)arg;
	if (rt_stack_unregister(f->stack) != RT_OK)
		errx(1, "a fiber that runs is dead");
	free(f->context.uc_stack.ss_sp);
	alive--;
}

static void run(void)
{
	struct fiber *volatile me = starting;

	for (;;)
		swapcontext(&me->context, &scheduler);
}

// As d.sp is NULL, all of the stack is scanned; fibers.c names the part in use.
static void begin_one(void)
{
	rt_stack_desc d;

	rt_stack_desc_init(&d);
	starting = (struct fiber *)rt_alloc_of(FIBER, sizeof *starting);
	d.lo = calloc(1, STACK);
	d.hi = (char *)d.lo + STACK;
	d.regs_lo = starting;
	d.regs_hi = starting + 1;
	d.flags = RT_STACK_OWNED;
	if (!d.lo || !starting || getcontext(&starting->context) != 0 ||
	    rt_stack_register(&d, &starting->stack) != RT_OK)
		errx(1, "no memory");
	starting->context.uc_stack.ss_sp = d.lo;
	starting->context.uc_stack.ss_size = STACK;
	makecontext(&starting->context, run, 0);
	swapcontext(&scheduler, &starting->context);
	starting = NULL;
	peak = ++alive > peak ? alive : peak;
}

int main(void)
{
	rt_kind_desc d;

	rt_kind_desc_init(&d);
	d.number = FIBER;
	d.layout = RT_LAYOUT_TRACE;
	d.trace = trace;
	d.drop = drop;
	d.flags = RT_KIND_DROP;
	if (rt_init(NULL) || rt_kind_register(&d) != FIBER ||
	    rt_roots_add(&starting, &starting + 1, RT_ROOT_EXACT))
		errx(1, "no heap");
	for (int i = 0; i < FIBERS; i++) {
		begin_one();
		if (i % ROUND == 0 && rt_gc() == RT_OK)
			rt_run_finalizers(0);
	}
	printf("%d fibers, more than %d at once: %s\n", FIBERS, 3 * ROUND,
	       peak > 3 * ROUND ? "yes" : "no");
	return 0;
}
