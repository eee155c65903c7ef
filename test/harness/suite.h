// suite.h - what every test program shares.
#ifndef TEST_HARNESS_SUITE_H
#define TEST_HARNESS_SUITE_H

#include <check.h>
#include <stdbool.h>
#include <stdint.h>

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#else
#define RUNNING_ON_VALGRIND 0
#endif

// TEST begins a test, which registers itself:
//
//	TEST(a_sum_below_zero_throws, .n = 2, .exit = DEATH_EXPECTED)
//	{
//		...
//	}
//
// Each test runs in a process of its own, with nothing initialised.  It may
// read _i, which is 0 unless the test is run several times.  The options are
// fields of struct suite_test; any expression will do, since a constructor
// evaluates them.
//
// The tests of a group run in the order of their files' names, and then of
// their lines; its skipped tests come last.  A program fails if two of its
// tests have the same name, or if it has no test.
#define TEST(test, ...)                                                        \
	static void test(int);                                                 \
	static struct suite_test suite_##test;                                 \
	static void suite_skip_##test(int _i __attribute__((unused)))          \
	{                                                                      \
		suite_skipped(#test, suite_##test.unless, NULL);               \
	}                                                                      \
	__attribute__((constructor)) static void suite_add_##test(void)        \
	{                                                                      \
		suite_##test = (struct suite_test){                            \
		    .at = {#test, __FILE__, __LINE__, NULL},                   \
		    .fn = test,                                                \
		    .skip = suite_skip_##test,                                 \
		    __VA_ARGS__};                                              \
		suite_add_test(&suite_##test);                                 \
	}                                                                      \
	static void test(int _i __attribute__((unused)))

// GROUP begins a group: the tests after it in its file, up to the next one.
// CK_RUN_CASE chooses a group by its name.
//
//	GROUP(pages, .setup = begin, .timeout = 60);
//
// Tests before the first GROUP are in a group without options that has the name
// of the suite.  A second GROUP of one name has no options and continues the
// first.
#define GROUP(group, ...) SUITE_GROUP(#group, __LINE__, __VA_ARGS__)
#define SUITE_GROUP(group, line, ...) SUITE_GROUP_AT(group, line, __VA_ARGS__)
#define SUITE_GROUP_AT(group, line, ...)                                       \
	__attribute__((constructor)) static void suite_group_##line(void)      \
	{                                                                      \
		static struct suite_group suite_this;                          \
		suite_this = (struct suite_group){                             \
		    .at = {group, __FILE__, line, NULL}, __VA_ARGS__};         \
		suite_add_group(&suite_this);                                  \
	}                                                                      \
	struct suite_group

// Where something was registered.
struct suite_item {
	const char *name, *file;
	int line;
	struct suite_item *next; // in order
};

struct suite_test {
	struct suite_item at;
	void (*fn)(int);
	void (*skip)(int); // takes its place, and says why

	// Options.
	int n;		    // runs, with _i = 0 .. n-1; 0 is one run
	int base;	    // instead of n: runs with _i = base .. limit-1
	int limit;	    // 0: there is no range
	int signal;	    // the signal that must end the test
	int exit;	    // the status with which the test must end
	const char *unless; // why the test is skipped; NULL: it runs
};

// Reasons for the option unless.
#define SUITE_UNLESS(condition, why) ((condition) ? (why) : NULL)
#define SUITE_SANITIZED                                                        \
	SUITE_UNLESS(RT_ASAN || RT_TSAN, "not under a sanitizer")
#define SUITE_ASAN SUITE_UNLESS(RT_ASAN, "not under the address sanitizer")
#define SUITE_TSAN SUITE_UNLESS(RT_TSAN, "not under the thread sanitizer")
#define SUITE_VALGRIND SUITE_UNLESS(RUNNING_ON_VALGRIND, "not under valgrind")

struct suite_group {
	struct suite_item at;

	// Options.
	void (*setup)(void);	// runs in each test's process before the test
	void (*teardown)(void); // and after it
	double timeout; // seconds for each test; 0: CK_DEFAULT_TIMEOUT
	bool last;	// the group runs after those without this option
};

void suite_add_test(struct suite_test *t);
void suite_add_group(struct suite_group *g);

// suite_run runs what is registered and returns the exit status for main.  The
// suite has the name of the program, without check_.  A program that has more
// to do first has a main of its own that calls suite_run; others use the one in
// test/harness/main.c.
int suite_run(void);

// suite_skip reports that the calling test cannot run here, and why.  The test
// must then return.  Check knows no such result, so the closing sum subtracts
// the test from the tests that passed (tools/test-summary.sh).  package is the
// Debian package that is missing, or NULL.
#define suite_skip(why, package) suite_skipped(__func__, why, package)
void suite_skipped(const char *test, const char *why, const char *package);

// A small random number generator (splitmix64), so that a seed replays.
struct rng {
	uint64_t state;
};

// rng_init takes the seed from RT_SEED or otherwise from the clock, and prints
// it to stderr with the name of the test.
void rng_init(struct rng *r, const char *test);
uint64_t rng_next(struct rng *r);
uint64_t rng_below(struct rng *r, uint64_t n); // 0 .. n-1, n > 0

// A build that counts what is run (tools/coverage.sh) takes ten times as long.
#ifdef RT_COVERAGE
enum { COVERAGE_BUILD = 1 };
#else
enum { COVERAGE_BUILD = 0 };
#endif

// env_u64 returns a number from the environment, or otherwise if there is none.
uint64_t env_u64(const char *name, uint64_t otherwise);

#endif
