// Records of collections.
#include <rt/cycle.h>

#include <string.h>

#include "runtime/os/settings.h"
#include "runtime/world/cyclering.h"
#include "gc/host/door.h"

int rt_read_cycle_sized(uint64_t number, rt_cycle *c, size_t size)
{
	rt_cycle record;
	int error;

	if (!c || size < offsetof(rt_cycle, cause) ||
	    size > SETTINGS_MAX_STRUCT)
		return RT_EINVAL;
	error = door_any();
	if (error)
		return error;
	if (!cyclering_read(&cyclering, number, &record))
		return RT_ENOENT;
	record.struct_size = base_min(size, sizeof record);
	memset(c, 0, size);
	memcpy(c, &record, record.struct_size);
	return RT_OK;
}
