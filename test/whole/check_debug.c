// The debugging modes of rt_config.  Each finds the error it is for (guards:
// check_guard, poison: check_poison), and accepts a program without errors.
#include "test/harness/heap.h"

#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/os/settings.h"
#include "runtime/spans/spoil.h"
#include "runtime/spans/mspan.h"
#include "runtime/world/proc.h"
#include "test/harness/await.h"
#include "test/harness/missed.h"

enum { ROOTS = 64 };

static void *root[ROOTS];
static rt_config config; // quiet; a test sets its mode

static void setup(void)
{
	config = heap_config(HEAP_QUIET);
}

static void start(void)
{
	heap_start_exact(config);
	must(rt_roots_add(root, root + ROOTS, RT_ROOT_EXACT));
}

// churn is a program without errors: it builds lists of objects of many
// sizes, drops most, and returns how many objects it found changed.
static unsigned churn(unsigned rounds)
{
	static const size_t size[] = {16, 24, 40, 100, 1024, 5000, 40000};
	unsigned wrong = 0;

	for (unsigned i = 0; i < rounds; i++) {
		void **slot = &root[i % ROOTS];
		size_t n = size[i % RT_ARRAY_LEN(size)];
		uintptr_t *p = rt_alloc(n);

		ck_assert_ptr_nonnull(p);
		wrong += !heap_is_zero(p, n);
		if (i % 5 != 0)
			p[0] = (uintptr_t)*slot;
		p[n / sizeof *p - 1] = n;
		*slot = p;
		if (*slot && p[0])
			wrong += rt_size((void *)p[0]) == 0;
		ck_assert_ptr_nonnull(rt_alloc_noscan(1 + i % 30));
	}
	return wrong;
}

// ---- gcstress ----

static uint64_t collections(void)
{
	return heap_stats().num_gc;
}

GROUP(modes, .setup = setup, .timeout = 60);

TEST(every_nth_allocation_collects)
{
	config.gcstress = 3;
	start();
	for (unsigned i = 1; i <= 30; i++) {
		void *p = i % 2 ? rt_alloc(32) : rt_alloc_noscan(3);

		ck_assert_ptr_nonnull(p);
		ck_assert_uint_eq(collections(), i / 3);
	}
	ck_assert_uint_eq(heap_stats().num_forced_gc, 0);
	ck_assert_ptr_nonnull(rt_alloc(0));
	ck_assert_ptr_nonnull(rt_alloc(0));
	ck_assert_ptr_nonnull(rt_alloc(0));
	ck_assert_uint_eq(collections(), 10);
}

// Each heap counts its allocations from 0, so a run can be repeated.
TEST(stress_begins_anew_with_the_heap)
{
	config.gcstress = 2;
	for (unsigned i = 0; i < 2; i++) {
		start();
		ck_assert_ptr_nonnull(rt_alloc(32));
		ck_assert_uint_eq(collections(), 0);
		ck_assert_int_eq(rt_fini(), RT_OK);
	}
	config.gcstress = 0;
	start();
	for (unsigned i = 0; i < 100; i++)
		ck_assert_ptr_nonnull(rt_alloc(32));
	ck_assert_uint_eq(collections(), 0);
}

// ---- clobberfree ----

static bool is_clobbered(const void *p, size_t n)
{
	const uint64_t *word = p;

	for (size_t i = 0; i < n / sizeof *word; i++)
		if (word[i] != SPOIL_CLOBBER)
			return false;
	return true;
}

static const size_t clobber_sizes[] = {8, 16, 24, 512, 1024, 8192, 200000};

// A dead object is overwritten, and a live one beside it is not.  Memory that
// is used again is zero.
TEST(freed_objects_are_overwritten, .n = RT_ARRAY_LEN(clobber_sizes))
{
	size_t n = clobber_sizes[_i];
	volatile uintptr_t hidden; // exact roots: the stack is not scanned
	void *p;

	config.clobberfree = 1;
	start();
	root[0] = rt_alloc(n);
	p = rt_alloc(n);
	memset(root[0], 0x55, n);
	memset(p, 0x55, n);
	hidden = (uintptr_t)p;
	ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert(is_clobbered((void *)hidden, n));
	ck_assert_uint_eq(*(unsigned char *)root[0], 0x55);
	ck_assert_mem_eq(root[0], (char *)root[0] + 1, n - 1);
	for (unsigned i = 0; i < 2000; i++) {
		p = rt_alloc(n);
		ck_assert(heap_is_zero(p, n));
	}
}

// Without the mode, freed memory stays as it was.
TEST(without_it_nothing_is_overwritten)
{
	volatile uintptr_t hidden;

	start();
	root[0] = rt_alloc(64);
	hidden = (uintptr_t)rt_alloc(64);
	memset((void *)hidden, 0x55, 64);
	ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert_uint_eq(*(unsigned char *)hidden, 0x55);
}

// ---- checkmark ----

static size_t parent_size;

static void miss_a_child(void)
{
	uintptr_t *parent, *child;

	start();
	parent = root[1] = rt_alloc(parent_size);
	child = rt_alloc(48);
	parent[2] = (uintptr_t)child | 3;
	missed_say((uintptr_t)child, (uintptr_t)parent);
	rt_gc(); // also retires runs: the mark bit is then the object's
	missed_inside(parent);
	rt_gc();
	fputs(rt_is_heap(child) ? "kept\n" : "freed\n", stderr);
}

static void expect_child_missed(size_t size)
{
	parent_size = size;
	config.checkmark = 1;
	missed_from(miss_a_child, "size=48, found in an object", ", offset 16");
}

TEST(object_that_marking_missed_is_named)
{
	expect_child_missed(64);
	expect_child_missed(100000);
}

TEST(without_the_check_it_is_freed)
{
	int status;

	parent_size = 64;
	status = death_status(miss_a_child);
	ck_assert_int_eq(status, 0);
	ck_assert_msg(strstr(death_output, "freed\n") != NULL, "%s",
		      death_output);
}

// Outside of a collection nothing is marked, so the check reports anything that
// a root leads to.  The thread that may hold the object is not the first in the
// list of Ps, because another thread attaches after it.
enum look {
	LOOK_STACK,
	LOOK_REGISTERS,
	LOOK_END,
	LOOK_NO_END,
	LOOK_WORDS,
	LOOK_EXACT,
	LOOKS
};

static const struct look_case {
	bool past_end;
	const char *report;
} look_cases[LOOKS] = {
    [LOOK_STACK] = {false, "found in a stack at "},
    [LOOK_REGISTERS] = {false, "found in registers at "},
    [LOOK_END] = {true, "found in registers at "},
    [LOOK_NO_END] = {false, "passed\n"},
    [LOOK_WORDS] = {false, "found in a root range at "},
    [LOOK_EXACT] = {false, "passed\n"},
};

static enum look look;
static atomic_u32 staying;

// stay attaches the calling thread, with a word on its stack, and never
// returns.
static void stay(int flags, void *word)
{
	void *volatile held = word;

	ck_assert_int_eq(rt_thread_attach(flags), RT_OK);
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	atomic_u32_add_release(&staying, 1);
	for (;;)
		pause();
	(void)held;
}

static void *stay_with_word(void *word)
{
	stay(0, word);
	return NULL;
}

static void *stay_exact(void *arg)
{
	stay(RT_THREAD_EXACT, arg);
	return NULL;
}

// hide puts a word that leads to the object where the case wants it.
static void hide(char *obj, size_t size, struct rt_proc *holder)
{
	static char *inner[1];
	uintptr_t *reg = (uintptr_t *)holder->context.frame.regs;

	inner[0] = obj + 64;
	if (look == LOOK_WORDS || look == LOOK_EXACT)
		rt_roots_add(inner, inner + 1,
			     look == LOOK_WORDS ? RT_ROOT_WORDS
						: RT_ROOT_EXACT);
	rt_stop_the_world(RT_STOP_HOST);
	if (look == LOOK_REGISTERS)
		*reg = (uintptr_t)obj;
	if (look == LOOK_END || look == LOOK_NO_END)
		*reg = (uintptr_t)obj + size;
}

static void look_around(void)
{
	enum { SIZE = 100000 };
	struct rt_proc *holder;
	char *obj;

	start();
	obj = rt_alloc(SIZE);
	start_thread(stay_with_word, look == LOOK_STACK ? obj : NULL);
	await_at_least(&staying, 1);
	holder = proc_first();
	start_thread(stay_exact, NULL);
	await_at_least(&staying, 2);
	ck_assert_ptr_ne(proc_first(), holder);
	hide(obj, SIZE, holder);
	settings_present.past_end = look_cases[look].past_end;
	checkmark_all();
	fputs("passed\n", stderr);
}

GROUP(looks, .setup = setup, .timeout = 60);

TEST(every_place_is_looked_at, .n = LOOKS)
{
	look = (enum look)_i;
	death_status(look_around);
	ck_assert_msg(strstr(death_output, look_cases[look].report) != NULL,
		      "%s", death_output);
}

// Like the check, marking does not follow a word of an exact range that points
// into an object.
TEST(what_points_into_an_object_is_no_reference)
{
	config.checkmark = 1;
	start();
	root[0] = (char *)rt_alloc(16) + 8;
	root[1] = (char *)rt_alloc(64) + 8;
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

// ---- programs without errors ----

enum {
	MODES = 32,
	// Each of the seven sizes comes to each root twice, and each root drops
	// its list at least once.
	ROUNDS = COVERAGE_BUILD ? 100 : 2 * 7 * ROOTS / HEAP_CUT,
};

static void set_modes(unsigned modes)
{
	config.checkmark = modes & 1;
	config.clobberfree = modes >> 1 & 1;
	config.gcstress = modes & 4 ? 2 : 0;
	config.poison = modes >> 3 & 1;
	config.guard_large = modes >> 4 & 1;
	config.guard_small = modes & 16 ? 3 : 0;
	config.gc_percent = 1;
	config.heap_min = 1 << 16;
	config.heap_headroom = 0;
}

GROUP(modes);

TEST(healthy_program_passes, .n = 2 * MODES)
{
	set_modes((unsigned)_i % MODES);
	config.align8 = _i >= MODES;
	start();
	ck_assert_uint_eq(churn(ROUNDS), 0);
	ck_assert_uint_gt(heap_live_after_gc(), 0);
}

// The same program passes with a stack and registers as roots, with and without
// past_end.
TEST(healthy_program_with_stacks_passes, .n = 2 * MODES)
{
	set_modes((unsigned)_i % MODES);
	config.past_end = _i >= MODES;
	ck_assert_int_eq(rt_init(&config), RT_OK);
	must(rt_roots_add(root, root + ROOTS, RT_ROOT_WORDS));
	ck_assert_uint_eq(churn(ROUNDS), 0);
	ck_assert_uint_gt(heap_live_after_gc(), 0);
}
