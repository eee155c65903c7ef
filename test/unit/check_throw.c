// Fatal errors: what they print, and that they end the process.
#include "test/harness/death.h"
#include "test/harness/fault.h"
#include "test/harness/suite.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/atomic.h"
#include "runtime/os/oscall.h"
#include "runtime/os/throw.h"

// ---- a process that dies ----

// dies tells whether fn ends a process by SIGABRT.
static bool dies(void (*fn)(void))
{
	return death_aborted(death_status(fn));
}

// say writes to stderr.  It runs in signal handlers, where no function of Check
// may be called.
static void say(const char *s)
{
	if (write(STDERR_FILENO, s, strlen(s)) != (ssize_t)strlen(s))
		_exit(1);
}

// print_between writes the text in brackets, then arg.
static void print_between(const char *text, void *arg)
{
	say("[");
	say(text);
	say("]");
	say(arg);
}

// ---- text ----

GROUP(report, .timeout = 60);

TEST(text_collects_strings_and_numbers)
{
	struct text t;

	text_init(&t);
	ck_assert_str_eq(t.buf, "");
	text_str(&t, "a=");
	text_u64(&t, 0);
	text_str(&t, " b=");
	text_u64(&t, UINT64_MAX);
	text_str(&t, " c=");
	text_hex(&t, 0);
	text_str(&t, " d=");
	text_hex(&t, UINT64_C(0x1234567890abcdef));
	text_str(&t, "");
	ck_assert_str_eq(t.buf, "a=0 b=18446744073709551615 c=0x0 "
				"d=0x1234567890abcdef");
	ck_assert_uint_eq(t.len, strlen(t.buf));
}

TEST(text_that_does_not_fit_is_cut)
{
	struct {
		struct text t;
		char guard[64];
	} s;
	const size_t room = sizeof(s.t.buf) - 1;

	memset(&s, 'x', sizeof(s));
	text_init(&s.t);
	for (size_t i = 0; i < room - 3; i++)
		text_str(&s.t, "y");
	ck_assert_uint_eq(s.t.len, room - 3);
	text_u64(&s.t, 12345);
	ck_assert_uint_eq(s.t.len, room);
	ck_assert_str_eq(s.t.buf + room - 4, "y123");
	text_str(&s.t, "more");
	text_hex(&s.t, 1);
	ck_assert_uint_eq(s.t.len, room);
	ck_assert_str_eq(s.t.buf + room - 4, "y123");
	for (size_t i = 0; i < sizeof(s.guard); i++)
		ck_assert_int_eq(s.guard[i], 'x');
}

// ---- stderr ----

TEST(throw_aborts, .signal = SIGABRT)
{
	throw_fatal("throw_aborts");
}

TEST(throw_value_aborts, .signal = SIGABRT)
{
	throw_value("throw_value_aborts", "n", 1);
}

static void throw_plain(void)
{
	throw_fatal("mheap: no span");
}

TEST(throw_writes_one_line)
{
	ck_assert(dies(throw_plain));
	ck_assert_str_eq(death_output, "rtheap: fatal: mheap: no span\n");
}

static void throws_a_value(void)
{
	throw_value("mspan: bad state", "state", UINT64_MAX);
}

TEST(throw_value_writes_the_value_first)
{
	ck_assert(dies(throws_a_value));
	ck_assert_str_eq(death_output, "rtheap: state=18446744073709551615\n"
				       "rtheap: fatal: mspan: bad state\n");
}

static void throw_lines(void)
{
	struct text t;

	text_init(&t);
	text_str(&t, "one\ntwo\n");
	throw_text(&t, "three");
}

static void throw_open_line(void)
{
	struct text t;

	text_init(&t);
	text_str(&t, "one\ntwo");
	throw_text(&t, "three");
}

static void throw_no_lines(void)
{
	struct text t;

	text_init(&t);
	throw_text(&t, "three");
}

TEST(throw_text_writes_its_lines_first)
{
	ck_assert(dies(throw_lines));
	ck_assert_str_eq(death_output, "one\ntwo\nrtheap: fatal: three\n");
	ck_assert(dies(throw_open_line));
	ck_assert_str_eq(death_output, "one\ntwo\nrtheap: fatal: three\n");
	ck_assert(dies(throw_no_lines));
	ck_assert_str_eq(death_output, "rtheap: fatal: three\n");
}

static void throw_long(void)
{
	char what[4096];
	struct text t;

	text_init(&t);
	for (unsigned i = 0; i < 1000; i++)
		text_str(&t, "l");
	memset(what, 'w', sizeof(what) - 1);
	what[sizeof(what) - 1] = '\0';
	throw_text(&t, what);
}

// However many lines were collected, the report has room for 503 bytes of the
// fatal message, and for the newline.
TEST(long_report_is_cut_and_ends_its_line)
{
	static const char fatal[] = "\nrtheap: fatal: ";
	const size_t lines = 503, found = 503;

	ck_assert(dies(throw_long));
	ck_assert_uint_eq(strlen(death_output),
			  lines + strlen(fatal) + found + 1);
	ck_assert_uint_eq(strspn(death_output, "l"), lines);
	ck_assert_int_eq(strncmp(death_output + lines, fatal, strlen(fatal)),
			 0);
	ck_assert_uint_eq(strspn(death_output + lines + strlen(fatal), "w"),
			  found);
	ck_assert_str_eq(death_output + strlen(death_output) - 1, "\n");
}

static void assert_false(void)
{
	RT_ASSERT(1 + 1 == 3);
}

TEST(assertion_throws_in_debug_builds_only)
{
	if (RT_DEBUG_BUILD) {
		ck_assert(dies(assert_false));
		ck_assert_str_eq(death_output, "rtheap: fatal: assertion: "
					       "1 + 1 == 3\n");
	} else {
		ck_assert(!dies(assert_false));
		ck_assert_str_eq(death_output, "");
	}
}

static const char *say_wrong(const char *what)
{
	say("asked\n");
	return what;
}

static void check_wrong(void)
{
	RT_CHECK(say_wrong("list without end"));
}

static void check_right(void)
{
	RT_CHECK(say_wrong(NULL));
}

TEST(check_throws_its_text_in_debug_builds_only)
{
	ck_assert(dies(check_wrong) == RT_DEBUG_BUILD);
	ck_assert_str_eq(
	    death_output,
	    RT_DEBUG_BUILD ? "asked\nrtheap: fatal: list without end\n" : "");
	ck_assert(!dies(check_right));
	ck_assert_str_eq(death_output, RT_DEBUG_BUILD ? "asked\n" : "");
}

static void throw_without_stderr(void)
{
	fault_fail(OSCALL_WRITE, 1, UINT64_MAX, EBADF);
	throw_fatal("this is not read");
}

TEST(throw_aborts_also_when_it_cannot_write)
{
	ck_assert(dies(throw_without_stderr));
	ck_assert_str_eq(death_output, "");
}

// ---- the handler ----

static void throw_to_handler(void)
{
	throw_set_handler(print_between, "arg");
	throw_value("w", "n", 7);
}

GROUP(handler, .timeout = 240);

TEST(handler_gets_the_text_and_its_argument)
{
	ck_assert(dies(throw_to_handler));
	ck_assert_str_eq(death_output, "[rtheap: n=7\nrtheap: fatal: w]arg");
}

static void throw_after_reset(void)
{
	throw_set_handler(print_between, "arg");
	throw_set_handler(NULL, NULL);
	throw_fatal("w");
}

TEST(null_handler_restores_stderr)
{
	ck_assert(dies(throw_after_reset));
	ck_assert_str_eq(death_output, "rtheap: fatal: w\n");
}

static void throw_again(const char *text, void *arg)
{
	print_between(text, arg);
	throw_fatal("second");
}

static void say_how(int sig)
{
	(void)sig;
	say(fault_count(OSCALL_FUTEX_WAIT) == 0 ? "at once" : "late");
}

static void throw_in_handler(void)
{
	signal(SIGABRT, say_how);
	fault_fail(OSCALL_FUTEX_WAIT, 1, 0, 0); // counts from now on
	throw_set_handler(throw_again, "");
	throw_fatal("first");
}

TEST(throw_in_the_handler_aborts_at_once)
{
	ck_assert(dies(throw_in_handler));
	// Another thread would have waited.
	ck_assert_str_eq(death_output, "[rtheap: fatal: first]at once");
}

static void *throw_second(void *arg)
{
	(void)arg;
	throw_fatal("second");
}

static void nap(long ms)
{
	struct timespec t = {.tv_nsec = ms * 1000 * 1000};

	nanosleep(&t, NULL);
}

// let_other_throw leaves another thread time enough to end the process.
static void let_other_throw(const char *text, void *arg)
{
	pthread_t other;

	pthread_create(&other, NULL, throw_second, NULL);
	nap(50);
	print_between(text, arg);
}

static void throw_in_two_threads(void)
{
	throw_set_handler(let_other_throw, "");
	throw_fatal("first");
}

TEST(other_throwing_threads_wait_for_the_first)
{
	ck_assert(dies(throw_in_two_threads));
	ck_assert_str_eq(death_output, "[rtheap: fatal: first]");
}

// hang waits for another thread that throws.  A handler that needs a lock may
// do the same.
static void hang(const char *text, void *arg)
{
	pthread_t other;

	print_between(text, arg);
	pthread_create(&other, NULL, throw_second, NULL);
	pthread_join(other, NULL);
}

static void throw_and_hang(void)
{
	fault_fail(OSCALL_FUTEX_WAIT, 1, UINT64_MAX, EINTR); // no 10 s
	throw_set_handler(hang, "");
	throw_fatal("first");
}

TEST(handler_that_hangs_is_not_waited_for_without_limit)
{
	ck_assert(dies(throw_and_hang));
	ck_assert_str_eq(death_output, "[rtheap: fatal: first]");
}

// ---- the handler is set meanwhile ----

static void handler_a(const char *text, void *arg)
{
	(void)text;
	say(strcmp(arg, "a") == 0 ? "pair" : "torn");
}

static void handler_b(const char *text, void *arg)
{
	(void)text;
	say(strcmp(arg, "b") == 0 ? "pair" : "torn");
}

static atomic_u32 nsetters; // that have begun

static void *set_both(void *arg)
{
	(void)arg;
	for (uint64_t n = 0;; n++) {
		throw_set_handler(handler_a, "a");
		throw_set_handler(handler_b, "b");
		if (n == 0)
			atomic_u32_add_relaxed(&nsetters, 1);
	}
	return NULL;
}

static void throw_beside_setters(void)
{
	pthread_t setters[2];

	for (unsigned i = 0; i < RT_ARRAY_LEN(setters); i++)
		pthread_create(&setters[i], NULL, set_both, NULL);
	while (atomic_u32_load_relaxed(&nsetters) < RT_ARRAY_LEN(setters))
		oscall_yield();
	throw_fatal("w");
}

// Two threads change the handler all the time.  A handler is called with its
// own argument.  If the changes leave no gap, none is called.
TEST(handler_and_argument_are_one_pair)
{
	unsigned npairs = 0;

	for (unsigned i = 0; i < 30; i++) {
		ck_assert(dies(throw_beside_setters));
		if (strcmp(death_output, "pair") == 0)
			npairs++;
		else
			ck_assert_str_eq(death_output, "rtheap: fatal: w\n");
	}
	ck_assert_uint_gt(npairs, 0);
}

static void throw_in_signal(int sig)
{
	(void)sig;
	throw_fatal("w");
}

static void throw_on_top_of_a_setter(void)
{
	struct itimerval soon = {.it_value = {.tv_usec = 1000}};

	signal(SIGALRM, throw_in_signal);
	setitimer(ITIMER_REAL, &soon, NULL);
	set_both(NULL);
}

// A signal handler may throw while its thread is setting the fatal handler.
// Then no pair ever becomes whole.
//
// The thread sanitizer delivers signals only at calls that it knows.
TEST(throw_on_top_of_a_setter_ends, .unless = SUITE_TSAN)
{
	for (unsigned i = 0; i < 30; i++) {
		ck_assert(dies(throw_on_top_of_a_setter));
		if (strcmp(death_output, "pair") != 0)
			ck_assert_str_eq(death_output, "rtheap: fatal: w\n");
	}
}
