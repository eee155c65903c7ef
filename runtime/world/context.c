// context_save, for x86-64 and for aarch64.
#include "runtime/world/context.h"

static_assert(offsetof(struct context_frame, regs) == 0, "known to assembly");
static_assert(offsetof(struct context_frame, sp) == 8 * CONTEXT_REGS,
	      "known to assembly");

#if defined(__x86_64__)
__asm__(".pushsection .text\n"
	".globl context_save\n"
	".hidden context_save\n"
	".type context_save, @function\n"
	"context_save:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	movq %rbx, (%rdi)\n"
	"	movq %rbp, 8(%rdi)\n"
	"	movq %r12, 16(%rdi)\n"
	"	movq %r13, 24(%rdi)\n"
	"	movq %r14, 32(%rdi)\n"
	"	movq %r15, 40(%rdi)\n"
	"	leaq 8(%rsp), %rax\n"
	"	movq %rax, 48(%rdi)\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size context_save, . - context_save\n"
	".popsection\n");
#else
__asm__(".pushsection .text\n"
	".globl context_save\n"
	".hidden context_save\n"
	".type context_save, %function\n"
	"context_save:\n"
	"	.cfi_startproc\n"
	"	hint #34\n" // bti c
	"	stp x19, x20, [x0]\n"
	"	stp x21, x22, [x0, #16]\n"
	"	stp x23, x24, [x0, #32]\n"
	"	stp x25, x26, [x0, #48]\n"
	"	stp x27, x28, [x0, #64]\n"
	"	str x29, [x0, #80]\n"
	"	stp d8, d9, [x0, #88]\n"
	"	stp d10, d11, [x0, #104]\n"
	"	stp d12, d13, [x0, #120]\n"
	"	stp d14, d15, [x0, #136]\n"
	"	mov x1, sp\n"
	"	str x1, [x0, #152]\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size context_save, . - context_save\n"
	".popsection\n");
#endif
