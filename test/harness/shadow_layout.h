// shadow_layout.h - the layouts of the kinds that programs register.
//
// Each layout says twice where the references of an object are: to the library,
// in a descriptor, and here, by a rule for one word.  The rule is written from
// the contract in rt/kind.h and uses nothing of the library.
//
// An object is fixed words, and then equal elements to its end.  In a format of
// two words every value begins at an even word.
#ifndef TEST_HARNESS_SHADOW_LAYOUT_H
#define TEST_HARNESS_SHADOW_LAYOUT_H

#include <rt/kind.h>
#include <stdbool.h>

enum {
	SHADOW_LAYOUTS = 20,
	SHADOW_OWNERS = SHADOW_LAYOUTS, // one more, of objects with stacks
	SHADOW_PLAIN_WORDS = 1,		// the layout of RT_WORDS
	// Those of objects of RT_TYPED, which no kind can have.
	SHADOW_TYPED_FIRST = SHADOW_OWNERS + 1,
	SHADOW_TYPED = 8,
	SHADOW_ALL_LAYOUTS = SHADOW_TYPED_FIRST + SHADOW_TYPED,
};

struct shadow_layout {
	const char *name;
	enum rt_layout how;
	const rt_value_format *format;	// NULL: plain words
	unsigned fixed, tail;		// words of the parts; tail 0: none
	uint64_t fixed_bits, tail_bits; // bit i: word i is a value word, and
					// so are those 64, 128 ... behind it
	const rt_type *type;		// what the kind or the header leads to
	rt_trace_fn *trace;
};

extern const struct shadow_layout shadow_layouts[SHADOW_ALL_LAYOUTS];

// shadow_on_stacks returns a layout with number i of the formats that values
// may have on stacks, or NULL if i is 0.
enum { SHADOW_ON_STACKS = 7 };
const struct shadow_layout *shadow_on_stacks(unsigned i);

// shadow_layouts_begin must be called when there is a new heap.  With deep some
// layouts have destructors that look at what died with their objects.
void shadow_layouts_begin(bool deep);

// shadow_describe returns the description of a kind with a layout, and with
// more flags.  shadow_flags returns one of the SHADOW_FLAGS subsets of
// RT_KIND_BASE, RT_KIND_SERIAL and RT_KIND_ONCE, and shadow_flags_ok tells
// whether a layout permits it.
enum { SHADOW_FLAGS = 8 };
uint32_t shadow_flags(unsigned i);
bool shadow_flags_ok(const struct shadow_layout *l, uint32_t flags);
rt_kind_desc shadow_describe(const struct shadow_layout *l, int number,
			     uint32_t flags);

// shadow_traced_once tells whether the trace callback of a kind checks what
// RT_KIND_ONCE promises.  Then the first word of its objects leads to the node.
bool shadow_traced_once(const struct shadow_layout *l, uint32_t flags);

// A destructor requires that its thread has set shadow_drops_here.
extern __thread bool shadow_drops_here;

// A thread of a program sets shadow_collects; it is false in threads of the
// library, which trace no object of RT_KIND_SERIAL.
extern __thread bool shadow_collects;

// shadow_typed_count returns the number of elements of an object of RT_TYPED
// that should have about *n bytes.  It sets *n to the bytes that it then has.
size_t shadow_typed_count(const struct shadow_layout *l, size_t *n);

// shadow_is_narrow tells whether 17 to 24 bytes of a kind and a layout take 24.
bool shadow_is_narrow(int kind, const struct shadow_layout *l);

// shadow_drops tells whether objects of a layout have destructors, and
// shadow_deep whether these look at what died with the object.
bool shadow_drops(const struct shadow_layout *l);
bool shadow_deep(const struct shadow_layout *l);

// shadow_step returns the words of a value, and shadow_first which of them is
// the value word.
unsigned shadow_step(const struct shadow_layout *l);
unsigned shadow_first(const struct shadow_layout *l);

// shadow_header returns the first word of object number id, or tag if the
// layout has no header.  It sets *typed to false if the header leads to no
// type; then the object has no references.
uint64_t shadow_header(const struct shadow_layout *l, uint64_t id, uint64_t tag,
		       bool *typed);

// shadow_is_value tells whether word i of an object of so many words is a value
// word.
bool shadow_is_value(const struct shadow_layout *l, size_t words, size_t i);

// shadow_encode returns the value word that refers to an address.  shadow_tag
// returns a tag word of a value that is a reference, or of a value that is not.
uint64_t shadow_encode(const struct shadow_layout *l, uintptr_t address);
uint64_t shadow_tag(const struct shadow_layout *l, bool reference);

// shadow_decode tells whether a value is a reference, and sets *address.
bool shadow_decode(const struct shadow_layout *l, uint64_t value, uint64_t tag,
		   uintptr_t *address);

#endif
