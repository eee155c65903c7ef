// Finds dead objects, queues them, and hands them out to be dropped.
#include "gc/mark/drops.h"

#include <string.h>

#include "runtime/os/schedpoint.h"
#include "runtime/os/throw.h"
#include "runtime/os/gauge.h"
#include "runtime/world/stw.h"
#include "runtime/spans/mcentral.h"

struct drops drops;

void drops_reset(void)
{
	drops = (struct drops){0};
}

// add_ready needs no locked instruction, because only the thread that runs
// destructors, or a stopper, changes the number.
static void add_ready(int64_t n)
{
	atomic_u64_store_relaxed(&drops.ready, drops_ready() + (uint64_t)n);
}

// ---- spans ----

// Dead objects: bits that are set in any of several deadwords.
struct some {
	uint64_t waiting, dropped;
};

static struct some some_of(const struct deadwords *d, unsigned nwords)
{
	struct some some = {0};

	for (unsigned w = 0; w < nwords; w++) {
		some.waiting |= deadbits_waiting(d + w);
		some.dropped |= deadbits_dropped(d + w);
	}
	return some;
}

static struct some some_of_span(const struct mspan *s)
{
	return some_of(deadbits_word(s, 0), s->nwords);
}

// is_first tells whether a span of a kind with destructors begins at a page.
static bool is_first(uint32_t pageword)
{
	return kinds_drops() >> pageword_kind(pageword) & 1 &&
	       pageword_place(pageword) == 0 &&
	       pageword_state(pageword) == PAGEWORD_HEAP;
}

struct mspan *drops_next_span(uint64_t *page)
{
	uint64_t end = arena_used() >> RT_PAGE_SHIFT;

	RT_ASSERT(stw_stopped());
	while (*page < end) {
		uint64_t first = (*page)++;

		if (is_first(arena_pageword(first)))
			return arena_span(first);
	}
	return NULL;
}

// queue adds a span to the second part of the queue, after its last span.
static void queue(struct mspan *s)
{
	s->queued = 1;
	s->next = NULL;
	if (drops.next)
		drops.next_last->next = s;
	else
		drops.next = s;
	drops.next_last = s;
}

// ---- marking ----

// any tells whether there is a kind with destructors that may have spans.
static bool any(void)
{
	return (kinds_used() & kinds_drops()) != 0;
}

// uncount notes that a marking has counted n objects of a span too many.
static void uncount(struct drops_found *f, const struct mspan *s, uint64_t n)
{
	f->objects += n;
	f->bytes += n * s->elemsize;
}

// uncount_leaves is uncount for objects that were also counted as scanned,
// although they were not.
static void uncount_leaves(struct drops_found *f, const struct mspan *s,
			   uint64_t n)
{
	uncount(f, s, n);
	if (!mspan_is_large(s) && layout_scanned(spanclass_kind(s->spanclass)))
		f->scan_bytes += n * s->elemsize;
}

static void hide_span(const struct mspan *s)
{
	unsigned line = epoch_mark_line(epoch_sweepgen());

	for (unsigned w = 0; w < s->nwords; w++) {
		atomic_u64 *mark = mspan_lineword(s, line, w);
		uint64_t leading = drops_leading(s, deadbits_word(s, w));

		atomic_u64_store_relaxed(mark, atomic_u64_load_relaxed(mark) |
						   leading);
	}
}

void drops_hide(void)
{
	uint64_t page = 0;
	const struct mspan *s;

	RT_ASSERT(stw_stopped());
	RT_CHECK(drops_check(&drops));
	if (drops.now) { // some are not in the queue
		while ((s = drops_next_span(&page)) != NULL)
			hide_span(s);
		return;
	}
	for (s = drops.batch; s; s = s->next)
		hide_span(s);
	for (s = drops.next; s; s = s->next)
		hide_span(s);
}

// find_word finds the dead of word w of a span.
static void find_word(struct drops_found *f, const struct mspan *s, unsigned w)
{
	struct deadwords *d = deadbits_word(s, w);
	unsigned dies = drops.turn ^ 1;
	unsigned line = epoch_alloc_line(epoch_sweepgen());
	uint64_t alloc = atomic_u64_load_relaxed(mspan_lineword(s, line, w));
	atomic_u64 *markword = mspan_lineword(s, line ^ 1, w);
	uint64_t mark = atomic_u64_load_relaxed(markword);
	uint64_t waiting = deadbits_waiting(d);
	uint64_t leading = drops_leading(s, d);
	uint64_t new = alloc & ~mark & ~deadbits_dead(d);
	unsigned kind = spanclass_kind(s->spanclass);

	if ((new | leading) == 0)
		return;
	atomic_u64_store_relaxed(markword, mark & ~leading);
	drops.waited += bits_count(waiting) * s->elemsize;
	if (new != 0) {
		deadbits_set(d, dies, deadbits_turn(d, dies) | new);
		drops.died += bits_count(new);
		add_ready(bits_count(new));
	}
	f->deep |= (layouts[kind].flags & RT_KIND_DROP_DEEP) != 0;
}

void drops_find(struct drops_found *f)
{
	uint64_t page = 0;
	const struct mspan *s;

	RT_ASSERT(stw_stopped());
	drops.died = drops.waited = 0;
	if (!any())
		return;
	while ((s = drops_next_span(&page)) != NULL)
		for (unsigned w = 0; w < s->nwords; w++)
			find_word(f, s, w);
}

// clear_loose clears the loose objects of word w of a span.  If another object
// of the span dies later, the span is queued and all its dead objects stay.
// Then a loose object that was not cleared would lead on again, to memory that
// may have been freed.  A large object has DROPS_LOOSE instead.
static void clear_loose(const struct mspan *s, unsigned w, uint64_t loose)
{
	if (mspan_is_large(s))
		return;
	for (; loose != 0; loose &= loose - 1) {
		uint32_t slot = deadbits_object(s, w, bits_ctz(loose));

		memset((void *)mspan_object(s, slot), 0, s->elemsize);
	}
}

// The dead of a span: bits that are set in any of its words, and their number.
struct dead {
	uint64_t dies;	  // wait, and have the turn of what dies
	uint64_t dropped; // stay, though their drop has begun
	uint64_t n;	  // how many stay
};

// keep_word marks the dead of word w of a span that stay.  A dead object whose
// drop has begun stays if it belongs to the batch, or while rt_drop_now runs.
// Otherwise, if nothing refers to it, sweeping clears its bits and it is free.
static void keep_word(struct drops_found *f, const struct mspan *s, unsigned w,
		      struct dead *dead)
{
	struct deadwords *d = deadbits_word(s, w);
	atomic_u64 *markword =
	    mspan_lineword(s, epoch_mark_line(epoch_sweepgen()), w);
	uint64_t mark = atomic_u64_load_relaxed(markword);
	uint64_t stay = deadbits_dead(d), leading = drops_leading(s, d);
	uint64_t gone = stay & ~leading & ~mark, loose;

	if (stay == 0)
		return;
	stay &= ~gone;
	loose = stay & ~leading;
	clear_loose(s, w, loose);
	uncount(f, s, bits_count(mark & leading));
	uncount_leaves(f, s, bits_count(loose));
	atomic_u64_store_relaxed(markword, mark | stay);
	dead->dies |= deadbits_only(d, drops.turn ^ 1);
	dead->dropped |= deadbits_dropped(d) & stay;
	dead->n += bits_count(stay);
}

void drops_keep(struct drops_found *f)
{
	uint64_t page = 0, bytes = 0;
	struct mspan *s;

	RT_ASSERT(stw_stopped());
	drops.loose = false;
	if (!any())
		return;
	while ((s = drops_next_span(&page)) != NULL) {
		struct dead dead = {0};

		for (unsigned w = 0; w < s->nwords; w++)
			keep_word(f, s, w, &dead);
		bytes += dead.n * s->elemsize;
		if (dead.dropped != 0 && mspan_is_large(s) && !drops_stays(s))
			s->condemned = DROPS_LOOSE;
		if (dead.dropped != 0)
			drops.loose |= s->condemned != 0;
		else if (!drops.now)
			s->condemned = 0;
		if (dead.dies != 0 && !s->queued)
			queue(s);
	}
	atomic_u64_store_relaxed(&gauges.heap_dead, bytes);
}

// ---- running ----

bool drops_acquire(struct rt_proc *p)
{
	RT_ASSERT(p == proc_self());
	// A thread that polls while another runs destructors writes nothing.
	if (atomic_ptr_load_relaxed(&drops.runner))
		return false;
	schedpoint(SCHED_DROPS_ACQUIRE);
	// Pairs with the release in drops_release.
	return atomic_ptr_cas_acquire(&drops.runner, NULL, p);
}

void drops_release(const struct rt_proc *p)
{
	if (!drops_runs(p))
		return;
	schedpoint(SCHED_DROPS_RELEASE);
	// Pairs with the acquire in drops_acquire.
	atomic_ptr_store_release(&drops.runner, NULL);
}

// describe fills in how the object of a slot is dropped.
static void describe(struct drops_object *o, const struct mspan *s,
		     uint32_t slot)
{
	uintptr_t obj = mspan_object(s, slot);
	const struct layout *l = &layouts[spanclass_kind(s->spanclass)];
	const rt_type *type = layout_type(
	    l, obj, base_align_down(mspan_scan_end(s, slot) - obj, 8));

	o->obj = (void *)obj;
	o->size = mspan_usable(s);
	o->fn = type && type->drop ? type->drop : l->drop;
	o->arg = type && type->drop ? type->arg : l->arg;
}

// take_bit begins the drop of the object that has bit i of word w.
static void take_bit(struct drops_object *o, const struct mspan *s, unsigned w,
		     unsigned i)
{
	struct deadwords *d = deadbits_word(s, w);
	unsigned other = drops.turn ^ 1;

	describe(o, s, deadbits_object(s, w, i));
	deadbits_set(d, other, deadbits_turn(d, other) | UINT64_C(1) << i);
	drops.left--;
	add_ready(-1);
}

// take_span takes the next object of a span, from word *w on.
static bool take_span(struct drops_object *o, const struct mspan *s,
		      unsigned *w)
{
	for (; *w < s->nwords; ++*w) {
		uint64_t x = deadbits_only(deadbits_word(s, *w), drops.turn);

		if (x != 0) {
			take_bit(o, s, *w, bits_ctz(x));
			return true;
		}
	}
	return false;
}

// open_batch makes a batch of all objects that wait.
static void open_batch(void)
{
	drops.batch = drops.at = drops.next;
	drops.at_word = 0;
	drops.next = NULL;
	drops.turn ^= 1;
	drops.left = drops_ready();
	atomic_u32_store_relaxed(&drops.open, 1);
	drops.mixed = false;
}

bool drops_take(struct drops_object *o)
{
	RT_ASSERT(drops_runs(proc_self()));
	if (!drops_open() && drops_ready() != 0)
		open_batch();
	if (drops.left == 0)
		return false;
	while (!take_span(o, drops.at, &drops.at_word)) {
		drops.at = drops.at->next;
		drops.at_word = 0;
	}
	return true;
}

struct mspan *drops_end(unsigned n)
{
	struct mspan *list = drops.batch, *last = list;

	RT_ASSERT(drops_runs(proc_self()) && drops_finished());
	while (last->next && --n != 0)
		last = last->next;
	drops.batch = last->next;
	atomic_u32_store_relaxed(&drops.open, drops.batch != NULL);
	drops.at = NULL;
	last->next = NULL;
	return list;
}

void drops_requeue(struct mspan *s)
{
	RT_ASSERT(drops_runs(proc_self()));
	queue(s);
}

// ---- rt_drop_now ----

// put_back gives the waiting objects of a span the turn of objects that die
// now.
static void put_back(struct mspan *s)
{
	for (unsigned w = 0; w < s->nwords; w++) {
		struct deadwords *d = deadbits_word(s, w);
		uint64_t x = deadbits_only(d, drops.turn);

		if (x != 0)
			deadbits_move(d, drops.turn ^ 1, x);
	}
}

void drops_begin_now(void)
{
	struct mspan *s, *next;

	RT_ASSERT(stw_stopped());
	for (s = drops.batch; s; s = next) {
		next = s->next;
		put_back(s);
		queue(s);
	}
	drops.mixed |= drops_open() && drops.left != 0;
	drops.batch = drops.at = NULL;
	atomic_u32_store_relaxed(&drops.open, 0);
	drops.now = true;
	drops.left = 0;
	RT_CHECK(drops_check(&drops));
}

// count_dead moves the bytes of an object from heap_live to heap_dead if it
// dies, otherwise back.
static void count_dead(const struct mspan *s, bool dies)
{
	uint64_t bytes = dies ? s->elemsize : -s->elemsize;

	atomic_u64_add_relaxed(&gauges.heap_live, -bytes);
	atomic_u64_add_relaxed(&gauges.heap_dead, bytes);
	add_ready(dies ? 1 : -1);
}

void drops_pick(struct mspan *s, uint32_t slot)
{
	unsigned bit =
	    mspan_is_large(s) ? mspan_large_bit(s) : mspan_bit(s, slot);
	struct deadwords *d = deadbits_word(s, bit / 64);
	uint64_t x = UINT64_C(1) << (bit % 64);

	RT_ASSERT(stw_stopped() && drops.now);
	if (!(deadbits_dead(d) & x)) {
		count_dead(s, true);
		s->condemned = 1;
	}
	deadbits_move(d, drops.turn, x);
	drops.left++;
}

// take_page takes the next picked object of a page.  A page with an object that
// waits for its drop is not freed meanwhile.  Any other page may be, so its
// span must not be looked at.
static bool take_page(uint64_t page, struct drops_object *o)
{
	const struct linewords *lines = arena_lines(page);

	for (unsigned i = 0; i < RT_PAGE_WORDS; i++) {
		const struct mspan *s;
		unsigned w;

		if (deadbits_only(deadbits_of(lines) + i, drops.turn) == 0)
			continue;
		s = arena_span(page);
		w = (unsigned)(lines + i - mspan_lines(s));
		return take_span(o, s, &w);
	}
	return false;
}

bool drops_take_now(unsigned kind, uint64_t *page, struct drops_object *o)
{
	RT_ASSERT(drops_runs(proc_self()) && drops.now);
	if (drops.left == 0)
		return false;
	while (pageword_kind(arena_pageword(*page)) != kind ||
	       !take_page(*page, o))
		++*page;
	return true;
}

// thin_queue takes spans without a waiting object off the queue.  Their dropped
// objects are left to a collection, because something may refer to one.  But
// objects that a batch has dropped stay with the rest of the batch, which waits
// again.
static void thin_queue(void)
{
	struct mspan *s = drops.next, *next;

	drops.mixed &= drops_ready() != 0;
	drops.next = NULL;
	for (; s; s = next) {
		struct some some = some_of_span(s);
		bool dropped = some.dropped != 0;

		next = s->next;
		s->condemned |= dropped;
		if (some.waiting != 0 || (drops.mixed && dropped)) {
			queue(s);
			continue;
		}
		s->queued = 0;
		if (s->alloc_count < s->nelems)
			mcentral_push(s);
	}
}

void drops_end_now(void)
{
	RT_ASSERT(drops_runs(proc_self()) || stw_stopped());
	drops.now = false;
	drops.loose = true;
	thin_queue();
}

static bool page_has_dead(uint64_t page)
{
	struct some some =
	    some_of(deadbits_of(arena_lines(page)), RT_PAGE_WORDS);

	return (some.waiting | some.dropped) != 0;
}

// next_dead_span is drops_next_span for spans with dead objects.  The world may
// be running.  A page with a dead object is not freed meanwhile.  Any other
// page may be, so its span must not be looked at.
static struct mspan *next_dead_span(uint64_t *page)
{
	uint64_t end = arena_used() >> RT_PAGE_SHIFT;

	for (; *page < end; ++*page) {
		uint32_t pageword = arena_pageword(*page);
		struct mspan *s;

		if (!(kinds_drops() >> pageword_kind(pageword) & 1) ||
		    pageword_state(pageword) != PAGEWORD_HEAP ||
		    !page_has_dead(*page))
			continue;
		s = arena_span(*page);
		*page = mspan_page(s) + s->npages;
		return s;
	}
	return NULL;
}

// spare_span undoes the choice of rt_drop_now in a span, for objects that it
// has not dropped yet.  If some of them were alive before, all of them become
// alive.  Those that were dead before die again in the next collection.
// Another thread may free by hand an object that is alive again, so its bits
// change last.
static void spare_span(struct mspan *s)
{
	unsigned nwords = s->nwords;

	if (!s->condemned) {
		put_back(s);
		return;
	}
	if (some_of_span(s).dropped == 0)
		s->condemned = 0;
	for (unsigned w = 0; w < nwords; w++) {
		struct deadwords *d = deadbits_word(s, w);
		uint64_t spared = deadbits_only(d, drops.turn);

		for (uint64_t x = spared; x; x &= x - 1)
			count_dead(s, false);
		deadbits_clear(d, spared);
	}
}

static void spare(void)
{
	uint64_t page = 0;
	struct mspan *s;

	while ((s = next_dead_span(&page)) != NULL)
		spare_span(s);
	drops.left = 0;
	drops_end_now();
}

void drops_abandon(const struct rt_proc *p)
{
	if (!drops_runs(p))
		return;
	RT_ASSERT(p == proc_self() || stw_stopped());
	if (drops.now)
		spare();
	drops_release(p);
}

void drops_fork_child(const struct rt_proc *self)
{
	const struct rt_proc *p = atomic_ptr_load_relaxed(&drops.runner);

	RT_ASSERT(stw_stopped());
	if (p && p != self)
		drops_abandon(p);
}

// ---- invariants ----

// The numbers of waiting dead objects that were counted in some spans.
struct counted {
	uint64_t batch; // have the turn of the batch
	uint64_t dies;	// have the other
	uint64_t spans;
	bool dropped; // there are others in condemned spans
	bool kept;    // there are others that nothing would free
};

static void count_span(struct counted *c, const struct mspan *s)
{
	for (unsigned w = 0; w < s->nwords; w++) {
		const struct deadwords *d = deadbits_word(s, w);

		c->batch += bits_count(deadbits_only(d, drops.turn));
		c->dies += bits_count(deadbits_only(d, drops.turn ^ 1));
		if (deadbits_dropped(d) == 0)
			continue;
		c->dropped |= s->condemned;
		c->kept |= !s->condemned && !drops_stays(s);
	}
	c->spans++;
}

// check_list counts in the spans of a list, which must have at most limit
// spans.
static const char *check_list(const struct mspan *list, uint64_t limit,
			      struct counted *c)
{
	for (const struct mspan *s = list; s; s = s->next) {
		if (!s->queued || s->cached)
			return "span in the queue of drops does not say so";
		if (c->spans == limit)
			return "queue of drops has no end";
		count_span(c, s);
	}
	return NULL;
}

// count_all adds the objects of all spans to *c.  Returns the number of spans
// whose queued is set.
static uint64_t count_all(struct counted *c)
{
	uint64_t page = 0, queued = 0;
	const struct mspan *s;

	while ((s = drops_next_span(&page)) != NULL) {
		count_span(c, s);
		queued += s->queued;
	}
	return queued;
}

static const char *check_counts(const struct drops *d,
				const struct counted *batch,
				const struct counted *next,
				const struct counted *all)
{
	if (atomic_u64_load_relaxed(&d->ready) != all->batch + all->dies)
		return "number of drops differs from the dead that wait";
	if (d->left != all->batch)
		return "rest of a batch differs from the dead of its turn";
	if (all->dies != batch->dies + next->dies)
		return "object that waits for its drop is not queued";
	if (!d->now && all->batch != batch->batch)
		return "object of a batch is not in it";
	if (all->kept)
		return "dropped object is in no batch and not condemned";
	if (!d->now && !d->loose && all->dropped)
		return "loose object is not expected";
	return NULL;
}

const char *drops_check(const struct drops *d)
{
	struct counted batch = {0}, next = {0}, all = {0};
	uint64_t queued = count_all(&all);
	bool open = atomic_u32_load_relaxed(&d->open) != 0;
	const char *wrong;

	if (d->turn > 1 || d->deep || (open && d->now))
		return "queue of drops has an impossible state";
	if (!open && d->batch)
		return "batch of drops is not open";
	wrong = check_list(d->batch, queued, &batch);
	if (!wrong)
		wrong = check_list(d->next, queued, &next);
	if (!wrong && batch.spans + next.spans != queued)
		wrong = "queued span is in no part of the queue";
	return wrong ? wrong : check_counts(d, &batch, &next, &all);
}
