// framemark.c - writes and reads the mark.
#include "gc/mark/framemark.h"

#include "runtime/world/proc.h"

static uintptr_t mark_of(const uintptr_t *at)
{
	return (uintptr_t)at ^ (uintptr_t)UINT64_C(0x9e3779b97f4a7c15);
}

RT_NO_SANITIZE void framemark_set(struct framemark *m)
{
	for (unsigned i = 0; i < FRAMEMARK_WORDS; i++)
		m->words[i] = mark_of(&m->words[i]);
}

RT_NO_SANITIZE bool framemark_calls(const struct framemark *m,
				    const void *frame)
{
	const struct rt_proc *p = proc_self();

	if ((uintptr_t)frame >= (uintptr_t)m)
		return false;
	if (!p || (uintptr_t)frame < p->context.lo ||
	    (uintptr_t)(m + 1) > p->context.hi)
		return true;
	for (unsigned i = 0; i < FRAMEMARK_WORDS; i++)
		if (m->words[i] != mark_of(&m->words[i]))
			return false;
	return true;
}
