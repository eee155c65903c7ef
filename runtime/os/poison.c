// Poisoning, by the address sanitizer and by memcheck.
#include "runtime/os/poison.h"

#include "runtime/os/settings.h"

#if defined(__SANITIZE_ADDRESS__) || RT_HAS_FEATURE(address_sanitizer)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif
#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#else
#define VALGRIND_MAKE_MEM_NOACCESS(p, n) ((void)(p), (void)(n))
#define VALGRIND_MAKE_MEM_DEFINED(p, n) ((void)(p), (void)(n), 0)
#endif

bool poison_on;
bool poison_memcheck;

void poison_init(void)
{
	poison_on = settings()->poison != 0;
	// Only memcheck answers.  Users of valgrind's other tools count
	// instructions, so there the library must run as it does alone.
	poison_memcheck = VALGRIND_MAKE_MEM_DEFINED(&poison_on, 1) != 0;
}

void poison_poison(const void *p, size_t n)
{
	ASAN_POISON_MEMORY_REGION(p, n);
	VALGRIND_MAKE_MEM_NOACCESS(p, n);
}

// The memory counts as defined: it was cleared before, or its user accepts what
// it holds.
void poison_unpoison(const void *p, size_t n)
{
	ASAN_UNPOISON_MEMORY_REGION(p, n);
	(void)VALGRIND_MAKE_MEM_DEFINED(p, n);
}

uintptr_t poison_defined(uintptr_t w)
{
	(void)VALGRIND_MAKE_MEM_DEFINED(&w, sizeof w);
	return w;
}
