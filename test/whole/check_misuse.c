// Every public function, called wrongly, gives the answer that its header
// documents, and changes nothing, not even errno.
#include "test/whole/misuse.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

static const char *const place_names[PLACES] = {
    "without a heap",
    "unattached",
    "attached",
    "in a blocking region",
    "in the own stop",
    "in a callback of a collection",
    "in a helper's callback",
    "in a no-GC stretch",
    "in gc_thread_start",
};

enum { NOT_HERE = 1000 }; // no answer: the call cannot be made

static unsigned cases, failures;
rt_memstats before;

void judge(const char *name, const char *where, long got, long want)
{
	cases++;
	if (got == want)
		return;
	failures++;
	fprintf(stderr, "%s, %s: %ld, not %ld\n", name, where, got, want);
}

void judge_unchanged(const char *name)
{
	static rt_memstats after;

	rt_read_memstats(&after);
	judge(name, "statistics unchanged",
	      memcmp(&before, &after, sizeof after), 0);
}

const char *with_number(const char *name, long n)
{
	static char text[64];

	snprintf(text, sizeof text, "%s %ld", name, n);
	return text;
}

void finish(unsigned at_least)
{
	fprintf(stderr, "check_misuse: %u cases, %u failed\n", cases, failures);
	ck_assert_uint_eq(failures, 0);
	ck_assert_uint_ge(cases, at_least);
}

// ---- the heap and what calls are made with ----

void *object, *stack;
uint64_t words[8];
rt_memstats stats;
bool waiting;
static uint64_t pauses[RT_GCSTATS_WORDS];
static size_t used;
static rt_cycle cycle;
static rt_stops stops;
static rt_metric_desc desc;
static struct rt_verify verified;

rt_config config_of_test(void)
{
	rt_config c = heap_config(100);

	c.max_heap = 256 << 20;
	return c;
}

void begin(void)
{
	begin_as(config_of_test());
}

void begin_as(rt_config c)
{
	heap_start(c);
	object = rt_alloc(OBJECT);
	stack = rt_stack_alloc(STACK);
	ck_assert(object && stack);
	must(rt_roots_add(&object, &object + 1, RT_ROOT_EXACT));
}

static void *same(void *arg)
{
	return arg;
}

static void nothing_text(const char *text, void *arg)
{
	(void)text;
	(void)arg;
}

static int nothing_oom(size_t n, void *arg)
{
	(void)n;
	(void)arg;
	return 0;
}

static int nothing_walk(void *obj, size_t size, int kind, void *arg)
{
	(void)obj;
	(void)size;
	(void)kind;
	(void)arg;
	return 0;
}

// ---- every function in every place ----

// undone undoes a call that has succeeded, and returns the answer of that call.
static long undone(int error, int (*undo)(void))
{
	return error == RT_OK && undo() != RT_OK ? -1000 : error;
}

static int start(void)
{
	return rt_start_the_world(NULL);
}

static const rt_value_format low_tag = RT_FORMAT_LOW_TAG(7, 1);

static long call_handle_new(void *obj)
{
	rt_handle *h = rt_handle_new(obj);

	if (h && (rt_handle_get(h) != obj || rt_handle_free(h) != RT_OK))
		return -1;
	return some(h);
}

static long call_stack_register(void)
{
	rt_stack_desc d;
	rt_stack *s;
	int error;

	rt_stack_desc_init(&d);
	d.lo = words;
	d.hi = words + 8;
	error = rt_stack_register(&d, &s);
	if (!error && (rt_stack_move(s, words + 1, words + 8) != RT_OK ||
		       rt_stack_unregister(s) != RT_OK))
		return 1;
	return error;
}

static long call_thread_stack(void)
{
	void *lo, *hi;

	return rt_thread_stack(
	    rt_thread_self() ? rt_thread_self() : (rt_thread *)words, &lo, &hi);
}

static long call_set_stack(void)
{
	void *lo = words, *hi = words + 8;

	if (rt_thread_self() && call_thread_stack() == RT_OK)
		rt_thread_stack(rt_thread_self(), &lo, &hi);
	return rt_thread_set_stack(lo, hi);
}

static int remove_fn(void)
{
	return rt_roots_remove_fn(tell_nothing, words);
}

static int static_off(void)
{
	return rt_roots_static(0);
}

static int remove_words(void)
{
	return rt_roots_remove(words, words + 8);
}

static long call_config_init(void)
{
	rt_config c;

	rt_config_init(&c);
	return c.struct_size == sizeof c;
}

static long call_config_from_env(void)
{
	rt_config c;

	rt_config_init(&c);
	return rt_config_from_env(&c);
}

static long call_init_bad(void)
{
	rt_config c = config_of_test();

	c.concurrent = 1;
	return rt_init(&c);
}

static long call_stack_alloc(void)
{
	void *s = rt_stack_alloc(STACK);

	if (s && rt_stack_free(s, STACK) != RT_OK)
		return -1;
	return some(s);
}

static long call_attach_stack(void)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	return rt_thread_attach_stack((void *)(here - 65536),
				      (void *)(here + 4096), 0);
}

long call_start(void)
{
	rt_stop_times t;
	int error;

	memset(&t, 0x5a, sizeof t);
	error = rt_start_the_world(&t);
	for (size_t i = 0; error && i < sizeof t; i++)
		if (((unsigned char *)&t)[i] != 0x5a)
			return -1000; // must be untouched
	return error;
}

long call_walk(void)
{
	return rt_heap_walk(nothing_walk, NULL);
}

static long call_verify(void)
{
	int error;

	verified.errors = 77;
	error = rt_heap_verify(&verified);
	return verified.errors == (error ? 77 : 0) ? error : -1000;
}

static long call_heap_list(int kind)
{
	size_t n = 4711;
	void **l = rt_heap_list(kind, NULL, NULL, &n);

	if (!l)
		return n == 4711 ? NOTHING : -1000;
	return rt_free(l) == RT_OK && n != 0 ? SOME : -1000;
}

static long call_store(void)
{
	RT_STORE(words, &words[1], 42);
	return words[1] == 42;
}

static long call_store_slow(void)
{
	rt_store_slow_(rt_thread_tls, words, (rt_word *)&words[2], words);
	return words[2] == (uintptr_t)words;
}

static long call_percent(void)
{
	int old = 4711, back;
	int error = rt_set_gc_percent(100, &old);

	if (error)
		return old == 4711 ? error : -1000;
	return rt_set_gc_percent(old, &back);
}

static long call_heap_min(void)
{
	size_t old = 4711, back;
	int error = rt_set_heap_min(1 << 20, &old);

	if (error)
		return old == 4711 ? error : -1000;
	error = rt_set_heap_min(old, &back);
	return back == 1 << 20 ? error : -1000;
}

static long call_limit(void)
{
	int64_t old = 4711, back;
	int error = rt_set_memory_limit(INT64_C(1) << 40, &old);

	if (error)
		return old == 4711 ? error : -1000;
	error = rt_set_memory_limit(old, &back);
	return back == INT64_C(1) << 40 ? error : -1000;
}

static long call_heap_max(void)
{
	size_t old = 4711, back;
	int error = rt_set_heap_max(32 << 20, &old);

	if (error)
		return old == 4711 ? error : -1000;
	error = rt_set_heap_max(old, &back);
	return back == 32 << 20 ? error : -1000;
}

static long call_external(void)
{
	int error = rt_adjust_external(4096);

	return error ? error : rt_adjust_external(-4096);
}

static long call_oom_handler(void)
{
	int error = rt_set_oom_handler(nothing_oom, NULL);

	return error ? error : rt_set_oom_handler(NULL, NULL);
}

static long call_warn_handler(void)
{
	int error = rt_set_warn_handler(nothing_text, NULL);

	return error ? error : rt_set_warn_handler(NULL, NULL);
}

static long call_fatal_handler(void)
{
	int error = rt_set_fatal_handler(nothing_text, NULL);

	return error ? error : rt_set_fatal_handler(NULL, NULL);
}

static long call_memstats(void)
{
	int error;

	stats.sys = 4711;
	error = rt_read_memstats(&stats);
	return (stats.sys == 4711) == (error != 0) ? error : -1000;
}

static long call_gcstats(void)
{
	int error;

	used = 4711;
	error = rt_read_gcstats(pauses, RT_GCSTATS_WORDS, &used);
	if (error)
		return used == 4711 ? error : -1000;
	return used >= 3 && used <= RT_GCSTATS_WORDS ? RT_OK : -1000;
}

// call_cycle reads the newest record, of which there may be none yet.
static long call_cycle(void)
{
	int error;

	cycle.number = 4711;
	error = rt_read_cycle(0, &cycle);
	if (error)
		return cycle.number != 4711 ? -1000
		       : error == RT_ENOENT ? RT_OK
					    : error;
	return cycle.number != 4711 && cycle.struct_size == sizeof cycle
		   ? RT_OK
		   : -1000;
}

static long call_stops(void)
{
	int error;

	stops.count = UINT64_MAX;
	error = rt_read_stops(RT_STOP_HOST, &stops);
	return (stops.count == UINT64_MAX) == (error != 0) ? error : -1000;
}

static long call_metrics_read(void)
{
	rt_metric_sample s = {.name = "/gc/heap/live:bytes"};
	int error = rt_metrics_read(&s, 1);

	return error == RT_OK && s.result != RT_METRIC_U64 ? -1000 : error;
}

// The answers of a function in each place.
struct answers {
	long in[PLACES];
};

// in_nogc replaces the answer in a no-GC stretch.
static struct answers in_nogc(struct answers a, long answer)
{
	a.in[IN_NOGC] = answer;
	return a;
}

// In a callback of a collection a function answers as in the thread's own stop,
// or, in a helper, as in an unattached thread, unless CALLBACKS says otherwise.
// In a no-GC stretch it answers as in an attached thread, unless in_nogc says
// otherwise.  BLOCKS is for a function that blocks or polls, which is refused
// in a stretch.  In gc_thread_start a function answers as in an unattached
// thread, except with ATTACHES.
#define ANSWERS(a, b, c, d, e) ((struct answers){{a, b, c, d, e, e, b, c, b}})
#define CALLBACKS(a, b, c, d, e, f, g)                                         \
	((struct answers){{a, b, c, d, e, f, g, c, b}})
#define BLOCKS(answers) in_nogc(answers, RT_ESTATE)
#define ANYWHERE(x) ANSWERS(x, x, x, x, x)
#define ALLOCATES ANSWERS(NOTHING, NOTHING, SOME, NOTHING, NOTHING)
#define ATTACHED_ONLY(x) ANSWERS(RT_ESTATE, RT_EPERM, x, RT_ESTATE, RT_EBUSY)
#define STOPPED_TOO ANSWERS(RT_ESTATE, RT_EPERM, RT_OK, RT_ESTATE, RT_OK)
#define ANY_WITH_HEAP ANSWERS(RT_ESTATE, RT_OK, RT_OK, RT_OK, RT_OK)
#define NOT_IN_STOP ANSWERS(RT_OK, RT_OK, RT_OK, RT_OK, RT_EBUSY)
#define FINDS ANSWERS(NOTHING, SOME, SOME, SOME, SOME)
#define ATTACHES                                                               \
	((struct answers){{RT_ESTATE, NOT_HERE, RT_ESTATE, RT_ESTATE,          \
			   RT_ESTATE, RT_EBUSY, RT_EBUSY, RT_ESTATE,           \
			   RT_EBUSY}})
#define REMOVES(x) CALLBACKS(RT_ESTATE, x, x, x, RT_EBUSY, RT_EBUSY, RT_EBUSY)
#define LOOKS                                                                  \
	BLOCKS(CALLBACKS(RT_ESTATE, RT_EPERM, RT_OK, RT_ESTATE, RT_OK,         \
			 RT_EBUSY, RT_EPERM))

// The call under way.
static struct {
	const char *name;
	enum place place;
	struct answers want;
	unsigned rows; // calls of this run, even those that cannot be made here
} door;

// has_statistics tells whether exact statistics can be read in a place.
static bool has_statistics(enum place place)
{
	return place != NO_HEAP && place != COLLECTING && place != HELPING &&
	       place != IN_NOGC;
}

// door_begin returns false for a call that cannot be made here.
static bool door_begin(const char *name, struct answers want)
{
	door.name = name;
	door.want = want;
	door.rows++;
	if (want.in[door.place] == NOT_HERE)
		return false;
	if (has_statistics(door.place))
		rt_read_memstats(&before);
	errno = EXDEV;
	return true;
}

// refused tells whether the answer is a refusal: it is an error, or not what an
// attached thread gets.  A call that is refused must change nothing.
static bool refused(const struct answers *want, enum place place)
{
	return want->in[place] != want->in[ATTACHED] || want->in[place] < 0;
}

static const uint64_t first_word[] = {1};
static const rt_type link_type = {.struct_size = sizeof(rt_type),
				  .size = 24,
				  .ptrdata = 8,
				  .bitmap = first_word};

// call_kind_register makes a kind and ends it again.
static int call_kind_register(void)
{
	rt_kind_desc d;
	int kind;

	rt_kind_desc_init(&d);
	d.layout = RT_LAYOUT_WORDS;
	kind = rt_kind_register(&d);
	return kind > 0 ? rt_kind_unregister(kind) : kind;
}

// call_desc_inits returns 1 if both descriptions have their sizes and empty
// fields after their initialisation.
static long call_desc_inits(void)
{
	rt_kind_desc k;
	rt_stack_desc s;

	memset(&k, 1, sizeof k);
	memset(&s, 1, sizeof s);
	rt_kind_desc_init(&k);
	rt_stack_desc_init(&s);
	return k.struct_size == sizeof k && k.layout == 0 && !k.trace &&
	       s.struct_size == sizeof s && s.flags == 0 && !s.lo;
}

// call_frames puts a frame on the list, and takes it off again.
static long call_frames(void)
{
	rt_frame f = {rt_frames_save(), 0, NULL, NULL};
	const rt_frame *top;

	rt_frames_restore(&f);
	top = rt_frames_save();
	rt_frames_restore(f.prev);
	return !top ? NOTHING : top == &f ? SOME : -1;
}

// call_frame_of_a_block puts a frame on the list by RT_FRAME, which takes it
// off again at the end of the block.
static long call_frame_of_a_block(void)
{
	const rt_frame *outer = rt_frames_save(), *inner;

	{
		void *p = object, *q = NULL;
		RT_FRAME(&p, &q);

		inner = rt_frames_save();
		if (inner && (inner->n != 2 || inner->prev != outer ||
			      inner->slot[0] != &p || inner->slot[1] != &q))
			return -1;
	}
	return rt_frames_save() == outer ? some(inner) : -1;
}

// call_desc_inits_of sets the first size bytes of descriptions, and no others.
static long call_desc_inits_of(size_t size)
{
	rt_kind_desc k;
	rt_stack_desc s;

	memset(&k, 1, sizeof k);
	memset(&s, 1, sizeof s);
	rt_kind_desc_init_sized(&k, size);
	rt_stack_desc_init_sized(&s, size);
	return k.struct_size == size && s.struct_size == size &&
	       ((char *)&k)[size] == 1 && ((char *)&s)[size] == 1;
}

// call_inits_of_nothing passes NULL, which the functions must ignore.
static long call_inits_of_nothing(void)
{
	rt_config_init_sized(NULL, sizeof(rt_config));
	rt_kind_desc_init_sized(NULL, sizeof(rt_kind_desc));
	rt_stack_desc_init_sized(NULL, sizeof(rt_stack_desc));
	return SOME;
}

// call_many writes as many words as it returns.
static long call_many(int kind, size_t n, size_t count)
{
	static void *out[4];
	size_t got;

	memset(out, 0x5a, sizeof out);
	got = rt_alloc_many(kind, n, count, out);
	for (size_t i = got; i < 4; i++)
		if (out[i] != (void *)UINT64_C(0x5a5a5a5a5a5a5a5a))
			return -1;
	return (long)got;
}

static long call_realloc_freed(void)
{
	void *p = rt_alloc(208);

	if (p && rt_free(p) != RT_OK)
		return -1;
	return some(rt_realloc(RT_WORDS, p ? p : words, 208)) |
	       (p ? rt_resize(p, 208) != RT_EINVAL : 0);
}

// door_end judges the answer of a call, and whether errno is unchanged.
static void door_end(long got)
{
	judge(door.name, "errno", errno, EXDEV);
	judge(door.name, place_names[door.place], got,
	      door.want.in[door.place]);
	if (!has_statistics(door.place) || !refused(&door.want, door.place))
		return;
	judge_unchanged(door.name);
}

// DOOR makes one call in the present place, if it can be made there.
#define DOOR(want, call)                                                       \
	do {                                                                   \
		if (door_begin(#call, want))                                   \
			door_end(call);                                        \
	} while (0)

void run_doors(enum place place)
{
	door.place = place;
	door.rows = 0;
	DOOR(ANYWHERE(SOME), some(rt_strerror(RT_EPERM)));
	DOOR(ANYWHERE(SOME), some(rt_strerror(INT_MIN)) & some(rt_strerror(1)) &
				 some(rt_strerror(RT_ENOENT - 1)));
	DOOR(ANYWHERE(SOME), rt_version() == RT_VERSION_NUMBER);
	DOOR(ANYWHERE(SOME), call_config_init());
	DOOR(ANYWHERE(RT_OK), call_config_from_env());
	DOOR(ANYWHERE(RT_EINVAL), rt_config_from_env(NULL));
	DOOR(ANSWERS(NOT_HERE, RT_ESTATE, RT_ESTATE, RT_ESTATE, RT_ESTATE),
	     rt_init(NULL));
	DOOR(ANYWHERE(RT_EINVAL), call_init_bad());
	DOOR(BLOCKS(ATTACHED_ONLY(NOT_HERE)), rt_fini());
	DOOR(ALLOCATES, some((rt_alloc)(64)));
	DOOR(ALLOCATES, some((rt_alloc)(0)));
	DOOR(ALLOCATES, some(rt_alloc(64)));
	DOOR(ALLOCATES, some(rt_alloc(16)));
	DOOR(ALLOCATES, some(rt_alloc(1024)));
	DOOR(ALLOCATES, some(rt_alloc(100000)));
	DOOR(ALLOCATES, some((rt_alloc_noscan)(64)));
	DOOR(ALLOCATES, some(rt_alloc_noscan(64)));
	DOOR(ALLOCATES, some(rt_alloc_noscan(3)));
	DOOR(ALLOCATES, some(rt_alloc_noscan_uninit(5000)));
	DOOR(ALLOCATES, some(rt_alloc_kind(RT_WORDS, 200)));
	DOOR(ANYWHERE(NOTHING), some(rt_alloc_kind(RT_TYPED, 200)));
	DOOR(ALLOCATES, some((rt_alloc_of)(RT_WORDS, 200)));
	DOOR(ALLOCATES, some(rt_alloc_of_slow_(rt_thread_tls, RT_WORDS, 24)));
	DOOR(ANYWHERE(NOTHING), some(rt_alloc_of(RT_KIND_MAX, 24)));
	DOOR(ALLOCATES, some((rt_alloc_kind_in)(rt_thread_tls, RT_NOSCAN, 24)));
	DOOR(ALLOCATES, some(rt_alloc_typed(&link_type, 1)));
	DOOR(ALLOCATES, some(rt_alloc_typed(&link_type, 0)));
	DOOR(ALLOCATES, some(rt_alloc_typed(&link_type, 20000)));
	DOOR(ANYWHERE(NOTHING), some(rt_alloc_typed(NULL, 1)));
	DOOR(ALLOCATES, some(rt_alloc_array(RT_WORDS, 8, 10, 16)));
	DOOR(ANYWHERE(NOTHING), some(rt_alloc_array(RT_WORDS, 8, SIZE_MAX, 2)));
	DOOR(ATTACHED_ONLY(RT_OK), rt_free(NULL));
	DOOR(ATTACHED_ONLY(RT_EINVAL), rt_free(words));
	DOOR(ATTACHED_ONLY(NOT_HERE), rt_free(object));
	DOOR(ALLOCATES, some(rt_alloc_uncollectable(RT_WORDS, 64)));
	DOOR(ALLOCATES, some(rt_realloc(RT_WORDS, NULL, 64)));
	DOOR(ANYWHERE(NOTHING), some(rt_realloc(RT_WORDS, words, 64)));
	DOOR(ANYWHERE(NOTHING), some(rt_realloc(RT_NOSCAN, object, 64)));
	DOOR(ANYWHERE(NOTHING), some(rt_realloc(RT_KIND_MAX + 1, NULL, 64)));
	DOOR(ANYWHERE(NOTHING), call_realloc_freed());
	DOOR(ATTACHED_ONLY(RT_OK), rt_resize(object, OBJECT));
	DOOR(ATTACHED_ONLY(RT_EINVAL), rt_resize(object, 0));
	DOOR(ATTACHED_ONLY(RT_EINVAL), rt_resize(words, 8));
	DOOR(ATTACHED_ONLY(RT_EINVAL), rt_resize(NULL, 8));
	DOOR(ALLOCATES, some(rt_alloc_aligned(RT_WORDS, 64, 100)));
	DOOR(ANYWHERE(NOTHING), some(rt_alloc_aligned(RT_WORDS, 24, 100)));
	DOOR(ALLOCATES, call_many(RT_WORDS, 64, 1));
	DOOR(ALLOCATES, call_many(RT_WORDS, 64, 4) == 4);
	DOOR(ALLOCATES, call_many(RT_WORDS, 0, 4) == 4);
	DOOR(ALLOCATES, call_many(RT_WORDS, 32761, SIZE_MAX));
	DOOR(ANYWHERE(NOTHING), call_many(RT_WORDS, 64, 0));
	DOOR(ANYWHERE(NOTHING), call_many(RT_WORDS, SIZE_MAX, SIZE_MAX));
	DOOR(ANYWHERE(NOTHING), call_many(RT_TYPED, 64, 1));
	DOOR(ANYWHERE(NOTHING), call_many(RT_KIND_MAX, 64, 1));
	DOOR(ANYWHERE(NOTHING), call_many(-1, 64, 1));
	DOOR(ANYWHERE(NOTHING), (long)rt_alloc_many(RT_WORDS, 64, 1, NULL));
	DOOR(ANYWHERE(NOTHING), some(rt_alloc_uncollectable(RT_TYPED, 64)));
	DOOR(ALLOCATES, some(rt_memdup(words, sizeof words)));
	DOOR(ANYWHERE(NOTHING), some(rt_memdup(NULL, 8)));
	DOOR(ALLOCATES, some(rt_strdup("text")));
	DOOR(BLOCKS(ATTACHED_ONLY(RT_OK)), call_kind_register());
	DOOR(ATTACHED_ONLY(RT_EINVAL), rt_kind_register(NULL));
	DOOR(BLOCKS(ATTACHED_ONLY(RT_ENOENT)), rt_kind_unregister(RT_KIND_MAX));
	DOOR(BLOCKS(ATTACHED_ONLY(RT_EINVAL)), rt_kind_unregister(RT_WORDS));
	DOOR(ANSWERS(RT_ESTATE, RT_WORDS, RT_WORDS, RT_WORDS, RT_WORDS),
	     rt_kind_of(object));
	DOOR(ANSWERS(RT_ESTATE, RT_ENOENT, RT_ENOENT, RT_ENOENT, RT_ENOENT),
	     rt_kind_of(NULL));
	DOOR(ANYWHERE(RT_EINVAL), rt_type_check(NULL));
	DOOR(ATTACHED_ONLY(RT_OK),
	     rt_set_finalize_mode(RT_FINALIZE_MANUAL, NULL, NULL));
	DOOR(ATTACHED_ONLY(RT_EINVAL), rt_set_finalize_mode(2, NULL, NULL));
	DOOR(ANYWHERE(NOTHING), (long)rt_run_finalizers(0));
	DOOR(ANYWHERE(SOME), (rt_finalizers_ready() != 0) == waiting);
	DOOR(BLOCKS(ATTACHED_ONLY(RT_EINVAL)),
	     rt_drop_now(RT_KIND_MAX, NULL, NULL));
	DOOR(BLOCKS(ATTACHED_ONLY(RT_EINVAL)),
	     rt_drop_now(RT_WORDS, NULL, NULL));
	DOOR(ANYWHERE(SOME), rt_good_size_of(RT_WORDS, 100) == 112);
	DOOR(ANYWHERE(NOTHING), (long)rt_good_size_of(RT_KIND_MAX, 100));
	DOOR(ALLOCATES, some((rt_alloc_in)(rt_thread_tls, 64)));
	DOOR(ALLOCATES, some(rt_alloc_in(rt_thread_tls, 64)));
	DOOR(ALLOCATES, some((rt_alloc_noscan_in)(rt_thread_tls, 64)));
	DOOR(ALLOCATES, some(rt_alloc_noscan_in(rt_thread_tls, 64)));
	DOOR(ALLOCATES,
	     some(rt_alloc_slow_(rt_thread_tls, RT_RUN_CLASSES + 6, 64)));
	DOOR(FINDS, rt_size(object) == OBJECT);
	DOOR(FINDS,
	     rt_base((void *)((uintptr_t)object + 1)) == object && object);
	DOOR(FINDS, rt_is_heap(object));
	DOOR(ANYWHERE(SOME), rt_good_size(100) == 112);
	DOOR(ALLOCATES, call_stack_alloc());
	DOOR(ANYWHERE(NOTHING), some(rt_stack_alloc(STACK + 1)));
	DOOR(ATTACHED_ONLY(NOT_HERE),
	     rt_stack_free(stack ? stack : words, STACK));
	DOOR(ANYWHERE(RT_EINVAL), rt_stack_free(NULL, STACK));
	DOOR(ATTACHES, rt_thread_attach(0));
	DOOR(ANYWHERE(RT_EINVAL), rt_thread_attach(4));
	DOOR(ATTACHES, call_attach_stack());
	DOOR(ANYWHERE(RT_EINVAL), rt_thread_attach_stack(NULL, NULL, 0));
	DOOR(BLOCKS(ATTACHED_ONLY(NOT_HERE)), rt_thread_detach());
	DOOR(ANSWERS(NOTHING, NOTHING, SOME, SOME, SOME),
	     some(rt_thread_self()));
	DOOR(STOPPED_TOO, undone(rt_nogc_enter(), rt_nogc_leave));
	DOOR(in_nogc(
		 ANSWERS(RT_ESTATE, RT_EPERM, RT_ESTATE, RT_ESTATE, RT_ESTATE),
		 NOT_HERE),
	     rt_nogc_leave());
	DOOR(ANYWHERE(SOME), (rt_poll(), SOME));
	DOOR(FINDS, rt_heap_live() != 0);
	DOOR(in_nogc(ALLOCATES, NOTHING), call_heap_list(RT_WORDS));
	DOOR(in_nogc(ALLOCATES, NOTHING), call_heap_list(-1));
	DOOR(ANYWHERE(NOTHING), call_heap_list(-2));
	DOOR(ANYWHERE(NOTHING), call_heap_list(RT_KIND_MAX));
	DOOR(ANYWHERE(NOTHING), some(rt_heap_list(RT_WORDS, NULL, NULL, NULL)));
	DOOR(BLOCKS(ATTACHED_ONLY(RT_OK)),
	     undone(rt_blocking_enter(), rt_blocking_leave));
	DOOR(ANSWERS(RT_ESTATE, RT_EPERM, RT_ESTATE, NOT_HERE, RT_ESTATE),
	     rt_blocking_leave());
	DOOR(in_nogc(ANYWHERE(SOME), NOTHING),
	     rt_call_blocking(same, words) == words);
	DOOR(ANYWHERE(NOTHING), some(rt_call_blocking(NULL, words)));
	DOOR(ANYWHERE(SOME), (rt_safepoint(), SOME));
	DOOR(BLOCKS(ATTACHED_ONLY(RT_OK)),
	     undone(rt_stop_the_world(RT_STOP_HOST), start));
	DOOR(ANYWHERE(RT_EINVAL), rt_stop_the_world(RT_STOP_HOST - 1));
	DOOR(CALLBACKS(RT_ESTATE, RT_EPERM, RT_EPERM, RT_EPERM, NOT_HERE,
		       RT_EPERM, RT_EPERM),
	     call_start());
	DOOR(CALLBACKS(0, 0, 0, 0, 1, 1, 1), rt_world_stopped());
	DOOR(LOOKS, call_walk());
	DOOR(ANYWHERE(RT_EINVAL), rt_heap_walk(NULL, NULL));
	DOOR(LOOKS, call_verify());
	DOOR(ANYWHERE(RT_EINVAL), rt_heap_verify(NULL));
	DOOR(ATTACHED_ONLY(RT_OK),
	     undone(rt_roots_add(words, words + 8, RT_ROOT_WORDS),
		    remove_words));
	DOOR(ANYWHERE(RT_EINVAL), rt_roots_add(NULL, words, 0));
	DOOR(REMOVES(RT_ENOENT), rt_roots_remove(words + 1, words + 2));
	DOOR(ATTACHED_ONLY(RT_OK),
	     undone(rt_roots_add_values(words, words + 8, &low_tag, 0),
		    remove_words));
	DOOR(ANYWHERE(RT_EINVAL), rt_roots_add_values(NULL, words, NULL, 0));
	DOOR(ANYWHERE(RT_EINVAL),
	     rt_roots_add_values(words, words + 8, &low_tag, 1));
	DOOR(ATTACHED_ONLY(RT_ENOENT), rt_roots_name(words, words + 1, "x"));
	DOOR(ANYWHERE(RT_EINVAL), rt_roots_name(words, words + 1, NULL));
	DOOR(ATTACHED_ONLY(RT_OK),
	     undone(rt_roots_add_fn(tell_nothing, words, "x"), remove_fn));
	DOOR(ANYWHERE(RT_EINVAL), rt_roots_add_fn(NULL, words, "x"));
	DOOR(REMOVES(RT_ENOENT), rt_roots_remove_fn(tell_nothing, NULL));
	DOOR(BLOCKS(ATTACHED_ONLY(RT_OK)), rt_roots_static(0));
	DOOR(BLOCKS(ATTACHED_ONLY(RT_OK)),
	     undone(rt_roots_static(1), static_off));
	DOOR(ANYWHERE(RT_EINVAL), rt_roots_static(2));
	DOOR(ALLOCATES, call_handle_new(object));
	DOOR(ANYWHERE(NOTHING), call_handle_new((void *)UINTPTR_MAX));
	DOOR(REMOVES(RT_EINVAL), rt_handle_free(NULL));
	DOOR(ANSWERS(RT_ESTATE, RT_EPERM, RT_EINVAL, RT_ESTATE, RT_EINVAL),
	     rt_handle_set((rt_handle *)words, NULL));
	DOOR(ATTACHED_ONLY(RT_OK), call_stack_register());
	DOOR(ATTACHED_ONLY(RT_EINVAL), rt_stack_register(NULL, NULL));
	DOOR(ATTACHED_ONLY(RT_EINVAL), rt_stack_unregister(NULL));
	DOOR(ATTACHED_ONLY(RT_EINVAL), rt_stack_move(NULL, words, words + 1));
	DOOR(ATTACHED_ONLY(RT_EINVAL), rt_thread_set_stack(NULL, NULL));
	DOOR(ATTACHED_ONLY(RT_OK), call_set_stack());
	DOOR(ANSWERS(RT_ESTATE, RT_EPERM, RT_OK, RT_ESTATE, RT_OK),
	     call_thread_stack());
	// A root callback may call this function.
	DOOR(CALLBACKS(RT_ESTATE, RT_EPERM, RT_EPERM, RT_EPERM, RT_EPERM,
		       NOT_HERE, RT_EPERM),
	     rt_thread_set_stack_of(rt_thread_self(), words, words + 1));
	DOOR(ANYWHERE(SOME), call_store());
	DOOR(ANYWHERE(SOME), call_store_slow());
	DOOR(BLOCKS(ATTACHED_ONLY(RT_OK)), rt_gc());
	DOOR(ATTACHED_ONLY(RT_OK), call_percent());
	DOOR(ATTACHED_ONLY(RT_OK), rt_set_gc_percent(100, NULL));
	DOOR(ATTACHED_ONLY(RT_OK), call_heap_min());
	DOOR(ATTACHED_ONLY(RT_OK), rt_set_heap_min(4 << 20, NULL));
	DOOR(ATTACHED_ONLY(RT_OK), call_limit());
	DOOR(ATTACHED_ONLY(RT_OK), rt_set_memory_limit(INT64_MAX, NULL));
	DOOR(ATTACHED_ONLY(RT_OK), call_heap_max());
	DOOR(ATTACHED_ONLY(RT_OK), rt_set_heap_max(0, NULL));
	DOOR(ATTACHED_ONLY(RT_OK), call_external());
	DOOR(BLOCKS(ATTACHED_ONLY(RT_OK)), rt_free_os_memory());
	DOOR(NOT_IN_STOP, call_oom_handler());
	DOOR(NOT_IN_STOP, call_warn_handler());
	DOOR(NOT_IN_STOP, call_fatal_handler());
	DOOR(BLOCKS(CALLBACKS(RT_ESTATE, RT_OK, RT_OK, RT_OK, RT_OK, RT_EBUSY,
			      RT_EBUSY)),
	     call_memstats());
	DOOR(ANYWHERE(RT_EINVAL), rt_read_memstats(NULL));
	DOOR(ANY_WITH_HEAP, rt_read_memstats_live(&stats));
	DOOR(ANYWHERE(RT_EINVAL), rt_read_memstats_live(NULL));
	DOOR(ANY_WITH_HEAP, call_gcstats());
	DOOR(ANY_WITH_HEAP, call_cycle());
	DOOR(ANSWERS(RT_ESTATE, RT_ENOENT, RT_ENOENT, RT_ENOENT, RT_ENOENT),
	     rt_read_cycle(UINT64_MAX, &cycle));
	DOOR(ANYWHERE(RT_EINVAL), rt_read_cycle_sized(0, NULL, sizeof cycle));
	DOOR(ANYWHERE(RT_EINVAL), rt_read_cycle_sized(0, &cycle, 0));
	DOOR(ANYWHERE(RT_EINVAL), rt_read_cycle_sized(0, &cycle, 15));
	DOOR(ANYWHERE(RT_EINVAL), rt_read_cycle_sized(0, &cycle, 4097));
	DOOR(ANY_WITH_HEAP, call_stops());
	DOOR(ANYWHERE(RT_EINVAL), rt_read_stops(-1, &stops));
	DOOR(ANYWHERE(RT_EINVAL), rt_read_stops(RT_STOP_HOST - 1, &stops));
	DOOR(ANYWHERE(RT_EINVAL), rt_read_stops_sized(0, NULL, sizeof stops));
	DOOR(ANYWHERE(RT_EINVAL), rt_read_stops_sized(0, &stops, 15));
	DOOR(ANYWHERE(RT_EINVAL), rt_read_stops_sized(0, &stops, 4097));
	DOOR(ANYWHERE(RT_EINVAL),
	     rt_read_gcstats(NULL, RT_GCSTATS_WORDS, &used));
	DOOR(ANYWHERE(RT_EINVAL),
	     rt_read_gcstats(pauses, RT_GCSTATS_WORDS, NULL));
	DOOR(ANYWHERE(RT_EINVAL),
	     rt_read_gcstats(pauses, RT_GCSTATS_WORDS - 1, &used));
	DOOR(ANSWERS(RT_ESTATE, RT_OK, RT_OK, RT_OK, RT_EBUSY),
	     rt_set_memstats_double_check(RT_CHECK_FATAL));
	DOOR(ANYWHERE(RT_EINVAL),
	     rt_set_memstats_double_check(RT_CHECK_REPORT + 1));
	DOOR(ANYWHERE(SOME), rt_metrics_count() > 0);
	DOOR(ANYWHERE(RT_OK), rt_metrics_describe(0, &desc));
	DOOR(ANYWHERE(RT_EINVAL), rt_metrics_describe(0, NULL));
	DOOR(ANYWHERE(RT_ENOENT),
	     rt_metrics_describe(rt_metrics_count(), &desc));
	DOOR(ANY_WITH_HEAP, call_metrics_read());
	DOOR(ANY_WITH_HEAP, rt_metrics_read(NULL, 0));
	DOOR(ANYWHERE(RT_EINVAL), rt_metrics_read(NULL, 1));
	DOOR(CALLBACKS(RT_OK, RT_OK, RT_OK, RT_OK, RT_OK, RT_EBUSY, RT_EBUSY),
	     undone(rt_fork_prepare(), rt_fork_parent));
	DOOR(ANYWHERE(RT_EPERM), rt_fork_parent());
	DOOR(ANYWHERE(RT_EPERM), rt_fork_child());
	DOOR(ANYWHERE(SOME), call_desc_inits());
	DOOR(ANYWHERE(SOME), call_desc_inits_of(8));
	DOOR(ANYWHERE(SOME), call_desc_inits_of(16));
	DOOR(ANYWHERE(SOME), call_inits_of_nothing());
	DOOR(ANYWHERE(SOME), (rt_keep_alive(NULL), SOME));
	DOOR(CALLBACKS(NOTHING, NOTHING, SOME, NOT_HERE, SOME, SOME, NOTHING),
	     call_frames());
	DOOR(CALLBACKS(NOTHING, NOTHING, SOME, NOT_HERE, SOME, SOME, NOTHING),
	     call_frame_of_a_block());
	DOOR(CALLBACKS(NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOT_HERE,
		       NOT_HERE),
	     some(rt_tracer_self()));
	judge("the rows", place_names[place], door.rows, DOORS);
}
