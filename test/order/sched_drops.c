// Destructors, while other threads collect, fork, look objects up, or want to
// run destructors as well.
#include <rt/fork.h>

#include "gc/cycle/sweep.h"
#include "gc/host/finalize.h"
#include "gc/host/supply.h"
#include "gc/mark/drops.h"
#include "test/harness/warned.h"
#include "test/order/host.h"
#include "test/whole/drop.h"
#include "test/whole/fork.h"

enum { OBJECTS = 20 };

static struct hand first, second;
static void **root;

static void begin_held(void)
{
	begin_checked();
	root = (void **)heap_table(2 * OBJECTS, 0);
}

// ---- what runs destructors ----

static int picked_kind;	      // drop_picked drops objects of it
static rt_pick_fn *picks;     // and these of them
static int answer;	      // what rt_drop_now returned
static size_t ran;	      // by rt_run_finalizers
static void (*runs[2])(void); // run_all, drop_picked

static void run_all(void)
{
	host_attach();
	ran = rt_run_finalizers(0);
	host_detach();
}

static void drop_picked(void)
{
	host_attach();
	answer = rt_drop_now(picked_kind, picks, NULL);
	host_detach();
}

static int pick_low(const void *obj, size_t size, void *arg)
{
	(void)size, (void)arg;
	return ((const struct item *)obj)->id < OBJECTS;
}

static int pick_first(const void *obj, size_t size, void *arg)
{
	(void)size, (void)arg;
	return ((const struct item *)obj)->id == 0;
}

static void begin_runs(void)
{
	begin_held();
	runs[0] = run_all;
	runs[1] = drop_picked;
	picked_kind = kind;
	picks = NULL;
}

// stops_into makes a hand ask all threads to stop while the first one is held
// at a point.  Then both end.
static void stops_into(enum schedpoint at, void (*fn)(void))
{
	pass_at(SCHED_PROC_STOP_ALL_ASKED, &second, fn);
	let_end(at, &first);
	hand_end(&second);
	host_unblock();
}

// ---- look-ups ----

static void *looked_up;
static int found;

static void look_up(void)
{
	found = rt_is_heap(looked_up);
}

GROUP(drops_looks, .setup = begin_runs, .timeout = 2 * AWAIT_SECONDS);

// waits_in_batch makes three objects die, and runs the destructor of one.  The
// other two wait in its batch; one of them will be looked up.
static void waits_in_batch(void)
{
	void *objects[3];

	for (size_t i = 0; i < 3; i++)
		objects[i] = make(i);
	gc();
	ck_assert_uint_eq(rt_run_finalizers(1), 1);
	looked_up = objects[dropped[0] == 1 ? 2 : 0];
	// The object has turn 1.  A look-up reads turn 0 first.
	ck_assert_uint_eq(drops.turn, 1);
	picks = pick_none;
}

// drops CLEAR_FIRST, MOVES_LAST, MOVES_NOT_READ, MOVES_LATE: an object that
// waits changes its turn while it is looked up.  The look-up does not find it.
TEST(an_object_that_changes_its_turn_is_dead, .n = 6)
{
	static const enum schedpoint look[] = {SCHED_DEADBITS_TEST,
					       SCHED_DEADBITS_TEST_ONE};
	static const enum schedpoint move[] = {SCHED_DEADBITS_MOVE,
					       SCHED_DEADBITS_MOVE_COUNTED};

	waits_in_batch();
	host_block();
	hold_at(look[_i / 3], &first, look_up);
	if (_i % 3 < 2) {
		hold_at(move[_i % 3], &second, drop_picked);
		ck_assert_int_eq(rt_is_heap(looked_up), 0);
		let_end(look[_i / 3], &first);
		let_end(move[_i % 3], &second);
	} else {
		hand_run(&second, drop_picked);
		let_end(look[_i / 3], &first);
	}
	ck_assert_int_eq(found, 0);
	ck_assert_int_eq(answer, RT_OK);
	host_unblock();
	ck_assert_uint_eq(rt_run_finalizers(0), 2);
	each_dropped_once(3);
	heap_healthy();
}

// An object that waits changes its turn, and changes it back, while it is
// looked up.
TEST(an_object_that_changes_its_turn_twice_is_dead)
{
	waits_in_batch();
	host_block();
	hold_at(SCHED_DEADBITS_TEST_ONE, &first, look_up);
	hand_run(&second, drop_picked);
	move_on(SCHED_DEADBITS_TEST_ONE, SCHED_DEADBITS_TEST_BOTH);
	host_unblock();
	ck_assert_uint_eq(rt_run_finalizers(1), 1);
	ck_assert_int_eq(rt_drop_now(kind, pick_none, NULL), RT_OK);
	host_block();
	let_end(SCHED_DEADBITS_TEST_BOTH, &first);
	host_unblock();
	ck_assert_int_eq(found, 0);
	ck_assert_uint_eq(rt_run_finalizers(0), 1);
	each_dropped_once(3);
	heap_healthy();
}

// drops BITS_FIRST: an object is looked up while its slot becomes free, by the
// end of a batch or by a collection.  No look-up finds it.
TEST(a_slot_is_free_before_it_counts_as_no_dead_one, .n = 4)
{
	enum schedpoint at =
	    _i % 2 == 0 ? SCHED_FREE_DROPPED : SCHED_FORGET_DEAD;

	root[0] = rt_alloc_kind(kind, _i / 2 == 0 ? 32 : 100000);
	looked_up = root[0];
	if (_i % 2 == 1)
		ck_assert_int_eq(rt_drop_now(kind, NULL, NULL), RT_OK);
	root[0] = NULL;
	if (_i % 2 == 0)
		gc();
	host_block();
	hold_at(at, &first, _i % 2 == 0 ? run_all : host_collect);
	ck_assert_int_eq(rt_is_heap(looked_up), 0);
	let_end(at, &first);
	ck_assert_int_eq(rt_is_heap(looked_up), 0);
	host_unblock();
	each_dropped_once(1);
	ck_assert_uint_eq(heap_live(), 0);
	heap_healthy();
}

// ---- one thread at a time ----

GROUP(drops_runner, .setup = begin_runs, .timeout = 2 * AWAIT_SECONDS);

// runners RUN_BOTH: two threads find that no thread runs destructors.  One of
// them runs all, and the other one is refused.
TEST(one_of_two_threads_runs_destructors, .n = 4)
{
	// The stop of rt_drop_now would wait for the first thread, which is
	// held.  So the second thread is held before its stop.
	enum schedpoint at = _i / 2 == 0 ? SCHED_CALL_DROP : SCHED_FINALIZE_NOW;

	for (size_t i = 0; i < OBJECTS; i++)
		make(i);
	gc();
	host_block();
	hold_at(SCHED_DROPS_ACQUIRE, &first, runs[_i % 2]);
	hold_at(at, &second, runs[_i / 2]);
	let_end(SCHED_DROPS_ACQUIRE, &first);
	if (_i % 2 == 0)
		ck_assert_uint_eq(ran, 0);
	else
		ck_assert_int_eq(answer, RT_EBUSY);
	ck_assert_uint_eq(drops_run, 0);
	let_end(at, &second);
	if (_i / 2 == 0)
		ck_assert_uint_eq(ran, OBJECTS);
	else
		ck_assert_int_eq(answer, RT_OK);
	host_unblock();
	each_dropped_once(OBJECTS);
	heap_healthy();
}

// A thread that has no destructor left to run still has the right to run them.
// Until it gives that up, other threads run none.
TEST(destructors_run_until_the_thread_says_so, .n = 2)
{
	for (size_t i = 0; i < OBJECTS; i++)
		make(i);
	gc();
	host_block();
	hold_at(SCHED_DROPS_RELEASE, &first, runs[_i]);
	host_unblock();
	make(OBJECTS);
	ck_assert_uint_eq(rt_run_finalizers(0), 0);
	ck_assert_int_eq(rt_drop_now(kind, NULL, NULL), RT_EBUSY);
	host_block();
	let_end(SCHED_DROPS_RELEASE, &first);
	host_unblock();
	ck_assert_int_eq(rt_drop_now(kind, NULL, NULL), RT_OK);
	each_dropped_once(OBJECTS + 1);
	heap_healthy();
}

// ---- stops in a destructor ----

static uint32_t gen;
static bool polled;

// drop_polling polls, so that a stop with a collection can come.  Before and
// after that, the other object of the pair, which died or was picked with this
// one, is still there.
static void drop_polling(void *obj, size_t size, void *arg)
{
	drop_item(obj, size, arg);
	for (unsigned i = 0; i < 2; i++) {
		expect(pair_is_whole(obj));
		expect(epoch_sweepgen() == (polled ? gen + 2 : gen));
		rt_safepoint();
		polled = true;
		for (unsigned j = 0; j < 100; j++)
			expect(rt_alloc(sizeof(struct item)));
	}
}

// make_pairs makes objects that refer to each other in pairs.
static void make_pairs(size_t n)
{
	for (size_t i = 0; i < n; i += 2) {
		root[i] = make_of(picked_kind, i);
		root[i + 1] = make_of(picked_kind, i + 1);
		pair_up(root[i], root[i + 1]);
	}
}

GROUP(drops_stops, .setup = begin_runs, .timeout = 2 * AWAIT_SECONDS);

// drops ONE_TURN, REQUEUE_NOT, SWEEP_QUEUED, SWEEP_NOW: a thread is asked to
// stop when it has begun a drop.  It stops in the destructor, and not before.
// The neighbours of the dropped objects die meanwhile.
TEST(a_collection_comes_into_a_destructor, .n = 2)
{
	picks = pick_low;
	picked_kind = make_kind(0, drop_polling, NULL);
	make_pairs(2 * OBJECTS);
	if (_i == 0) {
		memset(root, 0, OBJECTS * sizeof *root);
		gc();
	}
	gen = epoch_sweepgen();
	host_block();
	hold_at(SCHED_CALL_DROP, &first, runs[_i]);
	memset(root, 0, 2 * OBJECTS * sizeof *root);
	stops_into(SCHED_CALL_DROP, host_collect);
	each_dropped_once(OBJECTS);
	ck_assert_uint_eq(ready(), OBJECTS);
	heap_healthy();
	ck_assert_uint_eq(rt_run_finalizers(0), OBJECTS);
	each_dropped_once(2 * OBJECTS);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	heap_healthy();
}

// rt_drop_now picks all its objects in one stop.  From then on they are dead,
// and the other objects live.
TEST(what_was_picked_is_dead_before_it_is_dropped)
{
	picks = pick_low;
	for (size_t i = 0; i < 2 * OBJECTS; i++)
		root[i] = make(i);
	host_block();
	hold_at(SCHED_FINALIZE_NOW_PICKED, &first, drop_picked);
	host_unblock();
	for (size_t i = 0; i < 2 * OBJECTS; i++)
		ck_assert_int_eq(rt_is_heap(root[i]), i >= OBJECTS);
	ck_assert_uint_eq(ready(), OBJECTS);
	ck_assert_uint_eq(rt_run_finalizers(0), 0);
	ck_assert_uint_eq(drops_run, 0);
	host_block();
	let_end(SCHED_FINALIZE_NOW_PICKED, &first);
	host_unblock();
	each_dropped_once(OBJECTS);
	ck_assert_uint_eq(drops_run, OBJECTS);
	heap_healthy();
}

// rt_drop_now also picks the objects that die before its stop.
TEST(a_collection_comes_before_objects_are_picked)
{
	for (size_t i = 0; i < OBJECTS; i++)
		make(i);
	host_block();
	hold_at(SCHED_FINALIZE_NOW, &first, drop_picked);
	stops_into(SCHED_FINALIZE_NOW, host_collect);
	ck_assert_int_eq(answer, RT_OK);
	each_dropped_once(OBJECTS);
	ck_assert_uint_eq(ready(), 0);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	heap_healthy();
}

static void end_kind(void)
{
	host_attach();
	ck_assert_int_eq(rt_kind_unregister(kind), RT_OK);
	host_detach();
}

// The kind ends after rt_drop_now was called, but before its stop.  The call is
// refused, and then other threads may run destructors.
TEST(a_kind_ends_before_objects_of_it_are_picked)
{
	host_block();
	hold_at(SCHED_FINALIZE_NOW, &first, drop_picked);
	stops_into(SCHED_FINALIZE_NOW, end_kind);
	ck_assert_int_eq(answer, RT_EINVAL);
	make_of(deep_kind, 0);
	ck_assert_int_eq(rt_drop_now(deep_kind, NULL, NULL), RT_OK);
	each_dropped_once(1);
	heap_healthy();
}

// ---- stops in the end of a batch ----

// Spans of two objects each: more spans than the end of a batch takes in one
// part.
enum { PAIRS = 2 * SWEEP_DROPPED + 1 };

// ends_in_parts makes a thread run all destructors of a batch.  One object of
// each span is in the batch; the other lives.  The thread is held when it has
// freed the objects of some spans.
static void ends_in_parts(void)
{
	uintptr_t *table = heap_table(PAIRS, 0);

	for (size_t i = 0; i < 2 * PAIRS; i++) {
		struct item *item = rt_alloc_kind(kind, 4096);

		item->id = i / 2 + i % 2 * PAIRS;
		if (i % 2 == 1)
			table[i / 2] = (uintptr_t)item;
	}
	gc();
	ck_assert_uint_eq(ready(), PAIRS);
	host_block();
	hold_at(SCHED_FREE_BATCH, &first, run_all);
	ck_assert_ptr_nonnull(drops.batch);
	each_dropped_once(PAIRS);
	ck_assert_int_eq(rt_roots_remove(table, table + PAIRS), RT_OK);
}

TEST(a_collection_comes_between_parts_of_a_batch)
{
	ends_in_parts();
	stops_into(SCHED_FREE_BATCH, host_collect);
	ck_assert_uint_eq(ran, PAIRS);
	ck_assert_uint_eq(ready(), PAIRS);
	ck_assert_uint_eq(heap_live(), PAIRS);
	heap_healthy();
	ck_assert_uint_eq(rt_run_finalizers(0), PAIRS);
	each_dropped_once(2 * PAIRS);
	ck_assert_uint_eq(heap_live(), 0);
	heap_healthy();
}

// rest_ends expects that the child frees the rest of the batch.
static void rest_ends(void)
{
	expect(rt_thread_attach(RT_THREAD_EXACT) == RT_OK);
	verify();
	expect(rt_run_finalizers(0) == 0);
	expect(stats().heap_objects == PAIRS);
	collect();
	expect(rt_run_finalizers(0) == PAIRS);
	expect(dropped_once(2 * PAIRS) == 2 * PAIRS);
	verify();
	expect(stats().heap_objects == 0);
}

static void fork_rest(void)
{
	fork_and(rest_ends);
}

// drops FORK_KEPT, runners RIGHT_KEPT: the child does not have the thread that
// freed the batch.  Another thread frees the rest there.
TEST(a_fork_comes_between_parts_of_a_batch)
{
	ends_in_parts();
	stops_into(SCHED_FREE_BATCH, fork_rest);
	ck_assert_uint_eq(heap_live(), PAIRS);
	heap_healthy();
}

// ---- forks ----

// drop_parking polls, so that the fork can come.
static void drop_parking(void *obj, size_t size, void *arg)
{
	drop_item(obj, size, arg);
	rt_safepoint();
}

// is_as_before expects that the objects that were not dropped live in a child.
// The child does not have the thread that was dropping.
static void is_as_before(void)
{
	expect(rt_thread_attach(RT_THREAD_EXACT) == RT_OK);
	verify();
	expect(only_dropped_died(root, OBJECTS));
	expect(rt_finalizers_ready() == 0);
	collect();
	expect(rt_drop_now(picked_kind, NULL, NULL) == RT_OK);
	expect(dropped_once(OBJECTS) == OBJECTS);
	memset(root, 0, OBJECTS * sizeof *root);
	collect();
	expect(stats().heap_objects == 0);
}

static void fork_as_before(void)
{
	fork_and(is_as_before);
}

// drops FORK_KEPT, FORK_PICKED, FORK_DIES: a fork comes before anything is
// picked, or before the first destructor returns.
TEST(a_fork_comes_into_rt_drop_now, .n = 2)
{
	enum schedpoint at =
	    _i == 0 ? SCHED_FINALIZE_NOW : SCHED_FINALIZE_NOW_PICKED;

	picked_kind = make_kind(0, drop_parking, NULL);
	make_pairs(OBJECTS);
	host_block();
	hold_at(at, &first, drop_picked);
	stops_into(at, fork_as_before);
	each_dropped_once(OBJECTS);
	memset(root, 0, OBJECTS * sizeof *root);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	heap_healthy();
}

// ---- destructors beside a sweep ----

static void begin_beside(void)
{
	rt_config c = heap_config_checked();

	c.sweep = 2;
	c.gc_threads = 0;
	begin_drops(c);
	root = (void **)heap_table(OBJECTS, 0);
}

// one_gone_two_wait leaves three neighbours unswept.  The destructor of the
// first has run, so the sweep frees it, and the others wait for theirs.
static void one_gone_two_wait(void)
{
	for (size_t i = 0; i < 3; i++)
		root[i] = make(i);
	picks = pick_first;
	ck_assert_int_eq(rt_drop_now(kind, picks, NULL), RT_OK);
	memset(root, 0, 3 * sizeof *root);
	supply_collect(proc_self(), ASK_FORCED);
	ck_assert_uint_eq(ready(), 2);
	ck_assert(sweep_left());
}

GROUP(drops_beside, .setup = begin_beside, .timeout = 2 * AWAIT_SECONDS);

// A batch is not opened while a sweep frees an object of one of its spans: the
// thread that would open it waits until all is swept.
TEST(a_batch_begins_when_all_is_swept)
{
	one_gone_two_wait();
	host_block();
	hold_at(SCHED_DEADBITS_CLEAR, &first, host_sweep);
	pass_at(SCHED_SWEPT_AWAIT, &second, run_all);
	ck_assert_uint_eq(drops_run, 1);
	let_end(SCHED_DEADBITS_CLEAR, &first);
	hand_end(&second);
	host_unblock();
	ck_assert_uint_eq(ran, 2);
	each_dropped_once(3);
	ck_assert_uint_eq(ready(), 0);
	heap_healthy();
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

// ---- what the host is told ----

static void tell(void)
{
	host_attach();
	finalize_tell();
	host_detach();
}

GROUP(drops_news, .setup = begin_runs, .timeout = 2 * AWAIT_SECONDS);

// Two threads find that the host must be warned of objects that wait.  One of
// them warns it.
TEST(one_of_two_threads_warns_of_what_waits)
{
	ck_assert_int_eq(rt_set_warn_handler(warned, NULL), RT_OK);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_ptr_nonnull(rt_alloc_kind(kind, 1 << 20));
	for (unsigned i = 0; i < 2; i++)
		supply_collect(proc_self(), ASK_FORCED);
	host_block();
	hold_at(SCHED_FINALIZE_TELL_NEWS, &first, tell);
	hand_run(&second, tell);
	ck_assert_uint_eq(warnings, 1);
	let_end(SCHED_FINALIZE_TELL_NEWS, &first);
	ck_assert_uint_eq(warnings, 1);
	host_unblock();
	ck_assert_int_eq(rt_set_warn_handler(NULL, NULL), RT_OK);
	ck_assert_uint_eq(rt_run_finalizers(0), 4);
}

static size_t told; // by note_ready

static void note_ready(size_t n, void *arg)
{
	(void)arg;
	told += n;
}

// The host is told how many destructors were ready, even if another thread has
// run these since.
TEST(the_host_is_told_of_what_was_ready)
{
	ck_assert_int_eq(
	    rt_set_finalize_mode(RT_FINALIZE_MANUAL, note_ready, NULL), RT_OK);
	for (size_t i = 0; i < 3; i++)
		make(i);
	supply_collect(proc_self(), ASK_FORCED);
	host_block();
	hold_at(SCHED_FINALIZE_TELL_NEWS_READY, &first, tell);
	hand_run(&second, run_all);
	ck_assert_uint_eq(ran, 3);
	let_end(SCHED_FINALIZE_TELL_NEWS_READY, &first);
	ck_assert_uint_eq(told, 3);
	host_unblock();
	each_dropped_once(3);
}
