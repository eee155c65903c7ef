// The stack of one marker, and what markers share: words that they give each
// other, jobs, and which marker is alone.
//
// A marker here is a thread that does by hand what drain_stack and finish do,
// so each order of events is the one that the test wants.
#define RT_NO_INLINE_ALLOC
#include <errno.h>
#include <pthread.h>
#include <rt/rt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gc/mark/crew.h"
#include "gc/mark/scan.h"
#include "gc/mark/work.h"
#include "runtime/world/heapstats.h"
#include "test/harness/await.h"
#include "test/harness/death.h"
#include "test/harness/fault.h"
#include "test/harness/suite.h"

static struct rt_proc *self;
static struct work first, second, third;

static void setup(void)
{
	heap_begin();
	self = proc_self();
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
}

static void teardown(void)
{
	work_limit(UINT32_MAX);
	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
	ck_assert_int_eq(rt_fini(), RT_OK);
}

// work_bufs returns the bytes of spans cut into buffers.
static int64_t work_bufs(void)
{
	struct heapstats_totals t;

	heapstats_unsafe_read(&t);
	return (int64_t)t.in_work_bufs;
}

// push_range pushes the entries 8 * lo, ..., 8 * (hi - 1).
static void push_range(struct work *w, uintptr_t lo, uintptr_t hi)
{
	for (uintptr_t i = lo; i < hi; i++)
		ck_assert(work_push(w, 8 * i));
}

// pop_range expects these entries back, the newest first.
static void pop_range(struct work *w, uintptr_t lo, uintptr_t hi)
{
	for (uintptr_t i = hi; i-- > lo;) {
		if (!work_any(w))
			ck_assert(work_more(w));
		ck_assert_uint_eq(work_pop(w), 8 * i);
	}
}

static bool is_empty(struct work *w)
{
	return !work_any(w) && !work_more(w);
}

static void expect_next(struct work *w, enum work_next want)
{
	ck_assert_int_eq(work_get(w), want);
}

static void expect_job(struct work *w, uint32_t want)
{
	expect_next(w, WORK_JOB);
	ck_assert_uint_eq(w->job, want);
}

static void end(struct work *w)
{
	ck_assert(is_empty(w));
	expect_next(w, WORK_OVER);
	work_close(w);
	work_release(self);
}

// A marker that waits in work_get on a thread of its own.
struct waiter {
	struct work *w;
	pthread_t thread;
	atomic_u32 back;
	enum work_next next;
};

static void *wait_for_work(void *arg)
{
	struct waiter *waiter = arg;

	waiter->next = work_get(waiter->w);
	atomic_u32_store_release(&waiter->back, 1);
	return NULL;
}

static void wait_starts(struct waiter *waiter, struct work *w)
{
	*waiter = (struct waiter){.w = w};
	waiter->thread = start_thread(wait_for_work, waiter);
}

// wait_begins returns when w waits.  No other marker may be waiting.
static void wait_begins(struct waiter *waiter, struct work *w)
{
	wait_starts(waiter, w);
	while (work_waiting() != 1)
		oscall_yield();
}

static enum work_next wait_ends(struct waiter *waiter)
{
	join_thread(waiter->thread);
	return waiter->next;
}

// give makes one marker, the only one that waits, take from another.
static enum work_next give(struct work *from, struct work *to)
{
	struct waiter waiter;

	wait_begins(&waiter, to);
	work_share(from);
	return wait_ends(&waiter);
}

// end_both ends the marking of first when second is busy, too.
static void end_both(void)
{
	struct waiter waiter;

	ck_assert(is_empty(&first));
	ck_assert(is_empty(&second));
	wait_begins(&waiter, &second);
	expect_next(&first, WORK_OVER);
	work_close(&first);
	ck_assert_int_eq(wait_ends(&waiter), WORK_OVER);
}

// ---- one marker ----

static const uintptr_t heights[] = {1, WORK_ENTRIES, WORK_ENTRIES + 1,
				    3 * WORK_ENTRIES, 10000};

GROUP(marker, .setup = setup, .teardown = teardown);

TEST(the_newest_comes_first, .n = RT_ARRAY_LEN(heights))
{
	uintptr_t n = heights[_i];

	work_open(&first, self, 0);
	ck_assert(is_empty(&first));
	push_range(&first, 0, n);
	pop_range(&first, n / 2, n);
	push_range(&first, n / 2, 2 * n);
	pop_range(&first, 0, 2 * n);
	end(&first);
}

TEST(up_and_down_at_a_border_keeps_all)
{
	work_open(&first, self, 0);
	push_range(&first, 0, WORK_ENTRIES);
	for (int i = 0; i < 100; i++) {
		push_range(&first, WORK_ENTRIES, WORK_ENTRIES + 3);
		pop_range(&first, WORK_ENTRIES - 1, WORK_ENTRIES + 3);
		push_range(&first, WORK_ENTRIES - 1, WORK_ENTRIES);
	}
	ck_assert_uint_eq(work_bufs(), WORK_SPAN_PAGES * RT_PAGE_SIZE);
	ck_assert_uint_eq(work_held(), WORK_SPAN_PAGES * RT_PAGE_SIZE);
	pop_range(&first, 0, WORK_ENTRIES);
	end(&first);
	ck_assert_uint_eq(work_bufs(), 0);
	ck_assert_uint_eq(work_held(), 0);
}

// The first buffer is the marker's own; spans hold the others.
TEST(a_limit_refuses_the_entry_behind_the_last_place, .n = 3)
{
	uintptr_t places = (1 + (uintptr_t)_i * WORK_BATCH) * WORK_ENTRIES;

	work_limit((uint32_t)_i);
	work_open(&first, self, 0);
	push_range(&first, 0, places);
	for (int i = 0; i < 3; i++)
		ck_assert(!work_push(&first, 8));
	pop_range(&first, places / 2, places);
	push_range(&first, places / 2, places);
	ck_assert(!work_push(&first, 8));
	pop_range(&first, 0, places);
	end(&first);
}

TEST(jobs_come_in_order_and_once)
{
	work_open(&first, self, 3);
	ck_assert(work_plenty(&first)); // others may have them
	expect_job(&first, 0);
	expect_job(&first, 1);
	push_range(&first, 0, 5);
	pop_range(&first, 0, 5);
	expect_job(&first, 2);
	ck_assert(!work_plenty(&first));
	end(&first);
}

// ---- ranges ----

// piece returns a range of n pieces.  Nothing reads its memory here.
static struct work_range piece(uintptr_t lo, uintptr_t n)
{
	return (struct work_range){.lo = lo * WORK_PIECE,
				   .hi = (lo + n) * WORK_PIECE,
				   .stride = sizeof(uintptr_t),
				   .words = WORK_ANY};
}

static void expect_range(struct work *w, uintptr_t lo, uintptr_t hi)
{
	expect_next(w, WORK_RANGE);
	ck_assert_uint_eq(w->range.lo, lo);
	ck_assert_uint_eq(w->range.hi, hi);
}

TEST(a_range_is_taken_in_pieces_and_before_jobs)
{
	struct work_range range = piece(1, 2);

	range.hi += 24;
	range.words = WORK_ENDS;
	work_open(&first, self, 2);
	expect_job(&first, 0);
	ck_assert(work_add_range(&first, range));
	ck_assert(work_plenty(&first));
	expect_range(&first, 1 * WORK_PIECE, 2 * WORK_PIECE);
	ck_assert_int_eq(first.range.words, WORK_ENDS);
	expect_range(&first, 2 * WORK_PIECE, 3 * WORK_PIECE);
	ck_assert(work_add_range(&first, piece(7, 1))); // comes first
	expect_range(&first, 7 * WORK_PIECE, 8 * WORK_PIECE);
	ck_assert_int_eq(first.range.words, WORK_ANY);
	expect_range(&first, 3 * WORK_PIECE, 3 * WORK_PIECE + 24);
	ck_assert_int_eq(first.range.words, WORK_ENDS);
	expect_job(&first, 1);
	end(&first);
}

// The ranges are more than a buffer holds.  Each comes back once.
TEST(many_ranges_are_kept)
{
	enum { RANGES = 1000 };

	work_open(&first, self, 0);
	for (uintptr_t i = 0; i < RANGES; i++)
		ck_assert(work_add_range(&first, piece(i, 1)));
	for (uintptr_t i = RANGES; i-- > 0;)
		expect_range(&first, i * WORK_PIECE, (i + 1) * WORK_PIECE);
	end(&first);
}

TEST(a_range_without_memory_is_refused)
{
	work_limit(0);
	work_open(&first, self, 0);
	ck_assert(!work_add_range(&first, piece(0, 2)));
	end(&first);
}

// All but the first piece of a large array is left to any marker.
TEST(the_rest_of_an_array_is_left)
{
	enum { WORDS = WORK_PIECE / sizeof(uintptr_t), HEAP = 1 << 30 };
	static uintptr_t array[2 * WORDS + 3] = {HEAP, [WORDS] = HEAP + 16};
	static struct marker marker = {.base = HEAP, .used = 32};
	struct grey o = {.base = (uintptr_t)array, .size = sizeof array};

	work_open(&marker.work, self, 0);
	scan_wide(&marker, o.base, o.size);
	ck_assert_uint_eq(work_pop(&marker.work), HEAP);
	ck_assert(is_empty(&marker.work));
	expect_range(&marker.work, o.base + WORK_PIECE,
		     o.base + 2 * WORK_PIECE);
	expect_range(&marker.work, o.base + 2 * WORK_PIECE, o.base + o.size);
	end(&marker.work);
	o.size = WORK_PIECE;
	work_open(&marker.work, self, 0);
	scan_wide(&marker, o.base, o.size);
	ck_assert_uint_eq(work_pop(&marker.work), HEAP);
	end(&marker.work);
}

TEST(jobs_can_come_again)
{
	work_open(&first, self, 1);
	expect_job(&first, 0);
	expect_next(&first, WORK_OVER);
	work_add_jobs(&first, 2);
	ck_assert(first.alone && work_plenty(&first));
	expect_job(&first, 0);
	expect_job(&first, 1);
	end(&first);
}

TEST(closing_with_a_job_left_throws, .exit = DEATH_EXPECTED)
{
	work_open(&first, self, 1);
	death_expect("non-empty mark queue after mark");
	work_close(&first);
}

TEST(closing_with_a_range_left_throws, .exit = DEATH_EXPECTED)
{
	work_open(&first, self, 0);
	ck_assert(work_add_range(&first, piece(0, 1)));
	death_expect("non-empty mark queue after mark");
	work_close(&first);
}

TEST(closing_beside_a_busy_marker_throws, .exit = DEATH_EXPECTED)
{
	work_open(&first, self, 1);
	ck_assert(work_join(&second, self));
	ck_assert_int_eq(give(&first, &second), WORK_JOB);
	death_expect("non-empty mark queue after mark");
	work_close(&first);
}

// ---- joining ----

TEST(a_marker_joins_a_marking_once)
{
	ck_assert(!work_join(&second, self)); // none is open
	for (int round = 0; round < 3; round++) {
		work_open(&first, self, 0);
		ck_assert_ptr_eq(work_joined(), &first);
		ck_assert(work_join(&second, self));
		ck_assert(!work_join(&second, self));
		ck_assert(!work_join(&first, self));
		ck_assert_ptr_eq(work_joined(), &second);
		ck_assert_ptr_eq(second.next, &first);
		ck_assert_ptr_null(first.next);
		end(&first);
		ck_assert(!work_join(&second, self));
	}
}

// A marker that lost its processor learns that its marking is over: at once, or
// when another marking is open, with work for all.
TEST(a_late_marker_takes_nothing, .n = 2)
{
	work_open(&first, self, 0);
	ck_assert(work_join(&second, self));
	end(&first);
	if (_i == 1) {
		work_open(&first, self, 2);
		push_range(&first, 0, WORK_SHARE);
	}
	expect_next(&second, WORK_OVER);
	ck_assert(is_empty(&second));
	if (_i == 1) {
		ck_assert(work_join(&second, self)); // the new marking
		ck_assert_int_eq(give(&first, &second), WORK_JOB);
		expect_job(&second, 1);
		ck_assert_int_eq(give(&first, &second), WORK_WORDS);
		pop_range(&second, 0, WORK_SHARE / 2);
		pop_range(&first, WORK_SHARE / 2, WORK_SHARE);
		end_both();
	}
}

// ---- giving ----

static const uintptr_t shares[] = {WORK_SHARE, WORK_SHARE + 1, 100,
				   WORK_ENTRIES};

GROUP(several, .setup = setup, .teardown = teardown, .timeout = 60);

TEST(the_oldest_half_of_a_buffer_is_given, .n = RT_ARRAY_LEN(shares))
{
	uintptr_t n = shares[_i];

	work_open(&first, self, 0);
	ck_assert(work_join(&second, self));
	push_range(&first, 0, n);
	ck_assert(work_plenty(&first));
	ck_assert(first.alone);
	ck_assert_int_eq(give(&first, &second), WORK_WORDS);
	ck_assert(!first.alone && !second.alone);
	pop_range(&second, 0, n / 2);
	pop_range(&first, n / 2, n);
	end_both();
}

TEST(the_oldest_half_of_the_full_buffers_is_given, .base = 1, .limit = 6)
{
	uintptr_t full = (uintptr_t)_i; // buffers
	uintptr_t given = (full - full / 2) * WORK_ENTRIES;
	uintptr_t n = full * WORK_ENTRIES + 1;

	work_open(&first, self, 0);
	ck_assert(work_join(&second, self));
	push_range(&first, 0, n);
	ck_assert_int_eq(give(&first, &second), WORK_WORDS);
	pop_range(&first, given, n);
	pop_range(&second, 0, given);
	end_both();
}

TEST(few_words_are_not_given)
{
	struct waiter waiter;

	work_open(&first, self, 0);
	ck_assert(work_join(&second, self));
	wait_begins(&waiter, &second);
	push_range(&first, 0, WORK_SHARE - 1);
	ck_assert(!work_plenty(&first) && !work_wanted(&first));
	work_share(&first);
	ck_assert(first.alone);
	pop_range(&first, 0, WORK_SHARE - 1);
	end(&first);
	ck_assert_int_eq(wait_ends(&waiter), WORK_OVER);
}

// Words are moved from one marker's buffer to another's.
TEST(words_are_given_without_memory)
{
	work_limit(0);
	work_open(&first, self, 0);
	ck_assert(work_join(&second, self));
	push_range(&first, 0, WORK_ENTRIES);
	ck_assert_int_eq(give(&first, &second), WORK_WORDS);
	pop_range(&second, 0, WORK_ENTRIES / 2);
	pop_range(&first, WORK_ENTRIES / 2, WORK_ENTRIES);
	end_both();
}

TEST(without_a_marker_that_waits_nothing_is_given)
{
	work_open(&first, self, 1);
	push_range(&first, 0, 64);
	ck_assert(!work_wanted(&first));
	work_share(&first);
	ck_assert(first.alone);
	pop_range(&first, 0, 64);
	expect_job(&first, 0);
	end(&first);
}

// ---- alone, and not ----

TEST(no_marker_takes_a_job_while_one_is_alone)
{
	struct waiter waiter;

	work_open(&first, self, 2);
	ck_assert(first.alone);
	expect_job(&first, 0);
	ck_assert(first.alone);
	ck_assert(work_join(&second, self));
	wait_begins(&waiter, &second);
	ck_assert(stays(&waiter.back, 0));
	ck_assert(work_plenty(&first));
	work_share(&first);
	ck_assert(!first.alone);
	ck_assert_int_eq(wait_ends(&waiter), WORK_JOB);
	ck_assert_uint_eq(second.job, 1);
	ck_assert(!second.alone);
	end_both();
}

TEST(words_wake_a_marker_that_waits)
{
	struct waiter waiter;

	work_open(&first, self, 0);
	ck_assert(work_join(&second, self));
	wait_begins(&waiter, &second);
	push_range(&first, 0, 100);
	ck_assert(stays(&waiter.back, 0));
	work_share(&first);
	ck_assert_int_eq(wait_ends(&waiter), WORK_WORDS);
	ck_assert_uint_eq(work_waiting(), 0);
	pop_range(&second, 0, 50);
	pop_range(&first, 50, 100);
	end_both();
}

// The last busy marker is alone only after it has seen that all others wait.
TEST(the_last_busy_marker_finds_out_that_it_is_alone)
{
	struct waiter opener, helper;

	work_open(&first, self, 1);
	ck_assert(work_join(&second, self));
	ck_assert_int_eq(give(&first, &second), WORK_JOB);
	work_share(&second);
	ck_assert(!second.alone); // the first one is busy
	wait_begins(&opener, &first);
	ck_assert(!second.alone);
	work_share(&second);
	ck_assert(second.alone);
	ck_assert(!work_plenty(&second)); // no job either
	ck_assert(stays(&opener.back, 0));
	wait_starts(&helper, &second);
	ck_assert_int_eq(wait_ends(&opener), WORK_OVER);
	work_close(&first);
	ck_assert_int_eq(wait_ends(&helper), WORK_OVER);
}

// For the opener, marking is over when nothing is left, and it continues alone.
// For other markers it is over when the opener closes it.
TEST(over_comes_to_the_opener_first)
{
	struct waiter opener, helper;

	work_open(&first, self, 1);
	ck_assert(work_join(&second, self));
	ck_assert(work_join(&third, self));
	ck_assert_int_eq(give(&first, &second), WORK_JOB);
	wait_begins(&opener, &first);
	wait_starts(&helper, &second);
	ck_assert_int_eq(wait_ends(&opener), WORK_OVER);
	ck_assert(first.alone);
	ck_assert(stays(&helper.back, 0));
	push_range(&first, 0, 40);
	work_share(&first); // a second round, as after an overflow
	ck_assert_int_eq(wait_ends(&helper), WORK_WORDS);
	pop_range(&second, 0, 20);
	pop_range(&first, 20, 40);
	wait_starts(&helper, &second);
	expect_next(&first, WORK_OVER);
	work_close(&first);
	ck_assert_int_eq(wait_ends(&helper), WORK_OVER);
	expect_next(&third, WORK_OVER);
}

// ---- many that wait ----

enum { CROWD = 12 };
static struct work crowd[CROWD];
static struct waiter crowd_waits[CROWD];

// crowd_comes returns when all wait, and most likely sleep.
static void crowd_comes(void)
{
	fault_fail(OSCALL_FUTEX_WAIT, 1, 0, 0); // counts from now on
	for (unsigned i = 0; i < CROWD; i++) {
		ck_assert(work_join(&crowd[i], self));
		wait_starts(&crowd_waits[i], &crowd[i]);
	}
	while (work_waiting() != CROWD ||
	       fault_count(OSCALL_FUTEX_WAIT) < CROWD)
		oscall_yield();
}

static unsigned crowd_back(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < CROWD; i++)
		n += atomic_u32_load_acquire(&crowd_waits[i].back);
	return n;
}

// A gift wakes one marker only.  That marker gives to the next.
TEST(a_gift_wakes_one_marker)
{
	struct work *giver = &first;

	work_open(&first, self, 0);
	crowd_comes();
	push_range(&first, 0, WORK_SHARE << CROWD);
	for (unsigned n = 1; n <= CROWD; n++) {
		work_share(giver);
		while (crowd_back() != n)
			oscall_yield();
		ck_assert_uint_eq(work_waiting(), CROWD - n);
		for (unsigned i = 0; i < CROWD; i++)
			if (atomic_u32_load_acquire(&crowd_waits[i].back) &&
			    work_plenty(&crowd[i]))
				giver = &crowd[i];
	}
	for (unsigned i = 0; i < CROWD; i++) {
		ck_assert_int_eq(wait_ends(&crowd_waits[i]), WORK_WORDS);
		while (work_any(&crowd[i]) || work_more(&crowd[i]))
			work_pop(&crowd[i]);
	}
}

// Closing wakes one marker, which wakes the next.
TEST(closing_wakes_all)
{
	work_open(&first, self, 0);
	crowd_comes();
	expect_next(&first, WORK_OVER);
	ck_assert_uint_eq(crowd_back(), 0);
	work_close(&first);
	for (unsigned i = 0; i < CROWD; i++)
		ck_assert_int_eq(wait_ends(&crowd_waits[i]), WORK_OVER);
	ck_assert_uint_eq(work_waiting(), 0);
}

// ---- calls ----

GROUP(crew, .timeout = 60);

TEST(a_call_is_seen_once)
{
	uint32_t seen = 0;

	crew_call(CREW_MARK);
	ck_assert_int_eq(crew_wait(&seen), CREW_MARK);
	crew_call(CREW_MARK);
	crew_call(CREW_SWEEP); // a late helper sees the last call
	ck_assert_int_eq(crew_wait(&seen), CREW_SWEEP);
	crew_call(CREW_SWEEP);
	ck_assert_int_eq(crew_wait(&seen), CREW_SWEEP);
	crew_reset();
}

static atomic_u32 answered; // calls

static void *answer(void *arg)
{
	uint32_t seen = 0;

	(void)arg;
	crew_enter();
	while (crew_wait(&seen) != CREW_QUIT)
		atomic_u32_add_release(&answered, 1);
	crew_leave();
	return NULL;
}

// Where sleeps are refused, a helper looks for a call without sleeping.
TEST(a_call_wakes_helpers_that_wait, .n = 2)
{
	enum { HELPERS = 3, CALLS = 100 };
	pthread_t threads[HELPERS];

	if (_i == 1)
		fault_fail(OSCALL_FUTEX_WAIT, 1, UINT64_MAX, ENOSYS);
	for (int i = 0; i < HELPERS; i++)
		threads[i] = start_thread(answer, NULL);
	while (crew_size() != HELPERS)
		oscall_yield();
	for (uint32_t call = 1; call <= CALLS; call++) {
		crew_call(CREW_MARK);
		await_at_least(&answered, HELPERS * call);
	}
	crew_call(CREW_QUIT);
	for (int i = 0; i < HELPERS; i++)
		join_thread(threads[i]);
	ck_assert_uint_eq(crew_size(), 0);
	ck_assert_uint_eq(atomic_u32_load_relaxed(&answered), HELPERS * CALLS);
	fault_fail(OSCALL_FUTEX_WAIT, 1, 0, 0);
	crew_reset();
}
