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
	rt_stack *s = NULL;
	int error = rt_stack_register(d, &s);

	if ((s != NULL) != (error == RT_OK) ||
	    (s && rt_stack_unregister(s) != RT_OK))
		return 1;
	return error;
}

// ROW sets one field of a good description, and judges the answer to that.
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
	JUDGE("null", answer(NULL), RT_EINVAL);
	JUDGE("nowhere", rt_stack_register(&d, NULL), RT_EINVAL);
	JUDGE("good", answer(&d), RT_OK);
	ROW("no size", struct_size, 0, RT_EINVAL);
	ROW("a short struct", struct_size, sizeof d - 8, RT_EINVAL);
	ROW("a huge struct", struct_size, 1 << 20, RT_EINVAL);
	ROW("lo null", lo, NULL, RT_EINVAL);
	ROW("hi null", hi, NULL, RT_EINVAL);
	ROW("empty", hi, area, RT_EINVAL);
	ROW("lo above hi", lo, (void *)UINTPTR_MAX, RT_EINVAL);
	ROW("odd lo", lo, (char *)area + 1, RT_OK);
	ROW("no pointer", sp, NULL, RT_OK);
	ROW("registers without end", regs_lo, area, RT_EINVAL);
	ROW("registers without begin", regs_hi, area, RT_EINVAL);
	ROW("a wrong format", format, &wrong_format, RT_EINVAL);
	ROW("a format", format, &pair, RT_OK);
	ROW("a name", name, "", RT_OK);
	ROW("spare", spare, 1, RT_EINVAL);
	for (unsigned bit = 0; bit < 32; bit++) {
		uint32_t flag = UINT32_C(1) << bit;

		ROW(with_number("flag", flag), flags, flag,
		    flag & known ? RT_OK : RT_EINVAL);
	}
	d.flags = known;
	JUDGE("all flags of memory", answer(&d), RT_OK);
	d.format = &pair;
	JUDGE("exact values", answer(&d), RT_EINVAL);
	d = good();
	d.regs_lo = area + 2;
	d.regs_hi = area + 1;
	JUDGE("registers reversed", answer(&d), RT_EINVAL);
	heap_healthy();
	finish(52);
}

TEST(own_stacks_that_are_described_wrongly)
{
	rt_stack_desc d;
	rt_stack *s;

	begin();
	rt_stack_desc_init(&d);
	d.sp = &top;
	for (unsigned more = 1; more < 16; more++) {
		d.flags = RT_STACK_THREAD | more;
		judge("rt_stack_register", with_number("own and", more),
		      answer(&d), more == RT_STACK_THREAD ? RT_OK : RT_EINVAL);
	}
	d.flags = RT_STACK_THREAD;
	d.lo = area;
	JUDGE("own with lo", answer(&d), RT_EINVAL);
	d.lo = NULL;
	d.hi = area;
	JUDGE("own with hi", answer(&d), RT_EINVAL);
	d.hi = NULL;
	JUDGE("own", answer(&d), RT_OK);
	JUDGE("own", rt_stack_register(&d, &s), RT_OK);
	JUDGE("own again", answer(&d), RT_EEXIST);
	JUDGE("own", rt_stack_unregister(s), RT_OK);
	JUDGE("exact", rt_thread_detach(), RT_OK);
	JUDGE("exact", rt_thread_attach(RT_THREAD_EXACT), RT_OK);
	JUDGE("own of an exact thread", answer(&d), RT_ENOENT);
	heap_healthy();
	finish(21);
}

// The saved stack pointer of a registered stack may be any number.  A stack
// that was unregistered is refused.
TEST(stacks_that_are_used_wrongly)
{
	rt_stack_desc d = good();
	rt_stack *s;

	begin();
	for (unsigned flags = 0; flags < 4; flags++) {
		d.flags = flags;
		JUDGE("registered", rt_stack_register(&d, &s), RT_OK);
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
