#include "gc/work.h"

#include "runtime/throw.h"

static struct {
	struct lfstack full;
	struct lfstack empty;
	struct rt_mutex lock; // of what follows
	struct mspan *spans;  // all that are in use
	uint32_t nspans;
	uint32_t limit;
} work = {.lock = RT_MUTEX_INIT(LOCKRANK_WORKBUF), .limit = UINT32_MAX};

// use makes b, with its entries, the current buffer.
static void use(struct gcwork *w, struct gcworkbuf *b)
{
	w->bottom = b->entry;
	w->top = b->entry + b->n;
	w->limit = b->entry + GCWORK_ENTRIES;
}

// put_down lets go of the current buffer.
static struct gcworkbuf *put_down(struct gcwork *w)
{
	struct gcworkbuf *b =
	    (struct gcworkbuf *)((char *)w->bottom -
				 offsetof(struct gcworkbuf, entry));

	b->n = (uint64_t)(w->top - w->bottom);
	return b;
}

void gcwork_init(struct gcwork *w, struct rt_proc *p)
{
	w->p = p;
	w->first.n = 0;
	use(w, &w->first);
}

// add_span cuts a new span into empty buffers.
static bool add_span(struct rt_proc *p)
{
	struct mspan *s = NULL;
	char *base;

	rt_lock(&work.lock);
	if (work.nspans < work.limit)
		s = mheap_alloc_manual(p, GCWORK_SPAN_PAGES, MSPAN_WORK);
	if (s) {
		s->next = work.spans;
		work.spans = s;
		work.nspans++;
	}
	rt_unlock(&work.lock);
	if (!s)
		return false;
	base = (char *)s->base;
	for (size_t i = 0; i < GCWORK_SPAN_PAGES * RT_PAGE_SIZE;
	     i += GCWORK_BUF_BYTES) {
		struct gcworkbuf *b = (struct gcworkbuf *)(base + i);

		b->n = 0;
		lfstack_push(&work.empty, &b->node);
	}
	return true;
}

bool gcwork_spill(struct gcwork *w)
{
	struct lfnode *empty = lfstack_pop(&work.empty);

	if (!empty && add_span(w->p))
		empty = lfstack_pop(&work.empty);
	if (!empty)
		return false;
	lfstack_push(&work.full, &put_down(w)->node);
	use(w, (struct gcworkbuf *)empty);
	return true;
}

bool gcwork_more(struct gcwork *w)
{
	struct lfnode *full = lfstack_pop(&work.full);

	if (!full)
		return false;
	lfstack_push(&work.empty, &put_down(w)->node);
	use(w, (struct gcworkbuf *)full);
	return true;
}

void gcwork_release(struct rt_proc *p)
{
	struct mspan *next;

	if (!lfstack_empty(&work.full))
		rt_throw("non-empty mark queue after mark");
	lfstack_reset(&work.empty);
	rt_lock(&work.lock);
	for (struct mspan *s = work.spans; s; s = next) {
		next = s->next;
		mheap_free_manual(p, s);
	}
	work.spans = NULL;
	work.nspans = 0;
	rt_unlock(&work.lock);
}

void gcwork_limit(uint32_t nspans)
{
	rt_lock(&work.lock);
	work.limit = nspans;
	rt_unlock(&work.lock);
}
