// Stacks of the host that are described, told and changed wrongly.
#include "test/whole/misuse.h"

static uintptr_t area[64];
static void *top = area;
static const rt_value_format pair = RT_FORMAT_PAIR(0x40, 0x40);
static const rt_value_format wrong_format = {.stride = 7};

static rt_stack_desc good(void)
{
	rt_stack_desc d;

	rt_stack_desc_init(&d);
	d.lo = area;
	d.hi = area + 64;
	d.sp = &top;
	return d;
}

static long answer(const rt_stack_desc *d)
{
	rt_stack *s = rt_stack_register(d);

	if (s && rt_stack_unregister(s) != RT_OK)
		return -1;
	return some(s);
}

// A field of a description, and the answer to one that has it.
#define ROW(text, field, value, want)                                          \
	do {                                                                   \
		rt_stack_desc row = good();                                    \
		row.field = (value);                                           \
		judge("rt_stack_register", text, answer(&row), want);          \
	} while (0)

TEST(stacks_that_are_described_wrongly)
{
	const uint32_t known = RT_STACK_UP | RT_STACK_EXACT | RT_STACK_OWNED;
	rt_stack_desc d = good();

	begin();
	JUDGE("null", answer(NULL), NOTHING);
	JUDGE("good", answer(&d), SOME);
	ROW("no size", struct_size, 0, NOTHING);
	ROW("a short struct", struct_size, sizeof d - 8, NOTHING);
	ROW("a huge struct", struct_size, 1 << 20, NOTHING);
	ROW("lo null", lo, NULL, NOTHING);
	ROW("hi null", hi, NULL, NOTHING);
	ROW("empty", hi, area, NOTHING);
	ROW("lo above hi", lo, (void *)UINTPTR_MAX, NOTHING);
	ROW("odd lo", lo, (char *)area + 1, SOME);
	ROW("no pointer", sp, NULL, SOME);
	ROW("registers without end", regs_lo, area, NOTHING);
	ROW("registers without begin", regs_hi, area, NOTHING);
	ROW("a wrong format", format, &wrong_format, NOTHING);
	ROW("a format", format, &pair, SOME);
	ROW("a name", name, "", SOME);
	ROW("spare", spare, 1, NOTHING);
	for (unsigned bit = 0; bit < 32; bit++) {
		uint32_t flag = UINT32_C(1) << bit;

		ROW(with_number("flag", flag), flags, flag,
		    flag & known ? SOME : NOTHING);
	}
	d.flags = known;
	JUDGE("all flags of memory", answer(&d), SOME);
	d.format = &pair;
	JUDGE("exact values", answer(&d), NOTHING);
	d = good();
	d.regs_lo = area + 2;
	d.regs_hi = area + 1;
	JUDGE("registers reversed", answer(&d), NOTHING);
	heap_healthy();
	finish(51);
}

TEST(own_stacks_that_are_described_wrongly)
{
	rt_stack_desc d;

	begin();
	rt_stack_desc_init(&d);
	d.sp = &top;
	for (unsigned more = 1; more < 16; more++) {
		d.flags = RT_STACK_THREAD | more;
		judge("rt_stack_register", with_number("own and", more),
		      answer(&d), more == RT_STACK_THREAD ? SOME : NOTHING);
	}
	d.flags = RT_STACK_THREAD;
	d.lo = area;
	JUDGE("own with lo", answer(&d), NOTHING);
	d.lo = NULL;
	d.hi = area;
	JUDGE("own with hi", answer(&d), NOTHING);
	d.hi = NULL;
	JUDGE("own", answer(&d), SOME);
	JUDGE("exact", rt_thread_detach(), RT_OK);
	JUDGE("exact", rt_thread_attach(RT_THREAD_EXACT), RT_OK);
	JUDGE("own of an exact thread", answer(&d), NOTHING);
	heap_healthy();
	finish(18);
}

// A stack whose top lies anywhere, and one that is used after its end.
TEST(stacks_that_are_used_wrongly)
{
	rt_stack_desc d = good();
	rt_stack *s;

	begin();
	for (unsigned flags = 0; flags < 4; flags++) {
		d.flags = flags;
		s = rt_stack_register(&d);
		JUDGE("registered", some(s), SOME);
		top = (void *)1;
		JUDGE("a wild pointer", rt_gc(), RT_OK);
		top = (void *)UINTPTR_MAX;
		JUDGE("a wild pointer", rt_gc(), RT_OK);
		top = (char *)(area + 3) + 5;
		JUDGE("an odd pointer", rt_gc(), RT_OK);
		JUDGE("moved to null", rt_stack_move(s, NULL, area), RT_EINVAL);
		JUDGE("reversed", rt_stack_move(s, area + 1, area), RT_EINVAL);
		JUDGE("told outside", rt_stack_unregister(s), RT_OK);
		JUDGE("twice", rt_stack_unregister(s), RT_EINVAL);
		JUDGE("moved later", rt_stack_move(s, area, area + 8),
		      RT_EINVAL);
	}
	JUDGE("null", rt_stack_unregister(NULL), RT_EINVAL);
	JUDGE("null", rt_stack_move(NULL, area, area + 8), RT_EINVAL);
	heap_healthy();
	finish(38);
}
