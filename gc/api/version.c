// Error numbers in words, and the version.
#include <rt/version.h>

const char *rt_strerror(int error)
{
	switch (error) {
	case RT_OK:
		return "success";
	case RT_EINVAL:
		return "invalid argument";
	case RT_ENOMEM:
		return "out of memory";
	case RT_EPERM:
		return "thread not attached, or not the one that stopped the "
		       "world";
	case RT_EBUSY:
		return "still in use, or the world is stopped by the caller";
	case RT_ESTATE:
		return "not possible in this state";
	case RT_ENOENT:
		return "no such thing";
	case RT_ENOTSUP:
		return "the system lacks or refuses what is needed";
	case RT_EEXIST:
		return "there is one already";
	default:
		return "unknown error";
	}
}

int rt_version(void)
{
	return RT_VERSION_NUMBER;
}
