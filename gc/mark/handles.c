// Allocates and frees words of a table.
#include "gc/mark/handles.h"

#include <string.h>

#include "runtime/base/bits.h"
#include "runtime/os/throw.h"
#include "runtime/world/stw.h"
#include "runtime/pages/arena.h"

enum {
	WORD = sizeof(rt_handle),
	// A word for each 64 bytes that the heap may have.
	HEAP_PER_WORD = 64,
	// Memory of words is made usable in steps.
	GROWTH = 64 << 10,
};

struct handles handles = {.lock = RT_MUTEX_INIT(LOCKRANK_HANDLES)};

// Words are read by markers in a stop, by rt_handle_get at any time, and
// written by their owners.
RT_INLINE uintptr_t word_load(uintptr_t at)
{
	return atomic_u64_load_relaxed((const atomic_u64 *)at);
}

RT_INLINE void word_store(uintptr_t at, uintptr_t word)
{
	atomic_u64_store_relaxed((atomic_u64 *)at, word);
}

RT_INLINE bool is_free(uintptr_t word)
{
	return word & HANDLES_FREE;
}

// A list of free words: the address of the first, or 0.
RT_INLINE uintptr_t list_pop(uintptr_t *first)
{
	uintptr_t at = *first;

	*first = word_load(at) & ~HANDLES_FREE;
	return at;
}

RT_INLINE void list_push(uintptr_t *first, uintptr_t at)
{
	word_store(at, *first | HANDLES_FREE);
	*first = at;
}

// ---- strips ----

static size_t strip_words(void)
{
	return handles.strip_bytes / WORD;
}

static size_t nstrips(void)
{
	return atomic_u64_load_relaxed(&handles.bytes) >> handles.strip_shift;
}

static struct handles_strip *strip_number(size_t i)
{
	return (struct handles_strip *)handles.strips.base + i;
}

static struct handles_strip *strip_of(uintptr_t at)
{
	return strip_number((at - handles.base) >> handles.strip_shift);
}

static uintptr_t strip_base(const struct handles_strip *s)
{
	return handles.base +
	       (size_t)(s - strip_number(0)) * handles.strip_bytes;
}

static void link_strip(struct handles_strip **list, struct handles_strip *s)
{
	s->prev = NULL;
	s->next = *list;
	if (s->next)
		s->next->prev = s;
	*list = s;
}

static void unlink_strip(struct handles_strip **list, struct handles_strip *s)
{
	if (s->prev)
		s->prev->next = s->next;
	else
		*list = s->next;
	if (s->next)
		s->next->prev = s->prev;
}

// strip_fill makes all words of a strip without memory free.
static void strip_fill(struct handles_strip *s)
{
	uintptr_t base = strip_base(s);

	RT_ASSERT(mutex_held(&handles.lock));
	s->first = 0;
	for (size_t i = strip_words(); i-- > 0;)
		list_push(&s->first, base + i * WORD);
	s->nfree = (uint32_t)strip_words();
	handles.nempty++;
	link_strip(&handles.partial, s);
	atomic_u32_store_relaxed(&s->ready, 1);
}

// strip_release releases the memory of an empty strip.
static void strip_release(struct handles_strip *s)
{
	void *base = (void *)strip_base(s);

	RT_ASSERT(mutex_held(&handles.lock) && s->nfree == strip_words());
	atomic_u32_store_relaxed(&s->ready, 0);
	unlink_strip(&handles.partial, s);
	link_strip(&handles.released, s);
	handles.nempty--;
	memset(base, 0, handles.strip_bytes);
	sysmem_release_inside(base, handles.strip_bytes);
}

// table_init makes the table, without a strip.  Returns false if the system
// refuses.
static bool table_init(void)
{
	size_t strip = base_max(RT_PAGE_SIZE, sysmem_page_size());
	size_t n = arena.reserved / HEAP_PER_WORD * WORD;

	if (!systable_init(&handles.words, n, &gauges.other_sys, "handles"))
		return false;
	if (!systable_init(&handles.strips,
			   n / strip * sizeof(struct handles_strip),
			   &gauges.other_sys, "handle strips")) {
		systable_fini(&handles.words);
		return false;
	}
	handles.strip_bytes = strip;
	handles.strip_shift = bits_ctz(strip);
	handles.base = (uintptr_t)handles.words.base;
	return true;
}

// table_grow makes another strip.  Returns false if the system refuses, or if
// the table has its greatest length.
static bool table_grow(void)
{
	size_t n, bytes;

	if (handles.base == 0 && !table_init())
		return false;
	n = nstrips() + 1;
	bytes = n * handles.strip_bytes;
	if (bytes > systable_ready(&handles.words) &&
	    !systable_grow(
		&handles.words,
		base_min(base_align_up(bytes, GROWTH), handles.words.reserved)))
		return false;
	if (bytes > systable_ready(&handles.words) ||
	    !systable_grow(&handles.strips, n * sizeof(struct handles_strip)))
		return false;
	strip_fill(strip_number(n - 1));
	// Pairs with the acquire in in_table.
	atomic_u64_store_release(&handles.bytes, bytes);
	return true;
}

// any_partial makes sure that a strip has a free word.  Returns false if there
// is no memory.
static bool any_partial(void)
{
	struct handles_strip *s = handles.released;

	if (handles.partial)
		return true;
	if (!s)
		return table_grow();
	unlink_strip(&handles.released, s);
	strip_fill(s);
	return true;
}

// ---- between strips and mcaches ----

// take moves free words from strips to mc, which has none.
static void take(struct rt_mcache *mc)
{
	RT_ASSERT(mutex_held(&handles.lock));
	while (mc->nhandles < HANDLES_BATCH && any_partial()) {
		struct handles_strip *s = handles.partial;

		if (s->nfree == strip_words())
			handles.nempty--;
		for (; s->nfree != 0 && mc->nhandles < HANDLES_BATCH;
		     mc->nhandles++) {
			list_push(&mc->handles, list_pop(&s->first));
			s->nfree--;
		}
		if (s->nfree == 0)
			unlink_strip(&handles.partial, s);
	}
}

// free_word frees a word to its strip.
static void free_word(uintptr_t at)
{
	struct handles_strip *s = strip_of(at);

	RT_ASSERT(mutex_held(&handles.lock));
	list_push(&s->first, at);
	if (s->nfree++ == 0)
		link_strip(&handles.partial, s);
	if (s->nfree != strip_words())
		return;
	handles.nempty++;
	if (handles.nempty * handles.strip_bytes > HANDLES_EMPTY)
		strip_release(s);
}

// free_words moves n words of mc to their strips.
static RT_NOINLINE void free_words(struct rt_mcache *mc, unsigned n)
{
	mutex_lock(&handles.lock);
	mc->nhandles -= n;
	for (; n != 0; n--)
		free_word(list_pop(&mc->handles));
	RT_CHECK(handles_check(&handles));
	mutex_unlock(&handles.lock);
}

void handles_flush(struct rt_mcache *mc)
{
	RT_ASSERT(mc == rt_thread_tls->mc || stw_stopped());
	if (mc->nhandles != 0)
		free_words(mc, mc->nhandles);
}

static RT_NOINLINE bool refill(struct rt_mcache *mc)
{
	mutex_lock(&handles.lock);
	take(mc);
	RT_CHECK(handles_check(&handles));
	mutex_unlock(&handles.lock);
	return mc->nhandles != 0;
}

// ---- handles ----

rt_handle *handles_new(struct rt_mcache *mc, uintptr_t obj)
{
	uintptr_t at;

	RT_ASSERT(mc == rt_thread_tls->mc);
	if (RT_UNLIKELY(mc->nhandles == 0) && !refill(mc))
		return NULL;
	mc->nhandles--;
	at = list_pop(&mc->handles);
	word_store(at, obj);
	return (rt_handle *)at;
}

// in_table tells whether an address is that of a word in the table.
RT_INLINE bool in_table(uintptr_t at)
{
	// The table's base was written before its length became more than 0, so
	// a thread that reads such a length reads the base too.  Pairs with the
	// release in table_grow.
	uint64_t bytes = atomic_u64_load_acquire(&handles.bytes);

	return bytes != 0 && at - handles.base < bytes && at % WORD == 0;
}

// strip_ready tells whether the strip of a word has memory.
static RT_NOINLINE bool strip_ready(uintptr_t at)
{
	return atomic_u32_load_relaxed(&strip_of(at)->ready);
}

// is_used tells whether an address is that of a handle.  A word that is zero
// may be in a strip that was released.
RT_INLINE bool is_used(uintptr_t at)
{
	uintptr_t word;

	if (!in_table(at))
		return false;
	word = word_load(at);
	if (word == 0)
		return strip_ready(at);
	return !is_free(word);
}

bool handles_used(const rt_handle *h)
{
	return is_used((uintptr_t)h);
}

void handles_set(rt_handle *h, uintptr_t obj)
{
	word_store((uintptr_t)h, obj);
}

bool handles_free(struct rt_mcache *mc, rt_handle *h)
{
	RT_ASSERT(mc == rt_thread_tls->mc);
	if (RT_UNLIKELY(!is_used((uintptr_t)h)))
		return false;
	list_push(&mc->handles, (uintptr_t)h);
	if (RT_UNLIKELY(++mc->nhandles == HANDLES_KEPT))
		free_words(mc, HANDLES_BATCH);
	return true;
}

bool handles_free_beside(rt_handle *h)
{
	if (!is_used((uintptr_t)h))
		return false;
	mutex_lock(&handles.lock);
	free_word((uintptr_t)h);
	mutex_unlock(&handles.lock);
	return true;
}

// ---- the table as a whole ----

static bool has_handles(const struct handles_strip *s)
{
	return atomic_u32_load_relaxed(&s->ready) && s->nfree != strip_words();
}

bool handles_next(uintptr_t *lo, uintptr_t *hi)
{
	size_t n, i;

	if (handles.base == 0)
		return false;
	n = nstrips();
	i = *lo == 0 ? 0 : (*hi - handles.base) / handles.strip_bytes;
	while (i < n && !has_handles(strip_number(i)))
		i++;
	if (i == n)
		return false;
	*lo = strip_base(strip_number(i));
	while (i < n && has_handles(strip_number(i)))
		i++;
	*hi = *lo + (i - (*lo - handles.base) / handles.strip_bytes) *
			handles.strip_bytes;
	return true;
}

void handles_fini(void)
{
	if (handles.base != 0) {
		systable_fini(&handles.words);
		systable_fini(&handles.strips);
	}
	atomic_u64_store_relaxed(&handles.bytes, 0);
	handles.base = handles.strip_bytes = handles.nempty = 0;
	handles.partial = handles.released = NULL;
}

// ---- invariants ----

// count_list adds to *n the number of strips in a list.  All of them must have
// memory, or none, as ready says.
static const char *count_list(const struct handles_strip *s, bool ready,
			      size_t *n)
{
	const struct handles_strip *prev = NULL;

	for (; s; prev = s, s = s->next) {
		if (s->prev != prev)
			return "strip of handles is in two lists";
		if (atomic_u32_load_relaxed(&s->ready) != ready)
			return "strip of handles is in the wrong list";
		if ((*n)++ == nstrips())
			return "list of strips of handles has no end";
	}
	return NULL;
}

static const char *check_strip(const struct handles_strip *s)
{
	if (s->nfree > strip_words() || (s->nfree == 0) != !s->first)
		return "free words of a strip of handles differ from their "
		       "number";
	if (s->first && s->first - strip_base(s) >= handles.strip_bytes)
		return "free word of a strip of handles is in another strip";
	return NULL;
}

const char *handles_check(const struct handles *h)
{
	const char *wrong = mutex_check(&h->lock);
	size_t partial = 0, released = 0, empty = 0, some = 0;
	uint64_t bytes = atomic_u64_load_relaxed(&h->bytes);

	if (wrong || h->base == 0)
		return wrong;
	if (bytes % h->strip_bytes != 0 || bytes > systable_ready(&h->words))
		return "handles are longer than their table";
	for (size_t i = 0; i < nstrips(); i++) {
		const struct handles_strip *s = strip_number(i);
		bool ready = atomic_u32_load_relaxed(&s->ready) != 0;

		wrong = check_strip(s);
		if (wrong)
			return wrong;
		some += ready && s->nfree != 0;
		empty += ready && s->nfree == strip_words();
		released += !ready;
	}
	if (empty != h->nempty || empty * h->strip_bytes > HANDLES_EMPTY)
		return "number of empty strips of handles is wrong";
	wrong = count_list(h->partial, true, &partial);
	if (!wrong && partial != some)
		wrong = "strip of handles is in no list";
	partial = 0;
	if (!wrong)
		wrong = count_list(h->released, false, &partial);
	if (!wrong && partial != released)
		wrong = "released strip of handles is in no list";
	return wrong;
}
