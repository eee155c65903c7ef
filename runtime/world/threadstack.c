// The bounds of stacks, and the parts of stacks that can be read.
#include "runtime/world/threadstack.h"

#include <errno.h>

#include "runtime/os/oscall.h"
#include "runtime/os/poison.h"
#include "runtime/os/sysmem.h"

// Bytes of a stack that one call of oscall_mapped asks about, at most.
enum { STACK_STEP = 1 << 20 };

// mapped_from returns the lowest address, at least lo, from which all memory up
// to hi is mapped.  The unmapped part of a stack that grows was never written;
// a read there would make it grow, or fail.  unknown tells whether memory
// counts as mapped if the system does not say.
static uintptr_t mapped_from(uintptr_t lo, uintptr_t hi, bool unknown)
{
	size_t page = sysmem_page_size();
	uintptr_t from = base_align_down(hi - 1, page);
	uintptr_t limit = base_align_up(lo, page);
	size_t step = STACK_STEP;

	while (from > limit && step >= page) {
		size_t n = base_min(step, from - limit);
		int error = oscall_mapped((void *)(from - n), n);

		if (error == ENOMEM || (error != 0 && !unknown))
			step /= 2;
		else
			from -= n;
	}
	return from > limit ? from : lo;
}

// readable_from returns the lowest address, at least lo, from which all memory
// up to hi can be read.  It asks the system about a page at a time.  Memcheck
// would report such a call for a word that was never written, so under memcheck
// all memory counts as readable.
static uintptr_t readable_from(uintptr_t lo, uintptr_t hi)
{
	size_t page = sysmem_page_size();
	uintptr_t from = hi;

	if (poison_memcheck)
		return lo;
	while (from > lo) {
		uintptr_t at = base_align_down(from - 1, page);

		if (!oscall_readable((void *)at))
			return from;
		from = at;
	}
	return lo;
}

// probe_main finds the main thread's stack.  Unlike the C library, it asks for
// no limit and reads no file below /proc, so it needs no free file descriptor.
// The stack is what is mapped below its upper end, since the system keeps a gap
// below a stack that grows.  Returns false if the stack cannot be found.
static bool probe_main(struct context *c)
{
	uintptr_t end = oscall_main_stack_end();
	uintptr_t top = base_align_down(end, sysmem_page_size());

	if (end == 0 || oscall_mapped((void *)top, sysmem_page_size()) != 0)
		return false;
	c->hi = base_align_down(end, sizeof(uintptr_t));
	c->lo = readable_from(mapped_from(0, c->hi, false), c->hi);
	return true;
}

int threadstack_ask(struct context *c)
{
	int error = oscall_stack_bounds(&c->lo, &c->hi);
	bool first = oscall_main_thread();

	if (error && first && probe_main(c))
		error = 0;
	c->grows = error == 0 && first;
	return error;
}

// look_for_growth lowers c->lo as far as memory is mapped and can be read.  The
// system keeps a gap below a stack that grows.
static void look_for_growth(struct context *c)
{
	uintptr_t mapped = mapped_from(0, c->hi, false);

	if (mapped < c->lo)
		c->lo = readable_from(mapped, c->lo);
}

static bool inside(const struct context *c, uintptr_t sp)
{
	return sp >= c->lo && sp <= c->hi;
}

bool threadstack_holds(struct context *c, uintptr_t sp)
{
	if (!inside(c, sp) && c->grows)
		look_for_growth(c);
	return inside(c, sp);
}

uintptr_t threadstack_begin(struct context *c)
{
	if (threadstack_holds(c, c->frame.sp))
		return c->frame.sp;
	return threadstack_all(c);
}

uintptr_t threadstack_all(const struct context *c)
{
	return readable_from(mapped_from(c->lo, c->hi, true), c->hi);
}

uintptr_t threadstack_mapping_end(uintptr_t sp)
{
	size_t page = sysmem_page_size();
	uintptr_t end = oscall_mapping_end(sp);

	if (end != 0)
		return end;
	end = base_align_down(sp, page);
	while (!poison_memcheck && oscall_readable((const void *)end))
		end += page;
	return end < sp ? sp : end;
}

bool threadstack_readable(uintptr_t lo, uintptr_t hi, uintptr_t sp)
{
	uintptr_t mapped = mapped_from(lo, hi, true);

	return mapped <= sp && readable_from(mapped, hi) == mapped;
}

// The sanitizer's run-time has these functions, even if only the host is built
// with the sanitizer.
void *__asan_get_current_fake_stack(void) __attribute__((weak));
void *__asan_addr_is_in_fake_stack(void *fake, void *p, void **lo, void **hi)
    __attribute__((weak));
uintptr_t __asan_stack_malloc_0(uintptr_t n) __attribute__((weak));
void __asan_stack_free_0(uintptr_t frame, uintptr_t n) __attribute__((weak));

bool threadstack_has_fakes(void)
{
	return __asan_get_current_fake_stack && __asan_addr_is_in_fake_stack &&
	       __asan_stack_malloc_0 && __asan_stack_free_0;
}

// A thread has no fake stack before its first fake frame, so we make one.
void threadstack_find_fake(struct context *c)
{
	enum { FRAME = 64 }; // the smallest
	uintptr_t frame;

	c->fake = NULL;
	if (!threadstack_has_fakes())
		return;
	frame = __asan_stack_malloc_0(FRAME);
	if (frame == 0)
		return;
	c->fake = __asan_get_current_fake_stack();
	__asan_stack_free_0(frame, FRAME);
}

// The run-time computes the answer from addresses and one word of the frame,
// without a lock.
bool threadstack_fake_frame(const struct context *c, uintptr_t p, uintptr_t *lo,
			    uintptr_t *hi)
{
	void *begin, *end;

	if (!c->fake ||
	    !__asan_addr_is_in_fake_stack(c->fake, (void *)p, &begin, &end))
		return false;
	*lo = base_align_up((uintptr_t)begin, sizeof(uintptr_t));
	*hi = base_align_down((uintptr_t)end, sizeof(uintptr_t));
	return true;
}
