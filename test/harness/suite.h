// suite.h - what every test program shares.
#ifndef TEST_HARNESS_SUITE_H
#define TEST_HARNESS_SUITE_H

#include <check.h>
#include <stdint.h>

// suite_main runs a suite, each test in a process of its own, and returns
// the exit status for main.  Tests start with nothing initialised.
int suite_main(Suite *s);

// suite_skip says that the calling test cannot run here, and why; the test then
// returns.  Check knows no such result, so the closing sum takes the test off
// those that passed (tools/test-summary.sh).  package: the Debian package that
// would let it run, or NULL.
#define suite_skip(why, package) suite_skipped(__func__, why, package)
void suite_skipped(const char *test, const char *why, const char *package);

// A small random number generator (splitmix64), so that a seed replays.
struct rng {
	uint64_t state;
};

// rng_init takes the seed from RT_SEED, else from the clock, and prints it to
// stderr with the name of the test.
void rng_init(struct rng *r, const char *test);
uint64_t rng_next(struct rng *r);
uint64_t rng_below(struct rng *r, uint64_t n); // 0 .. n-1, n > 0

// In a build that counts what is run (tools/coverage.sh) everything takes ten
// times as long.
#ifdef RT_COVERAGE
enum { COVERAGE_BUILD = 1 };
#else
enum { COVERAGE_BUILD = 0 };
#endif

// env_u64 is a number from the environment, or the default.
uint64_t env_u64(const char *name, uint64_t otherwise);

#endif
