// Tests every protocol step that a model names.  Threads are held at schedule
// points (sched.h), so that their steps come in the order in which the fault of
// a mutant does harm.
//
// The comment above a test names a model and some of its mutants.  If the C
// code had the fault of such a mutant, the test would fail.  The tool
// tools/schedpoints.sh verifies that each mutant is named above a test, or here
// with the reason why no order of steps is tested for it:
//
// - Three are about the order of memory, which no order of steps shows.
//   test/order/dekker.sh reads the code for them: heapstats SEQ_UNFENCED,
//   heapstats GEN_UNFENCED, stw GATE_UNFENCED.
// - Two are about a single thread.  test/unit/check_mark and
//   test/whole/check_kind_flags count what they would lose: marking
//   KEPT_WAITING, marking OFFER_LATE.
// - Two show in any order of steps, in test/whole/check_free: freelist NO_SEAL,
//   SEAL_STAYS.
// - Two are about stores that the code does not have, so there is no step at
//   which to hold a thread: freelist BIT_AT_ONCE, PAIR_APART.
// - Four show in every collection, in test/whole/check_stacks and
//   test/whole/check_stack_threads: stacks NO_LOOK, OLD_LOOK, LOOK_EARLY,
//   ROOT_TWICE.
// - One would be a fault of the host: stacks MOVE_FIRST.
// - Four need no order of steps, only rt_drop_now or a collection in the middle
//   of a batch, as in test/whole/check_drop, test/whole/check_drop_now and
//   test/whole/check_drop_stay: drops FREE_EARLY, BATCH_KEPT, MIXED_NOT,
//   CONDEMNED_NOT.
// - One shows in any destructor that forks, in test/whole/check_drop_now:
//   runners RIGHT_LOST.
// - Three show wherever there is no room to mark with, in test/whole/check_gc
//   and test/whole/check_kind_flags: overflow OVER_RAISED, LEFT_SILENT,
//   RESCAN_ANY.
// - Two show in any collection that leaves something unswept, in
//   test/whole/check_swept: swept LEADER_SKIPS, CHOICE_EARLY.
// - Two cost a thread at most a millisecond of sleep, and no test measures
//   time.  test/order/dekker.sh reads the code for the order of memory that
//   they break: swept SLEEP_UNCOUNTED, WAKE_FIRST.
// - One shows in any collection that comes after another one: ask LEADER_EXITS.
#include "test/order/sched.h"

#include <stdlib.h>
#include <sys/mman.h>

atomic_u32 *sched_reached;

GROUP(points, .timeout = 2 * AWAIT_SECONDS, .last = true);

// This test runs last.  It requires that some test has held a thread at each
// point, so that no step is left without a test.
TEST(every_point_was_reached)
{
	for (unsigned at = 0; at < SCHEDPOINT_COUNT; at++)
		if (!atomic_u32_load_relaxed(&sched_reached[at]))
			ck_abort_msg("no test holds a thread at %s",
				     schedpoint_name(at));
}

int main(void)
{
	sched_reached =
	    mmap(NULL, SCHEDPOINT_COUNT * sizeof *sched_reached,
		 PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (sched_reached == MAP_FAILED)
		return EXIT_FAILURE;
	schedpoint_watch();
	return suite_run();
}
