// Protects pages, and handles the faults and traps of instructions that access
// them.
#define _GNU_SOURCE 1 // REG_ERR
#include "test/whole/watch.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "runtime/base/base.h"
#include "test/harness/suite.h"

enum {
	WORD = sizeof(uintptr_t),
	FLAG_TRAP = 1 << 8,   // of the processor's flags
	FAULT_WRITE = 1 << 1, // of the code of a fault
};

static struct {
	uintptr_t lo, hi;
	bool protected;
	unsigned loads[WATCH_MOST / WORD];
	uintptr_t other;
} watch;

// A sanitizer and valgrind take the signals, and read words themselves.  With
// AVX-512 the marker loads eight words at once (gc/mark/scan.c), and a mask may
// leave some of them out.
const char *watch_cannot(void)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx512f"))
		return "the processor loads vectors of words";
	return RT_ASAN || RT_TSAN ? SUITE_SANITIZED : SUITE_VALGRIND;
#else
	return "words are watched on x86-64 only";
#endif
}

static void protect(bool yes)
{
	int rights = yes ? PROT_NONE : PROT_READ | PROT_WRITE;

	if (mprotect((void *)watch.lo, watch.hi - watch.lo, rights) != 0)
		abort();
	watch.protected = yes;
}

#ifdef __x86_64__
static void count(uintptr_t at, const greg_t *regs)
{
	if (regs[REG_ERR] & FAULT_WRITE || at % WORD != 0)
		watch.other = at;
	else
		watch.loads[(at - watch.lo) / WORD]++;
}

// When the handler returns, the instruction is executed again.  A fault outside
// the watched pages then ends the program.
static void faulted(int sig, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
	uintptr_t at = (uintptr_t)info->si_addr;

	if (!watch.protected || at - watch.lo >= watch.hi - watch.lo) {
		signal(sig, SIG_DFL);
		return;
	}
	count(at, regs);
	protect(false);
	regs[REG_EFL] |= FLAG_TRAP;
}

static void trapped(int sig, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)sig, (void)info;
	protect(true);
	regs[REG_EFL] &= ~(greg_t)FLAG_TRAP;
}

static void handle(int sig, void (*handler)(int, siginfo_t *, void *))
{
	struct sigaction act = {.sa_sigaction = handler,
				.sa_flags = SA_SIGINFO};

	ck_assert_int_eq(sigaction(sig, &act, NULL), 0);
}

static void handle_both(void)
{
	handle(SIGSEGV, faulted);
	handle(SIGTRAP, trapped);
}
#else
static void handle_both(void)
{
}
#endif

void watch_begin(uintptr_t lo, uintptr_t hi)
{
	ck_assert(lo % WATCH_PAGE == 0 && hi % WATCH_PAGE == 0);
	ck_assert(lo < hi && hi - lo <= WATCH_MOST);
	memset(&watch, 0, sizeof watch);
	watch.lo = lo;
	watch.hi = hi;
	handle_both();
	protect(true);
}

void watch_end(void)
{
	protect(false);
}

unsigned watch_loads(uintptr_t at)
{
	return watch.loads[(at - watch.lo) / WORD];
}

uintptr_t watch_other(void)
{
	return watch.other;
}
