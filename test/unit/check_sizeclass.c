// Size classes are those of Go, and the tables agree with each other.
#include "test/harness/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/sizeclass.h"

// The generator itself, to compare what it prints with the file in git.
int mksizeclass_main(void);
#define main mksizeclass_main
#include "tools/mksizeclass.c"
#undef main

enum { MOST_PAGES = 10 }; // of a span of a class

// What Go's table says of classes 1 to 67.
static const struct {
	unsigned size;
	unsigned npages;
	unsigned nelems;
	unsigned tail;	// bytes at the end of a span that no object has
	unsigned waste; // worst case, in hundredths of a percent
	unsigned align;
	unsigned divmagic;
} expected[] = {
    {0, 0, 0, 0, 0, 0, 0},
    {8, 1, 1024, 0, 8750, 8, 0x20000000},
    {16, 1, 512, 0, 4375, 16, 0x10000000},
    {24, 1, 341, 8, 2924, 8, 0x0aaaaaab},
    {32, 1, 256, 0, 2188, 32, 0x08000000},
    {48, 1, 170, 32, 3152, 16, 0x05555556},
    {64, 1, 128, 0, 2344, 64, 0x04000000},
    {80, 1, 102, 32, 1907, 16, 0x03333334},
    {96, 1, 85, 32, 1595, 32, 0x02aaaaab},
    {112, 1, 73, 16, 1356, 16, 0x02492493},
    {128, 1, 64, 0, 1172, 128, 0x02000000},
    {144, 1, 56, 128, 1182, 16, 0x01c71c72},
    {160, 1, 51, 32, 973, 32, 0x0199999a},
    {176, 1, 46, 96, 959, 16, 0x01745d18},
    {192, 1, 42, 128, 925, 64, 0x01555556},
    {208, 1, 39, 80, 812, 16, 0x013b13b2},
    {224, 1, 36, 128, 815, 32, 0x0124924a},
    {240, 1, 34, 32, 662, 16, 0x01111112},
    {256, 1, 32, 0, 586, 256, 0x01000000},
    {288, 1, 28, 128, 1216, 32, 0x00e38e39},
    {320, 1, 25, 192, 1180, 64, 0x00cccccd},
    {352, 1, 23, 96, 988, 32, 0x00ba2e8c},
    {384, 1, 21, 128, 951, 128, 0x00aaaaab},
    {416, 1, 19, 288, 1071, 32, 0x009d89d9},
    {448, 1, 18, 128, 837, 64, 0x00924925},
    {480, 1, 17, 32, 682, 32, 0x00888889},
    {512, 1, 16, 0, 605, 512, 0x00800000},
    {576, 1, 14, 128, 1233, 64, 0x0071c71d},
    {640, 1, 12, 512, 1548, 128, 0x00666667},
    {704, 1, 11, 448, 1393, 64, 0x005d1746},
    {768, 1, 10, 512, 1394, 256, 0x00555556},
    {896, 1, 9, 128, 1552, 128, 0x00492493},
    {1024, 1, 8, 0, 1240, 1024, 0x00400000},
    {1152, 1, 7, 128, 1241, 128, 0x0038e38f},
    {1280, 1, 6, 512, 1555, 256, 0x00333334},
    {1408, 2, 11, 896, 1400, 128, 0x002e8ba3},
    {1536, 1, 5, 512, 1400, 512, 0x002aaaab},
    {1792, 2, 9, 256, 1557, 256, 0x0024924a},
    {2048, 1, 4, 0, 1245, 2048, 0x00200000},
    {2304, 2, 7, 256, 1246, 256, 0x001c71c8},
    {2688, 1, 3, 128, 1559, 128, 0x00186187},
    {3072, 3, 8, 0, 1247, 1024, 0x00155556},
    {3200, 2, 5, 384, 622, 128, 0x00147ae2},
    {3456, 3, 7, 384, 883, 128, 0x0012f685},
    {4096, 1, 2, 0, 1560, 4096, 0x00100000},
    {4864, 3, 5, 256, 1665, 256, 0x000d7944},
    {5376, 2, 3, 256, 1092, 256, 0x000c30c4},
    {6144, 3, 4, 0, 1248, 2048, 0x000aaaab},
    {6528, 4, 5, 128, 623, 128, 0x000a0a0b},
    {6784, 5, 6, 256, 436, 128, 0x0009a90f},
    {6912, 6, 7, 768, 337, 256, 0x00097b43},
    {8192, 1, 1, 0, 1561, 8192, 0x00080000},
    {9472, 7, 6, 512, 1428, 256, 0x0006eb3f},
    {9728, 6, 5, 512, 364, 512, 0x0006bca2},
    {10240, 5, 4, 0, 499, 2048, 0x00066667},
    {10880, 4, 3, 128, 624, 128, 0x00060607},
    {12288, 3, 2, 0, 1145, 4096, 0x00055556},
    {13568, 5, 3, 256, 999, 256, 0x0004d488},
    {14336, 7, 4, 0, 535, 2048, 0x0004924a},
    {16384, 2, 1, 0, 1249, 8192, 0x00040000},
    {18432, 9, 4, 0, 1111, 2048, 0x00038e39},
    {19072, 7, 3, 128, 357, 128, 0x00036fae},
    {20480, 5, 2, 0, 687, 4096, 0x00033334},
    {21760, 8, 3, 256, 625, 256, 0x00030304},
    {24576, 3, 1, 0, 1145, 8192, 0x0002aaab},
    {27264, 10, 3, 128, 1000, 128, 0x0002675d},
    {28672, 7, 2, 0, 491, 4096, 0x00024925},
    {32768, 4, 1, 0, 1250, 8192, 0x00020000},
};

static unsigned span_size(unsigned c)
{
	return sizeclass_table[c].npages * RT_PAGE_SIZE;
}

GROUP(table, .timeout = 60);

TEST(table_is_that_of_go)
{
	ck_assert_uint_eq(RT_ARRAY_LEN(expected), SIZECLASS_COUNT);
	for (unsigned c = 0; c < SIZECLASS_COUNT; c++) {
		const struct sizeclass *s = &sizeclass_table[c];

		ck_assert_uint_eq(s->size, expected[c].size);
		ck_assert_uint_eq(s->npages, expected[c].npages);
		ck_assert_uint_eq(s->nelems, expected[c].nelems);
		ck_assert_uint_eq(s->divmagic, expected[c].divmagic);
		ck_assert_uint_le(s->npages, MOST_PAGES);
	}
	ck_assert_uint_eq(sizeclass_table[SIZECLASS_TINY].size,
			  SIZECLASS_TINY_SIZE);
	ck_assert_uint_eq(sizeclass_table[SIZECLASS_COUNT - 1].size,
			  SIZECLASS_MAX_SIZE);
}

// At most an eighth of a span is left over at its end.  The whole loss, with
// objects of the least size that takes the class, is as in Go.
TEST(waste_is_bounded)
{
	for (unsigned c = 1; c < SIZECLASS_COUNT; c++) {
		const struct sizeclass *s = &sizeclass_table[c];
		unsigned span = span_size(c);
		unsigned slack = s->size - sizeclass_table[c - 1].size - 1;
		unsigned tail = span - s->nelems * s->size;
		unsigned worst = slack * s->nelems + tail;

		ck_assert_uint_eq(s->nelems, span / s->size);
		ck_assert_uint_eq(tail, expected[c].tail);
		ck_assert_uint_le(tail, span / 8);
		ck_assert_uint_eq((worst * 10000 + span / 2) / span,
				  expected[c].waste);
		if (s->size > 16) // up to 16, sizes double
			ck_assert_uint_lt(worst, span / 3);
	}
}

// Every object of a class has this alignment, and some object has no greater
// one.
TEST(alignment_is_as_listed)
{
	for (unsigned c = 1; c < SIZECLASS_COUNT; c++) {
		unsigned common = RT_PAGE_SIZE; // where a span may begin

		for (unsigned i = 0; i < sizeclass_table[c].nelems; i++)
			common |= i * sizeclass_table[c].size;
		ck_assert_uint_eq(common & -common, expected[c].align);
	}
}

TEST(class_is_the_first_that_fits)
{
	unsigned wrong = 0, c = 0;

	for (unsigned n = 0; n <= SIZECLASS_MAX_SIZE; n++) {
		if (n > expected[c].size)
			c++;
		wrong += sizeclass_of(n) != c;
	}
	ck_assert_uint_eq(wrong, 0);
	ck_assert_uint_eq(c, SIZECLASS_COUNT - 1);
}

// sizeclass_of16 returns the first class that fits and is a multiple of 16.
// Only the classes of 8 and 24 bytes are no multiples.
TEST(class16_is_the_first_aligned_that_fits)
{
	unsigned wrong = 0, c = 2;

	for (unsigned n = 1; n <= SIZECLASS_MAX_SIZE; n++) {
		while (n > expected[c].size || expected[c].size % 16 != 0)
			c++;
		wrong += sizeclass_of16(n) != c;
	}
	ck_assert_uint_eq(wrong, 0);
	ck_assert_uint_eq(sizeclass_of16(0), 0);
	ck_assert_uint_eq(sizeclass_of16(8), 2);
	ck_assert_uint_eq(sizeclass_of16(17), 4);
	ck_assert_uint_eq(sizeclass_of16(24), 4);
}

// Every entry of both tables is right, even those that sizeclass_of does not
// read.
TEST(lookup_tables_agree)
{
	for (unsigned i = 0; i < sizeof(sizeclass_of8); i++)
		ck_assert_uint_eq(sizeclass_of8[i], sizeclass_of(i * 8));
	for (unsigned i = 0; i < sizeof(sizeclass_of128); i++)
		ck_assert_uint_eq(sizeclass_of128[i],
				  sizeclass_of(1024 + i * 128));
	ck_assert_uint_eq(sizeof(sizeclass_of8), 129);
	ck_assert_uint_eq(sizeof(sizeclass_of128), 249);
	ck_assert_uint_eq(sizeclass_of8[128], 32);
	ck_assert_uint_eq(sizeclass_of128[0], 32);
}

TEST(divmagic_divides_every_offset)
{
	for (unsigned c = 1; c < SIZECLASS_COUNT; c++) {
		uint64_t magic = sizeclass_table[c].divmagic;
		uint64_t size = sizeclass_table[c].size;
		unsigned wrong = 0;

		for (uint64_t offset = 0; offset <= span_size(c); offset++)
			wrong += offset * magic >> 32 != offset / size;
		ck_assert_uint_eq(wrong, 0);
	}
}

// The masks of all classes follow each other.  In each mask exactly the bits of
// the slots are set, each by one slot.
TEST(masks_show_where_slots_begin)
{
	unsigned next_word = 0;

	for (unsigned c = 1; c < SIZECLASS_COUNT; c++) {
		const struct sizeclass *s = &sizeclass_table[c];
		uint64_t mask[MOST_PAGES * RT_PAGE_WORDS] = {0};
		unsigned nwords = sizeclass_words(c);

		ck_assert_uint_eq(s->mask_word, next_word);
		for (unsigned i = 0; i < s->nelems; i++) {
			unsigned unit = 1U << sizeclass_bit_shift(c);
			unsigned bit = (i * s->size + unit - 1) / unit;

			ck_assert_uint_lt(bit / 64, nwords);
			ck_assert_uint_eq(mask[bit / 64] >> bit % 64 & 1, 0);
			mask[bit / 64] |= UINT64_C(1) << bit % 64;
		}
		ck_assert_mem_eq(sizeclass_masks + next_word, mask,
				 nwords * sizeof(mask[0]));
		next_word += nwords;
	}
}

TEST(words_cover_a_span)
{
	ck_assert_uint_eq(sizeclass_words(0), 0);
	ck_assert_uint_eq(sizeclass_words(1), 16);
	for (unsigned c = 1; c < SIZECLASS_COUNT; c++)
		ck_assert_uint_eq(sizeclass_words(c) * 64,
				  span_size(c) >> sizeclass_bit_shift(c));
}

// ---- the generator ----

// checked_in returns the text of runtime/base/sizeclass.c, which the caller
// frees.
static char *checked_in(void)
{
	const char *srcdir = getenv("srcdir");
	char path[4096], *text = calloc(1, 1 << 20);
	FILE *in;

	snprintf(path, sizeof(path), "%s/runtime/base/sizeclass.c",
		 srcdir ? srcdir : ".");
	in = fopen(path, "r");
	ck_assert_msg(in != NULL, "cannot open %s", path);
	ck_assert_uint_lt(fread(text, 1, (1 << 20) - 1, in), (1 << 20) - 1);
	fclose(in);
	return text;
}

TEST(file_in_git_is_what_the_generator_prints)
{
	char *made = NULL, *text = checked_in();
	size_t len = 0;
	FILE *out = open_memstream(&made, &len);

	print_file(out);
	fclose(out);
	ck_assert_msg(strcmp(made, text) == 0,
		      "runtime/base/sizeclass.c is not what tools/mksizeclass "
		      "prints");
	free(made);
	free(text);
}
