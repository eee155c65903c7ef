// fuzz_kinds.c - any bytes as descriptors of kinds and as types.
//
// Descriptors and types that are in order are accepted, and no others.  Objects
// of the kinds and types that were accepted are filled at random: with
// references in their formats, with addresses where no reference is, and with
// any words.  Exactly what an enumeration written from rt/kind.h reaches lives
// after a collection.  Callbacks are called as their kind's flags promise, and
// destructors once for each object that has one.
#include <rt/rt.h>

#include <pthread.h>

#include "runtime/pages/arena.h"
#include "test/fuzz/kind_order.h"
#include "test/fuzz/kind_reach.h"

enum {
	TYPES = 4,
	FORMATS = 4,
	KINDS = 4,
	BITMAP = 8, // words of a bitmap, so much may be described
	DESCRIBED = BITMAP * 64 * 8,
	SMALL = 32760,	      // bytes of the largest object that is not large
	TYPED_MOST = 1 << 20, // bytes of an object of rt_alloc_typed
	UNKNOWN = 16,	      // bytes of a struct that is longer than known
	// Bits of the first byte.  With BESIDE, sweeping is beside the threads,
	// otherwise in the stop.  With both of MORE, the input also chooses
	// destructors, descriptions and fields of later versions.  No input
	// that is older than MORE has both.  With FEW, it then runs few
	// destructors at once.
	MORE = 0x50,
	FEW = 0x20,
	BESIDE = 0x80,
};

static struct {
	rt_value_format format[FORMATS];
	struct callback callback[FORMATS];
	uint64_t bitmap[2 * TYPES][BITMAP];
	struct any_type {
		rt_type known;
		uint8_t unknown[UNKNOWN];
	} type[TYPES];
	bool type_ok[TYPES];
	const rt_type *table[TYPES + 1]; // of the types that are in order
	struct any_desc {
		rt_kind_desc known;
		uint8_t unknown[UNKNOWN];
	} desc[KINDS];
	int number[KINDS]; // or an error
	bool deep;	   // callbacks may be called for dead objects
	bool more;
	size_t few; // destructors at once; 0: all
} host;

// Headers lead to these: the rt_type is in the middle, so offsets may be
// negative.
static struct {
	uint64_t before[4];
	const rt_type *type;
	uint64_t behind[4];
} class[TYPES + 1];

// ---- from bytes ----

static pthread_t collector;

// note_call requires what the flags of the object's kind promise.
static void note_call(const rt_tracer *t, const void *obj)
{
	struct object *o = object_at(obj);

	if (!o || !o->d)
		return;
	REQUIRE(!(o->d->flags & RT_KIND_SERIAL) ||
		pthread_equal(collector, pthread_self()));
	if (rt_trace_first(t))
		__atomic_fetch_add(&o->firsts, 1, __ATOMIC_RELAXED);
}

static void tell(rt_tracer *t, void *obj, size_t size, void *arg)
{
	const struct callback *c = arg;
	uint64_t *w = obj;
	size_t n = size / 8;

	REQUIRE(size % 8 == 0);
	REQUIRE(host.deep || (rt_is_heap(obj) && rt_base(obj) == obj));
	note_call(t, obj);
	if (c->how == HOW_WORDS) {
		rt_trace_words(t, w + n / 2, w + n);
	} else if (c->how == HOW_VALUES) {
		rt_trace_values(t, w, w + n, c->format);
	} else {
		for (size_t i = 1; i < n; i += 3)
			rt_trace_ptr(t, (void *)(uintptr_t)w[i]);
	}
}

// dropped requires that the right destructor is called for a dead object, once,
// and with its size.
static void dropped(void *obj, size_t size, const void *arg, enum owner owner)
{
	struct object *o = object_at(obj);

	REQUIRE(o != NULL && o->died && o->drops == 0);
	REQUIRE(o->dropper == owner && dropper_of(o) == owner);
	REQUIRE(arg == arg_of(o, owner) && size == o->size);
	REQUIRE(rt_is_heap(obj) == 0 && rt_base(obj) == NULL);
	o->drops++;
}

static void drop_type(void *obj, size_t size, void *arg)
{
	dropped(obj, size, arg, TYPE);
}

static void drop_kind(void *obj, size_t size, void *arg)
{
	dropped(obj, size, arg, KIND);
}

// described requires that the right callback describes an object.  It writes
// any bytes.
static size_t described(const void *obj, size_t size, char *buf, size_t n,
			const void *arg, enum owner owner)
{
	const struct object *o = object_at(obj);

	REQUIRE(o != NULL && describer_of(o) == owner);
	REQUIRE(arg == arg_of(o, owner) && size == o->size);
	memset(buf, (int)(size / 16 % 256), n);
	return n - size / 16 % (n + 1);
}

static size_t describe_type(const void *obj, size_t size, char *buf, size_t n,
			    void *arg)
{
	return described(obj, size, buf, n, arg, TYPE);
}

static size_t describe_kind(const void *obj, size_t size, char *buf, size_t n,
			    void *arg)
{
	return described(obj, size, buf, n, arg, KIND);
}

static const rt_value_format *any_format(struct input *in)
{
	unsigned i = input_u8(in);

	return i % 2 ? &host.format[i / 2 % FORMATS] : NULL;
}

// any_size returns any size; most are small multiples of 8.
static size_t any_size(struct input *in)
{
	unsigned how = input_u8(in);

	switch (how % 8) {
	case 0:
		return how / 8;
	case 1:
		return input_word(in);
	case 2:
		return DESCRIBED / (how / 8 + 1);
	default:
		return 8 * (size_t)(how / 8);
	}
}

// limited returns ptrdata, but at most as much as a bitmap here describes.
// No check could find that a larger ptrdata is wrong.
static size_t limited(size_t ptrdata, size_t size)
{
	return ptrdata <= size && ptrdata > DESCRIBED ? DESCRIBED : ptrdata;
}

// lengthen returns another size of a struct of which known bytes are known.  It
// may set a byte behind those.
static size_t lengthen(struct input *in, uint8_t *unknown, size_t known)
{
	unsigned how = input_u8(in);

	if (how % 4 == 0)
		unknown[how / 4 % UNKNOWN] = 1;
	if (how == 255)
		return STRUCT_MOST + 1;
	return known + how / 4 % (UNKNOWN + 1);
}

// more_of_type chooses what only inputs with MORE choose.
static void more_of_type(struct input *in, struct any_type *a)
{
	rt_type *y = &a->known;
	unsigned how = input_u8(in);

	y->drop = how & 1 ? drop_type : NULL;
	y->describe = how & 2 ? describe_type : NULL;
	if (!y->arg)
		y->arg = &host.callback[how / 4 % FORMATS];
	if (how % 64 >= 56)
		y->struct_size = lengthen(in, a->unknown, sizeof *y);
	if (how / 16 == 5)
		y->spare = input_u8(in);
}

static void input_type(struct input *in, unsigned i)
{
	rt_type *y = &host.type[i].known;
	unsigned how = input_u8(in);

	for (unsigned k = 0; k < 2; k++)
		for (unsigned w = 0; w < BITMAP; w++)
			host.bitmap[2 * i + k][w] = input_word(in);
	memset(y, 0, sizeof *y);
	y->struct_size =
	    how == 255 ? input_u8(in) % (sizeof *y + 1) : sizeof *y;
	y->size = any_size(in);
	y->ptrdata = how & 1 ? any_size(in) : y->size;
	y->ptrdata = limited(y->ptrdata, y->size);
	y->bitmap = how % 16 == 2 ? NULL : host.bitmap[2 * i];
	if (how & 4) {
		y->tail_size = any_size(in);
		y->tail_ptrdata = how & 8 ? any_size(in) : y->tail_size;
		y->tail_ptrdata = limited(y->tail_ptrdata, y->tail_size);
		y->tail_bitmap = how % 16 == 14 ? NULL : host.bitmap[2 * i + 1];
	}
	y->format = any_format(in);
	if (how & 16) {
		y->trace = tell;
		y->arg = &host.callback[how / 32 % FORMATS];
	} else {
		y->align = how / 32 == 7 ? 5 : how / 32 % 3 * 8;
	}
	if (host.more)
		more_of_type(in, &host.type[i]);
	host.type_ok[i] = type_in_order(y);
	REQUIRE((rt_type_check(y) == RT_OK) == host.type_ok[i]);
	host.table[i] = host.type_ok[i] ? y : NULL;
	class[i].type = host.table[i];
}

// set_layout gives a descriptor what its layout needs.
static void set_layout(struct input *in, rt_kind_desc *d)
{
	unsigned how = input_u8(in);

	if (d->layout == RT_LAYOUT_WORDS)
		d->format = any_format(in);
	if (d->layout == RT_LAYOUT_TYPE)
		d->type = &host.type[how % TYPES].known;
	if (d->layout == RT_LAYOUT_INDEX) {
		d->types = host.table;
		d->ntypes = how % (TYPES + 1);
	}
	if (d->layout == RT_LAYOUT_TRACE) {
		d->trace = tell;
		d->arg = &host.callback[how % FORMATS];
	}
}

// spoil sets a field that the layout perhaps does not want.
static void spoil(struct input *in, rt_kind_desc *d)
{
	unsigned how = input_u8(in);

	switch (how % 16) {
	case 0:
		d->flags = input_u8(in);
		break;
	case 1:
		d->spare = input_u8(in);
		break;
	case 2:
		d->struct_size = input_word(in) % (sizeof *d + 1);
		break;
	case 3:
		d->format = any_format(in);
		break;
	case 4:
		d->type = how & 16 ? &host.type[0].known : NULL;
		break;
	case 5:
		d->types = how & 16 ? host.table : NULL;
		break;
	case 6:
		d->trace = how & 16 ? tell : NULL;
		d->arg = &host.callback[0];
		break;
	case 7:
		d->flags = RT_KIND_DROP | (how & 16 ? RT_KIND_DROP_DEEP : 0);
		break;
	case 8:
	case 9:
	case 10:
		d->flags = (how & 16 ? RT_KIND_BASE : 0) |
			   (how & 32 ? RT_KIND_SERIAL : 0) |
			   (how & 64 ? RT_KIND_ONCE : 0);
		break;
	default:
		break;
	}
}

// more_of_desc is more_of_type for a kind.
static void more_of_desc(struct input *in, struct any_desc *a)
{
	rt_kind_desc *d = &a->known;
	unsigned how = input_u8(in);

	d->drop = how & 1 ? drop_kind : NULL;
	d->describe = how & 2 ? describe_kind : NULL;
	if (!d->arg)
		d->arg = &host.callback[how / 4 % FORMATS];
	if (how & 4)
		d->flags |= RT_KIND_DROP;
	if (how & 8)
		d->flags |= RT_KIND_DROP_DEEP;
	if (how / 16 == 5)
		d->struct_size = lengthen(in, a->unknown, sizeof *d);
}

static void input_desc(struct input *in, unsigned i)
{
	rt_kind_desc *d = &host.desc[i].known;
	unsigned how = input_u8(in);
	bool ok;

	rt_kind_desc_init(d);
	d->name = "any";
	d->layout = how % 16 == 15 ? (int)input_word(in) : (int)(how % 6);
	d->number = how & 64 ? (int8_t)input_u8(in) : -(int)(how >> 7);
	d->header_offset = how & 16 ? any_size(in) : 8 * (how / 16 % 2);
	d->header_mask = input_word(in);
	d->header_shift = input_u8(in) % (how & 32 ? 80 : 8);
	d->type_offset = how & 16 ? RT_TYPE_IS_HEADER
				  : (ptrdiff_t)(input_word(in) << (how & 3));
	set_layout(in, d);
	spoil(in, d);
	if (host.more)
		more_of_desc(in, &host.desc[i]);
	ok = desc_in_order(d);
	host.deep |= ok && d->flags & RT_KIND_DROP_DEEP;
	host.number[i] = rt_kind_register(d);
	REQUIRE(ok == (host.number[i] != RT_EINVAL));
	REQUIRE(!ok || host.number[i] > 0 || host.number[i] == RT_EEXIST);
	REQUIRE(host.number[i] <= 0 || d->number <= 0 ||
		host.number[i] == d->number);
}

static void input_host(struct input *in, unsigned options)
{
	memset(&host, 0, sizeof host);
	host.more = (options & MORE) == MORE;
	host.few = host.more && options & FEW ? 3 : 0;
	for (unsigned i = 0; i < FORMATS; i++) {
		unsigned how = input_u8(in);

		host.format[i] = input_format(in);
		if (how & 1)
			host.format[i].base = arena.base - 8;
		host.callback[i].how = (enum how)(how / 2 % HOWS);
		host.callback[i].format = &host.format[i];
	}
	for (unsigned i = 0; i < TYPES; i++)
		input_type(in, i);
	for (unsigned i = 0; i < KINDS; i++)
		input_desc(in, i);
}

// ---- objects ----

// typed_count sets *count to the elements of an object of about n bytes.  It
// returns the bytes that the object has, or 0 if a part is too long.
static size_t typed_count(const rt_type *y, size_t n, size_t *count)
{
	size_t fixed = y->tail_size != 0 ? y->size : 0;
	size_t each = y->tail_size != 0 ? y->tail_size : y->size;

	*count = y->tail_size == 0;
	if (fixed > TYPED_MOST || each > TYPED_MOST)
		return 0;
	if (n >= fixed + 2 * each && each != 0)
		*count = (n - fixed) / each;
	return fixed + *count * each;
}

// make_typed makes an object of about n bytes.  It returns false if the type
// makes none.
static bool make_typed(struct object *o, const rt_type *y, size_t n)
{
	size_t count, bytes = typed_count(y, n, &count);

	if (bytes == 0)
		return false;
	o->p = rt_alloc_typed(y, count);
	REQUIRE((o->p != NULL) == typed_in_order(y, count));
	if (!o->p)
		return false;
	REQUIRE(rt_kind_of(o->p) == RT_TYPED && rt_size(o->p) >= bytes);
	o->size = rt_size(o->p);
	o->kind = RT_TYPED;
	o->type = y;
	o->typed_words = bytes / 8;
	o->room = bytes > SMALL ? bytes : rt_size(o->p);
	o->words = o->room / 8;
	return true;
}

// make_object makes an object of kind k.  If k is KINDS, the object is of a
// kind without references.  Larger numbers are types.
static void make_object(unsigned k, size_t n)
{
	struct object *o = &object[nobjects++];

	*o = (struct object){.kind = RT_NOSCAN};
	if (k > KINDS && make_typed(o, &host.type[k - KINDS - 1].known, n))
		return;
	if (k < KINDS && host.number[k] > 0) {
		o->kind = host.number[k];
		o->d = &host.desc[k].known;
	}
	o->p = rt_alloc_kind(o->kind, n < 16 ? n + 16 : n);
	REQUIRE(o->p != NULL);
	o->size = rt_size(o->p);
	o->room = n > SMALL ? n : rt_size(o->p);
	o->words = o->room / 8;
}

static void input_object(struct input *in)
{
	unsigned how = input_u8(in), k = how % (KINDS + 1);

	if (k == KINDS)
		k += how / (KINDS + 1) % (TYPES + 1);
	make_object(k, input_size(in));
}

// header_word returns a header that leads to a type, or to none.
static uint64_t header_word(const rt_kind_desc *d, uint64_t any)
{
	unsigned i = any % (TYPES + 1);
	uint64_t value = (uintptr_t) & class[i].type - (uint64_t)d->type_offset;
	uint64_t word;

	if (d->layout == RT_LAYOUT_INDEX)
		return ((any % 8 << d->header_shift) & d->header_mask) |
		       (any & ~d->header_mask);
	if (d->type_offset == RT_TYPE_IS_HEADER)
		value = i < TYPES && host.type_ok[i]
			    ? (uintptr_t)&host.type[i].known
			    : 0;
	word = (value << d->header_shift) | (any & ~d->header_mask);
	if ((word & d->header_mask) >> d->header_shift == value)
		return word;
	return any & ~d->header_mask;
}

static void fill_word(struct input *in, struct object *o, size_t i)
{
	unsigned how = input_u8(in);
	const struct object *to = &object[how / 4 % nobjects];
	uint64_t address = (uintptr_t)to->p + input_u8(in) % (to->room + 9);
	uint64_t tested;

	if (how % 4 == 0)
		o->p[i] = input_word(in);
	else if (how % 4 == 1)
		o->p[i] = address;
	else {
		const rt_value_format *f = &host.format[how / 16 % FORMATS];

		if (!format_ok(f))
			return;
		o->p[i] = format_encode(f, address, &tested);
		if (f->test_at == 1 && i + 1 < o->words)
			o->p[i + 1] = tested;
		if (f->test_at == -1 && i > 0)
			o->p[i - 1] = tested;
	}
}

// fill_object writes some words at the beginning, at the end and between.
static void fill_object(struct input *in, struct object *o)
{
	unsigned n = input_u8(in) % 16;
	uint64_t *header = header_of(o);

	for (unsigned k = 0; k < n; k++) {
		unsigned at = input_u8(in);
		size_t i = at % 4 == 3	 ? o->words - 1 - at / 4 % o->words
			   : at % 4 == 2 ? at * 37 * o->words / 9472
					 : at / 2;

		if (i < o->words)
			fill_word(in, o, i);
	}
	if (header)
		*header = header_word(o->d, input_word(in));
}

// ---- one input ----

// collect frees all objects that no root reaches.  An object that waits for a
// destructor is freed only after its turn, even if it turns out to have no
// destructor.
static void collect(void)
{
	do {
		for (unsigned i = 0; i < nobjects; i++)
			object[i].firsts = 0;
		REQUIRE(rt_gc() == RT_OK);
	} while (rt_run_finalizers(host.few) != 0);
}

static uint64_t count(void)
{
	struct rt_verify v;

	collect();
	REQUIRE(rt_heap_verify(&v) == RT_OK);
	if (v.errors != 0)
		fuzz_require(v.first, __FILE__, __LINE__);
	return v.objects;
}

// What tracecheck says of wild words is no error.
static void ignore(const char *text, void *arg)
{
	REQUIRE(strlen(text) < 504 && arg == NULL);
}

static void begin(unsigned how)
{
	rt_config c;

	rt_config_init(&c);
	c.gc_percent = -1;
	c.max_heap = 64 << 20;
	c.align8 = how & 1;
	c.checkmark = how >> 1 & 1;
	c.gc_threads = how & 4 ? 2 : 0;
	c.tracecheck = how >> 3 & 1;
	c.sweep = how & BESIDE ? 2 : 0;
	c.no_attach = 1;
	REQUIRE(rt_set_warn_handler(ignore, NULL) == RT_OK);
	REQUIRE(rt_init(&c) == RT_OK);
	REQUIRE(rt_thread_attach(RT_THREAD_EXACT) == RT_OK);
	REQUIRE(rt_roots_add(root, root + ROOTS, RT_ROOT_EXACT) == RT_OK);
}

static void die(struct object *o)
{
	if (o->died)
		return; // its memory may be gone
	o->died = true;
	o->dropper = dropper_of(o);
}

// compare requires that exactly what the roots reach is there, and that all
// else was dropped once, if it has a destructor.
static void compare(void)
{
	unsigned lives;

	for (unsigned i = 0; i < nobjects; i++)
		object[i].lives = false;
	lives = reach_all();
	for (unsigned i = 0; i < nobjects; i++)
		if (!object[i].lives)
			die(&object[i]);
	REQUIRE(count() == lives);
	for (unsigned i = 0; i < nobjects; i++) {
		const struct object *o = &object[i];

		REQUIRE(rt_is_heap(o->p) == o->lives);
		REQUIRE(!o->lives || o->firsts == firsts_of(o));
		REQUIRE(o->drops == (o->died && o->dropper != NONE));
	}
}

// star makes an object of n bytes of kind k.  Its words name one object each,
// whether they are references or not.  So it shows if a word is followed that
// is no reference, or a reference is not followed.
static void star(struct input *in, unsigned k, size_t n)
{
	size_t step = 1;
	struct object *o = &object[0];
	const rt_value_format *f;
	uint64_t header, tested = 0;

	// No object may be left from before, because any word might lead to it.
	memset(root, 0, sizeof root);
	compare();
	nobjects = 0;
	make_object(k, n);
	root[0] = (uintptr_t)o->p;
	header = header_of(o) ? header_word(o->d, input_word(in)) : 0;
	if (header_of(o))
		*header_of(o) = header;
	f = format_of(o);
	if (f && !format_ok(f))
		f = NULL;
	if (f && f->test_at != 0)
		step = 2;
	for (size_t i = f && f->test_at < 0; i < o->words; i += step) {
		uint64_t address;

		if (i >= STAR / 2 && i + STAR / 2 < o->words)
			continue; // in the middle of a long one
		make_object(KINDS, 16);
		address = (uintptr_t)object[nobjects - 1].p;
		o->p[i] = f ? format_encode(f, address, &tested) : address;
		if (step == 2 && (f->test_at < 0 || i + 1 < o->words))
			*(&o->p[i] + f->test_at) = tested;
	}
	if (header_of(o))
		*header_of(o) = header;
	compare();
}

static bool any_lives(int kind)
{
	for (unsigned i = 0; i < nobjects; i++)
		if (object[i].kind == kind && object[i].lives)
			return true;
	return false;
}

static void end_kinds(bool all)
{
	for (unsigned i = 0; i < KINDS; i++) {
		int want = !all && any_lives(host.number[i]) ? RT_EBUSY : RT_OK;

		if (host.number[i] <= 0)
			continue;
		REQUIRE(rt_kind_unregister(host.number[i]) == want);
		if (want == RT_OK)
			host.number[i] = 0;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	unsigned how = input_u8(&in);

	collector = pthread_self();
	begin(how);
	input_host(&in, how);
	nobjects = 0;
	for (unsigned n = 2 + input_below(&in, OBJECTS - 1); n > 0; n--)
		input_object(&in);
	for (unsigned i = 0; i < nobjects; i++)
		fill_object(&in, &object[i]);
	for (unsigned i = 0; i < ROOTS && i < nobjects; i++)
		root[i] = (uintptr_t)object[i].p;
	compare();
	for (unsigned i = 0; i < 4 * KINDS; i++)
		if (host.number[i % KINDS] > 0)
			star(&in, i % KINDS, input_size(&in));
	for (unsigned i = 0; i < TYPES; i++)
		for (size_t n = 200; n < TYPED_MOST; n *= 200)
			star(&in, KINDS + 1 + i, n);
	end_kinds(false);
	memset(root, 0, sizeof root);
	compare();
	end_kinds(true);
	REQUIRE(rt_fini() == RT_OK);
	return 0;
}
