// The ring of records: what it holds, and that no reader sees a torn record.
#include "runtime/world/cyclering.h"

#include <stdio.h>
#include <string.h>

#include "runtime/os/oscall.h"
#include "test/harness/readers.h"
#include "test/harness/suite.h"

static struct cyclering ring;

// record_of returns record number n, of which every word follows from n.
static rt_cycle record_of(uint64_t n)
{
	uint64_t word[CYCLERING_WORDS];
	rt_cycle c;

	for (unsigned i = 0; i < CYCLERING_WORDS; i++)
		word[i] = n * (i + 1);
	memcpy(&c, word, sizeof c);
	c.number = n;
	return c;
}

static bool whole(const rt_cycle *c)
{
	rt_cycle want = record_of(c->number);

	return memcmp(c, &want, sizeof want) == 0;
}

static void add(uint64_t first, uint64_t last)
{
	for (uint64_t n = first; n != last + 1; n++) {
		rt_cycle c = record_of(n);

		cyclering_add(&ring, &c);
	}
}

// check_all requires that exactly the last RT_CYCLES of the records from oldest
// to newest can be read.
static void check_all(uint64_t oldest, uint64_t newest)
{
	for (uint64_t n = newest - RT_CYCLES - 2; n != newest + 3; n++) {
		bool exists =
		    oldest <= n && n <= newest && newest - n < RT_CYCLES;
		rt_cycle c = {0};

		if (n == 0)
			continue; // 0 asks for the newest record
		ck_assert_int_eq(cyclering_read(&ring, n, &c), exists);
		if (exists)
			ck_assert(c.number == n && whole(&c));
	}
}

static void check_newest(uint64_t n)
{
	rt_cycle c;

	ck_assert(cyclering_read(&ring, 0, &c));
	ck_assert_uint_eq(c.number, n);
	ck_assert(whole(&c));
}

GROUP(ring, .timeout = 60);

TEST(an_empty_ring_has_no_record)
{
	rt_cycle c;

	cyclering_reset(&ring);
	ck_assert(!cyclering_read(&ring, 0, &c));
	check_all(1, 0);
}

TEST(the_ring_holds_the_last_records)
{
	static const uint64_t counts[] = {1, 2, 255, 256, 257, 511, 513, 1000};

	for (unsigned i = 0; i < RT_ARRAY_LEN(counts); i++) {
		cyclering_reset(&ring);
		add(1, counts[i]);
		check_newest(counts[i]);
		check_all(1, counts[i]);
	}
}

// Slots still hold what an earlier heap wrote, but its records cannot be read.
TEST(a_reset_drops_all_records)
{
	rt_cycle c;

	add(1, 300);
	cyclering_reset(&ring);
	ck_assert(!cyclering_read(&ring, 0, &c));
	check_all(1, 0);
	add(1, 3);
	check_all(1, 3);
}

TEST(numbers_beyond_32_bits)
{
	const uint64_t border = UINT64_C(1) << 32;

	cyclering_count_from(&ring, border - 10);
	check_all(border, border - 10);
	add(border - 9, border + 300);
	check_newest(border + 300);
	check_all(border - 9, border + 300);
}

// ---- readers beside the writer ----

enum { RECORDS = 20000 };

static const char *read_newest(struct reader *r)
{
	uint64_t last = r->last;
	rt_cycle c;

	if (!cyclering_read(&ring, 0, &c))
		return NULL;
	r->last = c.number;
	if (!whole(&c))
		return "the newest record is torn";
	if (c.number < last)
		return "the newest record went back";
	// Read the oldest record, too, which is overwritten next.
	if (c.number > RT_CYCLES) {
		uint64_t n = c.number - RT_CYCLES + 1;

		if (!cyclering_read(&ring, n, &c))
			r->count++;
		else if (c.number != n || !whole(&c))
			return "the oldest record is torn";
	}
	return NULL;
}

static void write_records(void)
{
	for (uint64_t n = 1; n <= RECORDS; n += 8) {
		uint64_t seen = readers_sum();

		add(n, n + 7);
		while (n % 64 == 1 && readers_sum() == seen)
			oscall_yield();
	}
}

TEST(no_reader_sees_a_torn_record)
{
	uint64_t late = readers_run(read_newest, write_records);

	check_newest(RECORDS);
	check_all(1, RECORDS);
	printf("%llu records were overwritten before they were read\n",
	       (unsigned long long)late);
}

// A record that is being written is not the newest yet, and the record that it
// replaces is gone already.
TEST(a_record_under_way_does_not_exist)
{
	rt_cycle c;

	add(1, 300);
	atomic_u64_store_relaxed(&ring.begun, 301);
	atomic_u64_store_relaxed(&ring.word[301 % RT_CYCLES][3], 77);
	check_newest(300);
	ck_assert(!cyclering_read(&ring, 301, &c));
	ck_assert(!cyclering_read(&ring, 301 - RT_CYCLES, &c));
	ck_assert(cyclering_read(&ring, 302 - RT_CYCLES, &c) && whole(&c));
	ck_assert_str_eq(cyclering_check(&ring),
			 "record of a collection is written in part");
}
