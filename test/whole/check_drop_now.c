// Destructors beside what else a heap does: the end of one interpreter, forks,
// memory that runs out, other threads, and all settings.
#include "test/harness/await.h"
#include "test/harness/thread.h"
#include "test/whole/drop.h"
#include "test/whole/fork.h"

// ---- rt_drop_now ----

GROUP(now, .setup = begin_checked, .timeout = 60);

static int pick_odd(const void *obj, size_t size, void *arg)
{
	expect(rt_size(obj) == size);
	++*(size_t *)arg;
	return ((const struct item *)obj)->id % 2 == 1;
}

// When one of two interpreters ends, the host picks its objects.  They are
// dropped, and all others stay as they are.
TEST(what_is_picked_is_dropped_though_it_is_reachable)
{
	void **root = (void **)heap_table(MANY, 0);
	size_t asked = 0, wrong = 0;

	for (size_t i = 0; i < MANY; i++)
		root[i] = make(i);
	ck_assert_int_eq(rt_drop_now(kind, pick_odd, &asked), RT_OK);
	ck_assert_uint_eq(asked, MANY);
	for (size_t i = 0; i < MANY; i++)
		wrong += dropped[i] != i % 2;
	ck_assert_uint_eq(wrong, 0);
	ck_assert(only_dropped_died(root, MANY));
	ck_assert_uint_eq(ready(), 0);
	// While something refers to the dropped objects, their memory is not
	// used again.
	gc();
	ck_assert_uint_eq(heap_live(), MANY);
	heap_healthy();
	for (size_t i = 1; i < MANY; i += 2)
		root[i] = NULL;
	gc();
	ck_assert_uint_eq(heap_live(), MANY / 2);
	heap_healthy();
	for (size_t i = 0; i < MANY; i += 2)
		wrong += ((struct item *)root[i])->id != i;
	ck_assert_uint_eq(wrong, 0);
	// None is dropped again.
	ck_assert_int_eq(rt_drop_now(kind, pick_odd, &asked), RT_OK);
	ck_assert_uint_eq(asked, MANY + MANY / 2);
	ck_assert_uint_eq(drops_run, MANY / 2);
}

TEST(all_of_a_kind_are_dropped_and_the_kind_ends)
{
	void **root = (void **)heap_table(3, 0);

	root[0] = make(0);
	root[1] = rt_alloc_kind(kind, 100000);
	((struct item *)root[1])->id = 1;
	root[2] = make_of(deep_kind, 2);
	ck_assert_int_eq(rt_drop_now(kind, NULL, NULL), RT_OK);
	ck_assert_uint_eq(dropped[0], 1);
	ck_assert_uint_eq(dropped[1], 1);
	ck_assert_uint_eq(dropped[2], 0);
	ck_assert_int_eq(rt_kind_unregister(kind), RT_EBUSY);
	root[0] = root[1] = NULL;
	gc();
	ck_assert_int_eq(rt_kind_unregister(kind), RT_OK);
	ck_assert_uint_eq(heap_live(), 1);
	ck_assert_int_eq(rt_drop_now(kind, NULL, NULL), RT_EINVAL);
	ck_assert_int_eq(rt_drop_now(RT_WORDS, NULL, NULL), RT_EINVAL);
	ck_assert_int_eq(rt_drop_now(-1, NULL, NULL), RT_EINVAL);
	ck_assert_int_eq(rt_drop_now(32, NULL, NULL), RT_EINVAL);
}

// The callback is asked about objects that wait for their drop, too.  Objects
// that it does not pick continue to wait, whether a batch was begun or not.
TEST(what_waits_is_asked_too, .n = 3)
{
	size_t asked = 0, first;

	for (size_t i = 0; i < 100; i++)
		make(i);
	gc();
	if (_i != 0)
		first = rt_run_finalizers(_i == 1 ? 10 : 99);
	else
		first = 0;
	ck_assert_int_eq(rt_drop_now(kind, pick_none, NULL), RT_OK);
	ck_assert_uint_eq(ready(), 100 - first);
	heap_live();
	for (size_t i = 100; i < 200; i++)
		make(i);
	gc();
	ck_assert_int_eq(rt_drop_now(kind, NULL, &asked), RT_OK);
	ck_assert_uint_eq(ready(), 0);
	heap_live();
	each_dropped_once(200);
	gc();
	make(200);
	gc();
	ck_assert_uint_eq(rt_run_finalizers(0), 1);
	gc();
	ck_assert_uint_eq(heap_live(), 0);
	heap_healthy();
}

// An object that waited, and that rt_drop_now has dropped, is free after the
// next collection, even if no batch comes.
TEST(no_batch_is_needed_for_what_waited)
{
	void **root = (void **)heap_table(100, 0);

	for (size_t i = 0; i < 200; i++) {
		struct item *item = make(i);

		if (i < 100)
			root[i] = item;
	}
	gc();
	ck_assert_uint_eq(ready(), 100);
	ck_assert_int_eq(rt_drop_now(kind, NULL, NULL), RT_OK);
	heap_healthy();
	memset(root, 0, 100 * sizeof *root);
	gc();
	ck_assert_uint_eq(heap_live(), 0);
	ck_assert_int_eq(rt_kind_unregister(kind), RT_OK);
	heap_healthy();
}

static int pick_second(const void *obj, size_t size, void *arg)
{
	(void)arg, (void)size;
	return ((const struct item *)obj)->id % 2 == 1;
}

// An object that rt_drop_now has dropped, and that something refers to, stays
// when a batch ends on the same page.  Before the call it was alive, or waited
// for its destructor.
TEST(a_batch_frees_none_that_is_referred_to, .n = 2)
{
	void **root = (void **)heap_table(100, 0);
	static uintptr_t hidden[100];

	for (size_t i = 0; i < 100; i++) {
		root[i] = make(i);
		hidden[i] = ~(uintptr_t)root[i];
		if (_i == 1 && i % 2 == 1)
			root[i] = NULL;
	}
	if (_i == 1)
		gc();
	ck_assert_uint_eq(ready(), _i == 1 ? 50 : 0);
	ck_assert_int_eq(rt_drop_now(kind, pick_second, NULL), RT_OK);
	for (size_t i = 0; i < 100; i++)
		root[i] = (void *)~hidden[i];
	gc();
	for (size_t i = 0; i < 100; i += 2)
		root[i] = NULL;
	gc();
	ck_assert_uint_eq(rt_run_finalizers(0), 50);
	each_dropped_once(100);
	ck_assert_uint_eq(heap_live_after_gc(), 50);
	heap_healthy();
	memset(root, 0, 100 * sizeof *root);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
}

static int pick_some(const void *obj, size_t size, void *arg)
{
	(void)arg, (void)size;
	return ((const struct item *)obj)->id % 3 == 0;
}

// rt_drop_now picks some of the objects that wait, and some of those that live.
// Batches and collections come before and after.
TEST(batches_and_picks_alternate)
{
	void **root = (void **)heap_table(MANY, 0);
	size_t wrong = 0;

	for (size_t i = 0; i < MANY; i++)
		root[i] = make(i);
	for (size_t i = 0; i < MANY; i += 2)
		root[i] = NULL;
	gc();
	ck_assert_uint_eq(rt_run_finalizers(MANY / 7), MANY / 7);
	heap_healthy();
	ck_assert_int_eq(rt_drop_now(kind, pick_some, NULL), RT_OK);
	heap_healthy();
	for (size_t i = 0; i < MANY; i += 3)
		wrong += dropped[i] != 1;
	ck_assert_uint_eq(wrong, 0);
	gc();
	heap_healthy();
	while (rt_run_finalizers(MANY / 7) != 0)
		heap_live();
	for (size_t i = 0; i < MANY; i++)
		wrong += dropped[i] != (i % 3 == 0 || i % 2 == 0);
	ck_assert_uint_eq(wrong, 0);
	memset(root, 0, MANY * sizeof *root);
	gc();
	rt_run_finalizers(0);
	each_dropped_once(MANY);
	gc();
	ck_assert_uint_eq(heap_live(), 0);
	heap_healthy();
}

static void drop_collecting(void *obj, size_t size, void *arg)
{
	const struct item *item = obj;

	drop_item(obj, size, arg);
	if (item->id % 50 == 0) {
		make(1000);
		gc();
		heap_live();
	}
	ck_assert_uint_eq(rt_run_finalizers(0), 0);
	ck_assert_int_eq(rt_drop_now(kind, NULL, NULL), RT_EBUSY);
}

TEST(destructors_collect_meanwhile)
{
	int k = make_kind(0, drop_collecting, NULL);
	void **root = (void **)heap_table(500, 0);

	for (size_t i = 0; i < 500; i++)
		root[i] = make_of(k, i);
	ck_assert_int_eq(rt_drop_now(k, NULL, NULL), RT_OK);
	each_dropped_once(500);
	ck_assert_uint_eq(ready(), 10);
	ck_assert_uint_eq(rt_run_finalizers(0), 10);
	memset(root, 0, 500 * sizeof *root);
	gc();
	ck_assert_uint_eq(heap_live(), 0);
	heap_healthy();
}

// ---- forks ----

GROUP(forks, .setup = begin_checked, .timeout = 60);

static void rest_is_dropped(void)
{
	verify();
	expect(rt_finalizers_ready() == 60);
	expect(rt_run_finalizers(0) == 60);
	expect(dropped_once(100) == 100);
	collect();
	expect(stats().heap_objects == 0);
}

// A batch that was begun goes on in the child.
TEST(a_batch_goes_on_in_the_child)
{
	for (size_t i = 0; i < 100; i++)
		make(i);
	gc();
	ck_assert_uint_eq(rt_run_finalizers(40), 40);
	fork_and(rest_is_dropped);
	rest_is_dropped();
}

static atomic_u32 reached, go_on;

static size_t waits_at; // the destructor with this number waits

static void drop_waiting(void *obj, size_t size, void *arg)
{
	drop_item(obj, size, arg);
	if (drops_run != waits_at)
		return;
	atomic_u32_store_release(&reached, 1);
	expect(rt_blocking_enter() == RT_OK);
	while (atomic_u32_load_acquire(&go_on) == 0)
		oscall_yield();
	expect(rt_blocking_leave() == RT_OK);
}

static int waiting_kind;

// begin_waiting starts a thread, and returns when it waits in a destructor.
static pthread_t begin_waiting(void *(*fn)(void *), void *arg)
{
	pthread_t thread = start_thread(fn, arg);

	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	await_at_least(&reached, 1);
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	return thread;
}

static void end_waiting(pthread_t thread)
{
	atomic_u32_store_release(&go_on, 1);
	join_beside(thread);
}

static void *run_all(void *arg)
{
	expect(rt_thread_attach(RT_THREAD_EXACT) == RT_OK);
	if (arg)
		expect(rt_drop_now(waiting_kind, NULL, NULL) == RT_OK);
	else
		expect(rt_run_finalizers(0) == 100);
	expect(rt_thread_detach() == RT_OK);
	return NULL;
}

static void are_as_before(void)
{
	verify();
	expect(rt_finalizers_ready() == 0);
	expect(drops_run == 40);
	collect();
	expect(rt_drop_now(waiting_kind, NULL, NULL) == RT_OK);
	expect(drops_run == 100);
	expect(dropped_once(100) == 100);
}

// In the child the thread that ran destructors is gone.  The rest of a batch is
// ready there, and the rest of what rt_drop_now picked lives.
TEST(a_fork_comes_while_another_thread_drops, .n = 2)
{
	void **root = (void **)heap_table(100, 0);
	pthread_t thread;

	waits_at = 40;
	waiting_kind = make_kind(0, drop_waiting, NULL);
	for (size_t i = 0; i < 100; i++)
		root[i] = make_of(waiting_kind, i);
	if (_i == 0) {
		memset(root, 0, 100 * sizeof *root);
		gc();
	}
	thread = begin_waiting(run_all, _i == 0 ? NULL : root);
	ck_assert_uint_eq(rt_run_finalizers(0), 0);
	ck_assert_int_eq(rt_drop_now(kind, NULL, NULL), RT_EBUSY);
	ck_assert_uint_eq(ready(), 60);
	heap_live();
	fork_and(_i == 0 ? rest_is_dropped : are_as_before);
	gc();
	end_waiting(thread);
	ck_assert_uint_eq(ready(), 0);
	heap_healthy();
}

enum { LIVE = 50 };
static void **fork_root;

static int pick_high(const void *obj, size_t size, void *arg)
{
	(void)size, (void)arg;
	return ((const struct item *)obj)->id >= 10;
}

static void *drop_high(void *arg)
{
	expect(rt_thread_attach(RT_THREAD_EXACT) == RT_OK);
	expect(rt_drop_now(waiting_kind, pick_high, NULL) == RT_OK);
	expect(rt_thread_detach() == RT_OK);
	return arg;
}

// Each object that lived and was not dropped is alive.  Each object that was
// dead and was not dropped dies again.
static void lives_again(void)
{
	verify();
	expect(only_dropped_died(fork_root, LIVE));
	collect();
	verify();
	rt_run_finalizers(0);
	expect(only_dropped_died(fork_root, LIVE));
	for (size_t i = LIVE; i < 2 * LIVE; i++)
		expect(dropped[i] == 1);
	expect(rt_drop_now(waiting_kind, NULL, NULL) == RT_OK);
	expect(dropped_once(2 * LIVE) == 2 * LIVE);
	memset(fork_root, 0, LIVE * sizeof *fork_root);
	collect();
	collect();
	verify();
	expect(stats().heap_objects == 0);
}

// rt_drop_now has picked objects that lived and objects that waited, and each
// span may hold both.
TEST(what_was_picked_lives_or_waits_in_the_child, .n = 2)
{
	pthread_t thread;

	fork_root = (void **)heap_table(LIVE, 0);
	waits_at = 1;
	waiting_kind = make_kind(0, drop_waiting, NULL);
	for (size_t i = 0; i < LIVE; i++) {
		struct item *first = make_of(waiting_kind, _i ? i : LIVE + i),
			    *then = make_of(waiting_kind, _i ? LIVE + i : i);

		fork_root[i] = _i ? first : then;
	}
	gc();
	ck_assert_uint_eq(ready(), LIVE);
	thread = begin_waiting(drop_high, NULL);
	fork_and(lives_again);
	end_waiting(thread);
	heap_healthy();
}

static void in_child(void)
{
	verify();
	expect(rt_run_finalizers(0) == 0);
	collect();
}

static void drop_forking(void *obj, size_t size, void *arg)
{
	drop_item(obj, size, arg);
	if (((struct item *)obj)->id % 40 == 0)
		fork_and(in_child);
}

TEST(a_destructor_forks, .n = 2)
{
	int k = make_kind(0, drop_forking, NULL);

	for (size_t i = 0; i < 100; i++)
		make_of(k, i);
	if (_i == 0) {
		gc();
		ck_assert_uint_eq(rt_run_finalizers(0), 100);
	} else {
		ck_assert_int_eq(rt_drop_now(k, NULL, NULL), RT_OK);
	}
	gc();
	ck_assert_uint_eq(heap_live(), 0);
	heap_healthy();
}

// ---- memory that runs out ----

enum { LIMIT = 64 << 20, LARGE = 1 << 20 };

static void begin_limited(void)
{
	rt_config c = heap_config(100);

	c.max_heap = LIMIT;
	begin_drops(c);
}

GROUP(limit, .setup = begin_limited, .timeout = 120);

static size_t asked_oom;

static int run_in_handler(size_t n, void *arg)
{
	(void)n, (void)arg;
	asked_oom++;
	return rt_run_finalizers(0) != 0;
}

// Dead objects fill the heap.  The handler has them dropped, and the allocation
// finds their memory.
TEST(a_handler_runs_destructors_and_asks_again)
{
	void **root = (void **)heap_table(1, 0);
	size_t made = 0;

	root[0] = make(0);
	while (rt_alloc_kind(kind, LARGE))
		made++;
	ck_assert_uint_ge(made, LIMIT / LARGE - 2);
	ck_assert_uint_eq(ready(), made);
	ck_assert_int_eq(rt_set_oom_handler(run_in_handler, NULL), RT_OK);
	for (size_t i = 0; i < 4 * made; i++)
		ck_assert_ptr_nonnull(rt_alloc_kind(kind, LARGE));
	ck_assert_uint_ge(asked_oom, 4);
	ck_assert_ptr_null(rt_alloc(LIMIT));
	ck_assert_int_eq(rt_set_oom_handler(NULL, NULL), RT_OK);
	heap_healthy();
}

static int drop_in_handler(size_t n, void *arg)
{
	void **root = arg;

	(void)n;
	ck_assert_int_eq(rt_drop_now(kind, pick_small, NULL), RT_OK);
	root[1] = NULL; // makes room
	return asked_oom++ == 0;
}

// The handler drops the object that is being moved.  Then there is nothing to
// move.
TEST(an_object_that_is_dropped_meanwhile_is_not_moved)
{
	void **root = (void **)heap_table(2, 0);
	struct item *item = make(1);

	root[0] = item;
	root[1] = rt_alloc_noscan(LARGE);
	while (rt_alloc_uncollectable(RT_NOSCAN, LARGE))
		continue;
	while (rt_alloc_uncollectable(RT_NOSCAN, 8192))
		continue;
	ck_assert_int_eq(rt_set_oom_handler(drop_in_handler, root), RT_OK);
	ck_assert_ptr_null(rt_realloc(kind, item, 100000));
	ck_assert_int_eq(rt_set_oom_handler(NULL, NULL), RT_OK);
	ck_assert_uint_eq(asked_oom, 1);
	ck_assert_uint_eq(dropped[1], 1);
	ck_assert_int_eq(rt_is_heap(item), 0);
	heap_healthy();
	root[0] = NULL;
	gc();
	heap_healthy();
	ck_assert_uint_eq(drops_run, 1);
}

// The heap is full, so work buffers cannot grow, and markers note the pages to
// scan again (overflow.h).  All dead objects are found even so.
TEST(dead_graphs_are_found_without_work_buffers, .n = 2)
{
	void **root = (void **)heap_table(1, RT_ROOT_EXACT);
	int k = _i == 0 ? kind : deep_kind;
	size_t n = 0;
	void **row;

	// Each wide object has a thousand references that wait to be followed.
	for (;;) {
		row = rt_alloc_kind(RT_WORDS, 8192);
		if (!row)
			break;
		row[0] = root[0];
		root[0] = row;
		for (size_t i = 4; i < 1024; i++) {
			struct item *item = rt_alloc_kind(k, sizeof *item);

			if (!item)
				break;
			row[i] = item;
			item->ref = row;
			n++;
		}
	}
	ck_assert_uint_gt(n, 100000);
	gc();
	ck_assert_uint_eq(ready(), 0);
	heap_healthy();
	root[0] = NULL;
	gc();
	ck_assert_uint_eq(ready(), n);
	heap_healthy();
	ck_assert_uint_eq(rt_run_finalizers(0), n);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	heap_healthy();
}

// ---- settings ----

static const struct setting {
	const char *name;
	rt_config c;
} settings_of[] = {
    {"plain", {.gc_percent = 100}},
    {"align8", {.gc_percent = 100, .align8 = 1}},
    {"stress", {.gc_percent = 100, .gcstress = 7}},
    {"guards", {.gc_percent = 100, .guard_large = 1, .guard_small = 5}},
    {"clobber", {.gc_percent = 100, .clobberfree = 1}},
    {"poison", {.gc_percent = 100, .poison = 1}},
    {"past end", {.gc_percent = 100, .past_end = 1}},
    {"helpers", {.gc_percent = 100, .gc_threads = 3}},
};

GROUP(settings, .timeout = 120);

// Objects of every small size die again and again, and are dropped at once, in
// pieces, or late.  Each is dropped once, and statistics agree.
TEST(every_setting, .n = 3 * RT_ARRAY_LEN(settings_of))
{
	const struct setting *s = &settings_of[_i / 3];
	rt_config c = heap_config(100);
	enum { ROOTS = 64 };
	void **root;
	size_t made = 0, n = MANY / (s->c.gcstress ? 10 : 1);

	c.align8 = s->c.align8;
	c.gcstress = s->c.gcstress;
	c.guard_large = s->c.guard_large;
	c.guard_small = s->c.guard_small;
	c.clobberfree = s->c.clobberfree;
	c.poison = s->c.poison;
	c.past_end = s->c.past_end;
	c.gc_threads = s->c.gc_threads;
	c.heap_min = 1 << 20;
	c.checkmark = _i % 3 == 0;
	begin_drops(c);
	root = (void **)heap_table(ROOTS, 0);
	for (size_t i = 0; i < n; i++) {
		size_t size = sizeof(struct item) + i * 37 % 3000;
		struct item *item =
		    rt_alloc_kind(i % 5 ? kind : deep_kind, size);

		ck_assert_ptr_nonnull(item);
		item->id = made++;
		item->ref = root[i % ROOTS];
		item->other = rt_alloc(16 + i % 100);
		root[i * 7 % ROOTS] = i % 11 ? item : NULL;
		if (_i % 3 == 0 || (_i % 3 == 1 && i % 16 == 0))
			rt_run_finalizers(_i % 3 == 0 ? 0 : 10);
	}
	memset(root, 0, ROOTS * sizeof *root);
	gc();
	heap_healthy();
	while (rt_run_finalizers(0) != 0)
		gc();
	each_dropped_once(made);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	heap_healthy();
}

// Objects of one word have a destructor, too.  With align8 two of them would
// share a granule, so each takes 16 bytes.
static atomic_u32 words_dropped;

static void drop_word(void *obj, size_t size, void *arg)
{
	ck_assert_uint_eq(size, 16);
	ck_assert_ptr_eq(obj, *(void **)obj);
	atomic_u32_add_relaxed(&words_dropped, 1);
	(void)arg;
}

TEST(words_are_dropped, .n = 2)
{
	rt_config c = heap_config(HEAP_QUIET);
	int k;

	c.align8 = _i;
	begin_drops(c);
	k = make_kind(0, drop_word, NULL);
	for (size_t i = 0; i < 1000; i++) {
		void **p = rt_alloc_kind(k, 8);

		*p = p;
	}
	gc();
	ck_assert_uint_eq(rt_run_finalizers(0), 1000);
	ck_assert_uint_eq(atomic_u32_load_relaxed(&words_dropped), 1000);
	heap_healthy();
}

// ---- threads ----

enum { THREADS = 4 };
static atomic_u32 dropped_in_all;

static void drop_counted(void *obj, size_t size, void *arg)
{
	struct item *item = obj;

	(void)size, (void)arg;
	expect(item->id == (uintptr_t)obj);
	item->id = 0;
	atomic_u32_add_relaxed(&dropped_in_all, 1);
	if (item->spare % 64 == 0)
		rt_alloc(64);
}

static int counted_kind;

static void *make_and_run(void *arg)
{
	size_t n = MANY;

	expect(rt_thread_attach(RT_THREAD_EXACT) == RT_OK);
	for (size_t i = 0; i < n; i++) {
		struct item *item =
		    rt_alloc_kind(counted_kind, sizeof *item + i % 200);

		item->id = (uintptr_t)item;
		item->spare = i;
		expect(rt_is_heap(item));
		if (i % 1000 == 0)
			rt_run_finalizers(i % 3000);
		rt_safepoint();
	}
	expect(rt_thread_detach() == RT_OK);
	return arg;
}

static atomic_u32 looking;

// look looks up addresses while the other threads run.  Its thread is not
// attached.
static void *look(void *arg)
{
	uintptr_t lo = arena.base;
	uint64_t x = 88172645463325252u;

	while (atomic_u32_load_acquire(&looking)) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		rt_size((void *)(lo + x % (8 << 20)));
		rt_kind_of((void *)(lo + x % (1 << 20)));
	}
	return arg;
}

TEST(threads_drop_what_others_made, .n = 2)
{
	rt_config c = heap_config(100);
	pthread_t thread[THREADS], looker;

	c.heap_min = 1 << 20;
	begin_drops(c);
	if (_i == 1)
		must(rt_set_finalize_mode(RT_FINALIZE_POLL, NULL, NULL));
	counted_kind = make_kind(0, drop_counted, NULL);
	atomic_u32_store_release(&looking, 1);
	looker = start_thread(look, NULL);
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	for (int i = 0; i < THREADS; i++)
		thread[i] = start_thread(make_and_run, NULL);
	for (int i = 0; i < THREADS; i++)
		join_thread(thread[i]);
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	atomic_u32_store_release(&looking, 0);
	join_thread(looker);
	gc();
	while (rt_run_finalizers(0) != 0)
		gc();
	ck_assert_uint_eq(atomic_u32_load_relaxed(&dropped_in_all),
			  THREADS * MANY);
	ck_assert_uint_eq(heap_live(), 0);
	heap_healthy();
}
