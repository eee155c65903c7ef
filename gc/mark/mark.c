// mark.c - one marking: roots, overflow, the dead, and the end.
#include "gc/mark/mark.h"

#include <string.h>

#include "runtime/base/bits.h"
#include "runtime/os/throw.h"
#include "runtime/os/nanotime.h"
#include "runtime/os/settings.h"
#include "runtime/os/poison.h"
#include "runtime/world/stw.h"
#include "gc/mark/gain.h"
#include "gc/mark/drops.h"
#include "gc/mark/overflow.h"
#include "gc/mark/trace.h"
#include "gc/mark/rootfns.h"
#include "gc/mark/handles.h"
#include "gc/mark/frames.h"
#include "gc/mark/stacks.h"
#include "gc/mark/statics.h"
#include "gc/mark/drain.h"
#include "gc/mark/rescan.h"

enum {
	// Ranges, and usually Ps, of one job.
	JOB_ROOTS = 64,
	// Registered stacks of one job.
	JOB_STACKS = 128,
	// Chunks of one job of uncollectable objects.
	JOB_CHUNKS = 32,
	// Words of overflow bits of one job: a few chunks of pages.
	JOB_OVERFLOW = 32,
	// The most jobs of stacks.  If JOB_ROOTS Ps in each are too few for all
	// Ps, each job has more.
	STACK_JOBS = 256,
};

// The jobs of a marking.  Written by the opener.  There is no check function,
// for the reason in drain.h.
static struct {
	// Jobs come in this order.
	uint32_t range_jobs;
	uint32_t handle_jobs; // 1; 0 when stacks are scanned again
	uint32_t static_jobs; // the same, but 1 only if static data are roots
	uint32_t stack_jobs;
	uint32_t fiber_jobs; // registered stacks
	uint32_t chunk_jobs;
	bool past_end;	    // stacks are scanned for ends of objects
	bool rescan;	    // the jobs are pages to be scanned again, not roots
	uint32_t job_procs; // Ps of one job of stacks
	// The first P of each job of stacks.  Written before work_open; the
	// list of Ps does not change in a stop.
	struct rt_proc *job_proc[STACK_JOBS];
} mark;

// ---- roots ----

static struct work_range words_range(struct roots_range r,
				     enum work_words words)
{
	return (struct work_range){.lo = r.lo,
				   .hi = r.hi,
				   .stride = sizeof(uintptr_t),
				   .words = words};
}

static struct work_range values_range(struct roots_range r,
				      const rt_value_format *f,
				      enum work_words words)
{
	return (struct work_range){.lo = r.lo,
				   .hi = r.hi,
				   .stride = f->stride,
				   .how = f,
				   .words = words};
}

static void mark_ranges(struct marker *m, size_t begin)
{
	size_t end = base_min(begin + JOB_ROOTS, roots_ranges());

	for (size_t i = begin; i < end; i++) {
		struct roots_range range = roots_range(i);
		enum work_words words =
		    range.flags == RT_ROOT_EXACT ? WORK_REFERENCES : WORK_ANY;

		m->globals_bytes += range.hi - range.lo;
		if (range.flags != ROOTS_VALUES)
			drain_range(m, words_range(range, words));
		if (range.format)
			drain_range(
			    m, values_range(range, range.format, WORK_VALUES));
	}
}

// keep_unfinished marks what a thread has allocated but not yet returned to its
// host: the large object that it is clearing, and the one that a stopper took
// for it.  Neither holds a pointer yet.
static void keep_unfinished(struct marker *m, struct rt_proc *p)
{
	const struct rt_mcache *mc = mcache_of(p);
	struct grey o;

	if (mc && mc->setting_up)
		grey_word(m, mspan_object(mc->setting_up, 0), &o);
	if (mc && mc->granted)
		grey_word(m, (uintptr_t)mc->granted, &o);
}

// scan_frames scans a part of a stack, or registers.
static void scan_frames(struct marker *m, struct roots_range range,
			enum work_words words)
{
	struct work_range row[STACKS_PART_ROWS];
	unsigned n = stacks_part_rows(&range, words, row);

	for (unsigned i = 0; i < n; i++)
		drain_range(m, row[i]);
}

// scan_fake_frames scans the frames that the address sanitizer has moved off
// p's stack and that words of rest, a stack or registers, point to.
static void scan_fake_frames(struct marker *m, const struct rt_proc *p,
			     struct roots_range rest, enum work_words words)
{
	struct roots_range frame = {.format = rest.format};

	while (roots_fake_frame(p, &rest, &frame))
		scan_frames(m, frame, words);
}

// mark_variables marks from the variables of named frames, newest first.
RT_NO_SANITIZE
static void mark_variables(struct marker *m, const rt_frame *newest)
{
	struct frames_at at = {.f = newest};
	const volatile uintptr_t *slot;

	while ((slot = frames_next(&at)) != NULL) {
		uintptr_t w = poison_word(*slot);

		m->stack_bytes += sizeof w;
		if (!grey_in_heap(m, w) || !scan_is_reference(m, w))
			continue;
		if (!work_push(&m->work, w)) {
			drain_stack(m);
			work_push(&m->work, w);
		}
	}
	drain_stack(m);
}

// stack_words returns how words of stacks and registers count.
static enum work_words stack_words(const struct marker *m)
{
	return mark.past_end   ? WORK_ENDS
	       : m->bases != 0 ? WORK_INSIDE
			       : WORK_ANY;
}

static void mark_stack(struct marker *m, const struct rt_proc *p,
		       struct roots_range stack, enum work_words words)
{
	if (!mark.past_end)
		m->stack_bytes += stack.hi - stack.lo;
	scan_frames(m, stack, words);
	scan_fake_frames(m, p, stack, words);
}

static void mark_thread(struct marker *m, struct rt_proc *p)
{
	const struct rt_mcache *mc = mcache_of(p);
	enum work_words words = stack_words(m);
	struct stacks_thread t;

	keep_unfinished(m, p);
	if (mc && !mark.past_end)
		mark_variables(m, mc->thread.frames);
	if (!stacks_of_thread(p, &t))
		return;
	scan_frames(m, t.registers, words);
	scan_fake_frames(m, p, t.registers, words);
	mark_stack(m, p, t.frames, words);
	if (t.left.hi != 0)
		mark_stack(m, p, t.left, words);
}

static void mark_threads(struct marker *m, uint32_t job)
{
	struct rt_proc *p = mark.job_proc[job];

	for (uint32_t n = mark.job_procs; p && n != 0; p = proc_next(p), n--)
		mark_thread(m, p);
}

// divide_up returns n / d, rounded up.
static uint32_t divide_up(size_t n, uint32_t d)
{
	return (uint32_t)((n + d - 1) / d);
}

// cut_procs cuts the list of Ps into jobs, so that no marker has to search for
// the beginning of a job.  Returns the number of jobs.
static uint32_t cut_procs(void)
{
	uint32_t n = 0, left = 0; // Ps that the newest job still lacks

	// The count is that of the list: no thread attaches in a stop.
	mark.job_procs =
	    (uint32_t)base_max(JOB_ROOTS, divide_up(procs.count, STACK_JOBS));
	for (struct rt_proc *p = proc_first(); p; p = proc_next(p)) {
		if (left == 0) {
			mark.job_proc[n++] = p;
			left = mark.job_procs;
		}
		left--;
	}
	return n;
}

// scan_row is drain_range for a row of a stack.  Most rows are short, so it
// leaves their words for the next drain.
static void scan_row(struct marker *m, struct work_range row)
{
	if (row.hi - row.lo > work_piece(row.stride))
		drain_range(m, row);
	else
		drain_piece(m, row);
}

// scan_fakes scans the fake frames that a row of a stack leads to.
static void scan_fakes(struct marker *m, const struct rt_stack *s,
		       struct work_range row, enum work_words words)
{
	struct roots_range rest = {.lo = row.lo, .hi = row.hi};
	struct roots_range frame = {.format = stacks_format(s)};

	while (row.words == words && stacks_fake_frame(&rest, &frame))
		scan_frames(m, frame, words);
}

static void mark_registered(struct marker *m, const struct rt_stack *s)
{
	enum work_words words = stack_words(m);
	struct work_range row[STACKS_ROWS];
	unsigned n = stacks_rows(s, words, row);

	if (n != 0 && !mark.past_end)
		m->stack_bytes += row[0].hi - row[0].lo;
	if (s->frames && !mark.past_end)
		mark_variables(m, stacks_frames(s));
	for (unsigned i = 0; i < n; i++) {
		scan_row(m, row[i]);
		scan_fakes(m, s, row[i], words);
	}
}

// mark_fibers marks from registered stacks that no thread runs on.  A stack
// that an object owns is scanned here only for ends of objects.
static void mark_fibers(struct marker *m, size_t begin)
{
	size_t end = base_min(begin + JOB_STACKS, stacks_count());

	for (size_t i = begin; i < end; i++) {
		const struct rt_stack *s = stacks_at(i);

		stacks_prefetch(i);
		if (stacks_is_root(s) || (mark.past_end && stacks_was_told(s)))
			mark_registered(m, s);
	}
	drain_stack(m);
}

static void mark_handles(struct marker *m)
{
	struct roots_range r = {0};

	while (handles_next(&r.lo, &r.hi)) {
		m->globals_bytes += r.hi - r.lo;
		drain_range(m, words_range(r, WORK_REFERENCES));
	}
}

static void mark_statics(struct marker *m)
{
	struct statics_walk walk;
	struct statics_range r;

	statics_begin(&walk, m->tid);
	while (statics_next(&walk, &r)) {
		m->globals_bytes += r.hi - r.lo;
		drain_range(m, (struct work_range){.lo = r.lo,
						   .hi = r.hi,
						   .stride = sizeof r.lo,
						   .words = WORK_COPIED});
	}
}

// mark_kept marks the uncollectable objects of a span.
static void mark_kept(struct marker *m, const struct mspan *s)
{
	for (uint32_t slot = 0; slot < s->nelems; slot++) {
		uintptr_t obj = mspan_object(s, slot);

		if (!mspan_test(s, m->alloc_line, slot))
			continue;
		if (!work_push(&m->work, obj)) {
			drain_stack(m);
			work_push(&m->work, obj);
		}
	}
	drain_stack(m);
}

// mark_chunks marks the uncollectable objects of spans that begin in some
// chunks.  An object that is being set up has no pointers yet
// (keep_unfinished).
static void mark_chunks(struct marker *m, uint32_t job)
{
	const uint64_t pages = JOB_CHUNKS * RT_CHUNK_PAGES;
	uint64_t end = base_min((job + 1) * pages, m->used >> RT_PAGE_SHIFT);

	for (uint64_t page = job * pages; page < end; page++) {
		uint32_t pageword = arena_pageword(page);

		if (pageword_kind(pageword) >= KIND_OWN &&
		    pageword_place(pageword) == 0 &&
		    pageword_state(pageword) == PAGEWORD_HEAP)
			mark_kept(m, arena_span(page));
	}
}

static uint32_t first_stack_job(void)
{
	return mark.range_jobs + mark.handle_jobs + mark.static_jobs;
}

static uint32_t first_chunk_job(void)
{
	return first_stack_job() + mark.stack_jobs + mark.fiber_jobs;
}

// mark_stacks does a job of stacks: those of threads come first.
static void mark_stacks(struct marker *m, uint32_t job)
{
	if (job < mark.stack_jobs)
		mark_threads(m, job);
	else
		mark_fibers(m, (size_t)(job - mark.stack_jobs) * JOB_STACKS);
}

// overflow_words returns the number of words of overflow bits.
static uint64_t overflow_words(const struct marker *m)
{
	return (m->used >> RT_PAGE_SHIFT) / OVERFLOW_PAGES;
}

// rescan_some scans again the pages of one word of overflow bits.  It leaves
// the opener's pages to the opener.
static void rescan_some(struct marker *m, uint64_t i)
{
	uint64_t left = 0;

	for (uint64_t x = overflow_take(i); x; x &= x - 1) {
		uint64_t page = i * OVERFLOW_PAGES + bits_ctz(x);

		if (rescan_is_openers(page))
			left |= x & -x;
		else
			rescan_page(m, page);
	}
	if (left != 0)
		overflow_leave(i, left);
}

// rescan_pages does a job of pages to be scanned again.
static void rescan_pages(struct marker *m, uint32_t job)
{
	uint64_t begin = (uint64_t)job * JOB_OVERFLOW;
	uint64_t end = base_min(begin + JOB_OVERFLOW, overflow_words(m));

	for (uint64_t i = begin; i < end; i++)
		rescan_some(m, i);
}

static void do_job(struct marker *m, uint32_t job)
{
	if (mark.rescan)
		rescan_pages(m, job);
	else if (job < mark.range_jobs)
		mark_ranges(m, (size_t)job * JOB_ROOTS);
	else if (job < mark.range_jobs + mark.handle_jobs)
		mark_handles(m);
	else if (job < first_stack_job())
		mark_statics(m);
	else if (job < first_chunk_job())
		mark_stacks(m, job - first_stack_job());
	else
		mark_chunks(m, job - first_chunk_job());
}

// ---- together ----

// begin_with begins with what work_get has returned.  Returns false if marking
// is over.
static bool begin_with(struct marker *m, enum work_next next)
{
	switch (next) {
	case WORK_JOB:
		do_job(m, m->work.job);
		return true;
	case WORK_RANGE:
		drain_range(m, m->work.range);
		return true;
	case WORK_OFFERS:
		trace_passed(m);
		return true;
	case WORK_WORDS:
		return true;
	default:
		return false;
	}
}

// take_more waits for something to mark from, and begins with it.  Returns
// false if marking is over.
static bool take_more(struct marker *m)
{
	return begin_with(m, work_get(&m->work));
}

// finish works until no marker has anything left, or for a helper until the
// marking is closed.
static void finish(struct marker *m)
{
	do {
		drain_stack(m);
		trace_pass(m);
		grey_publish_all(m);
	} while (take_more(m));
}

// ---- overflow ----

// repeat_roots calls the root callbacks again if one of them has told an object
// for which there was no room.  The stack is empty before, so something is
// marked.
static void repeat_roots(struct marker *m)
{
	if (!m->roots_again)
		return;
	m->roots_again = false;
	trace_begin_again(m, 0);
	for (size_t i = 0; i < rootfns_count(); i++)
		rootfns_call(i, &m->work.t);
	trace_end_again(m);
	finish(m);
}

// rescan_left scans again what markers have left to the opener: one object at a
// time, while no other marker is busy.
static void rescan_left(struct marker *m)
{
	for (uint64_t i = 0; i < overflow_words(m); i++)
		for (uint64_t x = overflow_take(i); x; x &= x - 1) {
			struct rescan r;

			rescan_begin(&r, i * OVERFLOW_PAGES + bits_ctz(x));
			while (rescan_next(&r, m))
				finish(m);
		}
}

// finish_overflow scans again until no page has overflowed.  Each round marks
// something new or is the last.
static void finish_overflow(struct marker *m)
{
	while (overflow_lower()) {
		repeat_roots(m);
		mark.rescan = true;
		work_add_jobs(&m->work,
			      divide_up(overflow_words(m), JOB_OVERFLOW));
		finish(m);
		mark.rescan = false;
		if (overflow_lower_left())
			rescan_left(m);
	}
}

// mark_past_end scans stacks and registers a second time, when all else is
// marked.  Nothing but past_end keeps the objects that it marks.  Those whose
// end a word equals are counted as kept by past_end; objects that they lead to
// are not.  The first scan does not look for ends: most of what it found would
// be kept by other references too.  If an end leads to an object that owns a
// stack, all stacks are scanned once more.
static void mark_past_end(struct marker *m)
{
	mark.past_end = true;
	mark.range_jobs = mark.handle_jobs = mark.static_jobs = 0;
	do {
		stacks_settle();
		work_add_jobs(&m->work, mark.stack_jobs + mark.fiber_jobs);
		finish(m);
		finish_overflow(m);
	} while (stacks_claimed());
}

// ---- the dead ----

// mark_deep_span looks for dead objects in a span of RT_KIND_DROP_DEEP, and
// marks what these reach.
static void mark_deep_span(struct marker *m, const struct mspan *s)
{
	for (uint32_t slot = 0; slot < s->nelems; slot++) {
		uintptr_t obj = mspan_object(s, slot);

		if (!drops_is_deep(s, slot))
			continue;
		if (!work_push(&m->work, obj)) {
			drain_stack(m);
			work_push(&m->work, obj);
		}
	}
	drain_stack(m);
}

static void mark_deep(struct marker *m)
{
	uint64_t page = 0;
	const struct mspan *s;

	drops.deep = true;
	while ((s = drops_next_span(&page)) != NULL)
		mark_deep_span(m, s);
	finish(m);
	finish_overflow(m);
	// Stacks that were claimed only now have not been scanned for ends.
	if (mark.past_end && stacks_claimed())
		mark_past_end(m);
	drops.deep = false;
}

// mark_dead finds what has died, and keeps it until it is dropped.
static void mark_dead(struct marker *m, struct drops_found *f)
{
	drops_find(f);
	if (f->deep)
		mark_deep(m);
	drops_keep(f);
}

// ---- one marking ----

static struct marker *marker_of(struct work *w)
{
	return (struct marker *)((char *)w - offsetof(struct marker, work));
}

// kind_counts returns the index of the first count of a kind.
static unsigned kind_counts(unsigned kind)
{
	return kind << PAGEWORD_CLASS_BITS;
}

static void marker_clear(struct marker *m)
{
	m->keeps = false;
	m->large_bytes = m->large_scanned = 0;
	m->stack_bytes = m->globals_bytes = 0;
	m->past_end_objects = m->uncounted = 0;
	m->taken = m->cpu_before = 0;
	m->npassed = 0;
	m->roots_again = false;
	for (uint32_t x = m->counted; x; x &= x - 1) {
		memset(&m->objects[kind_counts(bits_ctz(x))], 0,
		       sizeof m->objects[0] << PAGEWORD_CLASS_BITS);
		memset(m->met[bits_ctz(x)], 0, sizeof m->met[0]);
	}
	m->counted = 0;
	memset(m->kept, 0, sizeof m->kept);
}

static void open_marking(struct rt_proc *p)
{
	marker_clear(&drain.first);
	drain.first.tid = oscall_gettid();
	grey_look(&drain.first);
	drain_begin();
	mark.past_end = mark.rescan = false;
	mark.range_jobs = divide_up(roots_ranges(), JOB_ROOTS);
	mark.handle_jobs = 1;
	mark.static_jobs = statics.on;
	mark.stack_jobs = cut_procs();
	mark.fiber_jobs = divide_up(stacks_count(), JOB_STACKS);
	mark.chunk_jobs =
	    kinds_mask() >> KIND_OWN == 0
		? 0
		: divide_up(arena_used() >> RT_CHUNK_SHIFT, JOB_CHUNKS);
	work_open(&drain.first.work, p, 0);
}

// mark_roots calls the root callbacks, and then adds the jobs.  A helper that
// comes from an earlier marking takes a job at once, but no stack may be read
// before the last callback has returned.
static void mark_roots(struct marker *m)
{
	m->tracing = 0;
	for (size_t i = 0; i < rootfns_count(); i++)
		rootfns_call(i, &m->work.t);
	stacks_look_again();
	work_add_jobs(&m->work, first_chunk_job() + mark.chunk_jobs);
}

static void sum_kind(struct mark_result *r, const struct marker *m,
		     unsigned kind)
{
	for (unsigned class = 0; class < SIZECLASS_COUNT; class ++) {
		uint64_t n = m->objects[kind_counts(kind) + class];
		// Class 0 has size 0: large_bytes has its bytes.
		uint64_t bytes = n * sizeclass_table[class].size;

		r->marked_objects += n;
		r->marked_bytes += bytes;
		if (layout_scanned(kind))
			r->scan_heap += bytes;
	}
}

static void sum_objects(struct mark_result *r, const struct marker *m)
{
	for (uint32_t x = kinds_used(); x; x &= x - 1)
		sum_kind(r, m, bits_ctz(x));
}

// cpu_spent returns the CPU time of m in nanoseconds since it joined or called.
static uint64_t cpu_spent(const struct marker *m)
{
	return base_elapsed(m->cpu_before, drain_cpu(m));
}

// sum_helper adds what only helpers count.
static void sum_helper(struct mark_result *r, const struct marker *m,
		       uint64_t objects)
{
	r->helped_objects += objects;
	r->helped_cpu_ns += cpu_spent(m);
}

static void sum_up(struct mark_result *r)
{
	for (struct work *w = work_joined(); w; w = w->next) {
		const struct marker *m = marker_of(w);

		uint64_t before = r->marked_objects;

		RT_ASSERT(!m->keeps);
		RT_CHECK(grey_check(m));
		sum_objects(r, m);
		r->marked_bytes += m->large_bytes;
		r->scan_heap += m->large_scanned;
		r->markers++;
		if (m != &drain.first)
			sum_helper(r, m, r->marked_objects - before);
		r->scan_stack += m->stack_bytes;
		r->scan_globals += m->globals_bytes;
		r->past_end_objects += m->past_end_objects;
	}
	r->want_helpers = drain.worth;
}

// note_gain tells gain what this marking cost.  All markers but the first must
// be waiting.
static void note_gain(void)
{
	struct gain_marking marking = {
	    .called = drain.called,
	    .wall_ns = base_elapsed(drain.since, nanotime()),
	};

	// If no helper came, perhaps because all were busy elsewhere, the call
	// has cost nothing and gained nothing.
	if (drain.called && work_joined() == &drain.first.work)
		return;
	for (struct work *w = work_joined(); w; w = w->next) {
		const struct marker *m = marker_of(w);

		marking.words += m->taken;
		marking.cpu_ns += cpu_spent(m);
	}
	marking.words -= drain.before;
	gain_note(&gain, &marking);
}

struct mark_result mark_all(struct rt_proc *p)
{
	struct marker *m = &drain.first;
	struct mark_result r = {0};
	struct drops_found dead = {0};

	RT_ASSERT(stw_stopped());
	drops_hide();
	grey_expect(drops.loose);
	open_marking(p);
	stacks_look();
	trace_enter(&m->work.t);
	mark_roots(m);
	finish(m);
	finish_overflow(m);
	if (settings()->past_end != 0)
		mark_past_end(m);
	mark_dead(m, &dead);
	trace_leave();
	if (drain.measured)
		note_gain();
	sum_up(&r);
	r.marked_objects -= dead.objects;
	r.marked_bytes -= dead.bytes;
	r.scan_heap -= dead.scan_bytes;
	work_close(&m->work);
	RT_CHECK(overflow_check(m->used >> RT_PAGE_SHIFT));
	return r;
}

void mark_help(struct marker *m, struct rt_proc *p)
{
	enum work_next next;

	// Clear m before the thread that sums up can find it.
	marker_clear(m);
	m->tid = oscall_gettid();
	m->cpu_before = drain_cpu(m);
	if (!work_join(&m->work, p))
		return;
	trace_enter(&m->work.t);
	next = work_get(&m->work);
	// Until then the marking may be closed and the world started.  So a
	// marker that comes when all is marked must not read the heap, and must
	// not write what is being summed up.
	if (next != WORK_OVER) {
		grey_look(m);
		begin_with(m, next);
		finish(m);
	}
	trace_leave();
}
