// The time of stops, by reason: each stop counts under its reason, and the
// longest stop is known with its slowest thread.
#include <limits.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/harness/await.h"
#include "test/harness/heap.h"
#include "test/harness/late.h"
#include "test/harness/kind.h"
#include "test/harness/thread.h"

static const int reasons[] = {
    RT_STOP_UNKNOWN,	   RT_STOP_GC_MARK_TERM,    RT_STOP_GC_SWEEP_TERM,
    RT_STOP_READ_MEMSTATS, RT_STOP_HEAP_WALK,	    RT_STOP_HEAP_VERIFY,
    RT_STOP_FORK,	   RT_STOP_KIND_UNREGISTER, RT_STOP_HOST};

enum { REASONS = RT_ARRAY_LEN(reasons) };

static rt_stops stops_for(int reason)
{
	rt_stops s;

	must(rt_read_stops(reason, &s));
	ck_assert_uint_eq(s.struct_size, sizeof s);
	ck_assert_uint_eq(s.spare, 0);
	ck_assert_uint_le(s.stopping_ns, s.total_ns);
	ck_assert_uint_le(s.longest.total_ns, s.total_ns);
	ck_assert_uint_ge(s.longest.total_ns * s.count, s.total_ns);
	ck_assert_uint_eq(s.longest.total_ns,
			  s.longest.stopping_ns + s.longest.stopped_ns);
	return s;
}

// ---- acts ----

static int walk_object(void *obj, size_t size, int kind, void *arg)
{
	(void)obj, (void)size, (void)kind, (void)arg;
	return 0;
}

static void collect(void)
{
	must(rt_gc());
}

static void release(void)
{
	must(rt_free_os_memory());
}

static void read_stats(void)
{
	rt_memstats m;

	must(rt_read_memstats(&m));
}

static void walk(void)
{
	must(rt_heap_walk(walk_object, NULL));
}

static void list(void)
{
	size_t n;

	ck_assert_ptr_nonnull(rt_heap_list(-1, NULL, NULL, &n));
}

static void verify(void)
{
	struct rt_verify v;

	must(rt_heap_verify(&v));
}

static void fork_child(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

static void unregister(void)
{
	must(rt_kind_unregister(kind_make(.layout = RT_LAYOUT_WORDS)));
}

static void stop_by_host(void)
{
	must(rt_stop_the_world(RT_STOP_HOST + 5));
	read_stats(); // makes no stop of its own
	must(rt_start_the_world(NULL));
}

static const struct {
	int reason;
	void (*act)(void);
	uint64_t stops;	      // for that reason
	uint64_t collections; // further stops, for collections
} acts[] = {
    {RT_STOP_GC_MARK_TERM, collect, 1, 0},
    {RT_STOP_READ_MEMSTATS, read_stats, 1, 0},
    {RT_STOP_HEAP_WALK, walk, 1, 0},
    {RT_STOP_HEAP_VERIFY, verify, 1, 0},
    {RT_STOP_FORK, fork_child, 1, 0},
    {RT_STOP_KIND_UNREGISTER, unregister, 1, 0},
    {RT_STOP_HOST, stop_by_host, 1, 0},
    // These make several stops.
    {RT_STOP_HEAP_WALK, list, 2, 0}, // counts, then lists
    {RT_STOP_UNKNOWN, release, 1, 1},
};

enum { ACTS = RT_ARRAY_LEN(acts), SINGLE = ACTS - 2 };

GROUP(acts, .timeout = 60);

// counted returns by how much an act must raise the number of stops for a
// reason.
static uint64_t counted(unsigned act, int reason)
{
	return (acts[act].reason == reason ? acts[act].stops : 0) +
	       (reason == RT_STOP_GC_MARK_TERM ? acts[act].collections : 0);
}

TEST(an_act_counts_for_its_reason, .n = ACTS)
{
	rt_stops before[REASONS];

	heap_begin();
	for (unsigned i = 0; i < REASONS; i++)
		before[i] = stops_for(reasons[i]);
	acts[_i].act();
	for (unsigned i = 0; i < REASONS; i++) {
		uint64_t more = counted(_i, reasons[i]);
		rt_stops s = stops_for(reasons[i]);

		ck_assert_uint_eq(s.count, before[i].count + more);
		if (more == 0)
			ck_assert(memcmp(&s, &before[i], sizeof s) == 0);
		else
			ck_assert_uint_eq(s.longest.nthreads, 1);
	}
}

TEST(a_new_heap_has_no_stops)
{
	rt_stops s, none = {.struct_size = sizeof none};

	for (int i = 0; i < 2; i++) {
		heap_begin();
		for (unsigned r = 0; r < REASONS; r++) {
			s = stops_for(reasons[r]);
			ck_assert(memcmp(&s, &none, sizeof s) == 0);
		}
		for (unsigned a = 0; a < ACTS; a++)
			acts[a].act();
		must(rt_fini());
		ck_assert_int_eq(rt_read_stops(RT_STOP_HOST, &s), RT_ESTATE);
	}
}

// Each collection counts as one stop.
TEST(collections_have_as_many_stops)
{
	heap_begin();
	for (int i = 0; i < 3; i++)
		collect();
	ck_assert_uint_eq(stops_for(RT_STOP_GC_MARK_TERM).count, 3);
	ck_assert_uint_eq(heap_metric("/gc/cycles/total:gc-cycles"), 3);
}

// ---- the longest ----

TEST(the_longest_stop_is_told)
{
	uint64_t total = 0, stopping = 0;
	rt_stop_times longest = {0};
	rt_stops s;

	heap_begin();
	for (int i = 0; i < 20; i++) {
		rt_stop_times t;

		must(rt_stop_the_world(RT_STOP_HOST + i));
		if (i == 7)
			sleep_ns(20 * 1000 * 1000);
		must(rt_start_the_world(&t));
		total += t.total_ns;
		stopping += t.stopping_ns;
		longest = t.total_ns > longest.total_ns ? t : longest;
		s = stops_for(RT_STOP_HOST + 100);
		ck_assert_uint_eq(s.count, (uint64_t)i + 1);
		ck_assert_uint_eq(s.total_ns, total);
		ck_assert_uint_eq(s.stopping_ns, stopping);
		ck_assert(memcmp(&s.longest, &longest, sizeof longest) == 0);
	}
	ck_assert_uint_ge(s.longest.stopped_ns, 20 * 1000 * 1000);
}

// Only acts with a single stop are tried.  When a second stop follows at once,
// the thread may not run between the two.
TEST(the_slowest_thread_is_named, .n = SINGLE)
{
	pthread_t thread;
	rt_stops s;

	heap_begin();
	thread = start_thread(poll_seldom, NULL);
	await_at_least(&late.running, 1);
	acts[_i].act();
	s = stops_for(acts[_i].reason);
	ck_assert_uint_eq(s.count, 1);
	ck_assert_uint_eq(s.longest.nthreads, 2);
	ck_assert_uint_eq(s.longest.slowest, atomic_u32_load_relaxed(&late.id));
	ck_assert_uint_ge(s.longest.stopping_ns, 1000000);
	atomic_u32_store_release(&late.end, 1);
	join_beside(thread);
}

// ---- which threads may read ----

// The child of a fork has what its parent had, and the stop of the fork.
TEST(a_child_has_the_stops_of_its_parent)
{
	rt_stops before[REASONS];
	int status;
	pid_t pid;

	heap_begin();
	for (unsigned a = 0; a < ACTS; a++)
		acts[a].act();
	for (unsigned i = 0; i < REASONS; i++)
		before[i] = stops_for(reasons[i]);
	pid = fork();
	for (unsigned i = 0; i < REASONS; i++) {
		rt_stops s;
		bool ok =
		    rt_read_stops(reasons[i], &s) == RT_OK &&
		    s.count == before[i].count + (reasons[i] == RT_STOP_FORK);

		if (reasons[i] != RT_STOP_FORK)
			ok &= memcmp(&s, &before[i], sizeof s) == 0;
		if (pid == 0 && !ok)
			_exit((int)i + 1);
		ck_assert(ok);
	}
	if (pid == 0)
		_exit(rt_gc() == RT_OK &&
			      stops_for(RT_STOP_GC_MARK_TERM).count ==
				  before[1].count + 1
			  ? 0
			  : 100);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

static struct {
	atomic_u32 end, reads, wrong;
} reader;

// read_on reads from a thread that is not attached, while other threads stop
// the world.
static void *read_on(void *arg)
{
	uint64_t count = 0;

	while (!atomic_u32_load_acquire(&reader.end)) {
		rt_stops s;

		must(rt_read_stops(RT_STOP_HOST, &s));
		if (s.count < count || s.longest.total_ns > s.total_ns ||
		    s.longest.total_ns * s.count < s.total_ns ||
		    (s.count != 0) != (s.longest_reason != 0))
			atomic_u32_add_relaxed(&reader.wrong, 1);
		count = s.count;
		atomic_u32_add_relaxed(&reader.reads, 1);
	}
	return arg;
}

TEST(any_thread_reads_beside_stops)
{
	pthread_t thread;

	heap_begin();
	thread = start_thread(read_on, NULL);
	for (uint32_t n = 0; n < 2000; n++) {
		stop_by_host();
		if (n % 100 == 0) {
			must(rt_blocking_enter());
			await_at_least(&reader.reads, n / 10);
			must(rt_blocking_leave());
		}
	}
	atomic_u32_store_release(&reader.end, 1);
	join_beside(thread);
	ck_assert_uint_eq(atomic_u32_load_relaxed(&reader.wrong), 0);
	ck_assert_uint_eq(stops_for(RT_STOP_HOST).count, 2000);
}

// In the caller's own stop that stop does not count yet.
TEST(the_present_stop_does_not_count)
{
	heap_begin();
	must(rt_stop_the_world(RT_STOP_HOST));
	ck_assert_uint_eq(stops_for(RT_STOP_HOST).count, 0);
	must(rt_start_the_world(NULL));
	ck_assert_uint_eq(stops_for(RT_STOP_HOST).count, 1);
}

// ---- arguments ----

TEST(wrong_arguments_change_nothing)
{
	static const int none[] = {-1, INT_MIN, RT_STOP_KIND_UNREGISTER + 1,
				   RT_STOP_HOST - 1};
	static const size_t sizes[] = {0, 8, 15, 4097, SIZE_MAX};
	rt_stops s, was;

	heap_begin();
	memset(&s, 0xa5, sizeof s);
	was = s;
	for (unsigned i = 0; i < RT_ARRAY_LEN(none); i++)
		ck_assert_int_eq(rt_read_stops(none[i], &s), RT_EINVAL);
	for (unsigned i = 0; i < RT_ARRAY_LEN(sizes); i++)
		ck_assert_int_eq(
		    rt_read_stops_sized(RT_STOP_HOST, &s, sizes[i]), RT_EINVAL);
	ck_assert_int_eq(rt_read_stops_sized(0, NULL, sizeof s), RT_EINVAL);
	ck_assert(memcmp(&s, &was, sizeof s) == 0);
}

// A host may have been compiled with a shorter or a longer struct.
TEST(other_sizes_of_the_struct)
{
	static const size_t sizes[] = {16,
				       20,
				       offsetof(rt_stops, longest_reason),
				       sizeof(rt_stops),
				       sizeof(rt_stops) + 8,
				       4096};
	static union {
		rt_stops s;
		unsigned char byte[4096 + 8];
	} host;
	rt_stops s;

	heap_begin();
	stop_by_host();
	s = stops_for(RT_STOP_HOST);
	for (unsigned i = 0; i < RT_ARRAY_LEN(sizes); i++) {
		size_t n = sizes[i], both = n < sizeof s ? n : sizeof s;

		memset(&host, 0xa5, sizeof host);
		must(rt_read_stops_sized(RT_STOP_HOST, &host.s, n));
		ck_assert_uint_eq(host.s.struct_size, both);
		s.struct_size = both;
		ck_assert_mem_eq(&host.s, &s, both);
		ck_assert(heap_is_zero(host.byte + both, n - both));
		ck_assert_uint_eq(host.byte[n], 0xa5);
	}
}
