// Statistics: a reader meets writers at every step of a change.
#include "runtime/world/heapstats.h"
#include "runtime/world/stw.h"
#include "test/order/sched.h"

// Two fields that no other code here changes: a snapshot in which they differ
// is torn.
#define ONE(d) (&(d)->small_alloc_count[9])
#define OTHER(d) (&(d)->small_free_count[66])

static struct rt_proc *p, *q;
static struct hand writer, reader, newcomer;
static uint64_t found;

static void begin(void)
{
	rt_config c = heap_config(100);

	c.no_attach = 1;
	heap_start(c);
	p = proc_attach(0);
	ck_assert_ptr_nonnull(p);
}

// change adds 1 to both, and returns the slot.
static struct heapstats_delta *change(struct rt_proc *of)
{
	struct heapstats_delta *d = heapstats_acquire(of);

	heapstats_add(ONE(d), 1);
	heapstats_add(OTHER(d), 1);
	heapstats_release(of);
	return d;
}

// stop_p and start_p stop the world and start it again, as the thread of p.
static void stop_p(void)
{
	stw_acquire(p);
	stw_stop(p, RT_STOP_HOST);
}

static void start_p(void)
{
	stw_start(p, NULL);
	stw_release();
}

static void change_p(void)
{
	change(p);
}

static void change_without(void)
{
	change(NULL);
}

static void attach_and_change(void)
{
	q = proc_attach(0);
	change(q);
}

static uint64_t whole(const struct heapstats_totals *t)
{
	ck_assert_uint_eq(t->small_alloc_count[9], t->small_free_count[66]);
	return t->small_alloc_count[9];
}

static uint64_t read_live(void)
{
	struct heapstats_totals t;

	heapstats_read(&t);
	return whole(&t);
}

// The world must be stopped.
static uint64_t read_exact(void)
{
	struct heapstats_totals t;

	heapstats_unsafe_read(&t);
	return whole(&t);
}

static void read_and_tell(void)
{
	found = read_live();
}

static void read_exact_and_tell(void)
{
	found = read_exact();
}

GROUP(stats, .setup = begin, .timeout = 2 * AWAIT_SECONDS);

// heapstats GEN_FIRST: the reader waits for every writer that has raised its
// seq, whatever slot it will write to.
TEST(a_reader_waits_for_a_writer_that_has_not_loaded_gen)
{
	change(p);
	hold_at(SCHED_HEAPSTATS_ACQUIRE, &writer, change_p);
	hold_at(SCHED_WAIT_EVEN, &reader, read_and_tell);
	move_on(SCHED_HEAPSTATS_ACQUIRE, SCHED_HEAPSTATS_RELEASE);
	// The writer has loaded the moved generation, so it writes to no slot
	// that the reader reads.
	let_end(SCHED_HEAPSTATS_RELEASE, &writer);
	let_end(SCHED_WAIT_EVEN, &reader);
	ck_assert_uint_eq(found, 1);
	ck_assert_uint_eq(read_live(), 2);
	stop_p();
	ck_assert_uint_eq(read_exact(), 2);
	start_p();
}

// heapstats NO_WAIT, RELEASE_EARLY: a change that began before the generation
// moved is in the snapshot.
TEST(a_reader_waits_for_a_change_to_end)
{
	hold_at(SCHED_HEAPSTATS_RELEASE, &writer, change_p);
	hold_at(SCHED_WAIT_EVEN, &reader, read_and_tell);
	let_end(SCHED_HEAPSTATS_RELEASE, &writer);
	let_end(SCHED_WAIT_EVEN, &reader);
	ck_assert_uint_eq(found, 1);
}

// heapstats LIST_FIRST: after the generation has moved, a thread attaches and
// begins a change, before the reader walks the list.  The reader waits for that
// change.
TEST(a_thread_that_attaches_before_the_walk_is_waited_for)
{
	hold_at(SCHED_HEAPSTATS_READ, &reader, read_and_tell);
	hold_at(SCHED_HEAPSTATS_RELEASE, &newcomer, attach_and_change);
	move_on(SCHED_HEAPSTATS_READ, SCHED_WAIT_EVEN);
	let_end(SCHED_HEAPSTATS_RELEASE, &newcomer);
	let_end(SCHED_WAIT_EVEN, &reader);
	ck_assert_uint_eq(found, 0); // the change is in the next slot
	ck_assert_uint_eq(read_live(), 1);
}

static void detach_q(void)
{
	proc_detach(q);
}

static void detach_q_and_attach(void)
{
	struct rt_proc *before = q;

	proc_detach(q);
	q = proc_attach(0);
	ck_assert_ptr_eq(q, before);
}

static void (*const leavings[])(void) = {detach_q, detach_q_and_attach};

// heapstats NEXT_CLEARED, NEXT_FIRST: the P that a reader looks at leaves, and
// perhaps comes again.  The reader continues to the Ps that attached before
// that one.
TEST(a_reader_on_a_p_that_leaves_finds_the_others, .n = RT_ARRAY_LEN(leavings))
{
	q = proc_attach(0);
	ck_assert_ptr_eq(proc_first(), q);
	hold_at(SCHED_HEAPSTATS_RELEASE, &writer, change_p);
	hold_at(SCHED_HEAPSTATS_READ_NEXT, &reader, read_and_tell);
	leavings[_i]();
	ck_assert_uint_eq(procs.count, 1 + _i);
	move_on(SCHED_HEAPSTATS_READ_NEXT, SCHED_WAIT_EVEN);
	let_end(SCHED_HEAPSTATS_RELEASE, &writer);
	let_end(SCHED_WAIT_EVEN, &reader);
	ck_assert_uint_eq(found, 1);
}

// heapstats LEAVE_EARLY: a P that has left the list has counted everything.
TEST(a_thread_that_has_left_has_counted)
{
	q = proc_attach(0);
	change(q);
	hold_at(SCHED_HEAPSTATS_READ, &reader, read_and_tell);
	proc_detach(q);
	let_end(SCHED_HEAPSTATS_READ, &reader);
	ck_assert_uint_eq(found, 1);
}

// heapstats PUBLISH_LATE: every P that can write is in the list.
TEST(a_record_is_published_before_it_is_used)
{
	hold_at(SCHED_PROC_ENLIST, &newcomer, attach_and_change);
	ck_assert_ptr_ne(proc_first(), p);
	ck_assert_uint_eq(atomic_u32_load_relaxed(&proc_first()->stats_seq), 0);
	ck_assert_uint_eq(read_live(), 0);
	let_end(SCHED_PROC_ENLIST, &newcomer);
	ck_assert_ptr_eq(proc_first(), q);
	ck_assert_uint_eq(read_live(), 1);
}

// heapstats TWO_SLOTS, HISTORY_KEPT: while slots are folded, writers use a
// third one.  Numbers that were folded are not folded again.
TEST(no_thread_writes_to_what_is_folded)
{
	struct heapstats_delta *first = change(p), *second, *third;

	ck_assert_uint_eq(read_live(), 1);
	second = change(p);
	hold_at(SCHED_HEAPSTATS_FOLD, &reader, read_and_tell);
	third = change(p);
	ck_assert(first != second && second != third && third != first);
	ck_assert_ptr_eq(change(NULL), third);
	schedpoint_release(SCHED_HEAPSTATS_FOLD);
	hand_end(&reader);
	ck_assert_uint_eq(found, 2);
	for (int i = 0; i < 4; i++)
		ck_assert_uint_eq(read_live(), 4);
}

// heapstats READER_UNLOCKED: an exact reader waits for a reader that folds.
TEST(two_readers_take_turns)
{
	static struct hand exact;

	change(p);
	read_live();
	hold_at(SCHED_HEAPSTATS_FOLD, &reader, read_and_tell);
	stop_p();
	hold_at(SCHED_MUTEX_SLEEP, &exact, read_exact_and_tell);
	let_end(SCHED_HEAPSTATS_FOLD, &reader);
	ck_assert_uint_eq(found, 1);
	found = 0;
	let_end(SCHED_MUTEX_SLEEP, &exact);
	ck_assert_uint_eq(found, 1);
	start_p();
}

// heapstats NO_P_UNLOCKED, MOVE_UNLOCKED: while a writer without a P changes
// statistics, another such writer waits, and so does a reader that would move
// the generation.
TEST(a_writer_without_a_p_is_alone, .n = 2)
{
	struct heapstats_delta *d = heapstats_acquire(NULL);

	heapstats_add(ONE(d), 1);
	hold_at(SCHED_MUTEX_SLEEP, &writer,
		_i == 0 ? change_without : read_and_tell);
	heapstats_add(OTHER(d), 1);
	heapstats_release(NULL);
	let_end(SCHED_MUTEX_SLEEP, &writer);
	ck_assert_uint_eq(found, _i);
	ck_assert_uint_eq(read_live(), _i == 0 ? 2 : 1);
}
