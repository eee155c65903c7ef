// threadstack.h - where the frames of a thread are.
//
// Go: stack bounds of g0 (runtime2.go); Go's own stacks need none of this.
//
// A thread's stack lies in [lo, hi) of its context.  The C library's own thread
// block and thread-local variables, which it may keep at the upper end, are not
// part of it, so they are no roots on any thread.
//
// Two things can change after the bounds were found.  The main thread's stack
// can grow, up to a limit that the host may raise, so a stack pointer outside
// the bounds makes us look again.  A host can also move a thread to another
// stack.  Then all of the stack with which the thread attached counts as in
// use, as far down as it can be read, unless the host has registered that stack
// (gc/mark/stacks.h).
//
// In a build with the address sanitizer, the local variables of a function may
// be outside the stack, in a fake frame.  The sanitizer does this to find uses
// of them after the function has returned.  The function keeps the address of
// its fake frame on the real stack.
//
// In a stop all functions may be called except threadstack_ask and
// threadstack_find_fake: the others allocate nothing and take no lock.
#ifndef RUNTIME_WORLD_THREADSTACK_H
#define RUNTIME_WORLD_THREADSTACK_H

#include "runtime/world/context.h"

// threadstack_ask sets the bounds of c to those of the calling thread's stack.
// Returns 0 or the errno with which the system refused.  If the system refuses
// the bounds of the main thread, they are found from what is mapped.  So there
// the call fails only if mincore is refused as well.
int threadstack_ask(struct context *c);

// threadstack_holds tells whether sp lies in the stack, which may have grown.
bool threadstack_holds(struct context *c, uintptr_t sp);

// threadstack_begin returns the lowest address in use, for a thread whose stack
// pointer is the one in c.  threadstack_all returns the lowest address that can
// be read, for a thread that runs elsewhere.
uintptr_t threadstack_begin(struct context *c);
uintptr_t threadstack_all(const struct context *c);

// threadstack_mapping_end returns the end of the mapping that contains sp.  If
// the system does not tell, it returns the first address above sp that cannot
// be read, or sp itself.
uintptr_t threadstack_mapping_end(uintptr_t sp);

// threadstack_readable tells whether the mapped upper part of [lo, hi) can be
// read, and contains sp.  The rest of a stack that grows is mapped later.
bool threadstack_readable(uintptr_t lo, uintptr_t hi, uintptr_t sp);

// threadstack_find_fake records in c where the calling thread's fake frames
// are.
void threadstack_find_fake(struct context *c);

// threadstack_has_fakes tells whether any thread can have fake frames.
bool threadstack_has_fakes(void);

// threadstack_fake_frame tells whether p lies in a fake frame that is in use,
// and sets [*lo, *hi) to that frame.
bool threadstack_fake_frame(const struct context *c, uintptr_t p, uintptr_t *lo,
			    uintptr_t *hi);

#endif
