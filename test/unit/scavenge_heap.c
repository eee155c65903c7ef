// Releasing free pages to the system: beside a program, and when a program asks
// for it.
#define RT_NO_INLINE_ALLOC
#include <errno.h>
#include <rt/rt.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/os/oscall.h"
#include "test/harness/heap.h"
#include "test/harness/thread.h"
#include "test/unit/scavenge.h"

// boot makes a heap with physical pages of page_size, or of the system's size
// if page_size is 0.
static void boot(size_t page_size)
{
	rt_config c = heap_config(100);

	fault_set_page_size(page_size);
	c.max_heap = 4 * (size_t)RT_ARENA_SIZE;
	heap_start_exact(c);
}

GROUP(heap, .timeout = 120);

TEST(free_os_memory_leaves_no_idle_page, .n = RT_ARRAY_LEN(page_sizes))
{
	rt_memstats m;
	void *stack;

	boot(page_sizes[_i]);
	for (int i = 0; i < 20000; i++)
		memset(rt_alloc_noscan(1 + (size_t)i % 5000), 1,
		       1 + (size_t)i % 5000);
	stack = rt_stack_alloc(8192);
	must(rt_stack_free(stack, 8192));
	must(rt_free_os_memory());
	m = heap_stats();
	ck_assert_uint_eq(heapgauge_sum(HEAPGAUGE_FREE), 0);
	ck_assert_uint_eq(m.heap_idle, m.heap_released);
	ck_assert_uint_eq(m.heap_inuse, 0);
	ck_assert_uint_eq(m.alloc, 0);
	ck_assert_uint_eq(m.stack_inuse, 0);
}

TEST(free_os_memory_ends_when_the_system_refuses, .n = RT_ARRAY_LEN(page_sizes))
{
	rt_memstats m;

	boot(page_sizes[_i]);
	memset(rt_alloc_noscan(1 << 20), 1, 1 << 20);
	fault_fail(OSCALL_RELEASE, 1, UINT64_MAX, EINVAL);
	must(rt_free_os_memory());
	ck_assert_uint_ge(fault_failed(OSCALL_RELEASE), 1);
	m = heap_stats();
	ck_assert_uint_eq(m.heap_idle - m.heap_released, 1 << 20);
}

TEST(free_os_memory_goes_on_after_a_refusal, .n = RT_ARRAY_LEN(page_sizes))
{
	enum { BYTES = 16 << 20 };
	rt_memstats m;

	boot(page_sizes[_i]);
	memset(rt_alloc_noscan(BYTES), 1, BYTES);
	fault_fail(OSCALL_RELEASE, 1, 1, EINVAL);
	must(rt_free_os_memory());
	ck_assert_uint_eq(fault_failed(OSCALL_RELEASE), 1);
	m = heap_stats();
	ck_assert_uint_gt(m.heap_idle, m.heap_released);
	ck_assert_uint_le(m.heap_idle - m.heap_released, RT_CHUNK_SIZE);
}

// The background gives up after some refusals.  rt_free_os_memory does not.
TEST(free_os_memory_goes_on_after_many_refusals)
{
	enum { REFUSED = 2 * SCAVENGE_REFUSALS };
	uint64_t before;

	boot(0);
	memset(rt_alloc_noscan(2 * REFUSED * RT_CHUNK_SIZE), 1, 1);
	fault_fail(OSCALL_RELEASE, 1, REFUSED, EINVAL);
	must(rt_free_os_memory());
	ck_assert_uint_eq(fault_failed(OSCALL_RELEASE), REFUSED);
	before = heapgauge_sum(HEAPGAUGE_FREE);
	ck_assert_uint_gt(before, (REFUSED - 1) * RT_CHUNK_SIZE);
	ck_assert_uint_le(before, REFUSED * RT_CHUNK_SIZE);
}

TEST(a_call_ends_after_some_refusals)
{
	struct scavenge_pass pass = scavenge_begin(true);

	boot(0);
	memset(rt_alloc_noscan(2 * SCAVENGE_REFUSALS * RT_CHUNK_SIZE), 1, 1);
	must(rt_gc());
	fault_fail(OSCALL_RELEASE, 1, UINT64_MAX, EINVAL);
	ck_assert_uint_eq(scavenge_range(proc_self(), &pass, 1), 0);
	ck_assert(!pass.over);
	ck_assert_uint_eq(fault_failed(OSCALL_RELEASE), SCAVENGE_REFUSALS);
	while (!pass.over)
		ck_assert_uint_eq(scavenge_range(proc_self(), &pass, 1), 0);
	ck_assert_uint_le(fault_failed(OSCALL_RELEASE), mheap.pages.nchunks);
	ck_assert_uint_ge(fault_failed(OSCALL_RELEASE), 2 * SCAVENGE_REFUSALS);
}

// Objects of one page each; chance decides which of them live.
enum { OBJECTS = 4096 };
static unsigned char *objects[OBJECTS];
static bool dead[8 * OBJECTS]; // by page of the heap
static uint64_t phys; // pages of the heap in a physical page, at least 1

// make_objects makes the objects that are missing.
static void make_objects(void)
{
	for (unsigned i = 0; i < OBJECTS; i++) {
		if (objects[i])
			continue;
		objects[i] = rt_alloc_noscan(RT_PAGE_SIZE);
		ck_assert_ptr_nonnull(objects[i]);
		if (!heap_is_zero(objects[i], RT_PAGE_SIZE))
			ck_abort_msg("object %u is not zero", i);
		memset(objects[i], (int)(i % 251) + 1, RT_PAGE_SIZE);
	}
}

static void drop_objects(struct rng *r)
{
	for (unsigned i = 0; i < OBJECTS; i++) {
		uint64_t offset = arena_offset((uintptr_t)objects[i]);

		if (rng_below(r, 20) == 0)
			continue;
		ck_assert_uint_lt(offset >> RT_PAGE_SHIFT, RT_ARRAY_LEN(dead));
		dead[offset >> RT_PAGE_SHIFT] = true;
		objects[i] = NULL;
	}
}

// split_pages returns the number of dead pages that share a physical page with
// others.
static uint64_t split_pages(void)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < RT_ARRAY_LEN(dead); i += (unsigned)phys) {
		uint64_t k = 0;

		for (unsigned j = 0; j < phys; j++)
			k += dead[i + j];
		n += k == phys ? 0 : k;
	}
	return n;
}

static void check_objects(void)
{
	for (unsigned i = 0; i < OBJECTS; i++)
		if (objects[i] &&
		    (objects[i][0] != i % 251 + 1 ||
		     memcmp(objects[i], objects[i] + 1, RT_PAGE_SIZE - 1) != 0))
			ck_abort_msg("object %u", i);
}

TEST(free_os_memory_releases_whole_physical_pages,
     .n = RT_ARRAY_LEN(page_sizes))
{
	rt_memstats m;
	struct rng r;
	uint64_t npages;

	phys = base_max(page_sizes[_i] / RT_PAGE_SIZE, 1);
	rng_init(&r, __func__);
	boot(page_sizes[_i]);
	must(rt_roots_add(objects, objects + OBJECTS, RT_ROOT_WORDS));
	make_objects();
	drop_objects(&r);
	must(rt_free_os_memory());
	m = heap_stats();
	ck_assert_uint_gt(m.heap_released, RT_PAGE_SIZE * OBJECTS / 4);
	// At both ends, a physical page may have other pages beside dead ones.
	npages = (m.heap_idle - m.heap_released) / RT_PAGE_SIZE;
	ck_assert_uint_le(npages, split_pages() + 2 * phys);
	ck_assert_uint_ge(npages + 2 * phys, split_pages());
	check_objects();
	heap_recount();
	make_objects();
	check_objects();
	heap_recount();
	must(rt_fini());
}

enum { WORKERS = 2, STEPS = RT_TSAN ? 2000 : 20000, HELD = 64 };

static atomic_u32 working;
static char *held[WORKERS][HELD];

// worker allocates zeroed objects, writes them, and drops them.  Each worker
// has roots of its own.
static void *worker(void *arg)
{
	struct rng r = {*(uint64_t *)arg};
	char **mine = held[r.state % WORKERS];

	if (rt_thread_attach(RT_THREAD_EXACT) != RT_OK ||
	    rt_roots_add(mine, mine + HELD, RT_ROOT_WORDS) != RT_OK)
		abort();
	for (int i = 0; i < STEPS; i++) {
		size_t n = 16 + rng_below(&r, rng_below(&r, 50) ? 4000 : 60000);
		char **slot = &mine[rng_below(&r, HELD)];
		char *p = rt_alloc_noscan(n);

		if (!p || p[0] != 0 || memcmp(p, p + 1, n - 1) != 0)
			abort();
		memset(p, 0x3d, n);
		if (*slot && (*slot)[15] != 0x3d)
			abort();
		*slot = p;
	}
	rt_thread_detach();
	atomic_u32_add_seqcst(&working, (uint32_t)-1);
	return NULL;
}

TEST(pages_are_released_beside_allocation, .n = RT_ARRAY_LEN(page_sizes))
{
	uint64_t seeds[WORKERS], released = 0;
	pthread_t t[WORKERS];
	struct rng r;

	boot(page_sizes[_i]);
	rng_init(&r, __func__);
	atomic_u32_store_seqcst(&working, WORKERS);
	for (uint64_t i = 0; i < WORKERS; i++) {
		seeds[i] = rng_next(&r) * WORKERS + i;
		t[i] = start_thread(worker, &seeds[i]);
	}
	while (atomic_u32_load_seqcst(&working) != 0) {
		released += scavenge_once(proc_self(), 64 << 10, true);
		rt_safepoint();
	}
	for (int i = 0; i < WORKERS; i++)
		join_beside(t[i]);
	// Where pages are large, perhaps none was ever free as a whole.
	memset(held, 0, sizeof held);
	must(rt_gc());
	released += scavenge_once(proc_self(), 64 << 10, true);
	ck_assert_uint_gt(released, 0);
	heap_live();
	ck_assert_uint_gt(heap_stats().num_gc, 0);
}

// ---- room beside a thread that releases ----

enum {
	ROOM = 40 << 20, // an object's bytes
	ROOM_ROUNDS = RT_TSAN || RT_ASAN ? 10 : 60,
};

static char *room; // the object, a root

// releaser releases what is free until all is done.
static void *releaser(void *arg)
{
	(void)arg;
	if (rt_thread_attach(RT_THREAD_EXACT) != RT_OK)
		abort();
	while (atomic_u32_load_seqcst(&working) != 0)
		if (rt_free_os_memory() != RT_OK)
			abort();
	rt_thread_detach();
	return NULL;
}

// let_release waits for a longer or shorter time, so that the next allocation
// meets the other thread at every step.
static void let_release(int i)
{
	rt_blocking_enter();
	for (int k = i % 10; k > 0; k--)
		oscall_yield();
	rt_blocking_leave();
}

// make_rooms makes objects one after another, and drops each before the next.
// It returns how many times there was no memory.  If collect is true, it
// collects before each object, so that the previous one is certainly free.
static unsigned make_rooms(bool collect)
{
	unsigned nulls = 0;
	pthread_t t;

	atomic_u32_store_seqcst(&working, 1);
	t = start_thread(releaser, NULL);
	for (int i = 0; i < ROOM_ROUNDS; i++) {
		if (collect)
			must(rt_gc());
		let_release(i);
		room = rt_alloc_noscan(ROOM);
		nulls += room == NULL;
		for (size_t at = 0; room && at < ROOM; at += 4096)
			room[at] = 1;
		room = NULL;
	}
	atomic_u32_store_seqcst(&working, 0);
	join_beside(t);
	return nulls;
}

static void begin_rooms(size_t max_heap)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.max_heap = max_heap;
	heap_start_exact(c);
	must(rt_roots_add(&room, &room + 1, RT_ROOT_WORDS));
}

// The range has room for one object.
TEST(memory_that_is_being_released_is_no_reason_for_null)
{
	begin_rooms(RT_ARENA_SIZE);
	ck_assert_uint_eq(make_rooms(false), 0);
}

// The range has room for many objects, but the heap grows for one only.
TEST(nor_for_a_larger_heap)
{
	begin_rooms(16 * (size_t)RT_ARENA_SIZE);
	ck_assert_uint_eq(make_rooms(true), 0);
	ck_assert_uint_le(heap_stats().heap_sys, ROOM + 2 * RT_CHUNK_SIZE);
}
