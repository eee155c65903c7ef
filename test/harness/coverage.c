// coverage.c - counts the code that runs in a process that ends early, too.
//
// gcc's counters are written when a process exits.  Tests make processes end in
// abort and _exit; tools/coverage.sh makes the linker direct these calls here
// (--wrap).  A process that a signal kills counts for nothing.
#include <stdlib.h>
#include <unistd.h>

void __gcov_dump(void);
_Noreturn void __real_abort(void);
_Noreturn void __real__exit(int status);
_Noreturn void __wrap_abort(void);
_Noreturn void __wrap__exit(int status);

void __wrap_abort(void)
{
	__gcov_dump();
	__real_abort();
}

void __wrap__exit(int status)
{
	__gcov_dump();
	__real__exit(status);
}
