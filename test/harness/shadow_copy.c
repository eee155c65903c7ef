// shadow_copy.c - an exact copy of a heap.
#include "test/harness/shadow_copy.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/os/epoch.h"
#include "runtime/pages/arena.h"

enum {
	EDGE = 256, // bytes that are checked at each end of an object
	TINY = 16,  // smaller objects without pointers may share a slot
	DEPTH = 2,  // how many references deep a destructor looks
};

static struct {
	struct shadow_node *nodes[SHADOW_THREADS];
	uint64_t made[SHADOW_THREADS];
	struct shadow_node *dead; // kept
	bool based[RT_KIND_MAX + 1], once[RT_KIND_MAX + 1];
	struct shadow_copy_of heap;
} copy;

// ---- failing ----

char *shadow_why;
static pthread_mutex_t failing = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t burying = PTHREAD_MUTEX_INITIALIZER; // guards copy.dead

void shadow_fail(const char *format, ...)
{
	va_list args;

	pthread_mutex_lock(&failing);
	va_start(args, format);
	if (shadow_why) {
		vsnprintf(shadow_why, SHADOW_WHY, format, args);
		_exit(1);
	}
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	abort();
}

void shadow_want(int error, const char *what)
{
	if (error != RT_OK)
		shadow_fail("%s: %s", what, rt_strerror(error));
}

// ---- contents ----

// places returns how many values an object has room for.  The first one has
// the tag.
static size_t places(const struct shadow_node *o)
{
	return o->n / 8 / shadow_step(o->layout);
}

// place returns where word k is, in values.  The words follow the first value,
// or, if there is more room than words, are spread from the second value to the
// last.
static size_t place(const struct shadow_node *o, size_t k)
{
	size_t n = places(o);

	if (n - 1 <= o->nwords)
		return 1 + k;
	return 1 + k * (n - 2) / (o->nwords - 1);
}

// word_index returns where the value word of word k is.
static size_t word_index(const struct shadow_node *o, size_t k)
{
	return place(o, k) * shadow_step(o->layout) + shadow_first(o->layout);
}

static bool has_tag(const struct shadow_node *o)
{
	return o->nwords != 0 || (o->kind != RT_NOSCAN && o->n >= 8);
}

// is_filler tells whether byte i is neither in the tag nor in a word that may
// change.
static bool is_filler(const struct shadow_node *o, size_t i)
{
	size_t n = places(o), at = i / 8 / shadow_step(o->layout), k = at - 1;

	// In a format, an incomplete last word of filler may be a reference.
	if (o->kind >= RT_KIND_FIRST && i / 8 >= o->n / 8)
		return false;
	if (i < 8)
		return !has_tag(o);
	if (o->nwords == 0 || at == 0 || at >= n)
		return true;
	if (n - 1 > o->nwords)
		k = (k * (o->nwords - 1) + n - 3) / (n - 2);
	return place(o, k) != at;
}

// Eight bytes of filler are no address.
static unsigned char filler(const struct shadow_node *o, size_t i)
{
	return (unsigned char)(0x41 + (o->id * 7 + i) % 31);
}

// next_byte skips the middle of long objects.
static size_t next_byte(const struct shadow_node *o, size_t i)
{
	return i + 1 == EDGE && o->n > 2 * EDGE ? o->n - EDGE : i + 1;
}

// tag_at returns the address of the tag word beside word k.
static uintptr_t *tag_at(const struct shadow_node *o, unsigned k)
{
	return shadow_at(o, k) + (shadow_first(o->layout) ? -1 : 1);
}

// tag_held returns what the tag word beside word k should hold.  Every second
// word has the tag of a reference even if it is a number.
static uint64_t tag_held(const struct shadow_node *o, unsigned k)
{
	return shadow_tag(o->layout, o->word[k].to || k % 2 == 0);
}

static void set_tag(const struct shadow_node *o, unsigned k)
{
	if (shadow_step(o->layout) == 2)
		*tag_at(o, k) = tag_held(o, k);
}

static void fill(const struct shadow_node *o)
{
	unsigned char *p = (unsigned char *)o->at;

	for (size_t i = 0; i < o->n; i = next_byte(o, i))
		if (is_filler(o, i))
			p[i] = filler(o, i);
	if (has_tag(o))
		*(uint64_t *)o->at = o->tag;
	for (unsigned k = 0; k < o->nwords; k++) {
		*shadow_at(o, k) = 0;
		set_tag(o, k);
	}
}

bool shadow_shares(const struct shadow_node *o)
{
	return o->kind == RT_NOSCAN && !o->kept &&
	       o->request < (copy.heap.align8 ? TINY : RT_NOSCAN_MIN);
}

uintptr_t *shadow_at(const struct shadow_node *o, unsigned k)
{
	return (uintptr_t *)o->at + word_index(o, k);
}

uintptr_t shadow_value(struct shadow_word w)
{
	return w.to ? w.to->at + w.value : w.value;
}

static bool is_value(const struct shadow_node *o, unsigned k, size_t bytes)
{
	return o->typed &&
	       shadow_is_value(o->layout, bytes / 8, word_index(o, k));
}

bool shadow_refers(const struct shadow_node *o, unsigned k)
{
	return is_value(o, k, o->n);
}

uintptr_t shadow_held(const struct shadow_node *o, unsigned k)
{
	uintptr_t value = shadow_value(o->word[k]);

	return o->word[k].to ? shadow_encode(o->layout, value) : value;
}

// An element that lies in the object, but not in the bytes asked for, holds
// nothing, because the size of an object depends on the configuration.
void shadow_set(struct shadow_node *o, unsigned k, struct shadow_word w)
{
	if (!shadow_refers(o, k))
		w = (struct shadow_word){
		    NULL, is_value(o, k, o->size) ? 0 : shadow_value(w)};
	o->word[k] = w;
	set_tag(o, k);
	RT_STORE((void *)o->at, shadow_at(o, k), shadow_held(o, k));
}

struct shadow_word shadow_share(struct shadow_word w)
{
	// An object of another actor is shared already, so it is only read.
	if (w.to && !w.to->shared)
		w.to->shared = true;
	return w;
}

// bury frees the node of a dead object, or keeps it if the copy keeps such
// nodes.
static void bury(struct shadow_node *o)
{
	if (!copy.heap.keeps) {
		free(o);
		return;
	}
	pthread_mutex_lock(&burying);
	o->next = copy.dead;
	copy.dead = o;
	pthread_mutex_unlock(&burying);
}

void shadow_forget(struct shadow_node *o)
{
	struct shadow_node **link = &copy.nodes[o->owner];

	while (*link != o)
		link = &(*link)->next;
	*link = o->next;
	bury(o);
}

void shadow_own(struct shadow_node *o, struct shadow_stack *s)
{
	o->stack = s;
	o->tag = (uintptr_t)s;
	*(uint64_t *)o->at = o->tag;
}

void shadow_check(const struct shadow_node *o)
{
	const unsigned char *p = (const unsigned char *)o->at;
	const unsigned char *last = p + o->n - 1;
	size_t size = rt_size(p);
	uintptr_t base = (uintptr_t)rt_base(last);

	if (!rt_is_heap(p) || !rt_is_heap(last))
		shadow_fail("object %#lx of %zu bytes is gone", (long)o->id,
			    o->n);
	if (size < o->n || base > o->at || base + size < o->at + o->n ||
	    base != o->base || (base != o->at && !shadow_shares(o)))
		shadow_fail("object %#lx of %zu bytes at %p has size %zu, "
			    "base %#lx",
			    (long)o->id, o->n, (const void *)p, size,
			    (long)base);
	for (size_t i = 0; i < o->n; i = next_byte(o, i))
		if (is_filler(o, i) && p[i] != filler(o, i))
			shadow_fail("object %#lx of %zu bytes: byte %zu is %#x",
				    (long)o->id, o->n, i, p[i]);
	if (has_tag(o) && *(uint64_t *)o->at != o->tag)
		shadow_fail("object %#lx of %zu bytes has tag %#lx",
			    (long)o->id, o->n, *(long *)o->at);
}

void shadow_check_words(const struct shadow_node *o)
{
	for (unsigned k = 0; k < o->nwords; k++)
		if (*shadow_at(o, k) != shadow_held(o, k) ||
		    (shadow_step(o->layout) == 2 &&
		     *tag_at(o, k) != tag_held(o, k)))
			shadow_fail("object %#lx of %zu bytes: word %u is %#lx",
				    (long)o->id, o->n, k,
				    (long)*shadow_at(o, k));
}

// ---- kinds ----

void shadow_set_kind(int kind, const struct shadow_layout *l, uint32_t flags)
{
	copy.based[kind] = flags & RT_KIND_BASE;
	copy.once[kind] = shadow_traced_once(l, flags);
}

// node_of returns the node that the first word of an object leads to, or NULL
// if the object was not entered.
static struct shadow_node *node_of(const void *obj)
{
	return (struct shadow_node *)(uintptr_t)(*(const uint64_t *)obj &
						 ~1ULL);
}

void shadow_traced(const void *obj, bool first, bool marks)
{
	uint32_t now = epoch_sweepgen();
	struct shadow_node *o = node_of(obj);

	if (!o)
		return;
	if (first && (!marks || o->traced == now))
		shadow_fail("object %#lx is traced first once more",
			    (long)o->id);
	if (!first && marks && o->traced != now)
		shadow_fail("object %#lx was not traced first", (long)o->id);
	if (first)
		o->traced = now;
}

// ---- what died together ----

__thread unsigned shadow_self;

// check_dead requires that the memory of an object is as it was when it died.
// A destructor that is not deep may have written the end of it.
static void check_dead(const struct shadow_node *o)
{
	bool dropped = shadow_drops(o->layout) && !shadow_deep(o->layout);
	const unsigned char *p = (const unsigned char *)o->at;

	for (size_t i = 0; i < o->n; i = next_byte(o, i))
		if (is_filler(o, i) && p[i] != filler(o, i) &&
		    !(dropped && i + 8 >= o->n))
			shadow_fail("a destructor finds byte %zu of object "
				    "%#lx to be %#x",
				    i, (long)o->id, p[i]);
	if (has_tag(o) && !o->stack && *(uint64_t *)o->at != o->tag &&
	    !(dropped && o->n < 16))
		shadow_fail("a destructor finds tag %#lx of object %#lx",
			    *(long *)o->at, (long)o->id);
}

// check_deep requires that what an object refers to is as it was when it died,
// to a depth of DEPTH.  It does not go beyond an object whose destructor is not
// deep, because that may have overwritten references.
static void check_deep(const struct shadow_node *o, unsigned depth)
{
	for (unsigned k = 0; k < o->nwords; k++) {
		const struct shadow_node *to = o->word[k].to;

		if (!to)
			continue;
		check_dead(to);
		if (depth < DEPTH && to->owner == shadow_self &&
		    shadow_drops(to->layout) == shadow_deep(to->layout))
			check_deep(to, depth + 1);
	}
}

void shadow_dropped(const void *obj)
{
	struct shadow_node *o = node_of(obj);

	if (!o)
		return; // the actor has made it for a moment
	if (o->dropped)
		shadow_fail("object %#lx is dropped twice", (long)o->id);
	o->dropped = true;
	check_dead(o);
	check_deep(o, 0);
}

// ---- making nodes ----

static size_t alignment(const struct shadow_node *o)
{
	bool halves = copy.heap.align8 || shadow_is_narrow(o->kind, o->layout);
	size_t n = o->request;

	if (o->kind == RT_NOSCAN && n < TINY)
		return n & -n & 15;
	if ((copy.heap.align8 && n <= 8) || (halves && n > 16 && n <= 24))
		return 8;
	return 16;
}

static bool is_zero(const unsigned char *p, size_t n)
{
	return p[0] == 0 && memcmp(p, p + 1, n - 1) == 0;
}

size_t shadow_kept_as(size_t n)
{
	return n <= 16 ? 16 : base_max(n, 25);
}

static size_t good_size(const struct shadow_node *o)
{
	if (o->paged)
		return base_pages(o->request) << RT_PAGE_SHIFT;
	if (o->kept)
		return rt_good_size_of(o->kind, shadow_kept_as(o->request));
	if (o->kind == RT_TYPED && shadow_is_narrow(o->kind, o->layout) &&
	    o->request > 16 && o->request <= 24)
		return 24;
	return rt_good_size_of(o->kind, o->request);
}

// check_new verifies an object that nothing was written to.
static void check_new(const struct shadow_node *o, size_t usable, bool uninit)
{
	const unsigned char *p = (const unsigned char *)o->at;

	if (o->at % alignment(o) != 0)
		shadow_fail("object of %zu bytes at %#lx", o->n, (long)o->at);
	if (!shadow_shares(o) && usable != good_size(o) &&
	    !(copy.heap.guarded && usable == o->request))
		shadow_fail("object of %zu bytes has %zu, not %zu", o->n,
			    usable, good_size(o));
	SHADOW_TRUE(rt_kind_of(p) == o->kind);
	if (!uninit && !is_zero(p, shadow_shares(o) ? o->n : usable))
		shadow_fail("new object of %zu bytes is not zero", o->n);
}

// count_words returns how many words of an object may change.
static size_t count_words(const struct shadow_made *made)
{
	size_t n = made->n / 8 / shadow_step(made->layout);

	if (n <= 1 || (made->kind == RT_NOSCAN && made->n < TINY))
		return 0;
	return made->wide ? n - 1 : base_min(SHADOW_WORDS, n - 1);
}

struct shadow_node *shadow_add(struct shadow_made made)
{
	size_t usable = rt_size(made.p), nwords = count_words(&made);
	size_t request = made.request != 0 ? made.request : made.n;
	bool paged = made.paged || request > SHADOW_SMALL;
	struct shadow_node *o = calloc(1, sizeof *o + nwords * sizeof *o->word);
	uint64_t id =
	    (uint64_t)(made.owner + 1) << 32 | ++copy.made[made.owner];

	SHADOW_TRUE(o != NULL && rt_is_heap(made.p) && usable >= made.n);
	*o = (struct shadow_node){
	    .id = id,
	    .at = (uintptr_t)made.p,
	    .n = made.n,
	    .request = request,
	    .paged = paged,
	    .base = (uintptr_t)rt_base(made.p),
	    .size = paged ? request : usable,
	    .kind = made.kind,
	    .layout = made.layout,
	    .owner = made.owner,
	    .kept = made.kept,
	    .nwords = (unsigned)nwords,
	    .next = copy.nodes[made.owner],
	};
	// A tag that is not a header is no address.
	o->tag = shadow_header(o->layout, id, id << 1 | 1, &o->typed);
	o->based = o->kind >= RT_KIND_FIRST && copy.based[o->kind];
	o->once = o->kind >= RT_KIND_FIRST && copy.once[o->kind];
	if ((shadow_deep(o->layout) && o->kind >= RT_KIND_FIRST) || o->once)
		o->tag = (uintptr_t)o | 1;
	copy.nodes[made.owner] = o;
	check_new(o, usable, made.uninit);
	fill(o);
	return o;
}

// ---- all of them ----

static void free_nodes(struct shadow_node *o)
{
	while (o) {
		struct shadow_node *next = o->next;

		free(o);
		o = next;
	}
}

void shadow_reset(struct shadow_copy_of heap)
{
	for (unsigned t = 0; t < SHADOW_THREADS; t++)
		free_nodes(copy.nodes[t]);
	free_nodes(copy.dead);
	memset(&copy, 0, sizeof copy);
	copy.heap = heap;
}

#define EACH_NODE(o)                                                           \
	for (unsigned t = 0; t < SHADOW_THREADS; t++)                          \
		for (struct shadow_node *o = copy.nodes[t]; o; o = o->next)

unsigned shadow_count(void)
{
	unsigned n = 0;

	EACH_NODE(o)
	n++;
	return n;
}

unsigned shadow_count_kind(int kind)
{
	unsigned n = 0;

	EACH_NODE(o)
	n += o->kind == kind;
	return n;
}

struct shadow_node *shadow_nth(unsigned i)
{
	EACH_NODE(o)
	if (i-- == 0)
		return o;
	return NULL;
}

struct shadow_node *shadow_find(uintptr_t p)
{
	EACH_NODE(o)
	if (p - o->base < o->size)
		return o;
	return NULL;
}

uintptr_t shadow_wild(unsigned how, const struct shadow_node *o, uint64_t n)
{
	if (how == 0)
		return n;
	if (how == 1)
		return arena.base + n % (arena_used() + RT_PAGE_SIZE);
	if (!o)
		return 0;
	switch (how) {
	case 2:
		return o->base + o->size + n % 32;
	case 3:
		return o->base + (uintptr_t)(int8_t)n;
	case 4:
		return o->base + n % o->size;
	default:
		return o->base | (n & 7);
	}
}

// ---- what is reachable ----

// push puts a node on the list of nodes to be looked at, unless it was reached
// before.
static void push(struct shadow_node **todo, struct shadow_node *o)
{
	if (o->reached)
		return;
	o->reached = true;
	o->todo = *todo;
	*todo = o;
}

// push_word pushes the node that a word leads to.  The low three bits of a word
// that may hold anything are ignored.  Requests of up to 16 bytes without
// pointers may share a slot, where any address is a reference.
static void push_word(struct shadow_node **todo, struct shadow_word w,
		      enum shadow_place place)
{
	bool exact = place == SHADOW_EXACT;
	uintptr_t p = exact ? w.value : w.value & ~(uintptr_t)7;

	if (w.to) {
		SHADOW_TRUE(place == SHADOW_STACK || !w.to->based ||
			    w.value < SHADOW_BASE);
		push(todo, w.to);
		return;
	}
	if (w.value == 0)
		return;
	EACH_NODE(o)
	if (p - o->base < o->size &&
	    (place == SHADOW_STACK || !o->based || p - o->base < SHADOW_BASE) &&
	    (!exact || p == o->base ||
	     (o->kind == RT_NOSCAN && o->size == TINY && !o->paged)))
		push(todo, o);
}

// push_held pushes the node that word k of an object leads to.
static void push_held(struct shadow_node **todo, const struct shadow_node *o,
		      unsigned k)
{
	struct shadow_word w = o->word[k];

	if (shadow_refers(o, k) &&
	    (w.to ||
	     shadow_decode(o->layout, w.value, tag_held(o, k), &w.value)))
		push_word(todo, w, SHADOW_ANY);
}

// push_stack pushes what an object's stack holds.
static void push_stack(struct shadow_node **todo, struct shadow_stack *s)
{
	s->reached = true;
	for (unsigned k = 0; k < SHADOW_VALUES + SHADOW_REGISTERS; k++)
		if ((k >= s->begin && k < s->end) || k >= SHADOW_VALUES)
			push_word(todo, s->held[k], s->place);
}

static void follow(struct shadow_node *todo)
{
	while (todo) {
		const struct shadow_node *o = todo;

		todo = o->todo;
		for (unsigned k = 0; k < o->nwords; k++)
			push_held(&todo, o, k);
		if (o->stack && o->stack->registered)
			push_stack(&todo, o->stack);
	}
}

void shadow_reach(struct shadow_word w, enum shadow_place place)
{
	struct shadow_node *todo = NULL;

	push_word(&todo, w, place);
	follow(todo);
}

static void clear_words(struct shadow_node *o)
{
	for (unsigned k = 0; k < o->nwords; k++)
		if (o->word[k].to && o->word[k].to->picked)
			shadow_set(o, k, (struct shadow_word){0});
}

void shadow_pick(int kind, bool all)
{
	EACH_NODE(o)
	o->picked = o->kind == kind && (all || o->id % 2 == 0);
	EACH_NODE(o)
	if (!o->picked)
		clear_words(o);
}

void shadow_forget_picked(void)
{
	for (unsigned t = 0; t < SHADOW_THREADS; t++) {
		struct shadow_node **link = &copy.nodes[t];

		while (*link) {
			struct shadow_node *o = *link;

			if (!o->picked) {
				link = &o->next;
				continue;
			}
			*link = o->next;
			bury(o);
		}
	}
}

void shadow_reach_kept(void)
{
	EACH_NODE(o)
	if (o->kept)
		shadow_reach((struct shadow_word){o, 0}, SHADOW_ANY);
}

void shadow_collect(void)
{
	for (unsigned t = 0; t < SHADOW_THREADS; t++) {
		struct shadow_node **link = &copy.nodes[t];

		while (*link) {
			struct shadow_node *o = *link;

			if (o->reached) {
				if (!o->moved) {
					shadow_check(o);
					shadow_check_words(o);
				}
				o->reached = false;
				link = &o->next;
			} else {
				*link = o->next;
				bury(o);
			}
		}
	}
}

// ---- the judge ----

// What a walk compares the heap with: the nodes by address.
struct judged {
	struct shadow_node **node;
	size_t n;
	size_t found; // nodes whose objects the walk has seen
	bool exact;
};

static int by_address(const void *a, const void *b)
{
	const struct shadow_node *x = *(struct shadow_node *const *)a;
	const struct shadow_node *y = *(struct shadow_node *const *)b;

	return (x->at > y->at) - (x->at < y->at);
}

// judge_one counts the nodes in an object of the heap.
static int judge_one(void *obj, size_t size, int kind, void *arg)
{
	struct judged *j = arg;
	uintptr_t base = (uintptr_t)obj;
	size_t low = 0, high = j->n;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (j->node[mid]->at < base)
			low = mid + 1;
		else
			high = mid;
	}
	while (high < j->n && j->node[high]->at - base < size)
		SHADOW_TRUE(j->node[high]->kind == kind &&
			    j->node[high++]->base == base);
	if (high == low && j->exact)
		shadow_fail("%p is dead and not gone", obj);
	j->found += high - low;
	return 0;
}

static uint64_t mix(uint64_t hash, uint64_t x)
{
	hash = (hash ^ x) * UINT64_C(0x100000001b3);
	return hash ^ hash >> 29;
}

// hash_object returns a hash of what the heap holds of an object, without
// addresses.
static uint64_t hash_object(const struct shadow_node *o)
{
	const unsigned char *p = (const unsigned char *)o->at;
	uint64_t hash = mix(o->id, o->n);

	for (size_t i = 0; i < o->n; i = next_byte(o, i))
		if (is_filler(o, i))
			hash = mix(hash, p[i]);
	for (unsigned k = 0; k < o->nwords; k++) {
		const struct shadow_node *to = o->word[k].to;

		if (to)
			hash = mix(mix(hash, to->id), o->word[k].value);
	}
	return hash;
}

uint64_t shadow_judge(bool exact)
{
	size_t n = shadow_count();
	struct judged j = {malloc((n + 1) * sizeof *j.node), 0, 0, exact};
	uint64_t hash = 0;

	SHADOW_TRUE(j.node != NULL);
	EACH_NODE(o)
	{
		shadow_check(o);
		shadow_check_words(o);
		// After tracing, a collection adds 2 to the sweepgen.
		if (o->once && o->n >= TINY &&
		    o->traced + 2 != epoch_sweepgen())
			shadow_fail("object %#lx was not traced at last",
				    (long)o->id);
		hash += hash_object(o);
		j.node[j.n++] = o;
	}
	qsort(j.node, n, sizeof *j.node, by_address);
	for (size_t i = 1; i < n; i++)
		SHADOW_TRUE(j.node[i]->at - j.node[i - 1]->at >=
			    j.node[i - 1]->n);
	SHADOW_OK(rt_heap_walk(judge_one, &j));
	SHADOW_TRUE(j.found == n);
	free(j.node);
	shadow_healthy();
	return hash;
}

void shadow_sums(const rt_memstats *m)
{
	SHADOW_TRUE(m->heap_sys == m->heap_inuse + m->heap_idle);
	SHADOW_TRUE(m->heap_objects == m->mallocs - m->frees);
	SHADOW_TRUE(m->heap_alloc <= m->heap_inuse);
	SHADOW_TRUE(m->heap_released <= m->heap_idle);
}

uint64_t shadow_healthy(void)
{
	static rt_memstats m;
	struct rt_verify v;

	SHADOW_OK(rt_heap_verify(&v));
	if (v.errors != 0)
		shadow_fail("rt_heap_verify: %s", v.first);
	SHADOW_OK(rt_read_memstats(&m));
	shadow_sums(&m);
	SHADOW_TRUE(m.heap_objects == v.objects && m.heap_alloc == v.bytes);
	SHADOW_TRUE(m.sys == m.heap_sys + m.stack_sys + m.mspan_sys +
				 m.mcache_sys + m.buckhash_sys + m.gc_sys +
				 m.other_sys);
	return v.objects;
}
