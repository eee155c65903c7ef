// Lines for the host: stoppers add them, and threads take them.
#include <pthread.h>

#include "gc/mark/notices.h"
#include "test/harness/await.h"
#include "test/harness/heap.h"
#include "test/harness/process.h"
#include "test/harness/thread.h"

static struct text line;

static void begin(void)
{
	heap_start_exact(heap_config(HEAP_QUIET));
}

// add makes a stop add the lines of the letters from a on.
static void add(char a, unsigned n)
{
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	ck_assert_uint_ge(notices_room(), n);
	for (unsigned i = 0; i < n; i++) {
		char letter[] = {(char)(a + (char)i), '\0'};

		text_init(&line);
		text_str(&line, letter);
		notices_add(&line);
	}
	ck_assert_ptr_null(notices_check(&notices));
	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
}

// take expects that the next line is a letter.
static void take(char letter)
{
	ck_assert(notices_take(&line));
	ck_assert_int_eq(line.buf[0], letter);
	ck_assert_uint_eq(line.len, 1);
}

GROUP(notices, .setup = begin, .timeout = 60);

TEST(lines_are_taken_in_order)
{
	ck_assert(!notices_take(&line));
	notices_done();
	add('a', 2);
	ck_assert_uint_eq(notices_left(), 2);
	take('a');
	take('b');
	ck_assert_uint_eq(notices_left(), 0);
	ck_assert(!notices_take(&line));
	notices_done();
}

// Lines that were not taken come before the lines of the next stop.
TEST(a_stop_leaves_what_was_not_taken)
{
	add('a', 3);
	take('a');
	add('k', NOTICES_MAX - 3);
	take('b');
	take('c');
	take('k');
	notices_done();
	ck_assert_uint_eq(notices_left(), NOTICES_MAX - 4);
	ck_assert_int_eq(rt_stop_the_world(RT_STOP_HOST), RT_OK);
	ck_assert_uint_eq(notices_room(), 4);
	ck_assert_int_eq(rt_start_the_world(NULL), RT_OK);
	take('l');
	notices_done();
}

static void *try_to_take(void *got)
{
	struct text t;

	ck_assert_int_eq(rt_thread_attach(RT_THREAD_EXACT), RT_OK);
	*(bool *)got = notices_take(&t);
	notices_done();
	ck_assert_int_eq(rt_thread_detach(), RT_OK);
	return NULL;
}

static bool another_takes(void)
{
	bool got = false;

	join_thread(start_thread(try_to_take, &got));
	return got;
}

// A thread that has taken a line keeps all others from taking lines, even when
// it has found no more, until it calls notices_done.
TEST(one_thread_at_a_time_takes_lines)
{
	add('a', 3);
	take('a');
	ck_assert(!another_takes());
	take('b');
	notices_done();
	ck_assert(another_takes());
	ck_assert(!notices_take(&line));
	add('d', 1);
	ck_assert(!another_takes());
	take('d');
	notices_done();
	ck_assert_uint_eq(notices_left(), 0);
}

// The child drops all lines.  A thread that forks in its turn to take lines
// keeps the turn in the child.
TEST(a_child_begins_without_lines, .n = 2)
{
	add('a', 2);
	if (_i == 1)
		take('a');
	if (process_forked()) {
		bool ok = notices_left() == 0 && !notices_take(&line);

		notices_done();
		process_end(ok &&
			    atomic_u32_load_relaxed(&notices.telling) == 0);
	}
	ck_assert_uint_eq(notices_left(), _i == 1 ? 1 : 2);
	notices_done();
}

static atomic_u32 taken, over;

static void *take_and_wait(void *arg)
{
	struct text got;

	(void)arg;
	ck_assert(notices_take(&got));
	atomic_u32_store_release(&taken, 1);
	await_at_least(&over, 1);
	notices_done();
	return NULL;
}

// The turn of a thread that the child lacks is over in the child.
TEST(a_child_ends_the_turn_of_a_lost_thread)
{
	pthread_t thread;

	add('a', 2);
	thread = start_thread(take_and_wait, NULL);
	await_at_least(&taken, 1);
	if (process_forked())
		process_end(atomic_u32_load_relaxed(&notices.telling) == 0);
	ck_assert(!notices_take(&line));
	atomic_u32_store_release(&over, 1);
	join_thread(thread);
}
