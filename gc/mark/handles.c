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

// ---- blocks ----

static size_t block_words(void)
{
	return handles.block_bytes / WORD;
}

static size_t nblocks(void)
{
	return atomic_u64_load_relaxed(&handles.bytes) >> handles.block_shift;
}

static struct handles_block *block_number(size_t i)
{
	return (struct handles_block *)handles.blocks.base + i;
}

static struct handles_block *block_of(uintptr_t at)
{
	return block_number((at - handles.base) >> handles.block_shift);
}

static uintptr_t block_base(const struct handles_block *b)
{
	return handles.base +
	       (size_t)(b - block_number(0)) * handles.block_bytes;
}

static void link_block(struct handles_block **list, struct handles_block *b)
{
	b->prev = NULL;
	b->next = *list;
	if (b->next)
		b->next->prev = b;
	*list = b;
}

static void unlink_block(struct handles_block **list, struct handles_block *b)
{
	if (b->prev)
		b->prev->next = b->next;
	else
		*list = b->next;
	if (b->next)
		b->next->prev = b->prev;
}

// block_fill makes all words of a block without memory free.
static void block_fill(struct handles_block *b)
{
	uintptr_t base = block_base(b);

	RT_ASSERT(mutex_held(&handles.lock));
	b->first = 0;
	for (size_t i = block_words(); i-- > 0;)
		list_push(&b->first, base + i * WORD);
	b->nfree = (uint32_t)block_words();
	handles.nempty++;
	link_block(&handles.partial, b);
	atomic_u32_store_relaxed(&b->ready, 1);
}

// block_release releases the memory of an empty block.
static void block_release(struct handles_block *b)
{
	void *base = (void *)block_base(b);

	RT_ASSERT(mutex_held(&handles.lock) && b->nfree == block_words());
	atomic_u32_store_relaxed(&b->ready, 0);
	unlink_block(&handles.partial, b);
	link_block(&handles.released, b);
	handles.nempty--;
	memset(base, 0, handles.block_bytes);
	sysmem_release_inside(base, handles.block_bytes);
}

// table_init makes the table, without a block.  Returns false if the system
// refuses.
static bool table_init(void)
{
	size_t block = base_max(RT_PAGE_SIZE, sysmem_page_size());
	size_t n = arena.reserved / HEAP_PER_WORD * WORD;

	if (!systable_init(&handles.words, n, &gauges.other_sys, "handles"))
		return false;
	if (!systable_init(&handles.blocks,
			   n / block * sizeof(struct handles_block),
			   &gauges.other_sys, "handle blocks")) {
		systable_fini(&handles.words);
		return false;
	}
	handles.block_bytes = block;
	handles.block_shift = bits_ctz(block);
	handles.base = (uintptr_t)handles.words.base;
	return true;
}

// table_grow makes another block.  Returns false if the system refuses, or if
// the table has its greatest length.
static bool table_grow(void)
{
	size_t n, bytes;

	if (handles.base == 0 && !table_init())
		return false;
	n = nblocks() + 1;
	bytes = n * handles.block_bytes;
	if (bytes > systable_ready(&handles.words) &&
	    !systable_grow(
		&handles.words,
		base_min(base_align_up(bytes, GROWTH), handles.words.reserved)))
		return false;
	if (bytes > systable_ready(&handles.words) ||
	    !systable_grow(&handles.blocks, n * sizeof(struct handles_block)))
		return false;
	block_fill(block_number(n - 1));
	// Pairs with the acquire in in_table.
	atomic_u64_store_release(&handles.bytes, bytes);
	return true;
}

// any_partial makes sure that a block has a free word.  Returns false if there
// is no memory.
static bool any_partial(void)
{
	struct handles_block *b = handles.released;

	if (handles.partial)
		return true;
	if (!b)
		return table_grow();
	unlink_block(&handles.released, b);
	block_fill(b);
	return true;
}

// ---- between blocks and mcaches ----

// take moves free words from blocks to mc, which has none.
static void take(struct rt_mcache *mc)
{
	RT_ASSERT(mutex_held(&handles.lock));
	while (mc->nhandles < HANDLES_BATCH && any_partial()) {
		struct handles_block *b = handles.partial;

		if (b->nfree == block_words())
			handles.nempty--;
		for (; b->nfree != 0 && mc->nhandles < HANDLES_BATCH;
		     mc->nhandles++) {
			list_push(&mc->handles, list_pop(&b->first));
			b->nfree--;
		}
		if (b->nfree == 0)
			unlink_block(&handles.partial, b);
	}
}

// put frees a word to its block.
static void put(uintptr_t at)
{
	struct handles_block *b = block_of(at);

	RT_ASSERT(mutex_held(&handles.lock));
	list_push(&b->first, at);
	if (b->nfree++ == 0)
		link_block(&handles.partial, b);
	if (b->nfree != block_words())
		return;
	handles.nempty++;
	if (handles.nempty * handles.block_bytes > HANDLES_EMPTY)
		block_release(b);
}

// put_some moves n words of mc to their blocks.
static RT_NOINLINE void put_some(struct rt_mcache *mc, unsigned n)
{
	mutex_lock(&handles.lock);
	mc->nhandles -= n;
	for (; n != 0; n--)
		put(list_pop(&mc->handles));
	RT_CHECK(handles_check(&handles));
	mutex_unlock(&handles.lock);
}

void handles_flush(struct rt_mcache *mc)
{
	RT_ASSERT(mc == rt_thread_tls->mc || stw_stopped());
	if (mc->nhandles != 0)
		put_some(mc, mc->nhandles);
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

// block_ready tells whether the block of a word has memory.
static RT_NOINLINE bool block_ready(uintptr_t at)
{
	return atomic_u32_load_relaxed(&block_of(at)->ready);
}

// is_used tells whether an address is that of a handle.  A word that is zero
// may be in a block that was released.
RT_INLINE bool is_used(uintptr_t at)
{
	uintptr_t word;

	if (!in_table(at))
		return false;
	word = word_load(at);
	if (word == 0)
		return block_ready(at);
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
		put_some(mc, HANDLES_BATCH);
	return true;
}

bool handles_free_beside(rt_handle *h)
{
	if (!is_used((uintptr_t)h))
		return false;
	mutex_lock(&handles.lock);
	put((uintptr_t)h);
	mutex_unlock(&handles.lock);
	return true;
}

// ---- the table as a whole ----

static bool has_handles(const struct handles_block *b)
{
	return atomic_u32_load_relaxed(&b->ready) && b->nfree != block_words();
}

bool handles_next(uintptr_t *lo, uintptr_t *hi)
{
	size_t n, i;

	if (handles.base == 0)
		return false;
	n = nblocks();
	i = *lo == 0 ? 0 : (*hi - handles.base) / handles.block_bytes;
	while (i < n && !has_handles(block_number(i)))
		i++;
	if (i == n)
		return false;
	*lo = block_base(block_number(i));
	while (i < n && has_handles(block_number(i)))
		i++;
	*hi = *lo + (i - (*lo - handles.base) / handles.block_bytes) *
			handles.block_bytes;
	return true;
}

void handles_fini(void)
{
	if (handles.base != 0) {
		systable_fini(&handles.words);
		systable_fini(&handles.blocks);
	}
	atomic_u64_store_relaxed(&handles.bytes, 0);
	handles.base = handles.block_bytes = handles.nempty = 0;
	handles.partial = handles.released = NULL;
}

// ---- invariants ----

// count_list adds to *n the number of blocks in a list.  All of them must have
// memory, or none, as ready says.
static const char *count_list(const struct handles_block *b, bool ready,
			      size_t *n)
{
	const struct handles_block *prev = NULL;

	for (; b; prev = b, b = b->next) {
		if (b->prev != prev)
			return "block of handles is in two lists";
		if (atomic_u32_load_relaxed(&b->ready) != ready)
			return "block of handles is in the wrong list";
		if ((*n)++ == nblocks())
			return "list of blocks of handles has no end";
	}
	return NULL;
}

static const char *check_block(const struct handles_block *b)
{
	if (b->nfree > block_words() || (b->nfree == 0) != !b->first)
		return "free words of a block of handles differ from their "
		       "number";
	if (b->first && b->first - block_base(b) >= handles.block_bytes)
		return "free word of a block of handles is in another block";
	return NULL;
}

const char *handles_check(const struct handles *h)
{
	const char *wrong = mutex_check(&h->lock);
	size_t partial = 0, released = 0, empty = 0, some = 0;
	uint64_t bytes = atomic_u64_load_relaxed(&h->bytes);

	if (wrong || h->base == 0)
		return wrong;
	if (bytes % h->block_bytes != 0 || bytes > systable_ready(&h->words))
		return "handles are longer than their table";
	for (size_t i = 0; i < nblocks(); i++) {
		const struct handles_block *b = block_number(i);
		bool ready = atomic_u32_load_relaxed(&b->ready) != 0;

		wrong = check_block(b);
		if (wrong)
			return wrong;
		some += ready && b->nfree != 0;
		empty += ready && b->nfree == block_words();
		released += !ready;
	}
	if (empty != h->nempty || empty * h->block_bytes > HANDLES_EMPTY)
		return "number of empty blocks of handles is wrong";
	wrong = count_list(h->partial, true, &partial);
	if (!wrong && partial != some)
		wrong = "block of handles is in no list";
	partial = 0;
	if (!wrong)
		wrong = count_list(h->released, false, &partial);
	if (!wrong && partial != released)
		wrong = "released block of handles is in no list";
	return wrong;
}
