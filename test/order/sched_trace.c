// Stops come while a thread writes a trace, however long that takes.
#define RT_NO_INLINE_ALLOC
#include <rt/rt.h>

#include <fcntl.h>
#include <unistd.h>

#include "test/order/host.h"

static struct hand writer;

// begin makes a heap without attached threads.  Its trace goes to /dev/null.
static void begin(void)
{
	rt_config c = heap_config(HEAP_QUIET);
	int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);

	ck_assert_int_ge(nowhere, 0);
	ck_assert_int_eq(dup2(nowhere, STDERR_FILENO), STDERR_FILENO);
	close(nowhere);
	c.no_attach = 1;
	c.gc_threads = 0;
	c.gctrace = c.scavtrace = 1;
	heap_start(c);
}

static void release_pages(void)
{
	host_attach();
	must(rt_free_os_memory());
	host_detach();
}

static const struct {
	enum schedpoint at;
	void (*fn)(void);
} writes[] = {
    {SCHED_GCTRACE_WRITE, host_collect},
    {SCHED_GCTRACE_FORCED, release_pages},
};

GROUP(trace, .setup = begin, .timeout = 2 * AWAIT_SECONDS);

// A write may take long, to a terminal or to a file on a network.  So a thread
// that writes is blocked.
TEST(a_stop_does_not_wait_for_a_thread_that_writes_a_trace,
     .n = RT_ARRAY_LEN(writes))
{
	const struct rt_proc *p;

	hold_at(writes[_i].at, &writer, writes[_i].fn);
	p = proc_first();
	ck_assert_ptr_nonnull(p);
	ck_assert_ptr_null(proc_next(p));
	ck_assert_uint_eq(atomic_u32_load_acquire(&p->state), PROC_BLOCKED);
	stop();
	start();
	let_end(writes[_i].at, &writer);
	host_attach();
	heap_healthy();
	must(rt_fini());
}
