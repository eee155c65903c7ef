// The ring of pauses: what it keeps, and reading beside the writer.
#include "test/harness/fault.h"
#include "test/harness/readers.h"
#include "test/harness/suite.h"
#include "test/harness/thread.h"

#include <pthread.h>
#include <string.h>

#include "runtime/os/oscall.h"
#include "runtime/world/pausering.h"

static struct pausering ring;

struct slots {
	uint64_t ns[PAUSERING_LEN], end[PAUSERING_LEN];
};

static struct slots copied;
static struct pausering_copy copy = {.ns = copied.ns, .end = copied.end};

// The numbers that pause number n (from 0) is recorded with.  Both follow from
// n.
static uint64_t pause_ns(uint64_t n)
{
	return 2 * n + 1;
}

static uint64_t pause_end(uint64_t n)
{
	return ~n;
}

// pause_total is the sum of pause_ns over numbers [0, n).  This stays true,
// modulo 2^64, when n wraps.
static uint64_t pause_total(uint64_t n)
{
	return n * n;
}

static void add(uint64_t first, uint64_t limit)
{
	for (uint64_t n = first; n != limit; n++)
		pausering_add(&ring, pause_ns(n), pause_end(n));
}

// wrong_slots returns how many slots of a copy are wrong.  Each of the last
// nfilled pauses (at most 256) must be in its slot, and the other slots must be
// 0.  The last pause has the number c->count - 1.
static unsigned wrong_slots(const struct pausering_copy *c, unsigned nfilled)
{
	unsigned wrong = 0;

	for (unsigned back = 1; back <= PAUSERING_LEN; back++) {
		uint64_t n = c->count - back;
		unsigned slot = n % PAUSERING_LEN;
		uint64_t ns = back <= nfilled ? pause_ns(n) : 0;
		uint64_t end = back <= nfilled ? pause_end(n) : 0;

		wrong += c->ns[slot] != ns || c->end[slot] != end;
	}
	return wrong;
}

// start_at makes a ring that has recorded n pauses, all forgotten.
static void start_at(uint64_t n)
{
	memset(&ring, 0, sizeof(ring));
	atomic_u64_store_relaxed(&ring.begun, n);
	atomic_u64_store_relaxed(&ring.count, n);
	atomic_u64_store_relaxed(&ring.total_ns, pause_total(n));
}

GROUP(ring, .timeout = 60);

// The two ways to read, where no thread writes.
static void (*const read_ring[])(const struct pausering *,
				 struct pausering_copy *) = {
    pausering_read,
    pausering_read_stopped,
};

TEST(slots_hold_the_last_pauses, .n = RT_ARRAY_LEN(read_ring))
{
	static const unsigned counts[] = {0, 1, 2, 255, 256, 257, 511, 512};

	for (unsigned i = 0; i < RT_ARRAY_LEN(counts); i++) {
		unsigned n = counts[i];

		start_at(0);
		memset(&copied, 0xff, sizeof(copied));
		add(0, n);
		read_ring[_i](&ring, &copy);
		ck_assert_uint_eq(copy.count, n);
		ck_assert_uint_eq(copy.total_ns, pause_total(n));
		ck_assert_uint_eq(wrong_slots(&copy, n < 256 ? n : 256), 0);
	}
}

// After 257 pauses the first is gone from the ring but stays in the total.
TEST(oldest_pause_is_overwritten)
{
	for (uint64_t i = 1; i <= PAUSERING_LEN + 1; i++)
		pausering_add(&ring, i, 1000 + i);
	pausering_read(&ring, &copy);
	ck_assert_uint_eq(copy.ns[0], 257);
	ck_assert_uint_eq(copy.end[0], 1257);
	ck_assert_uint_eq(copy.ns[1], 2);
	ck_assert_uint_eq(copy.total_ns, 257 * 258 / 2);
}

static void check_across(uint64_t border)
{
	start_at(border - 300);
	for (uint64_t n = border - 300; n != border + 300; n++) {
		uint64_t made = n - (border - 300) + 1;

		pausering_add(&ring, pause_ns(n), pause_end(n));
		pausering_read(&ring, &copy);
		ck_assert_uint_eq(copy.count, n + 1);
		ck_assert_uint_eq(copy.total_ns, pause_total(n + 1));
		ck_assert_uint_eq(
		    wrong_slots(&copy, made < 256 ? (unsigned)made : 256), 0);
	}
}

TEST(count_passes_32_bits)
{
	check_across(UINT64_C(1) << 32);
}

TEST(count_wraps_at_64_bits)
{
	check_across(0);
}

// ---- readers beside the writer ----

enum { PAUSES = 4000, BURST = 8 };

// The count tells what every other number of the copy must be.
static const char *read_copy(struct reader *r)
{
	struct slots slots;
	struct pausering_copy c = {.ns = slots.ns, .end = slots.end};
	uint64_t last = r->last;

	pausering_read(&ring, &c);
	r->last = c.count;
	r->count += c.count > last;
	if (wrong_slots(&c, c.count < 256 ? (unsigned)c.count : 256) != 0)
		return "a slot is of another moment";
	if (c.total_ns != pause_total(c.count))
		return "the total is of another moment";
	return c.count < last ? "the count went back" : NULL;
}

// After each burst the writer waits until some reader got a copy.  Otherwise
// the readers of a busy machine would see a resting ring only at the end.
static void write_bursts(void)
{
	for (uint64_t n = 0; n < PAUSES; n += BURST) {
		uint64_t seen = readers_sum();

		add(n, n + BURST);
		while (readers_sum() == seen)
			oscall_yield();
	}
}

TEST(copies_beside_a_writer_are_of_one_moment)
{
	// A copy may be the first that shows two bursts, but hardly more.
	ck_assert_uint_ge(readers_run(read_copy, write_bursts),
			  PAUSES / BURST / 4);
	for (unsigned i = 0; i < READERS; i++)
		ck_assert_uint_eq(readers[i].last, PAUSES);
}

static atomic_u32 reader_done;

// A reader that comes while a pause is being recorded waits for its end.
static void *read_one(void *arg)
{
	pausering_read(&ring, arg);
	atomic_u32_store_release(&reader_done, 1);
	return NULL;
}

TEST(reader_waits_for_a_recording_to_end)
{
	pthread_t thread;

	add(0, 10);
	atomic_u64_store_relaxed(&ring.begun, 11);
	atomic_u64_store_release(&ring.ns[10], 77);
	fault_fail(OSCALL_YIELD, 1, 0, 0);
	thread = start_thread(read_one, &copy);
	while (fault_count(OSCALL_YIELD) < 10)
		atomic_pause();
	ck_assert_uint_eq(atomic_u32_load_acquire(&reader_done), 0);
	atomic_u64_store_release(&ring.count, 11);
	join_thread(thread);
	ck_assert_uint_eq(copy.count, 11);
	ck_assert_uint_eq(copy.ns[10], 77);
}
