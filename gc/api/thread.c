// Threads come, go, poll, and wait in blocking regions.
#include <rt/thread.h>

#include "runtime/world/safepoint.h"
#include "gc/cycle/swept.h"
#include "gc/cycle/libthread.h"
#include "gc/host/door.h"
#include "gc/host/slices.h"
#include "gc/host/finalize.h"
#include "gc/host/region.h"
#include "gc/host/attach.h"

enum { ATTACH_FLAGS = RT_THREAD_EXACT | RT_THREAD_COOPERATIVE };

// may_attach answers whether the calling thread may attach: there must be a
// heap, and the thread must be neither in a callback of a collection nor one of
// the library.
static int may_attach(void)
{
	if (!door_ready())
		return RT_ESTATE;
	return door_in_callback() || libthread_self ? RT_EBUSY : RT_OK;
}

int rt_thread_attach(unsigned flags)
{
	int error = may_attach();

	if (flags & ~(unsigned)ATTACH_FLAGS)
		return RT_EINVAL;
	if (error)
		return door_answer(error);
	return attach_answer(attach_thread(0, 0, flags));
}

int rt_thread_attach_stack(void *lo, void *hi, unsigned flags)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	int error = may_attach();

	if ((flags & ~(unsigned)ATTACH_FLAGS) || !lo || !hi || lo >= hi ||
	    here < (uintptr_t)lo || here >= (uintptr_t)hi)
		return RT_EINVAL;
	if (error)
		return door_answer(error);
	return attach_answer(
	    attach_thread((uintptr_t)lo, (uintptr_t)hi, flags));
}

int rt_thread_detach(void)
{
	int error = door_blocking(false);

	if (!error && drops_runs(proc_self()))
		error = door_answer(RT_EBUSY);
	if (error)
		return error;
	attach_undo();
	return RT_OK;
}

rt_thread *rt_thread_self(void)
{
	rt_thread *t = rt_thread_tls;

	return t->mc ? t : NULL;
}

void rt_safepoint(void)
{
	rt_thread *t = rt_thread_tls;

	if (RT_DEBUG_BUILD && door_in_callback())
		hostcall_tell(__func__);
	if (!door_allocating(t) || door_nogc())
		return;
	safepoint_poll(t);
	if (RT_UNLIKELY(!swept_over()))
		slices_help(t);
	finalize_poll(t);
}

int rt_nogc_refused_(const rt_thread *t)
{
	return t->nogc == RT_NOGC_NONE ? door_refusal(t) : RT_ESTATE;
}

int rt_nogc_poll_(rt_thread *t)
{
	if (!t->p->stopper)
		safepoint_poll(t);
	return RT_OK;
}

// ---- blocking regions ----

// thread_enter_region does what rt_blocking_enter has to do.  The assembly
// below calls it, and passes the caller's registers and stack pointer.
int thread_enter_region(const struct context_frame *frame);

RT_CALLED_BY_ASM int thread_enter_region(const struct context_frame *frame)
{
	int error =
	    door_answer_of(door_blocking_now(false), "rt_blocking_enter");

	if (error)
		return error;
	region_enter(frame);
	return RT_OK;
}

// rt_blocking_enter returns to a caller whose preserved registers may hold
// the only pointer to an object.  A C function could not save them: what it
// pushes is gone when it returns.
#if defined(__x86_64__)
__asm__(".pushsection .text\n"
	".globl rt_blocking_enter\n"
	".type rt_blocking_enter, @function\n"
	".hidden thread_enter_region\n"
	"rt_blocking_enter:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	subq $56, %rsp\n"
	"	.cfi_adjust_cfa_offset 56\n"
	"	movq %rsp, %rdi\n"
	"	call context_save\n"
	"	leaq 64(%rsp), %rax\n"
	"	movq %rax, 48(%rsp)\n" // the stack pointer after the return
	"	movq %rsp, %rdi\n"
	"	call thread_enter_region\n"
	"	addq $56, %rsp\n"
	"	.cfi_adjust_cfa_offset -56\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size rt_blocking_enter, . - rt_blocking_enter\n"
	".popsection\n");
#else
__asm__(".pushsection .text\n"
	".globl rt_blocking_enter\n"
	".type rt_blocking_enter, %function\n"
	".hidden thread_enter_region\n"
	"rt_blocking_enter:\n"
	"	.cfi_startproc\n"
	"	hint #25\n" // paciasp
	"	stp x29, x30, [sp, #-176]!\n"
	"	.cfi_def_cfa_offset 176\n"
	"	.cfi_offset 29, -176\n"
	"	.cfi_offset 30, -168\n"
	"	add x0, sp, #16\n"
	"	bl context_save\n"
	"	add x1, sp, #176\n" // the stack pointer after the return
	"	str x1, [sp, #168]\n"
	"	add x0, sp, #16\n"
	"	bl thread_enter_region\n"
	"	ldp x29, x30, [sp], #176\n"
	"	.cfi_def_cfa_offset 0\n"
	"	hint #29\n" // autiasp
	"	ret\n"
	"	.cfi_endproc\n"
	".size rt_blocking_enter, . - rt_blocking_enter\n"
	".popsection\n");
#endif

int rt_blocking_leave(void)
{
	const struct rt_proc *p = proc_self();

	if (!door_ready())
		return RT_ESTATE;
	if (!p)
		return RT_EPERM;
	if (!p->in_region)
		return RT_ESTATE;
	region_leave();
	return RT_OK;
}

// leave_entered runs even when the host's function is left by unwinding: an
// exception of C++, pthread_exit, or a cancellation.
static void leave_entered(const bool *entered)
{
	if (*entered)
		rt_blocking_leave();
}

void *rt_call_blocking(void *(*fn)(void *), void *arg)
{
	__attribute__((cleanup(leave_entered))) bool entered = false;

	if (!fn || door_nogc())
		return NULL;
	entered = rt_blocking_enter() == RT_OK;
	return fn(arg);
}
