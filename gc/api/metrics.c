// Statistics by name.
#include <rt/metrics.h>

#include "gc/stats/metrics.h"
#include "gc/host/door.h"

size_t rt_metrics_count(void)
{
	return metrics_count();
}

int rt_metrics_describe(size_t i, rt_metric_desc *d)
{
	if (!d)
		return RT_EINVAL;
	return metrics_describe(i, d) ? RT_OK : RT_ENOENT;
}

int rt_metrics_read(rt_metric_sample *samples, size_t n)
{
	struct snapshot s;
	int error;

	if (!samples && n != 0)
		return RT_EINVAL;
	error = door_any();
	if (error)
		return error;
	snapshot_metrics(&s);
	metrics_fill(&s, samples, n);
	return RT_OK;
}
