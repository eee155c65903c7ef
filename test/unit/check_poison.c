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
	ck_assert_int_eq(rt_roots_add(root, root + ROOTS, RT_ROOT_EXACT),
			 RT_OK);
}

// ---- what is watched ----

enum victim { FREED, FREED_LARGE, NEVER_ALLOCATED, LIVE, VICTIMS };

// make_victim returns the address of the first byte of a victim.
static uintptr_t make_victim(enum victim victim)
{
	size_t n = victim == FREED_LARGE ? 100000 : 64;
	volatile uintptr_t at;

	start();
	root[0] = rt_alloc(n);
	at = (uintptr_t)rt_alloc(n);
	if (victim == LIVE)
		root[1] = (void *)at;
	if (victim == NEVER_ALLOCATED)
		return (uintptr_t)root[0] - 50 * n; // of the same run
	rt_gc();
	return at;
}

static enum victim victim; // whose first byte read_victim reads

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

	victim = (enum victim)_i;
	status = death_status(read_victim);
	if (victim == LIVE) {
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
// what memcheck would report: it has no bits of a byte that may not be touched.
TEST(memcheck_would_report_it, .n = VICTIMS,
     .unless = SUITE_UNLESS(!RUNNING_ON_VALGRIND, "only under memcheck"))
{
	enum { GIVEN = 1, NOT_ADDRESSABLE = 3 };
	uintptr_t at = make_victim((enum victim)_i);
	unsigned char bits;
	unsigned answer = VALGRIND_GET_VBITS(at, &bits, 1);

	ck_assert(poison_memcheck);
	ck_assert_uint_eq(answer, _i == LIVE ? GIVEN : NOT_ADDRESSABLE);
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
