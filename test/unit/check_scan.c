// Scanning: which words of a block become work, in which order, and what
// happens when there is no room.
#include "test/harness/suite.h"

#include <string.h>

#include "gc/mark/scan.h"

enum { WORDS = 240, PART = 150, ROUNDS = 20000 };

static struct marker marker;
static uintptr_t block[WORDS];

static void marker_make(uintptr_t base, uint64_t used)
{
	memset(&marker, 0, sizeof marker);
	marker.base = base;
	marker.used = used;
	marker.work.bottom = marker.work.t.top = marker.work.first.entry;
	marker.work.t.limit = marker.work.first.entry + WORK_ENTRIES;
	marker.work.high = marker.work.t.limit - WORK_FEW;
	work_limit(0); // no buffer but its own
}

// word_near is a word at or near the borders of the heap, or anywhere.
static uintptr_t word_near(struct rng *r)
{
	static const int64_t off[] = {-8, -1, 0, 1, 7, 8, 9};
	int64_t by = off[rng_below(r, RT_ARRAY_LEN(off))];

	switch (rng_below(r, 5)) {
	case 0:
		return marker.base + (uintptr_t)by;
	case 1:
		return marker.base + marker.used + (uintptr_t)by;
	case 2:
		return marker.base + rng_below(r, marker.used);
	case 3:
		return rng_below(r, 2) - 1 + (uintptr_t)by;
	default:
		return rng_next(r);
	}
}

// expected collects the words that a scan of block[from, to) must push.
static size_t expected(size_t from, size_t to, uintptr_t *out)
{
	size_t n = 0;

	for (size_t i = from; i < to; i++)
		if (block[i] >= marker.base &&
		    block[i] - marker.base < marker.used)
			out[n++] = block[i];
	return n;
}

static uintptr_t at(size_t i)
{
	return (uintptr_t)&block[i];
}

GROUP(blocks);

TEST(words_inside_the_heap_are_pushed_in_order)
{
	uintptr_t want[WORDS];
	unsigned wrong = 0;
	struct rng r;

	rng_init(&r, "words_inside_the_heap_are_pushed_in_order");
	for (int round = 0; round < ROUNDS; round++) {
		// The row is from any word to any word, however many the
		// processor scans at once.
		size_t from = rng_below(&r, 40);
		size_t to = from + rng_below(&r, 180);
		size_t n;

		marker_make(rng_next(&r) << 26, (1 + rng_below(&r, 9)) << 22);
		for (size_t i = 0; i < WORDS; i++)
			block[i] = word_near(&r);
		n = expected(from, to, want);
		wrong += scan_words(&marker, at(from), at(to)) != at(to);
		wrong += (size_t)(marker.work.t.top - marker.work.bottom) != n;
		wrong +=
		    memcmp(marker.work.bottom, want, n * sizeof *want) != 0;
		marker.work.t.top = marker.work.bottom;
		scan_block(&marker, at(from), at(to));
		wrong += (size_t)(marker.work.t.top - marker.work.bottom) != n;
		wrong +=
		    memcmp(marker.work.bottom, want, n * sizeof *want) != 0;
	}
	ck_assert_uint_eq(wrong, 0);
}

// The words up to the address that is returned are pushed, and no others.
// Nothing is written behind the buffer.
TEST(scanning_stops_where_room_is_refused)
{
	uintptr_t want[WORDS];
	unsigned wrong = 0, stopped = 0;
	struct rng r;

	rng_init(&r, "scanning_stops_where_room_is_refused");
	for (int round = 0; round < ROUNDS; round++) {
		size_t before = rng_below(&r, WORK_ENTRIES + 1);
		uintptr_t end;
		size_t n;

		marker_make(UINT64_C(1) << 40, 1 << 22);
		for (size_t i = 0; i < WORDS; i++)
			block[i] = marker.base + i * 16;
		marker.work.t.top += before;
		end = scan_words(&marker, at(0), at(PART));
		stopped += end != at(PART);
		n = expected(0, (end - at(0)) / sizeof *block, want);
		wrong += (size_t)(marker.work.t.top - marker.work.bottom) !=
			 before + n;
		wrong += memcmp(marker.work.bottom + before, want,
				n * sizeof *want) != 0;
		wrong += marker.work.t.top > marker.work.t.limit;
	}
	ck_assert_uint_eq(wrong, 0);
	ck_assert_uint_gt(stopped, ROUNDS / 4);
	ck_assert_uint_lt(stopped, ROUNDS);
}

TEST(small_objects_push_the_same_words)
{
	uintptr_t want[WORDS];
	unsigned wrong = 0;
	struct rng r;

	rng_init(&r, "small_objects_push_the_same_words");
	for (int round = 0; round < ROUNDS; round++) {
		size_t words = 2 * (1 + rng_below(&r, GREY_SMALL_BYTES / 16));
		size_t before = rng_below(&r, WORK_ENTRIES - WORK_FEW + 1);
		struct grey o = {.base = at(0), .size = words * sizeof *block};
		size_t n;

		marker_make(rng_next(&r) << 26, (1 + rng_below(&r, 9)) << 22);
		for (size_t i = 0; i < words; i++)
			block[i] = word_near(&r);
		n = expected(0, words, want);
		marker.work.t.top += before;
		scan_small(&marker, &o);
		wrong += (size_t)(marker.work.t.top - marker.work.bottom) !=
			 before + n;
		wrong += memcmp(marker.work.bottom + before, want,
				n * sizeof *want) != 0;
	}
	ck_assert_uint_eq(wrong, 0);
}
