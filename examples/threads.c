// threads.c - interpreters, a thread each, that share a cache of texts.
//
// A collection waits until every attached thread is stopped where it polls, or
// is inside a blocking region.  So a thread must not run for long without a
// poll, and must wait in a region: for a lock, for another thread, for input.
#include <rt/rt.h>

#include <err.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "report.h"

enum { THREADS = 4, ROUNDS = 300, TEXTS = 1000, TEXT_SIZE = 16 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char **cache; // a root; the texts of 0 to TEXTS - 1; mutex

// must ends the program if e, an error of the library or an errno, is not 0.
static void must(int e)
{
	if (e)
		errx(1, "%s", e < 0 ? rt_strerror(e) : strerror(e));
}

static void *lock(void *m)
{
	must(pthread_mutex_lock((pthread_mutex_t *)m));
	return NULL;
}

// text_of returns the text of i, and makes it when it is first needed.  The
// allocation may collect, with the mutex locked.  A collection would wait for
// ever for a thread that waits for the mutex outside a region.
static char *text_of(int i)
{
	rt_call_blocking(lock, &mutex);
	if (!cache[i]) {
		char *text = (char *)rt_alloc_noscan(TEXT_SIZE);

		must(text ? RT_OK : RT_ENOMEM);
		snprintf(text, TEXT_SIZE, "%d", i);
		RT_STORE(cache, &cache[i], text);
	}
	char *text = cache[i];
	must(pthread_mutex_unlock(&mutex));
	return text;
}

static void *interpreter(void *arg)
{
	long *length = (long *)arg;

	must(rt_thread_attach(0)); // from here on this stack is scanned
	for (int round = 0; round < ROUNDS; round++) {
		char **copy = (char **)rt_alloc(TEXTS * sizeof *copy);

		must(copy ? RT_OK : RT_ENOMEM);
		for (int i = 0; i < TEXTS; i++)
			RT_STORE(copy, &copy[i], text_of(i));
		for (int i = 0; i < TEXTS; i++) {
			*length += (long)strlen(copy[i]);
			rt_safepoint(); // nothing else polls here
		}
	}
	must(rt_thread_detach());
	return NULL;
}

int main(void)
{
	pthread_t thread[THREADS];
	long length[THREADS] = {0};

	must(rt_init(NULL)); // attaches this thread
	must(rt_roots_add(&cache, &cache + 1, RT_ROOT_EXACT));
	cache = (char **)rt_alloc(TEXTS * sizeof *cache);
	must(cache ? RT_OK : RT_ENOMEM);
	for (int i = 0; i < THREADS; i++)
		must(pthread_create(&thread[i], NULL, interpreter, &length[i]));
	must(rt_blocking_enter());
	for (int i = 0; i < THREADS; i++)
		must(pthread_join(thread[i], NULL));
	must(rt_blocking_leave());
	for (int i = 0; i < THREADS; i++)
		printf("interpreter %d read %ld characters\n", i, length[i]);
	bool right = report_print(stdout);
	return rt_fini() == RT_OK && right ? 0 : 1;
}
