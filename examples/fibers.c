// fibers.c - fibers whose stacks are roots: a switch calls nothing.
//
// Each fiber builds a list that only its own stack refers to.
#define _GNU_SOURCE 1 // for REG_RSP
#include <rt/rt.h>

#include <err.h>
#include <stdio.h>
#include <ucontext.h>

enum { FIBERS = 10, CELLS = 1000, STACK = 64 << 10 };

struct cell {
	struct cell *next;
	int number;
};

static char stacks[FIBERS][STACK];
static ucontext_t fibers[FIBERS], scheduler;
static int sums[FIBERS], running, left = FIBERS;

static void must(int error)
{
	if (error < 0)
		errx(1, "%s", rt_strerror(error));
}

static void run(void)
{
	struct cell *list = NULL;
	int me = running;

	for (int i = 0; i < CELLS; i++) {
		struct cell *c = (struct cell *)rt_alloc(sizeof *c);

		must(c ? RT_OK : RT_ENOMEM);
		c->number = i;
		c->next = list;
		list = c;
		swapcontext(&fibers[me], &scheduler);
	}
	for (; list; list = list->next)
		sums[me] += list->number;
	left--;
}

// know registers a stack whose stack pointer and registers are in a context.
// If lo is NULL, the stack is that of this thread.
static void know(ucontext_t *c, char *lo)
{
	rt_stack_desc d;
	rt_stack *s;

	rt_stack_desc_init(&d);
	d.lo = lo;
	d.hi = lo ? lo + STACK : NULL;
#if defined(__x86_64__)
	d.sp = &c->uc_mcontext.gregs[REG_RSP];
#else
	d.sp = &c->uc_mcontext.sp;
#endif
	d.regs_lo = c;
	d.regs_hi = c + 1;
	d.flags = lo ? RT_STACK_DOWN : RT_STACK_THREAD;
	must(rt_stack_register(&d, &s));
}

int main(void)
{
	must(rt_init(NULL));
	know(&scheduler, NULL);
	for (int i = 0; i < FIBERS; i++) {
		getcontext(&fibers[i]);
		fibers[i].uc_stack.ss_sp = stacks[i];
		fibers[i].uc_stack.ss_size = STACK;
		fibers[i].uc_link = &scheduler;
		makecontext(&fibers[i], run, 0);
		know(&fibers[i], stacks[i]);
	}
	for (int turns = 0; left != 0; turns++) {
		if (turns % 100 == 0)
			must(rt_gc());
		running = turns % FIBERS;
		swapcontext(&scheduler, &fibers[running]);
	}
	for (int i = 0; i < FIBERS; i++)
		printf("fiber %d: %d\n", i, sums[i]);
	must(rt_fini());
	return 0;
}
