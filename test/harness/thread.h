// thread.h - threads of a test.
#ifndef TEST_HARNESS_THREAD_H
#define TEST_HARNESS_THREAD_H

#include <check.h>
#include <pthread.h>
#include <rt/rt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static inline pthread_t start_thread(void *(*fn)(void *), void *arg)
{
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, fn, arg), 0);
	return thread;
}

// start_thread_on starts a thread with a stack of stack_size bytes.
static inline pthread_t start_thread_on(size_t stack_size, void *(*fn)(void *),
					void *arg)
{
	pthread_attr_t attr;
	pthread_t thread;

	ck_assert_int_eq(pthread_attr_init(&attr), 0);
	ck_assert_int_eq(pthread_attr_setstacksize(&attr, stack_size), 0);
	ck_assert_int_eq(pthread_create(&thread, &attr, fn, arg), 0);
	pthread_attr_destroy(&attr);
	return thread;
}

// join_thread returns what the thread's function returned.
static inline void *join_thread(pthread_t thread)
{
	void *result;

	ck_assert_int_eq(pthread_join(thread, &result), 0);
	return result;
}

// run_thread runs fn in another thread and returns its result.
static inline void *run_thread(void *(*fn)(void *), void *arg)
{
	return join_thread(start_thread(fn, arg));
}

// join_beside and run_beside are for a caller that is attached.  The caller
// waits in a blocking region, so the other thread may stop the world.
static inline void *join_beside(pthread_t thread)
{
	void *result;

	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	result = join_thread(thread);
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	return result;
}

static inline void *run_beside(void *(*fn)(void *), void *arg)
{
	void *result;

	ck_assert_int_eq(rt_blocking_enter(), RT_OK);
	result = run_thread(fn, arg);
	ck_assert_int_eq(rt_blocking_leave(), RT_OK);
	return result;
}

// thread_is_named tells whether the thread of this process with the number tid
// has that name.
static inline bool thread_is_named(const char *tid, const char *wanted)
{
	char path[300], name[20] = "";
	FILE *file;

	snprintf(path, sizeof path, "/proc/self/task/%s/comm", tid);
	file = fopen(path, "r");
	if (!file)
		return false; // it has ended
	if (!fgets(name, sizeof name, file))
		name[0] = '\0';
	fclose(file);
	name[strcspn(name, "\n")] = '\0';
	return strcmp(name, wanted) == 0;
}

#endif
