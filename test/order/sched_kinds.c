// Kinds that end, and objects that are provided, while a thread allocates.
#include <errno.h>

#include "runtime/world/stw.h"
#include "runtime/spans/typebits.h"
#include "test/harness/fault.h"
#include "test/harness/kind.h"
#include "test/order/host.h"

static struct hand first, second, third;
static int kind;
static size_t size;
static atomic_u32 traced, ready, go, asked_host;
static void *root[1];

// trace_first reads what a host's callback would read: the object itself.
static void trace_first(rt_tracer *t, void *obj, size_t n, void *arg)
{
	(void)n, (void)arg;
	atomic_u32_add_relaxed(&traced, 1);
	rt_trace_ptr(t, *(void **)obj);
}

static void add_kind(void)
{
	kind = kind_make(.layout = RT_LAYOUT_TRACE, .trace = trace_first,
			 .number = RT_KIND_ANY_ALIGN8);
}

static int no_memory(size_t n, void *arg)
{
	(void)n, (void)arg;
	atomic_u32_add_relaxed(&asked_host, 1);
	return 0;
}

static void begin(void)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.max_heap = 64 << 20;
	c.poison = 1;
	c.checkmark = 1;
	heap_start(c);
	ck_assert_int_eq(rt_roots_add(root, root + 1, RT_ROOT_EXACT), RT_OK);
	ck_assert_int_eq(rt_set_oom_handler(no_memory, NULL), RT_OK);
	add_kind();
}

// fill_all fills all memory with garbage.
static void fill_all(void)
{
	for (unsigned i = 0; i < 63; i++)
		ck_assert_ptr_nonnull(rt_alloc_noscan(1 << 20));
	for (unsigned i = 0; i < 128; i++)
		ck_assert_ptr_nonnull(rt_alloc_noscan(8192));
	ck_assert_uint_eq(heap_metric("/gc/cycles/total:gc-cycles"), 0);
}

static void end_kind(void)
{
	host_attach();
	ck_assert_int_eq(rt_kind_unregister(kind), RT_OK);
	host_detach();
}

static void is_provided(void)
{
	char *p;

	host_attach();
	p = rt_alloc_kind(kind, size);
	ck_assert_ptr_nonnull(p);
	ck_assert_int_eq(rt_kind_of(p), kind);
	ck_assert(heap_is_zero(p, size));
	for (unsigned i = 0; i < 1000; i++) {
		p = rt_alloc_of(kind, 24);
		ck_assert(p && heap_is_zero(p, 24));
		memset(p, 0xff, 24);
		ck_assert_uint_eq(rt_size(p), 24);
	}
	host_detach();
}

static void is_refused(void)
{
	host_attach();
	atomic_u32_store_release(&ready, 1);
	await_at_least(&go, 1);
	ck_assert_ptr_null(rt_alloc_kind(kind, size));
	ck_assert_ptr_null(rt_alloc_of(kind, 24));
	host_detach();
}

// waits_for_stop makes a hand wait until the others before it, and the caller,
// have released the right to stop the world.
static void waits_for_stop(struct hand *h, void (*fn)(void))
{
	pass_at(SCHED_SEMA_ACQUIRE, h, fn);
}

static void asks(struct hand *h, void (*fn)(void))
{
	pass_at(SCHED_ASK_WAIT, h, fn);
}

// leader_gives makes the second hand call fn, for which a leader must take
// memory.  It returns when the leader has done so, before the second hand runs
// again.
static void leader_gives(void (*fn)(void))
{
	host_block();
	stw_acquire(NULL);
	waits_for_stop(&first, host_collect);
	schedpoint_hold(SCHED_ASK_WAIT_WOKEN);
	asks(&second, fn);
	stw_release();
	await_held(SCHED_ASK_WAIT_WOKEN);
	hand_end(&first);
	host_unblock();
}

static void given_runs(void)
{
	host_block();
	let_end(SCHED_ASK_WAIT_WOKEN, &second);
	host_unblock();
}

GROUP(kinds, .setup = begin, .timeout = 2 * AWAIT_SECONDS);

static const size_t sizes[] = {24, 48, 6000, 40000};

static int look_at(void *obj, size_t n, int its_kind, void *found)
{
	(void)n;
	if (its_kind == kind) {
		ck_assert(heap_is_zero(obj, 8));
		*(void **)found = obj;
	}
	return 0;
}

// An object that the leader took for a thread exists before that thread runs
// again.  The host may find it in a walk, and checkmark may call the kind's
// callback for it.  The address sanitizer reports neither.
TEST(what_was_given_may_be_read, .n = RT_ARRAY_LEN(sizes))
{
	void *found = NULL;

	size = sizes[_i];
	fill_all();
	leader_gives(is_provided);
	ck_assert_int_eq(rt_heap_walk(look_at, &found), RT_OK);
	// A large object is set up by the thread that asked for it.
	ck_assert((found == NULL) == (size > 32760));
	root[0] = found;
	ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert((atomic_u32_load_relaxed(&traced) != 0) == (found != NULL));
	root[0] = NULL;
	ck_assert_int_eq(rt_kind_unregister(kind), RT_EBUSY);
	given_runs();
	heap_healthy();
}

// A typed object of three words, two of which are references.
static const uint64_t outer_words[] = {5};
static const rt_type three_words = {
    .struct_size = sizeof(rt_type),
    .size = 24,
    .ptrdata = 24,
    .bitmap = outer_words,
};
static void *given;

static void gets_typed(void)
{
	host_attach();
	given = rt_alloc_typed(&three_words, 1);
	host_detach();
}

static int find_typed(void *obj, size_t n, int its_kind, void *found)
{
	(void)n;
	if (its_kind == RT_TYPED)
		*(void **)found = obj;
	return 0;
}

static uint64_t type_bits(const void *obj)
{
	return typebits_low(typebits_get((uintptr_t)obj, 3), 3);
}

// The type bits of an object that the leader took for a thread are written at
// once.  If the thread wrote them when it runs again, another thread might have
// cached the span by then, and write bits of other objects in the same word.
TEST(the_type_of_what_was_given_is_known_at_once)
{
	void *found = NULL;

	fill_all();
	leader_gives(gets_typed);
	ck_assert_int_eq(rt_heap_walk(find_typed, &found), RT_OK);
	ck_assert_ptr_nonnull(found);
	ck_assert_uint_eq(type_bits(found), outer_words[0]);
	// The thread itself must write no type bits.
	typebits_put((uintptr_t)found, 3, 2);
	given_runs();
	ck_assert_ptr_eq(given, found);
	ck_assert_uint_eq(type_bits(found), 2);
	heap_healthy();
}

// A thread has no slots of a kind yet.  The leader takes their memory for the
// thread, and then an object.
TEST(a_leader_provides_the_first_object_of_a_kind, .n = RT_ARRAY_LEN(sizes))
{
	size = sizes[_i];
	fill_all();
	host_block();
	stw_acquire(NULL);
	waits_for_stop(&first, host_collect);
	schedpoint_hold(SCHED_ATTACH_BLOCK_KNOWN);
	schedpoint_hold(SCHED_ASK_WAIT);
	hand_start(&second, is_provided);
	await_held(SCHED_ATTACH_BLOCK_KNOWN);
	// The thread itself is refused the memory for its slots.
	fault_fail(OSCALL_RESERVE, 1, 1, ENOMEM);
	fault_fail(OSCALL_COMMIT, 1, 1, ENOMEM);
	schedpoint_release(SCHED_ATTACH_BLOCK_KNOWN);
	await_held(SCHED_ASK_WAIT);
	ck_assert_uint_eq(fault_failed(OSCALL_RESERVE) +
			      fault_failed(OSCALL_COMMIT),
			  size <= 32760);
	fault_fail(OSCALL_RESERVE, 1, 0, 0);
	fault_fail(OSCALL_COMMIT, 1, 0, 0);
	schedpoint_release(SCHED_ASK_WAIT);
	stw_release();
	hand_end(&first);
	hand_end(&second);
	host_unblock();
	ck_assert_uint_eq(atomic_u32_load_relaxed(&asked_host), 0);
	heap_healthy();
}

// A thread has asked for memory for an object, and sleeps.  Meanwhile the kind
// of the object ends.  The thread gets nothing, and the host's out-of-memory
// handler is not called.
TEST(a_kind_ends_before_an_object_of_it_is_provided, .n = RT_ARRAY_LEN(sizes))
{
	size = sizes[_i];
	fill_all();
	host_block();
	stw_acquire(NULL);
	waits_for_stop(&third, end_kind);
	waits_for_stop(&first, host_collect);
	atomic_u32_store_release(&go, 1);
	asks(&second, is_refused);
	stw_release();
	hand_end(&third);
	hand_end(&first);
	hand_end(&second);
	host_unblock();
	ck_assert_uint_eq(atomic_u32_load_relaxed(&asked_host), 0);
	heap_healthy();
	add_kind();
	ck_assert_ptr_nonnull(rt_alloc_kind(kind, size));
}

// A kind ends while a thread that allocates an object of it is stopped, before
// it has taken anything.  The thread gets nothing.
TEST(a_kind_ends_while_an_allocation_is_stopped, .n = RT_ARRAY_LEN(sizes))
{
	size = sizes[_i];
	host_block();
	hand_start(&second, is_refused);
	await_at_least(&ready, 1);
	hold_at(SCHED_PROC_STOP_ALL_ASKED, &third, end_kind);
	atomic_u32_store_release(&go, 1);
	schedpoint_release(SCHED_PROC_STOP_ALL_ASKED);
	hand_end(&third);
	hand_end(&second);
	host_unblock();
	ck_assert_uint_eq(heap_metric("/gc/cycles/total:gc-cycles"), 0);
	heap_healthy();
	add_kind();
	ck_assert_ptr_nonnull(rt_alloc_kind(kind, size));
}
