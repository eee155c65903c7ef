// context.h - registers and stack bounds of a stopped thread.
//
// Go: gobuf (runtime2.go).
//
// A collector that reads other threads' stacks needs each stack pointer and
// the registers that a call preserves.  The caller itself has spilled all other
// registers to its frame.  context_save is written in assembly, because only
// there do the registers hold exactly what the caller had in them.
#ifndef RUNTIME_WORLD_CONTEXT_H
#define RUNTIME_WORLD_CONTEXT_H

#include "runtime/base/base.h"

#if defined(__x86_64__)
enum { CONTEXT_REGS = 6 }; // rbx rbp r12 r13 r14 r15
#elif defined(__aarch64__)
enum { CONTEXT_REGS = 19 }; // x19 .. x29, d8 .. d15
#else
#error "rtheap runs on x86-64 and aarch64"
#endif

// What context_save writes; the assembly knows this layout.
struct context_frame {
	uintptr_t regs[CONTEXT_REGS];
	uintptr_t sp; // the caller's stack pointer
};

struct rt_stack;

struct context {
	struct context_frame frame; // valid while the thread is stopped
	uintptr_t lo;		    // lowest address of the stack
	uintptr_t hi;		    // first address above it; 0: no stack
	bool grows;		    // the system may lower lo
	bool guest;	   // the thread attached on a registered stack, and has
			   // none of its own
	bool told;	   // the host was told that it ran on an unknown stack
	uintptr_t home_hi; // hi of the stack that grows, once the host has set
			   // other bounds
	struct rt_stack *own; // registration of [lo, hi), or NULL
	// The next two fields are set in a collection (gc/mark/stacks.h), and
	// are valid in its stop.
	struct rt_stack *on; // the registered stack that it runs on, or NULL
	uintptr_t beyond;    // end of the unknown stack that it runs on, or 0
	void *fake;	     // the sanitizer's fake stack, or NULL
};

// context_save records the caller's preserved registers and stack pointer.
void context_save(struct context_frame *frame);

// Call context_keep after the last call during which the saved context must
// stay valid.  Without it the compiler may turn that call into a tail call,
// which pops the frame that the caller's registers were spilled to.
RT_INLINE void context_keep(void)
{
	__asm__ volatile("" : : : "memory");
}

#endif
