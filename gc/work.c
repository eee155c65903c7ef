#include "gc/work.h"

#include <string.h>

#include "runtime/oscall.h"
#include "runtime/schedpoint.h"
#include "runtime/throw.h"

// Rounds of spinning before a marker that waits goes to sleep: some
// microseconds, within which a busy marker usually looks around.
enum { WAIT_SPINS = 300 };

// What the markers agree on; waiting stands apart, because busy markers read
// it all the time.
static struct {
	struct rt_mutex lock;	 // of what follows
	struct gcworkbuf *given; // words that may be taken
	struct gcwork *joined;	 // this marking, newest first
	uint32_t next_job;
	uint32_t njobs;
	uint32_t busy;	    // markers
	uint32_t marking;   // numbers them, so that nobody joins two
	bool open;	    // a marking is under way
	bool alone;	    // the one busy marker is
	bool wake;	    // when the lock is let go
	uint32_t sleepers;  // on change
	atomic_u32 changes; // of what can be taken, or whether it is over
	RT_CACHE_ALIGNED atomic_u32 waiting; // markers; written under lock
} work = {.lock = RT_MUTEX_INIT(LOCKRANK_WORK)};

static struct {
	struct rt_mutex lock;	 // of what follows
	struct gcworkbuf *empty; // buffers without an owner
	struct mspan *spans;	 // all that are in use
	uint32_t nspans;
	uint32_t limit;
} pool = {.lock = RT_MUTEX_INIT(LOCKRANK_WORKBUF), .limit = UINT32_MAX};

// ---- buffers ----

static void pool_put(struct gcworkbuf *b)
{
	b->next = pool.empty;
	pool.empty = b;
}

// pool_grow cuts a new span into empty buffers, if the system grants one.
static void pool_grow(struct rt_proc *p)
{
	struct mspan *s = NULL;
	char *base;

	if (pool.nspans < pool.limit)
		s = mheap_alloc_manual(p, GCWORK_SPAN_PAGES, MSPAN_WORK);
	if (!s)
		return;
	s->next = pool.spans;
	pool.spans = s;
	pool.nspans++;
	base = (char *)s->base;
	for (size_t i = 0; i < GCWORK_SPAN_PAGES * RT_PAGE_SIZE;
	     i += GCWORK_BUF_BYTES)
		pool_put((struct gcworkbuf *)(base + i));
}

// pool_take moves a batch of empty buffers to a marker that has none, or fewer
// where the system refuses more.
static void pool_take(struct gcwork *w)
{
	rt_lock(&pool.lock);
	if (!pool.empty)
		pool_grow(w->p);
	for (; pool.empty && w->nspare < GCWORK_BATCH; w->nspare++) {
		struct gcworkbuf *b = pool.empty;

		pool.empty = b->next;
		b->next = w->spare;
		w->spare = b;
	}
	rt_unlock(&pool.lock);
}

// pool_put_batch takes a batch of empty buffers from a marker that has more.
static void pool_put_batch(struct gcwork *w)
{
	rt_lock(&pool.lock);
	for (unsigned i = 0; i < GCWORK_BATCH; i++) {
		struct gcworkbuf *b = w->spare;

		w->spare = b->next;
		pool_put(b);
	}
	rt_unlock(&pool.lock);
	w->nspare -= GCWORK_BATCH;
}

// pool_release gives all buffers back to the heap.
static void pool_release(struct rt_proc *p)
{
	struct mspan *next;

	rt_lock(&pool.lock);
	for (struct mspan *s = pool.spans; s; s = next) {
		next = s->next;
		mheap_free_manual(p, s);
	}
	pool.empty = NULL;
	pool.spans = NULL;
	pool.nspans = 0;
	rt_unlock(&pool.lock);
}

void gcwork_limit(uint32_t nspans)
{
	rt_lock(&pool.lock);
	pool.limit = nspans;
	rt_unlock(&pool.lock);
}

// ---- one marker's stack ----

// use makes b, with its first n entries, the current buffer.
static void use(struct gcwork *w, struct gcworkbuf *b, uint64_t n)
{
	w->bottom = b->entry;
	w->top = b->entry + n;
	w->limit = b->entry + GCWORK_ENTRIES;
	w->high = w->limit - GCWORK_FEW;
}

static struct gcworkbuf *current(const struct gcwork *w)
{
	return (struct gcworkbuf *)((char *)w->bottom -
				    offsetof(struct gcworkbuf, entry));
}

// empty_buffer is an empty one to use or to give; NULL: refused.
static struct gcworkbuf *empty_buffer(struct gcwork *w)
{
	struct gcworkbuf *b;

	if (!w->spare)
		pool_take(w);
	b = w->spare;
	if (b) {
		w->spare = b->next;
		w->nspare--;
	}
	return b;
}

static void keep_empty(struct gcwork *w, struct gcworkbuf *b)
{
	if (w->nspare == GCWORK_SPARES)
		pool_put_batch(w);
	b->next = w->spare;
	w->spare = b;
	w->nspare++;
}

bool gcwork_spill(struct gcwork *w)
{
	struct gcworkbuf *empty = empty_buffer(w);
	struct gcworkbuf *full = current(w);

	if (!empty)
		return false;
	full->n = (uint64_t)(w->top - w->bottom);
	full->next = w->full;
	w->full = full;
	w->nfull++;
	use(w, empty, 0);
	return true;
}

// adopt makes b the current buffer instead of the empty one.
static void adopt(struct gcwork *w, struct gcworkbuf *b)
{
	struct gcworkbuf *empty = current(w);

	use(w, b, b->n);
	keep_empty(w, empty);
}

bool gcwork_more(struct gcwork *w)
{
	struct gcworkbuf *b = w->full;

	if (!b)
		return false;
	w->full = b->next;
	w->nfull--;
	adopt(w, b);
	return true;
}

// ---- agreement ----

static void lock(void)
{
	rt_lock(&work.lock);
}

static void unlock(void)
{
	bool wake = work.wake;

	work.wake = false;
	rt_unlock(&work.lock);
	schedpoint(SCHED_WORK_UNLOCK);
	if (wake)
		oscall_futex_wake(&work.changes, UINT32_MAX);
}

// changed lets markers that wait look again; lock held.
static void changed(void)
{
	atomic_u32_add_release(&work.changes, 1);
	work.wake = work.sleepers != 0;
}

// wait_change returns when something may have changed.  The lock is held
// before and after, not meanwhile.
static void wait_change(void)
{
	uint32_t seen = atomic_u32_load_relaxed(&work.changes);

	unlock();
	for (int i = 0; i < WAIT_SPINS; i++) {
		if (atomic_u32_load_acquire(&work.changes) != seen)
			break;
		atomic_pause();
	}
	lock();
	if (atomic_u32_load_relaxed(&work.changes) != seen)
		return;
	work.sleepers++;
	unlock();
	schedpoint(SCHED_WAIT_CHANGE);
	oscall_futex_wait(&work.changes, seen, UINT64_MAX);
	lock();
	work.sleepers--;
}

static bool jobs_left(void)
{
	return work.next_job < work.njobs;
}

static bool nothing_left(void)
{
	return work.busy == 0 && !jobs_left() && !work.given;
}

// set_busy is for a marker that has just taken something, or nothing when all
// is over.
static void set_busy(struct gcwork *w)
{
	work.busy++;
	w->alone = work.alone = work.busy == 1 && !work.given;
	w->jobs_left = jobs_left();
	w->busy = true;
}

// set_waiting is for a busy marker whose stack is empty.
static void set_waiting(struct gcwork *w)
{
	if (w->alone)
		w->alone = work.alone = false;
	w->busy = false;
	work.busy--;
	if (nothing_left())
		changed();
}

static void begin(struct gcwork *w, struct rt_proc *p)
{
	w->p = p;
	w->full = w->spare = NULL;
	w->nfull = w->nspare = 0;
	w->marking = work.marking;
	w->busy = w->alone = w->opener = false;
	w->next = work.joined;
	work.joined = w;
	use(w, &w->first, 0);
}

void gcwork_open(struct gcwork *w, struct rt_proc *p, uint32_t njobs)
{
	schedpoint(SCHED_GCWORK_OPEN);
	lock();
	RT_ASSERT(!work.open && nothing_left());
	work.next_job = 0;
	work.njobs = njobs;
	work.marking++;
	work.joined = NULL;
	work.open = true;
	atomic_u32_store_relaxed(&work.waiting, 0);
	begin(w, p);
	w->opener = true;
	set_busy(w);
	unlock();
}

bool gcwork_join(struct gcwork *w, struct rt_proc *p)
{
	bool open;

	schedpoint(SCHED_GCWORK_JOIN);
	lock();
	// Once a marking only: its first buffer may be another's by now.
	open = work.open && w->marking != work.marking;
	if (open)
		begin(w, p);
	unlock();
	return open;
}

struct gcwork *gcwork_joined(void)
{
	struct gcwork *w;

	lock();
	w = work.joined;
	unlock();
	return w;
}

// take takes what there is for a marker that waits.
static enum gcwork_next take(struct gcwork *w, uint32_t *job)
{
	if (!work.open || w->marking != work.marking)
		return GCWORK_OVER;
	if (w->opener && nothing_left()) {
		set_busy(w);
		return GCWORK_OVER;
	}
	if (work.alone)
		return GCWORK_WAIT;
	if (jobs_left()) {
		*job = work.next_job++;
		set_busy(w);
		return GCWORK_JOB;
	}
	if (work.given) {
		struct gcworkbuf *b = work.given;

		work.given = b->next;
		adopt(w, b);
		set_busy(w);
		return GCWORK_WORDS;
	}
	return GCWORK_WAIT;
}

// wait_turn waits until there is something for w.
static enum gcwork_next wait_turn(struct gcwork *w, uint32_t *job)
{
	enum gcwork_next next = take(w, job);

	if (next != GCWORK_WAIT)
		return next;
	atomic_u32_add_relaxed(&work.waiting, 1);
	do {
		wait_change();
		next = take(w, job);
	} while (next == GCWORK_WAIT);
	if (w->marking == work.marking)
		atomic_u32_add_relaxed(&work.waiting, (uint32_t)-1);
	return next;
}

enum gcwork_next gcwork_get(struct gcwork *w, uint32_t *job)
{
	enum gcwork_next next;

	schedpoint(SCHED_GCWORK_GET);
	lock();
	if (w->busy)
		set_waiting(w);
	next = wait_turn(w, job);
	unlock();
	return next;
}

void gcwork_close(struct gcwork *w)
{
	schedpoint(SCHED_GCWORK_CLOSE);
	lock();
	if (work.busy != 1 || !w->busy || jobs_left() || work.given)
		rt_throw("non-empty mark queue after mark");
	set_waiting(w);
	work.open = false;
	unlock();
	pool_release(w->p);
}

void gcwork_hold(void)
{
	lock();
}

void gcwork_let_go(void)
{
	unlock();
}

void gcwork_forked(void)
{
	work.sleepers = 0;
}

// ---- sharing ----

uint32_t gcwork_waiting(void)
{
	return atomic_u32_load_relaxed(&work.waiting);
}

// cut_chain takes the oldest half of the full buffers, at least one.
static struct gcworkbuf *cut_chain(struct gcwork *w)
{
	struct gcworkbuf **link = &w->full;
	struct gcworkbuf *oldest;
	uint32_t kept = w->nfull / 2;

	for (uint32_t i = 0; i < kept; i++)
		link = &(*link)->next;
	oldest = *link;
	*link = NULL;
	w->nfull = kept;
	return oldest;
}

// cut_current copies the oldest half of the current buffer; NULL: no buffer
// to be had.
static struct gcworkbuf *cut_current(struct gcwork *w)
{
	size_t n = (size_t)(w->top - w->bottom);
	size_t given = n / 2;
	struct gcworkbuf *b;

	if (n < GCWORK_SHARE)
		return NULL;
	b = empty_buffer(w);
	if (!b)
		return NULL;
	memcpy(b->entry, w->bottom, given * sizeof *b->entry);
	memmove(w->bottom, w->bottom + given, (n - given) * sizeof *b->entry);
	w->top -= given;
	b->n = given;
	b->next = NULL;
	return b;
}

// give puts a chain before what was given already; lock held.
static void give(struct gcworkbuf *chain)
{
	struct gcworkbuf **end = &chain->next;

	while (*end)
		end = &(*end)->next;
	*end = work.given;
	work.given = chain;
}

void gcwork_share(struct gcwork *w)
{
	struct gcworkbuf *chain = w->full ? cut_chain(w) : cut_current(w);

	schedpoint(SCHED_GCWORK_SHARE);
	lock();
	if (chain)
		give(chain);
	if (chain || (w->alone && jobs_left())) {
		w->alone = work.alone = false;
		changed();
	} else if (work.busy == 1 && !work.given && !jobs_left()) {
		w->alone = work.alone = true;
		w->jobs_left = false;
	}
	unlock();
}

uint32_t gcwork_count_from(uint32_t n)
{
	uint32_t last;

	lock();
	last = work.marking;
	work.marking = n;
	atomic_u32_store_relaxed(&work.changes, n);
	unlock();
	return last;
}
