// roots.c - the table of ranges, and the format of stacks.
#include "gc/mark/roots.h"

#include <rt/thread.h>
#include <string.h>

#include "runtime/os/throw.h"
#include "runtime/world/threadstack.h"
#include "gc/mark/layout.h"

enum {
	ROOM_MIN = 64, // ranges of the first table
};

enum { NONE = UINT32_MAX }; // the end of a chain

struct roots roots = {.lock = RT_MUTEX_INIT(LOCKRANK_ROOTS)};

// check_fields checks all but the ranges.
static const char *check_fields(const struct roots *r)
{
	const char *wrong = mutex_check(&r->lock);

	if (wrong)
		return wrong;
	if (r->room != 0 && !base_is_pow2(r->room))
		return "room for roots is not a power of two";
	if ((r->room == 0) != (r->entry == NULL) ||
	    (r->entry && r->bucket != (uint32_t *)(r->entry + r->room)))
		return "table of roots is not where its fields say";
	if (r->n > r->room)
		return "table of roots has more roots than room";
	return NULL;
}

static bool entry_added(const struct roots_entry *e)
{
	return e->times[RT_ROOT_EXACT] + e->times[RT_ROOT_WORDS] +
		   e->times[ROOTS_VALUES] !=
	       0;
}

static const char *check_entry(const struct roots_entry *e)
{
	if (e->lo > e->hi || e->lo % sizeof(uintptr_t) != 0 ||
	    e->hi % sizeof(uintptr_t) != 0)
		return "root is not a range of words";
	if (!entry_added(e))
		return "root was added 0 times";
	if (e->times[ROOTS_VALUES] != 0 &&
	    (!e->label || !layout_format_ok(&e->label->format)))
		return "root of values has no format";
	if (e->label && e->label->name[ROOTS_NAME - 1] != 0)
		return "name of a root has no end";
	return NULL;
}

static size_t table_bytes(size_t room)
{
	return room * (sizeof(struct roots_entry) + sizeof(uint32_t));
}

static uint32_t *bucket_of(uintptr_t lo, uintptr_t hi)
{
	uint64_t x = lo ^ (hi << 32 | hi >> 32);

	x *= UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
	return &roots.bucket[(x >> 32) & (roots.room - 1)];
}

// link_to returns the link to the entry of exactly this range, which is in a
// bucket or in another entry.  The link is NONE if there is no such entry.  The
// caller must hold roots.lock, and there must be a table.
static uint32_t *link_to(uintptr_t lo, uintptr_t hi)
{
	uint32_t *link = bucket_of(lo, hi);

	RT_ASSERT(mutex_held(&roots.lock));
	while (*link != NONE &&
	       (roots.entry[*link].lo != lo || roots.entry[*link].hi != hi))
		link = &roots.entry[*link].next;
	return link;
}

// check_range checks an entry that was written, and that its bucket leads to
// it.
static const char *check_range(uintptr_t lo, uintptr_t hi)
{
	const char *wrong = check_fields(&roots);
	uint32_t i = NONE;

	if (!wrong)
		i = *link_to(lo, hi);
	if (!wrong && i >= roots.n)
		wrong = "root is in no bucket";
	return wrong ? wrong : check_entry(&roots.entry[i]);
}

// table_index fills the buckets of a new table.
static void table_index(void)
{
	memset(roots.bucket, 0xff, roots.room * sizeof *roots.bucket);
	for (size_t i = 0; i < roots.n; i++) {
		struct roots_entry *e = &roots.entry[i];
		uint32_t *bucket = bucket_of(e->lo, e->hi);

		e->next = *bucket;
		*bucket = (uint32_t)i;
	}
}
static_assert(NONE == 0xffffffff, "a byte at a time");

void *roots_move_table(void *old, size_t was, size_t n, const char *name)
{
	void *table;

	RT_ASSERT(mutex_held(&roots.lock));
	table = sysmem_alloc(n, &gauges.other_sys, name);
	if (!table)
		return NULL;
	if (old) {
		memcpy(table, old, was);
		sysmem_free(old, was, &gauges.other_sys);
	}
	return table;
}

// table_grow doubles the table.  Returns false if there is no memory.  The
// caller must hold roots.lock.
static bool table_grow(void)
{
	size_t room = roots.room == 0 ? ROOM_MIN : 2 * roots.room;
	struct roots_entry *entry;

	if (room > NONE)
		return false;
	entry = roots_move_table(roots.entry, table_bytes(roots.room),
				 table_bytes(room), "roots");
	if (!entry)
		return false;
	roots.entry = entry;
	roots.bucket = (uint32_t *)(entry + room);
	roots.room = room;
	table_index();
	RT_CHECK(roots_check(&roots));
	return true;
}

// entry_find returns the entry of a range, or NULL.
static struct roots_entry *entry_find(uintptr_t lo, uintptr_t hi)
{
	uint32_t i = roots.room != 0 ? *link_to(lo, hi) : NONE;

	return i != NONE ? &roots.entry[i] : NULL;
}

// entry_new makes an entry of a range that has none, which the caller must
// count as added.  Returns NULL if there is no memory.
static struct roots_entry *entry_new(uintptr_t lo, uintptr_t hi)
{
	struct roots_entry *e;
	uint32_t *link;

	RT_ASSERT(mutex_held(&roots.lock));
	if (roots.n == roots.room && !table_grow())
		return NULL;
	link = link_to(lo, hi);
	*link = (uint32_t)roots.n;
	e = &roots.entry[roots.n++];
	*e = (struct roots_entry){.lo = lo, .hi = hi, .next = NONE};
	return e;
}

bool roots_add(uintptr_t lo, uintptr_t hi, unsigned flags)
{
	struct roots_entry *e;

	mutex_lock(&roots.lock);
	e = entry_find(lo, hi);
	if (!e)
		e = entry_new(lo, hi);
	if (e)
		e->times[flags]++;
	RT_CHECK(e ? check_range(lo, hi) : NULL);
	mutex_unlock(&roots.lock);
	return e != NULL;
}

// label_make makes sure that an entry has a label.  Returns false if there is
// no memory.
static bool label_make(struct roots_entry *e)
{
	if (roots.labels.size == 0)
		fixalloc_init(&roots.labels, sizeof *e->label, 8, true,
			      &gauges.other_sys);
	if (!e->label)
		e->label = fixalloc_alloc(&roots.labels);
	return e->label != NULL;
}

// entry_delete removes the entry that link leads to, and moves the last one
// into its place.
static void entry_delete(uint32_t *link)
{
	uint32_t i = *link;
	const struct roots_entry *last;

	RT_ASSERT(mutex_held(&roots.lock));
	last = &roots.entry[--roots.n];
	if (roots.entry[i].label)
		fixalloc_free(&roots.labels, roots.entry[i].label);
	*link = roots.entry[i].next;
	if (i == roots.n)
		return;
	*link_to(last->lo, last->hi) = i;
	roots.entry[i] = *last;
}

// add_values is roots_add_values under the lock.
static int add_values(uintptr_t lo, uintptr_t hi, const rt_value_format *f)
{
	struct roots_entry *e = entry_find(lo, hi);

	if (e && e->times[ROOTS_VALUES] != 0 &&
	    memcmp(&e->label->format, f, sizeof *f) != 0)
		return RT_EEXIST;
	if (!e)
		e = entry_new(lo, hi);
	if (!e)
		return RT_ENOMEM;
	if (!label_make(e)) {
		if (!entry_added(e))
			entry_delete(link_to(lo, hi));
		return RT_ENOMEM;
	}
	e->label->format = *f;
	e->times[ROOTS_VALUES]++;
	return RT_OK;
}

int roots_add_values(uintptr_t lo, uintptr_t hi, const rt_value_format *f)
{
	int error;

	mutex_lock(&roots.lock);
	error = add_values(lo, hi, f);
	RT_CHECK(error ? NULL : check_range(lo, hi));
	mutex_unlock(&roots.lock);
	return error;
}

int roots_name(uintptr_t lo, uintptr_t hi, const char *name)
{
	struct roots_entry *e;
	int error = RT_OK;

	mutex_lock(&roots.lock);
	e = entry_find(lo, hi);
	if (!e)
		error = RT_ENOENT;
	else if (!label_make(e))
		error = RT_ENOMEM;
	else
		strncpy(e->label->name, name, ROOTS_NAME - 1);
	RT_CHECK(error ? NULL : check_range(lo, hi));
	mutex_unlock(&roots.lock);
	return error;
}

// take_once undoes one addition of the entry that link leads to.
static void take_once(uint32_t *link)
{
	struct roots_entry *e = &roots.entry[*link];

	if (e->times[RT_ROOT_EXACT] != 0)
		e->times[RT_ROOT_EXACT]--;
	else if (e->times[RT_ROOT_WORDS] != 0)
		e->times[RT_ROOT_WORDS]--;
	else
		e->times[ROOTS_VALUES]--;
	if (!entry_added(e))
		entry_delete(link);
}

bool roots_remove(uintptr_t lo, uintptr_t hi)
{
	uint32_t *link;
	bool found;

	mutex_lock(&roots.lock);
	link = roots.room != 0 ? link_to(lo, hi) : NULL;
	found = link && *link != NONE;
	RT_CHECK(found ? check_range(lo, hi) : NULL);
	if (found)
		take_once(link);
	RT_CHECK(check_fields(&roots));
	mutex_unlock(&roots.lock);
	return found;
}

void roots_fini(void)
{
	if (roots.entry)
		sysmem_free(roots.entry, table_bytes(roots.room),
			    &gauges.other_sys);
	roots.entry = NULL;
	roots.bucket = NULL;
	roots.n = roots.room = 0;
	roots.labels = (struct fixalloc){0};
}

size_t roots_ranges(void)
{
	return roots.n;
}

struct roots_range roots_range(size_t i)
{
	const struct roots_entry *e = &roots.entry[i];
	struct roots_range r = {
	    .lo = e->lo,
	    .hi = e->hi,
	    .flags = e->times[RT_ROOT_WORDS] ? RT_ROOT_WORDS : RT_ROOT_EXACT,
	};

	if (e->times[RT_ROOT_WORDS] + e->times[RT_ROOT_EXACT] == 0)
		r.flags = ROOTS_VALUES;
	if (e->times[ROOTS_VALUES] != 0)
		r.format = &e->label->format;
	if (e->label && e->label->name[0] != 0)
		r.name = e->label->name;
	return r;
}

// is_plain tells whether a value of a format is the unchanged address of its
// object, so that a scan of plain words finds it too.
static bool is_plain(const rt_value_format *f)
{
	return f->addr_mask == UINT64_MAX && f->shift == 0 && f->base == 0;
}

bool roots_format_on_stack(const rt_value_format *f, rt_value_format *to)
{
	*to = (rt_value_format){0};
	if (!f || is_plain(f))
		return false;
	*to = *f;
	to->stride = sizeof(uintptr_t);
	if (f->test_at == 0)
		return true;
	to->test_at = 0;
	to->test_mask = to->test_bits = 0;
	to->min = 0;
	to->max = UINT64_MAX;
	return true;
}

void roots_set_stack_format(const rt_value_format *f)
{
	roots_format_on_stack(f, &roots.stack_format);
}

const rt_value_format *roots_stack_format(void)
{
	return roots.stack_format.stride != 0 ? &roots.stack_format : NULL;
}

RT_NO_SANITIZE
bool roots_fake_frame(const struct rt_proc *p, struct roots_range *rest,
		      struct roots_range *frame)
{
	bool found = false;

	if (!p->context.fake)
		return false;
	while (!found && rest->lo < rest->hi) {
		uintptr_t w = poison_load(rest->lo);

		found = threadstack_fake_frame(&p->context, w, &frame->lo,
					       &frame->hi);
		rest->lo += sizeof(uintptr_t);
	}
	return found;
}

// ---- invariants ----

// check_chain adds to *n the entries of a bucket.
static const char *check_chain(const struct roots *r, uint32_t i, size_t *n)
{
	for (; i != NONE; i = r->entry[i].next) {
		if (i >= r->n)
			return "bucket of roots leads beyond the table";
		if ((*n)++ == r->n)
			return "bucket of roots has no end";
	}
	return NULL;
}

const char *roots_check(const struct roots *r)
{
	const char *wrong = check_fields(r);
	size_t n = 0;

	if (wrong)
		return wrong;
	for (size_t i = 0; i < r->n && !wrong; i++)
		wrong = check_entry(&r->entry[i]);
	for (size_t i = 0; i < r->room && !wrong; i++)
		wrong = check_chain(r, r->bucket[i], &n);
	if (!wrong && n != r->n)
		wrong = "root is in no bucket";
	if (!wrong && r->labels.size != 0)
		wrong = fixalloc_check(&r->labels);
	if (!wrong && r->stack_format.stride != 0 &&
	    (r->stack_format.stride != sizeof(uintptr_t) ||
	     !layout_format_ok(&r->stack_format)))
		wrong = "format of stacks is not in order";
	return wrong;
}
