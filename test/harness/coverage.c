// coverage.c - counts what ran in a process that ends by abort or _exit.
//
// gcc's counters are written when a process exits.  Tests make processes end in
// abort and _exit, which write nothing.  So tools/coverage.sh makes the linker
// replace these two by the functions here (--wrap).  Code that ran in a process
// that another signal kills is not counted.
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
