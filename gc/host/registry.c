// Checks what a host describes, and gives kinds their numbers.
#include "gc/host/registry.h"

#include "runtime/os/throw.h"
#include "runtime/os/lock.h"
#include "runtime/os/settings.h"
#include "runtime/world/stw.h"
#include "runtime/spans/mcentral.h"
#include "runtime/spans/mcache.h"
#include "gc/mark/typed.h"
#include "gc/mark/trace.h"
#include "gc/host/door.h"

static struct mutex registry_lock = RT_MUTEX_INIT(LOCKRANK_KINDS);

void registry_init(void)
{
	RT_ASSERT(!door_ready());
	layout_init();
	grey_init();
	grey_add_kind(KIND_NOSCAN);
	grey_add_kind(KIND_WORDS);
	kinds_init();
}

// ---- what a host describes ----

static bool number_ok(int number)
{
	return number == RT_KIND_ANY || number == RT_KIND_ANY_ALIGN8 ||
	       (number >= RT_KIND_FIRST && number <= RT_KIND_MAX);
}

static bool header_ok(const rt_kind_desc *d)
{
	return d->header_offset % 8 == 0 && d->header_mask != 0 &&
	       d->header_shift < 64;
}

// only_used tells whether every pointer that is set is one that the layout
// uses.  The host would rely on any other pointer in vain.
static bool only_used(const rt_kind_desc *d)
{
	return (!d->format || d->layout == RT_LAYOUT_WORDS) &&
	       (!d->type || d->layout == RT_LAYOUT_TYPE) &&
	       (!d->types || d->layout == RT_LAYOUT_INDEX) &&
	       (!d->trace || d->layout == RT_LAYOUT_TRACE) &&
	       (!d->drop || d->flags & RT_KIND_DROP);
}

// layout_ok tells whether all that a layout needs is there and in order.
static bool layout_ok(const rt_kind_desc *d)
{
	switch (d->layout) {
	case RT_LAYOUT_NONE:
		return true;
	case RT_LAYOUT_WORDS:
		return !d->format || layout_format_ok(d->format);
	case RT_LAYOUT_TYPE:
		return d->type && layout_type_ok(d->type);
	case RT_LAYOUT_HEADER:
		return header_ok(d) && (d->type_offset == RT_TYPE_IS_HEADER ||
					d->type_offset % 8 == 0);
	case RT_LAYOUT_INDEX:
		return header_ok(d) && d->types && d->ntypes != 0;
	case RT_LAYOUT_TRACE:
		return d->trace != NULL;
	default:
		return false;
	}
}

// has_types tells whether objects of a layout that is in order lead to types.
static bool has_types(const rt_kind_desc *d)
{
	return d->layout == RT_LAYOUT_HEADER || d->layout == RT_LAYOUT_INDEX;
}

// calls_back tells whether a trace callback can run for a layout that is in
// order.
static bool calls_back(const rt_kind_desc *d)
{
	return d->layout == RT_LAYOUT_TRACE || has_types(d) ||
	       (d->layout == RT_LAYOUT_TYPE && d->type->trace);
}

// drops tells whether an object of a layout that is in order can have a
// destructor.
static bool drops(const rt_kind_desc *d)
{
	return d->drop || has_types(d) ||
	       (d->layout == RT_LAYOUT_TYPE && d->type->drop);
}

// drop_ok tells whether the flags about destructors have an effect.
static bool drop_ok(const rt_kind_desc *d)
{
	return d->flags & RT_KIND_DROP ? drops(d)
				       : !(d->flags & RT_KIND_DROP_DEEP);
}

// flags_ok tells whether all flags are known, and have an effect.
static bool flags_ok(const rt_kind_desc *d)
{
	const uint32_t calls = (uint32_t)RT_KIND_SERIAL | RT_KIND_ONCE;
	const uint32_t other =
	    (uint32_t)RT_KIND_BASE | RT_KIND_DROP | RT_KIND_DROP_DEEP;

	return (d->flags & ~(calls | other)) == 0 &&
	       ((d->flags & calls) == 0 || calls_back(d)) && drop_ok(d);
}

int registry_check(const rt_kind_desc *d)
{
	return d && settings_known(d, d->struct_size, sizeof *d, sizeof *d) &&
		       d->spare == 0 && number_ok(d->number) && only_used(d) &&
		       layout_ok(d) && flags_ok(d)
		   ? RT_OK
		   : RT_EINVAL;
}

// ---- numbers ----

// free_number returns a number that no kind has.  Returns RT_EEXIST if the
// wanted number is taken, or RT_ENOMEM if the host accepts any number and none
// is free.
static int free_number(int wanted)
{
	unsigned lo = wanted == RT_KIND_ANY ? KIND_HOST : KIND_ALIGN8;
	unsigned limit = wanted == RT_KIND_ANY ? KIND_ALIGN8 : KIND_OWN;

	if (wanted > 0)
		return kinds_exists((unsigned)wanted) ? RT_EEXIST : wanted;
	for (unsigned k = lo; k < limit; k++)
		if (!kinds_exists(k))
			return (int)k;
	return RT_ENOMEM;
}

int registry_add(const rt_kind_desc *d)
{
	int number;

	mutex_lock(&registry_lock);
	number = free_number(d->number);
	if (number > 0 && d->flags & RT_KIND_DROP && !mheap_add_deadbits())
		number = RT_ENOMEM;
	if (number > 0) {
		layout_set((unsigned)number, d);
		grey_add_kind((unsigned)number);
		kinds_add((unsigned)number, (d->flags & RT_KIND_DROP) != 0);
	}
	mutex_unlock(&registry_lock);
	return number;
}

bool registry_add_typed(void)
{
	bool ok;

	mutex_lock(&registry_lock);
	ok = mheap_add_typebits();
	if (ok && !kinds_exists(KIND_TYPED)) {
		grey_add_kind(KIND_TYPED);
		kinds_add(KIND_TYPED, false);
	}
	mutex_unlock(&registry_lock);
	return ok;
}

void registry_add_own(unsigned kind)
{
	if (kinds_exists(kind))
		return;
	mutex_lock(&registry_lock);
	if (!kinds_exists(kind)) {
		grey_add_kind(kind);
		kinds_add(kind, false);
	}
	mutex_unlock(&registry_lock);
}

// ---- the end of a kind ----

// has_objects tells whether an object of a kind exists.  Caches must be empty
// and all spans swept.
static bool has_objects(unsigned kind)
{
	uint64_t page = 0;
	const struct mspan *s;

	while ((s = mheap_next_span(&page)) != NULL)
		if (s->use == MSPAN_HEAP && s->alloc_count != 0 &&
		    spanclass_kind(s->spanclass) == kind)
			return true;
	return false;
}

// free_spans frees the spans of a kind without objects.  They have free slots,
// so all of them are in a set.
static void free_spans(struct rt_proc *p, unsigned kind)
{
	struct mspan *list = NULL, *s;

	for (unsigned c = 1; c < SIZECLASS_COUNT; c++)
		while ((s = mcentral_pop(spanclass_make(c, kind))) != NULL) {
			s->next = list;
			list = s;
		}
	mheap_free(p, list);
}

int registry_remove(struct rt_proc *p, unsigned kind)
{
	int error = RT_OK;

	RT_ASSERT(stw_stopped());
	mutex_lock(&registry_lock);
	if (!kinds_exists(kind))
		error = RT_ENOENT;
	mutex_unlock(&registry_lock);
	if (error)
		return error;
	mcache_flush_all(p);
	if (has_objects(kind))
		return RT_EBUSY;
	free_spans(p, kind);
	for (struct rt_proc *q = proc_first(); q; q = proc_next(q)) {
		struct rt_mcache *mc = mcache_of(q);

		if (mc)
			mcache_drop_kind(mc, kind);
	}
	mutex_lock(&registry_lock);
	kinds_remove(kind);
	mutex_unlock(&registry_lock);
	return RT_OK;
}
