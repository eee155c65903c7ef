// Gauges in parts: the sum is what all Ps, and the threads without a P, have
// moved.
#define RT_NO_INLINE_ALLOC
#include <pthread.h>
#include <rt/rt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "runtime/os/gauge.h"
#include "runtime/world/heapgauge.h"
#include "test/harness/death.h"
#include "test/harness/heap.h"
#include "test/harness/thread.h"

enum { THREADS = 4, MOVES = 20000 };

// A heap for the memory of P records, with no attached thread and no page
// taken.
static void begin_unattached(void)
{
	rt_config c = heap_config(100);

	c.no_attach = 1;
	heap_start(c);
}

GROUP(heapgauge, .setup = begin_unattached, .timeout = 60);

// attach_stopped makes a P that counts as stopped, so that its parts may be
// summed.
static struct rt_proc *attach_stopped(void)
{
	struct rt_proc *p = proc_attach(0);

	proc_block(p);
	return p;
}

TEST(sums_begin_at_zero)
{
	uint64_t sums[HEAPGAUGE_COUNT];

	memset(sums, 1, sizeof sums);
	heapgauge_read(sums);
	for (unsigned i = 0; i < HEAPGAUGE_COUNT; i++)
		ck_assert_uint_eq(sums[i], 0);
}

// One P may free what another P allocated.
TEST(a_part_may_be_negative)
{
	struct rt_proc *p = attach_stopped();
	struct rt_proc *q = attach_stopped();

	for (unsigned i = 0; i < HEAPGAUGE_COUNT; i++) {
		heapgauge_add(p, (enum heapgauge)i, 1000 + i);
		heapgauge_add(q, (enum heapgauge)i, -600);
		heapgauge_add(NULL, (enum heapgauge)i, -300);
		ck_assert_uint_eq(heapgauge_sum((enum heapgauge)i), 100 + i);
	}
}

TEST(mapped_memory_begins_as_released)
{
	gauge_add(&gauges.heap_mapped, RT_CHUNK_SIZE);
	heapgauge_add(NULL, HEAPGAUGE_RELEASED, -4096);
	ck_assert_uint_eq(heapgauge_sum(HEAPGAUGE_RELEASED),
			  RT_CHUNK_SIZE - 4096);
	ck_assert_uint_eq(heapgauge_sum(HEAPGAUGE_FREE), 0);
}

// The record of a detached P is still summed.  The next thread that gets the
// record continues with the values that it finds there.
TEST(parts_outlast_their_thread)
{
	struct rt_proc *p = proc_attach(0);

	for (int i = 1; i <= 3; i++) {
		heapgauge_add(p, HEAPGAUGE_TOTAL_ALLOC, 10);
		proc_detach(p);
		ck_assert_uint_eq(heapgauge_sum(HEAPGAUGE_TOTAL_ALLOC), 10 * i);
		ck_assert_ptr_eq(proc_attach(0), p);
	}
}

// Parts are collected once: reading again finds the same sum.  A P that
// continues enters the list again, once.
TEST(parts_are_collected_when_summed)
{
	struct rt_proc *p = attach_stopped();
	struct rt_proc *idle = attach_stopped();

	for (int i = 1; i <= 5; i++) {
		heapgauge_add(p, HEAPGAUGE_FREE, 3);
		heapgauge_add(p, HEAPGAUGE_FREE, 4);
		ck_assert_ptr_eq(atomic_ptr_load_relaxed(&heapgauges.counted),
				 p);
		ck_assert_uint_eq(heapgauge_sum(HEAPGAUGE_FREE), 7 * i);
		ck_assert_uint_eq(heapgauge_sum(HEAPGAUGE_FREE), 7 * i);
		ck_assert_ptr_null(
		    atomic_ptr_load_relaxed(&heapgauges.counted));
		ck_assert_uint_eq(gauge_load(&p->gauges[HEAPGAUGE_FREE]), 0);
	}
	ck_assert(!idle->counted);
}

TEST(reset_forgets_what_was_counted)
{
	struct rt_proc *p = proc_attach(0);

	heapgauge_add(NULL, HEAPGAUGE_TOTAL_FREE, 16);
	heapgauge_add(p, HEAPGAUGE_IN_USE, 8192);
	heapgauge_reset();
	for (unsigned i = 0; i < HEAPGAUGE_COUNT; i++)
		ck_assert_uint_eq(heapgauge_sum((enum heapgauge)i), 0);
}

// ---- threads ----

static void *move(void *arg)
{
	struct rt_proc *p = arg ? proc_attach(0) : NULL;

	for (int i = 0; i < MOVES; i++) {
		heapgauge_add(p, HEAPGAUGE_FREE, 3);
		heapgauge_add(p, HEAPGAUGE_FREE, -2);
		heapgauge_add(p, HEAPGAUGE_IN_USE, 5);
	}
	if (p)
		proc_detach(p);
	return NULL;
}

TEST(no_move_is_lost)
{
	pthread_t tid[THREADS];

	for (int i = 0; i < THREADS; i++)
		tid[i] = start_thread(move, i < 2 ? tid : NULL);
	for (int i = 0; i < THREADS; i++)
		join_thread(tid[i]);
	ck_assert_uint_eq(heapgauge_sum(HEAPGAUGE_FREE), THREADS * MOVES);
	ck_assert_uint_eq(heapgauge_sum(HEAPGAUGE_IN_USE), THREADS * MOVES * 5);
}

// ---- entering the list ----

enum { CROWD = 512, BATCHES = RT_TSAN ? 50 : 200, INTERVAL_US = 30 };

static struct rt_proc *crowd[CROWD];  // the test enters them one by one
static struct rt_proc *others[CROWD]; // the signal handler enters them
static volatile sig_atomic_t nothers; // of this batch

static void enter_another(int sig)
{
	(void)sig;
	if (nothers < CROWD)
		heapgauge_add(others[nothers++], HEAPGAUGE_FREE, 1);
}

static void allow_alarm(bool on)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	pthread_sigmask(on ? SIG_UNBLOCK : SIG_BLOCK, &set, NULL);
}

// A signal handler enters Ps in the list while another P is about to enter.
// Then all are in the list, each once.  A signal may come between any two
// instructions, as another thread may.
TEST(a_thread_that_enters_in_between_is_found)
{
	const struct itimerval often = {{0, INTERVAL_US}, {0, INTERVAL_US}};
	const struct itimerval never = {{0, 0}, {0, 0}};
	uint64_t sum = 0;

	for (int i = 0; i < CROWD; i++) {
		crowd[i] = attach_stopped();
		others[i] = attach_stopped();
	}
	allow_alarm(false);
	signal(SIGALRM, enter_another);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int batch = 0; batch < BATCHES; batch++) {
		nothers = 0;
		allow_alarm(true);
		for (int i = 0; i < CROWD; i++)
			heapgauge_add(crowd[i], HEAPGAUGE_FREE, 1);
		allow_alarm(false);
		sum += CROWD + (uint64_t)nothers;
		ck_assert_uint_eq(heapgauge_sum(HEAPGAUGE_FREE), sum);
	}
	setitimer(ITIMER_REAL, &never, NULL);
}

// ---- sums below zero ----

TEST(a_sum_below_zero_throws, .n = HEAPGAUGE_COUNT, .exit = DEATH_EXPECTED)
{
	struct rt_proc *p = attach_stopped();

	death_expect("rtheap: fatal: sysMemStat overflow");
	heapgauge_add(p, (enum heapgauge)_i, 7);
	heapgauge_add(NULL, (enum heapgauge)_i, -8);
	heapgauge_sum(HEAPGAUGE_IN_USE);
}
