// work.c - buffers of words, jobs and ranges, and what markers agree on.
#include "gc/mark/work.h"

#include <string.h>

#include "runtime/os/schedpoint.h"
#include "runtime/os/throw.h"
#include "runtime/world/stw.h"

struct work_agreed work_agreed = {.lock = RT_MUTEX_INIT(LOCKRANK_WORK)};

struct work_pool work_pool = {.lock = RT_MUTEX_INIT(LOCKRANK_WORKBUF)};

// ---- buffers ----

static void pool_free(struct workbuf *b)
{
	RT_ASSERT(mutex_held(&work_pool.lock));
	b->next = work_pool.empty;
	work_pool.empty = b;
}

#ifdef RT_TEST
static uint32_t limit = UINT32_MAX; // spans in use; pool lock

void work_limit(uint32_t nspans)
{
	mutex_lock(&work_pool.lock);
	limit = nspans;
	mutex_unlock(&work_pool.lock);
}
#endif

// limited tells whether a test wants no more spans.  The caller must hold the
// pool lock.
RT_INLINE bool limited(void)
{
#ifdef RT_TEST
	return work_pool.nspans >= limit;
#else
	return false;
#endif
}

// check_newest checks the numbers of the pool and its newest span.
static const char *check_newest(const struct work_pool *pool)
{
	if (pool->spans && pool->spans->use != MSPAN_WORK)
		return "span of work buffers has another use";
	if (pool->spans && pool->nspans == 0)
		return "more spans of work buffers exist than are counted";
	if (!pool->spans && pool->nspans != 0)
		return "fewer spans of work buffers exist than are counted";
	if (pool->empty && !pool->spans)
		return "work buffer has no span";
	return NULL;
}

// pool_grow cuts a new span into empty buffers, if there is memory for one.
static void pool_grow(struct rt_proc *p)
{
	struct mspan *s = NULL;
	char *base;

	RT_ASSERT(mutex_held(&work_pool.lock));
	if (!limited())
		s = mheap_alloc_manual(p, WORK_SPAN_PAGES, MSPAN_WORK);
	if (!s)
		return;
	s->next = work_pool.spans;
	work_pool.spans = s;
	work_pool.nspans++;
	base = (char *)s->base;
	for (size_t i = 0; i < WORK_SPAN_PAGES * RT_PAGE_SIZE;
	     i += WORK_BUF_BYTES)
		pool_free((struct workbuf *)(base + i));
}

// pool_take moves a batch of empty buffers to a marker that has none, or fewer
// if there is no memory for more.
static void pool_take(struct work *w)
{
	mutex_lock(&work_pool.lock);
	if (!work_pool.empty)
		pool_grow(w->p);
	for (; work_pool.empty && w->nspare < WORK_BATCH; w->nspare++) {
		struct workbuf *b = work_pool.empty;

		work_pool.empty = b->next;
		b->next = w->spare;
		w->spare = b;
	}
	RT_CHECK(check_newest(&work_pool));
	mutex_unlock(&work_pool.lock);
}

// pool_free_batch frees a batch of empty buffers of a marker that has more.
static void pool_free_batch(struct work *w)
{
	mutex_lock(&work_pool.lock);
	for (unsigned i = 0; i < WORK_BATCH; i++) {
		struct workbuf *b = w->spare;

		w->spare = b->next;
		pool_free(b);
	}
	RT_CHECK(check_newest(&work_pool));
	mutex_unlock(&work_pool.lock);
	w->nspare -= WORK_BATCH;
}

uint64_t work_held(void)
{
	uint32_t n;

	mutex_lock(&work_pool.lock);
	n = work_pool.nspans;
	mutex_unlock(&work_pool.lock);
	return (uint64_t)n * WORK_SPAN_PAGES * RT_PAGE_SIZE;
}

void work_release(struct rt_proc *p)
{
	struct mspan *next;

	RT_ASSERT(!work_agreed.open);
	mutex_lock(&work_pool.lock);
	RT_CHECK(work_pool_check(&work_pool));
	for (struct mspan *s = work_pool.spans; s; s = next) {
		next = s->next;
		mheap_free_manual(p, s);
	}
	work_pool.empty = NULL;
	work_pool.spans = NULL;
	work_pool.nspans = 0;
	mutex_unlock(&work_pool.lock);
}

// ---- one marker's stack ----

// check_first checks a marker, and of each of its chains only the first buffer.
static const char *check_first(const struct work *w)
{
	if (w->t.limit != w->bottom + WORK_ENTRIES ||
	    w->high != w->t.limit - WORK_FEW)
		return "stack of a marker is not a buffer";
	if (w->t.top < w->bottom || w->t.top > w->t.limit)
		return "top of a marker is outside of its buffer";
	if ((w->nfull == 0) != (w->full == NULL))
		return "nfull is not the number of a marker's full buffers";
	if (w->nspare > WORK_SPARES)
		return "marker has too many empty buffers";
	if ((w->nspare == 0) != (w->spare == NULL))
		return "nspare is not the number of a marker's empty buffers";
	if (w->alone && !w->busy)
		return "marker is alone but not busy";
	return note_check(&w->note);
}

// use makes b, with its first n entries, the current buffer.
static void use(struct work *w, struct workbuf *b, uint64_t n)
{
	w->bottom = b->entry;
	w->t.top = b->entry + n;
	w->t.limit = b->entry + WORK_ENTRIES;
	w->high = w->t.limit - WORK_FEW;
}

static struct workbuf *current(const struct work *w)
{
	return (struct workbuf *)((char *)w->bottom -
				  offsetof(struct workbuf, entry));
}

// empty_buffer takes an empty buffer, to use or to give.  Returns NULL if there
// is no memory for one.
static struct workbuf *empty_buffer(struct work *w)
{
	struct workbuf *b;

	if (!w->spare)
		pool_take(w);
	b = w->spare;
	if (b) {
		w->spare = b->next;
		w->nspare--;
	}
	return b;
}

static void keep_empty(struct work *w, struct workbuf *b)
{
	if (w->nspare == WORK_SPARES)
		pool_free_batch(w);
	b->next = w->spare;
	w->spare = b;
	w->nspare++;
}

bool work_spill(struct work *w)
{
	struct workbuf *empty = empty_buffer(w);
	struct workbuf *full = current(w);

	if (!empty)
		return false;
	full->n = (uint64_t)(w->t.top - w->bottom);
	full->next = w->full;
	w->full = full;
	w->nfull++;
	use(w, empty, 0);
	RT_CHECK(check_first(w));
	return true;
}

bool work_more(struct work *w)
{
	struct workbuf *b = w->full;
	struct workbuf *empty = current(w);

	if (!b)
		return false;
	w->full = b->next;
	w->nfull--;
	use(w, b, b->n);
	keep_empty(w, empty);
	RT_CHECK(check_first(w));
	return true;
}

// ---- jobs and ranges ----

static bool any_left(void)
{
	return work_agreed.next_job < work_agreed.njobs || work_agreed.ranges;
}

// ranges_room makes sure that the first buffer of ranges has room for one more.
// Returns false if a buffer is refused.
static bool ranges_room(struct work *w)
{
	struct workbuf *b = work_agreed.ranges;

	if (b && b->n < RT_ARRAY_LEN(b->range))
		return true;
	b = empty_buffer(w);
	if (!b)
		return false;
	b->n = 0;
	b->next = work_agreed.ranges;
	work_agreed.ranges = b;
	return true;
}

bool work_add_range(struct work *w, struct work_range range)
{
	bool ok;

	RT_ASSERT(range.lo < range.hi && (range.lo | range.hi) % 8 == 0 &&
		  range.stride % 8 == 0 && range.stride != 0);
	mutex_lock(&work_agreed.lock);
	ok = ranges_room(w);
	if (ok)
		work_agreed.ranges->range[work_agreed.ranges->n++] = range;
	w->more = any_left();
	RT_CHECK(work_agreed_check(&work_agreed));
	mutex_unlock(&work_agreed.lock);
	return ok;
}

// cut_piece cuts a piece off the newest range.  A buffer that becomes empty
// goes to the calling marker.
static struct work_range cut_piece(struct work *caller)
{
	struct workbuf *b = work_agreed.ranges;
	struct work_range *range = &b->range[b->n - 1];
	struct work_range piece = *range;
	uintptr_t bytes = work_piece(range->stride);

	if (piece.hi - piece.lo > bytes) {
		range->lo += bytes;
		piece.hi = range->lo;
	} else if (--b->n == 0) {
		work_agreed.ranges = b->next;
		keep_empty(caller, b);
	}
	return piece;
}

// assign gives w a piece of a range or a job.  Returns false if none is left.
static bool assign(struct work *w, struct work *caller)
{
	if (work_agreed.ranges) {
		w->range = cut_piece(caller);
		w->got = WORK_RANGE;
	} else if (work_agreed.next_job < work_agreed.njobs) {
		w->job = work_agreed.next_job++;
		w->got = WORK_JOB;
	} else {
		return false;
	}
	return true;
}

// ---- agreement ----

// count_busy adds by to the number of busy markers, and returns the sum.  Only
// the holder of the lock writes, so a load and a store suffice.
static uint32_t count_busy(int by)
{
	uint32_t n = atomic_u32_load_relaxed(&work_agreed.busy) + (uint32_t)by;

	RT_ASSERT(mutex_held(&work_agreed.lock));
	atomic_u32_store_relaxed(&work_agreed.busy, n);
	return n;
}

static void count_waiting(int by)
{
	uint32_t n =
	    atomic_u32_load_relaxed(&work_agreed.waiting) + (uint32_t)by;

	RT_ASSERT(mutex_held(&work_agreed.lock));
	atomic_u32_store_relaxed(&work_agreed.waiting, n);
}

static bool any_busy(void)
{
	return atomic_u32_load_relaxed(&work_agreed.busy) != 0;
}

// set_busy makes w busy: it has got something to do, or marking is over for it.
static void set_busy(struct work *w)
{
	RT_ASSERT(!w->busy);
	w->busy = true;
	w->alone = work_agreed.alone = count_busy(1) == 1;
	w->more = any_left();
}

// set_idle makes w idle.  It must be busy, and its stack empty.
static void set_idle(struct work *w)
{
	RT_ASSERT(w->busy && !work_any(w) && !w->full);
	if (w->alone)
		w->alone = work_agreed.alone = false;
	w->busy = false;
	count_busy(-1);
}

// add_waiter adds w to the list of those that wait.  A wake that comes before w
// sleeps is not lost: the note is cleared before any other marker can find w.
static void add_waiter(struct work *w)
{
	note_clear(&w->note);
	w->got = WORK_WAIT;
	w->waits = work_agreed.waiters;
	work_agreed.waiters = w;
	count_waiting(1);
}

static void remove_waiter(struct work *w)
{
	struct work **link = &work_agreed.waiters;

	while (*link != w)
		link = &(*link)->waits;
	*link = w->waits;
	w->waits = NULL;
	count_waiting(-1);
}

// take_waiter takes the newest waiter off the list, which most likely does not
// sleep yet, and makes it busy.  w must be busy; it is not alone any more.
// Returns NULL if no marker waits.
static struct work *take_waiter(struct work *w)
{
	struct work *to = work_agreed.waiters;

	if (!to)
		return NULL;
	remove_waiter(to);
	w->alone = work_agreed.alone = false;
	set_busy(to);
	return to;
}

// give_left gives a marker that waits a piece or a job.  Returns that marker,
// which the caller must wake, or NULL if none waits or nothing is left.
static struct work *give_left(struct work *w)
{
	struct work *to = any_left() ? take_waiter(w) : NULL;

	if (to)
		assign(to, w);
	w->more = any_left();
	return to;
}

static void wake(struct work *w)
{
	if (!w)
		return;
	schedpoint(SCHED_WAKE);
	note_wake(&w->note);
}

static void begin(struct work *w, struct rt_proc *p)
{
	w->p = p;
	w->full = w->spare = NULL;
	w->nfull = w->nspare = 0;
	w->marking = work_agreed.marking;
	w->busy = w->alone = w->more = w->opener = false;
	w->waits = NULL;
	w->next = work_agreed.joined;
	work_agreed.joined = w;
	use(w, &w->first, 0);
	RT_CHECK(work_check(w));
}

void work_open(struct work *w, struct rt_proc *p, uint32_t njobs)
{
	RT_ASSERT(stw_stopped());
	schedpoint(SCHED_WORK_OPEN);
	mutex_lock(&work_agreed.lock);
	RT_ASSERT(!work_agreed.open && !any_busy() && !any_left());
	RT_ASSERT(!work_agreed.waiters && !work_agreed.offers);
	work_agreed.next_job = 0;
	work_agreed.njobs = njobs;
	work_agreed.marking++;
	work_agreed.joined = NULL;
	work_agreed.open = true;
	begin(w, p);
	w->opener = true;
	set_busy(w);
	RT_CHECK(work_agreed_check(&work_agreed));
	mutex_unlock(&work_agreed.lock);
}

void work_add_jobs(struct work *w, uint32_t njobs)
{
	mutex_lock(&work_agreed.lock);
	work_agreed.next_job = 0;
	work_agreed.njobs = njobs;
	w->more = any_left();
	RT_CHECK(work_agreed_check(&work_agreed));
	mutex_unlock(&work_agreed.lock);
}

bool work_join(struct work *w, struct rt_proc *p)
{
	bool open;

	schedpoint(SCHED_WORK_JOIN);
	mutex_lock(&work_agreed.lock);
	// w joins only once in a marking, because its first buffer may be
	// another marker's by now.
	open = work_agreed.open && w->marking != work_agreed.marking;
	if (open)
		begin(w, p);
	mutex_unlock(&work_agreed.lock);
	return open;
}

struct work *work_joined(void)
{
	struct work *w;

	mutex_lock(&work_agreed.lock);
	w = work_agreed.joined;
	mutex_unlock(&work_agreed.lock);
	return w;
}

static void take_over(struct work *opener)
{
	opener->got = WORK_OVER;
	set_busy(opener);
}

// take_opener takes the opener off the list of those that wait.  Returns NULL
// if it does not wait.
static struct work *take_opener(void)
{
	struct work *w = work_agreed.waiters;

	while (w && !w->opener)
		w = w->waits;
	if (w)
		remove_waiter(w);
	return w;
}

// tell_opener tells the opener, if it waits, that nothing is left.  Returns it,
// or NULL.  No marker may be busy.
static struct work *tell_opener(void)
{
	struct work *w = take_opener();

	if (w)
		take_over(w);
	return w;
}

// take_or_wait finds something for w, whose stack is empty, or makes it wait.
// Returns another marker that the caller must wake, or NULL.  If no marker is
// busy, none is alone, so assign was tried.  If assign gave w nothing then,
// nothing is left.
static struct work *take_or_wait(struct work *w)
{
	struct work *to = NULL;

	if (!work_agreed.open || w->marking != work_agreed.marking) {
		w->got = WORK_OVER;
	} else if (w->opener && work_agreed.offers) {
		w->got = WORK_OFFERS;
		set_busy(w);
	} else if (!work_agreed.alone && assign(w, w)) {
		set_busy(w);
		to = give_left(w);
	} else if (w->opener && !any_busy()) {
		take_over(w);
	} else {
		if (!any_busy())
			to = tell_opener();
		add_waiter(w);
	}
	return to;
}

// wait_turn returns when another marker has given w something, or marking is
// over.  If the marking was closed, w wakes the next marker that waits.
static void wait_turn(struct work *w)
{
	note_sleep(&w->note, UINT64_MAX);
	if (w->got == WORK_OVER)
		wake(w->waits);
}

enum work_next work_get(struct work *w)
{
	struct work *to;
	bool waits;

	schedpoint(SCHED_WORK_GET);
	RT_CHECK(work_check(w));
	mutex_lock(&work_agreed.lock);
	if (w->busy)
		set_idle(w);
	to = take_or_wait(w);
	waits = w->got == WORK_WAIT;
	RT_CHECK(work_agreed_check(&work_agreed));
	mutex_unlock(&work_agreed.lock);
	wake(to);
	if (waits)
		wait_turn(w);
	return w->got;
}

// close_waiters tells all waiters that marking is over, and returns the first.
// The caller must wake it, and each of them wakes the next.
static struct work *close_waiters(void)
{
	struct work *first = work_agreed.waiters;

	for (struct work *w = first; w; w = w->waits)
		w->got = WORK_OVER;
	work_agreed.waiters = NULL;
	atomic_u32_store_relaxed(&work_agreed.waiting, 0);
	return first;
}

void work_close(struct work *w)
{
	struct work *to;

	schedpoint(SCHED_WORK_CLOSE);
	mutex_lock(&work_agreed.lock);
	if (atomic_u32_load_relaxed(&work_agreed.busy) != 1 || !w->busy ||
	    any_left())
		throw_fatal("non-empty mark queue after mark");
	set_idle(w);
	work_agreed.open = false;
	to = close_waiters();
	RT_CHECK(work_agreed_check(&work_agreed));
	mutex_unlock(&work_agreed.lock);
	wake(to);
}

void work_fork_lock(void)
{
	mutex_lock(&work_agreed.lock);
}

void work_fork_unlock(void)
{
	mutex_unlock(&work_agreed.lock);
}

// ---- what only the opener may take ----

static void count_offered(int by)
{
	atomic_u32_store_relaxed(&work_agreed.offered,
				 atomic_u32_load_relaxed(&work_agreed.offered) +
				     (uint32_t)by);
	count_waiting(by);
}

// wake_opener makes the opener busy if it waits.  w, which is busy, is not
// alone any more then.  Returns the opener, which the caller must wake, or
// NULL.
static struct work *wake_opener(struct work *w)
{
	struct work *opener = take_opener();

	if (!opener)
		return NULL;
	w->alone = work_agreed.alone = false;
	opener->got = WORK_OFFERS;
	set_busy(opener);
	return opener;
}

void work_offer(struct work *w)
{
	struct work *to;

	schedpoint(SCHED_WORK_OFFER);
	mutex_lock(&work_agreed.lock);
	RT_ASSERT(w->busy && !w->opener);
	note_clear(&w->note);
	w->waits = work_agreed.offers;
	work_agreed.offers = w;
	count_offered(1);
	to = wake_opener(w);
	RT_CHECK(work_agreed_check(&work_agreed));
	mutex_unlock(&work_agreed.lock);
	wake(to);
	note_sleep(&w->note, UINT64_MAX);
}

struct work *work_offers(struct work *opener)
{
	struct work *offers;

	mutex_lock(&work_agreed.lock);
	RT_ASSERT(opener->opener && opener->busy);
	offers = work_agreed.offers;
	for (struct work *w = offers; w; w = w->waits)
		count_offered(-1);
	work_agreed.offers = NULL;
	opener->more = any_left();
	mutex_unlock(&work_agreed.lock);
	return offers;
}

void work_taken(struct work *w)
{
	w->waits = NULL;
	wake(w);
}

// ---- sharing ----

uint32_t work_waiting(void)
{
	return atomic_u32_load_relaxed(&work_agreed.waiting);
}

bool work_wanted(const struct work *w)
{
	return work_waiting() != 0 &&
	       (work_plenty(w) ||
		(!w->alone && atomic_u32_load_relaxed(&work_agreed.busy) == 1));
}

// move_full moves the oldest half of the full buffers, at least one, to another
// marker.
static void move_full(struct work *w, struct work *to)
{
	struct workbuf **link = &w->full;
	uint32_t kept = w->nfull / 2;

	for (uint32_t i = 0; i < kept; i++)
		link = &(*link)->next;
	to->full = *link;
	to->nfull = w->nfull - kept;
	*link = NULL;
	w->nfull = kept;
}

// move_words moves the oldest half of the current buffer into the empty one of
// another marker.
static void move_words(struct work *w, struct work *to)
{
	size_t n = (size_t)(w->t.top - w->bottom);
	size_t given = n / 2;

	memcpy(to->bottom, w->bottom, given * sizeof *w->bottom);
	memmove(w->bottom, w->bottom + given, (n - given) * sizeof *w->bottom);
	to->t.top += given;
	w->t.top -= given;
}

// give_words gives a marker half of w's words.  Only w knows that marker until
// it wakes it, so this needs no lock.
static void give_words(struct work *w, struct work *to)
{
	schedpoint(SCHED_GIVE_WORDS);
	if (w->full)
		move_full(w, to);
	else
		move_words(w, to);
	to->got = WORK_WORDS;
}

void work_share(struct work *w)
{
	bool words = w->full || w->t.top - w->bottom >= WORK_SHARE;
	struct work *to;

	schedpoint(SCHED_WORK_SHARE);
	mutex_lock(&work_agreed.lock);
	RT_ASSERT(w->busy);
	RT_CHECK(work_agreed_check(&work_agreed));
	to = give_left(w);
	if (!to && words)
		to = take_waiter(w);
	if (!to && atomic_u32_load_relaxed(&work_agreed.busy) == 1)
		w->alone = work_agreed.alone = true;
	mutex_unlock(&work_agreed.lock);
	if (to && to->got == WORK_WAIT)
		give_words(w, to);
	wake(to);
}

#ifdef RT_TEST
uint32_t work_count_from(uint32_t n)
{
	uint32_t last;

	mutex_lock(&work_agreed.lock);
	last = work_agreed.marking;
	work_agreed.marking = n;
	mutex_unlock(&work_agreed.lock);
	return last;
}
#endif

// ---- invariants ----

// check_closed checks what holds while no marking is open.
static const char *check_closed(const struct work_agreed *a)
{
	if (a->waiters)
		return "marker waits though no marking is open";
	if (a->offers)
		return "marker offers though no marking is open";
	if (a->ranges || a->next_job < a->njobs)
		return "work is left though no marking is open";
	if (a->alone || atomic_u32_load_relaxed(&a->busy) != 0)
		return "marker is busy though no marking is open";
	return NULL;
}

// check_offers adds the number of offers to *n.
static const char *check_offers(const struct work_agreed *a, uint32_t *n)
{
	uint32_t offered = atomic_u32_load_relaxed(&a->offered);

	for (const struct work *w = a->offers; w; w = w->waits) {
		if (!w->busy || w->opener)
			return "marker offers though it is idle or the opener";
		if ((*n)++ == offered)
			return "more markers offer than are counted";
	}
	return *n == offered ? NULL : "fewer markers offer than are counted";
}

const char *work_agreed_check(const struct work_agreed *a)
{
	const char *wrong = mutex_check(&a->lock);
	uint32_t n = 0;

	if (wrong)
		return wrong;
	if (a->next_job > a->njobs)
		return "more jobs were given than there are";
	if (a->alone && atomic_u32_load_relaxed(&a->busy) != 1)
		return "marker is alone but not the only busy one";
	wrong = check_offers(a, &n);
	if (wrong)
		return wrong;
	for (const struct work *w = a->waiters; w; w = w->waits) {
		if (w->busy || w->got != WORK_WAIT)
			return "marker that waits is busy";
		if (n++ == atomic_u32_load_relaxed(&a->waiting))
			return "more markers wait than are counted";
	}
	if (n != atomic_u32_load_relaxed(&a->waiting))
		return "fewer markers wait than are counted";
	return a->open ? NULL : check_closed(a);
}

const char *work_pool_check(const struct work_pool *pool)
{
	const char *wrong = mutex_check(&pool->lock);
	uint32_t n = 0;

	if (!wrong)
		wrong = check_newest(pool);
	if (wrong)
		return wrong;
	for (const struct mspan *s = pool->spans; s; s = s->next) {
		if (s->use != MSPAN_WORK)
			return "span of work buffers has another use";
		if (n++ == pool->nspans)
			return "more spans of work buffers exist than are "
			       "counted";
	}
	return n != pool->nspans
		   ? "fewer spans of work buffers exist than are counted"
		   : NULL;
}

// count_buffers counts a chain of buffers, up to one more than most.
static uint32_t count_buffers(const struct workbuf *b, uint32_t most)
{
	uint32_t n = 0;

	for (; b && n <= most; b = b->next)
		n++;
	return n;
}

const char *work_check(const struct work *w)
{
	const char *wrong = check_first(w);

	if (wrong)
		return wrong;
	if (count_buffers(w->full, w->nfull) != w->nfull)
		return "nfull is not the number of a marker's full buffers";
	if (count_buffers(w->spare, w->nspare) != w->nspare)
		return "nspare is not the number of a marker's empty buffers";
	return NULL;
}
