// Statistics in three slots: a reading is of one moment, and folding loses
// nothing.
#include "runtime/world/heapstats.h"

#include "test/harness/await.h"
#include "test/harness/death.h"
#include "test/harness/heap.h"
#include "test/harness/readers.h"
#include "test/harness/schedpoint.h"
#include "test/harness/stopped.h"
#include "test/harness/suite.h"

// Fields that only the tests below change: no thread allocates here.
#define ONE(d) (&(d)->small_alloc_count[9])
#define OTHER(d) (&(d)->small_free_count[66])

// A heap for the memory of P records, with no attached thread.
static void begin_unattached(void)
{
	rt_config c = heap_config(100);

	c.no_attach = 1;
	heap_start(c);
}

// change makes one change of both fields by n.
static void change(struct rt_proc *p, uint64_t n)
{
	struct heapstats_delta *d = heapstats_acquire(p);

	heapstats_add(ONE(d), n);
	heapstats_add(OTHER(d), n);
	heapstats_release(p);
}

static uint64_t read_one(void)
{
	struct heapstats_totals t;

	heapstats_read(&t);
	return t.small_free_count[66] == t.small_alloc_count[9]
		   ? t.small_alloc_count[9]
		   : UINT64_MAX;
}

// ---- alone ----

GROUP(heapstats, .setup = begin_unattached, .timeout = 100);

// However many readings there are between changes, each change is in one slot
// and stays in the total.
TEST(folding_loses_nothing_and_doubles_nothing)
{
	struct rt_proc *p = proc_attach(0);
	struct rng r;
	uint64_t sum = 0;

	rng_init(&r, "folding");
	for (int i = 0; i < 20000; i++) {
		uint64_t n = rng_below(&r, 1000);
		unsigned what = (unsigned)rng_below(&r, 4);

		if (what < 3) {
			change(what == 0 ? NULL : p, n);
			sum += n;
		} else if (read_one() != sum) {
			ck_abort_msg("after %d", i);
		}
	}
	ck_assert_uint_eq(read_one(), sum);
}

// Every field changes by an amount of its own, and readings show exactly these
// changes.
TEST(every_field_is_folded)
{
	struct heapstats_totals before, t, u;
	enum { WORDS = sizeof t / sizeof(uint64_t) };
	const uint64_t *old = (uint64_t *)&before, *new = (uint64_t *)&t;
	bool begun;

	heapstats_read(&before);
	for (unsigned round = 1; round <= 7; round++) {
		struct heapstats_delta *d = heapstats_acquire(NULL);

		for (unsigned i = 0; i < WORDS; i++)
			heapstats_add((atomic_u64 *)d + i, i + 1);
		heapstats_release(NULL);
		u = stopped_totals();
		heapstats_read(&t);
		ck_assert_mem_eq(&t, &u, sizeof t);
		for (unsigned i = 0; i < WORDS; i++)
			ck_assert_uint_eq(new[i] - old[i], round * (i + 1));
	}
	begun = stopped_begin();
	heapstats_unsafe_clear();
	stopped_end(begun);
	u = stopped_totals();
	heapstats_read(&t);
	for (unsigned i = 0; i < WORDS; i++)
		ck_assert_uint_eq(new[i], 0);
	ck_assert_mem_eq(&t, &u, sizeof t);
}

// A slot becomes negative when it holds only what was taken away since the last
// reading.  The sums of slots are right all the same.
TEST(a_slot_may_be_negative)
{
	uint64_t base = read_one();

	change(NULL, 10);
	ck_assert_uint_eq(read_one(), base + 10);
	change(NULL, (uint64_t)-4);
	ck_assert_uint_eq(read_one(), base + 6);
	change(NULL, (uint64_t)-6);
	ck_assert_uint_eq(read_one(), base);
}

// ---- a writer in the middle of a change ----

static struct {
	atomic_u32 reading;
	atomic_u32 read;
	uint64_t found;
} late;

static void *read_late(void *arg)
{
	atomic_u32_store_release(&late.reading, 1);
	late.found = read_one();
	atomic_u32_store_release(&late.read, 1);
	return arg;
}

// await_next_slot waits until the reader has moved the generation, so that p's
// changes go to another slot than before.
static void await_next_slot(struct rt_proc *p,
			    const struct heapstats_delta *before)
{
	const struct heapstats_delta *now;

	do {
		now = heapstats_acquire(p);
		heapstats_release(p);
	} while (now == before);
}

// The reader waits for a writer in the middle of a change and includes that
// change whole.  It leaves out changes that began after it moved the
// generation.
TEST(a_reader_waits_for_the_middle_and_not_for_what_is_later)
{
	struct rt_proc *middle = proc_attach(0), *later = proc_attach(0);
	struct heapstats_delta *d = heapstats_acquire(middle);
	pthread_t thread;

	heapstats_add(ONE(d), 5);
	thread = start_thread(read_late, NULL);
	await_next_slot(later, d);
	change(later, 1000);
	ck_assert(stays(&late.read, 0));
	heapstats_add(OTHER(d), 5);
	heapstats_release(middle);
	join_thread(thread);
	ck_assert_uint_eq(late.found, 5);
	ck_assert_uint_eq(read_one(), 1005);
	ck_assert_uint_eq(read_one(), 1005);
}

TEST(a_reader_waits_for_a_writer_without_a_p)
{
	struct heapstats_delta *d = heapstats_acquire(NULL);
	pthread_t thread;

	heapstats_add(ONE(d), 5);
	thread = start_thread(read_late, NULL);
	await_at_least(&late.reading, 1);
	ck_assert(stays(&late.read, 0));
	heapstats_add(OTHER(d), 5);
	heapstats_release(NULL);
	join_thread(thread);
	ck_assert_uint_eq(late.found, 5);
}

// A record made while a reader waits is not lost.  Until the reader has read
// the begin of the list, it may or may not find the record.
TEST(a_thread_that_attaches_during_a_reading_is_in_the_next)
{
	struct rt_proc *middle = proc_attach(0), *newcomer;
	struct heapstats_delta *d = heapstats_acquire(middle);
	pthread_t thread = start_thread(read_late, NULL);
	struct rt_proc *witness = proc_attach(0);

	await_next_slot(witness, d);
	newcomer = proc_attach(0);
	change(newcomer, 7);
	heapstats_release(middle);
	join_thread(thread);
	ck_assert_uint_eq(late.found, 0);
	ck_assert_uint_eq(read_one(), 7);
}

// ---- many ----

enum {
	WRITERS = 3, // one without a P, one that attaches and detaches
	CROWD = 8,   // threads that attach at once
	ATTACHED_AT_ONCE = 16, // by each of them
	READS_SLOW = 5000,
	READS = RT_ASAN ? 20000 : 60000,
};

// Where threads yield their processors at schedule points, a reading waits for
// many of them.
static uint64_t reads(void)
{
	return RT_TSAN || schedpoint_is_random() ? READS_SLOW : READS;
}

// Each thread that writes has a teller, in which it counts its changes when
// they begin and when they end.  It counts with release only, because a fence
// here would hide one that is missing in the protocol.  A reading contains all
// changes that had ended when it began, and no change that began after it had
// ended.
struct teller {
	RT_CACHE_ALIGNED atomic_u64 begun;
	atomic_u64 ended;
};

static struct {
	struct teller tellers[WRITERS + CROWD];
	atomic_u32 end;
} many;

static uint64_t sum_ended(void)
{
	uint64_t sum = 0;

	for (int i = 0; i < WRITERS + CROWD; i++)
		sum += atomic_u64_load_acquire(&many.tellers[i].ended);
	return sum;
}

static uint64_t sum_begun(void)
{
	uint64_t sum = 0;

	for (int i = 0; i < WRITERS + CROWD; i++)
		sum += atomic_u64_load_acquire(&many.tellers[i].begun);
	return sum;
}

static void tell_and_change(struct teller *t, struct rt_proc *p, uint64_t n)
{
	uint64_t sum = atomic_u64_load_relaxed(&t->begun) + n;

	atomic_u64_store_release(&t->begun, sum);
	change(p, n);
	atomic_u64_store_release(&t->ended, sum);
}

static void *write_many(void *arg)
{
	struct teller *t = arg;
	int kind = (int)(t - many.tellers);
	struct rt_proc *p = kind != 1 ? proc_attach(0) : NULL;

	for (uint64_t i = 1; !atomic_u32_load_acquire(&many.end); i++) {
		tell_and_change(t, p, i % 5);
		if (kind == 2) {
			proc_detach(p);
			p = proc_attach(0);
		}
		if (i % 1024 == 0)
			oscall_yield();
	}
	if (p)
		proc_detach(p);
	return NULL;
}

static const char *read_many(struct reader *r)
{
	uint64_t last = r->last;
	uint64_t ended = sum_ended();
	uint64_t found = read_one();
	uint64_t begun = sum_begun();

	if (found == UINT64_MAX)
		return "fields of one change differ";
	r->last = found;
	if (found < last)
		return "less than in an earlier reading";
	if (found < ended)
		return "less than had ended";
	return found > begun ? "more than had begun" : NULL;
}

// There are more and more records while readers walk their list: many threads
// attach at once, so that there is no free record for most of them.
static void *attach_all_at_once(void *arg)
{
	struct rt_proc *p[ATTACHED_AT_ONCE];

	for (int i = 0; i < ATTACHED_AT_ONCE; i++)
		p[i] = proc_attach(0);
	for (int i = 0; i < ATTACHED_AT_ONCE; i++)
		tell_and_change(arg, p[i], 1);
	for (int i = 0; i < ATTACHED_AT_ONCE; i++)
		proc_detach(p[i]);
	return arg;
}

static void attach_crowds(void)
{
	for (int i = 0; i < 12; i++) {
		pthread_t crowd[CROWD];

		for (int k = 0; k < CROWD; k++)
			crowd[k] = start_thread(attach_all_at_once,
						&many.tellers[WRITERS + k]);
		for (int k = 0; k < CROWD; k++)
			join_thread(crowd[k]);
	}
	readers_await(reads());
}

TEST(every_snapshot_is_of_one_moment)
{
	pthread_t writers[WRITERS];
	struct heapstats_totals t;

	for (int i = 0; i < WRITERS; i++)
		writers[i] = start_thread(write_many, &many.tellers[i]);
	readers_run(read_many, attach_crowds);
	atomic_u32_store_release(&many.end, 1);
	for (int i = 0; i < WRITERS; i++)
		join_thread(writers[i]);
	// When no thread writes, all results agree.
	ck_assert_uint_gt(sum_ended(), 0);
	ck_assert_uint_eq(read_one(), sum_ended());
	t = stopped_totals();
	ck_assert_uint_eq(*(uint64_t *)ONE(&t), sum_ended());
	ck_assert_uint_eq(*(uint64_t *)OTHER(&t), sum_ended());
}

// ---- bad sequences ----

static struct rt_proc *begin_bad(void)
{
	begin_unattached();
	death_expect("rtheap: seq=#\nrtheap: fatal: bad sequence number");
	return proc_attach(0);
}

GROUP(bad);

TEST(acquiring_twice_throws, .exit = DEATH_EXPECTED)
{
	struct rt_proc *p = begin_bad();

	heapstats_acquire(p);
	heapstats_acquire(p);
}

TEST(releasing_what_is_not_acquired_throws, .exit = DEATH_EXPECTED)
{
	heapstats_release(begin_bad());
}

TEST(releasing_twice_throws, .exit = DEATH_EXPECTED)
{
	struct rt_proc *p = begin_bad();

	heapstats_acquire(p);
	heapstats_release(p);
	heapstats_release(p);
}

// ---- the suite ----
