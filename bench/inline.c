// inline.c - loops of inline allocations whose instructions inline.sh counts.
//
// C and C++.  Each loop is a function by itself, so that a profile shows what
// it executes; count_nothing is what a loop and its bookkeeping cost.  A run
// serves every allocation of a loop: the first object makes it, and the span
// of a fresh heap has room for all.  What would leave the inline sequence
// shows in the profile as a call.
//
// Argument: allocations in each loop, at most 50.  A span of 8192 bytes has 128
// objects of 64, and two loops take theirs from it.
#include <stdlib.h>

#include <rt/rt.h>

#ifdef __cplusplus
extern "C" {
#endif

void count_nothing(rt_thread *t, long n);
void count_in_noscan_64(rt_thread *t, long n);
void count_in_words_16(rt_thread *t, long n);
void count_in_words_8(rt_thread *t, long n);
void count_own_noscan_64(rt_thread *t, long n);
void count_own_words_16(rt_thread *t, long n);

__attribute__((noinline)) void count_nothing(rt_thread *t, long n)
{
	for (long i = 0; i < n; i++)
		rt_keep_alive(t);
}

// With the handle in a register, as an interpreter has it.

__attribute__((noinline)) void count_in_noscan_64(rt_thread *t, long n)
{
	for (long i = 0; i < n; i++)
		rt_keep_alive(rt_alloc_noscan_in(t, 64));
}

__attribute__((noinline)) void count_in_words_16(rt_thread *t, long n)
{
	for (long i = 0; i < n; i++)
		rt_keep_alive(rt_alloc_in(t, 16));
}

__attribute__((noinline)) void count_in_words_8(rt_thread *t, long n)
{
	for (long i = 0; i < n; i++)
		rt_keep_alive(rt_alloc_in(t, 8));
}

// With the handle from the thread's own variable, as everybody else has it.

__attribute__((noinline)) void count_own_noscan_64(rt_thread *t, long n)
{
	for (long i = 0; i < n; i++)
		rt_keep_alive(rt_alloc_noscan(64));
	rt_keep_alive(t);
}

__attribute__((noinline)) void count_own_words_16(rt_thread *t, long n)
{
	for (long i = 0; i < n; i++)
		rt_keep_alive(rt_alloc(16));
	rt_keep_alive(t);
}

#ifdef __cplusplus
}
#endif

int main(int argc, char **argv)
{
	long n = argc == 2 ? atol(argv[1]) : 0;

	if (n < 1 || n > 50 || rt_init(NULL) != 0)
		return 1;
	rt_thread *t = rt_thread_self();

	rt_keep_alive(rt_alloc_noscan_in(t, 64));
	rt_keep_alive(rt_alloc_in(t, 16));
	count_nothing(t, n);
	count_in_noscan_64(t, n);
	count_own_noscan_64(t, n);
	count_in_words_16(t, n);
	count_in_words_8(t, n);
	count_own_words_16(t, n);
	return rt_fini() != 0;
}
