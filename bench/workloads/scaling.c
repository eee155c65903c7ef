// scaling.c - how much longer an allocation takes on N threads of one process
// than in N processes of one thread each, which share nothing but the machine.
//
// usage: scaling SIZE N
//
// Each thread allocates objects of SIZE bytes, scanned, that die 64 allocations
// later.  Each way has processes of its own.  The two run five times in turn,
// after all threads have warmed up.  The value is the median with threads,
// divided by that with processes; 1 is perfect.  The figures are nanoseconds
// for an allocation of each thread.  The checksum is how many objects were
// read.
#include "harness.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	ROUNDS = 5,
	LATER = 64,
	ALLOCATIONS = 2000000 / PEER_DIVISOR,
	MOST = 256 // threads
};

// The memory that the processes share.
struct shared {
	pthread_barrier_t ready;
	double began[MOST], ended[MOST];
	uint64_t read[MOST];
};

struct job {
	struct shared *shared;
	size_t size;
	int first; // number of the first thread of this process
};

PEER_INLINE uint64_t churn(size_t size, uint64_t n)
{
	uint64_t *held[LATER] = {NULL}, read = 0;

	for (uint64_t i = 0; i < n; i++) {
		uint64_t *p = peer_alloc(size), *old = held[i % LATER];

		if (old) {
			read += *old == i - LATER;
			heap_free(old);
		}
		*p = i;
		held[i % LATER] = p;
		peer_keep(held);
	}
	for (int i = 0; i < LATER; i++)
		heap_free(held[i]);
	return read;
}

static uint64_t churn_size(size_t size, uint64_t n)
{
	switch (size) {
	case 16:
		return churn(16, n);
	case 64:
		return churn(64, n);
	case 256:
		return churn(256, n);
	case 1024:
		return churn(1024, n);
	default:
		return churn(size, n);
	}
}

static void work(int who, void *arg)
{
	const struct job *job = arg;
	struct shared *s = job->shared;
	int i = job->first + who;

	churn_size(job->size, ALLOCATIONS / 4 + LATER);
	peer_wait(&s->ready);
	s->began[i] = peer_clock(CLOCK_MONOTONIC);
	s->read[i] = churn_size(job->size, ALLOCATIONS);
	s->ended[i] = peer_clock(CLOCK_MONOTONIC);
}

static pid_t process_start(struct job job, int nthreads)
{
	struct peer_time t = {0};
	pid_t pid = fork();

	if (pid < 0)
		peer_die("no process");
	if (pid > 0)
		return pid;
	heap_begin();
	peer_together(nthreads, work, &job, &t);
	_exit(0);
}

// run starts n threads in nprocesses processes.  It returns the seconds from
// the first beginning to the last end.
static double run(struct shared *s, size_t size, int n, int nprocesses)
{
	struct job job = {.shared = s, .size = size};
	double began, ended;
	pid_t pid[MOST];

	for (int i = 0; i < nprocesses; i++) {
		job.first = i * (n / nprocesses);
		pid[i] = process_start(job, n / nprocesses);
	}
	for (int i = 0; i < nprocesses; i++) {
		int status;

		if (waitpid(pid[i], &status, 0) < 0 || status)
			peer_die("a process failed");
	}
	began = s->began[0];
	ended = s->ended[0];
	for (int i = 1; i < n; i++) {
		began = s->began[i] < began ? s->began[i] : began;
		ended = s->ended[i] > ended ? s->ended[i] : ended;
	}
	return ended - began;
}

static struct shared *shared_make(unsigned n)
{
	struct shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_barrierattr_t attr;

	if (s == MAP_FAILED)
		peer_die("no shared memory");
	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&s->ready, &attr, n);
	return s;
}

int main(int argc, char **argv)
{
	static const uint64_t sizes[2] = {16, 4096}, threads[2] = {1, MOST};
	size_t size = (size_t)peer_number(argc, argv, 1, sizes);
	int n = (int)peer_number(argc, argv, 2, threads);
	struct shared *s = shared_make((unsigned)n);
	double together[ROUNDS], apart[ROUNDS];
	struct peer_time t = {0};
	uint64_t read = 0;

	for (int i = 0; i < ROUNDS; i++) {
		together[i] = run(s, size, n, 1);
		apart[i] = run(s, size, n, n);
		t.wall += together[i] + apart[i];
	}
	t.cpu = peer_cpu();
	for (int i = 0; i < n; i++)
		read += s->read[i];
	peer_figure("threads_ns",
		    peer_median(together, ROUNDS) * 1e9 / ALLOCATIONS);
	peer_figure("processes_ns",
		    peer_median(apart, ROUNDS) * 1e9 / ALLOCATIONS);
	peer_report(peer_median(together, ROUNDS) / peer_median(apart, ROUNDS),
		    "x", &t, read);
	return 0;
}
