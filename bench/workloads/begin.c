// begin.c - microseconds until a heap has begun and its first object is
// allocated.
//
// usage: begin
//
// A process forks a hundred times before its heap begins.  Each child begins
// the heap, allocates one object, and reports how long both took.  The value is
// the median, and cpu_us is the median of the CPU time.  One more child, the
// first, is not counted.  Good: less than a process takes to begin, some
// hundred microseconds.  The checksum is the number of children.
#include "harness.h"

#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN = 100 };

struct took {
	double wall, cpu; // us
};

static _Noreturn void child(int out)
{
	double cpu = peer_clock(CLOCK_PROCESS_CPUTIME_ID);
	double wall = peer_clock(CLOCK_MONOTONIC);
	struct took us;

	heap_begin();
	peer_keep(peer_alloc(64));
	us.wall = (peer_clock(CLOCK_MONOTONIC) - wall) * 1e6;
	us.cpu = (peer_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu) * 1e6;
	_exit(write(out, &us, sizeof us) != sizeof us);
}

static struct took begin_once(void)
{
	int ends[2], status;
	struct took us;
	pid_t pid;

	if (pipe(ends) || (pid = fork()) < 0)
		peer_die("no process");
	if (pid == 0)
		child(ends[1]);
	if (waitpid(pid, &status, 0) < 0 || status ||
	    read(ends[0], &us, sizeof us) != sizeof us)
		peer_die("a process failed");
	close(ends[0]);
	close(ends[1]);
	return us;
}

int main(void)
{
	double wall[CHILDREN], cpu[CHILDREN];
	struct peer_time t = {0};

	begin_once();
	peer_start(&t);
	for (int i = 0; i < CHILDREN; i++) {
		struct took us = begin_once();

		wall[i] = us.wall;
		cpu[i] = us.cpu;
	}
	peer_stop(&t);
	peer_figure("cpu_us", peer_median(cpu, CHILDREN));
	peer_report(peer_median(wall, CHILDREN), "us", &t, CHILDREN);
	return 0;
}
