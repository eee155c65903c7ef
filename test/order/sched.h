// sched.h - threads that a test holds at schedule points.
//
// For programs that link test/libhooked.a.  A test holds one thread between two
// steps of a protocol, makes another take its own steps, and then releases the
// first.  If a thread must wait, the test waits until the thread has come to
// the point where it waits, so no test here passes because time has passed.
#ifndef TEST_ORDER_SCHED_H
#define TEST_ORDER_SCHED_H

#include <semaphore.h>

#include "test/harness/await.h"
#include "runtime/world/stw.h"
#include "test/harness/schedpoint.h"
#include "test/harness/suite.h"

// Points at which a thread of any test was held; shared by the processes of
// all tests.
extern atomic_u32 *sched_reached;

// A thread that calls one function.  A hand must be static or initialised.  If
// stays is set, its thread ends in hand_end and not before.  A thread that ends
// may hold locks of the address sanitizer, for which the child of a fork would
// wait for ever.  So a thread that might end while another forks must stay.
struct hand {
	pthread_t thread;
	atomic_u32 tid; // the system's number, once it has begun
	void (*fn)(void);
	bool stays;
	sem_t ends;
};

static inline void *hand_main(void *arg)
{
	struct hand *h = arg;

	atomic_u32_store_release(&h->tid, thread_number());
	h->fn();
	while (h->stays && sem_wait(&h->ends) != 0)
		;
	return NULL;
}

static inline void hand_start(struct hand *h, void (*fn)(void))
{
	h->fn = fn;
	atomic_u32_store_relaxed(&h->tid, 0);
	ck_assert_int_eq(sem_init(&h->ends, 0, 0), 0);
	h->thread = start_thread(hand_main, h);
}

static inline void hand_end(struct hand *h)
{
	sem_post(&h->ends);
	join_thread(h->thread);
}

static inline void hand_run(struct hand *h, void (*fn)(void))
{
	hand_start(h, fn);
	hand_end(h);
}

// await_held waits until a thread is held at a point.
static inline void await_held(enum schedpoint at)
{
	uint64_t end = nanotime() + AWAIT_SECONDS * UINT64_C(1000000000);

	while (!schedpoint_held(at)) {
		if (nanotime() > end)
			ck_abort_msg("no thread came to %s",
				     schedpoint_name(at));
		oscall_yield();
	}
	atomic_u32_store_relaxed(&sched_reached[at], 1);
}

// hold_at starts a hand and returns when it is held at a point.
static inline void hold_at(enum schedpoint at, struct hand *h, void (*fn)(void))
{
	schedpoint_hold(at);
	hand_start(h, fn);
	await_held(at);
}

// pass_at starts a hand and returns when it has come to a point.  The hand then
// continues.
static inline void pass_at(enum schedpoint at, struct hand *h, void (*fn)(void))
{
	hold_at(at, h, fn);
	schedpoint_release(at);
}

// move_on releases the thread that is held at one point, and returns when a
// thread is held at the other.
static inline void move_on(enum schedpoint from, enum schedpoint to)
{
	schedpoint_hold(to);
	if (from != to)
		schedpoint_release(from);
	await_held(to);
}

// let_end makes the thread at a point continue to its end.
static inline void let_end(enum schedpoint at, struct hand *h)
{
	schedpoint_release(at);
	hand_end(h);
}

// stop and start stop the world and start it again, as a thread without a P.
static inline void stop(void)
{
	stw_acquire(NULL);
	stw_stop(NULL, RT_STOP_HOST);
}

static inline void start(void)
{
	stw_start(NULL, NULL);
	stw_release();
}

#endif
