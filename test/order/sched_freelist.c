// Lists of slots that were freed by hand: threads that share and gather beside
// each other, beside a stop that flushes all caches, and beside a fork.
//
// No root refers to an object here.  A slot that a list has lost would stay
// allocated until a collection frees it.  So objects are counted without a
// collection before.
#include <rt/fork.h>

#include "runtime/spans/freelist.h"
#include "runtime/spans/mcache.h"
#include "test/harness/process.h"
#include "test/order/host.h"

enum {
	// Objects of a part: when the last one is freed, the list is full.
	PART = FREELIST_MOST + 1,
	PARTS = 3,
	OWN = 3, // slots that main has freed itself
	BYTES = 64,
};

static struct hand first, second;
static void *slots[PARTS][PART];

static void begin(void)
{
	heap_start_exact(heap_config(HEAP_QUIET));
}

static void allocate(unsigned part)
{
	for (unsigned i = 0; i < PART; i++) {
		slots[part][i] = rt_alloc_noscan(BYTES);
		ck_assert_ptr_nonnull(slots[part][i]);
	}
}

static void free_all(unsigned part)
{
	for (unsigned i = 0; i < PART; i++)
		ck_assert_int_eq(rt_free(slots[part][i]), RT_OK);
}

// free_part frees a part, which leaves one slot on the hand's own list.  If a
// stop is wanted, the hand keeps that slot until the stop is over.
static void free_part(unsigned part)
{
	host_attach();
	free_all(part);
	host_block();
	host_unblock();
	host_detach();
}

static void take_part(unsigned part)
{
	host_attach();
	allocate(part);
	host_detach();
}

static void free_first(void)
{
	free_part(0);
}

static void free_second(void)
{
	free_part(1);
}

static void take_first(void)
{
	take_part(0);
}

static void take_second(void)
{
	take_part(1);
}

static void free_third(void)
{
	free_part(2);
}

GROUP(freelist, .setup = begin, .timeout = 2 * AWAIT_SECONDS);

// ---- beside each other ----

static const struct side {
	bool takes;
	enum schedpoint at;
	void (*fn[2])(void); // as the first hand, as the second
} sides[] = {
    {false, SCHED_FREELIST_SHARE, {free_first, free_second}},
    {true, SCHED_FREELIST_GATHER, {take_first, take_second}},
};

// freelist SHARE_UNLOCKED, GATHER_UNLOCKED: while a thread links its list to
// the shared one, or takes slots off it, another thread waits to do either.  No
// slot is lost, and none is allocated twice.
TEST(threads_share_and_gather_in_turn, .n = 4)
{
	const struct side *a = &sides[_i / 2], *b = &sides[_i % 2];
	unsigned taken = PART * ((unsigned)a->takes + (unsigned)b->takes);

	allocate(2);
	if (!a->takes)
		allocate(0);
	if (!b->takes)
		allocate(1);
	hand_run(&first, free_third);
	hold_at(a->at, &first, a->fn[0]);
	hold_at(SCHED_MUTEX_SLEEP, &second, b->fn[1]);
	let_end(a->at, &first);
	let_end(SCHED_MUTEX_SLEEP, &second);
	ck_assert_uint_eq(heap_live(), taken);
	heap_healthy();
}

// ---- beside a stop ----

static const enum schedpoint sharing[] = {SCHED_FREELIST_SHARE,
					  SCHED_FREELIST_SHARE_SPLICED};

// begin_sharing holds the first hand while it shares slots of a span that main
// has cached.  Main has a list, too, and is blocked.
static void begin_sharing(enum schedpoint at)
{
	allocate(0);
	allocate(1);
	for (unsigned i = 0; i < OWN; i++)
		must(rt_free(slots[1][i]));
	hold_at(at, &first, free_first);
	host_block();
}

static uint64_t left; // objects

static void count(void)
{
	host_attach();
	left = heap_live();
	host_detach();
}

// freelist HOLDER_POLLS, LIST_FORGOTTEN, SHARE_SILENT: a stop waits for a
// thread that shares.  Then every slot on a list is freed, even in a span that
// main had cached.
TEST(a_stop_finds_each_freed_slot_on_one_list, .n = RT_ARRAY_LEN(sharing))
{
	begin_sharing(sharing[_i]);
	hold_at(SCHED_NOTE_WAIT, &second, count);
	ck_assert(!stw_stopped());
	schedpoint_release(SCHED_NOTE_WAIT);
	let_end(sharing[_i], &first);
	hand_end(&second);
	host_unblock();
	ck_assert_uint_eq(left, PART - OWN);
	ck_assert_uint_eq(heap_live(), PART - OWN);
	heap_healthy();
}

// A collection waits for a thread that shares, and then frees everything.
TEST(a_collection_waits_for_a_thread_that_shares, .n = RT_ARRAY_LEN(sharing))
{
	begin_sharing(sharing[_i]);
	pass_at(SCHED_NOTE_WAIT, &second, host_collect);
	ck_assert(!stw_stopped());
	let_end(sharing[_i], &first);
	hand_end(&second);
	host_unblock();
	ck_assert_uint_eq(heap_live(), 0);
	heap_healthy();
}

// ---- the order of a flush ----

// last returns an object in a span that its thread has cached: the newest one.
static const void *last(unsigned part)
{
	return slots[part][PART - 1];
}

static bool is_cached(const void *p)
{
	return arena_span(arena_offset((uintptr_t)p) >> RT_PAGE_SHIFT)->cached;
}

// A slot on a list counts as an object as long as its span is cached.
static void expect_listed_while_cached(void)
{
	for (unsigned part = 0; part < 2; part++)
		ck_assert(!is_cached(last(part)) || rt_is_heap(last(part)));
}

static void take_second_free_first(void)
{
	host_attach();
	allocate(1);
	ck_assert_int_eq(rt_free(slots[0][PART - 1]), RT_OK);
	host_block();
	host_unblock();
	host_detach();
}

static void flush_all(void)
{
	host_attach();
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	mcache_flush_all(proc_self());
	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
	host_detach();
}

// freelist LISTS_FIRST: main and a hand have each freed a slot of the span that
// the other one has cached.  A flush frees neither slot before both caches are
// empty, whichever cache it empties first.
TEST(no_slot_is_freed_while_its_span_is_cached)
{
	allocate(0);
	hold_at(SCHED_PROC_BLOCK_DONE, &first, take_second_free_first);
	must(rt_free(slots[1][PART - 1]));
	host_block();
	ck_assert(is_cached(last(0)) && is_cached(last(1)));
	hold_at(SCHED_PROC_STOP_ALL_ASKED, &second, flush_all);
	move_on(SCHED_PROC_STOP_ALL_ASKED, SCHED_HEAPSTATS_ACQUIRE);
	expect_listed_while_cached();
	for (int i = 0; i < 2; i++) {
		move_on(SCHED_HEAPSTATS_ACQUIRE, SCHED_HEAPSTATS_ACQUIRE);
		expect_listed_while_cached();
	}
	let_end(SCHED_HEAPSTATS_ACQUIRE, &second);
	ck_assert(!is_cached(last(0)) && !is_cached(last(1)));
	let_end(SCHED_PROC_BLOCK_DONE, &first);
	host_unblock();
	ck_assert_uint_eq(heap_live(), 2 * PART - 2);
	heap_healthy();
}

// ---- beside a fork ----

// fork_and_count is for a thread that is not attached.
static void fork_and_count(void)
{
	struct rt_verify v = {.errors = 1};

	if (process_forked())
		process_end(rt_thread_attach(RT_THREAD_EXACT) == RT_OK &&
			    rt_heap_verify(&v) == RT_OK && v.errors == 0 &&
			    v.objects == PART - OWN && rt_gc() == RT_OK &&
			    rt_heap_verify(&v) == RT_OK && v.errors == 0 &&
			    v.objects == 0 && rt_fini() == RT_OK);
}

// freelist FORK_UNSTOPPED, LOST_KEPT: a fork waits for a thread that shares.
// The child frees what that thread had listed.
TEST(a_child_frees_what_lost_threads_had_freed, .n = RT_ARRAY_LEN(sharing))
{
	begin_sharing(sharing[_i]);
	pass_at(SCHED_NOTE_WAIT, &second, fork_and_count);
	schedpoint_release(sharing[_i]);
	hand_end(&second);
	hand_end(&first);
	host_unblock();
	ck_assert_uint_eq(heap_live(), PART - OWN);
	heap_healthy();
}
