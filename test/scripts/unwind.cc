// unwind.cc - a host in C++ leaves the library's functions by exceptions, and
// by the unwinding of a thread that ends or is cancelled.
//
// test/scripts/unwind.sh compiles and runs it.
#include <pthread.h>
#include <rt/rt.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

static int passed, failed;

static void check(bool holds, const char *what)
{
	if (holds) {
		passed++;
	} else {
		failed++;
		std::printf("unwind: broken: %s\n", what);
	}
}

static bool allocates()
{
	return rt_alloc(64) != nullptr;
}

// ---- exceptions ----

static void *throw_number(void *arg)
{
	throw *static_cast<int *>(arg);
}

static void throw_out_of_a_call()
{
	int n = 42, caught = 0;

	try {
		rt_call_blocking(throw_number, &n);
	} catch (int x) {
		caught = x;
	}
	check(caught == 42, "the exception is caught");
	check(rt_blocking_leave() == RT_ESTATE, "the region has ended");
	check(allocates(), "the thread allocates after the exception");
	check(rt_gc() == RT_OK, "the thread collects after the exception");
}

// in_region makes a call inside a region: the inner call leaves the region
// alone.
static void *in_region(void *arg)
{
	try {
		rt_call_blocking(throw_number, arg);
	} catch (int) {
	}
	check(!allocates(), "the region outlives a call inside it");
	return arg;
}

static int throw_in_walk(void *, size_t, int, void *arg)
{
	throw *static_cast<int *>(arg);
}

static void throw_out_of_a_walk(bool own_stop)
{
	int n = 7, caught = 0;

	check(allocates(), "there is an object");
	if (own_stop)
		check(rt_stop_the_world(RT_STOP_HOST) == RT_OK, "a stop");
	try {
		rt_heap_walk(throw_in_walk, &n);
	} catch (int x) {
		caught = x;
	}
	check(caught == 7, "the exception of a walk is caught");
	check(rt_world_stopped() == own_stop, "a walk ends its own stop");
	if (own_stop)
		check(rt_start_the_world(nullptr) == RT_OK, "the start");
	check(allocates(), "the thread allocates after a walk");
}

static int throw_out_of_memory(size_t, void *arg)
{
	throw *static_cast<int *>(arg);
}

static void throw_out_of_a_handler()
{
	static void *held[100];
	int n = 3, caught = 0;

	rt_roots_add(held, held + 100, RT_ROOT_EXACT);
	rt_set_oom_handler(throw_out_of_memory, &n);
	try {
		for (void *&p : held)
			p = rt_alloc_noscan(size_t(1) << 20);
	} catch (int x) {
		caught = x;
	}
	rt_roots_remove(held, held + 100);
	rt_set_oom_handler(nullptr, nullptr);
	check(caught == 3, "the exception of a handler is caught");
	check(allocates(), "the thread allocates after a handler");
}

// A region as a C++ host would write it.
struct region {
	region() { rt_blocking_enter(); }
	~region() { rt_blocking_leave(); }
};

static void throw_out_of_a_region()
{
	int caught = 0;

	try {
		region r;
		throw 5;
	} catch (int x) {
		caught = x;
	}
	check(caught == 5 && allocates(), "a destructor leaves a region");
}

static void throw_out_of_a_block()
{
	void *a = nullptr;
	RT_FRAME(&a);
	rt_frame *const before = rt_frames_save();

	try {
		void *b = nullptr;
		RT_FRAME(&b);
		check(rt_frames_save() != before, "a block has a frame");
		throw 5;
	} catch (int) {
	}
	check(rt_frames_save() == before, "an exception ends a frame");
}

// ---- the end of a thread ----

static std::atomic<int> waiting;

static void *wait_for_ever(void *arg)
{
	waiting = 1;
	for (;;)
		pause();
	return arg;
}

static void *exit_thread(void *arg)
{
	pthread_exit(arg);
}

static bool outside_allocated;

struct outside {
	~outside() { outside_allocated = allocates(); }
};

struct way {
	void *(*leave)(void *);
	bool region; // entered by the host, not by a call
};

static void *leave_thread(void *arg)
{
	way *w = static_cast<way *>(arg);

	rt_thread_attach(0);
	outside o;
	if (w->region) {
		region r;
		w->leave(nullptr);
	} else {
		rt_call_blocking(w->leave, nullptr);
	}
	return arg;
}

static void end_thread(way w, const char *what)
{
	pthread_t thread;

	waiting = 0;
	outside_allocated = false;
	pthread_create(&thread, nullptr, leave_thread, &w);
	rt_blocking_enter();
	if (w.leave == wait_for_ever) {
		while (!waiting)
			usleep(1000);
		pthread_cancel(thread);
	}
	pthread_join(thread, nullptr);
	rt_blocking_leave();
	check(outside_allocated, what);
	check(rt_gc() == RT_OK, "a collection after a thread");
}

int main()
{
	rt_config c;
	int n = 1;

	rt_config_init(&c);
	c.max_heap = size_t(16) << 20;
	c.double_check = RT_CHECK_FATAL;
	if (rt_init(&c) != RT_OK)
		return 1;
	throw_out_of_a_call();
	rt_call_blocking(in_region, &n);
	throw_out_of_a_walk(false);
	throw_out_of_a_walk(true);
	throw_out_of_a_handler();
	throw_out_of_a_region();
	throw_out_of_a_block();
	end_thread({exit_thread, false}, "pthread_exit out of a call");
	end_thread({exit_thread, true}, "pthread_exit out of a region");
	end_thread({wait_for_ever, false}, "a cancelled call");
	end_thread({wait_for_ever, true}, "a cancelled region");
	check(rt_fini() == RT_OK, "the heap ends: no thread is left attached");
	std::printf("unwind: %d passed, %d failed\n", passed, failed);
	return failed != 0;
}
