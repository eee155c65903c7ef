// The address sanitizer or valgrind, if one of them watches, knows which memory
// holds an object.
#include "test/harness/heap.h"

#include <stdio.h>

#include "runtime/os/poison.h"
#include "test/harness/death.h"

#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#else
#define VALGRIND_GET_VBITS(p, bits, n) ((void)(p), (void)(bits), (void)(n), 0)
#endif

enum { ROOTS = 64 };

static void *root[ROOTS];

static void start(void)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.poison = 1;
	heap_start_exact(c);
	must(rt_roots_add(root, root + ROOTS, RT_ROOT_EXACT));
}

// ---- what is watched ----

enum how {
	COLLECTED,
	FREED,		 // by rt_free
	MOVED,		 // by rt_realloc
	CUT,		 // by rt_resize: what was behind its new end
	NEVER_ALLOCATED, // a slot of the same run
	LIVE,
};

static const struct {
	enum how how;
	size_t n;
} victims[] = {
    {COLLECTED, 64}, {COLLECTED, 100000}, {FREED, 16},		 {FREED, 64},
    {FREED, 1024},   {FREED, 32760},	  {FREED, 1 << 17},	 {MOVED, 64},
    {MOVED, 100000}, {CUT, 1 << 17},	  {NEVER_ALLOCATED, 64}, {LIVE, 64},
};
enum { VICTIMS = RT_ARRAY_LEN(victims) };

// make_victim returns the address of the last byte of a victim.
static uintptr_t make_victim(int i)
{
	size_t n = victims[i].n;
	void *volatile p;
	uintptr_t at;

	start();
	root[0] = rt_alloc(n);
	p = rt_alloc(n);
	at = (uintptr_t)p + n - 1;
	switch (victims[i].how) {
	case COLLECTED:
		ck_assert_int_eq(rt_gc(), RT_OK);
		break;
	case FREED:
		ck_assert_int_eq(rt_free(p), RT_OK);
		break;
	case MOVED:
		root[1] = rt_alloc(n); // behind it
		root[2] = rt_realloc(RT_WORDS, p, 8 * n);
		ck_assert_ptr_ne(root[2], p);
		break;
	case CUT:
		ck_assert_int_eq(rt_resize(p, n / 2), RT_OK);
		root[1] = p;
		break;
	case NEVER_ALLOCATED:
		return (uintptr_t)root[0] - 50 * n;
	case LIVE:
		root[1] = p;
	}
	return at;
}

static int victim; // whose last byte read_victim reads

static void read_victim(void)
{
	if (*(volatile char *)make_victim(victim) != 0)
		fputs("not zero\n", stderr);
}

GROUP(poison, .timeout = 60);

TEST(reading_no_object_is_reported, .n = VICTIMS,
     .unless = SUITE_UNLESS(!RT_ASAN, "only under the address sanitizer"))
{
	int status;

	victim = _i;
	status = death_status(read_victim);
	if (victims[_i].how == LIVE) {
		ck_assert_msg(status == 0 && death_output[0] == '\0', "%s",
			      death_output);
		return;
	}
	ck_assert_int_ne(status, 0);
	ck_assert_msg(strstr(death_output, "use-after-poison") != NULL, "%s",
		      death_output);
	ck_assert_msg(strstr(death_output, "read_victim") != NULL, "%s",
		      death_output);
}

// A report of memcheck would be a report of this test.  So the test only asks
// memcheck for the bits of a byte.  A byte that memcheck would report has none.
TEST(memcheck_would_report_it, .n = VICTIMS,
     .unless = SUITE_UNLESS(!RUNNING_ON_VALGRIND, "only under memcheck"))
{
	enum { GIVEN = 1, NOT_ADDRESSABLE = 3 };
	uintptr_t at = make_victim(_i);
	unsigned char bits;
	unsigned answer = VALGRIND_GET_VBITS(at, &bits, 1);

	ck_assert(poison_memcheck);
	ck_assert_uint_eq(answer,
			  victims[_i].how == LIVE ? GIVEN : NOT_ADDRESSABLE);
}

// Stacks and later heaps get memory that was poisoned before.
TEST(memory_in_other_use_may_be_touched)
{
	for (unsigned i = 0; i < 3; i++) {
		char *stack;

		start();
		for (unsigned k = 0; k < 2000; k++) {
			void *p = rt_alloc(500);

			ck_assert_ptr_nonnull(p);
			ck_assert(heap_is_zero(p, 500));
		}
		ck_assert_int_eq(rt_gc(), RT_OK);
		stack = rt_stack_alloc(1 << 18);
		ck_assert_ptr_nonnull(stack);
		memset(stack, 0x55, 1 << 18);
		ck_assert_int_eq(rt_stack_free(stack, 1 << 18), RT_OK);
		for (unsigned k = 0; k < 1000; k++) {
			root[k % ROOTS] = rt_alloc(16 << k % 12);
			memset(root[k % ROOTS], 0x55, 16 << k % 12);
		}
		memset(root, 0, sizeof root);
		ck_assert_int_eq(rt_fini(), RT_OK);
	}
}
