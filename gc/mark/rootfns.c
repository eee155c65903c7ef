// The table of root callbacks.
#include "gc/mark/rootfns.h"

#include <string.h>

#include "runtime/os/throw.h"
#include "runtime/world/stw.h"
#include "gc/mark/hostcall.h"

enum { ROOM_MIN = 64 }; // callbacks of the first table

struct rootfns rootfns;

static size_t table_bytes(size_t room)
{
	return room * sizeof(struct rootfn);
}

// find returns the number of a callback, or rootfns.n.
static size_t find(rt_roots_fn *fn, const void *arg)
{
	size_t i = 0;

	RT_ASSERT(mutex_held(&roots.lock));
	while (i < rootfns.n &&
	       (rootfns.entry[i].fn != fn || rootfns.entry[i].arg != arg))
		i++;
	return i;
}

// make_room makes room for one more.  Returns false if there is no memory.
static bool make_room(void)
{
	size_t room = rootfns.room == 0 ? ROOM_MIN : 2 * rootfns.room;
	struct rootfn *entry;

	if (rootfns.n < rootfns.room)
		return true;
	entry = roots_move_table(rootfns.entry, table_bytes(rootfns.room),
				 table_bytes(room), "root callbacks");
	if (!entry)
		return false;
	rootfns.entry = entry;
	rootfns.room = room;
	return true;
}

// add is rootfns_add under the lock.
static int add(rt_roots_fn *fn, void *arg, const char *name)
{
	struct rootfn *e;

	if (find(fn, arg) != rootfns.n)
		return RT_EEXIST;
	if (!make_room())
		return RT_ENOMEM;
	e = &rootfns.entry[rootfns.n++];
	*e = (struct rootfn){.fn = fn, .arg = arg};
	if (name)
		strncpy(e->name, name, ROOTS_NAME - 1);
	RT_CHECK(rootfns_check(&rootfns));
	return RT_OK;
}

int rootfns_add(rt_roots_fn *fn, void *arg, const char *name)
{
	int error;

	mutex_lock(&roots.lock);
	error = add(fn, arg, name);
	mutex_unlock(&roots.lock);
	return error;
}

bool rootfns_remove(rt_roots_fn *fn, const void *arg)
{
	size_t i;
	bool found;

	mutex_lock(&roots.lock);
	i = find(fn, arg);
	found = i != rootfns.n;
	if (found)
		rootfns.entry[i] = rootfns.entry[--rootfns.n];
	mutex_unlock(&roots.lock);
	return found;
}

void rootfns_fini(void)
{
	if (rootfns.entry)
		sysmem_free(rootfns.entry, table_bytes(rootfns.room),
			    &gauges.other_sys);
	rootfns = (struct rootfns){0};
}

size_t rootfns_count(void)
{
	return rootfns.n;
}

static struct hostcall begin(size_t i)
{
	return RT_DEBUG_BUILD ? hostcall_begin("root callback", rootfns_name(i),
					       rootfns_code(i))
			      : (struct hostcall){0};
}

void rootfns_call(size_t i, rt_tracer *t)
{
	const struct rootfn *e = &rootfns.entry[i];
	struct hostcall before = begin(i);

	RT_ASSERT(stw_stopped());
	rootfns.calling = true;
	e->fn(t, e->arg);
	rootfns.calling = false;
	hostcall_end(&before);
}

bool rootfns_calling(void)
{
	return rootfns.calling;
}

const char *rootfns_name(size_t i)
{
	const char *name = rootfns.entry[i].name;

	return name[0] != 0 ? name : NULL;
}

uintptr_t rootfns_code(size_t i)
{
	return (uintptr_t)rootfns.entry[i].fn;
}

const char *rootfns_check(const struct rootfns *r)
{
	if ((r->room == 0) != (r->entry == NULL))
		return "table of root callbacks is not where its fields say";
	if (r->n > r->room)
		return "table of root callbacks has more than it has room";
	for (size_t i = 0; i < r->n; i++) {
		if (!r->entry[i].fn)
			return "root callback has no function";
		if (r->entry[i].name[ROOTS_NAME - 1] != 0)
			return "name of a root callback has no end";
	}
	return NULL;
}
