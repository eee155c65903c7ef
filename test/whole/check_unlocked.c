// Freeing an object by hand and allocating another takes no locked instruction.
// Neither does making and freeing a handle.
//
// A thread steps through such calls.  After each instruction a signal handler
// looks at the next one.  So the tests need no list of the functions of the
// fast path: they see what the processor executes, however the library was
// compiled.  Calls that take a lock show that the handler finds locked
// instructions.  Only x86-64 has these steps and a prefix to look for.
#define _GNU_SOURCE 1 // REG_RIP

#include <rt/rt.h>

#include <signal.h>
#include <ucontext.h>

#include "runtime/spans/freelist.h"
#include "gc/mark/handles.h"
#include "test/harness/heap.h"

#ifdef __x86_64__
enum { CAN_STEP = 1 };
#else
enum { CAN_STEP = 0 };
#endif

// cannot_step returns why the tests are skipped here, or NULL.  The handler
// would also look at the code that such a build adds to the library.
static const char *cannot_step(void)
{
	if (!CAN_STEP)
		return "steps are looked at on x86-64 only";
	if (RT_ASAN || RT_TSAN || RT_DEBUG_BUILD || COVERAGE_BUILD)
		return "not in a build that looks at what the library does";
	return SUITE_VALGRIND;
}

static struct {
	unsigned taken;	   // instructions
	unsigned locked;   // of those
	const void *first; // of the locked ones
} steps;

// is_locked tells whether the instruction at p is an atomic change of memory:
// it has the prefix lock, or is an exchange with memory, which needs none.
static bool is_locked(const uint8_t *p)
{
	for (;; p++) {
		switch (*p) {
		case 0xf0:
			return true;
		case 0x26:
		case 0x2e:
		case 0x36:
		case 0x3e:
		case 0x64:
		case 0x65: // segments
		case 0x66:
		case 0x67: // sizes
		case 0xf2:
		case 0xf3: // repetition
			continue;
		default:
			break;
		}
		if ((*p & 0xf0) != 0x40) // of 64 bits
			break;
	}
	return (*p & 0xfe) == 0x86 && p[1] < 0xc0;
}

#ifdef __x86_64__
static void look(int signal, siginfo_t *info, void *context)
{
	const ucontext_t *u = context;
	const uint8_t *next = (const uint8_t *)u->uc_mcontext.gregs[REG_RIP];

	(void)signal;
	(void)info;
	steps.taken++;
	if (!is_locked(next))
		return;
	if (steps.locked++ == 0)
		steps.first = next;
}

// The flags are changed on the stack, below what the compiler may use without
// moving the stack pointer.
static inline void steps_on(void)
{
	__asm__ volatile("leaq -128(%%rsp), %%rsp\n\t"
			 "pushfq\n\t"
			 "orq $0x100, (%%rsp)\n\t"
			 "popfq\n\t"
			 "leaq 128(%%rsp), %%rsp"
			 :
			 :
			 : "memory", "cc");
}

static inline void steps_off(void)
{
	__asm__ volatile("leaq -128(%%rsp), %%rsp\n\t"
			 "pushfq\n\t"
			 "andq $~0x100, (%%rsp)\n\t"
			 "popfq\n\t"
			 "leaq 128(%%rsp), %%rsp"
			 :
			 :
			 : "memory", "cc");
}
#else
static void look(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	(void)context;
	(void)is_locked;
}

static inline void steps_on(void)
{
}

static inline void steps_off(void)
{
}
#endif

static void begin(void)
{
	struct sigaction look_at = {.sa_sigaction = look,
				    .sa_flags = SA_SIGINFO};

	heap_start_exact(heap_config(HEAP_QUIET));
	ck_assert_int_eq(sigaction(SIGTRAP, &look_at, NULL), 0);
}

// none_locked requires that at least n instructions were taken since the last
// call, and that none was locked.
static void none_locked(const char *what, unsigned n)
{
	ck_assert_msg(steps.taken >= n, "%s: only %u steps", what, steps.taken);
	ck_assert_msg(steps.locked == 0, "%s: %u of %u locked, first at %p",
		      what, steps.locked, steps.taken, steps.first);
	steps.taken = 0;
}

// some_locked requires that at least one instruction since the last call was
// locked.
static void some_locked(const char *what)
{
	ck_assert_msg(steps.locked != 0, "%s: none of %u steps is locked", what,
		      steps.taken);
	steps.taken = steps.locked = 0;
}

GROUP(steps, .setup = begin, .timeout = 60);

// ---- what is found ----

static uint64_t word;

static void exchange(void)
{
	word = __atomic_exchange_n(&word, 1, __ATOMIC_SEQ_CST);
}

static void exchange_byte(void)
{
	__atomic_exchange_n((uint8_t *)&word, 1, __ATOMIC_SEQ_CST);
}

static void add(void)
{
	__atomic_fetch_add(&word, 1, __ATOMIC_SEQ_CST);
}

static void compare_and_swap_half(void)
{
	__sync_bool_compare_and_swap((uint16_t *)&word, 0, 1);
}

static void plain(void)
{
	__atomic_store_n(&word, __atomic_load_n(&word, __ATOMIC_ACQUIRE) + 1,
			 __ATOMIC_RELEASE);
}

static void (*const atomics[])(void) = {exchange, exchange_byte, add,
					compare_and_swap_half};

TEST(a_locked_instruction_is_found, .n = RT_ARRAY_LEN(atomics),
     .unless = cannot_step())
{
	steps_on();
	atomics[_i]();
	steps_off();
	some_locked("an atomic change");
	steps_on();
	plain();
	steps_off();
	none_locked("a load and a store", 2);
}

// ---- objects ----

enum { BYTES = 48, TIMES = 100, MOST = 20000 };

static void *root[MOST];

// use_up allocates until the run from which inline code allocates is used up.
// Then the next allocation takes a slot that was freed.
static void use_up(void)
{
	unsigned n = 0;
	void *p;

	must(rt_roots_add(root, root + MOST, RT_ROOT_EXACT));
	do {
		p = rt_alloc(BYTES);
		must(rt_free(p));
		ck_assert_uint_lt(n, MOST);
		root[n++] = rt_alloc(BYTES);
	} while (root[n - 1] != p);
	root[n - 1] = NULL;
	must(rt_free(p));
}

// Each allocation gets the slot that was freed before, so neither call leaves
// the fast path.
TEST(a_free_and_the_next_allocation_have_none, .unless = cannot_step())
{
	use_up();
	for (unsigned i = 0; i < TIMES; i++) {
		int error;
		void *p, *q;

		steps_on();
		p = rt_alloc(BYTES);
		error = rt_free(p);
		q = rt_alloc(BYTES);
		steps_off();
		must(error);
		ck_assert_ptr_nonnull(p);
		ck_assert_ptr_eq(p, q);
		must(rt_free(q));
	}
	none_locked("objects", TIMES * 100);
	heap_healthy();
}

// A thread shares a list that is full with others, which takes a lock.
TEST(a_list_of_freed_slots_takes_a_lock_only_when_it_is_full,
     .unless = cannot_step())
{
	static void *p[FREELIST_MOST + 1];
	int error = RT_OK;

	use_up();
	for (unsigned i = 0; i < RT_ARRAY_LEN(p); i++)
		ck_assert_ptr_nonnull(p[i] = rt_alloc_noscan(BYTES));
	steps_on();
	for (unsigned i = 0; i < FREELIST_MOST; i++)
		error |= rt_free(p[i]);
	steps_off();
	none_locked("a list that becomes full", FREELIST_MOST * 50);
	steps_on();
	error |= rt_free(p[FREELIST_MOST]);
	steps_off();
	some_locked("a list that is full");
	must(error);
	heap_healthy();
}

// ---- handles ----

static rt_handle *handle[HANDLES_KEPT];

static void make_handles(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		handle[i] = rt_handle_new(root);
}

static int free_handles(unsigned n)
{
	int error = RT_OK;

	for (unsigned i = 0; i < n; i++)
		error |= rt_handle_free(handle[i]);
	return error;
}

TEST(a_handle_that_comes_and_goes_has_none, .unless = cannot_step())
{
	int error;

	make_handles(HANDLES_BATCH);
	must(free_handles(HANDLES_BATCH));
	steps_on();
	make_handles(HANDLES_BATCH);
	error = free_handles(HANDLES_BATCH);
	steps_off();
	must(error);
	none_locked("handles", HANDLES_BATCH * 40);
	steps_on();
	make_handles(HANDLES_BATCH + 1);
	steps_off();
	some_locked("a thread without free handles");
	heap_healthy();
}
