// Marking loads each word of a host once.
//
// A host may write a word while it is marked.  If marking loaded the word twice
// (runtime/os/poison.h), it might test one value and follow another.  So this
// suite counts the loads that the processor executes in a collection of one
// thread (test/whole/watch.h), however the library was compiled.
//
// Most words must be loaded exactly once; those that the layout leaves out,
// never.  These words are loaded more than once, but each load is used by
// itself:
//
//  - A word of a stack that grows down, or of registers.  It is read as an
//    address, as a value if there is a format, and with past_end once more.
//    Each reading loads it once.
//  - The header word of an object.  It is compared with the header of the type
//    that was met before, then leads to the type, and is compared with that
//    type when the type is remembered.
//
// A value word of a pair is loaded at most once if its tag says that the value
// is no reference.  Not tried here: static data, which the system copies, and
// words that are scanned again after an overflow.
#include <rt/rt.h>

#include <sys/mman.h>

#include "runtime/os/settings.h"
#include "gc/mark/work.h"
#include "test/harness/heap.h"
#include "test/harness/kind.h"
#include "test/whole/watch.h"

enum {
	WORD = sizeof(uintptr_t),
	PAGE = WATCH_PAGE,
	LONG = WORK_PIECE + 2 * PAGE, // bytes of a long row
	MANY = 4 * 8192 / 16 + 64,    // objects of a case
};

// ---- words, and how often each must be loaded ----

struct times {
	unsigned least, most;
};

static const struct times never = {0, 0}, once = {1, 1}, at_most_once = {0, 1};

// A case has one or more rows of words of equal length, all alike.
static struct {
	uintptr_t *row[MANY];
	size_t nrows;
	size_t words;			 // of each row
	struct times (*times)(size_t i); // of word i of a row
	unsigned ways;			 // in which each word is read
	uint64_t live;			 // objects that survive
} rows;

// leaf returns a new object that the caller makes reachable.
static uintptr_t leaf(void)
{
	void *p = rt_alloc_noscan(32);

	ck_assert_ptr_nonnull(p);
	rows.live++;
	return (uintptr_t)p;
}

// dead returns a new object that must not survive.
static uintptr_t dead(void)
{
	void *p = rt_alloc_noscan(32);

	ck_assert_ptr_nonnull(p);
	return (uintptr_t)p;
}

static void begin_with(int past_end)
{
	rt_config c = heap_config(HEAP_QUIET);

	// This thread marks alone, nothing else reads objects, and the heap is
	// the same in each run.
	c.gc_threads = 0;
	c.sweep = 0;
	c.gcstress = 0;
	c.checkmark = c.tracecheck = 0;
	c.past_end = past_end;
	heap_start_exact(c);
	rows.ways = 1;
}

static void begin(void)
{
	begin_with(0);
}

static void begin_past_end(void)
{
	begin_with(1);
}

// runs returns n, or 1 if the test only says why it is skipped.
static int runs(int n)
{
	return watch_cannot() ? 1 : n;
}

GROUP(one_load, .setup = begin, .timeout = 60);

static void add_row(uintptr_t *row, size_t words)
{
	ck_assert_uint_lt(rows.nrows, MANY);
	rows.row[rows.nrows++] = row;
	rows.words = words;
}

// own returns words of whole pages that are not in the heap.
static uintptr_t *own(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(p, MAP_FAILED);
	add_row(p, bytes / WORD);
	return p;
}

// wanted sets *t to how often the word at an address must be loaded.  Returns
// false if the word is in no row.
static bool wanted(uintptr_t at, struct times *t)
{
	for (size_t k = 0; k < rows.nrows; k++) {
		size_t i = (at - (uintptr_t)rows.row[k]) / WORD;

		if (at >= (uintptr_t)rows.row[k] && i < rows.words) {
			*t = rows.times(i);
			t->least *= rows.ways;
			t->most *= rows.ways;
			return true;
		}
	}
	return false;
}

// covered tells whether a page has only words of the rows.
static bool covered(uintptr_t page)
{
	struct times t;

	for (uintptr_t at = page; at < page + PAGE; at += WORD)
		if (!wanted(at, &t))
			return false;
	return true;
}

// choose returns the first page whose words are watched.  It is the first that
// has only words of the rows, or in a long row the last page of its first
// piece.
static uintptr_t choose(void)
{
	uintptr_t page = base_align_up((uintptr_t)rows.row[0], PAGE);

	if (rows.words == LONG / WORD)
		return page + WORK_PIECE - PAGE;
	for (unsigned i = 0; i < 8 && !covered(page); i++)
		page += PAGE;
	return page;
}

// judge requires that the words of [lo, hi) were loaded as often as they must
// be.
static void judge(uintptr_t lo, uintptr_t hi, const char *what)
{
	ck_assert_msg(watch_other() == 0, "%s: %p is accessed otherwise", what,
		      (void *)watch_other());
	for (uintptr_t at = lo; at < hi; at += WORD) {
		unsigned n = watch_loads(at);
		struct times t;

		ck_assert(wanted(at, &t));
		ck_assert_msg(n >= t.least && n <= t.most,
			      "%s: word %zu of a page is loaded %u times", what,
			      (size_t)(at % PAGE / WORD), n);
	}
}

// collect collects while words of the rows are watched, and judges what was
// loaded and what has survived.
static void collect(const char *what)
{
	uintptr_t lo = choose();
	uintptr_t hi = rows.words == LONG / WORD ? lo + 2 * PAGE : lo + PAGE;

	watch_begin(lo, hi);
	must(rt_gc());
	watch_end();
	judge(lo, hi, what);
	ck_assert_uint_eq(heap_healthy().heap_objects, rows.live);
}

// ---- contents: what rows of values hold ----

// What a row holds.  A content is one of these; a place takes one or more.
enum {
	ADDRESSES = 1, // words in no format
	VALUES = 2,    // values in a format
	BOTH = 4,      // words that are read as addresses and as values
};

struct content {
	const char *name;
	int is;
	rt_value_format format;
	uintptr_t (*word)(size_t i);
	struct times (*times)(size_t i);
};

static struct times each_once(size_t i)
{
	(void)i;
	return once;
}

// In each content but the first and the last, a word that does not meet the
// test of its format has the address of a dead object.
static uintptr_t address_word(size_t i)
{
	return i % 3 == 0 ? leaf() : i % 3 == 1 ? i : 0;
}

static uintptr_t tagged_word(size_t i)
{
	return i % 3 == 0 ? leaf() | 1 : dead();
}

#define BOX (UINT64_C(0xfff8) << 48)
#define BOXED ((UINT64_C(1) << 48) - 1)

static uintptr_t boxed_word(size_t i)
{
	return i % 3 == 0 ? leaf() | BOX : dead();
}

static uintptr_t shifted_word(size_t i)
{
	return i % 3 == 0 ? leaf() >> 4 : dead();
}

static uintptr_t pair_word(size_t i)
{
	if (i % 2 == 1)
		return i / 2 % 3;
	return i / 2 % 3 == 0 ? leaf() : dead();
}

static struct times pair_times(size_t i)
{
	return i % 2 == 1 || i / 2 % 3 == 0 ? once : at_most_once;
}

static uintptr_t tag_first_word(size_t i)
{
	return pair_word(i ^ 1);
}

static struct times tag_first_times(size_t i)
{
	return pair_times(i ^ 1);
}

static uintptr_t shifted_pair_word(size_t i)
{
	return i % 2 == 1 ? i / 2 % 3 : pair_word(i) >> 4;
}

static uintptr_t either_word(size_t i)
{
	return i % 3 == 0 ? leaf() | BOX : i % 3 == 1 ? leaf() : i;
}

static const struct content contents[] = {
    {"words", ADDRESSES, RT_FORMAT_PLAIN, address_word, each_once},
    {"low tags", VALUES, RT_FORMAT_LOW_TAG(7, 1), tagged_word, each_once},
    {"boxes", VALUES, RT_FORMAT_NAN_BOX(BOX, BOX | BOXED), boxed_word,
     each_once},
    {"shifted",
     VALUES,
     {.max = UINT64_MAX, .addr_mask = UINT64_MAX, .shift = 4, .stride = 8},
     shifted_word,
     each_once},
    {"pairs", VALUES, RT_FORMAT_PAIR(UINT64_MAX, 0), pair_word, pair_times},
    {"pairs with the tag first",
     VALUES,
     {.test_mask = UINT64_MAX,
      .max = UINT64_MAX,
      .addr_mask = UINT64_MAX,
      .stride = 16,
      .test_at = -1},
     tag_first_word,
     tag_first_times},
    {"shifted pairs",
     VALUES,
     {.test_mask = UINT64_MAX,
      .max = UINT64_MAX,
      .addr_mask = UINT64_MAX,
      .shift = 4,
      .stride = 16,
      .test_at = 1},
     shifted_pair_word,
     pair_times},
    {"boxes and addresses", BOTH, RT_FORMAT_NAN_BOX(BOX, BOX | BOXED),
     either_word, each_once},
};

enum {
	CONTENTS = RT_ARRAY_LEN(contents),
	OF_OBJECTS = CONTENTS - 1, // all but the last, which is for stacks
};

static const rt_value_format *format_of(const struct content *c)
{
	return c->is == ADDRESSES ? NULL : &c->format;
}

static void fill(uintptr_t *row, size_t words, const struct content *c)
{
	for (size_t i = 0; i < words; i++)
		row[i] = c->word(i);
}

// ---- objects of values ----

// Objects of a few granules, objects that are scanned a block at a time, and
// large objects.
static const size_t sizes[] = {16, 48, 64, 96, 128, 512, 1024, 48 << 10, LONG};

enum { SIZES = RT_ARRAY_LEN(sizes) };

// how_many returns how many objects of a size cover whole pages.
static size_t how_many(size_t size)
{
	return size > 8192 ? 1 : 4 * 8192 / size;
}

static void *alloc(int kind, size_t size)
{
	void *p = rt_alloc_kind(kind, size);

	ck_assert_ptr_nonnull(p);
	ck_assert_uint_eq(rt_size(p), size);
	rows.live++;
	return p;
}

static void objects(int kind, size_t size, const struct content *c)
{
	size_t n = how_many(size);
	uintptr_t *table = heap_table(n, RT_ROOT_EXACT);

	rows.times = c->times;
	for (size_t k = 0; k < n; k++) {
		uintptr_t *obj = alloc(kind, size);

		table[k] = (uintptr_t)obj;
		add_row(obj, size / WORD);
		fill(obj, size / WORD, c);
	}
}

TEST(words_of_objects_are_loaded_once, .n = runs(SIZES * OF_OBJECTS),
     .unless = watch_cannot())
{
	const struct content *c = &contents[_i % OF_OBJECTS];
	int kind = RT_WORDS;

	if (c->is == VALUES)
		kind =
		    kind_make(.layout = RT_LAYOUT_WORDS, .format = &c->format);
	objects(kind, sizes[_i / OF_OBJECTS], c);
	collect(c->name);
}

// ---- rows of the host ----

static const struct content *told; // what callbacks report

static void tell_row(rt_tracer *t)
{
	uintptr_t *end = rows.row[0] + rows.words;

	if (told->is == ADDRESSES)
		rt_trace_words(t, rows.row[0], end);
	else
		rt_trace_values(t, rows.row[0], end, &told->format);
}

static void tell_as_root(rt_tracer *t, void *arg)
{
	(void)arg;
	tell_row(t);
}

static void tell_as_object(rt_tracer *t, void *obj, size_t size, void *arg)
{
	(void)obj, (void)size, (void)arg;
	tell_row(t);
}

static void told_by_root(uintptr_t *lo, uintptr_t *hi, const struct content *c)
{
	(void)lo, (void)hi, (void)c;
	must(rt_roots_add_fn(tell_as_root, NULL, NULL));
}

static void told_by_object(uintptr_t *lo, uintptr_t *hi,
			   const struct content *c)
{
	uintptr_t *table = heap_table(1, RT_ROOT_EXACT);
	int kind =
	    kind_make(.layout = RT_LAYOUT_TRACE, .trace = tell_as_object);

	(void)lo, (void)hi, (void)c;
	*table = (uintptr_t)alloc(kind, 16);
}

static void range_exact(uintptr_t *lo, uintptr_t *hi, const struct content *c)
{
	(void)c;
	must(rt_roots_add(lo, hi, RT_ROOT_EXACT));
}

static void range(uintptr_t *lo, uintptr_t *hi, const struct content *c)
{
	must(rt_roots_add_values(lo, hi, format_of(c), 0));
}

static rt_stack *stack_of(uintptr_t *lo, uintptr_t *hi, unsigned flags,
			  const rt_value_format *f)
{
	rt_stack_desc d = {.struct_size = sizeof d,
			   .lo = lo,
			   .hi = hi,
			   .flags = flags,
			   .format = f};
	rt_stack *s = heap_stack(&d);

	ck_assert_ptr_nonnull(s);
	return s;
}

static void stack_up(uintptr_t *lo, uintptr_t *hi, const struct content *c)
{
	stack_of(lo, hi, RT_STACK_UP, format_of(c));
}

static void stack_exact(uintptr_t *lo, uintptr_t *hi, const struct content *c)
{
	(void)c;
	stack_of(lo, hi, RT_STACK_EXACT, NULL);
}

// frame_ways returns in how many ways a word of a frame is read.
static unsigned frame_ways(const struct content *c)
{
	return (c->is == BOTH ? 2 : 1) + settings()->past_end;
}

static void stack_down(uintptr_t *lo, uintptr_t *hi, const struct content *c)
{
	stack_of(lo, hi, RT_STACK_DOWN, format_of(c));
	rows.ways = frame_ways(c);
}

// look_inside makes an object of a kind with RT_KIND_BASE.  While such an
// object exists, words of stacks are read in another way.
static void look_inside(void)
{
	uintptr_t *table = heap_table(1, RT_ROOT_EXACT);
	int kind = kind_make(.layout = RT_LAYOUT_NONE, .flags = RT_KIND_BASE);

	*table = (uintptr_t)alloc(kind, 16);
}

static void stack_inside(uintptr_t *lo, uintptr_t *hi, const struct content *c)
{
	look_inside();
	stack_down(lo, hi, c);
}

static void registers(uintptr_t *lo, uintptr_t *hi, const struct content *c)
{
	static uintptr_t stack[1];
	rt_stack_desc d = {.struct_size = sizeof d,
			   .lo = stack,
			   .hi = stack + 1,
			   .regs_lo = lo,
			   .regs_hi = hi,
			   .format = format_of(c)};

	ck_assert_ptr_nonnull(heap_stack(&d));
	rows.ways = frame_ways(c);
}

static void tell_stack(rt_tracer *t, void *arg)
{
	rt_trace_stack(t, arg);
}

static void stack_owned(uintptr_t *lo, uintptr_t *hi, const struct content *c)
{
	rt_stack *s =
	    stack_of(lo, hi, RT_STACK_UP | RT_STACK_OWNED, format_of(c));

	must(rt_roots_add_fn(tell_stack, s, NULL));
}

static void stack_owned_down(uintptr_t *lo, uintptr_t *hi,
			     const struct content *c)
{
	rt_stack *s = stack_of(lo, hi, RT_STACK_OWNED, format_of(c));

	must(rt_roots_add_fn(tell_stack, s, NULL));
	rows.ways = frame_ways(c);
}

static void stack_owned_inside(uintptr_t *lo, uintptr_t *hi,
			       const struct content *c)
{
	look_inside();
	stack_owned_down(lo, hi, c);
}

static void stack_owned_exact(uintptr_t *lo, uintptr_t *hi,
			      const struct content *c)
{
	rt_stack *s = stack_of(lo, hi, RT_STACK_EXACT | RT_STACK_OWNED, NULL);

	(void)c;
	must(rt_roots_add_fn(tell_stack, s, NULL));
}

static const struct place {
	const char *name;
	void (*add)(uintptr_t *lo, uintptr_t *hi, const struct content *c);
	int takes;
} places[] = {
    {"exact range", range_exact, ADDRESSES},
    {"range", range, ADDRESSES | VALUES},
    {"root callback", told_by_root, ADDRESSES | VALUES},
    {"trace callback", told_by_object, ADDRESSES | VALUES},
    {"stack that grows up", stack_up, ADDRESSES | VALUES},
    {"exact stack", stack_exact, ADDRESSES},
    {"stack", stack_down, ADDRESSES | BOTH},
    {"stack beside RT_KIND_BASE", stack_inside, ADDRESSES | BOTH},
    {"registers", registers, ADDRESSES | BOTH},
    {"owned stack that grows up", stack_owned, ADDRESSES | VALUES},
    {"owned stack that grows down", stack_owned_down, ADDRESSES | BOTH},
    {"owned stack beside RT_KIND_BASE", stack_owned_inside, ADDRESSES | BOTH},
    {"owned exact stack", stack_owned_exact, ADDRESSES},
};

enum { PLACES = RT_ARRAY_LEN(places) };

static void host_row(const struct place *p, const struct content *c,
		     size_t bytes)
{
	uintptr_t *row = own(bytes);

	rows.times = c->times;
	told = c;
	fill(row, bytes / WORD, c);
	p->add(row, row + bytes / WORD, c);
	collect(p->name);
}

// pair numbers the pairs of a place and a content that the place takes.  With
// frames, it counts only stacks and registers.  It returns the place of pair n
// and sets *c to its content.  Returns NULL if there are not so many pairs.
static const struct place *pair(int n, bool frames, const struct content **c)
{
	for (unsigned i = 0; i < PLACES; i++)
		for (unsigned k = 0; k < CONTENTS; k++) {
			int takes = places[i].takes;

			*c = &contents[k];
			if (frames && !(takes & BOTH))
				continue;
			if (takes & (*c)->is && n-- == 0)
				return &places[i];
		}
	return NULL;
}

static int pairs(bool frames)
{
	const struct content *c;
	int n = 0;

	while (pair(n, frames, &c))
		n++;
	return n;
}

// Half of the rows are longer than the piece that a marker takes at once.
TEST(words_of_the_host_are_loaded_once, .n = runs(2 * pairs(false)),
     .unless = watch_cannot())
{
	const struct content *c;
	const struct place *p = pair(_i / 2, false, &c);

	host_row(p, c, _i % 2 == 0 ? PAGE : LONG);
}

// ---- objects with types ----

// The words that a bitmap names come in fours, so that an object of a type that
// was met before is loaded both two words at a time and one by one.
enum { ELEMENT = 5 };

static bool is_named(size_t i)
{
	return i % ELEMENT != 0;
}

static struct {
	size_t named;	    // words that may be named, whole elements
	struct times first; // of word 0, which is not named
	uintptr_t tag;	    // of references
} typed;

static struct times named_times(size_t i)
{
	if (i == 0)
		return typed.first;
	return i < typed.named && is_named(i) ? once : never;
}

static uintptr_t named_word(size_t i)
{
	return i < typed.named && is_named(i) ? leaf() | typed.tag : dead();
}

static uint64_t bitmap[LONG / WORD / 64];

static void fill_bitmap(void)
{
	for (size_t i = 0; i < LONG / WORD; i++)
		bitmap[i / 64] |= (uint64_t)is_named(i) << i % 64;
}

// With BY_TURNS the objects have two equal types in turn, so no object has the
// type of the previous object.
enum form { OF_KIND, HEADER, BY_TURNS, INDEX, BITS, FORMS };

static const size_t typed_sizes[] = {48,  64,	320,	  512,
				     640, 1280, 40 << 10, LONG};

enum { TYPED_SIZES = RT_ARRAY_LEN(typed_sizes) };

static rt_type the_type, the_other;
static const rt_type *const the_types[] = {NULL, &the_type};

static int kind_of(enum form form)
{
	switch (form) {
	case HEADER:
	case BY_TURNS:
		return kind_make(.layout = RT_LAYOUT_HEADER,
				 .header_mask = UINT64_MAX,
				 .type_offset = RT_TYPE_IS_HEADER);
	case INDEX:
		return kind_make(.layout = RT_LAYOUT_INDEX, .header_mask = 0xff,
				 .types = the_types, .ntypes = 2);
	case BITS:
		return RT_TYPED;
	default:
		return kind_make(.layout = RT_LAYOUT_TYPE, .type = &the_type);
	}
}

static uintptr_t *new_typed(enum form form, int kind, size_t size)
{
	uintptr_t *obj;

	if (form != BITS)
		return alloc(kind, size);
	obj = rt_alloc_typed(&the_type,
			     the_type.tail_size != 0
				 ? (size - the_type.size) / the_type.tail_size
				 : 1);
	ck_assert_ptr_nonnull(obj);
	rows.live++;
	return obj;
}

static void typed_objects(enum form form, size_t size)
{
	static const struct times first[FORMS] = {
	    [OF_KIND] = {0, 1},
	    [HEADER] = {1, 3},
	    [BY_TURNS] = {1, 3},
	    [INDEX] = {1, 3},
	};
	int kind = kind_of(form);
	size_t n = how_many(size);
	uintptr_t *table = heap_table(n, RT_ROOT_EXACT);

	typed.first = first[form];
	rows.times = named_times;
	the_other = the_type;
	for (size_t k = 0; k < n; k++) {
		uintptr_t *obj = new_typed(form, kind, size);
		size_t words = rt_size(obj) / WORD;

		table[k] = (uintptr_t)obj;
		add_row(obj, words);
		for (size_t i = 0; i < words; i++)
			obj[i] = named_word(i);
		if (form == INDEX)
			*obj = 1;
		else if (form == BY_TURNS && k % 2 != 0)
			*obj = (uintptr_t)&the_other;
		else if (form != OF_KIND && form != BITS)
			*obj = (uintptr_t)&the_type;
	}
}

static const char *const form_names[] = {"type of the kind", "header",
					 "header by turns", "index", "bits"};

// describe_whole makes a type whose one bitmap describes the whole object.
static void describe_whole(size_t size, const rt_value_format *format)
{
	fill_bitmap();
	the_type = (rt_type){.struct_size = sizeof the_type,
			     .size = size,
			     .ptrdata = size,
			     .bitmap = bitmap,
			     .format = format};
	typed.named = size / WORD;
}

TEST(named_words_are_loaded_once, .n = runs(FORMS * TYPED_SIZES),
     .unless = watch_cannot())
{
	size_t size = typed_sizes[_i / FORMS];

	describe_whole(size, NULL);
	typed_objects(_i % FORMS, size);
	collect(form_names[_i % FORMS]);
}

// A fixed part of one element is followed by a tail.
TEST(named_words_of_tails_are_loaded_once, .n = runs(FORMS * TYPED_SIZES),
     .unless = watch_cannot())
{
	enum { BYTES = ELEMENT * WORD };
	size_t size = typed_sizes[_i / FORMS];

	fill_bitmap();
	the_type = (rt_type){.struct_size = sizeof the_type,
			     .size = BYTES,
			     .ptrdata = BYTES,
			     .bitmap = bitmap,
			     .tail_size = BYTES,
			     .tail_ptrdata = BYTES,
			     .tail_bitmap = bitmap};
	typed.named = size / BYTES * ELEMENT;
	typed_objects(_i % FORMS, size);
	collect(form_names[_i % FORMS]);
}

TEST(named_values_are_loaded_once, .n = runs(BITS * TYPED_SIZES),
     .unless = watch_cannot())
{
	static const rt_value_format format = RT_FORMAT_LOW_TAG(7, 1);
	size_t size = typed_sizes[_i / BITS];

	describe_whole(size, &format);
	typed.tag = 1;
	typed_objects(_i % BITS, size);
	collect(form_names[_i % BITS]);
}

// ---- handles, variables, and where stacks are ----

TEST(handles_are_loaded_once, .unless = watch_cannot())
{
	rows.times = each_once;
	for (unsigned i = 0; i < MANY; i++) {
		rt_handle *h = rt_handle_new((void *)leaf());

		ck_assert_ptr_nonnull(h);
		add_row((uintptr_t *)h, 1);
	}
	collect("handle");
}

static rt_frame frame_of(uintptr_t *row)
{
	static const volatile void *slot[PAGE / WORD];

	for (size_t i = 0; i < PAGE / WORD; i++)
		slot[i] = &row[i];
	return (rt_frame){.n = PAGE / WORD, .slot = slot, .names = ""};
}

static struct rt_frame *watched_frame(void)
{
	static rt_frame frame;
	uintptr_t *row = own(PAGE);

	rows.times = each_once;
	fill(row, PAGE / WORD, &contents[0]);
	frame = frame_of(row);
	return &frame;
}

TEST(variables_of_frames_are_loaded_once, .unless = watch_cannot())
{
	rt_frames_restore(watched_frame());
	collect("variable");
	rt_frames_restore(NULL);
}

// No word of the stack is in use.  In the second run the stack is owned.
TEST(variables_of_stacks_are_loaded_once, .n = 2, .unless = watch_cannot())
{
	static uintptr_t stack[1];
	static rt_frame *frames;
	static void *sp = stack + 1;
	rt_stack_desc d = {.struct_size = sizeof d,
			   .lo = stack,
			   .hi = stack + 1,
			   .sp = &sp,
			   .frames = &frames,
			   .flags = _i == 0 ? 0 : RT_STACK_OWNED};
	rt_stack *s = heap_stack(&d);

	ck_assert_ptr_nonnull(s);
	frames = watched_frame();
	must(rt_roots_add_fn(tell_stack, s, NULL));
	collect("variable of a stack");
}

// Word 0 is the saved stack pointer, and word 1 leads to frames.
static struct times first_two(size_t i)
{
	return i < 2 ? once : never;
}

TEST(what_bounds_a_stack_is_loaded_once, .n = 2, .unless = watch_cannot())
{
	static uintptr_t stack[2];
	uintptr_t *row = own(PAGE);
	rt_stack_desc d = {.struct_size = sizeof d,
			   .lo = stack,
			   .hi = stack + 2,
			   .sp = &row[0],
			   .frames = (rt_frame *const volatile *)&row[1],
			   .flags = _i == 0 ? 0 : RT_STACK_OWNED};
	rt_stack *s = heap_stack(&d);

	ck_assert_ptr_nonnull(s);
	rows.times = first_two;
	stack[0] = dead();
	stack[1] = leaf();
	row[0] = (uintptr_t)&stack[1];
	must(rt_roots_add_fn(tell_stack, s, NULL));
	collect("stack");
}

// With past_end, all of a stack and its registers are scanned once more.
GROUP(past_end, .setup = begin_past_end, .timeout = 60);

TEST(the_second_scan_loads_once, .n = runs(2 * pairs(true)),
     .unless = watch_cannot())
{
	const struct content *c;
	const struct place *p = pair(_i / 2, true, &c);

	host_row(p, c, _i % 2 == 0 ? PAGE : LONG);
}
