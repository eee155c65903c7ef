// installed.c - a user's program: header and library are of one version, and
// memory can be allocated.
#include <rt/rt.h>

#include <stdio.h>

int main(void)
{
	if (rt_version() != RT_VERSION_NUMBER || rt_init(NULL) != RT_OK)
		return 1;
	if (!rt_alloc(16) || rt_gc() != RT_OK || rt_fini() != RT_OK)
		return 1;
	printf("%d.%d.%d\n", RT_VERSION_MAJOR, RT_VERSION_MINOR,
	       RT_VERSION_MICRO);
	return 0;
}
