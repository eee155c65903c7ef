// Sweeping beside the threads: what hosts see of it, which is nothing.
#define RT_NO_INLINE_ALLOC
#include <rt/rt.h>

#include "runtime/os/nanotime.h"
#include "runtime/os/oscall.h"
#include "runtime/world/gcstats.h"
#include "gc/cycle/pacer.h"
#include "gc/cycle/scavenger.h"
#include "gc/cycle/swept.h"
#include "gc/host/slices.h"
#include "gc/host/supply.h"
#include "runtime/pages/arena.h"
#include "runtime/pages/hugepages.h"
#include "runtime/spans/mheap.h"
#include "test/harness/await.h"
#include "test/harness/heap.h"
#include "test/harness/kind.h"

#define MIB (UINT64_C(1) << 20)

enum {
	OBJECT = 8192,
	PER_MIB = (1 << 20) / OBJECT,
	PER_CHUNK = RT_CHUNK_SIZE / OBJECT,
	MOST_MIB = 64,
};

static uintptr_t *table;

static rt_config config(int mode, int threads)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.sweep = (uint8_t)mode;
	c.gc_threads = threads;
	return c;
}

static void begin(const rt_config *c)
{
	heap_start_exact(*c);
	table = heap_table(MOST_MIB * PER_MIB, RT_ROOT_EXACT);
}

static void fill(size_t mib)
{
	for (size_t i = 0; i < mib * PER_MIB; i++)
		if (!table[i])
			table[i] = (uintptr_t)rt_alloc_noscan(OBJECT);
}

// drop drops all but the first keep_mib MiB.
static void drop(size_t keep_mib)
{
	memset(table + keep_mib * PER_MIB, 0,
	       (MOST_MIB - keep_mib) * PER_MIB * sizeof *table);
}

static void collect_only(void)
{
	supply_collect(proc_self(), ASK_FORCED);
}

// begin_unswept leaves a heap that no thread but the caller sweeps.
static void begin_unswept(void)
{
	rt_config c = config(2, 0);

	begin(&c);
	fill(32);
	drop(2);
	collect_only();
	ck_assert(sweep_left());
}

GROUP(swept, .setup = begin_unswept, .timeout = 120);

// A collection that the host asks for leaves nothing unswept.
TEST(rt_gc_returns_when_all_is_swept)
{
	must(rt_gc());
	ck_assert(swept_over());
	fill(32);
	drop(1);
	must(rt_gc());
	ck_assert(swept_over());
	heap_healthy();
}

// A program that no longer allocates sweeps in rt_safepoint, chunk by chunk.
TEST(safepoints_sweep_where_the_library_has_no_thread)
{
	unsigned n = 0;

	while (!swept_over()) {
		uint64_t freed = heap_metric("/gc/heap/frees:objects");

		rt_safepoint();
		ck_assert_uint_le(heap_metric("/gc/heap/frees:objects") - freed,
				  PER_CHUNK);
		ck_assert_uint_le(++n, arena_used() >> RT_CHUNK_SHIFT);
	}
	ck_assert_uint_ge(n, (32 - 2) / 4 - 1);
	heap_healthy();
}

// Elsewhere it only polls.
TEST(safepoints_do_not_sweep_elsewhere)
{
	must(rt_nogc_enter());
	rt_safepoint();
	must(rt_nogc_leave());
	must(rt_blocking_enter());
	rt_safepoint();
	must(rt_blocking_leave());
	ck_assert(sweep_left());
	atomic_u32_store_relaxed(&scavenger.runs, 1);
	for (unsigned i = 0; i < 100; i++)
		rt_safepoint();
	atomic_u32_store_relaxed(&scavenger.runs, 0);
	ck_assert(sweep_left());
}

// ---- the phase ----

static uint64_t phase(void)
{
	return heap_metric("/gc/phase:state");
}

static uint64_t phase_marking;

static void note_phase(rt_tracer *t, void *arg)
{
	(void)t, (void)arg;
	phase_marking = phase();
}

static void *note_phase_unattached(void *arg)
{
	*(uint64_t *)arg = phase();
	return NULL;
}

// A live read tells where the collection is, on any thread.
TEST(a_live_read_tells_the_phase)
{
	uint64_t elsewhere = 9;

	ck_assert_uint_eq(phase(), 2);
	join_thread(start_thread(note_phase_unattached, &elsewhere));
	ck_assert_uint_eq(elsewhere, 2);
	while (swept_slice(proc_self()))
		;
	ck_assert(swept_over());
	ck_assert_uint_eq(phase(), 0);
	must(rt_roots_add_fn(note_phase, NULL, NULL));
	must(rt_gc());
	ck_assert_uint_eq(phase_marking, 1);
	ck_assert_uint_eq(phase(), 0);
}

// ---- its processor time ----

// As in Go, sweeping beside the threads is the host's time: it is neither that
// of collections nor that of scavenging.
TEST(sweeping_beside_the_threads_is_user_time)
{
	struct cpustats before, after;

	gcstats_read_cpu(&before);
	while (swept_slice(proc_self()))
		;
	ck_assert(swept_over());
	gcstats_read_cpu(&after);
	ck_assert_uint_ne(before.gc_total, 0);
	ck_assert_uint_eq(after.gc_total, before.gc_total);
	ck_assert_uint_eq(after.scavenge_total, 0);
	ck_assert_uint_gt(after.user, before.user);
}

// ---- those that look at the whole heap ----

static void read_stats(void)
{
	rt_memstats m = heap_stats();

	ck_assert_uint_eq(m.heap_objects, 2 * PER_MIB);
	ck_assert_uint_eq(m.heap_alloc, 2 * MIB);
}

static void verify(void)
{
	ck_assert_uint_eq(heap_live(), 2 * PER_MIB);
}

static int count_one(void *obj, size_t size, int kind, void *arg)
{
	(void)obj, (void)kind;
	ck_assert_uint_eq(size, OBJECT);
	++*(uint64_t *)arg;
	return 0;
}

static void walk(void)
{
	uint64_t n = 0;

	must(rt_heap_walk(count_one, &n));
	ck_assert_uint_eq(n, 2 * PER_MIB);
}

static void stop_and_read(void)
{
	must(rt_stop_the_world(RT_STOP_HOST));
	read_stats();
	must(rt_start_the_world(NULL));
}

static void read_in_region(void)
{
	must(rt_blocking_enter());
	read_stats();
	must(rt_blocking_leave());
}

static void list(void)
{
	size_t n;

	ck_assert_ptr_nonnull(rt_heap_list(RT_NOSCAN, NULL, NULL, &n));
	ck_assert_uint_eq(n, 2 * PER_MIB);
}

static void (*const looks[])(void) = {
    read_stats, verify, walk, stop_and_read, read_in_region, list,
};

TEST(a_look_at_the_whole_heap_finds_no_dead_object,
     .n = RT_ARRAY_LEN(looks))
{
	looks[_i]();
	ck_assert(swept_over());
	heap_healthy();
}

// A kind whose objects have all died ends, though they are not swept yet.
TEST(a_kind_without_live_objects_ends)
{
	int kind = kind_make(.name = "ended", .layout = RT_LAYOUT_WORDS);

	for (size_t i = 0; i < PER_MIB; i++)
		ck_assert_ptr_nonnull(rt_alloc_kind(kind, OBJECT));
	collect_only();
	ck_assert(sweep_left());
	must(rt_kind_unregister(kind));
	ck_assert(swept_over());
	heap_healthy();
}

// ---- memory ----

// Memory of the dead is found before the heap grows.
TEST(the_heap_does_not_grow_while_something_is_unswept, .n = 2)
{
	uint64_t before = arena_used();

	if (_i == 0) {
		fill(32);
	} else {
		for (int i = 0; i < 7; i++)
			table[i] = (uintptr_t)rt_alloc_noscan(4 * MIB);
	}
	ck_assert_uint_eq(arena_used(), before);
	heap_healthy();
}

// A large object is earned even if the heap has room for it.
TEST(a_large_object_sweeps_though_pages_are_free)
{
	uint64_t left;

	must(rt_gc());
	fill(10);
	drop(2);
	collect_only();
	left = atomic_u64_load_relaxed(&sweep.left);
	ck_assert(sweep_left());
	ck_assert_ptr_nonnull(rt_alloc_noscan(MIB));
	ck_assert_uint_ne(atomic_u64_load_relaxed(&sweep.left), left);
	heap_healthy();
}

// A large object that grows where it is has to be earned as a new one.
TEST(growth_in_place_sweeps)
{
	char *obj = rt_alloc_noscan(MIB);
	uint64_t left;

	ck_assert_ptr_nonnull(obj);
	table[0] = (uintptr_t)obj;
	while (sweep_left() && swept_pay(1))
		; // nothing is paid for
	left = atomic_u64_load_relaxed(&sweep.left);
	ck_assert(sweep_left());
	table[0] = (uintptr_t)rt_realloc(RT_NOSCAN, obj, MIB + OBJECT);
	ck_assert_uint_ne(atomic_u64_load_relaxed(&sweep.left), left);
	heap_healthy();
}

static bool is_swept(const void *obj)
{
	uint64_t page = arena_offset((uintptr_t)obj) >> RT_PAGE_SHIFT;

	return atomic_u32_load_relaxed(&arena_span(page)->sweepgen) ==
	       epoch_sweepgen();
}

// An object that changes its size where it is is swept first.
TEST(a_large_object_is_swept_before_it_is_resized)
{
	must(rt_gc());
	table[0] = (uintptr_t)rt_alloc_noscan(20 * MIB);
	collect_only();
	ck_assert(!is_swept((void *)table[0]));
	ck_assert_ptr_eq(rt_realloc(RT_NOSCAN, (void *)table[0], 10 * MIB),
			 (void *)table[0]);
	ck_assert(is_swept((void *)table[0]));
	heap_healthy();
}

// What large objects took of the last sweep does not count for this one.
TEST(each_sweep_has_an_account)
{
	unsigned n;

	for (int i = 0; i < 5; i++)
		ck_assert_ptr_nonnull(rt_alloc_noscan(4 * MIB));
	must(rt_gc());
	fill(32);
	drop(2);
	collect_only();
	for (n = 0; !swept_pay(1); n++)
		ck_assert(swept_slice(proc_self()));
	ck_assert_uint_le(n, 2); // the first chunk may have no dead
	heap_healthy();
}

// Before pages are released for the memory limit, those of the dead are freed.
TEST(the_memory_limit_is_kept_by_sweeping)
{
	must(rt_set_memory_limit(20 * MIB, NULL));
	ck_assert_ptr_nonnull(rt_alloc_noscan(MIB));
	ck_assert_uint_le(gauge_load(&gauges.mapped_ready), 21 * MIB);
	heap_healthy();
}

// The end of a sweep tells the scavenger how much is free.
TEST(the_scavenger_learns_what_a_sweep_has_freed)
{
	uint64_t before = swept.retained.free;

	slices_rest(rt_thread_tls);
	ck_assert_uint_ge(atomic_u64_load_relaxed(&scavgoal.free),
			  before + 29 * MIB);
	ck_assert_uint_eq(atomic_u64_load_relaxed(&scavgoal.free),
			  pacer.found.memory.free);
}

// A stack that the heap has already needs no sweeping.
TEST(a_stack_that_is_free_is_taken_without_sweeping)
{
	void *first = rt_stack_alloc(2048), *second;
	uint64_t left = atomic_u64_load_relaxed(&sweep.left);

	ck_assert_ptr_nonnull(first);
	ck_assert(sweep_left());
	rt_nogc_enter(); // in which pages are taken before anything is swept
	while (mheap_fits(NULL, 1))
		ck_assert_ptr_nonnull(rt_alloc_noscan(OBJECT));
	rt_nogc_leave();
	second = rt_stack_alloc(2048);
	ck_assert_ptr_nonnull(second);
	ck_assert_uint_eq(atomic_u64_load_relaxed(&sweep.left), left);
	must(rt_stack_free(first, 2048));
	must(rt_stack_free(second, 2048));
	heap_healthy();
}

static uint32_t chunks_left(void)
{
	uint64_t left = atomic_u64_load_relaxed(&sweep.left);

	return sweep_highest(left) - sweep_lowest(left);
}

// Threads of the host take the lowest chunk, also for a refill.  The background
// thread takes some of the highest.
TEST(chunks_are_taken_from_both_ends)
{
	uint64_t left = atomic_u64_load_relaxed(&sweep.left), now;

	ck_assert(swept_slice(proc_self()));
	now = atomic_u64_load_relaxed(&sweep.left);
	ck_assert_uint_eq(sweep_lowest(now), sweep_lowest(left) + 1);
	ck_assert_uint_eq(sweep_highest(now), sweep_highest(left));
	ck_assert_ptr_nonnull(rt_alloc_noscan(OBJECT));
	now = atomic_u64_load_relaxed(&sweep.left);
	ck_assert_uint_eq(sweep_lowest(now), sweep_lowest(left) + 2);
	ck_assert_uint_eq(sweep_highest(now), sweep_highest(left));
	ck_assert(swept_slice_down(proc_self()));
	now = atomic_u64_load_relaxed(&sweep.left);
	ck_assert_uint_eq(sweep_lowest(now), sweep_lowest(left) + 2);
	ck_assert_uint_lt(sweep_highest(now), sweep_highest(left));
	must(rt_gc());
	heap_healthy();
}

// Between two chunks a thread polls, also within rt_alloc_many.
TEST(rt_alloc_many_sweeps_a_chunk_at_most)
{
	static void *out[40 * PER_MIB];
	uint32_t left;

	fill(MOST_MIB - 1); // some pages are free
	collect_only();	    // nothing has died: a sweep finds no slot
	left = chunks_left();
	ck_assert_uint_gt(left, 4);
	ck_assert_uint_ge(
	    rt_alloc_many(RT_NOSCAN, OBJECT, RT_ARRAY_LEN(out), out), 1);
	ck_assert_uint_ge(chunks_left() + 2, left);
	heap_healthy();
}

// In a no-GC stretch, too: without slots and pages it sweeps a chunk, and then
// the heap grows.
TEST(a_stretch_sweeps_a_chunk_before_the_heap_grows)
{
	uint64_t used;
	uint32_t left;

	must(rt_gc());
	fill(MOST_MIB);
	collect_only(); // nothing has died
	used = arena_used();
	left = chunks_left();
	ck_assert_uint_gt(left, 4);
	rt_nogc_enter();
	while (arena_used() == used)
		ck_assert_ptr_nonnull(rt_alloc_noscan(OBJECT));
	rt_nogc_leave();
	ck_assert_uint_ge(chunks_left() + 2, left);
	heap_healthy();
}

// In a no-GC stretch stops wait for the thread, so it does not sweep as long as
// the heap has pages, or can grow for a large object.
TEST(in_a_stretch_the_heap_grows, .n = 2)
{
	uint32_t left = chunks_left();

	rt_nogc_enter();
	if (_i == 0) {
		ck_assert_ptr_nonnull(rt_alloc_noscan(64 * MIB));
	} else {
		for (size_t i = 0; i < PER_MIB; i++)
			ck_assert_ptr_nonnull(rt_alloc_noscan(OBJECT));
		ck_assert_uint_ge(chunks_left() + 1, left);
	}
	rt_nogc_leave();
	ck_assert(sweep_left());
	must(rt_gc());
	heap_healthy();
}

// ---- destructors ----

static uint64_t dropped;

static void count_drop(void *obj, size_t size, void *arg)
{
	(void)obj, (void)size, (void)arg;
	dropped++;
}

// The dead of a kind with destructors are found by a sweep beside the threads,
// and rt_drop_now finds all of the kind, swept or not.
TEST(destructors_run_once_for_each_object, .n = 2)
{
	int kind = kind_make(.name = "counted", .layout = RT_LAYOUT_WORDS,
			     .flags = RT_KIND_DROP, .drop = count_drop);

	dropped = 0;
	must(rt_gc());
	for (size_t i = 0; i < 4 * PER_MIB; i++)
		table[i] = (uintptr_t)rt_alloc_kind(kind, OBJECT);
	drop(1);
	collect_only();
	ck_assert(sweep_left());
	if (_i == 0)
		must(rt_drop_now(kind, NULL, NULL));
	drop(0);
	must(rt_gc());
	rt_run_finalizers(0);
	ck_assert_uint_eq(dropped, 4 * PER_MIB);
	must(rt_gc());
	must(rt_kind_unregister(kind));
	heap_healthy();
}

static bool unswept_in_drop;

static void collect_in_drop(void *obj, size_t size, void *arg)
{
	(void)obj, (void)size, (void)arg;
	if (dropped++ != 0)
		return;
	collect_only();
	unswept_in_drop = sweep_left();
}

// rt_drop_now works on spans that are swept, so a collection that one of its
// destructors makes sweeps in its stop.
TEST(a_collection_during_rt_drop_now_sweeps_in_its_stop)
{
	int kind = kind_make(.name = "collecting", .layout = RT_LAYOUT_WORDS,
			     .flags = RT_KIND_DROP, .drop = collect_in_drop);

	dropped = 0;
	unswept_in_drop = true;
	must(rt_gc());
	for (size_t i = 0; i < PER_MIB; i++)
		ck_assert_ptr_nonnull(rt_alloc_kind(kind, OBJECT));
	must(rt_drop_now(kind, NULL, NULL));
	ck_assert_uint_eq(dropped, PER_MIB);
	ck_assert(!unswept_in_drop);
	must(rt_gc());
	must(rt_kind_unregister(kind));
	heap_healthy();
}

// ---- destructors beside sweepers ----

enum { DYING = 8000 / HEAP_CUT };

static uint8_t drops_of[DYING];
static size_t ndropped;

// drop_collecting begins a sweep in the middle of a batch now and then.
static void drop_collecting(void *obj, size_t size, void *arg)
{
	(void)size, (void)arg;
	drops_of[*(const uint64_t *)obj]++;
	if (++ndropped % (DYING / 20) == 0)
		collect_only();
}

GROUP(drops_beside, .timeout = 120);

// Destructors run beside the sweep of a collection that one of them has made.
// Objects beside them die in it, or stay.
TEST(destructors_run_beside_a_sweep, .n = 2)
{
	rt_config c = config(2, _i);
	int kind;

	c.max_procs = 2;
	begin(&c);
	kind = kind_make(.name = "collecting", .layout = RT_LAYOUT_NONE,
			 .flags = RT_KIND_DROP, .drop = drop_collecting);
	for (size_t i = 0; i < DYING; i++) {
		uint64_t *obj = rt_alloc_kind(kind, 32);

		*obj = i;
		table[i] = (uintptr_t)obj;
	}
	for (size_t part = 0; part < 4; part++) {
		for (size_t i = part; i < DYING; i += 4)
			table[i] = 0;
		collect_only();
		rt_run_finalizers(DYING / 8);
	}
	must(rt_gc());
	rt_run_finalizers(0);
	for (size_t i = 0; i < DYING; i++)
		ck_assert_uint_eq(drops_of[i], 1);
	must(rt_gc());
	ck_assert_uint_eq(heap_live(), 0);
	heap_healthy();
	must(rt_fini());
}

// ---- the same collections ----

GROUP(alike, .timeout = 120);

static uint64_t goal(void)
{
	return heap_metric("/gc/heap/goal:bytes");
}

static const struct rule {
	int percent;
	int64_t limit;
	size_t max; // hard limit
} rules[] = {
    {100, INT64_MAX, 0},       {100, 80 << 20, 0},	   {100, 50 << 20, 0},
    {1000, 80 << 20, 0},       {-1, 80 << 20, 0},	   {-1, 50 << 20, 0},
    {-1, INT64_MAX, 40 << 20}, {1000, 80 << 20, 40 << 20},
};

struct finding {
	uint64_t goal, held;
};

// find returns what is known of a heap that dropped 30 of 32 MiB.
static struct finding find(int mode, const struct rule *r)
{
	rt_config c = config(mode, 0);
	struct finding found;
	uint64_t at_first;

	c.gc_percent = 100;
	c.heap_min = 1 << 20;
	c.memory_limit = r->limit;
	begin(&c);
	must(rt_set_gc_percent(HEAP_QUIET, NULL));
	fill(32);
	drop(2);
	must(rt_set_gc_percent(r->percent, NULL));
	must(rt_set_heap_max(r->max, NULL));
	collect_only();
	ck_assert(sweep_left() == (mode != 0));
	at_first = goal();
	ck_assert_uint_gt(at_first, 2 * MIB);
	slices_rest(rt_thread_tls);
	found = (struct finding){goal(), pacer.found.held};
	ck_assert_uint_le(at_first, found.goal);
	heap_healthy();
	must(rt_fini());
	free(table);
	return found;
}

// Once all is swept, the goal is what a sweep in the stop would have made it.
// Until then it is at most that.
TEST(the_goal_is_that_of_a_sweep_in_the_stop, .n = RT_ARRAY_LEN(rules))
{
	struct finding beside = find(2, &rules[_i]);
	struct finding in_stop = find(0, &rules[_i]);

	ck_assert_uint_eq(beside.goal, in_stop.goal);
	ck_assert_uint_eq(beside.held, in_stop.held);
}

static uint64_t cycles(void)
{
	return heap_metric("/gc/cycles/total:gc-cycles");
}

// A goal that is lower because the dead are not swept collects nothing: the
// rest is swept, and then the goal is tested again.
TEST(a_goal_that_is_not_final_collects_nothing)
{
	rt_config c = config(2, 0);
	uint64_t at_first, before;

	c.memory_limit = 50 * MIB;
	begin(&c);
	fill(32);
	drop(2);
	collect_only();
	at_first = goal();
	before = cycles();
	ck_assert_uint_gt(at_first, 8 * MIB);
	while (gauge_load(&gauges.heap_live) <= at_first)
		ck_assert_ptr_nonnull(rt_alloc_noscan(2 * MIB));
	ck_assert_ptr_nonnull(rt_alloc_noscan(2 * MIB));
	ck_assert(swept_over());
	ck_assert_uint_gt(goal(), at_first);
	ck_assert_uint_eq(cycles(), before);
	heap_healthy();
	must(rt_fini());
}

// ---- huge pages ----

static uint32_t stretches(void)
{
	return hugepages.range[0].nstretches;
}

// begin_huge leaves 32 MiB unswept, of which 16 are alive.
static void begin_huge(rt_config c)
{
	c.huge_pages = 1;
	begin(&c);
	fill(32);
	drop(16);
	collect_only();
}

// Huge pages are chosen when all is swept, and not where most was dead.  They
// are advised soon after, even if a refill has swept the last chunk.
TEST(huge_pages_follow_the_sweep, .n = 2)
{
	begin_huge(config(2, 0));
	ck_assert(sweep_left());
	ck_assert_uint_eq(stretches(), 0);
	ck_assert_uint_eq(hugepages.range[0].nwanted, 0);
	if (_i == 0) {
		slices_rest(rt_thread_tls);
	} else {
		while (swept_slice(proc_self()))
			;
		ck_assert_uint_eq(stretches(), 0);
		ck_assert_ptr_nonnull(rt_alloc_noscan(4000));
	}
	ck_assert_uint_eq(stretches(), 1);
	ck_assert_uint_eq(hugepages.range[0].nwanted, 0);
	heap_healthy();
	must(rt_fini());
}

// A thread of the host leaves that to the background thread, once.
TEST(the_librarys_thread_is_told_of_huge_pages)
{
	begin_huge(config(2, 0));
	atomic_u32_store_relaxed(&scavenger.runs, 1);
	slices_rest(rt_thread_tls);
	ck_assert(!swept_unfinished());
	ck_assert_ptr_nonnull(rt_alloc_noscan(4000));
	ck_assert_uint_eq(stretches(), 0);
	atomic_u32_store_relaxed(&scavenger.runs, 0);
	ck_assert(!swept_pass_advice());
	ck_assert(swept_take_advice());
	ck_assert(!swept_take_advice());
	heap_healthy();
	must(rt_fini());
}

static bool has_stretch(void)
{
	bool has;

	mutex_lock(&hugepages.lock);
	has = stretches() != 0;
	mutex_unlock(&hugepages.lock);
	return has;
}

static void await_stretch(void)
{
	uint64_t end = nanotime() + AWAIT_SECONDS * UINT64_C(1000000000);

	must(rt_blocking_enter());
	while (!has_stretch()) {
		ck_assert_msg(nanotime() < end, "no huge page is advised");
		oscall_yield();
	}
	must(rt_blocking_leave());
}

// The background thread advises if it has swept and there is no helper.
TEST(the_librarys_thread_advises)
{
	rt_config c = config(2, 1);

	c.max_procs = 1;
	begin_huge(c);
	await_stretch();
	heap_healthy();
	must(rt_fini());
}

// It is woken for that, even if there was nothing to sweep beside the threads.
TEST(the_librarys_thread_is_woken_to_advise)
{
	rt_config c = config(0, 1);

	c.max_procs = 1;
	c.populate = 2;
	c.huge_pages = 1;
	begin(&c);
	fill(64);
	ck_assert_uint_eq(atomic_u32_load_relaxed(&scavenger.runs), 1);
	drop(32);
	collect_only();
	await_stretch();
	heap_healthy();
	must(rt_fini());
}

// ---- the same courses ----

struct course {
	uint64_t cycles, sys;
};

// run allocates and drops in the same way each time.
static struct course run(rt_config c)
{
	struct course course;
	uint32_t seed = 1;

	c.gc_percent = 100;
	c.heap_min = 1 << 20;
	c.heap_headroom = 1 << 20;
	begin(&c);
	for (int i = 0; i < 200000; i++) {
		size_t slot = (seed = seed * 1103515245 + 12345) >> 8;
		size_t size = 16u << (seed >> 8) % 10;

		if (i % 1000 == 0)
			size = 200000;
		table[slot % 3000] = (uintptr_t)rt_alloc_noscan(size);
	}
	course.cycles = cycles();
	course.sys = heap_stats().heap_sys;
	heap_healthy();
	must(rt_fini());
	free(table);
	return course;
}

// Wherever a program sweeps, it collects as often and uses as much memory.
// Which slots are free when it allocates is not the same.
TEST(a_program_collects_as_often, .n = 2)
{
	struct course in_stop = run(config(0, 0));
	struct course beside = run(config(2, _i));
	uint64_t some = in_stop.cycles / 10; // of about 70

	ck_assert_uint_gt(in_stop.cycles, 20);
	ck_assert_uint_ge(beside.cycles + some, in_stop.cycles);
	ck_assert_uint_le(beside.cycles, in_stop.cycles + some);
	ck_assert_uint_le(beside.sys, in_stop.sys + 4 * MIB);
}

// ---- the end of memory ----

// none_for_memory tells whether no collection ran because memory was short.
static bool none_for_memory(void)
{
	uint64_t last = heap_metric("/gc/cycles/total:gc-cycles"), n = 0;
	rt_cycle c;

	for (uint64_t i = 1; i <= last; i++)
		n +=
		    rt_read_cycle(i, &c) == RT_OK && c.cause == RT_CAUSE_MEMORY;
	return n == 0;
}

// An allocation sweeps before it is refused, and before it collects.
TEST(no_allocation_is_refused_while_garbage_is_left)
{
	rt_config c = config(2, 0);

	c.max_heap = MOST_MIB * MIB;
	begin(&c);
	for (int round = 0; round < 40; round++) {
		size_t mib = 4 + 4 * (round % 12);

		collect_only();
		ck_assert(round == 0 || sweep_left());
		ck_assert_ptr_nonnull(rt_alloc_noscan(mib * MIB));
		for (size_t i = 0; i < 8 * PER_MIB; i++)
			ck_assert_ptr_nonnull(rt_alloc_noscan(OBJECT - i % 4));
	}
	ck_assert(none_for_memory());
	heap_healthy();
	must(rt_fini());
}

// begin_full leaves a heap that cannot grow, almost full of what is unswept.
static void begin_full(void)
{
	rt_config c = config(2, 0);

	c.max_heap = MOST_MIB * MIB;
	begin(&c);
	fill(56);
	drop(0);
	collect_only();
	ck_assert(sweep_left());
}

// An object gets its guard if sweeping finds room for both.
TEST(a_guarded_object_sweeps)
{
	rt_config c = config(2, 0);
	void *obj;

	c.max_heap = MOST_MIB * MIB;
	c.guard_large = 1;
	begin(&c);
	ck_assert_ptr_nonnull(rt_alloc_noscan(40 * MIB));
	collect_only();
	ck_assert(sweep_left());
	obj = rt_alloc_noscan(30 * MIB + 1);
	ck_assert_ptr_nonnull(obj);
	ck_assert_uint_eq(rt_size(obj), 30 * MIB + 1); // as guarded ones have
	ck_assert(none_for_memory());
	heap_healthy();
	must(rt_fini());
}

// A stretch in which nothing may collect gets the memory of the dead as well,
// if the heap cannot grow.
TEST(a_stretch_sweeps_if_the_heap_cannot_grow, .n = 3)
{
	void *stack = NULL;

	begin_full();
	rt_nogc_enter();
	if (_i == 0)
		ck_assert_ptr_nonnull(rt_alloc_noscan(40 * MIB));
	else if (_i == 1)
		for (size_t i = 0; i < 40 * PER_MIB; i++)
			ck_assert_ptr_nonnull(rt_alloc_noscan(OBJECT));
	else
		ck_assert_ptr_nonnull(stack = rt_stack_alloc(32 * MIB));
	ck_assert_ptr_null(rt_alloc_noscan(40 * MIB));
	if (stack)
		must(rt_stack_free(stack, 32 * MIB));
	must(rt_nogc_leave());
	heap_healthy();
	must(rt_fini());
}

static void *take_turns(void *arg)
{
	uintptr_t refused = 0;

	(void)arg;
	must(rt_thread_attach(RT_THREAD_EXACT));
	for (size_t i = 0; i < 300 / HEAP_CUT; i++) {
		collect_only();
		refused += rt_alloc_noscan((1 + i % 3) * 4 * MIB) == NULL;
	}
	must(rt_thread_detach());
	return (void *)refused;
}

// Nor is it if another thread takes what this one has swept.
TEST(no_thread_of_two_is_refused_while_garbage_is_left, .n = 2)
{
	rt_config c = config(2, _i);
	pthread_t other;

	c.max_heap = MOST_MIB * MIB;
	c.max_procs = 2;
	begin(&c);
	must(rt_blocking_enter());
	other = start_thread(take_turns, NULL);
	ck_assert_ptr_null(run_thread(take_turns, NULL));
	ck_assert_ptr_null(join_thread(other));
	must(rt_blocking_leave());
	ck_assert(none_for_memory());
	heap_healthy();
	must(rt_fini());
}

// ---- the background thread ----

static void await_swept(void)
{
	uint64_t end = nanotime() + AWAIT_SECONDS * UINT64_C(1000000000);

	must(rt_blocking_enter());
	while (!swept_over()) {
		ck_assert_msg(nanotime() < end, "nothing sweeps");
		oscall_yield();
	}
	must(rt_blocking_leave());
}

GROUP(thread, .timeout = 120);

TEST(the_librarys_thread_sweeps_for_a_host_that_waits)
{
	rt_config c = config(2, 1);

	c.max_procs = 2;
	begin(&c);
	fill(32);
	drop(1);
	collect_only();
	await_swept();
	heap_healthy();
	must(rt_fini());
}

// What a sweep beside the threads frees goes back to the system after it,
// without another collection.  No idle pass helps, which releases pages of
// every generation.
TEST(what_was_dropped_is_released_without_a_second_collection)
{
	uint64_t end = nanotime() + AWAIT_SECONDS * UINT64_C(1000000000);
	rt_config c = config(2, 1);

	c.max_procs = 2;
	c.scavenge = 1;
	c.idle_s = 0;
	c.gc_percent = 100;
	c.heap_min = c.heap_headroom = 1 << 20;
	begin(&c);
	fill(64);
	drop(6);
	collect_only();
	must(rt_blocking_enter());
	while (gauge_load(&gauges.mapped_ready) > 40 * MIB) {
		ck_assert_msg(nanotime() < end, "nothing is released");
		oscall_yield();
	}
	must(rt_blocking_leave());
	heap_healthy();
	ck_assert_uint_eq(pacer.found.unswept, 0);
	must(rt_fini());
}

// The heap may end, and a thread may leave, with chunks unswept.
TEST(a_heap_may_end_unswept, .n = 2)
{
	begin_unswept();
	if (_i == 1) {
		must(rt_thread_detach());
		must(rt_thread_attach(RT_THREAD_EXACT));
	}
	must(rt_fini());
	begin_unswept();
	must(rt_gc());
	heap_healthy();
	must(rt_fini());
}

// ---- where it is decided ----

// collect_with makes a collection that expects to sweep n chunks, each in ns.
static void collect_with(uint64_t ns, uint64_t n)
{
	fill(8);
	drop(1);
	ck_assert_uint_eq(arena_used() >> RT_CHUNK_SHIFT, n);
	atomic_u64_store_relaxed(&swept.chunk_ns, ns);
	collect_only();
}

// Unless one thread would take more than 250 us for the sweep, it is in the
// stop.
TEST(a_short_sweep_is_in_the_stop)
{
	rt_config c = config(1, 0);
	uint64_t n;

	begin(&c);
	fill(32);
	drop(1);
	must(rt_gc());
	n = arena_used() >> RT_CHUNK_SHIFT;
	ck_assert_uint_eq(250000 % n, 0);
	collect_with(1, n);
	ck_assert(!sweep_left());
	collect_with(250000 / n, n);
	ck_assert(!sweep_left());
	collect_with(250000 / n + 1, n);
	ck_assert(sweep_left());
	must(rt_gc());
	heap_healthy();
	must(rt_fini());
}
