// The ring of records: what it holds, and that no reader sees a torn record.
#include "runtime/world/cyclering.h"

#include <stdio.h>
#include <string.h>

#include "runtime/os/oscall.h"
#include "test/harness/suite.h"
#include "test/harness/thread.h"

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
			continue; // stands for the newest
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

// Slots keep what another heap wrote; its records are gone all the same.
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

enum { READERS = 3, RECORDS = 20000 };

static atomic_u32 done;
static atomic_u64 nreads;

struct reader {
	pthread_t thread;
	unsigned torn, back; // records in parts; a newest that went back
	unsigned late;	     // records that were overwritten meanwhile
};

static void *read_all(void *arg)
{
	struct reader *r = arg;
	uint64_t last = 0;
	bool end;

	do {
		rt_cycle c;

		end = atomic_u32_load_acquire(&done);
		if (!cyclering_read(&ring, 0, &c))
			continue;
		r->torn += !whole(&c);
		r->back += c.number < last;
		last = c.number;
		// The record that is overwritten next.
		if (last > RT_CYCLES) {
			uint64_t n = last - RT_CYCLES + 1;

			if (!cyclering_read(&ring, n, &c))
				r->late++;
			else
				r->torn += c.number != n || !whole(&c);
		}
		atomic_u64_add_relaxed(&nreads, 1);
	} while (!end);
	return NULL;
}

TEST(no_reader_sees_a_torn_record)
{
	static struct reader readers[READERS];
	unsigned late = 0;

	for (unsigned i = 0; i < READERS; i++)
		readers[i].thread = start_thread(read_all, &readers[i]);
	for (uint64_t n = 1; n <= RECORDS; n += 8) {
		uint64_t seen = atomic_u64_load_relaxed(&nreads);

		add(n, n + 7);
		while (n % 64 == 1 && atomic_u64_load_relaxed(&nreads) == seen)
			oscall_yield();
	}
	atomic_u32_store_release(&done, 1);
	for (unsigned i = 0; i < READERS; i++) {
		join_thread(readers[i].thread);
		ck_assert_uint_eq(readers[i].torn, 0);
		ck_assert_uint_eq(readers[i].back, 0);
		late += readers[i].late;
	}
	check_newest(RECORDS);
	check_all(1, RECORDS);
	printf("%u records were overwritten before they were read\n", late);
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
