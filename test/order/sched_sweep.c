// Bits, runs and sweeping: two sweepers, a thread that needs a span while
// another one sweeps it, and what is published when.
#define RT_NO_INLINE_ALLOC
#include <rt/rt.h>
#include <string.h>

#include "runtime/os/settings.h"
#include "runtime/world/gcstats.h"
#include "runtime/spans/object.h"
#include "test/harness/heap.h"
#include "test/harness/inside.h"
#include "test/order/host.h"

enum {
	CLASS = 32, // 1024 bytes: 8 a page, one a lineword
	TAKEN = 8,
	FREED = 6,
	DEAD_CLASS = 20,
	NEAR_CLASS = 5, // several objects a lineword
};

static struct mspan *span; // of CLASS; after a flip slots 3 and 7 live
static struct mspan *dead; // of DEAD_CLASS; nothing of it lives
static struct hand sweeper, other;

static char *take(unsigned c)
{
	char *obj = inside_take(spanclass_make(c, KIND_NOSCAN));

	if (!obj)
		ck_abort_msg("no memory");
	return obj;
}

static void mark(const struct mspan *s, uint32_t slot)
{
	unsigned bit = mspan_bit(s, slot);

	atomic_u64_or_relaxed(
	    mspan_lineword(s, epoch_mark_line(epoch_sweepgen()), bit / 64),
	    UINT64_C(1) << (bit % 64));
}

static void begin(void)
{
	inside_boot(false);
}

// flip does what the cycle does between marking and sweeping.
static void flip(void)
{
	mcache_flush(mc, self);
	inside_flip();
}

static void begin_unswept(void)
{
	begin();
	for (int i = 0; i < TAKEN; i++)
		span = inside_span(take(CLASS));
	memset((void *)span->base, 0x11, RT_PAGE_SIZE);
	dead = inside_span(take(DEAD_CLASS));
	mark(span, 3);
	mark(span, 7);
	flip();
}

static bool is_swept(const struct mspan *s)
{
	return atomic_u32_load_acquire(&s->sweepgen) == epoch_sweepgen();
}

static struct mspan *top(unsigned c)
{
	return inside_partial(spanclass_make(c, KIND_NOSCAN));
}

static uint64_t frees(unsigned c)
{
	return stopped_totals().small_free_count[c];
}

static uint64_t mallocs(unsigned c)
{
	return stopped_totals().small_alloc_count[c];
}

// Sweepers here have no P.
static void sweep_chunks(void)
{
	sweep_help(NULL);
}

// The world must be stopped.
static void sweep_the_rest(void)
{
	sweep_all(NULL);
}

static void ensure(void)
{
	sweep_ensure(NULL, span);
	ck_assert(is_swept(span));
	ck_assert_uint_eq(span->alloc_count, TAKEN - FREED);
	ck_assert_uint_eq(mspan_count(span, epoch_mark_line(epoch_sweepgen())),
			  0);
}

static bool all_done;

static void ask_done(void)
{
	all_done = sweep_done();
}

static void expect_swept(void)
{
	bool begun;

	ck_assert(sweep_done());
	ck_assert(is_swept(span));
	ck_assert_uint_eq(span->alloc_count, TAKEN - FREED);
	ck_assert_uint_eq(frees(CLASS), FREED);
	ck_assert_uint_eq(frees(DEAD_CLASS), 1);
	ck_assert_ptr_eq(top(CLASS), span);
	begun = stopped_begin();
	ck_assert_ptr_null(mcentral_below(span));
	stopped_end(begun);
}

// ---- two sweepers ----

GROUP(sweep, .setup = begin_unswept, .timeout = 2 * AWAIT_SECONDS);

// bits CLAIM_IN_TWO: two sweepers have found the span unswept.  One of them
// sweeps it.
TEST(a_span_is_swept_by_one_of_two)
{
	hold_at(SCHED_SWEEP_CLAIM, &sweeper, sweep_chunks);
	ensure();
	let_end(SCHED_SWEEP_CLAIM, &sweeper);
	inside_sweep_all();
	expect_swept();
}

// bits ENSURE_UNWAITED, SWEPT_EARLY, OLD_LINE_KEPT: other threads can use the
// span only when its old line is clear and its count is right.
TEST(a_thread_that_needs_a_span_waits_for_its_sweeper)
{
	hold_at(SCHED_SWEEP_SPAN, &sweeper, sweep_chunks);
	// The higher one of the two spans of the chunk comes first.
	while (span->alloc_count == TAKEN)
		move_on(SCHED_SWEEP_SPAN, SCHED_SWEEP_SPAN);
	ck_assert(!is_swept(span));
	ck_assert_uint_eq(mspan_count(span, epoch_mark_line(epoch_sweepgen())),
			  0);
	hold_at(SCHED_SWEEP_ENSURE_WAIT, &other, ensure);
	let_end(SCHED_SWEEP_SPAN, &sweeper);
	let_end(SCHED_SWEEP_ENSURE_WAIT, &other);
	expect_swept();
}

// Two threads need the same span, and one of them sweeps it.  The other one
// learns only from the sweepgen of the span that it is swept.
TEST(a_thread_that_needs_a_span_sees_what_its_sweeper_did)
{
	hold_at(SCHED_SWEEP_ENSURE_CLAIMED, &sweeper, ensure);
	pass_at(SCHED_SWEEP_ENSURE_WAIT, &other, ensure);
	let_end(SCHED_SWEEP_ENSURE_CLAIMED, &sweeper);
	hand_end(&other);
	inside_sweep_all();
	expect_swept();
}

// A thread that frees the dropped objects of a span waits until the span is
// swept.  Then it takes the span out of the queue and makes it available, so
// the sweeper must not do that as well.
TEST(a_span_that_leaves_the_queue_is_pushed_once)
{
	span->queued = 1;
	hold_at(SCHED_SWEEP_SPAN_SWEPT, &sweeper, sweep_chunks);
	while (!is_swept(span)) // the higher span comes first
		move_on(SCHED_SWEEP_SPAN_SWEPT, SCHED_SWEEP_SPAN_SWEPT);
	span->queued = 0;
	mcentral_push(span);
	let_end(SCHED_SWEEP_SPAN_SWEPT, &sweeper);
	ck_assert_ptr_eq(mcentral_pop(span->spanclass), span);
	ck_assert_ptr_null(top(CLASS));
	mcentral_push(span);
	expect_swept();
}

// ---- when all is swept ----

static const enum schedpoint active_points[] = {
    SCHED_SWEEP_ONE, SCHED_SWEEP_ONE_TAKEN, SCHED_SWEEP_SPAN,
    SCHED_SWEEP_PUBLISH, SCHED_SWEEP_PUBLISH_COUNTED};

// bits ACTIVE_LATE: while a sweeper is at work, wherever it is, not all is
// swept.
TEST(all_is_swept_when_the_last_sweeper_is_done,
     .n = RT_ARRAY_LEN(active_points))
{
	hold_at(active_points[_i], &sweeper, sweep_chunks);
	must(rt_stop_the_world(RT_STOP_HOST));
	hold_at(SCHED_SWEEP_ALL_WAIT, &other, sweep_the_rest);
	ck_assert(!sweep_done());
	let_end(active_points[_i], &sweeper);
	let_end(SCHED_SWEEP_ALL_WAIT, &other);
	must(rt_start_the_world(NULL));
	expect_swept();
}

static const enum schedpoint ensure_points[] = {SCHED_SWEEP_ENSURE,
						SCHED_SWEEP_ENSURE_CLAIMED};

// bits ENSURE_INACTIVE: a thread that sweeps all passes over a span that
// another thread has claimed, and waits until that thread has swept it.
TEST(all_is_swept_when_the_thread_that_needed_a_span_is_done,
     .n = RT_ARRAY_LEN(ensure_points))
{
	hold_at(ensure_points[_i], &sweeper, ensure);
	must(rt_stop_the_world(RT_STOP_HOST));
	hold_at(SCHED_SWEEP_ALL_WAIT, &other, sweep_the_rest);
	let_end(ensure_points[_i], &sweeper);
	let_end(SCHED_SWEEP_ALL_WAIT, &other);
	must(rt_start_the_world(NULL));
	expect_swept();
}

// bits ACTIVE_FIRST: a thread asks whether all is swept.  Between its two looks
// a sweeper becomes active and takes the last chunk.
TEST(a_thread_that_asks_looks_at_what_is_left_first)
{
	all_done = true;
	hold_at(SCHED_SWEEP_DONE, &other, ask_done);
	hold_at(SCHED_SWEEP_CLAIM, &sweeper, sweep_chunks);
	let_end(SCHED_SWEEP_DONE, &other);
	ck_assert(!all_done);
	let_end(SCHED_SWEEP_CLAIM, &sweeper);
	expect_swept();
}

// ---- publishing ----

static bool dead_is_there(uint64_t page)
{
	return arena_pageword(page) != 0 && arena_span(page) == dead;
}

// bits PUSH_UNPUBLISHED, FREE_UNPUBLISHED: frees count before slots and pages
// can be used again.
TEST(frees_count_before_reuse)
{
	uint64_t page = mspan_page(dead);

	hold_at(SCHED_SWEEP_PUBLISH, &sweeper, sweep_chunks);
	ck_assert(is_swept(span));
	ck_assert_uint_eq(frees(CLASS) + frees(DEAD_CLASS), 0);
	ck_assert_ptr_null(top(CLASS));
	ck_assert(dead_is_there(page));
	move_on(SCHED_SWEEP_PUBLISH, SCHED_SWEEP_PUBLISH_COUNTED);
	ck_assert_uint_eq(frees(CLASS), FREED);
	ck_assert_uint_eq(frees(DEAD_CLASS), 1);
	ck_assert_ptr_null(top(CLASS));
	ck_assert(dead_is_there(page));
	let_end(SCHED_SWEEP_PUBLISH_COUNTED, &sweeper);
	ck_assert_uint_eq(arena_pageword(page), 0);
	expect_swept();
}

// retire works on main's mcache while main waits.
static void retire(void)
{
	mcache_retire_slot(mc, self,
			   &mc->slots[spanclass_make(CLASS, KIND_NOSCAN)]);
}

GROUP(bits, .setup = begin, .timeout = 2 * AWAIT_SECONDS);

// bits REST_KEPT, PUSH_UNCOUNTED: a span is pushed when the rest of its run is
// free and the used slots have been counted.
TEST(mallocs_count_before_the_span_is_pushed)
{
	unsigned line = epoch_alloc_line(epoch_sweepgen());

	for (int i = 0; i < 3; i++)
		span = inside_span(take(CLASS));
	hold_at(SCHED_MCACHE_RETIRE_SLOT_REST, &other, retire);
	ck_assert_uint_eq(mspan_count(span, line), 3);
	ck_assert_uint_eq(mallocs(CLASS), 0);
	ck_assert_ptr_null(top(CLASS));
	move_on(SCHED_MCACHE_RETIRE_SLOT_REST, SCHED_MCACHE_RETIRE_SLOT);
	ck_assert_uint_eq(mallocs(CLASS), 3);
	ck_assert_uint_eq(span->alloc_count, 3);
	ck_assert_ptr_null(top(CLASS));
	let_end(SCHED_MCACHE_RETIRE_SLOT, &other);
	ck_assert_ptr_eq(top(CLASS), span);
}

// ---- runs ----

static unsigned run_class;

static void take_one(void)
{
	take(run_class);
}

// bits DIRTY_REUSE: memory is clear before its bits say that it is allocated.
TEST(a_run_is_clear_before_it_is_allocated, .n = 2)
{
	static const enum schedpoint points[] = {SCHED_MCACHE_NEXT_RUN,
						 SCHED_MCACHE_NEXT_NEAR};
	uint32_t last;
	struct mspan *s;
	char *p;

	run_class = _i == 0 ? CLASS : NEAR_CLASS;
	p = take(run_class);
	s = inside_span(p);
	last = s->nelems - 1;
	ck_assert_uint_eq((uintptr_t)p, mspan_object(s, last));
	memset(p, 0x11, s->elemsize);
	take(run_class);
	mark(s, last - 1);
	flip();
	inside_sweep_all();
	hold_at(points[_i], &other, take_one);
	ck_assert(heap_is_zero(p, s->elemsize));
	ck_assert(!mspan_test(s, epoch_alloc_line(epoch_sweepgen()), last));
	let_end(points[_i], &other);
	ck_assert(mspan_test(s, epoch_alloc_line(epoch_sweepgen()), last));
}

// ---- the flip ----

static void *kept[2]; // roots: an object, and a free slot

static uint32_t marks(const struct mspan *s)
{
	return mspan_count(s, epoch_mark_line(epoch_sweepgen()));
}

static bool caches_nothing(void)
{
	uint64_t any = 0;

	for (unsigned w = 0; w < MCACHE_WORDS; w++)
		any |= mc->nonempty[w];
	return any == 0;
}

// bits SETS_KEPT, UNFLUSHED, FLIP_UNSWEPT, MARK_FREE, MARK_OTHER_LINE: before
// the flip no set and no cache has a span, and all is swept.  The mark line has
// only the live object, although a root points to a free slot.  A thread that
// looks an object up finds it before and after the flip.
TEST(a_flip_finds_everything_in_order)
{
	struct mspan *s;
	struct object o;

	must(rt_roots_add(kept, kept + RT_ARRAY_LEN(kept), RT_ROOT_EXACT));
	kept[0] = rt_alloc(1000);
	s = inside_span(kept[0]);
	kept[1] = (char *)s->base + (s->nelems - 1) * s->elemsize;
	ck_assert(rt_alloc(1000));
	mcache_flush(mc, self);
	ck_assert_ptr_eq(inside_partial(s->spanclass), s);
	ck_assert(rt_alloc(1000));
	ck_assert(!caches_nothing());
	host_block();
	hold_at(SCHED_CYCLE_FLIP, &other, host_collect);
	ck_assert(caches_nothing());
	ck_assert_ptr_null(mcentral_top(s->spanclass));
	ck_assert(sweep_done());
	ck_assert_uint_eq(s->alloc_count, 3);
	ck_assert_uint_eq(marks(s), 1);
	ck_assert(object_find((uintptr_t)kept[0], &o));
	let_end(SCHED_CYCLE_FLIP, &other);
	ck_assert(object_find((uintptr_t)kept[0], &o));
	ck_assert_uint_eq(s->alloc_count, 1);
	ck_assert_uint_eq(marks(s), 0);
	host_unblock();
	ck_assert_ptr_eq(inside_partial(s->spanclass), s);
}

// Processor time that the process uses while a collection runs is not counted
// as the host's.  There are more processors than the process can keep busy, so
// some time must count as idle.
TEST(the_hosts_cpu_is_read_before_the_collection)
{
	const uint64_t hour = UINT64_C(3600) * 1000 * 1000 * 1000;
	struct gcstats_cycles c;

	settings_present.max_procs = 1024;
	gcstats_init();
	host_block();
	hold_at(SCHED_CYCLE_FLIP, &other, host_collect);
	gcstats_fork_child(1000 * hour);
	let_end(SCHED_CYCLE_FLIP, &other);
	host_unblock();
	gcstats_read_cycles(&c);
	ck_assert_uint_gt(c.cpu.idle, 0);
}

// ---- look-ups by threads that no stop waits for ----

static const char *asked;
static struct object answer;
static bool found;

static void ask(void)
{
	found = object_find((uintptr_t)asked, &answer);
}

static struct mspan *take_large(size_t request, bool guarded)
{
	struct mspan *s =
	    guarded ? mheap_alloc_guarded(self, NULL, KIND_NOSCAN, request)
		    : mheap_alloc_large(self, NULL, KIND_NOSCAN, request);

	ck_assert_ptr_nonnull(s);
	mheap_publish_large(s);
	return s;
}

// drop_large does what sweeping does with a dead large object.
static void drop_large(struct mspan *s)
{
	atomic_u64_store_release(
	    mspan_lineword(s, epoch_alloc_line(epoch_sweepgen()), 0), 0);
	s->alloc_count = 0;
	s->next = NULL;
	mheap_free(self, s);
}

// While a thread looks up the first object, that object dies, and the next one
// gets its pages, and perhaps its mspan.
static const struct {
	size_t request, next;
	bool guarded, next_guarded;
} large[] = {
    {60000, 40000, false, false},
    {40000, 60000, false, false},
    {40000, 40001, true, false},
    {40001, 48000, false, true},
};

TEST(no_answer_mixes_two_large_objects, .n = RT_ARRAY_LEN(large))
{
	uintptr_t base;
	size_t n = large[_i].request;
	struct mspan *s;

	settings_present.guard_large = 1;
	guard_init();
	s = take_large(n, large[_i].guarded);
	base = s->base;
	asked = (char *)mspan_object(s, 0) + n - 1;
	ask();
	ck_assert(found);
	hold_at(SCHED_EXTENT_FIND, &other, ask);
	drop_large(s);
	s = take_large(large[_i].next, large[_i].next_guarded);
	ck_assert_uint_eq(s->base, base);
	let_end(SCHED_EXTENT_FIND, &other);
	if (found) {
		ck_assert_uint_eq(answer.base, mspan_object(s, 0));
		ck_assert_uint_eq(answer.request, large[_i].next);
	}
}

// The owner resizes the object, which is there all the time.  A second resize
// comes while the other thread looks again.
TEST(a_large_object_is_found_while_it_is_resized, .n = 2)
{
	static const size_t requests[][3] = {{60000, 60064, 60000},
					     {60000, 40000, 100000}};
	const size_t *n = requests[_i];
	struct mspan *s = take_large(n[0], false);

	asked = (char *)s->base;
	hold_at(SCHED_EXTENT_FIND, &other, ask);
	ck_assert(mheap_resize_large(self, s, n[1]));
	move_on(SCHED_EXTENT_FIND, SCHED_EXTENT_FIND);
	ck_assert(mheap_resize_large(self, s, n[2]));
	let_end(SCHED_EXTENT_FIND, &other);
	ck_assert(found);
	ck_assert_uint_eq(answer.base, s->base);
	ck_assert_uint_eq(answer.request, n[2]);
}

// While a thread looks an address up, the page of its dead span becomes part of
// another span, which has an object at that address.
TEST(no_answer_mixes_two_classes)
{
	struct mspan *s = mheap_alloc_small(self, NULL, spanclass_make(5, 0));
	uintptr_t base = s->base;

	asked = (char *)base;
	hold_at(SCHED_LOOK_UP, &other, ask);
	s->next = NULL;
	mheap_free(self, s);
	do
		s = inside_span(take(CLASS));
	while (s->base != base);
	let_end(SCHED_LOOK_UP, &other);
	if (found)
		ck_assert_uint_eq(answer.size, s->elemsize);
}
