// mksizeclass.c - prints runtime/base/sizeclass.c.
//
// Go: mksizeclasses.go.  Four rules make the list.  A class is a multiple of an
// alignment that grows with its size.  Its span is the smallest whose tail
// wastes at most an eighth.  Only the largest is kept of the classes that fill
// a span with the same number of objects.  In the end each class grows to the
// largest multiple of 128 that leaves the number of objects in its span as it
// is.
//
// Usage: mksizeclass > runtime/base/sizeclass.c
#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/base.h"
#include "runtime/base/sizeclass.h"

enum { STEP = 128 }; // sizes are rounded down to this when they are enlarged

struct row {
	unsigned size;
	unsigned npages;
	unsigned nelems;
};

// The classes in order; class 0 is for large objects.
static struct row classes[SIZECLASS_COUNT];

static void die(const char *what)
{
	fprintf(stderr, "mksizeclass: %s\n", what);
	exit(EXIT_FAILURE);
}

// ---- the classes ----

// alignment returns the alignment of the sizes from `size`, a power of two, up
// to the next power.  It is an eighth of `size`, so that rounding up loses
// little.  For 32 bytes and more it is at least 16, and it is never more than
// 256.
static unsigned alignment(unsigned size)
{
	if (size >= 2048)
		return 256;
	if (size >= 128)
		return size / 8;
	return size >= 32 ? 16 : 8;
}

static unsigned span_bytes(const struct row *c)
{
	return c->npages * RT_PAGE_SIZE;
}

static struct row class_of_size(unsigned size)
{
	struct row c = {.size = size, .npages = 1};

	while (span_bytes(&c) % size > span_bytes(&c) / 8)
		c.npages++;
	c.nelems = span_bytes(&c) / size;
	return c;
}

static void make_classes(void)
{
	unsigned n = 1, align = 8;

	for (unsigned size = 8; size <= SIZECLASS_MAX_SIZE; size += align) {
		struct row c = class_of_size(size);
		const struct row *last = &classes[n - 1];

		if (base_is_pow2(size))
			align = alignment(size);
		if (c.npages == last->npages && c.nelems == last->nelems)
			n--;
		if (n == SIZECLASS_COUNT)
			die("more classes than SIZECLASS_COUNT");
		classes[n++] = c;
	}
	if (n != SIZECLASS_COUNT)
		die("fewer classes than SIZECLASS_COUNT");
}

// enlarge_classes divides what a span has left over among its objects.
static void enlarge_classes(void)
{
	for (unsigned i = 1; i < SIZECLASS_COUNT; i++) {
		struct row *c = &classes[i];
		unsigned size = span_bytes(c) / c->nelems / STEP * STEP;

		if (size > c->size)
			c->size = size;
	}
}

// divmagic returns the factor that replaces a division by the size: ceil(2^32 /
// size).
static unsigned divmagic(const struct row *c)
{
	return UINT32_MAX / c->size + 1;
}

static void check_divmagic(const struct row *c)
{
	for (uint64_t offset = 0; offset <= span_bytes(c); offset++)
		if (offset * divmagic(c) >> 32 != offset / c->size)
			die("divmagic is wrong for an offset");
}

// first_class returns the first class with n bytes or more.
static unsigned first_class(unsigned n)
{
	unsigned i = 0;

	while (classes[i].size < n)
		i++;
	return i;
}

// ---- columns of the comments ----

static unsigned tail_bytes(const struct row *c)
{
	return span_bytes(c) - c->nelems * c->size;
}

// worst_percent returns how much of a span is lost if it is full of the
// smallest objects that take this class.
static double worst_percent(unsigned i)
{
	const struct row *c = &classes[i];
	unsigned slack = c->size - classes[i - 1].size - 1;

	return 100.0 * (slack * c->nelems + tail_bytes(c)) / span_bytes(c);
}

// natural_align returns the alignment that every object of a span has.
static unsigned natural_align(const struct row *c)
{
	unsigned lowest = c->size & -c->size;

	return lowest < RT_PAGE_SIZE ? lowest : RT_PAGE_SIZE;
}

// ---- the text ----

static void print_head(FILE *out)
{
	fputs("// Made by tools/mksizeclass.c; edit that.\n"
	      "#include \"runtime/base/sizeclass.h\"\n"
	      "\n"
	      "// clang-format off\n",
	      out);
}

// mask_words returns the number of words in the slot mask of a class.
static unsigned mask_words(unsigned i)
{
	return classes[i].npages * RT_PAGE_WORDS * (i == 1 ? 2 : 1);
}

static void print_table(FILE *out)
{
	unsigned mask_word = 0;

	fputs("\n"
	      "// {size, divmagic, nelems, npages, mask_word}\n"
	      "// class: bytes lost at the end of a span, the most lost in "
	      "all, alignment\n"
	      "const struct sizeclass sizeclass_table[SIZECLASS_COUNT] = {\n"
	      "\t{0, 0, 0, 0, 0}, // 0: large\n",
	      out);
	for (unsigned i = 1; i < SIZECLASS_COUNT; i++) {
		const struct row *c = &classes[i];

		check_divmagic(c);
		fprintf(out, "\t{%u, 0x%08x, %u, %u, %u}, // ", c->size,
			divmagic(c), c->nelems, c->npages, mask_word);
		fprintf(out, "%u: %u, %.2f%%, %u\n", i, tail_bytes(c),
			worst_percent(i), natural_align(c));
		mask_word += mask_words(i);
	}
	fputs("};\n", out);
}

// print_lookup lists the class of base, base + div, ... up to limit.
static void print_lookup(FILE *out, unsigned base, unsigned div, unsigned limit)
{
	for (unsigned size = base, column = 0; size <= limit; size += div) {
		fprintf(out, "%s%u,", column == 0 ? "\t" : " ",
			first_class(size));
		column = (column + 1) % 16;
		if (column == 0 || size == limit)
			fputc('\n', out);
	}
	fputs("};\n", out);
}

// is_first returns whether the granule that follows offset is the first whole
// one of a slot of c.
static bool is_first(const struct row *c, unsigned granule, unsigned offset)
{
	unsigned slot = (offset + c->size - granule) / c->size;

	return slot < c->nelems && slot * c->size <= offset;
}

static uint64_t mask_word(unsigned i, unsigned word)
{
	unsigned granule = 1U << sizeclass_bit_shift(i);
	uint64_t mask = 0;

	for (unsigned bit = 0; bit < 64; bit++)
		if (is_first(&classes[i], granule, (word * 64 + bit) * granule))
			mask |= UINT64_C(1) << bit;
	return mask;
}

static void print_masks(FILE *out)
{
	fputs("\nconst uint64_t sizeclass_masks[] = {\n", out);
	for (unsigned i = 1; i < SIZECLASS_COUNT; i++) {
		fprintf(out, "\t// %u: %u\n", i, classes[i].size);
		for (unsigned word = 0; word < mask_words(i); word++)
			fprintf(out, "%s0x%016llx,%s", word % 2 ? " " : "\t",
				(unsigned long long)mask_word(i, word),
				word % 2 ? "\n" : "");
	}
	fputs("};\n", out);
}

static void print_file(FILE *out)
{
	make_classes();
	enlarge_classes();
	print_head(out);
	print_table(out);
	fputs("\nconst uint8_t sizeclass_of8[] = {\n", out);
	print_lookup(out, 0, SIZECLASS_SMALL_DIV, SIZECLASS_SMALL_MAX);
	fputs("\nconst uint8_t sizeclass_of128[] = {\n", out);
	print_lookup(out, SIZECLASS_SMALL_MAX, SIZECLASS_LARGE_DIV,
		     SIZECLASS_MAX_SIZE);
	print_masks(out);
}

int main(void)
{
	print_file(stdout);
	if (fflush(stdout) != 0 || ferror(stdout))
		die("cannot write");
	return EXIT_SUCCESS;
}
