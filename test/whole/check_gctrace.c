// The trace of collections: each line says what the record says, and no
// collection waits until a line can be written.
#define _GNU_SOURCE // ppoll, syscall
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "test/harness/fault.h"
#include "test/whole/gctrace.h"

enum { NOWAIT = 8 }; // RWF_NOWAIT

// ---- the format ----

static const struct {
	rt_cycle c;
	const char *line;
} formats[] = {
    {{.number = 0},
     "gc 0 @0.000s 0%: 0+0+0 ms clock, 0+0/0/0+0 ms cpu, "
     "0->0->0 MB, 0 MB goal, 0 MB stacks, 0 MB globals, 0 P\n"},
    {{.number = 7,
      .forced = 1,
      .start_ns = 12345678901,
      .gc_cpu_fraction = 0.0299,
      .stopping_ns = 20000,
      .prepare_ns = 6999,
      .mark_ns = 434999,
      .sweep_ns = 10000000,
      .finish_ns = 999999,
      .mark_cpu_ns = 1239999,
      .heap_start = 5 * MIB,
      .heap_flushed = 4 * MIB + 7,
      .heap_live = 3 * MIB - 1,
      .goal = 9 * MIB,
      .scan_stack = MIB,
      .scan_globals = 6 * MIB,
      .max_procs = 4},
     "gc 7 @12.345s 2%: 0.026+0.43+10 ms clock, 0.10+0/1.2/0+43 ms cpu, "
     "5->4->2 MB, 9 MB goal, 1 MB stacks, 6 MB globals, 4 P (forced)\n"},
    {{.number = UINT64_MAX,
      .start_ns = UINT64_MAX,
      .gc_cpu_fraction = 1,
      .stopping_ns = UINT64_MAX,
      .mark_ns = UINT64_MAX,
      .sweep_ns = UINT64_MAX,
      .mark_cpu_ns = UINT64_MAX,
      .heap_start = UINT64_MAX,
      .heap_flushed = UINT64_MAX,
      .heap_live = UINT64_MAX,
      .goal = UINT64_MAX,
      .scan_stack = UINT64_MAX,
      .scan_globals = UINT64_MAX,
      .max_procs = UINT32_MAX},
     "gc 18446744073709551615 @18446744073.709s 100%: "
     "18446744073709+18446744073709+18446744073709 ms clock, "
     "18446744073709+0/18446744073709/0+18446744073709 ms cpu, "
     "17592186044415->17592186044415->17592186044415 MB, "
     "17592186044415 MB goal, 17592186044415 MB stacks, "
     "17592186044415 MB globals, 4294967295 P\n"},
};

GROUP(format);

TEST(a_record_as_a_line, .n = RT_ARRAY_LEN(formats))
{
	struct text t;

	gctrace_format(&t, &formats[_i].c);
	ck_assert_str_eq(t.buf, formats[_i].line);
}

static const struct {
	rt_cycle c;
	const char *line;
} scav_formats[] = {
    {{.number = 0},
     "scav 0 KiB work (bg), 0 KiB work (eager), 0 KiB now, 0% util\n"},
    {{.scavenged_background = 5 * MIB + 1023,
      .scavenged_assist = 3 * 1024,
      .heap_released = 7 * MIB,
      .heap_inuse = 2 * MIB,
      .heap_idle = 8 * MIB},
     "scav 5120 KiB work (bg), 3 KiB work (eager), 7168 KiB now, "
     "66% util\n"},
    {{.scavenged_background = UINT64_MAX,
      .scavenged_assist = UINT64_MAX,
      .heap_released = UINT64_MAX,
      .heap_inuse = UINT64_MAX,
      .heap_idle = UINT64_MAX},
     "scav 18014398509481983 KiB work (bg), 18014398509481983 KiB work "
     "(eager), 18014398509481983 KiB now, 100% util\n"},
};

TEST(what_was_released_as_a_line, .n = RT_ARRAY_LEN(scav_formats))
{
	struct text t;

	gctrace_format_scav(&t, &scav_formats[_i].c);
	ck_assert_str_eq(t.buf, scav_formats[_i].line);
}

// ---- lines of a heap ----

static void start_both(unsigned trace, unsigned scavtrace)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.gctrace = (uint8_t)trace;
	c.scavtrace = (uint8_t)scavtrace;
	heap_start(c);
}

static void start(unsigned trace)
{
	start_both(trace, 0);
}

GROUP(lines, .timeout = 60);

TEST(a_line_is_the_record)
{
	int fd = pipe_to_stderr();
	char text[1000];

	start(1);
	for (int i = 0; i < 5; i++) {
		struct text want;
		rt_cycle c;

		rt_alloc_noscan(MIB << i);
		must(rt_gc());
		must(rt_read_cycle(0, &c));
		gctrace_format(&want, &c);
		ck_assert_uint_gt(take(fd, text, sizeof text), 0);
		ck_assert_str_eq(text, want.buf);
	}
	ck_assert_uint_eq(dropped(), 0);
}

// With both settings the line of the collection comes first.
TEST(a_scav_line_is_the_record, .n = 2)
{
	int fd = pipe_to_stderr();
	char text[1000];

	start_both((unsigned)_i, 1);
	for (int i = 0; i < 5; i++) {
		struct text gc = {.len = 0}, scav;
		rt_cycle c;

		rt_alloc_noscan(MIB << i);
		must(rt_gc());
		must(rt_read_cycle(0, &c));
		if (_i == 1)
			gctrace_format(&gc, &c);
		gctrace_format_scav(&scav, &c);
		ck_assert_uint_eq(take(fd, text, sizeof text),
				  gc.len + scav.len);
		ck_assert_int_eq(strncmp(text, gc.buf, gc.len), 0);
		ck_assert_str_eq(text + gc.len, scav.buf);
	}
	ck_assert_uint_eq(dropped(), 0);
}

// rt_free_os_memory has a line that says how much it released, after the line
// of its collection.
TEST(a_release_by_the_host_has_a_line)
{
	int fd = pipe_to_stderr();
	char text[1000], want[1000];
	rt_memstats before, after;
	struct text scav;
	rt_cycle c;

	start_both(0, 1);
	ck_assert_ptr_nonnull(rt_alloc_uncollectable(RT_NOSCAN, MIB));
	rt_alloc_noscan(8 * MIB);
	must(rt_gc());
	before = heap_stats();
	take(fd, text, sizeof text);
	must(rt_free_os_memory());
	after = heap_stats();
	must(rt_read_cycle(0, &c));
	gctrace_format_scav(&scav, &c);
	snprintf(want, sizeof want,
		 "%sscav 0 KiB work (bg), %" PRIu64 " KiB work (eager), "
		 "%" PRIu64 " KiB now, 100%% util (forced)\n",
		 scav.buf, (after.heap_released - before.heap_released) >> 10,
		 after.heap_released >> 10);
	ck_assert_uint_ge(after.heap_released - before.heap_released, 7 * MIB);
	take(fd, text, sizeof text);
	ck_assert_str_eq(text, want);
}

static atomic_u32 allocating, released;

// allocate_beside changes the sums of its P without a break, and needs no more
// memory.
static void *allocate_beside(void *arg)
{
	enum { STACK = 1 << 20 };

	must(rt_thread_attach(RT_THREAD_EXACT));
	while (atomic_u32_load_acquire(&released) == 0) {
		void *stack = rt_stack_alloc(STACK);

		if (!stack || rt_stack_free(stack, STACK) != RT_OK)
			abort();
		atomic_u32_store_release(&allocating, 1);
	}
	must(rt_thread_detach());
	return arg;
}

// The line of rt_free_os_memory is made while threads run.  Making it must not
// change the sums of their Ps.
TEST(a_release_beside_threads)
{
	pthread_t thread;

	close(pipe_to_stderr());
	start_both(0, 1);
	must(pthread_create(&thread, NULL, allocate_beside, NULL));
	must(rt_blocking_enter());
	while (atomic_u32_load_acquire(&allocating) == 0)
		oscall_yield();
	must(rt_blocking_leave());
	for (unsigned i = 0; i < 20; i++) {
		must(rt_free_os_memory());
		heap_live();
	}
	atomic_u32_store_release(&released, 1);
	must(rt_blocking_enter());
	must(pthread_join(thread, NULL));
	must(rt_blocking_leave());
	must(rt_gc());
	heap_healthy();
}

TEST(nothing_is_written_without_the_setting)
{
	int fd = pipe_to_stderr();
	char text[1000];

	start(0);
	must(rt_gc());
	must(rt_free_os_memory());
	ck_assert_uint_eq(take(fd, text, sizeof text), 0);
	ck_assert_uint_eq(dropped(), 0);
}

// If the pipe is full, the collection returns, and each dropped line is
// counted.  When there is room, the next line is written whole.
TEST(a_full_pipe_is_not_waited_for, .n = 2)
{
	static char text[1 << 20];
	unsigned lines = 1 + (unsigned)_i; // for each collection
	int fd = pipe_to_stderr();

	start_both(1, (unsigned)_i);
	ck_assert_int_eq(fcntl(2, F_SETFL, O_NONBLOCK), 0);
	while (write(2, text, 4096) > 0)
		;
	ck_assert_int_eq(fcntl(2, F_SETFL, 0), 0);
	for (uint64_t n = 1; n <= 3; n++) {
		must(rt_gc());
		ck_assert_uint_eq(dropped(), n * lines);
	}
	while (take(fd, text, sizeof text) > 0)
		;
	must(rt_gc());
	ck_assert_uint_gt(take(fd, text, sizeof text), 0);
	ck_assert_int_eq(strncmp(text, "gc 4 @", 6), 0);
	ck_assert_uint_eq(dropped(), 3 * lines);
}

// Between a look at a descriptor and the write, another thread may fill the
// pipe, or its last reader may go.  So here the look says what was true before.
static bool look_is_old;

int poll(struct pollfd *fds, nfds_t n, int timeout)
{
	if (look_is_old) {
		fds->revents = POLLOUT;
		return 1;
	}
	return ppoll(
	    fds, n,
	    &(struct timespec){timeout / 1000, timeout % 1000 * 1000000L},
	    NULL);
}

// must_have_no_signal requires that SIGPIPE is neither pending nor blocked.
static void must_have_no_signal(void)
{
	sigset_t now;

	ck_assert_int_eq(sigpending(&now), 0);
	ck_assert_int_eq(sigismember(&now, SIGPIPE), 0);
	ck_assert_int_eq(pthread_sigmask(SIG_SETMASK, NULL, &now), 0);
	ck_assert_int_eq(sigismember(&now, SIGPIPE), 0);
}

// The write raises SIGPIPE, which would end the process.
TEST(a_pipe_that_loses_its_reader)
{
	int fd = pipe_to_stderr();

	start(1);
	close(fd);
	look_is_old = true;
	must(rt_gc());
	ck_assert_uint_eq(dropped(), 1);
	must_have_no_signal();
	// Reports, which are waited for, do not end it either.
	oscall_write(2, "text\n", 5);
	must_have_no_signal();
}

// A signal that is blocked by the host and pending already stays pending.
TEST(the_signal_of_the_host_is_kept)
{
	int fd = pipe_to_stderr();
	sigset_t set;

	start(1);
	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	ck_assert_int_eq(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	ck_assert_int_eq(raise(SIGPIPE), 0);
	close(fd);
	look_is_old = true;
	must(rt_gc());
	ck_assert_uint_eq(dropped(), 1);
	ck_assert_int_eq(sigpending(&set), 0);
	ck_assert_int_eq(sigismember(&set, SIGPIPE), 1);
}

TEST(a_pipe_that_is_filled_first)
{
	struct iovec nothing = {NULL, 0};
	int fd = pipe_to_stderr();

	if (syscall(SYS_pwritev2, 2, &nothing, 1, -1L, -1L, NOWAIT) != 0) {
		suite_skip("before Linux 6.4 a write to a pipe may wait", NULL);
		return;
	}
	start(1);
	fill();
	look_is_old = true;
	must(rt_gc());
	ck_assert_uint_eq(dropped(), 1);
	close(fd);
}

// A socket takes the line.  If it has no reader or is full, the line is
// dropped, as with a pipe.
TEST(a_socket, .n = 3)
{
	char text[1000];
	int fd[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	ck_assert_int_eq(dup2(fd[1], 2), 2);
	close(fd[1]);
	start(1);
	look_is_old = _i != 0;
	if (_i == 1)
		close(fd[0]);
	else if (_i == 2)
		fill();
	must(rt_gc());
	ck_assert_uint_eq(dropped(), _i != 0);
	must_have_no_signal();
	if (_i == 0) {
		ck_assert_uint_gt(take(fd[0], text, sizeof text), 0);
		ck_assert_int_eq(strncmp(text, "gc 1 @", 6), 0);
	}
}

// The line is dropped without a signal, and errno is as before.
TEST(a_descriptor_that_is_closed)
{
	start(1);
	close(2);
	errno = ERANGE;
	must(rt_gc());
	ck_assert_int_eq(errno, ERANGE);
	ck_assert_uint_eq(dropped(), 1);
}

TEST(a_pipe_without_a_reader)
{
	int fd = pipe_to_stderr();

	start(1);
	close(fd);
	must(rt_gc());
	ck_assert_uint_eq(dropped(), 1);
}

TEST(the_system_refuses_to_write)
{
	pipe_to_stderr();
	start(1);
	fault_fail(OSCALL_WRITE, 1, 1, EIO);
	must(rt_gc());
	ck_assert_uint_eq(fault_failed(OSCALL_WRITE), 1);
	ck_assert_uint_eq(dropped(), 1);
}

TEST(the_child_of_a_fork_traces)
{
	int fd = pipe_to_stderr(), status;
	char text[1000];
	pid_t pid;

	start(1);
	must(rt_gc());
	ck_assert_uint_gt(take(fd, text, sizeof text), 0);
	pid = fork();
	if (pid == 0)
		_exit(rt_gc() != RT_OK);
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert_uint_gt(take(fd, text, sizeof text), 0);
	ck_assert_int_eq(strncmp(text, "gc 2 @", 6), 0);
}
