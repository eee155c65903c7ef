// Destructors: which objects are dead, when their destructors run, and when
// their memory is free.
#include <sys/mman.h>

#include "test/harness/thread.h"
#include "test/whole/drop.h"

GROUP(deaths, .setup = begin_checked, .timeout = 60);

TEST(an_object_that_dies_is_dropped_once_when_asked)
{
	void **root = (void **)heap_table(1, 0);
	struct item *item = make(7);

	root[0] = item;
	gc();
	ck_assert_uint_eq(ready(), 0);
	root[0] = NULL;
	ck_assert_uint_eq(heap_live_after_gc(), 1);
	ck_assert_uint_eq(ready(), 1);
	ck_assert_uint_eq(dropped[7], 0);
	gc();
	ck_assert_uint_eq(ready(), 1);
	ck_assert_uint_eq(rt_run_finalizers(0), 1);
	ck_assert_uint_eq(dropped[7], 1);
	ck_assert_uint_eq(ready(), 0);
	ck_assert_uint_eq(heap_live(), 0);
	ck_assert_uint_eq(rt_run_finalizers(0), 0);
	gc();
	ck_assert_uint_eq(dropped[7], 1);
	heap_healthy();
}

TEST(the_dead_are_no_objects)
{
	struct item *item = make(1);
	uintptr_t at = (uintptr_t)item;

	ck_assert(rt_is_heap(item));
	gc();
	item = (struct item *)at;
	ck_assert(!rt_is_heap(item));
	ck_assert_uint_eq(rt_size(item), 0);
	ck_assert_ptr_null(rt_base(&item->id));
	ck_assert_int_eq(rt_kind_of(item), RT_ENOENT);
	ck_assert_int_eq(rt_free(item), RT_EINVAL);
	ck_assert_ptr_null(rt_realloc(kind, item, 100));
	ck_assert_int_eq(rt_resize(item, 8), RT_EINVAL);
	ck_assert_uint_eq(item->id, 1);
	ck_assert_uint_eq(ready(), 1);
	ck_assert_uint_eq(rt_run_finalizers(0), 1);
}

static int count_walked(void *obj, size_t size, int k, void *arg)
{
	(void)obj;
	(void)size;
	ck_assert_int_eq(k, kind);
	++*(size_t *)arg;
	return 0;
}

TEST(a_walk_leaves_out_the_dead)
{
	void **root = (void **)heap_table(1, 0);
	size_t n = 0;

	root[0] = make(0);
	make(1);
	gc();
	ck_assert_int_eq(rt_heap_walk(count_walked, &n), RT_OK);
	ck_assert_uint_eq(n, 1);
}

// A type that is mapped alone, so that a later look at it is a fault.
static rt_type *map_type(void)
{
	rt_type *t = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(t, MAP_FAILED);
	t->struct_size = sizeof *t;
	t->size = sizeof(struct item);
	t->drop = drop_item;
	must(rt_type_check(t));
	return t;
}

// The dead need their type until their destructors have run, and not longer.
TEST(a_type_is_needed_until_its_dead_are_dropped, .n = 2)
{
	int k = kind_make(.name = "typed", .layout = RT_LAYOUT_HEADER,
			  .type_offset = RT_TYPE_IS_HEADER,
			  .header_mask = UINT64_MAX, .flags = RT_KIND_DROP);
	rt_type *t = map_type();
	size_t n = 0;

	for (uint64_t i = 0; i < 100; i++)
		make_of(k, i)->ref = t;
	gc();
	must(rt_heap_walk(count_walked, &n));
	ck_assert_uint_eq(n, 0);
	ck_assert_uint_eq(ready(), 100);
	ck_assert_uint_eq(rt_run_finalizers(_i == 0 ? 0 : 99),
			  _i == 0 ? 100 : 99);
	if (_i == 1)
		ck_assert_uint_eq(rt_run_finalizers(0), 1);
	ck_assert_uint_eq(ready(), 0);
	ck_assert_int_eq(munmap(t, 4096), 0);
	gc();
	heap_healthy();
	must(rt_kind_unregister(k));
}

TEST(the_dead_of_every_size_are_dropped, .n = 2)
{
	static const size_t sizes[] = {32,    48,    1024,   8192,
				       32760, 32800, 200000, 5 << 20};
	size_t n = RT_ARRAY_LEN(sizes);

	for (size_t i = 0; i < n; i++) {
		struct item *item = rt_alloc_kind(kind, sizes[i]);

		ck_assert_ptr_nonnull(item);
		item->id = i;
	}
	gc();
	ck_assert_uint_eq(ready(), n);
	heap_healthy();
	if (_i == 0) {
		ck_assert_uint_eq(rt_run_finalizers(0), n);
	} else {
		for (size_t i = 0; i < n; i++) {
			ck_assert_uint_eq(rt_run_finalizers(1), 1);
			heap_healthy();
			// The dead stay until all of them were dropped.
			ck_assert_uint_eq(heap_live(), i + 1 == n ? 0 : n);
		}
	}
	each_dropped_once(n);
	heap_healthy();
	gc();
	ck_assert_uint_eq(heap_live(), 0);
}

// The memory of many dead objects is used again, and statistics stay exact.
TEST(many_are_dropped_and_freed, .n = 3)
{
	for (unsigned round = 0; round < 3; round++) {
		memset(dropped, 0, sizeof dropped);
		for (size_t i = 0; i < MANY; i++) {
			make(i);
			if (_i != 0 && i % 3 == 0)
				rt_alloc(32);
		}
		gc();
		ck_assert_uint_eq(ready(), MANY);
		if (_i == 2)
			gc();
		heap_healthy();
		ck_assert_uint_eq(rt_run_finalizers(0), MANY);
		heap_healthy();
		each_dropped_once(MANY);
		ck_assert_uint_eq(heap_live(), 0);
	}
}

// make_neighbours makes MANY objects, of which those with even numbers die.  It
// returns the roots of all.
static void **make_neighbours(void)
{
	void **root = (void **)heap_table(MANY, 0);

	for (size_t i = 0; i < MANY; i++)
		root[i] = make(i);
	gc();
	for (size_t i = 0; i < MANY; i += 2)
		root[i] = NULL;
	gc();
	ck_assert_uint_eq(ready(), MANY / 2);
	return root;
}

static void even_ones_were_dropped(void)
{
	size_t wrong = 0;

	for (size_t i = 0; i < MANY; i++)
		wrong += dropped[i] != (i % 2 == 0);
	ck_assert_uint_eq(wrong, 0);
}

// Every second object of each span dies.  The others stay alive and unchanged.
TEST(neighbours_of_the_dead_live)
{
	void **root = make_neighbours();
	size_t wrong = 0;

	for (size_t i = 1; i < MANY; i += 2)
		wrong += ((struct item *)root[i])->id != i;
	ck_assert_uint_eq(wrong, 0);
	while (rt_run_finalizers(100) != 0)
		heap_live();
	heap_healthy();
	ck_assert_uint_eq(heap_live(), MANY / 2);
	even_ones_were_dropped();
	// The free slots are used again.
	for (size_t i = 0; i < MANY; i += 2)
		root[i] = make(i);
	gc();
	ck_assert_uint_eq(ready(), 0);
	heap_healthy();
}

// Neighbours of the dead are freed by hand while the dead wait.
TEST(neighbours_of_the_dead_are_freed_by_hand)
{
	void **root = make_neighbours();
	size_t refused = 0;

	for (size_t i = 1; i < MANY; i += 2) {
		refused += rt_free(root[i]) != RT_OK;
		root[i] = NULL;
	}
	ck_assert_uint_eq(refused, 0);
	heap_healthy();
	ck_assert_uint_eq(heap_live(), MANY / 2);
	gc();
	ck_assert_uint_eq(rt_run_finalizers(0), MANY / 2);
	ck_assert_uint_eq(heap_live(), 0);
	even_ones_were_dropped();
	heap_healthy();
}

TEST(free_and_realloc_drop_nothing)
{
	struct item *item = make(1);
	void **root = (void **)heap_table(1, 0);

	ck_assert_int_eq(rt_free(item), RT_OK);
	ck_assert_int_eq(rt_free(item), RT_EINVAL);
	root[0] = make(2);
	root[0] = rt_realloc(kind, root[0], 4000);
	ck_assert_ptr_nonnull(root[0]);
	ck_assert_uint_eq(((struct item *)root[0])->id, 2);
	root[0] = rt_realloc(kind, root[0], 100000);
	ck_assert_ptr_nonnull(root[0]);
	gc();
	ck_assert_uint_eq(ready(), 0);
	ck_assert_uint_eq(heap_live(), 1);
	root[0] = NULL;
	gc();
	ck_assert_uint_eq(rt_run_finalizers(0), 1);
	ck_assert_uint_eq(dropped[1], 0);
	ck_assert_uint_eq(dropped[2], 1);
}

// ---- what the dead refer to ----

static void drop_pair(void *obj, size_t size, void *arg)
{
	const struct item *item = obj;

	// The other object died too.  Whatever the order of drops, it is
	// still there.
	ck_assert(pair_is_whole(item) && !rt_is_heap(item->ref));
	drop_item(obj, size, arg);
}

TEST(those_that_die_together_stay_together, .n = 4)
{
	size_t n = 1000 / HEAP_CUT;
	int pairs = make_kind(0, drop_pair, NULL);
	size_t ran = 0;

	for (size_t i = 0; i < n; i++)
		pair_up(make_of(pairs, i), make_of(pairs, n + i));
	gc();
	while (ready() != 0) {
		ran += rt_run_finalizers(_i == 0 ? 0 : 7);
		if (_i >= 2)
			gc();
		// Objects that die meanwhile belong to another batch.
		if (_i == 3 && ran < 2 * n)
			make_of(kind, 2 * n);
	}
	each_dropped_once(2 * n);
	heap_healthy();
}

// A dead object of a shallow kind keeps nothing.  One of a deep kind keeps all
// that it reaches: objects of other kinds, and other dead objects with what
// these reach.
TEST(what_a_deep_one_reaches_stays)
{
	struct item *shallow = make(1), *deep = make_of(deep_kind, 2),
		    *through = make(3);

	shallow->ref = rt_alloc(64);
	deep->ref = rt_alloc(64);
	((void **)deep->ref)[0] = through;
	((void **)deep->ref)[1] = rt_alloc_noscan(5000);
	through->ref = rt_alloc(64);
	ck_assert_uint_eq(heap_live_after_gc(), 6);
	ck_assert_uint_eq(ready(), 3);
	ck_assert(rt_is_heap(deep->ref));
	ck_assert(rt_is_heap(through->ref));
	ck_assert_uint_eq(heap_live_after_gc(), 6);
	heap_healthy();
	ck_assert_uint_eq(rt_run_finalizers(0), 3);
	ck_assert_uint_eq(heap_live(), 3);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	heap_healthy();
}

// Two dead objects in a cycle do not keep each other from being dropped.
TEST(a_cycle_of_deep_ones_is_dropped)
{
	struct item *a = make_of(deep_kind, 1), *b = make_of(deep_kind, 2);

	a->ref = b;
	b->ref = a;
	gc();
	ck_assert_uint_eq(rt_run_finalizers(0), 2);
	ck_assert_uint_eq(heap_live(), 0);
}

// A word of a root that leads to a dead object changes nothing.
TEST(a_stale_word_does_not_revive)
{
	void **root = (void **)heap_table(2, 0);
	struct item *a = make(1), *b = make_of(deep_kind, 2);
	struct item *large = rt_alloc_kind(kind, 100000);

	large->id = 3;
	a->ref = rt_alloc(64);
	b->ref = rt_alloc(64);
	gc();
	root[0] = a;
	root[1] = b;
	ck_assert_uint_eq(heap_live_after_gc(), 4);
	root[1] = large;
	ck_assert_uint_eq(heap_live_after_gc(), 4);
	ck_assert_uint_eq(ready(), 3);
	heap_healthy();
	ck_assert_uint_eq(rt_run_finalizers(0), 3);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	heap_healthy();
}

// ---- in a destructor ----

static void drop_nested(void *obj, size_t size, void *arg)
{
	drop_item(obj, size, arg);
	ck_assert_uint_eq(rt_run_finalizers(0), 0);
	ck_assert_uint_eq(rt_run_finalizers(1), 0);
	ck_assert_int_eq(rt_drop_now(kind, NULL, NULL), RT_EBUSY);
	ck_assert_int_eq(rt_thread_detach(), RT_EBUSY);
	ck_assert_int_eq(rt_fini(), RT_EBUSY);
}

TEST(destructors_do_not_nest)
{
	int k = make_kind(0, drop_nested, NULL);

	for (uint64_t i = 0; i < 3; i++)
		make_of(k, i);
	gc();
	ck_assert_uint_eq(rt_run_finalizers(0), 3);
}

static void **drop_roots;

static void drop_busy(void *obj, size_t size, void *arg)
{
	void *p = rt_alloc(100);
	rt_handle *h = rt_handle_new(p);

	drop_item(obj, size, arg);
	gc();
	ck_assert_ptr_eq(rt_handle_get(h), p);
	ck_assert(rt_is_heap(p));
	ck_assert_int_eq(rt_handle_free(h), RT_OK);
	ck_assert_int_eq(rt_free(p), RT_OK);
	ck_assert_int_eq(rt_roots_add(drop_roots, drop_roots + 1, 0), RT_OK);
	ck_assert_int_eq(rt_roots_remove(drop_roots, drop_roots + 1), RT_OK);
	// A new one dies in a later collection, and is dropped in a later
	// batch.
	if (((struct item *)obj)->id < 100)
		make_of(*(int *)arg, ((struct item *)obj)->id + 100);
	heap_live();
}

TEST(destructors_allocate_collect_and_register)
{
	int k;
	size_t ran = 0;

	k = make_kind(0, drop_busy, &k);
	drop_roots = calloc(1, sizeof *drop_roots);
	for (uint64_t i = 0; i < 20; i++)
		make_of(k, i);
	gc();
	ck_assert_uint_eq(rt_run_finalizers(0), 20);
	ck_assert_uint_eq(ready(), 19);
	gc();
	while (ready() != 0) {
		ran += rt_run_finalizers(0);
		gc();
	}
	ck_assert_uint_eq(ran, 20);
	for (uint64_t i = 0; i < 20; i++) {
		ck_assert_uint_eq(dropped[i], 1);
		ck_assert_uint_eq(dropped[i + 100], 1);
	}
	ck_assert_uint_eq(heap_live(), 0);
	heap_healthy();
}

// ---- types ----

static void drop_by_type(void *obj, size_t size, void *arg)
{
	ck_assert_uint_ge(size, sizeof(struct item));
	ck_assert_str_eq(arg, "type");
	dropped[((struct item *)obj)->id]++;
}

static const uint64_t second = 2;
static const rt_type with_drop =
    RT_TYPE_INIT(32, 16, &second, 0, 0, NULL, NULL, NULL, drop_by_type, NULL,
		 (char *)"type", "with", 0);
static const rt_type without_drop = RT_TYPE_INIT(
    32, 16, &second, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, "without", 0);

// The destructor of an object's type drops it.  If neither its type nor its
// kind has a destructor, none runs.
TEST(types_have_destructors, .n = 3)
{
	static const rt_type *const table[] = {&with_drop, &without_drop};
	rt_kind_desc d;
	struct item *item;
	int k;

	rt_kind_desc_init(&d);
	d.flags = RT_KIND_DROP;
	d.layout = _i == 0   ? RT_LAYOUT_HEADER
		   : _i == 1 ? RT_LAYOUT_INDEX
			     : RT_LAYOUT_TYPE;
	d.header_mask = _i == 2 ? 0 : UINT64_MAX;
	if (_i == 0)
		d.type_offset = RT_TYPE_IS_HEADER;
	if (_i == 1) {
		d.types = table;
		d.ntypes = 2;
	}
	if (_i == 2)
		d.type = &with_drop;
	k = rt_kind_register(&d);
	ck_assert_int_gt(k, 0);
	for (uintptr_t i = 0; i < 2; i++) {
		item = make_of(k, i);
		item->ref = _i == 1 ? (void *)i : (void *)(uintptr_t)table[i];
	}
	gc();
	ck_assert_uint_eq(rt_run_finalizers(0), 2);
	ck_assert_uint_eq(dropped[0], 1);
	ck_assert_uint_eq(dropped[1], _i == 2);
	ck_assert_uint_eq(heap_live(), 0);
}

// ---- the end of a kind ----

TEST(a_kind_with_dead_objects_is_busy)
{
	make(1);
	ck_assert_int_eq(rt_kind_unregister(kind), RT_EBUSY);
	gc();
	ck_assert_int_eq(rt_kind_unregister(kind), RT_EBUSY);
	ck_assert_uint_eq(rt_run_finalizers(0), 1);
	ck_assert_int_eq(rt_kind_unregister(kind), RT_OK);
	ck_assert_int_eq(rt_kind_unregister(deep_kind), RT_OK);
	gc();
	heap_healthy();
	// The number is used again, without destructors.
	ck_assert_int_eq(kind_make(.layout = RT_LAYOUT_WORDS, .number = kind),
			 kind);
	make(2);
	gc();
	ck_assert_uint_eq(ready(), 0);
	ck_assert_uint_eq(heap_live(), 0);
}

// rt_fini runs no destructors.
TEST(an_end_runs_no_destructors)
{
	for (uint64_t i = 0; i < 10; i++)
		make(i);
	gc();
	ck_assert_int_eq(rt_fini(), RT_OK);
	ck_assert_uint_eq(drops_run, 0);
	begin_checked();
	ck_assert_uint_eq(ready(), 0);
	ck_assert_uint_eq(rt_run_finalizers(0), 0);
	ck_assert_uint_eq(drops_run, 0);
	heap_healthy();
}

// ---- modes ----

TEST(poll_mode_runs_them_at_safepoints)
{
	make(1);
	gc();
	rt_safepoint();
	ck_assert_uint_eq(dropped[1], 0);
	must(rt_set_finalize_mode(RT_FINALIZE_POLL, NULL, NULL));
	ck_assert_uint_eq(dropped[1], 0);
	rt_safepoint();
	ck_assert_uint_eq(dropped[1], 1);
	make(2);
	gc();
	ck_assert_uint_eq(dropped[2], 0);
	rt_safepoint();
	ck_assert_uint_eq(dropped[2], 1);
	must(rt_set_finalize_mode(RT_FINALIZE_MANUAL, NULL, NULL));
	make(3);
	gc();
	rt_safepoint();
	ck_assert_uint_eq(dropped[3], 0);
}

static void *some[100];

static void *alloc_many(void)
{
	return rt_alloc_many(RT_WORDS, 64, 100, some) ? some : NULL;
}

static void *alloc_typed(void)
{
	static const uint64_t first_word[] = {1};
	static const rt_type type = {.struct_size = sizeof(rt_type),
				     .size = 64,
				     .ptrdata = 8,
				     .bitmap = first_word};

	return rt_alloc_typed(&type, 1);
}

static void *alloc_item(void)
{
	return make(3);
}

#define BY(name, ...)                                                          \
	static void *alloc_by_##name(void)                                     \
	{                                                                      \
		return __VA_ARGS__;                                            \
	}
BY(words, rt_alloc(64))
BY(noscan, rt_alloc_noscan(24))
BY(size, rt_alloc(100000))
BY(aligned, rt_alloc_aligned(RT_WORDS, 256, 1000))
BY(strdup, rt_strdup("text"))
BY(stack, rt_stack_alloc(4096))
BY(handle, rt_handle_new(rt_alloc(64)))
#undef BY

// The roots of the thread are exact.
static void *alloc_by_realloc(void)
{
	void *p = rt_alloc(100);
	RT_FRAME(&p);

	return rt_realloc(RT_WORDS, p, 1000);
}

static void *(*const allocations[])(void) = {
    alloc_by_words,   alloc_by_noscan, alloc_by_size,  alloc_by_aligned,
    alloc_by_realloc, alloc_by_strdup, alloc_by_stack, alloc_by_handle,
    alloc_many,	      alloc_typed,     alloc_item,
};

// One object is ready before, and one becomes ready when an allocation
// collects.  Both destructors wait for the safepoint.
TEST(no_allocation_runs_a_destructor, .n = RT_ARRAY_LEN(allocations))
{
	uint64_t cycles;

	must(rt_set_finalize_mode(RT_FINALIZE_POLL, NULL, NULL));
	make(1);
	gc();
	make(2);
	cycles = heap_stats().num_gc;
	ck_assert_int_eq(rt_set_gc_percent(100, NULL), RT_OK);
	while (heap_stats().num_gc == cycles)
		for (unsigned i = 0; i < 500; i++)
			ck_assert_ptr_nonnull(allocations[_i]());
	ck_assert_uint_ge(ready(), 2);
	ck_assert_uint_eq(drops_run, 0);
	rt_safepoint();
	ck_assert_uint_eq(dropped_once(3), 2);
	ck_assert_uint_eq(ready(), 0);
}

static size_t told, told_n;

static void tell(size_t n, void *arg)
{
	ck_assert_ptr_eq(arg, &told);
	ck_assert_int_eq(rt_world_stopped(), 0);
	told++;
	told_n = n;
}

TEST(the_host_is_told_that_destructors_are_ready)
{
	must(rt_set_finalize_mode(RT_FINALIZE_MANUAL, tell, &told));
	gc();
	ck_assert_uint_eq(told, 0);
	for (uint64_t i = 0; i < 5; i++)
		make(i);
	gc();
	ck_assert_uint_eq(told, 1);
	ck_assert_uint_eq(told_n, 5);
	gc();
	ck_assert_uint_eq(told, 1);
	make(5);
	gc();
	ck_assert_uint_eq(told, 2);
	ck_assert_uint_eq(told_n, 6);
	ck_assert_uint_eq(rt_run_finalizers(0), 6);
	must(rt_set_finalize_mode(RT_FINALIZE_MANUAL, NULL, NULL));
	make(6);
	gc();
	ck_assert_uint_eq(told, 2);
}

static void *alloc_outside_cache(void *arg)
{
	must(rt_thread_attach(RT_THREAD_EXACT));
	ck_assert_ptr_nonnull(alloc_by_size());
	must(rt_thread_detach());
	return arg;
}

// An allocation that collects does not call the ready callback.  The next
// allocation that the cache cannot serve does, on whatever thread it is.
TEST(an_allocation_tells_what_another_has_found, .n = 2)
{
	uint64_t cycles = heap_stats().num_gc;

	must(rt_set_finalize_mode(RT_FINALIZE_MANUAL, tell, &told));
	for (uint64_t i = 0; i < 5; i++)
		make(i);
	must(rt_set_gc_percent(100, NULL));
	while (heap_stats().num_gc == cycles)
		ck_assert_ptr_nonnull(alloc_by_size());
	must(rt_set_gc_percent(HEAP_QUIET, NULL));
	ck_assert_uint_eq(told, 0);
	if (_i == 0)
		alloc_by_size();
	else
		run_beside(alloc_outside_cache, NULL);
	ck_assert_uint_eq(told, 1);
	ck_assert_uint_eq(told_n, 5);
	alloc_by_size();
	ck_assert_uint_eq(told, 1);
}

// The mode and the callback belong to the heap.
TEST(a_new_heap_begins_without_mode_and_callback)
{
	must(rt_set_finalize_mode(RT_FINALIZE_POLL, tell, &told));
	must(rt_fini());
	begin_checked();
	make(1);
	gc();
	ck_assert_uint_eq(ready(), 1);
	rt_safepoint();
	ck_assert_uint_eq(told, 0);
	ck_assert_uint_eq(drops_run, 0);
	ck_assert_uint_eq(ready(), 1);
}

// ---- what the dead count for ----

TEST(what_has_no_bytes_has_no_destructor)
{
	ck_assert_ptr_nonnull(rt_alloc_kind(kind, 0));
	gc();
	ck_assert_uint_eq(ready(), 0);
	ck_assert_uint_eq(rt_run_finalizers(0), 0);
}

// The dead are allocated until they are freed, but they are not alive.
TEST(the_dead_are_allocated_but_not_alive, .n = 2)
{
	enum { N = 100, SIZE = 8192, SLACK = 32 << 10 };
	void **root = (void **)heap_table(N, 0);
	uint64_t live, alloc;

	for (size_t i = 0; i < N; i++)
		root[i] = rt_alloc_kind(kind, SIZE);
	gc();
	live = rt_heap_live();
	alloc = heap_stats().heap_alloc;
	ck_assert_uint_ge(live, N * SIZE);
	if (_i == 0) {
		memset(root, 0, N * sizeof *root);
		gc();
		ck_assert_uint_eq(ready(), N);
	} else {
		must(rt_drop_now(kind, NULL, NULL));
		ck_assert_uint_eq(drops_run, N);
	}
	ck_assert_uint_le(rt_heap_live() + N * SIZE, live + SLACK);
	ck_assert_uint_ge(heap_stats().heap_alloc, alloc);
}

// A collection could not free the dead, so their bytes do not hasten the next
// one.
TEST(the_dead_do_not_hasten_a_collection)
{
	enum { GOAL = 4 << 20, LARGE = 1 << 20, MARGIN = 512 << 10 };
	uint64_t cycles;

	for (unsigned i = 0; i < 8; i++)
		ck_assert_ptr_nonnull(rt_alloc_kind(kind, LARGE));
	must(rt_set_heap_min(GOAL, NULL));
	must(rt_set_gc_percent(100, NULL));
	gc();
	ck_assert_uint_eq(ready(), 8);
	cycles = heap_stats().num_gc;
	while (rt_heap_live() < GOAL - MARGIN && heap_stats().num_gc == cycles)
		ck_assert_ptr_nonnull(alloc_by_size());
	ck_assert_uint_eq(heap_stats().num_gc, cycles);
	// The goal holds for what is alive.
	while (heap_stats().num_gc == cycles) {
		ck_assert_uint_le(rt_heap_live(), GOAL + MARGIN);
		ck_assert_ptr_nonnull(alloc_by_size());
	}
}

static size_t warnings;

static void warn(const char *text, void *arg)
{
	(void)arg;
	warnings++;
	ck_assert_ptr_nonnull(strstr(text, "wait for their destructors"));
}

TEST(the_host_is_warned_once_of_what_waits)
{
	enum { LARGE = 1 << 20 };

	ck_assert_int_eq(rt_set_warn_handler(warn, NULL), RT_OK);
	for (uint64_t i = 0; i < 3; i++)
		rt_alloc_kind(kind, LARGE);
	gc();
	ck_assert_uint_eq(warnings, 0);
	gc();
	ck_assert_uint_eq(warnings, 1);
	gc();
	ck_assert_uint_eq(warnings, 1);
	ck_assert_uint_eq(rt_run_finalizers(0), 3);
	for (uint64_t i = 0; i < 3; i++)
		rt_alloc_kind(kind, LARGE);
	gc();
	gc();
	ck_assert_uint_eq(warnings, 1);
	ck_assert_int_eq(rt_set_warn_handler(NULL, NULL), RT_OK);
}
