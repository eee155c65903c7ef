// grey.h - from a word to a marked object: the one place that marks.
//
// Go: greyobject, findObject (mgcmark.go, mbitmap.go).
//
// A word's granule has a bit in the mark line and one in the alloc line of its
// page.  If the mark bit is set, nothing else is read.  If the mark bit is
// clear and the alloc bit is set, the word points into the first whole granule
// of an allocated object.  The object's base is the word rounded down, and the
// pageword says what to scan.  If both bits are clear, the word is interior,
// stale or no pointer at all.  Then the pageword and a division find the slot,
// and its alloc bit decides.  So a free slot is never marked, whatever the
// word.
//
// Objects of 8 bytes share granules.  Their bits are elsewhere, so a word that
// points to one needs the division, too.  An object of 24 bytes may begin 8
// bytes before the granule of its bit, and a guarded object may begin inside
// that granule.  The base of such an object is put right before the object is
// scanned.
//
// A marker that is alone stores marks at once.  Beside others it keeps back the
// marks of the markwords it used last.  One locked instruction sets all marks
// of a markword, when the marker needs the entry or is about to wait.  Such an
// instruction costs as much as all other work for a small object.  So two
// markers may both find an object unmarked and scan it.  The one that publishes
// its mark later subtracts the object from its count.  Large objects are never
// scanned twice: their marks are set at once.  Marks of the 8-byte class, whose
// markwords are elsewhere, are also set at once.  So are the marks of kinds
// with RT_KIND_SERIAL or RT_KIND_ONCE, because only one marker may trace such
// an object.
//
// A word from a stack refers to an object with RT_KIND_BASE wherever in the
// object it points.  It is replaced by the object's base before it is pushed
// (grey_from_stack), so all words are treated alike from there on.
#ifndef GC_MARK_GREY_H
#define GC_MARK_GREY_H

#include "runtime/os/schedpoint.h"
#include "gc/mark/layout.h"
#include "gc/mark/work.h"

// Objects are counted by class and kind: one addition an object.
enum { GREY_COUNTS = 1 << (KIND_BITS + PAGEWORD_CLASS_BITS) };

RT_INLINE unsigned grey_index(uint32_t pageword)
{
	return pageword % GREY_COUNTS;
}
static_assert((GREY_COUNTS & (GREY_COUNTS - 1)) == 0 &&
		  (int)PAGEWORD_KIND_SHIFT == (int)PAGEWORD_CLASS_BITS,
	      "class and kind are the lowest bits of a pageword");

// What marking a word found.
enum grey_result {
	GREY_NOTHING, // no object, or marked before
	GREY_LEAF,    // newly marked, has no pointers
	GREY_SMALL,   // newly marked, some granules to be scanned
	GREY_WIDE,    // newly marked, words to be scanned, any size
	GREY_TRACED,  // newly marked, to be traced by its layout
	GREY_CALLED,  // newly marked, to be traced by its kind's callback
	GREY_BITS,    // newly marked, the words that its bits name are scanned
	GREY_FLAGGED, // only in grey_found: grey_settle must look
};

// The largest object that counts as small here, in bytes.  A loop of a few
// steps scans it.
enum { GREY_SMALL_BYTES = 96 };

// Marks of one markword that only their marker sees.  grey_check checks each.
struct grey_kept {
	atomic_u64 *markword; // NULL: none
	uint64_t bits;
};

// Markwords whose marks a marker keeps back: enough for the subtrees that a
// queue of eight words is busy with at a time.
enum { GREY_KEPT_LOG2 = 7, GREY_KEPT = 1 << GREY_KEPT_LOG2 };

// An object that was just marked and has to be scanned.
struct grey {
	uintptr_t base;
	uint64_t size; // bytes to scan
	unsigned kind; // if it is traced
};

// What a marker remembers of the last type that it met in objects of a kind and
// size, if 64 bits of a plain bitmap describe all their references (trace.c).
struct grey_met {
	RT_CACHE_ALIGNED uint64_t size; // of the objects; 0: none was met
	uint64_t mask;	 // of the header word; 0: the kind has one type
	uint64_t header; // what the objects have in these bits
	uint32_t offset; // of the header word
	uint32_t lo, hi; // [lo, hi): references side by side, an even number
	uint64_t odd;	 // bits of the others
};

enum { GREY_MET = 4 }; // sizes of a kind that are remembered

// Objects that a marker collects for the opener before it passes them on.
enum { GREY_PASSED = 64 };

// Words that a marker copies at once from where memory may be unmapped.
enum { GREY_COPY = 2048 };

// One marker, on cache lines of its own.  Only its thread writes it, except for
// what other markers give it in work.  The opener reads passed while the marker
// sleeps in work_offer, and the counts when marking is over.  work_check checks
// the part that others give work to, grey_check what is kept.
struct marker {
	RT_CACHE_ALIGNED uintptr_t base; // of the heap
	uint64_t used;			 // bytes of the heap
	atomic_u64 *markwords;		 // of the heap, from its start on
	bool halves;			 // objects of 24 bytes may exist
	bool typed;			 // typed objects may exist
	uint32_t bases;			 // bits of grey_bases whose kinds exist
	unsigned alloc_line;
	unsigned mark_line;
	bool keeps;		       // some entry of kept is in use
	uint64_t taken;		       // entries, in this marking
	uint32_t tid;		       // kernel's id of its thread
	uint64_t cpu_before;	       // CPU ns before it joined or called
	uint64_t large_bytes;	       // marked
	uint64_t large_scanned;	       // bytes of those scanned
	uint64_t stack_bytes;	       // of stacks and named variables scanned
	uint64_t globals_bytes;	       // of other words scanned as roots
	uint64_t past_end_objects;     // kept by a word equal to their end
	uint64_t uncounted;	       // objects that another one counted too
	uint64_t objects[GREY_COUNTS]; // marked, by grey_index
	uint32_t counted;	       // kinds to clear in objects and in met
	struct grey_kept kept[GREY_KEPT];
	uintptr_t tracing; // the object whose references are told; 0: roots
	bool roots_again;  // root callbacks must be called again
	uintptr_t copy[GREY_COPY]; // of static data
	struct grey_met met[KIND_COUNT][GREY_MET];
	uint32_t npassed;
	struct grey passed[GREY_PASSED]; // objects that the opener will trace
	struct work work;
};

// grey_init makes no kind known.  grey_add_kind makes a kind known to markers,
// after its layout was set and before it exists.
void grey_init(void);
void grey_add_kind(unsigned kind);

// grey_expect tells markers whether some dead objects may be loose (drops.h).
// The world must be stopped, and no marker may be marking.
void grey_expect(bool loose);

// grey_look copies to m what markers need to know of the heap in this stop.
void grey_look(struct marker *m);

RT_INLINE bool grey_in_heap(const struct marker *m, uintptr_t w)
{
	return (uint64_t)(w - m->base) < m->used;
}

// grey_markword returns the markword that has the bit of w's granule.
RT_INLINE atomic_u64 *grey_markword(const struct marker *m, uintptr_t w)
{
	enum { PAIR = sizeof(struct linewords) };

	// 64 granules have a pair of linewords, so one shift serves for the
	// division and the multiplication.
	uint64_t offset = (uint64_t)(w - m->base) / (64 * RT_GRANULE / PAIR);

	return (atomic_u64 *)((char *)m->markwords + (offset & ~(PAIR - 1ull)));
}

// grey_allocword returns the allocword beside a markword.
RT_INLINE atomic_u64 *grey_allocword(atomic_u64 *markword)
{
	return (atomic_u64 *)((uintptr_t)markword ^ sizeof(atomic_u64));
}

RT_INLINE uint64_t grey_bit(uintptr_t w)
{
	return UINT64_C(1) << ((w >> RT_GRANULE_SHIFT) % 64);
}

// grey_prefetch prefetches what marking and scanning w will touch: the
// pageword, the pair of linewords, and the object at w and 32 bytes on.
RT_INLINE void grey_prefetch(const struct marker *m, uintptr_t w)
{
	uint64_t page = (uint64_t)(w - m->base) >> RT_PAGE_SHIFT;

	const atomic_u64 *markword = grey_markword(m, w);

	__builtin_prefetch(markword);
	__builtin_prefetch(&arena.pagewords[page]);
	__builtin_prefetch((const void *)w);
	__builtin_prefetch((const void *)(w + 32));
}

// grey_interior marks the object that w points into, which it finds by
// division.
enum grey_result grey_interior(struct marker *m, uintptr_t w, struct grey *o);

// grey_wide finds what to scan of an object that is large, or has pointers
// and is not small.
enum grey_result grey_wide(struct marker *m, uint32_t pageword, struct grey *o);

// grey_publish sets the marks kept back in e, so that other markers see them.
// From then on e is for markword, or free if markword is NULL.
void grey_publish(struct marker *m, struct grey_kept *e, atomic_u64 *markword);

// grey_publish_all sets all marks that m keeps back.  A marker must call it
// before it waits.
void grey_publish_all(struct marker *m);

// grey_publish_object sets the mark of the object at base, if m keeps it back.
void grey_publish_object(struct marker *m, uintptr_t base);

// grey_check returns NULL if all invariants of the marks that m keeps back
// hold, otherwise what does not.  The marker's own thread must call it, or
// marking must be over.  Debug builds call it when they sum up what was marked.
const char *grey_check(const struct marker *m);

// grey_set_once sets a bit beside other markers.  Returns false if it was set.
bool grey_set_once(atomic_u64 *markword, uint64_t bit);

// grey_hash returns which entry of kept is for a markword.
RT_INLINE unsigned grey_hash(const atomic_u64 *markword)
{
	uint64_t hash = (uintptr_t)markword * UINT64_C(0x9e3779b97f4a7c15);

	return (unsigned)(hash >> (64 - GREY_KEPT_LOG2));
}

// grey_entry returns the entry for a markword.  It may hold marks of another
// markword.
RT_INLINE struct grey_kept *grey_entry(struct marker *m,
				       const atomic_u64 *markword)
{
	return &m->kept[grey_hash(markword)];
}

// grey_keep sets a bit of a markword in m alone; other markers see it after
// grey_publish.  Returns false if m keeps that bit already.
RT_INLINE bool grey_keep(struct marker *m, atomic_u64 *markword, uint64_t bit)
{
	struct grey_kept *e = grey_entry(m, markword);

	if (RT_UNLIKELY(e->markword != markword))
		grey_publish(m, e, markword);
	if (e->bits & bit)
		return false;
	e->bits |= bit;
	return true;
}

// grey_set sets a bit of a markword that was read as old.  Returns false if m
// sees that the object is marked already.
RT_INLINE bool grey_set(struct marker *m, atomic_u64 *markword, uint64_t old,
			uint64_t bit, uint32_t pageword)
{
	if (old & bit)
		return false;
	if (RT_LIKELY(m->work.alone)) {
		schedpoint(SCHED_GREY_SET);
		atomic_u64_store_relaxed(markword, old | bit);
		return true;
	}
	return pageword_class(pageword) > 1 ? grey_keep(m, markword, bit)
					    : grey_set_once(markword, bit);
}

// Granules to scan of a small object, by grey_index; 0 for all others.
RT_GLOBAL uint8_t grey_granules[GREY_COUNTS];

// What marking finds for all other objects, by grey_index: GREY_LEAF,
// GREY_TRACED, GREY_CALLED, GREY_BITS, GREY_FLAGGED where grey_settle must
// look, or GREY_NOTHING where grey_wide must look.
RT_GLOBAL uint8_t grey_found[GREY_COUNTS];

// Bit k: kind k has RT_KIND_BASE.
RT_GLOBAL uint32_t grey_bases;

// grey_settle ends the marking of an object whose entry in grey_found is
// GREY_FLAGGED.  w lies in its first whole granule, and grey_set has set its
// mark.  The mark is taken back if w does not refer to the object, and shown to
// the other markers at once if only one of them may trace the object.
enum grey_result grey_settle(struct marker *m, uintptr_t w, uint32_t pageword,
			     struct grey *o);

// grey_count counts an object that was just marked, that w refers to, and that
// has this pageword.  It sets *o to what must be scanned.
//
// Here and below, a function that is not inline gets a struct grey of its own,
// so that *o stays in registers.
RT_INLINE enum grey_result grey_count(struct marker *m, uintptr_t w,
				      uint32_t pageword, struct grey *o)
{
	unsigned i = grey_index(pageword);
	enum grey_result found;
	struct grey wide;

	m->objects[i]++;
	o->base = w & ~(uintptr_t)(RT_GRANULE - 1);
	o->size = grey_granules[i] * (uint64_t)RT_GRANULE;
	if (RT_LIKELY(o->size != 0))
		return GREY_SMALL;
	found = (enum grey_result)grey_found[i];
	if (found == GREY_LEAF)
		return GREY_LEAF;
	if (found == GREY_TRACED || found == GREY_CALLED) {
		o->size = sizeclass_table[pageword_class(pageword)].size;
		o->kind = pageword_kind(pageword);
		return found;
	}
	if (found == GREY_BITS) {
		o->size = sizeclass_table[pageword_class(pageword)].size;
		return GREY_BITS;
	}
	wide.base = o->base;
	found = found == GREY_FLAGGED ? grey_settle(m, w, pageword, &wide)
				      : grey_wide(m, pageword, &wide);
	*o = wide;
	return found;
}

// grey_word marks the allocated object that w refers to, and counts it.  It
// sets *o to what must be scanned.  w must be inside the heap.  Objects
// without GREY_FLAGGED pay nothing for those that have it.
RT_INLINE enum grey_result grey_word(struct marker *m, uintptr_t w,
				     struct grey *o)
{
	uint64_t bit = grey_bit(w);
	atomic_u64 *markword = grey_markword(m, w);
	uint64_t old = atomic_u64_load_relaxed(markword);
	uint32_t pageword;

	if (old & bit)
		return GREY_NOTHING;
	if (!(atomic_u64_load_relaxed(grey_allocword(markword)) & bit)) {
		struct grey inside;
		enum grey_result found = grey_interior(m, w, &inside);

		*o = inside;
		return found;
	}
	pageword = arena_pageword((uint64_t)(w - m->base) >> RT_PAGE_SHIFT);
	if (!grey_set(m, markword, old, bit, pageword))
		return GREY_NOTHING;
	return grey_count(m, w, pageword, o);
}

// grey_unmarked tells whether w refers to an object whose mark is not set, even
// if m or another marker keeps the mark back.  w must be inside the heap.
bool grey_unmarked(const struct marker *m, uintptr_t w);

// grey_resolve returns the base of the object that w points into.  Returns w if
// there is none.  w must be inside the heap.
uintptr_t grey_resolve(const struct marker *m, uintptr_t w);

// grey_kind returns the kind of objects in the page of w.  w must be inside the
// heap.
RT_INLINE unsigned grey_kind(const struct marker *m, uintptr_t w)
{
	return pageword_kind(
	    arena_pageword((uint64_t)(w - m->base) >> RT_PAGE_SHIFT));
}

// grey_from_stack returns the word to push for a word w of a stack.  On a stack
// any pointer into an object refers to the object.  So where that makes a
// difference, the result is the object's base.
RT_INLINE uintptr_t grey_from_stack(const struct marker *m, uintptr_t w)
{
	return m->bases >> grey_kind(m, w) & 1 ? grey_resolve(m, w) : w;
}

// grey_white tells whether the bit of w's granule is that of an allocated
// object that is not marked.
RT_INLINE bool grey_white(const struct marker *m, uintptr_t w)
{
	atomic_u64 *markword = grey_markword(m, w);

	return atomic_u64_load_relaxed(grey_allocword(markword)) &
	       ~atomic_u64_load_relaxed(markword) & grey_bit(w);
}

// grey_marked tells whether the object of w is known to be marked.  The test is
// cheap: for an interior word it may return false though the object is marked.
RT_INLINE bool grey_marked(const struct marker *m, uintptr_t w)
{
	return atomic_u64_load_relaxed(grey_markword(m, w)) & grey_bit(w);
}

#endif
