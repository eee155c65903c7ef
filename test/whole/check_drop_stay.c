// Destructors: what stays while they run, and what a call that ends early
// leaves behind.
#include "test/harness/await.h"
#include "test/harness/thread.h"
#include "test/whole/drop.h"
#include "test/whole/fork.h"

// drop_all drops all objects of a kind: those alive if now is set, otherwise
// the n that a collection finds dead.
static void drop_all(int k, bool now, size_t n)
{
	if (now) {
		ck_assert_int_eq(rt_drop_now(k, NULL, NULL), RT_OK);
	} else {
		gc();
		ck_assert_uint_eq(rt_run_finalizers(0), n);
	}
}

// ---- what stays ----

GROUP(stay, .setup = begin_checked, .timeout = 60);

static void drop_collecting(void *obj, size_t size, void *arg)
{
	drop_item(obj, size, arg);
	for (size_t i = 0; i < 2; i++) {
		ck_assert(pair_is_whole(obj));
		gc();
		for (size_t j = 0; j < 500; j++)
			rt_alloc(sizeof(struct item));
	}
}

// A collection in a destructor frees neither its object nor the objects that
// died or were picked with it.
TEST(a_collection_frees_nothing_that_is_being_dropped, .n = 2)
{
	int k = make_kind(0, drop_collecting, NULL);

	for (size_t i = 0; i < 20; i += 2)
		pair_up(make_of(k, i), make_of(k, i + 1));
	drop_all(k, _i == 1, 20);
	each_dropped_once(20);
	heap_healthy();
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	ck_assert_int_eq(rt_kind_unregister(k), RT_OK);
}

static void drop_deep(void *obj, size_t size, void *arg)
{
	struct item *item = obj, *other = item->ref;

	drop_item(obj, size, arg);
	for (size_t i = 0; i < 2; i++) {
		struct item *child = item->other, *far = other->other;

		ck_assert_uint_eq(child->id, item->id + 1000);
		ck_assert_uint_eq(far->id, other->id + 1000);
		gc();
		for (size_t j = 0; j < 500; j++)
			rt_alloc(sizeof *child);
	}
}

// The objects that a deep object reaches stay as long as it does: even while
// its destructor runs, and for the destructors of others that died with it.
TEST(what_deep_ones_reach_stays_as_long_as_they, .n = 3)
{
	int k = make_kind(RT_KIND_DROP_DEEP, drop_deep, NULL);

	for (size_t i = 0; i < 20; i += 2) {
		struct item *a = make_of(k, i), *b = make_of(k, i + 1);

		a->ref = b;
		b->ref = a;
		a->other = rt_alloc(sizeof *a);
		b->other = rt_alloc(sizeof *b);
		((struct item *)a->other)->id = a->id + 1000;
		((struct item *)b->other)->id = b->id + 1000;
	}
	if (_i == 2) {
		gc();
		for (size_t i = 0; i < 20; i++) {
			ck_assert_uint_eq(rt_run_finalizers(1), 1);
			gc();
		}
	} else {
		drop_all(k, _i == 1, 20);
	}
	each_dropped_once(20);
	heap_healthy();
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

static void drop_reading(void *obj, size_t size, void *arg)
{
	drop_item(obj, size, arg);
	ck_assert(pair_is_whole(obj));
}

// After each destructor of a batch rt_drop_now picks nothing, and the heap is
// collected.  Even so all objects of the batch stay.  Each has a span of its
// own, so none stays only because its span holds another.
TEST(rt_drop_now_frees_nothing_of_a_batch)
{
	int k = make_kind(0, drop_reading, NULL);
	struct item *item[20];

	for (size_t i = 0; i < 20; i++) {
		item[i] = rt_alloc_kind(k, 40000);
		item[i]->id = i;
		if (i % 2 == 1)
			pair_up(item[i - 1], item[i]);
	}
	gc();
	for (size_t i = 0; i < 20; i++) {
		ck_assert_uint_eq(rt_run_finalizers(1), 1);
		ck_assert_int_eq(rt_drop_now(k, pick_none, NULL), RT_OK);
		gc();
		ck_assert_uint_eq(ready(), 19 - i);
	}
	each_dropped_once(20);
	heap_healthy();
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

// A kind whose objects rt_drop_now has dropped can end while objects of another
// kind wait for their destructors.
TEST(a_kind_ends_though_objects_of_another_wait, .n = 2)
{
	for (size_t i = 0; i < 50; i++)
		make(i);
	make_of(deep_kind, 50);
	if (_i == 1)
		make_of(deep_kind, 51);
	gc();
	if (_i == 1)
		ck_assert_uint_eq(rt_run_finalizers(1), 1);
	ck_assert_int_eq(rt_drop_now(kind, NULL, NULL), RT_OK);
	heap_healthy();
	gc();
	heap_healthy();
	// Objects that died with a batch that was begun stay until it ends.
	if (_i == 1)
		rt_run_finalizers(0);
	gc();
	ck_assert_int_eq(rt_kind_unregister(kind), RT_OK);
	ck_assert_uint_eq(ready(), _i == 1 ? 0 : 1);
	rt_run_finalizers(0);
	each_dropped_once(51);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

GROUP(references, .timeout = 60);

// Exact roots and handles keep what rt_drop_now has dropped, however slots lie.
TEST(exact_references_keep_what_was_dropped, .n = 4)
{
	rt_config c = heap_config(HEAP_QUIET);
	rt_handle *handle;
	void **root;
	int k;

	c.checkmark = 1;
	c.align8 = _i == 1;
	c.guard_large = _i == 2;
	c.guard_small = _i == 2 ? 1 : 0;
	begin_drops(c);
	k = kind_make(.layout = RT_LAYOUT_WORDS, .flags = RT_KIND_DROP,
		      .drop = drop_item,
		      .number = _i == 3 ? RT_KIND_ANY_ALIGN8 : RT_KIND_ANY);
	root = (void **)heap_table(2, RT_ROOT_EXACT);
	root[0] = make_of(k, 1);
	root[1] = rt_alloc_kind(k, 100000);
	((struct item *)root[1])->id = 2;
	handle = rt_handle_new(make_of(k, 3));
	ck_assert_int_eq(rt_drop_now(k, NULL, NULL), RT_OK);
	gc();
	ck_assert_uint_eq(heap_live(), 3);
	root[0] = root[1] = NULL;
	ck_assert_uint_eq(heap_live_after_gc(), 1);
	ck_assert_int_eq(rt_handle_free(handle), RT_OK);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	heap_healthy();
}

// When rt_drop_now has returned, an object that it dropped leads to nothing,
// however long a reference keeps the object.  Before the call it waited for its
// destructor, or was alive.
TEST(what_is_kept_leads_to_nothing, .n = 2)
{
	struct item **root;

	begin_checked();
	root = (struct item **)heap_table(1, RT_ROOT_EXACT);
	root[0] = make(1);
	if (_i == 0) {
		struct item *waits = root[0];

		root[0] = NULL;
		gc();
		ck_assert_uint_eq(ready(), 1);
		root[0] = waits;
	}
	ck_assert_int_eq(rt_drop_now(kind, NULL, NULL), RT_OK);
	ck_assert_uint_eq(dropped[1], 1);
	for (size_t i = 0; i < 4; i++) {
		root[0]->ref = rt_alloc(100);
		ck_assert_uint_eq(heap_live_after_gc(), 1);
		heap_healthy();
	}
	root[0] = NULL;
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

static uintptr_t told; // the references that trace_told has met

static void trace_told(rt_tracer *t, void *obj, size_t size, void *arg)
{
	const struct item *item = obj;

	(void)size;
	(void)arg;
	told |= (uintptr_t)item->ref;
	rt_trace_ptr(t, item->ref);
}

// make_deep_kind registers a deep kind with RT_LAYOUT_WORDS, or with a trace
// callback.
static int make_deep_kind(bool callback)
{
	return kind_make(.layout = callback ? RT_LAYOUT_TRACE : RT_LAYOUT_WORDS,
			 .flags = RT_KIND_DROP | RT_KIND_DROP_DEEP,
			 .drop = drop_item,
			 .trace = callback ? trace_told : NULL);
}

static int pick_first(const void *obj, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	return ((const struct item *)obj)->id == 1;
}

// An object that rt_drop_now has dropped leads to nothing, even when another
// object of its span waits for its destructor.  The object that it led to is
// gone, and a new object may have that address.
TEST(what_is_kept_never_leads_on_again, .n = 2)
{
	struct item **root;
	void *child;
	int k;

	begin_checked();
	k = make_deep_kind(_i == 1);
	root = (struct item **)heap_table(3, RT_ROOT_EXACT);
	root[0] = make_of(k, 1);
	root[1] = make_of(k, 2);
	child = root[0]->ref = rt_alloc(1000);
	ck_assert_int_eq(rt_drop_now(k, pick_first, NULL), RT_OK);
	ck_assert_uint_eq(dropped[1], 1);
	ck_assert_uint_eq(heap_live_after_gc(), 2);
	while (root[2] != child)
		root[2] = rt_alloc(1000);
	root[1] = NULL;
	gc();
	ck_assert_uint_eq(ready(), 1);
	root[2] = NULL;
	told = 0;
	gc();
	ck_assert(!rt_is_heap(child));
	ck_assert_uint_eq(told, 0);
	heap_healthy();
	ck_assert_uint_eq(rt_run_finalizers(0), 1);
	root[0] = NULL;
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	ck_assert_int_eq(rt_kind_unregister(k), RT_OK);
}

// An object that rt_drop_now has dropped leads to nothing while rt_drop_now
// runs again, whether the object is small or large.
static void drop_and_collect(void *obj, size_t size, void *arg)
{
	(void)obj;
	(void)size;
	(void)arg;
	gc();
}

TEST(what_is_kept_does_not_lead_on_in_the_next_call, .n = 4)
{
	static const size_t sizes[] = {100, 32000, 40000, 100000};
	struct item **root;
	int k;

	begin_checked();
	k = kind_make(.layout = RT_LAYOUT_TRACE,
		      .flags = RT_KIND_DROP | RT_KIND_DROP_DEEP,
		      .drop = drop_and_collect, .trace = trace_told);
	root = (struct item **)heap_table(2, RT_ROOT_EXACT);
	root[0] = rt_alloc_of(k, sizes[_i]);
	root[0]->id = 1;
	root[0]->ref = rt_alloc(1000);
	ck_assert_int_eq(rt_drop_now(k, pick_first, NULL), RT_OK);
	gc();
	gc();
	root[1] = make_of(k, 2);
	told = 0;
	ck_assert_int_eq(rt_drop_now(k, NULL, NULL), RT_OK);
	ck_assert_uint_eq(told, 0);
	heap_healthy();
	root[0] = root[1] = NULL;
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	ck_assert_int_eq(rt_kind_unregister(k), RT_OK);
}

// ---- calls that end early ----

GROUP(ends, .setup = begin_checked, .timeout = 60);

static int ending_kind;

static void drop_into_region(void *obj, size_t size, void *arg)
{
	drop_item(obj, size, arg);
	expect(rt_blocking_enter() == RT_OK);
}

static void drop_into_stop(void *obj, size_t size, void *arg)
{
	drop_item(obj, size, arg);
	expect(rt_stop_the_world(RT_STOP_HOST) == RT_OK);
}

// If a destructor leaves a region, a stop or a no-GC stretch open, the call of
// rt_drop_now ends.  The other objects are as before.
static void drop_into_stretch(void *obj, size_t size, void *arg)
{
	drop_item(obj, size, arg);
	ck_assert_int_eq(rt_nogc_enter(), RT_OK);
}

static rt_drop_fn *const leaving[] = {drop_into_region, drop_into_stop,
				      drop_into_stretch};

static void end_what_was_left(int i)
{
	must(i == 0   ? rt_blocking_leave()
	     : i == 1 ? rt_start_the_world(NULL)
		      : rt_nogc_leave());
}

TEST(a_region_a_stop_or_a_stretch_left_open_ends_the_call, .n = 3)
{
	void **root = (void **)heap_table(100, 0);
	int k = make_kind(0, leaving[_i], NULL);

	for (size_t i = 0; i < 100; i++)
		root[i] = make_of(k, i);
	ck_assert_int_eq(rt_drop_now(k, NULL, NULL),
			 _i == 1 ? RT_EBUSY : RT_ESTATE);
	end_what_was_left(_i);
	ck_assert_uint_eq(drops_run, 1);
	ck_assert_uint_eq(ready(), 0);
	heap_healthy();
	gc();
	ck_assert(only_dropped_died(root, 100));
	memset(root, 0, 100 * sizeof *root);
	gc();
	ck_assert_uint_eq(ready(), 99);
	heap_healthy();
}

// The rest of the batch goes on later.
TEST(what_is_left_open_ends_a_run_of_destructors, .n = 3)
{
	int k = make_kind(0, leaving[_i], NULL);

	for (size_t i = 0; i < 3; i++)
		make_of(k, i);
	gc();
	for (size_t i = 1; i <= 3; i++) {
		ck_assert_uint_eq(rt_run_finalizers(0), 1);
		end_what_was_left(_i);
		ck_assert_uint_eq(drops_run, i);
	}
	ck_assert_uint_eq(ready(), 0);
	gc();
	heap_healthy();
}

// pick_and_report makes statistics contradict each other, so the warn handler
// is called after the stop.
static int pick_and_report(const void *obj, size_t size, void *arg)
{
	rt_memstats m;

	(void)obj, (void)size;
	gauge_add(&gauges.other_sys, 4096);
	ck_assert_int_eq(rt_read_memstats(&m), RT_OK);
	gauge_add(&gauges.other_sys, -4096);
	return arg == NULL;
}

static void warn_and_leave(const char *text, void *arg)
{
	(void)text;
	leaving[(uintptr_t)arg]((void *)&(struct item){0}, sizeof(struct item),
				NULL);
}

// The warn handler runs between the stop and the first destructor.
TEST(what_the_warn_handler_leaves_open_ends_the_call, .n = 3)
{
	void **root = (void **)heap_table(1, 0);
	int k = make_kind(0, drop_item, NULL);

	root[0] = make_of(k, 1);
	ck_assert_int_eq(rt_set_memstats_double_check(RT_CHECK_REPORT), RT_OK);
	must(rt_set_warn_handler(warn_and_leave, (void *)(intptr_t)_i));
	ck_assert_int_eq(rt_drop_now(k, pick_and_report, NULL),
			 _i == 1 ? RT_EBUSY : RT_ESTATE);
	end_what_was_left(_i);
	ck_assert_int_eq(rt_set_warn_handler(NULL, NULL), RT_OK);
	ck_assert_uint_eq(dropped[1], 0);
	ck_assert_int_eq(rt_is_heap(root[0]), 1);
	heap_healthy();
	ck_assert_int_eq(rt_drop_now(k, NULL, NULL), RT_OK);
	ck_assert_uint_eq(dropped[1], 1);
}

static struct item *freed_now;

static void set_span(struct mspan *s)
{
	uint64_t page = arena_offset((uintptr_t)freed_now) >> RT_PAGE_SHIFT;

	atomic_ptr_store_release(&arena.spans[page], s);
}

// drop_beside_free leaves the heap as if another thread were freeing an object
// by hand.  The other thread has removed the span of the page, but has not yet
// changed the pageword, which this thread has read.
static void drop_beside_free(void *obj, size_t size, void *arg)
{
	drop_into_stretch(obj, size, arg);
	set_span(NULL);
}

// While a call ends because of an open no-GC stretch, other threads run and may
// free objects.
TEST(an_object_is_freed_by_hand_while_a_call_ends)
{
	void **root = (void **)heap_table(3, 0);
	int k = make_kind(0, drop_beside_free, NULL);
	struct mspan *s;

	root[0] = freed_now = rt_alloc_kind(k, 40000);
	for (size_t i = 1; i < 3; i++)
		root[i] = make_of(k, i);
	ck_assert_uint_gt((uintptr_t)root[1], (uintptr_t)freed_now);
	s = arena_span(arena_offset((uintptr_t)freed_now) >> RT_PAGE_SHIFT);
	ck_assert_int_eq(rt_drop_now(k, pick_small, NULL), RT_ESTATE);
	set_span(s);
	ck_assert_int_eq(rt_nogc_leave(), RT_OK);
	ck_assert_uint_eq(drops_run, 1);
	ck_assert(only_dropped_died(root, 3));
	ck_assert_int_eq(rt_free(freed_now), RT_OK);
	root[0] = NULL;
	heap_healthy();
}

static size_t exits;

static void drop_exiting(void *obj, size_t size, void *arg)
{
	drop_item(obj, size, arg);
	if (exits++ == 0)
		pthread_exit(NULL);
}

static void *run_and_exit(void *arg)
{
	expect(rt_thread_attach(RT_THREAD_EXACT) == RT_OK);
	if (arg)
		rt_drop_now(ending_kind, NULL, NULL);
	else
		rt_run_finalizers(0);
	abort();
}

// A thread that exits in a destructor runs no other one.  The destructors that
// are left can run on another thread.
TEST(a_thread_exits_in_a_destructor, .n = 2)
{
	void **root = (void **)heap_table(100, 0);
	pthread_t thread;

	ending_kind = make_kind(0, drop_exiting, NULL);
	for (size_t i = 0; i < 100; i++)
		root[i] = make_of(ending_kind, i);
	if (_i == 0) {
		memset(root, 0, 100 * sizeof *root);
		gc();
	}
	thread = start_thread(run_and_exit, _i == 0 ? NULL : root);
	join_beside(thread);
	heap_healthy();
	ck_assert_uint_eq(ready(), _i == 0 ? 99 : 0);
	drop_all(ending_kind, _i == 1, 99);
	memset(root, 0, 100 * sizeof *root);
	gc();
	each_dropped_once(100);
	ck_assert_uint_eq(heap_live(), 0);
	heap_healthy();
}

// In the mode that polls, a finished batch is freed where the thread polls.
TEST(a_finished_batch_is_freed_where_the_thread_polls)
{
	int k = make_kind(0, drop_into_region, NULL);

	make_of(k, 0);
	gc();
	must(rt_set_finalize_mode(RT_FINALIZE_POLL, NULL, NULL));
	ck_assert_uint_eq(rt_run_finalizers(0), 1);
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	ck_assert_uint_eq(heap_live(), 1);
	rt_safepoint();
	ck_assert_uint_eq(heap_live(), 0);
}
