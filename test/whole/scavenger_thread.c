// The scavenger's thread: it is made, woken and ended when it should be, and it
// releases free memory beside the program.
#define RT_NO_INLINE_ALLOC
#include "test/whole/scavenger.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>

#include "test/harness/await.h"
#include "test/harness/thread.h"

static bool runs(void)
{
	return atomic_u32_load_relaxed(&scavenger.runs) != 0;
}

static rt_config with_thread(void)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.max_procs = 1; // no helper
	c.scavenge = 1;
	c.sweep = 0; // a sweep beside the threads would make the thread
	return c;
}

static void make_garbage(void)
{
	fill(16);
	drop(0);
	must(rt_gc());
}

// await_released waits, as blocked, until less than a MiB is free and not
// released.
static void await_released(void)
{
	uint64_t end = nanotime() + AWAIT_SECONDS * SECOND;
	rt_memstats m;

	must(rt_blocking_enter());
	do {
		ck_assert_msg(nanotime() < end, "nothing was released");
		oscall_yield();
		must(rt_read_memstats_live(&m));
	} while (m.heap_idle - m.heap_released >= MIB);
	must(rt_blocking_leave());
}

static unsigned scavengers(void)
{
	DIR *dir = opendir("/proc/self/task");
	const struct dirent *entry;
	unsigned n = 0;

	ck_assert_ptr_nonnull(dir);
	while ((entry = readdir(dir)) != NULL)
		n += thread_is_named(entry->d_name, "rtheap scavenge");
	closedir(dir);
	return n;
}

// await_none waits for the system to forget a thread that was joined.
static void await_none(void)
{
	uint64_t end = nanotime() + AWAIT_SECONDS * SECOND;

	while (scavengers() != 0) {
		ck_assert_msg(nanotime() < end, "it runs on");
		oscall_yield();
	}
}

GROUP(thread, .timeout = 2 * AWAIT_SECONDS);

TEST(it_releases_beside_the_program)
{
	begin_as(with_thread());
	make_garbage();
	ck_assert(runs());
	must(rt_gc()); // nothing was in use, so nothing is kept
	await_released();
	heap_healthy();
	must(rt_fini());
}

// await_rest waits, as blocked, until the scavenger sleeps without a limit.
static void await_rest(void)
{
	enum { SLEPT = 2 }; // NOTE_SLEPT of runtime/os/lock.c
	uint64_t end = nanotime() + AWAIT_SECONDS * SECOND;

	must(rt_blocking_enter());
	while (atomic_u32_load_acquire(&scavenger.call.woken) != SLEPT) {
		ck_assert_msg(nanotime() < end, "it does not rest");
		oscall_yield();
	}
	must(rt_blocking_leave());
}

// The scavenger has no timer here, so only the collection can wake it.
TEST(a_collection_that_leaves_too_much_wakes_it)
{
	rt_config c = with_thread();

	c.idle_s = 0;
	begin_as(c);
	make_garbage();
	must(rt_gc());
	ck_assert(runs());
	await_released();
	await_rest();
	make_garbage();
	must(rt_gc());
	await_released();
	heap_healthy();
	must(rt_fini());
}

TEST(it_is_made_when_there_is_something_to_release)
{
	begin_as(with_thread());
	must(rt_gc());
	fill(1);
	drop(0);
	must(rt_gc());
	ck_assert(!runs());
	make_garbage();
	ck_assert(runs());
}

TEST(settings_forbid_it, .n = 2)
{
	rt_config c = with_thread();

	if (_i == 0)
		c.gc_threads = 0;
	else
		c.scavenge = 0;
	begin_as(c);
	make_garbage();
	must(rt_gc());
	must(rt_set_memory_limit(0, NULL));
	ck_assert(!runs());
}

// A limit may be set later, so free pages are reason enough to make the
// scavenger.
TEST(it_follows_a_limit_that_is_set_later)
{
	rt_config c = with_thread();

	c.idle_s = 0;
	begin_as(c);
	make_garbage();
	ck_assert(runs());
	must(rt_set_memory_limit(0, NULL));
	await_released();
	heap_healthy();
	must(rt_fini());
}

TEST(it_releases_what_each_burst_leaves)
{
	begin_as(with_thread());
	for (unsigned i = 0; i < 3; i++) {
		make_garbage();
		must(rt_gc());
		await_released();
	}
	heap_healthy();
	must(rt_fini());
}

TEST(a_refused_thread_is_tried_again)
{
	begin_as(with_thread());
	fault_fail(OSCALL_THREAD, 1, 1, EAGAIN);
	make_garbage();
	ck_assert_uint_eq(fault_failed(OSCALL_THREAD), 1);
	ck_assert(!runs());
	heap_healthy();
	must(rt_gc());
	ck_assert(runs());
	await_released();
	heap_healthy();
}

TEST(refused_memory_leaves_it_in_order)
{
	begin_as(with_thread());
	fault_fail(OSCALL_RELEASE, 1, UINT64_MAX, EINVAL);
	make_garbage();
	must(rt_gc());
	while (fault_failed(OSCALL_RELEASE) == 0)
		oscall_yield();
	heap_healthy();
	fault_fail(OSCALL_RELEASE, 1, 0, 0);
	must(rt_gc());
	await_released();
	heap_healthy();
	must(rt_fini());
}

// Without a clock the scavenger releases all the same, and does not spin
// afterwards.
TEST(refused_clocks_leave_it_in_order)
{
	begin_as(with_thread());
	fault_fail(OSCALL_CLOCK, 1, UINT64_MAX, EPERM);
	make_garbage();
	must(rt_gc());
	must(rt_blocking_enter());
	while (atomic_u32_load_relaxed(&scavenger.call.woken) == 1)
		oscall_yield();
	fault_fail(OSCALL_CLOCK, 1, 0, 0);
	must(rt_blocking_leave());
	await_released();
	heap_healthy();
	must(rt_fini());
}

TEST(the_end_of_the_heap_ends_it)
{
	for (unsigned i = 0; i < 3; i++) {
		begin_as(with_thread());
		make_garbage();
		must(rt_gc());
		ck_assert(runs());
		ck_assert_uint_eq(scavengers(), 1);
		await_released();
		must(rt_fini());
		ck_assert(!runs());
		await_none();
		free(objects);
	}
}
