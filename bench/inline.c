// inline.c - loops of inline allocations whose instructions inline.sh counts.
//
// The file is C and C++.  Each loop is a function by itself, so that a profile
// shows its instructions; no function of the library is called inline_loop_*.
// inline_loop_nothing has the cost of a loop and its bookkeeping.
//
// One run of free slots serves every allocation of a loop.  The first span of a
// size class and kind, whose runs begin short and double, is used up before the
// loop.  In a fresh heap the next span is one run.  An allocation that leaves
// the inline sequence shows in the profile as a call.
//
// The argument is the number of allocations in each loop.  A span of 8192 bytes
// holds 128 objects of 64.  Two loops of RT_NOSCAN share a span, so each loop
// makes at most 50.
#include <stdlib.h>

#include <rt/rt.h>

#ifdef __cplusplus
extern "C" {
#endif

void inline_loop_nothing(rt_thread *t, long n);
void inline_loop_in_noscan_64(rt_thread *t, long n);
void inline_loop_in_noscan_8(rt_thread *t, long n);
void inline_loop_in_words_16(rt_thread *t, long n);
void inline_loop_in_words_8(rt_thread *t, long n);
void inline_loop_own_noscan_64(rt_thread *t, long n);
void inline_loop_own_words_16(rt_thread *t, long n);
void inline_loop_own_uninit_64(rt_thread *t, long n);
void inline_loop_any_words(rt_thread *t, long n);
void inline_loop_any_noscan(rt_thread *t, long n);
void inline_loop_kind_16(rt_thread *t, long n);
void inline_loop_kind_24(rt_thread *t, long n);
void inline_loop_number_16(rt_thread *t, long n);
void inline_loop_number_24(rt_thread *t, long n);
void inline_loop_any_kind(rt_thread *t, long n);

__attribute__((noinline)) void inline_loop_nothing(rt_thread *t, long n)
{
	for (long i = 0; i < n; i++)
		rt_keep_alive(t);
}

// The handle is in a register, as in an interpreter.

__attribute__((noinline)) void inline_loop_in_noscan_64(rt_thread *t, long n)
{
	for (long i = 0; i < n; i++)
		rt_keep_alive(rt_alloc_noscan_in(t, 64));
}

__attribute__((noinline)) void inline_loop_in_noscan_8(rt_thread *t, long n)
{
	for (long i = 0; i < n; i++)
		rt_keep_alive(rt_alloc_noscan_in(t, 8));
}

__attribute__((noinline)) void inline_loop_in_words_16(rt_thread *t, long n)
{
	for (long i = 0; i < n; i++)
		rt_keep_alive(rt_alloc_in(t, 16));
}

__attribute__((noinline)) void inline_loop_in_words_8(rt_thread *t, long n)
{
	for (long i = 0; i < n; i++)
		rt_keep_alive(rt_alloc_in(t, 8));
}

// The handle comes from the thread's own variable, as in most other programs.

__attribute__((noinline)) void inline_loop_own_noscan_64(rt_thread *t, long n)
{
	for (long i = 0; i < n; i++)
		rt_keep_alive(rt_alloc_noscan(64));
	rt_keep_alive(t);
}

__attribute__((noinline)) void inline_loop_own_words_16(rt_thread *t, long n)
{
	for (long i = 0; i < n; i++)
		rt_keep_alive(rt_alloc(16));
	rt_keep_alive(t);
}

__attribute__((noinline)) void inline_loop_own_uninit_64(rt_thread *t, long n)
{
	for (long i = 0; i < n; i++)
		rt_keep_alive(rt_alloc_noscan_uninit(64));
	rt_keep_alive(t);
}

// The compiler does not know the size, and cannot look it up before the loop.

static inline size_t unknown(size_t n)
{
	__asm__ volatile("" : "+r"(n));
	return n;
}

__attribute__((noinline)) void inline_loop_any_words(rt_thread *t, long n)
{
	for (long i = 0; i < n; i++)
		rt_keep_alive(rt_alloc_in(t, unknown(40)));
}

__attribute__((noinline)) void inline_loop_any_noscan(rt_thread *t, long n)
{
	for (long i = 0; i < n; i++)
		rt_keep_alive(rt_alloc_noscan_in(t, unknown(40)));
}

// Objects of a registered kind.  DENSE is aligned to 8, so 24 bytes are a
// class.

enum { KIND = RT_KIND_FIRST, DENSE = RT_KIND_ALIGN8_FIRST };

__attribute__((noinline)) void inline_loop_kind_16(rt_thread *t, long n)
{
	for (long i = 0; i < n; i++)
		rt_keep_alive(rt_alloc_kind_in(t, KIND, 16));
}

__attribute__((noinline)) void inline_loop_kind_24(rt_thread *t, long n)
{
	for (long i = 0; i < n; i++)
		rt_keep_alive(rt_alloc_kind_in(t, DENSE, 24));
}

// The compiler does not know the number.

static inline int number(int kind)
{
	__asm__ volatile("" : "+r"(kind));
	return kind;
}

__attribute__((noinline)) void inline_loop_number_16(rt_thread *t, long n)
{
	for (long i = 0; i < n; i++)
		rt_keep_alive(rt_alloc_kind_in(t, number(KIND), 16));
}

__attribute__((noinline)) void inline_loop_number_24(rt_thread *t, long n)
{
	for (long i = 0; i < n; i++)
		rt_keep_alive(rt_alloc_kind_in(t, number(DENSE), 24));
}

__attribute__((noinline)) void inline_loop_any_kind(rt_thread *t, long n)
{
	for (long i = 0; i < n; i++)
		rt_keep_alive(rt_alloc_kind_in(t, KIND, unknown(40)));
}

#ifdef __cplusplus
}
#endif

// warm_up uses up the first span of n bytes of each kind, and the first object
// of the second span.
static void warm_up(rt_thread *t, size_t n)
{
	for (size_t i = 0; i <= 8192 / rt_good_size(n); i++) {
		rt_keep_alive(rt_alloc_in(t, n));
		rt_keep_alive(rt_alloc_noscan_in(t, n));
		rt_keep_alive(rt_alloc_noscan_uninit(n));
	}
	for (size_t i = 0; i <= 8192 / rt_good_size_of(KIND, n); i++)
		rt_keep_alive(rt_alloc_kind_in(t, KIND, n));
	for (size_t i = 0; i <= 8192 / rt_good_size_of(DENSE, n); i++)
		rt_keep_alive(rt_alloc_kind_in(t, DENSE, n));
}

static void add_kind(int kind)
{
	rt_kind_desc d;

	rt_kind_desc_init(&d);
	d.layout = RT_LAYOUT_WORDS;
	d.number = kind;
	if (rt_kind_register(&d) != kind)
		abort();
}

int main(int argc, char **argv)
{
	long n = argc == 2 ? atol(argv[1]) : 0;

	if (n < 1 || n > 50 || rt_init(NULL) != 0)
		return 1;
	rt_thread *t = rt_thread_self();

	add_kind(KIND);
	add_kind(DENSE);
	warm_up(t, 8);
	warm_up(t, 16);
	warm_up(t, 24);
	warm_up(t, 40);
	warm_up(t, 64);
	inline_loop_nothing(t, n);
	inline_loop_in_noscan_64(t, n);
	inline_loop_in_noscan_8(t, n);
	inline_loop_in_words_16(t, n);
	inline_loop_in_words_8(t, n);
	inline_loop_own_noscan_64(t, n);
	inline_loop_own_words_16(t, n);
	inline_loop_own_uninit_64(t, n);
	inline_loop_any_words(t, n);
	inline_loop_any_noscan(t, n);
	inline_loop_kind_16(t, n);
	inline_loop_kind_24(t, n);
	inline_loop_number_16(t, n);
	inline_loop_number_24(t, n);
	inline_loop_any_kind(t, n);
	return rt_fini() != 0;
}
