// Objects of one size, cut from persistent memory.
#include "runtime/os/fixalloc.h"

#include <string.h>

#include "runtime/os/throw.h"

static_assert(sizeof(struct fixalloc_free) == 8, "the smallest object");

void fixalloc_init(struct fixalloc *f, size_t size, size_t align, bool zero,
		   atomic_u64 *stat)
{
	if (size < sizeof(struct fixalloc_free) || size > FIXALLOC_CHUNK)
		throw_value("fixalloc_init: bad size", "size", size);
	if (align < _Alignof(struct fixalloc_free) || !base_is_pow2(align) ||
	    size % align != 0)
		throw_value("fixalloc_init: bad alignment", "align", align);
	*f = (struct fixalloc){
	    .size = size, .align = align, .zero = zero, .stat = stat};
}

// check_fields checks f without following the list.
static const char *check_fields(const struct fixalloc *f)
{
	if (f->size < sizeof(struct fixalloc_free) || f->size > FIXALLOC_CHUNK)
		return "fixalloc has an impossible size";
	if (!base_is_pow2(f->align) || f->size % f->align != 0)
		return "fixalloc has an impossible alignment";
	if (!f->stat)
		return "fixalloc has no gauge";
	if (f->nchunk > FIXALLOC_CHUNK || f->nchunk % f->size != 0 ||
	    (f->nchunk != 0 && !f->chunk))
		return "rest of a fixalloc's chunk is not whole objects";
	if (f->inuse % f->size != 0 || f->inuse > gauge_load(f->stat))
		return "fixalloc has more bytes in use than mapped";
	return NULL;
}

// check_free checks an object that is free.
static const char *check_free(const struct fixalloc *f,
			      const struct fixalloc_free *p)
{
	return (uintptr_t)p % f->align != 0
		   ? "free object of a fixalloc is not aligned"
		   : NULL;
}

static void *take_freed(struct fixalloc *f)
{
	struct fixalloc_free *p = f->list;

	RT_CHECK(check_free(f, p));
	f->list = atomic_ptr_load_relaxed(&p->next);
	if (f->zero)
		memset(p, 0, f->size);
	return p;
}

// take_fresh cuts the next object off the chunk, which is zeroed.  Returns NULL
// if the system refuses a new chunk.
static void *take_fresh(struct fixalloc *f)
{
	// A chunk is a multiple of the size, so nothing is left over.
	if (f->nchunk == 0) {
		size_t n = FIXALLOC_CHUNK - FIXALLOC_CHUNK % f->size;
		char *chunk = persistent_alloc(n, f->align, f->stat);

		if (!chunk)
			return NULL;
		f->chunk = chunk;
		f->nchunk = n;
	}
	void *p = f->chunk;
	f->chunk += f->size;
	f->nchunk -= f->size;
	return p;
}

void *fixalloc_alloc(struct fixalloc *f)
{
	void *p = f->list ? take_freed(f) : take_fresh(f);

	if (p)
		f->inuse += f->size;
	RT_CHECK(check_fields(f));
	return p;
}

void fixalloc_free(struct fixalloc *f, void *p)
{
	struct fixalloc_list one = {0};

	fixalloc_list_add(&one, p);
	fixalloc_free_list(f, &one);
}

void fixalloc_free_list(struct fixalloc *f, const struct fixalloc_list *l)
{
	uint64_t bytes = l->n * f->size;

	if (l->n == 0)
		return;
	if (f->inuse < bytes)
		throw_value("fixalloc_free: more than is in use", "size",
			    bytes);
	f->inuse -= bytes;
	// Pairs with the acquire in lines_of_eight.
	atomic_ptr_store_release(&l->last->next, f->list);
	f->list = l->first;
	RT_CHECK(check_fields(f));
	RT_CHECK(check_free(f, f->list));
}

// check_list checks the free objects.  f->stat counts the bytes of all chunks,
// so the list cannot have more objects than fit in these bytes.
static const char *check_list(const struct fixalloc *f)
{
	uint64_t most = gauge_load(f->stat) / f->size;
	uint64_t n = 0;

	for (const struct fixalloc_free *p = f->list; p;
	     p = atomic_ptr_load_relaxed(&p->next)) {
		const char *wrong = check_free(f, p);

		if (wrong)
			return wrong;
		if (n++ == most)
			return "list of a fixalloc has no end";
	}
	return NULL;
}

const char *fixalloc_check(const struct fixalloc *f)
{
	const char *wrong = check_fields(f);

	return wrong ? wrong : check_list(f);
}
