// The library's requests to the system, and how the system answers and refuses.
#define _GNU_SOURCE 1

#include "test/harness/fault.h"
#include "test/harness/suite.h"
#include "test/harness/thread.h"
#include "test/unit/oscall.h"
#include "test/harness/process.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/os/nanotime.h"

// has_flag tells whether the mapping at p has a flag of two letters, from the
// VmFlags of /proc/self/smaps.
static bool has_flag(const void *p, const char *flag)
{
	FILE *smaps = fopen("/proc/self/smaps", "r");
	char line[512];
	unsigned long lo, hi, at = (unsigned long)p;
	bool here = false, found = false;

	ck_assert_ptr_nonnull(smaps);
	while (fgets(line, sizeof(line), smaps)) {
		if (sscanf(line, "%lx-%lx ", &lo, &hi) == 2)
			here = at >= lo && at < hi;
		else if (here && strncmp(line, "VmFlags:", 8) == 0)
			found = strstr(line + 8, flag) != NULL;
	}
	fclose(smaps);
	return found;
}

// ---- memory ----

GROUP(memory, .setup = setup_block, .teardown = teardown_block, .timeout = 60);

TEST(page_size_is_that_of_the_system)
{
	ck_assert_uint_eq(page, (size_t)sysconf(_SC_PAGESIZE));
	ck_assert(base_is_pow2(page));
}

TEST(reserved_memory_is_usable_once_committed)
{
	char *p = oscall_reserve(8 * page);

	ck_assert_ptr_nonnull(p);
	ck_assert(mapping_has(p, "---p"));
	ck_assert(has_flag(p, " nr"));
	ck_assert_int_eq(oscall_commit(p + page, 2 * page), 0);
	ck_assert(mapping_has(p, "---p"));
	ck_assert(mapping_has(p + page, "rw-p"));
	ck_assert(mapping_has(p + 2 * page, "rw-p"));
	ck_assert(mapping_has(p + 3 * page, "---p"));
	p[page] = 1;
	p[3 * page - 1] = 2;
	ck_assert_int_eq(p[page] + p[3 * page - 1], 3);
	ck_assert_int_eq(oscall_unmap(p, 8 * page), 0);
	ck_assert(!mapping_has(p, "-"));
}

TEST(mapped_memory_is_zero_and_writable)
{
	unsigned nonzero = 0;

	ck_assert(mapping_has(block, "rw-p"));
	for (size_t i = 0; i < 4 * page; i++) {
		nonzero += block[i] != 0;
		block[i] = (char)i;
	}
	ck_assert_uint_eq(nonzero, 0);
}

TEST(released_memory_reads_as_zero)
{
	unsigned nonzero = 0;

	memset(block, 0x55, 4 * page);
	ck_assert_int_eq(oscall_release(block + page, 2 * page), 0);
	for (size_t i = page; i < 3 * page; i++)
		nonzero += block[i] != 0;
	ck_assert_uint_eq(nonzero, 0);
	ck_assert_int_eq(block[page - 1], 0x55);
	ck_assert_int_eq(block[3 * page], 0x55);
	block[page] = 1;
	ck_assert_int_eq(block[page], 1);
}

TEST(refusals_of_the_system_are_told)
{
	ck_assert_ptr_null(oscall_reserve(0));
	ck_assert_ptr_null(oscall_reserve(SIZE_MAX / 2));
	ck_assert_ptr_null(oscall_map(SIZE_MAX / 2));
	ck_assert_int_eq(oscall_unmap(block + 1, page), EINVAL);
	ck_assert_int_eq(oscall_commit(block + 1, page), EINVAL);
	ck_assert_int_eq(oscall_release(block + 1, page), EINVAL);
	ck_assert_int_eq(oscall_dump(block + 1, page, true), EINVAL);
	ck_assert_int_eq(oscall_huge_pages(block + 1, page), EINVAL);
	ck_assert_int_eq(oscall_populate(block + 1, page), EINVAL);
	ck_assert_int_ne(oscall_set_name(block + 1, page, "x"), 0);
}

TEST(dump_advice_is_taken_and_withdrawn)
{
	ck_assert(!has_flag(block, " dd"));
	ck_assert_int_eq(oscall_dump(block, 4 * page, false), 0);
	ck_assert(has_flag(block, " dd"));
	ck_assert_int_eq(oscall_dump(block, 4 * page, true), 0);
	ck_assert(!has_flag(block, " dd"));
}

// A kernel may be built without huge pages.
TEST(huge_page_advice_is_taken)
{
	int error = oscall_huge_pages(block, 4 * page);

	if (error == 0)
		ck_assert(has_flag(block, " hg"));
	else
		ck_assert_int_eq(error, EINVAL);
}

// A kernel may be too old to populate pages.
TEST(populated_pages_are_resident)
{
	unsigned char resident[4];
	int error = oscall_populate(block, 3 * page);

	ck_assert(error == 0 || error == EINVAL);
	ck_assert_int_eq(mincore(block, 4 * page, resident), 0);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(resident[i] & 1, error == 0);
	for (size_t i = 0; i < 4 * page; i++)
		ck_assert_int_eq(block[i], 0);
}

// A kernel may be built without names.
TEST(mapping_gets_its_name)
{
	char name[200]; // longer than the kernel takes: it is cut
	int error;

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	error = oscall_set_name(block, 4 * page, name);
	ck_assert(error == 0 || error == EINVAL);
	ck_assert(mapping_has(block, "[anon:rtheap: nnn") == (error == 0));
	ck_assert_int_eq(oscall_set_name(block, 4 * page, "heap of check"),
			 error);
	ck_assert(mapping_has(block, "[anon:rtheap: heap of check]") ==
		  (error == 0));
}

// ---- waiting ----

static atomic_u32 word;

GROUP(time, .setup = setup_block, .teardown = teardown_block, .timeout = 60);

TEST(wait_returns_when_the_word_differs)
{
	ck_assert_int_eq(oscall_futex_wait(&word, 1, UINT64_MAX), EAGAIN);
	ck_assert_int_eq(oscall_futex_wake(&word, 1), 0);
	ck_assert_int_eq(oscall_futex_wait_as(&word, 1, 1), EAGAIN);
	ck_assert_int_eq(oscall_futex_wake_as(&word, 1), 0);
}

TEST(wait_ends_after_its_time)
{
	static const uint64_t times_ns[] = {0, 1, 20000000, 1100000000};

	for (unsigned i = 0; i < RT_ARRAY_LEN(times_ns); i++) {
		uint64_t start = nanotime(), ns;
		int error = oscall_futex_wait(&word, 0, times_ns[i]);

		ns = nanotime() - start;
		ck_assert_int_eq(error, ETIMEDOUT);
		ck_assert_uint_ge(ns, times_ns[i]);
		ck_assert_uint_lt(ns, times_ns[i] + 10000000000);
	}
}

enum { SLEEPERS = 3 };

static atomic_u32 nwaiting, nwoken;

static void *sleep_on_word(void *arg)
{
	(void)arg;
	atomic_u32_add_relaxed(&nwaiting, 1);
	while (atomic_u32_load_acquire(&word) == 0)
		oscall_futex_wait(&word, 0, UINT64_MAX);
	atomic_u32_add_relaxed(&nwoken, 1);
	return NULL;
}

static void join_sleepers(uint32_t nwake)
{
	pthread_t threads[SLEEPERS];

	for (unsigned i = 0; i < SLEEPERS; i++)
		threads[i] = start_thread(sleep_on_word, NULL);
	while (atomic_u32_load_relaxed(&nwaiting) < SLEEPERS)
		oscall_yield();
	usleep(20000); // most are asleep now; the test holds if not
	atomic_u32_store_release(&word, 1);
	ck_assert_int_eq(oscall_futex_wake(&word, nwake), 0);
	for (unsigned i = 0; i < SLEEPERS; i++)
		join_thread(threads[i]);
	ck_assert_uint_eq(atomic_u32_load_relaxed(&nwoken), SLEEPERS);
}

TEST(wake_ends_the_wait_of_as_many_as_asked)
{
	join_sleepers(SLEEPERS);
}

TEST(wake_of_the_largest_number_wakes_all)
{
	join_sleepers(UINT32_MAX);
}

// ---- clocks ----

TEST(clocks_advance)
{
	uint64_t mono = nanotime(), real = nanotime_unix();

	ck_assert_uint_gt(mono, 0);
	ck_assert_uint_gt(real, UINT64_C(1577836800) * 1000000000); // 2020
	usleep(2000);
	ck_assert_uint_ge(nanotime() - mono, 2000000);
	ck_assert_uint_gt(nanotime_unix(), real);
}

static void burn(uint64_t ns)
{
	uint64_t start = oscall_process_cpu();

	while (oscall_process_cpu() - start < ns)
		continue;
}

TEST(process_clock_counts_work_not_sleep)
{
	uint64_t start = oscall_process_cpu(), asleep;

	ck_assert_uint_gt(start, 0);
	burn(5000000);
	asleep = oscall_process_cpu();
	ck_assert_uint_ge(asleep - start, 5000000);
	usleep(200000);
	ck_assert_uint_lt(oscall_process_cpu() - asleep, 100000000);
}

static void *work(void *arg)
{
	(void)arg;
	burn(5000000);
	return NULL;
}

TEST(process_clock_counts_threads_that_have_ended)
{
	uint64_t start = oscall_process_cpu();

	run_thread(work, NULL);
	ck_assert_uint_ge(oscall_process_cpu() - start, 5000000);
}

static atomic_u32 worker_tid;
static atomic_u32 worker_may_end;

static void *burn_and_wait(void *arg)
{
	uint32_t tid = oscall_gettid();

	(void)arg;
	while (oscall_thread_cpu(tid) < 5000000)
		continue;
	atomic_u32_store_release(&worker_tid, tid);
	while (atomic_u32_load_acquire(&worker_may_end) == 0)
		oscall_yield();
	return NULL;
}

TEST(thread_clock_of_another_thread_reads_until_it_ends)
{
	pthread_t thread;
	uint64_t deadline;
	uint32_t tid;

	ck_assert_uint_eq(oscall_gettid(), (uint32_t)gettid());
	thread = start_thread(burn_and_wait, NULL);
	while ((tid = atomic_u32_load_acquire(&worker_tid)) == 0)
		oscall_yield();
	ck_assert_uint_ne(tid, oscall_gettid());
	ck_assert_uint_ge(oscall_thread_cpu(tid), 5000000);
	atomic_u32_store_release(&worker_may_end, 1);
	join_thread(thread);
	// The kernel drops a thread a little after its join.
	deadline = nanotime() + UINT64_C(10000000000);
	while (oscall_thread_cpu(tid) != 0)
		ck_assert_uint_lt(nanotime(), deadline);
}

// ---- process and threads ----

GROUP(process, .setup = setup_block, .teardown = teardown_block, .timeout = 60);

TEST(processors_are_those_of_the_affinity_mask)
{
	cpu_set_t set, one;

	ck_assert_int_eq(sched_getaffinity(0, sizeof(set), &set), 0);
	ck_assert_uint_eq(oscall_nprocs(), (unsigned)CPU_COUNT(&set));
	for (int i = 0; i < CPU_SETSIZE; i++) {
		if (!CPU_ISSET(i, &set))
			continue;
		CPU_ZERO(&one);
		CPU_SET(i, &one);
		ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
		ck_assert_uint_eq(oscall_nprocs(), 1);
	}
}

TEST(address_limit_is_read)
{
	struct rlimit limit;

	ck_assert_int_eq(getrlimit(RLIMIT_AS, &limit), 0);
	if (limit.rlim_cur == RLIM_INFINITY)
		ck_assert_uint_eq(oscall_address_limit(), UINT64_MAX);
	// The test sets a limit, but one above what sanitizers map.
	limit.rlim_cur = base_min(limit.rlim_cur, UINT64_C(1) << 60);
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
	ck_assert_uint_eq(oscall_address_limit(), limit.rlim_cur);
}

// in_stack is 0 if the bounds of the calling thread's stack hold a variable and
// are size bytes apart, more or less; size 0 means any size.
static int in_stack(size_t size)
{
	uintptr_t lo = 0, hi = 0;
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	if (oscall_stack_bounds(&lo, &hi) != 0)
		return 1;
	if (here < lo || here >= hi)
		return 2;
	return size != 0 && (hi - lo < size / 2 || hi - lo > size * 2) ? 3 : 0;
}

static void *check_stack(void *arg)
{
	return (void *)(uintptr_t)in_stack(*(size_t *)arg);
}

TEST(holes_in_memory_are_found)
{
	size_t n = 100 * page;
	char *p = oscall_map(n);

	ck_assert_ptr_nonnull(p);
	ck_assert_int_eq(oscall_mapped(p, n), 0); // none of it was touched
	for (size_t hole = 0; hole < n; hole += 33 * page) {
		ck_assert_int_eq(oscall_unmap(p + hole, page), 0);
		ck_assert_int_eq(oscall_mapped(p, hole + page), ENOMEM);
		ck_assert_int_eq(oscall_mapped(p + hole + page, 32 * page), 0);
	}
}

// ENOMEM means that something is not mapped.  So a call that the system refuses
// with ENOMEM reports another errno.
TEST(a_refused_question_for_holes_is_no_answer)
{
	errno = 77;
	fault_fail(OSCALL_MAPPED, 1, 1, ENOMEM);
	ck_assert_int_eq(oscall_mapped(block, page), EAGAIN);
	fault_fail(OSCALL_MAPPED, 1, 1, EFAULT);
	ck_assert_int_eq(oscall_mapped(block, page), EFAULT);
	ck_assert_int_eq(oscall_mapped(block, page), 0);
	ck_assert_int_eq(errno, 77);
}

// The end is 0 for memory that cannot be read or is not mapped, and where the
// system says nothing.
TEST(the_end_of_a_mapping_is_found)
{
	char *p = oscall_map(3 * page);
	const uintptr_t at = (uintptr_t)p;

	ck_assert_ptr_nonnull(p);
	ck_assert_int_eq(mprotect(p, page, PROT_NONE), 0);
	ck_assert_int_eq(oscall_unmap(p + 2 * page, page), 0);
	errno = 77;
	ck_assert_uint_eq(oscall_mapping_end(at), 0);
	ck_assert_uint_eq(oscall_mapping_end(at + page), at + 2 * page);
	ck_assert_uint_eq(oscall_mapping_end(at + 2 * page - 1), at + 2 * page);
	ck_assert_uint_eq(oscall_mapping_end(at + 2 * page), 0);
	ck_assert_uint_eq(oscall_mapping_end(0), 0);
	ck_assert_uint_eq(oscall_mapping_end(UINTPTR_MAX), 0);
	process_limit(RLIMIT_NOFILE, 0);
	ck_assert_uint_eq(oscall_mapping_end(at + page), 0);
	ck_assert_int_eq(errno, 77);
	process_unlimit(RLIMIT_NOFILE); // gcov opens files at the end
	fault_fail(OSCALL_FILE, 1, 1, ENOENT);
	ck_assert_uint_eq(oscall_mapping_end(at + page), 0);
}

TEST(what_cannot_be_read_is_found)
{
	char *p = oscall_map(3 * page);
	sigset_t before, after;

	ck_assert_ptr_nonnull(p);
	ck_assert_int_eq(oscall_uncommit(p + page, page), 0);
	ck_assert_int_eq(oscall_unmap(p + 2 * page, page), 0);
	memset(p, 0xff, page); // as a set of signals it has all
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	ck_assert(oscall_readable(p));
	ck_assert(!oscall_readable(p + page));
	ck_assert(!oscall_readable(p + 2 * page));
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	for (int sig = 1; sig < 65; sig++)
		ck_assert_int_eq(sigismember(&after, sig),
				 sigismember(&before, sig));
	ck_assert_int_eq(*p, -1);
}

static void *ask_for_main(void *arg)
{
	*(bool *)arg = oscall_main_thread();
	return NULL;
}

TEST(the_first_thread_is_the_main_one)
{
	bool other = true;

	ck_assert(oscall_main_thread());
	run_thread(ask_for_main, &other);
	ck_assert(!other);
}

TEST(stack_bounds_hold_the_stack)
{
	size_t size = 4 << 20; // large_local takes little of it

	ck_assert_int_eq(in_stack(0), 0);
	ck_assert_ptr_null(
	    join_thread(start_thread_on(size, check_stack, &size)));
}

static unsigned key;
static void *destroyed;

static void destroy(void *value)
{
	destroyed = value;
}

static void *set_key(void *arg)
{
	return (void *)(uintptr_t)oscall_tls_set(key, arg);
}

TEST(destructor_runs_when_a_thread_exits)
{
	int value;

	ck_assert_int_eq(oscall_tls_key(&key, destroy), 0);
	ck_assert_ptr_null(run_thread(set_key, &value));
	ck_assert_ptr_eq(destroyed, &value);
}

TEST(destructor_does_not_run_for_null)
{
	destroyed = &key;
	ck_assert_int_eq(oscall_tls_key(&key, destroy), 0);
	run_thread(set_key, NULL);
	ck_assert_ptr_eq(destroyed, &key);
}

TEST(environment_is_read)
{
	setenv("OSCALL_CHECK", "here", 1);
	ck_assert_str_eq(oscall_getenv("OSCALL_CHECK"), "here");
	unsetenv("OSCALL_CHECK");
	ck_assert_ptr_null(oscall_getenv("OSCALL_CHECK"));
}

static void *read_slowly(void *arg)
{
	int fd = *(int *)arg;
	char buf[1000];
	uintptr_t sum = 0;
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) > 0)
		for (ssize_t i = 0; i < n; i++)
			sum += (unsigned char)buf[i];
	return (void *)sum;
}

// The text is longer than a pipe holds, so the writer has to wait for the
// reader.
TEST(all_of_a_text_is_written)
{
	enum { LEN = 1 << 20 };
	char *text = malloc(LEN);
	uintptr_t sum = 0;
	pthread_t thread;
	int fds[2];

	for (size_t i = 0; i < LEN; i++)
		sum += (unsigned char)(text[i] = (char)(i % 251));
	ck_assert_int_eq(pipe(fds), 0);
	thread = start_thread(read_slowly, &fds[0]);
	oscall_write(fds[1], text, LEN);
	close(fds[1]);
	ck_assert_uint_eq((uintptr_t)join_thread(thread), sum);
	free(text);
}

TEST(write_that_is_refused_returns)
{
	int fds[2];
	char text[4096] = {0};

	oscall_write(-1, text, sizeof(text));
	ck_assert_int_eq(pipe(fds), 0);
	ck_assert_int_eq(fcntl(fds[1], F_SETFL, O_NONBLOCK), 0);
	for (unsigned i = 0; i < 1000; i++) // far more than the pipe holds
		oscall_write(fds[1], text, sizeof(text));
	ck_assert_int_eq(read(fds[0], text, 1), 1);
}

// ---- threads ----

struct seen {
	sigset_t mask;
	char name[16];
};

static void *look_at_thread(void *arg)
{
	struct seen *seen = arg;

	oscall_thread_name("somebody");
	pthread_sigmask(SIG_SETMASK, NULL, &seen->mask);
	pthread_getname_np(pthread_self(), seen->name, sizeof(seen->name));
	return NULL;
}

// reports_a_fault tells whether a signal reports a fault of the thread that
// gets it.
static bool reports_a_fault(int sig)
{
	return sig == SIGSEGV || sig == SIGBUS || sig == SIGFPE ||
	       sig == SIGILL || sig == SIGTRAP || sig == SIGSYS;
}

// A helper takes no signal that is meant for the host, and the host's mask
// stays as it was.
TEST(a_thread_blocks_signals_and_has_a_name)
{
	sigset_t before, after;
	struct seen seen;

	pthread_sigmask(SIG_SETMASK, NULL, &before);
	ck_assert_int_eq(run_helper(look_at_thread, &seen), 0);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	for (int sig = 1; sig < 32; sig++) {
		if (sig != SIGKILL && sig != SIGSTOP)
			ck_assert_int_eq(sigismember(&seen.mask, sig),
					 !reports_a_fault(sig));
		ck_assert_int_eq(sigismember(&after, sig),
				 sigismember(&before, sig));
	}
	ck_assert_str_eq(seen.name, "somebody");
}

static char *protected; // a page

static void unprotect(int sig)
{
	(void)sig;
	mprotect(protected, page, PROT_READ | PROT_WRITE);
}

static void *touch_protected(void *arg)
{
	(void)arg;
	*(volatile char *)protected = 1;
	return NULL;
}

// A host may map the memory of its roots only when a thread touches it.
TEST(a_fault_in_a_thread_is_the_host_s)
{
	protected = oscall_reserve(page);
	ck_assert_ptr_nonnull(protected);
	ck_assert_ptr_ne(signal(SIGSEGV, unprotect), SIG_ERR);
	ck_assert_int_eq(run_helper(touch_protected, NULL), 0);
	ck_assert_int_eq(*protected, 1);
}

static void *write_cancelled(void *arg)
{
	static const char text[] = "not cancelled\n";

	pthread_cancel(pthread_self());
	oscall_write(*(int *)arg, text, sizeof text);
	*(int *)arg = -1;
	pthread_testcancel();
	return NULL;
}

TEST(no_call_is_a_cancellation_point)
{
	int fd = open("/dev/null", O_WRONLY), written = fd;

	ck_assert_int_ge(fd, 0);
	ck_assert_ptr_eq(run_thread(write_cancelled, &written),
			 PTHREAD_CANCELED);
	ck_assert_int_eq(written, -1);
	close(fd);
}

// More than a small stack holds.
static _Thread_local char large_local[512 << 10];

static void *touch_large_local(void *arg)
{
	memset(large_local, 1, sizeof(large_local));
	return set_word(arg);
}

TEST(a_thread_starts_beside_large_thread_local_variables)
{
	bool ran = false;

	ck_assert_int_eq(run_helper(touch_large_local, &ran), 0);
	ck_assert(ran);
}

static unsigned forks_prepared, forks_made, forks_seen;

static void before_fork(void)
{
	forks_prepared++;
}

static void after_fork(void)
{
	forks_made++;
}

static void in_fork(void)
{
	forks_seen++;
}

TEST(both_sides_of_a_fork_are_told)
{
	ck_assert_int_eq(oscall_at_fork(before_fork, after_fork, in_fork), 0);
	if (process_forked())
		process_end(forks_prepared == 1 && forks_seen == 1 &&
			    !forks_made);
	ck_assert(forks_prepared == 1 && forks_made == 1 && !forks_seen);
}

// ---- errno ----

// Calls that the system refuses, each with the result of a refusal.
static char *gone; // a page that is not mapped

static uintptr_t lo, hi;

// REFUSAL tests that a refused call does not change errno; refused is true if
// it was refused.
#define REFUSAL(name, refused)                                                 \
	TEST(name##_leaves_errno_alone)                                        \
	{                                                                      \
		find_gone();                                                   \
		errno = EXDEV;                                                 \
		told_without_errno(refused);                                   \
	}

static void find_gone(void)
{
	gone = oscall_map(page);
	ck_assert_ptr_nonnull(gone);
	ck_assert_int_eq(oscall_unmap(gone, page), 0);
}

static void told_without_errno(bool refused)
{
	int after = errno;

	ck_assert(refused);
	ck_assert_int_eq(after, EXDEV);
}

REFUSAL(reserve_too_much, !oscall_reserve(SIZE_MAX / 2))
REFUSAL(map_too_much, !oscall_map(SIZE_MAX / 2))
REFUSAL(commit_nothing, oscall_commit(gone, page) == ENOMEM)
REFUSAL(uncommit_nothing, oscall_uncommit(gone, page) == ENOMEM)
REFUSAL(unmap_the_middle_of_a_page, oscall_unmap(block + 1, page) == EINVAL)
REFUSAL(release_nothing, oscall_release(gone, page) == ENOMEM)
REFUSAL(advise_nothing, oscall_huge_pages(gone, page) != 0 &&
			    oscall_populate(gone, page) != 0 &&
			    oscall_dump(gone, page, true) == ENOMEM)
REFUSAL(name_nothing, oscall_set_name(gone, page, "nothing") != 0)
REFUSAL(wait_for_another_word,
	oscall_futex_wait(&word, 1 + atomic_u32_load_relaxed(&word),
			  UINT64_MAX) == EAGAIN)
REFUSAL(wake_at_no_address,
	oscall_futex_wake((const atomic_u32 *)(UINTPTR_MAX - 4095), 1) ==
	    EFAULT)
REFUSAL(look_at_nothing, oscall_mapped(gone, page) == ENOMEM)
REFUSAL(write_to_no_file, (oscall_write(-1, "x", 1), true))
REFUSAL(ask_libc, oscall_stack_bounds(&lo, &hi) == 0)
