// rt_heap_live is exact when all caches were flushed, and otherwise as near as
// its header says, with several kinds and several threads.
#include "runtime/world/stw.h"
#include "test/harness/kind.h"
#include "test/harness/thread.h"

GROUP(live, .timeout = 60);

TEST(live_bytes_are_those_found_alive_and_newer)
{
	uint64_t before;
	uintptr_t *kept;

	ck_assert_uint_eq(rt_heap_live(), 0);
	heap_start_exact(heap_config(HEAP_QUIET));
	kept = heap_table(1, RT_ROOT_WORDS);
	kept[0] = (uintptr_t)rt_alloc_noscan(1 << 20);
	rt_alloc_noscan(2 << 20);
	ck_assert_uint_eq(rt_heap_live(), 3 << 20);
	ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert_uint_eq(rt_heap_live(), 1 << 20);
	before = rt_heap_live();
	for (int i = 0; i < 10000; i++)
		ck_assert_ptr_nonnull(rt_alloc(48));
	ck_assert_uint_ge(rt_heap_live(), before + 10000 * 48 - (32 << 10));
	ck_assert_uint_le(rt_heap_live(), before + 10000 * 48 + (8 << 10));
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	ck_assert_uint_ge(rt_heap_live(), before);
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	ck_assert_uint_ge(rt_heap_live(), before);
	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
	ck_assert_int_eq(rt_roots_remove(kept, kept + 1), RT_OK);
	ck_assert_int_eq(rt_fini(), RT_OK);
	ck_assert_uint_eq(rt_heap_live(), 0);
}

// ---- what a collection waits for ----

static void *read_used(void *arg)
{
	uint64_t *n = arg;

	n[0] = heap_metric("/gc/heap/used:bytes");
	n[1] = heap_metric("/gc/heap/trigger:bytes");
	n[2] = heap_metric("/gc/heap/goal:bytes");
	return NULL;
}

// A thread that is not attached sees how near the next collection is, and that
// it comes when the trigger is reached.
TEST(a_monitor_sees_the_next_collection_come)
{
	uint64_t n[3];
	rt_memstats m;

	heap_start_exact(heap_config(100));
	must(rt_gc());
	rt_alloc_noscan(1 << 20);
	must(rt_adjust_external(1234));
	ck_assert_ptr_nonnull(rt_stack_alloc(64 << 10));
	join_thread(start_thread(read_used, n));
	ck_assert_uint_eq(n[0], rt_heap_live() + 1234 + (64 << 10));
	ck_assert_uint_eq(n[1], n[2]);
	must(rt_read_memstats_live(&m));
	ck_assert_uint_eq(n[1], m.next_gc);
	ck_assert_uint_eq(m.num_gc, 1);
	must(rt_adjust_external((int64_t)(n[1] - n[0])));
	join_thread(start_thread(read_used, n));
	ck_assert_uint_ge(n[0], n[1]);
	rt_alloc_noscan(1 << 20);
	must(rt_read_memstats_live(&m));
	ck_assert_uint_eq(m.num_gc, 2);
	must(rt_set_gc_percent(-1, NULL));
	ck_assert_uint_eq(heap_metric("/gc/heap/trigger:bytes"), UINT64_MAX);
}

// ---- a thread that has detached ----

enum { DETACHED_SMALL = 1000, DETACHED_TINY = 77 };

static void *allocate_and_detach(void *arg)
{
	uint64_t *bytes = arg;

	must(rt_thread_attach(RT_THREAD_EXACT));
	for (unsigned i = 0; i < DETACHED_SMALL; i++)
		*bytes +=
		    rt_size(i % 2 ? rt_alloc(1 + i) : rt_alloc_noscan(16 + i));
	for (unsigned i = 0; i < DETACHED_TINY; i++)
		ck_assert_ptr_nonnull(rt_alloc_noscan(1));
	*bytes += rt_size(rt_alloc(100000));
	must(rt_thread_detach());
	return NULL;
}

struct seen {
	rt_memstats m;
	uint64_t live, objects, bytes, tiny;
};

static void *see(void *arg)
{
	struct seen *s = arg;

	must(rt_read_memstats_live(&s->m));
	s->live = rt_heap_live();
	s->objects = heap_metric("/gc/heap/allocs:objects");
	s->bytes = heap_metric("/gc/heap/allocs:bytes");
	s->tiny = heap_metric("/gc/heap/tiny/allocs:objects");
	return NULL;
}

// When a thread has detached, live reads of other threads count all that it has
// allocated, without a stop.  16 tiny objects share a slot, and the first of
// them counts as the slot.
TEST(live_reads_have_all_of_a_thread_that_detached)
{
	const uint64_t slots = (DETACHED_TINY + 15) / 16;
	struct seen before, after;
	uint64_t bytes = 0, objects = DETACHED_SMALL + 1 + slots;
	uint64_t stops;

	heap_start_exact(heap_config(HEAP_QUIET));
	stops = atomic_u32_load_relaxed(&world.sema.next);
	join_thread(start_thread(see, &before));
	join_thread(start_thread(allocate_and_detach, &bytes));
	join_thread(start_thread(see, &after));
	bytes += slots * 16;
	ck_assert_uint_eq(atomic_u32_load_relaxed(&world.sema.next), stops);
	ck_assert_uint_eq(after.m.num_gc, 0);
	ck_assert_uint_eq(after.objects - before.objects, objects);
	ck_assert_uint_eq(after.bytes - before.bytes, bytes);
	ck_assert_uint_eq(after.tiny - before.tiny, DETACHED_TINY - slots);
	ck_assert_uint_eq(after.m.mallocs - before.m.mallocs,
			  objects + DETACHED_TINY - slots);
	ck_assert_uint_eq(after.m.heap_alloc - before.m.heap_alloc, bytes);
	ck_assert_uint_eq(after.live - before.live, bytes);
}

// ---- several kinds and threads ----

enum {
	THREADS = 4,
	OBJECTS = 6000 / HEAP_CUT, // of a thread
	ROUNDS = 6,
	// The header allows each thread so many bytes of allocations and frees
	// that do not count yet, and of free slots of a class and kind that
	// count already.
	UNCOUNTED = 33 << 10,
	STILL_COUNTED = 64 << 10,
	AHEAD = 8 << 10,
};

static int kind;

static void *of_noscan(size_t n)
{
	return rt_alloc_noscan(n);
}

static void *of_uninit(size_t n)
{
	return rt_alloc_noscan_uninit(n);
}

static void *of_words(size_t n)
{
	return rt_alloc(n);
}

static void *of_kind(size_t n)
{
	return rt_alloc_of(kind, n);
}

static void *(*const kinds[])(size_t) = {of_noscan, of_uninit, of_words,
					 of_kind};
static const size_t sizes[] = {48, 208, 1024, 9472, 32760, 40000};

// How many of the sizes have runs of several slots.  No free slot of a larger
// size counts ahead.
enum { CLASSES = 3, ALL_AHEAD = THREADS * 4 * CLASSES * AHEAD };
static_assert(RT_ARRAY_LEN(kinds) == 4, "kinds in ALL_AHEAD");

static struct worker {
	void *root[OBJECTS];
	uint64_t bytes;	  // of objects in root
	uint64_t dropped; // of objects no longer in root, and not freed
} workers[THREADS];

static pthread_barrier_t arrived, checked;

// pause_here waits until the main thread has checked the sum.  The cache keeps
// what it has.
static void pause_here(void)
{
	must(rt_blocking_enter());
	pthread_barrier_wait(&arrived);
	pthread_barrier_wait(&checked);
	must(rt_blocking_leave());
}

static void fill(struct worker *w)
{
	for (unsigned i = 0; i < OBJECTS; i++) {
		// Most objects are small.
		unsigned size = i % 64 == 0 ? i / 64 % 6 : i % CLASSES;

		if (w->root[i])
			continue;
		w->root[i] = kinds[i / 3 % 4](sizes[size]);
		ck_assert_ptr_nonnull(w->root[i]);
		w->bytes += rt_size(w->root[i]);
	}
}

// empty frees or drops each nth object.
static void empty(struct worker *w, unsigned n, bool frees)
{
	for (unsigned i = 0; i < OBJECTS; i += n) {
		uint64_t size = rt_size(w->root[i]);

		w->bytes -= size;
		w->dropped += frees ? 0 : size;
		if (frees)
			must(rt_free(w->root[i]));
		w->root[i] = NULL;
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;

	must(rt_thread_attach(RT_THREAD_EXACT));
	for (unsigned round = 0; round < ROUNDS; round++) {
		fill(w);
		pause_here();
		empty(w, 2 + round, true);
		pause_here();
		fill(w);
		empty(w, 3 + round, false);
		pause_here();
	}
	must(rt_thread_detach());
	return NULL;
}

// expected returns the bytes of all objects that were not freed.
static uint64_t expected(void)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < THREADS; i++)
		sum += workers[i].bytes + workers[i].dropped;
	return sum;
}

// check_near checks the answer while the caches have what they have.
static void check_near(bool freed)
{
	uint64_t live = rt_heap_live(), sum = expected();

	ck_assert_uint_ge(live + THREADS * UNCOUNTED, sum);
	ck_assert_uint_le(live, sum + ALL_AHEAD +
				    (freed ? THREADS * STILL_COUNTED : 0));
}

// check_exact requires exact answers.  heap_stats flushes all caches.
static void check_exact(void)
{
	ck_assert_uint_eq(heap_stats().heap_alloc, expected());
	ck_assert_uint_eq(rt_heap_live(), expected());
}

// check_collected collects what was dropped.
static void check_collected(void)
{
	must(rt_gc());
	for (unsigned i = 0; i < THREADS; i++)
		workers[i].dropped = 0;
	ck_assert_uint_eq(rt_heap_live(), expected());
	check_exact();
}

// The phases of a round: objects were made; some were freed; all were made
// again and some dropped.  Each bound is checked with and without a flush
// before.
static void check_phase(unsigned round, unsigned phase)
{
	check_near(phase != 0);
	if ((round + phase) % 2 == 0)
		check_exact();
	if (phase == 2 && round % 3 != 0)
		check_collected();
}

static void meet(pthread_barrier_t *barrier)
{
	must(rt_blocking_enter());
	pthread_barrier_wait(barrier);
	must(rt_blocking_leave());
}

TEST(the_answer_is_near_and_after_a_flush_exact)
{
	rt_config c = heap_config(HEAP_QUIET);
	pthread_t thread[THREADS];

	c.past_end = 0;
	heap_start_exact(c);
	kind = kind_make(.layout = RT_LAYOUT_WORDS);
	pthread_barrier_init(&arrived, NULL, THREADS + 1);
	pthread_barrier_init(&checked, NULL, THREADS + 1);
	for (unsigned i = 0; i < THREADS; i++) {
		void **root = workers[i].root;

		must(rt_roots_add(root, root + OBJECTS, RT_ROOT_EXACT));
		thread[i] = start_thread(work, &workers[i]);
	}
	for (unsigned i = 0; i < 3 * ROUNDS; i++) {
		meet(&arrived);
		check_phase(i / 3, i % 3);
		meet(&checked);
	}
	for (unsigned i = 0; i < THREADS; i++)
		join_beside(thread[i]);
	check_exact();
	check_collected();
	heap_healthy();
}
