// unattached.h - a thread that is not attached removes a root and tries to add
// it again.
#ifndef TEST_HARNESS_UNATTACHED_H
#define TEST_HARNESS_UNATTACHED_H

#include "test/harness/await.h"

struct unattached {
	int (*remove)(void);
	int (*add)(void);
	size_t (*count)(void); // of roots: 1 before it is removed
	atomic_u32 began, ended;
	int removed, removed_again, added;
};

static inline void *unattached_main(void *arg)
{
	struct unattached *u = arg;

	atomic_u32_store_release(&u->began, 1);
	u->removed = u->remove();
	u->removed_again = u->remove();
	u->added = u->add();
	atomic_u32_store_release(&u->ended, 1);
	return NULL;
}

static inline void unattached_end(const struct unattached *u, pthread_t thread)
{
	join_thread(thread);
	ck_assert_int_eq(u->removed, RT_OK);
	ck_assert_int_eq(u->removed_again, RT_ENOENT);
	ck_assert_int_eq(u->added, RT_EPERM);
	ck_assert_uint_eq(u->count(), 0);
}

static inline void unattached_removes(struct unattached *u)
{
	unattached_end(u, start_thread(unattached_main, u));
}

// unattached_waits requires that the calls of the thread wait as long as the
// world is stopped, and that the stopper's own calls are refused.
static inline void unattached_waits(struct unattached *u)
{
	pthread_t thread;

	must(rt_stop_the_world(RT_STOP_HOST));
	thread = start_thread(unattached_main, u);
	await_at_least(&u->began, 1);
	ck_assert(stays(&u->ended, 0));
	ck_assert_uint_eq(u->count(), 1);
	ck_assert_int_eq(u->remove(), RT_EBUSY);
	ck_assert_int_eq(u->add(), RT_EBUSY);
	must(rt_start_the_world(NULL));
	unattached_end(u, thread);
}

#endif
