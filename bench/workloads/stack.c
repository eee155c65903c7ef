// stack.c - nanoseconds for each frame of a deep stack in a full collection.
//
// usage: stack FRAMES
//
// The recursion is FRAMES deep, on a thread with room for it.  Every frame
// holds one object of 32 bytes that nothing else refers to.  At the bottom a
// first collection removes the garbage of the descent; the value is the median
// of five more.  The figures are the time of the whole collection, its
// processor time for a frame, and how long the last one stopped the world, if
// the heap says so.  The checksum is of the objects, read on the way up.
//
// Good: with two processors about half the time of one, because markers share a
// stack in pieces.
#include "harness.h"

enum { COLLECTIONS = 5, FRAME = 512 }; // bytes, at most

struct job {
	uint64_t frames, sum;
	struct peer_time t;
	double seconds; // the median
};

static void collect_often(struct job *job)
{
	double sample[COLLECTIONS];

	heap_collect();
	for (int i = 0; i < COLLECTIONS; i++) {
		struct peer_time one = {0};

		peer_start(&one);
		heap_collect();
		peer_stop(&one);
		sample[i] = one.wall;
		job->t.wall += one.wall;
		job->t.cpu += one.cpu;
	}
	job->seconds = peer_median(sample, COLLECTIONS);
}

static __attribute__((noinline)) uint64_t descend(struct job *job, uint64_t n)
{
	uint64_t *object, below = 0;

	if (n == 0) {
		collect_often(job);
		return 0;
	}
	object = peer_alloc(4 * sizeof *object);
	object[1] = n;
	below = descend(job, n - 1);
	peer_keep(object);
	return below * 31 + object[1];
}

static void *thread_main(void *arg)
{
	struct job *job = arg;

	heap_attach();
	job->sum = descend(job, job->frames);
	heap_detach();
	return NULL;
}

int main(int argc, char **argv)
{
	static const uint64_t bounds[2] = {1, 10000000};
	struct job job = {.frames = peer_number(argc, argv, 1, bounds)};
	pthread_attr_t attr;
	pthread_t tid;

	heap_begin();
	pthread_attr_init(&attr);
	if (pthread_attr_setstacksize(&attr, (job.frames + 1024) * FRAME) ||
	    pthread_create(&tid, &attr, thread_main, &job))
		peer_die("no thread with such a stack");
	heap_block();
	pthread_join(tid, NULL);
	heap_unblock();
	peer_figure("collection_ms", job.seconds * 1e3);
	peer_figure("cpu_ns",
		    job.t.cpu * 1e9 / COLLECTIONS / (double)job.frames);
	peer_pause_figure();
	peer_report(job.seconds * 1e9 / (double)job.frames, "ns", &job.t,
		    job.sum);
	return 0;
}
