// The host is told of threads that run on unknown stacks.
#include "gc/mark/stacks.h"
#include "test/harness/warned.h"
#include "test/order/host.h"
#include "test/whole/fork.h"

// Threads that say that they run elsewhere.
static struct hand lost[2], teller;
static char elsewhere[4096];
static atomic_u32 blocked, over;
static bool told;
static uintptr_t told_sp;

static void begin_exact(void)
{
	heap_start_exact(warned_config());
}

static void set_elsewhere(void)
{
	expect(rt_thread_set_stack(elsewhere, elsewhere + sizeof elsewhere) ==
	       RT_OK);
}

static void run_elsewhere(void)
{
	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	set_elsewhere();
	host_block();
	atomic_u32_add_seqcst(&blocked, 1);
	await_at_least(&over, 1);
	host_unblock();
	host_detach();
}

// look starts a thread that is lost, and stops the world to look for such
// threads.
static void look(unsigned i)
{
	hand_start(&lost[i], run_elsewhere);
	await_at_least(&blocked, i + 1);
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	stacks_look();
	stacks_look_again();
	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
}

static void end_lost(unsigned n)
{
	atomic_u32_store_release(&over, 1);
	host_block();
	for (unsigned i = 0; i < n; i++)
		hand_end(&lost[i]);
	host_unblock();
}

static void take(void)
{
	told = stacks_take_warning(&told_sp);
}

GROUP(warnings, .setup = begin_exact, .timeout = 2 * AWAIT_SECONDS);

// warning WARN_OVER, READ_LATE: a stop finds a second lost thread while the
// host is being told of the first.  The host is told of the second one after
// another stop.
TEST(each_lost_thread_is_told_of_by_itself)
{
	uintptr_t first;

	look(0);
	first = stacks.lost;
	hold_at(SCHED_STACKS_TAKE_WARNING, &teller, take);
	look(1);
	let_end(SCHED_STACKS_TAKE_WARNING, &teller);
	ck_assert(told);
	ck_assert_uint_eq(told_sp, first);
	take();
	ck_assert(!told);
	ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert_uint_eq(warnings, 1);
	ck_assert_uint_ne(stacks.lost, first);
	end_lost(2);
}

// is_told expects that the child can be told of another thread.
static void is_told(void)
{
	expect(rt_thread_detach() == RT_OK);
	expect(rt_thread_attach(0) == RT_OK);
	set_elsewhere();
	expect(rt_gc() == RT_OK);
	expect(warnings == 1);
}

// warning FORK_TAKEN: the child does not have the thread that was telling the
// host.  The host can be told of others there.
TEST(a_child_can_be_told_of_more)
{
	look(0);
	hold_at(SCHED_STACKS_TAKE_WARNING, &teller, take);
	fork_and(is_told);
	let_end(SCHED_STACKS_TAKE_WARNING, &teller);
	ck_assert(told);
	end_lost(1);
}
