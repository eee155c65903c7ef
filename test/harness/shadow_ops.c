// shadow_ops.c - operations of every sort: refusals, errors, and the table.
#include <errno.h>
#include <string.h>

#include "runtime/os/oscall.h"
#include "test/harness/fault.h"
#include "test/harness/shadow_actor.h"

bool shadow_done(int error, const char *what)
{
	if (error == RT_ENOMEM && run.may_fail)
		return false;
	shadow_want(error, what);
	return true;
}

// ---- refusals ----

SHADOW_OP(refused)
{
	const void *none = rt_alloc(0);
	size_t n = (size_t)op->n << (op->b % 4 * 8);

	if (rt_alloc(SIZE_MAX) || rt_alloc_noscan((size_t)1 << 50) ||
	    rt_alloc_kind((int)(24 + op->c % 256), 32) ||
	    rt_alloc_kind(2, 32) || rt_stack_alloc(3000))
		shadow_fail("a request that cannot be met was met");
	if (run.wild)
		SHADOW_TRUE(!rt_alloc(n < MAX_HEAP ? n + MAX_HEAP + 1 : n));
	if (!none || rt_is_heap(none) || rt_alloc_noscan(0) != none)
		shadow_fail("an object of no bytes");
}

static int no_memory(size_t n, void *arg)
{
	(void)n;
	(void)arg;
	return 0;
}

void shadow_on_warning(const char *text, void *arg)
{
	(void)arg;
	if (!run.may_fail && !strstr(text, "wait for their destructors") &&
	    !strstr(text, "more than the memory limit"))
		shadow_fail("warning: %s", text);
}

SHADOW_OP(handlers)
{
	SHADOW_OK(rt_set_oom_handler(no_memory, NULL));
	SHADOW_OK(rt_set_warn_handler(shadow_on_warning, NULL));
	SHADOW_OK(rt_set_fatal_handler(shadow_on_fatal, NULL));
	SHADOW_OK(rt_set_memstats_double_check(RT_CHECK_REPORT));
	shadow_do_refused(a, op);
	SHADOW_OK(rt_set_memstats_double_check(RT_CHECK_FATAL));
}

// Three sorts are left out: calls about threads and waiting, for which one
// actor has no use; calls that are made once in a process; and munmap, whose
// failure is a leak.
static const enum oscall calls[] = {
    OSCALL_RESERVE,  OSCALL_COMMIT, OSCALL_UNCOMMIT, OSCALL_MAP,
    OSCALL_RELEASE,  OSCALL_ADVISE, OSCALL_NAME,     OSCALL_CLOCK,
    OSCALL_AFFINITY, OSCALL_RLIMIT, OSCALL_PAGESIZE, OSCALL_MAPPED,
};

// NULL in a program that links what ships; see test/harness/fault.h.
void fault_fail(enum oscall call, uint64_t nth, uint64_t ncalls, int error)
    __attribute__((weak));

void shadow_fault(const struct shadow_op *op)
{
	if (!fault_fail)
		shadow_fail("this program cannot make the system refuse calls");
	fault_fail(calls[op->a % RT_ARRAY_LEN(calls)], 1 + op->b % 256,
		   1 + op->c % 64, ENOMEM);
}

void shadow_no_faults(void)
{
	if (!fault_fail)
		return;
	for (unsigned i = 0; i < RT_ARRAY_LEN(calls); i++)
		fault_fail(calls[i], 1, 0, 0);
}

SHADOW_OP(fault)
{
	shadow_fault(op);
}

// ---- errors that must be found ----

SHADOW_OP(lose)
{
	shadow_remove_roots(a);
	SHADOW_OK(rt_gc());
	shadow_add_roots(a);
}

SHADOW_OP(scribble)
{
	const struct shadow_node *o = a->root[op->a % run.nslots].to;

	if (o)
		((unsigned char *)o->at)[0] ^= 0x80;
}

SHADOW_OP(leak)
{
	a->leak = a->slot[op->a % run.nslots];
}

// meet (shadow_run.c) does these two when all actors meet.
SHADOW_OP(give)
{
}

SHADOW_OP(sync)
{
}

void shadow_do(struct actor *a, const struct shadow_op *op)
{
	static void (*const does[SHADOW_KINDS])(struct actor *,
						const struct shadow_op *) = {
#define X(name, ...) shadow_do_##name,
	    SHADOW_OPS(X)
#undef X
	};

	a->idle = false;
	does[op->kind](a, op);
	a->did[op->kind] += !a->idle;
	shadow_follow(a);
}
