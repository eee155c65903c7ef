// explicit.h - the operations that a heap without a collector does not have.
//
// Such heaps run the workloads that know when each object dies.
#include <stdint.h>

#define HEAP_FREES 1

static inline void heap_begin(void)
{
}

static inline void heap_attach(void)
{
}

static inline void heap_detach(void)
{
}

static inline void heap_collect(void)
{
}

static inline void heap_poll(void)
{
}

static inline void heap_block(void)
{
}

static inline void heap_unblock(void)
{
}
