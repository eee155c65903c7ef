// The points where threads lose their processors.
#include "test/harness/schedpoint.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "runtime/os/oscall.h"
#include "test/harness/fault.h"
#include "test/harness/suite.h"
#include "test/harness/thread.h"
#include "test/harness/process.h"

enum { STEPS = 20000 };

// What a thread did at each of its points; 1: it gave its processor away.
struct choices {
	unsigned char yielded[STEPS];
};

static void *pass_all(void *arg)
{
	struct choices *c = arg;

	for (unsigned i = 0; i < STEPS; i++) {
		uint64_t before = fault_count(OSCALL_YIELD);

		schedpoint_pass(SCHED_MUTEX_LOCK);
		c->yielded[i] = fault_count(OSCALL_YIELD) != before;
	}
	return NULL;
}

static unsigned nyields(const struct choices *c)
{
	unsigned n = 0;

	for (unsigned i = 0; i < STEPS; i++)
		n += c->yielded[i];
	return n;
}

// draw makes the choices of the first thread of a process with this seed.
static void draw(uint64_t seed, struct choices *c)
{
	size_t len = 0;
	int fds[2];
	pid_t child;

	ck_assert_int_eq(pipe(fds), 0);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		schedpoint_seed(seed);
		pass_all(c);
		for (ssize_t n = 0; len < sizeof *c; len += (size_t)n)
			if ((n = write(fds[1], (char *)c + len,
				       sizeof *c - len)) <= 0)
				_exit(1);
		_exit(0);
	}
	close(fds[1]);
	for (ssize_t n = 1; n > 0 && len < sizeof *c; len += (size_t)n)
		n = read(fds[0], (char *)c + len, sizeof *c - len);
	close(fds[0]);
	process_join(child);
	ck_assert_uint_eq(len, sizeof *c);
}

static struct choices first, second;

// Calls that give the processor away are counted and refused, because they
// could take long.
static void count_yields(void)
{
	schedpoint_random();
	fault_fail(OSCALL_YIELD, 1, UINT64_MAX, EAGAIN);
}

GROUP(schedpoint, .setup = count_yields);

TEST(a_seed_replays_the_choices)
{
	static const uint64_t seeds[] = {0, 1, UINT64_MAX};

	for (unsigned i = 0; i < RT_ARRAY_LEN(seeds); i++) {
		draw(seeds[i], &first);
		draw(seeds[i], &second);
		ck_assert_mem_eq(&first, &second, sizeof first);
		draw(seeds[i] ^ 2, &second);
		ck_assert_mem_ne(&first, &second, sizeof first);
	}
}

// 3 of 64 passes; chance moves that by a tenth at most.
TEST(a_part_of_the_passes_yields)
{
	unsigned expected = STEPS * 3 / 64;

	schedpoint_seed(1);
	pass_all(&first);
	ck_assert_uint_ge(nyields(&first), expected * 9 / 10);
	ck_assert_uint_le(nyields(&first), expected * 11 / 10);
}

TEST(threads_choose_for_themselves)
{
	schedpoint_seed(1);
	pass_all(&first);
	run_thread(pass_all, &second);
	ck_assert_uint_gt(nyields(&second), 0);
	ck_assert_mem_ne(&first, &second, sizeof first);
}
