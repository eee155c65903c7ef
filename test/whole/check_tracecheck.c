// What rt_config.tracecheck finds, and how it says so.
#include "test/whole/tracecheck.h"

uintptr_t *root[ROOTS];

// The lines of the report.
char said[LINES][512];
unsigned nsaid;

void keep_line(const char *text, void *arg)
{
	ck_assert_ptr_eq(arg, said);
	ck_assert_uint_lt(nsaid, LINES);
	ck_assert_ptr_null(strchr(text, '\n'));
	strcpy(said[nsaid++], text);
}

rt_config config_of(unsigned helpers)
{
	rt_config c = heap_config(HEAP_QUIET);

	c.tracecheck = 1;
	c.checkmark = 1;
	c.clobberfree = 1;
	c.gc_threads = (int)helpers;
	return c;
}

void start_as(rt_config c)
{
	ck_assert_int_eq(rt_set_warn_handler(keep_line, said), RT_OK);
	heap_start_exact(c);
	must(rt_roots_add(root, root + ROOTS, RT_ROOT_EXACT));
}

void start(void)
{
	start_as(config_of(0));
}

int add_kind(rt_kind_desc d)
{
	int kind = rt_kind_register(&d);

	ck_assert_int_gt(kind, 0);
	return kind;
}

rt_kind_desc traced(const char *name, rt_trace_fn *trace)
{
	rt_kind_desc d;

	rt_kind_desc_init(&d);
	d.name = name;
	d.layout = RT_LAYOUT_TRACE;
	d.trace = trace;
	return d;
}

uintptr_t *make(int kind, size_t n)
{
	uintptr_t *p = rt_alloc_kind(kind, n);

	ck_assert_ptr_nonnull(p);
	return p;
}

uintptr_t leaf(void)
{
	uintptr_t p = (uintptr_t)rt_alloc_noscan(16);

	ck_assert_uint_ne(p, 0);
	return p;
}

unsigned report(void)
{
	nsaid = 0;
	ck_assert_int_eq(rt_gc(), RT_OK);
	ck_assert_uint_eq(heap_stats().heap_objects, heap_live());
	return nsaid;
}

void expect_in(const char *line, const char *text)
{
	ck_assert_msg(strstr(line, text) != NULL, "%s\nhas no \"%s\"", line,
		      text);
}

void expect_no_lines(void)
{
	unsigned n = report();

	ck_assert_msg(n == 0, "%u: %s", n, said[0]);
}

void tell_first(rt_tracer *t, void *obj, size_t size, void *arg)
{
	(void)size, (void)arg;
	rt_trace_ptr(t, *(void **)obj);
}

// ---- planted fields ----

static const rt_value_format boxes = RT_FORMAT_NAN_BOX(
    UINT64_C(0xfffe000000000000), UINT64_C(0xfffeffffffffffff));
static const rt_value_format tags = RT_FORMAT_LOW_TAG(7, 5);
static const rt_value_format pairs = RT_FORMAT_PAIR(0xff, 4);
static const rt_value_format shifts = {
    .max = UINT64_MAX, .addr_mask = UINT64_MAX, .shift = 3, .stride = 8};
static const rt_value_format plain = RT_FORMAT_PLAIN;

// tell_bits tells the words whose bits are set in *arg, as boxes if boxed is
// set.
static bool boxed;

static void tell_bits(rt_tracer *t, void *obj, size_t size, void *arg)
{
	const uint64_t *bits = arg;
	const uintptr_t *word = obj;
	const rt_value_format *form = boxed ? &boxes : &plain;

	for (size_t i = 0; i < size / 8 && i < 64; i++)
		if (*bits >> i & 1)
			rt_trace_value(t, word[i], form);
}

// tell_stack tells a stack up to its top, which is in word 1, as
// examples/trace.c does.
static void tell_stack(rt_tracer *t, void *obj, size_t size, void *arg)
{
	uintptr_t *word = obj;
	const uint64_t *bits = arg;

	(void)size;
	rt_trace_words(t, word + 2, word + 2 + (*bits >> 3 & 1 ? word[1] : 1));
}

// An object of the examples.  One test tells all of its references, another one
// forgets a word.  Word 0 is for a header.
struct plant {
	int layout;	// of the kind; -1: rt_alloc_typed
	size_t size;	// of the object
	size_t fixed;	// of the type
	size_t tail;	// of the type
	uint64_t right; // words with references, in the parts of the type
	unsigned word;	// the one that is forgotten
	const rt_value_format *format;
	rt_trace_fn *trace;
	bool stack_format; // the format is that of the heap
};

static const struct plant plants[] = {
    // types.c: a fixed part; a tail; the class itself
    {RT_LAYOUT_TYPE, 48, 48, 0, 0x3e, 1, NULL, NULL, false},
    {RT_LAYOUT_TYPE, 48, 48, 0, 0x3e, 5, NULL, NULL, false},
    {RT_LAYOUT_TYPE, 800, 800, 0, 0xe, 3, NULL, NULL, false},
    {RT_LAYOUT_TYPE, 64, 16, 24, 0x12, 4, NULL, NULL, false},
    {RT_LAYOUT_TYPE, 40000, 16, 24, 0x12, 4, NULL, NULL, false},
    {RT_LAYOUT_HEADER, 48, 48, 0, 0xe, 2, NULL, NULL, false},
    {RT_LAYOUT_HEADER, 64, 16, 16, 0xe, 3, NULL, NULL, false},
    {RT_LAYOUT_INDEX, 48, 48, 0, 0xe, 3, NULL, NULL, false},
    // without a header
    {-1, 48, 48, 0, 0x2a, 3, NULL, NULL, false},
    {-1, 64, 16, 24, 0x12, 1, NULL, NULL, false},
    {-1, 60000, 60000, 0, 0x2a, 5, NULL, NULL, false},
    // trace.c and forgotten.c: cons cells, machines, tables
    {RT_LAYOUT_TRACE, 24, 0, 0, 0x6, 1, NULL, tell_bits, false},
    {RT_LAYOUT_TRACE, 24, 0, 0, 0x6, 2, NULL, tell_bits, false},
    {RT_LAYOUT_TRACE, 40, 0, 0, 0x1e, 3, NULL, tell_bits, false},
    {RT_LAYOUT_TRACE, 400, 0, 0, 0xc, 3, NULL, tell_stack, false},
    {RT_LAYOUT_TRACE, 50000, 0, 0, 0xe, 2, NULL, tell_bits, false},
    // boxes.c, and values in other forms
    {RT_LAYOUT_TYPE, 48, 48, 0, 0xe, 2, &boxes, NULL, false},
    {RT_LAYOUT_TYPE, 48, 48, 0, 0xe, 2, &tags, NULL, false},
    {RT_LAYOUT_TYPE, 48, 48, 0, 0xa, 3, &pairs, NULL, false},
    {RT_LAYOUT_TYPE, 64, 16, 24, 0x12, 4, &shifts, NULL, false},
    {RT_LAYOUT_HEADER, 48, 48, 0, 0x6, 1, &boxes, NULL, false},
    {RT_LAYOUT_TRACE, 48, 0, 0, 0xe, 2, &boxes, tell_bits, true},
    // a type with a bitmap and a callback
    {RT_LAYOUT_TYPE, 48, 48, 0, 0xe, 2, NULL, tell_bits, false},
};

static const struct plant *plant;

// A kind and its objects are made of these.
static struct {
	rt_type type;
	uint64_t fixed_bits, tail_bits, told_bits;
	const rt_type *types[4];
} made;

static void make_type(uint64_t bits)
{
	size_t n = plant->fixed / 8;

	memset(&made.type, 0, sizeof made.type);
	made.type.struct_size = sizeof made.type;
	made.type.size = plant->fixed;
	made.type.tail_size = plant->tail;
	made.fixed_bits = n < 64 ? bits & ((UINT64_C(1) << n) - 1) : bits;
	made.tail_bits = n < 64 ? bits >> n : 0;
	made.type.ptrdata = base_min(plant->fixed, 64);
	made.type.bitmap = &made.fixed_bits;
	made.type.tail_ptrdata = plant->tail;
	made.type.tail_bitmap = &made.tail_bits;
	made.type.format = plant->format;
	made.type.name = "seedling";
	if (plant->layout == RT_LAYOUT_TYPE && plant->trace) {
		made.type.trace = plant->trace;
		made.type.ptrdata = 0;
		made.type.arg = &made.told_bits;
	}
	made.told_bits = bits;
	made.types[3] = &made.type;
	if (plant->layout != RT_LAYOUT_TRACE)
		ck_assert_int_eq(rt_type_check(&made.type), RT_OK);
}

static int plant_kind(void)
{
	rt_kind_desc d;

	rt_kind_desc_init(&d);
	d.name = "bed";
	d.layout = plant->layout;
	if (d.layout == RT_LAYOUT_TRACE) {
		d.trace = plant->trace;
		d.arg = &made.told_bits;
	} else if (d.layout == RT_LAYOUT_TYPE) {
		d.type = &made.type;
	} else {
		d.header_mask = UINT64_MAX;
		d.type_offset = RT_TYPE_IS_HEADER;
		d.types = d.layout == RT_LAYOUT_INDEX ? made.types : NULL;
		d.ntypes = 4;
	}
	return add_kind(d);
}

static uintptr_t value_of(uintptr_t p)
{
	if (plant->format == &boxes)
		return p | UINT64_C(0xfffe000000000000);
	if (plant->format == &tags)
		return p | 5;
	return plant->format == &shifts ? p >> 3 : p;
}

// grow makes an object.  The bits of right say which of its words are filled
// with references, and the bits of told which words are told.
static void grow(uint64_t told)
{
	size_t n = plant->size;
	size_t elements = 1;

	make_type(told);
	if (plant->tail != 0)
		elements = (n - plant->fixed) / plant->tail;
	root[0] = plant->layout >= 0 ? make(plant_kind(), n)
				     : rt_alloc_typed(&made.type, elements);
	ck_assert_ptr_nonnull(root[0]);
	if (plant->layout == RT_LAYOUT_HEADER)
		root[0][0] = (uintptr_t)&made.type;
	if (plant->layout == RT_LAYOUT_INDEX)
		root[0][0] = 3;
	if (plant->trace == tell_stack)
		root[0][1] = 2;
	for (unsigned i = 1; i < 8 && i < n / 8; i++)
		if (plant->right >> i & 1) {
			root[0][i] = value_of(leaf());
			if (plant->format == &pairs)
				root[0][i + 1] = 4;
		}
}

static rt_config plant_config(void)
{
	rt_config c = config_of(0);

	if (plant->stack_format)
		c.stack_format = plant->format;
	return c;
}

static void expect_plant(void)
{
	char offset[40], object[80], target[80];
	bool small = plant->layout < 0 && plant->size <= 32760;

	snprintf(object, sizeof object, "rtheap: tracecheck: %s%s at %p, ",
		 plant->layout < 0 ? "RT_TYPED" : "bed",
		 small || plant->layout == RT_LAYOUT_TRACE ? "" : " seedling",
		 (void *)root[0]);
	expect_in(said[0], object);
	snprintf(offset, sizeof offset, ", offset %u: ", 8 * plant->word);
	expect_in(said[0], offset);
	snprintf(target, sizeof target,
		 "reference to RT_NOSCAN at 0x%llx, which nothing else reaches",
		 (unsigned long long)(root[ROOTS - 1][0]));
	expect_in(said[0], target);
}

GROUP(planted, .timeout = 60);

TEST(a_forgotten_field_is_named, .n = RT_ARRAY_LEN(plants))
{
	uintptr_t p;

	plant = &plants[_i];
	boxed = plant->stack_format;
	start_as(plant_config());
	grow(plant->right & ~(UINT64_C(1) << plant->word));
	// The address is kept in an object in which the collector does not
	// look.
	p = root[0][plant->word];
	p = plant->format == &shifts ? p << 3 : p & UINT64_C(0xfffffffffff8);
	root[ROOTS - 1] = rt_alloc_noscan(8);
	root[ROOTS - 1][0] = p;
	ck_assert_uint_eq(report(), 1);
	expect_plant();
	ck_assert(!rt_is_heap((void *)p)); // nothing was kept alive
	expect_no_lines();
}

TEST(a_field_that_is_told_is_not_named, .n = RT_ARRAY_LEN(plants))
{
	plant = &plants[_i];
	boxed = plant->stack_format;
	start_as(plant_config());
	grow(plant->right);
	expect_no_lines();
	ck_assert_uint_eq(
	    heap_live_after_gc(),
	    1 + (unsigned)__builtin_popcountll(plant->right & 0xfe));
	expect_no_lines();
}

// ---- which words ----

GROUP(words, .setup = start, .timeout = 60);

// A word with a tag in its low bits, or with an address inside an object,
// counts as a reference to the object.
TEST(any_pointer_into_an_object_counts)
{
	int kind = add_kind(traced("k", trace_nothing));

	root[0] = make(kind, 64);
	root[1] = (uintptr_t *)rt_alloc(100);
	root[0][1] = (uintptr_t)root[1];
	root[0][2] = (uintptr_t)root[1] + 56;
	root[0][3] = (uintptr_t)root[1] | 7;
	root[0][4] = (uintptr_t)root[1] + 112; // past its slot
	root[0][5] = (uintptr_t)root[0] + 8;   // itself
	root[0][6] = (uintptr_t)&root[1];
	ck_assert_uint_eq(report(), 3);
	for (unsigned i = 0; i < 3; i++) {
		char offset[20];

		snprintf(offset, sizeof offset, ", offset %u: ", 8 * (i + 1));
		expect_in(said[i], offset);
		expect_in(said[i], "reference to RT_WORDS at ");
		expect_in(said[i], ", which is reached otherwise");
	}
}

// A callback must tell each object once, not each word that refers to the
// object.
TEST(one_told_reference_is_enough)
{
	root[0] = make(add_kind(traced("k", tell_first)), 32);
	root[0][0] = (uintptr_t)rt_alloc(32);
	root[0][3] = root[0][0] + 8;
	expect_no_lines();
}

// A callback may tell a reference that is in no word of its object.
static uintptr_t elsewhere;

static void tell_elsewhere(rt_tracer *t, void *obj, size_t size, void *arg)
{
	(void)obj, (void)size, (void)arg;
	rt_trace_ptr(t, (void *)elsewhere);
}

TEST(what_is_told_may_be_anywhere)
{
	root[0] = make(add_kind(traced("k", tell_elsewhere)), 32);
	elsewhere = leaf();
	root[0][1] = leaf();
	ck_assert_uint_eq(report(), 1);
	expect_in(said[0], ", offset 8: ");
	elsewhere = 0;
}

TEST(an_inner_pointer_does_not_lead_to_a_kind_with_base)
{
	rt_kind_desc d = traced("base", trace_nothing);

	d.flags = RT_KIND_BASE;
	root[0] = make(add_kind(traced("k", trace_nothing)), 32);
	root[1] = make(add_kind(d), 64);
	root[0][1] = (uintptr_t)root[1] + 16;
	expect_no_lines();
	root[0][1] = (uintptr_t)root[1] + 8;
	ck_assert_uint_eq(report(), 1);
}

static void tell_two(rt_tracer *t, void *obj, size_t size, void *arg)
{
	(void)size, (void)arg;
	rt_trace_name(t, "first", RT_NO_INDEX);
	rt_trace_ptr(t, ((void **)obj)[0]);
	rt_trace_name(t, "second", RT_NO_INDEX);
	rt_trace_ptr(t, ((void **)obj)[1]);
}

static void tell_words(rt_tracer *t, void *obj, size_t size, void *arg)
{
	(void)arg;
	rt_trace_words(t, obj, (char *)obj + size);
}

static void tell_value(rt_tracer *t, void *obj, size_t size, void *arg)
{
	(void)size, (void)arg;
	rt_trace_value(t, *(uint64_t *)obj, &shifts);
}

static void tell_inside(rt_tracer *t, void *obj, size_t size, void *arg)
{
	(void)arg;
	rt_trace_ptr(t, (char *)obj + size - 8);
}

static void make_based(rt_trace_fn *tells)
{
	rt_kind_desc d = traced("base", trace_nothing);

	d.flags = RT_KIND_BASE;
	root[0] = make(add_kind(traced("k", tells)), 32);
	root[1] = make(add_kind(d), 64);
}

static void expect_ignored(const char *place)
{
	char line[200];

	ck_assert_uint_eq(report(), 1);
	snprintf(line, sizeof line,
		 "tracecheck: k at %p%s: pointer to byte 16 of base at %p, "
		 "which is ignored (RT_KIND_BASE)",
		 (void *)root[0], place, (void *)root[1]);
	expect_in(said[0], line);
	expect_no_lines();
}

TEST(a_pointer_that_is_told_and_ignored_is_named)
{
	make_based(tell_two);
	root[0][0] = (uintptr_t)root[1] + 8;
	expect_no_lines();
	root[0][0] = 0;
	root[0][1] = (uintptr_t)root[1] + 16 + 3;
	expect_ignored(", offset 8 (second)");
}

TEST(a_value_that_is_told_and_ignored_is_named)
{
	make_based(tell_value);
	root[0][0] = ((uintptr_t)root[1] + 16) >> 3;
	expect_ignored("");
}

// The words that rt_trace_words tells may be numbers.
TEST(words_that_are_ignored_are_not_named)
{
	make_based(tell_words);
	root[0][0] = (uintptr_t)root[1] + 16;
	expect_no_lines();
}

// A value has no place, so objects of all sizes are reported once.
TEST(a_value_that_is_ignored_is_named_once)
{
	uintptr_t value;
	int kind;

	make_based(tell_value);
	kind = rt_kind_of(root[0]);
	value = ((uintptr_t)root[1] + 16) >> 3;
	root[0][0] = value;
	ck_assert_uint_eq(report(), 1);
	for (unsigned i = 2; i < 5; i++) {
		root[i] = make(kind, 32 * i);
		root[i][0] = value;
	}
	expect_no_lines();
}

// An object of a kind with RT_KIND_BASE may tell a pointer to any place inside
// itself.
TEST(an_object_may_tell_its_own_inside)
{
	rt_kind_desc d = traced("base", tell_inside);

	d.flags = RT_KIND_BASE;
	root[0] = make(add_kind(d), 64);
	expect_no_lines();
}

// If a word refers to the target, that word is what has to be told.
TEST(a_pointer_beside_its_base_is_not_named)
{
	make_based(tell_two);
	root[0][0] = (uintptr_t)root[1];
	root[0][1] = (uintptr_t)root[1] + 16;
	expect_no_lines();
	root[0][2] = root[0][0];
	root[0][0] = 0;
	ck_assert_uint_eq(report(), 1);
	expect_in(said[0], ", offset 16: untold reference to base");
}

TEST(kinds_without_a_description_are_not_looked_at)
{
	rt_kind_desc d;
	int none, words, values;

	rt_kind_desc_init(&d);
	d.layout = RT_LAYOUT_NONE;
	none = add_kind(d);
	d.layout = RT_LAYOUT_WORDS;
	words = add_kind(d);
	d.format = &boxes;
	values = add_kind(d);
	root[0] = make(none, 32);
	root[1] = make(words, 32);
	root[2] = make(values, 32);
	root[3] = rt_alloc_noscan(32);
	root[4] = rt_alloc(32);
	root[5] = rt_alloc_uncollectable(RT_WORDS, 32);
	for (unsigned i = 0; i < 6; i++)
		root[i][1] = leaf();
	expect_no_lines();
}

// Where a bitmap describes the word of a value, the tag of the value decides.
// If the word lacks that tag, an old address in it is no reference.
TEST(a_tag_decides)
{
	static const uint64_t bits[] = {5};
	static const rt_type type =
	    RT_TYPE_INIT(32, 32, bits, 32, 32, bits, &pairs, NULL, NULL, NULL,
			 NULL, "pairs", 0);
	root[0] = make(kind_make(.layout = RT_LAYOUT_TYPE, .type = &type), 96);
	for (unsigned i = 0; i < 12; i += 2)
		root[0][i] = leaf();
	expect_no_lines();
	for (unsigned i = 0; i < 12; i += 2)
		root[0][i] = leaf();
	root[0][7] = root[0][6]; // as a tag
	ck_assert_uint_eq(report(), 1);
	expect_in(said[0], ", offset 56: ");
}

// A class in the heap must be told, too.  A header refers to it in the form
// that the kind describes.
TEST(a_header_may_be_forgotten)
{
	static const rt_type none = RT_TYPE_INIT(
	    16, 0, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, "none", 0);
	root[1] = rt_alloc(16);
	root[1][1] = (uintptr_t)&none;
	root[0] = make(kind_make(.layout = RT_LAYOUT_HEADER,
				 .header_mask = UINT64_C(0xffffffffffff),
				 .type_offset = 8, .header_offset = 8),
		       32);
	root[0][1] = (uintptr_t)root[1] | UINT64_C(0xab) << 56;
	ck_assert_uint_eq(report(), 1);
	expect_in(said[0], "kind 3 none at ");
	expect_in(said[0], ", offset 8: ");
	expect_in(said[0], " RT_WORDS at ");
}

// Nothing of a freed class is read, because its memory may be protected.
TEST(the_class_of_a_target_may_be_gone)
{
	static const rt_type none = RT_TYPE_INIT(
	    16, 0, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, "none", 0);
	uintptr_t *class;

	root[0] = make(add_kind(traced("k", trace_nothing)), 32);
	root[1] = make(kind_make(.name = "classy", .layout = RT_LAYOUT_HEADER,
				 .header_mask = UINT64_MAX, .type_offset = 8),
		       32);
	root[2] = class = rt_alloc(100000);
	class[1] = (uintptr_t)&none;
	root[1][0] = (uintptr_t) class;
	root[0][2] = (uintptr_t)root[1];
	ck_assert_uint_eq(report(), 2);
	expect_in(said[0], "reference to classy none at ");
	expect_in(said[1], "classy none at ");
	ck_assert_int_eq(rt_free(class), RT_OK);
	root[2] = root[1] = NULL;
	ck_assert_uint_eq(report(), 1);
	expect_in(said[0], "reference to classy at ");
	expect_in(said[0], ", which nothing else reaches");
}

// ---- destructors ----

static const size_t dropped_sizes[] = {24, 48, 40000};

// An object that nothing else reaches is dead, even if it stays for its
// destructor.  A reference that a dead object does not tell is not reported.
TEST(objects_that_wait_for_destructors_are_lost, .n = 3)
{
	rt_kind_desc d = traced("file", tell_first);
	int kind;

	d.flags = RT_KIND_DROP;
	d.drop = drop_nothing;
	kind = add_kind(d);
	root[0] = make(add_kind(traced("k", trace_nothing)), 32);
	root[1] = make(kind, dropped_sizes[_i]);
	root[0][1] = (uintptr_t)root[1] + 16;
	root[1][1] = leaf();
	root[1] = NULL;
	ck_assert_uint_eq(report(), 1);
	expect_in(said[0], "k at ");
	expect_in(said[0], "reference to file at ");
	expect_in(said[0], ", which nothing else reaches");
	expect_no_lines();
	root[1] = make(kind, dropped_sizes[_i]);
	root[1][1] = leaf();
	ck_assert_uint_eq(report(), 1);
	expect_in(said[0], "file at ");
	root[1] = NULL;
	expect_no_lines();
	ck_assert_uint_eq(rt_run_finalizers(10), 2);
	root[0][2] = root[0][1]; // to a freed object
	expect_no_lines();
}

// ---- stale words ----

TEST(old_words_and_numbers_are_reported)
{
	root[0] = make(add_kind(traced("k", tell_first)), 64);
	root[0][6] = leaf(); // unused
	ck_assert_uint_eq(report(), 1);
	expect_in(said[0], ", offset 48: ");
}

// tell_and_clear clears the stack above its top in the first call.
static void tell_and_clear(rt_tracer *t, void *obj, size_t size, void *arg)
{
	uintptr_t *word = obj;
	size_t top = word[0];

	(void)arg;
	if (rt_trace_first(t))
		memset(&word[1 + top], 0, size - (1 + top) * 8);
	rt_trace_words(t, &word[1], &word[1 + top]);
}

TEST(a_callback_that_clears_has_no_reports)
{
	rt_kind_desc d = traced("k", tell_and_clear);

	d.flags = RT_KIND_ONCE;
	root[0] = make(add_kind(d), 400);
	for (unsigned i = 1; i < 50; i++)
		root[0][i] = leaf();
	root[0][0] = 10;
	expect_no_lines();
	ck_assert_uint_eq(heap_live(), 11);
}

// ---- names ----

static size_t describe_kind(const void *obj, size_t size, char *buf, size_t n,
			    void *arg)
{
	(void)obj, (void)arg;
	return (size_t)snprintf(buf, n, "k\n%zu", size);
}

static size_t describe_type(const void *obj, size_t size, char *buf, size_t n,
			    void *arg)
{
	(void)obj, (void)size, (void)arg;
	memset(buf, 'y', n);
	return n;
}

static void tell_names(rt_tracer *t, void *obj, size_t size, void *arg)
{
	void **word = obj;

	(void)size, (void)arg;
	rt_trace_name(t, "fifth", RT_NO_INDEX);
	rt_trace_ptr(t, word[5]);
	rt_trace_name(t, "item", 2);
	rt_trace_ptr(t, word[2]);
	rt_trace_name(t, "first", RT_NO_INDEX);
	rt_trace_ptr(t, word[1]);
	rt_trace_name(t, "null", RT_NO_INDEX);
	rt_trace_ptr(t, NULL);
	rt_trace_ptr(t, word[3]);
	ck_assert_ptr_eq(rt_tracer_self(), t);
}

TEST(the_last_name_before_the_word_is_given)
{
	root[0] = make(add_kind(traced("k", tell_names)), 64);
	for (unsigned i = 0; i < 7; i++)
		root[0][i] = leaf();
	ck_assert_uint_eq(report(), 3);
	expect_in(said[0], ", offset 0: ");
	expect_in(said[1], ", offset 32 (after item[2] at 16): ");
	expect_in(said[2], ", offset 48 (after fifth at 40): ");
}

// The longest names leave room for the end of the line.
TEST(objects_are_described)
{
	static char name[200];
	rt_type type =
	    RT_TYPE_INIT(32, 0, NULL, 0, 0, NULL, NULL, trace_nothing, NULL,
			 describe_type, NULL, name, 0);
	rt_kind_desc d;
	char ys[81];

	memset(name, 'n', sizeof name - 1);
	memset(ys, 'y', sizeof ys);
	ys[80] = 0;
	rt_kind_desc_init(&d);
	d.name = name;
	d.describe = describe_kind;
	d.layout = RT_LAYOUT_TYPE;
	d.type = &type;
	root[0] = make(add_kind(d), 32);
	root[0][3] = (uintptr_t)make(add_kind(d), 32);
	ck_assert_uint_eq(report(), 1);
	expect_in(said[0], ys);
	expect_in(strstr(said[0], "reference to "), ys);
	expect_in(said[0], ", which nothing else reaches");
	type.describe = NULL;
	type.name = NULL;
	root[0] = make(add_kind(d), 32);
	root[0][2] = leaf();
	ck_assert_uint_eq(report(), 1);
	expect_in(said[0], " \"k?32\", offset 16: ");
}

// ---- how often ----

TEST(a_site_is_reported_once_and_when_its_target_is_lost)
{
	int kind = add_kind(traced("k", trace_nothing));

	root[0] = make(kind, 32);
	root[1] = make(kind, 32);
	root[2] = (uintptr_t *)leaf();
	root[0][1] = (uintptr_t)root[2];
	ck_assert_uint_eq(report(), 1);
	expect_in(said[0], "reached otherwise");
	root[1][1] = (uintptr_t)root[2]; // the same offset
	expect_no_lines();
	root[1][2] = (uintptr_t)root[2];
	ck_assert_uint_eq(report(), 1);
	root[2] = NULL;
	ck_assert_uint_eq(report(), 2);
	expect_in(said[0], "nothing else reaches");
	expect_in(said[1], "nothing else reaches");
	root[0][1] = root[1][2] = leaf();
	expect_no_lines();
}

TEST(elements_of_a_tail_count_as_one)
{
	static const uint64_t bits[] = {1};
	static const rt_type type = RT_TYPE_INIT(
	    16, 0, NULL, 24, 8, bits, NULL, NULL, NULL, NULL, NULL, "row", 0);
	root[0] = make(kind_make(.layout = RT_LAYOUT_TYPE, .type = &type),
		       16 + 100 * 24);
	for (unsigned i = 10; i < 300; i++)
		root[0][2 + i] = leaf();
	ck_assert_uint_eq(report(), 2);
	// Word 10 of the tail is the second of an element.
	expect_in(said[0], "row at ");
	expect_in(said[0], ", offset 96: ");
	expect_in(said[1], ", offset 104: ");
}

// A thread in a blocking region may read a file into an object, even in a stop.
// Here the callback writes instead of such a thread.
static void tell_and_write(rt_tracer *t, void *obj, size_t size, void *arg)
{
	static unsigned calls;
	uintptr_t *word = obj;

	(void)t, (void)arg;
	calls++;
	for (size_t i = 0; i < size / sizeof *word; i++)
		word[i] = (uintptr_t)root[1 + (i + calls) % 64];
}

TEST(words_may_change_while_they_are_looked_at)
{
	for (unsigned i = 1; i <= 64; i++)
		root[i] = (uintptr_t *)leaf();
	root[0] = make(add_kind(traced("k", tell_and_write)), 8 * 8);
	for (unsigned i = 0; i < 8; i++)
		report();
	heap_healthy();
}

TEST(a_kind_that_is_registered_anew_counts_as_new)
{
	rt_kind_desc d = traced("k", trace_nothing);

	d.number = RT_KIND_FIRST;
	for (unsigned i = 0; i < 3; i++) {
		add_kind(d);
		root[0] = make(RT_KIND_FIRST, 32);
		root[0][1] = leaf();
		ck_assert_uint_eq(report(), 1);
		root[0][1] = leaf();
		expect_no_lines();
		root[0] = NULL;
		expect_no_lines();
		ck_assert_int_eq(rt_kind_unregister(RT_KIND_FIRST), RT_OK);
	}
	ck_assert_int_eq(rt_fini(), RT_OK);
	start();
	add_kind(d);
	root[0] = make(RT_KIND_FIRST, 32);
	root[0][1] = leaf();
	ck_assert_uint_eq(report(), 1);
}

// Small typed objects are told apart by their sizes and references.
TEST(typed_objects_are_told_apart)
{
	static const uint64_t bits[] = {1, 4};
	static const rt_type a = RT_TYPE_INIT(32, 8, &bits[0], 0, 0, NULL, NULL,
					      NULL, NULL, NULL, NULL, "a", 0),
			     b = RT_TYPE_INIT(32, 24, &bits[1], 0, 0, NULL,
					      NULL, NULL, NULL, NULL, NULL, "b",
					      0);

	root[0] = rt_alloc_typed(&a, 1);
	root[1] = rt_alloc_typed(&b, 1);
	root[0][3] = leaf();
	root[1][3] = leaf();
	ck_assert_uint_eq(report(), 2);
	root[0][3] = leaf();
	root[1][3] = leaf();
	expect_no_lines();
}

// A collection reports at most 64 of 200 sites.  Sites whose target nothing
// else reaches come first.
TEST(a_collection_reports_64)
{
	unsigned n, total = 0;

	root[0] = make(add_kind(traced("k", trace_nothing)), 200 * 8);
	for (unsigned i = 0; i < 200; i++) {
		root[0][i] = leaf();
		if (i % 4 != 0)
			root[1 + i] = (uintptr_t *)root[0][i];
	}
	for (unsigned round = 0; round < 4; round++) {
		n = report();
		for (unsigned i = 0; i < n && i < 64; i++)
			expect_in(said[i], round == 0 && i < 50
					       ? "nothing else reaches"
					       : "reached otherwise");
		total += (unsigned)base_min(n, 64);
		if (round < 3) {
			char others[60];

			ck_assert_uint_eq(n, 65);
			snprintf(others, sizeof others,
				 "rtheap: tracecheck: %u others", 200 - total);
			ck_assert_str_eq(said[64], others);
		}
	}
	ck_assert_uint_eq(total, 200);
	expect_no_lines();
}
