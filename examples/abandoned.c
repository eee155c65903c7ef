// abandoned.c - fibers that nothing refers to are collected.
// The frames of each refer to its object, but its stack belongs to that.
#define _GNU_SOURCE 1 // for REG_RSP
#include <rt/rt.h>

#include <err.h>
#include <stdio.h>
#include <sys/mman.h>
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
	munmap(f->context.uc_stack.ss_sp, STACK);
	alive--;
}

static void run(void)
{
	struct fiber *volatile me = starting;

	for (;;)
		swapcontext(&me->context, &scheduler);
}

static rt_stack *know(ucontext_t *c, char *lo)
{
	rt_stack_desc d;

	rt_stack_desc_init(&d);
	d.lo = lo;
	d.hi = lo + STACK;
#if defined(__x86_64__)
	d.sp = (void *const *)&c->uc_mcontext.gregs[REG_RSP];
#else
	d.sp = (void *const *)&c->uc_mcontext.sp;
#endif
	d.regs_lo = c;
	d.regs_hi = c + 1;
	d.flags = RT_STACK_OWNED;
	return rt_stack_register(&d);
}

static void begin_one(void)
{
	void *lo = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct fiber *f = (struct fiber *)rt_alloc_of(FIBER, sizeof *f);

	starting = f;
	if (lo == MAP_FAILED || !f || getcontext(&f->context) != 0 ||
	    !(f->stack = know(&f->context, (char *)lo)))
		errx(1, "no memory");
	f->context.uc_stack.ss_sp = lo;
	f->context.uc_stack.ss_size = STACK;
	makecontext(&f->context, run, 0);
	swapcontext(&scheduler, &f->context);
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
