// Fibers that migrate between threads, while the heap is collected.
#include "test/whole/stack.h"

// Each fiber holds a list in its frame, and makes a new one each time it runs.
// Any thread that finds a fiber suspended runs it.
enum {
	FIBERS = 40,
	RUNNERS = 4,
	SWITCHES = 20000 / HEAP_CUT,
	LENGTH = 8,
};

struct migrant {
	struct fiber fiber;
	atomic_u32 taken;
	uint64_t seed;
	unsigned wrong;
	rt_stack *stack;
};

static struct migrant migrants[FIBERS];
static atomic_u32 stop_migrating;

struct cell {
	struct cell *next;
	uint64_t number;
};

static unsigned list_wrong(const struct cell *list, uint64_t first)
{
	for (unsigned i = 0; i < LENGTH; i++, list = list->next)
		if (!list || list->number != first + i)
			return 1;
	return list != NULL;
}

static RT_NOINLINE struct cell *list_new(uint64_t first)
{
	struct cell *list = NULL;

	for (unsigned i = LENGTH; i-- > 0;) {
		struct cell *c = rt_alloc(sizeof *c);

		c->next = list;
		c->number = first + i;
		list = c;
	}
	return list;
}

static void migrate(struct fiber *f)
{
	struct migrant *m = f->arg;
	struct rng r = {m->seed};

	while (atomic_u32_load_acquire(&stop_migrating) == 0) {
		uint64_t number = rng_next(&r) >> 8;
		struct cell *volatile list = list_new(number);

		fiber_yield(f);
		m->wrong += list_wrong(list, number);
	}
}

static void *run_fibers(void *arg)
{
	struct rng r = {(uintptr_t)arg};
	rt_stack_desc d;
	void *saved = NULL;

	must(rt_thread_attach(0));
	rt_stack_desc_init(&d);
	d.flags = RT_STACK_THREAD;
	d.sp = &saved;
	if (rng_below(&r, 2))
		ck_assert_ptr_nonnull(heap_stack(&d));
	for (unsigned i = 0; i < SWITCHES; i++) {
		struct migrant *m = &migrants[rng_below(&r, FIBERS)];

		if (!atomic_u32_cas_acquire(&m->taken, 0, 1))
			continue;
		fiber_resume(&m->fiber);
		atomic_u32_store_release(&m->taken, 0);
		if (rng_below(&r, 2000) == 0)
			must(rt_gc());
	}
	must(rt_thread_detach());
	return arg;
}

GROUP(migrants, .setup = begin_exact, .timeout = 60);

TEST(fibers_migrate_between_threads)
{
	pthread_t thread[RUNNERS];
	struct rng r;

	must(rt_set_gc_percent(20, NULL));
	rng_init(&r, __func__);
	for (unsigned i = 0; i < FIBERS; i++) {
		fiber_make(&migrants[i].fiber, STACK, migrate, &migrants[i]);
		migrants[i].seed = rng_next(&r);
		migrants[i].stack = fiber_register(&migrants[i].fiber, 0);
	}
	for (unsigned i = 0; i < RUNNERS; i++)
		thread[i] =
		    start_thread(run_fibers, (void *)(uintptr_t)rng_next(&r));
	for (unsigned i = 0; i < RUNNERS; i++)
		join_beside(thread[i]);
	atomic_u32_store_release(&stop_migrating, 1);
	for (unsigned i = 0; i < FIBERS; i++) {
		fiber_resume(&migrants[i].fiber);
		ck_assert(migrants[i].fiber.done);
		ck_assert_uint_eq(migrants[i].wrong, 0);
		must(rt_stack_unregister(migrants[i].stack));
		fiber_free(&migrants[i].fiber);
	}
	ck_assert_uint_eq(warnings, 0);
	ck_assert_uint_eq(heap_live_after_gc(), 0);
	heap_healthy();
}
