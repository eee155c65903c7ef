#include "gc/mark.h"

#include "runtime/bits.h"
#include "runtime/object.h"
#include "runtime/stw.h"
#include "runtime/throw.h"

// The one marker; too big for a stack.
static struct gcmarker solo;

static void take(struct gcmarker *m, uintptr_t entry)
{
	struct gcgrey o;

	if (entry & GCWORK_MORE)
		gcscan_more(m, entry & ~(uintptr_t)GCWORK_MORE);
	else if (gcgrey_word(m, entry, &o))
		gcscan_object(m, &o);
}

// drain works until no word is left, here or shared.
static void drain(struct gcmarker *m)
{
	uintptr_t queue[GCMARK_QUEUE];
	unsigned head = 0; // of the oldest word
	unsigned n = 0;

	for (;;) {
		while (n < GCMARK_QUEUE && gcwork_any(&m->work)) {
			uintptr_t w = gcwork_pop(&m->work);

			gcgrey_prefetch(m, w);
			queue[(head + n++) % GCMARK_QUEUE] = w;
		}
		if (n != 0) {
			n--;
			take(m, queue[head++ % GCMARK_QUEUE]);
		} else if (!gcwork_more(&m->work)) {
			return;
		}
	}
}

// push_all pushes the words of [lo, hi), draining whenever they do not fit.
static void push_all(struct gcmarker *m, uintptr_t lo, uintptr_t hi)
{
	while ((lo = gcscan_words(m, lo, hi)) != hi)
		drain(m);
}

// ---- overflow ----

// rescan_words pushes the words of a marked object that may still lead to
// something new.
RT_NO_SANITIZE
static void rescan_words(struct gcmarker *m, uintptr_t lo, uintptr_t hi)
{
	for (; lo < hi; lo += sizeof(uintptr_t)) {
		uintptr_t w = *(const uintptr_t *)lo;

		if (!gcgrey_in_heap(m, w) || gcgrey_marked(m, w))
			continue;
		if (!gcwork_push(&m->work, w & ~(uintptr_t)7)) {
			drain(m);
			gcwork_push(&m->work, w & ~(uintptr_t)7);
		}
	}
}

// rescan_page scans the marked objects again that begin in a page.
static void rescan_page(struct gcmarker *m, uint64_t page)
{
	const struct mspan *s = arena_span(page);
	uintptr_t lo = arena_page_address(page);

	for (uint32_t slot = 0; slot < s->nelems; slot++) {
		uintptr_t base = s->base + slot * s->elemsize;
		uintptr_t end =
		    mspan_is_large(s) ? mspan_limit(s) : base + s->elemsize;

		if (base >= lo && base < lo + RT_PAGE_SIZE &&
		    mspan_test(s, m->mark_line, slot))
			rescan_words(m, base,
				     base_align_down(end, sizeof(uintptr_t)));
	}
}

// drain_overflow scans again until no page has overflowed.  Each round marks
// something new or ends.
static void drain_overflow(struct gcmarker *m)
{
	uint64_t words = (m->used >> RT_PAGE_SHIFT) / 64;

	while (m->overflowed) {
		m->overflowed = false;
		for (uint64_t i = 0; i < words; i++) {
			uint64_t x =
			    atomic_u64_load_relaxed(&arena.overflow[i]);

			atomic_u64_store_relaxed(&arena.overflow[i], 0);
			for (; x; x &= x - 1)
				rescan_page(m, i * 64 + bits_ctz(x));
			drain(m);
		}
	}
}

// ---- roots ----

static void mark_ranges(struct gcmarker *m, struct gcmark_result *r)
{
	for (size_t i = 0; i < gcroots_ranges(); i++) {
		struct gcroots_range range = gcroots_range(i);

		r->scan_globals += range.hi - range.lo;
		push_all(m, range.lo, range.hi);
		drain(m);
	}
}

// keep_setting_up marks the large object that a thread is still clearing.
static void keep_setting_up(struct gcmarker *m, struct rt_proc *p)
{
	const struct rt_mcache *mc = mcache_of(p);
	struct gcgrey o;

	if (mc && mc->setting_up)
		gcgrey_word(m, mc->setting_up->base, &o);
}

static void mark_stacks(struct gcmarker *m, struct gcmark_result *r)
{
	for (struct rt_proc *p = proc_first(); p; p = p->next) {
		struct gcroots_range stack, registers;

		keep_setting_up(m, p);
		if (!gcroots_stack(p, &stack, &registers))
			continue;
		r->scan_stack += stack.hi - stack.lo;
		push_all(m, registers.lo, registers.hi);
		push_all(m, stack.lo, stack.hi);
		drain(m);
	}
}

// ---- past the end ----

// keep_past_end marks the object, if any and not marked yet, that ends where
// w points.
static void keep_past_end(struct gcmarker *m, uintptr_t w,
			  struct gcmark_result *r)
{
	uint64_t before = m->marked_objects;
	struct object o;
	struct gcgrey grey;

	if (!gcgrey_in_heap(m, w - 1) || !object_find(w - 1, &o) ||
	    o.base + o.request != w)
		return;
	if (gcgrey_word(m, o.base, &grey))
		gcscan_object(m, &grey);
	if (m->marked_objects != before)
		r->past_end_objects++;
}

RT_NO_SANITIZE
static void range_past_end(struct gcmarker *m, struct gcroots_range range,
			   struct gcmark_result *r)
{
	for (uintptr_t at = range.lo; at < range.hi; at += sizeof(uintptr_t))
		keep_past_end(m, *(const uintptr_t *)at, r);
}

// mark_past_end looks at stacks and registers a second time, when all else is
// marked, so that it can tell what is kept by this rule alone.
static void mark_past_end(struct gcmarker *m, struct gcmark_result *r)
{
	for (struct rt_proc *p = proc_first(); p; p = p->next) {
		struct gcroots_range stack, registers;

		if (!gcroots_stack(p, &stack, &registers))
			continue;
		range_past_end(m, registers, r);
		range_past_end(m, stack, r);
	}
	drain(m);
	drain_overflow(m);
}

struct gcmark_result gcmark_all(struct rt_proc *p, bool past_end)
{
	struct gcmarker *m = &solo;
	struct gcmark_result r = {0};
	uint32_t gen = epoch_sweepgen();

	RT_ASSERT(stw_stopped());
	m->base = arena.base;
	m->used = arena_used();
	m->alloc_line = epoch_alloc_line(gen);
	m->mark_line = epoch_mark_line(gen);
	m->alone = true;
	m->overflowed = false;
	m->marked_bytes = m->marked_objects = m->scanned_bytes = 0;
	gcwork_init(&m->work, p);
	mark_ranges(m, &r);
	mark_stacks(m, &r);
	drain_overflow(m);
	if (past_end)
		mark_past_end(m, &r);
	r.marked_bytes = m->marked_bytes;
	r.marked_objects = m->marked_objects;
	r.scan_heap = m->scanned_bytes;
	gcwork_release(p);
	return r;
}
