// Sweeping beside the threads: a host sees the heap as if all were swept.
#include "test/whole/swept.h"

#include "gc/cycle/pacer.h"
#include "gc/cycle/scavenger.h"
#include "gc/host/slices.h"
#include "runtime/pages/arena.h"
#include "runtime/spans/mheap.h"
#include "runtime/world/gcstats.h"
#include "test/harness/kind.h"

enum { PER_CHUNK = RT_CHUNK_SIZE / OBJECT };

// begin_unswept makes an unswept heap, which only the calling thread sweeps.
static void begin_unswept(void)
{
	rt_config c = config(2, 0);

	begin_as(c);
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

// In a no-GC stretch, in a blocking region, and while the library has a
// background thread, rt_safepoint only polls.
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

// As in Go, sweeping beside the threads is the host's time: it is time of
// neither collections nor scavenging.
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

// ---- functions that look at the whole heap ----

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

// A kind whose objects have all died can be unregistered, even if they are not
// swept yet.
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

// The memory of dead objects is used before the heap grows.
TEST(the_heap_does_not_grow_while_something_is_unswept, .n = 2)
{
	uint64_t before = arena_used();

	if (_i == 0) {
		fill(32);
	} else {
		for (int i = 0; i < 7; i++)
			objects[i] = rt_alloc_noscan(4 * MIB);
	}
	ck_assert_uint_eq(arena_used(), before);
	heap_healthy();
}

// A thread sweeps before it takes a large object, even if the heap has room for
// the object.
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

// A thread sweeps before a large object grows in place, as it does for a new
// one.
TEST(growth_in_place_sweeps)
{
	char *obj = rt_alloc_noscan(MIB);
	uint64_t left;

	ck_assert_ptr_nonnull(obj);
	objects[0] = obj;
	while (sweep_left() && swept_pay(1))
		; // nothing is paid for
	left = atomic_u64_load_relaxed(&sweep.left);
	ck_assert(sweep_left());
	objects[0] = rt_realloc(RT_NOSCAN, obj, MIB + OBJECT);
	ck_assert_uint_ne(atomic_u64_load_relaxed(&sweep.left), left);
	heap_healthy();
}

static bool is_swept(const void *obj)
{
	uint64_t page = arena_offset((uintptr_t)obj) >> RT_PAGE_SHIFT;

	return atomic_u32_load_relaxed(&arena_span(page)->sweepgen) ==
	       epoch_sweepgen();
}

// A large object is swept before its size changes in place.
TEST(a_large_object_is_swept_before_it_is_resized)
{
	must(rt_gc());
	objects[0] = rt_alloc_noscan(20 * MIB);
	collect_only();
	ck_assert(!is_swept(objects[0]));
	ck_assert_ptr_eq(rt_realloc(RT_NOSCAN, objects[0], 10 * MIB),
			 objects[0]);
	ck_assert(is_swept(objects[0]));
	heap_healthy();
}

// Pages that were swept for large objects in the last sweep do not count in
// this one.
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
	ck_assert_uint_le(n, 2); // the first chunk may have no dead objects
	heap_healthy();
}

// Before pages are released for the memory limit, the pages of dead objects are
// freed.
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

// A thread does not sweep for a stack if the heap has a free one.
TEST(a_stack_that_is_free_is_taken_without_sweeping)
{
	void *first = rt_stack_alloc(2048), *second;
	uint64_t left = atomic_u64_load_relaxed(&sweep.left);

	ck_assert_ptr_nonnull(first);
	ck_assert(sweep_left());
	rt_nogc_enter(); // there a thread takes pages before it sweeps
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

// Before the heap grows for a stack, the thread sweeps, because dead objects
// may have the pages.
TEST(a_stack_is_swept_for_before_the_heap_grows)
{
	uint64_t left = atomic_u64_load_relaxed(&sweep.left);
	void *stack;

	ck_assert(sweep_left());
	rt_nogc_enter(); // there a thread takes pages before it sweeps
	while (mheap_fits(NULL, MIB >> RT_PAGE_SHIFT))
		ck_assert_ptr_nonnull(rt_alloc_noscan(OBJECT));
	rt_nogc_leave();
	ck_assert_uint_eq(atomic_u64_load_relaxed(&sweep.left), left);
	stack = rt_stack_alloc(MIB);
	ck_assert_ptr_nonnull(stack);
	ck_assert_uint_ne(atomic_u64_load_relaxed(&sweep.left), left);
	must(rt_stack_free(stack, MIB));
	heap_healthy();
}

static uint32_t chunks_left(void)
{
	uint64_t left = atomic_u64_load_relaxed(&sweep.left);

	return sweep_highest(left) - sweep_lowest(left);
}

// Threads of the host sweep the lowest chunk first, even for a refill.  The
// background thread sweeps some of the highest chunks.
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

// A thread polls between two chunks.  So a call of rt_alloc_many sweeps a chunk
// at most.
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

// In a no-GC stretch too, a thread that finds neither slots nor pages sweeps a
// chunk.  Then the heap grows.
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

// A sweep beside the threads finds the dead objects of a kind with destructors.
// rt_drop_now finds all objects of the kind, swept or not.
TEST(destructors_run_once_for_each_object, .n = 2)
{
	int kind = kind_make(.name = "counted", .layout = RT_LAYOUT_WORDS,
			     .flags = RT_KIND_DROP, .drop = count_drop);

	dropped = 0;
	must(rt_gc());
	for (size_t i = 0; i < 4 * PER_MIB; i++)
		objects[i] = rt_alloc_kind(kind, OBJECT);
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

// rt_drop_now works on swept spans.  So if a destructor that it runs makes a
// collection, that collection sweeps in its stop.
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
// Other objects die in that collection, or stay.
TEST(destructors_run_beside_a_sweep, .n = 2)
{
	rt_config c = config(2, _i);
	int kind;

	c.max_procs = 2;
	begin_as(c);
	kind = kind_make(.name = "collecting", .layout = RT_LAYOUT_NONE,
			 .flags = RT_KIND_DROP, .drop = drop_collecting);
	for (size_t i = 0; i < DYING; i++) {
		uint64_t *obj = rt_alloc_kind(kind, 32);

		*obj = i;
		objects[i] = obj;
	}
	for (size_t part = 0; part < 4; part++) {
		for (size_t i = part; i < DYING; i += 4)
			objects[i] = 0;
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

// ---- the background thread ----

static bool all_is_swept(void)
{
	return swept_over();
}

static void await_swept(void)
{
	must(rt_blocking_enter());
	await_that(all_is_swept, "nothing sweeps");
	must(rt_blocking_leave());
}

GROUP(thread, .timeout = 120);

TEST(the_background_thread_sweeps_for_a_host_that_waits)
{
	rt_config c = config(2, 1);

	c.max_procs = 2;
	begin_as(c);
	fill(32);
	drop(1);
	collect_only();
	await_swept();
	heap_healthy();
	must(rt_fini());
}

static bool is_released(void)
{
	return gauge_load(&gauges.mapped_ready) <= 40 * MIB;
}

// Memory that a sweep beside the threads frees is released after it, without
// another collection.  Idle passes are off, because they release pages of every
// generation.
TEST(what_was_dropped_is_released_without_a_second_collection)
{
	rt_config c = config(2, 1);

	c.max_procs = 2;
	c.scavenge = 1;
	c.idle_s = 0;
	c.gc_percent = 100;
	c.heap_min = c.heap_headroom = 1 << 20;
	begin_as(c);
	fill(64);
	drop(6);
	collect_only();
	must(rt_blocking_enter());
	await_that(is_released, "nothing is released");
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

// A thread that has found no memory gets some in the stop of a collection.  So
// the sweep is in that stop, whatever the setting is.
TEST(a_collection_for_lack_of_memory_sweeps_in_the_stop)
{
	rt_config c = config(2, 0);
	rt_cycle cycle;

	c.max_heap = 64 * MIB;
	begin_as(c);
	fill(32);
	drop(1);
	ck_assert_ptr_nonnull(rt_alloc_noscan(48 * MIB));
	ck_assert(swept_over()); // before an exact read, which would sweep
	must(rt_read_cycle(0, &cycle));
	ck_assert_uint_eq(cycle.cause, RT_CAUSE_MEMORY);
	ck_assert_uint_eq(cycle.number, 1);
	heap_healthy();
	must(rt_fini());
}

// If one thread needs at most 250 us for the sweep, the sweep is in the stop.
TEST(a_short_sweep_is_in_the_stop)
{
	rt_config c = config(1, 0);
	uint64_t n;

	begin_as(c);
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
