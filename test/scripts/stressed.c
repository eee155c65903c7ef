// stressed.c - rt_init for an example that test/scripts/embed.sh compiles with
// -Drt_init=stressed_init: RTDEBUG says how the heap is stressed.
//
// If the example has a pointer where the collector does not look, that shows:
// the object that the pointer leads to is freed early, and overwritten.
#include <rt/rt.h>

int stressed_init(const rt_config *config);

int stressed_init(const rt_config *config)
{
	rt_config c;

	rt_config_init(&c);
	if (config)
		c = *config;
	return rt_config_from_env(&c) ? RT_EINVAL : rt_init(&c);
}
