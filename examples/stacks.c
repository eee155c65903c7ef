// stacks.c - a host that makes its own stacks, and registers none.
//
// A root callback tells on which of them the thread runs, and what the other
// holds.  A switch calls nothing.
#include <rt/rt.h>

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

enum { STACK = 256 << 10, WORDS = 1000 };

struct task {
	ucontext_t context;
	char *lo;
};

static ucontext_t outside;
static struct task maker, user, *now = &maker;
static char *word; // from one to the other
static int used;

static void must(int error)
{
	if (error < 0)
		errx(1, "%s", rt_strerror(error));
}

static void tell(rt_tracer *t, void *arg)
{
	struct task *other = now == &maker ? &user : &maker;
	rt_thread_set_stack_of((rt_thread *)arg, now->lo, now->lo + STACK);
	rt_trace_words(t, &other->context, &other->context + 1);
	rt_trace_words(t, other->lo, other->lo + STACK);
	rt_trace_ptr(t, word);
}

static void use(void)
{
	for (;;) {
		char *mine = word; // only this stack refers to it
		word = NULL;
		must(rt_gc());
		used += mine[0] == 'w';
		now = &maker;
		swapcontext(&user.context, &now->context);
	}
}

static void make(void)
{
	void *lo, *hi;
	must(rt_thread_attach_stack(maker.lo, maker.lo + STACK, 0));
	must(rt_thread_stack(rt_thread_self(), &lo, &hi));
	printf("runs on its own stack: %d\n", lo == maker.lo);
	must(rt_thread_set_stack(lo, hi)); // as the callback will
	must(rt_roots_add_fn(tell, rt_thread_self(), "stacks"));
	for (int i = 0; i < WORDS; i++) {
		word = rt_strdup("word");
		must(word ? RT_OK : RT_ENOMEM);
		now = &user;
		swapcontext(&maker.context, &now->context);
	}
	printf("used %d\n", used);
	must(rt_fini());
}

static void prepare(struct task *t, void (*fn)(void))
{
	t->lo = (char *)calloc(1, STACK);
	must(t->lo ? RT_OK : RT_ENOMEM);
	getcontext(&t->context);
	t->context.uc_stack.ss_sp = t->lo;
	t->context.uc_stack.ss_size = STACK;
	t->context.uc_link = &outside;
	makecontext(&t->context, fn, 0);
}

int main(void)
{
	rt_config c;
	rt_config_init(&c);
	c.no_attach = 1; // it leaves the stack that the system knows
	must(rt_init(&c));
	prepare(&maker, make);
	prepare(&user, use);
	swapcontext(&outside, &maker.context);
	return fflush(stdout) ? 1 : 0;
}
