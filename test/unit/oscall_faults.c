// Each system call of enum oscall fails when it is told to, and no other fails.
#define _GNU_SOURCE 1

#include "test/harness/fault.h"
#include "test/unit/oscall.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static atomic_u32 word;
static unsigned key;
static uintptr_t lo, hi;

static void ignore(void *value)
{
	(void)value;
}

static void nothing(void)
{
}

// Each of the calls has a try, which makes the call and returns its error.
// INJECTED is an error that the system gives for none of the calls.  So if the
// call was made, the result is something different.
enum { INJECTED = EXDEV };

static int try_reserve(void)
{
	void *p = oscall_reserve(page);
	int error = errno;

	return p ? oscall_unmap(p, page) : error;
}

static int try_map(void)
{
	void *p = oscall_map(page);
	int error = errno;

	return p ? oscall_unmap(p, page) : error;
}

static int try_unmap(void)
{
	char *p = oscall_map(page);
	int error = oscall_unmap(p, page);

	ck_assert(mapping_has(p, "rw-p") == (error != 0));
	return error;
}

static int try_release(void)
{
	int error;

	block[0] = 1;
	error = oscall_release(block, page);
	ck_assert(block[0] == (error ? 1 : 0));
	return error;
}

static unsigned advice_turn;

static int try_advise(void)
{
	switch (advice_turn++ % 3) {
	case 0:
		return oscall_huge_pages(block, page);
	case 1:
		return oscall_populate(block, page);
	default:
		return oscall_dump(block, page, true);
	}
}

static unsigned name_turn;

static int try_name(void)
{
	char name[16], found[16];

	if (name_turn++ % 2 == 0)
		return oscall_set_name(block, page, "fault");
	snprintf(name, sizeof(name), "name %u", name_turn);
	oscall_thread_name(name);
	pthread_getname_np(pthread_self(), found, sizeof(found));
	return strcmp(name, found) == 0 ? 0 : errno;
}

static unsigned clock_turn;

static int try_clock(void)
{
	uint64_t ns;

	switch (clock_turn++ % 3) {
	case 0:
		ns = oscall_monotonic();
		break;
	case 1:
		ns = oscall_realtime();
		break;
	default:
		ns = oscall_process_cpu();
	}
	return ns == 0 ? errno : 0;
}

static int try_rlimit(void)
{
	struct rlimit limit = {UINT64_C(1) << 60, RLIM_INFINITY};

	ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
	return oscall_address_limit() == UINT64_MAX ? errno : 0;
}

static int try_mapped(void)
{
	char *p = oscall_map(2 * page);
	int error;

	ck_assert_ptr_nonnull(p);
	ck_assert_int_eq(oscall_unmap(p + page, page), 0);
	error = oscall_mapped(p + page, page);
	oscall_unmap(p, page);
	return error == ENOMEM ? 0 : error;
}

static bool have_key;

static int try_tlskey(void)
{
	if (have_key)
		return oscall_tls_set(key, NULL);
	have_key = oscall_tls_key(&key, ignore) == 0;
	return have_key ? 0 : errno;
}

static int try_thread(void)
{
	bool ran = false;
	int error = run_helper(set_word, &ran);

	ck_assert(ran == (error == 0));
	return error;
}

static int try_getenv(void)
{
	setenv("OSCALL_CHECK", "here", 1);
	return oscall_getenv("OSCALL_CHECK") ? 0 : errno;
}

static int try_file(void)
{
	errno = 0;
	return oscall_max_mappings() != 0 ? 0 : errno;
}

static int try_write(void)
{
	int fds[2], error;
	char c;

	ck_assert_int_eq(pipe(fds), 0);
	oscall_write(fds[1], "x", 1);
	error = errno;
	close(fds[1]);
	if (read(fds[0], &c, 1) == 1)
		error = 0;
	close(fds[0]);
	return error;
}

static int try_yield(void)
{
	errno = 0;
	oscall_yield();
	return errno;
}

static int try_peek(void)
{
	uint32_t copied;

	return oscall_peek(oscall_gettid(), &copied, (uintptr_t)&word,
			   sizeof copied);
}

static unsigned affinity_turn;

static int try_affinity(void)
{
	const struct sched_param none = {.sched_priority = 0};

	if (affinity_turn++ % 2 == 0)
		return oscall_nprocs() == 0 ? errno : 0;
	ck_assert_int_eq(sched_setscheduler(0, SCHED_BATCH, &none), 0);
	oscall_thread_ordinary();
	return sched_getscheduler(0) == SCHED_OTHER ? 0 : INJECTED;
}

static unsigned lock_turn, wait_turn, wake_turn;

#define TRY(call, error)                                                       \
	static int try_##call(void)                                            \
	{                                                                      \
		return error;                                                  \
	}

TRY(commit, oscall_commit(block, page))
TRY(uncommit, oscall_uncommit(block, page))
TRY(lock, lock_turn++ % 2 == 0 ? oscall_lock(block, page, false)
			       : oscall_unlock(block, page))
TRY(futex_wait, wait_turn++ % 2 == 0 ? oscall_futex_wait(&word, 1, UINT64_MAX)
				     : oscall_futex_wait_as(&word, 1, 1))
TRY(futex_wake, wake_turn++ % 2 == 0 ? oscall_futex_wake(&word, 1)
				     : oscall_futex_wake_as(&word, 1))
TRY(pagesize, oscall_page_size() == 0 ? errno : 0)
TRY(atfork, oscall_at_fork(nothing, nothing, nothing))
TRY(stackbounds, oscall_stack_bounds(&lo, &hi))

static int (*const tries[])(void) = {
    [OSCALL_RESERVE] = try_reserve,
    [OSCALL_COMMIT] = try_commit,
    [OSCALL_UNCOMMIT] = try_uncommit,
    [OSCALL_MAP] = try_map,
    [OSCALL_UNMAP] = try_unmap,
    [OSCALL_RELEASE] = try_release,
    [OSCALL_ADVISE] = try_advise,
    [OSCALL_LOCK] = try_lock,
    [OSCALL_NAME] = try_name,
    [OSCALL_FUTEX_WAIT] = try_futex_wait,
    [OSCALL_FUTEX_WAKE] = try_futex_wake,
    [OSCALL_CLOCK] = try_clock,
    [OSCALL_AFFINITY] = try_affinity,
    [OSCALL_RLIMIT] = try_rlimit,
    [OSCALL_PAGESIZE] = try_pagesize,
    [OSCALL_MAPPED] = try_mapped,
    [OSCALL_STACKBOUNDS] = try_stackbounds,
    [OSCALL_TLSKEY] = try_tlskey,
    [OSCALL_THREAD] = try_thread,
    [OSCALL_ATFORK] = try_atfork,
    [OSCALL_GETENV] = try_getenv,
    [OSCALL_FILE] = try_file,
    [OSCALL_WRITE] = try_write,
    [OSCALL_YIELD] = try_yield,
    [OSCALL_PEEK] = try_peek,
};
static_assert(RT_ARRAY_LEN(tries) == OSCALL_COUNT, "a try for each call");

static void check_counts(enum oscall call, uint64_t count, uint64_t failed)
{
	ck_assert_uint_eq(fault_count(call), count);
	ck_assert_uint_eq(fault_failed(call), failed);
}

// expect_calls makes a call for each character of want: F if it must fail as
// ordered, a point if not.
static void expect_calls(enum oscall call, const char *want, unsigned failed)
{
	char calls[10] = "";
	size_t n = strlen(want);

	for (size_t i = 0; i < n; i++)
		calls[i] = tries[call]() == INJECTED ? 'F' : '.';
	ck_assert_msg(strcmp(calls, want) == 0, "%s: %s", fault_name(call),
		      calls);
	check_counts(call, n, failed);
}

GROUP(faults, .setup = setup_block, .teardown = teardown_block, .timeout = 60);

TEST(nth_call_fails, .n = OSCALL_COUNT)
{
	fault_fail((enum oscall)_i, 3, 1, INJECTED);
	check_counts((enum oscall)_i, 0, 0);
	expect_calls((enum oscall)_i, "..F..", 1);
}

TEST(several_calls_fail, .n = OSCALL_COUNT)
{
	fault_fail((enum oscall)_i, 1, 2, INJECTED);
	expect_calls((enum oscall)_i, "FF..", 2);
}

TEST(calls_fail_until_disarmed, .n = OSCALL_COUNT)
{
	fault_fail((enum oscall)_i, 3, UINT64_MAX, INJECTED);
	expect_calls((enum oscall)_i, "..FFF", 3);
	fault_fail((enum oscall)_i, 1, 0, 0);
	expect_calls((enum oscall)_i, "...", 0);
}

TEST(nothing_is_counted_before_the_first_fault_fail, .n = OSCALL_COUNT)
{
	enum oscall call = (enum oscall)_i;

	tries[call]();
	check_counts(call, 0, 0);
	fault_fail(call, 1, 0, 0);
	tries[call]();
	check_counts(call, 1, 0);
}

TEST(calls_fail_each_by_itself)
{
	fault_fail(OSCALL_MAP, 1, UINT64_MAX, ENOMEM);
	ck_assert_int_eq(try_reserve(), 0);
	ck_assert_ptr_null(oscall_map(page));
	ck_assert_int_eq(errno, ENOMEM);
	check_counts(OSCALL_RESERVE, 1, 0);
	check_counts(OSCALL_MAP, 1, 1);
	fault_fail(OSCALL_MAP, 1, 0, 0);
}

TEST(calls_have_names)
{
	for (unsigned i = 0; i < OSCALL_COUNT; i++) {
		ck_assert_ptr_nonnull(fault_name((enum oscall)i));
		for (unsigned j = 0; j < i; j++)
			ck_assert_str_ne(fault_name((enum oscall)i),
					 fault_name((enum oscall)j));
	}
}

enum { CALLERS = 4, CALLS = 5000, FAIL_FIRST = 7000, FAIL_CALLS = 1234 };

static void *call_clock(void *arg)
{
	uintptr_t nfailed = 0;

	(void)arg;
	for (unsigned i = 0; i < CALLS; i++)
		nfailed += oscall_monotonic() == 0;
	return (void *)nfailed;
}

TEST(calls_of_threads_are_numbered_together)
{
	pthread_t threads[CALLERS];
	uintptr_t nfailed = 0;

	fault_fail(OSCALL_CLOCK, FAIL_FIRST, FAIL_CALLS, EIO);
	for (unsigned i = 0; i < CALLERS; i++)
		threads[i] = start_thread(call_clock, NULL);
	for (unsigned i = 0; i < CALLERS; i++)
		nfailed += (uintptr_t)join_thread(threads[i]);
	ck_assert_uint_eq(nfailed, FAIL_CALLS);
	check_counts(OSCALL_CLOCK, (uint64_t)CALLERS * CALLS, FAIL_CALLS);
}

// ---- processors of threads ----

static cpu_set_t processors(void)
{
	cpu_set_t set;

	ck_assert_int_eq(sched_getaffinity(0, sizeof set, &set), 0);
	return set;
}

static void run_on(cpu_set_t set)
{
	ck_assert_int_eq(sched_setaffinity(0, sizeof set, &set), 0);
}

// split splits the processors into the first one and the others.  Returns false
// if there is only one.
static bool split(cpu_set_t *first, cpu_set_t *others)
{
	int cpu = 0;

	*others = processors();
	while (!CPU_ISSET(cpu, others))
		cpu++;
	CPU_CLR(cpu, others);
	CPU_ZERO(first);
	CPU_SET(cpu, first);
	return CPU_COUNT(others) != 0;
}

// The thread asks for the processors of the mask.  If these are refused, it
// asks for those that were noted.  If those are refused, too, it keeps its own.
TEST(a_thread_keeps_processors_while_calls_are_refused, .n = 3)
{
	cpu_set_t all = processors(), first, others, now;
	unsigned refusals = (unsigned)_i;

	if (!split(&first, &others)) {
		suite_skip("there is one processor", NULL);
		return;
	}
	run_on(first);
	oscall_note_nprocs(&others, sizeof others);
	run_on(all);
	fault_fail(OSCALL_AFFINITY, 1, refusals, EPERM);
	errno = INJECTED;
	oscall_thread_processors();
	ck_assert_int_eq(errno, INJECTED);
	check_counts(OSCALL_AFFINITY, refusals == 0 ? 1 : 2, refusals);
	now = processors();
	ck_assert(CPU_EQUAL(&now, refusals == 0	  ? &others
				  : refusals == 1 ? &first
						  : &all));
}

TEST(processors_that_are_not_known_are_not_used)
{
	cpu_set_t before = processors(), now;

	fault_fail(OSCALL_AFFINITY, 1, 1, EPERM);
	oscall_note_nprocs(NULL, 0);
	ck_assert_uint_eq(oscall_noted_nprocs(), 0);
	oscall_thread_processors();
	check_counts(OSCALL_AFFINITY, 1, 1);
	now = processors();
	ck_assert(CPU_EQUAL(&before, &now));
}
