// The slow half of RT_STORE.
#include <rt/barrier.h>

// As long as no collection marks beside the threads of the host, no thread's
// barrier byte is set.  A direct call is a plain store.
void rt_store_slow_(rt_thread *t, void *obj, rt_word *slot, void *value)
{
	(void)t;
	(void)obj;
	__atomic_store_n(slot, value, __ATOMIC_RELAXED);
}
