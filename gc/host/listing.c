// listing.c - lists objects into an array.
#include "gc/host/listing.h"

#include <rt/roots.h>

#include "gc/mark/handles.h"
#include "gc/stats/verify.h"
#include "gc/host/door.h"
#include "gc/host/visit.h"
#include "gc/host/supply.h"
#include "gc/host/reclaim.h"

struct listing {
	int kind;
	rt_pick_fn *pick; // NULL: every object
	void *arg;
	void **out;	 // the array, or NULL
	size_t capacity; // of the array
	size_t n;	 // objects found, perhaps more than that
	// Keeps the array alive: the thread's stack may be no root.
	rt_handle *root;
};

static int add(void *obj, size_t size, int kind, void *arg)
{
	struct listing *l = arg;

	(void)kind;
	if (obj == l->out || (l->pick && l->pick(obj, size, l->arg) != 1))
		return 0;
	if (l->n < l->capacity)
		l->out[l->n] = obj;
	l->n++;
	return 0;
}

// fill fills the array, as far as it goes, and counts what belongs into it.
// The callback may be left by unwinding, as that of a walk.
static void fill(struct listing *l)
{
	__attribute__((cleanup(visit_end_walk))) struct walk w = {.began =
								      false};

	visit_begin_walk(&w);
	l->n = 0;
	if (l->pick || l->out)
		verify_walk(l->kind, add, l);
	else
		l->n = verify_count(l->kind);
}

// drop_root runs even when the callback is left by unwinding.  A thread that a
// handler of the host has detached leaves the handle behind.
static void drop_root(const struct listing *l)
{
	struct rt_thread *t = rt_thread_tls;

	if (l->root && door_allocating(t))
		handles_free(t->mc, l->root);
}

// drop frees an array that is too short, so that the next walk does not find
// it.
static void drop(struct listing *l)
{
	struct object o;

	if (l->out && reclaim_find(l->out, &o))
		reclaim_object(rt_thread_tls->mc, &o);
	drop_root(l);
	l->out = NULL;
	l->root = NULL;
	l->capacity = 0;
}

// make makes an array of n words.  Returns false if there is no memory.
static bool make(struct listing *l, size_t n)
{
	struct want w = {.n = n * sizeof(void *), .kind = KIND_WORDS};
	void **out = supply_request(rt_thread_tls, &w);

	if (!out)
		return false;
	l->out = out;
	l->capacity = n;
	l->root = handles_new(rt_thread_tls->mc, (uintptr_t)out);
	if (l->root)
		return true;
	drop(l);
	return false;
}

void **listing_make(int kind, rt_pick_fn *pick, void *arg, size_t *n)
{
	const struct rt_thread *t = rt_thread_tls;
	__attribute__((cleanup(drop_root))) struct listing l = {
	    .kind = kind, .pick = pick, .arg = arg};
	size_t more = 0; // that other threads may make meanwhile

	for (;;) {
		fill(&l);
		// A handler of the host may have run after the stop.
		if (!door_may_go_on(t) || door_nogc())
			return NULL;
		if (l.out && l.n <= l.capacity)
			break;
		drop(&l);
		if (!make(&l, l.n + more + 1))
			return NULL;
		more = l.n / 8 + 2 * more;
	}
	*n = l.n;
	return l.out;
}
