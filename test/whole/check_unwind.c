// Threads that leave the library's regions by unwinding, are cancelled, or end
// beside destructors of the host.  Their regions end, and their roots can be
// removed.  test/scripts/unwind.cc tests the same with exceptions.
#include "test/harness/heap.h"

#include <sys/mman.h>
#include <unistd.h>

#include "gc/mark/crew.h"
#include "gc/mark/roots.h"
#include "gc/cycle/worker.h"
#include "test/harness/await.h"

// With musl a thread that ends or is cancelled does not unwind: handlers run
// while the thread's region lasts.
#ifdef __GLIBC__
enum { UNWINDS = 1 };
#else
enum { UNWINDS = 0 };
#endif

enum { STACK = 8 << 20 }; // the thread sanitizer needs much of it

static void *stack; // of the thread under test
static atomic_u32 reached;

// When the thread has ended, its stack is unmapped.  So a root range on the
// stack that was not removed would make the next collection fault.
static pthread_t start_on_stack(void *(*fn)(void *), void *arg)
{
	pthread_attr_t attr;
	pthread_t thread;

	stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(stack, MAP_FAILED);
	ck_assert_int_eq(pthread_attr_init(&attr), 0);
	ck_assert_int_eq(pthread_attr_setstack(&attr, stack, STACK), 0);
	ck_assert_int_eq(pthread_create(&thread, &attr, fn, arg), 0);
	pthread_attr_destroy(&attr);
	return thread;
}

static void *end_on_stack(pthread_t thread)
{
	void *answer;

	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	ck_assert_int_eq(pthread_join(thread, &answer), 0);
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	ck_assert_int_eq(munmap(stack, STACK), 0);
	return answer;
}

static void nothing_is_left(void)
{
	ck_assert_uint_eq(roots_ranges(), 0);
	ck_assert_int_eq(rt_gc(), RT_OK);
	heap_live();
	ck_assert_int_eq(rt_fini(), RT_OK); // otherwise it would be RT_EBUSY
}

// ---- out of a region ----

// Roots on the stack of a thread, and what its cleanup handler found.
struct frame {
	void *slot[8];
	bool ran;
	bool allocated;
	int removed;
};

static struct frame inner_told, outer_told; // copies; the frames are gone

static void frame_begin(struct frame *f)
{
	memset(f, 0, sizeof *f);
	must(rt_roots_add(f->slot, f->slot + 8, RT_ROOT_WORDS));
}

static void frame_end(struct frame *f)
{
	f->ran = true;
	f->allocated = rt_alloc(64) != NULL;
	f->removed = rt_roots_remove(f->slot, f->slot + 8);
}

static void end_inner(void *f)
{
	frame_end(f);
	inner_told = *(struct frame *)f;
}

static void end_outer(void *f)
{
	frame_end(f);
	outer_told = *(struct frame *)f;
}

static void *wait_for_ever(void *arg)
{
	atomic_u32_store_release(&reached, 1);
	for (;;)
		pause();
	return arg;
}

static void *leave_by_exit(void *arg)
{
	atomic_u32_store_release(&reached, 1);
	pthread_exit(arg);
}

// call_within runs inside the region.
static void *call_within(void *arg)
{
	void *(*const *leave)(void *) = arg;
	struct frame *f = leave[1](NULL);

	pthread_cleanup_push(end_inner, f);
	leave[0](NULL);
	pthread_cleanup_pop(0);
	return NULL;
}

static struct frame *inner_frame; // on the thread's stack

static void *get_inner_frame(void *arg)
{
	(void)arg;
	return inner_frame;
}

static void *leave_a_call(void *arg)
{
	void *(*leave[2])(void *) = {*(void *(**)(void *))arg, get_inner_frame};
	struct frame outer, inner;

	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	frame_begin(&outer);
	frame_begin(&inner);
	inner_frame = &inner;
	pthread_cleanup_push(end_outer, &outer);
	rt_call_blocking(call_within, leave);
	pthread_cleanup_pop(0);
	return NULL;
}

static void *leave_a_region(void *arg)
{
	struct frame outer;

	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	frame_begin(&outer);
	pthread_cleanup_push(end_outer, &outer);
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	(*(void *(**)(void *))arg)(NULL);
	pthread_cleanup_pop(0);
	return NULL;
}

static void *(*const ways[])(void *) = {leave_by_exit, wait_for_ever};

static void leave(void *(*fn)(void *), int way)
{
	pthread_t thread;

	heap_begin();
	thread = start_on_stack(fn, (void *)&ways[way]);
	if (ways[way] == wait_for_ever) {
		await_at_least(&reached, 1);
		ck_assert_int_eq(pthread_cancel(thread), 0);
	}
	end_on_stack(thread);
	ck_assert(outer_told.ran);
	ck_assert_int_eq(outer_told.removed, RT_OK);
}

GROUP(unwind, .timeout = 60);

// Handlers of frames inside the call run inside the region; handlers of frames
// around the call run outside.
TEST(a_call_that_is_left_ends_its_region, .n = RT_ARRAY_LEN(ways))
{
	leave(leave_a_call, _i);
	ck_assert(inner_told.ran);
	ck_assert_int_eq(inner_told.removed, RT_OK);
	ck_assert(!inner_told.allocated);
	ck_assert(outer_told.allocated == UNWINDS);
	nothing_is_left();
}

// A region that the host entered itself lasts until the thread has ended.
TEST(a_region_that_is_left_ends_with_its_thread, .n = RT_ARRAY_LEN(ways))
{
	leave(leave_a_region, _i);
	ck_assert(!outer_told.allocated);
	nothing_is_left();
}

// ---- destructors of the host ----

static pthread_key_t key;
static struct frame destroyed;
static __thread struct frame local;

static void destroy(void *f)
{
	frame_end(f);
	destroyed = *(struct frame *)f;
}

static void *end_with_roots(void *arg)
{
	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	frame_begin(&local);
	ck_assert_int_eq(pthread_setspecific(key, &local), 0);
	return arg;
}

// Destructors run in the order in which the keys were made.  So the host's
// destructor runs before the thread is detached, or after.
TEST(destructors_remove_roots_before_and_after_the_detaching, .n = 2)
{
	bool before = _i == 0;

	if (before)
		ck_assert_int_eq(pthread_key_create(&key, destroy), 0);
	heap_begin();
	if (!before)
		ck_assert_int_eq(pthread_key_create(&key, destroy), 0);
	end_on_stack(start_on_stack(end_with_roots, NULL));
	ck_assert(destroyed.ran);
	ck_assert_int_eq(destroyed.removed, RT_OK);
	ck_assert(destroyed.allocated == before);
	nothing_is_left();
}

// ---- cancelled in the library ----

static int begun = RT_ESTATE, ended = RT_ESTATE;

// cancelled has a cancellation pending when it begins and ends a heap.  It must
// not assert, because Check would then write to a file.
static void *cancelled(void *arg)
{
	rt_config c = heap_config(HEAP_QUIET);

	(void)arg;
	c.max_procs = 2;
	c.gc_threads = 1;
	pthread_cancel(pthread_self());
	begun = rt_init(&c);
	worker_provide(proc_self(), true);
	atomic_u32_store_release(&reached, crew_size());
	ended = rt_fini();
	pthread_testcancel();
	return NULL;
}

// If the thread ended inside rt_init or rt_fini, the next heap would wait for
// it for ever.
//
// AddressSanitizer reports an error of its own when a cancelled thread has
// ended.
TEST(a_cancelled_thread_begins_and_ends_a_heap, .unless = SUITE_ASAN)
{
	pthread_t thread = start_thread(cancelled, NULL);
	void *answer;

	ck_assert_int_eq(pthread_join(thread, &answer), 0);
	ck_assert_ptr_eq(answer, PTHREAD_CANCELED);
	ck_assert_int_eq(begun, RT_OK);
	ck_assert_uint_eq(atomic_u32_load_acquire(&reached), 1);
	ck_assert_int_eq(ended, RT_OK);
	heap_begin();
	nothing_is_left();
}

// ---- a walk ----

static int exit_in_walk(void *obj, size_t size, int kind, void *arg)
{
	(void)obj;
	(void)size;
	(void)kind;
	pthread_exit(arg);
}

static struct {
	bool allocated;
	int stopped;
} after_walk;

static void look_after_walk(void *arg)
{
	(void)arg;
	after_walk.stopped = rt_world_stopped();
	after_walk.allocated = rt_alloc(64) != NULL;
}

static void *leave_a_walk(void *arg)
{
	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	ck_assert_ptr_nonnull(rt_alloc(64));
	pthread_cleanup_push(look_after_walk, NULL);
	rt_heap_walk(exit_in_walk, arg);
	pthread_cleanup_pop(0);
	return NULL;
}

TEST(a_walk_that_is_left_starts_the_world)
{
	heap_begin();
	end_on_stack(start_on_stack(leave_a_walk, NULL));
	ck_assert_int_eq(after_walk.stopped, UNWINDS ? 0 : 1);
	ck_assert(after_walk.allocated == UNWINDS);
	ck_assert_int_eq(rt_world_stopped(), 0);
	nothing_is_left();
}
