// Statistics as a struct.
#include <rt/config.h>
#include <rt/memstats.h>
#include <string.h>

#include "runtime/spans/stackalloc.h"
#include "gc/stats/mstats.h"
#include "gc/host/door.h"
#include "gc/host/visit.h"

int rt_read_memstats(rt_memstats *m)
{
	struct visit v;
	struct text report;
	int error;

	if (!m)
		return RT_EINVAL;
	error = door_nogc() ? RT_ESTATE : door_any();
	if (error)
		return error;
	if (door_in_callback())
		return door_answer(RT_EBUSY);
	// This must come before the stop: a fault inside it would be fatal.  A
	// copy of our own would not fit on the smallest stacks.
	memset(m, 0, sizeof *m);
	v = visit_enter_swept(RT_STOP_READ_MEMSTATS);
	mcache_flush_all(v.p);
	stackalloc_flush_all(v.p);
	mstats_read(m, &report);
	visit_report(&report);
	visit_leave(&v);
	return RT_OK;
}

int rt_read_memstats_live(rt_memstats *m)
{
	int error;

	if (!m)
		return RT_EINVAL;
	error = door_any();
	if (error)
		return error;
	mstats_read_live(m);
	return RT_OK;
}

int rt_read_gcstats(uint64_t *buf, size_t nwords, size_t *used)
{
	int error;

	if (!buf || !used || nwords < RT_GCSTATS_WORDS)
		return RT_EINVAL;
	error = door_any();
	if (error)
		return error;
	*used = mstats_read_gc(buf);
	return RT_OK;
}

int rt_set_memstats_double_check(int mode)
{
	int error;

	if (mode < RT_CHECK_OFF || mode > RT_CHECK_REPORT)
		return RT_EINVAL;
	error = door_any();
	if (error)
		return error;
	if (door_stopper())
		return door_answer(RT_EBUSY);
	mstats_set_double_check(mode);
	return RT_OK;
}
