/*
 * trace.h - for callbacks that tell references: those of an object
 * (rt_trace_fn), or roots (rt_roots_fn).
 *
 * Only such a callback may call these functions, with the tracer that it was
 * given, and only until it returns.  None of them blocks, polls or allocates
 * from the heap.  Any thread may call rt_tracer_self.
 */
#ifndef RT_TRACE_H
#define RT_TRACE_H

#include <rt/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * How a value refers to an object.  A value is one word; with stride 16 it is
 * two words, a value word and a tag word.  The tested word is test_at words
 * behind the value word.  The value is a reference if
 *
 *   (tested & test_mask) == test_bits  and  min <= tested <= max.
 *
 * Its address is ((value word & addr_mask) << shift) + base; with a negative
 * shift it is shifted to the right.  An address that lies in no object is
 * ignored, as everywhere.
 *
 * min and max are unsigned and inclusive.
 *
 * A kind, a type, a registered range (rt_roots_add_values), a registered stack
 * (rt_stack_desc), and all stacks with registers (rt_config.stack_format) can
 * each have a format.
 *
 * A format is "in order" if stride is 8 or 16, shift is from -16 to 16, test_at
 * is 0 or, with stride 16, 1 or -1, and spare and flags are 0.  The other
 * fields may have any value: if no word meets the test, there are no
 * references.
 *
 * With stride 16 a range of values is a row of elements of 16 bytes that begins
 * at the low end of the range.  The value word of an element is its first word,
 * or its second if test_at is -1.
 */
typedef struct rt_value_format {
	uint64_t test_mask;
	uint64_t test_bits;
	uint64_t min;
	uint64_t max;
	uint64_t addr_mask;
	uint64_t base;
	int8_t shift;	/* -16 to 16 */
	uint8_t stride; /* bytes of a value: 8 or 16 */
	int8_t test_at; /* 0; with stride 16 also 1 and -1 */
	uint8_t spare;	/* 0 */
	uint32_t flags; /* 0 */
} rt_value_format;

RT_ABI_ASSERT_(sizeof(rt_value_format) == 56, "rt_value_format is ABI");

/* An argument of the macros below.  It may have any type of integer, or be an
 * enum.  Without the conversion C++ would refuse some of these in braces. */
#define RT_U64_(x) (UINT64_C(0) | (x))

/* clang-format off */
/* Every word may be a reference, whatever its low bits are, as in RT_WORDS. */
#define RT_FORMAT_PLAIN \
	{ 0, 0, 0, UINT64_MAX, UINT64_MAX, 0, 0, 8, 0, 0, 0 }
/* A word is a reference if (word & mask) == bits. */
#define RT_FORMAT_LOW_TAG(mask, bits) \
	{ RT_U64_(mask), RT_U64_(bits), 0, UINT64_MAX, ~RT_U64_(mask), \
	  0, 0, 8, 0, 0, 0 }
/* In NaN boxing, references are the words from lo to hi, with 48 address bits.
 * lo and hi are whole words, including tag bits; hi itself is a reference. */
#define RT_FORMAT_NAN_BOX(lo, hi) \
	{ 0, 0, RT_U64_(lo), RT_U64_(hi), UINT64_C(0xffffffffffff), \
	  0, 0, 8, 0, 0, 0 }
/* A value is two words, value and tag.  It is a reference if (tag & mask) ==
 * bits ... */
#define RT_FORMAT_PAIR(mask, bits) \
	{ RT_U64_(mask), RT_U64_(bits), 0, UINT64_MAX, UINT64_MAX, \
	  0, 0, 16, 1, 0, 0 }
/* ... or if its tag is from lo to hi. */
#define RT_FORMAT_PAIR_RANGE(lo, hi) \
	{ 0, 0, RT_U64_(lo), RT_U64_(hi), UINT64_MAX, 0, 0, 16, 1, 0, 0 }
/* clang-format on */

/*
 * ---- What inline tracing fixes into the ABI ----
 *
 * An inline function tests by one comparison whether a word may be a reference,
 * and then pushes it.  limit equals top if there is no room, and whenever
 * something other than marking asks.  Then each reference goes through
 * rt_trace_slow_.  A host touches none of the fields.
 */
struct rt_trace_entry {
	uintptr_t word;
};
struct rt_tracer {
	const char *base; /* of the heap */
	size_t used;	  /* bytes of it */
	struct rt_trace_entry *top;
	struct rt_trace_entry *limit;
	uint8_t names; /* 1: rt_trace_name has an effect */
	uint8_t first; /* rt_trace_first */
	uint8_t mode;  /* what asks */
	uint8_t spare[5];
};
typedef struct rt_tracer rt_tracer;

RT_ABI_ASSERT_(sizeof(struct rt_tracer) == 40, "rt_tracer is ABI");
RT_ABI_ASSERT_(offsetof(struct rt_tracer, used) == 8, "rt_tracer is ABI");
RT_ABI_ASSERT_(offsetof(struct rt_tracer, top) == 16, "rt_tracer is ABI");
RT_ABI_ASSERT_(offsetof(struct rt_tracer, limit) == 24, "rt_tracer is ABI");

RT_ABI_ASSERT_(offsetof(struct rt_tracer, names) == 32, "rt_tracer is ABI");
RT_ABI_ASSERT_(offsetof(struct rt_tracer, first) == 33, "rt_tracer is ABI");

RT_API void rt_trace_slow_(rt_tracer *t, uintptr_t word);
RT_API void rt_trace_name_(rt_tracer *t, const char *name, size_t index);

/*
 * rt_trace_ptr tells a reference.  p points to or into an object, with anything
 * in its low three bits.  NULL, and an address in no object, are ignored.  So
 * is a pointer beyond the first 16 bytes of an object whose kind has
 * RT_KIND_BASE; rt_config.tracecheck reports it.
 */
static inline void rt_trace_ptr(rt_tracer *t, const void *p)
{
	const uintptr_t w = RT_CAST_(uintptr_t, p);

	if (w - RT_CAST_(uintptr_t, t->base) >= t->used)
		return;
	if (__builtin_expect(t->top != t->limit, 1))
		(t->top++)->word = w;
	else
		rt_trace_slow_(t, w);
}

static inline void rt_trace_tested_(rt_tracer *t, uint64_t tested, uint64_t w,
				    const rt_value_format *f)
{
	if ((tested & f->test_mask) == f->test_bits && tested >= f->min &&
	    tested <= f->max) {
		w &= f->addr_mask;
		w = f->shift >= 0 ? w << f->shift : w >> -f->shift;
		rt_trace_ptr(t, RT_CAST_(const void *, w + f->base));
	}
}

/*
 * rt_trace_value tells a value of one word; the stride of *f must be 8.
 * rt_trace_pair tells a value of two words, of which v points to the value
 * word; the stride must be 16.  The compiler folds a constant format into the
 * code.
 */
static inline void rt_trace_value(rt_tracer *t, uint64_t w,
				  const rt_value_format *f)
{
	rt_trace_tested_(t, w, w, f);
}
static inline void rt_trace_pair(rt_tracer *t, const void *v,
				 const rt_value_format *f)
{
	typedef uint64_t __attribute__((__may_alias__)) word;
	const word *w = RT_CAST_(const word *, v);

	rt_trace_tested_(t, w[f->test_at], w[0], f);
}

/*
 * rt_trace_first returns 1 in exactly one call of a trace callback for each
 * object that a collection marks, if the object's kind has RT_KIND_ONCE.  This
 * call comes before all others for that object, and no other runs at the same
 * time.  It returns 0 in every other call, in root callbacks, and whenever
 * something other than marking asks.  (There may be no such call for an object
 * that an allocation has not returned yet.)
 *
 * Where the result is 1, a callback may change its object, for example clear
 * the unused part of a stack.  It must do so before it tells a row of words or
 * values (rt_trace_words, rt_trace_values), because other threads may then read
 * that row at once.  For the same reason it must not change the words that a
 * bitmap of the rt_type describes.
 */
static inline int rt_trace_first(const rt_tracer *t)
{
	return t->first;
}

/*
 * rt_trace_name gives the reference that is told next a name, for reports:
 * "name", or "name[index]" if index is not RT_NO_INDEX, or "[index]" if name is
 * null.  At most 47 bytes of name are copied.  If the value that is told next
 * is no reference, the name stays for the one after it.  The next call of
 * rt_trace_name replaces the name.  While nothing reports, a call is one test.
 */
#define RT_NO_INDEX SIZE_MAX
static inline void rt_trace_name(rt_tracer *t, const char *name, size_t index)
{
	if (__builtin_expect(t->names != 0, 0))
		rt_trace_name_(t, name, index);
}

/*
 * rt_trace_words tells all words of [lo, hi) that are aligned to 8, as RT_WORDS
 * does.  rt_trace_values tells all values of it in a format, from the first
 * word that is aligned to 8 on.  It tells nothing if the format is not in
 * order.  The range may be in the object or anywhere else; an empty one is
 * ignored.  Several threads share a long range.  So the range and *f, which is
 * not copied, must stay as they are until the world is started again; *f is
 * best static.
 */
RT_API void rt_trace_words(rt_tracer *t, const void *lo, const void *hi);
RT_API void rt_trace_values(rt_tracer *t, const void *lo, const void *hi,
			    const rt_value_format *f);

/*
 * rt_tracer_self returns the tracer of the callback in which the calling thread
 * is, or NULL if it is in none.  It is for functions that a callback calls
 * without passing them the tracer.
 *
 * Any thread, at any time.  Does not block.
 */
RT_API rt_tracer *rt_tracer_self(void);

#ifdef __cplusplus
}
#endif

#endif
