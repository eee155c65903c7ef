// shadow_thread.c - operations of the thread: what it holds, where it is.
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/os/oscall.h"
#include "test/harness/shadow_actor.h"

enum { CHILD_SECONDS = 60 }; // a child that takes longer hangs

void shadow_attach(struct actor *a, bool bounds)
{
	int flags = run.program->exact ? RT_THREAD_EXACT : 0;
	uintptr_t lo, hi;

	if (bounds && oscall_stack_bounds(&lo, &hi) != 0)
		shadow_fail("a stack without bounds");
	while (!(bounds ? SHADOW_DONE(rt_thread_attach_stack((void *)lo,
							     (void *)hi, flags))
			: SHADOW_DONE(rt_thread_attach(flags))))
		;
	a->self = rt_thread_self();
	ledger_flushed(&a->ledger);
}

void shadow_detach(struct actor *a)
{
	a->self = NULL;
	SHADOW_OK(rt_thread_detach());
}

SHADOW_OP(detach)
{
	shadow_detach(a);
	SHADOW_TRUE(!rt_alloc(64) && rt_gc() == RT_EPERM);
	shadow_attach(a, op->a % 2);
}

static void *in_region(void *arg)
{
	rt_memstats m;

	SHADOW_TRUE(!rt_alloc(16) && rt_gc() == RT_ESTATE);
	SHADOW_OK(rt_read_memstats_live(&m));
	shadow_sums(&m);
	if (run.alone) {
		SHADOW_OK(rt_read_memstats(&m));
		shadow_sums(&m);
		shadow_flushed();
	}
	return arg;
}

SHADOW_OP(region)
{
	SHADOW_TRUE(rt_call_blocking(in_region, a) == a);
	SHADOW_OK(rt_blocking_enter());
	in_region(a);
	SHADOW_OK(rt_blocking_leave());
}

SHADOW_OP(safepoint)
{
	shadow_poll();
}

// ---- frames, and stretches without collection ----

void *shadow_take_base(struct actor *a, unsigned i)
{
	const struct shadow_node *o = a->root[i].to;

	a->slot[i] = 0;
	return o ? (void *)o->at : NULL;
}

void shadow_put_back(struct actor *a, unsigned i, const void *base)
{
	SHADOW_TRUE(!base || rt_is_heap(base));
	a->slot[i] = shadow_value(a->root[i]);
}

SHADOW_OP(frame)
{
	unsigned i = op->a % run.nslots, k = (i + 1) % run.nslots;
	void *first = shadow_take_base(a, i), *second = NULL;
	RT_FRAME(&first, &second);

	second = shadow_take_base(a, k);
	shadow_gc();
	shadow_put_back(a, i, first);
	shadow_put_back(a, k, second);
}

// The static data of this program includes the library's.  It would keep
// objects alive that other actors expect to die, so the actor must be alone.
SHADOW_OP(statics)
{
	static volatile uintptr_t word;
	unsigned i = op->a % run.nslots;
	const struct shadow_node *o = a->root[i].to;
	int error;

	a->idle = !run.alone || !o;
	if (a->idle)
		return;
	word = (uintptr_t)shadow_take_base(a, i) + (o->based ? 0 : o->n / 2);
	error = rt_roots_static(1);
	a->idle = error == RT_ENOTSUP;
	if (!a->idle) {
		SHADOW_OK(error);
		shadow_gc();
		SHADOW_OK(rt_roots_static(0));
	}
	shadow_put_back(a, i, (const void *)word);
	word = 0;
}

SHADOW_OP(nogc)
{
	unsigned i = (op->a + 1) % run.nslots;
	uintptr_t hidden;

	SHADOW_OK(rt_nogc_enter());
	hidden = ~(uintptr_t)shadow_take_base(a, i);
	SHADOW_TRUE(rt_gc() == RT_ESTATE);
	shadow_do_alloc(a, op);
	rt_safepoint();
	SHADOW_TRUE(rt_blocking_enter() == RT_ESTATE);
	shadow_put_back(a, i, (void *)~hidden);
	SHADOW_OK(rt_nogc_leave());
}

// ---- stacks ----

static void stack_free(struct actor *a, unsigned i)
{
	unsigned char *p = a->stack[i];
	size_t n = a->stack_size[i];

	for (size_t k = 0; k < n; k++)
		if (p[k] != (unsigned char)(i + 0x71))
			shadow_fail("stack %u: byte %zu is %#x", i, k, p[k]);
	SHADOW_TRUE(rt_stack_free(p + 8, n) == RT_EINVAL);
	SHADOW_TRUE(rt_stack_free(p, 2 * n) == RT_EINVAL);
	SHADOW_OK(rt_stack_free(p, n));
	a->stack[i] = NULL;
}

void shadow_free_stacks(struct actor *a)
{
	for (unsigned i = 0; i < STACKS; i++)
		if (a->stack[i])
			stack_free(a, i);
}

SHADOW_OP(stack)
{
	unsigned i = op->a % STACKS;
	size_t n = (size_t)2048 << op->c % STACK_SIZES;
	unsigned char *p;

	if (a->stack[i]) {
		stack_free(a, i);
		return;
	}
	p = rt_stack_alloc(n);
	a->stack[i] = p;
	a->stack_size[i] = n;
	SHADOW_TRUE(p || run.may_fail);
	if (!p)
		return;
	SHADOW_TRUE((uintptr_t)p % base_min(n, RT_PAGE_SIZE) == 0);
	SHADOW_TRUE(!rt_is_heap(p));
	memset(p, (int)(i + 0x71), n);
}

// ---- forks ----

// in_child compares only what the actor holds, because the other actors are
// gone in the middle of their operations.
static RT_NORETURN void in_child(struct actor *a)
{
	alarm(CHILD_SECONDS);
	run.survivor = a;
	SHADOW_OK(rt_blocking_leave());
	SHADOW_OK(rt_gc());
	run.alone = false;
	shadow_do_verify(a, NULL);
	for (unsigned slot = 0; slot < run.nslots; slot++)
		shadow_check_slot(a, slot);
	_exit(0);
}

// Some C libraries permit only one attached thread at a time to fork, unless
// the others are in regions (rt/fork.h).
static void *fork_in_region(void *arg)
{
	pid_t child = fork();
	int status;

	if (child == 0)
		in_child(arg);
	if (child < 0 || waitpid(child, &status, 0) != child)
		shadow_fail("no child");
	if (status != 0 && shadow_why && shadow_why[0] != '\0')
		_exit(1); // the child has said why
	if (status != 0)
		shadow_fail("a child ended with %#x", (unsigned)status);
	return arg;
}

// A sanitizer can make no thread in a child, and keeps locks of its own there.
SHADOW_OP(fork)
{
	if (!RT_ASAN && !RT_TSAN)
		rt_call_blocking(fork_in_region, a);
}
