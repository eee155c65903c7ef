// limit.c - the memory limit: how far it is passed, and what it costs.
//
// usage: limit MIB PERCENT go|small SECONDS SHARE...
//
// The heap has a memory limit of MIB, and collects at PERCENT ("off": for the
// limit alone).  Objects are replaced at random for SECONDS of the process's
// CPU time at each SHARE: so many percent of the limit are requested and live.
//
// - go: one thread and pointer-free objects of 8000 bytes.  With 10 20 40 80
//   this is Go's TestMemoryLimit.
// - small: two threads and objects of 64 to 880 bytes, half of them scanned, so
//   that marking takes long.  More lives than SHARE says, because sizes are
//   rounded.
//
// The value is the most that the heap has held, less the limit, in MiB.  The
// figures are: the same of resident memory, without what the program had before
// there was a heap; the largest share of the process's CPU time that
// collections took in any 2 seconds, and the share in the last 2, in percent;
// the most CPU seconds by which collections took more than half of the CPU time
// of any stretch of time; the number of collections; and MiB allocated in a
// second.
//
// Good: at most 16 MiB over the limit where it can be kept, as Go's test
// demands, and at most 50 percent of CPU time.
#include "watch.h"

enum { LEAST = 64, STEPS = 103, MEAN = 472, THREADS = 2, GROUP = 64 };
enum { GO = 8000, FIRST = 5, SHARES = 16 };

static struct watch watch;

static struct {
	uint64_t **object[THREADS];
	bool go; // objects of 8000 bytes
	int nthreads;
	size_t n;		// entries of each table in use
	int over;		// 1: the threads must end
	uint64_t made[THREADS]; // bytes
} shared;

static void replace(int who, size_t i, uint64_t *seed)
{
	uint64_t r = peer_random(seed);
	size_t size = shared.go ? GO : LEAST + 8 * ((r >> 8) % STEPS);
	uint64_t *p = !shared.go && (r & 128) ? peer_alloc(size)
					      : peer_alloc_noscan(size);

	memset(p, 1 + (int)(r % 64), size);
	HEAP_STORE(shared.object[who], &shared.object[who][i], p);
	shared.made[who] += size;
}

static void work(int who, void *arg)
{
	uint64_t seed = (uint64_t)who + 1;
	size_t filled = 0;

	(void)arg;
	while (!__atomic_load_n(&shared.over, __ATOMIC_RELAXED)) {
		size_t n = __atomic_load_n(&shared.n, __ATOMIC_RELAXED);

		for (int i = 0; i < GROUP; i++)
			replace(who,
				filled < n ? filled++ : peer_below(&seed, n),
				&seed);
		heap_poll();
	}
}

// entries returns how many entries of a table are a share of the limit.
static size_t entries(uint64_t limit, uint64_t percent)
{
	return limit / 100 * percent / (shared.go ? GO : MEAN) /
	       (size_t)shared.nthreads;
}

struct steps {
	const uint64_t *share; // percent of the limit
	int n;
	uint64_t limit;
	unsigned seconds;
};

// lead is the thread that says how much lives; it does not allocate.
static void *lead(void *arg)
{
	const struct steps *s = arg;
	double until = peer_clock(CLOCK_PROCESS_CPUTIME_ID);

	for (int i = 0; i < s->n; i++) {
		__atomic_store_n(&shared.n, entries(s->limit, s->share[i]),
				 __ATOMIC_RELAXED);
		until += s->seconds;
		do
			usleep(1000);
		while (peer_clock(CLOCK_PROCESS_CPUTIME_ID) < until);
	}
	__atomic_store_n(&shared.over, 1, __ATOMIC_RELAXED);
	return NULL;
}

// over_half looks at each stretch of time.  It returns the most CPU seconds by
// which collections took more than half of the CPU time of a stretch.
static double over_half(void)
{
	double least = 0, most = 0;

	for (size_t i = 0; i < watch.n; i++) {
		const struct watch_sample *s = &watch.sample[i];
		double over = s->gc_cpu - s->cpu / 2;

		least = over < least ? over : least;
		most = over - least > most ? over - least : most;
	}
	return most;
}

static void report(uint64_t limit, double own, const struct peer_time *t)
{
	double held = 0, resident = 0, share = 0;

	for (size_t i = 0; i < watch.n; i++) {
		const struct watch_sample *s = &watch.sample[i];
		double percent = watch_share(&watch, i);

		held = s->held > held ? s->held : held;
		resident = s->resident > resident ? s->resident : resident;
		share = percent > share ? percent : share;
	}
	peer_figure("resident_over_MiB",
		    (resident - own - (double)limit) / WATCH_MIB);
	peer_figure("collector_percent", share);
	peer_figure("last_percent", watch_share(&watch, watch.n - 1));
	peer_figure("over_half_s", over_half());
	peer_figure("collections", (double)watch_cycle_count());
	peer_figure("made_MiB_s", (double)(shared.made[0] + shared.made[1]) /
				      WATCH_MIB / t->wall);
	peer_report((held - (double)limit) / WATCH_MIB, "MiB", t, 0);
}

static void configure(uint64_t limit, const char *percent)
{
	rt_config c;

	rt_config_init(&c);
	heap_must(rt_config_from_env(&c), "rt_config_from_env");
	c.memory_limit = (int64_t)limit;
	c.gc_percent = strcmp(percent, "off") ? atoi(percent) : -1;
	heap_must(rt_init(&c), "rt_init");
}

// tables_make makes the tables of all threads.
static void tables_make(uint64_t limit, uint64_t most)
{
	heap_hold(shared.object, shared.object + THREADS);
	shared.n = 1;
	for (int i = 0; i < shared.nthreads; i++)
		shared.object[i] =
		    peer_alloc(entries(limit, most) * sizeof *shared.object[i]);
}

// run replaces objects at each share, and takes samples meanwhile.
static void run(struct steps *s, struct peer_time *t)
{
	pthread_t leader;

	watch_begin(&watch, 10);
	if (pthread_create(&leader, NULL, lead, s))
		peer_die("no thread");
	peer_together(shared.nthreads, work, NULL, t);
	pthread_join(leader, NULL);
	watch_end(&watch);
	watch_print(&watch, 0.5);
}

int main(int argc, char **argv)
{
	static const uint64_t mib[2] = {1, 8192}, seconds[2] = {0, 600},
			      percent[2] = {1, 200};
	uint64_t limit = peer_number(argc, argv, 1, mib) << 20;
	uint64_t share[SHARES], most = 0;
	struct steps s = {share, argc - FIRST, limit,
			  (unsigned)peer_number(argc, argv, 4, seconds)};
	double own = watch_resident();
	struct peer_time t = {0};

	if (s.n < 1 || s.n > SHARES)
		peer_die("1 to 16 shares are wanted");
	for (int i = 0; i < s.n; i++) {
		share[i] = peer_number(argc, argv, FIRST + i, percent);
		most = share[i] > most ? share[i] : most;
	}
	shared.go = !strcmp(peer_word(argc, argv, 3), "go");
	shared.nthreads = shared.go ? 1 : THREADS;
	configure(limit, peer_word(argc, argv, 2));
	tables_make(limit, most);
	run(&s, &t);
	report(limit, own, &t);
	return 0;
}
