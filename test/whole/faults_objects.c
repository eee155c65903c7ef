// Scenarios of check_faults for what a host makes beside plain objects: handles
// and roots of other sorts, kinds and types, lists, and objects that it frees
// by hand.
#include "test/whole/faults.h"

#include <string.h>

// ---- roots ----

// granted tells whether the answer is success.  Any other answer must be that
// there is no memory.
static bool granted(int error)
{
	require(error == RT_OK || error == RT_ENOMEM, "an undocumented answer");
	return error == RT_OK;
}

// act_handles makes so many handles that their words become usable in several
// steps.
unsigned act_handles(void)
{
	static rt_handle *handle[9000];
	void *p = rt_alloc(16);
	unsigned failed = !p;

	for (unsigned i = 0; i < RT_ARRAY_LEN(handle); i++) {
		handle[i] = rt_handle_new(p);
		failed += !handle[i];
	}
	require(rt_gc() == RT_OK, "gc");
	require(!p || !handle[0] || rt_is_heap(p), "an object is lost");
	for (unsigned i = 0; i < RT_ARRAY_LEN(handle); i++)
		require(!handle[i] || (rt_handle_get(handle[i]) == p &&
				       rt_handle_free(handle[i]) == RT_OK),
			"a handle");
	return failed;
}

enum { RANGES = 100 };

// The addresses of the objects that the roots lead to.  The array itself is no
// root, unless a scenario adds it.
static uintptr_t hidden[RANGES];

static unsigned hide_objects(void)
{
	unsigned failed = 0;

	for (unsigned i = 0; i < RANGES; i++) {
		hidden[i] = (uintptr_t)rt_alloc_noscan(32);
		failed += hidden[i] == 0;
	}
	return failed;
}

// require_hidden collects.  It requires that an object is alive if and only if
// its root was granted.
static void require_hidden(const bool *added)
{
	require(rt_gc() == RT_OK, "gc");
	for (unsigned i = 0; i < RANGES; i++)
		require(rt_is_heap((void *)hidden[i]) ==
			    (added[i] && hidden[i] != 0),
			"an object is lost, or kept by nothing");
}

static void tell_hidden(rt_tracer *t, void *arg)
{
	rt_trace_ptr(t, *(void **)arg);
}

unsigned act_root_fns(void)
{
	bool added[RANGES];
	unsigned failed = hide_objects();

	for (unsigned i = 0; i < RANGES; i++) {
		added[i] = granted(rt_roots_add_fn(tell_hidden, &hidden[i],
						   i % 2 ? "hidden" : NULL));
		failed += !added[i];
	}
	require_hidden(added);
	for (unsigned i = 0; i < RANGES; i++)
		require(rt_roots_remove_fn(tell_hidden, &hidden[i]) ==
			    (added[i] ? RT_OK : RT_ENOENT),
			"roots_remove_fn");
	return failed;
}

// Ranges of one value each, in formats that all differ.
unsigned act_formats(void)
{
	static uint64_t value[RANGES];
	bool added[RANGES];
	unsigned failed = hide_objects();

	for (unsigned i = 0; i < RANGES; i++) {
		rt_value_format f = RT_FORMAT_LOW_TAG(7, 1);

		f.max -= i;
		value[i] = hidden[i] | 1;
		added[i] = granted(
		    rt_roots_add_values(&value[i], &value[i] + 1, &f, 0));
		failed += !added[i];
	}
	require_hidden(added);
	for (unsigned i = 0; i < RANGES; i++)
		require(rt_roots_remove(&value[i], &value[i] + 1) ==
			    (added[i] ? RT_OK : RT_ENOENT),
			"roots_remove");
	return failed;
}

// A name that is refused leaves a root without one.
unsigned act_names(void)
{
	bool added[RANGES];
	unsigned failed = hide_objects();

	for (unsigned i = 0; i < RANGES; i++) {
		uintptr_t *lo = &hidden[i];
		int error;

		added[i] = granted(rt_roots_add(lo, lo + 1, RT_ROOT_EXACT));
		error = rt_roots_name(lo, lo + 1, "a name of a range");
		if (added[i])
			failed += !granted(error);
		else
			require(error == RT_ENOENT, "a name of nothing");
		failed += !added[i];
	}
	require_hidden(added);
	for (unsigned i = 0; i < RANGES; i += 2)
		require(rt_roots_name(&hidden[i], &hidden[i] + 1, "") ==
			    (added[i] ? RT_OK : RT_ENOENT),
			"no name");
	for (unsigned i = 0; i < RANGES; i++)
		require(rt_roots_remove(&hidden[i], &hidden[i] + 1) ==
			    (added[i] ? RT_OK : RT_ENOENT),
			"roots_remove");
	return failed;
}

// ---- types and kinds ----

static const uint64_t first_word[] = {1};
static const rt_type link_type = {.struct_size = sizeof link_type,
				  .size = 24,
				  .ptrdata = 8,
				  .bitmap = first_word,
				  .align = 8};

// Each of several typed objects, of different sizes, keeps another object.
unsigned act_typed(void)
{
	unsigned failed = 0, first = nkept;
	void **p;

	for (size_t count = 1; count < 10000; count *= 6) {
		p = rt_alloc_typed(&link_type, count);
		failed += !p;
		if (!p)
			continue;
		keep(p);
		*p = rt_alloc_noscan(32);
		failed += !*p;
		p[1] = NULL; // no bit names it
	}
	require(rt_gc() == RT_OK, "gc");
	for (unsigned i = first; i < nkept; i++) {
		p = kept[i];
		require(rt_kind_of(p) == RT_TYPED, "a typed object is lost");
		require(!*p || rt_is_heap(*p), "a reference is lost");
	}
	drop();
	return failed;
}

static void tell_word(rt_tracer *t, void *obj, size_t size, void *arg)
{
	(void)size, (void)arg;
	rt_trace_ptr(t, *(void **)obj);
}

static const rt_value_format low_tag = RT_FORMAT_LOW_TAG(7, 0);
static const rt_kind_desc descs[] = {
    {.layout = RT_LAYOUT_NONE, .name = "none"},
    {.layout = RT_LAYOUT_WORDS, .format = &low_tag},
    {.layout = RT_LAYOUT_TYPE,
     .type = &link_type,
     .number = RT_KIND_ANY_ALIGN8},
    {.layout = RT_LAYOUT_TRACE, .trace = tell_word, .flags = RT_KIND_SERIAL},
    {.layout = RT_LAYOUT_TRACE, .trace = tell_word, .flags = RT_KIND_BASE},
};

// Slots of a kind are made when a thread first uses it.  Until then a kind
// without destructors needs no memory.
unsigned act_kinds(void)
{
	int kind[RT_ARRAY_LEN(descs)];
	unsigned failed = 0;

	for (unsigned i = 0; i < RT_ARRAY_LEN(descs); i++) {
		rt_kind_desc d = descs[i];

		d.struct_size = sizeof d;
		kind[i] = rt_kind_register(&d);
		require(kind[i] >= RT_KIND_FIRST, "rt_kind_register");
		for (size_t n = 16; n < 50000; n = n * 5 / 2) {
			void **p = rt_alloc_kind(kind[i], n);

			failed += !p;
			require(!p || rt_kind_of(p) == kind[i], "rt_kind_of");
			if (p)
				*p = kept[0];
			kept[0] = p;
		}
	}
	require(rt_gc() == RT_OK, "gc");
	drop();
	require(rt_gc() == RT_OK, "gc");
	for (unsigned i = 0; i < RT_ARRAY_LEN(descs); i++)
		require(rt_kind_unregister(kind[i]) == RT_OK,
			"rt_kind_unregister");
	return failed;
}

// ---- lists ----

static int pick_kept(const void *obj, size_t size, void *arg)
{
	(void)size;
	++*(unsigned *)arg;
	for (unsigned i = 0; i < NWIDE; i++)
		if (obj == kept[i])
			return 1;
	return 0;
}

// list_objects requires a list of want objects, or none.  If the array of an
// earlier list was refused its root, it is an object that no collection has
// freed yet.  So up to refused objects more may be listed.
static unsigned list_objects(int kind, rt_pick_fn *pick, size_t want,
			     unsigned refused)
{
	size_t n = 4711;
	unsigned picks = 0;
	void **list = rt_heap_list(kind, pick, &picks, &n);

	if (!list) {
		require(n == 4711, "a number without a list");
		return 1;
	}
	require(n >= want && n <= want + refused, "the number of objects");
	require(!pick || picks > want, "what picks an object");
	for (size_t i = 0; i < n; i++)
		require(rt_base(list[i]) == list[i], "an object");
	require(rt_free(list) == RT_OK, "rt_free");
	return 0;
}

unsigned act_lists(void)
{
	const size_t all = NWIDE * (WIDE + 1);
	unsigned failed = 0;

	failed += list_objects(RT_WORDS, NULL, all, failed);
	failed += list_objects(-1, NULL, all, failed);
	failed += list_objects(RT_NOSCAN, NULL, 0, 0);
	failed += list_objects(RT_WORDS, pick_kept, NWIDE, 0);
	require(rt_gc() == RT_OK, "gc");
	return failed;
}

// ---- objects that are freed by hand ----

static bool is_filled(const unsigned char *p, size_t n)
{
	return p[0] == 0x5a && memcmp(p, p + 1, n - 1) == 0;
}

// resize makes an object of n bytes larger and smaller, and frees it.
static unsigned resize(void *(*alloc)(int kind, size_t n), size_t n)
{
	unsigned failed;
	void *p = alloc(RT_NOSCAN, n);

	if (!p)
		return 1;
	memset(p, 0x5a, n);
	kept[0] = p;
	p = rt_realloc(RT_NOSCAN, p, 2 * n);
	failed = !p;
	if (p)
		kept[0] = p;
	p = kept[0];
	require(rt_size(p) >= (failed ? n : 2 * n), "the size");
	require(is_filled(p, n), "a byte is lost");
	require(rt_resize(p, n / 2 + 1) == RT_OK, "an object cannot shrink");
	p = rt_realloc(RT_NOSCAN, p, n / 4 + 1);
	require(p != NULL, "an object cannot shrink by a move");
	require(is_filled(p, n / 4 + 1), "a byte is lost in the move");
	kept[0] = p;
	require(rt_gc() == RT_OK && rt_is_heap(p), "an object is lost");
	require(rt_free(p) == RT_OK, "rt_free");
	kept[0] = NULL;
	return failed;
}

unsigned act_resize(void)
{
	unsigned failed = 0;

	for (size_t n = 70; n < 1 << 20; n *= 16) {
		failed += resize(rt_alloc_kind, n);
		failed += resize(rt_alloc_uncollectable, n);
	}
	return failed;
}

// The other functions that allocate.
unsigned act_sorts(void)
{
	static const char text[] = "what is copied";
	static char much[100000];
	void *out[100];
	char *copy = rt_strdup(text);
	unsigned failed = !copy;
	size_t n;

	require(!copy || strcmp(copy, text) == 0, "a copy");
	failed += !rt_memdup(much, sizeof much);
	failed += !rt_alloc_array(RT_WORDS, 16, 1000, 8);
	for (size_t align = 32; align <= 2 << 20; align *= 8) {
		uintptr_t p = (uintptr_t)rt_alloc_aligned(RT_WORDS, align, 500);

		failed += p == 0;
		require(p % align == 0, "an alignment");
	}
	n = rt_alloc_many(RT_WORDS, 400, RT_ARRAY_LEN(out), out);
	failed += n == 0;
	for (size_t i = 0; i < n; i++)
		require(rt_size(out[i]) >= 400, "one of many");
	return failed;
}
