// Root callbacks: the objects that they report live.  These tests also show
// when and on which thread they are called, and how they are added and removed.
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "gc/mark/rootfns.h"
#include "gc/mark/work.h"
#include "test/harness/fault.h"
#include "test/harness/heap.h"
#include "test/harness/kind.h"
#include "test/harness/missed.h"
#include "test/harness/process.h"
#include "test/harness/thread.h"
#include "test/harness/unattached.h"

static const rt_value_format nan_box =
    RT_FORMAT_NAN_BOX(UINT64_C(0xfff9) << 48, (UINT64_C(0xfffa) << 48) - 1);
static const rt_value_format pair = RT_FORMAT_PAIR(0x40, 0x40);

static void begin(void)
{
	heap_start_exact(heap_config_checked());
}

// The answers of functions in a callback that must not call them.
static struct {
	int start, stop, gc, walk, verify, read, detach;
	void *alloc;
} answers;

static int walk_nothing(void *obj, size_t size, int kind, void *arg)
{
	(void)obj, (void)size, (void)kind, (void)arg;
	return 0;
}

static void call_all(void)
{
	static rt_memstats m;
	struct rt_verify v;

	answers.start = rt_start_the_world(NULL);
	answers.stop = rt_stop_the_world(RT_STOP_HOST);
	answers.gc = rt_gc();
	answers.walk = rt_heap_walk(walk_nothing, NULL);
	answers.verify = rt_heap_verify(&v);
	answers.read = rt_read_memstats(&m);
	answers.detach = rt_thread_detach();
	answers.alloc = rt_alloc(16);
	rt_safepoint();
}

static void call_all_as_root(rt_tracer *t, void *arg)
{
	(void)t, (void)arg;
	call_all();
}

static void call_all_as_trace(rt_tracer *t, void *obj, size_t size, void *arg)
{
	(void)t, (void)obj, (void)size, (void)arg;
	call_all();
}

// A table of pointers that a callback tells.
struct table {
	void **at;
	size_t n;
	atomic_u32 calls;
};

static void tell_table(rt_tracer *t, void *arg)
{
	struct table *table = arg;

	atomic_u32_add_relaxed(&table->calls, 1);
	for (size_t i = 0; i < table->n; i++)
		rt_trace_ptr(t, table->at[i]);
}

static void *slots[100];
static struct table slot_table = {slots, RT_ARRAY_LEN(slots), {0}};

static uint32_t calls(struct table *table)
{
	return atomic_u32_load_relaxed(&table->calls);
}

static void fill(struct table *table)
{
	for (size_t i = 0; i < table->n; i++) {
		table->at[i] = rt_alloc(32);
		ck_assert_ptr_nonnull(table->at[i]);
	}
}

static void add_table(void)
{
	fill(&slot_table);
	must(rt_roots_add_fn(tell_table, &slot_table, "slots"));
}

GROUP(told, .setup = begin, .timeout = 60);

TEST(what_a_callback_tells_lives)
{
	add_table();
	ck_assert_uint_eq(heap_live_after_gc(), slot_table.n);
	ck_assert_uint_eq(heap_live_after_gc(), slot_table.n);
	slots[7] = NULL;
	ck_assert_uint_eq(heap_live_after_gc(), slot_table.n - 1);
	ck_assert_int_eq(rt_roots_remove_fn(tell_table, &slot_table), RT_OK);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

static uint64_t various[16];

static void tell_various(rt_tracer *t, void *arg)
{
	(void)arg;
	rt_trace_ptr(t, (void *)various[0]);
	rt_trace_value(t, various[1], &nan_box);
	rt_trace_value(t, various[2], &nan_box); // no box
	rt_trace_pair(t, &various[3], &pair);
	rt_trace_words(t, &various[5], &various[8]);
	rt_trace_values(t, &various[8], &various[12], &pair);
}

TEST(every_way_of_telling_works)
{
	for (unsigned i = 0; i < 12; i++)
		various[i] = (uintptr_t)rt_alloc(48);
	various[1] |= UINT64_C(0xfff9) << 48;
	various[4] = various[9] = 0x40;
	various[11] = 0x20;
	various[6] += 17; // into the object
	ck_assert_int_eq(rt_roots_add_fn(tell_various, NULL, NULL), RT_OK);
	// All but number 2, 4, 9, 10 and 11.
	ck_assert_uint_eq(heap_live_after_gc(), 12 - 5);
}

// A callback that lies reports words that need not be pointers to objects, in
// one of these ways.
enum way { PTR, VALUE, PAIR, WORDS, VALUES, WAYS };
enum { LIES = 200 };
static struct {
	enum way way;
	size_t n;
	uintptr_t row[LIES][2]; // a pair: the word and its tag
} lies;

static void lie(uintptr_t word)
{
	ck_assert_uint_lt(lies.n, LIES);
	if (lies.way == VALUE)
		word |= nan_box.min;
	lies.row[lies.n][0] = word;
	lies.row[lies.n++][1] = 0x40;
}

static void tell_lies(rt_tracer *t)
{
	uintptr_t(*row)[2] = lies.row;
	// A row need not begin or end where a word does.
	const char *lo = (const char *)row - 7,
		   *hi = (const char *)&row[lies.n];

	if (lies.way == WORDS) {
		rt_trace_words(t, lo, hi + 1);
		rt_trace_words(t, hi, lo);
	}
	if (lies.way == VALUES) {
		rt_trace_values(t, lo, hi + 1, &pair);
		rt_trace_values(t, hi, lo, &pair);
	}
	for (size_t i = 0; i < lies.n; i++) {
		rt_trace_name(t, "lie", i);
		if (lies.way == PTR)
			rt_trace_ptr(t, (void *)row[i][0]);
		if (lies.way == VALUE)
			rt_trace_value(t, row[i][0], &nan_box);
		if (lies.way == PAIR)
			rt_trace_pair(t, row[i], &pair);
	}
}

static void tell_lies_as_root(rt_tracer *t, void *arg)
{
	(void)arg;
	tell_lies(t);
}

static void tell_lies_of_object(rt_tracer *t, void *obj, size_t size, void *arg)
{
	(void)obj, (void)size, (void)arg;
	tell_lies(t);
}

// lie_of_no_object adds lies that point to no object, whatever is allocated.
static void lie_of_no_object(void)
{
	static const uintptr_t words[] = {0,
					  1,
					  7,
					  UINTPTR_MAX,
					  UINTPTR_MAX - 7,
					  UINTPTR_MAX / 2 + 1,
					  UINT64_C(0x5555555555555555),
					  (uintptr_t)&lies,
					  (uintptr_t)lie_of_no_object};
	char *stack = rt_stack_alloc(1 << 16);

	for (size_t i = 0; i < RT_ARRAY_LEN(words); i++)
		lie(words[i]);
	for (uintptr_t i = 1; i <= 8; i++) {
		lie(arena.base - i);
		lie(arena.base + arena_used() + i - 1);
		lie(arena.base + arena.reserved + i - 5);
	}
	ck_assert_ptr_nonnull(stack);
	lie((uintptr_t)stack);
	lie((uintptr_t)stack + 5000);
}

// An object into which a lie points lives, all other objects die, and nothing
// else happens.  The callback of an object may lie as well as a root callback.
TEST(a_callback_may_lie, .n = 2 * WAYS)
{
	static const size_t sizes[] = {16, 100, 8192, 100000, 1 << 21};
	enum { SIZES = RT_ARRAY_LEN(sizes) };
	uintptr_t *keeper = heap_table(1, RT_ROOT_EXACT);

	lies.way = (enum way)(_i / 2);
	lie_of_no_object();
	for (size_t i = 0; i < SIZES; i++) {
		uintptr_t freed = (uintptr_t)rt_alloc(sizes[i]);
		uintptr_t odd = (uintptr_t)rt_alloc(sizes[i]);
		uintptr_t inner = (uintptr_t)rt_alloc(sizes[i]);
		uintptr_t dead = (uintptr_t)rt_alloc(sizes[i]);

		for (uintptr_t k = 1; k < 8; k++)
			lie(odd + k);
		lie(inner + sizes[i] - 1);
		lie(inner + sizes[i] / 2);
		lie(freed);
		lie(freed + sizes[i] / 2);
		ck_assert_int_eq(rt_free((void *)freed), RT_OK);
		ck_assert(rt_is_heap((void *)dead));
	}
	if (_i % 2) {
		int kind = kind_make(.layout = RT_LAYOUT_TRACE,
				     .trace = tell_lies_of_object);

		*keeper = (uintptr_t)rt_alloc_kind(kind, 32);
	} else {
		*keeper = (uintptr_t)rt_alloc(32);
		must(rt_roots_add_fn(tell_lies_as_root, NULL, "lies"));
	}
	for (unsigned i = 0; i < 3; i++)
		ck_assert_uint_eq(heap_live_after_gc(), 1 + 2 * SIZES);
	heap_healthy();
	lies.n = 0;
	ck_assert_uint_eq(heap_live_after_gc(), 1);
}

TEST(what_it_reaches_lives_too)
{
	void **list = NULL;

	for (unsigned i = 0; i < 10000; i++) {
		void **node = rt_alloc(16);

		node[0] = list;
		list = node;
	}
	slots[0] = list;
	ck_assert_int_eq(rt_roots_add_fn(tell_table, &slot_table, NULL), RT_OK);
	ck_assert_uint_eq(heap_live_after_gc(), 10000);
}

// Long rows are shared with helpers.
static uintptr_t *row;
enum { ROW = 6 * WORK_PIECE / 8 };

static void tell_row(rt_tracer *t, void *arg)
{
	(void)arg;
	rt_trace_words(t, row, row + ROW);
}

TEST(a_long_row_is_told_to_its_end)
{
	row = calloc(ROW, sizeof *row);
	ck_assert_ptr_nonnull(row);
	for (size_t i = 0; i < ROW; i++)
		row[i] = (uintptr_t)rt_alloc(16);
	ck_assert_int_eq(rt_roots_add_fn(tell_row, NULL, NULL), RT_OK);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_uint_eq(heap_live_after_gc(), ROW);
	free(row);
}

// ---- when and where it is called ----

static pthread_t called_on;

static void note_thread(rt_tracer *t, void *arg)
{
	(void)t;
	(void)arg;
	called_on = pthread_self();
}

static void *collect_here(void *arg)
{
	ck_assert_int_eq(rt_thread_attach(RT_THREAD_EXACT), RT_OK);
	ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert(pthread_equal(called_on, pthread_self()));
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	return arg;
}

// The world stays stopped, and nothing else happens.  A kind with
// RT_KIND_SERIAL has its callback on the collecting thread, too.
TEST(a_callback_gets_errors_from_the_rest, .n = 2)
{
	static void *object;

	memset(&answers, 1, sizeof answers);
	if (_i == 0) {
		must(rt_roots_add_fn(call_all_as_root, NULL, NULL));
	} else {
		int kind = kind_make(.layout = RT_LAYOUT_TRACE,
				     .flags = RT_KIND_SERIAL,
				     .trace = call_all_as_trace);

		must(rt_roots_add(&object, &object + 1, RT_ROOT_EXACT));
		object = rt_alloc_of(kind, 32);
	}
	ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert_int_eq(rt_world_stopped(), 0);
	ck_assert_int_eq(answers.start, RT_EPERM);
	ck_assert_int_eq(answers.stop, RT_EBUSY);
	ck_assert_int_eq(answers.gc, RT_EBUSY);
	ck_assert_int_eq(answers.walk, RT_EBUSY);
	ck_assert_int_eq(answers.verify, RT_EBUSY);
	ck_assert_int_eq(answers.read, RT_EBUSY);
	ck_assert_int_eq(answers.detach, RT_EBUSY);
	ck_assert_ptr_null(answers.alloc);
	heap_healthy();
}

TEST(it_is_called_on_the_collecting_thread)
{
	ck_assert_int_eq(rt_roots_add_fn(note_thread, NULL, NULL), RT_OK);
	ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert(pthread_equal(called_on, pthread_self()));
	run_beside(collect_here, NULL);
}

TEST(it_is_called_in_every_collection)
{
	add_table();
	for (uint32_t i = 0; i < 5; i++) {
		// Marking calls it once, and checkmark once.
		ck_assert_uint_eq(calls(&slot_table), 2 * i);
		ck_assert_int_eq(rt_gc(), RT_OK);
	}
	ck_assert_int_eq(rt_free_os_memory(), RT_OK);
	ck_assert_uint_eq(calls(&slot_table), 2 * 6);
}

// A callback puts the only pointer to an object on the stack of a thread.  The
// object lives only if that stack is read after the callback.
static void *volatile *stack_slot;
static void *hidden; // as the complement
static atomic_u32 ready, over;

static void *lend_stack(void *arg)
{
	void *volatile slot = NULL;

	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	stack_slot = &slot;
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	atomic_u32_store_release(&ready, 1);
	await_at_least(&over, 1);
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	slot = NULL;
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	return arg;
}

static void put_on_stack(rt_tracer *t, void *arg)
{
	(void)t;
	(void)arg;
	*stack_slot = (void *)~(uintptr_t)hidden;
}

TEST(stacks_are_read_after_the_callbacks)
{
	pthread_t thread = start_thread(lend_stack, NULL);
	void *p;

	await_at_least(&ready, 1);
	p = rt_alloc(48);
	hidden = (void *)~(uintptr_t)p;
	ck_assert_int_eq(rt_roots_add_fn(put_on_stack, NULL, NULL), RT_OK);
	ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert_int_eq(rt_is_heap(p), 1);
	ck_assert_int_eq(rt_roots_remove_fn(put_on_stack, NULL), RT_OK);
	*stack_slot = NULL;
	ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert_int_eq(rt_is_heap(p), 0);
	atomic_u32_store_release(&over, 1);
	join_beside(thread);
}

// ---- adding and removing ----

TEST(a_callback_is_its_function_and_argument)
{
	static struct table other = {slots, 0, {0}};

	ck_assert_int_eq(rt_roots_add_fn(NULL, NULL, "x"), RT_EINVAL);
	ck_assert_int_eq(rt_roots_remove_fn(NULL, NULL), RT_ENOENT);
	ck_assert_int_eq(rt_roots_remove_fn(tell_table, &other), RT_ENOENT);
	ck_assert_int_eq(rt_roots_add_fn(tell_table, &other, "x"), RT_OK);
	ck_assert_int_eq(rt_roots_add_fn(tell_table, &other, "y"), RT_EEXIST);
	ck_assert_int_eq(rt_roots_add_fn(tell_table, &slot_table, "x"), RT_OK);
	ck_assert_int_eq(rt_roots_add_fn(tell_various, &other, "x"), RT_OK);
	ck_assert_uint_eq(rootfns_count(), 3);
	ck_assert_int_eq(rt_roots_remove_fn(tell_table, &other), RT_OK);
	ck_assert_int_eq(rt_roots_remove_fn(tell_table, &other), RT_ENOENT);
	ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert_uint_eq(calls(&other), 0);
	ck_assert_uint_eq(calls(&slot_table), 2);
	heap_healthy();
}

TEST(a_name_is_copied_and_cut)
{
	char name[] = "0123456789012345678901234567890123";

	ck_assert_int_eq(rt_roots_add_fn(tell_table, &slot_table, name), RT_OK);
	memset(name, 'x', 10);
	ck_assert_str_eq(rootfns_name(0), "0123456789012345678901234567890");
	ck_assert_int_eq(rt_roots_remove_fn(tell_table, &slot_table), RT_OK);
	ck_assert_int_eq(rt_roots_add_fn(tell_table, &slot_table, NULL), RT_OK);
	ck_assert_ptr_null(rootfns_name(0));
}

enum { MANY = 1000 };
static struct table many[MANY];

TEST(many_callbacks_come_and_go)
{
	for (unsigned i = 0; i < MANY; i++) {
		many[i] = (struct table){&slots[i % 100], 1, {0}};
		must(rt_roots_add_fn(tell_table, &many[i], NULL));
	}
	fill(&slot_table);
	ck_assert_uint_eq(heap_live_after_gc(), 100);
	for (unsigned i = 0; i < MANY; i++)
		if (i % 2 == 0)
			must(rt_roots_remove_fn(tell_table, &many[i]));
	ck_assert_uint_eq(heap_live_after_gc(), 50);
	for (unsigned i = 0; i < MANY; i++)
		ck_assert_uint_eq(calls(&many[i]), i % 2 ? 4 : 2);
	heap_healthy();
}

TEST(refused_memory_changes_nothing)
{
	uint64_t other_sys;
	unsigned n = 0;

	fault_fail(OSCALL_MAP, 1, UINT64_MAX, ENOMEM);
	ck_assert_int_eq(rt_roots_add_fn(tell_table, &many[0], NULL),
			 RT_ENOMEM);
	ck_assert_uint_eq(rootfns_count(), 0);
	fault_fail(OSCALL_MAP, 2, UINT64_MAX, ENOMEM);
	other_sys = heap_stats().other_sys;
	while (n < MANY && rt_roots_add_fn(tell_table, &many[n], NULL) == RT_OK)
		n++;
	ck_assert_uint_gt(n, 0);
	ck_assert_uint_lt(n, MANY);
	ck_assert_uint_gt(heap_stats().other_sys, other_sys);
	ck_assert_uint_eq(rootfns_count(), n);
	ck_assert_int_eq(rt_roots_add_fn(tell_table, &many[n], NULL),
			 RT_ENOMEM);
	ck_assert_int_eq(rt_roots_remove_fn(tell_table, &many[n]), RT_ENOENT);
	ck_assert_int_eq(rt_gc(), RT_OK);
	for (unsigned i = 0; i < n; i++)
		ck_assert_uint_eq(calls(&many[i]), 2);
	fault_fail(OSCALL_MAP, 0, 0, 0);
	ck_assert_int_eq(rt_roots_add_fn(tell_table, &many[n], NULL), RT_OK);
	heap_healthy();
}

// If no buffer is left, an object that a callback reports is marked at once.
TEST(no_reference_is_lost_without_buffers, .n = 3)
{
	enum { LOTS = 100000 / HEAP_CUT };
	static void *lots[LOTS];
	static struct table table = {lots, LOTS, {0}};

	for (unsigned i = 0; i < LOTS; i++) {
		void **p = rt_alloc(32 + i % 3 * 100);

		p[0] = rt_alloc(16);
		lots[i] = p;
	}
	ck_assert_int_eq(rt_roots_add_fn(tell_table, &table, NULL), RT_OK);
	work_limit((uint32_t)_i);
	ck_assert_uint_eq(heap_live_after_gc(), 2 * LOTS);
	ck_assert_uint_eq(heap_live_after_gc(), 2 * LOTS);
	work_limit(UINT32_MAX);
}

TEST(the_next_heap_has_no_callbacks)
{
	add_table();
	ck_assert_int_eq(rt_fini(), RT_OK);
	begin();
	ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert_uint_eq(calls(&slot_table), 0);
	ck_assert_int_eq(rt_roots_remove_fn(tell_table, &slot_table),
			 RT_ENOENT);
}

TEST(a_child_has_the_callbacks)
{

	add_table();
	if (process_forked()) {
		bool ok =
		    heap_live_after_gc() == slot_table.n &&
		    rt_roots_remove_fn(tell_table, &slot_table) == RT_OK &&
		    heap_live_after_gc() == 0;

		process_end(ok);
	}
	ck_assert_uint_eq(heap_live_after_gc(), slot_table.n);
}

// ---- checkmark ----

static const char *report_name;

static void report(void)
{
	begin();
	fill(&slot_table);
	rt_roots_add_fn(tell_table, &slot_table, report_name);
	missed_look();
}

GROUP(checks, .timeout = 60);

TEST(a_reference_that_was_not_followed_is_named, .n = 2)
{
	report_name = _i ? "slots" : NULL;
	missed_at(report, _i ? "found in root callback slots at 0x"
			     : "found in a root callback at 0x");
}

// ---- threads ----

// A thread whose callback must not be called once it is removed.
struct visitor {
	struct table table;
	void *slot[4];
	unsigned wrong;
};

enum { VISITORS = 4, ROUNDS = 400 / HEAP_CUT };

static void *come_and_go(void *arg)
{
	struct visitor *v = arg;

	v->table = (struct table){v->slot, 4, {0}};
	if (rt_thread_attach(RT_THREAD_EXACT) != RT_OK)
		return NULL;
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint32_t before;

		v->wrong +=
		    rt_roots_add_fn(tell_table, &v->table, "v") != RT_OK;
		for (unsigned k = 0; k < 4; k++) {
			uintptr_t *p = rt_alloc(32);

			p[1] = (uintptr_t)v + k;
			v->slot[k] = p;
		}
		v->wrong += rt_gc() != RT_OK;
		for (unsigned k = 0; k < 4; k++)
			v->wrong +=
			    ((uintptr_t *)v->slot[k])[1] != (uintptr_t)v + k;
		v->wrong += calls(&v->table) == 0;
		v->wrong += rt_roots_remove_fn(tell_table, &v->table) != RT_OK;
		before = calls(&v->table);
		v->wrong += rt_gc() != RT_OK;
		v->wrong += calls(&v->table) != before;
	}
	v->wrong += rt_thread_detach() != RT_OK;
	return v;
}

GROUP(threads, .setup = begin, .timeout = 120);

TEST(callbacks_come_and_go_beside_collections)
{
	static struct visitor v[VISITORS];
	pthread_t t[VISITORS];

	add_table();
	for (unsigned i = 0; i < VISITORS; i++)
		t[i] = start_thread(come_and_go, &v[i]);
	for (unsigned i = 0; i < VISITORS; i++)
		ck_assert_ptr_eq(join_beside(t[i]), &v[i]);
	for (unsigned i = 0; i < VISITORS; i++)
		ck_assert_uint_eq(v[i].wrong, 0);
	ck_assert_uint_eq(rootfns_count(), 1);
	ck_assert_uint_eq(heap_live_after_gc(), slot_table.n);
}

static int remove_table(void)
{
	return rt_roots_remove_fn(tell_table, &slot_table);
}

static int add_again(void)
{
	return rt_roots_add_fn(tell_table, &slot_table, NULL);
}

TEST(an_unattached_thread_removes_after_the_stop)
{
	static struct unattached u = {
	    .remove = remove_table, .add = add_again, .count = rootfns_count};

	add_table();
	unattached_waits(&u);
}

TEST(a_region_removes_and_does_not_add)
{
	add_table();
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	ck_assert_int_eq(rt_roots_add_fn(tell_various, NULL, NULL), RT_ESTATE);
	ck_assert_int_eq(rt_roots_remove_fn(tell_table, &slot_table), RT_OK);
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

GROUP(stress, .timeout = 60);

static void *first_slot(void)
{
	return slots[0];
}

static void set_first_slot(void *p)
{
	slots[0] = p;
}

// A list that only a callback reports, with a collection in every allocation.
TEST(a_list_survives_a_collection_in_every_allocation)
{
	rt_config c = heap_config_checked();

	c.gcstress = 1;
	c.clobberfree = 1;
	heap_start_exact(c);
	ck_assert_int_eq(rt_roots_add_fn(tell_table, &slot_table, NULL), RT_OK);
	heap_check_list(first_slot, set_first_slot);
}
