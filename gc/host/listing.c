// listing.c - lists objects into an array.
#include "gc/host/listing.h"

#include <rt/kind.h>
#include <rt/roots.h>

#include "gc/mark/handles.h"
#include "gc/stats/verify.h"
#include "gc/host/door.h"
#include "gc/host/visit.h"
#include "gc/host/supply.h"

struct listing {
	int kind;
	rt_pick_fn *pick; // NULL: every object
	void *arg;
	// The array, or NULL.  Its first word leads to the array before it,
	// which was too short.  Objects are in the words after the first.
	void **out;
	size_t capacity; // of the array, without that word
	size_t n;	 // objects found, perhaps more than that
	// Keeps the arrays alive: the thread's stack may be no root.
	rt_handle *root;
};

static bool is_own(const struct listing *l, const void *obj)
{
	for (void **array = l->out; array; array = array[0])
		if (obj == array)
			return true;
	return false;
}

static int add(void *obj, size_t size, int kind, void *arg)
{
	struct listing *l = arg;

	(void)kind;
	if (is_own(l, obj) ||
	    (l->pick && !hostcall_pick(l->pick, obj, size, l->arg)))
		return 0;
	l->n++;
	if (l->n <= l->capacity)
		l->out[l->n] = obj;
	return 0;
}

// fill stores the objects that belong in the array until it is full, and counts
// them all.  Returns false if there is no such kind: another thread may have
// ended it before the stop.  A callback must return; if it is left by unwinding
// all the same, the world starts again.
static bool fill(struct listing *l)
{
	__attribute__((cleanup(visit_end_walk))) struct walk w = {.began =
								      false};

	visit_begin_walk(&w);
	l->n = 0;
	if (l->kind > RT_TYPED && !kinds_exists((unsigned)l->kind))
		return false;
	if (l->pick || l->out)
		verify_walk(l->kind, add, l);
	else
		l->n = verify_count(l->kind);
	return true;
}

// drop_root frees the handle, if there is one.  If a handler of the host has
// detached the thread, left a region open or stopped the world, it cannot, so
// the handle stays.
static void drop_root(const struct listing *l)
{
	struct rt_thread *t = rt_thread_tls;

	if (l->root && door_allocating(t))
		handles_free(t->mc, l->root);
}

// make makes an array for n objects.  Returns false if there is no memory.  An
// array that is too short is left to the collector, since another thread may
// have found it in the heap.
static bool make(struct listing *l, size_t n)
{
	struct want w = {.n = (n + 1) * sizeof(void *), .kind = KIND_WORDS};
	void **out = supply_request(rt_thread_tls, &w);
	rt_handle *root;

	// A handler of the host may have begun a no-GC stretch.
	if (!out || door_nogc())
		return false;
	root = handles_new(rt_thread_tls->mc, (uintptr_t)out);
	if (!root)
		return false;
	out[0] = l->out;
	drop_root(l);
	l->out = out;
	l->capacity = n;
	l->root = root;
	return true;
}

// finish turns the array into what the host gets: the last object moves to the
// first word.
static void **finish(struct listing *l)
{
	l->out[0] = NULL;
	if (l->n != 0) {
		l->out[0] = l->out[l->n];
		l->out[l->n] = NULL;
	}
	return l->out;
}

void **listing_make(int kind, rt_pick_fn *pick, void *arg, size_t *n)
{
	const struct rt_thread *t = rt_thread_tls;
	__attribute__((cleanup(drop_root))) struct listing l = {
	    .kind = kind, .pick = pick, .arg = arg};
	const uint64_t attachments = door_attachments;
	size_t more = 0; // objects that other threads may make meanwhile

	RT_ASSERT(door_allocating(t) && !door_nogc());
	for (;;) {
		// A handler of the host may have run after the stop.
		if (!fill(&l) || !door_stayed(t, attachments) || door_nogc())
			return NULL;
		if (l.out && l.n <= l.capacity)
			break;
		if (!make(&l, l.n + more))
			return NULL;
		more = l.n / 8 + 2 * more;
	}
	*n = l.n;
	return finish(&l);
}
