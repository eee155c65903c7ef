// Markers that share their work, and the calls for helpers.
#define RT_NO_INLINE_ALLOC
#include <rt/rt.h>

#include "gc/mark/crew.h"
#include "gc/mark/grey.h"
#include "gc/mark/mark.h"
#include "gc/mark/work.h"
#include "gc/mark/stacks.h"
#include "test/harness/kind.h"
#include "test/order/sched.h"

static struct rt_proc *self;
static struct marker first; // the opener
static struct work second, third;
static struct marker beside; // another marker
static char *objects[2];     // with mark bits in one markword
static struct hand opener, helper, late, giver;

static void begin(void)
{
	heap_begin();
	self = proc_self();
	for (unsigned i = 0; i < RT_ARRAY_LEN(objects); i++)
		objects[i] = rt_alloc(32);
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	grey_look(&first);
}

static void open_marking(uint32_t njobs)
{
	work_open(&first.work, self, njobs);
}

static void push(struct work *w, uintptr_t n)
{
	for (uintptr_t i = 1; i <= n; i++)
		ck_assert(work_push(w, 8 * i));
}

// drain empties a marker's stack and returns how many words were on it.
static uintptr_t drain(struct work *w)
{
	uintptr_t n = 0;

	for (; work_any(w) || work_more(w); n++)
		work_pop(w);
	return n;
}

static enum work_next opener_got, helper_got, third_got;

static void opener_gets(void)
{
	opener_got = work_get(&first.work);
}

static void helper_gets(void)
{
	helper_got = work_get(&second);
}

static void third_gets(void)
{
	third_got = work_get(&third);
}

static void helper_gives(void)
{
	work_share(&second);
}

static void close_marking(void)
{
	work_close(&first.work);
}

// over ends the marking when all markers but the opener wait or are gone.
static void over(void)
{
	drain(&first.work);
	ck_assert_int_eq(work_get(&first.work), WORK_OVER);
	close_marking();
}

// helper_waits returns when the second marker waits, and will sleep.
static void helper_waits(void)
{
	hold_at(SCHED_NOTE_WAIT, &helper, helper_gets);
}

static void helper_ends(void)
{
	let_end(SCHED_NOTE_WAIT, &helper);
}

// give makes the second marker take from the first.
static void give(enum work_next what)
{
	helper_waits();
	work_share(&first.work);
	helper_ends();
	ck_assert_int_eq(helper_got, what);
}

// ---- alone ----

static atomic_u64 markword;

static void set_bit(void)
{
	grey_set(&first, &markword, 0, 1, 0);
}

GROUP(mark, .setup = begin, .timeout = 2 * AWAIT_SECONDS);

// marking PLAIN_ALWAYS, TAKE_ALONE, GIVE_ALONE, JOBS_ALONE: a marker that
// stores plainly is alone until it gives words or jobs.  Before that no other
// marker takes anything, and afterwards the marker no longer stores plainly.
TEST(a_marker_that_stores_plainly_is_alone, .n = 2)
{
	open_marking(_i == 0 ? 0 : 1);
	ck_assert(work_join(&second, self));
	push(&first.work, WORK_SHARE);
	hold_at(SCHED_GREY_SET, &opener, set_bit);
	helper_waits();
	let_end(SCHED_GREY_SET, &opener);
	work_share(&first.work);
	ck_assert(!first.work.alone);
	grey_set(&first, &markword, 1, 2, 0);
	ck_assert_uint_eq(schedpoint_passed(SCHED_GREY_SET), 1);
	ck_assert_uint_eq(atomic_u64_load_relaxed(&markword), 3);
	helper_ends();
	ck_assert_int_eq(helper_got, _i == 0 ? WORK_WORDS : WORK_JOB);
	ck_assert(!second.alone);
}

// ---- marks that are kept back ----

static void publish(void)
{
	grey_publish_all(&first);
}

static uint64_t counted(const struct marker *m)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < GREY_COUNTS; i++)
		n += m->objects[i];
	return n;
}

// marking KEPT_TWICE, KEPT_PLAIN: two markers found the same object, or two
// objects of one markword, and publish.  No mark is lost, and each object
// counts once.
TEST(marks_that_were_kept_back_meet, .n = 2)
{
	struct grey o;

	grey_look(&beside);
	ck_assert(!first.work.alone && !beside.work.alone);
	ck_assert_int_ne(grey_word(&first, (uintptr_t)objects[0], &o),
			 GREY_NOTHING);
	ck_assert_int_ne(grey_word(&beside, (uintptr_t)objects[_i], &o),
			 GREY_NOTHING);
	hold_at(SCHED_GREY_PUBLISH, &opener, publish);
	grey_publish_all(&beside);
	let_end(SCHED_GREY_PUBLISH, &opener);
	ck_assert_uint_eq(counted(&first) + counted(&beside), 1 + _i);
	for (int i = 0; i <= _i; i++)
		ck_assert(grey_marked(&first, (uintptr_t)objects[i]));
}

// marking SERIAL_KEPT: only one marker may trace the object.  Another marker
// sees its mark at once, whether the word that leads there points to the
// beginning or the inside.
TEST(one_marker_finds_an_object_to_trace, .n = 4)
{
	static const uint32_t flags[] = {RT_KIND_SERIAL, RT_KIND_ONCE};
	rt_kind_desc d;
	struct grey o;
	uintptr_t p;

	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
	rt_kind_desc_init(&d);
	d.layout = RT_LAYOUT_TRACE;
	d.trace = trace_nothing;
	d.flags = flags[_i / 2];
	p = (uintptr_t)rt_alloc_kind(rt_kind_register(&d), 64);
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	grey_look(&first);
	grey_look(&beside);
	p += _i % 2 * 40;
	ck_assert_int_eq(grey_word(&first, p, &o), GREY_TRACED);
	ck_assert_int_eq(grey_word(&beside, p, &o), GREY_NOTHING);
	publish();
	ck_assert_uint_eq(counted(&first) + counted(&beside), 1);
}

// marking ALONE_BUSY: a marker that has nothing to give is not alone as long as
// another one is busy.
TEST(beside_a_busy_one_no_marker_is_alone)
{
	open_marking(1);
	ck_assert(work_join(&second, self));
	give(WORK_JOB);
	ck_assert(!first.work.alone && !second.alone);
	hold_at(SCHED_WORK_GET, &helper, helper_gets);
	work_share(&first.work);
	ck_assert(!first.work.alone);
	schedpoint_release(SCHED_WORK_GET);
	while (work_waiting() != 1)
		oscall_yield();
	work_share(&first.work);
	ck_assert(first.work.alone);
	over();
	hand_end(&helper);
	ck_assert_int_eq(helper_got, WORK_OVER);
}

// ---- owned stacks ----

static uintptr_t stack_words[2];
static struct rt_stack *owned_stack;

static void first_traces(void)
{
	stacks_trace(&first.work.t, owned_stack);
}

// stacks CLAIM_APART: two markers trace objects that own one stack.  One of
// them scans it.
TEST(one_marker_scans_an_owned_stack)
{
	rt_stack_desc d;

	rt_stack_desc_init(&d);
	d.lo = stack_words;
	d.hi = stack_words + 2;
	d.flags = RT_STACK_OWNED;
	ck_assert_int_eq(stacks_add(&d, self, &owned_stack), RT_OK);
	stack_words[1] = (uintptr_t)objects[0];
	open_marking(0);
	grey_look(&beside);
	ck_assert(work_join(&beside.work, self));
	stacks_look();
	hold_at(SCHED_STACK_CLAIM, &opener, first_traces);
	stacks_trace(&beside.work.t, owned_stack);
	let_end(SCHED_STACK_CLAIM, &opener);
	ck_assert_uint_eq(drain(&beside.work), 1);
	ck_assert_uint_eq(drain(&first.work), 0);
	ck_assert_uint_eq(beside.stack_bytes, sizeof stack_words);
	ck_assert_uint_eq(first.stack_bytes, 0);
}

// ---- the end of marking ----

// open_two_busy opens a marking with two busy markers that have nothing on
// their stacks.
static void open_two_busy(void)
{
	open_marking(1);
	ck_assert(work_join(&second, self));
	give(WORK_JOB);
}

// marking OVER_BUSY: the opener is about to find nothing left when another
// marker gives, either before the opener looks or when it already waits.
TEST(marking_is_not_over_while_a_marker_gives, .n = 2)
{
	open_two_busy();
	hold_at(SCHED_WORK_GET, &opener, opener_gets);
	push(&second, 2 * WORK_SHARE);
	if (_i == 0)
		work_share(&second); // finds no marker that waits
	move_on(SCHED_WORK_GET, SCHED_NOTE_WAIT);
	work_share(&second);
	let_end(SCHED_NOTE_WAIT, &opener);
	ck_assert_int_eq(opener_got, WORK_WORDS);
	ck_assert_uint_eq(drain(&first.work), WORK_SHARE);
}

// marking OVER_LEFT: a job is left, or a range.  The opener gets it.
TEST(marking_is_not_over_while_something_is_left, .n = 2)
{
	struct work_range range = {
	    .hi = WORK_PIECE, .stride = sizeof(uintptr_t), .words = WORK_ANY};

	open_marking(_i == 0 ? 1 : 0);
	ck_assert(work_join(&second, self));
	if (_i == 1)
		ck_assert(work_add_range(&first.work, range));
	hold_at(SCHED_WORK_GET, &opener, opener_gets);
	let_end(SCHED_WORK_GET, &opener);
	ck_assert_int_eq(opener_got, _i == 0 ? WORK_JOB : WORK_RANGE);
	over();
}

// marking BUSY_LATE, WAKE_EARLY: words are on their way to a marker.  The
// marker is busy before the giver cuts them off, and it is not woken before
// they have come.
TEST(words_on_their_way_are_not_forgotten)
{
	open_two_busy();
	push(&second, 2 * WORK_SHARE);
	hold_at(SCHED_NOTE_WAIT, &opener, opener_gets);
	hold_at(SCHED_GIVE_WORDS, &giver, helper_gives);
	ck_assert(first.work.busy && !second.alone);
	schedpoint_release(SCHED_NOTE_WAIT);
	move_on(SCHED_GIVE_WORDS, SCHED_WAKE);
	ck_assert_uint_eq(drain(&second), WORK_SHARE);
	let_end(SCHED_WAKE, &giver);
	hand_end(&opener);
	ck_assert_int_eq(opener_got, WORK_WORDS);
	ck_assert_uint_eq(drain(&first.work), WORK_SHARE);
}

// marking OVER_SILENT: the last marker that begins to wait tells the opener.
TEST(the_opener_hears_that_nothing_is_left)
{
	open_two_busy();
	hold_at(SCHED_NOTE_WAIT, &opener, opener_gets);
	hand_start(&helper, helper_gets);
	let_end(SCHED_NOTE_WAIT, &opener);
	ck_assert_int_eq(opener_got, WORK_OVER);
	close_marking();
	hand_end(&helper);
	ck_assert_int_eq(helper_got, WORK_OVER);
}

// ---- what only the opener may take ----

static void helper_offers(void)
{
	work_offer(&second);
}

static void await_offer(void)
{
	while (!work_offered())
		oscall_yield();
}

// marking OFFER_SILENT, OFFER_LEFT, OFFER_IDLE, TAKEN_SILENT: a marker offers
// something when the opener is about to find nothing left, or already waits.
// The opener takes it, and marking is not over.  The marker that offers wakes
// when the opener has taken that, not before.
TEST(the_opener_takes_what_is_offered, .n = 2)
{
	open_two_busy();
	if (_i == 0) {
		hold_at(SCHED_WORK_GET, &opener, opener_gets);
		hand_start(&helper, helper_offers);
		await_offer();
		let_end(SCHED_WORK_GET, &opener);
	} else {
		hold_at(SCHED_NOTE_WAIT, &opener, opener_gets);
		pass_at(SCHED_WORK_OFFER, &helper, helper_offers);
		await_offer();
		let_end(SCHED_NOTE_WAIT, &opener);
	}
	ck_assert_int_eq(opener_got, WORK_OFFERS);
	ck_assert(second.busy && first.work.busy && !first.work.alone);
	ck_assert_uint_eq(work_waiting(), 1);
	ck_assert_ptr_eq(work_offers(&first.work), &second);
	ck_assert(!work_offered());
	ck_assert_ptr_null(work_offers(&first.work));
	work_taken(&second);
	hand_end(&helper);
	ck_assert_uint_eq(work_waiting(), 0);
}

// marking OFFER_ALONE: a marker that is alone offers something to the opener,
// which waits.  From then on the marker no longer stores plainly.
TEST(a_marker_that_offers_is_no_longer_alone)
{
	open_two_busy();
	hold_at(SCHED_NOTE_WAIT, &opener, opener_gets);
	work_share(&second);
	ck_assert(second.alone);
	hand_start(&helper, helper_offers);
	await_offer();
	let_end(SCHED_NOTE_WAIT, &opener);
	ck_assert_int_eq(opener_got, WORK_OFFERS);
	ck_assert(!second.alone && !first.work.alone);
	work_taken(work_offers(&first.work));
	hand_end(&helper);
}

// ---- sleeping ----

// marking NOTE_LATE: words are given when a marker can be found but does not
// sleep yet.
TEST(words_that_are_given_before_the_sleep_are_not_slept_on)
{
	open_marking(0);
	ck_assert(work_join(&second, self));
	push(&first.work, WORK_SHARE);
	give(WORK_WORDS);
	ck_assert_uint_eq(drain(&second), WORK_SHARE / 2);
}

// marking GIVE_TWICE: two markers give while one waits.  The waiting marker
// gets the words of one giver.  The other giver, which comes too late or is
// about to give as well, keeps its words.
TEST(a_marker_that_is_given_words_gets_them_once, .n = 2)
{
	static const enum schedpoint at[] = {SCHED_GIVE_WORDS,
					     SCHED_WORK_SHARE};

	open_two_busy();
	ck_assert(work_join(&third, self));
	push(&first.work, 2 * WORK_SHARE);
	push(&second, 2 * WORK_SHARE);
	hold_at(SCHED_NOTE_WAIT, &late, third_gets);
	hold_at(at[_i], &giver, helper_gives);
	work_share(&first.work);
	let_end(at[_i], &giver);
	let_end(SCHED_NOTE_WAIT, &late);
	ck_assert_int_eq(third_got, WORK_WORDS);
	ck_assert_uint_eq(drain(&third), WORK_SHARE);
	ck_assert_uint_eq(drain(_i == 0 ? &second : &first.work), WORK_SHARE);
	ck_assert_uint_eq(drain(_i == 0 ? &first.work : &second),
			  2 * WORK_SHARE);
}

// ---- coming late ----

static bool joined;

static void join(void)
{
	joined = work_join(&second, self);
}

static void open_none(void)
{
	open_marking(0);
}

// marking CLOSE_OPEN: when a helper is about to join, the marking is closed,
// and perhaps the next one is already open.  The helper joins only an open one.
TEST(a_helper_that_comes_late_joins_what_is_open, .n = 2)
{
	open_marking(0);
	hold_at(SCHED_WORK_JOIN, &helper, join);
	over();
	if (_i == 1)
		open_marking(1);
	let_end(SCHED_WORK_JOIN, &helper);
	ck_assert_int_eq(joined, _i);
	if (_i == 1)
		give(WORK_JOB);
}

TEST(a_helper_that_comes_early_joins_nothing)
{
	hold_at(SCHED_WORK_OPEN, &opener, open_none);
	ck_assert(!work_join(&second, self));
	let_end(SCHED_WORK_OPEN, &opener);
	ck_assert(work_join(&second, self));
}

// marking CLOSE_SILENT, CLOSE_CHAIN: two helpers join and go to sleep when the
// marking is about to be closed.  One of them wakes the other.
TEST(a_helper_that_sleeps_hears_that_marking_was_closed)
{
	open_marking(0);
	ck_assert(work_join(&second, self));
	ck_assert(work_join(&third, self));
	hold_at(SCHED_WORK_CLOSE, &opener, close_marking);
	helper_waits();
	hold_at(SCHED_NOTE_WAIT, &late, third_gets);
	let_end(SCHED_WORK_CLOSE, &opener);
	let_end(SCHED_NOTE_WAIT, &late);
	helper_ends();
	ck_assert_int_eq(helper_got, WORK_OVER);
	ck_assert_int_eq(third_got, WORK_OVER);
}

static void helps(void)
{
	mark_help(&beside, self);
}

// marking CLOSE_OPEN: a helper has joined, and gets nothing before the marking
// is closed.  It does not read the heap, which other threads may change then.
TEST(a_helper_that_joins_in_vain_looks_at_nothing)
{
	open_marking(0);
	hold_at(SCHED_WORK_GET, &helper, helps);
	over();
	let_end(SCHED_WORK_GET, &helper);
	ck_assert_uint_eq(beside.counted, 0);
	ck_assert_uint_eq(beside.used, 0);
}

// marking LATE_TAKES, JOIN_TWICE: a helper sleeps over the end of its marking,
// or has only joined, and continues in the next marking.  It takes nothing
// there, and does not count as one that waits.
TEST(a_helper_that_sleeps_into_the_next_marking_leaves, .n = 2)
{
	open_marking(0);
	ck_assert(work_join(&second, self));
	if (_i == 0)
		helper_waits();
	else
		hold_at(SCHED_WORK_GET, &helper, helper_gets);
	over();
	open_marking(1);
	work_share(&first.work);
	ck_assert_uint_eq(work_waiting(), 0);
	let_end(_i == 0 ? SCHED_NOTE_WAIT : SCHED_WORK_GET, &helper);
	ck_assert_int_eq(helper_got, WORK_OVER);
	ck_assert_uint_eq(work_waiting(), 0);
	ck_assert(work_join(&second, self));
	ck_assert(!work_join(&second, self));
	give(WORK_JOB);
}

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

// A helper that is awake sees the call before any thread is woken.
TEST(a_call_needs_no_wake)
{
	hold_at(SCHED_CREW_CALL, &opener, call_mark);
	hand_run(&helper, wait_for_call);
	ck_assert_int_eq(called, CREW_MARK);
	let_end(SCHED_CREW_CALL, &opener);
}

// If there were two calls, the helper takes only the second.
TEST(a_helper_that_is_late_takes_the_last_call)
{
	crew_call(CREW_MARK);
	hold_at(SCHED_CREW_WAIT, &helper, wait_for_call);
	crew_call(CREW_SWEEP);
	let_end(SCHED_CREW_WAIT, &helper);
	ck_assert_int_eq(called, CREW_SWEEP);
}

// ---- locks ----

enum { NODES = 50000 };

struct node {
	struct node *to[3];
};

// make_graph makes nodes that point to random other nodes.  One circle goes
// through all nodes.
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

// While a random graph is marked, the stack of the marker often crosses from
// one buffer to the next and back.  So a marker takes the lock of the pool once
// for a batch of buffers.  When a marker had one spare buffer, it took the lock
// 27 times for 1000 objects.
TEST(a_graph_takes_few_locks)
{
	static struct node *root[1];
	rt_config c = heap_config(HEAP_QUIET);
	uint64_t before;

	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
	ck_assert_int_eq(rt_fini(), RT_OK);
	c.gc_threads = 0;
	heap_start(c);
	ck_assert_int_eq(rt_roots_add(root, root + 1, RT_ROOT_EXACT), RT_OK);
	root[0] = make_graph()[0];
	ck_assert_int_eq(rt_gc(), RT_OK);
	before = schedpoint_passed(SCHED_MUTEX_LOCK);
	ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert_uint_le(schedpoint_passed(SCHED_MUTEX_LOCK) - before,
			  NODES / 1000 * 2);
}

// Many markers wait, and one of them is given words.  Only the giver takes the
// lock, and only the marker with the words wakes.
enum { CROWD = 10 };
static struct work crowd[CROWD];
static atomic_u32 coming, back;

static void crowd_gets(void)
{
	work_get(&crowd[atomic_u32_add_relaxed(&coming, 1) - 1]);
	atomic_u32_add_release(&back, 1);
}

TEST(a_gift_takes_one_lock)
{
	static struct hand hands[CROWD];
	uint64_t before;

	open_marking(0);
	push(&first.work, 2 * WORK_SHARE);
	// All records join before a thread begins, because any thread may take
	// any record.
	for (unsigned i = 0; i < CROWD; i++)
		ck_assert(work_join(&crowd[i], self));
	for (unsigned i = 0; i < CROWD; i++)
		hand_start(&hands[i], crowd_gets);
	while (work_waiting() != CROWD)
		oscall_yield();
	before = schedpoint_passed(SCHED_MUTEX_LOCK);
	for (uint32_t n = 1; n <= 2; n++) {
		work_share(&first.work);
		await_at_least(&back, n);
		ck_assert(stays(&back, n));
		ck_assert_uint_eq(schedpoint_passed(SCHED_MUTEX_LOCK) - before,
				  n);
	}
	// They wait until the process ends.
	for (unsigned i = 0; i < CROWD; i++)
		pthread_detach(hands[i].thread);
}
