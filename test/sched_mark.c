// Markers that share their work, and the calls for helpers.
#define RT_NO_INLINE_ALLOC
#include <rt/rt.h>

#include "gc/crew.h"
#include "gc/grey.h"
#include "gc/work.h"
#include "test/sched.h"

static struct rt_proc *self;
static struct gcmarker first; // the opener
static struct gcwork second, third;
static struct gcmarker beside; // another marker
static char *objects[2];       // with marks in one word
static struct hand opener, helper, giver;

static void begin(void)
{
	heap_begin();
	self = proc_self();
	for (unsigned i = 0; i < RT_ARRAY_LEN(objects); i++)
		objects[i] = rt_alloc(32);
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	gcgrey_look(&first);
}

static void open_marking(uint32_t njobs)
{
	gcwork_open(&first.work, self, njobs);
}

static void push(struct gcwork *w, uintptr_t n)
{
	for (uintptr_t i = 1; i <= n; i++)
		ck_assert(gcwork_push(w, 8 * i));
}

// drain empties a marker's stack and tells how much was on it.
static uintptr_t drain(struct gcwork *w)
{
	uintptr_t n = 0;

	for (; gcwork_any(w) || gcwork_more(w); n++)
		gcwork_pop(w);
	return n;
}

static enum gcwork_next get(struct gcwork *w)
{
	uint32_t job;

	return gcwork_get(w, &job);
}

static enum gcwork_next opener_got, helper_got;

static void opener_gets(void)
{
	opener_got = get(&first.work);
}

static void helper_gets(void)
{
	helper_got = get(&second);
}

static void helper_gives(void)
{
	gcwork_share(&second);
}

static void opener_gives(void)
{
	gcwork_share(&first.work);
}

static void close_marking(void)
{
	gcwork_close(&first.work);
}

// over ends the marking when all markers but the opener wait or are gone.
static void over(void)
{
	drain(&first.work);
	ck_assert_int_eq(get(&first.work), GCWORK_OVER);
	close_marking();
}

// ---- alone ----

static atomic_u64 mark_word;

static void set_bit(void)
{
	gcgrey_set(&first, &mark_word, 0, 1, 0);
}

// marking PLAIN_ALWAYS, ALONE_GIVEN, TAKE_ALONE, GIVE_ALONE, JOBS_ALONE: a
// marker that stores plainly is alone until it gives, words or jobs; nobody
// takes before, and it stores plainly no more.
START_TEST(who_stores_plainly_is_alone)
{
	open_marking(_i == 0 ? 0 : 1);
	ck_assert(gcwork_join(&second, self));
	push(&first.work, GCWORK_SHARE);
	hold_at(SCHED_GCGREY_SET, &opener, set_bit);
	hold_at(SCHED_WAIT_CHANGE, &helper, helper_gets);
	let_end(SCHED_GCGREY_SET, &opener);
	if (_i == 1)
		drain(&first.work);
	gcwork_share(&first.work);
	ck_assert(!first.work.alone);
	gcgrey_set(&first, &mark_word, 1, 2, 0);
	ck_assert_uint_eq(schedpoint_passed(SCHED_GCGREY_SET), 1);
	ck_assert_uint_eq(atomic_u64_load_relaxed(&mark_word), 3);
	let_end(SCHED_WAIT_CHANGE, &helper);
	ck_assert_int_eq(helper_got, _i == 0 ? GCWORK_WORDS : GCWORK_JOB);
	ck_assert(!second.alone);
}
END_TEST

// ---- marks that are kept back ----

static void publish(void)
{
	gcgrey_publish_all(&first);
}

static uint64_t counted(const struct gcmarker *m)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < GCGREY_COUNTS; i++)
		n += m->objects[i];
	return n;
}

// marking KEPT_TWICE, KEPT_PLAIN: two markers found the same object, or two of
// one word, and publish: no mark is lost, and each object counts once.
START_TEST(marks_that_were_kept_back_meet)
{
	struct gcgrey o;

	gcgrey_look(&beside);
	ck_assert(!first.work.alone && !beside.work.alone);
	ck_assert_int_ne(gcgrey_word(&first, (uintptr_t)objects[0], &o),
			 GCGREY_NOTHING);
	ck_assert_int_ne(gcgrey_word(&beside, (uintptr_t)objects[_i], &o),
			 GCGREY_NOTHING);
	hold_at(SCHED_GCGREY_PUBLISH, &opener, publish);
	gcgrey_publish_all(&beside);
	let_end(SCHED_GCGREY_PUBLISH, &opener);
	ck_assert_uint_eq(counted(&first) + counted(&beside), 1 + _i);
	for (int i = 0; i <= _i; i++)
		ck_assert(gcgrey_marked(&first, (uintptr_t)objects[i]));
}
END_TEST

// marking ALONE_BUSY: nothing is given, but another one is busy.
START_TEST(beside_a_busy_one_nobody_is_alone)
{
	open_marking(2);
	ck_assert(gcwork_join(&second, self));
	gcwork_share(&first.work);
	ck_assert_int_eq(get(&second), GCWORK_JOB);
	ck_assert_int_eq(get(&first.work), GCWORK_JOB);
	ck_assert(!first.work.alone && !second.alone);
	hold_at(SCHED_GCWORK_GET, &helper, helper_gets);
	gcwork_share(&first.work);
	ck_assert(!first.work.alone);
	schedpoint_let_go(SCHED_GCWORK_GET);
	while (gcwork_waiting() != 1)
		oscall_yield();
	gcwork_share(&first.work);
	ck_assert(first.work.alone);
	over();
	hand_end(&helper);
	ck_assert_int_eq(helper_got, GCWORK_OVER);
}
END_TEST

// ---- the end of marking ----

// Two busy markers with nothing on their stacks.
static void open_two_busy(void)
{
	open_marking(1);
	ck_assert(gcwork_join(&second, self));
	gcwork_share(&first.work);
	ck_assert_int_eq(get(&second), GCWORK_JOB);
}

// marking OVER_BUSY: the opener is about to find nothing left when
// another one gives: before it looks, or when it waits already.
START_TEST(marking_is_not_over_while_somebody_gives)
{
	open_two_busy();
	hold_at(SCHED_GCWORK_GET, &opener, opener_gets);
	push(&second, 2 * GCWORK_SHARE);
	if (_i == 1)
		move_on(SCHED_GCWORK_GET, SCHED_WAIT_CHANGE);
	gcwork_share(&second);
	schedpoint_let_go(SCHED_GCWORK_GET);
	let_end(SCHED_WAIT_CHANGE, &opener);
	ck_assert_int_eq(opener_got, GCWORK_WORDS);
	ck_assert_uint_eq(drain(&first.work), GCWORK_SHARE);
}
END_TEST

// marking OVER_JOBS.
START_TEST(marking_is_not_over_while_jobs_are_left)
{
	open_marking(1);
	ck_assert(gcwork_join(&second, self));
	hold_at(SCHED_GCWORK_GET, &opener, opener_gets);
	let_end(SCHED_GCWORK_GET, &opener);
	ck_assert_int_eq(opener_got, GCWORK_JOB);
	over();
}
END_TEST

// What is on its way from a stack to the others is still its giver's.
START_TEST(words_that_are_being_given_keep_their_giver_busy)
{
	open_two_busy();
	push(&second, 2 * GCWORK_SHARE);
	hold_at(SCHED_GCWORK_SHARE, &giver, helper_gives);
	hold_at(SCHED_WAIT_CHANGE, &opener, opener_gets);
	let_end(SCHED_GCWORK_SHARE, &giver);
	let_end(SCHED_WAIT_CHANGE, &opener);
	ck_assert_int_eq(opener_got, GCWORK_WORDS);
}
END_TEST

// marking BUSY_LATE: who has taken words is busy as soon as they are gone from
// what was given.
START_TEST(who_takes_is_busy_at_once)
{
	open_marking(0);
	ck_assert(gcwork_join(&second, self));
	push(&first.work, GCWORK_SHARE);
	gcwork_share(&first.work);
	drain(&first.work);
	hold_at(SCHED_WORK_UNLOCK, &helper, helper_gets);
	hold_at(SCHED_WAIT_CHANGE, &opener, opener_gets);
	let_end(SCHED_WORK_UNLOCK, &helper);
	ck_assert_int_eq(helper_got, GCWORK_WORDS);
	// marking OVER_SILENT: who waits last tells the opener.
	drain(&second);
	hand_start(&helper, helper_gets);
	let_end(SCHED_WAIT_CHANGE, &opener);
	ck_assert_int_eq(opener_got, GCWORK_OVER);
	close_marking();
	hand_end(&helper);
	ck_assert_int_eq(helper_got, GCWORK_OVER);
}
END_TEST

// ---- sleeping ----

// marking GIVE_SILENT, SLEEP_UNCOMPARED, SLEEPERS_LATE: words are given when a
// marker has said that it sleeps, and does not yet.
START_TEST(words_that_are_given_before_the_sleep_are_not_slept_on)
{
	open_marking(0);
	ck_assert(gcwork_join(&second, self));
	push(&first.work, GCWORK_SHARE);
	hold_at(SCHED_WAIT_CHANGE, &helper, helper_gets);
	gcwork_share(&first.work);
	let_end(SCHED_WAIT_CHANGE, &helper);
	ck_assert_int_eq(helper_got, GCWORK_WORDS);
}
END_TEST

// Words are given, and a third one takes them before the sleeper is woken: it
// sleeps again, and hears of the end.
START_TEST(a_wake_that_comes_too_late_does_no_harm)
{
	open_marking(0);
	ck_assert(gcwork_join(&second, self));
	ck_assert(gcwork_join(&third, self));
	push(&first.work, GCWORK_SHARE);
	hold_at(SCHED_WAIT_CHANGE, &helper, helper_gets);
	hold_at(SCHED_WORK_UNLOCK, &giver, opener_gives);
	ck_assert_int_eq(get(&third), GCWORK_WORDS);
	move_on(SCHED_WAIT_CHANGE, SCHED_WAIT_CHANGE);
	let_end(SCHED_WORK_UNLOCK, &giver);
	push(&first.work, GCWORK_SHARE);
	gcwork_share(&first.work);
	let_end(SCHED_WAIT_CHANGE, &helper);
	ck_assert_int_eq(helper_got, GCWORK_WORDS);
}
END_TEST

// marking OVER_GIVEN: it was given to a sleeper that has not woken up.
START_TEST(what_a_sleeper_has_not_taken_is_not_forgotten)
{
	open_marking(0);
	ck_assert(gcwork_join(&second, self));
	push(&first.work, GCWORK_SHARE);
	hold_at(SCHED_WAIT_CHANGE, &helper, helper_gets);
	gcwork_share(&first.work);
	drain(&first.work);
	ck_assert_int_eq(get(&first.work), GCWORK_WORDS);
	over();
	let_end(SCHED_WAIT_CHANGE, &helper);
	ck_assert_int_eq(helper_got, GCWORK_OVER);
}
END_TEST

// ---- coming late ----

static bool joined;

static void join(void)
{
	joined = gcwork_join(&second, self);
}

static void open_none(void)
{
	open_marking(0);
}

// marking CLOSE_OPEN: the marking is closed, and perhaps the next one open,
// when a helper is about to join.
START_TEST(who_comes_late_joins_what_is_open)
{
	open_marking(0);
	hold_at(SCHED_GCWORK_JOIN, &helper, join);
	over();
	if (_i == 1)
		open_marking(1);
	let_end(SCHED_GCWORK_JOIN, &helper);
	ck_assert_int_eq(joined, _i);
	if (_i == 1) {
		gcwork_share(&first.work);
		ck_assert_int_eq(get(&second), GCWORK_JOB);
	}
}
END_TEST

START_TEST(who_comes_early_joins_nothing)
{
	hold_at(SCHED_GCWORK_OPEN, &opener, open_none);
	ck_assert(!gcwork_join(&second, self));
	let_end(SCHED_GCWORK_OPEN, &opener);
	ck_assert(gcwork_join(&second, self));
}
END_TEST

// marking CLOSE_SILENT: a helper joins, and goes to sleep, when the marking is
// about to be closed.
START_TEST(who_sleeps_hears_that_marking_was_closed)
{
	open_marking(0);
	hold_at(SCHED_GCWORK_CLOSE, &opener, close_marking);
	ck_assert(gcwork_join(&second, self));
	hold_at(SCHED_WAIT_CHANGE, &helper, helper_gets);
	let_end(SCHED_GCWORK_CLOSE, &opener);
	let_end(SCHED_WAIT_CHANGE, &helper);
	ck_assert_int_eq(helper_got, GCWORK_OVER);
}
END_TEST

// marking LATE_TAKES, WAITING_LATE, JOIN_TWICE: a helper sleeps over the end of
// its marking, and wakes up in the next one: it takes nothing there, and does
// not count as one that waited.
START_TEST(who_sleeps_into_the_next_marking_leaves)
{
	open_marking(0);
	ck_assert(gcwork_join(&second, self));
	hold_at(SCHED_WAIT_CHANGE, &helper, helper_gets);
	over();
	open_marking(1);
	gcwork_share(&first.work);
	ck_assert_uint_eq(gcwork_waiting(), 0);
	let_end(SCHED_WAIT_CHANGE, &helper);
	ck_assert_int_eq(helper_got, GCWORK_OVER);
	ck_assert_uint_eq(gcwork_waiting(), 0);
	ck_assert(gcwork_join(&second, self));
	ck_assert(!gcwork_join(&second, self));
	ck_assert_int_eq(get(&second), GCWORK_JOB);
}
END_TEST

// ---- calls ----

static enum crew_task called;

static void call_mark(void)
{
	crew_call(CREW_MARK);
}

static void wait_for_call(void)
{
	uint32_t seen = 0;

	called = crew_wait(&seen);
}

// Who is awake sees the call before anybody is woken.
START_TEST(a_call_needs_no_wake)
{
	hold_at(SCHED_CREW_CALL, &opener, call_mark);
	hand_start(&helper, wait_for_call);
	hand_end(&helper);
	ck_assert_int_eq(called, CREW_MARK);
	let_end(SCHED_CREW_CALL, &opener);
}
END_TEST

// Of two calls the helper takes the second, and not both.
START_TEST(who_is_late_takes_the_last_call)
{
	crew_call(CREW_MARK);
	hold_at(SCHED_CREW_WAIT, &helper, wait_for_call);
	crew_call(CREW_SWEEP);
	let_end(SCHED_CREW_WAIT, &helper);
	ck_assert_int_eq(called, CREW_SWEEP);
}
END_TEST

// ---- locks ----

enum { NODES = 50000 };

struct node {
	struct node *to[3];
};

// make_graph makes nodes that point to any others, one circle through all.
static struct node **make_graph(void)
{
	struct node **node = rt_alloc(NODES * sizeof *node);
	uint64_t seed = 1;

	for (int i = 0; i < NODES; i++)
		node[i] = rt_alloc(sizeof **node);
	for (int i = 0; i < NODES; i++) {
		node[i]->to[0] = node[(i + 1) % NODES];
		for (int k = 1; k < 3; k++) {
			seed = seed * UINT64_C(6364136223846793005) + 1;
			node[i]->to[k] = node[(seed >> 33) % NODES];
		}
	}
	return node;
}

// The stack of a random graph goes up and down at borders of buffers all the
// time; the lock of the pool is taken for batches of them.  With one spare
// buffer there were 27 locks for 1000 objects.
START_TEST(a_graph_takes_few_locks)
{
	static struct node *root[1];
	rt_config c;
	uint64_t before;

	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
	ck_assert_int_eq(rt_fini(), RT_OK);
	rt_config_init(&c);
	c.gc_percent = -1;
	c.gc_threads = 0;
	ck_assert_int_eq(rt_init(&c), RT_OK);
	ck_assert_int_eq(rt_roots_add(root, root + 1, RT_ROOT_EXACT), RT_OK);
	root[0] = make_graph()[0];
	ck_assert_int_eq(rt_gc(), RT_OK);
	before = schedpoint_passed(SCHED_RT_LOCK);
	ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert_uint_le(schedpoint_passed(SCHED_RT_LOCK) - before,
			  NODES / 1000 * 2);
}
END_TEST

TCase *sched_mark(void)
{
	TCase *tc = tcase_create("mark");

	tcase_add_checked_fixture(tc, begin, NULL);
	tcase_add_loop_test(tc, who_stores_plainly_is_alone, 0, 2);
	tcase_add_loop_test(tc, marks_that_were_kept_back_meet, 0, 2);
	tcase_add_test(tc, beside_a_busy_one_nobody_is_alone);
	tcase_add_loop_test(tc, marking_is_not_over_while_somebody_gives, 0, 2);
	tcase_add_test(tc, marking_is_not_over_while_jobs_are_left);
	tcase_add_test(tc, words_that_are_being_given_keep_their_giver_busy);
	tcase_add_test(tc, who_takes_is_busy_at_once);
	tcase_add_test(tc,
		       words_that_are_given_before_the_sleep_are_not_slept_on);
	tcase_add_test(tc, a_wake_that_comes_too_late_does_no_harm);
	tcase_add_test(tc, what_a_sleeper_has_not_taken_is_not_forgotten);
	tcase_add_loop_test(tc, who_comes_late_joins_what_is_open, 0, 2);
	tcase_add_test(tc, who_comes_early_joins_nothing);
	tcase_add_test(tc, who_sleeps_hears_that_marking_was_closed);
	tcase_add_test(tc, who_sleeps_into_the_next_marking_leaves);
	tcase_add_test(tc, a_call_needs_no_wake);
	tcase_add_test(tc, who_is_late_takes_the_last_call);
	tcase_add_test(tc, a_graph_takes_few_locks);
	return tc;
}
