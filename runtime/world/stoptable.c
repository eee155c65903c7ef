// The table of what stops took, by reason.
#include "runtime/world/stoptable.h"

#include <string.h>

#include "runtime/os/oscall.h"
#include "runtime/os/throw.h"

struct stoptable stoptable;

static_assert(sizeof(rt_stops) % sizeof(uint64_t) == 0, "copied by words");

void stoptable_reset(struct stoptable *t)
{
	memset(t, 0, sizeof *t);
}

int stoptable_row(int reason)
{
	if (reason >= RT_STOP_HOST)
		return STOPTABLE_HOST;
	return reason >= 0 && reason < STOPTABLE_HOST ? reason : -1;
}

// add_stop adds a stop to the sums of a row, and notes it if it is the longest.
static void add_stop(rt_stops *s, int reason, const struct rt_stop_times *times)
{
	s->stopping_ns += times->stopping_ns;
	s->total_ns += times->total_ns;
	if (s->count == 0 || times->total_ns > s->longest.total_ns) {
		s->longest = *times;
		s->longest_reason = reason;
	}
	s->count++;
}

void stoptable_add(struct stoptable *t, int reason,
		   const struct rt_stop_times *times)
{
	int row = stoptable_row(reason);
	union {
		rt_stops s;
		uint64_t word[STOPTABLE_WORDS];
	} u;
	atomic_u64 *word;
	uint64_t n;

	RT_ASSERT(row >= 0);
	RT_CHECK(stoptable_check(t));
	word = t->row[row].word;
	n = atomic_u64_load_relaxed(&t->row[row].done) + 1;
	for (unsigned i = 0; i < STOPTABLE_WORDS; i++)
		u.word[i] = atomic_u64_load_relaxed(&word[i]);
	add_stop(&u.s, reason, times);
	// These releases pair with the acquires in read_once: a reader that
	// sees any word below also sees begun, and reads again.
	atomic_u64_store_relaxed(&t->row[row].begun, n);
	for (unsigned i = 0; i < STOPTABLE_WORDS; i++)
		atomic_u64_store_release(&word[i], u.word[i]);
	atomic_u64_store_release(&t->row[row].done, n);
}

// read_once copies a row and tells whether the copy is of one moment.
static bool read_once(const struct stoptable *t, int row, uint64_t *copy)
{
	// The acquires pair with the releases in stoptable_add.
	uint64_t done = atomic_u64_load_acquire(&t->row[row].done);

	for (unsigned i = 0; i < STOPTABLE_WORDS; i++)
		copy[i] = atomic_u64_load_acquire(&t->row[row].word[i]);
	return atomic_u64_load_relaxed(&t->row[row].begun) == done;
}

void stoptable_read(const struct stoptable *t, int row, rt_stops *out)
{
	uint64_t copy[STOPTABLE_WORDS];

	// The writer may have lost its processor to this very loop.
	while (!read_once(t, row, copy))
		oscall_yield();
	memcpy(out, copy, sizeof *out);
}

const char *stoptable_check(const struct stoptable *t)
{
	// The words may hold anything: sums wrap.
	for (unsigned i = 0; i < STOPTABLE_ROWS; i++)
		if (atomic_u64_load_relaxed(&t->row[i].begun) !=
		    atomic_u64_load_relaxed(&t->row[i].done))
			return "stop is recorded in part";
	return NULL;
}
