// Fibers of a test.
#include "test/harness/fiber.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/base/base.h"

// fiber_switch saves on the stack the registers that a call preserves, and the
// stack pointer at *from.  It continues on the stack whose saved pointer is to.
void fiber_switch(void **from, void *to);
void fiber_begin(void);
void fiber_main(struct fiber *f);

#if defined(__x86_64__)
// rbx is the fifth word from below, and the address to return to the seventh.
enum { SAVED = 11, FIRST = 4, RETURN = 6 };
__asm__(".pushsection .text\n"
	".globl fiber_switch\n"
	".type fiber_switch, @function\n"
	"fiber_switch:\n"
	"	endbr64\n"
	"	pushq %rbp\n"
	"	pushq %rbx\n"
	"	pushq %r12\n"
	"	pushq %r13\n"
	"	pushq %r14\n"
	"	pushq %r15\n"
	"	movq %rsp, (%rdi)\n"
	"	movq %rsi, %rsp\n"
	"	popq %r15\n"
	"	popq %r14\n"
	"	popq %r13\n"
	"	popq %r12\n"
	"	popq %rbx\n"
	"	popq %rbp\n"
	"	ret\n"
	".size fiber_switch, . - fiber_switch\n"
	".globl fiber_begin\n"
	".type fiber_begin, @function\n"
	"fiber_begin:\n"
	"	endbr64\n"
	"	movq %rbx, %rdi\n"
	"	call fiber_main\n"
	"	ud2\n"
	".size fiber_begin, . - fiber_begin\n"
	".popsection\n");
#else
enum { SAVED = 24, FIRST = 0, RETURN = 11 }; // x19 and x30
__asm__(".pushsection .text\n"
	".globl fiber_switch\n"
	".type fiber_switch, %function\n"
	"fiber_switch:\n"
	"	sub sp, sp, #160\n"
	"	stp x19, x20, [sp, #0]\n"
	"	stp x21, x22, [sp, #16]\n"
	"	stp x23, x24, [sp, #32]\n"
	"	stp x25, x26, [sp, #48]\n"
	"	stp x27, x28, [sp, #64]\n"
	"	stp x29, x30, [sp, #80]\n"
	"	stp d8, d9, [sp, #96]\n"
	"	stp d10, d11, [sp, #112]\n"
	"	stp d12, d13, [sp, #128]\n"
	"	stp d14, d15, [sp, #144]\n"
	"	mov x9, sp\n"
	"	str x9, [x0]\n"
	"	mov sp, x1\n"
	"	ldp x19, x20, [sp, #0]\n"
	"	ldp x21, x22, [sp, #16]\n"
	"	ldp x23, x24, [sp, #32]\n"
	"	ldp x25, x26, [sp, #48]\n"
	"	ldp x27, x28, [sp, #64]\n"
	"	ldp x29, x30, [sp, #80]\n"
	"	ldp d8, d9, [sp, #96]\n"
	"	ldp d10, d11, [sp, #112]\n"
	"	ldp d12, d13, [sp, #128]\n"
	"	ldp d14, d15, [sp, #144]\n"
	"	add sp, sp, #160\n"
	"	ret\n"
	".size fiber_switch, . - fiber_switch\n"
	".globl fiber_begin\n"
	".type fiber_begin, %function\n"
	"fiber_begin:\n"
	"	mov x0, x19\n"
	"	bl fiber_main\n"
	"	brk #0\n"
	".size fiber_begin, . - fiber_begin\n"
	".popsection\n");
#endif

// ---- the sanitizers ----

void *__tsan_get_current_fiber(void) __attribute__((weak));
void *__tsan_create_fiber(unsigned flags) __attribute__((weak));
void __tsan_destroy_fiber(void *fiber) __attribute__((weak));
void __tsan_switch_to_fiber(void *fiber, unsigned flags) __attribute__((weak));
void __sanitizer_start_switch_fiber(void **save, const void *lo, size_t size)
    __attribute__((weak));
void __sanitizer_finish_switch_fiber(void *fake, const void **lo, size_t *size)
    __attribute__((weak));

void __asan_unpoison_memory_region(const volatile void *p, size_t n)
    __attribute__((weak));

enum { FIBER, RESUMER };

// leave tells the sanitizers that the caller is about to switch.  from is FIBER
// or RESUMER; the other one runs on [lo, lo + size).
static void leave(struct fiber *f, int from, const void *lo, size_t size)
{
	if (__sanitizer_start_switch_fiber)
		__sanitizer_start_switch_fiber(
		    f->done && from == FIBER ? NULL : &f->fake[from], lo, size);
	if (__tsan_switch_to_fiber)
		__tsan_switch_to_fiber(f->track[!from], 0);
}

static void arrive(struct fiber *f, int at)
{
	const void **lo = at == FIBER ? &f->resumer_lo : NULL;
	size_t *size = at == FIBER ? &f->resumer_size : NULL;

	if (__sanitizer_finish_switch_fiber)
		__sanitizer_finish_switch_fiber(f->fake[at], lo, size);
}

// ---- fibers ----

void fiber_make(struct fiber *f, size_t bytes, void (*fn)(struct fiber *),
		void *arg)
{
	uintptr_t *word;

	*f = (struct fiber){.fn = fn, .arg = arg};
	f->lo = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (f->lo == MAP_FAILED)
		abort();
	f->hi = f->lo + bytes;
	word = (uintptr_t *)f->hi - SAVED;
	word[FIRST] = (uintptr_t)f;
	word[RETURN] = (uintptr_t)fiber_begin;
	f->sp = word;
	if (__tsan_create_fiber)
		f->track[FIBER] = __tsan_create_fiber(0);
}

void fiber_free(struct fiber *f)
{
	if (__tsan_destroy_fiber)
		__tsan_destroy_fiber(f->track[FIBER]);
	// The frames of functions that have not returned are still poisoned.
	if (__asan_unpoison_memory_region)
		__asan_unpoison_memory_region(f->lo, (size_t)(f->hi - f->lo));
	munmap(f->lo, (size_t)(f->hi - f->lo));
	f->lo = f->hi = NULL;
}

RT_NOINLINE void fiber_resume(struct fiber *f)
{
	if (__tsan_get_current_fiber)
		f->track[RESUMER] = __tsan_get_current_fiber();
	leave(f, RESUMER, f->lo, (size_t)(f->hi - f->lo));
	fiber_switch(&f->resumer, f->sp);
	arrive(f, RESUMER);
}

RT_NOINLINE void fiber_yield(struct fiber *f)
{
	leave(f, FIBER, f->resumer_lo, f->resumer_size);
	fiber_switch(&f->sp, f->resumer);
	arrive(f, FIBER);
}

void fiber_main(struct fiber *f)
{
	arrive(f, FIBER);
	f->fn(f);
	f->done = true;
	fiber_yield(f);
}

rt_stack_desc fiber_desc(struct fiber *f, unsigned flags)
{
	rt_stack_desc d;

	rt_stack_desc_init(&d);
	d.lo = f->lo;
	d.hi = f->hi;
	d.sp = &f->sp;
	d.flags = flags;
	return d;
}
