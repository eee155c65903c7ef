// While a thread releases memory or brings it in, the pages look allocated.
// Another thread finds no room meanwhile.
#define RT_NO_INLINE_ALLOC
#include <time.h>

#include <rt/rt.h>

#include "runtime/spans/populate.h"
#include "runtime/spans/scavenge.h"
#include "runtime/world/gcstats.h"
#include "runtime/world/stw.h"
#include "gc/cycle/release.h"
#include "test/harness/inside.h"
#include "test/order/host.h"

enum { PAGES = RT_ARENA_SIZE / RT_PAGE_SIZE };

static struct hand holder, other;
static struct mspan *span;
static atomic_u32 stopped;

// begin_most makes a heap of one arena that may grow to narenas.  All of it is
// free, with memory behind it.
static void begin_most(unsigned narenas)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.huge_pages = 1;
	c.max_heap = narenas * (uint64_t)RT_ARENA_SIZE;
	heap_start(c);
	span = mheap_alloc_manual(NULL, PAGES, MSPAN_WORK);
	ck_assert_ptr_nonnull(span);
	mheap_free_manual(NULL, span);
	span = NULL;
}

static void begin(void)
{
	begin_most(1);
}

static void release_a_step(void)
{
	struct scavenge_pass pass = scavenge_begin(true);

	ck_assert_uint_ge(scavenge_range(NULL, &pass, SCAVENGE_STEP),
			  SCAVENGE_STEP);
}

static void populate_a_step(void)
{
	struct populate_pass pass = populate_begin();

	ck_assert_uint_gt(populate_range(NULL, &pass), 0);
}

static void free_os_memory(void)
{
	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	ck_assert_int_eq(rt_free_os_memory(), RT_OK);
	host_detach();
}

static void populate_attached(void)
{
	struct populate_pass pass = populate_begin();

	host_attach();
	ck_assert_uint_gt(populate_range(proc_self(), &pass), 0);
	host_detach();
}

// The ways in which a thread has pages in hand.
static const struct way {
	enum schedpoint at;
	void (*step)(void);
	void (*attached)(void); // as an attached thread, which then polls
} ways[] = {
    {SCHED_SCAVENGE_STEP, release_a_step, free_os_memory},
    {SCHED_POPULATE_RANGE, populate_a_step, populate_attached},
};

static const struct way *way;

// begin_way makes a heap of one arena, with pages that way i can release or
// bring in.
static void begin_way(int i)
{
	struct scavenge_pass pass = scavenge_begin(true);

	begin();
	way = &ways[i];
	if (way->step == populate_a_step)
		while (scavenge_range(NULL, &pass, RT_CHUNK_SIZE) != 0)
			;
}

static bool lacks_populate(void)
{
	if (way->step != populate_a_step ||
	    atomic_u32_load_relaxed(&mheap.populate))
		return false;
	suite_skip("this kernel has no MADV_POPULATE_WRITE", NULL);
	return true;
}

static void take_all(void)
{
	span = mheap_alloc_manual(NULL, PAGES, MSPAN_WORK);
}

static bool all_is_free(void)
{
	return pagealloc_count_free(&mheap.pages) == PAGES;
}

GROUP(release, .timeout = 2 * AWAIT_SECONDS);

// release UNASKED, LOCK_KEPT: a thread that finds no room waits for pages in
// hand, without the heap's lock.
TEST(pages_in_hand_are_waited_for, .n = RT_ARRAY_LEN(ways))
{
	begin_way(_i);
	if (lacks_populate())
		return;
	hold_at(way->at, &holder, way->step);
	ck_assert(!all_is_free());
	hold_at(SCHED_AWAIT_IN_HAND, &other, take_all);
	ck_assert(!mutex_held(&mheap.lock));
	schedpoint_release(SCHED_AWAIT_IN_HAND);
	let_end(way->at, &holder);
	hand_end(&other);
	ck_assert_ptr_nonnull(span);
	ck_assert_uint_eq(span->npages, PAGES);
}

// release TURN_EARLY.
TEST(a_turn_ends_when_the_pages_are_free, .n = RT_ARRAY_LEN(ways))
{
	begin_way(_i);
	if (lacks_populate())
		return;
	hold_at(way->at, &holder, way->step);
	move_on(way->at, SCHED_SEMA_RELEASE);
	ck_assert(!mheap.in_hand);
	ck_assert(all_is_free());
	let_end(SCHED_SEMA_RELEASE, &holder);
}

// release LOOK_LATE: no other step begins before a thread that waited has
// looked for pages.
TEST(a_thread_that_waited_looks_before_the_next_step, .n = RT_ARRAY_LEN(ways))
{
	begin_way(_i);
	if (lacks_populate())
		return;
	hold_at(way->at, &holder, way->step);
	hold_at(SCHED_AWAIT_IN_HAND, &other, take_all);
	let_end(way->at, &holder);
	move_on(SCHED_AWAIT_IN_HAND, SCHED_SEMA_RELEASE);
	ck_assert(mutex_held(&mheap.lock));
	let_end(SCHED_SEMA_RELEASE, &other);
	ck_assert_ptr_nonnull(span);
}

// Pages in use are no reason to wait.
TEST(a_heap_in_use_is_not_waited_for)
{
	begin();
	ck_assert_ptr_nonnull(mheap_alloc_manual(NULL, 1, MSPAN_WORK));
	schedpoint_watch();
	take_all();
	ck_assert_ptr_null(span);
	ck_assert_uint_eq(schedpoint_passed(SCHED_AWAIT_IN_HAND), 0);
}

static void release_for_the_limit(void)
{
	uint64_t before = oscall_thread_cpu(0), took;

	release_step(NULL);
	took = oscall_thread_cpu(0) - before;
	ck_assert_uint_le(
	    atomic_u64_load_relaxed(&gcstats.scavenge[GCSTATS_ASSIST]), took);
}

// The cost of releasing is counted in processor time, so waiting for another
// thread's turn costs nothing.
TEST(waiting_for_a_turn_is_no_processor_time)
{
	begin();
	hold_at(SCHED_SCAVENGE_STEP, &holder, release_a_step);
	hand_start(&other, release_for_the_limit);
	nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	let_end(SCHED_SCAVENGE_STEP, &holder);
	hand_end(&other);
}

static void release_a_chunk(void)
{
	struct scavenge_pass pass = scavenge_begin(true);

	scavenge_range(NULL, &pass, RT_CHUNK_SIZE);
}

// Pages that are being released look allocated.  A chunk that is full of them
// is not full of live objects, so it gets no huge pages.
TEST(pages_that_are_being_released_want_no_huge_pages)
{
	begin();
	hold_at(SCHED_SCAVENGE_STEP, &holder, release_a_chunk);
	ck_assert(!mheap_choose_huge_pages());
	let_end(SCHED_SCAVENGE_STEP, &holder);
	take_all();
	ck_assert(mheap_choose_huge_pages());
}

static void take_one_more(void)
{
	span = mheap_alloc_manual(NULL, PAGES + 1, MSPAN_WORK);
}

// release GROW_UNASKED: a heap that grows counts the free pages at its end.  If
// some of them are being released when the growth has been prepared, the thread
// waits for them.  Otherwise the heap would become twice as long.
TEST(pages_that_are_being_released_are_grown_from)
{
	begin_most(3);
	hold_at(SCHED_GROW, &other, take_one_more);
	ck_assert(!mutex_held(&mheap.lock));
	hold_at(SCHED_SCAVENGE_STEP, &holder, release_a_step);
	move_on(SCHED_GROW, SCHED_AWAIT_IN_HAND);
	schedpoint_release(SCHED_AWAIT_IN_HAND);
	let_end(SCHED_SCAVENGE_STEP, &holder);
	hand_end(&other);
	ck_assert_ptr_nonnull(span);
	ck_assert_uint_eq(arena_used(), RT_ARENA_SIZE + RT_CHUNK_SIZE);
}

static void take_two_arenas(uint64_t more)
{
	struct mspan *s =
	    mheap_alloc_manual(NULL, 2 * PAGES + more, MSPAN_WORK);

	ck_assert_ptr_nonnull(s);
	mheap_free_manual(NULL, s);
}

static void take_two_arenas_and_one_page(void)
{
	take_two_arenas(1);
}

// If several threads want the heap to grow, one of them prepares chunks ahead.
TEST(chunks_are_prepared_ahead_once)
{
	uint64_t prepared;

	begin_most(4);
	take_two_arenas(0);
	hold_at(SCHED_GROW, &other, take_two_arenas_and_one_page);
	take_two_arenas(1);
	prepared = arena_prepared();
	ck_assert_uint_eq(prepared, 2 * RT_ARENA_SIZE + RT_CHUNK_SIZE);
	let_end(SCHED_GROW, &other);
	ck_assert_uint_eq(arena_prepared(), prepared);
}

static void stop_released(void)
{
	struct rt_stop_times times;

	stw_acquire(NULL);
	stw_stop(NULL, RT_STOP_HOST);
	ck_assert(!mheap.in_hand);
	ck_assert(all_is_free());
	atomic_u32_store_release(&stopped, 1);
	stw_start(NULL, &times);
	stw_release();
}

// release POLL_INSIDE: no thread polls in a step, so a stop finds no pages in
// hand.
TEST(a_stop_waits_for_the_step, .n = RT_ARRAY_LEN(ways))
{
	begin_way(_i);
	if (lacks_populate())
		return;
	rt_blocking_enter();
	hold_at(way->at, &holder, way->attached);
	pass_at(SCHED_PROC_STOP_ALL_ASKED, &other, stop_released);
	ck_assert(stays(&stopped, 0));
	schedpoint_release(way->at);
	hand_end(&other);
	hand_end(&holder);
	rt_blocking_leave();
	ck_assert_uint_eq(atomic_u32_load_acquire(&stopped), 1);
}
