// shadow_values.c - operations of registered ranges that hold values.
//
// A range is registered in the format of a layout, as words, as exact, or in
// several of these ways at once.  Its memory holds encoded references from the
// beginning on, and behind them one word more.  That is a value of its own, or
// half a value where values have two words.  Only a registration as words or as
// exact looks at half a value.  The part behind the first values may be
// registered as a range of its own, so ranges overlap.
//
// Which references count follows from what the memory holds.  In programs of a
// fuzzer it holds any words, and each is looked up.
#include <string.h>

#include "gc/mark/roots.h"
#include "test/harness/shadow_actor.h"

enum {
	FORMATS = 7, // of the layouts of words; the first is plain words
	OTHERS = 6,  // of these, that have a format
	TAGGED = 4,  // one in so many has the tag of no reference
	FIRST = 5,   // values in front of the part
};

static unsigned nwords(const struct actor_values *v)
{
	return SHADOW_VALUES * shadow_step(v->layout) + 1;
}

static unsigned first_of(enum values_range range)
{
	return range == VALUES_BEHIND ? FIRST : 0;
}

static uintptr_t *begin_of(struct actor_values *v, enum values_range range)
{
	return v->word + first_of(range) * shadow_step(v->layout);
}

static uintptr_t *end_of(struct actor_values *v)
{
	return v->word + nwords(v);
}

static bool is_registered(const struct actor_values *v, enum values_range range)
{
	const unsigned *times = v->times[range];

	return times[RT_ROOT_EXACT] + times[RT_ROOT_WORDS] +
		   times[ROOTS_VALUES] !=
	       0;
}

static bool any_registered(const struct actor_values *v)
{
	return is_registered(v, VALUES_ALL) || is_registered(v, VALUES_BEHIND);
}

// is_in tells whether value k is in a range that is registered in some way.
static bool is_in(const struct actor_values *v, unsigned k, unsigned way)
{
	return v->times[VALUES_ALL][way] != 0 ||
	       (k >= FIRST && v->times[VALUES_BEHIND][way] != 0);
}

// ---- values ----

// is_whole tells whether value k is a whole value, and not the half at the end.
static bool is_whole(const struct actor_values *v, unsigned k)
{
	return k < SHADOW_VALUES || shadow_step(v->layout) == 1;
}

static unsigned index_of(const struct actor_values *v, unsigned k)
{
	unsigned first = is_whole(v, k) ? shadow_first(v->layout) : 0;

	return k * shadow_step(v->layout) + first;
}

static uintptr_t tag_of(const struct actor_values *v, unsigned k)
{
	return shadow_step(v->layout) == 2
		   ? v->word[index_of(v, k) + 1 - 2 * shadow_first(v->layout)]
		   : 0;
}

// set_value changes a value.  reference says whether it gets the tag of a
// reference.
static void set_value(struct actor_values *v, unsigned k, struct shadow_word w,
		      bool reference)
{
	uintptr_t value = shadow_value(w);
	unsigned i = index_of(v, k);

	v->held[k] = w;
	v->word[i] = w.to ? shadow_encode(v->layout, value) : value;
	if (is_whole(v, k) && shadow_step(v->layout) == 2)
		v->word[i + 1 - 2 * shadow_first(v->layout)] =
		    shadow_tag(v->layout, reference);
}

// is_root tells whether the reference in value k keeps its object, by what the
// range is registered as.
static bool is_root(const struct actor_values *v, unsigned k)
{
	uintptr_t address, word = v->word[index_of(v, k)];
	const struct shadow_node *to = v->held[k].to;

	if (!to)
		return false;
	if (is_in(v, k, ROOTS_VALUES) && is_whole(v, k) &&
	    shadow_decode(v->layout, word, tag_of(v, k), &address))
		return true;
	if (is_in(v, k, RT_ROOT_WORDS) && (word ^ shadow_value(v->held[k])) < 8)
		return true;
	return is_in(v, k, RT_ROOT_EXACT) && word == to->at;
}

// meets_another tells whether value k, which is no root for the copy, is one in
// the heap.  Its encoded word may be an odd address, at which another object
// was allocated meanwhile.
static bool meets_another(const struct actor_values *v, unsigned k)
{
	const void *p = (const void *)v->word[index_of(v, k)];

	if (!rt_is_heap(p))
		return false;
	if (is_in(v, k, RT_ROOT_WORDS))
		return true;
	return is_in(v, k, RT_ROOT_EXACT) &&
	       (rt_base(p) == p ||
		(rt_kind_of(p) == RT_NOSCAN && rt_size(p) <= 16));
}

// forget_others makes the copy forget references that keep nothing alive.
static void forget_others(struct actor_values *v)
{
	for (unsigned k = 0; k <= SHADOW_VALUES; k++) {
		if (is_root(v, k))
			continue;
		v->held[k] = SHADOW_NOTHING;
		if (meets_another(v, k))
			set_value(v, k, SHADOW_NOTHING, false);
	}
}

// clear_others clears the values that are no roots, in memory as well.  Their
// objects may be dead, and such a value might become a root.
static void clear_others(struct actor_values *v)
{
	for (unsigned k = 0; k <= SHADOW_VALUES; k++)
		if (!is_root(v, k))
			set_value(v, k, SHADOW_NOTHING, false);
}

// ---- registering ----

static const struct shadow_layout *layout_of(unsigned i)
{
	return &shadow_layouts[SHADOW_PLAIN_WORDS + i % FORMATS];
}

// add registers a range once more; way is one of enum rt_root_flags, or
// ROOTS_VALUES.
static void add(struct actor_values *v, enum values_range range, unsigned way)
{
	const rt_value_format *format = v->layout->format;
	uintptr_t *lo = begin_of(v, range), *hi = end_of(v);
	unsigned *times = v->times[range];
	int error;

	if (times[way] == RANGE_TIMES)
		return;
	if (!run.wild)
		clear_others(v);
	if (way == ROOTS_VALUES)
		error = rt_roots_add_values(lo, hi, format, 0);
	else
		error = rt_roots_add(lo, hi, (int)way);
	if (shadow_done(error, "a range of values"))
		times[way == ROOTS_VALUES && !format ? RT_ROOT_WORDS : way]++;
}

// refuse makes calls that must be refused, and so change nothing.
static void refuse(struct actor_values *v, enum values_range range)
{
	unsigned i = (unsigned)(v->layout - layout_of(0));
	const rt_value_format *other = layout_of(1 + i % OTHERS)->format;
	uintptr_t *lo = begin_of(v, range), *hi = end_of(v);
	rt_value_format wrong = *other;

	wrong.stride = 12;
	SHADOW_TRUE(rt_roots_add_values(lo, hi, other, 1) == RT_EINVAL);
	SHADOW_TRUE(rt_roots_add_values(lo, hi, &wrong, 0) == RT_EINVAL);
	if (v->times[range][ROOTS_VALUES] != 0)
		SHADOW_TRUE(rt_roots_add_values(lo, hi, other, 0) == RT_EEXIST);
}

static void take(struct actor_values *v, enum values_range range)
{
	bool any = is_registered(v, range);
	unsigned way = RT_ROOT_EXACT;

	while (any && v->times[range][way] == 0)
		way++;
	SHADOW_TRUE(rt_roots_remove(begin_of(v, range), end_of(v)) ==
		    (any ? RT_OK : RT_ENOENT));
	if (any)
		v->times[range][way]--;
	if (!is_registered(v, range))
		v->name[range][0] = '\0';
}

// check_name compares the name in the table of the heap.
static void check_name(struct actor_values *v, enum values_range range)
{
	uintptr_t lo = (uintptr_t)begin_of(v, range), hi = (uintptr_t)end_of(v);
	const char *name = "";

	mutex_lock(&roots.lock);
	for (size_t i = 0; i < roots_ranges(); i++) {
		struct roots_range r = roots_range(i);

		if (r.lo == lo && r.hi == hi)
			name = r.name ? r.name : "";
	}
	if (strcmp(name, v->name[range]) != 0)
		shadow_fail("a range is named %.31s, not %s", name,
			    v->name[range]);
	mutex_unlock(&roots.lock);
}

// A name may be cut.
static void name(struct actor_values *v, enum values_range range, unsigned n)
{
	static const char long_name[] = "values, and a name that is too long";
	const char *text = &long_name[n % sizeof long_name];
	int error = rt_roots_name(begin_of(v, range), end_of(v), text);

	if (!is_registered(v, range))
		SHADOW_TRUE(error == RT_ENOENT);
	else if (shadow_done(error, "rt_roots_name"))
		snprintf(v->name[range], sizeof v->name[range], "%s", text);
}

SHADOW_OP(values)
{
	struct actor_values *v = &a->values[op->a % VALUE_RANGES];
	unsigned more = op->b / 8;
	enum values_range range = more % 3 == 0 ? VALUES_BEHIND : VALUES_ALL;

	if (!any_registered(v)) {
		v->layout = layout_of(op->c);
		clear_others(v);
	}
	switch (op->b % 8) {
	case 0:
	case 1:
	case 2:
		add(v, range, ROOTS_VALUES);
		break;
	case 3:
		add(v, range, RT_ROOT_WORDS);
		break;
	case 4:
		add(v, range, RT_ROOT_EXACT);
		break;
	case 5:
		name(v, range, more);
		break;
	default:
		take(v, range);
	}
	refuse(v, range);
	check_name(v, VALUES_ALL);
	check_name(v, VALUES_BEHIND);
}

// ---- what is in a range ----

// may_count_anyway tells whether a reference to an object may refer to other
// objects as well, unless the heap is guarded.
static bool may_count_anyway(const struct shadow_node *o)
{
	return o->kind == RT_NOSCAN && o->n <= 16;
}

// write_any is for words that may be anything.
static void write_any(struct actor_values *v, unsigned k, uintptr_t w,
		      unsigned how)
{
	if (how % 2)
		w = shadow_encode(v->layout, w);
	set_value(v, k, (struct shadow_word){NULL, w}, how / 2 % TAGGED != 0);
}

SHADOW_OP(write)
{
	struct actor_values *v = &a->values[op->a % VALUE_RANGES];
	unsigned k = op->b % 16 % (SHADOW_VALUES + 1), how = op->b / 16;
	struct shadow_word w = a->root[op->c % run.nslots];

	a->idle = !any_registered(v);
	if (a->idle)
		return;
	if (run.wild) {
		write_any(v, k, shadow_value(shadow_share(w)), how);
		return;
	}
	if (w.to && may_count_anyway(w.to))
		w = SHADOW_NOTHING;
	a->idle = !w.to;
	set_value(v, k, shadow_share(w), how % TAGGED != 0);
}

SHADOW_OP(read)
{
	struct actor_values *v = &a->values[op->c % VALUE_RANGES];
	unsigned k = op->b % (SHADOW_VALUES + 1);
	uintptr_t word;

	a->idle = !any_registered(v) || (!run.wild && !is_root(v, k));
	if (a->idle)
		return;
	word = v->word[index_of(v, k)];
	if (run.wild) {
		shadow_set_root(a, op->a % run.nslots,
				(struct shadow_word){NULL, word});
		return;
	}
	if (word != shadow_encode(v->layout, shadow_value(v->held[k])))
		shadow_fail("value %u of a range is %#lx", k, (long)word);
	shadow_set_root(a, op->a % run.nslots, v->held[k]);
}

// ---- for collections ----

// reach_any looks at the words of a range in each way in which it is
// registered.
static void reach_any(const struct actor_values *v, enum values_range range)
{
	const unsigned *times = v->times[range];
	bool exact = times[RT_ROOT_WORDS] == 0;
	unsigned first = first_of(range);
	uintptr_t address;

	for (unsigned k = first; k <= SHADOW_VALUES; k++)
		if (times[ROOTS_VALUES] != 0 && is_whole(v, k) &&
		    shadow_decode(v->layout, v->word[index_of(v, k)],
				  tag_of(v, k), &address))
			shadow_reach((struct shadow_word){NULL, address},
				     SHADOW_ANY);
	if (exact && times[RT_ROOT_EXACT] == 0)
		return;
	for (unsigned i = first * shadow_step(v->layout); i < nwords(v); i++)
		shadow_reach((struct shadow_word){NULL, v->word[i]},
			     exact ? SHADOW_EXACT : SHADOW_ANY);
}

void shadow_reach_values(const struct actor *a)
{
	for (unsigned i = 0; i < VALUE_RANGES; i++) {
		const struct actor_values *v = &a->values[i];

		for (unsigned r = 0; run.wild && r < VALUES_RANGES; r++)
			if (is_registered(v, (enum values_range)r))
				reach_any(v, (enum values_range)r);
		for (unsigned k = 0; !run.wild && k <= SHADOW_VALUES; k++)
			if (v->layout && is_root(v, k))
				shadow_reach(v->held[k], SHADOW_ANY);
	}
}

void shadow_forget_values(struct actor *a)
{
	for (unsigned i = 0; !run.wild && i < VALUE_RANGES; i++)
		if (a->values[i].layout)
			forget_others(&a->values[i]);
}

void shadow_clear_picked_values(struct actor *a)
{
	for (unsigned i = 0; i < VALUE_RANGES; i++) {
		struct actor_values *v = &a->values[i];

		for (unsigned k = 0; k <= SHADOW_VALUES; k++)
			if (v->held[k].to && v->held[k].to->picked)
				set_value(v, k, SHADOW_NOTHING, false);
	}
}
