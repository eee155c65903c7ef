#include "test/harness/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/os/schedpoint.h"

int suite_main(Suite *s)
{
	SRunner *runner = srunner_create(s);
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

void suite_skipped(const char *test, const char *why, const char *package)
{
	int len = (int)strlen(test);

	// Check's START_TEST(x) defines a function x_fn.
	if (len > 3 && strcmp(test + len - 3, "_fn") == 0)
		len -= 3;
	fprintf(stderr, "skipped: 1 of %.*s: %s%s%s\n", len, test, why,
		package ? "; install " : "", package ? package : "");
}

uint64_t env_u64(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

void rng_init(struct rng *r, const char *test)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	r->state = env_u64("RT_SEED", (uint64_t)now.tv_sec * 1000003 +
					  (uint64_t)now.tv_nsec);
	schedpoint_seed(r->state);
	fprintf(stderr, "%s: RT_SEED=%llu\n", test,
		(unsigned long long)r->state);
}

uint64_t rng_next(struct rng *r)
{
	uint64_t z = r->state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

uint64_t rng_below(struct rng *r, uint64_t n)
{
	return rng_next(r) % n;
}
