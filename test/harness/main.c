// main.c - the main of a suite that needs no other.
#include "test/harness/suite.h"

int main(void)
{
	return suite_run();
}
