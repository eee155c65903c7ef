// Keeps one word a chunk, and searches the chunks with two cursors.
#include "runtime/pages/scavindex.h"

#include "runtime/os/throw.h"

// The word of a chunk that was never used is zero: no page is in use, and none
// is to be scavenged.
struct scavchunk {
	uint32_t gen;		   // cycle in which last_in_use was noted
	uint32_t in_use : 14;	   // pages allocated
	uint32_t tables_gone : 1;  // its tables have no memory
	uint32_t last_in_use : 16; // pages allocated when gen began
	uint32_t has_idle : 1;	   // may have free pages that are not scavenged
};
static_assert(sizeof(struct scavchunk) == 8, "one word a chunk");

static struct scavchunk *chunk_at(const struct scavindex *s, uint32_t chunk)
{
	return (struct scavchunk *)s->table.base + chunk;
}

// check_chunk checks the word of one chunk.  gen may be any number, because the
// numbers of cycles wrap.
static const char *check_chunk(const struct scavindex *s, uint32_t i)
{
	const struct scavchunk *c = chunk_at(s, i);

	if (c->in_use > RT_CHUNK_PAGES || c->last_in_use > RT_CHUNK_PAGES)
		return "chunk has more pages in use than pages";
	if (c->has_idle && c->in_use == RT_CHUNK_PAGES)
		return "chunk is full but has pages to scavenge";
	if (c->tables_gone && c->in_use != 0)
		return "chunk has pages in use but no tables";
	if (c->has_idle && i >= s->cursor_force)
		return "chunk above the cursor has pages to scavenge";
	return NULL;
}

// check_fields checks all but the words of the chunks.
static const char *check_fields(const struct scavindex *s)
{
	if (s->nchunks * sizeof(struct scavchunk) > systable_ready(&s->table))
		return "scavenge index is longer than its table";
	if (s->cursor_bg > s->nchunks || s->cursor_force > s->nchunks ||
	    s->free_high > s->nchunks)
		return "cursor of the scavenge index is beyond the heap";
	return NULL;
}

// written checks what a change of one chunk writes.
static const char *written(const struct scavindex *s, uint32_t chunk)
{
	const char *wrong = check_fields(s);

	return wrong ? wrong : check_chunk(s, chunk);
}

bool scavindex_init(struct scavindex *s, uint32_t max_chunks)
{
	*s = (struct scavindex){0};
	return systable_init(&s->table, max_chunks * sizeof(struct scavchunk),
			     &gauges.gc_misc_sys, "scavenge index");
}

bool scavindex_reserve(struct scavindex *s, uint32_t nchunks)
{
	return systable_grow(&s->table, nchunks * sizeof(struct scavchunk));
}

void scavindex_grow(struct scavindex *s, uint32_t nchunks)
{
	if (nchunks * sizeof(struct scavchunk) > systable_ready(&s->table))
		throw_value("scavindex_grow: no room", "nchunks", nchunks);
	s->nchunks = nchunks;
	RT_CHECK(check_fields(s));
}

void scavindex_fini(struct scavindex *s)
{
	systable_fini(&s->table);
}

unsigned scavindex_in_use(const struct scavindex *s, uint32_t chunk)
{
	return chunk_at(s, chunk)->in_use;
}

// note_cycle notes how full the chunk was when the cycle began.  The first
// change of the chunk in a cycle does that.
static void note_cycle(const struct scavindex *s, struct scavchunk *c)
{
	if (c->gen == s->gen)
		return;
	c->gen = s->gen;
	c->last_in_use = c->in_use;
}

void scavindex_alloc(struct scavindex *s, uint32_t chunk, unsigned npages)
{
	struct scavchunk *c = chunk_at(s, chunk);

	if (c->in_use + npages > RT_CHUNK_PAGES)
		throw_value("scavindex_alloc: chunk overflows", "in_use",
			    c->in_use);
	note_cycle(s, c);
	c->in_use += npages;
	c->tables_gone = 0;
	if (c->in_use == RT_CHUNK_PAGES)
		c->has_idle = 0;
	RT_CHECK(written(s, chunk));
}

void scavindex_free(struct scavindex *s, uint32_t chunk, unsigned npages)
{
	struct scavchunk *c = chunk_at(s, chunk);

	if (c->in_use < npages)
		throw_value("scavindex_free: chunk underflows", "in_use",
			    c->in_use);
	note_cycle(s, c);
	c->in_use -= npages;
	c->has_idle = 1;
	if (s->free_high <= chunk)
		s->free_high = chunk + 1;
	if (s->cursor_force <= chunk)
		s->cursor_force = chunk + 1;
	RT_CHECK(written(s, chunk));
}

static bool eligible(const struct scavindex *s, const struct scavchunk *c,
		     bool force)
{
	if (!c->has_idle)
		return false;
	if (force)
		return true;
	if (c->gen == s->gen && c->last_in_use >= SCAVINDEX_HIGH)
		return false;
	return c->in_use < SCAVINDEX_HIGH;
}

uint32_t scavindex_find(struct scavindex *s, uint32_t below, bool force)
{
	uint32_t *cursor = force ? &s->cursor_force : &s->cursor_bg;
	// A search that begins below the cursor has not looked at the chunks in
	// between, so it must not move the cursor.
	uint32_t *from = below < *cursor ? &below : cursor;

	// The chunk found stays below the cursor, because it may have more
	// pages than the caller takes at once.
	while (*from > 0) {
		if (eligible(s, chunk_at(s, *from - 1), force))
			return *from - 1;
		--*from;
	}
	return SCAVINDEX_NONE;
}

void scavindex_empty(struct scavindex *s, uint32_t chunk)
{
	chunk_at(s, chunk)->has_idle = 0;
	RT_CHECK(written(s, chunk));
}

bool scavindex_tables_gone(const struct scavindex *s, uint32_t chunk)
{
	return chunk_at(s, chunk)->tables_gone;
}

void scavindex_release_tables(struct scavindex *s, uint32_t chunk)
{
	chunk_at(s, chunk)->tables_gone = 1;
	RT_CHECK(written(s, chunk));
}

void scavindex_next_cycle(struct scavindex *s)
{
	s->gen++;
	if (s->cursor_bg < s->free_high)
		s->cursor_bg = s->free_high;
	s->free_high = 0;
	RT_CHECK(scavindex_check(s));
}

const char *scavindex_check(const struct scavindex *s)
{
	const char *wrong = systable_check(&s->table);

	if (!wrong)
		wrong = check_fields(s);
	for (uint32_t i = 0; i < s->nchunks && !wrong; i++)
		wrong = check_chunk(s, i);
	return wrong;
}
