// A heap in a confined process: it can open no file, it has no /proc, or a
// filter refuses a system call.  The heap works, or the warn handler is told
// what is missing.
#define _GNU_SOURCE 1

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "test/harness/await.h"
#include "test/harness/frames.h"
#include "test/harness/heap.h"
#include "test/harness/suite.h"
#include "test/harness/warned.h"

// ---- what is refused ----

static void take_rights(void)
{
	const struct rlimit none = {0, 0};

	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	ck_assert_int_lt(open("/proc/self/maps", O_RDONLY), 0);
}

static void take_descriptors(void)
{
	struct rlimit limit;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = 256;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	while (dup(STDERR_FILENO) >= 0)
		;
	ck_assert_int_eq(errno, EMFILE);
}

// take_proc makes an empty directory the root.  It returns false if the process
// has no right to do so.
static bool take_proc(void)
{
	char dir[] = "check_confined-XXXXXX";
	bool done;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	done = chroot(dir) == 0 ||
	       (unshare(CLONE_NEWUSER) == 0 && chroot(dir) == 0);
	// The working directory is still the one outside.
	ck_assert_int_eq(rmdir(dir), 0);
	if (done)
		ck_assert_int_lt(open("/proc/self/maps", O_RDONLY), 0);
	return done;
}

// refuse makes the kernel answer EPERM to a system call from now on.  It
// returns false if the kernel has no filters.
static bool refuse(long number)
{
	struct sock_filter code[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
		     (unsigned)offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {RT_ARRAY_LEN(code), code};

	return prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) == 0 &&
	       prctl(PR_SET_SECCOMP, (long)SECCOMP_MODE_FILTER, &filter) == 0;
}

// ---- a heap all the same ----

enum { FRAMES = 60 }; // so that the stack grows

// works requires that a heap is made, and that all frames of the main thread
// keep objects alive, those above the call of rt_init and those below.
static void works(void)
{
	rt_config c = warned_config();
	void *volatile above;

	ck_assert_int_eq(rt_init(&c), RT_OK);
	above = rt_alloc_noscan(FRAMES_OBJECT);
	go_down(FRAMES);
	go_down(FRAMES / 2);
	ck_assert_uint_eq(frames_lost, 0);
	ck_assert_int_eq(rt_is_heap(above), 1);
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	ck_assert_int_eq(rt_thread_attach(0), RT_OK);
	ck_assert_int_eq(rt_fini(), RT_OK);
	ck_assert_uint_eq(warnings, 0);
}

GROUP(confined, .timeout = 120);

TEST(a_heap_needs_no_file_descriptor, .n = 2)
{
	if (_i == 0)
		take_rights();
	else
		take_descriptors();
	works();
}

TEST(a_heap_needs_no_proc)
{
	if (!take_proc()) {
		suite_skip("chroot is refused", NULL);
		return;
	}
	works();
}

static const long calls[] = {
    SYS_openat,	 SYS_prlimit64, SYS_sched_getaffinity,
    SYS_mincore, SYS_madvise,	SYS_prctl,
};

TEST(a_heap_needs_no_single_one_of_these_calls, .n = RT_ARRAY_LEN(calls))
{
	if (!refuse(calls[_i])) {
		suite_skip("the kernel has no filters", NULL);
		return;
	}
	works();
}

// ---- what cannot be done without ----

// expect_told requires that the answer is RT_ENOTSUP, and that nwarnings
// warnings have come.  The last one must name the failed function and its
// errno.
static void expect_told(int error, unsigned nwarnings)
{
	ck_assert_int_eq(error, RT_ENOTSUP);
	ck_assert_uint_eq(warnings, nwarnings);
	ck_assert_ptr_nonnull(strstr(warning, "pthread_getattr_np"));
	ck_assert_ptr_nonnull(strstr(warning, "errno"));
}

// attach_named attaches with bounds that the caller gives, so the system is not
// asked for them.
static RT_NOINLINE void attach_named(void)
{
	char *here = __builtin_frame_address(0);

	must(rt_thread_attach_stack(here - 4096, here + 64, 0));
	ck_assert_ptr_nonnull(rt_alloc(FRAMES_OBJECT));
	ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
}

// Neither the C library nor our own library can find the main thread's stack.
TEST(a_stack_that_cannot_be_found_is_told)
{
	rt_config c = warned_config();

	if (!refuse(SYS_mincore)) {
		suite_skip("the kernel has no filters", NULL);
		return;
	}
	take_rights();
	expect_told(rt_init(&c), 1);
	c.no_attach = 1;
	ck_assert_int_eq(rt_init(&c), RT_OK);
	expect_told(rt_thread_attach(0), 2);
	attach_named();
	ck_assert_int_eq(rt_thread_attach(RT_THREAD_EXACT), RT_OK);
	ck_assert_ptr_nonnull(rt_alloc(FRAMES_OBJECT));
	ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert_int_eq(rt_fini(), RT_OK);
	ck_assert_uint_eq(warnings, 2);
}

// A filter holds only for the thread that sets it.  It is set here, because a
// sanitizer asks for the bounds when a thread begins.
static void *attach_beside(void *arg)
{
	bool *filtered = arg;

	*filtered = refuse(SYS_sched_getaffinity);
	if (!*filtered)
		return arg;
	expect_told(rt_thread_attach(0), 1);
	attach_named();
	return arg;
}

TEST(a_thread_whose_stack_is_not_told_is_told_so)
{
	rt_config c = warned_config();
	bool filtered = false;

	ck_assert_int_eq(rt_init(&c), RT_OK);
	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	join_thread(start_thread(attach_beside, &filtered));
	if (!filtered)
		suite_skip("the kernel has no filters", NULL);
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	ck_assert_int_eq(rt_fini(), RT_OK);
}
