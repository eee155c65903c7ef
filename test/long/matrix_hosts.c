// matrix_hosts.c - what hosts do in the cells of stress_matrix.
#include "test/long/matrix.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/atomic.h"
#include "test/harness/fiber.h"

enum {
	FIBERS = 6,
	FIBER_STACK = 256 << 10,
	FIBER_LIVE = 8, // objects on its stack
	DROPS = 4,	// objects with destructors that a step makes
	DROP_SIZE = 48,
	FORK_EVERY = 64, // destructors
	MOST_FORKS = 2,	 // by destructors, of a cell
};

static const uint64_t undropped = UINT64_C(0x600d0b1ec7600d00);

// A part of the C library that has data, and that nothing else here needs.
static const char library[] = "libresolv.so.2";

// What was done in all cells.
static struct {
	atomic_u64 migrations; // of fibers
	atomic_u64 forks;      // in destructors
	atomic_u64 kinds;      // that ended
} done;

struct host_fiber {
	struct fiber fiber;
	rt_stack *stack;
	uintptr_t last; // thread that ran it
	struct rng rng;
};

static struct {
	struct hosts does;
	struct host_fiber fiber[FIBERS];
	atomic_ptr free[FIBERS]; // those that no thread runs
	int drop_kind;
	// Of the thread that runs destructors.
	struct rng rng;
	uint64_t dropped;
	unsigned forks;
	uintptr_t range[4];
} hosts;

// ---- fibers ----

// A fiber may run on another thread after each switch.  So the function that
// switches leaves all that depends on the thread to functions that it calls.
static RT_NOINLINE void fiber_step(struct host_fiber *f, struct object **live)
{
	struct object **slot = &live[rng_below(&f->rng, FIBER_LIVE)];

	matrix_object_check(*slot);
	*slot = matrix_object(&f->rng);
	for (unsigned garbage = 0; garbage < 4; garbage++)
		matrix_object(&f->rng);
	if (rng_below(&f->rng, 16) == 0)
		matrix_check(rt_gc() == RT_OK, "collect on a fiber");
	rt_safepoint();
	matrix_object_check(*slot);
}

static void run_fiber(struct fiber *fiber)
{
	struct host_fiber *f = fiber->arg;
	struct object *live[FIBER_LIVE] = {0};

	for (;;) {
		fiber_step(f, live);
		fiber_yield(fiber);
	}
}

static void begin_fibers(uint64_t seed)
{
	for (unsigned i = 0; i < FIBERS; i++) {
		struct host_fiber *f = &hosts.fiber[i];
		rt_stack_desc d;

		fiber_make(&f->fiber, FIBER_STACK, run_fiber, f);
		f->rng.state = seed + i;
		d = fiber_desc(&f->fiber, RT_STACK_DOWN);
		matrix_check(rt_stack_register(&d, &f->stack) == RT_OK,
			     "register a fiber");
		atomic_ptr_store_release(&hosts.free[i], f);
	}
}

static void end_fibers(void)
{
	for (unsigned i = 0; i < FIBERS; i++) {
		struct host_fiber *f = &hosts.fiber[i];

		matrix_check(rt_stack_unregister(f->stack) == RT_OK,
			     "unregister a fiber");
		fiber_free(&f->fiber);
	}
}

// migrate runs a fiber that another thread may have run before.
static void migrate(struct rng *rng)
{
	atomic_ptr *free = &hosts.free[rng_below(rng, FIBERS)];
	struct host_fiber *f = atomic_ptr_load_relaxed(free);

	if (!f || !atomic_ptr_cas_acquire(free, f, NULL))
		return;
	if (f->last != 0 && f->last != (uintptr_t)rt_thread_self())
		atomic_u64_add_relaxed(&done.migrations, 1);
	f->last = (uintptr_t)rt_thread_self();
	fiber_resume(&f->fiber);
	// Pairs with the acquire above, of the next thread.
	atomic_ptr_store_release(free, f);
}

// ---- destructors ----

static void *fork_once(void *arg)
{
	int child = fork();

	if (child == 0) {
		matrix_child();
		matrix_check(rt_blocking_leave() == RT_OK,
			     "leave in a child of a destructor");
		matrix_child_end();
	}
	matrix_wait_for(child);
	return arg;
}

static void drop(void *obj, size_t size, void *arg)
{
	uint64_t *word = obj;
	uintptr_t *range = hosts.range;

	(void)arg;
	matrix_check(size >= DROP_SIZE && *word == undropped &&
			 !rt_is_heap(obj),
		     "dropped twice, or changed");
	*word = 0;
	matrix_check(rt_roots_add(range, range + 4, RT_ROOT_WORDS) == RT_OK,
		     "register in a destructor");
	range[0] = (uintptr_t)matrix_object(&hosts.rng);
	rt_safepoint();
	matrix_object_check((struct object *)range[0]);
	if (++hosts.dropped % FORK_EVERY == 0 && hosts.forks < MOST_FORKS) {
		hosts.forks++;
		atomic_u64_add_relaxed(&done.forks, 1);
		matrix_check(rt_call_blocking(fork_once, &hosts) == &hosts,
			     "fork in a destructor");
		matrix_object_check((struct object *)range[0]);
	}
	range[0] = 0;
	matrix_check(rt_roots_remove(range, range + 4) == RT_OK,
		     "remove in a destructor");
}

static int register_kind(int layout, rt_trace_fn *trace, rt_drop_fn *fn)
{
	rt_kind_desc d;

	rt_kind_desc_init(&d);
	d.layout = layout;
	d.flags = fn ? RT_KIND_DROP : 0;
	d.drop = fn;
	d.trace = trace;
	return rt_kind_register(&d);
}

static void make_drops(uint32_t n)
{
	for (unsigned i = 0; i < DROPS; i++) {
		uint64_t *o = rt_alloc_of(hosts.drop_kind, DROP_SIZE);

		matrix_check(o != NULL, "no memory to drop");
		if (o)
			*o = undropped;
	}
	if (n % 3 == 1)
		rt_run_finalizers(n % 2 ? 0 : 3);
}

// ---- kinds ----

static void trace_both(rt_tracer *t, void *obj, size_t size, void *arg)
{
	void **word = obj;

	(void)size;
	(void)arg;
	rt_trace_ptr(t, word[0]);
	rt_trace_ptr(t, word[1]);
}

// begin_kind registers a kind, unless others have all numbers, and makes a list
// of its objects.
static int begin_kind(struct rng *rng)
{
	int kind = register_kind(RT_LAYOUT_TRACE, trace_both, NULL);
	void **volatile last = NULL;
	uint64_t n = 1 + rng_below(rng, 20);

	matrix_check(kind > 0 || kind == RT_ENOMEM, "register a kind");
	if (kind <= 0)
		return 0;
	for (uint64_t i = 0; i < n; i++) {
		void **o = rt_alloc_of(kind, 32);

		matrix_check(o != NULL, "no memory for a kind");
		if (!o)
			break;
		o[0] = (void *)last;
		last = o;
		o[1] = matrix_object(rng);
	}
	for (void **o = last; o; o = o[0])
		matrix_object_check(o[1]);
	return kind;
}

// The end of a kind may be refused, because a stale word of a stack may keep
// objects of the kind alive.
static void change_kind(struct rng *rng, int *kind)
{
	int error;

	if (*kind == 0) {
		*kind = begin_kind(rng);
		return;
	}
	error = rt_kind_unregister(*kind);
	matrix_check(error == RT_OK || error == RT_EBUSY, "unregister a kind");
	if (error != RT_OK)
		return;
	*kind = 0;
	atomic_u64_add_relaxed(&done.kinds, 1);
}

// ---- all of it ----

void hosts_begin(struct hosts h, uint64_t seed)
{
	memset(&hosts, 0, sizeof hosts);
	hosts.does = h;
	hosts.rng.state = seed;
	if (h.fibers)
		begin_fibers(seed);
	if (h.drops)
		hosts.drop_kind = register_kind(RT_LAYOUT_NONE, NULL, drop);
	matrix_check(hosts.drop_kind >= 0, "register a kind with drops");
	if (h.libraries)
		matrix_check(rt_roots_static(1) == RT_OK, "static data");
}

void hosts_end(void)
{
	if (hosts.does.fibers)
		end_fibers();
	hosts.does = (struct hosts){0};
}

const char *hosts_missed(void)
{
	if (atomic_u64_load_relaxed(&done.migrations) == 0)
		return "no fiber has migrated";
	if (atomic_u64_load_relaxed(&done.forks) == 0)
		return "no destructor has forked";
	if (atomic_u64_load_relaxed(&done.kinds) == 0)
		return "no kind has ended";
	return NULL;
}

void hosts_step(struct rng *rng, uint32_t n, int *kind)
{
	if (hosts.does.fibers)
		migrate(rng);
	if (hosts.does.drops)
		make_drops(n);
	if (hosts.does.kinds && n % 4 == 2)
		change_kind(rng, kind);
}

void hosts_load(void)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);

	matrix_check(handle != NULL, "load a library");
	if (handle)
		matrix_check(dlclose(handle) == 0, "unload a library");
}
